// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cuDNN as gcap uses it: results against plain loops in double, the code of wrong calls, the workspace, and what the
// calls do to a capture. The same expectations hold for the simulated library and, where a GPU is there, for the real
// one. Inputs are small multiples of 1/8, so that convolutions and sums are exact in whatever order and TF32 or not.
#include "cudnn.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "test/sim_libs/device.h"

namespace {

using gcap_test::Capture;
using gcap_test::CaptureEnd;
using gcap_test::DeviceArray;
using gcap_test::Eighths;
using gcap_test::Stream;

constexpr auto kImplicit = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
constexpr auto kPrecomputed = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
constexpr auto kGemm = CUDNN_CONVOLUTION_FWD_ALGO_GEMM;

class Handle {
 public:
  Handle() { EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreate(&handle_)); }
  ~Handle() { EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroy(handle_)); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

struct Dims {
  int n = 1, c = 1, h = 1, w = 1;
  int Count() const { return n * c * h * w; }
  size_t At(int in, int ic, int ih, int iw) const { return static_cast<size_t>(((in * c + ic) * h + ih) * w + iw); }
};

// A packed NCHW float tensor: its descriptor, its values on the device and on the host.
class Tensor {
 public:
  Tensor(const Dims& dims, const std::vector<float>& values) : dims(dims), host(values), device(values) {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateTensorDescriptor(&desc));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, dims.n, dims.c, dims.h, dims.w));
  }
  Tensor(const Dims& dims, uint32_t seed) : Tensor(dims, Eighths(seed).Take(static_cast<size_t>(dims.Count()))) {}
  ~Tensor() { EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyTensorDescriptor(desc)); }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  Dims dims;
  std::vector<float> host;
  DeviceArray<float> device;
  cudnnTensorDescriptor_t desc = nullptr;
};

struct ConvShape {
  Dims x{2, 4, 7, 6};
  int k = 6, r = 3, s = 3;
  int pad_h = 1, pad_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int groups = 1;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;

  Dims Output() const {
    return {x.n, k, (x.h + 2 * pad_h - ((r - 1) * dilation_h + 1)) / stride_h + 1,
            (x.w + 2 * pad_w - ((s - 1) * dilation_w + 1)) / stride_w + 1};
  }
  Dims Filter() const { return {k, x.c / groups, r, s}; }
};

// alpha * conv(x, w) in double.
std::vector<double> ConvReference(const ConvShape& shape, const std::vector<float>& x, const std::vector<float>& w,
                                  double alpha) {
  const Dims y = shape.Output(), f = shape.Filter();
  std::vector<double> out(static_cast<size_t>(y.Count()));
  for (int n = 0; n < y.n; ++n)
    for (int k = 0; k < y.c; ++k)
      for (int p = 0; p < y.h; ++p)
        for (int q = 0; q < y.w; ++q) {
          double sum = 0;
          for (int c = 0; c < f.c; ++c)
            for (int r = 0; r < f.h; ++r)
              for (int s = 0; s < f.w; ++s) {
                const int h = p * shape.stride_h - shape.pad_h + r * shape.dilation_h;
                const int v = q * shape.stride_w - shape.pad_w + s * shape.dilation_w;
                if (h < 0 || h >= shape.x.h || v < 0 || v >= shape.x.w) continue;
                const bool flip = shape.mode == CUDNN_CONVOLUTION;
                const int channel = k / (shape.k / shape.groups) * f.c + c;
                sum += static_cast<double>(x[shape.x.At(n, channel, h, v)]) *
                       w[f.At(k, c, flip ? f.h - 1 - r : r, flip ? f.w - 1 - s : s)];
              }
          out[y.At(n, k, p, q)] = alpha * sum;
        }
  return out;
}

// One convolution with its memory; public members are what a test may spoil.
class Conv {
 public:
  explicit Conv(const ConvShape& shape)
      : shape(shape),
        x(shape.x, 1),
        w(Eighths(2).Take(static_cast<size_t>(shape.Filter().Count()))),
        y(shape.Output(), 3),
        bias({1, shape.k, 1, 1}, 4),
        z(shape.Output(), 5),
        device_w(w) {
    const Dims f = shape.Filter();
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateFilterDescriptor(&filter));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, f.n, f.c, f.h, f.w));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateConvolutionDescriptor(&conv));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetConvolution2dDescriptor(conv, shape.pad_h, shape.pad_w, shape.stride_h, shape.stride_w,
                                              shape.dilation_h, shape.dilation_w, shape.mode, CUDNN_DATA_FLOAT));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetConvolutionGroupCount(conv, shape.groups));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetConvolutionMathType(conv, CUDNN_FMA_MATH));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateActivationDescriptor(&activation));
    SetActivation(CUDNN_ACTIVATION_RELU);
  }
  ~Conv() {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyActivationDescriptor(activation));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyConvolutionDescriptor(conv));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyFilterDescriptor(filter));
  }
  Conv(const Conv&) = delete;
  Conv& operator=(const Conv&) = delete;

  void SetActivation(cudnnActivationMode_t mode) {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetActivationDescriptor(activation, mode, CUDNN_NOT_PROPAGATE_NAN, 0.0));
  }
  size_t WorkspaceBytes(cudnnConvolutionFwdAlgo_t algorithm) {
    size_t bytes = 0;
    EXPECT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnGetConvolutionForwardWorkspaceSize(handle.get(), x.desc, filter, conv, y.desc, algorithm, &bytes));
    return bytes;
  }
  cudnnStatus_t Forward(cudaStream_t stream, cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t bytes) {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(handle.get(), stream));
    return cudnnConvolutionForward(handle.get(), &alpha, x.desc, x.device.get(), filter, device_w.get(), conv,
                                   algorithm, workspace, bytes, &beta, y.desc, y.device.get());
  }
  cudnnStatus_t Fused(cudaStream_t stream, cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t bytes) {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(handle.get(), stream));
    return cudnnConvolutionBiasActivationForward(handle.get(), &alpha, x.desc, x.device.get(), filter, device_w.get(),
                                                 conv, algorithm, workspace, bytes, &beta, z.desc, z.device.get(),
                                                 bias.desc, bias.device.get(), activation, y.desc, y.device.get());
  }
  // What Forward must leave in y.
  std::vector<float> Expected() const {
    std::vector<float> expected;
    const std::vector<double> sums = ConvReference(shape, x.host, w, alpha);
    for (size_t i = 0; i < sums.size(); ++i) expected.push_back(static_cast<float>(sums[i] + beta * y.host[i]));
    return expected;
  }
  std::vector<float> ExpectedFused(bool relu) const {
    std::vector<float> expected;
    const Dims dims = y.dims;
    const std::vector<double> sums = ConvReference(shape, x.host, w, alpha);
    for (size_t i = 0; i < sums.size(); ++i) {
      const size_t channel = i / static_cast<size_t>(dims.h * dims.w) % static_cast<size_t>(dims.c);
      const double value = sums[i] + beta * z.host[i] + bias.host[channel];
      expected.push_back(static_cast<float>(relu && value < 0 ? 0 : value));
    }
    return expected;
  }

  ConvShape shape;
  Handle handle;
  Tensor x;
  std::vector<float> w;
  Tensor y, bias, z;
  DeviceArray<float> device_w;
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t conv = nullptr;
  cudnnActivationDescriptor_t activation = nullptr;
  float alpha = 1.0f, beta = 0.0f;
};

struct NamedShape {
  const char* name;
  ConvShape shape;
};

std::vector<NamedShape> ConvShapes() {
  std::vector<NamedShape> shapes = {{"3 x 3", {}}};
  const auto add = [&](const char* name, const std::function<void(ConvShape*)>& change) {
    shapes.push_back({name, {}});
    change(&shapes.back().shape);
  };
  add("1 x 1", [](ConvShape* s) { s->r = s->s = 1, s->pad_h = s->pad_w = 0; });
  add("no padding", [](ConvShape* s) { s->pad_h = s->pad_w = 0; });
  add("strides and uneven filter",
      [](ConvShape* s) { s->r = 2, s->s = 5, s->stride_h = 2, s->stride_w = 3, s->pad_w = 2; });
  add("dilation", [](ConvShape* s) { s->dilation_h = 2, s->dilation_w = 2, s->pad_h = s->pad_w = 2; });
  add("groups", [](ConvShape* s) { s->groups = 2; });
  add("depthwise", [](ConvShape* s) { s->groups = 4, s->k = 8; });
  add("true convolution", [](ConvShape* s) { s->mode = CUDNN_CONVOLUTION; });
  return shapes;
}

TEST(CudnnConvolution, OutputDimensions) {
  for (const NamedShape& named : ConvShapes()) {
    SCOPED_TRACE(named.name);
    Conv conv(named.shape);
    Dims got;
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetConvolution2dForwardOutputDim(conv.conv, conv.x.desc, conv.filter, &got.n,
                                                                          &got.c, &got.h, &got.w));
    const Dims expected = named.shape.Output();
    EXPECT_EQ(std::vector<int>({expected.n, expected.c, expected.h, expected.w}),
              std::vector<int>({got.n, got.c, got.h, got.w}));
  }
}

TEST(CudnnConvolution, ForwardWithEachAlgorithm) {
  for (const NamedShape& named : ConvShapes()) {
    for (const auto algorithm : {kImplicit, kPrecomputed, kGemm}) {
      // NOTE: the real library has the explicit GEMM for neither groups nor dilation.
      const bool special = named.shape.groups != 1 || named.shape.dilation_h != 1;
      if (algorithm == kGemm && special) continue;
      SCOPED_TRACE(std::string(named.name) + ", algorithm " + std::to_string(algorithm));
      for (const float beta : {0.0f, 2.0f}) {
        Conv conv(named.shape);
        Stream stream;
        conv.alpha = 0.5f;
        conv.beta = beta;
        const size_t bytes = conv.WorkspaceBytes(algorithm);
        const DeviceArray<uint8_t> workspace{std::vector<uint8_t>(bytes)};
        ASSERT_EQ(CUDNN_STATUS_SUCCESS, conv.Forward(stream.get(), algorithm, workspace.get(), bytes));
        stream.Synchronize();
        EXPECT_EQ(conv.Expected(), conv.y.device.Download());
      }
    }
  }
}

// --- Volumes --------------------------------------------------------------------------------------------------------

using Sizes = std::vector<int>;

// Element `i` of a packed array, on each axis.
Sizes Places(size_t i, const Sizes& sizes) {
  Sizes at(sizes.size());
  for (size_t axis = sizes.size(); axis-- > 0; i /= static_cast<size_t>(sizes[axis])) {
    at[axis] = static_cast<int>(i % static_cast<size_t>(sizes[axis]));
  }
  return at;
}
size_t Place(const Sizes& at, const Sizes& sizes) {
  size_t i = 0;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    i = i * static_cast<size_t>(sizes[axis]) + static_cast<size_t>(at[axis]);
  }
  return i;
}
size_t CountOf(const Sizes& sizes) {
  size_t count = 1;
  for (int size : sizes) count *= static_cast<size_t>(size);
  return count;
}

// A convolution of three axes with strides, dilations and pads that differ from axis to axis.
class Volume {
 public:
  explicit Volume(cudnnConvolutionMode_t mode)
      : mode(mode),
        host_x(Eighths(11).Take(CountOf(x_sizes))),
        host_w(Eighths(12).Take(CountOf(w_sizes))),
        x(host_x),
        w(host_w),
        y(std::vector<float>(CountOf(y_sizes))) {
    for (auto& [desc, sizes] : {std::pair{&x_desc, &x_sizes}, std::pair{&y_desc, &y_sizes}}) {
      EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateTensorDescriptor(desc));
      EXPECT_EQ(CUDNN_STATUS_SUCCESS,
                cudnnSetTensorNdDescriptorEx(*desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 5, sizes->data()));
    }
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateFilterDescriptor(&filter));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetFilterNdDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 5, w_sizes.data()));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateConvolutionDescriptor(&conv));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetConvolutionNdDescriptor(conv, 3, pads.data(), strides.data(),
                                                                    dilations.data(), mode, CUDNN_DATA_FLOAT));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetConvolutionMathType(conv, CUDNN_FMA_MATH));
  }
  ~Volume() {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyConvolutionDescriptor(conv));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyFilterDescriptor(filter));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyTensorDescriptor(y_desc));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyTensorDescriptor(x_desc));
  }
  Volume(const Volume&) = delete;

  std::vector<float> Expected() const {
    std::vector<float> expected;
    for (size_t i = 0; i < CountOf(y_sizes); ++i) {
      const Sizes at = Places(i, y_sizes);
      double sum = 0;
      for (size_t k = 0; k < CountOf(w_sizes); ++k) {
        Sizes by = Places(k, w_sizes), from = {at[0], by[1]};
        if (by[0] != at[1]) continue;
        bool inside = true;
        for (size_t axis = 0; axis < 3; ++axis) {
          from.push_back(at[2 + axis] * strides[axis] - pads[axis] + by[2 + axis] * dilations[axis]);
          inside = inside && from.back() >= 0 && from.back() < x_sizes[2 + axis];
          if (mode == CUDNN_CONVOLUTION) by[2 + axis] = w_sizes[2 + axis] - 1 - by[2 + axis];
        }
        if (inside) sum += static_cast<double>(host_x[Place(from, x_sizes)]) * host_w[Place(by, w_sizes)];
      }
      expected.push_back(static_cast<float>(sum));
    }
    return expected;
  }

  const cudnnConvolutionMode_t mode;
  const Sizes x_sizes = {2, 3, 4, 5, 6}, w_sizes = {4, 3, 2, 3, 2}, y_sizes = {2, 4, 5, 3, 3};
  const Sizes pads = {1, 1, 0}, strides = {1, 2, 2}, dilations = {1, 1, 1};
  const std::vector<float> host_x, host_w;
  DeviceArray<float> x, w, y;
  cudnnTensorDescriptor_t x_desc = nullptr, y_desc = nullptr;
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t conv = nullptr;
};

TEST(CudnnConvolution, OfVolumes) {
  for (const auto mode : {CUDNN_CROSS_CORRELATION, CUDNN_CONVOLUTION}) {
    for (const auto algorithm : {kImplicit, kPrecomputed}) {
      Volume v(mode);
      const Handle handle;
      const float one = 1.0f, zero = 0.0f;
      size_t bytes = 0;
      ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetConvolutionForwardWorkspaceSize(handle.get(), v.x_desc, v.filter, v.conv,
                                                                              v.y_desc, algorithm, &bytes));
      const DeviceArray<uint8_t> workspace{std::vector<uint8_t>(bytes)};
      ASSERT_EQ(CUDNN_STATUS_SUCCESS,
                cudnnConvolutionForward(handle.get(), &one, v.x_desc, v.x.get(), v.filter, v.w.get(), v.conv, algorithm,
                                        workspace.get(), bytes, &zero, v.y_desc, v.y.get()));
      ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
      EXPECT_EQ(v.Expected(), v.y.Download());
    }
  }
}

TEST(CudnnConvolution, DescriptorsOfVolumesAreReadBack) {
  Volume v(CUDNN_CROSS_CORRELATION);
  cudnnDataType_t type = CUDNN_DATA_HALF;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NHWC;
  int rank = 0;
  Sizes sizes(5), strides(5);
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetTensorNdDescriptor(v.x_desc, 5, &type, &rank, sizes.data(), strides.data()));
  EXPECT_EQ(5, rank);
  EXPECT_EQ(v.x_sizes, sizes);
  EXPECT_EQ((Sizes{3 * 4 * 5 * 6, 4 * 5 * 6, 5 * 6, 6, 1}), strides);
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetFilterNdDescriptor(v.filter, 5, &type, &format, &rank, sizes.data()));
  EXPECT_EQ(v.w_sizes, sizes);
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetConvolutionNdForwardOutputDim(v.conv, v.x_desc, v.filter, 5, sizes.data()));
  EXPECT_EQ(v.y_sizes, sizes);
  size_t bytes = 0;
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetTensorSizeInBytes(v.x_desc, &bytes));
  EXPECT_EQ(CountOf(v.x_sizes) * sizeof(float), bytes);
}

TEST(CudnnConvolution, FusedBiasAndActivation) {
  for (const float alpha2 : {0.0f, 0.5f}) {
    for (const auto algorithm : {kImplicit, kPrecomputed}) {
      for (const auto mode : {CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_IDENTITY}) {
        if (mode == CUDNN_ACTIVATION_IDENTITY && algorithm != kPrecomputed) continue;
        Conv conv{ConvShape()};
        Stream stream;
        conv.beta = alpha2;
        conv.SetActivation(mode);
        const size_t bytes = conv.WorkspaceBytes(algorithm);
        const DeviceArray<uint8_t> workspace{std::vector<uint8_t>(bytes)};
        ASSERT_EQ(CUDNN_STATUS_SUCCESS, conv.Fused(stream.get(), algorithm, workspace.get(), bytes));
        stream.Synchronize();
        EXPECT_EQ(conv.ExpectedFused(mode == CUDNN_ACTIVATION_RELU), conv.y.device.Download());
      }
    }
  }
}

// The fused call alone, as an H200 did with cuDNN 9.14. Was refused.
TEST(CudnnConvolution, FusedWinogradNeedsNoWorkspace) {
  Conv conv{ConvShape()};
  Stream stream;
  size_t bytes = 0;
  conv.SetActivation(CUDNN_ACTIVATION_RELU);
  const auto algorithm = CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD;
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, conv.Forward(stream.get(), algorithm, nullptr, bytes));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, conv.Fused(stream.get(), algorithm, nullptr, bytes));
  stream.Synchronize();
  EXPECT_EQ(conv.ExpectedFused(true), conv.y.device.Download());
}

TEST(CudnnConvolution, FusedCallRefusesWhatItCannotFuse) {
  Conv conv{ConvShape()};
  conv.SetActivation(CUDNN_ACTIVATION_TANH);
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, conv.Fused(nullptr, kImplicit, nullptr, 0));
  conv.SetActivation(CUDNN_ACTIVATION_RELU);
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnSetTensor4dDescriptor(conv.bias.desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 5, 1, 1));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, conv.Fused(nullptr, kImplicit, nullptr, 0));
}

// The explicit GEMM has a workspace on the simulator, Winograd on a GPU: one of the two is there to be refused.
TEST(CudnnConvolution, WorkspaceOneByteTooSmallIsABadParameterAndLeavesACaptureActive) {
  int tried = 0;
  for (const auto algorithm : {kGemm, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED}) {
    Conv conv{ConvShape()};
    Stream stream;
    size_t bytes = 0;
    const cudnnStatus_t query = cudnnGetConvolutionForwardWorkspaceSize(conv.handle.get(), conv.x.desc, conv.filter,
                                                                        conv.conv, conv.y.desc, algorithm, &bytes);
    if (query != CUDNN_STATUS_SUCCESS || bytes == 0) continue;
    ++tried;
    const DeviceArray<uint8_t> workspace{std::vector<uint8_t>(bytes)};
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, conv.Forward(stream.get(), algorithm, workspace.get(), bytes - 1));
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, conv.Forward(stream.get(), algorithm, nullptr, bytes));
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    const CaptureEnd end = Capture(stream.get(), cudaStreamCaptureModeGlobal,
                                   [&] { status = conv.Forward(stream.get(), algorithm, workspace.get(), bytes - 1); });
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, status);
    EXPECT_EQ(cudaStreamCaptureStatusActive, end.status);
    EXPECT_EQ(cudaSuccess, end.code);
    EXPECT_EQ(0u, end.nodes);
  }
  EXPECT_GE(tried, 1);
}

TEST(CudnnConvolution, InAnInvalidatedCaptureFails) {
  Conv conv{ConvShape()};
  Stream stream;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(conv.handle.get(), stream.get()));
  (void)Capture(stream.get(), cudaStreamCaptureModeThreadLocal, [&] {
    EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
    status = cudnnConvolutionForward(conv.handle.get(), &conv.alpha, conv.x.desc, conv.x.device.get(), conv.filter,
                                     conv.device_w.get(), conv.conv, kImplicit, nullptr, 0, &conv.beta, conv.y.desc,
                                     conv.y.device.get());
  });
  EXPECT_EQ(CUDNN_STATUS_EXECUTION_FAILED_CUDART, status);
}

TEST(CudnnConvolution, AlgorithmThatIsNotSupportedSaysSo) {
  Conv conv{ConvShape()};
  Stream stream;
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, conv.Forward(stream.get(), CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, nullptr, 0));
  size_t bytes = 0;
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, CUDNN_STATUS_CATEGORY(cudnnGetConvolutionForwardWorkspaceSize(
                                            conv.handle.get(), conv.x.desc, conv.filter, conv.conv, conv.y.desc,
                                            CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, &bytes)));
}

TEST(CudnnConvolution, HeuristicsNameAnAlgorithmThatRuns) {
  Conv conv{ConvShape()};
  Stream stream;
  int most = 0;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetConvolutionForwardAlgorithmMaxCount(conv.handle.get(), &most));
  std::vector<cudnnConvolutionFwdAlgoPerf_t> results(static_cast<size_t>(most));
  int count = 0;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnGetConvolutionForwardAlgorithm_v7(conv.handle.get(), conv.x.desc, conv.filter, conv.conv, conv.y.desc,
                                                   most, &count, results.data()));
  ASSERT_GE(count, 1);
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, results[0].status);
  EXPECT_EQ(conv.WorkspaceBytes(results[0].algo), results[0].memory);
  const DeviceArray<uint8_t> workspace{std::vector<uint8_t>(results[0].memory)};
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, conv.Forward(stream.get(), results[0].algo, workspace.get(), results[0].memory));
  stream.Synchronize();
  const std::vector<float> expected = conv.Expected();
  const std::vector<float> got = conv.y.device.Download();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(expected[i], got[i], 1e-4) << i;  // Winograd rounds
}

TEST(CudnnConvolution, AlgorithmListStopsAtTheCountAskedFor) {
  Conv conv{ConvShape()};
  cudnnConvolutionFwdAlgoPerf_t results[2];
  results[1].memory = 12345;
  int count = 0;
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetConvolutionForwardAlgorithm_v7(conv.handle.get(), conv.x.desc, conv.filter,
                                                                         conv.conv, conv.y.desc, 1, &count, results));
  EXPECT_EQ(1, count);
  EXPECT_EQ(12345u, results[1].memory);
}

TEST(CudnnConvolution, ACapturedConvolutionRunsAtEachReplayAndNotBefore) {
  Conv conv{ConvShape()};
  Stream stream;
  const size_t bytes = conv.WorkspaceBytes(kPrecomputed);
  const DeviceArray<uint8_t> workspace{std::vector<uint8_t>(bytes)};
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, conv.Forward(stream.get(), kPrecomputed, workspace.get(), bytes));
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream.get(), &graph));
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
  stream.Synchronize();
  EXPECT_EQ(conv.y.host, conv.y.device.Download());
  for (int replay = 0; replay < 2; ++replay) {
    ASSERT_EQ(cudaSuccess, cudaMemsetAsync(conv.y.device.get(), 0, conv.y.device.Bytes(), stream.get()));
    ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream.get()));
    stream.Synchronize();
    EXPECT_EQ(conv.Expected(), conv.y.device.Download());
  }
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

TEST(CudnnPooling, MaximumAndAverages) {
  const Dims in{2, 3, 7, 5};
  const int window[] = {3, 2}, pad[] = {1, 1}, stride[] = {2, 1};
  for (const auto mode : {CUDNN_POOLING_MAX, CUDNN_POOLING_MAX_DETERMINISTIC,
                          CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING}) {
    SCOPED_TRACE(mode);
    Handle handle;
    Stream stream;
    cudnnPoolingDescriptor_t pooling = nullptr;
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreatePoolingDescriptor(&pooling));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetPooling2dDescriptor(pooling, mode, CUDNN_NOT_PROPAGATE_NAN, window[0],
                                                                window[1], pad[0], pad[1], stride[0], stride[1]));
    Tensor x(in, 7);
    Dims out;
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetPooling2dForwardOutputDim(pooling, x.desc, &out.n, &out.c, &out.h, &out.w));
    EXPECT_EQ(4, out.h);  // (7 + 2 - 3) / 2 + 1
    EXPECT_EQ(6, out.w);  // (5 + 2 - 2) / 1 + 1
    Tensor y(out, 8);
    const float alpha = 2.0f, beta = 1.0f;
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(handle.get(), stream.get()));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnPoolingForward(handle.get(), pooling, &alpha, x.desc, x.device.get(), &beta,
                                                        y.desc, y.device.get()));
    stream.Synchronize();
    const std::vector<float> got = y.device.Download();
    for (int n = 0; n < out.n; ++n)
      for (int c = 0; c < out.c; ++c)
        for (int p = 0; p < out.h; ++p)
          for (int q = 0; q < out.w; ++q) {
            std::vector<double> seen;
            for (int i = 0; i < window[0] * window[1]; ++i) {
              const int h = p * stride[0] - pad[0] + i / window[1], w = q * stride[1] - pad[1] + i % window[1];
              if (h >= 0 && h < in.h && w >= 0 && w < in.w) seen.push_back(x.host[in.At(n, c, h, w)]);
            }
            double sum = 0;
            for (double value : seen) sum += value;
            double expected = *std::max_element(seen.begin(), seen.end());
            if (mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING) expected = sum / (window[0] * window[1]);
            if (mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING) expected = sum / static_cast<double>(seen.size());
            const size_t at = out.At(n, c, p, q);
            EXPECT_NEAR(alpha * expected + beta * y.host[at], got[at], 1e-6);  // a division rounds
          }
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyPoolingDescriptor(pooling));
  }
}

// The first element that max-pooling of a 2 x 2 image gives; NaN is not propagated.
float FirstMaximum(const std::vector<float>& image, int pad, int stride) {
  Handle handle;
  cudnnPoolingDescriptor_t pooling = nullptr;
  Dims out;
  const float alpha = 1.0f, beta = 0.0f;
  Tensor x({1, 1, 2, 2}, image);
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreatePoolingDescriptor(&pooling));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2, 2,
                                                              pad, pad, stride, stride));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetPooling2dForwardOutputDim(pooling, x.desc, &out.n, &out.c, &out.h, &out.w));
  Tensor y(out, 1);
  EXPECT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnPoolingForward(handle.get(), pooling, &alpha, x.desc, x.device.get(), &beta, y.desc, y.device.get()));
  EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyPoolingDescriptor(pooling));
  return y.device.Download()[0];
}

TEST(CudnnPooling, NanDoesNotWinAMaximum) {
  EXPECT_EQ(-5.0f, FirstMaximum({std::numeric_limits<float>::quiet_NaN(), -5, -6, -7}, 0, 2));
}

TEST(CudnnPooling, MaximumOfPaddingAloneIsTheLowestFloat) {
  EXPECT_EQ(std::numeric_limits<float>::lowest(), FirstMaximum({1, 2, 3, 4}, 2, 1));
}

TEST(CudnnAddTensor, BroadcastsOverDimensionsOfOne) {
  for (const Dims& shape : {Dims{1, 3, 1, 1}, Dims{2, 3, 4, 5}, Dims{1, 1, 1, 1}}) {
    Handle handle;
    Stream stream;
    Tensor a(shape, 9), c({2, 3, 4, 5}, 10);
    const float alpha = 2.0f, beta = 0.5f;
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(handle.get(), stream.get()));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnAddTensor(handle.get(), &alpha, a.desc, a.device.get(), &beta, c.desc, c.device.get()));
    stream.Synchronize();
    const std::vector<float> got = c.device.Download();
    for (int n = 0; n < 2; ++n)
      for (int ch = 0; ch < 3; ++ch)
        for (int h = 0; h < 4; ++h)
          for (int w = 0; w < 5; ++w) {
            const size_t from =
                shape.At(shape.n == 1 ? 0 : n, shape.c == 1 ? 0 : ch, shape.h == 1 ? 0 : h, shape.w == 1 ? 0 : w);
            const size_t at = c.dims.At(n, ch, h, w);
            EXPECT_EQ(alpha * a.host[from] + beta * c.host[at], got[at]);
          }
  }
}

struct ActivationCase {
  cudnnActivationMode_t mode;
  double coef;
  double (*expected)(double x, double coef);
};

TEST(CudnnActivation, ModesAndInPlace) {
  const ActivationCase cases[] = {
      {CUDNN_ACTIVATION_SIGMOID, 0, [](double x, double) { return 1 / (1 + std::exp(-x)); }},
      {CUDNN_ACTIVATION_RELU, 0, [](double x, double) { return std::max(x, 0.0); }},
      {CUDNN_ACTIVATION_TANH, 0, [](double x, double) { return std::tanh(x); }},
      {CUDNN_ACTIVATION_CLIPPED_RELU, 0.5, [](double x, double c) { return std::min(std::max(x, 0.0), c); }},
      {CUDNN_ACTIVATION_ELU, 0.75, [](double x, double c) { return x > 0 ? x : c * (std::exp(x) - 1); }},
  };
  for (const ActivationCase& test : cases) {
    SCOPED_TRACE(test.mode);
    Handle handle;
    Stream stream;
    Tensor x({2, 3, 4, 5}, 11);
    cudnnActivationDescriptor_t activation = nullptr;
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateActivationDescriptor(&activation));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetActivationDescriptor(activation, test.mode, CUDNN_PROPAGATE_NAN, test.coef));
    const float alpha = 1.0f, beta = 0.0f;
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(handle.get(), stream.get()));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnActivationForward(handle.get(), activation, &alpha, x.desc, x.device.get(),
                                                           &beta, x.desc, x.device.get()));
    stream.Synchronize();
    const std::vector<float> got = x.device.Download();
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(test.expected(x.host[i], test.coef), got[i], 1e-6);  // a few ulp of values below 1
    }
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyActivationDescriptor(activation));
  }
}

// What one activation makes of one value.
float Activated(cudnnActivationMode_t mode, cudnnNanPropagation_t nan, float value) {
  Handle handle;
  Tensor x(Dims(), std::vector<float>{value});
  cudnnActivationDescriptor_t activation = nullptr;
  const float alpha = 1.0f, beta = 0.0f;
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateActivationDescriptor(&activation));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetActivationDescriptor(activation, mode, nan, 2.0));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnActivationForward(handle.get(), activation, &alpha, x.desc, x.device.get(),
                                                         &beta, x.desc, x.device.get()));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyActivationDescriptor(activation));
  EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
  return x.device.Download()[0];
}

TEST(CudnnActivation, RelusDropNanUnlessToldToPropagateIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto mode : {CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_CLIPPED_RELU}) {
    EXPECT_EQ(0.0f, Activated(mode, CUDNN_NOT_PROPAGATE_NAN, nan));
    EXPECT_TRUE(std::isnan(Activated(mode, CUDNN_PROPAGATE_NAN, nan)));
  }
  EXPECT_TRUE(std::isnan(Activated(CUDNN_ACTIVATION_TANH, CUDNN_NOT_PROPAGATE_NAN, nan)));
}

TEST(CudnnSoftmax, AlgorithmsAndModes) {
  const Dims dims{2, 3, 2, 4};
  for (const auto algorithm : {CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_LOG}) {
    for (const auto mode : {CUDNN_SOFTMAX_MODE_INSTANCE, CUDNN_SOFTMAX_MODE_CHANNEL}) {
      Handle handle;
      Stream stream;
      Tensor x(dims, 12), y(dims, 13);
      const float alpha = 1.0f, beta = 0.0f;
      ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(handle.get(), stream.get()));
      ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSoftmaxForward(handle.get(), algorithm, mode, &alpha, x.desc, x.device.get(),
                                                          &beta, y.desc, y.device.get()));
      stream.Synchronize();
      const std::vector<float> got = y.device.Download();
      for (int i = 0; i < dims.Count(); ++i) {
        const int n = i / 24, pixel = i % 8;
        double sum = 0;
        for (int j = 0; j < 24; ++j) {
          if (mode == CUDNN_SOFTMAX_MODE_INSTANCE || j % 8 == pixel) {
            sum += std::exp(static_cast<double>(x.host[static_cast<size_t>(n * 24 + j)]));
          }
        }
        const auto at = static_cast<size_t>(i);
        const double expected = std::exp(static_cast<double>(x.host[at])) / sum;
        EXPECT_NEAR(algorithm == CUDNN_SOFTMAX_LOG ? std::log(expected) : expected, got[at], 2e-6);
      }
    }
  }
}

TEST(CudnnSoftmax, AccurateSurvivesLargeValues) {
  Handle handle;
  Stream stream;
  Tensor x({1, 2, 1, 1}, {1000.0f, 1000.0f});
  const float alpha = 1.0f, beta = 0.0f;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(handle.get(), stream.get()));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSoftmaxForward(handle.get(), CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                                                      &alpha, x.desc, x.device.get(), &beta, x.desc, x.device.get()));
  stream.Synchronize();
  EXPECT_EQ(std::vector<float>({0.5f, 0.5f}), x.device.Download());
}

TEST(CudnnTensor, NhwcGivesTheSameConvolution) {
  ConvShape shape;
  shape.k = 8;
  shape.x.c = 8;
  Conv conv(shape);
  // The same values with channels innermost.
  const auto to_nhwc = [](const Dims& d, const std::vector<float>& values) {
    std::vector<float> out(values.size());
    for (int n = 0; n < d.n; ++n)
      for (int c = 0; c < d.c; ++c)
        for (int h = 0; h < d.h; ++h)
          for (int w = 0; w < d.w; ++w) {
            out[static_cast<size_t>(((n * d.h + h) * d.w + w) * d.c + c)] = values[d.At(n, c, h, w)];
          }
    return out;
  };
  const DeviceArray<float> x(to_nhwc(shape.x, conv.x.host)), w(to_nhwc(shape.Filter(), conv.w));
  const DeviceArray<float> y(conv.y.host);
  const Dims in = shape.x, out = shape.Output();
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnSetTensor4dDescriptor(conv.x.desc, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, in.n, in.c, in.h, in.w));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnSetTensor4dDescriptor(conv.y.desc, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, out.n, out.c, out.h, out.w));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetFilter4dDescriptor(conv.filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, shape.k,
                                                             in.c, shape.r, shape.s));
  Stream stream;
  const size_t bytes = conv.WorkspaceBytes(kPrecomputed);
  const DeviceArray<uint8_t> workspace{std::vector<uint8_t>(bytes)};
  const float alpha = 1.0f, beta = 0.0f;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(conv.handle.get(), stream.get()));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnConvolutionForward(conv.handle.get(), &alpha, conv.x.desc, x.get(), conv.filter, w.get(), conv.conv,
                                    kPrecomputed, workspace.get(), bytes, &beta, conv.y.desc, y.get()));
  stream.Synchronize();
  EXPECT_EQ(to_nhwc(out, conv.Expected()), y.Download());
}

TEST(CudnnTensor, DescriptorsReadBack) {
  Tensor tensor({2, 3, 4, 5}, 1);
  cudnnDataType_t type;
  int dims[4], strides[4];
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetTensor4dDescriptor(tensor.desc, &type, &dims[0], &dims[1], &dims[2], &dims[3],
                                                             &strides[0], &strides[1], &strides[2], &strides[3]));
  EXPECT_EQ(CUDNN_DATA_FLOAT, type);
  EXPECT_EQ(std::vector<int>({2, 3, 4, 5}), std::vector<int>(dims, dims + 4));
  EXPECT_EQ(std::vector<int>({60, 20, 5, 1}), std::vector<int>(strides, strides + 4));
  size_t bytes = 0;
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetTensorSizeInBytes(tensor.desc, &bytes));
  EXPECT_EQ(480u, bytes);
}

TEST(CudnnTensor, DescriptorThatWasNeverSetIsEmptyAndUnusable) {
  Conv conv{ConvShape()};
  cudnnTensorDescriptor_t unset = nullptr;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateTensorDescriptor(&unset));
  size_t bytes = 1;
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnGetTensorSizeInBytes(unset, &bytes));
  EXPECT_EQ(0u, bytes);
  int n, c, h, w;
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            cudnnGetConvolution2dForwardOutputDim(conv.conv, unset, conv.filter, &n, &c, &h, &w));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyTensorDescriptor(unset));
}

struct WrongCall {
  const char* name;
  std::function<cudnnStatus_t(Conv*)> call;
};

TEST(Cudnn, WrongCallsAreBadParametersAndLeaveACaptureActive) {
  const auto forward = [](Conv* c) {
    return cudnnConvolutionForward(c->handle.get(), &c->alpha, c->x.desc, c->x.device.get(), c->filter,
                                   c->device_w.get(), c->conv, kImplicit, nullptr, 0, &c->beta, c->y.desc,
                                   c->y.device.get());
  };
  const auto convolution = [](Conv* c, int pad, int stride, int dilation) {
    return cudnnSetConvolution2dDescriptor(c->conv, pad, pad, stride, stride, dilation, dilation,
                                           CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  };
  const auto tensor = [](cudnnTensorDescriptor_t desc, const Dims& d) {
    return cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, d.n, d.c, d.h, d.w);
  };
  const WrongCall calls[] = {
      {"no handle", [](Conv*) { return cudnnSetStream(nullptr, nullptr); }},
      {"no descriptor", [&](Conv*) { return tensor(nullptr, Dims()); }},
      {"tensor dimension of 0",
       [&](Conv* c) {
         return tensor(c->z.desc, {1, 0, 1, 1});
       }},
      {"negative padding", [&](Conv* c) { return convolution(c, -1, 1, 1); }},
      {"stride of 0", [&](Conv* c) { return convolution(c, 0, 0, 1); }},
      {"dilation of 0", [&](Conv* c) { return convolution(c, 0, 1, 0); }},
      {"an output of the wrong size",
       [&](Conv* c) {
         EXPECT_EQ(CUDNN_STATUS_SUCCESS, tensor(c->y.desc, {2, 6, 7, 5}));
         return forward(c);
       }},
      {"no input data",
       [](Conv* c) {
         return cudnnConvolutionForward(c->handle.get(), &c->alpha, c->x.desc, nullptr, c->filter, c->device_w.get(),
                                        c->conv, kImplicit, nullptr, 0, &c->beta, c->y.desc, c->y.device.get());
       }},
      {"misaligned input data",
       [](Conv* c) {
         const void* x = reinterpret_cast<const char*>(c->x.device.get()) + 1;
         return cudnnConvolutionForward(c->handle.get(), &c->alpha, c->x.desc, x, c->filter, c->device_w.get(), c->conv,
                                        kImplicit, nullptr, 0, &c->beta, c->y.desc, c->y.device.get());
       }},
      {"an addend that does not broadcast",
       [&](Conv* c) {
         EXPECT_EQ(CUDNN_STATUS_SUCCESS, tensor(c->bias.desc, {1, 5, 1, 1}));
         return cudnnAddTensor(c->handle.get(), &c->alpha, c->bias.desc, c->bias.device.get(), &c->beta, c->y.desc,
                               c->y.device.get());
       }},
      {"groups that do not match",
       [](Conv* c) {
         int n, k, h, w;
         EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetConvolutionGroupCount(c->conv, 2));
         return cudnnGetConvolution2dForwardOutputDim(c->conv, c->x.desc, c->filter, &n, &k, &h, &w);
       }},
      {"softmax of different sizes",
       [](Conv* c) {
         return cudnnSoftmaxForward(c->handle.get(), CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL, &c->alpha,
                                    c->x.desc, c->x.device.get(), &c->beta, c->y.desc, c->y.device.get());
       }},
  };
  for (const WrongCall& wrong : calls) {
    SCOPED_TRACE(wrong.name);
    Conv conv{ConvShape()};
    Stream stream;
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(conv.handle.get(), stream.get()));
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    const CaptureEnd end = Capture(stream.get(), cudaStreamCaptureModeThreadLocal, [&] { status = wrong.call(&conv); });
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, CUDNN_STATUS_CATEGORY(status)) << status;
    EXPECT_EQ(cudaStreamCaptureStatusActive, end.status);
    EXPECT_EQ(cudaSuccess, end.code);
    EXPECT_EQ(0u, end.nodes);
  }
}

// Answers 4004 and invalidates; in a relaxed capture it may.
TEST(Cudnn, CreateInACaptureFailsAndInvalidatesUnlessRelaxed) {
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
    Stream stream;
    cudnnHandle_t handle = nullptr;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    const CaptureEnd end = Capture(stream.get(), mode, [&] { status = cudnnCreate(&handle); });
    EXPECT_EQ(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, status);
    EXPECT_EQ(cudaStreamCaptureStatusInvalidated, end.status);
    EXPECT_EQ(cudaErrorStreamCaptureInvalidated, end.code);
  }
}

TEST(Cudnn, CreateOnAnotherThreadIsLegalBesideAThreadLocalCapture) {
  Stream stream;
  cudnnHandle_t handle = nullptr;
  cudnnStatus_t status = CUDNN_STATUS_INTERNAL_ERROR;
  const CaptureEnd end = Capture(stream.get(), cudaStreamCaptureModeThreadLocal,
                                 [&] { std::thread([&] { status = cudnnCreate(&handle); }).join(); });
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, status);
  EXPECT_EQ(cudaSuccess, end.code);
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroy(handle));
}

TEST(Cudnn, DestroyInACaptureFailsAndInvalidates) {
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreate(&handle));
  Stream stream;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  const CaptureEnd end =
      Capture(stream.get(), cudaStreamCaptureModeThreadLocal, [&] { status = cudnnDestroy(handle); });
  EXPECT_EQ(CUDNN_STATUS_INTERNAL_ERROR, status);
  EXPECT_EQ(cudaStreamCaptureStatusInvalidated, end.status);
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, end.code);
}

// The silent killer: nothing tells of it before the end of the capture.
TEST(Cudnn, FindAlgorithmExAnswersSuccessAndInvalidates) {
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    Conv conv{ConvShape()};
    Stream stream;
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(conv.handle.get(), stream.get()));
    const DeviceArray<uint8_t> workspace{std::vector<uint8_t>(1 << 20)};
    cudnnConvolutionFwdAlgoPerf_t result;
    int count = 0;
    cudnnStatus_t status = CUDNN_STATUS_INTERNAL_ERROR;
    const CaptureEnd end = Capture(stream.get(), mode, [&] {
      status = cudnnFindConvolutionForwardAlgorithmEx(conv.handle.get(), conv.x.desc, conv.x.device.get(), conv.filter,
                                                      conv.device_w.get(), conv.conv, conv.y.desc, conv.y.device.get(),
                                                      1, &count, &result, workspace.get(), workspace.Bytes());
    });
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, status);
    EXPECT_EQ(1, count);
    EXPECT_EQ(CUDNN_STATUS_INTERNAL_ERROR, result.status);
    EXPECT_EQ(cudaStreamCaptureStatusInvalidated, end.status);
    EXPECT_EQ(cudaErrorStreamCaptureInvalidated, end.code);
  }
}

TEST(Cudnn, FindAlgorithmExOnAnotherThreadDisturbsAGlobalCaptureAlone) {
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    Conv conv{ConvShape()};
    Stream capturing, eager;
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(conv.handle.get(), eager.get()));
    const DeviceArray<uint8_t> workspace{std::vector<uint8_t>(1 << 20)};
    cudnnConvolutionFwdAlgoPerf_t result;
    int count = 0;
    const CaptureEnd end = Capture(capturing.get(), mode, [&] {
      std::thread([&] {
        EXPECT_EQ(CUDNN_STATUS_SUCCESS,
                  cudnnFindConvolutionForwardAlgorithmEx(
                      conv.handle.get(), conv.x.desc, conv.x.device.get(), conv.filter, conv.device_w.get(), conv.conv,
                      conv.y.desc, conv.y.device.get(), 1, &count, &result, workspace.get(), workspace.Bytes()));
      }).join();
    });
    const bool global = mode == cudaStreamCaptureModeGlobal;
    EXPECT_EQ(global ? CUDNN_STATUS_INTERNAL_ERROR : CUDNN_STATUS_SUCCESS, result.status);
    EXPECT_EQ(global ? cudaErrorStreamCaptureInvalidated : cudaSuccess, end.code);
    eager.Synchronize();
  }
}

TEST(Cudnn, DescriptorsStreamAndQueriesAreLegalInACapture) {
  Conv conv{ConvShape()};
  Stream stream;
  const CaptureEnd end = Capture(stream.get(), cudaStreamCaptureModeGlobal, [&] {
    Conv* c = &conv;
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(c->handle.get(), stream.get()));
    (void)c->WorkspaceBytes(kPrecomputed);
    cudnnTensorDescriptor_t desc = nullptr;
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateTensorDescriptor(&desc));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyTensorDescriptor(desc));
  });
  EXPECT_EQ(cudaStreamCaptureStatusActive, end.status);
  EXPECT_EQ(cudaSuccess, end.code);
}

TEST(Cudnn, DestroyingNothingIsFine) {
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroy(nullptr));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyTensorDescriptor(nullptr));
}

TEST(Cudnn, StatusesHaveNames) {
  EXPECT_STREQ("CUDNN_STATUS_SUCCESS", cudnnGetErrorString(CUDNN_STATUS_SUCCESS));
  EXPECT_STREQ("CUDNN_STATUS_BAD_PARAM", cudnnGetErrorString(CUDNN_STATUS_BAD_PARAM));
}

}  // namespace
