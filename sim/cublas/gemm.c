// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Matrix products: arguments checked as NVIDIA documents, then a problem of cuBLASLt's, whose arithmetic and choice of
// slices this is. Measured: a product that is split takes its workspace, where the caller gave none, in the order of
// its stream, as nodes in a capture; and one of no depth that overwrites C is a memset. Eager products that are split
// take theirs so too, where a GPU has it in the handle: nothing shows the difference but the memory pool. Stateless.
#include "sim/api/submit.h"
#include "sim/cublas/internal.h"
#include "sim/cublaslt/internal.h"
#include "sim/library/element.h"

enum { kWorkspaceAlignment = 256 };  // of what is used of it

// One operand as it is passed.
typedef struct operand {
  const void* data;
  cudaDataType type;
  int ld;
  long long stride;
} operand_t;

typedef struct product {
  cublasOperation_t trans_a, trans_b;
  int m, n, k, batch;
  const void *alpha, *beta;
  operand_t a, b, c;
  cublasComputeType_t compute;
} product_t;

static int is_operation(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
}

static int fits(int ld, int rows) { return ld >= (rows > 1 ? rows : 1); }

static cublasStatus_t check(const product_t* p) {
  if (p->m < 0 || p->n < 0 || p->k < 0 || p->batch < 0 || !is_operation(p->trans_a) || !is_operation(p->trans_b) ||
      p->alpha == NULL || p->beta == NULL) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const int a_rows = p->trans_a == CUBLAS_OP_N ? p->m : p->k;
  const int b_rows = p->trans_b == CUBLAS_OP_N ? p->k : p->n;
  return fits(p->a.ld, a_rows) && fits(p->b.ld, b_rows) && fits(p->c.ld, p->m) ? CUBLAS_STATUS_SUCCESS
                                                                               : CUBLAS_STATUS_INVALID_VALUE;
}

// Doubles go with doubles alone, in matrices and in what is computed in.
static cublasStatus_t check_types(const char* function, const product_t* p) {
  const int is_double = p->compute == CUBLAS_COMPUTE_64F || p->compute == CUBLAS_COMPUTE_64F_PEDANTIC;
  const cudaDataType types[] = {p->a.type, p->b.type, p->c.type};
  for (size_t i = 0; i < 3; ++i) {
    if (gcap_sim_element_bytes(types[i]) == 0) {
      gcap_sim_stop(function, "matrix type %d is not modelled", (int)types[i]);
    }
    if ((types[i] == CUDA_R_64F) != is_double) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  }
  const int is_output = p->c.type == p->a.type || p->c.type == CUDA_R_32F;
  return p->a.type == p->b.type && is_output ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t choose_input(const char* function, cublasHandle_t handle, const product_t* p,
                                   gcap_sim_lt_input_t* out) {
  const int math_mode = (int)handle->math_mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  const int is_tf32 = math_mode == CUBLAS_TF32_TENSOR_OP_MATH && p->a.type == CUDA_R_32F;
  *out = GCAP_SIM_LT_INPUT_EXACT;
  switch (p->compute) {
    case CUBLAS_COMPUTE_32F: *out = is_tf32 ? GCAP_SIM_LT_INPUT_TF32 : GCAP_SIM_LT_INPUT_EXACT; break;
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC: break;
    case CUBLAS_COMPUTE_32F_FAST_TF32: *out = GCAP_SIM_LT_INPUT_TF32; break;
    case CUBLAS_COMPUTE_32F_FAST_16F: *out = GCAP_SIM_LT_INPUT_16F; break;
    case CUBLAS_COMPUTE_32F_FAST_16BF: *out = GCAP_SIM_LT_INPUT_16BF; break;
    default: gcap_sim_stop(function, "compute type %d is not modelled", (int)p->compute);
  }
  return CUBLAS_STATUS_SUCCESS;
}

static gcap_sim_lt_matrix_t matrix_of(const operand_t* operand, int is_transposed) {
  const int64_t ld = operand->ld;
  return (gcap_sim_lt_matrix_t){.data = (void*)operand->data,  // const ends here: one struct for inputs and outputs
                                .type = operand->type,
                                .row_stride = is_transposed ? ld : 1,
                                .col_stride = is_transposed ? 1 : ld,
                                .batch_stride = operand->stride};
}

static cublasStatus_t bind_scalars(cublasHandle_t handle, const product_t* p, gcap_sim_lt_problem_t* out) {
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
    out->alpha = p->alpha;
    out->beta = p->beta;
  } else {
    gcap_sim_lt_bind_host_scalars(p->alpha, p->beta, out);
  }
  const int reads_c = out->alpha != NULL || out->beta_value != 0.0;
  out->c.data = reads_c ? out->d.data : NULL;
  const int has_inputs = p->k == 0 || (p->a.data != NULL && p->b.data != NULL);
  return has_inputs && p->c.data != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t make_problem(const char* function, cublasHandle_t handle, const product_t* p,
                                   gcap_sim_lt_problem_t* out) {
  *out = (gcap_sim_lt_problem_t){.m = p->m, .n = p->n, .k = p->k, .batch_count = p->batch, .slices = 1};
  out->a = matrix_of(&p->a, p->trans_a != CUBLAS_OP_N);
  out->b = matrix_of(&p->b, p->trans_b != CUBLAS_OP_N);
  out->c = out->d = matrix_of(&p->c, 0);
  cublasStatus_t status = check_types(function, p);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = choose_input(function, handle, p, &out->input);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = bind_scalars(handle, p, out);
  }
  return status;
}

static void stop_if_misaligned(const char* function, const gcap_sim_lt_matrix_t* matrix) {
  if ((uintptr_t)matrix->data % gcap_sim_element_bytes(matrix->type) != 0) {
    gcap_sim_stop(function, "%p is not aligned to the matrix's elements, which faults on a GPU (716)", matrix->data);
  }
}

// Whether no more is to be done than to clear C.
static int is_clear(const gcap_sim_lt_problem_t* problem) {
  return problem->k == 0 && problem->c.data == NULL && problem->batch_count == 1;
}

static cudaError_t clear(const gcap_sim_lt_problem_t* problem, cudaStream_t stream) {
  const size_t bytes = gcap_sim_element_bytes(problem->d.type);
  return gcap_sim_library_clear(problem->d.data, (size_t)problem->d.col_stride * bytes, (size_t)problem->m * bytes,
                                (size_t)problem->n, stream);
}

// Chooses the slices for the caller's workspace, if there is one, and a place in it for partial sums: it may have any
// alignment.
static void split(cublasHandle_t handle, gcap_sim_lt_problem_t* problem) {
  const size_t lost = handle->workspace == NULL ? 0 : (size_t)(-(uintptr_t)handle->workspace % kWorkspaceAlignment);
  const size_t usable = handle->workspace_bytes > lost ? handle->workspace_bytes - lost : 0;
  problem->slices = gcap_sim_lt_choose_slices(problem, handle->workspace == NULL ? UINT64_MAX : usable);
  if (problem->slices > 1 && handle->workspace != NULL) {
    problem->partials = (char*)handle->workspace + lost;
  }
}

static cudaError_t submit_with_own_workspace(const char* function, gcap_sim_lt_problem_t* problem,
                                             cudaStream_t stream) {
  const size_t bytes = (size_t)gcap_sim_lt_workspace_bytes(problem, problem->slices);
  cudaError_t error = gcap_sim_library_allocate(&problem->partials, bytes, stream);
  if (error != cudaSuccess) {
    return error;
  }
  error = gcap_sim_lt_submit(function, problem, problem->partials, bytes, stream);
  const cudaError_t freed = gcap_sim_library_free(problem->partials, stream);
  return error != cudaSuccess ? error : freed;
}

// NOTE: measured beside another thread's global capture. A split product invalidates that capture and, if it was to be
// part of it, fails with 14. One kernel does so, with 13, where something has to be loaded, which depends on what the
// process did before; here it does so always, as cublasLtMatmul. A memset never does.
static cublasStatus_t submit(const char* function, cublasHandle_t handle, gcap_sim_lt_problem_t* problem) {
  if (is_clear(problem)) {
    return gcap_sim_lt_status(clear(problem, handle->stream));
  }
  (void)gcap_sim_invalidate_captures_of_others(function);
  split(handle, problem);
  if (problem->slices > 1 && gcap_sim_stream_is_invalidated(handle->stream)) {
    return CUBLAS_STATUS_INTERNAL_ERROR;
  }
  const int needs_workspace = problem->slices > 1 && handle->workspace == NULL;
  return gcap_sim_lt_status(needs_workspace ? submit_with_own_workspace(function, problem, handle->stream)
                                            : gcap_sim_lt_submit(function, problem, handle->workspace,
                                                                 handle->workspace_bytes, handle->stream));
}

static cublasStatus_t multiply(const char* function, cublasHandle_t handle, const product_t* p) {
  cublasStatus_t status = gcap_sim_blas_enter(function, handle);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = check(p);
  }
  if (status != CUBLAS_STATUS_SUCCESS || p->m == 0 || p->n == 0 || p->batch == 0) {
    return status;
  }
  gcap_sim_lt_problem_t problem;
  status = make_problem(function, handle, p, &problem);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  stop_if_misaligned(function, &problem.a);
  stop_if_misaligned(function, &problem.b);
  stop_if_misaligned(function, &problem.d);
  return submit(function, handle, &problem);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                              int k, const float* alpha, const float* A, int lda, const float* B, int ldb,
                              const float* beta, float* C, int ldc) {
  const product_t product = {transa,
                             transb,
                             m,
                             n,
                             k,
                             1,
                             alpha,
                             beta,
                             {A, CUDA_R_32F, lda, 0},
                             {B, CUDA_R_32F, ldb, 0},
                             {C, CUDA_R_32F, ldc, 0},
                             CUBLAS_COMPUTE_32F};
  return multiply("cublasSgemm", handle, &product);
}

cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                              int k, const double* alpha, const double* A, int lda, const double* B, int ldb,
                              const double* beta, double* C, int ldc) {
  const product_t product = {transa,
                             transb,
                             m,
                             n,
                             k,
                             1,
                             alpha,
                             beta,
                             {A, CUDA_R_64F, lda, 0},
                             {B, CUDA_R_64F, ldb, 0},
                             {C, CUDA_R_64F, ldc, 0},
                             CUBLAS_COMPUTE_64F};
  return multiply("cublasDgemm", handle, &product);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void* alpha, const void* A, cudaDataType Atype, int lda, const void* B,
                            cudaDataType Btype, int ldb, const void* beta, void* C, cudaDataType Ctype, int ldc,
                            cublasComputeType_t computeType, cublasGemmAlgo_t algo) {
  (void)algo;  // on this architecture all are the default, as documented
  const product_t product = {
      transa, transb, m, n, k, 1, alpha, beta, {A, Atype, lda, 0}, {B, Btype, ldb, 0}, {C, Ctype, ldc, 0}, computeType};
  return multiply(__func__, handle, &product);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                          int m, int n, int k, const void* alpha, const void* A, cudaDataType Atype,
                                          int lda, long long int strideA, const void* B, cudaDataType Btype, int ldb,
                                          long long int strideB, const void* beta, void* C, cudaDataType Ctype, int ldc,
                                          long long int strideC, int batchCount, cublasComputeType_t computeType,
                                          cublasGemmAlgo_t algo) {
  (void)algo;
  const product_t product = {transa,
                             transb,
                             m,
                             n,
                             k,
                             batchCount,
                             alpha,
                             beta,
                             {A, Atype, lda, strideA},
                             {B, Btype, ldb, strideB},
                             {C, Ctype, ldc, strideC},
                             computeType};
  return multiply(__func__, handle, &product);
}
