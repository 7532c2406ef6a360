// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// moving.h: the buffers of one id, which may be elsewhere at each replay, from their rehearsal to the captured graph.
#ifndef GCAP_LIB_GRAPH_MOVING_H_
#define GCAP_LIB_GRAPH_MOVING_H_

#include "gcap/graph.h"
#include "lib/contents/inner.h"

// Where a buffer was captured, which tells what may take its place.
typedef struct gcap_graph_place {
  unsigned type;  // as gcap_driver_allocation_t
  int device;
} gcap_graph_place_t;

// Belongs to a run while that is open, then to the slot, until the capture, then to the captured graph.
typedef struct gcap_graph_moving {
  size_t count;
  gcap_moving_buffer_t* buffers;  // [count]
  gcap_graph_place_t* places;     // [count]
  uintptr_t* addresses;           // [count], room for a bind
  gcap_stand_ins_t stand_ins;     // of an open rehearsal
  bool needs_memory;              // stand-ins without memory were refused
  bool is_rehearsed;
  gcap_contents_t rehearsed;      // with the buffers at their stand-ins
  gcap_relocation_t* relocation;  // of a captured graph; NULL: it cannot be moved
  gcap_status_t refusal;          // why
} gcap_graph_moving_t;

// Checks what a run is given.
//   INVALID_ARGUMENT  as gcap_graph_manager_begin_run
gcap_status_t gcap_graph_moving_check_buffers(const gcap_graph_buffers_t* buffers);

// Copies the buffers, which were checked.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_moving_create(const gcap_graph_buffers_t* buffers, gcap_graph_moving_t** out_moving);
// Gives everything back. NULL is fine. May free device memory.
gcap_status_t gcap_graph_moving_destroy(gcap_graph_moving_t* moving);

// Takes over what an earlier run rehearsed, if that had buffers of the same sizes and alignments.
void gcap_graph_moving_adopt(gcap_graph_moving_t* moving, gcap_graph_moving_t* earlier);

// Before a rehearsal on `stream`: finds stand-ins. If there are none `moving` keeps the refusal, and is not rehearsed.
bool gcap_graph_moving_open_rehearsal(gcap_graph_moving_t* moving, cudaStream_t stream);
// After it: keeps what is inside `graph`, and gives the stand-ins back.
gcap_status_t gcap_graph_moving_end_rehearsal(gcap_graph_moving_t* moving, cudaGraph_t graph);

// Finds out whether the graph captured for `id` can be moved, and keeps that in `moving`. `contents` outlives `moving`.
// Warns of a buffer that the graph has no pointer into. Logs, so without the manager's mutex.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_moving_relocate(gcap_graph_moving_t* moving, int id, gcap_contents_t* contents);

// Checks an address for a buffer of the graph `id`.
//   INVALID_ARGUMENT  NULL, misaligned, of another device or kind of memory, or too small
gcap_status_t gcap_graph_moving_check(const gcap_graph_moving_t* moving, int id, size_t buffer, const void* address);

#endif  // GCAP_LIB_GRAPH_MOVING_H_
