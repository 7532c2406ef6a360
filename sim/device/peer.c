// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Peers: access between devices, and copies between them.
//
// The idea: all simulated devices can reach each other. What is enabled is kept, for its codes; copies need no access,
// as on real machines, where the driver stages them. Locking: the global mutex.
#include "sim/device/peer.h"

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/thread.h"
#include "sim/device/device.h"
#include "sim/memory/allocation.h"
#include "sim/memory/copy.h"
#include "sim/stream/capture.h"
#include "sim/stream/scheduler.h"
#include "sim/stream/stream.h"

static bool enabled[GCAP_SIM_MAX_DEVICES][GCAP_SIM_MAX_DEVICES];  // [from][to]

static bool is_device(int device) { return device >= 0 && device < gcap_sim_device_count(); }

bool gcap_sim_peer_enabled(int device, int peer) { return enabled[device][peer]; }

void gcap_sim_peer_reset(int device) {
  for (int i = 0; i < GCAP_SIM_MAX_DEVICES; ++i) enabled[device][i] = false;
}

cudaError_t cudaDeviceCanAccessPeer(int* canAccessPeer, int device, int peerDevice) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceCanAccessPeer);
  if (code == cudaSuccess && canAccessPeer == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess && (!is_device(device) || !is_device(peerDevice))) code = cudaErrorInvalidDevice;
  if (code == cudaSuccess) *canAccessPeer = device != peerDevice;
  return gcap_sim_leave(code);
}

// All devices are as near to one another, and reach all of one another's memory.
static cudaError_t get_p2p(int* value, enum cudaDeviceP2PAttr attr, int source, int target) {
  if (value == NULL) return cudaErrorInvalidValue;
  if (!is_device(source) || !is_device(target) || source == target) return cudaErrorInvalidDevice;
  if (attr < cudaDevP2PAttrPerformanceRank || attr > cudaDevP2PAttrCudaArrayAccessSupported)
    return cudaErrorInvalidValue;
  *value = attr != cudaDevP2PAttrPerformanceRank;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, enum cudaDeviceP2PAttr attr, int srcDevice, int dstDevice) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceGetP2PAttribute);
  if (code == cudaSuccess) code = get_p2p(value, attr, srcDevice, dstDevice);
  return gcap_sim_leave(code);
}

static cudaError_t enable(int peer, unsigned int flags) {
  int device = gcap_sim_thread()->device;
  if (flags != cudaPeerAccessDefault) return cudaErrorInvalidValue;
  if (!is_device(peer)) return cudaErrorInvalidDevice;
  if (peer == device) return cudaErrorPeerAccessUnsupported;
  cudaError_t code = gcap_sim_gate_unsafe();
  if (code != cudaSuccess) return code;
  if (enabled[device][peer]) return cudaErrorPeerAccessAlreadyEnabled;
  enabled[device][peer] = true;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceEnablePeerAccess);
  if (code == cudaSuccess) code = enable(peerDevice, flags);
  return gcap_sim_leave(code);
}

static cudaError_t disable(int peer) {
  int device = gcap_sim_thread()->device;
  if (!is_device(peer)) return cudaErrorInvalidDevice;
  if (!enabled[device][peer]) return cudaErrorPeerAccessNotEnabled;
  enabled[device][peer] = false;
  return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peerDevice) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceDisablePeerAccess);
  if (code == cudaSuccess) code = disable(peerDevice);
  return gcap_sim_leave(code);
}

// --- Copies ---------------------------------------------------------------------------------------------------------

// Each side must be memory of the device that it is said to be on, or else pinned or managed, which is every device's.
static bool is_on(const void* address, int device) {
  const gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(address);
  return allocation != NULL && (allocation->type != cudaMemoryTypeDevice || allocation->device == device);
}

static cudaError_t judge(const void* dst, int dst_device, const void* src, int src_device, size_t count) {
  if (!is_device(dst_device) || !is_device(src_device)) return cudaErrorInvalidDevice;
  if (count == 0) return cudaSuccess;
  return is_on(dst, dst_device) && is_on(src, src_device) ? cudaSuccess : cudaErrorInvalidValue;
}

static gcap_sim_copy_t device_to_device(void* dst, const void* src, size_t count) {
  return (gcap_sim_copy_t){.dst = dst, .src = src, .width = count, .height = 1, .kind = cudaMemcpyDeviceToDevice};
}

// Comes after all work of the three devices concerned. The real call need not hold the host; this one may, which a
// program cannot rely on.
static cudaError_t copy_peer(void* dst, int dst_device, const void* src, int src_device, size_t count) {
  cudaError_t code = judge(dst, dst_device, src, src_device, count);
  if (code != cudaSuccess) return code;
  gcap_sim_stream_t* stream = gcap_sim_stream_get(cudaStreamLegacy);
  code = gcap_sim_gate_ordered(stream);
  if (code != cudaSuccess) return code;
  gcap_sim_wait_for_device(dst_device);
  gcap_sim_wait_for_device(src_device);
  gcap_sim_wait_for_device(stream->device);
  gcap_sim_copy_t copy = device_to_device(dst, src, count);
  code = gcap_sim_copy_async(&copy, stream);
  if (code == cudaSuccess) gcap_sim_wait_for(gcap_sim_stream_tail_mark(stream));
  return code;
}

cudaError_t cudaMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, size_t count) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpyPeer);
  if (code == cudaSuccess) code = copy_peer(dst, dstDevice, src, srcDevice, count);
  return gcap_sim_leave(code);
}

// Measured: no capture takes it, also when both devices are the same.
static cudaError_t copy_peer_async(void* dst, int dst_device, const void* src, int src_device, size_t count,
                                   gcap_sim_stream_t* stream) {
  cudaError_t code = gcap_sim_gate_ordered(stream);
  if (code == cudaSuccess) code = gcap_sim_gate_not_capturing(stream);
  if (code == cudaSuccess) code = judge(dst, dst_device, src, src_device, count);
  if (code != cudaSuccess) return code;
  gcap_sim_copy_t copy = device_to_device(dst, src, count);
  return gcap_sim_copy_async(&copy, stream);
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice, size_t count,
                                cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpyPeerAsync);
  if (code == cudaSuccess) code = copy_peer_async(dst, dstDevice, src, srcDevice, count, gcap_sim_stream_get(stream));
  return gcap_sim_leave(code);
}
