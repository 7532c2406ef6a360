// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The table of the calls that an audit follows, by CUPTI's numbers, made of memory_calls.inc; and the memory that such
// a call is about, out of its arguments. Locking: none.
#include "doctor/record/memory_calls.h"

#include <string.h>

#include "doctor/record/driver_calls.h"

static const gcap_doctor_memory_call_t calls[GCAP_DOCTOR_NUM_DRIVER_CALLS] = {
#define MEMORY_CALL(number, name, does_what, with) \
  [number].does = GCAP_DOCTOR_MEMORY_DOES_##does_what, [number].what = GCAP_DOCTOR_MEMORY_##with,
#define MEMORY_ARGUMENT(number, name, kind, field, offset) \
  [number].at[GCAP_DOCTOR_MEMORY_ARGUMENT_##kind] = (offset) + 1,
#include "doctor/record/memory_calls.inc"
#undef MEMORY_CALL
#undef MEMORY_ARGUMENT
};

const gcap_doctor_memory_call_t* gcap_doctor_memory_call(uint32_t callback) {
  return &calls[callback < GCAP_DOCTOR_NUM_DRIVER_CALLS ? callback : 0];
}

bool gcap_doctor_memory_argument(const gcap_doctor_memory_call_t* call, const void* arguments,
                                 gcap_doctor_memory_argument_t kind, uint64_t* out_value) {
  *out_value = 0;
  if (call->at[kind] == 0 || arguments == NULL) return false;
  memcpy(out_value, (const char*)arguments + call->at[kind] - 1, sizeof(*out_value));
  return true;
}

// What an argument points to.
static bool read_at(const gcap_doctor_memory_call_t* call, const void* arguments, gcap_doctor_memory_argument_t kind,
                    uint64_t* out_value) {
  uint64_t place;
  if (!gcap_doctor_memory_argument(call, arguments, kind, &place) || place == 0) return false;
  memcpy(out_value, (const void*)(uintptr_t)place, sizeof(*out_value));
  return true;
}

bool gcap_doctor_memory_of_call(const gcap_doctor_memory_call_t* call, const void* arguments, uint64_t* out_address,
                                uint64_t* out_bytes) {
  uint64_t pitch, rows;
  if (!read_at(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_OUT, out_address) &&
      !gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_ADDRESS, out_address)) {
    return false;
  }
  gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_BYTES, out_bytes);
  if (gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_ROWS, &rows) &&
      read_at(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_PITCH, &pitch)) {
    *out_bytes = pitch * rows;
  }
  return *out_address != 0;
}

const char* gcap_doctor_memory_what_name(gcap_doctor_memory_what_t what) {
  static const char* const names[GCAP_DOCTOR_NUM_MEMORY_WHATS] = {
      "unknown", "device", "managed", "pool", "host", "registered", "mapped", "pytorch", "cupy", "stack", "pageable"};
  return names[what < GCAP_DOCTOR_NUM_MEMORY_WHATS ? what : 0];
}
