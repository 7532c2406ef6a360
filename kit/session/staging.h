// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// staging.h: memory of an EP in the place of a tensor that is elsewhere.
#ifndef GCAP_KIT_SESSION_STAGING_H_
#define GCAP_KIT_SESSION_STAGING_H_

#include "kit/ep/hold.h"
#include "kit/session/session_internal.h"

// One block, in a list of its owner, which has a part of the hold. Graphs that have the address, and streams that may
// still use it, have the others.
// Lifetime: in a list of a binding, then of the session, whose end frees it at the latest.
typedef struct gcap_staging {
  struct gcap_staging* next;
  void* data;
  size_t bytes;
  int ep;  // whose memory it is
  gcap_hold_t* hold;
} gcap_staging_t;

// Gives the block of so many bytes of the list, all of which are of one EP; makes one if there is none.
//   RESOURCE_EXHAUSTED  no host memory
//   others              of the EP's allocator
gcap_status_t gcap_staging_get(const gcap_session_parts_t* parts, int ep, size_t bytes, gcap_staging_t** list,
                               gcap_staging_t** out_block) GCAP_NODISCARD;

// Frees what only the list has, but for `used`, which may be NULL. What cannot be freed stays in the list, and a
// warning says so.
void gcap_staging_free_unused(const gcap_session_parts_t* parts, gcap_staging_t** list, const gcap_staging_t* used);

// The list becomes the session's. Any thread.
void gcap_staging_leave_to_session(gcap_session_t* session, gcap_staging_t** list);
// Frees what only the session has. Any thread.
void gcap_staging_free_left(gcap_session_t* session);

// Frees all that the session has, whose graphs are not replayed any more. `may_be_used`: the memory is kept.
//   errors of the EP's allocator; that block is kept
gcap_status_t gcap_staging_end(gcap_session_t* session, bool may_be_used) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_STAGING_H_
