// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Close steps and retained entries: two stacks of callbacks, called newest first, each once. An entry is removed before
// it is called. Locking: none. A scope belongs to its thread. What it retained does not change until its last owner
// lets go.

#include "lib/capture/entries.h"

#include <stdlib.h>

#include "lib/capture/inner.h"

gcap_status_t gcap_capture_entries_push(gcap_capture_entry_t** newest, gcap_capture_entry_t value, const char* what) {
  gcap_capture_entry_t* entry = malloc(sizeof(*entry));
  if (entry == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %s of a capture", what);
  *entry = value;
  entry->older = *newest;
  *newest = entry;
  return NULL;
}

bool gcap_capture_entries_pop(gcap_capture_entry_t** newest, gcap_capture_entry_t* out_entry) {
  gcap_capture_entry_t* entry = *newest;
  if (entry == NULL) return false;
  *newest = entry->older;
  *out_entry = *entry;
  free(entry);
  return true;
}

gcap_retained_t* gcap_retained_create(void) {
  gcap_retained_t* retained = calloc(1, sizeof(*retained));
  if (retained != NULL) atomic_init(&retained->owners, 1);
  return retained;
}

gcap_retained_t* gcap_retained_share(gcap_retained_t* retained) {
  if (retained != NULL) atomic_fetch_add_explicit(&retained->owners, 1, memory_order_relaxed);
  return retained;
}

void gcap_retained_each(const gcap_retained_t* retained, void (*visit)(void* context, const void* user),
                        void* context) {
  const gcap_capture_entry_t* entry = retained == NULL ? NULL : retained->newest;
  for (; entry != NULL; entry = entry->older) visit(context, entry->user);
}

size_t gcap_retained_bytes(const gcap_retained_t* retained) {
  size_t bytes = 0;
  for (const gcap_capture_entry_t* entry = retained == NULL ? NULL : retained->newest; entry != NULL;
       entry = entry->older) {
    if (entry->bytes != NULL) bytes += entry->bytes(entry->user);
  }
  return bytes;
}

void gcap_retained_list(const gcap_retained_t* retained, void (*visit)(void* context, void* address, size_t bytes),
                        void* context) {
  const gcap_capture_entry_t* entry = retained == NULL ? NULL : retained->newest;
  for (; entry != NULL; entry = entry->older) {
    if (entry->list != NULL) entry->list(entry->user, visit, context);
  }
}

void gcap_retained_release(gcap_retained_t* retained) {
  if (retained == NULL) return;
  if (atomic_fetch_sub_explicit(&retained->owners, 1, memory_order_acq_rel) > 1) return;
  gcap_capture_entry_t entry;
  while (gcap_capture_entries_pop(&retained->newest, &entry)) entry.release(entry.user);
  free(retained);
}
