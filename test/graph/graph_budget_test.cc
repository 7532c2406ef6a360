// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The budget: which graphs go when there are too many, who is told, and when their memory returns.

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

struct Evicted {
  int id;
  gcap_graph_info_t info;
};

class GraphBudget : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    job_ = std::make_unique<CopyJob>();
    gcap_graph_manager_options_init(&options_);
    options_.min_num_runs_before_capture = 0;
    options_.on_evict = [](void* test, int id, const gcap_graph_info_t* info) {
      static_cast<GraphBudget*>(test)->evicted_.push_back({id, *info});
    };
    options_.user = this;
  }
  void CreateWithOptions() { GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &manager_)); }

  // Captures a graph that retains `bytes`, counted by `released`.
  void Capture(int id, size_t bytes = 0, int* released = nullptr) {
    ASSERT_EQ(Begin(id), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job_->Issue(stream_->get()));
    retained_.push_back({bytes, released});
    GCAP_EXPECT_OK(gcap_capture_retain(
        gcap_capture_current(),
        [](void* entry) {
          int* count = static_cast<Retained*>(entry)->released;
          if (count != nullptr) ++*count;
        },
        [](void* entry) { return static_cast<Retained*>(entry)->bytes; }, &retained_.back()));
    GCAP_EXPECT_OK(EndPlain(manager_, nullptr, /*synchronize=*/false));
  }
  static void ReleaseIdOne(void* test, int id, const gcap_graph_info_t* info) {
    GraphBudget* self = static_cast<GraphBudget*>(test);
    EXPECT_EQ(self->State(id), "READY");
    GCAP_EXPECT_OK(gcap_graph_manager_release(self->manager_, 1));
    self->evicted_.push_back({id, *info});
  }
  std::vector<int> Ids() const {
    std::vector<int> ids;
    for (const Evicted& evicted : evicted_) ids.push_back(evicted.id);
    return ids;
  }

  struct Retained {
    size_t bytes;
    int* released;
  };
  gcap_graph_manager_options_t options_;
  std::list<Retained> retained_;
  std::vector<Evicted> evicted_;
  std::unique_ptr<CopyJob> job_;
};

TEST_F(GraphBudget, OfNothingLimitsNothing) {
  CreateWithOptions();
  for (int id = 0; id < 20; ++id) Capture(id, 1 << 20);
  EXPECT_TRUE(evicted_.empty());
  EXPECT_EQ(RetainedBytes(7), size_t{1} << 20);
  stream_->Synchronize();
}

TEST_F(GraphBudget, OfGraphsTakesTheLeastRecentlyUsed) {
  options_.max_graphs = 3;
  CreateWithOptions();
  for (int id = 0; id < 3; ++id) Capture(id);
  GCAP_EXPECT_OK(Replay(manager_, 0, true));
  const RawStream other;
  GCAP_EXPECT_OK(ReplayOn(manager_, 1, other.get(), true));
  Capture(3);
  EXPECT_EQ(Ids(), std::vector<int>({2}));
  Capture(4);
  Capture(5);
  EXPECT_EQ(Ids(), std::vector<int>({2, 0, 1}));
  for (int id = 3; id < 6; ++id) EXPECT_EQ(State(id), "CAPTURED");
  stream_->Synchronize();
}

TEST_F(GraphBudget, OfBytesTakesAsManyAsItMust) {
  options_.max_bytes = 100 * kMany;
  CreateWithOptions();
  Capture(0, 30 * kMany);
  Capture(1, 30 * kMany);
  Capture(2, 30 * kMany);
  EXPECT_TRUE(evicted_.empty());
  Capture(3, 60 * kMany);
  EXPECT_EQ(Ids().size(), 2u);
  EXPECT_EQ(State(0), "READY");
  EXPECT_EQ(State(1), "READY");
  EXPECT_EQ(State(2), "CAPTURED");
  stream_->Synchronize();
}

TEST_F(GraphBudget, OfBytesDoesNotCountGraphsThatWereReleased) {
  options_.max_bytes = 100 * kMany;
  CreateWithOptions();
  Capture(0, 80 * kMany);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  Capture(1, 30 * kMany);
  Capture(2, 30 * kMany);
  EXPECT_TRUE(evicted_.empty());
  stream_->Synchronize();
}

TEST_F(GraphBudget, NeverTakesTheGraphJustCaptured) {
  options_.max_bytes = 10;
  CreateWithOptions();
  Capture(0, 50);
  EXPECT_TRUE(evicted_.empty());
  Capture(1, 70);
  EXPECT_EQ(Ids(), std::vector<int>({0}));
  EXPECT_EQ(State(1), "CAPTURED");
  stream_->Synchronize();
}

TEST_F(GraphBudget, LeavesTheIdWarmWithItsCounters) {
  options_.max_graphs = 1;
  options_.min_num_runs_before_capture = 2;
  CreateWithOptions();
  for (int run = 0; run < 2; ++run) Run(0, *job_);
  Capture(0, 5);
  GCAP_EXPECT_OK(Replay(manager_, 0, true));
  for (int run = 0; run < 2; ++run) Run(1, *job_);
  Capture(1);
  ASSERT_EQ(Ids(), std::vector<int>({0}));
  EXPECT_EQ(evicted_[0].info.state, GCAP_GRAPH_CAPTURED) << "as it was before";
  EXPECT_EQ(evicted_[0].info.nodes, CopyJob::kNodes);
  EXPECT_EQ(RetainedOf(evicted_[0].info), 5u);
  EXPECT_GT(evicted_[0].info.exec_bytes, 0u);
  EXPECT_EQ(evicted_[0].info.replays, 2u);
  const gcap_graph_info_t info = Info(0);
  EXPECT_EQ(State(0), "READY");
  EXPECT_EQ(info.evictions, 1u);
  EXPECT_EQ(info.eager_runs, 2u);
  EXPECT_EQ(info.replays, 2u);
  EXPECT_EQ(info.nodes, 0u);
  EXPECT_EQ(info.bytes, 0u);
  EXPECT_EQ(info.exec_bytes, 0u);
  GCAP_EXPECT_FAILS(Replay(manager_, 0, true), GCAP_NOT_FOUND, "READY");
  Capture(0);
  EXPECT_EQ(Info(0).captures, 2u);
  stream_->Synchronize();
}

TEST_F(GraphBudget, ReturnsMemoryWhenTheLaunchesAreDone) {
  options_.max_graphs = 1;
  CreateWithOptions();
  Gate gate;
  int released = 0;
  gate.Hold(stream_->get());
  Capture(0, 8, &released);
  Capture(1, 8);
  EXPECT_EQ(Ids(), std::vector<int>({0}));
  EXPECT_EQ(released, 0) << "its launch is held up";
  EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);
  GCAP_EXPECT_OK(EndPlain(manager_, nullptr, false));
  EXPECT_EQ(released, 0) << "and nobody waits for it";
  gate.Open();
  stream_->Synchronize();
  EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(released, 1);
}

TEST_F(GraphBudget, ItsCallbackMayCallTheManager) {
  options_.max_graphs = 2;
  options_.on_evict = ReleaseIdOne;
  CreateWithOptions();
  for (int id = 0; id < 3; ++id) Capture(id);
  EXPECT_EQ(Ids(), std::vector<int>({0}));
  EXPECT_EQ(State(1), "COLD");
  stream_->Synchronize();
}

TEST_F(GraphBudget, AlsoTakesStaleGraphs) {
  options_.max_graphs = 1;
  CreateWithOptions();
  Capture(0);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  Capture(1);
  EXPECT_EQ(Ids(), std::vector<int>({0}));
  EXPECT_EQ(State(0), "READY");
  stream_->Synchronize();
}

// As of graphs that share memory: with each further one an earlier one's part is less.
TEST_F(GraphBudget, WeighsWhatAGraphRetainsNow) {
  options_.max_bytes = 100 * kMany;
  CreateWithOptions();
  Capture(0, 90 * kMany);
  EXPECT_EQ(RetainedBytes(0), 90 * kMany);
  retained_.front().bytes = 40 * kMany;
  EXPECT_EQ(RetainedBytes(0), 40 * kMany);
  Capture(1, 59 * kMany);
  EXPECT_TRUE(evicted_.empty());
  retained_.front().bytes = 41 * kMany;
  Capture(2, 30 * kMany);
  EXPECT_EQ(Ids(), std::vector<int>({0}));
  EXPECT_EQ(RetainedOf(evicted_[0].info), 41 * kMany);
  stream_->Synchronize();
}

TEST_F(GraphBudget, CountsTheGraphsOwnAllocations) {
  CreateWithOptions();
  ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  void* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaMallocAsync(&memory, 4096, stream_->get()));
  GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, 0, 4096, stream_->get()));
  GCAP_EXPECT_CUDA(cudaFreeAsync(memory, stream_->get()));
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(Info(0).nodes, 3u);
  EXPECT_EQ(RetainedBytes(0), 4096u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
