// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// factory.h: what the objects of one loaded plugin have in common.
#ifndef GCAP_ORT_FACTORY_H_
#define GCAP_ORT_FACTORY_H_

#include <limits.h>
#include <pthread.h>

#include "gcap/kit/ort.h"
#include "gcap/runtime.h"
#include "ort/host.h"

// ONNX Runtime takes as many devices of one factory.
#define GCAP_ORT_MAX_DEVICES 8

// NVIDIA's number among PCI vendors: memory of these devices is CUDA's, whichever plugin allocated it.
#define GCAP_ORT_VENDOR_ID 0x10DEu

// The last version of an operator without a last version. INT_MAX means to ONNX Runtime that there is but the first
// one.
#define GCAP_ORT_NO_LAST_VERSION (INT_MAX - 1)

// One CUDA device. Its runtime serves what belongs to no session: shared allocators, copies, streams of applications.
typedef struct gcap_ort_device {
  int id;  // CUDA's
  gcap_runtime_t* runtime;
  gcap_ort_memory_info_t* memory;
  gcap_ort_memory_info_t* pinned;
  gcap_ort_hardware_device_t* virtual_hardware;  // NULL: the runtime found the hardware itself
} gcap_ort_device_t;

// What a kernel is made of: the state that the runtime's registry keeps for each operator.
typedef struct gcap_ort_registered_op {
  struct gcap_ort_factory* factory;
  const gcap_ort_op_t* op;
} gcap_ort_registered_op_t;

// A factory. `abi` is first, so that the runtime's pointer is ours.
typedef struct gcap_ort_factory {
  gcap_ort_ep_factory_t abi;
  gcap_ort_host_t host;
  const gcap_ort_plugin_t* plugin;
  gcap_ort_kernel_registry_t* registry;  // of the operators
  gcap_ort_registered_op_t* registered;
  gcap_ort_device_t devices[GCAP_ORT_MAX_DEVICES];
  int num_devices;
  pthread_mutex_t mutex;            // of the rest; a leaf, but for the affine sets of EPs
  struct gcap_ort_stream* streams;  // that live
  struct gcap_ort_session_ep* eps;  // that live
} gcap_ort_factory_t;

// devices.c: finds CUDA's devices, and the objects that go with each.
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

// registry.c: the operators as the runtime's kernel registry.
gcap_status_t gcap_ort_registry_open(gcap_ort_factory_t* factory) GCAP_NODISCARD;
void gcap_ort_registry_close(gcap_ort_factory_t* factory);

// data_transfer.c
// A tensor as bytes, whatever its type is, and where it is.
//   INVALID_ARGUMENT  in memory of other providers
gcap_status_t gcap_ort_describe_bytes(gcap_ort_factory_t* factory, const gcap_ort_value_t* value,
                                      gcap_tensor_t* out_tensor, gcap_memory_t* out_memory) GCAP_NODISCARD;
gcap_ort_status_t* gcap_ort_create_data_transfer(gcap_ort_ep_factory_t* self, gcap_ort_data_transfer_t** out_transfer);

// ep.c
gcap_ort_status_t* gcap_ort_create_ep(gcap_ort_ep_factory_t* self, const gcap_ort_hardware_device_t* const* hardware,
                                      const gcap_ort_key_values_t* const* metadata, size_t num_devices,
                                      const gcap_ort_session_options_t* options, const gcap_ort_logger_t* logger,
                                      gcap_ort_ep_t** out_ep);
void gcap_ort_release_ep(gcap_ort_ep_factory_t* self, gcap_ort_ep_t* ep);

// host_kernels.c: the operators that every EP on a device has.
gcap_status_t gcap_ort_register_host_kernels(gcap_ort_factory_t* factory) GCAP_NODISCARD;

// kernel.c
gcap_ort_status_t* gcap_ort_create_kernel(void* state, const gcap_ort_kernel_info_t* info,
                                          gcap_ort_kernel_impl_t** out_kernel);

#endif  // GCAP_ORT_FACTORY_H_
