// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// node.h: how messages name the node at fault.
#ifndef GCAP_LIB_GRAPH_NODE_H_
#define GCAP_LIB_GRAPH_NODE_H_

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "gcap/status.h"
#include "lib/contents/inner.h"

const char* gcap_graph_node_type_name(cudaGraphNode_t node);  // "kernel"
const char* gcap_graph_node_instantiate_result_name(cudaGraphInstantiateResult result);

// Why an executable would not be updated to the graph of these contents, in words. Consumes `status`.
gcap_status_t gcap_graph_node_explain_refusal(gcap_status_t status, const cudaGraphExecUpdateResultInfo* info,
                                              const gcap_contents_t* contents, size_t nodes_before);

#endif  // GCAP_LIB_GRAPH_NODE_H_
