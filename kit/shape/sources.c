// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that make shapes into tensors and numbers into shapes: Shape, Size, ConstantOfShape, Range.

#include <math.h>

#include "kit/shape/infer.h"

// A bound of Shape's slice: a negative one counts from the end, and both are clamped.
static int64_t clamped(int64_t bound, int rank) {
  if (bound < 0) bound += rank;
  if (bound < 0) return 0;
  return bound < rank ? bound : rank;
}

gcap_status_t gcap_infer_shape_op(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const int rank = inputs[0].rank;
  const int64_t start = clamped(gcap_node_int(node, "start", 0), rank);
  const int64_t end = clamped(gcap_node_int(node, "end", rank), rank);
  const gcap_shape_t shape = {.rank = 1, .at = {end > start ? end - start : 0}};
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

gcap_status_t gcap_infer_size_op(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  (void)inputs;
  const gcap_shape_t shape = {.rank = 0};
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

gcap_status_t gcap_infer_constant_of_shape(const gcap_node_t* node, const gcap_tensor_t* inputs,
                                           gcap_tensor_t* outputs) {
  gcap_numbers_t sizes;
  GCAP_RETURN_IF_ERROR(gcap_shape_read_input(node, 0, &inputs[0], &sizes));
  gcap_shape_t shape = gcap_shape_unknown(sizes.count);
  for (int i = 0; sizes.known && i < sizes.count; ++i) {
    if (sizes.at[i] < 0) {
      return GCAP_SHAPE_REFUSE(node, "number %d of input 0 is %lld, allowed is 0 or more", i, (long long)sizes.at[i]);
    }
    shape.at[i] = sizes.at[i];
  }
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// --- Range ----------------------------------------------------------------------------------------------------------

static const char* const range_inputs[] = {"start", "limit", "delta"};

static gcap_status_t check_range(const gcap_node_t* node, const gcap_tensor_t* inputs, bool* out_known) {
  *out_known = true;
  const gcap_dtype_t dtype = inputs[0].dtype;
  if (dtype != GCAP_DTYPE_I64 && dtype != GCAP_DTYPE_I32 && dtype != GCAP_DTYPE_F32) {
    return GCAP_SHAPE_REFUSE(node, "input 0 is of type %s, allowed is i64, i32 or f32", gcap_dtype_name(dtype));
  }
  for (int i = 0; i < 3; ++i) {
    if (inputs[i].dtype != dtype) {
      return GCAP_SHAPE_REFUSE(node, "input %d is of type %s, input 0 of type %s", i, gcap_dtype_name(inputs[i].dtype),
                               gcap_dtype_name(dtype));
    }
    // ONNX says a scalar; ONNX's own functions say a list of one number, and ONNX Runtime takes it.
    const bool is_list_of_one = inputs[i].rank == 1 && inputs[i].shape[0] == 1;
    if (inputs[i].rank != 0 && !is_list_of_one) {
      return GCAP_SHAPE_REFUSE(node, "input %d (%s) has rank %d, allowed is 0, or 1 with one number", i,
                               range_inputs[i], inputs[i].rank);
    }
    if (inputs[i].data == NULL) *out_known = false;
  }
  return NULL;
}

static gcap_status_t zero_delta(const gcap_node_t* node) {
  return GCAP_SHAPE_REFUSE(node, "input 2 (delta) is 0, allowed is any other number");
}

static gcap_status_t too_long(const gcap_node_t* node) {
  return GCAP_SHAPE_REFUSE(node, "output 0 would have more than %lld elements", (long long)INT64_MAX);
}

// The difference of two i64 needs 64 bits without a sign, and so does the size of the smallest one.
static gcap_status_t count_integers(const gcap_node_t* node, const gcap_tensor_t* inputs, int64_t* out_count) {
  const int64_t start = gcap_shape_integer_at(&inputs[0], 0), limit = gcap_shape_integer_at(&inputs[1], 0);
  const int64_t delta = gcap_shape_integer_at(&inputs[2], 0);
  if (delta == 0) return zero_delta(node);
  const uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
  const uint64_t way = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
  const bool none = delta > 0 ? start >= limit : start <= limit;
  const uint64_t count = none ? 0 : (way - 1) / step + 1;
  if (count > INT64_MAX) return too_long(node);
  *out_count = (int64_t)count;
  return NULL;
}

static gcap_status_t count_floats(const gcap_node_t* node, const gcap_tensor_t* inputs, int64_t* out_count) {
  double at[3];
  for (int i = 0; i < 3; ++i) {
    at[i] = *(const float*)inputs[i].data;
    if (!isfinite(at[i])) {
      return GCAP_SHAPE_REFUSE(node, "input %d (%s) is %g, allowed is a finite number", i, range_inputs[i], at[i]);
    }
  }
  if (at[2] == 0) return zero_delta(node);
  const double count = ceil((at[1] - at[0]) / at[2]);
  if (count >= 0x1p63) return too_long(node);
  *out_count = count > 0 ? (int64_t)count : 0;
  return NULL;
}

gcap_status_t gcap_infer_range(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  bool known = false;
  GCAP_RETURN_IF_ERROR(check_range(node, inputs, &known));
  gcap_shape_t shape = gcap_shape_unknown(1);
  if (known && inputs[0].dtype == GCAP_DTYPE_F32) GCAP_RETURN_IF_ERROR(count_floats(node, inputs, &shape.at[0]));
  if (known && inputs[0].dtype != GCAP_DTYPE_F32) GCAP_RETURN_IF_ERROR(count_integers(node, inputs, &shape.at[0]));
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}
