// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lifetimes under the checks: stream-ordered memory, frees, bytes that nobody wrote, bounds, sub-allocations.
#include "test/sim/check_test.h"

namespace {

using gcap_test::Check;
using gcap_test::Reports;
using gcap_test::Step;

using CheckMemory = Check;

#define OK(call) EXPECT_EQ(cudaSuccess, call)

unsigned char* Bytes(void* memory) { return static_cast<unsigned char*>(memory); }

TEST_F(CheckMemory, StreamOrderedMemoryIsThereInItsStreamsOrder) {
  ExpectNone([&] {
    void* memory;
    OK(cudaMallocAsync(&memory, kBytes, a_));
    OK(Order(a_, b_, e1_));
    OK(Fill(memory, b_));
    OK(Order(b_, a_, e2_));
    OK(cudaFreeAsync(memory, a_));
  });
  ExpectOne({"race on", "cudaMallocAsync", "cudaMemsetAsync"}, [&] {
    void* memory;
    OK(Fill(x_, a_));
    OK(cudaMallocAsync(&memory, kBytes, a_));
    OK(Fill(memory, b_));
    OK(cudaDeviceSynchronize());
    OK(cudaFreeAsync(memory, a_));
  });
}

TEST_F(CheckMemory, ReuseInTheSameStreamIsOrdered) {
  ExpectNone([&] {
    for (int i = 0; i < 8; ++i) {
      void* memory;
      OK(cudaMallocAsync(&memory, kBytes, a_));
      OK(Fill(memory, a_));
      OK(Copy(x_, memory, a_));
      OK(cudaFreeAsync(memory, a_));
    }
  });
}

// The pool may give a block to another stream only behind its free; then nothing of the old contents is held against
// the new ones.
TEST_F(CheckMemory, ReuseInAnotherStreamIsOrderedByThePool) {
  ExpectNone([&] {
    for (cudaStream_t stream : {a_, b_, c_, a_}) {
      void* memory;
      OK(cudaMallocAsync(&memory, kBytes, stream));
      OK(Fill(memory, stream));
      OK(cudaFreeAsync(memory, stream));
    }
  });
}

TEST_F(CheckMemory, FreeMustComeAfterEveryUse) {
  auto one_of = [&](const char* first, const char* second) {
    for (uint64_t seed = 0; seed < gcap_test::kSeeds; ++seed) {
      gcap_sim_set_seed(seed);
      testing::internal::CaptureStderr();
      void* memory;
      OK(cudaMallocAsync(&memory, kBytes, a_));
      OK(Order(a_, b_, e1_));
      OK(Fill(memory, b_));
      OK(cudaFreeAsync(memory, a_));
      OK(cudaDeviceSynchronize());
      const std::vector<std::string> reports = Reports();
      testing::internal::GetCapturedStderr();
      ASSERT_EQ(1u, reports.size()) << seed;
      EXPECT_TRUE(reports[0].find(first) != std::string::npos || reports[0].find(second) != std::string::npos);
      EXPECT_NE(std::string::npos, reports[0].find("cudaFreeAsync")) << reports[0];
      EXPECT_NE(std::string::npos, reports[0].find("cudaMemsetAsync")) << reports[0];
      EXPECT_NE(std::string::npos, reports[0].find("FreeMustComeAfterEveryUse")) << reports[0];
    }
  };
  // The use runs first, or the free.
  one_of("free of memory that may still be in use", "use after free of 256 bytes");
}

TEST_F(CheckMemory, UseAfterFreeNamesTheFree) {
  ExpectOne({"use after free of 256 bytes of device memory", "allocated by cudaMalloc", "freed by cudaFree",
             "write by kernel `step`", "cudaLaunchKernel", "UseAfterFreeNamesTheFree"},
            [&] {
              void* memory;
              OK(cudaMalloc(&memory, kBytes));
              OK(cudaFree(memory));
              OK(Step(Bytes(memory), x_, kBytes, a_));
            });
  ExpectOne({"use after free", "freed by cudaFreeAsync"}, [&] {
    void* memory;
    OK(cudaMallocAsync(&memory, kBytes, a_));
    OK(cudaFreeAsync(memory, a_));
    OK(Step(Bytes(memory), x_, kBytes, a_));
  });
}

// Memory of a pool is freed without a wait, and another device's work is not waited for.
TEST_F(CheckMemory, FreeByTheHostMustComeAfterEveryUse) {
  for (bool wait : {false, true}) {
    auto body = [&] {
      void* memory;
      OK(cudaMallocAsync(&memory, kBytes, a_));
      OK(Fill(memory, a_));
      for (int i = 0; i < 40; ++i) cudaEventQuery(e1_);  // the fill is done, but nobody has looked
      if (wait) {
        OK(cudaStreamSynchronize(a_));
      }
      OK(cudaFree(memory));
    };
    if (wait) {
      ExpectNone(body);
    } else {
      ExpectOne({"in use", "cudaMemsetAsync", "cudaFree"}, body);
    }
  }
}

// --- Bytes that nobody wrote ----------------------------------------------------------------------------------------

TEST_F(CheckMemory, UninitializedBytesAreFoundWhereTheyAreUsed) {
  auto allocate = [&](size_t written) {
    void* memory;
    OK(cudaMalloc(&memory, kBytes));
    OK(cudaMemsetAsync(memory, 0, written, a_));
    return Bytes(memory);
  };
  ExpectOne({"read of uninitialized memory, 56 bytes of device memory", "+ 200 of 256", "allocated by cudaMalloc",
             "read by kernel `step`", "cudaLaunchKernel"},
            [&] {
              unsigned char* memory = allocate(200);
              OK(Step(x_, memory, kBytes, a_));
              OK(cudaFree(memory));
            });
  ExpectOne({"read of uninitialized memory", "cudaMemcpyAsync"}, [&] {
    unsigned char* memory = allocate(200);
    OK(Copy(pinned_, memory, a_));
    OK(cudaStreamSynchronize(a_));
    OK(cudaFree(memory));
  });
  ExpectNone([&] {
    unsigned char* memory = allocate(200);
    OK(Step(x_, memory, 200, a_));
    OK(Step(memory, x_, kBytes, a_));
    OK(Step(x_, memory, kBytes, a_));
    OK(cudaFree(memory));
  });
}

// A copy within the device carries them on, and only what uses them is at fault.
TEST_F(CheckMemory, CopiesCarryUninitializedBytesOn) {
  for (bool use : {false, true}) {
    auto body = [&] {
      void* memory;
      OK(cudaMalloc(&memory, kBytes));
      OK(cudaMemsetAsync(memory, 0, 16, a_));
      OK(Copy(x_, memory, a_));
      OK(cudaMemcpy2DAsync(y_, 64, x_, 64, 32, 4, cudaMemcpyDeviceToDevice, a_));  // bytes 16 to 31 of a row
      OK(Step(z_, y_, 16, a_));
      if (use) {
        OK(Step(z_, y_, 17, a_));
      }
      OK(cudaMemsetAsync(x_, 0, kBytes, a_));
      OK(cudaMemsetAsync(y_, 0, kBytes, a_));
      OK(Step(z_, y_, kBytes, a_));
      OK(cudaStreamSynchronize(a_));
      OK(cudaFree(memory));
    };
    if (use) {
      ExpectOne({"read of uninitialized memory, 1 bytes", "+ 16 of 256"}, body);
    } else {
      ExpectNone(body);
    }
  }
}

// A rectangle is copied with its padding; but what nobody wrote at all is no rectangle that somebody wrote.
TEST_F(CheckMemory, ARectangleToTheHostIsReportedIfNobodyWroteAnyOfIt) {
  for (size_t written : {size_t{0}, size_t{1}, size_t{4}}) {
    auto body = [&] {
      void* memory;
      size_t pitch;
      OK(cudaMallocPitch(&memory, &pitch, 10, 10));
      if (written != 0) {
        OK(cudaMemset2DAsync(memory, pitch, 1, written, written, a_));
      }
      OK(cudaMemcpy2DAsync(pinned_, 10, memory, pitch, 10, 10, cudaMemcpyDeviceToHost, a_));
      OK(cudaStreamSynchronize(a_));
      OK(cudaFree(memory));
    };
    if (written == 0) {
      ExpectOne({"read of uninitialized memory", "cudaMemcpy2DAsync"}, body);
    } else {
      ExpectNone(body);
    }
  }
}

TEST_F(CheckMemory, MemoryIsUninitializedAgainWhenItLivesAgain) {
  ExpectOne({"read of uninitialized memory", "cudaMallocAsync"}, [&] {
    void *first, *second;
    OK(cudaMallocAsync(&first, kBytes, a_));
    OK(Fill(first, a_));
    OK(cudaFreeAsync(first, a_));
    OK(cudaMallocAsync(&second, kBytes, a_));
    EXPECT_EQ(first, second);
    OK(Step(x_, Bytes(second), kBytes, a_));
    OK(cudaFreeAsync(second, a_));
  });
}

// --- A read of unwritten bytes that races with their writer ---------------------------------------------------------

// Under the seeds in which the reader ran first, the report said that nobody had written the bytes, and stopped there:
// the race was told under other seeds only. Which of the two the program submits first must not matter either.
TEST_F(CheckMemory, ARaceIsToldInPlaceOfTheUnwrittenBytesThatItCauses) {
  for (const bool reader_first : {false, true}) {
    ExpectOne({"race on 256 bytes", "cudaMemsetAsync", "kernel `step`"}, [&] {
      void* memory;
      OK(cudaMalloc(&memory, kBytes));
      if (reader_first) {
        OK(Step(x_, Bytes(memory), kBytes, b_));
      }
      OK(Fill(memory, a_));
      if (!reader_first) {
        OK(Step(x_, Bytes(memory), kBytes, b_));
      }
      OK(cudaFree(memory));
    });
  }
}

TEST_F(CheckMemory, AMissingJoinInsideAGraphIsToldAsARace) {
  ExpectOne({"race on 256 bytes", "cudaMemsetAsync", "kernel `step`", "a dependency between the two nodes"}, [&] {
    void* memory;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaMalloc(&memory, kBytes));
    OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
    OK(Order(a_, b_, e1_));
    OK(Fill(memory, b_));
    OK(Step(x_, Bytes(memory), kBytes, a_));  // before the join
    OK(Order(b_, a_, e2_));
    OK(cudaStreamEndCapture(a_, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, a_));
    OK(cudaStreamSynchronize(a_));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaFree(memory));
  });
}

// The host waits for the reader alone: the writer, which is still pending under many seeds, is looked at all the same.
TEST_F(CheckMemory, AWaitForTheReaderTellsTheRaceWithPendingWork) {
  for (uint64_t seed = 0; seed < gcap_test::kSeeds; ++seed) {
    gcap_sim_set_seed(seed);
    void* memory;
    OK(cudaMalloc(&memory, kBytes));
    testing::internal::CaptureStderr();
    OK(Fill(memory, a_));
    OK(Step(x_, Bytes(memory), kBytes, b_));
    OK(cudaStreamSynchronize(b_));
    const char* report = gcap_sim_report(0);
    EXPECT_NE(nullptr, report) << "seed " << seed;
    EXPECT_NE(nullptr, strstr(report ? report : "", "race on")) << "seed " << seed;
    OK(cudaDeviceSynchronize());
    EXPECT_EQ(1u, Reports().size()) << "seed " << seed;
    testing::internal::GetCapturedStderr();
    OK(cudaFree(memory));
  }
}

// What the host submits after it has waited for the read is ordered, and explains nothing.
TEST_F(CheckMemory, ALaterWriteDoesNotExplainUnwrittenBytes) {
  ExpectOne({"read of uninitialized memory, 256 bytes", "kernel `step`"}, [&] {
    void* memory;
    OK(cudaMalloc(&memory, kBytes));
    OK(Step(x_, Bytes(memory), kBytes, b_));
    OK(cudaStreamSynchronize(b_));
    OK(Fill(memory, a_));
    OK(cudaFree(memory));
  });
  ExpectOne({"read of uninitialized memory, 256 bytes", "kernel `step`"}, [&] {
    void* memory;
    OK(cudaMalloc(&memory, kBytes));
    OK(Step(x_, Bytes(memory), kBytes, b_));
    OK(Fill(memory, b_));
    OK(cudaFree(memory));
  });
}

TEST_F(CheckMemory, UnwrittenBytesAreToldWhereRacesAreNotLookedFor) {
  gcap_sim_set_action(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_OFF);
  void* memory;
  OK(cudaMalloc(&memory, kBytes));
  testing::internal::CaptureStderr();
  OK(Step(x_, Bytes(memory), kBytes, b_));
  while (cudaEventQuery(e1_) != cudaSuccess) continue;
  for (int i = 0; i < 40; ++i) OK(cudaStreamWaitEvent(c_, e1_, 0));  // time passes: the reader runs
  OK(Fill(memory, a_));
  OK(cudaDeviceSynchronize());
  EXPECT_EQ(1u, Reports().size());
  testing::internal::GetCapturedStderr();
  OK(cudaFree(memory));
  gcap_sim_set_action(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_RECORD);
}

// Nobody waits: it is told by the check, and at exit.
TEST_F(CheckMemory, UnwrittenBytesAreToldWithoutAWait) {
  void* memory;
  OK(cudaMalloc(&memory, kBytes));
  testing::internal::CaptureStderr();
  OK(Step(x_, Bytes(memory), kBytes, b_));
  for (int i = 0; i < 40; ++i) OK(cudaStreamWaitEvent(c_, e1_, 0));
  EXPECT_EQ(1u, Reports().size());
  testing::internal::GetCapturedStderr();
  OK(cudaFree(memory));
}

// The children are programs of their own: of a thread that a forked one does not have, asan finds what the thread
// keeps.
class CheckMemoryDeathTest : public CheckMemory {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    CheckMemory::SetUp();
  }
};

TEST_F(CheckMemoryDeathTest, UnwrittenBytesAreToldAtExit) {
  auto leave = [&] {
    void* memory;
    OK(cudaMalloc(&memory, kBytes));
    OK(Step(x_, Bytes(memory), kBytes, b_));
    for (int i = 0; i < 40; ++i) OK(cudaStreamWaitEvent(c_, e1_, 0));
    exit(3);
  };
  EXPECT_EXIT(leave(), testing::ExitedWithCode(3), "read of uninitialized memory, 256 bytes");
}

// --- A kernel whose accesses nobody knows ---------------------------------------------------------------------------

// A kernel whose twin declares nothing. It writes through a pointer that it finds in memory.
char g_secret_stub;

void RunSecret(const gcap_sim_launch_t*, void* const* args) {
  unsigned char** table;
  memcpy(&table, args[0], sizeof(table));
  memset(table[0], 7, 16);
}

cudaError_t Secret(unsigned char** table, cudaStream_t stream) {
  static const size_t arg_bytes[] = {sizeof(unsigned char**)};
  static const bool registered = [] {
    const gcap_sim_kernel_t kernel = {&g_secret_stub, "secret", arg_bytes, 1, RunSecret, nullptr};
    gcap_sim_register_kernel(&kernel);
    return true;
  }();
  (void)registered;
  void* args[] = {&table};
  return cudaLaunchKernel(&g_secret_stub, dim3(1), dim3(1), args, 0, stream);
}

// What such a kernel had written was told as written by nobody: a correct program was stopped.
TEST_F(CheckMemory, AKernelThatDeclaresNothingMayHaveWrittenAllMemoryThatThereWas) {
  auto body = [&](bool use_later) {
    void *memory, *copy, *later;
    OK(cudaMalloc(&memory, kBytes));
    unsigned char** table = reinterpret_cast<unsigned char**>(pinned_);
    table[0] = Bytes(memory);
    OK(Secret(table, a_));
    OK(cudaStreamSynchronize(a_));
    OK(cudaMalloc(&copy, kBytes));
    OK(Copy(copy, memory, a_));  // carries on what is not known
    OK(Step(x_, Bytes(copy), kBytes, a_));
    OK(Step(x_, Bytes(memory), 16, a_));
    OK(cudaMalloc(&later, kBytes));
    if (use_later) {
      OK(Step(y_, Bytes(later), kBytes, a_));
    }
    for (void* m : {memory, copy, later}) OK(cudaFree(m));
  };
  ExpectNone([&] { body(false); });
  ExpectOne({"read of uninitialized memory, 256 bytes", "kernel `step`"}, [&] { body(true); });
}

// In a graph too, at each launch.
TEST_F(CheckMemory, AGraphsKernelThatDeclaresNothingMayHaveWrittenAllMemoryThatThereWas) {
  void* memory;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  unsigned char** table = reinterpret_cast<unsigned char**>(pinned_);
  OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
  OK(Secret(table, a_));
  OK(cudaStreamEndCapture(a_, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  ExpectNone([&] {
    OK(cudaMalloc(&memory, kBytes));
    table[0] = Bytes(memory);
    OK(cudaGraphLaunch(exec, a_));
    OK(Step(x_, Bytes(memory), 16, a_));
    OK(cudaStreamSynchronize(a_));
    OK(cudaFree(memory));
  });
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

// What the host writes is not seen, so its memory always counts as written.
TEST_F(CheckMemory, HostMemoryCountsAsWritten) {
  ExpectNone([&] {
    void* host;
    OK(cudaMallocHost(&host, kBytes));
    OK(Step(x_, Bytes(host), kBytes, a_));
    OK(cudaFreeHost(host));
    std::vector<unsigned char> pageable(kBytes);
    OK(Copy(x_, pageable.data(), a_));
    OK(cudaHostRegister(pageable.data(), kBytes, 0));
    OK(Step(x_, pageable.data(), kBytes, a_));
    OK(cudaHostUnregister(pageable.data()));
  });
}

// --- Bounds ---------------------------------------------------------------------------------------------------------

TEST_F(CheckMemory, AccessesStayInTheirAllocation) {
  ExpectOne({"out of bounds: write of 64 bytes at offset 200 of an allocation of 256 bytes", "kernel `step`",
             "AccessesStayInTheirAllocation"},
            [&] { OK(Step(x_ + 200, y_, 64, a_)); });
  ExpectOne({"out of bounds: read of 257 bytes at offset 0", "cudaLaunchKernel"},
            [&] { OK(Step(x_, y_, kBytes + 1, a_)); });
}

TEST_F(CheckMemory, KernelsReachOnlyWhatDevicesReach) {
  unsigned char host[16] = {0};
  ExpectOne({"out of bounds: read of 16 bytes at", "which no allocation holds", "kernel `step`"},
            [&] { OK(Step(x_, host, 16, a_)); });
}

// --- Sub-allocations ------------------------------------------------------------------------------------------------

TEST_F(CheckMemory, SubAllocationsDoNotOverlap) {
  ExpectOne({"overlapping allocations", "`left`", "`right`", "gcap_sim_annotate_alloc", "SubAllocationsDoNotOverlap"},
            [&] {
              gcap_sim_annotate_alloc(x_, 100, a_, "left");
              gcap_sim_annotate_alloc(x_ + 96, 100, a_, "right");
              gcap_sim_annotate_free(x_ + 96, a_);
            });
  ExpectNone([&] {
    gcap_sim_annotate_alloc(x_, 96, a_, "left");
    gcap_sim_annotate_alloc(x_ + 96, 96, a_, "right");
    gcap_sim_annotate_free(x_, a_);
    gcap_sim_annotate_alloc(x_, 64, a_, "again");
    gcap_sim_annotate_free(x_, a_);
    gcap_sim_annotate_free(x_ + 96, a_);
  });
}

TEST_F(CheckMemory, SubAllocationsLiveAndDieInTheirStreamsOrder) {
  ExpectOne({"use after free of 16 bytes", "`part`", "freed by gcap_sim_annotate_free", "cudaMemsetAsync"}, [&] {
    gcap_sim_annotate_alloc(x_, 64, a_, "part");
    OK(cudaMemsetAsync(x_, 1, 64, a_));
    gcap_sim_annotate_free(x_, a_);
    OK(cudaMemsetAsync(x_ + 16, 1, 16, a_));
  });
  ExpectOne({"read of uninitialized memory", "`part`", "gcap_sim_annotate_alloc", "kernel `step`"}, [&] {
    gcap_sim_annotate_alloc(x_, 64, a_, "part");
    OK(Step(y_, x_, 64, a_));
    gcap_sim_annotate_free(x_, a_);
  });
  ExpectOne({"out of bounds", "`part`", "cudaLaunchKernel"}, [&] {
    gcap_sim_annotate_alloc(x_, 64, a_, "part");
    OK(Step(x_, y_, 65, a_));
    gcap_sim_annotate_free(x_, a_);
  });
  // Handed to another stream while the first may still use it.
  ExpectOne({"race on reused memory", "gcap_sim_annotate_alloc"}, [&] {
    gcap_sim_annotate_alloc(x_, 64, a_, "first");
    OK(cudaMemsetAsync(x_, 1, 64, a_));
    gcap_sim_annotate_free(x_, a_);
    OK(cudaEventRecord(e1_, a_));
    while (cudaEventQuery(e2_) != cudaSuccess) continue;
    for (int i = 0; i < 40; ++i) OK(cudaStreamWaitEvent(c_, e2_, 0));  // time passes
    gcap_sim_annotate_alloc(x_, 64, b_, "second");
    gcap_sim_annotate_free(x_, b_);
  });
  ExpectNone([&] {
    gcap_sim_annotate_alloc(x_, 64, a_, "first");
    OK(cudaMemsetAsync(x_, 1, 64, a_));
    gcap_sim_annotate_free(x_, a_);
    OK(Order(a_, b_, e1_));
    gcap_sim_annotate_alloc(x_, 64, b_, "second");
    OK(cudaMemsetAsync(x_, 1, 64, b_));
    gcap_sim_annotate_free(x_, b_);
    OK(Order(b_, a_, e2_));
    OK(cudaMemsetAsync(x_, 1, kBytes, a_));  // all of it is its owner's own
  });
}

TEST_F(CheckMemory, SubAllocationsInACaptureLiveInEachLaunch) {
  ExpectNone([&] {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
    gcap_sim_annotate_alloc(x_, 64, a_, "part");
    OK(cudaMemsetAsync(x_, 1, 64, a_));
    OK(Step(y_, x_, 64, a_));
    gcap_sim_annotate_free(x_, a_);
    OK(cudaStreamEndCapture(a_, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; ++i) OK(cudaGraphLaunch(exec, a_));
    OK(cudaStreamSynchronize(a_));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
  });
}

TEST_F(CheckMemory, BadAnnotationsStop) {
  EXPECT_DEATH(gcap_sim_annotate_alloc(nullptr, 64, a_, "none"), "gcap_sim_annotate_alloc: 64 bytes at .* no memory");
  EXPECT_DEATH(gcap_sim_annotate_alloc(x_, 0, a_, "none"), "gcap_sim_annotate_alloc: 0 bytes");
  EXPECT_DEATH(gcap_sim_annotate_free(x_ + 1, a_), "no live sub-allocation begins at");
}

}  // namespace
