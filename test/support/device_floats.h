// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// device_floats.h: floats in device memory for tests whose threads capture.
#ifndef GCAP_TEST_SUPPORT_DEVICE_FLOATS_H_
#define GCAP_TEST_SUPPORT_DEVICE_FLOATS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "gtest/gtest.h"

namespace gcap {
namespace testing {

// Copies go through the calling thread's own default stream, so that they disturb no capture of another thread and
// wait for no other stream: whoever reads a result too early sees that it is not there.
class DeviceFloats {
 public:
  explicit DeviceFloats(const std::vector<float>& values) : size_(values.size()) {
    EXPECT_EQ(cudaMalloc(&data_, Bytes()), cudaSuccess);
    Set(values);
  }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;
  ~DeviceFloats() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }

  float* get() const { return static_cast<float*>(data_); }
  size_t Bytes() const { return size_ * sizeof(float); }

  void Set(const std::vector<float>& values) {
    ASSERT_EQ(values.size(), size_);
    EXPECT_EQ(cudaMemcpyAsync(data_, values.data(), Bytes(), cudaMemcpyHostToDevice, cudaStreamPerThread), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  }
  std::vector<float> Get() const {
    std::vector<float> values(size_);
    EXPECT_EQ(cudaMemcpyAsync(values.data(), data_, Bytes(), cudaMemcpyDeviceToHost, cudaStreamPerThread), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    return values;
  }

 private:
  size_t size_;
  void* data_ = nullptr;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SUPPORT_DEVICE_FLOATS_H_
