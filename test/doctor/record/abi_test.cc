// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the recorder has of CUPTI's and the driver's binary interfaces, against a toolkit's headers: numbers, offsets,
// sizes. The table of calls is of CUDA 13.0, so older headers lack some of it.
#include <gtest/gtest.h>
#include <stddef.h>
#include <string.h>

#include <string>

#if __has_include(<cupti.h>)
#include <cuda.h>
#include <cupti.h>
#if CUDA_VERSION >= 13000
#define GCAP_HAS_CUPTI
#endif
#endif

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define GCAP_HAS_NVTX
#endif

#include "doctor/record/cupti_abi.h"
#include "doctor/record/nvtx_abi.h"

namespace {

#ifndef GCAP_HAS_CUPTI

TEST(CuptiAbi, EqualsTheToolkits) { GTEST_SKIP() << "the toolkit has no cupti.h of CUDA 13.0 or later"; }

#else

struct Number {
  const char* name;
  unsigned long long ours, real;
};

template <size_t kCount>
void ExpectEqual(const Number (&numbers)[kCount]) {
  for (const Number& number : numbers) EXPECT_EQ(number.ours, number.real) << number.name;
}

#define FIELD(ours, field, real, real_field)                                       \
  {#real "." #real_field, offsetof(ours, field), offsetof(real, real_field)}, {    \
    "sizeof " #real "." #real_field, sizeof(ours::field), sizeof(real::real_field) \
  }

TEST(DriverCalls, NumbersAndOffsetsEqualTheToolkits) {
  const Number numbers[] = {
#define DRIVER_ROLE(number, name, role) {#name, number, CUPTI_DRIVER_TRACE_CBID_##name},
#define DRIVER_ARGUMENT(number, name, kind, field, offset) \
  {#name, number, CUPTI_DRIVER_TRACE_CBID_##name}, {#name "." #field, offset, offsetof(name##_params, field)},
#include "doctor/record/driver_calls.inc"
#undef DRIVER_ROLE
#undef DRIVER_ARGUMENT
#define MEMORY_CALL(number, name, does, what) {#name, number, CUPTI_DRIVER_TRACE_CBID_##name},
#define MEMORY_ARGUMENT(number, name, kind, field, offset) {#name "." #field, offset, offsetof(name##_params, field)},
#include "doctor/record/memory_calls.inc"
#undef MEMORY_CALL
#undef MEMORY_ARGUMENT
  };
  ExpectEqual(numbers);
  // An offset is kept in a byte, with one added.
  for (const Number& number : numbers)
    EXPECT_LT(strchr(number.name, '.') != nullptr ? number.ours : 0, 255u) << number.name;
}

TEST(DriverCalls, ArgumentsHaveTheSizesThatAreRead) {
  const struct {
    const char* name;
    const char* kind;
    size_t bytes;
  } arguments[] = {
#define DRIVER_ROLE(number, name, role)
#define DRIVER_ARGUMENT(number, name, kind, field, offset) {#name "." #field, #kind, sizeof(name##_params::field)},
#include "doctor/record/driver_calls.inc"
#undef DRIVER_ROLE
#undef DRIVER_ARGUMENT
  };
  for (const auto& argument : arguments) {
    const std::string kind = argument.kind;
    EXPECT_EQ(argument.bytes, kind == "MODE" || kind == "FLAGS" ? 4u : 8u) << argument.name;
  }
}

TEST(DriverCalls, OfTheToolkitHaveRoom) { EXPECT_LE(CUPTI_DRIVER_TRACE_CBID_SIZE, 1024); }

TEST(CuptiAbi, ConstantsEqualTheToolkits) {
  const Number numbers[] = {
      {"SUCCESS", GCAP_DOCTOR_CUPTI_SUCCESS, CUPTI_SUCCESS},
      {"INVALID_PARAMETER", GCAP_DOCTOR_CUPTI_INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER},
      {"MAX_LIMIT_REACHED", GCAP_DOCTOR_CUPTI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED},
      {"NOT_COMPATIBLE", GCAP_DOCTOR_CUPTI_NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE},
      {"NOT_INITIALIZED", GCAP_DOCTOR_CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED},
      {"NOT_SUPPORTED", GCAP_DOCTOR_CUPTI_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED},
      {"INSUFFICIENT_PRIVILEGES", GCAP_DOCTOR_CUPTI_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES},
      {"MULTIPLE_SUBSCRIBERS", GCAP_DOCTOR_CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED},
      {"DRIVER", GCAP_DOCTOR_CUPTI_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API},
      {"RESOURCE", GCAP_DOCTOR_CUPTI_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE},
      {"ENTER", GCAP_DOCTOR_CUPTI_ENTER, CUPTI_API_ENTER},
      {"EXIT", GCAP_DOCTOR_CUPTI_EXIT, CUPTI_API_EXIT},
      {"STREAM_CREATED", GCAP_DOCTOR_CUPTI_STREAM_CREATED, CUPTI_CBID_RESOURCE_STREAM_CREATED},
      {"STREAM_DESTROY", GCAP_DOCTOR_CUPTI_STREAM_DESTROY, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING},
      {"GRAPH_CREATED", GCAP_DOCTOR_CUPTI_GRAPH_CREATED, CUPTI_CBID_RESOURCE_GRAPH_CREATED},
      {"GRAPH_DESTROY", GCAP_DOCTOR_CUPTI_GRAPH_DESTROY, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING},
      {"NODE_STARTS", GCAP_DOCTOR_CUPTI_NODE_STARTS, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING},
      {"NODE_CREATED", GCAP_DOCTOR_CUPTI_NODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED},
      {"DEPENDENCY_CREATED", GCAP_DOCTOR_CUPTI_DEPENDENCY_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED},
      {"EXEC_CREATED", GCAP_DOCTOR_CUPTI_EXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED},
      {"EXEC_DESTROY", GCAP_DOCTOR_CUPTI_EXEC_DESTROY, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING},
      {"NODE_CLONED", GCAP_DOCTOR_CUPTI_NODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED},
      {"KIND_MEMCPY", GCAP_DOCTOR_CUPTI_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY},
      {"KIND_MEMSET", GCAP_DOCTOR_CUPTI_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET},
      {"KIND_KERNEL", GCAP_DOCTOR_CUPTI_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL},
      {"MEMORY_HOST", GCAP_DOCTOR_CUDA_MEMORY_HOST, CU_MEMORYTYPE_HOST},
      {"MEMORY_DEVICE", GCAP_DOCTOR_CUDA_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE},
      {"MEMORY_ARRAY", GCAP_DOCTOR_CUDA_MEMORY_ARRAY, CU_MEMORYTYPE_ARRAY},
      {"STREAM_NON_BLOCKING", GCAP_DOCTOR_CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING},
  };
  ExpectEqual(numbers);
}

TEST(CuptiAbi, DataOfCallbacksIsThatOfTheToolkit) {
  const Number numbers[] = {
      FIELD(gcap_doctor_cupti_call_t, site, CUpti_CallbackData, callbackSite),
      FIELD(gcap_doctor_cupti_call_t, function, CUpti_CallbackData, functionName),
      FIELD(gcap_doctor_cupti_call_t, arguments, CUpti_CallbackData, functionParams),
      FIELD(gcap_doctor_cupti_call_t, result, CUpti_CallbackData, functionReturnValue),
      FIELD(gcap_doctor_cupti_call_t, symbol, CUpti_CallbackData, symbolName),
      FIELD(gcap_doctor_cupti_call_t, context, CUpti_CallbackData, context),
      FIELD(gcap_doctor_cupti_call_t, context_id, CUpti_CallbackData, contextUid),
      FIELD(gcap_doctor_cupti_call_t, correlation_data, CUpti_CallbackData, correlationData),
      FIELD(gcap_doctor_cupti_call_t, correlation, CUpti_CallbackData, correlationId),
      FIELD(gcap_doctor_cupti_resource_t, context, CUpti_ResourceData, context),
      FIELD(gcap_doctor_cupti_resource_t, stream, CUpti_ResourceData, resourceHandle.stream),
      FIELD(gcap_doctor_cupti_resource_t, descriptor, CUpti_ResourceData, resourceDescriptor),
      FIELD(gcap_doctor_cupti_graph_t, graph, CUpti_GraphData, graph),
      FIELD(gcap_doctor_cupti_graph_t, original_graph, CUpti_GraphData, originalGraph),
      FIELD(gcap_doctor_cupti_graph_t, node, CUpti_GraphData, node),
      FIELD(gcap_doctor_cupti_graph_t, original_node, CUpti_GraphData, originalNode),
      FIELD(gcap_doctor_cupti_graph_t, node_type, CUpti_GraphData, nodeType),
      FIELD(gcap_doctor_cupti_graph_t, dependency, CUpti_GraphData, dependency),
      FIELD(gcap_doctor_cupti_graph_t, exec, CUpti_GraphData, graphExec),
  };
  ExpectEqual(numbers);
}

#define RECORD(ours, real, field) \
  { #real "." #field, ours, offsetof(real, field) }

// Records have the kernels' layout of the CUPTI that is loaded, so those before the newest count too.
TEST(CuptiAbi, RecordsOfActivityAreThoseOfTheToolkit) {
  const Number numbers[] = {
#define KERNEL(real)                                                                                    \
  RECORD(GCAP_DOCTOR_CUPTI_RECORD_START, real, start), RECORD(GCAP_DOCTOR_CUPTI_RECORD_END, real, end), \
      RECORD(GCAP_DOCTOR_CUPTI_KERNEL_CORRELATION, real, correlationId),                                \
      RECORD(GCAP_DOCTOR_CUPTI_KERNEL_NODE, real, graphNodeId), RECORD(GCAP_DOCTOR_CUPTI_KERNEL_GRAPH, real, graphId)
#define COPY(real)                                                                                      \
  RECORD(GCAP_DOCTOR_CUPTI_RECORD_START, real, start), RECORD(GCAP_DOCTOR_CUPTI_RECORD_END, real, end), \
      RECORD(GCAP_DOCTOR_CUPTI_COPY_CORRELATION, real, correlationId),                                  \
      RECORD(GCAP_DOCTOR_CUPTI_COPY_NODE, real, graphNodeId), RECORD(GCAP_DOCTOR_CUPTI_COPY_GRAPH, real, graphId)
      KERNEL(CUpti_ActivityKernel8), KERNEL(CUpti_ActivityKernel9), KERNEL(CUpti_ActivityKernel10),
      COPY(CUpti_ActivityMemcpy5),   COPY(CUpti_ActivityMemcpy6),   COPY(CUpti_ActivityMemset4),
  };
  ExpectEqual(numbers);
}

TEST(CuptiAbi, DriversStructuresAreThoseOfTheToolkit) {
  const Number numbers[] = {
      RECORD(GCAP_DOCTOR_CUDA_COPY_2D_FROM_TYPE, CUDA_MEMCPY2D, srcMemoryType),
      RECORD(GCAP_DOCTOR_CUDA_COPY_2D_FROM_HOST, CUDA_MEMCPY2D, srcHost),
      RECORD(GCAP_DOCTOR_CUDA_COPY_2D_TO_TYPE, CUDA_MEMCPY2D, dstMemoryType),
      RECORD(GCAP_DOCTOR_CUDA_COPY_2D_TO_HOST, CUDA_MEMCPY2D, dstHost),
      RECORD(GCAP_DOCTOR_CUDA_COPY_2D_WIDTH, CUDA_MEMCPY2D, WidthInBytes),
      RECORD(GCAP_DOCTOR_CUDA_COPY_2D_WIDTH + 8, CUDA_MEMCPY2D, Height),
#define COPY_3D(real)                                                \
  RECORD(GCAP_DOCTOR_CUDA_COPY_3D_FROM_TYPE, real, srcMemoryType),   \
      RECORD(GCAP_DOCTOR_CUDA_COPY_3D_FROM_HOST, real, srcHost),     \
      RECORD(GCAP_DOCTOR_CUDA_COPY_3D_TO_TYPE, real, dstMemoryType), \
      RECORD(GCAP_DOCTOR_CUDA_COPY_3D_TO_HOST, real, dstHost),       \
      RECORD(GCAP_DOCTOR_CUDA_COPY_3D_WIDTH, real, WidthInBytes),    \
      RECORD(GCAP_DOCTOR_CUDA_COPY_3D_WIDTH + 8, real, Height),      \
      RECORD(GCAP_DOCTOR_CUDA_COPY_3D_WIDTH + 16, real, Depth)
      COPY_3D(CUDA_MEMCPY3D),
      COPY_3D(CUDA_MEMCPY3D_PEER),
      RECORD(GCAP_DOCTOR_CUDA_LAUNCH_CONFIG_STREAM, CUlaunchConfig, hStream),
      RECORD(GCAP_DOCTOR_CUDA_KERNEL_PARAMS, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams),
      RECORD(GCAP_DOCTOR_CUDA_KERNEL_EXTRA, CUDA_KERNEL_NODE_PARAMS_v2, extra),
      RECORD(GCAP_DOCTOR_CUDA_KERNEL_PARAMS, CUDA_KERNEL_NODE_PARAMS, kernelParams),
      RECORD(GCAP_DOCTOR_CUDA_ALLOC_BYTES, CUDA_MEM_ALLOC_NODE_PARAMS, bytesize),
      {"a kernel's function is first", 0, offsetof(CUDA_KERNEL_NODE_PARAMS_v2, func)},
      {"a memset's address is first", 0, offsetof(CUDA_MEMSET_NODE_PARAMS, dst)},
      {"an address of a device is behind that of the host", GCAP_DOCTOR_CUDA_COPY_3D_FROM_HOST + 8,
       offsetof(CUDA_MEMCPY3D, srcDevice)},
      {"and so in the other side", GCAP_DOCTOR_CUDA_COPY_3D_TO_HOST + 8, offsetof(CUDA_MEMCPY3D, dstDevice)},
      {"unified memory", 4, CU_MEMORYTYPE_UNIFIED},
      {"an update's result is first", 0, offsetof(CUgraphExecUpdateResultInfo, result)},
  };
  ExpectEqual(numbers);
}

// The words of a node's type, of an update's result and of a capture's state are in the order of the enums.
TEST(CuptiAbi, WordsAreInTheOrderOfTheEnums) {
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_KERNEL, 0);
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_MEMCPY, 1);
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_MEMSET, 2);
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_HOST, 3);
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_GRAPH, 4);
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_EMPTY, 5);
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_WAIT_EVENT, 6);
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_EVENT_RECORD, 7);
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_MEM_ALLOC, 10);
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_MEM_FREE, 11);
  EXPECT_EQ(CU_STREAM_CAPTURE_MODE_GLOBAL, 0);
  EXPECT_EQ(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1);
  EXPECT_EQ(CU_STREAM_CAPTURE_MODE_RELAXED, 2);
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, 0);
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1);
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2);
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR, 1);
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, 2);
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, 3);
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED, 4);
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, 5);
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, 6);
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE, 7);
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, 8);
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908);
  EXPECT_EQ(CUDA_ERROR_NOT_READY, 600);
}

#endif

#if defined(GCAP_HAS_CUPTI) && defined(GCAP_HAS_NVTX)

TEST(NvtxAbi, EqualsTheToolkits) {
  const Number numbers[] = {
      {"CALLBACKS", GCAP_DOCTOR_NVTX_CALLBACKS, NVTX_ETID_CALLBACKS},
      {"CORE", GCAP_DOCTOR_NVTX_CORE, NVTX_CB_MODULE_CORE},
      {"CORE2", GCAP_DOCTOR_NVTX_CORE2, NVTX_CB_MODULE_CORE2},
      {"PUSH_EX", GCAP_DOCTOR_NVTX_PUSH_EX, NVTX_CBID_CORE_RangePushEx},
      {"PUSH_A", GCAP_DOCTOR_NVTX_PUSH_A, NVTX_CBID_CORE_RangePushA},
      {"PUSH_W", GCAP_DOCTOR_NVTX_PUSH_W, NVTX_CBID_CORE_RangePushW},
      {"POP", GCAP_DOCTOR_NVTX_POP, NVTX_CBID_CORE_RangePop},
      {"DOMAIN_PUSH_EX", GCAP_DOCTOR_NVTX_DOMAIN_PUSH_EX, NVTX_CBID_CORE2_DomainRangePushEx},
      {"DOMAIN_POP", GCAP_DOCTOR_NVTX_DOMAIN_POP, NVTX_CBID_CORE2_DomainRangePop},
      {"REGISTER_A", GCAP_DOCTOR_NVTX_REGISTER_A, NVTX_CBID_CORE2_DomainRegisterStringA},
      {"REGISTER_W", GCAP_DOCTOR_NVTX_REGISTER_W, NVTX_CBID_CORE2_DomainRegisterStringW},
      {"MESSAGE_A", GCAP_DOCTOR_NVTX_MESSAGE_A, NVTX_MESSAGE_TYPE_ASCII},
      {"MESSAGE_W", GCAP_DOCTOR_NVTX_MESSAGE_W, NVTX_MESSAGE_TYPE_UNICODE},
      {"MESSAGE_REGISTERED", GCAP_DOCTOR_NVTX_MESSAGE_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED},
      FIELD(gcap_doctor_nvtx_attributes_t, message_type, nvtxEventAttributes_t, messageType),
      FIELD(gcap_doctor_nvtx_attributes_t, message, nvtxEventAttributes_t, message),
      FIELD(gcap_doctor_nvtx_callbacks_t, struct_size, NvtxExportTableCallbacks, struct_size),
      FIELD(gcap_doctor_nvtx_callbacks_t, GetModuleFunctionTable, NvtxExportTableCallbacks, GetModuleFunctionTable),
  };
  ExpectEqual(numbers);
}

// The recorder's declaration, of which driver_log.c has no header's.
TEST(DriverLogAbi, IsThatOfTheToolkit) {
  static_assert(sizeof(CUlogLevel) == sizeof(int) && sizeof(CUlogsCallbackHandle) == sizeof(void*), "");
  using Callback = void (*)(void*, CUlogLevel, char*, size_t);
  const CUlogsCallback callback = static_cast<Callback>(nullptr);
  EXPECT_EQ(callback, nullptr);
}

#endif

}  // namespace
