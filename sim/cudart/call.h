// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// call.h: what hangs on every call besides its own work: names and counters, injected faults, the log, turns, random
// numbers. All of it is guarded by the global mutex.
#ifndef GCAP_SIM_CUDART_CALL_H_
#define GCAP_SIM_CUDART_CALL_H_

#include "../base/name_table.h"
#include "../base/random.h"
#include "../base/silence.h"
#include "core.h"

// --- Functions by name (api.c) --------------------------------------------------------------------------------------

// A function of the runtime, or of a library simulated on top of it. Lives for ever.
typedef struct gcap_sim_function {
  const char* name;
  gcap_sim_class_t class;
  uint64_t calls;
  size_t faults;  // armed for it by name
} gcap_sim_function_t;

// The function of that name. One that is not of the runtime is made when it is first asked for, with a copy of the
// name, because the functions of libraries are in no table.
gcap_sim_function_t* gcap_sim_function_named(const char* name);

// --- The schedule (scheduler.c) -------------------------------------------------------------------------------------

typedef enum gcap_sim_schedule {
  GCAP_SIM_SCHEDULE_RANDOM,
  GCAP_SIM_SCHEDULE_LAZY,
  GCAP_SIM_SCHEDULE_EAGER
} gcap_sim_schedule_t;

// In the child of a fork, where no thread but the caller lives on.
void gcap_sim_scheduler_forked(void);
// Returns the schedule so far.
gcap_sim_schedule_t gcap_sim_set_schedule(gcap_sim_schedule_t schedule);

// --- Faults (fault.c) -----------------------------------------------------------------------------------------------

// True while anything is armed, pending or sticky: all that a call without faults has to look at.
extern bool gcap_sim_fault_any;

// What the call answers in place of its own work: a sticky error, or the code of a fault that hits it, or success.
cudaError_t gcap_sim_fault_enter(gcap_sim_function_t* function);
// What the call answers after its work: a sticky error that surfaced meanwhile, else `code`.
cudaError_t gcap_sim_fault_leave(cudaError_t code);

// --- The log (log.c) ------------------------------------------------------------------------------------------------

// Reads the filter from the environment, unless a call has set one.
void gcap_sim_log_prepare(void);
void gcap_sim_log_begin(gcap_sim_thread_t* thread, const gcap_sim_function_t* function, uint64_t number);
void gcap_sim_log_end(gcap_sim_thread_t* thread, cudaError_t code);
void gcap_sim_log_thread_ends(gcap_sim_thread_t* thread);

// --- Turns (turns.c) ------------------------------------------------------------------------------------------------

// Gives the turn away and waits to get it back; nothing for a thread of no group.
void gcap_sim_turns_arrive(gcap_sim_thread_t* thread);
// Lets the others of the group go on while this thread is stuck in a call, and lines up again.
void gcap_sim_turns_step_out(gcap_sim_thread_t* thread);
void gcap_sim_turns_step_in(gcap_sim_thread_t* thread);
void gcap_sim_turns_thread_ends(gcap_sim_thread_t* thread);

#endif  // GCAP_SIM_CUDART_CALL_H_
