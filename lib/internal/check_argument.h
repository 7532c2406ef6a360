// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// check_argument.h: what many public functions check of their arguments.
#ifndef GCAP_LIB_INTERNAL_CHECK_ARGUMENT_H_
#define GCAP_LIB_INTERNAL_CHECK_ARGUMENT_H_

#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// The calling function's INVALID_ARGUMENT for an argument that is NULL.
#define GCAP_RETURN_IF_NULL(argument) GCAP_RETURN_JOINED_IF_NULL(NULL, argument)

// The same in a function that was given `status`, and returns no less.
#define GCAP_RETURN_JOINED_IF_NULL(status, argument)                                                                \
  do {                                                                                                              \
    if ((argument) == NULL) {                                                                                       \
      return gcap_status_join((status), GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s: " #argument " is NULL", __func__)); \
    }                                                                                                               \
  } while (0)

// INVALID_ARGUMENT unless this machine has the device. CUDA_ERROR when the runtime does not say.
gcap_status_t gcap_check_device(int device_id) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_INTERNAL_CHECK_ARGUMENT_H_
