// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What graphs hold with their executables, and plans of it.

#include <list>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gcap/graph.h"
#include "gcap/graph_plan.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/kernels/plain_kernels.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

// So many kernels, beside a copy, and memory that the graph retains.
class Model {
 public:
  Model(int kernels, size_t bytes) : kernels_(kernels), bytes_(bytes) {
    GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&x_), sizeof(float)));
    GCAP_EXPECT_CUDA(cudaMemset(x_, 0, sizeof(float)));
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
  }
  ~Model() { GCAP_EXPECT_CUDA(cudaFree(x_)); }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  static gcap_status_t Work(void* self, cudaStream_t stream) { return static_cast<Model*>(self)->Issue(stream); }
  cudaError_t IssueKernels(cudaStream_t stream) {
    int64_t count = 1;
    void* args[] = {&x_, &x_, &count};
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < kernels_ && error == cudaSuccess; ++i) {
      error = cudaLaunchKernel(reinterpret_cast<const void*>(gcap_kernel_relu_f32), dim3(1), dim3(32), args, 0, stream);
    }
    return error;
  }
  int released() const { return released_; }
  int output() const { return job_.output(); }
  void set_input(int value) { job_.set_input(value); }

 private:
  gcap_status_t Issue(cudaStream_t stream) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(job_.Issue(stream)));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(IssueKernels(stream)));
    if (!gcap_thread_is_capturing()) return nullptr;
    return gcap_capture_retain(
        gcap_capture_current(), [](void* self) { ++static_cast<Model*>(self)->released_; },
        [](void* self) { return static_cast<Model*>(self)->bytes_; }, this);
  }

  const int kernels_;
  const size_t bytes_;
  int released_ = 0;
  float* x_ = nullptr;
  CopyJob job_;
};

class GraphPlan : public ManagerTest {
 protected:
  void TearDown() override {
    ManagerTest::TearDown();
    models_.clear();
  }
  // A model for each id from 0.
  void AddModels(const std::vector<int>& kernels) {
    for (int count : kernels) {
      models_.emplace_back(count, 1000 * (models_.size() + 1));
      runs_.push_back({static_cast<int>(models_.size()) - 1, Model::Work, &models_.back()});
    }
  }
  void RunAll() {
    for (const PlannedPlain& run : runs_) {
      GCAP_EXPECT_OK(RunPlain(manager_, run.id, stream_->get(), run.work, run.user, true));
    }
  }
  gcap_graph_plan_t Plan() {
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    GCAP_EXPECT_OK(PlanPlain(manager_, stream_->get(), runs_.data(), runs_.size(), &plan));
    EXPECT_EQ(plan.bytes, plan.retained_bytes + plan.exec_bytes);
    return plan;
  }
  void ExpectHeld(const gcap_graph_plan_t& plan) {
    gcap_graph_plan_t held = {};
    for (const PlannedPlain& run : runs_) {
      const gcap_graph_info_t info = Info(run.id);
      EXPECT_EQ(info.state, GCAP_GRAPH_CAPTURED);
      held.nodes += info.nodes;
      held.kernel_nodes += info.kernel_nodes;
      held.exec_bytes += info.exec_bytes;
      held.bytes += info.bytes;
    }
    EXPECT_EQ(plan.graphs, runs_.size());
    EXPECT_EQ(plan.nodes, held.nodes);
    EXPECT_EQ(plan.kernel_nodes, held.kernel_nodes);
    EXPECT_EQ(plan.exec_bytes, held.exec_bytes);
    EXPECT_EQ(plan.bytes, held.bytes);
  }
  gcap_status_t TryPlan(gcap_graph_plan_t* out_plan) {
    return PlanPlain(manager_, stream_->get(), runs_.data(), runs_.size(), out_plan);
  }

  std::list<Model> models_;
  std::vector<PlannedPlain> runs_;
};

TEST_F(GraphPlan, OfGraphsThatAreKeptCountsTheirKernels) {
  Create(0);
  AddModels({0, 3, 6});
  RunAll();
  EXPECT_EQ(Info(0).kernel_nodes, 0u);
  EXPECT_EQ(Info(2).kernel_nodes, 6u);
  EXPECT_EQ(Info(2).nodes, 6 + CopyJob::kNodes);
  EXPECT_EQ(RetainedBytes(1), 2000u);
  EXPECT_GT(Info(0).exec_bytes, 0u);
  EXPECT_GT(Info(1).exec_bytes, Info(0).exec_bytes);
  EXPECT_EQ(Info(2).exec_bytes - Info(1).exec_bytes, Info(1).exec_bytes - Info(0).exec_bytes);
  EXPECT_EQ(Info(7).exec_bytes, 0u) << "never run";
  ExpectHeld(Plan());
}

// Captures a graph of the model's kernels, and adds it to the capture of `stream` as one node.
void AddChild(Model* model, cudaStream_t stream) {
  const RawStream other;
  cudaGraph_t child = nullptr, graph = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(other.get(), cudaStreamCaptureModeRelaxed));
  GCAP_EXPECT_CUDA(model->IssueKernels(other.get()));
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(other.get(), &child));
  cudaStreamCaptureStatus status;
  const cudaGraphNode_t* before = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  GCAP_EXPECT_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &before, &edges, &count));
  cudaGraphNode_t node = nullptr;
  GCAP_EXPECT_CUDA(cudaGraphAddChildGraphNode(&node, graph, before, count, child));
  GCAP_EXPECT_CUDA(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(child));
}

TEST_F(GraphPlan, OfAGraphCountsTheKernelsOfItsChildren) {
  Create(0);
  Model model(5, 0);
  ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_CUDA(model.IssueKernels(stream_->get()));
  for (int i = 0; i < 2; ++i) AddChild(&model, stream_->get());
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(Info(0).nodes, 7u);
  EXPECT_EQ(Info(0).kernel_nodes, 15u);
}

TEST_F(GraphPlan, TheBudgetEvictsByWhatExecutablesTake) {
  Create(0);
  AddModels({100});
  RunAll();
  const size_t one = Info(0).bytes;
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  options.max_bytes = 3 * one - 1;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &manager_));
  for (int id = 0; id < 3; ++id) {
    GCAP_EXPECT_OK(RunPlain(manager_, id, stream_->get(), Model::Work, &models_.front(), true));
  }
  EXPECT_EQ(State(0), "READY");
  EXPECT_EQ(State(1), "CAPTURED");
  EXPECT_EQ(State(2), "CAPTURED");
}

// Executables that are made at once are all counted, and all forgotten.
TEST_F(GraphPlan, OfManagersOnSeveralThreadsAgree) {
  Create(0);
  AddModels({4});
  RunAll();
  const size_t before = Info(0).bytes;
  std::list<Model> models;  // made and ended while nobody captures
  for (int t = 0; t < 4; ++t) models.emplace_back(4, 1000);
  std::vector<std::thread> threads;
  for (Model& model : models) {
    threads.emplace_back([&model, before] {
      const RawStream stream;
      gcap_graph_manager_t* manager = nullptr;
      gcap_graph_manager_options_t options;
      gcap_graph_manager_options_init(&options);
      options.min_num_runs_before_capture = 0;
      GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &manager));
      for (int id = 0; id < 20; ++id) {
        const PlannedPlain run = {id, Model::Work, &model};
        gcap_graph_plan_t plan;
        gcap_graph_plan_init(&plan);
        GCAP_EXPECT_OK(PlanPlain(manager, stream.get(), &run, 1, &plan));
        GCAP_EXPECT_OK(RunPlain(manager, id, stream.get(), Model::Work, &model, true));
        gcap_graph_info_t info;
        gcap_graph_manager_get_info(manager, id, &info);
        EXPECT_EQ(plan.bytes, info.bytes);
        EXPECT_EQ(plan.bytes, before);
      }
      GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Info(0).bytes, before);
}

TEST_F(GraphPlan, IsWhatTheGraphsHoldThen) {
  Create(2);
  AddModels({1, 2, 7});
  RunAll();
  const gcap_graph_plan_t plan = Plan();
  for (const Model& model : models_) EXPECT_EQ(model.released(), 1) << "no graph is left of the rehearsal";
  for (int id = 0; id < 3; ++id) {
    EXPECT_EQ(State(id), "WARMING");
    EXPECT_EQ(Info(id).eager_runs, 1u);
    EXPECT_EQ(Info(id).bytes, 0u);
  }
  EXPECT_EQ(plan.retained_bytes, 6000u);
  for (int run = 0; run < 2; ++run) RunAll();
  ExpectHeld(plan);
  ExpectHeld(Plan());
  for (const Model& model : models_) EXPECT_EQ(model.released(), 1) << "those that are captured are not rehearsed";
}

TEST_F(GraphPlan, OfSomeCapturedIdsAddsTheOthers) {
  Create(0);
  AddModels({1, 2, 7});
  GCAP_EXPECT_OK(RunPlain(manager_, 1, stream_->get(), Model::Work, runs_[1].user, true));
  const gcap_graph_plan_t plan = Plan();
  RunAll();
  ExpectHeld(plan);
}

TEST_F(GraphPlan, ExecutesNothing) {
  Create(1);
  AddModels({1});
  models_.front().set_input(1);
  RunAll();
  models_.front().set_input(2);
  (void)Plan();
  stream_->Synchronize();
  EXPECT_EQ(models_.front().output(), 1);
  RunAll();
  EXPECT_EQ(models_.front().output(), 2);
}

TEST_F(GraphPlan, OfNothingIsZero) {
  Create(0);
  const gcap_graph_plan_t plan = Plan();
  EXPECT_EQ(plan.graphs, 0u);
  EXPECT_EQ(plan.bytes, 0u);
}

TEST_F(GraphPlan, OfBadInputIsRefusedAndZero) {
  Create(0);
  AddModels({1});
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_EXPECT_FAILS(gcap_graph_manager_plan(nullptr, nullptr, 0, &plan), GCAP_INVALID_ARGUMENT, "manager");
  GCAP_EXPECT_FAILS(gcap_graph_manager_plan(manager_, nullptr, 1, &plan), GCAP_INVALID_ARGUMENT, "runs");
  GCAP_EXPECT_FAILS(TryPlan(nullptr), GCAP_INVALID_ARGUMENT, "out_plan");
  runs_.push_back({-1, Model::Work, &models_.front()});
  GCAP_EXPECT_FAILS(TryPlan(&plan), GCAP_INVALID_ARGUMENT, "runs[1].id is -1");
  runs_.back() = {1, nullptr, nullptr};
  GCAP_EXPECT_FAILS(TryPlan(&plan), GCAP_INVALID_ARGUMENT, "runs[1].work");
  EXPECT_EQ(plan.graphs, 0u);
  EXPECT_EQ(models_.front().released(), 0) << "all is checked before the first rehearsal";
  plan.struct_size = 3;
  GCAP_EXPECT_FAILS(gcap_graph_manager_plan(manager_, nullptr, 0, &plan), GCAP_INVALID_ARGUMENT, "struct_size is 3");
}

TEST_F(GraphPlan, InsideACaptureIsRefused) {
  Create(0);
  AddModels({1});
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  ASSERT_EQ(Begin(3), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_FAILS(TryPlan(&plan), GCAP_FAILED_PRECONDITION, "gcap_graph_manager_plan");
  EXPECT_EQ(End().code, GCAP_OK);
}

TEST_F(GraphPlan, OnAStreamThatIsCapturedBreaksNothing) {
  Create(0);
  AddModels({1});
  const CopyJob job;
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream_->get(), cudaStreamCaptureModeRelaxed));
  GCAP_EXPECT_FAILS(TryPlan(&plan), GCAP_FAILED_PRECONDITION, "graph id 0");
  GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_->get(), &graph));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(GraphPlan, OfWorkThatFailsNamesTheIdAndIsZero) {
  Create(0);
  AddModels({1, 2});
  runs_.push_back({44, [](void*, cudaStream_t) { return GCAP_STATUS(GCAP_LIBRARY_ERROR, "out of ideas"); }, nullptr});
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  const Outcome outcome(TryPlan(&plan));
  EXPECT_EQ(outcome.code, GCAP_CAPTURE_INVALIDATED);
  EXPECT_TRUE(outcome.Names("graph id 44") && outcome.Names("out of ideas")) << outcome.message;
  EXPECT_EQ(plan.graphs, 0u);
  EXPECT_EQ(plan.bytes, 0u);
  EXPECT_EQ(State(44), "COLD");
  runs_.pop_back();
  RunAll();
  ExpectHeld(Plan());
}

TEST_F(GraphPlan, OfWorkThatThrowsLeavesNoCapture) {
  Create(0);
  runs_.push_back({0, [](void*, cudaStream_t) -> gcap_status_t { throw std::runtime_error("no"); }, nullptr});
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  EXPECT_THROW((void)TryPlan(&plan), std::runtime_error);
  EXPECT_FALSE(gcap_thread_is_capturing());
  EXPECT_EQ(stream_->CaptureStatus(), cudaStreamCaptureStatusNone);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
