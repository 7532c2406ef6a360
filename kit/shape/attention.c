// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Attention, and MultiHeadAttention of com.microsoft: Q, K and V of rank 4 with their heads as an axis, or of rank 3
// with the heads of a token behind one another, whose number is an attribute then.

#include "kit/shape/attention.h"

#include <string.h>

#include "kit/shape/infer.h"
#include "kit/shape/inner.h"

// What differs between the operators.
typedef struct form {
  const char *q_heads, *kv_heads;  // attributes
  int mask, past, bias, padding;   // inputs; -1: the operator has none
  int max_outputs;
} form_t;

static const form_t* form_of(const gcap_node_t* node) {
  static const form_t of_onnx = {"q_num_heads", "kv_num_heads", 3, 4, -1, -1, 4};
  static const form_t of_microsoft = {"num_heads", "num_heads", 5, 6, 3, 4, 3};
  return strcmp(node->op_type, "Attention") == 0 ? &of_onnx : &of_microsoft;
}

typedef struct operand {
  int64_t batch, heads, length, size;
} operand_t;

static bool is_there(const gcap_node_t* node, const gcap_tensor_t* inputs, int input) {
  if (input < 0 || input >= node->num_inputs) return false;
  return !gcap_shape_is_left_out(inputs[input].rank, inputs[input].shape);
}

static gcap_status_t read_operand(const gcap_node_t* node, int input, const gcap_tensor_t* tensor,
                                  const char* attribute, operand_t* out_operand) {
  const int64_t heads = gcap_node_int(node, attribute, 0), *shape = tensor->shape;
  if (tensor->rank == 4) {
    *out_operand = (operand_t){shape[0], shape[1], shape[2], shape[3]};
    if (shape[1] > 0 && (heads == 0 || heads == shape[1])) return NULL;
    return GCAP_SHAPE_REFUSE(node, "input %d has %lld heads, %s is %lld", input, (long long)shape[1], attribute,
                             (long long)heads);
  }
  if (tensor->rank != 3) return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, allowed is 3 or 4", input, tensor->rank);
  if (heads <= 0 || shape[2] % heads != 0) {
    return GCAP_SHAPE_REFUSE(node, "%s is %lld, allowed is a divisor of %lld, dimension 2 of input %d", attribute,
                             (long long)heads, (long long)shape[2], input);
  }
  *out_operand = (operand_t){shape[0], heads, shape[1], shape[2] / heads};
  return NULL;
}

// Dimension `d` of an input must be `wanted`.
static gcap_status_t check_size(const gcap_node_t* node, int input, const gcap_tensor_t* tensor, int d,
                                int64_t wanted) {
  if (tensor->shape[d] == wanted) return NULL;
  return GCAP_SHAPE_REFUSE(node, "dimension %d of input %d is %lld, allowed is %lld", d, input,
                           (long long)tensor->shape[d], (long long)wanted);
}

static gcap_status_t read_past(const gcap_node_t* node, const gcap_tensor_t* inputs, int key,
                               gcap_attention_sizes_t* sizes) {
  const bool has_key = is_there(node, inputs, key), has_value = is_there(node, inputs, key + 1);
  if (has_key != has_value) {
    return GCAP_SHAPE_REFUSE(node, "it has input %d without the other past", has_key ? key : key + 1);
  }
  sizes->past = has_key ? key : -1;
  for (int i = key; has_key && i < key + 2; ++i) {
    if (inputs[i].rank != 4) return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, allowed is 4", i, inputs[i].rank);
    if (i == key) sizes->past_length = inputs[key].shape[2];
    GCAP_RETURN_IF_ERROR(check_size(node, i, &inputs[i], 0, sizes->batch));
    GCAP_RETURN_IF_ERROR(check_size(node, i, &inputs[i], 1, sizes->kv_heads));
    GCAP_RETURN_IF_ERROR(check_size(node, i, &inputs[i], 2, sizes->past_length));
    GCAP_RETURN_IF_ERROR(check_size(node, i, &inputs[i], 3, i == key ? sizes->size : sizes->v_size));
  }
  return NULL;
}

// A mask is broadcast to the scores, but for the last axis.
static gcap_status_t check_mask(const gcap_node_t* node, const gcap_tensor_t* mask,
                                const gcap_attention_sizes_t* sizes) {
  if (mask->rank < 2 || mask->rank > 4) {
    return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, allowed is 2 to 4", sizes->mask, mask->rank);
  }
  const int64_t scores[] = {sizes->batch, sizes->q_heads, sizes->q_length, sizes->past_length + sizes->kv_length};
  for (int d = 0; d < mask->rank; ++d) {
    const int64_t wanted = scores[4 - mask->rank + d];
    if (d < mask->rank - 1 && mask->shape[d] == 1) continue;
    GCAP_RETURN_IF_ERROR(check_size(node, sizes->mask, mask, d, wanted));
  }
  return NULL;
}

static gcap_status_t check_operands(const gcap_node_t* node, const operand_t* q, const operand_t* k,
                                    const operand_t* v) {
  if (q->batch != k->batch || q->batch != v->batch) {
    return GCAP_SHAPE_REFUSE(node, "inputs 0, 1 and 2 have batches of %lld, %lld and %lld", (long long)q->batch,
                             (long long)k->batch, (long long)v->batch);
  }
  if (q->heads % k->heads != 0 || k->heads != v->heads) {
    return GCAP_SHAPE_REFUSE(node, "inputs 0, 1 and 2 have %lld, %lld and %lld heads", (long long)q->heads,
                             (long long)k->heads, (long long)v->heads);
  }
  if (q->size != k->size || k->length != v->length) {
    return GCAP_SHAPE_REFUSE(node,
                             "heads of inputs 0 and 1 have sizes %lld and %lld, inputs 1 and 2 lengths %lld and %lld",
                             (long long)q->size, (long long)k->size, (long long)k->length, (long long)v->length);
  }
  return NULL;
}

// Of MultiHeadAttention: a bias for what is packed, and which keys count: how many of each batch, or a number for each
// key, of all queries or of each. ONNX Runtime's EPs have different orders of tokens where there are not as many
// queries as new keys.
static gcap_status_t check_more(const gcap_node_t* node, const gcap_tensor_t* inputs, const gcap_attention_sizes_t* s) {
  const int64_t total = s->past_length + s->kv_length;
  if (s->is_packed && !s->kv_is_packed && (s->bias >= 0 || s->past >= 0)) {
    return GCAP_SHAPE_REFUSE(node, "input 1 has rank 4, and it has input %d", s->bias >= 0 ? s->bias : s->past);
  }
  if (s->bias >= 0) {
    const gcap_tensor_t* bias = &inputs[s->bias];
    if (bias->rank != 1) return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, allowed is 1", s->bias, bias->rank);
    const uint64_t wanted = (uint64_t)s->q_heads * (2 * (uint64_t)s->size + (uint64_t)s->v_size);
    GCAP_RETURN_IF_ERROR(check_size(node, s->bias, bias, 0, (int64_t)wanted));
  }
  if (s->padding >= 0) {
    const gcap_tensor_t* padding = &inputs[s->padding];
    const int64_t shapes[][3] = {{s->batch}, {s->batch, total}, {s->batch, s->q_length, total}};
    if (padding->rank < 1 || padding->rank > 3) {
      return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, allowed is 1 to 3", s->padding, padding->rank);
    }
    for (int d = 0; d < padding->rank; ++d) {
      GCAP_RETURN_IF_ERROR(check_size(node, s->padding, padding, d, shapes[padding->rank - 1][d]));
    }
  }
  if (gcap_node_int(node, "unidirectional", 0) != 0 && s->q_length != s->kv_length) {
    return GCAP_SHAPE_REFUSE(node, "it is unidirectional, with %lld queries and %lld new keys", (long long)s->q_length,
                             (long long)s->kv_length);
  }
  return NULL;
}

static gcap_status_t check_ranks(const gcap_node_t* node, const gcap_tensor_t* inputs) {
  const int q = inputs[0].rank, k = inputs[1].rank, v = inputs[2].rank;
  const bool is_onnx = form_of(node)->padding < 0;
  if (k == v && (is_onnx ? q == k : q == 3)) return NULL;
  return GCAP_SHAPE_REFUSE(node, "inputs 0, 1 and 2 have ranks %d, %d and %d", q, k, v);
}

gcap_status_t gcap_attention_read(const gcap_node_t* node, const gcap_tensor_t* inputs,
                                  gcap_attention_sizes_t* out_sizes) {
  const form_t* form = form_of(node);
  operand_t q, k, v;
  *out_sizes = (gcap_attention_sizes_t){0};
  GCAP_RETURN_IF_ERROR(read_operand(node, 0, &inputs[0], form->q_heads, &q));
  GCAP_RETURN_IF_ERROR(read_operand(node, 1, &inputs[1], form->kv_heads, &k));
  GCAP_RETURN_IF_ERROR(read_operand(node, 2, &inputs[2], form->kv_heads, &v));
  GCAP_RETURN_IF_ERROR(check_ranks(node, inputs));
  GCAP_RETURN_IF_ERROR(check_operands(node, &q, &k, &v));
  gcap_attention_sizes_t sizes = {.is_packed = inputs[0].rank == 3,
                                  .kv_is_packed = inputs[1].rank == 3,
                                  .mask = is_there(node, inputs, form->mask) ? form->mask : -1,
                                  .bias = is_there(node, inputs, form->bias) ? form->bias : -1,
                                  .padding = is_there(node, inputs, form->padding) ? form->padding : -1,
                                  .batch = q.batch,
                                  .q_heads = q.heads,
                                  .kv_heads = k.heads,
                                  .q_length = q.length,
                                  .kv_length = k.length,
                                  .size = q.size,
                                  .v_size = v.size};
  GCAP_RETURN_IF_ERROR(read_past(node, inputs, form->past, &sizes));
  if (sizes.mask >= 0) GCAP_RETURN_IF_ERROR(check_mask(node, &inputs[sizes.mask], &sizes));
  GCAP_RETURN_IF_ERROR(check_more(node, inputs, &sizes));
  *out_sizes = sizes;
  return NULL;
}

gcap_status_t gcap_infer_attention(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_attention_sizes_t s;
  GCAP_RETURN_IF_ERROR(gcap_attention_read(node, inputs, &s));
  const int64_t total = s.past_length + s.kv_length;
  const gcap_shape_t shapes[] = {
      s.is_packed ? (gcap_shape_t){3, {s.batch, s.q_length, s.q_heads * s.v_size}}
                  : (gcap_shape_t){4, {s.batch, s.q_heads, s.q_length, s.v_size}},
      {4, {s.batch, s.kv_heads, total, s.size}},
      {4, {s.batch, s.kv_heads, total, s.v_size}},
      {4, {s.batch, s.q_heads, s.q_length, total}},
  };
  const int most = form_of(node)->max_outputs;
  if (node->num_outputs > most) {
    return GCAP_SHAPE_REFUSE(node, "it has %d outputs, allowed is 1..%d", node->num_outputs, most);
  }
  for (int i = 0; i < node->num_outputs; ++i) {
    if (i > 0 && gcap_shape_is_left_out(outputs[i].rank, outputs[i].shape)) continue;
    GCAP_RETURN_IF_ERROR(gcap_shape_give(node, i, &shapes[i], &outputs[i]));
  }
  return NULL;
}
