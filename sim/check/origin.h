// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// origin.h: which API call made a thing, and where the program made the call.
#ifndef GCAP_SIM_CHECK_ORIGIN_H_
#define GCAP_SIM_CHECK_ORIGIN_H_

#include <stddef.h>
#include <stdint.h>

#include "sim/base/thread.h"

#define GCAP_SIM_MAX_FRAMES 32

// A call stack, innermost frame first. Equal stacks are one object, which lives as long as the program.
typedef struct gcap_sim_stack {
  struct gcap_sim_stack* next;  // in its bucket
  uint64_t hash;
  size_t count;
  void** frames;      // return addresses
  uint32_t* offsets;  // of the slots that hold them, from the frame of the call
} gcap_sim_stack_t;

// One API call that made work, a handle or an allocation. Counted: tasks, allocations, handles and shadows share it.
typedef struct gcap_sim_origin {
  uint32_t refs;
  const char* call;
  uint64_t number;  // counts the calls of the program, up to this one
  uint64_t thread;
  const gcap_sim_stack_t* stack;  // NULL when stacks are off
} gcap_sim_origin_t;

// Notes the place of a call: __builtin_return_address(0) and __builtin_dwarf_cfa() in what the API function called.
void gcap_sim_origin_enter(void* return_address, void* frame);
// The same, with the stack taken at once: for calls that make their work after that function has returned.
void gcap_sim_origin_enter_now(void* return_address, void* frame);
// The call under way on this thread; borrowed, retain it to keep it.
gcap_sim_origin_t* gcap_sim_origin_current(void);
gcap_sim_origin_t* gcap_sim_origin_retain(gcap_sim_origin_t* origin);
void gcap_sim_origin_release(gcap_sim_origin_t* origin);

// The stack with these return addresses.
const gcap_sim_stack_t* gcap_sim_stack_of(void* const* frames, size_t count);
// Return addresses of the callers of the function whose stack pointer is `frame`. Takes no lock.
size_t gcap_sim_stack_unwind(const void* frame, void** frames, size_t capacity);

#endif  // GCAP_SIM_CHECK_ORIGIN_H_
