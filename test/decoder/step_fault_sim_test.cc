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

class StepFaultSim : public DeviceTest {};

// Four steps of one sequence: an eager one, a captured one, a replay, and a replay on a pool that has moved.
class Steps {
 public:
  Steps(const model_t* model, const sequence_t& asked) : model_(model), sequence_(asked) {
    batch_.max_pages = CACHE_MAX_PAGES;
    batch_join(&batch_, &sequence_);
  }
  ~Steps() {
    if (cache_.scratch != nullptr) GCAP_EXPECT_OK(cache_destroy(&cache_));
    GCAP_EXPECT_OK(step_destroy(&step_));
  }

  gcap_status_t Run() {
    GCAP_RETURN_IF_ERROR(step_create(model_, &step_));
    GCAP_RETURN_IF_ERROR(cache_create(&step_.resources, &cache_));
    for (int i = 0; i < 4; ++i, ++sequence_.position) {
      GCAP_RETURN_IF_ERROR(i == 3 ? cache_move(&cache_) : cache_cover(&cache_, &sequence_));
      GCAP_RETURN_IF_ERROR(step_run(&step_, &batch_, &cache_));
    }
    return step_drain(&step_);
  }

  std::vector<int> tokens() const {
    return std::vector<int>(sequence_.tokens, sequence_.tokens + sequence_.num_tokens);
  }

 private:
  const model_t* const model_;
  sequence_t sequence_;
  batch_t batch_ = {};
  step_t step_ = {};
  cache_t cache_ = {};
};

// The steps give the right tokens, or say which call failed. What is left is checked by the walk.
TEST_F(StepFaultSim, EachCallFailsOnce) {
  const LogCatcher log;
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  options.graph.min_num_runs_before_capture = 1;
  gcap_runtime_t* runtime = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime));
  model_t* model = nullptr;
  GCAP_ASSERT_OK(model_create(runtime, /*seed=*/1, kStepBuckets, STEP_NUM_BUCKETS, &model));
  sequence_t asked;
  sequence_draw(/*seed=*/1, /*number=*/0, &asked);
  asked.num_prompt = 1;  // each step gives a token
  std::vector<int> expected;
  {
    Steps calm(model, asked);
    GCAP_ASSERT_OK(calm.Run());
    expected = calm.tokens();
  }
  ASSERT_EQ(expected.size(), 4u);
  const Walked walked = WalkFaults([&](Fault& fault) {
    Steps steps(model, asked);
    const Outcome outcome = fault.During([&] { return steps.Run(); });
    EXPECT_TRUE(outcome.ok() || fault.ComesFirst(outcome)) << fault.function() << ": " << outcome.message;
    if (!outcome.ok()) return;
    EXPECT_EQ(steps.tokens(), expected) << fault.function();
  });
  EXPECT_TRUE(walked.functions.count("cudaGraphLaunch"));
  GCAP_EXPECT_OK(model_destroy(model));
  GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
