// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Matrix product by cuBLASLt: plans come and go, and runs. A plan does not change after creation. The library takes the
// address of the bias from the operation descriptor, so a run with a bias makes a copy of the descriptor on its stack,
// which cublasLt.h declares as plain memory, and sets the address there: no lock.
#include "gcap/kit/ops/matmul.h"

#include <stdlib.h>

#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/run_trace.h"
#include "ops/cublaslt/cublaslt_status.h"
#include "ops/cublaslt/matmul_plan.h"

static bool has_bias(gcap_matmul_epilogue_t epilogue) {
  return epilogue == GCAP_MATMUL_EPILOGUE_BIAS || epilogue == GCAP_MATMUL_EPILOGUE_BIAS_RELU ||
         epilogue == GCAP_MATMUL_EPILOGUE_BIAS_GELU;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

// With one b for all, the rows of a's matrices are as well those of one matrix.
static void join_batch(gcap_matmul_options_t* o) {
  const bool can_join = o->b_stride == 0 && !o->trans_a && o->a_stride == o->m * o->k && o->m * o->batch <= INT32_MAX;
  if (o->batch < 2 || !can_join) return;
  o->m *= o->batch;
  o->batch = 1;
}

static void fill_in(gcap_matmul_t* matmul, gcap_matmul_options_t* o) {
  join_batch(o);
  matmul->options = *o;
  matmul->has_bias = has_bias(o->epilogue);
  matmul->is_empty = o->m == 0 || o->n == 0 || o->batch == 0;
  matmul->element_bytes = gcap_dtype_bytes(o->dtype);
  matmul->c_element_bytes = o->out_f32 ? sizeof(float) : matmul->element_bytes;
  matmul->alignment = larger(o->alignment_bytes, matmul->element_bytes);
  matmul->c_alignment = larger(o->alignment_bytes, matmul->c_element_bytes);
}

gcap_status_t gcap_matmul_create(const gcap_matmul_options_t* options, gcap_matmul_t** out_matmul) {
  GCAP_RETURN_IF_NULL(out_matmul);
  *out_matmul = NULL;
  GCAP_RETURN_IF_NULL(options);
  gcap_matmul_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_matmul_check_options(options, &known));
  GCAP_RETURN_IF_ERROR(gcap_refuse_in_capture("a matmul is planned before the capture"));
  gcap_trace_initialization(GCAP_INITIALIZED_PLAN);
  gcap_matmul_t* matmul = calloc(1, sizeof(*matmul));
  if (matmul == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a matmul");
  fill_in(matmul, &known);
  gcap_status_t status = matmul->is_empty ? NULL : gcap_matmul_plan(matmul);
  if (status != NULL) {
    gcap_matmul_destroy(matmul);
    return status;
  }
  *out_matmul = matmul;
  return NULL;
}

void gcap_matmul_destroy(gcap_matmul_t* matmul) {
  if (matmul == NULL) return;
  gcap_matmul_end_plan(matmul);
  free(matmul);
}

size_t gcap_matmul_workspace_bytes(const gcap_matmul_t* matmul) {
  return matmul->zeros_bytes != 0 ? matmul->zeros_offset + matmul->zeros_bytes : matmul->algorithm_bytes;
}

// The addresses of a run.
typedef struct operands {
  const void *a, *b, *bias, *addend;
  void *c, *workspace;
} operands_t;

static gcap_status_t check_address(const char* name, const void* address, size_t alignment) {
  if (address == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gcap_matmul_run: %s is NULL", name);
  if ((uintptr_t)address % alignment == 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %p, it must be %zu-byte aligned", name, address, alignment);
}

// An operand of which the plan decides whether there is to be one.
static gcap_status_t check_optional(const char* name, const void* address, bool is_planned, size_t alignment) {
  if (is_planned) {
    if (address == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is NULL, the plan has one", name);
    return check_address(name, address, alignment);
  }
  return address == NULL ? NULL : GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is not NULL, the plan has none", name);
}

static gcap_status_t check_workspace(const gcap_matmul_t* matmul, const void* workspace) {
  const size_t bytes = gcap_matmul_workspace_bytes(matmul);
  if (bytes == 0) return NULL;
  if (workspace == NULL)
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "workspace is NULL, the plan needs %zu bytes", bytes);
  return check_address("workspace", workspace, GCAP_MATMUL_WORKSPACE_ALIGNMENT);
}

static gcap_status_t check_operands(const gcap_matmul_t* matmul, const operands_t* p) {
  if (matmul->options.k != 0) {
    GCAP_RETURN_IF_ERROR(check_address("a", p->a, matmul->alignment));
    GCAP_RETURN_IF_ERROR(check_address("b", p->b, matmul->alignment));
  }
  GCAP_RETURN_IF_ERROR(check_address("c", p->c, matmul->c_alignment));
  GCAP_RETURN_IF_ERROR(check_optional("bias", p->bias, matmul->has_bias, matmul->c_element_bytes));
  if (matmul->options.beta != 0.0f || p->addend != NULL) {
    const bool has_addend = matmul->options.addend != GCAP_MATMUL_ADDEND_NONE;
    GCAP_RETURN_IF_ERROR(check_optional("addend", p->addend, has_addend, matmul->c_alignment));
  }
  return check_workspace(matmul, p->workspace);
}

static gcap_status_t multiply(const gcap_matmul_t* matmul, cudaStream_t stream, cublasLtMatmulDesc_t operation,
                              const operands_t* p) {
  const gcap_matmul_options_t* o = &matmul->options;
  return GCAP_CUBLASLT(cublasLtMatmul(o->handle, operation, &o->alpha, p->b, matmul->b_layout, p->a, matmul->a_layout,
                                      &o->beta, p->addend, matmul->c_layout, p->c, matmul->c_layout, &matmul->algorithm,
                                      p->workspace, matmul->algorithm_bytes, stream));
}

static gcap_status_t multiply_with_bias(const gcap_matmul_t* matmul, cudaStream_t stream, const operands_t* p) {
  cublasLtMatmulDescOpaque_t operation = *matmul->operation;
  GCAP_RETURN_IF_ERROR(GCAP_CUBLASLT(
      cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof(p->bias))));
  return multiply(matmul, stream, &operation, p);
}

// Prepares what the library gets instead of the caller's a, b and addend, and calls it.
static gcap_status_t issue(const gcap_matmul_t* matmul, cudaStream_t stream, operands_t p) {
  const gcap_matmul_options_t* o = &matmul->options;
  if (o->beta == 0.0f) p.addend = p.c;  // is not read
  if (o->beta != 0.0f && o->addend != GCAP_MATMUL_ADDEND_FULL) {
    GCAP_RETURN_IF_ERROR(gcap_matmul_spread_addend(matmul, stream, p.addend, p.c));
    p.addend = p.c;
  }
  if (matmul->zeros_bytes != 0) {
    char* zeros = (char*)p.workspace + matmul->zeros_offset;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(zeros, 0, matmul->zeros_bytes, stream)));
    p.a = p.b = zeros;
  }
  return matmul->has_bias ? multiply_with_bias(matmul, stream, &p) : multiply(matmul, stream, matmul->operation, &p);
}

gcap_status_t gcap_matmul_run(const gcap_matmul_t* matmul, gcap_stream_t* stream, const void* a, const void* b,
                              const void* bias, const void* addend, void* c, void* workspace) {
  GCAP_RETURN_IF_NULL(matmul);
  GCAP_RETURN_IF_NULL(stream);
  if (matmul->is_empty) return NULL;
  const operands_t operands = {a, b, bias, addend, c, workspace};
  GCAP_RETURN_IF_ERROR(check_operands(matmul, &operands));
  const int device_id = gcap_stream_device(stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = issue(matmul, gcap_stream_handle(stream), operands);
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}
