// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// scratch.h: short-lived device memory that knows which stream used it, and which captured graph must keep it.
#ifndef GCAP_SCRATCH_H_
#define GCAP_SCRATCH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/allocator.h"
#include "gcap/status.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// Options; gcap_scratch_options_init gives the defaults of ONNX Runtime's CUDA arena. A region from upstream is as
// large as all that is held while that is little and the request no more than 1 MiB, then 20 MiB or an eighth of what
// is held, and never less than the request.
typedef struct gcap_scratch_options {
  size_t struct_size;                 // set by gcap_scratch_options_init
  size_t initial_chunk_bytes;         // least of the first region asked from upstream; default 1 MiB
  size_t initial_growth_chunk_bytes;  // least of the first region after a trim gave one back; default 2 MiB
  size_t max_extend_bytes;            // no later region is larger unless a request is; default 1 GiB
  // A free block is handed out whole instead of being cut when what it has too much is at most this, and less than an
  // eighth of the request; default 128 MiB. 0: every block is cut to the granule.
  size_t max_dead_bytes_per_chunk;
  size_t memory_limit_bytes;  // most held from upstream; 0, the default: no limit
  bool extend_as_requested;   // regions are exactly as large as the request; default false
  // Debugging. Each of these makes every call take the slow way. Red zones and poison are written by cudaMemsetAsync in
  // the order of the block's stream, so the upstream's memory must be a device's, or pinned; in a capture the writes
  // become nodes of the graph, and each replay does them again.
  // 256 bytes of 0xA5 before each block and, from the first byte that was not asked for, after it. They are read when
  // the block is freed, which waits for its stream, and by gcap_scratch_validate. Where a capture frees a block the
  // graph reads them, and gcap_scratch_validate tells what its last replay found. Default false.
  bool red_zones;
  // Fills each block with 0xFF when it is freed: NaN in every floating-point format. Default false.
  bool poison_on_free;
  // Remembers this many of the last calls, so that messages about an address tell who allocated and freed it, and when.
  // Default 0; 1,000 is plenty, 2^20 the most.
  size_t recorded_operations;
  // Optional; as gcap_counting_allocator_options_t.on_event: each allocation, free and trim of this scratch, for a
  // trace. No sequence number is missing.
  void (*on_event)(void* user, const gcap_allocator_event_t* event);
  void* user;
} gcap_scratch_options_t;

// Fills in the defaults. Programs call the init function, which says how large their struct is.
GCAP_API void gcap_scratch_options_set_defaults(gcap_scratch_options_t* options);
static inline void gcap_scratch_options_init(gcap_scratch_options_t* options) {
  options->struct_size = sizeof(*options);
  gcap_scratch_options_set_defaults(options);
}

// Scratch: an arena over an allocator of device memory. From gcap_scratch_create.
// Thread:   thread-safe; each stream is used by one thread at a time, and any thread may free. What a stream used last
//           is allocated for it again, and freed, without a driver call or host memory, and by the thread that uses the
//           stream without a lock: in the steady state that is all. What needs more, such as a trim or another stream's
//           memory, holds up all threads for some microseconds.
// Capture:  while a stream has an open reservation its allocations make no driver call; the arena never reaches the
//           upstream allocator for them. Other streams' allocations follow the upstream allocator's rules.
// Lifetime: the upstream allocator outlives it; so does every stream that was given, unless it was forgotten. Of a
//           stream that is destroyed all the same, the free blocks are free for all, and what is still handed out, or
//           kept by its graphs, is as if gcap_allocator_alloc of gcap_scratch_allocator had given it. The graphs that
//           use its reservations end before it.
typedef struct gcap_scratch gcap_scratch_t;

// `options` NULL: the defaults. `upstream` stays the caller's.
//   INVALID_ARGUMENT    no upstream or one that aligns to less than 256 bytes; initial_chunk_bytes,
//                       initial_growth_chunk_bytes or max_extend_bytes 0, or one of the first two too large to be
//                       rounded up
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_scratch_create(gcap_allocator_t* upstream, const gcap_scratch_options_t* options,
                                           gcap_scratch_t** out_scratch) GCAP_NODISCARD;

// Gives all memory back upstream. NULL is fine. The caller has synchronised the streams that used it.
//   FAILED_PRECONDITION  blocks are handed out, reservations live, or upstream is being asked; nothing was given back
// and what upstream says when it refuses a region: the scratch and what is left in it stay.
GCAP_API gcap_status_t gcap_scratch_destroy(gcap_scratch_t* scratch) GCAP_NODISCARD;

// Gives `bytes` bytes, 256-byte aligned, for work on `stream`. 0 bytes give NULL and success. A block freed by another
// stream is given only when `stream` has waited for that stream's use of it (see gcap_stream_has_waited).
// Before memory is out, what can be spared is given back, rung by rung, and the request tried again: idle regions go
// back upstream, upstream trims its cache, `stream` is waited for, and the device where memory was freed that no stream
// was named for. A thread that captures does none of it, and none of it breaks another thread's capture.
//   RESOURCE_EXHAUSTED   the limit, or upstream's, with all that gcap_scratch_describe tells; inside a reservation: the
//                        bytes that it lacks. The arena grows by these at the next allocation outside a capture, so
//                        that the next try succeeds
//   INVALID_ARGUMENT     a size that overflows, no stream
//   FAILED_PRECONDITION  `stream` is being captured by the calling thread and has no open reservation: the graph would
//                        bake in memory that it does not own. The capture fails
//   CUDA_ERROR           with red_zones: the runtime refused
GCAP_API gcap_status_t gcap_scratch_alloc(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream,
                                          void** out_ptr) GCAP_NODISCARD;

// Gives a block back. It is tagged with the stream it was allocated for, at the stream's sync id of now. NULL is fine.
//   INVALID_ARGUMENT     not allocated here, an address inside a block, or freed already
//   INTERNAL             with red_zones: something wrote outside the block. It was given back all the same
//   CUDA_ERROR           with red_zones or poison_on_free: the runtime refused; the block stays handed out
//   FAILED_PRECONDITION  as gcap_scratch_alloc; or the block is kept by a reservation that keeps the open one. It stays
//                        handed out
//   RESOURCE_EXHAUSTED   inside a capture: no host memory to keep another graph's reservation; it stays handed out
GCAP_API gcap_status_t gcap_scratch_free(gcap_scratch_t* scratch, void* ptr) GCAP_NODISCARD;

// Forgets a stream that was synchronised and is about to be destroyed: its blocks lose their tag and are free for all.
// Without this call the stream must outlive the scratch.
//   FAILED_PRECONDITION  work issued on the stream may still be running, or blocks are handed out for it, or being got,
//                        or it has a reservation
GCAP_API gcap_status_t gcap_scratch_forget_stream(gcap_scratch_t* scratch, gcap_stream_t* stream) GCAP_NODISCARD;

// The scratch as an allocator, for callers that know no streams as well as for those that do. It is the scratch's own
// and ends with it. gcap_allocator_alloc_on_stream is gcap_scratch_alloc, and trim, free and statistics are the
// scratch's. gcap_allocator_alloc gives memory for work on any stream, so it gets only memory that was synchronised;
// and what it gave, freed, was used by nobody knows whom: it is given again only after a wait for the device (of host
// memory: the device that is current). The scratch waits by itself instead of growing for such a request, in a trim,
// and when memory is out; not while a scope of gcap is open anywhere, since cudaDeviceSynchronize breaks every capture.
// A capture that somebody began without gcap is not known, so who captures so does not use this. gcap_allocator_reserve
// bypasses the blocks: it gets a region of its own from upstream, of just its size, which counts for the limit, InUse
// and NumReserves, and is given back upstream by the free, when no stream uses it any more. Both are refused with
// FAILED_PRECONDITION while the calling thread captures, and fail its scope; so is the free of what they gave, which
// does not.
GCAP_API gcap_allocator_t* gcap_scratch_allocator(gcap_scratch_t* scratch);

// Gives regions of which no block is in use, nor kept by a graph, nor possibly still read by a stream, back upstream.
// Waits for the device where memory was freed that no stream was named for.
//   CUDA_ERROR  the wait failed; the rest was done
// and what upstream says when it refuses a region: it stays.
GCAP_API gcap_status_t gcap_scratch_trim(gcap_scratch_t* scratch) GCAP_NODISCARD;

// Counters; total_allocated_bytes is what is reserved from upstream, max_in_use_bytes the peak of live blocks. With
// several streams that peak is an upper bound: the sum of what each had most between two calls of this function.
GCAP_API void gcap_scratch_get_stats(gcap_scratch_t* scratch, gcap_allocator_stats_t* out_stats);

// Writes what the scratch holds, for people: what is handed out, held from upstream, free, kept by graphs and cached by
// streams, a line each. As snprintf: cuts it where there is no room, and gives the length of all.
GCAP_API int gcap_scratch_describe(gcap_scratch_t* scratch, char* out_text, size_t text_bytes);

// Checks every invariant of the arena, and the red zones of what is handed out.
//   INTERNAL    with the first that does not hold
//   CUDA_ERROR  red zones could not be read
GCAP_API gcap_status_t gcap_scratch_validate(gcap_scratch_t* scratch) GCAP_NODISCARD;

// Reservation: the memory of one captured graph. While it is open on a stream, that stream's allocations come out of
// free memory of the arena and stay with the reservation when they are freed, to be reused by the same stream's later
// allocations in this capture, never by anything else: a replay writes there again. A block that the stream got before
// and frees while it is open joins too, since work captured before the free may use it; one that an earlier reservation
// keeps is kept by both. Only this stream is diverted:
// in a capture that forks, allocate for the stream of the reservation.
// A graph's output that is read after another graph or another replay ran is not scratch: let the kernel write it
// elsewhere, or hold the block until the graph is released.
// Thread:   open, reopen and close on the thread that captures; release from any thread.
// Capture:  all of it legal while the stream is capturing, but for gcap_scratch_reservation_prepare.
// Lifetime: ends before the scratch.
typedef struct gcap_scratch_reservation gcap_scratch_reservation_t;

// Sees to it that a capture on `stream` will find what its warm-up had: when what `stream` may have free is less than
// the most that it ever had handed out at a time, the scratch grows by the difference, or by the largest block that the
// stream ever had if that is more. What it finds or gets is the stream's from now on. Call it before the capture
// begins, after the warm-up; without it a capture may lack memory, and only the next try succeeds. Of a reservation
// that is open the free memory counts too.
//   INVALID_ARGUMENT     no stream
//   FAILED_PRECONDITION  the calling thread captures
// and what gcap_scratch_alloc answers when it cannot grow.
GCAP_API gcap_status_t gcap_scratch_reservation_prepare(gcap_scratch_t* scratch, gcap_stream_t* stream) GCAP_NODISCARD;

//   ALREADY_EXISTS    the stream has an open reservation
//   INVALID_ARGUMENT  no stream
GCAP_API gcap_status_t gcap_scratch_reservation_open(gcap_scratch_t* scratch, gcap_stream_t* stream,
                                                     gcap_scratch_reservation_t** out_reservation) GCAP_NODISCARD;
// Opens a closed reservation again, for one graph more: the graphs share its memory, so together they need what the
// largest of them needs, and what cannot be joined because it lies apart. All of them replay on its stream alone, so
// that stream order keeps them apart; each overwrites what another one left. Blocks that were still handed out when it
// closed are not shared until they are freed. One release is owed for each open and reopen; the memory goes back with
// the last. What a reopened reservation lacks it takes from where it can grow on; so it is best opened, closed and
// reopened for the first graph too.
//   ALREADY_EXISTS       the stream has an open reservation
//   FAILED_PRECONDITION  the stream was destroyed
GCAP_API gcap_status_t gcap_scratch_reservation_reopen(gcap_scratch_reservation_t* reservation) GCAP_NODISCARD;
// Names its graph in reports, e.g. "graph 3"; copied, cut after 31 bytes. A further name is listed beside the earlier
// ones, as far as there is room, and stays listed until the memory goes back.
GCAP_API void gcap_scratch_reservation_set_label(gcap_scratch_reservation_t* reservation, const char* label);
// Ends the diversion; the memory stays with the reservation. Blocks still handed out may be freed later.
GCAP_API void gcap_scratch_reservation_close(gcap_scratch_reservation_t* reservation);
GCAP_API size_t gcap_scratch_reservation_bytes(const gcap_scratch_reservation_t* reservation);
// Gives one graph up; no replay of it may be running. With the last one the reservation ends: it closes if it is open,
// and the memory goes back to the arena, tagged with the stream. While others are left it stays open if it is.
GCAP_API void gcap_scratch_reservation_release(gcap_scratch_reservation_t* reservation);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_SCRATCH_H_
