// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs in graphs: what is copied and what is moved, how they run, and that changes reach them.
#include <set>

#include "test/sim/graph_fixture.h"

namespace gcap::testing {
namespace {

class GraphChild : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    ASSERT_EQ(cudaSuccess, cudaGraphCreate(&child_, 0));
  }

  void TearDown() override {
    if (child_) {
      EXPECT_EQ(cudaSuccess, cudaGraphDestroy(child_));
    }
    GraphTest::TearDown();
  }

  cudaGraphNode_t Hold(cudaGraph_t outer, const std::vector<cudaGraphNode_t>& deps, cudaGraph_t inner) {
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphAddChildGraphNode(&node, outer, deps.data(), deps.size(), inner));
    return node;
  }

  static cudaGraph_t HeldBy(cudaGraphNode_t node) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphChildGraphNodeGetGraph(node, &graph));
    return graph;
  }

  cudaGraph_t child_ = nullptr;
};

TEST_F(GraphChild, RunsBetweenWhatIsBeforeAndAfter) {
  AddStep(child_, {AddStep(child_, {}, device_, 10, 2)}, device_, 10, 3);
  cudaGraphNode_t before = AddStep(graph_, {}, device_, 0, 1);
  cudaGraphNode_t holder = Hold(graph_, {before}, child_);
  AddStep(graph_, {holder}, device_, 10, 4);
  cudaGraphNodeType type;
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetType(holder, &type));
  EXPECT_EQ(cudaGraphNodeTypeGraph, type);
  cudaGraphExec_t exec = Instantiate(graph_);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    gcap_sim_set_seed(seed);
    LaunchAndWait(exec);
    EXPECT_EQ(1234, First(device_)) << "seed " << seed;
  }
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphChild, AnEmptyOneKeepsTheOrder) {
  cudaGraphNode_t before = AddStep(graph_, {}, device_, 0, 1);
  AddStep(graph_, {Hold(graph_, {Hold(graph_, {before}, child_)}, child_)}, device_, 10, 2);
  cudaGraphExec_t exec = Instantiate(graph_);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    gcap_sim_set_seed(seed);
    LaunchAndWait(exec);
    EXPECT_EQ(12, First(device_)) << "seed " << seed;
  }
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

// Nothing orders the node within against the node beside: seeds find both orders.
TEST_F(GraphChild, BranchesRunBesideOthers) {
  std::vector<int> order;
  auto note = [](void* p) {
    auto* pair = static_cast<std::pair<std::vector<int>*, int>*>(p);
    pair->first->push_back(pair->second);
  };
  std::pair<std::vector<int>*, int> within = {&order, 1}, beside = {&order, 2};
  cudaGraphNode_t node;
  cudaHostNodeParams params = {note, &within};
  ASSERT_EQ(cudaSuccess, cudaGraphAddHostNode(&node, child_, nullptr, 0, &params));
  Hold(graph_, {}, child_);
  params.userData = &beside;
  ASSERT_EQ(cudaSuccess, cudaGraphAddHostNode(&node, graph_, nullptr, 0, &params));
  cudaGraphExec_t exec = Instantiate(graph_);
  std::set<std::vector<int>> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    gcap_sim_set_seed(seed);
    order.clear();
    LaunchAndWait(exec);
    seen.insert(order);
  }
  EXPECT_EQ((std::set<std::vector<int>>{{1, 2}, {2, 1}}), seen);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphChild, IsACopyThatItsNodeOwns) {
  cudaGraphNode_t original = AddFill(child_, {}, device_, 1);
  cudaGraphNode_t holder = Hold(graph_, {}, child_);
  cudaGraph_t held = HeldBy(holder);
  EXPECT_NE(child_, held);
  cudaGraphNode_t copy = nullptr;
  ASSERT_EQ(cudaSuccess, cudaGraphNodeFindInClone(&copy, original, held));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(child_));
  child_ = nullptr;
  // A change of what the node holds is one of the node.
  cudaMemsetParams params = Fill(device2_, 7);
  EXPECT_EQ(cudaSuccess, cudaGraphMemsetNodeSetParams(copy, &params));
  AddFill(held, {copy}, device_, 5);
  cudaGraphExec_t exec = Instantiate(graph_);
  LaunchAndWait(exec);
  EXPECT_EQ(0x07070707, First(device2_));
  EXPECT_EQ(0x05050505, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphDestroy(held)) << "it goes with its node";
  EXPECT_EQ(cudaSuccess, cudaGraphDestroyNode(holder));
  EXPECT_DEATH(cudaGraphMemsetNodeSetParams(copy, &params), "was destroyed");
}

TEST_F(GraphChild, ClonesCopyAllLevels) {
  cudaGraph_t inner;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&inner, 0));
  cudaGraphNode_t deep = AddStep(inner, {}, device_, 0, 3);
  Hold(child_, {}, inner);
  cudaGraphNode_t holder = Hold(graph_, {}, child_);
  cudaGraph_t clone;
  cudaGraphNode_t holder2 = nullptr;
  ASSERT_EQ(cudaSuccess, cudaGraphClone(&clone, graph_));
  ASSERT_EQ(cudaSuccess, cudaGraphNodeFindInClone(&holder2, holder, clone));
  EXPECT_NE(HeldBy(holder), HeldBy(holder2));
  cudaGraphExec_t exec = Instantiate(clone);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(clone));
  LaunchAndWait(exec);
  EXPECT_EQ(3, First(device_));
  cudaGraphNode_t found;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeFindInClone(&found, deep, HeldBy(holder)));  // a level too high
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(inner));
}

TEST_F(GraphChild, BadOnesAreRefused) {
  cudaGraphNode_t node = nullptr;
  cudaGraph_t graph;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddChildGraphNode(&node, graph_, nullptr, 0, nullptr));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddChildGraphNode(&node, nullptr, nullptr, 0, child_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddChildGraphNode(nullptr, graph_, nullptr, 0, child_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphChildGraphNodeGetGraph(nullptr, &graph));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphChildGraphNodeGetGraph(AddEmpty(graph_, {}), &graph));
  EXPECT_DEATH(cudaGraphAddChildGraphNode(&node, graph_, nullptr, 0, graph_), "a graph cannot hold itself");
  cudaGraph_t held = HeldBy(Hold(graph_, {}, child_));
  EXPECT_DEATH(cudaGraphAddChildGraphNode(&node, held, nullptr, 0, graph_), "a graph cannot hold itself");
}

TEST_F(GraphChild, AMovedOneIsTheSameGraph) {
  AddStep(child_, {}, device_, 0, 8);
  cudaGraphNodeParams params = Tagged(cudaGraphNodeTypeGraph);
  params.graph = {child_, cudaGraphChildGraphOwnershipMove};
  cudaGraphNode_t node;
  ASSERT_EQ(cudaSuccess, cudaGraphAddNode(&node, graph_, nullptr, nullptr, 0, &params));
  EXPECT_EQ(child_, HeldBy(node));
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, child_, 0));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddNode(&node, graph_, nullptr, nullptr, 0, &params));
  exec = Instantiate(graph_);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecUpdate(exec, child_, nullptr));
  LaunchAndWait(exec);
  EXPECT_EQ(8, First(device_));
  child_ = nullptr;  // goes with graph_
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

// Only a graph that moves keeps its memory nodes.
TEST_F(GraphChild, MemoryNodesComeAlongOnlyWhenMoved) {
  cudaMemAllocNodeParams alloc = {};
  alloc.poolProps.allocType = cudaMemAllocationTypePinned;
  alloc.poolProps.location = {cudaMemLocationTypeDevice, 0};
  alloc.bytesize = kGraphBytes;
  cudaGraphNode_t a, node;
  ASSERT_EQ(cudaSuccess, cudaGraphAddMemAllocNode(&a, child_, nullptr, 0, &alloc));
  cudaGraphNode_t fill = AddFill(child_, {a}, alloc.dptr, 4);
  ASSERT_EQ(cudaSuccess, cudaGraphAddMemFreeNode(&node, child_, &fill, 1, alloc.dptr));
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphAddChildGraphNode(&node, graph_, nullptr, 0, child_));
  cudaGraphNodeParams params = Tagged(cudaGraphNodeTypeGraph);
  params.graph = {child_, cudaGraphChildGraphOwnershipMove};
  ASSERT_EQ(cudaSuccess, cudaGraphAddNode(&node, graph_, nullptr, nullptr, 0, &params));
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphAddMemAllocNode(&a, child_, nullptr, 0, &alloc));
  cudaGraph_t clone;
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphClone(&clone, graph_));
  cudaGraphExec_t exec = Instantiate(graph_), second;
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphInstantiate(&second, graph_, 0));
  LaunchAndWait(exec);
  LaunchAndWait(exec);
  child_ = nullptr;
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphChild, ParametersWithinAreSetInTheExecutable) {
  cudaGraphNode_t original = AddStep(child_, {}, device_, 0, 1), copy = nullptr;
  cudaGraphNode_t holder = Hold(graph_, {}, child_);
  ASSERT_EQ(cudaSuccess, cudaGraphNodeFindInClone(&copy, original, HeldBy(holder)));
  cudaGraphExec_t exec = Instantiate(graph_);
  StepArgs args(device_, 0, 2);
  EXPECT_EQ(cudaSuccess, cudaGraphExecKernelNodeSetParams(exec, copy, &args.params));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecKernelNodeSetParams(exec, original, &args.params));
  LaunchAndWait(exec);
  EXPECT_EQ(2, First(device_));

  cudaGraph_t changed;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&changed, 0));
  AddStep(changed, {}, device_, 0, 3);
  EXPECT_EQ(cudaSuccess, cudaGraphExecChildGraphNodeSetParams(exec, holder, changed));
  LaunchAndWait(exec);
  EXPECT_EQ(3, First(device_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecChildGraphNodeSetParams(exec, copy, changed));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecChildGraphNodeSetParams(exec, holder, nullptr));
  AddEmpty(changed, {});
  EXPECT_NE(cudaSuccess, cudaGraphExecChildGraphNodeSetParams(exec, holder, changed));
  LaunchAndWait(exec);
  EXPECT_EQ(3, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(changed));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphChild, UpdatesReachAllLevels) {
  cudaGraphNode_t node;
  AddStep(child_, {}, device_, 0, 1);
  Hold(graph_, {}, child_);
  cudaGraphExec_t exec = Instantiate(graph_);
  cudaGraph_t other, inner;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&other, 0));
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&inner, 0));
  AddStep(inner, {}, device_, 0, 2);
  node = Hold(other, {}, inner);
  EXPECT_EQ(cudaSuccess, cudaGraphExecUpdate(exec, other, nullptr));
  LaunchAndWait(exec);
  EXPECT_EQ(2, First(device_));
  cudaGraphExecUpdateResultInfo info = {};
  cudaGraphNode_t extra = AddEmpty(HeldBy(node), {});
  EXPECT_EQ(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, other, &info));
  EXPECT_EQ(cudaGraphExecUpdateErrorTopologyChanged, info.result);
  EXPECT_EQ(nullptr, info.errorNode);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroyNode(extra));
  EXPECT_EQ(cudaSuccess, cudaGraphExecUpdate(exec, other, &info));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(inner));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(other));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphChild, ObjectsOfHeldGraphsLiveAsLongAsTheExecutable) {
  int destroyed = 0;
  cudaUserObject_t object;
  ASSERT_EQ(cudaSuccess,
            cudaUserObjectCreate(
                &object, &destroyed, [](void* p) { ++*static_cast<int*>(p); }, 1, cudaUserObjectNoDestructorSync));
  ASSERT_EQ(cudaSuccess, cudaGraphRetainUserObject(child_, object, 1, cudaGraphUserObjectMove));
  cudaGraphNode_t holder = Hold(graph_, {}, child_);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(child_));
  child_ = nullptr;
  EXPECT_EQ(0, destroyed);
  cudaGraphExec_t exec = Instantiate(graph_);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroyNode(holder));
  EXPECT_EQ(0, destroyed);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(1, destroyed);
}

}  // namespace
}  // namespace gcap::testing
