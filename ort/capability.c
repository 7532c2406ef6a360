// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a graph the EP runs.

#include <stdlib.h>

#include "ort/ep.h"
#include "ort/node.h"

static gcap_status_t consider(gcap_ort_session_ep_t* ep, const gcap_ort_node_t* node, gcap_ort_graph_support_t* info) {
  const gcap_ort_host_t* host = &ep->factory->host;
  const gcap_ort_kernel_def_t* def = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, EpGraphSupportInfo_LookUpKernel(info, node, &def)));
  if (def == NULL) return NULL;
  gcap_ort_node_model_t* m = NULL;
  GCAP_RETURN_IF_ERROR(gcap_ort_node_read(ep->factory, node, &m));
  const bool runs = m != NULL && gcap_ep_supports(ep->ep, &m->model, &m->node);
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
