// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a graph work on which memory, and in which order. A copy and a fill tell their ranges. A kernel tells
// addresses alone: from one on it may work on all of the memory that the address is in, up to the end of the buffer
// that the caller names, of the block of scratch, of the allocation. Whether it writes there the caller may know.
//
// Two nodes are ordered by a path of edges, by the order of their segments, or, in child graphs, as the nodes that hold
// these are. Nothing here is shared, so nothing is locked.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/contents/compare.h"
#include "lib/contents/contents.h"
#include "lib/contents/inner.h"
#include "lib/contents/memory.h"
#include "lib/contents/words.h"
#include "lib/internal/grow.h"

#define NOT_NAMED ((size_t)-1)

// A range that a node works on.
typedef struct touch {
  size_t node, part, offset;
  uintptr_t begin, end;
  size_t named;  // from num_named on: scratch; NOT_NAMED: no memory that is known
  bool is_read, is_written;
  bool counts;  // for the order: whether a write is known, or likely
} touch_t;

typedef struct touches {
  const gcap_touches_subject_t* subject;
  touch_t* items;
  size_t count, room;
  size_t node;  // that is being read
} touches_t;

// --- Ranges ---------------------------------------------------------------------------------------------------------

static size_t find_named(const gcap_touches_subject_t* subject, uintptr_t address) {
  for (size_t i = 0; i < subject->num_named; ++i) {
    if (address - subject->named[i].start < subject->named[i].bytes) return i;
  }
  return NOT_NAMED;
}

// To the end of what the driver, an arena or the application's allocator has there; 0: nobody has memory there.
static uintptr_t end_of(const gcap_memory_t* memory) {
  if (memory->has_claim) return memory->claim.start + memory->claim.bytes;
  if (memory->has_block) return (uintptr_t)memory->block.address + memory->block.bytes;
  return memory->type != 0 ? memory->start + memory->bytes : 0;
}

static bool may_write(const gcap_touches_subject_t* subject, size_t node, size_t named) {
  return subject->writes == NULL || subject->writes(subject->user, node, named);
}

static gcap_status_t add(void* user, const gcap_contents_word_t* word) {
  touches_t* touches = user;
  const gcap_touches_subject_t* subject = touches->subject;
  touch_t touch = {.node = touches->node,
                   .part = word->part,
                   .offset = word->offset,
                   .begin = word->address,
                   .named = find_named(subject, word->address),
                   .is_read = word->is_read,
                   .is_written = word->is_written,
                   .counts = true};
  gcap_memory_t memory = {0};
  gcap_named_memory_t known;
  if (touch.named != NOT_NAMED) {
    known = subject->named[touch.named];
  } else if (subject->find_scratch != NULL &&
             !subject->find_scratch(subject->user, touch.node, word->address, &known, &touch.named)) {
    touch.named = NOT_NAMED;
  }
  if (touch.named != NOT_NAMED) {
    touch.end = known.start + known.bytes;
    if (!word->is_pointer) touch.is_written = may_write(subject, touches->node, touch.named);
  } else {
    GCAP_RETURN_IF_ERROR(gcap_memory_look(&subject->finder, word->address, /*watch=*/false, &memory));
    touch.end = end_of(&memory);
    if (touch.end == 0 && !word->is_pointer) return NULL;
    touch.counts = word->is_pointer || memory.has_claim;
  }
  if (word->is_pointer) touch.end = touch.begin + word->bytes;
  if (!gcap_grow(&touches->items, &touches->room, touches->count + 1, sizeof(*touches->items))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the memory of %zu nodes", subject->contents->count);
  }
  touches->items[touches->count++] = touch;
  return NULL;
}

static gcap_status_t read_touches(const gcap_touches_subject_t* subject, touches_t* touches) {
  *touches = (touches_t){.subject = subject};
  gcap_status_t status = NULL;
  for (size_t i = 0; status == NULL && i < subject->contents->count; ++i) {
    touches->node = i;
    status = gcap_contents_each_word(subject->contents, i, add, touches);
  }
  return status;
}

static bool overlap(const touch_t* a, const touch_t* b) { return a->begin < b->end && b->begin < a->end; }

// --- Order ----------------------------------------------------------------------------------------------------------

// The node that holds the node at the top of its graph.
static size_t top_of(const gcap_contents_t* contents, size_t node) {
  while (contents->nodes[node].parent != GCAP_CONTENTS_TOP) node = contents->nodes[node].parent;
  return node;
}

// Marks the nodes from which a path leads to `node`, and `node`.
static void mark_before(const gcap_contents_t* contents, size_t node, bool* marks, size_t* stack) {
  memset(marks, 0, contents->count * sizeof(*marks));
  size_t depth = 0;
  stack[depth++] = node;
  marks[node] = true;
  while (depth > 0) {
    const gcap_contents_node_t* at = &contents->nodes[stack[--depth]];
    for (size_t i = 0; i < at->num_dependencies; ++i) {
      const size_t before = contents->dependencies[at->first_dependency + i].node;
      if (before == GCAP_CONTENTS_TOP || marks[before]) continue;
      marks[before] = true;
      stack[depth++] = before;
    }
  }
}

// What one node comes behind.
typedef struct past {
  const gcap_contents_t* contents;
  size_t node;
  bool *before, *before_top;
  size_t* stack;
} past_t;

static gcap_status_t make_past(const gcap_contents_t* contents, past_t* past) {
  const size_t count = contents->count + 1;
  *past = (past_t){.contents = contents,
                   .node = GCAP_CONTENTS_TOP,
                   .before = calloc(count, sizeof(*past->before)),
                   .before_top = calloc(count, sizeof(*past->before_top)),
                   .stack = calloc(count, sizeof(*past->stack))};
  if (past->before != NULL && past->before_top != NULL && past->stack != NULL) return NULL;
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the paths of %zu nodes", contents->count);
}

static void free_past(past_t* past) {
  free(past->before);
  free(past->before_top);
  free(past->stack);
}

static void look_back(past_t* past, size_t node) {
  past->node = node;
  mark_before(past->contents, node, past->before, past->stack);
  mark_before(past->contents, top_of(past->contents, node), past->before_top, past->stack);
}

// Whether an earlier node is done when the node begins.
static bool is_ordered(const past_t* past, size_t earlier) {
  const gcap_contents_node_t *a = &past->contents->nodes[earlier], *b = &past->contents->nodes[past->node];
  if (a->graph != b->graph || earlier == past->node) return true;
  if (a->parent == b->parent) return past->before[earlier];
  const size_t a_top = top_of(past->contents, earlier), b_top = top_of(past->contents, past->node);
  return a_top == b_top || past->before_top[a_top];
}

// --- Two nodes without an order -------------------------------------------------------------------------------------

static void write_memory(const gcap_touches_subject_t* subject, const touch_t* touch, char* text, size_t capacity) {
  if (touch->named < subject->num_named) {
    snprintf(text, capacity, "buffer '%s'", subject->named[touch->named].name);
  } else if (touch->named != NOT_NAMED) {
    snprintf(text, capacity, "%zu bytes of scratch at %p", (size_t)(touch->end - touch->begin), (void*)touch->begin);
  } else {
    snprintf(text, capacity, "memory at %p", (void*)touch->begin);
  }
}

static bool conflict(const touch_t* earlier, const touch_t* later) {
  const bool is_written = earlier->is_written || later->is_written;
  return is_written && earlier->counts && later->counts && overlap(earlier, later);
}

// Takes the last earlier node that conflicts with the touch, if it comes behind the one that was found.
static void find_earlier(const touches_t* touches, const past_t* past, const touch_t* later,
                         gcap_unordered_nodes_t* out, bool* found) {
  for (size_t i = 0; i < touches->count && touches->items[i].node < later->node; ++i) {
    const touch_t* earlier = &touches->items[i];
    if (!conflict(earlier, later) || is_ordered(past, earlier->node)) continue;
    if (*found && earlier->node <= out->earlier) continue;
    out->earlier = earlier->node;
    out->later = later->node;
    write_memory(touches->subject, later, out->memory, sizeof(out->memory));
    *found = true;
  }
}

// Touches of one node lie together.
static bool find_pair(const touches_t* touches, past_t* past, size_t later, gcap_unordered_nodes_t* out) {
  bool found = false;
  for (size_t i = 0; i < touches->count; ++i) {
    const touch_t* touch = &touches->items[i];
    if (later != GCAP_CONTENTS_TOP && touch->node != later) continue;
    if (found && touch->node != out->later) return true;
    if (past->node != touch->node) look_back(past, touch->node);
    find_earlier(touches, past, touch, out, &found);
  }
  return found;
}

gcap_status_t gcap_contents_find_unordered(const gcap_touches_subject_t* subject, size_t later,
                                           gcap_unordered_nodes_t* out_nodes, bool* out_found) {
  *out_found = false;
  touches_t touches;
  past_t past = {0};
  gcap_status_t status = read_touches(subject, &touches);
  if (status == NULL) status = make_past(subject->contents, &past);
  if (status == NULL) *out_found = find_pair(&touches, &past, later, out_nodes);
  free_past(&past);
  free(touches.items);
  return status;
}

// --- First uses -----------------------------------------------------------------------------------------------------

// Scratch that the work was handed has nothing of before, whoever had its memory.
static bool is_first_use(const touches_t* touches, const touch_t* use) {
  const bool is_scratch = use->named != NOT_NAMED;
  if (use->named < touches->subject->num_named || !use->is_read || (is_scratch && use->is_written)) return false;
  for (size_t i = 0; i < touches->count && touches->items[i].node < use->node; ++i) {
    const touch_t* earlier = &touches->items[i];
    if (is_scratch && (earlier->named != use->named || !earlier->is_written)) continue;
    if (overlap(earlier, use)) return false;
  }
  return true;
}

static gcap_status_t write_use(const gcap_touches_subject_t* subject, const touch_t* use, char place[64],
                               char memory[400]) {
  const gcap_contents_node_t* node = &subject->contents->nodes[use->node];
  const size_t in_part = use->offset - gcap_contents_parts_of(subject->contents, node)[use->part].offset;
  gcap_contents_write_place(subject->contents, node, use->part, in_part, place, 64);
  gcap_memory_t behind;
  GCAP_RETURN_IF_ERROR(gcap_memory_look(&subject->finder, use->begin, /*watch=*/false, &behind));
  gcap_memory_write(&behind, memory, 400);
  return NULL;
}

gcap_status_t gcap_contents_find_first_use(const gcap_touches_subject_t* subject, size_t node, char place[64],
                                           char memory[400], bool* out_found) {
  *out_found = false;
  touches_t touches;
  gcap_status_t status = read_touches(subject, &touches);
  for (size_t i = 0; status == NULL && i < touches.count && !*out_found; ++i) {
    if (touches.items[i].node != node || !is_first_use(&touches, &touches.items[i])) continue;
    *out_found = true;
    status = write_use(subject, &touches.items[i], place, memory);
  }
  free(touches.items);
  return status;
}
