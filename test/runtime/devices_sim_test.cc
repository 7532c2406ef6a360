// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Copies between devices: eager, in a capture, and of a runtime that has nothing to do with them. The simulator has two
// devices here; on a machine with two GPUs, test/conformance has what they answer (multi.peer_copy).

#include <functional>
#include <string>
#include <vector>

#include "gcap/runtime.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/ep/test_ep.h"
#include "test/support/expect_status.h"
#include "test/support/replays.h"
#include "test/support/runs.h"

namespace {

using gcap::testing::GraphOptions;
using gcap::testing::Outcome;

constexpr int64_t kCount = 64;
constexpr size_t kBytes = kCount * sizeof(float);
constexpr gcap_memory_t kFirst = {GCAP_MEMORY_DEVICE, 0}, kSecond = {GCAP_MEMORY_DEVICE, 1};
constexpr gcap_memory_t kHost = {GCAP_MEMORY_HOST, 0};

class RuntimeDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int device : {1, 0}) {
      ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
      ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory_[device]), kBytes), cudaSuccess);
      gcap_options_t options = GraphOptions(1);
      options.device_id = device;
      GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtimes_[device]));
    }
  }
  void TearDown() override {
    for (int device : {1, 0}) {
      GCAP_EXPECT_OK(gcap_runtime_destroy(runtimes_[device]));
      EXPECT_EQ(cudaFree(memory_[device]), cudaSuccess);
    }
  }

  gcap_tensor_t On(int device) { return {memory_[device], GCAP_DTYPE_F32, 1, {kCount}}; }

  static gcap_status_t Copy(gcap_runtime_t* runtime, const gcap_tensor_t& src, gcap_memory_t from,
                            const gcap_tensor_t& dst, gcap_memory_t to, gcap_stream_t* stream = nullptr) {
    const gcap_copy_t copy = {&src, from, &dst, to, stream};
    return gcap_runtime_copy_tensors(runtime, &copy, 1);
  }

  void Set(int device, float value) {
    std::vector<float> host(kCount, value);
    const gcap_tensor_t src = {host.data(), GCAP_DTYPE_F32, 1, {kCount}};
    GCAP_EXPECT_OK(Copy(runtimes_[device], src, kHost, On(device), {GCAP_MEMORY_DEVICE, device}));
  }
  std::vector<float> Get(int device) {
    std::vector<float> host(kCount);
    const gcap_tensor_t dst = {host.data(), GCAP_DTYPE_F32, 1, {kCount}};
    GCAP_EXPECT_OK(Copy(runtimes_[device], On(device), {GCAP_MEMORY_DEVICE, device}, dst, kHost));
    return host;
  }

  gcap_runtime_t* runtimes_[2] = {};
  float* memory_[2] = {};
};

// Whether one device reaches the memory of the other, or CUDA stages the copy.
TEST_F(RuntimeDevices, EitherRuntimeCopiesBetweenItsDeviceAndTheOther) {
  for (const bool has_peer_access : {false, true}) {
    if (has_peer_access) {
      EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);  // to device 0, which is current
    }
    for (gcap_runtime_t* runtime : runtimes_) {
      Set(0, 3);
      Set(1, 4);
      GCAP_EXPECT_OK(Copy(runtime, On(0), kFirst, On(1), kSecond));
      EXPECT_EQ(Get(1), std::vector<float>(kCount, 3));
      Set(1, 5);
      GCAP_EXPECT_OK(Copy(runtime, On(1), kSecond, On(0), kFirst));
      EXPECT_EQ(Get(0), std::vector<float>(kCount, 5));
    }
  }
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 0);
}

TEST_F(RuntimeDevices, ACapturedCopyBetweenDevicesIsRepeatedByReplays) {
  const std::function<gcap_status_t(gcap_stream_t*)> copy = [this](gcap_stream_t* stream) {
    return Copy(runtimes_[0], On(0), kFirst, On(1), kSecond, stream);
  };
  const gcap_work_t work = [](void* issue, const gcap_run_resources_t* run) {
    return (*static_cast<const std::function<gcap_status_t(gcap_stream_t*)>*>(issue))(run->stream);
  };
  for (float round = 1; round <= 4; ++round) {
    Set(0, round);
    Set(1, 0);
    GCAP_EXPECT_OK(RunOnRuntime(runtimes_[0], 0, work, const_cast<void*>(static_cast<const void*>(&copy)), true));
    EXPECT_EQ(Get(1), std::vector<float>(kCount, round));
  }
  const gcap_graph_info_t info = GraphInfo(runtimes_[0], 0);
  EXPECT_EQ(info.captures, 1u);
  EXPECT_EQ(info.replays, 3u);
}

// As CUDA finds memory of pools too: also where the stream cannot be asked whether it captures.
TEST_F(RuntimeDevices, ACopyBetweenDevicesOnTheDefaultStreamNamesBoth) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(nullptr, GCAP_STREAM_USER, GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM, 0, &stream));
  const uint64_t before = gcap_sim_calls("cudaMemcpyPeerAsync");
  Set(0, 6);
  GCAP_EXPECT_OK(Copy(runtimes_[0], On(0), kFirst, On(1), kSecond, stream));
  EXPECT_EQ(gcap_sim_calls("cudaMemcpyPeerAsync"), before + 1);
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  EXPECT_EQ(Get(1), std::vector<float>(kCount, 6));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

// Whichever device a thread has current, the work of a run has the runtime's, and the thread has its own again.
TEST_F(RuntimeDevices, ARunGivesTheThreadItsDeviceBack) {
  const gcap_work_t note = [](void* device, const gcap_run_resources_t*) {
    return GCAP_CUDA(cudaGetDevice(static_cast<int*>(device)));
  };
  const gcap_work_t leave = [](void*, const gcap_run_resources_t*) -> gcap_status_t { throw 1; };
  for (const int current : {0, 1}) {
    ASSERT_EQ(cudaSetDevice(current), cudaSuccess);
    for (const int of_runtime : {0, 1}) {
      int inside = -1, after = -1;
      GCAP_EXPECT_OK(RunOnRuntime(runtimes_[of_runtime], GCAP_GRAPH_ID_NONE, note, &inside, true));
      EXPECT_EQ(inside, of_runtime);
      EXPECT_EQ(cudaGetDevice(&after), cudaSuccess);
      EXPECT_EQ(after, current);
      EXPECT_THROW(Outcome(RunOnRuntime(runtimes_[of_runtime], GCAP_GRAPH_ID_NONE, leave, nullptr, true)), int);
      EXPECT_EQ(cudaGetDevice(&after), cudaSuccess);
      EXPECT_EQ(after, current);
    }
  }
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(RuntimeDevices, ARuntimeCopiesNothingOfOtherDevicesAlone) {
  EXPECT_FALSE(gcap_runtime_can_copy(runtimes_[0], kSecond, kSecond));
  EXPECT_FALSE(gcap_runtime_can_copy(runtimes_[0], kSecond, kHost));
  EXPECT_TRUE(gcap_runtime_can_copy(runtimes_[0], kSecond, kFirst));
  GCAP_EXPECT_FAILS(Copy(runtimes_[0], On(1), kSecond, On(1), kSecond), GCAP_INVALID_ARGUMENT,
                    "device 0 does not copy from memory of device 1");
}

// Forked streams are of the runtime's device, whatever device the thread has current.
TEST_F(RuntimeDevices, ForksAreOfTheRuntimesDevice) {
  GCAP_EXPECT_OK(BeginRun(runtimes_[1], GCAP_GRAPH_ID_NONE));
  gcap_stream_t* stream = nullptr;
  GCAP_EXPECT_OK(gcap_runtime_fork(runtimes_[1], 1, &stream));
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(gcap_stream_device(stream), 1);
  GCAP_EXPECT_OK(gcap_runtime_join(runtimes_[1]));
  GCAP_EXPECT_OK(EndRun(runtimes_[1], nullptr, true));
}

}  // namespace
