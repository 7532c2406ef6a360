// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Time that passes by itself: only while the program does nothing, so that a slow machine changes no interleaving; and
// host functions that wait for their caller, who must not wait for them for ever.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Silence : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream_));
  }
  void Launch(cudaHostFn_t function, void* data) {
    ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(stream_, function, data));
  }
  cudaStream_t stream_;
};

void Set(void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; }

TEST_F(Silence, LetsAHostFunctionRun) {
  std::atomic<bool> done{false};
  Launch(Set, &done);
  while (!done) std::this_thread::sleep_for(milliseconds(10));
}

TEST_F(Silence, IsNotWhatABusyProgramShows) {
  std::atomic<bool> done{false};
  Launch(Set, &done);
  for (Clock::time_point end = Clock::now() + milliseconds(500); Clock::now() < end;) continue;
  EXPECT_FALSE(done);
}

TEST_F(Silence, OfACallerThatSpinsEndsAllTheSame) {
  std::atomic<bool> done{false};
  Launch(Set, &done);
  while (!done) continue;
}

// Without a host function: the copy's target is pinned memory, which the program polls.
TEST_F(Silence, LetsACopyRunThatIsPolled) {
  char* device = nullptr;
  volatile char* flag = nullptr;
  ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&device), 1));
  ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(const_cast<char**>(&flag)), 1));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device, 1, 1, stream_));
  *flag = 0;
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(const_cast<char*>(flag), device, 1, cudaMemcpyDeviceToHost, stream_));
  while (*flag == 0) continue;
  ASSERT_EQ(cudaSuccess, cudaFree(device));
  ASSERT_EQ(cudaSuccess, cudaFreeHost(const_cast<char*>(flag)));
}

// A thread that gets a hundredth of a processor.
class Starved {
 public:
  explicit Starved(std::function<void()> work) {
    std::thread([this, work = std::move(work)] {
      Share();
      work();
    }).join();
    if (hog_ > 0) {
      kill(hog_, SIGKILL);
      waitpid(hog_, nullptr, 0);
    }
  }

 private:
  // A child spins on the one processor that both may use, and this thread gives way to it.
  void Share() {
    cpu_set_t all, one;
    ASSERT_EQ(0, sched_getaffinity(0, sizeof(all), &all));
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; ++i) {
      if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    }
    ASSERT_EQ(0, sched_setaffinity(0, sizeof(one), &one));
    hog_ = fork();
    ASSERT_GE(hog_, 0);
    if (hog_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (std::atomic<bool> spins{true}; spins;) continue;
    }
    ASSERT_EQ(0, setpriority(PRIO_PROCESS, 0, 19));  // of this thread alone
  }

  pid_t hog_ = -1;
};

// By the clock it would be silent: on a loaded machine the interleaving was another one.
TEST_F(Silence, IsNotWhatAProgramShowsThatGetsNoProcessor) {
  const auto spin = [](milliseconds time) {
    for (Clock::time_point end = Clock::now() + time; Clock::now() < end;) continue;
  };
  char* device = nullptr;
  char* flag = nullptr;
  ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&device), 1));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device, 1, 1, stream_));
  ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&flag), 1));
  *flag = 0;
  Starved([&] {
    ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(flag, device, 1, cudaMemcpyDeviceToHost, stream_));
    spin(milliseconds(1800));
    EXPECT_EQ(0, *flag) << "a copy ran by itself";
    std::atomic<bool> done{false};
    Launch(Set, &done);
    spin(milliseconds(2500));
    EXPECT_FALSE(done) << "a host function ran by itself";
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  });
  ASSERT_EQ(cudaSuccess, cudaFree(device));
  ASSERT_EQ(cudaSuccess, cudaFreeHost(flag));
}

struct Gate {
  std::atomic<bool> entered{false};
  std::atomic<bool> open{false};
};

TEST_F(Silence, CallerGoesOnBesideAHostFunctionThatWaitsForIt) {
  Gate gate;
  Launch(
      [](void* p) {
        Gate* gate = static_cast<Gate*>(p);
        gate->entered = true;
        while (!gate->open) std::this_thread::sleep_for(milliseconds(1));
      },
      &gate);
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(stream_));
  EXPECT_TRUE(gate.entered);
  gate.open = true;
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
}

TEST_F(Silence, CallerGoesOnBesideAHostFunctionThatSpins) {
  Gate gate;
  Launch(
      [](void* p) {
        Gate* gate = static_cast<Gate*>(p);
        gate->entered = true;
        while (!gate->open) continue;
      },
      &gate);
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(stream_));
  EXPECT_TRUE(gate.entered);
  gate.open = true;
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
}

TEST_F(Silence, CallerWaitsForAHostFunctionThatTakesItsTime) {
  std::atomic<bool> done{false};
  Launch(
      [](void* flag) {
        for (Clock::time_point end = Clock::now() + milliseconds(300); Clock::now() < end;) continue;
        Set(flag);
      },
      &done);
  const cudaError_t early = cudaStreamQuery(stream_);  // its answer may come before the function, its end does not
  EXPECT_TRUE(early == cudaSuccess || early == cudaErrorNotReady) << early;
  EXPECT_TRUE(done);
  EXPECT_EQ(cudaSuccess, cudaStreamQuery(stream_));
}

// The thread of host functions does not live on in the child. Was: under a leak checker such a child ended with 23.
TEST(SilenceFork, AChildOfAProcessWithAHostThreadEndsWithoutALeak) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::atomic<bool> done{false};
  ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(stream, Set, &done));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream));
  ASSERT_EQ(cudaSuccess, cudaStreamDestroy(stream));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) exit(0);
  int status = -1;
  EXPECT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
}

}  // namespace
