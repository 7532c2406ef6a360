// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Matrix product by cuBLASLt, planned once for a shape.
//
// cuBLASLt thinks in columns. The same bytes read by columns are the transposed matrix, so the row-major C = A·Bᵀ is
// asked for as Cᵀ = B·Aᵀ: B's bytes are a [k,n] matrix to be transposed, A's are [k,m] as they stand, and C's are
// [n,m]. The library adds its bias per row of the result, which is then our bias[n].
//
// Products are full fp32: CUBLAS_COMPUTE_32F never rounds its inputs to TF32.
//
// Locking: a plan does not change after creation, but the library takes the bias address from the operation descriptor
// and no call's arguments. `bias_mutex` holds the two steps, set the address and issue, together; without a bias there
// is no lock.
#include "gcap/ops/matmul.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gcap/log.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/run_trace.h"
#include "lib/internal/sized.h"

// How many candidates the heuristic is asked for: the first that it declares usable is taken.
enum { CANDIDATES = 4 };

// What cuBLASLt demands of a workspace.
enum { WORKSPACE_ALIGNMENT = 256 };

struct gcap_matmul {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t b_layout, a_layout, c_layout;
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace_bytes;
  bool has_bias;
  pthread_mutex_t bias_mutex;
};

static gcap_status_t from_cublaslt(cublasStatus_t code, const char* call, int line) {
  gcap_note_in_capture(call, __FILE__, line);  // the library may break a capture without saying so
  if (code == CUBLAS_STATUS_SUCCESS) return NULL;
  (void)cudaGetLastError();  // the status carries the failure from here on
  return gcap_status_make(GCAP_LIBRARY_ERROR, __FILE__, line, "%.*s failed: %s (%d), %s", (int)strcspn(call, "("), call,
                          cublasLtGetStatusName(code), (int)code, cublasLtGetStatusString(code));
}
#define GCAP_CUBLASLT(call) from_cublaslt((call), #call, __LINE__)

static gcap_status_t check_matrix(const char* rows_name, int64_t rows, const char* cols_name, int64_t cols) {
  if (rows <= PTRDIFF_MAX / (int64_t)sizeof(float) / cols) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %lld and %s is %lld: such a matrix exceeds the address space",
                     rows_name, (long long)rows, cols_name, (long long)cols);
}

GCAP_SIZED_OPTIONS(static, gcap_matmul_options, .epilogue = GCAP_MATMUL_EPILOGUE_NONE);

static gcap_status_t check_options(const gcap_matmul_options_t* options) {
  const struct {
    const char* name;
    int64_t value;
  } dimensions[] = {{"m", options->m}, {"n", options->n}, {"k", options->k}};
  for (size_t i = 0; i < sizeof(dimensions) / sizeof(dimensions[0]); ++i) {
    if (dimensions[i].value < 1) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %lld, a dimension is at least 1", dimensions[i].name,
                         (long long)dimensions[i].value);
    }
  }
  GCAP_RETURN_IF_ERROR(check_matrix("m", options->m, "k", options->k));
  GCAP_RETURN_IF_ERROR(check_matrix("n", options->n, "k", options->k));
  GCAP_RETURN_IF_ERROR(check_matrix("m", options->m, "n", options->n));
  if (options->epilogue < GCAP_MATMUL_EPILOGUE_NONE || options->epilogue > GCAP_MATMUL_EPILOGUE_BIAS_RELU) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "epilogue is %d, allowed are 0..%d", (int)options->epilogue,
                       (int)GCAP_MATMUL_EPILOGUE_BIAS_RELU);
  }
  return NULL;
}

static cublasLtEpilogue_t library_epilogue(gcap_matmul_epilogue_t epilogue) {
  if (epilogue == GCAP_MATMUL_EPILOGUE_BIAS) return CUBLASLT_EPILOGUE_BIAS;
  return epilogue == GCAP_MATMUL_EPILOGUE_BIAS_RELU ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

static gcap_status_t describe(gcap_matmul_t* matmul, const gcap_matmul_options_t* options) {
  const cublasOperation_t transpose = CUBLAS_OP_T;
  const cublasLtEpilogue_t epilogue = library_epilogue(options->epilogue);
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(cublasLtMatmulDescCreate(&matmul->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F)));
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(
      cublasLtMatmulDescSetAttribute(matmul->operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof(transpose))));
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(
      cublasLtMatmulDescSetAttribute(matmul->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue))));
  const uint64_t m = (uint64_t)options->m, n = (uint64_t)options->n, k = (uint64_t)options->k;
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(cublasLtMatrixLayoutCreate(&matmul->b_layout, CUDA_R_32F, k, n, options->k)));
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(cublasLtMatrixLayoutCreate(&matmul->a_layout, CUDA_R_32F, k, m, options->k)));
  return GCAP_CUBLASLT(cublasLtMatrixLayoutCreate(&matmul->c_layout, CUDA_R_32F, n, m, options->n));
}

static gcap_status_t set_preference(cublasLtMatmulPreference_t preference, size_t max_workspace_bytes) {
  const uint64_t bytes = max_workspace_bytes;
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes))));
  // Not INPLACE: it clears and counts its partial sums by a memset and extra kernels, and was never faster where it was
  // tried; on an H200 four nodes and 11.6 us instead of one and 3.0 for m 32, n 10, k 64.
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof(reductions))));
  // By default the library counts on 256-byte alignment; our callers only promise arrays of floats.
  const cublasLtMatmulPreferenceAttributes_t alignments[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  const uint32_t alignment = sizeof(float);
  for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]); ++i) {
    GCAP_RETURN_IF_ERROR(
        GCAP_CUBLASLT(cublasLtMatmulPreferenceSetAttribute(preference, alignments[i], &alignment, sizeof(alignment))));
  }
  return NULL;
}

static gcap_status_t no_algorithm(const gcap_matmul_options_t* options) {
  return GCAP_STATUS(GCAP_UNIMPLEMENTED,
                     "cuBLASLt has no algorithm for m %lld, n %lld, k %lld within %zu bytes of workspace",
                     (long long)options->m, (long long)options->n, (long long)options->k, options->max_workspace_bytes);
}

static gcap_status_t choose_algorithm(gcap_matmul_t* matmul, const gcap_matmul_options_t* options,
                                      cublasLtMatmulPreference_t preference) {
  cublasLtMatmulHeuristicResult_t results[CANDIDATES];
  int count = 0;
  const cublasStatus_t code =
      cublasLtMatmulAlgoGetHeuristic(matmul->handle, matmul->operation, matmul->b_layout, matmul->a_layout,
                                     matmul->c_layout, matmul->c_layout, preference, CANDIDATES, results, &count);
  if (code == CUBLAS_STATUS_NOT_SUPPORTED) {  // the library's word for an empty list
    (void)cudaGetLastError();
    return no_algorithm(options);
  }
  GCAP_RETURN_IF_ERROR(from_cublaslt(code, "cublasLtMatmulAlgoGetHeuristic", __LINE__));
  for (int i = 0; i < count; ++i) {
    if (results[i].state == CUBLAS_STATUS_SUCCESS && results[i].workspaceSize <= options->max_workspace_bytes) {
      matmul->algorithm = results[i].algo;
      matmul->workspace_bytes = results[i].workspaceSize;
      return NULL;
    }
  }
  return no_algorithm(options);
}

static gcap_status_t plan(gcap_matmul_t* matmul, const gcap_matmul_options_t* options) {
  GCAP_RETURN_IF_ERROR(describe(matmul, options));
  cublasLtMatmulPreference_t preference = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(cublasLtMatmulPreferenceCreate(&preference)));
  gcap_status_t status = set_preference(preference, options->max_workspace_bytes);
  if (status == NULL) status = choose_algorithm(matmul, options, preference);
  return gcap_status_join(status, GCAP_CUBLASLT(cublasLtMatmulPreferenceDestroy(preference)));
}

gcap_status_t gcap_matmul_create(const gcap_matmul_options_t* options, gcap_matmul_t** out_matmul) {
  GCAP_RETURN_IF_NULL(out_matmul);
  *out_matmul = NULL;
  GCAP_RETURN_IF_NULL(options);
  gcap_matmul_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_matmul_options_read(options, &known));
  options = &known;
  GCAP_RETURN_IF_NULL(options->handle);
  GCAP_RETURN_IF_ERROR(check_options(options));
  GCAP_RETURN_IF_ERROR(gcap_refuse_in_capture("a matmul is planned before the capture"));
  gcap_trace_initialization();
  gcap_matmul_t* matmul = calloc(1, sizeof(*matmul));
  if (matmul == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a matmul");
  matmul->handle = options->handle;
  matmul->has_bias = options->epilogue != GCAP_MATMUL_EPILOGUE_NONE;
  pthread_mutex_init(&matmul->bias_mutex, NULL);
  gcap_status_t status = plan(matmul, options);
  if (status != NULL) {
    gcap_matmul_destroy(matmul);
    return status;
  }
  *out_matmul = matmul;
  return NULL;
}

// A destructor has no status to return.
static void warn(gcap_status_t status) {
  if (status == NULL) return;
  gcap_log(GCAP_LOG_WARNING, "gcap_matmul_destroy: %s", gcap_status_message(status));
  gcap_status_free(status);
}

void gcap_matmul_destroy(gcap_matmul_t* matmul) {
  if (matmul == NULL) return;
  if (matmul->c_layout != NULL) warn(GCAP_CUBLASLT(cublasLtMatrixLayoutDestroy(matmul->c_layout)));
  if (matmul->a_layout != NULL) warn(GCAP_CUBLASLT(cublasLtMatrixLayoutDestroy(matmul->a_layout)));
  if (matmul->b_layout != NULL) warn(GCAP_CUBLASLT(cublasLtMatrixLayoutDestroy(matmul->b_layout)));
  if (matmul->operation != NULL) warn(GCAP_CUBLASLT(cublasLtMatmulDescDestroy(matmul->operation)));
  pthread_mutex_destroy(&matmul->bias_mutex);
  free(matmul);
}

size_t gcap_matmul_workspace_bytes(const gcap_matmul_t* matmul) { return matmul->workspace_bytes; }

// The arguments of which the plan decides whether there is to be one.
static gcap_status_t check_planned(const gcap_matmul_t* matmul, const float* bias, const void* workspace) {
  if (matmul->has_bias != (bias != NULL)) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, matmul->has_bias ? "bias is NULL, the epilogue needs one"
                                                               : "bias is not NULL, the epilogue has none");
  }
  if (matmul->workspace_bytes == 0) return NULL;
  if (workspace == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "workspace is NULL, the plan needs %zu bytes", matmul->workspace_bytes);
  }
  if ((uintptr_t)workspace % WORKSPACE_ALIGNMENT != 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "workspace is %p, it must be %d-byte aligned", workspace,
                       (int)WORKSPACE_ALIGNMENT);
  }
  return NULL;
}

static gcap_status_t issue(const gcap_matmul_t* matmul, cudaStream_t stream, const float* a, const float* b, float* c,
                           void* workspace) {
  static const float one = 1.0f, zero = 0.0f;
  return GCAP_CUBLASLT(cublasLtMatmul(matmul->handle, matmul->operation, &one, b, matmul->b_layout, a, matmul->a_layout,
                                      &zero, c, matmul->c_layout, c, matmul->c_layout, &matmul->algorithm, workspace,
                                      matmul->workspace_bytes, stream));
}

static gcap_status_t issue_with_bias(const gcap_matmul_t* matmul, cudaStream_t stream, const float* a, const float* b,
                                     const float* bias, float* c, void* workspace) {
  pthread_mutex_t* mutex = (pthread_mutex_t*)&matmul->bias_mutex;  // the one part of a plan that run may touch
  pthread_mutex_lock(mutex);
  gcap_status_t status = GCAP_CUBLASLT(
      cublasLtMatmulDescSetAttribute(matmul->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
  if (status == NULL) status = issue(matmul, stream, a, b, c, workspace);
  pthread_mutex_unlock(mutex);
  return status;
}

gcap_status_t gcap_matmul_run(const gcap_matmul_t* matmul, gcap_stream_t* stream, const float* a, const float* b,
                              const float* bias, float* c, void* workspace) {
  GCAP_RETURN_IF_NULL(matmul);
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(a);
  GCAP_RETURN_IF_NULL(b);
  GCAP_RETURN_IF_NULL(c);
  GCAP_RETURN_IF_ERROR(check_planned(matmul, bias, workspace));
  const int device_id = gcap_stream_device(stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  const cudaStream_t handle = gcap_stream_handle(stream);
  gcap_status_t status = matmul->has_bias ? issue_with_bias(matmul, handle, a, b, bias, c, workspace)
                                          : issue(matmul, handle, a, b, c, workspace);
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}
