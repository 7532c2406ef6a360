// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// idle_handle.h: library handles whose end breaks the captures of all threads, and which are therefore kept while one
// is open, for the next stream that wants one.
#ifndef GCAP_OPS_HANDLES_IDLE_HANDLE_H_
#define GCAP_OPS_HANDLES_IDLE_HANDLE_H_

#include <pthread.h>

// The beginning of an object that owns a handle.
typedef struct gcap_idle_handle {
  struct gcap_idle_handle* next;
  int device_id;
} gcap_idle_handle_t;

// The idle handles of one kind.
typedef struct gcap_idle_handles {
  void (*end)(gcap_idle_handle_t* handle);  // breaks captures; frees the object
  pthread_mutex_t mutex;
  gcap_idle_handle_t* first;
} gcap_idle_handles_t;

// An idle handle of the device, which is the caller's then; NULL if there is none.
gcap_idle_handle_t* gcap_idle_handle_take(gcap_idle_handles_t* handles, int device_id);

// Ends the handle, and what is idle of its device, which is current; or keeps it, if a capture scope is open.
void gcap_idle_handle_return(gcap_idle_handles_t* handles, gcap_idle_handle_t* handle);

#endif  // GCAP_OPS_HANDLES_IDLE_HANDLE_H_
