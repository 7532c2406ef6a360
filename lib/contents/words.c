// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The words of arguments that may be pointers: the sources and the destinations of copies and fills, and each 8 bytes
// of a kernel's arguments at a multiple of 8. Nothing here is shared, so nothing is locked.

#include "lib/contents/words.h"

#include <string.h>

#include "lib/contents/contents.h"

#define WORD sizeof(uintptr_t)
// No memory is below it: saves questions about small numbers.
#define LOWEST_ADDRESS ((uintptr_t)65536)

typedef struct walk {
  const gcap_contents_t* contents;
  const gcap_contents_node_t* node;
  gcap_status_t (*visit)(void* user, const gcap_contents_word_t* word);
  void* user;
} walk_t;

static gcap_status_t visit(const walk_t* walk, gcap_contents_word_t word) {
  memcpy(&word.address, gcap_contents_bytes_of(walk->contents, walk->node) + word.offset, WORD);
  if (word.address == 0 || (!word.is_pointer && word.address < LOWEST_ADDRESS)) return NULL;
  return walk->visit(walk->user, &word);
}

static gcap_status_t visit_kernel(const walk_t* walk) {
  const gcap_contents_part_t* parts = gcap_contents_parts_of(walk->contents, walk->node);
  for (size_t i = 0; i < walk->node->num_parts; ++i) {
    const size_t end = parts[i].offset + parts[i].bytes;
    for (size_t at = (parts[i].offset + WORD - 1) / WORD * WORD; at + WORD <= end; at += WORD) {
      const gcap_contents_word_t word = {.part = i, .offset = at, .is_read = true, .is_written = true};
      GCAP_RETURN_IF_ERROR(visit(walk, word));
    }
  }
  return NULL;
}

// From the first byte of the first row to the last byte of the last one.
static size_t extent_of(struct cudaPitchedPtr pointer, struct cudaExtent extent) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return 0;
  return ((extent.depth - 1) * pointer.ysize + extent.height - 1) * pointer.pitch + extent.width;
}

static gcap_status_t visit_copy(const walk_t* walk) {
  const struct cudaMemcpy3DParms copy = gcap_contents_copy_of(walk->contents, walk->node);
  const gcap_contents_word_t source = {.offset = offsetof(struct cudaMemcpy3DParms, srcPtr.ptr),
                                       .is_pointer = true,
                                       .bytes = extent_of(copy.srcPtr, copy.extent),
                                       .is_read = true};
  GCAP_RETURN_IF_ERROR(visit(walk, source));
  const gcap_contents_word_t destination = {.offset = offsetof(struct cudaMemcpy3DParms, dstPtr.ptr),
                                            .is_pointer = true,
                                            .bytes = extent_of(copy.dstPtr, copy.extent),
                                            .is_written = true};
  return visit(walk, destination);
}

static gcap_status_t visit_fill(const walk_t* walk) {
  struct cudaMemsetParams fill;
  memcpy(&fill, gcap_contents_bytes_of(walk->contents, walk->node), sizeof(fill));
  const size_t rows = fill.height == 0 ? 0 : (fill.height - 1) * fill.pitch;
  const gcap_contents_word_t word = {.offset = offsetof(struct cudaMemsetParams, dst),
                                     .is_pointer = true,
                                     .bytes = rows + fill.width * fill.elementSize,
                                     .is_written = true};
  return visit(walk, word);
}

gcap_status_t gcap_contents_each_word(const gcap_contents_t* contents, size_t node,
                                      gcap_status_t (*each)(void* user, const gcap_contents_word_t* word), void* user) {
  const walk_t walk = {contents, &contents->nodes[node], each, user};
  if (!walk.node->has_arguments) return NULL;
  switch (walk.node->type) {
    case cudaGraphNodeTypeKernel: return visit_kernel(&walk);
    case cudaGraphNodeTypeMemcpy: return visit_copy(&walk);
    case cudaGraphNodeTypeMemset: return visit_fill(&walk);
    default: return NULL;
  }
}
