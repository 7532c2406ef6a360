// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reads a file of events, line by line.
//
// The idea: a table says for each kind of line which function reads it; a line that its function refuses is counted,
// and the reading goes on: half a recording still has findings. Ids of the file become indices here, through a table
// for each kind of id, since ids are small and dense.
//
// A file that reached its limit has a ring behind its beginning, whose segments are read in the order of their numbers.
// What lines of the ring refer to may be left out: then it is missing, and no damage. Locking: none.
#include <stdlib.h>
#include <string.h>

#include "doctor/events/fields.h"
#include "doctor/events/grow.h"
#include "doctor/events/lines.h"
#include "doctor/events/recording.h"
#include "doctor/events/sim_log.h"

// A recorder gives ids in order, so a larger one is damage, and must not cost memory for all below it. Not every id has
// a line: threads and streams have theirs when they first come up in a capture.
enum {
  kFreeIds = 1 << 16,
  kIdsOfLine = 64,
  kMostOfLine = 1024,   // nodes, edges or copies
  kMostFrames = 1024,   // of a stack that has some of another
  kMostSegments = 256,  // of a ring
};

typedef struct id_table {
  uint32_t* indices;  // by id; 0 for none, else the index + 1
  size_t size;
} id_table_t;

typedef struct module {
  const char *path, *build;
} module_t;

// What calls have in common, and the node that such a call makes.
typedef struct pattern {
  gcap_doctor_event_call_t call;
  const char* type;  // NULL for none
} pattern_t;

typedef struct reader {
  gcap_doctor_recording_t* recording;
  id_table_t threads, modules, frames, stacks, streams, ranges, execs, likes;
  module_t* module_items;
  size_t num_modules, module_capacity;
  pattern_t* patterns;
  size_t num_patterns, pattern_capacity;
  uint64_t version;
  uint64_t ring_at, segment_bytes, num_segments;  // 0 without a ring
  bool is_in_ring;
  uint64_t last_before, first_after;  // numbers of calls: the largest before the ring, and the smallest in it
  uint32_t line;
} reader_t;

// --- Ids -------------------------------------------------------------------------------------------------------------

// The id is a good one.
static void define(id_table_t* table, uint32_t id, uint32_t index) {
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

static uint32_t look_up(const id_table_t* table, uint32_t id) {
  return id < table->size && table->indices[id] != 0 ? table->indices[id] - 1 : GCAP_DOCTOR_NONE;
}

static bool is_good_id(const reader_t* reader, gcap_doctor_fields_t* fields, uint32_t id) {
  const uint64_t most = kFreeIds + (uint64_t)kIdsOfLine * reader->line;
  if (fields->reason == NULL && id > most) fields->reason = "an id beyond any that a recorder gives";
  return fields->reason == NULL;
}

static const char* keep(reader_t* reader, const char* text) {
  return text != NULL ? gcap_doctor_heap_copy(&reader->recording->heap, text, strlen(text)) : NULL;
}

static const char* keep_or_empty(reader_t* reader, const char* text) { return text != NULL ? keep(reader, text) : ""; }

typedef struct frames {
  const uint32_t* items;
  uint32_t count;
} frames_t;

// The frames of another stack that are a stack's outer ones; none, with a reason, where there are no such.
static frames_t rest_of(reader_t* reader, gcap_doctor_fields_t* fields, const char* of, const char* from,
                        bool is_python) {
  const uint32_t id = gcap_doctor_fields_id(fields, of);
  const uint32_t index = look_up(&reader->stacks, id);
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
static const uint32_t* read_frames(reader_t* reader, gcap_doctor_fields_t* fields, const char* key, frames_t rest,
                                   uint32_t* out_count) {
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
    uint32_t index = id < GCAP_DOCTOR_NONE ? look_up(&reader->frames, (uint32_t)id) : GCAP_DOCTOR_NONE;
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

// --- Kinds -----------------------------------------------------------------------------------------------------------

static void read_first(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  const uint64_t version = gcap_doctor_fields_needed_number(fields, "version");
  if (version < 1 || version > 3) {
    fields->reason = "the version of the format is none of 1, 2 and 3";
    return;
  }
  reader->version = version;
  recording->pid = gcap_doctor_fields_number(fields, "pid", 0);
  recording->unix_seconds = gcap_doctor_fields_number(fields, "time", 0);
  recording->program = keep_or_empty(reader, gcap_doctor_fields_text(fields, "program"));
}

static void read_system(reader_t* reader, gcap_doctor_fields_t* fields) {
  reader->recording->driver = gcap_doctor_fields_number(fields, "driver", reader->recording->driver);
  reader->recording->cupti = gcap_doctor_fields_number(fields, "cupti", reader->recording->cupti);
  const char* folder = gcap_doctor_fields_text(fields, "folder");
  if (folder != NULL) reader->recording->folder = keep(reader, folder);
}

static void read_thread(reader_t* reader, gcap_doctor_fields_t* fields) {
  uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  uint64_t os = gcap_doctor_fields_number(fields, "os", 0);
  if (!is_good_id(reader, fields, id)) return;
  uint32_t index = gcap_doctor_recording_add_thread(reader->recording, id);
  reader->recording->threads[index].os = os;
  reader->recording->threads[index].name = keep_or_empty(reader, gcap_doctor_fields_text(fields, "name"));
  define(&reader->threads, id, index);
}

static void add_frame(reader_t* reader, gcap_doctor_fields_t* fields, gcap_doctor_event_frame_t frame) {
  gcap_doctor_recording_t* recording = reader->recording;
  uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  if (!is_good_id(reader, fields, id)) return;
  GCAP_DOCTOR_GROW(recording, frames, num_frames, frame_capacity);
  recording->frames[recording->num_frames] = frame;
  define(&reader->frames, id, (uint32_t)recording->num_frames++);
}

static void read_module(reader_t* reader, gcap_doctor_fields_t* fields) {
  uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  if (!is_good_id(reader, fields, id)) return;
  GCAP_DOCTOR_GROW(reader, module_items, num_modules, module_capacity);
  reader->module_items[reader->num_modules] =
      (module_t){.path = keep_or_empty(reader, gcap_doctor_fields_text(fields, "path")),
                 .build = keep_or_empty(reader, gcap_doctor_fields_text(fields, "build"))};
  define(&reader->modules, id, (uint32_t)reader->num_modules++);
}

static void read_frame(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_event_frame_t frame = {.offset = gcap_doctor_fields_needed_number(fields, "offset")};
  const uint32_t loaded = gcap_doctor_fields_id(fields, "loaded");
  const uint32_t index = look_up(&reader->modules, loaded);
  if (loaded != GCAP_DOCTOR_NONE && index == GCAP_DOCTOR_NONE) fields->reason = "a frame of a module not defined";
  if (index != GCAP_DOCTOR_NONE) {
    frame.module = reader->module_items[index].path;
    frame.build = reader->module_items[index].build;
  } else {
    frame.module = keep(reader, gcap_doctor_fields_needed_text(fields, "module"));
  }
  frame.function = keep_or_empty(reader, gcap_doctor_fields_text(fields, "function"));
  frame.file = keep(reader, gcap_doctor_fields_text(fields, "file"));
  frame.line = (uint32_t)gcap_doctor_fields_number(fields, "line", 0);
  add_frame(reader, fields, frame);
}

static void read_python_frame(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_event_frame_t frame = {.line = (uint32_t)gcap_doctor_fields_number(fields, "line", 0)};
  frame.file = keep(reader, gcap_doctor_fields_needed_text(fields, "file"));
  frame.function = keep_or_empty(reader, gcap_doctor_fields_text(fields, "function"));
  add_frame(reader, fields, frame);
}

static void read_stack(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  gcap_doctor_event_stack_t stack = {.why = keep(reader, gcap_doctor_fields_text(fields, "why"))};
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
  if (!is_good_id(reader, fields, id)) return;
  GCAP_DOCTOR_GROW(recording, stacks, num_stacks, stack_capacity);
  recording->stacks[recording->num_stacks] = stack;
  define(&reader->stacks, id, (uint32_t)recording->num_stacks++);
}

static void read_stream(reader_t* reader, gcap_doctor_fields_t* fields) {
  uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  if (!is_good_id(reader, fields, id)) return;
  uint32_t index = gcap_doctor_recording_add_stream(reader->recording, id);
  reader->recording->streams[index].what = keep_or_empty(reader, gcap_doctor_fields_text(fields, "what"));
  define(&reader->streams, id, index);
}

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

// An index of what a field names, `otherwise` if the field is missing.
static uint32_t reference(const reader_t* reader, gcap_doctor_fields_t* fields, const char* key,
                          const id_table_t* table, uint32_t otherwise) {
  uint32_t id = gcap_doctor_fields_id(fields, key);
  if (id == GCAP_DOCTOR_NONE) return otherwise;
  uint32_t index = look_up(table, id);
  if (index == GCAP_DOCTOR_NONE && fields->reason == NULL && !reader->is_in_ring)
    fields->reason = "a call of a thread, stack, stream, range or like not defined";
  return index;
}

// The thread of a call, whose line may be left out.
static uint32_t thread_of(reader_t* reader, gcap_doctor_fields_t* fields, uint32_t otherwise) {
  const uint32_t index = reference(reader, fields, "thread", &reader->threads, otherwise);
  if (index != GCAP_DOCTOR_NONE || fields->reason != NULL) return index;
  const uint32_t id = gcap_doctor_fields_id(fields, "thread");
  if (id == GCAP_DOCTOR_NONE) fields->reason = "a call without a thread";
  if (!is_good_id(reader, fields, id)) return GCAP_DOCTOR_NONE;
  const uint32_t added = gcap_doctor_recording_add_thread(reader->recording, id);
  define(&reader->threads, id, added);
  return added;
}

static void read_range(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  const char* text = gcap_doctor_fields_needed_text(fields, "text");
  const uint32_t outer = reference(reader, fields, "in", &reader->ranges, GCAP_DOCTOR_NONE);
  if (!is_good_id(reader, fields, id)) return;
  GCAP_DOCTOR_GROW(recording, ranges, num_ranges, range_capacity);
  recording->ranges[recording->num_ranges] = (gcap_doctor_event_range_t){.text = keep(reader, text), .outer = outer};
  define(&reader->ranges, id, (uint32_t)recording->num_ranges++);
}

static void read_text(reader_t* reader, const gcap_doctor_fields_t* fields, const char* key, const char** text) {
  const char* value = gcap_doctor_fields_text(fields, key);
  if (value != NULL) *text = keep(reader, value);
}

// What a line says of a call, over what is known of the call.
static void read_pattern(reader_t* reader, gcap_doctor_fields_t* fields, pattern_t* pattern) {
  gcap_doctor_event_call_t* call = &pattern->call;
  const char *mode = gcap_doctor_fields_text(fields, "mode"), *host = gcap_doctor_fields_text(fields, "host");
  call->thread = thread_of(reader, fields, call->thread);
  call->stack = reference(reader, fields, "stack", &reader->stacks, call->stack);
  call->stream = reference(reader, fields, "stream", &reader->streams, call->stream);
  call->range = reference(reader, fields, "range", &reader->ranges, call->range);
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

// A call, or several from the number `first` on.
static void note_numbers(reader_t* reader, uint64_t first, uint64_t number) {
  if (!reader->is_in_ring) {
    if (number > reader->last_before) reader->last_before = number;
  } else if (number > reader->last_before && first < reader->first_after) {
    reader->first_after = first > reader->last_before ? first : reader->last_before + 1;
  }
}

// An exception stands among the calls, in their order.
static void read_raise(reader_t* reader, gcap_doctor_fields_t* fields) {
  const uint64_t number = gcap_doctor_fields_needed_number(fields, "n");
  const uint64_t start_ns = gcap_doctor_fields_number(fields, "t", 0);
  const uint32_t thread = thread_of(reader, fields, GCAP_DOCTOR_NONE);
  const uint32_t stack = reference(reader, fields, "stack", &reader->stacks, GCAP_DOCTOR_NONE);
  const uint32_t at = gcap_doctor_fields_id(fields, "call");
  const char* type = gcap_doctor_fields_needed_text(fields, "type");
  if (number >= UINT32_MAX && fields->reason == NULL) fields->reason = "a call's number beyond 32 bits";
  if (fields->reason != NULL) return;
  note_numbers(reader, number, number);
  const uint32_t index = gcap_doctor_recording_add_call(reader->recording);
  gcap_doctor_event_call_t* call = &reader->recording->calls[index];
  call->number = number;
  call->start_ns = call->end_ns = start_ns;
  call->function = "raise";
  call->thread = thread;
  call->stack = stack;
  call->raised_at = at;
  call->raised = keep(reader, type);
  call->arguments = keep_or_empty(reader, gcap_doctor_fields_text(fields, "text"));
  call->line = reader->line;
}

static pattern_t blank_pattern(gcap_doctor_fields_t* fields) {
  gcap_doctor_fields_needed_text(fields, "function");
  gcap_doctor_fields_needed_text(fields, "result");
  return (pattern_t){.call = {.function = "",
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

static void read_like(reader_t* reader, gcap_doctor_fields_t* fields) {
  const uint32_t id = gcap_doctor_fields_needed_id(fields, "id");
  const uint32_t like = reference(reader, fields, "like", &reader->likes, GCAP_DOCTOR_NONE);
  if (like == GCAP_DOCTOR_NONE && gcap_doctor_fields_text(fields, "like") != NULL) return;  // it is left out, or damage
  pattern_t pattern = like != GCAP_DOCTOR_NONE ? reader->patterns[like] : blank_pattern(fields);
  if (!is_good_id(reader, fields, id)) return;
  read_pattern(reader, fields, &pattern);
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(reader, patterns, num_patterns, pattern_capacity);
  reader->patterns[reader->num_patterns] = pattern;
  define(&reader->likes, id, (uint32_t)reader->num_patterns++);
}

static void add_node(gcap_doctor_recording_t* recording, gcap_doctor_event_node_t node) {
  GCAP_DOCTOR_GROW(recording, nodes, num_nodes, node_capacity);
  recording->nodes[recording->num_nodes++] = node;
}

static void add_edge(gcap_doctor_recording_t* recording, gcap_doctor_event_edge_t edge) {
  GCAP_DOCTOR_GROW(recording, edges, num_edges, edge_capacity);
  recording->edges[recording->num_edges++] = edge;
}

// The one node that a call made, and the edge from the node so far back.
static void read_node_of_call(reader_t* reader, gcap_doctor_fields_t* fields, const pattern_t* pattern) {
  if (gcap_doctor_fields_text(fields, "node") == NULL) return;
  const gcap_doctor_event_node_t node = {.graph = gcap_doctor_fields_needed_id(fields, "in"),
                                         .id = gcap_doctor_fields_number(fields, "node", 0),
                                         .type = pattern->type,
                                         .call = (uint32_t)pattern->call.number};
  const uint64_t back = gcap_doctor_fields_number(fields, "back", 0);
  if (node.type == NULL || back > node.id) fields->reason = "a node without a type, or behind none";
  if (fields->reason != NULL) return;
  add_node(reader->recording, node);
  if (back == 0) return;
  add_edge(reader->recording, (gcap_doctor_event_edge_t){.graph = node.graph, .from = node.id - back, .to = node.id});
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

static void read_call(reader_t* reader, gcap_doctor_fields_t* fields) {
  const uint32_t like = reference(reader, fields, "like", &reader->likes, GCAP_DOCTOR_NONE);
  if (fields->reason != NULL) return;
  if (like == GCAP_DOCTOR_NONE && gcap_doctor_fields_text(fields, "like") != NULL) return;  // it is left out
  pattern_t pattern = like != GCAP_DOCTOR_NONE ? reader->patterns[like] : blank_pattern(fields);
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
  note_numbers(reader, first, call->number);
  uint32_t index = gcap_doctor_recording_add_call(reader->recording);
  reader->recording->calls[index] = *call;
}

// How many nodes, edges or copies a line is for, whose ids follow each other.
static uint32_t count_of(gcap_doctor_fields_t* fields) {
  const uint64_t count = gcap_doctor_fields_number(fields, "count", 1);
  if (fields->reason == NULL && (count == 0 || count > kMostOfLine)) fields->reason = "a count beyond 1 to 1024";
  return fields->reason == NULL ? (uint32_t)count : 0;
}

static void read_node(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_event_node_t node = {.graph = gcap_doctor_fields_needed_id(fields, "graph"),
                                   .id = gcap_doctor_fields_needed_number(fields, "id"),
                                   .call = gcap_doctor_fields_id(fields, "call")};
  const char* type = gcap_doctor_fields_needed_text(fields, "type");
  const uint32_t count = count_of(fields);
  if (count != 0) node.type = keep(reader, type);
  for (uint32_t i = 0; i < count; ++i, ++node.id) add_node(reader->recording, node);
}

static void read_edge(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_event_edge_t edge = {.graph = gcap_doctor_fields_needed_id(fields, "graph"),
                                   .from = gcap_doctor_fields_needed_number(fields, "from"),
                                   .to = gcap_doctor_fields_needed_number(fields, "to")};
  const uint32_t count = count_of(fields);
  for (uint32_t i = 0; i < count; ++i, ++edge.from, ++edge.to) add_edge(reader->recording, edge);
}

static void read_exec(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  gcap_doctor_event_exec_t exec = {.id = gcap_doctor_fields_needed_id(fields, "id"),
                                   .graph = gcap_doctor_fields_needed_id(fields, "graph"),
                                   .call = gcap_doctor_fields_id(fields, "call")};
  if (!is_good_id(reader, fields, exec.id)) return;
  GCAP_DOCTOR_GROW(recording, execs, num_execs, exec_capacity);
  recording->execs[recording->num_execs] = exec;
  define(&reader->execs, exec.id, (uint32_t)recording->num_execs++);
}

// The executable that a line is about; NULL, with a reason, for one that was not defined.
static gcap_doctor_event_exec_t* exec_of(reader_t* reader, gcap_doctor_fields_t* fields, const char* key) {
  uint32_t index = look_up(&reader->execs, gcap_doctor_fields_needed_id(fields, key));
  if (index == GCAP_DOCTOR_NONE && fields->reason == NULL && !reader->is_in_ring) {
    fields->reason = "an executable that was not defined";
  }
  return fields->reason == NULL && index != GCAP_DOCTOR_NONE ? &reader->recording->execs[index] : NULL;
}

static void read_clone(reader_t* reader, gcap_doctor_fields_t* fields) {
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

static void read_replays(reader_t* reader, gcap_doctor_fields_t* fields) {
  uint64_t count = gcap_doctor_fields_needed_number(fields, "count"),
           failed = gcap_doctor_fields_number(fields, "failed", 0);
  gcap_doctor_event_exec_t* exec = exec_of(reader, fields, "exec");
  if (exec == NULL) return;
  if (exec->first_launch_line == 0 && count != 0) exec->first_launch_line = reader->line;
  exec->replays += count;
  exec->failed_replays += failed;
}

static void read_time(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  gcap_doctor_event_time_t time = {.exec = gcap_doctor_fields_needed_id(fields, "exec"),
                                   .node = gcap_doctor_fields_needed_number(fields, "node"),
                                   .count = gcap_doctor_fields_needed_number(fields, "count"),
                                   .ns = gcap_doctor_fields_needed_number(fields, "ns")};
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, times, num_times, time_capacity);
  recording->times[recording->num_times++] = time;
}

static void read_whole(reader_t* reader, gcap_doctor_fields_t* fields) {
  uint64_t count = gcap_doctor_fields_needed_number(fields, "count"),
           ns = gcap_doctor_fields_needed_number(fields, "ns");
  gcap_doctor_event_exec_t* exec = exec_of(reader, fields, "exec");
  if (exec == NULL) return;
  exec->whole_count += count;
  exec->whole_ns += ns;
}

static void read_difference(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  const char* text = gcap_doctor_fields_needed_text(fields, "text");
  const char* fault = gcap_doctor_fields_text(fields, "fault");
  const char* remedy = gcap_doctor_fields_text(fields, "remedy");
  const uint32_t call = gcap_doctor_fields_id(fields, "call");
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, differences, num_differences, difference_capacity);
  recording->differences[recording->num_differences++] =
      (gcap_doctor_event_difference_t){.call = call,
                                       .fault = keep(reader, fault != NULL ? fault : ""),
                                       .text = keep(reader, text),
                                       .remedy = remedy != NULL ? keep(reader, remedy) : NULL};
}

static void read_stale(reader_t* reader, gcap_doctor_fields_t* fields) {
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
  stale.use = keep_or_empty(reader, gcap_doctor_fields_text(fields, "use"));
  stale.what = keep_or_empty(reader, gcap_doctor_fields_text(fields, "what"));
  stale.kernel = keep(reader, gcap_doctor_fields_text(fields, "kernel"));
  GCAP_DOCTOR_GROW(recording, stales, num_stales, stale_capacity);
  recording->stales[recording->num_stales++] = stale;
}

static void read_log_of_driver(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  const uint32_t call = gcap_doctor_fields_needed_id(fields, "call");
  const char* text = gcap_doctor_fields_needed_text(fields, "text");
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, logs, num_logs, log_capacity);
  recording->logs[recording->num_logs++] = (gcap_doctor_event_log_t){.call = call, .text = keep(reader, text)};
}

static void read_shared(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  const gcap_doctor_event_shared_t shared = {
      .call = gcap_doctor_fields_id(fields, "call"),
      .exec = gcap_doctor_fields_needed_id(fields, "exec"),
      .thread = look_up(&reader->threads, gcap_doctor_fields_id(fields, "thread"))};
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, shared, num_shared, shared_capacity);
  recording->shared[recording->num_shared++] = shared;
}

static void read_execs(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  const gcap_doctor_event_group_t group = {.call = gcap_doctor_fields_id(fields, "call"),
                                           .made = gcap_doctor_fields_needed_number(fields, "made"),
                                           .live = gcap_doctor_fields_needed_number(fields, "live"),
                                           .idle = gcap_doctor_fields_number(fields, "idle", 0),
                                           .bytes = gcap_doctor_fields_number(fields, "bytes", 0)};
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, groups, num_groups, group_capacity);
  recording->groups[recording->num_groups++] = group;
}

static void read_note(reader_t* reader, gcap_doctor_fields_t* fields) {
  static const char kStopped[] = "the recording stopped";  // what came after that is left out
  gcap_doctor_recording_t* recording = reader->recording;
  const char* text = gcap_doctor_fields_needed_text(fields, "text");
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, notes, num_notes, note_capacity);
  recording->notes[recording->num_notes++] = keep(reader, text);
  // Notes of version 2 have words of frameworks, too, such as that of a limit.
  const bool is_cut = strncmp(text, kStopped, strlen(kStopped)) == 0;
  if (is_cut || (reader->version == 1 && strstr(text, "limit") != NULL)) recording->reached_limit = true;
}

static void read_end(reader_t* reader, gcap_doctor_fields_t* fields) {
  (void)fields;
  reader->recording->ended = true;
}

static void read_ring(reader_t* reader, gcap_doctor_fields_t* fields) {
  const uint64_t at = gcap_doctor_fields_needed_number(fields, "at");
  const uint64_t size = gcap_doctor_fields_needed_number(fields, "size");
  const uint64_t count = gcap_doctor_fields_needed_number(fields, "count");
  const uint64_t most = UINT64_C(1) << 40;
  if (fields->reason == NULL && (at == 0 || size == 0 || size > most || count == 0 || count > kMostSegments)) {
    fields->reason = "a ring of no size, or of more than 256 segments of 2^40 bytes";
  }
  if (fields->reason == NULL && reader->ring_at != 0) fields->reason = "a second ring";
  if (fields->reason != NULL) return;
  reader->ring_at = at;
  reader->segment_bytes = size;
  reader->num_segments = count;
}

static void read_segment(reader_t* reader, gcap_doctor_fields_t* fields) {
  (void)reader;
  gcap_doctor_fields_needed_number(fields, "n");
}

static const struct {
  const char* kind;
  void (*read)(reader_t* reader, gcap_doctor_fields_t* fields);
} kinds[] = {
    {"call", read_call},
    {"like", read_like},
    {"node", read_node},
    {"edge", read_edge},
    {"frame", read_frame},
    {"stack", read_stack},
    {"clone", read_clone},
    {"time", read_time},
    {"pyframe", read_python_frame},
    {"stream", read_stream},
    {"exec", read_exec},
    {"replays", read_replays},
    {"whole", read_whole},
    {"thread", read_thread},
    {"note", read_note},
    {"system", read_system},
    {"gcap-events", read_first},
    {"end", read_end},
    {"module", read_module},
    {"difference", read_difference},
    {"stale", read_stale},
    {"shared", read_shared},
    {"execs", read_execs},
    {"raise", read_raise},
    {"range", read_range},
    {"log", read_log_of_driver},
    {"ring", read_ring},
    {"segment", read_segment},
};

// --- The file --------------------------------------------------------------------------------------------------------

static void damage(gcap_doctor_recording_t* recording, uint32_t line, const char* reason) {
  if (recording->damage.lines++ != 0) return;
  recording->damage.first = line;
  recording->damage.reason = reason;
}

static void read_line(reader_t* reader, char* line) {
  gcap_doctor_fields_t fields;
  gcap_doctor_fields_split(&fields, line);
  for (size_t i = 0; fields.reason == NULL && i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
    if (strcmp(fields.kind, kinds[i].kind) != 0) continue;
    kinds[i].read(reader, &fields);
    break;
  }
  if (fields.reason != NULL) damage(reader->recording, reader->line, fields.reason);
}

// Reads to the end, or to where the ring begins; but where `may_be_log`, only to the first line of a simulator's log,
// which is then in `lines`.
static bool read_events(reader_t* reader, gcap_doctor_lines_t* lines, bool may_be_log) {
  do {
    if (may_be_log && gcap_doctor_sim_log_is(lines->line)) return true;
    ++reader->line;
    lines->line[strcspn(lines->line, "\n")] = '\0';
    if (lines->line[0] != '\0') read_line(reader, lines->line);
    if (reader->ring_at != 0 && !reader->is_in_ring) lines->end = reader->ring_at;
  } while (gcap_doctor_lines_next(lines));
  return false;
}

// --- The ring --------------------------------------------------------------------------------------------------------

typedef struct segment {
  uint64_t number;
  const char* bytes;
  size_t size;
} segment_t;

// What is left of the file, but not more than the ring has.
static char* read_rest(const reader_t* reader, FILE* file, size_t* out_size) {
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
  const segment_t *a = left, *b = right;
  return a->number < b->number ? -1 : a->number > b->number;
}

static void read_segments(reader_t* reader, segment_t* segments, size_t count) {
  qsort(segments, count, sizeof(*segments), by_number);
  for (size_t i = 0; i < count; ++i) {
    gcap_doctor_lines_t lines = {.bytes = segments[i].bytes, .end = segments[i].size};
    if (gcap_doctor_lines_next(&lines)) read_events(reader, &lines, false);
    free(lines.line);
  }
  // A program that died as it turned to a segment has left out the oldest one.
  if (count != 0 && segments[0].number == 1 && segments[count - 1].number == count) return;
  if (count != 0) reader->recording->reached_limit = true;
}

static void read_ring_of(reader_t* reader, FILE* file) {
  segment_t segments[kMostSegments];
  size_t size, count = 0;
  char* bytes = read_rest(reader, file, &size);
  reader->is_in_ring = true;
  reader->first_after = UINT64_MAX;
  for (uint64_t i = 0; i < reader->num_segments && i * reader->segment_bytes < size; ++i) {
    const size_t begin = (size_t)(i * reader->segment_bytes), left = size - begin;
    segment_t segment = {.bytes = bytes + begin,
                         .size = left < reader->segment_bytes ? left : (size_t)reader->segment_bytes};
    segment.number = number_of(segment.bytes, segment.size);
    if (segment.number != 0) segments[count++] = segment;
  }
  read_segments(reader, segments, count);
  free(bytes);
}

// --- What is left out ------------------------------------------------------------------------------------------------

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
static void find_gap(const reader_t* reader, gcap_doctor_recording_t* recording) {
  if (!recording->reached_limit) return;
  recording->gap = (uint32_t)recording->num_calls;
  if (!reader->is_in_ring) return;
  while (recording->gap != 0 && recording->calls[recording->gap - 1].number > reader->last_before) --recording->gap;
  if (recording->gap != 0 && recording->gap < recording->num_calls) {
    recording->left_out = reader->first_after - reader->last_before - 1;
  }
  say_gap(recording);
}

static void free_tables(reader_t* reader) {
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

// A simulator's log is read by its own reader.
static gcap_doctor_recording_t* read_log(reader_t* reader, gcap_doctor_lines_t* lines) {
  gcap_doctor_recording_destroy(reader->recording);
  gcap_doctor_recording_t* recording =
      gcap_doctor_sim_log_read(lines->file, reader->line, &lines->line, &lines->capacity);
  gcap_doctor_recording_finish(recording);
  return recording;
}

static gcap_doctor_recording_t* read_file(gcap_doctor_lines_t* lines) {
  static const char kFirst[] = "gcap-events\t";
  gcap_doctor_recording_t* recording = gcap_doctor_recording_create("events");
  if (!gcap_doctor_lines_next(lines)) {
    damage(recording, 1, "the file is empty");
    return recording;
  }
  reader_t reader = {.recording = recording};
  const bool is_events = strncmp(lines->line, kFirst, strlen(kFirst)) == 0;
  if (!is_events) damage(recording, 1, "the first line is not that of a file of events");
  // A program's own words may stand before a log.
  const bool is_log = read_events(&reader, lines, !is_events);
  if (!is_log && reader.ring_at != 0 && lines->at == reader.ring_at) read_ring_of(&reader, lines->file);
  if (reader.ring_at != 0 && lines->at > reader.ring_at) damage(recording, reader.line, "a ring before its own line");
  free_tables(&reader);
  if (is_log) return read_log(&reader, lines);
  gcap_doctor_recording_finish(recording);
  find_gap(&reader, recording);
  return recording;
}

gcap_doctor_recording_t* gcap_doctor_recording_read(FILE* file, const char* name) {
  gcap_doctor_lines_t lines = {.file = file, .end = UINT64_MAX};
  gcap_doctor_recording_t* recording = read_file(&lines);
  free(lines.line);
  if (recording->program[0] == '\0') recording->program = gcap_doctor_heap_copy(&recording->heap, name, strlen(name));
  return recording;
}
