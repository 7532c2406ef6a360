// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A matrix product described to cuBLASLt, and the choice of an algorithm.
//
// cuBLASLt thinks in columns. The same bytes read by columns are the transposed matrix, so the row-major C = A·B is
// asked for as Cᵀ = Bᵀ·Aᵀ: C's bytes are [n,m]; b's are [n,k] as they stand, or [k,n] to be transposed if b is stored
// as [n,k]; a's are [k,m], or [m,k] to be transposed. The library adds its bias per row of the result, which is our
// bias[n].
//
// Products of F32 are full: CUBLAS_COMPUTE_32F never rounds its inputs to TF32.
#include <stdint.h>

#include "ops/cublaslt/cublaslt_status.h"
#include "ops/cublaslt/matmul_plan.h"
#include "ops/handles/end_warning.h"

// How many candidates the heuristic is asked for: the first that it declares usable is taken.
enum { CANDIDATES = 4 };

static cublasLtEpilogue_t library_epilogue(gcap_matmul_epilogue_t epilogue) {
  switch (epilogue) {
    case GCAP_MATMUL_EPILOGUE_BIAS: return CUBLASLT_EPILOGUE_BIAS;
    case GCAP_MATMUL_EPILOGUE_BIAS_RELU: return CUBLASLT_EPILOGUE_RELU_BIAS;
    case GCAP_MATMUL_EPILOGUE_RELU: return CUBLASLT_EPILOGUE_RELU;
    case GCAP_MATMUL_EPILOGUE_GELU: return CUBLASLT_EPILOGUE_GELU;
    case GCAP_MATMUL_EPILOGUE_BIAS_GELU: return CUBLASLT_EPILOGUE_GELU_BIAS;
    default: return CUBLASLT_EPILOGUE_DEFAULT;
  }
}

static cudaDataType library_type(gcap_dtype_t dtype) {
  if (dtype == GCAP_DTYPE_F16) return CUDA_R_16F;
  return dtype == GCAP_DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static gcap_status_t describe_operation(gcap_matmul_t* matmul) {
  const gcap_matmul_options_t* o = &matmul->options;
  const cublasComputeType_t compute = o->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const cublasOperation_t b_operation = o->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t a_operation = o->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasLtEpilogue_t epilogue = library_epilogue(o->epilogue);
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(cublasLtMatmulDescCreate(&matmul->operation, compute, CUDA_R_32F)));
  const cublasLtMatmulDesc_t operation = matmul->operation;
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(
      cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &b_operation, sizeof(b_operation))));
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(
      cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, &a_operation, sizeof(a_operation))));
  return GCAP_CUBLASLT(
      cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
}

// A matrix stored as [rows,cols], which the library sees as [cols,rows].
static gcap_status_t describe_matrix(cudaDataType type, int64_t rows, int64_t cols, int64_t batch, int64_t stride,
                                     cublasLtMatrixLayout_t* out_layout) {
  GCAP_RETURN_IF_ERROR(
      GCAP_CUBLASLT(cublasLtMatrixLayoutCreate(out_layout, type, (uint64_t)cols, (uint64_t)rows, cols)));
  if (batch == 1) return NULL;
  const int32_t count = (int32_t)batch;
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(
      cublasLtMatrixLayoutSetAttribute(*out_layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count))));
  return GCAP_CUBLASLT(cublasLtMatrixLayoutSetAttribute(*out_layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                        &stride, sizeof(stride)));
}

// Without a depth the library gets one of zeros, which serve as a and as b and for each matrix of the batch: it
// computes the epilogue of what is left, for which it has no algorithm otherwise.
static gcap_status_t describe_matrices(gcap_matmul_t* matmul) {
  const gcap_matmul_options_t* o = &matmul->options;
  const int64_t k = o->k == 0 ? 1 : o->k, a_stride = o->k == 0 ? 0 : o->a_stride,
                b_stride = o->k == 0 ? 0 : o->b_stride;
  const cudaDataType type = library_type(o->dtype), c_type = o->out_f32 ? CUDA_R_32F : type;
  GCAP_RETURN_IF_ERROR(
      describe_matrix(type, o->trans_b ? o->n : k, o->trans_b ? k : o->n, o->batch, b_stride, &matmul->b_layout));
  GCAP_RETURN_IF_ERROR(
      describe_matrix(type, o->trans_a ? k : o->m, o->trans_a ? o->m : k, o->batch, a_stride, &matmul->a_layout));
  return describe_matrix(c_type, o->m, o->n, o->batch, o->m * o->n, &matmul->c_layout);
}

static gcap_status_t set_alignment(cublasLtMatmulPreference_t preference,
                                   cublasLtMatmulPreferenceAttributes_t attribute, size_t bytes) {
  const uint32_t alignment = (uint32_t)bytes;
  return GCAP_CUBLASLT(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &alignment, sizeof(alignment)));
}

// By default the library counts on an alignment of 256 bytes.
static gcap_status_t set_preference(const gcap_matmul_t* matmul, cublasLtMatmulPreference_t preference) {
  const uint64_t bytes = matmul->options.max_workspace_bytes;
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes))));
  // Not INPLACE: it clears and counts its partial sums by a memset and extra kernels, and was never faster where it was
  // tried; on an H200 four nodes and 11.6 us instead of one and 3.0 for m 32, n 10, k 64.
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof(reductions))));
  GCAP_RETURN_IF_ERROR(set_alignment(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, matmul->alignment));
  GCAP_RETURN_IF_ERROR(set_alignment(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, matmul->alignment));
  GCAP_RETURN_IF_ERROR(set_alignment(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, matmul->c_alignment));
  return set_alignment(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, matmul->c_alignment);
}

static gcap_status_t no_algorithm(const gcap_matmul_options_t* o) {
  return GCAP_STATUS(
      GCAP_UNIMPLEMENTED, "cuBLASLt has no algorithm for m %lld, n %lld, k %lld of %s within %zu bytes of workspace",
      (long long)o->m, (long long)o->n, (long long)o->k, gcap_dtype_name(o->dtype), o->max_workspace_bytes);
}

static gcap_status_t choose_algorithm(gcap_matmul_t* matmul, cublasLtMatmulPreference_t preference) {
  const gcap_matmul_options_t* o = &matmul->options;
  cublasLtMatmulHeuristicResult_t results[CANDIDATES];
  int count = 0;
  const cublasStatus_t code =
      cublasLtMatmulAlgoGetHeuristic(o->handle, matmul->operation, matmul->b_layout, matmul->a_layout, matmul->c_layout,
                                     matmul->c_layout, preference, CANDIDATES, results, &count);
  if (code == CUBLAS_STATUS_NOT_SUPPORTED) {  // the library's word for an empty list
    (void)cudaGetLastError();
    return no_algorithm(o);
  }
  GCAP_RETURN_IF_ERROR(gcap_cublaslt_status(code, "cublasLtMatmulAlgoGetHeuristic", __FILE__, __LINE__));
  for (int i = 0; i < count; ++i) {
    if (results[i].state == CUBLAS_STATUS_SUCCESS && results[i].workspaceSize <= o->max_workspace_bytes) {
      matmul->algorithm = results[i].algo;
      matmul->algorithm_bytes = results[i].workspaceSize;
      return NULL;
    }
  }
  return no_algorithm(o);
}

// The zeros come behind what the algorithm needs, as well aligned.
static void place_zeros(gcap_matmul_t* matmul) {
  const gcap_matmul_options_t* o = &matmul->options;
  if (o->k != 0) return;
  const size_t unit = GCAP_MATMUL_WORKSPACE_ALIGNMENT;
  matmul->zeros_offset = (matmul->algorithm_bytes + unit - 1) / unit * unit;
  matmul->zeros_bytes = (size_t)(o->m > o->n ? o->m : o->n) * matmul->element_bytes;
}

gcap_status_t gcap_matmul_plan(gcap_matmul_t* matmul) {
  GCAP_RETURN_IF_ERROR(describe_operation(matmul));
  GCAP_RETURN_IF_ERROR(describe_matrices(matmul));
  cublasLtMatmulPreference_t preference = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(cublasLtMatmulPreferenceCreate(&preference)));
  gcap_status_t status = set_preference(matmul, preference);
  if (status == NULL) status = choose_algorithm(matmul, preference);
  if (status == NULL) place_zeros(matmul);
  return gcap_status_join(status, GCAP_CUBLASLT(cublasLtMatmulPreferenceDestroy(preference)));
}

static void end_layout(cublasLtMatrixLayout_t layout) {
  if (layout != NULL) gcap_warn_of_end(GCAP_CUBLASLT(cublasLtMatrixLayoutDestroy(layout)));
}

void gcap_matmul_end_plan(gcap_matmul_t* matmul) {
  end_layout(matmul->c_layout);
  end_layout(matmul->a_layout);
  end_layout(matmul->b_layout);
  if (matmul->operation != NULL) gcap_warn_of_end(GCAP_CUBLASLT(cublasLtMatmulDescDestroy(matmul->operation)));
}
