// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Answers that the simulator gave otherwise than a GPU did, as seen when tests written for GPUs were run over it. Each
// expected value is an H200's (driver 580.159.04, CUDA 13.0); the same calls are the cases "probe.answers.*" of
// //test/conformance, to be asked of a GPU again.
#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "test/sim/graph_fixture.h"
#include "test/sim/with_action.h"

namespace gcap::testing {
namespace {

using Answers = GraphTest;

// --- Copies ---------------------------------------------------------------------------------------------------------

constexpr size_t kWidth = 64, kHeight = 16, kDepth = 8;

class SliceCopies : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    ASSERT_EQ(cudaSuccess, cudaMalloc(&slices_, 2 * kWidth * 2 * kHeight * kDepth));
    ASSERT_EQ(cudaSuccess, cudaMalloc(&slices2_, 2 * kWidth * 2 * kHeight * kDepth));
    ASSERT_EQ(cudaSuccess, cudaMemset(slices_, 0, 2 * kWidth * 2 * kHeight * kDepth));
    ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
  }
  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaFree(slices_));
    EXPECT_EQ(cudaSuccess, cudaFree(slices2_));
    GraphTest::TearDown();
  }

  // Slices without padding from one allocation to the other.
  cudaMemcpy3DParms Params() const {
    cudaMemcpy3DParms params = {};
    params.srcPtr = {slices_, kWidth, kWidth, kHeight};
    params.dstPtr = {slices2_, kWidth, kWidth, kHeight};
    params.extent = {kWidth, kHeight, kDepth};
    params.kind = cudaMemcpyDeviceToDevice;
    return params;
  }

  // Every call that takes such parameters answers so.
  void ExpectAll(cudaError_t expected, const cudaMemcpy3DParms& params) {
    const cudaMemcpy3DParms row = {
        {}, {}, {slices_, 64, 64, 1}, {}, {}, {slices2_, 64, 64, 1}, {64, 1, 1}, cudaMemcpyDeviceToDevice};
    cudaGraphNode_t node = nullptr, good = nullptr;
    EXPECT_EQ(expected, cudaMemcpy3D(&params));
    EXPECT_EQ(expected, cudaMemcpy3DAsync(&params, stream_));
    EXPECT_EQ(expected, cudaGraphAddMemcpyNode(&node, graph_, nullptr, 0, &params));
    ASSERT_EQ(cudaSuccess, cudaGraphAddMemcpyNode(&good, graph_, nullptr, 0, &row));
    cudaGraphExec_t exec = Instantiate(graph_);
    EXPECT_EQ(expected, cudaGraphMemcpyNodeSetParams(good, &params));
    EXPECT_EQ(expected, cudaGraphExecMemcpyNodeSetParams(exec, good, &params));
    EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  }

  void *slices_ = nullptr, *slices2_ = nullptr;
};

// Answered 1.
TEST_F(SliceCopies, APitchBelowTheWidthIsABadPitch) {
  cudaMemcpy3DParms params = Params();
  params.dstPtr.pitch = kWidth - 1;
  ExpectAll(cudaErrorInvalidPitchValue, params);
  params = Params();
  params.srcPtr.pitch = kWidth - 1;
  ExpectAll(cudaErrorInvalidPitchValue, params);
}

// Answered 12.
TEST_F(SliceCopies, APositionThatPushesTheBoxOutIsABadValue) {
  cudaMemcpy3DParms params = Params();
  params.dstPos.y = 1;
  ExpectAll(cudaErrorInvalidValue, params);
  params = Params();
  params.srcPos.y = 1;
  ExpectAll(cudaErrorInvalidValue, params);
  params = Params();
  params.srcPos.x = 1;
  ExpectAll(cudaErrorInvalidValue, params);
  params.srcPos.x = SIZE_MAX - kWidth + 2;  // the sum is 1
  ExpectAll(cudaErrorInvalidValue, params);
}

// Answered 0, and read wherever that was.
TEST_F(Answers, DeviceMemoryThatIsNoneIsNoSourceOfACopy) {
  cudaGraphNode_t node = nullptr;
  const void* const none[] = {reinterpret_cast<char*>(device_) - 20, reinterpret_cast<void*>(0x10)};
  for (const void* source : none) {
    EXPECT_EQ(cudaErrorInvalidValue,
              cudaGraphAddMemcpyNode1D(&node, graph_, nullptr, 0, device_, source, 16, cudaMemcpyDeviceToDevice));
    EXPECT_EQ(nullptr, node);
  }
  ASSERT_EQ(cudaSuccess,
            cudaGraphAddMemcpyNode1D(&node, graph_, nullptr, 0, device_, device2_, 16, cudaMemcpyDeviceToDevice));
  cudaGraphExec_t exec = Instantiate(graph_);
  for (const void* source : none) {
    EXPECT_EQ(cudaErrorInvalidValue,
              cudaGraphMemcpyNodeSetParams1D(node, device_, source, 16, cudaMemcpyDeviceToDevice));
    EXPECT_EQ(cudaErrorInvalidValue,
              cudaGraphExecMemcpyNodeSetParams1D(exec, node, device_, source, 16, cudaMemcpyDeviceToDevice));
  }
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

// --- Nodes ----------------------------------------------------------------------------------------------------------

// The stream's setter refused these, the node's took them.
TEST_F(Answers, AWindowIsJudgedForNodesAsForStreams) {
  cudaGraphNode_t node = AddStep(graph_, {}, device_, 1, 1);
  int most = 0;
  ASSERT_EQ(cudaSuccess, cudaDeviceGetAttribute(&most, cudaDevAttrMaxAccessPolicyWindowSize, 0));
  const auto set = [&](size_t bytes, float ratio, cudaAccessProperty miss) {
    cudaLaunchAttributeValue value = {};
    value.accessPolicyWindow = {device_, bytes, ratio, cudaAccessPropertyPersisting, miss};
    return cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeAccessPolicyWindow, &value);
  };
  EXPECT_EQ(cudaSuccess, set(kGraphBytes, 1.0f, cudaAccessPropertyStreaming));
  EXPECT_EQ(cudaErrorInvalidValue, set(static_cast<size_t>(most) + 1, 1.0f, cudaAccessPropertyStreaming));
  EXPECT_EQ(cudaErrorInvalidValue, set(kGraphBytes, 1.1f, cudaAccessPropertyStreaming));
  EXPECT_EQ(cudaErrorInvalidValue, set(kGraphBytes, -0.1f, cudaAccessPropertyStreaming));
  EXPECT_EQ(cudaErrorInvalidValue, set(kGraphBytes, 1.0f, cudaAccessPropertyPersisting));
  cudaLaunchAttributeValue got = {};
  ASSERT_EQ(cudaSuccess, cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeAccessPolicyWindow, &got));
  EXPECT_EQ(kGraphBytes, got.accessPolicyWindow.num_bytes) << "a refused window changes nothing";
  EXPECT_EQ(1.0f, got.accessPolicyWindow.hitRatio);
}

cudaMemAllocNodeParams AllocParams() {
  cudaMemAllocNodeParams params = {};
  params.poolProps.allocType = cudaMemAllocationTypePinned;
  params.poolProps.location = {cudaMemLocationTypeDevice, 0};
  params.bytesize = 4096;
  return params;
}

// All were taken.
TEST_F(Answers, AccessToAnAllocationIsForAsManyAsThereAreDevicesAndWhole) {
  const cudaMemLocation device = {cudaMemLocationTypeDevice, 0};
  cudaMemAccessDesc descs[9];
  for (auto& desc : descs) desc = {device, cudaMemAccessFlagsProtReadWrite};
  cudaGraphNode_t node = nullptr;
  const auto add = [&](size_t count) {
    cudaMemAllocNodeParams params = AllocParams();
    params.accessDescs = descs;
    params.accessDescCount = count;
    return cudaGraphAddMemAllocNode(&node, graph_, nullptr, 0, &params);
  };
  int devices = 0;
  ASSERT_EQ(cudaSuccess, cudaGetDeviceCount(&devices));
  EXPECT_EQ(cudaErrorInvalidValue, add(static_cast<size_t>(devices) + 1));
  EXPECT_EQ(cudaSuccess, add(static_cast<size_t>(devices))) << "device 0 for each";
  node = nullptr;
  descs[0].flags = cudaMemAccessFlagsProtRead;
  EXPECT_EQ(cudaErrorNotSupported, add(1));
  descs[0].flags = cudaMemAccessFlagsProtNone;
  EXPECT_EQ(cudaErrorNotSupported, add(1));
  descs[0].flags = static_cast<cudaMemAccessFlags>(7);
  EXPECT_EQ(cudaErrorInvalidValue, add(1));
  EXPECT_EQ(nullptr, node);
  descs[0].flags = cudaMemAccessFlagsProtReadWrite;
  EXPECT_EQ(cudaSuccess, add(1));
}

// Told of none.
TEST_F(Answers, AnAllocationNodeTellsItsAccesses) {
  cudaMemAccessDesc desc = {{cudaMemLocationTypeDevice, 0}, cudaMemAccessFlagsProtReadWrite};
  cudaMemAllocNodeParams params = AllocParams(), got = {};
  params.accessDescs = &desc;
  params.accessDescCount = 1;
  cudaGraphNode_t node = nullptr;
  ASSERT_EQ(cudaSuccess, cudaGraphAddMemAllocNode(&node, graph_, nullptr, 0, &params));
  desc.flags = cudaMemAccessFlagsProtNone;  // the node has a copy
  ASSERT_EQ(cudaSuccess, cudaGraphMemAllocNodeGetParams(node, &got));
  ASSERT_EQ(1u, got.accessDescCount);
  ASSERT_NE(&desc, got.accessDescs);
  EXPECT_EQ(cudaMemAccessFlagsProtReadWrite, got.accessDescs[0].flags);
  EXPECT_EQ(cudaMemLocationTypeDevice, got.accessDescs[0].location.type);
  EXPECT_EQ(0, got.accessDescs[0].location.id);
}

class GraphAddresses : public GraphTest {
 protected:
  cudaGraphNode_t Alloc(const std::vector<cudaGraphNode_t>& deps, int** out, size_t bytes = 4096) {
    cudaMemAllocNodeParams params = AllocParams();
    params.bytesize = bytes;
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphAddMemAllocNode(&node, graph_, deps.data(), deps.size(), &params));
    *out = static_cast<int*>(params.dptr);
    return node;
  }
  cudaGraphNode_t Free(const std::vector<cudaGraphNode_t>& deps, void* address) {
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphAddMemFreeNode(&node, graph_, deps.data(), deps.size(), address));
    return node;
  }
};

// Was another address.
TEST_F(GraphAddresses, AreGivenAgainBehindTheFree) {
  int *first = nullptr, *second = nullptr, *third = nullptr;
  cudaGraphNode_t alloc = Alloc({}, &first);
  cudaGraphNode_t freed = Free({AddStep(graph_, {AddFill(graph_, {alloc}, first, 0)}, first, 1, 5)}, first);
  cudaGraphNode_t again = Alloc({AddEmpty(graph_, {freed})}, &second);
  ASSERT_EQ(first, second);
  cudaGraphNode_t filled = AddFill(graph_, {again}, second, 0);
  cudaGraphNode_t stepped = AddStep(graph_, {filled}, second, 1, 7);
  cudaGraphNode_t copied = nullptr;
  ASSERT_EQ(cudaSuccess,
            cudaGraphAddMemcpyNode1D(&copied, graph_, &stepped, 1, device_, second, 4, cudaMemcpyDeviceToDevice));
  cudaGraphNode_t freed_again = Free({copied}, second);
  Alloc({freed_again}, &third);
  EXPECT_EQ(first, third);
  cudaMemAllocNodeParams told = {};
  ASSERT_EQ(cudaSuccess, cudaGraphMemAllocNodeGetParams(again, &told));
  EXPECT_EQ(second, told.dptr);
  cudaGraphExec_t exec = Instantiate(graph_, cudaGraphInstantiateFlagAutoFreeOnLaunch);
  for (int launch = 0; launch < 3; ++launch) {
    ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 0, 4, stream_));
    LaunchAndWait(exec);
    EXPECT_EQ(7, First(device_));
    EXPECT_EQ(cudaSuccess, cudaDeviceGraphMemTrim(0));
  }
  EXPECT_EQ(cudaSuccess, cudaFree(third)) << "the last one is the caller's";
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

// Not to what may run beside the free, or is of another size; and to one allocation only.
TEST_F(GraphAddresses, AreGivenToOneThatFollowsAndFits) {
  int *first = nullptr, *other = nullptr, *again = nullptr;
  cudaGraphNode_t alloc = Alloc({}, &first);
  cudaGraphNode_t freed = Free({alloc}, first);
  Alloc({alloc}, &other);
  EXPECT_NE(first, other) << "may run before the free";
  Alloc({}, &other);
  EXPECT_NE(first, other);
  Alloc({freed}, &other, 8192);
  EXPECT_NE(first, other);
  Alloc({freed}, &again);
  EXPECT_EQ(first, again);
  Alloc({freed}, &other);
  EXPECT_NE(first, other) << "taken";
}

// Needed as much memory as all of them together: out of memory.
TEST_F(GraphAddresses, NeedMemoryOnce) {
  size_t free_bytes = 0, total = 0;
  ASSERT_EQ(cudaSuccess, cudaDeviceGraphMemTrim(0));  // what earlier graphs have left
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&free_bytes, &total));
  std::vector<cudaGraphNode_t> last;
  int* memory = nullptr;
  for (int i = 0; i < 3; ++i) {
    cudaGraphNode_t alloc = Alloc(last, &memory, free_bytes / 8 * 5);
    last = {Free({alloc}, memory)};
  }
  cudaGraphExec_t exec = Instantiate(graph_);
  LaunchAndWait(exec);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  ASSERT_EQ(cudaSuccess, cudaDeviceGraphMemTrim(0));
  size_t after = 0;
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&after, &total));
  EXPECT_EQ(free_bytes, after);
}

TEST_F(GraphAddresses, AreGivenAgainInACapture) {
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  ASSERT_EQ(cudaSuccess, cudaMallocAsync(&first, 4096, stream_));
  ASSERT_EQ(cudaSuccess, cudaFreeAsync(first, stream_));
  ASSERT_EQ(cudaSuccess, cudaMallocAsync(&second, 4096, stream_));
  ASSERT_EQ(cudaSuccess, cudaFreeAsync(second, stream_));
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(first, second);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

std::vector<cudaGraphNode_t> Roots(cudaGraph_t graph) {
  size_t count = 0;
  EXPECT_EQ(cudaSuccess, cudaGraphGetRootNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> roots(count);
  EXPECT_EQ(cudaSuccess, cudaGraphGetRootNodes(graph, roots.data(), &count));
  return roots;
}

// Came in the order of cudaGraphGetNodes.
TEST_F(Answers, RootsComeLastAddedFirst) {
  cudaGraphNode_t kernel = AddStep(graph_, {}, device_, 1, 1);
  cudaGraphNode_t fill = AddFill(graph_, {}, device_, 1);
  AddFill(graph_, {kernel}, device_, 3);  // no root
  cudaGraphNode_t fill2 = AddFill(graph_, {}, device2_, 2);
  EXPECT_EQ((std::vector<cudaGraphNode_t>{fill2, fill, kernel}), Roots(graph_));
  cudaGraphNode_t two[2];
  size_t room = 2;
  EXPECT_EQ(cudaSuccess, cudaGraphGetRootNodes(graph_, two, &room));
  EXPECT_EQ(fill2, two[0]);
  EXPECT_EQ(fill, two[1]);
}

TEST_F(Answers, RootsOfACaptureToo) {
  cudaEvent_t fork, join;
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&fork));
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&join));
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(fork, stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(other_, fork, 0));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 1, 4, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device2_, 1, 8, other_));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(join, other_));
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(stream_, join, 0));
  cudaGraph_t graph;
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
  const auto roots = Roots(graph);
  ASSERT_EQ(2u, roots.size());
  cudaMemsetParams first, second;
  ASSERT_EQ(cudaSuccess, cudaGraphMemsetNodeGetParams(roots[0], &first));
  ASSERT_EQ(cudaSuccess, cudaGraphMemsetNodeGetParams(roots[1], &second));
  EXPECT_EQ(device2_, first.dst) << "captured last";
  EXPECT_EQ(device_, second.dst);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  for (cudaEvent_t event : {fork, join}) EXPECT_EQ(cudaSuccess, cudaEventDestroy(event));
}

// --- Executables ----------------------------------------------------------------------------------------------------

// Told all flags but the use of priorities.
TEST_F(Answers, AnExecutableTellsNoFlagsThatAreOver) {
  AddFill(graph_, {}, device_, 1);
  const auto told = [&](unsigned long long flags) {
    cudaGraphInstantiateParams params = {};
    params.flags = flags;
    params.uploadStream = stream_;
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphInstantiateWithParams(&exec, graph_, &params)) << flags;
    unsigned long long got = 99;
    EXPECT_EQ(cudaSuccess, cudaGraphExecGetFlags(exec, &got));
    EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
    return got;
  };
  EXPECT_EQ(0u, told(cudaGraphInstantiateFlagUpload));
  EXPECT_EQ(1u, told(cudaGraphInstantiateFlagUpload | cudaGraphInstantiateFlagAutoFreeOnLaunch));
  EXPECT_EQ(1u, told(cudaGraphInstantiateFlagAutoFreeOnLaunch));
  EXPECT_EQ(0u, told(cudaGraphInstantiateFlagUseNodePriority));
  EXPECT_EQ(4u, told(cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagUpload));
}

// Stopped the program.
TEST_F(Answers, AnExecutableForLaunchFromADeviceRunsFromTheHost) {
  AddStep(graph_, {}, device_, 1, 1);
  const unsigned long long flags = cudaGraphInstantiateFlagDeviceLaunch;
  for (int way = 0; way < 3; ++way) {
    cudaGraphInstantiateParams params = {};
    params.flags = flags;
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaSuccess, way == 0   ? cudaGraphInstantiate(&exec, graph_, flags)
                           : way == 1 ? cudaGraphInstantiateWithFlags(&exec, graph_, flags)
                                      : cudaGraphInstantiateWithParams(&exec, graph_, &params));
    unsigned long long got = 0;
    EXPECT_EQ(cudaSuccess, cudaGraphExecGetFlags(exec, &got));
    EXPECT_EQ(flags, got);
    EXPECT_EQ(cudaSuccess, cudaGraphUpload(exec, stream_));
    LaunchAndWait(exec);
    EXPECT_EQ(way + 1, First(device_));
    EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  }
}

// Two kernels with one twin, which tells the size of its clusters.
char g_cluster_stub, g_other_cluster_stub;

void RunCluster(const gcap_sim_launch_t* launch, void* const* args) {
  **static_cast<int* const*>(args[0]) = static_cast<int>(launch->cluster.x * launch->cluster.y * launch->cluster.z);
}

size_t ClusterAccesses(const gcap_sim_launch_t*, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  if (capacity > 0) out[0] = {*static_cast<void* const*>(args[0]), sizeof(int), 1};
  return 1;
}

const bool g_cluster_registered = [] {
  static const size_t kArgs[] = {sizeof(int*)};
  for (const void* stub : {&g_cluster_stub, &g_other_cluster_stub}) {
    const gcap_sim_kernel_t kernel = {stub, "cluster", kArgs, 1, RunCluster, ClusterAccesses};
    gcap_sim_register_kernel(&kernel);
  }
  return true;
}();

class Clusters : public GraphTest {
 protected:
  // Launches the kernel in clusters of so many blocks; 0 for none.
  void Launch(const void* function, unsigned int blocks) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {blocks, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(8);
    config.blockDim = dim3(32);
    config.stream = stream_;
    config.attrs = &attribute;
    config.numAttrs = blocks > 0;
    void* args[] = {&device_};
    ASSERT_EQ(cudaSuccess, cudaLaunchKernelExC(&config, function, args));
  }

  cudaGraph_t Captured(const void* function, unsigned int blocks) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    Launch(function, blocks);
    EXPECT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
    return graph;
  }

  int Seen(cudaGraphExec_t exec) {
    LaunchAndWait(exec);
    return First(device_);
  }
};

TEST_F(Clusters, ATwinIsTold) {
  Launch(&g_cluster_stub, 0);
  EXPECT_EQ(1, First(device_));
  Launch(&g_cluster_stub, 4);
  EXPECT_EQ(4, First(device_));
  cudaGraph_t graph = Captured(&g_cluster_stub, 2);
  cudaGraphNode_t node = nullptr;
  size_t count = 1;
  ASSERT_EQ(cudaSuccess, cudaGraphGetNodes(graph, &node, &count));
  cudaGraphExec_t exec = Instantiate(graph);
  EXPECT_EQ(2, Seen(exec));
  cudaLaunchAttributeValue value = {};
  value.clusterDim = {4, 1, 1};
  ASSERT_EQ(cudaSuccess, cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
  cudaKernelNodeParams params;
  ASSERT_EQ(cudaSuccess, cudaGraphKernelNodeGetParams(node, &params));
  const cudaKernelNodeParams same = params;
  EXPECT_EQ(cudaSuccess, cudaGraphKernelNodeSetParams(node, &same)) << "the attribute stays";
  EXPECT_EQ(2, Seen(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  exec = Instantiate(graph);
  EXPECT_EQ(4, Seen(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

// Took the new one always.
TEST_F(Clusters, AnUpdateKeepsTheOldOneUnlessAnotherKernelAsks) {
  const gcap_test::WithAction quiet(GCAP_SIM_CHECK_STALE_UPDATE, GCAP_SIM_ACTION_OFF);
  const struct {
    const void* function;
    unsigned int before, wanted;
    int after;
  } rows[] = {
      {&g_cluster_stub, 0, 2, 1},       {&g_cluster_stub, 2, 0, 2},       {&g_cluster_stub, 2, 4, 2},
      {&g_other_cluster_stub, 2, 4, 4}, {&g_other_cluster_stub, 0, 4, 4}, {&g_other_cluster_stub, 4, 0, 4},
  };
  for (const auto& row : rows) {
    cudaGraph_t graph = Captured(&g_cluster_stub, row.before);
    cudaGraph_t changed = Captured(row.function, row.wanted);
    cudaGraphExec_t exec = Instantiate(graph);
    for (int update = 0; update < 2; ++update) {
      cudaGraphExecUpdateResultInfo info = {};
      EXPECT_EQ(cudaSuccess, cudaGraphExecUpdate(exec, changed, &info));
      EXPECT_EQ(cudaGraphExecUpdateSuccess, info.result);
      EXPECT_EQ(row.after, Seen(exec)) << row.before << " to " << row.wanted << ", update " << update;
    }
    EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(changed));
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  }
}

// --- Captures -------------------------------------------------------------------------------------------------------

cudaStreamCaptureStatus StatusOf(cudaStream_t stream) {
  auto status = cudaStreamCaptureStatusInvalidated;
  EXPECT_EQ(cudaSuccess, cudaStreamIsCapturing(stream, &status));
  return status;
}

// Not wrong here: pinned, since a user met a stop.
TEST_F(Answers, ACaptureIntoNoGraphIsRefused) {
  for (auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    EXPECT_EQ(cudaErrorInvalidValue, cudaStreamBeginCaptureToGraph(stream_, nullptr, nullptr, nullptr, 0, mode));
    EXPECT_EQ(cudaStreamCaptureStatusNone, StatusOf(stream_));
  }
}

// A capture refused it. The record probe.answers.fill_of_nothing has an H200's answers.
TEST_F(Answers, ACaptureTakesAFillOfNothingAndTheInstantiationRefusesIt) {
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemsetAsync(nullptr, 1, 64, stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(nullptr, 1, 64, stream_));
  EXPECT_EQ(cudaSuccess, cudaMemset2DAsync(nullptr, 64, 1, 64, 2, stream_));
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(nullptr, 1, 0, stream_));
  EXPECT_EQ(cudaStreamCaptureStatusActive, StatusOf(stream_));
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(2u, CountNodes(graph));
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

// --- Events and streams -----------------------------------------------------------------------------------------------

// Keeps the work of a stream pending until it is opened. The stream is waited for while the gate still stands.
class Gate {
 public:
  cudaError_t Hold(cudaStream_t stream) {
    return cudaLaunchHostFunc(
        stream, [](void* opened) { static_cast<std::shared_future<void>*>(opened)->wait(); }, &opened_);
  }
  void Open() { open_.set_value(); }

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_{open_.get_future()};
};

// Answered 600: the first event was asked whether it was reached before the second was looked at.
TEST_F(Answers, BothEventsAreLookedAtBeforeEitherIsAskedWhetherItWasReached) {
  Gate gate;
  cudaEvent_t start, never, untimed;
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&start));
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&never));
  ASSERT_EQ(cudaSuccess, cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  ASSERT_EQ(cudaSuccess, gate.Hold(stream_));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(start, stream_));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(untimed, stream_));
  float ms = 0;
  for (cudaEvent_t end : {never, untimed, cudaEvent_t{}}) {
    EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, start, end));
  }
  EXPECT_EQ(cudaErrorNotReady, cudaEventElapsedTime(&ms, start, start));
  gate.Open();
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  EXPECT_EQ(cudaSuccess, cudaEventElapsedTime(&ms, start, start));
  for (cudaEvent_t event : {start, never, untimed}) EXPECT_EQ(cudaSuccess, cudaEventDestroy(event));
}

// Not wrong here: pinned. Work that nothing holds back may be done by the time of the answer, also on a GPU.
TEST_F(Answers, TheLegacyStreamIsNotReadyWhileABlockingStreamWorks) {
  cudaStream_t blocking;
  ASSERT_EQ(cudaSuccess, cudaStreamCreate(&blocking));
  Gate gate;
  ASSERT_EQ(cudaSuccess, gate.Hold(blocking));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(nullptr));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(cudaStreamLegacy));
  EXPECT_EQ(cudaSuccess, cudaStreamQuery(stream_)) << "a non-blocking stream does not care";
  gate.Open();
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(blocking));
  EXPECT_EQ(cudaSuccess, cudaStreamQuery(nullptr));
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(blocking));
}

// --- Pools and host memory ------------------------------------------------------------------------------------------

cudaMemPoolProps PoolProps(cudaMemLocationType type) {
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location = {type, 0};
  return props;
}

// Answered 801 and 1; the memory is to be had, used and given back. A device uses it once it was given access.
TEST_F(Answers, APoolMayBeInTheMemoryOfTheHost) {
  for (auto type : {cudaMemLocationTypeHost, cudaMemLocationTypeHostNuma}) {
    const cudaMemPoolProps props = PoolProps(type);
    cudaMemPool_t pool = nullptr;
    ASSERT_EQ(cudaSuccess, cudaMemPoolCreate(&pool, &props));
    int* memory = nullptr;
    ASSERT_EQ(cudaSuccess, cudaMallocFromPoolAsync(reinterpret_cast<void**>(&memory), kGraphBytes, pool, stream_));
    cudaPointerAttributes attributes;
    ASSERT_EQ(cudaSuccess, cudaPointerGetAttributes(&attributes, memory));
    EXPECT_EQ(cudaMemoryTypeHost, attributes.type);
    EXPECT_EQ(cudaErrorInvalidValue, cudaMemsetAsync(memory, 0, kGraphBytes, stream_));
    const cudaMemAccessDesc access = {{cudaMemLocationTypeDevice, 0}, cudaMemAccessFlagsProtReadWrite};
    ASSERT_EQ(cudaSuccess, cudaMemPoolSetAccess(pool, &access, 1));
    ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory, 0, kGraphBytes, stream_));
    ASSERT_EQ(cudaSuccess, Step(memory, 0, 7, stream_));
    ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    EXPECT_EQ(7, memory[1]) << "the host sees it";
    size_t used = 0;
    EXPECT_EQ(cudaSuccess, cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    EXPECT_EQ(kGraphBytes, used);
    ASSERT_EQ(cudaSuccess, cudaFreeAsync(memory, stream_));
    ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    EXPECT_EQ(cudaSuccess, cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    EXPECT_EQ(0u, used);
    void* too_much = &pool;
    EXPECT_EQ(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&too_much, SIZE_MAX / 2, pool, stream_));
    EXPECT_EQ(cudaSuccess, cudaMemPoolDestroy(pool));
  }
}

// There was none.
TEST_F(Answers, APoolOfTheHostTakesNothingFromTheDevice) {
  const cudaMemPoolProps props = PoolProps(cudaMemLocationTypeHost);
  cudaMemPool_t pool = nullptr;
  ASSERT_EQ(cudaSuccess, cudaMemPoolCreate(&pool, &props));
  size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&before, &total));
  void* memory = nullptr;
  ASSERT_EQ(cudaSuccess, cudaMallocFromPoolAsync(&memory, size_t{64} << 20, pool, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
  ASSERT_EQ(cudaSuccess, cudaFree(memory)) << "freed as the memory of any pool";
  EXPECT_EQ(cudaSuccess, cudaMemPoolDestroy(pool));
}

// Answered 801. Who uses the handles still stops: that is not modelled. 2 and 4 are those of Windows.
TEST_F(Answers, APoolMayHaveHandlesForOtherProcesses) {
  for (unsigned int types : {1u, 8u, 9u}) {
    cudaMemPoolProps props = PoolProps(cudaMemLocationTypeDevice);
    props.handleTypes = static_cast<cudaMemAllocationHandleType>(types);
    cudaMemPool_t pool = nullptr;
    EXPECT_EQ(cudaSuccess, cudaMemPoolCreate(&pool, &props)) << types;
    EXPECT_EQ(cudaSuccess, cudaMemPoolDestroy(pool));
  }
  for (unsigned int types : {2u, 4u}) {
    cudaMemPoolProps props = PoolProps(cudaMemLocationTypeDevice);
    props.handleTypes = static_cast<cudaMemAllocationHandleType>(types);
    cudaMemPool_t pool = nullptr;
    EXPECT_EQ(cudaErrorInvalidValue, cudaMemPoolCreate(&pool, &props)) << types;
  }
}

// Answered 1.
TEST_F(Answers, TheHostHasNoAccessToAPoolOfADevice) {
  cudaMemPool_t pool;
  ASSERT_EQ(cudaSuccess, cudaDeviceGetDefaultMemPool(&pool, 0));
  for (auto type : {cudaMemLocationTypeHost, cudaMemLocationTypeHostNuma}) {
    cudaMemLocation location = {type, 0};
    auto flags = cudaMemAccessFlagsProtReadWrite;
    EXPECT_EQ(cudaSuccess, cudaMemPoolGetAccess(&flags, pool, &location)) << type;
    EXPECT_EQ(cudaMemAccessFlagsProtNone, flags);
  }
}

// Told 7 of 5 and 7. Alone they are told so on an H200 too.
TEST_F(Answers, WriteCombinedMemoryHasTheFlagsOfWhatItLiesBeside) {
  const auto flags_of = [](void* p) {
    unsigned int flags = 0;
    EXPECT_EQ(cudaSuccess, cudaHostGetFlags(&flags, p));
    return flags;
  };
  void* first = nullptr;
  ASSERT_EQ(cudaSuccess, cudaHostAlloc(&first, 4096, cudaHostAllocWriteCombined));
  EXPECT_EQ(6u, flags_of(first));
  for (unsigned int flags : {5u, 7u}) {
    void* memory = nullptr;
    ASSERT_EQ(cudaSuccess, cudaHostAlloc(&memory, 4096, flags));
    EXPECT_EQ(6u, flags_of(memory)) << flags;
    EXPECT_EQ(cudaSuccess, cudaFreeHost(memory));
  }
  EXPECT_EQ(cudaSuccess, cudaFreeHost(first));
  ASSERT_EQ(cudaSuccess, cudaHostAlloc(&first, 4096, 5));
  EXPECT_EQ(7u, flags_of(first));
  EXPECT_EQ(cudaSuccess, cudaFreeHost(first));
}

// --- Devices --------------------------------------------------------------------------------------------------------

// Left the place as it was.
TEST_F(Answers, ABusIdThatIsTooLongIsCutAndRefused) {
  char whole[32], cut[32];
  ASSERT_EQ(cudaSuccess, cudaDeviceGetPCIBusId(whole, sizeof(whole), 0));
  for (int room = 1; room <= static_cast<int>(strlen(whole)); ++room) {
    memset(cut, 1, sizeof(cut));
    EXPECT_EQ(cudaErrorInvalidValue, cudaDeviceGetPCIBusId(cut, room, 0));
    EXPECT_EQ(std::string(whole, static_cast<size_t>(room) - 1), cut);
    EXPECT_EQ(1, cut[room]) << "nothing behind the end";
  }
}

// Was 33,554,432.
TEST_F(Answers, PersistingCacheIsThatOfAnH200) {
  int bytes = 0;
  EXPECT_EQ(cudaSuccess, cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxPersistingL2CacheSize, 0));
  EXPECT_EQ(39321600, bytes);
  cudaDeviceProp properties;
  ASSERT_EQ(cudaSuccess, cudaGetDeviceProperties(&properties, 0));
  EXPECT_EQ(39321600, properties.persistingL2CacheMaxSize);
}

}  // namespace
}  // namespace gcap::testing
