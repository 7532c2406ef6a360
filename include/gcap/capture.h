// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// capture.h: a stream capture as a transaction: it ends in a graph, or in the state before it began.
#ifndef GCAP_CAPTURE_H_
#define GCAP_CAPTURE_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Which calls of which threads break the capture (cudaStreamCaptureMode).
typedef enum gcap_capture_mode {
  GCAP_CAPTURE_THREAD_LOCAL = 0,  // unsafe calls of the capturing thread
  GCAP_CAPTURE_GLOBAL,            // unsafe calls of any thread
  GCAP_CAPTURE_RELAXED,           // only calls that are illegal in any capture
} gcap_capture_mode_t;

// Upper limit of ledger_calls. An entry takes about 250 bytes, so a larger value is surely a mistake.
#define GCAP_CAPTURE_MAX_LEDGER_CALLS 65536u

typedef struct gcap_capture_options {
  size_t struct_size;  // set by gcap_capture_options_init
  gcap_capture_mode_t mode;
  // How many calls the ledger keeps; a full ledger drops its oldest call. The call that broke the capture is always
  // kept. 0: no ledger, and the capture's state is queried only at its end. Default 64: the kernels of a few layers.
  uint32_t ledger_calls;
} gcap_capture_options_t;

// Sets the size and the defaults.
static inline void gcap_capture_options_init(gcap_capture_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = sizeof(*options);
  options->mode = GCAP_CAPTURE_THREAD_LOCAL;
  options->ledger_calls = 64;
}

// Capture scope: one open capture. From gcap_capture_begin; gone after gcap_capture_end or gcap_capture_abort.
// Thread:   the thread that began the scope, except gcap_capture_fail, which any thread may call.
// Capture:  every function here is legal while the scope is open.
// Lifetime: the stream outlives the scope. A scope that was never ended is aborted by the next begin on its thread, or
//           when its thread exits.
// Callbacks: close steps, and the releases of a failed capture, run on the thread that ends the scope, one after the
//           other, without a lock of gcap. They may call gcap. By then the thread has no scope open
//           (gcap_capture_current is NULL), and the scope that ends takes nothing more: gcap_capture_on_close, the
//           retain functions, fork, join and end return FAILED_PRECONDITION; abort and fail do nothing. A callback may
//           begin a capture, and ends it before it returns; a capture that it leaves open is aborted, and logged.
// Errors:   besides those listed, INVALID_ARGUMENT if a callback or an output argument is NULL.
typedef struct gcap_capture gcap_capture_t;

// Begins to capture `stream` and marks the thread as capturing. `options` NULL: the defaults. A failure undoes what was
// done before. While gcap waits for a whole device on another thread, as scratch may (gcap_scratch_allocator), this
// call blocks, since that wait would break the capture.
//   INVALID_ARGUMENT     the legacy default stream, which cannot be captured, or bad options
//   FAILED_PRECONDITION  the stream is capturing already; or called by the function of a hole that is being captured
//                        (gcap_graph_hole_t.break_where_refused), whose capture this call would abort
//   RESOURCE_EXHAUSTED   no host memory for the scope and its ledger
//   CUDA_ERROR           the driver refused
GCAP_API gcap_status_t gcap_capture_begin(cudaStream_t stream, const gcap_capture_options_t* options,
                                          gcap_capture_t** out_capture) GCAP_NODISCARD;

// Retained: what a finished capture asked to keep (see gcap_capture_retain). The graph's owner owns the retained too.
// Thread:   one thread at a time.
// Capture:  legal.
// Lifetime: independent of the scope.
typedef struct gcap_retained gcap_retained_t;

// Runs the releases in reverse order and frees `retained`. NULL is fine.
GCAP_API void gcap_retained_release(gcap_retained_t* retained);

// Ends the capture. Returns its graph, and what must live as long as the graph's executables; the caller owns both.
// `*out_retained` is NULL if nothing was retained. Whatever the outcome, the scope is gone, the stream is usable, the
// thread's last error is clear, and each close step (see gcap_capture_on_close) has run once.
//   CAPTURE_INVALIDATED  the latch is set, the driver refused, or work escaped (see gcap_capture_note). There is no
//                        graph; the message names the first failure, the call that broke the capture if the ledger saw
//                        it, the rule that the call broke (docs/rules), and the remedy. What was captured
//                        did not run: run the work eagerly
//   FAILED_PRECONDITION  called on another thread, which leaves the capture open; called in a callback of this end; or
//                        `capture` is NULL
GCAP_API gcap_status_t gcap_capture_end(gcap_capture_t* capture, cudaGraph_t* out_graph,
                                        gcap_retained_t** out_retained) GCAP_NODISCARD;

// Gives up the capture, as an end that fails. On another thread it only sets the latch. NULL is fine.
GCAP_API void gcap_capture_abort(gcap_capture_t* capture);

// Sets the latch: the capture will fail, even if the driver ends it successfully. The first call wins. `cause` is
// copied and stays the caller's. If either argument is NULL, nothing happens. A call on another thread must return
// before the scope's end begins. A status made from a CUDA, library or out-of-memory failure on the capturing thread
// sets the latch automatically. So does, when the scope ends, a failed CUDA call of that thread whose error was never
// read.
GCAP_API void gcap_capture_fail(gcap_capture_t* capture, gcap_status_t cause);

// The scope that the calling thread has open, or NULL.
GCAP_API gcap_capture_t* gcap_capture_current(void);
// True while the calling thread has a scope open. A thread-local read: cheap enough for every kernel.
GCAP_API bool gcap_thread_is_capturing(void);

// The origin, which is the stream that gcap_capture_begin was given. NULL for NULL.
GCAP_API cudaStream_t gcap_capture_stream(const gcap_capture_t* capture);

// Takes `streams`, each idle or already in this capture, into the capture: their next work comes after all work that
// the origin captured so far. The streams may be of other devices, and must outlive the scope. Their work must be
// joined before the end, or the end fails and names the streams. A failure sets the latch, since work meant for the
// graph would run.
//   FAILED_PRECONDITION  `capture` is NULL; or it belongs to another thread, and then stays open and does not fail; or
//                        a stream is in another capture
//   INVALID_ARGUMENT     `streams` is NULL, or contains the legacy default stream or the origin
//   RESOURCE_EXHAUSTED   no host memory for the list of streams
//   CUDA_ERROR           the driver refused an event
GCAP_API gcap_status_t gcap_capture_fork(gcap_capture_t* capture, const cudaStream_t* streams,
                                         size_t num_streams) GCAP_NODISCARD;

// Orders the origin's next work after all work that `streams` captured so far; gcap_capture_fork took these streams
// into the capture. They stay in the capture: issue no more work to them, or join them again. A failure sets the latch.
//   FAILED_PRECONDITION  `capture` is NULL; or it belongs to another thread, and then stays open and does not fail
//   INVALID_ARGUMENT     `streams` is NULL, or a stream was not forked in this scope
//   CUDA_ERROR           the driver refused an event
GCAP_API gcap_status_t gcap_capture_join(gcap_capture_t* capture, const cudaStream_t* streams,
                                         size_t num_streams) GCAP_NODISCARD;

// Registers a close step: `close(user, committed)` runs once when the scope ends; `committed` says whether the scope
// ended in a graph. Steps run in reverse order, after the stream has left capture mode.
//   RESOURCE_EXHAUSTED   no host memory for the step, which will not run
//   FAILED_PRECONDITION  `capture` is not the scope that this thread has open: it is NULL, another thread's, or its end
//                        has begun; the step will not run
GCAP_API gcap_status_t gcap_capture_on_close(gcap_capture_t* capture, void (*close)(void* user, bool committed),
                                             void* user) GCAP_NODISCARD;

// Keeps something for the graph's life, such as a host buffer that a captured copy reads at each replay:
// `release(user)` runs when the graph's owner calls gcap_retained_release, or at the end of a failed capture.
// `bytes(user)` says how much memory is kept now, for gcap_graph_info_t.bytes and the budget of a graph manager; NULL:
// none. A graph manager calls `bytes` on any thread, without a lock, and on several threads at once; `release` comes
// after the last call of `bytes`.
//   RESOURCE_EXHAUSTED   no memory for the entry; `release` was not called
//   FAILED_PRECONDITION  as gcap_capture_on_close; `release` was not called
GCAP_API gcap_status_t gcap_capture_retain(gcap_capture_t* capture, void (*release)(void* user),
                                           size_t (*bytes)(void* user), void* user) GCAP_NODISCARD;

// One call in a scope's ledger. The ledger records, on the scope's thread between begin and end, the calls made through
// GCAP_CUDA, the library calls of gcap's ops, and what GCAP_CAPTURE_NOTE adds. `operation` is the text of the call,
// truncated if long (it then ends in "..."), and is valid until the thread's next call of gcap or the scope's end.
// `before` and `after` are the capture's state: Active until something broke the capture.
typedef struct gcap_capture_call {
  const char* operation;
  const char* file;
  int line;
  cudaStream_t stream;  // NULL if the call did not say
  enum cudaStreamCaptureStatus before, after;
  const char* label;  // the labels that were open (gcap_label), "" for none; valid as `operation`
} gcap_capture_call_t;

// Notes an operation that did not go through GCAP_CUDA, such as a kernel launched with <<<>>> or a library call. Call
// it after the operation. It queries the driver whether the capture is still active, so that an operation that breaks
// the capture without an error is named. Does nothing on a thread without a scope, or if the scope has no ledger.
// `operation` is copied; `file` must be a literal. `stream` may be NULL: the call does not say. A stream other than the
// origin must outlive the scope, whose end checks that the stream was joined.
//
// Escaped work: work that this thread gave to a stream outside of the capture runs at once, and is missing from the
// graph, although the driver reports no error. A noted call of such a stream fails the capture, whose end names the
// call and the stream. So does a copy or a fill in GCAP_CUDA that has no stream argument, such as cudaMemcpy: it works
// on the default stream. Of other calls in GCAP_CUDA the stream is not known: note them, or give the capture all of
// their work.
GCAP_API void gcap_capture_note(const char* operation, cudaStream_t stream, const char* file, int line);
#define GCAP_CAPTURE_NOTE(operation, stream) gcap_capture_note((operation), (stream), __FILE__, __LINE__)

// Opens a label on the calling thread, which names the work that the thread issues until it closes the label; NULL
// closes the innermost open one. Labels nest: a call that is noted meanwhile has "decoder > layer 3" in the ledger
// (gcap_capture_call_t.label), in the messages that name the call, in those of a verification (graph_verify.h) and in
// files of events. In a gcap that was compiled for GPUs (Bazel's --config=cuda, CMake's GCAP_CUDA), with a toolkit that
// has NVTX's headers (nvtx3/nvToolsExt.h), the label is also an NVTX range: profilers show it, and gcap-doctor sums
// times by it. Any other gcap opens no such range, that of //:sdk among them. A thread's labels are its alone, and
// neither a scope nor a run opens or closes any: who opens a label closes it, also when the work fails (gcap::label of
// gcap.hpp does).
// Thread:   any thread; of its own labels.
// Capture:  legal; no call of CUDA is made.
// Lifetime: `text` is copied. The open labels have 95 bytes together: what does not fit is left out, behind "..." where
//           that fits. A label inside of 64 open ones is an NVTX range alone.
// Errors:   none. To close where none is open does nothing.
GCAP_API void gcap_label(const char* text);

// Writes the newest calls of the ledger, at most `capacity`, oldest first. Returns how many calls were noted in all,
// including those that the ledger has dropped; 0 for NULL. `out_calls` NULL: only counts. Programs call get_calls,
// which says how large their gcap_capture_call_t is: `call_bytes`, from one element of the array to the next. Fields
// are appended only, so an older program gets the beginning of each call; what only a newer program knows becomes zero.
GCAP_API size_t gcap_capture_read_calls(const gcap_capture_t* capture, gcap_capture_call_t* out_calls, size_t capacity,
                                        size_t call_bytes);
static inline size_t gcap_capture_get_calls(const gcap_capture_t* capture, gcap_capture_call_t* out_calls,
                                            size_t capacity) {
  return gcap_capture_read_calls(capture, out_calls, capacity, sizeof(*out_calls));
}

// Writes the ledger to the file `path`, which is made, or emptied, as events (docs/doctor_events.md): `gcap-doctor
// explain` reads it. It has the begin, the newest calls, the call that broke the capture, and, from a close step of the
// scope, the end. Legal until the scope's end returns. It makes no CUDA call, and its failure does not fail the
// capture.
//   INVALID_ARGUMENT     `path` is NULL, or a file that cannot be written
//   FAILED_PRECONDITION  `capture` is NULL, or belongs to another thread; or it has no ledger: its ledger_calls is 0
//   UNAVAILABLE          the file is incomplete: the disk may be full
GCAP_API gcap_status_t gcap_capture_write_events(const gcap_capture_t* capture, const char* path) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_CAPTURE_H_
