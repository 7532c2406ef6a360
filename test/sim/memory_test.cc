// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Memory and copies: limits, kinds of addresses, when a copy reads and when it returns.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"
#include "test/sim/with_action.h"

extern "C" {
#include "sim/api/submit.h"
}

namespace {

constexpr size_t kBytes = 8192;

class Memory : public testing::Test {
 protected:
  void SetUp() override {
    gcap_sim_set_seed(0);
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&device_), kBytes));
    ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&pinned_), kBytes));
  }

  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaFree(device_));
    EXPECT_EQ(cudaSuccess, cudaFreeHost(pinned_));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream_));
    EXPECT_EQ(0u, gcap_sim_live(nullptr));
    cudaGetLastError();
  }

  cudaMemoryType TypeOf(const void* p) {
    cudaPointerAttributes attributes;
    EXPECT_EQ(cudaSuccess, cudaPointerGetAttributes(&attributes, p));
    return attributes.type;
  }

  cudaStream_t stream_;
  char *device_, *pinned_;
};

TEST_F(Memory, UnwrittenBytesShow) {
  gcap_test::WithAction quiet(GCAP_SIM_CHECK_UNINITIALIZED, GCAP_SIM_ACTION_OFF);
  unsigned char host[16];
  ASSERT_EQ(cudaSuccess, cudaMemcpy(host, device_, sizeof(host), cudaMemcpyDeviceToHost));
  EXPECT_EQ(0xA5, host[15]);
}

size_t ResidentBytes() {
  size_t pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  EXPECT_EQ(1, fscanf(file, "%*u %zu", &pages));
  fclose(file);
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// All of its bytes have the pattern, and none takes memory before it is written.
TEST_F(Memory, ALargeAllocationTakesNoMemoryUntilItIsWritten) {
  constexpr size_t kLarge = size_t{64} << 20;
  gcap_test::WithAction quiet(GCAP_SIM_CHECK_UNINITIALIZED, GCAP_SIM_ACTION_OFF);
  void *first, *large;
  ASSERT_EQ(cudaSuccess, cudaMalloc(&first, kLarge));  // makes what all of them share
  const size_t before = ResidentBytes();
  ASSERT_EQ(cudaSuccess, cudaMalloc(&large, kLarge + 12345));
  EXPECT_LT(ResidentBytes(), before + kLarge / 4);
  std::vector<unsigned char> host(kLarge);
  for (unsigned char* from : {static_cast<unsigned char*>(large), static_cast<unsigned char*>(first)}) {
    ASSERT_EQ(cudaSuccess, cudaMemcpy(host.data(), from, kLarge, cudaMemcpyDeviceToHost));
    EXPECT_EQ(std::vector<unsigned char>(kLarge, 0xA5), host);
    ASSERT_EQ(cudaSuccess, cudaMemset(from, 1, kLarge));
  }
  ASSERT_EQ(cudaSuccess, cudaMemcpy(host.data(), large, kLarge, cudaMemcpyDeviceToHost));
  EXPECT_EQ(std::vector<unsigned char>(kLarge, 1), host);
  ASSERT_EQ(cudaSuccess, cudaFree(large));
  ASSERT_EQ(cudaSuccess, cudaFree(first));
}

TEST_F(Memory, PageableSourceIsReadAtTheCall) {
  std::vector<char> host(kBytes, 1);
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(device_, host.data(), kBytes, cudaMemcpyHostToDevice, stream_));
  memset(host.data(), 2, kBytes);
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  ASSERT_EQ(cudaSuccess, cudaMemcpy(host.data(), device_, kBytes, cudaMemcpyDeviceToHost));
  EXPECT_EQ(1, host[kBytes - 1]);
}

TEST_F(Memory, PinnedSourceIsReadWhenTheCopyRuns) {
  memset(pinned_, 1, kBytes);
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(device_, pinned_, kBytes, cudaMemcpyHostToDevice, stream_));
  memset(pinned_, 2, kBytes);
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  char host = 0;
  ASSERT_EQ(cudaSuccess, cudaMemcpy(&host, device_, 1, cudaMemcpyDeviceToHost));
  EXPECT_EQ(2, host);
}

TEST_F(Memory, CopyToPageableMemoryReturnsWhenItIsDone) {
  char host = 0;
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 3, kBytes, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(&host, device_, 1, cudaMemcpyDeviceToHost, stream_));
  EXPECT_EQ(3, host);
}

TEST_F(Memory, CopyToPinnedMemoryIsQueued) {
  pinned_[0] = 0;
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 3, kBytes, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(pinned_, device_, 1, cudaMemcpyDeviceToHost, stream_));
  EXPECT_EQ(0, pinned_[0]);
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  EXPECT_EQ(3, pinned_[0]);
}

TEST_F(Memory, Copies2D) {
  // Rows of 3 bytes, 8 apart in the source and 5 apart in the destination.
  for (int i = 0; i < 32; ++i) pinned_[i] = static_cast<char>(i);
  ASSERT_EQ(cudaSuccess, cudaMemset(device_, 99, kBytes));
  ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
  ASSERT_EQ(cudaSuccess, cudaMemcpy2DAsync(device_, 5, pinned_, 8, 3, 4, cudaMemcpyHostToDevice, stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  char host[20];
  ASSERT_EQ(cudaSuccess, cudaMemcpy(host, device_, sizeof(host), cudaMemcpyDeviceToHost));
  const char expected[20] = {0, 1, 2, 99, 99, 8, 9, 10, 99, 99, 16, 17, 18, 99, 99, 24, 25, 26, 99, 99};
  EXPECT_EQ(0, memcmp(host, expected, sizeof(host)));
  EXPECT_EQ(cudaErrorInvalidPitchValue,
            cudaMemcpy2DAsync(device_, 2, pinned_, 8, 3, 4, cudaMemcpyHostToDevice, stream_));
  EXPECT_EQ(cudaErrorInvalidValue,
            cudaMemcpy2DAsync(device_, kBytes, pinned_, 8, 3, 2, cudaMemcpyHostToDevice, stream_));
}

TEST_F(Memory, KindsMustFitTheAddresses) {
  char host[64];
  const auto d = device_, p = pinned_;
  const auto h2d = cudaMemcpyHostToDevice, d2h = cudaMemcpyDeviceToHost;
  const auto d2d = cudaMemcpyDeviceToDevice, h2h = cudaMemcpyHostToHost, any = cudaMemcpyDefault;
  const struct {
    void* dst;
    const void* src;
    size_t count;
    cudaMemcpyKind kind;
    cudaError_t code;
  } cases[] = {
      {d, host, 16, d2h, cudaErrorInvalidValue},
      {host, d, 16, h2d, cudaErrorInvalidValue},
      {d, p, 16, d2d, cudaSuccess},
      {host, host + 32, 16, h2h, cudaSuccess},
      {d, host, 16, any, cudaSuccess},
      {host, d, 16, any, cudaSuccess},
      {host, p, 16, any, cudaSuccess},
      {d, d, 16, static_cast<cudaMemcpyKind>(7), cudaErrorInvalidMemcpyDirection},
      {d, d, 0, static_cast<cudaMemcpyKind>(7), cudaSuccess},
      {nullptr, nullptr, 0, d2d, cudaSuccess},
      {nullptr, d, 16, d2d, cudaErrorInvalidValue},
      {d, nullptr, 16, d2d, cudaErrorInvalidValue},
      {d, d, 16, d2d, cudaSuccess},
      {d, d + 8, 16, d2d, cudaSuccess},
      {d, host, 16, d2d, cudaErrorInvalidValue},
      {d, d + 32, 16, h2h, cudaSuccess},
      {d, host, kBytes + 1, h2d, cudaErrorInvalidValue},
      {d + kBytes - 1, host, 2, h2d, cudaErrorInvalidValue},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    const auto& c = cases[i];
    EXPECT_EQ(c.code, cudaMemcpy(c.dst, c.src, c.count, c.kind)) << i;
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_EQ(c.code, cudaMemcpyAsync(c.dst, c.src, c.count, c.kind, stream_)) << i;
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  }
}

TEST_F(Memory, FillsRefuseWhatNoDeviceReaches) {
  char host[16];
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset(nullptr, 0, 1));
  EXPECT_EQ(cudaSuccess, cudaMemset(nullptr, 0, 0));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset(host, 0, sizeof(host)));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset(device_, 0, kBytes + 512));
  ASSERT_EQ(cudaSuccess, cudaMemset(pinned_, 0x101, kBytes));  // only the low byte counts, and the host waits
  EXPECT_EQ(1, pinned_[kBytes - 1]);
}

TEST_F(Memory, AddressesHaveTypes) {
  char host;
  void* async;
  ASSERT_EQ(cudaSuccess, cudaMallocAsync(&async, kBytes, stream_));
  EXPECT_EQ(cudaMemoryTypeDevice, TypeOf(device_));
  EXPECT_EQ(cudaMemoryTypeDevice, TypeOf(device_ + kBytes - 1));
  EXPECT_EQ(cudaMemoryTypeHost, TypeOf(pinned_));
  EXPECT_EQ(cudaMemoryTypeDevice, TypeOf(async));
  EXPECT_EQ(cudaMemoryTypeUnregistered, TypeOf(&host));
  EXPECT_EQ(cudaMemoryTypeUnregistered, TypeOf(nullptr));
  ASSERT_EQ(cudaSuccess, cudaFreeAsync(async, stream_));
  EXPECT_EQ(cudaMemoryTypeUnregistered, TypeOf(async));
  EXPECT_EQ(cudaErrorInvalidValue, cudaPointerGetAttributes(nullptr, device_));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
}

TEST_F(Memory, BadFreesAreRefused) {
  char host;
  void* p;
  EXPECT_EQ(cudaSuccess, cudaFree(nullptr));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFree(device_ + 1));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFree(&host));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFree(pinned_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFreeHost(device_));
  ASSERT_EQ(cudaSuccess, cudaMalloc(&p, 64));
  EXPECT_EQ(cudaSuccess, cudaFree(p));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFree(p));
  ASSERT_EQ(cudaSuccess, cudaMallocAsync(&p, 64, stream_));
  EXPECT_EQ(cudaSuccess, cudaFreeAsync(p, stream_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFreeAsync(p, stream_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFreeAsync(device_ + 1, stream_));
  EXPECT_EQ(cudaSuccess, cudaFreeAsync(nullptr, stream_));
}

TEST_F(Memory, StreamOrderedFreeWaitsForTheWorkBeforeIt) {
  unsigned char* p;
  ASSERT_EQ(cudaSuccess, cudaMallocAsync(reinterpret_cast<void**>(&p), kBytes, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(p, 7, kBytes, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(pinned_, p, kBytes, cudaMemcpyDeviceToHost, stream_));
  ASSERT_EQ(cudaSuccess, cudaFreeAsync(p, stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  EXPECT_EQ(7, pinned_[kBytes - 1]);
}

TEST_F(Memory, FreeWaitsForTheDevice) {
  void* p;
  ASSERT_EQ(cudaSuccess, cudaMalloc(&p, 64));
  pinned_[0] = 0;
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(pinned_, 5, 1, stream_));
  ASSERT_EQ(cudaSuccess, cudaFree(p));
  EXPECT_EQ(5, pinned_[0]);
}

TEST_F(Memory, CountsWhatIsUsed) {
  size_t free = 0, total = 0, after = 0;
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&free, &total));
  void* p;
  ASSERT_EQ(cudaSuccess, cudaMalloc(&p, 1 << 20));
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&after, &total));
  EXPECT_EQ(free - (1 << 20), after);
  void* q = &p;
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaMalloc(&q, after + 1));
  EXPECT_EQ(nullptr, q);
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaGetLastError());
  EXPECT_EQ(cudaSuccess, cudaFree(p));
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&after, &total));
  EXPECT_EQ(free, after);
  ASSERT_EQ(cudaSuccess, cudaMalloc(&p, 0));
  EXPECT_EQ(nullptr, p);
}

TEST_F(Memory, CountsLiveThings) {
  EXPECT_EQ(1u, gcap_sim_live("device memory"));
  EXPECT_EQ(1u, gcap_sim_live("pinned memory"));
  EXPECT_EQ(1u, gcap_sim_live("stream"));
  EXPECT_EQ(0u, gcap_sim_live("event"));
  EXPECT_EQ(3u, gcap_sim_live(nullptr));
  EXPECT_EQ(0u, gcap_sim_live("no such kind"));
}

// --- The way in for libraries ---------------------------------------------------------------------------------------

struct Fill {
  char* out;
  int value;
};

void RunFill(void* payload) {
  auto* fill = static_cast<Fill*>(payload);
  memset(fill->out, fill->value, kBytes);
}

TEST_F(Memory, LibraryWorkIsQueuedAndCaptured) {
  Fill fill = {device_, 4};
  gcap_sim_access_t access = {device_, kBytes, 1};
  gcap_sim_work_t work = {{"libraryFill", RunFill, nullptr, sizeof(fill), 0}, &fill, &access, 1};
  ASSERT_EQ(cudaSuccess, gcap_sim_submit(stream_, &work));
  fill.value = 5;  // the payload was copied
  char host = 0;
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(&host, device_, 1, cudaMemcpyDeviceToHost, stream_));
  EXPECT_EQ(4, host);
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  ASSERT_EQ(cudaSuccess, gcap_sim_submit(stream_, &work));
  cudaGraph_t graph;
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
  cudaGraphNode_t node;
  size_t count = 1;
  ASSERT_EQ(cudaSuccess, cudaGraphGetNodes(graph, &node, &count));
  cudaGraphNodeType type;
  ASSERT_EQ(cudaSuccess, cudaGraphNodeGetType(node, &type));
  EXPECT_EQ(cudaGraphNodeTypeKernel, type);
  cudaGraphExec_t exec;
  ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(&host, device_, 1, cudaMemcpyDeviceToHost, stream_));
  EXPECT_EQ(5, host);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

TEST_F(Memory, LibraryCallsAreGatedAndCounted) {
  uint64_t before = gcap_sim_calls("someLibraryCall");
  EXPECT_EQ(cudaSuccess, gcap_sim_library_call("someLibraryCall", GCAP_SIM_CALL_UNSAFE));
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  EXPECT_EQ(cudaSuccess, gcap_sim_library_call("someLibraryCall", GCAP_SIM_CALL_FREE));
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, gcap_sim_library_call("someLibraryCall", GCAP_SIM_CALL_UNSAFE));
  cudaGraph_t graph;
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(before + 3, gcap_sim_calls("someLibraryCall"));
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  gcap_sim_invalidate_captures("someLibraryDestroy");
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream_, &graph));
  gcap_sim_fail_nth("someLibraryCall", 1, cudaErrorUnknown);
  EXPECT_EQ(cudaErrorUnknown, gcap_sim_library_call("someLibraryCall", GCAP_SIM_CALL_FREE));
  int objects[2];
  gcap_sim_handle_made("some handle", &objects[0]);
  gcap_sim_handle_made("some handle", &objects[1]);
  EXPECT_EQ(2u, gcap_sim_live("some handle"));
  gcap_sim_handle_gone("some handle", &objects[0]);
  gcap_sim_handle_gone("some handle", &objects[1]);
}

TEST_F(Memory, DeviceRangesAreKnown) {
  EXPECT_TRUE(gcap_sim_is_device_range(device_, kBytes));
  EXPECT_TRUE(gcap_sim_is_device_range(device_ + 1, kBytes - 1));
  EXPECT_FALSE(gcap_sim_is_device_range(device_ + 1, kBytes));
  EXPECT_FALSE(gcap_sim_is_device_range(pinned_, 1));
  EXPECT_FALSE(gcap_sim_is_device_range(nullptr, 1));
}

}  // namespace
