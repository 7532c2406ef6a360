// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// entries.h: things to do when a scope, or what it retained, ends: close steps and retained entries.
#ifndef GCAP_LIB_CAPTURE_ENTRIES_H_
#define GCAP_LIB_CAPTURE_ENTRIES_H_

#include "gcap/capture.h"

typedef struct entry {
  union {
    void (*close)(void* user, bool committed);
    void (*release)(void* user);
  };
  size_t (*bytes)(void* user);  // NULL for what counts nothing
  void* user;
  struct entry* older;
} entry_t;

struct gcap_retained {
  entry_t* newest;
};

// Empty the list, newest first.
void entries_close(entry_t** newest, bool committed);
void entries_release(entry_t* newest);

#endif  // GCAP_LIB_CAPTURE_ENTRIES_H_
