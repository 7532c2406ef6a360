// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The capture scope: a transaction over cudaStreamBeginCapture and cudaStreamEndCapture.
//
// A scope acquires in a fixed order: process counter, stream capture, thread state, then the registered close steps.
// Closing the scope undoes the same in reverse, whatever happened between. Three witnesses decide whether the scope
// ends in a graph: the latch, which the first failure sets, the ledger, which saw work that went elsewhere, and the
// driver. The driver alone is not enough: work that was refused with an error, or given to a stream outside of the
// capture, is simply missing from a graph that ends well (rule R9 of the capture rules).
//
// Callbacks (close steps, the releases of a failed capture, the log sink) may call everything, also begin a scope of
// their own. So a scope that ends is not the thread's any more when its callbacks run, takes nothing more, and whoever
// called a callback aborts what the callback left open: the thread never has two scopes, of which one is forgotten.
//
// Locking: a scope belongs to its thread. Only the latch is shared, under its own mutex, since a kernel may report its
// failure from a helper thread. No callback runs with the mutex held.

#include "gcap/capture.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gcap/log.h"
#include "lib/base/stay_loaded.h"
#include "lib/capture/capture_internal.h"
#include "lib/capture/escaped.h"
#include "lib/capture/inner.h"
#include "lib/capture/options.h"
#include "lib/capture/unjoined.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/capture_gate.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/run_trace.h"

static _Thread_local gcap_capture_t* current_scope;
static pthread_key_t scope_key;  // holds the thread's open scope, so that its destructor runs when the thread exits
static pthread_once_t scope_key_once = PTHREAD_ONCE_INIT;
static int scope_key_error;

bool gcap_capture_is_in_attempt(void) { return current_scope != NULL && current_scope->attempt != NULL; }

static void fail_current(gcap_status_t cause) { gcap_capture_fail(current_scope, cause); }

static void note_in_current(const char* operation, cudaError_t answer, cudaStream_t stream, const char* file,
                            int line) {
  gcap_capture_t* capture = current_scope;
  if (capture->calls.capacity != 0) {
    gcap_capture_calls_add(&capture->calls, capture->stream, operation, answer, stream, file, line);
    if (capture->calls.state == cudaStreamCaptureStatusActive) gcap_capture_look_for_escape(capture, operation, stream);
  }
  if (capture->work_steps == NULL) return;
  gcap_capture_steps_add(capture->work_steps, capture->stream, operation != NULL ? operation : GCAP_CAPTURE_UNNAMED,
                         stream, file != NULL ? file : "", line);
}

static void note_block_in_current(void* address, size_t bytes, cudaStream_t stream) {
  (void)stream;
  gcap_capture_steps_t* steps = current_scope->work_steps;
  if (steps != NULL) (void)gcap_capture_steps_add_block(steps, address, bytes);  // steps that are cut say so
}

static gcap_status_t retain_in_current(void (*release)(void* user), size_t (*bytes)(void* user),
                                       gcap_retained_list_t list, void* user) {
  return gcap_capture_retain_memory(current_scope, release, bytes, list, user);
}

static gcap_status_t on_close_of_current(void (*close)(void* user, bool committed), void* user) {
  return gcap_capture_on_close(current_scope, close, user);
}

static gcap_status_t current_captures(cudaStream_t stream, bool* out_captures) {
  const cudaStream_t origin = current_scope->stream;
  *out_captures = stream == origin;
  if (*out_captures) return NULL;
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone, own_state = cudaStreamCaptureStatusNone;
  unsigned long long id = 0, own_id = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetCaptureInfo(stream, &state, &id, NULL, NULL, NULL, NULL)));
  if (state != cudaStreamCaptureStatusActive) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetCaptureInfo(origin, &own_state, &own_id, NULL, NULL, NULL, NULL)));
  *out_captures = own_state == cudaStreamCaptureStatusActive && own_id == id;
  return NULL;
}

static uint64_t work_of_current(bool* out_is_rehearsal) {
  *out_is_rehearsal = current_scope->is_rehearsal;
  return current_scope->work;
}

static const gcap_capture_hooks_t hooks_of_scope = {.fail = fail_current,
                                                    .retain = retain_in_current,
                                                    .on_close = on_close_of_current,
                                                    .captures = current_captures,
                                                    .work = work_of_current};

void gcap_capture_attach(const gcap_capture_t* capture) {
  const bool hears = capture->calls.capacity != 0 || capture->work_steps != NULL;
  gcap_thread_capture_hooks = &hooks_of_scope;
  gcap_thread_note = hears ? note_in_current : NULL;
  gcap_thread_run_trace.hand_out = capture->work_steps != NULL ? note_block_in_current : NULL;
}

void gcap_capture_detach(void) {
  gcap_thread_capture_hooks = NULL;
  gcap_thread_note = NULL;
  gcap_thread_run_trace.hand_out = NULL;
}

void gcap_capture_keep_steps(gcap_capture_t* capture, gcap_capture_steps_t* steps) {
  capture->work_steps = steps;
  gcap_capture_attach(capture);
}

void gcap_capture_note(const char* operation, cudaStream_t stream, const char* file, int line) {
  gcap_note(operation, cudaSuccess, stream, file, line);
}

static gcap_status_t check_can_begin(cudaStream_t stream, int* out_device_id) {
  *out_device_id = 0;
  if (stream == NULL || stream == cudaStreamLegacy) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "the legacy default stream (0) cannot be captured: use a stream created with "
                       "cudaStreamNonBlocking");
  }
  GCAP_RETURN_IF_ERROR(gcap_check_stream_not_capturing(stream, "gcap_capture_begin"));
  return GCAP_CUDA(cudaStreamGetDevice(stream, out_device_id));
}

// Aborts the scope that the thread has open, if any. The log sink may have ended it, or have replaced it by another
// one.
static void abort_open_scope(const char* who) {
  if (current_scope == NULL || gcap_is_forked()) return;
  gcap_log(GCAP_LOG_WARNING, "%s: the capture of stream %p was never ended; it is aborted", who,
           (void*)current_scope->stream);
  gcap_capture_abort(current_scope);
}

// A thread that exits inside a scope would leave the stream capturing for ever: nobody else can end it well.
static void thread_exits(void* scope) {
  (void)scope;
  abort_open_scope("a thread exits");
}

static void make_scope_key(void) {
  gcap_watch_forks();
  gcap_stay_loaded();
  scope_key_error = pthread_key_create(&scope_key, thread_exits);
}

static gcap_status_t prepare_thread(void) {
  pthread_once(&scope_key_once, make_scope_key);
  if (scope_key_error != 0) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "pthread_key_create failed: error %d", scope_key_error);
  }
  // What failed before the capture is not the capture's; what fails inside it must be seen at its end.
  cudaError_t earlier = cudaGetLastError();
  if (earlier != cudaSuccess && earlier != cudaErrorNotReady) {
    gcap_log(GCAP_LOG_WARNING, "a call before the capture failed and nobody cleared its error: %s",
             cudaGetErrorName(earlier));
  }
  return NULL;
}

// Sets the latch for a failed call whose result nobody looked at: its work is missing from the graph. The call is not
// known, nor its place; the ledger knows between which calls the capture broke.
void gcap_capture_latch_unreported(gcap_capture_t* capture) {
  cudaError_t unreported = cudaGetLastError();
  if (unreported == cudaSuccess || unreported == cudaErrorNotReady) return;
  gcap_capture_calls_look(&capture->calls, capture->stream);
  gcap_thread_note = NULL;                                                                // the status is no call
  gcap_status_ignore(gcap_status_from_cuda(unreported, GCAP_CAPTURE_UNREPORTED, "", 0));  // making it has set the latch
}

static gcap_capture_t* scope_new(cudaStream_t stream, int device_id, const gcap_capture_options_t* options) {
  gcap_capture_t* capture = malloc(sizeof(*capture) + options->ledger_calls * sizeof(capture->ring[0]));
  if (capture == NULL) return NULL;
  *capture = (gcap_capture_t){.owner = pthread_self(), .stream = stream, .mode = options->mode, .device_id = device_id};
  gcap_capture_calls_init(&capture->calls, capture->ring, options->ledger_calls);
  pthread_mutex_init(&capture->latch_mutex, NULL);
  return capture;
}

static void scope_free(gcap_capture_t* capture) {
  if (capture->attempt != NULL) capture->attempt->is_over = true;
  pthread_mutex_destroy(&capture->latch_mutex);
  gcap_capture_members_deinit(&capture->members);
  free(capture);
}

// The capture that the stream is in; 0: it is in none, or in one that is broken.
static gcap_status_t ask_capture_id(cudaStream_t stream, unsigned long long* out_id) {
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  *out_id = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetCaptureInfo(stream, &state, out_id, NULL, NULL, NULL, NULL)));
  if (state != cudaStreamCaptureStatusActive) *out_id = 0;
  return NULL;
}

// Takes the stream out of capture mode, whatever state the capture is in. A failed end is tried once more where the
// driver left the stream capturing, or does not say, so that no stream stays poisoned.
static gcap_status_t end_stream(cudaStream_t stream, cudaGraph_t* out_graph) {
  *out_graph = NULL;
  gcap_status_t status = GCAP_CUDA(cudaStreamEndCapture(stream, out_graph));
  if (status == NULL) return NULL;
  bool capturing = false;
  gcap_status_t asked = gcap_is_stream_capturing(stream, &capturing);
  if (asked != NULL || capturing) {
    gcap_status_t ended = GCAP_CUDA(cudaStreamEndCapture(stream, out_graph));
    if (ended == NULL && *out_graph != NULL) ended = GCAP_CUDA(cudaGraphDestroy(*out_graph));
    asked = gcap_status_join(asked, ended);
  }
  *out_graph = NULL;
  return gcap_status_join(status, asked);
}

gcap_status_t gcap_capture_begin_stream(gcap_capture_t* capture) {
  const cudaStream_t stream = capture->stream;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamBeginCapture(stream, gcap_capture_mode_to_cuda(capture->mode))));
  gcap_status_t status = ask_capture_id(stream, &capture->id);
  if (status == NULL) return NULL;
  cudaGraph_t graph = NULL;
  gcap_status_t ended = end_stream(stream, &graph);
  if (graph != NULL) ended = gcap_status_join(ended, GCAP_CUDA(cudaGraphDestroy(graph)));
  return gcap_status_join(status, ended);
}

// A graph of another capture would lack what came before that one, and its end would succeed.
static gcap_status_t check_same_capture(const gcap_capture_t* capture) {
  unsigned long long id = 0;
  GCAP_RETURN_IF_ERROR(ask_capture_id(capture->stream, &id));
  if (id == 0 || id == capture->id) return NULL;  // of a broken capture the end says so
  return GCAP_STATUS(GCAP_CAPTURE_INVALIDATED,
                     "stream %p is in another capture than the one that gcap began: the work ended that capture "
                     "(cudaStreamEndCapture) and began its own, whose graph lacks what came before; remedy: capture on "
                     "a stream of your own, or leave the stream to gcap",
                     (void*)capture->stream);
}

gcap_status_t gcap_capture_end_stream(const gcap_capture_t* capture, cudaGraph_t* out_graph) {
  gcap_status_t checked = check_same_capture(capture);
  gcap_status_t ended = end_stream(capture->stream, out_graph);
  if (checked != NULL && *out_graph != NULL) {
    ended = gcap_status_join(ended, GCAP_CUDA(cudaGraphDestroy(*out_graph)));
    *out_graph = NULL;
  }
  return gcap_status_join(checked, ended);
}

gcap_status_t gcap_capture_begin(cudaStream_t stream, const gcap_capture_options_t* given_options,
                                 gcap_capture_t** out_capture) {
  GCAP_RETURN_IF_NULL(out_capture);
  *out_capture = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if (gcap_capture_is_in_attempt()) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "gcap_capture_begin: called by the function of a hole, which is being captured");
  }
  abort_open_scope("gcap_capture_begin");
  gcap_capture_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_capture_options_read(given_options, &known));
  const gcap_capture_options_t* options = &known;
  GCAP_RETURN_IF_ERROR(gcap_capture_options_check(options));
  int device_id = 0;
  GCAP_RETURN_IF_ERROR(check_can_begin(stream, &device_id));
  GCAP_RETURN_IF_ERROR(prepare_thread());
  abort_open_scope("a log sink");
  gcap_capture_t* capture = scope_new(stream, device_id, options);
  if (capture == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a capture scope with a ledger of %" PRIu32 " calls",
                       options->ledger_calls);
  }
  gcap_capture_gate_enter();
  gcap_thread_note = NULL;  // an observer of the thread would find it capturing
  gcap_status_t status = gcap_capture_begin_stream(capture);
  if (status != NULL) {
    gcap_observe_again();
    gcap_capture_gate_leave();
    scope_free(capture);
    return status;
  }
  current_scope = capture;
  // Without memory for the value only an exit inside the scope goes unnoticed.
  (void)pthread_setspecific(scope_key, capture);
  gcap_capture_attach(capture);
  *out_capture = capture;
  return NULL;
}

void gcap_capture_set_work(gcap_capture_t* capture, uint64_t work, bool is_rehearsal) {
  capture->work = work;
  capture->is_rehearsal = is_rehearsal;
}

void gcap_capture_set_label(gcap_capture_t* capture, const char* label) {
  snprintf(capture->label, sizeof(capture->label), "%s", label);
}

void gcap_capture_set_owner(gcap_capture_t* capture, void* owner) { capture->run = owner; }

int gcap_capture_device(const gcap_capture_t* capture) { return capture->device_id; }

void* gcap_capture_owner(const gcap_capture_t* capture) { return capture->run; }

static gcap_status_info_t info_of(gcap_status_t status) {
  gcap_status_info_t info;
  gcap_status_get_info(status, &info);
  return info;
}

// Whether `later` is `first` on its way up, which prefixes were put before: who reports it does not know that it was
// latched where it was made.
static bool is_same_failure(gcap_status_t first, gcap_status_t later) {
  const gcap_status_info_t first_info = info_of(first), later_info = info_of(later);
  if (first_info.line != later_info.line || strcmp(first_info.file, later_info.file) != 0) return false;
  const char *first_text = gcap_status_message(first), *later_text = gcap_status_message(later);
  const size_t first_length = strlen(first_text), later_length = strlen(later_text);
  return later_length >= first_length && strcmp(later_text + later_length - first_length, first_text) == 0;
}

// Tells whether the scope could still hear of the cause.
static bool latch(gcap_capture_t* capture, gcap_status_t cause, bool once) {
  if (capture == NULL || cause == NULL) return true;
  pthread_mutex_lock(&capture->latch_mutex);
  const bool is_open = !capture->is_decided;
  if (is_open && capture->cause == NULL) {
    capture->cause = gcap_status_clone(cause);
  } else if (is_open && (!once || !is_same_failure(capture->cause, cause))) {
    ++capture->later_failures;
  }
  pthread_mutex_unlock(&capture->latch_mutex);
  return is_open;
}

void gcap_capture_fail(gcap_capture_t* capture, gcap_status_t cause) { (void)latch(capture, cause, /*once=*/false); }

void gcap_capture_fail_once(gcap_capture_t* capture, gcap_status_t cause) {
  (void)latch(capture, cause, /*once=*/true);
}

// Whether the scope ended in a graph. From here on the latch takes nothing more.
static gcap_status_t decide(gcap_capture_t* capture, gcap_status_t end_status) {
  gcap_status_t escape = gcap_capture_escape_status(capture);
  if (capture->cause == NULL) gcap_capture_fail(capture, escape);
  gcap_status_free(escape);  // the latch has its copy, or a cause that comes before
  pthread_mutex_lock(&capture->latch_mutex);
  capture->is_decided = true;
  pthread_mutex_unlock(&capture->latch_mutex);
  return gcap_capture_verdict(capture, end_status);
}

// Runs the close steps and, of a capture that failed, the releases.
static void run_callbacks(gcap_capture_t* capture, bool committed) {
  gcap_capture_entry_t entry;
  while (gcap_capture_entries_pop(&capture->steps, &entry)) {
    entry.close(entry.user, committed);
    abort_open_scope("a close step");
  }
  while (!committed && gcap_capture_entries_pop(&capture->retained, &entry)) {
    entry.release(entry.user);
    abort_open_scope("a release");
  }
}

// Closes the scope. With a graph: NULL, and *out_graph and *out_retained belong to the caller.
static gcap_status_t close_scope(gcap_capture_t* capture, cudaGraph_t* out_graph, gcap_retained_t** out_retained) {
  gcap_retained_t* retained = NULL;
  if (capture->retained != NULL) {
    retained = gcap_retained_create();
    if (retained == NULL) {
      gcap_status_t status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the list of retained entries");
      gcap_status_ignore(status);  // making it has set the latch
    }
  }
  gcap_capture_latch_unreported(capture);
  gcap_capture_detach();  // what ends the scope is no part of it
  gcap_status_t looked = gcap_capture_find_unjoined(&capture->members, capture->stream);
  gcap_capture_fail(capture, looked);  // the same device answers the end: it is not to be trusted either
  gcap_status_free(looked);
  cudaGraph_t graph = NULL;
  gcap_status_t end_status = gcap_capture_end_stream(capture, &graph);
  if (end_status == NULL && graph == NULL) {
    end_status = GCAP_STATUS(GCAP_INTERNAL, "cudaStreamEndCapture succeeded without a graph");
  }
  if (graph != NULL && capture->work_steps != NULL) {
    gcap_status_t counted = gcap_capture_steps_end_segment(capture->work_steps, graph, capture->stream, /*hole=*/NULL);
    gcap_capture_fail(capture, counted);
    gcap_status_free(counted);
  }
  capture->has_ended = true;
  capture->end_answer = info_of(end_status).cuda_error;
  current_scope = NULL;
  (void)pthread_setspecific(scope_key, NULL);  // a key that has a value takes NULL without memory
  gcap_capture_gate_leave();

  gcap_status_t status = decide(capture, end_status);
  // Before the callbacks, which may have a capture of their own.
  if (status != NULL && graph != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaGraphDestroy(graph)));
  run_callbacks(capture, status == NULL);
  gcap_observe_again();
  if (status == NULL) {
    if (retained != NULL) retained->newest = capture->retained;
    *out_retained = retained;
    *out_graph = graph;
  } else {
    gcap_retained_release(retained);  // without an entry
  }
  scope_free(capture);
  return status;
}

gcap_status_t gcap_capture_end(gcap_capture_t* capture, cudaGraph_t* out_graph, gcap_retained_t** out_retained) {
  GCAP_RETURN_IF_NULL(out_graph);
  GCAP_RETURN_IF_NULL(out_retained);
  *out_graph = NULL;
  *out_retained = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if (capture == NULL || capture != current_scope) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "a capture is ended by the thread that began it; this thread has %s open",
                       current_scope == NULL ? "none" : "another one");
  }
  return close_scope(capture, out_graph, out_retained);
}

void gcap_capture_abort(gcap_capture_t* capture) {
  if (capture == NULL || gcap_is_forked()) return;
  gcap_status_t given_up = GCAP_STATUS(GCAP_CAPTURE_INVALIDATED, "the capture was given up");
  const bool is_open = latch(capture, given_up, /*once=*/false);
  gcap_status_ignore(given_up);  // the latch has its copy
  if (!is_open) return;
  if (capture != current_scope) {
    gcap_log(GCAP_LOG_ERROR, "a capture was given up on a thread that did not begin it; it stays open there and fails");
    return;
  }
  cudaGraph_t graph = NULL;
  gcap_retained_t* retained = NULL;
  gcap_status_ignore(close_scope(capture, &graph, &retained));  // a failure is what was asked for
}

gcap_capture_t* gcap_capture_current(void) { return current_scope; }

bool gcap_thread_is_capturing(void) { return gcap_thread_captures() && current_scope != NULL; }

cudaStream_t gcap_capture_stream(const gcap_capture_t* capture) { return capture == NULL ? NULL : capture->stream; }

size_t gcap_capture_read_calls(const gcap_capture_t* capture, gcap_capture_call_t* out_calls, size_t capacity,
                               size_t call_bytes) {
  return capture == NULL ? 0 : gcap_capture_calls_copy(&capture->calls, out_calls, capacity, call_bytes);
}

// --- Close steps and retained entries -------------------------------------------------------------------------------

// Only the thread's open scope takes more: one whose end has begun would lose it.
static gcap_status_t check_open(const gcap_capture_t* capture, const char* what) {
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(what));
  if (capture != NULL && capture == current_scope) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: capture is %s; only the scope that this thread has open takes more",
                     what, capture == NULL ? "NULL" : "another one, or its end has begun");
}

gcap_status_t gcap_capture_on_close(gcap_capture_t* capture, void (*close)(void* user, bool committed), void* user) {
  GCAP_RETURN_IF_ERROR(check_open(capture, "gcap_capture_on_close"));
  GCAP_RETURN_IF_NULL(close);
  const gcap_capture_entry_t step = {.close = close, .user = user};
  return gcap_capture_entries_push(&capture->steps, step, "a close step");
}

gcap_status_t gcap_capture_retain_memory(gcap_capture_t* capture, void (*release)(void* user),
                                         size_t (*bytes)(void* user), gcap_retained_list_t list, void* user) {
  GCAP_RETURN_IF_ERROR(check_open(capture, "gcap_capture_retain"));
  GCAP_RETURN_IF_NULL(release);
  const gcap_capture_entry_t entry = {.release = release, .bytes = bytes, .list = list, .user = user};
  return gcap_capture_entries_push(&capture->retained, entry, "a retained entry");
}

gcap_status_t gcap_capture_retain(gcap_capture_t* capture, void (*release)(void* user), size_t (*bytes)(void* user),
                                  void* user) {
  return gcap_capture_retain_memory(capture, release, bytes, /*list=*/NULL, user);
}
