// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// grow.h: room for one more entry in an array of a recording.
#ifndef GCAP_DOCTOR_EVENTS_GROW_H_
#define GCAP_DOCTOR_EVENTS_GROW_H_

#include "doctor/base/heap.h"

// `array`, `count` and `capacity` are members of the recording.
#define GCAP_DOCTOR_GROW(recording, array, count, capacity)                                                   \
  ((recording)->array = gcap_doctor_heap_grow((recording)->array, (recording)->count, &(recording)->capacity, \
                                              sizeof(*(recording)->array)))

#endif  // GCAP_DOCTOR_EVENTS_GROW_H_
