// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Replays of a runtime compared with their work: the graph's scratch, threads with graphs of their own, streams, and
// runtimes that are not gcap's.

#include <functional>
#include <thread>
#include <vector>

#include "gcap/graph_holes.h"
#include "gcap/graph_taps.h"
#include "gcap/graph_verify.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/runtime/runtime_fixture.h"
#include "test/support/log_catcher.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kCount = 64;
constexpr size_t kBytes = kCount * sizeof(float);

// y = x, by way of scratch of which `seen` is what was there before.
struct Job {
  DeviceFloats x{Floats(kCount, 1)}, y{Floats(kCount)}, seen{Floats(kCount)}, other{Floats(kCount, 8)};
  const DeviceFloats* from = &x;  // a graph keeps that of its capture

  gcap_status_t Issue(const gcap_run_resources_t& run) const {
    void* block = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run.scratch, kBytes, run.stream, &block));
    gcap_status_t status = Move(seen.get(), block, run.cuda_stream);
    if (status == nullptr) status = Move(block, from->get(), run.cuda_stream);
    if (status == nullptr) status = Move(y.get(), block, run.cuda_stream);
    return gcap_status_join(status, gcap_scratch_free(run.scratch, block));
  }
  static gcap_status_t Move(void* to, const void* from, cudaStream_t stream) {
    return GCAP_CUDA(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, stream));
  }
};

// A run that asks for a comparison of y.
struct Verified {
  explicit Verified(const Job& job) : job(job), named{"y", job.y.get(), kBytes, GCAP_DTYPE_F32, 0, 0, false} {
    gcap_graph_verify_report_init(&report);
    gcap_run_result_init(&result);
    gcap_graph_verify_init(&verify);
    verify.buffers = &named;
    verify.num_buffers = 1;
    verify.each = 1;
    verify.report = &report;
  }
  gcap_status_t Run(gcap_runtime_t* runtime, int id, bool verifies = true, cudaStream_t stream = GCAP_RUN_OWN_STREAM) {
    gcap_run_t run = RunOf(id, /*synchronize=*/true);
    run.stream = stream;
    run.work = [](void* job, const gcap_run_resources_t* resources) {
      return static_cast<const Job*>(job)->Issue(*resources);
    };
    run.user = const_cast<Job*>(&job);
    run.result = &result;
    run.verify = verifies ? &verify : nullptr;
    return gcap_runtime_run(runtime, &run);
  }

  const Job& job;
  const gcap_graph_verify_buffer_t named;
  gcap_graph_verify_t verify;
  gcap_graph_verify_report_t report;
  gcap_run_result_t result;
};

class RuntimeVerify : public RuntimeTest {};

TEST_F(RuntimeVerify, TheScratchOfTheGraphIsPutBack) {
  for (const bool is_shared : {false, true}) {
    SCOPED_TRACE(is_shared ? "shared" : "of each graph");
    gcap_options_t options = GraphOptions(1);
    options.share_graph_memory = is_shared;
    Create(options);
    Job job;
    Verified run(job);
    for (int i = 0; i < 2; ++i) GCAP_EXPECT_OK(run.Run(runtime_, 0));
    EXPECT_EQ(run.result.outcome, GCAP_RUN_CAPTURED);
    EXPECT_FALSE(run.report.is_verified);
    job.x.Set(Floats(kCount, 5));
    GCAP_EXPECT_OK(run.Run(runtime_, 0));
    EXPECT_EQ(run.result.outcome, GCAP_RUN_REPLAYED);
    EXPECT_TRUE(run.report.is_verified);
    EXPECT_EQ(run.report.compared_bytes, kBytes) << "scratch is not compared";
    EXPECT_EQ(job.y.Get(), Floats(kCount, 5));
    job.x.Set(Floats(kCount, 9));
    GCAP_EXPECT_OK(run.Run(runtime_, 0, /*verifies=*/false));
    EXPECT_EQ(job.seen.Get(), Floats(kCount, 1)) << "what the launch before the comparison left in the scratch";
    GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime_)));
    Destroy();
  }
}

// The scratch of the graph and that of the work have no name, so what is wrong shows where it comes to y. It is not
// called wrong itself.
TEST_F(RuntimeVerify, TheStepOfAStalePointerIsFoundBehindScratch) {
  Create(GraphOptions(1));
  Job job;
  Verified run(job);
  run.verify.bisect = true;
  for (int i = 0; i < 3; ++i) GCAP_EXPECT_OK(run.Run(runtime_, 0));
  EXPECT_TRUE(run.report.is_verified);
  job.from = &job.other;
  const LogCatcher log;
  GCAP_EXPECT_FAILS(run.Run(runtime_, 0), GCAP_REPLAY_DIFFERS, "stale pointer: node 1 of 3, memcpy: the source is");
  EXPECT_EQ(run.report.fault, GCAP_GRAPH_FAULT_STALE_POINTER);
  EXPECT_EQ(run.report.node, 1u);
  EXPECT_NE(run.report.step, SIZE_MAX);
  EXPECT_EQ(job.y.Get(), Floats(kCount, 8)) << "what the work left";
  GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime_)));
  for (int i = 0; i < 3; ++i) GCAP_EXPECT_OK(run.Run(runtime_, 0));
  Destroy();
}

TEST_F(RuntimeVerify, AStalePointerIsTold) {
  Create(GraphOptions(1));
  Job job;
  Verified run(job);
  for (int i = 0; i < 3; ++i) GCAP_EXPECT_OK(run.Run(runtime_, 0));
  EXPECT_TRUE(run.report.is_verified);
  job.from = &job.other;
  const LogCatcher log;
  GCAP_EXPECT_FAILS(run.Run(runtime_, 0), GCAP_REPLAY_DIFFERS,
                    "graph id 0: its replay differs from its work: buffer 0 'y' differs first in element 0 (f32): the "
                    "replay has 1, the work 8");
  EXPECT_EQ(run.result.outcome, GCAP_RUN_NOT_DONE);
  EXPECT_TRUE(run.result.was_issued);
  EXPECT_EQ(job.y.Get(), Floats(kCount, 8));
  EXPECT_EQ(Info(0).state, GCAP_GRAPH_COOLING);
  GCAP_EXPECT_FAILS(gcap_runtime_explain(runtime_, 0, GCAP_GRAPH_WHY_CAPTURE_FAILED), GCAP_REPLAY_DIFFERS, "'y'");
  GCAP_EXPECT_OK(run.Run(runtime_, 0));
  EXPECT_EQ(run.result.outcome, GCAP_RUN_EAGER);
}

TEST_F(RuntimeVerify, AReplayOnAStreamOfTheCallersIsCompared) {
  Create(GraphOptions(1));
  Job job;
  Verified run(job);
  for (int i = 0; i < 2; ++i) GCAP_EXPECT_OK(run.Run(runtime_, 0));
  const RawStream stream;
  job.x.Set(Floats(kCount, 3));
  GCAP_EXPECT_OK(run.Run(runtime_, 0, /*verifies=*/true, stream.get()));
  EXPECT_TRUE(run.report.is_verified);
  EXPECT_EQ(job.y.Get(), Floats(kCount, 3));
  job.from = &job.other;
  GCAP_EXPECT_FAILS(run.Run(runtime_, 0, /*verifies=*/true, stream.get()), GCAP_REPLAY_DIFFERS, "'y'");
  EXPECT_EQ(job.y.Get(), Floats(kCount, 8));
}

TEST_F(RuntimeVerify, ARuntimeThatDoesNotCaptureVerifiesNothing) {
  gcap_options_t options = GraphOptions(1);
  options.enable_cuda_graph = false;
  Create(options);
  Job job;
  Verified run(job);
  for (int i = 0; i < 4; ++i) {
    GCAP_EXPECT_OK(run.Run(runtime_, 0));
    EXPECT_EQ(run.result.why_eager, GCAP_EAGER_OFF);
    EXPECT_FALSE(run.report.is_verified);
  }
}

TEST_F(RuntimeVerify, CallsWithoutWorkRefuse) {
  Create(GraphOptions(1));
  Job job;
  Verified run(job);
  for (int i = 0; i < 2; ++i) GCAP_EXPECT_OK(run.Run(runtime_, 0));
  gcap_run_t alone = RunOf(0);
  alone.verify = &run.verify;
  bool replayed = true;
  GCAP_EXPECT_FAILS(gcap_runtime_replay(runtime_, &alone, &replayed), GCAP_INVALID_ARGUMENT, "a replay alone");
  EXPECT_FALSE(replayed);
  GCAP_EXPECT_FAILS(gcap_runtime_begin_run(runtime_, &alone, nullptr, nullptr), GCAP_INVALID_ARGUMENT, "a begin");
}

TEST_F(RuntimeVerify, AnotherRuntimeThanGcapsOwnRefuses) {
  Create(GraphOptions(1));
  const gcap_runtime_ops_t ops = ForwardingOps::Runs(runtime_);
  gcap_runtime_t* table = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create_from(&ops, &table));
  Job job;
  Verified run(job);
  GCAP_EXPECT_FAILS(run.Run(table, 0), GCAP_UNIMPLEMENTED, "the runtime is not gcap's own");
  EXPECT_FALSE(run.result.was_issued);
  GCAP_EXPECT_OK(run.Run(table, 0, /*verifies=*/false));
  GCAP_EXPECT_OK(gcap_runtime_destroy(table));
}

// x comes to y by way of a tap, a hole that copies y aside, and another tap.
struct TappedJob {
  DeviceFloats x{Floats(kCount, 1)}, y{Floats(kCount)}, aside{Floats(kCount)}, other{Floats(kCount, 8)};
  const DeviceFloats* before = &x;  // what is read before the hole, and behind it: a graph keeps those of its capture
  const DeviceFloats* behind = &x;
  int calls = 0;

  static gcap_status_t Call(void* user, const gcap_run_resources_t* run) {
    TappedJob* job = static_cast<TappedJob*>(user);
    ++job->calls;
    return Job::Move(job->aside.get(), job->y.get(), run->cuda_stream);
  }
  static gcap_status_t TapOf(const gcap_run_resources_t& run, const char* label, const DeviceFloats& from) {
    void* block = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run.scratch, kBytes, run.stream, &block));
    gcap_status_t status = Job::Move(block, from.get(), run.cuda_stream);
    if (status == nullptr) status = gcap_graph_tap_issue(run.cuda_stream, label, block, kBytes);
    return gcap_status_join(status, gcap_scratch_free(run.scratch, block));
  }
  gcap_status_t Issue(const gcap_run_resources_t& run) {
    GCAP_RETURN_IF_ERROR(TapOf(run, "before", *before));
    GCAP_RETURN_IF_ERROR(Job::Move(y.get(), before->get(), run.cuda_stream));
    gcap_graph_hole_t hole;
    gcap_graph_hole_init(&hole);
    hole.name = "aside";
    hole.work = Call;
    hole.user = this;
    GCAP_RETURN_IF_ERROR(gcap_graph_hole_issue(&run, &hole));
    GCAP_RETURN_IF_ERROR(TapOf(run, "behind", *behind));
    return Job::Move(y.get(), behind->get(), run.cuda_stream);
  }
};

TEST_F(RuntimeVerify, ATapThatDiffersIsToldFirstAndItsCauseIsFoundOnItsSideOfAHole) {
  for (const bool is_behind : {false, true}) {
    SCOPED_TRACE(is_behind ? "behind the hole" : "before the hole");
    Create(GraphOptions(1));
    TappedJob job;
    const gcap_graph_verify_buffer_t named[] = {{"y", job.y.get(), kBytes, GCAP_DTYPE_F32, 0, 0, false},
                                                {"aside", job.aside.get(), kBytes, GCAP_DTYPE_F32, 0, 0, false}};
    gcap_graph_verify_report_t report;
    gcap_graph_verify_report_init(&report);
    gcap_graph_verify_t verify;
    gcap_graph_verify_init(&verify);
    verify.buffers = named;
    verify.num_buffers = 2;
    verify.each = 1;
    verify.bisect = true;
    verify.report = &report;
    gcap_run_t run = RunOf(0, /*synchronize=*/true);
    run.work = [](void* job, const gcap_run_resources_t* resources) {
      return static_cast<TappedJob*>(job)->Issue(*resources);
    };
    run.user = &job;
    run.verify = &verify;
    for (int i = 0; i < 3; ++i) GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
    EXPECT_TRUE(report.is_verified);
    EXPECT_EQ(job.calls, 4) << "an eager run, a capture, a replay and its work";
    (is_behind ? job.behind : job.before) = &job.other;
    const LogCatcher log;
    const Outcome found(gcap_runtime_run(runtime_, &run));
    EXPECT_STREQ(gcap_code_name(found.code), "REPLAY_DIFFERS") << found.message;
    EXPECT_EQ(report.tap, is_behind ? 1u : 0u) << found.message;
    EXPECT_EQ(report.buffer, SIZE_MAX) << "taps come before the buffers";
    EXPECT_EQ(report.fault, GCAP_GRAPH_FAULT_STALE_POINTER) << found.message;
    // A segment has three nodes: the copy to scratch, the tap, and the copy to y.
    EXPECT_EQ(report.node, is_behind ? 3u : 0u) << found.message;
    EXPECT_EQ(report.step_buffer, SIZE_MAX) << "a tap: " << found.message;
    EXPECT_EQ(job.y.Get(), Floats(kCount, is_behind ? 8 : 1)) << "what the work left";
    EXPECT_EQ(job.aside.Get(), Floats(kCount, is_behind ? 1 : 8));
    Destroy();
  }
}

// Threads have graphs of their own, or take turns at those of all.
TEST_F(RuntimeVerify, EachThreadVerifiesItsOwnGraphs) {
  for (const bool is_session : {false, true}) {
    gcap_options_t options = GraphOptions(1);
    options.graph_scope = is_session ? GCAP_GRAPH_SCOPE_SESSION : GCAP_GRAPH_SCOPE_THREAD;
    Create(options);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([this, t] {
        Job job;
        Verified run(job);
        run.verify.each = 2;
        int verified = 0;
        for (int i = 0; i < 10; ++i) {
          job.x.Set(Floats(kCount, static_cast<float>(10 * t + i)));
          GCAP_EXPECT_OK(run.Run(runtime_, t));
          verified += run.report.is_verified;
          EXPECT_EQ(job.y.Get(), Floats(kCount, static_cast<float>(10 * t + i)));
        }
        EXPECT_EQ(verified, 4) << "of 8 replays";
        GCAP_EXPECT_OK(gcap_runtime_release(runtime_, t));
      });
    }
    for (std::thread& thread : threads) thread.join();
    Destroy();
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
