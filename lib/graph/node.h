// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// node.h: what gcap reads from a graph's nodes, and how it names them.
#ifndef GCAP_LIB_GRAPH_NODE_H_
#define GCAP_LIB_GRAPH_NODE_H_

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "gcap/status.h"

typedef struct gcap_graph_node_list {
  cudaGraphNode_t* nodes;
  enum cudaGraphNodeType* types;  // of each
  size_t count;
  size_t allocated_bytes;  // by allocation nodes
} gcap_graph_node_list_t;

// The nodes of a graph, without those of child graphs.
//   RESOURCE_EXHAUSTED  no host memory for the list
gcap_status_t gcap_graph_node_list_read(cudaGraph_t graph, gcap_graph_node_list_t* out_nodes);
void gcap_graph_node_list_free(gcap_graph_node_list_t* nodes);

const char* gcap_graph_node_type_name(cudaGraphNode_t node);  // "kernel"
// A kernel's name; "" where the runtime does not know the kernel, as it does not know a library's.
const char* gcap_graph_kernel_name(const void* function);
const char* gcap_graph_node_instantiate_result_name(cudaGraphInstantiateResult result);

// Why an executable would not be updated to the graph of `nodes`, in words. Consumes `status`.
gcap_status_t gcap_graph_node_explain_refusal(gcap_status_t status, const cudaGraphExecUpdateResultInfo* info,
                                              const gcap_graph_node_list_t* nodes, size_t nodes_before);

#endif  // GCAP_LIB_GRAPH_NODE_H_
