// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// node_model.h: a node of ONNX Runtime's as a gcap model of that one node: its making, for the two ways in which ONNX
// Runtime describes a node.
#ifndef GCAP_ORT_NODE_MODEL_H_
#define GCAP_ORT_NODE_MODEL_H_

#include "ort/objects.h"

// Inputs and outputs together. A node that has more is left to other EPs.
#define GCAP_ORT_MAX_VALUES 64

// The rank of a value of which ONNX Runtime knows none before a run. The EP never sees such a value: it is asked with
// ranks of which each is possible.
#define GCAP_ORT_ANY_RANK (-1)

// A model of one node. Input i is value i; the outputs come after the inputs. Dimensions that the runtime does not know
// yet are GCAP_DIM_INFERRED, and ranks GCAP_ORT_ANY_RANK.
typedef struct gcap_ort_node_model {
  gcap_model_t model;
  gcap_node_t node;
  gcap_attributes_t attributes;
  gcap_attribute_t* items;
  char *name, *op_type;
  gcap_value_t values[GCAP_ORT_MAX_VALUES];
  int indices[GCAP_ORT_MAX_VALUES];
  uint32_t hidden_constants;  // bits of inputs: constants on the device, which only the claim and runs see on the host
} gcap_ort_node_model_t;

// Why a node is left to other EPs, in a few words: "a value of type double". Empty: it is not.
typedef struct gcap_ort_reason {
  char text[96];
} gcap_ort_reason_t;

// Whether the kernels of an operator with these host_inputs (gcap_ort_op_t) read an input in host memory.
static inline bool gcap_ort_reads_on_host(uint32_t host_inputs, int input) {
  return input < 32 && (host_inputs >> input & 1) != 0;
}

// Makes a model without values, with room for attributes. A node without a name has that of its operator.
gcap_status_t gcap_ort_node_create(const char* name, const gcap_ort_op_t* op, size_t max_attributes,
                                   gcap_ort_node_model_t** out_model) GCAP_NODISCARD;
// The values are read: the node and its model take them.
void gcap_ort_node_complete(gcap_ort_node_model_t* m, int num_inputs, int num_outputs);
// Reads type and shape. `*out_why` is empty if gcap has such tensors.
gcap_status_t gcap_ort_value_read(const gcap_ort_host_t* host, const gcap_ort_type_info_t* type, gcap_value_t* value,
                                  gcap_ort_reason_t* out_why) GCAP_NODISCARD;
// Makes the value that stands for an input or output that a node leaves out before others.
void gcap_ort_value_leave_out(gcap_value_t* value);
static inline bool gcap_ort_value_is_left_out(const gcap_value_t* value) { return value->name[0] == 0; }
void gcap_ort_reason_set(gcap_ort_reason_t* reason, const char* format, ...) __attribute__((format(printf, 2, 3)));
static inline bool gcap_ort_reason_is_empty(const gcap_ort_reason_t* reason) { return reason->text[0] == 0; }
void gcap_ort_node_free(gcap_ort_node_model_t* model);                // NULL is fine
bool gcap_ort_node_has_any_rank(const gcap_ort_node_model_t* model);  // of one value at least
// Copies a model; the copy has what the model points to, and ends before the model does.
void gcap_ort_node_copy(const gcap_ort_node_model_t* from, gcap_ort_node_model_t* to);

// Reads an attribute that is a tensor of one element: as FLOAT if its type is a float, else as INT. `*out_read` is
// false if it has another number of elements, or a type that gcap lacks.
gcap_status_t gcap_ort_number_read(const gcap_ort_host_t* host, const gcap_ort_value_t* tensor, gcap_attribute_t* item,
                                   bool* out_read) GCAP_NODISCARD;

// gcap's type for one of ONNX Runtime's; false if gcap has none.
bool gcap_ort_dtype(gcap_ort_element_type_t type, gcap_dtype_t* out_dtype);

#endif  // GCAP_ORT_NODE_MODEL_H_
