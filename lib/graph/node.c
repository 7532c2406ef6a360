// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Nodes: how many a graph has, what they allocate, and how a message names one. If the driver does not give an
// explanation, the explanation is left out; that is not a failure. Nothing here is shared, so nothing is locked.

#include "lib/graph/node.h"

#include <stdio.h>
#include <stdlib.h>

static gcap_status_t add_node(gcap_graph_node_list_t* list, size_t index) {
  const cudaGraphNode_t node = list->nodes[index];
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphNodeGetType(node, &list->types[index])));
  if (list->types[index] != cudaGraphNodeTypeMemAlloc) return NULL;
  struct cudaMemAllocNodeParams params;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphMemAllocNodeGetParams(node, &params)));
  list->allocated_bytes += params.bytesize;
  return NULL;
}

gcap_status_t gcap_graph_node_list_read(cudaGraph_t graph, gcap_graph_node_list_t* out_nodes) {
  *out_nodes = (gcap_graph_node_list_t){0};
  gcap_graph_node_list_t list = {0};
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphGetNodes(graph, NULL, &list.count)));
  if (list.count == 0) return NULL;
  list.nodes = calloc(list.count, sizeof(*list.nodes));
  list.types = calloc(list.count, sizeof(*list.types));
  gcap_status_t status = NULL;
  if (list.nodes == NULL || list.types == NULL) {
    status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a list of %zu nodes", list.count);
  }
  if (status == NULL) status = GCAP_CUDA(cudaGraphGetNodes(graph, list.nodes, &list.count));
  for (size_t i = 0; status == NULL && i < list.count; ++i) status = add_node(&list, i);
  if (status == NULL) {
    *out_nodes = list;
  } else {
    gcap_graph_node_list_free(&list);
  }
  return status;
}

void gcap_graph_node_list_free(gcap_graph_node_list_t* nodes) {
  free(nodes->nodes);
  free(nodes->types);
  *nodes = (gcap_graph_node_list_t){0};
}

// --- Names ----------------------------------------------------------------------------------------------------------

// cudaGraphNodeTypeCount where the driver will not say.
static enum cudaGraphNodeType type_of(cudaGraphNode_t node) {
  enum cudaGraphNodeType type = cudaGraphNodeTypeCount;
  gcap_status_t status = GCAP_CUDA(cudaGraphNodeGetType(node, &type));
  if (status == NULL) return type;
  gcap_status_ignore(status);  // only an explanation is lost
  return cudaGraphNodeTypeCount;
}

static const char* type_name(enum cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeKernel: return "kernel";
    case cudaGraphNodeTypeMemcpy: return "memcpy";
    case cudaGraphNodeTypeMemset: return "memset";
    case cudaGraphNodeTypeHost: return "host";
    case cudaGraphNodeTypeGraph: return "child graph";
    case cudaGraphNodeTypeEmpty: return "empty";
    case cudaGraphNodeTypeMemAlloc: return "memory allocation";
    case cudaGraphNodeTypeMemFree: return "memory free";
    case cudaGraphNodeTypeCount: return "unknown";
    default: return "other";
  }
}

const char* gcap_graph_node_type_name(cudaGraphNode_t node) { return type_name(type_of(node)); }

const char* gcap_graph_node_instantiate_result_name(cudaGraphInstantiateResult result) {
  switch (result) {
    case cudaGraphInstantiateSuccess: return "success";
    case cudaGraphInstantiateInvalidStructure: return "invalid structure";
    case cudaGraphInstantiateNodeOperationNotSupported: return "node operation not supported";
    case cudaGraphInstantiateMultipleDevicesNotSupported: return "multiple devices not supported";
    default: return "error";
  }
}

static const char* update_result_text(enum cudaGraphExecUpdateResult result) {
  switch (result) {
    case cudaGraphExecUpdateErrorTopologyChanged: return "the topology changed";
    case cudaGraphExecUpdateErrorNodeTypeChanged: return "the type of a node changed";
    case cudaGraphExecUpdateErrorFunctionChanged: return "the function of a kernel changed";
    case cudaGraphExecUpdateErrorParametersChanged: return "the parameters of a node changed";
    case cudaGraphExecUpdateErrorNotSupported: return "something of a node cannot be updated";
    case cudaGraphExecUpdateErrorUnsupportedFunctionChange: return "the function of a kernel changed too much";
    case cudaGraphExecUpdateErrorAttributesChanged: return "the attributes of a node changed";
    default: return "the driver gives no reason";
  }
}

const char* gcap_graph_kernel_name(const void* function) {
  const char* name = "";
  gcap_status_t status = GCAP_CUDA(cudaFuncGetName(&name, function));
  if (status == NULL) return name;
  gcap_status_ignore(status);  // only an explanation is lost
  return "";
}

static const char* kernel_name(cudaGraphNode_t node) {
  struct cudaKernelNodeParams params = {0};
  gcap_status_t status = GCAP_CUDA(cudaGraphKernelNodeGetParams(node, &params));
  if (status == NULL) return gcap_graph_kernel_name(params.func);
  gcap_status_ignore(status);  // only an explanation is lost
  return "";
}

static void write_node(const gcap_graph_node_list_t* nodes, cudaGraphNode_t node, char* text, size_t capacity) {
  size_t index = 0;
  while (index < nodes->count && nodes->nodes[index] != node) ++index;
  const enum cudaGraphNodeType type = type_of(node);
  const char* kernel = type == cudaGraphNodeTypeKernel ? kernel_name(node) : "";
  const char* gap = kernel[0] != '\0' ? " " : "";
  if (index < nodes->count) {
    snprintf(text, capacity, ": node %zu of %zu, %s%s%s", index, nodes->count, type_name(type), gap, kernel);
  } else {
    snprintf(text, capacity, ": a node of a child graph, %s%s%s", type_name(type), gap, kernel);
  }
}

gcap_status_t gcap_graph_node_explain_refusal(gcap_status_t status, const cudaGraphExecUpdateResultInfo* info,
                                              const gcap_graph_node_list_t* nodes, size_t nodes_before) {
  char node[256] = "";
  if (nodes->count != nodes_before) {
    snprintf(node, sizeof(node), ": %zu nodes instead of %zu", nodes->count, nodes_before);
  } else if (info->errorNode != NULL) {
    write_node(nodes, info->errorNode, node, sizeof(node));
  }
  return gcap_status_annotate(status, gcap_status_code(status), "%s%s", update_result_text(info->result), node);
}
