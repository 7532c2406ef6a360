// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Copies and forks under many schedules: what is ordered is so in all of them, what is not is found to race, and the
// branches of a replayed graph run in either order.

#include <cstring>
#include <set>
#include <string>

#include "gcap/runtime.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/ep/test_ep.h"
#include "test/support/expect_status.h"
#include "test/support/replays.h"
#include "test/support/runs.h"

namespace {

using gcap::testing::GraphOptions;
using gcap::testing::Outcome;

constexpr uint64_t kSeeds = 100;
constexpr size_t kBytes = 256;

// How many of the trial's expectations fail, under any schedule.
void ExpectRightUnderEverySchedule(int (*trial)(void*), void* user) {
  uint64_t failing = 0;
  EXPECT_EQ(gcap_sim_explore(trial, user, 0, kSeeds, &failing), 0) << "seed " << failing;
}

// A runtime and two pieces of device memory, made and ended in one go. Counts what is wrong.
class Scene {
 public:
  explicit Scene(bool copies_in_default_stream) {
    gcap_options_t options = GraphOptions(1);
    options.do_copy_in_default_stream = copies_in_default_stream;
    Expect(gcap_runtime_create(&options, &runtime_));
    for (unsigned char** memory : {&x_, &y_}) {
      Expect(cudaMalloc(reinterpret_cast<void**>(memory), kBytes) == cudaSuccess);
    }
  }
  int End() {
    Expect(gcap_runtime_destroy(runtime_));
    for (unsigned char* memory : {x_, y_}) Expect(cudaFree(memory) == cudaSuccess);
    return wrong_;
  }
  void Expect(bool right) { wrong_ += right ? 0 : 1; }
  void Expect(gcap_status_t status) { Expect(Outcome(status).ok()); }

  gcap_runtime_t* runtime() const { return runtime_; }
  unsigned char* x() const { return x_; }
  unsigned char* y() const { return y_; }

  // x = the value in all bytes, then y = x. Does not wait.
  void FillAndCopy(unsigned char value) {
    gcap_run_resources_t run;
    Expect(BeginRun(runtime_, GCAP_GRAPH_ID_NONE));
    Expect(gcap_runtime_get_resources(runtime_, &run));
    const cudaStream_t stream = gcap_stream_handle(run.stream);
    Expect(cudaMemsetAsync(x_, value, kBytes, stream) == cudaSuccess);
    Expect(cudaMemcpyAsync(y_, x_, kBytes, cudaMemcpyDeviceToDevice, stream) == cudaSuccess);
    Expect(EndRun(runtime_, nullptr, /*synchronize=*/false));
  }

  // Copies y to the host, without a stream, and expects the value.
  void ExpectCopied(unsigned char value) {
    unsigned char host[kBytes] = {};
    const gcap_tensor_t from = {y_, GCAP_DTYPE_BOOL, 1, {kBytes}}, to = {host, GCAP_DTYPE_BOOL, 1, {kBytes}};
    const gcap_copy_t copy = {&from, {GCAP_MEMORY_DEVICE, 0}, &to, {GCAP_MEMORY_HOST, 0}, nullptr};
    Expect(gcap_runtime_copy_tensors(runtime_, &copy, 1));
    unsigned char expected[kBytes];
    std::memset(expected, value, kBytes);
    Expect(std::memcmp(host, expected, kBytes) == 0);
  }

 private:
  int wrong_ = 0;
  gcap_runtime_t* runtime_ = nullptr;
  unsigned char *x_ = nullptr, *y_ = nullptr;
};

// --- Copies ---------------------------------------------------------------------------------------------------------

struct Order {
  bool in_default_stream;
  bool host_waits;
};

int RunThenCopy(void* user) {
  const Order& order = *static_cast<Order*>(user);
  Scene scene(order.in_default_stream);
  for (unsigned char value : {7, 8}) {
    scene.FillAndCopy(value);
    if (order.host_waits) scene.Expect(gcap_runtime_synchronize(scene.runtime()));
    scene.ExpectCopied(value);
  }
  return scene.End();
}

TEST(RuntimeSchedules, ACopyInTheDefaultStreamIsOrderedAfterRuns) {
  Order order = {true, false};
  ExpectRightUnderEverySchedule(RunThenCopy, &order);
}

TEST(RuntimeSchedules, ACopyOutsideTheDefaultStreamRacesUnlessTheHostOrdersIt) {
  Order order = {false, false};
  EXPECT_EQ(gcap_sim_explore(RunThenCopy, &order, 0, 1, nullptr), 1);
  ASSERT_NE(gcap_sim_report(0), nullptr);
  EXPECT_NE(std::string(gcap_sim_report(0)).find("race"), std::string::npos) << gcap_sim_report(0);
  order.host_waits = true;
  ExpectRightUnderEverySchedule(RunThenCopy, &order);
}

// --- Forks ----------------------------------------------------------------------------------------------------------

struct Branches {
  Scene* scene;
  std::string order;  // in which the branches ran
};

void NoteA(void* user) { static_cast<Branches*>(user)->order += 'a'; }
void NoteB(void* user) { static_cast<Branches*>(user)->order += 'b'; }

// x is filled, each branch copies a half of it to y by way of scratch of its own, and the run fills x again.
gcap_status_t Work(void* user, const gcap_run_resources_t* run) {
  Branches* const branches = static_cast<Branches*>(user);
  Scene* const scene = branches->scene;
  const size_t half = kBytes / 2;
  const cudaStream_t origin = gcap_stream_handle(run->stream);
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(scene->x(), 5, kBytes, origin)));
  gcap_stream_t* streams[2];
  GCAP_RETURN_IF_ERROR(gcap_runtime_fork(scene->runtime(), 2, streams));
  for (int i : {0, 1}) {
    void* block = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, half, streams[i], &block));
    const cudaStream_t stream = gcap_stream_handle(streams[i]);
    GCAP_RETURN_IF_ERROR(
        GCAP_CUDA(cudaMemcpyAsync(block, scene->x() + i * half, half, cudaMemcpyDeviceToDevice, stream)));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaLaunchHostFunc(stream, i == 0 ? NoteA : NoteB, branches)));
    GCAP_RETURN_IF_ERROR(
        GCAP_CUDA(cudaMemcpyAsync(scene->y() + i * half, block, half, cudaMemcpyDeviceToDevice, stream)));
    GCAP_RETURN_IF_ERROR(gcap_scratch_free(run->scratch, block));
  }
  GCAP_RETURN_IF_ERROR(gcap_runtime_join(scene->runtime()));
  return GCAP_CUDA(cudaMemsetAsync(scene->x(), 0, kBytes, origin));
}

// An eager run, a capture, and two replays, of which none is waited for.
int RunBranches(void* orders) {
  Scene scene(/*copies_in_default_stream=*/true);
  Branches branches = {&scene, ""};
  for (int run = 0; run < 4; ++run) scene.Expect(RunOnRuntime(scene.runtime(), 0, Work, &branches, false));
  scene.ExpectCopied(5);
  const gcap_graph_info_t info = GraphInfo(scene.runtime(), 0);
  scene.Expect(info.captures == 1 && info.replays == 3);
  static_cast<std::set<std::string>*>(orders)->insert(branches.order.substr(branches.order.size() - 2));
  return scene.End();
}

TEST(RuntimeSchedules, ForkedBranchesAreOrderedWithTheRunAndNotWithEachOther) {
  std::set<std::string> orders;  // of the last replay
  ExpectRightUnderEverySchedule(RunBranches, &orders);
  EXPECT_EQ(orders, std::set<std::string>({"ab", "ba"}));
}

}  // namespace
