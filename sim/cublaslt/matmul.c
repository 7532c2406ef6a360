// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cublasLtMatmul and its heuristic. Descriptors and pointers are checked into a problem (what to compute), an algorithm
// says how, and the two become queued work. The simulated library has one algorithm in two forms: whole, which needs no
// workspace, and split-K, which sums slices of k into the workspace and reduces them in a second kernel, as the real
// one does for small outputs with a long k. Stateless: descriptors are read during the call and not kept.
#include <stdlib.h>
#include <string.h>

#include "sim/cublaslt/element.h"
#include "sim/cublaslt/internal.h"
#include "sim/library/access.h"

// What cublasLtMatmulAlgo_t holds. A zeroed algorithm has no magic.
typedef struct algorithm {
  uint64_t magic;
  int64_t slices;
} algorithm_t;

_Static_assert(sizeof(algorithm_t) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm must fit the public struct");

static const uint64_t kAlgorithmMagic = 0x6c742d616c676f31u;

enum {
  kSplitMinK = 256,      // from here on the simulated heuristic prefers split-K
  kSplitMaxOut = 65536,  // … for outputs of up to so many elements: larger ones fill a GPU without it
  kSplitSliceK = 64,     // k of a slice, about
  kMaxSlices = 8,
  kWorkspaceAlignment = 256  // measured: 128 is refused, also where the algorithm needs no workspace
};

// The four layouts of a call, alive and not NULL.
typedef struct layouts {
  const sim_lt_layout_t* a;
  const sim_lt_layout_t* b;
  const sim_lt_layout_t* c;
  const sim_lt_layout_t* d;
} layouts_t;

static cublasStatus_t check_layouts(const char* function, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, layouts_t* out) {
  const void* given[] = {a, b, c, d};
  for (size_t i = 0; i < 4; ++i) {
    if (given[i] == NULL) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    sim_object_check(&sim_lt_layout_kind, given[i], function);
  }
  *out = (layouts_t){given[0], given[1], given[2], given[3]};
  return CUBLAS_STATUS_SUCCESS;
}

static const sim_lt_desc_t* check_desc(const char* function, cublasLtMatmulDesc_t desc) {
  if (desc == NULL) {
    sim_stop(function, "the operation descriptor is NULL, which crashes the real library");
  }
  sim_object_check(&sim_lt_desc_kind, desc, function);
  return (const sim_lt_desc_t*)desc;
}

// Stops at what a GPU can do and the simulator cannot; what neither can do is left to the checks after it.
static void stop_at_unmodelled(const char* function, const sim_lt_desc_t* desc, const layouts_t* layouts) {
  if (desc->compute_type != CUBLAS_COMPUTE_32F && desc->compute_type != CUBLAS_COMPUTE_32F_PEDANTIC &&
      desc->compute_type != CUBLAS_COMPUTE_32F_FAST_TF32) {
    sim_stop(function, "compute type %d is not modelled", desc->compute_type);
  }
  if ((desc->epilogue & ~(uint32_t)(CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU_BIAS)) != 0) {
    sim_stop(function, "epilogue %u is not modelled", desc->epilogue);
  }
  if (desc->pointer_mode != CUBLASLT_POINTER_MODE_HOST && desc->pointer_mode != CUBLASLT_POINTER_MODE_DEVICE) {
    sim_stop(function, "pointer mode %d is not modelled", desc->pointer_mode);
  }
  const sim_lt_layout_t* all[] = {layouts->a, layouts->b, layouts->c, layouts->d};
  for (size_t i = 0; i < 4; ++i) {
    if (sim_lt_element_bytes((cudaDataType)all[i]->type) == 0) {
      sim_stop(function, "matrix type %u is not modelled", all[i]->type);
    }
    if (all[i]->order != CUBLASLT_ORDER_COL && all[i]->order != CUBLASLT_ORDER_ROW) {
      sim_stop(function, "matrix order %d is not modelled", all[i]->order);
    }
    if (all[i]->batch_mode != CUBLASLT_BATCH_MODE_STRIDED || all[i]->plane_offset != 0) {
      sim_stop(function, "pointer-array batches and planar complex matrices are not modelled");
    }
  }
}

static cublasStatus_t check_types(const sim_lt_desc_t* desc, const layouts_t* layouts) {
  const uint32_t in = layouts->a->type;
  const uint32_t out = layouts->d->type;
  const int good = desc->scale_type == CUDA_R_32F && layouts->b->type == in && layouts->c->type == out &&
                   (out == in || out == CUDA_R_32F);
  return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

// Turns a layout and a transpose into a matrix; op(A) of `rows` x `cols`.
static cublasStatus_t make_matrix(const sim_lt_layout_t* layout, int32_t trans, sim_lt_matrix_t* out, int64_t* rows,
                                  int64_t* cols) {
  const int by_column = layout->order == CUBLASLT_ORDER_COL;
  const uint64_t line = by_column ? layout->rows : layout->cols;
  if (trans != CUBLAS_OP_N && trans != CUBLAS_OP_T && trans != CUBLAS_OP_C) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (layout->ld < 0 || (uint64_t)layout->ld < line || layout->rows > INT32_MAX || layout->cols > INT32_MAX) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const int64_t row_stride = by_column ? 1 : layout->ld;
  const int64_t col_stride = by_column ? layout->ld : 1;
  const int swap = trans != CUBLAS_OP_N;
  *rows = (int64_t)(swap ? layout->cols : layout->rows);
  *cols = (int64_t)(swap ? layout->rows : layout->cols);
  out->type = (cudaDataType)layout->type;
  out->row_stride = swap ? col_stride : row_stride;
  out->col_stride = swap ? row_stride : col_stride;
  out->batch_stride = layout->batch_stride;
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_shapes(const sim_lt_desc_t* desc, const layouts_t* layouts, sim_lt_problem_t* out) {
  int64_t rows[4];
  int64_t cols[4];
  cublasStatus_t status = make_matrix(layouts->a, desc->trans_a, &out->a, &rows[0], &cols[0]);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = make_matrix(layouts->b, desc->trans_b, &out->b, &rows[1], &cols[1]);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = make_matrix(layouts->c, CUBLAS_OP_N, &out->c, &rows[2], &cols[2]);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = make_matrix(layouts->d, CUBLAS_OP_N, &out->d, &rows[3], &cols[3]);
  }
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  const int32_t batches = layouts->d->batch_count;
  const int same_batches =
      layouts->a->batch_count == batches && layouts->b->batch_count == batches && layouts->c->batch_count == batches;
  const int match = cols[0] == rows[1] && rows[0] == rows[3] && cols[1] == cols[3] && rows[2] == rows[3] &&
                    cols[2] == cols[3] && desc->trans_c == CUBLAS_OP_N;
  if (!match || !same_batches || batches < 1) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  out->m = rows[3];
  out->n = cols[3];
  out->k = cols[0];
  out->batch_count = batches;
  return CUBLAS_STATUS_SUCCESS;
}

// Measured: the bias has D's type, and row-major outputs take none.
static cublasStatus_t check_bias(const sim_lt_desc_t* desc, const layouts_t* layouts, sim_lt_problem_t* out) {
  if ((desc->epilogue & CUBLASLT_EPILOGUE_BIAS) == 0) {
    return CUBLAS_STATUS_SUCCESS;
  }
  if (desc->bias_type != -1 && (uint32_t)desc->bias_type != layouts->d->type) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (layouts->d->order == CUBLASLT_ORDER_ROW) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  out->bias = desc->bias;
  out->bias_type = (cudaDataType)layouts->d->type;
  out->bias_batch_stride = desc->bias_batch_stride;
  return CUBLAS_STATUS_SUCCESS;
}

// What a call computes, without its data pointers.
static cublasStatus_t make_problem(const char* function, const sim_lt_desc_t* desc, const layouts_t* layouts,
                                   sim_lt_problem_t* out) {
  *out = (sim_lt_problem_t){0};
  stop_at_unmodelled(function, desc, layouts);
  cublasStatus_t status = check_types(desc, layouts);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = check_shapes(desc, layouts, out);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = check_bias(desc, layouts, out);
  }
  out->relu = (desc->epilogue & CUBLASLT_EPILOGUE_RELU) != 0;
  out->round_inputs_to_tf32 = desc->compute_type == CUBLAS_COMPUTE_32F_FAST_TF32;
  out->slices = 1;
  return status;
}

static uint64_t workspace_bytes(const sim_lt_problem_t* problem, int64_t slices) {
  return slices < 2 ? 0 : (uint64_t)(slices * problem->batch_count * problem->m * problem->n) * sizeof(float);
}

// The slices that the simulated heuristic would like, as many as the workspace allows; 1 for no split.
static int64_t choose_slices(const sim_lt_problem_t* problem, uint64_t max_workspace_bytes) {
  if (problem->k < kSplitMinK || problem->batch_count * problem->m * problem->n > kSplitMaxOut) {
    return 1;
  }
  int64_t slices = problem->k / kSplitSliceK;
  slices = slices > kMaxSlices ? kMaxSlices : slices;
  while (slices > 1 && workspace_bytes(problem, slices) > max_workspace_bytes) {
    slices /= 2;
  }
  return slices;
}

static cublasLtMatmulHeuristicResult_t make_result(const sim_lt_problem_t* problem, int64_t slices) {
  cublasLtMatmulHeuristicResult_t result;
  memset(&result, 0, sizeof result);
  const algorithm_t algorithm = {kAlgorithmMagic, slices};
  memcpy(&result.algo, &algorithm, sizeof algorithm);
  result.workspaceSize = (size_t)workspace_bytes(problem, slices);
  result.state = CUBLAS_STATUS_SUCCESS;
  result.wavesCount = 1.0f;
  return result;
}

// NOTE: beside another thread's global capture a GPU invalidates, and answers 14 or success, when a kernel has to be
// loaded first; this always does, since when that is the case nobody can know.
static cublasStatus_t enter_with_handle(const char* function, cublasLtHandle_t handle) {
  cublasStatus_t status = sim_lt_status(sim_library_call(function, SIM_CALL_UNSAFE_BESIDE_OTHERS));
  if (status == CUBLAS_STATUS_SUCCESS && handle == NULL) {
    status = CUBLAS_STATUS_NOT_INITIALIZED;
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    sim_object_check(&sim_lt_handle_kind, handle, function);
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
  if (preference == NULL || requestedAlgoCount <= 0 || heuristicResultsArray == NULL || returnAlgoCount == NULL) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *returnAlgoCount = 0;
  sim_object_check(&sim_lt_preference_kind, preference, __func__);
  const sim_lt_preference_t* pref = (const sim_lt_preference_t*)preference;
  if (pref->search_mode != CUBLASLT_SEARCH_BEST_FIT) {
    sim_stop(__func__, "search mode %u is not modelled", pref->search_mode);
  }
  const sim_lt_desc_t* desc = check_desc(__func__, operationDesc);
  layouts_t layouts;
  sim_lt_problem_t problem;
  status = check_layouts(__func__, Adesc, Bdesc, Cdesc, Ddesc, &layouts);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = make_problem(__func__, desc, &layouts, &problem);
  }
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  const int may_reduce = (pref->reduction_mask & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
  const int64_t slices = may_reduce ? choose_slices(&problem, pref->max_workspace_bytes) : 1;
  int count = 0;
  if (slices > 1) {
    heuristicResultsArray[count++] = make_result(&problem, slices);
  }
  if (count < requestedAlgoCount) {
    heuristicResultsArray[count++] = make_result(&problem, 1);
  }
  *returnAlgoCount = count;
  return CUBLAS_STATUS_SUCCESS;
}

static int is_aligned(const void* pointer, size_t bytes) { return (uintptr_t)pointer % bytes == 0; }

static int is_element_aligned(const sim_lt_matrix_t* matrix) {
  return is_aligned(matrix->data, sim_lt_element_bytes(matrix->type));
}

// Puts the scalars and the data pointers into the problem. A host beta of zero means that C is not looked at.
static cublasStatus_t bind_data(const sim_lt_desc_t* desc, const void* alpha, const void* a, const void* b,
                                const void* beta, const void* c, void* d, sim_lt_problem_t* problem) {
  if (desc->pointer_mode == CUBLASLT_POINTER_MODE_HOST) {
    memcpy(&problem->alpha_value, alpha, sizeof problem->alpha_value);
    memcpy(&problem->beta_value, beta, sizeof problem->beta_value);
  } else {
    problem->alpha = alpha;
    problem->beta = beta;
  }
  const int reads_c = problem->alpha != NULL || problem->beta_value != 0.0f;
  const int needs_bias = (desc->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  if (a == NULL || b == NULL || d == NULL || (reads_c && c == NULL) || (needs_bias && problem->bias == NULL)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const int same_layout = problem->c.row_stride == problem->d.row_stride &&
                          problem->c.col_stride == problem->d.col_stride &&
                          problem->c.batch_stride == problem->d.batch_stride;
  if (reads_c && c == d && !same_layout) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  problem->a.data = (void*)a;  // const ends here: one struct serves inputs and outputs
  problem->b.data = (void*)b;
  problem->c.data = reads_c ? (void*)c : NULL;
  problem->d.data = d;
  const int aligned = is_element_aligned(&problem->a) && is_element_aligned(&problem->b) &&
                      is_element_aligned(&problem->c) && is_element_aligned(&problem->d) &&
                      is_aligned(problem->bias, sim_lt_element_bytes(problem->bias_type));
  return aligned ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t bind_algorithm(const cublasLtMatmulAlgo_t* algo, void* workspace, size_t bytes,
                                     sim_lt_problem_t* problem) {
  if ((workspace == NULL && bytes != 0) || !is_aligned(workspace, kWorkspaceAlignment)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  int64_t slices;
  if (algo != NULL) {
    algorithm_t algorithm;
    memcpy(&algorithm, algo, sizeof algorithm);
    if (algorithm.magic != kAlgorithmMagic || algorithm.slices < 1 || algorithm.slices > kMaxSlices) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    slices = algorithm.slices;
  } else {
    slices = choose_slices(problem, bytes);
  }
  if (workspace_bytes(problem, slices) > bytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  problem->slices = slices;
  problem->partials = slices > 1 ? workspace : NULL;
  return CUBLAS_STATUS_SUCCESS;
}

static void add_matrix(sim_access_list_t* list, const sim_lt_problem_t* problem, const sim_lt_matrix_t* matrix,
                       int64_t rows, int64_t cols, sim_access_kind_t kind) {
  const int64_t dims[] = {rows, cols, problem->batch_count};
  const int64_t strides[] = {matrix->row_stride, matrix->col_stride, matrix->batch_stride};
  sim_access_add_strided(list, matrix->data, sim_lt_element_bytes(matrix->type), 3, dims, strides, kind);
}

static void add_inputs(sim_access_list_t* list, const sim_lt_problem_t* problem) {
  add_matrix(list, problem, &problem->a, problem->m, problem->k, SIM_READ);
  add_matrix(list, problem, &problem->b, problem->k, problem->n, SIM_READ);
}

static void add_outputs(sim_access_list_t* list, const sim_lt_problem_t* problem) {
  const int64_t dims[] = {problem->m, problem->batch_count};
  const int64_t strides[] = {1, problem->bias_batch_stride};
  sim_access_add_strided(list, problem->bias, sim_lt_element_bytes(problem->bias_type), 2, dims, strides, SIM_READ);
  sim_access_add(list, problem->alpha, sizeof(float), SIM_READ);
  sim_access_add(list, problem->beta, sizeof(float), SIM_READ);
  add_matrix(list, problem, &problem->c, problem->m, problem->n, SIM_READ);
  add_matrix(list, problem, &problem->d, problem->m, problem->n, SIM_WRITE);
}

static cudaError_t submit(const sim_lt_problem_t* problem, cudaStream_t stream) {
  sim_access_list_t list = {0};
  const size_t bytes = (size_t)workspace_bytes(problem, problem->slices);
  if (problem->slices == 1) {
    add_inputs(&list, problem);
    add_outputs(&list, problem);
    return sim_access_submit(&list, stream, "cublasLtMatmul", sim_lt_run_whole, problem, sizeof *problem);
  }
  add_inputs(&list, problem);
  sim_access_add(&list, problem->partials, bytes, SIM_WRITE);
  cudaError_t error =
      sim_access_submit(&list, stream, "cublasLtMatmul split-K", sim_lt_run_partials, problem, sizeof *problem);
  if (error != cudaSuccess) {
    return error;
  }
  sim_access_add(&list, problem->partials, bytes, SIM_READ);
  add_outputs(&list, problem);
  return sim_access_submit(&list, stream, "cublasLtMatmul reduction", sim_lt_run_reduction, problem, sizeof *problem);
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
  const sim_lt_desc_t* desc = check_desc(__func__, computeDesc);
  if (alpha == NULL || beta == NULL) {
    sim_stop(__func__, "alpha or beta is NULL, which crashes the real library");
  }
  layouts_t layouts;
  sim_lt_problem_t problem;
  status = check_layouts(__func__, Adesc, Bdesc, Cdesc, Ddesc, &layouts);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = make_problem(__func__, desc, &layouts, &problem);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = bind_data(desc, alpha, A, B, beta, C, D, &problem);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = bind_algorithm(algo, workspace, workspaceSizeInBytes, &problem);
  }
  if (status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  if (problem.m == 0 || problem.n == 0) {  // measured: the empty launch fails, and invalidates the stream's capture
    sim_invalidate_stream(stream, __func__);
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return sim_lt_status(submit(&problem, stream));
}
