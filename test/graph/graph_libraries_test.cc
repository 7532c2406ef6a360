// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Work of cuBLASLt and cuDNN on buffers that move: every algorithm that the library of the build offers is captured at
// one place and replayed at another, where its output must be, bit by bit, that of a fresh capture. Each test prints
// how many algorithms moved.
#include <cublasLt.h>
#include <cudnn.h>
#include <array>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kApart = 256;  // so that buffers touch at neither place

using Bytes = std::vector<uint8_t>;

enum class Element { kF32, kF16, kBf16 };

size_t SizeOf(Element element) { return element == Element::kF32 ? 4 : 2; }

// Multiples of 1/8 in [-1, 1], from a fixed sequence.
Bytes Eighths(Element element, size_t count, uint32_t seed) {
  Bytes bytes(count * SizeOf(element));
  uint32_t state = seed;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const float value = (static_cast<int>(state >> 24) % 17 - 8) / 8.0f;
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    if (element == Element::kBf16) bits >>= 16;
    if (element == Element::kF16 && value != 0) bits = (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112u << 10));
    std::memcpy(&bytes[i * SizeOf(element)], &bits, SizeOf(element));
  }
  return bytes;
}

// One call of a library. The last buffer is the output, the one before it the workspace.
struct Call {
  std::string name;
  Element element = Element::kF32;
  std::vector<size_t> counts;  // elements of each buffer
  std::function<bool(cudaStream_t, void* const*)> issue;

  size_t output() const { return counts.size() - 1; }
};

gcap_status_t Issue(void* call, cudaStream_t stream, void* const* addresses) {
  const Call* const self = static_cast<const Call*>(call);
  return self->issue(stream, addresses) ? nullptr
                                        : GCAP_STATUS(GCAP_LIBRARY_ERROR, "%s was refused", self->name.c_str());
}

// Memory for the buffers of a call, each of its own.
class Place {
 public:
  Place(const Call& call, uint32_t seed) : call_(call), seed_(seed) {
    for (const size_t count : call.counts) {
      GCAP_EXPECT_CUDA(cudaMalloc(&addresses.emplace_back(), count * SizeOf(call.element) + kApart));
    }
    Fill();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    for (void* address : addresses) GCAP_EXPECT_CUDA(cudaFree(address));
  }

  // What was there at first.
  void Fill() const {
    for (size_t i = 0; i < addresses.size(); ++i) {
      const Bytes bytes = Eighths(call_.element, call_.counts[i], seed_ + static_cast<uint32_t>(i));
      GCAP_EXPECT_CUDA(cudaMemcpy(addresses[i], bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    }
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
  }
  Bytes Read(size_t buffer) const {
    Bytes bytes(call_.counts[buffer] * SizeOf(call_.element));
    GCAP_EXPECT_CUDA(cudaMemcpy(bytes.data(), addresses[buffer], bytes.size(), cudaMemcpyDeviceToHost));
    return bytes;
  }
  std::vector<Bytes> ReadAll() const {
    std::vector<Bytes> all;
    for (size_t i = 0; i < addresses.size(); ++i) all.push_back(Read(i));
    return all;
  }

  std::vector<void*> addresses;

 private:
  const Call& call_;
  const uint32_t seed_;
};

class GraphLibraries : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Create(0);
  }

  Outcome RunOn(int id, Call& call, const Place& place) {
    std::vector<gcap_graph_buffer_t> items;
    for (size_t i = 0; i < place.addresses.size(); ++i) {
      items.push_back({nullptr, place.addresses[i], call.counts[i] * SizeOf(call.element), 0});
    }
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.items = items.data();
    buffers.count = items.size();
    const std::array<bool, 8> may_be_unused = {true, true, true, true, true, true, true, true};
    EXPECT_LE(items.size(), may_be_unused.size());
    buffers.may_be_unused = may_be_unused.data();  // not each algorithm has a workspace, nor reads C
    return Outcome(RunPlainOn(manager_, id, stream_->get(), &buffers, Issue, &call, true));
  }

  // Issues the call as it is, which loads what the library needs for it. False: the library does not offer it.
  bool WarmUp(const Call& call, const Place& place) {
    const bool issued = call.issue(stream_->get(), place.addresses.data());
    stream_->Synchronize();
    place.Fill();
    (void)cudaGetLastError();
    return issued;
  }

  // Captures the call at one place and replays it at another, if the library offers it.
  void ExpectMoves(Call call) {
    SCOPED_TRACE(call.name);
    GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
    const Place first(call, 1), second(call, 100);
    if (!WarmUp(call, first)) return;
    ++offered_;
    const Outcome captured = RunOn(0, call, first);
    ASSERT_TRUE(captured.ok()) << captured.message;
    const Outcome refusal(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_MOVABLE));
    EXPECT_TRUE(refusal.ok()) << refusal.message;
    const std::vector<Bytes> before = first.ReadAll();

    const Outcome replayed = RunOn(0, call, second);
    ASSERT_TRUE(replayed.ok()) << replayed.message;
    EXPECT_EQ(Info(0).captures, 1u);
    EXPECT_EQ(Info(0).replays, 2u) << "no replay, but an eager run";
    const Bytes moved = second.Read(call.output());
    const bool is_first_untouched = before == first.ReadAll();
    EXPECT_TRUE(is_first_untouched);

    second.Fill();
    const Bytes filled = second.Read(call.output());
    const Outcome fresh = RunOn(1, call, second);
    ASSERT_TRUE(fresh.ok()) << fresh.message;
    const Bytes expected = second.Read(call.output());
    EXPECT_FALSE(expected == filled) << "the call writes nothing";
    const bool is_equal = moved == expected;
    EXPECT_TRUE(is_equal) << "other bits than those of a fresh capture";
    const bool has_moved = refusal.ok() && Info(0).replays == 2 && is_first_untouched && is_equal;
    moved_ += has_moved;
    nodes_ = std::max(nodes_, Info(0).nodes);
  }

  // Says how many there were, and expects some.
  void Tell(const char* what) const {
    std::printf("%s: %d of %d algorithms moved, of up to %zu nodes\n", what, moved_, offered_, nodes_);
    EXPECT_GT(offered_, 0);
    EXPECT_EQ(moved_, offered_);
  }

  int offered_ = 0, moved_ = 0;
  size_t nodes_ = 0;
};

// --- cuBLASLt -------------------------------------------------------------------------------------------------------

constexpr size_t kWorkspaceBytes = size_t{4} << 20;
constexpr int kMostAlgorithms = 16;

#define EXPECT_LT_OK(expr) EXPECT_EQ(CUBLAS_STATUS_SUCCESS, (expr)) << #expr

// D = A * B + C of m x k and k x n.
class Product {
 public:
  Product(uint64_t m, uint64_t n, uint64_t k, Element element) : m_(m), n_(n), k_(k), element_(element) {
    const cudaDataType types[] = {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF};
    const cudaDataType type = types[static_cast<int>(element)];
    EXPECT_LT_OK(cublasLtCreate(&handle_));
    EXPECT_LT_OK(cublasLtMatmulDescCreate(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    EXPECT_LT_OK(cublasLtMatrixLayoutCreate(&a_, type, m, k, static_cast<int64_t>(m)));
    EXPECT_LT_OK(cublasLtMatrixLayoutCreate(&b_, type, k, n, static_cast<int64_t>(k)));
    EXPECT_LT_OK(cublasLtMatrixLayoutCreate(&d_, type, m, n, static_cast<int64_t>(m)));
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product() {
    for (const auto layout : {a_, b_, d_}) EXPECT_LT_OK(cublasLtMatrixLayoutDestroy(layout));
    EXPECT_LT_OK(cublasLtMatmulDescDestroy(desc_));
    EXPECT_LT_OK(cublasLtDestroy(handle_));
  }

  std::vector<cublasLtMatmulHeuristicResult_t> Algorithms(uint64_t max_workspace) const {
    cublasLtMatmulPreference_t preference = nullptr;
    EXPECT_LT_OK(cublasLtMatmulPreferenceCreate(&preference));
    EXPECT_LT_OK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                      &max_workspace, sizeof(max_workspace)));
    std::vector<cublasLtMatmulHeuristicResult_t> found(kMostAlgorithms);
    int count = 0;
    EXPECT_LT_OK(cublasLtMatmulAlgoGetHeuristic(handle_, desc_, a_, b_, d_, d_, preference, kMostAlgorithms,
                                                found.data(), &count));
    EXPECT_LT_OK(cublasLtMatmulPreferenceDestroy(preference));
    found.resize(static_cast<size_t>(count));
    return found;
  }

  Call CallOf(const cublasLtMatmulHeuristicResult_t& algorithm) {
    Call call;
    call.element = element_;
    call.counts = {m_ * k_, k_ * n_, m_ * n_, std::max(algorithm.workspaceSize, size_t{256}) / SizeOf(element_),
                   m_ * n_};
    call.issue = [this, algorithm](cudaStream_t stream, void* const* at) {
      const float one = 1.0f, half = 0.5f;
      return cublasLtMatmul(handle_, desc_, &one, at[0], a_, at[1], b_, &half, at[2], d_, at[4], d_, &algorithm.algo,
                            at[3], algorithm.workspaceSize, stream) == CUBLAS_STATUS_SUCCESS;
    };
    int32_t id = -1, slices = 0;
    size_t written = 0;
    EXPECT_LT_OK(
        cublasLtMatmulAlgoConfigGetAttribute(&algorithm.algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof(id), &written));
    EXPECT_LT_OK(cublasLtMatmulAlgoConfigGetAttribute(&algorithm.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &slices,
                                                      sizeof(slices), &written));
    call.name = "algorithm " + std::to_string(id) + ", split-K " + std::to_string(slices) + ", workspace " +
                std::to_string(algorithm.workspaceSize) + ", " + std::to_string(m_) + "x" + std::to_string(n_) + "x" +
                std::to_string(k_);
    return call;
  }

 private:
  const uint64_t m_, n_, k_;
  const Element element_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
};

class GraphProducts : public GraphLibraries {
 protected:
  void ExpectAllMove(const char* what, Element element) {
    const uint64_t sizes[][3] = {{16, 8, 32}, {64, 64, 64}, {32, 16, 4096}, {256, 128, 512}};
    for (const auto& size : sizes) {
      Product product(size[0], size[1], size[2], element);
      for (const uint64_t max_workspace : {uint64_t{0}, uint64_t{kWorkspaceBytes}}) {
        for (const auto& algorithm : product.Algorithms(max_workspace)) {
          ExpectMoves(product.CallOf(algorithm));
          with_workspace_ += algorithm.workspaceSize > 0;
        }
      }
    }
    Tell(what);
    std::printf("%s: %d with a workspace\n", what, with_workspace_);
    EXPECT_GT(with_workspace_, 0);
  }

  int with_workspace_ = 0;
};

TEST_F(GraphProducts, OfFloatsMove) { ExpectAllMove("cuBLASLt f32", Element::kF32); }
TEST_F(GraphProducts, OfHalvesMove) { ExpectAllMove("cuBLASLt f16", Element::kF16); }
TEST_F(GraphProducts, OfBrainFloatsMove) { ExpectAllMove("cuBLASLt bf16", Element::kBf16); }

// --- cuDNN ----------------------------------------------------------------------------------------------------------

#define EXPECT_DNN_OK(expr) EXPECT_EQ(CUDNN_STATUS_SUCCESS, (expr)) << #expr

struct ConvolutionShape {
  int images, channels, side, filters, filter_side;
};

// A convolution of squares with stride 1, padded so that its output is as large as its input.
class Convolution {
 public:
  Convolution(const ConvolutionShape& shape, cudaStream_t stream) : shape_(shape) {
    EXPECT_DNN_OK(cudnnCreate(&handle_));
    EXPECT_DNN_OK(cudnnSetStream(handle_, stream));
    EXPECT_DNN_OK(cudnnCreateTensorDescriptor(&x_));
    EXPECT_DNN_OK(cudnnCreateTensorDescriptor(&y_));
    EXPECT_DNN_OK(cudnnCreateFilterDescriptor(&w_));
    EXPECT_DNN_OK(cudnnCreateConvolutionDescriptor(&conv_));
    const ConvolutionShape& s = shape;
    const int pad = s.filter_side / 2;
    EXPECT_DNN_OK(
        cudnnSetTensor4dDescriptor(x_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, s.images, s.channels, s.side, s.side));
    EXPECT_DNN_OK(
        cudnnSetTensor4dDescriptor(y_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, s.images, s.filters, s.side, s.side));
    EXPECT_DNN_OK(cudnnSetFilter4dDescriptor(w_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, s.filters, s.channels,
                                             s.filter_side, s.filter_side));
    EXPECT_DNN_OK(
        cudnnSetConvolution2dDescriptor(conv_, pad, pad, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;
  ~Convolution() {
    EXPECT_DNN_OK(cudnnDestroyConvolutionDescriptor(conv_));
    EXPECT_DNN_OK(cudnnDestroyFilterDescriptor(w_));
    EXPECT_DNN_OK(cudnnDestroyTensorDescriptor(y_));
    EXPECT_DNN_OK(cudnnDestroyTensorDescriptor(x_));
    EXPECT_DNN_OK(cudnnDestroy(handle_));
  }

  // False: the library does not offer the algorithm.
  bool Find(cudnnConvolutionFwdAlgo_t algorithm, Call* out_call) {
    size_t workspace = 0;
    if (cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, conv_, y_, algorithm, &workspace) !=
        CUDNN_STATUS_SUCCESS) {
      return false;
    }
    const auto count = [](int a, int b, int c, int d) { return static_cast<size_t>(a) * b * c * d; };
    const ConvolutionShape& s = shape_;
    out_call->name = "algorithm " + std::to_string(algorithm) + " of " + std::to_string(s.images) + "x" +
                     std::to_string(s.channels) + "x" + std::to_string(s.side) + ", filters of " +
                     std::to_string(s.filter_side) + ", workspace " + std::to_string(workspace);
    out_call->counts = {count(s.images, s.channels, s.side, s.side),
                        count(s.filters, s.channels, s.filter_side, s.filter_side),
                        (std::max(workspace, size_t{256}) + 3) / 4, count(s.images, s.filters, s.side, s.side)};
    out_call->issue = [this, algorithm, workspace](cudaStream_t, void* const* at) {
      const float one = 1.0f, zero = 0.0f;
      return cudnnConvolutionForward(handle_, &one, x_, at[0], w_, at[1], conv_, algorithm, at[2], workspace, &zero, y_,
                                     at[3]) == CUDNN_STATUS_SUCCESS;
    };
    return true;
  }

 private:
  const ConvolutionShape shape_;
  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t conv_ = nullptr;
};

TEST_F(GraphLibraries, ConvolutionsOfEveryAlgorithmMove) {
  const ConvolutionShape shapes[] = {{2, 4, 8, 4, 3}, {1, 16, 32, 32, 3}, {2, 32, 14, 64, 1}, {1, 8, 32, 8, 5}};
  for (const ConvolutionShape& shape : shapes) {
    Convolution convolution(shape, stream_->get());
    for (int i = 0; i < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++i) {
      Call call;
      if (convolution.Find(static_cast<cudnnConvolutionFwdAlgo_t>(i), &call)) ExpectMoves(call);
    }
  }
  Tell("cuDNN convolutions");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
