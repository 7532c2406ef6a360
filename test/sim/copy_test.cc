// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Copies of rows, slices and batches, padded memory, and host memory that devices reach: the bytes, and what the cases
// of //test/conformance do not ask.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

constexpr size_t kBytes = 8192;

class Copy : public testing::Test {
 protected:
  void SetUp() override {
    gcap_sim_set_seed(0);
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&device_), kBytes));
    ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&other_), kBytes));
    std::iota(host_.begin(), host_.end(), 0);
  }

  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaFree(device_));
    EXPECT_EQ(cudaSuccess, cudaFree(other_));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream_));
    EXPECT_EQ(0u, gcap_sim_live(nullptr));
    cudaGetLastError();
  }

  std::vector<unsigned char> Read(const void* p, size_t bytes) {
    std::vector<unsigned char> out(bytes);
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_EQ(cudaSuccess, cudaMemcpy(out.data(), p, bytes, cudaMemcpyDeviceToHost));
    return out;
  }

  void Clear(char* p) {
    ASSERT_EQ(cudaSuccess, cudaMemset(p, 0, kBytes));
    ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());  // the stream does not wait for the legacy one
  }

  cudaStream_t stream_;
  char *device_, *other_;
  std::vector<unsigned char> host_ = std::vector<unsigned char>(kBytes);
};

using Bytes = std::vector<unsigned char>;

TEST_F(Copy, RowsGoToRows) {
  Clear(device_);
  ASSERT_EQ(cudaSuccess, cudaMemcpy2D(device_, 4, host_.data(), 8, 2, 3, cudaMemcpyHostToDevice));
  EXPECT_EQ((Bytes{0, 1, 0, 0, 8, 9, 0, 0, 16, 17, 0, 0}), Read(device_, 12));
  EXPECT_EQ(cudaErrorInvalidPitchValue, cudaMemcpy2D(device_, 1, host_.data(), 8, 2, 3, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaErrorInvalidMemcpyDirection,
            cudaMemcpy2D(device_, 4, host_.data(), 8, 2, 3, static_cast<cudaMemcpyKind>(7)));
  EXPECT_EQ(cudaSuccess, cudaMemcpy2D(device_, 4, host_.data(), 8, 2, 0, cudaMemcpyHostToDevice));
}

TEST_F(Copy, RowsAreFilled) {
  Clear(device_);
  ASSERT_EQ(cudaSuccess, cudaMemset2D(device_, 4, 0x107, 2, 2));
  ASSERT_EQ(cudaSuccess, cudaMemset2DAsync(device_ + 8, 4, 9, 3, 1, stream_));
  EXPECT_EQ((Bytes{7, 7, 0, 0, 7, 7, 0, 0, 9, 9, 9, 0}), Read(device_, 12));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset2D(device_, 1, 0, 2, 2)) << "rows overlap";
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset2D(device_, 4096, 0, 4096, 3)) << "one row too many";
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset2D(host_.data(), 4, 0, 2, 2));
  EXPECT_EQ(cudaSuccess, cudaMemset2D(nullptr, 4, 0, 0, 2));
}

// There was no such function.
TEST_F(Copy, SlicesAreFilled) {
  Clear(device_);
  // Two slices of two rows of two bytes, close; then one row in each of two slices of two.
  ASSERT_EQ(cudaSuccess, cudaMemset3D({device_, 4, 2, 2}, 0x107, {2, 2, 2}));
  EXPECT_EQ((Bytes{7, 7, 0, 0, 7, 7, 0, 0, 7, 7, 0, 0, 7, 7, 0, 0}), Read(device_, 16));
  ASSERT_EQ(cudaSuccess, cudaMemset3DAsync({device_, 4, 2, 2}, 9, {3, 1, 2}, stream_));
  EXPECT_EQ((Bytes{9, 9, 9, 0, 7, 7, 0, 0, 9, 9, 9, 0, 7, 7, 0, 0}), Read(device_, 16));
  EXPECT_EQ(cudaSuccess, cudaMemset3D({nullptr, 4, 2, 2}, 0, {0, 1, 1}));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset3D({nullptr, 4, 2, 2}, 0, {1, 1, 1}));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset3D({device_, 1, 2, 2}, 0, {2, 2, 2})) << "rows overlap";
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset3D({device_, 4, 2, 2}, 0, {2, 3, 2})) << "slices overlap";
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset3D({device_, 4, 2, 2}, 1, {2, 1, kBytes / 8 + 1})) << "one too many";
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset3D({device_, 4, 2, 2}, 1, {2, 2, SIZE_MAX}));
  EXPECT_EQ(9, Read(device_, 1)[0]) << "nothing was filled";
}

// One node where the slices lie close, and else one for each.
TEST_F(Copy, SlicesAreFilledByACapture) {
  Clear(device_);
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  ASSERT_EQ(cudaSuccess, cudaMemset3DAsync({device_, 4, 2, 2}, 1, {2, 2, 2}, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemset3DAsync({device_, 4, 2, 2}, 2, {1, 1, 2}, stream_));
  cudaGraph_t graph;
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
  size_t nodes = 0;
  EXPECT_EQ(cudaSuccess, cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(3u, nodes);
  cudaGraphExec_t exec;
  ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  EXPECT_EQ((Bytes{2, 1, 0, 0, 1, 1, 0, 0, 2, 1, 0, 0, 1, 1, 0, 0}), Read(device_, 16));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

// Two slices of two rows of two bytes, from the middle of slices of three rows of eight.
TEST_F(Copy, SlicesGoToSlices) {
  Clear(device_);
  cudaMemcpy3DParms params = {};
  params.srcPtr = {host_.data(), 8, 8, 3};
  params.srcPos = {1, 1, 0};
  params.dstPtr = {device_, 4, 4, 2};
  params.extent = {2, 2, 2};
  params.kind = cudaMemcpyHostToDevice;
  ASSERT_EQ(cudaSuccess, cudaMemcpy3D(&params));
  EXPECT_EQ((Bytes{9, 10, 0, 0, 17, 18, 0, 0, 33, 34, 0, 0, 41, 42, 0, 0}), Read(device_, 16));
  params.srcPos = {0, 0, 0};
  ASSERT_EQ(cudaSuccess, cudaMemcpy3DAsync(&params, stream_));
  EXPECT_EQ((Bytes{0, 1, 0, 0, 8, 9, 0, 0, 24, 25, 0, 0, 32, 33, 0, 0}), Read(device_, 16));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpy3D(nullptr));
  params.extent.depth = 2000;
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpy3D(&params)) << "leaves the destination";
}

TEST_F(Copy, PaddedMemoryHasAlignedRows) {
  void* p = nullptr;
  size_t pitch = 0;
  ASSERT_EQ(cudaSuccess, cudaMallocPitch(&p, &pitch, 100, 3));
  EXPECT_LE(100u, pitch);
  EXPECT_EQ(0u, pitch % 256);
  EXPECT_EQ(cudaSuccess, cudaMemset2D(p, pitch, 0, 100, 3));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemset2D(p, pitch, 0, 100, 4));
  EXPECT_EQ(cudaSuccess, cudaFree(p));
  cudaPitchedPtr slices;
  ASSERT_EQ(cudaSuccess, cudaMalloc3D(&slices, {100, 3, 2}));
  EXPECT_EQ(100u, slices.xsize);
  EXPECT_EQ(3u, slices.ysize);
  EXPECT_EQ(cudaSuccess, cudaMemset2D(slices.ptr, slices.pitch, 0, 100, 6));
  EXPECT_EQ(cudaSuccess, cudaFree(slices.ptr));
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaMalloc3D(&slices, {1, SIZE_MAX, 2}));
}

TEST_F(Copy, LargePageableSourcesHoldTheHost) {
  constexpr size_t kLarge = (size_t{64} << 20) + 1;
  std::vector<char> host(kLarge, 1);
  char* large;
  ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&large), kLarge));
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(large, host.data(), kLarge, cudaMemcpyHostToDevice, stream_));
  EXPECT_EQ(cudaSuccess, cudaStreamQuery(stream_)) << "it is done on return";
  EXPECT_EQ(1, Read(large + kLarge - 1, 1)[0]);
  EXPECT_EQ(cudaSuccess, cudaFree(large));
}

// --- Batches --------------------------------------------------------------------------------------------------------

class Batch : public Copy {
 protected:
  cudaError_t Go(std::vector<cudaMemcpySrcAccessOrder> orders, std::vector<size_t> first, size_t bytes = 4) {
    void* dsts[] = {device_, device_ + 4, device_ + 8};
    const void* srcs[] = {host_.data(), other_, host_.data() + 8};
    size_t sizes[] = {bytes, bytes, bytes};
    std::vector<cudaMemcpyAttributes> attributes(orders.size());
    for (size_t i = 0; i < orders.size(); ++i) attributes[i].srcAccessOrder = orders[i];
    return cudaMemcpyBatchAsync(dsts, srcs, sizes, 3, attributes.data(), first.data(), orders.size(), stream_);
  }
};

TEST_F(Batch, ReadsItsSourcesWhenTheAttributeSays) {
  Clear(device_);
  ASSERT_EQ(cudaSuccess, cudaMemset(other_, 7, kBytes));
  ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
  ASSERT_EQ(cudaSuccess, Go({cudaMemcpySrcAccessOrderDuringApiCall, cudaMemcpySrcAccessOrderStream}, {0, 1}));
  memset(host_.data(), 99, kBytes);
  EXPECT_EQ((Bytes{0, 1, 2, 3, 7, 7, 7, 7, 99, 99, 99, 99}), Read(device_, 12));
}

TEST_F(Batch, RefusesBadArguments) {
  const auto stream = cudaMemcpySrcAccessOrderStream;
  EXPECT_EQ(cudaErrorInvalidValue, Go({stream}, {1}));
  EXPECT_EQ(cudaErrorInvalidValue, Go({stream, stream}, {0, 0}));
  EXPECT_EQ(cudaErrorInvalidValue, Go({stream, stream}, {0, 3}));
  EXPECT_EQ(cudaErrorInvalidValue, Go({cudaMemcpySrcAccessOrderInvalid}, {0}));
  EXPECT_EQ(cudaErrorInvalidValue, Go({}, {}));
  EXPECT_EQ(cudaErrorInvalidValue, Go({stream}, {0}, 0));
  EXPECT_EQ(cudaErrorInvalidValue, Go({stream}, {0}, kBytes)) << "the second one leaves its destination";
  EXPECT_EQ(cudaSuccess, cudaStreamQuery(stream_)) << "so nothing was queued";
}

// A box in the memory, whose rows and slices are as long as they say; 0 for as long as the box.
cudaMemcpy3DOperand Place(void* memory, size_t row_length = 0, size_t layer_height = 0) {
  cudaMemcpy3DOperand operand = {};
  operand.type = cudaMemcpyOperandTypePointer;
  operand.op.ptr.ptr = memory;
  operand.op.ptr.rowLength = row_length;
  operand.op.ptr.layerHeight = layer_height;
  return operand;
}

cudaMemcpy3DBatchOp BoxCopy(cudaMemcpy3DOperand to, cudaMemcpy3DOperand from, cudaExtent extent) {
  cudaMemcpy3DBatchOp op = {};
  op.dst = to;
  op.src = from;
  op.extent = extent;
  op.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  return op;
}

// There was no such function. Two slices of two rows of two bytes, out of slices of three rows of eight, and a row.
TEST_F(Batch, OfBoxes) {
  Clear(device_);
  cudaMemcpy3DBatchOp ops[] = {BoxCopy(Place(device_, 4, 2), Place(host_.data() + 9, 8, 3), {2, 2, 2}),
                               BoxCopy(Place(device_ + 16), Place(host_.data()), {4, 1, 1})};
  ops[1].srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
  ASSERT_EQ(cudaSuccess, cudaMemcpy3DBatchAsync(2, ops, 0, stream_));
  host_[0] = 99;  // taken already
  EXPECT_EQ((Bytes{9, 10, 0, 0, 17, 18, 0, 0, 33, 34, 0, 0, 41, 42, 0, 0, 0, 1, 2, 3}), Read(device_, 20));
}

TEST_F(Batch, OfBoxesRefusesBadArguments) {
  const auto refused = [&](auto change) {
    cudaMemcpy3DBatchOp ops[] = {BoxCopy(Place(device_, 4), Place(other_, 4), {4, 2, 2}),
                                 BoxCopy(Place(device_, 4), Place(other_, 4), {4, 2, 2})};
    change(ops[1]);
    return cudaMemcpy3DBatchAsync(2, ops, 0, stream_);
  };
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto& op) { op.extent.width = 0; }));
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto& op) { op.extent.depth = kBytes; })) << "leaves its memory";
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto& op) { op.dst.op.ptr.layerHeight = 1; }));
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto& op) { op.dst.op.ptr.layerHeight = SIZE_MAX; }));
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto& op) { op.dst.op.ptr.ptr = nullptr; }));
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto& op) { op.flags = 2; }));
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto& op) { op.src.type = static_cast<cudaMemcpy3DOperandType>(3); }));
  EXPECT_EQ(cudaSuccess, cudaStreamQuery(stream_)) << "so nothing was queued";
  EXPECT_DEATH(refused([](auto& op) { op.src.type = cudaMemcpyOperandTypeArray; }), "arrays are not modelled");
}

// --- Host memory ----------------------------------------------------------------------------------------------------

TEST_F(Copy, RegisteredMemoryIsReadWhenTheCopyRuns) {
  ASSERT_EQ(cudaSuccess, cudaHostRegister(host_.data(), kBytes, cudaHostRegisterDefault));
  EXPECT_EQ(1u, gcap_sim_live("registered memory"));
  EXPECT_EQ(3, host_[3]) << "the bytes stay the caller's";
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(device_, host_.data(), 1, cudaMemcpyHostToDevice, stream_));
  host_[0] = 42;
  EXPECT_EQ(42, Read(device_, 1)[0]);
  EXPECT_EQ(cudaSuccess, cudaHostUnregister(host_.data()));
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(device_, host_.data(), 1, cudaMemcpyHostToDevice, stream_));
  host_[0] = 43;
  EXPECT_EQ(42, Read(device_, 1)[0]) << "pageable again: taken at the call";
}

TEST_F(Copy, RegistrationIsToTheByte) {
  unsigned char* p = host_.data();
  EXPECT_EQ(cudaErrorInvalidValue, cudaHostRegister(reinterpret_cast<void*>(4096), 4096, 0)) << "no memory there";
  EXPECT_EQ(cudaErrorInvalidValue, cudaHostRegister(p, 1, 16));
  ASSERT_EQ(cudaSuccess, cudaHostRegister(p + 16, 16, cudaHostRegisterMapped));
  EXPECT_EQ(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(p, 17, 0));
  EXPECT_EQ(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(p + 31, 1, 0));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFreeHost(p + 16)) << "it was not allocated";
  EXPECT_EQ(cudaSuccess, cudaHostUnregister(p + 16));
}

}  // namespace
