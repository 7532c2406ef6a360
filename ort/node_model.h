// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// node_model.h: the making of a gcap_ort_node_model_t, for the two ways in which ONNX Runtime describes a node.
#ifndef GCAP_ORT_NODE_MODEL_H_
#define GCAP_ORT_NODE_MODEL_H_

#include "ort/node.h"

// Makes a model without values, with room for attributes. A node without a name has that of its operator.
gcap_status_t gcap_ort_node_create(const char* name, const char* op_type, size_t max_attributes,
                                   gcap_ort_node_model_t** out_model) GCAP_NODISCARD;
// The values are read: the node and its model take them.
void gcap_ort_node_complete(gcap_ort_node_model_t* m, int num_inputs, int num_outputs);
// Reads type and shape. `*out_why` is empty if gcap has such tensors.
gcap_status_t gcap_ort_value_read(const gcap_ort_host_t* host, const gcap_ort_type_info_t* type, gcap_value_t* value,
                                  gcap_ort_reason_t* out_why) GCAP_NODISCARD;
void gcap_ort_reason_set(gcap_ort_reason_t* reason, const char* format, ...) __attribute__((format(printf, 2, 3)));
static inline bool gcap_ort_reason_is_empty(const gcap_ort_reason_t* reason) { return reason->text[0] == 0; }

#endif  // GCAP_ORT_NODE_MODEL_H_
