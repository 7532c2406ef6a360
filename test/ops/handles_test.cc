// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The handles of cuBLAS and cuBLASLt that a stream has: one a stream, bound to it, on USER streams too, not made in a
// capture; and work by them captured, with nothing allocated.

#include <thread>

#include "gcap/capture.h"
#include "gcap/kit/ops/cublas.h"
#include "gcap/kit/ops/cublaslt.h"
#include "gcap/kit/ops/cudnn.h"
#include "test/ops/op_test.h"

namespace gcap {
namespace testing {
namespace {

// The three handles of a stream.
struct Handles {
  cublasHandle_t cublas = nullptr;
  cublasLtHandle_t cublaslt = nullptr;
  cudnnHandle_t cudnn = nullptr;

  explicit Handles(gcap_stream_t* stream) {
    GCAP_EXPECT_OK(gcap_stream_cublas_handle(stream, &cublas));
    GCAP_EXPECT_OK(gcap_stream_cublaslt_handle(stream, &cublaslt));
    GCAP_EXPECT_OK(gcap_stream_cudnn_handle(stream, &cudnn));
  }
};

void ExpectBound(const Handles& handles, cudaStream_t stream) {
  cudaStream_t bound = nullptr;
  EXPECT_EQ(cublasGetStream(handles.cublas, &bound), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(bound, stream);
  EXPECT_EQ(cudnnGetStream(handles.cudnn, &bound), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(bound, stream);
}

class HandlesTest : public OpTest {};

TEST_F(HandlesTest, AreOneAStreamAndBoundToIt) {
  gcap_stream_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &other));
  const Handles first(stream_), again(stream_), others(other);  // a GPU's cublasLtCreate may give one handle to both
  EXPECT_EQ(first.cublas, again.cublas);
  EXPECT_EQ(first.cublaslt, again.cublaslt);
  EXPECT_NE(first.cublas, others.cublas);
  ExpectBound(first, gcap_stream_handle(stream_));
  ExpectBound(others, gcap_stream_handle(other));
  GCAP_EXPECT_OK(gcap_stream_destroy(other));
}

TEST_F(HandlesTest, AreMadeForAUserStreamAndEndWithItsWrapper) {
  cudaStream_t raw = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking));
  gcap_stream_t* user = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(raw, GCAP_STREAM_USER, 0, 0, &user));
  ExpectBound(Handles(user), raw);
  GCAP_EXPECT_OK(gcap_stream_destroy(user));
  GCAP_EXPECT_CUDA(cudaStreamSynchronize(raw));  // it is the user's still
  GCAP_EXPECT_CUDA(cudaStreamDestroy(raw));
}

TEST_F(HandlesTest, AreNotMadeForNullNorForAnExternalStream) {
  cublasHandle_t cublas = nullptr;
  cublasLtHandle_t cublaslt = nullptr;
  const auto bad = GCAP_INVALID_ARGUMENT;
  GCAP_EXPECT_FAILS(gcap_stream_cublas_handle(nullptr, &cublas), bad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_stream_cublas_handle(stream_, nullptr), bad, "out_handle is NULL");
  GCAP_EXPECT_FAILS(gcap_stream_cublaslt_handle(nullptr, &cublaslt), bad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_stream_cublaslt_handle(stream_, nullptr), bad, "out_handle is NULL");
  gcap_stream_t* external = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(gcap_stream_handle(stream_), GCAP_STREAM_EXTERNAL, 0, 0, &external));
  GCAP_EXPECT_FAILS(gcap_stream_cublas_handle(external, &cublas), bad, "cublasHandle_t");
  GCAP_EXPECT_FAILS(gcap_stream_cublaslt_handle(external, &cublaslt), bad, "cublasLtHandle_t");
  EXPECT_EQ(cublas, nullptr);
  EXPECT_EQ(cublaslt, nullptr);
  GCAP_EXPECT_OK(gcap_stream_destroy(external));
}

TEST_F(HandlesTest, AreNotMadeInACaptureWhichThenFails) {
  const auto in_capture = [this](const auto& make, const char* name) {
    gcap_capture_t* capture = nullptr;
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
    GCAP_EXPECT_FAILS(make(), GCAP_FAILED_PRECONDITION, name);
    GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, name);
    EXPECT_EQ(graph, nullptr);
    GCAP_EXPECT_OK(make());
  };
  cublasHandle_t cublas = nullptr;
  cublasLtHandle_t cublaslt = nullptr;
  in_capture([&] { return gcap_stream_cublas_handle(stream_, &cublas); }, "cublasHandle_t");
  in_capture([&] { return gcap_stream_cublaslt_handle(stream_, &cublaslt); }, "cublasLtHandle_t");
}

// Kernels only: neither memory nodes nor anything else of the library's own.
TEST_F(HandlesTest, AProductByCublasIsCapturedAndReplayedWithOtherInputs) {
  const Handles handles(stream_);
  const float one = 1.0f, zero = 0.0f;
  std::vector<float> x(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
  std::vector<float> identity(64);
  for (size_t i = 0; i < 8; ++i) identity[9 * i] = 1.0f;
  DeviceFloats a(x), b(identity), c(std::vector<float>(64, -1.0f));
  const auto multiply = [&] {
    EXPECT_EQ(
        cublasSgemm(handles.cublas, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a.get(), 8, b.get(), 8, &zero, c.get(), 8),
        CUBLAS_STATUS_SUCCESS);
  };
  multiply();
  Synchronize();
  EXPECT_EQ(c.Get(), x);
  Graph graph(stream_, multiply);
  EXPECT_GE(graph.CountKernels(), 1u);
  for (float& value : x) value += 0.5f;
  a.Set(x);
  graph.Replay();
  EXPECT_EQ(c.Get(), x);
}

// A handle that ends would break the capture of another thread; so it is kept, and the next stream gets it.
TEST_F(HandlesTest, AStreamThatEndsDoesNotBreakTheCaptureOfAnother) {
  gcap_stream_t* ending = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &ending));
  const Handles ended(ending);
  const DeviceFloats array({1.0f, 2.0f});
  gcap_capture_t* capture = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  gcap_capture_options_t options;
  gcap_capture_options_init(&options);
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), &options, &capture));
  std::thread([&] { GCAP_EXPECT_OK(gcap_stream_destroy(ending)); }).join();
  GCAP_EXPECT_CUDA(cudaMemsetAsync(array.get(), 0, array.Bytes(), gcap_stream_handle(stream_)));
  GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
  ASSERT_NE(graph, nullptr);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  gcap_retained_release(retained);
  const Handles next(stream_);
  EXPECT_EQ(next.cublas, ended.cublas);
  EXPECT_EQ(next.cublaslt, ended.cublaslt);
  ExpectBound(next, gcap_stream_handle(stream_));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
