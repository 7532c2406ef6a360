// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Answers that the simulator gave otherwise than a GPU did, as seen when tests written for GPUs were run over it: what
// the cases "probe.answers.*" of //test/conformance do not ask. Each expected value is an H200's (driver 580.159.04,
// CUDA 13.0), or what the simulator alone can show.
#include <cstring>
#include <string>
#include <vector>

#include "test/sim/graph_fixture.h"
#include "test/sim/with_action.h"

namespace gcap::testing {
namespace {

using Answers = GraphTest;

// --- Copies ---------------------------------------------------------------------------------------------------------

// The sum of position and width is 1.
TEST_F(Answers, APositionThatOverflowsIsABadValue) {
  cudaMemcpy3DParms params = {};
  params.srcPtr = {device_, 64, 64, 1};
  params.dstPtr = {device2_, 64, 64, 1};
  params.extent = {64, 1, 1};
  params.kind = cudaMemcpyDeviceToDevice;
  EXPECT_EQ(cudaSuccess, cudaMemcpy3D(&params));
  params.srcPos.x = SIZE_MAX - 64 + 2;
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpy3D(&params));
}

// Answered 0, and read wherever that was.
TEST_F(Answers, DeviceMemoryThatIsNoneIsNoSourceOfACopy) {
  const void* const before = reinterpret_cast<char*>(device_) - 20;
  cudaGraphNode_t node = nullptr;
  EXPECT_EQ(cudaErrorInvalidValue,
            cudaGraphAddMemcpyNode1D(&node, graph_, nullptr, 0, device_, before, 16, cudaMemcpyDeviceToDevice));
  EXPECT_EQ(nullptr, node);
  ASSERT_EQ(cudaSuccess,
            cudaGraphAddMemcpyNode1D(&node, graph_, nullptr, 0, device_, device2_, 16, cudaMemcpyDeviceToDevice));
  cudaGraphExec_t exec = Instantiate(graph_);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphMemcpyNodeSetParams1D(node, device_, before, 16, cudaMemcpyDeviceToDevice));
  for (const void* source : {before, reinterpret_cast<const void*>(0x10)}) {
    EXPECT_EQ(cudaErrorInvalidValue,
              cudaGraphExecMemcpyNodeSetParams1D(exec, node, device_, source, 16, cudaMemcpyDeviceToDevice));
  }
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

// --- Nodes ----------------------------------------------------------------------------------------------------------

TEST_F(Answers, ARefusedWindowChangesNothing) {
  cudaGraphNode_t node = AddStep(graph_, {}, device_, 1, 1);
  cudaLaunchAttributeValue value = {}, got = {};
  value.accessPolicyWindow = {device_, kGraphBytes, 1.0f, cudaAccessPropertyPersisting, cudaAccessPropertyStreaming};
  ASSERT_EQ(cudaSuccess, cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeAccessPolicyWindow, &value));
  value.accessPolicyWindow.num_bytes = 1;
  value.accessPolicyWindow.hitRatio = 1.1f;
  EXPECT_EQ(cudaErrorInvalidValue,
            cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeAccessPolicyWindow, &value));
  ASSERT_EQ(cudaSuccess, cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeAccessPolicyWindow, &got));
  EXPECT_EQ(kGraphBytes, got.accessPolicyWindow.num_bytes);
  EXPECT_EQ(1.0f, got.accessPolicyWindow.hitRatio);
}

cudaMemAllocNodeParams AllocParams() {
  cudaMemAllocNodeParams params = {};
  params.poolProps.allocType = cudaMemAllocationTypePinned;
  params.poolProps.location = {cudaMemLocationTypeDevice, 0};
  params.bytesize = 4096;
  return params;
}

TEST_F(Answers, AccessToAnAllocationIsForAsManyAsThereAreDevices) {
  int devices = 0;
  ASSERT_EQ(cudaSuccess, cudaGetDeviceCount(&devices));
  const size_t most = static_cast<size_t>(devices);
  std::vector<cudaMemAccessDesc> descs(most + 1, {{cudaMemLocationTypeDevice, 0}, cudaMemAccessFlagsProtReadWrite});
  cudaMemAllocNodeParams params = AllocParams(), got = {};
  params.accessDescs = descs.data();
  params.accessDescCount = most + 1;
  cudaGraphNode_t node = nullptr;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddMemAllocNode(&node, graph_, nullptr, 0, &params));
  EXPECT_EQ(nullptr, node);
  params.accessDescCount = most;
  ASSERT_EQ(cudaSuccess, cudaGraphAddMemAllocNode(&node, graph_, nullptr, 0, &params));
  ASSERT_EQ(cudaSuccess, cudaGraphMemAllocNodeGetParams(node, &got));
  ASSERT_EQ(most, got.accessDescCount);
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

TEST_F(Answers, AsManyRootsAsThereIsRoomForComeLastAddedFirst) {
  AddStep(graph_, {}, device_, 1, 1);
  cudaGraphNode_t fill = AddFill(graph_, {}, device_, 1);
  cudaGraphNode_t fill2 = AddFill(graph_, {}, device2_, 2);
  cudaGraphNode_t two[2];
  size_t room = 2;
  EXPECT_EQ(cudaSuccess, cudaGraphGetRootNodes(graph_, two, &room));
  EXPECT_EQ(fill2, two[0]);
  EXPECT_EQ(fill, two[1]);
}

// --- Executables ----------------------------------------------------------------------------------------------------

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

// Told as the attribute, which is recorded.
TEST_F(Answers, PersistingCacheIsToldTwice) {
  int bytes = 0;
  EXPECT_EQ(cudaSuccess, cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxPersistingL2CacheSize, 0));
  cudaDeviceProp properties;
  ASSERT_EQ(cudaSuccess, cudaGetDeviceProperties(&properties, 0));
  EXPECT_EQ(bytes, properties.persistingL2CacheMaxSize);
}

}  // namespace
}  // namespace gcap::testing
