// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The audit: programs that launch graphs on memory that is there, and on memory that is not.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "test/doctor/record/fake_driver.h"
#include "test/doctor/record/program.h"

namespace {

void* const kStream = Handle(0x1000);
void* const kExec = Handle(0x4000);
constexpr uint64_t kMemory = 0x7f1200000000, kOther = 0x7f1300000000;

// --- The program's calls ---------------------------------------------------------------------------------------------

void Alloc(uint64_t address, uint64_t bytes, int result = 0) {
  const struct {
    uint64_t* address;
    uint64_t bytes;
  } arguments = {&address, bytes};
  fake.call(243, "cuMemAlloc_v2", &arguments, result);
}

void Free(uint64_t address, int result = 0) { fake.call(245, "cuMemFree_v2", &address, result); }

void AllocAsync(uint64_t address, uint64_t bytes) {
  const struct {
    uint64_t* address;
    uint64_t bytes;
    void* stream;
  } arguments = {&address, bytes, kStream};
  fake.call(598, "cuMemAllocAsync", &arguments, 0);
}

void FreeAsync(uint64_t address) {
  const struct {
    uint64_t address;
    void* stream;
  } arguments = {address, kStream};
  fake.call(600, "cuMemFreeAsync", &arguments, 0);
}

void Map(uint64_t address, uint64_t bytes) {
  const struct { uint64_t address, bytes, offset, handle, flags; } arguments = {address, bytes, 0, 1, 0};
  fake.call(551, "cuMemMap", &arguments, 0);
}

void Unmap(uint64_t address, uint64_t bytes) {
  const struct { uint64_t address, bytes; } arguments = {address, bytes};
  fake.call(552, "cuMemUnmap", &arguments, 0);
}

void Update(void* exec, void* graph, int result = 0) {
  int update[8] = {};
  const struct { void *exec, *graph, *result; } arguments = {exec, graph, update};
  fake.call(696, "cuGraphExecUpdate_v2", &arguments, result);
}

void Destroy(void* exec) {
  gcap_doctor_cupti_graph_t data = {};
  data.exec = exec;
  fake.graph(GCAP_DOCTOR_CUPTI_EXEC_DESTROY, &data);
}

// --- Graphs ----------------------------------------------------------------------------------------------------------

// Graphs of kernels, copies and memsets, which live as long as this.
class Graph {
 public:
  // A kernel with arguments of eight bytes.
  fake_driver_node_t* Kernel(std::vector<uint64_t> arguments, const char* name = "fill") {
    fake_driver_function_t& function = functions_.emplace_back();
    function.name = name;
    function.num_params = arguments.size();
    words_.push_back(arguments);
    std::vector<void*>& params = params_.emplace_back();
    for (size_t i = 0; i < arguments.size(); ++i) {
      function.offsets[i] = 8 * i;
      function.sizes[i] = 8;
      params.push_back(&words_.back()[i]);
    }
    return AddKernel(&function, params.data(), nullptr);
  }

  // Another node of the same function.
  fake_driver_node_t* KernelLike(const fake_driver_node_t* node, std::vector<uint64_t> arguments) {
    void* function;
    memcpy(&function, node->about, sizeof(function));
    words_.push_back(arguments);
    std::vector<void*>& params = params_.emplace_back();
    for (uint64_t& word : words_.back()) params.push_back(&word);
    return AddKernel(function, params.data(), nullptr);
  }

  // A kernel with one argument of several words.
  fake_driver_node_t* KernelOfStruct(std::vector<uint64_t> argument) {
    fake_driver_function_t& function = functions_.emplace_back();
    function.name = "of_struct";
    function.num_params = 1;
    function.sizes[0] = 8 * argument.size();
    words_.push_back(argument);
    params_.push_back({words_.back().data()});
    return AddKernel(&function, params_.back().data(), nullptr);
  }

  // The same arguments one behind the other, as `extra` has them.
  fake_driver_node_t* PackedKernel(std::vector<uint64_t> arguments) {
    fake_driver_node_t* node = Kernel(arguments, "packed");
    sizes_.push_back(8 * arguments.size());
    params_.push_back({Handle(1), words_.back().data(), Handle(2), &sizes_.back(), nullptr});
    void* none = nullptr;
    void** extra = params_.back().data();
    memcpy(node->about + 40, &none, 8);
    memcpy(node->about + 48, &extra, 8);
    return node;
  }

  fake_driver_node_t* Copy(int from_type, uint64_t from, int to_type, uint64_t to) {
    fake_driver_node_t* node = Add(1);
    memcpy(node->about + 32, &from_type, 4);
    memcpy(node->about + (from_type == 1 ? 40 : 48), &from, 8);
    memcpy(node->about + 120, &to_type, 4);
    memcpy(node->about + (to_type == 1 ? 128 : 136), &to, 8);
    return node;
  }

  fake_driver_node_t* Memset(uint64_t address) {
    fake_driver_node_t* node = Add(2);
    memcpy(node->about, &address, 8);
    return node;
  }

  fake_driver_node_t* Allocation(uint64_t bytes) {
    fake_driver_node_t* node = Add(10);
    memcpy(node->about + 104, &bytes, 8);
    return node;
  }

  fake_driver_node_t* Child(Graph& child) {
    fake_driver_node_t* node = Add(4);
    node->child = static_cast<fake_driver_graph_t*>(child.handle());
    return node;
  }

  void* handle() {
    graph_ = {pointers_.data(), pointers_.size()};
    return &graph_;
  }

 private:
  fake_driver_node_t* Add(int type) {
    fake_driver_node_t& node = nodes_.emplace_back();
    node.id = 0x100000000 + nodes_.size() - 1;
    node.type = type;
    pointers_.push_back(&node);
    return &node;
  }

  fake_driver_node_t* AddKernel(void* function, void** params, void** extra) {
    fake_driver_node_t* node = Add(0);
    memcpy(node->about, &function, 8);
    memcpy(node->about + 40, &params, 8);
    memcpy(node->about + 48, &extra, 8);
    return node;
  }

  std::deque<fake_driver_function_t> functions_;
  std::deque<std::vector<uint64_t>> words_;
  std::deque<std::vector<void*>> params_;
  std::deque<size_t> sizes_;
  std::deque<fake_driver_node_t> nodes_;
  std::vector<fake_driver_node_t*> pointers_;
  fake_driver_graph_t graph_ = {};
};

Recorded Audit(const std::function<void()>& program) {
  return Record(program, {{"GCAP_DOCTOR_AUDIT", "1"}, {"FAKE_DRIVER", "1"}});
}

const gcap_doctor_event_stale_t& OnlyStale(const Recorded& recorded) {
  static const gcap_doctor_event_stale_t kNone = {};
  EXPECT_EQ(recorded.events->num_stales, 1u) << recorded.text << recorded.said;
  return recorded.events->num_stales == 1 ? recorded.events->stales[0] : kNone;
}

const char* FunctionOf(const Recorded& recorded, uint32_t call) {
  return call < recorded.events->num_calls ? recorded.events->calls[call].function : "none";
}

bool HasStack(const Recorded& recorded, uint32_t call) {
  return call < recorded.events->num_calls && recorded.events->calls[call].stack != GCAP_DOCTOR_NONE;
}

void ExpectSilent(const Recorded& recorded) {
  EXPECT_EQ(recorded.events->num_stales, 0u) << recorded.text;
  EXPECT_EQ(recorded.said, "");
}

// --- Memory that is gone ---------------------------------------------------------------------------------------------

TEST(Audit, FreedMemoryIsToldAtTheLaunchWithItsPlaces) {
  Recorded recorded = Audit([] {
    Graph graph;
    graph.Kernel({7, kMemory + 64, 3});
    Alloc(kMemory, 4096);
    Alloc(kOther, 4096);
    Instantiate(kExec, graph.handle(), {});
    Replay(kExec, kStream);
    Free(kMemory);
    Replay(kExec, kStream);
    Replay(kExec, kStream);
  });
  const gcap_doctor_event_stale_t& stale = OnlyStale(recorded);
  EXPECT_STREQ(stale.use, "argument");
  EXPECT_STREQ(stale.kernel, "fill");
  EXPECT_STREQ(stale.what, "device");
  EXPECT_EQ(stale.argument, 1u);
  EXPECT_EQ(stale.node, 0x100000000u);
  EXPECT_EQ(stale.address, kMemory + 64);
  EXPECT_EQ(stale.bytes, 4096u);
  EXPECT_EQ(stale.pointers, 1u);
  EXPECT_EQ(stale.exec, recorded.Call("cuGraphInstantiateWithFlags").exec);
  EXPECT_STREQ(FunctionOf(recorded, stale.call), "cuGraphLaunch");
  EXPECT_STREQ(FunctionOf(recorded, stale.made), "cuMemAlloc");
  EXPECT_STREQ(FunctionOf(recorded, stale.freed), "cuMemFree");
  EXPECT_EQ(stale.taken, GCAP_DOCTOR_NONE);
  for (uint32_t call : {stale.call, stale.made, stale.freed}) EXPECT_TRUE(HasStack(recorded, call)) << call;
  EXPECT_LT(stale.made, stale.freed);
  EXPECT_LT(stale.freed, stale.call);
  // It is told once, in one line.
  EXPECT_EQ(recorded.said.find("audit:"), recorded.said.rfind("audit:"));
  EXPECT_NE(recorded.said.find("argument 1 of fill"), std::string::npos) << recorded.said;
}

TEST(Audit, MemoryThatWasHandedOutAgainNamesItsNewOwner) {
  Recorded recorded = Audit([] {
    Graph graph;
    graph.Kernel({kMemory});
    Alloc(kMemory, 4096);
    Instantiate(kExec, graph.handle(), {});
    Free(kMemory);
    Alloc(kMemory, 4096);
    Replay(kExec, kStream);
  });
  const gcap_doctor_event_stale_t& stale = OnlyStale(recorded);
  EXPECT_STREQ(FunctionOf(recorded, stale.taken), "cuMemAlloc");
  EXPECT_NE(stale.taken, stale.made);
  EXPECT_NE(recorded.said.find("handed out again"), std::string::npos) << recorded.said;
}

TEST(Audit, ItIsToldBeforeTheDriverGetsTheLaunch) {
  Recorded recorded = Audit([] {
    Graph graph;
    graph.Kernel({kMemory});
    Alloc(kMemory, 4096);
    Instantiate(kExec, graph.handle(), {});
    Free(kMemory);
    const struct { void *exec, *stream; } arguments = {kExec, kStream};
    fake.enter(514, "cuGraphLaunch", &arguments);
    _exit(0);
  });
  EXPECT_EQ(recorded.events->num_stales, 1u) << recorded.text;
  EXPECT_NE(recorded.said.find("audit:"), std::string::npos);
}

TEST(Audit, OfManyPointersIntoOnePieceTheFirstIsToldAndTheOthersAreCounted) {
  Recorded recorded = Audit([] {
    Graph graph;
    graph.Kernel({kOther, kMemory});
    graph.Kernel({kMemory + 8, kMemory + 16}, "second");
    Alloc(kMemory, 4096);
    Alloc(kOther, 4096);
    Instantiate(kExec, graph.handle(), {});
    Free(kMemory);
    Replay(kExec, kStream);
    Free(kOther);
    Replay(kExec, kStream);
  });
  ASSERT_EQ(recorded.events->num_stales, 2u) << recorded.text;
  EXPECT_EQ(recorded.events->stales[0].pointers, 3u);
  EXPECT_EQ(recorded.events->stales[0].argument, 1u);
  EXPECT_STREQ(recorded.events->stales[0].kernel, "fill");
  EXPECT_EQ(recorded.events->stales[1].address, kOther);
}

// --- Where pointers are ----------------------------------------------------------------------------------------------

TEST(Audit, PointersAreFoundInStructsPackedArgumentsCopiesMemsetsAndChildGraphs) {
  struct {
    const char* use;
    std::function<void(Graph&, Graph&)> make;
  } const cases[] = {
      {"word",
       [](Graph& graph, Graph&) {
         graph.KernelOfStruct({1, 2, kMemory + 8});
       }},
      {"argument",
       [](Graph& graph, Graph&) {
         graph.PackedKernel({1, kMemory});
       }},
      {"copy_from", [](Graph& graph, Graph&) { graph.Copy(2, kMemory, 2, kOther); }},
      {"copy_to", [](Graph& graph, Graph&) { graph.Copy(2, kOther, 2, kMemory); }},
      {"copy_to", [](Graph& graph, Graph&) { graph.Copy(2, kOther, 1, kMemory); }},
      {"memset", [](Graph& graph, Graph&) { graph.Memset(kMemory); }},
      {"argument",
       [](Graph& graph, Graph& child) {
         child.Kernel({kMemory});
         graph.Child(child);
       }},
  };
  for (const auto& one : cases) {
    Recorded recorded = Audit([&one] {
      Graph graph, child;
      one.make(graph, child);
      Alloc(kMemory, 4096);
      Alloc(kOther, 4096);
      Instantiate(kExec, graph.handle(), {});
      Replay(kExec, kStream);
      Free(kMemory);
      Replay(kExec, kStream);
    });
    const gcap_doctor_event_stale_t& stale = OnlyStale(recorded);
    EXPECT_STREQ(stale.use, one.use);
    EXPECT_EQ(stale.size, strcmp(one.use, "word") == 0 ? 24u : 0u);
    EXPECT_EQ(stale.address & ~UINT64_C(63), kMemory);
  }
}

// --- Memory of other kinds -------------------------------------------------------------------------------------------

TEST(Audit, MemoryOfPoolsIsFollowed) {
  Recorded recorded = Audit([] {
    Graph graph;
    graph.Kernel({kMemory});
    AllocAsync(kMemory, 4096);
    Instantiate(kExec, graph.handle(), {});
    FreeAsync(kMemory);
    Replay(kExec, kStream);
  });
  EXPECT_STREQ(OnlyStale(recorded).what, "pool");
}

TEST(Audit, OfMappedRangesAllThatIsUnmappedIsGone) {
  Recorded recorded = Audit([] {
    Graph graph;
    graph.Kernel({kMemory, kMemory + 0x3000});
    for (uint64_t i = 0; i < 4; ++i) Map(kMemory + i * 0x1000, 0x1000);
    Instantiate(kExec, graph.handle(), {});
    Unmap(kMemory + 0x1000, 0x3000);
    Replay(kExec, kStream);
  });
  EXPECT_EQ(OnlyStale(recorded).address, kMemory + 0x3000);
  EXPECT_STREQ(OnlyStale(recorded).what, "mapped");
}

// --- What is no finding ----------------------------------------------------------------------------------------------

TEST(Audit, AHealthyProgramHearsNothing) {
  ExpectSilent(Audit([] {
    Graph graph;
    graph.Kernel({kMemory, 17});
    graph.Memset(kMemory + 128);
    Alloc(kMemory, 4096);
    Alloc(kOther, 4096);
    Instantiate(kExec, graph.handle(), {});
    Free(kOther);
    for (int i = 0; i < 10; ++i) Replay(kExec, kStream);
    Destroy(kExec);
    Free(kMemory);
  }));
}

TEST(Audit, AFreeThatFailsFreesNothing) {
  ExpectSilent(Audit([] {
    Graph graph;
    graph.Kernel({kMemory});
    Alloc(kMemory, 4096);
    Instantiate(kExec, graph.handle(), {});
    Free(kMemory, 1);
    Replay(kExec, kStream);
  }));
}

TEST(Audit, AllocationsThatACaptureTookAreNotTheProgramsMemory) {
  ExpectSilent(Audit([] {
    static uint64_t alloc = 0x100000000, free_node = 0x100000001;
    Graph graph;
    graph.Kernel({kMemory});
    Alloc(kMemory, 4096);
    Begin(kStream);
    const struct {
      uint64_t address;
      void* stream;
    } arguments = {kMemory, kStream};
    Within(600, "cuMemFreeAsync", &arguments, 0, [] {
      gcap_doctor_cupti_graph_t data = {};
      data.graph = Handle(0x3000);
      data.node = &free_node;
      fake.graph(GCAP_DOCTOR_CUPTI_NODE_STARTS, &data);
      fake.graph(GCAP_DOCTOR_CUPTI_NODE_CREATED, &data);
    });
    (void)alloc;
    End(kStream, Handle(0x3000));
    Instantiate(kExec, graph.handle(), {});
    Replay(kExec, kStream);
  }));
}

TEST(Audit, AnUpdateGivesTheExecutableOtherMemory) {
  ExpectSilent(Audit([] {
    Graph graph, other;
    graph.Kernel({kMemory});
    other.Kernel({kOther});
    Alloc(kMemory, 4096);
    Alloc(kOther, 4096);
    Instantiate(kExec, graph.handle(), {});
    Free(kMemory);
    Update(kExec, other.handle());
    Replay(kExec, kStream);
  }));
}

TEST(Audit, ARefusedUpdateChangesNothing) {
  Recorded recorded = Audit([] {
    Graph graph, other;
    graph.Kernel({kMemory});
    other.Kernel({kOther});
    Alloc(kMemory, 4096);
    Alloc(kOther, 4096);
    Instantiate(kExec, graph.handle(), {});
    Free(kMemory);
    Update(kExec, other.handle(), 910);
    Replay(kExec, kStream);
  });
  EXPECT_EQ(OnlyStale(recorded).address, kMemory);
}

// --- Nodes of executables --------------------------------------------------------------------------------------------

void SetKernel(void* exec, fake_driver_node_t* node, const fake_driver_node_t* about, int result = 0) {
  const struct {
    void *exec, *node;
    const void* about;
  } arguments = {exec, node, about->about};
  fake.call(692, "cuGraphExecKernelNodeSetParams_v2", &arguments, result);
}

void SetNode(uint32_t callback, const char* function, fake_driver_node_t* node, const void* about) {
  const struct {
    void *exec, *node;
    const void* about;
  } arguments = {kExec, node, about};
  fake.call(callback, function, &arguments, 0);
}

void Enable(fake_driver_node_t* node, unsigned is_enabled) {
  const struct {
    void *exec, *node;
    unsigned is_enabled;
  } arguments = {kExec, node, is_enabled};
  fake.call(650, "cuGraphNodeSetEnabled", &arguments, 0);
}

TEST(Audit, ANodeThatIsGivenOtherArgumentsHasThose) {
  Recorded recorded = Audit([] {
    Graph graph, other;
    fake_driver_node_t *first = graph.Kernel({kMemory}), *second = graph.Kernel({kMemory}, "second");
    const fake_driver_node_t* about = other.Kernel({kOther}, "moved");
    Alloc(kMemory, 4096);
    Alloc(kOther, 4096);
    Instantiate(kExec, graph.handle(), {});
    SetKernel(kExec, first, about);
    SetKernel(kExec, second, about, 1);  // refused
    Free(kMemory);
    Replay(kExec, kStream);
    Free(kOther);
    Replay(kExec, kStream);
  });
  ASSERT_EQ(recorded.events->num_stales, 2u) << recorded.text;
  EXPECT_STREQ(recorded.events->stales[0].kernel, "second");
  EXPECT_EQ(recorded.events->stales[0].pointers, 1u);
  EXPECT_STREQ(recorded.events->stales[1].kernel, "moved");
  EXPECT_EQ(recorded.events->stales[1].address, kOther);
}

// A pointer keeps the memory that it was taken of, whatever other nodes are given.
TEST(Audit, OtherNodesKeepTheirMemory) {
  Recorded recorded = Audit([] {
    Graph graph;
    graph.Kernel({kMemory});
    fake_driver_node_t* second = graph.Memset(kOther);
    Alloc(kMemory, 4096);
    Alloc(kOther, 4096);
    Instantiate(kExec, graph.handle(), {});
    Free(kMemory);
    Alloc(kMemory, 4096);
    SetNode(563, "cuGraphExecMemsetNodeSetParams", second, second->about);
    Replay(kExec, kStream);
  });
  EXPECT_EQ(OnlyStale(recorded).address, kMemory);
}

TEST(Audit, CopiesAndMemsetsAreGivenOtherMemoryToo) {
  Recorded recorded = Audit([] {
    Graph graph, other;
    fake_driver_node_t *copy = graph.Copy(2, kOther, 2, kOther), *memset_node = graph.Memset(kOther);
    Alloc(kMemory, 4096);
    Alloc(kOther, 4096);
    Instantiate(kExec, graph.handle(), {});
    SetNode(562, "cuGraphExecMemcpyNodeSetParams", copy, other.Copy(2, kOther, 2, kMemory)->about);
    SetNode(563, "cuGraphExecMemsetNodeSetParams", memset_node, other.Memset(kMemory)->about);
    Free(kMemory);
    Replay(kExec, kStream);
  });
  EXPECT_EQ(OnlyStale(recorded).pointers, 2u);
}

// What the description of another kind says is not read: nothing is known of the node then.
TEST(Audit, ANodeOfWhichNothingIsToldHasNoPointers) {
  ExpectSilent(Audit([] {
    Graph graph;
    fake_driver_node_t* node = graph.Kernel({kMemory});
    Alloc(kMemory, 4096);
    Instantiate(kExec, graph.handle(), {});
    SetNode(714, "cuGraphExecNodeSetParams", node, nullptr);
    Free(kMemory);
    Replay(kExec, kStream);
  }));
}

TEST(Audit, AChildGraphThatIsReplacedHasNoPointers) {
  Recorded recorded = Audit([] {
    Graph graph, innermost, inner;
    innermost.Kernel({kMemory}, "innermost");
    inner.Child(innermost);
    inner.Kernel({kMemory}, "inner");
    fake_driver_node_t* child = graph.Child(inner);
    graph.Kernel({kMemory}, "outer");
    Alloc(kMemory, 4096);
    Instantiate(kExec, graph.handle(), {});
    SetNode(586, "cuGraphExecChildGraphNodeSetParams", child, nullptr);
    Free(kMemory);
    Replay(kExec, kStream);
  });
  EXPECT_STREQ(OnlyStale(recorded).kernel, "outer");
  EXPECT_EQ(OnlyStale(recorded).pointers, 1u);
}

// The node is one of the graph that the executable was made of.
TEST(Audit, ANodeThatIsChangedAfterAnUpdateMayBeAnyNode) {
  for (const bool is_set : {false, true}) {
    ExpectSilent(Audit([is_set] {
      Graph graph, other;
      fake_driver_node_t* node = graph.Kernel({kOther});
      other.Kernel({kMemory});
      Alloc(kMemory, 4096);
      Alloc(kOther, 4096);
      Instantiate(kExec, graph.handle(), {});
      Update(kExec, other.handle());
      if (is_set) SetKernel(kExec, node, node);
      if (!is_set) Enable(node, 0);
      Free(kMemory);
      Replay(kExec, kStream);
    }));
  }
}

TEST(Audit, ANodeThatIsSwitchedOffIsNoFindingUntilItIsSwitchedOn) {
  Recorded recorded = Audit([] {
    Graph graph;
    fake_driver_node_t* node = graph.Kernel({kMemory});
    Alloc(kMemory, 4096);
    Instantiate(kExec, graph.handle(), {});
    Enable(node, 0);
    Free(kMemory);
    Replay(kExec, kStream);
    IN_PROGRAM(lseek(STDERR_FILENO, 0, SEEK_CUR) == 0);
    Enable(node, 1);
    Replay(kExec, kStream);
  });
  EXPECT_EQ(OnlyStale(recorded).address, kMemory);
}

// --- Memory of the host ----------------------------------------------------------------------------------------------

// Deeper on the stack than what comes after.
__attribute__((noinline)) void InstantiateACopyOfAVariable(Graph* graph) {
  volatile uint64_t room[512];
  for (size_t i = 0; i < 512; ++i) room[i] = i;
  graph->Copy(1, reinterpret_cast<uint64_t>(&room[8]), 2, kMemory);
  Instantiate(kExec, graph->handle(), {});
  Replay(kExec, kStream);  // the variable is there
  IN_PROGRAM(lseek(STDERR_FILENO, 0, SEEK_CUR) == 0);
}

TEST(Audit, ACopyOfAVariableOfAFunctionThatReturnedIsTold) {
  Recorded recorded = Audit([] {
    Graph graph;
    Alloc(kMemory, 4096);
    InstantiateACopyOfAVariable(&graph);
    Replay(kExec, kStream);
    Replay(kExec, kStream);
  });
  EXPECT_STREQ(OnlyStale(recorded).what, "stack");
  EXPECT_STREQ(OnlyStale(recorded).use, "copy_from");
}

// A coroutine's stack may lie above the thread's.
TEST(Audit, ALaunchOnACoroutinesStackTellsNothingOfTheThreads) {
  Recorded recorded = Audit([] {
    static ucontext_t outer, inner;
    static char* above;
    char room[1 << 16];
    above = room;
    std::thread([] {
      Graph graph;
      volatile uint64_t variable = 7;
      graph.Copy(1, reinterpret_cast<uint64_t>(&variable), 2, kMemory);
      Alloc(kMemory, 4096);
      Instantiate(kExec, graph.handle(), {});
      IN_PROGRAM(reinterpret_cast<uintptr_t>(above) > reinterpret_cast<uintptr_t>(&variable));
      IN_PROGRAM(getcontext(&inner) == 0);
      inner.uc_stack = {above, 0, 1 << 16};
      inner.uc_link = &outer;
      makecontext(
          &inner, [] { Replay(kExec, kStream); }, 0);
      IN_PROGRAM(swapcontext(&outer, &inner) == 0);
    }).join();
  });
  EXPECT_EQ(recorded.events->num_stales, 0u) << recorded.text;  // asan has words of its own
}

TEST(Audit, ACopyThatIsGivenOtherMemoryOfTheHostHasThat) {
  Recorded recorded = Audit([] {
    Graph graph, other;
    const size_t bytes = 4096;
    void* memory[2];
    for (void*& one : memory) one = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fake_driver_node_t* first = graph.Copy(1, reinterpret_cast<uint64_t>(memory[0]), 2, kMemory);
    fake_driver_node_t* second = graph.Copy(1, reinterpret_cast<uint64_t>(memory[1]), 2, kMemory);
    const void* about = other.Copy(1, reinterpret_cast<uint64_t>(memory[1]), 2, kMemory)->about;
    Alloc(kMemory, 4096);
    Instantiate(kExec, graph.handle(), {});
    SetNode(562, "cuGraphExecMemcpyNodeSetParams", first, about);
    munmap(memory[0], bytes);
    Replay(kExec, kStream);
    IN_PROGRAM(lseek(STDERR_FILENO, 0, SEEK_CUR) == 0);
    SetNode(714, "cuGraphExecNodeSetParams", second, nullptr);
    munmap(memory[1], bytes);
    Replay(kExec, kStream);
  });
  EXPECT_STREQ(OnlyStale(recorded).what, "pageable");
}

TEST(Audit, ACopyOfHostMemoryThatIsNotMappedAnyMoreIsTold) {
  Recorded recorded = Audit([] {
    Graph graph;
    const size_t bytes = 1 << 16;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    graph.Copy(1, reinterpret_cast<uint64_t>(memory) + 4096, 2, kMemory);
    Alloc(kMemory, 4096);
    Instantiate(kExec, graph.handle(), {});
    Replay(kExec, kStream);
    IN_PROGRAM(lseek(STDERR_FILENO, 0, SEEK_CUR) == 0);
    munmap(memory, bytes);
    Replay(kExec, kStream);
  });
  EXPECT_STREQ(OnlyStale(recorded).what, "pageable");
}

TEST(Audit, PinnedMemoryThatIsFreedIsFollowed) {
  Recorded recorded = Audit([] {
    Graph graph;
    void* pinned = Handle(0x7f1400000000);
    const struct {
      void** address;
      uint64_t bytes;
      unsigned flags;
    } arguments = {&pinned, 4096, 0};
    fake.call(39, "cuMemHostAlloc", &arguments, 0);
    graph.Copy(1, 0x7f1400000000, 2, kMemory);
    Alloc(kMemory, 4096);
    Instantiate(kExec, graph.handle(), {});
    Replay(kExec, kStream);
    fake.call(38, "cuMemFreeHost", &pinned, 0);
    Replay(kExec, kStream);
  });
  EXPECT_STREQ(OnlyStale(recorded).what, "host");
}

// The program's memory is there when it is no longer pinned, but a kernel cannot use it.
TEST(Audit, MemoryThatIsNoLongerRegisteredIsGoneForKernelsAlone) {
  for (const bool is_kernel : {false, true}) {
    Recorded recorded = Audit([is_kernel] {
      static char page[8192];
      Graph graph;
      const uint64_t address = reinterpret_cast<uint64_t>(page);
      const struct {
        uint64_t address, bytes;
        unsigned flags;
      } arguments = {address, sizeof(page), 0};
      fake.call(379, "cuMemHostRegister_v2", &arguments, 0);
      Alloc(kMemory, 4096);
      if (is_kernel) {
        graph.Kernel({address + 64});
      } else {
        graph.Copy(1, address + 64, 2, kMemory);
      }
      Instantiate(kExec, graph.handle(), {});
      fake.call(302, "cuMemHostUnregister", &address, 0);
      Replay(kExec, kStream);
    });
    EXPECT_EQ(recorded.events->num_stales, is_kernel ? 1u : 0u) << recorded.text;
  }
}

// --- Threads, and executables that stay ------------------------------------------------------------------------------

TEST(Audit, TwoThreadsInALaunchOfOneExecutableAreTold) {
  Recorded recorded = Audit([] {
    Graph graph;
    graph.Kernel({1});
    Instantiate(kExec, graph.handle(), {});
    const struct { void *exec, *stream; } arguments = {kExec, kStream};
    Within(514, "cuGraphLaunch", &arguments, 0, [] { std::thread([] { Replay(kExec, kStream); }).join(); });
    std::thread([] { Replay(kExec, kStream); }).join();
  });
  ASSERT_EQ(recorded.events->num_shared, 1u) << recorded.text;
  EXPECT_STREQ(FunctionOf(recorded, recorded.events->shared[0].call), "cuGraphLaunch");
  EXPECT_NE(recorded.events->shared[0].thread, GCAP_DOCTOR_NONE);
  EXPECT_NE(recorded.events->calls[recorded.events->shared[0].call].thread, recorded.events->shared[0].thread);
  EXPECT_NE(recorded.said.find("at the same time"), std::string::npos);
}

TEST(Audit, ThreadsThatLaunchOneAfterTheOtherHearNothing) {
  ExpectSilent(Audit([] {
    Graph graph;
    graph.Kernel({1});
    Instantiate(kExec, graph.handle(), {});
    for (int i = 0; i < 4; ++i) std::thread([i] { Replay(kExec, kStream, i % 2); }).join();
  }));
}

TEST(Audit, ExecutablesOfOnePlaceAreCountedAtTheEnd) {
  Recorded recorded = Audit([] {
    Graph graph;
    graph.Allocation(4096);
    for (uintptr_t i = 0; i < 20; ++i) {
      Instantiate(Handle(0x4000 + i), graph.handle(), {});
      if (i < 5) Destroy(Handle(0x4000 + i));
      for (int k = 0; i >= 17 && k < 2; ++k) Replay(Handle(0x4000 + i), kStream);
    }
    Instantiate(Handle(0x9000), graph.handle(), {});  // of another place
  });
  ASSERT_EQ(recorded.events->num_groups, 1u) << recorded.text;
  const gcap_doctor_event_group_t& group = recorded.events->groups[0];
  EXPECT_EQ(group.made, 20u);
  EXPECT_EQ(group.live, 15u);
  EXPECT_EQ(group.idle, 12u);
  EXPECT_EQ(group.bytes, 15u * 4096);
  EXPECT_STREQ(FunctionOf(recorded, group.call), "cuGraphInstantiateWithFlags");
}

// Each piece of memory once, whichever executables point into it; neither what is freed nor what was replaced.
TEST(Audit, NodesAndMemoryOfOnePlaceAreCountedAtTheEnd) {
  Recorded recorded = Audit([] {
    std::deque<Graph> graphs(10);
    Alloc(kMemory, 0x1000);
    Alloc(kMemory + 0x1000, 0x200);
    Alloc(kMemory + 0x2000, 0x30);
    for (uint64_t i = 0; i < graphs.size(); ++i) {
      graphs[i].Kernel({kMemory + 8 * i});
      graphs[i].Kernel({kMemory + 0x1000});
      graphs[i].Kernel({i < 9 ? kMemory : kMemory + 0x2000});
      Instantiate(Handle(0x4000 + i), graphs[i].handle(), {});
    }
    Destroy(Handle(0x4000));
    Free(kMemory + 0x1000);
    Alloc(kMemory + 0x1000, 0x200);
  });
  ASSERT_EQ(recorded.events->num_groups, 1u) << recorded.text;
  EXPECT_EQ(recorded.events->groups[0].live, 9u);
  EXPECT_EQ(recorded.events->groups[0].nodes, 9u * 3);
  EXPECT_EQ(recorded.events->groups[0].memory, 0x1000u + 0x30u);
  EXPECT_EQ(recorded.events->groups[0].bytes, 0u);
}

// Once the file has no room for further stacks, no place is known.
TEST(Audit, ExecutablesOfNoKnownPlaceAreOfNone) {
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit low = {(32 << 10) + (64 << 10), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  Recorded recorded = Audit([] {
    Graph graph;
    graph.Kernel({1});
    Begin(kStream);
    for (int i = 0; i < 200; ++i)
      fake.call(499,
                ("cuStreamIsCapturing" + std::string(100, static_cast<char>('a' + i % 26)) + std::to_string(i)).c_str(),
                nullptr, 1);
    End(kStream, nullptr);
    for (uintptr_t i = 0; i < 40; ++i) Instantiate(Handle(0x4000 + i), graph.handle(), {});
    for (uintptr_t i = 0; i < 40; ++i) Instantiate(Handle(0x5000 + i), graph.handle(), {});
  });
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(recorded.events->num_groups, 0u) << recorded.text;
}

// --- What a read costs -----------------------------------------------------------------------------------------------

// A call of the driver costs more than all that is done with its answer: two a node, which are the node's type and its
// description, and for each function those for its parameters, the end of these and the name.
TEST(Audit, AGraphOfAThousandNodesIsReadWithTwoCallsANode) {
  constexpr size_t kNodes = 1000, kFunctions = 4, kParams = 3;
  Recorded recorded = Audit([] {
    Graph graph;
    Alloc(kMemory, 0x10000);
    std::vector<fake_driver_node_t*> first;
    for (uint64_t i = 0; i < kNodes; ++i) {
      const std::vector<uint64_t> arguments(kParams, kMemory + 8 * i);
      if (i < kFunctions) {
        first.push_back(graph.Kernel(arguments));
      } else {
        graph.KernelLike(first[i % kFunctions], arguments);
      }
    }
    static const auto num_calls = reinterpret_cast<decltype(&fake_driver_num_calls)>(
        dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "fake_driver_num_calls"));
    const size_t before = num_calls();
    Instantiate(kExec, graph.handle(), {});
    IN_PROGRAM(num_calls() - before >= 2 * kNodes);
    IN_PROGRAM(num_calls() - before <= 2 * kNodes + kFunctions * (kParams + 2) + 2);
    Free(kMemory);
    Replay(kExec, kStream);
  });
  EXPECT_EQ(OnlyStale(recorded).pointers, kNodes * kParams);
}

// --- Many, and processes ---------------------------------------------------------------------------------------------

TEST(Audit, AThousandGraphsAndThreadsThatEnd) {
  Recorded recorded = Audit([] {
    std::deque<Graph> graphs(1000);
    std::thread([&graphs] {
      for (uint64_t i = 0; i < graphs.size(); ++i) {
        Alloc(kMemory + i * 0x1000, 0x1000);
        graphs[i].Kernel({kMemory + i * 0x1000});
        Instantiate(Handle(0x100000 + i), graphs[i].handle(), {});
      }
    }).join();
    for (uint64_t i = 0; i < graphs.size(); i += 100) {
      std::thread([i] { Free(kMemory + i * 0x1000); }).join();
    }
    for (uint64_t i = 0; i < graphs.size(); ++i) Replay(Handle(0x100000 + i), kStream);
  });
  EXPECT_EQ(recorded.events->num_stales, 10u) << recorded.said;
  for (size_t i = 0; i < recorded.events->num_stales; ++i)
    EXPECT_TRUE(HasStack(recorded, recorded.events->stales[i].freed));
}

TEST(Audit, AChildOfForkIsNotAudited) {
  Recorded recorded = Audit([] {
    Graph graph;
    graph.Kernel({kMemory});
    Alloc(kMemory, 4096);
    Instantiate(kExec, graph.handle(), {});
    const pid_t child = fork();
    if (child == 0) {
      Free(kMemory);
      Replay(kExec, kStream);
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    IN_PROGRAM(status == 0);
    Replay(kExec, kStream);
  });
  ExpectSilent(recorded);
}

// CUPTI is taken, missing, or too old to tell of graphs.
TEST(Audit, WithoutCuptiTheProgramRunsOn) {
  const struct {
    const char *variable, *value, *says;
  } cases[] = {{"FAKE_CUPTI_SUBSCRIBE", "39", "another tool uses CUPTI"},
               {"GCAP_DOCTOR_CUPTI", "/nowhere/libcupti.so", "/nowhere/libcupti.so"},
               {"GCAP_DOCTOR_CUPTI", "./test/doctor/record/libfake_old_cupti.so", "old_cupti.so"}};
  for (const auto& one : cases) {
    Recorded recorded = Record([] { Alloc(kMemory, 4096); },
                               {{"GCAP_DOCTOR_AUDIT", "1"}, {"FAKE_DRIVER", "1"}, {one.variable, one.value}});
    EXPECT_NE(recorded.said.find(one.says), std::string::npos) << recorded.said;
    EXPECT_TRUE(WIFEXITED(recorded.status) && WEXITSTATUS(recorded.status) == 0) << one.says;
  }
}

TEST(Audit, WithoutItNothingIsFollowed) {
  Recorded recorded = Record(
      [] {
        Graph graph;
        graph.Kernel({kMemory});
        IN_PROGRAM(!fake.is_enabled(243));
        Alloc(kMemory, 4096);
        Instantiate(kExec, graph.handle(), {});
        Free(kMemory);
        Replay(kExec, kStream);
      },
      {{"FAKE_DRIVER", "1"}});
  ExpectSilent(recorded);
}

TEST(Audit, KernelsWhoseArgumentsAreNotToldAreNamedOnce) {
  Recorded recorded = Audit([] {
    Graph told, untold;
    told.Kernel({1});
    void* none = nullptr;
    memcpy(untold.Kernel({1})->about, &none, 8);
    for (Graph* graph : {&told, &untold, &untold}) Instantiate(kExec, graph->handle(), {});
  });
  ASSERT_EQ(recorded.events->num_notes, 1u) << recorded.text;
  EXPECT_NE(std::string(recorded.events->notes[0]).find("arguments of some kernels"), std::string::npos);
}

TEST(Audit, ADriverThatDoesNotTellOfArgumentsIsNamed) {
  Recorded recorded = Record([] { Alloc(kMemory, 4096); }, {{"GCAP_DOCTOR_AUDIT", "1"}});
  EXPECT_NE(recorded.text.find("graphs are not audited"), std::string::npos) << recorded.text;
}

}  // namespace
