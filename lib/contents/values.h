// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// values.h: scalars that change from replay to replay, as a position, a length or a seed: what they are in the captures
// of the same work, and which bytes of a node's arguments carry one.
//
// The same work is captured with other values. A place in the arguments carries a value if its bytes are those of the
// value in all of these captures. All else that differs is named, and the graph cannot be adjusted: an argument that is
// computed from a value, a grid that follows from it, a branch that was taken for it.
//
// What this cannot see: an argument that follows from a value, and that none of the captures shows to differ. A number
// is therefore captured at both of its bounds, at a third place whose bits are others than the number's, and as it is.
// So a threshold, and whatever only rises or only falls with the number, shows; so does whether the number is even.
#ifndef GCAP_LIB_CONTENTS_VALUES_H_
#define GCAP_LIB_CONTENTS_VALUES_H_

#include <stddef.h>

#include "lib/contents/inner.h"

// One place: `bytes` bytes at `offset` of the node's arguments are those of the value from its byte `from` on.
typedef struct gcap_value_word {
  size_t value;
  size_t node;
  size_t offset;
  size_t from, bytes;
} gcap_value_word_t;

// The arguments of one node in all captures.
typedef struct gcap_argument_span {
  const unsigned char* real;                           // from the node's first byte, as the next
  const unsigned char* elsewhere[GCAP_STAND_IN_SETS];  // [num_sets]
  size_t num_sets;
  size_t begin, end;  // in which a word may lie
} gcap_argument_span_t;

// Looks for the place around the byte `at` that carries a value: a whole value, or 8 or 4 bytes of a longer one. Places
// that are aligned as the value is come first. Returns how many there are; `out_word` is the first, but for its node.
size_t gcap_values_find(const gcap_changing_value_t* values, size_t count, const gcap_argument_span_t* span, size_t at,
                        gcap_value_word_t* out_word);

#endif  // GCAP_LIB_CONTENTS_VALUES_H_
