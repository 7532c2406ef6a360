// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What graphs on buffers that move may be made of: nodes of every type, in forks and in child graphs, and arguments in
// which pointers are hard to tell from numbers.

#include <algorithm>
#include <cstring>

#include "gcap/graph_buffers.h"
#include "test/graph/moving_test.h"
#include "test/support/kernels/device_kernels.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

float* At(void* address, ptrdiff_t floats = 0) { return static_cast<float*>(address) + floats; }

gcap_status_t Copy(cudaStream_t stream, const void* from, void* to, cudaMemcpyKind kind = cudaMemcpyDeviceToDevice) {
  return GCAP_CUDA(cudaMemcpyAsync(to, from, kFloatsBytes, kind, stream));
}

// --- Copies and fills -----------------------------------------------------------------------------------------------

TEST_F(GraphMoving, CopiesMoveAfterARehearsalWithMemory) {
  ExpectMoves([](cudaStream_t stream, void* const* at) { return Copy(stream, at[0], at[1]); }, 0);
}

// Says what a rehearsal costs: a copy refuses addresses without memory, unless the option gives it memory at once.
TEST_F(GraphMoving, ACopyIsRehearsedTwiceUnlessMemoryIsAskedFor) {
  const Floats input(3), output(50);
  const WorkOn copy = [](cudaStream_t stream, void* const* at) { return Copy(stream, at[0], at[1]); };
  ASSERT_TRUE(RunOn(input, output, copy).ok());
  EXPECT_EQ(calls_, 4) << "three rehearsals and the capture";
  EXPECT_EQ(Info(kId).failures, 0u);
  calls_ = 0;
  const std::vector<gcap_graph_buffer_t> items = Items(input, output);
  gcap_graph_buffers_t buffers = BuffersOf(items);
  buffers.stand_ins = GCAP_GRAPH_STAND_INS_MEMORY;
  ASSERT_TRUE(RunOn(buffers, copy, kId + 1).ok());
  EXPECT_EQ(calls_, 3);
  EXPECT_TRUE(WhyNotMovable(kId + 1).ok());
}

TEST_F(GraphMoving, CopiesFromAndToTheHostMove) {
  float* host = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&host), kFloatsBytes), cudaSuccess);
  ExpectMoves(
      [&](cudaStream_t stream, void* const* at) {
        GCAP_RETURN_IF_ERROR(Copy(stream, at[0], host, cudaMemcpyDeviceToHost));
        GCAP_RETURN_IF_ERROR(Copy(stream, host, at[1], cudaMemcpyHostToDevice));
        return AddTo(stream, at[1], at[1], 2);
      },
      2);
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
  GCAP_EXPECT_CUDA(cudaFreeHost(host));
}

TEST_F(GraphMoving, FillsMove) {
  ExpectMoves(
      [](cudaStream_t stream, void* const* at) {
        GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(at[1], 0xff, kFloatsBytes, stream)));
        GCAP_RETURN_IF_ERROR(AddTo(stream, at[0], at[1], 4, kFloats / 2));
        GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemset2DAsync(At(at[1], kFloats / 2), 64, 0, 64, 2, stream)));
        return AddTo(stream, At(at[0], kFloats / 2), At(at[1], kFloats / 2), 4, kFloats / 2);
      },
      4);
}

// A buffer of pinned memory: its stand-in is no pinned memory, and a kernel does not mind.
TEST_F(GraphMoving, PinnedBuffersMoveToPinnedMemoryAlone) {
  const Floats output(50);
  float *first = nullptr, *second = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&first), kFloatsBytes), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&second), kFloatsBytes), cudaSuccess);
  std::fill_n(first, kFloats, 1.0f);
  std::fill_n(second, kFloats, 5.0f);
  const std::vector<gcap_graph_buffer_t> items = {{"pinned", first, kFloatsBytes, 0},
                                                  {"output", output.get(), kFloatsBytes, 0}};
  ASSERT_TRUE(RunOn(items, AddOne).ok());
  EXPECT_EQ(output.value(), 2);
  GCAP_EXPECT_OK(Bind(0, second));
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(output.value(), 6);
  GCAP_EXPECT_FAILS(Bind(0, output.get()), GCAP_INVALID_ARGUMENT,
                    "is device memory, and was captured in pinned host memory");
  GCAP_EXPECT_FAILS(Bind(1, first), GCAP_INVALID_ARGUMENT, "is pinned host memory, and was captured in device memory");
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
  GCAP_EXPECT_CUDA(cudaFreeHost(first));
  GCAP_EXPECT_CUDA(cudaFreeHost(second));
}

// Whether or not the driver gives both captures the same address, the output is right everywhere.
TEST_F(GraphMoving, MemoryOfTheGraphItselfIsRightEverywhere) {
  const WorkOn work = [](cudaStream_t stream, void* const* at) {
    void* memory = nullptr;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMallocAsync(&memory, kFloatsBytes, stream)));
    GCAP_RETURN_IF_ERROR(AddTo(stream, at[0], memory, 1));
    GCAP_RETURN_IF_ERROR(AddTo(stream, memory, at[1], 1));
    return GCAP_CUDA(cudaFreeAsync(memory, stream));
  };
  for (int i = 0; i < 4; ++i) {
    const Floats input(static_cast<float>(i)), output(50);
    const Outcome outcome = RunOn(input, output, work);
    ASSERT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(output.value(), i + 2);
  }
}

// New arguments leave a launch its attributes.
TEST_F(GraphMoving, ClustersStay) {
  int has_clusters = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, 0), cudaSuccess);
  if (!has_clusters) GTEST_SKIP() << "the device has no clusters";
  const WorkOn work = [](cudaStream_t stream, void* const* at) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {4, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(8);
    config.blockDim = dim3(1);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    void *out = at[1], *args[] = {&out};
    return GCAP_CUDA(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(gcap_kernel_cluster_size), args));
  };
  const Floats input(1), first(50), second(60);
  for (const Floats* output : {&first, &second}) {
    const std::vector<gcap_graph_buffer_t> items = Items(input, *output);
    ASSERT_TRUE(RunOn(UnusedBuffersOf(items), work).ok());
  }
  EXPECT_EQ(calls_, 3) << "two rehearsals, the capture, a replay";
  for (const Floats* output : {&first, &second}) {
    unsigned size = 0;
    std::memcpy(&size, output->Read().data(), sizeof(size));
    EXPECT_EQ(size, 4u);
  }
}

// --- Forks and child graphs -----------------------------------------------------------------------------------------

TEST_F(GraphMoving, ForksMove) {
  const RawStream side;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  ExpectMoves(
      [&](cudaStream_t stream, void* const* at) {
        GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(event, stream)));
        GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamWaitEvent(side.get(), event, 0)));
        GCAP_RETURN_IF_ERROR(AddTo(side.get(), at[0], at[1], 1, kFloats / 2));
        GCAP_RETURN_IF_ERROR(AddTo(stream, At(at[0], kFloats / 2), At(at[1], kFloats / 2), 1, kFloats / 2));
        GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(event, side.get())));
        GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamWaitEvent(stream, event, 0)));
        return AddTo(stream, at[1], at[1], 2);
      },
      3);
  GCAP_EXPECT_CUDA(cudaEventDestroy(event));
}

// Adds to the capture of `stream` a child graph of what the work issues. Outside of a capture the work is issued.
gcap_status_t IssueAsChild(cudaStream_t stream, const WorkOn& work, void* const* at) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamIsCapturing(stream, &status)));
  if (status == cudaStreamCaptureStatusNone) return work(stream, at);
  const RawStream side;
  cudaGraph_t child = nullptr, graph = nullptr;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamBeginCapture(side.get(), cudaStreamCaptureModeRelaxed)));
  gcap_status_t issued = work(side.get(), at);
  GCAP_RETURN_IF_ERROR(gcap_status_join(issued, GCAP_CUDA(cudaStreamEndCapture(side.get(), &child))));
  const cudaGraphNode_t* before = nullptr;
  size_t count = 0;
  cudaGraphNode_t node = nullptr;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &before, nullptr, &count)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphAddChildGraphNode(&node, graph, before, count, child)));
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies)));
  return GCAP_CUDA(cudaGraphDestroy(child));
}

gcap_status_t AddTwice(cudaStream_t stream, void* const* at) {
  GCAP_RETURN_IF_ERROR(AddTo(stream, at[0], at[1], 1));
  return AddTo(stream, at[1], at[1], 1);
}

TEST_F(GraphMoving, ChildGraphsMove) {
  ExpectMoves(
      [](cudaStream_t stream, void* const* at) {
        GCAP_RETURN_IF_ERROR(IssueAsChild(stream, AddTwice, at));
        return AddTo(stream, at[1], at[1], 3);
      },
      5);
  EXPECT_EQ(Info(kId).nodes, 2u);
}

TEST_F(GraphMoving, NestedChildGraphsMove) {
  ExpectMoves(
      [](cudaStream_t stream, void* const* at) {
        const WorkOn inner = [](cudaStream_t side, void* const* places) {
          GCAP_RETURN_IF_ERROR(IssueAsChild(side, AddTwice, places));
          return AddTo(side, places[1], places[1], 1);
        };
        return IssueAsChild(stream, inner, at);
      },
      3);
  EXPECT_EQ(Info(kId).nodes, 1u);
}

// --- Pointers and numbers -------------------------------------------------------------------------------------------

TEST_F(GraphMoving, PointersInAPackedStructMove) {
  ExpectMoves(
      [](cudaStream_t stream, void* const* at) {
        const gcap_test_packed_t args = {5, At(at[0]), At(at[1]), kFloats};
        return LaunchKernel(stream, reinterpret_cast<const void*>(gcap_kernel_add_packed), args);
      },
      5);
}

TEST_F(GraphMoving, PointersIntoTheMiddleMove) {
  ExpectMoves(
      [](cudaStream_t stream, void* const* at) {
        for (int i = kFloats - 1; i >= 0; --i) {
          GCAP_RETURN_IF_ERROR(AddTo(stream, At(at[0], i), At(at[1], i), 2, 1));
        }
        return static_cast<gcap_status_t>(nullptr);
      },
      2);
}

// A number is not moved for looking like a pointer: what it adds is its low byte, which a move would change.
TEST_F(GraphMoving, NumbersThatEqualPointersStay) {
  alignas(256) static char here[512];
  const uint64_t number = reinterpret_cast<uint64_t>(here) + 9;
  const Floats input(3), output(50);
  const uint64_t pointer = reinterpret_cast<uint64_t>(input.get());
  ASSERT_EQ(pointer % 256, 0u);
  for (const uint64_t scalar : {number, pointer + 9, reinterpret_cast<uint64_t>(output.get()) + 9, UINT64_MAX - 246}) {
    ExpectMoves([&](cudaStream_t stream, void* const* at) { return AddTo(stream, at[0], at[1], scalar); }, 9);
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
}

// Nobody can tell such a number from a pointer that the work has from elsewhere.
TEST_F(GraphMoving, ANumberThatIsAnAddressInABufferFixesTheGraph) {
  const Floats input(3), output(50), other(7);
  const uint64_t number = reinterpret_cast<uint64_t>(input.get()) + 1;
  const WorkOn work = [&](cudaStream_t stream, void* const* at) { return AddTo(stream, at[0], at[1], number); };
  ASSERT_TRUE(RunOn(input, output, work).ok());
  EXPECT_TRUE(WhyNotMovable().Names("argument 2 is an address in buffer 0 'input', at 0x")) << WhyNotMovable().message;
  GCAP_EXPECT_FAILS(Bind(0, other.get()), GCAP_FAILED_PRECONDITION, "that does not move with the buffer");
  ASSERT_TRUE(RunOn(other, output, work).ok());
  EXPECT_EQ(calls_, 4) << "an eager run";
  EXPECT_EQ(output.value(), 8);
}

TEST_F(GraphMoving, APointerInTwoHalvesStaysAndIsNamed) {
  ExpectFixed(
      [](cudaStream_t stream, void* const* at) {
        const uint64_t x = reinterpret_cast<uint64_t>(at[0]);
        return LaunchKernel(stream, reinterpret_cast<const void*>(gcap_kernel_add_split), static_cast<uint32_t>(x),
                            at[1], static_cast<uint32_t>(x >> 32), kFloats);
      },
      1, {"node 0 of 1, kernel", "gcap_kernel_add_split", "argument 0 is 0x", "no address in a buffer both times"});
}

TEST_F(GraphMoving, ANumberThatDiffersIsNamedWithBothValues) {
  uint64_t run = 0x1100;
  ExpectFixed(
      [&](cudaStream_t stream, void* const* at) {
        GCAP_RETURN_IF_ERROR(AddTo(stream, at[0], at[1], 1));
        run += 0x100;
        return AddTo(stream, at[1], at[1], run);
      },
      1, {"node 1 of 2, kernel", "argument 2 is 0x1400, and 0x1200 with the buffers elsewhere"});
}

TEST_F(GraphMoving, OtherKernelsAreNamed) {
  int run = 0;
  ExpectFixed(
      [&](cudaStream_t stream, void* const* at) {
        const gcap_test_packed_t args = {1, At(at[0]), At(at[1]), kFloats};
        if (++run == 1) return AddOne(stream, at);
        return LaunchKernel(stream, reinterpret_cast<const void*>(gcap_kernel_add_packed), args);
      },
      1, {"node 0 of 1, kernel gcap_kernel_add_packed", "function is", "with the buffers elsewhere"});
}

TEST_F(GraphMoving, OtherNumbersOfNodesAreNamed) {
  int run = 0;
  ExpectFixed(
      [&](cudaStream_t stream, void* const* at) {
        if (++run == 1) GCAP_RETURN_IF_ERROR(AddTo(stream, at[0], at[1], 0));
        return AddOne(stream, at);
      },
      1, {"the graph has 1 nodes, and 2 with the buffers elsewhere"});
}

TEST_F(GraphMoving, OtherGridsAreNamed) {
  unsigned run = 0;
  ExpectFixed(
      [&](cudaStream_t stream, void* const* at) {
        uint32_t count = kFloats;
        uint64_t addend = 1;
        void *x = at[0], *y = at[1], *args[] = {&x, &y, &addend, &count};
        return GCAP_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(gcap_kernel_add_scalar), dim3(1),
                                          dim3(32 * ++run), args, 0, stream));
      },
      1, {"node 0 of 1, kernel", "block is 96x1x1, and 32x1x1 with the buffers elsewhere"});
}

// What a kernel chosen for the better alignment of the address does: the stand-in has no better one than was promised.
TEST_F(GraphMoving, AKernelForABetterAlignmentThanPromisedStays) {
  const Floats input(3), output(50);
  const WorkOn work = [](cudaStream_t stream, void* const* at) {
    const bool is_wide = reinterpret_cast<uintptr_t>(at[0]) % 256 == 0;
    const gcap_test_packed_t args = {1, At(at[0]), At(at[1]), kFloats};
    return is_wide ? LaunchKernel(stream, reinterpret_cast<const void*>(gcap_kernel_add_packed), args)
                   : AddOne(stream, at);
  };
  std::vector<gcap_graph_buffer_t> items = Items(input, output);
  ASSERT_TRUE(RunOn(items, work).ok());
  EXPECT_TRUE(WhyNotMovable().ok()) << "every address is as well aligned";
  items[0].alignment = 64;
  ASSERT_TRUE(RunOn(items, work, kId + 1).ok());
  EXPECT_TRUE(WhyNotMovable(kId + 1).Names("function")) << WhyNotMovable(kId + 1).message;
}

// A pointer that the work has from elsewhere is the same in all captures, and is the buffer's at the capture alone.
TEST_F(GraphMoving, AnAddressThatIsNotOfTheRunFixesTheGraph) {
  const Floats input(3), output(50), other_input(7), other_output(60);
  const WorkOn work = [&](cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(AddOne(stream, at));
    return AddTo(stream, at[0], output.get(), 1);
  };
  ASSERT_TRUE(RunOn(input, output, work).ok());
  EXPECT_TRUE(WhyNotMovable().Names("node 1 of 2, kernel gcap_kernel_add_scalar: argument 1 is an address in buffer 1"))
      << WhyNotMovable().message;
  ASSERT_TRUE(RunOn(other_input, other_output, work).ok());
  EXPECT_EQ(calls_, 4) << "an eager run";
  EXPECT_EQ(other_output.value(), 8);
}

// A kernel that finds its buffers in a table in device memory.
class PointersInMemory : public GraphMoving {
 protected:
  void SetUp() override {
    GraphMoving::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&table_), 2 * sizeof(float*)), cudaSuccess);
  }
  void TearDown() override {
    GraphMoving::TearDown();
    GCAP_EXPECT_CUDA(cudaFree(table_));
  }
  void Write(const Floats& input, const Floats& output) {
    float* const pointers[] = {input.get(), output.get()};
    ASSERT_EQ(cudaMemcpy(table_, pointers, sizeof(pointers), cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // a capture reads the table for the twin's accesses
  }
  // Output = input + 1, through the table; and a kernel that has both pointers.
  WorkOn Work(bool has_pointers) const {
    return [=](cudaStream_t stream, void* const* at) {
      if (has_pointers) GCAP_RETURN_IF_ERROR(AddTo(stream, at[0], at[1], 0));
      return LaunchKernel(stream, reinterpret_cast<const void*>(gcap_kernel_add_table), table_, kFloats);
    };
  }

  float** table_ = nullptr;
};

TEST_F(PointersInMemory, ABufferThatNoArgumentPointsIntoFixesTheGraph) {
  const Floats input(3), output(50), other_input(7), other_output(60);
  Write(input, output);
  ASSERT_TRUE(RunOn(input, output, Work(false)).ok());
  EXPECT_TRUE(WhyNotMovable().Names("no argument points into buffer 0 'input'")) << WhyNotMovable().message;
  Write(other_input, other_output);
  ASSERT_TRUE(RunOn(other_input, other_output, Work(false)).ok());
  EXPECT_EQ(calls_, 4) << "an eager run";
  EXPECT_EQ(other_output.value(), 8);
}

// Documented: such a pointer is not seen if the buffer has another one, or need not have any. The graph works on the
// first buffers after a bind, and a check of moves tells, whenever it is asked.
TEST_F(PointersInMemory, AreFoundByACheckOfMovesWhereverTheGraphIs) {
  for (const bool has_pointers : {false, true}) {
    SCOPED_TRACE(has_pointers);
    const Floats input(3), output(50), other_input(7), other_output(60), third_input(9), third_output(70);
    Write(input, output);
    const auto run = [&](const Floats& from, const Floats& to) {
      const std::vector<gcap_graph_buffer_t> items = Items(from, to);
      ASSERT_TRUE(RunOn(UnusedBuffersOf(items), Work(has_pointers)).ok());
    };
    const auto expect_found = [&](const char* culprit) {
      GCAP_EXPECT_FAILS(gcap_graph_manager_check_moves(manager_, kId), GCAP_FAILED_PRECONDITION, culprit);
      EXPECT_EQ(input.value(), 3) << "as before";
    };
    run(input, output);
    EXPECT_TRUE(WhyNotMovable().ok()) << WhyNotMovable().message;
    expect_found("moved from its buffers, still writes to buffer 1 'output'");
    run(other_input, other_output);
    EXPECT_EQ(other_output.value(), has_pointers ? 7 : 60) << "the table has the first buffers";
    expect_found("moved from its buffers, still writes to memory where buffer 1 'output' has been");
    run(third_input, third_output);
    expect_found("still writes to memory where buffer 1 'output' has been");
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
}

// The table has the buffers of a run between the capture and the present one.
TEST_F(PointersInMemory, AreFoundWhereABindWas) {
  const Floats input(3), output(50), other_input(7), other_output(60), third_input(9), third_output(70);
  Write(other_input, other_output);
  ASSERT_TRUE(RunOn(input, output, Work(true)).ok());
  GCAP_EXPECT_OK(gcap_graph_manager_check_moves(manager_, kId));
  ASSERT_TRUE(RunOn(other_input, other_output, Work(true)).ok());
  GCAP_EXPECT_OK(Bind(1, third_output.get()));
  GCAP_EXPECT_OK(Bind(0, third_input.get()));
  GCAP_EXPECT_FAILS(gcap_graph_manager_check_moves(manager_, kId), GCAP_FAILED_PRECONDITION,
                    "still writes to memory where buffer 1 'output' has been");
  EXPECT_EQ(other_input.value(), 7) << "as before";
  EXPECT_EQ(other_output.value(), 8) << "as before";
}

// The bytes of memory that was freed are nobody's.
TEST_F(PointersInMemory, ACheckOfMovesLeavesFreedMemoryAlone) {
  const Floats input(3), output(50);
  auto first_input = std::make_unique<Floats>(1.0f), first_output = std::make_unique<Floats>(2.0f);
  ASSERT_TRUE(RunOn(*first_input, *first_output).ok());
  ASSERT_TRUE(RunOn(input, output).ok());
  first_input.reset();
  first_output.reset();
  GCAP_EXPECT_OK(gcap_graph_manager_check_moves(manager_, kId));
  EXPECT_EQ(output.value(), 4);
}

// Both an address that moves with the buffer and one that does not are the buffer's.
TEST_F(GraphMoving, AnAuditNamesTheBufferOfEachAddress) {
  CreateWith([](auto* options) { options->audit = GCAP_GRAPH_AUDIT_ON_DEMAND; });
  const Floats input(3), output(50);
  const WorkOn work = [&](cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(AddOne(stream, at));
    return AddTo(stream, input.get(), output.get(), 1);
  };
  ASSERT_TRUE(RunOn(input, output, work).ok());
  std::vector<std::string> names;
  const auto note_buffer = [](void* user, const gcap_graph_pointer_t* pointer) {
    const std::string memory = pointer->memory;
    if (pointer->owner != GCAP_GRAPH_OWNER_BUFFER) return;
    static_cast<std::vector<std::string>*>(user)->push_back(memory.substr(0, memory.find(':')));
  };
  GCAP_EXPECT_OK(gcap_graph_manager_audit(manager_, kId, note_buffer, &names, nullptr));
  EXPECT_EQ(names, (std::vector<std::string>{"input", "output", "input", "output"}));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
