// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// One seed and the same calls are one interleaving, of one thread or of several that take turns. Complete call logs are
// compared, each taken in a process of its own, where all numbers start from the beginning.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

#ifdef __SANITIZE_THREAD__
constexpr int kRuns = 4;  // a process takes ten times as long under the sanitizer
#else
constexpr int kRuns = 20;
#endif

// What `program` writes to the log under the seed, in a process of its own; "failed" when that does not end well.
std::string LogOf(uint64_t seed, void (*program)(size_t), size_t num_threads) {
  int ends[2];
  EXPECT_EQ(0, pipe(ends));
  pid_t child = fork();
  if (child == 0) {
    FILE* out = fdopen(ends[1], "w");
    gcap_sim_set_seed(seed);
    gcap_sim_set_log(
        "*", [](void* file, const char* line) { fprintf(static_cast<FILE*>(file), "%s\n", line); }, out);
    program(num_threads);
    fflush(out);
    _exit(testing::Test::HasFailure());
  }
  close(ends[1]);
  std::string log;
  char block[4096];
  ssize_t length;
  while ((length = read(ends[0], block, sizeof(block))) > 0) log.append(block, static_cast<size_t>(length));
  close(ends[0]);
  int status;
  EXPECT_EQ(child, waitpid(child, &status, 0));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? log : "failed";
}

size_t Lines(const std::string& log) {
  size_t lines = 0;
  for (char c : log) lines += c == '\n';
  return lines;
}

struct Shared {
  unsigned char* pinned;
  cudaEvent_t event;
  std::vector<size_t> order;  // no lock: only one thread of the group runs at a time
};

// One thread's work: streams, events shared with the others, queries, host functions, a capture.
void Work(Shared* shared, size_t index) {
  gcap_sim_turns_join(index);
  cudaStream_t stream;
  EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < 10; ++i) {
    shared->order.push_back(index);
    EXPECT_EQ(cudaSuccess, cudaMemsetAsync(shared->pinned + index, i, 1, stream));
    EXPECT_EQ(cudaSuccess, cudaEventRecord(shared->event, stream));
    EXPECT_EQ(cudaSuccess, cudaLaunchHostFunc(
                               stream,
                               [](void* value) {
                                 int device;
                                 ++*static_cast<unsigned char*>(value);
                                 EXPECT_EQ(cudaErrorNotPermitted, cudaGetDevice(&device));
                               },
                               shared->pinned + index));
    EXPECT_EQ(cudaSuccess, cudaStreamWaitEvent(stream, shared->event, 0));
    // How often this is not ready yet, the log shows.
    while (cudaStreamQuery(stream) == cudaErrorNotReady) continue;
  }
  cudaGraph_t graph;
  EXPECT_EQ(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(shared->pinned + index, 1, 1, stream));
  EXPECT_EQ(cudaSuccess, cudaStreamEndCapture(stream, &graph));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
  gcap_sim_turns_leave();
}

void Program(size_t num_threads) {
  Shared shared = {};
  EXPECT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&shared.pinned), num_threads));
  EXPECT_EQ(cudaSuccess, cudaEventCreate(&shared.event));
  gcap_sim_turns_begin(num_threads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < num_threads; ++i) threads.emplace_back(Work, &shared, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(10 * num_threads, shared.order.size());
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(shared.event));
  EXPECT_EQ(cudaSuccess, cudaFreeHost(shared.pinned));
  EXPECT_EQ(0u, gcap_sim_live(nullptr));
}

class TurnsOf : public testing::TestWithParam<size_t> {};

TEST_P(TurnsOf, OneSeedIsOneLog) {
  const std::string first = LogOf(5, Program, GetParam());
  ASSERT_NE("failed", first);
  ASSERT_GT(Lines(first), 60 * GetParam());
  for (int i = 1; i < kRuns; ++i) ASSERT_TRUE(first == LogOf(5, Program, GetParam())) << "run " << i;
}

TEST_P(TurnsOf, OtherSeedsAreOtherLogs) {
  const std::string first = LogOf(5, Program, GetParam());
  for (uint64_t seed = 6; seed < 10; ++seed) {
    const std::string other = LogOf(seed, Program, GetParam());
    ASSERT_NE("failed", other);
    EXPECT_TRUE(first != other) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, TurnsOf, testing::Values(2, 4, 8));

// A single thread, with host functions in streams and graphs and destructors of user objects, and no turns.
void Alone(size_t) {
  unsigned char* pinned;
  cudaStream_t streams[2];
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaUserObject_t object;
  auto look = [](void*) {
    int device;
    EXPECT_EQ(cudaErrorNotPermitted, cudaGetDevice(&device));
  };
  EXPECT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&pinned), 2));
  for (cudaStream_t& s : streams) EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  EXPECT_EQ(cudaSuccess, cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cudaSuccess, cudaLaunchHostFunc(streams[0], look, nullptr));
  EXPECT_EQ(cudaSuccess, cudaStreamEndCapture(streams[0], &graph));
  EXPECT_EQ(cudaSuccess, cudaUserObjectCreate(&object, nullptr, look, 1, cudaUserObjectNoDestructorSync));
  EXPECT_EQ(cudaSuccess, cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  EXPECT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(cudaSuccess, cudaLaunchHostFunc(streams[i % 2], look, nullptr));
    EXPECT_EQ(cudaSuccess, cudaGraphLaunch(exec, streams[1]));
    for (int k = 0; k < 4; ++k) EXPECT_EQ(cudaSuccess, cudaMemsetAsync(pinned + k % 2, i, 1, streams[k % 2]));
    // How far the queues have come, the log shows by the answers.
    for (int k = 0; k < 4; ++k) (void)cudaStreamQuery(streams[k % 2]);
  }
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  while (cudaStreamQuery(streams[1]) == cudaErrorNotReady) continue;
  for (cudaStream_t s : streams) EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(s));
  for (cudaStream_t s : streams) EXPECT_EQ(cudaSuccess, cudaStreamDestroy(s));
  EXPECT_EQ(cudaSuccess, cudaFreeHost(pinned));
}

TEST(OneThread, NeedsNoTurnsForOneLogASeed) {
  const std::string first = LogOf(3, Alone, 1);
  ASSERT_NE("failed", first);
  for (int i = 1; i < kRuns; ++i) ASSERT_TRUE(first == LogOf(3, Alone, 1)) << "run " << i;
  EXPECT_TRUE(first != LogOf(4, Alone, 1));
}

}  // namespace
