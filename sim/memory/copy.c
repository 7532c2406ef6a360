// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Copies and fills.
//
// The idea: arguments are judged by what the addresses are (device, pinned or pageable host memory), as the real
// runtime does. An eager copy from pageable memory takes the bytes at the call; one to pageable memory, or between host
// buffers, returns when it is done; the rest is queued. In a capture every copy is a node that reads at the launch.
// Locking: the global mutex.
#include "sim/memory/copy.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/log.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/bridge/task_access.h"
#include "sim/device/peer.h"
#include "sim/memory/allocation.h"
#include "sim/memory/host_range.h"
#include "sim/memory/pool.h"
#include "sim/stream/capture.h"
#include "sim/stream/scheduler.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

static enum cudaMemoryType type_of(const void* address) {
  const gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(address);
  return allocation != NULL ? allocation->type : cudaMemoryTypeUnregistered;
}

static int device_of(const void* address) {
  const gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(address);
  return allocation != NULL && allocation->type == cudaMemoryTypeDevice ? allocation->device : cudaInvalidDeviceId;
}

// Does a range that starts in an allocation end in it? Pageable memory is the caller's own affair.
static bool fits(const void* address, size_t pitch, size_t width, size_t height) {
  const gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(address);
  if (allocation == NULL) return true;
  size_t room = allocation->bytes - (size_t)((uintptr_t)address - (uintptr_t)allocation->base);
  if (width > room) return false;
  return height <= 1 || (room - width) / pitch >= height - 1;
}

// The same for slices, each `slice` bytes after the one before.
static bool slices_fit(const void* address, size_t pitch, size_t slice, const gcap_sim_copy_t* copy) {
  if (!fits(address, pitch, copy->width, copy->height)) return false;
  if (copy->depth <= 1) return true;
  if (slice / pitch < copy->height || copy->depth - 1 > SIZE_MAX / slice) return false;
  if (!fits(address, 0, (copy->depth - 1) * slice + 1, 1)) return false;
  return fits((const char*)address + (copy->depth - 1) * slice, pitch, copy->width, copy->height);
}

// What is called the device's side must be memory that a device can reach; the host's side may be anything.
static bool kind_matches(const gcap_sim_copy_t* copy) {
  bool from_device = copy->kind == cudaMemcpyDeviceToHost || copy->kind == cudaMemcpyDeviceToDevice;
  bool to_device = copy->kind == cudaMemcpyHostToDevice || copy->kind == cudaMemcpyDeviceToDevice;
  if (from_device && copy->src_type == cudaMemoryTypeUnregistered) return false;
  return !to_device || copy->dst_type != cudaMemoryTypeUnregistered;
}

// As the log calls it.
static const char* memory_name(enum cudaMemoryType type) {
  static const char* const names[] = {"pageable memory", "pinned memory", "device", "managed memory"};
  return names[type];
}

// Checks what does not depend on the stream, and fills in what memory it is.
static cudaError_t judge(gcap_sim_copy_t* copy) {
  gcap_sim_note_argument("%zu bytes", copy->width * copy->height * (copy->depth ? copy->depth : 1));
  if ((unsigned int)copy->kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (copy->dst == NULL || copy->src == NULL) return cudaErrorInvalidValue;
  bool rows = copy->height > 1 || copy->depth > 1;
  if (rows && (copy->width > copy->dst_pitch || copy->width > copy->src_pitch)) {
    return cudaErrorInvalidPitchValue;
  }
  if (!slices_fit(copy->dst, copy->dst_pitch, copy->dst_slice, copy)) return cudaErrorInvalidValue;
  if (!slices_fit(copy->src, copy->src_pitch, copy->src_slice, copy)) return cudaErrorInvalidValue;
  copy->dst_type = type_of(copy->dst);
  copy->src_type = type_of(copy->src);
  copy->dst_device = device_of(copy->dst);
  copy->src_device = device_of(copy->src);
  gcap_sim_note_argument("%s to %s", memory_name(copy->src_type), memory_name(copy->dst_type));
  return cudaSuccess;
}

void gcap_sim_copy_stage(gcap_sim_task_t* task) {
  const gcap_sim_copy_t* copy = &task->u.copy.copy;
  gcap_sim_access_stage(copy);
  gcap_sim_check_source(copy);
  size_t slices = copy->depth ? copy->depth : 1;
  char* staged = gcap_sim_calloc(slices * copy->height, copy->width);
  char* row = staged;
  for (size_t slice = 0; slice < slices; ++slice) {
    for (size_t i = 0; i < copy->height; ++i, row += copy->width) {
      memcpy(row, (const char*)copy->src + slice * copy->src_slice + i * copy->src_pitch, copy->width);
    }
  }
  task->u.copy.staged = staged;
}

static gcap_sim_task_t* copy_task(const gcap_sim_copy_t* copy) {
  gcap_sim_task_t* task = gcap_sim_task_create(GCAP_SIM_TASK_COPY, "memcpy");
  task->u.copy.copy = *copy;
  return task;
}

gcap_sim_task_t* gcap_sim_copy_task(gcap_sim_copy_t* copy, cudaError_t* code) {
  *code = copy->width && copy->height ? judge(copy) : cudaErrorInvalidValue;
  if (*code == cudaSuccess && !kind_matches(copy)) *code = cudaErrorInvalidValue;
  return *code == cudaSuccess ? copy_task(copy) : NULL;
}

static char* folded(struct cudaPitchedPtr pointer, struct cudaPos at) {
  return pointer.ptr != NULL ? (char*)pointer.ptr + (at.z * pointer.ysize + at.y) * pointer.pitch + at.x : NULL;
}

// Does a range reach beyond a limit, where 0 is none?
static bool leaves(size_t at, size_t extent, size_t limit) {
  return limit > 0 && (extent > limit || at > limit - extent);
}

// A side of a copy of slices. Measured: rows or slices on either side that are too close together for what is copied
// are a bad pitch; else a box that only its position pushes out is a bad value. A pitch of 0 leaves the rows unchecked,
// and so does a height of 0.
static bool overlaps(const struct cudaPitchedPtr* pointer, struct cudaExtent extent) {
  bool rows_overlap = (extent.height > 1 || extent.depth > 1) && leaves(0, extent.width, pointer->pitch);
  return rows_overlap || (extent.depth > 1 && leaves(0, extent.height, pointer->ysize));
}

static bool is_outside(const struct cudaPitchedPtr* pointer, struct cudaPos at, struct cudaExtent extent) {
  return leaves(at.x, extent.width, pointer->pitch) || leaves(at.y, extent.height, pointer->ysize);
}

cudaError_t gcap_sim_judge_copy_params(const struct cudaMemcpy3DParms* params) {
  if (params == NULL) return cudaErrorInvalidValue;
  if (params->extent.width == 0 || params->extent.height == 0 || params->extent.depth == 0) return cudaSuccess;
  const struct cudaExtent extent = params->extent;
  if (overlaps(&params->srcPtr, extent) || overlaps(&params->dstPtr, extent)) return cudaErrorInvalidPitchValue;
  bool outside =
      is_outside(&params->srcPtr, params->srcPos, extent) || is_outside(&params->dstPtr, params->dstPos, extent);
  return outside ? cudaErrorInvalidValue : cudaSuccess;
}

gcap_sim_copy_t gcap_sim_copy_of_params(const struct cudaMemcpy3DParms* params) {
  if (params->srcArray != NULL || params->dstArray != NULL) {
    gcap_sim_die("%s: CUDA arrays are not modelled", gcap_sim_thread()->call);
  }
  bool empty = params->extent.depth == 0;
  return (gcap_sim_copy_t){.dst = folded(params->dstPtr, params->dstPos),
                           .dst_pitch = params->dstPtr.pitch,
                           .src = folded(params->srcPtr, params->srcPos),
                           .src_pitch = params->srcPtr.pitch,
                           .width = empty ? 0 : params->extent.width,
                           .height = params->extent.height,
                           .depth = params->extent.depth,
                           .dst_slice = params->dstPtr.pitch * params->dstPtr.ysize,
                           .src_slice = params->srcPtr.pitch * params->srcPtr.ysize,
                           .kind = params->kind};
}

// The largest pageable source whose bytes are taken at the call; a larger one is read while the host waits.
#define MAX_STAGED_BYTES ((size_t)64 << 20)

static bool is_staged(const gcap_sim_copy_t* copy) {
  if (copy->dst_type != cudaMemoryTypeDevice || copy->src_type != cudaMemoryTypeUnregistered) return false;
  return copy->width * copy->height * (copy->depth ? copy->depth : 1) <= MAX_STAGED_BYTES;
}

// Must the host wait for it? Whatever touches pageable memory, and copies between host buffers, hold the host.
static bool holds_host(const gcap_sim_copy_t* copy) {
  if (copy->dst_type == cudaMemoryTypeUnregistered || copy->src_type == cudaMemoryTypeUnregistered) return true;
  return copy->dst_type == cudaMemoryTypeHost && copy->src_type == cudaMemoryTypeHost;
}

cudaError_t gcap_sim_copy_async(gcap_sim_copy_t* copy, gcap_sim_stream_t* stream) {
  if (copy->width == 0 || copy->height == 0) return cudaSuccess;
  cudaError_t code = judge(copy);
  if (code == cudaSuccess) code = gcap_sim_gate_ordered(stream);
  if (code != cudaSuccess) return code;
  if (!kind_matches(copy)) return cudaErrorInvalidValue;
  if (stream->member != NULL) return gcap_sim_submit_task(stream, copy_task(copy));
  gcap_sim_task_t* task = copy_task(copy);
  bool staged = is_staged(copy);
  if (staged) gcap_sim_copy_stage(task);
  code = gcap_sim_submit_task(stream, task);
  if (code == cudaSuccess && !staged && holds_host(copy)) gcap_sim_wait_for(gcap_sim_stream_tail_mark(stream));
  return code;
}

static gcap_sim_copy_t linear(void* dst, const void* src, size_t count, enum cudaMemcpyKind kind) {
  return (gcap_sim_copy_t){.dst = dst, .src = src, .width = count, .height = 1, .kind = kind};
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpyAsync);
  gcap_sim_copy_t copy = linear(dst, src, count, kind);
  if (code == cudaSuccess) code = gcap_sim_copy_async(&copy, gcap_sim_stream_get(stream));
  return gcap_sim_leave(code);
}

cudaError_t gcap_sim_copy_sync(gcap_sim_copy_t* copy) {
  gcap_sim_stream_t* stream = gcap_sim_stream_get(cudaStreamLegacy);
  cudaError_t code = gcap_sim_copy_async(copy, stream);
  if (code != cudaSuccess || copy->width == 0 || copy->height == 0) return code;
  // A copy within the device does not hold the host, not even this one.
  bool on_device = copy->src_type == cudaMemoryTypeDevice && copy->dst_type == cudaMemoryTypeDevice;
  if (!on_device) gcap_sim_wait_for(gcap_sim_stream_tail_mark(stream));
  return code;
}

cudaError_t cudaMemcpy(void* dst, const void* src, size_t count, enum cudaMemcpyKind kind) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpy);
  gcap_sim_copy_t copy = linear(dst, src, count, kind);
  if (code == cudaSuccess) code = gcap_sim_copy_sync(&copy);
  return gcap_sim_leave(code);
}

static bool is_fill(const gcap_sim_fill_t* fill) {
  unsigned int bytes = fill->element_bytes;
  if (fill->width == 0 || fill->height == 0 || (bytes != 1 && bytes != 2 && bytes != 4)) return false;
  if (fill->width > SIZE_MAX / bytes || (uintptr_t)fill->dst % bytes != 0) return false;
  return fill->height <= 1 || (fill->pitch >= fill->width * bytes && fill->pitch % bytes == 0);
}

bool gcap_sim_fill_has_memory(const gcap_sim_fill_t* fill) {
  return type_of(fill->dst) != cudaMemoryTypeUnregistered &&
         fits(fill->dst, fill->pitch, fill->width * fill->element_bytes, fill->height);
}

// May work on the device fill this memory now? That of a graph is there from a launch to the free alone.
static bool can_fill(const gcap_sim_fill_t* fill, int device) {
  if (!gcap_sim_fill_has_memory(fill)) return false;
  const gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(fill->dst);
  if (allocation->of_graph && !allocation->claimed) return false;
  if (allocation->block != NULL && !gcap_sim_block_is_open_to(allocation->block, device)) return false;
  int owner = device_of(fill->dst);
  return owner == cudaInvalidDeviceId || owner == device || gcap_sim_peer_enabled(device, owner);
}

static gcap_sim_task_t* fill_task(const gcap_sim_fill_t* fill) {
  gcap_sim_task_t* task = gcap_sim_task_create(GCAP_SIM_TASK_FILL, "memset");
  task->u.fill = *fill;
  task->u.fill.type = type_of(fill->dst);
  task->u.fill.device = device_of(fill->dst);
  return task;
}

gcap_sim_task_t* gcap_sim_fill_task(const gcap_sim_fill_t* fill, cudaError_t* code) {
  *code = is_fill(fill) && gcap_sim_fill_has_memory(fill) ? cudaSuccess : cudaErrorInvalidValue;
  return *code == cudaSuccess ? fill_task(fill) : NULL;
}

cudaError_t gcap_sim_fill_async(const gcap_sim_fill_t* fill, gcap_sim_stream_t* stream) {
  if (fill->width == 0 || fill->height == 0) return cudaSuccess;
  cudaError_t code = gcap_sim_gate_ordered(stream);
  if (code != cudaSuccess) return code;
  // Measured: a capture takes a fill of any memory, and of none; the instantiation looks at it.
  bool ok = is_fill(fill) && (stream->member != NULL || can_fill(fill, stream->device));
  return ok ? gcap_sim_submit_task(stream, fill_task(fill)) : cudaErrorInvalidValue;
}

cudaError_t gcap_sim_fill_sync(const gcap_sim_fill_t* fill) {
  gcap_sim_stream_t* stream = gcap_sim_stream_get(cudaStreamLegacy);
  cudaError_t code = gcap_sim_fill_async(fill, stream);
  // Only a fill of host memory holds the host.
  if (code == cudaSuccess && type_of(fill->dst) == cudaMemoryTypeHost) {
    gcap_sim_wait_for(gcap_sim_stream_tail_mark(stream));
  }
  return code;
}

static gcap_sim_fill_t bytes_of(void* address, int value, size_t count) {
  return (gcap_sim_fill_t){
      .dst = address, .value = (unsigned char)value, .element_bytes = 1, .width = count, .height = 1};
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, size_t count, cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemsetAsync);
  gcap_sim_fill_t fill = bytes_of(devPtr, value, count);
  if (code == cudaSuccess) code = gcap_sim_fill_async(&fill, gcap_sim_stream_get(stream));
  return gcap_sim_leave(code);
}

cudaError_t cudaMemset(void* devPtr, int value, size_t count) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemset);
  gcap_sim_fill_t fill = bytes_of(devPtr, value, count);
  if (code == cudaSuccess) code = gcap_sim_fill_sync(&fill);
  return gcap_sim_leave(code);
}
