// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Several devices: peer copies, what belongs to which device, and what the cases "multi.*" of //test/conformance do not
// ask. Its own binary: the number of devices is read once.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

constexpr size_t kBytes = 4096;

const bool g_environment_set = [] {
  setenv("GCAP_SIM_DEVICES", "2", 1);
  return true;
}();

void Kernel() {}
void RunKernel(const gcap_sim_launch_t*, void* const*) {}

class Peer : public testing::Test {
 protected:
  void SetUp() override {
    gcap_sim_set_seed(0);
    for (int device : {1, 0}) {
      ASSERT_EQ(cudaSuccess, cudaSetDevice(device));
      ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_[device], cudaStreamNonBlocking));
      ASSERT_EQ(cudaSuccess, cudaEventCreate(&event_[device]));
      ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&memory_[device]), kBytes));
      ASSERT_EQ(cudaSuccess, cudaMemset(memory_[device], 1 + device, kBytes));
      ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
    }
  }

  void TearDown() override {
    for (int device : {1, 0}) {
      ASSERT_EQ(cudaSuccess, cudaSetDevice(device));
      EXPECT_EQ(cudaSuccess, cudaFree(memory_[device]));
      EXPECT_EQ(cudaSuccess, cudaEventDestroy(event_[device]));
      EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream_[device]));
    }
    EXPECT_EQ(0u, gcap_sim_live(nullptr));
    cudaGetLastError();
  }

  int First(const char* p) {
    char host = 0;
    EXPECT_EQ(cudaSuccess, cudaMemcpy(&host, p, 1, cudaMemcpyDefault));
    return host;
  }

  void Begin() { ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_[0], cudaStreamCaptureModeGlobal)); }

  cudaStreamCaptureStatus Status() {
    cudaStreamCaptureStatus status;
    EXPECT_EQ(cudaSuccess, cudaStreamIsCapturing(stream_[0], &status));
    return status;
  }

  cudaStream_t stream_[2];
  cudaEvent_t event_[2];
  char* memory_[2];
};

TEST_F(Peer, AccessIsToAnotherDeviceThatThereIs) {
  int can = -1;
  EXPECT_EQ(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 0, 2));
  EXPECT_EQ(cudaErrorInvalidValue, cudaDeviceCanAccessPeer(nullptr, 0, 1));
  EXPECT_EQ(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(0, 0)) << "itself";
  EXPECT_EQ(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(-1, 0));
}

TEST_F(Peer, CopiesCrossDevices) {
  EXPECT_EQ(cudaSuccess, cudaMemcpyPeer(memory_[0], 0, memory_[1], 1, 8));
  EXPECT_EQ(2, First(memory_[0]));
  EXPECT_EQ(cudaSuccess, cudaMemset(memory_[0], 5, 8));
  EXPECT_EQ(cudaSuccess, cudaMemcpyPeerAsync(memory_[1], 1, memory_[0], 0, 8, cudaStreamLegacy));
  EXPECT_EQ(5, First(memory_[1]));
  EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(memory_[0] + 8, memory_[1] + 8, 8, cudaMemcpyDefault, stream_[1]));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_[1]));
  EXPECT_EQ(2, First(memory_[0] + 8));
}

TEST_F(Peer, CopiesNameTheRightDevices) {
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpyPeer(memory_[0], 1, memory_[1], 1, 8));
  EXPECT_EQ(cudaErrorInvalidDevice, cudaMemcpyPeer(memory_[0], 0, memory_[1], 2, 8));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpyPeerAsync(memory_[0], 0, nullptr, 1, 8, stream_[0]));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpyPeer(memory_[0], 0, memory_[1], 1, kBytes + 1));
  EXPECT_EQ(cudaSuccess, cudaMemcpyPeer(nullptr, 0, nullptr, 1, 0));
}

// Rows of 4 bytes, 16 apart, two a slice, two slices.
cudaMemcpy3DPeerParms Box(char* dst, int dst_device, char* src, int src_device) {
  cudaMemcpy3DPeerParms p = {};
  p.srcPtr = cudaPitchedPtr{src, 16, 16, 3};
  p.dstPtr = cudaPitchedPtr{dst, 16, 16, 3};
  p.dstPos = cudaPos{4, 1, 0};
  p.srcDevice = src_device;
  p.dstDevice = dst_device;
  p.extent = cudaExtent{4, 2, 2};
  return p;
}

TEST_F(Peer, BoxesCrossDevices) {
  for (const bool async : {false, true}) {
    ASSERT_EQ(cudaSuccess, cudaMemset(memory_[0], 1, kBytes));
    ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
    cudaMemcpy3DPeerParms p = Box(memory_[0], 0, memory_[1], 1);
    EXPECT_EQ(cudaSuccess, async ? cudaMemcpy3DPeerAsync(&p, stream_[0]) : cudaMemcpy3DPeer(&p));
    ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_[0]));
    char host[128];
    ASSERT_EQ(cudaSuccess, cudaMemcpy(host, memory_[0], sizeof(host), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 128; ++i) {
      const int column = i % 16, row = i / 16 % 3, slice = i / 16 / 3;
      const bool is_in = column >= 4 && column < 8 && row >= 1 && slice < 2;
      EXPECT_EQ(is_in ? 2 : 1, host[i]) << i;
    }
  }
}

TEST_F(Peer, BoxesNameTheRightDevicesAndFit) {
  const auto refused = [&](void (*edit)(cudaMemcpy3DPeerParms*)) {
    cudaMemcpy3DPeerParms p = Box(memory_[0], 0, memory_[1], 1);
    edit(&p);
    const cudaError_t code = cudaMemcpy3DPeer(&p);
    EXPECT_EQ(code, cudaMemcpy3DPeerAsync(&p, stream_[0]));
    return code;
  };
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpy3DPeer(nullptr));
  EXPECT_EQ(cudaErrorInvalidDevice, refused([](auto* p) { p->srcDevice = 2; }));
  EXPECT_EQ(cudaErrorInvalidDevice, refused([](auto* p) { p->dstDevice = -1; }));
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto* p) { p->dstDevice = 1; })) << "memory of another device";
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto* p) { p->dstPos.y = 2; })) << "beyond the slice";
  EXPECT_EQ(cudaErrorInvalidPitchValue, refused([](auto* p) { p->srcPtr.pitch = 3; }));
  EXPECT_EQ(cudaSuccess, refused([](auto* p) { p->extent.depth = 0; })) << "nothing to copy";
}

TEST_F(Peer, NoCaptureTakesABox) {
  Begin();
  cudaMemcpy3DPeerParms p = Box(memory_[0], 0, memory_[1], 1);
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaMemcpy3DPeerAsync(&p, stream_[0]));
  cudaGraph_t graph;
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream_[0], &graph));
}

TEST_F(Peer, ACaptureTakesAPlainCopyAcrossDevices) {
  Begin();
  EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(memory_[0], memory_[1], 8, cudaMemcpyDefault, stream_[0]));
  EXPECT_EQ(cudaStreamCaptureStatusActive, Status());
  cudaGraph_t graph;
  EXPECT_EQ(cudaSuccess, cudaStreamEndCapture(stream_[0], &graph));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

TEST_F(Peer, WorkGoesToStreamsOfAnyDevice) {
  gcap_sim_kernel_t kernel = {};
  kernel.function = reinterpret_cast<const void*>(Kernel);
  kernel.name = "Kernel";
  kernel.run = RunKernel;
  gcap_sim_register_kernel(&kernel);
  EXPECT_EQ(cudaSuccess, cudaLaunchKernel(kernel.function, 1, 1, nullptr, 0, stream_[1]));
  EXPECT_EQ(cudaSuccess, cudaLaunchKernel(kernel.function, 1, 1, nullptr, 0, stream_[0]));
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(memory_[1], 9, kBytes, stream_[1]));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemsetAsync(memory_[0], 9, kBytes, stream_[1])) << "out of its reach";
  ASSERT_EQ(cudaSuccess, cudaSetDevice(1));
  ASSERT_EQ(cudaSuccess, cudaDeviceEnablePeerAccess(0, 0));
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(memory_[0], 9, kBytes, stream_[1]));
  EXPECT_EQ(cudaSuccess, cudaDeviceDisablePeerAccess(0));
  ASSERT_EQ(cudaSuccess, cudaSetDevice(0));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_[1]));
  EXPECT_EQ(9, First(memory_[0]));
}

TEST_F(Peer, ADeviceWideCallBreaksCapturesOfItsDeviceOnly) {
  Begin();
  ASSERT_EQ(cudaSuccess, cudaSetDevice(1));
  EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
  ASSERT_EQ(cudaSuccess, cudaSetDevice(0));
  EXPECT_EQ(cudaStreamCaptureStatusActive, Status());
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
  cudaGraph_t graph;
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream_[0], &graph));
}

TEST_F(Peer, PoolsGiveTheStreamsDeviceMemory) {
  void* p;
  ASSERT_EQ(cudaSuccess, cudaMallocAsync(&p, kBytes, stream_[1]));
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaSuccess, cudaPointerGetAttributes(&attributes, p));
  EXPECT_EQ(1, attributes.device);
  EXPECT_EQ(cudaSuccess, cudaFreeAsync(p, stream_[1]));
}

TEST_F(Peer, MemoryOfDevicesIsCountedApart) {
  size_t free0, free1, total;
  gcap_sim_set_device_bytes(1, kBytes + 512);
  ASSERT_EQ(cudaSuccess, cudaSetDevice(1));
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&free1, &total));
  EXPECT_EQ(kBytes + 512, total);
  EXPECT_EQ(512u, free1);
  void* p;
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaMalloc(&p, 513));
  ASSERT_EQ(cudaSuccess, cudaSetDevice(0));
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&free0, &total));
  EXPECT_EQ(total - kBytes, free0);
  gcap_sim_set_device_bytes(1, 0);
}

TEST_F(Peer, AResetTakesWhatBelongsToTheDevice) {
  ASSERT_EQ(cudaSuccess, cudaSetDevice(1));
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location = {cudaMemLocationTypeDevice, 1};
  cudaMemPool_t pool;
  void *pinned, *pooled;
  ASSERT_EQ(cudaSuccess, cudaMemPoolCreate(&pool, &props));
  ASSERT_EQ(cudaSuccess, cudaMallocHost(&pinned, 64));
  ASSERT_EQ(cudaSuccess, cudaMallocFromPoolAsync(&pooled, kBytes, pool, stream_[1]));
  ASSERT_EQ(cudaSuccess, cudaDeviceEnablePeerAccess(0, 0));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory_[0], 6, kBytes, stream_[1]));
  ASSERT_EQ(cudaSuccess, cudaDeviceReset());
  EXPECT_EQ(6, First(memory_[0])) << "work of the device is done first";
  EXPECT_EQ(3u, gcap_sim_live(nullptr)) << "device 0's stream, event and memory";
  size_t free, total;
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&free, &total));
  EXPECT_EQ(total, free);
  EXPECT_EQ(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(0));
  cudaGetLastError();
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_[1], cudaStreamNonBlocking));
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&event_[1]));
  ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&memory_[1]), kBytes));
}

TEST_F(Peer, AResetEndsCaptures) {
  Begin();
  EXPECT_EQ(cudaSuccess, cudaDeviceReset());
  cudaGraph_t graph;
  EXPECT_DEATH(cudaStreamEndCapture(stream_[0], &graph), "was destroyed");
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_[0], cudaStreamNonBlocking));
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&event_[0]));
  ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&memory_[0]), kBytes));
}

TEST_F(Peer, DevicesTellHowNearTheyAre) {
  int value = -1;
  EXPECT_EQ(cudaSuccess, cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrPerformanceRank, 0, 1));
  EXPECT_EQ(0, value);
  EXPECT_EQ(cudaSuccess, cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 1, 0));
  EXPECT_EQ(1, value);
  EXPECT_EQ(cudaErrorInvalidDevice, cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 0));
  EXPECT_EQ(cudaErrorInvalidDevice, cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 9));
  EXPECT_EQ(cudaErrorInvalidValue, cudaDeviceGetP2PAttribute(nullptr, cudaDevP2PAttrAccessSupported, 0, 1));
  EXPECT_EQ(cudaErrorInvalidValue, cudaDeviceGetP2PAttribute(&value, static_cast<cudaDeviceP2PAttr>(9), 0, 1));
}

}  // namespace
