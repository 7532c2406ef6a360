// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The steps of a capture and of an eager run: which nodes belong to which call.

#include "lib/capture/steps.h"

#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/capture/inner.h"
#include "lib/internal/run_trace.h"
#include "test/base/device_work.h"
#include "test/capture/scope_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kBytes = 64;

class CaptureSteps : public ScopeTest {
 protected:
  void SetUp() override {
    ScopeTest::SetUp();
    if (IsSkipped()) return;
    GCAP_EXPECT_CUDA(cudaMalloc(&memory_, kBytes));
  }
  void TearDown() override {
    if (IsSkipped()) return;
    gcap_capture_steps_free(&steps_);
    GCAP_EXPECT_CUDA(cudaFree(memory_));
    EXPECT_EQ(gcap_observe_steps(nullptr), nullptr);
    ScopeTest::TearDown();
  }

  cudaError_t Fill(cudaStream_t stream) const { return cudaMemsetAsync(memory_, 7, kBytes, stream); }

  gcap_capture_t* BeginWithSteps(cudaStream_t stream, uint32_t ledger_calls = kDefaultCalls) {
    gcap_capture_t* capture = Begin(stream, ledger_calls);
    gcap_capture_keep_steps(capture, &steps_);
    return capture;
  }

  void ExpectStep(size_t index, const std::string& operation, gcap_capture_step_kind_t kind, size_t segment,
                  size_t first_node, size_t num_nodes) const {
    SCOPED_TRACE(index);
    ASSERT_LT(index, steps_.count);
    const gcap_capture_step_t& step = steps_.items[index];
    EXPECT_EQ(step.operation, operation);
    EXPECT_EQ(step.kind, kind);
    EXPECT_EQ(step.segment, segment);
    EXPECT_EQ(step.first_node, first_node);
    EXPECT_EQ(step.num_nodes, num_nodes);
  }

  void* memory_ = nullptr;
  gcap_capture_steps_t steps_ = {};
};

TEST_F(CaptureSteps, HaveTheNodesOfTheirCalls) {
  const RawStream stream;
  for (const uint32_t ledger_calls : {kDefaultCalls, 0u}) {
    SCOPED_TRACE(ledger_calls);
    gcap_capture_t* capture = BeginWithSteps(stream.get(), ledger_calls);
    GCAP_EXPECT_CUDA(Fill(stream.get()));
    GCAP_EXPECT_CUDA(Fill(stream.get()));
    gcap_capture_note("two fills", stream.get(), "work.cc", 12);
    cudaStreamCaptureStatus state;
    GCAP_EXPECT_OK(GCAP_CUDA(cudaStreamIsCapturing(stream.get(), &state)));
    GCAP_EXPECT_OK(GCAP_CUDA(Fill(stream.get())));
    const int line = __LINE__ - 1;
    GCAP_EXPECT_CUDA(Fill(stream.get()));
    EXPECT_TRUE(End(capture).ok());
    ASSERT_EQ(steps_.count, 4u);
    ExpectStep(0, "two fills", GCAP_CAPTURE_STEP_CALL, 0, 0, 2);
    EXPECT_STREQ(steps_.items[0].file, "work.cc");
    EXPECT_EQ(steps_.items[0].line, 12);
    EXPECT_EQ(steps_.items[0].stream, stream.get());
    ExpectStep(1, "cudaStreamIsCapturing(stream.get(), &state)", GCAP_CAPTURE_STEP_CALL, 0, 2, 0);
    ExpectStep(2, "Fill(stream.get())", GCAP_CAPTURE_STEP_CALL, 0, 2, 1);
    EXPECT_EQ(steps_.items[2].line, line);
    EXPECT_EQ(steps_.items[2].stream, nullptr);
    ExpectStep(3, "work behind the last noted call", GCAP_CAPTURE_STEP_END, 0, 3, 1);
    EXPECT_FALSE(steps_.is_cut);
    gcap_capture_steps_free(&steps_);
  }
}

TEST_F(CaptureSteps, OfForkedStreamsAreInTheOrderOfTheCalls) {
  const RawStream stream, other;
  const cudaStream_t forked = other.get();
  gcap_capture_t* capture = BeginWithSteps(stream.get());
  GCAP_EXPECT_CUDA(Fill(stream.get()));
  gcap_capture_note("first", stream.get(), "work.cc", 1);
  GCAP_EXPECT_OK(gcap_capture_fork(capture, &forked, 1));
  GCAP_EXPECT_CUDA(Fill(forked));
  gcap_capture_note("second", forked, "work.cc", 2);
  GCAP_EXPECT_CUDA(Fill(stream.get()));
  gcap_capture_note("third", stream.get(), "work.cc", 3);
  GCAP_EXPECT_OK(gcap_capture_join(capture, &forked, 1));
  EXPECT_TRUE(End(capture).ok());
  std::vector<std::string> with_nodes;
  size_t nodes = 0;
  for (size_t i = 0; i < steps_.count; ++i) {
    EXPECT_EQ(steps_.items[i].first_node, nodes) << steps_.items[i].operation;
    nodes += steps_.items[i].num_nodes;
    if (steps_.items[i].num_nodes != 0) with_nodes.push_back(steps_.items[i].operation);
  }
  EXPECT_EQ(with_nodes, (std::vector<std::string>{"first", "second", "third"}));
  EXPECT_EQ(nodes, 3u);
}

TEST_F(CaptureSteps, AHoleEndsASegmentAndItsNodesBeginAnew) {
  const RawStream stream;
  gcap_capture_t* capture = BeginWithSteps(stream.get());
  GCAP_EXPECT_OK(GCAP_CUDA(Fill(stream.get())));
  GCAP_EXPECT_CUDA(Fill(stream.get()));
  cudaGraph_t first = nullptr;
  GCAP_ASSERT_OK(gcap_capture_split(capture, "sort", &first));
  GCAP_EXPECT_OK(GCAP_CUDA(Fill(stream.get())));
  EXPECT_TRUE(End(capture).ok());
  GCAP_EXPECT_CUDA(cudaGraphDestroy(first));
  ASSERT_EQ(steps_.count, 3u);
  ExpectStep(0, "Fill(stream.get())", GCAP_CAPTURE_STEP_CALL, 0, 0, 1);
  ExpectStep(1, "hole 'sort'", GCAP_CAPTURE_STEP_HOLE, 0, 1, 1);
  EXPECT_EQ(steps_.items[1].stream, stream.get());
  ExpectStep(2, "Fill(stream.get())", GCAP_CAPTURE_STEP_CALL, 1, 0, 1);
}

TEST_F(CaptureSteps, BeyondTheMaximumAreLeftOutAndTheCaptureGoesOn) {
  const RawStream stream;
  gcap_capture_t* capture = BeginWithSteps(stream.get(), /*ledger_calls=*/0);
  GCAP_EXPECT_CUDA(Fill(stream.get()));
  for (unsigned i = 0; i < GCAP_CAPTURE_MAX_STEPS; ++i) gcap_capture_note("a call", nullptr, "work.cc", 1);
  EXPECT_FALSE(steps_.is_cut);
  GCAP_EXPECT_CUDA(Fill(stream.get()));
  gcap_capture_note("one more", nullptr, "work.cc", 2);
  EXPECT_TRUE(steps_.is_cut);
  EXPECT_TRUE(End(capture).ok());
  EXPECT_EQ(steps_.count, GCAP_CAPTURE_MAX_STEPS);
  EXPECT_TRUE(steps_.is_cut);
}

TEST_F(CaptureSteps, CutLongTextsAndKeepTheEndOfAPath) {
  const RawStream stream;
  const std::string path = std::string(200, 'd') + "/name.cc", operation(200, 'o');
  gcap_capture_t* capture = BeginWithSteps(stream.get());
  gcap_capture_note(operation.c_str(), nullptr, path.c_str(), 1);
  gcap_capture_note(nullptr, nullptr, nullptr, 0);
  EXPECT_TRUE(End(capture).ok());
  ASSERT_EQ(steps_.count, 2u);
  const std::string text = steps_.items[0].operation, file = steps_.items[0].file;
  EXPECT_EQ(text, operation.substr(0, GCAP_CAPTURE_STEP_TEXT_BYTES - 4) + "...");
  EXPECT_EQ(file, "..." + path.substr(path.size() - (GCAP_CAPTURE_STEP_FILE_BYTES - 4)));
  EXPECT_STREQ(steps_.items[1].operation, "an unnamed call");
  EXPECT_STREQ(steps_.items[1].file, "");
}

TEST_F(CaptureSteps, ACopyIsItsOwn) {
  const RawStream stream;
  gcap_capture_t* capture = BeginWithSteps(stream.get());
  GCAP_EXPECT_OK(GCAP_CUDA(Fill(stream.get())));
  EXPECT_TRUE(End(capture).ok());
  gcap_capture_steps_t copy = {}, of_nothing = {}, nothing = {};
  GCAP_ASSERT_OK(gcap_capture_steps_copy(&steps_, &copy));
  gcap_capture_steps_free(&steps_);
  ASSERT_EQ(copy.count, 1u);
  EXPECT_STREQ(copy.items[0].operation, "Fill(stream.get())");
  GCAP_EXPECT_OK(gcap_capture_steps_copy(&nothing, &of_nothing));
  EXPECT_EQ(of_nothing.count, 0u);
  gcap_capture_steps_free(&copy);
  gcap_capture_steps_free(&of_nothing);
}

// Hands scratch to the work of this thread, as an arena does.
void HandOut(void* address, size_t bytes, cudaStream_t stream) {
  if (gcap_thread_run_trace.hand_out != nullptr) gcap_thread_run_trace.hand_out(address, bytes, stream);
}

TEST_F(CaptureSteps, HaveTheScratchThatTheWorkWasHanded) {
  const RawStream stream;
  HandOut(&steps_, 1, stream.get());
  gcap_capture_t* capture = BeginWithSteps(stream.get());
  HandOut(memory_, kBytes, stream.get());
  GCAP_EXPECT_OK(GCAP_CUDA(Fill(stream.get())));
  HandOut(&steps_, 2, stream.get());
  std::thread([&] { HandOut(&steps_, 3, stream.get()); }).join();  // another thread's
  EXPECT_TRUE(End(capture).ok());
  HandOut(&steps_, 4, stream.get());
  gcap_capture_steps_t copy = {};
  GCAP_ASSERT_OK(gcap_capture_steps_copy(&steps_, &copy));
  ASSERT_EQ(copy.num_blocks, 2u);
  EXPECT_EQ(copy.blocks[0].address, memory_);
  EXPECT_EQ(copy.blocks[0].bytes, kBytes);
  EXPECT_EQ(copy.blocks[0].step, 0u);
  EXPECT_EQ(copy.blocks[1].bytes, 2u);
  EXPECT_EQ(copy.blocks[1].step, 1u);
  gcap_capture_steps_free(&copy);
}

TEST_F(CaptureSteps, OfACaptureWithoutStepsNobodyHearsOfScratch) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream.get());
  EXPECT_EQ(gcap_thread_run_trace.hand_out, nullptr);
  EXPECT_TRUE(End(capture).ok());
}

// --- Eager runs -----------------------------------------------------------------------------------------------------

struct Heard {
  size_t step;
  std::string operation;
  int line;
};

struct Listener {
  gcap_step_observer_t observer = {&Listener::Hear, this, 0, &Listener::HearBlock};
  std::vector<Heard> heard;
  size_t block_bytes = 0;  // of all blocks that were heard of

  static void Hear(void* self, size_t step, const char* operation, const char*, int line, cudaStream_t) {
    static_cast<Listener*>(self)->heard.push_back({step, operation, line});
    cudaStream_t none = nullptr;
    gcap_status_ignore(GCAP_CUDA(cudaStreamQuery(none)));  // a call of its own is no step
    EXPECT_FALSE(gcap_thread_is_capturing());
  }
  static void HearBlock(void* self, void*, size_t bytes, cudaStream_t) {
    static_cast<Listener*>(self)->block_bytes += bytes;
    EXPECT_EQ(gcap_thread_run_trace.hand_out, nullptr) << "what it asks for itself is not the work's";
  }
  std::vector<std::string> operations() const {
    std::vector<std::string> all;
    for (const Heard& one : heard) all.push_back(one.operation);
    return all;
  }
};

using Names = std::vector<std::string>;

TEST_F(CaptureSteps, OfAnEagerRunAreHeardInOrder) {
  const RawStream stream;
  Listener listener;
  GCAP_EXPECT_OK(GCAP_CUDA(Fill(stream.get())));
  EXPECT_EQ(gcap_observe_steps(&listener.observer), nullptr);
  GCAP_EXPECT_OK(GCAP_CUDA(Fill(stream.get())));
  const int line = __LINE__ - 1;
  gcap_capture_note("a kernel", stream.get(), "work.cc", 5);
  gcap_observe_hole("sort", stream.get());
  EXPECT_EQ(gcap_observe_steps(nullptr), &listener.observer);
  GCAP_EXPECT_OK(GCAP_CUDA(Fill(stream.get())));
  gcap_observe_hole("nobody hears", stream.get());
  EXPECT_EQ(listener.operations(), (Names{"Fill(stream.get())", "a kernel", "hole 'sort'"}));
  EXPECT_EQ(listener.observer.num_steps, 3u);
  for (size_t i = 0; i < listener.heard.size(); ++i) EXPECT_EQ(listener.heard[i].step, i);
  EXPECT_EQ(listener.heard[0].line, line);
  EXPECT_EQ(listener.heard[1].line, 5);
  stream.Synchronize();
}

TEST_F(CaptureSteps, AnObserverHearsOfScratchOutsideOfScopes) {
  const RawStream stream;
  Listener listener;
  gcap_observe_steps(&listener.observer);
  HandOut(memory_, 5, stream.get());
  gcap_capture_t* capture = Begin(stream.get());
  HandOut(memory_, 100, stream.get());
  EXPECT_TRUE(End(capture).ok());
  HandOut(memory_, 2, stream.get());
  gcap_observe_steps(nullptr);
  HandOut(memory_, 1000, stream.get());
  EXPECT_EQ(listener.block_bytes, 7u);
}

TEST_F(CaptureSteps, AnObserverChangesNothingElse) {
  const RawStream stream;
  Listener listener;
  gcap_observe_steps(&listener.observer);
  EXPECT_FALSE(gcap_thread_is_capturing());
  EXPECT_EQ(gcap_capture_current(), nullptr);
  const Outcome failed(GCAP_CUDA(cudaStreamWaitEvent(stream.get(), nullptr, 0)));
  EXPECT_FALSE(failed.ok());
  std::thread([&] { GCAP_EXPECT_OK(GCAP_CUDA(Fill(stream.get()))); }).join();  // another thread's
  gcap_observe_steps(nullptr);
  EXPECT_EQ(listener.operations(), (Names{"cudaStreamWaitEvent(stream.get(), nullptr, 0)"}));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  stream.Synchronize();
}

TEST_F(CaptureSteps, AScopeHasItsCallsToItselfAndGivesTheObserverBack) {
  const RawStream stream;
  Listener listener;
  gcap_observe_steps(&listener.observer);
  gcap_capture_t* refused = nullptr;
  EXPECT_FALSE(Outcome(gcap_capture_begin(nullptr, nullptr, &refused)).ok());
  GCAP_EXPECT_OK(GCAP_CUDA(Fill(stream.get())));
  EXPECT_EQ(listener.heard.size(), 1u);
  gcap_capture_t* capture = BeginWithSteps(stream.get());
  listener.heard.clear();
  GCAP_EXPECT_OK(GCAP_CUDA(Fill(stream.get())));
  EXPECT_EQ(listener.heard.size(), 0u);
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  EXPECT_EQ(listener.heard.size(), 0u);
  GCAP_EXPECT_OK(GCAP_CUDA(cudaGraphDestroy(graph)));
  gcap_observe_steps(nullptr);
  EXPECT_EQ(listener.operations(), (Names{"cudaGraphDestroy(graph)"}));
  EXPECT_EQ(steps_.count, 1u);
}

TEST_F(CaptureSteps, AnObserverThatComesInAScopeHearsBehindIt) {
  const RawStream stream;
  Listener listener;
  gcap_capture_t* capture = Begin(stream.get(), /*ledger_calls=*/0);
  gcap_observe_steps(&listener.observer);
  GCAP_EXPECT_OK(GCAP_CUDA(Fill(stream.get())));
  EXPECT_TRUE(End(capture).ok());
  EXPECT_EQ(listener.heard.size(), 0u);
  GCAP_EXPECT_OK(GCAP_CUDA(Fill(stream.get())));
  EXPECT_EQ(listener.heard.size(), 1u);
  gcap_observe_steps(nullptr);
  stream.Synchronize();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
