// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Forks under many schedules, which only the simulator can stage.

#include <functional>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/capture/diamond.h"
#include "test/capture/scope_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr uint64_t kFirstSeed = 0;
constexpr uint64_t kSeeds = 500;

using CaptureForkSchedules = ScopeTest;

// One capture with two replays, under the schedule of a seed.
int CaptureAndReplay(void* user) {
  const Diamond diamond(*static_cast<const std::vector<int>*>(user));
  gcap_capture_t* capture = nullptr;
  if (!Outcome(gcap_capture_begin(diamond.origin(), nullptr, &capture)).ok()) return 1;
  diamond.Capture(capture);
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  if (!Outcome(gcap_capture_end(capture, &graph, &retained)).ok()) return 1;
  cudaGraphExec_t exec = nullptr;
  if (cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) return 1;
  const bool right = diamond.Replay(exec, 5) && diamond.Replay(exec, 6);
  const bool gone = cudaGraphExecDestroy(exec) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess;
  return right && gone ? 0 : 1;
}

TEST_F(CaptureForkSchedules, ReplaysRightUnderEverySchedule) {
  std::vector<int> devices[] = {{0, 0, 0}, {1, 0, 1}};
  for (std::vector<int>& branches : devices) {
    uint64_t seed = 0;
    EXPECT_EQ(gcap_sim_explore(CaptureAndReplay, &branches, kFirstSeed, kSeeds, &seed), 0)
        << "GCAP_SIM_EXPLORE=" << seed << (branches[0] == 1 ? ", across devices" : "");
  }
}

// A capture with a fork that its thread breaks, and then does eagerly what it meant to capture.
int BreakAndGoOn() {
  const Diamond diamond({0});
  const std::vector<cudaStream_t> streams = diamond.streams();
  gcap_capture_t* capture = nullptr;
  if (!Outcome(gcap_capture_begin(diamond.origin(), nullptr, &capture)).ok()) return 1;
  GCAP_EXPECT_CUDA(diamond.Upload());
  GCAP_EXPECT_OK(gcap_capture_fork(capture, streams.data(), streams.size()));
  GCAP_EXPECT_CUDA(diamond.Spread(0));
  const bool refused = Outcome(GCAP_CUDA(cudaStreamSynchronize(streams[0]))).cuda_error != cudaSuccess;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  const Outcome end(gcap_capture_end(capture, &graph, &retained));
  if (!refused || graph != nullptr || !end.Names("cudaStreamSynchronize(streams[0])") || !end.Names("R11")) return 1;
  GCAP_EXPECT_CUDA(diamond.Upload());
  GCAP_EXPECT_CUDA(cudaStreamSynchronize(diamond.origin()));
  GCAP_EXPECT_CUDA(diamond.Spread(0));
  return cudaStreamSynchronize(streams[0]) == cudaSuccess ? 0 : 1;
}

// Two threads that take turns at every call: one captures and replays, the other breaks its captures.
int CaptureBesideABreaker(void*) {
  std::vector<int> devices = {0, 0};
  int wrong[2] = {0, 0};
  gcap_sim_turns_begin(2);
  const auto run = [&wrong](size_t index, const std::function<int()>& body) {
    gcap_sim_turns_join(index);
    for (int round = 0; round < 2; ++round) wrong[index] += body();
    gcap_sim_turns_leave();
  };
  std::thread right([&] { run(0, [&devices] { return CaptureAndReplay(&devices); }); });
  std::thread breaker([&] { run(1, BreakAndGoOn); });
  right.join();
  breaker.join();
  return wrong[0] + wrong[1];
}

TEST_F(CaptureForkSchedules, IsRightBesideAThreadThatBreaksItsOwnUnderEverySchedule) {
  uint64_t seed = 0;
  EXPECT_EQ(gcap_sim_explore(CaptureBesideABreaker, nullptr, kFirstSeed, kSeeds, &seed), 0)
      << "GCAP_SIM_EXPLORE=" << seed;
}

}  // namespace
}  // namespace testing
}  // namespace gcap
