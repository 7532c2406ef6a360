// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs by key, and a guard. An engine's step is decided by a struct: here a phase, and the number of sequences of its
// batch. The struct is the key of the graph, so each pair has a graph of its own and no table of ids is kept beside the
// manager. A key is compared byte by byte: the struct is cleared before its fields are set.
//
// A decision that is not in the key is stated by the work that depends on it: here the window of the attention, which a
// step takes once the sequences are longer. No replay goes against it, and each side of it is captured once. It prints:
//
//     prefill, 2 sequences: is captured, tokens 1 1 0 0
//     decode, 2 sequences: is captured, tokens 2 2 0 0
//     decode, 4 sequences: is captured, tokens 2 2 2 2
//     decode, 2 sequences: replays, tokens 2 2 0 0
//     decode, 4 sequences: replays, tokens 2 2 2 2
//     the sequences are longer than the window
//     decode, 4 sequences: is captured, tokens 12 12 12 12
//     decode, 4 sequences: replays, tokens 12 12 12 12
//     the sequences are shorter again
//     decode, 4 sequences: replays, tokens 2 2 2 2
//     passed over: guard 'length' is 5, was 100, and the graph is for 65 to 1000
//     'decode' has 2 graphs, with 4 nodes, launched 5 times
//     it is released
//     decode, 4 sequences: is captured, tokens 2 2 2 2

#include <stdio.h>
#include <string.h>

#include "gcap/graph.h"

#define MAX_SEQUENCES 4
#define WINDOW 64
#define MAX_LENGTH 1000

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

typedef enum phase { PREFILL = 1, DECODE } phase_t;

// All that decides what a step issues.
typedef struct step_key {
  int phase;
  int num_sequences;
} step_key_t;

typedef struct engine {
  gcap_graph_manager_t* graphs;
  cudaStream_t stream;
  unsigned char* tokens;  // device memory, a byte for each sequence
  unsigned char seen[MAX_SEQUENCES];
  step_key_t step;  // what the step reads: the same as its key
  int32_t length;   // of the longest sequence, so far
} engine_t;

// The arm that the length of now takes is right for all lengths on the same side of the window.
static gcap_status_t choose_arm(const engine_t* engine, bool* out_windowed) {
  *out_windowed = engine->length > WINDOW;
  gcap_graph_guard_t guard;
  gcap_graph_guard_init(&guard);
  guard.name = "length";
  guard.address = &engine->length;  // lives as long as the engine, and so as the graph
  guard.bytes = sizeof(engine->length);
  guard.low = *out_windowed ? WINDOW + 1 : 0;
  guard.high = *out_windowed ? MAX_LENGTH : WINDOW;
  return GCAP_GRAPH_GUARD(&guard);
}

// The work. What comes from the key may be in the graph; what else decides is stated.
static gcap_status_t issue_step(void* user, const gcap_run_resources_t* resources) {
  const engine_t* engine = user;
  const size_t count = (size_t)engine->step.num_sequences;
  bool windowed = false;
  GCAP_RETURN_IF_ERROR(choose_arm(engine, &windowed));
  const int token = engine->step.phase + (windowed ? 10 : 0);
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(engine->tokens, 0, MAX_SEQUENCES, resources->cuda_stream)));
  return GCAP_CUDA(cudaMemsetAsync(engine->tokens, token, count, resources->cuda_stream));
}

static gcap_graph_key_t key_of(const step_key_t* step) {
  return (gcap_graph_key_t){.bytes = step, .size = sizeof(*step), .name = step->phase == DECODE ? "decode" : "prefill"};
}

static gcap_status_t run_step(engine_t* engine, phase_t phase, int num_sequences) {
  memset(&engine->step, 0, sizeof(engine->step));  // also what the compiler may put between the fields
  engine->step.phase = phase;
  engine->step.num_sequences = num_sequences;
  const gcap_graph_key_t key = key_of(&engine->step);
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run;
  gcap_run_init(&run);
  run.stream = engine->stream;
  run.work = issue_step;
  run.user = engine;
  run.result = &result;
  run.key = &key;
  run.synchronize = true;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_run(engine->graphs, &run));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpy(engine->seen, engine->tokens, MAX_SEQUENCES, cudaMemcpyDeviceToHost)));
  printf("%s, %d sequences: %s, tokens %d %d %d %d\n", key.name, num_sequences,
         result.outcome == GCAP_RUN_REPLAYED ? "replays" : "is captured", engine->seen[0], engine->seen[1],
         engine->seen[2], engine->seen[3]);
  return NULL;
}

// Prints what the message has behind the place of the guard in this file.
static void show_why(gcap_status_t why) {
  const char* values = strstr(gcap_status_message(why), ") ");
  printf("passed over: guard 'length' %s\n", values != NULL ? values + 2 : "holds");
  gcap_status_free(why);
}

// What takes an id takes that of a key.
static gcap_status_t release_step(engine_t* engine) {
  const gcap_graph_key_t key = key_of(&engine->step);
  int id = GCAP_GRAPH_ID_NONE;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_find(engine->graphs, &key, &id));
  show_why(gcap_graph_manager_explain(engine->graphs, id, GCAP_GRAPH_WHY_OTHER_VARIANT));
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(engine->graphs, id, &info);
  printf("'%s' has %zu graphs, with %zu nodes, launched %llu times\n", info.name, info.graphs, info.nodes,
         (unsigned long long)info.replays);
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_release(engine->graphs, id));
  printf("it is released\n");
  return NULL;
}

static gcap_status_t run_steps(engine_t* engine) {
  GCAP_RETURN_IF_ERROR(run_step(engine, PREFILL, 2));
  for (int round = 0; round < 2; ++round) {
    GCAP_RETURN_IF_ERROR(run_step(engine, DECODE, 2));
    GCAP_RETURN_IF_ERROR(run_step(engine, DECODE, 4));
  }
  printf("the sequences are longer than the window\n");
  engine->length = 100;
  for (int i = 0; i < 2; ++i) GCAP_RETURN_IF_ERROR(run_step(engine, DECODE, 4));
  printf("the sequences are shorter again\n");
  engine->length = 5;
  GCAP_RETURN_IF_ERROR(run_step(engine, DECODE, 4));
  GCAP_RETURN_IF_ERROR(release_step(engine));
  return run_step(engine, DECODE, 4);
}

int main(void) {
  engine_t engine = {0};
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;  // there is nothing to warm up
  TRY(gcap_graph_manager_create(&options, &engine.graphs));
  TRY(GCAP_CUDA(cudaStreamCreateWithFlags(&engine.stream, cudaStreamNonBlocking)));
  TRY(GCAP_CUDA(cudaMalloc((void**)&engine.tokens, MAX_SEQUENCES)));
  TRY(run_steps(&engine));
  TRY(gcap_graph_manager_destroy(engine.graphs));
  TRY(GCAP_CUDA(cudaFree(engine.tokens)));
  TRY(GCAP_CUDA(cudaStreamDestroy(engine.stream)));
  return 0;
}
