// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// tap_block.h: the device memory of a tap, by references. Any thread, capturing or not.
#ifndef GCAP_LIB_GRAPH_TAP_BLOCK_H_
#define GCAP_LIB_GRAPH_TAP_BLOCK_H_

#include <stddef.h>

#include "gcap/status.h"

typedef struct gcap_graph_tap_block gcap_graph_tap_block_t;

// With one reference.
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          no device memory
gcap_status_t gcap_graph_tap_block_create(int device_id, size_t bytes,
                                          gcap_graph_tap_block_t** out_block) GCAP_NODISCARD;
void gcap_graph_tap_block_retain(gcap_graph_tap_block_t* block);
// Of a gcap_graph_tap_block_t, as gcap_capture_retain calls them. A release that frees may wait for the device; NULL is
// fine.
void gcap_graph_tap_block_release(void* block);
size_t gcap_graph_tap_block_bytes(void* block);
void* gcap_graph_tap_block_memory(const gcap_graph_tap_block_t* block);

#endif  // GCAP_LIB_GRAPH_TAP_BLOCK_H_
