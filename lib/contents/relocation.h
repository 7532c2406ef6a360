// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// relocation.h: which words of a graph's arguments are pointers into its buffers, or carry its values, and how an
// executable gets others.
//
// The same work is captured with the buffers at their addresses, and at one or two sets of stand-ins. A word of the
// arguments is a pointer into a buffer if its value is in the buffer, or at its end, in all of these captures, at one
// distance from the buffer's address. A place carries a value if it has the bytes of the value in all of them
// (values.h). Any other difference is named, and the graph cannot be moved; so is an address in a buffer that does not
// differ. Measured on an H200: so found, the pointers of own kernels, of cuBLASLt and of cuDNN gave outputs that were
// equal, bit by bit, to a new capture's.
//
// What this cannot see: a pointer that lies in device memory, as an array of pointers does.
#ifndef GCAP_LIB_CONTENTS_RELOCATION_H_
#define GCAP_LIB_CONTENTS_RELOCATION_H_

#include <stdbool.h>
#include <stdint.h>

#include "lib/contents/inner.h"
#include "lib/contents/left_behind.h"
#include "lib/contents/values.h"

// The words of a buffer that lie beside other bytes of a kernel's argument, and whose upper halves were the same in all
// captures: each may be two numbers. They are pointers as long as the upper halves stay.
typedef struct gcap_relocation_half {
  bool has_any;
  uintptr_t least, most;  // distances
} gcap_relocation_half_t;

struct gcap_relocation {
  gcap_contents_t* contents;      // of the graph that the executable was made from, with the arguments as they are now
  gcap_relocation_word_t* words;  // by buffer, then by node
  size_t num_words, words_room;
  gcap_moving_buffer_t* buffers;   // where they are now
  size_t* first_word;              // [num_buffers + 1]
  gcap_relocation_half_t* halves;  // [num_buffers]
  size_t num_buffers;
  gcap_fixed_ranges_t fixed;
  gcap_value_word_t* value_words;  // by value, then by node
  size_t num_value_words, value_words_room;
  gcap_changing_value_t* values;  // as they are now
  size_t* first_value_word;       // [num_values + 1]
  uint32_t* varied;               // [num_values]; bit i: byte i of the value differs between the captures
  size_t num_values;
  bool* is_changed;  // [contents->count]
  bool needs_mode;   // a word is a copy's or a fill's
  void** params;     // as many as a kernel has
};

#endif  // GCAP_LIB_CONTENTS_RELOCATION_H_
