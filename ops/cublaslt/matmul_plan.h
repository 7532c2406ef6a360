// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// matmul_plan.h: what the files of the matrix product share: the plan and the checked options.
#ifndef GCAP_OPS_CUBLASLT_MATMUL_PLAN_H_
#define GCAP_OPS_CUBLASLT_MATMUL_PLAN_H_

#include <stdbool.h>

#include "gcap/kit/ops/matmul.h"

// What cuBLASLt demands of a workspace.
enum { GCAP_MATMUL_WORKSPACE_ALIGNMENT = 256 };

struct gcap_matmul {
  gcap_matmul_options_t options;  // checked: strides are given, and beta is 0 without an addend
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t b_layout, a_layout, c_layout;
  cublasLtMatmulAlgo_t algorithm;
  size_t algorithm_bytes;                 // of the workspace
  size_t zeros_offset, zeros_bytes;       // in the workspace, what stands for a and b if k is 0; else no bytes
  size_t element_bytes, c_element_bytes;  // of a and b; of c, the bias and the addend
  size_t alignment, c_alignment;          // likewise, with the addend
  bool has_bias;
  bool is_empty;  // there is nothing to compute, and nothing is described
};

// The caller's options, checked, with a stride for GCAP_MATMUL_PACKED and an alignment for 0.
gcap_status_t gcap_matmul_check_options(const gcap_matmul_options_t* given,
                                        gcap_matmul_options_t* out_options) GCAP_NODISCARD;

// Describes the product and chooses its algorithm.
gcap_status_t gcap_matmul_plan(gcap_matmul_t* matmul) GCAP_NODISCARD;
// Ends what it made, all or in part.
void gcap_matmul_end_plan(gcap_matmul_t* matmul);

// Writes the addend into all of c, broadcast. Not for FULL.
gcap_status_t gcap_matmul_spread_addend(const gcap_matmul_t* matmul, cudaStream_t stream, const void* addend,
                                        void* c) GCAP_NODISCARD;

#endif  // GCAP_OPS_CUBLASLT_MATMUL_PLAN_H_
