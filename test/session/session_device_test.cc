// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions on each device, with the arena on device memory and on a CUDA memory pool: capture, and replays with other
// inputs. On a machine with one device, the cases of device 1 are skipped.

#include <string>
#include <tuple>

#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"
#include "test/support/allocator_stats.h"
#include "test/support/device_test.h"

namespace {

using gcap::testing::ChainOf;
using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::DeviceTest;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::StatsOf;

class SessionDevice : public DeviceTest, public ::testing::WithParamInterface<std::tuple<int, bool>> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    int devices = 0;
    ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
    if (device() >= devices) GTEST_SKIP() << "needs device " << device() << ", this machine has " << devices;
    ASSERT_EQ(cudaSetDevice(device()), cudaSuccess);
  }
  void TearDown() override { EXPECT_EQ(cudaSetDevice(0), cudaSuccess); }

  static int device() { return std::get<0>(GetParam()); }
  static bool uses_mempool() { return std::get<1>(GetParam()); }
  static gcap_options_t Options() {
    gcap_options_t options = GraphOptions(2);
    options.device_id = device();
    options.use_mempool = uses_mempool();
    return options;
  }
};

TEST_P(SessionDevice, CapturesAndReplaysWithOtherInputs) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(Options()));
  rig.bounce.scratch_bytes = 4096;
  gcap_run_resources_t resources;
  GCAP_ASSERT_OK(gcap_runtime_get_resources(rig.ep->runtime(), &resources));
  EXPECT_EQ(gcap_stream_device(resources.stream), device());
  EXPECT_EQ(StatsOf(resources.allocator).device_id, device());
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 1; run <= 6; ++run) {
    rig.ExpectRightRun(&x, &y, 10.0f * static_cast<float>(run));
    EXPECT_EQ(rig.count.executions, run);
    EXPECT_EQ(rig.middle.computes, run < 3 ? run : 3) << "a replay issues nothing";
  }
  const gcap_graph_info_t info = rig.ep->Info(0);
  EXPECT_EQ(info.captures, 1u);
  EXPECT_EQ(info.failures, 0u);
}

TEST_P(SessionDevice, LeavesTheThreadsDeviceAlone) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(Options()));
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  for (int run = 1; run <= 5; ++run) {
    GCAP_EXPECT_OK(rig.Run(x, y));
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 0);
  }
  ASSERT_EQ(cudaSetDevice(device()), cudaSuccess);
  EXPECT_EQ(rig.count.executions, 5);
  EXPECT_EQ(rig.ep->Info(0).captures, 1u);
  EXPECT_EQ(y.Get(), ChainOf({1, 2, 3, 4, 5, 6}));
}

INSTANTIATE_TEST_SUITE_P(Devices, SessionDevice, ::testing::Combine(::testing::Values(0, 1), ::testing::Bool()),
                         [](const ::testing::TestParamInfo<std::tuple<int, bool>>& info) {
                           return "Of" + std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "WithAMempool" : "WithoutAMempool");
                         });

}  // namespace
