// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a matrix product may be asked for. What is appended to the options has the default that was there before it:
// trans_b is true, since b was [n,k] before it could be chosen. No state.
#include <inttypes.h>
#include <stdint.h>

#include "lib/internal/sized.h"
#include "ops/cublaslt/matmul_plan.h"

GCAP_SIZED_OPTIONS(static, gcap_matmul_options);

static gcap_status_t check_range(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %" PRId64 ", allowed are %" PRId64 "..%" PRId64, name, value, least,
                     most);
}

// `stride` is from one of the `batch` matrices to the next.
static gcap_status_t check_matrix(const char* rows_name, int64_t rows, const char* cols_name, int64_t cols,
                                  int64_t batch, int64_t stride) {
  // No element is larger than a float. Rows, columns and batch are at most INT32_MAX, so the product is exact.
  const int64_t most = PTRDIFF_MAX / (int64_t)sizeof(float);
  const bool fits = rows * cols <= most && (batch < 2 || stride <= (most - rows * cols) / (batch - 1));
  if (fits) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "%s is %" PRId64 " and %s is %" PRId64 ", %" PRId64
                     " times: such an array exceeds the address space",
                     rows_name, rows, cols_name, cols, batch);
}

// cuBLASLt refuses more than INT32_MAX rows or columns, and counts a batch in int32_t.
static gcap_status_t check_sizes(const gcap_matmul_options_t* o) {
  GCAP_RETURN_IF_ERROR(check_range("m", o->m, 0, INT32_MAX));
  GCAP_RETURN_IF_ERROR(check_range("n", o->n, 0, INT32_MAX));
  GCAP_RETURN_IF_ERROR(check_range("k", o->k, 0, INT32_MAX));
  GCAP_RETURN_IF_ERROR(check_range("batch", o->batch, 0, INT32_MAX));
  GCAP_RETURN_IF_ERROR(check_range("a_stride", o->a_stride, GCAP_MATMUL_PACKED, INT64_MAX));
  return check_range("b_stride", o->b_stride, GCAP_MATMUL_PACKED, INT64_MAX);
}

static gcap_status_t check_matrices(const gcap_matmul_options_t* o) {
  GCAP_RETURN_IF_ERROR(check_matrix("m", o->m, "k", o->k, o->batch, o->a_stride));
  GCAP_RETURN_IF_ERROR(check_matrix("n", o->n, "k", o->k, o->batch, o->b_stride));
  return check_matrix("m", o->m, "n", o->n, o->batch, o->m * o->n);
}

static gcap_status_t check_types(const gcap_matmul_options_t* o) {
  if (o->dtype != GCAP_DTYPE_F32 && o->dtype != GCAP_DTYPE_F16 && o->dtype != GCAP_DTYPE_BF16) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "dtype is %s (%d), allowed are f32, f16 and bf16",
                       gcap_dtype_name(o->dtype), (int)o->dtype);
  }
  if (o->tf32 && o->dtype != GCAP_DTYPE_F32) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "tf32 is true and dtype is %s: tf32 is for f32",
                       gcap_dtype_name(o->dtype));
  }
  return NULL;
}

static gcap_status_t check_addend(const gcap_matmul_options_t* o) {
  GCAP_RETURN_IF_ERROR(check_range("addend", o->addend, GCAP_MATMUL_ADDEND_NONE, GCAP_MATMUL_ADDEND_SCALAR));
  if (o->batch > 1 && o->addend > GCAP_MATMUL_ADDEND_FULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "addend is %d and batch is %" PRId64 ": in a batch an addend is FULL (%d)", (int)o->addend,
                       o->batch, (int)GCAP_MATMUL_ADDEND_FULL);
  }
  return NULL;
}

static gcap_status_t check_alignment(const gcap_matmul_options_t* o) {
  const size_t alignment = o->alignment_bytes;
  if (alignment <= GCAP_MATMUL_WORKSPACE_ALIGNMENT && (alignment & (alignment - 1)) == 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "alignment_bytes is %zu, allowed are 0 and the powers of 2 up to %d",
                     alignment, (int)GCAP_MATMUL_WORKSPACE_ALIGNMENT);
}

gcap_status_t gcap_matmul_check_options(const gcap_matmul_options_t* given, gcap_matmul_options_t* out_options) {
  gcap_matmul_options_t* o = out_options;
  GCAP_RETURN_IF_ERROR(gcap_matmul_options_read(given, o));
  if (o->handle == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gcap_matmul_create: handle is NULL");
  GCAP_RETURN_IF_ERROR(check_sizes(o));
  if (o->a_stride == GCAP_MATMUL_PACKED) o->a_stride = o->m * o->k;
  if (o->b_stride == GCAP_MATMUL_PACKED) o->b_stride = o->k * o->n;
  GCAP_RETURN_IF_ERROR(check_matrices(o));
  GCAP_RETURN_IF_ERROR(check_range("epilogue", o->epilogue, GCAP_MATMUL_EPILOGUE_NONE, GCAP_MATMUL_EPILOGUE_BIAS_GELU));
  GCAP_RETURN_IF_ERROR(check_types(o));
  GCAP_RETURN_IF_ERROR(check_addend(o));
  GCAP_RETURN_IF_ERROR(check_alignment(o));
  if (o->addend == GCAP_MATMUL_ADDEND_NONE) o->beta = 0.0f;
  return NULL;
}
