// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Launches of the beginning of a graph in which a CUDA call fails, or in which there is no host memory: the graph is
// whole afterwards, or it is captured again before it is launched.

#include <string>
#include <vector>

#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/graph/prefix_test.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class GraphPrefixSim : public PrefixTest {
 protected:
  // x += 1, then `function`, then += 10, += 20, with a hole before the last if there is to be one.
  WorkWith Work() {
    hole_.function = [this](const gcap_run_resources_t* resources) { return Add(resources, x_.get(), 40); };
    return [this](const gcap_run_resources_t* resources) -> gcap_status_t {
      GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 1));
      if (has_hole_) GCAP_RETURN_IF_ERROR(hole_.Issue(resources));
      GCAP_RETURN_IF_ERROR(Add(resources, x_.get(), 10));
      if (has_function_) {
        GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaLaunchHostFunc(
            resources->cuda_stream, [](void*) {}, nullptr)));
      }
      return Add(resources, x_.get(), 20);
    };
  }
  float whole() const { return has_hole_ ? 71 : 31; }

  // The beginning up to the second addition, with each of its calls failing, alone or with all behind it.
  void WalkLaunch(Reach reach) {
    const size_t num_steps = has_hole_ ? 3 : 2;
    const RawStream other;
    DestroyManager();
    const Walked walked = WalkFaults(
        [&](Fault& fault) {
          const LogCatcher log;
          CreateManager();
          gcap_graph_keep_steps(manager_, true);
          Capture(RunBy(), Work());
          x_.Fill(0);
          gcap_run_t run = RunBy();
          if (is_elsewhere_) run.stream = other.get();
          const Outcome launched = fault.During([&] { return gcap_graph_launch_prefix(manager_, &run, num_steps); });
          EXPECT_EQ(launched.ok(), !fault.hit()) << fault.function();
          GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
          const float done = x_.value();
          EXPECT_TRUE(done == 0 || done == 1 || done == 41 || done == (has_hole_ ? 51 : 11)) << done;
          for (int i = 0; i < 3; ++i) {
            x_.Fill(0);
            const Outcome next = RunHoled(RunBy(), Work());
            EXPECT_TRUE(next.ok()) << next.message;
            EXPECT_EQ(x_.value(), whole()) << "behind a failed " << fault.function();
          }
          EXPECT_EQ(State(kId), "CAPTURED");
          DestroyManager();
        },
        reach);
    EXPECT_GE(walked.calls, 5u);
    CreateManager();
  }

  Floats x_{0};
  Hole hole_;
  bool has_hole_ = false, has_function_ = false, is_elsewhere_ = false;
};

TEST_F(GraphPrefixSim, FaultsOfALaunchLeaveTheGraphWhole) {
  WalkLaunch(Reach::kOneCall);
  WalkLaunch(Reach::kAllAfter);
}

TEST_F(GraphPrefixSim, FaultsOfALaunchBehindAHoleLeaveTheGraphWhole) {
  has_hole_ = true;
  is_elsewhere_ = true;
  WalkLaunch(Reach::kOneCall);
}

TEST_F(GraphPrefixSim, FaultsOfACloneLeaveNothing) {
  has_function_ = true;
  WalkLaunch(Reach::kOneCall);
  WalkLaunch(Reach::kAllAfter);
}

TEST_F(GraphPrefixSim, WithoutHostMemoryIsRefused) {
  has_function_ = true;
  Capture(RunBy(), Work());
  const gcap_run_t run = RunBy();
  gcap_capture_steps_t none;
  {
    const HeapFailure failure(/*count=*/2);
    EXPECT_EQ(Outcome(gcap_graph_read_steps(manager_, &run, &none)).code, GCAP_RESOURCE_EXHAUSTED);
  }
  EXPECT_EQ(none.items, nullptr);
  x_.Fill(0);
  GCAP_EXPECT_OK(gcap_graph_launch_prefix(manager_, &run, 1));
  stream_->Synchronize();
  EXPECT_EQ(x_.value(), 1);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
