// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// islands.h: the graph layer of an engine, as the engine sees it. Such layers look alike: the engine names a piece of
// its step, an island, by a struct, begins it, and does what the answer says. No word of gcap: islands.c is over it.
#ifndef GCAP_EXAMPLES_ENGINE_LAYER_ISLANDS_H_
#define GCAP_EXAMPLES_ENGINE_LAYER_ISLANDS_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// All that an island's work depends on. Other buffers are another island. 48 bytes without padding, which would count.
typedef struct island_key {
  uint32_t layer;
  uint32_t island;   // of the layer: 0 before attention, 1 after it
  uint32_t variant;  // what the host decides for the work
  uint32_t reserved;
  void *from, *to;
  const void *norm, *weights;
} island_key_t;

// One thread uses the layer, and one stream. False if there can be none.
bool islands_create(cudaStream_t stream);
bool islands_destroy(void);

// 1: the island was replayed, and there is nothing to do. 0: issue the work, which is recorded, then end or abort. -1:
// issue the work, which runs.
int islands_begin(const island_key_t* key);
// 0: what was recorded was launched. -1: nothing of it has run: issue the work again, which runs.
int islands_end(const island_key_t* key);
// The work stopped half-way: nothing of it runs.
void islands_abort(const island_key_t* key);
// What the keys do not say has changed: no graph is replayed again.
void islands_invalidate(void);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_ENGINE_LAYER_ISLANDS_H_
