// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The cost of a replay, counted: CUDA calls by the simulator, heap allocations by our own malloc, which leaves out what
// the runtime allocates. The linker redirects the runtime's functions that a replay may call to the wrappers below.

#include <cuda_runtime_api.h>
#include <execinfo.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "gcap/kit/session.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"
#include "test/support/faults.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GCAP_TEST_OWNS_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GCAP_TEST_OWNS_MALLOC 0
#endif
#endif
#ifndef GCAP_TEST_OWNS_MALLOC
#define GCAP_TEST_OWNS_MALLOC 1
#endif

namespace {

thread_local bool counts_allocations = false;
thread_local int runtime_depth = 0;
thread_local int allocations = 0;

[[maybe_unused]] void CountAllocation() {
  if (counts_allocations && runtime_depth == 0) ++allocations;
}

thread_local bool counts_frames = false;
thread_local int frames_at_launch = 0;

// The calls that the thread is in.
__attribute__((noinline)) int Frames() {
  void* frames[64];
  return backtrace(frames, 64);
}

struct InRuntime {
  InRuntime() { ++runtime_depth; }
  ~InRuntime() { --runtime_depth; }
};

}  // namespace

extern "C" {

#if GCAP_TEST_OWNS_MALLOC
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);

void* malloc(size_t bytes) {
  CountAllocation();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  CountAllocation();
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  CountAllocation();
  return __libc_realloc(memory, bytes);
}
#endif

cudaError_t __real_cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t __wrap_cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  const InRuntime in_runtime;
  if (counts_frames) frames_at_launch = Frames();
  return __real_cudaGraphLaunch(exec, stream);
}

cudaError_t __real_cudaStreamSynchronize(cudaStream_t stream);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream) {
  const InRuntime in_runtime;
  return __real_cudaStreamSynchronize(stream);
}

cudaError_t __real_cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode);
cudaError_t __wrap_cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  const InRuntime in_runtime;
  return __real_cudaThreadExchangeStreamCaptureMode(mode);
}

cudaError_t __real_cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status);
cudaError_t __wrap_cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status) {
  const InRuntime in_runtime;
  return __real_cudaStreamIsCapturing(stream, status);
}

}  // extern "C"

namespace {

using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::Tensor;

class SessionReplay : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    gcap_options_t options = GraphOptions(1);
    options.has_user_stream = GetParam();
    if (options.has_user_stream) {
      ASSERT_EQ(cudaStreamCreateWithFlags(&user_stream_, cudaStreamNonBlocking), cudaSuccess);
      options.user_stream = user_stream_;
    }
    GCAP_ASSERT_OK(rig_->Create(options));
    GCAP_ASSERT_OK(rig_->WarmUp(x_, y_));
    Run(true);
  }
  void TearDown() override {
    rig_.reset();
    if (user_stream_ == nullptr) return;
    EXPECT_EQ(cudaStreamDestroy(user_stream_), cudaSuccess);
  }

  void Run(bool synchronize, int graph_id = 0) {
    const gcap_tensor_t input = Tensor(x_.get(), {2, 3}), output = Tensor(y_.get(), {2, 3});
    const gcap_run_options_t options = gcap::testing::RunOptions(graph_id, synchronize);
    counts_allocations = true;
    gcap_status_t status = gcap_session_run(rig_->session, &options, &input, &output);
    counts_allocations = false;
    GCAP_EXPECT_OK(status);
  }

  std::unique_ptr<ChainRig> rig_ = std::make_unique<ChainRig>();
  cudaStream_t user_stream_ = nullptr;
  DeviceFloats x_{Floats(6)}, y_{Floats(6)};
};

TEST_P(SessionReplay, WithoutSynchronizeIsOneCudaCall) {
  for (int run = 0; run < 3; ++run) {
    const uint64_t all = gcap_sim_calls_for_faults();
    const uint64_t launches = gcap_sim_calls("cudaGraphLaunch");
    Run(/*synchronize=*/false);
    EXPECT_EQ(gcap_sim_calls_for_faults(), all + 1);
    EXPECT_EQ(gcap_sim_calls("cudaGraphLaunch"), launches + 1);
  }
  GCAP_EXPECT_OK(gcap_runtime_synchronize(rig_->ep->runtime()));
}

// What a replay saves the CPU: the run that it repeats is a call for each of its kernels at the least.
TEST_P(SessionReplay, IsFewerCallsThanTheRunThatItRepeats) {
  const auto calls_of = [this](int graph_id) {
    const uint64_t before = gcap_sim_calls_for_faults();
    Run(/*synchronize=*/false, graph_id);
    return gcap_sim_calls_for_faults() - before;
  };
  const uint64_t of_run = calls_of(GCAP_GRAPH_ID_NONE);
  EXPECT_GE(of_run, rig_->ep->Info(0).nodes);
  EXPECT_LT(calls_of(0), of_run);
  GCAP_EXPECT_OK(gcap_runtime_synchronize(rig_->ep->runtime()));
}

TEST_P(SessionReplay, WithSynchronizeIsALaunchAndAWait) {
  for (int run = 0; run < 3; ++run) {
    const uint64_t launches = gcap_sim_calls("cudaGraphLaunch");
    const uint64_t waits = gcap_sim_calls("cudaStreamSynchronize");
    Run(/*synchronize=*/true);
    EXPECT_EQ(gcap_sim_calls("cudaGraphLaunch"), launches + 1);
    EXPECT_EQ(gcap_sim_calls("cudaStreamSynchronize"), waits + 1);
  }
}

// The functions that a replay goes through, as a build without optimization calls them: gcap_session_run is the first,
// and the last calls cudaGraphLaunch. --test_output=all prints their number; gdb's `backtrace` names them.
TEST_P(SessionReplay, GoesThroughAtMostNineFunctions) {
  const gcap_tensor_t input = Tensor(x_.get(), {2, 3}), output = Tensor(y_.get(), {2, 3});
  for (const bool synchronize : {false, true}) {
    const gcap_run_options_t options = gcap::testing::RunOptions(0, synchronize);
    counts_frames = true;
    const int frames = Frames();
    GCAP_EXPECT_OK(gcap_session_run(rig_->session, &options, &input, &output));
    counts_frames = false;
    const int functions = frames_at_launch - frames - 1;  // without our cudaGraphLaunch
    std::printf("%d functions from gcap_session_run to cudaGraphLaunch\n", functions);
    EXPECT_GE(functions, 1);
    EXPECT_LE(functions, 9);
  }
  GCAP_EXPECT_OK(gcap_runtime_synchronize(rig_->ep->runtime()));
}

TEST_P(SessionReplay, AllocatesNothing) {
  if (!GCAP_TEST_OWNS_MALLOC) GTEST_SKIP() << "the sanitizer owns malloc";
  allocations = 0;
  counts_allocations = true;
  free(std::malloc(1));
  counts_allocations = false;
  ASSERT_EQ(allocations, 1) << "the count works";
  allocations = 0;
  for (int run = 0; run < 5; ++run) Run(run % 2 == 0);
  EXPECT_EQ(allocations, 0);
}

INSTANTIATE_TEST_SUITE_P(Streams, SessionReplay, ::testing::Bool(), [](const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "OfTheUser" : "OfTheThread";
});

}  // namespace
