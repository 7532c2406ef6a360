// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs: building, instantiating, launching, updating, and what their nodes may touch.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"
#include "test/sim/with_action.h"

namespace {

constexpr size_t kBytes = 256;

// A kernel with a twin: out[i] = in[i] + step.
char g_add_stub;

void RunAdd(const gcap_sim_launch_t*, void* const* args) {
  auto* out = *static_cast<int* const*>(args[0]);
  auto* in = *static_cast<const int* const*>(args[1]);
  int step = *static_cast<const int*>(args[2]);
  int count = *static_cast<const int*>(args[3]);
  for (int i = 0; i < count; ++i) out[i] = in[i] + step;
}

size_t AddAccesses(const gcap_sim_launch_t*, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  if (capacity < 2) return 0;
  size_t bytes = sizeof(int) * static_cast<size_t>(*static_cast<const int*>(args[3]));
  out[0] = {*static_cast<void* const*>(args[0]), bytes, 1};
  out[1] = {*static_cast<void* const*>(args[1]), bytes, 0};
  return 2;
}

constexpr size_t kAddArgs[] = {sizeof(int*), sizeof(const int*), sizeof(int), sizeof(int)};

const bool g_registered = [] {
  gcap_sim_kernel_t kernel = {&g_add_stub, "add", kAddArgs, 4, RunAdd, AddAccesses};
  gcap_sim_register_kernel(&kernel);
  return true;
}();

class Graph : public testing::Test {
 protected:
  void SetUp() override {
    gcap_sim_set_seed(0);
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&device_), kBytes));
    ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&device2_), kBytes));
    ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&pinned_), kBytes));
  }

  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    for (int* p : {device_, device2_}) EXPECT_EQ(cudaSuccess, cudaFree(p));
    EXPECT_EQ(cudaSuccess, cudaFreeHost(pinned_));
    for (cudaStream_t s : {stream_, other_}) EXPECT_EQ(cudaSuccess, cudaStreamDestroy(s));
    EXPECT_EQ(0u, gcap_sim_live(nullptr));
    cudaGetLastError();
  }

  void Begin() { ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal)); }

  cudaGraph_t End() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
    return graph;
  }

  cudaGraphExec_t Instantiate(cudaGraph_t graph) {
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
    return exec;
  }

  cudaError_t Add(int* out, const int* in, int step, cudaStream_t stream) {
    int count = kBytes / sizeof(int);
    void* args[] = {&out, &in, &step, &count};
    return cudaLaunchKernel(&g_add_stub, dim3(1), dim3(64), args, 0, stream);
  }

  int First(const int* device) {
    int value = 0;
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    EXPECT_EQ(cudaSuccess, cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost));
    return value;
  }

  void Destroy(cudaGraph_t graph, cudaGraphExec_t exec) {
    EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  }

  cudaStream_t stream_, other_;
  int *device_, *device2_, *pinned_;
};

TEST_F(Graph, CapturedWorkRunsAtLaunchOnly) {
  ASSERT_EQ(cudaSuccess, cudaMemset(device_, 0, kBytes));
  Begin();
  ASSERT_EQ(cudaSuccess, Add(device_, device_, 1, stream_));
  cudaGraph_t graph = End();
  EXPECT_EQ(0, First(device_));
  cudaGraphExec_t exec = Instantiate(graph);
  for (int i = 1; i <= 5; ++i) {
    ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
    EXPECT_EQ(i, First(device_));
  }
  Destroy(graph, exec);
}

TEST_F(Graph, ReadsHostMemoryAtLaunch) {
  int pageable = 1;
  *pinned_ = 1;
  Begin();
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(device_, pinned_, sizeof(int), cudaMemcpyHostToDevice, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(device2_, &pageable, sizeof(int), cudaMemcpyHostToDevice, stream_));
  cudaGraph_t graph = End();
  cudaGraphExec_t exec = Instantiate(graph);
  *pinned_ = 2;
  pageable = 4;
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(2, First(device_));
  EXPECT_EQ(4, First(device2_));
  Destroy(graph, exec);
}

TEST_F(Graph, KernelArgumentsAreCopiedAtTheCall) {
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 0, kBytes, stream_));
  int* out = device_;
  const int* in = device_;
  int step = 3, count = 1;
  void* args[] = {&out, &in, &step, &count};
  ASSERT_EQ(cudaSuccess, cudaLaunchKernel(&g_add_stub, dim3(1), dim3(1), args, 0, stream_));
  step = 100;
  EXPECT_EQ(3, First(device_));
}

// Two branches write the same place in an order that the seed decides, and a third node comes after both.
TEST_F(Graph, BranchesRunInAnyOrderAndJoinsHold) {
  gcap_test::WithAction quiet(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_OFF);
  cudaEvent_t fork, join;
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&fork));
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&join));
  Begin();
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device2_, 0, kBytes, stream_));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(fork, stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(other_, fork));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 1, kBytes, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 2, kBytes, other_));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(join, other_));
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(stream_, join));
  ASSERT_EQ(cudaSuccess, Add(device2_, device_, 0, stream_));
  cudaGraph_t graph = End();
  cudaGraphExec_t exec = Instantiate(graph);
  std::set<int> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    gcap_sim_set_seed(seed);
    ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
    int value = First(device2_);
    EXPECT_EQ(value, First(device_));
    seen.insert(value);
  }
  EXPECT_EQ((std::set<int>{0x01010101, 0x02020202}), seen);
  Destroy(graph, exec);
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(fork));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(join));
}

TEST_F(Graph, LaunchesOfOneExecFollowOneAnother) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    gcap_sim_set_seed(seed);
    ASSERT_EQ(cudaSuccess, cudaMemset(device_, 0, kBytes));
    ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
    Begin();
    // Unordered, two of these would lose an increment: the copy is torn apart by the other launch.
    ASSERT_EQ(cudaSuccess, Add(device2_, device_, 1, stream_));
    ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(device_, device2_, kBytes, cudaMemcpyDeviceToDevice, stream_));
    cudaGraph_t graph = End();
    cudaGraphExec_t exec = Instantiate(graph);
    for (int i = 0; i < 6; ++i) ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, i % 2 ? stream_ : other_));
    ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_EQ(6, First(device_)) << "seed " << seed;
    Destroy(graph, exec);
  }
}

TEST_F(Graph, DestroyingEverythingDoesNotDisturbALaunchInFlight) {
  Begin();
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 7, kBytes, stream_));
  cudaGraph_t graph = End();
  cudaGraphExec_t exec = Instantiate(graph);
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  Destroy(graph, exec);
  EXPECT_EQ(0x07070707, First(device_));
}

TEST_F(Graph, HostNodesRun) {
  std::atomic<int> runs{0};
  Begin();
  ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(
                             stream_, [](void* p) { ++*static_cast<std::atomic<int>*>(p); }, &runs));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 1, kBytes, stream_));
  cudaGraph_t graph = End();
  cudaGraphExec_t exec = Instantiate(graph);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  EXPECT_EQ(3, runs);
  Destroy(graph, exec);
}

TEST_F(Graph, ExternalEventsAreRecordedAndAwaitedAtLaunch) {
  cudaEvent_t recorded, awaited;
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&recorded));
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&awaited));
  Begin();
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(stream_, awaited, cudaEventWaitExternal));
  ASSERT_EQ(cudaSuccess, Add(device_, device2_, 0, stream_));
  ASSERT_EQ(cudaSuccess, cudaEventRecordWithFlags(recorded, stream_, cudaEventRecordExternal));
  cudaGraph_t graph = End();
  EXPECT_EQ(cudaSuccess, cudaEventQuery(recorded));
  cudaGraphExec_t exec = Instantiate(graph);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    gcap_sim_set_seed(seed);
    int value = static_cast<int>(seed);
    ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device2_, value, kBytes, other_));
    ASSERT_EQ(cudaSuccess, cudaEventRecord(awaited, other_));
    ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
    ASSERT_EQ(cudaSuccess, cudaEventSynchronize(recorded));
    int host;
    ASSERT_EQ(cudaSuccess, cudaMemcpy(&host, device_, sizeof(host), cudaMemcpyDeviceToHost));
    EXPECT_EQ(value * 0x01010101, host);
  }
  Destroy(graph, exec);
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(recorded));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(awaited));
}

TEST_F(Graph, UpdateReplacesParameters) {
  std::vector<cudaGraph_t> graphs;
  for (int value : {1, 2}) {
    Begin();
    ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, value, kBytes, stream_));
    ASSERT_EQ(cudaSuccess, Add(device2_, device_, value, stream_));
    graphs.push_back(End());
  }
  cudaGraphExec_t exec = Instantiate(graphs[0]);
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));  // keeps what it was launched with
  cudaGraphExecUpdateResultInfo info;
  ASSERT_EQ(cudaSuccess, cudaGraphExecUpdate(exec, graphs[1], &info));
  EXPECT_EQ(cudaGraphExecUpdateSuccess, info.result);
  EXPECT_EQ(nullptr, info.errorNode);
  EXPECT_EQ(0x01010102, First(device2_));
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(0x02020204, First(device2_));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graphs[1]));
  Destroy(graphs[0], exec);
}

TEST_F(Graph, UpdateRefusesOtherShapes) {
  auto capture = [&](auto&& work) {
    Begin();
    work();
    return End();
  };
  cudaGraph_t base = capture([&] { cudaMemcpyAsync(device_, device2_, 64, cudaMemcpyDeviceToDevice, stream_); });
  cudaGraph_t longer = capture([&] {
    cudaMemcpyAsync(device_, device2_, 64, cudaMemcpyDeviceToDevice, stream_);
    cudaMemsetAsync(device_, 0, 64, stream_);
  });
  cudaGraph_t type = capture([&] { cudaMemsetAsync(device_, 0, 64, stream_); });
  cudaGraph_t memory = capture([&] { cudaMemcpyAsync(device_, pinned_, 64, cudaMemcpyHostToDevice, stream_); });
  cudaGraphExec_t exec = Instantiate(base);
  const struct {
    cudaGraph_t graph;
    cudaGraphExecUpdateResult result;
    bool names_node;
  } cases[] = {{longer, cudaGraphExecUpdateErrorTopologyChanged, false},
               {type, cudaGraphExecUpdateErrorNodeTypeChanged, true},
               {memory, cudaGraphExecUpdateErrorParametersChanged, true}};
  for (const auto& c : cases) {
    cudaGraphExecUpdateResultInfo info;
    EXPECT_EQ(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, c.graph, &info));
    EXPECT_EQ(c.result, info.result);
    EXPECT_EQ(c.names_node, info.errorNode != nullptr);
    EXPECT_EQ(nullptr, info.errorFromNode);
  }
  EXPECT_EQ(cudaErrorGraphExecUpdateFailure, cudaGetLastError());
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecUpdate(exec, nullptr, nullptr));
  EXPECT_EQ(cudaSuccess, cudaGraphExecUpdate(exec, base, nullptr));
  for (cudaGraph_t graph : {longer, type, memory}) EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  Destroy(base, exec);
}

TEST_F(Graph, BuiltByHandRuns) {
  cudaGraph_t graph;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&graph, 0));
  cudaMemsetParams fill = {device_, 0, 5, 4, kBytes / 4, 1};
  int *out = device2_, *in = device_, step = 10, count = kBytes / 4;
  void* args[] = {&out, &in, &step, &count};
  cudaKernelNodeParams kernel = {&g_add_stub, dim3(1), dim3(64), 0, args, nullptr};
  cudaGraphNode_t first, second, third, empty;
  ASSERT_EQ(cudaSuccess, cudaGraphAddMemsetNode(&first, graph, nullptr, 0, &fill));
  ASSERT_EQ(cudaSuccess, cudaGraphAddKernelNode(&second, graph, &first, 1, &kernel));
  ASSERT_EQ(cudaSuccess,
            cudaGraphAddMemcpyNode1D(&third, graph, &second, 1, pinned_, device2_, kBytes, cudaMemcpyDeviceToHost));
  cudaGraphNode_t deps[] = {first, third};
  ASSERT_EQ(cudaSuccess, cudaGraphAddEmptyNode(&empty, graph, deps, 2));
  size_t edges = 9;
  cudaGraphNode_t from[9], to[9];
  ASSERT_EQ(cudaSuccess, cudaGraphGetEdges(graph, from, to, nullptr, &edges));
  EXPECT_EQ(4u, edges);
  cudaGraphNodeType type;
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetType(second, &type));
  EXPECT_EQ(cudaGraphNodeTypeKernel, type);
  cudaKernelNodeParams got;
  ASSERT_EQ(cudaSuccess, cudaGraphKernelNodeGetParams(second, &got));
  EXPECT_EQ(&g_add_stub, got.func);
  EXPECT_EQ(64u, got.blockDim.x);
  EXPECT_EQ(10, *static_cast<int*>(got.kernelParams[2]));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphKernelNodeGetParams(first, &got));
  cudaGraphExec_t exec = Instantiate(graph);
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  EXPECT_EQ(15, pinned_[count - 1]);
  Destroy(graph, exec);
}

TEST_F(Graph, CloneIsIndependent) {
  Begin();
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 2, kBytes, stream_));
  ASSERT_EQ(cudaSuccess, Add(device2_, device_, 0, stream_));
  cudaGraph_t graph = End(), clone;
  ASSERT_EQ(cudaSuccess, cudaGraphClone(&clone, graph));
  ASSERT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  size_t edges = 0;
  ASSERT_EQ(cudaSuccess, cudaGraphGetEdges(clone, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(1u, edges);
  cudaGraphExec_t exec = Instantiate(clone);
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(0x02020202, First(device2_));
  Destroy(clone, exec);
}

TEST_F(Graph, RefusesBadArguments) {
  cudaGraph_t graph, other;
  cudaGraphNode_t node, foreign;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&graph, 0));
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&other, 0));
  ASSERT_EQ(cudaSuccess, cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
  ASSERT_EQ(cudaSuccess, cudaGraphAddEmptyNode(&foreign, other, nullptr, 0));
  cudaGraphNode_t twice[] = {node, node}, out;
  cudaMemsetParams fill = {device_, 0, 0, 3, 1, 1};
  cudaHostNodeParams host = {nullptr, nullptr};
  size_t count = 1;
  const cudaError_t codes[] = {
      cudaGraphCreate(nullptr, 0),
      cudaGraphCreate(&other, 1),
      cudaGraphDestroy(nullptr),
      cudaGraphClone(nullptr, graph),
      cudaGraphClone(&other, nullptr),
      cudaGraphAddEmptyNode(&out, nullptr, nullptr, 0),
      cudaGraphAddEmptyNode(nullptr, graph, nullptr, 0),
      cudaGraphAddEmptyNode(&out, graph, nullptr, 1),
      cudaGraphAddEmptyNode(&out, graph, twice, 2),
      cudaGraphAddEmptyNode(&out, graph, &foreign, 1),
      cudaGraphAddMemsetNode(&out, graph, nullptr, 0, &fill),
      cudaGraphAddHostNode(&out, graph, nullptr, 0, &host),
      cudaGraphAddMemcpyNode1D(&out, graph, nullptr, 0, device_, device2_, 0, cudaMemcpyDeviceToDevice),
      cudaGraphAddMemcpyNode1D(&out, graph, nullptr, 0, nullptr, device2_, 4, cudaMemcpyDeviceToDevice),
      cudaGraphGetEdges(graph, &out, nullptr, nullptr, &count),
      cudaGraphInstantiate(nullptr, graph, 0),
      cudaGraphInstantiate(&exec, nullptr, 0),
      cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagUpload),
      cudaGraphLaunch(nullptr, stream_),
      cudaGraphUpload(nullptr, stream_),
      cudaGraphExecDestroy(nullptr),
      cudaGraphDebugDotPrint(nullptr, "x", 0),
      cudaGraphDebugDotPrint(graph, nullptr, 0),
  };
  for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); ++i) EXPECT_EQ(cudaErrorInvalidValue, codes[i]) << i;
  EXPECT_EQ(cudaErrorOperatingSystem, cudaGraphDebugDotPrint(graph, "/no/such/folder/graph.dot", 0));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(other));
}

TEST_F(Graph, InstantiateWithParamsReportsItsResult) {
  cudaGraph_t graph;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&graph, 0));
  cudaGraphInstantiateParams params = {};
  params.flags = cudaGraphInstantiateFlagUpload | cudaGraphInstantiateFlagUseNodePriority;
  params.uploadStream = stream_;
  params.result_out = cudaGraphInstantiateError;
  cudaGraphExec_t exec;
  ASSERT_EQ(cudaSuccess, cudaGraphInstantiateWithParams(&exec, graph, &params));
  EXPECT_EQ(cudaGraphInstantiateSuccess, params.result_out);
  unsigned long long flags = 99;
  EXPECT_EQ(cudaSuccess, cudaGraphExecGetFlags(exec, &flags));
  EXPECT_EQ(0u, flags & cudaGraphInstantiateFlagUseNodePriority);
  EXPECT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));  // an empty graph: nothing runs
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  Destroy(graph, exec);
}

TEST_F(Graph, DotNamesNodesAndEdges) {
  Begin();
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 2, kBytes, stream_));
  ASSERT_EQ(cudaSuccess, Add(device2_, device_, 0, stream_));
  cudaGraph_t graph = End();
  std::string path = testing::TempDir() + "graph_test.dot";
  auto print = [&](unsigned int flags) {
    EXPECT_EQ(cudaSuccess, cudaGraphDebugDotPrint(graph, path.c_str(), flags));
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  EXPECT_EQ("digraph gcap {\n  n0 [label=\"0 memset\"];\n  n1 [label=\"1 add\"];\n  n0 -> n1;\n}\n", print(0));
  EXPECT_NE(std::string::npos, print(cudaGraphDebugDotFlagsVerbose).find("grid 1x1x1 block 64x1x1"));
  std::remove(path.c_str());
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

TEST_F(Graph, UserObjectsLiveAsLongAsAnythingNeedsThem) {
  int destroyed = 0;
  auto destroy = [](void* p) { ++*static_cast<int*>(p); };
  cudaGraph_t graph, clone;
  cudaGraphExec_t exec;
  cudaUserObject_t object;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&graph, 0));
  ASSERT_EQ(cudaSuccess, cudaUserObjectCreate(&object, &destroyed, destroy, 1, cudaUserObjectNoDestructorSync));
  ASSERT_EQ(cudaSuccess, cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  ASSERT_EQ(cudaSuccess, cudaGraphClone(&clone, graph));
  ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(clone));
  EXPECT_EQ(0, destroyed);
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  EXPECT_EQ(1, destroyed);

  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&graph, 0));
  ASSERT_EQ(cudaSuccess, cudaUserObjectCreate(&object, &destroyed, destroy, 2, cudaUserObjectNoDestructorSync));
  ASSERT_EQ(cudaSuccess, cudaGraphRetainUserObject(graph, object));
  ASSERT_EQ(cudaSuccess, cudaUserObjectRelease(object, 2));
  EXPECT_EQ(1, destroyed);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphReleaseUserObject(graph, object, 2));
  ASSERT_EQ(cudaSuccess, cudaGraphReleaseUserObject(graph, object));
  EXPECT_EQ(2, destroyed);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));

  EXPECT_EQ(cudaErrorInvalidValue, cudaUserObjectCreate(&object, nullptr, destroy, 1, 0));
  EXPECT_EQ(cudaErrorInvalidValue, cudaUserObjectCreate(&object, nullptr, destroy, 0, 1));
  EXPECT_EQ(cudaErrorInvalidValue, cudaUserObjectCreate(&object, nullptr, nullptr, 1, 1));
}

// --- Kernels --------------------------------------------------------------------------------------------------------

TEST_F(Graph, BadLaunchesAreRefused) {
  int *out = device_, step = 0, count = 1;
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 0, kBytes, stream_));
  void* args[] = {&out, &out, &step, &count};
  auto launch = [&](dim3 grid, dim3 block, size_t shared) {
    return cudaLaunchKernel(&g_add_stub, grid, block, args, shared, stream_);
  };
  EXPECT_EQ(cudaSuccess, launch(dim3(1), dim3(1024), 48 << 10));
  const struct {
    dim3 grid, block;
    size_t shared;
  } bad[] = {{{0, 1, 1}, {1, 1, 1}, 0},    {{1, 1, 1}, {0, 1, 1}, 0},     {{1, 1, 1}, {1025, 1, 1}, 0},
             {{1, 1, 1}, {32, 33, 1}, 0},  {{1, 65536, 1}, {1, 1, 1}, 0}, {{1, 1, 1}, {1, 1, 65}, 0},
             {{1, 1, 1}, {1, 1, 1}, 49153}};
  for (const auto& b : bad) {
    EXPECT_NE(cudaSuccess, launch(b.grid, b.block, b.shared));
    Begin();
    EXPECT_EQ(cudaErrorInvalidValue, launch(b.grid, b.block, b.shared));
    cudaGraph_t graph;
    EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream_, &graph));
  }
  ASSERT_EQ(cudaSuccess, cudaFuncSetAttribute(&g_add_stub, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
  EXPECT_EQ(cudaSuccess, launch(dim3(1), dim3(1), 64 << 10));
  cudaFuncAttributes attributes;
  ASSERT_EQ(cudaSuccess, cudaFuncGetAttributes(&attributes, &g_add_stub));
  EXPECT_EQ(64 << 10, attributes.maxDynamicSharedSizeBytes);
  ASSERT_EQ(cudaSuccess, cudaFuncSetAttribute(&g_add_stub, cudaFuncAttributeMaxDynamicSharedMemorySize, 48 << 10));
}

TEST_F(Graph, FunctionWithoutATwinIsRefusedAndBreaksNoCapture) {
  char unknown;
  Begin();
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaLaunchKernel(&unknown, dim3(1), dim3(1), nullptr, 0, stream_));
  cudaGraph_t graph = End();
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  cudaFuncAttributes attributes;
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaFuncGetAttributes(&attributes, &unknown));
  EXPECT_EQ(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes(&attributes, nullptr));
}

using GraphDeathTest = Graph;

TEST_F(GraphDeathTest, KernelThatLeavesItsBufferIsReported) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  int count = kBytes / sizeof(int) + 1, step = 0;
  void* args[] = {&device_, &device2_, &step, &count};
  auto overrun = [&] {
    cudaLaunchKernel(&g_add_stub, dim3(1), dim3(1), args, 0, stream_);
    cudaStreamSynchronize(stream_);
  };
  EXPECT_DEATH(overrun(), "read of 260 bytes at offset 0 of an allocation of 256 bytes");
  gcap_sim_kernel_t again = {&g_add_stub, "add", kAddArgs, 4, RunAdd, nullptr};
  EXPECT_DEATH(gcap_sim_register_kernel(&again), "has a twin already");
}

TEST_F(GraphDeathTest, TwinThatCallsCudaIsReported) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  static char stub;
  auto run = [](const gcap_sim_launch_t*, void* const*) { cudaGetLastError(); };
  gcap_sim_kernel_t kernel = {&stub, "caller", nullptr, 0, run, nullptr};
  gcap_sim_register_kernel(&kernel);
  auto launch = [&] {
    cudaLaunchKernel(&stub, dim3(1), dim3(1), nullptr, 0, stream_);
    cudaStreamSynchronize(stream_);
  };
  EXPECT_DEATH(launch(), "twin calls CUDA");
}

// --- Memory nodes ---------------------------------------------------------------------------------------------------

TEST_F(Graph, AllocationThatIsFreedInTheGraphCanBeReplayed) {
  int* p;
  Begin();
  ASSERT_EQ(cudaSuccess, cudaMallocAsync(reinterpret_cast<void**>(&p), kBytes, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(p, 3, kBytes, stream_));
  ASSERT_EQ(cudaSuccess, Add(device_, p, 0, stream_));
  ASSERT_EQ(cudaSuccess, cudaFreeAsync(p, stream_));
  cudaGraph_t graph = End(), clone;
  cudaGraphExec_t exec = Instantiate(graph), second;
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphInstantiate(&second, graph, 0));
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphClone(&clone, graph));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(cudaSuccess, cudaMemset(device_, 0, kBytes));
    ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
    ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
    EXPECT_EQ(0x03030303, First(device_));
  }
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaSuccess, cudaPointerGetAttributes(&attributes, p));
  EXPECT_EQ(cudaMemoryTypeUnregistered, attributes.type);
  Destroy(graph, exec);
}

TEST_F(Graph, UnfreedAllocationForbidsTheNextLaunch) {
  void* p;
  Begin();
  ASSERT_EQ(cudaSuccess, cudaMallocAsync(&p, kBytes, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(p, 3, kBytes, stream_));
  cudaGraph_t graph = End();
  cudaGraphExec_t exec = Instantiate(graph);
  uint64_t used = 1;
  ASSERT_EQ(cudaSuccess, cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
  EXPECT_EQ(0u, used);
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(0x03030303, First(static_cast<int*>(p)));
  ASSERT_EQ(cudaSuccess, cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
  EXPECT_LE(kBytes, used);
  ASSERT_EQ(cudaSuccess, cudaFreeAsync(p, stream_));
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  ASSERT_EQ(cudaSuccess, cudaFree(p));
  ASSERT_EQ(cudaSuccess, cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
  EXPECT_LE(kBytes, used) << "the graph keeps it for its next launch";
  ASSERT_EQ(cudaSuccess, cudaDeviceGraphMemTrim(0));
  ASSERT_EQ(cudaSuccess, cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
  EXPECT_EQ(0u, used);
  Destroy(graph, exec);
}

TEST_F(Graph, AutoFreeAllowsTheNextLaunch) {
  void* p;
  Begin();
  ASSERT_EQ(cudaSuccess, cudaMallocAsync(&p, kBytes, stream_));
  cudaGraph_t graph = End();
  cudaGraphExec_t exec;
  ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  Destroy(graph, exec);
  EXPECT_EQ(1u, gcap_sim_live("device memory") - 2);  // the last launch's allocation outlives the graph
  EXPECT_EQ(cudaSuccess, cudaFree(p));
}

}  // namespace
