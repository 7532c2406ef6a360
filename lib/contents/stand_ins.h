// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stand_ins.h: second addresses for the buffers of a graph, at which the same work is captured once more.
#ifndef GCAP_LIB_CONTENTS_STAND_INS_H_
#define GCAP_LIB_CONTENTS_STAND_INS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"

// A buffer of a graph.
typedef struct gcap_moving_buffer {
  const char* name;  // not NULL; "" for none
  uintptr_t address;
  size_t bytes;
  size_t alignment;    // a power of two; `address` is a multiple
  uintptr_t stand_in;  // 0: none yet
} gcap_moving_buffer_t;

// The addresses' range. `base` 0: none.
typedef struct gcap_stand_ins {
  uintptr_t base;
  size_t bytes;
  bool is_memory;
} gcap_stand_ins_t;

// Gives each buffer a stand-in, which is a multiple of its alignment and of no larger power of two: a kernel that was
// chosen for the better alignment of the real address is another one at the stand-in. The distances between addresses
// and stand-ins are all different, and none is 0. With `is_memory` the range is memory of that device, -1: the current
// one; else address space with nothing mapped, which cudaMemcpyAsync refuses.
// Capture: not on a thread that captures.
//   RESOURCE_EXHAUSTED  the buffers are too large to be reserved together
//   UNIMPLEMENTED       no address space, since the driver is older than CUDA 12.4
//   CUDA_ERROR          the range could not be had
gcap_status_t gcap_stand_ins_create(gcap_moving_buffer_t* buffers, size_t count, int device_id, bool is_memory,
                                    gcap_stand_ins_t* out_stand_ins);
// Gives the range back. The buffers keep the numbers.
//   CUDA_ERROR  the range could not be given back; it may be tried again
gcap_status_t gcap_stand_ins_destroy(gcap_stand_ins_t* stand_ins);

#endif  // GCAP_LIB_CONTENTS_STAND_INS_H_
