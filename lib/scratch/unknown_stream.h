// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// unknown_stream.h: the state that stands for the streams of requests that named none. It owns their blocks; its pool
// holds those that were freed and may be in use by any stream. It is not on the list of streams and has no stream, and
// its lock is never free: whatever concerns it takes the slow path.
#ifndef GCAP_LIB_SCRATCH_UNKNOWN_STREAM_H_
#define GCAP_LIB_SCRATCH_UNKNOWN_STREAM_H_

#include "lib/scratch/arena.h"

void gcap_scratch_unknown_stream_init(gcap_scratch_t* scratch);

static inline bool gcap_scratch_is_unknown_stream(const gcap_scratch_t* scratch,
                                                  const gcap_scratch_stream_state_t* state) {
  return state == &scratch->unknown_stream;
}

// Waits for the device, if no capture forbids it: then what the unknown stream freed until now is free for all. False
// when that was not so. Unlocks the arena.
//   CUDA_ERROR  the runtime refused; the blocks stay as they were
gcap_status_t gcap_scratch_wait_for_device(gcap_scratch_t* scratch, bool* out_waited) GCAP_NODISCARD;
// Whether `bytes` would lie in one piece once the device was waited for.
bool gcap_scratch_wait_would_help(const gcap_scratch_t* scratch, size_t bytes);

#endif  // GCAP_LIB_SCRATCH_UNKNOWN_STREAM_H_
