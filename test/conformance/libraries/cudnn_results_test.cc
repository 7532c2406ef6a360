// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What cuDNN computes: convolutions by algorithm, type and layout, and the calls between them, against plain loops.
// Inputs are multiples of 1/8, so that sums are exact; algorithms that transform their inputs, and functions such as
// exp, get a tolerance that is stated where it is used.
#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/conformance/libraries/convolution.h"

namespace conformance {
namespace {

using gcap_test::Capture;
using gcap_test::CaptureEnd;
using gcap_test::Stream;

const float kOne = 1.0f, kZero = 0.0f;
const cudaDataType kTypes[] = {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF};

// --- Convolutions ---------------------------------------------------------------------------------------------------

struct AlgorithmRow {
  cudnnConvolutionFwdAlgo_t algorithm;
  cudaDataType type;
  cudnnTensorFormat_t format;
};

const char* NameOfAlgorithm(cudnnConvolutionFwdAlgo_t algorithm) {
  static const char* const kNames[] = {"implicit", "precomputed", "gemm",     "direct",
                                       "fft",      "tiled_fft",   "winograd", "nonfused_winograd"};
  return kNames[algorithm];
}

void PrintTo(const AlgorithmRow& row, std::ostream* out) { *out << NameOfAlgorithm(row.algorithm); }

std::vector<AlgorithmRow> AlgorithmRows() {
  std::vector<AlgorithmRow> rows;
  for (int algorithm = 0; algorithm < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++algorithm) {
    for (const cudaDataType type : kTypes) {
      for (const auto format : {CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC}) {
        rows.push_back({static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), type, format});
      }
    }
  }
  return rows;
}

// What a GPU has for a padded 3 x 3 convolution.
bool RecordedHas(const AlgorithmRow& row) {
  switch (row.algorithm) {
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM:
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM: return true;
    case CUDNN_CONVOLUTION_FWD_ALGO_GEMM:
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED: return row.format == CUDNN_TENSOR_NCHW;
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT:
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING: return row.format == CUDNN_TENSOR_NCHW && row.type != CUDA_R_16BF;
    default: return false;
  }
}

// Kernels of one call with floats; those of other types differ from one release to the next.
size_t RecordedKernels(cudnnConvolutionFwdAlgo_t algorithm) {
  switch (algorithm) {
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT: return 5;
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING:
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED: return 4;
    default: return 1;
  }
}

// Where element (n, c, h, w) of an array of such dimensions stands.
size_t Place(cudnnTensorFormat_t format, int channels, int height, int width, int n, int c, int h, int w) {
  return static_cast<size_t>(format == CUDNN_TENSOR_NCHW ? ((n * channels + c) * height + h) * width + w
                                                         : ((n * height + h) * width + w) * channels + c);
}

class CudnnAlgorithms : public testing::TestWithParam<AlgorithmRow> {
 protected:
  // Of the default convolution, at output pixel (n, k, p, q).
  static double Expected(const Convolution& c, cudnnTensorFormat_t format, int n, int k, int p, int q) {
    double sum = 0;
    for (int channel = 0; channel < 16; ++channel) {
      for (int r = 0; r < 3; ++r) {
        for (int s = 0; s < 3; ++s) {
          const int h = p - 1 + r, w = q - 1 + s;
          if (h < 0 || h >= 8 || w < 0 || w >= 8) continue;
          sum += c.values_x[Place(format, 16, 8, 8, n, channel, h, w)] *
                 c.values_w[Place(format, 16, 3, 3, k, channel, r, s)];
        }
      }
    }
    return sum;
  }

  // Direct sums of floats are exact. A transform makes numbers of a few times the input, rounds them, and sums 144
  // products; in 16 bits it does so in the type itself.
  static double Tolerance(const AlgorithmRow& row, double expected) {
    const bool transforms = row.algorithm >= CUDNN_CONVOLUTION_FWD_ALGO_FFT;
    const double rounding = row.type == CUDA_R_32F ? 0.0 : Spacing(expected, row.type);
    if (!transforms) return rounding;
    return rounding + (row.type == CUDA_R_32F ? 1e-4 : row.type == CUDA_R_16F ? 0.1 : 0.8);
  }
};

TEST_P(CudnnAlgorithms, ComputeTheConvolutionOrSayThatTheyDoNot) {
  const AlgorithmRow row = GetParam();
  Stream stream;
  Convolution c(stream.get(), row.type, row.format);
  if (row.type == CUDA_R_32F) {  // else TF32 is allowed
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetConvolutionMathType(c.conv, CUDNN_FMA_MATH));
  }
  c.algorithm = row.algorithm;
  size_t bytes = 0;
  const cudnnStatus_t query = c.WorkspaceSize(&bytes);
  EXPECT_EQ(RecordedHas(row) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED, query);
  if (query != CUDNN_STATUS_SUCCESS) {
    EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, c.Forward());
    return;
  }
  ASSERT_LE(bytes, Convolution::kWorkspaceBytes);
  c.workspace_bytes = bytes;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, c.Forward());
  stream.Synchronize();
  const std::vector<double> got = c.data_y.Get();
  for (int i = 0; i < 2 * 32 * 64; ++i) {
    const int n = i / 2048, k = i / 64 % 32, p = i / 8 % 8, q = i % 8;
    const double expected = Expected(c, row.format, n, k, p, q);
    ASSERT_NEAR(expected, got[Place(row.format, 32, 8, 8, n, k, p, q)], Tolerance(row, expected)) << i;
  }
}

TEST_P(CudnnAlgorithms, RefuseAWorkspaceOneByteTooSmall) {
  const AlgorithmRow row = GetParam();
  // The table of the precomputed one is an aid that it can do without.
  if (row.algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) return;
  Stream stream;
  Convolution c(stream.get(), row.type, row.format);
  c.algorithm = row.algorithm;
  size_t bytes = 0;
  if (c.WorkspaceSize(&bytes) != CUDNN_STATUS_SUCCESS || bytes == 0) return;
  c.workspace_bytes = bytes - 1;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  const CaptureEnd end = Capture(stream.get(), cudaStreamCaptureModeGlobal, [&] { status = c.Forward(); });
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, status);
  EXPECT_EQ(cudaSuccess, end.code);
  EXPECT_EQ(0u, end.nodes);
}

TEST_P(CudnnAlgorithms, AreSoManyKernels) {
  const AlgorithmRow row = GetParam();
  if (row.type != CUDA_R_32F || !RecordedHas(row)) return;
  Stream stream;
  Convolution c(stream.get(), row.type, row.format);
  c.algorithm = row.algorithm;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  const CaptureEnd end = Capture(stream.get(), cudaStreamCaptureModeThreadLocal, [&] { status = c.Forward(); });
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, status);
  EXPECT_EQ(RecordedKernels(row.algorithm), end.nodes);
}

INSTANTIATE_TEST_SUITE_P(Rows, CudnnAlgorithms, testing::ValuesIn(AlgorithmRows()),
                         [](const testing::TestParamInfo<AlgorithmRow>& info) {
                           return std::string(NameOfAlgorithm(info.param.algorithm)) + "_" + NameOf(info.param.type) +
                                  (info.param.format == CUDNN_TENSOR_NCHW ? "_nchw" : "_nhwc");
                         });

// --- Other calls ----------------------------------------------------------------------------------------------------

class CudnnTensors : public testing::TestWithParam<cudaDataType> {
 protected:
  static constexpr int kChannels = 6, kHeight = 4, kWidth = 4, kCount = 2 * kChannels * kHeight * kWidth;

  CudnnTensors()
      : x(Eighths(21, kCount)),
        shape(DnnType(GetParam()), 2, kChannels, kHeight, kWidth),
        data_x(x, GetParam()),
        data_y(std::vector<double>(kCount, 0.5), GetParam()) {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreate(&handle));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(handle, stream.get()));
  }
  ~CudnnTensors() override { EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroy(handle)); }

  static size_t At(int i) { return static_cast<size_t>(i); }
  static int Channel(int i) { return i / (kHeight * kWidth) % kChannels; }

  // Compares y with `expected(i)`: so many steps of the type and such a part of the value may lie between them.
  void ExpectY(const std::function<double(int)>& expected, double steps, double relative) {
    stream.Synchronize();
    const std::vector<double> got = data_y.Get();
    for (int i = 0; i < kCount; ++i) {
      const double value = expected(i);
      ASSERT_NEAR(value, got[At(i)], steps * Spacing(value, GetParam()) + relative * std::fabs(value)) << i;
    }
  }

  // What is exact in floats is rounded once at most.
  static double Exact() { return GetParam() == CUDA_R_32F ? 0 : 1; }

  Stream stream;
  cudnnHandle_t handle = nullptr;
  std::vector<double> x;
  TensorDesc shape;
  Numbers data_x, data_y;
};

// A GPU works out exp and its like to a few units in the last place of a float, and rounds to the 16-bit types more
// than once on the way.
constexpr double kSteps = 3, kFunction = 4e-6;

TEST_P(CudnnTensors, Activations) {
  const struct {
    cudnnActivationMode_t mode;
    double (*function)(double);
  } rows[] = {
      {CUDNN_ACTIVATION_SIGMOID, [](double v) { return 1 / (1 + std::exp(-v)); }},
      {CUDNN_ACTIVATION_RELU, [](double v) { return std::max(v, 0.0); }},
      {CUDNN_ACTIVATION_TANH, [](double v) { return std::tanh(v); }},
      {CUDNN_ACTIVATION_CLIPPED_RELU, [](double v) { return std::min(std::max(v, 0.0), 0.5); }},
      {CUDNN_ACTIVATION_ELU, [](double v) { return v > 0 ? v : 0.5 * std::expm1(v); }},
      {CUDNN_ACTIVATION_SWISH, [](double v) { return v / (1 + std::exp(-v)); }},
  };
  for (const auto& row : rows) {
    const ActivationDesc activation(row.mode, 0.5);
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnActivationForward(handle, activation.get(), &kOne, shape.get(), data_x.get(),
                                                           &kZero, shape.get(), data_y.get()));
    SCOPED_TRACE(row.mode);
    ExpectY([&](int i) { return row.function(x[At(i)]); }, kSteps, kFunction);
  }
}

TEST_P(CudnnTensors, ActivationBlendsWithWhatIsThere) {
  const ActivationDesc relu(CUDNN_ACTIVATION_RELU);
  const float alpha = 2.0f, beta = -1.0f;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnActivationForward(handle, relu.get(), &alpha, shape.get(), data_x.get(), &beta,
                                                         shape.get(), data_y.get()));
  ExpectY([&](int i) { return 2 * std::max(x[At(i)], 0.0) - 0.5; }, Exact(), 0);
}

TEST_P(CudnnTensors, Softmax) {
  for (const auto algorithm : {CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_LOG}) {
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSoftmaxForward(handle, algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, &kOne,
                                                        shape.get(), data_x.get(), &kZero, shape.get(), data_y.get()));
    const auto expected = [&](int i) {
      const int pixels = kHeight * kWidth, image = i / (kChannels * pixels) * kChannels * pixels;
      double sum = 0;
      for (int c = 0; c < kChannels; ++c) sum += std::exp(x[At(image + c * pixels + i % pixels)]);
      return algorithm == CUDNN_SOFTMAX_LOG ? x[At(i)] - std::log(sum) : std::exp(x[At(i)]) / sum;
    };
    SCOPED_TRACE(algorithm);
    ExpectY(expected, kSteps, kFunction);
  }
}

TEST_P(CudnnTensors, Pooling) {
  const TensorDesc small(DnnType(GetParam()), 2, kChannels, 2, 2);
  const struct {
    cudnnPoolingMode_t mode;
    bool average;
  } rows[] = {{CUDNN_POOLING_MAX, false}, {CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, true}};
  for (const auto& row : rows) {
    const PoolingDesc pooling(row.mode);
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnPoolingForward(handle, pooling.get(), &kOne, shape.get(), data_x.get(), &kZero,
                                                        small.get(), data_y.get()));
    stream.Synchronize();
    const std::vector<double> got = data_y.Get();
    for (int i = 0; i < 2 * kChannels * 4; ++i) {
      const int first = i / 4 * 16 + i / 2 % 2 * 8 + i % 2 * 2;
      double sum = 0, most = -100;
      for (const int at : {first, first + 1, first + 4, first + 5}) {
        sum += x[At(at)];
        most = std::max(most, x[At(at)]);
      }
      ASSERT_EQ(row.average ? sum / 4 : most, got[At(i)]) << i;
    }
  }
}

TEST_P(CudnnTensors, AddTensorBroadcasts) {
  const TensorDesc bias(DnnType(GetParam()), 1, kChannels, 1, 1);
  const std::vector<double> values = Eighths(22, kChannels);
  const Numbers data_bias(values, GetParam());
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnAddTensor(handle, &kOne, bias.get(), data_bias.get(), &kOne, shape.get(), data_y.get()));
  ExpectY([&](int i) { return 0.5 + values[At(Channel(i))]; }, Exact(), 0);
}

TEST_P(CudnnTensors, Operations) {
  const struct {
    cudnnOpTensorOp_t op;
    double (*function)(double, double);
  } rows[] = {
      {CUDNN_OP_TENSOR_ADD, [](double a, double b) { return a + b; }},
      {CUDNN_OP_TENSOR_MUL, [](double a, double b) { return a * b; }},
      {CUDNN_OP_TENSOR_MIN, [](double a, double b) { return std::min(a, b); }},
      {CUDNN_OP_TENSOR_MAX, [](double a, double b) { return std::max(a, b); }},
      {CUDNN_OP_TENSOR_SQRT, [](double a, double) { return std::sqrt(a); }},
      {CUDNN_OP_TENSOR_NOT, [](double a, double) { return 1 - a; }},
  };
  for (double& value : x) value += 1;  // roots need what is not negative
  data_x.Set(x);
  const TensorDesc row_shape(DnnType(GetParam()), 1, kChannels, 1, 1);
  const std::vector<double> values = Eighths(23, kChannels);
  const Numbers b(values, GetParam());
  const float two = 2.0f, three = 3.0f;
  for (const auto& row : rows) {
    const OpTensorDesc op(row.op);
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnOpTensor(handle, op.get(), &two, shape.get(), data_x.get(), &three,
                                                  row_shape.get(), b.get(), &kZero, shape.get(), data_y.get()));
    SCOPED_TRACE(row.op);
    const bool is_root = row.op == CUDNN_OP_TENSOR_SQRT;
    ExpectY([&](int i) { return row.function(2 * x[At(i)], 3 * values[At(Channel(i))]); }, is_root ? kSteps : Exact(),
            is_root ? kFunction : 0);
  }
}

TEST_P(CudnnTensors, SetAndScale) {
  const float three = 3.0f;  // whatever the type of the tensor
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetTensor(handle, shape.get(), data_y.get(), &three));
  ExpectY([](int) { return 3.0; }, Exact(), 0);
  const float half = 0.5f;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnScaleTensor(handle, shape.get(), data_y.get(), &half));
  ExpectY([](int) { return 1.5; }, Exact(), 0);
}

TEST_P(CudnnTensors, TransformChangesTheLayout) {
  const TensorDesc nhwc(DnnType(GetParam()), 2, kChannels, kHeight, kWidth, CUDNN_TENSOR_NHWC);
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnTransformTensor(handle, &kOne, shape.get(), data_x.get(), &kZero, nhwc.get(), data_y.get()));
  ExpectY(
      [&](int i) {  // i counts in the new layout
        const int channel = i % kChannels, pixel = i / kChannels % (kHeight * kWidth);
        const int image = i / (kChannels * kHeight * kWidth);
        return x[At((image * kChannels + channel) * kHeight * kWidth + pixel)];
      },
      Exact(), 0);
}

TEST_P(CudnnTensors, BatchNormalization) {
  const std::vector<double> scale = Eighths(24, kChannels), bias = Eighths(25, kChannels),
                            mean = Eighths(26, kChannels);
  std::vector<double> variance = Eighths(27, kChannels);
  for (double& value : variance) value = value * value + 0.25;
  const Numbers data_scale(scale, CUDA_R_32F), data_bias(bias, CUDA_R_32F), data_mean(mean, CUDA_R_32F),
      data_variance(variance, CUDA_R_32F);
  const TensorDesc parameters(CUDNN_DATA_FLOAT, 1, 1, 1, 1);
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnDeriveBNTensorDescriptor(parameters.get(), shape.get(), CUDNN_BATCHNORM_SPATIAL));
  const double epsilon = 1e-3;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnBatchNormalizationForwardInference(
                handle, CUDNN_BATCHNORM_SPATIAL, &kOne, &kZero, shape.get(), data_x.get(), shape.get(), data_y.get(),
                parameters.get(), data_scale.get(), data_bias.get(), data_mean.get(), data_variance.get(), epsilon));
  stream.Synchronize();
  const std::vector<double> got = data_y.Get();
  for (int i = 0; i < kCount; ++i) {
    const size_t c = At(Channel(i));
    const double expected = scale[c] * (x[At(i)] - mean[c]) / std::sqrt(variance[c] + epsilon) + bias[c];
    // The sum may cancel: the error is that of its terms, which are below 8.
    ASSERT_NEAR(expected, got[At(i)], Spacing(expected, GetParam()) + 8 * kFunction) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudnnTensors, testing::Values(CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF),
                         [](const testing::TestParamInfo<cudaDataType>& info) { return NameOf(info.param); });

// The heuristic and the search name each algorithm once, those that work before those that do not.
TEST(CudnnSearch, NamesEveryAlgorithmOnce) {
  Stream stream;
  Convolution c(stream.get());
  cudnnConvolutionFwdAlgoPerf_t results[8];
  for (const bool run : {false, true}) {
    int count = 0;
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              run ? cudnnFindConvolutionForwardAlgorithm(c.handle, c.x, c.w, c.conv, c.y, 8, &count, results)
                  : cudnnGetConvolutionForwardAlgorithm_v7(c.handle, c.x, c.w, c.conv, c.y, 8, &count, results));
    ASSERT_EQ(8, count);
    std::vector<int> seen(8, 0);
    bool failed = false;
    for (const auto& result : results) {
      ++seen[static_cast<size_t>(result.algo)];
      EXPECT_TRUE(!failed || result.status != CUDNN_STATUS_SUCCESS);
      failed = result.status != CUDNN_STATUS_SUCCESS;
      c.algorithm = result.algo;
      size_t bytes = 0;
      EXPECT_EQ(result.status, c.WorkspaceSize(&bytes));
      EXPECT_EQ(failed ? 0u : bytes, result.memory);
    }
    EXPECT_EQ(std::vector<int>(8, 1), seen);
  }
}

}  // namespace
}  // namespace conformance
