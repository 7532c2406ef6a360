// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Warm-ups of a runtime's graphs, with scratch, and runs of a runtime that are captured and not launched.

#include <stdexcept>
#include <string>
#include <vector>

#include "gcap/runtime_ops.h"
#include "test/runtime/runtime_fixture.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kLarge = size_t{1} << 20;

class RuntimeWarmUp : public RuntimeTest {
 protected:
  // A copy by way of scratch, as large as the id says.
  struct Job {
    DeviceFloats from{Floats{1, 2}}, to{Floats{0, 0}};
    size_t scratch_bytes = 0;

    static gcap_status_t Issue(void* job, const gcap_run_resources_t* run) {
      const Job* self = static_cast<Job*>(job);
      void* scratch = nullptr;
      return CopyByScratch(*run, self->from, self->to, self->scratch_bytes, &scratch);
    }
  };

  void SetUp() override {
    RuntimeTest::SetUp();
    gcap_options_init(&options_);
    options_.enable_cuda_graph = true;
    options_.graph.min_num_runs_before_capture = 1;
  }

  static gcap_run_t RunOf(int id, Job* job, size_t scratch_bytes) {
    job->scratch_bytes = scratch_bytes;
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = id;
    run.work = Job::Issue;
    run.user = job;
    return run;
  }
  Outcome WarmUp(const std::vector<gcap_run_t>& runs) {
    outcomes_.clear();
    return Outcome(gcap_runtime_warm_up(
        runtime_, runs.data(), runs.size(),
        [](void* outcomes, size_t, size_t, const gcap_run_result_t* result) {
          static_cast<std::vector<gcap_run_outcome_t>*>(outcomes)->push_back(result->outcome);
        },
        &outcomes_));
  }
  void ExpectReplaysJob(int id, Job* job) {
    GCAP_EXPECT_OK(gcap_runtime_synchronize(runtime_));
    ExpectReplays(id, &job->from, job->to, Floats{5, static_cast<float>(id)});
  }

  gcap_options_t options_;
  std::vector<gcap_run_outcome_t> outcomes_;
};

TEST_F(RuntimeWarmUp, EndsInAGraphOfEachId) {
  Create(options_);
  Job jobs[2];
  const Outcome outcome = WarmUp({RunOf(8, &jobs[0], kLarge), RunOf(1, &jobs[1], 100)});
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(outcomes_,
            (std::vector<gcap_run_outcome_t>{GCAP_RUN_EAGER, GCAP_RUN_EAGER, GCAP_RUN_CAPTURED, GCAP_RUN_CAPTURED}));
  ExpectReplaysJob(8, &jobs[0]);
  ExpectReplaysJob(1, &jobs[1]);
}

// It finds the scratch that an eager run of other work found, and keeps it for its graph.
TEST_F(RuntimeWarmUp, CapturesOnlyWhatMayNotBeExecuted) {
  for (const bool shares : {false, true}) {
    SCOPED_TRACE(shares);
    options_.share_graph_memory = shares;
    Create(options_);
    Job jobs[2];
    std::vector<gcap_run_t> runs = {RunOf(8, &jobs[0], kLarge), RunOf(1, &jobs[1], kLarge / 4)};
    runs[1].capture_only = true;
    const Outcome outcome = WarmUp(runs);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    GCAP_EXPECT_OK(gcap_runtime_synchronize(runtime_));
    EXPECT_EQ(jobs[1].to.Get(), (Floats{0, 0}));
    EXPECT_EQ(Info(1).replays, 0u);
    ExpectReplaysJob(1, &jobs[1]);
    ExpectReplaysJob(8, &jobs[0]);
    EXPECT_EQ(Info(1).captures, 1u);
    Destroy();
  }
}

TEST_F(RuntimeWarmUp, ARunThatIsCapturedOnlyTellsItsIdOnceThereIsAGraph) {
  Create(options_);
  Job job;
  EXPECT_TRUE(WarmUp({RunOf(8, &job, kLarge)}).ok());
  gcap_run_t run = RunOf(8, &job, kLarge);
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  run.capture_only = true;
  run.result = &result;
  GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
  EXPECT_EQ(result.outcome, GCAP_RUN_RECORDED);
  EXPECT_EQ(result.id, 8);
}

// Work whose graph depends on an answer.
struct Guarded {
  static gcap_status_t Issue(void* user, const gcap_run_resources_t* resources) {
    Guarded* const self = static_cast<Guarded*>(user);
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.kind = GCAP_GRAPH_GUARD_ANSWER;
    guard.user = self;
    guard.ask = [](void* asked, int64_t* out_answer) -> gcap_status_t {
      *out_answer = static_cast<Guarded*>(asked)->answer;
      return nullptr;
    };
    GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
    return self->work(self->job, resources);
  }
  gcap_status_t (*work)(void* job, const gcap_run_resources_t* resources);
  void* job;
  int64_t answer = 1;
};

// What it captures finds memory, as that of any id does: here the graph before keeps all there was.
TEST_F(RuntimeWarmUp, AnotherAnswerOfAGuardIsCapturedAtOnce) {
  Create(options_);
  Job job;
  Guarded guarded = {Job::Issue, &job};
  gcap_run_t run = RunOf(8, &job, kLarge);
  run.user = &guarded;
  run.work = Guarded::Issue;
  EXPECT_TRUE(WarmUp({run}).ok());
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  run.result = &result;
  for (guarded.answer = 2; guarded.answer < 4; ++guarded.answer) {
    GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
    EXPECT_EQ(result.outcome, GCAP_RUN_CAPTURED);
  }
  EXPECT_EQ(Info(8).failures, 0u);
  EXPECT_EQ(Info(8).graphs, 3u);
}

TEST_F(RuntimeWarmUp, TheOptionSaysHowManyGraphsOfAnIdDifferByTheirGuards) {
  const char *key = "graph.max_variants", *value = "2";
  GCAP_ASSERT_OK(gcap_options_parse(&options_, &key, &value, 1));
  Create(options_);
  Job job;
  Guarded guarded = {Job::Issue, &job};
  gcap_run_t run = RunOf(8, &job, kLarge);
  run.user = &guarded;
  run.work = Guarded::Issue;
  EXPECT_TRUE(WarmUp({run}).ok());
  for (const size_t graphs : {2, 2}) {
    ++guarded.answer;
    GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
    EXPECT_EQ(Info(8).graphs, graphs) << guarded.answer;
  }
}

// Wherever it is asked: the next run is as if the one before had not been.
TEST_F(RuntimeWarmUp, AFunctionOfAGuardMayThrow) {
  options_.graph.max_variants = 1;
  Create(options_);
  struct Guarded {
    Job job;
    int64_t answer = 1;
    int until = -1, calls = 0;  // the call that throws, and how many there were
  } guarded;
  gcap_run_t run = RunOf(8, &guarded.job, kLarge);
  run.user = &guarded;
  run.synchronize = true;
  run.work = [](void* user, const gcap_run_resources_t* resources) -> gcap_status_t {
    Guarded* const self = static_cast<Guarded*>(user);
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.kind = GCAP_GRAPH_GUARD_ANSWER;
    guard.user = self;
    guard.ask = [](void* asked, int64_t* out_answer) -> gcap_status_t {
      Guarded* const to = static_cast<Guarded*>(asked);
      if (to->calls++ == to->until) throw std::runtime_error("thrown");
      *out_answer = to->answer;
      return nullptr;
    };
    GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
    return Job::Issue(&self->job, resources);
  };
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  EXPECT_TRUE(WarmUp({run}).ok());
  run.result = &result;
  gcap_run_resources_t resources;
  gcap_run_resources_init(&resources);
  GCAP_EXPECT_OK(gcap_runtime_get_resources(runtime_, &resources));
  for (int nth = 0; nth < 4; ++nth) {  // of a replay, a begin, the work, and its end
    SCOPED_TRACE(nth);
    ++guarded.answer;
    guarded.calls = 0;
    guarded.until = nth;
    EXPECT_THROW((void)Outcome(gcap_runtime_run(runtime_, &run)), std::runtime_error);
    guarded.until = -1;
    void* block = nullptr;  // of no run
    GCAP_EXPECT_OK(gcap_scratch_alloc(resources.scratch, 64, resources.stream, &block));
    const uint64_t requested = ScratchStats().requested_in_use_bytes;
    gcap_run_t eager = RunOf(GCAP_GRAPH_ID_NONE, &guarded.job, kLarge);
    GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &eager));
    EXPECT_EQ(ScratchStats().requested_in_use_bytes, requested);
    for (int i = 0; i < 2 && result.outcome != GCAP_RUN_CAPTURED; ++i) GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
    EXPECT_EQ(result.outcome, GCAP_RUN_CAPTURED);
    GCAP_EXPECT_OK(gcap_scratch_free(resources.scratch, block));
  }
}

// The same of buffers that lie otherwise.
TEST_F(RuntimeWarmUp, BuffersThatLieOtherwiseAreCapturedAtOnce) {
  Create(options_);
  Job job;
  const DeviceFloats memory{Floats(4)};
  gcap_graph_buffer_t items[2] = {{"input", memory.get(), sizeof(float), 4}, {"output", nullptr, sizeof(float), 4}};
  const bool may_be_unused[2] = {true, true};
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.items = items;
  buffers.count = 2;
  buffers.may_be_unused = may_be_unused;
  gcap_run_t run = RunOf(8, &job, kLarge);
  run.buffers = &buffers;
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  run.result = &result;
  items[1].address = memory.get() + 2;  // apart
  GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
  for (const int shift : {2, 1, 0}) {  // apart, touching, equal
    items[1].address = memory.get() + shift;
    GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
    EXPECT_EQ(result.outcome, GCAP_RUN_CAPTURED) << shift;
  }
  EXPECT_EQ(Info(8).failures, 0u);
}

// As the first runs of ids do: the graph before keeps all there was.
TEST_F(RuntimeWarmUp, TheFirstRunOfAKeyIsCapturedWithTheScratchThatItNeeds) {
  options_.graph.min_num_runs_before_capture = 0;
  Create(options_);
  Job job;
  gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE, &job, kLarge);
  GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  run.result = &result;
  for (const int number : {1, 2, 3}) {
    const gcap_graph_key_t key = {&number, sizeof(number), "job"};
    run.key = &key;
    GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
    EXPECT_EQ(result.outcome, GCAP_RUN_CAPTURED) << number;
  }
}

TEST_F(RuntimeWarmUp, APlanTakesARunThatIsCapturedOnly) {
  Create(options_);
  Job job;
  EXPECT_TRUE(WarmUp({RunOf(8, &job, kLarge)}).ok());
  gcap_run_t run = RunOf(1, &job, kLarge);
  run.capture_only = run.pinned = true;
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_EXPECT_OK(gcap_runtime_plan(runtime_, &run, 1, &plan));
  EXPECT_EQ(plan.graphs, 1u);
  EXPECT_EQ(Info(1).state, GCAP_GRAPH_COLD);
}

TEST_F(RuntimeWarmUp, ARunThatIsCapturedOnlyIsDoneOnceThereIsAGraph) {
  Create(options_);
  Job job;
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run = RunOf(1, &job, 0);
  run.work = [](void* user, const gcap_run_resources_t* resources) {
    const Job* self = static_cast<Job*>(user);
    return Copy(*resources, self->from, self->to);
  };
  run.capture_only = true;
  run.result = &result;
  for (int i = 0; i < 2; ++i) {
    GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
    EXPECT_EQ(result.outcome, GCAP_RUN_RECORDED);
    EXPECT_FALSE(result.was_issued);
  }
  EXPECT_EQ(Info(1).captures, 1u);
  GCAP_EXPECT_FAILS(gcap_runtime_replay(runtime_, &run, nullptr), GCAP_INVALID_ARGUMENT, "capture_only is true");
  GCAP_EXPECT_OK(gcap_runtime_synchronize(runtime_));
  EXPECT_EQ(job.to.Get(), (Floats{0, 0}));
  ExpectReplaysJob(1, &job);
}

TEST_F(RuntimeWarmUp, ARunThatIsCapturedOnlyIsNotIssuedAgainAfterAFailure) {
  Create(options_);
  int issued = 0;
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = 1;
  run.capture_only = true;
  run.user = &issued;
  run.work = [](void* count, const gcap_run_resources_t*) -> gcap_status_t {
    ++*static_cast<int*>(count);
    return GCAP_STATUS(GCAP_LIBRARY_ERROR, "no handle yet");
  };
  GCAP_EXPECT_FAILS(gcap_runtime_run(runtime_, &run), GCAP_CAPTURE_INVALIDATED, "no handle yet");
  EXPECT_EQ(issued, 1);
}

TEST_F(RuntimeWarmUp, IsRefusedWhereNothingIsCaptured) {
  options_.enable_cuda_graph = false;
  Create(options_);
  Job job;
  gcap_run_t run = RunOf(1, &job, 100);
  const Outcome outcome = WarmUp({run});
  EXPECT_EQ(outcome.code, GCAP_FAILED_PRECONDITION);
  EXPECT_TRUE(outcome.Names("there will be no graph: the runtime does not capture (enable_cuda_graph)"))
      << outcome.message;
  run.capture_only = true;
  GCAP_EXPECT_FAILS(gcap_runtime_run(runtime_, &run), GCAP_FAILED_PRECONDITION,
                    "graph id 1: the run is capture_only, and the runtime does not capture (enable_cuda_graph)");
  EXPECT_TRUE(outcomes_.empty());
  EXPECT_EQ(job.to.Get(), (Floats{0, 0}));
}

TEST_F(RuntimeWarmUp, ItsCallbackDoesNotEndTheRuntime) {
  Create(options_);
  Job job;
  const gcap_run_t run = RunOf(1, &job, 100);
  GCAP_EXPECT_OK(gcap_runtime_warm_up(
      runtime_, &run, 1,
      [](void* runtime, size_t, size_t, const gcap_run_result_t*) {
        GCAP_EXPECT_FAILS(gcap_runtime_destroy(static_cast<gcap_runtime_t*>(runtime)), GCAP_FAILED_PRECONDITION, "");
      },
      runtime_));
  ExpectReplaysJob(1, &job);
}

TEST_F(RuntimeWarmUp, AnExceptionOfTheWorkReachesTheCaller) {
  Create(options_);
  Job job;
  gcap_run_t run = RunOf(1, &job, 100);
  run.work = [](void*, const gcap_run_resources_t*) -> gcap_status_t { throw std::runtime_error("a shape is wrong"); };
  EXPECT_THROW(Outcome(gcap_runtime_warm_up(runtime_, &run, 1, nullptr, nullptr)), std::runtime_error);
  run.work = Job::Issue;
  EXPECT_TRUE(WarmUp({run}).ok());
  ExpectReplaysJob(1, &job);
}

// A provider's own graphs know neither field, so a run that has one is refused before the table is called.
TEST_F(RuntimeWarmUp, ATableIsNotAskedForWhatItDoesNotKnow) {
  gcap_runtime_ops_t ops = {};
  ops.struct_size = sizeof(ops);
  ops.get_resources = [](void*, gcap_run_resources_t*) -> gcap_status_t { return nullptr; };
  ops.synchronize = [](void*) -> gcap_status_t { return nullptr; };
  ops.begin_run = [](void*, const gcap_run_t*, gcap_graph_run_kind_t*, void**) -> gcap_status_t {
    ADD_FAILURE() << "the table was asked";
    return nullptr;
  };
  ops.end_run = [](void*, const gcap_run_t*, gcap_status_t run_status) { return run_status; };
  GCAP_ASSERT_OK(gcap_runtime_create_from(&ops, &runtime_));
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = 1;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  run.pinned = true;
  GCAP_EXPECT_FAILS(gcap_runtime_begin_run(runtime_, &run, &kind, nullptr), GCAP_FAILED_PRECONDITION,
                    "graph id 1: the run is pinned, and the runtime has graphs of its own");
  run.capture_only = true;
  GCAP_EXPECT_FAILS(gcap_runtime_begin_run(runtime_, &run, &kind, nullptr), GCAP_FAILED_PRECONDITION,
                    "graph id 1: the run is capture_only, and the runtime has graphs of its own");
  // Nor do others know the ids of its keys.
  const gcap_graph_key_t key = {"a", 1, nullptr};
  gcap_run_init(&run);
  run.key = &key;
  run.work = [](void*, const gcap_run_resources_t*) -> gcap_status_t { return nullptr; };
  GCAP_EXPECT_FAILS(gcap_runtime_warm_up(runtime_, &run, 1, nullptr, nullptr), GCAP_FAILED_PRECONDITION,
                    "runs[0] has a key");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
