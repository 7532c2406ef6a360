// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs that become graphs: warm-up, capture, replay, release; and captures that fail, after which the run is done again
// eagerly, once, with the right result.

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gcap/graph_plan.h"
#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"
#include "test/support/runs.h"

namespace {

using gcap::testing::ChainOf;
using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::Outcome;
using gcap::testing::RunOptions;
using gcap::testing::Tensor;
using gcap::testing::When;

using SessionGraph = gcap::testing::DeviceTest;

TEST_F(SessionGraph, RunsWarmUpThenCaptureThenReplay) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(2)));
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 1; run <= 8; ++run) {
    rig.ExpectRightRun(&x, &y, 10.0f * static_cast<float>(run));
    EXPECT_EQ(rig.count.executions, run) << "each run executes once";
    EXPECT_EQ(rig.middle.computes, run < 3 ? run : 3) << "a replay issues nothing";
    EXPECT_EQ(gcap_runtime_is_captured(rig.ep->runtime(), 0), run >= 3);
  }
  const gcap_graph_info_t info = rig.ep->Info(0);
  EXPECT_EQ(info.eager_runs, 2u);
  EXPECT_EQ(info.captures, 1u);
  EXPECT_EQ(info.failures, 0u);
  EXPECT_EQ(info.replays, 6u);
  EXPECT_EQ(info.nodes, 9u);  // copies: 2 + 1 + 2 + 2 + 1, and the host function
}

TEST_F(SessionGraph, ReplayBeginsAndEndsNoRun) {
  gcap::testing::TestEpConfig config;
  config.counts_runs = true;
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1), config));
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 1; run <= 4; ++run) {  // eager, captured, two replays
    rig.ExpectRightRun(&x, &y, static_cast<float>(run));
    EXPECT_EQ(rig.ep->begun_runs(), std::min(run, 2));
    EXPECT_EQ(rig.ep->ended_runs(), std::min(run, 2));
  }
}

TEST_F(SessionGraph, ReplayWithoutSynchronizeIsThereAfterTheEpIsSynchronized) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  for (int run = 0; run < 4; ++run) {  // eager, captured, two replays
    y.Set(Floats(6));
    GCAP_ASSERT_OK(rig.Run(x, y, 0, /*synchronize=*/false));
    GCAP_ASSERT_OK(gcap_runtime_synchronize(rig.ep->runtime()));
    EXPECT_EQ(y.Get(), ChainOf({1, 2, 3, 4, 5, 6}));
  }
  EXPECT_EQ(rig.ep->Info(0).replays, 3u);
}

TEST_F(SessionGraph, EachIdHasItsGraphAndItsAddresses) {
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared ? "with their scratch shared" : "with scratch of their own");
    ChainRig rig;
    gcap_options_t options = GraphOptions(1);
    options.share_graph_memory = shared;
    GCAP_ASSERT_OK(rig.Create(options));
    constexpr int kIds = 3;
    std::vector<std::unique_ptr<DeviceFloats>> x, y;
    for (int id = 0; id < kIds; ++id) {
      x.push_back(std::make_unique<DeviceFloats>(Floats(6)));
      y.push_back(std::make_unique<DeviceFloats>(Floats(6)));
    }
    for (int run = 0; run < 5; ++run) {
      for (int id = 0; id < kIds; ++id) {
        rig.ExpectRightRun(x[id].get(), y[id].get(), static_cast<float>(100 * id + run), 17 * id);
      }
    }
    size_t bytes = 0;
    for (int id = 0; id < kIds; ++id) {
      const gcap_graph_info_t info = rig.ep->Info(17 * id);
      EXPECT_EQ(info.captures, 1u);
      bytes += info.bytes - info.exec_bytes;
    }
    EXPECT_EQ(rig.middle.computes, 2 * kIds);
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(gcap_runtime_scratch(rig.ep->runtime()), &stats);
    const size_t peak = stats.max_in_use_bytes;                   // of one run
    EXPECT_GE(bytes, shared ? peak / kIds * kIds : kIds * peak);  // each part is rounded down
    EXPECT_LT(bytes, shared ? 2 * peak : (kIds + 1) * peak);
  }
}

using Results = std::vector<gcap_run_result_t>;
void Collect(void* results, size_t, size_t, const gcap_run_result_t* result) {
  static_cast<Results*>(results)->push_back(*result);
}

// A capture that fails is followed by an eager run, which the result names; and so does one whose runtime is a table,
// which says nothing of its runs.
TEST_F(SessionGraph, WarmUpTellsWhatBecameOfEachRun) {
  for (const bool of_table : {false, true}) {
    ChainRig rig;
    gcap::testing::TestEpConfig config;
    config.counts_runs = of_table;
    GCAP_ASSERT_OK(rig.Create(GraphOptions(1), config));
    DeviceFloats x(Floats(6)), y(Floats(6));
    const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
    const gcap_run_options_t options = RunOptions(0, true);
    const gcap_warm_up_run_t run = {&options, &input, &output};
    Results results;
    GCAP_ASSERT_OK(gcap_session_warm_up(rig.session, &run, 1, Collect, &results));
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0].outcome, GCAP_RUN_EAGER);
    EXPECT_EQ(results[1].outcome, GCAP_RUN_CAPTURED);
    results.clear();
    GCAP_EXPECT_OK(gcap_session_release_captured_graph(rig.session, 0));
    rig.middle.misbehave = When::kInCapture;
    gcap_status_free(gcap_session_warm_up(rig.session, &run, 1, Collect, &results));
    ASSERT_GE(results.size(), 2u);
    EXPECT_EQ(results[1].outcome, GCAP_RUN_EAGER);
    EXPECT_EQ(results[1].why_eager, GCAP_EAGER_CAPTURE_FAILED);
    EXPECT_EQ(results[1].id, 0);
    results.clear();
    rig.middle.misbehave = When::kAlways;
    GCAP_EXPECT_FAILS(gcap_session_warm_up(rig.session, &run, 1, Collect, &results), GCAP_UNAVAILABLE, "told to fail");
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].outcome, GCAP_RUN_NOT_DONE);
  }
}

// After one eager run of each id, before any is captured.
TEST_F(SessionGraph, PlanIsWhatTheGraphsHoldThen) {
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared ? "with their scratch shared" : "with scratch of their own");
    ChainRig rig;
    gcap_options_t options = GraphOptions(2);
    options.share_graph_memory = shared;
    GCAP_ASSERT_OK(rig.Create(options));
    DeviceFloats x(Floats(6)), y(Floats(6));
    const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
    gcap_run_options_t ids[3];
    std::vector<gcap_warm_up_run_t> runs;
    for (int id = 0; id < 3; ++id) {
      rig.ExpectRightRun(&x, &y, 10.0f, id);
      ids[id] = RunOptions(id, true);
      runs.push_back({&ids[id], &input, &output});
    }
    const int executions = rig.count.executions;
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    GCAP_ASSERT_OK(gcap_session_plan(rig.session, runs.data(), runs.size(), &plan));
    EXPECT_EQ(rig.count.executions, executions);
    EXPECT_EQ(plan.graphs, 3u);
    EXPECT_EQ(plan.nodes, 27u);
    for (int id = 0; id < 3; ++id) EXPECT_FALSE(gcap_runtime_is_captured(rig.ep->runtime(), id));
    GCAP_ASSERT_OK(gcap_session_warm_up(rig.session, runs.data(), runs.size(), nullptr, nullptr));
    size_t bytes = 0, exec_bytes = 0;
    for (int id = 0; id < 3; ++id) {
      const gcap_graph_info_t info = rig.ep->Info(id);
      EXPECT_EQ(info.eager_runs, 2u) << "a rehearsal is no run";
      bytes += info.bytes;
      exec_bytes += info.exec_bytes;
    }
    EXPECT_EQ(plan.exec_bytes, exec_bytes);
    EXPECT_EQ(plan.bytes, bytes);
    gcap_graph_plan_t held;
    gcap_graph_plan_init(&held);
    GCAP_ASSERT_OK(gcap_session_plan(rig.session, runs.data(), runs.size(), &held));
    EXPECT_EQ(held.bytes, bytes);
    rig.ExpectRightRun(&x, &y, 20.0f, 2);
  }
}

TEST_F(SessionGraph, PlanInACaptureIsRefused) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions()));
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream, nullptr, &capture));
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_EXPECT_FAILS(gcap_session_plan(rig.session, nullptr, 0, &plan), GCAP_FAILED_PRECONDITION,
                    "gcap_session_plan: this thread is capturing");
  gcap_capture_abort(capture);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// A program of another version of gcap may hand on such options.
TEST_F(SessionGraph, RunOptionsOfNoKnownSizeAreRefusedByAPlanAndAWarmUp) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions()));
  DeviceFloats x(Floats(6)), y(Floats(6));
  const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
  gcap_run_options_t options = RunOptions(0, true);
  options.struct_size = 0;
  const gcap_warm_up_run_t run = {&options, &input, &output};
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_EXPECT_FAILS(gcap_session_plan(rig.session, &run, 1, &plan), GCAP_INVALID_ARGUMENT, "struct_size");
  GCAP_EXPECT_FAILS(gcap_session_warm_up(rig.session, &run, 1, nullptr, nullptr), GCAP_INVALID_ARGUMENT, "struct_size");
}

TEST_F(SessionGraph, PlanOfWhatIsNeverCapturedIsRefused) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions()));
  DeviceFloats x(Floats(6)), y(Floats(6));
  const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
  const gcap_run_options_t none = RunOptions(GCAP_GRAPH_ID_NONE, true), some = RunOptions(0, true);
  const gcap_warm_up_run_t run = {&none, &input, &output}, wrong = {&some, &output, nullptr};
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_EXPECT_FAILS(gcap_session_plan(rig.session, &run, 1, &plan), GCAP_FAILED_PRECONDITION, "-1");
  GCAP_EXPECT_FAILS(gcap_session_plan(rig.session, &wrong, 1, &plan), GCAP_INVALID_ARGUMENT, "outputs");
  GCAP_EXPECT_FAILS(gcap_session_plan(nullptr, &run, 1, &plan), GCAP_INVALID_ARGUMENT, "session");
  GCAP_EXPECT_FAILS(gcap_session_plan(rig.session, nullptr, 1, &plan), GCAP_INVALID_ARGUMENT, "runs");
  GCAP_EXPECT_FAILS(gcap_session_plan(rig.session, &run, 1, nullptr), GCAP_INVALID_ARGUMENT, "out_plan");
  GCAP_EXPECT_OK(gcap_session_plan(rig.session, nullptr, 0, &plan));
  EXPECT_EQ(plan.graphs, 0u);
}

TEST_F(SessionGraph, NoIdNeverCaptures) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(0)));
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 0; run < 4; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run), GCAP_GRAPH_ID_NONE);
  EXPECT_EQ(rig.middle.computes, 4);
  GCAP_EXPECT_FAILS(rig.WarmUp(x, y, GCAP_GRAPH_ID_NONE), GCAP_FAILED_PRECONDITION, "-1");
}

TEST_F(SessionGraph, IdBelowMinusOneIsRefused) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions()));
  DeviceFloats x(Floats(6)), y(Floats(6));
  GCAP_EXPECT_FAILS(rig.Run(x, y, -5), GCAP_INVALID_ARGUMENT, "-5");
  rig.ExpectRightRun(&x, &y, 1.0f);
}

TEST_F(SessionGraph, EagerRunsBetweenReplaysDoNotDisturbThem) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  DeviceFloats x(Floats(6)), y(Floats(6)), other_x(Floats(6)), other_y(Floats(6));
  GCAP_ASSERT_OK(rig.WarmUp(x, y));
  for (int run = 0; run < 6; ++run) {
    rig.ExpectRightRun(&other_x, &other_y, 500.0f + static_cast<float>(run), GCAP_GRAPH_ID_NONE);
    rig.ExpectRightRun(&x, &y, static_cast<float>(run));
  }
  EXPECT_EQ(rig.ep->Info(0).replays, 7u);
}

TEST_F(SessionGraph, UserStreamCarriesTheWholeOfIt) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    ChainRig rig;
    gcap_options_t options = GraphOptions(1);
    options.has_user_stream = true;
    options.user_stream = stream;
    GCAP_ASSERT_OK(rig.Create(options));
    DeviceFloats x(Floats(6)), y(Floats(6));
    for (int run = 0; run < 5; ++run) {  // eager, captured, three replays
      const Floats content(6, static_cast<float>(run));
      Floats result(6);
      EXPECT_EQ(cudaMemcpyAsync(x.get(), content.data(), x.Bytes(), cudaMemcpyHostToDevice, stream), cudaSuccess);
      GCAP_ASSERT_OK(rig.Run(x, y, 0, /*synchronize=*/false));
      EXPECT_EQ(cudaMemcpyAsync(result.data(), y.get(), y.Bytes(), cudaMemcpyDeviceToHost, stream), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << "all of it is on the user's stream";
      EXPECT_EQ(result, ChainOf(content));
    }
    EXPECT_EQ(rig.ep->Info(0).captures, 1u);
    EXPECT_EQ(rig.ep->Info(0).replays, 4u);
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// --- The application's allocator ------------------------------------------------------------------------------------

std::set<void*>* external_live = new std::set<void*>;
int external_allocs, external_foreign_frees;

void* ExternalAlloc(size_t bytes) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) return nullptr;
  ++external_allocs;
  external_live->insert(memory);
  return memory;
}
void ExternalFree(void* memory) {
  if (external_live->erase(memory) == 0) ++external_foreign_frees;
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(SessionGraph, ExternalAllocatorServesScratchAndConstants) {
  {
    ChainRig rig;
    gcap_options_t options = GraphOptions(1);
    options.external_alloc = ExternalAlloc;
    options.external_free = ExternalFree;
    GCAP_ASSERT_OK(rig.Create(options));
    DeviceFloats x(Floats(6)), y(Floats(6));
    for (int run = 0; run < 4; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
    EXPECT_EQ(rig.ep->Info(0).captures, 1u);
    EXPECT_GE(external_allocs, 2) << "the constant, and a region of scratch";
  }
  EXPECT_TRUE(external_live->empty());
  EXPECT_EQ(external_foreign_frees, 0);
}

// --- Warm-up and release --------------------------------------------------------------------------------------------

TEST_F(SessionGraph, WarmUpEndsWithTheGraph) {
  for (unsigned min_runs : {0u, 1u, 2u, 7u}) {
    SCOPED_TRACE(min_runs);
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(GraphOptions(min_runs)));
    DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
    GCAP_ASSERT_OK(rig.WarmUp(x, y, 4));
    EXPECT_EQ(y.Get(), ChainOf({1, 2, 3, 4, 5, 6}));
    EXPECT_TRUE(gcap_runtime_is_captured(rig.ep->runtime(), 4));
    const int computes = rig.middle.computes;
    GCAP_ASSERT_OK(rig.WarmUp(x, y, 4));
    rig.ExpectRightRun(&x, &y, 9.0f, 4);
    EXPECT_EQ(rig.middle.computes, computes) << "nothing left to warm up; the next run is a replay";
  }
}

TEST_F(SessionGraph, WarmUpIsBounded) {
  for (unsigned min_runs : {8u, 1000000u}) {
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(GraphOptions(min_runs)));
    DeviceFloats x(Floats(6)), y(Floats(6));
    GCAP_EXPECT_FAILS(rig.WarmUp(x, y, 3), GCAP_UNAVAILABLE,
                      "graph id 3 has no graph after its warm-up: graph id 3 warms up: 8 eager runs so far");
    EXPECT_EQ(rig.middle.computes, 8);
    for (int run = 0; run < 2; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run), 3);
    EXPECT_EQ(gcap_runtime_is_captured(rig.ep->runtime(), 3), min_runs == 8) << "a later run may still capture";
  }
}

// An EP that says that it captures, and manages its graphs itself.
TEST_F(SessionGraph, WarmUpNamesAnEpThatNeverReportsAGraph) {
  std::unique_ptr<gcap::testing::TestEp> silent;
  gcap_options_t options;
  gcap_options_init(&options);
  GCAP_ASSERT_OK(gcap::testing::TestEp::Create(options, {}, &silent));
  gcap_ep_ops_t ops = {};
  ops.struct_size = sizeof(ops);
  ops.name = "silent";
  ops.self = silent.get();
  ops.supports = [](void*, const gcap_model_t*, const gcap_node_t*) { return true; };
  ops.create_kernel = [](void*, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t* out_kernel) {
    out_kernel->compute = [](void*, const gcap_kernel_context_t*) { return gcap_status_t(nullptr); };
    return gcap_status_t(nullptr);
  };
  gcap_runtime_ops_t table = ForwardingOps::Runs(silent->runtime());
  table.is_graph_capture_enabled = [](const void*) { return true; };
  table.explain = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create_from(&table, &ops.runtime));
  ops.destroy = [](void*) { return gcap_status_t(nullptr); };  // TestEp ends the runtime
  gcap_ep_t* ep = nullptr;
  GCAP_ASSERT_OK(gcap_ep_create(&ops, &ep));
  gcap::testing::ModelBuilder m;
  const int x = m.Value("x", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Any", "any", {x}, {y});
  const gcap_model_t model = m.Model();
  gcap_session_t* session = nullptr;
  GCAP_ASSERT_OK(gcap_session_create(&model, &ep, 1, nullptr, &session));
  DeviceFloats in(Floats(6)), out(Floats(6));
  const gcap_tensor_t input = Tensor(in.get(), {6}), output = Tensor(out.get(), {6});
  const gcap_warm_up_run_t run = {nullptr, &input, &output};
  const Outcome outcome(gcap_session_warm_up(session, &run, 1, nullptr, nullptr));
  EXPECT_STREQ(gcap_code_name(outcome.code), "UNAVAILABLE");
  EXPECT_TRUE(
      outcome.Names("graph id 0 has no graph after its warm-up: the runtime's table reports no failed capture: either "
                    "it wants more runs before its first capture (min_num_runs_before_cuda_graph_capture), or "
                    "it never captures, or does not report its graphs"))
      << outcome.message;
  GCAP_EXPECT_OK(gcap_session_run(session, nullptr, &input, &output));
  GCAP_EXPECT_OK(gcap_session_destroy(session));
  GCAP_EXPECT_OK(gcap_ep_destroy(ep));
  GCAP_EXPECT_OK(gcap_runtime_destroy(ops.runtime));
}

TEST_F(SessionGraph, WarmUpOfAModelThatCannotBeCapturedIsBoundedToo) {
  ChainRig rig("Alloc");
  rig.middle.misbehave = When::kInCapture;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  DeviceFloats x(Floats(6)), y(Floats(6));
  GCAP_EXPECT_FAILS(rig.WarmUp(x, y), GCAP_UNAVAILABLE,
                    "graph id 0 has no graph after its warm-up: graph id 0 cools down");
  EXPECT_EQ(rig.count.executions, GCAP_WARM_UP_MAX_RUNS);
  rig.ExpectRightRun(&x, &y, 1.0f);
}

TEST_F(SessionGraph, WarmUpHandsOnTheFailureOfARun) {
  ChainRig rig;
  rig.middle.misbehave = When::kAlways;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  DeviceFloats x(Floats(6)), y(Floats(6));
  GCAP_EXPECT_FAILS(rig.WarmUp(x, y), GCAP_UNAVAILABLE, "told to fail");
  EXPECT_EQ(rig.middle.computes, 1);
}

TEST_F(SessionGraph, WarmUpWithoutGraphsIsRefused) {
  ChainRig rig;
  gcap_options_t options;
  gcap_options_init(&options);
  GCAP_ASSERT_OK(rig.Create(options));
  DeviceFloats x(Floats(6)), y(Floats(6));
  GCAP_EXPECT_FAILS(rig.WarmUp(x, y), GCAP_FAILED_PRECONDITION, "enable_cuda_graph");
  EXPECT_EQ(rig.middle.computes, 0);
}

TEST_F(SessionGraph, ReleasedGraphWarmsUpAgain) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  DeviceFloats x(Floats(6)), y(Floats(6));
  GCAP_EXPECT_FAILS(gcap_session_release_captured_graph(rig.session, 0), GCAP_NOT_FOUND, "graph id 0");
  GCAP_ASSERT_OK(rig.WarmUp(x, y));
  GCAP_EXPECT_OK(gcap_session_release_captured_graph(rig.session, 0));
  EXPECT_FALSE(gcap_runtime_is_captured(rig.ep->runtime(), 0));
  GCAP_EXPECT_FAILS(gcap_session_release_captured_graph(rig.session, 0), GCAP_NOT_FOUND, "graph id 0");
  for (int run = 0; run < 4; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
  EXPECT_EQ(rig.ep->Info(0).eager_runs, 1u);
  EXPECT_EQ(rig.ep->Info(0).captures, 1u);
}

TEST_F(SessionGraph, ReleaseWaitsForAReplayInFlight) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(0)));
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  GCAP_ASSERT_OK(rig.WarmUp(x, y));
  y.Set(Floats(6));
  GCAP_ASSERT_OK(rig.Run(x, y, 0, /*synchronize=*/false));
  GCAP_EXPECT_OK(gcap_session_release_captured_graph(rig.session, 0));
  EXPECT_EQ(y.Get(), ChainOf({1, 2, 3, 4, 5, 6}));
}

TEST_F(SessionGraph, ReleaseConcernsTheCallingThreadsGraph) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(0)));
  DeviceFloats x(Floats(6)), y(Floats(6));
  GCAP_ASSERT_OK(rig.WarmUp(x, y));
  std::thread([&] {
    GCAP_EXPECT_FAILS(gcap_session_release_captured_graph(rig.session, 0), GCAP_NOT_FOUND, "graph id 0");
  }).join();
  EXPECT_TRUE(gcap_runtime_is_captured(rig.ep->runtime(), 0));
}

// --- Captures that fail ---------------------------------------------------------------------------------------------

TEST_F(SessionGraph, RunIsRightAndExecutedOnceThoughItsCaptureFails) {
  for (const char* op : {"Fail", "Alloc", "Ignore"}) {
    SCOPED_TRACE(op);
    ChainRig rig(op);
    rig.middle.misbehave = When::kInCapture;
    GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
    DeviceFloats x(Floats(6)), y(Floats(6));
    for (int run = 1; run <= 6; ++run) {
      rig.ExpectRightRun(&x, &y, static_cast<float>(run));
      EXPECT_EQ(rig.count.executions, run);
    }
    const gcap_graph_info_t info = rig.ep->Info(0);
    EXPECT_EQ(info.failures, 2u) << "runs 2 and 4: the back-off is counted in runs, not in tries";
    EXPECT_EQ(info.captures, 0u);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);

    rig.middle.misbehave = When::kNever;
    for (int run = 7; run <= 30 && !gcap_runtime_is_captured(rig.ep->runtime(), 0); ++run) {
      rig.ExpectRightRun(&x, &y, static_cast<float>(run));
      EXPECT_EQ(rig.count.executions, run);
    }
    EXPECT_EQ(rig.ep->Info(0).captures, 1u) << "a kernel that mends its ways is captured";
    rig.ExpectRightRun(&x, &y, 50.0f);
    GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(rig.ep->runtime())));
  }
}

TEST_F(SessionGraph, FailureOfTheSecondTryIsReported) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  DeviceFloats x(Floats(6)), y(Floats(6));
  rig.ExpectRightRun(&x, &y, 1.0f);
  rig.middle.misbehave = When::kAlways;
  GCAP_EXPECT_FAILS(rig.Run(x, y), GCAP_UNAVAILABLE, "node 'middle'");
  EXPECT_EQ(rig.middle.computes, 3) << "in the capture, and once more eagerly";
  EXPECT_EQ(rig.ep->Info(0).failures, 1u);
  rig.middle.misbehave = When::kNever;
  rig.ExpectRightRun(&x, &y, 1.0f);
}

TEST_F(SessionGraph, EagerFailureIsNotTakenForAFailedCapture) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(2)));
  rig.middle.misbehave = When::kOutsideCapture;
  DeviceFloats x(Floats(6)), y(Floats(6));
  GCAP_EXPECT_FAILS(rig.Run(x, y), GCAP_UNAVAILABLE, "node 'middle'");
  EXPECT_EQ(rig.middle.computes, 1);
  EXPECT_EQ(rig.ep->Info(0).failures, 0u);
}

TEST_F(SessionGraph, CaptureThatLacksScratchRunsEagerlyAndALaterOneSucceeds) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  DeviceFloats x(Floats(6)), y(Floats(6));
  rig.ExpectRightRun(&x, &y, 1.0f);
  rig.bounce.scratch_bytes = size_t{8} << 20;  // more than the warm-up run made the arena hold
  rig.ExpectRightRun(&x, &y, 2.0f);
  EXPECT_EQ(rig.ep->Info(0).failures, 1u);
  EXPECT_EQ(rig.count.executions, 2);
  for (int run = 3; run <= 6; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
  EXPECT_EQ(rig.ep->Info(0).captures, 1u);
  EXPECT_EQ(rig.ep->Info(0).failures, 1u);
}

TEST_F(SessionGraph, FirstRunCanBeCapturedThoughNothingIsReserved) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(0)));
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 0; run < 6; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
  EXPECT_EQ(rig.count.executions, 6);
  EXPECT_EQ(rig.ep->Info(0).captures, 1u);
}

}  // namespace
