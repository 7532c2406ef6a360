// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The table of operators for ONNX Runtime. //test/ort/python compares it with the kernels.

#include <set>
#include <string>

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

}  // namespace
}  // namespace testing
}  // namespace gcap
