// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Races: each way to order two accesses, and what is reported when it is left out.
#include <atomic>
#include <functional>
#include <thread>

#include "test/sim/check_test.h"

namespace {

using gcap_test::Check;
using gcap_test::Step;

using CheckOrder = Check;

#define OK(call) EXPECT_EQ(cudaSuccess, call)

TEST_F(CheckOrder, EventsOrderStreams) {
  ExpectOne({"race on 256 bytes of device memory", "write by memset", "cudaMemsetAsync", "kernel `step`",
             "cudaLaunchKernel", "EventsOrderStreams"},
            [&] {
              OK(Fill(x_, a_));
              OK(cudaEventRecord(e1_, a_));
              OK(Step(y_, x_, kBytes, b_));
            });
  ExpectNone([&] {
    OK(Fill(x_, a_));
    OK(Order(a_, b_, e1_));
    OK(Step(y_, x_, kBytes, b_));
    OK(Order(b_, a_, e2_));
  });
}

// The event is done, but the wait orders all the same; and a wait that came before the record does not.
TEST_F(CheckOrder, WaitForACompletedEventOrders) {
  ExpectNone([&] {
    OK(Fill(x_, a_));
    OK(cudaEventRecord(e1_, a_));
    for (int i = 0; i < 20; ++i) cudaEventQuery(e2_);  // time passes: the fill is long done
    OK(cudaStreamWaitEvent(b_, e1_, 0));
    OK(Step(y_, x_, kBytes, b_));
    OK(Order(b_, a_, e2_));
  });
  ExpectOne({"cudaMemsetAsync", "cudaLaunchKernel"}, [&] {
    OK(cudaStreamWaitEvent(b_, e1_, 0));
    OK(Fill(x_, a_));
    OK(cudaEventRecord(e1_, a_));
    OK(Step(y_, x_, kBytes, b_));
  });
}

// The stream is idle when the event is recorded on it: there is still what it did before.
TEST_F(CheckOrder, RecordOnAnIdleStreamStandsForItsPast) {
  ExpectNone([&] {
    OK(Fill(x_, a_));
    while (cudaStreamQuery(a_) == cudaErrorNotReady) continue;
    OK(Order(a_, b_, e1_));
    OK(Order(b_, c_, e2_));
    OK(Step(y_, x_, kBytes, c_));
    OK(cudaStreamSynchronize(c_));
  });
}

TEST_F(CheckOrder, HostSynchronisationOrders) {
  const std::vector<std::function<void()>> waits = {
      [&] { OK(cudaStreamSynchronize(a_)); },
      [&] { OK(cudaEventSynchronize(e1_)); },
      [&] { OK(cudaDeviceSynchronize()); },
      [&] {
        while (cudaStreamQuery(a_) != cudaSuccess) continue;
      },
      [&] {
        while (cudaEventQuery(e1_) != cudaSuccess) continue;
      },
      [&] {
        void* memory;
        OK(cudaMalloc(&memory, 1));
        OK(cudaFree(memory));  // waits for the device
      },
  };
  for (const auto& wait : waits) {
    ExpectNone([&] {
      OK(Fill(x_, a_));
      OK(cudaEventRecord(e1_, a_));
      wait();
      OK(Step(y_, x_, kBytes, b_));
      OK(cudaStreamSynchronize(b_));
    });
  }
  // Waiting for one stream tells nothing of another.
  ExpectOne({"cudaMemsetAsync", "cudaLaunchKernel"}, [&] {
    OK(Fill(x_, a_));
    OK(Fill(z_, c_));
    OK(cudaStreamSynchronize(c_));
    OK(Step(y_, x_, kBytes, b_));
  });
}

// A host that waits for b has waited for what b waited for.
TEST_F(CheckOrder, SynchronisationIsTransitive) {
  ExpectNone([&] {
    OK(Fill(x_, a_));
    OK(Order(a_, b_, e1_));
    OK(cudaStreamSynchronize(b_));
    OK(Step(y_, x_, kBytes, c_));
    OK(cudaStreamSynchronize(c_));
  });
}

TEST_F(CheckOrder, LegacyStreamOrdersBlockingStreams) {
  ExpectNone([&] {
    OK(Fill(x_, blocking_));
    OK(Step(y_, x_, kBytes, nullptr));
    OK(Fill(x_, blocking_));
    OK(cudaMemsetAsync(x_, 2, kBytes, nullptr));
    OK(Step(z_, x_, kBytes, cudaStreamPerThread));
    OK(cudaDeviceSynchronize());
  });
  ExpectOne({"cudaMemsetAsync", "cudaLaunchKernel"}, [&] {
    OK(Fill(x_, nullptr));
    OK(Step(y_, x_, kBytes, a_));  // does not block
  });
  // Two blocking streams are ordered by nothing but legacy work between them.
  ExpectOne({"cudaMemsetAsync", "cudaLaunchKernel"}, [&] {
    OK(Fill(x_, blocking_));
    OK(Step(y_, x_, kBytes, cudaStreamPerThread));
  });
}

// What the legacy stream did is known to who waits for an event on it, also when it was idle at the record.
// The legacy stream was called by the next free number, as if the program had made it.
TEST_F(CheckOrder, DefaultStreamsHaveTheirNames) {
  ExpectOne({"write by memset on stream 0 (legacy stream): cudaMemsetAsync"}, [&] {
    OK(Fill(x_, a_));
    OK(Fill(x_, nullptr));
  });
  ExpectOne({"write by memset on the per-thread stream of thread 1: cudaMemsetAsync"}, [&] {
    OK(Fill(x_, a_));
    OK(Fill(x_, cudaStreamPerThread));
  });
}

TEST_F(CheckOrder, EventOnTheLegacyStreamStandsForBlockingStreams) {
  ExpectNone([&] {
    OK(Fill(x_, blocking_));
    OK(cudaEventRecord(e1_, nullptr));
    OK(cudaStreamWaitEvent(a_, e1_, 0));
    OK(Step(y_, x_, kBytes, a_));
    OK(cudaStreamSynchronize(a_));
  });
}

TEST_F(CheckOrder, WorkOfADestroyedStreamCounts) {
  for (bool wait : {false, true}) {
    auto body = [&] {
      cudaStream_t gone;
      OK(cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking));
      OK(Fill(x_, gone));
      OK(cudaStreamDestroy(gone));
      if (wait) {
        OK(cudaDeviceSynchronize());
      }
      OK(Step(y_, x_, kBytes, b_));
    };
    if (wait) {
      ExpectNone(body);
    } else {
      ExpectOne({"cudaMemsetAsync", "cudaLaunchKernel"}, body);
    }
  }
}

TEST_F(CheckOrder, ReadsDoNotRaceAndDisjointBytesNeither) {
  ExpectNone([&] {
    OK(Step(y_, x_, 64, a_));
    OK(Step(z_, x_, 64, b_));
    OK(cudaMemsetAsync(x_ + 64, 1, 64, c_));
    OK(cudaDeviceSynchronize());
  });
}

TEST_F(CheckOrder, EveryReaderIsHeldAgainstAWriter) {
  // The readers come before the writer but for the last one.
  ExpectOne({"read by kernel `step`", "write by memset"}, [&] {
    OK(Step(y_, x_, kBytes, a_));
    OK(Order(a_, c_, e1_));
    OK(Step(z_, x_, kBytes, b_));
    OK(Fill(x_, c_));
  });
  ExpectNone([&] {
    OK(Step(y_, x_, kBytes, a_));
    OK(Order(a_, c_, e1_));
    OK(Step(z_, x_, kBytes, b_));
    OK(Order(b_, c_, e2_));
    OK(Fill(x_, c_));
    OK(cudaStreamSynchronize(c_));
  });
}

TEST_F(CheckOrder, OnlySharedBytesOfRowsRace) {
  ExpectNone([&] {
    // The left and the right half of 8 rows.
    OK(cudaMemcpy2DAsync(x_, 32, y_, 16, 16, 8, cudaMemcpyDeviceToDevice, a_));
    OK(cudaMemcpy2DAsync(x_ + 16, 32, y_, 16, 16, 8, cudaMemcpyDeviceToDevice, b_));
    OK(cudaDeviceSynchronize());
  });
  ExpectOne({"race on 1 bytes", "+ 15 of 256", "cudaMemcpy2DAsync"}, [&] {
    OK(cudaMemcpy2DAsync(x_, 32, y_, 16, 16, 8, cudaMemcpyDeviceToDevice, a_));
    OK(cudaMemcpy2DAsync(x_ + 15, 32, y_, 16, 16, 7, cudaMemcpyDeviceToDevice, b_));
  });
}

TEST_F(CheckOrder, HostAccessesRaceWithCopies) {
  ExpectOne({"race on 4 bytes of pinned memory", "cudaMemcpyAsync", "by the host", "gcap_sim_host_access",
             "waits for the stream"},
            [&] {
              OK(Copy(pinned_, x_, a_));
              while (cudaEventQuery(e2_) != cudaSuccess) continue;
              for (int i = 0; i < 30; ++i) OK(cudaStreamWaitEvent(b_, e2_, 0));  // time passes
              gcap_sim_host_access(pinned_, 4, 0);
            });
  ExpectNone([&] {
    OK(Copy(pinned_, x_, a_));
    OK(cudaStreamSynchronize(a_));
    gcap_sim_host_access(pinned_, 4, 0);
    gcap_sim_host_access(pinned_, kBytes, 1);
    OK(Copy(x_, pinned_, a_));
  });
  // The host overwrites what a queued copy has still to read.
  ExpectOne({"cudaMemcpyAsync", "gcap_sim_host_access"}, [&] {
    OK(Copy(x_, pinned_, a_));
    gcap_sim_host_access(pinned_, kBytes, 1);
  });
}

TEST_F(CheckOrder, HostFunctionsActInTheirStreamsOrder) {
  auto touch = [](void* memory) { gcap_sim_host_access(memory, 4, 1); };
  ExpectNone([&] {
    OK(Copy(pinned_, x_, a_));
    OK(cudaLaunchHostFunc(a_, touch, pinned_));
    OK(Copy(x_, pinned_, a_));
    OK(cudaStreamSynchronize(a_));
  });
  ExpectOne({"cudaMemcpyAsync", "by host function", "cudaLaunchHostFunc"}, [&] {
    OK(Copy(pinned_, x_, a_));
    OK(cudaLaunchHostFunc(b_, touch, pinned_));
  });
}

void Raise(void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }
void CUDART_CB RaiseInCallback(cudaStream_t, cudaError_t, void* flag) { Raise(flag); }

// A host that waits for a flag of its own was told that nothing orders what it does next with what came before the
// host function that raised the flag: a correct program was stopped. The work behind the host function keeps the
// stream busy, so that no query orders anything.
class CheckOrderFlag : public CheckOrder {
 protected:
  void RaiseOnStream(bool by_callback) {
    flag_ = false;
    if (by_callback) {
      OK(cudaStreamAddCallback(a_, RaiseInCallback, &flag_, 0));
    } else {
      OK(cudaLaunchHostFunc(a_, Raise, &flag_));
    }
  }
  void AwaitFlag() {
    while (!flag_) EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(a_));
  }
  void Occupy() {
    for (int i = 0; i < 200; ++i) OK(Fill(z_, a_));
  }
  std::atomic<bool> flag_{false};
};

TEST_F(CheckOrderFlag, AHostFunctionThatIsDoneComesBeforeTheHostsNextCall) {
  for (const bool by_callback : {false, true}) {
    ExpectNone([&] {
      OK(Fill(x_, c_));
      OK(Order(c_, a_, e1_));
      OK(Copy(pinned_, x_, a_));
      RaiseOnStream(by_callback);
      Occupy();
      AwaitFlag();
      gcap_sim_host_access(pinned_, kBytes, 0);
      OK(Step(y_, x_, kBytes, b_));
      OK(Fill(x_, b_));
    });
  }
}

TEST_F(CheckOrderFlag, WhatComesAfterTheHostFunctionIsNotOrdered) {
  ExpectOne({"race on 256 bytes", "cudaMemsetAsync", "cudaLaunchKernel"}, [&] {
    RaiseOnStream(false);
    OK(Fill(x_, a_));
    Occupy();
    AwaitFlag();
    OK(Step(y_, x_, kBytes, b_));
  });
}

TEST_F(CheckOrderFlag, OtherStreamsAreNotOrdered) {
  ExpectOne({"race on 256 bytes", "cudaMemsetAsync", "cudaLaunchKernel"}, [&] {
    OK(Fill(x_, c_));
    RaiseOnStream(false);
    Occupy();
    AwaitFlag();
    OK(Step(y_, x_, kBytes, b_));
  });
}

TEST_F(CheckOrderFlag, AHostFunctionThatIsNotDoneOrdersNothing) {
  ExpectOne({"race on 256 bytes", "cudaMemsetAsync", "cudaLaunchKernel"}, [&] {
    OK(Fill(x_, a_));
    RaiseOnStream(false);  // runs at a synchronisation, a query, or after a pause
    OK(Step(y_, x_, kBytes, b_));
  });
}

TEST_F(CheckOrderFlag, AHostNodeOrdersWhatItDependsOnAndNoOtherBranch) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
  OK(Order(a_, c_, e1_));
  OK(Fill(x_, a_));
  OK(cudaLaunchHostFunc(a_, Raise, &flag_));
  OK(Fill(y_, c_));
  OK(Order(c_, a_, e2_));
  OK(cudaStreamEndCapture(a_, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  auto launch = [&] {
    flag_ = false;
    OK(cudaGraphLaunch(exec, a_));
    Occupy();
    AwaitFlag();
  };
  ExpectNone([&] {
    launch();
    OK(Copy(pinned_, x_, b_));
  });
  ExpectOne({"race on 256 bytes", "in the graph launched by"}, [&] {
    launch();
    OK(Copy(pinned_, y_, b_));
  });
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

TEST_F(CheckOrder, ThreadsFollowOneAnotherByTheirCalls) {
  ExpectNone([&] {
    std::thread([&] {
      OK(Fill(x_, a_));
      OK(cudaStreamSynchronize(a_));
    }).join();
    OK(Step(y_, x_, kBytes, b_));
  });
}

// --- Events of launches ---------------------------------------------------------------------------------------------

// The kernel's work is ordered before what waits for an event that its launch records, eager and captured.
TEST_F(CheckOrder, AnEventOfALaunchOrders) {
  cudaEvent_t untimed;  // as such events must be
  const auto step = [&](cudaLaunchAttributeID id) {
    gcap_test::StepArgs arguments = {y_, x_, kBytes};
    void* args[] = {&arguments};
    cudaLaunchAttribute attribute = {};
    attribute.id = id;
    if (id == cudaLaunchAttributeProgrammaticEvent) {
      attribute.val.programmaticEvent.event = untimed;
    } else {
      attribute.val.launchCompletionEvent.event = untimed;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = a_;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cudaLaunchKernelExC(&config, &gcap_test::g_step_stub, args);
  };
  OK(Step(y_, x_, kBytes, a_));  // registers the twin
  OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  for (auto id : {cudaLaunchAttributeProgrammaticEvent, cudaLaunchAttributeLaunchCompletionEvent}) {
    ExpectNone([&] {
      OK(step(id));
      OK(cudaStreamWaitEvent(b_, untimed, 0));
      OK(Step(z_, y_, kBytes, b_));
    });
    ExpectNone([&] {
      cudaGraph_t graph;
      cudaGraphExec_t exec;
      OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
      OK(step(id));
      OK(cudaStreamWaitEvent(b_, untimed, 0));
      OK(Step(z_, y_, kBytes, b_));
      OK(Order(b_, a_, e1_));
      OK(cudaStreamEndCapture(a_, &graph));
      OK(cudaGraphInstantiate(&exec, graph, 0));
      OK(cudaGraphLaunch(exec, a_));
      OK(cudaStreamSynchronize(a_));
      OK(cudaGraphExecDestroy(exec));
      OK(cudaGraphDestroy(graph));
    });
  }
  OK(cudaEventDestroy(untimed));
}

// --- Atomic updates -------------------------------------------------------------------------------------------------

// *counter += 1, by an atomic operation.
char g_count_stub;

cudaError_t Count(unsigned char* counter, cudaStream_t stream) {
  static const size_t arg_bytes[] = {sizeof(unsigned char*)};
  static const bool registered = [] {
    gcap_sim_kernel_t kernel = {};
    kernel.function = &g_count_stub;
    kernel.name = "count";
    kernel.arg_bytes = arg_bytes;
    kernel.num_args = 1;
    kernel.run = [](const gcap_sim_launch_t*, void* const* args) { ++**static_cast<unsigned char**>(args[0]); };
    kernel.accesses = [](const gcap_sim_launch_t*, void* const* args, gcap_sim_access_t* out, size_t capacity) {
      if (capacity > 0) out[0] = {*static_cast<unsigned char**>(args[0]), 1, GCAP_SIM_ATOMIC};
      return size_t{1};
    };
    gcap_sim_register_kernel(&kernel);
    return true;
  }();
  (void)registered;
  void* args[] = {&counter};
  return cudaLaunchKernel(&g_count_stub, dim3(1), dim3(1), args, 0, stream);
}

TEST_F(CheckOrder, AtomicUpdatesNeedNoOrderAmongThemselves) {
  ExpectNone([&] {
    OK(Fill(x_, a_));
    OK(cudaStreamSynchronize(a_));
    for (cudaStream_t stream : {a_, b_, c_, a_, b_}) OK(Count(x_, stream));
    OK(cudaDeviceSynchronize());
    unsigned char count = 0;
    OK(cudaMemcpy(&count, x_, 1, cudaMemcpyDeviceToHost));
    EXPECT_EQ(6, count);
  });
}

TEST_F(CheckOrder, AtomicUpdatesRaceWithReadsAndWrites) {
  ExpectOne({"race on 1 bytes", "kernel `step` on stream", "kernel `count` on stream"}, [&] {
    OK(Count(x_, a_));
    OK(Step(y_, x_, kBytes, b_));
  });
  ExpectOne({"race on 1 bytes", "memset on stream", "kernel `count` on stream"}, [&] {
    OK(Count(x_, a_));
    OK(Fill(x_, b_));
  });
}

TEST_F(CheckOrder, AReadAfterAnAtomicUpdateDoesNotStandForIt) {
  // The read of c_ is ordered with nothing, and races with the update alone.
  ExpectOne({"race on 1 bytes", "kernel `count` on stream", "kernel `step` on stream"}, [&] {
    OK(Count(x_, a_));
    OK(Step(y_, x_, 1, a_));
    OK(Order(a_, c_, e1_));
    OK(Step(y_, x_, 1, c_));
    OK(Step(z_, x_, 1, b_));
  });
  // Nor does an update for a read.
  ExpectOne({"race on 1 bytes", "read by kernel `step`", "kernel `count`"}, [&] {
    OK(Step(y_, x_, 1, a_));
    OK(Count(x_, a_));
    OK(Count(x_, b_));
  });
}

TEST_F(CheckOrder, AnAtomicUpdateReadsWhatItUpdates) {
  ExpectOne({"read of uninitialized memory, 1 bytes", "kernel `count`"}, [&] {
    void* memory;
    OK(cudaMalloc(&memory, 1));
    OK(Count(static_cast<unsigned char*>(memory), a_));
    OK(Step(x_, static_cast<unsigned char*>(memory), 1, a_));
    OK(cudaStreamSynchronize(a_));
    OK(cudaFree(memory));
  });
}

TEST_F(CheckOrder, AFreeComesAfterEachAtomicUpdate) {
  ExpectOne({"kernel `count` on stream", "cudaFreeAsync"}, [&] {
    void* memory;
    OK(cudaMallocAsync(&memory, 1, a_));
    OK(cudaMemsetAsync(memory, 0, 1, a_));
    OK(Order(a_, b_, e1_));
    OK(Count(static_cast<unsigned char*>(memory), b_));
    OK(cudaFreeAsync(memory, a_));
  });
}

}  // namespace
