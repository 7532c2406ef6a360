// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The EP runtime under faults: its creation, its end, and the memory of a stream that could not be drained.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "gcap/graph_plan.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/log.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/ep/test_ep.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/replays.h"
#include "test/support/runs.h"

namespace {

using gcap::testing::Fault;
using gcap::testing::GraphOptions;
using gcap::testing::Outcome;
using gcap::testing::Walked;
using gcap::testing::WalkFaults;

// One run that writes to a block of scratch, and gives its address.
gcap_status_t TouchScratch(gcap_runtime_t* runtime, size_t bytes, void** out_block, int id = GCAP_GRAPH_ID_NONE) {
  GCAP_RETURN_IF_ERROR(BeginRun(runtime, id));
  gcap_run_resources_t run;
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(runtime, &run));
  gcap_status_t status = gcap_scratch_alloc(run.scratch, bytes, run.stream, out_block);
  if (status == nullptr) {
    status = GCAP_CUDA(cudaMemsetAsync(*out_block, 1, bytes, gcap_stream_handle(run.stream)));
    status = gcap_status_join(status, gcap_scratch_free(run.scratch, *out_block));
  }
  return EndRun(runtime, status, /*synchronize=*/false);
}

TEST(RuntimeSim, CreateSurvivesAFailureOfEachOfItsCalls) {
  const gcap_options_t options = GraphOptions();
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_runtime_t* runtime = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_runtime_create(&options, &runtime); });
    EXPECT_EQ(outcome.ok(), !fault.hit()) << outcome.message;
    EXPECT_EQ(runtime == nullptr, fault.hit());
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
  });
  EXPECT_GE(walked.calls, 1u);
}

// A failing cudaFree is told after an allocation that found its memory all the same. The sink's own line of the trace
// came after that of the allocation, which was written after the log: it waited for ever.
TEST(RuntimeSim, ALogSinkMayTakeScratchWithATraceFile) {
  gcap_options_t options;
  gcap_options_init(&options);
  std::snprintf(options.trace_file, sizeof(options.trace_file), "%s/sink.trace", std::getenv("TEST_TMPDIR"));
  options.arena.memory_limit_bytes = 1 << 20;
  options.arena.extend_as_requested = true;
  options.arena.initial_chunk_bytes = options.arena.initial_growth_chunk_bytes = 256;
  gcap_runtime_t* runtime = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime));
  gcap_run_resources_t run;
  GCAP_ASSERT_OK(gcap_runtime_get_resources(runtime, &run));
  void* idle = nullptr;
  void* used = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_alloc(run.scratch, 512 << 10, run.stream, &idle));
  GCAP_ASSERT_OK(gcap_scratch_alloc(run.scratch, 100 << 10, run.stream, &used));
  GCAP_EXPECT_OK(gcap_scratch_free(run.scratch, idle));
  GCAP_EXPECT_OK(gcap_stream_synchronize(run.stream));
  GCAP_EXPECT_OK(gcap_scratch_free(run.scratch, used));
  int num_logged = 0;
  const std::function<void()> sink = [&] {
    if (++num_logged > 1) return;
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(run.scratch, 300, run.stream, &ptr));
    GCAP_EXPECT_OK(gcap_scratch_free(run.scratch, ptr));
  };
  gcap_log_set_sink(
      [](void* user, gcap_log_level_t, const char*) { (*static_cast<const std::function<void()>*>(user))(); },
      const_cast<std::function<void()>*>(&sink), GCAP_LOG_WARNING);
  gcap_sim_fail_nth("cudaFree", 1, cudaErrorUnknown);
  void* ptr = nullptr;
  GCAP_EXPECT_OK(gcap_scratch_alloc(run.scratch, 900 << 10, run.stream, &ptr));
  gcap_sim_clear_faults();
  gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING);
  EXPECT_GE(num_logged, 1);
  GCAP_EXPECT_OK(gcap_scratch_free(run.scratch, ptr));
  GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
}

// A kernel loses its block in a capture that it breaks, and gcap cannot read the red zones there: the block was live
// for ever, and the runtime could not end.
TEST(RuntimeSim, ABlockThatAKernelLosesInABrokenCaptureCostsNothing) {
  gcap_options_t options = GraphOptions(0);
  options.arena.red_zones = options.arena.poison_on_free = true;
  gcap_runtime_t* runtime = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime));
  gcap_run_resources_t run;
  GCAP_ASSERT_OK(gcap_runtime_get_resources(runtime, &run));
  void* lost = nullptr;
  GCAP_ASSERT_OK(TouchScratch(runtime, 1000, &lost));  // the warm-up
  GCAP_ASSERT_OK(BeginRun(runtime, 0));
  ASSERT_TRUE(gcap_thread_is_capturing());
  GCAP_ASSERT_OK(gcap_scratch_alloc(run.scratch, 1000, run.stream, &lost));
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaErrorStreamCaptureUnsupported);
  static_cast<void>(cudaGetLastError());
  EXPECT_EQ(Outcome(EndRun(runtime, nullptr, /*synchronize=*/true)).code, GCAP_CAPTURE_INVALIDATED);
  GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
}

// An exception tells that the run failed; the device goes on.
TEST(RuntimeSim, ARunThatIsLeftByAnExceptionDoesNotWait) {
  const gcap_options_t options = GraphOptions();
  gcap_runtime_t* runtime = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime));
  bool throws = false;
  const gcap_work_t work = [](void* user, const gcap_run_resources_t*) -> gcap_status_t {
    if (*static_cast<bool*>(user)) throw 7;
    return nullptr;
  };
  const auto waits = [] {
    return gcap_sim_calls("cudaStreamSynchronize") + gcap_sim_calls("cudaEventSynchronize") +
           gcap_sim_calls("cudaDeviceSynchronize");
  };
  const uint64_t at_first = waits();
  GCAP_EXPECT_OK(RunOnRuntime(runtime, GCAP_GRAPH_ID_NONE, work, &throws, /*synchronize=*/true));
  const uint64_t before = waits();
  EXPECT_GT(before, at_first) << "what is counted is what waits";
  throws = true;
  int thrown = 0;
  try {
    gcap_status_ignore(RunOnRuntime(runtime, GCAP_GRAPH_ID_NONE, work, &throws, /*synchronize=*/true));
  } catch (int number) {
    thrown = number;
  }
  EXPECT_EQ(thrown, 7);
  EXPECT_EQ(waits(), before);
  GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
}

TEST(RuntimeSim, ResourcesSurviveAFailureOfEachOfTheirCalls) {
  const gcap_options_t options = GraphOptions();
  WalkFaults([&](Fault& fault) {
    gcap_runtime_t* runtime = nullptr;
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime));
    gcap_run_resources_t resources;
    const Outcome outcome = fault.During([&] { return gcap_runtime_get_resources(runtime, &resources); });
    EXPECT_EQ(outcome.ok(), !fault.hit()) << outcome.message;
    EXPECT_EQ(resources.stream == nullptr, fault.hit());
    void* block = nullptr;
    GCAP_EXPECT_OK(TouchScratch(runtime, 256, &block));
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
  });
}

// A thread's first call makes the thread's stream, whichever call that is.
TEST(RuntimeSim, EachCallOfAThreadThatCanHaveNoStreamFails) {
  const gcap_options_t options = GraphOptions();
  gcap_runtime_t* runtime = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime));
  const std::function<gcap_status_t()> calls[] = {
      [&] { return BeginRun(runtime, 0); },
      [&] { return EndRun(runtime, nullptr, /*synchronize=*/false); },
      [&] { return TryReplay(runtime, 0, /*synchronize=*/false, nullptr); },
      [&] { return gcap_runtime_explain(runtime, 0, GCAP_GRAPH_WHY_CAPTURE_FAILED); },
      [&] { return gcap_runtime_release(runtime, 0); },
      [&] { return gcap_runtime_synchronize(runtime); },
      [&] { return gcap_runtime_join(runtime); },
  };
  std::thread([&] {
    for (const auto& call : calls) {
      SCOPED_TRACE(&call - calls);
      gcap_sim_fail_nth("cudaStreamCreateWithFlags", 1, cudaErrorUnknown);
      GCAP_EXPECT_FAILS(call(), GCAP_CUDA_ERROR, "cudaStreamCreateWithFlags");
    }
    gcap_sim_fail_nth("cudaStreamCreateWithFlags", 1, cudaErrorUnknown);
    EXPECT_FALSE(gcap_runtime_is_captured(runtime, 0));
    gcap_sim_fail_nth("cudaStreamCreateWithFlags", 1, cudaErrorUnknown);
    const gcap_graph_info_t info = GraphInfo(runtime, 0);
    EXPECT_EQ(info.state, GCAP_GRAPH_COLD);
    gcap_sim_clear_faults();
    void* block = nullptr;
    GCAP_EXPECT_OK(TouchScratch(runtime, 256, &block));
  }).join();
  GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
}

// A stream that could not enter the capture is not handed out as one of its streams.
TEST(RuntimeSim, AForkInACaptureSurvivesAFailureOfEachOfItsCalls) {
  gcap_options_t options = GraphOptions(1);
  options.graph.capture.ledger_calls = 0;  // its questions are no part of the fork
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_runtime_t* runtime = nullptr;
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime));
    for (const bool captures : {false, true}) {
      gcap_stream_t* forked = nullptr;
      GCAP_EXPECT_OK(BeginRun(runtime, 0));
      EXPECT_EQ(gcap_thread_is_capturing(), captures);
      if (captures) fault.Arm();
      const Outcome outcome(gcap_runtime_fork(runtime, 1, &forked));
      fault.Disarm();
      EXPECT_EQ(outcome.ok(), !fault.hit());
      EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
      EXPECT_EQ(forked != nullptr, outcome.ok());
      gcap_status_t joined = outcome.ok() ? gcap_runtime_join(runtime) : nullptr;
      const Outcome ended(EndRun(runtime, joined, /*synchronize=*/true));
      EXPECT_EQ(ended.code, fault.hit() ? GCAP_CAPTURE_INVALIDATED : GCAP_OK) << ended.message;
    }
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
  });
  EXPECT_EQ(walked.functions.count("cudaStreamWaitEvent"), 1u);
}

// Whatever cannot be ended is kept, with the memory that it may use; then the status says so.
TEST(RuntimeSim, DestroySurvivesAFailureOfEachOfItsCalls) {
  const gcap_options_t options = GraphOptions();
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_runtime_t* runtime = nullptr;
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime));
    void* block = nullptr;
    GCAP_EXPECT_OK(TouchScratch(runtime, 256, &block));
    const Outcome outcome = fault.During([&] { return gcap_runtime_destroy(runtime); });
    EXPECT_TRUE(fault.hit() || outcome.ok()) << outcome.message;
    EXPECT_TRUE(outcome.ok() || outcome.cuda_error == cudaErrorUnknown) << outcome.message;
    EXPECT_TRUE(outcome.ok() || outcome.code == GCAP_LEAKED) << "the runtime is gone: " << outcome.message;
    if (!outcome.ok()) fault.AllowKept();
  });
  EXPECT_GE(walked.calls, 6u);
}

// Two graphs share their scratch. Whatever fails while the second one is captured, the first one has its own.
TEST(RuntimeSim, PlanSurvivesAFailureOfEachOfItsCalls) {
  for (const bool shared : {false, true}) {
    gcap_options_t options = GraphOptions(1);
    options.share_graph_memory = shared;
    const gcap_work_t work = [](void*, const gcap_run_resources_t* run) -> gcap_status_t {
      void* block = nullptr;
      GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, 1 << 10, run->stream, &block));
      gcap_status_t status = GCAP_CUDA(cudaMemsetAsync(block, 1, 1 << 10, gcap_stream_handle(run->stream)));
      return gcap_status_join(status, gcap_scratch_free(run->scratch, block));
    };
    const PlannedWork runs[] = {{0, work, nullptr}, {1, work, nullptr}};
    WalkFaults([&](Fault& fault) {
      gcap_runtime_t* runtime = nullptr;
      GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime));
      for (const auto& run : runs) GCAP_EXPECT_OK(RunOnRuntime(runtime, run.id, work, nullptr, true));
      gcap_graph_plan_t plan;
      gcap_graph_plan_init(&plan);
      const Outcome outcome = fault.During([&] { return PlanOnRuntime(runtime, runs, 2, &plan); });
      EXPECT_TRUE(fault.hit() || outcome.ok()) << outcome.message;
      EXPECT_EQ(plan.graphs, outcome.ok() ? 2u : 0u);
      EXPECT_EQ(plan.retained_bytes, outcome.ok() ? (shared ? 1u : 2u) << 10 : 0u);
      GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime)));
      for (const auto& run : runs) GCAP_EXPECT_OK(RunOnRuntime(runtime, run.id, work, nullptr, true));
      EXPECT_TRUE(gcap_runtime_is_captured(runtime, 0));
      EXPECT_TRUE(gcap_runtime_is_captured(runtime, 1));
      GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
    });
  }
}

TEST(RuntimeSim, SharedCaptureSurvivesAFailureOfEachOfItsCalls) {
  constexpr size_t kBytes = size_t{1} << 21;  // more than a first region
  gcap_options_t options = GraphOptions(1);
  options.share_graph_memory = true;
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_runtime_t* runtime = nullptr;
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime));
    void* block = nullptr;
    for (int id : {0, 1, 0}) GCAP_EXPECT_OK(TouchScratch(runtime, (id + 1) * kBytes, &block, id));
    const Outcome outcome = fault.During([&] { return TouchScratch(runtime, 2 * kBytes, &block, 1); });
    EXPECT_TRUE(fault.hit() || outcome.ok()) << outcome.message;
    gcap_graph_info_t info[2];
    for (int id : {0, 1}) info[id] = GraphInfo(runtime, id);
    EXPECT_EQ(info[0].state, GCAP_GRAPH_CAPTURED);
    EXPECT_EQ(info[1].bytes, info[1].state == GCAP_GRAPH_CAPTURED ? info[0].bytes : 0u) << outcome.message;
    EXPECT_GE(info[0].bytes + info[1].bytes, kBytes);
    bool replayed = false;
    GCAP_EXPECT_OK(TryReplay(runtime, 0, /*synchronize=*/true, &replayed));
    EXPECT_TRUE(replayed);
    GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime)));
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
  });
  EXPECT_GE(walked.calls, 5u);
}

TEST(RuntimeSim, MemoryOfAStreamThatCouldNotBeDrainedIsNeverHandedOutAgain) {
  constexpr size_t kBytes = 4096;
  const gcap_options_t options = GraphOptions();
  gcap_runtime_t* runtime = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime));
  void* lost = nullptr;
  std::thread([&] {
    GCAP_EXPECT_OK(TouchScratch(runtime, kBytes, &lost));
    gcap_sim_fail_nth("cudaStreamSynchronize", 1, cudaErrorLaunchFailure);  // at the end of this thread
  }).join();
  const char* const lost_begin = static_cast<char*>(lost);

  gcap_run_resources_t run;
  GCAP_ASSERT_OK(gcap_runtime_get_resources(runtime, &run));
  std::vector<void*> blocks;
  for (int i = 0; i < 600; ++i) {  // more than the first region holds
    void* block = nullptr;
    GCAP_ASSERT_OK(gcap_scratch_alloc(run.scratch, kBytes, run.stream, &block));
    const char* const begin = static_cast<char*>(block);
    EXPECT_TRUE(begin + kBytes <= lost_begin || begin >= lost_begin + kBytes);
    blocks.push_back(block);
  }
  GCAP_EXPECT_OK(gcap_scratch_validate(run.scratch));
  for (void* block : blocks) GCAP_EXPECT_OK(gcap_scratch_free(run.scratch, block));
  GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
}

// The first host allocations of a thread's first fork are gcap's own. (Later ones are the simulator's, which stops.)
TEST(RuntimeSim, AForkAndPinnedMemorySurviveAShortHeap) {
  for (int skip : {0, 1}) {
    gcap_runtime_t* runtime = nullptr;
    gcap_stream_t* forked = nullptr;
    gcap_allocator_t* pinned = nullptr;
    GCAP_ASSERT_OK(gcap_runtime_create(nullptr, &runtime));
    GCAP_EXPECT_OK(BeginRun(runtime, GCAP_GRAPH_ID_NONE));
    {
      const gcap::testing::HeapFailure failure(1, skip);
      GCAP_EXPECT_FAILS(gcap_runtime_fork(runtime, 1, &forked), GCAP_RESOURCE_EXHAUSTED, "no host memory");
      EXPECT_EQ(forked, nullptr);
    }
    {
      const gcap::testing::HeapFailure failure;
      GCAP_EXPECT_FAILS(gcap_runtime_get_allocator(runtime, GCAP_MEMORY_PINNED, &pinned), GCAP_RESOURCE_EXHAUSTED,
                        "no host memory");
      EXPECT_EQ(pinned, nullptr);
    }
    GCAP_EXPECT_OK(gcap_runtime_fork(runtime, 1, &forked));
    GCAP_EXPECT_OK(gcap_runtime_join(runtime));
    GCAP_EXPECT_OK(EndRun(runtime, nullptr, /*synchronize=*/true));
    GCAP_EXPECT_OK(gcap_runtime_get_allocator(runtime, GCAP_MEMORY_PINNED, &pinned));
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
  }
}

// The first host allocations of a plan are gcap's own, and so is that of the first run that a thread ever opens.
TEST(RuntimeSim, ARunAndAPlanSurviveAShortHeap) {
  gcap_options_t options = GraphOptions(1);
  options.share_graph_memory = true;
  gcap_runtime_t* runtime = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime));
  gcap_run_resources_t run;
  GCAP_ASSERT_OK(gcap_runtime_get_resources(runtime, &run));
  {
    const gcap::testing::HeapFailure failure;
    GCAP_EXPECT_FAILS(BeginRun(runtime, 0), GCAP_RESOURCE_EXHAUSTED, "no host memory");
  }
  void* block = nullptr;
  GCAP_EXPECT_OK(TouchScratch(runtime, 256, &block, 0));
  const gcap_work_t work = [](void*, const gcap_run_resources_t*) { return gcap_status_t(nullptr); };
  const PlannedWork planned = {0, work, nullptr};
  for (const int skip : {0, 1}) {
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    const gcap::testing::HeapFailure failure(1, skip);
    GCAP_EXPECT_FAILS(PlanOnRuntime(runtime, &planned, 1, &plan), GCAP_RESOURCE_EXHAUSTED, "no host memory for a plan");
  }
  GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
}

// Without a run, of which the simulator keeps blocks of its own.
TEST(RuntimeSim, NothingIsLeftOfARuntime) {
  const gcap_options_t options = GraphOptions(1);
  const long blocks = gcap::testing::LiveBlocks();
  gcap_runtime_t* runtime = nullptr;
  gcap_allocator_t* pinned = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime));
  GCAP_EXPECT_OK(gcap_runtime_get_allocator(runtime, GCAP_MEMORY_PINNED, &pinned));
  GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
  EXPECT_EQ(gcap::testing::LiveBlocks(), blocks);
}

// Streams that were not joined are ordered before what comes next. Only where that fails are they waited for.
TEST(RuntimeSim, TheEndOfARunThatDoesNotJoinWaitsOnlyWhereItCannotOrder) {
  const gcap_options_t options = GraphOptions(1);
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_runtime_t* runtime = nullptr;
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime));
    gcap_stream_t* forked = nullptr;
    GCAP_EXPECT_OK(BeginRun(runtime, GCAP_GRAPH_ID_NONE));
    GCAP_EXPECT_OK(gcap_runtime_fork(runtime, 1, &forked));
    const Outcome outcome = fault.During([&] { return EndRun(runtime, nullptr, /*synchronize=*/false); });
    EXPECT_EQ(outcome.code, GCAP_FAILED_PRECONDITION) << outcome.message;
    EXPECT_EQ(outcome.Names("cudaErrorUnknown"), fault.hit()) << outcome.message;
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
  });
  EXPECT_EQ(walked.functions.count("cudaEventRecord"), 1u);
  EXPECT_EQ(walked.functions.count("cudaStreamSynchronize"), 0u);
}

}  // namespace
