// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Products of matrices of 8-bit integers: checks, where rows and columns begin, the launch. No state.
#include "ops/kernels/matmul_integer.h"

#include "ops/kernels/matmul_integer_kernels.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

#define ENTRY(A, B) [GCAP_DTYPE_OF_##A][GCAP_DTYPE_OF_##B] = (const void*)gcap_kernel_matmul_integer_##A##_##B,
static const void* const kernels[GCAP_NUM_DTYPES][GCAP_NUM_DTYPES] = {GCAP_MATMUL_INTEGER_KERNELS(ENTRY)};

static gcap_status_t check_operand(const char* name, const gcap_tensor_t* x, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor(name, x));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype_among("matmul_integer", x->dtype, 1u << GCAP_DTYPE_I8 | 1u << GCAP_DTYPE_U8));
  if (x->rank == 0) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s.rank is 0, allowed are 1..%d", name, GCAP_MAX_RANK);
  return gcap_check_apart("y", y, name, x, /*or_same=*/false);
}

// One number, or one for each of `count`.
static gcap_status_t check_zero_point(const char* name, const gcap_tensor_t* zero_point, const gcap_tensor_t* of,
                                      int64_t count, int32_t* out_of_each) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor(name, zero_point));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype(name, zero_point, of->dtype, "the type of its operand"));
  *out_of_each = gcap_tensor_elements(zero_point) != 1;
  if (!*out_of_each) return NULL;
  return gcap_check_shape(name, zero_point, 1, &count, "one for each, or one for all");
}

// The elements between neighbours of a batch axis, counted from behind, 1 being the last; 0: it is broadcast to `size`.
static int64_t batch_step(const gcap_tensor_t* x, int from_end, int64_t size, int64_t matrix) {
  const int axis = x->rank - 2 - from_end;
  if (axis < 0 || x->shape[axis] != size || size == 1) return 0;
  int64_t step = matrix;
  for (int i = axis + 1; i < x->rank - 2; ++i) step *= x->shape[i];
  return step;
}

static void make_map(const gcap_tensor_t* a, const gcap_tensor_t* b, const gcap_tensor_t* y,
                     gcap_matmul_integer_params_t* params) {
  const int batch = y->rank - (a->rank > 1) - (b->rank > 1);
  const int64_t of_a = params->rows * params->depth, of_b = params->depth * params->columns;
  gcap_index_map_begin(&params->map);
  for (int i = 0; i < batch; ++i) {
    const int from_end = batch - i;
    const int64_t steps[GCAP_MAP_MAX_OPERANDS] = {batch_step(a, from_end, y->shape[i], of_a),
                                                  batch_step(b, from_end, y->shape[i], of_b)};
    gcap_index_map_add_axis(&params->map, y->shape[i], steps);
  }
  gcap_index_map_add_axis(&params->map, params->rows, (const int64_t[GCAP_MAP_MAX_OPERANDS]){params->depth, 0});
  gcap_index_map_add_axis(&params->map, params->columns, (const int64_t[GCAP_MAP_MAX_OPERANDS]){0, 1});
  gcap_index_map_end(&params->map);
}

static int64_t larger(int64_t a, int64_t b) { return a == 1 ? b : a; }

// y has the batch to which those of a and b are broadcast, then the rows of a, then the columns of b.
static gcap_status_t check_y(const gcap_tensor_t* a, const gcap_tensor_t* b, const gcap_tensor_t* y,
                             const gcap_matmul_integer_params_t* params) {
  const int of_a = a->rank > 2 ? a->rank - 2 : 0, of_b = b->rank > 2 ? b->rank - 2 : 0;
  const int batch = of_a > of_b ? of_a : of_b;
  int64_t shape[GCAP_MAX_RANK + 1];
  int rank = 0;
  for (int from_end = batch; from_end > 0; --from_end) {
    const int64_t size_a = from_end <= of_a ? a->shape[of_a - from_end] : 1;
    const int64_t size_b = from_end <= of_b ? b->shape[of_b - from_end] : 1;
    shape[rank++] = larger(size_a, size_b);
    if (size_a == size_b || size_a == 1 || size_b == 1) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "a and b have batches of %lld and %lld, which do not fit",
                       (long long)size_a, (long long)size_b);
  }
  if (a->rank > 1) shape[rank++] = params->rows;
  if (b->rank > 1) shape[rank++] = params->columns;
  return gcap_check_shape("y", y, rank, shape, "the batch, the rows of a, and the columns of b");
}

gcap_status_t gcap_matmul_integer(gcap_stream_t* stream, const gcap_tensor_t* a, const gcap_tensor_t* b,
                                  const gcap_tensor_t* a_zero_point, const gcap_tensor_t* b_zero_point,
                                  const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("y", y, GCAP_DTYPE_I32, "it is of sums"));
  GCAP_RETURN_IF_ERROR(check_operand("a", a, y));
  GCAP_RETURN_IF_ERROR(check_operand("b", b, y));
  gcap_matmul_integer_params_t params = {.a = a->data,
                                         .b = b->data,
                                         .a_zero_point = a_zero_point != NULL ? a_zero_point->data : NULL,
                                         .b_zero_point = b_zero_point != NULL ? b_zero_point->data : NULL,
                                         .y = y->data,
                                         .rows = a->rank > 1 ? a->shape[a->rank - 2] : 1,
                                         .columns = b->rank > 1 ? b->shape[b->rank - 1] : 1,
                                         .depth = a->shape[a->rank - 1]};
  params.b_step = params.columns;
  const int64_t rows_of_b = b->rank > 1 ? b->shape[b->rank - 2] : b->shape[0];
  if (rows_of_b != params.depth) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "a has %lld columns, b has %lld rows", (long long)params.depth,
                       (long long)rows_of_b);
  }
  GCAP_RETURN_IF_ERROR(check_y(a, b, y, &params));
  if (a_zero_point != NULL) {
    GCAP_RETURN_IF_ERROR(check_zero_point("a_zero_point", a_zero_point, a, params.rows, &params.of_each_row));
  }
  if (b_zero_point != NULL) {
    GCAP_RETURN_IF_ERROR(check_zero_point("b_zero_point", b_zero_point, b, params.columns, &params.of_each_column));
  }
  if (gcap_tensor_elements(y) == 0) return NULL;
  make_map(a, b, y, &params);
  return gcap_op_launch(stream, kernels[a->dtype][b->dtype], params.map.count, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS,
                        &params);
}
