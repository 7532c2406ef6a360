// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// device.h: device arrays, a stream and a capture for the tests of the libraries, on the simulator and on a GPU alike.
#ifndef GCAP_TEST_SIM_LIBS_DEVICE_H_
#define GCAP_TEST_SIM_LIBS_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda_runtime_api.h"
#include "gtest/gtest.h"

namespace gcap_test {

// An array in device memory. Its address is aligned as cudaMalloc aligns, to 256 bytes.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : size_(values.size()) {
    EXPECT_EQ(cudaSuccess, cudaMalloc(&data_, Bytes() == 0 ? 1 : Bytes()));
    Upload(values);
  }
  ~DeviceArray() { EXPECT_EQ(cudaSuccess, cudaFree(data_)); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return static_cast<T*>(data_); }
  size_t Bytes() const { return size_ * sizeof(T); }

  // Returns when the values are there for every stream: the copy alone may return before that.
  void Upload(const std::vector<T>& values) {
    if (values.empty()) return;
    EXPECT_EQ(cudaSuccess, cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
  }

  // The caller has synchronized the stream that writes the array.
  std::vector<T> Download() const {
    std::vector<T> values(size_);
    EXPECT_EQ(cudaSuccess, cudaMemcpy(values.data(), data_, Bytes(), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  void* data_ = nullptr;
  size_t size_;
};

// A non-blocking stream.
class Stream {
 public:
  Stream() { EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }
  void Synchronize() const { EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

// What became of a capture: the status just before its end, the end's code and, if there is a graph, its nodes.
struct CaptureEnd {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaError_t code = cudaSuccess;
  size_t nodes = 0;
};

// Captures what `work` does in `mode`, throws the graph away and clears the last error.
template <typename Work>
CaptureEnd Capture(cudaStream_t stream, cudaStreamCaptureMode mode, Work work) {
  CaptureEnd end;
  EXPECT_EQ(cudaSuccess, cudaStreamBeginCapture(stream, mode));
  work();
  EXPECT_EQ(cudaSuccess, cudaStreamIsCapturing(stream, &end.status));
  cudaGraph_t graph = nullptr;
  end.code = cudaStreamEndCapture(stream, &graph);
  if (graph != nullptr) {
    EXPECT_EQ(cudaSuccess, cudaGraphGetNodes(graph, nullptr, &end.nodes));
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  }
  (void)cudaGetLastError();
  return end;
}

// Multiples of 1/8 in [-1, 1], from a fixed sequence: sums of thousands of their products are exact in a float.
class Eighths {
 public:
  explicit Eighths(uint32_t seed) : state_(seed) {}
  float Next() {
    state_ = state_ * 1664525u + 1013904223u;
    return (static_cast<int>(state_ >> 24) % 17 - 8) / 8.0f;
  }
  std::vector<float> Take(size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = Next();
    return values;
  }

 private:
  uint32_t state_;
};

}  // namespace gcap_test

#endif  // GCAP_TEST_SIM_LIBS_DEVICE_H_
