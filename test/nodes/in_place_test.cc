// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scatters whose output is their data, as a cache that a graph updates in place: what no update reaches is not copied,
// and each run writes once.

#include <string>
#include <vector>

#include "gcap/kit/ops/nodes.h"
#include "gtest/gtest.h"
#include "test/nodes/node_rig.h"
#include "test/support/device_test.h"

namespace gcap {
namespace testing {
namespace {

class InPlace : public DeviceTest {
 protected:
  // A scatter of two updates to a tensor of four, by `indices`.
  void Create(const std::string& op, const Shape& indices, const char* reduction) {
    Attributes attributes;
    attributes.String("reduction", reduction);
    ModelBuilder builder;
    builder.inputs = {builder.Value("data", {4}, GCAP_DTYPE_F32), builder.Value("indices", indices, GCAP_DTYPE_I64),
                      builder.Value("updates", {2}, GCAP_DTYPE_F32)};
    builder.outputs = {builder.Value("y", {4}, GCAP_DTYPE_F32)};
    builder.Node(op.c_str(), "n", builder.inputs, builder.outputs, attributes.get());
    GCAP_ASSERT_OK(session_.Create(builder));
  }

  NodeSession session_{NodeOptions()};
};

TEST_F(InPlace, AGraphUpdatesACache) {
  Create("ScatterND", {2, 1}, "none");
  const DeviceTensor cache(GCAP_DTYPE_F32, {4}, {1, 2, 3, 4});
  DeviceTensor indices(GCAP_DTYPE_I64, {2, 1}), updates(GCAP_DTYPE_F32, {2});
  Values expected = {1, 2, 3, 4};
  for (int run = 0; run < 4; ++run) {  // eager, captured, replayed
    const Values at = {static_cast<double>(run), static_cast<double>((run + 2) % 4)};
    indices.Set(at);
    updates.Set({10.0 + run, 20.0 + run});
    for (int i = 0; i < 2; ++i) expected[static_cast<size_t>(at[i])] = 10.0 * (i + 1) + run;
    GCAP_ASSERT_OK(session_.Run(0, {cache.view(), indices.view(), updates.view()}, {cache.view()}));
    EXPECT_EQ(cache.Get(), expected) << "run " << run;
  }
  EXPECT_EQ(session_.Info(0).captures, 1u);
  EXPECT_EQ(session_.Info(0).nodes, 1u);  // no copy
}

TEST_F(InPlace, EachRunAddsOnce) {
  Create("ScatterElements", {2}, "add");
  const DeviceTensor sums(GCAP_DTYPE_F32, {4}, {0, 0, 0, 0}), indices(GCAP_DTYPE_I64, {2}, {1, 1});
  const DeviceTensor updates(GCAP_DTYPE_F32, {2}, {1, 2});
  for (int run = 1; run <= 4; ++run) {
    GCAP_ASSERT_OK(session_.Run(0, {sums.view(), indices.view(), updates.view()}, {sums.view()}));
    EXPECT_EQ(sums.Get(), (Values{0, 3.0 * run, 0, 0}));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
