// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The recording as a trace that Perfetto and chrome://tracing show.
//
// The idea: two processes. The program's own has a track for each thread, with its labels, its calls, and its findings
// as instants; a second, made up one has a track for each stream, with captures and, in them, the calls that were given
// the stream. Locking: none.
#include <stdlib.h>
#include <string.h>

#include "doctor/report/json_text.h"
#include "doctor/report/names.h"
#include "doctor/report/report.h"
#include "doctor/report/timeline.h"

enum { kPidOfThreads = 1, kPidOfStreams = 2 };

typedef struct tracer {
  gcap_doctor_json_t json;
  const gcap_doctor_diagnosis_t* diagnosis;
  const gcap_doctor_recording_t* recording;
  gcap_doctor_timeline_t timeline;
  gcap_doctor_heap_t* heap;
} tracer_t;

static void name_track(tracer_t* tracer, const char* what, unsigned pid, uint32_t tid, const char* name) {
  gcap_doctor_json_t* json = &tracer->json;
  gcap_doctor_json_open_flat(json, NULL, '{');
  gcap_doctor_json_text(json, "ph", "M");
  gcap_doctor_json_text(json, "name", what);
  gcap_doctor_json_number(json, "pid", pid);
  gcap_doctor_json_number(json, "tid", tid);
  gcap_doctor_json_open(json, "args", '{');
  gcap_doctor_json_text(json, "name", name);
  gcap_doctor_json_close(json, '{');
  gcap_doctor_json_close(json, '{');
}

static void name_tracks(tracer_t* tracer) {
  const gcap_doctor_recording_t* recording = tracer->recording;
  name_track(tracer, "process_name", kPidOfThreads, 0, recording->program);
  name_track(tracer, "process_name", kPidOfStreams, 0, "streams");
  for (uint32_t i = 0; i < recording->num_threads; ++i) {
    name_track(tracer, "thread_name", kPidOfThreads, recording->threads[i].id,
               gcap_doctor_name_thread(tracer->heap, recording, i));
  }
  for (uint32_t i = 0; i < recording->num_streams; ++i) {
    name_track(tracer, "thread_name", kPidOfStreams, recording->streams[i].id,
               gcap_doctor_name_stream(tracer->heap, recording, i));
  }
}

// The members that every slice has; its arguments are open afterwards.
static void open_slice(tracer_t* tracer, const char* name, const char* category, unsigned pid, uint32_t tid,
                       gcap_doctor_span_t span) {
  gcap_doctor_json_t* json = &tracer->json;
  gcap_doctor_json_open_flat(json, NULL, '{');
  gcap_doctor_json_text(json, "ph", "X");
  gcap_doctor_json_text(json, "name", name);
  gcap_doctor_json_text(json, "cat", category);
  gcap_doctor_json_number(json, "pid", pid);
  gcap_doctor_json_number(json, "tid", tid);
  gcap_doctor_json_us(json, "ts", span.start_ns);
  gcap_doctor_json_us(json, "dur", span.end_ns - span.start_ns);
  gcap_doctor_json_open(json, "args", '{');
}

static void close_slice(tracer_t* tracer) {
  gcap_doctor_json_close(&tracer->json, '{');
  gcap_doctor_json_close(&tracer->json, '{');
}

static void put_call(tracer_t* tracer, uint32_t index, unsigned pid, uint32_t tid) {
  gcap_doctor_json_t* json = &tracer->json;
  const gcap_doctor_recording_t* recording = tracer->recording;
  const gcap_doctor_event_call_t* call = &recording->calls[index];
  const char* name = gcap_doctor_name_call(call->function);
  if (call->raised != NULL) name = gcap_doctor_heap_print(tracer->heap, "raise %s", call->raised);
  if (pid == kPidOfStreams && call->kernel != NULL) name = gcap_doctor_name_kernel(tracer->heap, call->kernel);
  open_slice(tracer, name, call->result != 0 ? "failed" : "call", pid, tid,
             gcap_doctor_timeline_call(&tracer->timeline, index));
  gcap_doctor_json_number(json, "call", call->number);
  if (call->count > 1) {
    // The slice is that of the last one: those of a loop's calls would overlap, which viewers do not show.
    gcap_doctor_json_number(json, "repeats", call->count);
    gcap_doctor_json_us(json, "since", call->since_ns);
  }
  gcap_doctor_json_text(json, "result", gcap_doctor_name_result(tracer->heap, call->result));
  if (call->kernel != NULL) gcap_doctor_json_text(json, "kernel", call->kernel);
  if (call->range != GCAP_DOCTOR_NONE) {
    gcap_doctor_json_text(json, "label", gcap_doctor_name_label(tracer->heap, recording, call->range));
  }
  if (call->bytes != GCAP_DOCTOR_NO_NUMBER) gcap_doctor_json_number(json, "bytes", call->bytes);
  if (call->stream != GCAP_DOCTOR_NONE) {
    gcap_doctor_json_text(json, "stream", gcap_doctor_name_stream(tracer->heap, recording, call->stream));
  }
  const char* python =
      gcap_doctor_name_frame(tracer->heap, recording, gcap_doctor_recording_user_frame(recording, call->stack));
  const char* site =
      gcap_doctor_name_frame(tracer->heap, recording, gcap_doctor_recording_c_frame(recording, call->stack));
  if (python[0] != '\0') gcap_doctor_json_text(json, "python", python);
  if (site[0] != '\0') gcap_doctor_json_text(json, "call_site", site);
  close_slice(tracer);
}

// --- Labels ----------------------------------------------------------------------------------------------------------

enum { kMaxLabels = 32 };  // of those within one another, the innermost

// From the first call in a range to the last one, with no call of the thread outside of it between them.
typedef struct label {
  uint32_t range, thread;
  gcap_doctor_span_t span;
} label_t;

typedef struct labels {
  label_t* items;  // in the order of their beginnings
  size_t count, capacity;
  struct open {
    size_t items[kMaxLabels];  // outermost first
    size_t count;
  } * open;  // by thread
} labels_t;

// The ranges around a call, outermost first.
static size_t ranges_of(const gcap_doctor_recording_t* recording, uint32_t range, uint32_t* out_ranges) {
  size_t count = 0;
  for (; range != GCAP_DOCTOR_NONE && count < kMaxLabels; range = recording->ranges[range].outer) {
    memmove(out_ranges + 1, out_ranges, count++ * sizeof(*out_ranges));
    out_ranges[0] = range;
  }
  return count;
}

static void add_label(labels_t* labels, label_t label) {
  labels->items = gcap_doctor_heap_grow(labels->items, labels->count, &labels->capacity, sizeof(*labels->items));
  labels->items[labels->count] = label;
  struct open* open = &labels->open[label.thread];
  open->items[open->count++] = labels->count++;
}

static void label_call(tracer_t* tracer, labels_t* labels, uint32_t index) {
  uint32_t ranges[kMaxLabels + 1];
  const gcap_doctor_event_call_t* call = &tracer->recording->calls[index];
  const gcap_doctor_span_t span = gcap_doctor_timeline_call(&tracer->timeline, index);
  const size_t count = ranges_of(tracer->recording, call->range, ranges);
  struct open* open = &labels->open[call->thread];
  size_t same = 0;
  while (same < count && same < open->count && labels->items[open->items[same]].range == ranges[same]) ++same;
  open->count = same;
  for (size_t i = same; i < count; ++i) {
    add_label(labels, (label_t){.range = ranges[i], .thread = call->thread, .span = span});
  }
  for (size_t i = 0; i < count; ++i) {
    gcap_doctor_span_t* of = &labels->items[open->items[i]].span;
    if (span.end_ns > of->end_ns) of->end_ns = span.end_ns;
  }
}

static void put_labels(tracer_t* tracer) {
  const gcap_doctor_recording_t* recording = tracer->recording;
  labels_t labels = {.open = gcap_doctor_heap_alloc(tracer->heap, (recording->num_threads + 1) * sizeof(*labels.open))};
  for (uint32_t i = 0; recording->num_ranges != 0 && i < recording->num_calls; ++i) {
    if (recording->calls[i].thread != GCAP_DOCTOR_NONE) label_call(tracer, &labels, i);
  }
  for (size_t i = 0; i < labels.count; ++i) {
    const label_t* label = &labels.items[i];
    open_slice(tracer, recording->ranges[label->range].text, "label", kPidOfThreads,
               recording->threads[label->thread].id, label->span);
    close_slice(tracer);
  }
  free(labels.items);
}

// --- Calls -----------------------------------------------------------------------------------------------------------

static void put_calls(tracer_t* tracer) {
  const gcap_doctor_recording_t* recording = tracer->recording;
  for (uint32_t i = 0; i < recording->num_calls; ++i) {
    const gcap_doctor_event_call_t* call = &recording->calls[i];
    if (call->thread != GCAP_DOCTOR_NONE) put_call(tracer, i, kPidOfThreads, recording->threads[call->thread].id);
    if (call->stream != GCAP_DOCTOR_NONE) put_call(tracer, i, kPidOfStreams, recording->streams[call->stream].id);
  }
}

static void put_captures(tracer_t* tracer) {
  for (size_t i = 0; i < tracer->diagnosis->num_captures; ++i) {
    const gcap_doctor_captured_t* capture = &tracer->diagnosis->captures[i];
    if (capture->stream >= tracer->recording->num_streams) continue;
    const char* outcome = gcap_doctor_name_outcome(capture->outcome);
    open_slice(tracer, gcap_doctor_heap_print(tracer->heap, "capture %zu", i + 1), "capture", kPidOfStreams,
               tracer->recording->streams[capture->stream].id,
               gcap_doctor_timeline_capture(&tracer->timeline, capture));
    gcap_doctor_json_text(&tracer->json, "label", gcap_doctor_name_work(tracer->recording, capture));
    gcap_doctor_json_text(&tracer->json, "outcome", outcome);
    gcap_doctor_json_text(&tracer->json, "mode", gcap_doctor_name_mode(capture->mode));
    gcap_doctor_json_number(&tracer->json, "nodes", capture->num_nodes);
    gcap_doctor_json_number(&tracer->json, "replays", capture->replays);
    close_slice(tracer);
  }
}

// On the thread of its call, or across all tracks.
static void put_finding(tracer_t* tracer, const gcap_doctor_finding_t* finding) {
  gcap_doctor_json_t* json = &tracer->json;
  const gcap_doctor_recording_t* recording = tracer->recording;
  const gcap_doctor_event_call_t* call = finding->call < recording->num_calls ? &recording->calls[finding->call] : NULL;
  bool is_placed = call != NULL && call->thread != GCAP_DOCTOR_NONE;
  gcap_doctor_json_open_flat(json, NULL, '{');
  gcap_doctor_json_text(json, "ph", "i");
  gcap_doctor_json_text(json, "name", gcap_doctor_finding_kind_name(finding->kind));
  gcap_doctor_json_text(json, "cat", "finding");
  gcap_doctor_json_text(json, "s", is_placed ? "t" : "g");
  gcap_doctor_json_number(json, "pid", kPidOfThreads);
  gcap_doctor_json_number(json, "tid", is_placed ? recording->threads[call->thread].id : 0);
  gcap_doctor_json_us(json, "ts",
                      call != NULL ? gcap_doctor_timeline_call(&tracer->timeline, finding->call).start_ns : 0);
  gcap_doctor_json_open(json, "args", '{');
  gcap_doctor_json_text(json, "sentence", finding->sentence);
  gcap_doctor_json_text(json, "severity", gcap_doctor_name_severity(finding->severity));
  if (finding->rule != NULL) gcap_doctor_json_text(json, "rule", finding->rule->id);
  if (finding->remedy != NULL) gcap_doctor_json_text(json, "remedy", finding->remedy);
  gcap_doctor_json_close(json, '{');
  gcap_doctor_json_close(json, '{');
}

void gcap_doctor_report_trace(FILE* out, const gcap_doctor_diagnosis_t* diagnosis) {
  gcap_doctor_heap_t heap;
  gcap_doctor_heap_init(&heap);
  tracer_t tracer = {.diagnosis = diagnosis,
                     .recording = diagnosis->recording,
                     .timeline = gcap_doctor_timeline_of(diagnosis->recording),
                     .heap = &heap};
  gcap_doctor_json_t* json = &tracer.json;
  gcap_doctor_json_init(json, out);
  gcap_doctor_json_open(json, NULL, '{');
  gcap_doctor_json_text(json, "displayTimeUnit", "ns");
  gcap_doctor_json_open(json, "otherData", '{');
  gcap_doctor_json_text(json, "source", diagnosis->recording->source);
  gcap_doctor_json_text(json, "times", tracer.timeline.has_times ? "recorded" : "none: calls are a microsecond apart");
  gcap_doctor_json_close(json, '{');
  gcap_doctor_json_open(json, "traceEvents", '[');
  name_tracks(&tracer);
  // A viewer puts the first of two slices that begin together around the second.
  put_captures(&tracer);
  put_labels(&tracer);
  put_calls(&tracer);
  for (size_t i = 0; i < diagnosis->num_findings; ++i) put_finding(&tracer, &diagnosis->findings[i]);
  gcap_doctor_json_close(json, '[');
  gcap_doctor_json_close(json, '{');
  gcap_doctor_heap_deinit(&heap);
}
