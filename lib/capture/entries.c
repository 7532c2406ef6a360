// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Close steps and retained entries: two stacks of callbacks, called newest first, each once. An entry is removed before
// it is called, so a callback may use the stacks freely. Locking: none, a scope belongs to its thread and what it
// retained to one thread at a time.

#include "lib/capture/entries.h"

#include <stdlib.h>

gcap_status_t gcap_capture_entries_push(gcap_capture_entry_t** newest, gcap_capture_entry_t value, const char* what) {
  gcap_capture_entry_t* entry = malloc(sizeof(*entry));
  if (entry == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %s of a capture", what);
  *entry = value;
  entry->older = *newest;
  *newest = entry;
  return NULL;
}

void gcap_capture_entries_close(gcap_capture_entry_t** newest, bool committed) {
  while (*newest != NULL) {
    gcap_capture_entry_t* step = *newest;
    *newest = step->older;
    step->close(step->user, committed);
    free(step);
  }
}

void gcap_capture_entries_release(gcap_capture_entry_t* newest) {
  while (newest != NULL) {
    gcap_capture_entry_t* entry = newest;
    newest = entry->older;
    entry->release(entry->user);
    free(entry);
  }
}

size_t gcap_retained_bytes(const gcap_retained_t* retained) {
  size_t bytes = 0;
  for (const gcap_capture_entry_t* entry = retained == NULL ? NULL : retained->newest; entry != NULL;
       entry = entry->older) {
    if (entry->bytes != NULL) bytes += entry->bytes(entry->user);
  }
  return bytes;
}

void gcap_retained_release(gcap_retained_t* retained) {
  if (retained == NULL) return;
  gcap_capture_entries_release(retained->newest);
  free(retained);
}
