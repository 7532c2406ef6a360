// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Several graphs in one scope. A split ends the stream's capture and begins another one at once, so that no work of the
// thread comes between: what is issued after a failed split must not run, since the scope fails and its work is issued
// again. So nothing is ended that would fail, as far as the scope can tell: a scope that has failed goes on as it is,
// and unjoined streams are looked for first. Locking: none, a scope belongs to its thread; the latch has its mutex.

#include "lib/capture/capture_internal.h"
#include "lib/capture/inner.h"
#include "lib/capture/unjoined.h"
#include "lib/internal/text.h"

// The newest call of the stream that the ledger has; NULL: none.
static const gcap_capture_call_record_t* find_call(const gcap_capture_calls_t* calls, cudaStream_t stream) {
  const uint64_t kept = calls->noted < calls->capacity ? calls->noted : calls->capacity;
  for (uint64_t i = 0; i < kept; ++i) {
    const gcap_capture_call_record_t* call = &calls->ring[(calls->noted - 1 - i) % calls->capacity];
    if (call->stream == stream) return call;
  }
  return NULL;
}

// Writes the streams that gcap_capture_find_unjoined found, and returns how many there are.
static size_t write_unjoined(const gcap_capture_t* capture, bool only_new, char* chars, size_t capacity) {
  gcap_text_t text;
  gcap_text_init(&text, chars, capacity);
  size_t count = 0;
  for (size_t i = 0; i < capture->members.count; ++i) {
    const gcap_capture_member_t* member = &capture->members.items[i];
    if (!member->unjoined || (only_new && member->was_unjoined)) continue;
    const gcap_capture_call_record_t* call = find_call(&capture->calls, member->stream);
    gcap_text_add(&text, "%sstream %p", count++ == 0 ? "" : ", ", (void*)member->stream);
    if (call == NULL) continue;
    gcap_text_add(&text, " (its last call: %s", call->operation);
    gcap_labels_add(&text, call->label);
    gcap_text_add(&text, " at %s:%d)", call->file, call->line);
  }
  return count;
}

gcap_status_t gcap_capture_check_joined(gcap_capture_t* capture, bool only_new, const char* what, const char* remedy) {
  GCAP_RETURN_IF_ERROR(gcap_capture_find_unjoined(&capture->members, capture->stream));
  char chars[1024];
  if (write_unjoined(capture, only_new, chars, sizeof(chars)) == 0) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: %s%s", what, chars, remedy);
}

// Before a hole all of them must be joined, since its segment ends.
static gcap_status_t check_segment_ends(gcap_capture_t* capture, const char* name) {
  gcap_status_t status = gcap_capture_check_joined(
      capture, /*only_new=*/false, "work of other streams was not joined, and a segment ends here",
      "; remedy: join them before the hole (gcap_capture_join, gcap_runtime_join)");
  return gcap_status_annotate(status, gcap_status_code(status), "hole '%s'", name);
}

static gcap_status_t copy_cause(gcap_capture_t* capture) {
  pthread_mutex_lock(&capture->latch_mutex);
  gcap_status_t cause = gcap_status_clone(capture->cause);
  pthread_mutex_unlock(&capture->latch_mutex);
  return cause;
}

// Ends one capture and begins the next. Without the thread's hooks: neither is a call of the work.
static gcap_status_t exchange(gcap_capture_t* capture, cudaGraph_t* out_graph) {
  gcap_status_t status = gcap_capture_end_stream(capture, out_graph);
  if (status == NULL && *out_graph == NULL) {
    status = GCAP_STATUS(GCAP_INTERNAL, "cudaStreamEndCapture succeeded without a graph");
  }
  gcap_status_t begun = gcap_capture_begin_stream(capture);
  capture->is_left = begun != NULL;
  return gcap_status_join(status, begun);
}

gcap_status_t gcap_capture_check_intact(gcap_capture_t* capture, const char* name) {
  gcap_capture_latch_unreported(capture);
  gcap_capture_attach(capture);
  gcap_capture_calls_look(&capture->calls, capture->stream);
  GCAP_RETURN_IF_ERROR(copy_cause(capture));
  if (!gcap_capture_calls_saw_break(&capture->calls)) return NULL;
  return GCAP_STATUS(GCAP_CAPTURE_INVALIDATED, "hole '%s': the capture broke before", name);
}

gcap_status_t gcap_capture_split(gcap_capture_t* capture, const char* name, cudaGraph_t* out_graph) {
  *out_graph = NULL;
  GCAP_RETURN_IF_ERROR(gcap_capture_check_intact(capture, name));
  gcap_status_t status = check_segment_ends(capture, name);
  if (status == NULL) {
    gcap_capture_detach();
    status = exchange(capture, out_graph);
    if (status == NULL && capture->work_steps != NULL) {
      status = gcap_capture_steps_end_segment(capture->work_steps, *out_graph, capture->stream, name);
    }
    gcap_capture_attach(capture);
    capture->members.count = 0;
    status = gcap_status_annotate(status, gcap_status_code(status), "hole '%s'", name);
  }
  if (status == NULL) return NULL;
  gcap_capture_fail_once(capture, status);
  if (*out_graph == NULL) return status;
  gcap_capture_detach();
  status = gcap_status_join(status, GCAP_CUDA(cudaGraphDestroy(*out_graph)));
  gcap_capture_attach(capture);
  *out_graph = NULL;
  return status;
}

bool gcap_capture_is_left(const gcap_capture_t* capture) { return capture->is_left; }
