// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// copy_check.h: what is checked of a copy.
#ifndef GCAP_LIB_RUNTIME_COPY_CHECK_H_
#define GCAP_LIB_RUNTIME_COPY_CHECK_H_

#include "gcap/runtime.h"

// Checks the tensors of `copies[index]`, and gives the bytes to copy.
//   INVALID_ARGUMENT  as gcap_runtime_copy_tensors, but for the memory
gcap_status_t gcap_copy_check(const gcap_copy_t* copies, size_t index, size_t* out_bytes) GCAP_NODISCARD;

// The refusal of `copies[index]` because of where its memory is. `who` does not copy: "the runtime of device 0".
gcap_status_t gcap_copy_refuse_memory(const gcap_copy_t* copies, size_t index, const char* who) GCAP_NODISCARD;

#endif  // GCAP_LIB_RUNTIME_COPY_CHECK_H_
