// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The page's captures: for each its facts and a timeline, a track for each stream and each thread.
//
// The idea: a track is a drawing that stretches to the page's width, so labels are outside of it. Slices that would
// be closer than half a thousandth of the width become one, unless they differ in kind; the culprit stays alone.
#include <inttypes.h>

#include "doctor/report/html.h"
#include "doctor/report/names.h"

typedef enum slice_kind { kCall = 0, kNode, kFailed, kCulprit, kNumKinds } slice_kind_t;

static const char* const kClasses[kNumKinds] = {"s-call", "s-node", "s-failed", "s-culprit"};
static const char* const kMeanings[kNumKinds] = {"a call", "a call that made a node", "a call with an error",
                                                 "the call that broke the capture"};

// In thousandths of the width.
enum { kWidth = 1000, kHeight = 24 };
static const double kLeastWidth = 1.5, kLeastGap = 0.5;

typedef struct track {
  gcap_doctor_html_t* page;
  const gcap_doctor_captured_t* capture;
  gcap_doctor_span_t span;
  uint32_t first, last;  // calls
  // The slice that is not written yet.
  bool is_open;
  slice_kind_t kind;
  double from, to;
  uint32_t example;
  uint64_t count;
} track_t;

static slice_kind_t kind_of(const track_t* track, uint32_t index) {
  const gcap_doctor_event_call_t* call = &track->page->recording->calls[index];
  if (index == track->capture->culprit) return kCulprit;
  if (call->result != 0) return kFailed;
  return call->num_nodes != 0 ? kNode : kCall;
}

// A nested call is inside of another one, and shown where it says more than that one.
static bool is_on(const track_t* track, uint32_t index, bool is_stream, uint32_t of) {
  const gcap_doctor_event_call_t* call = &track->page->recording->calls[index];
  if ((is_stream ? call->stream : call->thread) != of) return false;
  return call->depth == 0 || call->result != 0 || index == track->capture->culprit;
}

static void flush(track_t* track) {
  gcap_doctor_html_t* page = track->page;
  if (!track->is_open || page->slices_left == 0) return;
  --page->slices_left;
  const gcap_doctor_event_call_t* call = &page->recording->calls[track->example];
  gcap_doctor_html_print(page, "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>",
                         kClasses[track->kind], track->from, track->kind >= kFailed ? 0 : 4, track->to - track->from,
                         track->kind >= kFailed ? kHeight : kHeight - 8);
  gcap_doctor_html_cut_text(page, gcap_doctor_name_call(call->function), 60);
  if (track->count > 1) {
    gcap_doctor_html_print(page, " and %" PRIu64 " calls more", track->count - 1);
  } else if (call->kernel != NULL) {
    gcap_doctor_html_print(page, " ");
    gcap_doctor_html_cut_text(page, gcap_doctor_name_kernel(page->heap, call->kernel), 60);
  }
  gcap_doctor_html_print(page, "</title></rect>\n");
  track->is_open = false;
}

static void add(track_t* track, uint32_t index) {
  const gcap_doctor_event_call_t* call = &track->page->recording->calls[index];
  gcap_doctor_span_t span = gcap_doctor_timeline_call(&track->page->timeline, index);
  if (call->count > 1 && call->since_ns < span.start_ns && track->page->timeline.has_times)
    span.start_ns = call->since_ns;
  uint64_t width = track->span.end_ns - track->span.start_ns;
  double scale = width != 0 ? (double)kWidth / (double)width : 0;
  uint64_t start = span.start_ns > track->span.start_ns ? span.start_ns - track->span.start_ns : 0;
  uint64_t end = span.end_ns > track->span.start_ns ? span.end_ns - track->span.start_ns : 0;
  double from = (double)start * scale, to = (double)end * scale;
  if (from > kWidth - kLeastWidth) from = kWidth - kLeastWidth;
  if (to > kWidth) to = kWidth;
  if (to < from + kLeastWidth) to = from + kLeastWidth;
  slice_kind_t kind = kind_of(track, index);
  if (track->is_open && track->kind == kind && kind != kCulprit && from < track->to + kLeastGap) {
    if (from < track->from) track->from = from;  // of calls that are counted since then
    if (to > track->to) track->to = to;
    track->count += call->count;
    return;
  }
  flush(track);
  track->is_open = true;
  track->kind = kind;
  track->from = from;
  track->to = to;
  track->example = index;
  track->count = call->count;
}

static void put_track(track_t* track, bool is_stream, uint32_t of, const char* name) {
  gcap_doctor_html_t* page = track->page;
  uint64_t calls = 0;
  uint32_t failed = 0;
  for (uint32_t i = track->first; i <= track->last; ++i) {
    if (!is_on(track, i, is_stream, of)) continue;
    calls += page->recording->calls[i].count;
    failed += page->recording->calls[i].result != 0;
  }
  gcap_doctor_html_print(page, "<div class=\"label\">");
  gcap_doctor_html_cut_text(page, name, 60);
  gcap_doctor_html_print(page,
                         "</div><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
                         kWidth, kHeight);
  gcap_doctor_html_cut_text(page, name, 60);
  gcap_doctor_html_print(page, ": %s, %" PRIu32 " with an error\">\n",
                         gcap_doctor_name_count(page->heap, calls, "call"), failed);
  for (uint32_t i = track->first; i <= track->last; ++i) {
    if (is_on(track, i, is_stream, of)) add(track, i);
  }
  flush(track);
  gcap_doctor_html_print(page, "</svg>\n");
}

// The tracks of streams, or of threads; returns how many are not shown.
static unsigned put_tracks(track_t* track, bool is_stream) {
  gcap_doctor_html_t* page = track->page;
  const gcap_doctor_recording_t* recording = page->recording;
  size_t count = is_stream ? recording->num_streams : recording->num_threads;
  bool* is_used = gcap_doctor_heap_alloc(page->heap, count + 1);
  for (uint32_t i = track->first; i <= track->last; ++i) {
    uint32_t of = is_stream ? recording->calls[i].stream : recording->calls[i].thread;
    if (of < count) is_used[of] = true;
  }
  unsigned shown = 0, left_off = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_used[i]) continue;
    if (shown == GCAP_DOCTOR_HTML_TRACKS) {
      ++left_off;
      continue;
    }
    ++shown;
    const char* name =
        is_stream ? gcap_doctor_name_stream(page->heap, recording, i)
                  : gcap_doctor_heap_print(page->heap, "thread %s", gcap_doctor_name_thread(page->heap, recording, i));
    put_track(track, is_stream, i, name);
  }
  return left_off;
}

static void put_timeline(gcap_doctor_html_t* page, const gcap_doctor_captured_t* capture) {
  const gcap_doctor_recording_t* recording = page->recording;
  if (capture->begin >= recording->num_calls) return;
  track_t track = {.page = page,
                   .capture = capture,
                   .span = gcap_doctor_timeline_capture(&page->timeline, capture),
                   .first = capture->begin,
                   .last = capture->end < recording->num_calls ? capture->end : (uint32_t)recording->num_calls - 1};
  gcap_doctor_html_print(page, "<div class=\"rows timeline\">\n");
  unsigned streams = put_tracks(&track, true), threads = put_tracks(&track, false);
  gcap_doctor_html_print(
      page, "<div class=\"label axis-label\"></div><div class=\"axis\"><span>begin</span><span>%s</span></div></div>\n",
      page->timeline.has_times ? gcap_doctor_name_ns(page->heap, track.span.end_ns - track.span.start_ns) : "end");
  gcap_doctor_html_print(page, "<ul class=\"legend\">");
  for (int kind = 0; kind < kNumKinds; ++kind) {
    if (kind == kCulprit && capture->culprit == GCAP_DOCTOR_NONE) continue;
    gcap_doctor_html_print(page, "<li><i class=\"%s\"></i>%s</li>", kClasses[kind], kMeanings[kind]);
  }
  gcap_doctor_html_print(page, "</ul>\n");
  if (streams + threads != 0) {
    gcap_doctor_html_print(page, "<p class=\"faint\">%u more tracks: <code>--trace</code> has them all.</p>\n",
                           streams + threads);
  }
}

static void put_fact(gcap_doctor_html_t* page, const char* term, const char* text) {
  if (text[0] == '\0') return;
  gcap_doctor_html_print(page, "<dt>%s</dt><dd>", term);
  gcap_doctor_html_text(page, text);
  gcap_doctor_html_print(page, "</dd>\n");
}

static const char* place_of(gcap_doctor_html_t* page, uint32_t call) {
  if (call >= page->recording->num_calls) return "";
  uint32_t stack = page->recording->calls[call].stack;
  uint32_t frame = gcap_doctor_recording_user_frame(page->recording, stack);
  if (frame == GCAP_DOCTOR_NONE) frame = gcap_doctor_recording_c_frame(page->recording, stack);
  return gcap_doctor_name_frame(page->heap, page->recording, frame);
}

static void put_capture(gcap_doctor_html_t* page, uint32_t index) {
  const gcap_doctor_captured_t* capture = &page->diagnosis->captures[index];
  const char* outcome = capture->outcome == GCAP_DOCTOR_OUTCOME_GRAPH    ? "ended in a graph"
                        : capture->outcome == GCAP_DOCTOR_OUTCOME_BROKEN ? "<span class=\"bad\">broken</span>"
                                                                         : "<span class=\"bad\">never ended</span>";
  gcap_doctor_html_print(
      page, "<details id=\"capture-%" PRIu32 "\"%s><summary>Capture %" PRIu32 ": %s, %s, %s</summary>\n<dl>\n",
      index + 1, index < 3 ? " open" : "", index + 1, outcome,
      gcap_doctor_name_count(page->heap, capture->num_nodes, "node"),
      gcap_doctor_name_count(page->heap, capture->replays, "replay"));
  const char* work = gcap_doctor_name_work(page->recording, capture);
  if (work != NULL) put_fact(page, "Work", work);
  put_fact(page, "Begun", place_of(page, capture->begin));
  put_fact(page, "Ended", place_of(page, capture->end));
  put_fact(page, "Thread", gcap_doctor_name_thread(page->heap, page->recording, capture->thread));
  put_fact(page, "Stream", gcap_doctor_name_stream(page->heap, page->recording, capture->stream));
  put_fact(page, "Mode", gcap_doctor_name_mode(capture->mode));
  if (capture->result != 0) put_fact(page, "Answer", gcap_doctor_name_result(page->heap, capture->result));
  if (capture->culprit != GCAP_DOCTOR_NONE) put_fact(page, "Broken at", place_of(page, capture->culprit));
  gcap_doctor_html_print(page, "</dl>\n");
  if (page->slices_left != 0) {
    put_timeline(page, capture);
  } else {
    gcap_doctor_html_print(
        page, "<p class=\"faint\">No timeline, to keep the page small: <code>--trace</code> has it.</p>\n");
  }
  gcap_doctor_html_print(page, "</details>\n");
}

void gcap_doctor_html_captures(gcap_doctor_html_t* page) {
  size_t count = page->diagnosis->num_captures;
  if (count == 0) gcap_doctor_html_print(page, "<p>No capture.</p>\n");
  for (uint32_t i = 0; i < count && i < GCAP_DOCTOR_HTML_CAPTURES; ++i) put_capture(page, i);
  if (count > GCAP_DOCTOR_HTML_CAPTURES) {
    gcap_doctor_html_print(page, "<p>%zu captures more: <code>--json</code> has them all.</p>\n",
                           count - GCAP_DOCTOR_HTML_CAPTURES);
  }
}
