// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Eager runs of a session: results, tensors that do not match, failures of kernels, and the runs of an EP that has only
// what an EP must have.

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"

namespace {

using gcap::testing::ChainOf;
using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::kCount;
using gcap::testing::ModelBuilder;
using gcap::testing::NodeControl;
using gcap::testing::Outcome;
using gcap::testing::RunOptions;
using gcap::testing::Tensor;
using gcap::testing::TestEp;
using gcap::testing::TestEpConfig;
using gcap::testing::When;

gcap_options_t EagerOptions() {
  gcap_options_t options;
  gcap_options_init(&options);
  return options;
}

gcap_allocator_stats_t ScratchStats(const ChainRig& rig) {
  gcap_allocator_stats_t stats;
  gcap_scratch_get_stats(gcap_runtime_scratch(rig.ep->runtime()), &stats);
  return stats;
}

using Session = gcap::testing::DeviceTest;

TEST_F(Session, RunComputesTheModel) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(EagerOptions()));
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  GCAP_ASSERT_OK(rig.Run(x, y));
  EXPECT_EQ(y.Get(), Floats({2, 3, 4, -4, -5, -6}));
  EXPECT_EQ(x.Get(), Floats({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(rig.count.executions, 1);
}

TEST_F(Session, RunWithoutGraphsStaysEager) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(EagerOptions()));
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 0; run < 5; ++run) rig.ExpectRightRun(&x, &y, 10.0f * static_cast<float>(run));
  EXPECT_EQ(rig.middle.computes, 5);
  EXPECT_EQ(rig.count.executions, 5);
}

TEST_F(Session, RunLeavesNoScratchBehind) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(EagerOptions()));
  DeviceFloats x(Floats(6)), y(Floats(6));
  rig.ExpectRightRun(&x, &y, 0.0f);
  EXPECT_EQ(ScratchStats(rig).requested_in_use_bytes, 0u);
  const uint64_t after_first = ScratchStats(rig).total_allocated_bytes;
  for (int run = 0; run < 20; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
  EXPECT_EQ(ScratchStats(rig).total_allocated_bytes, after_first);
}

// a is read by the second node and by the last, with an allocation between; b is read twice by one node.
TEST_F(Session, ValueLivesUntilItsLastReader) {
  std::unique_ptr<TestEp> ep;
  GCAP_ASSERT_OK(TestEp::Create(EagerOptions(), {}, &ep));
  ModelBuilder m;
  const int x = m.Value("x", {4}), a = m.Value("a", {4}), b = m.Value("b", {4}), c = m.Value("c", {4});
  const int d = m.Value("d", {4}), y = m.Value("y", {4});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "to_a", {x}, {a});
  m.Node("Rotate", "to_b", {a}, {b});
  m.Node("Join", "to_c", {b, b}, {c});
  m.Node("Rotate", "to_d", {c}, {d});
  m.Node("Join", "to_y", {a, d}, {y});
  const gcap_model_t model = m.Model();
  gcap_ep_t* const eps[] = {ep->get()};
  gcap_session_t* session = nullptr;
  GCAP_ASSERT_OK(gcap_session_create(&model, eps, 1, nullptr, &session));
  DeviceFloats in({1, 2, 3, 4}), out(Floats(4));
  const gcap_tensor_t input = Tensor(in.get(), {4}), output = Tensor(out.get(), {4});
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  for (int run = 0; run < 3; ++run) {
    GCAP_ASSERT_OK(gcap_session_run(session, &options, &input, &output));
    EXPECT_EQ(out.Get(), Floats({2, 3, 2, 3}));  // a is 2 3 4 1, b and c are 3 4 1 2, d is 4 1 2 3
  }
  GCAP_EXPECT_OK(gcap_session_destroy(session));
}

TEST_F(Session, RunOnAnEpWithOnlyRequiredMembers) {
  ChainRig rig;
  TestEpConfig config;
  config.has_run_members = false;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(0), config));
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 0; run < 4; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
  EXPECT_EQ(rig.middle.computes, 4);
  GCAP_EXPECT_FAILS(rig.WarmUp(x, y), GCAP_FAILED_PRECONDITION, "does not capture graphs");
  GCAP_EXPECT_FAILS(gcap_session_release_captured_graph(rig.session, 0), GCAP_FAILED_PRECONDITION, "graph id 0");
}

TEST_F(Session, RunWithoutSynchronizeIsThereAfterTheEpIsSynchronized) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(EagerOptions()));
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  GCAP_ASSERT_OK(rig.Run(x, y, 0, /*synchronize=*/false));
  GCAP_ASSERT_OK(gcap_runtime_synchronize(rig.ep->runtime()));
  EXPECT_EQ(y.Get(), ChainOf({1, 2, 3, 4, 5, 6}));
}

// Runs that nobody waited for still use their scratch, one after the other.
TEST_F(Session, RunsWithoutSynchronizeKeepTheirOrder) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(EagerOptions()));
  constexpr int kRuns = 8;
  std::vector<std::unique_ptr<DeviceFloats>> x, y;
  for (int run = 0; run < kRuns; ++run) {
    x.push_back(std::make_unique<DeviceFloats>(Floats(kCount, static_cast<float>(run))));
    y.push_back(std::make_unique<DeviceFloats>(Floats(kCount)));
  }
  for (int run = 0; run < kRuns; ++run) GCAP_ASSERT_OK(rig.Run(*x[run], *y[run], 0, /*synchronize=*/false));
  GCAP_ASSERT_OK(gcap_runtime_synchronize(rig.ep->runtime()));
  for (int run = 0; run < kRuns; ++run) EXPECT_EQ(y[run]->Get(), ChainOf(Floats(kCount, static_cast<float>(run))));
}

// --- Types and sizes ------------------------------------------------------------------------------------------------

// x -> Bounce -> a -> Bounce -> y, 24 bytes of one type: a lies in scratch, and the constant beside it on the device.
void ExpectBytesPass(gcap_dtype_t dtype, const std::vector<int64_t>& shape,
                     gcap_bindings_t bindings = GCAP_BINDINGS_FIXED) {
  std::unique_ptr<TestEp> ep;
  GCAP_ASSERT_OK(TestEp::Create(GraphOptions(1), {}, &ep));
  NodeControl first, second;
  ModelBuilder m;
  const int x = m.Value("x", shape, dtype), a = m.Value("a", shape, dtype), y = m.Value("y", shape, dtype);
  m.Constant("unread", {0, 5}, {1});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Bounce", "first", {x}, {a}, &first);
  m.Node("Bounce", "second", {a}, {y}, &second);
  const gcap_model_t model = m.Model();
  gcap_ep_t* const eps[] = {ep->get()};
  gcap_session_t* session = nullptr;
  GCAP_ASSERT_OK(gcap_session_create(&model, eps, 1, nullptr, &session));
  DeviceFloats in({1, 2, 3, 4, 5, 6}), out(Floats(6));
  gcap_tensor_t input = Tensor(in.get(), shape, dtype), output = Tensor(out.get(), shape, dtype);
  const bool is_empty = gcap_tensor_elements(&input) == 0;
  if (is_empty) input.data = output.data = nullptr;
  gcap_run_options_t options = RunOptions(0, true);
  options.bindings = bindings;
  for (int run = 0; run < 4; ++run) {  // eager, captured, replayed
    out.Set(Floats(6, -1.0f));
    GCAP_ASSERT_OK(gcap_session_run(session, &options, &input, &output));
    EXPECT_EQ(out.Get(), is_empty ? Floats(6, -1.0f) : Floats({1, 2, 3, 4, 5, 6}));
  }
  EXPECT_EQ(ep->Info(0).captures, 1u);
  GCAP_EXPECT_OK(gcap_session_destroy(session));
}

TEST_F(Session, EveryTypeRuns) {
  const struct {
    gcap_dtype_t dtype;
    int64_t count;  // of 24 bytes
  } rows[] = {{GCAP_DTYPE_F32, 6}, {GCAP_DTYPE_F16, 12},  {GCAP_DTYPE_BF16, 12}, {GCAP_DTYPE_I64, 3},
              {GCAP_DTYPE_I32, 6}, {GCAP_DTYPE_BOOL, 24}, {GCAP_DTYPE_I8, 24},   {GCAP_DTYPE_U8, 24}};
  for (const auto& row : rows) {
    SCOPED_TRACE(gcap_dtype_name(row.dtype));
    ExpectBytesPass(row.dtype, {row.count});
  }
}

// Tensors without elements need no memory. A graph of nothing is a graph.
TEST_F(Session, DimensionsOfZeroRun) {
  for (const gcap_bindings_t bindings : {GCAP_BINDINGS_FIXED, GCAP_BINDINGS_COPY, GCAP_BINDINGS_RELOCATE}) {
    SCOPED_TRACE(bindings);
    ExpectBytesPass(GCAP_DTYPE_F32, {4, 0, 3}, bindings);
  }
}

// --- Tensors that do not match --------------------------------------------------------------------------------------

// The model's size of 0 is a size, and not one that is open.
TEST_F(Session, ADimensionOfZeroTakesNoOtherSize) {
  std::unique_ptr<TestEp> ep;
  GCAP_ASSERT_OK(TestEp::Create(EagerOptions(), {}, &ep));
  ModelBuilder m;
  NodeControl bounce;
  m.inputs = {m.Value("x", {2, 0})};
  m.outputs = {m.Value("y", {2, 0})};
  m.Node("Bounce", "bounce", m.inputs, m.outputs, &bounce);
  const gcap_model_t model = m.Model();
  gcap_ep_t* const eps[] = {ep->get()};
  gcap_session_t* session = nullptr;
  GCAP_ASSERT_OK(gcap_session_create(&model, eps, 1, nullptr, &session));
  DeviceFloats x(Floats(6)), y(Floats(6));
  const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
  GCAP_EXPECT_FAILS(gcap_session_run(session, nullptr, &input, &output), GCAP_INVALID_ARGUMENT,
                    "input 'x': dimension 1 is 3, the model wants 0");
  GCAP_EXPECT_OK(gcap_session_destroy(session));
}

struct WrongTensor {
  const char* named;
  void (*spoil)(gcap_tensor_t* tensor);
};

const WrongTensor kWrongTensors[] = {
    {"has no data", [](gcap_tensor_t* t) { t->data = nullptr; }},
    {"has type i64 and rank 2", [](gcap_tensor_t* t) { t->dtype = GCAP_DTYPE_I64; }},
    {"has type f32 and rank 1, the model wants f32 and rank 2", [](gcap_tensor_t* t) { t->rank = 1; }},
    {"has type f32 and rank 9", [](gcap_tensor_t* t) { t->rank = 9; }},
    {"dimension 0 is 3, the model wants 2", [](gcap_tensor_t* t) { std::swap(t->shape[0], t->shape[1]); }},
    {"dimension 1 is -3, the model wants 3", [](gcap_tensor_t* t) { t->shape[1] = -3; }},
};

void ExpectWrongTensorsRefused(ChainRig* rig, const DeviceFloats& x, const DeviceFloats& y) {
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  for (const WrongTensor& wrong : kWrongTensors) {
    for (bool is_input : {true, false}) {
      SCOPED_TRACE(std::string(is_input ? "input " : "output ") + wrong.named);
      gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
      wrong.spoil(is_input ? &input : &output);
      const Outcome outcome(gcap_session_run(rig->session, &options, &input, &output));
      EXPECT_STREQ(gcap_code_name(outcome.code), "INVALID_ARGUMENT");
      EXPECT_TRUE(outcome.Names(is_input ? "input 'x'" : "output 'y'")) << outcome.message;
      EXPECT_TRUE(outcome.Names(wrong.named)) << outcome.message;
    }
  }
}

TEST_F(Session, RunOfWrongTensorsNamesThemAndRunsNothing) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(EagerOptions()));
  DeviceFloats x(Floats(6)), y(Floats(6, 5.0f));
  ExpectWrongTensorsRefused(&rig, x, y);
  EXPECT_EQ(rig.middle.computes, 0);
  EXPECT_EQ(y.Get(), Floats(6, 5.0f));
  rig.ExpectRightRun(&x, &y, 1.0f);
}

TEST_F(Session, RunOfNoTensorsIsRefused) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(EagerOptions()));
  DeviceFloats x(Floats(6));
  const gcap_tensor_t tensor = Tensor(x.get(), {2, 3});
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  GCAP_EXPECT_FAILS(gcap_session_run(rig.session, &options, nullptr, &tensor), GCAP_INVALID_ARGUMENT,
                    "the inputs are NULL, the model has 1");
  GCAP_EXPECT_FAILS(gcap_session_run(rig.session, &options, &tensor, nullptr), GCAP_INVALID_ARGUMENT,
                    "the outputs are NULL, the model has 1");
}

TEST_F(Session, ReplayOfWrongTensorsIsRefusedTheSame) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(0)));
  DeviceFloats x(Floats(6)), y(Floats(6));
  GCAP_ASSERT_OK(rig.WarmUp(x, y));
  const uint64_t replays = rig.ep->Info(0).replays;
  ExpectWrongTensorsRefused(&rig, x, y);
  EXPECT_EQ(rig.ep->Info(0).replays, replays);
  rig.ExpectRightRun(&x, &y, 1.0f);
}

// --- Failures of kernels --------------------------------------------------------------------------------------------

TEST_F(Session, FailingKernelIsReportedWithItsNode) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(EagerOptions()));
  DeviceFloats x(Floats(6)), y(Floats(6));
  rig.middle.misbehave = When::kAlways;
  const Outcome outcome(rig.Run(x, y));
  EXPECT_EQ(outcome.code, GCAP_UNAVAILABLE);
  EXPECT_TRUE(outcome.Names("node 'middle'")) << outcome.message;
  EXPECT_TRUE(outcome.Names("told to fail")) << outcome.message;
  EXPECT_EQ(rig.bounce.computes, 0) << "what comes after it was not issued";
  EXPECT_EQ(ScratchStats(rig).requested_in_use_bytes, 0u);
  GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(rig.ep->runtime())));
  rig.middle.misbehave = When::kNever;
  rig.ExpectRightRun(&x, &y, 3.0f);
}

TEST_F(Session, RunThatFindsNoMemoryIsReportedAndTheNextSucceeds) {
  ChainRig rig;
  gcap_options_t options = EagerOptions();
  options.arena.memory_limit_bytes = size_t{1} << 20;
  GCAP_ASSERT_OK(rig.Create(options));
  DeviceFloats x(Floats(6)), y(Floats(6));
  rig.bounce.scratch_bytes = size_t{2} << 20;
  GCAP_EXPECT_FAILS(rig.Run(x, y), GCAP_RESOURCE_EXHAUSTED, "node 'bounce'");
  EXPECT_EQ(ScratchStats(rig).requested_in_use_bytes, 0u);
  rig.bounce.scratch_bytes = 0;
  rig.ExpectRightRun(&x, &y, 3.0f);
}

}  // namespace
