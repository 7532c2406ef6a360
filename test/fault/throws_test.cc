// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Work that does not return: a C++ exception leaves a run's work or a kernel's compute, or the thread is cancelled
// inside it. Was: the run stayed open and refused the thread every run from then on, or a lock was held for ever.

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "gcap/kit/kit.h"
#include "gtest/gtest.h"
#include "lib/internal/capture_gate.h"
#include "test/session/session_test.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/plain_runs.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {
namespace {

// What a callback does instead of returning.
enum class Leave { kNot, kThrow, kBlock };
std::atomic<Leave> leave{Leave::kNot};
std::atomic<bool> is_inside{false};

void LeaveIfTold() {
  if (leave == Leave::kThrow) throw std::runtime_error("a shape is wrong");
  if (leave != Leave::kBlock) return;
  is_inside = true;
  while (true) pause();  // until the thread is cancelled
}

gcap_status_t Fill(void* memory, cudaStream_t stream) {
  gcap_status_t status = GCAP_CUDA(cudaMemsetAsync(memory, 1, 64, stream));
  LeaveIfTold();
  return status;
}

// Something that runs: a manager, a runtime, or a session. Of an id the second run is captured.
class Runner {
 public:
  explicit Runner(bool has_stream) {
    EXPECT_EQ(cudaMalloc(&memory_, 64), cudaSuccess);
    if (has_stream) {
      EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    }
  }
  virtual ~Runner() {
    if (stream_ != nullptr) {
      EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    }
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
  }
  virtual gcap_status_t Run() = 0;
  virtual gcap_status_t End() = 0;
  virtual gcap_runtime_t* Runtime() { return nullptr; }

 protected:
  // On a stream of the application all threads take turns.
  gcap_options_t Options() const {
    gcap_options_t options = GraphOptions(1);
    options.has_user_stream = stream_ != nullptr;
    options.user_stream = stream_;
    return options;
  }
  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

class ManagerRunner : public Runner {
 public:
  explicit ManagerRunner(bool has_stream) : Runner(has_stream) {
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    options.min_num_runs_before_capture = 1;
    GCAP_EXPECT_OK(gcap_graph_manager_create(&options, &manager_));
  }
  gcap_status_t Run() override { return RunPlain(manager_, 0, stream_, Fill, memory_, true); }
  gcap_status_t End() override { return gcap_graph_manager_destroy(manager_); }

 private:
  gcap_graph_manager_t* manager_ = nullptr;
};

class RuntimeRunner : public Runner {
 public:
  explicit RuntimeRunner(bool has_stream) : Runner(has_stream) {
    const gcap_options_t options = Options();
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime_));
  }
  gcap_status_t Run() override {
    const gcap_work_t work = [](void* memory, const gcap_run_resources_t* run) {
      void* scratch = nullptr;
      GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, 256, run->stream, &scratch));
      return gcap_status_join(Fill(memory, run->cuda_stream), gcap_scratch_free(run->scratch, scratch));
    };
    return RunOnRuntime(runtime_, 0, work, memory_, true);
  }
  gcap_status_t End() override { return gcap_runtime_destroy(runtime_); }
  gcap_runtime_t* Runtime() override { return runtime_; }

 private:
  gcap_runtime_t* runtime_ = nullptr;
};

class SessionRunner : public Runner {
 public:
  explicit SessionRunner(bool has_stream) : Runner(has_stream) {
    TestEpConfig config;
    config.leave = LeaveIfTold;
    GCAP_EXPECT_OK(rig_.Create(Options(), config));
  }
  gcap_status_t Run() override { return rig_.Run(x_, y_); }
  gcap_status_t End() override {
    gcap_status_t status = gcap_session_destroy(rig_.session);
    rig_.session = nullptr;
    status = gcap_status_join(status, rig_.ep->End());
    rig_.ep.reset();
    return status;
  }
  gcap_runtime_t* Runtime() override { return rig_.ep->runtime(); }

 private:
  DeviceFloats x_{Floats(kCount)}, y_{Floats(kCount)};
  ChainRig rig_{"Leave"};
};

template <typename Type, bool kHasStream>
std::unique_ptr<Runner> Make() {
  return std::make_unique<Type>(kHasStream);
}

const struct {
  const char* name;
  std::unique_ptr<Runner> (*make)();
} kRunners[] = {
    {"a manager", Make<ManagerRunner, true>},
    {"a runtime", Make<RuntimeRunner, false>},
    {"a runtime on a user stream", Make<RuntimeRunner, true>},
    {"a session", Make<SessionRunner, false>},
    {"a session on a user stream", Make<SessionRunner, true>},
};

// After some runs one is left. Then all is as if that run had never begun: this thread and another one run, also to a
// graph, and everything ends.
void ExpectNothingLeft(int runs_before, void (*leave_run)(Runner*)) {
  for (const auto& row : kRunners) {
    SCOPED_TRACE(std::string(row.name) + ", after " + std::to_string(runs_before) + " runs");
    const Handles before = LiveHandles();
    std::unique_ptr<Runner> runner = row.make();
    for (int run = 0; run < runs_before; ++run) GCAP_EXPECT_OK(runner->Run());
    leave_run(runner.get());
    leave = Leave::kNot;
    EXPECT_FALSE(gcap_thread_is_capturing());
    EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
    if (runner->Runtime() != nullptr) {
      gcap_allocator_stats_t stats;
      gcap_scratch_get_stats(gcap_runtime_scratch(runner->Runtime()), &stats);
      EXPECT_EQ(stats.requested_in_use_bytes, 0u);
    }
    const auto run_to_a_graph = [&runner] {
      for (int run = 0; run < 5; ++run) GCAP_EXPECT_OK(runner->Run());
    };
    run_to_a_graph();
    std::thread(run_to_a_graph).join();
    GCAP_EXPECT_OK(runner->End());
    runner.reset();
    EXPECT_EQ(LiveHandles(), before);
  }
}

TEST(Throws, ExceptionOutOfWorkPassesAndLeavesNothingBehind) {
  for (int runs_before : {0, 1}) {  // then it leaves an eager run, or a capture
    ExpectNothingLeft(runs_before, [](Runner* runner) {
      leave = Leave::kThrow;
      bool was_caught = false;
      try {
        gcap_status_ignore(runner->Run());  // it throws
      } catch (const std::runtime_error& error) {
        was_caught = error.what() == std::string("a shape is wrong");
      }
      EXPECT_TRUE(was_caught);
    });
  }
}

void ExpectCancelled(pthread_t thread) {
  EXPECT_EQ(pthread_cancel(thread), 0);
  void* result = nullptr;
  EXPECT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

TEST(Throws, ThreadThatIsCancelledInWorkLeavesNothingBehind) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer does not see the unwinding of a cancellation: asan meets the frames that it poisoned, "
                  "tsan misses the unlocks";
#endif
  ExpectNothingLeft(0, [](Runner* runner) {
    leave = Leave::kBlock;
    is_inside = false;
    pthread_t thread;
    const auto run = [](void* runner) -> void* {
      gcap_status_ignore(static_cast<Runner*>(runner)->Run());  // it does not return
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, nullptr, run, runner), 0);
    while (!is_inside) std::this_thread::yield();
    ExpectCancelled(thread);
  });
}

// Was: the thread ended with the gate's mutex held, and no thread captured any more.
TEST(Throws, ThreadThatIsCancelledAtTheGateOfCapturesHoldsNobodyUp) {
  ASSERT_TRUE(gcap_capture_gate_try_close());  // as around a wait for the device
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void*) -> void* {
                  is_inside = true;
                  gcap_capture_gate_enter();
                  gcap_capture_gate_leave();
                  pthread_testcancel();
                  return nullptr;
                },
                nullptr),
            0);
  EXPECT_EQ(pthread_cancel(thread), 0);
  while (gcap_capture_gate_try_close()) {  // it waits by now, or will find the gate closed
    gcap_capture_gate_open();
    std::this_thread::yield();
  }
  gcap_capture_gate_open();
  void* result = nullptr;
  EXPECT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
  gcap_capture_gate_enter();
  gcap_capture_gate_leave();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
