// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// device_work.h: small device work for tests that run on the simulator and on a GPU alike: no kernels, only copies,
// fills and host functions.
#ifndef GCAP_TEST_BASE_DEVICE_WORK_H_
#define GCAP_TEST_BASE_DEVICE_WORK_H_

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "gtest/gtest.h"

#define GCAP_EXPECT_CUDA(expr) EXPECT_EQ(cudaSuccess, (expr)) << #expr

namespace gcap {
namespace testing {

inline int CurrentDevice() {
  int device = -1;
  GCAP_EXPECT_CUDA(cudaGetDevice(&device));
  return device;
}

// A plain non-blocking stream.
class RawStream {
 public:
  RawStream() { GCAP_EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;
  ~RawStream() { GCAP_EXPECT_CUDA(cudaStreamDestroy(stream_)); }

  cudaStream_t get() const { return stream_; }
  void Synchronize() const { GCAP_EXPECT_CUDA(cudaStreamSynchronize(stream_)); }
  cudaStreamCaptureStatus CaptureStatus() const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
    GCAP_EXPECT_CUDA(cudaStreamIsCapturing(stream_, &status));
    return status;
  }

 private:
  cudaStream_t stream_ = nullptr;
};

// A copy of one int through device memory: pinned input, device, pinned output. Once run, the output is what the input
// was at that time.
class CopyJob {
 public:
  CopyJob() {
    GCAP_EXPECT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&host_), 2 * sizeof(int)));
    GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&device_), sizeof(int)));
    host_[0] = 0;
    host_[1] = -1;
  }
  CopyJob(const CopyJob&) = delete;
  CopyJob& operator=(const CopyJob&) = delete;
  ~CopyJob() {
    GCAP_EXPECT_CUDA(cudaFree(device_));
    GCAP_EXPECT_CUDA(cudaFreeHost(host_));
  }

  // Issues two nodes' worth of work.
  cudaError_t Issue(cudaStream_t stream) const {
    const cudaError_t error = cudaMemcpyAsync(device_, &host_[0], sizeof(int), cudaMemcpyHostToDevice, stream);
    if (error != cudaSuccess) return error;
    return cudaMemcpyAsync(&host_[1], device_, sizeof(int), cudaMemcpyDeviceToHost, stream);
  }
  static constexpr size_t kNodes = 2;

  void set_input(int value) { host_[0] = value; }
  // Read it once the stream has passed the job.
  int output() const { return host_[1]; }
  int* output_address() const { return &host_[1]; }

 private:
  int* host_ = nullptr;
  int* device_ = nullptr;
};

// Holds streams back: whatever is issued to a stream after Hold waits until Open. Outlives the work it holds.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void Hold(cudaStream_t stream) {
    GCAP_EXPECT_CUDA(cudaLaunchHostFunc(
        stream, [](void* gate) { static_cast<Gate*>(gate)->Wait(); }, this));
  }
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

 private:
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }

  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

// Long enough for a thread that waits for nothing to get on; a thread that does wait is seen to after it.
constexpr std::chrono::milliseconds kPatience{50};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_BASE_DEVICE_WORK_H_
