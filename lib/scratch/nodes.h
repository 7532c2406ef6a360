// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// nodes.h: the nodes for which live blocks were allocated, as far as the caller named them (gcap_scratch_set_node).
#ifndef GCAP_LIB_SCRATCH_NODES_H_
#define GCAP_LIB_SCRATCH_NODES_H_

#include "lib/scratch/arena.h"

// What one node has.
typedef struct gcap_scratch_node_share {
  const char* node;
  size_t num_blocks, bytes;  // as requested
} gcap_scratch_node_share_t;

enum { GCAP_SCRATCH_MAX_NODE_SHARES = 8 };

typedef struct gcap_scratch_node_shares {
  gcap_scratch_node_share_t items[GCAP_SCRATCH_MAX_NODE_SHARES];
  size_t count;
  gcap_scratch_node_share_t others;  // of the named nodes that have no room in the list; its name is NULL
} gcap_scratch_node_shares_t;

// Whether two names are the same; NULL is the name of no node.
bool gcap_scratch_is_same_node(const char* a, const char* b);
// What the named nodes have of the live blocks of a stream, or with NULL of all.
void gcap_scratch_count_nodes(const gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state,
                              gcap_scratch_node_shares_t* out_shares);

// One live block: "block 0x… of 1000 bytes for stream 0x…, node 'conv1'". With recorded operations follows the call
// that allocated it.
typedef struct gcap_scratch_live_text {
  char text[768];
} gcap_scratch_live_text_t;
gcap_scratch_live_text_t gcap_scratch_describe_live(const gcap_scratch_t* scratch, const gcap_scratch_block_t* block);

// Of the live blocks of a stream, or with NULL of all, the first by address; or the next one after `block`.
const gcap_scratch_block_t* gcap_scratch_next_live(const gcap_scratch_t* scratch,
                                                   const gcap_scratch_stream_state_t* state,
                                                   const gcap_scratch_block_t* block);

// Blocks that are described one by one; of further ones the number is told.
enum { GCAP_SCRATCH_MAX_NAMED_BLOCKS = 4 };

// What is live as the end of a sentence: the nodes, then the blocks: "; node 'conv1' has 2 live blocks (1536 bytes);
// block 0x… of 1000 bytes …". Empty where nothing is.
typedef struct gcap_scratch_leaks_text {
  char text[4096];
} gcap_scratch_leaks_text_t;
gcap_scratch_leaks_text_t gcap_scratch_describe_leaks(const gcap_scratch_t* scratch,
                                                      const gcap_scratch_stream_state_t* state);

// Takes a live block out of its run, if it is in one. From here on the name of its node is the arena's, since the
// caller's may end with the run; without host memory the block forgets it.
void gcap_scratch_leave_run(gcap_scratch_t* scratch, gcap_scratch_block_t* block);
// Frees the names; the arena ends.
void gcap_scratch_free_node_names(gcap_scratch_t* scratch);

#endif  // GCAP_LIB_SCRATCH_NODES_H_
