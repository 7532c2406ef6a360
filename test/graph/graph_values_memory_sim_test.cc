// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Values that the work reads on the device, on the simulator: how many calls a replay makes, calls that fail, and runs
// that are never ended. The value is a table: to = from + 1.

#include <atomic>
#include <chrono>
#include <thread>

#include "gcap/stream.h"
#include "gcap_sim.h"
#include "test/graph/values_rig.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class GraphValuesMemorySim : public GraphValues {
 protected:
  void TearDown() override {
    gcap_sim_clear_faults();
    GraphValues::TearDown();
  }
  struct Table {
    const float* from;
    float* to;
  };

  Outcome RunTo(const Floats& to, Fault* fault = nullptr, bool is_replay = false, bool synchronize = true) {
    const Table table = {x_->get(), to.get()};
    const std::vector<gcap_graph_value_t> values = {
        {"table", &table, sizeof(table), GCAP_GRAPH_VALUE_BYTES, nullptr, nullptr, false, true}};
    const gcap_graph_buffers_t buffers = With(values);
    WorkWith work = [](const gcap_run_resources_t* r) {
      return LaunchKernel(r->cuda_stream, reinterpret_cast<const void*>(gcap_kernel_add_table), r->values[0], kFloats);
    };
    gcap_run_t run = RunOf(kId, stream_->get(), synchronize);
    run.work = IssueWith;
    run.user = &work;
    run.buffers = &buffers;
    const auto call = [&] {
      return is_replay ? gcap_graph_manager_replay(manager_, &run, nullptr) : gcap_graph_manager_run(manager_, &run);
    };
    return fault != nullptr ? fault->During(call) : Outcome(call());
  }
  Outcome IssueTo(const Floats& to) { return RunTo(to, nullptr, /*is_replay=*/true, /*synchronize=*/false); }
};

TEST_F(GraphValuesMemorySim, AReplayWithTheSameValuesIsTheLaunchAlone) {
  const Floats other(0);
  ASSERT_TRUE(RunTo(*y_).ok());
  const auto copies = [&](const Floats& to) {
    const uint64_t before = gcap_sim_calls("cudaMemcpyAsync");
    EXPECT_TRUE(RunTo(to, nullptr, /*is_replay=*/true).ok());
    const uint64_t after = gcap_sim_calls("cudaMemcpyAsync");
    EXPECT_EQ(to.value(), 4);
    return after - before;
  };
  const uint64_t sets = gcap_sim_calls("cuGraphExecKernelNodeSetParams");
  EXPECT_EQ(copies(*y_), 0u);
  EXPECT_EQ(copies(other), 1u);
  EXPECT_EQ(copies(other), 0u);
  EXPECT_EQ(gcap_sim_calls("cuGraphExecKernelNodeSetParams"), sets);
}

TEST_F(GraphValuesMemorySim, WhateverFailsInARunTheOutputIsRightOrTheRunFails) {
  for (const uint32_t min_runs : {0, 1}) {
    CreateWith([&](gcap_graph_manager_options_t* options) { options->min_num_runs_before_capture = min_runs; });
    (void)WalkFaults([&](Fault& fault) {
      y_->Fill(-1);
      const LogCatcher log;
      const Outcome outcome = RunTo(*y_, &fault);
      EXPECT_TRUE(outcome.ok() || fault.hit()) << outcome.message;
      stream_->Synchronize();
      (void)cudaGetLastError();
      EXPECT_TRUE(!outcome.ok() || y_->value() == 4) << fault.function();
      GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
      if (min_runs != 0) CreateWith([](gcap_graph_manager_options_t* o) { o->min_num_runs_before_capture = 1; });
    });
  }
}

// Whatever call of a replay fails, the next one has the values that it asks for, or the graph is captured again.
TEST_F(GraphValuesMemorySim, WhateverFailsInAReplayTheNextOneIsRight) {
  const Floats other(0);
  for (const Reach reach : {Reach::kOneCall, Reach::kAllAfter}) {
    (void)WalkFaults(
        [&](Fault& fault) {
          ASSERT_TRUE(RunTo(*y_).ok());
          other.Fill(-1);
          const Outcome outcome = RunTo(other, &fault, /*is_replay=*/true);
          EXPECT_EQ(outcome.ok(), !fault.hit()) << fault.function() << ": " << outcome.message;
          stream_->Synchronize();
          (void)cudaGetLastError();
          EXPECT_TRUE(!outcome.ok() || other.value() == 4) << fault.function();
          y_->Fill(-1);
          other.Fill(-1);
          if (State(kId) == "CAPTURED" && !outcome.ok()) {  // with the values that it had
            GCAP_EXPECT_OK(Replay(manager_, kId, true));
            EXPECT_EQ(y_->value() == 4, other.value() == -1) << fault.function();
          }
          for (const Floats* to : {&other, const_cast<const Floats*>(y_.get())}) {
            to->Fill(-1);
            const Outcome next = RunTo(*to);
            ASSERT_TRUE(next.ok()) << fault.function() << ": " << next.message;
            EXPECT_EQ(to->value(), 4) << fault.function();
          }
          GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
        },
        reach);
  }
}

// The ring has 64 slots in two halves.
TEST_F(GraphValuesMemorySim, MostReplaysMakeOneCallBeyondTheLaunch) {
  const Floats other(0);
  ASSERT_TRUE(RunTo(*y_).ok());
  const std::vector<std::string> names = {"cudaMemcpyAsync", "cudaGraphLaunch", "cudaEventRecord", "cudaEventQuery",
                                          "cudaThreadExchangeStreamCaptureMode"};
  std::vector<uint64_t> counts;
  for (const std::string& name : names) counts.push_back(gcap_sim_calls(name.c_str()));
  for (int i = 0; i < 128; ++i) ASSERT_TRUE(IssueTo(i % 2 == 0 ? other : *y_).ok());
  for (size_t i = 0; i < names.size(); ++i) counts[i] = gcap_sim_calls(names[i].c_str()) - counts[i];
  stream_->Synchronize();
  EXPECT_EQ(counts, (std::vector<uint64_t>{128, 128, 4, 4, 8}));
}

// Until the event is recorded no slot of its half is written: the copies from all of them wait in line.
TEST_F(GraphValuesMemorySim, AnEventThatIsNotRecordedIsRecordedLater) {
  constexpr int kReplays = 150, kRefused = 31;  // the first slot is that of the capture
  std::vector<std::unique_ptr<Floats>> places;
  for (int i = 0; i < kReplays; ++i) places.push_back(std::make_unique<Floats>(0.0f));
  ASSERT_TRUE(RunTo(*y_).ok());
  // The stream is busy while the replays are issued, but for those that find no slot.
  GCAP_EXPECT_CUDA(cudaLaunchHostFunc(
      stream_->get(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }, nullptr));
  for (int i = 0; i < kReplays; ++i) {
    if (i == kRefused) gcap_sim_fail_nth("cudaEventRecord", 1, cudaErrorUnknown);
    const Outcome outcome = IssueTo(*places[static_cast<size_t>(i)]);
    EXPECT_EQ(outcome.ok(), i != kRefused) << i << ": " << outcome.message;
    EXPECT_TRUE(outcome.ok() || outcome.Names("graph id 3 did not get its values")) << outcome.message;
    if (i == kRefused) gcap_sim_clear_faults();
  }
  stream_->Synchronize();
  EXPECT_EQ(State(kId), "CAPTURED");
  for (int i = 0; i < kReplays; ++i) EXPECT_EQ(places[static_cast<size_t>(i)]->value(), i == kRefused ? 0 : 4) << i;
}

// The copy of the values is behind other work of the stream when the launch fails.
class GraphValuesNotLaunched : public GraphValuesMemorySim {
 protected:
  void TearDown() override {
    Release();
    GraphValuesMemorySim::TearDown();
  }
  // Until the release; a second, so that a test which fails ends.
  void Block() {
    GCAP_EXPECT_CUDA(cudaLaunchHostFunc(
        stream_->get(),
        [](void* flag) {
          const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
          while (!static_cast<std::atomic<bool>*>(flag)->load() && std::chrono::steady_clock::now() < end) {
            std::this_thread::yield();
          }
        },
        &goes_on_));
  }
  void Release() {
    goes_on_ = true;
    if (releases_.joinable()) releases_.join();
  }
  // Releases the stream once somebody waits for it.
  void ReleaseAtWait() {
    const uint64_t waits = gcap_sim_calls("cudaStreamSynchronize");
    releases_ = std::thread([this, waits] {
      while (!goes_on_ && gcap_sim_calls("cudaStreamSynchronize") == waits) std::this_thread::yield();
      goes_on_ = true;
    });
  }
  static void FailFirst(const char* function) {
    gcap_sim_fault_t fault = {};
    fault.function = function;
    fault.nth = 1;
    fault.code = cudaErrorUnknown;
    gcap_sim_inject(&fault);
  }
  Outcome RunWithoutRerun() {
    CreateWith([](gcap_graph_manager_options_t* options) { options->rerun_failed_capture = false; });
    FailFirst("cudaGraphLaunch");
    const LogCatcher log;
    const Outcome outcome = RunTo(*y_);
    gcap_sim_clear_faults();
    return outcome;
  }

  std::atomic<bool> goes_on_{false};
  std::thread releases_;
};

TEST_F(GraphValuesNotLaunched, TheCopyIsWaitedForBeforeItsMemoryGoes) {
  Block();
  ReleaseAtWait();
  const uint64_t before = gcap_sim_calls("cudaFreeHost");
  const Outcome outcome = RunWithoutRerun();
  EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED") << outcome.message;
  EXPECT_TRUE(goes_on_) << "nobody waited";
  EXPECT_EQ(gcap_sim_calls("cudaFreeHost") - before, 1u);
  Release();
  ASSERT_TRUE(RunTo(*y_).ok());
  EXPECT_EQ(y_->value(), 4);
}

TEST_F(GraphValuesNotLaunched, MemoryWhoseCopyCannotBeWaitedForIsKept) {
  Block();
  const uint64_t before = gcap_sim_calls("cudaFreeHost");
  FailFirst("cudaStreamSynchronize");
  const Outcome outcome = RunWithoutRerun();
  EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED") << outcome.message;
  EXPECT_TRUE(outcome.Names("a copy of values may be on its way, and its memory is kept")) << outcome.message;
  EXPECT_EQ(gcap_sim_calls("cudaFreeHost"), before);
  Release();
  stream_->Synchronize();
}

// The memory of an eager run that is never ended goes when the run is aborted.
class GraphValuesAbandoned : public GraphValuesMemorySim {
 protected:
  // Opens an eager run, and leaves it.
  void Abandon(cudaStream_t stream) {
    const Table table = {x_->get(), y_->get()};
    const std::vector<gcap_graph_value_t> values = {
        {"table", &table, sizeof(table), GCAP_GRAPH_VALUE_BYTES, nullptr, nullptr, false, true}};
    const gcap_graph_buffers_t buffers = With(values);
    gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE, stream, /*synchronize=*/false);
    run.buffers = &buffers;
    void* address = nullptr;
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_CAPTURE;
    GCAP_EXPECT_OK(gcap_graph_manager_begin_run(manager_, &run, &kind, &address));
    EXPECT_EQ(kind, GCAP_GRAPH_RUN_EAGER);
    GCAP_EXPECT_OK(LaunchKernel(stream, reinterpret_cast<const void*>(gcap_kernel_add_table), address, kFloats));
  }
  // How many allocations of runs are left when another run has aborted that one.
  static uint64_t Calls(const char* name) { return gcap_sim_calls(name); }
  uint64_t NumLeft() {
    const uint64_t in_order = Calls("cudaFreeAsync"), at_once = Calls("cudaFree");
    const LogCatcher log;
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_CAPTURE;
    GCAP_EXPECT_OK(BeginPlain(manager_, GCAP_GRAPH_ID_NONE, stream_->get(), &kind));
    EXPECT_TRUE(End().ok());
    return 1 - (Calls("cudaFreeAsync") - in_order) - (Calls("cudaFree") - at_once);
  }
};

TEST_F(GraphValuesAbandoned, ByItsOwnThread) {
  Abandon(stream_->get());
  EXPECT_EQ(NumLeft(), 0u);
  stream_->Synchronize();
  EXPECT_EQ(y_->value(), 4);
}

TEST_F(GraphValuesAbandoned, ByAThreadThatIsGoneOnAStreamThatStays) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  std::thread([&] { Abandon(gcap_stream_handle(stream)); }).join();
  EXPECT_EQ(NumLeft(), 0u);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  EXPECT_EQ(y_->value(), 4);
}

TEST_F(GraphValuesAbandoned, ByAThreadThatIsGoneWithItsStream) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  std::thread([&] { Abandon(gcap_stream_handle(stream)); }).join();
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  EXPECT_EQ(NumLeft(), 0u);
  EXPECT_EQ(y_->value(), 4);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
