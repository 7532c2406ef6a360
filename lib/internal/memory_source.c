// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The sources of memory: a list of the process. Only audits ask, so one mutex is over all of it, also while a source
// answers; a source's own lock is taken below it.

#include "lib/internal/memory_source.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static gcap_memory_source_t* first;

void gcap_memory_source_add(gcap_memory_source_t* source) {
  pthread_mutex_lock(&mutex);
  source->previous = NULL;
  source->next = first;
  if (first != NULL) first->previous = source;
  first = source;
  pthread_mutex_unlock(&mutex);
}

void gcap_memory_source_remove(gcap_memory_source_t* source) {
  pthread_mutex_lock(&mutex);
  if (source->next != NULL) source->next->previous = source->previous;
  *(source->previous != NULL ? &source->previous->next : &first) = source->next;
  pthread_mutex_unlock(&mutex);
}

gcap_status_t gcap_memory_find_claim(uintptr_t address, bool watch, gcap_memory_claim_t* out_claim, bool* out_found) {
  gcap_status_t status = NULL;
  *out_found = false;
  pthread_mutex_lock(&mutex);
  for (gcap_memory_source_t* source = first; status == NULL && source != NULL; source = source->next) {
    gcap_memory_claim_t claim;
    bool found = false;
    status = source->find(source, address, watch, &claim, &found);
    if (!found || (*out_found && out_claim->bytes <= claim.bytes)) continue;
    *out_claim = claim;
    *out_found = true;
  }
  pthread_mutex_unlock(&mutex);
  return status;
}
