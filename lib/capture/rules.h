// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rules.h: which rule of capture a call broke.
#ifndef GCAP_LIB_CAPTURE_RULES_H_
#define GCAP_LIB_CAPTURE_RULES_H_

#include <cuda_runtime_api.h>

typedef struct gcap_capture_rule {
  const char* id;
  cudaError_t code;
  const char* situation;
  const char* remedy;
} gcap_capture_rule_t;

// By the function that `call`, the text of a call, begins with, and by the code that it answered; cudaSuccess where the
// code is not known, or tells nothing. NULL when no row fits.
const gcap_capture_rule_t* gcap_capture_rule_of_call(const char* call, cudaError_t code);

// By the code alone: the rule that it most often stands for. NULL for a code that is not about captures.
const gcap_capture_rule_t* gcap_capture_rule_of_code(cudaError_t code);

#endif  // GCAP_LIB_CAPTURE_RULES_H_
