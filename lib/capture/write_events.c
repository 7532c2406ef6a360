// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A scope's ledger as a file of events, docs/doctor_events.md, which gcap-doctor reads.
//
// The ledger knows of a call its text, its place, perhaps its answer and its stream, and after which call the capture
// was no longer active. So the file has one thread, the calls in their order, for each its place as a stack of one
// frame, and says which one invalidated the capture. It makes no call of CUDA: the scope may be open. Locking: none, a
// scope belongs to its thread; a cancellation waits until the file is closed.

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lib/capture/capture_internal.h"
#include "lib/capture/events_file.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"

enum { kMaxStreams = 64 };  // that are told apart; a capture has a few

typedef struct writer {
  FILE* file;
  const gcap_capture_t* capture;
  cudaStream_t streams[kMaxStreams];  // the id is the place and 1
  size_t num_streams;
  uint32_t num_frames;
  uint32_t num_ranges;
  const char* labels;  // of the newest range; "" at first
} writer_t;

// --- What lines refer to ---------------------------------------------------------------------------------------------

// The id of a stream, which its line defines; 0 for one that the call did not say.
static size_t write_stream(writer_t* writer, cudaStream_t stream) {
  if (stream == NULL) return 0;
  for (size_t i = 0; i < writer->num_streams; ++i) {
    if (writer->streams[i] == stream) return i + 1;
  }
  if (writer->num_streams == kMaxStreams) return 0;
  writer->streams[writer->num_streams++] = stream;
  const char* what = stream == cudaStreamLegacy ? "\twhat=legacy" : "";
  if (stream == cudaStreamPerThread) what = "\twhat=per_thread";
  fprintf(writer->file, "stream\tid=%zu%s\n", writer->num_streams, what);
  return writer->num_streams;
}

// The id of the stack of a call, 0 if its place is not known.
static uint32_t write_place(writer_t* writer, const gcap_capture_call_record_t* call) {
  if (!gcap_events_file_write_place(writer->file, writer->num_frames + 1, call->file, call->line)) return 0;
  return ++writer->num_frames;
}

// The id of the range of a call, 0 without a label. Calls that follow each other in it share the range.
static uint32_t write_range(writer_t* writer, const char* labels) {
  if (strcmp(labels, writer->labels) != 0 &&
      gcap_events_file_write_labels(writer->file, writer->num_ranges + 1, labels)) {
    ++writer->num_ranges;
    writer->labels = labels;
  }
  return labels[0] != '\0' ? writer->num_ranges : 0;
}

// --- Calls -----------------------------------------------------------------------------------------------------------

static void write_begin(writer_t* writer) {
  static const char* const modes[] = {[GCAP_CAPTURE_THREAD_LOCAL] = "thread_local",
                                      [GCAP_CAPTURE_GLOBAL] = "global",
                                      [GCAP_CAPTURE_RELAXED] = "relaxed"};
  const size_t stream = write_stream(writer, writer->capture->stream);
  fprintf(writer->file,
          "call\tn=1\tthread=1\tfunction=cudaStreamBeginCapture\tresult=0\tstream=%zu\tmode=%s\tsays=begins capture 1",
          stream, modes[writer->capture->mode]);
  if (writer->capture->label[0] != '\0') gcap_events_file_write_string(writer->file, "label", writer->capture->label);
  fputs("\n", writer->file);
}

// In the words of the simulator's log. Somebody else may have ended the capture under the scope.
static const char* says(const gcap_capture_call_record_t* call) {
  if (call->before != cudaStreamCaptureStatusActive || call->after == call->before) return "";
  return call->after == cudaStreamCaptureStatusNone ? "\tsays=ends capture 1" : "\tsays=invalidates capture 1";
}

static bool has_broken(const gcap_capture_call_record_t* call) {
  return call->before == cudaStreamCaptureStatusActive && call->after != cudaStreamCaptureStatusActive;
}

static void write_call(writer_t* writer, uint64_t number, const gcap_capture_call_record_t* call) {
  const size_t stream = write_stream(writer, call->stream);
  const uint32_t stack = write_place(writer, call);
  const uint32_t range = write_range(writer, call->label);
  fprintf(writer->file, "call\tn=%" PRIu64 "\tthread=1", number);
  gcap_events_file_write_operation(writer->file, call->operation);
  fprintf(writer->file, "\tresult=%d", (int)call->answer);
  if (stream != 0) fprintf(writer->file, "\tstream=%zu", stream);
  if (stack != 0) fprintf(writer->file, "\tstack=%" PRIu32, stack);
  if (range != 0) fprintf(writer->file, "\trange=%" PRIu32, range);
  fprintf(writer->file, "%s\n", says(call));
}

// The ring, and before it the call that broke the capture, where the ring has dropped that.
static void write_calls(writer_t* writer) {
  const gcap_capture_calls_t* calls = &writer->capture->calls;
  const uint64_t kept = calls->noted < calls->capacity ? calls->noted : calls->capacity;
  const uint64_t dropped = calls->noted - kept;
  bool has_culprit = calls->culprit.operation[0] == '\0';
  for (uint64_t i = dropped; i < calls->noted && !has_culprit; ++i) {
    has_culprit = has_broken(&calls->ring[i % calls->capacity]);
  }
  if (!has_culprit) write_call(writer, 2, &calls->culprit);
  for (uint64_t i = dropped; i < calls->noted; ++i) write_call(writer, i + 2, &calls->ring[i % calls->capacity]);
  if (dropped == 0) return;
  fprintf(writer->file, "note\ttext=the ledger kept %s the newest %" PRIu64 " of %" PRIu64 " calls (ledger_calls)\n",
          has_culprit ? "only" : "the call that broke the capture, and", kept, calls->noted);
}

static void write_end(writer_t* writer) {
  const gcap_capture_t* capture = writer->capture;
  if (!capture->has_ended) {
    fputs("note\ttext=the capture had not ended when its ledger was written\n", writer->file);
    return;
  }
  fprintf(writer->file,
          "call\tn=%" PRIu64 "\tthread=1\tfunction=cudaStreamEndCapture\tresult=%d\tstream=%zu\tsays=ends capture 1\n",
          capture->calls.noted + 2, (int)capture->end_answer, write_stream(writer, capture->stream));
  fputs("end\tt=0\n", writer->file);
}

// --- The file --------------------------------------------------------------------------------------------------------

static gcap_status_t write_file(const gcap_capture_t* capture, const char* path) {
  writer_t writer = {.capture = capture, .labels = ""};
  GCAP_RETURN_IF_ERROR(gcap_events_file_open(path, &writer.file));
  write_begin(&writer);
  write_calls(&writer);
  write_end(&writer);
  return gcap_events_file_close(writer.file, path);
}

static gcap_status_t check_can_write(const gcap_capture_t* capture) {
  if (capture == NULL || !pthread_equal(capture->owner, pthread_self())) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "gcap_capture_write_events: capture is %s; only the thread that began it "
                       "can write its events",
                       capture == NULL ? "NULL" : "another thread's");
  }
  if (capture->calls.capacity != 0) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "gcap_capture_write_events: the scope has no ledger: its ledger_calls is 0, expected at least 1");
}

gcap_status_t gcap_capture_write_events(const gcap_capture_t* capture, const char* path) {
  GCAP_RETURN_IF_NULL(path);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_ERROR(check_can_write(capture));
  int cancel_state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  gcap_status_t status = write_file(capture, path);
  pthread_setcancelstate(cancel_state, NULL);
  return status;
}
