// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reductions: checks, the axes that stay and those that go, the launch. No state.
#include "gcap/kit/ops/reduce.h"

#include <inttypes.h>
#include <string.h>

#include "lib/internal/check_argument.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"
#include "ops/kernels/reduce_kernels.h"
#include "ops/kernels/row_lanes.h"

enum { NUM_OPS = GCAP_REDUCE_LOG_SUM + 1 };

static const char* const names[NUM_OPS] = {"SUM", "MEAN", "MAX", "MIN", "PROD", "L1", "L2", "SUM_SQUARE", "LOG_SUM"};

#define ENTRY(op, name, type, accumulator, start, step, end, combination, result) \
  [op][GCAP_DTYPE_OF_##type] = (const void*)gcap_kernel_reduce_##name##_##type,
static const void* const table[NUM_OPS][GCAP_NUM_DTYPES] = {GCAP_REDUCE_KERNELS(ENTRY)};

// Marks the axes; *reduces has one place for each axis of x.
static gcap_status_t mark_axes(const gcap_tensor_t* x, const int64_t* axes, int num_axes, bool* reduces) {
  if (num_axes < 0 || num_axes > x->rank) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "num_axes is %d, allowed are 0..%d, the rank of x", num_axes, x->rank);
  }
  if (num_axes > 0) GCAP_RETURN_IF_NULL(axes);
  for (int i = 0; i < num_axes; ++i) {
    if (axes[i] < -x->rank || axes[i] >= x->rank) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "axes[%d] is %" PRId64 ", allowed are %d..%d", i, axes[i], -x->rank,
                         x->rank - 1);
    }
    bool* const mark = &reduces[axes[i] < 0 ? axes[i] + x->rank : axes[i]];
    if (*mark) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "axes[%d] is %" PRId64 ", named before", i, axes[i]);
    *mark = true;
  }
  return NULL;
}

static gcap_status_t check_y(const gcap_tensor_t* x, const bool* reduces, const gcap_tensor_t* y) {
  int64_t whole[GCAP_MAX_RANK], rest[GCAP_MAX_RANK];
  int rest_rank = 0;
  for (int axis = 0; axis < x->rank; ++axis) {
    whole[axis] = reduces[axis] ? 1 : x->shape[axis];
    if (!reduces[axis]) rest[rest_rank++] = x->shape[axis];
  }
  if (y->rank == x->rank) {
    return gcap_check_shape("y", y, x->rank, whole, "the shape of x with the reduced axes 1, or without them");
  }
  return gcap_check_shape("y", y, rest_rank, rest, "the shape of x without the reduced axes, or with these 1");
}

// Returns whether neighbours in x belong to different elements of y.
static bool make_maps(const gcap_tensor_t* x, const bool* reduces, gcap_reduce_params_t* params) {
  int64_t strides[GCAP_MAX_RANK];
  int64_t stride = 1;
  bool across = false, seen = false;
  for (int axis = x->rank - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= x->shape[axis];
    if (!seen && x->shape[axis] > 1) across = !reduces[axis], seen = true;
  }
  gcap_index_map_begin(&params->kept);
  gcap_index_map_begin(&params->reduced);
  for (int axis = 0; axis < x->rank; ++axis) {
    gcap_index_map_t* map = reduces[axis] ? &params->reduced : &params->kept;
    gcap_index_map_add_axis(map, x->shape[axis], (const int64_t[]){strides[axis], 0, 0});
  }
  gcap_index_map_end(&params->kept);
  gcap_index_map_end(&params->reduced);
  params->terms = params->reduced.count;
  return across;
}

gcap_status_t gcap_reduce(gcap_stream_t* stream, gcap_reduce_op_t op, const gcap_tensor_t* x, const int64_t* axes,
                          int num_axes, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(x);
  GCAP_RETURN_IF_NULL(y);
  if ((unsigned)op >= NUM_OPS) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "op is %d, allowed are 0..%d", (int)op, NUM_OPS - 1);
  }
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  unsigned defined = 0;
  for (int t = 0; t < GCAP_NUM_DTYPES; ++t) defined |= (unsigned)(table[op][t] != NULL) << t;
  GCAP_RETURN_IF_ERROR(gcap_check_dtype_among(names[op], x->dtype, defined));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("y", y, x->dtype, "the type of x"));
  bool reduces[GCAP_MAX_RANK] = {false};
  GCAP_RETURN_IF_ERROR(mark_axes(x, axes, num_axes, reduces));
  GCAP_RETURN_IF_ERROR(check_y(x, reduces, y));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, "x", x, /*or_same=*/false));
  if (gcap_tensor_elements(y) == 0) return NULL;
  gcap_reduce_params_t params = {.x = x->data, .y = y->data};
  const bool across = make_maps(x, reduces, &params);
  const gcap_row_lanes_t lanes = gcap_choose_row_lanes(params.kept.count, params.terms, across);
  params.lanes = lanes.lanes;
  return gcap_op_launch(stream, table[op][x->dtype], params.kept.count, lanes.block_threads / lanes.lanes,
                        lanes.block_threads, &params);
}
