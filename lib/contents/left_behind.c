// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What does not move with the buffers of a graph, and should. A capture elsewhere would have such an address too, or
// the work keeps an address of an earlier run, which an eager run would not use: nobody can tell, so the graph stays.
//
// Words are tried at every byte, since structs may be packed. Of a copy or a fill the range is known, and the range
// counts. What a copy reads on the host is looked at as it is now, which is what the first launch copies. Addresses of
// other memory are listed, since a buffer may come there later. Nothing is shared, so nothing is locked.

#include "lib/contents/left_behind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/contents/compare.h"
#include "lib/contents/contents.h"
#include "lib/internal/grow.h"
#include "lib/internal/hash_bytes.h"
#include "lib/internal/memory_source.h"

#define WORD sizeof(uintptr_t)

typedef struct buffers {
  const gcap_moving_buffer_t* items;
  size_t count;
  uintptr_t least, most;  // no address in a buffer is outside
} buffers_t;

static buffers_t range_of(const gcap_moving_buffer_t* items, size_t count) {
  buffers_t buffers = {.items = items, .count = count, .least = UINTPTR_MAX};
  for (size_t i = 0; i < count; ++i) {
    const uintptr_t end = items[i].address + items[i].bytes;
    if (items[i].address < buffers.least) buffers.least = items[i].address;
    if (end > buffers.most) buffers.most = end;
  }
  return buffers;
}

// The first 8 bytes from `*at` on that are an address in a buffer, or at its end. Moves `*at` there. NULL: none are.
static inline const gcap_moving_buffer_t* find_address(const buffers_t* buffers, const unsigned char* bytes, size_t end,
                                                       size_t* at) {
  for (; *at + WORD <= end; ++*at) {
    uintptr_t word;
    memcpy(&word, bytes + *at, WORD);
    if (word < buffers->least || word > buffers->most) continue;
    const gcap_moving_buffer_t* ends_here = NULL;
    for (size_t i = 0; i < buffers->count; ++i) {
      const size_t distance = word - buffers->items[i].address;
      if (distance < buffers->items[i].bytes) return &buffers->items[i];
      if (distance == buffers->items[i].bytes) ends_here = &buffers->items[i];
    }
    if (ends_here != NULL) return ends_here;
  }
  return NULL;
}

// --- Arguments ------------------------------------------------------------------------------------------------------

// The words of one node.
typedef struct moved {
  const gcap_relocation_word_t* words;
  size_t count;
} moved_t;

// Whether the 8 bytes share one with a word.
static bool is_moved(const moved_t* moved, size_t offset) {
  for (size_t i = 0; i < moved->count; ++i) {
    if (moved->words[i].offset < offset + WORD && offset < moved->words[i].offset + WORD) return true;
  }
  return false;
}

static gcap_status_t refuse(const gcap_contents_t* contents, const gcap_contents_node_t* node, const char* what,
                            const buffers_t* buffers, const gcap_moving_buffer_t* buffer) {
  char where[256];
  gcap_contents_write_node(contents, node, where, sizeof(where));
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "%s: %s an address in buffer %zu '%s', at %p, that does not move with the buffer", where, what,
                     (size_t)(buffer - buffers->items), buffer->name, (void*)buffer->address);
}

// What begins at the address where a buffer ends.
typedef enum behind {
  NOTHING_KNOWN = 0,
  OWN_SCRATCH,    // that a captured graph keeps: gcap gave the work that block, at the same address in each capture
  OTHER_SCRATCH,  // of somebody. The work may mean the block, or the end of the buffer that it kept from an earlier run
} behind_t;

static gcap_status_t find_behind(const gcap_moving_buffer_t* buffer, uintptr_t address, behind_t* out_behind) {
  *out_behind = NOTHING_KNOWN;
  if (address != buffer->address + buffer->bytes) return NULL;
  gcap_memory_claim_t claim = {0};
  bool found = false;
  GCAP_RETURN_IF_ERROR(gcap_memory_find_claim(address, /*watch=*/false, &claim, &found));
  if (!found || claim.start != address) return NULL;
  *out_behind = claim.keeper != 0 ? OWN_SCRATCH : OTHER_SCRATCH;
  return NULL;
}

static gcap_status_t check_part(const gcap_contents_t* contents, const gcap_contents_node_t* node, size_t part,
                                const buffers_t* buffers, const moved_t* moved) {
  const gcap_contents_part_t* whole = &gcap_contents_parts_of(contents, node)[part];
  const unsigned char* bytes = gcap_contents_bytes_of(contents, node);
  const size_t end = whole->offset + whole->bytes;
  for (size_t at = whole->offset;; ++at) {
    const gcap_moving_buffer_t* buffer = find_address(buffers, bytes, end, &at);
    if (buffer == NULL) return NULL;
    if (is_moved(moved, at)) continue;
    uintptr_t address;
    memcpy(&address, bytes + at, WORD);
    behind_t behind = NOTHING_KNOWN;
    GCAP_RETURN_IF_ERROR(find_behind(buffer, address, &behind));
    if (behind == OWN_SCRATCH) continue;
    char place[64], what[96];
    gcap_contents_write_place(contents, node, part, at - whole->offset, place, sizeof(place));
    snprintf(what, sizeof(what), "%s is", place);
    gcap_status_t refusal = refuse(contents, node, what, buffers, buffer);
    if (behind != OTHER_SCRATCH) return refusal;
    return gcap_status_join(refusal, GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                                                 "a block of scratch begins where the buffer ends: name the block as a "
                                                 "buffer too, or leave a byte between the two"));
  }
}

// --- Ranges ---------------------------------------------------------------------------------------------------------

// Rows of memory, as a copy or a fill goes through them.
typedef struct rows {
  const char* what;
  size_t offset;  // of the pointer in the node's arguments
  uintptr_t address;
  size_t width, height, depth, pitch, slice;
} rows_t;

static rows_t rows_of_copy(const char* what, size_t offset, const struct cudaPitchedPtr* pointer,
                           const struct cudaPos* pos, const struct cudaExtent* extent) {
  const size_t slice = pointer->pitch * pointer->ysize;
  return (rows_t){.what = what,
                  .offset = offset,
                  .address = (uintptr_t)pointer->ptr + pos->z * slice + pos->y * pointer->pitch + pos->x,
                  .width = extent->width,
                  .height = extent->height,
                  .depth = extent->depth,
                  .pitch = pointer->pitch,
                  .slice = slice};
}

// The rows of a node, of which there are two at most.
static size_t list_rows(const gcap_contents_t* contents, const gcap_contents_node_t* node, rows_t rows[2],
                        enum cudaMemcpyKind* out_kind) {
  size_t count = 0;
  if (node->type == cudaGraphNodeTypeMemcpy) {
    const struct cudaMemcpy3DParms copy = gcap_contents_copy_of(contents, node);
    *out_kind = copy.kind;
    const size_t src = offsetof(struct cudaMemcpy3DParms, srcPtr), dst = offsetof(struct cudaMemcpy3DParms, dstPtr);
    if (copy.srcArray == NULL)
      rows[count++] = rows_of_copy("the source has", src, &copy.srcPtr, &copy.srcPos, &copy.extent);
    if (copy.dstArray == NULL)
      rows[count++] = rows_of_copy("the destination has", dst, &copy.dstPtr, &copy.dstPos, &copy.extent);
  } else if (node->type == cudaGraphNodeTypeMemset) {
    struct cudaMemsetParams fill;
    memcpy(&fill, gcap_contents_bytes_of(contents, node), sizeof(fill));
    rows[count++] = (rows_t){.what = "the destination has",
                             .offset = offsetof(struct cudaMemsetParams, dst),
                             .address = (uintptr_t)fill.dst,
                             .width = fill.width * fill.elementSize,
                             .height = fill.height,
                             .depth = 1,
                             .pitch = fill.pitch};
  }
  return count;
}

static uintptr_t end_of(const rows_t* rows) {
  return rows->address + (rows->depth - 1) * rows->slice + (rows->height - 1) * rows->pitch + rows->width;
}

static bool stays(const rows_t* rows, const moved_t* moved) {
  return rows->width != 0 && rows->height != 0 && rows->depth != 0 && !is_moved(moved, rows->offset);
}

// A range that shares a byte with a buffer.
static gcap_status_t check_rows(const gcap_contents_t* contents, const gcap_contents_node_t* node, const rows_t* rows,
                                const buffers_t* buffers, const moved_t* moved) {
  if (!stays(rows, moved)) return NULL;
  const uintptr_t end = end_of(rows);
  for (size_t i = 0; i < buffers->count; ++i) {
    const gcap_moving_buffer_t* buffer = &buffers->items[i];
    if (rows->address >= buffer->address + buffer->bytes || buffer->address >= end) continue;
    return refuse(contents, node, rows->what, buffers, buffer);
  }
  return NULL;
}

// --- What copies read on the host -----------------------------------------------------------------------------------

// What the node copies from the host, if it does.
static gcap_status_t find_host_source(const gcap_contents_t* contents, const gcap_contents_node_t* node,
                                      rows_t* out_source, bool* out_is_host) {
  rows_t rows[2];
  enum cudaMemcpyKind kind = cudaMemcpyDeviceToDevice;
  *out_is_host = false;
  if (node->type != cudaGraphNodeTypeMemcpy || !node->has_arguments) return NULL;
  const size_t count = list_rows(contents, node, rows, &kind);
  if (count == 0 || rows[0].offset != offsetof(struct cudaMemcpy3DParms, srcPtr)) return NULL;
  *out_source = rows[0];
  // What the call said may not be so.
  if (kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDeviceToHost) return NULL;
  gcap_driver_allocation_t memory;
  GCAP_RETURN_IF_ERROR(gcap_driver_find_allocation(rows[0].address, &memory));
  *out_is_host = memory.type != GCAP_DRIVER_DEVICE_MEMORY;
  return NULL;
}

static gcap_status_t check_source(const gcap_contents_t* contents, const gcap_contents_node_t* node,
                                  const rows_t* source, const buffers_t* buffers) {
  for (size_t z = 0; z < source->depth; ++z) {
    for (size_t y = 0; y < source->height; ++y) {
      size_t at = 0;
      const void* row = (const void*)(source->address + z * source->slice + y * source->pitch);
      const gcap_moving_buffer_t* buffer = find_address(buffers, row, source->width, &at);
      if (buffer != NULL) return refuse(contents, node, "it copies from the host", buffers, buffer);
    }
  }
  return NULL;
}

// Never 0.
static uint64_t hash_source(const rows_t* source) {
  uint64_t hash = GCAP_HASH_OF_NOTHING;
  for (size_t z = 0; z < source->depth; ++z) {
    for (size_t y = 0; y < source->height; ++y) {
      const void* row = (const void*)(source->address + z * source->slice + y * source->pitch);
      hash = gcap_hash_bytes(hash, row, source->width);
    }
  }
  return hash | 1;
}

// Stand-ins have no memory behind, or that of a device.
static bool is_in_buffer(const gcap_moving_buffer_t* buffers, size_t count, size_t set, uintptr_t address) {
  for (size_t i = 0; i < count; ++i) {
    const uintptr_t begin = set < GCAP_STAND_IN_SETS ? buffers[i].stand_ins[set] : buffers[i].address;
    if (address - begin <= buffers[i].bytes) return true;
  }
  return false;
}

gcap_status_t gcap_left_behind_note_sources(gcap_contents_t* contents, const gcap_moving_buffer_t* buffers,
                                            size_t count, size_t set) {
  for (size_t i = 0; i < contents->count; ++i) {
    rows_t source;
    bool is_host = false;
    GCAP_RETURN_IF_ERROR(find_host_source(contents, &contents->nodes[i], &source, &is_host));
    if (!is_host || is_in_buffer(buffers, count, set, source.address)) continue;
    contents->nodes[i].source_hash = hash_source(&source);
  }
  return NULL;
}

// --- Nodes ----------------------------------------------------------------------------------------------------------

static bool has_rows(const gcap_contents_node_t* node) {
  return node->type == cudaGraphNodeTypeMemcpy || node->type == cudaGraphNodeTypeMemset;
}

static gcap_status_t check_node(const gcap_contents_t* contents, const gcap_contents_node_t* node,
                                const buffers_t* buffers, const moved_t* moved) {
  for (size_t part = 0; part < node->num_parts && !has_rows(node); ++part) {
    GCAP_RETURN_IF_ERROR(check_part(contents, node, part, buffers, moved));
  }
  rows_t rows[2], source;
  enum cudaMemcpyKind kind = cudaMemcpyDeviceToDevice;
  const size_t count = list_rows(contents, node, rows, &kind);
  for (size_t i = 0; i < count; ++i) GCAP_RETURN_IF_ERROR(check_rows(contents, node, &rows[i], buffers, moved));
  bool is_host = false;
  GCAP_RETURN_IF_ERROR(find_host_source(contents, node, &source, &is_host));
  return is_host ? check_source(contents, node, &source, buffers) : NULL;
}

// Moves on to the words of the node.
static void find_words(moved_t* moved, const gcap_relocation_word_t* end, size_t node) {
  moved->words += moved->count;
  moved->count = 0;
  while (moved->words + moved->count < end && moved->words[moved->count].node == node) ++moved->count;
}

gcap_status_t gcap_left_behind_check(const gcap_contents_t* contents, const gcap_moving_buffer_t* buffers, size_t count,
                                     const gcap_relocation_word_t* words, size_t num_words) {
  const buffers_t all = range_of(buffers, count);
  const gcap_relocation_word_t none = {0};
  moved_t moved = {.words = num_words > 0 ? words : &none};
  const gcap_relocation_word_t* end = moved.words + num_words;
  for (size_t i = 0; i < contents->count; ++i) {
    find_words(&moved, end, i);
    GCAP_RETURN_IF_ERROR(check_node(contents, &contents->nodes[i], &all, &moved));
  }
  return NULL;
}

// --- What may be an address -----------------------------------------------------------------------------------------

// No memory is below the one, and no address of a program's is above the other.
#define LOWEST_ADDRESS ((uintptr_t)65536)
#define HIGHEST_ADDRESS (((uintptr_t)1 << 57) - 1)

static gcap_status_t add_range(gcap_fixed_ranges_t* ranges, uintptr_t first, uintptr_t last) {
  if (first < LOWEST_ADDRESS || first > HIGHEST_ADDRESS) return NULL;
  if (!gcap_grow(&ranges->items, &ranges->room, ranges->count + 1, sizeof(*ranges->items))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu addresses of a graph", ranges->count + 1);
  }
  ranges->items[ranges->count++] = (gcap_fixed_range_t){first, last};
  return NULL;
}

static gcap_status_t list_part(const unsigned char* bytes, const gcap_contents_part_t* part, const moved_t* moved,
                               gcap_fixed_ranges_t* ranges) {
  for (size_t at = part->offset; at + WORD <= part->offset + part->bytes; ++at) {
    uintptr_t word;
    memcpy(&word, bytes + at, WORD);
    if (word < LOWEST_ADDRESS || is_moved(moved, at)) continue;
    GCAP_RETURN_IF_ERROR(add_range(ranges, word, word));
  }
  return NULL;
}

static gcap_status_t list_node(const gcap_contents_t* contents, const gcap_contents_node_t* node, const moved_t* moved,
                               gcap_fixed_ranges_t* ranges) {
  const gcap_contents_part_t* parts = gcap_contents_parts_of(contents, node);
  for (size_t i = 0; i < node->num_parts && !has_rows(node); ++i) {
    GCAP_RETURN_IF_ERROR(list_part(gcap_contents_bytes_of(contents, node), &parts[i], moved, ranges));
  }
  rows_t rows[2];
  enum cudaMemcpyKind kind = cudaMemcpyDeviceToDevice;
  const size_t count = list_rows(contents, node, rows, &kind);
  for (size_t i = 0; i < count; ++i) {
    if (stays(&rows[i], moved)) GCAP_RETURN_IF_ERROR(add_range(ranges, rows[i].address, end_of(&rows[i]) - 1));
  }
  return NULL;
}

static int compare_ranges(const void* a, const void* b) {
  const gcap_fixed_range_t *x = a, *y = b;
  return x->first < y->first ? -1 : x->first > y->first;
}

// Makes one of those that share an address: weights are in the arguments of many nodes, and each bind searches the
// list.
static void merge_ranges(gcap_fixed_ranges_t* ranges) {
  size_t count = 0;
  for (size_t i = 0; i < ranges->count; ++i) {
    const gcap_fixed_range_t next = ranges->items[i];
    gcap_fixed_range_t* newest = count != 0 ? &ranges->items[count - 1] : NULL;
    if (newest == NULL || next.first > newest->last) {
      ranges->items[count++] = next;
    } else if (next.last > newest->last) {
      newest->last = next.last;
    }
  }
  ranges->count = count;
}

gcap_status_t gcap_left_behind_list(const gcap_contents_t* contents, const gcap_relocation_word_t* words,
                                    size_t num_words, gcap_fixed_ranges_t* ranges) {
  const gcap_relocation_word_t none = {0};
  moved_t moved = {.words = num_words > 0 ? words : &none};
  const gcap_relocation_word_t* end = moved.words + num_words;
  for (size_t i = 0; i < contents->count; ++i) {
    find_words(&moved, end, i);
    GCAP_RETURN_IF_ERROR(list_node(contents, &contents->nodes[i], &moved, ranges));
  }
  if (ranges->count != 0) qsort(ranges->items, ranges->count, sizeof(*ranges->items), compare_ranges);
  merge_ranges(ranges);
  return NULL;
}

bool gcap_left_behind_is_at(const gcap_fixed_ranges_t* ranges, uintptr_t first, uintptr_t last) {
  size_t begin = 0, end = ranges->count;  // those before `begin` start at `last` or before, those from `end` on do not
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (ranges->items[middle].first <= last) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin != 0 && ranges->items[begin - 1].last >= first;
}
