// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Steps of captures in which a question fails, or in which there is no host memory.

#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "lib/capture/inner.h"
#include "lib/capture/steps.h"
#include "test/base/device_work.h"
#include "test/base/heap_failure.h"
#include "test/capture/scope_test.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"

namespace gcap {
namespace testing {
namespace {

class StepsSim : public ScopeTest {};

TEST_F(StepsSim, EachCallThatFailsFailsTheCapture) {
  const RawStream stream;
  CopyJob job;
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_capture_steps_t steps = {};
    cudaGraph_t graph = nullptr, first = nullptr;
    gcap_retained_t* retained = nullptr;
    gcap_capture_t* capture = Begin(stream.get(), /*ledger_calls=*/0);
    gcap_capture_keep_steps(capture, &steps);
    fault.Arm();
    gcap_status_ignore(GCAP_CUDA(job.Issue(stream.get())));  // the latch has it
    gcap_status_ignore(gcap_capture_split(capture, "a hole", &first));
    gcap_status_ignore(GCAP_CUDA(job.Issue(stream.get())));
    const Outcome outcome(gcap_capture_end(capture, &graph, &retained));
    fault.Disarm();
    EXPECT_EQ(outcome.ok(), !fault.hit()) << fault.function();
    EXPECT_EQ(outcome.ok(), graph != nullptr);
    if (outcome.ok()) {
      EXPECT_EQ(steps.count, 3u);
    }
    for (const cudaGraph_t left : {graph, first}) {
      if (left == nullptr) continue;
      GCAP_EXPECT_CUDA(cudaGraphDestroy(left));
    }
    gcap_capture_steps_free(&steps);
  });
  EXPECT_EQ(walked.functions.count("cudaGraphGetNodes"), 1u);
  EXPECT_EQ(walked.functions.count("cudaStreamGetCaptureInfo"), 1u);
}

TEST_F(StepsSim, WithoutMemoryTheTableEndsAndTheCaptureGoesOn) {
  const RawStream stream;
  CopyJob job;
  gcap_capture_steps_t steps = {};
  gcap_capture_t* capture = Begin(stream.get());
  gcap_capture_keep_steps(capture, &steps);
  GCAP_EXPECT_CUDA(job.Issue(stream.get()));
  {
    const HeapFailure failure(/*count=*/1, /*skip=*/2);  // the simulator's answer takes them
    gcap_capture_note("without memory", stream.get(), "work.cc", 1);
    EXPECT_EQ(failure.hits(), 1);
  }
  gcap_capture_note("with memory again", stream.get(), "work.cc", 2);
  EXPECT_TRUE(End(capture).ok());
  EXPECT_TRUE(steps.is_cut);
  EXPECT_EQ(steps.count, 0u);
  gcap_capture_steps_t copy = {};
  {
    const HeapFailure failure(/*count=*/2);
    EXPECT_EQ(Outcome(gcap_capture_steps_copy(&steps, &copy)).code, GCAP_RESOURCE_EXHAUSTED);
  }
  EXPECT_EQ(copy.items, nullptr);
  gcap_capture_steps_free(&steps);
}

// A list that lacks a block says so from then on, though there is memory again.
TEST_F(StepsSim, BlocksWithoutMemoryOrBeyondTheMaximumCutTheSteps) {
  for (const bool without_memory : {true, false}) {
    gcap_capture_steps_t steps = {};
    size_t added = 0;
    while (!without_memory && added < GCAP_CAPTURE_MAX_STEPS) {
      ASSERT_TRUE(gcap_capture_steps_add_block(&steps, &steps, ++added));
    }
    EXPECT_FALSE(steps.is_cut);
    {
      const HeapFailure failure(without_memory ? 1 : 0);
      EXPECT_FALSE(gcap_capture_steps_add_block(&steps, &steps, added + 1));
      EXPECT_EQ(failure.hits(), without_memory ? 1 : 0);
    }
    EXPECT_TRUE(steps.is_cut);
    EXPECT_FALSE(gcap_capture_steps_add_block(&steps, &steps, added + 2));
    EXPECT_EQ(steps.num_blocks, added);
    gcap_capture_steps_free(&steps);
    EXPECT_EQ(steps.num_blocks, 0u);
    EXPECT_FALSE(steps.is_cut);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
