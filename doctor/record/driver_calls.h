// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// driver_calls.h: what the recorder knows of the driver's calls; driver_calls.inc is the list.
#ifndef GCAP_DOCTOR_RECORD_DRIVER_CALLS_H_
#define GCAP_DOCTOR_RECORD_DRIVER_CALLS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

// What an argument is. A name with _OUT or _AT is a pointer to what it names.
typedef enum gcap_doctor_driver_argument {
  GCAP_DOCTOR_ARGUMENT_STREAM,
  GCAP_DOCTOR_ARGUMENT_STREAM_OUT,
  GCAP_DOCTOR_ARGUMENT_EVENT,
  GCAP_DOCTOR_ARGUMENT_EVENT_OUT,
  GCAP_DOCTOR_ARGUMENT_GRAPH,
  GCAP_DOCTOR_ARGUMENT_GRAPH_OUT,
  GCAP_DOCTOR_ARGUMENT_EXEC,
  GCAP_DOCTOR_ARGUMENT_EXEC_OUT,
  GCAP_DOCTOR_ARGUMENT_MODE,
  GCAP_DOCTOR_ARGUMENT_MODE_AT,
  GCAP_DOCTOR_ARGUMENT_STATUS_OUT,  // of a capture
  GCAP_DOCTOR_ARGUMENT_UPDATE_OUT,  // how an update went
  GCAP_DOCTOR_ARGUMENT_FLAGS,       // of a stream
  GCAP_DOCTOR_ARGUMENT_BYTES,
  GCAP_DOCTOR_ARGUMENT_COUNT_2,  // of words of two bytes
  GCAP_DOCTOR_ARGUMENT_COUNT_4,
  GCAP_DOCTOR_ARGUMENT_HOST_FROM,  // of a copy: memory of the host,
  GCAP_DOCTOR_ARGUMENT_HOST_TO,
  GCAP_DOCTOR_ARGUMENT_DEVICE_FROM,  // memory or an array of a device,
  GCAP_DOCTOR_ARGUMENT_DEVICE_TO,
  GCAP_DOCTOR_ARGUMENT_ANY_FROM,  // either
  GCAP_DOCTOR_ARGUMENT_ANY_TO,
  GCAP_DOCTOR_ARGUMENT_COPY_2D,  // pointers to the driver's descriptions of copies
  GCAP_DOCTOR_ARGUMENT_COPY_3D,
  GCAP_DOCTOR_ARGUMENT_LAUNCH_CONFIG,
  GCAP_DOCTOR_ARGUMENT_MEMORY,
  GCAP_DOCTOR_ARGUMENT_MEMORY_OUT,
  GCAP_DOCTOR_NUM_ARGUMENTS,
} gcap_doctor_driver_argument_t;

// What the recorder does with a call beside writing it.
typedef enum gcap_doctor_driver_role {
  GCAP_DOCTOR_ROLE_NONE = 0,
  GCAP_DOCTOR_ROLE_BEGIN,
  GCAP_DOCTOR_ROLE_END,
  GCAP_DOCTOR_ROLE_INSTANTIATE,
  GCAP_DOCTOR_ROLE_UPDATE,
  GCAP_DOCTOR_ROLE_EXCHANGE,
  GCAP_DOCTOR_ROLE_LAUNCH,
  GCAP_DOCTOR_ROLE_HOST_ALLOC,
  GCAP_DOCTOR_ROLE_HOST_REGISTER,
  GCAP_DOCTOR_ROLE_HOST_FREE,
  GCAP_DOCTOR_ROLE_MANAGED_ALLOC,
  GCAP_DOCTOR_ROLE_MANAGED_FREE,
  GCAP_DOCTOR_ROLE_STREAM_CREATE,
} gcap_doctor_driver_role_t;

enum {
  GCAP_DOCTOR_NUM_DRIVER_CALLS = 1024,  // room; CUDA 13.0 has 806
};

typedef struct gcap_doctor_driver_call {
  uint8_t role;
  uint8_t at[GCAP_DOCTOR_NUM_ARGUMENTS];  // the argument's offset + 1; 0 for a call without it
} gcap_doctor_driver_call_t;

// Never NULL: what a call that is not in the list is.
const gcap_doctor_driver_call_t* gcap_doctor_driver_call(uint32_t callback);

// Whether a call only asks something that breaks no capture, so that it is not written unless it fails.
bool gcap_doctor_driver_call_is_noise(uint32_t callback, const char* function);
// Whether a stream 0 of this call is that of the thread.
bool gcap_doctor_driver_call_is_per_thread(const char* function);
// The length of a function's name without its version.
size_t gcap_doctor_driver_call_name_length(const char* function);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_DRIVER_CALLS_H_
