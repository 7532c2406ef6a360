// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// kernels.h: the provider's kernels: which nodes they can run, and how one is made.
#ifndef GCAP_EXAMPLES_MINIMAL_EP_KERNELS_H_
#define GCAP_EXAMPLES_MINIMAL_EP_KERNELS_H_

#include <cublasLt.h>
#include <cudnn.h>

#include "gcap/ep.h"

#ifdef __cplusplus
extern "C" {
#endif

// The library handles that plans are made with, on one device.
typedef struct kernel_libraries {
  cublasLtHandle_t cublaslt;
  cudnnHandle_t cudnn;
} kernel_libraries_t;

gcap_status_t kernel_libraries_init(int device_id, kernel_libraries_t* out_libraries) GCAP_NODISCARD;
gcap_status_t kernel_libraries_deinit(kernel_libraries_t* libraries) GCAP_NODISCARD;  // zeros are fine

// True when the op is known and its inputs and outputs have the shapes that minimal_ep.h describes.
bool kernel_supports(const gcap_model_t* model, const gcap_node_t* node);

// Plans a node that is supported.
gcap_status_t kernel_create(const kernel_libraries_t* libraries, const gcap_model_t* model, const gcap_node_t* node,
                            gcap_kernel_t* out_kernel) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_MINIMAL_EP_KERNELS_H_
