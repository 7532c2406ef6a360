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
#include "test/base/device_work.h"
#include "test/base/heap_failure.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"
#include "test/support/plain_runs.h"

namespace {

using gcap::testing::CopyJob;
using gcap::testing::Fault;
using gcap::testing::HeapFailure;
using gcap::testing::LogCatcher;
using gcap::testing::Outcome;
using gcap::testing::RawStream;
using gcap::testing::Walked;
using gcap::testing::WalkFaults;

gcap_thread_context_t* Get(gcap_thread_contexts_t* set) {
  gcap_thread_context_t* context = nullptr;
  GCAP_EXPECT_OK(gcap_thread_contexts_get(set, &context));
  return context;
}

class ThreadContextsSim : public ::testing::Test {
 protected:
  ThreadContextsSim() {
    gcap_thread_contexts_options_init(&options_);
    options_.graph.min_num_runs_before_capture = 0;
    options_.on_end = [](void* ends, gcap_stream_t*) {
      ++*static_cast<std::atomic<int>*>(ends);
      return gcap_status_t(nullptr);
    };
    options_.user = &ends_;
  }
  gcap_thread_contexts_t* Create() {
    gcap_thread_contexts_t* set = nullptr;
    GCAP_EXPECT_OK(gcap_thread_contexts_create(&options_, &set));
    return set;
  }
  // Captures and launches a graph on the calling thread's context.
  void CaptureGraph(gcap_thread_contexts_t* set) {
    const cudaStream_t stream = gcap_stream_handle(gcap_thread_context_stream(Get(set)));
    gcap_graph_manager_t* graphs = gcap_thread_context_graphs(Get(set));
    gcap_graph_run_kind_t kind;
    GCAP_ASSERT_OK(BeginPlain(graphs, 0, stream, &kind));
    GCAP_EXPECT_CUDA(job_.Issue(stream));
    GCAP_ASSERT_OK(EndPlain(graphs, nullptr, /*synchronize=*/false));
  }
  gcap_thread_contexts_options_t options_;
  std::atomic<int> ends_{0};
  CopyJob job_;
};

TEST_F(ThreadContextsSim, NothingIsLeftOfThreadsAndSetsThatEnd) {
  const size_t before = gcap_sim_live(nullptr);
  gcap_thread_contexts_t* set = Create();
  std::thread([&] {
    CaptureGraph(set);
    EXPECT_GT(gcap_sim_live(nullptr), before);
  }).join();
  EXPECT_EQ(gcap_sim_live(nullptr), before);
  CaptureGraph(set);
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  EXPECT_EQ(gcap_sim_live(nullptr), before);
}

TEST_F(ThreadContextsSim, CreateMakesNoCudaCallAndSteadyGetNeither) {
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
TEST_F(ThreadContextsSim, EachLackOfMemoryIsReportedAndLeavesNothing) {
  const size_t before = gcap_sim_live(nullptr);
  for (int skip = 0; skip < 5; ++skip) {
    SCOPED_TRACE("allocation " + std::to_string(skip));
    std::thread([&] {
      gcap_thread_contexts_t* set = nullptr;
      gcap_thread_context_t* context = nullptr;
      {
        HeapFailure failure(/*count=*/1, skip);
        Outcome outcome(gcap_thread_contexts_create(&options_, &set));
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

// The application's stream cannot be wrapped.
TEST_F(ThreadContextsSim, GetSurvivesAFailureOfEachOfItsCalls) {
  const RawStream user_stream;
  options_.shared = options_.has_user_stream = true;
  options_.user_stream = user_stream.get();
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_thread_contexts_t* set = Create();
    gcap_thread_context_t* context = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_thread_contexts_get(set, &context); });
    EXPECT_EQ(outcome.ok(), !fault.hit()) << outcome.message;
    EXPECT_EQ(context == nullptr, fault.hit());
    EXPECT_NE(Get(set), nullptr) << "the next try succeeds";
    GCAP_EXPECT_OK(gcap_thread_contexts_destroy(set));
  });
  EXPECT_GE(walked.calls, 1u);
}

// The manager of a context is refused, and then the stream that was made for the context cannot be ended.
TEST_F(ThreadContextsSim, WhatMakesAContextFailIsToldBeforeWhatItsEndLost) {
  options_.graph.policy = static_cast<gcap_graph_policy_t>(-1);
  gcap_thread_contexts_t* set = Create();
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
TEST_F(ThreadContextsSim, AContextThatCannotBeMadeLeavesNoBlock) {
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

// Memory tagged with the stream must not look free; a graph may still run.
TEST_F(ThreadContextsSim, StreamThatCannotBeDrainedIsKeptAndOnEndNotTold) {
  for (const char* wait : {"cudaStreamSynchronize", "cudaEventSynchronize"}) {
    const size_t streams = gcap_sim_live("stream");
    gcap_thread_contexts_t* set = Create();
    if (wait == std::string("cudaEventSynchronize")) CaptureGraph(set);
    Get(set);
    gcap_sim_fail_nth(wait, 1, cudaErrorLaunchFailure);
    GCAP_EXPECT_FAILS(gcap_thread_contexts_destroy(set), GCAP_LEAKED, "kept for ever");
    EXPECT_EQ(ends_, 0);
    EXPECT_EQ(gcap_sim_live("stream"), streams + 1);
  }
}

// Nobody gets the status of a thread's exit: the log must tell, and the thread goes all the same.
TEST_F(ThreadContextsSim, ExitOfAThreadSurvivesAFailureOfEachOfItsCalls) {
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_thread_contexts_t* set = Create();
    LogCatcher log;
    std::thread([&] {
      CaptureGraph(set);
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
}

}  // namespace
