// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Attention of ONNX's opset 23, and MultiHeadAttention of com.microsoft: two products planned before, and the weights
// between them. Queries that share a head of keys are rows of one matrix, so that heads are grouped for nothing. Where
// heads are not an axis of their own (rank 3), Q, K, V and Y are transposed through workspace, where a bias is added to
// them. Present keys and values are outputs, and workspace if the node wants none of them but has a past.

#include <math.h>
#include <stdlib.h>

#include "gcap/kit/ops/elementwise.h"
#include "gcap/kit/ops/layout.h"
#include "gcap/kit/ops/matmul.h"
#include "kit/shape/attention.h"
#include "kit/shape/inner.h"
#include "ops/kernels/attention.h"
#include "ops/nodes/op.h"

#define MAX_WORKSPACE_BYTES ((size_t)32 << 20)  // as in matmul.c
#define ALIGNMENT ((size_t)256)                 // what a product wants of its workspace

enum { Q, K, V, MASK, PAST_KEY };                    // inputs of Attention
enum { BIAS = 3, PADDING, OTHER_MASK, OTHER_PAST };  // of MultiHeadAttention behind the first three
enum { Y, PRESENT_KEY, PRESENT_VALUE, PRODUCTS };

// Places in the workspace.
typedef enum area {
  AREA_PRODUCT,
  AREA_SCORES,
  AREA_WEIGHTS,
  AREA_Q,
  AREA_Y,
  AREA_K,
  AREA_V,
  AREA_ALL_K,
  AREA_ALL_V,
  NUM_AREAS
} area_t;

typedef struct attention {
  gcap_attention_sizes_t sizes;
  gcap_matmul_t *scores, *mix;
  gcap_dtype_t dtype;
  bool gives[PRODUCTS + 1];  // by output: the node wants it
  float softcap, filter;
  int64_t visible;  // as gcap_attention_weights has it
  size_t offsets[NUM_AREAS + 1];
} attention_t;

static bool is_float(gcap_dtype_t dtype) {
  return dtype == GCAP_DTYPE_F32 || dtype == GCAP_DTYPE_F16 || dtype == GCAP_DTYPE_BF16;
}

// f32 is what the softmax is computed in, so f64 is more than it gives.
static bool attributes_fit(const gcap_node_t* node) {
  enum { ONNX_DOUBLE = 11 };
  return gcap_node_int(node, "qk_matmul_output_mode", 0) == 0 && gcap_node_float(node, "softcap", 0) >= 0 &&
         gcap_node_int(node, "softmax_precision", 0) != ONNX_DOUBLE;
}

// How many keys there are with those of the past; negative: it is open.
static int64_t find_total_length(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_value_t* k = gcap_node_input(model, node, K);
  const int64_t length = k->shape[k->rank - 2];
  if (node->num_inputs <= PAST_KEY || length < 0) return length;
  const gcap_value_t* past = gcap_node_input(model, node, PAST_KEY);
  if (gcap_shape_is_left_out(past->rank, past->shape)) return length;
  return past->rank == 4 && past->shape[2] >= 0 ? past->shape[2] + length : -1;
}

// A mask of fewer keys would be broadcast by opset 23, and continued by opset 24.
static bool mask_fits(const gcap_model_t* model, const gcap_node_t* node, gcap_dtype_t dtype) {
  if (node->num_inputs <= MASK) return true;
  const gcap_value_t* mask = gcap_node_input(model, node, MASK);
  if (gcap_shape_is_left_out(mask->rank, mask->shape)) return true;
  const int64_t length = find_total_length(model, node);
  const int64_t keys = mask->rank > 0 ? mask->shape[mask->rank - 1] : 0;
  if (length >= 0 && keys >= 0 && keys != length) return false;
  return (mask->dtype == GCAP_DTYPE_BOOL || mask->dtype == dtype) && mask->rank >= 2 && mask->rank <= 4;
}

bool gcap_node_attention_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_value_t *q = gcap_node_input(model, node, Q), *k = gcap_node_input(model, node, K);
  if (!is_float(q->dtype) || (q->rank != 3 && q->rank != 4)) return false;
  if (k->rank != q->rank || gcap_node_input(model, node, V)->rank != q->rank) return false;
  return mask_fits(model, node, q->dtype) && attributes_fit(node);
}

// --- Of com.microsoft ----------------------------------------------------------------------------------------------

static const gcap_value_t* given(const gcap_model_t* model, const gcap_node_t* node, int input) {
  const gcap_value_t* value = input < node->num_inputs ? gcap_node_input(model, node, input) : NULL;
  return value == NULL || gcap_shape_is_left_out(value->rank, value->shape) ? NULL : value;
}

static bool may_be(int64_t size, int64_t wanted) { return size < 0 || wanted < 0 || size == wanted; }

// Lengths are told from the offsets of packed batches by their number alone.
static bool padding_fits(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_value_t* padding = given(model, node, PADDING);
  if (padding == NULL) return true;
  const gcap_value_t *q = gcap_node_input(model, node, Q), *k = gcap_node_input(model, node, K);
  const gcap_value_t* past = given(model, node, OTHER_PAST);
  if (padding->dtype != GCAP_DTYPE_I32 || padding->rank < 1 || padding->rank > 3) return false;
  if (padding->rank == 1) return may_be(padding->shape[0], q->shape[0]);
  if (past != NULL && past->rank != 4) return false;
  const int64_t length = k->shape[k->rank - 2], before = past == NULL ? 0 : past->shape[2];
  return may_be(padding->shape[padding->rank - 1], length < 0 || before < 0 ? -1 : length + before);
}

// Past without both presents, or with heads as an axis, is what ONNX Runtime does not define.
static bool past_fits(const gcap_model_t* model, const gcap_node_t* node) {
  const bool has_past = given(model, node, OTHER_PAST) != NULL;
  if (has_past != (given(model, node, OTHER_PAST + 1) != NULL)) return false;
  if (!has_past) return true;
  for (int i = PRESENT_KEY; i <= PRESENT_VALUE; ++i) {
    if (i >= node->num_outputs || model->values[node->outputs[i]].name[0] == 0) return false;
  }
  return gcap_node_input(model, node, K)->rank == 3;
}

// Q, K and V come one by one: packed ones are of rank 5, or leave out K.
bool gcap_node_multi_head_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_value_t *q = gcap_node_input(model, node, Q), *k = gcap_node_input(model, node, K);
  const gcap_value_t *bias = given(model, node, BIAS), *mask = given(model, node, OTHER_MASK);
  if (q->rank != 3 || (k->rank != 3 && k->rank != 4) || gcap_node_input(model, node, V)->rank != k->rank) return false;
  if (bias != NULL && (bias->rank != 1 || k->rank != 3)) return false;
  if (mask != NULL && mask->rank != 4) return false;
  if (gcap_node_int(node, "unidirectional", 0) != 0 && !may_be(k->shape[k->rank - 2], q->shape[1])) return false;
  return gcap_node_int(node, "num_heads", 0) >= 1 && padding_fits(model, node) && past_fits(model, node);
}

// --- Planning -------------------------------------------------------------------------------------------------------

static int64_t total_of(const gcap_attention_sizes_t* s) { return s->past_length + s->kv_length; }

// A scale of 0 is none to MultiHeadAttention.
static float scale_of(const gcap_node_t* node, const gcap_attention_sizes_t* s) {
  const float scale = gcap_node_float(node, "scale", 1.0f / sqrtf((float)s->size));
  return scale == 0.0f && gcap_node_has(node, "num_heads") ? 1.0f / sqrtf((float)s->size) : scale;
}

static gcap_status_t plan_product(const gcap_node_planning_t* planning, const attention_t* a, bool is_scores,
                                  gcap_matmul_t** out_matmul) {
  const gcap_attention_sizes_t* s = &a->sizes;
  gcap_matmul_options_t options;
  gcap_matmul_options_init(&options);
  options.handle = planning->kernels->cublaslt;
  options.batch = s->batch * s->kv_heads;
  options.m = s->q_heads / s->kv_heads * s->q_length;
  options.n = is_scores ? total_of(s) : s->v_size;
  options.k = is_scores ? s->size : total_of(s);
  options.trans_b = is_scores;
  options.out_f32 = is_scores;
  if (is_scores) options.alpha = scale_of(planning->node, s);
  options.dtype = a->dtype;
  options.tf32 = a->dtype == GCAP_DTYPE_F32 && planning->kernels->options.use_tf32;
  options.max_workspace_bytes = MAX_WORKSPACE_BYTES;
  if (gcap_dtype_bytes(a->dtype) < sizeof(float)) options.alignment_bytes = 16;  // as in matmul.c
  return gcap_matmul_create(&options, out_matmul);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static void place_areas(attention_t* a) {
  const gcap_attention_sizes_t* s = &a->sizes;
  const size_t element = gcap_dtype_bytes(a->dtype);
  const size_t scores = (size_t)(s->batch * s->q_heads * s->q_length * total_of(s));
  const size_t keys = (size_t)(s->batch * s->kv_heads) * element, queries = (size_t)(s->batch * s->q_heads) * element;
  size_t bytes[NUM_AREAS] = {
      [AREA_PRODUCT] = larger(gcap_matmul_workspace_bytes(a->scores), gcap_matmul_workspace_bytes(a->mix)),
      [AREA_SCORES] = scores * sizeof(float)};
  if (a->dtype != GCAP_DTYPE_F32) bytes[AREA_WEIGHTS] = scores * element;
  if (s->is_packed) {
    bytes[AREA_Q] = queries * (size_t)(s->q_length * s->size);
    bytes[AREA_Y] = queries * (size_t)(s->q_length * s->v_size);
  }
  if (s->kv_is_packed) {
    bytes[AREA_K] = keys * (size_t)(s->kv_length * s->size);
    bytes[AREA_V] = keys * (size_t)(s->kv_length * s->v_size);
  }
  if (s->past >= 0 && !a->gives[PRESENT_KEY]) bytes[AREA_ALL_K] = keys * (size_t)(total_of(s) * s->size);
  if (s->past >= 0 && !a->gives[PRESENT_VALUE]) bytes[AREA_ALL_V] = keys * (size_t)(total_of(s) * s->v_size);
  for (int i = 0; i < NUM_AREAS; ++i) {
    a->offsets[i + 1] = a->offsets[i] + (bytes[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
}

static gcap_status_t plan_attention(const gcap_node_planning_t* planning, attention_t* a) {
  const gcap_node_t* node = planning->node;
  GCAP_RETURN_IF_ERROR(gcap_attention_read(node, planning->inputs, &a->sizes));
  a->dtype = planning->inputs[Q].dtype;
  a->softcap = gcap_node_float(node, "softcap", 0);
  a->filter = gcap_node_float(node, "mask_filter_value", -10000.0f);
  const bool is_causal = gcap_node_int(node, "is_causal", 0) != 0 || gcap_node_int(node, "unidirectional", 0) != 0;
  a->visible = is_causal ? a->sizes.past_length + 1 : -1;
  for (int i = 0; i < node->num_outputs; ++i) {
    a->gives[i] = !gcap_shape_is_left_out(planning->outputs[i].rank, planning->outputs[i].shape);
  }
  GCAP_RETURN_IF_ERROR(plan_product(planning, a, /*is_scores=*/true, &a->scores));
  GCAP_RETURN_IF_ERROR(plan_product(planning, a, /*is_scores=*/false, &a->mix));
  place_areas(a);
  return NULL;
}

void gcap_node_attention_end(void* plan) {
  attention_t* a = plan;
  gcap_matmul_destroy(a->scores);
  gcap_matmul_destroy(a->mix);
  free(a);
}

gcap_status_t gcap_node_attention_plan(const gcap_node_planning_t* planning, void** out_plan) {
  attention_t* a = calloc(1, sizeof(*a));
  if (a == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", planning->node->name);
  gcap_status_t status = plan_attention(planning, a);
  if (status != NULL) {
    gcap_node_attention_end(a);
    return status;
  }
  *out_plan = a;
  return NULL;
}

// --- Computing ------------------------------------------------------------------------------------------------------

typedef struct call {
  const attention_t* a;
  gcap_stream_t* stream;
  const gcap_tensor_t *inputs, *outputs;
  char* workspace;
} call_t;

static void* area(const call_t* call, area_t which) {
  return call->workspace == NULL ? NULL : call->workspace + call->a->offsets[which];
}

static gcap_tensor_t tensor(void* data, gcap_dtype_t dtype, int64_t d0, int64_t d1, int64_t d2, int64_t d3) {
  return (gcap_tensor_t){.data = data, .dtype = dtype, .rank = 4, .shape = {d0, d1, d2, d3}};
}

// Adds the bias of Q, K or V, which are as large but for V, the last one.
static gcap_status_t add_bias(const call_t* call, int input, const gcap_tensor_t* x) {
  const gcap_attention_sizes_t* s = &call->a->sizes;
  const size_t before = (size_t)(input * s->q_heads * s->size) * gcap_dtype_bytes(x->dtype);
  const gcap_tensor_t bias = {.data = (char*)call->inputs[s->bias].data + before,
                              .dtype = x->dtype,
                              .rank = 3,
                              .shape = {x->shape[1], 1, x->shape[3]}};
  return gcap_binary(call->stream, GCAP_BINARY_ADD, x, &bias, x);
}

// An input as [batch, heads, length, size]: as it is, or transposed to `into`.
static gcap_status_t unpack(const call_t* call, int input, int64_t heads, void* into, gcap_tensor_t* out_x) {
  static const int64_t perm[] = {0, 2, 1, 3};
  const gcap_tensor_t* x = &call->inputs[input];
  *out_x = *x;
  const gcap_attention_sizes_t* s = &call->a->sizes;
  if (!(input == Q ? s->is_packed : s->kv_is_packed)) return NULL;
  const int64_t batch = x->shape[0], length = x->shape[1], size = x->shape[2] / heads;
  const gcap_tensor_t from = tensor(x->data, x->dtype, batch, length, heads, size);
  *out_x = tensor(into, x->dtype, batch, heads, length, size);
  GCAP_RETURN_IF_ERROR(gcap_transpose(call->stream, &from, perm, out_x));
  return s->bias >= 0 ? add_bias(call, input, out_x) : NULL;
}

// All keys, or all values: past and new.
static gcap_status_t collect(const call_t* call, bool is_key, gcap_tensor_t* out_all) {
  const attention_t* a = call->a;
  const gcap_attention_sizes_t* s = &a->sizes;
  const int output = is_key ? PRESENT_KEY : PRESENT_VALUE;
  void* present = a->gives[output] ? call->outputs[output].data : NULL;
  gcap_tensor_t x;
  void* into = present != NULL && s->past < 0 ? present : area(call, is_key ? AREA_K : AREA_V);
  GCAP_RETURN_IF_ERROR(unpack(call, is_key ? K : V, s->kv_heads, into, &x));
  *out_all = x;
  if (s->past >= 0) {
    void* all = present != NULL ? present : area(call, is_key ? AREA_ALL_K : AREA_ALL_V);
    *out_all = tensor(all, a->dtype, s->batch, s->kv_heads, total_of(s), is_key ? s->size : s->v_size);
    const gcap_tensor_t parts[] = {call->inputs[is_key ? s->past : s->past + 1], x};
    return gcap_concat(call->stream, parts, 2, 2, out_all);
  }
  if (!a->gives[output] || s->kv_is_packed) return NULL;
  return gcap_cast(call->stream, &x, &call->outputs[output]);
}

static gcap_status_t weigh(const call_t* call, const gcap_tensor_t* q, const gcap_tensor_t* k,
                           gcap_tensor_t* out_weights) {
  const attention_t* a = call->a;
  const gcap_attention_sizes_t* s = &a->sizes;
  const gcap_tensor_t scores =
      tensor(area(call, AREA_SCORES), GCAP_DTYPE_F32, s->batch, s->q_heads, s->q_length, total_of(s));
  GCAP_RETURN_IF_ERROR(gcap_matmul_run(a->scores, call->stream, q->data, k->data, /*bias=*/NULL, /*addend=*/NULL,
                                       scores.data, area(call, AREA_PRODUCT)));
  if (a->gives[PRODUCTS]) GCAP_RETURN_IF_ERROR(gcap_cast(call->stream, &scores, &call->outputs[PRODUCTS]));
  *out_weights = scores;
  out_weights->dtype = a->dtype;
  if (a->dtype != GCAP_DTYPE_F32) out_weights->data = area(call, AREA_WEIGHTS);
  const gcap_attention_how_t how = {.softcap = a->softcap,
                                    .visible = a->visible,
                                    .mask = s->mask >= 0 ? &call->inputs[s->mask] : NULL,
                                    .padding = s->padding >= 0 ? &call->inputs[s->padding] : NULL,
                                    .filter = a->filter};
  return gcap_attention_weights(call->stream, &how, &scores, out_weights);
}

static gcap_status_t attend(const call_t* call) {
  static const int64_t perm[] = {0, 2, 1, 3};
  const attention_t* a = call->a;
  const gcap_attention_sizes_t* s = &a->sizes;
  gcap_tensor_t q, k, v, weights;
  GCAP_RETURN_IF_ERROR(unpack(call, Q, s->q_heads, area(call, AREA_Q), &q));
  GCAP_RETURN_IF_ERROR(collect(call, /*is_key=*/true, &k));
  GCAP_RETURN_IF_ERROR(collect(call, /*is_key=*/false, &v));
  GCAP_RETURN_IF_ERROR(weigh(call, &q, &k, &weights));
  void* y = s->is_packed ? area(call, AREA_Y) : call->outputs[Y].data;
  GCAP_RETURN_IF_ERROR(gcap_matmul_run(a->mix, call->stream, weights.data, v.data, /*bias=*/NULL, /*addend=*/NULL, y,
                                       area(call, AREA_PRODUCT)));
  if (!s->is_packed) return NULL;
  const gcap_tensor_t from = tensor(y, a->dtype, s->batch, s->q_heads, s->q_length, s->v_size);
  const gcap_tensor_t to = tensor(call->outputs[Y].data, a->dtype, s->batch, s->q_length, s->q_heads, s->v_size);
  return gcap_transpose(call->stream, &from, perm, &to);
}

gcap_status_t gcap_node_attention(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const attention_t* a = kernel->plan;
  void* workspace = NULL;
  GCAP_RETURN_IF_ERROR(gcap_node_take_workspace(context, a->offsets[NUM_AREAS], &workspace));
  const call_t call = {a, context->resources.stream, context->inputs, context->outputs, workspace};
  return gcap_node_return_workspace(context, workspace, attend(&call));
}
