// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// devices.h: CUDA's devices as ONNX Runtime sees them, and whose memory is whose.
#ifndef GCAP_ORT_DEVICES_H_
#define GCAP_ORT_DEVICES_H_

#include "ort/objects.h"

// Finds CUDA's devices, and makes the objects that go with each.
gcap_status_t gcap_ort_devices_open(gcap_ort_factory_t* factory) GCAP_NODISCARD;
gcap_status_t gcap_ort_devices_close(gcap_ort_factory_t* factory) GCAP_NODISCARD;
gcap_ort_status_t* gcap_ort_get_supported_devices(gcap_ort_ep_factory_t* self,
                                                  const gcap_ort_hardware_device_t* const* hardware,
                                                  size_t num_hardware, gcap_ort_ep_device_t** out_devices,
                                                  size_t max_devices, size_t* out_num_devices);
// The device that the memory belongs to. NULL: none of this factory.
gcap_ort_device_t* gcap_ort_device_of(gcap_ort_factory_t* factory, const gcap_ort_memory_device_t* memory);
// Where the memory is, as gcap says it. False: in memory of others.
bool gcap_ort_memory_of(gcap_ort_factory_t* factory, const gcap_ort_memory_device_t* memory, gcap_memory_t* out_memory);

#endif  // GCAP_ORT_DEVICES_H_
