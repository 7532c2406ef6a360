// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Warm-ups of many ids, runs that are captured and not launched, and graphs that are not evicted.

#include <cstring>
#include <list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gcap/graph.h"
#include "gcap/graph_buffers.h"
#include "test/graph/manager_test.h"
#include "test/graph/moving_test.h"

namespace gcap {
namespace testing {
namespace {

using Ids = std::vector<int>;

// A run that counts in memory of its own: each execution adds one.
struct Step {
  int id = 0;
  bool fails = false;
  int issued = 0;
  Ids* order = nullptr;
  Floats count{0};

  static gcap_status_t Issue(void* step, const gcap_run_resources_t* resources) {
    Step* self = static_cast<Step*>(step);
    ++self->issued;
    if (self->order != nullptr) self->order->push_back(self->id);
    if (self->fails) return GCAP_STATUS(GCAP_LIBRARY_ERROR, "the kernel failed");
    return AddTo(resources->cuda_stream, self->count.get(), self->count.get(), 1);
  }
};

class GraphWarmUp : public ManagerTest {
 protected:
  GraphWarmUp() { gcap_run_result_init(&result_); }

  void CreateWith(const std::function<void(gcap_graph_manager_options_t*)>& change) {
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    change(&options);
    GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &manager_));
  }

  gcap_run_t RunOfStep(int id) {
    steps_.emplace_back();
    steps_.back().id = id;
    steps_.back().order = &order_;
    gcap_run_t run = RunOf(id, stream_->get(), /*synchronize=*/true);
    run.work = Step::Issue;
    run.user = &steps_.back();
    run.result = &result_;
    return run;
  }
  gcap_run_t CaptureOnly(int id) {
    gcap_run_t run = RunOfStep(id);
    run.capture_only = true;
    return run;
  }
  gcap_run_t Pinned(int id) {
    gcap_run_t run = RunOfStep(id);
    run.pinned = true;
    return run;
  }
  static Step& StepOf(const gcap_run_t& run) { return *static_cast<Step*>(run.user); }

  Outcome Run(const gcap_run_t& run) { return Outcome(gcap_graph_manager_run(manager_, &run)); }
  Outcome WarmUp(const std::vector<gcap_run_t>& runs) {
    return Outcome(gcap_graph_manager_warm_up(
        manager_, runs.data(), runs.size(),
        [](void* self, size_t index, size_t total, const gcap_run_result_t* result) {
          static_cast<GraphWarmUp*>(self)->told_.push_back({index, total, result->outcome});
        },
        this));
  }
  Ids Captured(const Ids& ids) const {
    Ids captured;
    for (const int id : ids) {
      if (gcap_graph_manager_is_captured(manager_, id)) captured.push_back(id);
    }
    return captured;
  }

  struct Told {
    size_t index, total;
    gcap_run_outcome_t outcome;
    bool operator==(const Told& o) const { return index == o.index && total == o.total && outcome == o.outcome; }
  };
  std::list<Step> steps_;
  Ids order_;
  std::vector<Told> told_;
  gcap_run_result_t result_;
};

// --- Runs that are captured only ------------------------------------------------------------------------------------

TEST_F(GraphWarmUp, ARunThatIsCapturedOnlyExecutesNothing) {
  Create(2);
  gcap_run_t run = CaptureOnly(1);
  EXPECT_TRUE(Run(run).ok());
  EXPECT_EQ(result_.outcome, GCAP_RUN_RECORDED);
  EXPECT_FALSE(result_.was_issued);
  EXPECT_EQ(State(1), "CAPTURED");
  EXPECT_EQ(Info(1).replays, 0u);
  EXPECT_EQ(Info(1).captures, 1u);
  EXPECT_EQ(StepOf(run).count.value(), 0);
  EXPECT_TRUE(Run(run).ok());
  EXPECT_EQ(result_.outcome, GCAP_RUN_RECORDED);
  EXPECT_EQ(StepOf(run).issued, 1) << "it has a graph";
  run.capture_only = false;
  EXPECT_TRUE(Run(run).ok());
  EXPECT_EQ(result_.outcome, GCAP_RUN_REPLAYED);
  EXPECT_TRUE(result_.was_issued);
  EXPECT_EQ(StepOf(run).issued, 1);
  EXPECT_EQ(StepOf(run).count.value(), 1);
  EXPECT_EQ(Info(1).replays, 1u);
}

TEST_F(GraphWarmUp, ARunThatIsCapturedOnlyUpdatesAStaleGraph) {
  Create(0);
  gcap_run_t run = RunOfStep(1);
  EXPECT_TRUE(Run(run).ok());
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 1));
  run.capture_only = true;
  EXPECT_TRUE(Run(run).ok());
  EXPECT_EQ(result_.outcome, GCAP_RUN_RECORDED);
  EXPECT_EQ(Info(1).captures, 2u);
  EXPECT_EQ(Info(1).updates, 1u);
  EXPECT_EQ(StepOf(run).count.value(), 1);
}

TEST_F(GraphWarmUp, ARunThatIsCapturedOnlyIsNeverEager) {
  Create(0);
  gcap_run_t run = CaptureOnly(1);
  StepOf(run).fails = true;
  const Outcome failed = Run(run);
  EXPECT_EQ(failed.code, GCAP_CAPTURE_INVALIDATED);
  EXPECT_TRUE(failed.Names("the kernel failed")) << failed.message;
  EXPECT_EQ(StepOf(run).issued, 1) << "issued again";
  EXPECT_EQ(result_.outcome, GCAP_RUN_NOT_DONE);
  EXPECT_FALSE(result_.was_issued);
  EXPECT_EQ(State(1), "COOLING");
  StepOf(run).fails = false;
  EXPECT_TRUE(Run(run).ok()) << "a back-off is for eager runs";
  EXPECT_EQ(result_.outcome, GCAP_RUN_RECORDED);
  EXPECT_EQ(StepOf(run).count.value(), 0);
}

TEST_F(GraphWarmUp, ARunThatIsCapturedOnlyMayBeBegunAndEnded) {
  Create(2);
  const gcap_run_t run = CaptureOnly(1);
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_ASSERT_OK(gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr));
  EXPECT_EQ(kind, GCAP_GRAPH_RUN_CAPTURE);
  gcap_run_resources_t resources;
  gcap_run_resources_init(&resources);
  resources.cuda_stream = stream_->get();
  GCAP_EXPECT_OK(gcap_graph_manager_end_run(manager_, &run, Step::Issue(run.user, &resources)));
  EXPECT_EQ(result_.outcome, GCAP_RUN_RECORDED);
  EXPECT_EQ(StepOf(run).count.value(), 0);
  GCAP_EXPECT_FAILS(gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr), GCAP_ALREADY_EXISTS, "graph id 1");
}

TEST_F(GraphWarmUp, ARunThatIsCapturedOnlyHasAnIdAndIsNoReplay) {
  Create(0);
  gcap_run_t run = CaptureOnly(GCAP_GRAPH_ID_NONE);
  EXPECT_EQ(Run(run).code, GCAP_INVALID_ARGUMENT);
  EXPECT_TRUE(Run(run).Names("capture_only and its graph id is -1, allowed are ids >= 0"));
  EXPECT_EQ(StepOf(run).issued, 0);
  run.id = 1;
  EXPECT_TRUE(Run(run).ok());
  for (gcap_run_result_t* result : {&result_, static_cast<gcap_run_result_t*>(nullptr)}) {
    run.result = result;
    bool replayed = true;
    GCAP_EXPECT_FAILS(gcap_graph_manager_replay(manager_, &run, &replayed), GCAP_INVALID_ARGUMENT,
                      "graph id 1: capture_only is true, allowed in a replay is false");
    EXPECT_FALSE(replayed);
  }
  EXPECT_EQ(StepOf(run).count.value(), 0);
}

TEST_F(GraphWarmUp, AGraphThatWasCapturedOnlyMoves) {
  Create(2);
  const Floats first_input(3), first_output(50), second_input(7), second_output(60);
  const auto run_on = [&](const Floats& input, const Floats& output, bool capture_only) {
    const std::vector<gcap_graph_buffer_t> items = {{"input", input.get(), kFloatsBytes, 0},
                                                    {"output", output.get(), kFloatsBytes, 0}};
    const gcap_graph_buffers_t buffers = BuffersOf(items);
    gcap_run_t run = RunOf(1, stream_->get(), /*synchronize=*/true);
    run.work = [](void*, const gcap_run_resources_t* resources) {
      return AddOne(resources->cuda_stream, resources->addresses);
    };
    run.buffers = &buffers;
    run.result = &result_;
    run.capture_only = capture_only;
    GCAP_EXPECT_OK(gcap_graph_manager_run(manager_, &run));
  };
  run_on(first_input, first_output, /*capture_only=*/true);
  EXPECT_EQ(result_.outcome, GCAP_RUN_RECORDED);
  EXPECT_EQ(first_output.value(), 50);
  run_on(second_input, second_output, /*capture_only=*/false);
  EXPECT_EQ(result_.outcome, GCAP_RUN_REPLAYED);
  EXPECT_EQ(second_output.value(), 8);
  EXPECT_EQ(first_output.value(), 50);
}

// --- Graphs that are pinned -----------------------------------------------------------------------------------------

TEST_F(GraphWarmUp, APinnedGraphIsNotEvicted) {
  CreateWith([](gcap_graph_manager_options_t* o) {
    o->min_num_runs_before_capture = 0;
    o->max_graphs = 2;
  });
  EXPECT_TRUE(Run(Pinned(1)).ok());
  for (const int id : {2, 3, 4}) EXPECT_TRUE(Run(RunOfStep(id)).ok());
  EXPECT_EQ(Captured({1, 2, 3, 4}), (Ids{1, 4}));
  EXPECT_EQ(Info(1).evictions, 0u);
  for (const int id : {5, 6, 7}) EXPECT_TRUE(Run(Pinned(id)).ok());
  EXPECT_EQ(Captured({1, 4, 5, 6, 7}), (Ids{1, 5, 6, 7})) << "all are pinned, and stay";
  EXPECT_TRUE(Run(RunOfStep(8)).ok());
  EXPECT_EQ(Captured({8}), (Ids{8})) << "the graph just captured";
  EXPECT_TRUE(Run(RunOfStep(9)).ok());
  EXPECT_EQ(Captured({1, 5, 6, 7, 8, 9}), (Ids{1, 5, 6, 7, 9}));
}

TEST_F(GraphWarmUp, APinnedGraphIsReleasedAndItsNextCaptureSaysAnew) {
  CreateWith([](gcap_graph_manager_options_t* o) {
    o->min_num_runs_before_capture = 0;
    o->max_graphs = 1;
  });
  EXPECT_TRUE(Run(Pinned(1)).ok());
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 1));
  EXPECT_EQ(State(1), "COLD");
  EXPECT_TRUE(Run(RunOfStep(1)).ok());
  EXPECT_TRUE(Run(RunOfStep(2)).ok());
  EXPECT_EQ(Captured({1, 2}), (Ids{2}));
  EXPECT_TRUE(Run(Pinned(1)).ok());
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 1));
  EXPECT_TRUE(Run(RunOfStep(1)).ok());
  EXPECT_TRUE(Run(RunOfStep(2)).ok());
  EXPECT_EQ(Captured({1, 2}), (Ids{2}));
}

// --- Warm-ups -------------------------------------------------------------------------------------------------------

TEST_F(GraphWarmUp, RunsAllEagerlyAndThenCapturesAllInTheOrderOfTheArray) {
  Create(1);
  const std::vector<gcap_run_t> runs = {RunOfStep(8), RunOfStep(4), RunOfStep(2)};
  const Outcome outcome = WarmUp(runs);
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(order_, (Ids{8, 4, 2, 8, 4, 2}));
  EXPECT_EQ(Captured({8, 4, 2}), (Ids{8, 4, 2}));
  EXPECT_EQ(told_, (std::vector<Told>{{0, 3, GCAP_RUN_EAGER},
                                      {1, 3, GCAP_RUN_EAGER},
                                      {2, 3, GCAP_RUN_EAGER},
                                      {0, 3, GCAP_RUN_CAPTURED},
                                      {1, 3, GCAP_RUN_CAPTURED},
                                      {2, 3, GCAP_RUN_CAPTURED}}));
  for (const gcap_run_t& run : runs) EXPECT_EQ(StepOf(run).count.value(), 2);
  told_.clear();
  EXPECT_TRUE(WarmUp(runs).ok());
  EXPECT_TRUE(told_.empty()) << "all have graphs";
  GCAP_EXPECT_OK(gcap_graph_manager_warm_up(manager_, nullptr, 0, nullptr, nullptr));
}

TEST_F(GraphWarmUp, CapturesBehindAllOthersWhatMayNotBeExecuted) {
  Create(1);
  const std::vector<gcap_run_t> runs = {CaptureOnly(8), RunOfStep(4), CaptureOnly(2)};
  const Outcome outcome = WarmUp(runs);
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(order_, (Ids{4, 4, 8, 2}));
  EXPECT_EQ(
      told_,
      (std::vector<Told>{
          {1, 3, GCAP_RUN_EAGER}, {1, 3, GCAP_RUN_CAPTURED}, {0, 3, GCAP_RUN_RECORDED}, {2, 3, GCAP_RUN_RECORDED}}));
  EXPECT_EQ(StepOf(runs[0]).count.value(), 0);
  EXPECT_EQ(StepOf(runs[2]).count.value(), 0);
}

TEST_F(GraphWarmUp, KeysGetTheirGraphsAsIdsDo) {
  Create(1);
  const gcap_graph_key_t keys[] = {{"a", 1, nullptr}, {"b", 1, nullptr}};
  std::vector<gcap_run_t> runs = {CaptureOnly(GCAP_GRAPH_ID_NONE), RunOfStep(GCAP_GRAPH_ID_NONE)};
  for (size_t i = 0; i < runs.size(); ++i) runs[i].key = &keys[i];
  const Outcome outcome = WarmUp(runs);
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(told_, (std::vector<Told>{{1, 2, GCAP_RUN_EAGER}, {1, 2, GCAP_RUN_CAPTURED}, {0, 2, GCAP_RUN_RECORDED}}));
  EXPECT_EQ(StepOf(runs[0]).count.value(), 0);
  told_.clear();
  EXPECT_TRUE(WarmUp(runs).ok());
  EXPECT_TRUE(told_.empty()) << "all have graphs";
}

// A program of an older version, whose runs are shorter.
TEST_F(GraphWarmUp, TakesRunsOfAnotherVersion) {
  Create(0);
  constexpr size_t kBytes = offsetof(gcap_run_t, capture_only);
  std::vector<char> runs(2 * kBytes);
  for (size_t i = 0; i < 2; ++i) {
    gcap_run_t run = RunOfStep(static_cast<int>(i));
    run.struct_size = kBytes;
    memcpy(&runs[i * kBytes], &run, kBytes);
  }
  GCAP_EXPECT_OK(
      gcap_graph_manager_warm_up(manager_, reinterpret_cast<const gcap_run_t*>(runs.data()), 2, nullptr, nullptr));
  EXPECT_EQ(Captured({0, 1}), (Ids{0, 1}));
}

TEST_F(GraphWarmUp, RefusesBeforeItsFirstRun) {
  Create(0);
  std::vector<gcap_run_t> runs = {RunOfStep(1), RunOfStep(GCAP_GRAPH_ID_NONE)};
  EXPECT_TRUE(WarmUp(runs).Names("runs[1].id is -1, allowed are ids >= 0"));
  runs[1] = RunOfStep(2);
  runs[1].work = nullptr;
  const Outcome outcome = WarmUp(runs);
  EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
  EXPECT_TRUE(outcome.Names("runs[1].work is NULL")) << outcome.message;
  EXPECT_TRUE(order_.empty());
}

TEST_F(GraphWarmUp, EndsAtAFailureAndKeepsWhatWasCaptured) {
  Create(0);
  const std::vector<gcap_run_t> runs = {RunOfStep(1), CaptureOnly(2), CaptureOnly(3)};
  StepOf(runs[1]).fails = true;
  const Outcome outcome = WarmUp(runs);
  EXPECT_EQ(outcome.code, GCAP_CAPTURE_INVALIDATED);
  EXPECT_TRUE(outcome.Names("the warm-up of graph id 2: ")) << outcome.message;
  EXPECT_TRUE(outcome.Names("the kernel failed")) << outcome.message;
  EXPECT_EQ(told_.back(), (Told{1, 3, GCAP_RUN_NOT_DONE}));
  EXPECT_EQ(Captured({1, 2, 3}), (Ids{1}));
}

TEST_F(GraphWarmUp, NamesEachIdThatHasNoGraphWithTheReason) {
  Create(GCAP_WARM_UP_MAX_RUNS);
  const std::vector<gcap_run_t> runs = {RunOfStep(1), RunOfStep(2)};
  const Outcome outcome = WarmUp(runs);
  EXPECT_EQ(outcome.code, GCAP_UNAVAILABLE);
  for (const char* id : {"1", "2"}) {
    EXPECT_TRUE(outcome.Names(std::string("graph id ") + id + " has no graph after its warm-up: graph id " + id +
                              " warms up: 8 eager runs so far"))
        << outcome.message;
  }
  EXPECT_EQ(order_.size(), 2u * GCAP_WARM_UP_MAX_RUNS);
  EXPECT_TRUE(WarmUp(runs).ok()) << "a later run captures";
}

TEST_F(GraphWarmUp, NamesWhatTheBudgetTook) {
  CreateWith([](gcap_graph_manager_options_t* o) {
    o->min_num_runs_before_capture = 0;
    o->max_graphs = 1;
  });
  const Outcome outcome = WarmUp({RunOfStep(1), RunOfStep(2)});
  EXPECT_EQ(outcome.code, GCAP_UNAVAILABLE);
  EXPECT_TRUE(outcome.Names("graph id 1 has no graph after its warm-up: the budget evicted it")) << outcome.message;
  EXPECT_FALSE(outcome.Names("graph id 2")) << outcome.message;
  EXPECT_EQ(Captured({1, 2}), (Ids{2}));
}

TEST_F(GraphWarmUp, ItsCallbackUsesTheManagerAndDoesNotEndIt) {
  Create(0);
  const gcap_run_t run = RunOfStep(1);
  GCAP_EXPECT_OK(gcap_graph_manager_warm_up(
      manager_, &run, 1,
      [](void* manager, size_t, size_t, const gcap_run_result_t*) {
        gcap_graph_manager_t* self = static_cast<gcap_graph_manager_t*>(manager);
        EXPECT_TRUE(gcap_graph_manager_is_captured(self, 1));
        GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(self), GCAP_FAILED_PRECONDITION, "");
      },
      manager_));
}

// And the manager may end: the warm-up does not hold it any more.
TEST_F(GraphWarmUp, AnExceptionOfTheWorkReachesTheCaller) {
  Create(0);
  gcap_run_t run = RunOfStep(1);
  run.work = [](void*, const gcap_run_resources_t*) -> gcap_status_t { throw std::runtime_error("a shape is wrong"); };
  for (const bool capture_only : {false, true}) {
    run.capture_only = capture_only;
    EXPECT_THROW(Outcome(gcap_graph_manager_warm_up(manager_, &run, 1, nullptr, nullptr)), std::runtime_error);
  }
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
  manager_ = nullptr;
}

TEST_F(GraphWarmUp, IsRefusedOnAThreadThatCaptures) {
  Create(0);
  const gcap_run_t run = RunOfStep(1);
  EXPECT_EQ(Begin(7), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_FAILS(gcap_graph_manager_warm_up(manager_, &run, 1, nullptr, nullptr), GCAP_FAILED_PRECONDITION,
                    "gcap_graph_manager_warm_up");
  EXPECT_TRUE(End().ok());
}

}  // namespace
}  // namespace testing
}  // namespace gcap
