// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cuDNN's forward calls on tensors of doubles, whose scalars and parameters are doubles too, against plain loops.
// Inputs are multiples of 2^-20 in [-1, 1]: convolutions and sums are exact in doubles in whatever order, and wrong in
// floats.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "cudnn.h"
#include "gtest/gtest.h"
#include "test/sim_libs/device.h"

namespace {

using gcap_test::DeviceArray;
using gcap_test::Stream;

// A few units in the last place of numbers up to 4.
constexpr double kRounding = 4e-15;

std::vector<double> Values(int count, uint32_t seed) {
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = (static_cast<int>(seed >> 11) - (1 << 20)) / 1048576.0;
  }
  return values;
}

// A packed NCHW tensor.
class Tensor {
 public:
  Tensor(int n, int c, int h, int w, uint32_t seed, cudnnDataType_t type = CUDNN_DATA_DOUBLE)
      : host(Values(n * c * h * w, seed)), device(host), dims{n, c, h, w} {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateTensorDescriptor(&desc));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, type, n, c, h, w));
  }
  ~Tensor() { EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyTensorDescriptor(desc)); }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  double At(int n, int c, int h, int w) const {
    return host[static_cast<size_t>(((n * dims[1] + c) * dims[2] + h) * dims[3] + w)];
  }

  std::vector<double> host;
  DeviceArray<double> device;
  int dims[4];
  cudnnTensorDescriptor_t desc = nullptr;
};

class Doubles : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreate(&handle));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(handle, stream.get()));
  }
  void TearDown() override { EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroy(handle)); }

  // Elements of y after the stream's work, each near what `expected` says of its index.
  void ExpectEach(const Tensor& y, const std::function<double(size_t)>& expected, double tolerance = kRounding) {
    stream.Synchronize();
    const std::vector<double> got = y.device.Download();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(expected(i), got[i], tolerance) << i;
  }

  Stream stream;
  cudnnHandle_t handle = nullptr;
  // More digits than a float has.
  const double alpha = 1.0 / 3, beta = -1.0 / 7, one = 1, zero = 0;
};

// --- Convolution ----------------------------------------------------------------------------------------------------

// 3 x 3, padded by 1, in two groups: x of 2 x 4 x 6 x 5, y of 2 x 6 x 6 x 5.
class ConvolutionOfDoubles : public Doubles {
 protected:
  void SetUp() override {
    Doubles::SetUp();
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateFilterDescriptor(&filter));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateConvolutionDescriptor(&conv));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_DOUBLE, CUDNN_TENSOR_NCHW, 6, 2, 3, 3));
    SetCompute(CUDNN_DATA_DOUBLE);
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetConvolutionGroupCount(conv, 2));
  }
  void TearDown() override {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyConvolutionDescriptor(conv));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyFilterDescriptor(filter));
    Doubles::TearDown();
  }
  void SetCompute(cudnnDataType_t type) {
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetConvolution2dDescriptor(conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, type));
  }
  cudnnStatus_t WorkspaceSize(cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
    return cudnnGetConvolutionForwardWorkspaceSize(handle, x.desc, filter, conv, y.desc, algorithm, bytes);
  }

  // The convolution alone at an index of y.
  double Sum(size_t index) const {
    const int at = static_cast<int>(index), q = at % 5, p = at / 5 % 6, k = at / 30 % 6, n = at / 180;
    double sum = 0;
    for (int c = 0; c < 2; ++c) {
      for (int tap = 0; tap < 9; ++tap) {
        const int h = p - 1 + tap / 3, v = q - 1 + tap % 3;
        if (h < 0 || h >= 6 || v < 0 || v >= 5) continue;
        sum += x.At(n, k / 3 * 2 + c, h, v) * w[static_cast<size_t>((k * 2 + c) * 9 + tap)];
      }
    }
    return sum;
  }

  Tensor x{2, 4, 6, 5, 1}, y{2, 6, 6, 5, 2};
  std::vector<double> w = Values(6 * 2 * 9, 3);
  DeviceArray<double> device_w{w};
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t conv = nullptr;
};

const cudnnConvolutionFwdAlgo_t kAlgorithms[] = {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                                 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                                 CUDNN_CONVOLUTION_FWD_ALGO_GEMM};

TEST_F(ConvolutionOfDoubles, EqualsTheLoop) {
  for (const auto algorithm : kAlgorithms) {
    size_t bytes = 0;
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, WorkspaceSize(algorithm, &bytes));
    const DeviceArray<uint8_t> workspace{std::vector<uint8_t>(bytes)};
    y.device.Upload(y.host);
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnConvolutionForward(handle, &alpha, x.desc, x.device.get(), filter, device_w.get(), conv, algorithm,
                                      workspace.get(), bytes, &beta, y.desc, y.device.get()));
    ExpectEach(y, [&](size_t i) { return alpha * Sum(i) + beta * y.host[i]; });
  }
}

TEST_F(ConvolutionOfDoubles, TakesABiasAndRectifies) {
  const Tensor bias(1, 6, 1, 1, 4);
  cudnnActivationDescriptor_t relu = nullptr;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateActivationDescriptor(&relu));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnConvolutionBiasActivationForward(
                                      handle, &alpha, x.desc, x.device.get(), filter, device_w.get(), conv,
                                      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &beta, y.desc,
                                      y.device.get(), bias.desc, bias.device.get(), relu, y.desc, y.device.get()));
  ExpectEach(y, [&](size_t i) { return std::max(0.0, alpha * Sum(i) + beta * y.host[i] + bias.host[i / 30 % 6]); });
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyActivationDescriptor(relu));
}

TEST_F(ConvolutionOfDoubles, IsCalculatedInDoublesAlone) {
  size_t bytes = 0;
  SetCompute(CUDNN_DATA_FLOAT);
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED,
            CUDNN_STATUS_CATEGORY(WorkspaceSize(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &bytes)));
}

// --- The other calls ------------------------------------------------------------------------------------------------

TEST_F(Doubles, PoolingOf2By2) {
  for (const auto mode : {CUDNN_POOLING_MAX, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING}) {
    const Tensor x(2, 3, 6, 4, 5), y(2, 3, 3, 2, 6);
    cudnnPoolingDescriptor_t pooling = nullptr;
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreatePoolingDescriptor(&pooling));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetPooling2dDescriptor(pooling, mode, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnPoolingForward(handle, pooling, &alpha, x.desc, x.device.get(), &beta, y.desc, y.device.get()));
    ExpectEach(y, [&](size_t index) {
      const int i = static_cast<int>(index), q = i % 2, p = i / 2 % 3, c = i / 6 % 3, n = i / 18;
      const double in[] = {x.At(n, c, 2 * p, 2 * q), x.At(n, c, 2 * p, 2 * q + 1), x.At(n, c, 2 * p + 1, 2 * q),
                           x.At(n, c, 2 * p + 1, 2 * q + 1)};
      const double pooled =
          mode == CUDNN_POOLING_MAX ? *std::max_element(in, in + 4) : (in[0] + in[1] + in[2] + in[3]) / 4;
      return alpha * pooled + beta * y.host[index];
    });
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyPoolingDescriptor(pooling));
  }
}

TEST_F(Doubles, Activations) {
  struct Case {
    cudnnActivationMode_t mode;
    double (*expected)(double);
  };
  const Case cases[] = {
      {CUDNN_ACTIVATION_SIGMOID, [](double v) { return 1 / (1 + std::exp(-v)); }},
      {CUDNN_ACTIVATION_RELU, [](double v) { return std::max(v, 0.0); }},
      {CUDNN_ACTIVATION_TANH, [](double v) { return std::tanh(v); }},
      {CUDNN_ACTIVATION_CLIPPED_RELU, [](double v) { return std::min(std::max(v, 0.0), 0.1); }},
      {CUDNN_ACTIVATION_ELU, [](double v) { return v > 0 ? v : 0.1 * (std::exp(v) - 1); }},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.mode);
    const Tensor x(2, 3, 4, 5, 7), y(2, 3, 4, 5, 8);
    cudnnActivationDescriptor_t activation = nullptr;
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateActivationDescriptor(&activation));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetActivationDescriptor(activation, test.mode, CUDNN_NOT_PROPAGATE_NAN, 0.1));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnActivationForward(handle, activation, &one, x.desc, x.device.get(), &zero, y.desc, y.device.get()));
    ExpectEach(y, [&](size_t i) { return test.expected(x.host[i]); });
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyActivationDescriptor(activation));
  }
}

TEST_F(Doubles, SoftmaxOverChannels) {
  for (const auto algorithm : {CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_LOG}) {
    const Tensor x(2, 5, 2, 3, 9), y(2, 5, 2, 3, 10);
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSoftmaxForward(handle, algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, &one, x.desc,
                                                        x.device.get(), &zero, y.desc, y.device.get()));
    ExpectEach(y, [&](size_t i) {
      double sum = 0;
      for (size_t c = 0; c < 5; ++c) sum += std::exp(x.host[i / 30 * 30 + c * 6 + i % 6]);
      return algorithm == CUDNN_SOFTMAX_LOG ? x.host[i] - std::log(sum) : std::exp(x.host[i]) / sum;
    });
  }
}

TEST_F(Doubles, BatchNormalizationHasParametersOfDoubles) {
  const Tensor x(2, 3, 2, 2, 11), y(2, 3, 2, 2, 12), scale(1, 3, 1, 1, 13), bias(1, 3, 1, 1, 14), mean(1, 3, 1, 1, 15);
  const Tensor floats(1, 3, 1, 1, 16, CUDNN_DATA_FLOAT);
  const std::vector<double> variances = {0.1, 0.7, 1.3};
  const DeviceArray<double> variance(variances);
  cudnnTensorDescriptor_t derived = nullptr;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateTensorDescriptor(&derived));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnDeriveBNTensorDescriptor(derived, x.desc, CUDNN_BATCHNORM_SPATIAL));
  const double epsilon = 0.001;
  const auto run = [&](cudnnTensorDescriptor_t parameters) {
    return cudnnBatchNormalizationForwardInference(
        handle, CUDNN_BATCHNORM_SPATIAL, &alpha, &beta, x.desc, x.device.get(), y.desc, y.device.get(), parameters,
        scale.device.get(), bias.device.get(), mean.device.get(), variance.get(), epsilon);
  };
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, CUDNN_STATUS_CATEGORY(run(floats.desc)));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, run(derived));
  ExpectEach(y, [&](size_t i) {
    const size_t c = i / 4 % 3;
    const double normal = (x.host[i] - mean.host[c]) / std::sqrt(variances[c] + epsilon);
    return alpha * (scale.host[c] * normal + bias.host[c]) + beta * y.host[i];
  });
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyTensorDescriptor(derived));
}

TEST_F(Doubles, AdditionsScalesAndSettings) {
  const Tensor a(1, 3, 1, 1, 17), y(2, 3, 2, 2, 18);
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnAddTensor(handle, &alpha, a.desc, a.device.get(), &beta, y.desc, y.device.get()));
  ExpectEach(y, [&](size_t i) { return alpha * a.host[i / 4 % 3] + beta * y.host[i]; });
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetTensor(handle, y.desc, y.device.get(), &alpha));
  ExpectEach(
      y, [&](size_t) { return alpha; }, 0);
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnScaleTensor(handle, y.desc, y.device.get(), &beta));
  ExpectEach(
      y, [&](size_t) { return alpha * beta; }, 0);
}

TEST_F(Doubles, BinaryOperationsAreCalculatedInDoubles) {
  cudnnOpTensorDescriptor_t op = nullptr;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateOpTensorDescriptor(&op));
  const Tensor a(2, 3, 2, 2, 19), b(1, 3, 1, 1, 20), y(2, 3, 2, 2, 21);
  const auto run = [&](cudnnOpTensorOp_t operation, cudnnDataType_t compute) {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetOpTensorDescriptor(op, operation, compute, CUDNN_NOT_PROPAGATE_NAN));
    return cudnnOpTensor(handle, op, &one, a.desc, a.device.get(), &alpha, b.desc, b.device.get(), &zero, y.desc,
                         y.device.get());
  };
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, run(CUDNN_OP_TENSOR_ADD, CUDNN_DATA_DOUBLE));
  ExpectEach(y, [&](size_t i) { return a.host[i] + alpha * b.host[i / 4 % 3]; });
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, run(CUDNN_OP_TENSOR_MUL, CUDNN_DATA_DOUBLE));
  ExpectEach(y, [&](size_t i) { return a.host[i] * (alpha * b.host[i / 4 % 3]); });
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, CUDNN_STATUS_CATEGORY(run(CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT)));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyOpTensorDescriptor(op));
}

TEST_F(Doubles, TransformChangesTheLayout) {
  const Tensor x(1, 3, 2, 2, 22), y(1, 3, 2, 2, 23);
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetTensor4dDescriptor(y.desc, CUDNN_TENSOR_NHWC, CUDNN_DATA_DOUBLE, 1, 3, 2, 2));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnTransformTensor(handle, &alpha, x.desc, x.device.get(), &zero, y.desc, y.device.get()));
  ExpectEach(y, [&](size_t i) { return alpha * x.host[i % 3 * 4 + i / 3]; });
}

}  // namespace
