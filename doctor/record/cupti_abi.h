// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cupti_abi.h: what the recorder uses of CUPTI's binary interface, so that it builds without a toolkit and loads any
// CUPTI 12 or 13. test/doctor/record:abi_test compares all of it with a toolkit's headers.
#ifndef GCAP_DOCTOR_RECORD_CUPTI_ABI_H_
#define GCAP_DOCTOR_RECORD_CUPTI_ABI_H_

#include <stddef.h>
#include <stdint.h>

// CUptiResult
enum {
  GCAP_DOCTOR_CUPTI_SUCCESS = 0,
  GCAP_DOCTOR_CUPTI_INVALID_PARAMETER = 1,
  GCAP_DOCTOR_CUPTI_MAX_LIMIT_REACHED = 12,
  GCAP_DOCTOR_CUPTI_NOT_COMPATIBLE = 14,
  GCAP_DOCTOR_CUPTI_NOT_INITIALIZED = 15,
  GCAP_DOCTOR_CUPTI_NOT_SUPPORTED = 27,
  GCAP_DOCTOR_CUPTI_INSUFFICIENT_PRIVILEGES = 35,
  GCAP_DOCTOR_CUPTI_MULTIPLE_SUBSCRIBERS = 39,
};

// CUpti_CallbackDomain
enum {
  GCAP_DOCTOR_CUPTI_DRIVER = 1,
  GCAP_DOCTOR_CUPTI_RESOURCE = 3,
};

// CUpti_ApiCallbackSite
enum {
  GCAP_DOCTOR_CUPTI_ENTER = 0,
  GCAP_DOCTOR_CUPTI_EXIT = 1,
};

// CUpti_CallbackIdResource
enum {
  GCAP_DOCTOR_CUPTI_STREAM_CREATED = 3,
  GCAP_DOCTOR_CUPTI_STREAM_DESTROY = 4,
  GCAP_DOCTOR_CUPTI_GRAPH_CREATED = 9,
  GCAP_DOCTOR_CUPTI_GRAPH_DESTROY = 10,
  GCAP_DOCTOR_CUPTI_NODE_STARTS = 12,
  GCAP_DOCTOR_CUPTI_NODE_CREATED = 13,
  GCAP_DOCTOR_CUPTI_DEPENDENCY_CREATED = 15,
  GCAP_DOCTOR_CUPTI_EXEC_CREATED = 18,
  GCAP_DOCTOR_CUPTI_EXEC_DESTROY = 19,
  GCAP_DOCTOR_CUPTI_NODE_CLONED = 20,
};

// CUpti_CallbackData
typedef struct gcap_doctor_cupti_call {
  int32_t site;
  const char* function;
  const void* arguments;
  void* result;  // int*, at the exit alone
  const char* symbol;
  void* context;
  uint32_t context_id;
  uint64_t* correlation_data;
  uint32_t correlation;
} gcap_doctor_cupti_call_t;

// CUpti_ResourceData
typedef struct gcap_doctor_cupti_resource {
  void* context;
  void* stream;
  void* descriptor;
} gcap_doctor_cupti_resource_t;

// CUpti_GraphData
typedef struct gcap_doctor_cupti_graph {
  void* graph;
  void* original_graph;
  void* node;
  void* original_node;
  int32_t node_type;
  void* dependency;
  void* exec;
} gcap_doctor_cupti_graph_t;

// CUpti_ActivityKind
enum {
  GCAP_DOCTOR_CUPTI_KIND_MEMCPY = 1,
  GCAP_DOCTOR_CUPTI_KIND_MEMSET = 2,
  GCAP_DOCTOR_CUPTI_KIND_KERNEL = 10,
};

// Where the records of an activity have what is summed; the same in all of CUPTI 12 and 13.
enum {
  GCAP_DOCTOR_CUPTI_RECORD_START = 16,
  GCAP_DOCTOR_CUPTI_RECORD_END = 24,
  GCAP_DOCTOR_CUPTI_KERNEL_CORRELATION = 92,
  GCAP_DOCTOR_CUPTI_KERNEL_NODE = 144,
  GCAP_DOCTOR_CUPTI_KERNEL_GRAPH = 156,
  GCAP_DOCTOR_CUPTI_COPY_CORRELATION = 44,
  GCAP_DOCTOR_CUPTI_COPY_NODE = 64,
  GCAP_DOCTOR_CUPTI_COPY_GRAPH = 72,
};

// Where the driver's structures have what is recorded.
enum {
  GCAP_DOCTOR_CUDA_COPY_2D_FROM_TYPE = 16,
  GCAP_DOCTOR_CUDA_COPY_2D_FROM_HOST = 24,
  GCAP_DOCTOR_CUDA_COPY_2D_TO_TYPE = 72,
  GCAP_DOCTOR_CUDA_COPY_2D_TO_HOST = 80,
  GCAP_DOCTOR_CUDA_COPY_2D_WIDTH = 112,  // then the height
  GCAP_DOCTOR_CUDA_COPY_3D_FROM_TYPE = 32,
  GCAP_DOCTOR_CUDA_COPY_3D_FROM_HOST = 40,
  GCAP_DOCTOR_CUDA_COPY_3D_TO_TYPE = 120,
  GCAP_DOCTOR_CUDA_COPY_3D_TO_HOST = 128,
  GCAP_DOCTOR_CUDA_COPY_3D_WIDTH = 176,  // then the height and the depth
  GCAP_DOCTOR_CUDA_LAUNCH_CONFIG_STREAM = 32,
  GCAP_DOCTOR_CUDA_KERNEL_PARAMS = 40,  // of a kernel's node; the function is first
  GCAP_DOCTOR_CUDA_KERNEL_EXTRA = 48,
  GCAP_DOCTOR_CUDA_ALLOC_BYTES = 104,  // of an allocation's node
  GCAP_DOCTOR_CUDA_MEMORY_HOST = 1,    // CUmemorytype
  GCAP_DOCTOR_CUDA_MEMORY_DEVICE = 2,
  GCAP_DOCTOR_CUDA_MEMORY_ARRAY = 3,
  GCAP_DOCTOR_CUDA_STREAM_NON_BLOCKING = 1,
};

typedef struct gcap_doctor_cupti_subscriber gcap_doctor_cupti_subscriber_t;
typedef void (*gcap_doctor_cupti_callback_t)(void* user, int32_t domain, uint32_t id, const void* data);
typedef void (*gcap_doctor_cupti_buffer_wanted_t)(uint8_t** out_buffer, size_t* out_size, size_t* out_max_records);
typedef void (*gcap_doctor_cupti_buffer_filled_t)(void* context, uint32_t stream, uint8_t* buffer, size_t size,
                                                  size_t valid);

#endif  // GCAP_DOCTOR_RECORD_CUPTI_ABI_H_
