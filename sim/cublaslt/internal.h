// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// internal.h: what the files of the simulated cuBLASLt share, some of it with cuBLAS: descriptor contents, the checked
// problem, the plan.
#ifndef GCAP_SIM_CUBLASLT_INTERNAL_H_
#define GCAP_SIM_CUBLASLT_INTERNAL_H_

#include <stddef.h>
#include <stdint.h>

#include "cublasLt.h"
#include "sim/library/element.h"
#include "sim/library/object.h"

// The contents of the public opaque structs. The first word is the object's magic.
typedef struct gcap_sim_lt_layout {
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
} gcap_sim_lt_layout_t;

typedef struct gcap_sim_lt_desc {
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
  int32_t aux_type;
  void* aux;
  int64_t aux_ld;
  int64_t aux_batch_stride;
} gcap_sim_lt_desc_t;

typedef struct gcap_sim_lt_preference {
  uint64_t magic;
  uint64_t max_workspace_bytes;
  uint64_t impl_mask;
  uint32_t search_mode;
  uint32_t reduction_mask;
  uint32_t min_alignment[4];  // of A, B, C, D
  float max_waves;
} gcap_sim_lt_preference_t;

_Static_assert(sizeof(gcap_sim_lt_layout_t) <= sizeof(cublasLtMatrixLayoutOpaque_t),
               "a layout must fit the public struct");
_Static_assert(sizeof(gcap_sim_lt_desc_t) <= sizeof(cublasLtMatmulDescOpaque_t), "a desc must fit the public struct");
_Static_assert(sizeof(gcap_sim_lt_preference_t) <= sizeof(cublasLtMatmulPreferenceOpaque_t),
               "a preference must fit the public struct");

extern const gcap_sim_object_kind_t gcap_sim_lt_handle_kind;
extern const gcap_sim_object_kind_t gcap_sim_lt_layout_kind;
extern const gcap_sim_object_kind_t gcap_sim_lt_desc_kind;
extern const gcap_sim_object_kind_t gcap_sim_lt_preference_kind;

// One matrix of a problem, with the layout's order and the operation's transpose turned into strides in elements.
typedef struct gcap_sim_lt_matrix {
  void* data;
  cudaDataType type;
  int32_t zero;  // where padding would be, which differs from call to call
  int64_t row_stride;
  int64_t col_stride;
  int64_t batch_stride;
} gcap_sim_lt_matrix_t;

// What the elements of A and B are rounded to before they are multiplied.
typedef enum gcap_sim_lt_input {
  GCAP_SIM_LT_INPUT_EXACT,
  GCAP_SIM_LT_INPUT_TF32,
  GCAP_SIM_LT_INPUT_16F,
  GCAP_SIM_LT_INPUT_16BF
} gcap_sim_lt_input_t;

typedef enum gcap_sim_lt_activation {
  GCAP_SIM_LT_NO_ACTIVATION,
  GCAP_SIM_LT_RELU,
  GCAP_SIM_LT_GELU
} gcap_sim_lt_activation_t;

// The bit of an epilogue that asks for an auxiliary output.
enum { GCAP_SIM_LT_EPILOGUE_AUX = 128 };

// What an epilogue with AUX leaves for a backward pass, column by column: for a ReLU one bit an element, set where its
// input is not negative; for a GELU its input, in D's type.
typedef struct gcap_sim_lt_aux {
  void* data;  // NULL: none
  int64_t ld;  // elements: bits for a ReLU
  int64_t batch_stride;
} gcap_sim_lt_aux_t;

// D[m, n] = epilogue(alpha * A[m, k] * B[k, n] + beta * C[m, n]), `batch_count` times. Copied into the queued work.
typedef struct gcap_sim_lt_problem {
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t batch_count;
  gcap_sim_lt_matrix_t a;
  gcap_sim_lt_matrix_t b;
  gcap_sim_lt_matrix_t c;  // data NULL: beta is known to be zero, C is not read
  gcap_sim_lt_matrix_t d;
  const void* alpha;  // device memory, of the compute type, or NULL when alpha_value and beta_value hold the scalars
  const void* beta;
  double alpha_value;
  double beta_value;
  const void* bias;  // m elements of D's type, or NULL
  int64_t bias_batch_stride;
  gcap_sim_lt_aux_t aux;
  gcap_sim_lt_activation_t activation;
  gcap_sim_lt_input_t input;
  // Split-K: the k range in `slices` parts, each summed into its own m x n numbers of `partials`. 1: no split.
  int64_t slices;
  void* partials;
  void* workspace;  // what the product may write beside its results; NULL for nothing
  size_t workspace_bytes;
} gcap_sim_lt_problem_t;

// The type of the problem's scalars, sums and partial sums: CUDA_R_64F or CUDA_R_32F.
static inline cudaDataType gcap_sim_lt_compute_type(const gcap_sim_lt_problem_t* problem) {
  return gcap_sim_element_compute_type(problem->a.type);
}

// Puts scalars of host memory into the problem.
static inline void gcap_sim_lt_bind_host_scalars(const void* alpha, const void* beta, gcap_sim_lt_problem_t* problem) {
  const cudaDataType type = gcap_sim_lt_compute_type(problem);
  problem->alpha_value = gcap_sim_element_load(alpha, type, 0);
  problem->beta_value = gcap_sim_element_load(beta, type, 0);
}

// What a call computes, without its data pointers, from descriptors that may be wrong in every way (problem.c).
// Stops the program at what crashes the real library, and at what a GPU can do and the simulator cannot.
cublasStatus_t gcap_sim_lt_make_problem(const char* function, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                        gcap_sim_lt_problem_t* out);

// Bytes of one column of the problem's auxiliary output.
size_t gcap_sim_lt_aux_column_bytes(const gcap_sim_lt_problem_t* problem);

// Work for gcap_sim_submit; the payload is a gcap_sim_lt_problem_t. Whole, or partial sums and then their reduction.
void gcap_sim_lt_run_whole(void* payload);
void gcap_sim_lt_run_partials(void* payload);
void gcap_sim_lt_run_reduction(void* payload);

// An algorithm for the problem that splits k into so many slices (algorithm.c).
cublasLtMatmulAlgo_t gcap_sim_lt_make_algorithm(const gcap_sim_lt_problem_t* problem, int64_t slices);

// The slices that an algorithm asks for; 0 when it is none of this library's.
int64_t gcap_sim_lt_slices_of(const cublasLtMatmulAlgo_t* algo);

// The most slices that the problem and so much workspace allow, 1 for no split, and the workspace that slices need.
int64_t gcap_sim_lt_choose_slices(const gcap_sim_lt_problem_t* problem, uint64_t max_workspace_bytes);
uint64_t gcap_sim_lt_workspace_bytes(const gcap_sim_lt_problem_t* problem, int64_t slices);

// Submits a problem as one piece of work, called `name`, or as two if it is split, which may write the workspace.
cudaError_t gcap_sim_lt_submit(const char* name, const gcap_sim_lt_problem_t* problem, void* workspace, size_t bytes,
                               cudaStream_t stream);

// The cuBLAS status that the simulated runtime's answer turns into.
cublasStatus_t gcap_sim_lt_status(cudaError_t error);

// Enters a call that is legal in every capture: counts it and gives the injected fault, if any.
cublasStatus_t gcap_sim_lt_enter(const char* function);

#endif  // GCAP_SIM_CUBLASLT_INTERNAL_H_
