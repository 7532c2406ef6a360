// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs each of the four broken provider functions and then its repaired version, under the simulator's checks. The
// reports go to standard error as the simulator makes them; the counts to standard output. Exit code 0 when each broken
// one had exactly one report and no repaired one had any.
#include <stdio.h>

#include "examples/broken_ep/broken_ep.h"
#include "gcap_sim.h"

typedef cudaError_t (*run_t)(ep_t* ep);

static const struct {
  const char* name;
  run_t broken;
  run_t repaired;
} snippets[] = {
    {"missing wait between streams", missing_wait_broken, missing_wait_repaired},
    {"allocation in capture", allocation_in_capture_broken, allocation_in_capture_repaired},
    {"scratch freed too early", early_free_broken, early_free_repaired},
    {"staging buffer freed after capture", stale_staging_broken, stale_staging_repaired},
};

enum { NUM_SNIPPETS = sizeof(snippets) / sizeof(snippets[0]) };

static cudaError_t ep_init(ep_t* ep) {
  TRY(cudaStreamCreateWithFlags(&ep->compute, cudaStreamNonBlocking));
  TRY(cudaStreamCreateWithFlags(&ep->copy, cudaStreamNonBlocking));
  TRY(cudaEventCreateWithFlags(&ep->event, cudaEventDisableTiming));
  TRY(cudaMalloc((void**)&ep->input, BYTES));
  TRY(cudaMalloc((void**)&ep->output, BYTES));
  TRY(cudaMallocHost((void**)&ep->staging, BYTES));
  for (int i = 0; i < ELEMENTS; ++i) ep->staging[i] = (float)i;
  return cudaSuccess;
}

static cudaError_t ep_deinit(ep_t* ep) {
  TRY(cudaStreamSynchronize(ep->copy));
  TRY(cudaStreamSynchronize(ep->compute));
  TRY(cudaFreeHost(ep->staging));
  TRY(cudaFree(ep->output));
  TRY(cudaFree(ep->input));
  TRY(cudaEventDestroy(ep->event));
  TRY(cudaStreamDestroy(ep->copy));
  return cudaStreamDestroy(ep->compute);
}

static cudaError_t run_once(run_t run) {
  ep_t ep;
  TRY(ep_init(&ep));
  TRY(run(&ep));
  return ep_deinit(&ep);
}

// Returns how many reports there were, leaks included; a CUDA error counts as one, since nobody expects it.
static size_t count_reports(run_t run) {
  cudaError_t error = run_once(run);
  if (error != cudaSuccess) fprintf(stderr, "unexpected: %s\n", cudaGetErrorString(error));
  return gcap_sim_check() + (error != cudaSuccess);
}

int main(void) {
  size_t broken[NUM_SNIPPETS], repaired[NUM_SNIPPETS];
  size_t wrong = 0;
  // Report, count and go on, where the default is to stop, or to warn.
  gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_RECORD);
  for (size_t i = 0; i < NUM_SNIPPETS; ++i) {
    fprintf(stderr, "--- %zu. %s\n", i + 1, snippets[i].name);
    broken[i] = count_reports(snippets[i].broken);
  }
  for (size_t i = 0; i < NUM_SNIPPETS; ++i) {
    fprintf(stderr, "--- %zu. %s, repaired\n", i + 1, snippets[i].name);
    repaired[i] = count_reports(snippets[i].repaired);
    wrong += broken[i] != 1 || repaired[i] != 0;
  }
  for (size_t i = 0; i < NUM_SNIPPETS; ++i) {
    printf("%s: %zu report(s), repaired: %zu\n", snippets[i].name, broken[i], repaired[i]);
  }
  return wrong != 0;
}
