// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// moving_test.h: what the tests of buffers that move share: memory, runs on buffers, and work made of small kernels.
#ifndef GCAP_TEST_GRAPH_MOVING_TEST_H_
#define GCAP_TEST_GRAPH_MOVING_TEST_H_

#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gcap/graph.h"
#include "gcap/graph_buffers.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/kernels/moving_kernels.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {

constexpr uint32_t kFloats = 64;
constexpr size_t kFloatsBytes = kFloats * sizeof(float);

// Device memory of kFloats floats, all of one value at first. Copies go through the calling thread's own stream.
class Floats {
 public:
  explicit Floats(float value = 0) {
    GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory_), kFloatsBytes));
    Fill(value);
  }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  ~Floats() { GCAP_EXPECT_CUDA(cudaFree(memory_)); }

  void Fill(float value) const {
    const std::vector<float> values(kFloats, value);
    GCAP_EXPECT_CUDA(
        cudaMemcpyAsync(memory_, values.data(), kFloatsBytes, cudaMemcpyHostToDevice, cudaStreamPerThread));
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
  }
  std::vector<float> Read() const {
    std::vector<float> values(kFloats);
    GCAP_EXPECT_CUDA(
        cudaMemcpyAsync(values.data(), memory_, kFloatsBytes, cudaMemcpyDeviceToHost, cudaStreamPerThread));
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    return values;
  }
  // The value that all have; NaN if they differ.
  float value() const {
    const std::vector<float> values = Read();
    for (const float value : values) {
      if (value != values[0]) return NAN;
    }
    return values[0];
  }
  float* get() const { return memory_; }

 private:
  float* memory_ = nullptr;
};

// What issues the work of a run on buffers at these addresses.
using WorkOn = std::function<gcap_status_t(cudaStream_t, void* const*)>;

// What issues the work of a run with all that the work gets, and the gcap_work_t that calls it.
using WorkWith = std::function<gcap_status_t(const gcap_run_resources_t*)>;
inline gcap_status_t IssueWith(void* work, const gcap_run_resources_t* resources) {
  return (*static_cast<const WorkWith*>(work))(resources);
}

template <typename... Args>
gcap_status_t LaunchKernel(cudaStream_t stream, const void* kernel, Args... args) {
  void* pointers[] = {&args...};
  return GCAP_CUDA(cudaLaunchKernel(kernel, dim3(1), dim3(32), pointers, 0, stream));
}

// y = x + addend, on all floats.
inline gcap_status_t AddTo(cudaStream_t stream, const void* x, void* y, uint64_t addend, uint32_t count = kFloats) {
  return LaunchKernel(stream, reinterpret_cast<const void*>(gcap_kernel_add_scalar), x, y, addend, count);
}

// One kernel: buffer 1 = buffer 0 + 1.
inline gcap_status_t AddOne(cudaStream_t stream, void* const* addresses) {
  return AddTo(stream, addresses[0], addresses[1], 1);
}

inline gcap_graph_buffers_t BuffersOf(const std::vector<gcap_graph_buffer_t>& items) {
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.items = items.data();
  buffers.count = items.size();
  return buffers;
}

// Of at most 64 buffers into which the work may have no pointer.
inline gcap_graph_buffers_t UnusedBuffersOf(const std::vector<gcap_graph_buffer_t>& items) {
  static const std::array<bool, 64> all = [] {
    std::array<bool, 64> each;
    each.fill(true);
    return each;
  }();
  gcap_graph_buffers_t buffers = BuffersOf(items);
  buffers.may_be_unused = all.data();
  return buffers;
}

class GraphMoving : public ManagerTest {
 protected:
  static constexpr int kId = 3;

  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Create(0);
  }
  // A manager with other options than a first run that is captured.
  void CreateWith(const std::function<void(gcap_graph_manager_options_t*)>& change) {
    GCAP_ASSERT_OK(gcap_graph_manager_destroy(manager_));
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    options.min_num_runs_before_capture = 0;
    change(&options);
    GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &manager_));
  }

  static gcap_status_t Issue(void* work, cudaStream_t stream, void* const* addresses) {
    return (*static_cast<const WorkOn*>(work))(stream, addresses);
  }
  // A whole run; counts the calls of the work.
  Outcome RunOn(const gcap_graph_buffers_t& buffers, const WorkOn& work, int id = kId) {
    WorkOn counted = [&](cudaStream_t stream, void* const* addresses) {
      ++calls_;
      return work(stream, addresses);
    };
    return Outcome(RunPlainOn(manager_, id, stream_->get(), &buffers, Issue, &counted, true));
  }
  Outcome RunOn(const std::vector<gcap_graph_buffer_t>& items, const WorkOn& work, int id = kId) {
    return RunOn(BuffersOf(items), work, id);
  }
  Outcome RunOn(const Floats& input, const Floats& output, const WorkOn& work = AddOne, int id = kId) {
    return RunOn(Items(input, output), work, id);
  }
  static std::vector<gcap_graph_buffer_t> Items(const Floats& input, const Floats& output) {
    return {{"input", input.get(), kFloatsBytes, 0}, {"output", output.get(), kFloatsBytes, 0}};
  }

  // Opens a run on buffers by hand; it must succeed.
  gcap_graph_run_kind_t BeginOn(const std::vector<gcap_graph_buffer_t>& items, void** addresses, int id = kId) {
    const gcap_graph_buffers_t buffers = BuffersOf(items);
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    GCAP_EXPECT_OK(BeginPlainOn(manager_, id, stream_->get(), &buffers, &kind, addresses));
    return kind;
  }

  // Replays with these addresses.
  gcap_status_t ReplayAt(const std::vector<void*>& addresses, int id = kId) {
    std::vector<gcap_graph_buffer_t> items;
    for (void* address : addresses) items.push_back({nullptr, address, kFloatsBytes, sizeof(float)});
    const gcap_graph_buffers_t buffers = BuffersOf(items);
    gcap_run_t run = ReplayOf(id, /*synchronize=*/true);
    run.buffers = &buffers;
    return gcap_graph_manager_replay(manager_, &run, nullptr);
  }
  gcap_status_t Bind(size_t buffer, void* address, int id = kId) {
    return gcap_graph_manager_bind(manager_, id, buffer, address);
  }
  // Why the graph cannot be moved; OK if nothing says so.
  Outcome WhyNotMovable(int id = kId) const {
    return Outcome(gcap_graph_manager_explain(manager_, id, GCAP_GRAPH_WHY_NOT_MOVABLE));
  }

  // The work is captured on some buffers and moves to others: input + `addend` is the output there, and the first
  // buffers are as they were.
  void ExpectMoves(const WorkOn& work, float addend) {
    const Floats first_input(3), first_output(50), second_input(7), second_output(60);
    const Outcome captured = RunOn(first_input, first_output, work);
    ASSERT_TRUE(captured.ok()) << captured.message;
    EXPECT_EQ(first_output.value(), 3 + addend);
    const Outcome refusal = WhyNotMovable();
    EXPECT_TRUE(refusal.ok()) << refusal.message;
    first_input.Fill(-100);
    first_output.Fill(-200);
    calls_ = 0;
    const Outcome moved = RunOn(second_input, second_output, work);
    ASSERT_TRUE(moved.ok()) << moved.message;
    EXPECT_EQ(calls_, 0) << "not replayed";
    EXPECT_EQ(second_output.value(), 7 + addend);
    EXPECT_EQ(second_input.value(), 7);
    EXPECT_EQ(first_input.value(), -100);
    EXPECT_EQ(first_output.value(), -200);
  }

  // The work is captured and does not move, for this reason. It runs eagerly elsewhere, and is replayed at its place.
  void ExpectFixed(const WorkOn& work, float addend, const std::vector<std::string>& reasons) {
    const Floats first_input(3), first_output(50), second_input(7), second_output(60);
    const Outcome captured = RunOn(first_input, first_output, work);
    ASSERT_TRUE(captured.ok()) << captured.message;
    EXPECT_EQ(first_output.value(), 3 + addend);
    const Outcome refusal = WhyNotMovable();
    EXPECT_STREQ(gcap_code_name(refusal.code), "FAILED_PRECONDITION");
    for (const std::string& reason : reasons) {
      EXPECT_TRUE(refusal.Names(reason)) << "does not name '" << reason << "': " << refusal.message;
    }
    calls_ = 0;
    const Outcome eager = RunOn(second_input, second_output, work);
    ASSERT_TRUE(eager.ok()) << eager.message;
    EXPECT_EQ(calls_, 1) << "an eager run";
    EXPECT_EQ(second_output.value(), 7 + addend);
    first_output.Fill(0);
    const Outcome replayed = RunOn(first_input, first_output, work);
    EXPECT_TRUE(replayed.ok()) << replayed.message;
    EXPECT_EQ(calls_, 1) << "a replay";
    EXPECT_EQ(first_output.value(), 3 + addend);
    GCAP_EXPECT_FAILS(Bind(1, second_output.get()), GCAP_FAILED_PRECONDITION, "cannot be moved: buffer 1 'output'");
    GCAP_EXPECT_FAILS(Bind(1, second_output.get()), GCAP_FAILED_PRECONDITION, reasons[0]);
    GCAP_EXPECT_OK(Bind(1, first_output.get()));  // where it is
  }

  int calls_ = 0;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_MOVING_TEST_H_
