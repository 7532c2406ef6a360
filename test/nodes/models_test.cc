// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The small models of the tests of ONNX Runtime's CUDA EP, with the names that these have, on the provider of
// examples/minimal_ep: captured and replayed, on each device, with and without a CUDA memory pool. All numbers are
// small integers, so every sum is exact in every type and order.

#include <string>
#include <tuple>
#include <vector>

#include "gcap/kit/cpu_ep.h"
#include "gcap/kit/ops/nodes.h"
#include "gcap/kit/shape_inference.h"
#include "gtest/gtest.h"
#include "test/nodes/node_rig.h"
#include "test/support/device_test.h"
#include "test/support/session_info.h"

namespace gcap {
namespace testing {
namespace {

// first, first + step, ... with a period, so that no sum is large.
Values Sequence(int64_t count, int first) {
  Values values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>((first + i) % 7 - 3));
  return values;
}

Values ProductOf(const Values& a, const Values& b, int64_t m, int64_t k, int64_t n) {
  Values y(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t at = 0; at < k; ++at) y[i * n + j] += a[i * k + at] * b[at * n + j];
    }
  }
  return y;
}

// y = a x b; of open sizes if `open`.
ModelBuilder MatMulModel(bool open) {
  ModelBuilder m;
  const int64_t rows = open ? m.Symbol("m") : 3, depth = open ? m.Symbol("k") : 4, columns = open ? m.Symbol("n") : 5;
  const int a = m.Value("A", {rows, depth}), b = m.Value("B", {depth, columns}), y = m.Value("Y", {rows, columns});
  m.inputs = {a, b};
  m.outputs = {y};
  m.Node("MatMul", "matmul", {a, b}, {y});
  return m;
}

// The tensors of a product of some shape.
struct Product {
  Product(int64_t rows, int64_t depth, int64_t columns)
      : m(rows),
        k(depth),
        n(columns),
        a(GCAP_DTYPE_F32, {m, k}),
        b(GCAP_DTYPE_F32, {k, n}),
        y(GCAP_DTYPE_F32, {m, n}) {}

  void ExpectRightRun(NodeSession* session, int graph_id, int seed) {
    const Values left = Sequence(m * k, seed), right = Sequence(k * n, 3 * seed + 1);
    a.Set(left);
    b.Set(right);
    y.Set(Values(static_cast<size_t>(m * n), 77.0));
    GCAP_ASSERT_OK(session->Run(graph_id, {a.view(), b.view()}, {y.view()}));
    EXPECT_EQ(y.Get(), ProductOf(left, right, m, k, n));
  }

  int64_t m, k, n;
  DeviceTensor a, b, y;
};

using Parameter = std::tuple<int, bool>;

// Device and memory pool.
class SmallModels : public DeviceTest, public ::testing::WithParamInterface<Parameter> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    int devices = 0;
    GCAP_EXPECT_CUDA(cudaGetDeviceCount(&devices));
    if (device() >= devices) GTEST_SKIP() << "needs device " << device() << ", this machine has " << devices;
    GCAP_EXPECT_CUDA(cudaSetDevice(device()));
  }
  void TearDown() override { GCAP_EXPECT_CUDA(cudaSetDevice(0)); }

  static int device() { return std::get<0>(GetParam()); }
  static gcap_options_t Options() {
    gcap_options_t options = NodeOptions();
    options.device_id = device();
    options.use_mempool = std::get<1>(GetParam());
    return options;
  }
};

TEST_P(SmallModels, MatMulIsCapturedAndReplayedWithUpdatedInputs) {
  const ModelBuilder model = MatMulModel(/*open=*/false);
  NodeSession session(Options());
  GCAP_ASSERT_OK(session.Create(model));
  Product product(3, 4, 5);
  for (int run = 0; run < 5; ++run) product.ExpectRightRun(&session, /*graph_id=*/0, run);
  EXPECT_EQ(session.Info(0).captures, 1u);
  EXPECT_EQ(session.Info(0).replays, 4u);
}

TEST_P(SmallModels, AnnotationIdsHaveDynamicShapes) {
  const ModelBuilder model = MatMulModel(/*open=*/true);
  NodeSession session(Options());
  GCAP_ASSERT_OK(session.Create(model));
  Product first(2, 3, 4), second(4, 5, 6);
  for (int run = 0; run < 5; ++run) {
    first.ExpectRightRun(&session, 1, run);
    second.ExpectRightRun(&session, 2, 10 + run);
  }
  for (int id : {1, 2}) {
    EXPECT_EQ(session.Info(id).captures, 1u);
    EXPECT_EQ(session.Info(id).replays, 4u);
  }
}

TEST_P(SmallModels, ReleaseOfAnIdLeavesTheOthersAndItsNextRunsCaptureAgain) {
  const ModelBuilder model = MatMulModel(/*open=*/true);
  NodeSession session(Options());
  GCAP_ASSERT_OK(session.Create(model));
  Product first(2, 3, 4), second(4, 5, 6);
  for (int run = 0; run < 2; ++run) {
    first.ExpectRightRun(&session, 1, run);
    second.ExpectRightRun(&session, 2, run);
  }
  GCAP_ASSERT_OK(gcap_session_release_captured_graph(session.session(), 1));
  EXPECT_FALSE(gcap_runtime_is_captured(gcap_ep_runtime(session.ep()), 1));
  EXPECT_TRUE(gcap_runtime_is_captured(gcap_ep_runtime(session.ep()), 2));
  const uint64_t replays = session.Info(2).replays;
  second.ExpectRightRun(&session, 2, 20);
  EXPECT_EQ(session.Info(2).replays, replays + 1);
  EXPECT_EQ(session.Info(2).captures, 1u);
  for (int run = 0; run < 3; ++run) first.ExpectRightRun(&session, 1, 30 + run);
  EXPECT_TRUE(gcap_runtime_is_captured(gcap_ep_runtime(session.ep()), 1));
}

TEST_P(SmallModels, AddIsCapturedAndReplayed) {
  ModelBuilder m;
  const int a = m.Value("A", {2, 3}), b = m.Value("B", {2, 3}), y = m.Value("Y", {2, 3});
  m.inputs = {a, b};
  m.outputs = {y};
  m.Node("Add", "add", {a, b}, {y});
  NodeSession session(Options());
  GCAP_ASSERT_OK(session.Create(m));
  DeviceTensor left(GCAP_DTYPE_F32, {2, 3}), right(GCAP_DTYPE_F32, {2, 3}), sum(GCAP_DTYPE_F32, {2, 3});
  for (int run = 0; run < 4; ++run) {
    Values expected = Sequence(6, run);
    left.Set(expected);
    right.Set(Values(6, 10.0 * run));
    for (double& value : expected) value += 10.0 * run;
    GCAP_ASSERT_OK(session.Run(0, {left.view(), right.view()}, {sum.view()}));
    EXPECT_EQ(sum.Get(), expected);
  }
  EXPECT_EQ(session.Info(0).captures, 1u);
}

// Upstream's mul_1.onnx: Y = X * W, with W = 1..6.
TEST_P(SmallModels, Mul1IsReplayedWithUpdatedInputs) {
  ModelBuilder m;
  const int x = m.Value("X", {3, 2}), w = m.Constant("W", {3, 2}, {1, 2, 3, 4, 5, 6}), y = m.Value("Y", {3, 2});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Mul", "mul_1", {x, w}, {y});
  NodeSession session(Options());
  GCAP_ASSERT_OK(session.Create(m));
  DeviceTensor in(GCAP_DTYPE_F32, {3, 2}), out(GCAP_DTYPE_F32, {3, 2});
  in.Set({1, 2, 3, 4, 5, 6});
  for (int run = 0; run < 3; ++run) {
    out.Set(Values(6, 77.0));
    GCAP_ASSERT_OK(session.Run(0, {in.view()}, {out.view()}));
    EXPECT_EQ(out.Get(), Values({1, 4, 9, 16, 25, 36}));
  }
  ASSERT_TRUE(gcap_runtime_is_captured(gcap_ep_runtime(session.ep()), 0));
  in.Set({2, 3, 4, 5, 6, 7});
  GCAP_ASSERT_OK(session.Run(0, {in.view()}, {out.view()}));
  EXPECT_EQ(out.Get(), Values({2, 6, 12, 20, 30, 42}));
  EXPECT_EQ(session.Info(0).captures, 1u);
}

// Relu(x [2,8] * w [8,8] + c), in f16.
TEST_P(SmallModels, HalfPrecisionIsCapturedAndReplayed) {
  const gcap_dtype_t f16 = GCAP_DTYPE_F16;
  ModelBuilder m;
  const int x = m.Value("x", {2, 8}, f16), w = m.Value("w", {8, 8}, f16), c = m.Value("c", {8}, f16);
  const int product = m.Value("product", {2, 8}, f16), sum = m.Value("sum", {2, 8}, f16), y = m.Value("y", {2, 8}, f16);
  m.inputs = {x, w, c};
  m.outputs = {y};
  m.Node("MatMul", "matmul", {x, w}, {product});
  m.Node("Add", "add", {product, c}, {sum});
  m.Node("Relu", "relu", {sum}, {y});
  NodeSession session(Options());
  GCAP_ASSERT_OK(session.Create(m));
  DeviceTensor in(f16, {2, 8}), weight(f16, {8, 8}), addend(f16, {8}), out(f16, {2, 8});
  for (int run = 0; run < 4; ++run) {
    const Values a = Sequence(16, run), b = Sequence(64, 5 * run), bias = Sequence(8, 2 * run);
    in.Set(a);
    weight.Set(b);
    addend.Set(bias);
    GCAP_ASSERT_OK(session.Run(0, {in.view(), weight.view(), addend.view()}, {out.view()}));
    Values expected = ProductOf(a, b, 2, 8, 8);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(expected[i] + bias[i % 8], 0.0);
    EXPECT_EQ(out.Get(), expected);
  }
  EXPECT_EQ(session.Info(0).captures, 1u);
}

// --- Shape nodes ----------------------------------------------------------------------------------------------------

// x [batch,2,3] -> Shape -> Gather its first -> Concat with -1 -> Reshape x to [batch,6].
ModelBuilder ShapeModel(Attributes* axis_0) {
  axis_0->Int("axis", 0);
  ModelBuilder m;
  const int64_t batch = m.Symbol("batch");
  const int x = m.Value("x", {batch, 2, 3}), shape = m.Value("shape", {3}, GCAP_DTYPE_I64);
  const int zero = m.Integers("zero", {0}), rest = m.Integers("rest", {-1});
  const int first = m.Value("first", {1}, GCAP_DTYPE_I64), wanted = m.Value("wanted", {2}, GCAP_DTYPE_I64);
  const int y = m.Value("y", {batch, GCAP_DIM_INFERRED});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Shape", "shape_of_x", {x}, {shape});
  m.Node("Gather", "first_of_shape", {shape, zero}, {first}, axis_0->get());
  m.Node("Concat", "wanted_shape", {first, rest}, {wanted}, axis_0->get());
  m.Node("Reshape", "reshape", {x, wanted}, {y});
  return m;
}

TEST_P(SmallModels, ShapeNodesOnTheCpuEpAreCaptured) {
  gcap_ep_t* cpu = nullptr;
  GCAP_ASSERT_OK(gcap_cpu_ep_create(&cpu));
  {
    Attributes axis_0;
    const ModelBuilder model = ShapeModel(&axis_0);
    NodeSession session(Options());
    GCAP_ASSERT_OK(session.Create(model, cpu));
    EXPECT_TRUE(SessionInfo(session.session()).captures);
    const std::string eps[] = {"cpu", "cpu", "cpu", "minimal"};
    for (int node = 0; node < 4; ++node) {
      EXPECT_EQ(gcap_session_node_ep_name(session.session(), node), eps[node]) << "node " << node;
    }
    DeviceTensor x2(GCAP_DTYPE_F32, {2, 2, 3}), y2(GCAP_DTYPE_F32, {2, 6});
    DeviceTensor x3(GCAP_DTYPE_F32, {3, 2, 3}), y3(GCAP_DTYPE_F32, {3, 6});
    for (int run = 0; run < 4; ++run) {
      x2.Set(Sequence(12, run));
      x3.Set(Sequence(18, run + 3));
      GCAP_ASSERT_OK(session.Run(1, {x2.view()}, {y2.view()}));
      GCAP_ASSERT_OK(session.Run(2, {x3.view()}, {y3.view()}));
      EXPECT_EQ(y2.Get(), Sequence(12, run));
      EXPECT_EQ(y3.Get(), Sequence(18, run + 3));
    }
    EXPECT_EQ(session.Info(1).captures, 1u);
    EXPECT_EQ(session.Info(2).captures, 1u);
  }
  GCAP_EXPECT_OK(gcap_ep_destroy(cpu));
}

// An EP of the same kernels whose table has no policy: all nodes must be on it.
class StrictEp {
 public:
  explicit StrictEp(const gcap_options_t& options) {
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime_));
    GCAP_EXPECT_OK(gcap_node_kernels_create(options.device_id, &options.kernels, &kernels_));
    gcap_ep_ops_t ops = {};
    ops.struct_size = sizeof(ops);
    ops.name = "strict";
    ops.self = this;
    ops.runtime = runtime_;
    ops.supports = [](void* self, const gcap_model_t* model, const gcap_node_t* node) {
      return gcap_node_kernels_supports(static_cast<StrictEp*>(self)->kernels_, model, node);
    };
    ops.input_place = [](void* self, const gcap_model_t* model, const gcap_node_t* node, int input) {
      return gcap_node_kernels_input_place(static_cast<StrictEp*>(self)->kernels_, model, node, input);
    };
    ops.create_kernel = [](void* self, const gcap_model_t* model, const gcap_node_t* node, gcap_kernel_t* out) {
      StrictEp* ep = static_cast<StrictEp*>(self);
      gcap_run_resources_t resources;
      GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(ep->runtime_, &resources));
      return gcap_node_kernels_create_kernel(ep->kernels_, &resources, model, node, out);
    };
    ops.infer_shapes = [](void*, const gcap_model_t*, const gcap_node_t* node, const gcap_tensor_t* inputs,
                          gcap_tensor_t* outputs) { return gcap_infer_shapes(node, inputs, outputs); };
    GCAP_EXPECT_OK(gcap_ep_create(&ops, &ep_));
  }
  ~StrictEp() {
    GCAP_EXPECT_OK(gcap_ep_destroy(ep_));  // ends the runtime
    GCAP_EXPECT_OK(gcap_node_kernels_destroy(kernels_));
  }
  StrictEp(const StrictEp&) = delete;
  gcap_ep_t* get() { return ep_; }

 private:
  gcap_runtime_t* runtime_ = nullptr;
  gcap_node_kernels_t* kernels_ = nullptr;
  gcap_ep_t* ep_ = nullptr;
};

TEST_P(SmallModels, ShapeNodesAreRefusedByNameIfAllNodesMustBeOnTheEp) {
  gcap_ep_t* cpu = nullptr;
  GCAP_ASSERT_OK(gcap_cpu_ep_create(&cpu));
  {
    Attributes axis_0;
    const ModelBuilder builder = ShapeModel(&axis_0);
    const gcap_model_t model = builder.Model();
    StrictEp strict(Options());
    gcap_ep_t* const eps[] = {strict.get(), cpu};
    gcap_session_t* session = nullptr;
    GCAP_EXPECT_FAILS(gcap_session_create(&model, eps, 2, nullptr, &session), GCAP_FAILED_PRECONDITION,
                      "node 'shape_of_x' (Shape) on EP 'cpu'");
    EXPECT_EQ(session, nullptr);
  }
  GCAP_EXPECT_OK(gcap_ep_destroy(cpu));
}

// --- A user's stream ------------------------------------------------------------------------------------------------

// Nothing waits between the runs: the copies and runs of one stream are in order.
TEST_P(SmallModels, RunsOnAUserStreamAreAsynchronous) {
  cudaStream_t stream = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  constexpr int kRuns = 6, kCount = 12;
  float *in = nullptr, *out = nullptr;  // a run each
  GCAP_EXPECT_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&in), kRuns * kCount * sizeof(float), 0));
  GCAP_EXPECT_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&out), kRuns * kCount * sizeof(float), 0));
  for (int i = 0; i < kRuns * kCount; ++i) in[i] = static_cast<float>(i % 11 - 5);
  {
    ModelBuilder m;
    const int x = m.Value("x", {kCount}), y = m.Value("y", {kCount});
    m.inputs = {x};
    m.outputs = {y};
    m.Node("Abs", "abs", {x}, {y});
    gcap_options_t options = Options();
    options.has_user_stream = true;
    options.user_stream = stream;
    DeviceTensor from(GCAP_DTYPE_F32, {kCount}), to(GCAP_DTYPE_F32, {kCount});
    NodeSession session(options);
    GCAP_ASSERT_OK(session.Create(m));
    gcap_run_options_t run_options = RunWithId(0);
    run_options.synchronize = false;
    const gcap_tensor_t input = from.view(), output = to.view();
    const size_t bytes = kCount * sizeof(float);
    for (int run = 0; run < kRuns; ++run) {
      GCAP_EXPECT_CUDA(cudaMemcpyAsync(input.data, in + run * kCount, bytes, cudaMemcpyHostToDevice, stream));
      GCAP_EXPECT_OK(gcap_session_run(session.session(), &run_options, &input, &output));
      GCAP_EXPECT_CUDA(cudaMemcpyAsync(out + run * kCount, output.data, bytes, cudaMemcpyDeviceToHost, stream));
    }
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(session.Info(0).captures, 1u);
    EXPECT_EQ(session.Info(0).replays, kRuns - 1u);
  }
  for (int i = 0; i < kRuns * kCount; ++i) EXPECT_EQ(out[i], std::fabs(in[i])) << "element " << i;
  GCAP_EXPECT_CUDA(cudaFreeHost(in));
  GCAP_EXPECT_CUDA(cudaFreeHost(out));
  GCAP_EXPECT_CUDA(cudaStreamDestroy(stream));
}

INSTANTIATE_TEST_SUITE_P(Devices, SmallModels, ::testing::Combine(::testing::Values(0, 1), ::testing::Bool()),
                         [](const ::testing::TestParamInfo<Parameter>& info) {
                           return "Of" + std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "WithAMempool" : "WithoutAMempool");
                         });

}  // namespace
}  // namespace testing
}  // namespace gcap
