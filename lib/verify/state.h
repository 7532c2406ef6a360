// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// state.h: what a state consists of, for the files of this module.
#ifndef GCAP_LIB_VERIFY_STATE_H_
#define GCAP_LIB_VERIFY_STATE_H_

#include "lib/verify/inner.h"

// How much is compared at a time. A multiple of each element's bytes.
#define GCAP_VERIFY_CHUNK_BYTES ((size_t)1 << 20)

typedef struct gcap_verify_slot {
  char* memory;  // [bytes of the state]; NULL: the state has none
  bool is_on_host;
} gcap_verify_slot_t;

struct gcap_verify_state {
  gcap_verify_block_t* blocks;
  size_t count;
  gcap_area_t* areas;  // of the blocks
  size_t* offsets;     // of each area in a slot
  size_t num_areas;
  size_t bytes;  // of a slot
  gcap_verify_slot_t* slots;
  size_t num_slots;
  unsigned char* chunks;  // two
  int device_id;
  bool is_copying;  // on `stream`
  cudaStream_t stream;
};

#endif  // GCAP_LIB_VERIFY_STATE_H_
