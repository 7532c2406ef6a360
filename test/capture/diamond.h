// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// diamond.h: work of several streams with one result: the origin uploads a number, each branch copies it on its own
// stream and device, the origin brings all copies back. A missing edge shows in the values, or as a race.
#ifndef GCAP_TEST_CAPTURE_DIAMOND_H_
#define GCAP_TEST_CAPTURE_DIAMOND_H_

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "gcap/capture.h"
#include "test/base/device_work.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

// A stream and an int on a device.
class Branch {
 public:
  explicit Branch(int device) : device_(device) {
    GCAP_EXPECT_CUDA(cudaSetDevice(device_));
    GCAP_EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&value_), sizeof(int)));
    GCAP_EXPECT_CUDA(cudaSetDevice(0));
  }
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;
  ~Branch() {
    GCAP_EXPECT_CUDA(cudaFree(value_));
    GCAP_EXPECT_CUDA(cudaStreamDestroy(stream_));
  }

  // Copies the number from another branch; the device of a copy's stream must be current on some runtimes.
  cudaError_t CopyFrom(const Branch& from) const {
    GCAP_EXPECT_CUDA(cudaSetDevice(device_));
    const cudaError_t error = cudaMemcpyAsync(value_, from.value_, sizeof(int), cudaMemcpyDefault, stream_);
    GCAP_EXPECT_CUDA(cudaSetDevice(0));
    return error;
  }
  cudaStream_t stream() const { return stream_; }
  int* value() const { return value_; }

 private:
  const int device_;
  cudaStream_t stream_ = nullptr;
  int* value_ = nullptr;
};

class Diamond {
 public:
  // One branch for each device in the list.
  explicit Diamond(const std::vector<int>& devices) : origin_(0) {
    for (const int device : devices) branches_.push_back(std::make_unique<Branch>(device));
    GCAP_EXPECT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&host_), (1 + devices.size()) * sizeof(int)));
  }
  Diamond(const Diamond&) = delete;
  Diamond& operator=(const Diamond&) = delete;
  ~Diamond() { GCAP_EXPECT_CUDA(cudaFreeHost(host_)); }

  cudaStream_t origin() const { return origin_.stream(); }
  std::vector<cudaStream_t> streams() const {
    std::vector<cudaStream_t> streams;
    for (const auto& branch : branches_) streams.push_back(branch->stream());
    return streams;
  }
  size_t num_nodes() const { return 1 + 2 * branches_.size(); }

  cudaError_t Upload() const {
    return cudaMemcpyAsync(origin_.value(), host_, sizeof(int), cudaMemcpyHostToDevice, origin());
  }
  cudaError_t Spread(size_t branch) const { return branches_[branch]->CopyFrom(origin_); }
  cudaError_t Collect(size_t branch) const {
    return cudaMemcpyAsync(&host_[1 + branch], branches_[branch]->value(), sizeof(int), cudaMemcpyDefault, origin());
  }

  // All of it, inside an open capture.
  void Capture(gcap_capture_t* capture) const {
    const std::vector<cudaStream_t> all = streams();
    GCAP_EXPECT_CUDA(Upload());
    GCAP_EXPECT_OK(gcap_capture_fork(capture, all.data(), all.size()));
    for (size_t i = 0; i < all.size(); ++i) GCAP_EXPECT_CUDA(Spread(i));
    GCAP_EXPECT_OK(gcap_capture_join(capture, all.data(), all.size()));
    for (size_t i = 0; i < all.size(); ++i) GCAP_EXPECT_CUDA(Collect(i));
  }

  // Replays with `input` and tells whether all branches brought it back.
  bool Replay(cudaGraphExec_t exec, int input) const {
    host_[0] = input;
    for (size_t i = 0; i < branches_.size(); ++i) host_[1 + i] = -1;
    GCAP_EXPECT_CUDA(cudaGraphLaunch(exec, origin()));
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(origin()));
    bool right = true;
    for (size_t i = 0; i < branches_.size(); ++i) right = right && host_[1 + i] == input;
    return right;
  }

 private:
  const Branch origin_;
  std::vector<std::unique_ptr<Branch>> branches_;
  int* host_ = nullptr;  // the input, then what each branch brought
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_CAPTURE_DIAMOND_H_
