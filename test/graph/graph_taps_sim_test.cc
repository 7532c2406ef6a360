// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Taps of runs in which a CUDA call fails, or in which there is no host memory: the work is done once, or the run fails
// and says so, and no memory of a tap is left.

#include <string>
#include <vector>

#include "gcap/graph_verify.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/graph/taps_test.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class GraphTapsSim : public TapsTest {
 protected:
  WorkWith Work() {
    return [this](const gcap_run_resources_t* resources) {
      return TwoTaps(resources, resources->num_addresses != 0 ? resources->addresses[0] : x_.get());
    };
  }

  // The first run of an id, or a replay, that reads a tap, with each of its calls failing.
  void WalkRun(bool moves, bool is_replay, Reach reach) {
    const Walked walked = WalkFaults(
        [&](Fault& fault) {
          const LogCatcher log;
          CreateManager();
          const std::vector<gcap_graph_buffer_t> items = {{"x", x_.get(), kFloatsBytes, 256}};
          const gcap_graph_buffers_t buffers = BuffersOf(items);
          gcap_run_t run = RunBy();
          if (moves) run.buffers = &buffers;
          if (is_replay) {
            EXPECT_TRUE(RunHoled(run, Work()).ok());
          }
          x_.Fill(0);
          float value = -1;
          gcap_graph_tap_t tap = {"one", &value, sizeof(value), 0};
          run.taps = &tap;
          run.num_taps = 1;
          const Outcome outcome = fault.During([&] {
            const WorkWith work = Work();
            run.work = IssueWith;
            run.user = const_cast<WorkWith*>(&work);
            return gcap_graph_manager_run(manager_, &run);
          });
          GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
          const float done = x_.value();
          if (outcome.ok()) {
            EXPECT_EQ(done, 11);
            EXPECT_EQ(value, 1);
            EXPECT_EQ(tap.tapped_bytes, kFloatsBytes);
          } else if (done != 0) {
            EXPECT_TRUE(result_.was_issued) << outcome.message;
          }
          for (int i = 0; i < 4; ++i) {
            x_.Fill(0);
            gcap_run_t next = RunBy();
            if (moves) next.buffers = &buffers;
            EXPECT_EQ(ReadBy(next, Work(), {"one", "two"}), (std::vector<float>{1, 11}));
          }
          EXPECT_EQ(State(kId), "CAPTURED");
          DestroyManager();
        },
        reach);
    EXPECT_GE(walked.calls, 5u);
  }

  Floats x_{0};
};

TEST_F(GraphTapsSim, FaultsOfACaptureLeaveTheWorkDoneOrTold) {
  for (const bool moves : {false, true}) WalkRun(moves, /*is_replay=*/false, Reach::kOneCall);
}

TEST_F(GraphTapsSim, FaultsOfAReplayLeaveTheWorkDoneOrTold) {
  WalkRun(/*moves=*/false, /*is_replay=*/true, Reach::kOneCall);
  WalkRun(/*moves=*/true, /*is_replay=*/true, Reach::kAllAfter);
}

// The simulator needs memory of its own, so only the blocks before its calls are refused here: the place in the list,
// and what stands for the memory on the device.
// A verification has read what the work tapped, and the graph's memory has the same.
TEST_F(GraphTapsSim, OfAnEqualVerificationTapsAreReadOnce) {
  CreateManager();
  x_.Fill(0);
  ASSERT_TRUE(RunHoled(RunBy(), Work()).ok());
  gcap_graph_verify_t verify;
  gcap_graph_verify_init(&verify);
  verify.each = 1;
  gcap_graph_verify_report_t report;
  gcap_graph_verify_report_init(&report);
  verify.report = &report;
  const gcap_graph_verify_buffer_t named = {"x", x_.get(), kFloatsBytes, GCAP_DTYPE_F32, 0, 0, false};
  verify.buffers = &named;
  verify.num_buffers = 1;
  float value = -1;
  gcap_graph_tap_t tap = {"one", &value, sizeof(value), 0};
  uint64_t copies[2];
  for (size_t num_taps = 0; num_taps < 2; ++num_taps) {
    gcap_run_t run = RunBy();
    run.verify = &verify;
    run.taps = &tap;
    run.num_taps = num_taps;
    const uint64_t before = gcap_sim_calls("cudaMemcpyAsync");
    const Outcome outcome = RunHoled(run, Work());
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_TRUE(report.is_verified);
    copies[num_taps] = gcap_sim_calls("cudaMemcpyAsync") - before;
  }
  EXPECT_EQ(value, 23);
  EXPECT_EQ(copies[1], copies[0] + 1);
  DestroyManager();
}

TEST_F(GraphTapsSim, WithoutHostMemoryThereIsNoGraph) {
  const LogCatcher log;
  for (const int skip : {0, 1}) {
    CreateManager();
    x_.Fill(0);
    int calls = 0, hits = 0;
    Outcome tapped(nullptr);
    const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
      if (++calls > 1) return TwoTaps(resources, x_.get());
      const HeapFailure no_memory(1, skip);
      tapped = Outcome(Tap(resources, "one", x_.get()));
      hits = no_memory.hits();
      return nullptr;
    };
    EXPECT_TRUE(RunHoled(RunBy(), work).ok());
    EXPECT_EQ(hits, 1);
    EXPECT_EQ(tapped.code, GCAP_RESOURCE_EXHAUSTED) << tapped.message;
    EXPECT_EQ(result_.outcome, GCAP_RUN_EAGER) << "the failure of a tap fails the capture, whatever the work returns";
    EXPECT_EQ(x_.value(), 11);
    DestroyManager();
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
