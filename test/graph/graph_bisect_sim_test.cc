// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The search under faults: whichever CUDA call fails, the run says that its replay differs or why it failed, the
// buffers have what the work left, and nothing leaks. The simulator stops without host memory, so that is not tried
// here.

#include <memory>
#include <stdexcept>
#include <string>

#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/graph/own_scratch.h"
#include "test/graph/verify_test.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class GraphBisectFaults : public VerifyTest {
 protected:
  static constexpr float kLeft = 10 + 1 + 7 + 2;  // what the work leaves of 10

  void SetUp() override {
    VerifyTest::SetUp();
    verify_.bisect = true;
  }
  // x += 1, the hole, x += addend_, x += 2.
  WorkWith Work(bool has_hole) {
    return [this, has_hole](const gcap_run_resources_t* r) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(Add(r, x_->get(), 1));
      if (has_hole) GCAP_RETURN_IF_ERROR(hole_.Issue(r));
      GCAP_RETURN_IF_ERROR(Add(r, x_->get(), addend_));
      return Add(r, x_->get(), 2);
    };
  }
  // The same by way of scratch, of which what is wrong is found first.
  WorkWith WorkInScratch() {
    return [this](const gcap_run_resources_t* r) -> gcap_status_t {
      const OwnScratch::Block block(*scratch_, 2 * kFloatsBytes);
      if (block.memory == nullptr) return GCAP_STATUS(GCAP_UNAVAILABLE, "no scratch");
      GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, x_->get(), block.memory, 1));
      GCAP_RETURN_IF_ERROR(AddTo(r->cuda_stream, block.memory, block.memory, addend_));
      return AddTo(r->cuda_stream, block.memory, x_->get(), 2);
    };
  }
  void Capture(const WorkWith& work) {
    addend_ = 3;
    CreateManager();
    x_ = std::make_unique<Floats>(10.0f);
    named_ = {Named("x", *x_)};
    GCAP_EXPECT_OK(RunRaw(work));
    ASSERT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
    x_->Fill(10);
    addend_ = 7;
  }
  // Where each call fails, a capture's end does too.
  void EndCaptureThatCouldNotEnd() const {
    if (stream_->CaptureStatus() == cudaStreamCaptureStatusNone) return;
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(stream_->get(), &graph) == cudaSuccess) {
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    }
    (void)cudaGetLastError();
  }
  void End() {
    DestroyManager();
    x_.reset();
    scratch_.reset();
  }
  Walked Walk(bool has_hole, Reach reach, bool has_scratch = false) {
    return WalkFaults(
        [&](Fault& fault) {
          const LogCatcher log;
          if (has_scratch) scratch_ = std::make_unique<OwnScratch>(stream_->get());
          const WorkWith work = has_scratch ? WorkInScratch() : Work(has_hole);
          Capture(work);
          const Outcome outcome = fault.During([&] { return RunRaw(work); });
          EndCaptureThatCouldNotEnd();
          GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
          EXPECT_FALSE(outcome.ok()) << fault.function();
          if (outcome.code == GCAP_REPLAY_DIFFERS) {
            EXPECT_NE(State(kId), "CAPTURED");
            if (reach == Reach::kOneCall && !outcome.Names("then: ")) {
              EXPECT_EQ(x_->value(), kLeft) << fault.function() << ": " << outcome.message;
            }
            if (!fault.hit()) {
              EXPECT_EQ(report_.step, has_hole ? 2u : 1u) << outcome.message;
              EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_FROZEN_VALUE);
            }
          } else {
            EXPECT_TRUE(fault.ComesFirst(outcome)) << fault.function() << ": " << outcome.message;
          }
          End();
        },
        reach);
  }

  std::unique_ptr<Floats> x_;
  std::unique_ptr<OwnScratch> scratch_;
  uint64_t addend_ = 3;
  Hole hole_;
};

TEST_F(GraphBisectFaults, EachCallMayFail) {
  const Walked walked = Walk(false, Reach::kOneCall);
  for (const char* function : {"cudaDeviceSynchronize", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaStreamBeginCapture",
                               "cudaStreamEndCapture", "cudaGraphClone"}) {
    EXPECT_EQ(walked.functions.count(function), 1u) << function;
  }
}
TEST_F(GraphBisectFaults, WithAHoleEachCallMayFail) { Walk(true, Reach::kOneCall); }
TEST_F(GraphBisectFaults, WithScratchEachCallMayFail) {
  const Walked walked = Walk(false, Reach::kOneCall, /*has_scratch=*/true);
  EXPECT_EQ(walked.functions.count("cudaMemsetAsync"), 1u) << "scratch was not filled";
}
TEST_F(GraphBisectFaults, AllLaterCallsMayFailToo) { Walk(false, Reach::kAllAfter); }

// The difference is told whatever the search lacks. The simulator stops without memory, so the blocks that fail are
// those of gcap's own code: the walk ends with the first that no call of gcap hits.
TEST_F(GraphBisectFaults, WorkThatDoesNotReturnLeavesNothingBehind) {
  const LogCatcher log;
  int calls = 0, throws_at = 0;
  for (throws_at = 1; throws_at < 9; ++throws_at) {
    calls = 0;
    bool is_armed = false;
    const WorkWith plain = Work(false);
    const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
      if (is_armed && ++calls == throws_at) throw std::runtime_error("thrown by the work");
      return plain(r);
    };
    Capture(work);
    is_armed = true;
    bool has_thrown = false;
    try {
      GCAP_EXPECT_FAILS(RunRaw(work), GCAP_REPLAY_DIFFERS, "graph id 3");
    } catch (const std::runtime_error&) {
      has_thrown = true;
    }
    EXPECT_EQ(has_thrown, calls >= throws_at);
    EXPECT_FALSE(gcap_thread_is_capturing());
    End();
    if (!has_thrown) break;
  }
  EXPECT_GT(throws_at, 4) << "the eager run, the capture, and at least three looks";
}

// A callback that fails ends the search, and not the report of the difference.
TEST_F(GraphBisectFaults, ARestoreThatFailsEndsTheSearch) {
  const LogCatcher log;
  const WorkWith work = Work(false);
  Capture(work);
  struct Restored {
    int calls = 0;
  } restored;
  verify_.user = &restored;
  verify_.restore = [](void* user, cudaStream_t) {
    return ++static_cast<Restored*>(user)->calls == 4 ? GCAP_STATUS(GCAP_UNAVAILABLE, "as told") : nullptr;
  };
  const Outcome run = RunVerified(work);
  EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS");
  EXPECT_TRUE(run.Names("the search for the first step that differs failed: as told")) << run.message;
  EXPECT_EQ(report_.step, SIZE_MAX);
  EXPECT_EQ(x_->value(), kLeft);
  End();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
