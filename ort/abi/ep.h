// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep.h: the tables of functions that a plugin gives to ONNX Runtime: OrtEpFactory, OrtEp, OrtKernelImpl and so on, each
// with all its members in their order. Members have ONNX Runtime's names. A member that gcap leaves NULL is a
// gcap_ort_absent_t. The comment says the member's index in pointers, and since which version the runtime reads the
// member, where that is after the oldest that gcap runs on. Of members since 31, place and name are those that the
// library of 1.32.0 shows in its code and its messages.
#ifndef GCAP_ORT_ABI_EP_H_
#define GCAP_ORT_ABI_EP_H_

#include "ort/abi/types.h"

typedef void (*gcap_ort_absent_t)(void);

typedef struct gcap_ort_ep gcap_ort_ep_t;
typedef struct gcap_ort_ep_factory gcap_ort_ep_factory_t;
typedef struct gcap_ort_allocator gcap_ort_allocator_t;
typedef struct gcap_ort_data_transfer gcap_ort_data_transfer_t;
typedef struct gcap_ort_stream_impl gcap_ort_stream_impl_t;
typedef struct gcap_ort_notification_impl gcap_ort_notification_impl_t;
typedef struct gcap_ort_kernel_impl gcap_ort_kernel_impl_t;
typedef struct gcap_ort_profiler_impl gcap_ort_profiler_impl_t;

// OrtAllocator.
struct gcap_ort_allocator {
  uint32_t version;
  void* (*Alloc)(gcap_ort_allocator_t* self, size_t bytes);                                             // 1
  void (*Free)(gcap_ort_allocator_t* self, void* ptr);                                                  // 2
  const gcap_ort_memory_info_t* (*Info)(const gcap_ort_allocator_t* self);                              // 3
  void* (*Reserve)(gcap_ort_allocator_t* self, size_t bytes);                                           // 4
  gcap_ort_status_t* (*GetStats)(const gcap_ort_allocator_t* self, gcap_ort_key_values_t** out_pairs);  // 5
  void* (*AllocOnStream)(gcap_ort_allocator_t* self, size_t bytes, gcap_ort_sync_stream_t* stream);     // 6
  gcap_ort_status_t* (*Shrink)(gcap_ort_allocator_t* self);                                             // 7
};

// OrtDataTransferImpl. `streams` may be NULL, and so may each of them: the copy is then done on return.
struct gcap_ort_data_transfer {
  uint32_t ort_version_supported;
  void (*Release)(gcap_ort_data_transfer_t* self);  // 1
  bool (*CanCopy)(const gcap_ort_data_transfer_t* self, const gcap_ort_memory_device_t* src,
                  const gcap_ort_memory_device_t* dst);  // 2
  gcap_ort_status_t* (*CopyTensors)(gcap_ort_data_transfer_t* self, const gcap_ort_value_t** src,
                                    gcap_ort_value_t** dst, gcap_ort_sync_stream_t** streams, size_t count);  // 3
};

// OrtSyncNotificationImpl.
struct gcap_ort_notification_impl {
  uint32_t ort_version_supported;
  void (*Release)(gcap_ort_notification_impl_t* self);                                                       // 1
  gcap_ort_status_t* (*Activate)(gcap_ort_notification_impl_t* self);                                        // 2
  gcap_ort_status_t* (*WaitOnDevice)(gcap_ort_notification_impl_t* self, gcap_ort_sync_stream_t* consumer);  // 3
  gcap_ort_status_t* (*WaitOnHost)(gcap_ort_notification_impl_t* self);                                      // 4
};

// OrtSyncStreamImpl. The runtime asks once for the handle, and keeps what it gets.
struct gcap_ort_stream_impl {
  uint32_t ort_version_supported;
  void (*Release)(gcap_ort_stream_impl_t* self);                                                               // 1
  void* (*GetHandle)(gcap_ort_stream_impl_t* self);                                                            // 2
  gcap_ort_status_t* (*CreateNotification)(gcap_ort_stream_impl_t* self, gcap_ort_notification_impl_t** out);  // 3
  gcap_ort_status_t* (*Flush)(gcap_ort_stream_impl_t* self);                                                   // 4
  gcap_ort_status_t* (*OnSessionRunEnd)(gcap_ort_stream_impl_t* self);                                         // 5
};

// OrtKernelImpl.
struct gcap_ort_kernel_impl {
  uint32_t ort_version_supported;
  uint32_t flags;                                                                                   // none
  gcap_ort_status_t* (*Compute)(gcap_ort_kernel_impl_t* self, gcap_ort_kernel_context_t* context);  // 1
  void (*Release)(gcap_ort_kernel_impl_t* self);                                                    // 2
  gcap_ort_absent_t PrePackWeight;                                                                  // 3
  gcap_ort_absent_t SetSharedPrePackedWeight;                                                       // 4
};

// OrtKernelCreateFunc.
typedef gcap_ort_status_t* (*gcap_ort_kernel_create_t)(void* state, const gcap_ort_kernel_info_t* info,
                                                       gcap_ort_kernel_impl_t** out_kernel);

// OrtEpProfilerImpl.
struct gcap_ort_profiler_impl {
  uint32_t ort_version_supported;
  void (*Release)(gcap_ort_profiler_impl_t* self);                                                             // 1
  gcap_ort_status_t* (*StartProfiling)(gcap_ort_profiler_impl_t* self, int64_t offset_ns);                     // 2
  gcap_ort_absent_t StartEvent;                                                                                // 3
  gcap_ort_absent_t StopEvent;                                                                                 // 4
  gcap_ort_status_t* (*EndProfiling)(gcap_ort_profiler_impl_t* self, gcap_ort_profiling_events_t* container);  // 5
};

// OrtEp. OnRunStart and OnRunEnd are not called around a replay; OnRunEnd is not told whether the kernels failed.
struct gcap_ort_ep {
  uint32_t ort_version_supported;
  const char* (*GetName)(const gcap_ort_ep_t* self);  // 1
  gcap_ort_status_t* (*GetCapability)(gcap_ort_ep_t* self, const gcap_ort_graph_t* graph,
                                      gcap_ort_graph_support_t* info);                                           // 2
  gcap_ort_absent_t Compile;                                                                                     // 3
  gcap_ort_absent_t ReleaseNodeComputeInfos;                                                                     // 4
  gcap_ort_absent_t GetPreferredDataLayout;                                                                      // 5
  gcap_ort_absent_t ShouldConvertDataLayoutForOp;                                                                // 6
  gcap_ort_absent_t SetDynamicOptions;                                                                           // 7
  gcap_ort_status_t* (*OnRunStart)(gcap_ort_ep_t* self, const gcap_ort_run_options_t* options);                  // 8
  gcap_ort_status_t* (*OnRunEnd)(gcap_ort_ep_t* self, const gcap_ort_run_options_t* options, bool synchronize);  // 9
  gcap_ort_status_t* (*CreateAllocator)(gcap_ort_ep_t* self, const gcap_ort_memory_info_t* info,
                                        gcap_ort_allocator_t** out_allocator);  // 10
  gcap_ort_status_t* (*CreateSyncStreamForDevice)(gcap_ort_ep_t* self, const gcap_ort_memory_device_t* device,
                                                  gcap_ort_stream_impl_t** out_stream);                           // 11
  gcap_ort_absent_t GetCompiledModelCompatibilityInfo;                                                            // 12
  gcap_ort_status_t* (*GetKernelRegistry)(gcap_ort_ep_t* self, const gcap_ort_kernel_registry_t** out_registry);  // 13
  gcap_ort_status_t* (*IsConcurrentRunSupported)(gcap_ort_ep_t* self, bool* out_supported);                       // 14
  gcap_ort_status_t* (*Sync)(gcap_ort_ep_t* self);                                                                // 15
  gcap_ort_status_t* (*CreateProfiler)(gcap_ort_ep_t* self, gcap_ort_profiler_impl_t** out_profiler);             // 16
  bool (*IsGraphCaptureEnabled)(const gcap_ort_ep_t* self);                                                       // 17
  bool (*IsGraphCaptured)(const gcap_ort_ep_t* self, int graph_id);                                               // 18
  gcap_ort_status_t* (*ReplayGraph)(gcap_ort_ep_t* self, int graph_id);                                           // 19
  gcap_ort_node_policy_t (*GetGraphCaptureNodeAssignmentPolicy)(const gcap_ort_ep_t* self);                       // 20
  gcap_ort_absent_t GetAvailableResource;                                                                         // 21
  gcap_ort_absent_t OnSessionInitializationEnd;                                   // 22, since 27
  gcap_ort_absent_t GetDefaultMemoryDevice;                                       // 23, since 27
  gcap_ort_status_t* (*ReleaseCapturedGraph)(gcap_ort_ep_t* self, int graph_id);  // 24, since 27
  gcap_ort_absent_t GetWeightlessSupport;                                         // 25, since 29
  gcap_ort_absent_t GetEpContextDataCallbackSupport;                              // 26, since 31
};

// OrtEpFactory.
struct gcap_ort_ep_factory {
  uint32_t ort_version_supported;
  const char* (*GetName)(const gcap_ort_ep_factory_t* self);    // 1
  const char* (*GetVendor)(const gcap_ort_ep_factory_t* self);  // 2
  gcap_ort_status_t* (*GetSupportedDevices)(gcap_ort_ep_factory_t* self,
                                            const gcap_ort_hardware_device_t* const* hardware, size_t num_hardware,
                                            gcap_ort_ep_device_t** out_devices, size_t max_devices,
                                            size_t* out_num_devices);  // 3
  gcap_ort_status_t* (*CreateEp)(gcap_ort_ep_factory_t* self, const gcap_ort_hardware_device_t* const* hardware,
                                 const gcap_ort_key_values_t* const* metadata, size_t num_devices,
                                 const gcap_ort_session_options_t* options, const gcap_ort_logger_t* logger,
                                 gcap_ort_ep_t** out_ep);             // 4
  void (*ReleaseEp)(gcap_ort_ep_factory_t* self, gcap_ort_ep_t* ep);  // 5
  uint32_t (*GetVendorId)(const gcap_ort_ep_factory_t* self);         // 6
  const char* (*GetVersion)(const gcap_ort_ep_factory_t* self);       // 7: as semver.org has it
  gcap_ort_absent_t ValidateCompiledModelCompatibilityInfo;           // 8
  gcap_ort_status_t* (*CreateAllocator)(gcap_ort_ep_factory_t* self, const gcap_ort_memory_info_t* info,
                                        const gcap_ort_key_values_t* options,
                                        gcap_ort_allocator_t** out_allocator);                                     // 9
  void (*ReleaseAllocator)(gcap_ort_ep_factory_t* self, gcap_ort_allocator_t* allocator);                          // 10
  gcap_ort_status_t* (*CreateDataTransfer)(gcap_ort_ep_factory_t* self, gcap_ort_data_transfer_t** out_transfer);  // 11
  bool (*IsStreamAware)(const gcap_ort_ep_factory_t* self);                                                        // 12
  gcap_ort_status_t* (*CreateSyncStreamForDevice)(gcap_ort_ep_factory_t* self, const gcap_ort_memory_device_t* device,
                                                  const gcap_ort_key_values_t* options,
                                                  gcap_ort_stream_impl_t** out_stream);  // 13
  gcap_ort_absent_t GetHardwareDeviceIncompatibilityDetails;                             // 14
  gcap_ort_absent_t CreateExternalResourceImporterForDevice;                             // 15
  gcap_ort_absent_t GetNumCustomOpDomains;                                               // 16
  gcap_ort_absent_t GetCustomOpDomains;                                                  // 17
  gcap_ort_absent_t InitGraphicsInterop;                                                 // 18
  gcap_ort_absent_t DeinitGraphicsInterop;                                               // 19
  gcap_ort_absent_t SelectBestModelCandidate;                                            // 20, since 28
  gcap_ort_absent_t GetDeviceMemoryCapacity;                                             // 21, since 32
};

#endif  // GCAP_ORT_ABI_EP_H_
