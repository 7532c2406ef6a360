// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// One session and many threads: each warms up and captures its own graphs, and runs are serialised where the EP asks.

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"

namespace {

using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::When;

using SessionThreads = gcap::testing::DeviceTest;

void RunThreads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(SessionThreads, EachThreadCapturesItsOwnGraph) {
  constexpr int kThreads = 8;
  constexpr int kRuns = 12;
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(2)));
  std::atomic<int> captured{0};
  RunThreads(kThreads, [&](int t) {
    DeviceFloats x(Floats(6)), y(Floats(6));
    for (int run = 0; run < kRuns; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(1000 * t + run));
    captured += static_cast<int>(rig.ep->Info(0).captures);
  });
  EXPECT_EQ(captured, kThreads);
  EXPECT_EQ(rig.count.executions, kThreads * kRuns);
  GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(rig.ep->runtime())));
}

TEST_F(SessionThreads, ThreadsComeAndGoWithTheirGraphs) {
  constexpr int kGenerations = 5;
  constexpr int kThreads = 4;
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  for (int generation = 0; generation < kGenerations; ++generation) {
    RunThreads(kThreads, [&](int t) {
      DeviceFloats x(Floats(6)), y(Floats(6));
      for (int run = 0; run < 6; ++run) {
        rig.ExpectRightRun(&x, &y, static_cast<float>(100 * t + run), run % 2);
        if (run == 4 && t % 2 == 0) GCAP_EXPECT_OK(gcap_session_release_captured_graph(rig.session, 1));
      }
    });
  }
  gcap_allocator_stats_t stats;
  gcap_scratch_get_stats(gcap_runtime_scratch(rig.ep->runtime()), &stats);
  EXPECT_EQ(stats.requested_in_use_bytes, 0u);
  GCAP_EXPECT_OK(gcap_scratch_trim(gcap_runtime_scratch(rig.ep->runtime())));
  gcap_scratch_get_stats(gcap_runtime_scratch(rig.ep->runtime()), &stats);
  EXPECT_EQ(stats.total_allocated_bytes, 0u) << "graphs of threads that are gone keep no memory";
}

TEST_F(SessionThreads, FailingCapturesOfOneThreadDisturbNoOther) {
  ChainRig rig("Alloc");
  rig.middle.misbehave = When::kInCapture;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  RunThreads(4, [&](int t) {
    DeviceFloats x(Floats(6)), y(Floats(6));
    for (int run = 0; run < 10; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(100 * t + run));
  });
  EXPECT_EQ(rig.count.executions, 40);
}

// A kernel is at work in a capture, and another thread makes a call that breaks a capture of its own.
TEST_F(SessionThreads, AnUnsafeCallOfAnotherThreadDisturbsNoCapture) {
  gcap::testing::TestEpConfig config;
  config.leave = [] {
    std::thread([] {
      void* memory = nullptr;
      EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
      EXPECT_EQ(cudaFree(memory), cudaSuccess);
    }).join();
  };
  ChainRig rig("Leave");
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1), config));
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 0; run < 3; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
  EXPECT_EQ(rig.ep->Info(0).captures, 1u);
  EXPECT_EQ(rig.ep->Info(0).failures, 0u);
}

// A rig over a user stream, which only one run at a time may use.
class UserStreamRig {
 public:
  explicit UserStreamRig(bool with_graphs = true) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    gcap_options_t options = GraphOptions(1);
    options.enable_cuda_graph = with_graphs;
    options.has_user_stream = true;
    options.user_stream = stream_;
    rig = std::make_unique<ChainRig>();
    GCAP_EXPECT_OK(rig->Create(options));
    rig->middle.pause_us = 200;
  }
  ~UserStreamRig() {
    rig.reset();
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

  std::unique_ptr<ChainRig> rig;

 private:
  cudaStream_t stream_ = nullptr;
};

TEST_F(SessionThreads, RunsOnAUserStreamAreSerialised) {
  constexpr int kThreads = 4;
  UserStreamRig user;
  RunThreads(kThreads, [&](int t) {
    DeviceFloats x(Floats(6)), y(Floats(6));
    // The graphs are shared as the stream is, so each thread's addresses go under its own id.
    for (int run = 0; run < 6; ++run) user.rig->ExpectRightRun(&x, &y, static_cast<float>(100 * t + run), t);
  });
  EXPECT_EQ(user.rig->ep->most_computes_at_once(), 1);
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(user.rig->ep->Info(t).captures, 1u);
}

TEST_F(SessionThreads, RunsOfTwoSessionsOnAUserStreamAreSerialisedToo) {
  UserStreamRig user(/*with_graphs=*/false);
  gcap_session_t* const first = user.rig->session;
  GCAP_ASSERT_OK(user.rig->CreateSession());
  gcap_session_t* const sessions[] = {first, user.rig->session};
  RunThreads(4, [&](int t) {
    DeviceFloats x(Floats(6)), y(Floats(6));
    const gcap_tensor_t input = gcap::testing::Tensor(x.get(), {2, 3});
    const gcap_tensor_t output = gcap::testing::Tensor(y.get(), {2, 3});
    const gcap_run_options_t options = gcap::testing::RunOptions(t, true);
    for (int run = 0; run < 6; ++run) {
      const Floats content(6, static_cast<float>(100 * t + run));
      x.Set(content);
      GCAP_ASSERT_OK(gcap_session_run(sessions[t % 2], &options, &input, &output));
      EXPECT_EQ(y.Get(), gcap::testing::ChainOf(content));
    }
  });
  EXPECT_EQ(user.rig->ep->most_computes_at_once(), 1);
  GCAP_EXPECT_OK(gcap_session_destroy(first));
}

}  // namespace
