// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions of models with symbols: a plan for each set of shapes, an id for each of them, and what is kept.

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gcap/kit/session.h"
#include "gcap/log.h"
#include "gtest/gtest.h"
#include "lib/capture/inner.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// y = Rotate(Bounce(Rotate(x))) over x [batch, 3], with a size in between that only the EP knows.
ModelBuilder RowsModel(NodeControl* bounce) {
  ModelBuilder m;
  const int64_t batch = m.Symbol("batch");
  const int x = m.Value("x", {batch, 3}), a = m.Value("a", {GCAP_DIM_INFERRED, 3});
  const int b = m.Value("b", {GCAP_DIM_INFERRED, GCAP_DIM_INFERRED}), y = m.Value("y", {batch, 3});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "first", {x}, {a});
  m.Node("Bounce", "bounce", {a}, {b}, bounce);
  m.Node("Rotate", "last", {b}, {y});
  return m;
}

// What the bounces of a test were: "rows of the run, captured or eager".
std::string computed;
void NoteCompute(const char* op, const gcap_kernel_context_t* context) {
  if (op != std::string("Bounce")) return;
  computed += std::to_string(context->outputs[0].shape[0]) + (gcap_thread_is_capturing() ? "c " : "e ");
}

class SessionShapes : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(TestEp::Create(GraphOptions(1), {}, &ep_));
  }
  void TearDown() override {
    GCAP_EXPECT_OK(gcap_session_destroy(session_));
    ep_.reset();  // before what its graphs count in
  }

  Outcome Create(const ModelBuilder& m, size_t max_shapes_without_id = 16) {
    const gcap_model_t model = m.Model();
    gcap_ep_t* const eps[] = {ep_->get()};
    gcap_session_options_t options;
    gcap_session_options_init(&options);
    options.max_shapes_without_id = max_shapes_without_id;
    return Outcome(gcap_session_create(&model, eps, 1, &options, &session_));
  }
  gcap_status_t Run(const DeviceFloats& x, const DeviceFloats& y, int64_t rows, int graph_id, bool synchronize = true) {
    const gcap_tensor_t input = Tensor(x.get(), {rows, 3}), output = Tensor(y.get(), {rows, 3});
    const gcap_run_options_t options = RunOptions(graph_id, synchronize);
    return gcap_session_run(session_, &options, &input, &output);
  }
  // Runs rows of new content.
  void ExpectRightRun(int64_t rows, int graph_id, DeviceFloats* x, DeviceFloats* y, float seed) {
    Floats content(static_cast<size_t>(3 * rows));
    for (size_t i = 0; i < content.size(); ++i) content[i] = seed + static_cast<float>(i);
    x->Set(content);
    y->Set(Floats(content.size(), -1.0f));
    GCAP_ASSERT_OK(Run(*x, *y, rows, graph_id));
    std::rotate(content.begin(), content.begin() + 2 % std::max<ptrdiff_t>(3 * rows, 1), content.end());
    EXPECT_EQ(y->Get(), content);
  }

  NodeControl bounce_;
  ModelBuilder rows_ = RowsModel(&bounce_);  // it lives as long as its session
  std::unique_ptr<TestEp> ep_;
  gcap_session_t* session_ = nullptr;
};

// Upstream's test_cuda_graph_annotation_id: two shapes under two ids, interleaved.
TEST_F(SessionShapes, EachIdHasItsShapes) {
  ASSERT_TRUE(Create(rows_).ok());
  EXPECT_EQ(ep_->live_kernels(), 0) << "the shapes are not known yet";
  DeviceFloats x1(Floats(6)), y1(Floats(6)), x2(Floats(12)), y2(Floats(12));
  for (int run = 0; run < 6; ++run) {
    ExpectRightRun(2, 1, &x1, &y1, static_cast<float>(run));
    ExpectRightRun(4, 2, &x2, &y2, static_cast<float>(100 + run));
  }
  EXPECT_EQ(ep_->Info(1).captures, 1u);
  EXPECT_EQ(ep_->Info(2).captures, 1u);
  EXPECT_EQ(ep_->Info(1).replays + ep_->Info(2).replays, 10u);
  EXPECT_EQ(ep_->live_kernels(), 6) << "kernels once for each set of shapes";
  EXPECT_EQ(bounce_.computes, 4) << "an eager run and a capture for each id";
}

TEST_F(SessionShapes, SymbolWithTwoSizesIsNamedWithBoth) {
  ModelBuilder m;
  const int64_t n = m.Symbol("n");
  const int a = m.Value("a", {n}), b = m.Value("b", {2, n}), y = m.Value("y", {n});
  m.inputs = {a, b};
  m.outputs = {y};
  m.Node("Join", "join", {a, b}, {y});
  ASSERT_TRUE(Create(m).ok());
  DeviceFloats x(Floats(8));
  const gcap_tensor_t inputs[] = {Tensor(x.get(), {4}), Tensor(x.get(), {2, 3})};
  const gcap_tensor_t output = Tensor(x.get(), {4});
  GCAP_EXPECT_FAILS(gcap_session_run(session_, nullptr, inputs, &output), GCAP_INVALID_ARGUMENT,
                    "4 in input 'a', and 3 in dimension 1 of input 'b'");
}

TEST_F(SessionShapes, SizesOfZeroAndAboveRunAndOthersAreNamed) {
  ASSERT_TRUE(Create(rows_).ok());
  DeviceFloats x(Floats(3)), y(Floats(3));
  for (int run = 0; run < 3; ++run) GCAP_EXPECT_OK(Run(x, y, 0, 1));
  GCAP_EXPECT_FAILS(Run(x, y, -1, 1), GCAP_INVALID_ARGUMENT, "input 'x': dimension 0 is -1, allowed is 0 or more");
  GCAP_EXPECT_FAILS(Run(x, y, INT64_MAX, GCAP_GRAPH_ID_NONE), GCAP_INVALID_ARGUMENT, "value 'x': dimension");
  const gcap_tensor_t input = Tensor(x.get(), {1, 3}), output = Tensor(y.get(), {2, 3});
  GCAP_EXPECT_FAILS(gcap_session_run(session_, nullptr, &input, &output), GCAP_INVALID_ARGUMENT,
                    "output 'y': dimension 0 is 2, the model wants 1");
}

// --- Ids ------------------------------------------------------------------------------------------------------------

TEST_F(SessionShapes, IdMeansItsFirstShapesUntilItIsReleased) {
  ASSERT_TRUE(Create(rows_).ok());
  DeviceFloats x(Floats(6)), y(Floats(6)), x2(Floats(12)), y2(Floats(12));
  ExpectRightRun(2, 1, &x, &y, 1);
  for (int run = 0; run < 3; ++run) {  // eager, captured, replayed
    const Outcome outcome(Run(x2, y2, 4, 1));
    EXPECT_STREQ(gcap_code_name(outcome.code), "FAILED_PRECONDITION");
    EXPECT_TRUE(outcome.Names("graph id 1 means the shapes 'x' [2,3]")) << outcome.message;
    EXPECT_TRUE(outcome.Names("this run has 'x' [4,3]")) << outcome.message;
    ExpectRightRun(2, 1, &x, &y, static_cast<float>(run));
  }
  GCAP_EXPECT_OK(gcap_session_release_captured_graph(session_, 1));
  ExpectRightRun(2, 1, &x, &y, 5);
  GCAP_EXPECT_FAILS(Run(x2, y2, 4, 1), GCAP_FAILED_PRECONDITION, "graph id 1 means the shapes 'x' [2,3]");
  GCAP_EXPECT_OK(gcap_session_release_captured_graph(session_, 1));
  for (int run = 0; run < 4; ++run) ExpectRightRun(4, 1, &x2, &y2, static_cast<float>(run));
  EXPECT_EQ(ep_->Info(1).captures, 1u);
}

// Another thread's graph of the id would replay the old shapes.
TEST_F(SessionShapes, IdStaysBoundWhileAnotherThreadHasItsGraph) {
  ASSERT_TRUE(Create(rows_).ok());
  DeviceFloats x(Floats(6)), y(Floats(6)), x2(Floats(12)), y2(Floats(12));
  for (int run = 0; run < 3; ++run) ExpectRightRun(2, 1, &x, &y, static_cast<float>(run));
  std::thread([&] {
    DeviceFloats own_x(Floats(6)), own_y(Floats(6));
    for (int run = 0; run < 3; ++run) ExpectRightRun(2, 1, &own_x, &own_y, static_cast<float>(run));
    GCAP_EXPECT_OK(gcap_session_release_captured_graph(session_, 1));
    GCAP_EXPECT_FAILS(Run(x2, y2, 4, 1), GCAP_FAILED_PRECONDITION, "on every thread that has its graph");
  }).join();
  ExpectRightRun(2, 1, &x, &y, 9);
  GCAP_EXPECT_OK(gcap_session_release_captured_graph(session_, 1));
  ExpectRightRun(4, 1, &x2, &y2, 1);
}

// The id was released, but it was run again before the last graph of it went.
TEST_F(SessionShapes, IdThatIsRunAfterItsReleaseMeansItsShapesAgain) {
  ASSERT_TRUE(Create(rows_).ok());
  DeviceFloats x(Floats(6)), y(Floats(6)), x2(Floats(12)), y2(Floats(12));
  std::promise<void> captured, may_end;
  std::thread other([&] {
    DeviceFloats own_x(Floats(6)), own_y(Floats(6));
    for (int run = 0; run < 3; ++run) ExpectRightRun(2, 1, &own_x, &own_y, static_cast<float>(run));
    captured.set_value();
    may_end.get_future().wait();
  });
  captured.get_future().wait();
  GCAP_EXPECT_FAILS(gcap_session_release_captured_graph(session_, 1), GCAP_NOT_FOUND, "graph id 1");
  ExpectRightRun(2, 1, &x, &y, 7);
  may_end.set_value();
  other.join();
  GCAP_EXPECT_FAILS(Run(x2, y2, 4, 1), GCAP_FAILED_PRECONDITION, "graph id 1 means the shapes 'x' [2,3]");
  GCAP_EXPECT_OK(gcap_session_release_captured_graph(session_, 1));
  ExpectRightRun(4, 1, &x2, &y2, 8);
}

TEST_F(SessionShapes, GraphsOfAThreadThatIsGoneHoldNoId) {
  ASSERT_TRUE(Create(rows_).ok());
  DeviceFloats x2(Floats(12)), y2(Floats(12));
  std::thread([&] {
    DeviceFloats x(Floats(6)), y(Floats(6));
    for (int run = 0; run < 3; ++run) ExpectRightRun(2, 1, &x, &y, static_cast<float>(run));
  }).join();
  GCAP_EXPECT_FAILS(gcap_session_release_captured_graph(session_, 1), GCAP_NOT_FOUND, "graph id 1");
  ExpectRightRun(4, 1, &x2, &y2, 1);
}

TEST_F(SessionShapes, ManyThreadsAndIdsShareThePlans) {
  constexpr int kThreads = 6, kIds = 4;
  ASSERT_TRUE(Create(rows_).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::unique_ptr<DeviceFloats>> x, y;
      for (int id = 0; id < kIds; ++id) {
        x.push_back(std::make_unique<DeviceFloats>(Floats(static_cast<size_t>(3 * (id + 1)))));
        y.push_back(std::make_unique<DeviceFloats>(Floats(static_cast<size_t>(3 * (id + 1)))));
      }
      for (int run = 0; run < 12; ++run) {
        const int id = (run + t) % kIds;
        ExpectRightRun(id + 1, id, x[id].get(), y[id].get(), static_cast<float>(100 * t + run));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ep_->live_kernels(), 3 * kIds);
}

// --- Warm-up of many ids --------------------------------------------------------------------------------------------

// All run eagerly, then all are captured, the largest first: "rows of the run, captured or not".
TEST_F(SessionShapes, WarmUpOfManyIdsIsEagerFirstAndLargestFirst) {
  ASSERT_TRUE(Create(rows_).ok());
  const int64_t rows[] = {2, 5, 3};
  std::vector<std::unique_ptr<DeviceFloats>> x, y;
  std::vector<gcap_tensor_t> inputs, outputs;
  std::vector<gcap_run_options_t> options;
  for (int id = 0; id < 3; ++id) {
    x.push_back(std::make_unique<DeviceFloats>(Floats(static_cast<size_t>(3 * rows[id]))));
    y.push_back(std::make_unique<DeviceFloats>(Floats(static_cast<size_t>(3 * rows[id]))));
    inputs.push_back(Tensor(x[id]->get(), {rows[id], 3}));
    outputs.push_back(Tensor(y[id]->get(), {rows[id], 3}));
    options.push_back(RunOptions(id, true));
  }
  std::vector<gcap_warm_up_run_t> runs;
  for (int id = 0; id < 3; ++id) runs.push_back({&options[id], &inputs[id], &outputs[id]});
  computed = "";
  ep_->on_compute = NoteCompute;
  std::string told;
  const auto tell = [](void* text, size_t index, size_t total, const gcap_run_result_t* result) {
    EXPECT_EQ(total, 3u);
    EXPECT_EQ(result->id, static_cast<int>(index));
    EXPECT_TRUE(result->was_issued);
    *static_cast<std::string*>(text) += std::to_string(index) + (result->outcome == GCAP_RUN_CAPTURED ? "c " : "e ");
    EXPECT_EQ(result->why_eager, result->outcome == GCAP_RUN_EAGER ? GCAP_EAGER_WARMING : GCAP_EAGER_NOT);
  };
  const Outcome outcome(gcap_session_warm_up(session_, runs.data(), runs.size(), tell, &told));
  ep_->on_compute = nullptr;
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(computed, "5e 3e 2e 5c 3c 2c ");
  EXPECT_EQ(told, "1e 2e 0e 1c 2c 0c ") << "by the places of the caller's array";
  for (int id = 0; id < 3; ++id) {
    EXPECT_TRUE(gcap_runtime_is_captured(ep_->runtime(), id));
    ExpectRightRun(rows[id], id, x[id].get(), y[id].get(), 7);
  }
  GCAP_EXPECT_OK(gcap_session_warm_up(session_, runs.data(), runs.size(), nullptr, nullptr));
  EXPECT_EQ(bounce_.computes, 6) << "nothing is left to do";
  GCAP_EXPECT_OK(gcap_session_warm_up(session_, nullptr, 0, nullptr, nullptr));
}

TEST_F(SessionShapes, WarmUpCapturesBehindAllOthersWhatMayNotBeExecuted) {
  ASSERT_TRUE(Create(rows_).ok());
  DeviceFloats x(Floats(15)), y(Floats(15));
  const int64_t rows[] = {3, 5, 2};
  std::vector<gcap_tensor_t> tensors, outputs;
  std::vector<gcap_run_options_t> options;
  std::vector<gcap_warm_up_run_t> runs;
  for (int id = 0; id < 3; ++id) {
    tensors.push_back(Tensor(x.get(), {rows[id], 3}));
    outputs.push_back(Tensor(y.get(), {rows[id], 3}));
    options.push_back(RunOptions(id, true));
  }
  options[0].capture_only = true;
  for (int id = 0; id < 3; ++id) runs.push_back({&options[id], &tensors[id], &outputs[id]});
  computed = "";
  ep_->on_compute = NoteCompute;
  const Outcome outcome(gcap_session_warm_up(session_, runs.data(), runs.size(), nullptr, nullptr));
  ep_->on_compute = nullptr;
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(computed, "5e 2e 5c 2c 3c ");
  EXPECT_EQ(ep_->Info(0).eager_runs, 0u);
  EXPECT_EQ(ep_->Info(0).captures, 1u);
}

// One line says what was first-use; in a capture it is a warning.
TEST_F(SessionShapes, WarmUpReportsFirstUses) {
  ASSERT_TRUE(Create(rows_).ok());
  for (const bool late : {false, true}) {
    DeviceFloats x(Floats(6)), y(Floats(6));
    const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
    const gcap_run_options_t options = RunOptions(late ? 1 : 0, true);
    const gcap_warm_up_run_t run = {&options, &input, &output};
    ep_->on_compute = [](const char*, const gcap_kernel_context_t*) {
      if (!gcap_thread_is_capturing()) gcap_graph_note_initialization();
    };
    if (late) ep_->on_compute = [](const char*, const gcap_kernel_context_t*) { gcap_graph_note_initialization(); };
    const LogCatcher all(late ? GCAP_LOG_WARNING : GCAP_LOG_INFO);
    GCAP_EXPECT_OK(gcap_session_warm_up(session_, &run, 1, nullptr, nullptr));
    ep_->on_compute = nullptr;
    const std::string computes = "3 other initializations";  // one of each node
    EXPECT_NE(all.text().find("1 graph ids are warm after 2 runs; first uses in eager runs: "), std::string::npos);
    EXPECT_NE(all.text().find(computes + "; in captures: " + (late ? computes + ", which more eager runs" : "none")),
              std::string::npos)
        << all.text();
  }
}

TEST_F(SessionShapes, WarmUpOfManyIdsNamesTheOneThatFails) {
  ASSERT_TRUE(Create(rows_).ok());
  DeviceFloats x(Floats(6)), y(Floats(6));
  const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
  const gcap_tensor_t wrong = Tensor(y.get(), {1, 3});
  const gcap_run_options_t options[] = {RunOptions(1, true), RunOptions(2, true)};
  const gcap_warm_up_run_t runs[] = {{&options[0], &input, &output}, {&options[1], &input, &wrong}};
  GCAP_EXPECT_FAILS(gcap_session_warm_up(session_, runs, 2, nullptr, nullptr), GCAP_INVALID_ARGUMENT,
                    "the warm-up of graph id 2: output 'y': dimension 0 is 1");
}

TEST_F(SessionShapes, WarmUpOfAnIdThatMeansOtherShapesIsRefused) {
  ASSERT_TRUE(Create(rows_).ok());
  DeviceFloats x(Floats(9)), y(Floats(9));
  const gcap_run_options_t options = RunOptions(0, true);
  for (const int64_t rows : {2, 3}) {
    const gcap_tensor_t input = Tensor(x.get(), {rows, 3}), output = Tensor(y.get(), {rows, 3});
    const gcap_warm_up_run_t run = {&options, &input, &output};
    if (rows == 2) {
      GCAP_EXPECT_OK(gcap_session_warm_up(session_, &run, 1, nullptr, nullptr));
    } else {
      GCAP_EXPECT_FAILS(gcap_session_warm_up(session_, &run, 1, nullptr, nullptr), GCAP_FAILED_PRECONDITION,
                        "graph id 0 means the shapes");
    }
  }
}

// --- What is kept ---------------------------------------------------------------------------------------------------

TEST_F(SessionShapes, ShapesWithoutAnIdAreForgottenWhenTheyAreTooMany) {
  ASSERT_TRUE(Create(rows_, /*max_shapes_without_id=*/2).ok());
  std::vector<std::unique_ptr<DeviceFloats>> x, y;
  for (int64_t rows = 1; rows <= 5; ++rows) {
    x.push_back(std::make_unique<DeviceFloats>(Floats(static_cast<size_t>(3 * rows))));
    y.push_back(std::make_unique<DeviceFloats>(Floats(static_cast<size_t>(3 * rows))));
  }
  for (int round = 0; round < 3; ++round) {
    for (int rows = 1; rows <= 5; ++rows) {
      ExpectRightRun(rows, rows == 3 ? 7 : GCAP_GRAPH_ID_NONE, x[rows - 1].get(), y[rows - 1].get(), 1.0f);
    }
  }
  // Two without an id, the one of id 7, and the one that came last, which was in use when the others were counted.
  EXPECT_EQ(ep_->live_kernels(), 3 * 4);
  GCAP_EXPECT_OK(gcap_session_release_captured_graph(session_, 7));
  EXPECT_EQ(ep_->live_kernels(), 3 * 2);
}

// Runs that nobody waited for may still use the plan that is forgotten.
TEST_F(SessionShapes, PlanThatTheDeviceMayStillUseStays) {
  ASSERT_TRUE(Create(rows_, /*max_shapes_without_id=*/0).ok());
  std::vector<std::unique_ptr<DeviceFloats>> x, y;
  for (int64_t rows = 1; rows <= 4; ++rows) {
    x.push_back(std::make_unique<DeviceFloats>(Floats(static_cast<size_t>(3 * rows), static_cast<float>(rows))));
    y.push_back(std::make_unique<DeviceFloats>(Floats(static_cast<size_t>(3 * rows))));
  }
  for (int rows = 1; rows <= 4; ++rows) {
    GCAP_ASSERT_OK(Run(*x[rows - 1], *y[rows - 1], rows, GCAP_GRAPH_ID_NONE, /*synchronize=*/false));
  }
  GCAP_ASSERT_OK(gcap_runtime_synchronize(ep_->runtime()));
  for (int rows = 1; rows <= 4; ++rows) {
    EXPECT_EQ(y[rows - 1]->Get(), Floats(static_cast<size_t>(3 * rows), static_cast<float>(rows)));
  }
  ExpectRightRun(1, GCAP_GRAPH_ID_NONE, x[0].get(), y[0].get(), 1.0f);
  ExpectRightRun(2, GCAP_GRAPH_ID_NONE, x[1].get(), y[1].get(), 1.0f);
  EXPECT_LE(ep_->live_kernels(), 3 * 2) << "the last one, and the one before it";
}

// --- Models ---------------------------------------------------------------------------------------------------------

TEST_F(SessionShapes, SizeThatNobodyDecidesIsRefused) {
  ModelBuilder m;
  const int64_t n = m.Symbol("n"), lost = m.Symbol("lost");
  const int x = m.Value("x", {n}), y = m.Value("y", {lost});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "rotate", {x}, {y});
  Outcome outcome = Create(m);
  EXPECT_TRUE(outcome.Names("value 'y': dimension 0 is symbol 'lost', which no input")) << outcome.message;
  m.values[x].shape[0] = GCAP_DIM_INFERRED;
  outcome = Create(m);
  EXPECT_TRUE(outcome.Names("model input 'x': dimension 0 is GCAP_DIM_INFERRED")) << outcome.message;
  m.values[x].shape[0] = GCAP_DIM_SYMBOL(2);
  outcome = Create(m);
  EXPECT_TRUE(outcome.Names("value 'x': dimension 0 is -3, which is symbol 2; the model has 2")) << outcome.message;
  m.symbols.clear();
}

TEST_F(SessionShapes, SizeThatTheEpDoesNotInferIsNamed) {
  ModelBuilder m;
  NodeControl fill;
  const int y = m.Value("y", {3}), lost = m.Value("lost", {GCAP_DIM_INFERRED});
  m.outputs = {y};
  m.Node("Fill", "fill", {}, {lost}, &fill);
  m.Node("Rotate", "rotate", {lost}, {y});
  const Outcome outcome = Create(m);
  EXPECT_STREQ(gcap_code_name(outcome.code), "INVALID_ARGUMENT");
  EXPECT_TRUE(outcome.Names("value 'lost': nothing decides dimension 0: EP 'test' infers no size for node 'fill'"))
      << outcome.message;
}

TEST_F(SessionShapes, SizeThatTheEpInfersOtherwiseIsNamed) {
  ModelBuilder m;
  const int x = m.Value("x", {2, 3}), y = m.Value("y", {4, GCAP_DIM_INFERRED});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "rotate", {x}, {y});
  const Outcome outcome = Create(m);
  EXPECT_TRUE(outcome.Names("value 'y': dimension 0 is 4 in the model, and EP 'test' infers 2 for node 'rotate'"))
      << outcome.message;
}

// --- In a capture of the caller -------------------------------------------------------------------------------------

class CallersCapture : public SessionShapes {
 protected:
  void SetUp() override {
    SessionShapes::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    SessionShapes::TearDown();
    if (stream_ != nullptr) {
      EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    }
  }
  cudaStream_t stream_ = nullptr;
};

TEST_F(CallersCapture, ShapesThatAreNewFailItByName) {
  ASSERT_TRUE(Create(rows_).ok());
  DeviceFloats x(Floats(6)), y(Floats(6));
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream_, nullptr, &capture));
  GCAP_EXPECT_FAILS(Run(x, y, 2, 1), GCAP_FAILED_PRECONDITION, "the first run of a session with the shapes 'x' [2,3]");
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED,
                    "the first run of a session");
  ExpectRightRun(2, 1, &x, &y, 1);
}

// The run is a part of the caller's graph, and so is its scratch: eager runs between replays get other memory.
TEST_F(CallersCapture, RunJoinsIt) {
  ASSERT_TRUE(Create(rows_).ok());
  DeviceFloats x(Floats(6)), y(Floats(6)), other_x(Floats(6)), other_y(Floats(6));
  ExpectRightRun(2, GCAP_GRAPH_ID_NONE, &x, &y, 1);
  gcap_capture_t* capture = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream_, nullptr, &capture));
  GCAP_ASSERT_OK(Run(x, y, 2, 5));
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  EXPECT_GT(gcap_retained_bytes(retained), 0u);
  EXPECT_EQ(ep_->Info(5).captures, 0u) << "the graph is the caller's";
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  for (int run = 0; run < 3; ++run) {
    const float f = static_cast<float>(10 * run);
    x.Set({f, f + 1, f + 2, f + 3, f + 4, f + 5});
    y.Set(Floats(6));
    EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    ExpectRightRun(2, GCAP_GRAPH_ID_NONE, &other_x, &other_y, 500);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(y.Get(), Floats({f + 2, f + 3, f + 4, f + 5, f, f + 1}));
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  gcap_retained_release(retained);
}

TEST_F(CallersCapture, FailureOfANodeFailsIt) {
  NodeControl fail;
  ModelBuilder m;
  const int x = m.Value("x", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Fail", "fail", {x}, {y}, &fail);
  ASSERT_TRUE(Create(m).ok());
  DeviceFloats in(Floats(6)), out(Floats(6));
  const gcap_tensor_t input = Tensor(in.get(), {6}), output = Tensor(out.get(), {6});
  GCAP_ASSERT_OK(gcap_session_run(session_, nullptr, &input, &output));
  fail.misbehave = When::kInCapture;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream_, nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_session_run(session_, nullptr, &input, &output), GCAP_UNAVAILABLE, "node 'fail'");
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "node 'fail'");
  GCAP_EXPECT_OK(gcap_session_run(session_, nullptr, &input, &output));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
