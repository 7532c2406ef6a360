// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Nodes: who has what is handed out, for messages. A live block has the name that its stream was given for the node.
// Within the run that is the caller's text; a block that outlives the run gets a copy, of which the arena keeps one for
// each name. So the copies are no more than there are names of nodes. Locking: the arena is locked.

#include "lib/scratch/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "lib/internal/text.h"
#include "lib/scratch/debug.h"

typedef struct gcap_scratch_node_name {
  struct gcap_scratch_node_name* next;
  char text[];
} gcap_scratch_node_name_t;

bool gcap_scratch_is_same_node(const char* a, const char* b) {
  return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

// --- Counting -------------------------------------------------------------------------------------------------------

static gcap_scratch_node_share_t* share_of(gcap_scratch_node_shares_t* shares, const char* node) {
  for (size_t i = 0; i < shares->count; ++i) {
    if (gcap_scratch_is_same_node(shares->items[i].node, node)) return &shares->items[i];
  }
  if (shares->count == GCAP_SCRATCH_MAX_NODE_SHARES) return &shares->others;
  gcap_scratch_node_share_t* share = &shares->items[shares->count++];
  share->node = node;
  return share;
}

void gcap_scratch_count_nodes(const gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state,
                              gcap_scratch_node_shares_t* out_shares) {
  *out_shares = (gcap_scratch_node_shares_t){.count = 0};
  for (size_t i = 0; i < scratch->store.num_regions; ++i) {
    for (const gcap_scratch_block_t* block = scratch->store.regions[i]->first; block != NULL; block = block->upper) {
      if (gcap_scratch_block_phase(block) != GCAP_SCRATCH_LIVE || block->use.node == NULL) continue;
      if (state != NULL && gcap_scratch_block_state(block) != state) continue;
      gcap_scratch_node_share_t* share = share_of(out_shares, block->use.node);
      ++share->num_blocks;
      share->bytes += block->requested_bytes;
    }
  }
}

// --- In words -------------------------------------------------------------------------------------------------------

gcap_scratch_live_text_t gcap_scratch_describe_live(const gcap_scratch_t* scratch, const gcap_scratch_block_t* block) {
  gcap_scratch_live_text_t live;
  gcap_text_t text;
  gcap_text_init(&text, live.text, sizeof(live.text));
  const char* ptr = gcap_scratch_block_base(block) + scratch->zone_bytes;
  gcap_text_add(&text, "block %p of %zu bytes for ", (const void*)ptr, block->requested_bytes);
  const gcap_stream_t* stream = gcap_scratch_stream_of(gcap_scratch_block_state(block));
  if (stream == NULL) {
    gcap_text_add(&text, "no stream");
  } else {
    gcap_text_add(&text, "stream %p", (void*)gcap_stream_handle(stream));
  }
  if (block->use.node != NULL) gcap_text_add(&text, ", node '%s'", block->use.node);
  gcap_text_add(&text, "%s", gcap_scratch_debug_history(scratch, ptr).text);
  return live;
}

// The lowest block of the region above a block's region, or of the lowest region; NULL when there is none.
static const gcap_scratch_block_t* first_above(const gcap_scratch_t* scratch, const gcap_scratch_block_t* block) {
  const gcap_scratch_store_t* store = &scratch->store;
  for (size_t i = 0; i < store->num_regions; ++i) {
    const gcap_scratch_region_t* region = store->regions[i];
    if (block == NULL || (uintptr_t)region->base > (uintptr_t)gcap_scratch_block_base(block)) return region->first;
  }
  return NULL;
}

const gcap_scratch_block_t* gcap_scratch_next_live(const gcap_scratch_t* scratch,
                                                   const gcap_scratch_stream_state_t* state,
                                                   const gcap_scratch_block_t* block) {
  do {
    const bool is_last = block == NULL || block->upper == NULL;
    block = is_last ? first_above(scratch, block) : block->upper;
  } while (block != NULL && (gcap_scratch_block_phase(block) != GCAP_SCRATCH_LIVE ||
                             (state != NULL && gcap_scratch_block_state(block) != state)));
  return block;
}

static void add_nodes(gcap_text_t* text, const gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state) {
  gcap_scratch_node_shares_t shares;
  gcap_scratch_count_nodes(scratch, state, &shares);
  for (size_t i = 0; i < shares.count; ++i) {
    const gcap_scratch_node_share_t* share = &shares.items[i];
    gcap_text_add(text, "; node '%s' has %zu live blocks (%zu bytes)", share->node, share->num_blocks, share->bytes);
  }
  if (shares.others.num_blocks == 0) return;
  gcap_text_add(text, "; other nodes have %zu live blocks (%zu bytes)", shares.others.num_blocks, shares.others.bytes);
}

gcap_scratch_leaks_text_t gcap_scratch_describe_leaks(const gcap_scratch_t* scratch,
                                                      const gcap_scratch_stream_state_t* state) {
  gcap_scratch_leaks_text_t leaks;
  gcap_text_t text;
  gcap_text_init(&text, leaks.text, sizeof(leaks.text));
  add_nodes(&text, scratch, state);
  size_t num_blocks = 0;
  const gcap_scratch_block_t* block = gcap_scratch_next_live(scratch, state, /*block=*/NULL);
  for (; block != NULL; block = gcap_scratch_next_live(scratch, state, block)) {
    if (++num_blocks > GCAP_SCRATCH_MAX_NAMED_BLOCKS) continue;
    gcap_text_add(&text, "; %s", gcap_scratch_describe_live(scratch, block).text);
  }
  if (num_blocks > GCAP_SCRATCH_MAX_NAMED_BLOCKS) {
    gcap_text_add(&text, "; and %zu more live blocks", num_blocks - GCAP_SCRATCH_MAX_NAMED_BLOCKS);
  }
  return leaks;
}

// --- Names that outlive a run ---------------------------------------------------------------------------------------

// The arena's copy of a name; NULL for none, or without host memory.
static const char* copy_of(gcap_scratch_t* scratch, const char* name) {
  if (name == NULL) return NULL;
  for (const gcap_scratch_node_name_t* known = scratch->node_names; known != NULL; known = known->next) {
    if (strcmp(known->text, name) == 0) return known->text;
  }
  const size_t bytes = strlen(name) + 1;
  gcap_scratch_node_name_t* copy = malloc(sizeof(*copy) + bytes);
  if (copy == NULL) return NULL;
  memcpy(copy->text, name, bytes);
  copy->next = scratch->node_names;
  scratch->node_names = copy;
  return copy->text;
}

void gcap_scratch_leave_run(gcap_scratch_t* scratch, gcap_scratch_block_t* block) {
  if (block->use.run == 0) return;
  gcap_scratch_stream_state_t* state = gcap_scratch_block_state(block);
  if (block->use.run == state->use.run) ++state->num_others;
  block->use = (gcap_scratch_use_t){.run = 0, .node = copy_of(scratch, block->use.node)};
}

void gcap_scratch_free_node_names(gcap_scratch_t* scratch) {
  while (scratch->node_names != NULL) {
    gcap_scratch_node_name_t* name = scratch->node_names;
    scratch->node_names = name->next;
    free(name);
  }
}
