// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Kernels of the simulated libraries: their work, and how a program that sees it through the driver changes it.
//
// The idea: what a library's kernel does is in its payload, which is its only parameter. So who sets the parameter
// makes another task of the same kernel, whose accesses are asked for anew. Invariant: a kernel is in the list once.
// Locking: the global mutex.
#include "sim/device/library.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/thread.h"
#include "sim/device/extra.h"
#include "sim/stream/capture.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

// --- Kernels --------------------------------------------------------------------------------------------------------

// The libraries have some dozens.
typedef struct entry {
  gcap_sim_library_kernel_t kernel;
  struct entry* next;
} entry_t;

static entry_t* entries;

const gcap_sim_library_kernel_t* gcap_sim_library_kernel_find(const void* handle) {
  const entry_t* entry = entries;
  while (entry != NULL && (const void*)&entry->kernel != handle) entry = entry->next;
  return entry != NULL ? &entry->kernel : NULL;
}

static bool is_same(const gcap_sim_library_kernel_t* a, const gcap_sim_library_kernel_t* b) {
  return a->run == b->run && a->takes_buffer == b->takes_buffer && strcmp(a->name, b->name) == 0;
}

static const gcap_sim_library_kernel_t* keep(const gcap_sim_library_kernel_t* kernel) {
  entry_t* entry = entries;
  while (entry != NULL && !is_same(&entry->kernel, kernel)) entry = entry->next;
  if (entry == NULL) {
    entry = gcap_sim_calloc(1, sizeof(*entry));
    *entry = (entry_t){.kernel = *kernel, .next = entries};
    entries = entry;
  }
  return &entry->kernel;
}

// --- Tasks ----------------------------------------------------------------------------------------------------------

// A task without its accesses.
static gcap_sim_task_t* create(const gcap_sim_library_kernel_t* kernel, const void* payload) {
  gcap_sim_task_t* task = gcap_sim_task_create(GCAP_SIM_TASK_LIBRARY, kernel->name);
  task->u.library.kernel = kernel;
  if (kernel->takes_buffer) {
    gcap_sim_buffer_t copy = {.bytes = payload, .count = kernel->payload_bytes};
    task->u.library.extra = gcap_sim_extra_create(copy);
    (void)gcap_sim_extra_read(task->u.library.extra, &copy);
    task->u.library.payload = (void*)(uintptr_t)copy.bytes;
    return task;
  }
  const size_t alignment = _Alignof(max_align_t);
  char* block = gcap_sim_calloc(1, alignment + kernel->payload_bytes);
  task->u.library.args = (void**)block;
  task->u.library.args[0] = task->u.library.payload = block + alignment;
  memcpy(task->u.library.payload, payload, kernel->payload_bytes);
  return task;
}

cudaError_t gcap_sim_submit(cudaStream_t stream, const gcap_sim_work_t* work) {
  gcap_sim_lock();
  gcap_sim_task_t* task = create(keep(&work->kernel), work->payload);
  const size_t bytes = work->num_accesses * sizeof(*work->accesses);
  task->u.library.accesses = gcap_sim_calloc(1, bytes);
  if (bytes > 0) memcpy(task->u.library.accesses, work->accesses, bytes);
  task->u.library.num_accesses = work->num_accesses;
  cudaError_t code = gcap_sim_submit_task(gcap_sim_stream_get(stream), task);
  gcap_sim_unlock();
  return code;
}

// --- Through the driver ---------------------------------------------------------------------------------------------

// The shape of a launch is not modelled, as its threads are not.
static const dim3 kOne = {.x = 1, .y = 1, .z = 1};

static bool is_one(dim3 shape) { return shape.x == 1 && shape.y == 1 && shape.z == 1; }

// The parameter, in whatever way it is given; NULL when it is not.
static const void* payload_of(const gcap_sim_library_kernel_t* kernel, const struct cudaKernelNodeParams* params) {
  if ((params->kernelParams == NULL) == (params->extra == NULL)) return NULL;
  if (params->kernelParams != NULL) return params->kernelParams[0];
  gcap_sim_buffer_t buffer;
  bool ok = gcap_sim_extra_read(params->extra, &buffer) && buffer.count == kernel->payload_bytes;
  return ok ? buffer.bytes : NULL;
}

gcap_sim_task_t* gcap_sim_library_params_task(const gcap_sim_library_kernel_t* kernel,
                                              const struct cudaKernelNodeParams* params, cudaError_t* code) {
  if (!is_one(params->gridDim) || !is_one(params->blockDim) || params->sharedMemBytes != 0) {
    gcap_sim_die("%s: another shape for %s, a library's kernel, is not modelled", gcap_sim_thread()->call,
                 kernel->name);
  }
  const void* payload = payload_of(kernel, params);
  *code = payload != NULL ? cudaSuccess : cudaErrorInvalidValue;
  if (payload == NULL) return NULL;
  gcap_sim_task_t* task = create(kernel, payload);
  gcap_sim_access_list_t list = {0};
  kernel->describe(task->u.library.payload, &list);
  task->u.library.accesses = list.items;
  task->u.library.num_accesses = list.count;
  if (!list.out_of_memory) return task;
  *code = cudaErrorMemoryAllocation;
  gcap_sim_task_release(task);
  return NULL;
}

struct cudaKernelNodeParams gcap_sim_library_task_params(const gcap_sim_task_t* task) {
  return (struct cudaKernelNodeParams){.func = (void*)(uintptr_t)task->u.library.kernel,
                                       .gridDim = kOne,
                                       .blockDim = kOne,
                                       .kernelParams = task->u.library.args,
                                       .extra = task->u.library.extra};
}
