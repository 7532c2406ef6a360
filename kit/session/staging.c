// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Staging memory. A graph that has its address may end on any thread, long after the tensor was bound to something
// else, so nobody frees the memory at that moment: the graph lets go of its part, and the owner of the list looks from
// time to time which blocks are its own alone.
//
// Locking: none. What is left to the session is a list that is taken and given back as a whole, by atomic exchange.

#include "kit/session/staging.h"

#include "gcap/log.h"

gcap_status_t gcap_staging_get(const gcap_session_parts_t* parts, int ep, size_t bytes, gcap_staging_t** list,
                               gcap_staging_t** out_block) {
  *out_block = NULL;
  for (gcap_staging_t* block = *list; block != NULL; block = block->next) {
    if (block->bytes != bytes) continue;
    *out_block = block;
    return NULL;
  }
  gcap_staging_t* block = calloc(1, sizeof(*block));
  gcap_hold_t* hold = gcap_hold_create();
  gcap_status_t status = block == NULL || hold == NULL ? gcap_session_no_memory() : NULL;
  if (status == NULL) status = gcap_allocator_alloc(parts->ep_facts[ep].allocator, bytes, &block->data);
  if (status != NULL) {
    free(block);
    free(hold);
    return status;
  }
  block->bytes = bytes;
  block->ep = ep;
  block->hold = hold;
  block->next = *list;
  *list = *out_block = block;
  return NULL;
}

// --- Ends -----------------------------------------------------------------------------------------------------------

static void forget(gcap_staging_t* block) {
  gcap_hold_let_go(block->hold);
  free(block);
}

static gcap_status_t free_data(const gcap_session_parts_t* parts, const gcap_staging_t* block) {
  gcap_status_t status = gcap_allocator_free(parts->ep_facts[block->ep].allocator, block->data);
  return gcap_status_annotate(status, gcap_status_code(status), "%zu bytes of staging memory cannot be freed",
                              block->bytes);
}

void gcap_staging_free_unused(const gcap_session_parts_t* parts, gcap_staging_t** list, const gcap_staging_t* used) {
  for (gcap_staging_t** at = list; *at != NULL;) {
    gcap_staging_t* block = *at;
    gcap_status_t status = NULL;
    const bool is_unused = block != used && gcap_hold_is_alone(block->hold);
    if (is_unused) status = free_data(parts, block);
    if (status != NULL) gcap_log(GCAP_LOG_WARNING, "to be tried again: %s", gcap_status_message(status));
    if (is_unused && status == NULL) {
      *at = block->next;
      forget(block);
    } else {
      at = &block->next;
    }
    gcap_status_free(status);
  }
}

void gcap_staging_leave_to_session(gcap_session_t* session, gcap_staging_t** list) {
  gcap_staging_t* first = *list;
  if (first == NULL) return;
  gcap_staging_t* last = first;
  while (last->next != NULL) last = last->next;
  last->next = atomic_load(&session->staging_left);
  while (!atomic_compare_exchange_weak(&session->staging_left, &last->next, first)) continue;
  *list = NULL;
}

void gcap_staging_free_left(gcap_session_t* session) {
  gcap_staging_t* list = atomic_exchange(&session->staging_left, NULL);
  gcap_staging_free_unused(&session->parts, &list, NULL);
  gcap_staging_leave_to_session(session, &list);
}

gcap_status_t gcap_staging_end(gcap_session_t* session, bool may_be_used) {
  gcap_status_t status = NULL;
  for (gcap_staging_t *block = atomic_exchange(&session->staging_left, NULL), *next; block != NULL; block = next) {
    next = block->next;
    if (!may_be_used) status = gcap_status_join(status, free_data(&session->parts, block));
    forget(block);
  }
  return status;
}
