// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Taps: the copies that a run reads are what the buffer was at the label, in eager runs, captures and replays.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "gcap/capture.h"
#include "gcap/graph_plan.h"
#include "gcap/graph_verify.h"
#include "gtest/gtest.h"
#include "test/graph/taps_test.h"

namespace gcap {
namespace testing {
namespace {

using Values = std::vector<float>;

class GraphTaps : public TapsTest {
 protected:
  WorkWith Work() {
    return [this](const gcap_run_resources_t* resources) {
      return TwoTaps(resources, resources->num_addresses != 0 ? resources->addresses[0] : x_.get());
    };
  }
  // The bytes of one tap that a run reads, as far as `capacity` goes.
  gcap_graph_tap_t ReadOne(gcap_run_t run, const WorkWith& work, const char* label, void* data, size_t capacity) {
    gcap_graph_tap_t tap = {label, data, capacity, 99};
    run.taps = &tap;
    run.num_taps = 1;
    const Outcome outcome = RunHoled(run, work);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    return tap;
  }

  Floats x_{0};
};

TEST_F(GraphTaps, OfEagerRunsCapturesAndReplaysAreAlike) {
  options_.min_num_runs_before_capture = 1;
  CreateManager();
  const gcap_run_outcome_t outcomes[] = {GCAP_RUN_EAGER, GCAP_RUN_CAPTURED, GCAP_RUN_REPLAYED, GCAP_RUN_REPLAYED};
  for (int i = 0; i < 4; ++i) {
    gcap_run_t run = RunBy();
    run.synchronize = i == 3;
    x_.Fill(100.0f * i);
    EXPECT_EQ(ReadBy(run, Work(), {"two", "one"}), Values({100.0f * i + 11, 100.0f * i + 1}));
    EXPECT_EQ(result_.outcome, outcomes[i]);
    EXPECT_EQ(x_.value(), 100.0f * i + 11);
  }
  x_.Fill(5);
  float first = 0;
  gcap_graph_tap_t tap = {"one", &first, sizeof(first), 0};
  gcap_run_t replay = RunBy();
  replay.stream = GCAP_RUN_OWN_STREAM;
  replay.taps = &tap;
  replay.num_taps = 1;
  GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &replay, nullptr));
  EXPECT_EQ(first, 6);
  EXPECT_EQ(tap.tapped_bytes, kFloatsBytes) << "all of it, although a part was read";
  const RawStream other;
  replay.stream = other.get();
  GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &replay, nullptr));
  EXPECT_EQ(first, 17);
}

TEST_F(GraphTaps, NobodyReadsCostAnEagerRunNothing) {
  options_.min_num_runs_before_capture = 1;
  CreateManager();
  ExpectRun(Work(), GCAP_RUN_EAGER);
  EXPECT_EQ(x_.value(), 11);
  EXPECT_EQ(Info(kId).bytes, 0u);
  GCAP_EXPECT_OK(gcap_graph_tap_issue(stream_->get(), "outside of runs", x_.get(), kFloatsBytes));
}

TEST_F(GraphTaps, OfMovedBuffersFollowThemAndKeepTheirMemory) {
  CreateManager();
  const Floats other(0);
  std::vector<gcap_graph_buffer_t> items = {{"x", x_.get(), kFloatsBytes, 256}};
  const gcap_graph_buffers_t buffers = BuffersOf(items);
  gcap_run_t run = RunBy();
  run.buffers = &buffers;
  EXPECT_EQ(ReadBy(run, Work(), {"one", "two"}), Values({1, 11}));
  EXPECT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
  const Outcome refusal(gcap_graph_manager_explain(manager_, kId, GCAP_GRAPH_WHY_NOT_MOVABLE));
  EXPECT_TRUE(refusal.ok()) << refusal.message;
  const size_t bytes = RetainedBytes(kId);
  items[0].address = other.get();
  for (int i = 1; i < 4; ++i) {
    other.Fill(100.0f * i);
    EXPECT_EQ(ReadBy(run, Work(), {"one", "two"}), Values({100.0f * i + 1, 100.0f * i + 11}));
    EXPECT_EQ(result_.outcome, GCAP_RUN_REPLAYED);
  }
  EXPECT_EQ(x_.value(), 11);
  EXPECT_EQ(RetainedBytes(kId), bytes);
}

TEST_F(GraphTaps, OnForkedStreamsAndBehindHoles) {
  CreateManager();
  const Floats y(50);
  const RawStream other;
  const cudaStream_t forked = other.get();
  Hole hole;
  hole.function = [&](const gcap_run_resources_t* resources) { return Add(resources, x_.get(), 100); };
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_capture_t* capture = gcap_capture_current();
    GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &forked, 1));
    GCAP_RETURN_IF_ERROR(AddTo(forked, y.get(), y.get(), 5));
    GCAP_RETURN_IF_ERROR(gcap_graph_tap_issue(forked, "forked", y.get(), kFloatsBytes));
    GCAP_RETURN_IF_ERROR(AddTo(forked, y.get(), y.get(), 5));
    GCAP_RETURN_IF_ERROR(Tap(resources, "origin", x_.get()));
    GCAP_RETURN_IF_ERROR(gcap_capture_join(capture, &forked, 1));
    GCAP_RETURN_IF_ERROR(hole.Issue(resources));
    return Tap(resources, "behind", x_.get());
  };
  EXPECT_EQ(ReadBy(RunBy(), work, {"forked", "origin", "behind"}), Values({55, 0, 100}));
  EXPECT_EQ(ReadBy(RunBy(), work, {"forked", "origin", "behind"}), Values({65, 100, 200}));
  EXPECT_EQ(result_.outcome, GCAP_RUN_REPLAYED);
}

TEST_F(GraphTaps, ALabelTwiceIsTheLastOneAndTheNextCaptureMayHaveOthers) {
  CreateManager();
  bool is_second = false;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    for (int i = 0; i < 3; ++i) {
      GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 1));
      GCAP_RETURN_IF_ERROR(Tap(resources, "layer", x_.get(), is_second ? 8 : kFloatsBytes));
    }
    return nullptr;
  };
  EXPECT_EQ(ReadBy(RunBy(), work, {"layer"}), Values({3}));
  EXPECT_EQ(ReadBy(RunBy(), work, {"layer"}), Values({6}));
  EXPECT_EQ(result_.outcome, GCAP_RUN_REPLAYED);
  float values[kFloats];
  EXPECT_EQ(ReadOne(RunBy(), work, "nobody's", values, sizeof(values)).tapped_bytes, 0u);
  EXPECT_EQ(ReadOne(RunBy(), work, "layer", nullptr, 0).tapped_bytes, kFloatsBytes);
  is_second = true;
  GCAP_ASSERT_OK(gcap_graph_manager_recapture(manager_, kId));
  EXPECT_EQ(ReadOne(RunBy(), work, "layer", values, sizeof(values)).tapped_bytes, 8u);
  EXPECT_EQ(values[0], 15);
  EXPECT_EQ(ReadOne(RunBy(GCAP_GRAPH_ID_NONE), work, "layer", values, 4).tapped_bytes, 8u);
  EXPECT_EQ(values[0], 18);
}

TEST_F(GraphTaps, CountAsMemoryOfTheGraphAndGoWithIt) {
  options_.max_graphs = 1;
  CreateManager();
  gcap_run_t run = RunBy();
  const WorkWith work = Work();
  run.work = IssueWith;
  run.user = const_cast<WorkWith*>(&work);
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_ASSERT_OK(gcap_graph_manager_plan(manager_, &run, 1, &plan));
  EXPECT_EQ(plan.retained_bytes, 2 * kFloatsBytes);
  ExpectRun(work, GCAP_RUN_CAPTURED);
  EXPECT_EQ(RetainedBytes(kId), 2 * kFloatsBytes);
  x_.Fill(0);
  run.capture_only = true;
  run.id = kId + 1;
  float value = -1;
  EXPECT_EQ(ReadOne(run, work, "one", &value, sizeof(value)).tapped_bytes, 0u) << "nothing was launched";
  EXPECT_EQ(result_.outcome, GCAP_RUN_RECORDED);
  EXPECT_EQ(value, -1);
  EXPECT_EQ(Info(kId).evictions, 1u);
  EXPECT_EQ(Info(kId).bytes, 0u);
  EXPECT_EQ(ReadBy(RunBy(kId + 1), work, {"one"}), Values({1}));
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId + 1));
}

TEST_F(GraphTaps, AreNoFindingOfAnAudit) {
  options_.audit = GCAP_GRAPH_AUDIT_EACH_REPLAY;
  CreateManager();
  EXPECT_EQ(ReadBy(RunBy(), Work(), {"one"}), Values({1}));
  EXPECT_EQ(ReadBy(RunBy(), Work(), {"one"}), Values({12}));
  std::vector<std::string> owned;
  size_t findings = 1;
  GCAP_EXPECT_OK(gcap_graph_manager_audit(
      manager_, kId,
      [](void* all, const gcap_graph_pointer_t* pointer) {
        if (pointer->owner == GCAP_GRAPH_OWNER_RETAINED) {
          static_cast<std::vector<std::string>*>(all)->push_back(pointer->memory);
        }
      },
      &owned, &findings));
  EXPECT_EQ(findings, 0u);
  EXPECT_EQ(owned.size(), 2u) << "the copies go there";
}

TEST_F(GraphTaps, AreComparedByAVerificationBeforeBuffers) {
  CreateManager();
  uint64_t addend = 1;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Tap(resources, "input", x_.get()));
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), addend));
    GCAP_RETURN_IF_ERROR(Tap(resources, "sum", x_.get()));
    return Add(resources, x_.get(), 10);
  };
  const gcap_graph_verify_buffer_t buffer = {"x", x_.get(), kFloatsBytes, GCAP_DTYPE_F32, 0, 0, false};
  gcap_graph_verify_report_t report;
  gcap_graph_verify_report_init(&report);
  gcap_graph_verify_t verify;
  gcap_graph_verify_init(&verify);
  verify.buffers = &buffer;
  verify.num_buffers = 1;
  verify.each = 1;
  verify.report = &report;
  gcap_run_t run = RunBy();
  run.verify = &verify;
  EXPECT_EQ(ReadBy(run, work, {"sum"}), Values({1}));
  EXPECT_EQ(ReadBy(run, work, {"sum"}), Values({12}));
  EXPECT_TRUE(report.is_verified);
  EXPECT_EQ(report.tap, SIZE_MAX);
  EXPECT_EQ(report.compared_bytes, 3 * kFloatsBytes);
  addend = 2;  // which the graph has as it was
  const Outcome differs = RunHoled(run, work);
  EXPECT_EQ(differs.code, GCAP_REPLAY_DIFFERS) << differs.message;
  EXPECT_TRUE(differs.Names("tap 'sum' differs first in element 2 (a byte): the replay has 184, the work 192"))
      << differs.message;
  EXPECT_EQ(report.tap, 1u);
  EXPECT_EQ(report.buffer, SIZE_MAX);
  EXPECT_EQ(x_.value(), 34) << "of the work";
}

// Whatever the comparison says, what the run gets is the work's, as the buffers are.
TEST_F(GraphTaps, OfARunThatDiffersAreThoseOfTheWork) {
  for (const bool bisect : {false, true}) {
    CreateManager();
    x_.Fill(0);
    uint64_t addend = 1;
    const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), addend));
      return Tap(resources, "x", x_.get());
    };
    gcap_graph_verify_buffer_t buffer = {"x", x_.get(), kFloatsBytes, GCAP_DTYPE_F32, 0, 0, false};
    gcap_graph_verify_t verify;
    gcap_graph_verify_init(&verify);
    verify.buffers = &buffer;
    verify.num_buffers = 1;
    verify.each = 1;
    verify.bisect = bisect;
    std::array<float, kFloats> values{};
    gcap_graph_tap_t taps[] = {{"x", values.data(), kFloatsBytes, 77}, {"none", nullptr, 0, 77}};
    gcap_run_t run = RunBy();
    run.verify = &verify;
    run.taps = taps;
    run.num_taps = 2;
    EXPECT_TRUE(RunHoled(run, work).ok());
    EXPECT_EQ(values[0], 1);
    addend = 5;
    const Outcome differs = RunHoled(run, work);
    EXPECT_EQ(differs.code, GCAP_REPLAY_DIFFERS) << differs.message;
    EXPECT_EQ(values[0], 1 + 5);
    EXPECT_EQ(taps[0].tapped_bytes, kFloatsBytes);
    EXPECT_EQ(taps[1].tapped_bytes, 0u);
    DestroyManager();
  }
}

TEST_F(GraphTaps, AVerificationTakesTheToleranceOfABufferOfThatName) {
  CreateManager();
  uint64_t addend = 1;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), addend));
    return Tap(resources, "x", x_.get());
  };
  gcap_graph_verify_buffer_t buffer = {"x", x_.get(), kFloatsBytes, GCAP_DTYPE_F32, 5, 0, false};
  gcap_graph_verify_t verify;
  gcap_graph_verify_init(&verify);
  verify.buffers = &buffer;
  verify.num_buffers = 1;
  verify.each = 1;
  gcap_run_t run = RunBy();
  run.verify = &verify;
  EXPECT_TRUE(RunHoled(run, work).ok());
  addend = 4;
  const Outcome within = RunHoled(run, work);
  EXPECT_TRUE(within.ok()) << within.message;
  buffer.absolute = 2;
  const Outcome beyond = RunHoled(run, work);
  EXPECT_TRUE(beyond.Names("tap 'x' differs first in element 0 (f32)")) << beyond.message;
}

// What the function of a hole runs on another manager may be verified too, in a verification of its own.
TEST_F(GraphTaps, BehindAVerificationWithinAVerifiedRunAreOfTheOuterOne) {
  CreateManager();
  gcap_graph_manager_t* inner = nullptr;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &inner));
  gcap_graph_verify_report_t inner_report, report;
  const WorkWith inner_work = [&](const gcap_run_resources_t* resources) { return Add(resources, x_.get(), 10); };
  const gcap_graph_verify_buffer_t buffer = {"x", x_.get(), kFloatsBytes, GCAP_DTYPE_F32, 0, 0, false};
  gcap_graph_verify_t verify, inner_verify;
  gcap_graph_verify_init(&verify);
  gcap_graph_verify_report_init(&report);
  gcap_graph_verify_report_init(&inner_report);
  verify.buffers = &buffer;
  verify.num_buffers = 1;
  verify.each = 1;
  inner_verify = verify;
  verify.report = &report;
  inner_verify.report = &inner_report;
  Hole hole;
  hole.function = [&](const gcap_run_resources_t*) {
    gcap_run_t run = RunOf(kId, stream_->get());
    run.verify = &inner_verify;
    run.work = IssueWith;
    run.user = const_cast<WorkWith*>(&inner_work);
    return gcap_graph_manager_run(inner, &run);
  };
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 1));
    GCAP_RETURN_IF_ERROR(hole.Issue(resources));
    return Tap(resources, "behind", x_.get());
  };
  gcap_run_t run = RunBy();
  run.verify = &verify;
  EXPECT_EQ(ReadBy(run, work, {"behind"}), Values({11}));
  EXPECT_EQ(ReadBy(run, work, {"behind"}), Values({22}));
  EXPECT_TRUE(report.is_verified);
  EXPECT_TRUE(inner_report.is_verified);
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(inner));
}

// What is replayed is then not what was looked at, and its taps are elsewhere.
TEST_F(GraphTaps, OfAGraphThatWasCapturedAnewBeforeItsReplayAreNotBlamed) {
  CreateManager();
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 1));
    return Tap(resources, "x", x_.get());
  };
  std::function<gcap_status_t()> capture_anew = [&]() -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(gcap_graph_manager_release(manager_, kId));
    gcap_run_t run = RunOf(kId, stream_->get());
    run.capture_only = true;
    run.work = IssueWith;
    run.user = const_cast<WorkWith*>(&work);
    return gcap_graph_manager_run(manager_, &run);
  };
  const gcap_graph_verify_buffer_t buffer = {"x", x_.get(), kFloatsBytes, GCAP_DTYPE_F32, 0, 0, false};
  gcap_graph_verify_report_t report;
  gcap_graph_verify_report_init(&report);
  gcap_graph_verify_t verify;
  gcap_graph_verify_init(&verify);
  verify.buffers = &buffer;
  verify.num_buffers = 1;
  verify.each = 1;
  verify.report = &report;
  verify.user = &capture_anew;
  verify.save = [](void* user, cudaStream_t) { return (*static_cast<std::function<gcap_status_t()>*>(user))(); };
  ExpectRun(work, GCAP_RUN_CAPTURED);
  gcap_run_t run = RunBy();
  run.verify = &verify;
  EXPECT_EQ(ReadBy(run, work, {"x"}), Values({2}));
  EXPECT_EQ(result_.outcome, GCAP_RUN_REPLAYED);
  EXPECT_FALSE(report.is_verified) << "nobody knew that graph";
  EXPECT_EQ(x_.value(), 2);
}

TEST_F(GraphTaps, AreRefusedWhereNoRunMakesThem) {
  CreateManager();
  const cudaStream_t stream = stream_->get();
  GCAP_EXPECT_FAILS(gcap_graph_tap_issue(stream, nullptr, x_.get(), 4), GCAP_INVALID_ARGUMENT, "label is NULL");
  GCAP_EXPECT_FAILS(gcap_graph_tap_issue(stream, "", x_.get(), 4), GCAP_INVALID_ARGUMENT, "allowed are 1 to 63 bytes");
  GCAP_EXPECT_FAILS(gcap_graph_tap_issue(stream, std::string(64, 'l').c_str(), x_.get(), 4), GCAP_INVALID_ARGUMENT,
                    "allowed are 1 to 63 bytes");
  GCAP_EXPECT_OK(gcap_graph_tap_issue(stream, std::string(63, 'l').c_str(), x_.get(), 4));
  GCAP_EXPECT_FAILS(gcap_graph_tap_issue(stream, "x", nullptr, 4), GCAP_INVALID_ARGUMENT, "address is NULL");
  GCAP_EXPECT_FAILS(gcap_graph_tap_issue(stream, "x", x_.get(), 0), GCAP_INVALID_ARGUMENT, "tap 'x' is of 0 bytes");
  gcap_capture_t* capture = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream, nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_graph_tap_issue(stream, "x", x_.get(), 4), GCAP_FAILED_PRECONDITION,
                    "no run of a graph manager");
  EXPECT_FALSE(Outcome(gcap_capture_end(capture, &graph, &retained)).ok());
  Hole hole;
  hole.function = [&](const gcap_run_resources_t* resources) { return Tap(resources, "in a hole", x_.get()); };
  const WorkWith holed = [&](const gcap_run_resources_t* resources) { return hole.Issue(resources); };
  const Outcome in_hole = RunHoled(RunBy(), holed);
  EXPECT_EQ(in_hole.code, GCAP_FAILED_PRECONDITION);
  EXPECT_TRUE(in_hole.Names("called by the function of a hole")) << in_hole.message;
}

TEST_F(GraphTaps, OfAStreamOutsideOfTheCaptureFailIt) {
  CreateManager();
  const RawStream other;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_status_ignore(gcap_graph_tap_issue(other.get(), "outside", x_.get(), kFloatsBytes));
    return Add(resources, x_.get(), 1);
  };
  ExpectRun(work, GCAP_RUN_EAGER);
  EXPECT_EQ(result_.why_eager, GCAP_EAGER_CAPTURE_FAILED);
  const Outcome why(gcap_graph_manager_explain(manager_, kId, GCAP_GRAPH_WHY_CAPTURE_FAILED));
  EXPECT_TRUE(why.Names("tap 'outside' is made on stream")) << why.message;
  EXPECT_EQ(x_.value(), 1);
}

TEST_F(GraphTaps, ThatCannotBeReadAreRefusedBeforeAnythingIsIssued) {
  CreateManager();
  float value = 0;
  gcap_graph_tap_t tap = {nullptr, &value, sizeof(value), 0};
  gcap_run_t run = RunBy();
  run.num_taps = 1;
  EXPECT_TRUE(RunHoled(run, Work()).Names("taps is NULL"));
  run.taps = &tap;
  EXPECT_TRUE(RunHoled(run, Work()).Names("taps[0].label is NULL"));
  tap = {"one", nullptr, 8, 0};
  EXPECT_TRUE(RunHoled(run, Work()).Names("taps[0] 'one': data is NULL, and bytes is 8"));
  tap.bytes = 0;
  gcap_graph_run_kind_t kind;
  GCAP_EXPECT_FAILS(gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr), GCAP_INVALID_ARGUMENT,
                    "the run has 1 taps to be read, and a begin does not end it");
  stream_->Synchronize();
  EXPECT_EQ(x_.value(), 0);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
