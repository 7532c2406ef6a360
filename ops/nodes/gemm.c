// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Gemm: alpha * A' * B' + beta * C, with C broadcast to the output. A C that is one row, and counted once, is the bias
// of cuBLASLt's epilogue, which costs nothing; any other is its addend.

#include <stdlib.h>

#include "gcap/kit/ops/matmul.h"
#include "ops/nodes/op.h"

#define MAX_WORKSPACE_BYTES ((size_t)32 << 20)  // as in matmul.c
#define VECTOR_BYTES 16

typedef struct gemm {
  gcap_matmul_t* matmul;
  bool has_bias;    // C is the bias
  bool has_addend;  // C is the addend
} gemm_t;

bool gcap_node_gemm_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  if (gcap_node_input(model, node, 0)->rank != 2 || gcap_node_input(model, node, 1)->rank != 2) return false;
  if (node->num_inputs == 3 && gcap_node_input(model, node, 2)->rank > 2) return false;
  return gcap_node_activation_fits(node);
}

// How C, [m or 1, n or 1] once axes that lack are put before it, is added.
static gcap_matmul_addend_t addend_of(const gcap_tensor_t* c, int64_t m, int64_t n) {
  const int64_t rows = c->rank == 2 ? c->shape[0] : 1, columns = c->rank > 0 ? c->shape[c->rank - 1] : 1;
  if (rows == m && columns == n) return GCAP_MATMUL_ADDEND_FULL;
  if (columns == n) return GCAP_MATMUL_ADDEND_ROW;
  return rows == m ? GCAP_MATMUL_ADDEND_COLUMN : GCAP_MATMUL_ADDEND_SCALAR;
}

// C with as many elements as a row of the output is its bias.
static bool is_bias(const gcap_tensor_t* c, int64_t n, float beta) {
  const int64_t rows = c->rank == 2 ? c->shape[0] : 1, columns = c->rank > 0 ? c->shape[c->rank - 1] : 1;
  return beta == 1.0f && rows == 1 && columns == n;
}

static gcap_matmul_epilogue_t epilogue_of(bool has_bias, bool has_relu) {
  if (has_bias) return has_relu ? GCAP_MATMUL_EPILOGUE_BIAS_RELU : GCAP_MATMUL_EPILOGUE_BIAS;
  return has_relu ? GCAP_MATMUL_EPILOGUE_RELU : GCAP_MATMUL_EPILOGUE_NONE;
}

static gcap_status_t plan_gemm(const gcap_node_planning_t* planning, gemm_t* gemm) {
  const gcap_node_t* node = planning->node;
  const gcap_tensor_t *a = &planning->inputs[0], *y = &planning->outputs[0];
  gcap_matmul_options_t options;
  gcap_matmul_options_init(&options);
  options.handle = planning->kernels->cublaslt;
  options.trans_a = gcap_node_int(node, "transA", 0) != 0;
  options.trans_b = gcap_node_int(node, "transB", 0) != 0;
  options.m = y->shape[0];
  options.n = y->shape[1];
  options.k = a->shape[options.trans_a ? 0 : 1];
  options.alpha = gcap_node_float(node, "alpha", 1.0f);
  options.beta = gcap_node_float(node, "beta", 1.0f);
  options.dtype = a->dtype;
  options.tf32 = a->dtype == GCAP_DTYPE_F32 && planning->kernels->options.use_tf32;
  options.max_workspace_bytes = MAX_WORKSPACE_BYTES;
  if (gcap_dtype_bytes(a->dtype) < sizeof(float)) options.alignment_bytes = VECTOR_BYTES;
  const gcap_tensor_t* c = node->num_inputs == 3 ? &planning->inputs[2] : NULL;
  gemm->has_bias = c != NULL && is_bias(c, options.n, options.beta);
  gemm->has_addend = c != NULL && !gemm->has_bias && options.beta != 0.0f;
  if (gemm->has_addend) options.addend = addend_of(c, options.m, options.n);
  options.epilogue = epilogue_of(gemm->has_bias, gcap_node_has_relu(node));
  return gcap_matmul_create(&options, &gemm->matmul);
}

gcap_status_t gcap_node_gemm_plan(const gcap_node_planning_t* planning, void** out_plan) {
  gemm_t* gemm = calloc(1, sizeof(*gemm));
  if (gemm == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", planning->node->name);
  }
  gcap_status_t status = plan_gemm(planning, gemm);
  if (status != NULL) {
    free(gemm);
    return status;
  }
  *out_plan = gemm;
  return NULL;
}

void gcap_node_gemm_end(void* plan) {
  gemm_t* gemm = plan;
  gcap_matmul_destroy(gemm->matmul);
  free(gemm);
}

gcap_status_t gcap_node_gemm(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gemm_t* gemm = kernel->plan;
  void* workspace = NULL;
  GCAP_RETURN_IF_ERROR(gcap_node_take_workspace(context, gcap_matmul_workspace_bytes(gemm->matmul), &workspace));
  const void* bias = gemm->has_bias ? context->inputs[2].data : NULL;
  const void* addend = gemm->has_addend ? context->inputs[2].data : NULL;
  const void *a = context->inputs[0].data, *b = context->inputs[1].data;
  void* y = context->outputs[0].data;
  gcap_stream_t* stream = context->resources.stream;
  gcap_status_t status = gcap_matmul_run(gemm->matmul, stream, a, b, bias, addend, y, workspace);
  return gcap_node_return_workspace(context, workspace, status);
}
