// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// How much memory each device has, and how much of it is left.
//
// The idea: cudaMalloc, the chunks of pools and the memory of graphs share one number a device, so that running out is
// real; pinned memory is the machine's own and is not counted. Locking: the global mutex; the environment is read once,
// under it.
#include "sim/memory/budget.h"

#include <errno.h>
#include <stdlib.h>

#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "sim/api/api.h"
#include "sim/base/die.h"
#include "sim/base/lock.h"
#include "sim/base/thread.h"
#include "sim/device/device.h"
#include "sim/device/properties.h"
#include "sim/memory/pool.h"

static struct {
  bool ready;
  size_t total[GCAP_SIM_MAX_DEVICES];
  size_t taken[GCAP_SIM_MAX_DEVICES];
} budget;

static size_t bytes_from_environment(void) {
  const char* text = getenv("GCAP_SIM_DEVICE_BYTES");
  if (text == NULL) return GCAP_SIM_MEMORY_OF_DEVICE;
  char* end;
  errno = 0;
  unsigned long long bytes = strtoull(text, &end, 0);
  if (errno || *end || end == text || *text == '-' || bytes == 0) {
    gcap_sim_die_of_setting("GCAP_SIM_DEVICE_BYTES is '%s', expected a number of bytes above 0", text);
  }
  return (size_t)bytes;
}

static void prepare(void) {
  if (budget.ready) return;
  budget.ready = true;
  size_t bytes = bytes_from_environment();
  for (int i = 0; i < GCAP_SIM_MAX_DEVICES; ++i) budget.total[i] = bytes;
}

void gcap_sim_set_device_bytes(int device, size_t bytes) {
  gcap_sim_lock();
  prepare();
  if (device < 0 || device >= gcap_sim_device_count()) {
    gcap_sim_die("gcap_sim_set_device_bytes: device is %d, expected 0..%d", device, gcap_sim_device_count() - 1);
  }
  budget.total[device] = bytes ? bytes : bytes_from_environment();
  gcap_sim_unlock();
}

size_t gcap_sim_budget_total(int device) {
  prepare();
  return budget.total[device];
}

size_t gcap_sim_budget_free(int device) {
  size_t total = gcap_sim_budget_total(device);
  return total > budget.taken[device] ? total - budget.taken[device] : 0;
}

bool gcap_sim_budget_take(int device, size_t bytes) {
  if (bytes > gcap_sim_budget_total(device)) return false;
  if (bytes > gcap_sim_budget_free(device)) gcap_sim_pools_release_unused(device);
  if (bytes > gcap_sim_budget_free(device)) return false;
  budget.taken[device] += bytes;
  return true;
}

void gcap_sim_budget_give_back(int device, size_t bytes) { budget.taken[device] -= bytes; }

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemGetInfo);
  // Measured: either may be NULL.
  if (code == cudaSuccess && total != NULL) *total = gcap_sim_budget_total(gcap_sim_thread()->device);
  if (code == cudaSuccess && free != NULL) *free = gcap_sim_budget_free(gcap_sim_thread()->device);
  return gcap_sim_leave(code);
}
