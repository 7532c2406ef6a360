// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Names for messages. If the driver does not give an explanation, the explanation is left out; that is not a failure.
// Nothing here is shared, so nothing is locked.

#include "lib/graph/node.h"

#include <stdio.h>

const char* gcap_graph_node_type_name(cudaGraphNode_t node) {
  enum cudaGraphNodeType type = cudaGraphNodeTypeCount;
  gcap_status_t status = GCAP_CUDA(cudaGraphNodeGetType(node, &type));
  const bool is_told = status == NULL;
  gcap_status_ignore(status);  // only an explanation is lost
  return gcap_contents_type_name(is_told ? type : cudaGraphNodeTypeCount);
}

const char* gcap_graph_node_instantiate_result_name(cudaGraphInstantiateResult result) {
  switch (result) {
    case cudaGraphInstantiateSuccess: return "the driver gives no reason";
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

gcap_status_t gcap_graph_node_explain_refusal(gcap_status_t status, const cudaGraphExecUpdateResultInfo* info,
                                              const gcap_contents_t* contents, size_t nodes_before) {
  char text[256] = "";
  size_t index = 0;
  while (index < contents->count && contents->nodes[index].node != info->errorNode) ++index;
  if (contents->num_top != nodes_before) {
    snprintf(text, sizeof(text), "%zu nodes instead of %zu", contents->num_top, nodes_before);
  } else if (index < contents->count) {
    gcap_contents_write_node(contents, &contents->nodes[index], text, sizeof(text));
  }
  return gcap_status_annotate(status, gcap_status_code(status), "%s%s%s", update_result_text(info->result),
                              text[0] != '\0' ? ": " : "", text);
}
