// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a simulated library may ask about a stream before it takes it. Asking is no API call: it is not counted, moves
// no queue and disturbs no capture. Each function takes the global lock for itself.
#include "core.h"
#include "submit.h"

int sim_current_device(void) {
  sim_lock();
  const int device = sim_thread()->device;
  sim_unlock();
  return device;
}

int sim_stream_device(cudaStream_t stream) {
  sim_lock();
  const int device = sim_stream_get(stream)->device;
  sim_unlock();
  return device;
}

int sim_stream_is_invalidated(cudaStream_t stream) {
  sim_lock();
  const sim_member_t* member = sim_stream_get(stream)->member;
  const int is_invalidated = member && member->capture->invalid;
  sim_unlock();
  return is_invalidated;
}

const void* sim_find_unreachable(cudaStream_t stream, const gcap_sim_access_t* accesses, size_t count) {
  const void* found = NULL;
  if (sim_device_count() < 2) return NULL;
  sim_lock();
  const int device = sim_stream_get(stream)->device;
  for (size_t i = 0; i < count && !found; ++i) {
    const sim_allocation_t* allocation = sim_allocation_find(accesses[i].address);
    if (!allocation || allocation->type != cudaMemoryTypeDevice || allocation->block) continue;
    if (allocation->device != device && !sim_peer_enabled(device, allocation->device)) found = accesses[i].address;
  }
  sim_unlock();
  return found;
}

cudaError_t sim_library_gate_unsafe(const char* function) {
  sim_lock();
  sim_thread()->call = function;
  const cudaError_t code = sim_gate_unsafe();
  sim_unlock();
  return code;
}

void sim_invalidate_captures_of_others(const char* function) {
  sim_lock();
  sim_thread()->call = function;
  (void)sim_gate_unsafe_beside_others();  // the point is what it does to the captures; these functions go on
  sim_unlock();
}
