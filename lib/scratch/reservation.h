// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// reservation.h: the blocks that one captured graph keeps, or several that share them.
#ifndef GCAP_LIB_SCRATCH_RESERVATION_H_
#define GCAP_LIB_SCRATCH_RESERVATION_H_

#include "lib/scratch/arena.h"
#include "lib/scratch/script.h"

#define GCAP_SCRATCH_LABEL_BYTES 192

// Head of what others made with malloc to go with a reservation.
typedef struct gcap_scratch_attachment {
  struct gcap_scratch_attachment* next;
  size_t bytes;  // of the whole
} gcap_scratch_attachment_t;

struct gcap_scratch_reservation {
  gcap_scratch_owner_t owner;  // its pool holds the free blocks
  gcap_scratch_t* scratch;
  size_t bytes;                          // of all its blocks
  size_t num_live;                       // of its blocks
  size_t num_graphs;                     // that share it: releases that are owed
  size_t num_keepers;                    // other reservations that have a share of it
  char label[GCAP_SCRATCH_LABEL_BYTES];  // their names, for reports; may be empty
  struct gcap_scratch_kept* kept;        // others that it has a share of, see gcap_scratch_reservation_keep
  uint64_t number;                       // no two of an arena have the same
  uint64_t last_keeper;                  // the number of the last one that came to keep it; 0: none
  uint64_t last_walk;                    // of the walks over what keeps what, the last one that visited it
  gcap_scratch_reservation_t* next_to_visit;
  gcap_scratch_attachment_t* zone_copies;  // red_zones.c
  gcap_scratch_script_t script;            // of a rehearsal
  uint64_t run;                            // of the stream, in which it was opened last; 0: in none
  uint64_t left_at;                        // the point at which a rehearsal left it; 0: it is in use
  gcap_scratch_reservation_t* next;
};

static inline gcap_scratch_stream_state_t* gcap_scratch_reservation_state(
    const gcap_scratch_reservation_t* reservation) {
  return gcap_scratch_state_of(reservation->owner.stream);
}

// The reservation whose block it is; NULL: none's.
static inline gcap_scratch_reservation_t* gcap_scratch_block_reservation(const gcap_scratch_block_t* block) {
  if (!gcap_scratch_block_is_kept(block)) return NULL;
  return (gcap_scratch_reservation_t*)(void*)gcap_scratch_block_owner(block);  // the owner comes first
}

// Opens a reservation for the graph of the calling thread's capture scope, in whose capture the stream is and which has
// none open. The scope closes it, and the graph releases it. The arena is locked.
//   RESOURCE_EXHAUSTED  no host memory; the scope has failed
gcap_status_t gcap_scratch_reservation_open_for_scope(gcap_scratch_t* scratch,
                                                      gcap_scratch_stream_state_t* state) GCAP_NODISCARD;
// Gives up what the stream's rehearsal reserved, for which no capture came.
void gcap_scratch_drop_rehearsed(gcap_scratch_stream_state_t* state);
// Makes a block that is in no pool the reservation's, if it is not yet.
void gcap_scratch_reservation_adopt(gcap_scratch_reservation_t* reservation, gcap_scratch_block_t* block);
// Lets `other` last as long as the open one.
//   RESOURCE_EXHAUSTED   no host memory
//   FAILED_PRECONDITION  `other` lasts as long as this one already
gcap_status_t gcap_scratch_reservation_keep(gcap_scratch_reservation_t* open,
                                            gcap_scratch_reservation_t* other) GCAP_NODISCARD;

#endif  // GCAP_LIB_SCRATCH_RESERVATION_H_
