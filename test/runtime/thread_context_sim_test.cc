// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Thread contexts, what only the simulator can show: that nothing leaks, that a look-up makes no CUDA call, and what
// becomes of a context when any one of its CUDA calls fails.

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "lib/runtime/thread_context.h"
#include "test/base/heap_failure.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"
#include "test/support/plain_runs.h"
#include "test/support/replays.h"

namespace {

using gcap::testing::Fault;
using gcap::testing::Outcome;
using gcap::testing::Walked;
using gcap::testing::WalkFaults;

gcap_thread_contexts_t* Create(std::atomic<int>* ends = nullptr) {
  gcap_thread_contexts_options_t options;
  gcap_thread_contexts_options_init(&options);
  options.graph.min_num_runs_before_capture = 0;
  if (ends != nullptr) {
    options.on_end = [](void* user, gcap_stream_t*) {
      ++*static_cast<std::atomic<int>*>(user);
      return gcap_status_t(nullptr);
    };
    options.user = ends;
  }
  gcap_thread_contexts_t* set = nullptr;
  GCAP_EXPECT_OK(gcap_thread_contexts_create(&options, &set));
  return set;
}

gcap_thread_context_t* Get(gcap_thread_contexts_t* set) {
  gcap_thread_context_t* context = nullptr;
  GCAP_EXPECT_OK(gcap_thread_contexts_get(set, &context));
  return context;
}

// Captures and launches a graph of one node that writes to `memory`.
void CaptureGraph(gcap_thread_context_t* context, void* memory) {
  const cudaStream_t stream = gcap_stream_handle(gcap_thread_context_stream(context));
  gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
  gcap_graph_run_kind_t kind;
  GCAP_ASSERT_OK(BeginPlain(graphs, 0, stream, &kind));
  EXPECT_EQ(cudaMemsetAsync(memory, 1, 64, stream), cudaSuccess);
  GCAP_ASSERT_OK(EndPlain(graphs, nullptr, /*synchronize=*/false));
}

TEST(ThreadContextsSim, NothingIsLeftOfAThreadThatExits) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  gcap_thread_contexts_t* set = Create();
  const size_t before = gcap_sim_live(nullptr);
  std::thread([&] {
    CaptureGraph(Get(set), memory);
    EXPECT_GT(gcap_sim_live(nullptr), before);
  }).join();
  EXPECT_EQ(gcap_sim_live(nullptr), before);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(ThreadContextsSim, NothingIsLeftOfASetThatEnds) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  const size_t before = gcap_sim_live(nullptr);
  gcap_thread_contexts_t* set = Create();
  CaptureGraph(Get(set), memory);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(gcap_sim_live(nullptr), before);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(ThreadContextsSim, CreateMakesNoCudaCallAndSteadyGetNeither) {
  std::vector<gcap_thread_contexts_t*> sets;
  uint64_t calls = gcap_sim_calls(nullptr);
  for (int i = 0; i < 6; ++i) sets.push_back(Create());
  EXPECT_EQ(gcap_sim_calls(nullptr), calls);
  for (gcap_thread_contexts_t* set : sets) Get(set);
  calls = gcap_sim_calls(nullptr);
  for (int round = 0; round < 3; ++round) {
    for (gcap_thread_contexts_t* set : sets) Get(set);
  }
  EXPECT_EQ(gcap_sim_calls(nullptr), calls);
  for (gcap_thread_contexts_t* set : sets) GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

// Those before the first CUDA call, on a thread of its own: the set, its affine set, the thread's record, the context's
// place in it, and the context. What comes after is the simulator's, which does not live without memory.
TEST(ThreadContextsSim, EachLackOfMemoryIsReportedAndLeavesNothing) {
  constexpr int kAllocations = 5;
  const size_t before = gcap_sim_live(nullptr);
  gcap_thread_contexts_options_t options;
  gcap_thread_contexts_options_init(&options);
  for (int skip = 0; skip < kAllocations; ++skip) {
    SCOPED_TRACE("allocation " + std::to_string(skip));
    std::thread([&] {
      gcap_thread_contexts_t* set = nullptr;
      gcap_thread_context_t* context = nullptr;
      {
        gcap::testing::HeapFailure failure(/*count=*/1, skip);
        Outcome outcome(gcap_thread_contexts_create(&options, &set));
        if (outcome.ok()) outcome = Outcome(gcap_thread_contexts_get(set, &context));
        EXPECT_EQ(failure.hits(), 1);
        EXPECT_EQ(outcome.code, GCAP_RESOURCE_EXHAUSTED) << outcome.message;
        EXPECT_EQ(set == nullptr, skip < 2);
        EXPECT_EQ(context, nullptr);
      }
      if (set == nullptr) set = Create();
      EXPECT_EQ(gcap_thread_contexts_count(set), 0u);
      EXPECT_NE(Get(set), nullptr);
      GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
    }).join();
    EXPECT_EQ(gcap_sim_live(nullptr), before);
  }
}

TEST(ThreadContextsSim, GetSurvivesAFailureOfEachOfItsCalls) {
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_thread_contexts_t* set = Create();
    gcap_thread_context_t* context = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_thread_contexts_get(set, &context); });
    EXPECT_EQ(outcome.ok(), !fault.hit()) << outcome.message;
    EXPECT_EQ(outcome.cuda_error, fault.hit() ? cudaErrorUnknown : cudaSuccess);
    EXPECT_EQ(context == nullptr, fault.hit());
    EXPECT_EQ(gcap_thread_contexts_count(set), fault.hit() ? 0u : 1u);
    EXPECT_NE(Get(set), nullptr) << "the next try succeeds";
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  });
  EXPECT_GE(walked.calls, 3u);
}

// The manager of a context is refused, and then the stream that was made for the context cannot be ended.
TEST(ThreadContextsSim, WhatMakesAContextFailIsToldBeforeWhatItsEndLost) {
  gcap_thread_contexts_options_t options;
  gcap_thread_contexts_options_init(&options);
  options.graph.policy = static_cast<gcap_graph_policy_t>(-1);
  gcap_thread_contexts_t* set = nullptr;
  GCAP_ASSERT_OK(gcap_thread_contexts_create(&options, &set));
  const size_t streams = gcap_sim_live("stream");
  gcap_thread_context_t* context = nullptr;
  gcap_sim_fail_nth("cudaStreamDestroy", 1, cudaErrorUnknown);
  const Outcome outcome(gcap_thread_contexts_get(set, &context));
  EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT) << outcome.message;
  EXPECT_LT(outcome.message.find("graph policy is -1"), outcome.message.find("cudaStreamDestroy")) << outcome.message;
  EXPECT_TRUE(outcome.Names("cudaStreamDestroy")) << outcome.message;
  EXPECT_EQ(gcap_sim_live("stream"), streams + 1);
  EXPECT_EQ(context, nullptr);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

// A context whose stream cannot be made: what is left is the same as before.
TEST(ThreadContextsSim, AContextThatCannotBeMadeLeavesNoBlock) {
  long blocks = 0;
  for (int i = 0; i < 2; ++i) {  // what the thread notes of the first set stays with the thread
    blocks = gcap::testing::LiveBlocks();
    gcap_thread_contexts_t* set = Create();
    gcap_thread_context_t* context = nullptr;
    gcap_sim_fail_nth("cudaStreamCreateWithFlags", 1, cudaErrorUnknown);
    GCAP_EXPECT_FAILS(gcap_thread_contexts_get(set, &context), GCAP_CUDA_ERROR, "cudaStreamCreateWithFlags");
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  }
  EXPECT_EQ(gcap::testing::LiveBlocks(), blocks);
}

TEST(ThreadContextsSim, AUserStreamThatCannotBeWrappedMakesNoContext) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  gcap_thread_contexts_options_t options;
  gcap_thread_contexts_options_init(&options);
  options.shared = options.has_user_stream = true;
  options.user_stream = stream;
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_thread_contexts_t* set = nullptr;
    GCAP_ASSERT_OK(gcap_thread_contexts_create(&options, &set));
    gcap_thread_context_t* context = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_thread_contexts_get(set, &context); });
    EXPECT_EQ(outcome.ok(), !fault.hit()) << outcome.message;
    EXPECT_EQ(context == nullptr, fault.hit());
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  });
  EXPECT_GE(walked.calls, 1u);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// Whatever cannot be ended is kept, on purpose; then the status says so. The set itself is gone in every case.
TEST(ThreadContextsSim, DestroySurvivesAFailureOfEachOfItsCalls) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  const Walked walked = WalkFaults([&](Fault& fault) {
    std::atomic<int> ends{0};
    gcap_thread_contexts_t* set = Create(&ends);
    CaptureGraph(Get(set), memory);
    const Outcome outcome = fault.During([&] { return gcap_thread_contexts_destroy(set); });
    // Whether a stream captures is asked before anything ends, and again by the end itself.
    const bool recovers = fault.Is("cudaStreamIsCapturing") && outcome.ok();
    EXPECT_EQ(outcome.code, fault.hit() && !recovers ? GCAP_LEAKED : GCAP_OK) << outcome.message;
    EXPECT_EQ(outcome.cuda_error, outcome.ok() ? cudaSuccess : cudaErrorUnknown);
    EXPECT_LE(ends, 1);
    if (!outcome.ok()) fault.AllowKept();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // the work of a stream that is kept may still run
    set = Create();
    CaptureGraph(Get(set), memory);
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  });
  EXPECT_GE(walked.calls, 8u);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(ThreadContextsSim, StreamThatCannotBeDrainedIsKeptAndOnEndNotTold) {
  std::atomic<int> ends{0};
  const size_t streams = gcap_sim_live("stream");
  gcap_thread_contexts_t* set = Create(&ends);
  Get(set);
  gcap_sim_fail_nth("cudaStreamSynchronize", 1, cudaErrorLaunchFailure);
  GCAP_EXPECT_FAILS(gcap_thread_contexts_destroy(set), GCAP_LEAKED, "kept for ever");
  EXPECT_EQ(ends, 0);
  EXPECT_EQ(gcap_sim_live("stream"), streams + 1) << "memory tagged with the stream must not look free";
}

TEST(ThreadContextsSim, StreamOfGraphsThatMayStillRunIsKeptToo) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  std::atomic<int> ends{0};
  const size_t streams = gcap_sim_live("stream");
  gcap_thread_contexts_t* set = Create(&ends);
  CaptureGraph(Get(set), memory);
  gcap_sim_fail_nth("cudaEventSynchronize", 1, cudaErrorLaunchFailure);
  GCAP_EXPECT_FAILS(gcap_thread_contexts_destroy(set), GCAP_LEAKED, "kept for ever");
  EXPECT_EQ(ends, 0);
  EXPECT_EQ(gcap_sim_live("stream"), streams + 1);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(ThreadContextsSim, ThreadThatCannotEndItsContextExitsAllTheSame) {
  std::atomic<int> ends{0};
  gcap_thread_contexts_t* set = Create(&ends);
  std::thread([&] {
    Get(set);
    gcap_sim_fail_nth("cudaStreamSynchronize", 1, cudaErrorLaunchFailure);
  }).join();
  EXPECT_EQ(ends, 0);
  EXPECT_EQ(gcap_thread_contexts_count(set), 0u);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
}

// Nobody gets the status of a thread's exit: the log must tell, and the thread goes all the same.
TEST(ThreadContextsSim, ExitOfAThreadSurvivesAFailureOfEachOfItsCalls) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_thread_contexts_t* set = Create();
    gcap::testing::LogCatcher log;
    std::thread([&] {
      CaptureGraph(Get(set), memory);
      fault.Arm();
    }).join();
    fault.Disarm();
    EXPECT_EQ(log.text().find("at the end of a thread, its thread context: ") != std::string::npos, fault.hit())
        << log.text();
    EXPECT_EQ(log.text().find("cudaErrorUnknown") != std::string::npos, fault.hit()) << log.text();
    EXPECT_EQ(gcap_thread_contexts_count(set), 0u);
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
    if (fault.hit()) fault.AllowKept();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // the work of a stream that is kept may still run
  });
  EXPECT_GE(walked.calls, 8u);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(ThreadContextsSim, DeviceThatIsLostIsReportedAndTheSetEndsAllTheSame) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  gcap_thread_contexts_t* set = Create();
  gcap_thread_contexts_t* empty_set = Create();
  gcap_thread_context_t* context = Get(set);
  CaptureGraph(context, memory);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const gcap_sim_fault_t lost = {"cudaGraphLaunch", 1, 0, cudaErrorIllegalAddress, /*sticky=*/1};
  gcap_sim_inject(&lost);
  GCAP_EXPECT_FAILS(Replay(gcap_thread_context_graphs(context), 0, /*synchronize=*/true), GCAP_DEVICE_LOST,
                    "cudaGraphLaunch");
  GCAP_EXPECT_FAILS(gcap_thread_contexts_get(empty_set, &context), GCAP_DEVICE_LOST, "cudaErrorIllegalAddress");
  EXPECT_EQ(context, nullptr);
  GCAP_EXPECT_FAILS(gcap_thread_contexts_destroy(set), GCAP_LEAKED, "cudaErrorIllegalAddress");
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(empty_set));
  gcap_sim_clear_faults();
  set = Create();
  CaptureGraph(Get(set), memory);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

// --- Schedules ------------------------------------------------------------------------------------------------------

constexpr uint64_t kSchedules = 500;
constexpr int kRuns = 5;        // eager, captured, replayed
constexpr size_t kBytes = 256;  // of the input, and of each output

// Two threads run the same set on one input. Each chains two copies, input to middle to output, and leaves its mark in
// the output before each run, so that a run that did nothing shows.
struct Duo {
  gcap_thread_contexts_t* set;
  unsigned char* input;
  unsigned char* outputs[2];  // middle, then output
  int wrong[2];
};

int Issue(const Duo& duo, size_t index, cudaStream_t stream) {
  unsigned char* middle = duo.outputs[index];
  return (cudaMemcpyAsync(middle, duo.input, kBytes, cudaMemcpyDeviceToDevice, stream) != cudaSuccess) +
         (cudaMemcpyAsync(middle + kBytes, middle, kBytes, cudaMemcpyDeviceToDevice, stream) != cudaSuccess);
}

int RunOnce(const Duo& duo, size_t index, gcap_graph_manager_t* graphs, cudaStream_t stream) {
  if (gcap_graph_manager_is_captured(graphs, 0)) {
    return !Outcome(Replay(graphs, 0, /*synchronize=*/false)).ok();
  }
  gcap_graph_run_kind_t kind;
  if (!Outcome(BeginPlain(graphs, 0, stream, &kind)).ok()) return 1;
  const int wrong = Issue(duo, index, stream);
  return wrong + !Outcome(EndPlain(graphs, nullptr, /*synchronize=*/false)).ok();
}

void RunOneOfDuo(Duo* duo, size_t index) {
  gcap_sim_turns_join(index);
  int wrong = 0;
  gcap_thread_context_t* context = nullptr;
  wrong += !Outcome(gcap_thread_contexts_get(duo->set, &context)).ok();
  gcap_stream_t* stream = gcap_thread_context_stream(context);
  const cudaStream_t handle = gcap_stream_handle(stream);
  unsigned char seen[kBytes];
  for (int run = 0; run < kRuns; ++run) {
    wrong += cudaMemsetAsync(duo->outputs[index], 0xee, 2 * kBytes, handle) != cudaSuccess;
    wrong += RunOnce(*duo, index, gcap_thread_context_graphs(context), handle);
    wrong += cudaMemcpyAsync(seen, duo->outputs[index] + kBytes, kBytes, cudaMemcpyDeviceToHost, handle) != cudaSuccess;
    wrong += !Outcome(gcap_stream_synchronize(stream)).ok();
    for (size_t i = 0; i < kBytes; ++i) wrong += seen[i] != static_cast<unsigned char>(i);
  }
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(gcap_thread_context_graphs(context), 0, &info);
  wrong += info.eager_runs != 1 || info.captures != 1 || info.replays != kRuns - 1;
  duo->wrong[index] = wrong;
  gcap_sim_turns_leave();
}

// The first thread's context ends with it, beside the second thread's runs; the second's ends with the set.
int RunDuo(void*) {
  Duo duo = {};
  gcap_thread_contexts_options_t options;
  gcap_thread_contexts_options_init(&options);
  options.graph.min_num_runs_before_capture = 1;
  int wrong = !Outcome(gcap_thread_contexts_create(&options, &duo.set)).ok();
  unsigned char bytes[kBytes];
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<unsigned char>(i);
  wrong += cudaMalloc(reinterpret_cast<void**>(&duo.input), kBytes) != cudaSuccess;
  wrong += cudaMemcpy(duo.input, bytes, kBytes, cudaMemcpyHostToDevice) != cudaSuccess;
  for (unsigned char*& output : duo.outputs) {
    wrong += cudaMalloc(reinterpret_cast<void**>(&output), 2 * kBytes) != cudaSuccess;
  }
  gcap_sim_turns_begin(2);
  std::atomic<int> done{0};
  std::atomic<bool> released{false};
  std::thread first([&] {
    RunOneOfDuo(&duo, 0);
    ++done;
  });
  std::thread second([&] {
    RunOneOfDuo(&duo, 1);
    ++done;
    while (!released) std::this_thread::yield();
  });
  first.join();
  while (done < 2) std::this_thread::yield();
  wrong += gcap_thread_contexts_count(duo.set) != 1;
  wrong += !Outcome(gcap_thread_contexts_destroy(duo.set)).ok();
  released = true;
  second.join();
  for (void* memory : {duo.input, duo.outputs[0], duo.outputs[1]}) wrong += cudaFree(memory) != cudaSuccess;
  return wrong + duo.wrong[0] + duo.wrong[1];
}

TEST(ThreadContextsSim, ThreadsWithOneInputComputeRightUnderEverySchedule) {
  uint64_t failing = 0;
  EXPECT_EQ(gcap_sim_explore(RunDuo, nullptr, 0, kSchedules, &failing), 0) << "seed " << failing;
}

}  // namespace
