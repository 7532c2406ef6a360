// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The stream pool: who gets which stream back, what is refused, and that a graph replays on the stream that captured
// it.

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gcap/graph.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/stream/pool_stats.h"
#include "test/support/device_floats.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/plain_runs.h"
#include "test/support/replays.h"

namespace gcap {
namespace testing {
namespace {

class StreamPool : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(gcap_stream_pool_create(0, &pool_));
  }
  void TearDown() override { GCAP_EXPECT_OK(gcap_stream_pool_destroy(pool_)); }

  gcap_stream_t* Acquire() {
    gcap_stream_t* stream = nullptr;
    GCAP_EXPECT_OK(gcap_stream_pool_acquire(pool_, &stream));
    return stream;
  }
  void Release(gcap_stream_t* stream) { GCAP_EXPECT_OK(gcap_stream_pool_release(pool_, stream)); }

  gcap_stream_pool_t* pool_ = nullptr;
};

TEST_F(StreamPool, MakesStreamsOfItsDeviceWhenAsked) {
  EXPECT_EQ(StatsOf(pool_).num_streams, 0u);
  gcap_stream_t* a = Acquire();
  gcap_stream_t* b = Acquire();
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_NE(gcap_stream_handle(a), gcap_stream_handle(b));
  EXPECT_EQ(gcap_stream_device(a), 0);
  EXPECT_EQ(gcap_stream_ownership(a), GCAP_STREAM_OWNED);
  EXPECT_EQ(StatsOf(pool_).num_streams, 2u);
  EXPECT_EQ(StatsOf(pool_).num_out, 2u);
  Release(a);
  EXPECT_EQ(StatsOf(pool_).num_streams, 2u);
  EXPECT_EQ(StatsOf(pool_).num_out, 1u);
  Release(b);
}

TEST_F(StreamPool, ThreadGetsItsOwnBackMostRecentFirst) {
  gcap_stream_t* streams[3] = {Acquire(), Acquire(), Acquire()};
  Release(streams[1]);
  Release(streams[0]);
  Release(streams[2]);
  EXPECT_EQ(Acquire(), streams[2]);
  EXPECT_EQ(Acquire(), streams[0]);
  EXPECT_EQ(Acquire(), streams[1]);
  EXPECT_EQ(StatsOf(pool_).num_streams, 3u);
  for (gcap_stream_t* stream : streams) Release(stream);
}

TEST_F(StreamPool, IdleStreamsOfALivingThreadAreItsOwn) {
  gcap_stream_t* const mine = Acquire();
  Release(mine);
  std::thread([&] {
    gcap_stream_t* other = Acquire();
    EXPECT_NE(other, mine);
    Release(other);
  }).join();
  EXPECT_EQ(Acquire(), mine);
  Release(mine);
}

TEST_F(StreamPool, StreamReleasedElsewhereGoesBackToTheThreadThatAcquiredIt) {
  gcap_stream_t* first = Acquire();
  gcap_stream_t* second = Acquire();
  gcap_stream_t* idle = Acquire();
  Release(idle);
  std::thread([&] {
    Release(first);
    Release(second);
    gcap_stream_t* other = Acquire();
    EXPECT_EQ(std::set<gcap_stream_t*>({first, second, idle}).count(other), 0u);
    Release(other);
  }).join();
  EXPECT_EQ(StatsOf(pool_).num_out, 0u);
  EXPECT_EQ(Acquire(), second) << "the most recent";
  EXPECT_EQ(Acquire(), first);
  EXPECT_EQ(Acquire(), idle);
  for (gcap_stream_t* stream : {first, second, idle}) Release(stream);
}

TEST_F(StreamPool, IdleStreamsOfADeadThreadGoToWhoNeedsOne) {
  std::vector<gcap_stream_t*> theirs(3);
  std::thread([&] {
    for (gcap_stream_t*& stream : theirs) stream = Acquire();
    Release(theirs[0]);
    std::thread([&] { Release(theirs[1]); }).join();
  }).join();
  EXPECT_EQ(StatsOf(pool_).num_out, 1u);
  Release(theirs[2]);  // its thread is gone: to all
  std::vector<gcap_stream_t*> mine = {Acquire(), Acquire(), Acquire()};
  EXPECT_EQ(std::set<gcap_stream_t*>(mine.begin(), mine.end()), std::set<gcap_stream_t*>(theirs.begin(), theirs.end()));
  EXPECT_EQ(StatsOf(pool_).num_streams, 3u);
  for (gcap_stream_t* stream : mine) Release(stream);
  EXPECT_EQ(Acquire(), mine[2]) << "it is this thread's now";
  std::thread([&] {
    gcap_stream_t* fresh = Acquire();
    EXPECT_EQ(std::count(mine.begin(), mine.end(), fresh), 0);
    Release(fresh);
  }).join();
  Release(mine[2]);
}

TEST_F(StreamPool, ThreadsInARowShareOneStream) {
  for (int i = 0; i < 20; ++i) {
    std::thread([&] { Release(Acquire()); }).join();
  }
  EXPECT_EQ(StatsOf(pool_).num_streams, 1u);
}

// A handle that is not destroyed before its stream's.
struct Counted {
  static int alive;
};
int Counted::alive = 0;
const gcap_attachment_key_t kCounted = {
    "a counted object",
    [](gcap_stream_t*, void** out_object) {
      *out_object = &++Counted::alive;
      return gcap_status_t(nullptr);
    },
    [](void*) { --Counted::alive; },
};

TEST_F(StreamPool, AttachmentsStayWithTheStream) {
  gcap_stream_t* theirs = nullptr;
  void* object = nullptr;
  std::thread([&] {
    theirs = Acquire();
    GCAP_EXPECT_OK(gcap_stream_attachment(theirs, &kCounted, &object));
    Release(theirs);
  }).join();
  EXPECT_EQ(Counted::alive, 1);
  ASSERT_EQ(Acquire(), theirs);
  void* again = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(theirs, &kCounted, &again));
  EXPECT_EQ(again, object);
  EXPECT_EQ(Counted::alive, 1);
  Release(theirs);
  GCAP_EXPECT_OK(gcap_stream_pool_destroy(pool_));
  pool_ = nullptr;
  EXPECT_EQ(Counted::alive, 0);
}

// Nothing waits between the two threads: stream order must do.
TEST_F(StreamPool, WorkOfTheThreadBeforeComesBeforeTheNextOnes) {
  DeviceFloats from({1, 2, 3, 4}), between({0, 0, 0, 0}), to({0, 0, 0, 0});
  gcap_stream_t* theirs = nullptr;
  std::thread([&] {
    theirs = Acquire();
    EXPECT_EQ(
        cudaMemcpyAsync(between.get(), from.get(), from.Bytes(), cudaMemcpyDeviceToDevice, gcap_stream_handle(theirs)),
        cudaSuccess);
    Release(theirs);
  }).join();
  gcap_stream_t* mine = Acquire();
  ASSERT_EQ(mine, theirs);
  EXPECT_EQ(cudaMemcpyAsync(to.get(), between.get(), to.Bytes(), cudaMemcpyDeviceToDevice, gcap_stream_handle(mine)),
            cudaSuccess);
  GCAP_EXPECT_OK(gcap_stream_synchronize(mine));
  EXPECT_EQ(to.Get(), (std::vector<float>{1, 2, 3, 4}));
  Release(mine);
}

TEST_F(StreamPool, GraphReplaysOnTheStreamThatCapturedIt) {
  DeviceFloats from({1, 2}), to({0, 0});
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  gcap_graph_manager_t* graphs = nullptr;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &graphs));
  gcap_stream_t* const captured_on = Acquire();
  gcap_graph_run_kind_t kind;
  const cudaStream_t handle = gcap_stream_handle(captured_on);
  GCAP_ASSERT_OK(BeginPlain(graphs, 0, handle, &kind));
  EXPECT_EQ(cudaMemcpyAsync(to.get(), from.get(), to.Bytes(), cudaMemcpyDeviceToDevice, handle), cudaSuccess);
  GCAP_ASSERT_OK(EndPlain(graphs, nullptr, /*synchronize=*/true));
  Release(captured_on);
  for (float value : {3.0f, 5.0f}) {
    gcap_stream_t* stream = Acquire();
    EXPECT_EQ(stream, captured_on);
    from.Set({value, value});
    GCAP_EXPECT_OK(Replay(graphs, 0, /*synchronize=*/false));
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    EXPECT_EQ(to.Get(), (std::vector<float>{value, value}));
    Release(stream);
  }
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(graphs));
}

TEST_F(StreamPool, NullIsAnswered) {
  GCAP_EXPECT_FAILS(gcap_stream_pool_create(0, nullptr), GCAP_INVALID_ARGUMENT, "out_pool is NULL");
  GCAP_EXPECT_FAILS(gcap_stream_pool_acquire(pool_, nullptr), GCAP_INVALID_ARGUMENT, "out_stream is NULL");
  gcap_stream_t* stream = reinterpret_cast<gcap_stream_t*>(&stream);
  GCAP_EXPECT_FAILS(gcap_stream_pool_acquire(nullptr, &stream), GCAP_INVALID_ARGUMENT, "pool is NULL");
  EXPECT_EQ(stream, nullptr);
  GCAP_EXPECT_FAILS(gcap_stream_pool_release(pool_, nullptr), GCAP_INVALID_ARGUMENT, "stream is NULL");
  stream = Acquire();
  GCAP_EXPECT_FAILS(gcap_stream_pool_release(nullptr, stream), GCAP_INVALID_ARGUMENT, "pool is NULL");
  Release(stream);
  GCAP_EXPECT_OK(gcap_stream_pool_destroy(nullptr));
}

TEST_F(StreamPool, DeviceThatIsNotThereIsReportedByTheFirstAcquire) {
  gcap_stream_pool_t* pool = nullptr;
  GCAP_ASSERT_OK(gcap_stream_pool_create(999, &pool));
  gcap_stream_t* stream = reinterpret_cast<gcap_stream_t*>(&pool);
  GCAP_EXPECT_FAILS(gcap_stream_pool_acquire(pool, &stream), GCAP_INVALID_ARGUMENT, "device_id is 999");
  EXPECT_EQ(stream, nullptr);
  EXPECT_EQ(StatsOf(pool).num_streams, 0u);
  GCAP_EXPECT_OK(gcap_stream_pool_destroy(pool));
}

TEST_F(StreamPool, StreamOfNoPoolOrAnotherIsNotTaken) {
  gcap_stream_t* own = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &own));
  GCAP_EXPECT_FAILS(gcap_stream_pool_release(pool_, own), GCAP_INVALID_ARGUMENT, "is of no pool");
  GCAP_EXPECT_OK(gcap_stream_destroy(own));
  gcap_stream_pool_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_stream_pool_create(0, &other));
  gcap_stream_t* stream = Acquire();
  GCAP_EXPECT_FAILS(gcap_stream_pool_release(other, stream), GCAP_INVALID_ARGUMENT, "is of another pool");
  EXPECT_EQ(StatsOf(other).num_streams, 0u);
  GCAP_EXPECT_OK(gcap_stream_pool_destroy(other));
  Release(stream);
}

TEST_F(StreamPool, SecondReleaseIsRefused) {
  gcap_stream_t* stream = Acquire();
  Release(stream);
  GCAP_EXPECT_FAILS(gcap_stream_pool_release(pool_, stream), GCAP_FAILED_PRECONDITION, "released already");
  EXPECT_EQ(Acquire(), stream);
  gcap_stream_t* other = Acquire();
  EXPECT_NE(other, stream) << "it is on the list once";
  Release(other);
  Release(stream);
  std::thread([&] {
    GCAP_EXPECT_FAILS(gcap_stream_pool_release(pool_, stream), GCAP_FAILED_PRECONDITION, "released already");
  }).join();
}

TEST_F(StreamPool, StreamsOfThePoolAreNotDestroyedOneByOne) {
  gcap_stream_t* stream = Acquire();
  GCAP_EXPECT_FAILS(gcap_stream_destroy(stream), GCAP_FAILED_PRECONDITION, "of a pool");
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  Release(stream);
}

TEST_F(StreamPool, DestroyWhileStreamsAreOutIsRefused) {
  gcap_stream_t* stream = Acquire();
  Release(Acquire());
  GCAP_EXPECT_FAILS(gcap_stream_pool_destroy(pool_), GCAP_FAILED_PRECONDITION, "1 of 2 streams are out");
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  Release(stream);
}

// A capture of the stream, given up in the end.
class OpenCapture {
 public:
  explicit OpenCapture(gcap_stream_t* stream) {
    GCAP_EXPECT_OK(gcap_capture_begin(gcap_stream_handle(stream), nullptr, &capture_));
  }
  ~OpenCapture() { gcap_capture_abort(capture_); }

 private:
  gcap_capture_t* capture_ = nullptr;
};

TEST_F(StreamPool, CapturingThreadGetsAnIdleStreamButNoNewOne) {
  gcap_stream_t* idle = Acquire();
  gcap_stream_t* captured = Acquire();
  Release(idle);
  {
    OpenCapture capture(captured);
    EXPECT_EQ(Acquire(), idle);
    gcap_stream_t* none = idle;
    GCAP_EXPECT_FAILS(gcap_stream_pool_acquire(pool_, &none), GCAP_FAILED_PRECONDITION, "capturing");
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(StatsOf(pool_).num_streams, 2u);
    Release(idle);
    GCAP_EXPECT_FAILS(gcap_stream_pool_release(pool_, captured), GCAP_FAILED_PRECONDITION, "is capturing");
    GCAP_EXPECT_FAILS(gcap_stream_pool_destroy(pool_), GCAP_FAILED_PRECONDITION, "capturing");
    EXPECT_EQ(StatsOf(pool_).num_out, 1u);
  }
  Release(captured);
}

TEST_F(StreamPool, AnotherThreadDoesNotReleaseACapturingStream) {
  gcap_stream_t* captured = Acquire();
  {
    OpenCapture capture(captured);
    std::thread([&] {
      GCAP_EXPECT_FAILS(gcap_stream_pool_release(pool_, captured), GCAP_FAILED_PRECONDITION, "is capturing");
    }).join();
  }
  Release(captured);
}

TEST_F(StreamPool, DestroyRefusesAStreamThatWasReleasedInACaptureOfSomebodyElse) {
  gcap_stream_t* stream = Acquire();
  ASSERT_EQ(cudaStreamBeginCapture(gcap_stream_handle(stream), cudaStreamCaptureModeRelaxed), cudaSuccess);
  Release(stream);  // on the thread that acquired it nobody asks
  GCAP_EXPECT_FAILS(gcap_stream_pool_destroy(pool_), GCAP_FAILED_PRECONDITION, "is capturing");
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(gcap_stream_handle(stream), &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(Acquire(), stream) << "nothing was destroyed";
  Release(stream);
}

// Threads that come and go, hand streams to each other and write with them: each step's result is right. Of a thread's
// streams one is out by itself, and each other thread may be about to release one.
TEST_F(StreamPool, ThreadsComeAndGoAndHandStreamsOn) {
  constexpr unsigned kSeed = 9;
  constexpr int kRounds = 20, kThreads = 6, kSteps = 20;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 seeds(kSeed);
  std::atomic<gcap_stream_t*> handed_on{nullptr};
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t, seed = seeds()] {
        std::mt19937 random(seed);
        DeviceFloats value({0});
        for (int step = 0; step < kSteps; ++step) {
          gcap_stream_t* stream = Acquire();
          const float expected = static_cast<float>(t * kSteps + step);
          EXPECT_EQ(cudaMemcpyAsync(value.get(), &expected, sizeof(expected), cudaMemcpyHostToDevice,
                                    gcap_stream_handle(stream)),
                    cudaSuccess);
          GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
          EXPECT_EQ(value.Get(), std::vector<float>{expected});
          if (random() % 2 == 0) stream = handed_on.exchange(stream);
          if (stream != nullptr) Release(stream);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  gcap_stream_t* last = handed_on;
  if (last != nullptr) Release(last);
  EXPECT_EQ(StatsOf(pool_).num_out, 0u);
  EXPECT_LE(StatsOf(pool_).num_streams, static_cast<size_t>(kThreads * (kThreads + 1)));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
