// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// node.h: a node of ONNX Runtime's as a gcap model of that one node.
#ifndef GCAP_ORT_NODE_H_
#define GCAP_ORT_NODE_H_

#include "ort/factory.h"

// Inputs and outputs together. A node that has more is left to other EPs.
#define GCAP_ORT_MAX_VALUES 64

// A model of one node. Input i is value i; the outputs come after the inputs. Dimensions that the runtime does not know
// yet are GCAP_DIM_INFERRED.
typedef struct gcap_ort_node_model {
  gcap_model_t model;
  gcap_node_t node;
  gcap_attributes_t attributes;
  gcap_attribute_t* items;
  char* name;
  gcap_value_t values[GCAP_ORT_MAX_VALUES];
  int indices[GCAP_ORT_MAX_VALUES];
} gcap_ort_node_model_t;

// Why a node is left to other EPs, in a few words: "a value of unknown rank". Empty: it is not.
typedef struct gcap_ort_reason {
  char text[96];
} gcap_ort_reason_t;

// Whether the kernels of an operator with these host_inputs (gcap_ort_op_t) read an input in host memory.
static inline bool gcap_ort_reads_on_host(uint32_t host_inputs, int input) {
  return input < 32 && (host_inputs >> input & 1) != 0;
}

// Reads a node of a graph. `*out_model` is NULL if gcap cannot say what the node is, and `*out_why` says why: an
// optional input is left out before others, a rank is unknown, a type is none of gcap's, or the plugin lists no such
// attribute.
gcap_status_t gcap_ort_node_read(const gcap_ort_factory_t* factory, const gcap_ort_node_t* node,
                                 gcap_ort_node_model_t** out_model, gcap_ort_reason_t* out_why) GCAP_NODISCARD;
// The same of the node that a kernel is made for, which was claimed. Constants that the runtime has in host memory come
// along.
gcap_status_t gcap_ort_node_read_kernel(const gcap_ort_factory_t* factory, const gcap_ort_op_t* op,
                                        const gcap_ort_kernel_info_t* info,
                                        gcap_ort_node_model_t** out_model) GCAP_NODISCARD;
void gcap_ort_node_free(gcap_ort_node_model_t* model);  // NULL is fine

// gcap's type for one of ONNX Runtime's; false if gcap has none.
bool gcap_ort_dtype(gcap_ort_element_type_t type, gcap_dtype_t* out_dtype);

#endif  // GCAP_ORT_NODE_H_
