// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a call of a library does to a capture: one row a call, one test for each mode and for the capturing and another
// thread. An answer is written as the statuses of the calls, then A, I or N for the capturing stream after them
// (active, invalidated, none), ">" and the code of the end, and "n" with the nodes where there is a graph: 0A>0n1. In
// every case the failure leaves no last error in the caller's runtime, and the stream works as soon as the capture has
// ended.
#include <functional>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/conformance/libraries/answer.h"
#include "test/conformance/libraries/capture_text.h"
#include "test/conformance/libraries/convolution.h"
#include "test/conformance/libraries/matmul.h"

namespace conformance {
namespace {

using gcap_test::DeviceArray;

// Everything a row may call: warm, so that a first use in the process and a later one do not differ.
struct World {
  explicit World(bool blocking) {
    EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&capturing, blocking ? cudaStreamDefault : cudaStreamNonBlocking));
    EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&eager, cudaStreamNonBlocking));
    matmul.reset(new Matmul);
    convolution.reset(new Convolution(eager));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, matmul->Run(eager));
    std::vector<cublasLtMatmulHeuristicResult_t> results;
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, matmul->Heuristic(0, &results));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, convolution->Forward());
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
  }
  ~World() {
    if (lt_handle != nullptr) {
      EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtDestroy(lt_handle));
    }
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroy(dnn_handle));
    convolution.reset();
    matmul.reset();
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(eager));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(capturing));
  }

  // The convolution's handle on the capturing stream.
  Convolution* OnCapturing() {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(convolution->handle, capturing));
    return convolution.get();
  }
  // Breaks the capture without a trace but that.
  void Invalidate() {
    EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
    (void)cudaGetLastError();
  }

  cudaStream_t capturing = nullptr, eager = nullptr;
  std::unique_ptr<Matmul> matmul;
  std::unique_ptr<Convolution> convolution;
  // Made by a row: destroyed after the capture, which that would break.
  cublasLtHandle_t lt_handle = nullptr;
  cudnnHandle_t dnn_handle = nullptr;
};

struct Row {
  const char* name;
  const char* self;   // answers in global, thread-local and relaxed mode, on the capturing thread
  const char* other;  // the same on another thread
  std::function<std::string(World*)> call;
  bool blocking = false;  // the capturing stream is a blocking one
};

const float kOne = 1.0f, kZero = 0.0f;

const char kLegal[] = "0A>0n0 0A>0n0 0A>0n0";
const char kOneNode[] = "0A>0n1 0A>0n1 0A>0n1";

std::string SearchEx(World* w) {
  Convolution* c = w->convolution.get();
  return c->Search([&](int* count, cudnnConvolutionFwdAlgoPerf_t* results) {
    return cudnnFindConvolutionForwardAlgorithmEx(c->handle, c->x, c->pointer_x, c->w, c->pointer_w, c->conv, c->y,
                                                  c->pointer_y, 8, count, results, c->workspace, c->workspace_bytes);
  });
}

std::string Search(World* w) {
  Convolution* c = w->convolution.get();
  return c->Search([&](int* count, cudnnConvolutionFwdAlgoPerf_t* results) {
    return cudnnFindConvolutionForwardAlgorithm(c->handle, c->x, c->w, c->conv, c->y, 8, count, results);
  });
}

void SetRows(Matmul* m, uint64_t rows) {
  for (const auto layout : {m->a, m->c, m->d}) m->SetLayout(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, rows);
}

std::vector<Row> LtRows() {
  return {
      {"cublasLtCreate", kLegal, kLegal, [](World* w) { return Text(cublasLtCreate(&w->lt_handle)); }},
      // The silent killer: nothing tells of it before the end of the capture.
      {"cublasLtDestroy", "0I>901 0I>901 0I>901", "0I>901 0I>901 0I>901",
       [](World* w) {
         const cublasStatus_t status = cublasLtDestroy(w->matmul->handle);
         w->matmul->handle = nullptr;
         return Text(status);
       }},
      {"cublasLtDestroy_null", "7A>0n0 7A>0n0 7A>0n0", "7A>0n0 7A>0n0 7A>0n0",
       [](World*) { return Text(cublasLtDestroy(nullptr)); }},
      {"cublasLt_descriptors", "0,0,0,0A>0n0 0,0,0,0A>0n0 0,0,0,0A>0n0", "0,0,0,0A>0n0 0,0,0,0A>0n0 0,0,0,0A>0n0",
       [](World*) {
         cublasLtMatmulDesc_t desc = nullptr;
         cublasLtMatrixLayout_t layout = nullptr;
         const auto created = cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
         const auto made = cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 1, 1, 1);
         return Text(created, made, cublasLtMatrixLayoutDestroy(layout), cublasLtMatmulDescDestroy(desc));
       }},
      // Beside another thread's global capture: whether it is broken depends on what the process has loaded before, in
      // a way that nobody can know; an earlier record has 14 as well.
      {"cublasLtMatmulAlgoGetHeuristic", kLegal, "0A>0n0|0I>901|14I>901 0A>0n0 0A>0n0",
       [](World* w) {
         std::vector<cublasLtMatmulHeuristicResult_t> results;
         return Text(w->matmul->Heuristic(0, &results));
       }},
      {"cublasLtMatmul_capturing", kOneNode, "0A>0n1|13I>901|14I>901 0A>0n1 0A>0n1",
       [](World* w) { return Text(w->matmul->Run(w->capturing)); }},
      {"cublasLtMatmul_eager", kLegal, "0A>0n0|0I>901|14I>901 0A>0n0 0A>0n0",
       [](World* w) { return Text(w->matmul->Run(w->eager)); }},
      {"cublasLtMatmul_legacy", "13I>901 13I>901 13I>901", "13I>901 13I>901 13I>901",
       [](World* w) { return Text(w->matmul->Run(nullptr)); }, true},
      {"cublasLtMatmul_no_rows_capturing", "13I>901 13I>901 13I>901", "13I>901 13I>901 13I>901",
       [](World* w) {
         SetRows(w->matmul.get(), 0);
         return Text(w->matmul->Run(w->capturing));
       }},
      {"cublasLtMatmul_no_rows_eager", "13A>0n0 13A>0n0 13A>0n0", "13A>0n0|13I>901|14I>901 13A>0n0 13A>0n0",
       [](World* w) {
         SetRows(w->matmul.get(), 0);
         return Text(w->matmul->Run(w->eager));
       }},
      {"cublasLtMatmul_no_inner_dimension", kOneNode, "0A>0n1|13I>901|14I>901 0A>0n1 0A>0n1",
       [](World* w) {
         w->matmul->SetLayout(w->matmul->a, CUBLASLT_MATRIX_LAYOUT_COLS, uint64_t{0});
         w->matmul->SetLayout(w->matmul->b, CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{0});
         return Text(w->matmul->Run(w->capturing));
       }},
      // What is left of the library in a capture that is invalid: work fails, the rest goes on.
      {"cublasLt_invalidated", "13,0,0I>901 13,0,0I>901 13,0,0I>901", "13,0,0I>901 13,0,0I>901 13,0,0I>901",
       [](World* w) {
         w->Invalidate();
         std::vector<cublasLtMatmulHeuristicResult_t> results;
         const auto ran = w->matmul->Run(w->capturing);
         const auto asked = w->matmul->Heuristic(0, &results);
         return Text(ran, asked, cublasLtCreate(&w->lt_handle));
       }},
  };
}

std::vector<Row> DnnHandleRows() {
  return {
      // cuDNN 9.14 was seen to answer 5000, with the same effect.
      {"cudnnCreate", "4004I>901|5000I>901 4004I>901|5000I>901 0A>0n0", "4004I>901|5000I>901 0A>0n0 0A>0n0",
       [](World* w) { return Text(cudnnCreate(&w->dnn_handle)); }},
      {"cudnnDestroy", "4000I>901 4000I>901 0A>0n0", "4000I>901 0A>0n0 0A>0n0",
       [](World* w) {
         const cudnnStatus_t status = cudnnDestroy(w->convolution->handle);
         w->convolution->handle = nullptr;
         return Text(status);
       }},
      {"cudnnDestroy_null", kLegal, kLegal, [](World*) { return Text(cudnnDestroy(nullptr)); }},
      {"cudnnSetStream", kLegal, kLegal,
       [](World* w) { return Text(cudnnSetStream(w->convolution->handle, w->capturing)); }},
      {"cudnnSetStream_null", kLegal, kLegal,
       [](World* w) { return Text(cudnnSetStream(w->convolution->handle, nullptr)); }},
      {"cudnnGetStream", kLegal, kLegal,
       [](World* w) {
         cudaStream_t stream = nullptr;
         return Text(cudnnGetStream(w->convolution->handle, &stream));
       }},
      {"cudnn_descriptors", "0,0,0A>0n0 0,0,0A>0n0 0,0,0A>0n0", "0,0,0A>0n0 0,0,0A>0n0 0,0,0A>0n0",
       [](World*) {
         cudnnTensorDescriptor_t desc = nullptr;
         const auto created = cudnnCreateTensorDescriptor(&desc);
         const auto set = cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1);
         return Text(created, set, cudnnDestroyTensorDescriptor(desc));
       }},
      {"cudnnGetConvolutionForwardWorkspaceSize", kLegal, kLegal,
       [](World* w) {
         size_t bytes = 0;
         return Text(w->convolution->WorkspaceSize(&bytes));
       }},
      {"cudnnGetConvolutionForwardAlgorithm_v7", kLegal, kLegal,
       [](World* w) {
         Convolution* c = w->convolution.get();
         cudnnConvolutionFwdAlgoPerf_t results[8];
         int count = 0;
         return Text(cudnnGetConvolutionForwardAlgorithm_v7(c->handle, c->x, c->w, c->conv, c->y, 8, &count, results));
       }},
      {"cudnnFindConvolutionForwardAlgorithm_capturing", "4004/0/I>901 4004/0/I>901 0/8/4000I>901", nullptr,
       [](World* w) {
         w->OnCapturing();
         return Search(w);
       }},
      {"cudnnFindConvolutionForwardAlgorithm_eager", "4004/0/I>901 4004/0/I>901 0/8/0A>0n0",
       "4004/0/I>901 0/8/0A>0n0 0/8/0A>0n0", Search},
      // The second silent killer.
      {"cudnnFindConvolutionForwardAlgorithmEx_capturing", "0/8/4000I>901 0/8/4000I>901 0/8/4000I>901", nullptr,
       [](World* w) {
         w->OnCapturing();
         return SearchEx(w);
       }},
      {"cudnnFindConvolutionForwardAlgorithmEx_eager", "0/8/4000I>901 0/8/4000I>901 0/8/0A>0n0",
       "0/8/4000I>901 0/8/0A>0n0 0/8/0A>0n0", SearchEx},
      // Its own stream in an invalid capture is an internal error, any other such stream a mismatch that changes
      // nothing.
      {"cudnnSetStream_invalidated_own", "4000I>901 4000I>901 4000I>901", nullptr,
       [](World* w) {
         w->OnCapturing();
         w->Invalidate();
         return Text(cudnnSetStream(w->convolution->handle, w->capturing));
       }},
      {"cudnnSetStream_invalidated_new", "2007,0,1I>901 2007,0,1I>901 2007,0,1I>901", nullptr,
       [](World* w) {
         w->Invalidate();
         const auto set = cudnnSetStream(w->convolution->handle, w->capturing);
         cudaStream_t stream = nullptr;
         const auto got = cudnnGetStream(w->convolution->handle, &stream);
         return Text(set, got, stream == w->eager);
       }},
      {"cudnnSetStream_invalidated_away", "0I>901 0I>901 0I>901", nullptr,
       [](World* w) {
         w->OnCapturing();
         w->Invalidate();
         return Text(cudnnSetStream(w->convolution->handle, nullptr));
       }},
  };
}

// A call that works on a stream: on the capturing one it makes a node, on another it does not matter, and in an invalid
// capture it fails.
struct Work {
  const char* name;
  const char* invalidated;  // status in an invalid capture
  std::function<cudnnStatus_t(Convolution*)> call;
};

std::vector<Work> Works() {
  return {
      {"cudnnConvolutionForward", "5000", [](Convolution* c) { return c->Forward(); }},
      {"cudnnConvolutionBiasActivationForward", "5000", [](Convolution* c) { return c->Fused(); }},
      {"cudnnPoolingForward", "5003",
       [](Convolution* c) {
         const TensorDesc y(CUDNN_DATA_FLOAT, 2, 16, 4, 4);
         const PoolingDesc pooling(CUDNN_POOLING_MAX);
         return cudnnPoolingForward(c->handle, pooling.get(), &kOne, c->x, c->pointer_x, &kZero, y.get(), c->pointer_y);
       }},
      {"cudnnSoftmaxForward", "5003",
       [](Convolution* c) {
         return cudnnSoftmaxForward(c->handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &kOne, c->x,
                                    c->pointer_x, &kZero, c->x, c->pointer_y);
       }},
      {"cudnnActivationForward", "5003",
       [](Convolution* c) {
         return cudnnActivationForward(c->handle, c->activation, &kOne, c->x, c->pointer_x, &kZero, c->x, c->pointer_y);
       }},
      {"cudnnAddTensor", "5003",
       [](Convolution* c) {
         return cudnnAddTensor(c->handle, &kOne, c->bias, c->pointer_bias, &kOne, c->y, c->pointer_y);
       }},
      {"cudnnOpTensor", "5003",
       [](Convolution* c) {
         const OpTensorDesc op(CUDNN_OP_TENSOR_ADD);
         return cudnnOpTensor(c->handle, op.get(), &kOne, c->y, c->pointer_y, &kOne, c->bias, c->pointer_bias, &kZero,
                              c->y, c->pointer_y);
       }},
      {"cudnnSetTensor", "5003", [](Convolution* c) { return cudnnSetTensor(c->handle, c->y, c->pointer_y, &kOne); }},
      {"cudnnScaleTensor", "5003",
       [](Convolution* c) { return cudnnScaleTensor(c->handle, c->y, c->pointer_y, &kOne); }},
      {"cudnnTransformTensor", "5003",
       [](Convolution* c) {
         const TensorDesc nhwc(CUDNN_DATA_FLOAT, 2, 16, 8, 8, CUDNN_TENSOR_NHWC);
         return cudnnTransformTensor(c->handle, &kOne, c->x, c->pointer_x, &kZero, nhwc.get(), c->pointer_y);
       }},
      {"cudnnBatchNormalizationForwardInference", "5003",
       [](Convolution* c) {
         const TensorDesc parameters(CUDNN_DATA_FLOAT, 1, 16, 1, 1);
         const void* p = c->pointer_bias;
         return cudnnBatchNormalizationForwardInference(c->handle, CUDNN_BATCHNORM_SPATIAL, &kOne, &kZero, c->x,
                                                        c->pointer_x, c->x, c->pointer_y, parameters.get(), p, p, p, p,
                                                        1e-5);
       }},
  };
}

std::vector<Row> WorkRows() {
  std::vector<Row> rows;
  static std::vector<std::string>* names = new std::vector<std::string>;
  names->reserve(4 * Works().size());
  const auto keep = [](const std::string& text) {
    names->push_back(text);
    return names->back().c_str();
  };
  for (const Work& work : Works()) {
    const auto call = work.call;
    rows.push_back({keep(std::string(work.name) + "_capturing"), kOneNode, nullptr,
                    [call](World* w) { return Text(call(w->OnCapturing())); }});
    rows.push_back({keep(std::string(work.name) + "_eager"), kLegal, kLegal,
                    [call](World* w) { return Text(call(w->convolution.get())); }});
    const std::string broken = std::string(work.invalidated) + "I>901";
    rows.push_back({keep(std::string(work.name) + "_invalidated"), keep(broken + " " + broken + " " + broken), nullptr,
                    [call](World* w) {
                      Convolution* convolution = w->OnCapturing();
                      w->Invalidate();
                      return Text(call(convolution));
                    }});
  }
  return rows;
}

const std::vector<Row>& Rows() {
  static const auto* rows = [] {
    auto* all = new std::vector<Row>(LtRows());
    for (const Row& row : DnnHandleRows()) all->push_back(row);
    for (const Row& row : WorkRows()) all->push_back(row);
    return all;
  }();
  return *rows;
}

// One test: a row, a mode, and on which thread the call is made.
struct Case {
  const Row* row;
  int mode;
  bool other;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.row->name; }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Row& row : Rows()) {
    for (int mode = 0; mode < 3; ++mode) {
      cases.push_back({&row, mode, false});
      if (row.other != nullptr) cases.push_back({&row, mode, true});
    }
  }
  return cases;
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  static const char* const kModes[] = {"global", "threadlocal", "relaxed"};
  return std::string(info.param.row->name) + (info.param.other ? "_other_" : "_self_") + kModes[info.param.mode];
}

std::string Word(const char* words, int index) {
  std::istringstream in(words);
  std::string word;
  for (int i = 0; i <= index; ++i) in >> word;
  return word;
}

class LibraryCapture : public testing::TestWithParam<Case> {};

TEST_P(LibraryCapture, Answers) {
  const Case& c = GetParam();
  World world(c.row->blocking);
  const DeviceArray<uint8_t> after(std::vector<uint8_t>(64, 1));
  const std::string got = ObserveCapture(world.capturing, c.mode, c.other, [&] { return c.row->call(&world); });
  ExpectAnswer(CaseName({c, 0}), Word(c.other ? c.row->other : c.row->self, c.mode), got);
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(after.get(), 7, 64, world.capturing));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(world.capturing));
  EXPECT_EQ(std::vector<uint8_t>(64, 7), after.Download());
  EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
}

INSTANTIATE_TEST_SUITE_P(Rows, LibraryCapture, testing::ValuesIn(Cases()), CaseName);

}  // namespace
}  // namespace conformance
