// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What objects that nvcc compiled register before main.
//
// The idea: an object's handle stands for its fat binary and lists its kernels and variables, so that they go with it:
// a plugin that is unloaded takes them away. Nothing here is a call of the program's: no time passes, no fault hits it,
// and nothing of the simulator need be ready. Locking: the global mutex.
#include <stdlib.h>

#include "cuda_runtime_api.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/device/twin.h"
#include "sim/device/variable.h"
#include "sim/nvcc/fat_binary.h"
#include "sim/nvcc/nvcc.h"

typedef struct object {
  struct object* next;
  const void* code;
  const void** functions;
  size_t count;
  size_t capacity;
  const void** variables;
  size_t num_variables;
  size_t variable_capacity;
} object_t;

static object_t* objects;

static object_t** place_of(void** handle, const char* call) {
  object_t** place = &objects;
  while (*place != NULL && (void**)*place != handle) place = &(*place)->next;
  if (*place == NULL) gcap_sim_die("%s: %p is no handle that __cudaRegisterFatBinary gave out", call, (void*)handle);
  return place;
}

void** __cudaRegisterFatBinary(void* fatCubin) {
  const void* code = gcap_sim_fat_binary_open(fatCubin);
  gcap_sim_lock();
  object_t* object = gcap_sim_calloc(1, sizeof(*object));
  *object = (object_t){.next = objects, .code = code};
  objects = object;
  gcap_sim_unlock();
  return (void**)object;
}

void __cudaRegisterFunction(void** fatCubinHandle, const char* hostFun, char* deviceFun, const char* deviceName,
                            int thread_limit, uint3* tid, uint3* bid, dim3* bDim, dim3* gDim, int* wSize) {
  (void)deviceFun, (void)thread_limit, (void)tid, (void)bid, (void)bDim, (void)gDim, (void)wSize;
  if (hostFun == NULL || deviceName == NULL)
    gcap_sim_die("__cudaRegisterFunction: a kernel lacks its function or its name");
  gcap_sim_lock();
  object_t* object = *place_of(fatCubinHandle, "__cudaRegisterFunction");
  gcap_sim_reserve(&object->functions, &object->capacity, object->count + 1, sizeof(object->functions[0]));
  object->functions[object->count++] = hostFun;
  gcap_sim_twin_declare(hostFun, deviceName, object->code);
  gcap_sim_unlock();
}

void __cudaRegisterVar(void** fatCubinHandle, char* hostVar, char* deviceAddress, const char* deviceName, int ext,
                       size_t size, int constant, int global) {
  (void)deviceAddress, (void)ext, (void)constant, (void)global;
  if (hostVar == NULL || deviceName == NULL || size == 0)
    gcap_sim_die("__cudaRegisterVar: a variable lacks its address, its name or its size");
  gcap_sim_lock();
  object_t* object = *place_of(fatCubinHandle, "__cudaRegisterVar");
  gcap_sim_reserve(&object->variables, &object->variable_capacity, object->num_variables + 1,
                   sizeof(object->variables[0]));
  object->variables[object->num_variables++] = hostVar;
  gcap_sim_variable_declare(hostVar, deviceName, size, object->code);
  gcap_sim_unlock();
}

void __cudaRegisterManagedVar(void** fatCubinHandle, void** hostVarPtrAddress, char* deviceAddress,
                              const char* deviceName, int ext, size_t size, int constant, int global) {
  (void)fatCubinHandle, (void)hostVarPtrAddress, (void)deviceAddress, (void)ext, (void)size, (void)constant,
      (void)global;
  gcap_sim_die("__cudaRegisterManagedVar: the __managed__ variable `%s` is not modelled", deviceName);
}

void __cudaRegisterFatBinaryEnd(void** fatCubinHandle) {
  gcap_sim_lock();
  (void)place_of(fatCubinHandle, "__cudaRegisterFatBinaryEnd");
  gcap_sim_unlock();
}

// There is nothing to load: 1 says that it is done.
char __cudaInitModule(void** fatCubinHandle) {
  gcap_sim_lock();
  (void)place_of(fatCubinHandle, "__cudaInitModule");
  gcap_sim_unlock();
  return 1;
}

void __cudaUnregisterFatBinary(void** fatCubinHandle) {
  gcap_sim_lock();
  object_t** place = place_of(fatCubinHandle, "__cudaUnregisterFatBinary");
  object_t* object = *place;
  for (size_t i = 0; i < object->count; ++i) gcap_sim_twin_withdraw(object->functions[i], object->code);
  for (size_t i = 0; i < object->num_variables; ++i) gcap_sim_variable_withdraw(object->variables[i], object->code);
  *place = object->next;
  free(object->variables);
  free(object->functions);
  free(object);
  gcap_sim_unlock();
}
