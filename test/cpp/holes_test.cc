// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap::hole and the taps: callables as functions of holes, in eager runs, captures and replays; how long they live,
// what they throw, and what they may be.

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gcap/gcap.hpp"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

constexpr int kId = 7;

// A manager that captures the second run, and two bytes.
class Holes : public DeviceTest {
 public:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    on_ = own<gcap_stream_create>(0).value_or_throw();
    device_ = own<gcap_device_allocator_create>(0).value_or_throw();
    for (memory* byte : {&first_, &second_}) {
      *byte = own<gcap_allocator_alloc>(device_.get(), size_t{1}).value_or_throw();
    }
    auto options = filled_by<gcap_graph_manager_options_init>();
    options.min_num_runs_before_capture = 1;
    graphs_ = own<gcap_graph_manager_create>(&options).value_or_throw();
  }

  cudaStream_t handle() const { return gcap_stream_handle(on_.get()); }
  static gcap_status_t Fill(const memory& byte, int value, cudaStream_t stream) {
    return GCAP_CUDA(cudaMemsetAsync(byte.get(), value, 1, stream));
  }
  int Read(const memory& byte) {
    unsigned char value = 0;
    check(GCAP_CUDA(cudaMemcpyAsync(&value, byte.get(), 1, cudaMemcpyDeviceToHost, handle())));
    check(gcap_stream_synchronize(on_.get()));
    return value;
  }
  gcap_graph_info_t Info() { return filled_by<gcap_graph_manager_get_info>(graphs_.get(), kId); }
  // A run whose work is the first byte, a hole, and the first byte in the second one.
  template <class Function>
  status Run(const Function& function, bool break_where_refused = false, int id = kId) {
    run_args how(id, handle());
    how.synchronize = true;
    how.result = &result_;
    return run(graphs_.get(), how, [&](const gcap_run_resources_t& at) -> status {
      GCAP_RETURN_IF_ERROR(Fill(first_, 1, at.cuda_stream));
      GCAP_RETURN_IF_ERROR(hole(at, "hole", function, break_where_refused));
      return GCAP_CUDA(cudaMemcpyAsync(second_.get(), first_.get(), 1, cudaMemcpyDeviceToDevice, at.cuda_stream));
    });
  }
  // The function fills the first byte with that.
  template <class Function>
  void ExpectRun(const Function& function, gcap_run_outcome_t outcome, int value) {
    const status ran = Run(function);
    EXPECT_TRUE(ran.ok()) << ran.message();
    EXPECT_EQ(result_.outcome, outcome);
    EXPECT_EQ(Read(second_), value);
  }

  stream on_;
  allocator device_;
  memory first_, second_;
  graph_manager graphs_;
  gcap_run_result_t result_ = filled_by<gcap_run_result_init>();
};

// How often it was copied, and how many there are.
struct Counted {
  Counted() { ++live; }
  Counted(const Counted&) { ++live, ++copies; }
  Counted(Counted&&) noexcept { ++live, ++moves; }
  ~Counted() { --live; }
  static inline int live, copies, moves;
};

TEST_F(Holes, AreCalledByEachRunAndLiveAsLongAsTheGraph) {
  Counted::live = Counted::copies = Counted::moves = 0;
  int calls = 0, value = 5;
  {
    const auto function = [&, counted = Counted()](cudaStream_t stream) {
      ++calls;
      return Fill(first_, value, stream);
    };
    Counted::copies = Counted::moves = 0;
    ExpectRun(function, GCAP_RUN_EAGER, 5);
    value = 6;
    ExpectRun(function, GCAP_RUN_CAPTURED, 6);
    EXPECT_EQ(Counted::copies, 2) << "one for each time that the work was issued";
    EXPECT_EQ(Counted::moves, 0);
  }
  EXPECT_EQ(Counted::live, 1) << "the graph's";
  for (value = 7; value < 10; ++value) {
    ExpectRun([](cudaStream_t) { FAIL() << "of work that is not issued"; }, GCAP_RUN_REPLAYED, value);
  }
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(Counted::copies, 2) << "none in a replay";
  EXPECT_EQ(Info().holes, 1u);
  check(gcap_graph_manager_release(graphs_.get(), kId));
  EXPECT_EQ(Counted::live, 0);
}

TEST_F(Holes, TakeACallableThatCannotBeCopied) {
  for (int round = 0; round < 4; ++round) {
    run_args how(kId, handle());
    check(run(graphs_.get(), how, [&](const gcap_run_resources_t& at) {
      auto owned = std::make_unique<int>(9);
      return hole(at, "owner", [this, owned = std::move(owned)](cudaStream_t on) { return Fill(first_, *owned, on); });
    }));
    EXPECT_EQ(Read(first_), 9);
  }
  EXPECT_EQ(Info().replays, 3u);
}

// As work may be: the resources, the stream or nothing; a status of either kind or nothing.
TEST_F(Holes, TakeWhatWorkTakes) {
  int calls = 0;
  const auto of_resources = [&](const gcap_run_resources_t& at) -> gcap_status_t {
    ++calls;
    EXPECT_EQ(at.cuda_stream, handle());
    return nullptr;
  };
  const auto of_nothing = [&] { ++calls; };
  const auto of_stream = [&](cudaStream_t stream) -> status {
    ++calls;
    return Fill(second_, 4, stream);
  };
  for (int round = 1; round <= 3; ++round) {
    check(run(graphs_.get(), {kId, handle()}, [&](const gcap_run_resources_t& at) -> status {
      GCAP_RETURN_IF_ERROR(hole(at, nullptr, of_resources));
      GCAP_RETURN_IF_ERROR(hole(at, nullptr, of_nothing));
      return hole(at, nullptr, of_stream);
    }));
    EXPECT_EQ(calls, 3 * round);
    EXPECT_EQ(Read(second_), 4);
  }
  EXPECT_EQ(Info().holes, 3u);
}

TEST_F(Holes, OutsideOfRunsAreCalls) {
  auto resources = filled_by<gcap_run_resources_init>();
  resources.cuda_stream = handle();
  check(hole(resources, "alone", [&](cudaStream_t stream) { return Fill(first_, 3, stream); }));
  EXPECT_EQ(Read(first_), 3);
  status failed = hole(resources, "alone", [] { check(GCAP_STATUS(GCAP_NOT_FOUND, "no page 3")); });
  GCAP_EXPECT_FAILS(failed.release(), GCAP_NOT_FOUND, "no page 3");
}

// In the eager run, in the captured one behind its first launch, and in a replay.
TEST_F(Holes, WhatTheyThrowIsTheRunsStatus) {
  bool throws_error = false, throws = false;
  const auto function = [&](cudaStream_t stream) {
    if (throws_error) check(GCAP_STATUS(GCAP_NOT_FOUND, "no page 3"));
    if (throws) throw std::out_of_range("page 4");
    check(Fill(first_, 8, stream));
  };
  for (const gcap_run_outcome_t outcome : {GCAP_RUN_EAGER, GCAP_RUN_CAPTURED, GCAP_RUN_REPLAYED}) {
    SCOPED_TRACE(outcome);
    const bool has_graph = outcome == GCAP_RUN_REPLAYED;
    throws_error = true;
    GCAP_EXPECT_FAILS(Run(function).release(), GCAP_NOT_FOUND, "no page 3");
    throws_error = false;
    throws = true;
    GCAP_EXPECT_FAILS(Run(function, false, outcome == GCAP_RUN_CAPTURED ? GCAP_GRAPH_ID_NONE : kId).release(),
                      GCAP_UNAVAILABLE, "the function of a hole threw an exception: page 4");
    throws = false;
    EXPECT_EQ(Info().state == GCAP_GRAPH_CAPTURED, has_graph || outcome == GCAP_RUN_CAPTURED);
    EXPECT_FALSE(gcap_thread_is_capturing());
    if (outcome != GCAP_RUN_CAPTURED) ExpectRun(function, outcome, 8);
  }
}

TEST_F(Holes, MayThrowAnything) {
  GCAP_EXPECT_FAILS(Run([] { throw 17; }).release(), GCAP_UNAVAILABLE,
                    "the function of a hole threw an exception: no std::exception");
}

TEST_F(Holes, ThatACaptureHasNoMemoryToKeepAreRefusedAndGone) {
  Counted::live = 0;
  auto scope = own<gcap_capture_begin>(handle(), nullptr).value_or_throw();
  auto resources = filled_by<gcap_run_resources_init>();
  resources.cuda_stream = handle();
  gcap_status_t refused = nullptr;
  {
    const HeapFailure heap;
    refused = hole(resources, "hole", [counted = Counted()] {}).release();
    EXPECT_EQ(heap.hits(), 1);
  }
  GCAP_EXPECT_FAILS(refused, GCAP_RESOURCE_EXHAUSTED, "no host memory for a retained entry");
  EXPECT_EQ(Counted::live, 0) << "while the capture is open";
}

// A thread that is cancelled in the function ends, and the replay with it.
TEST_F(Holes, MayBeCancelled) {
  struct Shared {
    Holes* test;
    std::atomic<bool> waits{false}, is_waiting{false};
  } shared = {this, {}, {}};
  const auto function = [&shared] {
    shared.is_waiting = shared.waits.load();
    while (shared.waits) pause();
  };
  for (int round = 0; round < 2; ++round) check(Run(function));
  shared.waits = true;
  pthread_t thread;
  const auto body = [](void* user) -> void* {
    Shared* const shared = static_cast<Shared*>(user);
    (void)shared->test->Run([] {});
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, body, &shared), 0);
  while (!shared.is_waiting) usleep(100);
  ASSERT_EQ(pthread_cancel(thread), 0);
  void* answer = nullptr;
  ASSERT_EQ(pthread_join(thread, &answer), 0);
  EXPECT_EQ(answer, PTHREAD_CANCELED);
  shared.waits = false;
  check(gcap_stream_synchronize(on_.get()));
  ExpectRun([] {}, GCAP_RUN_REPLAYED, 1);
}

// The callable waits, as no capture allows, and says so by an exception.
TEST_F(Holes, AreMadeWhereACaptureRefusesTheStep) {
  const LogCatcher log;
  int calls = 0;
  const auto function = [&](cudaStream_t stream) {
    ++calls;
    check(GCAP_CUDA(cudaStreamSynchronize(stream)));
  };
  const gcap_run_outcome_t outcomes[] = {GCAP_RUN_EAGER, GCAP_RUN_EAGER, GCAP_RUN_CAPTURED, GCAP_RUN_REPLAYED};
  for (const gcap_run_outcome_t outcome : outcomes) {
    const status ran = Run(function, /*break_where_refused=*/true);
    EXPECT_TRUE(ran.ok()) << ran.message();
    EXPECT_EQ(result_.outcome, outcome);
  }
  EXPECT_EQ(calls, 5) << "eager, the refused capture and its run, the capture, the replay";
  EXPECT_EQ(Info().holes, 1u);
  EXPECT_EQ(Info().refused_steps, 1u);
}

// Of a capture that is no run the C function says that, and what was kept for the hole goes with the capture.
TEST_F(Holes, InACaptureThatIsNoRunAreRefused) {
  Counted::live = 0;
  auto scope = own<gcap_capture_begin>(handle(), nullptr).value_or_throw();
  auto resources = filled_by<gcap_run_resources_init>();
  resources.cuda_stream = handle();
  status refused = hole(resources, "hole", [counted = Counted()] {});
  GCAP_EXPECT_FAILS(refused.release(), GCAP_FAILED_PRECONDITION, "in a capture that is no run");
  scope = {};
  EXPECT_EQ(Counted::live, 0);
}

TEST_F(Holes, TapsAreReadByEachRun) {
  const LogCatcher log;
  for (int round = 0; round < 4; ++round) {
    unsigned char seen[1] = {}, other = 0;
    gcap_graph_tap_t taps[] = {tap_into("first", seen), tap_into("second", &other, 1)};
    run_args how(kId, handle());
    how.taps = taps;
    how.num_taps = 2;
    int value = 10 + round;
    check(run(graphs_.get(), how, [&](const gcap_run_resources_t& at) -> status {
      GCAP_RETURN_IF_ERROR(Fill(first_, value, at.cuda_stream));
      GCAP_RETURN_IF_ERROR(tap(at.cuda_stream, "first", static_cast<const unsigned char*>(first_.get()), 1));
      return Fill(first_, 99, at.cuda_stream);
    }));
    EXPECT_EQ(seen[0], round < 2 ? 10 + round : 11) << "a graph has the value of its capture";
    EXPECT_EQ(taps[0].tapped_bytes, 1u);
    EXPECT_EQ(taps[1].tapped_bytes, 0u) << "no such tap";
    EXPECT_EQ(Read(first_), 99);
  }
  int32_t many[3] = {};
  EXPECT_EQ(tap_into("many", many).bytes, sizeof(many));
  EXPECT_EQ(tap_into("many", many).data, many);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
