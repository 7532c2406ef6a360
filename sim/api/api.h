// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// api.h: the way into every API call and out of it.
#ifndef GCAP_SIM_API_API_H_
#define GCAP_SIM_API_API_H_

#include "cuda_runtime_api.h"

typedef enum gcap_sim_api {
#define GCAP_SIM_API(name, class) GCAP_SIM_API_##name,
#define GCAP_SIM_DRIVER(name, class) GCAP_SIM_API_##name,
#define GCAP_SIM_NOT_MODELLED(name, params)
#include "sim/api/api.inc"
#undef GCAP_SIM_API
#undef GCAP_SIM_NOT_MODELLED
  GCAP_SIM_API_COUNT
} gcap_sim_api_t;

// Takes the lock, counts the call, lets time pass, and returns an injected fault or what the row's class earns.
cudaError_t gcap_sim_enter(gcap_sim_api_t api);
// Keeps `code` as the thread's last error, gives the lock back, and runs what must run without it.
cudaError_t gcap_sim_leave(cudaError_t code);
// The same, but leaves the last error as it is.
cudaError_t gcap_sim_leave_quietly(cudaError_t code);

// The same for a function of the driver: a CUresult has the number of the runtime's code, where both have it, and is
// kept by nobody.
int gcap_sim_leave_driver(cudaError_t code);

// An object that is no handle comes and goes: counted for gcap_sim_live, and known to the reports of leaks. For a
// caller with the lock.
void gcap_sim_object_made(const char* kind, const void* object);
void gcap_sim_object_gone(const char* kind, const void* object);

// The same for the simulator's own functions: takes the lock, notes where the call is made, and no more.
void gcap_sim_begin_call(const char* name);

#endif  // GCAP_SIM_API_API_H_
