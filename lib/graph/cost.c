// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The device memory of executables. A sample is what went while one executable was made, beside what the recorded
// numbers say of it. It counts only if the device was quiet: no other executable was made meanwhile, and no more memory
// went than an executable can have taken. Whatever else a program or another process takes at that moment cannot be
// told apart, if it is as little as that.
//
// Locking: one mutex over the numbers of all devices, a leaf. The driver is asked without it.

#include "lib/graph/cost.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "gcap/log.h"
#include "gcap/status.h"

// Further devices have the recorded numbers.
#define MAX_DEVICES 64

// More than two steps, one of each of two pools, and this many times the recorded bytes went to something else.
#define STEP_BYTES ((size_t)2 << 20)
#define MAX_SCALE 4

typedef struct device_cost {
  size_t live, peak;             // recorded bytes of executables
  size_t measured, went;         // recorded bytes of samples, and what went
  unsigned long long last_turn;  // executables that were begun
  unsigned long long under_way;  // of them, those that are being made now
} device_cost_t;

static pthread_mutex_t costs_mutex = PTHREAD_MUTEX_INITIALIZER;
static device_cost_t costs[MAX_DEVICES];

static device_cost_t* cost_of(int device_id) {
  return device_id >= 0 && device_id < MAX_DEVICES ? &costs[device_id] : NULL;
}

// --- Counting -------------------------------------------------------------------------------------------------------

static size_t recorded_bytes(size_t kernels) { return GCAP_GRAPH_EXEC_BYTES + kernels * GCAP_GRAPH_KERNEL_NODE_BYTES; }

size_t gcap_graph_exec_bytes(int device_id, size_t kernels) {
  const size_t bytes = recorded_bytes(kernels);
  const device_cost_t* cost = cost_of(device_id);
  if (cost == NULL) return bytes;
  pthread_mutex_lock(&costs_mutex);
  const size_t measured = cost->measured, went = cost->went;
  pthread_mutex_unlock(&costs_mutex);
  if (measured < GCAP_GRAPH_MEASURED_BYTES) return bytes;
  return (size_t)((double)bytes * (double)went / (double)measured);
}

// --- Measuring ------------------------------------------------------------------------------------------------------

// Only an estimate suffers from a failure.
static bool is_told(gcap_status_t status) {
  if (status == NULL) return true;
  gcap_log(GCAP_LOG_WARNING, "what an executable takes of the device is not known: %s", gcap_status_message(status));
  gcap_status_free(status);
  return false;
}

// Of the current device alone, so that no failure can leave the thread on another one.
static bool read_free_bytes(int device_id, size_t* out_bytes) {
  int current = -1;
  size_t total = 0;
  return is_told(GCAP_CUDA(cudaGetDevice(&current))) && current == device_id &&
         is_told(GCAP_CUDA(cudaMemGetInfo(out_bytes, &total)));
}

gcap_graph_cost_watch_t gcap_graph_cost_begin(int device_id, size_t kernels, bool may_measure) {
  gcap_graph_cost_watch_t watch = {.device_id = device_id, .bytes = recorded_bytes(kernels)};
  device_cost_t* cost = cost_of(device_id);
  if (cost == NULL) return watch;
  pthread_mutex_lock(&costs_mutex);
  watch.turn = ++cost->last_turn;
  const bool is_alone = cost->under_way++ == 0;
  if (cost->live + watch.bytes > cost->peak) watch.new_bytes = cost->live + watch.bytes - cost->peak;
  pthread_mutex_unlock(&costs_mutex);
  watch.is_measured = may_measure && is_alone && read_free_bytes(device_id, &watch.free_bytes);
  return watch;
}

// What the executable took, if that can be told.
static bool read_went(const gcap_graph_cost_watch_t* watch, size_t* out_bytes) {
  size_t free_bytes = 0;
  if (!watch->is_measured || !read_free_bytes(watch->device_id, &free_bytes)) return false;
  if (watch->new_bytes == 0 || free_bytes > watch->free_bytes) return false;
  *out_bytes = watch->free_bytes - free_bytes;
  return *out_bytes <= 2 * STEP_BYTES + MAX_SCALE * watch->new_bytes;
}

void gcap_graph_cost_end(const gcap_graph_cost_watch_t* watch, bool made) {
  device_cost_t* cost = cost_of(watch->device_id);
  if (cost == NULL) return;
  size_t went = 0;
  const bool is_known = made && read_went(watch, &went);
  pthread_mutex_lock(&costs_mutex);
  --cost->under_way;
  if (is_known && cost->last_turn == watch->turn) {
    cost->measured += watch->new_bytes;
    cost->went += went;
  }
  if (made) cost->live += watch->bytes;
  if (cost->live > cost->peak) cost->peak = cost->live;
  pthread_mutex_unlock(&costs_mutex);
}

void gcap_graph_cost_forget(int device_id, size_t kernels) {
  device_cost_t* cost = cost_of(device_id);
  if (cost == NULL) return;
  pthread_mutex_lock(&costs_mutex);
  cost->live -= recorded_bytes(kernels);
  pthread_mutex_unlock(&costs_mutex);
}
