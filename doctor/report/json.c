// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The report for programs: one JSON object with all that was found.
//
// The idea: what the other reports leave out is here, so nothing is cut. Times are whole nanoseconds, ids of nodes are
// texts, since JSON's numbers lose digits beyond 2^53, and what is not known is null or missing as the member's
// description says. docs/doctor.md has the members. Locking: none.
#include <string.h>

#include "doctor/report/graph_view.h"
#include "doctor/report/json_text.h"
#include "doctor/report/names.h"
#include "doctor/report/report.h"

typedef struct writer {
  gcap_doctor_json_t json;
  const gcap_doctor_diagnosis_t* diagnosis;
  const gcap_doctor_recording_t* recording;
  const gcap_doctor_graph_views_t* views;
  gcap_doctor_heap_t* heap;
} writer_t;

// An id or a number from 1, null for none.
static void put_id(gcap_doctor_json_t* json, const char* key, uint32_t id) {
  if (id == GCAP_DOCTOR_NONE) {
    gcap_doctor_json_null(json, key);
  } else {
    gcap_doctor_json_number(json, key, id);
  }
}

// Captures are counted from 1, as in the other reports.
static void put_capture_number(gcap_doctor_json_t* json, const char* key, uint32_t capture) {
  put_id(json, key, capture == GCAP_DOCTOR_NONE ? GCAP_DOCTOR_NONE : capture + 1);
}

static void put_text_or_null(gcap_doctor_json_t* json, const char* key, const char* text) {
  gcap_doctor_json_text(json, key, text != NULL && text[0] != '\0' ? text : NULL);
}

// --- Calls -----------------------------------------------------------------------------------------------------------

static void put_frame(writer_t* writer, uint32_t index) {
  gcap_doctor_json_t* json = &writer->json;
  const gcap_doctor_event_frame_t* frame = &writer->recording->frames[index];
  gcap_doctor_json_open_flat(json, NULL, '{');
  if (frame->module != NULL) {
    gcap_doctor_json_text(json, "module", frame->module);
    gcap_doctor_json_hex(json, "offset", frame->offset);
    put_text_or_null(json, "symbol", frame->function);
    put_text_or_null(json, "function", gcap_doctor_name_function(writer->heap, frame->function));
  } else {
    put_text_or_null(json, "function", frame->function);
  }
  if (frame->file != NULL) {
    gcap_doctor_json_text(json, "file", frame->file);
    gcap_doctor_json_number(json, "line", frame->line);
  }
  gcap_doctor_json_close(json, '{');
}

static void put_stack(writer_t* writer, uint32_t index) {
  gcap_doctor_json_t* json = &writer->json;
  const gcap_doctor_recording_t* recording = writer->recording;
  const gcap_doctor_event_stack_t none = {0};
  const gcap_doctor_event_stack_t* stack = index < recording->num_stacks ? &recording->stacks[index] : &none;
  put_text_or_null(json, "python_line",
                   gcap_doctor_name_frame(writer->heap, recording, gcap_doctor_recording_user_frame(recording, index)));
  put_text_or_null(json, "call_site",
                   gcap_doctor_name_frame(writer->heap, recording, gcap_doctor_recording_c_frame(recording, index)));
  gcap_doctor_json_open(json, "python", '[');
  for (uint32_t i = 0; i < stack->num_python; ++i) put_frame(writer, stack->python[i]);
  gcap_doctor_json_close(json, '[');
  gcap_doctor_json_text(json, "no_python", stack->why);
  gcap_doctor_json_open(json, "c", '[');
  for (uint32_t i = 0; i < stack->num_c; ++i) put_frame(writer, stack->c[i]);
  gcap_doctor_json_close(json, '[');
}

static void put_thread(writer_t* writer, uint32_t index) {
  gcap_doctor_json_t* json = &writer->json;
  if (index >= writer->recording->num_threads) {
    gcap_doctor_json_null(json, "thread");
    return;
  }
  const gcap_doctor_event_thread_t* thread = &writer->recording->threads[index];
  gcap_doctor_json_open_flat(json, "thread", '{');
  gcap_doctor_json_number(json, "id", thread->id);
  gcap_doctor_json_number(json, "os", thread->os);
  put_text_or_null(json, "name", thread->name);
  gcap_doctor_json_close(json, '{');
}

static void put_stream(writer_t* writer, uint32_t index) {
  gcap_doctor_json_t* json = &writer->json;
  if (index >= writer->recording->num_streams) {
    gcap_doctor_json_null(json, "stream");
    return;
  }
  const gcap_doctor_event_stream_t* stream = &writer->recording->streams[index];
  gcap_doctor_json_open_flat(json, "stream", '{');
  gcap_doctor_json_number(json, "id", stream->id);
  put_text_or_null(json, "what", stream->what);
  gcap_doctor_json_close(json, '{');
}

static void put_call(writer_t* writer, const char* key, uint32_t index) {
  gcap_doctor_json_t* json = &writer->json;
  if (index >= writer->recording->num_calls) {
    gcap_doctor_json_null(json, key);
    return;
  }
  const gcap_doctor_event_call_t* call = &writer->recording->calls[index];
  gcap_doctor_json_open(json, key, '{');
  gcap_doctor_json_number(json, "number", call->number);
  gcap_doctor_json_text(json, "function", gcap_doctor_name_call(call->function));
  gcap_doctor_json_text(json, "recorded_function", call->function);
  put_text_or_null(json, "arguments", call->arguments);
  if (call->raised != NULL) gcap_doctor_json_text(json, "exception", call->raised);
  gcap_doctor_json_signed(json, "result", call->result);
  gcap_doctor_json_text(json, "result_name", gcap_rule_code_name(call->result));
  gcap_doctor_json_number(json, "depth", call->depth);
  gcap_doctor_json_number(json, "start_ns", call->start_ns);
  gcap_doctor_json_number(json, "end_ns", call->end_ns);
  if (call->count > 1) gcap_doctor_json_number(json, "repeats", call->count);
  put_thread(writer, call->thread);
  put_stream(writer, call->stream);
  if (call->kernel != NULL) gcap_doctor_json_text(json, "kernel", call->kernel);
  if (call->copy != NULL) gcap_doctor_json_text(json, "copy", call->copy);
  if (call->bytes != GCAP_DOCTOR_NO_NUMBER) gcap_doctor_json_number(json, "bytes", call->bytes);
  if (call->host != GCAP_DOCTOR_HOST_UNKNOWN) gcap_doctor_json_text(json, "host", gcap_doctor_name_host(call->host));
  if (call->says != NULL) gcap_doctor_json_text(json, "says", call->says);
  if (call->log != NULL) gcap_doctor_json_text(json, "driver_log", call->log);
  if (call->range != GCAP_DOCTOR_NONE) {
    gcap_doctor_json_text(json, "label", gcap_doctor_name_label(writer->heap, writer->recording, call->range));
  }
  put_stack(writer, call->stack);
  gcap_doctor_json_close(json, '{');
}

// --- Findings and captures -------------------------------------------------------------------------------------------

static void put_rule(writer_t* writer, const gcap_rule_t* rule) {
  gcap_doctor_json_t* json = &writer->json;
  if (rule == NULL) {
    gcap_doctor_json_null(json, "rule");
    return;
  }
  gcap_doctor_json_open(json, "rule", '{');
  gcap_doctor_json_text(json, "id", rule->id);
  gcap_doctor_json_text(json, "name", rule->name);
  gcap_doctor_json_signed(json, "code", rule->code);
  gcap_doctor_json_text(json, "code_name", rule->code_name);
  gcap_doctor_json_text(json, "situation", rule->situation);
  gcap_doctor_json_text(json, "remedy", rule->remedy);
  gcap_doctor_json_text(json, "page", gcap_doctor_name_page(writer->heap, rule));
  gcap_doctor_json_close(json, '{');
}

static void put_finding(writer_t* writer, const gcap_doctor_finding_t* finding) {
  gcap_doctor_json_t* json = &writer->json;
  gcap_doctor_json_open(json, NULL, '{');
  gcap_doctor_json_text(json, "kind", gcap_doctor_finding_kind_name(finding->kind));
  gcap_doctor_json_text(json, "severity", gcap_doctor_name_severity(finding->severity));
  gcap_doctor_json_flag(json, "certain", finding->is_certain);
  gcap_doctor_json_number(json, "count", finding->count);
  gcap_doctor_json_text(json, "sentence", finding->sentence);
  gcap_doctor_json_text(json, "remedy", finding->remedy);
  put_rule(writer, finding->rule);
  put_capture_number(json, "capture", finding->capture);
  put_call(writer, "call", finding->call);
  put_call(writer, "other", finding->other);
  gcap_doctor_json_open(json, "places", '[');
  for (size_t i = 0; i < finding->num_places; ++i) {
    gcap_doctor_json_open(json, NULL, '{');
    gcap_doctor_json_text(json, "what", finding->places[i].what);
    put_call(writer, "call", finding->places[i].call);
    gcap_doctor_json_close(json, '{');
  }
  gcap_doctor_json_close(json, '[');
  gcap_doctor_json_close(json, '{');
}

static void put_capture(writer_t* writer, uint32_t index) {
  gcap_doctor_json_t* json = &writer->json;
  const gcap_doctor_captured_t* capture = &writer->diagnosis->captures[index];
  gcap_doctor_json_open(json, NULL, '{');
  put_capture_number(json, "number", index);
  gcap_doctor_json_text(json, "label", gcap_doctor_name_work(writer->recording, capture));
  gcap_doctor_json_text(json, "outcome", gcap_doctor_name_outcome(capture->outcome));
  gcap_doctor_json_text(json, "mode", gcap_doctor_name_mode(capture->mode));
  gcap_doctor_json_signed(json, "result", capture->result);
  gcap_doctor_json_text(json, "result_name", gcap_rule_code_name(capture->result));
  put_stream(writer, capture->stream);
  put_thread(writer, capture->thread);
  put_id(json, "graph", capture->graph);
  gcap_doctor_json_number(json, "nodes", capture->num_nodes);
  put_id(json, "exec", capture->exec);
  gcap_doctor_json_number(json, "replays", capture->replays);
  put_call(writer, "begin", capture->begin);
  put_call(writer, "end", capture->end);
  put_call(writer, "culprit", capture->culprit);
  gcap_doctor_json_close(json, '{');
}

// --- Graphs ----------------------------------------------------------------------------------------------------------

static void put_groups(writer_t* writer, const char* key, const gcap_doctor_graph_view_t* view,
                       gcap_doctor_grouping_t grouping) {
  gcap_doctor_json_t* json = &writer->json;
  gcap_doctor_json_open(json, key, '[');
  for (uint32_t i = 0; i < view->num_groups[grouping]; ++i) {
    const gcap_doctor_view_group_t* group = &view->groups[grouping][i];
    gcap_doctor_json_open_flat(json, NULL, '{');
    gcap_doctor_json_text(json, "name", group->name);
    gcap_doctor_json_number(json, "nodes", group->count);
    gcap_doctor_json_number(json, "ns", group->ns);
    gcap_doctor_json_close(json, '{');
  }
  gcap_doctor_json_close(json, '[');
}

static void put_nodes(writer_t* writer, const gcap_doctor_graph_view_t* view) {
  gcap_doctor_json_t* json = &writer->json;
  const gcap_doctor_recording_t* recording = writer->recording;
  gcap_doctor_json_open(json, "nodes", '[');
  for (uint32_t i = 0; i < view->num_nodes; ++i) {
    const gcap_doctor_view_node_t* node = &view->nodes[i];
    const gcap_doctor_event_call_t* call =
        node->node->call != GCAP_DOCTOR_NONE ? &recording->calls[node->node->call] : NULL;
    gcap_doctor_json_open_flat(json, NULL, '{');
    gcap_doctor_json_hex(json, "id", node->node->id);
    gcap_doctor_json_text(json, "type", node->node->type);
    gcap_doctor_json_text(json, "name", node->names[GCAP_DOCTOR_BY_KERNEL]);
    if (call != NULL && call->kernel != NULL) gcap_doctor_json_text(json, "kernel", call->kernel);
    if (call != NULL) gcap_doctor_json_number(json, "call", call->number);
    if (node->c_frame != GCAP_DOCTOR_NONE)
      gcap_doctor_json_text(json, "call_site", node->names[GCAP_DOCTOR_BY_CALL_SITE]);
    if (node->python_frame != GCAP_DOCTOR_NONE)
      gcap_doctor_json_text(json, "python_line", node->names[GCAP_DOCTOR_BY_PYTHON_LINE]);
    if (node->range != GCAP_DOCTOR_NONE) gcap_doctor_json_text(json, "label", node->names[GCAP_DOCTOR_BY_LABEL]);
    gcap_doctor_json_number(json, "layer", node->layer);
    gcap_doctor_json_number(json, "runs", node->total_runs);
    gcap_doctor_json_number(json, "ns", node->ns);
    gcap_doctor_json_close(json, '{');
  }
  gcap_doctor_json_close(json, '[');
}

static void put_edges(writer_t* writer, const gcap_doctor_graph_view_t* view) {
  gcap_doctor_json_t* json = &writer->json;
  gcap_doctor_json_open(json, "edges", '[');
  for (uint32_t i = 0; i < view->num_edges; ++i) {
    gcap_doctor_json_open_flat(json, NULL, '[');
    gcap_doctor_json_hex(json, NULL, view->nodes[view->edges[i].from].node->id);
    gcap_doctor_json_hex(json, NULL, view->nodes[view->edges[i].to].node->id);
    gcap_doctor_json_close(json, '[');
  }
  gcap_doctor_json_close(json, '[');
}

// What is in no node is between them; where nodes run at once their sum is more than the whole.
static void put_labels(writer_t* writer, const gcap_doctor_graph_view_t* view) {
  if (!view->has_labels) return;
  put_groups(writer, "by_label", view, GCAP_DOCTOR_BY_LABEL);
  if (view->whole_ns != 0) {
    gcap_doctor_json_signed(&writer->json, "between_ns", (int64_t)view->whole_ns - (int64_t)view->ns);
  }
}

static void put_graph(writer_t* writer, const gcap_doctor_graph_view_t* view) {
  gcap_doctor_json_t* json = &writer->json;
  gcap_doctor_json_open(json, NULL, '{');
  gcap_doctor_json_number(json, "id", view->graph);
  put_capture_number(json, "capture", view->capture);
  gcap_doctor_json_number(json, "replays", view->replays);
  gcap_doctor_json_number(json, "failed_replays", view->failed_replays);
  gcap_doctor_json_number(json, "ns", view->ns);
  gcap_doctor_json_number(json, "whole_ns", view->whole_ns);
  gcap_doctor_json_number(json, "layers", view->num_layers);
  put_groups(writer, "by_kernel", view, GCAP_DOCTOR_BY_KERNEL);
  put_groups(writer, "by_call_site", view, GCAP_DOCTOR_BY_CALL_SITE);
  put_groups(writer, "by_python_line", view, GCAP_DOCTOR_BY_PYTHON_LINE);
  put_labels(writer, view);
  put_nodes(writer, view);
  put_edges(writer, view);
  gcap_doctor_json_close(json, '{');
}

// --- The whole -------------------------------------------------------------------------------------------------------

static void put_recording(writer_t* writer) {
  gcap_doctor_json_t* json = &writer->json;
  const gcap_doctor_recording_t* recording = writer->recording;
  gcap_doctor_json_text(json, "program", recording->program);
  gcap_doctor_json_text(json, "source", recording->source);
  gcap_doctor_json_number(json, "pid", recording->pid);
  gcap_doctor_json_number(json, "time", recording->unix_seconds);
  gcap_doctor_json_number(json, "driver", recording->driver);
  gcap_doctor_json_number(json, "cupti", recording->cupti);
  gcap_doctor_json_flag(json, "ended", recording->ended);
  gcap_doctor_json_number(json, "calls", gcap_doctor_recording_count_calls(recording));
  gcap_doctor_json_number(json, "replays", writer->views->replays);
  gcap_doctor_json_number(json, "failed_replays", writer->views->failed_replays);
  gcap_doctor_json_open(json, "damage", '{');
  gcap_doctor_json_number(json, "lines", recording->damage.lines);
  gcap_doctor_json_number(json, "first", recording->damage.first);
  gcap_doctor_json_text(json, "reason", recording->damage.reason);
  gcap_doctor_json_close(json, '{');
  gcap_doctor_json_open(json, "notes", '[');
  for (size_t i = 0; i < recording->num_notes; ++i) gcap_doctor_json_text(json, NULL, recording->notes[i]);
  gcap_doctor_json_close(json, '[');
}

static void put_all(writer_t* writer) {
  gcap_doctor_json_t* json = &writer->json;
  const gcap_doctor_diagnosis_t* diagnosis = writer->diagnosis;
  gcap_doctor_json_open(json, NULL, '{');
  gcap_doctor_json_text(json, "format", "gcap-doctor");
  gcap_doctor_json_number(json, "version", 1);
  put_recording(writer);
  gcap_doctor_json_open(json, "findings", '[');
  for (size_t i = 0; i < diagnosis->num_findings; ++i) put_finding(writer, &diagnosis->findings[i]);
  gcap_doctor_json_close(json, '[');
  gcap_doctor_json_open(json, "captures", '[');
  for (uint32_t i = 0; i < diagnosis->num_captures; ++i) put_capture(writer, i);
  gcap_doctor_json_close(json, '[');
  gcap_doctor_json_open(json, "graphs", '[');
  for (size_t i = 0; i < writer->views->count; ++i) put_graph(writer, &writer->views->items[i]);
  gcap_doctor_json_close(json, '[');
  gcap_doctor_json_number(json, "untied_times", writer->views->num_untied_times);
  gcap_doctor_json_close(json, '{');
}

void gcap_doctor_report_json(FILE* out, const gcap_doctor_diagnosis_t* diagnosis) {
  gcap_doctor_heap_t heap;
  gcap_doctor_heap_init(&heap);
  gcap_doctor_graph_views_t* views = gcap_doctor_graph_views_create(diagnosis);
  writer_t writer = {.diagnosis = diagnosis, .recording = diagnosis->recording, .views = views, .heap = &heap};
  gcap_doctor_json_init(&writer.json, out);
  put_all(&writer);
  gcap_doctor_graph_views_destroy(views);
  gcap_doctor_heap_deinit(&heap);
}
