// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// model.h: a model as hosts and EPs see it: values, nodes, attributes.
#ifndef GCAP_KIT_MODEL_H_
#define GCAP_KIT_MODEL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// A dimension that the inputs of a run decide. In one run, all dimensions of one symbol have one size.
#define GCAP_DIM_SYMBOL(number) (-1 - (int64_t)(number))  // `number` is an index into gcap_model_t::symbols
// A dimension that follows from the node that makes the value (gcap_ep_infer_shapes).
#define GCAP_DIM_INFERRED INT64_MIN

// A value of a model: an input, an output, an intermediate value, or a constant (with `host_data`).
typedef struct gcap_value {
  const char* name;  // required; "": what a node leaves out before others, an input or an output of shape [0]
  gcap_dtype_t dtype;
  int rank;                      // 0..GCAP_MAX_RANK
  int64_t shape[GCAP_MAX_RANK];  // each >= 0; or GCAP_DIM_SYMBOL, GCAP_DIM_INFERRED, but not in a constant
  const void* host_data;         // of a constant: its content in host memory; else NULL
} gcap_value_t;

typedef enum gcap_attribute_kind {
  GCAP_ATTRIBUTE_INT = 0,
  GCAP_ATTRIBUTE_FLOAT,
  GCAP_ATTRIBUTE_INTS,    // `count` of them
  GCAP_ATTRIBUTE_STRING,  // zero-terminated; of a list of strings: one, with commas between
} gcap_attribute_kind_t;

typedef struct gcap_attribute {
  const char* name;  // as in ONNX: "axis", "alpha", …
  gcap_attribute_kind_t kind;
  size_t count;  // of INTS; else ignored
  union {
    int64_t i;
    float f;
    const int64_t* ints;
    const char* string;
  };
} gcap_attribute_t;

// The attributes of a node, by name.
typedef struct gcap_attributes {
  const gcap_attribute_t* items;
  size_t count;
} gcap_attributes_t;

// A node. Inputs and outputs are indices into the model's values.
typedef struct gcap_node {
  const char* op_type;  // required; as in ONNX: "Conv", "Gemm", …; of another domain "com.microsoft.FusedMatMul"
  const char* name;     // required
  const int* inputs;
  int num_inputs;
  const int* outputs;
  int num_outputs;
  // Agreed between the model's maker and the EP, by op_type. gcap's own EPs read a gcap_attributes_t; NULL: none.
  const void* attributes;
} gcap_node_t;

// Model: nodes in an order in which they can run.
// Thread:   a plain value. gcap only reads it.
// Capture:  legal.
// Lifetime: all that the model points to stays valid until its sessions are created; of a model with a symbol, until
//           its sessions are destroyed.
typedef struct gcap_model {
  const gcap_value_t* values;
  int num_values;
  const gcap_node_t* nodes;
  int num_nodes;
  const int* inputs;  // indices into values
  int num_inputs;
  const int* outputs;
  int num_outputs;
  const char* const* symbols;  // the names of the symbols, for messages: "batch"
  int num_symbols;
} gcap_model_t;

// The attributes of a node whose `attributes` is a gcap_attributes_t. A name that the node lacks, or has with another
// kind, gives the fallback. No argument may be NULL, but a fallback.
GCAP_API int64_t gcap_node_int(const gcap_node_t* node, const char* name, int64_t fallback);
GCAP_API float gcap_node_float(const gcap_node_t* node, const char* name, float fallback);
GCAP_API const char* gcap_node_string(const gcap_node_t* node, const char* name, const char* fallback);
// Returns the numbers and sets `*out_count`; NULL and 0 if the node has none of the name.
GCAP_API const int64_t* gcap_node_ints(const gcap_node_t* node, const char* name, size_t* out_count);
GCAP_API bool gcap_node_has(const gcap_node_t* node, const char* name);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_MODEL_H_
