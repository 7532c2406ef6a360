// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// taps.h: the taps of a run while its work makes them, and those of a graph.
#ifndef GCAP_LIB_GRAPH_TAPS_H_
#define GCAP_LIB_GRAPH_TAPS_H_

#include <stddef.h>

#include "gcap/graph_taps.h"
#include "gcap/run.h"
#include "gcap/status.h"
#include "lib/graph/tap_block.h"

// A tap as it was made.
typedef struct gcap_graph_made_tap {
  char label[GCAP_GRAPH_NAME_BYTES];
  void* memory;
  size_t bytes;
  gcap_graph_tap_block_t* block;  // a reference
} gcap_graph_made_tap_t;

// The taps of one work. All zeros: none. Thread: one at a time.
typedef struct gcap_graph_tap_list {
  gcap_graph_made_tap_t* items;
  size_t count, room;
  const struct gcap_graph_tap_list* rehearsed;  // whose memory these share, where they are alike; NULL: nobody's
} gcap_graph_tap_list_t;

// Lets go of the memory: the last one frees it, which may wait for the device.
void gcap_graph_tap_list_free(gcap_graph_tap_list_t* list);
// A copy with references of its own.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_tap_list_copy(const gcap_graph_tap_list_t* list,
                                       gcap_graph_tap_list_t* out_copy) GCAP_NODISCARD;
// NULL: both have the same taps. Else says which one makes them differ.
gcap_status_t gcap_graph_tap_list_compare(const gcap_graph_tap_list_t* a,
                                          const gcap_graph_tap_list_t* b) GCAP_NODISCARD;

// Has the eager taps of this thread write to the memory of those of a graph that have their label and bytes, in order:
// from begin to end, the innermost one. What a work runs on another manager may be verified too.
typedef struct gcap_graph_tap_redirection {
  const gcap_graph_tap_list_t* list;
  size_t next;
  struct gcap_graph_tap_redirection* outer;
} gcap_graph_tap_redirection_t;

void gcap_graph_tap_redirection_begin(gcap_graph_tap_redirection_t* redirection, const gcap_graph_tap_list_t* list);
void gcap_graph_tap_redirection_end(gcap_graph_tap_redirection_t* redirection);

// Gives a run the copies that a list has: waits for the stream.
//   CUDA_ERROR  a copy or the wait failed
gcap_status_t gcap_graph_taps_read(const gcap_graph_tap_list_t* list, gcap_graph_tap_t* taps, size_t num_taps,
                                   cudaStream_t stream) GCAP_NODISCARD;

#endif  // GCAP_LIB_GRAPH_TAPS_H_
