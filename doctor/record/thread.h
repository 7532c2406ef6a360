// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// thread.h: what the recorder keeps of each thread of the program.
#ifndef GCAP_DOCTOR_RECORD_THREAD_H_
#define GCAP_DOCTOR_RECORD_THREAD_H_

#include <stdbool.h>
#include <stdint.h>

#include "doctor/record/intern.h"
#include "doctor/record/line.h"
#include "doctor/record/own_file.h"

#pragma GCC visibility push(hidden)

enum {
  GCAP_DOCTOR_MAX_DEPTH = 16,  // of calls within calls; three were seen. Deeper ones are written if they fail
};

// A call that has begun and not returned.
typedef struct gcap_doctor_open_call {
  uint32_t callback, correlation;
  uint32_t epoch;      // of the switch; see calls.c
  uintptr_t position;  // of the thread's C stack
  uint64_t number, start_ns;
  uint32_t stream, event, graph, exec;  // ids, 0 for none
  int32_t mode;                         // that a thread changes to; -1 for none
  uint32_t num_nodes;                   // made so far
  bool is_named;                        // another line has its number
} gcap_doctor_open_call_t;

// Nodes of one type that one call made, whose ids follow each other: one line for all. `count` is 0 for none.
typedef struct gcap_doctor_node_run {
  uint32_t graph, count;
  int32_t type;
  uint64_t id, call;  // of the first one; of the call, 0 for none
} gcap_doctor_node_run_t;

// Edges whose ends follow each other.
typedef struct gcap_doctor_edge_run {
  uint32_t graph, count;
  uint64_t from, to;
} gcap_doctor_edge_run_t;

// Thread: its own alone
typedef struct gcap_doctor_thread {
  uint32_t id;
  bool is_main;                    // the process's first thread
  bool is_busy;                    // the recorder is at work on this thread: what it causes itself is not recorded
  gcap_doctor_line_t definitions;  // lines that go with the next write, before the others: what those refer to
  gcap_doctor_line_t out;
  size_t can_wait;  // bytes of `out`, from its beginning, that need no write of their own
  gcap_doctor_defined_t defined;
  gcap_doctor_open_call_t calls[GCAP_DOCTOR_MAX_DEPTH];
  uint32_t depth;                // of `calls`
  uint64_t last_failed;          // the number of its last call of the program, if that was recorded and failed; else 0
  uint64_t unseen;               // the number of a call that made nodes, and whose beginning was not seen; 0 for none
  const void* new_node;          // that is about to be made
  int32_t new_type;              // and its type
  gcap_doctor_node_run_t nodes;  // in no line yet
  gcap_doctor_edge_run_t edges;
  struct gcap_doctor_cloned {
    uint64_t from, to;
  } * clones;  // nodes of the executable that is being made
  size_t num_clones, clone_capacity;
  uintptr_t stack_low, stack_high;  // 0 until asked for
  uint64_t freeing;                 // the newest memory as a free began; see audit.c
  // Python stacks by the places of the thread: at a value - 1 a number of frames, and their ids. See python.c.
  gcap_doctor_map_t places;
  uint32_t* place_frames;
  size_t num_place_frames, place_frame_capacity;
  uint32_t place_epoch;
  gcap_doctor_map_t frame_ids;  // of Python's frames, by the places of each
  gcap_doctor_map_t codes;      // at a value - 1 of `code_names` the file and the function
  gcap_doctor_line_t code_names;
  struct gcap_doctor_seen* seen;   // stacks of this thread; stacks.c's
  gcap_doctor_own_file_t scratch;  // for Python stacks
  struct gcap_doctor_range {
    const void* domain;
    char* text;
  } * ranges;  // of NVTX, the outermost first
  size_t num_ranges, range_capacity, num_lost_ranges;
} gcap_doctor_thread_t;

// Before all else. Thread-safe.
bool gcap_doctor_threads_start(void);
// The calling thread; NULL without memory.
gcap_doctor_thread_t* gcap_doctor_thread_current(void);
// Writes all that is in no line yet, and the lines.
void gcap_doctor_thread_flush(gcap_doctor_thread_t* thread);
// Writes the lines alone.
void gcap_doctor_thread_write(gcap_doctor_thread_t* thread);
// Whether an address is on the calling thread's stack.
bool gcap_doctor_thread_has_on_stack(gcap_doctor_thread_t* thread, const void* address);
// An empty file in memory, the thread's own; -1 if there is none.
int gcap_doctor_thread_scratch_file(gcap_doctor_thread_t* thread);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_THREAD_H_
