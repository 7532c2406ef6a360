// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Selections of rows by order: checks and launches. No state.
#include "ops/kernels/select.h"

#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"
#include "ops/kernels/row_lanes.h"
#include "ops/kernels/select_kernels.h"

#define ENTRY(T, bits) [GCAP_DTYPE_OF_##T] = {(const void*)gcap_kernel_arg_##T, (const void*)gcap_kernel_top_##T},
static const struct { const void *arg, *top; } kernels[GCAP_NUM_DTYPES] = {GCAP_SELECT_KERNELS(ENTRY)};

static gcap_status_t check_output(const char* name, const gcap_tensor_t* output, const gcap_tensor_t* x) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor(name, output));
  return gcap_check_apart(name, output, "x", x, /*or_same=*/false);
}

// The elements of the axes behind `axis`.
static int64_t inner_of(const gcap_tensor_t* x, int axis) {
  int64_t inner = 1;
  for (int i = axis + 1; i < x->rank; ++i) inner *= x->shape[i];
  return inner;
}

gcap_status_t gcap_arg(gcap_stream_t* stream, const gcap_tensor_t* x, int axis, bool smallest, bool last,
                       const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(check_output("y", y, x));
  gcap_arg_params_t params = {.x = x->data,
                              .y = y->data,
                              .rows = gcap_tensor_elements(y),
                              .columns = x->shape[axis],
                              .inner = inner_of(x, axis),
                              .smallest = smallest,
                              .last = last};
  if (params.rows == 0) return NULL;
  const gcap_row_lanes_t lanes = gcap_choose_row_lanes(params.rows, params.columns, /*across=*/params.inner > 1);
  params.lanes = lanes.lanes;
  return gcap_op_launch(stream, kernels[x->dtype].arg, params.rows, lanes.block_threads / lanes.lanes,
                        lanes.block_threads, &params);
}

gcap_status_t gcap_top_k(gcap_stream_t* stream, const gcap_tensor_t* x, int axis, bool smallest, bool sorted,
                         const gcap_tensor_t* values, const gcap_tensor_t* indices) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(check_output("values", values, x));
  GCAP_RETURN_IF_ERROR(check_output("indices", indices, x));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("indices", indices, "values", values, /*or_same=*/false));
  const int64_t elements = gcap_tensor_elements(values);
  if (elements == 0) return NULL;
  gcap_top_params_t params = {.x = x->data,
                              .values = values->data,
                              .indices = indices->data,
                              .rows = elements / values->shape[axis],
                              .columns = x->shape[axis],
                              .inner = inner_of(x, axis),
                              .k = values->shape[axis],
                              .smallest = smallest,
                              .sorted = sorted};
  return gcap_op_launch(stream, kernels[x->dtype].top, params.rows, 1, GCAP_BLOCK_THREADS, &params);
}
