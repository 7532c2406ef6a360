// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs: nodes and edges, made by a capture or by hand.
//
// The idea: a node is a task and the nodes it comes after. Nodes are only ever added, each after those it depends on,
// so a graph has no cycle and its order of creation is a topological one. Locking: the global mutex.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

sim_graph_t* sim_graph_create(void) {
  sim_graph_t* graph = sim_calloc(1, sizeof(*graph));
  graph->handle = sim_handle_create(SIM_GRAPH, graph);
  return graph;
}

void sim_graph_destroy(sim_graph_t* graph) {
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    sim_node_t* node = graph->nodes[i];
    sim_handle_destroy(node->handle);
    sim_task_release(node->task);
    free(node->deps);
    free(node);
  }
  if (graph->memory_exec) sim_exec_forget_graph(graph->memory_exec);
  sim_object_refs_clear(&graph->objects);
  sim_handle_destroy(graph->handle);
  free(graph->nodes);
  free(graph);
}

sim_node_t* sim_graph_add(sim_graph_t* graph, sim_task_t* task, sim_node_t* const* deps, size_t num_deps) {
  sim_node_t* node = sim_calloc(1, sizeof(*node));
  node->handle = sim_handle_create(SIM_NODE, node);
  node->graph = graph;
  node->index = graph->num_nodes;
  node->task = task;
  node->num_deps = num_deps;
  node->deps = sim_calloc(num_deps, sizeof(sim_node_t*));
  if (num_deps) memcpy(node->deps, deps, num_deps * sizeof(sim_node_t*));
  sim_reserve(&graph->nodes, &graph->node_capacity, graph->num_nodes + 1, sizeof(sim_node_t*));
  graph->nodes[graph->num_nodes++] = node;
  graph->num_edges += num_deps;
  return node;
}

bool sim_graph_has_memory_nodes(const sim_graph_t* graph) {
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    sim_task_kind_t kind = graph->nodes[i]->task->kind;
    if (kind == SIM_TASK_ALLOC || kind == SIM_TASK_FREE) return true;
  }
  return false;
}

// --- Graphs ---------------------------------------------------------------------------------------------------------

cudaError_t cudaGraphCreate(cudaGraph_t* pGraph, unsigned int flags) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphCreate);
  if (code == cudaSuccess && (!pGraph || flags != 0)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *pGraph = sim_graph_create()->handle;
  return sim_leave(code);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphDestroy);
  if (code == cudaSuccess) {
    sim_graph_t* g = sim_handle_get(SIM_GRAPH, graph);
    if (g && g->capturing) sim_die("cudaGraphDestroy: the graph belongs to a capture that is still open");
    if (g) {
      sim_graph_destroy(g);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return sim_leave(code);
}

static sim_graph_t* clone_graph(const sim_graph_t* graph) {
  sim_graph_t* copy = sim_graph_create();
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    const sim_node_t* node = graph->nodes[i];
    sim_node_t* added = sim_graph_add(copy, sim_task_retain(node->task), node->deps, node->num_deps);
    for (size_t k = 0; k < added->num_deps; ++k) added->deps[k] = copy->nodes[node->deps[k]->index];
  }
  sim_object_refs_copy(&copy->objects, &graph->objects);
  return copy;
}

cudaError_t cudaGraphClone(cudaGraph_t* pGraphClone, cudaGraph_t originalGraph) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphClone);
  if (code == cudaSuccess) {
    const sim_graph_t* graph = sim_handle_get(SIM_GRAPH, originalGraph);
    if (!graph || !pGraphClone) {
      code = cudaErrorInvalidValue;
    } else if (sim_graph_has_memory_nodes(graph)) {
      code = cudaErrorNotSupported;
    } else {
      *pGraphClone = clone_graph(graph)->handle;
    }
  }
  return sim_leave(code);
}

// --- Nodes by hand --------------------------------------------------------------------------------------------------

typedef struct addition {
  sim_graph_t* graph;
  sim_node_t** deps;  // to be freed
  size_t num_deps;
} addition_t;

static cudaError_t resolve_dependencies(addition_t* add, const cudaGraphNode_t* handles) {
  for (size_t i = 0; i < add->num_deps; ++i) {
    add->deps[i] = sim_handle_get(SIM_NODE, handles[i]);
    if (!add->deps[i] || add->deps[i]->graph != add->graph) return cudaErrorInvalidValue;
    for (size_t k = 0; k < i; ++k) {
      if (add->deps[k] == add->deps[i]) return cudaErrorInvalidValue;
    }
  }
  return cudaSuccess;
}

// Checks what all node functions share. On success the caller finishes with add_node.
static cudaError_t prepare_addition(addition_t* add, const cudaGraphNode_t* out, cudaGraph_t graph,
                                    const cudaGraphNode_t* handles, size_t count) {
  *add = (addition_t){.graph = sim_handle_get(SIM_GRAPH, graph), .num_deps = count};
  if (!add->graph || !out || (count > 0 && !handles)) return cudaErrorInvalidValue;
  add->deps = sim_calloc(count, sizeof(sim_node_t*));
  cudaError_t code = resolve_dependencies(add, handles);
  if (code != cudaSuccess) free(add->deps);
  return code;
}

// Adds the node, unless `task` is NULL because its arguments were refused with `code`.
static cudaError_t add_node(addition_t* add, cudaGraphNode_t* out, sim_task_t* task, cudaError_t code) {
  if (task) *out = sim_graph_add(add->graph, task, add->deps, add->num_deps)->handle;
  free(add->deps);
  return task ? cudaSuccess : code;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                   size_t numDependencies, const struct cudaKernelNodeParams* pNodeParams) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphAddKernelNode);
  addition_t add;
  if (code == cudaSuccess && !pNodeParams) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) code = prepare_addition(&add, pGraphNode, graph, pDependencies, numDependencies);
  if (code == cudaSuccess) {
    if (pNodeParams->extra) sim_die("cudaGraphAddKernelNode: arguments given through extra are not modelled");
    sim_task_t* task = sim_kernel_task(pNodeParams->func, pNodeParams->gridDim, pNodeParams->blockDim,
                                       pNodeParams->kernelParams, pNodeParams->sharedMemBytes, &code);
    code = add_node(&add, pGraphNode, task, code);
  }
  return sim_leave(code);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t* pDependencies, size_t numDependencies, void* dst,
                                     const void* src, size_t count, enum cudaMemcpyKind kind) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphAddMemcpyNode1D);
  addition_t add;
  if (code == cudaSuccess) code = prepare_addition(&add, pGraphNode, graph, pDependencies, numDependencies);
  if (code == cudaSuccess) {
    sim_copy_t copy = {.dst = dst, .src = src, .width = count, .height = 1, .kind = kind};
    sim_task_t* task = sim_copy_task(&copy, &code);
    code = add_node(&add, pGraphNode, task, code);
  }
  return sim_leave(code);
}

static sim_task_t* fill_task(const struct cudaMemsetParams* params, cudaError_t* code) {
  unsigned int size = params->elementSize;
  *code = cudaErrorInvalidValue;
  if (!params->dst || params->width == 0 || params->height == 0) return NULL;
  if (size != 1 && size != 2 && size != 4) return NULL;
  sim_task_t* task = sim_task_create(SIM_TASK_FILL, "memset");
  task->u.fill = (sim_fill_t){.dst = params->dst,
                              .pitch = params->pitch,
                              .value = params->value,
                              .element_bytes = size,
                              .width = params->width,
                              .height = params->height};
  return task;
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                   size_t numDependencies, const struct cudaMemsetParams* pMemsetParams) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphAddMemsetNode);
  addition_t add;
  if (code == cudaSuccess && !pMemsetParams) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) code = prepare_addition(&add, pGraphNode, graph, pDependencies, numDependencies);
  if (code == cudaSuccess) {
    sim_task_t* task = fill_task(pMemsetParams, &code);
    code = add_node(&add, pGraphNode, task, code);
  }
  return sim_leave(code);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                 size_t numDependencies, const struct cudaHostNodeParams* pNodeParams) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphAddHostNode);
  addition_t add;
  if (code == cudaSuccess && (!pNodeParams || !pNodeParams->fn)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) code = prepare_addition(&add, pGraphNode, graph, pDependencies, numDependencies);
  if (code == cudaSuccess) {
    sim_task_t* task = sim_task_create(SIM_TASK_HOST, "host function");
    task->u.host.function = pNodeParams->fn;
    task->u.host.data = pNodeParams->userData;
    code = add_node(&add, pGraphNode, task, code);
  }
  return sim_leave(code);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                  size_t numDependencies) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphAddEmptyNode);
  addition_t add;
  if (code == cudaSuccess) code = prepare_addition(&add, pGraphNode, graph, pDependencies, numDependencies);
  if (code == cudaSuccess) code = add_node(&add, pGraphNode, sim_task_create(SIM_TASK_EMPTY, "empty"), code);
  return sim_leave(code);
}

// --- Queries --------------------------------------------------------------------------------------------------------

// Writes the nodes that `roots_only` selects into `out`, room permitting; without `out`, only counts them.
static cudaError_t list_nodes(const sim_graph_t* graph, cudaGraphNode_t* out, size_t* count, bool roots_only) {
  if (!graph || !count) return cudaErrorInvalidValue;
  size_t room = *count;
  size_t found = 0;
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    if (roots_only && graph->nodes[i]->num_deps > 0) continue;
    if (out && found == room) return cudaSuccess;
    if (out) out[found] = graph->nodes[i]->handle;
    found += 1;
  }
  for (size_t i = found; out && i < room; ++i) out[i] = NULL;
  *count = found;
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* numNodes) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphGetNodes);
  if (code == cudaSuccess) code = list_nodes(sim_handle_get(SIM_GRAPH, graph), nodes, numNodes, false);
  return sim_leave(code);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* pRootNodes, size_t* pNumRootNodes) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphGetRootNodes);
  if (code == cudaSuccess) code = list_nodes(sim_handle_get(SIM_GRAPH, graph), pRootNodes, pNumRootNodes, true);
  return sim_leave(code);
}

static cudaError_t list_edges(const sim_graph_t* graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* data, size_t* count) {
  if (!graph || !count || (from == NULL) != (to == NULL)) return cudaErrorInvalidValue;
  if (!from) {
    *count = graph->num_edges;
    return cudaSuccess;
  }
  size_t room = *count;
  size_t found = 0;
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    for (size_t k = 0; k < graph->nodes[i]->num_deps && found < room; ++k, ++found) {
      from[found] = graph->nodes[i]->deps[k]->handle;
      to[found] = graph->nodes[i]->handle;
      if (data) memset(&data[found], 0, sizeof(data[found]));
    }
  }
  *count = found;
  return cudaSuccess;
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* edgeData, size_t* numEdges) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphGetEdges);
  if (code == cudaSuccess) code = list_edges(sim_handle_get(SIM_GRAPH, graph), from, to, edgeData, numEdges);
  return sim_leave(code);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType* pType) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphNodeGetType);
  if (code == cudaSuccess) {
    const sim_node_t* n = sim_handle_get(SIM_NODE, node);
    if (n && pType) {
      *pType = sim_task_node_type(n->task);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return sim_leave(code);
}

static cudaError_t kernel_params(const sim_node_t* node, struct cudaKernelNodeParams* params) {
  if (!node || !params) return cudaErrorInvalidValue;
  if (sim_task_node_type(node->task) != cudaGraphNodeTypeKernel) return cudaErrorInvalidValue;
  memset(params, 0, sizeof(*params));
  if (node->task->kind == SIM_TASK_LIBRARY) {  // a kernel of a library: its function is not the caller's to know
    params->gridDim.x = params->gridDim.y = params->gridDim.z = 1;
    params->blockDim = params->gridDim;
    return cudaSuccess;
  }
  params->func = (void*)(uintptr_t)node->task->u.kernel.twin->function;
  params->gridDim = node->task->u.kernel.launch.grid;
  params->blockDim = node->task->u.kernel.launch.block;
  params->sharedMemBytes = (unsigned int)node->task->u.kernel.launch.shared_bytes;
  params->kernelParams = node->task->u.kernel.args;
  return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams* pNodeParams) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphKernelNodeGetParams);
  if (code == cudaSuccess) code = kernel_params(sim_handle_get(SIM_NODE, node), pNodeParams);
  return sim_leave(code);
}

// --- DOT ------------------------------------------------------------------------------------------------------------

static void print_label(FILE* file, const sim_task_t* task, bool verbose) {
  fprintf(file, "%s", task->name);
  if (!verbose) return;
  if (task->kind == SIM_TASK_KERNEL) {
    const gcap_sim_launch_t* launch = &task->u.kernel.launch;
    fprintf(file, "\\ngrid %ux%ux%u block %ux%ux%u", launch->grid.x, launch->grid.y, launch->grid.z, launch->block.x,
            launch->block.y, launch->block.z);
  } else if (task->kind == SIM_TASK_COPY) {
    fprintf(file, "\\n%zu bytes", task->u.copy.copy.width * task->u.copy.copy.height);
  } else if (task->kind == SIM_TASK_FILL) {
    const sim_fill_t* fill = &task->u.fill;
    fprintf(file, "\\n%zu bytes of %u", fill->width * fill->height * fill->element_bytes, fill->value);
  }
}

static cudaError_t print_dot(const sim_graph_t* graph, const char* path, bool verbose) {
  if (!graph || !path) return cudaErrorInvalidValue;
  FILE* file = fopen(path, "w");
  if (!file) return cudaErrorOperatingSystem;
  fprintf(file, "digraph gcap {\n");
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    const sim_node_t* node = graph->nodes[i];
    fprintf(file, "  n%zu [label=\"%zu ", i, i);
    print_label(file, node->task, verbose);
    fprintf(file, "\"];\n");
    for (size_t k = 0; k < node->num_deps; ++k) fprintf(file, "  n%zu -> n%zu;\n", node->deps[k]->index, i);
  }
  fprintf(file, "}\n");
  return fclose(file) == 0 ? cudaSuccess : cudaErrorOperatingSystem;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphDebugDotPrint);
  if (code == cudaSuccess) code = print_dot(sim_handle_get(SIM_GRAPH, graph), path, flags != 0);
  return sim_leave(code);
}
