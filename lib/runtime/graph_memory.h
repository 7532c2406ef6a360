// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_memory.h: the scratch that a runtime's captured graphs keep: a reservation for each, or one for all of a
// stream.
#ifndef GCAP_LIB_RUNTIME_GRAPH_MEMORY_H_
#define GCAP_LIB_RUNTIME_GRAPH_MEMORY_H_

#include <pthread.h>

#include "gcap/capture.h"
#include "gcap/scratch.h"

// Part of a runtime. Thread-safe.
typedef struct gcap_graph_memory {
  gcap_scratch_t* scratch;
  bool shared;  // the graphs of a stream share one reservation
  pthread_mutex_t mutex;
  struct graph_reservation* in_common;  // the shared ones, one for each stream that has a graph
} gcap_graph_memory_t;

void gcap_graph_memory_init(gcap_graph_memory_t* memory, gcap_scratch_t* scratch, bool shared);
// When no graph is left. Of one that was never initialized, and is all zero, nothing is done.
void gcap_graph_memory_deinit(gcap_graph_memory_t* memory);

// What scratch calls the work of a graph id (gcap_scratch_prepare_for); 0 for GCAP_GRAPH_ID_NONE.
static inline uint64_t gcap_graph_memory_work(int graph_id) { return (uint32_t)graph_id + UINT32_C(1); }

// Before a capture of `graph_id` on `stream`: makes it likely that the capture finds the memory that the id's runs had.
// Where that fails the capture says what it lacks, so here it is a line in the log.
void gcap_graph_memory_prepare(gcap_graph_memory_t* memory, gcap_stream_t* stream, int graph_id);

// In a capture that has just begun: diverts the stream's scratch to memory that the graph keeps. The diversion ends
// with the scope, or here when something fails.
gcap_status_t gcap_graph_memory_reserve(gcap_graph_memory_t* memory, gcap_stream_t* stream, int graph_id,
                                        gcap_capture_t* capture) GCAP_NODISCARD;

#endif  // GCAP_LIB_RUNTIME_GRAPH_MEMORY_H_
