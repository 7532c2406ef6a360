// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Each operator as a model of one node: run eagerly, captured, and replayed with other inputs, with fixed and with open
// shapes, in f32, f16 and bf16.

#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "test/nodes/cases.h"
#include "test/nodes/node_rig.h"
#include "test/support/device_test.h"

namespace gcap {
namespace testing {
namespace {

using Parameter = std::tuple<NodeCase, gcap_dtype_t>;

class NodeKernels : public DeviceTest, public ::testing::WithParamInterface<Parameter> {};

TEST_P(NodeKernels, RunEagerlyAndInGraphs) {
  const NodeCase& node_case = std::get<0>(GetParam());
  for (const bool open : {false, true}) {
    SCOPED_TRACE(open ? "open shapes" : "fixed shapes");
    NodeRig rig(node_case, std::get<1>(GetParam()), open);
    GCAP_ASSERT_OK(rig.Create());
    rig.ExpectRightRun(GCAP_GRAPH_ID_NONE);
    for (int run = 0; run < 4; ++run) rig.ExpectRightRun(/*graph_id=*/0);  // eager, captured, replayed
    const gcap_graph_info_t info = rig.run().Info(0);
    EXPECT_EQ(info.captures, 1u);
    EXPECT_EQ(info.replays, 3u);
    EXPECT_EQ(info.failures, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, NodeKernels,
                         ::testing::Combine(::testing::ValuesIn(AllCases()), ::testing::ValuesIn(kFloatTypes)),
                         [](const ::testing::TestParamInfo<Parameter>& info) {
                           std::string name = std::get<0>(info.param).name;
                           std::replace(name.begin(), name.end(), '.', '_');  // of a domain
                           return name + "_" + gcap_dtype_name(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace testing
}  // namespace gcap
