// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// members.h: the streams beside the origin that a scope has heard of.
#ifndef GCAP_LIB_CAPTURE_MEMBERS_H_
#define GCAP_LIB_CAPTURE_MEMBERS_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct gcap_capture_member {
  cudaStream_t stream;
  int device_id;      // GCAP_CAPTURE_DEVICE_UNKNOWN unless this scope forked it
  bool joined;        // since it was last forked or noted
  bool unjoined;      // found by gcap_capture_find_unjoined
  bool was_unjoined;  // before the open attempt (attempt.c)
} gcap_capture_member_t;

#define GCAP_CAPTURE_DEVICE_UNKNOWN (-1)

typedef struct gcap_capture_members {
  gcap_capture_member_t* items;
  size_t count, capacity;
} gcap_capture_members_t;

// NULL when the scope has not heard of it.
gcap_capture_member_t* gcap_capture_members_find(const gcap_capture_members_t* members, cudaStream_t stream);

// Finds or adds. NULL: no host memory.
gcap_capture_member_t* gcap_capture_members_add(gcap_capture_members_t* members, cudaStream_t stream);

void gcap_capture_members_deinit(gcap_capture_members_t* members);

#endif  // GCAP_LIB_CAPTURE_MEMBERS_H_
