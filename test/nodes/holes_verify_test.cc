// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Convolutions of the provider's kernels with a node on the CPU between them, in a hole: replays are compared with the
// nodes, at taps behind each convolution first, and what is wrong is found by the call of the node.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gcap/graph_taps.h"
#include "gcap/graph_verify.h"
#include "gcap/kit/cpu_ep.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/kit/ops/nodes.h"
#include "gcap/kit/shape_inference.h"
#include "gtest/gtest.h"
#include "test/nodes/node_rig.h"
#include "test/support/device_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

constexpr int64_t kSide = 8;
constexpr int64_t kChannels = 32;  // in the middle: the first convolution is a kernel of gcap's, the second one cuDNN's
const Shape kX = {1, 2, kSide, kSide}, kHidden = {1, kChannels, kSide, kSide};
const Shape kFirst = {kChannels, 2, 3, 3}, kSecond = {2, kChannels, 3, 3};

// A kernel of the provider's, behind which its output is tapped under the node's name.
struct TappedKernel {
  gcap_kernel_t inner;
  std::string label;

  static gcap_status_t Compute(void* self, const gcap_kernel_context_t* context) {
    const TappedKernel* kernel = static_cast<const TappedKernel*>(self);
    GCAP_RETURN_IF_ERROR(kernel->inner.compute(kernel->inner.self, context));
    const gcap_tensor_t& output = context->outputs[0];
    return gcap_graph_tap_issue(context->resources.cuda_stream, kernel->label.c_str(), output.data,
                                gcap_tensor_bytes(&output));
  }
  static void Destroy(void* self) {
    TappedKernel* kernel = static_cast<TappedKernel*>(self);
    if (kernel->inner.destroy != nullptr) kernel->inner.destroy(kernel->inner.self);
    delete kernel;
  }
};

// The EP of examples/minimal_ep, but for the taps.
class TappingEp {
 public:
  explicit TappingEp(const gcap_options_t& options) {
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime_));
    GCAP_EXPECT_OK(gcap_node_kernels_create(options.device_id, &options.kernels, &kernels_));
    gcap_ep_ops_t ops = {};
    ops.struct_size = sizeof(ops);
    ops.name = "tapping";
    ops.self = this;
    ops.runtime = runtime_;
    ops.supports = [](void* self, const gcap_model_t* model, const gcap_node_t* node) {
      return gcap_node_kernels_supports(Ep(self)->kernels_, model, node);
    };
    ops.input_place = [](void* self, const gcap_model_t* model, const gcap_node_t* node, int input) {
      return gcap_node_kernels_input_place(Ep(self)->kernels_, model, node, input);
    };
    ops.infer_shapes = [](void*, const gcap_model_t*, const gcap_node_t* node, const gcap_tensor_t* inputs,
                          gcap_tensor_t* outputs) { return gcap_infer_shapes(node, inputs, outputs); };
    ops.create_kernel = CreateKernel;
    GCAP_EXPECT_OK(gcap_ep_create(&ops, &ep_));
  }
  ~TappingEp() {
    GCAP_EXPECT_OK(gcap_ep_destroy(ep_));  // and its runtime
    GCAP_EXPECT_OK(gcap_node_kernels_destroy(kernels_));
  }
  TappingEp(const TappingEp&) = delete;
  TappingEp& operator=(const TappingEp&) = delete;

  gcap_ep_t* get() const { return ep_; }
  gcap_runtime_t* runtime() const { return runtime_; }

 private:
  static TappingEp* Ep(void* self) { return static_cast<TappingEp*>(self); }
  static gcap_status_t CreateKernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                    gcap_kernel_t* out_kernel) {
    gcap_run_resources_t resources;
    GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(Ep(self)->runtime_, &resources));
    auto kernel = std::make_unique<TappedKernel>();
    kernel->label = node->name;
    GCAP_RETURN_IF_ERROR(gcap_node_kernels_create_kernel(Ep(self)->kernels_, &resources, model, node, &kernel->inner));
    out_kernel->compute = TappedKernel::Compute;
    out_kernel->destroy = TappedKernel::Destroy;
    out_kernel->self = kernel.release();
    return nullptr;
  }

  gcap_runtime_t* runtime_ = nullptr;
  gcap_node_kernels_t* kernels_ = nullptr;
  gcap_ep_t* ep_ = nullptr;
};

// Small whole numbers, whose sums are exact.
Values Whole(const Shape& shape, int seed) {
  Values values(static_cast<size_t>(Count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>((static_cast<int>(i) * 5 + seed) % 7 - 3);
  return values;
}

// A convolution with filters of 3 x 3 and a border of zeros.
Values ConvolutionOf(const Values& x, const Shape& of_x, const Values& w, const Shape& of_w) {
  Values y(static_cast<size_t>(of_w[0] * kSide * kSide));
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t filter = static_cast<int64_t>(i) / (kSide * kSide);
    const int64_t row = static_cast<int64_t>(i) / kSide % kSide, column = static_cast<int64_t>(i) % kSide;
    for (int64_t at = 0; at < of_x[1] * 9; ++at) {
      const int64_t channel = at / 9, r = row + at / 3 % 3 - 1, c = column + at % 3 - 1;
      if (r < 0 || r >= kSide || c < 0 || c >= kSide) continue;
      y[i] += x[Ravel({0, channel, r, c}, of_x)] * w[Ravel({filter, channel, at / 3 % 3, at % 3}, of_w)];
    }
  }
  return y;
}

Values ReluOf(Values values) {
  for (double& value : values) value = std::max(value, 0.0);
  return values;
}

std::vector<float> FloatsOf(const Values& values) { return std::vector<float>(values.begin(), values.end()); }

class NodesInHoles : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ep_ = std::make_unique<TappingEp>(NodeOptions());
    GCAP_ASSERT_OK(gcap_cpu_ep_create(&cpu_));
    // x -> Conv -> a -> Relu, on the CPU -> b -> Conv -> y
    attributes_.Ints("pads", {1, 1, 1, 1});
    const int x = model_.Value("x", kX), a = model_.Value("a", kHidden), b = model_.Value("b", kHidden);
    const int y = model_.Value("y", kX);
    const int first = model_.Constant("first", kFirst, FloatsOf(Whole(kFirst, 1)));
    const int second = model_.Constant("second", kSecond, FloatsOf(Whole(kSecond, 2)));
    model_.inputs = {x};
    model_.outputs = {y};
    model_.Node("Conv", "conv1", {x, first}, {a}, attributes_.get());
    model_.Node("Relu", "relu", {a}, {b});
    model_.Node("Conv", "conv2", {b, second}, {y}, attributes_.get());
    const gcap_model_t model = model_.Model();
    gcap_ep_t* const eps[] = {cpu_, ep_->get()};
    gcap_session_options_t options;
    gcap_session_options_init(&options);
    options.allow_holes = true;
    GCAP_ASSERT_OK(gcap_session_create(&model, eps, 2, &options, &session_));
    gcap_graph_verify_init(&verify_);
    verify_.each = 1;
    verify_.bisect = true;
    verify_.report = &report_;
    gcap_graph_verify_report_init(&report_);
  }
  void TearDown() override {
    GCAP_EXPECT_OK(gcap_session_destroy(session_));
    ep_.reset();
    GCAP_EXPECT_OK(gcap_ep_destroy(cpu_));
    DeviceTest::TearDown();
  }

  gcap_status_t Run(const DeviceTensor& x, const DeviceTensor& y, gcap_bindings_t bindings = GCAP_BINDINGS_FIXED) {
    conv1_.assign(static_cast<size_t>(Count(kHidden)), 0);
    conv2_.assign(static_cast<size_t>(Count(kX)), 0);
    gcap_graph_tap_t taps[] = {{"conv1", conv1_.data(), conv1_.size() * sizeof(float), 0},
                               {"conv2", conv2_.data(), conv2_.size() * sizeof(float), 0}};
    gcap_run_options_t options = RunWithId(bindings);
    options.bindings = bindings;
    options.verify = &verify_;
    options.taps = taps;
    options.num_taps = 2;
    const gcap_tensor_t input = x.view(), output = y.view();
    return gcap_session_run(session_, &options, &input, &output);
  }
  // What is there for this input. An algorithm of the library may transform, and so round sums of a few thousand.
  void ExpectResults(const DeviceTensor& y, int seed) const {
    const Values a = ConvolutionOf(Whole(kX, seed), kX, Whole(kFirst, 1), kFirst);
    const Values expected = ConvolutionOf(ReluOf(a), kHidden, Whole(kSecond, 2), kSecond);
    const Values actual = y.Get();
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(conv1_[i], a[i], 1e-3) << "element " << i;
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(actual[i], expected[i], 0.05) << "element " << i;
      ASSERT_EQ(conv2_[i], actual[i]) << "element " << i;
    }
  }
  void ExpectRight(DeviceTensor* x, const DeviceTensor& y, int seed, bool is_verified,
                   gcap_bindings_t bindings = GCAP_BINDINGS_FIXED) {
    x->Set(Whole(kX, seed));
    GCAP_ASSERT_OK(Run(*x, y, bindings));
    ExpectResults(y, seed);
    EXPECT_EQ(report_.is_verified, is_verified);
    EXPECT_EQ(report_.different, 0u);
    EXPECT_EQ(report_.tap, SIZE_MAX);
  }

  Attributes attributes_;
  ModelBuilder model_;
  std::unique_ptr<TappingEp> ep_;
  gcap_ep_t* cpu_ = nullptr;
  gcap_session_t* session_ = nullptr;
  std::vector<float> conv1_, conv2_;  // the taps
  gcap_graph_verify_t verify_;
  gcap_graph_verify_report_t report_;
};

TEST_F(NodesInHoles, ReplaysAreComparedWithTheNodesAtEachTap) {
  for (const gcap_bindings_t bindings : {GCAP_BINDINGS_FIXED, GCAP_BINDINGS_COPY, GCAP_BINDINGS_RELOCATE}) {
    SCOPED_TRACE(bindings);
    DeviceTensor x(GCAP_DTYPE_F32, kX), y(GCAP_DTYPE_F32, kX), other_x(GCAP_DTYPE_F32, kX), other_y(GCAP_DTYPE_F32, kX);
    for (int run = 0; run < 6; ++run) {
      const bool moves = bindings != GCAP_BINDINGS_FIXED && run % 2 == 1;
      ExpectRight(moves ? &other_x : &x, moves ? other_y : y, run, run >= 2, bindings);
    }
    EXPECT_EQ(GraphInfo(ep_->runtime(), bindings).holes, 1u);
    EXPECT_EQ(GraphInfo(ep_->runtime(), bindings).captures, 1u);
  }
}

// The first convolution of the graph reads the tensor of its capture, and its tap is the first to show that.
TEST_F(NodesInHoles, AStaleInputShowsAtTheTapBeforeTheHole) {
  DeviceTensor x(GCAP_DTYPE_F32, kX), y(GCAP_DTYPE_F32, kX), other(GCAP_DTYPE_F32, kX, Whole(kX, 5));
  for (int run = 0; run < 3; ++run) ExpectRight(&x, y, run, run == 2);
  const LogCatcher log;
  const Outcome run(Run(other, y));
  EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
  EXPECT_EQ(report_.tap, 0u) << run.message;
  EXPECT_TRUE(run.Names("tap 'conv1'")) << run.message;
  EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_STALE_POINTER) << run.message;
  EXPECT_TRUE(run.Names("stale pointer: node 0 of ")) << run.message;
  ExpectResults(y, 5);
}

// The second one writes to the tensor of its capture, and its tap reads from there.
TEST_F(NodesInHoles, AStaleOutputIsFoundBehindTheHole) {
  DeviceTensor x(GCAP_DTYPE_F32, kX), y(GCAP_DTYPE_F32, kX), other(GCAP_DTYPE_F32, kX);
  for (int run = 0; run < 3; ++run) ExpectRight(&x, y, run, run == 2);
  const LogCatcher log;
  const Outcome run(Run(x, other));
  EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
  EXPECT_EQ(report_.tap, SIZE_MAX) << "what is tapped is right: " << run.message;
  EXPECT_EQ(report_.buffer, 1u);
  EXPECT_TRUE(run.Names("buffer 1 'y'")) << run.message;
  EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_STALE_POINTER) << run.message;
  EXPECT_TRUE(run.Names("cudnn")) << "the call of the node: " << run.message;
  ExpectResults(other, 2);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
