// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// types.h: the types of ONNX Runtime's C API that gcap uses, in gcap's own declarations: the official headers come in
// no package that a build could rely on. test/ort/abi compares all of ort/abi with them where they are, and reads these
// headers for that: test/ort/abi/pairs.txt says what is whose.
#ifndef GCAP_ORT_ABI_TYPES_H_
#define GCAP_ORT_ABI_TYPES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The versions of the C API: 26 is that of ONNX Runtime 1.26. The oldest is the first that asks a plugin for graphs.
#define GCAP_ORT_OLDEST_VERSION 26u
#define GCAP_ORT_NEWEST_VERSION 32u
// The first versions that have ...
#define GCAP_ORT_VERSION_SYNC_AFTER_REPLAY 27u  // a Sync of the EP after a replay, unless the run is not to wait
#define GCAP_ORT_VERSION_TRUE_STREAMS 29u       // streams of ours in every AllocOnStream; before, any address may come

// Opaque objects of the runtime: OrtStatus and so on.
typedef struct gcap_ort_status gcap_ort_status_t;
typedef struct gcap_ort_env gcap_ort_env_t;
typedef struct gcap_ort_session gcap_ort_session_t;
typedef struct gcap_ort_session_options gcap_ort_session_options_t;
typedef struct gcap_ort_run_options gcap_ort_run_options_t;
typedef struct gcap_ort_io_binding gcap_ort_io_binding_t;
typedef struct gcap_ort_value gcap_ort_value_t;
typedef struct gcap_ort_memory_info gcap_ort_memory_info_t;
typedef struct gcap_ort_memory_device gcap_ort_memory_device_t;
typedef struct gcap_ort_type_info gcap_ort_type_info_t;
typedef struct gcap_ort_tensor_info gcap_ort_tensor_info_t;  // OrtTensorTypeAndShapeInfo
typedef struct gcap_ort_key_values gcap_ort_key_values_t;    // OrtKeyValuePairs
typedef struct gcap_ort_logger gcap_ort_logger_t;
typedef struct gcap_ort_hardware_device gcap_ort_hardware_device_t;
typedef struct gcap_ort_ep_device gcap_ort_ep_device_t;
typedef struct gcap_ort_graph gcap_ort_graph_t;
typedef struct gcap_ort_graph_support gcap_ort_graph_support_t;  // OrtEpGraphSupportInfo
typedef struct gcap_ort_node gcap_ort_node_t;
typedef struct gcap_ort_op_attr gcap_ort_op_attr_t;
typedef struct gcap_ort_value_info gcap_ort_value_info_t;
typedef struct gcap_ort_kernel_info gcap_ort_kernel_info_t;
typedef struct gcap_ort_kernel_context gcap_ort_kernel_context_t;
typedef struct gcap_ort_kernel_registry gcap_ort_kernel_registry_t;
typedef struct gcap_ort_kernel_def gcap_ort_kernel_def_t;
typedef struct gcap_ort_kernel_def_builder gcap_ort_kernel_def_builder_t;
typedef struct gcap_ort_sync_stream gcap_ort_sync_stream_t;
typedef struct gcap_ort_profiling_event gcap_ort_profiling_event_t;
typedef struct gcap_ort_profiling_events gcap_ort_profiling_events_t;  // OrtProfilingEventsContainer

typedef enum gcap_ort_error_code {  // OrtErrorCode
  GCAP_ORT_OK = 0,
  GCAP_ORT_FAIL = 1,
  GCAP_ORT_INVALID_ARGUMENT = 2,
  GCAP_ORT_NOT_IMPLEMENTED = 9,
  GCAP_ORT_EP_FAIL = 11,
} gcap_ort_error_code_t;

typedef enum gcap_ort_logging_level {  // OrtLoggingLevel
  GCAP_ORT_LOG_VERBOSE = 0,
  GCAP_ORT_LOG_INFO,
  GCAP_ORT_LOG_WARNING,
  GCAP_ORT_LOG_ERROR,
  GCAP_ORT_LOG_FATAL,
} gcap_ort_logging_level_t;

typedef enum gcap_ort_element_type {  // ONNXTensorElementDataType
  GCAP_ORT_UNDEFINED = 0,
  GCAP_ORT_FLOAT = 1,
  GCAP_ORT_UINT8 = 2,
  GCAP_ORT_INT8 = 3,
  GCAP_ORT_INT32 = 6,
  GCAP_ORT_INT64 = 7,
  GCAP_ORT_STRING = 8,
  GCAP_ORT_BOOL = 9,
  GCAP_ORT_FLOAT16 = 10,
  GCAP_ORT_BFLOAT16 = 16,
} gcap_ort_element_type_t;

typedef enum gcap_ort_attr_type {  // OrtOpAttrType
  GCAP_ORT_ATTR_UNDEFINED = 0,
  GCAP_ORT_ATTR_INT,
  GCAP_ORT_ATTR_INTS,
  GCAP_ORT_ATTR_FLOAT,
  GCAP_ORT_ATTR_FLOATS,
  GCAP_ORT_ATTR_STRING,
  GCAP_ORT_ATTR_STRINGS,
  GCAP_ORT_ATTR_TENSOR = 8,
} gcap_ort_attr_type_t;

typedef enum gcap_ort_allocator_type {  // OrtAllocatorType
  GCAP_ORT_DEVICE_ALLOCATOR = 0,
} gcap_ort_allocator_type_t;

typedef enum gcap_ort_mem_type {  // OrtMemType
  GCAP_ORT_MEM_CPU_INPUT = -2,
  GCAP_ORT_MEM_CPU_OUTPUT = -1,
  GCAP_ORT_MEM_DEFAULT = 0,
} gcap_ort_mem_type_t;

typedef enum gcap_ort_device_memory {  // OrtDeviceMemoryType
  GCAP_ORT_MEMORY_DEFAULT = 0,
  GCAP_ORT_MEMORY_HOST_ACCESSIBLE = 5,
} gcap_ort_device_memory_t;

typedef enum gcap_ort_device_type {  // OrtMemoryInfoDeviceType
  GCAP_ORT_DEVICE_CPU = 0,
  GCAP_ORT_DEVICE_GPU = 1,
} gcap_ort_device_type_t;

typedef enum gcap_ort_hardware_type {  // OrtHardwareDeviceType
  GCAP_ORT_HARDWARE_CPU = 0,
  GCAP_ORT_HARDWARE_GPU = 1,
} gcap_ort_hardware_type_t;

typedef enum gcap_ort_execution_mode {  // ExecutionMode
  GCAP_ORT_SEQUENTIAL = 0,
  GCAP_ORT_PARALLEL = 1,
} gcap_ort_execution_mode_t;

typedef enum gcap_ort_node_policy {  // OrtGraphCaptureNodeAssignmentPolicy
  GCAP_ORT_ALL_NODES_ON_EP = 0,
  GCAP_ORT_ALLOW_CPU_FOR_SHAPES = 1,
} gcap_ort_node_policy_t;

typedef enum gcap_ort_event_category {  // OrtProfilingEventCategory
  GCAP_ORT_EVENT_SESSION = 0,
  GCAP_ORT_EVENT_NODE = 1,
  GCAP_ORT_EVENT_KERNEL = 2,
  GCAP_ORT_EVENT_API = 3,
} gcap_ort_event_category_t;

#endif  // GCAP_ORT_ABI_TYPES_H_
