// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Quantization: checks, which scale an element has, and the launch. No state.
#include "ops/kernels/quantize.h"

#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"
#include "ops/kernels/quantize_kernels.h"

#define QUANTIZE_ENTRY(in, out, low, high) \
  [GCAP_DTYPE_OF_##in][GCAP_DTYPE_OF_##out] = (const void*)gcap_kernel_quantize_##in##_##out,
#define DEQUANTIZE_ENTRY(in, out) \
  [GCAP_DTYPE_OF_##in][GCAP_DTYPE_OF_##out] = (const void*)gcap_kernel_dequantize_##in##_##out,
typedef const void* table_t[GCAP_NUM_DTYPES][GCAP_NUM_DTYPES];
static const table_t quantize_kernels = {GCAP_QUANTIZE_KERNELS(QUANTIZE_ENTRY)};
static const table_t dequantize_kernels = {GCAP_DEQUANTIZE_KERNELS(DEQUANTIZE_ENTRY)};

static const unsigned floats = 1u << GCAP_DTYPE_F32 | 1u << GCAP_DTYPE_F16 | 1u << GCAP_DTYPE_BF16;

static bool is_one_number(const gcap_tensor_t* tensor) {
  return tensor->rank <= 1 && gcap_tensor_elements(tensor) == 1;
}

static gcap_status_t check(const gcap_quantization_t* how, const gcap_tensor_t* x, const gcap_tensor_t* y,
                           gcap_dtype_t zero_point_type) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("scale", how->scale));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype_among("a scale", how->scale->dtype, floats));
  GCAP_RETURN_IF_ERROR(gcap_check_shape("y", y, x->rank, x->shape, "the shape of x"));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, "x", x, /*or_same=*/false));
  if (how->zero_point == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("zero_point", how->zero_point));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("zero_point", how->zero_point, zero_point_type, "the type of the integers"));
  if (is_one_number(how->scale) && is_one_number(how->zero_point)) return NULL;
  return gcap_check_shape("zero_point", how->zero_point, how->scale->rank, how->scale->shape, "the shape of the scale");
}

// The shape that scales have, more than one of them.
static gcap_status_t check_scales(const gcap_quantization_t* how, const gcap_tensor_t* x) {
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_check_axis("axis", how->axis, x->rank, &axis));
  if (how->block_size == 0) return gcap_check_shape("scale", how->scale, 1, &x->shape[axis], "one for each index");
  int64_t shape[GCAP_MAX_RANK];
  for (int i = 0; i < x->rank; ++i) shape[i] = x->shape[i];
  shape[axis] = (x->shape[axis] + how->block_size - 1) / how->block_size;
  return gcap_check_shape("scale", how->scale, x->rank, shape, "one for each block");
}

static gcap_status_t take_steps(const gcap_quantization_t* how, const gcap_tensor_t* x,
                                gcap_quantize_params_t* params) {
  const bool is_one = how->scale->rank <= 1 && gcap_tensor_elements(how->scale) == 1 && how->block_size == 0;
  if (is_one) return NULL;
  GCAP_RETURN_IF_ERROR(check_scales(how, x));
  params->axis_size = x->shape[how->axis];
  params->inner = 1;
  for (int i = how->axis + 1; i < x->rank; ++i) params->inner *= x->shape[i];
  params->block = how->block_size > 0 ? how->block_size : 1;
  params->axis_step = how->block_size > 0 ? params->inner : 1;
  params->inner_step = how->block_size > 0;
  params->outer_step = how->block_size > 0 ? how->scale->shape[how->axis] * params->inner : 0;
  return NULL;
}

static int32_t scale_type(gcap_dtype_t dtype) {
  if (dtype == GCAP_DTYPE_F32) return GCAP_SCALE_F32;
  return dtype == GCAP_DTYPE_F16 ? GCAP_SCALE_F16 : GCAP_SCALE_BF16;
}

static gcap_status_t run(gcap_stream_t* stream, const void* kernel, const gcap_quantization_t* how,
                         const gcap_tensor_t* x, const gcap_tensor_t* y) {
  if (kernel == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "x is %s and y is %s, which is no quantization",
                       gcap_dtype_name(x->dtype), gcap_dtype_name(y->dtype));
  }
  gcap_quantize_params_t params = {.x = x->data,
                                   .scale = how->scale->data,
                                   .zero_point = how->zero_point != NULL ? how->zero_point->data : NULL,
                                   .y = y->data,
                                   .count = gcap_tensor_elements(x),
                                   .scale_type = scale_type(how->scale->dtype),
                                   .precision = scale_type(how->precision)};
  GCAP_RETURN_IF_ERROR(take_steps(how, x, &params));
  if (params.count == 0) return NULL;
  return gcap_op_launch(stream, kernel, params.count, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}

gcap_status_t gcap_quantize(gcap_stream_t* stream, const gcap_quantization_t* how, const gcap_tensor_t* x,
                            const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check(how, x, y, y->dtype));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype_among("a quotient", how->precision, floats));
  return run(stream, quantize_kernels[x->dtype][y->dtype], how, x, y);
}

gcap_status_t gcap_dequantize(gcap_stream_t* stream, const gcap_quantization_t* how, const gcap_tensor_t* x,
                              const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check(how, x, y, x->dtype));
  return run(stream, dequantize_kernels[x->dtype][y->dtype], how, x, y);
}

static gcap_status_t check_elements(const char* name, const gcap_tensor_t* tensor, gcap_dtype_t dtype, int64_t count) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor(name, tensor));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype(name, tensor, dtype, "so it is in ONNX"));
  if (gcap_tensor_elements(tensor) == count) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s has %lld elements, allowed is %lld", name,
                     (long long)gcap_tensor_elements(tensor), (long long)count);
}

gcap_status_t gcap_quantization_of(gcap_stream_t* stream, const gcap_tensor_t* extremes, const gcap_tensor_t* scale,
                                   const gcap_tensor_t* zero_point) {
  GCAP_RETURN_IF_ERROR(check_elements("extremes", extremes, GCAP_DTYPE_F32, 2));
  GCAP_RETURN_IF_ERROR(check_elements("scale", scale, GCAP_DTYPE_F32, 1));
  GCAP_RETURN_IF_ERROR(check_elements("zero_point", zero_point, GCAP_DTYPE_U8, 1));
  gcap_quantization_range_params_t params = {extremes->data, scale->data, zero_point->data};
  return gcap_op_launch(stream, (const void*)gcap_kernel_quantization_range, 1, 1, GCAP_BLOCK_THREADS, &params);
}
