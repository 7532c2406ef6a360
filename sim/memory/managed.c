// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Managed memory: one address for host and devices.
//
// The idea: device memory is host memory here, so managed memory is an allocation that both may touch, and no page ever
// moves: what a program says of places is judged as measured, and kept to be asked for alone (range.c). The host's own
// accesses are not seen, as with pinned memory. It does not count as the device's memory, of which a GPU too can give
// out more than it has.
// Locking: the global mutex.
#include "sim/memory/managed.h"

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/die.h"
#include "sim/base/thread.h"
#include "sim/device/device.h"
#include "sim/memory/allocation.h"
#include "sim/memory/memory.h"
#include "sim/stream/capture.h"
#include "sim/stream/stream.h"

cudaError_t cudaMallocManaged(void** devPtr, size_t size, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMallocManaged);
  bool attach = flags == cudaMemAttachGlobal || flags == cudaMemAttachHost;
  if (code == cudaSuccess && !attach) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) code = gcap_sim_allocate(devPtr, size, cudaMemoryTypeManaged);
  return gcap_sim_leave(code);
}

static gcap_sim_allocation_t* find_managed(const void* address) {
  gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(address);
  return allocation != NULL && allocation->type == cudaMemoryTypeManaged ? allocation : NULL;
}

gcap_sim_allocation_t* gcap_sim_managed_find(const void* address, size_t bytes) {
  gcap_sim_allocation_t* allocation = find_managed(address);
  if (allocation == NULL || bytes == 0) return NULL;
  return bytes <= allocation->bytes - (size_t)((uintptr_t)address - (uintptr_t)allocation->base) ? allocation : NULL;
}

static bool is_of_host(struct cudaMemLocation location) {
  return location.type == cudaMemLocationTypeHost || location.type == cudaMemLocationTypeHostNuma ||
         location.type == cudaMemLocationTypeHostNumaCurrent;
}

static bool is_device(struct cudaMemLocation location) {
  return location.type == cudaMemLocationTypeDevice && location.id >= 0 && location.id < gcap_sim_device_count();
}

// With an id where one counts, so that equal places are equal.
static struct cudaMemLocation kept(struct cudaMemLocation location) {
  const bool has_id = location.type == cudaMemLocationTypeDevice || location.type == cudaMemLocationTypeHostNuma;
  return (struct cudaMemLocation){.type = location.type, .id = has_id ? location.id : 0};
}

static void note_prefetch(gcap_sim_page_advice_t* page, const void* location) {
  page->prefetched = kept(*(const struct cudaMemLocation*)location);
}

static cudaError_t prefetch(const void* address, size_t bytes, struct cudaMemLocation location, unsigned int flags) {
  gcap_sim_allocation_t* allocation = gcap_sim_managed_find(address, bytes);
  if (flags != 0 || allocation == NULL) return cudaErrorInvalidValue;
  if (!is_of_host(location) && !is_device(location)) {
    return location.type == cudaMemLocationTypeDevice ? cudaErrorInvalidDevice : cudaErrorInvalidValue;
  }
  gcap_sim_advice_change(&allocation->advice, address, bytes, note_prefetch, &location);
  return cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void* devPtr, size_t count, struct cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemPrefetchAsync);
  if (code == cudaSuccess) code = gcap_sim_gate_not_capturing(gcap_sim_stream_get(stream));
  if (code == cudaSuccess) code = gcap_sim_gate_ordered(gcap_sim_stream_get(stream));
  if (code == cudaSuccess) code = prefetch(devPtr, count, location, flags);
  return gcap_sim_leave(code);
}

// Measured: advice on how memory is read is for all places, and there is one preferred location to forget, whatever
// place comes with it.
static bool has_place(enum cudaMemoryAdvise advice) {
  return advice == cudaMemAdviseSetPreferredLocation || advice == cudaMemAdviseSetAccessedBy ||
         advice == cudaMemAdviseUnsetAccessedBy;
}

typedef struct said {
  enum cudaMemoryAdvise advice;
  struct cudaMemLocation location;
} said_t;

static void note_accessed_by(gcap_sim_page_advice_t* page, struct cudaMemLocation location, bool is_set) {
  if (is_of_host(location)) {
    page->is_accessed_by_host = is_set;
  } else if (is_set) {
    page->accessed_by |= 1u << location.id;
  } else {
    page->accessed_by &= ~(1u << location.id);
  }
}

static void note_advice(gcap_sim_page_advice_t* page, const void* user) {
  const said_t* said = user;
  const struct cudaMemLocation nowhere = {.type = cudaMemLocationTypeInvalid};
  switch (said->advice) {
    case cudaMemAdviseSetReadMostly: page->is_read_mostly = true; break;
    case cudaMemAdviseUnsetReadMostly: page->is_read_mostly = false; break;
    case cudaMemAdviseSetPreferredLocation: page->preferred = kept(said->location); break;
    case cudaMemAdviseUnsetPreferredLocation: page->preferred = nowhere; break;
    case cudaMemAdviseSetAccessedBy: note_accessed_by(page, said->location, true); break;
    case cudaMemAdviseUnsetAccessedBy: note_accessed_by(page, said->location, false); break;
  }
}

static cudaError_t advise(const void* address, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location) {
  if (advice < cudaMemAdviseSetReadMostly || advice > cudaMemAdviseUnsetAccessedBy) return cudaErrorInvalidValue;
  bool placed = !has_place(advice) || is_of_host(location) || is_device(location);
  gcap_sim_allocation_t* allocation = gcap_sim_managed_find(address, bytes);
  if (!placed || allocation == NULL) return cudaErrorInvalidValue;
  const said_t said = {.advice = advice, .location = location};
  gcap_sim_advice_change(&allocation->advice, address, bytes, note_advice, &said);
  return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void* devPtr, size_t count, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemAdvise);
  if (code == cudaSuccess) code = advise(devPtr, count, advice, location);
  return gcap_sim_leave(code);
}

// Whole allocations alone. What is a single stream's is that of one which has a handle.
static cudaError_t attach(const void* address, size_t bytes, unsigned int flags, const gcap_sim_stream_t* stream) {
  const gcap_sim_allocation_t* allocation = find_managed(address);
  bool whole = allocation != NULL && allocation->base == address && (bytes == 0 || bytes == allocation->bytes);
  if (!whole || (stream->legacy && flags == cudaMemAttachSingle)) return cudaErrorInvalidValue;
  bool one = flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle;
  if (!one) gcap_sim_die("cudaStreamAttachMemAsync: flags %u: the real runtime does not survive them", flags);
  return cudaSuccess;
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* devPtr, size_t length, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamAttachMemAsync);
  if (code == cudaSuccess) code = gcap_sim_gate_not_capturing(gcap_sim_stream_get(stream));
  if (code == cudaSuccess) code = attach(devPtr, length, flags, gcap_sim_stream_get(stream));
  return gcap_sim_leave(code);
}
