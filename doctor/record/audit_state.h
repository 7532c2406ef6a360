// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// audit_state.h: what the parts of the audit share: the program's memory, and executables with what they point into.
#ifndef GCAP_DOCTOR_RECORD_AUDIT_STATE_H_
#define GCAP_DOCTOR_RECORD_AUDIT_STATE_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/record/audit_read.h"
#include "doctor/record/audit_tell.h"
#include "doctor/record/cupti_abi.h"
#include "doctor/record/map.h"
#include "doctor/record/memory.h"
#include "doctor/record/memory_calls.h"
#include "doctor/record/thread.h"

#pragma GCC visibility push(hidden)

enum { GCAP_DOCTOR_AUDIT_MAX_GRAVES = 128 };  // each word of a new executable is compared with them

typedef struct gcap_doctor_audit_pointer {
  uint32_t piece;
  gcap_doctor_audit_word_t word;
} gcap_doctor_audit_pointer_t;

// A piece that an executable points into.
typedef struct gcap_doctor_audit_used {
  uint32_t piece;
  bool is_told;
} gcap_doctor_audit_used_t;

// Memory of the host that nobody pinned, behind a copy.
typedef struct gcap_doctor_audit_host {
  gcap_doctor_audit_word_t word;
  uint32_t thread;  // that made the executable
  bool is_stack;    // of that thread
  bool is_told;
} gcap_doctor_audit_host_t;

typedef struct gcap_doctor_audit_exec {
  gcap_doctor_audit_node_t* nodes;
  gcap_doctor_audit_pointer_t* pointers;
  gcap_doctor_audit_used_t* used;
  gcap_doctor_audit_host_t* hosts;
  size_t num_nodes, num_pointers, num_used, num_hosts;
  uint32_t group;      // index into `groups` + 1; 0 for none
  uint32_t launches;   // up to 2
  uint64_t bytes;      // of its allocation nodes
  uint64_t epoch;      // of the memory, when it was looked at
  uint32_t launching;  // the thread in whose launch it is; 0 for none
  bool is_told;        // that two threads launch it
  uint32_t next_free;  // index + 1
} gcap_doctor_audit_exec_t;

// One for the process. All but what is atomic is under the lock.
typedef struct gcap_doctor_audit_state {
  pthread_mutex_t lock;
  gcap_doctor_map_t group_of_stack;  // index + 1
  gcap_doctor_audit_group_t* groups;
  size_t num_groups, group_capacity;
  atomic_bool is_on;
  atomic_bool has_said_untold;
  atomic_bool has_hosts;  // some executable copies memory of the host that nobody pinned
  atomic_bool is_followed[GCAP_DOCTOR_NUM_MEMORY_WHATS];
  gcap_doctor_memory_t memory;
  uint64_t low, high;  // of all memory so far
  gcap_doctor_map_t places;
  // What was freed while a capture was open: a graph that is instantiated later may point into it. A ring.
  uint32_t graves[GCAP_DOCTOR_AUDIT_MAX_GRAVES];
  size_t num_graves;
  gcap_doctor_audit_exec_t* execs;
  size_t num_execs, exec_capacity;
  uint32_t first_free;
} gcap_doctor_audit_state_t;

extern gcap_doctor_audit_state_t gcap_doctor_audit;

// --- Memory; audit_memory.c ------------------------------------------------------------------------------------------

void gcap_doctor_audit_memory_made(const gcap_doctor_memory_call_t* call, const void* arguments,
                                   const gcap_doctor_memory_place_t* place);
// All that lived in a range as the call began, which was when `serial` was the newest memory's; or the piece that
// begins at the address, for a call that names no range.
void gcap_doctor_audit_memory_freed(const gcap_doctor_memory_call_t* call, const void* arguments, uint64_t serial,
                                    const gcap_doctor_memory_place_t* place);
uint64_t gcap_doctor_audit_last_serial(void);
// With the lock held. The piece that a word points into: a framework's block before the driver's memory around it.
uint32_t gcap_doctor_audit_living_piece(uint64_t value);
// With the lock held. The piece that a word of a new executable points into.
uint32_t gcap_doctor_audit_piece(uint64_t value);

// --- Executables; audit_execs.c --------------------------------------------------------------------------------------

// With the lock held. NULL for none.
gcap_doctor_audit_exec_t* gcap_doctor_audit_find_exec(const void* handle);
// With the lock held. Leaves the place to the executable.
void gcap_doctor_audit_forget_pointers(gcap_doctor_audit_exec_t* exec);
// With the lock held. Refers to each piece once. Without memory the executable has no pointers.
void gcap_doctor_audit_refer(gcap_doctor_audit_exec_t* exec);
// With the lock held.
void gcap_doctor_audit_add_host(gcap_doctor_audit_exec_t* exec, gcap_doctor_thread_t* thread,
                                const gcap_doctor_audit_word_t* word);
// A read of words that may be addresses of the program's memory so far.
gcap_doctor_audit_read_t gcap_doctor_audit_begin_read(void);
// An executable has the graph's content from now on. `made` is where it was made; NULL for an update.
void gcap_doctor_audit_take_graph(gcap_doctor_thread_t* thread, const void* handle, void* graph,
                                  const gcap_doctor_memory_place_t* made);
// What is left at the end of the executables that were made at one place. The lines go to `out`.
void gcap_doctor_audit_tell_groups(gcap_doctor_line_t* out);

// --- Nodes of executables; audit_nodes.c -----------------------------------------------------------------------------

// A call gave a node of an executable another content, or switched it on or off.
void gcap_doctor_audit_set_node(gcap_doctor_thread_t* thread, const gcap_doctor_memory_call_t* call,
                                const void* arguments);
void gcap_doctor_audit_enable_node(gcap_doctor_thread_t* thread, const gcap_doctor_memory_call_t* call,
                                   const void* arguments);

// --- Launches; audit_launches.c --------------------------------------------------------------------------------------

void gcap_doctor_audit_launched(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data,
                                const void* handle);
void gcap_doctor_audit_launch_ended(const gcap_doctor_thread_t* thread, const void* handle);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_AUDIT_STATE_H_
