// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// matmul.h: matrix products with fused bias, activation and addend, by cuBLASLt, planned before capture.
#ifndef GCAP_KIT_OPS_MATMUL_H_
#define GCAP_KIT_OPS_MATMUL_H_

#include <cublasLt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// What is done to each sum: the bias is added, then the activation is applied. GELU is the form with tanh.
typedef enum gcap_matmul_epilogue {
  GCAP_MATMUL_EPILOGUE_NONE = 0,
  GCAP_MATMUL_EPILOGUE_BIAS,
  GCAP_MATMUL_EPILOGUE_BIAS_RELU,
  GCAP_MATMUL_EPILOGUE_RELU,
  GCAP_MATMUL_EPILOGUE_GELU,
  GCAP_MATMUL_EPILOGUE_BIAS_GELU,
} gcap_matmul_epilogue_t;

// The shape of the addend, which is broadcast to [m,n].
typedef enum gcap_matmul_addend {
  GCAP_MATMUL_ADDEND_NONE = 0,
  GCAP_MATMUL_ADDEND_FULL,    // [m,n], for each matrix of the batch
  GCAP_MATMUL_ADDEND_ROW,     // [n] or [1,n]
  GCAP_MATMUL_ADDEND_COLUMN,  // [m,1]
  GCAP_MATMUL_ADDEND_SCALAR,  // [1]
} gcap_matmul_addend_t;

// As a stride: the matrices of the batch follow one another.
#define GCAP_MATMUL_PACKED (-1)

// c[m,n] = epilogue(alpha · a[m,k] · b[k,n] + beta · addend + bias[n]), for each matrix of a batch. Matrices are
// row-major and densely packed. Sums are f32.
//
// ONNX's Gemm(A, B, C) is: a C of [n] or [1,n] with beta 1 as the bias, else C as the addend. ONNX's MatMul has no
// transposes, and leading dimensions that one operand lacks are a stride of 0.
typedef struct gcap_matmul_options {
  size_t struct_size;               // set by gcap_matmul_options_init
  cublasLtHandle_t handle;          // borrowed; outlives the plan
  int64_t m, n, k;                  // each >= 0; -1 at first, which is refused
  gcap_matmul_epilogue_t epilogue;  // default NONE
  size_t max_workspace_bytes;       // most that the algorithm may need; 0, the default: none
  gcap_dtype_t dtype;               // of all operands: F32, the default, F16 or BF16
  bool out_f32;                     // the bias, the addend and c are F32 whatever dtype is; default false
  bool tf32;                        // F32 operands may be rounded to TF32 (10 bits) for speed; default false
  bool trans_a;                     // a is stored as [k,m]; default false
  bool trans_b;                     // b is stored as [n,k], as the weights of most models; default true
  int64_t batch;                    // how many products, >= 0; default 1
  int64_t a_stride, b_stride;       // elements from matrix to matrix; default GCAP_MATMUL_PACKED; 0: one for all
  float alpha, beta;                // default 1
  gcap_matmul_addend_t addend;      // default NONE; in a batch of several NONE or FULL
  size_t alignment_bytes;           // of a, b, c and the addend: a power of 2, 1..256; 0, the default: an element
} gcap_matmul_options_t;

// Sets the size and the defaults.
static inline void gcap_matmul_options_init(gcap_matmul_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = sizeof(*options);
  options->m = options->n = options->k = -1;
  options->trans_b = true;
  options->batch = 1;
  options->a_stride = options->b_stride = GCAP_MATMUL_PACKED;
  options->alpha = options->beta = 1.0f;
}

// Matmul: a planned product of fixed shapes: descriptors, layouts and the algorithm. From gcap_matmul_create. A plan is
// for one shape and one device; a kernel keeps the plan of the shapes that it was made for, so there is no cache here.
// Thread:   immutable after creation: any number of threads may run it, each with its own stream and workspace. No lock.
// Capture:  create before a capture, destroy after it. A run is legal and makes no allocation. It records kernel nodes;
//           before them copies, if the addend is broadcast, and one memset, if k is 0.
// Lifetime: outlives the graphs that recorded it. The handle outlives the plan.
typedef struct gcap_matmul gcap_matmul_t;

// Plans a product for the calling thread's current device. A better alignment lets the library choose among more
// algorithms, the fastest ones of F16 and BF16 among them, which want 16 bytes.
//   INVALID_ARGUMENT     a NULL argument or handle, an unknown enum value, a size, stride or alignment out of range, or
//                        options that exclude each other; the message names the argument
//   FAILED_PRECONDITION  the calling thread is capturing, which fails its scope: the graph would lack the plan's work
//   UNIMPLEMENTED        cuBLASLt has no algorithm for the shape within the workspace
//   LIBRARY_ERROR        cuBLASLt failed
//   RESOURCE_EXHAUSTED   no host memory
GCAP_API gcap_status_t gcap_matmul_create(const gcap_matmul_options_t* options,
                                          gcap_matmul_t** out_matmul) GCAP_NODISCARD;
GCAP_API void gcap_matmul_destroy(gcap_matmul_t* matmul);  // NULL is fine

// At most max_workspace_bytes, and with k = 0 what one row of zeros takes.
GCAP_API size_t gcap_matmul_workspace_bytes(const gcap_matmul_t* matmul);

// Issues the product on `stream`. All addresses are device memory and aligned as the plan
// says; `bias` [n] is NULL exactly if the epilogue has none, and `addend` if the plan has none, or beta is 0. A FULL
// addend may be `c`; no other operand overlaps `c`. `workspace` has gcap_matmul_workspace_bytes bytes,
// 256-byte aligned, which this stream alone uses until the work is done; NULL if that size is 0. If m, n or the batch
// is 0, there is nothing to do, and all addresses may be NULL; if k is 0, `a` and `b` may.
//   INVALID_ARGUMENT  a NULL argument, a bias or addend that the plan lacks, or a misaligned address, named in the
//                     message
//   LIBRARY_ERROR     cuBLASLt failed
//   CUDA_ERROR        the stream's device could not be made current, or a copy failed
GCAP_API gcap_status_t gcap_matmul_run(const gcap_matmul_t* matmul, gcap_stream_t* stream, const void* a, const void* b,
                                       const void* bias, const void* addend, void* c, void* workspace) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_OPS_MATMUL_H_
