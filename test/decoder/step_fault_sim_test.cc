// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// examples/decoder on the simulator: each CUDA call of some steps fails once.

#include "examples/decoder/step.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// Four steps of one sequence.
class Steps {
 public:
  Steps(const model_t* model, const sequence_t& asked, bool attends_in_holes = false)
      : model_(model), attends_in_holes_(attends_in_holes), sequence_(asked) {
    batch_.max_pages = CACHE_MAX_PAGES;
    batch_join(&batch_, &sequence_);
  }
  ~Steps() {
    if (cache_.scratch != nullptr) GCAP_EXPECT_OK(cache_destroy(&cache_));
    GCAP_EXPECT_OK(step_destroy(&step_));
  }

  // The first step, which is eager.
  gcap_status_t Start() {
    GCAP_RETURN_IF_ERROR(step_create(model_, attends_in_holes_, &step_));
    GCAP_RETURN_IF_ERROR(cache_create(&step_.resources, &cache_));
    return Step();
  }
  // A captured step, a replay, and a replay on a pool that has moved.
  gcap_status_t Continue() {
    GCAP_RETURN_IF_ERROR(Step());
    GCAP_RETURN_IF_ERROR(Step());
    GCAP_RETURN_IF_ERROR(cache_move(&cache_));
    GCAP_RETURN_IF_ERROR(Step());
    return step_drain(&step_);
  }

  std::vector<int> tokens() const {
    return std::vector<int>(sequence_.tokens, sequence_.tokens + sequence_.num_tokens);
  }

 private:
  gcap_status_t Step() {
    GCAP_RETURN_IF_ERROR(cache_cover(&cache_, &sequence_));
    GCAP_RETURN_IF_ERROR(step_run(&step_, &batch_, &cache_));
    ++sequence_.position;
    return nullptr;
  }

  const model_t* const model_;
  const bool attends_in_holes_;
  sequence_t sequence_;
  batch_t batch_ = {};
  step_t step_ = {};
  cache_t cache_ = {};
};

// A model, and what its steps give where nothing fails.
class StepFaultSim : public DeviceTest {
 public:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    gcap_options_t options;
    gcap_options_init(&options);
    options.enable_cuda_graph = true;
    options.graph.min_num_runs_before_capture = 1;
    GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime_));
    GCAP_ASSERT_OK(model_create(runtime_, /*seed=*/1, kStepBuckets, STEP_NUM_BUCKETS, &model_));
    sequence_draw(/*seed=*/1, /*number=*/0, &asked_);
    asked_.num_prompt = 1;  // each step gives a token
    Steps calm(model_, asked_);
    GCAP_ASSERT_OK(calm.Start());
    GCAP_ASSERT_OK(calm.Continue());
    tokens_ = calm.tokens();
    ASSERT_EQ(tokens_.size(), 4u);
  }
  void TearDown() override {
    GCAP_EXPECT_OK(model_destroy(model_));
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime_));
  }

 protected:
  Walked WalkGraph(bool attends_in_holes) {
    return WalkFaults([&](Fault& fault) {
      Steps steps(model_, asked_, attends_in_holes);
      GCAP_EXPECT_OK(steps.Start());
      const Outcome outcome = fault.During([&] { return steps.Continue(); });
      EXPECT_TRUE(outcome.ok() || fault.ComesFirst(outcome)) << fault.function() << ": " << outcome.message;
      if (!outcome.ok()) return;
      EXPECT_EQ(steps.tokens(), tokens_) << fault.function();
    });
  }

  const LogCatcher log_;
  gcap_runtime_t* runtime_ = nullptr;
  model_t* model_ = nullptr;
  sequence_t asked_;
  std::vector<int> tokens_;
};

// Who is told of a failure knows the call. What is left behind is checked by the walk.
TEST_F(StepFaultSim, EachCallOfAnEagerStepFailsOnce) {
  const Walked walked = WalkFaults([&](Fault& fault) {
    Steps steps(model_, asked_);
    const Outcome outcome = fault.During([&] { return steps.Start(); });
    EXPECT_TRUE(outcome.ok() || fault.ComesFirst(outcome)) << fault.function() << ": " << outcome.message;
    EXPECT_EQ(outcome.ok(), !fault.hit()) << fault.function();
  });
  EXPECT_TRUE(walked.functions.count("cudaLaunchKernel"));
}

// A failed capture is followed by an eager run, so the steps give the right tokens, or say which call failed.
TEST_F(StepFaultSim, EachCallOfAGraphFailsOnce) {
  const Walked walked = WalkGraph(/*attends_in_holes=*/false);
  EXPECT_TRUE(walked.functions.count("cudaGraphLaunch"));
  EXPECT_TRUE(walked.functions.count("cudaGraphInstantiateWithParams"));
}

// Here also the calls of a replay that come behind its first launch fail.
TEST_F(StepFaultSim, EachCallOfAGraphWithHolesFailsOnce) {
  const Walked walked = WalkGraph(/*attends_in_holes=*/true);
  EXPECT_TRUE(walked.functions.count("cudaGraphLaunch"));
  EXPECT_TRUE(walked.functions.count("cudaLaunchKernel"));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
