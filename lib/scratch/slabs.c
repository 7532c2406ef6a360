// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Block structs come in slabs, so that those of one stream lie together and share no cache line with another's. The
// memory of a slab stays one of block structs until the arena ends.
//
// Structs wander with the blocks, from the streams that cut to those that join. A stream that lacks one gets a slab, so
// that it lacks none for long, but only while there are not many for what is live: else it gets another stream's.
// Locking: the arena is locked; but a stream's lock is enough for its own spares.

#include "lib/scratch/slabs.h"

#include <stdlib.h>

#include "lib/internal/cache_line.h"

enum {
  kBlocksPerSlab = 62,      // a page of the host's memory, with the header and what the heap adds
  kStructsPerStream = 124,  // how many are not many; see may_make_slab
  kStructsPerLive = 4       // a live block, free ones beside it, and as many for those that come and go
};

typedef struct gcap_scratch_slab {
  struct gcap_scratch_slab* next;
  char apart[GCAP_CACHE_LINE_BYTES - sizeof(void*)];
  gcap_scratch_block_t blocks[kBlocksPerSlab];
} gcap_scratch_slab_t;

_Static_assert(sizeof(gcap_scratch_block_t) == GCAP_CACHE_LINE_BYTES, "a block fills a cache line");

static bool make_slab(gcap_scratch_slabs_t* slabs, gcap_scratch_owner_t* stream) {
  gcap_scratch_slab_t* slab = gcap_calloc_line(sizeof(*slab));
  if (slab == NULL) return false;
  slab->next = slabs->slabs;
  slabs->slabs = slab;
  ++slabs->num_slabs;
  for (int i = kBlocksPerSlab; i > 0; --i) gcap_scratch_block_recycle(slabs, stream, &slab->blocks[i - 1]);
  return true;
}

static bool may_make_slab(const gcap_scratch_slabs_t* slabs) {
  uint64_t num_wanted = 0;
  for (const gcap_scratch_owner_t* stream = slabs->streams; stream != NULL; stream = stream->next) {
    num_wanted += kStructsPerStream + kStructsPerLive * gcap_scratch_owner_num_live(stream);
  }
  return slabs->num_slabs * kBlocksPerSlab < num_wanted;
}

static gcap_scratch_block_t* steal(gcap_scratch_slabs_t* slabs) {
  gcap_scratch_block_t* block = NULL;
  for (gcap_scratch_owner_t* other = slabs->streams; block == NULL && other != NULL; other = other->next) {
    block = gcap_scratch_spares_pop(&other->spares);
  }
  return block;
}

gcap_scratch_block_t* gcap_scratch_block_new(gcap_scratch_slabs_t* slabs, gcap_scratch_owner_t* stream) {
  gcap_scratch_block_t** own = stream != NULL ? &stream->spares : &slabs->spares;
  gcap_scratch_block_t* block = gcap_scratch_spares_pop(own);
  const bool may_make = block == NULL && may_make_slab(slabs);
  if (may_make && make_slab(slabs, stream)) block = gcap_scratch_spares_pop(own);
  if (block == NULL) block = gcap_scratch_spares_pop(&slabs->spares);
  if (block == NULL) block = steal(slabs);
  if (block == NULL && !may_make && make_slab(slabs, stream)) block = gcap_scratch_spares_pop(own);
  if (block != NULL) gcap_scratch_block_set_owner(block, NULL);  // from here on no stream's lock leads to it
  return block;
}

void gcap_scratch_slabs_add_stream(gcap_scratch_slabs_t* slabs, gcap_scratch_owner_t* stream) {
  stream->next = slabs->streams;
  slabs->streams = stream;
}

void gcap_scratch_slabs_remove_stream(gcap_scratch_slabs_t* slabs, gcap_scratch_owner_t* stream) {
  gcap_scratch_block_t* spare;
  while ((spare = gcap_scratch_spares_pop(&stream->spares)) != NULL) gcap_scratch_block_recycle(slabs, NULL, spare);
  gcap_scratch_owner_t** link = &slabs->streams;
  while (*link != stream) link = &(*link)->next;
  *link = stream->next;
}

void gcap_scratch_slabs_deinit(gcap_scratch_slabs_t* slabs) {
  while (slabs->slabs != NULL) {
    gcap_scratch_slab_t* slab = slabs->slabs;
    slabs->slabs = slab->next;
    free(slab);
  }
}
