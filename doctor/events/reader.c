// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The tables of ids. Ids of the file become indices here, through a table for each kind of id, since ids are small and
// dense. What lines of a ring refer to may be left out: then it is missing, and no damage. Locking: none.
#include "doctor/events/reader.h"

#include <stdlib.h>
#include <string.h>

// A recorder gives ids in order, so a larger one is damage, and must not cost memory for all below it. Not every id has
// a line: threads and streams have theirs when they first come up in a capture.
enum {
  kFreeIds = 1 << 16,
  kIdsOfLine = 64,
};

void gcap_doctor_reader_define(gcap_doctor_id_table_t* table, uint32_t id, uint32_t index) {
  if (id >= table->size) {
    size_t size = table->size != 0 ? table->size : 64;
    while (size <= id) size *= 2;
    uint32_t* moved = NULL;
    size_t capacity = 0;
    while (capacity < size) moved = gcap_doctor_heap_grow(moved, capacity, &capacity, sizeof(*moved));
    memset(moved, 0, capacity * sizeof(*moved));
    if (table->size != 0) memcpy(moved, table->indices, table->size * sizeof(*moved));
    free(table->indices);
    table->indices = moved;
    table->size = capacity;
  }
  table->indices[id] = index + 1;
}

uint32_t gcap_doctor_reader_look_up(const gcap_doctor_id_table_t* table, uint32_t id) {
  return id < table->size && table->indices[id] != 0 ? table->indices[id] - 1 : GCAP_DOCTOR_NONE;
}

bool gcap_doctor_reader_is_good_id(const gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields, uint32_t id) {
  const uint64_t most = kFreeIds + (uint64_t)kIdsOfLine * reader->line;
  if (fields->reason == NULL && id > most) fields->reason = "an id beyond any that a recorder gives";
  return fields->reason == NULL;
}

const char* gcap_doctor_reader_keep(gcap_doctor_reader_t* reader, const char* text) {
  return text != NULL ? gcap_doctor_heap_copy(&reader->recording->heap, text, strlen(text)) : NULL;
}

const char* gcap_doctor_reader_keep_or_empty(gcap_doctor_reader_t* reader, const char* text) {
  return text != NULL ? gcap_doctor_reader_keep(reader, text) : "";
}

uint32_t gcap_doctor_reader_reference(const gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields, const char* key,
                                      const gcap_doctor_id_table_t* table, uint32_t otherwise) {
  uint32_t id = gcap_doctor_fields_id(fields, key);
  if (id == GCAP_DOCTOR_NONE) return otherwise;
  uint32_t index = gcap_doctor_reader_look_up(table, id);
  if (index == GCAP_DOCTOR_NONE && fields->reason == NULL && !reader->is_in_ring)
    fields->reason = "a call of a thread, stack, stream, range or like not defined";
  return index;
}

uint32_t gcap_doctor_reader_thread_of(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields, uint32_t otherwise) {
  const uint32_t index = gcap_doctor_reader_reference(reader, fields, "thread", &reader->threads, otherwise);
  if (index != GCAP_DOCTOR_NONE || fields->reason != NULL) return index;
  const uint32_t id = gcap_doctor_fields_id(fields, "thread");
  if (id == GCAP_DOCTOR_NONE) fields->reason = "a call without a thread";
  if (!gcap_doctor_reader_is_good_id(reader, fields, id)) return GCAP_DOCTOR_NONE;
  const uint32_t added = gcap_doctor_recording_add_thread(reader->recording, id);
  gcap_doctor_reader_define(&reader->threads, id, added);
  return added;
}

void gcap_doctor_reader_note_numbers(gcap_doctor_reader_t* reader, uint64_t first, uint64_t number) {
  if (!reader->is_in_ring) {
    if (number > reader->last_before) reader->last_before = number;
  } else if (number > reader->last_before && first < reader->first_after) {
    reader->first_after = first > reader->last_before ? first : reader->last_before + 1;
  }
}

void gcap_doctor_reader_deinit(gcap_doctor_reader_t* reader) {
  free(reader->threads.indices);
  free(reader->modules.indices);
  free(reader->module_items);
  free(reader->frames.indices);
  free(reader->stacks.indices);
  free(reader->streams.indices);
  free(reader->ranges.indices);
  free(reader->execs.indices);
  free(reader->likes.indices);
  free(reader->patterns);
}
