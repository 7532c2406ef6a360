// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An engine with a graph layer of its own (islands.h), and that layer over gcap (islands.c). A step has two islands in
// each layer of the model, on buffers that take turns. Each island is eager, captured and replayed by itself, and what
// is between islands stays eager. It prints:
//
//     step 1: 4 islands eager, right
//     step 2: 4 islands eager, right
//     step 3: 4 islands captured, right
//     step 4: 4 islands captured, right
//     step 5: 4 islands replayed, right
//     step 6: 4 islands replayed, right
//     an island that stops half-way: eager, stopped, captured, replayed
//     the weights are elsewhere, and no graph is valid
//     step 7: 4 islands eager, right
//     step 8: 4 islands eager, right
//     step 9: 4 islands captured, right
//
// The keys have the buffers' addresses in them, as the engine's graphs do not move: each turn has graphs of its own.

#include <stdio.h>
#include <string.h>

#include "examples/engine_layer/islands.h"

enum { NUM_LAYERS = 2, NUM_ISLANDS = 2, NUM_TURNS = 2, BYTES = 4096 };

#define TRY(condition)                             \
  do {                                             \
    if (!(condition)) {                            \
      fprintf(stderr, "failed: %s\n", #condition); \
      return false;                                \
    }                                              \
  } while (0)
#define TRY_CUDA(call) TRY((call) == cudaSuccess)

typedef struct engine {
  cudaStream_t stream;
  char* hidden[NUM_TURNS];
  char* attended[NUM_TURNS];
  char* weights;
  bool stops;  // the next island
} engine_t;

typedef enum outcome { EAGER, STOPPED, CAPTURED, REPLAYED, NUM_OUTCOMES } outcome_t;
static const char* const kOutcomes[NUM_OUTCOMES] = {"eager", "stopped", "captured", "replayed"};

// --- Islands --------------------------------------------------------------------------------------------------------

// The work of an island, in place of real kernels: the hidden state goes through the weights' place to the other
// buffer.
static bool issue(const engine_t* engine, const island_key_t* key) {
  TRY_CUDA(cudaMemcpyAsync((void*)key->weights, key->from, BYTES, cudaMemcpyDeviceToDevice, engine->stream));
  if (engine->stops) return false;
  TRY_CUDA(cudaMemcpyAsync(key->to, key->weights, BYTES, cudaMemcpyDeviceToDevice, engine->stream));
  return true;
}

// What an engine does with the layer's answers. False if the work failed.
static bool run(const engine_t* engine, const island_key_t* key, outcome_t* out_outcome) {
  const int answer = islands_begin(key);
  *out_outcome = REPLAYED;
  if (answer == 1) return true;
  const bool is_issued = issue(engine, key);
  *out_outcome = EAGER;
  if (answer == -1) return is_issued;
  *out_outcome = STOPPED;
  if (!is_issued) return islands_abort(key), false;
  *out_outcome = CAPTURED;
  if (islands_end(key) == 0) return true;
  *out_outcome = EAGER;
  return issue(engine, key);
}

static island_key_t key_of(const engine_t* engine, int turn, uint32_t layer, uint32_t island, uint32_t variant) {
  char *hidden = engine->hidden[turn], *attended = engine->attended[turn];
  return (island_key_t){
      .layer = layer,
      .island = island,
      .variant = variant,
      .from = island == 0 ? hidden : attended,
      .to = island == 0 ? attended : hidden,
      .weights = engine->weights,
  };
}

// --- Steps ----------------------------------------------------------------------------------------------------------

static bool is_all(const engine_t* engine, const char* memory, int value) {
  char host[BYTES];
  if (cudaMemcpyAsync(host, memory, BYTES, cudaMemcpyDeviceToHost, engine->stream) != cudaSuccess) return false;
  if (cudaStreamSynchronize(engine->stream) != cudaSuccess) return false;
  for (int i = 0; i < BYTES; ++i) {
    if (host[i] != (char)value) return false;
  }
  return true;
}

// The token comes from outside of the islands; here the state of a step is its number.
static bool step(const engine_t* engine, int number) {
  const int turn = number % NUM_TURNS;
  int counts[NUM_OUTCOMES] = {0};
  TRY_CUDA(cudaMemsetAsync(engine->hidden[turn], number, BYTES, engine->stream));
  for (uint32_t i = 0; i < NUM_LAYERS * NUM_ISLANDS; ++i) {
    const island_key_t key = key_of(engine, turn, i / NUM_ISLANDS, i % NUM_ISLANDS, /*variant=*/0);
    outcome_t outcome;
    TRY(run(engine, &key, &outcome));
    ++counts[outcome];
  }
  printf("step %d:", number);
  for (int i = 0; i < NUM_OUTCOMES; ++i) {
    if (counts[i] > 0) printf(" %d islands %s,", counts[i], kOutcomes[i]);
  }
  printf(" %s\n", is_all(engine, engine->hidden[turn], number) ? "right" : "WRONG");
  return true;
}

// The host decides something else, which is another variant. Its second run fails half-way, and its third does not.
static bool show_stop(engine_t* engine) {
  const island_key_t key = key_of(engine, /*turn=*/0, /*layer=*/0, /*island=*/0, /*variant=*/1);
  printf("an island that stops half-way:");
  for (int i = 0; i < 4; ++i) {
    engine->stops = i == 1;
    outcome_t outcome;
    TRY(run(engine, &key, &outcome) == !engine->stops);
    printf("%s %s", i > 0 ? "," : "", kOutcomes[outcome]);
  }
  printf("\n");
  return true;
}

static bool show_invalidate(engine_t* engine) {
  char* before = engine->weights;
  TRY_CUDA(cudaMalloc((void**)&engine->weights, BYTES));
  islands_invalidate();
  TRY_CUDA(cudaFree(before));
  printf("the weights are elsewhere, and no graph is valid\n");
  return true;
}

static bool show(engine_t* engine) {
  int number = 1;
  for (; number <= 6; ++number) TRY(step(engine, number));
  TRY(show_stop(engine));
  TRY(show_invalidate(engine));
  for (; number <= 9; ++number) TRY(step(engine, number));
  return true;
}

static bool create(engine_t* engine) {
  memset(engine, 0, sizeof(*engine));
  TRY_CUDA(cudaStreamCreateWithFlags(&engine->stream, cudaStreamNonBlocking));
  TRY_CUDA(cudaMalloc((void**)&engine->weights, BYTES));
  for (int i = 0; i < NUM_TURNS; ++i) {
    TRY_CUDA(cudaMalloc((void**)&engine->hidden[i], BYTES));
    TRY_CUDA(cudaMalloc((void**)&engine->attended[i], BYTES));
  }
  return islands_create(engine->stream);
}

// The graphs go first: they use the memory.
static bool destroy(const engine_t* engine) {
  TRY(islands_destroy());
  for (int i = 0; i < NUM_TURNS; ++i) {
    TRY_CUDA(cudaFree(engine->attended[i]));
    TRY_CUDA(cudaFree(engine->hidden[i]));
  }
  TRY_CUDA(cudaFree(engine->weights));
  TRY_CUDA(cudaStreamDestroy(engine->stream));
  return true;
}

int main(void) {
  engine_t engine;
  return create(&engine) && show(&engine) && destroy(&engine) ? 0 : 1;
}
