// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The simulator's log, a line a call:
//   gcap sim: #12 thread 1 cudaStreamSynchronize(stream 1) -> 900 cudaErrorStreamCaptureUnsupported, invalidates …
//
// The idea: a line is a call's number, its thread, the call, its code and what it did, and in the call and in what it
// did stand phrases: `stream 1`, `64 bytes`, `makes exec 9`. A table of phrases says what each becomes. All else is
// skipped: other programs write to the same stream. The simulator uses a handle's place again (graph 5, then
// graph 5.2), while an id here is one object's for good, so names become ids through a table. Locking: none.
#include "doctor/events/sim_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/events/grow.h"

enum {
  kReusedStream = 1000000,   // ids of streams whose place had another one before, and of threads' own streams
  kTurn = 1000000,           // ids of the threads that the simulator calls turns
  kHostFunctions = 2000000,  // of its thread for host functions
};

typedef enum kind { STREAM, OWN_STREAM, THREAD, EVENT, GRAPH, EXEC, EXEC_PLACE, CAPTURE, NUM_KINDS } kind_t;

// A name that was met: `graph 5.2` is {GRAPH, 5, 2}. What stands for it: of an event, a graph or an executable its id;
// of a capture its graph's; of a stream, of a thread, and of an executable's id (EXEC_PLACE), the place in the
// recording and 1.
typedef struct name {
  uint64_t number, generation;
  uint32_t id;  // 0 in a free place
  kind_t kind;
} name_t;

typedef struct reader {
  gcap_doctor_recording_t* recording;
  name_t* names;  // open addressing, a power of two of places
  size_t num_names, places;
  uint32_t last_id[NUM_KINDS];
  uint32_t line;
  bool in_report;                    // of the simulator's checks: a graph on memory that was freed
  gcap_doctor_event_stale_t report;  // that is being read
} reader_t;

// --- Words -----------------------------------------------------------------------------------------------------------

// Steps over `word`; false, and nothing moves, if the text does not begin with it.
static bool take(const char** text, const char* word) {
  const size_t length = strlen(word);
  if (strncmp(*text, word, length) != 0) return false;
  *text += length;
  return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Steps over a number of at most 18 digits.
static bool take_number(const char** text, uint64_t* out_number) {
  *out_number = 0;
  size_t digits = 0;
  for (; is_digit(**text) && digits < 18; ++*text, ++digits) *out_number = *out_number * 10 + (uint64_t)(**text - '0');
  return digits != 0 && !is_digit(**text);
}

// Steps over "5", or "5.2".
static bool take_label(const char** text, uint64_t* out_number, uint64_t* out_generation) {
  *out_generation = 1;
  if (!take_number(text, out_number)) return false;
  return !take(text, ".") || take_number(text, out_generation);
}

// --- Names -----------------------------------------------------------------------------------------------------------

static size_t place_of(const reader_t* reader, kind_t kind, uint64_t number, uint64_t generation) {
  uint64_t hash = (number * 31 + generation) * 31 + (uint64_t)kind;
  hash = (hash ^ hash >> 29) * UINT64_C(0x9E3779B97F4A7C15);
  size_t place = (size_t)(hash >> 20) & (reader->places - 1);
  for (;; place = (place + 1) & (reader->places - 1)) {
    const name_t* at = &reader->names[place];
    if (at->id == 0 || (at->kind == kind && at->number == number && at->generation == generation)) return place;
  }
}

static void make_room(reader_t* reader) {
  if (reader->num_names * 2 < reader->places) return;
  name_t* old = reader->names;
  const size_t old_places = reader->places;
  reader->names = NULL;
  size_t capacity = 0;
  while (capacity < (old_places != 0 ? old_places * 2 : 256)) {
    reader->names = gcap_doctor_heap_grow(reader->names, capacity, &capacity, sizeof(*reader->names));
  }
  reader->places = capacity;
  memset(reader->names, 0, capacity * sizeof(*reader->names));
  for (size_t i = 0; i < old_places; ++i) {
    if (old[i].id != 0) reader->names[place_of(reader, old[i].kind, old[i].number, old[i].generation)] = old[i];
  }
  free(old);
}

// The entry of a name; its id is 0 if the name is new, and the caller's to set.
static uint32_t* entry_of(reader_t* reader, kind_t kind, uint64_t number, uint64_t generation) {
  make_room(reader);
  name_t* name = &reader->names[place_of(reader, kind, number, generation)];
  if (name->id == 0) {
    *name = (name_t){.number = number, .generation = generation, .kind = kind};
    ++reader->num_names;
  }
  return &name->id;
}

static uint32_t id_of(reader_t* reader, kind_t kind, uint64_t number, uint64_t generation) {
  uint32_t* id = entry_of(reader, kind, number, generation);
  if (*id == 0) *id = ++reader->last_id[kind];
  return *id;
}

// --- Streams and threads ---------------------------------------------------------------------------------------------

static uint32_t add_stream(reader_t* reader, uint32_t* entry, uint32_t id, const char* what) {
  if (*entry == 0) {
    const uint32_t index = gcap_doctor_recording_add_stream(reader->recording, id);
    reader->recording->streams[index].what = what;
    *entry = index + 1;
  }
  return *entry - 1;
}

// A stream has the number that the log gives it, unless its place had another one before.
static uint32_t stream_of_label(reader_t* reader, uint64_t number, uint64_t generation) {
  uint32_t* entry = entry_of(reader, STREAM, number, generation);
  const bool has_number = generation == 1 && number < kReusedStream;
  if (*entry == 0 && !has_number) ++reader->last_id[STREAM];
  return add_stream(reader, entry, has_number ? (uint32_t)number : kReusedStream + reader->last_id[STREAM], "");
}

static uint32_t thread_of_id(reader_t* reader, uint32_t id) {
  gcap_doctor_recording_t* recording = reader->recording;
  uint32_t* entry = entry_of(reader, THREAD, id, 0);
  if (*entry == 0) {
    const uint32_t index = gcap_doctor_recording_add_thread(recording, id);
    gcap_doctor_event_thread_t* thread = &recording->threads[index];
    if (id == kHostFunctions) {
      thread->name = "host functions";
    } else if (id >= kTurn) {
      thread->name = gcap_doctor_heap_print(&recording->heap, "turn %u", (unsigned)(id - kTurn));
    }
    *entry = index + 1;
  }
  return *entry - 1;
}

// Steps over "thread 1 ", "turn 0 " or "host functions "; false for something else.
static bool take_thread(const char** text, uint32_t* out_id) {
  uint64_t number;
  *out_id = kHostFunctions;
  if (take(text, "host functions ")) return true;
  const bool is_turn = take(text, "turn ");
  if (!is_turn && !take(text, "thread ")) return false;
  if (!take_number(text, &number) || number >= kTurn || !take(text, " ")) return false;
  *out_id = (uint32_t)number + (is_turn ? kTurn : 0);
  return true;
}

// --- What a call was given -------------------------------------------------------------------------------------------

static void read_stream(reader_t* reader, gcap_doctor_event_call_t* call, const char* text) {
  uint64_t number, generation;
  if (take_label(&text, &number, &generation)) call->stream = stream_of_label(reader, number, generation);
}

static void read_legacy(reader_t* reader, gcap_doctor_event_call_t* call, const char* text) {
  (void)text;
  call->stream = add_stream(reader, entry_of(reader, OWN_STREAM, UINT64_MAX, 0), 0, "legacy");
}

static void read_per_thread(reader_t* reader, gcap_doctor_event_call_t* call, const char* text) {
  (void)text;
  uint32_t* entry = entry_of(reader, OWN_STREAM, call->thread, 0);
  if (*entry == 0) ++reader->last_id[STREAM];
  call->stream = add_stream(reader, entry, kReusedStream + reader->last_id[STREAM], "per_thread");
}

// The first of a kind that a call names is what it is about.
static void read_id(reader_t* reader, uint32_t* id, kind_t kind, const char* text) {
  uint64_t number, generation;
  if (*id == GCAP_DOCTOR_NONE && take_label(&text, &number, &generation)) {
    *id = id_of(reader, kind, number, generation);
  }
}

static void read_event(reader_t* reader, gcap_doctor_event_call_t* call, const char* text) {
  read_id(reader, &call->event, EVENT, text);
}

static void read_graph(reader_t* reader, gcap_doctor_event_call_t* call, const char* text) {
  read_id(reader, &call->graph, GRAPH, text);
}

static void read_exec(reader_t* reader, gcap_doctor_event_call_t* call, const char* text) {
  read_id(reader, &call->exec, EXEC, text);
}

static void read_kernel(reader_t* reader, gcap_doctor_event_call_t* call, const char* text) {
  call->kernel = gcap_doctor_heap_copy(&reader->recording->heap, text, strlen(text));
}

static void read_mode(reader_t* reader, gcap_doctor_event_call_t* call, const char* text) {
  (void)reader;
  if (strcmp(text, "global") == 0) call->mode = GCAP_DOCTOR_MODE_GLOBAL;
  if (strcmp(text, "thread-local") == 0) call->mode = GCAP_DOCTOR_MODE_THREAD_LOCAL;
  if (strcmp(text, "relaxed") == 0) call->mode = GCAP_DOCTOR_MODE_RELAXED;
}

// "64 bytes", or where a copy goes: "pageable memory to device".
static void read_other(reader_t* reader, gcap_doctor_event_call_t* call, const char* text) {
  (void)reader;
  uint64_t number;
  const char* rest = text;
  if (take_number(&rest, &number) && strcmp(rest, " bytes") == 0) call->bytes = number;
  const char* to = strstr(text, " to ");
  if (to == NULL) return;
  const bool from_device = strncmp(text, "device ", 7) == 0, to_device = strcmp(to, " to device") == 0;
  const bool is_managed = strstr(text, "managed memory") != NULL, is_pageable = strstr(text, "pageable memory") != NULL;
  if (!is_managed && !is_pageable && strstr(text, "pinned memory") == NULL && !(from_device && to_device)) return;
  call->copy = from_device ? (to_device ? "dtod" : "dtoh") : (to_device ? "htod" : "htoh");
  if (is_managed) call->copy = "default";
  if (strstr(text, "pinned memory") != NULL) call->host = GCAP_DOCTOR_HOST_PINNED;
  if (is_pageable) call->host = GCAP_DOCTOR_HOST_PAGEABLE;
}

static const struct {
  const char* begins;
  void (*read)(reader_t* reader, gcap_doctor_event_call_t* call, const char* rest);
} arguments[] = {
    {"stream ", read_stream}, {"legacy stream", read_legacy}, {"per-thread stream", read_per_thread},
    {"event ", read_event},   {"graph node ", NULL},          {"graph ", read_graph},
    {"exec ", read_exec},     {"kernel ", read_kernel},       {"mode ", read_mode},
    {"", read_other},
};

// Where the argument ends. A name of a kernel may have commas in brackets: `scale<float, 4>(float*, int)`.
static const char* end_of_argument(const char* text) {
  int depth = 0;
  for (; *text != '\0'; ++text) {
    if (strchr("(<[", *text) != NULL) ++depth;
    if (strchr(")>]", *text) != NULL && depth > 0) --depth;
    if (depth == 0 && strncmp(text, ", ", 2) == 0) break;
  }
  return text;
}

static void read_arguments(reader_t* reader, gcap_doctor_event_call_t* call, char* text) {
  while (*text != '\0') {
    char* end = text + (end_of_argument(text) - text);
    char* next = *end != '\0' ? end + 2 : end;
    *end = '\0';
    size_t row = 0;
    const char* rest = text;
    while (!take(&rest, arguments[row].begins)) ++row;
    if (arguments[row].read != NULL) arguments[row].read(reader, call, rest);
    text = next;
  }
}

// --- What a call did -------------------------------------------------------------------------------------------------

// "makes graph node 6 (memset of graph 5)", after "graph node ".
static void read_node(reader_t* reader, const gcap_doctor_event_call_t* call, const char* text) {
  static const char* const types[] = {"kernel", "memcpy",     "memset",       "host",  "child", "empty",
                                      "node",   "wait_event", "record_event", "alloc", "free"};
  gcap_doctor_recording_t* recording = reader->recording;
  uint64_t number, generation, graph, graph_generation;
  if (!take_label(&text, &number, &generation) || !take(&text, " (")) return;
  size_t type = 0;
  while (type < sizeof(types) / sizeof(*types) && !take(&text, types[type])) ++type;
  if (type == sizeof(types) / sizeof(*types) || !take(&text, " of graph ")) return;
  if (!take_label(&text, &graph, &graph_generation)) return;
  const bool holds_graph = strcmp(call->function, "cudaGraphAddChildGraphNode") == 0;
  GCAP_DOCTOR_GROW(recording, nodes, num_nodes, node_capacity);
  recording->nodes[recording->num_nodes++] =
      (gcap_doctor_event_node_t){.graph = id_of(reader, GRAPH, graph, graph_generation),
                                 .id = generation << 32 | (uint32_t)number,
                                 .type = holds_graph ? "child" : types[type],
                                 .call = (uint32_t)call->number};
}

static void read_exec_made(reader_t* reader, const gcap_doctor_event_call_t* call, const char* text) {
  gcap_doctor_recording_t* recording = reader->recording;
  uint64_t number, generation;
  if (!take_label(&text, &number, &generation)) return;
  GCAP_DOCTOR_GROW(recording, execs, num_execs, exec_capacity);
  const uint32_t id = id_of(reader, EXEC, number, generation);
  recording->execs[recording->num_execs++] =
      (gcap_doctor_event_exec_t){.id = id, .graph = call->graph, .call = (uint32_t)call->number};
  *entry_of(reader, EXEC_PLACE, id, 0) = (uint32_t)recording->num_execs;
}

static void read_stream_made(reader_t* reader, const gcap_doctor_event_call_t* call, const char* text) {
  uint64_t number, generation;
  if (!take_label(&text, &number, &generation)) return;
  const uint32_t index = stream_of_label(reader, number, generation);
  gcap_doctor_event_stream_t* stream = &reader->recording->streams[index];
  if (strcmp(call->arguments, "blocking") == 0) stream->what = "blocking";
  if (strcmp(call->arguments, "non-blocking") == 0) stream->what = "nonblocking";
}

// The graph that a capture fills, remembered until its end.
static void read_begin(reader_t* reader, const gcap_doctor_event_call_t* call, uint32_t made_graph, const char* text) {
  uint64_t number;
  const uint32_t graph = made_graph != GCAP_DOCTOR_NONE ? made_graph : call->graph;
  if (graph == GCAP_DOCTOR_NONE || !take_number(&text, &number)) return;
  *entry_of(reader, CAPTURE, number, 0) = graph;
}

static void read_end(reader_t* reader, gcap_doctor_event_call_t* call, const char* text) {
  uint64_t number;
  const bool is_end = strcmp(call->function, "cudaStreamEndCapture") == 0 && call->result == 0;
  if (!is_end || !take_number(&text, &number)) return;
  const name_t* name = &reader->names[place_of(reader, CAPTURE, number, 0)];
  if (name->id != 0) call->graph = name->id;
}

// ", makes graph 5, begins capture 1 [capture 1 active]".
static void read_outcome(reader_t* reader, gcap_doctor_event_call_t* call, const char* text) {
  uint32_t made_graph = GCAP_DOCTOR_NONE;
  while ((text = strstr(text, ", ")) != NULL) {
    text += 2;
    const char* rest = text;
    if (take(&rest, "makes graph node ")) {
      read_node(reader, call, rest);
    } else if (take(&rest, "makes graph ")) {
      read_id(reader, &made_graph, GRAPH, rest);
    } else if (take(&rest, "makes exec ")) {
      read_exec_made(reader, call, rest);
    } else if (take(&rest, "makes stream ")) {
      read_stream_made(reader, call, rest);
    } else if (take(&rest, "begins capture ")) {
      read_begin(reader, call, made_graph, rest);
    } else if (take(&rest, "ends capture ")) {
      read_end(reader, call, rest);
    }
  }
}

static void count_launch(reader_t* reader, const gcap_doctor_event_call_t* call) {
  if (call->exec == GCAP_DOCTOR_NONE || strcmp(call->function, "cudaGraphLaunch") != 0) return;
  const name_t* name = &reader->names[place_of(reader, EXEC_PLACE, call->exec, 0)];
  if (name->id == 0) return;  // made before the log began
  gcap_doctor_event_exec_t* exec = &reader->recording->execs[name->id - 1];
  if (exec->first_launch_line == 0) exec->first_launch_line = call->line;
  ++exec->replays;
  if (call->result != 0) ++exec->failed_replays;
}

// --- Lines -----------------------------------------------------------------------------------------------------------

// Where the line of a call begins, after "#"; NULL if there is none. What a program wrote last may stand before it.
static const char* call_in(const char* line) {
  static const char kPrefix[] = "gcap sim: #";
  const char* start = strstr(line, kPrefix);
  if (start != NULL) return start + strlen(kPrefix);
  return line[0] == '#' ? line + 1 : NULL;  // out of a sink of the program's own
}

bool gcap_doctor_sim_log_is(const char* line) {
  const char* text = call_in(line);
  uint64_t number;
  uint32_t thread;
  return text != NULL && take_number(&text, &number) && take(&text, " ") && take_thread(&text, &thread);
}

// They answer an error of before, and are no calls of the driver.
static bool is_of_last_error(const char* function) {
  static const char* const names[] = {"cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorName",
                                      "cudaGetErrorString"};
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); ++i) {
    if (strcmp(function, names[i]) == 0) return true;
  }
  return false;
}

static const char* read_call(reader_t* reader, const char* text) {
  gcap_doctor_recording_t* recording = reader->recording;
  uint64_t number, code;
  uint32_t thread;
  if (!take_number(&text, &number) || number >= UINT32_MAX || !take(&text, " ")) return "a call's number that is none";
  if (!take_thread(&text, &thread)) return "a call without a thread";
  const char* open = strchr(text, '(');
  const char* close = strstr(text, ") -> ");
  if (open == NULL || close == NULL || close < open) return "a call without its arguments or its answer";
  const char* rest = close + strlen(") -> ");
  if (!take_number(&rest, &code) || code > INT32_MAX || !take(&rest, " ")) return "an answer that is no code";
  gcap_doctor_event_call_t call = {.number = number,
                                   .count = 1,
                                   .range = GCAP_DOCTOR_NONE,
                                   .raised_at = GCAP_DOCTOR_NONE,
                                   .function = gcap_doctor_heap_copy(&recording->heap, text, (size_t)(open - text)),
                                   .bytes = GCAP_DOCTOR_NO_NUMBER,
                                   .result = (int)code,
                                   .stack = GCAP_DOCTOR_NONE,
                                   .stream = GCAP_DOCTOR_NONE,
                                   .event = GCAP_DOCTOR_NONE,
                                   .graph = GCAP_DOCTOR_NONE,
                                   .exec = GCAP_DOCTOR_NONE,
                                   .line = reader->line};
  if (is_of_last_error(call.function)) return NULL;
  call.thread = thread_of_id(reader, thread);
  call.arguments = gcap_doctor_heap_copy(&recording->heap, open + 1, (size_t)(close - open - 1));
  read_arguments(reader, &call, gcap_doctor_heap_copy(&recording->heap, open + 1, (size_t)(close - open - 1)));
  while (*rest != '\0' && *rest != ',' && *rest != ' ') ++rest;  // the code's name
  const char* says = rest + strspn(rest, ", ");
  if (strstr(says, "capture ") != NULL) call.says = gcap_doctor_heap_copy(&recording->heap, says, strlen(says));
  read_outcome(reader, &call, rest);
  count_launch(reader, &call);
  const uint32_t index = gcap_doctor_recording_add_call(recording);
  recording->calls[index] = call;
  return NULL;
}

// --- Reports of checks -----------------------------------------------------------------------------------------------

// The number behind "call #"; GCAP_DOCTOR_NONE for none.
static uint32_t call_number_in(const char* line) {
  static const char kCall[] = ", call #";
  const char* at = strstr(line, kCall);
  uint64_t number;
  if (at == NULL) return GCAP_DOCTOR_NONE;
  at += strlen(kCall);
  return take_number(&at, &number) && number < GCAP_DOCTOR_NONE ? (uint32_t)number : GCAP_DOCTOR_NONE;
}

// "device memory `x` 0x7f00 + 0 of 64 bytes".
static void begin_report(reader_t* reader, const char* memory) {
  const char* of = strstr(memory, " of ");
  uint64_t bytes = 0;
  if (of != NULL) {
    of += strlen(" of ");
    take_number(&of, &bytes);
  }
  const char* address = strstr(memory, "0x");
  const bool is_of_host = strstr(memory, "pinned") != NULL || strstr(memory, "host") != NULL;
  reader->in_report = true;
  reader->report = (gcap_doctor_event_stale_t){.call = GCAP_DOCTOR_NONE,
                                               .exec = GCAP_DOCTOR_NONE,
                                               .use = "other",
                                               .argument = GCAP_DOCTOR_NONE,
                                               .address = address != NULL ? strtoull(address, NULL, 16) : 0,
                                               .what = is_of_host ? "host" : "device",
                                               .bytes = bytes,
                                               .pointers = 1,
                                               .made = GCAP_DOCTOR_NONE,
                                               .freed = GCAP_DOCTOR_NONE,
                                               .taken = GCAP_DOCTOR_NONE,
                                               .captured = GCAP_DOCTOR_NONE};
}

// "write by kernel `fill` on stream 1: cudaLaunchKernel, call #5, thread 1".
static void read_use(reader_t* reader, const char* line, bool is_write) {
  gcap_doctor_event_stale_t* report = &reader->report;
  report->captured = call_number_in(line);
  const char* kernel = strstr(line, "kernel `");
  if (kernel != NULL) {
    kernel += strlen("kernel `");
    report->use = "argument";
    report->kernel = gcap_doctor_heap_copy(&reader->recording->heap, kernel, strcspn(kernel, "`"));
  } else if (strstr(line, "cudaMemset") != NULL) {
    report->use = "memset";
  } else if (strstr(line, "cudaMemcpy") != NULL) {
    report->use = is_write ? "copy_to" : "copy_from";
  }
}

// A line within a report, which is indented; its stacks are indented more.
static void read_report(reader_t* reader, const char* line) {
  gcap_doctor_recording_t* recording = reader->recording;
  if (take(&line, "      in the graph launched by ")) reader->report.call = call_number_in(line);
  if (take(&line, "  allocated by ")) reader->report.made = call_number_in(line);
  if (take(&line, "  freed by ")) reader->report.freed = call_number_in(line);
  if (take(&line, "  write by ")) read_use(reader, line, true);
  if (take(&line, "  read by ")) read_use(reader, line, false);
  if (!take(&line, "  Remedy: ")) return;
  reader->in_report = false;
  GCAP_DOCTOR_GROW(recording, stales, num_stales, stale_capacity);
  recording->stales[recording->num_stales++] = reader->report;
}

static void read_other_line(reader_t* reader, const char* line) {
  static const char kStale[] = "gcap sim: a graph uses memory that was freed after its capture: ";
  const char* report = strstr(line, kStale);
  if (report != NULL) {
    begin_report(reader, report + strlen(kStale));
  } else if (reader->in_report) {
    read_report(reader, line);
  }
}

gcap_doctor_recording_t* gcap_doctor_sim_log_read(FILE* file, uint32_t lines_before, char** line, size_t* capacity) {
  gcap_doctor_recording_t* recording = gcap_doctor_recording_create("simulator log");
  reader_t reader = {.recording = recording, .line = lines_before};
  do {
    ++reader.line;
    (*line)[strcspn(*line, "\n")] = '\0';
    if (strstr(*line, "gcap sim: the program ends") != NULL) recording->ended = true;
    const char* text = call_in(*line);
    if (text == NULL || !gcap_doctor_sim_log_is(*line)) {
      read_other_line(&reader, *line);
      continue;
    }
    const char* reason = read_call(&reader, text);
    if (reason == NULL || recording->damage.lines++ != 0) continue;
    recording->damage.first = reader.line;
    recording->damage.reason = reason;
  } while (getline(line, capacity, file) > 0);
  free(reader.names);
  return recording;
}
