// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// node.h: a node of a graph.
#ifndef GCAP_ORT_NODE_H_
#define GCAP_ORT_NODE_H_

#include "ort/node_model.h"

// Reads a node of a graph. `*out_model` is NULL if gcap cannot say what the node is, and `*out_why` says why: a
// type is none of gcap's, or the plugin lists no such attribute.
gcap_status_t gcap_ort_node_read(const gcap_ort_factory_t* factory, const gcap_ort_op_t* op,
                                 const gcap_ort_node_t* node, gcap_ort_node_model_t** out_model,
                                 gcap_ort_reason_t* out_why) GCAP_NODISCARD;

#endif  // GCAP_ORT_NODE_H_
