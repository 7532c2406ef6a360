// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions before their first run: which EP takes a model, which models are refused and how, and what is left of a
// session that could not be made.

#include <climits>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gcap/capture.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"
#include "test/support/log_catcher.h"
#include "test/support/runs.h"
#include "test/support/session_info.h"

namespace {

using gcap::testing::DeviceFloats;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::ModelBuilder;
using gcap::testing::Outcome;
using gcap::testing::SessionInfo;
using gcap::testing::Tensor;
using gcap::testing::TestEp;
using gcap::testing::TestEpConfig;

class SessionCreate : public gcap::testing::DeviceTest {
 protected:
  TestEp* Ep(const TestEpConfig& config = {}, bool captures = true) {
    std::unique_ptr<TestEp> ep;
    gcap_options_t options = GraphOptions();
    options.enable_cuda_graph = captures;
    GCAP_EXPECT_OK(TestEp::Create(options, config, &ep));
    eps_.push_back(std::move(ep));
    return eps_.back().get();
  }

  Outcome Create(const gcap_model_t& model) {
    std::vector<gcap_ep_t*> eps;
    for (const auto& ep : eps_) eps.push_back(ep->get());
    session_ = reinterpret_cast<gcap_session_t*>(this);
    return Outcome(gcap_session_create(&model, eps.data(), eps.size(), nullptr, &session_));
  }

  void TearDown() override { GCAP_EXPECT_OK(gcap_session_destroy(session_)); }

  std::vector<std::unique_ptr<TestEp>> eps_;
  gcap_session_t* session_ = nullptr;
};

// x -> Rotate -> a -> Rotate -> y
ModelBuilder TwoNodes() {
  ModelBuilder m;
  const int x = m.Value("x", {4}), a = m.Value("a", {4}), y = m.Value("y", {4});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "first", {x}, {a});
  m.Node("Rotate", "second", {a}, {y});
  return m;
}

TEST_F(SessionCreate, DestroyOfNullIsFine) { GCAP_EXPECT_OK(gcap_session_destroy(nullptr)); }

TEST_F(SessionCreate, RunOptionsDefaultToGraphZeroAndSynchronize) {
  gcap_run_options_t options = {};
  options.graph_id = 5;
  gcap_run_options_init(&options);
  EXPECT_EQ(options.graph_id, 0);
  EXPECT_TRUE(options.synchronize);
}

// --- Choice of the EP -----------------------------------------------------------------------------------------------

TEST_F(SessionCreate, FirstEpThatSupportsANodeTakesIt) {
  Ep({"none", {}, "", true}, /*captures=*/false);
  TestEp* half = Ep({"half", {"Rotate"}, "", true}, /*captures=*/false);
  TestEp* whole = Ep({"whole", {"Rotate", "Bounce"}, "", true}, /*captures=*/false);
  TestEp* late = Ep({"late", {"Rotate", "Bounce"}, "", true}, /*captures=*/false);
  ModelBuilder m = TwoNodes();
  m.nodes[1].op_type = "Bounce";
  gcap::testing::NodeControl control;
  m.nodes[1].attributes = &control;
  EXPECT_TRUE(Create(m.Model()).ok());
  EXPECT_STREQ(gcap_session_node_ep_name(session_, 0), "half");
  EXPECT_STREQ(gcap_session_node_ep_name(session_, 1), "whole");
  EXPECT_STREQ(SessionInfo(session_).ep_name, "half");
  EXPECT_FALSE(SessionInfo(session_).captures);
  EXPECT_EQ(half->live_kernels(), 1);
  EXPECT_EQ(whole->live_kernels(), 1);
  EXPECT_EQ(late->live_kernels(), 0);
  GCAP_EXPECT_OK(late->End());  // an EP without a node is not claimed
}

TEST_F(SessionCreate, NodeThatNoEpSupportsIsNamedWithTheEps) {
  Ep({"none", {}, "", true});
  Ep({"half", {"Rotate"}, "", true});
  ModelBuilder m = TwoNodes();
  m.nodes[1].op_type = "Softmax";
  const Outcome outcome = Create(m.Model());
  EXPECT_EQ(outcome.code, GCAP_UNIMPLEMENTED);
  EXPECT_TRUE(outcome.Names("no EP supports node 'second' (Softmax); asked were EPs 'none', 'half'"))
      << outcome.message;
  EXPECT_EQ(session_, nullptr);
}

TEST_F(SessionCreate, NoEpIsRefused) {
  const Outcome outcome = Create(TwoNodes().Model());
  EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
  EXPECT_TRUE(outcome.Names("at least one EP")) << outcome.message;
  EXPECT_EQ(session_, nullptr);
}

// Was: followed.
TEST_F(SessionCreate, EpThatIsNullIsNamedByItsIndex) {
  gcap_ep_t* const eps[] = {Ep()->get(), nullptr};
  const ModelBuilder m = TwoNodes();
  const gcap_model_t model = m.Model();
  GCAP_EXPECT_FAILS(gcap_session_create(&model, eps, 2, nullptr, &session_), GCAP_INVALID_ARGUMENT, "eps[1] is NULL");
  EXPECT_EQ(session_, nullptr);
}

// An EP whose members do the least that they must.
gcap_ep_ops_t SparseOps() {
  gcap_ep_ops_t ops = {};
  ops.struct_size = sizeof(gcap_ep_ops_t);
  ops.name = "sparse";
  ops.supports = [](void*, const gcap_model_t*, const gcap_node_t*) { return true; };
  ops.create_kernel = [](void*, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t*) { return gcap_status_t{}; };
  return ops;
}

// Was: followed.
TEST_F(SessionCreate, ResourceThatAnEpLeavesOutIsNamed) {
  const ModelBuilder m = TwoNodes();
  const gcap_model_t model = m.Model();
  gcap_ep_ops_t ops = SparseOps();
  gcap_runtime_ops_t table = ForwardingOps::Least(Ep()->runtime());
  const struct {
    const char* left_out;
    gcap_status_t (*get)(void*, gcap_run_resources_t*);
  } rows[] = {
      {"stream", [](void*, gcap_run_resources_t*) { return gcap_status_t{}; }},
      {"scratch",
       [](void* self, gcap_run_resources_t* out) {
         GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(static_cast<gcap_runtime_t*>(self), out));
         out->scratch = nullptr;
         return gcap_status_t{};
       }},
      {"allocator",
       [](void* self, gcap_run_resources_t* out) {
         GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(static_cast<gcap_runtime_t*>(self), out));
         out->allocator = nullptr;
         return gcap_status_t{};
       }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.left_out);
    table.get_resources = row.get;
    GCAP_ASSERT_OK(gcap_runtime_create_from(&table, &ops.runtime));
    gcap_ep_t* ep = nullptr;
    GCAP_ASSERT_OK(gcap_ep_create(&ops, &ep));
    GCAP_EXPECT_FAILS(gcap_session_create(&model, &ep, 1, nullptr, &session_), GCAP_INVALID_ARGUMENT,
                      "EP 'sparse': get_resources of its runtime left " + std::string(row.left_out) + " NULL");
    EXPECT_EQ(session_, nullptr);
    GCAP_EXPECT_OK(gcap_ep_destroy(ep));  // and the runtime of the table
  }
}

// A runtime whose table has no resources at the nth question.
struct Miser {
  gcap_runtime_t* runtime;
  int refuses_at;  // counted down; 0: it has refused

  static gcap_status_t Get(void* self, gcap_run_resources_t* out) {
    auto* miser = static_cast<Miser*>(self);
    if (miser->refuses_at > 0 && --miser->refuses_at == 0) return GCAP_STATUS(GCAP_UNAVAILABLE, "no resources now");
    return gcap_runtime_get_resources(miser->runtime, out);
  }
  static gcap_status_t Synchronize(void* self) { return gcap_runtime_synchronize(static_cast<Miser*>(self)->runtime); }
};

// Whoever asks: a creation, which copies constants; a run; one in order with its caller's stream, or in a capture.
TEST_F(SessionCreate, EachCallThatGetsNoResourcesFails) {
  ModelBuilder m;
  const int read = m.Value("x", {4}), a = m.Value("a", {4}), c = m.Constant("c", {4}, {1, 2, 3, 4});
  const int made = m.Value("y", {4});
  m.inputs = {read};
  m.outputs = {made};
  m.Node("Rotate", "first", {read}, {a});
  m.Node("Join", "second", {a, c}, {made});
  const gcap_model_t model = m.Model();
  const DeviceFloats x(Floats(4)), y(Floats(4));
  const gcap_tensor_t input = Tensor(x.get(), {4}), output = Tensor(y.get(), {4});
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  gcap_run_options_t options, on_stream;
  gcap_run_options_init(&options);
  gcap_run_options_init(&on_stream);
  on_stream.user_stream = stream;
  Miser miser = {Ep()->runtime(), 0};
  gcap_ep_ops_t ops = SparseOps();
  ops.create_kernel = [](void*, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t* out_kernel) {
    out_kernel->compute = [](void*, const gcap_kernel_context_t*) { return gcap_status_t{}; };
    return gcap_status_t{};
  };
  gcap_runtime_ops_t table = {};
  table.struct_size = sizeof(table);
  table.self = &miser;
  table.get_resources = Miser::Get;
  table.synchronize = Miser::Synchronize;
  bool has_refused = true;
  int question = 0;
  while (has_refused) {
    SCOPED_TRACE(++question);
    GCAP_ASSERT_OK(gcap_runtime_create_from(&table, &ops.runtime));
    gcap_ep_t* ep = nullptr;
    GCAP_ASSERT_OK(gcap_ep_create(&ops, &ep));
    miser.refuses_at = question;
    Outcome outcome(gcap_session_create(&model, &ep, 1, nullptr, &session_));
    EXPECT_EQ(session_ != nullptr, outcome.ok());
    if (outcome.ok()) outcome = Outcome(gcap_session_run(session_, &options, &input, &output));
    if (outcome.ok()) outcome = Outcome(gcap_session_run(session_, &on_stream, &input, &output));
    if (outcome.ok()) {
      gcap_capture_t* capture = nullptr;
      cudaGraph_t graph = nullptr;
      gcap_retained_t* retained = nullptr;
      GCAP_ASSERT_OK(gcap_capture_begin(stream, nullptr, &capture));
      outcome = Outcome(gcap_session_run(session_, &options, &input, &output));
      EXPECT_EQ(Outcome(gcap_capture_end(capture, &graph, &retained)).ok(), outcome.ok());
      if (graph != nullptr) {
        EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
      }
      gcap_retained_release(retained);
    }
    has_refused = miser.refuses_at == 0;
    EXPECT_EQ(outcome.ok(), !has_refused);
    EXPECT_EQ(outcome.Names("no resources now"), has_refused) << outcome.message;
    miser.refuses_at = 0;
    GCAP_EXPECT_OK(gcap_session_destroy(session_));
    session_ = nullptr;
    GCAP_EXPECT_OK(gcap_ep_destroy(ep));  // and the runtime of the table
  }
  EXPECT_GT(question, 6) << "a creation asks twice, and each run";
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(SessionCreate, KernelThatCannotBeMadeNamesItsNodeAndLeavesNothing) {
  TestEp* ep = Ep({"broken", {"Rotate", "Bounce"}, "Bounce", true});
  ModelBuilder m = TwoNodes();
  m.nodes[1].op_type = "Bounce";
  const Outcome outcome = Create(m.Model());
  EXPECT_EQ(outcome.code, GCAP_LIBRARY_ERROR);
  EXPECT_TRUE(outcome.Names("the kernel of node 'second'")) << outcome.message;
  EXPECT_TRUE(outcome.Names("no plan for Bounce")) << outcome.message;
  EXPECT_EQ(session_, nullptr);
  EXPECT_EQ(ep->live_kernels(), 0);
}

// --- Models ---------------------------------------------------------------------------------------------------------

// How a model is spoiled, and what the refusal says of it.
struct Malformed {
  const char* named;
  std::function<void(ModelBuilder*, gcap_model_t*)> spoil;
};

void ExpectRefused(const std::vector<Malformed>& rows, const std::function<Outcome(const gcap_model_t&)>& create) {
  for (const Malformed& row : rows) {
    SCOPED_TRACE(row.named);
    ModelBuilder m = TwoNodes();
    gcap_model_t model = m.Model();
    row.spoil(&m, &model);
    const Outcome outcome = create(model);
    EXPECT_STREQ(gcap_code_name(outcome.code), "INVALID_ARGUMENT");
    EXPECT_TRUE(outcome.Names(row.named)) << outcome.message;
  }
}

TEST_F(SessionCreate, ModelWithoutValuesOrNodesIsRefused) {
  Ep();
  ExpectRefused(
      {
          {"0 values and 2 nodes", [](ModelBuilder*, gcap_model_t* model) { model->num_values = 0; }},
          {"-1 values", [](ModelBuilder*, gcap_model_t* model) { model->num_values = -1; }},
          {"3 values and 0 nodes", [](ModelBuilder*, gcap_model_t* model) { model->num_nodes = 0; }},
          {"-2147483648 nodes", [](ModelBuilder*, gcap_model_t* model) { model->num_nodes = INT_MIN; }},
          // Was: "3 values and 2 nodes; at least one of each is needed".
          {"values is NULL, num_values is 3", [](ModelBuilder*, gcap_model_t* model) { model->values = nullptr; }},
          {"nodes is NULL, num_nodes is 2", [](ModelBuilder*, gcap_model_t* model) { model->nodes = nullptr; }},
      },
      [&](const gcap_model_t& model) { return Create(model); });
}

TEST_F(SessionCreate, MalformedValueIsNamed) {
  Ep();
  ExpectRefused(
      {
          {"value 1 has no name", [](ModelBuilder* m, gcap_model_t*) { m->values[1].name = nullptr; }},
          {"value 'a': dtype is 8, allowed is f32 (0) to u8 (7)",
           [](ModelBuilder* m, gcap_model_t*) { m->values[1].dtype = static_cast<gcap_dtype_t>(8); }},
          {"value 'a': rank is -1", [](ModelBuilder* m, gcap_model_t*) { m->values[1].rank = -1; }},
          {"value 'a': rank is 9, allowed is 0..8", [](ModelBuilder* m, gcap_model_t*) { m->values[1].rank = 9; }},
          {"value 'a': dimension 0 is -4", [](ModelBuilder* m, gcap_model_t*) { m->values[1].shape[0] = -4; }},
          {"value 'a': dimension 0 is 9223372036854775807",
           [](ModelBuilder* m, gcap_model_t*) { m->values[1].shape[0] = INT64_MAX; }},
          {"value 'a': dimension 1 is 2147483648",
           [](ModelBuilder* m, gcap_model_t*) {
             m->values[1].rank = 2;
             m->values[1].shape[0] = int64_t{1} << 31;  // 2^31 * 2^31 * 4 bytes are 2^64
             m->values[1].shape[1] = int64_t{1} << 31;
           }},
      },
      [&](const gcap_model_t& model) { return Create(model); });
}

TEST_F(SessionCreate, MalformedNodeIsNamed) {
  Ep();
  static const int kTooLarge[] = {3}, kNegative[] = {-1};
  ExpectRefused(
      {
          {"node 1 has no name", [](ModelBuilder* m, gcap_model_t*) { m->nodes[1].name = nullptr; }},
          {"node 'second' has no op_type", [](ModelBuilder* m, gcap_model_t*) { m->nodes[1].op_type = nullptr; }},
          {"second: -1 inputs", [](ModelBuilder* m, gcap_model_t*) { m->nodes[1].num_inputs = -1; }},
          {"second: -1 outputs", [](ModelBuilder* m, gcap_model_t*) { m->nodes[1].num_outputs = -1; }},
          {"second: 1 inputs given as NULL", [](ModelBuilder* m, gcap_model_t*) { m->nodes[1].inputs = nullptr; }},
          {"second: 1 outputs given as NULL", [](ModelBuilder* m, gcap_model_t*) { m->nodes[1].outputs = nullptr; }},
          {"second: input 0 is value 3, the model has values 0..2",
           [](ModelBuilder* m, gcap_model_t*) { m->nodes[1].inputs = kTooLarge; }},
          {"second: output 0 is value -1", [](ModelBuilder* m, gcap_model_t*) { m->nodes[1].outputs = kNegative; }},
      },
      [&](const gcap_model_t& model) { return Create(model); });
}

TEST_F(SessionCreate, MalformedInputsAndOutputsOfTheModelAreNamed) {
  Ep();
  static const int kTooLarge[] = {3}, kTwice[] = {0, 0}, kInput[] = {0}, kConstant[] = {1}, kBoth[] = {2, 2};
  static const float kContent[4] = {};
  ExpectRefused(
      {
          {"model: -1 inputs", [](ModelBuilder*, gcap_model_t* model) { model->num_inputs = -1; }},
          {"model: 1 inputs given as NULL", [](ModelBuilder*, gcap_model_t* model) { model->inputs = nullptr; }},
          {"model: 1 outputs given as NULL", [](ModelBuilder*, gcap_model_t* model) { model->outputs = nullptr; }},
          {"model: input 0 is value 3", [](ModelBuilder*, gcap_model_t* model) { model->inputs = kTooLarge; }},
          {"model: output 0 is value 3", [](ModelBuilder*, gcap_model_t* model) { model->outputs = kTooLarge; }},
          {"model input 1 is value 'x'",
           [](ModelBuilder*, gcap_model_t* model) {
             model->inputs = kTwice;
             model->num_inputs = 2;
           }},
          {"model output 1 is value 'y'",
           [](ModelBuilder*, gcap_model_t* model) {
             model->outputs = kBoth;
             model->num_outputs = 2;
           }},
          {"model output 0 is value 'x'", [](ModelBuilder*, gcap_model_t* model) { model->outputs = kInput; }},
          {"model input 0 is value 'a', which is a constant",
           [](ModelBuilder* m, gcap_model_t* model) {
             m->values[1].host_data = kContent;
             model->inputs = kConstant;
           }},
      },
      [&](const gcap_model_t& model) { return Create(model); });
}

TEST_F(SessionCreate, DataThatIsNotThereOrThereTwiceIsNamed) {
  Ep();
  static const int kX[] = {0}, kA[] = {1}, kY[] = {2};
  static const float kContent[4] = {};
  ExpectRefused(
      {
          {"node 'first' reads value 'a' before any node has made it",
           [](ModelBuilder* m, gcap_model_t*) { std::swap(m->nodes[0].inputs, m->nodes[1].inputs); }},
          {"node 'first' reads value 'a' before", [](ModelBuilder* m, gcap_model_t*) { m->nodes[0].inputs = kA; }},
          {"node 'first' reads value 'y' before", [](ModelBuilder* m, gcap_model_t*) { m->nodes[0].inputs = kY; }},
          {"node 'second' makes value 'a', which is there already",
           [](ModelBuilder* m, gcap_model_t*) { m->nodes[1].outputs = kA; }},
          {"node 'second' makes value 'x', which is there already",
           [](ModelBuilder* m, gcap_model_t*) { m->nodes[1].outputs = kX; }},
          {"node 'first' makes value 'a', which is there already",
           [](ModelBuilder* m, gcap_model_t*) { m->values[1].host_data = kContent; }},
          {"model output 0 is value 'y', which no node makes",
           [](ModelBuilder* m, gcap_model_t*) { m->nodes[1].num_outputs = 0; }},
      },
      [&](const gcap_model_t& model) { return Create(model); });
}

TEST_F(SessionCreate, ModelMayGoAfterCreation) {
  Ep();
  DeviceFloats x({1, 2, 3, 4}), y({0, 0, 0, 0});
  {
    auto m = std::make_unique<ModelBuilder>();
    std::vector<std::string> names = {"x", "w", "y", "join"};
    const int in = m->Value(names[0].c_str(), {4});
    const int w = m->Constant(names[1].c_str(), {4}, {9, 8, 7, 6});
    const int out = m->Value(names[2].c_str(), {4});
    m->inputs = {in};
    m->outputs = {out};
    m->Node("Join", names[3].c_str(), {in, w}, {out});
    ASSERT_TRUE(Create(m->Model()).ok());
    for (std::string& name : names) std::fill(name.begin(), name.end(), '#');
  }
  const gcap_tensor_t input = Tensor(x.get(), {4});
  gcap_tensor_t output = Tensor(y.get(), {4});
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  GCAP_ASSERT_OK(gcap_session_run(session_, &options, &input, &output));
  EXPECT_EQ(y.Get(), Floats({1, 2, 7, 6}));
  output.rank = 0;
  GCAP_EXPECT_FAILS(gcap_session_run(session_, &options, &input, &output), GCAP_INVALID_ARGUMENT, "output 'y'");
}

TEST_F(SessionCreate, ConstantsScalarsAndUnreadValuesAreFine) {
  Ep();
  gcap::testing::NodeControl fill;
  fill.fill = 0x40;
  ModelBuilder m;
  const int w = m.Constant("w", {}, {42});
  const int unread = m.Value("unread", {1, 1, 1, 1, 1, 1, 1, 5});
  const int y = m.Value("y", {}), f = m.Value("f", {2});
  m.outputs = {f, y};  // not in the order of the values, and no input at all
  m.Node("Fill", "fill_unread", {}, {unread}, &fill);
  m.Node("Rotate", "copy", {w}, {y});
  m.Node("Fill", "fill", {}, {f}, &fill);
  ASSERT_TRUE(Create(m.Model()).ok());
  DeviceFloats scalar({0}), filled({0, 0});
  const gcap_tensor_t outputs[] = {Tensor(filled.get(), {2}), Tensor(scalar.get(), {})};
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  const gcap::testing::LogCatcher log;
  for (int run = 0; run < 4; ++run) GCAP_ASSERT_OK(gcap_session_run(session_, &options, nullptr, outputs));
  EXPECT_EQ(log.text(), "") << "nothing is left to the end of a run";
  EXPECT_EQ(scalar.Get(), Floats({42}));
  float expected = 0;
  std::memset(&expected, 0x40, sizeof(expected));
  EXPECT_EQ(filled.Get(), Floats({expected, expected}));
}

TEST_F(SessionCreate, DestroyEndsTheKernelsAndTheConstants) {
  TestEp* ep = Ep();
  ModelBuilder m = TwoNodes();
  const int w = m.Constant("w", {1024}, Floats(1024)), copy = m.Value("copy", {1024});
  m.Constant("unread", {1024}, Floats(1024));
  m.Node("Rotate", "reader", {w}, {copy});
  ASSERT_TRUE(Create(m.Model()).ok());
  EXPECT_EQ(ep->live_kernels(), 3);
  gcap_run_resources_t resources;
  GCAP_ASSERT_OK(gcap_runtime_get_resources(ep->runtime(), &resources));
  gcap_allocator_stats_t stats;
  gcap_allocator_get_stats(resources.allocator, &stats);
  EXPECT_EQ(stats.requested_in_use_bytes, 4096u);
  GCAP_EXPECT_OK(gcap_session_destroy(session_));
  session_ = nullptr;
  EXPECT_EQ(ep->live_kernels(), 0);
  gcap_allocator_get_stats(resources.allocator, &stats);
  EXPECT_EQ(stats.requested_in_use_bytes, 0u);
}

TEST_F(SessionCreate, AnEpThatCapturesGraphsServesOneSessionInItsLife) {
  TestEp* ep = Ep();
  ModelBuilder m = TwoNodes();
  ASSERT_TRUE(Create(m.Model()).ok());
  gcap_session_t* other = nullptr;
  const gcap_model_t model = m.Model();
  gcap_ep_t* const eps[] = {ep->get()};
  GCAP_EXPECT_FAILS(gcap_session_create(&model, eps, 1, nullptr, &other), GCAP_FAILED_PRECONDITION,
                    "make an EP for each");
  EXPECT_EQ(other, nullptr);
  // A session that never ran left no addresses.
  GCAP_EXPECT_OK(gcap_session_destroy(session_));
  ASSERT_TRUE(Create(m.Model()).ok());
  DeviceFloats x(Floats(4)), y(Floats(4));
  const gcap_tensor_t input = Tensor(x.get(), {4}), output = Tensor(y.get(), {4});
  GCAP_EXPECT_OK(gcap_session_run(session_, nullptr, &input, &output));
  // Its graphs may still hold the session's addresses.
  GCAP_EXPECT_OK(gcap_session_destroy(session_));
  session_ = nullptr;
  GCAP_EXPECT_FAILS(gcap_session_create(&model, eps, 1, nullptr, &other), GCAP_FAILED_PRECONDITION,
                    "make an EP for each");
}

TEST_F(SessionCreate, DestroyIsRefusedWhileTheThreadCaptures) {
  Ep();
  ASSERT_TRUE(Create(TwoNodes().Model()).ok());
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream, nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_session_destroy(session_), GCAP_FAILED_PRECONDITION, "capturing");
  gcap_capture_abort(capture);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
