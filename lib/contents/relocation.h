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

#include "lib/contents/contents.h"
#include "lib/contents/left_behind.h"
#include "lib/contents/stand_ins.h"
#include "lib/contents/values.h"

// The words of a buffer that lie beside other bytes of a kernel's argument, and whose upper halves were the same in all
// captures: each may be two numbers. They are pointers as long as the upper halves stay.
typedef struct gcap_relocation_half {
  bool has_any;
  uintptr_t least, most;  // distances
} gcap_relocation_half_t;

// Of one executable.
// Thread: one at a time.
typedef struct gcap_relocation {
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
  void** params;     // as many as a kernel has
} gcap_relocation_t;

// The captures of the same work at stand-ins: elsewhere[i] at set i. `count`: up to GCAP_STAND_IN_SETS.
typedef struct gcap_relocation_rehearsals {
  const gcap_contents_t* elsewhere;
  size_t count;
} gcap_relocation_rehearsals_t;

// What differs between the captures.
typedef struct gcap_relocation_changes {
  const gcap_moving_buffer_t* buffers;
  size_t num_buffers;
  const gcap_changing_value_t* values;
  size_t num_values;
} gcap_relocation_changes_t;

// Finds the words. `real` is the contents of the graph that executables are made from, captured with the buffers at
// their addresses and the values as they are now: graph and contents outlive the relocation, which changes the
// arguments in the contents. All have arguments. The names of buffers and values outlive the relocation.
//   FAILED_PRECONDITION  the graph cannot be moved: node, place and values are named; or no argument carries a value
//   RESOURCE_EXHAUSTED   no host memory
gcap_status_t gcap_relocation_create(gcap_contents_t* real, const gcap_relocation_rehearsals_t* rehearsals,
                                     const gcap_relocation_changes_t* changes, gcap_relocation_t** out_relocation);
void gcap_relocation_destroy(gcap_relocation_t* relocation);

// Whether the words that may be two numbers keep their upper halves when the buffer is at the address.
bool gcap_relocation_keeps_halves(const gcap_relocation_t* relocation, size_t buffer, uintptr_t address);

// Whether nothing that stays is an address in the buffer when the buffer is at the address. What a capture there would
// show, nobody knows.
bool gcap_relocation_is_clear(const gcap_relocation_t* relocation, size_t buffer, uintptr_t address);

// Whether the value keeps each byte that was the same in all captures. What a capture with another one would show,
// nobody knows.
bool gcap_relocation_keeps_bytes(const gcap_relocation_t* relocation, size_t value, const gcap_value_bytes_t* bytes);

// Sets each node that has words as it is, once. So a node that the driver does not change in an executable is known
// before a buffer moves.
//   FAILED_PRECONDITION  the driver refuses a node, which is named; or a node copies several rows
gcap_status_t gcap_relocation_check_nodes(gcap_relocation_t* relocation, cudaGraphExec_t exec);

// Sets the buffers' addresses and the values in `exec`. addresses[i] 0: that buffer stays. `addresses` or `values`
// NULL: all of them stay. Only nodes that read what is another one are touched, each once, whatever they read. Launches
// in flight keep what they had. Neither is checked. If it succeeds, both arrays have the old ones.
// Capture: legal.
//   CUDA_ERROR  the driver refused one; all are as before. `*out_torn`: they could not be set back, and the executable
//               must not be launched
gcap_status_t gcap_relocation_move(gcap_relocation_t* relocation, cudaGraphExec_t exec, uintptr_t* addresses,
                                   gcap_value_bytes_t* values, bool* out_torn);

#endif  // GCAP_LIB_CONTENTS_RELOCATION_H_
