// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// call.h: what hangs on every call besides its own work: names and counters, injected faults, the log, turns, random
// numbers. All of it is guarded by the global mutex.
#ifndef GCAP_SIM_CUDART_CALL_H_
#define GCAP_SIM_CUDART_CALL_H_

#include "core.h"

// --- Functions by name (api.c) --------------------------------------------------------------------------------------

// A function of the runtime, or of a library simulated on top of it. Lives for ever.
typedef struct sim_function {
  const char* name;
  sim_class_t class;
  uint64_t calls;
  size_t faults;  // armed for it by name
} sim_function_t;

// The function of that name. One that is not of the runtime is made when it is first asked for, with a copy of the
// name, because the functions of libraries are in no table.
sim_function_t* sim_function_named(const char* name);

// --- Names (name_table.c) -------------------------------------------------------------------------------------------

// A hash table from names to values. The names are kept by pointer.
typedef struct sim_name_slot {
  const char* name;
  void* value;
} sim_name_slot_t;

typedef struct sim_name_table {
  sim_name_slot_t* slots;
  size_t capacity;  // a power of two, or 0
  size_t count;
} sim_name_table_t;

// The value of the name; NULL when it has none.
void* sim_name_find(const sim_name_table_t* table, const char* name);
// Adds a name that is not in the table.
void sim_name_add(sim_name_table_t* table, const char* name, void* value);

// --- Random numbers (random.c) --------------------------------------------------------------------------------------

// Each purpose has its own sequence, so that arming a fault or adding a thread does not shift the schedule.
typedef enum sim_random_purpose {
  SIM_RANDOM_SCHEDULE,
  SIM_RANDOM_FAULT,
  SIM_RANDOM_TURNS,
  SIM_RANDOM_COUNT
} sim_random_purpose_t;

// What explore puts aside while other seeds run.
typedef struct sim_random_state {
  bool seeded;
  uint64_t seed;
  uint64_t words[SIM_RANDOM_COUNT];
} sim_random_state_t;

void sim_random_seed(uint64_t seed);
sim_random_state_t sim_random_save(void);
void sim_random_restore(const sim_random_state_t* state);
// The seed in force: set by a call, or by GCAP_SIM_SEED, or 0.
uint64_t sim_seed(void);
size_t sim_random_below(sim_random_purpose_t purpose, size_t bound);
// True with the given probability.
bool sim_random_chance(sim_random_purpose_t purpose, double probability);

// --- The schedule (scheduler.c) -------------------------------------------------------------------------------------

typedef enum sim_schedule { SIM_SCHEDULE_RANDOM, SIM_SCHEDULE_LAZY, SIM_SCHEDULE_EAGER } sim_schedule_t;

// In the child of a fork, where no thread but the caller lives on.
void sim_scheduler_forked(void);
// Returns the schedule so far.
sim_schedule_t sim_set_schedule(sim_schedule_t schedule);

// --- Faults (fault.c) -----------------------------------------------------------------------------------------------

// True while anything is armed, pending or sticky: all that a call without faults has to look at.
extern bool sim_fault_any;

// What the call answers in place of its own work: a sticky error, or the code of a fault that hits it, or success.
cudaError_t sim_fault_enter(sim_function_t* function);
// What the call answers after its work: a sticky error that surfaced meanwhile, else `code`.
cudaError_t sim_fault_leave(cudaError_t code);

// --- The log (log.c) ------------------------------------------------------------------------------------------------

// Reads the filter from the environment, unless a call has set one.
void sim_log_prepare(void);
void sim_log_begin(sim_thread_t* thread, const sim_function_t* function, uint64_t number);
void sim_log_end(sim_thread_t* thread, cudaError_t code);
void sim_log_thread_ends(sim_thread_t* thread);

// --- Turns (turns.c) ------------------------------------------------------------------------------------------------

// Gives the turn away and waits to get it back; nothing for a thread of no group.
void sim_turns_arrive(sim_thread_t* thread);
// Lets the others of the group go on while this thread is stuck in a call, and lines up again.
void sim_turns_step_out(sim_thread_t* thread);
void sim_turns_step_in(sim_thread_t* thread);
void sim_turns_thread_ends(sim_thread_t* thread);

// --- Time that passes for others (silence.c) ------------------------------------------------------------------------

// Waits on the condition with the global mutex; false after `milliseconds`.
bool sim_wait_ms(pthread_cond_t* condition, unsigned milliseconds);
// Is no other thread of the process running? A thread that is ready but has no processor counts as running.
bool sim_others_sleep(void);

#endif  // GCAP_SIM_CUDART_CALL_H_
