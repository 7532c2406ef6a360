// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a run says of itself: its outcome, why it was eager, whether its work was issued; and the ids of a manager.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/log_catcher.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

class GraphResult : public ManagerTest {
 protected:
  using Work = std::function<gcap_status_t(const gcap_run_resources_t&)>;

  // A whole run of `id`, which leaves its result in result_.
  Outcome RunWork(int id, const Work& work) {
    gcap_run_t run = RunOf(id, stream_->get(), /*synchronize=*/true);
    run.work = [](void* user, const gcap_run_resources_t* resources) {
      return (*static_cast<const Work*>(user))(*resources);
    };
    run.user = const_cast<Work*>(&work);
    run.result = &result_;
    gcap_run_result_init(&result_);
    return Outcome(gcap_graph_manager_run(manager_, &run));
  }
  Outcome RunJob(int id) {
    return RunWork(id, [this](const gcap_run_resources_t& at) { return GCAP_CUDA(job_.Issue(at.cuda_stream)); });
  }
  void ExpectResult(gcap_run_outcome_t outcome, gcap_why_eager_t why, bool was_issued) {
    EXPECT_EQ(result_.outcome, outcome);
    EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), gcap_why_eager_name(why));
    EXPECT_EQ(result_.was_issued, was_issued);
  }
  Outcome WhyEager(int id) { return Outcome(gcap_graph_manager_explain(manager_, id, GCAP_GRAPH_WHY_EAGER)); }

  CopyJob job_;
  gcap_run_result_t result_;
};

TEST_F(GraphResult, OfAnIdFromItsFirstRunOn) {
  Create(1);
  EXPECT_TRUE(RunJob(0).ok());
  ExpectResult(GCAP_RUN_EAGER, GCAP_EAGER_WARMING, true);
  EXPECT_TRUE(WhyEager(0).Names("graph id 0 warms up: 1 eager runs")) << WhyEager(0).message;
  EXPECT_TRUE(RunJob(0).ok());
  ExpectResult(GCAP_RUN_CAPTURED, GCAP_EAGER_NOT, true);
  EXPECT_TRUE(WhyEager(0).ok());
  EXPECT_TRUE(RunJob(0).ok());
  ExpectResult(GCAP_RUN_REPLAYED, GCAP_EAGER_NOT, true);
  EXPECT_TRUE(RunJob(GCAP_GRAPH_ID_NONE).ok());
  ExpectResult(GCAP_RUN_EAGER, GCAP_EAGER_NO_ID, true);
}

TEST_F(GraphResult, OfACaptureThatFailedAndOfTheRunsBehindIt) {
  Create(0);
  LogCatcher log;
  const Outcome failed = RunWork(0, [this](const gcap_run_resources_t& at) {
    if (gcap_thread_is_capturing()) return GCAP_STATUS(GCAP_LIBRARY_ERROR, "no plan");
    return GCAP_CUDA(job_.Issue(at.cuda_stream));
  });
  EXPECT_TRUE(failed.ok()) << failed.message;
  ExpectResult(GCAP_RUN_EAGER, GCAP_EAGER_CAPTURE_FAILED, true);
  EXPECT_TRUE(WhyEager(0).Names("no plan")) << WhyEager(0).message;
  EXPECT_TRUE(RunJob(0).ok());
  ExpectResult(GCAP_RUN_EAGER, GCAP_EAGER_COOLING, true);
  EXPECT_TRUE(WhyEager(0).Names("cools down for 0 more runs")) << WhyEager(0).message;
  EXPECT_TRUE(WhyEager(0).Names("no plan")) << WhyEager(0).message;
}

TEST_F(GraphResult, OfWorkThatFailsSaysWhetherItWasIssued) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  options.rerun_failed_capture = false;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &manager_));
  const Work fails = [](const gcap_run_resources_t&) { return GCAP_STATUS(GCAP_LIBRARY_ERROR, "no"); };
  EXPECT_EQ(RunWork(0, fails).code, GCAP_CAPTURE_INVALIDATED);
  ExpectResult(GCAP_RUN_NOT_DONE, GCAP_EAGER_NOT, false);
  EXPECT_EQ(RunWork(GCAP_GRAPH_ID_NONE, fails).code, GCAP_LIBRARY_ERROR);
  ExpectResult(GCAP_RUN_NOT_DONE, GCAP_EAGER_NO_ID, true);
  EXPECT_EQ(RunJob(-2).code, GCAP_INVALID_ARGUMENT);
  ExpectResult(GCAP_RUN_NOT_DONE, GCAP_EAGER_NOT, false);
}

TEST_F(GraphResult, OfARunOnBuffersThatTheGraphCannotMoveTo) {
  Create(0);
  EXPECT_TRUE(RunJob(0).ok());  // captured without buffers
  LogCatcher log;
  void* memory = nullptr;
  GCAP_ASSERT_OK(GCAP_CUDA(cudaMalloc(&memory, 256)));
  const gcap_graph_buffer_t item = {"page", memory, 256, 0};
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.items = &item;
  buffers.count = 1;
  gcap_run_t run = RunOf(0, stream_->get());
  run.work = [](void*, const gcap_run_resources_t*) -> gcap_status_t { return nullptr; };
  run.buffers = &buffers;
  run.result = &result_;
  gcap_run_result_init(&result_);
  GCAP_EXPECT_OK(gcap_graph_manager_run(manager_, &run));
  ExpectResult(GCAP_RUN_EAGER, GCAP_EAGER_NOT_MOVABLE, true);
  EXPECT_TRUE(WhyEager(0).Names("without buffers")) << WhyEager(0).message;
  GCAP_EXPECT_CUDA(cudaFree(memory));
}

// A deliberate stop is no failed capture: issued once, said to nobody, and the id captures in its next run.
TEST_F(GraphResult, OfACancelledRun) {
  Create(0);
  LogCatcher log;
  int calls = 0;
  const Work stops = [&](const gcap_run_resources_t& at) {
    ++calls;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(job_.Issue(at.cuda_stream)));
    return GCAP_STATUS(GCAP_CANCELLED, "the client went away");
  };
  const Outcome cancelled = RunWork(0, stops);
  EXPECT_EQ(cancelled.code, GCAP_CANCELLED) << cancelled.message;
  EXPECT_TRUE(cancelled.Names("the client went away")) << cancelled.message;
  ExpectResult(GCAP_RUN_NOT_DONE, GCAP_EAGER_NOT, false);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(log.text(), "");
  EXPECT_EQ(State(0), "READY");
  EXPECT_EQ(Info(0).failures, 0u);
  EXPECT_TRUE(RunJob(0).ok());
  ExpectResult(GCAP_RUN_CAPTURED, GCAP_EAGER_NOT, true);
  EXPECT_EQ(RunWork(GCAP_GRAPH_ID_NONE, stops).code, GCAP_CANCELLED);
  ExpectResult(GCAP_RUN_NOT_DONE, GCAP_EAGER_NO_ID, true);
}

TEST_F(GraphResult, OfACancelledRunWhoseWorkAbortedTheCapture) {
  Create(0);
  int calls = 0;
  const Outcome cancelled = RunWork(0, [&](const gcap_run_resources_t&) {
    ++calls;
    gcap_capture_abort(gcap_capture_current());
    return GCAP_STATUS(GCAP_CANCELLED, "enough");
  });
  EXPECT_EQ(cancelled.code, GCAP_CANCELLED) << cancelled.message;
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(State(0), "READY");
  EXPECT_TRUE(RunJob(0).ok());
  ExpectResult(GCAP_RUN_CAPTURED, GCAP_EAGER_NOT, true);
}

// Work that was executed is not issued again, whatever code it returns.
TEST_F(GraphResult, OfAnEagerRunWhoseWorkReturnsAFailedCaptureOfItsOwn) {
  Create(1);
  int calls = 0;
  const Outcome failed = RunWork(0, [&](const gcap_run_resources_t&) {
    ++calls;
    return GCAP_STATUS(GCAP_CAPTURE_INVALIDATED, "an inner capture");
  });
  EXPECT_EQ(failed.code, GCAP_CAPTURE_INVALIDATED) << failed.message;
  EXPECT_EQ(calls, 1);
  ExpectResult(GCAP_RUN_NOT_DONE, GCAP_EAGER_WARMING, true);
}

// A caller keeps one result for all runs: a refusal says that nothing was done.
TEST_F(GraphResult, OfARefusedRunIsCleared) {
  Create(0);
  EXPECT_TRUE(RunJob(0).ok());
  gcap_run_t run = RunOf(0, stream_->get());
  run.result = &result_;
  GCAP_EXPECT_FAILS(gcap_graph_manager_run(manager_, &run), GCAP_INVALID_ARGUMENT, "work");
  ExpectResult(GCAP_RUN_NOT_DONE, GCAP_EAGER_NOT, false);
}

// The end reads nothing of the run but the wait and the result.
TEST_F(GraphResult, OfARunWhoseBuffersAreGoneAtItsEnd) {
  Create(0);
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE, stream_->get());
  GCAP_ASSERT_OK(gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr));
  gcap_graph_buffers_t gone = {};  // no size
  gone.count = 7;
  gone.stand_ins = GCAP_GRAPH_STAND_INS_MEMORY;
  run.buffers = &gone;
  run.result = &result_;
  gcap_run_result_init(&result_);
  GCAP_EXPECT_OK(gcap_graph_manager_end_run(manager_, &run, nullptr));
  ExpectResult(GCAP_RUN_EAGER, GCAP_EAGER_NO_ID, true);
}

TEST_F(GraphResult, OfAStructOfAnotherSizeIsAsMuchAsThatHas) {
  Create(0);
  result_.struct_size = offsetof(gcap_run_result_t, was_issued);
  result_.was_issued = false;
  gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE, stream_->get());
  run.work = [](void*, const gcap_run_resources_t*) -> gcap_status_t { return nullptr; };
  run.result = &result_;
  GCAP_EXPECT_OK(gcap_graph_manager_run(manager_, &run));
  EXPECT_EQ(result_.outcome, GCAP_RUN_EAGER);
  EXPECT_FALSE(result_.was_issued) << "behind the end of the caller's struct";
  result_.struct_size = 3;
  GCAP_EXPECT_FAILS(gcap_graph_manager_run(manager_, &run), GCAP_INVALID_ARGUMENT, "gcap_run_result");
}

TEST_F(GraphResult, IdsAreListedAndSummedUp) {
  Create(1);
  EXPECT_EQ(gcap_graph_manager_list_ids(manager_, nullptr, 0), 0u);
  for (const int id : {5, 5, 9, 5}) EXPECT_TRUE(RunJob(id).ok());
  int ids[3] = {-1, -1, -1};
  EXPECT_EQ(gcap_graph_manager_list_ids(manager_, ids, 1), 2u);
  EXPECT_EQ(ids[1], -1) << "behind the capacity";
  EXPECT_EQ(gcap_graph_manager_list_ids(manager_, ids, 3), 2u);
  std::sort(ids, ids + 2);
  EXPECT_EQ(ids[0], 5);
  EXPECT_EQ(ids[1], 9);
  const gcap_graph_info_t sum = Info(GCAP_GRAPH_ID_NONE);
  EXPECT_EQ(sum.ids, 2u);
  EXPECT_EQ(sum.graphs, 1u);
  EXPECT_EQ(sum.eager_runs, 2u);
  EXPECT_EQ(sum.captures, 1u);
  EXPECT_EQ(sum.replays, 2u);
  EXPECT_EQ(sum.nodes, Info(5).nodes);
  EXPECT_EQ(sum.bytes, Info(5).bytes);
}

TEST_F(GraphResult, AQuestionThatDoesNotExistIsRefused) {
  Create(0);
  for (int question : {-1, GCAP_GRAPH_WHY_OTHER_VARIANT + 1}) {
    GCAP_EXPECT_FAILS(gcap_graph_manager_explain(manager_, 0, static_cast<gcap_graph_question_t>(question)),
                      GCAP_INVALID_ARGUMENT, "question is " + std::to_string(question));
  }
}

TEST_F(GraphResult, OfARunWithoutAStreamIsRefusedByName) {
  Create(0);
  gcap_run_t run;
  gcap_run_init(&run);
  run.work = [](void*, const gcap_run_resources_t*) -> gcap_status_t { return nullptr; };
  GCAP_EXPECT_FAILS(gcap_graph_manager_run(manager_, &run), GCAP_INVALID_ARGUMENT, "set stream");
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_EXPECT_FAILS(gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr), GCAP_INVALID_ARGUMENT, "set stream");
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  run.id = 0;
  GCAP_EXPECT_FAILS(gcap_graph_manager_plan(manager_, &run, 1, &plan), GCAP_INVALID_ARGUMENT, "set stream");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
