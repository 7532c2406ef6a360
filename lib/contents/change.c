// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a node has otherwise than the same node of a fresh capture: its fields first, then its words. A word is a
// pointer where memory is behind it in either graph. The scratch of a captured graph is the graph's own, so a fresh
// capture has other scratch in its place: two such words are alike. Nothing here is shared, so nothing is locked.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/contents/compare.h"
#include "lib/contents/contents.h"
#include "lib/contents/inner.h"
#include "lib/contents/memory.h"
#include "lib/contents/words.h"

typedef struct search {
  const gcap_contents_t *now, *fresh;  // fresh NULL: there is none
  size_t node, fresh_node;
  const gcap_block_finder_t* finder;
  gcap_node_change_t* change;
} search_t;

static const unsigned char* bytes_of(const gcap_contents_t* contents, size_t node) {
  return gcap_contents_bytes_of(contents, &contents->nodes[node]);
}

static void write_pointer(uintptr_t address, const gcap_memory_t* memory, char* text, size_t capacity) {
  char behind[320];
  gcap_memory_write(memory, behind, sizeof(behind));
  snprintf(text, capacity, "0x%" PRIxPTR ", in %s", address, behind);
}

// That of the fresh capture has gone back to the arena, which may have given it back.
static bool are_scratch_of_two(const gcap_memory_t* now, const gcap_memory_t* fresh) {
  return now->has_claim && now->claim.keeper != 0 && (fresh->has_claim || fresh->type == 0);
}

static void note_place(const search_t* search, const gcap_contents_word_t* word) {
  const gcap_contents_node_t* node = &search->now->nodes[search->node];
  const size_t in_part = word->offset - gcap_contents_parts_of(search->now, node)[word->part].offset;
  gcap_contents_write_place(search->now, node, word->part, in_part, search->change->place,
                            sizeof(search->change->place));
}

// A word of either graph: whether it is a pointer in one, and another one in the other.
static gcap_status_t compare_pointer(void* user, const gcap_contents_word_t* word) {
  const search_t* search = user;
  if (search->change->kind != GCAP_CHANGE_NONE) return NULL;
  uintptr_t now, fresh;
  memcpy(&now, bytes_of(search->now, search->node) + word->offset, sizeof(now));
  memcpy(&fresh, bytes_of(search->fresh, search->fresh_node) + word->offset, sizeof(fresh));
  if (now == fresh) return NULL;
  gcap_memory_t now_memory, fresh_memory;
  GCAP_RETURN_IF_ERROR(gcap_memory_look(search->finder, now, /*watch=*/false, &now_memory));
  GCAP_RETURN_IF_ERROR(gcap_memory_look(search->finder, fresh, /*watch=*/false, &fresh_memory));
  const bool is_pointer = word->is_pointer || now_memory.type != 0 || fresh_memory.type != 0;
  if (!is_pointer || are_scratch_of_two(&now_memory, &fresh_memory)) return NULL;
  search->change->kind = GCAP_CHANGE_POINTER;
  note_place(search, word);
  write_pointer(now, &now_memory, search->change->now, sizeof(search->change->now));
  write_pointer(fresh, &fresh_memory, search->change->fresh, sizeof(search->change->fresh));
  return NULL;
}

// Whether the bytes are those of a pointer into scratch in both.
static gcap_status_t is_scratch(const search_t* search, size_t offset, bool* out_is) {
  *out_is = false;
  const gcap_contents_node_t* node = &search->now->nodes[search->node];
  const size_t at = offset / sizeof(uintptr_t) * sizeof(uintptr_t);
  if (at + sizeof(uintptr_t) > node->bytes) return NULL;
  uintptr_t now, fresh;
  memcpy(&now, bytes_of(search->now, search->node) + at, sizeof(now));
  memcpy(&fresh, bytes_of(search->fresh, search->fresh_node) + at, sizeof(fresh));
  gcap_memory_t now_memory, fresh_memory;
  GCAP_RETURN_IF_ERROR(gcap_memory_look(search->finder, now, /*watch=*/false, &now_memory));
  GCAP_RETURN_IF_ERROR(gcap_memory_look(search->finder, fresh, /*watch=*/false, &fresh_memory));
  *out_is = are_scratch_of_two(&now_memory, &fresh_memory);
  return NULL;
}

static void write_value(const unsigned char* bytes, size_t count, char* text, size_t capacity) {
  uint64_t word = 0;
  memcpy(&word, bytes, count);
  snprintf(text, capacity, "0x%" PRIx64, word);
}

static gcap_status_t compare_part(const search_t* search, size_t index) {
  const gcap_contents_node_t* node = &search->now->nodes[search->node];
  const gcap_contents_part_t* part = &gcap_contents_parts_of(search->now, node)[index];
  gcap_node_change_t* change = search->change;
  size_t bytes = 0;
  for (size_t at = 0; at < part->bytes; at += bytes) {
    bytes = gcap_contents_value_bytes(search->now, node, index, at);
    const unsigned char* now = bytes_of(search->now, search->node) + part->offset + at;
    const unsigned char* fresh = bytes_of(search->fresh, search->fresh_node) + part->offset + at;
    if (memcmp(now, fresh, bytes) == 0) continue;
    bool is_own_scratch = false;
    GCAP_RETURN_IF_ERROR(is_scratch(search, part->offset + at, &is_own_scratch));
    if (is_own_scratch) continue;
    change->kind = GCAP_CHANGE_VALUE;
    gcap_contents_write_place(search->now, node, index, at, change->place, sizeof(change->place));
    write_value(now, bytes, change->now, sizeof(change->now));
    write_value(fresh, bytes, change->fresh, sizeof(change->fresh));
    return NULL;
  }
  return NULL;
}

static bool have_same_parts(const search_t* search) {
  const gcap_contents_node_t *now = &search->now->nodes[search->node],
                             *fresh = &search->fresh->nodes[search->fresh_node];
  return now->has_arguments && fresh->has_arguments && now->num_parts == fresh->num_parts &&
         now->bytes == fresh->bytes &&
         (now->num_parts == 0 ||
          memcmp(gcap_contents_parts_of(search->now, now), gcap_contents_parts_of(search->fresh, fresh),
                 now->num_parts * sizeof(gcap_contents_part_t)) == 0);
}

// Pointers before values: a length that follows from a pointer is no cause.
static gcap_status_t compare_words(const search_t* search) {
  if (!have_same_parts(search)) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_contents_each_word(search->now, search->node, compare_pointer, (void*)search));
  GCAP_RETURN_IF_ERROR(gcap_contents_each_word(search->fresh, search->fresh_node, compare_pointer, (void*)search));
  const gcap_contents_node_t* node = &search->now->nodes[search->node];
  for (size_t i = 0; search->change->kind == GCAP_CHANGE_NONE && i < node->num_parts; ++i) {
    GCAP_RETURN_IF_ERROR(compare_part(search, i));
  }
  return NULL;
}

static void note_field(const search_t* search, const char* field, const char* now, const char* fresh) {
  gcap_node_change_t* change = search->change;
  change->kind = GCAP_CHANGE_VALUE;
  snprintf(change->place, sizeof(change->place), "%s", field);
  snprintf(change->now, sizeof(change->now), "%s", now);
  snprintf(change->fresh, sizeof(change->fresh), "%s", fresh);
}

static void write_extent(const unsigned extent[3], char text[40]) {
  snprintf(text, 40, "%ux%ux%u", extent[0], extent[1], extent[2]);
}

// What a node is, beside its arguments. Edges are another search.
static bool differ_field(const search_t* search) {
  const gcap_contents_node_t *now = &search->now->nodes[search->node],
                             *fresh = &search->fresh->nodes[search->fresh_node];
  char was[40], is[40];
  if (now->type != fresh->type) {
    note_field(search, "type", gcap_contents_type_name(now->type), gcap_contents_type_name(fresh->type));
  } else if (now->function != fresh->function) {
    note_field(search, "kernel", gcap_contents_kernel_name(now), gcap_contents_kernel_name(fresh));
  } else if (memcmp(now->grid, fresh->grid, sizeof(now->grid)) != 0) {
    write_extent(now->grid, was);
    write_extent(fresh->grid, is);
    note_field(search, "grid", was, is);
  } else if (memcmp(now->block, fresh->block, sizeof(now->block)) != 0) {
    write_extent(now->block, was);
    write_extent(fresh->block, is);
    note_field(search, "block", was, is);
  } else {
    return false;
  }
  return true;
}

// The host's end of a copy, which may be memory that the driver knows nothing of.
static bool is_of_host(const search_t* search, const gcap_contents_word_t* word) {
  if (search->now->nodes[search->node].type != cudaGraphNodeTypeMemcpy) return false;
  const struct cudaMemcpy3DParms copy = gcap_contents_copy_of(search->now, &search->now->nodes[search->node]);
  if (copy.kind == cudaMemcpyHostToHost) return true;
  return copy.kind == (word->is_read ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
}

// A pointer to memory that nobody has.
static gcap_status_t find_nobodys(void* user, const gcap_contents_word_t* word) {
  const search_t* search = user;
  if (search->change->kind != GCAP_CHANGE_NONE) return NULL;
  gcap_memory_t memory;
  GCAP_RETURN_IF_ERROR(gcap_memory_look(search->finder, word->address, /*watch=*/false, &memory));
  const bool is_known = word->is_pointer || memory.type != 0;
  if (!is_known || !gcap_memory_is_nobodys(&memory) || is_of_host(search, word)) return NULL;
  search->change->kind = GCAP_CHANGE_POINTER;
  note_place(search, word);
  write_pointer(word->address, &memory, search->change->now, sizeof(search->change->now));
  search->change->fresh[0] = '\0';
  return NULL;
}

gcap_status_t gcap_contents_find_change(const gcap_contents_t* now, size_t node, const gcap_contents_t* fresh,
                                        size_t fresh_node, const gcap_block_finder_t* finder,
                                        gcap_node_change_t* change) {
  *change = (gcap_node_change_t){0};
  const search_t search = {now, fresh, node, fresh_node, finder, change};
  if (fresh != NULL && differ_field(&search)) return NULL;
  if (fresh != NULL) GCAP_RETURN_IF_ERROR(compare_words(&search));
  return gcap_contents_each_word(now, node, find_nobodys, (void*)&search);
}
