// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lines that tell what was found before the doctor looks: by an audit, by the driver in its log of errors, by a
// comparison of a replay with its work. Calls are numbers here; gcap_doctor_recording_finish ties them. Locking: none.
#include "doctor/events/grow.h"
#include "doctor/events/reader.h"

void gcap_doctor_read_difference(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  const char* text = gcap_doctor_fields_needed_text(fields, "text");
  const char* fault = gcap_doctor_fields_text(fields, "fault");
  const char* remedy = gcap_doctor_fields_text(fields, "remedy");
  const uint32_t call = gcap_doctor_fields_id(fields, "call");
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, differences, num_differences, difference_capacity);
  recording->differences[recording->num_differences++] =
      (gcap_doctor_event_difference_t){.call = call,
                                       .fault = gcap_doctor_reader_keep(reader, fault != NULL ? fault : ""),
                                       .text = gcap_doctor_reader_keep(reader, text),
                                       .remedy = remedy != NULL ? gcap_doctor_reader_keep(reader, remedy) : NULL};
}

void gcap_doctor_read_stale(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  gcap_doctor_event_stale_t stale = {.call = gcap_doctor_fields_id(fields, "call"),
                                     .exec = gcap_doctor_fields_needed_id(fields, "exec"),
                                     .node = gcap_doctor_fields_number(fields, "node", 0),
                                     .argument = gcap_doctor_fields_id(fields, "argument"),
                                     .size = gcap_doctor_fields_number(fields, "size", 0),
                                     .address = gcap_doctor_fields_number(fields, "address", 0),
                                     .bytes = gcap_doctor_fields_needed_number(fields, "bytes"),
                                     .pointers = gcap_doctor_fields_number(fields, "pointers", 1),
                                     .made = gcap_doctor_fields_id(fields, "made"),
                                     .freed = gcap_doctor_fields_id(fields, "freed"),
                                     .taken = gcap_doctor_fields_id(fields, "taken"),
                                     .captured = GCAP_DOCTOR_NONE};
  if (fields->reason != NULL) return;
  stale.use = gcap_doctor_reader_keep_or_empty(reader, gcap_doctor_fields_text(fields, "use"));
  stale.what = gcap_doctor_reader_keep_or_empty(reader, gcap_doctor_fields_text(fields, "what"));
  stale.kernel = gcap_doctor_reader_keep(reader, gcap_doctor_fields_text(fields, "kernel"));
  GCAP_DOCTOR_GROW(recording, stales, num_stales, stale_capacity);
  recording->stales[recording->num_stales++] = stale;
}

void gcap_doctor_read_log_of_driver(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  const uint32_t call = gcap_doctor_fields_needed_id(fields, "call");
  const char* text = gcap_doctor_fields_needed_text(fields, "text");
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, logs, num_logs, log_capacity);
  recording->logs[recording->num_logs++] =
      (gcap_doctor_event_log_t){.call = call, .text = gcap_doctor_reader_keep(reader, text)};
}

void gcap_doctor_read_shared(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  const gcap_doctor_event_shared_t shared = {
      .call = gcap_doctor_fields_id(fields, "call"),
      .exec = gcap_doctor_fields_needed_id(fields, "exec"),
      .thread = gcap_doctor_reader_look_up(&reader->threads, gcap_doctor_fields_id(fields, "thread"))};
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, shared, num_shared, shared_capacity);
  recording->shared[recording->num_shared++] = shared;
}

void gcap_doctor_read_execs(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  const gcap_doctor_event_group_t group = {.call = gcap_doctor_fields_id(fields, "call"),
                                           .made = gcap_doctor_fields_needed_number(fields, "made"),
                                           .live = gcap_doctor_fields_needed_number(fields, "live"),
                                           .idle = gcap_doctor_fields_number(fields, "idle", 0),
                                           .nodes = gcap_doctor_fields_number(fields, "nodes", 0),
                                           .bytes = gcap_doctor_fields_number(fields, "bytes", 0),
                                           .memory = gcap_doctor_fields_number(fields, "memory", 0)};
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, groups, num_groups, group_capacity);
  recording->groups[recording->num_groups++] = group;
}
