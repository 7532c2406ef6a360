// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stream.h: a CUDA stream that knows who owns it, what hangs on it, and which other streams it has waited for.
#ifndef GCAP_STREAM_H_
#define GCAP_STREAM_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Who made the stream, and so who ends it.
typedef enum gcap_stream_ownership {
  GCAP_STREAM_OWNED = 0,  // gcap created it, non-blocking, and destroys it
  GCAP_STREAM_EXTERNAL,   // lent by somebody who also owns its lifetime; nothing may be attached to it
  GCAP_STREAM_USER,       // the application's: gcap owns what it attaches to it, never the stream
} gcap_stream_ownership_t;

typedef enum gcap_stream_flags {
  // Lets gcap_stream_wrap take stream 0 (legacy) or cudaStreamLegacy. Such a stream cannot be captured.
  GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM = 1 << 0,
} gcap_stream_flags_t;

// Stream: a cudaStream_t with its ownership, its timeline and its attachments. From gcap_stream_create or
// gcap_stream_wrap.
// Thread:   one thread at a time issues work and calls the functions that change it; gcap_stream_sync_id,
//           gcap_stream_has_waited and the getters may be called from any thread.
// Capture:  gcap_stream_synchronize, gcap_stream_end_run and gcap_stream_destroy refuse a stream in any capture state
//           but none with FAILED_PRECONDITION and leave the capture alone; everything else is legal. While the calling
//           thread has a scope open, the two waits are refused for every stream, without a driver call, and fail the
//           scope: its graph would lack the wait. gcap_stream_end_run that need not synchronise and has nothing to
//           release does nothing, and so refuses nothing.
// Lifetime: outlives the graphs captured on it and the scratch tagged with it. A wrapped stream outlives its wrapper.
// A function that returns a status answers a NULL argument with INVALID_ARGUMENT and the argument's name, but for a
// stream to destroy and a `user` pointer. The getters and the timeline's questions must not be given NULL.
typedef struct gcap_stream gcap_stream_t;

// Creates a non-blocking stream on `device_id`. The calling thread's current device is unchanged.
//   INVALID_ARGUMENT    no such device
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the runtime refused
GCAP_API gcap_status_t gcap_stream_create(int device_id, gcap_stream_t** out_stream) GCAP_NODISCARD;

// Wraps a stream made elsewhere, on `device_id`. `ownership` is GCAP_STREAM_EXTERNAL or GCAP_STREAM_USER; `flags` is a
// set of gcap_stream_flags_t.
//   INVALID_ARGUMENT    GCAP_STREAM_OWNED, an unknown flag, no such device, the default stream without its flag, or a
//                       stream of another device (which a stream that is capturing cannot be asked)
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the runtime refused
GCAP_API gcap_status_t gcap_stream_wrap(cudaStream_t handle, gcap_stream_ownership_t ownership, unsigned flags,
                                        int device_id, gcap_stream_t** out_stream) GCAP_NODISCARD;

// Waits for the stream's work, runs the deferred releases, destroys the attachments in reverse order, then an OWNED
// stream. NULL is fine. When the stream cannot be drained the wrapper and everything on it are kept for ever
// (quarantined), so that memory tagged with the stream is never handed out again, and the status says so. A quarantined
// stream is whole: gcap_stream_from_handle finds it, for the driver never gets the handle value of an OWNED one back to
// give to another; its graphs are not refused; and it may be destroyed again.
//   FAILED_PRECONDITION  the stream is capturing, or it has attachments or deferred releases and the calling thread is
//                        capturing; nothing was destroyed
//   CUDA_ERROR           the stream could not be drained or destroyed
GCAP_API gcap_status_t gcap_stream_destroy(gcap_stream_t* stream) GCAP_NODISCARD;

// The wrapper of a raw stream, for code that is given only the handle: its timeline, its device, the tag of its memory.
// NULL when there is none, and for the handles that mean another stream on each device or thread: 0, cudaStreamLegacy
// and cudaStreamPerThread. Of several wrappers of one stream it is the newest. When a user's stream was destroyed
// before its wrapper and its handle value is another stream's by now, the old wrapper is found until that stream has
// one of its own, and never again. From any thread; no lock and no driver call.
// Lifetime: the wrapper may go as soon as its owner destroys it; using it is up to whoever knows that this is not now.
GCAP_API gcap_stream_t* gcap_stream_from_handle(cudaStream_t handle);

GCAP_API cudaStream_t gcap_stream_handle(const gcap_stream_t* stream);
GCAP_API int gcap_stream_device(const gcap_stream_t* stream);
GCAP_API gcap_stream_ownership_t gcap_stream_ownership(const gcap_stream_t* stream);
// False for the default stream, which the runtime refuses to capture.
GCAP_API bool gcap_stream_can_capture(const gcap_stream_t* stream);

// Blocks until all work issued so far is done, then runs the deferred releases.
//   FAILED_PRECONDITION  the stream is capturing (or its capture was invalidated and not ended yet), or the calling
//                        thread is, which fails its scope
//   CUDA_ERROR           the runtime refused, or work failed; what was not released stays for the next time
GCAP_API gcap_status_t gcap_stream_synchronize(gcap_stream_t* stream) GCAP_NODISCARD;

// Housekeeping at the end of a run. With `synchronize`, as gcap_stream_synchronize. Without, releases what the stream
// has already passed, and asks the driver only when something is waiting to be released.
//   FAILED_PRECONDITION  as gcap_stream_synchronize; without `synchronize` only when something is waiting, and a scope
//   of
//                        the calling thread goes on
//   CUDA_ERROR           as gcap_stream_synchronize
GCAP_API gcap_status_t gcap_stream_end_run(gcap_stream_t* stream, bool synchronize) GCAP_NODISCARD;

// --- Timeline -------------------------------------------------------------------------------------------------------
// Every stream counts the points that others can know of: its sync id is the number of notifications recorded and
// synchronisations done so far. Work issued at sync id n is before point n + 1. A wait copies the producer's knowledge
// to the consumer, so it is transitive. The rule is ONNX Runtime's for arena chunks (SyncStream_GetSyncId and
// GetSyncIdForLastWaitOnSyncStream in its EP C API). Work that is captured is the graph's, not given to the stream, so
// none of this speaks of it; a replay is work like any other.

// The stream's current sync id. Starts at 0.
GCAP_API uint64_t gcap_stream_sync_id(const gcap_stream_t* stream);

// True when everything `producer` was given while its sync id was `sync_id` comes before whatever `consumer` is given
// next: same stream, also by another wrapper, or the consumer has waited, directly or through others, for a later
// notification, or it has finished. No lock and no driver call.
GCAP_API bool gcap_stream_has_waited(const gcap_stream_t* consumer, const gcap_stream_t* producer, uint64_t sync_id);

// True when everything the stream was given while its sync id was `sync_id` is known to be finished on the host: the
// host has since waited for the stream, or for another that had waited for it.
GCAP_API bool gcap_stream_has_finished(const gcap_stream_t* stream, uint64_t sync_id);

// Notification: a point in a stream's work for others to wait for: an event without timing, on the stream's device.
// Thread:   one thread at a time.
// Capture:  recording and waiting on device are legal and become graph edges; they order nodes, not what the streams
//           are given next, so gcap_stream_has_waited learns nothing of them. Waiting on the host is not legal.
// Lifetime: the stream that it was recorded on outlives it.
typedef struct gcap_notification gcap_notification_t;

// A notification of `producer`, not recorded yet.
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the runtime refused
GCAP_API gcap_status_t gcap_notification_create(gcap_stream_t* producer,
                                                gcap_notification_t** out_notification) GCAP_NODISCARD;
GCAP_API void gcap_notification_destroy(gcap_notification_t* notification);  // NULL is fine
// Records the producer's work so far, and raises its sync id by one. May be recorded again.
//   CUDA_ERROR  the runtime refused; the notification stays as it was
GCAP_API gcap_status_t gcap_notification_record(gcap_notification_t* notification) GCAP_NODISCARD;
// Orders the consumer's next work after the recorded point.
//   FAILED_PRECONDITION  never recorded; or recorded outside the capture that the consumer is in, which fails the scope
//                        that the calling thread has open: wait before it begins
//   CUDA_ERROR           the runtime refused
GCAP_API gcap_status_t gcap_notification_wait(gcap_notification_t* notification,
                                              gcap_stream_t* consumer) GCAP_NODISCARD;
// Blocks the calling thread until the recorded point is reached.
//   FAILED_PRECONDITION  never recorded, or recorded inside a capture; or the calling thread is capturing, which fails
//                        its scope
//   CUDA_ERROR           the runtime refused, or work failed
GCAP_API gcap_status_t gcap_notification_wait_on_host(gcap_notification_t* notification) GCAP_NODISCARD;

// --- Attachments ----------------------------------------------------------------------------------------------------
// One object a key and stream, such as a library handle: made on first use with the stream's device current, ended with
// the stream.

// Attachment key: describes a kind of attachment. Its address is its identity, so keep it in a static variable.
typedef struct gcap_attachment_key {
  const char* name;  // for messages: "cudnnHandle_t"
  gcap_status_t (*create)(gcap_stream_t* stream, void** out_object);
  void (*destroy)(void* object);
} gcap_attachment_key_t;

// Gives the stream's object for `key`, made now if there is none.
//   FAILED_PRECONDITION  there is none and the stream is capturing, or the calling thread is, which fails its scope:
//                        make it in a warm-up run
//   INVALID_ARGUMENT     the stream is EXTERNAL, or the key lacks a function
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the runtime refused; and whatever the key's create answers
GCAP_API gcap_status_t gcap_stream_attachment(gcap_stream_t* stream, const gcap_attachment_key_t* key,
                                              void** out_object) GCAP_NODISCARD;

// --- Deferred releases ----------------------------------------------------------------------------------------------

// Calls `release(user)` once the stream has passed the work issued so far: at the next synchronise, end_run or destroy
// that finds it passed. For host staging buffers that an asynchronous copy still reads. While the calling thread has a
// scope open and the stream takes part in its capture, the release is the graph's instead (gcap_capture_retain): a
// replay reads the buffer again. `release` may issue work to the stream, and defer again.
//   FAILED_PRECONDITION  the stream is captured by somebody else; `release` was not called and stays the caller's duty
//   RESOURCE_EXHAUSTED   no memory; the same
//   CUDA_ERROR           the point could not be recorded; the same
GCAP_API gcap_status_t gcap_stream_defer(gcap_stream_t* stream, void (*release)(void* user), void* user) GCAP_NODISCARD;

// --- Pool -----------------------------------------------------------------------------------------------------------

// Stream pool: streams of one device that are used again: a thread gets its own back, most recent first, so a graph
// replays on the stream that captured it. From gcap_stream_pool_create.
// Thread:   thread-safe. Destroy it when no other thread is inside a call of it; others may exit then.
// Capture:  acquire is legal while an idle stream is there; release refuses a stream that captures, and destroy a
//           capturing thread.
// Lifetime: outlives the use of its streams, which keep their attachments, their deferred releases and their timeline
//           in the pool, and are not drained there. gcap_stream_destroy refuses them.
typedef struct gcap_stream_pool gcap_stream_pool_t;

// Makes no stream yet, so that a device that is not there is found by the first acquire.
//   INVALID_ARGUMENT    out_pool is NULL
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_stream_pool_create(int device_id, gcap_stream_pool_t** out_pool) GCAP_NODISCARD;

// Destroys the streams as gcap_stream_destroy does: waits for each. NULL is fine.
//   FAILED_PRECONDITION  streams are out, one is capturing, or the calling thread is; nothing was destroyed
//   CUDA_ERROR           a stream could not be drained or destroyed; the pool is gone all the same
GCAP_API gcap_status_t gcap_stream_pool_destroy(gcap_stream_pool_t* pool) GCAP_NODISCARD;

// Gives a stream for the calling thread: of those that it released last, or else one of a thread that is gone, or else
// a new one. Work that was issued on it before comes before what is issued now. On a thread that gets its own back
// there is no lock and no driver call.
//   INVALID_ARGUMENT     NULL, or no such device
//   FAILED_PRECONDITION  a stream would have to be made, and the thread is capturing
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the runtime refused
GCAP_API gcap_status_t gcap_stream_pool_acquire(gcap_stream_pool_t* pool, gcap_stream_t** out_stream) GCAP_NODISCARD;

// Gives it back, from any thread, to the thread that acquired it; when that is gone, to all. That it captures is
// noticed when the calling thread captures or did not acquire it: else nobody is asked.
//   INVALID_ARGUMENT     NULL, or not a stream of this pool
//   FAILED_PRECONDITION  the stream is capturing, or was released already; nothing changed
//   CUDA_ERROR           the runtime would not tell whether it captures; it is back all the same
GCAP_API gcap_status_t gcap_stream_pool_release(gcap_stream_pool_t* pool, gcap_stream_t* stream) GCAP_NODISCARD;

// Streams that the pool has made, and how many of them are out. Not for NULL.
GCAP_API size_t gcap_stream_pool_count(gcap_stream_pool_t* pool);
GCAP_API size_t gcap_stream_pool_count_out(gcap_stream_pool_t* pool);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_STREAM_H_
