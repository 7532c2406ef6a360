// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a graph the EP runs.

#include <stdlib.h>
#include <string.h>

#include "gcap/log.h"
#include "lib/internal/grow.h"
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

// Values that are in host memory: the shapes of others, and what is computed of them.
typedef struct host_values {
  const char** names;  // of the graph
  size_t count;
  size_t room;
} host_values_t;

static bool is_on_host(const host_values_t* values, const char* name) {
  for (size_t i = 0; i < values->count; ++i) {
    if (strcmp(values->names[i], name) == 0) return true;
  }
  return false;
}

static gcap_status_t add_on_host(host_values_t* values, const char* name) {
  if (!gcap_grow(&values->names, &values->room, values->count + 1, sizeof(*values->names))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for names of values");
  }
  values->names[values->count++] = name;
  return NULL;
}

// True for a node that computes shapes of shapes: on the device, its inputs would have to be copied there, and its
// output back, and ONNX Runtime captures no model with copies. Inputs that the kernel reads on the host do not count.
static bool computes_shapes(const host_values_t* values, const gcap_ort_op_t* op, const gcap_ort_node_model_t* m) {
  bool any = false;
  for (int i = 0; i < m->node.num_inputs; ++i) {
    const gcap_value_t* value = &m->values[i];
    const bool on_host = is_on_host(values, value->name);
    if (!on_host && value->host_data == NULL) return false;
    const bool reads_on_host = gcap_ort_reads_on_host(op->host_inputs, i);
    any = any || (on_host && !reads_on_host);
  }
  for (int i = m->node.num_inputs; any && i < m->model.num_values; ++i) any = m->values[i].rank <= 1;
  return any;
}

// True if the plugin's table says of each input what the EP says: ONNX Runtime puts it where the table says.
static bool places_agree(gcap_ort_session_ep_t* ep, const gcap_ort_op_t* op, const gcap_ort_node_model_t* m) {
  for (int i = 0; i < m->node.num_inputs; ++i) {
    const bool in_table = gcap_ort_reads_on_host(op->host_inputs, i);
    const bool by_ep = gcap_ep_input_place(ep->ep, &m->model, &m->node, i) == GCAP_INPUT_IN_HOST_MEMORY;
    if (in_table == by_ep) continue;
    gcap_log(GCAP_LOG_ERROR,
             "'%s' does not run node '%s' (%s): its EP reads input %d %s, and its gcap_ort_op_t says otherwise",
             ep->factory->plugin->name, m->name, op->op_type, i, by_ep ? "on the host" : "on the device");
    return false;
  }
  return true;
}

// True if the kernel reads one value in both memories. ONNX Runtime then gives the value in one of them alone.
static bool is_read_twice(const gcap_ort_op_t* op, const gcap_ort_node_model_t* m) {
  for (int i = 0; i < m->node.num_inputs; ++i) {
    for (int j = 0; j < i; ++j) {
      const bool differ = gcap_ort_reads_on_host(op->host_inputs, i) != gcap_ort_reads_on_host(op->host_inputs, j);
      if (differ && strcmp(m->values[i].name, m->values[j].name) == 0) return true;
    }
  }
  return false;
}

// Adds the node to those that the EP runs, if it does.
static gcap_status_t consider_op(gcap_ort_session_ep_t* ep, const gcap_ort_op_t* op, const gcap_ort_node_t* node,
                                 const gcap_ort_node_model_t* m, host_values_t* values,
                                 gcap_ort_graph_support_t* info) {
  if (computes_shapes(values, op, m)) {
    for (int i = m->node.num_inputs; i < m->model.num_values; ++i) {
      GCAP_RETURN_IF_ERROR(add_on_host(values, m->values[i].name));
    }
    return NULL;
  }
  if (op->accepts != NULL && !op->accepts(&m->model, &m->node)) return NULL;
  if (is_read_twice(op, m) || !gcap_ep_supports(ep->ep, &m->model, &m->node) || !places_agree(ep, op, m)) return NULL;
  return GCAP_ORT_EP_CALL(&ep->factory->host, EpGraphSupportInfo_AddSingleNode(info, node));
}

// The EP runs every Shape: its output is on the host.
static gcap_status_t consider_shape(const gcap_ort_host_t* host, const gcap_ort_node_t* node, host_values_t* values,
                                    gcap_ort_graph_support_t* info) {
  const gcap_ort_value_info_t* output = NULL;
  const char *op_type = NULL, *name = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, Node_GetOperatorType(node, &op_type)));
  if (strcmp(op_type, "Shape") != 0) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, Node_GetOutputs(node, &output, 1)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetValueInfoName(output, &name)));
  GCAP_RETURN_IF_ERROR(add_on_host(values, name));
  return GCAP_ORT_EP_CALL(host, EpGraphSupportInfo_AddSingleNode(info, node));
}

static gcap_status_t consider(gcap_ort_session_ep_t* ep, const gcap_ort_node_t* node, host_values_t* values,
                              gcap_ort_graph_support_t* info) {
  const gcap_ort_host_t* host = &ep->factory->host;
  const gcap_ort_kernel_def_t* def = NULL;
  const gcap_ort_op_t* op = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(host, EpGraphSupportInfo_LookUpKernel(info, node, &def)));
  if (def == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(find_op(ep->factory, node, &op));
  if (op == NULL) return consider_shape(host, node, values, info);
  gcap_ort_node_model_t* m = NULL;
  GCAP_RETURN_IF_ERROR(gcap_ort_node_read(ep->factory, node, &m));
  gcap_status_t status = m != NULL ? consider_op(ep, op, node, m, values, info) : NULL;
  gcap_ort_node_free(m);
  return status;
}

// Nodes come in an order in which they can run.
static gcap_status_t consider_all(gcap_ort_session_ep_t* ep, const gcap_ort_graph_t* graph,
                                  gcap_ort_graph_support_t* info) {
  const gcap_ort_host_t* host = &ep->factory->host;
  size_t count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, Graph_GetNumNodes(graph, &count)));
  const gcap_ort_node_t** nodes = calloc(count + 1, sizeof(*nodes));
  if (nodes == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu nodes", count);
  host_values_t values = {0};
  gcap_status_t status = GCAP_ORT_CALL(host, Graph_GetNodes(graph, nodes, count));
  for (size_t i = 0; i < count && status == NULL; ++i) status = consider(ep, nodes[i], &values, info);
  free(values.names);
  free(nodes);
  return status;
}

gcap_ort_status_t* gcap_ort_get_capability(gcap_ort_ep_t* self, const gcap_ort_graph_t* graph,
                                           gcap_ort_graph_support_t* info) {
  gcap_ort_session_ep_t* ep = (gcap_ort_session_ep_t*)self;
  return gcap_ort_give(&ep->factory->host, consider_all(ep, graph, info));
}
