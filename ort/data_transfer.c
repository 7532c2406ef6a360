// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Copies between host, pinned and device memory for ONNX Runtime, by the runtime of the device.
//
// Locking: none of its own. A copy on a stream that threads share takes the EP's turn, unless the thread's run has it.

#include "ort/data_transfer.h"

#include <stdlib.h>
#include <string.h>

#include "ort/devices.h"
#include "ort/run.h"
#include "ort/stream.h"
#include "ort/turn.h"

// In the runtime's hands. `abi` is first.
typedef struct data_transfer {
  gcap_ort_data_transfer_t abi;
  gcap_ort_factory_t* factory;
} data_transfer_t;

static void release(gcap_ort_data_transfer_t* self) { free(self); }

// The device whose runtime copies; NULL if both are in host memory.
static gcap_ort_device_t* copying_device(gcap_ort_factory_t* factory, gcap_memory_t src, gcap_memory_t dst) {
  if (src.kind == GCAP_MEMORY_DEVICE) return &factory->devices[src.device_id];
  return dst.kind == GCAP_MEMORY_DEVICE ? &factory->devices[dst.device_id] : NULL;
}

static bool can_copy(const gcap_ort_data_transfer_t* self, const gcap_ort_memory_device_t* src,
                     const gcap_ort_memory_device_t* dst) {
  gcap_ort_factory_t* factory = ((const data_transfer_t*)self)->factory;
  gcap_memory_t from, to;
  if (!gcap_ort_memory_of(factory, src, &from) || !gcap_ort_memory_of(factory, dst, &to)) return false;
  const gcap_ort_device_t* device = copying_device(factory, from, to);
  if (device != NULL) return gcap_runtime_can_copy(device->runtime, from, to);
  return from.kind == GCAP_MEMORY_PINNED || to.kind == GCAP_MEMORY_PINNED;
}

gcap_status_t gcap_ort_describe_bytes(gcap_ort_factory_t* factory, const gcap_ort_value_t* value,
                                      gcap_tensor_t* out_tensor, gcap_memory_t* out_memory) {
  const gcap_ort_host_t* host = &factory->host;
  size_t bytes = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetTensorSizeInBytes(value, &bytes)));
  *out_tensor = (gcap_tensor_t){.dtype = GCAP_DTYPE_BOOL, .rank = 1, .shape = {(int64_t)bytes}};
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetTensorData(value, (const void**)&out_tensor->data)));
  if (out_tensor->data == NULL && bytes > 0) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "there was no memory for a tensor of %zu bytes; the log says why",
                       bytes);
  }
  if (gcap_ort_memory_of(factory, host->ep_api->Value_GetMemoryDevice(value), out_memory)) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "'%s' copies no memory of other providers", factory->plugin->name);
}

// Threads may share the stream of an EP's runs: outside of a run of this thread, another one may have it.
static gcap_status_t copy_on(gcap_ort_factory_t* factory, const gcap_ort_device_t* device, gcap_copy_t* copy,
                             const gcap_ort_sync_stream_t* stream) {
  gcap_ort_session_ep_t* ep = NULL;
  copy->stream = gcap_ort_stream_find(factory, stream, &ep);
  const bool takes_turn = ep != NULL && gcap_ort_run_current(ep) == NULL;
  if (takes_turn) gcap_ort_turn_begin(ep);
  gcap_status_t status = gcap_runtime_copy_tensors(device->runtime, copy, 1);
  if (takes_turn) gcap_ort_turn_end(ep);
  return status;
}

// Both are in host memory. What a stream still writes there comes first.
static gcap_status_t copy_on_host(gcap_ort_factory_t* factory, const gcap_copy_t* copy,
                                  const gcap_ort_sync_stream_t* stream) {
  if (copy->src->shape[0] != copy->dst->shape[0]) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "a copy of %lld bytes to %lld bytes", (long long)copy->src->shape[0],
                       (long long)copy->dst->shape[0]);
  }
  gcap_stream_t* ours = gcap_ort_stream_find(factory, stream, NULL);
  if (ours != NULL) GCAP_RETURN_IF_ERROR(gcap_stream_synchronize(ours));
  memcpy(copy->dst->data, copy->src->data, (size_t)copy->src->shape[0]);
  return NULL;
}

static gcap_status_t copy_one(gcap_ort_factory_t* factory, const gcap_ort_value_t* src, const gcap_ort_value_t* dst,
                              const gcap_ort_sync_stream_t* stream, const gcap_ort_run_t* run) {
  gcap_tensor_t from, to;
  gcap_copy_t copy = {.src = &from, .dst = &to};
  GCAP_RETURN_IF_ERROR(gcap_ort_describe_bytes(factory, src, &from, &copy.src_memory));
  GCAP_RETURN_IF_ERROR(gcap_ort_describe_bytes(factory, dst, &to, &copy.dst_memory));
  if (from.shape[0] == 0 && to.shape[0] == 0) return NULL;
  const gcap_ort_device_t* device = copying_device(factory, copy.src_memory, copy.dst_memory);
  if (device == NULL) return copy_on_host(factory, &copy, stream);
  if (copy.src_memory.kind != copy.dst_memory.kind) GCAP_RETURN_IF_ERROR(gcap_ort_run_check_host_copy(run));
  return copy_on(factory, device, &copy, stream);
}

static gcap_ort_status_t* copy_tensors(gcap_ort_data_transfer_t* self, const gcap_ort_value_t** src,
                                       gcap_ort_value_t** dst, gcap_ort_sync_stream_t** streams, size_t count) {
  gcap_ort_factory_t* factory = ((data_transfer_t*)self)->factory;
  gcap_ort_run_t* run = gcap_ort_run_of_thread(factory);
  gcap_status_t status = NULL;
  for (size_t i = 0; i < count && status == NULL; ++i) {
    status = copy_one(factory, src[i], dst[i], streams != NULL ? streams[i] : NULL, run);
  }
  gcap_ort_run_note_failure(run, status);
  return gcap_ort_give(&factory->host, status);
}

gcap_ort_status_t* gcap_ort_create_data_transfer(gcap_ort_ep_factory_t* self, gcap_ort_data_transfer_t** out_transfer) {
  gcap_ort_factory_t* factory = (gcap_ort_factory_t*)self;
  data_transfer_t* transfer = calloc(1, sizeof(*transfer));
  *out_transfer = NULL;
  if (transfer == NULL) {
    return gcap_ort_give(&factory->host, GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for copies"));
  }
  transfer->abi = (gcap_ort_data_transfer_t){.ort_version_supported = factory->host.version,
                                             .Release = release,
                                             .CanCopy = can_copy,
                                             .CopyTensors = copy_tensors};
  transfer->factory = factory;
  *out_transfer = &transfer->abi;
  return NULL;
}
