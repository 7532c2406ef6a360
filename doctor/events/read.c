// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reads a file of events, line by line.
//
// The idea: a table says for each kind of line which function reads it; a line that its function refuses is counted,
// and the reading goes on: half a recording still has findings. Ids of the file become indices here, through a table
// for each kind of id, since ids are small and dense. Locking: none.
#include <stdlib.h>
#include <string.h>

#include "doctor/events/fields.h"
#include "doctor/events/grow.h"
#include "doctor/events/recording.h"
#include "doctor/events/sim_log.h"

// A recorder gives ids in order, so a larger one is damage, and must not cost memory for all below it. Not every id has
// a line: threads and streams have theirs when they first come up in a capture.
enum {
  kFreeIds = 1 << 16,
  kIdsOfLine = 64,
};

typedef struct id_table {
  uint32_t* indices;  // by id; 0 for none, else the index + 1
  size_t size;
} id_table_t;

typedef struct reader {
  gcap_doctor_recording_t* recording;
  id_table_t threads, modules, frames, stacks, streams, execs;
  const char** builds;  // of modules, by index
  size_t num_builds, build_capacity;
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

// "1,2,3" as indices of frames.
static const uint32_t* read_frames(reader_t* reader, gcap_doctor_fields_t* fields, const char* key,
                                   uint32_t* out_count) {
  *out_count = 0;
  const char* text = gcap_doctor_fields_text(fields, key);
  if (text == NULL || text[0] == '\0') return NULL;
  size_t count = 1;
  for (const char* c = text; *c != '\0'; ++c) count += *c == ',';
  uint32_t* frames = gcap_doctor_heap_alloc(&reader->recording->heap, count * sizeof(*frames));
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
  return frames;
}

// --- Kinds -----------------------------------------------------------------------------------------------------------

static void read_first(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  if (gcap_doctor_fields_needed_number(fields, "version") != 1) {
    fields->reason = "the version of the format is not 1";
    return;
  }
  recording->pid = gcap_doctor_fields_number(fields, "pid", 0);
  recording->unix_seconds = gcap_doctor_fields_number(fields, "time", 0);
  recording->program = keep_or_empty(reader, gcap_doctor_fields_text(fields, "program"));
}

static void read_system(reader_t* reader, gcap_doctor_fields_t* fields) {
  reader->recording->driver = gcap_doctor_fields_number(fields, "driver", reader->recording->driver);
  reader->recording->cupti = gcap_doctor_fields_number(fields, "cupti", reader->recording->cupti);
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
  GCAP_DOCTOR_GROW(reader, builds, num_builds, build_capacity);
  reader->builds[reader->num_builds] = keep_or_empty(reader, gcap_doctor_fields_text(fields, "build"));
  define(&reader->modules, id, (uint32_t)reader->num_builds++);
}

static void read_frame(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_event_frame_t frame = {.offset = gcap_doctor_fields_needed_number(fields, "offset")};
  frame.module = keep(reader, gcap_doctor_fields_needed_text(fields, "module"));
  frame.function = keep_or_empty(reader, gcap_doctor_fields_text(fields, "function"));
  frame.file = keep(reader, gcap_doctor_fields_text(fields, "file"));
  frame.line = (uint32_t)gcap_doctor_fields_number(fields, "line", 0);
  const uint32_t loaded = gcap_doctor_fields_id(fields, "loaded");
  const uint32_t index = look_up(&reader->modules, loaded);
  if (loaded != GCAP_DOCTOR_NONE && index == GCAP_DOCTOR_NONE) fields->reason = "a frame of a module not defined";
  if (index != GCAP_DOCTOR_NONE) frame.build = reader->builds[index];
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
  stack.c = read_frames(reader, fields, "c", &stack.num_c);
  stack.python = read_frames(reader, fields, "py", &stack.num_python);
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

// An index of what a field names, GCAP_DOCTOR_NONE if the field is missing.
static uint32_t reference(gcap_doctor_fields_t* fields, const char* key, const id_table_t* table) {
  uint32_t id = gcap_doctor_fields_id(fields, key);
  if (id == GCAP_DOCTOR_NONE) return GCAP_DOCTOR_NONE;
  uint32_t index = look_up(table, id);
  if (index == GCAP_DOCTOR_NONE && fields->reason == NULL)
    fields->reason = "a call of a thread, stack or stream not defined";
  return index;
}

static void read_call(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_event_call_t call = {.arguments = ""};
  call.number = gcap_doctor_fields_needed_number(fields, "n");
  if (call.number >= UINT32_MAX && fields->reason == NULL) fields->reason = "a call's number beyond 32 bits";
  call.start_ns = gcap_doctor_fields_number(fields, "t", 0);
  call.end_ns = gcap_doctor_fields_number(fields, "end", call.start_ns);
  call.thread = reference(fields, "thread", &reader->threads);
  call.stack = reference(fields, "stack", &reader->stacks);
  call.stream = reference(fields, "stream", &reader->streams);
  call.result = (int)gcap_doctor_fields_needed_id(fields, "result");
  call.depth = (uint32_t)gcap_doctor_fields_number(fields, "depth", 0);
  call.event = gcap_doctor_fields_id(fields, "event");
  call.graph = gcap_doctor_fields_id(fields, "graph");
  call.exec = gcap_doctor_fields_id(fields, "exec");
  call.bytes = gcap_doctor_fields_number(fields, "bytes", GCAP_DOCTOR_NO_NUMBER);
  call.mode = mode_of(gcap_doctor_fields_text(fields, "mode"));
  call.host = host_of(gcap_doctor_fields_text(fields, "host"));
  const char* function = gcap_doctor_fields_needed_text(fields, "function");
  if (call.thread == GCAP_DOCTOR_NONE && fields->reason == NULL) fields->reason = "a call without a thread";
  if (fields->reason != NULL) return;
  call.function = keep(reader, function);
  call.kernel = keep(reader, gcap_doctor_fields_text(fields, "kernel"));
  call.copy = keep(reader, gcap_doctor_fields_text(fields, "copy"));
  call.status = keep(reader, gcap_doctor_fields_text(fields, "status"));
  call.update = keep(reader, gcap_doctor_fields_text(fields, "update"));
  call.arguments = keep_or_empty(reader, gcap_doctor_fields_text(fields, "arguments"));
  call.says = keep(reader, gcap_doctor_fields_text(fields, "says"));
  call.label = keep(reader, gcap_doctor_fields_text(fields, "label"));
  call.line = reader->line;
  uint32_t index = gcap_doctor_recording_add_call(reader->recording);
  reader->recording->calls[index] = call;
}

static void read_node(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  gcap_doctor_event_node_t node = {.graph = gcap_doctor_fields_needed_id(fields, "graph"),
                                   .id = gcap_doctor_fields_needed_number(fields, "id"),
                                   .call = gcap_doctor_fields_id(fields, "call")};
  const char* type = gcap_doctor_fields_needed_text(fields, "type");
  if (fields->reason != NULL) return;
  node.type = keep(reader, type);
  GCAP_DOCTOR_GROW(recording, nodes, num_nodes, node_capacity);
  recording->nodes[recording->num_nodes++] = node;
}

static void read_edge(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  gcap_doctor_event_edge_t edge = {.graph = gcap_doctor_fields_needed_id(fields, "graph"),
                                   .from = gcap_doctor_fields_needed_number(fields, "from"),
                                   .to = gcap_doctor_fields_needed_number(fields, "to")};
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, edges, num_edges, edge_capacity);
  recording->edges[recording->num_edges++] = edge;
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
  if (index == GCAP_DOCTOR_NONE && fields->reason == NULL) fields->reason = "an executable that was not defined";
  return fields->reason == NULL ? &reader->recording->execs[index] : NULL;
}

static void read_clone(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  gcap_doctor_event_clone_t clone = {.exec = gcap_doctor_fields_needed_id(fields, "exec"),
                                     .from = gcap_doctor_fields_needed_number(fields, "from"),
                                     .to = gcap_doctor_fields_needed_number(fields, "to")};
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, clones, num_clones, clone_capacity);
  recording->clones[recording->num_clones++] = clone;
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

static void read_note(reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  const char* text = gcap_doctor_fields_needed_text(fields, "text");
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, notes, num_notes, note_capacity);
  recording->notes[recording->num_notes++] = keep(reader, text);
  if (strstr(text, "limit") != NULL) recording->reached_limit = true;
}

static void read_end(reader_t* reader, gcap_doctor_fields_t* fields) {
  (void)fields;
  reader->recording->ended = true;
}

static const struct {
  const char* kind;
  void (*read)(reader_t* reader, gcap_doctor_fields_t* fields);
} kinds[] = {
    {"call", read_call},
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

// Reads to the end; but where `may_be_log`, only to the first line of a simulator's log, which is then in `*line`.
static bool read_events(reader_t* reader, FILE* file, bool may_be_log, char** line, size_t* capacity) {
  ssize_t length;
  do {
    if (may_be_log && gcap_doctor_sim_log_is(*line)) return true;
    length = (ssize_t)strlen(*line);
    ++reader->line;
    if (length > 0 && (*line)[length - 1] == '\n') (*line)[--length] = '\0';
    if (length > 0) read_line(reader, *line);
  } while (getline(line, capacity, file) > 0);
  return false;
}

static gcap_doctor_recording_t* read_file(FILE* file, char** line, size_t* capacity) {
  static const char kFirst[] = "gcap-events\t";
  gcap_doctor_recording_t* recording = gcap_doctor_recording_create("events");
  if (getline(line, capacity, file) <= 0) {
    damage(recording, 1, "the file is empty");
    return recording;
  }
  reader_t reader = {.recording = recording};
  const bool is_events = strncmp(*line, kFirst, strlen(kFirst)) == 0;
  if (!is_events) damage(recording, 1, "the first line is not that of a file of events");
  // A program's own words may stand before a log.
  const bool is_log = read_events(&reader, file, !is_events, line, capacity);
  free(reader.threads.indices);
  free(reader.modules.indices);
  free(reader.builds);
  free(reader.frames.indices);
  free(reader.stacks.indices);
  free(reader.streams.indices);
  free(reader.execs.indices);
  if (!is_log) return recording;
  const uint32_t lines_before = reader.line;
  gcap_doctor_recording_destroy(recording);
  return gcap_doctor_sim_log_read(file, lines_before, line, capacity);
}

gcap_doctor_recording_t* gcap_doctor_recording_read(FILE* file, const char* name) {
  char* line = NULL;
  size_t capacity = 0;
  gcap_doctor_recording_t* recording = read_file(file, &line, &capacity);
  free(line);
  gcap_doctor_recording_finish(recording);
  if (recording->program[0] == '\0') recording->program = gcap_doctor_heap_copy(&recording->heap, name, strlen(name));
  return recording;
}
