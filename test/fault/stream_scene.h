// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stream_scene.h: two streams, a graph manager and a job: the scene of the walks over stream, capture and graph.
#ifndef GCAP_TEST_FAULT_STREAM_SCENE_H_
#define GCAP_TEST_FAULT_STREAM_SCENE_H_

#include <cuda_runtime_api.h>

#include "gcap/capture.h"
#include "gcap/graph.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/fault/out.h"
#include "test/fault/walk.h"
#include "test/support/expect_status.h"
#include "test/support/plain_runs.h"
#include "test/support/replays.h"

namespace gcap {
namespace testing {

// What a walk destroys it sets to NULL. The manager captures the first run of an id.
class StreamScene : public Scene {
 public:
  StreamScene() {
    GCAP_EXPECT_OK(gcap_stream_create(0, &stream));
    GCAP_EXPECT_OK(gcap_stream_create(0, &other));
    GCAP_EXPECT_OK(CreateManager());
  }
  gcap_status_t CreateManager() {
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    options.min_num_runs_before_capture = 0;
    return gcap_graph_manager_create(&options, &manager);
  }

  // Makes anew what the walk has ended.
  void ExpectNextRunWorks() override {
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());  // work whose wait failed may still go on, and use the job
    if (stream == nullptr) GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
    if (manager == nullptr) GCAP_ASSERT_OK(CreateManager());
    cudaStreamCaptureStatus state = cudaStreamCaptureStatusInvalidated;
    GCAP_EXPECT_CUDA(cudaStreamIsCapturing(Handle(), &state));
    EXPECT_EQ(state, cudaStreamCaptureStatusNone);
    job.set_input(11);
    GCAP_EXPECT_CUDA(job.Issue(Handle()));
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    EXPECT_EQ(job.output(), 11);
    job.set_input(12);
    CaptureRun(kNextId);
    EXPECT_EQ(job.output(), 12);
    job.set_input(13);
    GCAP_EXPECT_OK(Replay(manager, kNextId, /*synchronize=*/true));
    EXPECT_EQ(job.output(), 13);
  }

  gcap_status_t End() override {
    gcap_notification_destroy(notification);
    gcap_retained_release(retained);
    gcap_status_t status = graph != nullptr ? GCAP_CUDA(cudaGraphDestroy(graph)) : nullptr;
    status = gcap_status_join(status, gcap_graph_manager_destroy(manager));
    status = gcap_status_join(status, gcap_stream_destroy(other));
    return gcap_status_join(status, gcap_stream_destroy(stream));
  }

  // A run of `id`, captured, launched and waited for.
  void CaptureRun(int id) {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    GCAP_EXPECT_OK(BeginPlain(manager, id, Handle(), &kind));
    EXPECT_EQ(kind, GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job.Issue(Handle()));
    GCAP_EXPECT_OK(EndPlain(manager, nullptr, /*synchronize=*/true));
  }
  cudaStream_t CapturingStream() override { return Handle(); }
  void BeginCapture() { GCAP_EXPECT_OK(gcap_capture_begin(Handle(), nullptr, &capture)); }

  cudaStream_t Handle() const { return gcap_stream_handle(stream); }

  static constexpr int kId = 3;
  CopyJob job;
  gcap_stream_t* stream = nullptr;
  gcap_stream_t* other = nullptr;
  gcap_notification_t* notification = nullptr;
  gcap_capture_t* capture = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  gcap_graph_manager_t* manager = nullptr;

 private:
  static constexpr int kNextId = 77;  // no walk uses it
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_FAULT_STREAM_SCENE_H_
