// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that repeat, keep or reorder elements by numbers that they have beside them: Tile, Trilu, EyeLike, OneHot,
// CumSum, ReverseSequence.

#include <math.h>

#include "kit/shape/infer.h"
#include "kit/shape/inner.h"
#include "lib/internal/check_argument.h"

// --- Tile -----------------------------------------------------------------------------------------------------------

gcap_status_t gcap_infer_tile(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_tensor_t* data = &inputs[0];
  gcap_numbers_t repeats;
  GCAP_RETURN_IF_ERROR(gcap_shape_read_input(node, 1, &inputs[1], &repeats));
  if (repeats.count != data->rank) {
    return GCAP_SHAPE_REFUSE(node, "input 1 has %d numbers, input 0 has %d dimensions", repeats.count, data->rank);
  }
  gcap_shape_t shape = gcap_shape_unknown(data->rank);
  for (int i = 0; repeats.known && i < data->rank; ++i) {
    if (repeats.at[i] < 0) {
      return GCAP_SHAPE_REFUSE(node, "number %d of input 1 is %lld, allowed is 0 or more", i, (long long)repeats.at[i]);
    }
    if (__builtin_mul_overflow(data->shape[i], repeats.at[i], &shape.at[i])) {
      return GCAP_SHAPE_REFUSE(node, "dimension %d of output 0 would be more than %lld", i, (long long)INT64_MAX);
    }
  }
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// --- One number -----------------------------------------------------------------------------------------------------

// ONNX says a scalar; a list of one number is taken too, as ONNX Runtime takes it.
static gcap_status_t check_one(const gcap_node_t* node, int input, const char* name, const gcap_tensor_t* tensor) {
  if (tensor->rank == 0 || (tensor->rank == 1 && tensor->shape[0] == 1)) return NULL;
  return GCAP_SHAPE_REFUSE(node, "input %d (%s) has rank %d, allowed is 0, or 1 with one number", input, name,
                           tensor->rank);
}

gcap_status_t gcap_infer_number(const gcap_node_t* node, int input, const char* name, const gcap_tensor_t* tensor,
                                bool* out_known, int64_t* out_number) {
  *out_known = false;
  *out_number = 0;
  GCAP_RETURN_IF_ERROR(check_one(node, input, name, tensor));
  if (tensor->dtype != GCAP_DTYPE_I64 && tensor->dtype != GCAP_DTYPE_I32 && tensor->dtype != GCAP_DTYPE_F32) {
    return GCAP_SHAPE_REFUSE(node, "input %d (%s) is of type %s, allowed is i64, i32 or f32", input, name,
                             gcap_dtype_name(tensor->dtype));
  }
  if (tensor->data == NULL) return NULL;
  *out_known = true;
  if (tensor->dtype != GCAP_DTYPE_F32) {
    *out_number = gcap_shape_integer_at(tensor, 0);
    return NULL;
  }
  const float number = *(const float*)tensor->data;
  if (!(fabsf(number) < 0x1p62f)) {
    return GCAP_SHAPE_REFUSE(node, "input %d (%s) is %g, allowed is a number of an integer's size", input, name,
                             (double)number);
  }
  *out_number = (int64_t)number;
  return NULL;
}

// --- Triangles ------------------------------------------------------------------------------------------------------

gcap_status_t gcap_infer_trilu(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  if (inputs[0].rank < 2) {
    return GCAP_SHAPE_REFUSE(node, "input 0 has rank %d, allowed is 2..%d", inputs[0].rank, GCAP_MAX_RANK);
  }
  if (node->num_inputs > 1) GCAP_RETURN_IF_ERROR(check_one(node, 1, "k", &inputs[1]));
  return gcap_infer_same(node, inputs, outputs);
}

gcap_status_t gcap_infer_eye_like(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  if (inputs[0].rank == 2) return gcap_infer_same(node, inputs, outputs);
  return GCAP_SHAPE_REFUSE(node, "input 0 has rank %d, allowed is 2", inputs[0].rank);
}

// --- OneHot ---------------------------------------------------------------------------------------------------------

gcap_status_t gcap_infer_one_hot(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_tensor_t *indices = &inputs[0], *values = &inputs[2];
  int axis = 0;
  bool known = false;
  int64_t depth = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(node, indices->rank + 1, -1, &axis));
  GCAP_RETURN_IF_ERROR(gcap_infer_number(node, 1, "depth", &inputs[1], &known, &depth));
  if (known && depth < 1) {
    return GCAP_SHAPE_REFUSE(node, "input 1 (depth) is %lld, allowed is 1 or more", (long long)depth);
  }
  if (values->rank != 1 || values->shape[0] != 2) {
    return GCAP_SHAPE_REFUSE(node, "input 2 (values) has rank %d and %lld elements, allowed is 1 and 2", values->rank,
                             (long long)gcap_shape_count(values, 0, values->rank));
  }
  gcap_shape_t shape = {.rank = 0};
  for (int i = 0; i <= indices->rank; ++i) {
    const int64_t size = i == axis ? (known ? depth : GCAP_DIM_INFERRED) : indices->shape[i < axis ? i : i - 1];
    GCAP_RETURN_IF_ERROR(gcap_shape_add(node, &shape, size));
  }
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// --- CumSum and ReverseSequence -------------------------------------------------------------------------------------

gcap_status_t gcap_infer_cum_sum(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  bool known = false;
  int64_t number = 0;
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_number(node, 1, "axis", &inputs[1], &known, &number));
  if (known) GCAP_RETURN_IF_ERROR(gcap_shape_axis(node, "axis", number, inputs[0].rank, &axis));
  return gcap_infer_same(node, inputs, outputs);
}

gcap_status_t gcap_infer_reverse_sequence(const gcap_node_t* node, const gcap_tensor_t* inputs,
                                          gcap_tensor_t* outputs) {
  const gcap_tensor_t *data = &inputs[0], *lengths = &inputs[1];
  const int64_t batch = gcap_node_int(node, "batch_axis", 1), time = gcap_node_int(node, "time_axis", 0);
  if (data->rank < 2) {
    return GCAP_SHAPE_REFUSE(node, "input 0 has rank %d, allowed is 2..%d", data->rank, GCAP_MAX_RANK);
  }
  if (batch < 0 || batch > 1 || time != 1 - batch) {
    return GCAP_SHAPE_REFUSE(node, "batch_axis and time_axis are %lld and %lld, allowed are 0 and 1, or 1 and 0",
                             (long long)batch, (long long)time);
  }
  if (lengths->rank != 1 || lengths->shape[0] != data->shape[batch]) {
    return GCAP_SHAPE_REFUSE(node, "input 1 has rank %d and %lld elements, allowed is 1 and %lld, the batch of input 0",
                             lengths->rank, (long long)gcap_shape_count(lengths, 0, lengths->rank),
                             (long long)data->shape[batch]);
  }
  return gcap_infer_same(node, inputs, outputs);
}
