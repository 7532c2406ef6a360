// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Nodes: who has what is handed out, for messages. A live block has the name that its stream was given for the node.
// Within the run that is the caller's text; a block that outlives the run gets a copy, of which the arena keeps one for
// each name. So the copies are no more than there are names of nodes. Locking: the arena is locked.

#include "lib/scratch/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "lib/internal/text.h"

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

gcap_scratch_nodes_text_t gcap_scratch_describe_nodes(const gcap_scratch_t* scratch,
                                                      const gcap_scratch_stream_state_t* state) {
  gcap_scratch_nodes_text_t nodes;
  gcap_scratch_node_shares_t shares;
  gcap_scratch_count_nodes(scratch, state, &shares);
  gcap_text_t text;
  gcap_text_init(&text, nodes.text, sizeof(nodes.text));
  for (size_t i = 0; i < shares.count; ++i) {
    const gcap_scratch_node_share_t* share = &shares.items[i];
    gcap_text_add(&text, "; node '%s' has %zu live blocks (%zu bytes)", share->node, share->num_blocks, share->bytes);
  }
  if (shares.others.num_blocks > 0) {
    gcap_text_add(&text, "; other nodes have %zu live blocks (%zu bytes)", shares.others.num_blocks,
                  shares.others.bytes);
  }
  return nodes;
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
