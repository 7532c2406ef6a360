// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lines of calls, of what calls have in common, and of exceptions, which stand among the calls. A call is what the
// line says that it is like, but for what its own line says. Locking: none.
#include <string.h>

#include "doctor/events/grow.h"
#include "doctor/events/reader.h"

static gcap_doctor_event_mode_t mode_of(const char* text) {
  if (text == NULL) return GCAP_DOCTOR_MODE_UNKNOWN;
  if (strcmp(text, "global") == 0) return GCAP_DOCTOR_MODE_GLOBAL;
  if (strcmp(text, "thread_local") == 0) return GCAP_DOCTOR_MODE_THREAD_LOCAL;
  return strcmp(text, "relaxed") == 0 ? GCAP_DOCTOR_MODE_RELAXED : GCAP_DOCTOR_MODE_UNKNOWN;
}

static gcap_doctor_event_host_t host_of(const char* text) {
  if (text == NULL) return GCAP_DOCTOR_HOST_UNKNOWN;
  if (strcmp(text, "pinned") == 0) return GCAP_DOCTOR_HOST_PINNED;
  if (strcmp(text, "stack") == 0) return GCAP_DOCTOR_HOST_STACK;
  return strcmp(text, "pageable") == 0 ? GCAP_DOCTOR_HOST_PAGEABLE : GCAP_DOCTOR_HOST_UNKNOWN;
}

static void read_text(gcap_doctor_reader_t* reader, const gcap_doctor_fields_t* fields, const char* key,
                      const char** text) {
  const char* value = gcap_doctor_fields_text(fields, key);
  if (value != NULL) *text = gcap_doctor_reader_keep(reader, value);
}

// What a line says of a call, over what is known of the call.
static void read_pattern(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields, gcap_doctor_pattern_t* pattern) {
  gcap_doctor_event_call_t* call = &pattern->call;
  const char *mode = gcap_doctor_fields_text(fields, "mode"), *host = gcap_doctor_fields_text(fields, "host");
  call->thread = gcap_doctor_reader_thread_of(reader, fields, call->thread);
  call->stack = gcap_doctor_reader_reference(reader, fields, "stack", &reader->stacks, call->stack);
  call->stream = gcap_doctor_reader_reference(reader, fields, "stream", &reader->streams, call->stream);
  call->range = gcap_doctor_reader_reference(reader, fields, "range", &reader->ranges, call->range);
  if (gcap_doctor_fields_text(fields, "result") != NULL) call->result = (int)gcap_doctor_fields_id(fields, "result");
  call->depth = (uint32_t)gcap_doctor_fields_number(fields, "depth", call->depth);
  if (mode != NULL) call->mode = mode_of(mode);
  if (host != NULL) call->host = host_of(host);
  if (fields->reason != NULL) return;
  read_text(reader, fields, "function", &call->function);
  read_text(reader, fields, "kernel", &call->kernel);
  read_text(reader, fields, "copy", &call->copy);
  read_text(reader, fields, "status", &call->status);
  read_text(reader, fields, "update", &call->update);
  read_text(reader, fields, "arguments", &call->arguments);
  read_text(reader, fields, "says", &call->says);
  read_text(reader, fields, "label", &call->label);
  read_text(reader, fields, "type", &pattern->type);
}

// An exception stands among the calls, in their order.
void gcap_doctor_read_raise(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  const uint64_t number = gcap_doctor_fields_needed_number(fields, "n");
  const uint64_t start_ns = gcap_doctor_fields_number(fields, "t", 0);
  const uint32_t thread = gcap_doctor_reader_thread_of(reader, fields, GCAP_DOCTOR_NONE);
  const uint32_t stack = gcap_doctor_reader_reference(reader, fields, "stack", &reader->stacks, GCAP_DOCTOR_NONE);
  const uint32_t at = gcap_doctor_fields_id(fields, "call");
  const char* type = gcap_doctor_fields_needed_text(fields, "type");
  if (number >= UINT32_MAX && fields->reason == NULL) fields->reason = "a call's number beyond 32 bits";
  if (fields->reason != NULL) return;
  gcap_doctor_reader_note_numbers(reader, number, number);
  const uint32_t index = gcap_doctor_recording_add_call(reader->recording);
  gcap_doctor_event_call_t* call = &reader->recording->calls[index];
  call->number = number;
  call->start_ns = call->end_ns = start_ns;
  call->function = "raise";
  call->thread = thread;
  call->stack = stack;
  call->raised_at = at;
  call->raised = gcap_doctor_reader_keep(reader, type);
  call->arguments = gcap_doctor_reader_keep_or_empty(reader, gcap_doctor_fields_text(fields, "text"));
  call->line = reader->line;
}

static gcap_doctor_pattern_t blank_pattern(gcap_doctor_fields_t* fields) {
  gcap_doctor_fields_needed_text(fields, "function");
  gcap_doctor_fields_needed_text(fields, "result");
  return (gcap_doctor_pattern_t){.call = {.function = "",
                                          .arguments = "",
                                          .count = 1,
                                          .bytes = GCAP_DOCTOR_NO_NUMBER,
                                          .thread = GCAP_DOCTOR_NONE,
                                          .stack = GCAP_DOCTOR_NONE,
                                          .stream = GCAP_DOCTOR_NONE,
                                          .range = GCAP_DOCTOR_NONE,
                                          .raised_at = GCAP_DOCTOR_NONE,
                                          .event = GCAP_DOCTOR_NONE,
                                          .graph = GCAP_DOCTOR_NONE,
                                          .exec = GCAP_DOCTOR_NONE}};
}

void gcap_doctor_read_like(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  const uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  const uint32_t like = gcap_doctor_reader_reference(reader, fields, "like", &reader->likes, GCAP_DOCTOR_NONE);
  if (like == GCAP_DOCTOR_NONE && gcap_doctor_fields_text(fields, "like") != NULL) return;  // it is left out, or damage
  gcap_doctor_pattern_t pattern = like != GCAP_DOCTOR_NONE ? reader->patterns[like] : blank_pattern(fields);
  if (!gcap_doctor_reader_is_good_id(reader, fields, id)) return;
  read_pattern(reader, fields, &pattern);
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(reader, patterns, num_patterns, pattern_capacity);
  reader->patterns[reader->num_patterns] = pattern;
  gcap_doctor_reader_define(&reader->likes, id, (uint32_t)reader->num_patterns++);
}

// The one node that a call made, and the edge from the node so far back.
static void read_node_of_call(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields,
                              const gcap_doctor_pattern_t* pattern) {
  if (gcap_doctor_fields_text(fields, "node") == NULL) return;
  const gcap_doctor_event_node_t node = {.graph = gcap_doctor_fields_needed_id(fields, "in"),
                                         .id = gcap_doctor_fields_number(fields, "node", 0),
                                         .type = pattern->type,
                                         .call = (uint32_t)pattern->call.number};
  const uint64_t back = gcap_doctor_fields_number(fields, "back", 0);
  if (node.type == NULL || back > node.id) fields->reason = "a node without a type, or behind none";
  if (fields->reason != NULL) return;
  gcap_doctor_reader_add_node(reader->recording, node);
  if (back == 0) return;
  gcap_doctor_reader_add_edge(reader->recording,
                              (gcap_doctor_event_edge_t){.graph = node.graph, .from = node.id - back, .to = node.id});
}

// How many calls a line is for, and the number of the first one.
static uint64_t read_count(gcap_doctor_fields_t* fields, gcap_doctor_event_call_t* call) {
  const uint64_t first = gcap_doctor_fields_number(fields, "first", call->number);
  call->count = gcap_doctor_fields_number(fields, "count", 1);
  call->since_ns = gcap_doctor_fields_number(fields, "since", call->start_ns);
  const bool is_good = call->count != 0 && first <= call->number && call->count <= call->number - first + 1;
  if (!is_good && fields->reason == NULL) fields->reason = "more calls than there are numbers for";
  return first;
}

void gcap_doctor_read_call(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  const uint32_t like = gcap_doctor_reader_reference(reader, fields, "like", &reader->likes, GCAP_DOCTOR_NONE);
  if (fields->reason != NULL) return;
  if (like == GCAP_DOCTOR_NONE && gcap_doctor_fields_text(fields, "like") != NULL) return;  // it is left out
  gcap_doctor_pattern_t pattern = like != GCAP_DOCTOR_NONE ? reader->patterns[like] : blank_pattern(fields);
  gcap_doctor_event_call_t* call = &pattern.call;
  call->number = gcap_doctor_fields_needed_number(fields, "n");
  if (call->number >= UINT32_MAX && fields->reason == NULL) fields->reason = "a call's number beyond 32 bits";
  call->start_ns = gcap_doctor_fields_number(fields, "t", 0);
  call->end_ns = call->start_ns + gcap_doctor_fields_number(fields, "ns", 0);
  call->end_ns = gcap_doctor_fields_number(fields, "end", call->end_ns);
  call->event = gcap_doctor_fields_id(fields, "event");
  call->graph = gcap_doctor_fields_id(fields, "graph");
  call->exec = gcap_doctor_fields_id(fields, "exec");
  call->bytes = gcap_doctor_fields_number(fields, "bytes", GCAP_DOCTOR_NO_NUMBER);
  const uint64_t first = read_count(fields, call);
  if (fields->reason == NULL) read_pattern(reader, fields, &pattern);
  if (fields->reason == NULL) read_node_of_call(reader, fields, &pattern);
  if (fields->reason != NULL) return;
  call->line = reader->line;
  gcap_doctor_reader_note_numbers(reader, first, call->number);
  uint32_t index = gcap_doctor_recording_add_call(reader->recording);
  reader->recording->calls[index] = *call;
}
