// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// broken_ep.h: four mistakes of execution providers, each with its repair.
#ifndef GCAP_EXAMPLES_BROKEN_EP_BROKEN_EP_H_
#define GCAP_EXAMPLES_BROKEN_EP_BROKEN_EP_H_

#include <cuda_runtime_api.h>
#include <stddef.h>

// Ends the function with the call's error, if it has one.
#define TRY(call)                             \
  do {                                        \
    cudaError_t error_ = (call);              \
    if (error_ != cudaSuccess) return error_; \
  } while (0)

enum { ELEMENTS = 1024 };
enum { BYTES = ELEMENTS * sizeof(float) };

// What an execution provider has at hand while it runs a model. Two streams, so that uploads overlap with kernels.
typedef struct ep {
  cudaStream_t compute;
  cudaStream_t copy;
  cudaEvent_t event;
  float* input;    // device memory
  float* output;   // device memory
  float* staging;  // pinned memory: the model's input as the host has it
} ep_t;

// Each runs a model once, or captures it and replays it, and computes nothing wrong on most days. The caller drains
// both streams afterwards.
cudaError_t missing_wait_broken(ep_t* ep);
cudaError_t missing_wait_repaired(ep_t* ep);
cudaError_t allocation_in_capture_broken(ep_t* ep);
cudaError_t allocation_in_capture_repaired(ep_t* ep);
cudaError_t early_free_broken(ep_t* ep);
cudaError_t early_free_repaired(ep_t* ep);
cudaError_t stale_staging_broken(ep_t* ep);
cudaError_t stale_staging_repaired(ep_t* ep);

// output[i] = factor * input[i] over ELEMENTS, in kernels.c.
cudaError_t launch_scale(const float* input, float factor, float* output, cudaStream_t stream);

#endif  // GCAP_EXAMPLES_BROKEN_EP_BROKEN_EP_H_
