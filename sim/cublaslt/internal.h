// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// internal.h: what the files of the simulated cuBLASLt share: descriptor contents, the checked problem, the plan.
#ifndef GCAP_SIM_CUBLASLT_INTERNAL_H_
#define GCAP_SIM_CUBLASLT_INTERNAL_H_

#include <stddef.h>
#include <stdint.h>

#include "cublasLt.h"
#include "sim/library/object.h"

// The contents of the public opaque structs. The first word is the object's magic.
typedef struct sim_lt_layout {
  uint64_t magic;
  uint32_t type;
  int32_t order;
  uint64_t rows;
  uint64_t cols;
  int64_t ld;
  int32_t batch_count;
  uint32_t batch_mode;
  int64_t batch_stride;
  int64_t plane_offset;
} sim_lt_layout_t;

typedef struct sim_lt_desc {
  uint64_t magic;
  int32_t compute_type;
  int32_t scale_type;
  int32_t pointer_mode;
  int32_t trans_a;
  int32_t trans_b;
  int32_t trans_c;
  uint32_t epilogue;
  int32_t bias_type;
  const void* bias;
  int64_t bias_batch_stride;
  int32_t sm_count_target;
} sim_lt_desc_t;

typedef struct sim_lt_preference {
  uint64_t magic;
  uint64_t max_workspace_bytes;
  uint64_t impl_mask;
  uint32_t search_mode;
  uint32_t reduction_mask;
  uint32_t min_alignment[4];  // of A, B, C, D
  float max_waves;
} sim_lt_preference_t;

_Static_assert(sizeof(sim_lt_layout_t) <= sizeof(cublasLtMatrixLayoutOpaque_t), "a layout must fit the public struct");
_Static_assert(sizeof(sim_lt_desc_t) <= sizeof(cublasLtMatmulDescOpaque_t), "a desc must fit the public struct");
_Static_assert(sizeof(sim_lt_preference_t) <= sizeof(cublasLtMatmulPreferenceOpaque_t),
               "a preference must fit the public struct");

extern const sim_object_kind_t sim_lt_handle_kind;
extern const sim_object_kind_t sim_lt_layout_kind;
extern const sim_object_kind_t sim_lt_desc_kind;
extern const sim_object_kind_t sim_lt_preference_kind;

// One matrix of a problem, with the layout's order and the operation's transpose turned into strides in elements.
typedef struct sim_lt_matrix {
  void* data;
  cudaDataType type;
  int64_t row_stride;
  int64_t col_stride;
  int64_t batch_stride;
} sim_lt_matrix_t;

// D[m, n] = epilogue(alpha * A[m, k] * B[k, n] + beta * C[m, n]), `batch_count` times. Copied into the queued work.
typedef struct sim_lt_problem {
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t batch_count;
  sim_lt_matrix_t a;
  sim_lt_matrix_t b;
  sim_lt_matrix_t c;  // data NULL: beta is known to be zero, C is not read
  sim_lt_matrix_t d;
  const float* alpha;  // device memory, or NULL when alpha_value and beta_value hold the scalars
  const float* beta;
  float alpha_value;
  float beta_value;
  const void* bias;  // m elements, or NULL
  cudaDataType bias_type;
  int64_t bias_batch_stride;
  int relu;
  int round_inputs_to_tf32;
  // Split-K: the k range in `slices` parts, each summed into its own m x n floats of `partials`. 1: no split.
  int64_t slices;
  float* partials;
} sim_lt_problem_t;

// Work for sim_submit; the payload is a sim_lt_problem_t. Whole, or partial sums and then their reduction.
void sim_lt_run_whole(void* payload);
void sim_lt_run_partials(void* payload);
void sim_lt_run_reduction(void* payload);

// The cuBLAS status that the simulated runtime's answer turns into.
cublasStatus_t sim_lt_status(cudaError_t error);

// Enters a call that is legal in every capture: counts it and gives the injected fault, if any.
cublasStatus_t sim_lt_enter(const char* function);

#endif  // GCAP_SIM_CUBLASLT_INTERNAL_H_
