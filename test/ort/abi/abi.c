// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Our declarations of ONNX Runtime's C API. Each slot's number is a constant of the ABI; with GCAP_ORT_ROOT all of
// them, all offsets and constants are compared with the official headers too.

#include "ort/abi/api.h"

#include <stddef.h>

#ifdef GCAP_HAS_ORT_HEADERS
#include "onnxruntime_c_api.h"
#define SAME(ours, their_struct, member) \
  _Static_assert(offsetof(ours, member) == offsetof(their_struct, member), #their_struct "." #member)
#define EQUAL(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define SIZE(ours, theirs) _Static_assert(sizeof(ours) <= sizeof(theirs), #theirs)
#else
#define SAME(ours, theirs, member) (void)0
#define EQUAL(ours, theirs) (void)0
#define SIZE(ours, theirs) (void)0
#endif

#define SLOT(ours, theirs, member, number)                                                 \
  _Static_assert(offsetof(ours, member) == (number) * sizeof(void*), #theirs "." #member); \
  SAME(ours, theirs, member)

// Compiled, and that is the test.
bool gcap_ort_abi_has_headers(void);
bool gcap_ort_abi_has_headers(void) {
  SLOT(gcap_ort_api_t, OrtApi, CreateStatus, 0);
  SLOT(gcap_ort_api_t, OrtApi, GetErrorCode, 1);
  SLOT(gcap_ort_api_t, OrtApi, GetErrorMessage, 2);
  SLOT(gcap_ort_api_t, OrtApi, CreateEnv, 3);
  SLOT(gcap_ort_api_t, OrtApi, CreateSession, 7);
  SLOT(gcap_ort_api_t, OrtApi, CreateSessionFromArray, 8);
  SLOT(gcap_ort_api_t, OrtApi, Run, 9);
  SLOT(gcap_ort_api_t, OrtApi, CreateSessionOptions, 10);
  SLOT(gcap_ort_api_t, OrtApi, SetSessionExecutionMode, 13);
  SLOT(gcap_ort_api_t, OrtApi, EnableProfiling, 14);
  SLOT(gcap_ort_api_t, OrtApi, DisableMemPattern, 17);
  SLOT(gcap_ort_api_t, OrtApi, SetInterOpNumThreads, 25);
  SLOT(gcap_ort_api_t, OrtApi, CreateRunOptions, 39);
  SLOT(gcap_ort_api_t, OrtApi, CreateTensorAsOrtValue, 48);
  SLOT(gcap_ort_api_t, OrtApi, CreateTensorWithDataAsOrtValue, 49);
  SLOT(gcap_ort_api_t, OrtApi, IsTensor, 50);
  SLOT(gcap_ort_api_t, OrtApi, GetTensorMutableData, 51);
  SLOT(gcap_ort_api_t, OrtApi, CastTypeInfoToTensorInfo, 55);
  SLOT(gcap_ort_api_t, OrtApi, GetTensorElementType, 60);
  SLOT(gcap_ort_api_t, OrtApi, GetDimensionsCount, 61);
  SLOT(gcap_ort_api_t, OrtApi, GetDimensions, 62);
  SLOT(gcap_ort_api_t, OrtApi, GetTensorTypeAndShape, 65);
  SLOT(gcap_ort_api_t, OrtApi, CreateCpuMemoryInfo, 69);
  SLOT(gcap_ort_api_t, OrtApi, GetAllocatorWithDefaultOptions, 78);
  SLOT(gcap_ort_api_t, OrtApi, KernelInfoGetAttribute_float, 85);
  SLOT(gcap_ort_api_t, OrtApi, KernelInfoGetAttribute_int64, 86);
  SLOT(gcap_ort_api_t, OrtApi, KernelInfoGetAttribute_string, 87);
  SLOT(gcap_ort_api_t, OrtApi, KernelContext_GetInputCount, 88);
  SLOT(gcap_ort_api_t, OrtApi, KernelContext_GetOutputCount, 89);
  SLOT(gcap_ort_api_t, OrtApi, KernelContext_GetInput, 90);
  SLOT(gcap_ort_api_t, OrtApi, KernelContext_GetOutput, 91);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseEnv, 92);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseStatus, 93);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseMemoryInfo, 94);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseSession, 95);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseValue, 96);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseRunOptions, 97);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseTypeInfo, 98);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseTensorTypeAndShapeInfo, 99);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseSessionOptions, 100);
  SLOT(gcap_ort_api_t, OrtApi, AddSessionConfigEntry, 130);
  SLOT(gcap_ort_api_t, OrtApi, CreateAllocator, 131);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseAllocator, 132);
  SLOT(gcap_ort_api_t, OrtApi, RunWithBinding, 133);
  SLOT(gcap_ort_api_t, OrtApi, CreateIoBinding, 134);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseIoBinding, 135);
  SLOT(gcap_ort_api_t, OrtApi, BindInput, 136);
  SLOT(gcap_ort_api_t, OrtApi, BindOutput, 137);
  SLOT(gcap_ort_api_t, OrtApi, BindOutputToDevice, 138);
  SLOT(gcap_ort_api_t, OrtApi, GetBoundOutputValues, 140);
  SLOT(gcap_ort_api_t, OrtApi, KernelInfoGetAttributeArray_int64, 163);
  SLOT(gcap_ort_api_t, OrtApi, AddRunConfigEntry, 165);
  SLOT(gcap_ort_api_t, OrtApi, KernelContext_GetGPUComputeStream, 193);
  SLOT(gcap_ort_api_t, OrtApi, SynchronizeBoundInputs, 202);
  SLOT(gcap_ort_api_t, OrtApi, SynchronizeBoundOutputs, 203);
  SLOT(gcap_ort_api_t, OrtApi, KernelInfo_GetInputCount, 230);
  SLOT(gcap_ort_api_t, OrtApi, KernelInfo_GetOutputCount, 231);
  SLOT(gcap_ort_api_t, OrtApi, KernelInfo_GetInputTypeInfo, 234);
  SLOT(gcap_ort_api_t, OrtApi, KernelInfo_GetOutputTypeInfo, 235);
  SLOT(gcap_ort_api_t, OrtApi, KernelInfo_GetNodeName, 244);
  SLOT(gcap_ort_api_t, OrtApi, Logger_LogMessage, 247);
  SLOT(gcap_ort_api_t, OrtApi, Logger_GetLoggingSeverityLevel, 248);
  SLOT(gcap_ort_api_t, OrtApi, KernelInfoGetConstantInput_tensor, 249);
  SLOT(gcap_ort_api_t, OrtApi, ReadOpAttr, 272);
  SLOT(gcap_ort_api_t, OrtApi, GetValueInfoName, 289);
  SLOT(gcap_ort_api_t, OrtApi, GetValueInfoTypeInfo, 290);
  SLOT(gcap_ort_api_t, OrtApi, CreateKeyValuePairs, 295);
  SLOT(gcap_ort_api_t, OrtApi, AddKeyValuePair, 296);
  SLOT(gcap_ort_api_t, OrtApi, GetKeyValue, 297);
  SLOT(gcap_ort_api_t, OrtApi, GetKeyValuePairs, 298);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseKeyValuePairs, 300);
  SLOT(gcap_ort_api_t, OrtApi, RegisterExecutionProviderLibrary, 301);
  SLOT(gcap_ort_api_t, OrtApi, UnregisterExecutionProviderLibrary, 302);
  SLOT(gcap_ort_api_t, OrtApi, GetEpDevices, 303);
  SLOT(gcap_ort_api_t, OrtApi, SessionOptionsAppendExecutionProvider_V2, 304);
  SLOT(gcap_ort_api_t, OrtApi, HardwareDevice_Type, 307);
  SLOT(gcap_ort_api_t, OrtApi, HardwareDevice_VendorId, 308);
  SLOT(gcap_ort_api_t, OrtApi, HardwareDevice_DeviceId, 310);
  SLOT(gcap_ort_api_t, OrtApi, EpDevice_EpName, 312);
  SLOT(gcap_ort_api_t, OrtApi, EpDevice_EpMetadata, 314);
  SLOT(gcap_ort_api_t, OrtApi, GetEpApi, 317);
  SLOT(gcap_ort_api_t, OrtApi, GetTensorSizeInBytes, 318);
  SLOT(gcap_ort_api_t, OrtApi, AllocatorGetStats, 319);
  SLOT(gcap_ort_api_t, OrtApi, CreateMemoryInfo_V2, 320);
  SLOT(gcap_ort_api_t, OrtApi, ValueInfo_GetInitializerValue, 326);
  SLOT(gcap_ort_api_t, OrtApi, ValueInfo_IsConstantInitializer, 331);
  SLOT(gcap_ort_api_t, OrtApi, Graph_GetNumNodes, 344);
  SLOT(gcap_ort_api_t, OrtApi, Graph_GetNodes, 345);
  SLOT(gcap_ort_api_t, OrtApi, Node_GetName, 349);
  SLOT(gcap_ort_api_t, OrtApi, Node_GetOperatorType, 350);
  SLOT(gcap_ort_api_t, OrtApi, Node_GetDomain, 351);
  SLOT(gcap_ort_api_t, OrtApi, Node_GetSinceVersion, 352);
  SLOT(gcap_ort_api_t, OrtApi, Node_GetNumInputs, 353);
  SLOT(gcap_ort_api_t, OrtApi, Node_GetInputs, 354);
  SLOT(gcap_ort_api_t, OrtApi, Node_GetNumOutputs, 355);
  SLOT(gcap_ort_api_t, OrtApi, Node_GetOutputs, 356);
  SLOT(gcap_ort_api_t, OrtApi, Node_GetNumAttributes, 359);
  SLOT(gcap_ort_api_t, OrtApi, Node_GetAttributes, 360);
  SLOT(gcap_ort_api_t, OrtApi, OpAttr_GetType, 363);
  SLOT(gcap_ort_api_t, OrtApi, OpAttr_GetName, 364);
  SLOT(gcap_ort_api_t, OrtApi, Node_GetEpName, 368);
  SLOT(gcap_ort_api_t, OrtApi, GetRunConfigEntry, 373);
  SLOT(gcap_ort_api_t, OrtApi, EpDevice_MemoryInfo, 374);
  SLOT(gcap_ort_api_t, OrtApi, CreateSharedAllocator, 375);
  SLOT(gcap_ort_api_t, OrtApi, GetSharedAllocator, 376);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseSharedAllocator, 377);
  SLOT(gcap_ort_api_t, OrtApi, GetTensorData, 378);
  SLOT(gcap_ort_api_t, OrtApi, GetSessionOptionsConfigEntries, 379);
  SLOT(gcap_ort_api_t, OrtApi, CreateSyncStreamForEpDevice, 383);
  SLOT(gcap_ort_api_t, OrtApi, SyncStream_GetHandle, 384);
  SLOT(gcap_ort_api_t, OrtApi, ReleaseSyncStream, 385);
  SLOT(gcap_ort_api_t, OrtApi, CopyTensors, 386);
  SLOT(gcap_ort_api_t, OrtApi, TensorTypeAndShape_HasShape, 390);
  SLOT(gcap_ort_api_t, OrtApi, RunOptionsSetSyncStream, 413);
  SLOT(gcap_ort_api_t, OrtApi, GetTensorElementTypeAndShapeDataReference, 414);
  SLOT(gcap_ort_api_t, OrtApi, SessionReleaseCapturedGraph, 421);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, CreateEpDevice, 0);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, ReleaseEpDevice, 1);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, EpGraphSupportInfo_AddSingleNode, 3);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, EpDevice_AddAllocatorInfo, 5);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, MemoryInfo_GetMemoryDevice, 6);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, Value_GetMemoryDevice, 7);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, MemoryDevice_GetDeviceType, 9);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, MemoryDevice_GetMemoryType, 10);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, MemoryDevice_GetVendorId, 11);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, MemoryDevice_GetDeviceId, 12);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, SyncStream_GetImpl, 13);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, CreateHardwareDevice, 16);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, ReleaseHardwareDevice, 17);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, CreateKernelRegistry, 18);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, ReleaseKernelRegistry, 19);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, KernelRegistry_AddKernel, 20);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, CreateKernelDefBuilder, 21);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, ReleaseKernelDefBuilder, 22);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, KernelDefBuilder_SetOperatorType, 23);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, KernelDefBuilder_SetDomain, 24);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, KernelDefBuilder_SetSinceVersion, 25);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, KernelDefBuilder_SetExecutionProvider, 26);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, KernelDefBuilder_SetInputMemType, 27);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, KernelDefBuilder_SetOutputMemType, 28);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, KernelDefBuilder_Build, 32);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, ReleaseKernelDef, 33);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, EpGraphSupportInfo_LookUpKernel, 41);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, KernelInfo_GetEp, 43);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, CreateProfilingEvent, 65);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, ReleaseProfilingEvent, 66);
  SLOT(gcap_ort_ep_api_t, OrtEpApi, ProfilingEventsContainer_AddEvents, 72);
  SLOT(gcap_ort_api_base_t, OrtApiBase, GetApi, 0);
  SLOT(gcap_ort_api_base_t, OrtApiBase, GetVersionString, 1);
  SLOT(gcap_ort_allocator_t, OrtAllocator, version, 0);
  SLOT(gcap_ort_allocator_t, OrtAllocator, Alloc, 1);
  SLOT(gcap_ort_allocator_t, OrtAllocator, Free, 2);
  SLOT(gcap_ort_allocator_t, OrtAllocator, Info, 3);
  SLOT(gcap_ort_allocator_t, OrtAllocator, Reserve, 4);
  SLOT(gcap_ort_allocator_t, OrtAllocator, GetStats, 5);
  SLOT(gcap_ort_allocator_t, OrtAllocator, AllocOnStream, 6);
  SLOT(gcap_ort_allocator_t, OrtAllocator, Shrink, 7);
  SIZE(gcap_ort_allocator_t, OrtAllocator);
  SLOT(gcap_ort_data_transfer_t, OrtDataTransferImpl, ort_version_supported, 0);
  SLOT(gcap_ort_data_transfer_t, OrtDataTransferImpl, Release, 1);
  SLOT(gcap_ort_data_transfer_t, OrtDataTransferImpl, CanCopy, 2);
  SLOT(gcap_ort_data_transfer_t, OrtDataTransferImpl, CopyTensors, 3);
  SIZE(gcap_ort_data_transfer_t, OrtDataTransferImpl);
  SLOT(gcap_ort_notification_impl_t, OrtSyncNotificationImpl, ort_version_supported, 0);
  SLOT(gcap_ort_notification_impl_t, OrtSyncNotificationImpl, Release, 1);
  SLOT(gcap_ort_notification_impl_t, OrtSyncNotificationImpl, Activate, 2);
  SLOT(gcap_ort_notification_impl_t, OrtSyncNotificationImpl, WaitOnDevice, 3);
  SLOT(gcap_ort_notification_impl_t, OrtSyncNotificationImpl, WaitOnHost, 4);
  SIZE(gcap_ort_notification_impl_t, OrtSyncNotificationImpl);
  SLOT(gcap_ort_stream_impl_t, OrtSyncStreamImpl, ort_version_supported, 0);
  SLOT(gcap_ort_stream_impl_t, OrtSyncStreamImpl, Release, 1);
  SLOT(gcap_ort_stream_impl_t, OrtSyncStreamImpl, GetHandle, 2);
  SLOT(gcap_ort_stream_impl_t, OrtSyncStreamImpl, CreateNotification, 3);
  SLOT(gcap_ort_stream_impl_t, OrtSyncStreamImpl, Flush, 4);
  SLOT(gcap_ort_stream_impl_t, OrtSyncStreamImpl, OnSessionRunEnd, 5);
  SIZE(gcap_ort_stream_impl_t, OrtSyncStreamImpl);
  SLOT(gcap_ort_kernel_impl_t, OrtKernelImpl, ort_version_supported, 0);
  SLOT(gcap_ort_kernel_impl_t, OrtKernelImpl, Compute, 1);
  SLOT(gcap_ort_kernel_impl_t, OrtKernelImpl, Release, 2);
  SLOT(gcap_ort_kernel_impl_t, OrtKernelImpl, PrePackWeight, 3);
  SLOT(gcap_ort_kernel_impl_t, OrtKernelImpl, SetSharedPrePackedWeight, 4);
  SIZE(gcap_ort_kernel_impl_t, OrtKernelImpl);
  SLOT(gcap_ort_profiler_impl_t, OrtEpProfilerImpl, ort_version_supported, 0);
  SLOT(gcap_ort_profiler_impl_t, OrtEpProfilerImpl, Release, 1);
  SLOT(gcap_ort_profiler_impl_t, OrtEpProfilerImpl, StartProfiling, 2);
  SLOT(gcap_ort_profiler_impl_t, OrtEpProfilerImpl, StartEvent, 3);
  SLOT(gcap_ort_profiler_impl_t, OrtEpProfilerImpl, StopEvent, 4);
  SLOT(gcap_ort_profiler_impl_t, OrtEpProfilerImpl, EndProfiling, 5);
  SIZE(gcap_ort_profiler_impl_t, OrtEpProfilerImpl);
  SLOT(gcap_ort_ep_t, OrtEp, ort_version_supported, 0);
  SLOT(gcap_ort_ep_t, OrtEp, GetName, 1);
  SLOT(gcap_ort_ep_t, OrtEp, GetCapability, 2);
  SLOT(gcap_ort_ep_t, OrtEp, Compile, 3);
  SLOT(gcap_ort_ep_t, OrtEp, ReleaseNodeComputeInfos, 4);
  SLOT(gcap_ort_ep_t, OrtEp, GetPreferredDataLayout, 5);
  SLOT(gcap_ort_ep_t, OrtEp, ShouldConvertDataLayoutForOp, 6);
  SLOT(gcap_ort_ep_t, OrtEp, SetDynamicOptions, 7);
  SLOT(gcap_ort_ep_t, OrtEp, OnRunStart, 8);
  SLOT(gcap_ort_ep_t, OrtEp, OnRunEnd, 9);
  SLOT(gcap_ort_ep_t, OrtEp, CreateAllocator, 10);
  SLOT(gcap_ort_ep_t, OrtEp, CreateSyncStreamForDevice, 11);
  SLOT(gcap_ort_ep_t, OrtEp, GetCompiledModelCompatibilityInfo, 12);
  SLOT(gcap_ort_ep_t, OrtEp, GetKernelRegistry, 13);
  SLOT(gcap_ort_ep_t, OrtEp, IsConcurrentRunSupported, 14);
  SLOT(gcap_ort_ep_t, OrtEp, Sync, 15);
  SLOT(gcap_ort_ep_t, OrtEp, CreateProfiler, 16);
  SLOT(gcap_ort_ep_t, OrtEp, IsGraphCaptureEnabled, 17);
  SLOT(gcap_ort_ep_t, OrtEp, IsGraphCaptured, 18);
  SLOT(gcap_ort_ep_t, OrtEp, ReplayGraph, 19);
  SLOT(gcap_ort_ep_t, OrtEp, GetGraphCaptureNodeAssignmentPolicy, 20);
  SLOT(gcap_ort_ep_t, OrtEp, GetAvailableResource, 21);
  SLOT(gcap_ort_ep_t, OrtEp, OnSessionInitializationEnd, 22);
  SLOT(gcap_ort_ep_t, OrtEp, GetDefaultMemoryDevice, 23);
  SLOT(gcap_ort_ep_t, OrtEp, ReleaseCapturedGraph, 24);
  SLOT(gcap_ort_ep_t, OrtEp, GetWeightlessSupport, 25);
  SIZE(gcap_ort_ep_t, OrtEp);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, ort_version_supported, 0);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, GetName, 1);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, GetVendor, 2);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, GetSupportedDevices, 3);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, CreateEp, 4);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, ReleaseEp, 5);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, GetVendorId, 6);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, GetVersion, 7);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, ValidateCompiledModelCompatibilityInfo, 8);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, CreateAllocator, 9);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, ReleaseAllocator, 10);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, CreateDataTransfer, 11);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, IsStreamAware, 12);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, CreateSyncStreamForDevice, 13);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, GetHardwareDeviceIncompatibilityDetails, 14);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, CreateExternalResourceImporterForDevice, 15);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, GetNumCustomOpDomains, 16);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, GetCustomOpDomains, 17);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, InitGraphicsInterop, 18);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, DeinitGraphicsInterop, 19);
  SLOT(gcap_ort_ep_factory_t, OrtEpFactory, SelectBestModelCandidate, 20);
  SIZE(gcap_ort_ep_factory_t, OrtEpFactory);
  EQUAL(GCAP_ORT_FAIL, ORT_FAIL);
  EQUAL(GCAP_ORT_INVALID_ARGUMENT, ORT_INVALID_ARGUMENT);
  EQUAL(GCAP_ORT_NOT_IMPLEMENTED, ORT_NOT_IMPLEMENTED);
  EQUAL(GCAP_ORT_EP_FAIL, ORT_EP_FAIL);
  EQUAL(GCAP_ORT_LOG_VERBOSE, ORT_LOGGING_LEVEL_VERBOSE);
  EQUAL(GCAP_ORT_LOG_INFO, ORT_LOGGING_LEVEL_INFO);
  EQUAL(GCAP_ORT_LOG_WARNING, ORT_LOGGING_LEVEL_WARNING);
  EQUAL(GCAP_ORT_LOG_ERROR, ORT_LOGGING_LEVEL_ERROR);
  EQUAL(GCAP_ORT_LOG_FATAL, ORT_LOGGING_LEVEL_FATAL);
  EQUAL(GCAP_ORT_FLOAT, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  EQUAL(GCAP_ORT_INT32, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32);
  EQUAL(GCAP_ORT_INT64, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  EQUAL(GCAP_ORT_STRING, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  EQUAL(GCAP_ORT_BOOL, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL);
  EQUAL(GCAP_ORT_FLOAT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16);
  EQUAL(GCAP_ORT_BFLOAT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16);
  EQUAL(GCAP_ORT_ATTR_INT, ORT_OP_ATTR_INT);
  EQUAL(GCAP_ORT_ATTR_INTS, ORT_OP_ATTR_INTS);
  EQUAL(GCAP_ORT_ATTR_FLOAT, ORT_OP_ATTR_FLOAT);
  EQUAL(GCAP_ORT_ATTR_FLOATS, ORT_OP_ATTR_FLOATS);
  EQUAL(GCAP_ORT_ATTR_STRING, ORT_OP_ATTR_STRING);
  EQUAL(GCAP_ORT_DEVICE_ALLOCATOR, OrtDeviceAllocator);
  EQUAL(GCAP_ORT_MEM_CPU_INPUT, OrtMemTypeCPUInput);
  EQUAL(GCAP_ORT_MEM_CPU_OUTPUT, OrtMemTypeCPUOutput);
  EQUAL(GCAP_ORT_MEM_DEFAULT, OrtMemTypeDefault);
  EQUAL(GCAP_ORT_MEMORY_DEFAULT, OrtDeviceMemoryType_DEFAULT);
  EQUAL(GCAP_ORT_MEMORY_HOST_ACCESSIBLE, OrtDeviceMemoryType_HOST_ACCESSIBLE);
  EQUAL(GCAP_ORT_DEVICE_CPU, OrtMemoryInfoDeviceType_CPU);
  EQUAL(GCAP_ORT_DEVICE_GPU, OrtMemoryInfoDeviceType_GPU);
  EQUAL(GCAP_ORT_HARDWARE_CPU, OrtHardwareDeviceType_CPU);
  EQUAL(GCAP_ORT_HARDWARE_GPU, OrtHardwareDeviceType_GPU);
  EQUAL(GCAP_ORT_SEQUENTIAL, ORT_SEQUENTIAL);
  EQUAL(GCAP_ORT_PARALLEL, ORT_PARALLEL);
  EQUAL(GCAP_ORT_ALL_NODES_ON_EP, OrtGraphCaptureNodeAssignmentPolicy_ALL_NODES_ON_EP);
  EQUAL(GCAP_ORT_ALLOW_CPU_FOR_SHAPES, OrtGraphCaptureNodeAssignmentPolicy_ALLOW_CPU_FOR_SHAPES);
  EQUAL(GCAP_ORT_EVENT_NODE, OrtProfilingEventCategory_NODE);
  EQUAL(GCAP_ORT_EVENT_KERNEL, OrtProfilingEventCategory_KERNEL);
  EQUAL(GCAP_ORT_EVENT_API, OrtProfilingEventCategory_API);
#ifdef GCAP_HAS_ORT_HEADERS
  return true;
#else
  return false;
#endif
}
