// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The memory of a tap. It has a reference of each list that names it, and of each capture whose graph has the node. So
// it outlives every launch, a rehearsal hands it to the capture, and a run reads it while another thread releases the
// graph. Locking: none, references are atomic.

#include "lib/graph/tap_block.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gcap/log.h"
#include "lib/internal/cuda_guard.h"

struct gcap_graph_tap_block {
  atomic_uint refs;
  int device_id;
  size_t bytes;
  void* memory;
};

void gcap_graph_tap_block_release(void* block_of_tap) {
  gcap_graph_tap_block_t* block = block_of_tap;
  if (block == NULL || atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) > 1) return;
  gcap_status_t status = block->memory != NULL ? gcap_relaxed_free(block->device_id, block->memory) : NULL;
  if (status != NULL) gcap_log(GCAP_LOG_ERROR, "the memory of a tap is lost: %s", gcap_status_message(status));
  gcap_status_ignore(status);  // nobody waits for the end of a tap
  free(block);
}

void gcap_graph_tap_block_retain(gcap_graph_tap_block_t* block) {
  atomic_fetch_add_explicit(&block->refs, 1, memory_order_relaxed);
}

size_t gcap_graph_tap_block_bytes(void* block) { return ((const gcap_graph_tap_block_t*)block)->bytes; }

void* gcap_graph_tap_block_memory(const gcap_graph_tap_block_t* block) { return block->memory; }

gcap_status_t gcap_graph_tap_block_create(int device_id, size_t bytes, gcap_graph_tap_block_t** out_block) {
  gcap_graph_tap_block_t* block = malloc(sizeof(*block));
  *out_block = NULL;
  if (block == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a tap");
  *block = (gcap_graph_tap_block_t){.refs = 1, .device_id = device_id, .bytes = bytes};
  gcap_status_t status = gcap_relaxed_malloc(device_id, bytes, &block->memory);
  if (status == NULL) {
    *out_block = block;
  } else {
    gcap_graph_tap_block_release(block);
  }
  return status;
}
