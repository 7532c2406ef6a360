// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lines of graphs: nodes and edges, of which one line may tell many, executables, and what became of these. Locking:
// none.
#include "doctor/events/grow.h"
#include "doctor/events/reader.h"

enum { kMostOfLine = 1024 };  // nodes, edges or copies

void gcap_doctor_reader_add_node(gcap_doctor_recording_t* recording, gcap_doctor_event_node_t node) {
  GCAP_DOCTOR_GROW(recording, nodes, num_nodes, node_capacity);
  recording->nodes[recording->num_nodes++] = node;
}

void gcap_doctor_reader_add_edge(gcap_doctor_recording_t* recording, gcap_doctor_event_edge_t edge) {
  GCAP_DOCTOR_GROW(recording, edges, num_edges, edge_capacity);
  recording->edges[recording->num_edges++] = edge;
}

// How many nodes, edges or copies a line is for, whose ids follow each other.
static uint32_t count_of(gcap_doctor_fields_t* fields) {
  const uint64_t count = gcap_doctor_fields_number(fields, "count", 1);
  if (fields->reason == NULL && (count == 0 || count > kMostOfLine)) fields->reason = "a count beyond 1 to 1024";
  return fields->reason == NULL ? (uint32_t)count : 0;
}

void gcap_doctor_read_node(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_event_node_t node = {.graph = gcap_doctor_fields_needed_id(fields, "graph"),
                                   .id = gcap_doctor_fields_needed_number(fields, "id"),
                                   .call = gcap_doctor_fields_id(fields, "call")};
  const char* type = gcap_doctor_fields_needed_text(fields, "type");
  const uint32_t count = count_of(fields);
  if (count != 0) node.type = gcap_doctor_reader_keep(reader, type);
  for (uint32_t i = 0; i < count; ++i, ++node.id) gcap_doctor_reader_add_node(reader->recording, node);
}

void gcap_doctor_read_edge(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_event_edge_t edge = {.graph = gcap_doctor_fields_needed_id(fields, "graph"),
                                   .from = gcap_doctor_fields_needed_number(fields, "from"),
                                   .to = gcap_doctor_fields_needed_number(fields, "to")};
  const uint32_t count = count_of(fields);
  for (uint32_t i = 0; i < count; ++i, ++edge.from, ++edge.to) gcap_doctor_reader_add_edge(reader->recording, edge);
}

void gcap_doctor_read_exec(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  gcap_doctor_event_exec_t exec = {.id = gcap_doctor_fields_needed_id(fields, "id"),
                                   .graph = gcap_doctor_fields_needed_id(fields, "graph"),
                                   .call = gcap_doctor_fields_id(fields, "call")};
  if (!gcap_doctor_reader_is_good_id(reader, fields, exec.id)) return;
  GCAP_DOCTOR_GROW(recording, execs, num_execs, exec_capacity);
  recording->execs[recording->num_execs] = exec;
  gcap_doctor_reader_define(&reader->execs, exec.id, (uint32_t)recording->num_execs++);
}

// The executable that a line is about; NULL, with a reason, for one that was not defined.
static gcap_doctor_event_exec_t* exec_of(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields, const char* key) {
  uint32_t index = gcap_doctor_reader_look_up(&reader->execs, gcap_doctor_fields_needed_id(fields, key));
  if (index == GCAP_DOCTOR_NONE && fields->reason == NULL && !reader->is_in_ring) {
    fields->reason = "an executable that was not defined";
  }
  return fields->reason == NULL && index != GCAP_DOCTOR_NONE ? &reader->recording->execs[index] : NULL;
}

void gcap_doctor_read_clone(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  gcap_doctor_event_clone_t clone = {.exec = gcap_doctor_fields_needed_id(fields, "exec"),
                                     .from = gcap_doctor_fields_needed_number(fields, "from"),
                                     .to = gcap_doctor_fields_needed_number(fields, "to")};
  const uint32_t count = count_of(fields);
  for (uint32_t i = 0; i < count; ++i, ++clone.from, ++clone.to) {
    GCAP_DOCTOR_GROW(recording, clones, num_clones, clone_capacity);
    recording->clones[recording->num_clones++] = clone;
  }
}

void gcap_doctor_read_replays(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  uint64_t count = gcap_doctor_fields_needed_number(fields, "count"),
           failed = gcap_doctor_fields_number(fields, "failed", 0);
  gcap_doctor_event_exec_t* exec = exec_of(reader, fields, "exec");
  if (exec == NULL) return;
  if (exec->first_launch_line == 0 && count != 0) exec->first_launch_line = reader->line;
  exec->replays += count;
  exec->failed_replays += failed;
}

void gcap_doctor_read_time(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  gcap_doctor_event_time_t time = {.exec = gcap_doctor_fields_needed_id(fields, "exec"),
                                   .node = gcap_doctor_fields_needed_number(fields, "node"),
                                   .count = gcap_doctor_fields_needed_number(fields, "count"),
                                   .ns = gcap_doctor_fields_needed_number(fields, "ns")};
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, times, num_times, time_capacity);
  recording->times[recording->num_times++] = time;
}

void gcap_doctor_read_whole(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  uint64_t count = gcap_doctor_fields_needed_number(fields, "count"),
           ns = gcap_doctor_fields_needed_number(fields, "ns");
  gcap_doctor_event_exec_t* exec = exec_of(reader, fields, "exec");
  if (exec == NULL) return;
  exec->whole_count += count;
  exec->whole_ns += ns;
}
