// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// matmul.h: matrix product with a fused bias and ReLU, by cuBLASLt, planned before capture.
#ifndef GCAP_OPS_MATMUL_H_
#define GCAP_OPS_MATMUL_H_

#include <cublasLt.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gcap_matmul_epilogue {
  GCAP_MATMUL_EPILOGUE_NONE = 0,
  GCAP_MATMUL_EPILOGUE_BIAS,
  GCAP_MATMUL_EPILOGUE_BIAS_RELU,
} gcap_matmul_epilogue_t;

// C[m,n] = A[m,k] · B (+ bias[n]) (then ReLU). fp32, row-major, densely packed; B is [n,k], as ONNX Gemm's weights with
// transB = 1.
typedef struct gcap_matmul_options {
  size_t struct_size;               // set by gcap_matmul_options_init
  cublasLtHandle_t handle;          // borrowed; outlives the plan
  int64_t m, n, k;                  // each >= 1; 0 at first, which is refused
  gcap_matmul_epilogue_t epilogue;  // default NONE
  size_t max_workspace_bytes;       // most that the algorithm may need; 0, the default: none
} gcap_matmul_options_t;

// Fills in the defaults. Programs call the init function, which says how large their struct is.
GCAP_API void gcap_matmul_options_set_defaults(gcap_matmul_options_t* options);
static inline void gcap_matmul_options_init(gcap_matmul_options_t* options) {
  options->struct_size = sizeof(*options);
  gcap_matmul_options_set_defaults(options);
}

// Matmul: a planned product of fixed shapes: descriptors, layouts and the algorithm. From gcap_matmul_create.
// Thread:   immutable after creation: any number of threads may run it, each with its own stream and workspace.
// Capture:  create before a capture, destroy after it. gcap_matmul_run is legal, makes no allocation and records kernel
//           nodes only.
// Lifetime: outlives the graphs that recorded it. The handle outlives the plan.
typedef struct gcap_matmul gcap_matmul_t;

// Plans a product for the calling thread's current device.
//   INVALID_ARGUMENT     a NULL argument or handle, an unknown epilogue, or a dimension that is below 1 or too large; the
//                        message names the argument
//   FAILED_PRECONDITION  the calling thread is capturing, which fails its scope: the graph would lack the plan's work
//   UNIMPLEMENTED        cuBLASLt has no algorithm for the shape within the workspace
//   LIBRARY_ERROR        cuBLASLt failed
//   RESOURCE_EXHAUSTED   no host memory
GCAP_API gcap_status_t gcap_matmul_create(const gcap_matmul_options_t* options,
                                          gcap_matmul_t** out_matmul) GCAP_NODISCARD;
GCAP_API void gcap_matmul_destroy(gcap_matmul_t* matmul);  // NULL is fine

GCAP_API size_t gcap_matmul_workspace_bytes(const gcap_matmul_t* matmul);

// Issues the product on `stream`. `a` [m,k], `b` [n,k], `c` [m,n] are device addresses; `bias` [n] is NULL exactly if
// the epilogue has none. `workspace` is device memory of gcap_matmul_workspace_bytes bytes, 256-byte aligned, which
// this stream alone uses until the work is done; NULL if that size is 0.
//   INVALID_ARGUMENT  a NULL argument, a bias without its epilogue, or a misaligned workspace, named in the message
//   LIBRARY_ERROR     cuBLASLt failed
//   CUDA_ERROR        the stream's device could not be made current
GCAP_API gcap_status_t gcap_matmul_run(const gcap_matmul_t* matmul, gcap_stream_t* stream, const float* a,
                                       const float* b, const float* bias, float* c, void* workspace) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_MATMUL_H_
