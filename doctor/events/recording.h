// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// recording.h: a file of events in memory. docs/doctor_events.md is the format.
#ifndef GCAP_DOCTOR_EVENTS_RECORDING_H_
#define GCAP_DOCTOR_EVENTS_RECORDING_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "doctor/base/heap.h"

#ifdef __cplusplus
extern "C" {
#endif

// No index, no id.
#define GCAP_DOCTOR_NONE UINT32_MAX
// No number in the event.
#define GCAP_DOCTOR_NO_NUMBER UINT64_MAX

typedef struct gcap_doctor_event_thread {
  uint32_t id;
  uint64_t os;
  const char* name;  // "" if it has none
} gcap_doctor_event_thread_t;

// A C frame has a module, a Python frame has none.
typedef struct gcap_doctor_event_frame {
  const char* module;    // a path; NULL for a Python frame
  const char* build;     // the module's build id; "" if it has none, NULL if the source does not tell
  uint64_t offset;       // of the return address in the module
  const char* function;  // "" if it is not known
  const char* file;      // NULL if it is not known
  uint32_t line;         // 0 if it is not known
  bool is_installed;     // a Python frame whose file was found to be of an installed package
} gcap_doctor_event_frame_t;

// Indices into `frames`, innermost first.
typedef struct gcap_doctor_event_stack {
  const uint32_t* c;
  const uint32_t* python;
  uint32_t num_c, num_python;
  const char* why;  // why there is no Python stack; NULL if nothing was said
} gcap_doctor_event_stack_t;

typedef struct gcap_doctor_event_stream {
  uint32_t id;
  const char* what;  // "" if it is not known
} gcap_doctor_event_stream_t;

typedef enum gcap_doctor_event_mode {
  GCAP_DOCTOR_MODE_UNKNOWN = 0,
  GCAP_DOCTOR_MODE_GLOBAL,
  GCAP_DOCTOR_MODE_THREAD_LOCAL,
  GCAP_DOCTOR_MODE_RELAXED,
} gcap_doctor_event_mode_t;

typedef enum gcap_doctor_event_host {
  GCAP_DOCTOR_HOST_UNKNOWN = 0,
  GCAP_DOCTOR_HOST_PINNED,
  GCAP_DOCTOR_HOST_STACK,
  GCAP_DOCTOR_HOST_PAGEABLE,
} gcap_doctor_event_host_t;

// What the program calls the work of some calls: an NVTX range, or a label.
typedef struct gcap_doctor_event_range {
  const char* text;
  uint32_t outer;  // index of the range around it, which comes before it; GCAP_DOCTOR_NONE
} gcap_doctor_event_range_t;

// A call of the driver, or, in a simulator's log or a ledger, of the runtime.
typedef struct gcap_doctor_event_call {
  uint64_t number;            // in the order of the beginnings
  uint64_t start_ns, end_ns;  // both 0 where the source has no times
  uint64_t count;             // of calls that are the same, of which this is the last one; 1 for one call
  uint64_t since_ns;          // where the first of them began
  const char* function;
  const char* arguments;  // as the source tells them; "" if it does not
  const char* kernel;     // NULL if it launches none
  const char* copy;       // "htod"; NULL if it copies nothing
  const char* status;     // of the stream's capture, as the call told it: "active"; NULL if it told none
  const char* update;     // why an update was refused: "topology"; NULL if it was not, or the source does not say
  const char* says;       // what the source says of captures beside the result: "invalidates capture 1"; NULL for none
  const char* label;      // of a begin: what the program calls the work; NULL if it does not
  const char* log;        // what the driver's own log says of the call, a line a message; NULL for nothing
  const char* raised;     // an exception's type: this is no call, but an exception, whose message is in `arguments`
  uint32_t raised_at;  // of an exception: index of the call after which the program was handling it; GCAP_DOCTOR_NONE
  uint64_t bytes;      // GCAP_DOCTOR_NO_NUMBER if not told
  int result;
  uint32_t depth;
  uint32_t thread;              // index into `threads`
  uint32_t stack;               // index into `stacks`, or GCAP_DOCTOR_NONE
  uint32_t stream;              // index into `streams`, or GCAP_DOCTOR_NONE
  uint32_t range;               // index into `ranges` of the innermost one around it, or GCAP_DOCTOR_NONE
  uint32_t event, graph, exec;  // ids, or GCAP_DOCTOR_NONE
  gcap_doctor_event_mode_t mode;
  gcap_doctor_event_host_t host;
  uint32_t num_nodes;  // that it made
  uint32_t line;       // of the file
} gcap_doctor_event_call_t;

typedef struct gcap_doctor_event_node {
  uint32_t graph;  // id
  uint64_t id;
  const char* type;
  uint32_t call;  // index into `calls` of the call that made it, or GCAP_DOCTOR_NONE
} gcap_doctor_event_node_t;

typedef struct gcap_doctor_event_edge {
  uint32_t graph;  // id
  uint64_t from, to;
} gcap_doctor_event_edge_t;

typedef struct gcap_doctor_event_exec {
  uint32_t id, graph;
  uint32_t call;  // index, or GCAP_DOCTOR_NONE
  uint64_t replays, failed_replays;
  uint32_t first_launch_line;      // of the file; 0 if there was no launch
  uint64_t whole_count, whole_ns;  // 0 without device times
} gcap_doctor_event_exec_t;

typedef struct gcap_doctor_event_clone {
  uint32_t exec;  // id
  uint64_t from, to;
} gcap_doctor_event_clone_t;

typedef struct gcap_doctor_event_time {
  uint32_t exec;  // id
  uint64_t node, count, ns;
} gcap_doctor_event_time_t;

// A replay that left something else than its work did, and the first step of the work where that shows.
typedef struct gcap_doctor_event_difference {
  uint32_t call;       // index into `calls` of the step's call; GCAP_DOCTOR_NONE
  const char* fault;   // "stale_pointer"; "" if the writer does not say
  const char* text;    // a sentence
  const char* remedy;  // NULL: the reader's for the fault
} gcap_doctor_event_difference_t;

// A launch of an executable that points into memory which was freed before. Calls are indices into `calls`;
// GCAP_DOCTOR_NONE for none.
typedef struct gcap_doctor_event_stale {
  uint32_t call;       // the launch
  uint32_t exec;       // id; GCAP_DOCTOR_NONE: that of the launch
  uint64_t node;       // of the executable's graph
  const char* use;     // "argument", "word", "copy_from", "copy_to", "memset"; "" for another word
  const char* kernel;  // NULL if it is not known
  uint32_t argument;   // of the kernel, from 0; GCAP_DOCTOR_NONE
  uint64_t size;       // of the argument that has the word; 0 if it is not known
  uint64_t address;
  const char* what;             // whose memory: "device"; "" if the writer does not say
  uint64_t bytes;               // of the memory
  uint64_t pointers;            // of the executable into it
  uint32_t made, freed, taken;  // where it was allocated, where freed, and where another owner got the address
  uint32_t captured;            // the call that made the node, where `node` does not tell
} gcap_doctor_event_stale_t;

// What the driver's own log of errors says of a call.
typedef struct gcap_doctor_event_log {
  uint32_t call;  // index into `calls`; GCAP_DOCTOR_NONE
  const char* text;
} gcap_doctor_event_log_t;

// Two threads in a launch of one executable at the same time.
typedef struct gcap_doctor_event_shared {
  uint32_t call;    // index into `calls` of the later launch; GCAP_DOCTOR_NONE
  uint32_t exec;    // id
  uint32_t thread;  // index into `threads` of the other one; GCAP_DOCTOR_NONE
} gcap_doctor_event_shared_t;

// The executables that were made at one place, as the program ends.
typedef struct gcap_doctor_event_group {
  uint32_t call;  // index into `calls` of the last instantiation; GCAP_DOCTOR_NONE
  uint64_t made, live;
  uint64_t idle;    // of those that live, launched once or never
  uint64_t nodes;   // of those that live
  uint64_t bytes;   // in their allocation nodes
  uint64_t memory;  // bytes of the program's memory that they point into, each piece once
} gcap_doctor_event_group_t;

// How a file was read.
typedef struct gcap_doctor_event_damage {
  uint64_t lines;      // that could not be read
  uint64_t first;      // the number of the first such line, from 1; 0 if there is none
  const char* reason;  // of the first one; NULL if there is none
} gcap_doctor_event_damage_t;

// Recording: what a file of events says. Arrays are in the order of the file, but `calls`, which is in the order of the
// calls' numbers.
// Thread:   thread-compatible
// Lifetime: the caller's, until gcap_doctor_recording_destroy
typedef struct gcap_doctor_recording {
  gcap_doctor_heap_t heap;  // owns all texts and arrays of indices
  const char* program;
  const char* folder;                         // in which the program ran; NULL if not told
  const char* main_folder;                    // that of a Python program, with its last slash; NULL if not known
  const char* source;                         // "events", "simulator log"
  uint64_t pid, unix_seconds, driver, cupti;  // 0 if not told
  bool ended;                                 // the program ended in order
  // The recorder's: calls are left out. Those before `gap`, an index, are the first ones of the program, and those from
  // there on the last ones; `left_out` is about how many are missing between. All 0 where nothing is left out.
  bool reached_limit;
  uint32_t gap;
  uint64_t left_out;
  gcap_doctor_event_thread_t* threads;
  gcap_doctor_event_frame_t* frames;
  gcap_doctor_event_stack_t* stacks;
  gcap_doctor_event_stream_t* streams;
  gcap_doctor_event_range_t* ranges;
  gcap_doctor_event_call_t* calls;
  gcap_doctor_event_node_t* nodes;
  gcap_doctor_event_edge_t* edges;
  gcap_doctor_event_exec_t* execs;
  gcap_doctor_event_clone_t* clones;
  gcap_doctor_event_time_t* times;
  gcap_doctor_event_difference_t* differences;
  gcap_doctor_event_stale_t* stales;
  gcap_doctor_event_shared_t* shared;
  gcap_doctor_event_group_t* groups;
  gcap_doctor_event_log_t* logs;
  const char** notes;
  size_t num_threads, num_frames, num_stacks, num_streams, num_calls, num_nodes, num_edges, num_execs, num_clones;
  size_t num_times, num_differences, num_stales, num_shared, num_groups, num_notes, num_ranges, num_logs;
  size_t thread_capacity, frame_capacity, stack_capacity, stream_capacity, call_capacity, node_capacity, edge_capacity;
  size_t exec_capacity, clone_capacity, time_capacity, difference_capacity, stale_capacity, shared_capacity,
      group_capacity, note_capacity, range_capacity, log_capacity;
  gcap_doctor_event_damage_t damage;
} gcap_doctor_recording_t;

// Reads a file of events, or a simulator's log, to its end; `name` is for messages. Never NULL: a file without one good
// line gives an empty recording, whose `damage` says why. Free by gcap_doctor_recording_destroy.
gcap_doctor_recording_t* gcap_doctor_recording_read(FILE* file, const char* name);
void gcap_doctor_recording_destroy(gcap_doctor_recording_t* recording);

// An empty recording, for readers of other formats. Theirs: to add with the functions below, then
// gcap_doctor_recording_finish, which orders the calls and ties nodes to them.
gcap_doctor_recording_t* gcap_doctor_recording_create(const char* source);
void gcap_doctor_recording_finish(gcap_doctor_recording_t* recording);
// Each returns the index of the new entry, zeroed, its indices and ids GCAP_DOCTOR_NONE.
uint32_t gcap_doctor_recording_add_call(gcap_doctor_recording_t* recording);
uint32_t gcap_doctor_recording_add_thread(gcap_doctor_recording_t* recording, uint32_t id);
uint32_t gcap_doctor_recording_add_stream(gcap_doctor_recording_t* recording, uint32_t id);

// How many calls are recorded, those that are counted with one another among them.
uint64_t gcap_doctor_recording_count_calls(const gcap_doctor_recording_t* recording);

// The C frame of a stack that a user would look at first: the innermost one that is neither CUDA's own library nor the
// recorder. An index into `frames`; GCAP_DOCTOR_NONE if there is none.
uint32_t gcap_doctor_recording_c_frame(const gcap_doctor_recording_t* recording, uint32_t stack);
// The Python frame that a user would look at first: that of the program, and not that of a framework on which the
// program is built (user_frame.c has the rules). GCAP_DOCTOR_NONE without a stack.
uint32_t gcap_doctor_recording_user_frame(const gcap_doctor_recording_t* recording, uint32_t stack);
// Finds `main_folder`, once all stacks are there.
void gcap_doctor_recording_find_program(gcap_doctor_recording_t* recording);
// The innermost Python frame; GCAP_DOCTOR_NONE if there is none.
uint32_t gcap_doctor_recording_python_frame(const gcap_doctor_recording_t* recording, uint32_t stack);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_EVENTS_RECORDING_H_
