// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that work element by element: a call each. What is left to do here is to read attributes, and the bounds of
// Clip, which are on the host.

#include <math.h>
#include <string.h>

#include "kit/shape/inner.h"
#include "ops/kernels/elementwise.h"
#include "ops/kernels/half.h"
#include "ops/nodes/op.h"

#define STREAM(context) ((context)->resources.stream)
#define VECTOR_BYTES ((size_t)16)  // to which kernels like their operands aligned

gcap_status_t gcap_node_binary(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t* in = context->inputs;
  return gcap_binary_of(STREAM(context), kernel->op->code, 0.0f, &in[0], &in[1], &context->outputs[0]);
}

static float parameter(const gcap_node_kernel_t* kernel, gcap_node_parameter_t of) {
  return of.name == NULL ? of.fallback : gcap_node_float(kernel->node, of.name, of.fallback);
}

gcap_status_t gcap_node_unary(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const float alpha = parameter(kernel, kernel->op->alpha), beta = parameter(kernel, kernel->op->beta);
  return gcap_unary_of(STREAM(context), kernel->op->code, alpha, beta, &context->inputs[0], &context->outputs[0]);
}

gcap_status_t gcap_node_is_inf(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const bool negative = gcap_node_int(kernel->node, "detect_negative", 1) != 0;
  const bool positive = gcap_node_int(kernel->node, "detect_positive", 1) != 0;
  return gcap_unary_of(STREAM(context), GCAP_UNARY_IS_INF, negative, positive, &context->inputs[0],
                       &context->outputs[0]);
}

gcap_status_t gcap_node_where(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  (void)kernel;
  const gcap_tensor_t* in = context->inputs;
  return gcap_where(STREAM(context), &in[0], &in[1], &in[2], &context->outputs[0]);
}

gcap_status_t gcap_node_leaky_relu(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const float alpha = gcap_node_float(kernel->node, "alpha", 0.01f);
  return gcap_leaky_relu(STREAM(context), alpha, &context->inputs[0], &context->outputs[0]);
}

// --- Mod ------------------------------------------------------------------------------------------------------------

static bool is_fmod(const gcap_node_t* node) { return gcap_node_int(node, "fmod", 0) != 0; }

// As ONNX has it: without fmod, floats have no Mod.
bool gcap_node_mod_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_dtype_t dtype = gcap_node_input(model, node, 0)->dtype;
  return is_fmod(node) || !gcap_node_is_float(dtype);
}

gcap_status_t gcap_node_mod(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const int op = is_fmod(kernel->node) ? GCAP_BINARY_FMOD : GCAP_BINARY_MOD;
  return gcap_binary_of(STREAM(context), op, 0.0f, &context->inputs[0], &context->inputs[1], &context->outputs[0]);
}

// --- BitShift -------------------------------------------------------------------------------------------------------

static const char* direction_of(const gcap_node_t* node) { return gcap_node_string(node, "direction", ""); }

bool gcap_node_bit_shift_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  (void)model;
  return strcmp(direction_of(node), "LEFT") == 0 || strcmp(direction_of(node), "RIGHT") == 0;
}

gcap_status_t gcap_node_bit_shift(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const bool is_left = strcmp(direction_of(kernel->node), "LEFT") == 0;
  return gcap_binary_of(STREAM(context), is_left ? GCAP_BINARY_SHIFT_LEFT : GCAP_BINARY_SHIFT_RIGHT, 0.0f,
                        &context->inputs[0], &context->inputs[1], &context->outputs[0]);
}

// --- Min, Max, Mean and Sum ------------------------------------------------------------------------------------------

// Gives `y` the shape to which two shapes that fit each other are broadcast.
static void broadcast(const gcap_tensor_t* a, const gcap_tensor_t* b, gcap_tensor_t* y) {
  y->rank = a->rank > b->rank ? a->rank : b->rank;
  for (int i = 1; i <= y->rank; ++i) {
    const int64_t of_a = i <= a->rank ? a->shape[a->rank - i] : 1, of_b = i <= b->rank ? b->shape[b->rank - i] : 1;
    y->shape[y->rank - i] = of_a == 1 ? of_b : of_a;
  }
}

// Two at a time; a mean takes how many inputs are in it so far. What lies between is in the halves of the workspace, in
// turn, since it grows where an input is broadcast; the output is written last, so that it may be any of the inputs.
static gcap_status_t fold_pairs(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context, char* workspace,
                                size_t half) {
  const int last = kernel->node->num_inputs - 1;
  gcap_tensor_t a = context->inputs[0];
  for (int i = 1; i <= last; ++i) {
    gcap_tensor_t y = context->outputs[0];
    if (i < last) {
      y.data = workspace + (i % 2 == 0 ? half : 0);
      broadcast(&a, &context->inputs[i], &y);
    }
    GCAP_RETURN_IF_ERROR(gcap_binary_of(STREAM(context), kernel->op->code, (float)i, &a, &context->inputs[i], &y));
    a = y;
  }
  return NULL;
}

gcap_status_t gcap_node_fold(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const int count = kernel->node->num_inputs;
  const gcap_tensor_t* y = &context->outputs[0];
  if (count == 1) return gcap_cast(STREAM(context), &context->inputs[0], y);
  if (gcap_tensor_elements(y) == 0) return NULL;
  const size_t half = (gcap_tensor_bytes(y) + VECTOR_BYTES - 1) / VECTOR_BYTES * VECTOR_BYTES;
  void* workspace = NULL;
  GCAP_RETURN_IF_ERROR(gcap_node_take_workspace(context, count > 2 ? 2 * half : 0, &workspace));
  return gcap_node_return_workspace(context, workspace, fold_pairs(kernel, context, workspace, half));
}

// --- Gelu -----------------------------------------------------------------------------------------------------------

static const char* approximation(const gcap_node_t* node) { return gcap_node_string(node, "approximate", "none"); }

bool gcap_node_gelu_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  (void)model;
  return strcmp(approximation(node), "none") == 0 || strcmp(approximation(node), "tanh") == 0;
}

gcap_status_t gcap_node_gelu(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const bool is_tanh = strcmp(approximation(kernel->node), "tanh") == 0;
  return gcap_unary(STREAM(context), is_tanh ? GCAP_UNARY_GELU_TANH : GCAP_UNARY_GELU, &context->inputs[0],
                    &context->outputs[0]);
}

// Of the sum of two inputs, or of one.
gcap_status_t gcap_node_fast_gelu(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t *in = context->inputs, *y = &context->outputs[0];
  if (kernel->node->num_inputs == 1) return gcap_unary(STREAM(context), GCAP_UNARY_GELU_TANH, &in[0], y);
  return gcap_binary_of(STREAM(context), GCAP_BINARY_GELU_TANH, 0.0f, &in[0], &in[1], y);
}

// --- Clip -----------------------------------------------------------------------------------------------------------

// Of an integer or a float, whichever `x` is.
typedef struct bound {
  int64_t integer;
  float number;
} bound_t;

static bound_t element_of(const gcap_tensor_t* tensor) {
  switch (tensor->dtype) {
    case GCAP_DTYPE_F16: return (bound_t){.number = gcap_f16_to_f32(*(const uint16_t*)tensor->data)};
    case GCAP_DTYPE_BF16: return (bound_t){.number = gcap_bf16_to_f32(*(const uint16_t*)tensor->data)};
    case GCAP_DTYPE_I64: return (bound_t){.integer = *(const int64_t*)tensor->data};
    case GCAP_DTYPE_I32: return (bound_t){.integer = *(const int32_t*)tensor->data};
    case GCAP_DTYPE_I8: return (bound_t){.integer = *(const int8_t*)tensor->data};
    case GCAP_DTYPE_U8: return (bound_t){.integer = *(const uint8_t*)tensor->data};
    default: return (bound_t){.number = *(const float*)tensor->data};
  }
}

// The bound that input `i` is, or else the attribute, which Clip has of floats alone.
static gcap_status_t read_bound(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context, int i,
                                const char* name, bound_t fallback, bound_t* out_bound) {
  *out_bound = (bound_t){fallback.integer, gcap_node_float(kernel->node, name, fallback.number)};
  if (i >= kernel->node->num_inputs) return NULL;
  const gcap_tensor_t* bound = &context->inputs[i];
  if (gcap_shape_is_left_out(bound->rank, bound->shape)) return NULL;
  if (gcap_tensor_elements(bound) != 1) {
    return GCAP_NODE_REFUSE(kernel->node, "input %d (%s) has %lld elements, allowed is 1", i, name,
                            (long long)gcap_tensor_elements(bound));
  }
  if (bound->data == NULL) return GCAP_NODE_REFUSE(kernel->node, "input %d (%s) has an element at NULL", i, name);
  *out_bound = element_of(bound);
  return NULL;
}

gcap_status_t gcap_node_clip(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t *x = &context->inputs[0], *y = &context->outputs[0];
  bound_t low, high;
  GCAP_RETURN_IF_ERROR(read_bound(kernel, context, 1, "min", (bound_t){INT64_MIN, -INFINITY}, &low));
  GCAP_RETURN_IF_ERROR(read_bound(kernel, context, 2, "max", (bound_t){INT64_MAX, INFINITY}, &high));
  if (!gcap_node_is_float(x->dtype)) return gcap_clip_integers(STREAM(context), low.integer, high.integer, x, y);
  return gcap_clip(STREAM(context), low.number, high.number, x, y);
}

// --- BitCast --------------------------------------------------------------------------------------------------------

bool gcap_node_bit_cast_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_dtype_t made = model->values[node->outputs[0]].dtype, from = gcap_node_input(model, node, 0)->dtype;
  return gcap_node_int(node, "to", 0) == gcap_node_onnx_type(made) && gcap_dtype_bytes(made) == gcap_dtype_bytes(from);
}

// Copies bits as those of integers, which no load or store changes.
gcap_status_t gcap_node_bit_cast(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  (void)kernel;
  gcap_tensor_t x = context->inputs[0], y = context->outputs[0];
  const size_t bytes = gcap_dtype_bytes(x.dtype);
  x.dtype = y.dtype = bytes == 8 ? GCAP_DTYPE_I64 : bytes == 4 ? GCAP_DTYPE_I32 : GCAP_DTYPE_I8;
  return gcap_cast(STREAM(context), &x, &y);
}

// --- Cast -----------------------------------------------------------------------------------------------------------

int64_t gcap_node_onnx_type(gcap_dtype_t dtype) {
  switch (dtype) {
    case GCAP_DTYPE_F32: return 1;
    case GCAP_DTYPE_U8: return 2;
    case GCAP_DTYPE_I8: return 3;
    case GCAP_DTYPE_I32: return 6;
    case GCAP_DTYPE_I64: return 7;
    case GCAP_DTYPE_BOOL: return 9;
    case GCAP_DTYPE_F16: return 10;
    case GCAP_DTYPE_BF16: return 16;
  }
  return 0;
}

bool gcap_node_cast_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const int64_t made = gcap_node_onnx_type(model->values[node->outputs[0]].dtype);
  return gcap_node_int(node, "to", made) == made;
}

gcap_status_t gcap_node_cast(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  (void)kernel;
  return gcap_cast(STREAM(context), &context->inputs[0], &context->outputs[0]);
}
