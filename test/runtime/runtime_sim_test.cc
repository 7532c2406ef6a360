// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The runtime under faults: its end, captures of several graphs and with forks, a short heap, and the memory of a
// stream that could not be drained. Each of its functions under each of its calls' failures is in
// test/fault/ep_walks.cc.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gcap/graph_plan.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/log.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/base/heap_failure.h"
#include "test/ep/model_builder.h"
#include "test/runtime/runtime_fixture.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"
#include "test/support/replays.h"
#include "test/support/runs.h"

namespace {

using gcap::testing::DeviceFloats;
using gcap::testing::Fault;
using gcap::testing::GraphOptions;
using gcap::testing::HeapFailure;
using gcap::testing::Outcome;
using gcap::testing::Walked;
using gcap::testing::WalkFaults;

class RuntimeSim : public gcap::testing::RuntimeTest {
 protected:
  // A run that touches scratch.
  gcap_status_t TouchScratch(size_t bytes, int id = GCAP_GRAPH_ID_NONE, void** out_block = nullptr) {
    GCAP_RETURN_IF_ERROR(BeginRun(runtime_, id));
    return EndRun(runtime_, Touch(Resources(), bytes, out_block), /*synchronize=*/false);
  }
};

// A failing cudaFree is told after an allocation that found its memory all the same. The sink's own line of the trace
// came after that of the allocation, which was written after the log: it waited for ever.
TEST_F(RuntimeSim, ALogSinkMayTakeScratchWithATraceFile) {
  gcap_options_t options;
  gcap_options_init(&options);
  std::snprintf(options.trace_file, sizeof(options.trace_file), "%s/sink.trace", std::getenv("TEST_TMPDIR"));
  options.arena.memory_limit_bytes = 1 << 20;
  options.arena.extend_as_requested = true;
  options.arena.initial_chunk_bytes = options.arena.initial_growth_chunk_bytes = 256;
  Create(options);
  const gcap_run_resources_t run = Resources();
  void *idle = nullptr, *used = nullptr, *ptr = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_alloc(run.scratch, 512 << 10, run.stream, &idle));
  GCAP_ASSERT_OK(gcap_scratch_alloc(run.scratch, 100 << 10, run.stream, &used));
  GCAP_EXPECT_OK(gcap_scratch_free(run.scratch, idle));
  GCAP_EXPECT_OK(gcap_stream_synchronize(run.stream));
  GCAP_EXPECT_OK(gcap_scratch_free(run.scratch, used));
  int num_logged = 0;
  std::function<void()> sink = [&] {
    if (++num_logged == 1) GCAP_EXPECT_OK(Touch(run, 300));
  };
  gcap_log_set_sink([](void* user, gcap_log_level_t, const char*) { (*static_cast<std::function<void()>*>(user))(); },
                    &sink, GCAP_LOG_WARNING);
  gcap_sim_fail_nth("cudaFree", 1, cudaErrorUnknown);
  GCAP_EXPECT_OK(gcap_scratch_alloc(run.scratch, 900 << 10, run.stream, &ptr));
  gcap_sim_clear_faults();
  gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING);
  EXPECT_GE(num_logged, 1);
  GCAP_EXPECT_OK(gcap_scratch_free(run.scratch, ptr));
}

// An exception tells that the run failed; the device goes on.
TEST_F(RuntimeSim, ARunThatIsLeftByAnExceptionDoesNotWait) {
  Create(GraphOptions());
  const auto waits = [] {
    return gcap_sim_calls("cudaStreamSynchronize") + gcap_sim_calls("cudaEventSynchronize") +
           gcap_sim_calls("cudaDeviceSynchronize");
  };
  bool throws = false;
  const gcap_work_t work = [](void* user, const gcap_run_resources_t*) -> gcap_status_t {
    if (*static_cast<bool*>(user)) throw 7;
    return nullptr;
  };
  const uint64_t at_first = waits();
  GCAP_EXPECT_OK(RunOnRuntime(runtime_, GCAP_GRAPH_ID_NONE, work, &throws, /*synchronize=*/true));
  const uint64_t before = waits();
  EXPECT_GT(before, at_first) << "what is counted is what waits";
  throws = true;
  EXPECT_THROW(Outcome(RunOnRuntime(runtime_, GCAP_GRAPH_ID_NONE, work, &throws, /*synchronize=*/true)), int);
  EXPECT_EQ(waits(), before);
}

// A thread's first call makes the thread's stream, whichever call that is.
TEST_F(RuntimeSim, EachCallOfAThreadThatCanHaveNoStreamFails) {
  Create(GraphOptions());
  gcap_run_resources_t resources;
  gcap_graph_manager_t* graphs = nullptr;
  gcap_stream_t* forked = nullptr;
  float host = 0;
  const DeviceFloats device({1});
  const gcap_tensor_t src = {&host, GCAP_DTYPE_F32, 0, {}}, dst = {device.get(), GCAP_DTYPE_F32, 0, {}};
  const gcap_copy_t copy = {&src, {GCAP_MEMORY_HOST, 0}, &dst, {GCAP_MEMORY_DEVICE, 0}, nullptr};
  const gcap_work_t work = [](void*, const gcap_run_resources_t*) { return gcap_status_t(nullptr); };
  const PlannedWork planned = {0, work, nullptr};
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  const std::function<gcap_status_t()> calls[] = {
      [&] { return gcap_runtime_get_resources(runtime_, &resources); },
      [&] { return gcap_runtime_graphs(runtime_, &graphs); },
      [&] { return gcap_runtime_fork(runtime_, 1, &forked); },
      [&] { return gcap_runtime_copy_tensors(runtime_, &copy, 1); },
      [&] { return PlanOnRuntime(runtime_, &planned, 1, &plan); },
      [&] { return RunOnRuntime(runtime_, 0, work, nullptr, /*synchronize=*/false); },
      [&] { return BeginRun(runtime_, 0); },
      [&] { return EndRun(runtime_, nullptr, /*synchronize=*/false); },
      [&] { return TryReplay(runtime_, 0, /*synchronize=*/false, nullptr); },
      [&] { return gcap_runtime_explain(runtime_, 0, GCAP_GRAPH_WHY_CAPTURE_FAILED); },
      [&] { return gcap_runtime_release(runtime_, 0); },
      [&] { return gcap_runtime_synchronize(runtime_); },
      [&] { return gcap_runtime_join(runtime_); },
  };
  std::thread([&] {
    const auto fail = [] { gcap_sim_fail_nth("cudaStreamCreateWithFlags", 1, cudaErrorUnknown); };
    for (const auto& call : calls) {
      SCOPED_TRACE(&call - calls);
      fail();
      GCAP_EXPECT_FAILS(call(), GCAP_CUDA_ERROR, "cudaStreamCreateWithFlags");
    }
    fail();
    EXPECT_FALSE(IsCaptured(0));
    fail();
    EXPECT_EQ(GraphInfo(runtime_, 0).state, GCAP_GRAPH_COLD);
    gcap_sim_clear_faults();
    GCAP_EXPECT_OK(TouchScratch(256));
  }).join();
  gcap_options_t options = GraphOptions();
  options.use_unified_stream = true;
  Create(options);
  gcap_sim_fail_nth("cudaStreamCreateWithFlags", 1, cudaErrorUnknown);
  GCAP_EXPECT_FAILS(gcap_runtime_create_stream(runtime_, &forked), GCAP_CUDA_ERROR, "cudaStreamCreateWithFlags");
  EXPECT_EQ(forked, nullptr);
  GCAP_EXPECT_OK(gcap_runtime_create_stream(runtime_, &forked));
  GCAP_EXPECT_OK(gcap_stream_destroy(forked));
}

// --- Walks ----------------------------------------------------------------------------------------------------------

// A stream that could not enter the capture is not handed out as one of its streams.
TEST_F(RuntimeSim, AForkInACaptureSurvivesAFailureOfEachOfItsCalls) {
  gcap_options_t options = GraphOptions(1);
  options.graph.capture.ledger_calls = 0;  // its questions are no part of the fork
  const Walked walked = WalkFaults([&](Fault& fault) {
    Create(options);
    for (const bool captures : {false, true}) {
      gcap_stream_t* forked = nullptr;
      GCAP_EXPECT_OK(BeginRun(runtime_, 0));
      EXPECT_EQ(gcap_thread_is_capturing(), captures);
      if (captures) fault.Arm();
      const Outcome outcome(gcap_runtime_fork(runtime_, 1, &forked));
      fault.Disarm();
      EXPECT_EQ(outcome.ok(), !fault.hit());
      EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
      EXPECT_EQ(forked != nullptr, outcome.ok());
      gcap_status_t joined = outcome.ok() ? gcap_runtime_join(runtime_) : nullptr;
      const Outcome ended(EndRun(runtime_, joined, /*synchronize=*/true));
      EXPECT_EQ(ended.code, fault.hit() ? GCAP_CAPTURE_INVALIDATED : GCAP_OK) << ended.message;
    }
    Destroy();
  });
  EXPECT_EQ(walked.functions.count("cudaStreamWaitEvent"), 1u);
}

// Whatever cannot be ended is kept, with the memory that it may use; then the status says so.
TEST_F(RuntimeSim, DestroySurvivesAFailureOfEachOfItsCalls) {
  const Walked walked = WalkFaults([&](Fault& fault) {
    Create(GraphOptions());
    GCAP_EXPECT_OK(TouchScratch(256));
    const Outcome outcome = fault.During([&] { return gcap_runtime_destroy(runtime_); });
    runtime_ = nullptr;
    EXPECT_TRUE(fault.hit() || outcome.ok()) << outcome.message;
    EXPECT_TRUE(outcome.ok() || outcome.cuda_error == cudaErrorUnknown) << outcome.message;
    EXPECT_TRUE(outcome.ok() || outcome.code == GCAP_LEAKED) << "the runtime is gone: " << outcome.message;
    if (!outcome.ok()) fault.AllowKept();
  });
  EXPECT_GE(walked.calls, 6u);
}

// Two graphs share their scratch. Whatever fails while the second one is captured, the first one has its own.
TEST_F(RuntimeSim, PlanSurvivesAFailureOfEachOfItsCalls) {
  for (const bool shared : {false, true}) {
    gcap_options_t options = GraphOptions(1);
    options.share_graph_memory = shared;
    const gcap_work_t work = [](void*, const gcap_run_resources_t* run) { return Touch(*run, 1 << 10); };
    const PlannedWork runs[] = {{0, work, nullptr}, {1, work, nullptr}};
    WalkFaults([&](Fault& fault) {
      Create(options);
      for (const auto& run : runs) GCAP_EXPECT_OK(RunOnRuntime(runtime_, run.id, work, nullptr, true));
      gcap_graph_plan_t plan;
      gcap_graph_plan_init(&plan);
      const Outcome outcome = fault.During([&] { return PlanOnRuntime(runtime_, runs, 2, &plan); });
      EXPECT_TRUE(fault.hit() || outcome.ok()) << outcome.message;
      EXPECT_EQ(plan.graphs, outcome.ok() ? 2u : 0u);
      EXPECT_EQ(plan.retained_bytes, outcome.ok() ? (shared ? 1u : 2u) << 10 : 0u);
      GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime_)));
      for (const auto& run : runs) GCAP_EXPECT_OK(RunOnRuntime(runtime_, run.id, work, nullptr, true));
      for (const auto& run : runs) EXPECT_TRUE(IsCaptured(run.id));
      Destroy();
    });
  }
}

TEST_F(RuntimeSim, SharedCaptureSurvivesAFailureOfEachOfItsCalls) {
  constexpr size_t kBytes = size_t{1} << 21;  // more than a first region
  gcap_options_t options = GraphOptions(1);
  options.share_graph_memory = true;
  const Walked walked = WalkFaults([&](Fault& fault) {
    Create(options);
    for (int id : {0, 1, 0}) GCAP_EXPECT_OK(TouchScratch((id + 1) * kBytes, id));
    const Outcome outcome = fault.During([&] { return TouchScratch(2 * kBytes, 1); });
    EXPECT_TRUE(fault.hit() || outcome.ok()) << outcome.message;
    const gcap_graph_info_t first = GraphInfo(runtime_, 0), second = GraphInfo(runtime_, 1);
    EXPECT_EQ(first.state, GCAP_GRAPH_CAPTURED);
    EXPECT_EQ(second.bytes, second.state == GCAP_GRAPH_CAPTURED ? first.bytes : 0u) << outcome.message;
    EXPECT_GE(first.bytes + second.bytes, kBytes);
    EXPECT_TRUE(Replay(0));
    GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime_)));
    Destroy();
  });
  EXPECT_GE(walked.calls, 5u);
}

// A stream of which the driver does not tell whether it is in the capture is not taken for one that is not.
TEST_F(RuntimeSim, ACopyOfWhoseStreamTheDriverDoesNotTellIsRefusedAsTheDriverDid) {
  Create(GraphOptions(1));
  gcap_stream_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create_stream(runtime_, &other));
  const gcap::testing::DeviceFloats x({1}), y({0});
  const gcap_tensor_t src = gcap::testing::Tensor(x.get(), {1}), dst = gcap::testing::Tensor(y.get(), {1});
  const gcap_memory_t device = {GCAP_MEMORY_DEVICE, 0};
  const gcap_copy_t copy = {&src, device, &dst, device, other};
  const auto work = [&](const gcap_run_resources_t&) {
    if (gcap_thread_is_capturing()) gcap_sim_fail_nth("cudaStreamGetCaptureInfo", 1, cudaErrorUnknown);
    return gcap_runtime_copy_tensors(runtime_, &copy, 1);
  };
  EXPECT_TRUE(Run(0, work).ok());
  const Outcome captured = Run(0, [&](const gcap_run_resources_t& run) {
    gcap_status_t status = work(run);
    EXPECT_EQ(gcap_status_code(status), GCAP_CUDA_ERROR) << gcap_status_message(status);
    return status;
  });
  EXPECT_TRUE(captured.Names("cudaStreamGetCaptureInfo")) << captured.message;
  gcap_sim_clear_faults();
  GCAP_EXPECT_OK(gcap_stream_destroy(other));
}

// Streams that were not joined are ordered before what comes next. Only where that fails are they waited for.
TEST_F(RuntimeSim, TheEndOfARunThatDoesNotJoinWaitsOnlyWhereItCannotOrder) {
  const Walked walked = WalkFaults([&](Fault& fault) {
    Create(GraphOptions());
    gcap_stream_t* forked = nullptr;
    GCAP_EXPECT_OK(BeginRun(runtime_, GCAP_GRAPH_ID_NONE));
    GCAP_EXPECT_OK(gcap_runtime_fork(runtime_, 1, &forked));
    const Outcome outcome = fault.During([&] { return EndRun(runtime_, nullptr, /*synchronize=*/false); });
    EXPECT_EQ(outcome.code, GCAP_FAILED_PRECONDITION) << outcome.message;
    EXPECT_EQ(outcome.Names("cudaErrorUnknown"), fault.hit()) << outcome.message;
    Destroy();
  });
  EXPECT_EQ(walked.functions.count("cudaEventRecord"), 1u);
  EXPECT_EQ(walked.functions.count("cudaStreamSynchronize"), 0u);
}

// --- Memory ---------------------------------------------------------------------------------------------------------

TEST_F(RuntimeSim, MemoryOfAStreamThatCouldNotBeDrainedIsNeverHandedOutAgain) {
  constexpr size_t kBytes = 4096;
  Create(GraphOptions());
  void* lost = nullptr;
  std::thread([&] {
    GCAP_EXPECT_OK(TouchScratch(kBytes, GCAP_GRAPH_ID_NONE, &lost));
    gcap_sim_fail_nth("cudaStreamSynchronize", 1, cudaErrorLaunchFailure);  // at the end of this thread
  }).join();
  const char* const lost_begin = static_cast<char*>(lost);
  const gcap_run_resources_t run = Resources();
  std::vector<void*> blocks(600);  // more than the first region holds
  for (void*& block : blocks) {
    GCAP_ASSERT_OK(gcap_scratch_alloc(run.scratch, kBytes, run.stream, &block));
    const char* const begin = static_cast<char*>(block);
    EXPECT_TRUE(begin + kBytes <= lost_begin || begin >= lost_begin + kBytes);
  }
  GCAP_EXPECT_OK(gcap_scratch_validate(run.scratch));
  for (void* block : blocks) GCAP_EXPECT_OK(gcap_scratch_free(run.scratch, block));
}

// The first host allocations of a thread's first fork, of a plan and of the first run that a thread ever opens are
// gcap's own. (Later ones are the simulator's, which stops.)
TEST_F(RuntimeSim, RunsForksPlansAndPinnedMemorySurviveAShortHeap) {
  const auto expect_refusal = [](int skip, const std::function<gcap_status_t()>& call) {
    const HeapFailure failure(1, skip);
    GCAP_EXPECT_FAILS(call(), GCAP_RESOURCE_EXHAUSTED, "no host memory");
  };
  const PlannedWork planned = {0, [](void*, const gcap_run_resources_t*) { return gcap_status_t(nullptr); }, nullptr};
  gcap_options_t options = GraphOptions(1);
  options.share_graph_memory = true;
  for (int skip : {0, 1}) {
    gcap_stream_t* forked = nullptr;
    gcap_allocator_t* pinned = nullptr;
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    Create(options);
    std::thread([&] {
      Resources();
      expect_refusal(0, [&] { return BeginRun(runtime_, 0); });
      GCAP_EXPECT_OK(BeginRun(runtime_, GCAP_GRAPH_ID_NONE));
      expect_refusal(skip, [&] { return gcap_runtime_fork(runtime_, 1, &forked); });
      expect_refusal(0, [&] { return gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_PINNED, &pinned); });
      EXPECT_TRUE(forked == nullptr && pinned == nullptr);
      GCAP_EXPECT_OK(gcap_runtime_fork(runtime_, 1, &forked));
      GCAP_EXPECT_OK(gcap_runtime_join(runtime_));
      GCAP_EXPECT_OK(EndRun(runtime_, nullptr, /*synchronize=*/true));
      GCAP_EXPECT_OK(gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_PINNED, &pinned));
      GCAP_EXPECT_OK(TouchScratch(256, 0));
      expect_refusal(skip, [&] { return PlanOnRuntime(runtime_, &planned, 1, &plan); });
    }).join();
    Destroy();
  }
}

// Each of them is gcap's own: a create needs no memory of the simulator's.
TEST_F(RuntimeSim, CreateReportsEachLackOfHostMemoryAndLeavesNothing) {
  const gcap_options_t options = GraphOptions();
  Create(options);  // what is made once is there
  bool was_hit = true;
  for (int skip = 0; was_hit; ++skip) {
    SCOPED_TRACE("allocation " + std::to_string(skip));
    const long blocks = gcap::testing::LiveBlocks();
    gcap_runtime_t* runtime = runtime_;
    HeapFailure failure(1, skip);
    const Outcome outcome(gcap_runtime_create(&options, &runtime));
    was_hit = failure.hits() != 0;
    EXPECT_EQ(outcome.code, was_hit ? GCAP_RESOURCE_EXHAUSTED : GCAP_OK) << outcome.message;
    EXPECT_EQ(runtime == nullptr, was_hit);
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
    EXPECT_EQ(gcap::testing::LiveBlocks(), blocks);
    EXPECT_TRUE(was_hit || skip > 4) << "the runtime, its allocator, scratch, pool, forks and contexts";
  }
}

// What a capture asks for once it has begun, up to its reservation and its steps at the capture's end.
TEST_F(RuntimeSim, WithoutHostMemoryForAGraphsReservationTheCaptureFails) {
  Create(GraphOptions(1));
  // In their order; before them come the manager's, which has close steps too.
  std::vector<std::string> lacks = {"to note a graph's reservation", "a retained entry", "a close step"};
  for (int skip = 0; !lacks.empty(); ++skip) {
    ASSERT_LT(skip, 9);
    GCAP_EXPECT_OK(TouchScratch(1000, /*id=*/skip));
    std::unique_ptr<HeapFailure> failure;
    std::function<void()> begin_failing = [&] { failure = std::make_unique<HeapFailure>(1, skip); };
    gcap_sim_set_log(
        "cudaStreamBeginCapture", [](void* begin, const char*) { (*static_cast<std::function<void()>*>(begin))(); },
        &begin_failing);
    const Outcome begun(BeginRun(runtime_, skip));
    gcap_sim_set_log(nullptr, nullptr, nullptr);
    failure.reset();
    const Outcome outcome = begun.ok() ? Outcome(EndRun(runtime_, nullptr, /*synchronize=*/true)) : begun;
    EXPECT_EQ(outcome.code, begun.ok() ? GCAP_CAPTURE_INVALIDATED : GCAP_RESOURCE_EXHAUSTED);
    EXPECT_TRUE(outcome.Names("no host memory")) << outcome.message;
    if (outcome.Names(lacks.front())) lacks.erase(lacks.begin());
    GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime_)));
  }
}

// Another thread gets memory for the stream, and waits for the device. Was: the stream was destroyed under the call,
// and nobody was told.
TEST_F(RuntimeSim, AStreamThatMemoryIsGotForOutlivesItsThread) {
  constexpr size_t kBytes = 1 << 20;  // all that there may be
  const size_t streams = gcap_sim_live("stream");
  gcap_options_t options = GraphOptions();
  options.arena.memory_limit_bytes = kBytes;
  options.arena.extend_as_requested = true;
  Create(options);
  gcap_scratch_t* scratch = gcap_runtime_scratch(runtime_);
  void* block = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_alloc(gcap_scratch_allocator(scratch), kBytes, &block));
  GCAP_ASSERT_OK(gcap_scratch_free(scratch, block));  // of nobody knows whose use
  {
    const gcap::testing::RawStream busy;
    gcap::testing::Gate gate;
    gate.Hold(busy.get());
    const uint64_t waits = gcap_sim_calls("cudaDeviceSynchronize");
    gcap::testing::LogCatcher log;
    std::thread other;
    std::thread([&] {
      const gcap_run_resources_t run = Resources();
      other =
          std::thread([&block, run] { GCAP_EXPECT_OK(gcap_scratch_alloc(run.scratch, kBytes, run.stream, &block)); });
      while (gcap_sim_calls("cudaDeviceSynchronize") == waits) std::this_thread::yield();
    }).join();
    gate.Open();
    other.join();
    EXPECT_NE(log.text().find("memory is being got for it"), std::string::npos) << log.text();
    EXPECT_NE(log.text().find("may still be in use and is kept for ever"), std::string::npos) << log.text();
  }
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch, block));
  Destroy();
  EXPECT_EQ(gcap_sim_live("stream"), streams + 1);
}

// Without a run, of which the simulator keeps blocks of its own.
TEST_F(RuntimeSim, NothingIsLeftOfARuntime) {
  const long blocks = gcap::testing::LiveBlocks();
  gcap_allocator_t* pinned = nullptr;
  Create(GraphOptions());
  GCAP_EXPECT_OK(gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_PINNED, &pinned));
  Destroy();
  EXPECT_EQ(gcap::testing::LiveBlocks(), blocks);
}

}  // namespace
