// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// entries.h: things to do when a scope, or what it retained, ends: close steps and retained entries.
#ifndef GCAP_LIB_CAPTURE_ENTRIES_H_
#define GCAP_LIB_CAPTURE_ENTRIES_H_

#include <stdatomic.h>

#include "gcap/capture.h"
#include "lib/base/capture_hooks.h"

typedef struct gcap_capture_entry {
  union {
    void (*close)(void* user, bool committed);
    void (*release)(void* user);
  };
  size_t (*bytes)(void* user);  // NULL for what counts nothing
  gcap_retained_list_t list;    // NULL for what lists no memory
  void* user;
  struct gcap_capture_entry* older;
} gcap_capture_entry_t;

struct gcap_retained {
  gcap_capture_entry_t* newest;
  atomic_uint owners;  // see gcap_retained_share
};

// With one owner and without an entry. NULL when there is no memory.
gcap_retained_t* gcap_retained_create(void);

// Adds a copy of `value` as the newest. `what` is its name in a message: "a close step".
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_capture_entries_push(gcap_capture_entry_t** newest, gcap_capture_entry_t value,
                                        const char* what) GCAP_NODISCARD;
// Takes the newest off the list; false when there is none.
bool gcap_capture_entries_pop(gcap_capture_entry_t** newest, gcap_capture_entry_t* out_entry);

#endif  // GCAP_LIB_CAPTURE_ENTRIES_H_
