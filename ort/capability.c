// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a graph the EP runs, and with graphs on, which ones it leaves to other EPs and why. ONNX Runtime asks
// for each graph of a model, the outermost last, and for all of them again once it has inlined functions; then it asks
// whether graphs are on, and refuses the session if nodes are left. So the last answer is the one to tell, and is told
// there.
//
// Values in host memory are followed: what is computed of shapes stays on the CPU, which is no obstacle to a capture
// unless the device reads the value. A node that a kernel would take from the host to the device, such as Range, may be
// for either: it stays on the CPU where its output is wanted on the host. What a kernel reads there and no shape
// decides, such as an input of the model, may be another in each run, and a replay would not see it: such a session
// runs with the graph id -1 alone (run.c).
//
// Locking: none; ONNX Runtime asks on one thread.

#include "ort/capability.h"

#include <stdlib.h>
#include <string.h>

#include "gcap/log.h"
#include "lib/internal/grow.h"
#include "lib/internal/text.h"
#include "ort/left.h"
#include "ort/node.h"

// A value in host memory.
typedef struct host_value {
  const char* name;   // of the graph
  const char* maker;  // the operator
  bool is_shape;      // the shape of another, or computed of shapes; else of a node that the EP has no kernel for
  bool is_told;       // to be read on the device
} host_value_t;

typedef struct host_values {
  host_value_t* items;
  size_t count;
  size_t room;
} host_values_t;

// One question of ONNX Runtime's.
typedef struct look {
  gcap_ort_session_ep_t* ep;
  const gcap_ort_host_t* host;
  gcap_ort_graph_support_t* info;
  host_values_t values;
  host_values_t wanted;  // read in host memory, or computed with where the result is wanted
  bool tells;            // what is left
  gcap_ort_left_t left;
} look_t;

// A node of the graph.
typedef struct looked {
  const gcap_ort_node_t* node;
  const char* op_type;
  const gcap_ort_op_t* op;  // the plugin's operator whose kernel the node would get; NULL: none
} looked_t;

// --- The operator ---------------------------------------------------------------------------------------------------

// Finds the plugin's operator. Where there is none, as for the copies between EPs, `*out_why` says so.
static gcap_status_t find_op(const look_t* look, looked_t* node, gcap_ort_reason_t* out_why) {
  const char* domain = NULL;
  int version = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Node_GetOperatorType(node->node, &node->op_type)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Node_GetDomain(node->node, &domain)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Node_GetSinceVersion(node->node, &version)));
  gcap_ort_reason_set(out_why, "no kernel");
  for (const gcap_ort_op_t* op = look->ep->factory->plugin->ops; op->op_type != NULL; ++op) {
    const char* of = op->domain != NULL ? op->domain : "";
    if (strcmp(op->op_type, node->op_type) != 0 || strcmp(of, domain) != 0) continue;
    if (version >= op->first && (op->last == GCAP_ORT_ANY_LATER_OPSET || version <= op->last)) {
      node->op = op;
      return NULL;
    }
    const bool is_older = version < op->first;
    gcap_ort_reason_set(out_why, "of opset %d, the kernels are of opset %d and %s", version,
                        is_older ? op->first : op->last, is_older ? "later" : "earlier");
  }
  return NULL;
}

// --- Values in host memory ------------------------------------------------------------------------------------------

static host_value_t* find_on_host(const host_values_t* values, const char* name) {
  for (size_t i = 0; i < values->count; ++i) {
    if (strcmp(values->items[i].name, name) == 0) return &values->items[i];
  }
  return NULL;
}

static gcap_status_t add_on_host(host_values_t* values, const char* name, const char* maker, bool is_shape) {
  if (!gcap_grow(&values->items, &values->room, values->count + 1, sizeof(*values->items))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for names of values");
  }
  values->items[values->count++] = (host_value_t){.name = name, .maker = maker, .is_shape = is_shape};
  return NULL;
}

// --- Values that are wanted in host memory --------------------------------------------------------------------------

static gcap_status_t is_wanted(const look_t* look, const gcap_ort_node_t* node, bool* out_wanted) {
  const gcap_ort_value_info_t* infos[GCAP_ORT_MAX_VALUES];
  size_t count = 0;
  *out_wanted = false;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Node_GetNumOutputs(node, &count)));
  if (count > GCAP_ORT_MAX_VALUES) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Node_GetOutputs(node, infos, count)));
  for (size_t i = 0; i < count && !*out_wanted; ++i) {
    const char* name = NULL;
    if (infos[i] == NULL) continue;
    GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, GetValueInfoName(infos[i], &name)));
    *out_wanted = find_on_host(&look->wanted, name) != NULL;
  }
  return NULL;
}

// The inputs that the node's kernel reads on the host are wanted there, or `all` of them.
static gcap_status_t want_inputs(look_t* look, const looked_t* node, bool all) {
  const gcap_ort_value_info_t* infos[GCAP_ORT_MAX_VALUES];
  size_t count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Node_GetNumInputs(node->node, &count)));
  if (count > GCAP_ORT_MAX_VALUES) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Node_GetInputs(node->node, infos, count)));
  for (size_t i = 0; i < count; ++i) {
    const char* name = NULL;
    if (infos[i] == NULL || (!all && !gcap_ort_reads_on_host(node->op->host_inputs, (int)i))) continue;
    GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, GetValueInfoName(infos[i], &name)));
    if (find_on_host(&look->wanted, name) != NULL) continue;
    GCAP_RETURN_IF_ERROR(add_on_host(&look->wanted, name, node->op_type, /*is_shape=*/false));
  }
  return NULL;
}

// Asked of each node, the last one first. A node that no kernel is for reads all on the host; a Shape reads nothing.
static gcap_status_t note_wanted(look_t* look, const gcap_ort_node_t* of_graph) {
  looked_t node = {.node = of_graph};
  gcap_ort_reason_t why;
  bool wanted = false;
  GCAP_RETURN_IF_ERROR(find_op(look, &node, &why));
  if (strcmp(node.op_type, "Shape") == 0) return NULL;
  GCAP_RETURN_IF_ERROR(is_wanted(look, of_graph, &wanted));
  return want_inputs(look, &node, wanted || node.op == NULL);
}

// True for a node whose kernel makes of values in host memory alone one on the device, which is wanted on the host.
// `*out_of_shapes`: the values are shapes.
static gcap_status_t is_for_host(const look_t* look, const looked_t* node, const gcap_ort_node_model_t* m,
                                 bool* out_for_host, bool* out_of_shapes) {
  bool any = false;
  *out_for_host = false;
  *out_of_shapes = true;
  for (int i = 0; i < m->model.num_values; ++i) {
    const gcap_value_t* value = &m->values[i];
    if (i >= m->node.num_inputs && value->rank > 1) return NULL;  // no size or list of sizes; of unknown rank it may be
    if (i >= m->node.num_inputs || value->host_data != NULL || value->name[0] == 0) continue;
    const host_value_t* found = find_on_host(&look->values, value->name);
    if (found == NULL) return NULL;
    *out_of_shapes = *out_of_shapes && found->is_shape;
    any = true;
  }
  return any ? is_wanted(look, node->node, out_for_host) : NULL;
}

// True for a node that computes shapes of shapes: on the device, its inputs would have to be copied there, and its
// output back, and ONNX Runtime captures no model with copies. Inputs that the kernel reads on the host do not count.
static bool computes_shapes(const host_values_t* values, const gcap_ort_op_t* op, const gcap_ort_node_model_t* m) {
  bool any = false;
  for (int i = 0; i < m->node.num_inputs; ++i) {
    const gcap_value_t* value = &m->values[i];
    if (gcap_ort_value_is_left_out(value)) continue;
    const host_value_t* found = find_on_host(values, value->name);
    const bool on_host = found != NULL && found->is_shape;
    if (!on_host && value->host_data == NULL) return false;
    const bool reads_on_host = gcap_ort_reads_on_host(op->host_inputs, i);
    any = any || (on_host && !reads_on_host);
  }
  for (int i = m->node.num_inputs; any && i < m->model.num_values; ++i) any = m->values[i].rank <= 1;  // or unknown
  return any;
}

// --- What is left ---------------------------------------------------------------------------------------------------

// True if each input that is not constant is in host memory, and there is one.
static gcap_status_t reads_host_alone(const look_t* look, const gcap_ort_node_t* node, bool* out_alone) {
  const gcap_ort_value_info_t* infos[GCAP_ORT_MAX_VALUES];
  size_t count = 0;
  *out_alone = false;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Node_GetNumInputs(node, &count)));
  if (count > GCAP_ORT_MAX_VALUES) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Node_GetInputs(node, infos, count)));
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    const char* name = NULL;
    bool is_constant = false;
    if (infos[i] == NULL) continue;
    GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, GetValueInfoName(infos[i], &name)));
    GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, ValueInfo_IsConstantInitializer(infos[i], &is_constant)));
    const bool is_on_host = find_on_host(&look->values, name) != NULL;
    if (!is_on_host && !is_constant) return NULL;
    any = any || is_on_host;
  }
  *out_alone = any;
  return NULL;
}

static gcap_status_t add_outputs_on_host(look_t* look, const looked_t* node) {
  const gcap_ort_value_info_t* infos[GCAP_ORT_MAX_VALUES];
  size_t count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Node_GetNumOutputs(node->node, &count)));
  if (count > GCAP_ORT_MAX_VALUES) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Node_GetOutputs(node->node, infos, count)));
  for (size_t i = 0; i < count; ++i) {
    const char* name = NULL;
    if (infos[i] == NULL) continue;
    GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, GetValueInfoName(infos[i], &name)));
    GCAP_RETURN_IF_ERROR(add_on_host(&look->values, name, node->op_type, /*is_shape=*/false));
  }
  return NULL;
}

// The node is left to other EPs. One that reads host memory alone is no obstacle to a capture by itself.
static gcap_status_t leave(look_t* look, const looked_t* node, const gcap_ort_reason_t* why) {
  if (!look->tells) return NULL;
  bool alone = false;
  GCAP_RETURN_IF_ERROR(reads_host_alone(look, node->node, &alone));
  if (alone) return add_outputs_on_host(look, node);
  gcap_ort_left_add(&look->left, node->op_type, why->text);
  return NULL;
}

// What the CPU has computed of shapes, and the node, which is the EP's, reads on the device, is copied there.
static void tell_copies(look_t* look, const looked_t* node, const gcap_ort_node_model_t* m) {
  for (int i = 0; look->tells && i < m->node.num_inputs; ++i) {
    host_value_t* value = find_on_host(&look->values, m->values[i].name);
    if (value == NULL || value->is_told || gcap_ort_reads_on_host(node->op->host_inputs, i)) continue;
    value->is_told = true;
    gcap_ort_reason_t why;
    gcap_ort_reason_set(&why, "on the CPU, of shapes, and %s reads it on the device", node->op_type);
    gcap_ort_left_add(&look->left, value->maker, why.text);
  }
}

// --- What a run brings to the host ----------------------------------------------------------------------------------

static bool has_elements(const gcap_value_t* value) {
  for (int d = 0; d < value->rank; ++d) {
    if (value->shape[d] == 0) return false;
  }
  return true;
}

// Keeps the first input of a node of the EP whose content is read on the host and known when the run brings it.
static void note_content(look_t* look, const looked_t* node, const gcap_ort_node_model_t* m) {
  gcap_ort_content_t* content = &look->ep->content;
  for (int i = 0; look->tells && content->reader[0] == 0 && i < m->node.num_inputs; ++i) {
    const gcap_value_t* value = &m->values[i];
    if (!gcap_ort_reads_on_host(node->op->host_inputs, i) || value->host_data != NULL || !has_elements(value)) continue;
    if (find_on_host(&look->values, value->name) != NULL) continue;
    gcap_text_t text;
    gcap_text_init(&text, content->reader, sizeof(content->reader));
    gcap_text_add(&text, "node '%s' (%s)", m->name, node->op_type);
    gcap_text_init(&text, content->value, sizeof(content->value));
    gcap_text_add(&text, "%s", value->name);
  }
}

// --- Node by node ---------------------------------------------------------------------------------------------------

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
      const bool is_one = strcmp(m->values[i].name, m->values[j].name) == 0;
      if (differ && is_one && !gcap_ort_value_is_left_out(&m->values[i])) return true;
    }
  }
  return false;
}

static void refuse_types(const gcap_ort_node_model_t* m, const char* what, gcap_ort_reason_t* out_why) {
  gcap_text_t text;
  gcap_text_init(&text, out_why->text, sizeof(out_why->text));
  gcap_text_add(&text, "%s: inputs of", what);
  for (int i = 0; i < m->node.num_inputs; ++i) gcap_text_add(&text, " %s", gcap_dtype_name(m->values[i].dtype));
}

// Why the EP does not run the node with these ranks. Empty: it does.
static void judge_at(const look_t* look, const looked_t* node, const gcap_ort_node_model_t* m,
                     gcap_ort_reason_t* out_why) {
  gcap_ort_session_ep_t* ep = look->ep;
  if (is_read_twice(node->op, m)) {
    gcap_ort_reason_set(out_why, "one value is read on the host and on the device");
  } else if (!gcap_ep_supports(ep->ep, &m->model, &m->node)) {
    refuse_types(m, "none of the kernels takes its types, shapes or attributes", out_why);
  } else if (!places_agree(ep, node->op, m)) {
    gcap_ort_reason_set(out_why, "its gcap_ort_op_t contradicts the EP");
  }
}

static void set_any_ranks(const gcap_ort_node_model_t* m, int rank, gcap_ort_node_model_t* at) {
  for (int i = 0; i < m->model.num_values; ++i) {
    if (m->values[i].rank != GCAP_ORT_ANY_RANK) continue;
    at->values[i].rank = rank;
    for (int d = 0; d < rank; ++d) at->values[i].shape[d] = GCAP_DIM_INFERRED;
  }
}

static int rank_at(int known, int rank) { return known == GCAP_ORT_ANY_RANK ? rank : known; }

// True unless the EP's shape rule refuses the inputs where unknown ranks of them are `rank` and unknown sizes 1,
// whatever the ranks of the outputs are.
static bool is_possible(const look_t* look, const gcap_ort_node_model_t* m, int rank) {
  gcap_tensor_t tensors[GCAP_ORT_MAX_VALUES];
  const int num_inputs = m->node.num_inputs;
  bool refused = true;
  for (int of_outputs = 0; of_outputs <= GCAP_MAX_RANK && refused; ++of_outputs) {
    for (int i = 0; i < m->model.num_values; ++i) {
      const gcap_value_t* value = &m->values[i];
      const bool is_input = i < num_inputs, is_known = value->rank != GCAP_ORT_ANY_RANK;
      tensors[i] = (gcap_tensor_t){.dtype = value->dtype, .rank = rank_at(value->rank, is_input ? rank : of_outputs)};
      if (is_input) tensors[i].data = (void*)value->host_data;
      for (int d = 0; d < tensors[i].rank; ++d) {
        const int64_t size = is_known ? value->shape[d] : GCAP_DIM_INFERRED;
        tensors[i].shape[d] = size >= 0 ? size : is_input ? 1 : GCAP_DIM_INFERRED;
      }
    }
    gcap_status_t status = gcap_ep_infer_shapes(look->ep->ep, &m->model, &m->node, tensors, tensors + num_inputs);
    refused = gcap_status_code(status) == GCAP_INVALID_ARGUMENT;
    gcap_status_ignore(status);  // a refusal is an answer
  }
  return !refused;
}

// Why the EP does not run the node. Empty: it does. Where ONNX Runtime knows no rank, a run may bring each that the
// node can have, so the kernels have to take each of them.
static void judge(const look_t* look, const looked_t* node, const gcap_ort_node_model_t* m,
                  gcap_ort_reason_t* out_why) {
  if (!gcap_ort_node_has_any_rank(m)) {
    judge_at(look, node, m, out_why);
    return;
  }
  gcap_ort_node_model_t at;
  gcap_ort_node_copy(m, &at);
  bool any = false;
  int lacks = -1;  // the least rank without a kernel
  for (int rank = 0; rank <= GCAP_MAX_RANK; ++rank) {
    gcap_ort_reason_t why = {""};
    set_any_ranks(m, rank, &at);
    judge_at(look, node, &at, &why);
    any = any || gcap_ort_reason_is_empty(&why);
    if (lacks < 0 && !gcap_ort_reason_is_empty(&why) && is_possible(look, m, rank)) lacks = rank;
  }
  if (!any) {  // then the types or the attributes may be the reason
    refuse_types(m, "a value of unknown rank, and no kernel for any", out_why);
  } else if (lacks >= 0) {
    gcap_ort_reason_set(out_why, "a value of unknown rank, and no kernel for rank %d", lacks);
  }
}

static void tell_that_it_computes_shapes(look_t* look, const looked_t* node) {
  const bool is_allowed = gcap_ep_graph_capture_node_assignment_policy(look->ep->ep) != GCAP_GRAPH_ALL_NODES_ON_EP;
  if (look->tells && !is_allowed) gcap_ort_left_add(&look->left, node->op_type, "it computes shapes");
}

static gcap_status_t keep_on_host(look_t* look, const looked_t* node, const gcap_ort_node_model_t* m, bool is_shape) {
  for (int i = m->node.num_inputs; i < m->model.num_values; ++i) {
    if (gcap_ort_value_is_left_out(&m->values[i])) continue;
    GCAP_RETURN_IF_ERROR(add_on_host(&look->values, m->values[i].name, node->op_type, is_shape));
  }
  tell_that_it_computes_shapes(look, node);
  return NULL;
}

// Adds the node to those that the EP runs, if it does.
static gcap_status_t consider_op(look_t* look, const looked_t* node, const gcap_ort_node_model_t* m) {
  if (computes_shapes(&look->values, node->op, m)) return keep_on_host(look, node, m, /*is_shape=*/true);
  bool for_host = false, of_shapes = false;
  GCAP_RETURN_IF_ERROR(is_for_host(look, node, m, &for_host, &of_shapes));
  if (for_host) return keep_on_host(look, node, m, of_shapes);
  gcap_ort_reason_t why = {""};
  judge(look, node, m, &why);
  if (!gcap_ort_reason_is_empty(&why)) return leave(look, node, &why);
  tell_copies(look, node, m);
  note_content(look, node, m);
  return GCAP_ORT_EP_CALL(look->host, EpGraphSupportInfo_AddSingleNode(look->info, node->node));
}

// The EP runs every Shape, whose output is on the host, but that of a value in host memory.
static gcap_status_t consider_shape(look_t* look, const looked_t* node) {
  const gcap_ort_value_info_t *input = NULL, *output = NULL;
  const char *of = NULL, *name = NULL;
  if (strcmp(node->op_type, "Shape") != 0) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Node_GetInputs(node->node, &input, 1)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, GetValueInfoName(input, &of)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Node_GetOutputs(node->node, &output, 1)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, GetValueInfoName(output, &name)));
  GCAP_RETURN_IF_ERROR(add_on_host(&look->values, name, node->op_type, /*is_shape=*/true));
  if (find_on_host(&look->values, of) != NULL) {
    tell_that_it_computes_shapes(look, node);
    return NULL;
  }
  return GCAP_ORT_EP_CALL(look->host, EpGraphSupportInfo_AddSingleNode(look->info, node->node));
}

// Where functions are inlined, ONNX Runtime asks again, and finds no kernel for a node that the EP left before: the
// reason is found again.
static gcap_status_t judge_again(const look_t* look, const looked_t* node, gcap_ort_reason_t* out_why) {
  gcap_ort_node_model_t* m = NULL;
  GCAP_RETURN_IF_ERROR(gcap_ort_node_read(look->ep->factory, node->op, node->node, &m, out_why));
  if (m == NULL) return NULL;
  gcap_ort_reason_set(out_why, "ONNX Runtime gave it to another EP");
  judge(look, node, m, out_why);
  gcap_ort_node_free(m);
  return NULL;
}

static gcap_status_t consider(look_t* look, const gcap_ort_node_t* of_graph) {
  looked_t node = {.node = of_graph};
  gcap_ort_reason_t why;
  const gcap_ort_kernel_def_t* def = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(look->host, EpGraphSupportInfo_LookUpKernel(look->info, of_graph, &def)));
  GCAP_RETURN_IF_ERROR(find_op(look, &node, &why));
  if (def == NULL && node.op != NULL && look->tells) GCAP_RETURN_IF_ERROR(judge_again(look, &node, &why));
  if (def == NULL) return leave(look, &node, &why);
  if (node.op == NULL) return consider_shape(look, &node);
  gcap_ort_node_model_t* m = NULL;
  GCAP_RETURN_IF_ERROR(gcap_ort_node_read(look->ep->factory, node.op, of_graph, &m, &why));
  gcap_status_t status = m != NULL ? consider_op(look, &node, m) : leave(look, &node, &why);
  gcap_ort_node_free(m);
  return status;
}

// --- The graph ------------------------------------------------------------------------------------------------------

// Nodes come in an order in which they can run.
static gcap_status_t consider_all(look_t* look, const gcap_ort_graph_t* graph, size_t* out_count) {
  size_t count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(look->host, Graph_GetNumNodes(graph, &count)));
  const gcap_ort_node_t** nodes = calloc(count + 1, sizeof(*nodes));
  if (nodes == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu nodes", count);
  gcap_status_t status = GCAP_ORT_CALL(look->host, Graph_GetNodes(graph, nodes, count));
  for (size_t i = count; i > 0 && status == NULL; --i) status = note_wanted(look, nodes[i - 1]);
  for (size_t i = 0; i < count && status == NULL; ++i) status = consider(look, nodes[i]);
  free(nodes);
  *out_count = count;
  return status;
}

gcap_ort_status_t* gcap_ort_get_capability(gcap_ort_ep_t* self, const gcap_ort_graph_t* graph,
                                           gcap_ort_graph_support_t* info) {
  gcap_ort_session_ep_t* ep = (gcap_ort_session_ep_t*)self;
  look_t look = {.ep = ep, .host = &ep->factory->host, .info = info};
  look.tells = gcap_ort_captures_graphs(ep);
  size_t count = 0;
  ep->content.reader[0] = 0;
  gcap_status_t status = consider_all(&look, graph, &count);
  ep->leaves_nodes = look.left.num_nodes > 0;
  free(atomic_exchange(&ep->warning, gcap_ort_left_describe(&look.left, ep->factory->plugin->name, count)));
  gcap_ort_left_deinit(&look.left);
  free(look.values.items);
  free(look.wanted.items);
  return gcap_ort_give(&ep->factory->host, status);
}
