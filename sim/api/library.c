// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a simulated library may ask about a stream before it takes it. Asking is no API call: it is not counted, moves
// no queue and disturbs no capture. Each function takes the global lock for itself.
#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "sim/api/submit.h"
#include "sim/base/lock.h"
#include "sim/base/thread.h"
#include "sim/device/device.h"
#include "sim/device/peer.h"
#include "sim/memory/allocation.h"
#include "sim/stream/capture.h"
#include "sim/stream/stream.h"

int gcap_sim_current_device(void) {
  gcap_sim_lock();
  const int device = gcap_sim_thread()->device;
  gcap_sim_unlock();
  return device;
}

int gcap_sim_stream_device(cudaStream_t stream) {
  gcap_sim_lock();
  const int device = gcap_sim_stream_get(stream)->device;
  gcap_sim_unlock();
  return device;
}

int gcap_sim_stream_is_invalidated(cudaStream_t stream) {
  gcap_sim_lock();
  const gcap_sim_member_t* member = gcap_sim_stream_get(stream)->member;
  const int is_invalidated = member != NULL && member->capture->invalid;
  gcap_sim_unlock();
  return is_invalidated;
}

const void* gcap_sim_find_unreachable(cudaStream_t stream, const gcap_sim_access_t* accesses, size_t count) {
  const void* found = NULL;
  if (gcap_sim_device_count() < 2) return NULL;
  gcap_sim_lock();
  const int device = gcap_sim_stream_get(stream)->device;
  for (size_t i = 0; i < count && found == NULL; ++i) {
    const gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(accesses[i].address);
    if (allocation == NULL || allocation->type != cudaMemoryTypeDevice || allocation->block != NULL) continue;
    if (allocation->device != device && !gcap_sim_peer_enabled(device, allocation->device)) found = accesses[i].address;
  }
  gcap_sim_unlock();
  return found;
}

cudaError_t gcap_sim_library_gate_unsafe(const char* function) {
  gcap_sim_lock();
  gcap_sim_thread()->call = function;
  const cudaError_t code = gcap_sim_gate_unsafe();
  gcap_sim_unlock();
  return code;
}

int gcap_sim_invalidate_captures_of_others(const char* function) {
  gcap_sim_lock();
  gcap_sim_thread()->call = function;
  const int broken = gcap_sim_gate_unsafe_beside_others() != cudaSuccess;
  gcap_sim_unlock();
  return broken;
}
