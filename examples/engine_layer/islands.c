// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The layer over gcap: each function is one or two calls of a graph manager, and the engine's struct is the key of a
// graph. Two things are not as in the engine's words. An engine does not say when eager work is done, so for gcap such
// a run ends before its work: it counts as a warm-up. And a failure has more to say than a number: was_issued decides
// whether the device has work of the run, which is then not issued twice, and the message goes to stderr.
#include "examples/engine_layer/islands.h"

#include <stdio.h>

#include "gcap/graph.h"

_Static_assert(sizeof(island_key_t) == 48, "padding would be a part of the key");

static gcap_graph_manager_t* graphs;
static cudaStream_t stream_of_all;

// True for NULL. Else says what failed; consumes the status.
static bool succeeded(gcap_status_t status) {
  if (status == NULL) return true;
  fprintf(stderr, "islands: %s\n", gcap_status_message(status));
  gcap_status_free(status);
  return false;
}

// The run of an island; `key` and `result` are what it points to.
static gcap_run_t run_of(const island_key_t* island, gcap_graph_key_t* key, gcap_run_result_t* result) {
  *key = (gcap_graph_key_t){island, sizeof(*island), island->island == 0 ? "before attention" : "after attention"};
  gcap_run_result_init(result);
  gcap_run_t run;
  gcap_run_init(&run);
  run.key = key;
  run.stream = stream_of_all;
  run.result = result;
  return run;
}

bool islands_create(cudaStream_t stream) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 1;
  stream_of_all = stream;
  return succeeded(gcap_graph_manager_create(&options, &graphs));
}

bool islands_destroy(void) { return succeeded(gcap_graph_manager_destroy(graphs)); }

int islands_begin(const island_key_t* island) {
  gcap_graph_key_t key;
  gcap_run_result_t result;
  const gcap_run_t run = run_of(island, &key, &result);
  bool replayed = false;
  if (!succeeded(gcap_graph_manager_replay(graphs, &run, &replayed))) return result.was_issued ? 1 : -1;
  if (replayed) return 1;
  gcap_graph_run_kind_t kind;
  if (!succeeded(gcap_graph_manager_begin_run(graphs, &run, &kind, /*out_addresses=*/NULL))) return -1;
  if (kind == GCAP_GRAPH_RUN_CAPTURE) return 0;
  (void)succeeded(gcap_graph_manager_end_run(graphs, &run, NULL));  // the work runs in any case
  return -1;
}

int islands_end(const island_key_t* island) {
  gcap_graph_key_t key;
  gcap_run_result_t result;
  const gcap_run_t run = run_of(island, &key, &result);
  (void)succeeded(gcap_graph_manager_end_run(graphs, &run, NULL));  // was_issued says what follows
  return result.was_issued ? 0 : -1;
}

void islands_abort(const island_key_t* island) {
  gcap_graph_key_t key;
  gcap_run_result_t result;
  const gcap_run_t run = run_of(island, &key, &result);
  gcap_status_t stop = GCAP_STATUS(GCAP_CANCELLED, "the engine stopped in the middle of an island");
  gcap_status_ignore(gcap_graph_manager_end_run(graphs, &run, stop));  // the engine knows
}

void islands_invalidate(void) {
  (void)succeeded(gcap_graph_manager_release_all(graphs));  // a graph that stays is named on stderr
}
