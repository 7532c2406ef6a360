// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The configuration of a launch with <<<>>>, on its way from the caller to the kernel's host function.
//
// The idea: a stack for each thread, since the arguments of a launch are evaluated in between, and may launch something
// themselves. Locking: none.
#include <stdint.h>

#include "cuda_runtime_api.h"
#include "sim/base/die.h"
#include "sim/nvcc/nvcc.h"

typedef struct configuration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
} configuration_t;

// An argument that throws leaves its launch's configuration behind, so a stack that is full is no endless one alone.
#define MAX_DEPTH 64

static _Thread_local configuration_t configurations[MAX_DEPTH];
static _Thread_local size_t depth;

unsigned int __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem, struct CUstream_st* stream) {
  if (depth == MAX_DEPTH) {
    gcap_sim_die("a launch with <<<>>> in the arguments of another, %d deep: did arguments throw?", MAX_DEPTH);
  }
  configurations[depth++] = (configuration_t){gridDim, blockDim, sharedMem, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* gridDim, dim3* blockDim, size_t* sharedMem, void* stream) {
  if (depth == 0) return cudaErrorMissingConfiguration;
  const configuration_t* top = &configurations[--depth];
  *gridDim = top->grid;
  *blockDim = top->block;
  *sharedMem = top->shared_bytes;
  *(cudaStream_t*)stream = top->stream;
  return cudaSuccess;
}

// The launch answers for a function that is no kernel, so none is refused here.
cudaError_t __cudaGetKernel(struct CUkern_st** kernel, const void* entry) {
  *kernel = (struct CUkern_st*)(uintptr_t)entry;
  return cudaSuccess;
}
