// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the attributes of a launch become in a capture, and what of them an update brings into an executable.
#include <functional>
#include <vector>

#include "test/conformance/rig.h"
#include "test/support/kernels/device_kernels.h"

namespace conformance {

namespace {

using Set = std::function<void(cudaLaunchAttributeValue&)>;

const void* const kSize = reinterpret_cast<const void*>(gcap_kernel_cluster_size);
const void* const kSizeToo = reinterpret_cast<const void*>(gcap_kernel_cluster_size_too);

cudaLaunchAttribute Attribute(cudaLaunchAttributeID id, const Set& set) {
  cudaLaunchAttribute attribute = {};
  attribute.id = id;
  set(attribute.val);
  return attribute;
}

cudaLaunchAttribute Cluster(unsigned int x) {
  return Attribute(cudaLaunchAttributeClusterDimension, [x](cudaLaunchAttributeValue& v) {
    v.clusterDim.x = x;
    v.clusterDim.y = v.clusterDim.z = 1;
  });
}

cudaLaunchAttribute Preferred(unsigned int x) {
  return Attribute(cudaLaunchAttributePreferredClusterDimension, [x](cudaLaunchAttributeValue& v) {
    v.preferredClusterDim.x = x;
    v.preferredClusterDim.y = v.preferredClusterDim.z = 1;
  });
}

cudaLaunchAttribute Plain(cudaLaunchAttributeID id, int value) {
  return Attribute(id, [=](cudaLaunchAttributeValue& v) { v.priority = value; });  // an int is its first member
}

cudaLaunchAttribute Programmatic(cudaEvent_t event, int at_start) {
  return Attribute(cudaLaunchAttributeProgrammaticEvent, [=](cudaLaunchAttributeValue& v) {
    v.programmaticEvent.event = event;
    v.programmaticEvent.flags = 0;
    v.programmaticEvent.triggerAtBlockStart = at_start;
  });
}

cudaLaunchAttribute Completion(cudaEvent_t event) {
  return Attribute(cudaLaunchAttributeLaunchCompletionEvent, [=](cudaLaunchAttributeValue& v) {
    v.launchCompletionEvent.event = event;
    v.launchCompletionEvent.flags = 0;
  });
}

struct Launch {
  const void* function = kSize;
  std::vector<cudaLaunchAttribute> attributes;
  unsigned int grid = 8;
};

// A launch of a kernel that takes the address of a word.
cudaError_t Start(const Launch& launch, Rig& r, cudaStream_t stream) {
  std::vector<cudaLaunchAttribute> attributes = launch.attributes;
  void* args[] = {&r.d};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(launch.grid);
  config.blockDim = dim3(32);
  config.stream = stream;
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned int>(attributes.size());
  return cudaLaunchKernelExC(&config, launch.function, args);
}

cudaGraph_t Capture(Observer& o, Rig& r, const Launch& launch) {
  cudaGraph_t g = nullptr;
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeThreadLocal));
  REQUIRE_CUDA(Start(launch, r, r.s));
  REQUIRE_CUDA(cudaStreamEndCapture(r.s, &g));
  return g;
}

cudaGraphNode_t OnlyNode(Observer& o, cudaGraph_t g) {
  cudaGraphNode_t node = nullptr;
  size_t count = 1;
  REQUIRE_CUDA(cudaGraphGetNodes(g, &node, &count));
  return node;
}

// The clusters with which the kernel of the executable ran.
std::string Ran(Rig& r, cudaGraphExec_t e) {
  cudaError_t code = cudaMemsetAsync(r.d, 0xff, 4, r.s);
  if (code == cudaSuccess) code = cudaGraphLaunch(e, r.s);
  if (code == cudaSuccess) code = cudaStreamSynchronize(r.s);
  (void)cudaGetLastError();
  return code == cudaSuccess ? Format("ran=%d", r.Value()) : Format("launch answered %d", code);
}

const cudaLaunchAttributeID kAsked[] = {cudaLaunchAttributeCooperative,
                                        cudaLaunchAttributeClusterDimension,
                                        cudaLaunchAttributeClusterSchedulingPolicyPreference,
                                        cudaLaunchAttributePriority,
                                        cudaLaunchAttributeMemSyncDomain,
                                        cudaLaunchAttributePreferredClusterDimension,
                                        cudaLaunchAttributePreferredSharedMemoryCarveout,
                                        cudaLaunchAttributeProgrammaticStreamSerialization,
                                        cudaLaunchAttributeProgrammaticEvent,
                                        cudaLaunchAttributeLaunchCompletionEvent};

// What the node tells of its attributes.
std::string Told(cudaGraphNode_t node) {
  std::string text;
  for (auto id : kAsked) {
    cudaLaunchAttributeValue v = {};
    const cudaError_t code = cudaGraphKernelNodeGetAttribute(node, id, &v);
    (void)cudaGetLastError();
    text += Format("%s%d:", text.empty() ? "" : " ", id) + (code != 0 ? Format("!%d", code) : Format("%d", v.priority));
  }
  return text;
}

std::string Edges(cudaGraph_t g) {
  cudaGraphNode_t from[8], to[8];
  cudaGraphEdgeData data[8] = {};
  size_t count = 8;
  if (cudaGraphGetEdges(g, from, to, data, &count) != cudaSuccess) return "unreadable";
  std::string text = Format("edges=%zu", count);
  for (size_t i = 0; i < count; ++i) text += Format(" %d/%d/%d", data[i].from_port, data[i].to_port, data[i].type);
  return text;
}

}  // namespace

OBSERVE("probe.launch.captured", Once().InOwnProcess()) {
  Rig r(o);
  const auto probe = [&](const char* step, const std::vector<cudaLaunchAttribute>& attributes) {
    cudaGraph_t g = nullptr;
    REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeThreadLocal));
    PROBE_AS_AND(step, Start({kSize, attributes}, r, r.s), "status=%s", Status(r.s).c_str());
    (void)cudaStreamEndCapture(r.s, &g);
    (void)cudaGetLastError();
    if (g == nullptr) return;
    o.Note(Format("%s: the graph", step), Format("types=%s ", NodeTypes(g).c_str()) + Edges(g));
    if (CountNodes(g) == 1) o.Note(Format("%s: the node", step), Told(OnlyNode(o, g)));
    cudaGraphExec_t e = nullptr;
    PROBE_AS(Format("%s: instantiate", step), cudaGraphInstantiate(&e, g, 0));
    if (e != nullptr) o.Note(Format("%s: launch", step), Ran(r, e));
  };
  probe("none", {});
  probe("cluster 2", {Cluster(2)});
  probe("cluster 2, preferred 4", {Cluster(2), Preferred(4)});
  probe("cluster 2, preferred 3", {Cluster(2), Preferred(3)});
  probe("preferred 4 alone", {Preferred(4)});
  probe("cooperative", {Plain(cudaLaunchAttributeCooperative, 1)});
  probe("cooperative with cluster 2", {Plain(cudaLaunchAttributeCooperative, 1), Cluster(2)});
  probe("priority -3", {Plain(cudaLaunchAttributePriority, -3)});
  probe("priority -99", {Plain(cudaLaunchAttributePriority, -99)});
  probe("synchronization domain 1", {Plain(cudaLaunchAttributeMemSyncDomain, 1)});
  probe("cluster scheduling 1", {Plain(cudaLaunchAttributeClusterSchedulingPolicyPreference, 1)});
  probe("carveout 50", {Plain(cudaLaunchAttributePreferredSharedMemoryCarveout, 50)});
  probe("synchronization policy", {Plain(cudaLaunchAttributeSynchronizationPolicy, 1)});
  probe("serialization with nothing before", {Plain(cudaLaunchAttributeProgrammaticStreamSerialization, 1)});
  probe("programmatic event", {Programmatic(r.e2, 0)});
  probe("programmatic event at the block's start", {Programmatic(r.e2, 1)});
  probe("programmatic event with timing", {Programmatic(r.e, 0)});
  probe("programmatic event NULL", {Programmatic(nullptr, 0)});
  probe("completion event", {Completion(r.e2)});
  probe("completion event with timing", {Completion(r.e)});
  probe("both events", {Programmatic(r.e2, 0), Completion(r.e2)});
  probe("updatable by the device", {Plain(cudaLaunchAttributeDeviceUpdatableKernelNode, 1)});
}

OBSERVE("probe.launch.events", Once().InOwnProcess()) {
  Rig r(o);
  const auto probe = [&](const char* step, const cudaLaunchAttribute& attribute, cudaEvent_t event, bool kernel) {
    cudaGraph_t g = nullptr;
    PROBE_AS(Format("%s: eager", step), Start({kSize, {attribute}}, r, r.s));
    PROBE_AS(Format("%s: wait", step), cudaStreamWaitEvent(r.s2, event, 0));
    PROBE_AS(Format("%s: synchronize", step), cudaEventSynchronize(event));
    REQUIRE_CUDA(cudaDeviceSynchronize());
    REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeThreadLocal));
    PROBE_AS(Format("%s: captured", step), Start({kSize, {attribute}}, r, r.s));
    PROBE_AS(Format("%s: fork", step), cudaStreamWaitEvent(r.s2, event, 0));
    if (kernel) {
      PROBE_AS(Format("%s: a kernel behind", step), Start({kSizeToo, {}}, r, r.s2));
    } else {
      PROBE_AS(Format("%s: a fill behind", step), cudaMemsetAsync(r.d2, 0, 64, r.s2));
    }
    PROBE_AS(Format("%s: join", step), cudaEventRecord(r.e, r.s2));
    PROBE_AS(Format("%s: joined", step), cudaStreamWaitEvent(r.s, r.e, 0));
    PROBE_AS(Format("%s: end", step), cudaStreamEndCapture(r.s, &g));
    if (g == nullptr) return;
    o.Note(Format("%s: the graph", step), Format("types=%s ", NodeTypes(g).c_str()) + Edges(g));
    cudaGraphExec_t e = nullptr;
    PROBE_AS(Format("%s: instantiate", step), cudaGraphInstantiate(&e, g, 0));
    if (e != nullptr) o.Note(Format("%s: launch", step), Ran(r, e));
  };
  probe("programmatic", Programmatic(r.e2, 0), r.e2, true);
  probe("programmatic, a fill", Programmatic(r.e2, 0), r.e2, false);
  probe("at the block's start", Programmatic(r.e2, 1), r.e2, true);
  probe("completion", Completion(r.e2), r.e2, true);
  probe("completion, a fill", Completion(r.e2), r.e2, false);
}

OBSERVE("probe.launch.serialized", Once().InOwnProcess()) {
  Rig r(o);
  const cudaLaunchAttribute on = Plain(cudaLaunchAttributeProgrammaticStreamSerialization, 1);
  const cudaLaunchAttribute off = Plain(cudaLaunchAttributeProgrammaticStreamSerialization, 0);
  const auto probe = [&](const char* step, const std::function<void()>& before, const cudaLaunchAttribute& attribute) {
    cudaGraph_t g = nullptr;
    REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeThreadLocal));
    before();
    PROBE_AS(step, Start({kSize, {attribute}}, r, r.s));
    (void)cudaStreamEndCapture(r.s, &g);
    (void)cudaGetLastError();
    if (g == nullptr) return;
    o.Note(Format("%s: the graph", step), Format("types=%s ", NodeTypes(g).c_str()) + Edges(g));
  };
  const auto kernel = [&](cudaStream_t stream) { REQUIRE_CUDA(Start({kSizeToo, {}}, r, stream)); };
  const auto fork = [&] {
    REQUIRE_CUDA(cudaEventRecord(r.e, r.s));
    REQUIRE_CUDA(cudaStreamWaitEvent(r.s2, r.e, 0));
  };
  const auto join = [&] {
    REQUIRE_CUDA(cudaEventRecord(r.e2, r.s2));
    REQUIRE_CUDA(cudaStreamWaitEvent(r.s, r.e2, 0));
  };
  probe(
      "after a kernel", [&] { kernel(r.s); }, on);
  probe(
      "after a kernel, value 0", [&] { kernel(r.s); }, off);
  probe(
      "after a fill", [&] { REQUIRE_CUDA(cudaMemsetAsync(r.d2, 0, 64, r.s)); }, on);
  probe(
      "after two kernels",
      [&] {
        kernel(r.s);
        fork();
        kernel(r.s);
        kernel(r.s2);
        join();
      },
      on);
  probe(
      "after a kernel and a fill",
      [&] {
        kernel(r.s);
        fork();
        kernel(r.s);
        REQUIRE_CUDA(cudaMemsetAsync(r.d2, 0, 64, r.s2));
        join();
      },
      on);
  // An update between the two kinds of edges.
  const auto pair = [&](const cudaLaunchAttribute& attribute) {
    cudaGraph_t g = nullptr;
    REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeThreadLocal));
    kernel(r.s);
    REQUIRE_CUDA(Start({kSize, {attribute}}, r, r.s));
    REQUIRE_CUDA(cudaStreamEndCapture(r.s, &g));
    return g;
  };
  const auto update = [&](const char* step, cudaGraph_t from, cudaGraph_t to) {
    cudaGraphExec_t e = nullptr;
    cudaGraphExecUpdateResultInfo info = {};
    REQUIRE_CUDA(cudaGraphInstantiate(&e, from, 0));
    PROBE_AS_AND(step, cudaGraphExecUpdate(e, to, &info), "result=%d", info.result);
  };
  update("update to a programmatic edge", pair(off), pair(on));
  update("update to a full edge", pair(on), pair(off));
}

// The same edge, given by hand.
OBSERVE("probe.launch.programmatic_dependency", Once().InOwnProcess()) {
  Rig r(o);
  const cudaGraphEdgeData data = {cudaGraphKernelNodePortProgrammatic, 0, cudaGraphDependencyTypeProgrammatic, {}};
  cudaStreamCaptureStatus status;
  const cudaGraphNode_t* nodes = nullptr;
  size_t count = 0;
  cudaGraph_t g = nullptr;
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeThreadLocal));
  REQUIRE_CUDA(Start({kSize, {}}, r, r.s));
  REQUIRE_CUDA(cudaStreamGetCaptureInfo(r.s, &status, nullptr, nullptr, &nodes, nullptr, &count));
  cudaGraphNode_t node = nodes[0];
  PROBE(cudaStreamUpdateCaptureDependencies(r.s, &node, &data, 1, cudaStreamSetCaptureDependencies));
  PROBE_AND(cudaMemsetAsync(r.d2, 1, 64, r.s), "status=%s", Status(r.s).c_str());
  PROBE(cudaStreamEndCapture(r.s, &g));
  if (g != nullptr) o.Note("the graph", Format("types=%s ", NodeTypes(g).c_str()) + Edges(g));
}

OBSERVE("probe.launch.cluster_update", Once().InOwnProcess()) {
  Rig r(o);
  // `varies`: the clusters behind the update differ from build to build of the same two kernels, so they are not noted.
  // With code for 9.0 alone they were the new ones, with code for 8.0 and 9.0 the old ones.
  const auto update = [&](const char* step, const Launch& from, const Launch& to, bool varies = false) {
    cudaGraph_t a = Capture(o, r, from), b = Capture(o, r, to);
    cudaGraphExec_t e = nullptr;
    cudaGraphExecUpdateResultInfo info = {};
    REQUIRE_CUDA(cudaGraphInstantiate(&e, a, 0));
    o.Note(Format("%s: before", step), Ran(r, e));
    PROBE_AS_AND(step, cudaGraphExecUpdate(e, b, &info), "result=%d", info.result);
    if (!varies) o.Note(Format("%s: after", step), Ran(r, e));
    PROBE_AS(Format("%s: again", step), cudaGraphExecUpdate(e, b, &info));
    if (!varies) o.Note(Format("%s: after both", step), Ran(r, e));
    PROBE_AS(Format("%s: back", step), cudaGraphExecUpdate(e, a, &info));
    if (!varies) o.Note(Format("%s: after that", step), Ran(r, e));
  };
  const Launch none = {kSize, {}}, two = {kSize, {Cluster(2)}}, four = {kSize, {Cluster(4)}},
               one = {kSize, {Cluster(1)}};
  const Launch none_too = {kSizeToo, {}}, two_too = {kSizeToo, {Cluster(2)}}, four_too = {kSizeToo, {Cluster(4)}};
  update("none to 2", none, two);
  update("2 to none", two, none);
  update("2 to 4", two, four);
  update("2 to 1", two, one);
  update("1 to 2", one, two);
  update("none to 4, other kernel", none, four_too, /*varies=*/true);
  update("2 to 4, other kernel", two, four_too, /*varies=*/true);
  update("4 to none, other kernel", four, none_too);
  update("2 to 2, other kernel", two, two_too);
  // The grid is no multiple of the clusters that stay.
  update("2 to none with grid 3", two, {kSize, {}, 3});
  update("4 to 2 with grid 6", four, {kSize, {Cluster(2)}, 6});
  update("2 to none with grid 3, other kernel", two, {kSizeToo, {}, 3});
  update("2 to 2 with grid 4", two, {kSize, {Cluster(2)}, 4});
  update("2 to 2 with preferred 4", two, {kSize, {Cluster(2), Preferred(4)}});
  update("2 with preferred 4 to 2", {kSize, {Cluster(2), Preferred(4)}}, two);
}

OBSERVE("probe.launch.attribute_update", Once().InOwnProcess()) {
  Rig r(o);
  const auto update = [&](const char* step, const std::vector<cudaLaunchAttribute>& from,
                          const std::vector<cudaLaunchAttribute>& to, unsigned long long flags = 0) {
    cudaGraph_t a = Capture(o, r, {kSize, from}), b = Capture(o, r, {kSize, to});
    cudaGraphExec_t e = nullptr;
    cudaGraphExecUpdateResultInfo info = {};
    REQUIRE_CUDA(cudaGraphInstantiate(&e, a, flags));
    PROBE_AS_AND(step, cudaGraphExecUpdate(e, b, &info), "result=%d", info.result);
  };
  const auto window = [&](size_t bytes) {
    return Attribute(cudaLaunchAttributeAccessPolicyWindow, [&](cudaLaunchAttributeValue& v) {
      v.accessPolicyWindow = {r.d, bytes, 1.0f, cudaAccessPropertyPersisting, cudaAccessPropertyStreaming};
    });
  };
  update("priority 0 to -3", {}, {Plain(cudaLaunchAttributePriority, -3)});
  update("priority 0 to -3, used", {}, {Plain(cudaLaunchAttributePriority, -3)},
         cudaGraphInstantiateFlagUseNodePriority);
  update("synchronization domain 0 to 1", {}, {Plain(cudaLaunchAttributeMemSyncDomain, 1)});
  update("cooperative 0 to 1", {}, {Plain(cudaLaunchAttributeCooperative, 1)});
  update("cooperative 1 to 0", {Plain(cudaLaunchAttributeCooperative, 1)}, {});
  update("cluster scheduling 0 to 1", {Cluster(2)},
         {Cluster(2), Plain(cudaLaunchAttributeClusterSchedulingPolicyPreference, 1)});
  update("carveout 0 to 50", {}, {Plain(cudaLaunchAttributePreferredSharedMemoryCarveout, 50)});
  update("window none to 4096", {}, {window(4096)});
  update("window 4096 to 2048", {window(4096)}, {window(2048)});
  update("window 4096 to none", {window(4096)}, {});
}

OBSERVE("probe.launch.exec_set", Once().InOwnProcess()) {
  Rig r(o);
  const auto probe = [&](const char* step, const Launch& from, const void* function, unsigned int grid) {
    cudaGraph_t g = Capture(o, r, from);
    cudaGraphNode_t node = OnlyNode(o, g);
    cudaGraphExec_t e = nullptr;
    REQUIRE_CUDA(cudaGraphInstantiate(&e, g, 0));
    void* args[] = {&r.d};
    auto p = r.Kernel(function);
    p.gridDim = dim3(grid);
    p.kernelParams = args;
    PROBE_AS(step, cudaGraphExecKernelNodeSetParams(e, node, &p));
    o.Note(Format("%s: after", step), Ran(r, e));
    PROBE_AS(Format("%s, in the graph", step), cudaGraphKernelNodeSetParams(node, &p));
    o.Note(Format("%s: the node", step), Told(node));
    cudaGraphExec_t again = nullptr;
    PROBE_AS(Format("%s: instantiate again", step), cudaGraphInstantiate(&again, g, 0));
    if (again != nullptr) o.Note(Format("%s: after that", step), Ran(r, again));
  };
  probe("same kernel", {kSize, {Cluster(2)}}, kSize, 8);
  probe("other kernel", {kSize, {Cluster(2)}}, kSizeToo, 8);
  probe("grid 3", {kSize, {Cluster(2)}}, kSize, 3);
  probe("grid 4", {kSize, {Cluster(2)}}, kSize, 4);
  // The node's attribute changes, then the executable's parameters.
  cudaGraph_t g = Capture(o, r, {kSize, {Cluster(2)}});
  cudaGraphNode_t node = OnlyNode(o, g);
  cudaGraphExec_t e = nullptr;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, g, 0));
  const auto cluster = [&](unsigned int x, unsigned int y) {
    cudaLaunchAttributeValue v = {};
    v.clusterDim.x = x;
    v.clusterDim.y = v.clusterDim.z = y;
    return v;
  };
  for (unsigned int x : {4u, 0u, 3u, 16u, 1u}) {
    const auto v = cluster(x, x == 0 ? 0 : 1);
    PROBE_AS_AND(Format("attribute of the node to %u", x),
                 cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &v), "%s",
                 Told(node).c_str());
    cudaGraphExec_t fresh = nullptr;
    PROBE_AS(Format("attribute %u: instantiate", x), cudaGraphInstantiate(&fresh, g, 0));
    if (fresh != nullptr) o.Note(Format("attribute %u: launch", x), Ran(r, fresh));
  }
  o.Note("the first executable", Ran(r, e));
}

OBSERVE("probe.launch.cluster_attributes", Once().InOwnProcess()) {
  Rig r(o);
  const auto set = [&](const char* step, cudaFuncAttribute attribute, int value) {
    PROBE_AS(step, cudaFuncSetAttribute(kSize, attribute, value));
  };
  const auto start = [&](const char* step, const Launch& launch) {
    PROBE_AS(step, Start(launch, r, r.s));
    PROBE_AS(Format("%s: done", step), cudaStreamSynchronize(r.s));
  };
  int n = 77;
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute two = Cluster(2);
  config.gridDim = dim3(16);
  config.blockDim = dim3(32);
  PROBE_AND(cudaOccupancyMaxPotentialClusterSize(&n, kSize, &config), "n=%d", n);
  config.attrs = &two;
  config.numAttrs = 1;
  n = 77;
  PROBE_AND(cudaOccupancyMaxActiveClusters(&n, kSize, &config), "positive=%d", n > 0);
  start("cluster 16", {kSize, {Cluster(16)}, 16});
  set("other sizes allowed", cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  start("cluster 16, allowed", {kSize, {Cluster(16)}, 16});
  start("cluster 32, allowed", {kSize, {Cluster(32)}, 32});
  config.numAttrs = 0;
  PROBE_AND(cudaOccupancyMaxPotentialClusterSize(&n, kSize, &config), "n=%d", n);
  set("other sizes not allowed", cudaFuncAttributeNonPortableClusterSizeAllowed, 0);
  start("cluster 16, no longer", {kSize, {Cluster(16)}, 16});
  set("scheduling policy 1", cudaFuncAttributeClusterSchedulingPolicyPreference, 1);
  set("scheduling policy 9", cudaFuncAttributeClusterSchedulingPolicyPreference, 9);
  cudaFuncAttributes f = {};
  PROBE_AND(cudaFuncGetAttributes(&f, kSize), "must=%d width=%d height=%d depth=%d other=%d policy=%d",
            f.clusterDimMustBeSet, f.requiredClusterWidth, f.requiredClusterHeight, f.requiredClusterDepth,
            f.nonPortableClusterSizeAllowed, f.clusterSchedulingPolicyPreference);
  set("must be set", cudaFuncAttributeClusterDimMustBeSet, 1);
  start("none, where it must be set", {kSize, {}});
  set("width 2", cudaFuncAttributeRequiredClusterWidth, 2);
  set("height 1", cudaFuncAttributeRequiredClusterHeight, 1);
  set("depth 1", cudaFuncAttributeRequiredClusterDepth, 1);
  start("none, of a required width", {kSize, {}});
  start("cluster 4, of a required width", {kSize, {Cluster(4)}});
}

}  // namespace conformance
