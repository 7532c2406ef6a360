// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ranges.h: which scratch was handed out, to fill what is free again.
#ifndef GCAP_KIT_CHECK_RANGES_H_
#define GCAP_KIT_CHECK_RANGES_H_

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "gcap/allocator.h"
#include "gcap/scratch.h"

typedef struct gcap_check_range {
  char* begin;
  size_t bytes;
  bool is_live;
  bool is_of_graph;  // handed out in a capture: the graph keeps it
} gcap_check_range_t;

// Ranges: the blocks that a scratch handed out, as its on_event tells.
// Thread:   any
// Capture:  legal, but for gcap_check_ranges_fill
// Lifetime: outlives the scratch
typedef struct gcap_check_ranges {
  pthread_mutex_t mutex;
  gcap_check_range_t* items;
  size_t count, room;
  size_t live_bytes;
  size_t largest;     // that was asked for
  bool lacks_memory;  // an event was lost
} gcap_check_ranges_t;

void gcap_check_ranges_init(gcap_check_ranges_t* ranges);
void gcap_check_ranges_deinit(gcap_check_ranges_t* ranges);

// gcap_scratch_options_t.on_event; `user` is the ranges.
void gcap_check_ranges_hear(void* user, const gcap_allocator_event_t* event);

// Fills what is not live. Then forgets all of that but the memory of graphs: it may be given back.
//   RESOURCE_EXHAUSTED  an event was lost
//   CUDA_ERROR          the runtime refused
gcap_status_t gcap_check_ranges_fill(gcap_check_ranges_t* ranges, unsigned char byte,
                                     cudaStream_t stream) GCAP_NODISCARD;

// A capture that failed leaves no graph, which would keep memory.
void gcap_check_ranges_end_graph(gcap_check_ranges_t* ranges);

// Frees the live blocks.
gcap_status_t gcap_check_ranges_free(gcap_check_ranges_t* ranges, gcap_scratch_t* scratch) GCAP_NODISCARD;

size_t gcap_check_ranges_live_bytes(gcap_check_ranges_t* ranges);

#endif  // GCAP_KIT_CHECK_RANGES_H_
