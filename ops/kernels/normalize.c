// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Softmax, layer normalization and local response normalization: checks and launches. No state.
#include "gcap/kit/ops/normalize.h"

#include <inttypes.h>

#include "lib/internal/check_argument.h"
#include "ops/kernels/lrn_kernels.h"
#include "ops/kernels/normalize_kernels.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"
#include "ops/kernels/row_lanes.h"

static const unsigned float_types = 1u << GCAP_DTYPE_F32 | 1u << GCAP_DTYPE_F16 | 1u << GCAP_DTYPE_BF16;

enum { SOFTMAX, LOG_SOFTMAX, NUM_SOFTMAX };

#define SOFTMAX_softmax SOFTMAX
#define SOFTMAX_log_softmax LOG_SOFTMAX
#define SOFTMAX_ENTRY(name, type, result) \
  [SOFTMAX_##name][GCAP_DTYPE_OF_##type] = (const void*)gcap_kernel_##name##_##type,
static const void* const softmax_kernels[NUM_SOFTMAX][GCAP_NUM_DTYPES] = {GCAP_SOFTMAX_KERNELS(SOFTMAX_ENTRY)};

#define LAYER_NORM_ENTRY(type) [GCAP_DTYPE_OF_##type] = (const void*)gcap_kernel_layer_norm_##type,
static const void* const layer_norm_kernels[GCAP_NUM_DTYPES] = {GCAP_LAYER_NORM_KERNELS(LAYER_NORM_ENTRY)};

#define LRN_ENTRY(type) [GCAP_DTYPE_OF_##type] = (const void*)gcap_kernel_lrn_##type,
static const void* const lrn_kernels[GCAP_NUM_DTYPES] = {GCAP_LRN_KERNELS(LRN_ENTRY)};

// The product of the dimensions first..last - 1.
static int64_t product(const gcap_tensor_t* x, int first, int last) {
  int64_t elements = 1;
  for (int axis = first; axis < last; ++axis) elements *= x->shape[axis];
  return elements;
}

static gcap_status_t check_arguments(const gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* y,
                                     const char* what, bool in_place) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(x);
  GCAP_RETURN_IF_NULL(y);
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype_among(what, x->dtype, float_types));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("y", y, x->dtype, "the type of x"));
  GCAP_RETURN_IF_ERROR(gcap_check_shape("y", y, x->rank, x->shape, "the shape of x"));
  return gcap_check_apart("y", y, "x", x, in_place);
}

static gcap_status_t softmax(gcap_stream_t* stream, int kind, const gcap_tensor_t* x, int given_axis,
                             const gcap_tensor_t* y) {
  int axis;
  GCAP_RETURN_IF_ERROR(gcap_check_axis("axis", given_axis, x->rank, &axis));
  if (gcap_tensor_elements(x) == 0) return NULL;
  gcap_softmax_params_t params = {.x = x->data, .y = y->data};
  params.columns = x->shape[axis];
  params.inner = product(x, axis + 1, x->rank);
  params.rows = product(x, 0, axis) * params.inner;
  const gcap_row_lanes_t lanes = gcap_choose_row_lanes(params.rows, params.columns, params.inner > 1);
  params.lanes = lanes.lanes;
  return gcap_op_launch(stream, softmax_kernels[kind][x->dtype], params.rows, lanes.block_threads / lanes.lanes,
                        lanes.block_threads, &params);
}

gcap_status_t gcap_softmax(gcap_stream_t* stream, const gcap_tensor_t* x, int axis, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check_arguments(stream, x, y, "softmax", /*in_place=*/true));
  return softmax(stream, SOFTMAX, x, axis, y);
}

gcap_status_t gcap_log_softmax(gcap_stream_t* stream, const gcap_tensor_t* x, int axis, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check_arguments(stream, x, y, "log_softmax", /*in_place=*/true));
  return softmax(stream, LOG_SOFTMAX, x, axis, y);
}

// `tensor` has the shape of x's axes from `axis` on.
static gcap_status_t check_weights(const char* name, const gcap_tensor_t* tensor, const gcap_tensor_t* x, int axis,
                                   const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor(name, tensor));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype(name, tensor, x->dtype, "the type of x"));
  GCAP_RETURN_IF_ERROR(
      gcap_check_shape(name, tensor, x->rank - axis, x->shape + axis, "the shape of x from the axis on"));
  return gcap_check_apart("y", y, name, tensor, /*or_same=*/false);
}

// A statistic of each row: f32, and of the shape of x with 1 from `axis` on.
static gcap_status_t check_statistic(const char* name, const gcap_tensor_t* tensor, const gcap_tensor_t* x, int axis) {
  int64_t shape[GCAP_MAX_RANK];
  for (int i = 0; i < x->rank; ++i) shape[i] = i < axis ? x->shape[i] : 1;
  GCAP_RETURN_IF_ERROR(gcap_check_tensor(name, tensor));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype(name, tensor, GCAP_DTYPE_F32, "it is of each row"));
  return gcap_check_shape(name, tensor, x->rank, shape, "the shape of x with 1 from the axis on");
}

// No statistic shares a byte with what else there is. NULL is none.
static gcap_status_t check_statistics(const gcap_tensor_t* const statistics[2], int axis,
                                      const gcap_tensor_t* const others[4]) {
  static const char *const names[] = {"mean", "inv_std_dev"}, *const other_names[] = {"x", "y", "scale", "bias"};
  for (int i = 0; i < 2; ++i) {
    if (statistics[i] == NULL) continue;
    GCAP_RETURN_IF_ERROR(check_statistic(names[i], statistics[i], others[0], axis));
    for (int k = 0; k < 4; ++k) {
      if (others[k] == NULL) continue;
      GCAP_RETURN_IF_ERROR(gcap_check_apart(names[i], statistics[i], other_names[k], others[k], /*or_same=*/false));
    }
  }
  if (statistics[0] == NULL || statistics[1] == NULL) return NULL;
  return gcap_check_apart(names[0], statistics[0], names[1], statistics[1], /*or_same=*/false);
}

gcap_status_t gcap_layer_norm(gcap_stream_t* stream, const gcap_tensor_t* x, int given_axis, float epsilon,
                              const gcap_tensor_t* scale, const gcap_tensor_t* bias, const gcap_tensor_t* y,
                              const gcap_tensor_t* mean, const gcap_tensor_t* inv_std_dev) {
  GCAP_RETURN_IF_ERROR(check_arguments(stream, x, y, "layer_norm", /*in_place=*/true));
  GCAP_RETURN_IF_NULL(scale);
  int axis;
  GCAP_RETURN_IF_ERROR(gcap_check_axis("axis", given_axis, x->rank, &axis));
  if (!(epsilon >= 0.0f)) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "epsilon is %g, allowed are 0 and more", (double)epsilon);
  }
  GCAP_RETURN_IF_ERROR(check_weights("scale", scale, x, axis, y));
  if (bias != NULL) GCAP_RETURN_IF_ERROR(check_weights("bias", bias, x, axis, y));
  const gcap_tensor_t* const statistics[] = {mean, inv_std_dev};
  GCAP_RETURN_IF_ERROR(check_statistics(statistics, axis, (const gcap_tensor_t* const[]){x, y, scale, bias}));
  gcap_layer_norm_params_t params = {.x = x->data,
                                     .y = y->data,
                                     .scale = scale->data,
                                     .bias = bias == NULL ? NULL : bias->data,
                                     .mean = mean == NULL ? NULL : mean->data,
                                     .inv_std_dev = inv_std_dev == NULL ? NULL : inv_std_dev->data,
                                     .rows = product(x, 0, axis),
                                     .columns = product(x, axis, x->rank),
                                     .epsilon = epsilon};
  // Rows without elements have statistics.
  if (params.rows == 0 || (params.columns == 0 && mean == NULL && inv_std_dev == NULL)) return NULL;
  const gcap_row_lanes_t lanes = gcap_choose_row_lanes(params.rows, params.columns, /*across=*/false);
  params.lanes = lanes.lanes;
  return gcap_op_launch(stream, layer_norm_kernels[x->dtype], params.rows, lanes.block_threads / lanes.lanes,
                        lanes.block_threads, &params);
}

gcap_status_t gcap_lrn(gcap_stream_t* stream, const gcap_tensor_t* x, int64_t size, float alpha, float beta, float bias,
                       const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check_arguments(stream, x, y, "lrn", /*in_place=*/false));
  if (x->rank < 2) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "x.rank is %d, allowed are 2..%d: axis 1 are the channels", x->rank,
                       GCAP_MAX_RANK);
  }
  if (size < 1) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "size is %" PRId64 ", allowed are 1 and more", size);
  const int64_t elements = gcap_tensor_elements(x), before = (size - 1) / 2, after = size / 2;
  if (elements == 0) return NULL;
  const int64_t farthest = x->shape[1] - 1;
  gcap_lrn_params_t params = {.x = x->data,
                              .y = y->data,
                              .elements = elements,
                              .channels = x->shape[1],
                              .inner = product(x, 2, x->rank),
                              .before = before < farthest ? before : farthest,
                              .after = after < farthest ? after : farthest,
                              .scale = (float)((double)alpha / (double)size),
                              .beta = beta,
                              .bias = bias,
                              .narrow = elements <= INT32_MAX};
  return gcap_op_launch(stream, lrn_kernels[x->dtype], elements, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}
