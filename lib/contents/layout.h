// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// layout.h: how the buffers of a graph lie to one another, and whether they still lie so elsewhere.
//
// Buffers that share a byte, directly or through others, are one group, which moves by one distance. So the groups, and
// the distances within each, are all that a graph can depend on: which buffers overlap by how much, which are equal,
// and which are apart. Of two groups the one may also end where the other begins.
#ifndef GCAP_LIB_CONTENTS_LAYOUT_H_
#define GCAP_LIB_CONTENTS_LAYOUT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"

// The same work is captured at up to so many stand-ins of each buffer and each value: two show what buffers do, and three
// what values do.
#define GCAP_STAND_IN_SETS 3

// A buffer of a graph.
typedef struct gcap_moving_buffer {
  const char* name;  // not NULL; "" for none
  uintptr_t address;
  size_t bytes;
  size_t alignment;                         // a power of two; `address` is a multiple
  uintptr_t stand_ins[GCAP_STAND_IN_SETS];  // 0: none yet
} gcap_moving_buffer_t;

// One pointer: the 8 bytes at `offset` of the node's arguments are the buffer's address and `distance`.
typedef struct gcap_relocation_word {
  size_t buffer;
  size_t node;
  size_t offset;
  uintptr_t distance;
} gcap_relocation_word_t;

#define GCAP_LAYOUT_NONE ((size_t)-1)

typedef struct gcap_layout_group {
  size_t first;      // the buffer that begins first
  size_t bytes;      // from there to the end of the last one
  size_t alignment;  // the largest of its buffers: each distance of the group is a multiple
  size_t next;       // the group that begins where this one ends, or GCAP_LAYOUT_NONE
} gcap_layout_group_t;

typedef struct gcap_layout_span {
  uintptr_t begin, end;
  size_t group;
} gcap_layout_span_t;

// Thread: one at a time.
typedef struct gcap_layout {
  size_t* group_of;             // [number of buffers]
  gcap_layout_group_t* groups;  // by address
  gcap_layout_span_t* spans;    // [num_groups], room for a check
  size_t num_buffers, num_groups;
} gcap_layout_t;

// How two buffers, or groups, lie otherwise.
typedef struct gcap_layout_conflict {
  size_t a, b;       // buffers
  const char* what;  // in words that follow "buffers a and b "
} gcap_layout_conflict_t;

// Looks how the buffers lie at their addresses.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_layout_create(const gcap_moving_buffer_t* buffers, size_t count, gcap_layout_t* out_layout);
void gcap_layout_free(gcap_layout_t* layout);

// Whether the two have the same groups, with the same distances in each. Both are of as many buffers of the same sizes.
bool gcap_layout_is_same(const gcap_layout_t* layout, const gcap_moving_buffer_t* buffers, const gcap_layout_t* other,
                         const gcap_moving_buffer_t* other_buffers);

// Whether the buffers lie as at their creation when each is at its address, or at addresses[i] if that is not 0. Their
// ends are no overflow. Costs a sort of the groups, and less if one group moves.
bool gcap_layout_holds(gcap_layout_t* layout, const gcap_moving_buffer_t* buffers, const uintptr_t* addresses,
                       gcap_layout_conflict_t* out_conflict);

#endif  // GCAP_LIB_CONTENTS_LAYOUT_H_
