// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Plans and executables beside what a device loses, and plans whose calls fail. A process of its own: what executables
// took is not forgotten.

#include <memory>
#include <vector>

#include "gcap/graph.h"
#include "gcap/graph_plan.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/faults.h"
#include "test/support/kernels/plain_kernels.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kStep = size_t{2} << 20;

size_t FreeBytes() {
  size_t free_bytes = 0, total_bytes = 0;
  GCAP_EXPECT_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
  return free_bytes;
}

class GraphPlanSim : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&x_), sizeof(float)));
    GCAP_EXPECT_CUDA(cudaMemsetAsync(x_, 0, sizeof(float), stream_->get()));
    stream_->Synchronize();
  }
  void TearDown() override {
    ManagerTest::TearDown();
    GCAP_EXPECT_CUDA(cudaFree(x_));
  }
  static gcap_status_t Work(void* self, cudaStream_t stream) {
    GraphPlanSim* test = static_cast<GraphPlanSim*>(self);
    int64_t count = 1;
    void* args[] = {&test->x_, &test->x_, &count};
    for (int i = 0; i < test->kernels_; ++i) {
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(
          cudaLaunchKernel(reinterpret_cast<const void*>(gcap_kernel_relu_f32), dim3(1), dim3(32), args, 0, stream)));
    }
    return nullptr;
  }
  gcap_status_t Run(int id) { return RunPlain(manager_, id, stream_->get(), Work, this, true); }
  std::vector<PlannedPlain> Runs(int ids) {
    std::vector<PlannedPlain> runs;
    for (int id = 0; id < ids; ++id) runs.push_back({id, Work, this});
    return runs;
  }
  size_t SumOfExecutables(int ids) {
    size_t bytes = 0;
    for (int id = 0; id < ids; ++id) bytes += Info(id).exec_bytes;
    return bytes;
  }

  float* x_ = nullptr;
  int kernels_ = 0;
};

// First by the recorded numbers, then, in the same process, by what was seen to go.
TEST_F(GraphPlanSim, IsWhatTheDeviceLoses) {
  constexpr int kIds = 200;
  Create(0);
  size_t went_before = 0;
  for (const int kernels : {12, 300}) {
    kernels_ = kernels;
    const std::vector<PlannedPlain> runs = Runs(kIds);
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    GCAP_EXPECT_OK(PlanPlain(manager_, stream_->get(), runs.data(), kIds, &plan));
    const size_t before = FreeBytes();
    for (int id = 0; id < kIds; ++id) GCAP_EXPECT_OK(Run(id));
    const double went = static_cast<double>(before - FreeBytes() + went_before);
    EXPECT_NEAR(static_cast<double>(plan.bytes), went, 0.05 * went + kStep) << kernels << " kernels";
    EXPECT_NEAR(static_cast<double>(SumOfExecutables(kIds)), went, 0.03 * went + kStep) << kernels << " kernels";
    GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
    EXPECT_EQ(FreeBytes(), before - static_cast<size_t>(went) + went_before) << "the driver keeps it";
    went_before = static_cast<size_t>(went);
  }
}

TEST_F(GraphPlanSim, AnExecutableIsMeasuredByTheFreeMemoryOfItsDevice) {
  kernels_ = 3;
  Create(0);
  const uint64_t asked = gcap_sim_calls("cudaMemGetInfo");
  GCAP_EXPECT_OK(Run(0));
  EXPECT_GT(gcap_sim_calls("cudaMemGetInfo"), asked);
}

TEST_F(GraphPlanSim, ThatFailsIsAStatusAndLeavesNothing) {
  kernels_ = 2;
  const std::vector<PlannedPlain> runs = Runs(2);
  const Walked walked = WalkFaults([&](Fault& fault) {
    Create(1);
    for (int id = 0; id < 2; ++id) GCAP_EXPECT_OK(Run(id));
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    const Outcome outcome =
        fault.During([&] { return PlanPlain(manager_, stream_->get(), runs.data(), runs.size(), &plan); });
    // A plan needs to know of a kernel that it is one, no more.
    const bool is_needless = fault.Is("cuGraphKernelNodeGetParams") || fault.Is("cudaGraphKernelNodeGetAttribute");
    EXPECT_EQ(outcome.ok(), !fault.hit() || is_needless) << outcome.message;
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    EXPECT_EQ(plan.graphs, outcome.ok() ? 2u : 0u);
    EXPECT_EQ(plan.kernel_nodes, outcome.ok() ? 4u : 0u);
    for (int id = 0; id < 2; ++id) GCAP_EXPECT_OK(Run(id));
    EXPECT_EQ(State(0), "CAPTURED");
    GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
    manager_ = nullptr;
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamGetDevice", "cudaStreamIsCapturing", "cudaStreamBeginCapture",
                                         "cudaStreamGetCaptureInfo", "cudaLaunchKernel", "cudaStreamEndCapture",
                                         "cudaGraphGetNodes", "cudaGraphNodeGetType", "cuGraphKernelNodeGetParams",
                                         "cudaGraphKernelNodeGetAttribute", "cudaGraphDestroy"}));
}

// Of a child graph that the driver does not show, nothing is counted: only the estimate suffers.
TEST_F(GraphPlanSim, OfAChildThatIsNotShownCountsNothing) {
  kernels_ = 3;
  Create(0);
  static cudaGraph_t child;
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream_->get(), cudaStreamCaptureModeRelaxed));
  GCAP_EXPECT_OK(Work(this, stream_->get()));
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_->get(), &child));
  const PlainWork add_child = [](void*, cudaStream_t stream) -> gcap_status_t {
    cudaStreamCaptureStatus status;
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t node = nullptr;
    GCAP_EXPECT_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr));
    GCAP_EXPECT_CUDA(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
    return GCAP_CUDA(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies));
  };
  const PlannedPlain run = {0, add_child, nullptr};
  const auto count_kernels = [&] {
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    GCAP_EXPECT_OK(PlanPlain(manager_, stream_->get(), &run, 1, &plan));
    EXPECT_EQ(plan.nodes, 1u);
    return plan.kernel_nodes;
  };
  EXPECT_EQ(count_kernels(), 3u);
  gcap_sim_fail_nth("cudaGraphChildGraphNodeGetGraph", 1, cudaErrorUnknown);
  EXPECT_EQ(count_kernels(), 0u);
  gcap_sim_fail_nth("cudaGraphGetNodes", 3, cudaErrorUnknown);  // after two of the graph itself
  EXPECT_EQ(count_kernels(), 0u);
  EXPECT_EQ(count_kernels(), 3u);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(child));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
