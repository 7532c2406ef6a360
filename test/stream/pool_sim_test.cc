// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The stream pool, what only the simulator can show: that the steady state asks the driver nothing, what becomes of
// each call that fails, and that a stream handed from thread to thread keeps its order under every schedule.

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gcap/stream.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/base/heap_failure.h"
#include "test/stream/pool_stats.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"

namespace gcap {
namespace testing {
namespace {

gcap_stream_pool_t* CreatePool() {
  gcap_stream_pool_t* pool = nullptr;
  GCAP_EXPECT_OK(gcap_stream_pool_create(0, &pool));
  return pool;
}

gcap_stream_t* Acquire(gcap_stream_pool_t* pool) {
  gcap_stream_t* stream = nullptr;
  GCAP_EXPECT_OK(gcap_stream_pool_acquire(pool, &stream));
  return stream;
}

TEST(StreamPoolSim, CreateAndTheSteadyStateMakeNoCudaCallAndAllocateNothing) {
  uint64_t calls = gcap_sim_calls(nullptr);
  gcap_stream_pool_t* pool = CreatePool();
  EXPECT_EQ(gcap_sim_calls(nullptr), calls);
  GCAP_EXPECT_OK(gcap_stream_pool_release(pool, Acquire(pool)));
  calls = gcap_sim_calls(nullptr);
  {
    HeapFailure failure;
    for (int i = 0; i < 10; ++i) GCAP_EXPECT_OK(gcap_stream_pool_release(pool, Acquire(pool)));
    EXPECT_EQ(failure.hits(), 0);
  }
  EXPECT_EQ(gcap_sim_calls(nullptr), calls);
  GCAP_EXPECT_OK(gcap_stream_pool_destroy(pool));
}

TEST(StreamPoolSim, NothingIsLeftOfAPoolThatEnds) {
  const auto before = LiveHandles();
  gcap_stream_pool_t* pool = CreatePool();
  std::thread([&] {
    gcap_stream_t* streams[] = {Acquire(pool), Acquire(pool)};
    for (gcap_stream_t* stream : streams) GCAP_EXPECT_OK(gcap_stream_pool_release(pool, stream));
  }).join();
  GCAP_EXPECT_OK(gcap_stream_pool_release(pool, Acquire(pool)));
  EXPECT_EQ(gcap_sim_live("stream"), before.at("stream") + 2);
  GCAP_EXPECT_OK(gcap_stream_pool_destroy(pool));
  EXPECT_EQ(LiveHandles(), before);
}

// Those before the first CUDA call, on a thread of its own: the pool, its set of lanes, the thread's record, the lane's
// place in it, and the lane. What comes after is the simulator's, which does not live without memory.
TEST(StreamPoolSim, EachLackOfMemoryIsReportedAndLeavesNothing) {
  constexpr int kAllocations = 5;
  const auto before = LiveHandles();
  for (int skip = 0; skip < kAllocations; ++skip) {
    SCOPED_TRACE("allocation " + std::to_string(skip));
    std::thread([&] {
      gcap_stream_pool_t* pool = nullptr;
      gcap_stream_t* stream = nullptr;
      {
        HeapFailure failure(/*count=*/1, skip);
        Outcome outcome(gcap_stream_pool_create(0, &pool));
        if (outcome.ok()) outcome = Outcome(gcap_stream_pool_acquire(pool, &stream));
        EXPECT_EQ(failure.hits(), 1);
        EXPECT_EQ(outcome.code, GCAP_RESOURCE_EXHAUSTED) << outcome.message;
        EXPECT_EQ(pool == nullptr, skip < 2);
        EXPECT_EQ(stream, nullptr);
      }
      if (pool == nullptr) pool = CreatePool();
      GCAP_EXPECT_OK(gcap_stream_pool_release(pool, Acquire(pool)));
      GCAP_EXPECT_OK(gcap_stream_pool_destroy(pool));
    }).join();
    EXPECT_EQ(LiveHandles(), before);
  }
}

// Streams come back from a device that is lost, or the pool could never end; its end says what became of them.
TEST(StreamPoolSim, DeviceThatIsLostIsReportedAndThePoolEndsAllTheSame) {
  gcap_stream_pool_t* pool = CreatePool();
  gcap_stream_t* mine = Acquire(pool);
  gcap_stream_t* theirs = nullptr;
  std::thread([&] { theirs = Acquire(pool); }).join();
  const gcap_sim_fault_t lost = {"cudaStreamSynchronize", 1, 0, cudaErrorIllegalAddress, /*sticky=*/1};
  gcap_sim_inject(&lost);
  GCAP_EXPECT_FAILS(gcap_stream_synchronize(mine), GCAP_DEVICE_LOST, "cudaErrorIllegalAddress");
  gcap_stream_t* none = mine;
  GCAP_EXPECT_FAILS(gcap_stream_pool_acquire(pool, &none), GCAP_DEVICE_LOST, "cudaErrorIllegalAddress");
  EXPECT_EQ(none, nullptr);
  GCAP_EXPECT_OK(gcap_stream_pool_release(pool, mine));
  GCAP_EXPECT_FAILS(gcap_stream_pool_release(pool, theirs), GCAP_LEAKED, "cudaErrorIllegalAddress");
  EXPECT_EQ(StatsOf(pool).num_out, 0u);
  GCAP_EXPECT_FAILS(gcap_stream_pool_destroy(pool), GCAP_LEAKED, "cudaErrorIllegalAddress");
  gcap_sim_clear_faults();
  pool = CreatePool();
  GCAP_EXPECT_OK(gcap_stream_pool_release(pool, Acquire(pool)));
  GCAP_EXPECT_OK(gcap_stream_pool_destroy(pool));
}

TEST(StreamPoolFaults, OfAcquireLeaveNothingAndTheNextSucceeds) {
  const Walked walked = WalkFaults([](Fault& fault) {
    gcap_stream_pool_t* pool = CreatePool();
    gcap_stream_t* stream = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_stream_pool_acquire(pool, &stream); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_EQ(outcome.ok(), stream != nullptr);
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    EXPECT_EQ(StatsOf(pool).num_streams, outcome.ok() ? 1u : 0u);
    if (stream == nullptr) stream = Acquire(pool);
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    GCAP_EXPECT_OK(gcap_stream_pool_release(pool, stream));
    GCAP_EXPECT_OK(gcap_stream_pool_destroy(pool));
  });
  EXPECT_EQ(walked.functions.count("cudaStreamCreateWithFlags"), 1u);
}

// A stream that cannot be asked whether it is capturing is back, or the pool could never end, but is given to nobody:
// the next user's work would go into somebody's graph. Was: the next user got it.
TEST(StreamPoolFaults, OfReleaseByAnotherThreadWithholdTheStream) {
  const Walked walked = WalkFaults([](Fault& fault) {
    gcap_stream_pool_t* pool = CreatePool();
    gcap_stream_t* stream = nullptr;
    std::thread([&] { stream = Acquire(pool); }).join();
    const Outcome outcome = fault.During([&] { return gcap_stream_pool_release(pool, stream); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    EXPECT_EQ(outcome.code, fault.hit() ? GCAP_LEAKED : GCAP_OK);
    EXPECT_EQ(StatsOf(pool).num_out, 0u);
    GCAP_EXPECT_FAILS(gcap_stream_pool_release(pool, stream), GCAP_FAILED_PRECONDITION, "released already");
    gcap_stream_t* next = Acquire(pool);
    EXPECT_EQ(next == stream, !fault.hit());
    GCAP_EXPECT_OK(gcap_stream_synchronize(next));
    GCAP_EXPECT_OK(gcap_stream_pool_release(pool, next));
    GCAP_EXPECT_OK(gcap_stream_pool_destroy(pool));
  });
  EXPECT_EQ(walked.functions, Functions({"cudaStreamIsCapturing"}));
}

// Was: a refusal without memory for its text had another code, by which the stream went to the next user.
TEST(StreamPoolSim, CapturingStreamIsRefusedAlsoWithoutMemoryToSaySo) {
  gcap_stream_pool_t* pool = CreatePool();
  gcap_stream_t* stream = nullptr;
  std::thread([&] { stream = Acquire(pool); }).join();
  ASSERT_EQ(cudaStreamBeginCapture(gcap_stream_handle(stream), cudaStreamCaptureModeRelaxed), cudaSuccess);
  for (int lack : {1, 100}) {
    const HeapFailure no_memory(lack);
    GCAP_EXPECT_FAILS(gcap_stream_pool_release(pool, stream), GCAP_FAILED_PRECONDITION, "");
    EXPECT_GE(no_memory.hits(), 1);
  }
  EXPECT_EQ(StatsOf(pool).num_out, 1u);
  gcap_stream_t* next = Acquire(pool);
  EXPECT_NE(next, stream);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(gcap_stream_handle(stream), &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (gcap_stream_t* one : {stream, next}) GCAP_EXPECT_OK(gcap_stream_pool_release(pool, one));
  GCAP_EXPECT_OK(gcap_stream_pool_destroy(pool));
}

// The pool is gone in every case; a stream that could not be drained is kept, and the status says so.
TEST(StreamPoolFaults, OfDestroyAreReportedAndTheOtherStreamsEnd) {
  const Walked walked = WalkFaults([](Fault& fault) {
    gcap_stream_pool_t* pool = CreatePool();
    gcap_stream_t* streams[] = {Acquire(pool), Acquire(pool)};
    const size_t with_both = gcap_sim_live("stream");
    for (gcap_stream_t* stream : streams) GCAP_EXPECT_OK(gcap_stream_pool_release(pool, stream));
    const Outcome outcome = fault.During([&] { return gcap_stream_pool_destroy(pool); });
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    EXPECT_TRUE(outcome.ok() || outcome.code == GCAP_LEAKED) << outcome.message;
    const size_t kept = gcap_sim_live("stream") + 2 - with_both;
    EXPECT_LE(kept, outcome.ok() ? 0u : 1u);
    if (kept == 1 && !fault.Is("cudaStreamDestroy")) fault.ExpectKept("stream");
    pool = CreatePool();
    GCAP_EXPECT_OK(gcap_stream_pool_release(pool, Acquire(pool)));
    GCAP_EXPECT_OK(gcap_stream_pool_destroy(pool));
  });
  EXPECT_EQ(walked.functions.count("cudaStreamDestroy"), 1u);
  EXPECT_EQ(walked.functions.count("cudaStreamSynchronize"), 1u);
}

// --- Schedules ------------------------------------------------------------------------------------------------------

constexpr uint64_t kSchedules = 500;
constexpr int kThreads = 2, kSteps = 3;

// Threads in turn pass one stream on: each writes what it was given plus a mark of its own, without waiting.
struct Relay {
  gcap_stream_pool_t* pool = nullptr;
  unsigned char* device = nullptr;  // kThreads * kSteps + 1 bytes
  int wrong = 0;
};

// Copies byte i to byte i + 1: right only when it comes after the copy before.
int Pass(Relay* relay, int i, gcap_stream_t** out_stream) {
  gcap_stream_t* stream = nullptr;
  const Outcome acquired(gcap_stream_pool_acquire(relay->pool, &stream));
  if (!acquired.ok()) return 1;
  const int wrong = cudaMemcpyAsync(relay->device + i + 1, relay->device + i, 1, cudaMemcpyDeviceToDevice,
                                    gcap_stream_handle(stream)) != cudaSuccess;
  *out_stream = stream;
  return wrong + !Outcome(gcap_stream_pool_release(relay->pool, stream)).ok();
}

int RunRelay(void*) {
  constexpr int kBytes = kThreads * kSteps + 1;
  constexpr unsigned char kMark = 0x5a;
  Relay relay;
  relay.pool = CreatePool();
  int wrong = cudaMalloc(reinterpret_cast<void**>(&relay.device), kBytes) != cudaSuccess;
  wrong += cudaMemset(relay.device, 0, kBytes) != cudaSuccess;
  wrong += cudaMemset(relay.device, kMark, 1) != cudaSuccess;
  wrong += cudaDeviceSynchronize() != cudaSuccess;
  gcap_stream_t* first = nullptr;
  for (int t = 0; t < kThreads; ++t) {
    std::thread([&] {
      for (int step = 0; step < kSteps; ++step) {
        gcap_stream_t* stream = nullptr;
        relay.wrong += Pass(&relay, t * kSteps + step, &stream);
        if (first == nullptr) first = stream;
        relay.wrong += stream != first;
      }
    }).join();
  }
  unsigned char bytes[kBytes] = {};
  gcap_stream_t* last = Acquire(relay.pool);
  wrong += !Outcome(gcap_stream_synchronize(last)).ok();
  wrong += cudaMemcpy(bytes, relay.device, kBytes, cudaMemcpyDeviceToHost) != cudaSuccess;
  for (unsigned char byte : bytes) wrong += byte != kMark;
  wrong += !Outcome(gcap_stream_pool_release(relay.pool, last)).ok();
  wrong += !Outcome(gcap_stream_pool_destroy(relay.pool)).ok();
  wrong += cudaFree(relay.device) != cudaSuccess;
  return wrong + relay.wrong;
}

TEST(StreamPoolSim, StreamPassedFromThreadToThreadKeepsItsOrderUnderEverySchedule) {
  uint64_t failing = 0;
  EXPECT_EQ(gcap_sim_explore(RunRelay, nullptr, 0, kSchedules, &failing), 0) << "seed " << failing;
}

// Two threads at once, each with its own stream and bytes, take turns at every call.
struct Pair {
  gcap_stream_pool_t* pool;
  unsigned char* device;
  int wrong[2];
  std::atomic<int> left;
};

void RunOneOfPair(Pair* pair, size_t index) {
  gcap_sim_turns_join(index);
  gcap_stream_t* mine = nullptr;
  for (int step = 0; step < kSteps; ++step) {
    gcap_stream_t* stream = nullptr;
    pair->wrong[index] += !Outcome(gcap_stream_pool_acquire(pair->pool, &stream)).ok();
    if (mine == nullptr) mine = stream;
    pair->wrong[index] += stream != mine;
    pair->wrong[index] += cudaMemsetAsync(pair->device + 64 * index, static_cast<int>(16 * index + step), 64,
                                          gcap_stream_handle(stream)) != cudaSuccess;
    pair->wrong[index] += !Outcome(gcap_stream_pool_release(pair->pool, stream)).ok();
  }
  gcap_sim_turns_leave();
  ++pair->left;
  while (pair->left < 2) std::this_thread::yield();  // a thread that exits leaves its stream to the other one
}

int RunPair(void*) {
  Pair pair = {CreatePool(), nullptr, {0, 0}, {0}};
  int wrong = cudaMalloc(reinterpret_cast<void**>(&pair.device), 128) != cudaSuccess;
  gcap_sim_turns_begin(2);
  std::thread first([&] { RunOneOfPair(&pair, 0); });
  std::thread second([&] { RunOneOfPair(&pair, 1); });
  first.join();
  second.join();
  wrong += StatsOf(pair.pool).num_streams != 2;
  wrong += !Outcome(gcap_stream_pool_destroy(pair.pool)).ok();  // waits for both
  unsigned char bytes[128] = {};
  wrong += cudaMemcpy(bytes, pair.device, 128, cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 128; ++i) wrong += bytes[i] != 16 * (i / 64) + kSteps - 1;
  wrong += cudaFree(pair.device) != cudaSuccess;
  return wrong + pair.wrong[0] + pair.wrong[1];
}

TEST(StreamPoolSim, ThreadsAtOnceKeepTheirOwnStreamsUnderEverySchedule) {
  uint64_t failing = 0;
  EXPECT_EQ(gcap_sim_explore(RunPair, nullptr, 0, kSchedules, &failing), 0) << "seed " << failing;
}

}  // namespace
}  // namespace testing
}  // namespace gcap
