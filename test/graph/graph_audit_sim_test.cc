// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Audits when host memory is short, and when the driver does not answer.

#include <string>

#include "gcap/allocator.h"
#include "gcap/graph_buffers.h"
#include "gcap/scratch.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/graph/audit_test.h"
#include "test/support/faults.h"

namespace gcap {
namespace testing {
namespace {

class AuditFaults : public AuditTest {
 protected:
  void SetUp() override {
    AuditTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(gcap_device_allocator_create(0, &allocator_));
    GCAP_ASSERT_OK(gcap_scratch_create(allocator_, nullptr, &scratch_));
    GCAP_ASSERT_OK(gcap_stream_wrap(stream_->get(), GCAP_STREAM_EXTERNAL, 0, 0, &wrapped_));
    GCAP_ASSERT_OK(gcap_scratch_alloc(scratch_, kAuditBytes, wrapped_, &block_));
  }
  void TearDown() override {
    if (IsSkipped()) return;
    DestroyManager();
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block_));
    GCAP_EXPECT_OK(gcap_stream_synchronize(wrapped_));
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    GCAP_EXPECT_OK(gcap_stream_destroy(wrapped_));
    gcap_allocator_destroy(allocator_);
    AuditTest::TearDown();
  }
  void CaptureOfBlock() {
    Capture(0, [&](cudaStream_t stream) { return Copy(stream, output_.get(), block_); });
  }

  const DeviceMemory output_;
  gcap_allocator_t* allocator_ = nullptr;
  gcap_scratch_t* scratch_ = nullptr;
  gcap_stream_t* wrapped_ = nullptr;
  void* block_ = nullptr;
};

TEST_F(AuditFaults, EachHeapCallOfNotesFailsAndSaysSo) {
  const cudaStream_t stream = stream_->get();
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  GCAP_EXPECT_OK(Copy(stream, output_.get(), block_));
  GCAP_EXPECT_OK(Relu(stream, block_, output_.get()));
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream, &graph));
  bool any_watch_failed = false;
  for (int skip = 0, hits = 1; hits > 0; ++skip) {
    ASSERT_LT(skip, 100);
    gcap_graph_notes_t* notes = nullptr;
    gcap_status_t status = nullptr;
    {
      const HeapFailure no_memory(1, skip);
      status = gcap_graph_notes_create(graph, nullptr, nullptr, &notes);
      hits = no_memory.hits();
    }
    const Outcome outcome(status);
    EXPECT_EQ(outcome.code, hits > 0 ? GCAP_RESOURCE_EXHAUSTED : GCAP_OK) << outcome.message;
    EXPECT_EQ(notes == nullptr, hits > 0);
    any_watch_failed |= outcome.Names("to watch a block of scratch");
    gcap_graph_notes_destroy(notes);
  }
  EXPECT_TRUE(any_watch_failed);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(AuditFaults, AnAuditWithoutHostMemorySaysSo) {
  Create(GCAP_GRAPH_AUDIT_EACH_REPLAY);
  CaptureOfBlock();
  const auto ignore = [](void*, const gcap_graph_pointer_t*) {};
  Outcome outcome(nullptr);
  {
    const HeapFailure no_memory(1);
    outcome = Outcome(gcap_graph_manager_audit(manager_, 0, ignore, nullptr, nullptr));
    EXPECT_EQ(no_memory.hits(), 1);
  }
  EXPECT_EQ(outcome.code, GCAP_RESOURCE_EXHAUSTED) << outcome.message;
  EXPECT_EQ(Findings(0), 0u);
}

TEST_F(AuditFaults, AReplayWhoseAuditFailsIsNotLaunched) {
  Create(GCAP_GRAPH_AUDIT_EACH_REPLAY);
  CaptureOfBlock();
  const uint64_t replays = Info(0).replays;
  Fault fault(1);
  const Outcome outcome = fault.During([&] { return ::Replay(manager_, 0, false); });
  EXPECT_TRUE(fault.Is("cuPointerGetAttributes")) << fault.function();
  EXPECT_TRUE(fault.Explains(outcome)) << outcome.message;
  EXPECT_EQ(Info(0).replays, replays);
  EXPECT_TRUE(Replay(0).ok());
}

// The executable has moved, and nobody knows whose memory it has now: it does not replay.
TEST_F(AuditFaults, ABindWhoseNotesFailIsCapturedAgain) {
  const DeviceMemory first, second;
  const Walked walked = WalkFaults([&](Fault& fault) {
    Create(GCAP_GRAPH_AUDIT_EACH_REPLAY);
    CaptureOn(0, first.get(), output_.get());
    const Outcome outcome = fault.During([&] { return gcap_graph_manager_bind(manager_, 0, 0, second.get()); });
    EXPECT_EQ(outcome.ok(), !fault.hit()) << outcome.message;
    if (outcome.Names("its next run is captured again")) {
      EXPECT_EQ(State(0), "STALE");
    } else {
      EXPECT_TRUE(Replay(0).ok());
    }
    CaptureOn(0, second.get(), output_.get());
    EXPECT_TRUE(Replay(0).ok());
    DestroyManager();
  });
  EXPECT_EQ(walked.functions.count("cuPointerGetAttributes"), 1u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
