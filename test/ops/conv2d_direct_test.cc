// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Conv2d by gcap's kernel: when it is taken, and that it needs nothing of cuDNN. Its numbers are compared by
// conv2d_random_test.

#include <vector>

#include "gcap/kit/ops/conv2d.h"
#include "ops/kernels/direct_conv.h"
#include "test/ops/conv2d_info.h"
#include "test/ops/op_test.h"

namespace gcap {
namespace testing {
namespace {

class Conv2dDirect : public OpTest {
 protected:
  // Of 3 x 3 with padding, of images of 8 x 8.
  gcap_conv2d_options_t Options(int n, int c, int k, gcap_conv2d_direct_t direct) {
    gcap_conv2d_options_t options;
    gcap_conv2d_options_init(&options);
    GCAP_EXPECT_OK(gcap_stream_cudnn_handle(stream_, &options.handle));
    options.n = n, options.c = c, options.k = k;
    options.h = options.w = 8;
    options.kernel_h = options.kernel_w = 3;
    options.pad_h = options.pad_w = 1;
    options.max_workspace_bytes = SIZE_MAX;
    options.direct = direct;
    return options;
  }
  bool IsDirect(const gcap_conv2d_options_t& options) {
    gcap_conv2d_t* plan = nullptr;
    GCAP_EXPECT_OK(gcap_conv2d_create(&options, &plan));
    const bool is_direct = plan != nullptr && InfoOf(plan).is_direct;
    gcap_conv2d_destroy(plan);
    return is_direct;
  }
};

TEST_F(Conv2dDirect, IsTakenForSmallConvolutionsAlone) {
  const auto automatic = [&](int n, int c, int k) { return IsDirect(Options(n, c, k, GCAP_CONV2D_DIRECT_AUTO)); };
  EXPECT_TRUE(automatic(1, 1, 16));  // the digits network, one image
  EXPECT_TRUE(automatic(1, 16, 32));
  EXPECT_FALSE(automatic(1, 18, 16));  // 162 terms
  EXPECT_TRUE(automatic(16, 16, 32));  // 32,768 outputs
  EXPECT_FALSE(automatic(17, 16, 32));
  gcap_conv2d_options_t depthwise = Options(1, 512, 512, GCAP_CONV2D_DIRECT_AUTO);
  depthwise.groups = 512;  // 9 terms
  EXPECT_TRUE(IsDirect(depthwise));
  gcap_conv2d_options_t wide = Options(1, 1, 16, GCAP_CONV2D_DIRECT_AUTO);
  wide.kernel_w = 5, wide.pad_w = 2;  // 15 cells
  EXPECT_FALSE(IsDirect(wide));
  gcap_conv2d_options_t channels_last = Options(1, 16, 32, GCAP_CONV2D_DIRECT_AUTO);
  channels_last.layout = GCAP_IMAGE_NHWC;
  EXPECT_FALSE(IsDirect(channels_last));
}

TEST_F(Conv2dDirect, IsTakenAlwaysAndNeverWhereTheCallerSaysSo) {
  EXPECT_FALSE(IsDirect(Options(1, 1, 16, GCAP_CONV2D_DIRECT_NEVER)));
  EXPECT_TRUE(IsDirect(Options(64, 64, 64, GCAP_CONV2D_DIRECT_ALWAYS)));
}

TEST_F(Conv2dDirect, NeedsNoHandleAndRunsOnAStreamThatCanHaveNone) {
  gcap_conv2d_options_t options = Options(1, 1, 1, GCAP_CONV2D_DIRECT_ALWAYS);
  options.handle = nullptr;
  gcap_conv2d_t* plan = nullptr;
  GCAP_ASSERT_OK(gcap_conv2d_create(&options, &plan));
  const DeviceFloats x(std::vector<float>(64, 1.0f)), weight(std::vector<float>(9, 1.0f));
  const DeviceFloats bias(std::vector<float>{0.5f}), y(std::vector<float>(64));
  gcap_stream_t* external = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(gcap_stream_handle(stream_), GCAP_STREAM_EXTERNAL, 0, 0, &external));
  GCAP_EXPECT_OK(gcap_conv2d_run(plan, external, x.get(), weight.get(), bias.get(), y.get(), nullptr));
  Synchronize();
  const std::vector<float> made = y.Get();
  EXPECT_EQ(made[0], 4.5f);  // a corner
  EXPECT_EQ(made[1], 6.5f);  // an edge
  EXPECT_EQ(made[9], 9.5f);
  GCAP_EXPECT_OK(gcap_stream_destroy(external));
  gcap_conv2d_destroy(plan);
}

TEST_F(Conv2dDirect, ATensorBeyondAllMemoryIsRefused) {
  gcap_conv2d_options_t options = Options(1, 1, 1, GCAP_CONV2D_DIRECT_ALWAYS);
  options.h = options.w = options.stride_h = options.stride_w = 1 << 30;
  gcap_conv2d_t* plan = nullptr;
  GCAP_EXPECT_FAILS(gcap_conv2d_create(&options, &plan), GCAP_INVALID_ARGUMENT,
                    "x is [1,1,1073741824,1073741824], allowed are up to");
  EXPECT_EQ(plan, nullptr);
}

TEST_F(Conv2dDirect, RunNamesTheBadAddress) {
  const gcap_conv2d_options_t options = Options(1, 1, 1, GCAP_CONV2D_DIRECT_ALWAYS);
  gcap_conv2d_t* plan = nullptr;
  GCAP_ASSERT_OK(gcap_conv2d_create(&options, &plan));
  const DeviceFloats memory(std::vector<float>(64));
  float* p = memory.get();
  const auto bad = GCAP_INVALID_ARGUMENT;
  GCAP_EXPECT_FAILS(gcap_conv2d_run(plan, stream_, nullptr, p, p, p, nullptr), bad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_conv2d_run(plan, stream_, p, p, nullptr, p, nullptr), bad, "bias is NULL");
  GCAP_EXPECT_FAILS(gcap_conv2d_run(plan, stream_, p, p, p, reinterpret_cast<char*>(p) + 2, nullptr), bad,
                    "must be 4-byte aligned");
  gcap_conv2d_destroy(plan);
}

// More outputs than 31 bits count would take more memory than a test has: the places that 64 bits find are the same.
TEST_F(Conv2dDirect, WideIndicesFindTheSamePlaces) {
  for (bool is_nhwc : {false, true}) {
    gcap_image_problem_t problem = {};
    gcap_tensor_t of_weight = {};
    const auto set = [](gcap_tensor_t* tensor, std::vector<int64_t> shape) {
      tensor->rank = 4;
      std::copy(shape.begin(), shape.end(), tensor->shape);
    };
    set(&problem.x, {2, 4, 5, 6}), set(&of_weight, {6, 2, 3, 2}), set(&problem.y, {2, 6, 3, 5});
    problem.is_nhwc = is_nhwc;
    problem.kernel[0] = 3, problem.kernel[1] = 2;
    for (int side = 0; side < 2; ++side) problem.stride[side] = problem.dilation[side] = 1;
    const DeviceFloats x(RandomFloats(240, 1)), weight(RandomFloats(72, 2));
    const DeviceFloats narrow(std::vector<float>(180, 7.0f)), wide(std::vector<float>(180, 8.0f));
    gcap_direct_conv_params_t params;
    GCAP_ASSERT_OK(gcap_direct_conv_plan(&problem, &of_weight, /*relu=*/false, &params));
    params.x = x.get(), params.weight = weight.get(), params.y = narrow.get();
    GCAP_EXPECT_OK(gcap_direct_conv(stream_, GCAP_DTYPE_F32, &params));
    params.window.narrow = 0, params.y = wide.get();
    GCAP_EXPECT_OK(gcap_direct_conv(stream_, GCAP_DTYPE_F32, &params));
    Synchronize();
    EXPECT_EQ(narrow.Get(), wide.Get());
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
