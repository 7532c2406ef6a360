// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs as text for Graphviz.
//
// The idea: a node is one statement, named by its place, its label grown by what the flags ask for; a graph within is a
// cluster of its own, reached by an edge from the node that holds it. Locking: the global mutex.
#include <stdint.h>
#include <stdio.h>

#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/graph/edges.h"
#include "sim/graph/graph.h"
#include "sim/graph/graph_attribute.h"
#include "sim/memory/allocation.h"
#include "sim/memory/copy.h"
#include "sim/stream/event.h"
#include "sim/stream/task.h"

static void print_name(FILE* file, const gcap_sim_node_t* node) {
  const gcap_sim_node_t* holder = node->graph->owner;
  if (holder != NULL) print_name(file, holder);
  fprintf(file, holder != NULL ? "_%zu" : "n%zu", node->index);
}

// Names are not ours, so what would end a label is escaped.
static void print_text(FILE* file, const char* text) {
  for (; *text; ++text) {
    if (*text == '"' || *text == '\\') fputc('\\', file);
    fputc(*text, file);
  }
}

static void print_kernel(FILE* file, const gcap_sim_node_t* node, unsigned int flags) {
  if (node->task->kind == GCAP_SIM_TASK_KERNEL && (flags & cudaGraphDebugDotFlagsKernelNodeParams)) {
    const gcap_sim_launch_t* launch = &node->task->u.kernel.launch;
    fprintf(file, "\\ngrid %ux%ux%u block %ux%ux%u shared %zu", launch->grid.x, launch->grid.y, launch->grid.z,
            launch->block.x, launch->block.y, launch->block.z, launch->shared_bytes);
  }
  if (flags & cudaGraphDebugDotFlagsKernelNodeAttributes) {
    fprintf(file, "\\npriority %d cooperative %d", gcap_sim_node_attribute(node, cudaLaunchAttributePriority).priority,
            gcap_sim_node_attribute(node, cudaLaunchAttributeCooperative).cooperative);
  }
}

static void print_params(FILE* file, const gcap_sim_node_t* node, unsigned int flags) {
  const gcap_sim_task_t* task = node->task;
  switch (gcap_sim_node_type(node)) {
    case cudaGraphNodeTypeKernel: print_kernel(file, node, flags); break;
    case cudaGraphNodeTypeMemcpy:
      if (flags & cudaGraphDebugDotFlagsMemcpyNodeParams) {
        const gcap_sim_copy_t* copy = &task->u.copy.copy;
        fprintf(file, "\\n%p to %p, %zux%zux%zu bytes, kind %d", copy->src, copy->dst, copy->width, copy->height,
                copy->depth ? copy->depth : 1, (int)copy->kind);
      }
      break;
    case cudaGraphNodeTypeMemset:
      if (flags & cudaGraphDebugDotFlagsMemsetNodeParams) {
        const gcap_sim_fill_t* fill = &task->u.fill;
        fprintf(file, "\\n%p, %zux%zu elements of %u bytes, value %u", (void*)fill->dst, fill->width, fill->height,
                fill->element_bytes, fill->value);
      }
      break;
    case cudaGraphNodeTypeHost:
      if (flags & cudaGraphDebugDotFlagsHostNodeParams) {
        fprintf(file, "\\nfunction %p data %p", (void*)(uintptr_t)task->u.host.function, task->u.host.data);
      }
      break;
    case cudaGraphNodeTypeEventRecord:
    case cudaGraphNodeTypeWaitEvent:
      if (flags & cudaGraphDebugDotFlagsEventNodeParams) fprintf(file, "\\nevent %p", (void*)task->u.event->handle);
      break;
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree:
      if (flags & cudaGraphDebugDotFlagsVerbose) {
        fprintf(file, "\\n%p, %zu bytes", (void*)task->u.allocation->base, task->u.allocation->bytes);
      }
      break;
    default: break;
  }
}

static void print_node(FILE* file, const gcap_sim_node_t* node, unsigned int flags) {
  fprintf(file, "  ");
  print_name(file, node);
  fprintf(file, " [label=\"%zu ", node->index);
  print_text(file, node->task->name);
  print_params(file, node, flags);
  if (flags & cudaGraphDebugDotFlagsHandles) fprintf(file, "\\nhandle %p", (void*)node->handle);
  fprintf(file, "\"];\n");
}

static void print_arrow(FILE* file, const gcap_sim_node_t* from, const gcap_sim_node_t* to) {
  fprintf(file, "  ");
  print_name(file, from);
  fprintf(file, " -> ");
  print_name(file, to);
}

static void print_edge(FILE* file, const gcap_sim_edge_t* edge, const gcap_sim_node_t* to) {
  print_arrow(file, edge->node, to);
  if (gcap_sim_edge_has_data(&edge->data)) {
    fprintf(file, " [label=\"port %d type %d\"]", edge->data.from_port, edge->data.type);
  }
  fprintf(file, ";\n");
}

static void print_graph(FILE* file, gcap_sim_graph_t* graph, unsigned int flags);

static void print_child(FILE* file, const gcap_sim_node_t* node, unsigned int flags) {
  fprintf(file, "subgraph cluster_");
  print_name(file, node);
  fprintf(file, " {\n");
  print_graph(file, node->child, flags);
  fprintf(file, "}\n");
  if (node->child->num_nodes == 0) return;
  print_arrow(file, node, node->child->nodes[0]);
  fprintf(file, " [style=dashed];\n");
}

static void print_graph(FILE* file, gcap_sim_graph_t* graph, unsigned int flags) {
  gcap_sim_graph_number(graph);
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    const gcap_sim_node_t* node = graph->nodes[i];
    print_node(file, node, flags);
    for (size_t k = 0; k < node->in.count; ++k) print_edge(file, &node->in.items[k], node);
  }
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    if (graph->nodes[i]->child != NULL) print_child(file, graph->nodes[i], flags);
  }
}

static cudaError_t print_dot(gcap_sim_graph_t* graph, const char* path, unsigned int flags) {
  if (graph == NULL || path == NULL) return cudaErrorInvalidValue;
  FILE* file = fopen(path, "w");
  if (file == NULL) return cudaErrorOperatingSystem;
  if (flags & cudaGraphDebugDotFlagsVerbose) flags = ~0u;
  fprintf(file, "digraph gcap {\n");
  print_graph(file, graph, flags);
  fprintf(file, "}\n");
  return fclose(file) == 0 ? cudaSuccess : cudaErrorOperatingSystem;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphDebugDotPrint);
  if (code == cudaSuccess) code = print_dot(gcap_sim_handle_get(GCAP_SIM_GRAPH, graph), path, flags);
  return gcap_sim_leave(code);
}
