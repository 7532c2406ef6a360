// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// inner.h: what other modules use of the stream module, and users do not see: who made a stream, the questions of a
// timeline, and the pool.
#ifndef GCAP_LIB_STREAM_INNER_H_
#define GCAP_LIB_STREAM_INNER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// Who made the stream, as gcap_stream_create and gcap_stream_wrap were told.
gcap_stream_ownership_t gcap_stream_ownership(const gcap_stream_t* stream);

// False for the default stream, which the runtime refuses to capture.
bool gcap_stream_can_capture(const gcap_stream_t* stream);

// --- Timeline -------------------------------------------------------------------------------------------------------
// A stream's sync id is the number of notifications recorded on it and synchronizations done so far. Work issued at
// sync id n comes before point n + 1. The rule is ONNX Runtime's for arena chunks (SyncStream_GetSyncId and
// GetSyncIdForLastWaitOnSyncStream in its EP C API). Each of these functions may be called from any thread, and none of
// them with NULL.

// The stream's current sync id, which starts at 0.
uint64_t gcap_stream_sync_id(const gcap_stream_t* stream);

// True if all work issued to `producer` while its sync id was `sync_id` comes before the next work of `consumer`: both
// are the same stream (perhaps by two wrappers), or `consumer` has waited, directly or through other streams, for a
// later notification, or the work has finished. No lock and no driver call.
bool gcap_stream_has_waited(const gcap_stream_t* consumer, const gcap_stream_t* producer, uint64_t sync_id);

// True if the host knows that all work issued to the stream while its sync id was `sync_id` has finished: the host has
// since waited for this stream, or for another stream that had waited for this one.
bool gcap_stream_has_finished(const gcap_stream_t* stream, uint64_t sync_id);

// --- Pool -----------------------------------------------------------------------------------------------------------

// Stream pool: reusable streams of one device. A thread gets its own streams back, most recent first, so a graph
// replays on the stream that captured it. From gcap_stream_pool_create.
// Thread:   thread-safe. Destroy the pool when no other thread is inside one of its functions; other threads may exit
//           meanwhile.
// Capture:  acquire is legal if an idle stream is available; release refuses a capturing stream, and destroy refuses a
//           capturing thread.
// Lifetime: outlives the use of its streams. In the pool a stream keeps its attachments, deferred releases and
//           timeline, and is not drained. gcap_stream_destroy refuses a pool's streams.
typedef struct gcap_stream_pool gcap_stream_pool_t;

// Creates an empty pool. The first acquire makes a stream, and so is the first to notice a wrong device id.
//   INVALID_ARGUMENT    out_pool is NULL
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_stream_pool_create(int device_id, gcap_stream_pool_t** out_pool) GCAP_NODISCARD;

// Destroys the pool and its streams as gcap_stream_destroy does, which waits for each stream. NULL is fine.
//   FAILED_PRECONDITION  a stream is still acquired, a stream is capturing, or the calling thread is capturing; nothing
//                        was destroyed
//   LEAKED               the pool is gone; a stream that could not be drained or destroyed is kept
gcap_status_t gcap_stream_pool_destroy(gcap_stream_pool_t* pool) GCAP_NODISCARD;

// Acquires a stream for the calling thread: the one that the thread released last, else one of an exited thread, else a
// new one. Earlier work on the stream completes first. A thread that gets its own stream back takes no lock and makes
// no driver call.
//   INVALID_ARGUMENT     NULL, or no such device
//   FAILED_PRECONDITION  a new stream is needed, and the thread is capturing
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the runtime refused
gcap_status_t gcap_stream_pool_acquire(gcap_stream_pool_t* pool, gcap_stream_t** out_stream) GCAP_NODISCARD;

// Releases a stream, from any thread, to the thread that acquired it; if that thread has exited, to all threads.
// Whether the stream is capturing is checked only if the calling thread is capturing or did not acquire the stream.
//   INVALID_ARGUMENT     NULL, or not a stream of this pool
//   FAILED_PRECONDITION  the stream is capturing, or was released already; nothing changed
//   LEAKED               the runtime does not say whether the stream is capturing: the stream was released, is given to
//                        nobody more, and ends with the pool
gcap_status_t gcap_stream_pool_release(gcap_stream_pool_t* pool, gcap_stream_t* stream) GCAP_NODISCARD;

typedef struct gcap_stream_pool_stats {
  size_t num_streams;  // that the pool has made
  size_t num_out;      // acquired now
} gcap_stream_pool_stats_t;

// The pool's counters, all of one moment. No argument may be NULL.
void gcap_stream_pool_get_stats(gcap_stream_pool_t* pool, gcap_stream_pool_stats_t* out_stats);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_STREAM_INNER_H_
