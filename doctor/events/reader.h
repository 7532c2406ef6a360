// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// reader.h: a file of events while it is read: the tables of its ids, and what reads a line of each kind.
#ifndef GCAP_DOCTOR_EVENTS_READER_H_
#define GCAP_DOCTOR_EVENTS_READER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "doctor/events/fields.h"
#include "doctor/events/recording.h"

typedef struct gcap_doctor_id_table {
  uint32_t* indices;  // by id; 0 for none, else the index + 1
  size_t size;
} gcap_doctor_id_table_t;

// What calls have in common, and the node that such a call makes.
typedef struct gcap_doctor_pattern {
  gcap_doctor_event_call_t call;
  const char* type;  // NULL for none
} gcap_doctor_pattern_t;

typedef struct gcap_doctor_loaded_module {
  const char *path, *build;
} gcap_doctor_loaded_module_t;

// Zeroed, but for the recording, is the beginning of a file.
// Thread: one at a time
typedef struct gcap_doctor_reader {
  gcap_doctor_recording_t* recording;
  gcap_doctor_id_table_t threads, modules, frames, stacks, streams, ranges, execs, likes;
  gcap_doctor_loaded_module_t* module_items;
  size_t num_modules, module_capacity;
  gcap_doctor_pattern_t* patterns;
  size_t num_patterns, pattern_capacity;
  uint64_t version;
  uint64_t ring_at, segment_bytes, num_segments;  // 0 without a ring
  bool is_in_ring;
  uint64_t last_before, first_after;  // numbers of calls: the largest before the ring, and the smallest in it
  uint32_t line;
} gcap_doctor_reader_t;

// The tables; the recording stays.
void gcap_doctor_reader_deinit(gcap_doctor_reader_t* reader);

// Copies of texts, the recording's own.
const char* gcap_doctor_reader_keep(gcap_doctor_reader_t* reader, const char* text);
const char* gcap_doctor_reader_keep_or_empty(gcap_doctor_reader_t* reader, const char* text);

// --- Ids -------------------------------------------------------------------------------------------------------------

// The id is a good one.
void gcap_doctor_reader_define(gcap_doctor_id_table_t* table, uint32_t id, uint32_t index);
uint32_t gcap_doctor_reader_look_up(const gcap_doctor_id_table_t* table, uint32_t id);
// Whether the line is good so far, and a recorder may have given the id.
bool gcap_doctor_reader_is_good_id(const gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields, uint32_t id);
// An index of what a field names, `otherwise` if the field is missing.
uint32_t gcap_doctor_reader_reference(const gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields, const char* key,
                                      const gcap_doctor_id_table_t* table, uint32_t otherwise);
// The thread of a call, whose line may be left out.
uint32_t gcap_doctor_reader_thread_of(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields, uint32_t otherwise);
// A call is there, or several from the number `first` on.
void gcap_doctor_reader_note_numbers(gcap_doctor_reader_t* reader, uint64_t first, uint64_t number);

// --- Kinds of lines: each reads one, or gives the fields a reason why the line is damage -----------------------------------

// read_definitions.c: what other lines refer to.
void gcap_doctor_read_thread(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_module(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_frame(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_python_frame(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_stack(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_stream(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_range(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);

// read_calls.c
void gcap_doctor_read_like(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_call(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_raise(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);

// read_graphs.c
void gcap_doctor_read_node(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_edge(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_exec(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_clone(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_replays(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_time(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_whole(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);

// read_told.c: what somebody else found.
void gcap_doctor_read_difference(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_stale(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_log_of_driver(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_shared(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_execs(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);

// read_ring.c
void gcap_doctor_read_ring(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
void gcap_doctor_read_segment(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);

// For a call that makes a node; read_graphs.c.
void gcap_doctor_reader_add_node(gcap_doctor_recording_t* recording, gcap_doctor_event_node_t node);
void gcap_doctor_reader_add_edge(gcap_doctor_recording_t* recording, gcap_doctor_event_edge_t edge);

// --- The ring; read_ring.c -------------------------------------------------------------------------------------------

enum { GCAP_DOCTOR_MOST_SEGMENTS = 256 };  // of a ring

typedef struct gcap_doctor_segment {
  uint64_t number;
  const char* bytes;
  size_t size;
} gcap_doctor_segment_t;

// The segments of the ring, which begins where the file stands, in the order of their numbers. Returns their bytes,
// which the caller frees.
char* gcap_doctor_ring_read(gcap_doctor_reader_t* reader, FILE* file,
                            gcap_doctor_segment_t out_segments[GCAP_DOCTOR_MOST_SEGMENTS], size_t* out_count);
// What is left out between the beginning and the ring. The calls are in order.
void gcap_doctor_ring_find_gap(const gcap_doctor_reader_t* reader, gcap_doctor_recording_t* recording);

#endif  // GCAP_DOCTOR_EVENTS_READER_H_
