// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The report for a terminal: twenty lines, the culprit first.
//
// The idea: who reads it wants one thing, the call to change; so the worst finding has up to nine lines and the rest
// share what is left. Lines are promised before they are written: first what must be said of the recording itself, then
// findings, then device times. Texts of the program never move the cursor: control characters become '?'. Locking:
// none.
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "doctor/report/graph_view.h"
#include "doctor/report/json_text.h"
#include "doctor/report/names.h"
#include "doctor/report/report.h"

enum {
  kMaxLines = 20,
  kMaxLine = 400,  // characters; a name of a template is cut
  kMaxNotes = 2,
  kMaxCaptures = 5,  // of a healthy recording
  kMaxCosts = 5,
};

typedef struct page {
  FILE* out;
  bool colour;
  const gcap_doctor_diagnosis_t* diagnosis;
  const gcap_doctor_recording_t* recording;
  const gcap_doctor_graph_views_t* views;
  gcap_doctor_heap_t* heap;
  unsigned left;  // lines
} page_t;

// --- Lines -----------------------------------------------------------------------------------------------------------

static const char* const kBold = "\033[1m";
static const char* const kDim = "\033[2m";
static const char* const kRed = "\033[1;31m";
static const char* const kYellow = "\033[1;33m";
static const char* const kGreen = "\033[1;32m";

static const char* colour_of(gcap_doctor_severity_t severity) {
  if (severity == GCAP_DOCTOR_SEVERITY_ERROR) return kRed;
  return severity == GCAP_DOCTOR_SEVERITY_WARNING ? kYellow : kBold;
}

static void put(page_t* page, const char* colour, const char* label, const char* format, ...)
    __attribute__((format(printf, 4, 5)));

// One line: a label of eight columns in a colour, and a text. Nothing, once the lines are used up.
static void put(page_t* page, const char* colour, const char* label, const char* format, ...) {
  if (page->left == 0) return;
  --page->left;
  char* text = NULL;
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  text = gcap_doctor_heap_alloc(page->heap, (size_t)(length > 0 ? length : 0) + 1);
  va_start(args, format);
  vsnprintf(text, (size_t)(length > 0 ? length : 0) + 1, format, args);
  va_end(args);
  bool is_head = strcmp(label, "gcap-doctor:") == 0;
  fprintf(page->out, "%s%s", is_head ? "" : "  ", page->colour ? colour : "");
  fprintf(page->out, is_head ? "%s" : "%-8s", label);
  fprintf(page->out, "%s ", page->colour ? "\033[0m" : "");
  if (is_head && page->colour) fputs(kBold, page->out);
  gcap_doctor_utf8_write_clean(page->out, text, kMaxLine);
  if (is_head && page->colour) fputs("\033[0m", page->out);
  fputc('\n', page->out);
}

// --- Places ----------------------------------------------------------------------------------------------------------

static const gcap_doctor_event_call_t* call_of(const page_t* page, uint32_t call) {
  return call < page->recording->num_calls ? &page->recording->calls[call] : NULL;
}

// The Python line of a call, or its C frame; "" if neither is known.
static const char* place_of(page_t* page, uint32_t call) {
  const uint32_t frame = gcap_doctor_name_place(page->recording, call);
  return gcap_doctor_name_frame(page->heap, page->recording, frame);
}

static const char* times(page_t* page, uint64_t count) {
  return count > 1 ? gcap_doctor_heap_print(page->heap, " (%" PRIu64 " times)", count) : "";
}

// " (graph id 3)": what the program calls the work of a capture.
static const char* work_of(page_t* page, const gcap_doctor_captured_t* capture) {
  const char* work = gcap_doctor_name_work(page->recording, capture);
  return work != NULL ? gcap_doctor_heap_print(page->heap, " (%s)", work) : "";
}

// --- The worst finding -----------------------------------------------------------------------------------------------

static void put_head(page_t* page, const gcap_doctor_finding_t* finding) {
  const gcap_doctor_diagnosis_t* diagnosis = page->diagnosis;
  const gcap_doctor_event_call_t* call = call_of(page, finding->call);
  const char* colour = colour_of(finding->severity);
  bool is_culprit =
      finding->kind == GCAP_DOCTOR_FINDING_CULPRIT && call != NULL && finding->capture < diagnosis->num_captures;
  if (!is_culprit) {
    put(page, colour, "gcap-doctor:", "%s%s", finding->sentence, times(page, finding->count));
    return;
  }
  const char* how = finding->is_certain ? "broke" : "broke, probably";
  const char* name = gcap_doctor_name_call(call->function);
  const char* work = work_of(page, &diagnosis->captures[finding->capture]);
  if (call->result != 0) {
    put(page, colour, "gcap-doctor:", "capture %" PRIu32 "%s %s: %s answered %s%s", finding->capture + 1, work, how,
        name, gcap_doctor_name_result(page->heap, call->result), times(page, finding->count));
  } else {
    put(page, colour, "gcap-doctor:", "capture %" PRIu32 "%s %s: %s, which answered 0; its end answered %s%s",
        finding->capture + 1, work, how, name,
        gcap_doctor_name_result(page->heap, diagnosis->captures[finding->capture].result), times(page, finding->count));
  }
  put(page, kDim, "what", "%s", finding->sentence);
}

// What the driver's own log says of the call: its first line.
static void put_log(page_t* page, uint32_t index) {
  const gcap_doctor_event_call_t* call = call_of(page, index);
  if (call == NULL || call->log == NULL) return;
  put(page, kDim, "driver", "%.*s", (int)strcspn(call->log, "\n"), call->log);
}

static void put_stack(page_t* page, uint32_t call) {
  const gcap_doctor_recording_t* recording = page->recording;
  if (call_of(page, call) == NULL) return;
  uint32_t stack = recording->calls[call].stack;
  if (stack >= recording->num_stacks) return;
  uint32_t python = gcap_doctor_recording_user_frame(recording, stack);
  uint32_t innermost = gcap_doctor_recording_python_frame(recording, stack);
  uint32_t c = gcap_doctor_recording_c_frame(recording, stack);
  if (python != GCAP_DOCTOR_NONE) {
    put(page, kDim, "Python", "%s", gcap_doctor_name_frame(page->heap, recording, python));
  } else if (recording->stacks[stack].why != NULL) {
    put(page, kDim, "Python", "no stack: %s", recording->stacks[stack].why);
  }
  if (innermost != python) {
    put(page, kDim, "through", "%s", gcap_doctor_name_frame(page->heap, recording, innermost));
  }
  if (c != GCAP_DOCTOR_NONE) put(page, kDim, "C", "%s", gcap_doctor_name_frame(page->heap, recording, c));
}

static void put_thread(page_t* page, const gcap_doctor_finding_t* finding) {
  const gcap_doctor_event_call_t* call = call_of(page, finding->call);
  if (call == NULL || call->thread == GCAP_DOCTOR_NONE) return;
  const char* thread = gcap_doctor_name_thread(page->heap, page->recording, call->thread);
  if (finding->capture >= page->diagnosis->num_captures) {
    put(page, kDim, "thread", "%s", thread);
    return;
  }
  const gcap_doctor_captured_t* capture = &page->diagnosis->captures[finding->capture];
  const char* begun = place_of(page, capture->begin);
  const char* at = begun[0] != '\0' ? ", capture begun at " : "";
  if (capture->thread == call->thread) {
    put(page, kDim, "thread", "%s (the capturing thread)%s%s", thread, at, begun);
  } else {
    put(page, kDim, "thread", "%s, while %s captures%s%s", thread,
        gcap_doctor_name_thread(page->heap, page->recording, capture->thread), at, begun);
  }
}

// The other places of a finding: where memory was allocated, and where it was freed.
static void put_places(page_t* page, const gcap_doctor_finding_t* finding) {
  for (size_t i = 0; i < finding->num_places; ++i) {
    const char* place = place_of(page, finding->places[i].call);
    if (place[0] != '\0') put(page, kDim, finding->places[i].what, "%s", place);
  }
}

static void put_worst(page_t* page, const gcap_doctor_finding_t* finding) {
  put_head(page, finding);
  put_log(page, finding->call);
  put_stack(page, finding->call);
  put_thread(page, finding);
  put_places(page, finding);
  const gcap_rule_t* rule = finding->rule;
  if (rule != NULL) put(page, kDim, "rule", "%s: %s", rule->id, rule->situation);
  const char* remedy = gcap_doctor_name_remedy(finding);
  if (remedy != NULL) put(page, kGreen, "remedy", "%s", remedy);
  if (rule != NULL) {
    put(page, kDim, "page", "%s (gcap-doctor explain --rule %s prints it)", gcap_doctor_name_page(page->heap, rule),
        rule->id);
  }
}

// --- The other findings ----------------------------------------------------------------------------------------------

static void put_other(page_t* page, const gcap_doctor_finding_t* finding, bool has_two_lines) {
  const char* place = place_of(page, finding->call);
  const char* remedy = gcap_doctor_name_remedy(finding);
  bool is_placed = place[0] != '\0';
  put(page, colour_of(finding->severity), gcap_doctor_name_severity(finding->severity), "%s%s%s%s%s", finding->sentence,
      times(page, finding->count), is_placed && !has_two_lines ? " [" : "", is_placed && !has_two_lines ? place : "",
      is_placed && !has_two_lines ? "]" : "");
  if (!has_two_lines || (!is_placed && remedy == NULL)) return;
  put(page, kDim, "", "%s%s%s%s", is_placed ? "at " : "", place, is_placed && remedy != NULL ? "; remedy: " : "",
      remedy != NULL ? remedy : "");
}

// All but the first, in that many lines.
static void put_others(page_t* page, unsigned lines) {
  const gcap_doctor_diagnosis_t* diagnosis = page->diagnosis;
  size_t count = diagnosis->num_findings - 1;
  bool has_two_lines = 2 * count <= lines;
  size_t shown = count <= lines ? count : lines - 1;
  for (size_t i = 0; i < shown; ++i) put_other(page, &diagnosis->findings[i + 1], has_two_lines);
  if (shown < count) {
    put(page, kDim, "", "%s: --json or --html", gcap_doctor_name_count(page->heap, count - shown, "more finding"));
  }
}

// --- Device times ----------------------------------------------------------------------------------------------------

// The graph that was replayed most, of those with times; NULL.
static const gcap_doctor_graph_view_t* most_replayed(const page_t* page) {
  const gcap_doctor_graph_view_t* most = NULL;
  for (size_t i = 0; i < page->views->count; ++i) {
    const gcap_doctor_graph_view_t* view = &page->views->items[i];
    if (view->ns != 0 && (most == NULL || view->replays > most->replays)) most = view;
  }
  return most;
}

static gcap_doctor_grouping_t best_grouping(const gcap_doctor_graph_view_t* view) {
  if (view->has_labels) return GCAP_DOCTOR_BY_LABEL;
  for (uint32_t i = 0; i < view->num_nodes; ++i) {
    if (view->nodes[i].python_frame != GCAP_DOCTOR_NONE) return GCAP_DOCTOR_BY_PYTHON_LINE;
  }
  return GCAP_DOCTOR_BY_KERNEL;
}

// Labels are compared with the whole launch, which is more than its nodes, or less where nodes run at once.
static bool has_whole(const gcap_doctor_graph_view_t* view) { return view->has_labels && view->whole_ns != 0; }

static unsigned count_cost_lines(const gcap_doctor_graph_view_t* view) {
  if (view == NULL) return 0;
  uint32_t groups = view->num_groups[best_grouping(view)];
  return 1 + (groups < kMaxCosts ? groups : kMaxCosts) + has_whole(view);
}

// The group of a line: the most costly first, and in the last line what has no label, where there is no room for it.
static const gcap_doctor_view_group_t* cost_at(const gcap_doctor_graph_view_t* view, unsigned line, unsigned lines) {
  const gcap_doctor_view_group_t* groups = view->groups[best_grouping(view)];
  for (uint32_t i = lines; line + 1 == lines && i < view->num_groups[GCAP_DOCTOR_BY_LABEL]; ++i) {
    const gcap_doctor_view_group_t* group = &view->groups[GCAP_DOCTOR_BY_LABEL][i];
    if (view->has_labels && view->nodes[group->example].range == GCAP_DOCTOR_NONE) return group;
  }
  return &groups[line];
}

static void put_cost(page_t* page, uint64_t ns, uint64_t of_ns, const char* sign, const char* name) {
  put(page, kDim, "", "%s%3" PRIu64 " %%  %s%-8s %s", sign, (ns * 200 + of_ns) / (2 * of_ns), sign,
      gcap_doctor_name_ns(page->heap, ns), name);
}

static void put_costs(page_t* page, const gcap_doctor_graph_view_t* view, unsigned lines) {
  const uint64_t all_ns = has_whole(view) ? view->whole_ns : view->ns;
  const unsigned groups = lines - 1 - has_whole(view);
  put(page, kBold, "times", "graph %" PRIu32 ", %s, %s of device time each; by %s:", view->graph,
      gcap_doctor_name_count(page->heap, view->replays, "replay"), gcap_doctor_name_ns(page->heap, all_ns),
      gcap_doctor_grouping_name(best_grouping(view)));
  for (unsigned i = 0; i < groups; ++i) {
    const gcap_doctor_view_group_t* group = cost_at(view, i, groups);
    put_cost(page, group->ns, all_ns, "",
             gcap_doctor_heap_print(page->heap, "%s (%s)", group->name,
                                    gcap_doctor_name_count(page->heap, group->count, "node")));
  }
  if (!has_whole(view)) return;
  if (view->whole_ns >= view->ns) {
    put_cost(page, view->whole_ns - view->ns, all_ns, "", "(between nodes)");
  } else {
    put_cost(page, view->ns - view->whole_ns, all_ns, "-", "(nodes that ran at once)");
  }
}

// --- The recording itself --------------------------------------------------------------------------------------------

// The recorder's note that it stopped before the program did; NULL.
static const char* stop_of(const gcap_doctor_recording_t* recording) {
  for (size_t i = 0; i < recording->num_notes; ++i) {
    const char* note = recording->notes[i];
    if (strstr(note, "recording") != NULL && strstr(note, "stopped") != NULL) return note;
  }
  return NULL;
}

// A recorder that stopped by itself may not have seen the program's end.
static bool is_cut_off(const gcap_doctor_recording_t* recording) {
  return !recording->ended && strcmp(recording->source, "events") == 0 && recording->num_calls != 0 &&
         stop_of(recording) == NULL;
}

// The notes beside that of the stop.
static size_t count_notes(const gcap_doctor_recording_t* recording) {
  return recording->num_notes - (stop_of(recording) != NULL);
}

static unsigned count_tail_lines(const gcap_doctor_recording_t* recording) {
  unsigned notes = count_notes(recording) < kMaxNotes ? (unsigned)count_notes(recording) : kMaxNotes;
  return (recording->damage.lines != 0) + is_cut_off(recording) + (stop_of(recording) != NULL) + notes;
}

static void put_notes(page_t* page) {
  const gcap_doctor_recording_t* recording = page->recording;
  const char* stop = stop_of(recording);
  const size_t count = count_notes(recording);
  if (stop != NULL) put(page, kYellow, "stopped", "%s", stop);
  for (size_t i = 0, shown = 0; i < recording->num_notes && shown < kMaxNotes; ++i) {
    if (recording->notes[i] == stop) continue;
    size_t rest = ++shown == kMaxNotes ? count - kMaxNotes : 0;
    const char* more = rest != 0 ? gcap_doctor_heap_print(page->heap, " (%zu more: --json)", rest) : "";
    put(page, kDim, "note", "%s%s", recording->notes[i], more);
  }
}

static void put_tail(page_t* page) {
  const gcap_doctor_recording_t* recording = page->recording;
  if (recording->damage.lines != 0) {
    put(page, kYellow, "damage", "%s could not be read; the first is line %" PRIu64 ": %s",
        gcap_doctor_name_count(page->heap, recording->damage.lines, "line"), recording->damage.first,
        recording->damage.reason != NULL ? recording->damage.reason : "no reason is known");
  }
  if (is_cut_off(recording)) {
    put(page, kYellow, "cut off",
        "the recording has no end: the program was ended by a signal or _exit, crashed, or still runs");
  }
  put_notes(page);
}

// --- A recording without findings ------------------------------------------------------------------------------------

static void put_healthy(page_t* page) {
  const gcap_doctor_diagnosis_t* diagnosis = page->diagnosis;
  size_t graphs = 0;
  for (size_t i = 0; i < diagnosis->num_captures; ++i) graphs += diagnosis->captures[i].graph != GCAP_DOCTOR_NONE;
  if (gcap_doctor_name_unrecorded(page->recording) != NULL) {
    // The note says why; nothing is known to be healthy.
    put(page, kYellow, "gcap-doctor:", "no calls were recorded");
    return;
  }
  put(page, kGreen, "gcap-doctor:", "no finding: %s, %s, %s",
      gcap_doctor_name_count(page->heap, diagnosis->num_captures, "capture"),
      gcap_doctor_name_count(page->heap, graphs, "graph"),
      gcap_doctor_name_count(page->heap, page->views->replays, "replay"));
  for (size_t i = 0; i < diagnosis->num_captures && i < kMaxCaptures; ++i) {
    const gcap_doctor_captured_t* capture = &diagnosis->captures[i];
    const char* begun = place_of(page, capture->begin);
    put(page, kDim, "capture", "%zu%s: %s, %s%s%s", i + 1, work_of(page, capture),
        gcap_doctor_name_count(page->heap, capture->num_nodes, "node"),
        gcap_doctor_name_count(page->heap, capture->replays, "replay"), begun[0] != '\0' ? ", begun at " : "", begun);
  }
}

static void write_page(page_t* page) {
  const gcap_doctor_diagnosis_t* diagnosis = page->diagnosis;
  const gcap_doctor_graph_view_t* costly = most_replayed(page);
  unsigned tail = count_tail_lines(page->recording), costs = count_cost_lines(costly);
  page->left = kMaxLines - tail;
  if (diagnosis->num_findings == 0) {
    put_healthy(page);
  } else {
    put_worst(page, &diagnosis->findings[0]);
    // The others get two lines each where there is room beside the times, and three at least.
    size_t wanted = 2 * (diagnosis->num_findings - 1);
    unsigned others = wanted < page->left ? (unsigned)wanted : page->left;
    unsigned least = others < 3 ? others : 3;
    if (others + costs > page->left) others = page->left > costs + least ? page->left - costs : least;
    if (others != 0) put_others(page, others);
  }
  if (costs > page->left) costs = page->left;
  if (costs > 1) put_costs(page, costly, costs);
  page->left += tail;
  put_tail(page);
}

void gcap_doctor_report_text(FILE* out, const gcap_doctor_diagnosis_t* diagnosis, bool colour) {
  gcap_doctor_heap_t heap;
  gcap_doctor_heap_init(&heap);
  gcap_doctor_graph_views_t* views = gcap_doctor_graph_views_create(diagnosis);
  page_t page = {.out = out,
                 .colour = colour,
                 .diagnosis = diagnosis,
                 .recording = diagnosis->recording,
                 .views = views,
                 .heap = &heap};
  write_page(&page);
  gcap_doctor_graph_views_destroy(views);
  gcap_doctor_heap_deinit(&heap);
}
