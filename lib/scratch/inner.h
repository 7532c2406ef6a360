// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// inner.h: what the runtime asks of a scratch and users do not: the runs of its streams, what a capture of some work
// needs, the names of its graphs, why a stream cannot be forgotten, and whether the scratch could end once all graphs
// have ended, which a runtime must know before it ends them.
#ifndef GCAP_LIB_SCRATCH_INNER_H_
#define GCAP_LIB_SCRATCH_INNER_H_

#include <stdbool.h>
#include <stdint.h>

#include "gcap/scratch.h"

#ifdef __cplusplus
extern "C" {
#endif

// A run: the blocks that are allocated for `stream` by gcap_scratch_alloc between begin and end belong to the run. At
// the end, those that were neither freed nor kept are freed as by gcap_scratch_free: in stream order, inside a capture
// into the stream's reservation, with red zones and poison. For each node that left blocks, gcap_log gets one warning
// with the node's name (or "no node"), the number of blocks and their bytes. A kernel that returns early then leaks
// nothing. Blocks that were allocated before the run, or without a stream, belong to no run. Any thread may free a
// block of a run, before the end. A stream has one run at a time, and the thread that uses the stream begins and ends
// the run. Both calls are legal inside a capture. If the stream is forgotten or destroyed first, the run ends, and
// nothing is freed.
//   ALREADY_EXISTS      the stream has an open run
//   INVALID_ARGUMENT    no stream, or one of another device than upstream's
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_scratch_begin_run(gcap_scratch_t* scratch, gcap_stream_t* stream) GCAP_NODISCARD;
// The run has ended in any case but the first two. The end also frees blocks that a debug option cannot look at or
// fill, such as in a capture that was broken, which gcap_scratch_free refuses; the status names the node and the call.
// A block that could not be freed stays live and belongs to no run. The next end of a run that has blocks to free, on a
// thread that does not capture, frees it, or gcap_scratch_free, or gcap_scratch_destroy.
//   FAILED_PRECONDITION  the stream has no open run
//   INVALID_ARGUMENT     no stream
//   INTERNAL             with red_zones: something wrote outside a block. The block was freed
//   CUDA_ERROR           with red_zones or poison_on_free: the runtime refused. The block was freed
// Also what gcap_scratch_free answers for a block that it did not free; several failures are joined.
gcap_status_t gcap_scratch_end_run(gcap_scratch_t* scratch, gcap_stream_t* stream) GCAP_NODISCARD;
// As gcap_scratch_end_run. What the run had of the stream at most is what a capture of `work` will need of it; 0: of no
// work. The runtime's work is the graph id and 1. A run that has failed may leave blocks, so nothing is logged of them,
// and it may have needed more.
gcap_status_t gcap_scratch_end_run_of(gcap_scratch_t* scratch, gcap_stream_t* stream, uint64_t work,
                                      bool has_failed) GCAP_NODISCARD;

// As gcap_scratch_reservation_prepare, for a capture of `work`: what the last run of that work had.
gcap_status_t gcap_scratch_prepare_for(gcap_scratch_t* scratch, gcap_stream_t* stream, uint64_t work) GCAP_NODISCARD;

// As gcap_scratch_reservation_close. A capture that succeeded ends with `committed`.
void gcap_scratch_reservation_close_with(gcap_scratch_reservation_t* reservation, bool committed);

// Names the reservation's graph in reports, e.g. "graph 3". The function copies the first 31 bytes of the label. A
// further label is listed beside the earlier ones while there is room. Labels stay listed until the memory returns to
// the arena.
void gcap_scratch_reservation_set_label(gcap_scratch_reservation_t* reservation, const char* label);
// The bytes that the reservation keeps now.
size_t gcap_scratch_reservation_bytes(const gcap_scratch_reservation_t* reservation);

// Calls `visit_block` with each block that the reservation keeps, or has a share of. The arena is locked meanwhile.
void gcap_scratch_reservation_list(gcap_scratch_reservation_t* reservation,
                                   void (*visit_block)(void* context, void* address, size_t bytes), void* context);

// What of a stream is still in use.
typedef enum gcap_scratch_hold {
  GCAP_SCRATCH_HOLD_NONE = 0,
  GCAP_SCRATCH_HOLD_CALL,         // memory is being got for the stream
  GCAP_SCRATCH_HOLD_RESERVATION,  // a graph may still use the stream's memory
  GCAP_SCRATCH_HOLD_BLOCK,        // a block is live, or was freed since the stream was synchronized
} gcap_scratch_hold_t;

// As gcap_scratch_forget_stream. `*out_hold`: why the stream is not forgotten, the first of those above.
gcap_status_t gcap_scratch_forget_unless_held(gcap_scratch_t* scratch, gcap_stream_t* stream,
                                              gcap_scratch_hold_t* out_hold) GCAP_NODISCARD;

// The refusal that gcap_scratch_destroy would answer although no graph were left: a block is live that no graph keeps,
// a reservation is open, or a call waits for upstream, the device or a callback. NULL: there is none. Changes nothing.
//   FAILED_PRECONDITION  as gcap_scratch_destroy
gcap_status_t gcap_scratch_check_end(gcap_scratch_t* scratch) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_SCRATCH_INNER_H_
