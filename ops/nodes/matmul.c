// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// MatMul, with the broadcasting of NumPy's matmul, and FusedMatMul, which may transpose the matrices first. A plan does
// a batch whose operands each have one matrix for each product, or one for all. So the batch of the plan is the last
// axes that are alike in that; over the axes before them the plan runs again, from other addresses. Most models have no
// such axes.

#include <stdlib.h>
#include <string.h>

#include "gcap/kit/ops/matmul.h"
#include "ops/nodes/op.h"

// What cuBLASLt's fast algorithms want on current devices.
#define MAX_WORKSPACE_BYTES ((size_t)32 << 20)
// The better algorithms of f16 and bf16 need this alignment.
#define VECTOR_BYTES 16

typedef struct product {
  gcap_matmul_t* matmul;
  int num_outer;  // axes that the plan runs over; the arrays are of these
  int64_t size[GCAP_MAX_RANK];
  int64_t a_step[GCAP_MAX_RANK], b_step[GCAP_MAX_RANK];  // elements from one to the next; 0: broadcast
  int64_t runs;                                          // the product of the sizes
  int64_t c_step;                                        // elements of the output that one run makes
  size_t element_bytes;
} product_t;

// An operand as matrices: [batch..., rows, columns], once it is transposed.
typedef struct operand {
  int64_t rows, columns;
  int num_batch;
  int64_t batch[GCAP_MAX_RANK];
} operand_t;

// A vector is a row on the left, a column on the right, transposed or not.
static operand_t operand_of(const gcap_tensor_t* tensor, bool left, bool is_transposed) {
  operand_t o = {.rows = 1, .columns = 1};
  const int rank = tensor->rank;
  if (rank == 1) {
    *(left ? &o.columns : &o.rows) = tensor->shape[0];
    return o;
  }
  o.rows = tensor->shape[is_transposed ? rank - 1 : rank - 2];
  o.columns = tensor->shape[is_transposed ? rank - 2 : rank - 1];
  o.num_batch = rank - 2;
  for (int i = 0; i < o.num_batch; ++i) o.batch[i] = tensor->shape[i];
  return o;
}

// The size of axis `i` of `num` aligned batch axes.
static int64_t batch_at(const operand_t* o, int num, int i) {
  const int own = i - (num - o->num_batch);
  return own >= 0 ? o->batch[own] : 1;
}

typedef enum sharing { SHARES_NOTHING, SHARES_A, SHARES_B, FITS_ALL } sharing_t;  // which operand is one for all

static sharing_t sharing_at(const operand_t* a, const operand_t* b, int num, int i) {
  const int64_t of_a = batch_at(a, num, i), of_b = batch_at(b, num, i);
  if (of_a == of_b) return of_a == 1 ? FITS_ALL : SHARES_NOTHING;
  return of_a == 1 ? SHARES_A : SHARES_B;
}

// Takes the last axes that share alike into the batch; returns how many are left.
static int take_batch(const operand_t* a, const operand_t* b, int num, int64_t* out_batch, sharing_t* out_sharing) {
  *out_batch = 1;
  *out_sharing = FITS_ALL;
  int left = num;
  for (; left > 0; --left) {
    const sharing_t sharing = sharing_at(a, b, num, left - 1);
    if (sharing != FITS_ALL && *out_sharing != FITS_ALL && sharing != *out_sharing) break;
    if (sharing != FITS_ALL) *out_sharing = sharing;
    const int64_t of_a = batch_at(a, num, left - 1), of_b = batch_at(b, num, left - 1);
    *out_batch *= of_a == 1 ? of_b : of_a;
  }
  return left;
}

// The axes that the plan runs over. An operand's step on an axis is the size of all that lies behind the axis.
static void take_outer(const operand_t* a, const operand_t* b, int num, product_t* product) {
  int64_t of_a = a->rows * a->columns, of_b = b->rows * b->columns;
  product->runs = 1;
  for (int i = num - 1; i >= 0; --i) {
    const int64_t size_a = batch_at(a, num, i), size_b = batch_at(b, num, i);
    if (i < product->num_outer) {
      product->size[i] = size_a == 1 ? size_b : size_a;
      product->a_step[i] = size_a == 1 ? 0 : of_a;
      product->b_step[i] = size_b == 1 ? 0 : of_b;
      product->runs *= product->size[i];
    }
    of_a *= size_a;
    of_b *= size_b;
  }
}

static gcap_status_t plan_product(const gcap_node_planning_t* planning, product_t* product) {
  const gcap_node_t* node = planning->node;
  const bool is_fused = strcmp(node->op_type, "MatMul") != 0;  // MatMul itself has no attributes
  const bool trans_a = is_fused && planning->inputs[0].rank > 1 && gcap_node_int(node, "transA", 0) != 0;
  const bool trans_b = is_fused && planning->inputs[1].rank > 1 && gcap_node_int(node, "transB", 0) != 0;
  const operand_t a = operand_of(&planning->inputs[0], true, trans_a);
  const operand_t b = operand_of(&planning->inputs[1], false, trans_b);
  const int num = a.num_batch > b.num_batch ? a.num_batch : b.num_batch;
  gcap_matmul_options_t options;
  gcap_matmul_options_init(&options);
  options.handle = planning->kernels->cublaslt;
  options.m = a.rows;
  options.n = b.columns;
  options.k = a.columns;
  options.trans_a = trans_a;
  options.trans_b = trans_b;
  if (is_fused) options.alpha = gcap_node_float(node, "alpha", 1.0f);
  options.dtype = planning->inputs[0].dtype;
  options.tf32 = options.dtype == GCAP_DTYPE_F32 && planning->kernels->options.use_tf32;
  options.max_workspace_bytes = MAX_WORKSPACE_BYTES;
  sharing_t sharing;
  product->num_outer = take_batch(&a, &b, num, &options.batch, &sharing);
  take_outer(&a, &b, num, product);
  product->c_step = options.batch * a.rows * b.columns;
  product->element_bytes = gcap_dtype_bytes(options.dtype);
  if (sharing == SHARES_B && trans_a) {
    options.b_stride = 0;
  } else if (sharing == SHARES_B) {  // the rows of all matrices of a are rows of one
    options.m *= options.batch;
    options.batch = 1;
  }
  if (sharing == SHARES_A) options.a_stride = 0;
  if (product->element_bytes < sizeof(float) && product->num_outer == 0) options.alignment_bytes = VECTOR_BYTES;
  return gcap_matmul_create(&options, &product->matmul);
}

bool gcap_node_fused_matmul_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  (void)model;
  return gcap_node_int(node, "transBatchA", 0) == 0 && gcap_node_int(node, "transBatchB", 0) == 0;
}

gcap_status_t gcap_node_matmul_plan(const gcap_node_planning_t* planning, void** out_plan) {
  product_t* product = calloc(1, sizeof(*product));
  if (product == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", planning->node->name);
  }
  gcap_status_t status = plan_product(planning, product);
  if (status != NULL) {
    free(product);
    return status;
  }
  *out_plan = product;
  return NULL;
}

void gcap_node_matmul_end(void* plan) {
  product_t* product = plan;
  gcap_matmul_destroy(product->matmul);
  free(product);
}

static const void* moved(const void* data, int64_t elements, size_t element_bytes) {
  return data == NULL ? NULL : (const char*)data + (size_t)elements * element_bytes;
}

// Run number `r`, counted over the outer axes, the last one fastest.
static gcap_status_t issue(const product_t* p, int64_t r, const gcap_kernel_context_t* context, void* workspace) {
  int64_t a = 0, b = 0, rest = r;
  for (int i = p->num_outer - 1; i >= 0; --i) {
    a += rest % p->size[i] * p->a_step[i];
    b += rest % p->size[i] * p->b_step[i];
    rest /= p->size[i];
  }
  return gcap_matmul_run(p->matmul, context->resources.stream, moved(context->inputs[0].data, a, p->element_bytes),
                         moved(context->inputs[1].data, b, p->element_bytes), /*bias=*/NULL, /*addend=*/NULL,
                         (void*)moved(context->outputs[0].data, r * p->c_step, p->element_bytes), workspace);
}

gcap_status_t gcap_node_matmul(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const product_t* product = kernel->plan;
  void* workspace = NULL;
  GCAP_RETURN_IF_ERROR(gcap_node_take_workspace(context, gcap_matmul_workspace_bytes(product->matmul), &workspace));
  gcap_status_t status = NULL;
  for (int64_t r = 0; r < product->runs && status == NULL; ++r) status = issue(product, r, context, workspace);
  return gcap_node_return_workspace(context, workspace, status);
}
