// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators of one input, and casts: checks and the launch. No state.
#include <inttypes.h>
#include <math.h>

#include "lib/internal/check_argument.h"
#include "ops/kernels/elementwise.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"
#include "ops/kernels/unary_kernels.h"

enum {
  NUM_OPS = GCAP_UNARY_RECIPROCAL + 1,  // of those that gcap_unary takes
  THREAD_ELEMENTS = 4,                  // of f32 in 16 bytes
};

static const char* const names[GCAP_UNARY_END] = {
    [GCAP_UNARY_RELU] = "RELU",
    [GCAP_UNARY_GELU] = "GELU",
    [GCAP_UNARY_GELU_TANH] = "GELU_TANH",
    [GCAP_UNARY_SIGMOID] = "SIGMOID",
    [GCAP_UNARY_TANH] = "TANH",
    [GCAP_UNARY_ERF] = "ERF",
    [GCAP_UNARY_EXP] = "EXP",
    [GCAP_UNARY_LOG] = "LOG",
    [GCAP_UNARY_SQRT] = "SQRT",
    [GCAP_UNARY_NEG] = "NEG",
    [GCAP_UNARY_ABS] = "ABS",
    [GCAP_UNARY_NOT] = "NOT",
    [GCAP_UNARY_RECIPROCAL] = "RECIPROCAL",
    [GCAP_UNARY_LEAKY_RELU] = "leaky_relu",
    [GCAP_UNARY_CLIP] = "clip",
    [GCAP_UNARY_COS] = "COS",
    [GCAP_UNARY_SIN] = "SIN",
    [GCAP_UNARY_TAN] = "TAN",
    [GCAP_UNARY_ACOS] = "ACOS",
    [GCAP_UNARY_ASIN] = "ASIN",
    [GCAP_UNARY_ATAN] = "ATAN",
    [GCAP_UNARY_COSH] = "COSH",
    [GCAP_UNARY_SINH] = "SINH",
    [GCAP_UNARY_ACOSH] = "ACOSH",
    [GCAP_UNARY_ASINH] = "ASINH",
    [GCAP_UNARY_ATANH] = "ATANH",
    [GCAP_UNARY_CEIL] = "CEIL",
    [GCAP_UNARY_ROUND] = "ROUND",
    [GCAP_UNARY_SIGN] = "SIGN",
    [GCAP_UNARY_ELU] = "ELU",
    [GCAP_UNARY_SELU] = "SELU",
    [GCAP_UNARY_CELU] = "CELU",
    [GCAP_UNARY_HARD_SWISH] = "HARD_SWISH",
    [GCAP_UNARY_SWISH] = "SWISH",
    [GCAP_UNARY_SOFTPLUS] = "SOFTPLUS",
    [GCAP_UNARY_SOFTSIGN] = "SOFTSIGN",
    [GCAP_UNARY_MISH] = "MISH",
    [GCAP_UNARY_THRESHOLDED_RELU] = "THRESHOLDED_RELU",
    [GCAP_UNARY_SHRINK] = "SHRINK",
    [GCAP_UNARY_IS_INF] = "IS_INF",
    [GCAP_UNARY_FLOOR] = "FLOOR",
    [GCAP_UNARY_HARD_SIGMOID] = "HARD_SIGMOID",
    [GCAP_UNARY_BIT_NOT] = "BIT_NOT",
    [GCAP_UNARY_IS_NAN] = "IS_NAN",
};

typedef struct entry {
  const void* kernel;  // NULL: there is none
  gcap_dtype_t y_dtype;
} entry_t;

#define ENTRY(op, name, in, out, formula) \
  [op][GCAP_DTYPE_OF_##in] = {(const void*)gcap_kernel_unary_##name##_##in, GCAP_DTYPE_OF_##out},
static const entry_t table[GCAP_UNARY_END][GCAP_NUM_DTYPES] = {GCAP_UNARY_KERNELS(ENTRY)};
static const entry_t casts[GCAP_NUM_DTYPES][GCAP_NUM_DTYPES] = {GCAP_CAST_KERNELS(ENTRY)};

static gcap_status_t check_arguments(const gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(x);
  GCAP_RETURN_IF_NULL(y);
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_shape("y", y, x->rank, x->shape, "the shape of x"));
  return gcap_check_apart("y", y, "x", x, /*or_same=*/true);
}

static gcap_status_t launch(gcap_stream_t* stream, const void* kernel, const gcap_tensor_t* x, const gcap_tensor_t* y,
                            gcap_unary_params_t params) {
  params.x = x->data;
  params.y = y->data;
  params.count = gcap_tensor_elements(x);
  if (params.count == 0) return NULL;
  return gcap_op_launch(stream, kernel, params.count, GCAP_BLOCK_THREADS * THREAD_ELEMENTS, GCAP_BLOCK_THREADS,
                        &params);
}

// Of checked arguments.
static gcap_status_t run(gcap_stream_t* stream, int op, const gcap_tensor_t* x, const gcap_tensor_t* y,
                         gcap_unary_params_t params) {
  unsigned defined = 0;
  for (int t = 0; t < GCAP_NUM_DTYPES; ++t) defined |= (unsigned)(table[op][t].kernel != NULL) << t;
  GCAP_RETURN_IF_ERROR(gcap_check_dtype_among(names[op], x->dtype, defined));
  const entry_t* entry = &table[op][x->dtype];
  GCAP_RETURN_IF_ERROR(
      gcap_check_dtype("y", y, entry->y_dtype, entry->y_dtype == x->dtype ? "the type of x" : "the type of a test"));
  return launch(stream, entry->kernel, x, y, params);
}

gcap_status_t gcap_unary_of(gcap_stream_t* stream, int op, float alpha, float beta, const gcap_tensor_t* x,
                            const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check_arguments(stream, x, y));
  return run(stream, op, x, y, (gcap_unary_params_t){.alpha = alpha, .beta = beta});
}

gcap_status_t gcap_unary(gcap_stream_t* stream, gcap_unary_op_t op, const gcap_tensor_t* x, const gcap_tensor_t* y) {
  if ((unsigned)op >= NUM_OPS) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "op is %d, allowed are 0..%d", (int)op, NUM_OPS - 1);
  }
  return gcap_unary_of(stream, (int)op, 0.0f, 0.0f, x, y);
}

gcap_status_t gcap_leaky_relu(gcap_stream_t* stream, float alpha, const gcap_tensor_t* x, const gcap_tensor_t* y) {
  return gcap_unary_of(stream, GCAP_UNARY_LEAKY_RELU, alpha, 0.0f, x, y);
}

static bool is_integer(gcap_dtype_t dtype) {
  return dtype == GCAP_DTYPE_I64 || dtype == GCAP_DTYPE_I32 || dtype == GCAP_DTYPE_I8 || dtype == GCAP_DTYPE_U8;
}

// The nearest value of the type of `x`, integers.
static int64_t saturate(const gcap_tensor_t* x, int64_t bound) {
  static const int64_t least[] = {
      [GCAP_DTYPE_I64] = INT64_MIN, [GCAP_DTYPE_I32] = INT32_MIN, [GCAP_DTYPE_I8] = INT8_MIN, [GCAP_DTYPE_U8] = 0};
  static const int64_t most[] = {[GCAP_DTYPE_I64] = INT64_MAX,
                                 [GCAP_DTYPE_I32] = INT32_MAX,
                                 [GCAP_DTYPE_I8] = INT8_MAX,
                                 [GCAP_DTYPE_U8] = UINT8_MAX};
  return bound > most[x->dtype] ? most[x->dtype] : bound < least[x->dtype] ? least[x->dtype] : bound;
}

gcap_status_t gcap_clip_integers(gcap_stream_t* stream, int64_t low, int64_t high, const gcap_tensor_t* x,
                                 const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check_arguments(stream, x, y));
  return run(stream, GCAP_UNARY_CLIP, x, y,
             (gcap_unary_params_t){.low_int = saturate(x, low), .high_int = saturate(x, high)});
}

// The nearest integer to one that may be infinite. 2^63 is the least double that is too large.
static int64_t to_integer(double bound) {
  if (bound >= 0x1p63) return INT64_MAX;
  return bound < -0x1p63 ? INT64_MIN : (int64_t)bound;
}

gcap_status_t gcap_clip(gcap_stream_t* stream, double low, double high, const gcap_tensor_t* x,
                        const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check_arguments(stream, x, y));
  if (isnan(low) || isnan(high)) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is a NaN, allowed are numbers and infinities",
                       isnan(low) ? "low" : "high");
  }
  if (is_integer(x->dtype)) {
    return gcap_clip_integers(stream, to_integer(ceil(low)), to_integer(floor(high)), x, y);
  }
  return run(stream, GCAP_UNARY_CLIP, x, y, (gcap_unary_params_t){.low = (float)low, .high = (float)high});
}

gcap_status_t gcap_cast(gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check_arguments(stream, x, y));
  return launch(stream, casts[y->dtype][x->dtype].kernel, x, y, (gcap_unary_params_t){0});
}
