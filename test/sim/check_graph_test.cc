// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs under the checks: branches, joins, launches, external events, memory that goes away under a graph.
#include <cstdlib>
#include <functional>

#include "test/sim/check_test.h"

namespace {

using gcap_test::Check;
using gcap_test::Step;

#define OK(call) EXPECT_EQ(cudaSuccess, call)

class CheckGraph : public Check {
 protected:
  // Captures the body on stream a.
  cudaGraphExec_t Capture(const std::function<void()>& body) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
    body();
    OK(cudaStreamEndCapture(a_, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    return exec;
  }

  static void Destroy(cudaGraphExec_t exec) {
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(exec));
  }
};

TEST_F(CheckGraph, BranchesAreUnorderedUntilTheyJoin) {
  for (bool dependency : {false, true}) {
    auto body = [&] {
      cudaGraphExec_t exec = Capture([&] {
        OK(Fill(y_, a_));
        OK(Order(a_, b_, e1_));
        OK(Fill(x_, b_));
        if (dependency) {
          OK(Order(b_, a_, e2_));
        }
        OK(Step(y_, x_, kBytes, a_));
        OK(Order(b_, a_, e2_));
        OK(Step(z_, x_, kBytes, a_));
      });
      for (int i = 0; i < 3; ++i) OK(cudaGraphLaunch(exec, a_));
      Destroy(exec);
    };
    if (dependency) {
      ExpectNone(body);
    } else {
      ExpectOne({"a dependency between the two nodes", "cudaMemsetAsync", "cudaLaunchKernel",
                 "in the graph launched by cudaGraphLaunch", "BranchesAreUnorderedUntilTheyJoin"},
                body);
    }
  }
}

// Everything of a launch comes after what its stream did, and before what it does next, whatever the branch.
TEST_F(CheckGraph, LaunchIsOneUnitInItsStream) {
  auto fork = [&] {
    OK(Order(a_, b_, e1_));
    OK(Step(y_, x_, kBytes, b_));
    OK(Step(z_, x_, kBytes, a_));
    OK(Order(b_, a_, e2_));
  };
  ExpectNone([&] {
    cudaGraphExec_t exec = Capture(fork);
    for (int i = 0; i < 3; ++i) {
      OK(Fill(x_, c_));
      OK(cudaGraphLaunch(exec, c_));
      OK(Fill(x_, c_));
    }
    Destroy(exec);
  });
  ExpectOne({"cudaMemsetAsync", "in the graph launched by cudaGraphLaunch"}, [&] {
    cudaGraphExec_t exec = Capture([&] {
      OK(Order(a_, b_, e1_));
      OK(Step(y_, x_, kBytes, b_));
      OK(Order(b_, a_, e2_));
    });
    OK(cudaGraphLaunch(exec, c_));
    OK(Fill(x_, b_));
    Destroy(exec);
  });
}

TEST_F(CheckGraph, LaunchesOfOneExecutableFollowOneAnother) {
  ExpectNone([&] {
    cudaGraphExec_t exec = Capture([&] {
      OK(Order(a_, b_, e1_));
      OK(Step(y_, y_, kBytes, b_));
      OK(Step(z_, z_, kBytes, a_));
      OK(Order(b_, a_, e2_));
    });
    for (cudaStream_t stream : {a_, b_, c_, a_}) OK(cudaGraphLaunch(exec, stream));
    Destroy(exec);
  });
  ExpectOne({"cudaLaunchKernel", "in the graph launched by cudaGraphLaunch"}, [&] {
    auto step = [&] { OK(Step(y_, y_, kBytes, a_)); };
    cudaGraphExec_t first = Capture(step);
    cudaGraphExec_t second = Capture(step);
    OK(cudaGraphLaunch(first, b_));
    OK(cudaGraphLaunch(second, c_));
    Destroy(first);
    Destroy(second);
  });
}

TEST_F(CheckGraph, ExternalEventsOrderNodesWithStreams) {
  ExpectNone([&] {
    cudaGraphExec_t exec = Capture([&] {
      OK(Order(a_, b_, e2_));
      OK(Fill(x_, b_));
      OK(cudaEventRecordWithFlags(e1_, b_, cudaEventRecordExternal));
      OK(Order(b_, a_, e2_));
    });
    OK(cudaGraphLaunch(exec, a_));
    OK(cudaStreamWaitEvent(c_, e1_, 0));
    OK(Step(y_, x_, kBytes, c_));
    OK(Order(c_, a_, e2_));
    Destroy(exec);
  });
  ExpectNone([&] {
    cudaGraphExec_t exec = Capture([&] {
      OK(cudaStreamWaitEvent(a_, e1_, cudaEventWaitExternal));
      OK(Step(y_, x_, kBytes, a_));
    });
    OK(Fill(x_, c_));
    OK(cudaEventRecord(e1_, c_));
    OK(cudaGraphLaunch(exec, a_));
    Destroy(exec);
  });
  // The node that records does not come after the other branch.
  ExpectOne({"cudaMemsetAsync", "cudaLaunchKernel"}, [&] {
    cudaGraphExec_t exec = Capture([&] {
      OK(Order(a_, b_, e2_));
      OK(Fill(x_, a_));
      OK(cudaEventRecordWithFlags(e1_, b_, cudaEventRecordExternal));
      OK(Order(b_, a_, e2_));
    });
    OK(cudaGraphLaunch(exec, a_));
    OK(cudaStreamWaitEvent(c_, e1_, 0));
    OK(Step(y_, x_, kBytes, c_));
    Destroy(exec);
  });
}

// --- Memory that a graph names --------------------------------------------------------------------------------------

TEST_F(CheckGraph, FreedMemoryIsFoundAtTheNextLaunch) {
  for (bool again : {false, true}) {
    ExpectOne({"a graph uses memory that was freed after its capture", "allocated by cudaMalloc", "freed by cudaFree",
               "write by memset", "cudaMemsetAsync", "in the graph launched by cudaGraphLaunch",
               "FreedMemoryIsFoundAtTheNextLaunch"},
              [&] {
                void* memory;
                OK(cudaMalloc(&memory, kBytes));
                cudaGraphExec_t exec = Capture([&] { OK(Fill(memory, a_)); });
                OK(cudaGraphLaunch(exec, a_));
                OK(cudaFree(memory));
                OK(cudaMalloc(&memory, kBytes));
                OK(cudaGraphLaunch(exec, a_));
                if (again) {
                  OK(cudaGraphLaunch(exec, a_));  // told once
                }
                Destroy(exec);
                OK(cudaFree(memory));
              });
  }
  ExpectNone([&] {
    void* memory;
    OK(cudaMalloc(&memory, kBytes));
    cudaGraphExec_t exec = Capture([&] { OK(Fill(memory, a_)); });
    OK(cudaGraphLaunch(exec, a_));
    Destroy(exec);
    OK(cudaFree(memory));
  });
}

// A pool hands the same address out again: the bytes live, but they are another's.
TEST_F(CheckGraph, MemoryThatLivesAgainIsNotWhatTheGraphNamed) {
  ExpectOne({"a graph uses memory that was freed", "cudaMallocAsync", "freed by cudaFreeAsync", "cudaLaunchKernel"},
            [&] {
              void *memory, *again;
              OK(cudaMallocAsync(&memory, kBytes, a_));
              OK(Fill(memory, a_));
              cudaGraphExec_t exec = Capture([&] { OK(Step(y_, static_cast<unsigned char*>(memory), kBytes, a_)); });
              OK(cudaFreeAsync(memory, a_));
              OK(cudaMallocAsync(&again, kBytes, a_));
              EXPECT_EQ(memory, again);
              OK(Fill(again, a_));
              OK(cudaGraphLaunch(exec, a_));
              OK(cudaFreeAsync(again, a_));
              Destroy(exec);
            });
}

// --- A kernel whose range depends on memory --------------------------------------------------------------------------

// Appends to a row of floats, at a position that lies in device memory, as a decode step does.
struct Row {
  int position;
  float items[32];
};
void Append(Row*) { abort(); }
int num_questions;

void RegisterAppend() {
  static const size_t arg_bytes = sizeof(Row*);
  static const bool once = [] {
    gcap_sim_kernel_t twin = {};
    twin.function = reinterpret_cast<const void*>(Append);
    twin.name = "append";
    twin.arg_bytes = &arg_bytes;
    twin.num_args = 1;
    twin.run = [](const gcap_sim_launch_t*, void* const* args) {
      Row* row = *static_cast<Row**>(args[0]);
      row->items[row->position++] = 1.0f;
    };
    twin.accesses = [](const gcap_sim_launch_t*, void* const* args, gcap_sim_access_t* out, size_t capacity) -> size_t {
      Row* row = *static_cast<Row**>(args[0]);
      ++num_questions;
      const gcap_sim_access_t all[] = {{&row->position, sizeof(int), 1},
                                       {&row->items[row->position], sizeof(float), 1}};
      for (size_t i = 0; i < 2 && i < capacity; ++i) out[i] = all[i];
      return 2;
    };
    gcap_sim_register_kernel(&twin);
    return true;
  }();
  (void)once;
}

cudaError_t LaunchAppend(Row* row, cudaStream_t stream) {
  void* args[] = {&row};
  return cudaLaunchKernel(reinterpret_cast<const void*>(Append), dim3(1), dim3(1), args, 0, stream);
}

// The twin is not asked when the node is made: the position is none then, or there is no memory at all.
TEST_F(CheckGraph, AKernelIsAskedWhatItTouchesWhenItRuns) {
  RegisterAppend();
  ExpectNone([&] {
    num_questions = 0;
    cudaGraphExec_t nowhere = Capture([&] { OK(LaunchAppend(reinterpret_cast<Row*>(size_t{1} << 40), a_)); });
    EXPECT_EQ(num_questions, 0);
    Destroy(nowhere);
    Row* row = nullptr;
    OK(cudaMalloc(reinterpret_cast<void**>(&row), sizeof(Row)));
    cudaGraphExec_t exec = Capture([&] { OK(LaunchAppend(row, a_)); });
    OK(cudaMemsetAsync(row, 0, sizeof(Row), a_));
    for (int i = 0; i < 3; ++i) OK(cudaGraphLaunch(exec, a_));
    Row result;
    OK(cudaMemcpyAsync(&result, row, sizeof(Row), cudaMemcpyDeviceToHost, a_));
    OK(cudaStreamSynchronize(a_));
    EXPECT_EQ(result.position, 3);
    EXPECT_EQ(num_questions, 3);
    Destroy(exec);
    OK(cudaFree(row));
  });
}

// What such a kernel's argument points into is named when the node is made, all the same.
TEST_F(CheckGraph, AKernelIsToldOfMemoryThatLivesAgainBehindItsArgument) {
  RegisterAppend();
  ExpectOne({"a graph uses memory that was freed", "append", "freed by cudaFreeAsync"}, [&] {
    void *memory, *again;
    OK(cudaMallocAsync(&memory, sizeof(Row), a_));
    cudaGraphExec_t exec = Capture([&] { OK(LaunchAppend(static_cast<Row*>(memory), a_)); });
    OK(cudaFreeAsync(memory, a_));
    OK(cudaMallocAsync(&again, sizeof(Row), a_));
    EXPECT_EQ(memory, again);
    OK(cudaMemsetAsync(again, 0, sizeof(Row), a_));
    OK(cudaGraphLaunch(exec, a_));
    OK(cudaFreeAsync(again, a_));
    Destroy(exec);
  });
}

TEST_F(CheckGraph, PinnedMemoryMustOutliveItsGraph) {
  ExpectOne({"a graph uses memory that was freed", "pinned memory", "freed by cudaFreeHost", "cudaMemcpyAsync",
             "cudaGraphLaunch"},
            [&] {
              void* host;
              OK(cudaMallocHost(&host, kBytes));
              cudaGraphExec_t exec = Capture([&] { OK(Copy(x_, host, a_)); });
              OK(cudaFreeHost(host));
              OK(cudaGraphLaunch(exec, a_));
              Destroy(exec);
            });
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

// Through a volatile pointer, or the compiler would leave the pair out.
void* HostMemory(size_t bytes) {
  void* volatile memory = calloc(1, bytes);
  return memory;
}

TEST_F(CheckGraph, PageableMemoryMustOutliveItsGraph) {
  if (SANITIZED) GTEST_SKIP() << "the sanitizer has free";
  const std::vector<std::function<void(void*)>> frees = {
      [](void* memory) { free(memory); },
      [](void* memory) { free(realloc(memory, 64 << 20)); },  // too large for its place
  };
  for (const auto& release : frees) {
    ExpectOne({"a graph uses pageable memory that was freed", "freed by free or realloc", "cudaMemcpyAsync",
               "cudaGraphLaunch", "PageableMemoryMustOutliveItsGraph"},
              [&] {
                void* host = HostMemory(kBytes);
                cudaGraphExec_t exec = Capture([&] { OK(Copy(x_, host, a_)); });
                OK(cudaGraphLaunch(exec, a_));
                OK(cudaStreamSynchronize(a_));
                release(host);
                OK(cudaGraphLaunch(exec, a_));
                Destroy(exec);
                gcap_sim_set_action(GCAP_SIM_CHECK_HOST_MEMORY, GCAP_SIM_ACTION_RECORD);
              });
  }
  ExpectNone([&] {
    void* host = HostMemory(kBytes);
    cudaGraphExec_t exec = Capture([&] { OK(Copy(x_, host, a_)); });
    OK(cudaGraphLaunch(exec, a_));
    Destroy(exec);
    free(host);
  });
}

// Not seen through by the compiler, which would warn of the use that follows.
void (*volatile g_free)(void*) = free;

TEST_F(CheckGraph, RegisteredMemoryIsNotFreedWhileTheRuntimeHasIt) {
  if (SANITIZED) GTEST_SKIP() << "the sanitizer has free";
  ExpectOne({"registered memory was freed while the runtime had it", "freed by free or realloc", "cudaMemcpyAsync"},
            [&] {
              void* host = HostMemory(kBytes);
              OK(cudaHostRegister(host, kBytes, 0));
              OK(Copy(x_, host, a_));
              OK(cudaStreamSynchronize(a_));
              g_free(host);
              OK(Copy(x_, host, a_));
              OK(cudaStreamSynchronize(a_));
              OK(cudaHostUnregister(host));
            });
}

// The host reads for an eager copy what a graph may still write.
TEST_F(CheckGraph, PageableMemoryRacesWithTheHost) {
  std::vector<unsigned char> host(kBytes);
  for (bool wait : {false, true}) {
    auto body = [&] {
      cudaGraphExec_t exec = Capture([&] { OK(Copy(host.data(), x_, a_)); });
      OK(cudaGraphLaunch(exec, a_));
      if (wait) {
        OK(cudaStreamSynchronize(a_));
      }
      OK(Copy(y_, host.data(), b_));
      Destroy(exec);
    };
    if (wait) {
      ExpectNone(body);
    } else {
      ExpectOne({"race on 256 bytes of pageable memory", "by the host: cudaMemcpyAsync", "cudaGraphLaunch"}, body);
    }
  }
}

TEST_F(CheckGraph, OwnMemoryIsThereFromItsAllocationToItsFree) {
  auto own = [&](bool ordered) {
    return Capture([&, ordered] {
      void* memory;
      OK(cudaMallocAsync(&memory, kBytes, a_));
      OK(Fill(memory, a_));
      if (!ordered) {
        OK(Order(a_, b_, e1_));
        OK(Step(y_, static_cast<unsigned char*>(memory), kBytes, b_));
        OK(cudaFreeAsync(memory, a_));
        OK(Order(b_, a_, e2_));
        return;
      }
      OK(Step(y_, static_cast<unsigned char*>(memory), kBytes, a_));
      OK(cudaFreeAsync(memory, a_));
    });
  };
  ExpectNone([&] {
    cudaGraphExec_t exec = own(true);
    for (int i = 0; i < 3; ++i) OK(cudaGraphLaunch(exec, a_));
    Destroy(exec);
  });
  // The kernel is beside the free: it may come before or after it.
  for (uint64_t seed = 0; seed < gcap_test::kSeeds; ++seed) {
    gcap_sim_set_seed(seed);
    testing::internal::CaptureStderr();
    cudaGraphExec_t exec = own(false);
    OK(cudaGraphLaunch(exec, a_));
    Destroy(exec);
    const std::vector<std::string> reports = gcap_test::Reports();
    testing::internal::GetCapturedStderr();
    ASSERT_EQ(1u, reports.size()) << seed;
    EXPECT_TRUE(reports[0].find("use after free") != std::string::npos ||
                reports[0].find("free of memory that may still be in use") != std::string::npos)
        << reports[0];
    EXPECT_NE(std::string::npos, reports[0].find("cudaFreeAsync")) << reports[0];
    EXPECT_NE(std::string::npos, reports[0].find("cudaLaunchKernel")) << reports[0];
  }
}

// An update replaces the nodes, and with them what they name.
TEST_F(CheckGraph, UpdateNamesAnew) {
  ExpectNone([&] {
    void *first, *second;
    OK(cudaMalloc(&first, kBytes));
    OK(cudaMalloc(&second, kBytes));
    cudaGraphExec_t exec = Capture([&] { OK(Fill(first, a_)); });
    OK(cudaGraphLaunch(exec, a_));
    OK(cudaFree(first));
    cudaGraph_t graph;
    OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
    OK(Fill(second, a_));
    OK(cudaStreamEndCapture(a_, &graph));
    cudaGraphExecUpdateResultInfo info;
    OK(cudaGraphExecUpdate(exec, graph, &info));
    OK(cudaGraphLaunch(exec, a_));
    Destroy(exec);
    OK(cudaGraphDestroy(graph));
    OK(cudaFree(second));
  });
}

// --- Updates that change less than they say -------------------------------------------------------------------------

class CheckUpdate : public CheckGraph {
 protected:
  // A graph of one launch of the step kernel, in clusters of so many blocks; 0 for none.
  cudaGraph_t Captured(unsigned int blocks) {
    cudaGraph_t graph = nullptr;
    gcap_test::StepArgs step = {y_, x_, kBytes};
    void* args[] = {&step};
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {blocks, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(8);
    config.blockDim = dim3(32);
    config.stream = a_;
    config.attrs = &attribute;
    config.numAttrs = blocks > 0;
    OK(Step(y_, x_, kBytes, a_));  // registers the twin
    OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
    OK(cudaLaunchKernelExC(&config, &gcap_test::g_step_stub, args));
    OK(cudaStreamEndCapture(a_, &graph));
    return graph;
  }

  void Update(unsigned int from, unsigned int to) {
    cudaGraph_t before = Captured(from), after = Captured(to);
    cudaGraphExec_t exec = nullptr;
    cudaGraphExecUpdateResultInfo info;
    OK(cudaGraphInstantiate(&exec, before, 0));
    OK(cudaGraphExecUpdate(exec, after, &info));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(after));
    OK(cudaGraphDestroy(before));
  }
};

// The update answered success, the kernel ran with the old clusters, and nothing was said.
TEST_F(CheckUpdate, OneThatKeepsTheOldClustersIsTold) {
  ExpectOne({"stale update: a kernel goes on in clusters of 1 x 1 x 1 blocks, not 2 x 1 x 1",
             "kept clusters by kernel `step`: cudaLaunchKernelExC,", "wanted clusters by kernel `step`: ",
             "updated by cudaGraphExecUpdate,", "Remedy: instantiate the new graph"},
            [&] { Update(0, 2); });
  ExpectOne({"in clusters of 4 x 1 x 1 blocks, not 1 x 1 x 1"}, [&] { Update(4, 0); });
  ExpectOne({"in clusters of 4 x 1 x 1 blocks, not 2 x 1 x 1"}, [&] { Update(4, 2); });
}

TEST_F(CheckUpdate, OneThatChangesNoClustersIsNot) {
  ExpectNone([&] {
    Update(2, 2);
    Update(0, 0);
    Update(0, 1);
    Update(1, 0);
  });
}

TEST_F(CheckUpdate, OneIsNotToldWhereTheCheckIsOff) {
  gcap_sim_set_action(GCAP_SIM_CHECK_STALE_UPDATE, GCAP_SIM_ACTION_OFF);
  ExpectNone([&] { Update(0, 2); });
}

TEST_F(CheckUpdate, OneIsToldWhereNoCheckLooksAtAccesses) {
  gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_OFF);
  gcap_sim_set_action(GCAP_SIM_CHECK_STALE_UPDATE, GCAP_SIM_ACTION_RECORD);
  ExpectOne({"stale update"}, [&] { Update(0, 2); });
}

using CheckUpdateDeathTest = CheckUpdate;

TEST_F(CheckUpdateDeathTest, OneStopsTheProgramByDefault) {
  gcap_sim_set_action(GCAP_SIM_CHECK_STALE_UPDATE, GCAP_SIM_ACTION_DEFAULT);
  EXPECT_DEATH(Update(0, 2), "gcap sim: stale update: ");
}

}  // namespace
