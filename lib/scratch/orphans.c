// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What becomes of a stream's memory when the stream is destroyed under the scratch, which nobody should do. The stream
// was drained, so its free blocks are in use by nobody. What is still handed out, and what its graphs keep, may be used
// by any other stream from now on: it becomes nobody's (untagged.c), and is given again only after a wait for the
// device. So no address of a stream that is gone is left, to be taken for that of a new one.
// Locking: the arena is held.

#include <stddef.h>

#include "lib/scratch/arena.h"
#include "lib/scratch/debug.h"

static void give_blocks_to_nobody(gcap_scratch_t* scratch, const gcap_scratch_stream_t* user) {
  for (size_t i = 0; i < scratch->num_regions; ++i) {
    for (gcap_scratch_block_t* block = scratch->regions[i]->first; block != NULL; block = block->upper) {
      const bool kept = gcap_scratch_block_reservation(block) != NULL;
      if (!kept && gcap_scratch_block_user(block) == user) gcap_scratch_block_set_user(block, &scratch->nobody);
    }
  }
}

static void give_reservations_to_nobody(gcap_scratch_t* scratch, gcap_scratch_stream_t* user) {
  user->open = NULL;
  scratch->nobody.num_reservations += user->num_reservations;
  user->num_reservations = 0;
  for (gcap_scratch_reservation_t* r = scratch->reservations; r != NULL; r = r->next) {
    if (r->user == user) r->user = &scratch->nobody;
  }
}

static void give_counters_to_nobody(gcap_scratch_t* scratch, gcap_scratch_stream_t* user) {
  gcap_scratch_fold_peaks(scratch);
  gcap_scratch_stream_t* nobody = &scratch->nobody;
  nobody->num_allocs += user->num_allocs;
  nobody->num_frees += user->num_frees;
  nobody->in_use_bytes += user->in_use_bytes;
  nobody->requested_in_use_bytes += user->requested_in_use_bytes;
  nobody->max_in_use_bytes = nobody->in_use_bytes;
  user->num_allocs = user->num_frees = user->in_use_bytes = user->requested_in_use_bytes = user->max_in_use_bytes = 0;
}

void gcap_scratch_stream_ends(gcap_stream_watch_t* watch, gcap_stream_t* stream) {
  gcap_scratch_t* scratch = (gcap_scratch_t*)(void*)((char*)watch - offsetof(gcap_scratch_t, watch));
  gcap_scratch_hold(scratch);
  gcap_scratch_stream_t* user = gcap_scratch_find_stream(scratch, stream);
  if (user != NULL) {
    gcap_scratch_untag(scratch, user);
    give_blocks_to_nobody(scratch, user);
    give_reservations_to_nobody(scratch, user);
    give_counters_to_nobody(scratch, user);
    gcap_scratch_debug_forget_stream(scratch, stream);
    gcap_scratch_remove_stream(scratch, user);
  }
  gcap_scratch_let_go(scratch);
}
