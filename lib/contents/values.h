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

#include <stdbool.h>
#include <stddef.h>

#include "gcap/graph_values.h"
#include "gcap/status.h"
#include "lib/contents/layout.h"

// Aligned as any value: the work reads it here.
typedef struct gcap_value_bytes {
  unsigned char at[GCAP_GRAPH_VALUE_MAX_BYTES] __attribute__((aligned(16)));  // those behind the value's own are 0
} gcap_value_bytes_t;

// A value of a graph.
typedef struct gcap_changing_value {
  const char* name;  // not NULL; "" for none
  size_t bytes;
  gcap_graph_value_type_t type;
  bool may_be_unused;      // no argument need carry it
  gcap_value_bytes_t now;  // of the real capture, then what the executable has
  // Of a number the bounds, which it may have too. Of BYTES two others that are valid. What the other values are does
  // not matter.
  gcap_value_bytes_t low, high;
  gcap_value_bytes_t stand_ins[GCAP_STAND_IN_SETS];
} gcap_changing_value_t;

// One place: `bytes` bytes at `offset` of the node's arguments are those of the value from its byte `from` on.
typedef struct gcap_value_word {
  size_t value;
  size_t node;
  size_t offset;
  size_t from, bytes;
} gcap_value_word_t;

// Checks a value, but for its stand-ins.
//   INVALID_ARGUMENT  no such type, or not of so many bytes; bounds that are equal, in the wrong order or no numbers; or
//                     `now` is not within them
gcap_status_t gcap_value_check(const gcap_changing_value_t* value, size_t index);
// Whether the value may be these bytes: within its bounds.
bool gcap_value_may_be(const gcap_changing_value_t* value, const gcap_value_bytes_t* bytes);
// Writes a value as its type has it: "17", "-0.5", "0x11000000".
void gcap_value_write(const gcap_changing_value_t* value, const gcap_value_bytes_t* bytes, char* text, size_t capacity);

// Gives each value, which was checked, its stand-ins. In some captures one value rises where another one falls, and no
// two values are alike in all captures, as far as their bounds allow.
void gcap_values_choose(gcap_changing_value_t* values, size_t count);

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
