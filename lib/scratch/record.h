// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// record.h: what is handed out, as the debug options know it, and the last calls. Knows nothing of the arena.
#ifndef GCAP_LIB_SCRATCH_RECORD_H_
#define GCAP_LIB_SCRATCH_RECORD_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// What is handed out.
typedef struct gcap_scratch_live {
  char* ptr;
  size_t bytes;           // asked for
  uint64_t number;        // of the call that gave it
  gcap_stream_t* stream;  // NULL: none, so that nothing is ever written to it, nor checked
  bool captured;          // its zones are written by a graph, whenever that runs
  struct gcap_scratch_live* next;
} gcap_scratch_live_t;

// One remembered call.
typedef struct gcap_scratch_call {
  uint64_t number;
  uint64_t block;  // the number of the call that gave the block; equal to `number` for an allocation
  char* ptr;
  size_t bytes;
  bool has_stream;
  cudaStream_t stream;   // of the block; 0 is one
  unsigned long thread;  // pthread_self
  uint64_t time_ns;      // CLOCK_MONOTONIC
} gcap_scratch_call_t;

// The last calls. Zeros are a record that remembers none.
typedef struct gcap_scratch_record {
  gcap_scratch_call_t* calls;  // a ring of this many places, the youngest
  size_t num_remembered;       // one at (num_recorded - 1) % num_remembered
  uint64_t num_recorded;
} gcap_scratch_record_t;

//   INVALID_ARGUMENT    it is too large
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_scratch_record_init(gcap_scratch_record_t* record, size_t num_remembered) GCAP_NODISCARD;
void gcap_scratch_record_deinit(gcap_scratch_record_t* record);

// Notes call `number`: the allocation of a block, when that is its own number, or the free.
void gcap_scratch_record_add(gcap_scratch_record_t* record, const gcap_scratch_live_t* live, uint64_t number);

// What the record knows of an address, as the end of a sentence: "; it was allocated as …". Empty where it remembers no
// call ever, or `record` is NULL.
typedef struct gcap_scratch_history {
  char text[384];
} gcap_scratch_history_t;
gcap_scratch_history_t gcap_scratch_history_of(const gcap_scratch_record_t* record, const void* ptr);
// The same failure with the history at the end of its message. NULL is fine.
gcap_status_t gcap_scratch_with_history(const gcap_scratch_record_t* record, const void* ptr,
                                        gcap_status_t status) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_SCRATCH_RECORD_H_
