// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// internal.h: what the files of the simulated cuBLAS share: the handle.
#ifndef GCAP_SIM_CUBLAS_INTERNAL_H_
#define GCAP_SIM_CUBLAS_INTERNAL_H_

#include <stddef.h>
#include <stdint.h>

#include "cublas_v2.h"

struct cublasContext {
  uint64_t magic;
  int device;
  cudaStream_t stream;
  void* workspace;  // the caller's; NULL: each product that needs some takes its own
  size_t workspace_bytes;
  cublasPointerMode_t pointer_mode;
  cublasMath_t math_mode;
};

// Enters a call: counts it, gives the injected fault, if any, and refuses a NULL handle.
cublasStatus_t gcap_sim_blas_enter(const char* function, cublasHandle_t handle);

#endif  // GCAP_SIM_CUBLAS_INTERNAL_H_
