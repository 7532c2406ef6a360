// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reservations: the blocks of one captured graph. A block joins when it is handed out to the diverted stream, or freed
// by it, while the reservation is open, and stays until the release. A free block of it lies in its own pool, where
// only the same stream's allocations look while it is open, and nobody once it is closed.
//
// A block that the stream got before the capture and frees inside it joins too: kernels captured before the free may
// use it, and a replay does so again (rule 4 of the architecture: such memory is the graph's).
//
// Inside, blocks carry no tags: captured work of one stream is in order with itself, also in every replay.
// Locking: the arena is held: captures are rare, and their allocations take the slow way.

#include <stdlib.h>

#include "lib/scratch/arena.h"

scratch_stream_t* scratch_reservation_user(const gcap_scratch_reservation_t* reservation) { return reservation->user; }

void scratch_reservation_adopt(gcap_scratch_reservation_t* reservation, scratch_block_t* block) {
  if (scratch_block_reservation(block) == reservation || reservation->scratch->test_hooks.ignore_reservations) return;
  scratch_block_set_reservation(block, reservation);
  block->used_before = 0;
  reservation->bytes += block->bytes;
}

gcap_status_t gcap_scratch_reservation_open(gcap_scratch_t* scratch, gcap_stream_t* stream,
                                            gcap_scratch_reservation_t** out_reservation) {
  *out_reservation = NULL;
  if (stream == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "a scratch reservation needs a stream, not NULL");
  gcap_scratch_reservation_t* reservation = calloc(1, sizeof(*reservation));
  if (reservation == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a scratch reservation");
  reservation->scratch = scratch;
  scratch_hold(scratch);
  gcap_status_t status = scratch_get_stream(scratch, stream, &reservation->user);
  if (status == NULL && reservation->user->open != NULL) {
    status = GCAP_STATUS(GCAP_ALREADY_EXISTS, "stream %p has an open scratch reservation of %zu bytes",
                         (void*)gcap_stream_handle(stream), reservation->user->open->bytes);
  }
  if (status == NULL) {
    reservation->user->open = reservation;
    ++reservation->user->num_reservations;
    reservation->next = scratch->reservations;
    scratch->reservations = reservation;
    *out_reservation = reservation;
  }
  scratch_let_go(scratch);
  if (status != NULL) free(reservation);
  return status;
}

static void close_locked(gcap_scratch_reservation_t* reservation) {
  if (reservation->user->open == reservation) reservation->user->open = NULL;
}

void gcap_scratch_reservation_close(gcap_scratch_reservation_t* reservation) {
  scratch_hold(reservation->scratch);
  close_locked(reservation);
  scratch_let_go(reservation->scratch);
}

size_t gcap_scratch_reservation_bytes(const gcap_scratch_reservation_t* reservation) {
  scratch_hold(reservation->scratch);
  size_t bytes = reservation->bytes;
  scratch_let_go(reservation->scratch);
  return bytes;
}

// Live blocks become ordinary ones of the arena, whose owner frees them some day.
static void let_go_of_live(gcap_scratch_reservation_t* reservation) {
  const gcap_scratch_t* scratch = reservation->scratch;
  for (size_t i = 0; i < scratch->num_regions && reservation->num_live > 0; ++i) {
    for (scratch_block_t* block = scratch->regions[i]->first; block != NULL; block = block->upper) {
      if (scratch_block_reservation(block) != reservation || scratch_block_state(block) != SCRATCH_LIVE) continue;
      scratch_block_set_user(block, reservation->user);
      --reservation->num_live;
    }
  }
}

void gcap_scratch_reservation_release(gcap_scratch_reservation_t* reservation) {
  gcap_scratch_t* scratch = reservation->scratch;
  scratch_stream_t* user = reservation->user;
  scratch_hold(scratch);
  close_locked(reservation);
  uint64_t used_before = gcap_stream_sync_id(scratch_user_stream(user)) + 1;
  scratch_block_t* block;
  while ((block = scratch_pool_first(&reservation->pool)) != NULL) {
    scratch_pool_remove(&reservation->pool, block);
    scratch_block_set_user(block, user);
    block->used_before = used_before;
    scratch_put(scratch, block);
  }
  let_go_of_live(reservation);
  --user->num_reservations;
  gcap_scratch_reservation_t** link = &scratch->reservations;
  while (*link != reservation) link = &(*link)->next;
  *link = reservation->next;
  scratch_let_go(scratch);
  free(reservation);
}
