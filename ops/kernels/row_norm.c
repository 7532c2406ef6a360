// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The launch of normalizations of rows. No state.
#include "ops/kernels/row_norm.h"

#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"
#include "ops/kernels/row_lanes.h"

#define ENTRY(type) [GCAP_DTYPE_OF_##type] = (const void*)gcap_kernel_row_norm_##type,
static const void* const kernels[GCAP_NUM_DTYPES] = {GCAP_ROW_NORM_KERNELS(ENTRY)};

static gcap_status_t check(const gcap_tensor_t* x, const gcap_tensor_t* const weights[2], const gcap_tensor_t* y) {
  static const char* const names[] = {"scale", "bias"};
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, "x", x, /*or_same=*/true));
  for (int i = 0; i < 2; ++i) {
    if (weights[i] == NULL) continue;
    GCAP_RETURN_IF_ERROR(gcap_check_tensor(names[i], weights[i]));
    GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, names[i], weights[i], /*or_same=*/false));
  }
  return NULL;
}

static gcap_status_t launch(gcap_stream_t* stream, gcap_row_norm_params_t params, const gcap_tensor_t* x,
                            const gcap_tensor_t* scale, const gcap_tensor_t* bias, const gcap_tensor_t* y) {
  if (gcap_tensor_elements(x) == 0) return NULL;
  params.x = x->data;
  params.y = y->data;
  params.scale = scale != NULL ? scale->data : NULL;
  params.bias = bias != NULL ? bias->data : NULL;
  const gcap_row_lanes_t lanes =
      gcap_choose_row_lanes(params.rows, params.columns, /*across=*/params.inner == 1 && params.kept > 1);
  params.lanes = lanes.lanes;
  return gcap_op_launch(stream, kernels[x->dtype], params.rows, lanes.block_threads / lanes.lanes, lanes.block_threads,
                        &params);
}

gcap_status_t gcap_row_norm(gcap_stream_t* stream, const gcap_row_norm_params_t* way, const gcap_tensor_t* x,
                            const gcap_tensor_t* scale, const gcap_tensor_t* bias, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check(x, (const gcap_tensor_t* const[]){scale, bias}, y));
  return launch(stream, *way, x, scale, bias, y);
}

// The sum is written first, so what is read for it is apart from the sum and from y.
static gcap_status_t check_added(const char* name, const gcap_tensor_t* tensor, const gcap_tensor_t* y,
                                 const gcap_tensor_t* sum) {
  if (tensor == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_tensor(name, tensor));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, name, tensor, /*or_same=*/false));
  return sum != NULL ? gcap_check_apart("sum", sum, name, tensor, /*or_same=*/false) : NULL;
}

gcap_status_t gcap_skip_norm(gcap_stream_t* stream, const gcap_row_norm_params_t* way, const gcap_tensor_t* x,
                             const gcap_tensor_t* skip, const gcap_tensor_t* addend, const gcap_tensor_t* scale,
                             const gcap_tensor_t* bias, const gcap_tensor_t* y, const gcap_tensor_t* sum) {
  GCAP_RETURN_IF_ERROR(check(x, (const gcap_tensor_t* const[]){scale, bias}, y));
  if (sum != NULL) {
    GCAP_RETURN_IF_ERROR(gcap_check_tensor("sum", sum));
    GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, "sum", sum, /*or_same=*/false));
  }
  const struct {
    const char* name;
    const gcap_tensor_t* tensor;
  } read[] = {{"x", x}, {"skip", skip}, {"addend", addend}, {"scale", scale}, {"bias", bias}};
  for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); ++i) {
    GCAP_RETURN_IF_ERROR(check_added(read[i].name, read[i].tensor, y, sum));
  }
  gcap_row_norm_params_t params = *way;
  params.skip = skip->data;
  params.addend = addend != NULL ? addend->data : NULL;
  params.sum = sum != NULL ? sum->data : y->data;
  return launch(stream, params, x, scale, bias, y);
}
