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
      if (!Of(self)->gives_stream_) return nullptr;
      out->stream = Of(self)->stream_;
      out->cuda_stream = gcap_stream_handle(out->stream);
      return nullptr;
    };
    ops.synchronize = [](void*) -> gcap_status_t { return nullptr; };
    ops.begin_run = [](void* self, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind, void**) -> gcap_status_t {
      *out_kind = run->id == GCAP_GRAPH_ID_NONE ? GCAP_GRAPH_RUN_EAGER : Of(self)->row_.kind;
      return nullptr;
    };
    ops.end_run = [](void* self, const gcap_run_t* run, gcap_status_t run_status) -> gcap_status_t {
      if (run->id == GCAP_GRAPH_ID_NONE || Of(self)->row_.end == GCAP_OK) return run_status;
      return gcap_status_join(run_status, GCAP_STATUS(Of(self)->row_.end, "the end was told to fail"));
    };
    ops.is_graph_capture_enabled = [](const void*) { return true; };
    ops.is_captured = [](void* self, int) { return Of(self)->row_.replays; };
    ops.replay = [](void* self, const gcap_run_t*, bool* out_replayed) -> gcap_status_t {
      *out_replayed = Of(self)->row_.replays;
      return nullptr;
    };
    GCAP_ASSERT_OK(gcap_runtime_create_from(&ops, &runtime_));
  }
  void TearDown() override {
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime_));
    GCAP_EXPECT_OK(gcap_stream_destroy(stream_));
  }

  static TableRuns* Of(void* self) { return static_cast<TableRuns*>(self); }

  static gcap_status_t Work(void* self, const gcap_run_resources_t*) {
    const gcap_code_t fails = Of(self)->row_.work;
    return fails == GCAP_OK ? nullptr : GCAP_STATUS(fails, "the work was told to fail");
  }

  gcap_stream_t* stream_ = nullptr;
  bool gives_stream_ = true;
  gcap_runtime_t* runtime_ = nullptr;
  // What the table answers to a run with an id, and what becomes of it.
  struct Row {
    gcap_graph_run_kind_t kind;
    bool replays;
    gcap_code_t work, end;  // what they answer
    gcap_code_t code;
    gcap_run_outcome_t outcome;
    gcap_why_eager_t why = GCAP_EAGER_NOT;
  } row_ = {};
};

// A failure may have been issued, and a failed capture is run once more.
TEST_F(TableRuns, TheKindAndTheStatusSayWhatBecameOfARun) {
  constexpr gcap_graph_run_kind_t kEager = GCAP_GRAPH_RUN_EAGER, kCapture = GCAP_GRAPH_RUN_CAPTURE;
  const Row rows[] = {
      {kEager, false, GCAP_OK, GCAP_OK, GCAP_OK, GCAP_RUN_EAGER},
      {kCapture, false, GCAP_OK, GCAP_OK, GCAP_OK, GCAP_RUN_CAPTURED},
      {kEager, true, GCAP_INTERNAL, GCAP_OK, GCAP_OK, GCAP_RUN_REPLAYED},
      {kEager, false, GCAP_UNAVAILABLE, GCAP_OK, GCAP_UNAVAILABLE, GCAP_RUN_NOT_DONE},
      {kCapture, false, GCAP_OK, GCAP_CUDA_ERROR, GCAP_CUDA_ERROR, GCAP_RUN_NOT_DONE},
      {kCapture, false, GCAP_OK, GCAP_CAPTURE_INVALIDATED, GCAP_OK, GCAP_RUN_EAGER, GCAP_EAGER_CAPTURE_FAILED},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(&row - rows);
    row_ = row;
    gcap_run_result_t result;
    gcap_run_result_init(&result);
    gcap_run_t run = RunOf(3);
    run.result = &result;
    run.user = this;
    run.work = Work;
    EXPECT_EQ(Outcome(gcap_runtime_run(runtime_, &run)).code, row.code);
    EXPECT_EQ(result.outcome, row.outcome);
    EXPECT_EQ(result.why_eager, row.why);
    EXPECT_TRUE(result.was_issued);
  }
}

TEST_F(TableRuns, ATableThatGivesNoStreamIsRefusedBeforeTheWork) {
  gcap_run_t run = RunOf(3);
  run.user = this;
  run.work = [](void*, const gcap_run_resources_t*) -> gcap_status_t {
    ADD_FAILURE() << "there is no stream to work on";
    return nullptr;
  };
  gives_stream_ = false;
  GCAP_EXPECT_FAILS(gcap_runtime_run(runtime_, &run), GCAP_INVALID_ARGUMENT, "`stream` NULL");
}

// Was a hole: nothing asked whether a run, or a warm-up, that is over still counts as one inside.
TEST_F(TableRuns, TheRuntimeEndsAfterItsRunsAndNotInside) {
  gcap_run_t run = RunOf(3);
  run.user = runtime_;
  run.work = [](void* runtime, const gcap_run_resources_t*) -> gcap_status_t {
    GCAP_EXPECT_FAILS(gcap_runtime_destroy(static_cast<gcap_runtime_t*>(runtime)), GCAP_FAILED_PRECONDITION, "run");
    return nullptr;
  };
  GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
  row_.replays = true;
  GCAP_EXPECT_OK(gcap_runtime_warm_up(runtime_, &run, 1, nullptr, nullptr));
  row_.replays = false;
  GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));  // and its end is TearDown's
}

}  // namespace
}  // namespace testing
}  // namespace gcap
