// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Work that keeps something in scratch, which is elsewhere in the graph and in each eager run: what is wrong there
// first is found there, and what scratch has without being written counts for nothing.

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/graph/own_scratch.h"
#include "test/graph/verify_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class GraphBisectScratch : public VerifyTest {
 protected:
  static constexpr size_t kBlockBytes = kFloatsBytes + 512;  // more than is written

  void SetUp() override {
    VerifyTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    verify_.bisect = true;
    scratch_ = std::make_unique<OwnScratch>(stream_->get());
    named_ = {Named("x", x_), Named("y", y_)};
  }
  void TearDown() override {
    if (IsSkipped()) return;
    DestroyManager();
    scratch_.reset();
    VerifyTest::TearDown();
  }

  struct Block : OwnScratch::Block {
    explicit Block(const OwnScratch& scratch, size_t bytes = kBlockBytes) : OwnScratch::Block(scratch, bytes) {}
  };

  // What scratch has is another one at each address.
  void Scribble() const {
    std::vector<float> all(OwnScratch::kBytes / sizeof(float));
    std::iota(all.begin(), all.end(), 100.0f);
    const Block whole(*scratch_, OwnScratch::kBytes);
    GCAP_EXPECT_CUDA(
        cudaMemcpyAsync(whole.memory, all.data(), OwnScratch::kBytes, cudaMemcpyHostToDevice, stream_->get()));
    stream_->Synchronize();
  }
  // Captures the work, and then has it be another one.
  void Capture(const WorkWith& work) {
    Scribble();
    CreateManager();
    const Outcome run = RunVerified(work);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
    x_.Fill(1);
    is_later_ = true;
  }
  Outcome ExpectFound(const WorkWith& work, size_t step, gcap_graph_fault_t fault) {
    const Outcome run = RunVerified(work);
    EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
    EXPECT_EQ(report_.step, step) << run.message;
    EXPECT_EQ(report_.fault, fault) << run.message;
    return run;
  }

  gcap_status_t Pass(const gcap_run_resources_t* r, const void* from, void* to, uint64_t addend) const {
    return AddTo(r->cuda_stream, from, to, addend);
  }

  std::unique_ptr<OwnScratch> scratch_;
  const Floats x_{1}, y_;
  bool is_later_ = false;
  const LogCatcher log_;
};

// The call writes scratch alone, and what is wrong comes into a buffer three steps later.
TEST_F(GraphBisectScratch, ADroppedCallThatWritesScratchAloneIsFound) {
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    const Block a(*scratch_), b(*scratch_);
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), a.memory, 1));
    if (!gcap_thread_is_capturing()) GCAP_RETURN_IF_ERROR(Pass(r, a.memory, a.memory, 10));
    GCAP_RETURN_IF_ERROR(Pass(r, a.memory, b.memory, 2));
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), x_.get(), 3));
    return Pass(r, b.memory, y_.get(), 4);
  };
  Capture(work);
  const Outcome run = ExpectFound(work, 1, GCAP_GRAPH_FAULT_DROPPED_CALL);
  EXPECT_TRUE(run.Names("scratch of 768 bytes, asked for before the first step, differs first in byte")) << run.message;
  EXPECT_LE(report_.replays, 5u);
  EXPECT_FALSE(report_.is_linear);
  EXPECT_EQ(report_.step_buffer, SIZE_MAX);
  EXPECT_EQ(y_.value(), 1 + 1 + 10 + 2 + 4) << "what the work left";
}

TEST_F(GraphBisectScratch, AFrozenValueThatGoesToScratchIsFoundAtItsStep) {
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    const Block a(*scratch_), b(*scratch_);
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), a.memory, 1));
    GCAP_RETURN_IF_ERROR(Pass(r, a.memory, b.memory, is_later_ ? 7 : 6));
    GCAP_RETURN_IF_ERROR(Pass(r, b.memory, a.memory, 2));
    return Pass(r, a.memory, y_.get(), 4);
  };
  Capture(work);
  ExpectFound(work, 1, GCAP_GRAPH_FAULT_FROZEN_VALUE);
  EXPECT_EQ(report_.node, 1u);
  EXPECT_EQ(y_.value(), 1 + 1 + 7 + 2 + 4);
}

TEST_F(GraphBisectScratch, WorkOutsideOfTheCaptureThatWritesScratchIsFound) {
  const RawStream outside;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    const Block a(*scratch_);
    const bool captures = gcap_thread_is_capturing();
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), a.memory, 1));
    if (!captures) {
      GCAP_EXPECT_CUDA(cudaStreamSynchronize(r->cuda_stream));
    }
    GCAP_RETURN_IF_ERROR(AddTo(outside.get(), x_.get(), a.memory, 20));
    if (!captures) outside.Synchronize();
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), x_.get(), 3));
    return Pass(r, a.memory, y_.get(), 4);
  };
  Capture(work);
  outside.Synchronize();
  ExpectFound(work, 1, GCAP_GRAPH_FAULT_OUTSIDE_OF_CAPTURE);
}

// The memory of one block is the next one's, in the graph and in an eager run alike, but not the same memory.
TEST_F(GraphBisectScratch, MemoryThatIsHandedOutTwiceIsComparedAsTwoBlocks) {
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), x_.get(), 1));
    for (uint64_t i = 0; i < 6; ++i) {
      const Block a(*scratch_, kBlockBytes + 256 * (i % 3));
      GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), a.memory, i));
      if (i == 4 && !gcap_thread_is_capturing()) GCAP_RETURN_IF_ERROR(Pass(r, a.memory, a.memory, 50));
      GCAP_RETURN_IF_ERROR(Pass(r, y_.get(), y_.get(), 1));
      GCAP_RETURN_IF_ERROR(Pass(r, a.memory, x_.get(), 1));
    }
    return nullptr;
  };
  Capture(work);
  ExpectFound(work, 1 + 4 * 3 + 1, GCAP_GRAPH_FAULT_DROPPED_CALL);
}

// An address of scratch in scratch is another one in the graph, and right.
TEST_F(GraphBisectScratch, AddressesOfScratchInScratchDoNotDiffer) {
  struct Copied {
    void* memory;
  };
  static Copied copied;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    const Block table(*scratch_), a(*scratch_);
    copied.memory = a.memory;
    GCAP_RETURN_IF_ERROR(
        GCAP_CUDA(cudaMemcpyAsync(table.memory, &copied, sizeof(copied), cudaMemcpyHostToDevice, r->cuda_stream)));
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), a.memory, 1));
    GCAP_RETURN_IF_ERROR(Pass(r, a.memory, a.memory, is_later_ ? 7 : 6));
    return Pass(r, a.memory, y_.get(), 4);
  };
  // The graph has a copy from the host, whose source is what the last issue of the work left there.
  Capture(work);
  void* of_graph = copied.memory;
  const WorkWith later = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    gcap_status_t status = work(r);
    GCAP_EXPECT_CUDA(gcap_thread_is_capturing() ? cudaSuccess : cudaStreamSynchronize(r->cuda_stream));
    copied.memory = of_graph;
    return status;
  };
  ExpectFound(later, 2, GCAP_GRAPH_FAULT_FROZEN_VALUE);
  EXPECT_LE(report_.replays, 4u) << "the table of addresses was found to differ";
}

// What nobody writes differs in a sound graph, and hides nothing: it is what was there before the graph, or what an
// earlier block left there.
TEST_F(GraphBisectScratch, WhatNobodyWritesDoesNotDiffer) {
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    {
      const Block before(*scratch_);
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(before.memory, 0x5a, kBlockBytes, r->cuda_stream)));
    }
    const Block unused(*scratch_, 4096), a(*scratch_), b(*scratch_);
    // Both copy what nobody wrote, and one computes with it.
    GCAP_RETURN_IF_ERROR(
        GCAP_CUDA(cudaMemcpyAsync(b.memory, a.memory, kBlockBytes, cudaMemcpyDeviceToDevice, r->cuda_stream)));
    GCAP_RETURN_IF_ERROR(Pass(r, b.memory, b.memory, 1));
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), a.memory, 1));
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), x_.get(), is_later_ ? 7 : 6));
    return Pass(r, a.memory, y_.get(), 4);
  };
  Capture(work);
  ExpectFound(work, 4, GCAP_GRAPH_FAULT_FROZEN_VALUE);
  EXPECT_EQ(report_.step_buffer, 0u);
  EXPECT_LE(report_.replays, 5u) << "what nobody wrote was found to differ";
}

// Work that does not do the same twice in scratch: the difference has no cause, and the one in a buffer is found.
TEST_F(GraphBisectScratch, ScratchThatIsAnotherOneEachTimeHidesNothing) {
  static float stamp;
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    const Block a(*scratch_);
    stamp = gcap_thread_is_capturing() ? 5.0f : 6.0f;
    GCAP_RETURN_IF_ERROR(
        GCAP_CUDA(cudaMemcpyAsync(a.memory, &stamp, sizeof(stamp), cudaMemcpyHostToDevice, r->cuda_stream)));
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), x_.get(), 1));
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), y_.get(), is_later_ ? 7 : 6));
    gcap_status_t status = Pass(r, x_.get(), x_.get(), 4);
    GCAP_EXPECT_CUDA(gcap_thread_is_capturing() ? cudaSuccess : cudaStreamSynchronize(r->cuda_stream));
    stamp = 5.0f;
    return status;
  };
  Capture(work);
  ExpectFound(work, 2, GCAP_GRAPH_FAULT_FROZEN_VALUE);
  EXPECT_EQ(report_.step_buffer, 1u);
}

// A kernel reads scratch that nobody has written.
TEST_F(GraphBisectScratch, AReadOfScratchThatNobodyWroteIsFound) {
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    const Block a(*scratch_), b(*scratch_);
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), a.memory, 1));
    GCAP_RETURN_IF_ERROR(Pass(r, b.memory, y_.get(), 2));
    return Pass(r, a.memory, x_.get(), 4);
  };
  Capture(work);
  const Outcome run = ExpectFound(work, 1, GCAP_GRAPH_FAULT_UNINITIALIZED);
  EXPECT_TRUE(run.Names("argument 0 leads to memory")) << run.message;
}

// The copy's source is another block of scratch in a fresh capture, which is right.
TEST_F(GraphBisectScratch, ACopyOfScratchThatNobodyWroteIsFound) {
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    const Block a(*scratch_), b(*scratch_);
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), a.memory, 1));
    GCAP_RETURN_IF_ERROR(
        GCAP_CUDA(cudaMemcpyAsync(y_.get(), b.memory, kFloatsBytes, cudaMemcpyDeviceToDevice, r->cuda_stream)));
    return Pass(r, a.memory, x_.get(), 4);
  };
  Capture(work);
  ExpectFound(work, 1, GCAP_GRAPH_FAULT_UNINITIALIZED);
}

// Two branches read one block, which is right; the fault is elsewhere.
TEST_F(GraphBisectScratch, BranchesThatReadOneBlockLackNoJoin) {
  const RawStream other;
  cudaEvent_t event = nullptr;
  GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const auto wait = [&](cudaStream_t from, cudaStream_t to) {
    GCAP_EXPECT_CUDA(cudaEventRecord(event, from));
    GCAP_EXPECT_CUDA(cudaStreamWaitEvent(to, event, 0));
  };
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    const Block a(*scratch_), b(*scratch_), c(*scratch_), unread(*scratch_);
    GCAP_RETURN_IF_ERROR(Pass(r, x_.get(), a.memory, 1));
    wait(r->cuda_stream, other.get());
    GCAP_RETURN_IF_ERROR(AddTo(other.get(), a.memory, b.memory, 2));
    GCAP_RETURN_IF_ERROR(Pass(r, a.memory, c.memory, 3));
    GCAP_RETURN_IF_ERROR(Pass(r, unread.memory, y_.get(), 3));
    wait(other.get(), r->cuda_stream);
    return Pass(r, b.memory, x_.get(), 4);
  };
  Capture(work);
  ExpectFound(work, 3, GCAP_GRAPH_FAULT_UNINITIALIZED);
  DestroyManager();
  GCAP_EXPECT_CUDA(cudaEventDestroy(event));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
