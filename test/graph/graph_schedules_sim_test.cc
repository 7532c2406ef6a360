// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The graph manager under many schedules, with everything in flight: captures, replays on two streams, updates in
// place, evictions, releases from another thread. Each run must read its own input, and what a graph retains must be
// there whenever one of its launches runs.

#include <atomic>
#include <list>
#include <thread>

#include "gcap/graph.h"
#include "gcap/log.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr uint64_t kSchedules = 500;
constexpr size_t kBytes = 32;
constexpr int kRuns = 16;

// What a graph retains: a node of it looks whether it is there.
struct Token {
  std::atomic<bool> alive{true};
  std::atomic<int>* violations;
};

// Copies `from` to `to`, both on the device. What a run captures.
struct Copy {
  const unsigned char* from;
  unsigned char* to;
  std::list<Token>* tokens;
  std::atomic<int>* violations;

  static gcap_status_t Issue(void* user, cudaStream_t stream) {
    const Copy* copy = static_cast<Copy*>(user);
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(copy->to, copy->from, kBytes, cudaMemcpyDeviceToDevice, stream)));
    if (!gcap_thread_is_capturing()) return nullptr;
    copy->tokens->emplace_back();
    Token* token = &copy->tokens->back();
    token->violations = copy->violations;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaLaunchHostFunc(
        stream,
        [](void* user_token) {
          const Token* seen = static_cast<Token*>(user_token);
          if (!seen->alive) ++*seen->violations;
        },
        token)));
    return gcap_capture_retain(
        gcap_capture_current(), [](void* user_token) { static_cast<Token*>(user_token)->alive = false; },
        /*bytes=*/nullptr, token);
  }
};

class Scene {
 public:
  Scene() {
    Expect(cudaStreamCreateWithFlags(&a_, cudaStreamNonBlocking) == cudaSuccess);
    Expect(cudaStreamCreateWithFlags(&b_, cudaStreamNonBlocking) == cudaSuccess);
    for (unsigned char** memory : {&input_, &first_, &second_}) {
      Expect(cudaMalloc(reinterpret_cast<void**>(memory), kBytes) == cudaSuccess);
      Expect(cudaMemsetAsync(*memory, 0, kBytes, a_) == cudaSuccess);
    }
    Expect(cudaMallocHost(reinterpret_cast<void**>(&results_), kRuns * kBytes) == cudaSuccess);
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    options.min_num_runs_before_capture = 0;
    options.max_graphs = 2;
    Expect(gcap_graph_manager_create(&options, &manager_));
    to_first_ = {input_, first_, &tokens_, &violations_};
    to_second_ = {input_, second_, &tokens_, &violations_};
  }

  // One run of the id: sets its input before it and keeps its output after it, in the order of stream a. On stream b
  // the graph is ordered by the manager alone.
  void Run(int id, Copy* copy, bool on_b = false) {
    const int value = ++runs_;
    Expect(cudaMemsetAsync(input_, value, kBytes, a_) == cudaSuccess);
    if (on_b) {
      Expect(ReplayOn(manager_, id, b_, /*synchronize=*/false));
    } else {
      Expect(RunPlain(manager_, id, a_, Copy::Issue, copy, /*synchronize=*/false));
    }
    unsigned char* result = results_ + (value - 1) * kBytes;
    Expect(cudaMemcpyAsync(result, copy->to, kBytes, cudaMemcpyDeviceToHost, a_) == cudaSuccess);
  }

  void Play() {
    Run(0, &to_first_);
    Run(0, &to_first_);
    Run(0, &to_first_, /*on_b=*/true);
    Run(0, &to_first_);
    Expect(gcap_graph_manager_recapture(manager_, 0));
    Run(0, &to_second_);  // updates in place what is in flight
    Run(0, &to_second_, /*on_b=*/true);
    Expect(Info(0).updates == 1);
    Run(1, &to_first_);
    Run(2, &to_first_);  // evicts 0, which is in flight
    Expect(Info(0).evictions == 1 && Info(0).state == GCAP_GRAPH_READY);
    Run(1, &to_first_, /*on_b=*/true);
    std::thread releaser([this] { Expect(gcap_graph_manager_release(manager_, 1)); });
    Run(2, &to_first_);
    Run(2, &to_first_, /*on_b=*/true);
    releaser.join();
    Run(0, &to_second_);  // captured anew
    Run(0, &to_first_);   // a replay: its output stays in second_
  }

  int Finish() {
    Expect(gcap_graph_manager_destroy(manager_));
    Expect(cudaStreamSynchronize(a_) == cudaSuccess);
    Expect(cudaStreamSynchronize(b_) == cudaSuccess);
    for (int run = 0; run < runs_ - 1; ++run) {
      for (size_t i = 0; i < kBytes; ++i) Expect(results_[run * kBytes + i] == run + 1);
    }
    // The last run replayed what was captured to second_, whatever the caller meant.
    Expect(results_[(runs_ - 1) * kBytes] == runs_ - 2);
    for (const Token& token : tokens_) Expect(!token.alive);
    Expect(violations_ == 0);
    for (unsigned char* memory : {input_, first_, second_}) Expect(cudaFree(memory) == cudaSuccess);
    Expect(cudaFreeHost(results_) == cudaSuccess);
    for (cudaStream_t stream : {a_, b_}) Expect(cudaStreamDestroy(stream) == cudaSuccess);
    return wrong_;
  }

 private:
  void Expect(bool right) { wrong_ += right ? 0 : 1; }
  void Expect(gcap_status_t status) {
    const Outcome outcome(status);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    Expect(outcome.ok());
  }
  gcap_graph_info_t Info(int id) const {
    gcap_graph_info_t info;
    gcap_graph_manager_get_info(manager_, id, &info);
    return info;
  }

  std::atomic<int> wrong_{0};
  std::atomic<int> violations_{0};
  std::list<Token> tokens_;
  cudaStream_t a_ = nullptr;
  cudaStream_t b_ = nullptr;
  unsigned char* input_ = nullptr;
  unsigned char* first_ = nullptr;
  unsigned char* second_ = nullptr;
  unsigned char* results_ = nullptr;
  gcap_graph_manager_t* manager_ = nullptr;
  Copy to_first_{};
  Copy to_second_{};
  int runs_ = 0;
};

int PlayScene(void*) {
  Scene scene;
  scene.Play();
  return scene.Finish();
}

TEST(GraphSchedules, EveryRunReadsItsOwnInputAndNothingIsLetGoTooEarly) {
  uint64_t failing = 0;
  EXPECT_EQ(gcap_sim_explore(PlayScene, nullptr, 0, kSchedules, &failing), 0) << "seed " << failing;
}

}  // namespace
}  // namespace testing
}  // namespace gcap
