// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Faults: errors that a caller asked for, and those of device work.
//
// The idea: an injected fault stands in for the call's own work, which is not done. A fault of device work is pending
// until a call waits for the device or finds its work done, as on a GPU; from then on it is sticky: every call that
// needs the device answers it, and after cudaDeviceReset that there is no device, for good (test/conformance, cases
// fault.*). While one is pending or sticky the device does no work: queues drain without effect, and host functions are
// not called. Invariant: gcap_sim_fault_any is true when there is anything to look at. Locking: the global mutex.
#include "sim/api/fault.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "sim/api/function.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/random.h"
#include "sim/base/thread.h"

typedef struct armed {
  gcap_sim_function_t* function;  // NULL: any
  uint64_t calls_left;            // 0: by probability
  double probability;
  cudaError_t code;
  bool sticky;
} armed_t;

bool gcap_sim_fault_any;

static struct {
  armed_t* armed;
  size_t count;
  size_t capacity;
  size_t any_function;  // how many are armed for any function
  cudaError_t pending;
  cudaError_t sticky;
} faults;

static void update_any(void) { gcap_sim_fault_any = faults.count || faults.pending || faults.sticky; }

// --- Arming ---------------------------------------------------------------------------------------------------------

// How many are armed for the function, or for any.
static size_t* armed_for(gcap_sim_function_t* function) {
  return function != NULL ? &function->faults : &faults.any_function;
}

static void disarm(size_t index) {
  --*armed_for(faults.armed[index].function);
  --faults.count;
  memmove(&faults.armed[index], &faults.armed[index + 1], (faults.count - index) * sizeof(armed_t));
  update_any();
}

static void disarm_all(void) {
  while (faults.count) disarm(faults.count - 1);
}

static void validate(const gcap_sim_fault_t* fault) {
  if (fault->code == cudaSuccess) gcap_sim_die("gcap_sim_inject: code is cudaSuccess, which is no fault");
  if (fault->nth && fault->probability != 0) {
    gcap_sim_die("gcap_sim_inject: nth is %llu and probability %g, expected one of them to be 0",
                 (unsigned long long)fault->nth, fault->probability);
  }
  if (!fault->nth && !(fault->probability > 0 && fault->probability <= 1)) {
    gcap_sim_die("gcap_sim_inject: nth is 0 and probability %g, expected more than 0 and at most 1",
                 fault->probability);
  }
}

static void arm(const gcap_sim_fault_t* fault) {
  gcap_sim_function_t* function = fault->function != NULL ? gcap_sim_function_named(fault->function) : NULL;
  gcap_sim_reserve(&faults.armed, &faults.capacity, faults.count + 1, sizeof(armed_t));
  faults.armed[faults.count++] = (armed_t){.function = function,
                                           .calls_left = fault->nth,
                                           .probability = fault->probability,
                                           .code = fault->code,
                                           .sticky = fault->sticky != 0};
  ++*armed_for(function);
  update_any();
}

void gcap_sim_inject(const gcap_sim_fault_t* fault) {
  gcap_sim_lock();
  if (fault == NULL) gcap_sim_die("gcap_sim_inject: the fault is NULL");
  validate(fault);
  arm(fault);
  gcap_sim_unlock();
}

void gcap_sim_clear_faults(void) {
  gcap_sim_lock();
  disarm_all();
  faults.pending = faults.sticky = cudaSuccess;
  update_any();
  gcap_sim_unlock();
}

void gcap_sim_fail_nth(const char* function, uint64_t n, cudaError_t code) {
  const gcap_sim_fault_t fault = {.function = function, .nth = n, .code = code};
  gcap_sim_lock();
  disarm_all();
  if (n) validate(&fault);
  if (n) arm(&fault);
  gcap_sim_unlock();
}

// --- Faults of device work ------------------------------------------------------------------------------------------

void gcap_sim_fault_device(cudaError_t code) {
  if (faults.pending || faults.sticky) return;  // the first one counts
  faults.pending = code;
  update_any();
}

void gcap_sim_device_fault(cudaError_t code) {
  if (!gcap_sim_thread()->in_device_work) gcap_sim_die("gcap_sim_device_fault: only the twin of a kernel calls it");
  if (code == cudaSuccess) gcap_sim_die("gcap_sim_device_fault: code is cudaSuccess, which is no fault");
  gcap_sim_fault_device(code);  // the thread that runs a twin holds the lock
}

void gcap_sim_fault_surface(void) {
  if (!faults.pending) return;
  faults.sticky = faults.pending;
  faults.pending = cudaSuccess;
}

bool gcap_sim_fault_stops_work(void) { return gcap_sim_fault_any && (faults.pending || faults.sticky); }

// --- Calls ----------------------------------------------------------------------------------------------------------

// Does the armed fault hit this call? Each that concerns the call counts it, whichever hits.
static bool hits(armed_t* armed) {
  if (armed->calls_left) return --armed->calls_left == 0;
  return gcap_sim_random_chance(GCAP_SIM_RANDOM_FAULT, armed->probability);
}

static cudaError_t take(const gcap_sim_function_t* function) {
  cudaError_t code = cudaSuccess;
  for (size_t i = 0; i < faults.count;) {
    armed_t* armed = &faults.armed[i];
    bool once = armed->calls_left != 0;
    // What only reads the caller's own state is hit by its name alone.
    bool concerned = armed->function != NULL ? armed->function == function : function->class != GCAP_SIM_PURE;
    bool hit = concerned && hits(armed);
    if (hit && !code) code = armed->code;
    if (hit && armed->sticky && !faults.sticky) faults.sticky = armed->code;
    if (hit && once) {
      disarm(i);
    } else {
      ++i;
    }
  }
  return code;
}

static bool is_reset(const char* name) { return strcmp(name, "cudaDeviceReset") == 0; }

// Calls that never look at the device, and so go on without it.
static bool goes_on(const char* name) {
  static const char* const names[] = {
      // As a GPU answered in fault.after.
      "cudaGetLastError", "cudaPeekAtLastError", "cudaGetDeviceCount", "cudaDeviceGetAttribute", "cudaGetDevice",
      "cudaThreadExchangeStreamCaptureMode", "cudaMemPoolTrimTo", "cudaPointerGetAttributes", "cudaGraphCreate",
      "cudaGraphGetNodes", "cudaGraphAddEmptyNode", "cudaUserObjectCreate", "cudaGraphExecDestroy", "cudaGraphDestroy",
      "cudaRuntimeGetVersion", "cudaDriverGetVersion",
      // Not asked, and of the same kind: texts, and the structure of a graph.
      "cudaGetErrorName", "cudaGetErrorString", "cudaGraphGetRootNodes", "cudaGraphGetEdges", "cudaGraphNodeGetType",
      "cudaUserObjectRetain", "cudaUserObjectRelease", "cuPointerGetAttribute", "cuPointerGetAttributes"};
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); ++i) {
    if (strcmp(name, names[i]) == 0) return true;
  }
  // The device can be chosen until there is none any more.
  return is_reset(name) || (strcmp(name, "cudaSetDevice") == 0 && faults.sticky != cudaErrorDevicesUnavailable);
}

cudaError_t gcap_sim_fault_enter(gcap_sim_function_t* function) {
  if (faults.sticky && !goes_on(function->name)) {
    return strcmp(function->name, "cudaGraphExecUpdate") == 0 ? cudaErrorGraphExecUpdateFailure : faults.sticky;
  }
  if (!function->faults && !faults.any_function) return cudaSuccess;
  return take(function);
}

cudaError_t gcap_sim_fault_leave(cudaError_t code) {
  const char* name = gcap_sim_thread()->call;
  if (is_reset(name) && (faults.pending || faults.sticky)) {
    faults.pending = cudaSuccess;
    faults.sticky = cudaErrorDevicesUnavailable;
  }
  if (faults.sticky && !goes_on(name) && (code == cudaSuccess || code == cudaErrorNotReady)) return faults.sticky;
  return code;
}
