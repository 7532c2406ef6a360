// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Whose an address is. A block that a reservation keeps is the reservation's, live or free, for as long as that keeps
// it. A live block is who has it: the first question of an audit marks the block as watched, and numbers the hand-out.
// The mark is a bit of the tag, which is gone once the block is free, so a block that is marked at the second question
// was never free in between. Frees pay nothing for that: they write the tag anyway. A block that was marked, freed and
// marked again has another number.
//
// Locking: the arena is locked. The list of sources, whose lock is above the arena's, calls.

#include "lib/scratch/memory_source.h"

#include <stddef.h>

#include "lib/internal/text.h"
#include "lib/scratch/lock.h"
#include "lib/scratch/reservation.h"

// Of live blocks that nobody watches.
#define UNWATCHED UINT64_MAX

// A cell of the table.
typedef struct watched {
  uint64_t base;
  uint64_t number;
} watched_t;

static gcap_scratch_block_t* find_block(const gcap_scratch_t* scratch, uintptr_t address) {
  const gcap_scratch_region_t* region = gcap_scratch_find_region(&scratch->store, (const void*)address);
  if (region == NULL) return NULL;
  gcap_scratch_block_t* block = region->first;
  while ((uintptr_t)gcap_scratch_block_base(block) + block->bytes <= address) block = block->upper;
  return block;
}

static gcap_status_t watch_block(gcap_scratch_t* scratch, gcap_scratch_block_t* block) {
  const uint64_t base = (uintptr_t)gcap_scratch_block_base(block);
  watched_t* watched = gcap_hash_table_find(&scratch->watched, base);
  if (watched == NULL) watched = gcap_hash_table_insert(&scratch->watched, base);
  if (watched == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to watch a block of scratch");
  watched->number = ++scratch->num_watched;
  gcap_scratch_block_set_tag(block, gcap_scratch_block_tag(block) | GCAP_SCRATCH_TAG_WATCHED);
  return NULL;
}

static uint64_t hand_out_of(const gcap_scratch_t* scratch, const gcap_scratch_block_t* block) {
  if (gcap_scratch_block_phase(block) != GCAP_SCRATCH_LIVE) return 0;
  if (!gcap_scratch_block_is_watched(block)) return UNWATCHED;
  const watched_t* watched = gcap_hash_table_find(&scratch->watched, (uintptr_t)gcap_scratch_block_base(block));
  return watched->number;
}

static void name_keeper(const gcap_scratch_reservation_t* reservation, gcap_memory_claim_t* claim) {
  gcap_text_t name;
  gcap_text_init(&name, claim->name, sizeof(claim->name));
  gcap_text_add(&name, "%s", reservation->label);
  claim->keeper = reservation->number;
}

static gcap_status_t claim_block(gcap_scratch_t* scratch, gcap_scratch_block_t* block, bool watch,
                                 gcap_memory_claim_t* out_claim) {
  if (watch && hand_out_of(scratch, block) == UNWATCHED) GCAP_RETURN_IF_ERROR(watch_block(scratch, block));
  *out_claim = (gcap_memory_claim_t){.start = (uintptr_t)gcap_scratch_block_base(block),
                                     .bytes = block->bytes,
                                     .source = scratch->number,
                                     .hand_out = hand_out_of(scratch, block)};
  const gcap_scratch_reservation_t* reservation = gcap_scratch_block_reservation(block);
  if (reservation != NULL) name_keeper(reservation, out_claim);
  return NULL;
}

// Captured copies bring red zones to host memory that goes with the graph's reservation.
static bool claim_attachment(const gcap_scratch_t* scratch, uintptr_t address, gcap_memory_claim_t* out_claim) {
  for (const gcap_scratch_reservation_t* r = scratch->reservations; r != NULL; r = r->next) {
    for (const gcap_scratch_attachment_t* attachment = r->zone_copies; attachment != NULL;
         attachment = attachment->next) {
      const uintptr_t start = (uintptr_t)attachment;
      if (address - start >= attachment->bytes) continue;
      *out_claim = (gcap_memory_claim_t){.start = start, .bytes = attachment->bytes, .source = scratch->number};
      name_keeper(r, out_claim);
      return true;
    }
  }
  return false;
}

static gcap_status_t find_locked(gcap_scratch_t* scratch, uintptr_t address, bool watch, gcap_memory_claim_t* out_claim,
                                 bool* out_found) {
  gcap_scratch_block_t* block = find_block(scratch, address);
  *out_found = block != NULL || claim_attachment(scratch, address, out_claim);
  return block == NULL ? NULL : claim_block(scratch, block, watch, out_claim);
}

static gcap_status_t find(gcap_memory_source_t* source, uintptr_t address, bool watch, gcap_memory_claim_t* out_claim,
                          bool* out_found) {
  gcap_scratch_t* scratch = (gcap_scratch_t*)(void*)((char*)source - offsetof(gcap_scratch_t, source));
  gcap_scratch_lock_arena(scratch);
  gcap_status_t status = find_locked(scratch, address, watch, out_claim, out_found);
  gcap_scratch_unlock_arena(scratch);
  return status;
}

void gcap_scratch_source_add(gcap_scratch_t* scratch) {
  scratch->watched.cell_bytes = sizeof(watched_t);
  scratch->source.find = find;
  gcap_memory_source_add(&scratch->source);
}

void gcap_scratch_source_remove(gcap_scratch_t* scratch) {
  gcap_memory_source_remove(&scratch->source);
  gcap_hash_table_deinit(&scratch->watched);
}
