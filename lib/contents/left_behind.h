// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// left_behind.h: addresses in the buffers of a graph that do not move with the buffers.
#ifndef GCAP_LIB_CONTENTS_LEFT_BEHIND_H_
#define GCAP_LIB_CONTENTS_LEFT_BEHIND_H_

#include "lib/contents/inner.h"

// One pointer: the 8 bytes at `offset` of the node's arguments are the buffer's address and `distance`.
typedef struct gcap_relocation_word {
  size_t buffer;
  size_t node;
  size_t offset;
  uintptr_t distance;
} gcap_relocation_word_t;

// Looks for addresses in a buffer, or at its end, among what stays: each 8 bytes of an argument that share no byte with
// one of the words; the ranges of copies and fills; and what copies from the host read there now. `words` are by node,
// then by offset.
//   FAILED_PRECONDITION  there is one: node, place and buffer are named
//   others               as gcap_driver_find_allocation
gcap_status_t gcap_left_behind_check(const gcap_contents_t* contents, const gcap_moving_buffer_t* buffers, size_t count,
                                     const gcap_relocation_word_t* words, size_t num_words);

// What stays and may be an address, of any memory: of a copy or a fill the range.
typedef struct gcap_fixed_range {
  uintptr_t first, last;  // bytes; once listed, no two ranges share one
} gcap_fixed_range_t;
typedef struct gcap_fixed_ranges {
  gcap_fixed_range_t* items;  // by `first`
  size_t count, room;
} gcap_fixed_ranges_t;

// Lists those of a graph, in `ranges` of nothing. `words` as above. The caller frees the items, also after a failure.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_left_behind_list(const gcap_contents_t* contents, const gcap_relocation_word_t* words,
                                    size_t num_words, gcap_fixed_ranges_t* ranges);
// Whether one of them shares a byte with the range. A few comparisons: a bind asks.
bool gcap_left_behind_is_at(const gcap_fixed_ranges_t* ranges, uintptr_t first, uintptr_t last);

#endif  // GCAP_LIB_CONTENTS_LEFT_BEHIND_H_
