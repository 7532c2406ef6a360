// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stand_ins.h: other addresses for the buffers of a graph, at which the same work is captured once more.
#ifndef GCAP_LIB_CONTENTS_STAND_INS_H_
#define GCAP_LIB_CONTENTS_STAND_INS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"
#include "lib/contents/layout.h"

// A range of addresses. base 0: none.
typedef struct gcap_stand_ins {
  uintptr_t base;
  size_t bytes;
  bool is_memory;
} gcap_stand_ins_t;

// Gives each buffer its stand-in number `set`: set 0 first, then the others, which are like set 1. The stand-ins of a
// group lie to one another as its buffers do; groups are apart. What a capture might take from an address is another at
// one of them:
//   - Between the promised alignment and 64 KiB each bit of the address is 1 in set 0 and 0 in set 1, or, if the buffer
//     is aligned to 64 KiB already, 0 at the buffer. So is the greatest power of two that an address is a multiple of.
//   - The groups are in one order in set 0, and in the other in set 1. So each difference of two addresses changes by
//     128 KiB at least, and so does which one is greater.
//   - The upper 32 bits are those of no buffer, and others in set 1 than in set 0. Memory, which comes from the driver
//     where the driver likes, is not promised that.
// With `is_memory` the range is memory of that device, -1: the current one; else address space with nothing mapped,
// which cudaMemcpyAsync refuses.
// Capture: not on a thread that captures.
//   RESOURCE_EXHAUSTED  the buffers are too large to be reserved together
//   UNIMPLEMENTED       no address space, since the driver is older than CUDA 12.4
//   CUDA_ERROR          the range could not be had
gcap_status_t gcap_stand_ins_create(gcap_moving_buffer_t* buffers, const gcap_layout_t* layout, size_t set,
                                    int device_id, bool is_memory, gcap_stand_ins_t* out_stand_ins);
// Gives the range back. The buffers keep the numbers.
//   CUDA_ERROR  the range could not be given back; it may be tried again
gcap_status_t gcap_stand_ins_destroy(gcap_stand_ins_t* stand_ins);

// Whether set 1 can show what the buffers and set 0 together do not. It cannot if there is one group, with its bits all
// alike between the promised alignment and 64 KiB, and the opposite in set 0.
bool gcap_stand_ins_need_second(const gcap_moving_buffer_t* buffers, const gcap_layout_t* layout);

// Whether stand-ins that `earlier` got show of `buffers` what their own would: the groups are in the same order, and
// alike in each bit that is varied. The two lay alike to one another.
bool gcap_stand_ins_serve(const gcap_moving_buffer_t* buffers, const gcap_layout_t* layout,
                          const gcap_moving_buffer_t* earlier, const gcap_layout_t* earlier_layout);

#endif  // GCAP_LIB_CONTENTS_STAND_INS_H_
