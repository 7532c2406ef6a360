// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What gcap does on one thread must not break what another thread captures, in whatever mode that is: each thing is
// done while a capture is open on the first thread, which is asked after it, and must end well.

#include <cudnn.h>

#include <string>
#include <thread>

#include "gcap/allocator.h"
#include "gcap/capture.h"
#include "gcap/external_allocator.h"
#include "gcap/graph.h"
#include "gcap/graph_plan.h"
#include "gcap/kit/ops/conv2d.h"
#include "gcap/scratch.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "lib/runtime/thread_context.h"
#include "lib/stream/inner.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/plain_runs.h"
#include "test/support/replays.h"

namespace gcap {
namespace testing {
namespace {

void AllocAndFree(gcap_allocator_t* allocator) {
  void* ptr = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_alloc(allocator, 4096, &ptr));
  GCAP_EXPECT_OK(gcap_allocator_free(allocator, ptr));
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator));
}

void AllocateOnDevice() {
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &allocator));
  AllocAndFree(allocator);
  gcap_allocator_destroy(allocator);
}

void AllocatePinned() {
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_pinned_allocator_create(&allocator));
  AllocAndFree(allocator);
  gcap_allocator_destroy(allocator);
}

// An application's memory, which it gets from the driver.
void AllocateExternally() {
  gcap_external_allocator_options_t options;
  gcap_external_allocator_options_init(&options);
  options.alloc = [](size_t bytes) -> void* {
    void* ptr = nullptr;
    return cudaMalloc(&ptr, bytes) == cudaSuccess ? ptr : nullptr;
  };
  options.free = [](void* ptr) { GCAP_EXPECT_CUDA(cudaFree(ptr)); };
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_external_allocator_create(&options, &allocator));
  AllocAndFree(allocator);
  gcap_allocator_destroy(allocator);
}

void AllocateScratch() {
  gcap_allocator_t* upstream = nullptr;
  gcap_scratch_t* scratch = nullptr;
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &upstream));
  GCAP_ASSERT_OK(gcap_scratch_create(upstream, nullptr, &scratch));
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  void* ptr = nullptr;
  GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, 4096, stream, &ptr));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch, ptr));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  GCAP_EXPECT_OK(gcap_scratch_trim(scratch));
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  gcap_allocator_destroy(upstream);
}

void UseStreams() {
  gcap_stream_t *producer = nullptr, *consumer = nullptr;
  gcap_notification_t* notification = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &producer));
  GCAP_ASSERT_OK(gcap_stream_create(0, &consumer));
  GCAP_ASSERT_OK(gcap_notification_create(producer, &notification));
  GCAP_EXPECT_OK(gcap_notification_record(notification));
  GCAP_EXPECT_OK(gcap_notification_wait(notification, consumer));
  GCAP_EXPECT_OK(gcap_notification_wait_on_host(notification));
  int released = 0;
  GCAP_EXPECT_OK(gcap_stream_defer(
      producer, [](void* count) { ++*static_cast<int*>(count); }, &released));
  GCAP_EXPECT_OK(gcap_stream_end_run(producer, /*synchronize=*/false));
  GCAP_EXPECT_OK(gcap_stream_end_run(producer, /*synchronize=*/true));
  EXPECT_EQ(released, 1);
  gcap_notification_destroy(notification);
  GCAP_EXPECT_OK(gcap_stream_destroy(consumer));
  GCAP_EXPECT_OK(gcap_stream_destroy(producer));
}

void UseAStreamPool() {
  gcap_stream_pool_t* pool = nullptr;
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_pool_create(0, &pool));
  GCAP_EXPECT_OK(gcap_stream_pool_acquire(pool, &stream));
  GCAP_EXPECT_OK(gcap_stream_pool_release(pool, stream));
  GCAP_EXPECT_OK(gcap_stream_pool_destroy(pool));
}

void WrapAStream() {
  const RawStream raw;
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(raw.get(), GCAP_STREAM_USER, 0, 0, &stream));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

void UseALibraryHandle() {
  gcap_stream_t* stream = nullptr;
  cudnnHandle_t handle = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  GCAP_EXPECT_OK(gcap_stream_cudnn_handle(stream, &handle));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

// Jobs of the other thread, made before the capture: what they allocate does not go through gcap.
CopyJob* job;

gcap_status_t IssueJob(void*, cudaStream_t stream) { return GCAP_CUDA(job->Issue(stream)); }

void CaptureAndReplayGraphs() {
  const RawStream stream, another;
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 1;
  options.upload = true;
  gcap_graph_manager_t* manager = nullptr;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &manager));
  const auto run = [&](int id) {
    GCAP_EXPECT_OK(RunPlain(manager, id, stream.get(), IssueJob, nullptr, /*synchronize=*/true));
  };
  for (const int id : {0, 0, 1, 1}) run(id);  // eager, then captured
  GCAP_EXPECT_OK(Replay(manager, 0, /*synchronize=*/true));
  GCAP_EXPECT_OK(Replay(manager, 0, /*synchronize=*/false));
  GCAP_EXPECT_OK(ReplayOn(manager, 0, another.get(), /*synchronize=*/true));
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager, 1));
  run(1);  // updates the executable
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager, 0));
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager));
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager));
}

void UseAThreadContext() {
  gcap_thread_contexts_options_t options;
  gcap_thread_contexts_options_init(&options);
  gcap_thread_contexts_t* contexts = nullptr;
  gcap_thread_context_t* context = nullptr;
  GCAP_ASSERT_OK(gcap_thread_contexts_create(&options, &contexts));
  GCAP_EXPECT_OK(gcap_thread_contexts_get(contexts, &context));
  GCAP_EXPECT_OK(gcap_thread_contexts_destroy(contexts));
}

const struct {
  const char* name;
  void (*act)();
} kActs[] = {
    {"device memory", AllocateOnDevice},
    {"pinned memory", AllocatePinned},
    {"memory of the application", AllocateExternally},
    {"scratch", AllocateScratch},
    {"streams", UseStreams},
    {"a pool of streams", UseAStreamPool},
    {"a wrapped stream", WrapAStream},
    {"a library handle", UseALibraryHandle},
    {"graphs", CaptureAndReplayGraphs},
    {"a thread context", UseAThreadContext},
};

class BesideACapture : public DeviceTest, public ::testing::WithParamInterface<gcap_capture_mode_t> {};

std::string ModeName(const ::testing::TestParamInfo<gcap_capture_mode_t>& mode) {
  static const char* const kNames[] = {"ThreadLocal", "Global", "Relaxed"};
  return kNames[mode.param];
}

INSTANTIATE_TEST_SUITE_P(EachMode, BesideACapture,
                         ::testing::Values(GCAP_CAPTURE_THREAD_LOCAL, GCAP_CAPTURE_GLOBAL, GCAP_CAPTURE_RELAXED),
                         ModeName);

TEST_P(BesideACapture, WhatAnotherThreadDoesDoesNotDisturbIt) {
  const RawStream stream;
  const CopyJob own;
  CopyJob others;
  job = &others;
  const gcap_capture_options_t options = {sizeof(gcap_capture_options_t), GetParam(), 64};
  for (const auto& row : kActs) {
    SCOPED_TRACE(row.name);
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), &options, &capture));
    GCAP_EXPECT_CUDA(own.Issue(stream.get()));
    std::thread(row.act).join();
    EXPECT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusActive);
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
    if (graph != nullptr) {
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    }
  }
  job = nullptr;
}

}  // namespace
}  // namespace testing
}  // namespace gcap
