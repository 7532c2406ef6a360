// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The order of the steps of a run, with steps that are written down.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/support/expect_status.h"

extern "C" {
#include "lib/graph/inner.h"
}

namespace gcap {
namespace testing {
namespace {

// Answers what it is told, one answer a call.
struct Steps {
  std::vector<bool> replays;         // whether each replay finds a graph
  std::vector<gcap_code_t> answers;  // of each issue; ALREADY_EXISTS comes from the run's begin
  bool was_issued = false;           // of an issue that does not begin
  std::string order;

  static gcap_status_t Replay(void* self, gcap_run_result_t*, bool* out_replayed) {
    Steps* steps = static_cast<Steps*>(self);
    steps->order += "replay ";
    *out_replayed = steps->replays.front();
    steps->replays.erase(steps->replays.begin());
    return nullptr;
  }
  static gcap_status_t Issue(void* self, int id, gcap_run_result_t* result, gcap_graph_run_kind_t* out_kind) {
    Steps* steps = static_cast<Steps*>(self);
    steps->order += id == 0 ? "issue " : "eager ";
    *out_kind = GCAP_GRAPH_RUN_EAGER;
    result->was_issued = steps->was_issued;
    const gcap_code_t code = steps->answers.front();
    steps->answers.erase(steps->answers.begin());
    return code == GCAP_OK ? nullptr : GCAP_STATUS(code, "as told");
  }
  Outcome Run(bool replays_at_all = true) {
    gcap_run_steps_t steps = {};
    steps.self = this;
    steps.replay = replays_at_all ? Replay : nullptr;
    steps.issue = Issue;
    steps.reruns_failed_capture = true;
    gcap_run_result_t result;
    gcap_run_result_init(&result);
    return Outcome(gcap_run_by_steps(&steps, &result));
  }
};

TEST(Engine, AnIdThatIsCapturedMeanwhileIsReplayed) {
  Steps once = {{false, true}, {GCAP_ALREADY_EXISTS}, false, ""};
  EXPECT_TRUE(once.Run().ok());
  EXPECT_EQ(once.order, "replay issue replay ");
  Steps twice = {{false, false, false}, {GCAP_ALREADY_EXISTS, GCAP_ALREADY_EXISTS, GCAP_OK}, false, ""};
  EXPECT_TRUE(twice.Run().ok());
  EXPECT_EQ(twice.order, "replay issue replay issue replay issue ");
}

TEST(Engine, WhatTheWorkAnswersIsTheRuns) {
  Steps steps = {{false}, {GCAP_ALREADY_EXISTS}, true, ""};
  EXPECT_STREQ(gcap_code_name(steps.Run().code), "ALREADY_EXISTS");
  EXPECT_EQ(steps.order, "replay issue ");
}

TEST(Engine, WithoutAReplayThereIsNothingToLookForAgain) {
  Steps steps = {{}, {GCAP_ALREADY_EXISTS}, false, ""};
  EXPECT_STREQ(gcap_code_name(steps.Run(/*replays_at_all=*/false).code), "ALREADY_EXISTS");
  EXPECT_EQ(steps.order, "issue ");
}

TEST(Engine, AFailedCaptureIsIssuedOnceMore) {
  Steps steps = {{false}, {GCAP_CAPTURE_INVALIDATED, GCAP_OK}, false, ""};
  EXPECT_TRUE(steps.Run().ok());
  EXPECT_EQ(steps.order, "replay issue eager ");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
