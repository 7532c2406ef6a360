// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// memory_calls.h: the driver's calls that an audit follows; memory_calls.inc is the list.
#ifndef GCAP_DOCTOR_RECORD_MEMORY_CALLS_H_
#define GCAP_DOCTOR_RECORD_MEMORY_CALLS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

typedef enum gcap_doctor_memory_does {
  GCAP_DOCTOR_MEMORY_DOES_NOTHING = 0,
  GCAP_DOCTOR_MEMORY_DOES_ALLOC,
  GCAP_DOCTOR_MEMORY_DOES_FREE,
  GCAP_DOCTOR_MEMORY_DOES_SET,     // another content of an executable's node
  GCAP_DOCTOR_MEMORY_DOES_ENABLE,  // whether an executable's node runs
} gcap_doctor_memory_does_t;

// Whose memory. The names of reports are gcap_doctor_memory_what_name's.
typedef enum gcap_doctor_memory_what {
  GCAP_DOCTOR_MEMORY_NONE = 0,
  GCAP_DOCTOR_MEMORY_DEVICE,
  GCAP_DOCTOR_MEMORY_MANAGED,
  GCAP_DOCTOR_MEMORY_POOL,        // ordered by streams
  GCAP_DOCTOR_MEMORY_HOST,        // pinned by the driver
  GCAP_DOCTOR_MEMORY_REGISTERED,  // the program's, pinned in place
  GCAP_DOCTOR_MEMORY_MAPPED,      // a range of addresses with memory behind it
  GCAP_DOCTOR_MEMORY_PYTORCH,     // a block of a framework's allocator, within memory of the driver's
  GCAP_DOCTOR_MEMORY_CUPY,
  GCAP_DOCTOR_MEMORY_STACK,     // of a thread
  GCAP_DOCTOR_MEMORY_PAGEABLE,  // of the host, which nobody pinned
  GCAP_DOCTOR_NUM_MEMORY_WHATS,
} gcap_doctor_memory_what_t;

// What an argument is. OUT and PITCH are pointers to what they name.
typedef enum gcap_doctor_memory_argument {
  GCAP_DOCTOR_MEMORY_ARGUMENT_OUT,      // where the address of new memory goes
  GCAP_DOCTOR_MEMORY_ARGUMENT_ADDRESS,  // of memory
  GCAP_DOCTOR_MEMORY_ARGUMENT_BYTES,
  GCAP_DOCTOR_MEMORY_ARGUMENT_PITCH,  // bytes of a row
  GCAP_DOCTOR_MEMORY_ARGUMENT_ROWS,
  GCAP_DOCTOR_MEMORY_ARGUMENT_EXEC,
  GCAP_DOCTOR_MEMORY_ARGUMENT_NODE,
  GCAP_DOCTOR_MEMORY_ARGUMENT_KERNEL,  // the driver's descriptions of nodes
  GCAP_DOCTOR_MEMORY_ARGUMENT_COPY,
  GCAP_DOCTOR_MEMORY_ARGUMENT_MEMSET,
  GCAP_DOCTOR_MEMORY_ARGUMENT_ENABLED,
  GCAP_DOCTOR_NUM_MEMORY_ARGUMENTS,
} gcap_doctor_memory_argument_t;

typedef struct gcap_doctor_memory_call {
  uint8_t does, what;
  uint8_t at[GCAP_DOCTOR_NUM_MEMORY_ARGUMENTS];  // the argument's offset + 1; 0 for a call without it
} gcap_doctor_memory_call_t;

// Never NULL: what a call that is not in the list is.
const gcap_doctor_memory_call_t* gcap_doctor_memory_call(uint32_t callback);

// Reads an argument of 8 bytes. False for a call without it.
bool gcap_doctor_memory_argument(const gcap_doctor_memory_call_t* call, const void* arguments,
                                 gcap_doctor_memory_argument_t kind, uint64_t* out_value);

// The memory that a call made, or was given to free; `bytes` is 0 where a call does not tell. False if there is none.
bool gcap_doctor_memory_of_call(const gcap_doctor_memory_call_t* call, const void* arguments, uint64_t* out_address,
                                uint64_t* out_bytes);

// "device", "pool": the word of the file of events.
const char* gcap_doctor_memory_what_name(gcap_doctor_memory_what_t what);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_MEMORY_CALLS_H_
