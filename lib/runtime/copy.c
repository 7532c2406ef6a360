// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Copies for a host. All are checked, then issued in order. Those without a stream go to one stream, which is waited
// for once: that of the thread's runs, or one that the pool gives. cudaMemcpy is not used: it works on the legacy
// stream, which waits for all blocking streams and breaks their captures.
//
// In a capture a copy is a node, which has the address of its host memory for good. So host memory must be page-locked
// there, of which CUDA itself is asked: what a host calls pinned may not be.
//
// Locking: the turns of a runtime whose threads share one stream, over a copy that waits for it.

#include <stdio.h>

#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/unwind.h"
#include "lib/runtime/copy_check.h"
#include "lib/runtime/runtime_internal.h"
#include "lib/stream/inner.h"

static bool is_own(const gcap_own_runtime_t* runtime, gcap_memory_t memory) {
  return memory.kind == GCAP_MEMORY_DEVICE && memory.device_id == runtime->options.device_id;
}

static bool is_reached(const gcap_own_runtime_t* runtime, gcap_memory_t memory) {
  if (gcap_memory_is_on_host(memory) || is_own(runtime, memory)) return true;
  if (memory.kind != GCAP_MEMORY_DEVICE) return false;
  gcap_status_t status = gcap_check_device(memory.device_id);
  const bool exists = status == NULL;
  gcap_status_ignore(status);  // that there is no such device is the answer
  return exists;
}

bool gcap_own_runtime_can_copy(const void* self, gcap_memory_t src, gcap_memory_t dst) {
  const gcap_own_runtime_t* runtime = self;
  return (is_own(runtime, src) && is_reached(runtime, dst)) || (is_own(runtime, dst) && is_reached(runtime, src));
}

// --- In a capture ---------------------------------------------------------------------------------------------------

// Refuses a copy that the graph would lack, or could not repeat; so the scope fails.
static gcap_status_t latched(gcap_status_t status) {
  if (status != NULL && gcap_thread_captures()) gcap_thread_capture_hooks->fail(status);
  return status;
}

static gcap_status_t check_in_scope(const gcap_copy_t* copy, size_t index) {
  if (!gcap_thread_captures()) return NULL;
  if (copy->stream == NULL) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "copies[%zu] has no stream and would be waited for, and this thread is capturing: give it a "
                       "stream of the capture, or copy before the run",
                       index);
  }
  bool captures = false;
  const cudaStream_t stream = gcap_stream_handle(copy->stream);
  GCAP_RETURN_IF_ERROR(gcap_thread_capture_hooks->captures(stream, &captures));
  if (captures) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "copies[%zu]: stream %p is not in the capture of this thread, so the graph would lack the copy: "
                     "give it a stream of the capture, or copy before the run",
                     index, (void*)stream);
}

static gcap_status_t check_host_memory(const gcap_tensor_t* tensor, size_t index, const char* name) {
  struct cudaPointerAttributes attributes;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaPointerGetAttributes(&attributes, tensor->data)));
  if (attributes.type != cudaMemoryTypeUnregistered) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "copies[%zu]: %s is pageable host memory at %p, and each replay would copy at that address again: "
                     "use pinned memory that lives as long as the graph, or copy before the run",
                     index, name, tensor->data);
}

// What a copy of host memory must be if its stream is being captured, by whomever.
static gcap_status_t check_captured(const gcap_copy_t* copy, size_t index) {
  const bool src_on_host = gcap_memory_is_on_host(copy->src_memory),
             dst_on_host = gcap_memory_is_on_host(copy->dst_memory);
  if (copy->stream == NULL || !gcap_stream_can_capture(copy->stream) || !(src_on_host || dst_on_host)) return NULL;
  bool is_captured = false;
  GCAP_RETURN_IF_ERROR(gcap_is_stream_capturing(gcap_stream_handle(copy->stream), &is_captured));
  if (!is_captured) return NULL;
  return src_on_host ? check_host_memory(copy->src, index, "src") : check_host_memory(copy->dst, index, "dst");
}

// --- Copies ---------------------------------------------------------------------------------------------------------

static gcap_status_t check(gcap_own_runtime_t* runtime, const gcap_copy_t* copies, size_t index) {
  size_t bytes = 0;
  GCAP_RETURN_IF_ERROR(gcap_copy_check(copies, index, &bytes));
  const gcap_copy_t* copy = &copies[index];
  if (!gcap_own_runtime_can_copy(runtime, copy->src_memory, copy->dst_memory)) {
    char who[48];
    snprintf(who, sizeof(who), "the runtime of device %d", runtime->options.device_id);
    return gcap_copy_refuse_memory(copies, index, who);
  }
  GCAP_RETURN_IF_ERROR(check_in_scope(copy, index));
  return bytes > 0 ? check_captured(copy, index) : NULL;
}

static enum cudaMemcpyKind kind_of(const gcap_copy_t* copy) {
  if (copy->src_memory.kind != GCAP_MEMORY_DEVICE) return cudaMemcpyHostToDevice;
  return copy->dst_memory.kind == GCAP_MEMORY_DEVICE ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
}

// A copy between devices names both, so that CUDA finds memory of pools too. In a capture cudaMemcpyPeerAsync is
// refused, and the unified address space tells the devices.
static gcap_status_t issue(const gcap_copy_t* copy, const gcap_stream_t* on) {
  const cudaStream_t stream = gcap_stream_handle(on);
  const gcap_memory_t src = copy->src_memory, dst = copy->dst_memory;
  const size_t bytes = gcap_tensor_bytes(copy->src);
  void *to = copy->dst->data, *from = copy->src->data;
  if (bytes == 0) return NULL;
  const bool is_between_devices = kind_of(copy) == cudaMemcpyDeviceToDevice && src.device_id != dst.device_id;
  bool is_captured = false;
  if (is_between_devices && gcap_stream_can_capture(on)) {
    GCAP_RETURN_IF_ERROR(gcap_is_stream_capturing(stream, &is_captured));
  }
  if (!is_between_devices || is_captured) return GCAP_CUDA(cudaMemcpyAsync(to, from, bytes, kind_of(copy), stream));
  return GCAP_CUDA(cudaMemcpyPeerAsync(to, dst.device_id, from, src.device_id, bytes, stream));
}

// Issues all, those without a stream to `stream`.
static gcap_status_t issue_all(const gcap_copy_t* copies, size_t count, gcap_stream_t* stream) {
  for (size_t i = 0; i < count; ++i) {
    GCAP_RETURN_IF_ERROR(issue(&copies[i], copies[i].stream != NULL ? copies[i].stream : stream));
  }
  return NULL;
}

static gcap_status_t issue_and_wait(const gcap_copy_t* copies, size_t count, gcap_stream_t* stream) {
  gcap_status_t status = issue_all(copies, count, stream);
  return gcap_status_join(status, gcap_stream_synchronize(stream));
}

static gcap_status_t copy_and_wait(gcap_own_runtime_t* runtime, const gcap_copy_t* copies, size_t count) {
  if (runtime->options.do_copy_in_default_stream) {
    GCAP_AT_SCOPE_END(gcap_runtime_end_turn) gcap_runtime_t* turn = gcap_runtime_begin_turn(&runtime->base);
    (void)turn;
    gcap_thread_context_t* context = NULL;
    GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
    return issue_and_wait(copies, count, gcap_thread_context_stream(context));
  }
  gcap_stream_t* stream = NULL;
  GCAP_RETURN_IF_ERROR(gcap_stream_pool_acquire(runtime->streams, &stream));
  gcap_status_t status = issue_and_wait(copies, count, stream);
  return gcap_status_join(status, gcap_stream_pool_release(runtime->streams, stream));
}

gcap_status_t gcap_own_runtime_copy_tensors(void* self, const gcap_copy_t* copies, size_t count) {
  gcap_own_runtime_t* runtime = self;
  bool waits = false;
  for (size_t i = 0; i < count; ++i) {
    GCAP_RETURN_IF_ERROR(latched(check(runtime, copies, i)));
    waits |= copies[i].stream == NULL;
  }
  return waits ? copy_and_wait(runtime, copies, count) : issue_all(copies, count, NULL);
}
