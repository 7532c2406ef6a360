// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Whole runs in one call, the STABLE policy, and runs whose thread is gone.

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "gcap/allocator.h"
#include "gcap/graph.h"
#include "gcap/graph_plan.h"
#include "gcap/scratch.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

// Work that counts its calls, and fails where it is told to.
struct Work {
  const CopyJob* job = nullptr;
  int calls = 0;
  int fail_in_capture = 0;  // so many captured runs fail
  bool fail_eagerly = false;
  size_t allocates = 0;
  bool initializes = false;

  static gcap_status_t Issue(void* user, cudaStream_t stream) {
    Work* work = static_cast<Work*>(user);
    ++work->calls;
    GCAP_EXPECT_CUDA(work->job->Issue(stream));
    if (work->allocates != 0) gcap_graph_note_allocation(work->allocates);
    if (work->initializes) gcap_graph_note_initialization();
    if (gcap_thread_is_capturing() && work->fail_in_capture > 0) {
      --work->fail_in_capture;
      return GCAP_STATUS(GCAP_UNIMPLEMENTED, "the kernel cannot be captured");
    }
    if (!gcap_thread_is_capturing() && work->fail_eagerly) return GCAP_STATUS(GCAP_INTERNAL, "the kernel is broken");
    return nullptr;
  }
};

class GraphRun : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    job_ = std::make_unique<CopyJob>();
    work_.job = job_.get();
    gcap_graph_manager_options_init(&options_);
    options_.min_num_runs_before_capture = 1;
  }
  void TearDown() override {
    ManagerTest::TearDown();
    job_.reset();
  }

  void CreateWithOptions() { GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &manager_)); }

  Outcome RunOne(int id, int value, bool synchronize = true) {
    job_->set_input(value);
    return Outcome(RunPlain(manager_, id, stream_->get(), Work::Issue, &work_, synchronize));
  }
  void ExpectRun(int id, int value, int calls) {
    const int before = work_.calls;
    const Outcome outcome = RunOne(id, value);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(job_->output(), value);
    EXPECT_EQ(work_.calls - before, calls);
  }

  gcap_graph_manager_options_t options_;
  Work work_;
  std::unique_ptr<CopyJob> job_;
};

TEST_F(GraphRun, WarmsUpCapturesAndReplays) {
  CreateWithOptions();
  ExpectRun(0, 1, /*calls=*/1);
  EXPECT_EQ(State(0), "WARMING");
  ExpectRun(0, 2, 1);
  EXPECT_EQ(State(0), "CAPTURED");
  ExpectRun(0, 3, 0);
  ExpectRun(0, 4, 0);
  EXPECT_EQ(Info(0).replays, 3u);
}

TEST_F(GraphRun, AfterAFailedCaptureTheWorkRunsOnceMoreEagerly) {
  CreateWithOptions();
  work_.fail_in_capture = 1;
  ExpectRun(0, 1, 1);
  ExpectRun(0, 2, /*calls=*/2);
  EXPECT_EQ(State(0), "COOLING");
  const Outcome failure(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_CAPTURE_FAILED));
  EXPECT_STREQ(gcap_code_name(failure.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(failure.Names("cannot be captured")) << failure.message;
  EXPECT_EQ(Info(0).eager_runs, 1u) << "the run done again is not a warm-up run";
  ExpectRun(0, 3, 1);
  EXPECT_EQ(State(0), "COOLING") << "it used up no back-off either";
  ExpectRun(0, 4, 1);
  EXPECT_EQ(State(0), "CAPTURED");
  EXPECT_FALSE(Outcome(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_CAPTURE_FAILED)).ok())
      << "told until the id is released";
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  GCAP_EXPECT_OK(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_CAPTURE_FAILED));
}

TEST_F(GraphRun, AfterAFailedCaptureWithoutBackOffItIsStillEager) {
  options_.backoff_runs = 0;
  CreateWithOptions();
  work_.fail_in_capture = 2;
  ExpectRun(0, 1, 1);
  ExpectRun(0, 2, 2);
  ExpectRun(0, 3, 2);
  EXPECT_EQ(Info(0).failures, 2u);
}

TEST_F(GraphRun, IsNotDoneAgainWithoutTheCallersConsent) {
  options_.rerun_failed_capture = false;
  CreateWithOptions();
  work_.fail_in_capture = 1;
  ExpectRun(0, 1, 1);
  const Outcome outcome = RunOne(0, 2);
  EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(outcome.Names("cannot be captured")) << outcome.message;
  EXPECT_EQ(work_.calls, 2);
  stream_->Synchronize();
  EXPECT_EQ(job_->output(), 1) << "nothing of the run was executed";
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(GraphRun, TheStatusOfItsEndHasTheCodeAndTheCauseOnce) {
  options_.min_num_runs_before_capture = 0;
  CreateWithOptions();
  gcap_graph_run_kind_t kind;
  GCAP_ASSERT_OK(BeginPlain(manager_, 0, stream_->get(), &kind));
  ASSERT_EQ(kind, GCAP_GRAPH_RUN_CAPTURE);
  void* memory = nullptr;
  gcap_status_t status = GCAP_CUDA(cudaMalloc(&memory, 64));
  status = gcap_status_annotate(status, gcap_status_code(status), "node 'gemm'");
  const Outcome outcome(EndPlain(manager_, status, /*synchronize=*/true));
  EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
  EXPECT_EQ(Count(outcome.message, "cudaErrorStreamCaptureUnsupported"), 1u) << outcome.message;
  EXPECT_FALSE(outcome.Names("failures")) << outcome.message;
}

TEST_F(GraphRun, TheStatusOfABeginThatFailedPassesItsEnd) {
  CreateWithOptions();
  gcap_graph_run_kind_t kind;
  gcap_status_t status = BeginPlain(manager_, -2, stream_->get(), &kind);
  EXPECT_EQ(gcap_status_code(status), GCAP_INVALID_ARGUMENT);
  const Outcome outcome(EndPlain(manager_, status, /*synchronize=*/true));
  EXPECT_STREQ(gcap_code_name(outcome.code), "INVALID_ARGUMENT");
  EXPECT_TRUE(outcome.Names("-2")) << outcome.message;
  EXPECT_FALSE(outcome.Names("no run is open")) << outcome.message;
}

TEST_F(GraphRun, GivesTheStatusOfWorkThatFailsEagerly) {
  CreateWithOptions();
  work_.fail_eagerly = true;
  const Outcome outcome = RunOne(0, 1);
  EXPECT_STREQ(gcap_code_name(outcome.code), "INTERNAL");
  EXPECT_TRUE(outcome.Names("is broken")) << outcome.message;
  EXPECT_EQ(work_.calls, 1);
  EXPECT_EQ(Info(0).eager_runs, 0u);
  stream_->Synchronize();
}

TEST_F(GraphRun, OfNoneNeverCaptures) {
  CreateWithOptions();
  for (int value = 1; value <= 4; ++value) ExpectRun(GCAP_GRAPH_ID_NONE, value, 1);
}

// Its wait broke the capture.
TEST_F(GraphRun, DoesNotWaitForAStreamThatTheUserCaptures) {
  CreateWithOptions();
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream_->get(), cudaStreamCaptureModeThreadLocal));
  GCAP_EXPECT_FAILS(RunPlain(manager_, GCAP_GRAPH_ID_NONE, stream_->get(), Work::Issue, &work_,
                             /*synchronize=*/true),
                    GCAP_FAILED_PRECONDITION, "is capturing");
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_->get(), &graph));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_EQ(work_.calls, 1);
}

TEST_F(GraphRun, ReplaysOnTheStreamThatItIsGiven) {
  options_.min_num_runs_before_capture = 0;
  CreateWithOptions();
  ExpectRun(0, 1, 1);
  const RawStream other;
  Gate gate;
  gate.Hold(other.get());
  job_->set_input(2);
  GCAP_EXPECT_OK(RunPlain(manager_, 0, other.get(), Work::Issue, &work_, /*synchronize=*/false));
  EXPECT_EQ(job_->output(), 1) << "the other stream is held";
  gate.Open();
  other.Synchronize();
  EXPECT_EQ(job_->output(), 2);
  EXPECT_EQ(work_.calls, 1);
}

TEST_F(GraphRun, WithinACaptureOfTheThreadIsRefused) {
  CreateWithOptions();
  const RawStream other;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(other.get(), nullptr, &capture));
  const Outcome outcome = RunOne(0, 1);
  EXPECT_STREQ(gcap_code_name(outcome.code), "FAILED_PRECONDITION");
  EXPECT_EQ(work_.calls, 0);
  gcap_capture_abort(capture);
}

TEST_F(GraphRun, WithinTheWorkOfAnotherOneIsRefusedUnlessItIsAReplay) {
  options_.min_num_runs_before_capture = 0;
  CreateWithOptions();
  ExpectRun(1, 1, 1);
  Outcome begun(nullptr), replayed(nullptr);
  std::function<void()> nested = [&] {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    begun = Outcome(BeginPlain(manager_, 2, stream_->get(), &kind));
    replayed = RunOne(1, 2, /*synchronize=*/false);
  };
  const PlainWork work = [](void* nested, cudaStream_t) -> gcap_status_t {
    (*static_cast<std::function<void()>*>(nested))();
    return nullptr;
  };
  GCAP_EXPECT_OK(RunPlain(manager_, GCAP_GRAPH_ID_NONE, stream_->get(), work, &nested, true));
  EXPECT_STREQ(gcap_code_name(begun.code), "FAILED_PRECONDITION");
  EXPECT_TRUE(begun.Names("begun by the work of another one")) << begun.message;
  EXPECT_TRUE(replayed.ok()) << replayed.message;
  EXPECT_EQ(job_->output(), 2);
  ExpectRun(2, 3, 1);
}

// --- The STABLE policy ----------------------------------------------------------------------------------------------

class StablePolicy : public GraphRun {
 protected:
  void SetUp() override {
    GraphRun::SetUp();
    options_.policy = GCAP_GRAPH_POLICY_STABLE;
    options_.max_runs_before_capture = 6;
  }
};

TEST_F(StablePolicy, CapturesAfterTwoRunsThatAllocatedAlike) {
  CreateWithOptions();
  work_.allocates = 64;
  ExpectRun(0, 1, 1);
  EXPECT_EQ(State(0), "WARMING");
  work_.allocates = 32;
  ExpectRun(0, 2, 1);
  ExpectRun(0, 3, 1);
  EXPECT_EQ(State(0), "WARMING");
  ExpectRun(0, 4, 1);
  EXPECT_EQ(State(0), "CAPTURED");
  EXPECT_EQ(Info(0).eager_runs, 3u);
}

TEST_F(StablePolicy, WaitsWhileRunsInitialiseSomething) {
  CreateWithOptions();
  work_.initializes = true;
  for (int run = 0; run < 3; ++run) ExpectRun(0, run, 1);
  work_.initializes = false;
  for (int run = 0; run < 2; ++run) ExpectRun(0, run, 1);
  EXPECT_EQ(State(0), "WARMING");
  ExpectRun(0, 5, 1);
  EXPECT_EQ(State(0), "CAPTURED");
}

TEST_F(StablePolicy, WaitsNoLongerThanItsMaximum) {
  CreateWithOptions();
  work_.initializes = true;
  for (int run = 0; run < 6; ++run) {
    ExpectRun(0, run, 1);
    EXPECT_EQ(State(0), "WARMING");
  }
  ExpectRun(0, 6, 1);
  EXPECT_EQ(State(0), "CAPTURED");
}

TEST_F(StablePolicy, LooksAtEachIdByItself) {
  CreateWithOptions();
  for (int run = 0; run < 3; ++run) {
    work_.allocates = 64;
    ExpectRun(0, run, run < 3 ? 1 : 0);
    work_.allocates = 128;
    ExpectRun(1, run, run < 3 ? 1 : 0);
  }
  EXPECT_EQ(State(0), "CAPTURED");
  EXPECT_EQ(State(1), "CAPTURED");
}

TEST_F(StablePolicy, SeesWhatScratchHandsOutAndWhatItGrowsBy) {
  CreateWithOptions();
  gcap_allocator_t* memory = nullptr;
  gcap_scratch_t* scratch = nullptr;
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &memory));
  GCAP_ASSERT_OK(gcap_scratch_create(memory, nullptr, &scratch));
  GCAP_ASSERT_OK(gcap_stream_wrap(stream_->get(), GCAP_STREAM_USER, 0, 0, &stream));
  // The first run grows the arena; the next differs from those after it.
  for (const size_t bytes : {1000, 500, 2000, 2000}) {
    ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_EAGER);
    void* block = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, bytes, stream, &block));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, block));
    EXPECT_TRUE(End().ok());
  }
  EXPECT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
  EXPECT_TRUE(End().ok());
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  gcap_allocator_destroy(memory);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

// Alike in their scratch, but each takes memory from the driver.
TEST_F(StablePolicy, DoesNotTakeRunsThatAllocateFromTheDriverForStable) {
  CreateWithOptions();
  gcap_allocator_t* memory = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &memory));
  for (int run = 0; run < 6; ++run) {
    ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_EAGER);
    void* block = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_alloc(memory, 64, &block));
    GCAP_EXPECT_OK(gcap_allocator_free(memory, block));
    EXPECT_TRUE(End().ok());
  }
  gcap_allocator_destroy(memory);
  ExpectRun(0, 1, 1);
  EXPECT_EQ(State(0), "CAPTURED");
}

TEST_F(StablePolicy, AFailedRunDoesNotCount) {
  CreateWithOptions();
  ExpectRun(0, 1, 1);
  work_.fail_eagerly = true;
  work_.allocates = 1;
  EXPECT_FALSE(RunOne(0, 2).ok());
  stream_->Synchronize();
  work_ = Work{};
  work_.job = job_.get();
  ExpectRun(0, 3, 1);
  EXPECT_EQ(State(0), "WARMING");
  ExpectRun(0, 4, 1);
  EXPECT_EQ(State(0), "CAPTURED");
}

TEST_F(StablePolicy, UnknownPolicyIsInvalidArgument) {
  options_.policy = static_cast<gcap_graph_policy_t>(9);
  GCAP_EXPECT_FAILS(gcap_graph_manager_create(&options_, &manager_), GCAP_INVALID_ARGUMENT, "policy is 9");
  EXPECT_EQ(manager_, nullptr);
}

// --- Threads that are gone, and bad input ---------------------------------------------------------------------------

TEST_F(GraphRun, AnEagerRunOfAThreadThatExitedIsNobodys) {
  CreateWithOptions();
  std::thread([this] { EXPECT_EQ(Begin(0), GCAP_GRAPH_RUN_EAGER); }).join();
  ExpectRun(0, 1, 1);
  EXPECT_EQ(warnings_, 1);
  EXPECT_EQ(Info(0).eager_runs, 1u);
  std::thread([this] { EXPECT_EQ(Begin(1), GCAP_GRAPH_RUN_EAGER); }).join();
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
  manager_ = nullptr;
}

TEST_F(GraphRun, ManyThreadsMayLeaveRunsOpenInTurn) {
  CreateWithOptions();
  for (int i = 0; i < 50; ++i) {
    std::thread([this] { Begin(GCAP_GRAPH_ID_NONE); }).join();
  }
  ExpectRun(0, 1, 1);
  EXPECT_EQ(warnings_, 50);
}

TEST_F(GraphRun, DestroyAbortsItsOwnCaptureButNoOther) {
  options_.min_num_runs_before_capture = 0;
  CreateWithOptions();
  const RawStream other;
  EXPECT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
  EXPECT_FALSE(gcap_thread_is_capturing());

  CreateWithOptions();
  ExpectRun(0, 1, 1);
  EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(other.get(), nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager_), GCAP_FAILED_PRECONDITION, "capturing");
  gcap_capture_abort(capture);
  EXPECT_TRUE(End().ok()) << "the open run was not destroyed either";
  ExpectRun(0, 2, 0);
}

TEST_F(GraphRun, NullIsInvalidArgumentByName) {
  CreateWithOptions();
  gcap_graph_manager_t* none = nullptr;
  gcap_graph_run_kind_t kind;
  bool replayed = false;
  const auto expect_null = [](gcap_status_t status, const char* argument) {
    GCAP_EXPECT_FAILS(status, GCAP_INVALID_ARGUMENT, std::string(argument) + " is NULL");
  };
  cudaStream_t stream = stream_->get();
  expect_null(gcap_graph_manager_create(&options_, nullptr), "out_manager");
  expect_null(BeginPlain(none, 0, stream, &kind), "manager");
  expect_null(BeginPlain(manager_, 0, stream, nullptr), "out_kind");
  expect_null(EndPlain(none, nullptr, true), "manager");
  expect_null(RunPlain(none, 0, stream, Work::Issue, &work_, true), "manager");
  expect_null(RunPlain(manager_, 0, stream, nullptr, &work_, true), "work");
  expect_null(gcap_graph_manager_recapture(none, 0), "manager");
  expect_null(gcap_graph_manager_explain(none, 0, GCAP_GRAPH_WHY_CAPTURE_FAILED), "manager");
  expect_null(gcap_graph_manager_explain(none, 0, GCAP_GRAPH_WHY_NOT_UPDATED), "manager");
  expect_null(Replay(none, 0, true), "manager");
  expect_null(TryReplay(none, 0, true, &replayed), "manager");
  expect_null(ReplayOn(none, 0, stream, true), "manager");
  expect_null(gcap_graph_manager_dump(none, 0, "x", 0), "manager");
  expect_null(gcap_graph_manager_dump(manager_, 0, nullptr, 0), "path");
  expect_null(ReplayBound(none, 0, nullptr, 0, true), "manager");
  expect_null(gcap_graph_manager_release(none, 0), "manager");
  expect_null(gcap_graph_manager_release_all(none), "manager");
  EXPECT_FALSE(gcap_graph_manager_is_captured(none, 0));
  gcap_graph_info_t info;
  std::memset(&info, 0xff, sizeof(info));
  gcap_graph_manager_get_info(none, 0, &info);
  EXPECT_EQ(info.replays, 0u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
