// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// prefix_test.h: graphs that keep their steps, and what an eager run of the same work has behind each step.
#ifndef GCAP_TEST_GRAPH_PREFIX_TEST_H_
#define GCAP_TEST_GRAPH_PREFIX_TEST_H_

#include <string>
#include <vector>

#include "lib/capture/steps.h"
#include "lib/graph/prefix.h"
#include "test/graph/holes_test.h"

namespace gcap {
namespace testing {

class PrefixTest : public HolesTest {
 protected:
  void SetUp() override {
    HolesTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    CreateManager();
    gcap_graph_keep_steps(manager_, true);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    gcap_capture_steps_free(&steps_);
    HolesTest::TearDown();
  }

  // Captures the work, and reads its steps.
  void Capture(const gcap_run_t& run, const WorkWith& work) {
    const Outcome captured = RunHoled(run, work);
    ASSERT_TRUE(captured.ok()) << captured.message;
    ASSERT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
    gcap_capture_steps_free(&steps_);
    GCAP_ASSERT_OK(gcap_graph_read_steps(manager_, &run, &steps_));
  }

  // A step of an eager run, and what `x` had behind it.
  struct Seen {
    std::string operation;
    float value;
  };
  struct Watch {
    cudaStream_t stream;
    const float* x;
    std::vector<Seen> seen;

    static void Look(void* self, size_t, const char* operation, const char*, int, cudaStream_t) {
      Watch* watch = static_cast<Watch*>(self);
      watch->seen.push_back({operation, ValueOf(watch->x, watch->stream)});
    }
  };
  static float ValueOf(const float* x, cudaStream_t stream) {
    float value = 0;
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(&value, x, sizeof(value), cudaMemcpyDeviceToHost, stream));
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(stream));
    return value;
  }
  // Issues the work eagerly on resources like those of the run, and looks behind each step.
  std::vector<Seen> RunEagerly(const gcap_run_resources_t& resources, const float* x, const WorkWith& work) {
    Watch watch = {resources.cuda_stream, x, {}};
    gcap_step_observer_t observer = {Watch::Look, &watch, 0, nullptr};
    gcap_observe_steps(&observer);
    GCAP_EXPECT_OK(work(&resources));
    gcap_observe_steps(nullptr);
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(resources.cuda_stream));
    return watch.seen;
  }
  gcap_run_resources_t ResourcesOf(void* const* addresses = nullptr, size_t count = 0) const {
    gcap_run_resources_t resources;
    gcap_run_resources_init(&resources);
    resources.cuda_stream = stream_->get();
    resources.addresses = addresses;
    resources.num_addresses = count;
    return resources;
  }

  // Launches each beginning of the graph from the same `x`, and expects what the eager run had behind the same step.
  void ExpectBeginnings(const gcap_run_t& run, const Floats& x, float begin, const std::vector<Seen>& eager) {
    for (size_t i = 0; i < steps_.count; ++i) {
      if (i < eager.size()) {
        EXPECT_EQ(steps_.items[i].operation, eager[i].operation);
      }
      x.Fill(begin);
      const Outcome launched(gcap_graph_launch_prefix(manager_, &run, i + 1));
      EXPECT_TRUE(launched.ok()) << launched.message;
      GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
      EXPECT_EQ(x.value(), eager[i < eager.size() ? i : eager.size() - 1].value)
          << "step " << i << ", " << steps_.items[i].operation;
    }
  }

  gcap_capture_steps_t steps_ = {};
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_PREFIX_TEST_H_
