// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Holes: what a captured run leaves to a function, which each replay calls between two launches.

#include <pthread.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gcap/graph_guards.h"
#include "gcap/graph_plan.h"
#include "gcap/graph_values.h"
#include "gtest/gtest.h"
#include "test/graph/holes_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class GraphHoles : public HolesTest {
 protected:
  // x += 1; the function; x += 2.
  WorkWith AroundHole() {
    return [this](const gcap_run_resources_t* resources) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 1));
      GCAP_RETURN_IF_ERROR(hole_.Issue(resources));
      return Add(resources, x_.get(), 2);
    };
  }
  // A function that adds ten times what it finds, which the host must know.
  WorkWith AddTenfold() {
    return [this](const gcap_run_resources_t* resources) -> gcap_status_t {
      float found = 0;
      GCAP_RETURN_IF_ERROR(ReadFirst(resources, x_.get(), &found));
      return Add(resources, x_.get(), static_cast<uint64_t>(10 * found));
    };
  }
  void CaptureAroundHole() {
    CreateManager();
    ExpectRun(AroundHole(), GCAP_RUN_CAPTURED);
  }

  const Floats x_, y_;
  Hole hole_;
  WorkWith work_;
};

TEST_F(GraphHoles, EachReplayIsLaunchFunctionLaunch) {
  options_.min_num_runs_before_capture = 1;
  CreateManager();
  hole_.function = AddTenfold();
  const gcap_run_outcome_t outcomes[] = {GCAP_RUN_EAGER, GCAP_RUN_CAPTURED, GCAP_RUN_REPLAYED, GCAP_RUN_REPLAYED};
  int input = 1, calls = 0;
  for (const gcap_run_outcome_t outcome : outcomes) {
    x_.Fill(static_cast<float>(input));
    ExpectRun(AroundHole(), outcome);
    EXPECT_EQ(x_.value(), 11 * (input + 1) + 2);
    EXPECT_EQ(hole_.calls, ++calls);
    input += 3;
  }
  const gcap_graph_info_t info = Info(kId);
  EXPECT_EQ(info.holes, 1u);
  EXPECT_EQ(info.nodes, 2u);
  EXPECT_EQ(info.graphs, 1u);
  EXPECT_EQ(info.captures, 1u);
  EXPECT_EQ(info.replays, 3u);
}

TEST_F(GraphHoles, HolesMayBeAnywhere) {
  CreateManager();
  std::string order;
  std::vector<Hole> holes(5);
  for (size_t i = 0; i < holes.size(); ++i) {
    holes[i].function = [&order, i](const gcap_run_resources_t*) -> gcap_status_t {
      order += std::to_string(i);
      return nullptr;
    };
  }
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(holes[0].Issue(resources));
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 1));
    for (size_t i = 1; i < 4; ++i) GCAP_RETURN_IF_ERROR(holes[i].Issue(resources));
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 2));
    return holes[4].Issue(resources);
  };
  ExpectRun(work, GCAP_RUN_CAPTURED);
  ExpectRun(work, GCAP_RUN_REPLAYED);
  EXPECT_EQ(order, "0123401234");
  EXPECT_EQ(x_.value(), 6);
  EXPECT_EQ(Info(kId).holes, 5u);
}

TEST_F(GraphHoles, AGraphOfHolesAloneIsOne) {
  CreateManager();
  const WorkWith work = [&](const gcap_run_resources_t* resources) { return hole_.Issue(resources); };
  const LogCatcher log;
  ExpectRun(work, GCAP_RUN_CAPTURED);
  ExpectRun(work, GCAP_RUN_REPLAYED);
  EXPECT_EQ(hole_.calls, 2);
}

TEST_F(GraphHoles, AFunctionMayDoSomethingElseEachTime) {
  CreateManager();
  int round = 0;
  hole_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    return round % 2 == 0 ? nullptr : Add(resources, x_.get(), static_cast<uint64_t>(round));
  };
  float expected = 0;
  for (; round < 6; ++round) {
    ExpectRun(AroundHole(), round == 0 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
    expected += static_cast<float>(3 + (round % 2 == 0 ? 0 : round));
    EXPECT_EQ(x_.value(), expected);
  }
}

TEST_F(GraphHoles, AFunctionForksAllocatesAndWaits) {
  options_.min_num_runs_before_capture = 1;
  CreateManager();
  const RawStream forked;
  cudaEvent_t event = nullptr;
  GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const auto order = [&](cudaStream_t first, cudaStream_t then) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(event, first)));
    return GCAP_CUDA(cudaStreamWaitEvent(then, event, 0));
  };
  hole_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    void* block = nullptr;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc(&block, kFloatsBytes)));
    GCAP_RETURN_IF_ERROR(order(resources->cuda_stream, forked.get()));
    GCAP_RETURN_IF_ERROR(AddTo(forked.get(), x_.get(), block, 10));
    GCAP_RETURN_IF_ERROR(order(forked.get(), resources->cuda_stream));
    GCAP_RETURN_IF_ERROR(AddTo(resources->cuda_stream, block, x_.get(), 100));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(resources->cuda_stream)));
    return GCAP_CUDA(cudaFree(block));
  };
  for (const gcap_run_outcome_t outcome : {GCAP_RUN_EAGER, GCAP_RUN_CAPTURED, GCAP_RUN_REPLAYED}) {
    x_.Fill(0);
    ExpectRun(AroundHole(), outcome);
    EXPECT_EQ(x_.value(), 113);
  }
  GCAP_EXPECT_CUDA(cudaEventDestroy(event));
}

// --- What is not executed -------------------------------------------------------------------------------------------

TEST_F(GraphHoles, ACaptureThatFailsBehindAHoleHasDoneNothing) {
  CreateManager();
  const LogCatcher log;
  bool fails = true;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(AroundHole()(resources));
    const bool fails_now = fails;
    fails = false;
    return fails_now ? GCAP_STATUS(GCAP_LIBRARY_ERROR, "behind the hole") : nullptr;
  };
  ExpectRun(work, GCAP_RUN_EAGER);
  EXPECT_EQ(hole_.calls, 1) << "in the eager run alone";
  EXPECT_EQ(x_.value(), 3) << "once";
}

TEST_F(GraphHoles, NobodyCallsAFunctionForARecordedRunOrAPlan) {
  CreateManager();
  const WorkWith work = AroundHole();
  gcap_run_t run = RunBy();
  run.work = IssueWith;
  run.user = const_cast<WorkWith*>(&work);
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_EXPECT_OK(gcap_graph_manager_plan(manager_, &run, 1, &plan));
  EXPECT_EQ(plan.graphs, 1u);
  EXPECT_EQ(plan.nodes, 2u);
  run.capture_only = true;
  GCAP_EXPECT_OK(gcap_graph_manager_run(manager_, &run));
  EXPECT_EQ(result_.outcome, GCAP_RUN_RECORDED);
  EXPECT_EQ(Info(kId).replays, 0u);
  EXPECT_EQ(Info(kId).exec_bytes, plan.exec_bytes);
  EXPECT_EQ(hole_.calls, 0);
  EXPECT_EQ(x_.value(), 0);
  ExpectRun(work, GCAP_RUN_REPLAYED);
  EXPECT_EQ(hole_.calls, 1);
  EXPECT_EQ(x_.value(), 3);
}

// A segment without work is not launched, and takes nothing.
TEST_F(GraphHoles, APlanCountsTheSegmentsThatHaveWork) {
  CreateManager();
  const WorkWith work = [this](const gcap_run_resources_t* resources) -> gcap_status_t {
    for (int i = 0; i < 3; ++i) GCAP_RETURN_IF_ERROR(hole_.Issue(resources));
    return Add(resources, x_.get(), 1);
  };
  gcap_run_t run = RunBy();
  run.work = IssueWith;
  run.user = const_cast<WorkWith*>(&work);
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_EXPECT_OK(gcap_graph_manager_plan(manager_, &run, 1, &plan));
  ExpectRun(work, GCAP_RUN_CAPTURED);
  EXPECT_EQ(Info(kId).exec_bytes, plan.exec_bytes);
  EXPECT_EQ(Info(kId).bytes, plan.bytes);
}

TEST_F(GraphHoles, AWarmUpCapturesThem) {
  CreateManager();
  const WorkWith work = AroundHole();
  gcap_run_t run = RunOf(kId, stream_->get());
  run.work = IssueWith;
  run.user = const_cast<WorkWith*>(&work);
  GCAP_EXPECT_OK(gcap_graph_manager_warm_up(manager_, &run, 1, nullptr, nullptr));
  EXPECT_TRUE(gcap_graph_manager_is_captured(manager_, kId));
}

// --- Failures -------------------------------------------------------------------------------------------------------

TEST_F(GraphHoles, AFailureEndsTheRunAndTheGraphStays) {
  CreateManager();
  bool fails = true;
  hole_.function = [&](const gcap_run_resources_t*) -> gcap_status_t {
    return fails ? GCAP_STATUS(GCAP_CAPTURE_INVALIDATED, "out of luck") : nullptr;
  };
  for (int round = 0; round < 2; ++round) {  // the capture's own run, then a replay
    x_.Fill(0);
    const Outcome run = RunHoled(RunBy(), AroundHole());
    EXPECT_STREQ(gcap_code_name(run.code), "CUDA_ERROR") << "a run that is CAPTURE_INVALIDATED may be issued again";
    EXPECT_TRUE(run.Names("graph id 3, hole 'hole': out of luck")) << run.message;
    EXPECT_EQ(result_.outcome, GCAP_RUN_NOT_DONE);
    EXPECT_TRUE(result_.was_issued);
    stream_->Synchronize();
    EXPECT_EQ(x_.value(), 1) << "the first segment alone";
    EXPECT_EQ(hole_.calls, round + 1) << "not issued again";
  }
  EXPECT_EQ(State(kId), "CAPTURED");
  fails = false;
  x_.Fill(0);
  ExpectRun(AroundHole(), GCAP_RUN_REPLAYED);
  EXPECT_EQ(x_.value(), 3);
}

// Whoever begins and ends runs issues one again that is CAPTURE_INVALIDATED, as its contract allows.
TEST_F(GraphHoles, TheFailureOfAnotherCaptureInAFunctionIsNoReasonToIssueTheRunAgain) {
  CreateManager();
  hole_.function = [](const gcap_run_resources_t*) { return GCAP_STATUS(GCAP_CAPTURE_INVALIDATED, "of another one"); };
  EXPECT_EQ(Begin(kId), GCAP_GRAPH_RUN_CAPTURE);
  gcap_run_resources_t resources;
  gcap_run_resources_init(&resources);
  resources.cuda_stream = stream_->get();
  GCAP_EXPECT_OK(AroundHole()(&resources));
  const Outcome run = End();
  EXPECT_STREQ(gcap_code_name(run.code), "CUDA_ERROR");
  EXPECT_TRUE(run.Names("graph id 3, hole 'hole': of another one")) << run.message;
  stream_->Synchronize();
  EXPECT_EQ(x_.value(), 1) << "the first segment was launched";
}

TEST_F(GraphHoles, AFunctionThatCancelsEndsTheRun) {
  CaptureAroundHole();
  hole_.function = [](const gcap_run_resources_t*) { return GCAP_STATUS(GCAP_CANCELLED, "stopped"); };
  EXPECT_EQ(RunHoled(RunBy(), AroundHole()).code, GCAP_CANCELLED);
  EXPECT_EQ(State(kId), "CAPTURED");
}

TEST_F(GraphHoles, AnExceptionLeavesTheManagerUsable) {
  CreateManager();
  bool throws = true;
  hole_.function = [&](const gcap_run_resources_t*) -> gcap_status_t {
    if (throws) throw std::runtime_error("thrown in a hole");
    return nullptr;
  };
  for (int round = 0; round < 2; ++round) {  // the capture's own run, then a replay
    EXPECT_THROW(RunHoled(RunBy(), AroundHole()), std::runtime_error);
  }
  const RawStream other;
  EXPECT_THROW(ReplayId(kId, other.get()), std::runtime_error);
  throws = false;
  stream_->Synchronize();
  x_.Fill(0);
  ExpectRun(AroundHole(), GCAP_RUN_REPLAYED);
  EXPECT_EQ(x_.value(), 3);
  ExpectRun(AroundHole(), GCAP_RUN_CAPTURED, kId + 1);  // the thread may make holes again
  DestroyManager();
}

// A thread that is cancelled in a function, in the capture's own run or in a replay.
TEST_F(GraphHoles, ACancelledThreadLeavesTheManagerUsable) {
  CreateManager();
  bool cancels = true;
  hole_.function = [&](const gcap_run_resources_t*) -> gcap_status_t {
    if (cancels) {
      pthread_cancel(pthread_self());
      pthread_testcancel();
    }
    return nullptr;
  };
  work_ = AroundHole();
  for (int round = 0; round < 2; ++round) {
    pthread_t thread;
    std::function<void()> body = [this] {
      gcap_run_t run = RunBy();
      run.work = IssueWith;
      run.user = &work_;
      gcap_status_ignore(gcap_graph_manager_run(manager_, &run));
    };
    const auto call = [](void* body) -> void* {
      (*static_cast<std::function<void()>*>(body))();
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, nullptr, call, &body), 0);
    void* result = nullptr;
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_EQ(State(kId), "CAPTURED");
  }
  cancels = false;
  stream_->Synchronize();
  x_.Fill(0);
  ExpectRun(work_, GCAP_RUN_REPLAYED);
  EXPECT_EQ(x_.value(), 3);
}

// A capture that gcap knows nothing of: the next segment would go into that, with success.
TEST_F(GraphHoles, AFunctionThatLeavesABareCaptureOpenIsRefused) {
  CaptureAroundHole();
  hole_.function = [&](const gcap_run_resources_t* resources) {
    return GCAP_CUDA(cudaStreamBeginCapture(resources->cuda_stream, cudaStreamCaptureModeThreadLocal));
  };
  const Outcome replayed = ReplayId();
  EXPECT_STREQ(gcap_code_name(replayed.code), "FAILED_PRECONDITION");
  EXPECT_TRUE(replayed.Names("behind the last function of its holes")) << replayed.message;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_->get(), &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(GraphHoles, AFunctionThatLeavesACaptureOpenIsRefused) {
  CaptureAroundHole();
  const RawStream other;
  hole_.function = [&](const gcap_run_resources_t*) {
    gcap_capture_t* capture = nullptr;
    return gcap_capture_begin(other.get(), nullptr, &capture);
  };
  const Outcome replayed = ReplayId();
  EXPECT_STREQ(gcap_code_name(replayed.code), "FAILED_PRECONDITION");
  EXPECT_TRUE(replayed.Names("the launch of the next segment")) << replayed.message;
  gcap_capture_abort(gcap_capture_current());
}

// --- Bad input ------------------------------------------------------------------------------------------------------

TEST_F(GraphHoles, AHoleIsInTheRunOfItsThread) {
  CreateManager();
  const LogCatcher log;
  gcap_graph_hole_t nothing;
  gcap_graph_hole_init(&nothing);
  gcap_run_resources_t resources;
  gcap_run_resources_init(&resources);
  resources.cuda_stream = stream_->get();
  GCAP_EXPECT_FAILS(gcap_graph_hole_issue(nullptr, &nothing), GCAP_INVALID_ARGUMENT, "resources");
  GCAP_EXPECT_FAILS(gcap_graph_hole_issue(&resources, nullptr), GCAP_INVALID_ARGUMENT, "hole");
  GCAP_EXPECT_FAILS(gcap_graph_hole_issue(&resources, &nothing), GCAP_INVALID_ARGUMENT, "no function: set work");
  GCAP_EXPECT_OK(hole_.Issue(&resources));  // outside of runs
  EXPECT_EQ(hole_.calls, 1);

  EXPECT_EQ(Begin(kId), GCAP_GRAPH_RUN_CAPTURE);
  std::thread([&] {
    GCAP_EXPECT_FAILS(hole_.Issue(&resources), GCAP_FAILED_PRECONDITION, "hole 'hole', on a thread that has no run");
  }).join();
  EXPECT_TRUE(End().ok()) << "nothing was lost";

  gcap_capture_t* capture = nullptr;
  GCAP_EXPECT_OK(gcap_capture_begin(stream_->get(), nullptr, &capture));
  GCAP_EXPECT_FAILS(hole_.Issue(&resources), GCAP_FAILED_PRECONDITION, "in a capture that is no run");
  gcap_capture_abort(capture);
  EXPECT_EQ(hole_.calls, 1);
}

// An eager run has no segments to end, so its holes are calls, also on forked streams and on other threads.
TEST_F(GraphHoles, AnEagerRunCallsTheFunctionWhereverTheHoleIsMade) {
  CreateManager();
  const RawStream forked;
  std::vector<cudaStream_t> seen;
  hole_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    seen.push_back(resources->cuda_stream);
    return nullptr;
  };
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_run_resources_t there = *resources;
    there.cuda_stream = forked.get();
    GCAP_RETURN_IF_ERROR(hole_.Issue(&there));
    std::thread([&] { GCAP_EXPECT_OK(hole_.Issue(resources)); }).join();
    return hole_.Issue(resources);
  };
  ExpectRun(work, GCAP_RUN_EAGER, GCAP_GRAPH_ID_NONE);
  EXPECT_EQ(seen, (std::vector<cudaStream_t>{forked.get(), stream_->get(), stream_->get()}));
  hole_.function = [](const gcap_run_resources_t*) { return GCAP_STATUS(GCAP_NOT_FOUND, "no page 3"); };
  const Outcome failed = RunHoled(RunBy(GCAP_GRAPH_ID_NONE), AroundHole());
  EXPECT_EQ(failed.code, GCAP_NOT_FOUND);
  EXPECT_TRUE(failed.Names("hole 'hole': no page 3")) << failed.message;
}

TEST_F(GraphHoles, AHoleWithinAHoleIsRefusedInEveryRun) {
  options_.min_num_runs_before_capture = 1;
  CreateManager();
  Hole inner;
  hole_.function = [&](const gcap_run_resources_t* resources) { return inner.Issue(resources); };
  for (int round = 0; round < 3; ++round) {
    const Outcome run = RunHoled(RunBy(), AroundHole());
    EXPECT_STREQ(gcap_code_name(run.code), "FAILED_PRECONDITION");
    EXPECT_TRUE(run.Names("gcap_graph_hole_issue: called by the function of a hole")) << run.message;
    if (round == 0) {  // a run that fails does not warm up
      inner.function = hole_.function;
      hole_.function = [](const gcap_run_resources_t*) -> gcap_status_t { return nullptr; };
      ExpectRun(AroundHole(), GCAP_RUN_EAGER);
      hole_.function = [&](const gcap_run_resources_t* resources) { return inner.Issue(resources); };
    }
  }
  EXPECT_EQ(inner.calls, 0);
}

TEST_F(GraphHoles, DataOnTheStackOfTheWorkAreRefused) {
  CreateManager();
  const LogCatcher log;
  const WorkWith work = [&](const gcap_run_resources_t* resources) {
    Hole local;
    local.name = "local";
    return local.Issue(resources);
  };
  const Outcome run = RunHoled(RunBy(), work);
  EXPECT_STREQ(gcap_code_name(run.code), "INVALID_ARGUMENT");
  EXPECT_TRUE(run.Names("hole 'local' has its data at")) << run.message;
}

TEST_F(GraphHoles, AGuardInAFunctionIsRefusedInEveryRun) {
  CreateManager();
  static int decision = 1;
  hole_.function = [](const gcap_run_resources_t*) {
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.address = &decision;
    guard.bytes = sizeof(decision);
    guard.high = 2;
    return GCAP_GRAPH_GUARD(&guard);
  };
  for (const int id : {GCAP_GRAPH_ID_NONE, kId}) {
    EXPECT_TRUE(RunHoled(RunBy(id), AroundHole()).Names("gcap_graph_guard_state: called by the function of a hole"));
  }
}

TEST_F(GraphHoles, AHoleInTheFunctionOfAGuardIsRefused) {
  CreateManager();
  const LogCatcher log;
  struct Asked {
    Hole* hole;
    gcap_run_resources_t resources;
  } asked = {&hole_, {}};
  gcap_graph_guard_t guard;
  gcap_graph_guard_init(&guard);
  guard.kind = GCAP_GRAPH_GUARD_ANSWER;
  guard.user = &asked;
  guard.ask = [](void* user, int64_t*) -> gcap_status_t {
    const Asked* at = static_cast<const Asked*>(user);
    return at->hole->Issue(&at->resources);
  };
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    asked.resources = *resources;
    GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
    return Add(resources, x_.get(), 1);
  };
  ExpectRun(work, GCAP_RUN_EAGER);
  const Outcome why(gcap_graph_manager_explain(manager_, kId, GCAP_GRAPH_WHY_CAPTURE_FAILED));
  EXPECT_TRUE(why.Names("gcap_graph_hole_issue: called by the function of a guard")) << why.message;
  EXPECT_EQ(hole_.calls, 0);
  EXPECT_EQ(x_.value(), 1);
}

// --- Forked streams -------------------------------------------------------------------------------------------------

TEST_F(GraphHoles, EachUnjoinedForkIsNamed) {
  CreateManager();
  options_.rerun_failed_capture = false;
  DestroyManager();
  CreateManager();
  const RawStream first, second, joined;
  const cudaStream_t streams[] = {first.get(), second.get(), joined.get()};
  int line = 0;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_capture_t* capture = gcap_capture_current();
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 1));
    GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, streams, 3));
    for (const cudaStream_t stream : streams) {
      GCAP_RETURN_IF_ERROR(AddTo(stream, y_.get(), y_.get(), 1));
      line = __LINE__ + 1;
      GCAP_CAPTURE_NOTE("add<<<>>>", stream);
    }
    GCAP_RETURN_IF_ERROR(gcap_capture_join(capture, &streams[2], 1));
    gcap_status_ignore(hole_.Issue(resources));  // whatever the work makes of it
    return Add(resources, x_.get(), 2);
  };
  const Outcome run = RunHoled(RunBy(), work);
  EXPECT_STREQ(gcap_code_name(run.code), "CAPTURE_INVALIDATED");
  char text[256];
  for (const cudaStream_t stream : {first.get(), second.get()}) {
    snprintf(text, sizeof(text), "stream %p (its last call: add<<<>>> at %s:%d)", static_cast<void*>(stream), __FILE__,
             line);
    EXPECT_TRUE(run.Names(text)) << text << "\n" << run.message;
  }
  snprintf(text, sizeof(text), "stream %p (", static_cast<void*>(joined.get()));
  EXPECT_FALSE(run.Names(text)) << run.message;
  EXPECT_EQ(hole_.calls, 0);
  EXPECT_EQ(x_.value(), 0) << "what the work issued behind the hole was not executed either";
  for (const cudaStream_t stream : streams) GCAP_EXPECT_CUDA(cudaStreamSynchronize(stream));
}

// The questions that find the stream are no calls of the work.
TEST_F(GraphHoles, AShortLedgerHasTheLastCallOfAnUnjoinedFork) {
  options_.rerun_failed_capture = false;
  options_.capture.ledger_calls = 2;
  CreateManager();
  const RawStream forked;
  const cudaStream_t stream = forked.get();
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 1));
    GCAP_RETURN_IF_ERROR(gcap_capture_fork(gcap_capture_current(), &stream, 1));
    GCAP_RETURN_IF_ERROR(AddTo(stream, y_.get(), y_.get(), 1));
    GCAP_CAPTURE_NOTE("add<<<>>>", stream);
    return hole_.Issue(resources);
  };
  const Outcome run = RunHoled(RunBy(), work);
  EXPECT_STREQ(gcap_code_name(run.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(run.Names("(its last call: add<<<>>> at ")) << run.message;
  GCAP_EXPECT_CUDA(cudaStreamSynchronize(stream));
}

TEST_F(GraphHoles, AForkThatNobodyKnowsIsRefusedByTheDriver) {
  options_.rerun_failed_capture = false;
  CreateManager();
  const RawStream forked;
  cudaEvent_t event = nullptr;
  GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 1));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(event, resources->cuda_stream)));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamWaitEvent(forked.get(), event, 0)));
    GCAP_RETURN_IF_ERROR(AddTo(forked.get(), y_.get(), y_.get(), 1));
    gcap_status_ignore(hole_.Issue(resources));
    return Add(resources, x_.get(), 2);
  };
  const Outcome run = RunHoled(RunBy(), work);
  EXPECT_STREQ(gcap_code_name(run.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(run.Names("hole 'hole'")) << run.message;
  EXPECT_EQ(hole_.calls, 0);
  EXPECT_EQ(x_.value(), 0);
  GCAP_EXPECT_CUDA(cudaEventDestroy(event));
}

TEST_F(GraphHoles, StreamsAreForkedAgainBehindAHole) {
  CreateManager();
  const RawStream forked;
  const cudaStream_t stream = forked.get();
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_capture_t* capture = gcap_capture_current();
    for (int part = 0; part < 2; ++part) {
      GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &stream, 1));
      GCAP_RETURN_IF_ERROR(AddTo(stream, y_.get(), y_.get(), 5));
      GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 1));
      GCAP_RETURN_IF_ERROR(gcap_capture_join(capture, &stream, 1));
      if (part == 0) GCAP_RETURN_IF_ERROR(hole_.Issue(resources));
    }
    return nullptr;
  };
  ExpectRun(work, GCAP_RUN_CAPTURED);
  ExpectRun(work, GCAP_RUN_REPLAYED);
  EXPECT_EQ(x_.value(), 4);
  EXPECT_EQ(y_.value(), 20);
}

TEST_F(GraphHoles, AForkFromBeforeAHoleIsNoForkBehindIt) {
  options_.rerun_failed_capture = false;
  CreateManager();
  const RawStream forked;
  const cudaStream_t stream = forked.get();
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_capture_t* capture = gcap_capture_current();
    GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &stream, 1));
    GCAP_RETURN_IF_ERROR(AddTo(stream, y_.get(), y_.get(), 5));
    GCAP_RETURN_IF_ERROR(gcap_capture_join(capture, &stream, 1));
    GCAP_RETURN_IF_ERROR(hole_.Issue(resources));
    return gcap_capture_join(capture, &stream, 1);
  };
  EXPECT_TRUE(RunHoled(RunBy(), work).Names("which this scope did not fork"));
}

TEST_F(GraphHoles, AHoleOnAForkedStreamIsRefused) {
  options_.rerun_failed_capture = false;
  CreateManager();
  const RawStream forked;
  const cudaStream_t stream = forked.get();
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_capture_t* capture = gcap_capture_current();
    GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &stream, 1));
    gcap_run_resources_t there = *resources;
    there.cuda_stream = stream;
    gcap_status_t status = hole_.Issue(&there);
    return gcap_status_join(status, gcap_capture_join(capture, &stream, 1));
  };
  EXPECT_TRUE(RunHoled(RunBy(), work).Names("hole 'hole' is made on stream"));
  EXPECT_EQ(hole_.calls, 0);
}

// --- While a function runs ------------------------------------------------------------------------------------------

TEST_F(GraphHoles, NothingElseOfTheManagerRunsInAHole) {
  CaptureAroundHole();
  const Hole other_hole;
  const WorkWith plain = [this](const gcap_run_resources_t* resources) { return Add(resources, y_.get(), 1); };
  ExpectRun(plain, GCAP_RUN_CAPTURED, 4);
  const auto try_all = [&] {
    gcap_run_result_t result;
    gcap_run_result_init(&result);
    gcap_run_t run = RunOf(4, stream_->get());
    run.result = &result;
    gcap_graph_run_kind_t kind;
    const char* const text = "graph id 3 is being launched, and is in a hole";
    GCAP_EXPECT_FAILS(gcap_graph_manager_replay(manager_, &run, nullptr), GCAP_FAILED_PRECONDITION, text);
    GCAP_EXPECT_FAILS(Replay(manager_, kId, false), GCAP_FAILED_PRECONDITION, text);
    GCAP_EXPECT_FAILS(gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr), GCAP_FAILED_PRECONDITION, text);
    GCAP_EXPECT_FAILS(EndPlain(manager_, nullptr, false), GCAP_FAILED_PRECONDITION, text);
    GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, kId), GCAP_FAILED_PRECONDITION, text);
    GCAP_EXPECT_FAILS(gcap_graph_manager_release_all(manager_), GCAP_FAILED_PRECONDITION, text);
    GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager_), GCAP_FAILED_PRECONDITION, "a call of this graph manager");
  };
  hole_.function = [&](const gcap_run_resources_t*) -> gcap_status_t {
    try_all();
    std::thread(try_all).join();
    return nullptr;
  };
  x_.Fill(0);
  ExpectRun(AroundHole(), GCAP_RUN_REPLAYED);
  EXPECT_EQ(x_.value(), 3);
  ExpectRun(plain, GCAP_RUN_REPLAYED, 4);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  x_.Fill(0);
  ExpectRun(AroundHole(), GCAP_RUN_CAPTURED);  // also in the first launch
  EXPECT_EQ(x_.value(), 3);
}

// Segments behind the first one are launched without the manager's mutex.
TEST_F(GraphHoles, AnotherThreadAsksAndIsRefusedWhileSegmentsAreLaunched) {
  CaptureAroundHole();
  const WorkWith plain = [this](const gcap_run_resources_t* resources) { return Add(resources, y_.get(), 1); };
  ExpectRun(plain, GCAP_RUN_CAPTURED, 4);
  x_.Fill(0);
  y_.Fill(0);
  constexpr int kReplays = 100;
  std::atomic<bool> is_done(false);
  int others = 0;
  std::thread other([&] {
    while (!is_done) {
      EXPECT_EQ(Info(kId).holes, 1u);
      const Outcome replayed(Replay(manager_, 4, /*synchronize=*/false));
      EXPECT_TRUE(replayed.ok() || replayed.Names("graph id 3 is being launched, and is in a hole"))
          << replayed.message;
      others += replayed.ok();
    }
  });
  for (int i = 0; i < kReplays; ++i) {
    const Outcome replayed = ReplayId();
    EXPECT_TRUE(replayed.ok()) << replayed.message;
  }
  is_done = true;
  other.join();
  stream_->Synchronize();
  EXPECT_EQ(x_.value(), 3 * kReplays);
  EXPECT_EQ(y_.value(), others);
  EXPECT_EQ(Info(kId).replays, kReplays + 1u);
}

TEST_F(GraphHoles, AReplayWaitsForNoRunOfAnotherThread) {
  CaptureAroundHole();
  std::thread([&] { EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER); }).join();
  ExpectRun(AroundHole(), GCAP_RUN_REPLAYED);  // that thread has exited
  EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);
  std::thread([&] {
    GCAP_EXPECT_FAILS(Replay(manager_, kId, true), GCAP_FAILED_PRECONDITION, "another thread has a run of id -1 open");
  }).join();
  EXPECT_TRUE(ReplayId().ok()) << "in a run of the thread itself";
  EXPECT_TRUE(End().ok());
}

TEST_F(GraphHoles, AnotherManagerRunsInAHole) {
  CaptureAroundHole();
  gcap_graph_manager_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &other));
  const WorkWith plain = [this](const gcap_run_resources_t* resources) { return Add(resources, y_.get(), 1); };
  hole_.function = [&](const gcap_run_resources_t* resources) {
    gcap_run_t run = RunOf(1, resources->cuda_stream);
    run.work = IssueWith;
    run.user = const_cast<WorkWith*>(&plain);
    return gcap_graph_manager_run(other, &run);
  };
  ExpectRun(AroundHole(), GCAP_RUN_REPLAYED);
  ExpectRun(AroundHole(), GCAP_RUN_REPLAYED);
  EXPECT_EQ(y_.value(), 2);
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(other));
}

// --- On other streams -----------------------------------------------------------------------------------------------

TEST_F(GraphHoles, AReplayElsewhereIsThereAsAWhole) {
  CaptureAroundHole();
  const RawStream other;
  cudaStream_t seen = nullptr;
  hole_.function = [&](const gcap_run_resources_t* resources) {
    seen = resources->cuda_stream;
    return Add(resources, x_.get(), 100);
  };
  x_.Fill(0);
  EXPECT_TRUE(ReplayId(kId, other.get()).ok());
  EXPECT_EQ(seen, other.get());
  EXPECT_EQ(x_.value(), 103);
  ExpectRun(AroundHole(), GCAP_RUN_REPLAYED);
  EXPECT_EQ(seen, stream_->get());
  EXPECT_EQ(x_.value(), 206);
}

// --- What changes ---------------------------------------------------------------------------------------------------

TEST_F(GraphHoles, GuardsAreLookedAtBeforeTheFirstSegment) {
  CreateManager();
  int addend = 5;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.name = "addend";
    guard.address = &addend;
    guard.bytes = sizeof(addend);
    guard.low = guard.high = addend;
    GCAP_RETURN_IF_ERROR(hole_.Issue(resources));
    GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
    return Add(resources, x_.get(), static_cast<uint64_t>(addend));
  };
  ExpectRun(work, GCAP_RUN_CAPTURED);
  addend = 7;
  ExpectRun(work, GCAP_RUN_CAPTURED);
  EXPECT_EQ(x_.value(), 12);
  for (const int again : {5, 7}) {
    addend = again;
    x_.Fill(0);
    ExpectRun(work, GCAP_RUN_REPLAYED);
    EXPECT_EQ(x_.value(), static_cast<float>(again));
  }
  EXPECT_EQ(Info(kId).graphs, 2u);
  EXPECT_EQ(Info(kId).holes, 2u);
}

TEST_F(GraphHoles, MemoryThatAFunctionFreedIsFoundBehindIt) {
  options_.audit = GCAP_GRAPH_AUDIT_EACH_REPLAY;
  CreateManager();
  void* freed = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(&freed, kFloatsBytes));
  bool frees = false;
  hole_.function = [&](const gcap_run_resources_t*) { return frees ? GCAP_CUDA(cudaFree(freed)) : nullptr; };
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 1));
    GCAP_RETURN_IF_ERROR(hole_.Issue(resources));
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 2));
    return AddTo(resources->cuda_stream, x_.get(), freed, 0);
  };
  ExpectRun(work, GCAP_RUN_CAPTURED);
  frees = true;
  x_.Fill(0);
  const Outcome replayed = ReplayId();
  EXPECT_STREQ(gcap_code_name(replayed.code), "FAILED_PRECONDITION");
  EXPECT_TRUE(replayed.Names("graph id 3")) << replayed.message;
  EXPECT_TRUE(result_.was_issued);
  stream_->Synchronize();
  EXPECT_EQ(x_.value(), 1) << "the first segment alone";
}

TEST_F(GraphHoles, OneAuditLooksAtAllSegments) {
  options_.audit = GCAP_GRAPH_AUDIT_ON_DEMAND;
  CreateManager();
  void* freed[2] = {};
  for (void*& memory : freed) GCAP_EXPECT_CUDA(cudaMalloc(&memory, kFloatsBytes));
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    for (void* memory : freed) {
      GCAP_RETURN_IF_ERROR(AddTo(resources->cuda_stream, x_.get(), memory, 0));
      GCAP_RETURN_IF_ERROR(hole_.Issue(resources));
    }
    return nullptr;
  };
  ExpectRun(work, GCAP_RUN_CAPTURED);
  size_t findings = 0;
  for (size_t count = 0; count <= 2; ++count) {
    if (count > 0) {
      GCAP_EXPECT_CUDA(cudaFree(freed[count - 1]));
    }
    GCAP_EXPECT_OK(gcap_graph_manager_audit(manager_, kId, nullptr, nullptr, &findings));
    EXPECT_EQ(findings, count);
  }
}

TEST_F(GraphHoles, ARecaptureMakesNewExecutables) {
  CreateManager();
  int addend = 1;
  bool has_hole = true;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), static_cast<uint64_t>(addend)));
    if (has_hole) GCAP_RETURN_IF_ERROR(hole_.Issue(resources));
    return Add(resources, x_.get(), static_cast<uint64_t>(addend));
  };
  for (const bool next : {true, true, false, false, true}) {
    has_hole = next;
    ++addend;
    gcap_status_ignore(gcap_graph_manager_recapture(manager_, kId));
    x_.Fill(0);
    ExpectRun(work, GCAP_RUN_CAPTURED);
    EXPECT_EQ(x_.value(), static_cast<float>(2 * addend));
    ExpectRun(work, GCAP_RUN_REPLAYED);
    EXPECT_EQ(x_.value(), static_cast<float>(4 * addend));
    EXPECT_EQ(Info(kId).holes, has_hole ? 1u : 0u);
  }
  EXPECT_EQ(Info(kId).updates, 1u) << "from one segment to one";
}

TEST_F(GraphHoles, ABudgetCountsAGraphWithItsHolesOnce) {
  options_.max_graphs = 2;
  CreateManager();
  for (int id = 0; id < 3; ++id) ExpectRun(AroundHole(), GCAP_RUN_CAPTURED, id);
  EXPECT_FALSE(gcap_graph_manager_is_captured(manager_, 0));
  EXPECT_EQ(Info(0).holes, 0u);
  EXPECT_TRUE(gcap_graph_manager_is_captured(manager_, 1));
  EXPECT_EQ(Info(GCAP_GRAPH_ID_NONE).graphs, 2u);
  EXPECT_EQ(Info(GCAP_GRAPH_ID_NONE).holes, 2u);
  ExpectRun(AroundHole(), GCAP_RUN_CAPTURED, 0);
  EXPECT_EQ(x_.value(), 12);
}

TEST_F(GraphHoles, WhatTheCaptureKeepsLivesWithAllSegments) {
  CreateManager();
  int released = 0;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(gcap_capture_retain(gcap_capture_current(), CountRelease, nullptr, &released));
    GCAP_RETURN_IF_ERROR(hole_.Issue(resources));
    return gcap_capture_retain(gcap_capture_current(), CountRelease, nullptr, &released);
  };
  const LogCatcher log;
  ExpectRun(work, GCAP_RUN_CAPTURED);
  EXPECT_EQ(released, 0);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  EXPECT_EQ(released, 2);
}

// --- Buffers and values ---------------------------------------------------------------------------------------------

class GraphHolesMoving : public GraphHoles {
 protected:
  // y = x + 1; the function: y += x of the host's reading; y += 2.
  Outcome RunOn(const Floats& x, const Floats& y, const gcap_graph_value_t* value = nullptr) {
    const std::vector<gcap_graph_buffer_t> items = {{"x", x.get(), kFloatsBytes, 256},
                                                    {"y", y.get(), kFloatsBytes, 256}};
    gcap_graph_buffers_t buffers = BuffersOf(items);
    buffers.values = value;
    buffers.num_values = value != nullptr;
    gcap_run_t run = RunBy();
    run.buffers = &buffers;
    return RunHoled(run, step_);
  }

  WorkWith step_ = [this](const gcap_run_resources_t* resources) -> gcap_status_t {
    uint64_t addend = 1;
    if (resources->num_values != 0) addend = *static_cast<const uint64_t*>(resources->values[0]);
    GCAP_RETURN_IF_ERROR(AddTo(resources->cuda_stream, resources->addresses[0], resources->addresses[1], addend));
    GCAP_RETURN_IF_ERROR(hole_.Issue(resources));
    return Add(resources, resources->addresses[1], 2);
  };
};

TEST_F(GraphHolesMoving, AFunctionFindsTheBuffersOfTheReplay) {
  CreateManager();
  std::vector<void*> seen;
  hole_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    seen.assign(resources->addresses, resources->addresses + resources->num_addresses);
    float found = 0;
    GCAP_RETURN_IF_ERROR(ReadFirst(resources, resources->addresses[1], &found));
    return Add(resources, resources->addresses[1], static_cast<uint64_t>(found));
  };
  const Floats inputs[3] = {Floats(3), Floats(5), Floats(8)};
  const Floats outputs[3];
  for (int i = 0; i < 3; ++i) {
    const Outcome run = RunOn(inputs[i], outputs[i]);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(result_.outcome, i == 0 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
    EXPECT_EQ(hole_.calls, i + 1) << "not in a rehearsal";
    EXPECT_EQ(seen, (std::vector<void*>{inputs[i].get(), outputs[i].get()}));
    EXPECT_EQ(outputs[i].value(), 2 * (inputs[i].value() + 1) + 2);
  }
  EXPECT_TRUE(ReplayId().ok());  // where it was bound last
  EXPECT_EQ(seen, (std::vector<void*>{inputs[2].get(), outputs[2].get()}));
  GCAP_EXPECT_OK(gcap_graph_manager_bind(manager_, kId, 0, inputs[0].get()));
  EXPECT_TRUE(ReplayId().ok());
  EXPECT_EQ(seen[0], inputs[0].get());
  EXPECT_EQ(outputs[2].value(), 10);
  GCAP_EXPECT_FAILS(gcap_graph_manager_check_moves(manager_, kId), GCAP_FAILED_PRECONDITION, "has holes");
}

TEST_F(GraphHolesMoving, AFunctionFindsTheValuesOfTheReplay) {
  CreateManager();
  uint64_t seen = 0;
  hole_.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    seen = *static_cast<const uint64_t*>(resources->values[0]);
    return nullptr;
  };
  const uint64_t low = 0, high = 200;
  const Floats x(1), y;
  for (const uint64_t now : {uint64_t{7}, uint64_t{9}, uint64_t{150}}) {
    gcap_graph_value_t value = {};
    value.name = "addend";
    value.type = GCAP_GRAPH_VALUE_UNSIGNED;
    value.data = &now;
    value.bytes = sizeof(now);
    value.low = &low;
    value.high = &high;
    const Outcome run = RunOn(x, y, &value);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(result_.outcome, now == 7 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
    EXPECT_EQ(seen, now);
    EXPECT_EQ(y.value(), static_cast<float>(now + 3));
  }
}

TEST_F(GraphHolesMoving, TheCapturesOfARunMakeTheSameHoles) {
  options_.rerun_failed_capture = false;
  CreateManager();
  Hole others[8];
  int calls = 0;
  step_ = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(AddOne(resources->cuda_stream, resources->addresses));
    return others[calls++].Issue(resources);
  };
  const Floats x(1), y;
  const Outcome run = RunOn(x, y);
  EXPECT_STREQ(gcap_code_name(run.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(run.Names("hole 0 'hole' is made in one capture of the run, and not")) << run.message;
}

TEST_F(GraphHolesMoving, ABindInAHoleIsRefused) {
  CreateManager();
  const Floats x(1), y, z(4);
  hole_.function = [&](const gcap_run_resources_t*) -> gcap_status_t {
    GCAP_EXPECT_FAILS(gcap_graph_manager_bind(manager_, kId, 0, z.get()), GCAP_FAILED_PRECONDITION, "is in a hole");
    return nullptr;
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(RunOn(x, y).ok());
    EXPECT_EQ(y.value(), 4);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
