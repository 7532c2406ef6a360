// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// capture.h: a stream capture as a transaction: it ends in a graph, or in the state before it began.
#ifndef GCAP_CAPTURE_H_
#define GCAP_CAPTURE_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Which calls of which threads can break the capture (cudaStreamCaptureMode).
typedef enum gcap_capture_mode {
  GCAP_CAPTURE_THREAD_LOCAL = 0,  // unsafe calls of the capturing thread
  GCAP_CAPTURE_GLOBAL,            // unsafe calls of any thread
  GCAP_CAPTURE_RELAXED,           // only calls that are illegal in any capture
} gcap_capture_mode_t;

// What a scope may keep of its calls: more is a mistake, since each takes some 150 bytes.
#define GCAP_CAPTURE_MAX_LEDGER_CALLS 65536u

typedef struct gcap_capture_options {
  size_t struct_size;  // set by gcap_capture_options_init
  gcap_capture_mode_t mode;
  // How many calls the ledger keeps; when it is full the oldest goes. The call that broke the capture is always kept.
  // 0: no ledger, and the capture's state is asked only at its end. Default 64.
  uint32_t ledger_calls;
} gcap_capture_options_t;

// Fills in the defaults. Programs call the init function, which says how large their struct is.
GCAP_API void gcap_capture_options_set_defaults(gcap_capture_options_t* options);
static inline void gcap_capture_options_init(gcap_capture_options_t* options) {
  options->struct_size = sizeof(*options);
  gcap_capture_options_set_defaults(options);
}

// Capture scope: one open capture. From gcap_capture_begin; gone after gcap_capture_end or gcap_capture_abort.
// Thread:   the thread that began it, except gcap_capture_fail, which any thread may call.
// Capture:  every call here is legal while it is open.
// Lifetime: the stream outlives it. A scope whose end was never called is aborted by the next begin on its thread, or
//           when its thread exits.
// Errors:   besides those listed, INVALID_ARGUMENT for NULL where a callback or a place for an output is expected.
typedef struct gcap_capture gcap_capture_t;

// Begins to capture `stream` and marks the thread as capturing. `options` NULL: the defaults. Whatever fails undoes
// what was done before it. Where another thread waits for a whole device, as scratch may (gcap_scratch_allocator), it
// begins after that: the wait would break it.
//   INVALID_ARGUMENT     the legacy default stream, which cannot be captured, or bad options
//   FAILED_PRECONDITION  the stream is capturing already, by somebody else
//   RESOURCE_EXHAUSTED   no host memory for the scope and its ledger
//   CUDA_ERROR           the driver refused
GCAP_API gcap_status_t gcap_capture_begin(cudaStream_t stream, const gcap_capture_options_t* options,
                                          gcap_capture_t** out_capture) GCAP_NODISCARD;

// Retained: what a finished capture asked to keep (see gcap_capture_retain). Whoever owns the graph owns this too.
// Thread:   one thread at a time.
// Capture:  legal.
// Lifetime: independent of the scope.
typedef struct gcap_retained gcap_retained_t;

// Runs the releases in reverse order. NULL is fine.
GCAP_API void gcap_retained_release(gcap_retained_t* retained);

// The bytes that the entries of gcap_capture_retain_bytes hold now. NULL: 0.
GCAP_API size_t gcap_retained_bytes(const gcap_retained_t* retained);

// Ends the capture and gives its graph and what must live as long as the graph's executables; the caller owns both.
// `*out_retained` is NULL when nothing was retained. Whatever the outcome, the scope is gone, the stream is usable, the
// thread's last error is clear, and each close step (see gcap_capture_on_close) has run once.
//   CAPTURE_INVALIDATED  the latch is set, or the driver refused; there is no graph, and the message names the first
//                        failure, the call that broke the capture where the ledger saw it, the rule that it broke and
//                        the remedy. The work of the scope did not run: run it eagerly
//   FAILED_PRECONDITION  called on another thread, which leaves the capture going on; or `capture` is NULL
GCAP_API gcap_status_t gcap_capture_end(gcap_capture_t* capture, cudaGraph_t* out_graph,
                                        gcap_retained_t** out_retained) GCAP_NODISCARD;

// Gives the capture up: as a failed end. On another thread it only sets the latch. NULL is fine.
GCAP_API void gcap_capture_abort(gcap_capture_t* capture);

// Sets the latch: the capture will fail, even if the driver would end it well. The first call wins. `cause` is copied
// and stays the caller's; NULL for either is ignored. Another thread's call returns before the scope's end begins. A
// status made from a CUDA, library or out-of-memory failure on the capturing thread sets the latch by itself; so does a
// failed CUDA call of that thread that nobody looked at, when the scope ends.
GCAP_API void gcap_capture_fail(gcap_capture_t* capture, gcap_status_t cause);

// The scope that the calling thread has open, or NULL.
GCAP_API gcap_capture_t* gcap_capture_current(void);
// True while the calling thread has a scope open. A thread-local read: cheap enough for every kernel.
GCAP_API bool gcap_thread_is_capturing(void);
// Scopes open in this process. A relaxed read: cheap enough for every allocation.
GCAP_API uint32_t gcap_capture_num_open(void);

// NULL gives NULL.
GCAP_API cudaStream_t gcap_capture_stream(const gcap_capture_t* capture);

// Takes `streams`, idle or in this capture, into the capture: what each is given next comes after all that the origin
// captured so far. They may be of other devices, and must outlive the scope. What they are given must be joined before
// the end, or else the end fails and names them. A failure sets the latch: work that was meant for the graph would run.
//   FAILED_PRECONDITION  `capture` is NULL or another thread's, which then goes on; or a stream is being captured by
//                        somebody else
//   INVALID_ARGUMENT     `streams` is NULL, or has the legacy default stream or the origin in it
//   RESOURCE_EXHAUSTED   no host memory for the list of streams
//   CUDA_ERROR           the driver refused an event
GCAP_API gcap_status_t gcap_capture_fork(gcap_capture_t* capture, const cudaStream_t* streams,
                                         size_t num_streams) GCAP_NODISCARD;

// The origin's next work comes after all that `streams`, which gcap_capture_fork took, captured so far. They stay in
// the capture: give them no more work, or join them again. A failure sets the latch.
//   FAILED_PRECONDITION  `capture` is NULL or another thread's, which then goes on
//   INVALID_ARGUMENT     `streams` is NULL, or a stream was not forked in this scope
//   CUDA_ERROR           the driver refused an event
GCAP_API gcap_status_t gcap_capture_join(gcap_capture_t* capture, const cudaStream_t* streams,
                                         size_t num_streams) GCAP_NODISCARD;

// Runs `close(user, committed)` once when the scope ends: `committed` tells whether a graph came of it. Steps run in
// reverse order, after the stream has left capture mode.
//   RESOURCE_EXHAUSTED   no memory for the step; it will not run
//   FAILED_PRECONDITION  `capture` is NULL
GCAP_API gcap_status_t gcap_capture_on_close(gcap_capture_t* capture, void (*close)(void* user, bool committed),
                                             void* user) GCAP_NODISCARD;

// Keeps something for the graph's life, such as a host buffer that a captured copy reads at each replay:
// `release(user)` runs when the graph's owner calls gcap_retained_release, or at the end of a failed capture.
//   RESOURCE_EXHAUSTED   no memory for the entry; `release` was not called
//   FAILED_PRECONDITION  `capture` is NULL
GCAP_API gcap_status_t gcap_capture_retain(gcap_capture_t* capture, void (*release)(void* user),
                                           void* user) GCAP_NODISCARD;

// The same for memory: `bytes(user)` is asked whenever gcap_retained_bytes is.
//   RESOURCE_EXHAUSTED   no memory for the entry; `release` was not called
//   FAILED_PRECONDITION  `capture` is NULL
GCAP_API gcap_status_t gcap_capture_retain_bytes(gcap_capture_t* capture, void (*release)(void* user),
                                                 size_t (*bytes)(void* user), void* user) GCAP_NODISCARD;

// One call of a scope, as its ledger has it: what GCAP_CUDA and the ops' library calls were given on the scope's thread
// between begin and end, and what GCAP_CAPTURE_NOTE was given. `operation` is the text of the call, cut off if it is
// long, and is valid until the thread's next call of gcap or the scope's end. `before` and `after` are the capture's
// state: Active until something broke it.
typedef struct gcap_capture_call {
  const char* operation;
  const char* file;
  int line;
  cudaStream_t stream;  // NULL where the call did not say
  enum cudaStreamCaptureStatus before, after;
} gcap_capture_call_t;

// Notes an operation that did not go through GCAP_CUDA, after it was done: a kernel launched with <<<>>>, a library's
// call. Asks the driver whether the capture still goes on, so that what breaks it without an error is named. Does
// nothing on a thread without a scope, and without a ledger. `operation` is copied; `file` must be a literal. `stream`
// may be NULL; another one than the origin must outlive the scope, which at its end looks whether it was joined.
GCAP_API void gcap_capture_note(const char* operation, cudaStream_t stream, const char* file, int line);
#define GCAP_CAPTURE_NOTE(operation, stream) gcap_capture_note((operation), (stream), __FILE__, __LINE__)

// Writes the newest calls of the ledger, at most `capacity`, oldest first, and gives how many were noted in all, those
// that the ledger has dropped included; 0 for NULL. `out_calls` NULL: only counts.
GCAP_API size_t gcap_capture_get_calls(const gcap_capture_t* capture, gcap_capture_call_t* out_calls, size_t capacity);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_CAPTURE_H_
