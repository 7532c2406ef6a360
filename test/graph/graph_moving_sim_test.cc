// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Binds whose calls fail, one by one and then the way back too; and binds of several threads.

#include <atomic>
#include <memory>
#include <thread>

#include "gcap/graph_buffers.h"
#include "gcap_sim.h"
#include "test/graph/moving_test.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

// Three kernels: 1 = 0 + 1, 2 = 1 + 1, 3 = 2 + 1.
gcap_status_t AddThrice(cudaStream_t stream, void* const* at) {
  for (int i = 0; i < 3; ++i) GCAP_RETURN_IF_ERROR(AddTo(stream, at[i], at[i + 1], 1));
  return nullptr;
}

class GraphMovingSim : public GraphMoving {
 protected:
  void SetUp() override {
    GraphMoving::SetUp();
    for (int i = 0; i < 4; ++i) {
      first_.push_back(std::make_unique<Floats>(static_cast<float>(10 * i)));
      second_.push_back(std::make_unique<Floats>(static_cast<float>(100 * (i + 1))));
    }
  }
  void TearDown() override {
    gcap_sim_clear_faults();
    first_.clear();
    second_.clear();
    GraphMoving::TearDown();
  }

  using Place = std::vector<std::unique_ptr<Floats>>;
  Outcome RunThrice(const Place& place) {
    std::vector<gcap_graph_buffer_t> items;
    for (const auto& floats : place) items.push_back({nullptr, floats->get(), kFloatsBytes, 0});
    return RunOn(items, AddThrice);
  }
  static std::vector<void*> AddressesOf(const Place& place) {
    std::vector<void*> addresses;
    for (const auto& floats : place) addresses.push_back(floats->get());
    return addresses;
  }
  // The nth call from now on that sets a kernel of an executable fails, and `times` - 1 of those behind it.
  static void FailSet(uint64_t nth, uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) {
      gcap_sim_fault_t fault = {};
      fault.function = "cuGraphExecKernelNodeSetParams";
      fault.nth = nth + i;
      fault.code = cudaErrorUnknown;
      gcap_sim_inject(&fault);
    }
  }

  Place first_, second_;
};

TEST_F(GraphMovingSim, ABindOfKernelsMakesNoCallButItsFour) {
  ASSERT_TRUE(RunThrice(first_).ok());
  const uint64_t calls = gcap_sim_calls(nullptr);
  GCAP_EXPECT_OK(Bind(0, second_[0]->get()));
  EXPECT_EQ(gcap_sim_calls(nullptr) - calls, 4u);
  for (const char* each :
       {"cuPointerGetAttributes", "cudaGetDevice", "cuCtxGetCurrent", "cuGraphExecKernelNodeSetParams"}) {
    const uint64_t before = gcap_sim_calls(each);
    GCAP_EXPECT_OK(Bind(0, first_[0]->get()));
    GCAP_EXPECT_OK(Bind(0, second_[0]->get()));
    EXPECT_EQ(gcap_sim_calls(each) - before, 2u) << each;
  }
}

gcap_status_t CopyFirst(cudaStream_t stream, void* const* at) {
  return GCAP_CUDA(cudaMemcpyAsync(at[1], at[0], kFloatsBytes, cudaMemcpyDefault, stream));
}

// The runtime sets copies and fills for the current device.
TEST_F(GraphMovingSim, ABindOfACopyBorrowsDeviceAndMode) {
  ASSERT_TRUE(RunOn(*first_[0], *first_[1], CopyFirst).ok());
  const uint64_t devices = gcap_sim_calls("cudaGetDevice"),
                 modes = gcap_sim_calls("cudaThreadExchangeStreamCaptureMode");
  GCAP_EXPECT_OK(Bind(0, second_[0]->get()));
  EXPECT_EQ(gcap_sim_calls("cudaGetDevice") - devices, 1u);
  EXPECT_EQ(gcap_sim_calls("cudaThreadExchangeStreamCaptureMode") - modes, 2u);
}

TEST_F(GraphMovingSim, ABindOfKernelsIsMadeOnTheGraphsDevice) {
  ASSERT_TRUE(RunThrice(first_).ok());
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const uint64_t calls = gcap_sim_calls("cudaSetDevice");
  GCAP_EXPECT_OK(Bind(0, second_[0]->get()));
  EXPECT_EQ(gcap_sim_calls("cudaSetDevice") - calls, 2u) << "there, and back";
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(GraphMovingSim, ABindThatFailsLeavesAllAsItWas) {
  ASSERT_TRUE(RunThrice(first_).ok());
  for (uint64_t nth = 1; nth <= 3; ++nth) {
    SCOPED_TRACE(nth);
    FailSet(nth, 1);
    GCAP_EXPECT_FAILS(ReplayAt(AddressesOf(second_)), GCAP_CUDA_ERROR, "cuGraphExecKernelNodeSetParams");
    gcap_sim_clear_faults();
    EXPECT_EQ(State(kId), "CAPTURED");
    first_[0]->Fill(static_cast<float>(nth));
    GCAP_EXPECT_OK(Replay(manager_, kId, true));
    EXPECT_EQ(first_[3]->value(), nth + 3);
    EXPECT_EQ(second_[3]->value(), 400) << "untouched";
  }
  GCAP_EXPECT_OK(ReplayAt(AddressesOf(second_)));
  EXPECT_EQ(second_[3]->value(), 103);
}

// Once the nodes are set the graph is elsewhere, or it is set back: whatever call fails, a bind that fails leaves the
// buffers where they were, for the replays and for the next bind. Copies are set in another capture mode.
TEST_F(GraphMovingSim, WhateverFailsInABindTheGraphIsWhereTheBindSays) {
  for (const bool copies : {false, true}) {
    SCOPED_TRACE(copies);
    (void)WalkFaults([&](Fault& fault) {
      ASSERT_TRUE((copies ? RunOn(*first_[0], *first_[1], CopyFirst) : RunThrice(first_)).ok());
      for (auto* place : {&first_, &second_}) (*place)[0]->Fill(place == &first_ ? 1 : 2);
      first_[1]->Fill(0);
      fault.Arm();
      const Outcome bound(Bind(0, second_[0]->get()));
      fault.Disarm();
      EXPECT_TRUE(bound.ok() || fault.hit()) << bound.message;
      if (State(kId) == "CAPTURED") {
        GCAP_EXPECT_OK(Replay(manager_, kId, true));
        EXPECT_EQ(first_[1]->value(), (bound.ok() ? 2 : 1) + (copies ? 0 : 1)) << fault.function();
      }
      GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
      stream_->Synchronize();
    });
  }
}

// A replay where the buffers are already is the launch alone.
TEST_F(GraphMovingSim, AReplayOnTheSameBuffersCallsTheDriverOnce) {
  ASSERT_TRUE(RunThrice(first_).ok());
  std::vector<gcap_graph_buffer_t> items;
  for (const auto& floats : first_) items.push_back({nullptr, floats->get(), kFloatsBytes, 0});
  const gcap_graph_buffers_t buffers = BuffersOf(items);
  gcap_run_t run = ReplayOf(kId, /*synchronize=*/false);
  run.buffers = &buffers;
  const uint64_t before = gcap_sim_calls_for_faults();
  GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &run, nullptr));
  EXPECT_EQ(gcap_sim_calls_for_faults() - before, 1u);
  stream_->Synchronize();
}

// Before the buffers were saved there is nothing to give back.
TEST_F(GraphMovingSim, ACheckOfMovesWithoutMemoryLeavesTheBuffers) {
  ASSERT_TRUE(RunThrice(first_).ok());
  for (uint64_t nth = 1; nth <= 4; ++nth) {
    SCOPED_TRACE(nth);
    for (size_t i = 0; i < 4; ++i) first_[i]->Fill(static_cast<float>(10 * nth + i));
    gcap_sim_fail_nth("cudaMalloc", nth, cudaErrorMemoryAllocation);
    GCAP_EXPECT_FAILS(gcap_graph_manager_check_moves(manager_, kId), GCAP_CUDA_ERROR, "cudaMalloc");
    gcap_sim_clear_faults();
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(first_[i]->value(), static_cast<float>(10 * nth + i));
  }
}

// The bind fails at its third node, and each of the calls that would put the nodes back fails once.
TEST_F(GraphMovingSim, ATornGraphDoesNotReplayAndIsCapturedAgain) {
  for (uint64_t undo = 0; undo < 3; ++undo) {
    SCOPED_TRACE(undo);
    ASSERT_TRUE(RunThrice(first_).ok());
    EXPECT_EQ(State(kId), "CAPTURED");
    FailSet(3, 1);
    FailSet(4 + undo, 1);
    GCAP_EXPECT_FAILS(ReplayAt(AddressesOf(second_)), GCAP_CUDA_ERROR, "graph id 3 could not be moved, nor put back");
    gcap_sim_clear_faults();
    EXPECT_EQ(State(kId), "STALE");
    EXPECT_FALSE(gcap_graph_manager_is_captured(manager_, kId));
    GCAP_EXPECT_FAILS(Replay(manager_, kId, true), GCAP_NOT_FOUND, "STALE");
    GCAP_EXPECT_FAILS(Bind(0, second_[0]->get()), GCAP_NOT_FOUND, "STALE");
    second_[0]->Fill(static_cast<float>(undo));
    const Outcome again = RunThrice(second_);
    ASSERT_TRUE(again.ok()) << again.message;
    EXPECT_EQ(State(kId), "CAPTURED");
    EXPECT_EQ(second_[3]->value(), undo + 3);
    EXPECT_TRUE(WhyNotMovable().ok());
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
}

TEST_F(GraphMovingSim, BindOfATornGraphNamesBothFailures) {
  ASSERT_TRUE(RunThrice(first_).ok());
  FailSet(1, 2);
  GCAP_EXPECT_FAILS(Bind(1, second_[1]->get()), GCAP_CUDA_ERROR, "nor put back");
  gcap_sim_clear_faults();
  EXPECT_EQ(State(kId), "STALE");
}

// A whole run does its work where the driver refuses to move the graph: eagerly if the nodes could be put back, by
// another capture if they could not.
TEST_F(GraphMovingSim, ARunThatTheDriverDoesNotMoveDoesItsWork) {
  for (const bool is_torn : {false, true}) {
    SCOPED_TRACE(is_torn);
    ASSERT_TRUE(RunThrice(first_).ok());
    const uint64_t captures = Info(kId).captures;
    FailSet(3, is_torn ? 2 : 1);
    second_[0]->Fill(7);
    calls_ = 0;
    const LogCatcher log;
    const Outcome outcome = RunThrice(second_);
    gcap_sim_clear_faults();
    ASSERT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(second_[3]->value(), 10);
    EXPECT_EQ(State(kId), "CAPTURED");
    EXPECT_EQ(Info(kId).captures, captures + (is_torn ? 1 : 0));
    EXPECT_EQ(calls_, is_torn ? 3 : 1) << "two rehearsals and a capture, or an eager run";
    EXPECT_NE(log.text().find("cuGraphExecKernelNodeSetParams"), std::string::npos) << log.text();
    EXPECT_EQ(WhyNotMovable().ok(), is_torn) << WhyNotMovable().message;
    first_[0]->Fill(20);
    ASSERT_TRUE(RunThrice(first_).ok());
    EXPECT_EQ(first_[3]->value(), 23);
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
}

// Asked at the capture, not at the first bind.
TEST_F(GraphMovingSim, ANodeThatTheDriverDoesNotChangeFixesTheGraph) {
  for (uint64_t nth = 1; nth <= 3; ++nth) {
    SCOPED_TRACE(nth);
    FailSet(nth, 1);
    ASSERT_TRUE(RunThrice(first_).ok());
    gcap_sim_clear_faults();
    EXPECT_TRUE(WhyNotMovable().Names("node " + std::to_string(nth - 1) + " of 3, kernel")) << WhyNotMovable().message;
    EXPECT_TRUE(WhyNotMovable().Names("the driver does not change this node")) << WhyNotMovable().message;
    second_[0]->Fill(static_cast<float>(nth));
    ASSERT_TRUE(RunThrice(second_).ok());
    EXPECT_EQ(second_[3]->value(), static_cast<float>(nth + 3));
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
}

// What a copy reads on the host is compared with what the rehearsals' copies read. Whichever question after memory
// fails, no graph comes of the run that moves.
TEST_F(GraphMovingSim, ACopyWhoseSourceTheDriverDoesNotTellIsInNoGraphThatMoves) {
  const char* const question = "cuPointerGetAttributes";
  const auto value = std::make_unique<float>(5.0f);
  const WorkOn work = [&](cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(
        GCAP_CUDA(cudaMemcpyAsync(at[0], value.get(), sizeof(*value), cudaMemcpyHostToDevice, stream)));
    return AddTo(stream, at[0], at[1], 1);
  };
  bool is_hit = true;
  for (int nth = 1; is_hit; ++nth) {
    SCOPED_TRACE(nth);
    const Floats input(0), output(0);
    const uint64_t before = gcap_sim_calls(question);
    gcap_sim_fail_nth(question, static_cast<uint64_t>(nth), cudaErrorUnknown);
    const Outcome outcome = RunOn(input, output, work, /*id=*/nth);
    gcap_sim_clear_faults();
    is_hit = gcap_sim_calls(question) - before >= static_cast<uint64_t>(nth);
    EXPECT_TRUE(outcome.ok() || is_hit) << outcome.message;
    EXPECT_EQ(State(nth) == "CAPTURED" && WhyNotMovable(nth).ok(), !is_hit);
  }
}

// Whatever call of a whole run on buffers fails, the run's work is done once and right, or the run has failed; and the
// next runs are right.
TEST_F(GraphMovingSim, WhateverFailsTheWorkIsDoneOnceOrNamed) {
  for (const bool is_copy : {false, true}) {
    (void)WalkFaults([&](Fault& fault) {
      const Handles before = LiveHandles();
      {
        const Floats input(1), output(9), other_input(5), other_output(9);
        const WorkOn work = [&](cudaStream_t stream, void* const* at) {
          if (!is_copy) return AddTo(stream, at[0], at[1], 0);
          return GCAP_CUDA(cudaMemcpyAsync(at[1], at[0], kFloatsBytes, cudaMemcpyDeviceToDevice, stream));
        };
        fault.Arm();
        const Outcome first = RunOn(input, output, work);
        const Outcome second = RunOn(other_input, other_output, work);
        fault.Disarm();
        stream_->Synchronize();
        EXPECT_TRUE(first.ok() || fault.hit()) << first.message;
        EXPECT_TRUE(second.ok() || fault.hit()) << second.message;
        if (first.ok()) {
          EXPECT_EQ(output.value(), 1) << fault.function();
        }
        if (second.ok()) {
          EXPECT_EQ(other_output.value(), 5) << fault.function();
        }
        for (int i = 0; i < 4; ++i) {
          const Floats next(static_cast<float>(20 + i)), result(9);
          const Outcome outcome = RunOn(next, result, work);
          EXPECT_TRUE(outcome.ok()) << outcome.message;
          EXPECT_EQ(result.value(), 20 + i) << fault.function();
        }
        EXPECT_EQ(State(kId), "CAPTURED");
        (void)Outcome(gcap_graph_manager_release_all(manager_));
      }
      fault.AllowKept();
      fault.ExpectNothingLeft(before);
    });
  }
}

// A device without room for the stand-ins: the graph is captured, and stays where it is.
TEST_F(GraphMovingSim, WithoutMemoryForStandInsTheGraphIsFixed) {
  const Floats input(1), output(9), other(5);
  gcap_sim_set_device_bytes(0, 1);
  const WorkOn copy = [](cudaStream_t stream, void* const* at) {
    return GCAP_CUDA(cudaMemcpyAsync(at[1], at[0], kFloatsBytes, cudaMemcpyDeviceToDevice, stream));
  };
  const Outcome captured = RunOn(input, output, copy);
  gcap_sim_set_device_bytes(0, 0);
  ASSERT_TRUE(captured.ok()) << captured.message;
  EXPECT_EQ(calls_, 2) << "a rehearsal that failed, and the capture";
  EXPECT_EQ(output.value(), 1);
  const Outcome refusal = WhyNotMovable();
  EXPECT_TRUE(refusal.Names("no second addresses for the buffers of a graph")) << refusal.message;
  EXPECT_TRUE(refusal.Names("cudaMalloc")) << refusal.message;
  ASSERT_TRUE(RunOn(other, output, copy).ok());
  EXPECT_EQ(calls_, 3) << "an eager run";
  EXPECT_EQ(output.value(), 5);
}

TEST_F(GraphMovingSim, WithoutAddressesAndMemoryForStandInsBothAreNamed) {
  const Floats input(1), output(9);
  gcap_sim_set_device_bytes(0, 1);
  gcap_sim_fail_nth("cuMemAddressReserve", 1, cudaErrorMemoryAllocation);
  const Outcome captured = RunOn(input, output);
  gcap_sim_set_device_bytes(0, 0);
  ASSERT_TRUE(captured.ok()) << captured.message;
  EXPECT_EQ(calls_, 1) << "no rehearsal";
  EXPECT_EQ(output.value(), 2);
  const Outcome refusal = WhyNotMovable();
  for (const char* call : {"cuMemAddressReserve", "cudaMalloc"}) EXPECT_TRUE(refusal.Names(call)) << refusal.message;
}

// --- Threads --------------------------------------------------------------------------------------------------------

// Threads bind and replay the same graph at once, each with its own buffers: a launch has all addresses of one thread.
TEST_F(GraphMovingSim, AReplayHasTheAddressesOfOneThread) {
  constexpr int kThreads = 4, kReplays = 50;
  const Floats input(1), output(2);
  ASSERT_TRUE(RunOn(input, output).ok());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Floats mine(static_cast<float>(100 * t)), result(0);
      for (int i = 0; i < kReplays; ++i) {
        result.Fill(-1);
        const Outcome outcome(ReplayAt({mine.get(), result.get()}));
        wrong += !outcome.ok() || result.value() != static_cast<float>(100 * t + 1);
      }
      while (!Outcome(ReplayAt({input.get(), output.get()})).ok()) wrong += 1;  // away from memory that goes
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Each manager has one open run at a time, so each thread has its own.
TEST_F(GraphMovingSim, ManagersOfSeveralThreadsCaptureOnBuffersAtOnce) {
  constexpr int kThreads = 3, kRounds = 10;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const RawStream stream;
      gcap_graph_manager_options_t options;
      gcap_graph_manager_options_init(&options);
      options.min_num_runs_before_capture = 0;
      gcap_graph_manager_t* manager = nullptr;
      wrong += !Outcome(gcap_graph_manager_create(&options, &manager)).ok();
      WorkOn work = [&](cudaStream_t on, void* const* at) { return AddTo(on, at[0], at[1], 1); };
      for (int i = 0; i < kRounds; ++i) {
        const Floats mine(static_cast<float>(t)), result(0), second(static_cast<float>(10 * t)), second_result(0);
        for (const bool is_second : {false, true}) {
          const auto items = is_second ? Items(second, second_result) : Items(mine, result);
          const gcap_graph_buffers_t buffers = BuffersOf(items);
          wrong += !Outcome(RunPlainOn(manager, 0, stream.get(), &buffers, Issue, &work, true)).ok();
        }
        wrong += result.value() != static_cast<float>(t + 1) || second_result.value() != static_cast<float>(10 * t + 1);
        wrong += !Outcome(gcap_graph_manager_release(manager, 0)).ok();
      }
      wrong += !Outcome(gcap_graph_manager_destroy(manager)).ok();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
