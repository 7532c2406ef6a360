// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The report for a browser: one page that needs no other file.
//
// The idea: the page is complete without its script, which only sorts and filters, so it reads well in a mail, on paper
// and by a keyboard. Its frame, style and script are files of their own, embedded when this is compiled. What the
// program chose, names of files, threads and kernels, passes gcap_doctor_html_text; the page's policy lets no other
// script run, should that ever fail: it names the script by the hash of its text, which nothing in the page can borrow.
// Everything is limited, and says so where it was. Locking: none.
#include "doctor/report/html.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "doctor/report/json_text.h"
#include "doctor/report/names.h"
#include "doctor/report/page.inc"  // made by embed.awk
#include "doctor/report/report.h"

// --- Markup ----------------------------------------------------------------------------------------------------------

void gcap_doctor_html_print(gcap_doctor_html_t* page, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(page->out, format, args);
  va_end(args);
}

void gcap_doctor_html_cut_text(gcap_doctor_html_t* page, const char* text, unsigned most) {
  uint32_t character;
  for (unsigned i = 0; (character = gcap_doctor_utf8_next(&text)) != 0; ++i) {
    if (i == most) {
      fputs("\xe2\x80\xa6", page->out);
      return;
    }
    switch (character) {
      case '&': fputs("&amp;", page->out); break;
      case '<': fputs("&lt;", page->out); break;
      case '>': fputs("&gt;", page->out); break;
      case '"': fputs("&quot;", page->out); break;
      case '\'': fputs("&#39;", page->out); break;
      case '\n': fputc(' ', page->out); break;
      default: gcap_doctor_utf8_write(page->out, gcap_doctor_utf8_is_control(character) ? '?' : character);
    }
  }
}

void gcap_doctor_html_text(gcap_doctor_html_t* page, const char* text) {
  gcap_doctor_html_cut_text(page, text, GCAP_DOCTOR_HTML_NAME);
}

void gcap_doctor_html_open_table(gcap_doctor_html_t* page, const char* label, const char* head) {
  gcap_doctor_html_print(
      page, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table><caption>%s</caption>",
      label, label);
  gcap_doctor_html_print(page, "<thead><tr>%s</tr></thead><tbody>\n", head);
}

void gcap_doctor_html_close_table(gcap_doctor_html_t* page) {
  gcap_doctor_html_print(page, "</tbody></table></div>\n");
}

// --- Findings --------------------------------------------------------------------------------------------------------

enum { kMaxSentence = 1200 };  // sentences are ours, with names in them

static void put_item(gcap_doctor_html_t* page, const char* term, const char* class_of, const char* text) {
  gcap_doctor_html_print(page, "<dt>%s</dt><dd class=\"%s\">", term, class_of);
  gcap_doctor_html_cut_text(page, text, kMaxSentence);
  gcap_doctor_html_print(page, "</dd>\n");
}

static void put_frames(gcap_doctor_html_t* page, const uint32_t* frames, uint32_t count, uint32_t chief) {
  uint32_t most = page->frames_left < GCAP_DOCTOR_HTML_FRAMES ? page->frames_left : GCAP_DOCTOR_HTML_FRAMES;
  uint32_t shown = count < most ? count : most;
  page->frames_left -= shown;
  gcap_doctor_html_print(page, "<ol class=\"stack\">\n");
  for (uint32_t i = 0; i < shown; ++i) {
    gcap_doctor_html_print(page, frames[i] == chief ? "<li class=\"chief\">" : "<li>");
    gcap_doctor_html_text(page, gcap_doctor_name_frame(page->heap, page->recording, frames[i]));
    gcap_doctor_html_print(page, "</li>\n");
  }
  gcap_doctor_html_print(page, "</ol>\n");
  if (shown < count) {
    gcap_doctor_html_print(page, "<p class=\"faint\">and %" PRIu32 " frames more: <code>--json</code></p>\n",
                           count - shown);
  }
}

// Both stacks of a call, innermost first.
static void put_stacks(gcap_doctor_html_t* page, uint32_t call, const char* title, bool is_open) {
  const gcap_doctor_recording_t* recording = page->recording;
  if (call >= recording->num_calls || recording->calls[call].stack >= recording->num_stacks) return;
  uint32_t index = recording->calls[call].stack;
  const gcap_doctor_event_stack_t* stack = &recording->stacks[index];
  gcap_doctor_html_print(page, "<details%s><summary>%s of ", is_open ? " open" : "", title);
  gcap_doctor_html_text(page, gcap_doctor_name_call(recording->calls[call].function));
  gcap_doctor_html_print(page, "</summary><div class=\"stacks\"><div><h4>Python, innermost first</h4>\n");
  if (stack->num_python != 0) {
    put_frames(page, stack->python, stack->num_python, gcap_doctor_recording_user_frame(recording, index));
  } else {
    gcap_doctor_html_print(page, "<p class=\"faint\">");
    gcap_doctor_html_text(page, stack->why != NULL ? stack->why : "no Python stack");
    gcap_doctor_html_print(page, "</p>");
  }
  gcap_doctor_html_print(page, "</div><div><h4>C, innermost first</h4>\n");
  put_frames(page, stack->c, stack->num_c, gcap_doctor_recording_c_frame(recording, index));
  gcap_doctor_html_print(page, "</div></div></details>\n");
}

static void put_call_items(gcap_doctor_html_t* page, uint32_t index) {
  const gcap_doctor_recording_t* recording = page->recording;
  if (index >= recording->num_calls) return;
  const gcap_doctor_event_call_t* call = &recording->calls[index];
  const char* function = gcap_doctor_name_call(call->function);
  const char* driver =
      strcmp(function, call->function) != 0 ? gcap_doctor_heap_print(page->heap, " (%s)", call->function) : "";
  if (call->raised != NULL) {
    put_item(page, "Exception", "prose", gcap_doctor_heap_print(page->heap, "%s: %s", call->raised, call->arguments));
  } else {
    put_item(page, "Call", "",
             gcap_doctor_heap_print(page->heap, "%s%s answered %s", function, driver,
                                    gcap_doctor_name_result(page->heap, call->result)));
  }
  if (call->log != NULL) put_item(page, "Driver's log", "prose", call->log);
  uint32_t python = gcap_doctor_recording_user_frame(recording, call->stack);
  uint32_t c = gcap_doctor_recording_c_frame(recording, call->stack);
  if (python != GCAP_DOCTOR_NONE) put_item(page, "Python", "", gcap_doctor_name_frame(page->heap, recording, python));
  if (c != GCAP_DOCTOR_NONE) put_item(page, "C", "", gcap_doctor_name_frame(page->heap, recording, c));
  if (call->thread != GCAP_DOCTOR_NONE)
    put_item(page, "Thread", "", gcap_doctor_name_thread(page->heap, recording, call->thread));
  if (call->stream != GCAP_DOCTOR_NONE)
    put_item(page, "Stream", "", gcap_doctor_name_stream(page->heap, recording, call->stream));
}

static void put_capture_item(gcap_doctor_html_t* page, uint32_t number) {
  gcap_doctor_html_print(page, "<dt>Capture</dt><dd class=\"prose\">");
  if (number <= GCAP_DOCTOR_HTML_CAPTURES) {
    gcap_doctor_html_print(page, "<a href=\"#capture-%" PRIu32 "\">capture %" PRIu32 "</a>", number, number);
  } else {
    gcap_doctor_html_print(page, "capture %" PRIu32, number);
  }
  gcap_doctor_html_print(page, "</dd>\n");
}

static void put_finding(gcap_doctor_html_t* page, size_t index) {
  const gcap_doctor_finding_t* finding = &page->diagnosis->findings[index];
  const char* severity = gcap_doctor_name_severity(finding->severity);
  const gcap_rule_t* rule = finding->rule;
  gcap_doctor_html_print(page, "<article class=\"finding %s\" id=\"finding-%zu\"><h3><span class=\"badge\">%s</span>",
                         severity, index + 1, severity);
  gcap_doctor_html_cut_text(page, finding->sentence, kMaxSentence);
  if (finding->count > 1)
    gcap_doctor_html_print(page, " <span class=\"faint\">(%" PRIu64 " times)</span>", finding->count);
  gcap_doctor_html_print(page, "</h3>\n<dl>\n");
  put_call_items(page, finding->call);
  if (finding->capture < page->diagnosis->num_captures) put_capture_item(page, finding->capture + 1);
  if (rule != NULL) {
    put_item(page, "Rule", "prose", gcap_doctor_heap_print(page->heap, "%s: %s", rule->id, rule->situation));
  }
  const char* remedy = gcap_doctor_name_remedy(finding);
  if (remedy != NULL) put_item(page, "Remedy", "prose remedy", remedy);
  if (rule != NULL) {
    put_item(page, "Page", "",
             gcap_doctor_heap_print(page->heap, "%s, or: gcap-doctor explain --rule %s",
                                    gcap_doctor_name_page(page->heap, rule), rule->id));
  }
  if (!finding->is_certain) put_item(page, "Certain", "prose", "no: the recording shows this to be the likely cause");
  gcap_doctor_html_print(page, "</dl>\n");
  put_stacks(page, finding->call, "Stacks", index == 0);
  if (finding->num_places == 0) put_stacks(page, finding->other, "Stacks", false);
  for (size_t i = 0; i < finding->num_places; ++i) {
    const char* title = gcap_doctor_heap_print(page->heap, "Stacks, where it was %s,", finding->places[i].what);
    put_stacks(page, finding->places[i].call, title, false);
  }
  gcap_doctor_html_print(page, "</article>\n");
}

static void put_findings(gcap_doctor_html_t* page) {
  size_t count = page->diagnosis->num_findings;
  if (count == 0) gcap_doctor_html_print(page, "<p class=\"good\">No finding.</p>\n");
  for (size_t i = 0; i < count && i < GCAP_DOCTOR_HTML_FINDINGS; ++i) put_finding(page, i);
  if (count > GCAP_DOCTOR_HTML_FINDINGS) {
    gcap_doctor_html_print(page, "<p>%zu findings more: <code>--json</code> has them all.</p>\n",
                           count - GCAP_DOCTOR_HTML_FINDINGS);
  }
}

// --- Calls -----------------------------------------------------------------------------------------------------------

static void put_call(gcap_doctor_html_t* page, uint32_t index) {
  const gcap_doctor_recording_t* recording = page->recording;
  const gcap_doctor_event_call_t* call = &recording->calls[index];
  uint32_t python = gcap_doctor_recording_user_frame(recording, call->stack);
  uint32_t frame = python != GCAP_DOCTOR_NONE ? python : gcap_doctor_recording_c_frame(recording, call->stack);
  gcap_doctor_html_print(page, "<tr%s><td class=\"number\">%" PRIu64 "</td><td class=\"name\">",
                         call->result != 0 ? " class=\"failed\"" : "", call->number);
  gcap_doctor_html_text(page, gcap_doctor_name_call(call->function));
  if (call->count > 1) gcap_doctor_html_print(page, " &times; %" PRIu64, call->count);
  if (call->kernel != NULL) {
    gcap_doctor_html_print(page, "<br><span class=\"faint\">");
    gcap_doctor_html_text(page, gcap_doctor_name_kernel(page->heap, call->kernel));
    gcap_doctor_html_print(page, "</span>");
  }
  gcap_doctor_html_print(page, "</td><td class=\"number\">%d</td><td>", call->result);
  gcap_doctor_html_text(page, gcap_doctor_name_thread(page->heap, recording, call->thread));
  gcap_doctor_html_print(page, "</td><td>");
  gcap_doctor_html_text(page, gcap_doctor_name_stream(page->heap, recording, call->stream));
  gcap_doctor_html_print(page, "</td><td class=\"name\">");
  gcap_doctor_html_text(page, gcap_doctor_name_frame(page->heap, recording, frame));
  gcap_doctor_html_print(page, "</td></tr>\n");
}

// Half of the rows are for calls that failed, wherever they are, the others for the first calls.
static void put_calls(gcap_doctor_html_t* page) {
  const gcap_doctor_recording_t* recording = page->recording;
  size_t failed = 0, shown = 0, shown_failed = 0;
  for (size_t i = 0; i < recording->num_calls; ++i) failed += recording->calls[i].result != 0;
  size_t most_failed = failed < GCAP_DOCTOR_HTML_CALLS / 2 ? failed : GCAP_DOCTOR_HTML_CALLS / 2;
  size_t most = GCAP_DOCTOR_HTML_CALLS - most_failed;
  gcap_doctor_html_print(page, "<details id=\"all-calls\"><summary>%s",
                         gcap_doctor_name_count(page->heap, gcap_doctor_recording_count_calls(recording), "call"));
  if (failed != 0) gcap_doctor_html_print(page, ", <span class=\"bad\">%zu with an error</span>", failed);
  gcap_doctor_html_print(page, "</summary>\n");
  if (recording->num_calls > GCAP_DOCTOR_HTML_CALLS) {
    gcap_doctor_html_print(page, "<p class=\"faint\">Shown are the first %zu", most);
    if (most_failed != 0) gcap_doctor_html_print(page, " without an error and the first %zu with one", most_failed);
    gcap_doctor_html_print(page, "; <code>--trace</code> writes all.</p>\n");
  }
  gcap_doctor_html_open_table(
      page, "Calls in the order in which they began",
      "<th class=\"number\">No.</th><th>Function</th><th class=\"number\">Result</th><th>Thread</th>"
      "<th>Stream</th><th>Place</th>");
  for (uint32_t i = 0; i < recording->num_calls; ++i) {
    bool has_failed = recording->calls[i].result != 0;
    if (has_failed ? shown_failed == most_failed : shown == most) continue;
    ++*(has_failed ? &shown_failed : &shown);
    put_call(page, i);
  }
  gcap_doctor_html_close_table(page);
  gcap_doctor_html_print(page, "</details>\n");
}

// --- The recording ---------------------------------------------------------------------------------------------------

static void put_version(gcap_doctor_html_t* page, const char* term, uint64_t version) {
  if (version != 0) put_item(page, term, "", gcap_doctor_heap_print(page->heap, "%" PRIu64, version));
}

static void put_recording(gcap_doctor_html_t* page) {
  const gcap_doctor_recording_t* recording = page->recording;
  gcap_doctor_html_print(page, "<article><dl>\n");
  put_item(page, "Program", "", recording->program);
  put_item(page, "Source", "prose", recording->source);
  put_version(page, "Process", recording->pid);
  put_version(page, "Driver", recording->driver);
  put_version(page, "CUPTI", recording->cupti);
  put_item(page, "End", "prose",
           recording->ended ? "the program ended in order"
                            : "none: the program was ended by a signal or _exit, crashed, or still runs");
  if (recording->damage.lines != 0) {
    put_item(page, "Damage", "prose bad",
             gcap_doctor_heap_print(
                 page->heap, "%s could not be read; the first is line %" PRIu64 ": %s",
                 gcap_doctor_name_count(page->heap, recording->damage.lines, "line"), recording->damage.first,
                 recording->damage.reason != NULL ? recording->damage.reason : "no reason is known"));
  }
  if (!page->timeline.has_times && recording->num_calls != 0) {
    put_item(page, "Times", "prose", "none: timelines give each call the same width");
  }
  for (size_t i = 0; i < recording->num_notes && i < GCAP_DOCTOR_HTML_FINDINGS; ++i) {
    put_item(page, "Note", "prose", recording->notes[i]);
  }
  gcap_doctor_html_print(page, "</dl></article>\n");
}

// --- The frame -------------------------------------------------------------------------------------------------------

static void put_program(gcap_doctor_html_t* page) { gcap_doctor_html_text(page, page->recording->program); }
static void put_css(gcap_doctor_html_t* page) { fputs(page_css, page->out); }
static void put_js(gcap_doctor_html_t* page) { fputs(page_js, page->out); }

static void put_verdict(gcap_doctor_html_t* page) {
  const gcap_doctor_diagnosis_t* diagnosis = page->diagnosis;
  size_t errors = 0, broken = 0;
  for (size_t i = 0; i < diagnosis->num_findings; ++i) {
    errors += diagnosis->findings[i].severity == GCAP_DOCTOR_SEVERITY_ERROR;
  }
  for (size_t i = 0; i < diagnosis->num_captures; ++i) {
    broken += diagnosis->captures[i].outcome == GCAP_DOCTOR_OUTCOME_BROKEN;
  }
  if (diagnosis->num_findings == 0) {
    gcap_doctor_html_print(page, "<span class=\"good\">No finding</span>");
  } else {
    gcap_doctor_html_print(page, "<span class=\"%s\">%s</span>", errors != 0 ? "bad" : "",
                           gcap_doctor_name_count(page->heap, diagnosis->num_findings, "finding"));
  }
  gcap_doctor_html_print(page, " in %s", gcap_doctor_name_count(page->heap, diagnosis->num_captures, "capture"));
  if (broken != 0) gcap_doctor_html_print(page, ", <span class=\"bad\">%zu broken</span>", broken);
  gcap_doctor_html_print(page, ", %s, %s", gcap_doctor_name_count(page->heap, page->views->count, "graph"),
                         gcap_doctor_name_count(page->heap, page->views->replays, "replay"));
}

static const struct {
  const char* name;
  void (*put)(gcap_doctor_html_t* page);
} kParts[] = {
    {"program", put_program},
    {"css", put_css},
    {"verdict", put_verdict},
    {"findings", put_findings},
    {"captures", gcap_doctor_html_captures},
    {"graphs", gcap_doctor_html_graphs},
    {"calls", put_calls},
    {"recording", put_recording},
    {"js", put_js},
};

// The frame, with each {{part}} in its place.
static void put_page(gcap_doctor_html_t* page) {
  const char* rest = page_html;
  for (const char* mark; (mark = strstr(rest, "{{")) != NULL;) {
    fwrite(rest, 1, (size_t)(mark - rest), page->out);
    const char* end = strstr(mark, "}}");
    for (size_t i = 0; i < sizeof(kParts) / sizeof(kParts[0]); ++i) {
      size_t length = strlen(kParts[i].name);
      if (length == (size_t)(end - mark - 2) && strncmp(mark + 2, kParts[i].name, length) == 0) kParts[i].put(page);
    }
    rest = end + 2;
  }
  fputs(rest, page->out);
}

void gcap_doctor_report_html(FILE* out, const gcap_doctor_diagnosis_t* diagnosis) {
  gcap_doctor_heap_t heap;
  gcap_doctor_heap_init(&heap);
  gcap_doctor_graph_views_t* views = gcap_doctor_graph_views_create(diagnosis);
  gcap_doctor_html_t page = {.out = out,
                             .diagnosis = diagnosis,
                             .recording = diagnosis->recording,
                             .views = views,
                             .timeline = gcap_doctor_timeline_of(diagnosis->recording),
                             .heap = &heap,
                             .groups_left = GCAP_DOCTOR_HTML_ALL_GROUPS,
                             .nodes_left = GCAP_DOCTOR_HTML_ALL_NODES,
                             .frames_left = GCAP_DOCTOR_HTML_ALL_FRAMES,
                             .slices_left = GCAP_DOCTOR_HTML_ALL_SLICES,
                             .boxes_left = GCAP_DOCTOR_HTML_ALL_BOXES};
  put_page(&page);
  gcap_doctor_graph_views_destroy(views);
  gcap_doctor_heap_deinit(&heap);
}
