// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions, what only the simulator can show: that nothing leaks, and that results are right whatever the order in
// which queues advance.

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gcap/kit/session.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"

namespace {

using gcap::testing::ChainOf;
using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::When;

TEST(SessionSim, NothingIsLeftOfASession) {
  DeviceFloats x(Floats(6)), y(Floats(6));
  const size_t before = gcap_sim_live(nullptr);
  for (const char* op : {"Fail", "Alloc", "Ignore"}) {
    ChainRig rig(op);
    GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
    for (int run = 0; run < 12; ++run) {
      rig.middle.misbehave = run % 4 == 1 ? When::kInCapture : When::kNever;
      rig.ExpectRightRun(&x, &y, static_cast<float>(run), run % 3);
    }
    std::thread([&] {
      for (int run = 0; run < 4; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
    }).join();
  }
  EXPECT_EQ(gcap_sim_live(nullptr), before);
}

TEST(SessionSim, NothingIsLeftOfASessionThatCouldNotBeMade) {
  const size_t before = gcap_sim_live(nullptr);
  ChainRig rig;
  gcap::testing::TestEpConfig config;
  config.broken_op = "Count";  // the last
  GCAP_EXPECT_FAILS(rig.Create(GraphOptions(), config), GCAP_LIBRARY_ERROR, "node 'count'");
  EXPECT_EQ(rig.session, nullptr);
  EXPECT_EQ(rig.ep->live_kernels(), 0);
  rig.ep.reset();
  EXPECT_EQ(gcap_sim_live(nullptr), before);
}

// Runs of several ids and eager ones, none of them waited for, share the scratch under one seed after the other.
TEST(SessionSim, ResultsAreRightUnderEverySeed) {
  constexpr int kLanes = 3;  // ids -1, 0 and 1
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("GCAP_SIM_SEED=" + std::to_string(seed));
    gcap_sim_set_seed(seed);
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
    std::vector<std::unique_ptr<DeviceFloats>> x, y;
    for (int lane = 0; lane < kLanes; ++lane) {
      x.push_back(std::make_unique<DeviceFloats>(Floats(6)));
      y.push_back(std::make_unique<DeviceFloats>(Floats(6)));
    }
    for (int round = 0; round < 5; ++round) {
      for (int lane = 0; lane < kLanes; ++lane) x[lane]->Set(Floats(6, static_cast<float>(10 * round + lane)));
      for (int lane = 0; lane < kLanes; ++lane) GCAP_ASSERT_OK(rig.Run(*x[lane], *y[lane], lane - 1, false));
      GCAP_ASSERT_OK(gcap_runtime_synchronize(rig.ep->runtime()));
      for (int lane = 0; lane < kLanes; ++lane) {
        EXPECT_EQ(y[lane]->Get(), ChainOf(Floats(6, static_cast<float>(10 * round + lane))));
      }
    }
    EXPECT_EQ(rig.ep->Info(0).captures + rig.ep->Info(1).captures, 2u);
  }
  gcap_sim_set_seed(0);
}

}  // namespace
