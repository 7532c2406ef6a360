// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// functions.h: what a function of the driver or of the runtime does, as far as a capture is concerned.
#ifndef GCAP_DOCTOR_ANALYSE_FUNCTIONS_H_
#define GCAP_DOCTOR_ANALYSE_FUNCTIONS_H_

#include <stdbool.h>
#include <stdint.h>

#include "doctor/events/recording.h"

typedef enum gcap_doctor_call_kind {
  GCAP_DOCTOR_CALL_OTHER = 0,
  GCAP_DOCTOR_CALL_BEGIN,
  GCAP_DOCTOR_CALL_END,
  GCAP_DOCTOR_CALL_EXCHANGE,     // of a thread's mode
  GCAP_DOCTOR_CALL_RECORD,       // of an event
  GCAP_DOCTOR_CALL_WAIT,         // of a stream on an event
  GCAP_DOCTOR_CALL_ASK,          // whether a stream captures
  GCAP_DOCTOR_CALL_ASK_POINTER,  // what an address is
  GCAP_DOCTOR_CALL_EVENT_QUERY,
  GCAP_DOCTOR_CALL_STREAM_SYNC,  // or its query
  GCAP_DOCTOR_CALL_STREAM_DESTROY,
  GCAP_DOCTOR_CALL_DEVICE_SYNC,     // refused in every mode, whichever thread makes it
  GCAP_DOCTOR_CALL_UNSAFE,          // may synchronize: breaks a capture by its mode
  GCAP_DOCTOR_CALL_ALLOCATE,        // the same, and often made again with less
  GCAP_DOCTOR_CALL_ALLOCATE_ASYNC,  // and its free
  GCAP_DOCTOR_CALL_REFUSED,         // fails in a capture, and leaves it as it is
  GCAP_DOCTOR_CALL_KERNEL,          // from here on: work
  GCAP_DOCTOR_CALL_COPY,
  GCAP_DOCTOR_CALL_FILL,
  GCAP_DOCTOR_CALL_HOST_FUNCTION,
  GCAP_DOCTOR_CALL_GRAPH_LAUNCH,
  GCAP_DOCTOR_CALL_INSTANTIATE,  // from here on: no work
  GCAP_DOCTOR_CALL_UPDATE,
} gcap_doctor_call_kind_t;

// By the function's name, with or without a version's ending.
gcap_doctor_call_kind_t gcap_doctor_call_kind(const char* function);

static inline bool gcap_doctor_call_is_work(gcap_doctor_call_kind_t kind) {
  return kind >= GCAP_DOCTOR_CALL_KERNEL && kind <= GCAP_DOCTOR_CALL_GRAPH_LAUNCH;
}

// A copy or fill that has no stream argument: it works on the default stream.
bool gcap_doctor_call_has_no_stream(const char* function);

// Whether the call told this state of its stream's capture: "active".
bool gcap_doctor_call_tells(const gcap_doctor_event_call_t* call, const char* status);

// Whether a Python file belongs to an installed package, not to the program.
bool gcap_doctor_is_of_package(const char* file);

// A function that only asks: that it fails means that no work is missing.
bool gcap_doctor_call_is_question(const char* function);

#endif  // GCAP_DOCTOR_ANALYSE_FUNCTIONS_H_
