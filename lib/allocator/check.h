// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// check.h: what the makers of allocators check alike.
#ifndef GCAP_LIB_ALLOCATOR_CHECK_H_
#define GCAP_LIB_ALLOCATOR_CHECK_H_

#include "gcap/status.h"

// The calling function's INVALID_ARGUMENT for a missing argument.
#define GCAP_ALLOCATOR_RETURN_IF_NULL(argument)                                                               \
  do {                                                                                                        \
    if ((argument) == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s: " #argument " is NULL", __func__); \
  } while (0)

// INVALID_ARGUMENT unless this machine has the device. CUDA_ERROR when the runtime does not say.
gcap_status_t gcap_allocator_check_device(int device_id) GCAP_NODISCARD;

#endif  // GCAP_LIB_ALLOCATOR_CHECK_H_
