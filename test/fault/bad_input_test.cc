// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Calls that are wrong: each is answered by a status with a code of its own and a message that names the thing, leaves
// nothing behind, and the next run works.

#include <cuda_runtime_api.h>

#include <string>
#include <thread>

#include "gcap/allocator.h"
#include "gcap/capture.h"
#include "gcap/graph.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/kit/session.h"
#include "gcap/options.h"
#include "gcap/runtime.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/fault/stream_scene.h"
#include "test/session/session_test.h"
#include "test/support/expect_status.h"
#include "test/support/log_catcher.h"
#include "test/support/plain_runs.h"
#include "test/support/replays.h"

namespace {

using gcap::testing::ChainRig;
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
  // A captured run whose kernel answers success, whatever `misbehave` did.
  template <typename Misbehave>
  Outcome CaptureOf(Misbehave misbehave) {
    GCAP_EXPECT_OK(Begin(StreamScene::kId, s_->Handle()));
    GCAP_EXPECT_CUDA(s_->job.Issue(s_->Handle()));
    misbehave();
    return Outcome(EndRun());
  }

  const size_t live_ = gcap_sim_live(nullptr);
  std::unique_ptr<StreamScene> s_ = std::make_unique<StreamScene>();
};

TEST_F(BadInput, IdsBelowMinusOne) {
  for (int id : {-2, -2147483647 - 1}) {
    GCAP_EXPECT_FAILS(Begin(id, s_->Handle()), GCAP_INVALID_ARGUMENT, std::to_string(id));
    GCAP_EXPECT_FAILS(Replay(s_->manager, id, true), GCAP_NOT_FOUND, std::to_string(id));
  }
}

TEST_F(BadInput, EndWithoutBegin) {
  GCAP_EXPECT_FAILS(EndRun(), GCAP_FAILED_PRECONDITION, "no run");
  GCAP_EXPECT_FAILS(gcap_capture_end(nullptr, &s_->graph, &s_->retained), GCAP_FAILED_PRECONDITION, "capture");
}

// What was never ended is given up, and the log says so, at each level.
TEST_F(BadInput, BeginWithinBegin) {
  LogCatcher log;
  s_->BeginCapture();
  const cudaStream_t other = gcap_stream_handle(s_->other);
  GCAP_EXPECT_OK(gcap_capture_begin(other, nullptr, &s_->capture));
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusActive;
  GCAP_EXPECT_CUDA(cudaStreamIsCapturing(s_->Handle(), &state));
  EXPECT_EQ(state, cudaStreamCaptureStatusNone);
  GCAP_EXPECT_OK(gcap_capture_end(s_->capture, &s_->graph, &s_->retained));
  EXPECT_NE(log.text().find("never ended"), std::string::npos) << log.text();
}

TEST_F(BadInput, BeginOfARunWithinARun) {
  LogCatcher log;
  GCAP_EXPECT_OK(Begin(StreamScene::kId, s_->Handle()));
  GCAP_EXPECT_OK(Begin(GCAP_GRAPH_ID_NONE, s_->Handle()));
  EXPECT_FALSE(gcap_thread_is_capturing());
  GCAP_EXPECT_OK(EndRun());
  GCAP_EXPECT_FAILS(EndRun(), GCAP_FAILED_PRECONDITION, "no run");
  EXPECT_FALSE(gcap_graph_manager_is_captured(s_->manager, StreamScene::kId));
  EXPECT_NE(log.text().find("id 3 was never ended"), std::string::npos) << log.text();

  const std::string before = log.text();
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(gcap::testing::GraphOptions(0)));
  GCAP_EXPECT_OK(BeginRun(rig.ep->runtime(), 7));
  GCAP_EXPECT_OK(BeginRun(rig.ep->runtime(), GCAP_GRAPH_ID_NONE));
  EXPECT_FALSE(gcap_thread_is_capturing());
  GCAP_EXPECT_OK(::EndRun(rig.ep->runtime(), nullptr, /*synchronize=*/true));
  GCAP_EXPECT_FAILS(::EndRun(rig.ep->runtime(), nullptr, true), GCAP_FAILED_PRECONDITION, "no run");
  EXPECT_NE(log.text().find("id 7 was never ended", before.size()), std::string::npos) << log.text();
}

TEST_F(BadInput, BeginOfARunWithinThatOfAnotherThreadLeavesThatAlone) {
  GCAP_EXPECT_OK(Begin(StreamScene::kId, s_->Handle()));
  std::thread([this] {
    GCAP_EXPECT_FAILS(Begin(GCAP_GRAPH_ID_NONE, gcap_stream_handle(s_->other)), GCAP_FAILED_PRECONDITION, "another");
  }).join();
  GCAP_EXPECT_CUDA(s_->job.Issue(s_->Handle()));
  GCAP_EXPECT_OK(EndRun());
  EXPECT_TRUE(gcap_graph_manager_is_captured(s_->manager, StreamScene::kId));
}

TEST_F(BadInput, BeginOnTheLegacyStream) {
  for (cudaStream_t legacy : {cudaStream_t{}, cudaStreamLegacy}) {
    GCAP_EXPECT_FAILS(gcap_capture_begin(legacy, nullptr, &s_->capture), GCAP_INVALID_ARGUMENT, "default stream");
    GCAP_EXPECT_FAILS(Begin(StreamScene::kId, legacy), GCAP_INVALID_ARGUMENT, "default stream");
  }
}

TEST_F(BadInput, EndOnAnotherThreadLeavesTheCaptureGoingOn) {
  s_->BeginCapture();
  std::thread([this] {
    GCAP_EXPECT_FAILS(gcap_capture_end(s_->capture, &s_->graph, &s_->retained), GCAP_FAILED_PRECONDITION, "thread");
  }).join();
  GCAP_EXPECT_OK(gcap_capture_end(s_->capture, &s_->graph, &s_->retained));

  GCAP_EXPECT_OK(Begin(StreamScene::kId, s_->Handle()));
  std::thread([this] { GCAP_EXPECT_FAILS(EndRun(), GCAP_FAILED_PRECONDITION, "another thread"); }).join();
  GCAP_EXPECT_CUDA(s_->job.Issue(s_->Handle()));
  GCAP_EXPECT_OK(EndRun());
}

TEST_F(BadInput, AKernelThatSynchronises) {
  const Outcome through_gcap = CaptureOf([this] { gcap_status_free(gcap_stream_synchronize(s_->stream)); });
  EXPECT_EQ(through_gcap.code, GCAP_CAPTURE_INVALIDATED);
  EXPECT_TRUE(through_gcap.Names("gcap_stream_synchronize")) << through_gcap.message;
  GCAP_EXPECT_OK(Begin(StreamScene::kId, s_->Handle()));  // the id cools down
  GCAP_EXPECT_OK(EndRun());
  const Outcome noted = CaptureOf([this] { gcap_status_free(GCAP_CUDA(cudaStreamSynchronize(s_->Handle()))); });
  EXPECT_EQ(noted.code, GCAP_CAPTURE_INVALIDATED);
  EXPECT_TRUE(noted.Names("cudaStreamSynchronize") && noted.Names("R11")) << noted.message;
}

TEST_F(BadInput, AKernelThatAllocates) {
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &allocator));
  const Outcome through_gcap = CaptureOf([allocator] {
    void* memory = nullptr;
    GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator, 12345, &memory), GCAP_FAILED_PRECONDITION, "captures");
  });
  EXPECT_EQ(through_gcap.code, GCAP_CAPTURE_INVALIDATED);
  EXPECT_TRUE(through_gcap.Names("12345")) << through_gcap.message;
  gcap_allocator_destroy(allocator);
  GCAP_EXPECT_OK(Begin(StreamScene::kId, s_->Handle()));  // the id cools down
  GCAP_EXPECT_OK(EndRun());
  const Outcome noted = CaptureOf([] {
    void* memory = nullptr;
    gcap_status_free(GCAP_CUDA(cudaMalloc(&memory, 64)));
  });
  EXPECT_EQ(noted.code, GCAP_CAPTURE_INVALIDATED);
  EXPECT_TRUE(noted.Names("cudaMalloc") && noted.Names("R26")) << noted.message;
}

TEST_F(BadInput, ReleaseOfAnUnknownId) {
  GCAP_EXPECT_FAILS(gcap_graph_manager_release(s_->manager, 7), GCAP_NOT_FOUND, "graph id 7");
  GCAP_EXPECT_FAILS(gcap_graph_manager_recapture(s_->manager, 7), GCAP_NOT_FOUND, "graph id 7");
}

TEST_F(BadInput, ReplayAfterTheStreamWasDestroyed) {
  s_->CaptureRun(StreamScene::kId);
  GCAP_EXPECT_OK(gcap_stream_destroy(s_->stream));
  s_->stream = nullptr;
  GCAP_EXPECT_FAILS(Replay(s_->manager, StreamScene::kId, true), GCAP_FAILED_PRECONDITION, "destroyed");
  GCAP_EXPECT_OK(gcap_graph_manager_release(s_->manager, StreamScene::kId));
}

TEST_F(BadInput, AnEpDestroyedInACapture) {
  gcap_options_t options;
  gcap_options_init(&options);
  gcap_runtime_t* runtime = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime));
  s_->BeginCapture();
  GCAP_EXPECT_FAILS(gcap_runtime_destroy(runtime), GCAP_FAILED_PRECONDITION, "gcap_runtime_destroy");
  gcap_capture_abort(s_->capture);
  gcap_run_resources_t resources;
  GCAP_EXPECT_OK(gcap_runtime_get_resources(runtime, &resources));
  GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
}

// Which NULL is refused by which name: null_test. The outputs are empty all the same.
TEST_F(BadInput, NullLeavesTheOutputsEmpty) {
  const gcap_model_t model = {};
  const gcap_node_t node = {};
  gcap_kernel_t kernel = {this, nullptr, [](void*) {}};
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

// A device that is lost answers nothing but its error, and what may be in use on it is kept; but everything ends.
TEST(LostDevice, EveryCallAnswersAndTheNextDeviceWorks) {
  for (const char* function :
       {"cudaGraphLaunch", "cudaStreamSynchronize", "cudaStreamBeginCapture", "cudaGraphInstantiateWithParams"}) {
    SCOPED_TRACE(function);
    LogCatcher log;
    auto scene = std::make_unique<StreamScene>();
    scene->CaptureRun(StreamScene::kId);
    gcap_sim_fault_t fault = {};
    fault.function = function;
    fault.nth = 1;
    fault.code = cudaErrorIllegalAddress;
    fault.sticky = 1;
    gcap_sim_inject(&fault);
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    Outcome first(BeginPlain(scene->manager, 5, scene->Handle(), &kind));
    if (first.ok()) first = Outcome(EndPlain(scene->manager, nullptr, true));
    const Outcome replay(Replay(scene->manager, StreamScene::kId, true));
    EXPECT_EQ(replay.code, GCAP_DEVICE_LOST) << replay.message;
    EXPECT_EQ(replay.cuda_error, cudaErrorIllegalAddress);
    const Outcome synchronised(gcap_stream_synchronize(scene->stream));
    EXPECT_EQ(synchronised.code, GCAP_DEVICE_LOST) << synchronised.message;
    const Outcome ended(scene->End());
    EXPECT_FALSE(ended.ok());
    EXPECT_TRUE(ended.Names("kept")) << ended.message;
    EXPECT_FALSE(gcap_thread_is_capturing());
    gcap_sim_clear_faults();
    scene.reset();
    StreamScene next;
    next.ExpectNextRunWorks();
    GCAP_EXPECT_OK(next.End());
  }
}

// Was: a message of 1 MB for 8,000 graphs, and the time to copy it 8,000 times.
TEST(LostDevice, ManyGraphsEndInAShortMessageThatCountsThem) {
  LogCatcher log;
  constexpr int kGraphs = 1000;
  StreamScene scene;
  for (int id = 0; id < kGraphs; ++id) scene.CaptureRun(id);
  gcap_sim_fault_t fault = {};
  fault.nth = 1;
  fault.code = cudaErrorIllegalAddress;
  fault.sticky = 1;
  gcap_sim_inject(&fault);
  const Outcome ended(scene.End());
  gcap_sim_clear_faults();
  EXPECT_FALSE(ended.ok());
  EXPECT_LT(ended.message.size(), 16384u);
  EXPECT_TRUE(ended.Names(" more failures, the last: ")) << ended.message;
}

}  // namespace
