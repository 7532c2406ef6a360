// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Steps with break_where_refused: part of the segment as long as no capture refuses them, and holes from then on.

#include <cuda_runtime_api.h>

#include <list>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gcap/graph_guards.h"
#include "gcap/graph_plan.h"
#include "gcap/graph_values.h"
#include "gtest/gtest.h"
#include "lib/capture/label.h"
#include "test/graph/holes_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class GraphRefusedSteps : public HolesTest {
 protected:
  void SetUp() override {
    HolesTest::SetUp();
    options_.backoff_runs = 100;  // an id that cools down is not captured again in any of these tests
    step_.break_where_refused = true;
    step_.function = [this](const gcap_run_resources_t* resources) { return Add(resources, x_.get(), 10); };
  }
  // What a capture refuses: the host must know what is there.
  WorkWith AddTenfold(const Floats& x) {
    return [&x](const gcap_run_resources_t* resources) -> gcap_status_t {
      float found = 0;
      GCAP_RETURN_IF_ERROR(ReadFirst(resources, x.get(), &found));
      return Add(resources, x.get(), static_cast<uint64_t>(10 * found));
    };
  }
  // x += 1; the step; x += 2.
  WorkWith AroundStep() {
    return [this](const gcap_run_resources_t* resources) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 1));
      GCAP_RETURN_IF_ERROR(step_.Issue(resources));
      return Add(resources, x_.get(), 2);
    };
  }
  // A capture that the step fails, a capture with a hole, and a replay, each of which must do the work once.
  void ExpectHoleAtTheNextCapture(float by_step, int id = kId) {
    const gcap_run_outcome_t outcomes[] = {GCAP_RUN_EAGER, GCAP_RUN_CAPTURED, GCAP_RUN_REPLAYED};
    for (const gcap_run_outcome_t outcome : outcomes) {
      x_.Fill(0);
      ExpectRun(AroundStep(), outcome, id);
      EXPECT_EQ(x_.value(), 3 + by_step);
      if (outcome == GCAP_RUN_EAGER) {
        EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "STEP_REFUSED");
      }
    }
    EXPECT_EQ(Info(id).holes, 1u);
    EXPECT_EQ(Info(id).refused_steps, 1u);
    EXPECT_EQ(Info(id).failures, 1u);
  }

  const Floats x_, y_;
  Hole step_;
};

TEST_F(GraphRefusedSteps, AStepThatCanBeCapturedIsPartOfTheSegment) {
  CreateManager();
  ExpectRun(AroundStep(), GCAP_RUN_CAPTURED);
  ExpectRun(AroundStep(), GCAP_RUN_REPLAYED);
  EXPECT_EQ(x_.value(), 26);
  EXPECT_EQ(step_.calls, 1) << "in the capture alone";
  EXPECT_EQ(Info(kId).holes, 0u);
  EXPECT_EQ(Info(kId).nodes, 3u);
}

// Also in its eager rerun and as a hole the function opens and closes its label, and none is left.
TEST_F(GraphRefusedSteps, AStepThatIsRefusedIsToldWithItsLabel) {
  CreateManager();
  const WorkWith refused = AddTenfold(x_);
  step_.function = [&](const gcap_run_resources_t* resources) {
    gcap_label("attention");
    const gcap_status_t status = refused(resources);
    gcap_label(nullptr);
    return status;
  };
  ExpectRun(AroundStep(), GCAP_RUN_EAGER);
  const Outcome why(gcap_graph_manager_explain(manager_, kId, GCAP_GRAPH_WHY_EAGER));
  EXPECT_TRUE(why.Names(" in label 'attention' at ")) << why.message;
  ExpectRun(AroundStep(), GCAP_RUN_CAPTURED);
  ExpectRun(AroundStep(), GCAP_RUN_REPLAYED);
  EXPECT_STREQ(gcap_labels_open(), "");
}

TEST_F(GraphRefusedSteps, AStepThatACaptureRefusesIsAHoleAtTheNextOne) {
  CreateManager();
  step_.name = "attention";
  step_.function = AddTenfold(x_);
  const LogCatcher log;
  ExpectRun(AroundStep(), GCAP_RUN_EAGER);
  EXPECT_EQ(x_.value(), 13);
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "STEP_REFUSED");
  EXPECT_EQ(result_.id, kId);
  EXPECT_EQ(State(kId), "READY");
  EXPECT_TRUE(Info(kId).captures_next);
  EXPECT_EQ(Info(kId).failures, 1u);
  EXPECT_EQ(Info(kId).holes, 0u);
  const Outcome why(gcap_graph_manager_explain(manager_, kId, GCAP_GRAPH_WHY_EAGER));
  EXPECT_TRUE(why.Names("cudaStreamSynchronize")) << why.message;
  EXPECT_EQ(step_.calls, 2);
  for (const gcap_run_outcome_t outcome : {GCAP_RUN_CAPTURED, GCAP_RUN_REPLAYED, GCAP_RUN_REPLAYED}) {
    x_.Fill(4);
    ExpectRun(AroundStep(), outcome);
    EXPECT_EQ(x_.value(), 57) << "the function reads what the first segment left";
  }
  EXPECT_EQ(step_.calls, 5);
  EXPECT_EQ(Info(kId).holes, 1u);
  EXPECT_EQ(Info(kId).refused_steps, 1u);
  EXPECT_EQ(Info(GCAP_GRAPH_ID_NONE).refused_steps, 1u);
  const std::string text = log.text();
  EXPECT_EQ(CountOf(text, "graph id 3: a capture refused the step 'attention'"), 1u) << text;
  EXPECT_EQ(CountOf(text, "one launch and one call more (2 segments up to there): "), 1u) << text;
  EXPECT_NE(text.find("cudaStreamSynchronize(resources->cuda_stream) at ./test/graph/holes_test.h:"), std::string::npos)
      << text;
  EXPECT_NE(text.find("(rule R"), std::string::npos) << text;
}

// --- Which steps are the same ---------------------------------------------------------------------------------------

TEST_F(GraphRefusedSteps, OneFailureMakesHolesOfALoopOverLayers) {
  CreateManager();
  std::list<Hole> layers(8);
  for (Hole& layer : layers) {
    layer.break_where_refused = true;
    layer.function = AddTenfold(x_);
  }
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    for (Hole& layer : layers) GCAP_RETURN_IF_ERROR(layer.Issue(resources));
    return nullptr;
  };
  x_.Fill(1);
  ExpectRun(work, GCAP_RUN_EAGER);
  x_.Fill(0);
  ExpectRun(work, GCAP_RUN_CAPTURED);
  EXPECT_EQ(Info(kId).holes, 8u);
  EXPECT_EQ(Info(kId).refused_steps, 8u);
}

TEST_F(GraphRefusedSteps, AStepOfAnotherNameOrFunctionStaysInItsSegment) {
  CreateManager();
  Hole named = step_;
  named.name = "norm";
  step_.function = AddTenfold(x_);
  const auto other = [](void* user, const gcap_run_resources_t* resources) { return Hole::Call(user, resources); };
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(named.Issue(resources));
    gcap_graph_hole_t hole;
    gcap_graph_hole_init(&hole);
    hole.name = step_.name;
    hole.work = other;
    hole.user = &named;
    hole.break_where_refused = true;
    GCAP_RETURN_IF_ERROR(gcap_graph_hole_issue(resources, &hole));
    return step_.Issue(resources);
  };
  ExpectRun(work, GCAP_RUN_EAGER);
  ExpectRun(work, GCAP_RUN_CAPTURED);
  EXPECT_EQ(Info(kId).holes, 1u);
  EXPECT_EQ(Info(kId).nodes, 2u);
}

// With a name of its own in each run no run would ever be captured.
TEST_F(GraphRefusedSteps, AnIdWithTooManyRefusedStepsTriesNoneAnyMore) {
  CreateManager();
  step_.function = AddTenfold(x_);
  std::string name;
  for (int round = 0; round <= 64; ++round) {
    name = "step " + std::to_string(round);
    step_.name = name.c_str();
    x_.Fill(0);
    ExpectRun(AroundStep(), round < 64 ? GCAP_RUN_EAGER : GCAP_RUN_CAPTURED);
    EXPECT_EQ(x_.value(), 13);
  }
  EXPECT_EQ(Info(kId).failures, 64u);
  EXPECT_EQ(Info(kId).refused_steps, 1u);
}

// --- What breaks a capture ------------------------------------------------------------------------------------------

TEST_F(GraphRefusedSteps, AFailureThatTheFunctionDropsIsARefusalToo) {
  CreateManager();
  step_.function = [this](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_status_ignore(GCAP_CUDA(cudaStreamSynchronize(resources->cuda_stream)));
    return Add(resources, x_.get(), 10);
  };
  ExpectHoleAtTheNextCapture(10);
}

TEST_F(GraphRefusedSteps, ACallThatNobodyNotedIsSeen) {
  for (const uint32_t calls : {options_.capture.ledger_calls, 0u}) {
    SCOPED_TRACE(calls);
    options_.capture.ledger_calls = calls;
    CreateManager();
    step_.function = [this](const gcap_run_resources_t* resources) -> gcap_status_t {
      (void)cudaStreamSynchronize(resources->cuda_stream);
      (void)cudaGetLastError();
      return gcap_thread_is_capturing() ? nullptr : Add(resources, x_.get(), 10);
    };
    const LogCatcher log;
    ExpectHoleAtTheNextCapture(10);
    EXPECT_EQ(CountOf(log.text(), "a capture refused the step 'hole'"), 1u) << log.text();
    DestroyManager();
  }
}

TEST_F(GraphRefusedSteps, WorkThatEscapesIsARefusal) {
  CreateManager();
  const RawStream other;
  step_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(y_.get(), 0, kFloatsBytes, other.get())));
    GCAP_CAPTURE_NOTE("fill", other.get());
    return Add(resources, x_.get(), 10);
  };
  const LogCatcher log;
  ExpectHoleAtTheNextCapture(10);
  EXPECT_NE(log.text().find("(rule R64)"), std::string::npos) << log.text();
}

class UnjoinedSteps : public GraphRefusedSteps {
 protected:
  void SetUp() override {
    GraphRefusedSteps::SetUp();
    GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    forked_ = std::make_unique<RawStream>();
  }
  void TearDown() override {
    DestroyManager();
    GCAP_EXPECT_CUDA(cudaEventDestroy(event_));
    forked_.reset();
    GraphRefusedSteps::TearDown();
  }
  gcap_status_t Order(cudaStream_t first, cudaStream_t then) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(event_, first)));
    return GCAP_CUDA(cudaStreamWaitEvent(then, event_, 0));
  }
  gcap_status_t AddForked(const Floats& x) {
    GCAP_RETURN_IF_ERROR(AddTo(forked_->get(), x.get(), x.get(), 10));
    GCAP_CAPTURE_NOTE("add", forked_->get());
    return nullptr;
  }

  cudaEvent_t event_ = nullptr;
  std::unique_ptr<RawStream> forked_;
};

TEST_F(UnjoinedSteps, AForkThatTheFunctionJoinsIsPartOfTheSegment) {
  CreateManager();
  step_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Order(resources->cuda_stream, forked_->get()));
    GCAP_RETURN_IF_ERROR(AddForked(x_));
    return Order(forked_->get(), resources->cuda_stream);
  };
  ExpectRun(AroundStep(), GCAP_RUN_CAPTURED);
  EXPECT_EQ(Info(kId).holes, 0u);
  EXPECT_EQ(x_.value(), 13);
}

TEST_F(UnjoinedSteps, AForkThatTheFunctionLeavesIsARefusal) {
  CreateManager();
  bool leaves = true;
  step_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Order(resources->cuda_stream, forked_->get()));
    GCAP_RETURN_IF_ERROR(AddForked(x_));
    return leaves && gcap_thread_is_capturing() ? nullptr : Order(forked_->get(), resources->cuda_stream);
  };
  const LogCatcher log;
  ExpectHoleAtTheNextCapture(10);
  EXPECT_NE(log.text().find("the function left work of other streams unjoined: stream"), std::string::npos)
      << log.text();
  EXPECT_NE(log.text().find("(its last call: add at "), std::string::npos) << log.text();
}

TEST_F(UnjoinedSteps, AForkThatWasOpenBeforeIsNotTheFunctions) {
  CreateManager();
  step_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(AddForked(y_));
    return Add(resources, x_.get(), 10);
  };
  const cudaStream_t forked = forked_->get();
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_capture_t* capture = gcap_capture_current();
    GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &forked, 1));
    GCAP_RETURN_IF_ERROR(AddForked(y_));
    GCAP_RETURN_IF_ERROR(step_.Issue(resources));
    return gcap_capture_join(capture, &forked, 1);
  };
  ExpectRun(work, GCAP_RUN_CAPTURED);
  EXPECT_EQ(Info(kId).holes, 0u);
  EXPECT_EQ(x_.value(), 10);
  EXPECT_EQ(y_.value(), 20);
}

TEST_F(GraphRefusedSteps, ACaptureOfTheFunctionsOwnIsRefusedAndNothingIsExecuted) {
  CreateManager();
  const RawStream other;
  step_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_capture_t* capture = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_capture_begin(other.get(), nullptr, &capture));
    gcap_capture_abort(capture);
    return Add(resources, x_.get(), 10);
  };
  const LogCatcher log;
  ExpectHoleAtTheNextCapture(10);
  EXPECT_NE(log.text().find("gcap_capture_begin: called by the function of a hole, which is being captured"),
            std::string::npos)
      << log.text();
}

TEST_F(GraphRefusedSteps, ARunOfAnotherManagerIsRefusedInACaptureAndRunsInTheHole) {
  CreateManager();
  gcap_graph_manager_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &other));
  bool in_one_call = true;
  const WorkWith inner = [this](const gcap_run_resources_t* resources) { return Add(resources, x_.get(), 10); };
  step_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_run_t run = RunOf(1, resources->cuda_stream);
    run.work = IssueWith;
    run.user = const_cast<WorkWith*>(&inner);
    if (in_one_call) return gcap_graph_manager_run(other, &run);
    gcap_graph_run_kind_t kind;
    GCAP_RETURN_IF_ERROR(gcap_graph_manager_begin_run(other, &run, &kind, nullptr));
    return gcap_graph_manager_end_run(other, nullptr, inner(resources));
  };
  ExpectHoleAtTheNextCapture(10);
  in_one_call = false;
  GCAP_EXPECT_OK(gcap_graph_manager_release(other, 1));
  for (const gcap_run_outcome_t outcome : {GCAP_RUN_EAGER, GCAP_RUN_CAPTURED}) {
    x_.Fill(0);
    ExpectRun(AroundStep(), outcome, /*id=*/4);
    EXPECT_EQ(x_.value(), 13);
    gcap_status_ignore(gcap_graph_manager_release(other, 1));
  }
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(other));
}

// Whoever begins and ends runs would lose the run by either.
TEST_F(GraphRefusedSteps, TheRunIsNeitherEndedNorBegunAgainByItsStep) {
  CreateManager();
  gcap_run_t run = RunBy();
  step_.function = [&](const gcap_run_resources_t*) -> gcap_status_t {
    gcap_graph_run_kind_t kind;
    GCAP_EXPECT_FAILS(gcap_graph_manager_end_run(manager_, nullptr, nullptr), GCAP_FAILED_PRECONDITION,
                      "the end of a run: called by the function of a hole, which is being captured");
    return gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr);
  };
  EXPECT_EQ(Begin(kId), GCAP_GRAPH_RUN_CAPTURE);
  gcap_run_resources_t resources;
  gcap_run_resources_init(&resources);
  resources.cuda_stream = stream_->get();
  GCAP_EXPECT_FAILS(AroundStep()(&resources), GCAP_FAILED_PRECONDITION, "hole 'hole': the begin of a run");
  const Outcome ended = End();
  EXPECT_STREQ(gcap_code_name(ended.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(ended.Names("hole 'hole'")) << ended.message;
  EXPECT_EQ(State(kId), "READY");
  EXPECT_EQ(x_.value(), 0);
}

TEST_F(GraphRefusedSteps, AFunctionThatClosesTheCaptureIsAHoleAtTheNextOne) {
  CreateManager();
  step_.function = [this](const gcap_run_resources_t* resources) -> gcap_status_t {
    if (gcap_capture_current() == nullptr) return Add(resources, x_.get(), 10);
    gcap_capture_abort(gcap_capture_current());
    return nullptr;
  };
  const LogCatcher log;
  ExpectHoleAtTheNextCapture(10);
  EXPECT_EQ(CountOf(log.text(), "a capture refused the step 'hole'"), 1u) << log.text();
}

TEST_F(GraphRefusedSteps, AnExceptionBehindARefusalIsOne) {
  CreateManager();
  step_.function = [this](const gcap_run_resources_t* resources) -> gcap_status_t {
    const cudaError_t answer = cudaStreamSynchronize(resources->cuda_stream);
    if (answer != cudaSuccess) throw std::runtime_error(cudaGetErrorName(cudaGetLastError()));
    return Add(resources, x_.get(), 10);
  };
  const LogCatcher log;
  EXPECT_THROW(RunHoled(RunBy(), AroundStep()), std::runtime_error);
  EXPECT_EQ(State(kId), "READY");
  ExpectRun(AroundStep(), GCAP_RUN_CAPTURED);
  EXPECT_EQ(x_.value(), 13);
  EXPECT_EQ(Info(kId).refused_steps, 1u);
}

// --- What is no refusal ---------------------------------------------------------------------------------------------

TEST_F(GraphRefusedSteps, AFailureForAnotherReasonIsAsAnyFailedCapture) {
  options_.backoff_runs = 1;
  for (const gcap_code_t code : {GCAP_INVALID_ARGUMENT, GCAP_UNAVAILABLE, GCAP_RESOURCE_EXHAUSTED}) {
    SCOPED_TRACE(gcap_code_name(code));
    CreateManager();
    x_.Fill(0);
    bool fails = true;
    step_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
      if (!fails) return Add(resources, x_.get(), 10);
      fails = false;
      return GCAP_STATUS(code, "once");
    };
    ExpectRun(AroundStep(), GCAP_RUN_EAGER);
    EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "CAPTURE_FAILED");
    EXPECT_EQ(State(kId), "COOLING");
    ExpectRun(AroundStep(), GCAP_RUN_EAGER);
    ExpectRun(AroundStep(), GCAP_RUN_CAPTURED);
    EXPECT_EQ(Info(kId).holes, 0u) << "the step is what it was";
    EXPECT_EQ(x_.value(), 39);
    DestroyManager();
  }
}

TEST_F(GraphRefusedSteps, AnExceptionOfTheFunctionsOwnIsNoRefusal) {
  CreateManager();
  step_.function = [](const gcap_run_resources_t*) -> gcap_status_t { throw std::runtime_error("of its own"); };
  const LogCatcher log;
  EXPECT_THROW(RunHoled(RunBy(), AroundStep()), std::runtime_error);
  EXPECT_EQ(State(kId), "COOLING");
}

TEST_F(GraphRefusedSteps, AStepThatCancelsEndsTheRunAndIsNoHole) {
  CreateManager();
  bool cancels = true;
  step_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    if (!cancels) return Add(resources, x_.get(), 10);
    gcap_status_ignore(GCAP_CUDA(cudaStreamSynchronize(resources->cuda_stream)));
    return GCAP_STATUS(GCAP_CANCELLED, "stopped");
  };
  EXPECT_EQ(RunHoled(RunBy(), AroundStep()).code, GCAP_CANCELLED);
  EXPECT_EQ(x_.value(), 0);
  EXPECT_EQ(State(kId), "READY");
  cancels = false;
  ExpectRun(AroundStep(), GCAP_RUN_CAPTURED);
  EXPECT_EQ(Info(kId).holes, 0u);
}

TEST_F(GraphRefusedSteps, ABreakBeforeTheStepIsNotTheSteps) {
  options_.backoff_runs = 1;
  CreateManager();
  bool breaks = true;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    if (breaks) (void)cudaStreamSynchronize(resources->cuda_stream);
    if (breaks) (void)cudaGetLastError();
    breaks = false;
    return step_.Issue(resources);
  };
  for (const uint32_t calls : {options_.capture.ledger_calls, 0u}) {
    SCOPED_TRACE(calls);
    DestroyManager();
    options_.capture.ledger_calls = calls;
    CreateManager();
    breaks = true;
    step_.calls = 0;
    const LogCatcher log;
    ExpectRun(work, GCAP_RUN_EAGER);
    EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "CAPTURE_FAILED");
    EXPECT_EQ(step_.calls, 1) << "not in the broken capture";
    ExpectRun(work, GCAP_RUN_EAGER);
    ExpectRun(work, GCAP_RUN_CAPTURED);
    EXPECT_EQ(Info(kId).holes, 0u);
  }
}

TEST_F(GraphRefusedSteps, AStepThatFailsInAnEagerRunHasFailedAndNoMore) {
  options_.min_num_runs_before_capture = 1;
  CreateManager();
  bool fails = true;
  step_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    return fails ? GCAP_STATUS(GCAP_FAILED_PRECONDITION, "not yet") : Add(resources, x_.get(), 10);
  };
  const Outcome run = RunHoled(RunBy(), AroundStep());
  EXPECT_STREQ(gcap_code_name(run.code), "FAILED_PRECONDITION");
  EXPECT_TRUE(run.Names("hole 'hole': not yet")) << run.message;
  fails = false;
  stream_->Synchronize();
  x_.Fill(0);
  ExpectRun(AroundStep(), GCAP_RUN_EAGER);
  ExpectRun(AroundStep(), GCAP_RUN_CAPTURED);
  EXPECT_EQ(Info(kId).holes, 0u);
}

// --- Where a step is ------------------------------------------------------------------------------------------------

TEST_F(GraphRefusedSteps, AStepMayBeFirstAndLast) {
  CreateManager();
  Hole last = step_;
  last.name = "last";
  step_.function = last.function = AddTenfold(x_);
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(step_.Issue(resources));
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 1));
    return last.Issue(resources);
  };
  const gcap_run_outcome_t outcomes[] = {GCAP_RUN_EAGER, GCAP_RUN_EAGER, GCAP_RUN_CAPTURED, GCAP_RUN_REPLAYED};
  const LogCatcher log;
  for (const gcap_run_outcome_t outcome : outcomes) {
    x_.Fill(1);
    ExpectRun(work, outcome);
    EXPECT_EQ(x_.value(), 132);
  }
  EXPECT_EQ(Info(kId).refused_steps, 2u);
  EXPECT_EQ(CountOf(log.text(), "(3 segments up to there)"), 1u) << "of the second one: " << log.text();
}

TEST_F(GraphRefusedSteps, AStepKeepsToTheRulesOfAHole) {
  CreateManager();
  const RawStream forked;
  const cudaStream_t stream = forked.get();
  const LogCatcher log;
  const WorkWith on_fork = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_capture_t* capture = gcap_capture_current();
    if (capture == nullptr) return nullptr;
    GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &stream, 1));
    gcap_run_resources_t there = *resources;
    there.cuda_stream = stream;
    GCAP_EXPECT_FAILS(step_.Issue(&there), GCAP_FAILED_PRECONDITION, "hole 'hole' is made on stream");
    return gcap_capture_join(capture, &stream, 1);
  };
  ExpectRun(on_fork, GCAP_RUN_EAGER);
  const WorkWith elsewhere = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    std::thread([&] {
      if (gcap_status_t status = step_.Issue(resources); status != nullptr) {
        GCAP_EXPECT_FAILS(status, GCAP_FAILED_PRECONDITION, "on a thread that has no run");
      }
    }).join();
    return Add(resources, x_.get(), 1);
  };
  ExpectRun(elsewhere, GCAP_RUN_CAPTURED, 4);
  EXPECT_EQ(step_.calls, 0);
  const WorkWith local = [&](const gcap_run_resources_t* resources) {
    Hole data = step_;
    return data.Issue(resources);
  };
  EXPECT_TRUE(RunHoled(RunBy(5), local).Names("hole 'hole' has its data at"));
  Hole inner = step_;
  step_.function = [&](const gcap_run_resources_t* resources) { return inner.Issue(resources); };
  EXPECT_TRUE(RunHoled(RunBy(6), AroundStep()).Names("gcap_graph_hole_issue: called by the function of a hole"));
  EXPECT_EQ(inner.calls, 0);
}

// --- Which captures know it -----------------------------------------------------------------------------------------

TEST_F(GraphRefusedSteps, TheRunsOfOneCallAloneAreIssuedAgain) {
  CreateManager();
  step_.function = AddTenfold(x_);
  gcap_run_resources_t resources;
  gcap_run_resources_init(&resources);
  resources.cuda_stream = stream_->get();
  EXPECT_EQ(Begin(kId), GCAP_GRAPH_RUN_CAPTURE);
  gcap_status_t status = AroundStep()(&resources);
  gcap_run_t run = RunBy();
  const Outcome ended(gcap_graph_manager_end_run(manager_, &run, status));
  EXPECT_STREQ(gcap_code_name(ended.code), "CAPTURE_INVALIDATED");
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "STEP_REFUSED");
  EXPECT_EQ(result_.outcome, GCAP_RUN_NOT_DONE);
  EXPECT_FALSE(result_.was_issued);
  EXPECT_EQ(Begin(kId), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_OK(AroundStep()(&resources));
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(x_.value(), 13);
}

TEST_F(GraphRefusedSteps, ARecordedRunIsCapturedUntilNoStepIsRefused) {
  CreateManager();
  Hole second = step_;
  second.name = "second";
  step_.function = second.function = AddTenfold(x_);
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(AroundStep()(resources));
    return second.Issue(resources);
  };
  gcap_run_t run = RunBy();
  run.capture_only = true;
  const Outcome recorded = RunHoled(run, work);
  EXPECT_TRUE(recorded.ok()) << recorded.message;
  EXPECT_EQ(result_.outcome, GCAP_RUN_RECORDED);
  EXPECT_EQ(Info(kId).refused_steps, 2u);
  EXPECT_EQ(Info(kId).failures, 2u);
  EXPECT_EQ(x_.value(), 0);
  ExpectRun(work, GCAP_RUN_REPLAYED);
  EXPECT_EQ(x_.value(), 143);
}

TEST_F(GraphRefusedSteps, ARecordedRunThatFailsForAnotherReasonFails) {
  CreateManager();
  step_.function = [](const gcap_run_resources_t*) { return GCAP_STATUS(GCAP_UNAVAILABLE, "of its own"); };
  gcap_run_t run = RunBy();
  run.capture_only = true;
  EXPECT_STREQ(gcap_code_name(RunHoled(run, AroundStep()).code), "CAPTURE_INVALIDATED");
  EXPECT_EQ(step_.calls, 1);
}

TEST_F(GraphRefusedSteps, APlanIsThatOfTheGraphWithItsHoles) {
  CreateManager();
  Hole second = step_;
  second.name = "second";
  step_.function = AddTenfold(x_);
  second.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    return GCAP_CUDA(cudaStreamSynchronize(resources->cuda_stream));
  };
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(AroundStep()(resources));
    return second.Issue(resources);
  };
  gcap_run_t run = RunBy();
  run.work = IssueWith;
  run.user = const_cast<WorkWith*>(&work);
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_EXPECT_OK(gcap_graph_manager_plan(manager_, &run, 1, &plan));
  EXPECT_EQ(plan.graphs, 1u);
  EXPECT_EQ(plan.nodes, 2u);
  EXPECT_EQ(x_.value(), 0);
  GCAP_EXPECT_OK(gcap_graph_manager_warm_up(manager_, &run, 1, nullptr, nullptr));
  EXPECT_EQ(Info(kId).refused_steps, 2u);
  EXPECT_EQ(Info(kId).nodes, plan.nodes);
  EXPECT_EQ(Info(kId).exec_bytes, plan.exec_bytes);
}

// A round in which a step is refused is none of the eight that a warm-up has.
TEST_F(GraphRefusedSteps, AWarmUpEndsInAGraph) {
  CreateManager();
  std::list<Hole> steps(12);
  std::list<std::string> names;
  for (Hole& step : steps) {
    names.push_back("step " + std::to_string(names.size()));
    step.name = names.back().c_str();
    step.break_where_refused = true;
    step.function = [](const gcap_run_resources_t* resources) {
      return GCAP_CUDA(cudaStreamSynchronize(resources->cuda_stream));
    };
  }
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    for (Hole& step : steps) GCAP_RETURN_IF_ERROR(step.Issue(resources));
    return Add(resources, x_.get(), 1);
  };
  for (const bool capture_only : {false, true}) {
    gcap_run_t run = RunOf(capture_only, stream_->get());
    run.work = IssueWith;
    run.user = const_cast<WorkWith*>(&work);
    run.capture_only = capture_only;
    GCAP_EXPECT_OK(gcap_graph_manager_warm_up(manager_, &run, 1, nullptr, nullptr));
    EXPECT_TRUE(gcap_graph_manager_is_captured(manager_, capture_only));
    EXPECT_EQ(Info(capture_only).refused_steps, 12u);
  }
}

TEST_F(GraphRefusedSteps, AllVariantsKnowIt) {
  CreateManager();
  step_.function = AddTenfold(x_);
  int addend = 5;
  bool has_step = false;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.address = &addend;
    guard.bytes = sizeof(addend);
    guard.low = guard.high = addend;
    GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), static_cast<uint64_t>(addend)));
    return has_step ? step_.Issue(resources) : nullptr;
  };
  ExpectRun(work, GCAP_RUN_CAPTURED);
  has_step = true;
  addend = 6;
  ExpectRun(work, GCAP_RUN_EAGER);
  for (const int next : {6, 7}) {
    addend = next;
    ExpectRun(work, GCAP_RUN_CAPTURED);
  }
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, kId));
  for (const int next : {5, 6, 7}) {  // the last one in the place of the graph that had no step
    addend = next;
    x_.Fill(0);
    ExpectRun(work, GCAP_RUN_CAPTURED);
    EXPECT_EQ(x_.value(), static_cast<float>(11 * next));
  }
  EXPECT_EQ(Info(kId).graphs, 3u);
  EXPECT_EQ(Info(kId).refused_steps, 3u);
  EXPECT_EQ(Info(kId).failures, 1u);
}

TEST_F(GraphRefusedSteps, AnEvictedIdKnowsItAndAForgottenOneDoesNot) {
  options_.max_graphs = 1;
  options_.max_ids_without_graph = 2;
  CreateManager();
  step_.function = AddTenfold(x_);
  const WorkWith plain = [this](const gcap_run_resources_t* resources) { return Add(resources, y_.get(), 1); };
  ExpectHoleAtTheNextCapture(10);
  ExpectRun(plain, GCAP_RUN_CAPTURED, 4);
  EXPECT_EQ(Info(kId).refused_steps, 0u);
  EXPECT_EQ(State(kId), "READY");
  ExpectRun(AroundStep(), GCAP_RUN_CAPTURED);
  EXPECT_EQ(Info(kId).refused_steps, 1u);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, kId));
  ExpectRun(AroundStep(), GCAP_RUN_CAPTURED);

  for (int id = 10; id < 14; ++id) ExpectRun(plain, GCAP_RUN_CAPTURED, id);
  EXPECT_EQ(State(kId), "COLD");
  ExpectHoleAtTheNextCapture(10);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  ExpectHoleAtTheNextCapture(10);
}

TEST_F(GraphRefusedSteps, AKeyKnowsItAndTheLogNamesTheKey) {
  CreateManager();
  step_.function = AddTenfold(x_);
  const uint32_t bytes = 17;
  gcap_graph_key_t key = {&bytes, sizeof(bytes), "decode"};
  gcap_run_t run = RunBy(GCAP_GRAPH_ID_NONE);
  run.key = &key;
  const LogCatcher log;
  for (const gcap_run_outcome_t outcome : {GCAP_RUN_EAGER, GCAP_RUN_CAPTURED, GCAP_RUN_REPLAYED}) {
    EXPECT_TRUE(RunHoled(run, AroundStep()).ok());
    EXPECT_EQ(result_.outcome, outcome);
  }
  EXPECT_EQ(CountOf(log.text(), "key 'decode': a capture refused the step 'hole'"), 1u) << log.text();
}

// --- Buffers and values ---------------------------------------------------------------------------------------------

class RefusedStepsMoving : public GraphRefusedSteps {
 protected:
  // y = x + 1; the step; y += 2.
  Outcome RunOn(const Floats& x, const Floats& y, uint64_t now = 0) {
    const uint64_t low = 0, high = 200;
    gcap_graph_value_t value = {};
    value.name = "addend";
    value.type = GCAP_GRAPH_VALUE_UNSIGNED;
    value.data = &now;
    value.bytes = sizeof(now);
    value.low = &low;
    value.high = &high;
    const std::vector<gcap_graph_buffer_t> items = {{"x", x.get(), kFloatsBytes, 256},
                                                    {"y", y.get(), kFloatsBytes, 256}};
    gcap_graph_buffers_t buffers = BuffersOf(items);
    if (has_value_) buffers.values = &value;
    buffers.num_values = has_value_;
    gcap_run_t run = RunBy();
    run.buffers = &buffers;
    const WorkWith work = [this](const gcap_run_resources_t* resources) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(AddTo(resources->cuda_stream, resources->addresses[0], resources->addresses[1], 1));
      GCAP_RETURN_IF_ERROR(step_.Issue(resources));
      return Add(resources, resources->addresses[1], 2);
    };
    return RunHoled(run, work);
  }
  // Replays of one graph on buffers of their own, with the number of holes.
  void ExpectRuns(size_t holes, float by_step, bool reads = false) {
    const Floats inputs[3] = {Floats(3), Floats(5), Floats(8)};
    const Floats outputs[3];
    for (int i = 0; i < 3; ++i) {
      const uint64_t value = static_cast<uint64_t>(20 * i + 4);
      const Outcome run = RunOn(inputs[i], outputs[i], value);
      EXPECT_TRUE(run.ok()) << run.message;
      EXPECT_EQ(result_.outcome, i == 0 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
      float expected = inputs[i].value() + 1;
      expected += reads ? expected : by_step;
      if (has_value_) expected += static_cast<float>(value);
      EXPECT_EQ(outputs[i].value(), expected + 2);
    }
    EXPECT_EQ(Info(kId).holes, holes);
    EXPECT_EQ(Info(kId).captures, 1u);
    EXPECT_EQ(Info(kId).failures, 0u) << "a rehearsal is no capture";
  }

  bool has_value_ = false;
};

TEST_F(RefusedStepsMoving, AStepThatCanBeCapturedMoves) {
  CreateManager();
  step_.function = [](const gcap_run_resources_t* resources) { return Add(resources, resources->addresses[1], 10); };
  ExpectRuns(/*holes=*/0, 10);
}

TEST_F(RefusedStepsMoving, ARehearsalFindsOutAndTheRunIsCaptured) {
  CreateManager();
  step_.function = [](const gcap_run_resources_t* resources) -> gcap_status_t {
    float found = 0;
    GCAP_RETURN_IF_ERROR(ReadFirst(resources, resources->addresses[1], &found));
    return Add(resources, resources->addresses[1], static_cast<uint64_t>(found));
  };
  const LogCatcher log;
  ExpectRuns(/*holes=*/1, 0, /*reads=*/true);
  EXPECT_EQ(CountOf(log.text(), "a capture refused the step 'hole'"), 1u) << log.text();
}

// A copy from the host looks at the address, which has no memory in the first rehearsal.
TEST_F(RefusedStepsMoving, AStandInWithoutMemoryIsNoRule) {
  CreateManager();
  static const std::vector<float> tens(kFloats, 10);
  step_.function = [](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(resources->addresses[1], tens.data(), kFloatsBytes,
                                                   cudaMemcpyHostToDevice, resources->cuda_stream)));
    return nullptr;
  };
  const Floats x(3), y;
  const Outcome run = RunOn(x, y);
  EXPECT_TRUE(run.ok()) << run.message;
  EXPECT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
  EXPECT_EQ(y.value(), 12);
  EXPECT_EQ(Info(kId).holes, 0u);
}

TEST_F(RefusedStepsMoving, AStepReadsTheValuesOfTheReplayAsTheWorkAndAsAHole) {
  has_value_ = true;
  bool waits = false;
  step_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    const uint64_t value = *static_cast<const uint64_t*>(resources->values[0]);
    if (waits) GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(resources->cuda_stream)));
    return Add(resources, resources->addresses[1], value);
  };
  CreateManager();
  ExpectRuns(/*holes=*/0, 0);
  DestroyManager();
  waits = true;
  CreateManager();
  // No node of the graph has the value any more.
  const Floats x(3), y;
  for (const uint64_t value : {uint64_t{4}, uint64_t{90}}) {
    const Outcome run = RunOn(x, y, value);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(y.value(), static_cast<float>(6 + value));
  }
  EXPECT_EQ(Info(kId).refused_steps, 1u);
}

TEST_F(RefusedStepsMoving, ALaterRefusalForgetsTheRehearsalsBefore) {
  CreateManager();
  int calls = 0;
  step_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    if (++calls > 1) GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(resources->cuda_stream)));
    return Add(resources, resources->addresses[1], 10);
  };
  const Floats x(3), y;
  for (int round = 0; round < 3; ++round) {
    const Outcome run = RunOn(x, y);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(y.value(), 16);
  }
  EXPECT_EQ(result_.outcome, GCAP_RUN_REPLAYED);
  EXPECT_EQ(Info(kId).refused_steps, 1u);
}

// --- Threads --------------------------------------------------------------------------------------------------------

// A thread that comes while another one runs, or is in a hole, is refused and has done nothing.
TEST_F(GraphRefusedSteps, ThreadsOfOneManagerAreRefusedOrDoTheirWork) {
  options_.backoff_runs = 1;
  CreateManager();
  const LogCatcher log;
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([this, id] {
      const RawStream stream;
      const Floats x;
      Hole hole;
      hole.break_where_refused = id % 2 == 1;
      hole.function = AddTenfold(x);
      const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
        GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 1));
        GCAP_RETURN_IF_ERROR(hole.Issue(resources));
        return Add(resources, x.get(), 2);
      };
      for (int done = 0; done < 12;) {
        x.Fill(static_cast<float>(done));
        gcap_run_result_t result;
        gcap_run_result_init(&result);
        gcap_run_t run = RunOf(id, stream.get(), /*synchronize=*/true);
        run.work = IssueWith;
        run.user = const_cast<WorkWith*>(&work);
        run.result = &result;
        const Outcome outcome(gcap_graph_manager_run(manager_, &run));
        EXPECT_TRUE(outcome.ok() || outcome.code == GCAP_FAILED_PRECONDITION) << outcome.message;
        EXPECT_EQ(result.was_issued, outcome.ok());
        EXPECT_EQ(x.value(), static_cast<float>(outcome.ok() ? 11 * (done + 1) + 2 : done));
        done += outcome.ok();
        if (!outcome.ok()) std::this_thread::yield();
      }
      EXPECT_EQ(Info(id).holes, 1u);
      gcap_status_t released = nullptr;
      do {
        gcap_status_free(released);
        released = gcap_graph_manager_release(manager_, id);
      } while (gcap_status_code(released) == GCAP_FAILED_PRECONDITION);
      GCAP_EXPECT_OK(released);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(GraphRefusedSteps, EachThreadsManagerLearnsForItself) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      gcap_graph_manager_t* manager = nullptr;
      GCAP_EXPECT_OK(gcap_graph_manager_create(&options_, &manager));
      const RawStream stream;
      const Floats x;
      Hole step;
      step.break_where_refused = true;
      step.function = AddTenfold(x);
      const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
        GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 1));
        return step.Issue(resources);
      };
      for (int round = 0; round < 6; ++round) {
        x.Fill(static_cast<float>(round));
        gcap_run_t run = RunOf(0, stream.get(), /*synchronize=*/true);
        run.work = IssueWith;
        run.user = const_cast<WorkWith*>(&work);
        GCAP_EXPECT_OK(gcap_graph_manager_run(manager, &run));
        EXPECT_EQ(x.value(), static_cast<float>(11 * (round + 1)));
      }
      gcap_graph_info_t info;
      gcap_graph_manager_get_info(manager, 0, &info);
      EXPECT_EQ(info.refused_steps, 1u);
      GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
