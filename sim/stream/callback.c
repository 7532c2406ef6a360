// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Stream callbacks, the older kind of host functions.
//
// The idea: a callback is a host function that is also told the stream and a status, so a small record carries these.
// No capture takes one. Locking: the global mutex; the callback runs without it.
#include <stdlib.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/heap.h"
#include "sim/stream/capture.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

typedef struct call {
  cudaStream_t stream;
  cudaStreamCallback_t callback;
  void* user_data;
} call_t;

static void run(void* data) {
  call_t call = *(call_t*)data;
  free(data);
  call.callback(call.stream, cudaSuccess, call.user_data);
}

static cudaError_t add(cudaStream_t handle, cudaStreamCallback_t callback, void* user_data, unsigned int flags) {
  if (callback == NULL || flags != 0) return cudaErrorInvalidValue;
  gcap_sim_stream_t* stream = gcap_sim_stream_get(handle);
  cudaError_t code = gcap_sim_gate_ordered(stream);
  if (code == cudaSuccess) code = gcap_sim_gate_not_capturing(stream);
  if (code != cudaSuccess) return code;
  call_t* call = gcap_sim_calloc(1, sizeof(*call));
  *call = (call_t){.stream = handle, .callback = callback, .user_data = user_data};
  gcap_sim_task_t* task = gcap_sim_task_create(GCAP_SIM_TASK_HOST, "stream callback");
  task->u.host.function = run;
  task->u.host.data = call;
  return gcap_sim_submit_task(stream, task);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                                  unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamAddCallback);
  if (code == cudaSuccess) code = add(stream, callback, userData, flags);
  return gcap_sim_leave(code);
}
