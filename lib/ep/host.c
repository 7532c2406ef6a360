// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Copies, streams, memory and forks of an EP: the table's member, else the runtime, else the default of ep_ops.h.

#include <stdio.h>
#include <string.h>

#include "lib/ep/ep_internal.h"
#include "lib/internal/check_argument.h"
#include "lib/runtime/copy_check.h"

bool gcap_ep_can_copy(gcap_ep_t* ep, gcap_memory_t src, gcap_memory_t dst) {
  const gcap_ep_ops_t* ops = &ep->ops;
  if (ops->can_copy != NULL) return ops->can_copy(ops->self, src, dst);
  if (ops->runtime != NULL) return gcap_runtime_can_copy(ops->runtime, src, dst);
  return ops->runs_on_host && gcap_memory_is_on_host(src) && gcap_memory_is_on_host(dst);
}

// Copies by the CPU, which has no stream. All are checked before the first is made.
static gcap_status_t copy_on_host(const gcap_copy_t* copies, size_t count, const char* ep_name) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    GCAP_RETURN_IF_ERROR(gcap_copy_check(copies, i, &bytes));
    if (copies[i].stream == NULL) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "copies[%zu] has a stream, and EP '%s' runs on the host, which has none",
                       i, ep_name);
  }
  for (size_t i = 0; i < count; ++i) {
    bytes = gcap_tensor_bytes(copies[i].src);
    if (bytes > 0) memmove(copies[i].dst->data, copies[i].src->data, bytes);
  }
  return NULL;
}

gcap_status_t gcap_ep_copy_tensors(gcap_ep_t* ep, const gcap_copy_t* copies, size_t count) {
  GCAP_RETURN_IF_NULL(ep);
  if (count == 0) return NULL;
  GCAP_RETURN_IF_NULL(copies);
  const gcap_ep_ops_t* ops = &ep->ops;
  if (ops->copy_tensors != NULL) return ops->copy_tensors(ops->self, copies, count);
  if (ops->runtime != NULL) return gcap_runtime_copy_tensors(ops->runtime, copies, count);
  for (size_t i = 0; i < count; ++i) {
    if (gcap_ep_can_copy(ep, copies[i].src_memory, copies[i].dst_memory)) continue;
    char who[64];
    snprintf(who, sizeof(who), "EP '%.50s'", ep->name);
    return gcap_copy_refuse_memory(copies, i, who);
  }
  return copy_on_host(copies, count, ep->name);
}

gcap_status_t gcap_ep_copy_tensor(gcap_ep_t* ep, const gcap_copy_t* copy) {
  GCAP_RETURN_IF_NULL(ep);
  GCAP_RETURN_IF_NULL(copy);
  return gcap_ep_copy_tensors(ep, copy, 1);
}

bool gcap_ep_copies_in_default_stream(const gcap_ep_t* ep) {
  const gcap_ep_ops_t* ops = &ep->ops;
  if (ops->copies_in_default_stream != NULL) return ops->copies_in_default_stream(ops->self);
  return ops->runtime == NULL || gcap_runtime_copies_in_default_stream(ops->runtime);
}

// What an EP without a runtime lacks.
static gcap_status_t lacks(const gcap_ep_t* ep, const char* operation, const char* member) {
  return GCAP_STATUS(GCAP_UNIMPLEMENTED, "%s: the table of EP '%s' has no %s and no runtime", operation, ep->name,
                     member);
}

gcap_status_t gcap_ep_create_stream(gcap_ep_t* ep, gcap_stream_t** out_stream) {
  GCAP_RETURN_IF_NULL(out_stream);
  *out_stream = NULL;
  GCAP_RETURN_IF_NULL(ep);
  const gcap_ep_ops_t* ops = &ep->ops;
  if (ops->create_stream != NULL) return ops->create_stream(ops->self, out_stream);
  if (ops->runtime != NULL) return gcap_runtime_create_stream(ops->runtime, out_stream);
  return lacks(ep, __func__, "create_stream");
}

gcap_status_t gcap_ep_get_allocator(gcap_ep_t* ep, gcap_memory_kind_t kind, gcap_allocator_t** out_allocator) {
  GCAP_RETURN_IF_NULL(out_allocator);
  *out_allocator = NULL;
  GCAP_RETURN_IF_NULL(ep);
  const gcap_ep_ops_t* ops = &ep->ops;
  if (ops->get_allocator != NULL) return ops->get_allocator(ops->self, kind, out_allocator);
  if (ops->runtime != NULL) return gcap_runtime_get_allocator(ops->runtime, kind, out_allocator);
  gcap_run_resources_t resources = {0};
  if (kind == GCAP_MEMORY_DEVICE) GCAP_RETURN_IF_ERROR(gcap_ep_get_run_resources(ep, &resources));
  *out_allocator = resources.allocator;
  return resources.allocator != NULL ? NULL : lacks(ep, __func__, "get_allocator");
}

gcap_status_t gcap_ep_fork(gcap_ep_t* ep, size_t count, gcap_stream_t** out_streams) {
  if (count > 0) GCAP_RETURN_IF_NULL(out_streams);
  for (size_t i = 0; i < count; ++i) out_streams[i] = NULL;
  GCAP_RETURN_IF_NULL(ep);
  const gcap_ep_ops_t* ops = &ep->ops;
  if (ops->fork != NULL) return ops->fork(ops->self, count, out_streams);
  return ops->runtime != NULL ? gcap_runtime_fork(ops->runtime, count, out_streams) : lacks(ep, __func__, "fork");
}

gcap_status_t gcap_ep_join(gcap_ep_t* ep) {
  GCAP_RETURN_IF_NULL(ep);
  const gcap_ep_ops_t* ops = &ep->ops;
  if (ops->join != NULL) return ops->join(ops->self);
  return ops->runtime != NULL ? gcap_runtime_join(ops->runtime) : lacks(ep, __func__, "join");
}
