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

// A box of bytes from one device to another.
typedef struct peer_copy {
  gcap_sim_copy_t box;
  int dst_device;
  int src_device;
} peer_copy_t;

static cudaError_t judge(const peer_copy_t* copy) {
  if (!is_device(copy->dst_device) || !is_device(copy->src_device)) return cudaErrorInvalidDevice;
  if (copy->box.width == 0 || copy->box.height == 0) return cudaSuccess;
  return is_on(copy->box.dst, copy->dst_device) && is_on(copy->box.src, copy->src_device) ? cudaSuccess
                                                                                          : cudaErrorInvalidValue;
}

static peer_copy_t of_bytes(void* dst, int dst_device, const void* src, int src_device, size_t count) {
  return (peer_copy_t){.box = {.dst = dst, .src = src, .width = count, .height = 1, .kind = cudaMemcpyDeviceToDevice},
                       .dst_device = dst_device,
                       .src_device = src_device};
}

// Comes after all work of the three devices concerned. The real call need not hold the host; this one may, which a
// program cannot rely on.
static cudaError_t copy_peer(peer_copy_t* copy) {
  cudaError_t code = judge(copy);
  if (code != cudaSuccess) return code;
  gcap_sim_stream_t* stream = gcap_sim_stream_get(cudaStreamLegacy);
  code = gcap_sim_gate_ordered(stream);
  if (code != cudaSuccess) return code;
  gcap_sim_wait_for_device(copy->dst_device);
  gcap_sim_wait_for_device(copy->src_device);
  gcap_sim_wait_for_device(stream->device);
  code = gcap_sim_copy_async(&copy->box, stream);
  if (code == cudaSuccess) gcap_sim_wait_for(gcap_sim_stream_tail_mark(stream));
  return code;
}

cudaError_t cudaMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, size_t count) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpyPeer);
  peer_copy_t copy = of_bytes(dst, dstDevice, src, srcDevice, count);
  if (code == cudaSuccess) code = copy_peer(&copy);
  return gcap_sim_leave(code);
}

// Measured of cudaMemcpyPeerAsync: no capture takes it, also when both devices are the same.
static cudaError_t copy_peer_async(peer_copy_t* copy, gcap_sim_stream_t* stream) {
  cudaError_t code = gcap_sim_gate_ordered(stream);
  if (code == cudaSuccess) code = gcap_sim_gate_not_capturing(stream);
  if (code == cudaSuccess) code = judge(copy);
  return code == cudaSuccess ? gcap_sim_copy_async(&copy->box, stream) : code;
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice, size_t count,
                                cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpyPeerAsync);
  peer_copy_t copy = of_bytes(dst, dstDevice, src, srcDevice, count);
  if (code == cudaSuccess) code = copy_peer_async(&copy, gcap_sim_stream_get(stream));
  return gcap_sim_leave(code);
}

// --- Copies of boxes ------------------------------------------------------------------------------------------------

// Not measured: CUDA documents "a 3D memory copy according to the parameters", and the codes 1 and 101. So the box is
// judged as that of cudaMemcpy3D, and the devices as those of cudaMemcpyPeer.
static cudaError_t of_params(const struct cudaMemcpy3DPeerParms* p, peer_copy_t* out_copy) {
  if (p == NULL) return cudaErrorInvalidValue;
  const struct cudaMemcpy3DParms box = {.srcArray = p->srcArray,
                                        .srcPos = p->srcPos,
                                        .srcPtr = p->srcPtr,
                                        .dstArray = p->dstArray,
                                        .dstPos = p->dstPos,
                                        .dstPtr = p->dstPtr,
                                        .extent = p->extent,
                                        .kind = cudaMemcpyDeviceToDevice};
  cudaError_t code = gcap_sim_judge_copy_params(&box);
  if (code != cudaSuccess) return code;
  *out_copy =
      (peer_copy_t){.box = gcap_sim_copy_of_params(&box), .dst_device = p->dstDevice, .src_device = p->srcDevice};
  return cudaSuccess;
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms* p) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpy3DPeer);
  peer_copy_t copy;
  if (code == cudaSuccess) code = of_params(p, &copy);
  if (code == cudaSuccess) code = copy_peer(&copy);
  return gcap_sim_leave(code);
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms* p, cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpy3DPeerAsync);
  peer_copy_t copy;
  if (code == cudaSuccess) code = of_params(p, &copy);
  if (code == cudaSuccess) code = copy_peer_async(&copy, gcap_sim_stream_get(stream));
  return gcap_sim_leave(code);
}
