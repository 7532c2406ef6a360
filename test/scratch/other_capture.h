// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// other_capture.h: a capture in global mode that another thread holds open, and that nobody may break.
#ifndef GCAP_TEST_SCRATCH_OTHER_CAPTURE_H_
#define GCAP_TEST_SCRATCH_OTHER_CAPTURE_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <thread>

#include "gcap/capture.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

class OtherCapture {
 public:
  enum class By { kGcap, kCuda };

  OtherCapture(gcap_stream_t* stream, By by)
      : handle_(gcap_stream_handle(stream)), thread_([this, by] { by == By::kGcap ? WithGcap() : WithCuda(); }) {
    while (!began_) std::this_thread::yield();
  }
  // Expects that it ends well.
  void End() {
    ends_ = true;
    thread_.join();
  }

 private:
  void Hold() {
    began_ = true;
    while (!ends_) std::this_thread::yield();
  }
  void WithGcap() {
    gcap_capture_options_t options;
    gcap_capture_options_init(&options);
    options.mode = GCAP_CAPTURE_GLOBAL;
    gcap_capture_t* capture = nullptr;
    GCAP_EXPECT_OK(gcap_capture_begin(handle_, &options, &capture));
    Hold();
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
    gcap_retained_release(retained);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  void WithCuda() {
    EXPECT_EQ(cudaStreamBeginCapture(handle_, cudaStreamCaptureModeGlobal), cudaSuccess);
    Hold();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(handle_, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }

  const cudaStream_t handle_;
  std::atomic<bool> began_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SCRATCH_OTHER_CAPTURE_H_
