// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Launches of the beginning of a graph: each has what an eager run has that stops at the same call, and leaves the
// graph as it was.

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gcap/graph_values.h"
#include "gtest/gtest.h"
#include "test/graph/prefix_test.h"

namespace gcap {
namespace testing {
namespace {

class GraphPrefix : public PrefixTest {
 protected:
  // After all beginnings a replay is whole.
  void ExpectReplayIsWhole(const Floats& x, float begin, float end) {
    stream_->Synchronize();
    x.Fill(begin);
    const Outcome replayed = ReplayId();
    EXPECT_TRUE(replayed.ok()) << replayed.message;
    EXPECT_EQ(x.value(), end);
    EXPECT_EQ(State(kId), "CAPTURED");
  }
  static void CUDART_CB Count(void* count) { ++*static_cast<int*>(count); }
};

TEST_F(GraphPrefix, OfKernelsCopiesAndFillsIsAClone) {
  const Floats x(1), y(0);
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    const cudaStream_t stream = resources->cuda_stream;
    cudaStreamCaptureStatus state;
    GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 1));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamIsCapturing(stream, &state)));
    GCAP_RETURN_IF_ERROR(AddTo(stream, x.get(), y.get(), 10));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(x.get(), y.get(), kFloatsBytes, cudaMemcpyDeviceToDevice, stream)));
    GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 100));
    return GCAP_CUDA(cudaMemsetAsync(x.get(), 0, kFloatsBytes, stream));
  };
  Capture(RunBy(), work);
  ASSERT_EQ(steps_.count, 6u);
  x.Fill(1);
  const std::vector<Seen> eager = RunEagerly(ResourcesOf(), x.get(), work);
  ExpectBeginnings(RunBy(), x, 1, eager);
  EXPECT_EQ(eager[4].value, 112);
  ExpectReplayIsWhole(x, 5, 0);
  EXPECT_EQ(Info(kId).replays, 2u) << "a beginning is no replay";
}

TEST_F(GraphPrefix, OfNoStepsAndOfStepsWithoutNodesLaunchesNothing) {
  const Floats x(1);
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    cudaStreamCaptureStatus state;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamIsCapturing(resources->cuda_stream, &state)));
    return Add(resources, x.get(), 1);
  };
  Capture(RunBy(), work);
  for (const size_t num_steps : {0u, 1u}) {
    const gcap_run_t run = RunBy();
    GCAP_EXPECT_OK(gcap_graph_launch_prefix(manager_, &run, num_steps));
  }
  stream_->Synchronize();
  EXPECT_EQ(x.value(), 2);
}

TEST_F(GraphPrefix, BeforeAHostFunctionIsAClone) {
  const Floats x(1);
  int calls = 0;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 1));
    GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 10));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaLaunchHostFunc(resources->cuda_stream, Count, &calls)));
    return Add(resources, x.get(), 100);
  };
  Capture(RunBy(), work);
  x.Fill(1);
  const std::vector<Seen> eager = RunEagerly(ResourcesOf(), x.get(), work);
  calls = 0;
  ExpectBeginnings(RunBy(), x, 1, eager);
  EXPECT_EQ(calls, 2) << "of the last two alone";
  ExpectReplayIsWhole(x, 5, 116);
}

TEST_F(GraphPrefix, OfMovedBuffersAndChangedValuesHasThoseOfNow) {
  int calls = 0;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    uint64_t addend = 0;
    memcpy(&addend, resources->values[0], sizeof(addend));
    GCAP_RETURN_IF_ERROR(Add(resources, resources->addresses[0], addend));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaLaunchHostFunc(resources->cuda_stream, Count, &calls)));
    GCAP_RETURN_IF_ERROR(Add(resources, resources->addresses[0], 100));
    return GCAP_CUDA(cudaMemsetAsync(resources->addresses[0], 0, kFloatsBytes, resources->cuda_stream));
  };
  const Floats first(1), second(1);
  uint64_t addend = 3, low = 0, high = 1000;
  gcap_graph_value_t value = {};
  value.data = &addend;
  value.bytes = sizeof(addend);
  value.type = GCAP_GRAPH_VALUE_UNSIGNED;
  value.low = &low;
  value.high = &high;
  std::vector<gcap_graph_buffer_t> items = {{"x", first.get(), kFloatsBytes, 256}};
  gcap_graph_buffers_t buffers = BuffersOf(items);
  buffers.values = &value;
  buffers.num_values = 1;
  buffers.host_functions_may_stay = true;
  gcap_run_t run = RunBy();
  run.buffers = &buffers;
  Capture(run, work);
  items[0].address = second.get();
  addend = 7;
  const Outcome moved = RunHoled(run, work);
  ASSERT_TRUE(moved.ok()) << moved.message;
  ASSERT_EQ(result_.outcome, GCAP_RUN_REPLAYED);
  second.Fill(1);
  void* const addresses[] = {second.get()};
  gcap_run_resources_t resources = ResourcesOf(addresses, 1);
  const void* values[] = {&addend};
  resources.values = values;
  resources.num_values = 1;
  const std::vector<Seen> eager = RunEagerly(resources, second.get(), work);
  EXPECT_EQ(eager[0].value, 8);
  first.Fill(-1);
  ExpectBeginnings(run, second, 1, eager);
  EXPECT_EQ(first.value(), -1);
}

TEST_F(GraphPrefix, OfForkedStreamsGoesByTheOrderOfTheCalls) {
  const Floats x(1), y(1);
  const RawStream other;
  const cudaStream_t forked = other.get();
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    gcap_capture_t* capture = gcap_capture_current();
    if (capture != nullptr) GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &forked, 1));
    GCAP_RETURN_IF_ERROR(AddTo(forked, y.get(), y.get(), 1));
    GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 10));
    GCAP_RETURN_IF_ERROR(AddTo(forked, y.get(), y.get(), 100));
    if (capture != nullptr) GCAP_RETURN_IF_ERROR(gcap_capture_join(capture, &forked, 1));
    return AddTo(resources->cuda_stream, y.get(), x.get(), 0);
  };
  Capture(RunBy(), work);
  const float expected_x[] = {1, 11, 11, 102}, expected_y[] = {2, 2, 102, 102};
  size_t kernel = 0;
  for (size_t i = 0; i < steps_.count; ++i) {
    if (steps_.items[i].num_nodes == 0) continue;
    x.Fill(1);
    y.Fill(1);
    const gcap_run_t run = RunBy();
    GCAP_EXPECT_OK(gcap_graph_launch_prefix(manager_, &run, i + 1));
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
    ASSERT_LT(kernel, 4u);
    EXPECT_EQ(x.value(), expected_x[kernel]);
    EXPECT_EQ(y.value(), expected_y[kernel]);
    ++kernel;
  }
  EXPECT_EQ(kernel, 4u);
}

// An eager run does not know whether a capture refuses the step: so it is one step in both.
TEST_F(GraphPrefix, AStepThatACaptureMayRefuseIsOneStep) {
  const Floats x(1);
  Hole hole;
  hole.break_where_refused = true;
  hole.function = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 10));
    return Add(resources, x.get(), 20);
  };
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 1));
    GCAP_RETURN_IF_ERROR(hole.Issue(resources));
    return Add(resources, x.get(), 100);
  };
  Capture(RunBy(), work);
  EXPECT_EQ(Info(kId).holes, 0u);
  ASSERT_EQ(steps_.count, 3u);
  EXPECT_EQ(steps_.items[1].num_nodes, 2u);
  x.Fill(1);
  const std::vector<Seen> eager = RunEagerly(ResourcesOf(), x.get(), work);
  ASSERT_EQ(eager.size(), 3u);
  EXPECT_EQ(eager[1].value, 32);
  ExpectBeginnings(RunBy(), x, 1, eager);
  ExpectReplayIsWhole(x, 0, 131);
}

TEST_F(GraphPrefix, WithHolesLaunchesWholeSegmentsAndCallsTheFunctionsBefore) {
  const Floats x(1);
  Hole first, second;
  first.name = "first";
  first.function = [&](const gcap_run_resources_t* resources) { return Add(resources, x.get(), 10); };
  second.name = "second";
  second.function = [&](const gcap_run_resources_t* resources) { return Add(resources, x.get(), 20); };
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 1));
    GCAP_RETURN_IF_ERROR(first.Issue(resources));
    GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 100));
    GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 200));
    GCAP_RETURN_IF_ERROR(second.Issue(resources));
    return Add(resources, x.get(), 40);
  };
  Capture(RunBy(), work);
  ASSERT_EQ(steps_.count, 6u);
  x.Fill(1);
  const std::vector<Seen> eager = RunEagerly(ResourcesOf(), x.get(), work);
  ASSERT_EQ(eager.size(), 6u) << "what a function issues is no step";
  EXPECT_EQ(eager[1].operation, "hole 'first'");
  EXPECT_EQ(eager[1].value, 12);
  first.calls = second.calls = 0;
  ExpectBeginnings(RunBy(), x, 1, eager);
  EXPECT_EQ(first.calls, 5);
  EXPECT_EQ(second.calls, 2);
  ExpectReplayIsWhole(x, 0, 371);
  const gcap_run_t run = RunBy();
  first.function = [](const gcap_run_resources_t*) { return GCAP_STATUS(GCAP_UNAVAILABLE, "not now"); };
  GCAP_EXPECT_FAILS(gcap_graph_launch_prefix(manager_, &run, 4), GCAP_UNAVAILABLE, "not now");
  first.function = [](const gcap_run_resources_t*) -> gcap_status_t { return nullptr; };
  ExpectReplayIsWhole(x, 0, 361);
}

TEST_F(GraphPrefix, OnAnotherStreamIsOrderedAsAReplay) {
  const Floats x(1);
  const RawStream other;
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 1));
    return Add(resources, x.get(), 10);
  };
  Capture(RunBy(), work);
  x.Fill(1);
  Gate gate;
  gate.Hold(stream_->get());
  gcap_run_t run = RunBy();
  run.stream = other.get();
  GCAP_EXPECT_OK(gcap_graph_launch_prefix(manager_, &run, 1));
  std::this_thread::sleep_for(kPatience);
  EXPECT_EQ(cudaStreamQuery(other.get()), cudaErrorNotReady);
  gate.Open();
  stream_->Synchronize();  // which waits for the launch elsewhere
  EXPECT_EQ(x.value(), 2);
}

TEST_F(GraphPrefix, OfAGraphThatAllocatesIsRefused) {
  const Floats x(1);
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    const cudaStream_t stream = resources->cuda_stream;
    void* memory = nullptr;
    GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 1));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMallocAsync(&memory, kFloatsBytes, stream)));
    GCAP_RETURN_IF_ERROR(AddTo(stream, x.get(), memory, 10));
    GCAP_RETURN_IF_ERROR(AddTo(stream, static_cast<float*>(memory), x.get(), 0));
    return GCAP_CUDA(cudaFreeAsync(memory, stream));
  };
  Capture(RunBy(), work);
  const gcap_run_t run = RunBy();
  const Outcome refused(gcap_graph_launch_prefix(manager_, &run, 1));
  EXPECT_EQ(refused.code, GCAP_FAILED_PRECONDITION) << refused.message;
  EXPECT_TRUE(refused.Names("since no clone has its node 1 of 5")) << refused.message;
  ExpectReplayIsWhole(x, 1, 12);
}

TEST_F(GraphPrefix, BeforeAChildGraphIsAClone) {
  const Floats x(1);
  cudaGraph_t child = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream_->get(), cudaStreamCaptureModeRelaxed));
  GCAP_EXPECT_OK(AddTo(stream_->get(), x.get(), x.get(), 100));
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_->get(), &child));
  const WorkWith work = [&](const gcap_run_resources_t* resources) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(resources, x.get(), 1));
    if (gcap_capture_current() != nullptr) {
      cudaGraph_t graph = nullptr;
      const cudaGraphNode_t* before = nullptr;
      size_t count = 0;
      cudaStreamCaptureStatus state;
      cudaGraphNode_t node = nullptr;
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(
          cudaStreamGetCaptureInfo(resources->cuda_stream, &state, nullptr, &graph, &before, nullptr, &count)));
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphAddChildGraphNode(&node, graph, before, count, child)));
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamUpdateCaptureDependencies(resources->cuda_stream, &node, nullptr, 1,
                                                                         cudaStreamSetCaptureDependencies)));
    }
    return Add(resources, x.get(), 10);
  };
  Capture(RunBy(), work);
  const float expected[] = {2, 2, 102, 102, 112};
  ASSERT_EQ(steps_.count, 5u);
  for (size_t i = 0; i < steps_.count; ++i) {
    x.Fill(1);
    const gcap_run_t run = RunBy();
    const Outcome launched(gcap_graph_launch_prefix(manager_, &run, i + 1));
    EXPECT_TRUE(launched.ok()) << launched.message;
    stream_->Synchronize();
    EXPECT_EQ(x.value(), expected[i]) << i;
  }
  GCAP_EXPECT_CUDA(cudaGraphDestroy(child));
}

TEST_F(GraphPrefix, IsRefusedWhereNothingIsKept) {
  const Floats x(1);
  const WorkWith work = [&](const gcap_run_resources_t* resources) { return Add(resources, x.get(), 1); };
  const gcap_run_t run = RunBy();
  gcap_capture_steps_t none;
  GCAP_EXPECT_FAILS(gcap_graph_launch_prefix(manager_, &run, 1), GCAP_NOT_FOUND, "no graph");
  GCAP_EXPECT_FAILS(gcap_graph_read_steps(manager_, &run, &none), GCAP_NOT_FOUND, "no graph");
  gcap_graph_keep_steps(manager_, false);
  ExpectRun(work, GCAP_RUN_CAPTURED);
  GCAP_EXPECT_FAILS(gcap_graph_read_steps(manager_, &run, &none), GCAP_FAILED_PRECONDITION, "without its steps");
  GCAP_EXPECT_FAILS(gcap_graph_launch_prefix(manager_, &run, 1), GCAP_FAILED_PRECONDITION, "without its steps");
  EXPECT_EQ(none.count, 0u);
  gcap_graph_keep_steps(manager_, true);
  GCAP_ASSERT_OK(gcap_graph_manager_recapture(manager_, kId));
  Capture(RunBy(), work);
  EXPECT_EQ(Info(kId).updates, 1u) << "beginnings are clones, so the executable need not be new";
  x.Fill(1);
  GCAP_EXPECT_OK(gcap_graph_launch_prefix(manager_, &run, 1));
  stream_->Synchronize();
  EXPECT_EQ(x.value(), 2);
  GCAP_EXPECT_FAILS(gcap_graph_launch_prefix(manager_, &run, steps_.count + 1), GCAP_INVALID_ARGUMENT,
                    "num_steps is 2, and the graph has 1 steps");
  gcap_graph_keep_steps(manager_, false);
  GCAP_ASSERT_OK(gcap_graph_manager_recapture(manager_, kId));
  ExpectRun(work, GCAP_RUN_CAPTURED);
  EXPECT_EQ(Info(kId).updates, 2u);
  EXPECT_EQ(Info(kId).reinstantiations, 0u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
