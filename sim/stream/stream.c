// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Streams as callers see them: creation, destruction, synchronisation and queries.
//
// The idea: the legacy stream and the per-thread ones are streams like others that were never given a handle. A stream
// that is destroyed with work pending lives on without its handle until its queue has drained. Locking: the global
// mutex.
#include "sim/stream/stream.h"

#include <stdlib.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/api/log.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/bridge/order.h"
#include "sim/device/device.h"
#include "sim/device/properties.h"
#include "sim/memory/pool.h"
#include "sim/stream/capture.h"
#include "sim/stream/past.h"
#include "sim/stream/scheduler.h"

static unsigned long long next_id = 1;
static uint64_t num_created;  // by the program

gcap_sim_stream_t* gcap_sim_stream_create(int device, unsigned int flags, int priority) {
  gcap_sim_stream_t* stream = gcap_sim_calloc(1, sizeof(*stream));
  stream->id = next_id++;
  stream->name = (gcap_sim_stream_name_t){.is_stream = true, .device = device};
  stream->device = device;
  stream->flags = flags;
  stream->priority = priority;
  stream->advice.policy = -1;
  stream->advice.domains.remote = 1;
  gcap_sim_order_stream_created(stream);
  return stream;
}

static gcap_sim_stream_t* per_thread_stream(void) {
  gcap_sim_thread_t* thread = gcap_sim_thread();
  gcap_sim_stream_t** stream = &thread->streams[thread->device];
  if (*stream == NULL) {
    *stream = gcap_sim_stream_create(thread->device, cudaStreamDefault, 0);
    (*stream)->name.thread = thread->id;
  }
  return *stream;
}

gcap_sim_stream_t* gcap_sim_stream_get(cudaStream_t handle) {
  bool special = handle == NULL || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
  if (gcap_sim_log_on && special) gcap_sim_log_handle(GCAP_SIM_STREAM, handle);
  if (handle == NULL || handle == cudaStreamLegacy) return gcap_sim_legacy_stream(gcap_sim_thread()->device);
  if (handle == cudaStreamPerThread) return per_thread_stream();
  return gcap_sim_handle_get(GCAP_SIM_STREAM, handle);
}

void gcap_sim_stream_retire(gcap_sim_stream_t* stream) {
  stream->destroyed = true;
  if (stream->head != NULL || stream->member != NULL) return;
  gcap_sim_order_stream_gone(stream);
  gcap_sim_past_release(stream->past);
  free(stream);
}

int gcap_sim_clamp_priority(int priority) {
  if (priority > GCAP_SIM_LEAST_PRIORITY) return GCAP_SIM_LEAST_PRIORITY;
  return priority < GCAP_SIM_GREATEST_PRIORITY ? GCAP_SIM_GREATEST_PRIORITY : priority;
}

static cudaError_t create(cudaStream_t* out, unsigned int flags, int priority) {
  if (out == NULL || (flags & ~(unsigned int)cudaStreamNonBlocking) != 0) return cudaErrorInvalidValue;
  gcap_sim_note_argument("%s", flags & cudaStreamNonBlocking ? "non-blocking" : "blocking");
  gcap_sim_stream_t* stream =
      gcap_sim_stream_create(gcap_sim_thread()->device, flags, gcap_sim_clamp_priority(priority));
  stream->name.number = ++num_created;
  stream->handle = gcap_sim_handle_create(GCAP_SIM_STREAM, stream);
  *out = stream->handle;
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* pStream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamCreate);
  if (code == cudaSuccess) code = create(pStream, cudaStreamDefault, 0);
  return gcap_sim_leave(code);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamCreateWithFlags);
  if (code == cudaSuccess) code = create(pStream, flags, 0);
  return gcap_sim_leave(code);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* pStream, unsigned int flags, int priority) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamCreateWithPriority);
  if (code == cudaSuccess) code = create(pStream, flags, priority);
  return gcap_sim_leave(code);
}

void gcap_sim_stream_destroy(gcap_sim_stream_t* stream) {
  gcap_sim_handle_destroy(stream->handle);
  stream->handle = NULL;
  if (stream->member != NULL) gcap_sim_capture_stream_destroyed(stream);
  gcap_sim_stream_retire(stream);
}

static cudaError_t destroy(cudaStream_t handle) {
  if (handle == NULL || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    return cudaErrorInvalidResourceHandle;
  }
  gcap_sim_stream_destroy(gcap_sim_handle_get(GCAP_SIM_STREAM, handle));
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamDestroy);
  if (code == cudaSuccess) code = destroy(stream);
  return gcap_sim_leave(code);
}

// What synchronising with the stream, or querying it, earns while something captures.
static cudaError_t gate_synchronize(gcap_sim_stream_t* stream) {
  cudaError_t code = gcap_sim_gate_legacy(stream);
  if (code == cudaSuccess) code = gcap_sim_gate_not_capturing(stream);
  if (code == cudaSuccess) code = gcap_sim_gate_unsafe();
  return code;
}

static cudaError_t synchronize(cudaStream_t handle) {
  gcap_sim_stream_t* stream = gcap_sim_stream_get(handle);
  cudaError_t code = gate_synchronize(stream);
  if (code != cudaSuccess) return code;
  unsigned long long id = stream->id;  // another thread may destroy the stream meanwhile
  gcap_sim_wait_for(gcap_sim_stream_tail_mark(stream));
  gcap_sim_pools_synchronised(id);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamSynchronize);
  if (code == cudaSuccess) code = synchronize(stream);
  return gcap_sim_leave(code);
}

static cudaError_t query(cudaStream_t handle) {
  gcap_sim_stream_t* stream = gcap_sim_stream_get(handle);
  cudaError_t code = gate_synchronize(stream);
  if (code == cudaSuccess && !gcap_sim_poll_stream(stream)) code = cudaErrorNotReady;
  return code;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamQuery);
  if (code == cudaSuccess) code = query(stream);
  return gcap_sim_leave(code);
}

cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int* flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamGetFlags);
  if (code == cudaSuccess && flags == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) code = gcap_sim_gate_legacy(gcap_sim_stream_get(hStream));
  if (code == cudaSuccess) code = gcap_sim_gate_not_capturing(gcap_sim_stream_get(hStream));
  if (code == cudaSuccess) *flags = gcap_sim_stream_get(hStream)->flags;
  return gcap_sim_leave(code);
}

cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int* priority) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamGetPriority);
  if (code == cudaSuccess && priority == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *priority = gcap_sim_stream_get(hStream)->priority;
  return gcap_sim_leave(code);
}

cudaError_t cudaStreamGetId(cudaStream_t hStream, unsigned long long* streamId) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamGetId);
  if (code == cudaSuccess && streamId == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) code = gcap_sim_gate_not_capturing(gcap_sim_stream_get(hStream));
  if (code == cudaSuccess) *streamId = gcap_sim_stream_get(hStream)->id;
  return gcap_sim_leave(code);
}

cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int* device) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamGetDevice);
  if (code == cudaSuccess) code = gcap_sim_gate_not_capturing(gcap_sim_stream_get(hStream));
  if (code == cudaSuccess && device == NULL) {
    gcap_sim_die("cudaStreamGetDevice: the place is NULL: the real runtime writes it");
  }
  if (code == cudaSuccess) *device = gcap_sim_stream_get(hStream)->device;
  return gcap_sim_leave(code);
}
