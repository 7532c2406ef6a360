// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Bounds of Clip that no double holds: those of i64 are exact.

#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "test/nodes/node_rig.h"
#include "test/support/device_test.h"

namespace gcap {
namespace testing {
namespace {

using Integers = std::vector<int64_t>;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kBeyond = (int64_t{1} << 53) + 1;  // no double

class ClipOfIntegers : public DeviceTest {
 protected:
  // Clips `in` at constants on the host; none for an upper bound of `kMost`.
  Integers Clip(const Integers& in, int64_t low, int64_t high) {
    const Shape shape = {static_cast<int64_t>(in.size())};
    ModelBuilder builder;
    builder.inputs = {builder.Value("x", shape, GCAP_DTYPE_I64)};
    builder.outputs = {builder.Value("y", shape, GCAP_DTYPE_I64)};
    std::vector<int> inputs = {builder.inputs[0], builder.Integers("low", {low})};
    if (high != kMost) inputs.push_back(builder.Integers("high", {high}));
    builder.Node("Clip", "n", inputs, builder.outputs);
    NodeSession session(NodeOptions());
    GCAP_EXPECT_OK(session.Create(builder));
    const DeviceTensor x(GCAP_DTYPE_I64, shape), y(GCAP_DTYPE_I64, shape);
    GCAP_EXPECT_CUDA(cudaMemcpy(x.view().data, in.data(), in.size() * sizeof(int64_t), cudaMemcpyHostToDevice));
    GCAP_EXPECT_OK(session.Run(-1, {x.view()}, {y.view()}));
    Integers out(in.size());
    GCAP_EXPECT_CUDA(cudaMemcpy(out.data(), y.view().data, out.size() * sizeof(int64_t), cudaMemcpyDeviceToHost));
    return out;
  }
};

TEST_F(ClipOfIntegers, BoundsBeyond2To53AreExact) {
  EXPECT_EQ(Clip({kLeast, 0, kBeyond, kBeyond + 1, kMost}, kBeyond, kBeyond + 2),
            (Integers{kBeyond, kBeyond, kBeyond, kBeyond + 1, kBeyond + 2}));
  EXPECT_EQ(Clip({kLeast, -kBeyond, 0, kMost}, -kBeyond, kMost - 1), (Integers{-kBeyond, -kBeyond, 0, kMost - 1}));
  EXPECT_EQ(Clip({kLeast, -1, kMost}, kLeast + 1, kMost), (Integers{kLeast + 1, -1, kMost}));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
