// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Streams and events: when work runs, in which order, and what a missing wait does.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"
#include "test/sim/with_action.h"

namespace {

constexpr size_t kBytes = 1024;

class Stream : public testing::Test {
 protected:
  void SetUp() override {
    gcap_sim_set_seed(0);
    for (cudaStream_t* s : {&a_, &b_}) ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaStreamCreate(&blocking_));
    ASSERT_EQ(cudaSuccess, cudaEventCreate(&event_));
    ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&memory_), kBytes));
    ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&pinned_), kBytes));
    memset(pinned_, 0, kBytes);
  }

  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_EQ(cudaSuccess, cudaFree(memory_));
    EXPECT_EQ(cudaSuccess, cudaFreeHost(pinned_));
    EXPECT_EQ(cudaSuccess, cudaEventDestroy(event_));
    for (cudaStream_t s : {a_, b_, blocking_}) EXPECT_EQ(cudaSuccess, cudaStreamDestroy(s));
    EXPECT_EQ(0u, gcap_sim_live(nullptr));
    cudaGetLastError();
  }

  cudaStream_t a_, b_, blocking_;
  cudaEvent_t event_;
  unsigned char* memory_;
  unsigned char* pinned_;
};

// Holds a stream until it is opened.
class Gate {
 public:
  // The host function looks at this object when it runs: nothing of it may be left.
  ~Gate() {
    Open();
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());  // the stream may be destroyed by now
  }
  void Close(cudaStream_t stream) {
    ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(
                               stream,
                               [](void* self) {
                                 auto* gate = static_cast<Gate*>(self);
                                 std::unique_lock<std::mutex> lock(gate->mutex_);
                                 gate->changed_.wait(lock, [gate] { return gate->open_; });
                               },
                               this));
  }
  void Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST_F(Stream, WorkDoesNotRunAtTheCall) {
  // The host may look at the simulator's device memory, which a real program may not.
  unsigned char before = memory_[0];
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory_, before ^ 0xff, kBytes, a_));
  EXPECT_EQ(before, memory_[0]);
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(a_));
  EXPECT_EQ(before ^ 0xff, memory_[0]);
}

TEST_F(Stream, SynchroniseRunsOnlyWhatItMust) {
  // With the lazy schedule no turn moves anything; here one that happens to move the other stream is as good a proof,
  // so many seeds are tried and at least one must leave it alone.
  int untouched = 0;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    ASSERT_EQ(cudaSuccess, cudaMemset(pinned_, 0, kBytes));
    gcap_sim_set_seed(seed);
    ASSERT_EQ(cudaSuccess, cudaMemsetAsync(pinned_, 1, 1, a_));
    ASSERT_EQ(cudaSuccess, cudaMemsetAsync(pinned_ + 1, 1, 1, b_));
    ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(a_));
    ASSERT_EQ(1, pinned_[0]);
    untouched += pinned_[1] == 0;
    ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(b_));
    ASSERT_EQ(1, pinned_[1]);
  }
  EXPECT_GT(untouched, 0);
}

TEST_F(Stream, IsFirstInFirstOut) {
  for (uint64_t seed = 0; seed < 32; ++seed) {
    gcap_sim_set_seed(seed);
    for (int value = 1; value <= 20; ++value) ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory_, value, kBytes, a_));
    ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(pinned_, memory_, kBytes, cudaMemcpyDeviceToHost, a_));
    ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(a_));
    ASSERT_EQ(20, pinned_[kBytes - 1]);
  }
}

// Fills on one stream, copies on another, and returns how many of the seeds gave the filled value.
int RightResults(cudaStream_t a, cudaStream_t b, cudaEvent_t event, unsigned char* device, unsigned char* pinned,
                 bool wait) {
  int right = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_EQ(cudaSuccess, cudaMemset(device, 0, kBytes));
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    gcap_sim_set_seed(seed);
    EXPECT_EQ(cudaSuccess, cudaMemsetAsync(device, 9, kBytes, a));
    EXPECT_EQ(cudaSuccess, cudaEventRecord(event, a));
    if (wait) {
      EXPECT_EQ(cudaSuccess, cudaStreamWaitEvent(b, event));
    }
    EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost, b));
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(b));
    right += pinned[0] == 9;
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(a));
  }
  return right;
}

TEST_F(Stream, MissingWaitGivesWrongDataUnderSomeSeeds) {
  gcap_test::WithAction quiet(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_OFF);
  int right = RightResults(a_, b_, event_, memory_, pinned_, false);
  EXPECT_GT(right, 0);
  EXPECT_LT(right, 100);
}

TEST_F(Stream, WaitGivesRightDataUnderAllSeeds) {
  EXPECT_EQ(100, RightResults(a_, b_, event_, memory_, pinned_, true));
}

TEST_F(Stream, OneSeedIsOneInterleaving) {
  gcap_test::WithAction quiet(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_OFF);
  auto trace = [&](uint64_t seed) {
    std::string order;
    EXPECT_EQ(cudaSuccess, cudaMemset(memory_, 0, kBytes));
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    gcap_sim_set_seed(seed);
    for (int i = 0; i < 30; ++i) {
      EXPECT_EQ(cudaSuccess, cudaMemsetAsync(memory_, i, kBytes, i % 2 ? a_ : b_));
      order += std::to_string(memory_[0]) + ",";
    }
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    return order;
  };
  std::string first = trace(7);
  EXPECT_EQ(first, trace(7));
  EXPECT_NE(first, trace(8));
}

TEST_F(Stream, LegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    gcap_sim_set_seed(seed);
    ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory_, 1, kBytes, blocking_));
    ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory_, 2, kBytes, nullptr));
    ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(pinned_, memory_, kBytes, cudaMemcpyDeviceToHost, cudaStreamPerThread));
    ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(cudaStreamPerThread));
    ASSERT_EQ(2, pinned_[0]) << "seed " << seed;
  }
}

TEST_F(Stream, LegacyStreamIgnoresNonBlockingStreams) {
  Gate gate;
  gate.Close(a_);
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(a_));
  EXPECT_EQ(cudaSuccess, cudaStreamQuery(nullptr));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(nullptr));
}

TEST_F(Stream, LegacySynchroniseWaitsForBlockingStreams) {
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(pinned_, 3, 1, blocking_));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(cudaStreamLegacy));
  EXPECT_EQ(3, pinned_[0]);
}

TEST_F(Stream, QueryComesToAnEnd) {
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory_, 1, kBytes, a_));
  for (int i = 0; i < 20; ++i) ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory_, i, kBytes, a_));
  int queries = 0;
  while (cudaStreamQuery(a_) == cudaErrorNotReady) ++queries;
  EXPECT_LE(queries, 21);
  EXPECT_EQ(cudaSuccess, cudaPeekAtLastError());
}

TEST_F(Stream, HostFunctionsRunInOrderOnAnotherThread) {
  struct State {
    std::thread::id thread;
    unsigned char seen;
    const unsigned char* memory;
  } state = {std::thread::id(), 0, memory_};
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory_, 4, kBytes, a_));
  auto look = [](void* p) {
    auto* s = static_cast<State*>(p);
    s->thread = std::this_thread::get_id();
    s->seen = s->memory[0];
  };
  ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(a_, look, &state));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory_, 5, kBytes, a_));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(a_));
  EXPECT_EQ(4, state.seen);
  EXPECT_NE(std::this_thread::get_id(), state.thread);
}

TEST_F(Stream, HostFunctionMayTakeALockThatTheCallerHolds) {
  std::mutex mutex;
  ASSERT_EQ(cudaSuccess,
            cudaLaunchHostFunc(
                a_, [](void* p) { std::lock_guard<std::mutex> hold(*static_cast<std::mutex*>(p)); }, &mutex));
  {
    std::lock_guard<std::mutex> hold(mutex);
    for (int i = 0; i < 50; ++i) {
      ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory_, i, kBytes, b_));
      ASSERT_EQ(cudaErrorNotReady, cudaStreamQuery(a_));
    }
    ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(b_));
  }
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(a_));
}

TEST_F(Stream, HostFunctionRunsWhileTheProgramIsSilent) {
  std::atomic<bool> ran{false};
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory_, 6, kBytes, a_));
  ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(
                             a_, [](void* p) { *static_cast<std::atomic<bool>*>(p) = true; }, &ran));
  while (!ran) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST_F(Stream, HostFunctionMayNotCallCuda) {
  cudaError_t code = cudaSuccess;
  auto call = [](void* p) {
    void* memory;
    *static_cast<cudaError_t*>(p) = cudaMalloc(&memory, 16);
  };
  ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(a_, call, &code));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(a_));
  EXPECT_EQ(cudaErrorNotPermitted, code);
}

TEST_F(Stream, DestroyedStreamFinishesItsWork) {
  cudaStream_t stream;
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Gate gate;
  gate.Close(stream);
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(pinned_, 8, 1, stream));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event_, stream));
  ASSERT_EQ(cudaSuccess, cudaStreamDestroy(stream));
  EXPECT_EQ(cudaErrorNotReady, cudaEventQuery(event_));
  gate.Open();
  ASSERT_EQ(cudaSuccess, cudaEventSynchronize(event_));
  EXPECT_EQ(8, pinned_[0]);
}

TEST_F(Stream, ReportsPriorityFlagsAndIds) {
  int least = 1, greatest = 1;
  ASSERT_EQ(cudaSuccess, cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(0, least);
  EXPECT_EQ(-5, greatest);
  for (auto [asked, given] : {std::pair{0, 0}, {-1, -1}, {-5, -5}, {-100, -5}, {1, 0}}) {
    cudaStream_t stream;
    int priority = 99;
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, asked));
    EXPECT_EQ(cudaSuccess, cudaStreamGetPriority(stream, &priority));
    EXPECT_EQ(given, priority);
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
  }
  unsigned int flags = 9;
  EXPECT_EQ(cudaSuccess, cudaStreamGetFlags(a_, &flags));
  EXPECT_EQ(static_cast<unsigned>(cudaStreamNonBlocking), flags);
  EXPECT_EQ(cudaSuccess, cudaStreamGetFlags(cudaStreamPerThread, &flags));
  EXPECT_EQ(0u, flags);
  unsigned long long id_a, id_b, id_null, id_legacy;
  EXPECT_EQ(cudaSuccess, cudaStreamGetId(a_, &id_a));
  EXPECT_EQ(cudaSuccess, cudaStreamGetId(b_, &id_b));
  EXPECT_EQ(cudaSuccess, cudaStreamGetId(nullptr, &id_null));
  EXPECT_EQ(cudaSuccess, cudaStreamGetId(cudaStreamLegacy, &id_legacy));
  EXPECT_NE(id_a, id_b);
  EXPECT_EQ(id_null, id_legacy);
}

TEST_F(Stream, RefusesBadArguments) {
  cudaStream_t stream;
  EXPECT_EQ(cudaErrorInvalidValue, cudaStreamCreate(nullptr));
  EXPECT_EQ(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&stream, 2));
  for (cudaStream_t s : {cudaStream_t(nullptr), cudaStreamLegacy, cudaStreamPerThread}) {
    EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaStreamDestroy(s));
  }
  EXPECT_EQ(cudaErrorInvalidValue, cudaLaunchHostFunc(a_, nullptr, nullptr));
}

using StreamDeathTest = Stream;

TEST_F(StreamDeathTest, MisusedHandlesAreReportedByName) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        cudaStream_t stream;
        cudaStreamCreate(&stream);
        cudaStreamDestroy(stream);
        cudaStreamSynchronize(stream);
      },
      "cudaStreamSynchronize: stream 0x[0-9a-f]+ was destroyed");
  EXPECT_DEATH(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(event_)), "another kind of object");
  EXPECT_DEATH(cudaEventQuery(reinterpret_cast<cudaEvent_t>(memory_)), "no handle that the simulator gave out");
  EXPECT_DEATH(cudaThreadExchangeStreamCaptureMode(nullptr), "mode is NULL");
  EXPECT_DEATH(cudaFreeArray(nullptr), "cudaFreeArray is not modelled");
}

// --- Events ---------------------------------------------------------------------------------------------------------

using Event = Stream;

TEST_F(Event, NeverRecordedIsComplete) {
  EXPECT_EQ(cudaSuccess, cudaEventQuery(event_));
  EXPECT_EQ(cudaSuccess, cudaEventSynchronize(event_));
  EXPECT_EQ(cudaSuccess, cudaStreamWaitEvent(a_, event_));
}

TEST_F(Event, RecordIsASnapshot) {
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event_, a_));
  Gate gate;
  gate.Close(a_);
  EXPECT_EQ(cudaSuccess, cudaEventQuery(event_));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event_, a_));
  EXPECT_EQ(cudaErrorNotReady, cudaEventQuery(event_));
  gate.Open();
  EXPECT_EQ(cudaSuccess, cudaEventSynchronize(event_));
  EXPECT_EQ(cudaSuccess, cudaEventQuery(event_));
}

TEST_F(Event, RecordingAgainDoesNotMoveAWaiter) {
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event_, a_));
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(b_, event_));
  Gate gate;
  gate.Close(a_);
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event_, a_));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(b_));
}

TEST_F(Event, DestroyedEventStillHoldsItsWaiters) {
  Gate gate;
  gate.Close(a_);
  cudaEvent_t event;
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&event));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event, a_));
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(b_, event));
  ASSERT_EQ(cudaSuccess, cudaEventDestroy(event));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(b_));
  gate.Open();
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(b_));
}

TEST_F(Event, ElapsedTimeNeedsTwoFinishedTimedRecords) {
  float ms = -1;
  cudaEvent_t untimed;
  ASSERT_EQ(cudaSuccess, cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, event_, event_));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event_, a_));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(untimed, a_));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, event_, untimed));
  cudaEvent_t end;
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&end));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory_, 1, kBytes, a_));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(end, a_));
  ASSERT_EQ(cudaSuccess, cudaEventSynchronize(end));
  EXPECT_EQ(cudaSuccess, cudaEventElapsedTime(&ms, event_, end));
  EXPECT_GT(ms, 0);
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(end));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(untimed));
}

TEST_F(Event, RefusesBadArguments) {
  cudaEvent_t event;
  float ms;
  EXPECT_EQ(cudaErrorInvalidValue, cudaEventCreateWithFlags(&event, 64));
  EXPECT_EQ(cudaErrorInvalidValue, cudaEventCreateWithFlags(&event, cudaEventInterprocess));
  EXPECT_EQ(cudaErrorInvalidValue, cudaEventCreate(nullptr));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventRecord(nullptr, a_));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventQuery(nullptr));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventSynchronize(nullptr));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventDestroy(nullptr));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(a_, nullptr));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, nullptr, nullptr));
  EXPECT_EQ(cudaErrorInvalidValue, cudaStreamWaitEvent(a_, event_, 2));
  EXPECT_EQ(cudaErrorInvalidValue, cudaEventRecordWithFlags(event_, a_, 2));
  EXPECT_EQ(cudaErrorIllegalState, cudaEventRecordWithFlags(event_, a_, cudaEventRecordExternal));
  EXPECT_EQ(cudaErrorIllegalState, cudaStreamWaitEvent(a_, event_, cudaEventWaitExternal));
}

// --- Threads --------------------------------------------------------------------------------------------------------

TEST_F(Stream, FourThreadsShareTheSimulator) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong, t] {
      cudaStream_t stream;
      unsigned char* memory;
      wrong += cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess;
      wrong += cudaMalloc(reinterpret_cast<void**>(&memory), kBytes) != cudaSuccess;
      for (int i = 0; i < 50; ++i) {
        unsigned char host[kBytes];
        int value = (t * 50 + i) & 0xff;
        std::atomic<int> ran{0};
        wrong += cudaMemsetAsync(memory, value, kBytes, stream) != cudaSuccess;
        wrong += cudaLaunchHostFunc(
                     stream, [](void* p) { ++*static_cast<std::atomic<int>*>(p); }, &ran) != cudaSuccess;
        wrong += cudaMemcpyAsync(host, memory, kBytes, cudaMemcpyDeviceToHost, stream) != cudaSuccess;
        wrong += cudaMemsetAsync(memory, 0, kBytes, cudaStreamPerThread) != cudaSuccess;
        wrong += host[kBytes - 1] != value || ran != 1;
        wrong += cudaStreamSynchronize(cudaStreamPerThread) != cudaSuccess;
      }
      wrong += cudaFree(memory) != cudaSuccess;
      wrong += cudaStreamDestroy(stream) != cudaSuccess;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(0, wrong);
}

}  // namespace
