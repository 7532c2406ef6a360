// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Broken programs as newcomers write them, with the checks as they are by default: the first report names the cause,
// under every seed. And correct programs that were stopped. Each program runs in a child of its own, from the first
// call to the exit. None looks at the codes of its calls.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

constexpr uint64_t kSeeds = 8;
constexpr size_t kBytes = 64;

// --- What the programs share ----------------------------------------------------------------------------------------

char g_negate_stub;

struct NegateArgs {
  unsigned char* to;
  const unsigned char* from;
};

void RunNegate(const gcap_sim_launch_t*, void* const* args) {
  NegateArgs a;
  memcpy(&a, args[0], sizeof(a));
  for (size_t i = 0; i < kBytes; ++i) a.to[i] = static_cast<unsigned char>(~a.from[i]);
}

size_t NegateAccesses(const gcap_sim_launch_t*, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  NegateArgs a;
  memcpy(&a, args[0], sizeof(a));
  if (capacity < 2) return 2;
  out[0] = {a.from, kBytes, 0};
  out[1] = {a.to, kBytes, 1};
  return 2;
}

void Negate(void* to, const void* from, cudaStream_t stream) {
  NegateArgs a = {static_cast<unsigned char*>(to), static_cast<const unsigned char*>(from)};
  void* args[] = {&a};
  cudaLaunchKernel(&g_negate_stub, dim3(1), dim3(1), args, 0, stream);
}

// An engine's state: stream 1, stream 2, an event, a and b on the device, pinned memory.
struct Engine {
  explicit Engine(unsigned flags = cudaStreamNonBlocking) {
    static const size_t arg_bytes[] = {sizeof(NegateArgs)};
    const gcap_sim_kernel_t kernel = {&g_negate_stub, "negate", arg_bytes, 1, RunNegate, NegateAccesses};
    gcap_sim_register_kernel(&kernel);
    cudaStreamCreateWithFlags(&stream, flags);
    cudaStreamCreateWithFlags(&side, flags);
    cudaEventCreate(&event);
    cudaEventCreate(&joined);
    cudaMalloc(&a, kBytes);
    cudaMalloc(&b, kBytes);
    cudaMallocHost(&pinned, kBytes);
  }
  void Begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) { cudaStreamBeginCapture(stream, mode); }
  void Fork() {
    cudaEventRecord(event, stream);
    cudaStreamWaitEvent(side, event, 0);
  }
  void Join() {
    cudaEventRecord(joined, side);
    cudaStreamWaitEvent(stream, joined, 0);
  }
  // Ends the capture, launches what came of it twice, and looks at b.
  void EndAndUse() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphInstantiate(&exec, graph, 0);
    for (int i = 0; i < 2 && exec != nullptr; ++i) cudaGraphLaunch(exec, stream);
    Use();
  }
  void Use() {
    cudaMemcpyAsync(pinned, b, kBytes, cudaMemcpyDeviceToHost, stream);
    cudaDeviceSynchronize();
  }
  cudaStream_t stream = nullptr, side = nullptr;
  cudaEvent_t event = nullptr, joined = nullptr;
  void *a = nullptr, *b = nullptr, *pinned = nullptr;
};

// What the program prints under the seed, to its end, however it ends.
std::string Output(void (*program)(), uint64_t seed, int* status) {
  int ends[2];
  EXPECT_EQ(0, pipe(ends));
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    gcap_sim_set_seed(seed);
    program();
    exit(0);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof(part))) > 0;) text.append(part, static_cast<size_t>(got));
  close(ends[0]);
  EXPECT_EQ(child, waitpid(child, status, 0));
  return text;
}

// The first report of a text, without those after it.
std::string First(const std::string& text) {
  const std::string mark = "gcap sim: ";
  const size_t begin = text.rfind(mark, 0) == 0 ? 0 : text.find("\n" + mark);
  if (begin == std::string::npos) return "";
  const size_t end = text.find("\n" + mark, begin + 1);
  return text.substr(begin, end == std::string::npos ? end : end - begin);
}

// --- Broken programs ------------------------------------------------------------------------------------------------

struct Broken {
  const char* name;
  std::vector<const char*> told;  // in the first report
  void (*program)();
};

const Broken kBroken[] = {
    {"MallocInACapture",
     {"broken capture", "R26", "broken by cudaMalloc,", "begun by cudaStreamBeginCapture,", "Remedy: "},
     [] {
       Engine e;
       void* scratch = nullptr;
       e.Begin();
       cudaMalloc(&scratch, kBytes);
       cudaMemsetAsync(e.b, 1, kBytes, e.stream);
       e.EndAndUse();
     }},
    {"SynchronizeInACapture",
     {"broken capture", "R11", "broken by cudaStreamSynchronize,", "begun by cudaStreamBeginCapture,"},
     [] {
       Engine e;
       e.Begin();
       cudaMemsetAsync(e.b, 1, kBytes, e.stream);
       cudaStreamSynchronize(e.stream);
       e.EndAndUse();
     }},
    {"DeviceSynchronizeInACapture",
     {"broken capture", "R12", "broken by cudaDeviceSynchronize,", "begun by cudaStreamBeginCapture,"},
     [] {
       Engine e;
       e.Begin();
       cudaMemsetAsync(e.b, 1, kBytes, e.stream);
       cudaDeviceSynchronize();
       e.EndAndUse();
     }},
    {"QueryOnAnotherThreadBesideAGlobalCapture",
     {"broken capture", "broken by cudaEventQuery,", "begun by cudaStreamBeginCapture,"},
     [] {
       Engine e;
       e.Begin(cudaStreamCaptureModeGlobal);
       cudaMemsetAsync(e.b, 1, kBytes, e.stream);
       std::thread([&] { cudaEventQuery(e.event); }).join();
       e.EndAndUse();
     }},
    {"LegacyStreamBesideABlockingCapture",
     {"broken capture", "R15", "broken by cudaMemsetAsync,", "begun by cudaStreamBeginCapture,"},
     [] {
       Engine e(cudaStreamDefault);
       e.Begin();
       cudaMemsetAsync(e.a, 1, kBytes, nullptr);
       Negate(e.b, e.a, e.stream);
       e.EndAndUse();
     }},
    {"LegacyStreamBesideANonBlockingCapture",
     {"escaped work: memset on stream 0 (legacy stream), outside of the capture of stream 1,",
      "issued by cudaMemsetAsync,", "begun by cudaStreamBeginCapture,"},
     [] {
       Engine e;
       e.Begin();
       cudaMemsetAsync(e.a, 1, kBytes, nullptr);
       Negate(e.b, e.a, e.stream);
       e.EndAndUse();
     }},
    {"MemcpyBesideANonBlockingCapture",
     {"escaped work: memcpy on stream 0 (legacy stream)", "issued by cudaMemcpy,"},
     [] {
       Engine e;
       e.Begin();
       cudaMemsetAsync(e.b, 1, kBytes, e.stream);
       cudaMemcpy(e.pinned, e.b, kBytes, cudaMemcpyDeviceToHost);
       e.EndAndUse();
     }},
    {"UnjoinedFork",
     {"broken capture", "R6", "broken by cudaStreamEndCapture,", "fork to stream 2 by cudaStreamWaitEvent,",
      "last work of stream 2 by cudaMemsetAsync,"},
     [] {
       Engine e;
       e.Begin();
       e.Fork();
       cudaMemsetAsync(e.b, 1, kBytes, e.side);
       e.EndAndUse();
     }},
    {"MissingJoinInAGraph",
     {"race on 64 bytes of device memory", "memset on stream ", "kernel `negate` on stream ", "cudaGraphLaunch",
      "a dependency between the two nodes"},
     [] {
       Engine e;
       e.Begin();
       e.Fork();
       cudaMemsetAsync(e.a, 1, kBytes, e.side);
       Negate(e.b, e.a, e.stream);
       e.Join();
       e.EndAndUse();
     }},
    {"MissingWaitBetweenStreams",
     {"race on 64 bytes of device memory", "memcpy on stream 2", "kernel `negate` on stream 1"},
     [] {
       Engine e;
       cudaMemcpyAsync(e.a, e.pinned, kBytes, cudaMemcpyHostToDevice, e.side);
       Negate(e.b, e.a, e.stream);
       e.Use();
     }},
    // The read was told as one of unwritten bytes: the writer could not run before the host function.
    {"MissingWaitForAWriterBehindAHostFunction",
     {"race on 64 bytes of device memory", "memset on stream 1", "memcpy on stream 2"},
     [] {
       Engine e;
       cudaLaunchHostFunc(
           e.stream, [](void*) {}, nullptr);
       cudaMemsetAsync(e.a, 1, kBytes, e.stream);
       cudaMemcpyAsync(e.pinned, e.a, kBytes, cudaMemcpyDeviceToHost, e.side);
       cudaStreamSynchronize(e.side);
       cudaDeviceSynchronize();
     }},
    {"LegacyStreamAndANonBlockingOne",
     {"race on 64 bytes of device memory", "memset on stream 1: ", "memset on stream 0 (legacy stream): "},
     [] {
       Engine e;
       cudaMemsetAsync(e.a, 1, kBytes, e.stream);
       cudaMemsetAsync(e.a, 2, kBytes, nullptr);
       cudaDeviceSynchronize();
     }},
    {"BakedPointerFreed",
     {"a graph uses memory that was freed after its capture", "freed by cudaFree,", "cudaGraphLaunch"},
     [] {
       Engine e;
       cudaGraph_t graph;
       cudaGraphExec_t exec;
       e.Begin();
       cudaMemsetAsync(e.a, 1, kBytes, e.stream);
       cudaStreamEndCapture(e.stream, &graph);
       cudaGraphInstantiate(&exec, graph, 0);
       cudaFree(e.a);
       cudaGraphLaunch(exec, e.stream);
       cudaDeviceSynchronize();
     }},
    {"PinnedStagingFreed",
     {"a graph uses memory that was freed after its capture", "pinned memory", "freed by cudaFreeHost,"},
     [] {
       Engine e;
       cudaGraph_t graph;
       cudaGraphExec_t exec;
       e.Begin();
       cudaMemcpyAsync(e.b, e.pinned, kBytes, cudaMemcpyHostToDevice, e.stream);
       cudaStreamEndCapture(e.stream, &graph);
       cudaGraphInstantiate(&exec, graph, 0);
       cudaFreeHost(e.pinned);
       cudaGraphLaunch(exec, e.stream);
       cudaDeviceSynchronize();
     }},
    {"LeakOfAGraph",
     {"leak of 1 of the kind \"graph\"", "made by cudaGraphCreate,"},
     [] {
       cudaGraph_t graph;
       cudaGraphCreate(&graph, 0);
     }},
    {"AllocationNodeNobodyFreed",
     {"refused call: a second launch of a graph that did not free its allocation (R30)",
      "allocated by cudaMallocAsync,", "launched by cudaGraphLaunch,", "launched again by cudaGraphLaunch,"},
     [] {
       Engine e;
       void* scratch;
       e.Begin();
       cudaMallocAsync(&scratch, kBytes, e.stream);
       cudaMemsetAsync(scratch, 1, kBytes, e.stream);
       Negate(e.b, scratch, e.stream);
       e.EndAndUse();
     }},
    {"DestroyedEvent",
     {"cudaEventRecord: event 0x", "was destroyed", "made by cudaEventCreate,", "destroyed by cudaEventDestroy,"},
     [] {
       Engine e;
       cudaEventDestroy(e.event);
       e.Fork();
     }},
    {"SecondFree",
     {"refused call: a second free of device memory", "allocated by cudaMalloc,", "freed by cudaFree,",
      "freed again by cudaFree,"},
     [] {
       Engine e;
       cudaFree(e.a);
       cudaFree(e.a);
     }},
    {"UnwrittenMemory",
     {"read of uninitialized memory, 64 bytes of device memory", "kernel `negate` on stream 1"},
     [] {
       Engine e;
       Negate(e.b, e.a, e.stream);
       e.Use();
     }},
};

class FirstCause : public testing::TestWithParam<Broken> {};

TEST_P(FirstCause, IsToldFirstUnderEverySeed) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    int status = 0;
    const std::string text = Output(GetParam().program, seed, &status);
    const std::string first = First(text);
    for (const char* told : GetParam().told) {
      EXPECT_NE(std::string::npos, first.find(told)) << "seed " << seed << ": no '" << told << "' first in\n" << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, FirstCause, testing::ValuesIn(kBroken), [](const auto& info) { return info.param.name; });

// --- Correct programs -----------------------------------------------------------------------------------------------

struct Correct {
  const char* name;
  void (*program)();
};

char g_secret_stub;

const Correct kCorrect[] = {
    {"AFlagRaisedByAHostFunctionAndAwaitedByTheHost",
     [] {
       static std::atomic<int> done{0};
       static char host[kBytes], back[kBytes];
       Engine e;
       cudaMemcpyAsync(e.a, host, kBytes, cudaMemcpyHostToDevice, e.side);
       cudaLaunchHostFunc(
           e.side, [](void*) { done = 1; }, nullptr);
       while (!done) usleep(1000);
       cudaMemcpyAsync(back, e.a, kBytes, cudaMemcpyDeviceToHost, e.stream);
       cudaStreamSynchronize(e.stream);
     }},
    {"ATwinThatDeclaresNothing",
     [] {
       static const size_t arg_bytes[] = {sizeof(int*)};
       const gcap_sim_kernel_t kernel = {
           &g_secret_stub,
           "fill",
           arg_bytes,
           1,
           [](const gcap_sim_launch_t*, void* const* args) { **static_cast<int**>(args[0]) = 7; },
           nullptr};
       gcap_sim_register_kernel(&kernel);
       int *device, host = 0;
       cudaMalloc(reinterpret_cast<void**>(&device), sizeof(int));
       void* args[] = {&device};
       cudaLaunchKernel(&g_secret_stub, dim3(1), dim3(1), args, 0, nullptr);
       cudaMemcpy(&host, device, sizeof(int), cudaMemcpyDeviceToHost);
       if (host != 7) exit(1);
     }},
    {"ACaptureThatIsTriedAndRunEagerlyWhenItBreaks",
     [] {
       Engine e;
       void* scratch = nullptr;
       cudaGraph_t graph = nullptr;
       e.Begin();
       if (cudaMalloc(&scratch, kBytes) == cudaSuccess) exit(1);
       if (cudaStreamEndCapture(e.stream, &graph) == cudaSuccess) exit(2);
       cudaGetLastError();
       cudaMemsetAsync(e.b, 1, kBytes, e.stream);
       e.Use();
     }},
    {"WorkBesideACapture",
     [] {
       Engine e;
       e.Begin();
       cudaMemsetAsync(e.a, 1, kBytes, e.side);
       cudaMemsetAsync(e.b, 1, kBytes, e.stream);
       e.EndAndUse();
     }},
};

class NotStopped : public testing::TestWithParam<Correct> {};

TEST_P(NotStopped, UnderAnySeed) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    int status = 0;
    const std::string text = Output(GetParam().program, seed, &status);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "seed " << seed << "\n" << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, NotStopped, testing::ValuesIn(kCorrect), [](const auto& info) { return info.param.name; });

}  // namespace
