// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Handles and devices: cuBLASLt serves the streams of every device with any handle, cuDNN those of the device on which
// the handle was created. On a machine with one device only the first of them are there to be asked.
#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/conformance/libraries/convolution.h"
#include "test/conformance/libraries/matmul.h"

namespace conformance {
namespace {

using gcap_test::Capture;
using gcap_test::CaptureEnd;
using gcap_test::Stream;

// The devices on which the handle is created, which is current at the call, and of the stream and the memory.
struct Devices {
  int handle, current, stream;
};

class LibraryDevices : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    int count = 0;
    ASSERT_EQ(cudaSuccess, cudaGetDeviceCount(&count));
    const int last = std::min(count, 2) - 1;  // where there is one device, all are it
    devices_ = {std::min(GetParam() & 1, last), std::min(GetParam() >> 1 & 1, last), std::min(GetParam() >> 2, last)};
  }
  void TearDown() override { EXPECT_EQ(cudaSuccess, cudaSetDevice(0)); }
  static void SetDevice(int device) { EXPECT_EQ(cudaSuccess, cudaSetDevice(device)); }

  Devices devices_;
};

TEST_P(LibraryDevices, CublasLtServesAnyStream) {
  SetDevice(devices_.stream);
  Stream stream;
  Matmul matmul;
  SetDevice(devices_.handle);
  cublasLtHandle_t handle = nullptr;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtCreate(&handle));
  matmul.used_handle = handle;
  SetDevice(devices_.current);
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Run(stream.get()));
  stream.Synchronize();
  SetDevice(devices_.stream);
  EXPECT_EQ(matmul.Expected(5, 7, false), Matmul::At(matmul.data_d.Get(), 5 + 7 * matmul.shape.m));
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const CaptureEnd end = Capture(stream.get(), cudaStreamCaptureModeGlobal, [&] {
    SetDevice(devices_.current);
    status = matmul.Run(stream.get());
  });
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, status);
  EXPECT_EQ(cudaSuccess, end.code);
  EXPECT_EQ(1u, end.nodes);
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtDestroy(handle));
}

TEST_P(LibraryDevices, CudnnTakesStreamsOfItsOwn) {
  SetDevice(devices_.stream);
  Stream stream;
  Convolution convolution(stream.get());
  SetDevice(devices_.handle);
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreate(&handle));
  SetDevice(devices_.current);
  const bool own = devices_.handle == devices_.stream;
  EXPECT_EQ(own ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH, cudnnSetStream(handle, stream.get()));
  cudaStream_t got = nullptr;
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetStream(handle, &got));
  EXPECT_EQ(own ? stream.get() : nullptr, got);
  if (own) {
    convolution.used_handle = handle;
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, convolution.Forward());
  }
  stream.Synchronize();
  SetDevice(devices_.handle);
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroy(handle));
  SetDevice(devices_.stream);
}

INSTANTIATE_TEST_SUITE_P(HandleCurrentStream, LibraryDevices, testing::Range(0, 8));

}  // namespace
}  // namespace conformance
