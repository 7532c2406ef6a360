// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Kernels that break their capture, ends in the wrong place, and a device that is lost: each call is answered by a
// status with a code of its own and a message that names the thing, leaves nothing behind, and the next run works. Runs
// and scopes that begin or end where they must not are with their modules (test/graph, test/capture).

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>

#include "gcap/allocator.h"
#include "gcap/capture.h"
#include "gcap/graph.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/runtime.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/fault/stream_scene.h"
#include "test/support/expect_status.h"
#include "test/support/log_catcher.h"
#include "test/support/plain_runs.h"
#include "test/support/replays.h"

namespace {

using gcap::testing::LogCatcher;
using gcap::testing::Outcome;
using gcap::testing::StreamScene;

class BadInput : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_FALSE(gcap_thread_is_capturing());
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    s_->ExpectNextRunWorks();
    GCAP_EXPECT_OK(s_->End());
    s_.reset();
    EXPECT_EQ(gcap_sim_live(nullptr), live_);
  }

  gcap_status_t Begin(int id, cudaStream_t stream) {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    return BeginPlain(s_->manager, id, stream, &kind);
  }
  gcap_status_t EndRun() { return EndPlain(s_->manager, nullptr, /*synchronize=*/true); }
  const size_t live_ = gcap_sim_live(nullptr);
  std::unique_ptr<StreamScene> s_ = std::make_unique<StreamScene>();
};

// The scope has the failure, whatever the kernel answers: by gcap's own refusal, and by a noted call of CUDA's.
TEST_F(BadInput, AKernelThatWaitsOrAllocates) {
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &allocator));
  void* memory = nullptr;
  const struct {
    const char *names, *rule;  // in the message of the capture's end
    std::function<gcap_status_t()> misbehave;
  } rows[] = {
      {"gcap_stream_synchronize", "", [&] { return gcap_stream_synchronize(s_->stream); }},
      {"cudaStreamSynchronize", "R11", [&] { return GCAP_CUDA(cudaStreamSynchronize(s_->Handle())); }},
      {"12345", "captures", [&] { return gcap_allocator_alloc(allocator, 12345, &memory); }},
      {"cudaMalloc", "R26", [&] { return GCAP_CUDA(cudaMalloc(&memory, 64)); }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.names);
    GCAP_EXPECT_OK(Begin(StreamScene::kId, s_->Handle()));
    GCAP_EXPECT_CUDA(s_->job.Issue(s_->Handle()));
    gcap_status_free(row.misbehave());
    const Outcome outcome(EndRun());
    EXPECT_EQ(outcome.code, GCAP_CAPTURE_INVALIDATED);
    EXPECT_TRUE(outcome.Names(row.names) && outcome.Names(row.rule)) << outcome.message;
    GCAP_EXPECT_OK(Begin(StreamScene::kId, s_->Handle()));  // the id cools down
    GCAP_EXPECT_OK(EndRun());
    GCAP_EXPECT_OK(gcap_graph_manager_release(s_->manager, StreamScene::kId));
  }
  gcap_allocator_destroy(allocator);
}

// Which NULL is refused by which name: null_test. The outputs are empty all the same.
TEST_F(BadInput, NullLeavesTheOutputsEmpty) {
  const gcap_model_t model = {};
  const gcap_node_t node = {};
  gcap_kernel_t kernel = {this, nullptr, [](void*) {}, false};
  gcap_run_resources_t of_runtime;
  gcap_run_resources_init(&of_runtime);
  of_runtime.stream = s_->stream;
  bool replayed = true;
  gcap_status_free(gcap_runtime_get_resources(nullptr, &of_runtime));
  gcap_status_free(TryReplay(static_cast<gcap_runtime_t*>(nullptr), 0, /*synchronize=*/false, &replayed));
  gcap_status_free(gcap_ep_create_kernel(nullptr, &model, &node, &kernel));
  EXPECT_EQ(of_runtime.stream, nullptr);
  EXPECT_FALSE(replayed);
  EXPECT_EQ(kernel.self, nullptr);
  EXPECT_EQ(kernel.destroy, nullptr);
}

// The run's own failure comes first; the argument's is joined to it.
TEST_F(BadInput, NullAtTheEndOfARunLosesNoStatus) {
  const auto failure = [] { return GCAP_STATUS(GCAP_LIBRARY_ERROR, "the kernel gave up"); };
  const Outcome outcomes[] = {Outcome(EndPlain(nullptr, failure(), true)), Outcome(::EndRun(nullptr, failure(), true))};
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.code, GCAP_LIBRARY_ERROR);
    EXPECT_TRUE(outcome.Names("the kernel gave up") && outcome.Names("is NULL")) << outcome.message;
  }
}

// Was: a message of 1 MB for 8,000 graphs, and the time to copy it 8,000 times.
TEST(LostDevice, ManyGraphsEndInAShortMessageThatCountsThem) {
  LogCatcher log;
  constexpr int kGraphs = 1000;
  StreamScene scene;
  for (int id = 0; id < kGraphs; ++id) scene.CaptureRun(id);
  const gcap_sim_fault_t fault = {nullptr, 1, 0, cudaErrorIllegalAddress, /*sticky=*/1};
  gcap_sim_inject(&fault);
  const Outcome ended(scene.End());
  gcap_sim_clear_faults();
  EXPECT_FALSE(ended.ok());
  EXPECT_LT(ended.message.size(), 16384u);
  EXPECT_TRUE(ended.Names(" more failures, the last: ")) << ended.message;
}

}  // namespace
