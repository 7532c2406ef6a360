// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What cuDNN answers to arguments, eager and captured, and what it computes: convolutions by algorithm, type and
// layout, and the calls between them, against plain loops. Inputs are multiples of 1/8, so that sums are exact;
// algorithms that transform their inputs, and functions such as exp, get a tolerance that is stated where it is used.
#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/conformance/libraries/answer.h"
#include "test/conformance/libraries/convolution.h"

namespace conformance {
namespace {

using gcap_test::Capture;
using gcap_test::CaptureEnd;
using gcap_test::Stream;

const float kOne = 1.0f, kZero = 0.0f;
const cudaDataType kTypes[] = {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF};

// --- Arguments ------------------------------------------------------------------------------------------------------

// Statuses of the forward call, the fused one, the workspace query, the output dimensions, and the captured forward
// call; "work" when that one left a node.
struct ArgumentRow {
  const char* name;
  const char* answer;
  std::function<void(Convolution*)> spoil;
};

void PrintTo(const ArgumentRow& row, std::ostream* out) { *out << row.name; }

void SetTensor(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int n, int c, int h, int w) {
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, type, n, c, h, w));
}

void SetFilter(Convolution* c, int filters, int channels, int height, int width) {
  EXPECT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnSetFilter4dDescriptor(c->w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, filters, channels, height, width));
}

const char kWorks[] = "0 0 0 0 0 work";

std::vector<ArgumentRow> NullRows() {
  return {
      {"good", kWorks, [](Convolution*) {}},
      {"no_handle", "2000 2000 2000 0 2000 empty", [](Convolution* c) { c->used_handle = nullptr; }},
      {"no_alpha", "2000 2000 0 0 2000 empty", [](Convolution* c) { c->alpha_pointer = nullptr; }},
      {"no_beta", "2000 2000 0 0 2000 empty", [](Convolution* c) { c->beta_pointer = nullptr; }},
      {"no_input", "2000 2000 0 0 2000 empty", [](Convolution* c) { c->pointer_x = nullptr; }},
      {"no_filter", "2000 2000 0 0 2000 empty", [](Convolution* c) { c->pointer_w = nullptr; }},
      {"no_output", "2000 2000 0 0 2000 empty", [](Convolution* c) { c->pointer_y = nullptr; }},
      {"no_input_descriptor", "2000 2000 2000 2000 2000 empty", [](Convolution* c) { c->x = nullptr; }},
      {"no_filter_descriptor", "2000 2000 2000 2000 2000 empty", [](Convolution* c) { c->w = nullptr; }},
      {"no_output_descriptor", "2000 2000 2000 0 2000 empty", [](Convolution* c) { c->y = nullptr; }},
      {"no_convolution_descriptor", "2000 2000 2000 2000 2000 empty", [](Convolution* c) { c->conv = nullptr; }},
      {"no_addend", "0 2000 0 0 0 work", [](Convolution* c) { c->pointer_z = nullptr; }},
      {"no_addend_descriptor", "0 2000 0 0 0 work", [](Convolution* c) { c->z = nullptr; }},
      {"no_bias", "0 2000 0 0 0 work", [](Convolution* c) { c->pointer_bias = nullptr; }},
      {"no_bias_descriptor", "0 2000 0 0 0 work", [](Convolution* c) { c->bias = nullptr; }},
      {"no_activation", "0 2000 0 0 0 work", [](Convolution* c) { c->activation = nullptr; }},
  };
}

std::vector<ArgumentRow> ValueRows() {
  const auto algorithm = [](int value) {
    return [value](Convolution* c) { c->algorithm = static_cast<cudnnConvolutionFwdAlgo_t>(value); };
  };
  return {
      {"algorithm_unknown", "3000 3000 3000 0 3000 empty", algorithm(8)},
      {"algorithm_direct", "3000 3000 3000 0 3000 empty", algorithm(CUDNN_CONVOLUTION_FWD_ALGO_DIRECT)},
      {"input_misaligned_by_1", "2003 2003 0 0 2003 empty", [](Convolution* c) { c->pointer_x += 1; }},
      {"input_misaligned_by_2", "2003 2003 0 0 2003 empty", [](Convolution* c) { c->pointer_x += 2; }},
      {"filter_misaligned_by_1", "2003 2003 0 0 2003 empty", [](Convolution* c) { c->pointer_w += 1; }},
      {"output_misaligned_by_1", "2003 2003 0 0 2003 empty", [](Convolution* c) { c->pointer_y += 1; }},
      {"output_of_the_wrong_size", "2000 2000 2000 0 2000 empty",
       [](Convolution* c) { SetTensor(c->y, CUDNN_DATA_FLOAT, 2, 32, 7, 7); }},
      {"output_of_the_wrong_channels", "2000 2000 2000 0 2000 empty",
       [](Convolution* c) { SetTensor(c->y, CUDNN_DATA_FLOAT, 2, 31, 8, 8); }},
      {"filter_of_the_wrong_channels", "2000 2000 2000 2000 2000 empty",
       [](Convolution* c) { SetFilter(c, 32, 15, 3, 3); }},
      {"filter_larger_than_the_input", "2000 2000 2000 2000 2000 empty",
       [](Convolution* c) { SetFilter(c, 32, 16, 30, 30); }},
      {"input_of_another_type", "3000 3000 3000 0 3000 empty",
       [](Convolution* c) { SetTensor(c->x, CUDNN_DATA_HALF, 2, 16, 8, 8); }},
      {"bias_of_the_wrong_size", "0 3002 0 0 0 work",
       [](Convolution* c) { SetTensor(c->bias, CUDNN_DATA_FLOAT, 1, 31, 1, 1); }},
      {"addend_of_the_wrong_size", "0 3002 0 0 0 work",
       [](Convolution* c) { SetTensor(c->z, CUDNN_DATA_FLOAT, 2, 32, 4, 4); }},
      {"in_place", "3000 3000 0 0 3000 empty", [](Convolution* c) { c->pointer_y = c->pointer_x; }},
      {"groups_that_do_not_match", "0 0 0 2000 0 work",
       [](Convolution* c) { EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetConvolutionGroupCount(c->conv, 3)); }},
      {"activation_that_cannot_be_fused", "0 3000 0 0 0 work",
       [](Convolution* c) {
         EXPECT_EQ(CUDNN_STATUS_SUCCESS,
                   cudnnSetActivationDescriptor(c->activation, CUDNN_ACTIVATION_TANH, CUDNN_NOT_PROPAGATE_NAN, 0.0));
       }},
      {"identity_with_an_implicit_algorithm", kWorks,
       [](Convolution* c) {
         c->algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
         EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetActivationDescriptor(c->activation, CUDNN_ACTIVATION_IDENTITY,
                                                                      CUDNN_NOT_PROPAGATE_NAN, 0.0));
       }},
      {"workspace_missing_for_a_table", kWorks, [](Convolution* c) { c->workspace = nullptr; }},
      {"workspace_misaligned_for_a_table", kWorks, [](Convolution* c) { c->workspace = c->data_workspace.get() + 1; }},
      {"workspace_missing_for_transforms", "2000 2000 0 0 2000 empty",
       [](Convolution* c) {
         c->algorithm = CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED;
         c->workspace = nullptr;
       }},
      {"workspace_missing_where_none_is_needed", kWorks,
       [](Convolution* c) {
         c->algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
         c->workspace = nullptr;
       }},
  };
}

std::vector<ArgumentRow> ArgumentRows() {
  std::vector<ArgumentRow> rows = NullRows();
  const std::vector<ArgumentRow> more = ValueRows();
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

class CudnnArguments : public testing::TestWithParam<ArgumentRow> {};

TEST_P(CudnnArguments, Answer) {
  Stream stream;
  Convolution convolution(stream.get());
  GetParam().spoil(&convolution);
  size_t bytes = 0;
  const int forward = convolution.Forward(), fused = convolution.Fused();
  const int query = convolution.WorkspaceSize(&bytes), dims = convolution.OutputDim();
  stream.Synchronize();
  int captured = 0;
  const CaptureEnd end = Capture(stream.get(), cudaStreamCaptureModeGlobal, [&] { captured = convolution.Forward(); });
  EXPECT_EQ(cudaStreamCaptureStatusActive, end.status);
  EXPECT_EQ(cudaSuccess, end.code);
  const std::string got = std::to_string(forward) + " " + std::to_string(fused) + " " + std::to_string(query) + " " +
                          std::to_string(dims) + " " + std::to_string(captured) + " " +
                          (end.nodes > 0 ? "work" : "empty");
  ExpectAnswer(std::string("cudnn_") + GetParam().name, GetParam().answer, got);
}

INSTANTIATE_TEST_SUITE_P(Rows, CudnnArguments, testing::ValuesIn(ArgumentRows()),
                         [](const testing::TestParamInfo<ArgumentRow>& info) { return info.param.name; });

// Setting a descriptor: one status a row.
struct DescriptorRow {
  const char* name;
  int status;
  std::function<cudnnStatus_t()> set;
};

void PrintTo(const DescriptorRow& row, std::ostream* out) { *out << row.name; }

template <typename Desc>
cudnnStatus_t With(cudnnStatus_t (*create)(Desc*), cudnnStatus_t (*destroy)(Desc),
                   const std::function<cudnnStatus_t(Desc)>& set) {
  Desc desc = nullptr;
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, create(&desc));
  const cudnnStatus_t status = set(desc);
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, destroy(desc));
  return status;
}

cudnnStatus_t SetNewTensor(cudnnTensorFormat_t format, int type, int n, int c, int h, int w) {
  return With<cudnnTensorDescriptor_t>(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor, [=](auto desc) {
    return cudnnSetTensor4dDescriptor(desc, format, static_cast<cudnnDataType_t>(type), n, c, h, w);
  });
}

cudnnStatus_t SetNewConvolution(int pad, int stride, int dilation, int mode, int type) {
  return With<cudnnConvolutionDescriptor_t>(
      cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor, [=](auto desc) {
        return cudnnSetConvolution2dDescriptor(desc, pad, pad, stride, stride, dilation, dilation,
                                               static_cast<cudnnConvolutionMode_t>(mode),
                                               static_cast<cudnnDataType_t>(type));
      });
}

cudnnStatus_t SetNewPooling(int mode, int window, int pad) {
  return With<cudnnPoolingDescriptor_t>(cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor, [=](auto desc) {
    return cudnnSetPooling2dDescriptor(desc, static_cast<cudnnPoolingMode_t>(mode), CUDNN_NOT_PROPAGATE_NAN, window,
                                       window, pad, pad, 1, 1);
  });
}

cudnnStatus_t SetNewOperation(int op, int type, int nan) {
  return With<cudnnOpTensorDescriptor_t>(cudnnCreateOpTensorDescriptor, cudnnDestroyOpTensorDescriptor, [=](auto desc) {
    return cudnnSetOpTensorDescriptor(desc, static_cast<cudnnOpTensorOp_t>(op), static_cast<cudnnDataType_t>(type),
                                      static_cast<cudnnNanPropagation_t>(nan));
  });
}

cudnnStatus_t SetNewActivation(int mode, int nan) {
  return With<cudnnActivationDescriptor_t>(
      cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor, [=](auto desc) {
        return cudnnSetActivationDescriptor(desc, static_cast<cudnnActivationMode_t>(mode),
                                            static_cast<cudnnNanPropagation_t>(nan), 0.0);
      });
}

cudnnStatus_t SetNewNd(int rank, std::vector<int> dims, std::vector<int> strides) {
  return With<cudnnTensorDescriptor_t>(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor, [=](auto desc) {
    return cudnnSetTensorNdDescriptor(desc, CUDNN_DATA_FLOAT, rank, dims.data(), strides.data());
  });
}

std::vector<DescriptorRow> DescriptorRows() {
  constexpr auto kNchw = CUDNN_TENSOR_NCHW;
  return {
      {"tensor_double", 0, [] { return SetNewTensor(kNchw, CUDNN_DATA_DOUBLE, 1, 4, 2, 2); }},
      {"tensor_bfloat16", 0, [] { return SetNewTensor(kNchw, CUDNN_DATA_BFLOAT16, 1, 4, 2, 2); }},
      {"tensor_int64", 2000, [] { return SetNewTensor(kNchw, CUDNN_DATA_INT64, 1, 4, 2, 2); }},
      {"tensor_type_unknown", 2000, [] { return SetNewTensor(kNchw, 99, 1, 4, 2, 2); }},
      {"tensor_type_negative", 2000, [] { return SetNewTensor(kNchw, -1, 1, 4, 2, 2); }},
      {"tensor_format_vector", 2000, [] { return SetNewTensor(CUDNN_TENSOR_NCHW_VECT_C, 0, 1, 4, 2, 2); }},
      {"tensor_format_unknown", 2000, [] { return SetNewTensor(static_cast<cudnnTensorFormat_t>(3), 0, 1, 4, 2, 2); }},
      {"tensor_dimension_0", 2000, [] { return SetNewTensor(kNchw, 0, 1, 0, 2, 2); }},
      {"tensor_dimension_negative", 2000, [] { return SetNewTensor(kNchw, 0, -1, 4, 2, 2); }},
      {"tensor_too_large", 3000, [] { return SetNewTensor(kNchw, 0, 65536, 65536, 2, 2); }},
      {"tensor_nd", 0,
       [] {
         return SetNewNd(4, {2, 3, 4, 5}, {60, 20, 5, 1});
       }},
      {"tensor_nd_stride_0", 2000,
       [] {
         return SetNewNd(4, {2, 3, 4, 5}, {0, 20, 5, 1});
       }},
      {"tensor_nd_stride_negative", 0,
       [] {
         return SetNewNd(4, {2, 3, 4, 5}, {60, 20, -5, 1});
       }},
      {"tensor_nd_too_many", 3000, [] { return SetNewNd(9, std::vector<int>(9, 1), std::vector<int>(9, 1)); }},
      {"tensor_nd_none", 2000, [] { return SetNewNd(0, {1}, {1}); }},
      {"convolution_half", 0, [] { return SetNewConvolution(0, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_HALF); }},
      {"convolution_bfloat16", 2000,
       [] { return SetNewConvolution(0, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_BFLOAT16); }},
      {"convolution_padding_negative", 2000, [] { return SetNewConvolution(-1, 1, 1, CUDNN_CROSS_CORRELATION, 0); }},
      {"convolution_stride_0", 2000, [] { return SetNewConvolution(0, 0, 1, CUDNN_CROSS_CORRELATION, 0); }},
      {"convolution_dilation_0", 2000, [] { return SetNewConvolution(0, 1, 0, CUDNN_CROSS_CORRELATION, 0); }},
      {"convolution_mode_unknown", 2000, [] { return SetNewConvolution(0, 1, 1, 9, 0); }},
      {"pooling_mode_unknown", 2000, [] { return SetNewPooling(9, 2, 0); }},
      {"pooling_window_0", 2000, [] { return SetNewPooling(CUDNN_POOLING_MAX, 0, 0); }},
      {"pooling_padding_negative", 0, [] { return SetNewPooling(CUDNN_POOLING_MAX, 2, -1); }},
      {"operation_not", 0, [] { return SetNewOperation(CUDNN_OP_TENSOR_NOT, 0, 0); }},
      {"operation_unknown", 2000, [] { return SetNewOperation(6, 0, 0); }},
      {"operation_type_unknown", 2000, [] { return SetNewOperation(0, 99, 0); }},
      {"operation_nan_unknown", 2000, [] { return SetNewOperation(0, 0, 9); }},
      {"activation_mode_unknown", 2000, [] { return SetNewActivation(9, 0); }},
      {"activation_nan_unknown", 2000, [] { return SetNewActivation(0, 9); }},
  };
}

class CudnnDescriptors : public testing::TestWithParam<DescriptorRow> {};

TEST_P(CudnnDescriptors, AreCheckedWhenSet) { EXPECT_EQ(GetParam().status, GetParam().set()); }

INSTANTIATE_TEST_SUITE_P(Rows, CudnnDescriptors, testing::ValuesIn(DescriptorRows()),
                         [](const testing::TestParamInfo<DescriptorRow>& info) { return info.param.name; });

// Which types of input and output go together: pooling, softmax, activation, addition; transformation; operations with
// floats to compute in; batch normalization with float parameters.
TEST(CudnnTypes, OfInputAndOutput) {
  Stream stream;
  Convolution c(stream.get());
  const PoolingDesc pooling(CUDNN_POOLING_MAX);
  const OpTensorDesc add(CUDNN_OP_TENSOR_ADD);
  const TensorDesc parameters(CUDNN_DATA_FLOAT, 1, 16, 1, 1);
  const auto h = c.handle;
  void *px = c.pointer_x, *py = c.pointer_y, *p = c.pointer_bias;
  for (const cudaDataType in : kTypes) {
    for (const cudaDataType out : kTypes) {
      const TensorDesc dx(DnnType(in), 2, 16, 8, 8), dy(DnnType(out), 2, 16, 8, 8), small(DnnType(out), 2, 16, 4, 4);
      const auto x = dx.get(), y = dy.get();
      const int same = in == out ? 0 : 2000;
      const bool one_is_float = in == CUDA_R_32F || out == CUDA_R_32F;
      SCOPED_TRACE(std::string(NameOf(in)) + " to " + NameOf(out));
      EXPECT_EQ(same, cudnnPoolingForward(h, pooling.get(), &kOne, x, px, &kZero, small.get(), py));
      EXPECT_EQ(same,
                cudnnSoftmaxForward(h, CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL, &kOne, x, px, &kZero, y, py));
      EXPECT_EQ(same, cudnnActivationForward(h, c.activation, &kOne, x, px, &kZero, y, py));
      EXPECT_EQ(same, cudnnAddTensor(h, &kOne, x, px, &kOne, y, py));
      EXPECT_EQ(in == out || one_is_float ? 0 : 3000, cudnnTransformTensor(h, &kOne, x, px, &kZero, y, py));
      EXPECT_EQ(in == out || one_is_float ? 0 : 3000,
                cudnnOpTensor(h, add.get(), &kOne, x, px, &kOne, x, px, &kZero, y, py));
      EXPECT_EQ(same, cudnnBatchNormalizationForwardInference(h, CUDNN_BATCHNORM_SPATIAL, &kOne, &kZero, x, px, y, py,
                                                              parameters.get(), p, p, p, p, 1e-3));
    }
  }
  stream.Synchronize();
}

TEST(CudnnOperations, CheckTheirOperands) {
  Stream stream;
  Convolution c(stream.get());
  const TensorDesc dx(CUDNN_DATA_FLOAT, 2, 16, 8, 8), channels(CUDNN_DATA_FLOAT, 1, 16, 1, 1),
      odd(CUDNN_DATA_FLOAT, 2, 8, 8, 8), half(CUDNN_DATA_HALF, 2, 16, 8, 8);
  const auto run = [&](const OpTensorDesc& op, const TensorDesc& a, const TensorDesc& b) {
    return cudnnOpTensor(c.handle, op.get(), &kOne, a.get(), c.pointer_x, &kOne, b.get(), c.pointer_w, &kZero, dx.get(),
                         c.pointer_y);
  };
  for (const auto op : {CUDNN_OP_TENSOR_ADD, CUDNN_OP_TENSOR_MUL, CUDNN_OP_TENSOR_SQRT, CUDNN_OP_TENSOR_NOT}) {
    const OpTensorDesc floats(op), halves(op, CUDNN_DATA_HALF);
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, run(floats, dx, dx));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, run(floats, dx, channels));
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, run(floats, channels, dx));  // A is not broadcast
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, run(floats, dx, odd));
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, run(floats, dx, half));
    EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, run(halves, dx, dx));
  }
  stream.Synchronize();
}

TEST(CudnnBatchNormalization, ChecksModeParametersAndEpsilon) {
  Stream stream;
  Convolution c(stream.get());
  const TensorDesc dx(CUDNN_DATA_FLOAT, 2, 16, 8, 8), channels(CUDNN_DATA_FLOAT, 1, 16, 1, 1),
      elements(CUDNN_DATA_FLOAT, 1, 16, 8, 8), halves(CUDNN_DATA_HALF, 1, 16, 1, 1);
  const void* p = c.pointer_w;
  const auto run = [&](int mode, const TensorDesc& parameters, double epsilon) {
    return cudnnBatchNormalizationForwardInference(c.handle, static_cast<cudnnBatchNormMode_t>(mode), &kOne, &kZero,
                                                   dx.get(), c.pointer_x, dx.get(), c.pointer_y, parameters.get(), p, p,
                                                   p, p, epsilon);
  };
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, run(CUDNN_BATCHNORM_SPATIAL, channels, 1e-5));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, run(CUDNN_BATCHNORM_SPATIAL_PERSISTENT, channels, 1e-5));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, run(CUDNN_BATCHNORM_PER_ACTIVATION, elements, 1e-5));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, run(CUDNN_BATCHNORM_PER_ACTIVATION, channels, 1e-5));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, run(CUDNN_BATCHNORM_SPATIAL, elements, 1e-5));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, run(CUDNN_BATCHNORM_SPATIAL, halves, 1e-5));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, run(CUDNN_BATCHNORM_SPATIAL, channels, 0.0));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, run(CUDNN_BATCHNORM_SPATIAL, channels, -1.0));
  stream.Synchronize();
}

}  // namespace
}  // namespace conformance
