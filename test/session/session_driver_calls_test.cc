// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a session calls on a GPU, counted there. session_replay_sim_test counts the same on the simulator.

#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "test/session/session_test.h"
#include "test/support/device_test.h"
#include "test/support/driver_calls.h"

namespace {

using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::DriverCalls;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;

constexpr int kRuns = 100;

// CUPTI's names of runtime functions end in the version that brought them: cudaStreamSynchronize_v3020.
int CountOf(const std::string& function, const std::map<std::string, int>& calls) {
  int count = 0;
  for (const auto& call : calls) {
    if (call.first.compare(0, function.size(), function) == 0) count += call.second;
  }
  return count;
}

class SessionDriverCalls : public gcap::testing::DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    std::string reason;
    calls_ = DriverCalls::Begin(&reason);
    if (calls_ != nullptr) return;
    if (std::getenv("GCAP_REQUIRE_GPU") != nullptr) FAIL() << reason;
    GTEST_SKIP() << reason;
  }

  std::unique_ptr<DriverCalls> calls_;
};

// Upstream shows by a profiler that no cudaStreamSynchronize stands between the launches; here every call is counted,
// of the runtime and of the driver below it.
TEST_F(SessionDriverCalls, AsynchronousReplayIsALaunchAndNothingElse) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    gcap_options_t options = GraphOptions(1);
    options.has_user_stream = true;
    options.user_stream = stream;
    ChainRig rig;
    DeviceFloats x(Floats{1, 2, 3, 4, 5, 6}), y(Floats(6));
    GCAP_ASSERT_OK(rig.Create(options));
    GCAP_ASSERT_OK(rig.WarmUp(x, y));
    GCAP_ASSERT_OK(rig.Run(x, y));
    EXPECT_GE(CountOf("cudaStreamSynchronize", calls_->Take()), 1) << "the counter counts";
    for (int run = 0; run < kRuns; ++run) GCAP_ASSERT_OK(rig.Run(x, y, 0, /*synchronize=*/false));
    const std::map<std::string, int> made = calls_->Take();
    EXPECT_EQ(made.size(), 2u);
    for (const auto& call : made) {
      EXPECT_EQ(call.second, kRuns) << call.first;
      EXPECT_TRUE(call.first.find("GraphLaunch") != std::string::npos) << call.first << ": " << call.second;
    }
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(y.Get(), gcap::testing::ChainOf({1, 2, 3, 4, 5, 6}));
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
