// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reads graphs. The arguments of all nodes lie one behind the other in one block, each node's at a multiple of 16, as a
// kernel's parameters want it. Nothing here is shared, so nothing is locked.

#include "lib/contents/contents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/contents/driver.h"
#include "lib/internal/grow.h"
#include "lib/internal/text.h"

// A failed question leaves no error behind, and the answer unknown.
static bool is_told(gcap_status_t status) {
  const bool told = status == NULL;
  gcap_status_ignore(status);
  return told;
}

// --- Memory ---------------------------------------------------------------------------------------------------------

// Makes room for `more` items behind `count`; new ones are zero.
static gcap_status_t make_room(void** items, size_t item_bytes, size_t count, size_t more, size_t* room) {
  const size_t old_room = *room;
  if (!gcap_grow(items, room, count + more, item_bytes)) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for what is inside a graph (%zu bytes)",
                       (count + more) * item_bytes);
  }
  if (*room != old_room) memset((char*)*items + old_room * item_bytes, 0, (*room - old_room) * item_bytes);
  return NULL;
}

void gcap_contents_free(gcap_contents_t* contents) {
  free(contents->nodes);
  free(contents->bytes);
  free(contents->parts);
  free(contents->dependencies);
  *contents = (gcap_contents_t){0};
}

// --- Arguments ------------------------------------------------------------------------------------------------------

// Adds a part of the node that is being read, whose bytes are the last ones.
static gcap_status_t add_part(gcap_contents_t* contents, gcap_contents_node_t* node, size_t offset, const void* data,
                              size_t bytes) {
  GCAP_RETURN_IF_ERROR(
      make_room((void**)&contents->parts, sizeof(*contents->parts), contents->num_parts, 1, &contents->parts_room));
  const size_t end = node->begin + offset + bytes;
  if (end > contents->num_bytes) {
    GCAP_RETURN_IF_ERROR(
        make_room((void**)&contents->bytes, 1, contents->num_bytes, end - contents->num_bytes, &contents->bytes_room));
    contents->num_bytes = end;
  }
  memcpy(contents->bytes + node->begin + offset, data, bytes);
  contents->parts[contents->num_parts++] = (gcap_contents_part_t){.offset = offset, .bytes = bytes};
  ++node->num_parts;
  node->bytes = contents->num_bytes - node->begin;
  return NULL;
}

static gcap_status_t add_extra(gcap_contents_t* contents, gcap_contents_node_t* node, void** extra) {
  const void* buffer = NULL;
  const size_t* bytes = NULL;
  for (; extra[0] != GCAP_DRIVER_EXTRA_END; extra += 2) {
    if (extra[0] == GCAP_DRIVER_EXTRA_BUFFER) buffer = extra[1];
    if (extra[0] == GCAP_DRIVER_EXTRA_BYTES) bytes = extra[1];
  }
  if (buffer == NULL || bytes == NULL) return NULL;  // not told
  node->by_extra = true;
  node->has_arguments = true;
  return add_part(contents, node, 0, buffer, *bytes);
}

// Past the last parameter the driver answers this. Measured on an H200.
#define NO_SUCH_PARAMETER ((int)cudaErrorInvalidValue)

// Any other answer than that there is no more leaves the arguments unknown.
static gcap_status_t add_params(gcap_contents_t* contents, gcap_contents_node_t* node, const gcap_driver_t* driver,
                                const gcap_driver_kernel_t* kernel) {
  size_t offset = 0, bytes = 0;
  if (kernel->function == NULL) return NULL;  // not told
  int answer = driver->function_param(kernel->function, 0, &offset, &bytes);
  for (size_t i = 0; answer == 0; answer = driver->function_param(kernel->function, ++i, &offset, &bytes)) {
    if (kernel->params == NULL || kernel->params[i] == NULL) return NULL;  // not told
    GCAP_RETURN_IF_ERROR(add_part(contents, node, offset, kernel->params[i], bytes));
  }
  node->has_arguments = answer == NO_SUCH_PARAMETER;
  return NULL;
}

// --- Kernels --------------------------------------------------------------------------------------------------------

static bool read_attribute(cudaGraphNode_t node, cudaLaunchAttributeID id, cudaLaunchAttributeValue* out_value) {
  memset(out_value, 0, sizeof(*out_value));
  return is_told(GCAP_CUDA(cudaGraphKernelNodeGetAttribute(node, id, out_value)));
}

static void read_attributes(gcap_contents_node_t* node) {
  cudaLaunchAttributeValue value;
  node->is_known &= read_attribute(node->node, cudaLaunchAttributeClusterDimension, &value);
  node->cluster[0] = value.clusterDim.x;
  node->cluster[1] = value.clusterDim.y;
  node->cluster[2] = value.clusterDim.z;
  node->is_known &= read_attribute(node->node, cudaLaunchAttributeCooperative, &value);
  node->cooperative = value.cooperative;
  node->is_known &= read_attribute(node->node, cudaLaunchAttributePriority, &value);
  node->priority = value.priority;
  node->is_known &= read_attribute(node->node, cudaLaunchAttributeMemSyncDomain, &value);
  node->sync_domain = (int)value.memSyncDomain;
}

static gcap_status_t read_kernel(gcap_contents_t* contents, gcap_contents_node_t* node, bool with_arguments) {
  gcap_driver_t driver;
  gcap_driver_kernel_t kernel = {0};
  node->is_known = is_told(gcap_driver_get(&driver)) &&
                   is_told(GCAP_DRIVER("cuGraphKernelNodeGetParams", driver.get_kernel(node->node, &kernel)));
  if (!node->is_known) return NULL;
  node->function = kernel.function;
  node->kernel = kernel.kernel;
  node->context = kernel.context;
  memcpy(node->grid, kernel.grid, sizeof(node->grid));
  memcpy(node->block, kernel.block, sizeof(node->block));
  node->shared_bytes = kernel.shared_bytes;
  read_attributes(node);
  if (!with_arguments) return NULL;
  return kernel.extra != NULL ? add_extra(contents, node, kernel.extra) : add_params(contents, node, &driver, &kernel);
}

// --- Other nodes ----------------------------------------------------------------------------------------------------

static gcap_status_t add_struct(gcap_contents_t* contents, gcap_contents_node_t* node, gcap_status_t told,
                                const void* data, size_t bytes) {
  node->has_arguments = is_told(told);
  return node->has_arguments ? add_part(contents, node, 0, data, bytes) : NULL;
}

static gcap_status_t read_memcpy(gcap_contents_t* contents, gcap_contents_node_t* node) {
  struct cudaMemcpy3DParms params;
  memset(&params, 0, sizeof(params));
  gcap_status_t told = GCAP_CUDA(cudaGraphMemcpyNodeGetParams(node->node, &params));
  // Up to the last member: what lies behind it is nobody's.
  return add_struct(contents, node, told, &params, offsetof(struct cudaMemcpy3DParms, kind) + sizeof(params.kind));
}

static gcap_status_t read_other(gcap_contents_t* contents, gcap_contents_node_t* node) {
  switch (node->type) {
    case cudaGraphNodeTypeMemcpy: return read_memcpy(contents, node);
    case cudaGraphNodeTypeMemset: {
      struct cudaMemsetParams params = {0};
      gcap_status_t told = GCAP_CUDA(cudaGraphMemsetNodeGetParams(node->node, &params));
      return add_struct(contents, node, told, &params, sizeof(params));
    }
    case cudaGraphNodeTypeHost: {
      struct cudaHostNodeParams params = {0};
      gcap_status_t told = GCAP_CUDA(cudaGraphHostNodeGetParams(node->node, &params));
      return add_struct(contents, node, told, &params, sizeof(params));
    }
    case cudaGraphNodeTypeEventRecord: {
      cudaEvent_t event = NULL;
      gcap_status_t told = GCAP_CUDA(cudaGraphEventRecordNodeGetEvent(node->node, &event));
      return add_struct(contents, node, told, &event, sizeof(event));
    }
    case cudaGraphNodeTypeWaitEvent: {
      cudaEvent_t event = NULL;
      gcap_status_t told = GCAP_CUDA(cudaGraphEventWaitNodeGetEvent(node->node, &event));
      return add_struct(contents, node, told, &event, sizeof(event));
    }
    case cudaGraphNodeTypeMemFree: {
      void* address = NULL;
      gcap_status_t told = GCAP_CUDA(cudaGraphMemFreeNodeGetParams(node->node, &address));
      return add_struct(contents, node, told, &address, sizeof(address));
    }
    case cudaGraphNodeTypeGraph:
    case cudaGraphNodeTypeEmpty: node->has_arguments = true; return NULL;
    default: return NULL;  // conditional nodes, and what is newer than this file: not told
  }
}

// The size counts towards the graph's memory, so a failure is one.
static gcap_status_t read_allocation(gcap_contents_t* contents, gcap_contents_node_t* node, bool with_arguments) {
  struct cudaMemAllocNodeParams params;
  memset(&params, 0, sizeof(params));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphMemAllocNodeGetParams(node->node, &params)));
  if (node->parent == GCAP_CONTENTS_TOP) contents->allocated_bytes += params.bytesize;
  return with_arguments ? add_struct(contents, node, NULL, &params.dptr, sizeof(params.dptr)) : NULL;
}

// --- Dependencies ---------------------------------------------------------------------------------------------------

static int compare_dependencies(const void* a, const void* b) {
  const gcap_contents_dependency_t *x = a, *y = b;
  return x->node < y->node ? -1 : x->node > y->node;
}

// Most nodes come right behind one that they depend on.
static size_t find_node(const gcap_contents_t* contents, cudaGraphNode_t node, size_t end) {
  for (size_t i = end; i > 0; --i) {
    if (contents->nodes[i - 1].node == node) return i - 1;
  }
  for (size_t i = end; i < contents->count; ++i) {
    if (contents->nodes[i].node == node) return i;
  }
  return GCAP_CONTENTS_TOP;  // in no list of nodes
}

static gcap_status_t add_dependencies(gcap_contents_t* contents, size_t index, const cudaGraphNode_t* nodes,
                                      const cudaGraphEdgeData* edges, size_t count) {
  if (count == 0) return NULL;
  GCAP_RETURN_IF_ERROR(make_room((void**)&contents->dependencies, sizeof(*contents->dependencies),
                                 contents->num_dependencies, count, &contents->dependencies_room));
  gcap_contents_dependency_t* all = contents->dependencies + contents->num_dependencies;
  for (size_t i = 0; i < count; ++i) {
    all[i] = (gcap_contents_dependency_t){.node = find_node(contents, nodes[i], index), .edge = edges[i]};
  }
  qsort(all, count, sizeof(*all), compare_dependencies);
  contents->nodes[index].first_dependency = contents->num_dependencies;
  contents->nodes[index].num_dependencies = count;
  contents->num_dependencies += count;
  return NULL;
}

// The edges' data are asked for too: without them the driver refuses edges that have any (cudaErrorLossyQuery). False:
// there are more than `room`.
static gcap_status_t try_dependencies(gcap_contents_t* contents, size_t index, size_t room, bool* out_done) {
  cudaGraphNode_t* nodes = calloc(room, sizeof(*nodes));
  cudaGraphEdgeData* edges = calloc(room, sizeof(*edges));
  size_t count = room;
  gcap_status_t status = NULL;
  if (nodes == NULL || edges == NULL) {
    status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a list of %zu nodes", room);
  } else {
    status = GCAP_CUDA(cudaGraphNodeGetDependencies(contents->nodes[index].node, nodes, edges, &count));
  }
  *out_done = count < room;
  if (status == NULL && *out_done) status = add_dependencies(contents, index, nodes, edges, count);
  free(nodes);
  free(edges);
  return status;
}

static gcap_status_t read_dependencies(gcap_contents_t* contents, size_t index) {
  bool done = false;
  for (size_t room = 16; !done; room *= 2) {
    GCAP_RETURN_IF_ERROR(try_dependencies(contents, index, room, &done));
  }
  return NULL;
}

// --- Nodes ----------------------------------------------------------------------------------------------------------

static gcap_status_t read_node(gcap_contents_t* contents, gcap_contents_node_t* node, bool with_arguments) {
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphNodeGetType(node->node, &node->type)));
  node->begin = (contents->num_bytes + 15) / 16 * 16;
  node->first_part = contents->num_parts;
  contents->num_kernels += node->type == cudaGraphNodeTypeKernel;
  if (node->type == cudaGraphNodeTypeKernel) return read_kernel(contents, node, with_arguments);
  if (node->type == cudaGraphNodeTypeMemAlloc) return read_allocation(contents, node, with_arguments);
  return with_arguments ? read_other(contents, node) : NULL;
}

static gcap_status_t read_list(gcap_contents_t* contents, cudaGraphNode_t* nodes, size_t count, size_t parent,
                               bool with_arguments);

// A graph of which the driver lists no nodes is empty.
static gcap_status_t read_graph(gcap_contents_t* contents, cudaGraph_t graph, size_t parent, bool with_arguments) {
  size_t count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphGetNodes(graph, NULL, &count)));
  if (count == 0) return NULL;
  cudaGraphNode_t* nodes = calloc(count, sizeof(*nodes));
  if (nodes == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a list of %zu nodes", count);
  gcap_status_t status = GCAP_CUDA(cudaGraphGetNodes(graph, nodes, &count));
  if (status == NULL) status = read_list(contents, nodes, count, parent, with_arguments);
  free(nodes);
  return status;
}

// A child that the driver does not show has no nodes here, and is unknown.
static gcap_status_t read_child(gcap_contents_t* contents, size_t index, bool with_arguments) {
  cudaGraph_t child = NULL;
  const size_t num_kernels = contents->num_kernels;
  gcap_status_t status = GCAP_CUDA(cudaGraphChildGraphNodeGetGraph(contents->nodes[index].node, &child));
  if (status == NULL) status = read_graph(contents, child, index, with_arguments);
  contents->nodes[index].is_known = status == NULL;
  if (status == NULL || gcap_status_code(status) == GCAP_RESOURCE_EXHAUSTED) return status;
  gcap_status_ignore(status);
  contents->nodes[index].has_arguments = false;
  memset(&contents->nodes[index + 1], 0, (contents->count - index - 1) * sizeof(*contents->nodes));
  contents->count = index + 1;
  contents->num_kernels = num_kernels;
  return NULL;
}

static gcap_status_t read_list(gcap_contents_t* contents, cudaGraphNode_t* nodes, size_t count, size_t parent,
                               bool with_arguments) {
  for (size_t i = 0; i < count; ++i) {
    GCAP_RETURN_IF_ERROR(
        make_room((void**)&contents->nodes, sizeof(*contents->nodes), contents->count, 1, &contents->room));
    const size_t index = contents->count++;
    gcap_contents_node_t* node = &contents->nodes[index];
    node->node = nodes[i];
    node->graph = contents->num_graphs;
    node->parent = parent;
    GCAP_RETURN_IF_ERROR(read_node(contents, node, with_arguments));
    if (node->type == cudaGraphNodeTypeGraph) GCAP_RETURN_IF_ERROR(read_child(contents, index, with_arguments));
    contents->num_top += parent == GCAP_CONTENTS_TOP;
  }
  return NULL;
}

// When all nodes are known, since a graph that is made by hand may have edges to earlier nodes.
static gcap_status_t read_edges(gcap_contents_t* contents) {
  for (size_t i = 0; i < contents->count; ++i) GCAP_RETURN_IF_ERROR(read_dependencies(contents, i));
  return NULL;
}

gcap_status_t gcap_contents_read_all(const cudaGraph_t* graphs, size_t count, bool with_arguments,
                                     gcap_contents_t* out_contents) {
  *out_contents = (gcap_contents_t){.with_arguments = with_arguments};
  gcap_status_t status = NULL;
  for (; status == NULL && out_contents->num_graphs < count; ++out_contents->num_graphs) {
    status = read_graph(out_contents, graphs[out_contents->num_graphs], GCAP_CONTENTS_TOP, with_arguments);
  }
  if (status == NULL && with_arguments) status = read_edges(out_contents);
  if (status != NULL) gcap_contents_free(out_contents);
  return status;
}

gcap_status_t gcap_contents_read(cudaGraph_t graph, bool with_arguments, gcap_contents_t* out_contents) {
  return gcap_contents_read_all(&graph, 1, with_arguments, out_contents);
}

// --- Names ----------------------------------------------------------------------------------------------------------

const char* gcap_contents_type_name(enum cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeKernel: return "kernel";
    case cudaGraphNodeTypeMemcpy: return "memcpy";
    case cudaGraphNodeTypeMemset: return "memset";
    case cudaGraphNodeTypeHost: return "host";
    case cudaGraphNodeTypeGraph: return "child graph";
    case cudaGraphNodeTypeEmpty: return "empty";
    case cudaGraphNodeTypeWaitEvent: return "event wait";
    case cudaGraphNodeTypeEventRecord: return "event record";
    case cudaGraphNodeTypeMemAlloc: return "memory allocation";
    case cudaGraphNodeTypeMemFree: return "memory free";
    case cudaGraphNodeTypeConditional: return "conditional";
    case cudaGraphNodeTypeCount: return "unknown";
    default: return "other";
  }
}

const char* gcap_contents_kernel_name(const gcap_contents_node_t* node) {
  gcap_driver_t driver;
  const char* name = NULL;
  if (node->function == NULL || !is_told(gcap_driver_get(&driver))) return "";
  return driver.function_name(&name, node->function) == 0 && name != NULL ? name : "";
}

void gcap_contents_write_node(const gcap_contents_t* contents, const gcap_contents_node_t* node, char* text,
                              size_t capacity) {
  gcap_text_t out;
  gcap_text_init(&out, text, capacity);
  gcap_text_add(&out, "node %zu of %zu", (size_t)(node - contents->nodes), contents->count);
  if (node->parent != GCAP_CONTENTS_TOP) gcap_text_add(&out, ", in the child graph of node %zu", node->parent);
  gcap_text_add(&out, ", %s", gcap_contents_type_name(node->type));
  const char* name = gcap_contents_kernel_name(node);
  if (name[0] != '\0') gcap_text_add(&out, " %s", name);
}
