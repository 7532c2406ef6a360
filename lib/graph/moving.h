// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// moving.h: the buffers and the values of one id, which may be others at each replay, from their rehearsal to the
// captured graph.
#ifndef GCAP_LIB_GRAPH_MOVING_H_
#define GCAP_LIB_GRAPH_MOVING_H_

#include "gcap/graph.h"
#include "lib/contents/inner.h"
#include "lib/graph/guards.h"
#include "lib/graph/values.h"

// Where a buffer was captured, which tells what may take its place.
typedef struct gcap_graph_place {
  unsigned type;  // as gcap_driver_allocation_t, as the next two
  int device;
  uint64_t buffer_id;
} gcap_graph_place_t;

// Memory that a buffer is in, or has been.
typedef struct gcap_graph_spot {
  size_t buffer;
  uintptr_t address;
  uint64_t buffer_id;
} gcap_graph_spot_t;

// How many other places than those of the capture are remembered.
#define GCAP_GRAPH_MOVED_SPOTS 64

// Belongs to a run while that is open, then to the slot, until the capture, then to the captured graph.
typedef struct gcap_graph_moving {
  size_t count;
  gcap_moving_buffer_t* buffers;  // [count]
  gcap_graph_place_t* places;     // [count]
  gcap_graph_spot_t* targets;     // [count], room for a bind: where each buffer goes, by its address
  uintptr_t* addresses;           // [count], the same without the rest; 0: the buffer stays
  bool* may_be_unused;            // [count]
  gcap_graph_values_t values;
  bool host_functions_may_stay;
  gcap_layout_t layout;        // from the first rehearsal on
  gcap_stand_ins_t stand_ins;  // of an open rehearsal
  bool needs_memory;           // stand-ins without memory were refused
  // With the buffers at their stand-ins.
  gcap_contents_t rehearsed[GCAP_STAND_IN_SETS];
  size_t num_rehearsed;
  gcap_graph_stated_list_t stated;  // by the work, in the first rehearsal
  gcap_relocation_t* relocation;    // of a captured graph; NULL: it was never to be moved
  gcap_status_t refusal;            // why the graph cannot be moved; NULL: it can
  gcap_status_t conflict;  // why the last run that was left to its work could not be replayed; NULL: see refusal
  // How the buffers of a run lay otherwise that passed over the graph; `what` NULL: none did, or a guard did since.
  gcap_layout_conflict_t passed_by;
  // Where the buffers have been: those of the capture, then the newest others, in a ring. Of a graph that can be moved.
  gcap_graph_spot_t* spots;  // [count + GCAP_GRAPH_MOVED_SPOTS]
  size_t num_spots, next_spot;
  uint64_t num_moves;  // of its buffers
} gcap_graph_moving_t;

// Checks what a run is given.
//   INVALID_ARGUMENT  as gcap_graph_manager_begin_run
gcap_status_t gcap_graph_moving_check_buffers(const gcap_graph_buffers_t* buffers);

// Copies the buffers, which were checked, and the values.
//   INVALID_ARGUMENT    of a value: as gcap_graph_values_create
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_moving_create(const gcap_graph_buffers_t* buffers, gcap_graph_moving_t** out_moving);
// Gives everything back. NULL is fine. May free device memory.
gcap_status_t gcap_graph_moving_destroy(gcap_graph_moving_t* moving);

// Takes over what an earlier run rehearsed, if that had buffers of the same sizes and alignments that lay alike to one
// another, in the same order, and the earlier stand-ins show what work makes of the present addresses and values. Not
// if this run asks for stand-ins in memory and the earlier one had others. Of a run that is to be captured.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_moving_adopt(gcap_graph_moving_t* moving, gcap_graph_moving_t* earlier);

// Forgets what was rehearsed.
void gcap_graph_moving_forget_rehearsals(gcap_graph_moving_t* moving);

// Whether another rehearsal would show what those before do not.
bool gcap_graph_moving_needs_rehearsal(const gcap_graph_moving_t* moving);

// Before a rehearsal on `stream`: finds stand-ins. If there are none `moving` keeps the refusal, and is not rehearsed.
bool gcap_graph_moving_open_rehearsal(gcap_graph_moving_t* moving, cudaStream_t stream);
// Where the work of a run finds its buffers, and behind them its values. `is_rehearsal`: in the rehearsal that is open.
void gcap_graph_moving_place(const gcap_graph_moving_t* moving, bool is_rehearsal, void** out_addresses);
// After it: keeps what is inside the graphs of its segments, and gives the stand-ins back.
gcap_status_t gcap_graph_moving_end_rehearsal(gcap_graph_moving_t* moving, const cudaGraph_t* graphs, size_t count);

// Finds out whether the captured graph can be moved, and keeps that in `moving`. `contents` outlives `moving`.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_moving_relocate(gcap_graph_moving_t* moving, gcap_contents_t* contents);
// Asks the driver whether it changes the nodes of the executables, one for each segment, of a graph that can be moved
// so far.
void gcap_graph_moving_try(gcap_graph_moving_t* moving, const cudaGraphExec_t* execs);

// Whether the graph stays at the buffers of its capture, or where it was bound last.
static inline bool gcap_graph_moving_stays(const gcap_graph_moving_t* moving) {
  return moving->refusal != NULL || moving->relocation == NULL;
}
// The captured graph's buffers where they are now.
static inline const gcap_moving_buffer_t* gcap_graph_moving_buffers(const gcap_graph_moving_t* moving) {
  return moving->relocation != NULL ? gcap_relocation_buffers(moving->relocation) : moving->buffers;
}
static inline uintptr_t gcap_graph_moving_address(const gcap_graph_moving_t* moving, size_t buffer) {
  return gcap_graph_moving_buffers(moving)[buffer].address;
}

// Checks an address for a buffer of the graph `id`, and notes it with its memory in `targets`.
//   INVALID_ARGUMENT  NULL, misaligned, of another device or kind of memory, or too small
gcap_status_t gcap_graph_moving_check(gcap_graph_moving_t* moving, int id, size_t buffer, const void* address);
// Whether `addresses` have a buffer go elsewhere, or another value is wanted.
bool gcap_graph_moving_moves(const gcap_graph_moving_t* moving);
// Whether the graph can be moved to `addresses` and have the values, as far as these alone tell.
bool gcap_graph_moving_reaches(gcap_graph_moving_t* moving);
// Why not, in words.
gcap_status_t gcap_graph_moving_explain(gcap_graph_moving_t* moving);
// Whether buffers at `addresses` lie to one another as the captured graph's may: those that touch come apart only of
// one that can be moved. Else notes who does not: `passed_by`.
bool gcap_graph_moving_lies(gcap_graph_moving_t* moving);
// The note in words; NULL: there is none.
gcap_status_t gcap_graph_moving_explain_passed(const gcap_graph_moving_t* moving);
// Remembers where the buffers went that `addresses` moved.
void gcap_graph_moving_note_moved(gcap_graph_moving_t* moving);

#endif  // GCAP_LIB_GRAPH_MOVING_H_
