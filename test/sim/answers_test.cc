// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Answers that the simulator gave otherwise than a GPU did, as seen when tests written for GPUs were run over it. Each
// expected value is an H200's (driver 580.159.04, CUDA 13.0); the same calls are the cases "probe.answers.*" of
// //test/conformance, to be asked of a GPU again.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "test/sim/graph_fixture.h"

namespace gcap::testing {
namespace {

using Answers = GraphTest;

// --- Copies ---------------------------------------------------------------------------------------------------------

constexpr size_t kWidth = 64, kHeight = 16, kDepth = 8;

class SliceCopies : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    ASSERT_EQ(cudaSuccess, cudaMalloc(&slices_, 2 * kWidth * 2 * kHeight * kDepth));
    ASSERT_EQ(cudaSuccess, cudaMalloc(&slices2_, 2 * kWidth * 2 * kHeight * kDepth));
    ASSERT_EQ(cudaSuccess, cudaMemset(slices_, 0, 2 * kWidth * 2 * kHeight * kDepth));
    ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
  }
  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaFree(slices_));
    EXPECT_EQ(cudaSuccess, cudaFree(slices2_));
    GraphTest::TearDown();
  }

  // Slices without padding from one allocation to the other.
  cudaMemcpy3DParms Params() const {
    cudaMemcpy3DParms params = {};
    params.srcPtr = {slices_, kWidth, kWidth, kHeight};
    params.dstPtr = {slices2_, kWidth, kWidth, kHeight};
    params.extent = {kWidth, kHeight, kDepth};
    params.kind = cudaMemcpyDeviceToDevice;
    return params;
  }

  // Every call that takes such parameters answers so.
  void ExpectAll(cudaError_t expected, const cudaMemcpy3DParms& params) {
    const cudaMemcpy3DParms row = {
        {}, {}, {slices_, 64, 64, 1}, {}, {}, {slices2_, 64, 64, 1}, {64, 1, 1}, cudaMemcpyDeviceToDevice};
    cudaGraphNode_t node = nullptr, good = nullptr;
    EXPECT_EQ(expected, cudaMemcpy3D(&params));
    EXPECT_EQ(expected, cudaMemcpy3DAsync(&params, stream_));
    EXPECT_EQ(expected, cudaGraphAddMemcpyNode(&node, graph_, nullptr, 0, &params));
    ASSERT_EQ(cudaSuccess, cudaGraphAddMemcpyNode(&good, graph_, nullptr, 0, &row));
    cudaGraphExec_t exec = Instantiate(graph_);
    EXPECT_EQ(expected, cudaGraphMemcpyNodeSetParams(good, &params));
    EXPECT_EQ(expected, cudaGraphExecMemcpyNodeSetParams(exec, good, &params));
    EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  }

  void *slices_ = nullptr, *slices2_ = nullptr;
};

// Answered 1.
TEST_F(SliceCopies, APitchBelowTheWidthIsABadPitch) {
  cudaMemcpy3DParms params = Params();
  params.dstPtr.pitch = kWidth - 1;
  ExpectAll(cudaErrorInvalidPitchValue, params);
  params = Params();
  params.srcPtr.pitch = kWidth - 1;
  ExpectAll(cudaErrorInvalidPitchValue, params);
}

// Answered 12.
TEST_F(SliceCopies, APositionThatPushesTheBoxOutIsABadValue) {
  cudaMemcpy3DParms params = Params();
  params.dstPos.y = 1;
  ExpectAll(cudaErrorInvalidValue, params);
  params = Params();
  params.srcPos.y = 1;
  ExpectAll(cudaErrorInvalidValue, params);
  params = Params();
  params.srcPos.x = 1;
  ExpectAll(cudaErrorInvalidValue, params);
  params.srcPos.x = SIZE_MAX - kWidth + 2;  // the sum is 1
  ExpectAll(cudaErrorInvalidValue, params);
}

// Answered 0, and read wherever that was.
TEST_F(Answers, DeviceMemoryThatIsNoneIsNoSourceOfACopy) {
  cudaGraphNode_t node = nullptr;
  const void* const none[] = {reinterpret_cast<char*>(device_) - 20, reinterpret_cast<void*>(0x10)};
  for (const void* source : none) {
    EXPECT_EQ(cudaErrorInvalidValue,
              cudaGraphAddMemcpyNode1D(&node, graph_, nullptr, 0, device_, source, 16, cudaMemcpyDeviceToDevice));
    EXPECT_EQ(nullptr, node);
  }
  ASSERT_EQ(cudaSuccess,
            cudaGraphAddMemcpyNode1D(&node, graph_, nullptr, 0, device_, device2_, 16, cudaMemcpyDeviceToDevice));
  cudaGraphExec_t exec = Instantiate(graph_);
  for (const void* source : none) {
    EXPECT_EQ(cudaErrorInvalidValue,
              cudaGraphMemcpyNodeSetParams1D(node, device_, source, 16, cudaMemcpyDeviceToDevice));
    EXPECT_EQ(cudaErrorInvalidValue,
              cudaGraphExecMemcpyNodeSetParams1D(exec, node, device_, source, 16, cudaMemcpyDeviceToDevice));
  }
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

}  // namespace
}  // namespace gcap::testing
