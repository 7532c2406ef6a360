// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reads graphs. The arguments of all nodes lie one behind the other in one block, each node's at a multiple of 16, as a
// kernel's parameters want it. Nothing here is shared, so nothing is locked.
//
// A graph that moves is read two to four times, and a call of the driver takes longer than all that is done with its
// answer. So the driver tells the parameters of a function once a read, since they are the same for each node of the
// function, and the edges of a graph at once.

#include "lib/contents/contents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/contents/driver.h"
#include "lib/internal/grow.h"
#include "lib/internal/hash_table.h"
#include "lib/internal/text.h"

// A failed question leaves no error behind, and the answer unknown.
static bool is_told(gcap_status_t status) {
  const bool told = status == NULL;
  gcap_status_ignore(status);
  return told;
}

// A read in progress. The tables end with the read.
typedef struct reader {
  gcap_contents_t* contents;
  gcap_hash_table_t indices;    // of index_cell_t, by the driver's handles of the nodes
  gcap_hash_table_t functions;  // of function_cell_t, by the driver's handles of the functions
} reader_t;

typedef struct index_cell {
  uint64_t node;
  size_t index;
} index_cell_t;

// The parameters of a function, as parts of the first node that has it.
typedef struct function_cell {
  uint64_t function;
  size_t first_part, num_parts;
} function_cell_t;

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

// The cell of a handle: a new one where there is none.
static gcap_status_t find_cell(gcap_hash_table_t* table, const void* handle, void** out_cell) {
  *out_cell = gcap_hash_table_find(table, (uintptr_t)handle);
  if (*out_cell == NULL) *out_cell = gcap_hash_table_insert(table, (uintptr_t)handle);
  if (*out_cell != NULL) return NULL;
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for what is inside a graph (%zu handles)",
                     table->count + 1);
}

void gcap_contents_free(gcap_contents_t* contents) {
  free(contents->nodes);
  free(contents->bytes);
  free(contents->parts);
  free(contents->dependencies);
  *contents = (gcap_contents_t){0};
}

static void* copy_items(const void* items, size_t bytes) {
  void* copy = malloc(bytes + 1);
  if (copy != NULL && bytes != 0) memcpy(copy, items, bytes);
  return copy;
}

gcap_status_t gcap_contents_copy(const gcap_contents_t* contents, gcap_contents_t* out_copy) {
  gcap_contents_t copy = *contents;
  copy.nodes = copy_items(contents->nodes, contents->count * sizeof(*contents->nodes));
  copy.bytes = copy_items(contents->bytes, contents->num_bytes);
  copy.parts = copy_items(contents->parts, contents->num_parts * sizeof(*contents->parts));
  copy.dependencies = copy_items(contents->dependencies, contents->num_dependencies * sizeof(*contents->dependencies));
  const bool is_whole = copy.nodes != NULL && copy.bytes != NULL && copy.parts != NULL && copy.dependencies != NULL;
  if (!is_whole) gcap_contents_free(&copy);
  *out_copy = copy;
  return is_whole ? NULL : GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for what is inside a graph");
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

// Adds the parameters as those of an earlier node of the function.
static gcap_status_t add_known_params(gcap_contents_t* contents, gcap_contents_node_t* node, void* const* params,
                                      const function_cell_t* known) {
  for (size_t i = 0; i < known->num_parts; ++i) {
    const gcap_contents_part_t part = contents->parts[known->first_part + i];
    if (params == NULL || params[i] == NULL) return NULL;  // not told
    GCAP_RETURN_IF_ERROR(add_part(contents, node, part.offset, params[i], part.bytes));
  }
  node->has_arguments = true;
  return NULL;
}

// Any other answer than that there is no more leaves the arguments unknown.
static gcap_status_t add_params(reader_t* reader, gcap_contents_node_t* node, const gcap_driver_t* driver,
                                const gcap_driver_kernel_t* kernel) {
  size_t offset = 0, bytes = 0;
  if (kernel->function == NULL) return NULL;  // not told
  function_cell_t* known = gcap_hash_table_find(&reader->functions, (uintptr_t)kernel->function);
  if (known != NULL) return add_known_params(reader->contents, node, kernel->params, known);
  int answer = driver->function_param(kernel->function, 0, &offset, &bytes);
  for (size_t i = 0; answer == 0; answer = driver->function_param(kernel->function, ++i, &offset, &bytes)) {
    if (kernel->params == NULL || kernel->params[i] == NULL) return NULL;  // not told
    GCAP_RETURN_IF_ERROR(add_part(reader->contents, node, offset, kernel->params[i], bytes));
  }
  node->has_arguments = answer == NO_SUCH_PARAMETER;
  if (!node->has_arguments) return NULL;
  void* cell = NULL;
  GCAP_RETURN_IF_ERROR(find_cell(&reader->functions, kernel->function, &cell));
  known = cell;
  known->first_part = node->first_part;
  known->num_parts = node->num_parts;
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

static gcap_status_t read_kernel(reader_t* reader, gcap_contents_node_t* node) {
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
  if (!reader->contents->with_arguments) return NULL;
  return kernel.extra != NULL ? add_extra(reader->contents, node, kernel.extra)
                              : add_params(reader, node, &driver, &kernel);
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
static gcap_status_t read_allocation(gcap_contents_t* contents, gcap_contents_node_t* node) {
  struct cudaMemAllocNodeParams params;
  memset(&params, 0, sizeof(params));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphMemAllocNodeGetParams(node->node, &params)));
  if (node->parent == GCAP_CONTENTS_TOP) contents->allocated_bytes += params.bytesize;
  return contents->with_arguments ? add_struct(contents, node, NULL, &params.dptr, sizeof(params.dptr)) : NULL;
}

// --- Dependencies ---------------------------------------------------------------------------------------------------

static int compare_dependencies(const void* a, const void* b) {
  const gcap_contents_dependency_t *x = a, *y = b;
  return x->node < y->node ? -1 : x->node > y->node;
}

static size_t index_of(const reader_t* reader, cudaGraphNode_t node) {
  const index_cell_t* cell = gcap_hash_table_find(&reader->indices, (uintptr_t)node);
  return cell != NULL ? cell->index : GCAP_CONTENTS_TOP;  // in no list of nodes
}

// The edges of one graph, in any order.
typedef struct edges {
  size_t count;
  cudaGraphNode_t *from, *to;
  cudaGraphEdgeData* data;
} edges_t;

// Gives each node of a graph, which are those of `parent` from `first` on, its dependencies.
static void sort_edges(const reader_t* reader, size_t first, size_t parent, const edges_t* edges) {
  gcap_contents_t* contents = reader->contents;
  for (size_t i = 0; i < edges->count; ++i) {
    const size_t to = index_of(reader, edges->to[i]);
    if (to != GCAP_CONTENTS_TOP) ++contents->nodes[to].num_dependencies;
  }
  for (size_t i = first; i < contents->count; ++i) {
    gcap_contents_node_t* node = &contents->nodes[i];
    if (node->parent != parent) continue;
    node->first_dependency = contents->num_dependencies;
    contents->num_dependencies += node->num_dependencies;
    node->num_dependencies = 0;
  }
  for (size_t i = 0; i < edges->count; ++i) {
    const size_t to = index_of(reader, edges->to[i]);
    if (to == GCAP_CONTENTS_TOP) continue;
    gcap_contents_node_t* node = &contents->nodes[to];
    contents->dependencies[node->first_dependency + node->num_dependencies++] =
        (gcap_contents_dependency_t){.node = index_of(reader, edges->from[i]), .edge = edges->data[i]};
  }
  for (size_t i = first; i < contents->count; ++i) {
    const gcap_contents_node_t* node = &contents->nodes[i];
    if (node->parent != parent || node->num_dependencies < 2) continue;
    qsort(contents->dependencies + node->first_dependency, node->num_dependencies, sizeof(*contents->dependencies),
          compare_dependencies);
  }
}

// The edges' data are asked for too: without them the driver refuses edges that have any (cudaErrorLossyQuery).
static gcap_status_t read_edges(reader_t* reader, cudaGraph_t graph, size_t first, size_t parent) {
  gcap_contents_t* contents = reader->contents;
  edges_t edges = {0};
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphGetEdges(graph, NULL, NULL, NULL, &edges.count)));
  if (edges.count == 0) return NULL;
  GCAP_RETURN_IF_ERROR(make_room((void**)&contents->dependencies, sizeof(*contents->dependencies),
                                 contents->num_dependencies, edges.count, &contents->dependencies_room));
  edges.from = calloc(edges.count, sizeof(*edges.from));
  edges.to = calloc(edges.count, sizeof(*edges.to));
  edges.data = calloc(edges.count, sizeof(*edges.data));
  gcap_status_t status = NULL;
  if (edges.from == NULL || edges.to == NULL || edges.data == NULL) {
    status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a list of %zu edges", edges.count);
  } else {
    status = GCAP_CUDA(cudaGraphGetEdges(graph, edges.from, edges.to, edges.data, &edges.count));
  }
  if (status == NULL) sort_edges(reader, first, parent, &edges);
  free(edges.from);
  free(edges.to);
  free(edges.data);
  return status;
}

// --- Nodes ----------------------------------------------------------------------------------------------------------

static gcap_status_t read_node(reader_t* reader, gcap_contents_node_t* node) {
  gcap_contents_t* contents = reader->contents;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphNodeGetType(node->node, &node->type)));
  node->begin = (contents->num_bytes + 15) / 16 * 16;
  node->first_part = contents->num_parts;
  contents->num_kernels += node->type == cudaGraphNodeTypeKernel;
  if (node->type == cudaGraphNodeTypeKernel) return read_kernel(reader, node);
  if (node->type == cudaGraphNodeTypeMemAlloc) return read_allocation(contents, node);
  return contents->with_arguments ? read_other(contents, node) : NULL;
}

static gcap_status_t read_list(reader_t* reader, cudaGraphNode_t* nodes, size_t count, size_t parent);

// The edges come when all nodes are known, since a graph that is made by hand may have edges to earlier nodes. A graph
// of which the driver lists no nodes is empty.
static gcap_status_t read_graph(reader_t* reader, cudaGraph_t graph, size_t parent) {
  const size_t first = reader->contents->count;
  size_t count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphGetNodes(graph, NULL, &count)));
  if (count == 0) return NULL;
  cudaGraphNode_t* nodes = calloc(count, sizeof(*nodes));
  if (nodes == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a list of %zu nodes", count);
  gcap_status_t status = GCAP_CUDA(cudaGraphGetNodes(graph, nodes, &count));
  if (status == NULL) status = read_list(reader, nodes, count, parent);
  if (status == NULL && reader->contents->with_arguments) status = read_edges(reader, graph, first, parent);
  free(nodes);
  return status;
}

// A child that the driver does not show has no nodes here, and is unknown.
static gcap_status_t read_child(reader_t* reader, size_t index) {
  gcap_contents_t* contents = reader->contents;
  cudaGraph_t child = NULL;
  const size_t num_kernels = contents->num_kernels;
  gcap_status_t status = GCAP_CUDA(cudaGraphChildGraphNodeGetGraph(contents->nodes[index].node, &child));
  if (status == NULL) status = read_graph(reader, child, index);
  contents->nodes[index].is_known = status == NULL;
  if (status == NULL || gcap_status_code(status) == GCAP_RESOURCE_EXHAUSTED) return status;
  gcap_status_ignore(status);
  contents->nodes[index].has_arguments = false;
  memset(&contents->nodes[index + 1], 0, (contents->count - index - 1) * sizeof(*contents->nodes));
  contents->count = index + 1;
  contents->num_kernels = num_kernels;
  return NULL;
}

static gcap_status_t note_index(reader_t* reader, size_t index) {
  void* cell = NULL;
  GCAP_RETURN_IF_ERROR(find_cell(&reader->indices, reader->contents->nodes[index].node, &cell));
  ((index_cell_t*)cell)->index = index;
  return NULL;
}

static gcap_status_t read_list(reader_t* reader, cudaGraphNode_t* nodes, size_t count, size_t parent) {
  gcap_contents_t* contents = reader->contents;
  for (size_t i = 0; i < count; ++i) {
    GCAP_RETURN_IF_ERROR(
        make_room((void**)&contents->nodes, sizeof(*contents->nodes), contents->count, 1, &contents->room));
    const size_t index = contents->count++;
    gcap_contents_node_t* node = &contents->nodes[index];
    node->node = nodes[i];
    node->graph = contents->num_graphs;
    node->parent = parent;
    GCAP_RETURN_IF_ERROR(read_node(reader, node));
    if (contents->with_arguments) GCAP_RETURN_IF_ERROR(note_index(reader, index));
    if (node->type == cudaGraphNodeTypeGraph) GCAP_RETURN_IF_ERROR(read_child(reader, index));
    contents->num_top += parent == GCAP_CONTENTS_TOP;
  }
  return NULL;
}

gcap_status_t gcap_contents_read_all(const cudaGraph_t* graphs, size_t count, bool with_arguments,
                                     gcap_contents_t* out_contents) {
  *out_contents = (gcap_contents_t){.with_arguments = with_arguments};
  reader_t reader = {.contents = out_contents,
                     .indices = {.cell_bytes = sizeof(index_cell_t)},
                     .functions = {.cell_bytes = sizeof(function_cell_t)}};
  gcap_status_t status = NULL;
  for (; status == NULL && out_contents->num_graphs < count; ++out_contents->num_graphs) {
    status = read_graph(&reader, graphs[out_contents->num_graphs], GCAP_CONTENTS_TOP);
  }
  gcap_hash_table_deinit(&reader.indices);
  gcap_hash_table_deinit(&reader.functions);
  if (status != NULL) gcap_contents_free(out_contents);
  return status;
}

gcap_status_t gcap_contents_read(cudaGraph_t graph, bool with_arguments, gcap_contents_t* out_contents) {
  return gcap_contents_read_all(&graph, 1, with_arguments, out_contents);
}

// --- Names ----------------------------------------------------------------------------------------------------------

size_t gcap_contents_index_of_top(const gcap_contents_t* contents, size_t graph, size_t top) {
  size_t i = 0, found = 0;
  while (i < contents->count && contents->nodes[i].graph < graph) ++i;
  for (; i < contents->count && contents->nodes[i].graph == graph; ++i) {
    if (contents->nodes[i].parent == GCAP_CONTENTS_TOP && found++ == top) return i;
  }
  return i;
}

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
