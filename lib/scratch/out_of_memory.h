// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// out_of_memory.h: a block for a request, whatever it takes.
#ifndef GCAP_LIB_SCRATCH_OUT_OF_MEMORY_H_
#define GCAP_LIB_SCRATCH_OUT_OF_MEMORY_H_

#include "lib/scratch/arena.h"

typedef struct gcap_scratch_request {
  gcap_scratch_stream_state_t* state;
  size_t bytes;           // whole granules
  bool reserved;          // a region of its own
  bool anew;              // what is free is not enough, so it must grow
  gcap_status_t trouble;  // of a request that succeeded: what failed on the way
} gcap_scratch_request_t;

// Gets a detached block, by growing if need be, and by giving back what can be spared if that fails. Unlocks the arena.
gcap_status_t gcap_scratch_obtain(gcap_scratch_t* scratch, gcap_scratch_request_t* request,
                                  gcap_scratch_block_t** out_block) GCAP_NODISCARD;
// Logs and forgets the trouble of a request. Called when the arena was unlocked.
void gcap_scratch_log_trouble(gcap_scratch_request_t* request);

// Grows by what captures lacked, so that their next try succeeds. If that fails the deficit is forgotten: the next
// capture will report it again, and the caller is not to blame. Unlocks the arena.
void gcap_scratch_make_up_deficit(gcap_scratch_t* scratch);

#endif  // GCAP_LIB_SCRATCH_OUT_OF_MEMORY_H_
