// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs that may not be executed, and warm-ups of them, while each CUDA call and each allocation fails once: whatever
// fails, the device does nothing of the work, and the next warm-up ends in graphs.

#include <memory>
#include <vector>

#include "gcap/capture.h"
#include "gcap/graph.h"
#include "test/base/heap_failure.h"
#include "test/graph/manager_test.h"
#include "test/support/faults.h"

namespace gcap {
namespace testing {
namespace {

class WarmUpFaults : public ManagerTest {
 protected:
  static constexpr int kNotRun = -1;  // the output of a job that was never executed

  void SetUp() override {
    ManagerTest::SetUp();
    job_ = std::make_unique<CopyJob>();
    job_->set_input(42);
    for (const int id : {1, 2}) {
      runs_.push_back(RunOf(id, stream_->get(), /*synchronize=*/true));
      runs_.back().work = [](void* job, const gcap_run_resources_t* resources) {
        return GCAP_CUDA(static_cast<CopyJob*>(job)->Issue(resources->cuda_stream));
      };
      runs_.back().user = job_.get();
      runs_.back().capture_only = true;
    }
  }
  void TearDown() override {
    ManagerTest::TearDown();
    job_.reset();
  }

  void Destroy() {
    GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
    manager_ = nullptr;
  }
  gcap_status_t WarmUp() { return gcap_graph_manager_warm_up(manager_, runs_.data(), runs_.size(), nullptr, nullptr); }
  void ExpectNothingWasExecuted() {
    stream_->Synchronize();
    EXPECT_EQ(job_->output(), kNotRun);
  }
  void ExpectWarm() {
    GCAP_EXPECT_OK(WarmUp());
    for (const gcap_run_t& run : runs_) EXPECT_TRUE(gcap_graph_manager_is_captured(manager_, run.id)) << run.id;
    ExpectNothingWasExecuted();
  }

  std::unique_ptr<CopyJob> job_;
  std::vector<gcap_run_t> runs_;
};

TEST_F(WarmUpFaults, OfCudaExecuteNothing) {
  const Walked walked = WalkFaults([this](Fault& fault) {
    Create(2);
    const Outcome outcome = fault.During([this] { return WarmUp(); });
    EXPECT_TRUE(outcome.ok() || outcome.Names("the warm-up of graph id ")) << outcome.message;
    ExpectNothingWasExecuted();
    ExpectWarm();
    Destroy();
  });
  EXPECT_EQ(walked.functions.count("cudaStreamBeginCapture"), 1u) << "a refused capture becomes no eager run";
  EXPECT_EQ(walked.functions.count("cudaGraphUpload"), 1u);
  EXPECT_EQ(walked.functions.count("cudaGraphLaunch"), 0u);
}

// The heap is empty from the end of the capture on: no message can be made, and the code is what the run goes by.
TEST_F(WarmUpFaults, OfTheHeapExecuteNothing) {
  struct Scene {
    CopyJob* job;
    std::unique_ptr<HeapFailure> heap;
    int issued = 0;
  } scene = {job_.get(), nullptr};
  runs_[0].user = &scene;
  runs_[0].work = [](void* user, const gcap_run_resources_t* resources) -> gcap_status_t {
    Scene* self = static_cast<Scene*>(user);
    ++self->issued;
    const auto empty = [](void* heap, bool) {
      static_cast<std::unique_ptr<HeapFailure>*>(heap)->reset(new HeapFailure(1000));
    };
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(self->job->Issue(resources->cuda_stream)));
    if (self->issued > 1) return nullptr;
    GCAP_RETURN_IF_ERROR(gcap_capture_on_close(gcap_capture_current(), empty, &self->heap));
    return GCAP_STATUS(GCAP_UNAVAILABLE, "not now");
  };
  Create(2);
  gcap_status_t status = gcap_graph_manager_run(manager_, &runs_[0]);
  EXPECT_GT(scene.heap->hits(), 1);
  scene.heap.reset();
  EXPECT_EQ(Outcome(status).code, GCAP_CAPTURE_INVALIDATED);
  EXPECT_EQ(scene.issued, 1);
  ExpectNothingWasExecuted();
  ExpectWarm();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
