// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The ring of a file that reached its limit: its segments, in the order of their numbers, and which calls are left out
// between the beginning and the oldest one. A program that died as it turned to a segment has left out the oldest one,
// too. Locking: none.
#include <stdlib.h>
#include <string.h>

#include "doctor/events/grow.h"
#include "doctor/events/reader.h"

void gcap_doctor_read_ring(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  const uint64_t at = gcap_doctor_fields_needed_number(fields, "at");
  const uint64_t size = gcap_doctor_fields_needed_number(fields, "size");
  const uint64_t count = gcap_doctor_fields_needed_number(fields, "count");
  const uint64_t most = UINT64_C(1) << 40;
  if (fields->reason == NULL &&
      (at == 0 || size == 0 || size > most || count == 0 || count > GCAP_DOCTOR_MOST_SEGMENTS)) {
    fields->reason = "a ring of no size, or of more than 256 segments of 2^40 bytes";
  }
  if (fields->reason == NULL && reader->ring_at != 0) fields->reason = "a second ring";
  if (fields->reason != NULL) return;
  reader->ring_at = at;
  reader->segment_bytes = size;
  reader->num_segments = count;
}

void gcap_doctor_read_segment(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  (void)reader;
  gcap_doctor_fields_needed_number(fields, "n");
}

// What is left of the file, but not more than the ring has.
static char* read_rest(const gcap_doctor_reader_t* reader, FILE* file, size_t* out_size) {
  enum { kChunk = 1 << 16 };
  const uint64_t most = reader->segment_bytes * reader->num_segments;
  char* bytes = NULL;
  size_t capacity = 0, size = 0, more;
  do {
    while (capacity < size + kChunk) bytes = gcap_doctor_heap_grow(bytes, capacity, &capacity, 1);
    more = fread(bytes + size, 1, most - size < kChunk ? (size_t)(most - size) : kChunk, file);
    size += more;
  } while (more != 0);
  *out_size = size;
  return bytes;
}

// The number in the first line of a segment; 0 for none.
static uint64_t number_of(const char* bytes, size_t size) {
  static const char kBegin[] = "segment\tn=";
  uint64_t number = 0;
  size_t at = strlen(kBegin);
  if (size <= at || memcmp(bytes, kBegin, at) != 0) return 0;
  for (; at < size && bytes[at] >= '0' && bytes[at] <= '9' && number < UINT64_MAX / 100; ++at) {
    number = 10 * number + (uint64_t)(bytes[at] - '0');
  }
  return at < size && bytes[at] == '\n' ? number : 0;
}

static int by_number(const void* left, const void* right) {
  const gcap_doctor_segment_t *a = left, *b = right;
  return a->number < b->number ? -1 : a->number > b->number;
}

char* gcap_doctor_ring_read(gcap_doctor_reader_t* reader, FILE* file,
                            gcap_doctor_segment_t out_segments[GCAP_DOCTOR_MOST_SEGMENTS], size_t* out_count) {
  size_t size, count = 0;
  char* bytes = read_rest(reader, file, &size);
  reader->is_in_ring = true;
  reader->first_after = UINT64_MAX;
  for (uint64_t i = 0; i < reader->num_segments && i * reader->segment_bytes < size; ++i) {
    const size_t begin = (size_t)(i * reader->segment_bytes), left = size - begin;
    gcap_doctor_segment_t segment = {.bytes = bytes + begin,
                                     .size = left < reader->segment_bytes ? left : (size_t)reader->segment_bytes};
    segment.number = number_of(segment.bytes, segment.size);
    if (segment.number != 0) out_segments[count++] = segment;
  }
  if (count != 0) qsort(out_segments, count, sizeof(*out_segments), by_number);
  const bool has_all = count == 0 || (out_segments[0].number == 1 && out_segments[count - 1].number == count);
  if (!has_all) reader->recording->reached_limit = true;
  *out_count = count;
  return bytes;
}

static void say_gap(gcap_doctor_recording_t* recording) {
  const gcap_doctor_event_call_t* calls = recording->calls;
  if (recording->left_out == 0) return;
  const gcap_doctor_event_call_t *before = &calls[recording->gap - 1], *after = &calls[recording->gap];
  GCAP_DOCTOR_GROW(recording, notes, num_notes, note_capacity);
  // Reports show the first notes.
  memmove(recording->notes + 1, recording->notes, recording->num_notes++ * sizeof(*recording->notes));
  recording->notes[0] = gcap_doctor_heap_print(
      &recording->heap,
      "the recording reached its limit: about %llu calls are left out, those between call %llu (%s, at %.3f s) and "
      "call "
      "%llu (%s, at %.3f s); what may come of that is no finding. GCAP_DOCTOR_LIMIT_MB sets another limit.",
      (unsigned long long)recording->left_out, (unsigned long long)before->number, before->function,
      (double)before->start_ns / 1e9, (unsigned long long)after->number, after->function,
      (double)after->start_ns / 1e9);
}

// The calls are in order. A recorder of version 1, and one whose write failed, left out the end.
void gcap_doctor_ring_find_gap(const gcap_doctor_reader_t* reader, gcap_doctor_recording_t* recording) {
  if (!recording->reached_limit) return;
  recording->gap = (uint32_t)recording->num_calls;
  if (!reader->is_in_ring) return;
  while (recording->gap != 0 && recording->calls[recording->gap - 1].number > reader->last_before) --recording->gap;
  if (recording->gap != 0 && recording->gap < recording->num_calls) {
    recording->left_out = reader->first_after - reader->last_before - 1;
  }
  say_gap(recording);
}
