// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernel options: each convolution is right under each of them, and those that change what a graph holds do.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/nodes/cases.h"
#include "test/nodes/node_rig.h"
#include "test/support/device_test.h"

namespace gcap {
namespace testing {
namespace {

class NodeOptionsTest : public DeviceTest {
 protected:
  static void ExpectRight(const NodeCase& node_case, const gcap_options_t& options, size_t* out_nodes) {
    SCOPED_TRACE(node_case.name);
    NodeRig rig(node_case, GCAP_DTYPE_F32, /*open=*/false, options);
    GCAP_ASSERT_OK(rig.Create());
    for (int run = 0; run < 3; ++run) rig.ExpectRightRun(/*graph_id=*/0);
    EXPECT_EQ(rig.run().Info(0).captures, 1u);
    *out_nodes = rig.run().Info(0).nodes;
  }
  static void ExpectAllRight(const gcap_options_t& options) {
    for (const NodeCase& node_case : WindowCases()) {
      size_t nodes = 0;
      ExpectRight(node_case, options, &nodes);
    }
  }
  static NodeCase Named(const std::string& name) {
    for (const NodeCase& node_case : AllCases()) {
      if (node_case.name == name) return node_case;
    }
    ADD_FAILURE() << "no case " << name;
    return {};
  }
};

TEST_F(NodeOptionsTest, EachSearchAndWorkspaceIsRight) {
  for (const gcap_conv_search_t search :
       {GCAP_CONV_SEARCH_EXHAUSTIVE, GCAP_CONV_SEARCH_HEURISTIC, GCAP_CONV_SEARCH_DEFAULT}) {
    for (const bool any_workspace : {false, true}) {
      SCOPED_TRACE(std::to_string(search) + (any_workspace ? ", any workspace" : ", 32 MiB"));
      gcap_options_t options = NodeOptions();
      options.kernels.conv_search = search;
      options.kernels.conv_use_max_workspace = any_workspace;
      ExpectAllRight(options);
    }
  }
}

TEST_F(NodeOptionsTest, OneAxisMayBeTheFirstOrTheSecondOfTwo) {
  for (const bool second : {false, true}) {
    gcap_options_t options = NodeOptions();
    options.kernels.conv1d_pad_to_nc1d = second;
    size_t nodes = 0;
    ExpectRight(Named("ConvOfOneAxis"), options, &nodes);
  }
}

// Without the option, bias and activation are a kernel each.
TEST_F(NodeOptionsTest, FusedConvolutionsHaveFewerKernels) {
  gcap_options_t options = NodeOptions();
  options.kernels.conv_search = GCAP_CONV_SEARCH_HEURISTIC;
  for (const char* name : {"ConvWithStridesAndRelu", "ConvWithDilationsWithoutBias"}) {
    size_t apart = 0, fused = 0;
    options.kernels.fuse_conv_bias = false;
    ExpectRight(Named(name), options, &apart);
    options.kernels.fuse_conv_bias = true;
    ExpectRight(Named(name), options, &fused);
    const bool has_some_to_fuse = std::string(name) != "ConvWithDilationsWithoutBias";
    EXPECT_EQ(fused < apart, has_some_to_fuse) << fused << " and " << apart;
  }
}

// TF32 has 10 bits of fraction: each operand, of magnitudes up to 1, is off by at most 2^-11, each of up to 40 products
// by 2^-10.
TEST_F(NodeOptionsTest, ProductsMayUseTf32) {
  gcap_options_t options = NodeOptions();
  options.kernels.use_tf32 = true;
  for (const char* name : {"Conv", "MatMul", "Gemm"}) {
    NodeCase node_case = Named(name);
    node_case.error = 40 * std::ldexp(1.0, -10);
    size_t nodes = 0;
    ExpectRight(node_case, options, &nodes);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
