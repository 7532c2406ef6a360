// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A host outside of gcap: a program that runs a model on an execution provider (EP), without gcap_session_t, on the
// installed headers alone. It claims the EP, asks the EP for the nodes' kernels, takes a turn for each run, and calls
// the kernels in a run of the EP's runtime, which knows whether the run is eager, captured or replayed. It prints:
//
//     run 1: EAGER, WARMING
//     run 2: EAGER, WARMING
//     run 3: CAPTURED
//     run 4: REPLAYED
//     run 5: REPLAYED
//     the EP refuses a second host: it captures graphs
//
// The EP is in swish_ep.c. gcap's own host, with shapes, several EPs and copies between them: gcap/kit/session.h.
#include <math.h>
#include <stdio.h>

#include "gcap/runtime.h"
#include "gcap/scratch.h"
#include "swish_ep.h"

#define COUNT 1000
#define NUM_RUNS 5
#define GRAPH_ID 0

enum { X, H, Y, NUM_VALUES };
enum { NUM_NODES = 2 };
static const gcap_value_t values[NUM_VALUES] = {[X] = {.name = "x", .rank = 1, .shape = {COUNT}},
                                                [H] = {.name = "h", .rank = 1, .shape = {COUNT}},
                                                [Y] = {.name = "y", .rank = 1, .shape = {COUNT}}};
static const gcap_node_t nodes[NUM_NODES] = {{"Swish", "inner", (const int[]){X}, 1, (const int[]){H}, 1, NULL},
                                             {"Swish", "outer", (const int[]){H}, 1, (const int[]){Y}, 1, NULL}};
static const gcap_model_t model = {values, NUM_VALUES,       nodes, NUM_NODES, (const int[]){X},
                                   1,      (const int[]){Y}, 1,     NULL,      0};

typedef struct host {
  gcap_ep_t* ep;
  gcap_runtime_t* runtime;  // the EP's
  gcap_kernel_t kernels[NUM_NODES];
  gcap_tensor_t x, y;  // device memory of the host
} host_t;

// --- Kernels --------------------------------------------------------------------------------------------------------

// In a turn, since a kernel may use the EP's stream while it is made.
static gcap_status_t create_kernels(host_t* host) {
  for (int n = 0; n < NUM_NODES; ++n) {
    if (!gcap_ep_supports(host->ep, &model, &nodes[n])) {
      return GCAP_STATUS(GCAP_UNIMPLEMENTED, "EP '%s' does not support node '%s'", gcap_ep_name(host->ep),
                         nodes[n].name);
    }
    GCAP_RETURN_IF_ERROR(gcap_ep_create_kernel(host->ep, &model, &nodes[n], &host->kernels[n]));
  }
  return NULL;
}

static void destroy_kernels(host_t* host) {
  for (int n = 0; n < NUM_NODES; ++n) {
    if (host->kernels[n].destroy != NULL) host->kernels[n].destroy(host->kernels[n].self);
  }
}

// --- Runs -----------------------------------------------------------------------------------------------------------

static gcap_status_t compute(const host_t* host, int n, const gcap_tensor_t* in, gcap_tensor_t* out,
                             const gcap_run_resources_t* resources) {
  const gcap_kernel_context_t context = {.inputs = in, .outputs = out, .ep = host->ep, .resources = *resources};
  return host->kernels[n].compute(host->kernels[n].self, &context);
}

// The work of a run. What is between the nodes is scratch of the run; in a captured run the graph keeps it.
static gcap_status_t issue(void* user, const gcap_run_resources_t* resources) {
  const host_t* host = user;
  gcap_tensor_t h = {.rank = 1, .shape = {COUNT}}, y = host->y;
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(resources->scratch, gcap_tensor_bytes(&h), resources->stream, &h.data));
  gcap_status_t status = compute(host, 0, &host->x, &h, resources);
  if (status == NULL) status = compute(host, 1, &h, &y, resources);
  return gcap_status_join(status, gcap_scratch_free(resources->scratch, h.data));
}

// A run in a turn. A host that counts on a graph calls gcap_runtime_replay; gcap_runtime_run replays where there is
// one.
static gcap_status_t run_once(host_t* host, gcap_run_result_t* result) {
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = GRAPH_ID;
  run.work = issue;
  run.user = host;
  run.synchronize = true;
  run.result = result;
  gcap_run_result_init(result);
  gcap_ep_begin_turn(host->ep);
  const bool is_captured = gcap_runtime_is_captured(host->runtime, GRAPH_ID);
  gcap_status_t status = is_captured ? gcap_runtime_replay(host->runtime, &run, /*out_replayed=*/NULL)
                                     : gcap_runtime_run(host->runtime, &run);
  gcap_ep_end_turn(host->ep);
  return status;
}

// --- The program ----------------------------------------------------------------------------------------------------

static double swish(double x) { return x / (1 + exp(-SWISH_EP_BETA * x)); }

static void print(int number, const gcap_run_result_t* result) {
  static const char* const outcomes[] = {"NOT DONE", "REPLAYED", "CAPTURED", "EAGER"};
  const bool is_eager = result->outcome == GCAP_RUN_EAGER;
  printf("run %d: %s%s%s\n", number, outcomes[result->outcome], is_eager ? ", " : "",
         is_eager ? gcap_why_eager_name(result->why_eager) : "");
}

// A run with an input that depends on its number; the output is checked.
static gcap_status_t run_and_check(host_t* host, int number) {
  static float in[COUNT], out[COUNT];
  for (int i = 0; i < COUNT; ++i) in[i] = (float)(i % 17 - 8 + number) / 4;
  gcap_run_result_t result;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpy(host->x.data, in, sizeof(in), cudaMemcpyHostToDevice)));
  GCAP_RETURN_IF_ERROR(run_once(host, &result));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpy(out, host->y.data, sizeof(out), cudaMemcpyDeviceToHost)));
  print(number, &result);
  for (int i = 0; i < COUNT; ++i) {
    const double expected = swish(swish(in[i]));
    if (fabs(out[i] - expected) <= 1e-5) continue;
    return GCAP_STATUS(GCAP_INTERNAL, "run %d: y[%d] is %g, expected %g", number, i, out[i], expected);
  }
  return NULL;
}

// The EP's graphs hold the addresses of one host, so another one is refused.
static gcap_status_t check_claimed(gcap_ep_t* ep) {
  gcap_status_t status = gcap_ep_claim(ep);
  if (status == NULL) return GCAP_STATUS(GCAP_INTERNAL, "the EP serves two hosts");
  gcap_status_free(status);
  printf("the EP refuses a second host: it captures graphs\n");
  return NULL;
}

static gcap_status_t use(host_t* host) {
  gcap_ep_begin_turn(host->ep);
  gcap_status_t status = create_kernels(host);
  gcap_ep_end_turn(host->ep);
  if (status == NULL) status = GCAP_CUDA(cudaMalloc(&host->x.data, gcap_tensor_bytes(&host->x)));
  if (status == NULL) status = GCAP_CUDA(cudaMalloc(&host->y.data, gcap_tensor_bytes(&host->y)));
  for (int number = 1; number <= NUM_RUNS && status == NULL; ++number) status = run_and_check(host, number);
  return status == NULL ? check_claimed(host->ep) : status;
}

// The kernels outlive the graph that recorded them.
static gcap_status_t end(host_t* host) {
  gcap_status_t status = NULL;
  gcap_ep_begin_turn(host->ep);
  if (gcap_runtime_is_captured(host->runtime, GRAPH_ID)) status = gcap_runtime_release(host->runtime, GRAPH_ID);
  status = gcap_status_join(status, gcap_runtime_synchronize(host->runtime));
  destroy_kernels(host);
  gcap_ep_end_turn(host->ep);
  gcap_ep_unclaim(host->ep, /*has_run=*/true);
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(host->x.data)));
  return gcap_status_join(status, GCAP_CUDA(cudaFree(host->y.data)));
}

static gcap_status_t run_program(void) {
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  gcap_ep_t* ep = NULL;
  GCAP_RETURN_IF_ERROR(swish_ep_create(&options, &ep));
  host_t host = {
      .ep = ep, .runtime = gcap_ep_runtime(ep), .x = {.rank = 1, .shape = {COUNT}}, .y = {.rank = 1, .shape = {COUNT}}};
  gcap_status_t status = gcap_ep_claim(ep);
  if (status == NULL) {
    status = use(&host);
    status = gcap_status_join(status, end(&host));
  }
  return gcap_status_join(status, gcap_ep_destroy(ep));
}

int main(void) {
  gcap_status_t status = run_program();
  if (status == NULL) return 0;
  fprintf(stderr, "host: %s\n", gcap_status_message(status));
  gcap_status_free(status);
  return 1;
}
