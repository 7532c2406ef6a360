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
  EXPECT_EQ(calls_, 3) << "two rehearsals and the capture";
  EXPECT_EQ(Info(kId).failures, 0u);
  calls_ = 0;
  const std::vector<gcap_graph_buffer_t> items = Items(input, output);
  gcap_graph_buffers_t buffers = BuffersOf(items);
  buffers.stand_ins = GCAP_GRAPH_STAND_INS_MEMORY;
  ASSERT_TRUE(RunOn(buffers, copy, kId + 1).ok());
  EXPECT_EQ(calls_, 2);
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
  ASSERT_TRUE(RunOn(input, first, work).ok());
  ASSERT_TRUE(RunOn(input, second, work).ok());
  EXPECT_EQ(calls_, 2) << "a rehearsal, the capture, a replay";
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

// The number is the address of the buffer at its capture, and the buffer moves away from under it.
TEST_F(GraphMoving, ANumberThatIsTheFirstAddressStays) {
  const Floats input(3), output(50), other(7);
  const uint64_t number = reinterpret_cast<uint64_t>(input.get()) + 1;
  const WorkOn work = [&](cudaStream_t stream, void* const* at) { return AddTo(stream, at[0], at[1], number); };
  ASSERT_TRUE(RunOn(input, output, work).ok());
  EXPECT_TRUE(WhyNotMovable().ok());
  GCAP_EXPECT_OK(Bind(0, other.get()));
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(output.value(), 8);
}

TEST_F(GraphMoving, APointerInTwoHalvesStaysAndIsNamed) {
  ExpectFixed(
      [](cudaStream_t stream, void* const* at) {
        const uint64_t x = reinterpret_cast<uint64_t>(at[0]);
        return LaunchKernel(stream, reinterpret_cast<const void*>(gcap_kernel_add_split), static_cast<uint32_t>(x),
                            at[1], static_cast<uint32_t>(x >> 32), kFloats);
      },
      1, {"node 0 of 1, kernel", "gcap_kernel_add_split", "argument 0 is 0x", "the distance of no buffer"});
}

TEST_F(GraphMoving, ANumberThatDiffersIsNamedWithBothValues) {
  uint64_t run = 0x1100;
  ExpectFixed(
      [&](cudaStream_t stream, void* const* at) {
        GCAP_RETURN_IF_ERROR(AddTo(stream, at[0], at[1], 1));
        run += 0x100;
        return AddTo(stream, at[1], at[1], run);
      },
      1, {"node 1 of 2, kernel", "argument 2 is 0x1300, and 0x1200 with the buffers elsewhere"});
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
      1, {"node 0 of 1, kernel", "block is 64x1x1, and 32x1x1 with the buffers elsewhere"});
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

// A pointer that the work has from elsewhere is the same in both captures.
TEST_F(GraphMoving, AddressesThatAreNotOfTheRunAreWarnedOf) {
  const Floats input(3), output(50);
  const WorkOn work = [&](cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(AddOne(stream, at));
    return AddTo(stream, at[0], output.get(), 1);
  };
  const LogCatcher log;
  ASSERT_TRUE(RunOn(input, output, work).ok());
  EXPECT_NE(log.text().find("node 1 of 2, kernel gcap_kernel_add_scalar has an address in buffer 1 'output'"),
            std::string::npos)
      << log.text();
  EXPECT_EQ(log.text().find("in buffer 0"), std::string::npos) << log.text();
}

// Documented: a pointer in device memory cannot be seen, so the graph works on the first buffers after a bind.
TEST_F(GraphMoving, PointersInDeviceMemoryAreNotSeen) {
  const Floats input(3), output(50), other_input(7), other_output(60);
  float* const pointers[] = {input.get(), output.get()};
  void* table = nullptr;
  ASSERT_EQ(cudaMalloc(&table, sizeof(pointers)), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(table, pointers, sizeof(pointers), cudaMemcpyHostToDevice), cudaSuccess);
  const WorkOn work = [&](cudaStream_t stream, void* const*) {
    return LaunchKernel(stream, reinterpret_cast<const void*>(gcap_kernel_add_table), table, kFloats);
  };
  const LogCatcher log;
  ASSERT_TRUE(RunOn(input, output, work).ok());
  EXPECT_NE(log.text().find("has no pointer into its buffer 0"), std::string::npos) << log.text();
  EXPECT_NE(log.text().find("has no pointer into its buffer 1"), std::string::npos) << log.text();
  EXPECT_TRUE(WhyNotMovable().ok());
  GCAP_EXPECT_FAILS(gcap_graph_manager_check_moves(manager_, kId), GCAP_FAILED_PRECONDITION,
                    "moved from its buffers, still writes to buffer 1 'output'");
  EXPECT_EQ(input.value(), 3) << "as before";
  output.Fill(50);
  ASSERT_TRUE(RunOn(other_input, other_output, work).ok());
  EXPECT_EQ(output.value(), 4) << "the first buffers";
  EXPECT_EQ(other_output.value(), 60);
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
  GCAP_EXPECT_CUDA(cudaFree(table));
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

// The bytes that stand in each buffer meanwhile are others than those in any other, so a copy between two is seen as a
// write, whatever their number.
TEST_F(GraphMoving, ACopyBetweenTheFirstBuffersIsSeenInACheckOfMoves) {
  const std::vector<Floats> buffers(40);
  std::vector<gcap_graph_buffer_t> items;
  for (const Floats& buffer : buffers) items.push_back({nullptr, buffer.get(), kFloatsBytes, 0});
  for (const size_t to : {13, 39}) {
    const WorkOn work = [&](cudaStream_t stream, void* const* at) {
      GCAP_RETURN_IF_ERROR(AddTo(stream, at[0], at[1], 1));
      return GCAP_CUDA(cudaMemcpyAsync(buffers[to].get(), buffers[0].get(), kFloatsBytes, cudaMemcpyDefault, stream));
    };
    ASSERT_TRUE(RunOn(items, work, static_cast<int>(to)).ok());
    GCAP_EXPECT_FAILS(gcap_graph_manager_check_moves(manager_, static_cast<int>(to)), GCAP_FAILED_PRECONDITION,
                      "still writes to buffer " + std::to_string(to));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
