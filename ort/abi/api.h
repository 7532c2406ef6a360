// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// api.h: the two tables of functions that ONNX Runtime gives, OrtApi and OrtEpApi, as far as gcap calls them. Slots
// have ONNX Runtime's names, so that its documentation can be searched for them, and their index; a gap is named by the
// first index that it stands for. The tables only ever grow at their end, so what is here holds for every later
// runtime. A slot is there only if the runtime has its version (gcap_ort_host_t): the comment says which, where that
// is after the oldest that gcap runs on.
#ifndef GCAP_ORT_ABI_API_H_
#define GCAP_ORT_ABI_API_H_

#include "ort/abi/ep.h"

// A function that gcap does not call.
typedef void (*gcap_ort_slot_t)(void);

typedef struct gcap_ort_ep_api gcap_ort_ep_api_t;

// OrtApi.
typedef struct gcap_ort_api {
  gcap_ort_status_t* (*CreateStatus)(gcap_ort_error_code_t code, const char* message);                            // 0
  gcap_ort_error_code_t (*GetErrorCode)(const gcap_ort_status_t* status);                                         // 1
  const char* (*GetErrorMessage)(const gcap_ort_status_t* status);                                                // 2
  gcap_ort_status_t* (*CreateEnv)(gcap_ort_logging_level_t level, const char* log_id, gcap_ort_env_t** out_env);  // 3
  gcap_ort_slot_t gap_4[3];
  gcap_ort_status_t* (*CreateSession)(const gcap_ort_env_t* env, const char* path,
                                      const gcap_ort_session_options_t* options,
                                      gcap_ort_session_t** out_session);  // 7
  gcap_ort_status_t* (*CreateSessionFromArray)(const gcap_ort_env_t* env, const void* model, size_t bytes,
                                               const gcap_ort_session_options_t* options,
                                               gcap_ort_session_t** out_session);  // 8
  gcap_ort_status_t* (*Run)(gcap_ort_session_t* session, const gcap_ort_run_options_t* options,
                            const char* const* input_names, const gcap_ort_value_t* const* inputs, size_t num_inputs,
                            const char* const* output_names, size_t num_outputs, gcap_ort_value_t** outputs);  // 9
  gcap_ort_status_t* (*CreateSessionOptions)(gcap_ort_session_options_t** out_options);                        // 10
  gcap_ort_slot_t gap_11[2];
  gcap_ort_status_t* (*SetSessionExecutionMode)(gcap_ort_session_options_t* options,
                                                gcap_ort_execution_mode_t mode);                        // 13
  gcap_ort_status_t* (*EnableProfiling)(gcap_ort_session_options_t* options, const char* path_prefix);  // 14
  gcap_ort_slot_t gap_15[2];
  gcap_ort_status_t* (*DisableMemPattern)(gcap_ort_session_options_t* options);  // 17
  gcap_ort_slot_t gap_18[7];
  gcap_ort_status_t* (*SetInterOpNumThreads)(gcap_ort_session_options_t* options, int count);  // 25
  gcap_ort_slot_t gap_26[13];
  gcap_ort_status_t* (*CreateRunOptions)(gcap_ort_run_options_t** out_options);  // 39
  gcap_ort_slot_t gap_40[8];
  gcap_ort_status_t* (*CreateTensorAsOrtValue)(gcap_ort_allocator_t* allocator, const int64_t* shape, size_t rank,
                                               gcap_ort_element_type_t type, gcap_ort_value_t** out_value);  // 48
  gcap_ort_status_t* (*CreateTensorWithDataAsOrtValue)(const gcap_ort_memory_info_t* info, void* data, size_t bytes,
                                                       const int64_t* shape, size_t rank, gcap_ort_element_type_t type,
                                                       gcap_ort_value_t** out_value);    // 49
  gcap_ort_status_t* (*IsTensor)(const gcap_ort_value_t* value, int* out_is_tensor);     // 50
  gcap_ort_status_t* (*GetTensorMutableData)(gcap_ort_value_t* value, void** out_data);  // 51
  gcap_ort_slot_t gap_52[3];
  gcap_ort_status_t* (*CastTypeInfoToTensorInfo)(const gcap_ort_type_info_t* info,
                                                 const gcap_ort_tensor_info_t** out_info);  // 55
  gcap_ort_slot_t gap_56[4];
  gcap_ort_status_t* (*GetTensorElementType)(const gcap_ort_tensor_info_t* info,
                                             gcap_ort_element_type_t* out_type);                             // 60
  gcap_ort_status_t* (*GetDimensionsCount)(const gcap_ort_tensor_info_t* info, size_t* out_rank);            // 61
  gcap_ort_status_t* (*GetDimensions)(const gcap_ort_tensor_info_t* info, int64_t* out_shape, size_t rank);  // 62
  gcap_ort_slot_t gap_63[2];
  gcap_ort_status_t* (*GetTensorTypeAndShape)(const gcap_ort_value_t* value, gcap_ort_tensor_info_t** out_info);  // 65
  gcap_ort_slot_t gap_66[3];
  gcap_ort_status_t* (*CreateCpuMemoryInfo)(gcap_ort_allocator_type_t type, gcap_ort_mem_type_t mem_type,
                                            gcap_ort_memory_info_t** out_info);  // 69
  gcap_ort_slot_t gap_70[8];
  gcap_ort_status_t* (*GetAllocatorWithDefaultOptions)(gcap_ort_allocator_t** out_allocator);  // 78
  gcap_ort_slot_t gap_79[6];
  gcap_ort_status_t* (*KernelInfoGetAttribute_float)(const gcap_ort_kernel_info_t* info, const char* name,
                                                     float* out);  // 85
  gcap_ort_status_t* (*KernelInfoGetAttribute_int64)(const gcap_ort_kernel_info_t* info, const char* name,
                                                     int64_t* out);  // 86
  gcap_ort_status_t* (*KernelInfoGetAttribute_string)(const gcap_ort_kernel_info_t* info, const char* name, char* out,
                                                      size_t* inout_bytes);                                        // 87
  gcap_ort_status_t* (*KernelContext_GetInputCount)(const gcap_ort_kernel_context_t* context, size_t* out_count);  // 88
  gcap_ort_status_t* (*KernelContext_GetOutputCount)(const gcap_ort_kernel_context_t* context,
                                                     size_t* out_count);  // 89
  gcap_ort_status_t* (*KernelContext_GetInput)(const gcap_ort_kernel_context_t* context, size_t index,
                                               const gcap_ort_value_t** out_value);  // 90
  gcap_ort_status_t* (*KernelContext_GetOutput)(gcap_ort_kernel_context_t* context, size_t index, const int64_t* shape,
                                                size_t rank, gcap_ort_value_t** out_value);  // 91
  void (*ReleaseEnv)(gcap_ort_env_t* object);                                                // 92
  void (*ReleaseStatus)(gcap_ort_status_t* object);                                          // 93
  void (*ReleaseMemoryInfo)(gcap_ort_memory_info_t* object);                                 // 94
  void (*ReleaseSession)(gcap_ort_session_t* object);                                        // 95
  void (*ReleaseValue)(gcap_ort_value_t* object);                                            // 96
  void (*ReleaseRunOptions)(gcap_ort_run_options_t* object);                                 // 97
  void (*ReleaseTypeInfo)(gcap_ort_type_info_t* object);                                     // 98
  void (*ReleaseTensorTypeAndShapeInfo)(gcap_ort_tensor_info_t* object);                     // 99
  void (*ReleaseSessionOptions)(gcap_ort_session_options_t* object);                         // 100
  gcap_ort_slot_t gap_101[29];
  gcap_ort_status_t* (*AddSessionConfigEntry)(gcap_ort_session_options_t* options, const char* key,
                                              const char* value);  // 130
  gcap_ort_status_t* (*CreateAllocator)(const gcap_ort_session_t* session, const gcap_ort_memory_info_t* info,
                                        gcap_ort_allocator_t** out_allocator);  // 131
  void (*ReleaseAllocator)(gcap_ort_allocator_t* object);                       // 132
  gcap_ort_status_t* (*RunWithBinding)(gcap_ort_session_t* session, const gcap_ort_run_options_t* options,
                                       const gcap_ort_io_binding_t* binding);                               // 133
  gcap_ort_status_t* (*CreateIoBinding)(gcap_ort_session_t* session, gcap_ort_io_binding_t** out_binding);  // 134
  void (*ReleaseIoBinding)(gcap_ort_io_binding_t* object);                                                  // 135
  gcap_ort_status_t* (*BindInput)(gcap_ort_io_binding_t* binding, const char* name,
                                  const gcap_ort_value_t* value);  // 136
  gcap_ort_status_t* (*BindOutput)(gcap_ort_io_binding_t* binding, const char* name,
                                   const gcap_ort_value_t* value);  // 137
  gcap_ort_status_t* (*BindOutputToDevice)(gcap_ort_io_binding_t* binding, const char* name,
                                           const gcap_ort_memory_info_t* info);  // 138
  gcap_ort_slot_t gap_139[1];
  gcap_ort_status_t* (*GetBoundOutputValues)(const gcap_ort_io_binding_t* binding, gcap_ort_allocator_t* allocator,
                                             gcap_ort_value_t*** out_values, size_t* out_count);  // 140
  gcap_ort_slot_t gap_141[22];
  gcap_ort_status_t* (*KernelInfoGetAttributeArray_int64)(const gcap_ort_kernel_info_t* info, const char* name,
                                                          int64_t* out, size_t* inout_count);  // 163
  gcap_ort_slot_t gap_164[1];
  gcap_ort_status_t* (*AddRunConfigEntry)(gcap_ort_run_options_t* options, const char* key, const char* value);  // 165
  gcap_ort_slot_t gap_166[27];
  gcap_ort_status_t* (*KernelContext_GetGPUComputeStream)(const gcap_ort_kernel_context_t* context,
                                                          void** out_handle);  // 193
  gcap_ort_slot_t gap_194[8];
  gcap_ort_status_t* (*SynchronizeBoundInputs)(gcap_ort_io_binding_t* binding);   // 202
  gcap_ort_status_t* (*SynchronizeBoundOutputs)(gcap_ort_io_binding_t* binding);  // 203
  gcap_ort_slot_t gap_204[26];
  gcap_ort_status_t* (*KernelInfo_GetInputCount)(const gcap_ort_kernel_info_t* info, size_t* out_count);   // 230
  gcap_ort_status_t* (*KernelInfo_GetOutputCount)(const gcap_ort_kernel_info_t* info, size_t* out_count);  // 231
  gcap_ort_slot_t gap_232[2];
  gcap_ort_status_t* (*KernelInfo_GetInputTypeInfo)(const gcap_ort_kernel_info_t* info, size_t index,
                                                    gcap_ort_type_info_t** out_info);  // 234
  gcap_ort_status_t* (*KernelInfo_GetOutputTypeInfo)(const gcap_ort_kernel_info_t* info, size_t index,
                                                     gcap_ort_type_info_t** out_info);  // 235
  gcap_ort_status_t* (*KernelInfoGetAttribute_tensor)(const gcap_ort_kernel_info_t* info, const char* name,
                                                      gcap_ort_allocator_t* allocator,
                                                      gcap_ort_value_t** out_value);  // 236
  gcap_ort_slot_t gap_237[7];
  gcap_ort_status_t* (*KernelInfo_GetNodeName)(const gcap_ort_kernel_info_t* info, char* out,
                                               size_t* inout_bytes);  // 244
  gcap_ort_slot_t gap_245[2];
  gcap_ort_status_t* (*Logger_LogMessage)(const gcap_ort_logger_t* logger, gcap_ort_logging_level_t level,
                                          const char* message, const char* file, int line,
                                          const char* function);  // 247
  gcap_ort_status_t* (*Logger_GetLoggingSeverityLevel)(const gcap_ort_logger_t* logger,
                                                       gcap_ort_logging_level_t* out_level);  // 248
  gcap_ort_status_t* (*KernelInfoGetConstantInput_tensor)(const gcap_ort_kernel_info_t* info, size_t index,
                                                          int* out_is_constant,
                                                          const gcap_ort_value_t** out_value);  // 249
  gcap_ort_slot_t gap_250[22];
  gcap_ort_status_t* (*ReadOpAttr)(const gcap_ort_op_attr_t* attribute, gcap_ort_attr_type_t type, void* data,
                                   size_t bytes, size_t* out_bytes);  // 272
  gcap_ort_slot_t gap_273[16];
  gcap_ort_status_t* (*GetValueInfoName)(const gcap_ort_value_info_t* info, const char** out_name);  // 289
  gcap_ort_status_t* (*GetValueInfoTypeInfo)(const gcap_ort_value_info_t* info,
                                             const gcap_ort_type_info_t** out_info);  // 290
  gcap_ort_slot_t gap_291[4];
  void (*CreateKeyValuePairs)(gcap_ort_key_values_t** out_pairs);                             // 295
  void (*AddKeyValuePair)(gcap_ort_key_values_t* pairs, const char* key, const char* value);  // 296
  const char* (*GetKeyValue)(const gcap_ort_key_values_t* pairs, const char* key);            // 297
  void (*GetKeyValuePairs)(const gcap_ort_key_values_t* pairs, const char* const** out_keys,
                           const char* const** out_values, size_t* out_count);  // 298
  gcap_ort_slot_t gap_299[1];
  void (*ReleaseKeyValuePairs)(gcap_ort_key_values_t* object);  // 300
  gcap_ort_status_t* (*RegisterExecutionProviderLibrary)(gcap_ort_env_t* env, const char* name,
                                                         const char* path);                         // 301
  gcap_ort_status_t* (*UnregisterExecutionProviderLibrary)(gcap_ort_env_t* env, const char* name);  // 302
  gcap_ort_status_t* (*GetEpDevices)(const gcap_ort_env_t* env, const gcap_ort_ep_device_t* const** out_devices,
                                     size_t* out_count);  // 303
  gcap_ort_status_t* (*SessionOptionsAppendExecutionProvider_V2)(gcap_ort_session_options_t* options,
                                                                 gcap_ort_env_t* env,
                                                                 const gcap_ort_ep_device_t* const* devices,
                                                                 size_t num_devices, const char* const* keys,
                                                                 const char* const* values, size_t num_options);  // 304
  gcap_ort_slot_t gap_305[2];
  gcap_ort_hardware_type_t (*HardwareDevice_Type)(const gcap_ort_hardware_device_t* device);  // 307
  uint32_t (*HardwareDevice_VendorId)(const gcap_ort_hardware_device_t* device);              // 308
  gcap_ort_slot_t gap_309[1];
  uint32_t (*HardwareDevice_DeviceId)(const gcap_ort_hardware_device_t* device);  // 310
  gcap_ort_slot_t gap_311[1];
  const char* (*EpDevice_EpName)(const gcap_ort_ep_device_t* device);  // 312
  gcap_ort_slot_t gap_313[1];
  const gcap_ort_key_values_t* (*EpDevice_EpMetadata)(const gcap_ort_ep_device_t* device);  // 314
  gcap_ort_slot_t gap_315[2];
  const gcap_ort_ep_api_t* (*GetEpApi)(void);                                                    // 317
  gcap_ort_status_t* (*GetTensorSizeInBytes)(const gcap_ort_value_t* value, size_t* out_bytes);  // 318
  gcap_ort_status_t* (*AllocatorGetStats)(const gcap_ort_allocator_t* allocator,
                                          gcap_ort_key_values_t** out_pairs);  // 319
  gcap_ort_status_t* (*CreateMemoryInfo_V2)(const char* name, gcap_ort_device_type_t type, uint32_t vendor_id,
                                            int32_t device_id, gcap_ort_device_memory_t memory, size_t alignment,
                                            gcap_ort_allocator_type_t allocator_type,
                                            gcap_ort_memory_info_t** out_info);  // 320
  gcap_ort_slot_t gap_321[5];
  gcap_ort_status_t* (*ValueInfo_GetInitializerValue)(const gcap_ort_value_info_t* info,
                                                      const gcap_ort_value_t** out_value);  // 326
  gcap_ort_slot_t gap_327[4];
  gcap_ort_status_t* (*ValueInfo_IsConstantInitializer)(const gcap_ort_value_info_t* info,
                                                        bool* out_is_constant);  // 331
  gcap_ort_slot_t gap_332[12];
  gcap_ort_status_t* (*Graph_GetNumNodes)(const gcap_ort_graph_t* graph, size_t* out_count);  // 344
  gcap_ort_status_t* (*Graph_GetNodes)(const gcap_ort_graph_t* graph, const gcap_ort_node_t** out_nodes,
                                       size_t count);  // 345
  gcap_ort_slot_t gap_346[3];
  gcap_ort_status_t* (*Node_GetName)(const gcap_ort_node_t* node, const char** out_name);          // 349
  gcap_ort_status_t* (*Node_GetOperatorType)(const gcap_ort_node_t* node, const char** out_type);  // 350
  gcap_ort_status_t* (*Node_GetDomain)(const gcap_ort_node_t* node, const char** out_domain);      // 351
  gcap_ort_status_t* (*Node_GetSinceVersion)(const gcap_ort_node_t* node, int* out_version);       // 352
  gcap_ort_status_t* (*Node_GetNumInputs)(const gcap_ort_node_t* node, size_t* out_count);         // 353
  gcap_ort_status_t* (*Node_GetInputs)(const gcap_ort_node_t* node, const gcap_ort_value_info_t** out_inputs,
                                       size_t count);                                        // 354
  gcap_ort_status_t* (*Node_GetNumOutputs)(const gcap_ort_node_t* node, size_t* out_count);  // 355
  gcap_ort_status_t* (*Node_GetOutputs)(const gcap_ort_node_t* node, const gcap_ort_value_info_t** out_outputs,
                                        size_t count);  // 356
  gcap_ort_slot_t gap_357[2];
  gcap_ort_status_t* (*Node_GetNumAttributes)(const gcap_ort_node_t* node, size_t* out_count);  // 359
  gcap_ort_status_t* (*Node_GetAttributes)(const gcap_ort_node_t* node, const gcap_ort_op_attr_t** out_attributes,
                                           size_t count);  // 360
  gcap_ort_slot_t gap_361[1];
  gcap_ort_status_t* (*OpAttr_GetTensorAttributeAsOrtValue)(const gcap_ort_op_attr_t* attribute,
                                                            gcap_ort_value_t** out_value);                    // 362
  gcap_ort_status_t* (*OpAttr_GetType)(const gcap_ort_op_attr_t* attribute, gcap_ort_attr_type_t* out_type);  // 363
  gcap_ort_status_t* (*OpAttr_GetName)(const gcap_ort_op_attr_t* attribute, const char** out_name);           // 364
  gcap_ort_slot_t gap_365[3];
  gcap_ort_status_t* (*Node_GetEpName)(const gcap_ort_node_t* node, const char** out_name);  // 368
  gcap_ort_slot_t gap_369[4];
  const char* (*GetRunConfigEntry)(const gcap_ort_run_options_t* options, const char* key);  // 373
  const gcap_ort_memory_info_t* (*EpDevice_MemoryInfo)(const gcap_ort_ep_device_t* device,
                                                       gcap_ort_device_memory_t memory);  // 374
  gcap_ort_status_t* (*CreateSharedAllocator)(gcap_ort_env_t* env, const gcap_ort_ep_device_t* device,
                                              gcap_ort_device_memory_t memory, gcap_ort_allocator_type_t type,
                                              const gcap_ort_key_values_t* options,
                                              gcap_ort_allocator_t** out_allocator);  // 375
  gcap_ort_status_t* (*GetSharedAllocator)(gcap_ort_env_t* env, const gcap_ort_memory_info_t* info,
                                           gcap_ort_allocator_t** out_allocator);  // 376
  gcap_ort_status_t* (*ReleaseSharedAllocator)(gcap_ort_env_t* env, const gcap_ort_ep_device_t* device,
                                               gcap_ort_device_memory_t memory);              // 377
  gcap_ort_status_t* (*GetTensorData)(const gcap_ort_value_t* value, const void** out_data);  // 378
  gcap_ort_status_t* (*GetSessionOptionsConfigEntries)(const gcap_ort_session_options_t* options,
                                                       gcap_ort_key_values_t** out_pairs);  // 379
  gcap_ort_slot_t gap_380[3];
  gcap_ort_status_t* (*CreateSyncStreamForEpDevice)(const gcap_ort_ep_device_t* device,
                                                    const gcap_ort_key_values_t* options,
                                                    gcap_ort_sync_stream_t** out_stream);  // 383
  void* (*SyncStream_GetHandle)(gcap_ort_sync_stream_t* stream);                           // 384
  void (*ReleaseSyncStream)(gcap_ort_sync_stream_t* object);                               // 385
  gcap_ort_status_t* (*CopyTensors)(const gcap_ort_env_t* env, const gcap_ort_value_t* const* src,
                                    gcap_ort_value_t* const* dst, gcap_ort_sync_stream_t* stream, size_t count);  // 386
  gcap_ort_slot_t gap_387[3];
  bool (*TensorTypeAndShape_HasShape)(const gcap_ort_tensor_info_t* info);  // 390
  gcap_ort_slot_t gap_391[22];
  void (*RunOptionsSetSyncStream)(gcap_ort_run_options_t* options, gcap_ort_sync_stream_t* stream);  // 413
  gcap_ort_status_t* (*GetTensorElementTypeAndShapeDataReference)(const gcap_ort_value_t* value,
                                                                  gcap_ort_element_type_t* out_type,
                                                                  const int64_t** out_shape, size_t* out_rank);  // 414
  gcap_ort_slot_t gap_415[6];
  gcap_ort_status_t* (*SessionReleaseCapturedGraph)(gcap_ort_session_t* session, int graph_id);  // 421, since 27
} gcap_ort_api_t;

// OrtEpApi.
struct gcap_ort_ep_api {
  gcap_ort_status_t* (*CreateEpDevice)(gcap_ort_ep_factory_t* factory, const gcap_ort_hardware_device_t* hardware,
                                       const gcap_ort_key_values_t* metadata, const gcap_ort_key_values_t* options,
                                       gcap_ort_ep_device_t** out_device);  // 0
  void (*ReleaseEpDevice)(gcap_ort_ep_device_t* object);                    // 1
  gcap_ort_slot_t gap_2[1];
  gcap_ort_status_t* (*EpGraphSupportInfo_AddSingleNode)(gcap_ort_graph_support_t* info,
                                                         const gcap_ort_node_t* node);  // 3
  gcap_ort_slot_t gap_4[1];
  gcap_ort_status_t* (*EpDevice_AddAllocatorInfo)(gcap_ort_ep_device_t* device,
                                                  const gcap_ort_memory_info_t* info);                // 5
  const gcap_ort_memory_device_t* (*MemoryInfo_GetMemoryDevice)(const gcap_ort_memory_info_t* info);  // 6
  const gcap_ort_memory_device_t* (*Value_GetMemoryDevice)(const gcap_ort_value_t* value);            // 7
  gcap_ort_slot_t gap_8[1];
  gcap_ort_device_type_t (*MemoryDevice_GetDeviceType)(const gcap_ort_memory_device_t* device);    // 9
  gcap_ort_device_memory_t (*MemoryDevice_GetMemoryType)(const gcap_ort_memory_device_t* device);  // 10
  uint32_t (*MemoryDevice_GetVendorId)(const gcap_ort_memory_device_t* device);                    // 11
  uint32_t (*MemoryDevice_GetDeviceId)(const gcap_ort_memory_device_t* device);                    // 12
  const gcap_ort_stream_impl_t* (*SyncStream_GetImpl)(const gcap_ort_sync_stream_t* stream);       // 13
  gcap_ort_slot_t gap_14[2];
  gcap_ort_status_t* (*CreateHardwareDevice)(gcap_ort_hardware_type_t type, uint32_t vendor_id, uint32_t device_id,
                                             const char* vendor, const gcap_ort_key_values_t* metadata,
                                             gcap_ort_hardware_device_t** out_device);    // 16
  void (*ReleaseHardwareDevice)(gcap_ort_hardware_device_t* object);                      // 17
  gcap_ort_status_t* (*CreateKernelRegistry)(gcap_ort_kernel_registry_t** out_registry);  // 18
  void (*ReleaseKernelRegistry)(gcap_ort_kernel_registry_t* object);                      // 19
  gcap_ort_status_t* (*KernelRegistry_AddKernel)(gcap_ort_kernel_registry_t* registry, const gcap_ort_kernel_def_t* def,
                                                 gcap_ort_kernel_create_t create, void* state);  // 20
  gcap_ort_status_t* (*CreateKernelDefBuilder)(gcap_ort_kernel_def_builder_t** out_builder);     // 21
  void (*ReleaseKernelDefBuilder)(gcap_ort_kernel_def_builder_t* object);                        // 22
  gcap_ort_status_t* (*KernelDefBuilder_SetOperatorType)(gcap_ort_kernel_def_builder_t* builder,
                                                         const char* op_type);                                   // 23
  gcap_ort_status_t* (*KernelDefBuilder_SetDomain)(gcap_ort_kernel_def_builder_t* builder, const char* domain);  // 24
  gcap_ort_status_t* (*KernelDefBuilder_SetSinceVersion)(gcap_ort_kernel_def_builder_t* builder, int first,
                                                         int last);  // 25
  gcap_ort_status_t* (*KernelDefBuilder_SetExecutionProvider)(gcap_ort_kernel_def_builder_t* builder,
                                                              const char* ep_name);  // 26
  gcap_ort_status_t* (*KernelDefBuilder_SetInputMemType)(gcap_ort_kernel_def_builder_t* builder, size_t input,
                                                         gcap_ort_mem_type_t type);  // 27
  gcap_ort_status_t* (*KernelDefBuilder_SetOutputMemType)(gcap_ort_kernel_def_builder_t* builder, size_t output,
                                                          gcap_ort_mem_type_t type);  // 28
  gcap_ort_slot_t gap_29[3];
  gcap_ort_status_t* (*KernelDefBuilder_Build)(gcap_ort_kernel_def_builder_t* builder,
                                               gcap_ort_kernel_def_t** out_def);  // 32
  void (*ReleaseKernelDef)(gcap_ort_kernel_def_t* object);                        // 33
  gcap_ort_slot_t gap_34[7];
  gcap_ort_status_t* (*EpGraphSupportInfo_LookUpKernel)(gcap_ort_graph_support_t* info, const gcap_ort_node_t* node,
                                                        const gcap_ort_kernel_def_t** out_def);  // 41
  gcap_ort_slot_t gap_42[1];
  gcap_ort_status_t* (*KernelInfo_GetEp)(const gcap_ort_kernel_info_t* info, const gcap_ort_ep_t** out_ep);  // 43
  gcap_ort_slot_t gap_44[21];
  gcap_ort_status_t* (*CreateProfilingEvent)(gcap_ort_event_category_t category, int32_t process_id, int32_t thread_id,
                                             const char* name, int64_t timestamp_us, int64_t duration_us,
                                             const char* const* arg_keys, const char* const* arg_values,
                                             size_t num_args, gcap_ort_profiling_event_t** out_event);  // 65
  void (*ReleaseProfilingEvent)(gcap_ort_profiling_event_t* object);                                    // 66
  gcap_ort_slot_t gap_67[5];
  gcap_ort_status_t* (*ProfilingEventsContainer_AddEvents)(gcap_ort_profiling_events_t* container,
                                                           const gcap_ort_profiling_event_t* const* events,
                                                           size_t count);  // 72
};

// OrtApiBase: what ONNX Runtime hands to a plugin.
typedef struct gcap_ort_api_base {
  const gcap_ort_api_t* (*GetApi)(uint32_t version);  // 0: NULL if the runtime is older than `version`
  const char* (*GetVersionString)(void);              // 1: "1.26.0"
} gcap_ort_api_base_t;

#endif  // GCAP_ORT_ABI_API_H_
