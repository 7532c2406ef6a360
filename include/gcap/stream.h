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

// Who made a stream, and so who ends it.
typedef enum gcap_stream_ownership {
  GCAP_STREAM_OWNED = 0,  // gcap created it, non-blocking, and destroys it
  GCAP_STREAM_EXTERNAL,   // lent; the lender decides when the stream ends, so nothing may be attached to the stream
  GCAP_STREAM_USER,       // the application's; gcap owns the attachments, never the stream
} gcap_stream_ownership_t;

typedef enum gcap_stream_flags {
  // Lets gcap_stream_wrap accept stream 0 (legacy) or cudaStreamLegacy. Such a stream cannot be captured.
  GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM = 1 << 0,
} gcap_stream_flags_t;

// Stream: a cudaStream_t with its ownership, its timeline and its attachments. From gcap_stream_create or
// gcap_stream_wrap.
// Thread:   one thread at a time issues work and calls the functions that change the stream; the getters may be called
//           from any thread.
// Capture:  gcap_stream_synchronize, gcap_stream_end_run and gcap_stream_destroy return FAILED_PRECONDITION while the
//           stream is capturing (even if the capture is already invalidated) and do not disturb the capture. All other
//           functions are legal. While the calling thread has a scope open, gcap_stream_synchronize and
//           gcap_stream_end_run with `synchronize` are refused for every stream, without a driver call, and fail the
//           scope: its graph would lack the wait. gcap_stream_end_run(stream, false) with nothing to release is a
//           no-op, so it always succeeds.
// Lifetime: until gcap_stream_destroy. The stream outlives the captures and the runs that are open on it. Graphs that
//           were captured on the stream may outlive it, and are then refused (graph.h). So may scratch that the stream
//           used: forget the stream first (gcap_scratch_forget_stream), or scratch.h says what becomes of the memory.
//           A wrapped cudaStream_t outlives its wrapper.
// NULL arguments return INVALID_ARGUMENT with the argument's name, except a stream to destroy and a `user` pointer. The
// getters must not be passed NULL.
typedef struct gcap_stream gcap_stream_t;

// Creates a non-blocking stream on `device_id`. The calling thread's current device stays as it is.
//   INVALID_ARGUMENT    no such device
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the runtime refused
GCAP_API gcap_status_t gcap_stream_create(int device_id, gcap_stream_t** out_stream) GCAP_NODISCARD;

// Wraps a stream made elsewhere, on `device_id`. `ownership` is GCAP_STREAM_EXTERNAL or GCAP_STREAM_USER; `flags` is a
// set of gcap_stream_flags_t.
//   INVALID_ARGUMENT    GCAP_STREAM_OWNED, an unknown flag, no such device, the default stream without its flag, or a
//                       stream of another device (not checked while the stream is capturing, since CUDA refuses the
//                       query)
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the runtime refused
GCAP_API gcap_status_t gcap_stream_wrap(cudaStream_t handle, gcap_stream_ownership_t ownership, unsigned flags,
                                        int device_id, gcap_stream_t** out_stream) GCAP_NODISCARD;

// Waits for the stream's work, runs the deferred releases and waits for the work that they issue, destroys the
// attachments in reverse order and waits for the work that their ends issue, then destroys an OWNED stream. NULL is
// fine. A stream that cannot be drained stays whole, so that memory tagged with the stream is never reused: the stream
// can still be looked up, its graphs still replay, and destroy may be retried.
//   FAILED_PRECONDITION  the stream is capturing; or the stream has attachments or deferred releases and the calling
//                        thread is capturing; or the stream is one that a runtime lends (gcap_runtime_fork); or a
//                        deferred release of the stream calls. Nothing was ended
//   CUDA_ERROR           the stream could not be drained, or the runtime does not say whether the stream is capturing.
//                        Nothing was ended but deferred releases, each of which runs once, and attachments, which
//                        the next use makes again
//   LEAKED               the stream is gone; the driver kept its handle, or the event of a deferred release, or an
//                        attachment was destroyed without the stream's device being current
GCAP_API gcap_status_t gcap_stream_destroy(gcap_stream_t* stream) GCAP_NODISCARD;

// Returns the wrapper of a raw stream, for code that has only the handle. Returns NULL if the stream has no wrapper,
// and for the handles that mean a different stream on each device or thread: 0, cudaStreamLegacy and
// cudaStreamPerThread. If one stream has several wrappers, returns the newest. If a wrapped stream was destroyed before
// its wrapper and another stream now has its handle value, the old wrapper is found until the new stream gets a
// wrapper, and never afterwards. Callable from any thread; no lock and no driver call.
// Lifetime: the owner may destroy the wrapper at any time. The caller must know that this does not happen while it uses
//           the wrapper.
GCAP_API gcap_stream_t* gcap_stream_from_handle(cudaStream_t handle);

GCAP_API cudaStream_t gcap_stream_handle(const gcap_stream_t* stream);
GCAP_API int gcap_stream_device(const gcap_stream_t* stream);

// Blocks until all work issued so far is done, then runs the deferred releases.
//   FAILED_PRECONDITION  the stream is capturing (or its capture was invalidated and not ended yet); or the calling
//                        thread is capturing, which fails its scope
//   CUDA_ERROR           the runtime refused, or work failed; releases that did not run stay deferred
GCAP_API gcap_status_t gcap_stream_synchronize(gcap_stream_t* stream) GCAP_NODISCARD;

// Housekeeping at the end of a run. With `synchronize`, as gcap_stream_synchronize. Without `synchronize`, runs the
// deferred releases whose point the stream has passed; queries the driver only if there are deferred releases.
//   FAILED_PRECONDITION  as gcap_stream_synchronize; without `synchronize` only if there are deferred releases, and a
//                        scope of the calling thread does not fail
//   CUDA_ERROR           as gcap_stream_synchronize
GCAP_API gcap_status_t gcap_stream_end_run(gcap_stream_t* stream, bool synchronize) GCAP_NODISCARD;

// --- Timeline -------------------------------------------------------------------------------------------------------
// A stream knows which other streams it has waited for, and scratch asks: a block that one stream freed goes to another
// only after such a wait. A wait copies the producer's knowledge to the consumer, so waits are transitive. Captured
// work belongs to the graph and is not on the timeline; a replay is work like any other.

// Notification: a point in a stream's work that others wait for: an event without timing, on the stream's device.
// Thread:   one thread at a time.
// Capture:  recording a notification, and waiting for it on a stream, are legal and become graph edges. An edge orders
//           nodes, not the streams' next work, so a stream has not waited by an edge. Waiting on the host is not legal.
// Lifetime: the producer's stream outlives the notification.
typedef struct gcap_notification gcap_notification_t;

// Creates a notification of `producer`, not recorded yet.
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the runtime refused
GCAP_API gcap_status_t gcap_notification_create(gcap_stream_t* producer,
                                                gcap_notification_t** out_notification) GCAP_NODISCARD;
GCAP_API void gcap_notification_destroy(gcap_notification_t* notification);  // NULL is fine
// Records the producer's work so far. A notification may be recorded again.
//   CUDA_ERROR  the runtime refused; the notification stays as it was
GCAP_API gcap_status_t gcap_notification_record(gcap_notification_t* notification) GCAP_NODISCARD;
// Orders the consumer's next work after the recorded point.
//   FAILED_PRECONDITION  never recorded; or the consumer is capturing and the notification was recorded outside that
//                        capture, which fails the scope that the calling thread has open: wait before the scope begins
//   CUDA_ERROR           the runtime refused
GCAP_API gcap_status_t gcap_notification_wait(gcap_notification_t* notification,
                                              gcap_stream_t* consumer) GCAP_NODISCARD;
// Blocks the calling thread until the recorded point is reached.
//   FAILED_PRECONDITION  never recorded; or recorded inside a capture; or the calling thread is capturing, which fails
//                        its scope
//   CUDA_ERROR           the runtime refused, or work failed
GCAP_API gcap_status_t gcap_notification_wait_on_host(gcap_notification_t* notification) GCAP_NODISCARD;

// --- Attachments ----------------------------------------------------------------------------------------------------
// One object for each key and stream, such as a library handle. The object is made on first use, with the stream's
// device current, and destroyed with the stream.

// Attachment key: describes a kind of attachment. The key's address is its identity, so keep keys in static variables.
typedef struct gcap_attachment_key {
  const char* name;  // for messages: "cudnnHandle_t"
  gcap_status_t (*create)(gcap_stream_t* stream, void** out_object);
  void (*destroy)(void* object);
} gcap_attachment_key_t;

// Returns the stream's object for `key`, and makes the object if the stream has none.
//   FAILED_PRECONDITION  there is no object yet, and the stream is capturing, or the calling thread is, which fails its
//                        scope: make the object in a warm-up run
//   INVALID_ARGUMENT     the stream is EXTERNAL, or the key lacks a function
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the runtime refused
// Also what the key's create answers.
GCAP_API gcap_status_t gcap_stream_attachment(gcap_stream_t* stream, const gcap_attachment_key_t* key,
                                              void** out_object) GCAP_NODISCARD;

// --- Deferred releases ----------------------------------------------------------------------------------------------

// Calls `release(user)` once the stream has passed the work issued so far: in the first gcap_stream_synchronize,
// gcap_stream_end_run or gcap_stream_destroy that finds the work passed. For host staging buffers that an asynchronous
// copy still reads. If the calling thread has a scope open and the stream takes part in its capture, the release is
// retained for the graph instead (gcap_capture_retain), since a replay reads the buffer again: such a release runs when
// the graph ends, on the thread that ends the graph, and the stream may be gone by then. Every other `release` may
// issue work to the stream, and may defer again. gcap_stream_destroy runs what releases deferred too, in at most 16
// rounds; in the last round a release that defers is refused. On failure `release` was not called, and the caller still
// has to.
//   FAILED_PRECONDITION  the stream is being captured, but not by a scope of the calling thread; or the stream is being
//                        destroyed, and releases have deferred others 16 times, or its attachments are being destroyed
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the point could not be recorded
GCAP_API gcap_status_t gcap_stream_defer(gcap_stream_t* stream, void (*release)(void* user), void* user) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_STREAM_H_
