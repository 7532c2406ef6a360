// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// memory.h: the program's memory by address, while it lives and after it, as long as an executable points into it.
#ifndef GCAP_DOCTOR_RECORD_MEMORY_H_
#define GCAP_DOCTOR_RECORD_MEMORY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/record/memory_calls.h"

#pragma GCC visibility push(hidden)

// Where memory came from, or went. All 0 for a place that is not known.
typedef struct gcap_doctor_memory_place {
  uint64_t call;         // its number
  uint64_t start_ns;     // when it began
  const char* function;  // lives as long as the process
  uint32_t thread, stack;
  bool is_written;  // the file has, or will have, the call's line
} gcap_doctor_memory_place_t;

// The driver's allocations, and blocks that frameworks' allocators hand out of them.
typedef enum gcap_doctor_memory_layer {
  GCAP_DOCTOR_MEMORY_OF_DRIVER = 0,
  GCAP_DOCTOR_MEMORY_OF_FRAMEWORK,
  GCAP_DOCTOR_NUM_MEMORY_LAYERS,
} gcap_doctor_memory_layer_t;

typedef struct gcap_doctor_memory_piece {
  uint64_t begin, end;
  uint64_t serial;  // grows with each piece that is made
  gcap_doctor_memory_place_t made;
  gcap_doctor_memory_place_t* freed;  // of a piece that is freed and referred to; NULL without memory
  uint32_t references;                // of executables
  uint32_t left, right;               // of the tree, index + 1; `left` of a free place is the next free one
  uint32_t priority;
  uint8_t what;
  bool is_freed;
} gcap_doctor_memory_piece_t;

// Zeroed is empty. Pieces are named by their index + 1; 0 is none.
// Thread: one at a time
typedef struct gcap_doctor_memory {
  gcap_doctor_memory_piece_t* pieces;
  size_t count, capacity;
  uint32_t first_free;
  uint32_t roots[GCAP_DOCTOR_NUM_MEMORY_LAYERS];
  uint64_t last_serial;
  uint64_t epoch;  // grows as a piece is freed that is referred to
  uint64_t steps;  // nodes of trees that were looked at, for tests of what the tables cost
} gcap_doctor_memory_t;

// New memory. What overlaps in the layer was freed unseen. Returns the piece; 0 without memory, or for none of bytes.
uint32_t gcap_doctor_memory_add(gcap_doctor_memory_t* memory, uint64_t begin, uint64_t bytes,
                                gcap_doctor_memory_what_t what, const gcap_doctor_memory_place_t* made);
// The living piece of a layer that the address is in.
uint32_t gcap_doctor_memory_find(gcap_doctor_memory_t* memory, gcap_doctor_memory_layer_t layer, uint64_t address);
// The first living piece of a layer that begins in [begin, end) .
uint32_t gcap_doctor_memory_next(gcap_doctor_memory_t* memory, gcap_doctor_memory_layer_t layer, uint64_t begin,
                                 uint64_t end);
// A living piece is freed, and the blocks within it. `place` may be NULL. A piece without references is gone then.
void gcap_doctor_memory_free(gcap_doctor_memory_t* memory, uint32_t piece, const gcap_doctor_memory_place_t* place);

void gcap_doctor_memory_retain(gcap_doctor_memory_t* memory, uint32_t piece);
void gcap_doctor_memory_release(gcap_doctor_memory_t* memory, uint32_t piece);

static inline gcap_doctor_memory_piece_t* gcap_doctor_memory_at(const gcap_doctor_memory_t* memory, uint32_t piece) {
  return &memory->pieces[piece - 1];
}

static inline gcap_doctor_memory_layer_t gcap_doctor_memory_layer_of(uint8_t what) {
  return what == GCAP_DOCTOR_MEMORY_PYTORCH || what == GCAP_DOCTOR_MEMORY_CUPY ? GCAP_DOCTOR_MEMORY_OF_FRAMEWORK
                                                                               : GCAP_DOCTOR_MEMORY_OF_DRIVER;
}

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_MEMORY_H_
