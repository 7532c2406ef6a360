// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators of two inputs with broadcasting: checks, the index map, the launch. No state.
#include "lib/internal/check_argument.h"
#include "ops/kernels/binary_kernels.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/elementwise.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"
#include "ops/kernels/pow.h"

enum {
  NUM_OPS = GCAP_BINARY_OR + 1,  // of those that gcap_binary takes
  THREAD_ELEMENTS = 4,           // of f32 in 16 bytes
};

static const char* const names[GCAP_BINARY_END] = {
    [GCAP_BINARY_ADD] = "ADD",
    [GCAP_BINARY_SUB] = "SUB",
    [GCAP_BINARY_MUL] = "MUL",
    [GCAP_BINARY_DIV] = "DIV",
    [GCAP_BINARY_POW] = "POW",
    [GCAP_BINARY_MIN] = "MIN",
    [GCAP_BINARY_MAX] = "MAX",
    [GCAP_BINARY_EQUAL] = "EQUAL",
    [GCAP_BINARY_LESS] = "LESS",
    [GCAP_BINARY_GREATER] = "GREATER",
    [GCAP_BINARY_AND] = "AND",
    [GCAP_BINARY_OR] = "OR",
    [GCAP_BINARY_LESS_OR_EQUAL] = "LESS_OR_EQUAL",
    [GCAP_BINARY_GREATER_OR_EQUAL] = "GREATER_OR_EQUAL",
    [GCAP_BINARY_PRELU] = "PRELU",
    [GCAP_BINARY_XOR] = "XOR",
    [GCAP_BINARY_MOD] = "MOD",
    [GCAP_BINARY_FMOD] = "FMOD",
    [GCAP_BINARY_BIT_AND] = "BIT_AND",
    [GCAP_BINARY_BIT_OR] = "BIT_OR",
    [GCAP_BINARY_BIT_XOR] = "BIT_XOR",
    [GCAP_BINARY_SHIFT_LEFT] = "SHIFT_LEFT",
    [GCAP_BINARY_SHIFT_RIGHT] = "SHIFT_RIGHT",
    [GCAP_BINARY_GELU] = "GELU",
    [GCAP_BINARY_GELU_TANH] = "GELU_TANH",
    [GCAP_BINARY_RUNNING_MEAN] = "RUNNING_MEAN",
};

typedef struct entry {
  const void* kernel;  // NULL: there is none
  gcap_dtype_t y_dtype;
} entry_t;

#define ENTRY(op, name, in, out, formula) \
  [op][GCAP_DTYPE_OF_##in] = {(const void*)gcap_kernel_binary_##name##_##in, GCAP_DTYPE_OF_##out},
static const entry_t table[GCAP_BINARY_END][GCAP_NUM_DTYPES] = {GCAP_BINARY_KERNELS(ENTRY)};

static gcap_status_t check_types(int op, const gcap_tensor_t* a, const gcap_tensor_t* b, const gcap_tensor_t* y) {
  unsigned defined = 0;
  for (int t = 0; t < GCAP_NUM_DTYPES; ++t) defined |= (unsigned)(table[op][t].kernel != NULL) << t;
  GCAP_RETURN_IF_ERROR(gcap_check_dtype_among(names[op], a->dtype, defined));
  if (op == GCAP_BINARY_POW) {
    GCAP_RETURN_IF_ERROR(gcap_check_dtype_among("POW with an exponent", b->dtype, gcap_pow_types()));
  } else {
    GCAP_RETURN_IF_ERROR(gcap_check_dtype("b", b, a->dtype, "the type of a"));
  }
  const gcap_dtype_t y_dtype = table[op][a->dtype].y_dtype;
  return gcap_check_dtype("y", y, y_dtype, y_dtype == a->dtype ? "the type of a" : "the type of a comparison");
}

gcap_status_t gcap_binary_of(gcap_stream_t* stream, int op, float alpha, const gcap_tensor_t* a, const gcap_tensor_t* b,
                             const gcap_tensor_t* y) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(a);
  GCAP_RETURN_IF_NULL(b);
  GCAP_RETURN_IF_NULL(y);
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("a", a));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("b", b));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(check_types(op, a, b, y));
  const gcap_named_tensor_t inputs[] = {{"a", a}, {"b", b}};
  gcap_binary_params_t params = {.a = a->data, .b = b->data, .y = y->data, .alpha = alpha};
  GCAP_RETURN_IF_ERROR(gcap_broadcast(inputs, 2, y, &params.map));
  if (gcap_tensor_elements(y) == 0) return NULL;
  if (a->dtype != b->dtype) return gcap_pow(stream, a, b, y, &params.map);
  return gcap_op_launch(stream, table[op][a->dtype].kernel, params.map.count, GCAP_BLOCK_THREADS * THREAD_ELEMENTS,
                        GCAP_BLOCK_THREADS, &params);
}

gcap_status_t gcap_binary(gcap_stream_t* stream, gcap_binary_op_t op, const gcap_tensor_t* a, const gcap_tensor_t* b,
                          const gcap_tensor_t* y) {
  if ((unsigned)op >= NUM_OPS) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "op is %d, allowed are 0..%d", (int)op, NUM_OPS - 1);
  }
  return gcap_binary_of(stream, (int)op, 0.0f, a, b, y);
}
