// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap_runtime_run over a table of somebody else's that writes no results: what became of a run is told from its kind
// and its status, and the runtime can end once its runs are over.

#include "gcap/runtime_ops.h"
#include "gtest/gtest.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {
namespace {

class TableRuns : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    GCAP_ASSERT_OK(gcap_stream_create(0, &stream_));
    gcap_runtime_ops_t ops = {};
    ops.struct_size = sizeof(ops);
    ops.self = this;
    ops.get_resources = [](void* self, gcap_run_resources_t* out) -> gcap_status_t {
      out->stream = Of(self)->stream_;
      out->cuda_stream = gcap_stream_handle(out->stream);
      return nullptr;
    };
    ops.synchronize = [](void*) -> gcap_status_t { return nullptr; };
    ops.begin_run = [](void* self, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind, void**) -> gcap_status_t {
      *out_kind = run->id == GCAP_GRAPH_ID_NONE ? GCAP_GRAPH_RUN_EAGER : Of(self)->kind_;
      return nullptr;
    };
    ops.end_run = [](void* self, const gcap_run_t* run, gcap_status_t run_status) -> gcap_status_t {
      if (run->id == GCAP_GRAPH_ID_NONE || Of(self)->end_ == GCAP_OK) return run_status;
      return gcap_status_join(run_status, GCAP_STATUS(Of(self)->end_, "the end was told to fail"));
    };
    GCAP_ASSERT_OK(gcap_runtime_create_from(&ops, &runtime_));
  }
  void TearDown() override {
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime_));
    GCAP_EXPECT_OK(gcap_stream_destroy(stream_));
  }

  static TableRuns* Of(void* self) { return static_cast<TableRuns*>(self); }

  // A run of id 3, of which the result is asked. Its work fails with `work`, unless that is OK.
  Outcome Run(gcap_code_t work = GCAP_OK) {
    gcap_run_t run = RunOf(3);
    run.work = [](void* code, const gcap_run_resources_t*) -> gcap_status_t {
      const gcap_code_t fails = *static_cast<gcap_code_t*>(code);
      return fails == GCAP_OK ? nullptr : GCAP_STATUS(fails, "the work was told to fail");
    };
    run.user = &work;
    gcap_run_result_init(&result_);
    run.result = &result_;
    return Outcome(gcap_runtime_run(runtime_, &run));
  }
  void ExpectResult(gcap_run_outcome_t outcome, gcap_why_eager_t why, bool was_issued) {
    EXPECT_EQ(result_.outcome, outcome);
    EXPECT_EQ(result_.why_eager, why);
    EXPECT_EQ(result_.was_issued, was_issued);
  }

  gcap_stream_t* stream_ = nullptr;
  gcap_runtime_t* runtime_ = nullptr;
  gcap_graph_run_kind_t kind_ = GCAP_GRAPH_RUN_EAGER;  // of a run with an id
  gcap_code_t end_ = GCAP_OK;                          // what its end answers
  gcap_run_result_t result_ = {};
};

TEST_F(TableRuns, TheKindSaysWhatBecameOfARun) {
  EXPECT_TRUE(Run().ok());
  ExpectResult(GCAP_RUN_EAGER, GCAP_EAGER_NOT, true);
  kind_ = GCAP_GRAPH_RUN_CAPTURE;
  EXPECT_TRUE(Run().ok());
  ExpectResult(GCAP_RUN_CAPTURED, GCAP_EAGER_NOT, true);
}

TEST_F(TableRuns, AFailureMayHaveBeenIssued) {
  EXPECT_EQ(Run(GCAP_UNAVAILABLE).code, GCAP_UNAVAILABLE);
  ExpectResult(GCAP_RUN_NOT_DONE, GCAP_EAGER_NOT, true);
  kind_ = GCAP_GRAPH_RUN_CAPTURE;
  end_ = GCAP_CUDA_ERROR;
  EXPECT_EQ(Run().code, GCAP_CUDA_ERROR);
  ExpectResult(GCAP_RUN_NOT_DONE, GCAP_EAGER_NOT, true);
}

TEST_F(TableRuns, AFailedCaptureIsRunOnceMore) {
  kind_ = GCAP_GRAPH_RUN_CAPTURE;
  end_ = GCAP_CAPTURE_INVALIDATED;
  EXPECT_TRUE(Run().ok());
  ExpectResult(GCAP_RUN_EAGER, GCAP_EAGER_CAPTURE_FAILED, true);
}

// Was a hole: nothing asked whether a run that is over still counts as one inside.
TEST_F(TableRuns, TheRuntimeEndsAfterItsRunsAndNotInside) {
  gcap_run_t run = RunOf(3);
  run.user = runtime_;
  run.work = [](void* runtime, const gcap_run_resources_t*) -> gcap_status_t {
    GCAP_EXPECT_FAILS(gcap_runtime_destroy(static_cast<gcap_runtime_t*>(runtime)), GCAP_FAILED_PRECONDITION, "run");
    return nullptr;
  };
  GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
  EXPECT_EQ(Run(GCAP_UNAVAILABLE).code, GCAP_UNAVAILABLE);  // and its end is TearDown's
}

}  // namespace
}  // namespace testing
}  // namespace gcap
