// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// node_copy.h: a node's name and attributes, in one block of memory of their own.
#ifndef GCAP_KIT_MODEL_NODE_COPY_H_
#define GCAP_KIT_MODEL_NODE_COPY_H_

#include "gcap/kit/model.h"
#include "gcap/status.h"

// Copies a node with its name and attributes, but with neither inputs nor outputs but their number. `op_type` is a
// literal, which is kept. free ends the copy.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_node_copy(const gcap_node_t* node, const char* op_type, gcap_node_t** out_node);

#endif  // GCAP_KIT_MODEL_NODE_COPY_H_
