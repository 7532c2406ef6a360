// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Kernels of the simulated libraries as the driver tells them: a call that is captured at two places has arguments that
// differ by the distances of its operands alone, and an executable whose arguments are moved works at the new place.
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <vector>

#include "cublasLt.h"
#include "cublas_v2.h"
#include "cudnn.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/sim/driver_abi.h"
#include "test/sim_libs/device.h"

namespace {

using gcap::testing::DriverEntry;
using gcap::testing::DriverNode;
using gcap::testing::GetName;
using gcap::testing::GetNode;
using gcap::testing::GetParam;
using gcap::testing::kExtraBuffer;
using gcap::testing::kExtraBytes;
using gcap::testing::Reserve;
using gcap::testing::SetExecNode;
using gcap::testing::Unreserve;
using gcap_test::DeviceArray;
using gcap_test::Eighths;
using gcap_test::Stream;

// The operands of a call, which come and go together. The last one is the result.
constexpr size_t kOperandBytes = size_t{64} << 10;
constexpr int kOperands = 7;
using Place = std::vector<char*>;

// Memory whose floats, or halves as small, are the same at every place.
class Memory {
 public:
  Memory() {
    Eighths eighths(1);
    for (int i = 0; i < kOperands; ++i) {
      arrays_.push_back(std::make_unique<DeviceArray<float>>(eighths.Take(kOperandBytes / sizeof(float))));
      place.push_back(reinterpret_cast<char*>(arrays_.back()->get()));
    }
  }
  std::vector<float> Result() const { return arrays_.back()->Download(); }

  Place place;

 private:
  std::vector<std::unique_ptr<DeviceArray<float>>> arrays_;
};

// Addresses without memory, each operand in a range of its own.
class Nowhere {
 public:
  Nowhere() {
    for (int i = 0; i < kOperands; ++i) {
      uintptr_t range = 0;
      EXPECT_EQ(0, DriverEntry<Reserve>("cuMemAddressReserve")(&range, kBytes, 0, 0, 0));
      place.push_back(reinterpret_cast<char*>(range));
    }
  }
  ~Nowhere() {
    for (char* range : place) {
      EXPECT_EQ(0, DriverEntry<Unreserve>("cuMemAddressFree")(reinterpret_cast<uintptr_t>(range), kBytes));
    }
  }
  Nowhere(const Nowhere&) = delete;
  Nowhere& operator=(const Nowhere&) = delete;

  Place place;

 private:
  static constexpr size_t kBytes = size_t{2} << 20;
};

using Work = std::function<void(const Place& place, cudaStream_t stream)>;

// What a call leaves on the stack must not show in the arguments of the next.
__attribute__((noinline)) void SpoilStack(unsigned char value) {
  volatile unsigned char bytes[16384];
  for (volatile unsigned char& byte : bytes) byte = value;
}

cudaGraph_t CaptureAt(const Place& place, const Work& work, unsigned char spoil) {
  Stream stream;
  cudaGraph_t graph = nullptr;
  SpoilStack(spoil);
  EXPECT_EQ(cudaSuccess, cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  work(place, stream.get());
  EXPECT_EQ(cudaSuccess, cudaStreamEndCapture(stream.get(), &graph));
  return graph;
}

// The one argument of a library's kernel.
struct Argument {
  cudaGraphNode_t node = nullptr;
  DriverNode told = {};
  std::vector<uint64_t> words;
};

std::vector<Argument> Arguments(cudaGraph_t graph) {
  size_t count = 0;
  EXPECT_EQ(cudaSuccess, cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  EXPECT_EQ(cudaSuccess, cudaGraphGetNodes(graph, nodes.data(), &count));
  std::vector<Argument> arguments(count);
  for (size_t i = 0; i < count; ++i) {
    Argument& argument = arguments[i];
    argument.node = nodes[i];
    EXPECT_EQ(0, DriverEntry<GetNode>("cuGraphKernelNodeGetParams")(nodes[i], &argument.told));
    size_t offset = 77, bytes = 0;
    EXPECT_EQ(0, DriverEntry<GetParam>("cuFuncGetParamInfo")(argument.told.func, 0, &offset, &bytes));
    EXPECT_EQ(1, DriverEntry<GetParam>("cuFuncGetParamInfo")(argument.told.func, 1, &offset, &bytes));
    EXPECT_EQ(0u, offset);
    EXPECT_EQ(0u, bytes % sizeof(uint64_t));
    const void* from = argument.told.params != nullptr ? argument.told.params[0] : nullptr;
    if (argument.told.extra != nullptr) {
      EXPECT_EQ(nullptr, from);
      EXPECT_EQ(kExtraBytes, argument.told.extra[0]);
      EXPECT_EQ(bytes, *static_cast<size_t*>(argument.told.extra[1]));
      EXPECT_EQ(kExtraBuffer, argument.told.extra[2]);
      from = argument.told.extra[3];
    }
    argument.words.resize(bytes / sizeof(uint64_t));
    std::memcpy(argument.words.data(), from, bytes);
  }
  return arguments;
}

// Moves each word that differs between the two places, by what it points into, to a third place. Returns how many.
size_t Move(Argument* argument, const Argument& second, const Place& from, const Place& nowhere, const Place& to) {
  size_t moved = 0;
  EXPECT_EQ(argument->words.size(), second.words.size());
  for (size_t i = 0; i < argument->words.size(); ++i) {
    uint64_t& word = argument->words[i];
    if (word == second.words[i]) continue;
    int operand = 0;
    while (operand < kOperands && word - reinterpret_cast<uint64_t>(from[operand]) >= kOperandBytes) ++operand;
    if (operand == kOperands) {
      ADD_FAILURE() << "word " << i << " of " << argument->words.size() << " is unknown: " << word;
      continue;
    }
    const uint64_t offset = word - reinterpret_cast<uint64_t>(from[operand]);
    EXPECT_EQ(reinterpret_cast<uint64_t>(nowhere[operand]) + offset, second.words[i]);
    word = reinterpret_cast<uint64_t>(to[operand]) + offset;
    ++moved;
  }
  return moved;
}

int Set(cudaGraphExec_t exec, Argument* argument) {
  void* params[] = {argument->words.data()};
  size_t bytes = argument->words.size() * sizeof(uint64_t);
  void* extra[] = {kExtraBuffer, argument->words.data(), kExtraBytes, &bytes, nullptr};
  DriverNode told = argument->told;
  told.params = told.params != nullptr ? params : nullptr;
  told.extra = told.extra != nullptr ? extra : nullptr;
  return DriverEntry<SetExecNode>("cuGraphExecKernelNodeSetParams")(exec, argument->node, &told);
}

struct Moved {
  size_t nodes = 0, words = 0, buffers = 0;  // buffers: kernels that take their argument through `extra`
};

// Expects that the work, captured at one place and moved, gives at another place what a run there gives.
Moved ExpectMoves(const Work& work) {
  Moved moved;
  Stream stream;
  const Memory there, fresh;
  work(fresh.place, stream.get());
  stream.Synchronize();
  EXPECT_NE(fresh.Result(), there.Result()) << "the work writes no result";
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  {
    const Memory first;
    const Nowhere nowhere;
    graph = CaptureAt(first.place, work, 0x55);
    cudaGraph_t second = CaptureAt(nowhere.place, work, 0xAA);
    EXPECT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
    std::vector<Argument> arguments = Arguments(graph);
    const std::vector<Argument> others = Arguments(second);
    moved.nodes = arguments.size();
    for (size_t i = 0; i < arguments.size() && i < others.size(); ++i) {
      EXPECT_EQ(arguments[i].told.func, others[i].told.func);
      moved.words += Move(&arguments[i], others[i], first.place, nowhere.place, there.place);
      moved.buffers += arguments[i].told.extra != nullptr;
      EXPECT_EQ(0, Set(exec, &arguments[i]));
    }
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(second));
  }
  // The first place is gone: a check would tell of work that touches it.
  EXPECT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream.get()));
  stream.Synchronize();
  EXPECT_EQ(fresh.Result(), there.Result());
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  return moved;
}

// --- cuBLASLt and cuBLAS --------------------------------------------------------------------------------------------

// D = A * B of m x k and k x n, with a bias; operands 0, 1, 2 for the bias, 3 for the workspace, the last for D.
class Product {
 public:
  Product(uint64_t m, uint64_t n, uint64_t k, cudaDataType type) {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtCreate(&handle_));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescCreate(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutCreate(&a_, type, m, k, static_cast<int64_t>(m)));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutCreate(&b_, type, k, n, static_cast<int64_t>(k)));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutCreate(&d_, type, m, n, static_cast<int64_t>(m)));
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS,
              cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
  }
  ~Product() {
    for (const auto layout : {a_, b_, d_}) EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutDestroy(layout));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescDestroy(desc_));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtDestroy(handle_));
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  void Run(const Place& place, cudaStream_t stream) {
    const void* bias = place[2];
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS,
              cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
    const float one = 1.0f, half = 0.5f;
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmul(handle_, desc_, &one, place[0], a_, place[1], b_, &half, place[4],
                                                    d_, place.back(), d_, nullptr, place[3], kOperandBytes, stream));
  }
  Work work() {
    return [this](const Place& place, cudaStream_t stream) { Run(place, stream); };
  }

 private:
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
};

TEST(SimDriver, AProductOfFloatsMovesByAParameter) {
  Product product(16, 8, 32, CUDA_R_32F);
  const Moved moved = ExpectMoves(product.work());
  EXPECT_EQ(1u, moved.nodes);
  EXPECT_EQ(6u, moved.words);  // A, B, C, D, the bias and the workspace
  EXPECT_EQ(0u, moved.buffers);
}

TEST(SimDriver, AProductOfHalvesMovesByABuffer) {
  for (const auto type : {CUDA_R_16F, CUDA_R_16BF}) {
    Product product(16, 8, 32, type);
    const Moved moved = ExpectMoves(product.work());
    EXPECT_EQ(1u, moved.nodes);
    EXPECT_EQ(6u, moved.words);
    EXPECT_EQ(1u, moved.buffers);
  }
}

TEST(SimDriver, ASplitProductMovesWithItsWorkspace) {
  Product product(16, 8, 512, CUDA_R_32F);
  const Moved moved = ExpectMoves(product.work());
  EXPECT_EQ(2u, moved.nodes);
  EXPECT_EQ(14u, moved.words);  // of each the same six, and where the partial sums lie
  EXPECT_EQ(0u, moved.buffers);
}

TEST(SimDriver, AProductOfCublasMoves) {
  cublasHandle_t handle;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasCreate(&handle));
  const Moved moved = ExpectMoves([&](const Place& place, cudaStream_t stream) {
    const float one = 1.0f, half = 0.5f;
    const auto at = [&](int i) { return reinterpret_cast<float*>(place[i]); };
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasSetStream(handle, stream));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, 8, 8, 16, &one, at(0), 8, at(1), 8,
                                                 &half, at(kOperands - 1), 8));
  });
  EXPECT_EQ(1u, moved.nodes);
  EXPECT_EQ(4u, moved.words);  // C is read too
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasDestroy(handle));
}

// --- cuDNN ----------------------------------------------------------------------------------------------------------

// Tensors of 2 x 4 x 8 x 8, from operand 0 to the last.
class Dnn : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreate(&handle_));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateTensorDescriptor(&tensor_));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateTensorDescriptor(&channels_));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetTensor4dDescriptor(tensor_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 4, 8, 8));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetTensor4dDescriptor(channels_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 4, 1, 1));
  }
  void TearDown() override {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyTensorDescriptor(tensor_));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyTensorDescriptor(channels_));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroy(handle_));
  }

  Moved Moves(const std::function<cudnnStatus_t(const Place&)>& call) {
    return ExpectMoves([&](const Place& place, cudaStream_t stream) {
      EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(handle_, stream));
      EXPECT_EQ(CUDNN_STATUS_SUCCESS, call(place));
    });
  }

  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t tensor_ = nullptr, channels_ = nullptr;
  const float one_ = 1.0f, half_ = 0.5f, zero_ = 0.0f;
};

TEST_F(Dnn, ConvolutionsOfEveryAlgorithmMove) {
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateFilterDescriptor(&filter));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 4, 3, 3));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateConvolutionDescriptor(&conv));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnSetConvolution2dDescriptor(conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  const struct {
    int algorithm;
    size_t nodes;
  } cases[] = {{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, 1}, {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 1},
               {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, 1},          {CUDNN_CONVOLUTION_FWD_ALGO_FFT, 5},
               {CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, 4},    {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, 4}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.algorithm);
    const auto algorithm = static_cast<cudnnConvolutionFwdAlgo_t>(c.algorithm);
    const Moved moved = Moves([&](const Place& place) {
      return cudnnConvolutionForward(handle_, &one_, tensor_, place[0], filter, place[1], conv, algorithm, place[2],
                                     kOperandBytes, &half_, tensor_, place.back());
    });
    EXPECT_EQ(c.nodes, moved.nodes);
  }
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyConvolutionDescriptor(conv));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyFilterDescriptor(filter));
}

TEST_F(Dnn, CallsOnTensorsMove) {
  cudnnActivationDescriptor_t activation;
  cudnnPoolingDescriptor_t pooling;
  cudnnOpTensorDescriptor_t sum;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateActivationDescriptor(&activation));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_TANH, CUDNN_PROPAGATE_NAN, 0.0));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreatePoolingDescriptor(&pooling));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 3, 3, 1, 1, 1, 1));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateOpTensorDescriptor(&sum));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnSetOpTensorDescriptor(sum, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
  const std::function<cudnnStatus_t(const Place&)> calls[] = {
      [&](const Place& p) {
        return cudnnActivationForward(handle_, activation, &one_, tensor_, p[0], &zero_, tensor_, p.back());
      },
      [&](const Place& p) {
        return cudnnPoolingForward(handle_, pooling, &one_, tensor_, p[0], &zero_, tensor_, p.back());
      },
      [&](const Place& p) {
        return cudnnSoftmaxForward(handle_, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one_, tensor_, p[0],
                                   &zero_, tensor_, p.back());
      },
      [&](const Place& p) { return cudnnAddTensor(handle_, &one_, channels_, p[0], &half_, tensor_, p.back()); },
      [&](const Place& p) { return cudnnScaleTensor(handle_, tensor_, p.back(), &half_); },
      [&](const Place& p) { return cudnnSetTensor(handle_, tensor_, p.back(), &half_); },
      [&](const Place& p) { return cudnnTransformTensor(handle_, &half_, tensor_, p[0], &zero_, tensor_, p.back()); },
      [&](const Place& p) {
        return cudnnOpTensor(handle_, sum, &one_, tensor_, p[0], &half_, channels_, p[1], &zero_, tensor_, p.back());
      },
      [&](const Place& p) {
        return cudnnBatchNormalizationForwardInference(handle_, CUDNN_BATCHNORM_SPATIAL, &one_, &zero_, tensor_, p[0],
                                                       tensor_, p.back(), channels_, p[1], p[2], p[3], p[3], 10.0);
      }};
  const size_t words[] = {2, 2, 2, 2, 1, 1, 2, 3, 6};
  for (size_t i = 0; i < std::size(calls); ++i) {
    SCOPED_TRACE(i);
    const Moved moved = Moves(calls[i]);
    EXPECT_EQ(1u, moved.nodes);
    EXPECT_EQ(words[i], moved.words);
    EXPECT_EQ(0u, moved.buffers);
  }
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyOpTensorDescriptor(sum));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyPoolingDescriptor(pooling));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyActivationDescriptor(activation));
}

// --- What else is told ----------------------------------------------------------------------------------------------

class OneProduct : public testing::Test {
 protected:
  explicit OneProduct(cudaDataType type = CUDA_R_32F) : product_(16, 8, 32, type) {
    graph_ = CaptureAt(memory_.place, product_.work(), 0);
    EXPECT_EQ(cudaSuccess, cudaGraphInstantiate(&exec_, graph_, 0));
    argument_ = Arguments(graph_)[0];
  }
  ~OneProduct() override {
    EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec_));
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph_));
  }
  int Set(const DriverNode& told) {
    return DriverEntry<SetExecNode>("cuGraphExecKernelNodeSetParams")(exec_, argument_.node, &told);
  }

  Product product_;
  Memory memory_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  Argument argument_;
};

TEST_F(OneProduct, TheRuntimeKnowsNoSuchFunction) {
  cudaKernelNodeParams params = {};
  EXPECT_EQ(cudaErrorInvalidDeviceFunction, cudaGraphKernelNodeGetParams(argument_.node, &params));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphKernelNodeGetParams(argument_.node, nullptr));
  params.func = argument_.told.func;
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = argument_.told.params;
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaGraphExecKernelNodeSetParams(exec_, argument_.node, &params));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaGetLastError());
}

TEST_F(OneProduct, TheDriverTellsItsName) {
  const char* name = nullptr;
  EXPECT_EQ(0, DriverEntry<GetName>("cuFuncGetName")(&name, argument_.told.func));
  EXPECT_STREQ("cublasLtMatmul", name);
  EXPECT_EQ(0, DriverEntry<GetName>("cuKernelGetName")(&name, argument_.told.kern));
  EXPECT_STREQ("cublasLtMatmul", name);
  EXPECT_EQ(1, DriverEntry<GetParam>("cuKernelGetParamInfo")(argument_.told.kern, 0, nullptr, nullptr));
}

TEST_F(OneProduct, ArgumentsThatAreNoneAreRefused) {
  size_t bytes = argument_.words.size() * sizeof(uint64_t) - 8;
  void* extra[] = {kExtraBuffer, argument_.words.data(), kExtraBytes, &bytes, nullptr};
  DriverNode told = argument_.told;
  told.extra = extra;  // both ways at once
  EXPECT_EQ(1, Set(told));
  told.params = nullptr;  // too few bytes
  EXPECT_EQ(1, Set(told));
  bytes += 8;
  EXPECT_EQ(0, Set(told));
  told.extra = nullptr;
  EXPECT_EQ(1, Set(told));
}

using OneProductDeathTest = OneProduct;

TEST_F(OneProductDeathTest, AnotherShapeIsNotModelled) {
  DriverNode told = argument_.told;
  told.grid_x = 2;
  EXPECT_DEATH(Set(told), "another shape for cublasLtMatmul, a library's kernel, is not modelled");
}

TEST_F(OneProductDeathTest, TheChecksFollowTheNewPlace) {
  const Nowhere nowhere;
  for (uint64_t& word : argument_.words) {
    if (word == reinterpret_cast<uint64_t>(memory_.place[0])) word = reinterpret_cast<uint64_t>(nowhere.place[0]);
  }
  ASSERT_EQ(0, ::Set(exec_, &argument_));
  const auto launch = [this] {
    (void)cudaGraphLaunch(exec_, cudaStreamPerThread);
    (void)cudaStreamSynchronize(cudaStreamPerThread);
  };
  EXPECT_DEATH(launch(), "out of bounds: read of 2048 bytes at .*, which no allocation holds");
}

}  // namespace
