// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a graph the EP runs.

#include <stdlib.h>
#include <string.h>

#include "ort/ep.h"
#include "ort/node.h"

// The plugin's operator whose kernel the node would get. NULL: it has none, as for the copies between EPs.
static gcap_status_t find_op(const gcap_ort_factory_t* factory, const gcap_ort_node_t* node,
                             const gcap_ort_op_t** out_op) {
  const gcap_ort_host_t* host = &factory->host;
  const char *op_type = NULL, *domain = NULL;
  int version = 0;
  *out_op = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, Node_GetOperatorType(node, &op_type)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, Node_GetDomain(node, &domain)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, Node_GetSinceVersion(node, &version)));
  for (const gcap_ort_op_t* op = factory->plugin->ops; op->op_type != NULL && *out_op == NULL; ++op) {
    const bool is_of_version = version >= op->first && (op->last == GCAP_ORT_ANY_LATER_OPSET || version <= op->last);
    const char* of = op->domain != NULL ? op->domain : "";
    if (is_of_version && strcmp(op->op_type, op_type) == 0 && strcmp(of, domain) == 0) *out_op = op;
  }
  return NULL;
}

static gcap_status_t consider(gcap_ort_session_ep_t* ep, const gcap_ort_node_t* node, gcap_ort_graph_support_t* info) {
  const gcap_ort_host_t* host = &ep->factory->host;
  const gcap_ort_kernel_def_t* def = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, EpGraphSupportInfo_LookUpKernel(info, node, &def)));
  if (def == NULL) return NULL;
  const gcap_ort_op_t* op = NULL;
  GCAP_RETURN_IF_ERROR(find_op(ep->factory, node, &op));
  if (op == NULL) return NULL;
  gcap_ort_node_model_t* m = NULL;
  GCAP_RETURN_IF_ERROR(gcap_ort_node_read(ep->factory, node, &m));
  const bool means_the_same = m != NULL && (op->accepts == NULL || op->accepts(&m->model, &m->node));
  const bool runs = means_the_same && gcap_ep_supports(ep->ep, &m->model, &m->node);
  gcap_ort_node_free(m);
  return runs ? GCAP_ORT_EP_CALL(host, EpGraphSupportInfo_AddSingleNode(info, node)) : NULL;
}

static gcap_status_t consider_all(gcap_ort_session_ep_t* ep, const gcap_ort_graph_t* graph,
                                  gcap_ort_graph_support_t* info) {
  const gcap_ort_host_t* host = &ep->factory->host;
  size_t count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, Graph_GetNumNodes(graph, &count)));
  const gcap_ort_node_t** nodes = calloc(count + 1, sizeof(*nodes));
  if (nodes == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu nodes", count);
  gcap_status_t status = GCAP_ORT_CALL(host, Graph_GetNodes(graph, nodes, count));
  for (size_t i = 0; i < count && status == NULL; ++i) status = consider(ep, nodes[i], info);
  free(nodes);
  return status;
}

gcap_ort_status_t* gcap_ort_get_capability(gcap_ort_ep_t* self, const gcap_ort_graph_t* graph,
                                           gcap_ort_graph_support_t* info) {
  gcap_ort_session_ep_t* ep = (gcap_ort_session_ep_t*)self;
  return gcap_ort_give(&ep->factory->host, consider_all(ep, graph, info));
}
