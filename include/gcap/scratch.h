// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// scratch.h: short-lived device memory that knows which stream used it, and which captured graph must keep it.
#ifndef GCAP_SCRATCH_H_
#define GCAP_SCRATCH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gcap/allocator.h"
#include "gcap/status.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// Options; gcap_scratch_options_init gives the defaults of ONNX Runtime's CUDA arena. Growth: until 4 MiB are held, a
// region doubles the arena (for requests up to 1 MiB). After that a region has 20 MiB or an eighth of what is held,
// whichever is more. A region is never smaller than the request.
typedef struct gcap_scratch_options {
  size_t struct_size;                 // set by gcap_scratch_options_init
  size_t initial_chunk_bytes;         // least size of the first region; default 1 MiB
  size_t initial_growth_chunk_bytes;  // least size of the first region after a trim gave one back; default 2 MiB
  size_t max_extend_bytes;            // no later region is larger unless a request is; default 1 GiB
  // A free block is handed out without splitting if the excess is at most this and less than one eighth of the request;
  // default 128 MiB. 0: every block is split.
  size_t max_dead_bytes_per_chunk;
  size_t memory_limit_bytes;  // most held from upstream; 0, the default: no limit
  bool extend_as_requested;   // regions are exactly as large as the request; default false
  // Debugging. Each of these options makes every call take the slow path. Red zones and poison are written by
  // cudaMemsetAsync on the block's stream, so upstream must give device memory or pinned memory. In a capture the
  // writes become nodes of the graph, and each replay repeats them.
  // Red zones: 256 bytes of 0xA5 before each block and after it, from the first byte that was not requested. A free
  // reads them, and waits for the block's stream to do so; gcap_scratch_validate reads them too. If a capture frees the
  // block, the graph reads them, and gcap_scratch_validate reports what the last replay found. Default false.
  bool red_zones;
  // Fills each block with 0xFF when the block is freed: NaN in every floating-point format. Default false.
  bool poison_on_free;
  // Records this many of the last calls, so that a message about an address says who allocated and freed that address,
  // and when. Default 0; 1,000 is plenty, 2^20 is the maximum.
  size_t recorded_operations;
  // Optional. Called for each allocation, free and trim of this scratch, on the requesting thread with no lock held, so
  // on several threads at once: sort events by `sequence` to put them into order. No number is missing. The callback
  // runs after the request is done, so it may call gcap. It also runs on capturing threads.
  void (*on_event)(void* user, const gcap_allocator_event_t* event);
  void* user;
  // No cache of ours, for an upstream that caches itself. Each allocation is one request to upstream of its size,
  // rounded up to 256 bytes (and with red_zones 512 bytes more). Freed memory goes back upstream as a whole, in the
  // first call after its stream is known to have passed it, or in a trim. Until then it may
  // serve another request of its size, so that a run that is not waited for holds no more than an arena would. A
  // capture asks upstream for nothing: it uses what gcap_scratch_reservation_prepare got for it and what earlier
  // captures lacked, and the graph keeps that until the graph is released. Every call takes the slow path. Default
  // false.
  bool bypass;
} gcap_scratch_options_t;

// Sets the size and the defaults.
static inline void gcap_scratch_options_init(gcap_scratch_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = sizeof(*options);
  options->initial_chunk_bytes = (size_t)1 << 20;
  options->initial_growth_chunk_bytes = (size_t)2 << 20;
  options->max_extend_bytes = (size_t)1 << 30;
  options->max_dead_bytes_per_chunk = (size_t)128 << 20;
}

// Scratch: an arena over an allocator of device memory. From gcap_scratch_create.
// Streams:  of the device of the upstream allocator; for host memory, of any device.
// What for: memory of one run, and memory of one sequence, such as its KV cache. The latter is allocated on the stream
//           outside of runs, or kept (gcap_scratch_keep), and freed when the sequence ends: it is as fast, and no
//           capture prepares for it. If the memory moves between runs, it is a buffer of the run (graph_buffers.h).
// Thread:   thread-safe. One thread at a time uses a stream; any thread may free. Allocating and freeing memory that
//           the stream itself used last needs no driver call and no host memory, and no lock on the thread that uses
//           the stream: this is the steady state. Whatever needs more, such as a trim or another stream's memory, stops
//           all threads for some microseconds.
// Callbacks: upstream's members, on_event and the log sink run with no lock of the scratch held, and may call every
//           function of the scratch. A thread is not cancelled (pthread_cancel) in upstream, nor while it waits for
//           something in a call of the scratch, but when the call is over.
// Capture:  a stream that the calling thread's capture scope captures gets a reservation at its first allocation or
//           free, unless one is open. While a stream has an open reservation, its allocations never reach the upstream
//           allocator. Other streams' allocations follow the upstream allocator's rules.
// Lifetime: the upstream allocator outlives the scratch. So does every stream that was passed to the scratch, unless
//           the stream was forgotten. If a stream is destroyed anyway, its free blocks become free for all streams. Its
//           live blocks, and those that its graphs keep, are then treated as if gcap_allocator_alloc of
//           gcap_scratch_allocator had given them. Graphs that use reservations end before the scratch.
typedef struct gcap_scratch gcap_scratch_t;

// Creates an empty arena. `options` NULL: the defaults. `upstream` stays the caller's.
//   INVALID_ARGUMENT    no upstream, or one that aligns to less than 256 bytes; initial_chunk_bytes,
//                       initial_growth_chunk_bytes or max_extend_bytes is 0, or one of the first two overflows when
//                       rounded up
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_scratch_create(gcap_allocator_t* upstream, const gcap_scratch_options_t* options,
                                           gcap_scratch_t** out_scratch) GCAP_NODISCARD;

// Gives all memory back upstream and ends the scratch. NULL is fine. The caller has synchronized the streams that used
// the memory.
//   FAILED_PRECONDITION  a block is live, a reservation exists, or another call of the scratch is not over, such as the
//                        one that called the callback that destroys the scratch; nothing was given back. The message
//                        names the live blocks: address, size, stream and node (gcap_scratch_set_node), and the call
//                        that allocated the block, with recorded_operations. Also: upstream's free used the scratch
//                        again, and what it was given is still held
//   LIBRARY_ERROR        upstream's free answered LEAKED
// Also what upstream answers when it refuses a region, which then stays. After each of these failures the scratch is
// whole: it may be used, and destroyed again.
GCAP_API gcap_status_t gcap_scratch_destroy(gcap_scratch_t* scratch) GCAP_NODISCARD;

// Allocates `bytes` bytes, 256-byte aligned, for work on `stream`. 0 bytes give NULL and success. A block that another
// stream freed is reused only when `stream` has waited for that stream's use of the block, directly or by way of
// others. If another thread is asking upstream for memory already, a call that lacks memory waits for that, for a
// second at most, and looks there first, so that threads that lack memory at once do not each get a region. A thread
// that captures does not wait, nor does a call from one of upstream's members. Before an allocation fails, these steps
// are taken in turn, each followed by another attempt: idle regions go back upstream, upstream trims its cache, the
// call waits for `stream`, and the call waits for the device if memory was freed that no stream was named for. A
// capturing thread takes none of these steps, and none of them breaks another thread's capture.
//
// If the calling thread's capture scope captures `stream` (as the origin, or forked) and no reservation is open on
// `stream`, the call opens one. The scope closes this reservation when the scope ends, and the graph keeps it, counted
// in gcap_graph_info_t.bytes, until the graph is released; a failed scope gives it up at once. The capture needs as
// much free memory as its warm-up used: see gcap_scratch_reservation_prepare.
//   RESOURCE_EXHAUSTED   memory_limit_bytes or upstream's memory is used up; the message has the breakdown of
//                        gcap_scratch_describe, some 2 KB, so this is no answer for a hot path. Inside a reservation:
//                        the message has the bytes that are lacking. The arena grows by these bytes at the next
//                        allocation outside a capture, so that the next capture succeeds. Also: no host memory
//   INVALID_ARGUMENT     a size that overflows; no stream, or one of another device than upstream's
//   FAILED_PRECONDITION  the calling thread is capturing, and `stream`, which has no open reservation, is in another
//                        capture than the thread's scope, such as one that was begun without gcap: the graph would use
//                        memory that it does not own. The scope fails
//   CUDA_ERROR           with red_zones: the runtime refused; inside a capture: the runtime does not say in which
//                        capture `stream` is
// Also what upstream answers; LIBRARY_ERROR if upstream gave a misaligned address.
GCAP_API gcap_status_t gcap_scratch_alloc(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream,
                                          void** out_ptr) GCAP_NODISCARD;

// Frees a block. The block is tagged with the stream that it was allocated for, at what the stream was given so far.
// Inside a capture the block joins the stream's open reservation; one is opened as by gcap_scratch_alloc. NULL is fine.
//   INVALID_ARGUMENT     not allocated here, an address inside a block, or freed already
//   INTERNAL             with red_zones: something wrote outside the block. The block was freed
//   CUDA_ERROR           as gcap_scratch_alloc; with poison_on_free: the runtime refused. The block stays live
//   FAILED_PRECONDITION  as gcap_scratch_alloc, but the scope does not fail; or the reservation that keeps the block
//                        also keeps the open reservation. The block stays live
//   RESOURCE_EXHAUSTED   inside a capture: no host memory to open a reservation, or to keep that of another graph; the
//                        block stays live
GCAP_API gcap_status_t gcap_scratch_free(gcap_scratch_t* scratch, void* ptr) GCAP_NODISCARD;

// Runs. What the work of a run of a runtime (runtime.h) allocates by gcap_scratch_alloc, on the streams of the run,
// belongs to the run. At the end of the run, what was neither freed nor kept is freed as by gcap_scratch_free: in
// stream order, inside a capture into the stream's reservation, with red zones and poison. For each node that left
// blocks, gcap_log gets one warning with the node's name (or "no node"), the number of blocks and their bytes, unless
// the run failed. A kernel that returns early then leaks nothing.

// Takes a live block out of its run, so that the block stays live at the run's end. From any thread; a block that
// belongs to no run is fine, and so is NULL.
//   INVALID_ARGUMENT  not allocated here, an address inside a block, or freed already
GCAP_API gcap_status_t gcap_scratch_keep(gcap_scratch_t* scratch, void* ptr) GCAP_NODISCARD;

// Names the node for which `stream` allocates from now on, until the next call or the run's end: messages about blocks
// that are handed out name their node. NULL: no node. Without an open run the call does nothing. `name` is not copied:
// it stays valid until the run's end, also when another name follows.
GCAP_API void gcap_scratch_set_node(gcap_scratch_t* scratch, gcap_stream_t* stream, const char* name);

// Forgets a stream that was synchronized and is about to be destroyed: the stream's blocks lose their tag and become
// free for all streams. Without this call the stream must outlive the scratch.
//   FAILED_PRECONDITION  work issued on the stream may still be running, a block of the stream is live or being
//                        allocated, or the stream has a reservation
GCAP_API gcap_status_t gcap_scratch_forget_stream(gcap_scratch_t* scratch, gcap_stream_t* stream) GCAP_NODISCARD;

// The scratch as an allocator, for callers that have a stream and for callers that have none. The scratch owns this
// allocator. gcap_allocator_alloc_on_stream is gcap_scratch_alloc; trim, free and statistics are the scratch's.
//
// gcap_allocator_alloc gives memory for work on any stream, so it uses only synchronized memory. Once freed, such
// memory may still be in use on any stream, so it is reused only after a device synchronize (for host memory: of the
// current device). The scratch synchronizes the device when that helps such a request, instead of growing; in a trim;
// and before an allocation fails. It does not while any thread has a capture scope of gcap open, since
// cudaDeviceSynchronize breaks every capture. gcap does not know of a capture that was begun without gcap: do not
// combine the two.
//
// gcap_allocator_reserve gets a region of exactly the requested size from upstream. The region counts for the limit,
// InUse and NumReserves. The free gives it back upstream; no stream may be using it then.
//
// While the calling thread captures, both are refused with FAILED_PRECONDITION and fail its scope. Freeing their memory
// is refused too, but does not fail the scope.
GCAP_API gcap_allocator_t* gcap_scratch_allocator(gcap_scratch_t* scratch);

// Gives idle regions back upstream: those of which no block is live, kept by a graph, prepared or rehearsed for a
// capture that has not come (gcap_scratch_reservation_prepare), or possibly still in use on a stream. Waits for the
// device if memory was freed that no stream was named for.
//   CUDA_ERROR  the wait failed; the rest was done
// Also what upstream answers when it refuses a region, which then stays.
GCAP_API gcap_status_t gcap_scratch_trim(gcap_scratch_t* scratch) GCAP_NODISCARD;

// Counters. total_allocated_bytes is what the scratch holds from upstream; max_in_use_bytes is the peak of live blocks.
// With several streams the peak is an upper bound: the sum of each stream's peak between two calls of this function.
static inline void gcap_scratch_get_stats(gcap_scratch_t* scratch, gcap_allocator_stats_t* out_stats) {
  gcap_allocator_get_stats(gcap_scratch_allocator(scratch), out_stats);
}

// Writes what the scratch holds, for people, a line each: bytes live, held from upstream, free, live for named nodes
// (gcap_scratch_set_node), kept by graphs, cached by streams; then the first live blocks one by one, as the message of
// gcap_scratch_destroy does. As snprintf: truncates the text if there is no room, and
// returns the length of the whole text.
GCAP_API int gcap_scratch_describe(gcap_scratch_t* scratch, char* out_text, size_t text_bytes);

// Checks every invariant of the arena, and the red zones of live blocks.
//   INTERNAL    an invariant does not hold; the message names the first one
//   CUDA_ERROR  red zones could not be read
GCAP_API gcap_status_t gcap_scratch_validate(gcap_scratch_t* scratch) GCAP_NODISCARD;

// Reservation: the memory of one captured graph. While a reservation is open on a stream, that stream's allocations are
// taken from the arena's free memory. A freed block stays with the reservation: only later allocations of the same
// stream in this capture reuse it, since a replay writes there again. A block that the stream allocated earlier and
// frees while the reservation is open joins the reservation, since work captured before the free may use the block. If
// an earlier reservation keeps that block, both keep it. Only this stream is diverted. Work in a capture scope needs no
// call of these functions: gcap_scratch_alloc opens a reservation for each stream of the scope. They are for a capture
// that was begun without gcap, and for graphs that share a reservation.
// A graph's output that is read after another graph or another replay ran is not scratch: let the kernel write it
// elsewhere, or hold the block until the graph is released.
// A graph manager rehearses the capture of a run with buffers. What a rehearsal reserved stays reserved for the capture
// that follows, which gets each block at the address that it had in the rehearsal. The memory is free again once the
// stream has had a capture of other work, or a run without a capture, and before an allocation fails.
// Thread:   open, reopen and close on the capturing thread; release from any thread.
// Capture:  all functions but gcap_scratch_reservation_prepare are legal while the stream is capturing.
// Lifetime: ends before the scratch.
typedef struct gcap_scratch_reservation gcap_scratch_reservation_t;

// Makes ready for a capture on `stream` what its warm-up used. Afterwards the stream owns as much free memory as the
// largest of its runs, those of a runtime, had at a time, without what was there before the run or was kept, and a
// stretch for its largest block. Of a stream without runs: as much as it ever had handed out at a time. A runtime
// prepares by itself, for each graph id what the last run of that id used. What the first run of an id keeps is not
// counted; what a later run keeps is, since the captured run keeps as much. Where this memory is in several stretches,
// the stream owns more: the capture may leave the end of each stretch empty, where the next block has no room. So of
// each stretch but one, as much as the largest block does not count. The free memory of an open reservation counts.
// What is wanting is taken from memory that no stream uses, or the arena grows by it: at most by all that is needed.
// Until the stream's next reservation that is allocated from closes, or its run ends, no other stream gets this memory.
// One exception: an allocation of a thread that does not capture gets it rather than fail. Call this function after the
// warm-up, before the capture begins. Without it a capture may lack memory, and only the next capture succeeds. With
// it, a capture may still lack memory if the frees inside it leave gaps, between blocks that stay live, that are too
// small for later blocks.
//   INVALID_ARGUMENT     no stream, or one of another device than upstream's
//   FAILED_PRECONDITION  the calling thread is capturing
// Also what gcap_scratch_alloc answers when the arena cannot grow; the capture may then still succeed, and what the
// stream owns is kept for the capture.
GCAP_API gcap_status_t gcap_scratch_reservation_prepare(gcap_scratch_t* scratch, gcap_stream_t* stream) GCAP_NODISCARD;

// Opens a new reservation on `stream`.
//   ALREADY_EXISTS      the stream has an open reservation, perhaps that of its capture scope
//   INVALID_ARGUMENT    no stream, or one of another device than upstream's
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_scratch_reservation_open(gcap_scratch_t* scratch, gcap_stream_t* stream,
                                                     gcap_scratch_reservation_t** out_reservation) GCAP_NODISCARD;
// Opens a closed reservation again, for one more graph. The graphs share the reservation's memory: together they need
// what the largest of them needs, plus what is lost to fragmentation. All of them must replay on the reservation's
// stream alone, so that stream order separates them; each overwrites what another one left. Blocks that were live when
// the reservation closed are shared only once they are freed. Each open and each reopen needs one release; the memory
// returns with the last. A reopened reservation takes further memory where it can be extended in place, so open, close
// and reopen the reservation for the first graph too.
//   ALREADY_EXISTS       the stream has an open reservation
//   FAILED_PRECONDITION  the stream was destroyed
GCAP_API gcap_status_t gcap_scratch_reservation_reopen(gcap_scratch_reservation_t* reservation) GCAP_NODISCARD;
// Ends the diversion; the memory stays with the reservation. Live blocks may be freed later.
GCAP_API void gcap_scratch_reservation_close(gcap_scratch_reservation_t* reservation);
// Gives up one graph; no replay of that graph may be running. With the last graph the reservation ends: it closes if it
// is open, and its memory returns to the arena, tagged with the stream. While other graphs remain, an open reservation
// stays open. NULL is fine.
GCAP_API void gcap_scratch_reservation_release(gcap_scratch_reservation_t* reservation);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_SCRATCH_H_
