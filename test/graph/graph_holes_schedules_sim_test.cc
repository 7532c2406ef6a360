// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs with holes under many schedules: captures, replays on two streams, functions on streams of their own, steps
// that captures refuse, evictions, and a thread that releases. Each run must read its own input: a segment or a
// function that comes too early, twice or not at all shows.

#include <atomic>
#include <thread>

#include "gcap/graph.h"
#include "gcap/graph_holes.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"
#include "test/support/log_catcher.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr uint64_t kSchedules = 300;
constexpr size_t kBytes = 32;
constexpr int kRuns = 16;

// input -> before -> (the function, by way of another stream) -> behind -> output.
class Scene {
 public:
  Scene() {
    for (cudaStream_t* stream : {&a_, &b_, &forked_}) {
      Expect(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking) == cudaSuccess);
    }
    Expect(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming) == cudaSuccess);
    for (unsigned char** memory : {&input_, &before_, &behind_, &output_}) {
      Expect(cudaMalloc(reinterpret_cast<void**>(memory), kBytes) == cudaSuccess);
      Expect(cudaMemsetAsync(*memory, 0, kBytes, a_) == cudaSuccess);
    }
    Expect(cudaMallocHost(reinterpret_cast<void**>(&results_), kRuns * kBytes) == cudaSuccess);
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    options.min_num_runs_before_capture = 0;
    options.max_graphs = 2;
    Expect(gcap_graph_manager_create(&options, &manager_));
  }

  void Play() {
    Run(0, GCAP_RUN_CAPTURED);
    Run(0, GCAP_RUN_REPLAYED);
    Run(0, GCAP_RUN_REPLAYED, /*on_b=*/true);
    Run(0, GCAP_RUN_REPLAYED);
    Expect(gcap_graph_manager_recapture(manager_, 0));
    Run(0, GCAP_RUN_CAPTURED);  // while the graph before may still run
    Run(0, GCAP_RUN_REPLAYED, /*on_b=*/true);
    is_step_ = true;
    Run(1, GCAP_RUN_EAGER);  // a capture refuses the step
    Run(1, GCAP_RUN_CAPTURED);
    Run(1, GCAP_RUN_REPLAYED, /*on_b=*/true);
    is_step_ = false;
    Run(2, GCAP_RUN_CAPTURED);  // evicts 0
    std::thread releaser([this] { Release(1); });
    Run(2, GCAP_RUN_REPLAYED);
    Run(2, GCAP_RUN_REPLAYED, /*on_b=*/true);
    releaser.join();
    Run(0, GCAP_RUN_CAPTURED);
    Run(2, GCAP_RUN_REPLAYED);
  }

  int Finish() {
    Expect(gcap_graph_manager_destroy(manager_));
    for (cudaStream_t stream : {a_, b_, forked_}) Expect(cudaStreamSynchronize(stream) == cudaSuccess);
    for (int run = 0; run < runs_; ++run) {
      for (size_t i = 0; i < kBytes; ++i) Expect(results_[run * kBytes + i] == run + 1);
    }
    Expect(cudaEventDestroy(event_) == cudaSuccess);
    for (unsigned char* memory : {input_, before_, behind_, output_}) Expect(cudaFree(memory) == cudaSuccess);
    Expect(cudaFreeHost(results_) == cudaSuccess);
    for (cudaStream_t stream : {a_, b_, forked_}) Expect(cudaStreamDestroy(stream) == cudaSuccess);
    return wrong_;
  }

 private:
  // A run whose input is set before it, and whose output is kept behind it, in the order of stream a.
  void Run(int id, gcap_run_outcome_t outcome, bool on_b = false) {
    Expect(cudaMemsetAsync(input_, ++runs_, kBytes, a_) == cudaSuccess);
    if (on_b) {
      Expect(ReplayOn(manager_, id, b_, /*synchronize=*/false));
    } else {
      gcap_run_result_t result;
      gcap_run_result_init(&result);
      gcap_run_t run = RunOf(id, a_);
      run.work = Issue;
      run.user = this;
      run.result = &result;
      Expect(gcap_graph_manager_run(manager_, &run));
      Expect(result.outcome == outcome);
    }
    unsigned char* kept = results_ + (runs_ - 1) * kBytes;
    Expect(cudaMemcpyAsync(kept, output_, kBytes, cudaMemcpyDeviceToHost, a_) == cudaSuccess);
  }
  // While another graph is in a hole, a release of this one is not refused.
  void Release(int id) { Expect(gcap_graph_manager_release(manager_, id)); }

  static gcap_status_t Copy(unsigned char* to, const unsigned char* from, cudaStream_t stream) {
    return GCAP_CUDA(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, stream));
  }
  gcap_status_t Order(cudaStream_t first, cudaStream_t then) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(event_, first)));
    return GCAP_CUDA(cudaStreamWaitEvent(then, event_, 0));
  }
  static gcap_status_t Issue(void* self, const gcap_run_resources_t* resources) {
    Scene* scene = static_cast<Scene*>(self);
    GCAP_RETURN_IF_ERROR(Copy(scene->before_, scene->input_, resources->cuda_stream));
    gcap_graph_hole_t hole;
    gcap_graph_hole_init(&hole);
    hole.work = Call;
    hole.user = scene;
    hole.break_where_refused = scene->is_step_;
    GCAP_RETURN_IF_ERROR(gcap_graph_hole_issue(resources, &hole));
    return Copy(scene->output_, scene->behind_, resources->cuda_stream);
  }
  // Waits where it is a step, which a capture refuses; else all is in flight.
  static gcap_status_t Call(void* self, const gcap_run_resources_t* resources) {
    Scene* scene = static_cast<Scene*>(self);
    const cudaStream_t stream = resources->cuda_stream;
    if (scene->is_step_) GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(stream)));
    GCAP_RETURN_IF_ERROR(scene->Order(stream, scene->forked_));
    GCAP_RETURN_IF_ERROR(Copy(scene->behind_, scene->before_, scene->forked_));
    return scene->Order(scene->forked_, stream);
  }

  void Expect(bool right) { wrong_ += right ? 0 : 1; }
  void Expect(gcap_status_t status) {
    const Outcome outcome(status);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    Expect(outcome.ok());
  }

  std::atomic<int> wrong_{0};
  cudaStream_t a_ = nullptr, b_ = nullptr, forked_ = nullptr;
  cudaEvent_t event_ = nullptr;
  unsigned char *input_ = nullptr, *before_ = nullptr, *behind_ = nullptr, *output_ = nullptr;
  unsigned char* results_ = nullptr;
  gcap_graph_manager_t* manager_ = nullptr;
  bool is_step_ = false;
  int runs_ = 0;
};

int PlayScene(void*) {
  Scene scene;
  scene.Play();
  return scene.Finish();
}

TEST(GraphHolesSchedules, EachRunIsThereAsAWholeInItsOrder) {
  const LogCatcher log;
  uint64_t failing = 0;
  EXPECT_EQ(gcap_sim_explore(PlayScene, nullptr, 0, kSchedules, &failing), 0) << "seed " << failing;
}

}  // namespace
}  // namespace testing
}  // namespace gcap
