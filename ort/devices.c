// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// CUDA's devices as ONNX Runtime sees them: hardware that the runtime found itself, or else a virtual device, with the
// memory that goes with each.
//
// Locking: none. Devices are made before ONNX Runtime has the factory, and end after all else; their hardware is made
// while the library is registered, on one thread.

#include "ort/devices.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

static const char kDeviceKey[] = "cuda_device_id";

static gcap_status_t create_memory_info(const gcap_ort_factory_t* factory, int id, const char* suffix,
                                        gcap_ort_device_memory_t memory, gcap_ort_memory_info_t** out_info) {
  char name[128];
  snprintf(name, sizeof(name), "%s%s", factory->plugin->name, suffix);
  return GCAP_ORT_CALL(&factory->host, CreateMemoryInfo_V2(name, GCAP_ORT_DEVICE_GPU, GCAP_ORT_VENDOR_ID, id, memory,
                                                           /*alignment=*/0, GCAP_ORT_DEVICE_ALLOCATOR, out_info));
}

static gcap_status_t open_device(gcap_ort_factory_t* factory, int id) {
  gcap_ort_device_t* device = &factory->devices[factory->num_devices++];
  device->id = id;
  gcap_options_t options;
  gcap_options_init(&options);
  options.device_id = id;
  GCAP_RETURN_IF_ERROR(gcap_runtime_create(&options, &device->runtime));
  GCAP_RETURN_IF_ERROR(create_memory_info(factory, id, "", GCAP_ORT_MEMORY_DEFAULT, &device->memory));
  return create_memory_info(factory, id, "Pinned", GCAP_ORT_MEMORY_HOST_ACCESSIBLE, &device->pinned);
}

// A machine without CUDA has no device, which is no failure: the EP is then not there.
gcap_status_t gcap_ort_devices_open(gcap_ort_factory_t* factory) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) {
    (void)cudaGetLastError();
    return NULL;
  }
  if (error != cudaSuccess) return gcap_status_from_cuda(error, "cudaGetDeviceCount(&count)", __FILE__, __LINE__);
  for (int id = 0; id < count && id < GCAP_ORT_MAX_DEVICES; ++id) GCAP_RETURN_IF_ERROR(open_device(factory, id));
  return NULL;
}

gcap_status_t gcap_ort_devices_close(gcap_ort_factory_t* factory) {
  const gcap_ort_host_t* host = &factory->host;
  gcap_status_t status = NULL;
  for (int i = 0; i < factory->num_devices; ++i) {
    gcap_ort_device_t* device = &factory->devices[i];
    if (device->memory != NULL) host->api->ReleaseMemoryInfo(device->memory);
    if (device->pinned != NULL) host->api->ReleaseMemoryInfo(device->pinned);
    if (device->virtual_hardware != NULL) host->ep_api->ReleaseHardwareDevice(device->virtual_hardware);
    status = gcap_status_join(status, gcap_runtime_destroy(device->runtime));
  }
  return status;
}

// --- What the runtime asks ------------------------------------------------------------------------------------------

// The next one of NVIDIA's GPUs at or after `*index`; NULL if there is none.
static const gcap_ort_hardware_device_t* next_gpu(const gcap_ort_host_t* host,
                                                  const gcap_ort_hardware_device_t* const* hardware, size_t count,
                                                  size_t* index) {
  while (*index < count) {
    const gcap_ort_hardware_device_t* device = hardware[(*index)++];
    if (host->api->HardwareDevice_Type(device) == GCAP_ORT_HARDWARE_GPU &&
        host->api->HardwareDevice_VendorId(device) == GCAP_ORT_VENDOR_ID) {
      return device;
    }
  }
  return NULL;
}

// Makes the hardware that the runtime did not find: it looks for a driver of the system, not for CUDA.
static gcap_status_t create_hardware(const gcap_ort_host_t* host, gcap_ort_device_t* device) {
  if (device->virtual_hardware != NULL) return NULL;
  gcap_ort_key_values_t* metadata = NULL;
  host->api->CreateKeyValuePairs(&metadata);
  host->api->AddKeyValuePair(metadata, "is_virtual", "1");
  gcap_status_t status =
      GCAP_ORT_EP_CALL(host, CreateHardwareDevice(GCAP_ORT_HARDWARE_GPU, GCAP_ORT_VENDOR_ID, (uint32_t)device->id,
                                                  "NVIDIA", metadata, &device->virtual_hardware));
  host->api->ReleaseKeyValuePairs(metadata);
  return status;
}

static gcap_status_t create_ep_device(gcap_ort_factory_t* factory, const gcap_ort_device_t* device,
                                      const gcap_ort_hardware_device_t* hardware, gcap_ort_ep_device_t** out_device) {
  const gcap_ort_host_t* host = &factory->host;
  char id[16];
  snprintf(id, sizeof(id), "%d", device->id);
  gcap_ort_key_values_t* metadata = NULL;
  host->api->CreateKeyValuePairs(&metadata);
  host->api->AddKeyValuePair(metadata, kDeviceKey, id);
  gcap_status_t status =
      GCAP_ORT_EP_CALL(host, CreateEpDevice(&factory->abi, hardware, metadata, /*options=*/NULL, out_device));
  host->api->ReleaseKeyValuePairs(metadata);
  if (status == NULL) status = GCAP_ORT_EP_CALL(host, EpDevice_AddAllocatorInfo(*out_device, device->memory));
  if (status == NULL) status = GCAP_ORT_EP_CALL(host, EpDevice_AddAllocatorInfo(*out_device, device->pinned));
  if (status != NULL && *out_device != NULL) host->ep_api->ReleaseEpDevice(*out_device);
  if (status != NULL) *out_device = NULL;
  return status;
}

gcap_ort_status_t* gcap_ort_get_supported_devices(gcap_ort_ep_factory_t* self,
                                                  const gcap_ort_hardware_device_t* const* hardware,
                                                  size_t num_hardware, gcap_ort_ep_device_t** out_devices,
                                                  size_t max_devices, size_t* out_num_devices) {
  gcap_ort_factory_t* factory = (gcap_ort_factory_t*)self;
  const gcap_ort_host_t* host = &factory->host;
  *out_num_devices = 0;
  size_t index = 0;
  for (int i = 0; i < factory->num_devices && *out_num_devices < max_devices; ++i) {
    gcap_ort_device_t* device = &factory->devices[i];
    const gcap_ort_hardware_device_t* gpu = next_gpu(host, hardware, num_hardware, &index);
    gcap_status_t status = gpu != NULL ? NULL : create_hardware(host, device);
    gcap_ort_ep_device_t** out = &out_devices[*out_num_devices];
    *out = NULL;
    if (status == NULL) status = create_ep_device(factory, device, gpu != NULL ? gpu : device->virtual_hardware, out);
    if (status != NULL) return gcap_ort_give(host, status);
    ++*out_num_devices;
  }
  return NULL;
}

// --- Where memory is ------------------------------------------------------------------------------------------------

gcap_ort_device_t* gcap_ort_device_of(gcap_ort_factory_t* factory, const gcap_ort_memory_device_t* memory) {
  const gcap_ort_ep_api_t* api = factory->host.ep_api;
  if (api->MemoryDevice_GetDeviceType(memory) != GCAP_ORT_DEVICE_GPU) return NULL;
  if (api->MemoryDevice_GetVendorId(memory) != GCAP_ORT_VENDOR_ID) return NULL;
  const uint32_t id = api->MemoryDevice_GetDeviceId(memory);
  return id < (uint32_t)factory->num_devices ? &factory->devices[id] : NULL;
}

bool gcap_ort_memory_of(gcap_ort_factory_t* factory, const gcap_ort_memory_device_t* memory,
                        gcap_memory_t* out_memory) {
  const gcap_ort_ep_api_t* api = factory->host.ep_api;
  if (api->MemoryDevice_GetDeviceType(memory) == GCAP_ORT_DEVICE_CPU) {
    *out_memory = (gcap_memory_t){.kind = GCAP_MEMORY_HOST};
    return true;
  }
  const gcap_ort_device_t* device = gcap_ort_device_of(factory, memory);
  if (device == NULL) return false;
  const bool pinned = api->MemoryDevice_GetMemoryType(memory) == GCAP_ORT_MEMORY_HOST_ACCESSIBLE;
  *out_memory = (gcap_memory_t){.kind = pinned ? GCAP_MEMORY_PINNED : GCAP_MEMORY_DEVICE, .device_id = device->id};
  return true;
}
