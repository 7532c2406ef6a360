// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What an update may leave as it was: read once for each capture, and compared before each update. Nothing here is
// shared, so nothing is locked.

#include "lib/graph/traits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A failed question leaves no error behind, and the answer unknown.
static bool is_told(gcap_status_t status) {
  const bool told = status == NULL;
  gcap_status_ignore(status);
  return told;
}

// --- Reading --------------------------------------------------------------------------------------------------------

static bool read_attribute(cudaGraphNode_t node, cudaLaunchAttributeID id, cudaLaunchAttributeValue* out_value) {
  memset(out_value, 0, sizeof(*out_value));
  return is_told(GCAP_CUDA(cudaGraphKernelNodeGetAttribute(node, id, out_value)));
}

static gcap_graph_trait_t read_kernel(cudaGraphNode_t node) {
  gcap_graph_trait_t trait = {0};
  struct cudaKernelNodeParams params = {0};
  trait.is_known = is_told(GCAP_CUDA(cudaGraphKernelNodeGetParams(node, &params)));
  trait.function = params.func;
  cudaLaunchAttributeValue value;
  trait.is_known &= read_attribute(node, cudaLaunchAttributeClusterDimension, &value);
  trait.cluster[0] = value.clusterDim.x;
  trait.cluster[1] = value.clusterDim.y;
  trait.cluster[2] = value.clusterDim.z;
  trait.is_known &= read_attribute(node, cudaLaunchAttributeCooperative, &value);
  trait.cooperative = value.cooperative;
  trait.is_known &= read_attribute(node, cudaLaunchAttributePriority, &value);
  trait.priority = value.priority;
  trait.is_known &= read_attribute(node, cudaLaunchAttributeMemSyncDomain, &value);
  trait.sync_domain = (int)value.memSyncDomain;
  return trait;
}

static gcap_status_t append(gcap_graph_traits_t* traits, const gcap_graph_trait_t* trait) {
  if (traits->count == traits->room) {
    const size_t room = 2 * traits->room + 8;
    gcap_graph_trait_t* items = realloc(traits->items, room * sizeof(*items));
    if (items == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the traits of %zu nodes", room);
    traits->items = items;
    traits->room = room;
  }
  traits->items[traits->count++] = *trait;
  return NULL;
}

static gcap_status_t append_all(gcap_graph_traits_t* traits, const gcap_graph_node_list_t* nodes);

// A child that the driver does not show counts as one kernel of which nothing is known.
static gcap_status_t append_child(gcap_graph_traits_t* traits, cudaGraphNode_t node) {
  cudaGraph_t child = NULL;
  gcap_graph_node_list_t nodes = {0};
  if (!is_told(GCAP_CUDA(cudaGraphChildGraphNodeGetGraph(node, &child))) ||
      !is_told(gcap_graph_node_list_read(child, &nodes))) {
    return append(traits, &(gcap_graph_trait_t){.is_known = false});
  }
  gcap_status_t status = append_all(traits, &nodes);
  gcap_graph_node_list_free(&nodes);
  return status;
}

static gcap_status_t append_all(gcap_graph_traits_t* traits, const gcap_graph_node_list_t* nodes) {
  for (size_t i = 0; i < nodes->count; ++i) {
    if (nodes->types[i] == cudaGraphNodeTypeGraph) GCAP_RETURN_IF_ERROR(append_child(traits, nodes->nodes[i]));
    // What a conditional node may run is not looked at.
    const bool is_opaque = nodes->types[i] == cudaGraphNodeTypeConditional;
    if (is_opaque) GCAP_RETURN_IF_ERROR(append(traits, &(gcap_graph_trait_t){.is_known = false}));
    if (nodes->types[i] != cudaGraphNodeTypeKernel) continue;
    const gcap_graph_trait_t trait = read_kernel(nodes->nodes[i]);
    GCAP_RETURN_IF_ERROR(append(traits, &trait));
  }
  return NULL;
}

gcap_status_t gcap_graph_traits_read(const gcap_graph_node_list_t* nodes, gcap_graph_traits_t* out_traits) {
  *out_traits = (gcap_graph_traits_t){0};
  gcap_status_t status = append_all(out_traits, nodes);
  if (status != NULL) gcap_graph_traits_free(out_traits);
  return status;
}

void gcap_graph_traits_free(gcap_graph_traits_t* traits) {
  free(traits->items);
  *traits = (gcap_graph_traits_t){0};
}

// --- Comparing ------------------------------------------------------------------------------------------------------

// The clusters that a kernel was compiled for.
static bool read_required(const void* function, int out_cluster[3]) {
  struct cudaFuncAttributes attributes;
  memset(&attributes, 0, sizeof(attributes));
  if (!is_told(GCAP_CUDA(cudaFuncGetAttributes(&attributes, function)))) return false;
  out_cluster[0] = attributes.requiredClusterWidth;
  out_cluster[1] = attributes.requiredClusterHeight;
  out_cluster[2] = attributes.requiredClusterDepth;
  return true;
}

// Whether another function brings other clusters, as far as is known.
static bool may_require_others(const gcap_graph_trait_t* a, const gcap_graph_trait_t* b) {
  if (a->function == b->function) return false;
  int before[3], after[3];
  if (!read_required(a->function, before) || !read_required(b->function, after)) return true;
  return memcmp(before, after, sizeof(before)) != 0;
}

static void write_cluster(const unsigned cluster[3], char* text, size_t bytes) {
  if (cluster[0] == 0) {
    snprintf(text, bytes, "none");
  } else {
    snprintf(text, bytes, "%ux%ux%u", cluster[0], cluster[1], cluster[2]);
  }
}

// What differs, as "FIELD BEFORE -> AFTER"; false if nothing does.
static bool write_difference(const gcap_graph_trait_t* a, const gcap_graph_trait_t* b, char* text, size_t bytes) {
  if (!a->is_known || !b->is_known) return snprintf(text, bytes, "attributes that the driver does not tell") > 0;
  if (memcmp(a->cluster, b->cluster, sizeof(a->cluster)) != 0) {
    char before[48], after[48];
    write_cluster(a->cluster, before, sizeof(before));
    write_cluster(b->cluster, after, sizeof(after));
    return snprintf(text, bytes, "cluster dimension %s -> %s", before, after) > 0;
  }
  if (a->cooperative != b->cooperative) {
    return snprintf(text, bytes, "cooperative %d -> %d", a->cooperative, b->cooperative) > 0;
  }
  if (a->priority != b->priority) return snprintf(text, bytes, "priority %d -> %d", a->priority, b->priority) > 0;
  if (a->sync_domain != b->sync_domain) {
    return snprintf(text, bytes, "memory synchronization domain %d -> %d", a->sync_domain, b->sync_domain) > 0;
  }
  if (!may_require_others(a, b)) return false;
  return snprintf(text, bytes, "another function, whose clusters differ or are not told") > 0;
}

gcap_status_t gcap_graph_traits_check_update(const gcap_graph_traits_t* before, const gcap_graph_traits_t* after) {
  if (before->count != after->count) return NULL;  // the driver refuses
  for (size_t i = 0; i < before->count; ++i) {
    char text[160];
    if (!write_difference(&before->items[i], &after->items[i], text, sizeof(text))) continue;
    const char* name = gcap_graph_kernel_name(after->items[i].function);
    return GCAP_STATUS(
        GCAP_CUDA_ERROR,
        "the attributes of a node changed: kernel %zu of %zu%s%s: %s, which cudaGraphExecUpdate may leave "
        "as it was",
        i, after->count, name[0] != '\0' ? ", " : "", name, text);
  }
  return NULL;
}
