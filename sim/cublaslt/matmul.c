// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cublasLtMatmul and its heuristic. problem.c says what to compute, an algorithm says how, and the two become queued
// work. The simulated library has two forms of one algorithm: whole, which needs no workspace, and split-K, which sums
// 2 to 8 slices of k into the workspace and reduces them in a second kernel, as the real one does for small outputs
// with a long k. Stateless. A handle binds nothing: measured with two devices, any handle serves the streams of both,
// and only the memory must be reachable from the stream's device.
#include <string.h>

#include "sim/cublaslt/internal.h"
#include "sim/library/access.h"
#include "sim/library/element.h"

enum {
  kSplitMinK = 256,      // from here on the simulated heuristic prefers split-K
  kSplitMinK16 = 4096,   // … for 16-bit types: 2048 is one kernel for an output of 64 x 64, as measured with cuBLAS
  kSplitMaxOut = 65536,  // … for outputs of up to so many elements: larger ones fill a GPU without it
  kSplitSliceK = 64,     // k of a slice, about
  kMaxSlices = 8,
  kWorkspaceAlignment = 256  // measured: 128 is refused, also where the algorithm needs no workspace
};

uint64_t gcap_sim_lt_workspace_bytes(const gcap_sim_lt_problem_t* problem, int64_t slices) {
  const uint64_t numbers = (uint64_t)(slices * problem->batch_count * problem->m * problem->n);
  return slices < 2 ? 0 : numbers * gcap_sim_element_bytes(gcap_sim_lt_compute_type(problem));
}

// Whether the problem can be split into so many slices within so much workspace.
static int allows_slices(const gcap_sim_lt_problem_t* problem, int64_t slices, uint64_t max_workspace_bytes) {
  if (slices == 1) {
    return 1;
  }
  const int64_t min_k = gcap_sim_element_bytes(problem->a.type) == 2 ? kSplitMinK16 : kSplitMinK;
  const int is_split = problem->k >= min_k && problem->batch_count * problem->m * problem->n <= kSplitMaxOut;
  return is_split && slices <= problem->k / kSplitSliceK &&
         gcap_sim_lt_workspace_bytes(problem, slices) <= max_workspace_bytes;
}

// The most slices, at most `first`, that the problem and the workspace allow; 1 for no split.
static int64_t choose_slices_from(const gcap_sim_lt_problem_t* problem, int64_t first, uint64_t max_workspace_bytes) {
  int64_t slices = first;
  while (!allows_slices(problem, slices, max_workspace_bytes)) {
    slices /= 2;
  }
  return slices;
}

int64_t gcap_sim_lt_choose_slices(const gcap_sim_lt_problem_t* problem, uint64_t max_workspace_bytes) {
  return choose_slices_from(problem, kMaxSlices, max_workspace_bytes);
}

static cublasLtMatmulHeuristicResult_t make_result(const gcap_sim_lt_problem_t* problem, int64_t slices) {
  cublasLtMatmulHeuristicResult_t result;
  memset(&result, 0, sizeof(result));
  result.algo = gcap_sim_lt_make_algorithm(problem, slices);
  result.workspaceSize = (size_t)gcap_sim_lt_workspace_bytes(problem, slices);
  result.state = CUBLAS_STATUS_SUCCESS;
  result.wavesCount = 1.0f;
  return result;
}

// NOTE: beside another thread's global capture a GPU may have to load something for a heuristic or a matmul, on
// whatever stream, and then invalidates that capture, without a word but to work for it. When that is depends on what
// the process did before, so that nobody can know; here it is so always. True when it was so.
static int load_kernels(const char* function) { return gcap_sim_invalidate_captures_of_others(function); }

static cublasStatus_t enter_with_handle(const char* function, cublasLtHandle_t handle) {
  cublasStatus_t status = gcap_sim_lt_enter(function);
  if (status == CUBLAS_STATUS_SUCCESS && handle == NULL) {
    status = CUBLAS_STATUS_NOT_INITIALIZED;
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    gcap_sim_object_check(&gcap_sim_lt_handle_kind, handle, function);
  }
  return status;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
                                              cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
                                              cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
                                              cublasLtMatmulPreference_t preference, int requestedAlgoCount,
                                              cublasLtMatmulHeuristicResult_t heuristicResultsArray[],
                                              int* returnAlgoCount) {
  cublasStatus_t status = enter_with_handle(__func__, lightHandle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  if (preference == NULL || requestedAlgoCount <= 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (heuristicResultsArray == NULL || returnAlgoCount == NULL) {
    gcap_sim_stop(__func__, "the place for results or for their number is NULL, which crashes the real library");
  }
  gcap_sim_object_check(&gcap_sim_lt_preference_kind, preference, __func__);
  const gcap_sim_lt_preference_t* pref = (const gcap_sim_lt_preference_t*)preference;
  if (pref->search_mode == CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID) {
    gcap_sim_stop(__func__, "search mode %u is not modelled", pref->search_mode);
  }
  gcap_sim_lt_problem_t problem;
  status = gcap_sim_lt_make_problem(__func__, operationDesc, Adesc, Bdesc, Cdesc, Ddesc, &problem);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  (void)load_kernels(__func__);  // goes on without a word
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  const int may_reduce = (pref->reduction_mask & reductions) != 0;
  int64_t slices = choose_slices_from(&problem, may_reduce ? kMaxSlices : 1, pref->max_workspace_bytes);
  int count = 0;
  for (; slices >= 1 && count < requestedAlgoCount; slices /= 2) {
    heuristicResultsArray[count++] = make_result(&problem, slices);
  }
  *returnAlgoCount = count;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
                                       cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
                                       cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
                                       const cublasLtMatmulAlgo_t* algo, cublasLtMatmulHeuristicResult_t* result) {
  cublasStatus_t status = enter_with_handle(__func__, lightHandle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  if (algo == NULL || gcap_sim_lt_slices_of(algo) == 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (result == NULL) {
    gcap_sim_stop(__func__, "the place for the result is NULL, which crashes the real library");
  }
  gcap_sim_lt_problem_t problem;
  status = gcap_sim_lt_make_problem(__func__, operationDesc, Adesc, Bdesc, Cdesc, Ddesc, &problem);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  const int64_t slices = gcap_sim_lt_slices_of(algo);
  if (!allows_slices(&problem, slices, UINT64_MAX)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  *result = make_result(&problem, slices);
  return CUBLAS_STATUS_SUCCESS;
}

static int is_aligned(const void* pointer, size_t bytes) { return (uintptr_t)pointer % bytes == 0; }

static int is_element_aligned(const gcap_sim_lt_matrix_t* matrix) {
  return is_aligned(matrix->data, gcap_sim_element_bytes(matrix->type));
}

// Puts the scalars and the data pointers into the problem. A host beta of zero means that C is not looked at.
static cublasStatus_t bind_data(const gcap_sim_lt_desc_t* desc, const void* alpha, const void* a, const void* b,
                                const void* beta, const void* c, void* d, gcap_sim_lt_problem_t* problem) {
  if (desc->pointer_mode == CUBLASLT_POINTER_MODE_HOST) {
    gcap_sim_lt_bind_host_scalars(alpha, beta, problem);
  } else {
    problem->alpha = alpha;
    problem->beta = beta;
  }
  const int reads_c = problem->alpha != NULL || problem->beta_value != 0.0;
  if (a == NULL || b == NULL || d == NULL || (reads_c && c == NULL)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const int same_layout = problem->c.row_stride == problem->d.row_stride &&
                          problem->c.col_stride == problem->d.col_stride &&
                          problem->c.batch_stride == problem->d.batch_stride;
  if (c == d && !same_layout) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  problem->a.data = (void*)a;  // const ends here: one struct serves inputs and outputs
  problem->b.data = (void*)b;
  problem->c.data = reads_c ? (void*)c : NULL;
  problem->d.data = d;
  return CUBLAS_STATUS_SUCCESS;
}

// The pointers in the descriptor, which the heuristic does without. Measured: a bias that the epilogue does not use is
// refused, not ignored.
static cublasStatus_t check_epilogue_data(const gcap_sim_lt_desc_t* desc, const gcap_sim_lt_problem_t* problem) {
  const int has_bias = (desc->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  if (has_bias != (desc->bias != NULL)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const int needs_aux = (desc->epilogue & GCAP_SIM_LT_EPILOGUE_AUX) != 0;
  return needs_aux && problem->aux.data == NULL ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

// Measured: an algorithm refuses pointers that its loads cannot take; without one the library launches, and the device
// faults.
static cublasStatus_t check_alignment(const char* function, const cublasLtMatmulAlgo_t* algo,
                                      const gcap_sim_lt_problem_t* problem) {
  const int aligned = is_element_aligned(&problem->a) && is_element_aligned(&problem->b) &&
                      is_element_aligned(&problem->c) && is_element_aligned(&problem->d);
  if (!aligned && algo == NULL) {
    gcap_sim_stop(function, "a matrix is not aligned to its elements, which faults on a GPU (716)");
  }
  return aligned ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t bind_algorithm(const cublasLtMatmulAlgo_t* algo, void* workspace, size_t bytes,
                                     gcap_sim_lt_problem_t* problem) {
  if ((workspace == NULL && bytes != 0) || !is_aligned(workspace, kWorkspaceAlignment)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const int64_t slices = algo != NULL ? gcap_sim_lt_slices_of(algo) : gcap_sim_lt_choose_slices(problem, bytes);
  if (slices < 1 || slices > kMaxSlices) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (gcap_sim_lt_workspace_bytes(problem, slices) > bytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  problem->slices = slices;
  problem->partials = slices > 1 ? workspace : NULL;
  return CUBLAS_STATUS_SUCCESS;
}

static void add_matrix(gcap_sim_access_list_t* list, const gcap_sim_lt_problem_t* problem,
                       const gcap_sim_lt_matrix_t* matrix, int64_t rows, int64_t cols, gcap_sim_access_kind_t kind) {
  const int64_t dims[] = {rows, cols, problem->batch_count};
  const int64_t strides[] = {matrix->row_stride, matrix->col_stride, matrix->batch_stride};
  gcap_sim_access_add_strided(list, matrix->data, gcap_sim_element_bytes(matrix->type), 3, dims, strides, kind);
}

static void add_inputs(gcap_sim_access_list_t* list, const gcap_sim_lt_problem_t* problem) {
  add_matrix(list, problem, &problem->a, problem->m, problem->k, GCAP_SIM_READ);
  add_matrix(list, problem, &problem->b, problem->k, problem->n, GCAP_SIM_READ);
}

static void add_aux(gcap_sim_access_list_t* list, const gcap_sim_lt_problem_t* problem) {
  const int is_mask = problem->activation == GCAP_SIM_LT_RELU;
  const int64_t unit = is_mask ? 1 : (int64_t)gcap_sim_element_bytes(problem->d.type);
  const int64_t divisor = is_mask ? 8 : 1;
  const int64_t dims[] = {(int64_t)gcap_sim_lt_aux_column_bytes(problem), problem->n, problem->batch_count};
  const int64_t strides[] = {1, problem->aux.ld * unit / divisor, problem->aux.batch_stride * unit / divisor};
  gcap_sim_access_add_strided(list, problem->aux.data, 1, 3, dims, strides, GCAP_SIM_WRITE);
}

static void add_outputs(gcap_sim_access_list_t* list, const gcap_sim_lt_problem_t* problem) {
  const int64_t dims[] = {problem->m, problem->batch_count};
  const int64_t strides[] = {1, problem->bias_batch_stride};
  gcap_sim_access_add_strided(list, problem->bias, gcap_sim_element_bytes(problem->d.type), 2, dims, strides,
                              GCAP_SIM_READ);
  const size_t scalar_bytes = gcap_sim_element_bytes(gcap_sim_lt_compute_type(problem));
  gcap_sim_access_add(list, problem->alpha, scalar_bytes, GCAP_SIM_READ);
  gcap_sim_access_add(list, problem->beta, scalar_bytes, GCAP_SIM_READ);
  add_matrix(list, problem, &problem->c, problem->m, problem->n, GCAP_SIM_READ);
  add_matrix(list, problem, &problem->d, problem->m, problem->n, GCAP_SIM_WRITE);
  add_aux(list, problem);
}

static void describe_partials(const void* payload, gcap_sim_access_list_t* list) {
  const gcap_sim_lt_problem_t* problem = payload;
  add_inputs(list, problem);
  gcap_sim_access_add(list, problem->workspace, problem->workspace_bytes, GCAP_SIM_WRITE);
}

static void describe_whole(const void* payload, gcap_sim_access_list_t* list) {
  describe_partials(payload, list);
  add_outputs(list, payload);
}

static void describe_reduction(const void* payload, gcap_sim_access_list_t* list) {
  const gcap_sim_lt_problem_t* problem = payload;
  const size_t bytes = (size_t)gcap_sim_lt_workspace_bytes(problem, problem->slices);
  gcap_sim_access_add(list, problem->partials, bytes, GCAP_SIM_READ);
  add_outputs(list, problem);
}

cudaError_t gcap_sim_lt_submit(const char* name, const gcap_sim_lt_problem_t* problem, void* workspace, size_t bytes,
                               cudaStream_t stream) {
  gcap_sim_lt_problem_t payload = *problem;
  payload.workspace = bytes > 0 ? workspace : NULL;
  payload.workspace_bytes = workspace != NULL ? bytes : 0;
  // Measured: the kernels for 16-bit types take a buffer.
  const int takes_buffer = gcap_sim_element_bytes(problem->a.type) == 2;
  gcap_sim_library_kernel_t kernel = {name, gcap_sim_lt_run_whole, describe_whole, sizeof(payload), takes_buffer};
  if (problem->slices > 1) {
    kernel.name = "split-K product";
    kernel.run = gcap_sim_lt_run_partials;
    kernel.describe = describe_partials;
  }
  const cudaError_t error = gcap_sim_access_submit(stream, &kernel, &payload);
  if (error != cudaSuccess || problem->slices == 1) {
    return error;
  }
  const gcap_sim_library_kernel_t reduction = {"split-K reduction", gcap_sim_lt_run_reduction, describe_reduction,
                                               sizeof(payload), 0};
  return gcap_sim_access_submit(stream, &reduction, &payload);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc, const void* alpha,
                              const void* A, cublasLtMatrixLayout_t Adesc, const void* B, cublasLtMatrixLayout_t Bdesc,
                              const void* beta, const void* C, cublasLtMatrixLayout_t Cdesc, void* D,
                              cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspaceSizeInBytes, cudaStream_t stream) {
  cublasStatus_t status = enter_with_handle(__func__, lightHandle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  gcap_sim_lt_problem_t problem;
  status = gcap_sim_lt_make_problem(__func__, computeDesc, Adesc, Bdesc, Cdesc, Ddesc, &problem);
  if (alpha == NULL || beta == NULL) {
    gcap_sim_stop(__func__, "alpha or beta is NULL, which crashes the real library");
  }
  const gcap_sim_lt_desc_t* desc = (const gcap_sim_lt_desc_t*)computeDesc;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = bind_data(desc, alpha, A, B, beta, C, D, &problem);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = check_epilogue_data(desc, &problem);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = bind_algorithm(algo, workspace, workspaceSizeInBytes, &problem);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = check_alignment(__func__, algo, &problem);
  }
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  const int has_broken = load_kernels(__func__);
  if (problem.m == 0 || problem.n == 0) {  // measured: the empty launch fails, and invalidates the stream's capture
    gcap_sim_invalidate_stream(stream, __func__);
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  if (has_broken && gcap_sim_stream_is_invalidated(stream)) {  // measured
    return CUBLAS_STATUS_INTERNAL_ERROR;
  }
  const size_t needed = (size_t)gcap_sim_lt_workspace_bytes(&problem, problem.slices);
  const size_t used = algo != NULL ? needed : workspaceSizeInBytes;  // a library left to choose may use all of it
  return gcap_sim_lt_status(gcap_sim_lt_submit(__func__, &problem, workspace, used, stream));
}
