// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The ends of graphs and of their manager: what a refusal leaves, which was half of the manager, or nothing but a
// pointer to freed memory; and ids without a graph, which were never forgotten.

#include <memory>
#include <string>
#include <thread>

#include "gcap/graph.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

// A capture of somebody else.
class OtherCapture {
 public:
  explicit OtherCapture(cudaStream_t stream) : stream_(stream) {
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  }
  OtherCapture(const OtherCapture&) = delete;
  OtherCapture& operator=(const OtherCapture&) = delete;
  ~OtherCapture() {
    cudaGraph_t graph = nullptr;
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_, &graph));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  }

 private:
  const cudaStream_t stream_;
};

class GraphEnd : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    job_ = std::make_unique<CopyJob>();
    others_job_ = std::make_unique<CopyJob>();
    other_ = std::make_unique<RawStream>();
    gcap_graph_manager_options_init(&options_);
    options_.min_num_runs_before_capture = 0;
  }
  void TearDown() override {
    ManagerTest::TearDown();
    other_.reset();
    others_job_.reset();
    job_.reset();
  }
  void CreateWithOptions() { GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &manager_)); }

  // Each stream has a job of its own, so that nothing need order them.
  cudaError_t IssueOn(cudaStream_t stream) { return (stream == other_->get() ? others_job_ : job_)->Issue(stream); }
  // Captures a graph on `stream` that retains something.
  void CaptureOn(int id, cudaStream_t stream) {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    GCAP_ASSERT_OK(BeginPlain(manager_, id, stream, &kind));
    ASSERT_EQ(kind, GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(IssueOn(stream));
    GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, &released_));
    GCAP_EXPECT_OK(EndPlain(manager_, nullptr, true));
  }
  void ExpectReplays(int id) {
    const uint64_t before = Info(id).replays;
    GCAP_EXPECT_OK(Replay(manager_, id, true));
    EXPECT_EQ(Info(id).replays, before + 1);
  }
  void DestroyWell() {
    GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
    manager_ = nullptr;
  }

  gcap_graph_manager_options_t options_;
  std::unique_ptr<CopyJob> job_, others_job_;
  std::unique_ptr<RawStream> other_;
  int released_ = 0;
  int value_ = 100;
};

// It said that nothing was destroyed, and had freed the manager.
TEST_F(GraphEnd, OfAManagerIsRefusedWhileAStreamIsCapturedAndComesLater) {
  CreateWithOptions();
  CaptureOn(0, stream_->get());
  CaptureOn(1, other_->get());
  for (const RawStream* captured : {stream_.get(), other_.get()}) {
    const OtherCapture capture(captured->get());
    for (int i = 0; i < 2; ++i) {
      GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager_), GCAP_FAILED_PRECONDITION, "capturing");
    }
  }
  EXPECT_EQ(released_, 0);
  ExpectReplays(0);
  ExpectReplays(1);
  DestroyWell();
  EXPECT_EQ(released_, 2);
}

TEST_F(GraphEnd, OfAManagerIsRefusedForARetiredGraphToo) {
  options_.max_graphs = 1;
  CreateWithOptions();
  CaptureOn(0, stream_->get());
  {
    const OtherCapture capture(stream_->get());
    CaptureOn(1, other_->get());  // evicts the other one, behind whose launch no event can be recorded now
    GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager_), GCAP_FAILED_PRECONDITION, "capturing");
  }
  EXPECT_EQ(released_, 0);
  ExpectReplays(1);
  DestroyWell();
  EXPECT_EQ(released_, 2);
}

TEST_F(GraphEnd, OfAManagerIsRefusedWhileAnotherThreadHasARunOpen) {
  CreateWithOptions();
  CaptureOn(0, stream_->get());
  std::thread([this] {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    GCAP_EXPECT_OK(BeginPlain(manager_, GCAP_GRAPH_ID_NONE, other_->get(), &kind));
    std::thread([this] {
      GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager_), GCAP_FAILED_PRECONDITION, "another thread");
    }).join();
    GCAP_EXPECT_OK(EndPlain(manager_, nullptr, true));
  }).join();
  ExpectReplays(0);
  DestroyWell();
}

TEST_F(GraphEnd, OfAManagerIsRefusedInACaptureOfSomethingElse) {
  CreateWithOptions();
  CaptureOn(0, stream_->get());
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(other_->get(), nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager_), GCAP_FAILED_PRECONDITION, "this thread is capturing");
  gcap_capture_abort(capture);
  ExpectReplays(0);
  DestroyWell();
  EXPECT_EQ(released_, 1);
}

TEST_F(GraphEnd, OfAManagerAbortsItsOwnOpenRun) {
  CreateWithOptions();
  CaptureOn(0, stream_->get());
  ASSERT_EQ(Begin(1), GCAP_GRAPH_RUN_CAPTURE);
  DestroyWell();
  EXPECT_EQ(released_, 1);
  EXPECT_EQ(warnings_, 1) << "the run was never ended";
}

// The refusal comes before the open run is aborted.
TEST_F(GraphEnd, OfAManagerThatIsRefusedLeavesItsOwnOpenRun) {
  CreateWithOptions();
  CaptureOn(0, stream_->get());
  CaptureOn(1, other_->get());
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  const OtherCapture capture(other_->get());
  ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
  GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager_), GCAP_FAILED_PRECONDITION, "graph id 1");
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(Info(0).updates, 1u);
  EXPECT_EQ(warnings_, 0);
}

// It released the others, and forgot nothing of the one that it could not release.
TEST_F(GraphEnd, OfAllIsRefusedBeforeTheFirstIsReleased) {
  CreateWithOptions();
  CaptureOn(0, stream_->get());
  CaptureOn(1, other_->get());
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_ASSERT_OK(BeginPlain(manager_, 2, stream_->get(), &kind));
  gcap_status_ignore(EndPlain(manager_, GCAP_STATUS(GCAP_LIBRARY_ERROR, "the work failed"), true));
  const std::string state = State(2);
  EXPECT_NE(state, "COLD");
  {
    const OtherCapture capture(other_->get());
    GCAP_EXPECT_FAILS(gcap_graph_manager_release_all(manager_), GCAP_FAILED_PRECONDITION, "graph id 1");
    GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, 1), GCAP_FAILED_PRECONDITION, "graph id 1");
  }
  EXPECT_EQ(released_, 0);
  EXPECT_EQ(State(2), state) << "an id without a graph is known as before";
  ExpectReplays(0);
  ExpectReplays(1);
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
  EXPECT_EQ(released_, 2);
}

TEST_F(GraphEnd, OfAllIsRefusedWhileAnIdIsCapturedAgain) {
  CreateWithOptions();
  CaptureOn(0, other_->get());
  CaptureOn(1, other_->get());
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
  std::thread([this] {
    GCAP_EXPECT_FAILS(gcap_graph_manager_release_all(manager_), GCAP_FAILED_PRECONDITION, "captured again");
    GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, 0), GCAP_FAILED_PRECONDITION, "captured again");
  }).join();
  EXPECT_TRUE(End().ok());
  ExpectReplays(0);
  ExpectReplays(1);
}

TEST_F(GraphEnd, OfAllLeavesAnIdThatIsCapturedForTheFirstTime) {
  CreateWithOptions();
  CaptureOn(0, other_->get());
  ASSERT_EQ(Begin(1), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
  std::thread([this] {
    GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, 1), GCAP_FAILED_PRECONDITION, "being captured");
    GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
  }).join();
  EXPECT_EQ(State(0), "COLD");
  EXPECT_TRUE(End().ok());
  ExpectReplays(1);
}

// The event that a refused release recorded is behind the launches of then, not behind later ones.
TEST_F(GraphEnd, OfAGraphWaitsForLaunchesAfterARefusal) {
  options_.max_graphs = 2;
  CreateWithOptions();
  CaptureOn(0, stream_->get());
  CaptureOn(1, other_->get());
  {
    const OtherCapture capture(other_->get());
    GCAP_EXPECT_FAILS(gcap_graph_manager_release_all(manager_), GCAP_FAILED_PRECONDITION, "capturing");
  }
  Gate gate;
  gate.Hold(stream_->get());
  GCAP_EXPECT_OK(Replay(manager_, 0, false));
  GCAP_EXPECT_OK(Replay(manager_, 1, true));
  CaptureOn(2, other_->get());
  EXPECT_EQ(State(0), "READY") << "evicted";
  EXPECT_EQ(released_, 0) << "its launch is held up";
  gate.Open();
  stream_->Synchronize();
}

// --- Ids without a graph --------------------------------------------------------------------------------------------

TEST_F(GraphEnd, OfIdsWithoutAGraphComesForTheOldest) {
  options_.min_num_runs_before_capture = 10;
  options_.max_ids_without_graph = 5;
  CreateWithOptions();
  for (int id = 0; id < 100; ++id) Run(id, *job_);
  for (int id = 0; id < 95; ++id) EXPECT_EQ(State(id), "COLD") << id;
  for (int id = 95; id < 100; ++id) EXPECT_EQ(State(id), "WARMING") << id;
  Run(95, *job_);  // is the newest again
  for (int id = 200; id < 204; ++id) Run(id, *job_);
  EXPECT_EQ(Info(95).eager_runs, 2u);
  EXPECT_EQ(State(99), "COLD");
}

TEST_F(GraphEnd, OfIdsWithoutAGraphLeavesTheIdsWithOne) {
  options_.max_ids_without_graph = 1;
  CreateWithOptions();
  for (int id = 0; id < 10; ++id) CaptureOn(id, stream_->get());
  FailingRun(10);
  FailingRun(11);
  EXPECT_EQ(State(10), "COLD");
  EXPECT_EQ(State(11), "COOLING");
  for (int id = 0; id < 10; ++id) EXPECT_EQ(State(id), "CAPTURED") << id;
}

TEST_F(GraphEnd, OfIdsWithoutAGraphComesForTheEvictedAndTheFailed) {
  options_.max_graphs = 2;
  options_.max_ids_without_graph = 3;
  CreateWithOptions();
  for (int id = 0; id < 50; ++id) {
    if (id % 2 == 0) CaptureOn(id, stream_->get());
    if (id % 2 == 1) FailingRun(id);
  }
  int known = 0;
  for (int id = 0; id < 50; ++id) known += State(id) != "COLD";
  EXPECT_EQ(known, 5);
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
  for (int id = 0; id < 50; ++id) EXPECT_EQ(State(id), "COLD") << id;
}

TEST_F(GraphEnd, OfIdsWithoutAGraphIsNotNeededWithoutALimit) {
  options_.min_num_runs_before_capture = 10;
  options_.max_ids_without_graph = 0;
  CreateWithOptions();
  for (int id = 0; id < 100; ++id) Run(id, *job_);
  for (int id = 0; id < 100; ++id) EXPECT_EQ(State(id), "WARMING") << id;
}

// Each capture walked all ids that ever were.
TEST_F(GraphEnd, UnderABudgetACaptureLooksAtTheGraphsThatAreKeptAlone) {
  static int asked;
  options_.max_graphs = 4;
  options_.max_bytes = 1 << 20;
  CreateWithOptions();
  for (int id = 0; id < 300; ++id) {
    ASSERT_EQ(Begin(id), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
    GCAP_EXPECT_OK(gcap_capture_retain(
        gcap_capture_current(), [](void*) {},
        [](void*) {
          ++asked;
          return size_t{1};
        },
        nullptr));
    asked = 0;
    EXPECT_TRUE(End().ok());
    EXPECT_EQ(asked, id < 4 ? id + 1 : 5) << id;
  }
}

// --- The stream of an open run --------------------------------------------------------------------------------------

// The wait at the end used the handle of the stream that was destroyed meanwhile.
TEST_F(GraphEnd, OfAnEagerRunsStreamIsSeenByTheEndOfTheRun) {
  CreateWithOptions();
  for (const bool synchronize : {true, false}) {
    gcap_stream_t* stream = nullptr;
    GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_CAPTURE;
    GCAP_EXPECT_OK(BeginPlain(manager_, GCAP_GRAPH_ID_NONE, gcap_stream_handle(stream), &kind));
    job_->set_input(++value_);
    GCAP_EXPECT_CUDA(job_->Issue(gcap_stream_handle(stream)));
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    EXPECT_EQ(job_->output(), value_) << "the end of a stream waits for its work";
    const Outcome outcome(EndPlain(manager_, nullptr, synchronize));
    EXPECT_STREQ(gcap_code_name(outcome.code), synchronize ? "FAILED_PRECONDITION" : "OK");
    EXPECT_TRUE(!synchronize || outcome.Names("was destroyed meanwhile")) << outcome.message;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
