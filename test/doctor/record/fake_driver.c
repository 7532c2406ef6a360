// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The functions of the driver that tell of graphs. Each answers from what its handle points to.
#include "test/doctor/record/fake_driver.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { kSuccess = 0, kInvalidValue = 1 };

static _Atomic size_t num_calls;

EXPORT size_t fake_driver_num_calls(void) { return num_calls; }

EXPORT int cuGraphGetNodes(void* graph, void** nodes, size_t* count);
EXPORT int cuGraphGetNodes(void* graph, void** nodes, size_t* count) {
  ++num_calls;
  const fake_driver_graph_t* of = graph;
  if (nodes == NULL) {
    *count = of->count;
    return kSuccess;
  }
  for (size_t i = 0; i < *count && i < of->count; ++i) nodes[i] = of->nodes[i];
  return kSuccess;
}

EXPORT int cuGraphNodeGetType(void* node, int* type);
EXPORT int cuGraphNodeGetType(void* node, int* type) {
  ++num_calls;
  *type = ((const fake_driver_node_t*)node)->type;
  return kSuccess;
}

static int describe(const void* node, void* about, size_t bytes) {
  ++num_calls;
  memcpy(about, ((const fake_driver_node_t*)node)->about, bytes);
  return kSuccess;
}

EXPORT int cuGraphKernelNodeGetParams_v2(void* node, void* about);
EXPORT int cuGraphKernelNodeGetParams_v2(void* node, void* about) { return describe(node, about, 72); }

EXPORT int cuGraphMemcpyNodeGetParams(void* node, void* about);
EXPORT int cuGraphMemcpyNodeGetParams(void* node, void* about) { return describe(node, about, 200); }

EXPORT int cuGraphMemsetNodeGetParams(void* node, void* about);
EXPORT int cuGraphMemsetNodeGetParams(void* node, void* about) { return describe(node, about, 40); }

EXPORT int cuGraphMemAllocNodeGetParams(void* node, void* about);
EXPORT int cuGraphMemAllocNodeGetParams(void* node, void* about) { return describe(node, about, 120); }

EXPORT int cuGraphChildGraphNodeGetGraph(void* node, void** graph);
EXPORT int cuGraphChildGraphNodeGetGraph(void* node, void** graph) {
  ++num_calls;
  *graph = ((const fake_driver_node_t*)node)->child;
  return kSuccess;
}

EXPORT int cuFuncGetParamInfo(void* function, size_t index, size_t* offset, size_t* bytes);
EXPORT int cuFuncGetParamInfo(void* function, size_t index, size_t* offset, size_t* bytes) {
  ++num_calls;
  const fake_driver_function_t* of = function;
  if (index >= of->num_params) return kInvalidValue;
  *offset = of->offsets[index];
  *bytes = of->sizes[index];
  return kSuccess;
}

EXPORT int cuFuncGetName(const char** name, void* function);
EXPORT int cuFuncGetName(const char** name, void* function) {
  ++num_calls;
  *name = ((const fake_driver_function_t*)function)->name;
  return kSuccess;
}

// --- The log ---------------------------------------------------------------------------------------------------------

static void (*log_callback)(void* user, int level, char* message, size_t length);
static void* log_user;

EXPORT int cuLogsRegisterCallback(void (*callback)(void*, int, char*, size_t), void* user, void** out_handle);
EXPORT int cuLogsRegisterCallback(void (*callback)(void*, int, char*, size_t), void* user, void** out_handle) {
  if (callback == NULL || log_callback != NULL) return kInvalidValue;
  log_callback = callback;
  log_user = user;
  if (out_handle != NULL) *out_handle = &log_callback;
  return kSuccess;
}

EXPORT int fake_driver_log(int level, const char* message) {
  char text[2048];
  if (log_callback == NULL) return 0;
  strncpy(text, message, sizeof(text) - 1);
  text[sizeof(text) - 1] = '\0';
  log_callback(log_user, level, text, strlen(text));
  return 1;
}
