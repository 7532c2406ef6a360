// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// intern.h: ids of what many lines refer to, and is written once: frames, stacks, and what calls have in common.
#ifndef GCAP_DOCTOR_RECORD_INTERN_H_
#define GCAP_DOCTOR_RECORD_INTERN_H_

#include <pthread.h>

#include "doctor/record/line.h"
#include "doctor/record/map.h"

#pragma GCC visibility push(hidden)

typedef struct gcap_doctor_intern gcap_doctor_intern_t;

// What a text defines and is not known to be in the file yet. Zeroed is empty.
typedef struct gcap_doctor_defined {
  struct {
    gcap_doctor_intern_t* table;
    uint32_t id;
  } * items;
  size_t count, capacity;
} gcap_doctor_defined_t;

// Thread-safe. Initialise with {.lock = PTHREAD_MUTEX_INITIALIZER}.
struct gcap_doctor_intern {
  pthread_mutex_t lock;
  gcap_doctor_map_t ids;  // by key
  char** lines;           // by id - 1; NULL for what is in the file
  size_t count, capacity;
};

// The id of a key; 0 if it has none. Its line is appended to `out` unless it is in the file.
uint32_t gcap_doctor_intern_find(gcap_doctor_intern_t* table, uint64_t key, gcap_doctor_line_t* out,
                                 gcap_doctor_defined_t* defined);
// Gives the key an id, or finds the one that another thread gave it. `fields` is the line without its kind and id, and
// begins with a tab. 0 without memory, or without room in the file for what is defined.
uint32_t gcap_doctor_intern_add(gcap_doctor_intern_t* table, uint64_t key, const char* kind,
                                const gcap_doctor_line_t* fields, gcap_doctor_line_t* out,
                                gcap_doctor_defined_t* defined);
// What was defined is in the file, or, if not `written`, is not; empties `defined`.
void gcap_doctor_intern_publish(gcap_doctor_defined_t* defined, bool written);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_INTERN_H_
