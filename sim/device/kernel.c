// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Kernels and host functions: their tasks, function attributes.
//
// The idea: a launch copies the arguments, as CUDA does, so the caller's variables may change at once. Locking: the
// global mutex.
#include "sim/device/kernel.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "sim/api/api.h"
#include "sim/api/log.h"
#include "sim/api/submit.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/thread.h"
#include "sim/check/origin.h"
#include "sim/device/extra.h"
#include "sim/device/properties.h"
#include "sim/device/twin.h"
#include "sim/stream/capture.h"
#include "sim/stream/rules.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

// What a function that is no kernel earns, as measured.
static cudaError_t missing(const void* function) {
  return function != NULL ? cudaErrorInvalidResourceHandle : cudaErrorInvalidDeviceFunction;
}

cudaError_t gcap_sim_kernel_max_shared(const void* function, size_t* out) {
  gcap_sim_twin_t* twin = gcap_sim_twin_find(function);
  if (twin == NULL) return missing(function);
  *out = gcap_sim_twin_max_shared(twin);
  return cudaSuccess;
}

gcap_sim_needs_t gcap_sim_kernel_needs(const void* function) {
  gcap_sim_twin_t* twin = gcap_sim_twin_find(function);
  return twin != NULL ? gcap_sim_twin_needs(twin) : (gcap_sim_needs_t){0};
}

static size_t max_threads(gcap_sim_twin_t* twin) {
  const size_t bound = gcap_sim_twin_needs(twin).max_threads;
  return bound != 0 && bound < GCAP_SIM_MAX_THREADS ? bound : GCAP_SIM_MAX_THREADS;
}

static bool can_run(gcap_sim_twin_t* twin, dim3 grid, dim3 block, size_t shared_bytes) {
  if (grid.x < 1 || grid.y < 1 || grid.z < 1 || block.x < 1 || block.y < 1 || block.z < 1) return false;
  if (grid.x > GCAP_SIM_MAX_GRID_X || grid.y > GCAP_SIM_MAX_GRID_YZ || grid.z > GCAP_SIM_MAX_GRID_YZ) return false;
  if (block.x > GCAP_SIM_MAX_BLOCK_X || block.y > GCAP_SIM_MAX_BLOCK_Y || block.z > GCAP_SIM_MAX_BLOCK_Z) return false;
  if ((uint64_t)block.x * block.y * block.z > max_threads(twin)) return false;
  return shared_bytes <= gcap_sim_twin_max_shared(twin);
}

// One block: the array of pointers, then the copies, each aligned for any type. An argument of a kernel without a twin
// whose size nobody knows has no copy: its pointer is NULL.
static void** copy_args(const gcap_sim_kernel_t* kernel, void** args) {
  size_t alignment = _Alignof(max_align_t);
  size_t bytes = (kernel->num_args * sizeof(void*) + alignment - 1) / alignment * alignment;
  size_t total = bytes;
  for (size_t i = 0; i < kernel->num_args; ++i) {
    total += (kernel->arg_bytes[i] + alignment - 1) / alignment * alignment;
  }
  char* block = gcap_sim_calloc(1, total);
  void** pointers = (void**)block;
  for (size_t i = 0; i < kernel->num_args; ++i) {
    if (kernel->arg_bytes[i] == 0 && kernel->run == NULL) continue;
    if (args[i] == NULL) gcap_sim_die("%s: argument %zu of %s is NULL", gcap_sim_thread()->call, i, kernel->name);
    pointers[i] = block + bytes;
    memcpy(pointers[i], args[i], kernel->arg_bytes[i]);
    bytes += (kernel->arg_bytes[i] + alignment - 1) / alignment * alignment;
  }
  return pointers;
}

// The clusters of a launch that asks for none.
static dim3 cluster_without(const gcap_sim_twin_t* twin) {
  const int* required = twin->required_cluster;
  if (!gcap_sim_requires_cluster(twin)) return (dim3){.x = 1, .y = 1, .z = 1};
  return (dim3){.x = (unsigned int)required[0], .y = (unsigned int)required[1], .z = (unsigned int)required[2]};
}

gcap_sim_task_t* gcap_sim_kernel_task(const void* function, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                                      cudaError_t* code) {
  gcap_sim_twin_t* twin = gcap_sim_twin_find(function);
  *code = missing(function);
  if (twin == NULL) return NULL;
  gcap_sim_twin_prepare(twin);
  *code = gcap_sim_rule_code(GCAP_SIM_RULE_BAD_LAUNCH);
  if (!can_run(twin, grid, block, shared_bytes)) return NULL;
  if (args == NULL && twin->kernel.num_args) return NULL;
  gcap_sim_note_argument("kernel %s", twin->kernel.name);
  *code = cudaSuccess;
  gcap_sim_task_t* task = gcap_sim_task_create(GCAP_SIM_TASK_KERNEL, twin->kernel.name);
  task->u.kernel.twin = twin;
  task->u.kernel.launch = (gcap_sim_launch_t){.grid = grid,
                                              .block = block,
                                              .shared_bytes = shared_bytes,
                                              .cluster = cluster_without(twin),
                                              .device = gcap_sim_thread()->device};
  task->u.kernel.args = copy_args(&twin->kernel, args);
  return task;
}

// Parameters lie one behind the other, each at a multiple of its alignment. A twin tells of sizes alone: the largest
// power of two in a size, up to 8, is what is aligned to, as most types are.
static size_t place_of(const gcap_sim_kernel_t* kernel, size_t index) {
  size_t at = 0;
  for (size_t i = 0; i <= index; ++i) {
    const size_t bytes = kernel->arg_bytes[i], lowest = bytes & (~bytes + 1);
    const size_t alignment = lowest == 0 ? 1 : lowest < 8 ? lowest : 8;
    at = (at + alignment - 1) / alignment * alignment;
    if (i < index) at += bytes;
  }
  return at;
}

static size_t offset_of(const gcap_sim_twin_t* twin, size_t index) {
  const size_t* offsets = twin->signature != NULL ? twin->signature->offsets : NULL;
  return offsets != NULL ? offsets[index] : place_of(&twin->kernel, index);
}

// Where each argument lies in the buffer: a block.
static void** find_args(const gcap_sim_twin_t* twin, gcap_sim_buffer_t buffer) {
  const gcap_sim_kernel_t* kernel = &twin->kernel;
  void** args = gcap_sim_calloc(kernel->num_args + 1, sizeof(void*));
  for (size_t i = 0; i < kernel->num_args; ++i) {
    const size_t offset = offset_of(twin, i);
    if (offset + kernel->arg_bytes[i] > buffer.count) {
      gcap_sim_die("%s: extra has a buffer of %zu bytes, and argument %zu of %s ends at %zu: not measured",
                   gcap_sim_thread()->call, buffer.count, i, kernel->name, offset + kernel->arg_bytes[i]);
    }
    args[i] = (void*)(uintptr_t)(buffer.bytes + offset);
  }
  return args;
}

gcap_sim_task_t* gcap_sim_kernel_task_of_extra(const void* function, dim3 grid, dim3 block, void** extra,
                                               size_t shared_bytes, cudaError_t* code) {
  gcap_sim_twin_t* twin = gcap_sim_twin_find(function);
  gcap_sim_buffer_t buffer;
  *code = twin == NULL ? missing(function) : gcap_sim_extra_read(extra, &buffer) ? cudaSuccess : cudaErrorInvalidValue;
  if (*code != cudaSuccess) return NULL;
  gcap_sim_twin_prepare(twin);
  void** args = find_args(twin, buffer);
  gcap_sim_task_t* task = gcap_sim_kernel_task(function, grid, block, args, shared_bytes, code);
  free(args);
  if (task != NULL) task->u.kernel.extra = gcap_sim_extra_create(buffer);
  return task;
}

static void check_args(const gcap_sim_task_t* task) {
  const gcap_sim_twin_t* twin = task->u.kernel.twin;
  if (twin->kernel.run != NULL) return;
  size_t i = 0;
  while (i < twin->signature->count && twin->signature->bytes[i] != 0) ++i;
  if (twin->signature->known && i == twin->signature->count) return;
  gcap_sim_die(
      "the arguments of kernel `%s` are not known: it has no twin, its machine code is compressed or missing, and "
      "its name does not tell the size of argument %zu; register a twin",
      twin->signature->text, i);
}

struct cudaKernelNodeParams gcap_sim_kernel_task_params(const gcap_sim_task_t* task) {
  check_args(task);
  return (struct cudaKernelNodeParams){.func = (void*)(uintptr_t)task->u.kernel.twin->kernel.function,
                                       .gridDim = task->u.kernel.launch.grid,
                                       .blockDim = task->u.kernel.launch.block,
                                       .sharedMemBytes = (unsigned int)task->u.kernel.launch.shared_bytes,
                                       .kernelParams = task->u.kernel.extra == NULL ? task->u.kernel.args : NULL,
                                       .extra = task->u.kernel.extra};
}

// Tasks may be shared, so a changed one is another.
gcap_sim_task_t* gcap_sim_kernel_task_with_cluster(gcap_sim_task_t* task, dim3 cluster) {
  if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0) cluster = cluster_without(task->u.kernel.twin);
  const dim3* old = &task->u.kernel.launch.cluster;
  if (old->x == cluster.x && old->y == cluster.y && old->z == cluster.z) return task;
  gcap_sim_task_t* changed = gcap_sim_task_create(GCAP_SIM_TASK_KERNEL, task->name);
  changed->u.kernel.twin = task->u.kernel.twin;
  changed->u.kernel.launch = task->u.kernel.launch;
  changed->u.kernel.launch.cluster = cluster;
  changed->u.kernel.args = copy_args(&task->u.kernel.twin->kernel, task->u.kernel.args);
  gcap_sim_buffer_t buffer;
  if (task->u.kernel.extra != NULL && gcap_sim_extra_read(task->u.kernel.extra, &buffer)) {
    changed->u.kernel.extra = gcap_sim_extra_create(buffer);
  }
  gcap_sim_origin_release(changed->origin);
  changed->origin = gcap_sim_origin_retain(task->origin);
  gcap_sim_task_release(task);
  return changed;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaLaunchHostFunc);
  if (code == cudaSuccess && fn == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) {
    gcap_sim_task_t* task = gcap_sim_task_create(GCAP_SIM_TASK_HOST, "host function");
    task->u.host.function = fn;
    task->u.host.data = userData;
    code = gcap_sim_submit_task(gcap_sim_stream_get(stream), task);
  }
  return gcap_sim_leave(code);
}

static void describe(struct cudaFuncAttributes* attr, gcap_sim_twin_t* twin) {
  const gcap_sim_needs_t needs = gcap_sim_twin_needs(twin);
  memset(attr, 0, sizeof(*attr));
  attr->maxThreadsPerBlock = (int)max_threads(twin);
  attr->numRegs = needs.registers != 0 ? (int)needs.registers : GCAP_SIM_KERNEL_REGISTERS;
  attr->sharedSizeBytes = needs.shared_bytes;
  attr->constSizeBytes = needs.const_bytes;
  attr->localSizeBytes = needs.local_bytes;
  attr->ptxVersion = GCAP_SIM_COMPUTE_MAJOR * 10 + GCAP_SIM_COMPUTE_MINOR;
  attr->binaryVersion = attr->ptxVersion;
  attr->maxDynamicSharedSizeBytes = (int)gcap_sim_twin_max_shared(twin);
  attr->preferredShmemCarveout = twin->carveout;
  attr->requiredClusterWidth = twin->required_cluster[0];
  attr->requiredClusterHeight = twin->required_cluster[1];
  attr->requiredClusterDepth = twin->required_cluster[2];
  attr->nonPortableClusterSizeAllowed = twin->any_cluster;
  attr->clusterSchedulingPolicyPreference = twin->cluster_policy;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* attr, const void* func) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaFuncGetAttributes);
  if (code == cudaSuccess && attr == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess && gcap_sim_twin_find(func) == NULL) code = missing(func);
  if (code == cudaSuccess) describe(attr, gcap_sim_twin_find(func));
  return gcap_sim_leave(code);
}

// Sets it, when it is in the range.
static cudaError_t set_within(int* out, int value, int least, int most) {
  if (value < least || value > most) return cudaErrorInvalidValue;
  *out = value;
  return cudaSuccess;
}

static cudaError_t set_attribute(gcap_sim_twin_t* twin, enum cudaFuncAttribute attr, int value) {
  switch (attr) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      return set_within(&twin->max_shared_bytes, value, 0,
                        GCAP_SIM_SHARED_BYTES_OPTIN - (int)gcap_sim_twin_needs(twin).shared_bytes);
    // A hint in percent, or -1 for none.
    case cudaFuncAttributePreferredSharedMemoryCarveout: return set_within(&twin->carveout, value, -1, 100);
    case cudaFuncAttributeRequiredClusterWidth:
    case cudaFuncAttributeRequiredClusterHeight:
    case cudaFuncAttributeRequiredClusterDepth:
      return set_within(&twin->required_cluster[attr - cudaFuncAttributeRequiredClusterWidth], value, 0,
                        GCAP_SIM_MAX_ANY_CLUSTER);
    case cudaFuncAttributeNonPortableClusterSizeAllowed: twin->any_cluster = value != 0; return cudaSuccess;
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
      return set_within(&twin->cluster_policy, value, cudaClusterSchedulingPolicyDefault,
                        cudaClusterSchedulingPolicyLoadBalancing);
    default: return cudaErrorInvalidValue;  // measured of cudaFuncAttributeClusterDimMustBeSet too: it is read alone
  }
}

cudaError_t cudaFuncSetAttribute(const void* func, enum cudaFuncAttribute attr, int value) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaFuncSetAttribute);
  if (code == cudaSuccess && gcap_sim_twin_find(func) == NULL) code = missing(func);
  if (code == cudaSuccess) code = set_attribute(gcap_sim_twin_find(func), attr, value);
  return gcap_sim_leave(code);
}

// There is no cache to configure.
cudaError_t cudaFuncSetCacheConfig(const void* func, enum cudaFuncCache cacheConfig) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaFuncSetCacheConfig);
  if (code == cudaSuccess && (unsigned int)cacheConfig > cudaFuncCachePreferEqual) code = cudaErrorInvalidValue;
  if (code == cudaSuccess && gcap_sim_twin_find(func) == NULL) code = missing(func);
  return gcap_sim_leave(code);
}

// There are no banks to configure.
cudaError_t cudaFuncSetSharedMemConfig(const void* func, enum cudaSharedMemConfig config) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaFuncSetSharedMemConfig);
  if (code == cudaSuccess && (unsigned int)config > cudaSharedMemBankSizeEightByte) code = cudaErrorInvalidValue;
  if (code == cudaSuccess && gcap_sim_twin_find(func) == NULL) code = missing(func);
  return gcap_sim_leave(code);
}

const char* gcap_sim_kernel_name(const gcap_sim_twin_t* twin) {
  return twin->registered != NULL ? twin->registered : twin->kernel.name;
}

cudaError_t cudaFuncGetName(const char** name, const void* func) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaFuncGetName);
  if (code == cudaSuccess && name == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess && gcap_sim_twin_find(func) == NULL) code = missing(func);
  if (code == cudaSuccess) *name = gcap_sim_kernel_name(gcap_sim_twin_find(func));
  return gcap_sim_leave(code);
}

cudaError_t gcap_sim_kernel_param(gcap_sim_twin_t* twin, size_t index, size_t* offset, size_t* bytes) {
  gcap_sim_twin_prepare(twin);
  if (offset == NULL || index >= twin->kernel.num_args) return cudaErrorInvalidValue;
  *offset = offset_of(twin, index);
  if (bytes != NULL) *bytes = twin->kernel.arg_bytes[index];
  return cudaSuccess;
}

cudaError_t cudaFuncGetParamInfo(const void* func, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaFuncGetParamInfo);
  gcap_sim_twin_t* twin = gcap_sim_twin_find(func);
  if (code == cudaSuccess) {
    code = twin != NULL ? gcap_sim_kernel_param(twin, paramIndex, paramOffset, paramSize) : missing(func);
  }
  return gcap_sim_leave(code);
}

// The driver's handles of a kernel are its address too. Measured: nobody need ask for the first of them.
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* functionPtr, const void* symbolPtr) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGetFuncBySymbol);
  if (code == cudaSuccess && gcap_sim_twin_find(symbolPtr) == NULL) code = cudaErrorInvalidDeviceFunction;
  if (code == cudaSuccess && functionPtr != NULL) *functionPtr = (cudaFunction_t)(uintptr_t)symbolPtr;
  return gcap_sim_leave(code);
}

cudaError_t cudaGetKernel(cudaKernel_t* kernelPtr, const void* entryFuncAddr) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGetKernel);
  if (code == cudaSuccess && gcap_sim_twin_find(entryFuncAddr) == NULL) code = cudaErrorInvalidDeviceFunction;
  if (code == cudaSuccess && kernelPtr == NULL) gcap_sim_die("cudaGetKernel: the place of the handle is NULL");
  if (code == cudaSuccess) *kernelPtr = (cudaKernel_t)(uintptr_t)entryFuncAddr;
  return gcap_sim_leave(code);
}
