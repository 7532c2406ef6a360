// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// op.h: one row an operator, and what its function gets.
#ifndef GCAP_KIT_CPU_EP_OP_H_
#define GCAP_KIT_CPU_EP_OP_H_

#include <stdbool.h>

#include "gcap/kit/ep.h"

#define GCAP_CPU_NUM_DTYPES (GCAP_DTYPE_U8 + 1)

// Functions on one element, by type; NULL where an operator lacks the type. `binary` is false if it divides by zero.
typedef void (*gcap_cpu_unary_t)(const void* a, void* out);
typedef bool (*gcap_cpu_binary_t)(const void* a, const void* b, void* out);

typedef struct gcap_cpu_op gcap_cpu_op_t;

// One computation. By then types are the row's, shapes those of gcap_infer_shapes, and where there are elements, there
// is memory.
typedef struct gcap_cpu_call {
  const gcap_cpu_op_t* op;
  const gcap_node_t* node;  // its name and attributes; not its values
  const gcap_tensor_t* inputs;
  gcap_tensor_t* output;
} gcap_cpu_call_t;

typedef gcap_status_t gcap_cpu_compute_t(const gcap_cpu_call_t* call);

struct gcap_cpu_op {
  const char* op_type;
  // The types of the inputs, then '>', then that of the output. T: one of `types`, the same everywhere. U: any of
  // `types`. S: any type, of which the shape alone is read. L: i64. I: i32 or i64. B: bool. What follows '?' may be
  // absent; '*' repeats the one before.
  const char* signature;
  unsigned types;  // bits 1 << gcap_dtype_t
  gcap_cpu_compute_t* compute;
  const gcap_cpu_unary_t* unary;                                        // by type
  const gcap_cpu_binary_t* binary;                                      // by type
  bool (*accepts)(const gcap_model_t* model, const gcap_node_t* node);  // optional: attributes that do not fit a type
};

// The row of an operator; NULL if there is none.
const gcap_cpu_op_t* gcap_cpu_op_find(const char* op_type);
// True if the node's values have the types that the row names, and its attributes fit them.
bool gcap_cpu_op_accepts(const gcap_cpu_op_t* op, const gcap_model_t* model, const gcap_node_t* node);
// True if the kernel reads no content of this input.
bool gcap_cpu_op_reads_shape_only(const gcap_cpu_op_t* op, int input);

// A refusal that names the node.
#define GCAP_CPU_REFUSE(call, format, ...) \
  GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s' (%s): " format, (call)->node->name, (call)->node->op_type, __VA_ARGS__)

gcap_cpu_compute_t gcap_cpu_shape, gcap_cpu_size, gcap_cpu_range, gcap_cpu_constant_of_shape;     // shape.c
gcap_cpu_compute_t gcap_cpu_unary, gcap_cpu_binary, gcap_cpu_fold, gcap_cpu_mod, gcap_cpu_where;  // elementwise.c
gcap_cpu_compute_t gcap_cpu_cast;                                                                 // cast.c
gcap_cpu_compute_t gcap_cpu_copy, gcap_cpu_concat, gcap_cpu_gather, gcap_cpu_slice, gcap_cpu_transpose;  // layout.c
gcap_cpu_compute_t gcap_cpu_expand;                                                                      // layout.c
gcap_cpu_compute_t gcap_cpu_reduce_prod, gcap_cpu_reduce_sum, gcap_cpu_reduce_max;                       // reduce.c
gcap_cpu_compute_t gcap_cpu_matmul;                                                                      // matmul.c

// Elements by type (elements.c).
extern const gcap_cpu_unary_t gcap_cpu_neg[GCAP_CPU_NUM_DTYPES], gcap_cpu_abs[GCAP_CPU_NUM_DTYPES],
    gcap_cpu_relu[GCAP_CPU_NUM_DTYPES];
extern const gcap_cpu_unary_t gcap_cpu_not[GCAP_CPU_NUM_DTYPES];
extern const gcap_cpu_binary_t gcap_cpu_add[GCAP_CPU_NUM_DTYPES], gcap_cpu_sub[GCAP_CPU_NUM_DTYPES],
    gcap_cpu_mul[GCAP_CPU_NUM_DTYPES];
extern const gcap_cpu_binary_t gcap_cpu_div[GCAP_CPU_NUM_DTYPES], gcap_cpu_floor_mod[GCAP_CPU_NUM_DTYPES],
    gcap_cpu_fmod[GCAP_CPU_NUM_DTYPES];
extern const gcap_cpu_binary_t gcap_cpu_min[GCAP_CPU_NUM_DTYPES], gcap_cpu_max[GCAP_CPU_NUM_DTYPES];
extern const gcap_cpu_binary_t gcap_cpu_equal[GCAP_CPU_NUM_DTYPES], gcap_cpu_less[GCAP_CPU_NUM_DTYPES],
    gcap_cpu_greater[GCAP_CPU_NUM_DTYPES];
extern const gcap_cpu_binary_t gcap_cpu_and[GCAP_CPU_NUM_DTYPES], gcap_cpu_or[GCAP_CPU_NUM_DTYPES];

#endif  // GCAP_KIT_CPU_EP_OP_H_
