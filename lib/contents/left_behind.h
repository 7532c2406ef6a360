// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// left_behind.h: addresses in the buffers of a graph that do not move with the buffers.
#ifndef GCAP_LIB_CONTENTS_LEFT_BEHIND_H_
#define GCAP_LIB_CONTENTS_LEFT_BEHIND_H_

#include <stdint.h>

#include "lib/contents/contents.h"
#include "lib/contents/stand_ins.h"

// What moves. One pointer: the 8 bytes at `offset` of the node's arguments are the buffer's address and `distance`.
typedef struct gcap_relocation_word {
  size_t buffer;
  size_t node;
  size_t offset;
  uintptr_t distance;
} gcap_relocation_word_t;

// Notes what copies read on the host now, but for copies from a buffer: work may fill a table for the buffers that a
// capture of it gets. `set`: the stand-ins at which the graph was captured, or GCAP_STAND_IN_SETS for the buffers'
// addresses. The memory is still there, as for a launch of the graph.
//   errors of gcap_driver_find_allocation
gcap_status_t gcap_left_behind_note_sources(gcap_contents_t* contents, const gcap_moving_buffer_t* buffers,
                                            size_t count, size_t set);

// Looks for addresses in a buffer, or at its end, among what stays: each 8 bytes of an argument that share no byte with
// one of the words; the ranges of copies and fills; and what copies from the host read there now. `words` are by node,
// then by offset.
//   FAILED_PRECONDITION  there is one: node, place and buffer are named
//   others               as gcap_driver_find_allocation
gcap_status_t gcap_left_behind_check(const gcap_contents_t* contents, const gcap_moving_buffer_t* buffers, size_t count,
                                     const gcap_relocation_word_t* words, size_t num_words);

#endif  // GCAP_LIB_CONTENTS_LEFT_BEHIND_H_
