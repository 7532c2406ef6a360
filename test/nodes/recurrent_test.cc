// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Recurrent networks drawn at random from a fixed seed: operators, directions, layouts, sizes, which inputs and outputs
// there are, types; each run eagerly, captured, and replayed with other inputs and lengths.

#include "gtest/gtest.h"
#include "test/nodes/cases.h"
#include "test/support/device_test.h"

namespace gcap {
namespace testing {
namespace {

constexpr unsigned kSeed = 20261128;
constexpr int kNetworks = 60;

class RecurrentNodes : public DeviceTest {};

TEST_F(RecurrentNodes, AreRightAsTheyAreDrawn) {
  Draws draws(kSeed);
  for (int i = 0; i < kNetworks; ++i) {
    const NodeCase network = DrawnRecurrentCase(&draws);
    SCOPED_TRACE(::testing::Message() << "network " << i << " of seed " << kSeed << ": " << network.name);
    NodeRig rig(network, kFloatTypes[i % 3], /*open=*/draws.Int(0, 1) == 1);
    GCAP_ASSERT_OK(rig.Create());
    for (int run = 0; run < 3; ++run) rig.ExpectRightRun(/*graph_id=*/0);  // eager, captured, replayed
    EXPECT_EQ(rig.run().Info(0).captures, 1u);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
