// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Four threads use all of the simulator at random, each on memory of its own and on handles that all share. Made for
// the thread sanitizer; without it the answers and the handles left are checked.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

#ifdef __SANITIZE_THREAD__
constexpr int kSteps = 4000;
#else
constexpr int kSteps = 1000;
#endif
constexpr size_t kThreads = 4;
constexpr size_t kBytes = 512;

void KernelStub() {}

struct Shared {
  cudaStream_t streams[3];  // for queries, synchronisation and records; work goes to streams of the threads' own
  cudaEvent_t events[4];
  cudaGraphExec_t exec;
  std::atomic<int> host_functions{0};
  std::atomic<int> destructors{0};
  std::atomic<int> lines{0};
};

void CountHostFunction(void* shared) { static_cast<Shared*>(shared)->host_functions += 1; }
void CountDestructor(void* shared) { static_cast<Shared*>(shared)->destructors += 1; }

class Worker {
 public:
  Worker(Shared* shared, unsigned seed) : shared_(shared), random_(seed) {}

  void Run() {
    Expect(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    Expect(cudaMalloc(reinterpret_cast<void**>(&device_), kBytes));
    Expect(cudaMallocHost(reinterpret_cast<void**>(&pinned_), kBytes));
    Expect(cudaMemsetAsync(device_, 0, kBytes, stream_));
    for (int i = 0; i < kSteps; ++i) Step();
    Expect(cudaStreamSynchronize(stream_));
    Expect(cudaStreamSynchronize(cudaStreamPerThread));
    Expect(cudaFree(device_));
    Expect(cudaFreeHost(pinned_));
    Expect(cudaStreamDestroy(stream_));
  }

 private:
  void Expect(cudaError_t code) { EXPECT_EQ(cudaSuccess, code); }
  size_t Below(size_t bound) { return random_() % bound; }
  cudaEvent_t Event() { return shared_->events[Below(4)]; }

  void Step() {
    switch (Below(14)) {
      case 0: Expect(cudaMemsetAsync(device_, 1, kBytes, stream_)); break;
      case 1: Expect(cudaMemcpyAsync(pinned_, device_, kBytes, cudaMemcpyDeviceToHost, stream_)); break;
      case 2: Launch(stream_); break;
      case 3: Expect(cudaLaunchHostFunc(stream_, CountHostFunction, shared_)); break;
      case 4: Expect(cudaEventRecord(Event(), Below(2) ? stream_ : shared_->streams[Below(3)])); break;
      case 5: Expect(cudaStreamWaitEvent(Below(2) ? stream_ : shared_->streams[Below(3)], Event(), 0)); break;
      case 6: Look(); break;
      case 7: Expect(cudaStreamSynchronize(shared_->streams[Below(3)])); break;
      case 8: Expect(cudaEventSynchronize(Event())); break;
      case 9: Allocate(); break;
      case 10: Capture(); break;
      case 11: Expect(cudaGraphLaunch(shared_->exec, shared_->streams[Below(3)])); break;
      case 12: CreateAndDestroy(); break;
      case 13: UseTheSimulator(); break;
    }
  }

  void Launch(cudaStream_t stream) {
    Expect(cudaLaunchKernel(reinterpret_cast<const void*>(&KernelStub), dim3(1), dim3(1), nullptr, 0, stream));
  }

  void Look() {
    cudaError_t code = Below(2) ? cudaStreamQuery(stream_) : cudaEventQuery(Event());
    EXPECT_TRUE(code == cudaSuccess || code == cudaErrorNotReady) << code;
    cudaPointerAttributes attributes;
    Expect(cudaPointerGetAttributes(&attributes, device_));
    Expect(cudaGetLastError());
  }

  void Allocate() {
    void *now, *ordered;
    Expect(cudaMalloc(&now, kBytes));
    Expect(cudaMallocAsync(&ordered, kBytes, stream_));
    Expect(cudaMemsetAsync(ordered, 2, kBytes, stream_));
    Expect(cudaFreeAsync(ordered, stream_));
    Expect(cudaFree(now));
  }

  void Capture() {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaUserObject_t object;
    Expect(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
    Launch(stream_);
    Expect(cudaLaunchHostFunc(stream_, CountHostFunction, shared_));
    Expect(cudaStreamEndCapture(stream_, &graph));
    Expect(cudaUserObjectCreate(&object, shared_, CountDestructor, 1, cudaUserObjectNoDestructorSync));
    Expect(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    Expect(cudaGraphInstantiate(&exec, graph, 0));
    Expect(cudaGraphDestroy(graph));
    Expect(cudaGraphLaunch(exec, stream_));
    Expect(cudaGraphExecDestroy(exec));
    graphs_ += 1;
  }

  void CreateAndDestroy() {
    cudaStream_t stream;
    cudaEvent_t event;
    Expect(cudaStreamCreate(&stream));
    Expect(cudaEventCreate(&event));
    Launch(stream);
    Expect(cudaEventRecord(event, stream));
    Expect(cudaStreamWaitEvent(stream_, event, 0));
    Expect(cudaEventDestroy(event));
    Expect(cudaStreamDestroy(stream));
  }

  void UseTheSimulator() {
    EXPECT_GT(gcap_sim_calls(nullptr), 0u);
    EXPECT_GT(gcap_sim_live("stream"), 0u);
    gcap_sim_set_seed(Below(100));
    if (Below(4) == 0) {
      gcap_sim_set_log(
          "cudaMalloc,captures", [](void* shared, const char*) { static_cast<Shared*>(shared)->lines += 1; }, shared_);
    } else {
      gcap_sim_set_log(nullptr, nullptr, nullptr);
    }
    gcap_sim_fail_nth("cudaGetDeviceCount", 1, cudaErrorUnknown);
    int count;
    (void)cudaGetDeviceCount(&count);  // another thread may have disarmed it
    (void)cudaGetLastError();
  }

  Shared* shared_;
  std::minstd_rand random_;
  cudaStream_t stream_;
  char *device_, *pinned_;

 public:
  int graphs_ = 0;
};

TEST(Stress, FourThreadsUseEverythingAtOnce) {
  Shared shared;
  cudaGraph_t graph;
  gcap_sim_kernel_t twin = {};
  twin.function = reinterpret_cast<const void*>(&KernelStub);
  twin.name = "nothing";
  twin.run = [](const gcap_sim_launch_t*, void* const*) {};
  gcap_sim_register_kernel(&twin);
  for (cudaStream_t& s : shared.streams) ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (cudaEvent_t& e : shared.events) ASSERT_EQ(cudaSuccess, cudaEventCreate(&e));
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&graph, 0));
  ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&shared.exec, graph, 0));
  ASSERT_EQ(cudaSuccess, cudaGraphDestroy(graph));

  std::vector<Worker> workers;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) workers.emplace_back(&shared, static_cast<unsigned>(i + 1));
  for (Worker& worker : workers) threads.emplace_back([&worker] { worker.Run(); });
  for (std::thread& thread : threads) thread.join();
  gcap_sim_set_log(nullptr, nullptr, nullptr);
  gcap_sim_clear_faults();

  ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
  ASSERT_EQ(cudaSuccess, cudaGraphExecDestroy(shared.exec));
  for (cudaStream_t s : shared.streams) ASSERT_EQ(cudaSuccess, cudaStreamDestroy(s));
  for (cudaEvent_t e : shared.events) ASSERT_EQ(cudaSuccess, cudaEventDestroy(e));
  EXPECT_EQ(0u, gcap_sim_live(nullptr));
  int graphs = 0;
  for (const Worker& worker : workers) graphs += worker.graphs_;
  EXPECT_GT(graphs, 0);
  // A destructor may still be running on the thread of host functions.
  while (shared.destructors < graphs) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(graphs, shared.destructors.load());
  EXPECT_GE(shared.host_functions.load(), graphs);
}

}  // namespace
