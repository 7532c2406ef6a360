// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Compares nodes by their fields, and names places in their arguments.

#include "lib/contents/compare.h"

#include <stdio.h>
#include <string.h>

#include "lib/contents/contents.h"
#include "lib/internal/text.h"

#define BEFORE change->before, sizeof(change->before)
#define AFTER change->after, sizeof(change->after)

// --- Fields ---------------------------------------------------------------------------------------------------------

static bool differ_number(const char* field, long long before, long long after, gcap_contents_change_t* change) {
  if (before == after) return false;
  change->field = field;
  snprintf(BEFORE, "%lld", before);
  snprintf(AFTER, "%lld", after);
  return true;
}

static void write_extent(const unsigned extent[3], char* text, size_t capacity) {
  if (extent[0] == 0) {
    snprintf(text, capacity, "none");
  } else {
    snprintf(text, capacity, "%ux%ux%u", extent[0], extent[1], extent[2]);
  }
}

static bool differ_extent(const char* field, const unsigned before[3], const unsigned after[3],
                          gcap_contents_change_t* change) {
  if (memcmp(before, after, 3 * sizeof(*before)) == 0) return false;
  change->field = field;
  write_extent(before, BEFORE);
  write_extent(after, AFTER);
  return true;
}

static bool differ_type(const gcap_contents_node_t* before, const gcap_contents_node_t* after,
                        gcap_contents_change_t* change) {
  if (before->type == after->type) return false;
  change->field = "type";
  snprintf(BEFORE, "%s", gcap_contents_type_name(before->type));
  snprintf(AFTER, "%s", gcap_contents_type_name(after->type));
  return true;
}

// The kernel of before may have been unloaded since, so only that of after is asked for its name.
static bool differ_function(const gcap_contents_node_t* before, const gcap_contents_node_t* after,
                            gcap_contents_change_t* change) {
  if (before->function == after->function) return false;
  change->field = "function";
  snprintf(BEFORE, "%p", before->function);
  const char* name = gcap_contents_kernel_name(after);
  snprintf(AFTER, "%p%s%.100s", after->function, name[0] != '\0' ? " " : "", name);
  return true;
}

static bool differ_known(const gcap_contents_node_t* before, const gcap_contents_node_t* after,
                         gcap_contents_change_t* change) {
  const bool has_more = before->type == cudaGraphNodeTypeKernel || before->type == cudaGraphNodeTypeGraph ||
                        before->type == cudaGraphNodeTypeConditional;  // which is never known
  if (!has_more || (before->is_known && after->is_known)) return false;
  change->field = "attributes";
  snprintf(BEFORE, "%s", before->is_known ? "told" : "not told by the driver");
  snprintf(AFTER, "%s", after->is_known ? "told" : "not told by the driver");
  return true;
}

static void write_dependencies(const gcap_contents_t* contents, const gcap_contents_node_t* node, char* text,
                               size_t capacity) {
  gcap_text_t out;
  gcap_text_init(&out, text, capacity);
  if (node->num_dependencies == 0) gcap_text_add(&out, "none");
  for (size_t i = 0; i < node->num_dependencies; ++i) {
    const gcap_contents_dependency_t* dependency = &contents->dependencies[node->first_dependency + i];
    gcap_text_add(&out, "%s%zu%s", i == 0 ? "" : ", ", dependency->node,
                  dependency->edge.type != 0 ? " (programmatic)" : "");
  }
}

static bool differ_dependencies(const gcap_contents_t* old, const gcap_contents_node_t* before,
                                const gcap_contents_t* new, const gcap_contents_node_t* after,
                                gcap_contents_change_t* change) {
  bool differ = before->num_dependencies != after->num_dependencies;
  for (size_t i = 0; !differ && i < after->num_dependencies; ++i) {
    const gcap_contents_dependency_t *a = &old->dependencies[before->first_dependency + i],
                                     *b = &new->dependencies[after->first_dependency + i];
    differ = a->node != b->node || memcmp(&a->edge, &b->edge, sizeof(a->edge)) != 0;
  }
  if (!differ) return false;
  change->field = "dependencies";
  write_dependencies(old, before, BEFORE);
  write_dependencies(new, after, AFTER);
  return true;
}

bool gcap_contents_differ(gcap_contents_field_t field, const gcap_contents_t* old, const gcap_contents_t* new,
                          size_t index, gcap_contents_change_t* change) {
  const gcap_contents_node_t *before = &old->nodes[index], *after = &new->nodes[index];
  switch (field) {
    case GCAP_CONTENTS_TYPE: return differ_type(before, after, change);
    case GCAP_CONTENTS_GRAPH:
      return differ_number("segment", (long long)before->graph, (long long)after->graph, change);
    case GCAP_CONTENTS_PARENT:
      return differ_number("parent", (long long)before->parent, (long long)after->parent, change);
    case GCAP_CONTENTS_DEPENDENCIES: return differ_dependencies(old, before, new, after, change);
    case GCAP_CONTENTS_FUNCTION: return differ_function(before, after, change);
    case GCAP_CONTENTS_GRID: return differ_extent("grid", before->grid, after->grid, change);
    case GCAP_CONTENTS_BLOCK: return differ_extent("block", before->block, after->block, change);
    case GCAP_CONTENTS_SHARED_BYTES:
      return differ_number("dynamic shared memory", before->shared_bytes, after->shared_bytes, change);
    case GCAP_CONTENTS_KNOWN: return differ_known(before, after, change);
    case GCAP_CONTENTS_CLUSTER: return differ_extent("cluster dimension", before->cluster, after->cluster, change);
    case GCAP_CONTENTS_COOPERATIVE:
      return differ_number("cooperative", before->cooperative, after->cooperative, change);
    case GCAP_CONTENTS_PRIORITY: return differ_number("priority", before->priority, after->priority, change);
    case GCAP_CONTENTS_SYNC_DOMAIN:
      return differ_number("memory synchronization domain", before->sync_domain, after->sync_domain, change);
    case GCAP_CONTENTS_NUM_FIELDS: break;
  }
  return false;
}

// --- Updates --------------------------------------------------------------------------------------------------------

gcap_status_t gcap_contents_check_update(const gcap_contents_t* before, const gcap_contents_t* after) {
  if (before->count != after->count) return NULL;  // the driver refuses
  gcap_contents_change_t change;
  for (size_t i = 0; i < before->count; ++i) {
    const gcap_contents_node_t *old = &before->nodes[i], *new = &after->nodes[i];
    if (old->type != new->type) return NULL;  // the driver refuses
    for (gcap_contents_field_t field = GCAP_CONTENTS_KNOWN; field < GCAP_CONTENTS_NUM_FIELDS; ++field) {
      if (!gcap_contents_differ(field, before, after, i, &change)) continue;
      char node[256];
      gcap_contents_write_node(after, new, node, sizeof(node));
      return GCAP_STATUS(GCAP_CUDA_ERROR,
                         "the attributes of a node changed: %s: %s %s -> %s, which cudaGraphExecUpdate may leave as "
                         "they were",
                         node, change.field, change.before, change.after);
    }
  }
  return NULL;
}

// --- Places ---------------------------------------------------------------------------------------------------------

static const struct {
  enum cudaGraphNodeType type;
  size_t offset;
  const char* name;
} members[] = {
    {cudaGraphNodeTypeMemcpy, offsetof(struct cudaMemcpy3DParms, srcPtr.ptr), "the source"},
    {cudaGraphNodeTypeMemcpy, offsetof(struct cudaMemcpy3DParms, srcPtr.pitch), "the source's pitch"},
    {cudaGraphNodeTypeMemcpy, offsetof(struct cudaMemcpy3DParms, srcPtr.xsize), "the source's width"},
    {cudaGraphNodeTypeMemcpy, offsetof(struct cudaMemcpy3DParms, srcPtr.ysize), "the source's height"},
    {cudaGraphNodeTypeMemcpy, offsetof(struct cudaMemcpy3DParms, dstPtr.ptr), "the destination"},
    {cudaGraphNodeTypeMemcpy, offsetof(struct cudaMemcpy3DParms, dstPtr.pitch), "the destination's pitch"},
    {cudaGraphNodeTypeMemcpy, offsetof(struct cudaMemcpy3DParms, dstPtr.xsize), "the destination's width"},
    {cudaGraphNodeTypeMemcpy, offsetof(struct cudaMemcpy3DParms, dstPtr.ysize), "the destination's height"},
    {cudaGraphNodeTypeMemcpy, offsetof(struct cudaMemcpy3DParms, extent.width), "the width"},
    {cudaGraphNodeTypeMemcpy, offsetof(struct cudaMemcpy3DParms, extent.height), "the height"},
    {cudaGraphNodeTypeMemcpy, offsetof(struct cudaMemcpy3DParms, extent.depth), "the depth"},
    {cudaGraphNodeTypeMemcpy, offsetof(struct cudaMemcpy3DParms, kind), "the kind"},
    {cudaGraphNodeTypeMemset, offsetof(struct cudaMemsetParams, dst), "the destination"},
    {cudaGraphNodeTypeMemset, offsetof(struct cudaMemsetParams, pitch), "the pitch"},
    {cudaGraphNodeTypeMemset, offsetof(struct cudaMemsetParams, elementSize), "the size of an element"},
    {cudaGraphNodeTypeMemset, offsetof(struct cudaMemsetParams, value), "the value"},
    {cudaGraphNodeTypeMemset, offsetof(struct cudaMemsetParams, width), "the width"},
    {cudaGraphNodeTypeMemset, offsetof(struct cudaMemsetParams, height), "the height"},
    {cudaGraphNodeTypeHost, offsetof(struct cudaHostNodeParams, fn), "the function"},
    {cudaGraphNodeTypeHost, offsetof(struct cudaHostNodeParams, userData), "the user's data"},
    {cudaGraphNodeTypeEventRecord, 0, "the event"},
    {cudaGraphNodeTypeWaitEvent, 0, "the event"},
    {cudaGraphNodeTypeMemAlloc, 0, "the address"},
    {cudaGraphNodeTypeMemFree, 0, "the address"},
};

size_t gcap_contents_value_bytes(const gcap_contents_t* contents, const gcap_contents_node_t* node, size_t part,
                                 size_t offset) {
  const size_t left = gcap_contents_parts_of(contents, node)[part].bytes - offset;
  size_t bytes = left < 8 ? left : 8;
  for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); ++i) {
    const bool is_inside = members[i].type == node->type && members[i].offset > offset;
    if (is_inside && members[i].offset - offset < bytes) bytes = members[i].offset - offset;
  }
  return bytes;
}

void gcap_contents_write_place(const gcap_contents_t* contents, const gcap_contents_node_t* node, size_t part,
                               size_t offset, char* text, size_t capacity) {
  for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); ++i) {
    if (members[i].type != node->type || members[i].offset != offset) continue;
    snprintf(text, capacity, "%s", members[i].name);
    return;
  }
  gcap_text_t out;
  gcap_text_init(&out, text, capacity);
  if (node->by_extra) {
    gcap_text_add(&out, "the argument buffer");
  } else {
    gcap_text_add(&out, "argument %zu", part);
  }
  if (offset != 0 || gcap_contents_parts_of(contents, node)[part].bytes > 8) gcap_text_add(&out, ", byte %zu", offset);
}
