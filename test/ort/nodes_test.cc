// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The table of operators for ONNX Runtime. //test/ort/python compares it with the kernels.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gcap/kit/ort.h"
#include "gtest/gtest.h"

namespace gcap {
namespace testing {
namespace {

TEST(OrtNodesTest, VersionsDoNotOverlap) {
  for (const gcap_ort_op_t* op = gcap_ort_node_ops; op->op_type != nullptr; ++op) {
    EXPECT_TRUE(op->domain == nullptr || std::string(op->domain) == "com.microsoft") << op->op_type;
    EXPECT_LE(op->first, op->last) << op->op_type;
    for (const gcap_ort_op_t* other = op + 1; other->op_type != nullptr; ++other) {
      if (std::string(other->op_type) != op->op_type || (other->domain == nullptr) != (op->domain == nullptr)) continue;
      EXPECT_LT(op->last, other->first) << op->op_type;
    }
  }
}

TEST(OrtNodesTest, AttributesHaveOneKind) {
  std::set<std::string> names;
  for (const gcap_ort_attribute_t* a = gcap_ort_node_attributes; a->name != nullptr; ++a) {
    EXPECT_TRUE(names.insert(a->name).second) << a->name;
  }
}

// Ranks that a model leaves open are tried, so also those that have no such axis.
TEST(OrtNodesTest, SoftmaxBeforeOpset13IsOfOneAxis) {
  const gcap_ort_op_t* op = gcap_ort_node_ops;
  while (std::string(op->op_type) != "Softmax") ++op;
  ASSERT_NE(op->accepts, nullptr);
  const auto accepts = [op](int64_t axis, const std::vector<int64_t>& shape) {
    gcap_value_t value = {};
    value.rank = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), value.shape);
    gcap_attribute_t attribute = {};
    attribute.name = "axis";
    attribute.i = axis;
    const gcap_attributes_t attributes = {&attribute, 1};
    const int input = 0;
    gcap_node_t node = {};
    node.inputs = &input;
    node.num_inputs = 1;
    node.attributes = &attributes;
    gcap_model_t model = {};
    model.values = &value;
    model.num_values = 1;
    return op->accepts(&model, &node);
  };
  EXPECT_TRUE(accepts(-1, {2, 3}));
  EXPECT_TRUE(accepts(1, {2, 3, 1}));
  EXPECT_FALSE(accepts(1, {2, 3, 4}));
  EXPECT_FALSE(accepts(-2, {2, 3, GCAP_DIM_INFERRED}));
  EXPECT_FALSE(accepts(-2, {}));
  EXPECT_FALSE(accepts(-3, {1}));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
