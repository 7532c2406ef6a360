// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lines that others refer to: threads, streams, modules, frames, stacks, ranges. A stack may have the outer frames of
// another one. Locking: none.
#include <stdlib.h>
#include <string.h>

#include "doctor/events/grow.h"
#include "doctor/events/reader.h"

enum { kMostFrames = 1024 };  // of a stack that has some of another

typedef struct frames {
  const uint32_t* items;
  uint32_t count;
} frames_t;

// The frames of another stack that are a stack's outer ones; none, with a reason, where there are no such.
static frames_t rest_of(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields, const char* of, const char* from,
                        bool is_python) {
  const uint32_t id = gcap_doctor_fields_id(fields, of);
  const uint32_t index = gcap_doctor_reader_look_up(&reader->stacks, id);
  const uint64_t first = gcap_doctor_fields_number(fields, from, 0);
  if (id == GCAP_DOCTOR_NONE) return (frames_t){.count = 0};
  if (index != GCAP_DOCTOR_NONE) {
    const gcap_doctor_event_stack_t* stack = &reader->recording->stacks[index];
    const frames_t all = is_python ? (frames_t){stack->python, stack->num_python} : (frames_t){stack->c, stack->num_c};
    if (first < all.count) return (frames_t){all.items + first, all.count - (uint32_t)first};
  }
  fields->reason = "a stack with frames of one that was not defined, or that has none there";
  return (frames_t){.count = 0};
}

// "1,2,3" as indices of frames, and behind them those of another stack.
static const uint32_t* read_frames(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields, const char* key,
                                   frames_t rest, uint32_t* out_count) {
  *out_count = 0;
  const char* text = gcap_doctor_fields_text(fields, key);
  size_t count = text != NULL && text[0] != '\0';
  for (const char* c = text; count != 0 && *c != '\0'; ++c) count += *c == ',';
  if (rest.count != 0 && rest.count + count > kMostFrames) fields->reason = "a stack of more than 1024 frames";
  if (fields->reason != NULL || count + rest.count == 0) return NULL;
  uint32_t* frames = gcap_doctor_heap_alloc(&reader->recording->heap, (count + rest.count) * sizeof(*frames));
  for (size_t i = 0; i < count; ++i) {
    char* end = NULL;
    unsigned long id = strtoul(text, &end, 10);
    uint32_t index =
        id < GCAP_DOCTOR_NONE ? gcap_doctor_reader_look_up(&reader->frames, (uint32_t)id) : GCAP_DOCTOR_NONE;
    if (index == GCAP_DOCTOR_NONE || (*end != ',' && *end != '\0')) {
      fields->reason = "a stack of a frame that was not defined";
      return NULL;
    }
    frames[(*out_count)++] = index;
    text = end + 1;
  }
  if (rest.count != 0) memcpy(frames + count, rest.items, rest.count * sizeof(*frames));
  *out_count += rest.count;
  return frames;
}

void gcap_doctor_read_thread(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  uint64_t os = gcap_doctor_fields_number(fields, "os", 0);
  if (!gcap_doctor_reader_is_good_id(reader, fields, id)) return;
  uint32_t index = gcap_doctor_recording_add_thread(reader->recording, id);
  reader->recording->threads[index].os = os;
  reader->recording->threads[index].name =
      gcap_doctor_reader_keep_or_empty(reader, gcap_doctor_fields_text(fields, "name"));
  gcap_doctor_reader_define(&reader->threads, id, index);
}

static void add_frame(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields, gcap_doctor_event_frame_t frame) {
  gcap_doctor_recording_t* recording = reader->recording;
  uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  if (!gcap_doctor_reader_is_good_id(reader, fields, id)) return;
  GCAP_DOCTOR_GROW(recording, frames, num_frames, frame_capacity);
  recording->frames[recording->num_frames] = frame;
  gcap_doctor_reader_define(&reader->frames, id, (uint32_t)recording->num_frames++);
}

void gcap_doctor_read_module(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  if (!gcap_doctor_reader_is_good_id(reader, fields, id)) return;
  GCAP_DOCTOR_GROW(reader, module_items, num_modules, module_capacity);
  reader->module_items[reader->num_modules] = (gcap_doctor_loaded_module_t){
      .path = gcap_doctor_reader_keep_or_empty(reader, gcap_doctor_fields_text(fields, "path")),
      .build = gcap_doctor_reader_keep_or_empty(reader, gcap_doctor_fields_text(fields, "build"))};
  gcap_doctor_reader_define(&reader->modules, id, (uint32_t)reader->num_modules++);
}

void gcap_doctor_read_frame(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_event_frame_t frame = {.offset = gcap_doctor_fields_needed_number(fields, "offset")};
  const uint32_t loaded = gcap_doctor_fields_id(fields, "loaded");
  const uint32_t index = gcap_doctor_reader_look_up(&reader->modules, loaded);
  if (loaded != GCAP_DOCTOR_NONE && index == GCAP_DOCTOR_NONE) fields->reason = "a frame of a module not defined";
  if (index != GCAP_DOCTOR_NONE) {
    frame.module = reader->module_items[index].path;
    frame.build = reader->module_items[index].build;
  } else {
    frame.module = gcap_doctor_reader_keep(reader, gcap_doctor_fields_needed_text(fields, "module"));
  }
  frame.function = gcap_doctor_reader_keep_or_empty(reader, gcap_doctor_fields_text(fields, "function"));
  frame.file = gcap_doctor_reader_keep(reader, gcap_doctor_fields_text(fields, "file"));
  frame.line = (uint32_t)gcap_doctor_fields_number(fields, "line", 0);
  add_frame(reader, fields, frame);
}

void gcap_doctor_read_python_frame(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_event_frame_t frame = {.line = (uint32_t)gcap_doctor_fields_number(fields, "line", 0)};
  frame.file = gcap_doctor_reader_keep(reader, gcap_doctor_fields_needed_text(fields, "file"));
  frame.function = gcap_doctor_reader_keep_or_empty(reader, gcap_doctor_fields_text(fields, "function"));
  add_frame(reader, fields, frame);
}

void gcap_doctor_read_stack(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  gcap_doctor_event_stack_t stack = {.why = gcap_doctor_reader_keep(reader, gcap_doctor_fields_text(fields, "why"))};
  const frames_t c = rest_of(reader, fields, "c_of", "c_from", false);
  const frames_t python = rest_of(reader, fields, "py_of", "py_from", true);
  stack.c = read_frames(reader, fields, "c", c, &stack.num_c);
  stack.python = read_frames(reader, fields, "py", python, &stack.num_python);
  // What is shown of a C frame is its module.
  for (uint32_t i = 0; fields->reason == NULL && i < stack.num_c; ++i) {
    if (recording->frames[stack.c[i]].module == NULL) fields->reason = "a Python frame in a C stack";
  }
  for (uint32_t i = 0; fields->reason == NULL && i < stack.num_python; ++i) {
    if (recording->frames[stack.python[i]].module != NULL) fields->reason = "a C frame in a Python stack";
  }
  if (!gcap_doctor_reader_is_good_id(reader, fields, id)) return;
  GCAP_DOCTOR_GROW(recording, stacks, num_stacks, stack_capacity);
  recording->stacks[recording->num_stacks] = stack;
  gcap_doctor_reader_define(&reader->stacks, id, (uint32_t)recording->num_stacks++);
}

void gcap_doctor_read_stream(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  if (!gcap_doctor_reader_is_good_id(reader, fields, id)) return;
  uint32_t index = gcap_doctor_recording_add_stream(reader->recording, id);
  reader->recording->streams[index].what =
      gcap_doctor_reader_keep_or_empty(reader, gcap_doctor_fields_text(fields, "what"));
  gcap_doctor_reader_define(&reader->streams, id, index);
}

void gcap_doctor_read_range(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  const char* text = gcap_doctor_fields_needed_text(fields, "text");
  const uint32_t outer = gcap_doctor_reader_reference(reader, fields, "in", &reader->ranges, GCAP_DOCTOR_NONE);
  if (!gcap_doctor_reader_is_good_id(reader, fields, id)) return;
  GCAP_DOCTOR_GROW(recording, ranges, num_ranges, range_capacity);
  recording->ranges[recording->num_ranges] =
      (gcap_doctor_event_range_t){.text = gcap_doctor_reader_keep(reader, text), .outer = outer};
  gcap_doctor_reader_define(&reader->ranges, id, (uint32_t)recording->num_ranges++);
}
