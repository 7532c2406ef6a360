// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Groups are found by one sort of the buffers. A check compares the distance of each buffer with that of its group, and
// then looks at the groups alone: only neighbours in the order of their addresses can touch or overlap. Nothing here is
// shared, so nothing is locked.

#include "lib/contents/inner.h"

#include <stdlib.h>
#include <string.h>

static int compare_spans(const void* a, const void* b) {
  const gcap_layout_span_t *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->group < y->group ? -1 : x->group > y->group;
}

static void sort(gcap_layout_span_t* spans, size_t count) {
  if (count > 1) qsort(spans, count, sizeof(*spans), compare_spans);
}

// --- Groups ---------------------------------------------------------------------------------------------------------

// Adds a buffer, in the order of addresses, whose span names it.
static void add(gcap_layout_t* layout, const gcap_moving_buffer_t* buffers, const gcap_layout_span_t* span) {
  gcap_layout_group_t* last = layout->num_groups > 0 ? &layout->groups[layout->num_groups - 1] : NULL;
  const uintptr_t end = last != NULL ? buffers[last->first].address + last->bytes : 0;
  if (last == NULL || span->begin >= end) {
    if (last != NULL && span->begin == end) last->next = layout->num_groups;
    last = &layout->groups[layout->num_groups++];
    *last = (gcap_layout_group_t){.first = span->group, .next = GCAP_LAYOUT_NONE};
  }
  const size_t bytes = span->end - buffers[last->first].address;
  if (bytes > last->bytes) last->bytes = bytes;
  const size_t alignment = buffers[span->group].alignment;
  if (alignment > last->alignment) last->alignment = alignment;
  layout->group_of[span->group] = layout->num_groups - 1;
}

gcap_status_t gcap_layout_create(const gcap_moving_buffer_t* buffers, size_t count, gcap_layout_t* out_layout) {
  gcap_layout_t layout = {.num_buffers = count,
                          .group_of = calloc(count + 1, sizeof(*layout.group_of)),
                          .groups = calloc(count + 1, sizeof(*layout.groups)),
                          .spans = calloc(count + 1, sizeof(*layout.spans))};
  if (layout.group_of == NULL || layout.groups == NULL || layout.spans == NULL) {
    gcap_layout_free(&layout);
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the layout of %zu buffers", count);
  }
  for (size_t i = 0; i < count; ++i) {
    layout.spans[i] = (gcap_layout_span_t){buffers[i].address, buffers[i].address + buffers[i].bytes, i};
  }
  sort(layout.spans, count);
  for (size_t i = 0; i < count; ++i) add(&layout, buffers, &layout.spans[i]);
  *out_layout = layout;
  return NULL;
}

void gcap_layout_free(gcap_layout_t* layout) {
  free(layout->group_of);
  free(layout->groups);
  free(layout->spans);
  *layout = (gcap_layout_t){0};
}

// How far a buffer is behind the one that begins its group.
static uintptr_t offset_of(const gcap_layout_t* layout, const gcap_moving_buffer_t* buffers, size_t buffer) {
  return buffers[buffer].address - buffers[layout->groups[layout->group_of[buffer]].first].address;
}

bool gcap_layout_is_same(const gcap_layout_t* layout, const gcap_moving_buffer_t* buffers, const gcap_layout_t* other,
                         const gcap_moving_buffer_t* other_buffers) {
  if (layout->num_groups != other->num_groups) return false;
  for (size_t i = 0; i < layout->num_buffers; ++i) {
    // Of buffers that begin together any may be the first, so the buffers of the one group tell, whatever their order.
    const size_t first = layout->groups[layout->group_of[i]].first;
    const uintptr_t other_offset = other_buffers[i].address - other_buffers[first].address;
    const bool is_together = other->group_of[i] == other->group_of[first];
    if (!is_together || other_offset != offset_of(layout, buffers, i)) return false;
  }
  return true;
}

// --- The check ------------------------------------------------------------------------------------------------------

static uintptr_t distance_of(const gcap_moving_buffer_t* buffers, const uintptr_t* addresses, size_t buffer) {
  return addresses[buffer] != 0 ? addresses[buffer] - buffers[buffer].address : 0;
}

// Whether each buffer moves as the first one of its group does. Counts the groups that move, and tells one.
static bool is_rigid(const gcap_layout_t* layout, const gcap_moving_buffer_t* buffers, const uintptr_t* addresses,
                     size_t* out_moved, size_t* out_num_moved, gcap_layout_conflict_t* out_conflict) {
  *out_num_moved = 0;
  for (size_t i = 0; i < layout->num_buffers; ++i) {
    const size_t group = layout->group_of[i], first = layout->groups[group].first;
    const uintptr_t distance = distance_of(buffers, addresses, i);
    if (distance != distance_of(buffers, addresses, first)) {
      *out_conflict = (gcap_layout_conflict_t){first, i, "share bytes in the capture, and lie otherwise here"};
      return false;
    }
    if (i != first || distance == 0) continue;
    *out_moved = group;
    ++*out_num_moved;
  }
  return true;
}

static gcap_layout_span_t span_of(const gcap_layout_t* layout, const gcap_moving_buffer_t* buffers,
                                  const uintptr_t* addresses, size_t group) {
  const gcap_layout_group_t* known = &layout->groups[group];
  const uintptr_t begin = buffers[known->first].address + distance_of(buffers, addresses, known->first);
  return (gcap_layout_span_t){begin, begin + known->bytes, group};
}

// Whether two groups may lie so; `a` begins first.
static bool may_lie(const gcap_layout_t* layout, const gcap_layout_span_t* a, const gcap_layout_span_t* b,
                    gcap_layout_conflict_t* out_conflict) {
  const gcap_layout_group_t* known = &layout->groups[a->group];
  if (a->end < b->begin || (a->end == b->begin && known->next == b->group)) return true;
  *out_conflict = (gcap_layout_conflict_t){
      known->first, layout->groups[b->group].first,
      a->end == b->begin ? "touch here, and do not in the capture" : "share bytes here, and do not in the capture"};
  return false;
}

static bool one_may_lie(const gcap_layout_t* layout, const gcap_moving_buffer_t* buffers, const uintptr_t* addresses,
                        size_t moved, gcap_layout_conflict_t* out_conflict) {
  const gcap_layout_span_t span = span_of(layout, buffers, addresses, moved);
  for (size_t i = 0; i < layout->num_groups; ++i) {
    if (i == moved) continue;
    const gcap_layout_span_t other = span_of(layout, buffers, addresses, i);
    const bool is_before = other.begin < span.begin;
    if (!may_lie(layout, is_before ? &other : &span, is_before ? &span : &other, out_conflict)) return false;
  }
  return true;
}

bool gcap_layout_holds(gcap_layout_t* layout, const gcap_moving_buffer_t* buffers, const uintptr_t* addresses,
                       gcap_layout_conflict_t* out_conflict) {
  size_t moved = 0, num_moved = 0;
  if (!is_rigid(layout, buffers, addresses, &moved, &num_moved, out_conflict)) return false;
  if (num_moved == 0) return true;
  if (num_moved == 1) return one_may_lie(layout, buffers, addresses, moved, out_conflict);
  for (size_t i = 0; i < layout->num_groups; ++i) layout->spans[i] = span_of(layout, buffers, addresses, i);
  sort(layout->spans, layout->num_groups);
  for (size_t i = 1; i < layout->num_groups; ++i) {
    if (!may_lie(layout, &layout->spans[i - 1], &layout->spans[i], out_conflict)) return false;
  }
  return true;
}

bool gcap_layout_still_touches(const gcap_layout_t* layout, const gcap_moving_buffer_t* buffers,
                               const uintptr_t* addresses, gcap_layout_conflict_t* out_conflict) {
  for (size_t i = 0; i < layout->num_groups; ++i) {
    const gcap_layout_group_t* group = &layout->groups[i];
    if (group->next == GCAP_LAYOUT_NONE) continue;
    const gcap_layout_span_t span = span_of(layout, buffers, addresses, i);
    if (span.end == span_of(layout, buffers, addresses, group->next).begin) continue;
    *out_conflict = (gcap_layout_conflict_t){group->first, layout->groups[group->next].first,
                                             "touch in the capture, and do not here"};
    return false;
  }
  return true;
}
