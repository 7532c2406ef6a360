// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What only the simulator can show of the ops: every call that they make fails once, and the status names it and
// nothing leaks; a run allocates nothing; a failure inside a capture fails the capture; the workspace rules.

#include <stdlib.h>

#include <functional>
#include <string>
#include <thread>

#include "gcap/capture.h"
#include "gcap/kit/ops/batch_norm.h"
#include "gcap/kit/ops/conv2d.h"
#include "gcap/kit/ops/cublas.h"
#include "gcap/kit/ops/cublaslt.h"
#include "gcap/kit/ops/matmul.h"
#include "gcap/kit/ops/pool2d.h"
#include "gcap_sim.h"
#include "test/ops/conv2d_info.h"
#include "test/ops/fail_each_call.h"
#include "test/ops/op_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

constexpr int kRows = 4, kCols = 8, kDepth = 512;  // deep enough that the simulated cuBLASLt splits it into slices
constexpr size_t kWorkspaceLimit = 1 << 20;

class OpsOnSim : public OpTest {
 protected:
  void SetUp() override {
    OpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(cublasLtCreate(&cublaslt_), CUBLAS_STATUS_SUCCESS);
    GCAP_ASSERT_OK(gcap_stream_cudnn_handle(stream_, &cudnn_));
  }
  void TearDown() override {
    gcap_sim_fail_nth(nullptr, 0, cudaSuccess);
    if (cublaslt_ != nullptr) {
      EXPECT_EQ(cublasLtDestroy(cublaslt_), CUBLAS_STATUS_SUCCESS);
    }
    OpTest::TearDown();
  }

  gcap_matmul_options_t MatmulOptions() const {
    gcap_matmul_options_t options;
    gcap_matmul_options_init(&options);
    options.handle = cublaslt_;
    options.m = kRows, options.n = kCols, options.k = kDepth;
    options.epilogue = GCAP_MATMUL_EPILOGUE_BIAS_RELU;
    options.max_workspace_bytes = kWorkspaceLimit;
    return options;
  }
  gcap_conv2d_options_t ConvOptions() const {
    gcap_conv2d_options_t options;
    gcap_conv2d_options_init(&options);
    options.handle = cudnn_;
    options.n = 2, options.c = 3, options.h = options.w = 6, options.k = 4;
    options.kernel_h = options.kernel_w = 3;
    options.stride_h = options.stride_w = options.pad_h = options.pad_w = 1;
    options.max_workspace_bytes = kWorkspaceLimit;
    options.direct = GCAP_CONV2D_DIRECT_NEVER;
    return options;
  }
  gcap_pool2d_options_t PoolOptions() const {
    gcap_pool2d_options_t options;
    gcap_pool2d_options_init(&options);
    options.n = 2, options.c = 4, options.h = options.w = 6;
    options.kernel_h = options.kernel_w = options.stride_h = options.stride_w = 2;
    return options;
  }
  gcap_batch_norm_options_t NormOptions() const {
    gcap_batch_norm_options_t options;
    gcap_batch_norm_options_init(&options);
    options.n = 2, options.c = 4, options.h = options.w = 6;
    return options;
  }

  cublasLtHandle_t cublaslt_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
};

TEST_F(OpsOnSim, MatmulCreateReportsEachFailingCall) {
  gcap_matmul_options_t options = MatmulOptions();
  options.batch = 2;
  FailEachCall({"cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
                "cublasLtMatrixLayoutSetAttribute", "cublasLtMatmulPreferenceCreate",
                "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic"},
               {"cublasLtMatmulPreferenceDestroy", "cublasLtMatrixLayoutDestroy", "cublasLtMatmulDescDestroy"}, [&] {
                 gcap_matmul_t* plan = nullptr;
                 gcap_status_t status = gcap_matmul_create(&options, &plan);
                 EXPECT_EQ(plan == nullptr, status != nullptr);
                 gcap_matmul_destroy(plan);
                 return status;
               });
}

// Of two axes, and of three.
TEST_F(OpsOnSim, Conv2dCreateReportsEachFailingCall) {
  gcap_conv2d_options_t options = ConvOptions();
  for (const bool is_volume : {false, true}) {
    if (is_volume) options.d = 3, options.kernel_d = 2;
    FailEachCall(
        {"cudnnCreateTensorDescriptor", is_volume ? "cudnnSetTensorNdDescriptorEx" : "cudnnSetTensor4dDescriptor",
         "cudnnCreateFilterDescriptor", is_volume ? "cudnnSetFilterNdDescriptor" : "cudnnSetFilter4dDescriptor",
         "cudnnCreateConvolutionDescriptor", "cudnnSetConvolutionNdDescriptor", "cudnnSetConvolutionGroupCount",
         "cudnnSetConvolutionMathType", "cudnnCreateActivationDescriptor", "cudnnSetActivationDescriptor",
         "cudnnGetConvolutionForwardAlgorithmMaxCount", "cudnnGetConvolutionForwardAlgorithm_v7",
         "cudnnGetConvolutionForwardWorkspaceSize"},
        {"cudnnDestroyTensorDescriptor", "cudnnDestroyFilterDescriptor", "cudnnDestroyConvolutionDescriptor",
         "cudnnDestroyActivationDescriptor"},
        [&] {
          gcap_conv2d_t* plan = nullptr;
          gcap_status_t status = gcap_conv2d_create(&options, &plan);
          EXPECT_EQ(plan == nullptr, status != nullptr);
          gcap_conv2d_destroy(plan);
          return status;
        });
  }
}

// The scratch has enough, so the driver, which has nothing, is asked for nothing.
TEST_F(OpsOnSim, AnExhaustiveSearchTakesAllItsMemoryFromScratch) {
  gcap_allocator_t* device = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device));
  gcap_scratch_t* scratch = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_create(device, nullptr, &scratch));
  gcap_conv2d_options_t options = ConvOptions();
  options.search = GCAP_CONV2D_SEARCH_EXHAUSTIVE;
  options.search_stream = stream_, options.search_scratch = scratch;
  void* block = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, 8 * kWorkspaceLimit, stream_, &block));
  GCAP_ASSERT_OK(gcap_scratch_free(scratch, block));
  for (const char* function : {"cudaMalloc", "cudaMallocAsync"}) {
    const gcap_sim_fault_t no_memory = {function, 0, /*probability=*/1, cudaErrorMemoryAllocation, 0};
    gcap_sim_inject(&no_memory);
  }
  gcap_conv2d_t* plan = nullptr;
  GCAP_EXPECT_OK(gcap_conv2d_create(&options, &plan));
  gcap_sim_clear_faults();
  EXPECT_TRUE(plan == nullptr || InfoOf(plan).workspace_bytes > 0) << "one with a workspace was tried";
  gcap_conv2d_destroy(plan);
  Synchronize();
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  gcap_allocator_destroy(device);
}

TEST_F(OpsOnSim, Pool2dCreateReportsEachFailingCall) {
  const gcap_pool2d_options_t options = PoolOptions();
  FailEachCall({"cudnnCreateTensorDescriptor", "cudnnSetTensor4dDescriptor", "cudnnCreatePoolingDescriptor",
                "cudnnSetPooling2dDescriptor"},
               {"cudnnDestroyTensorDescriptor", "cudnnDestroyPoolingDescriptor"}, [&] {
                 gcap_pool2d_t* plan = nullptr;
                 gcap_status_t status = gcap_pool2d_create(&options, &plan);
                 EXPECT_EQ(plan == nullptr, status != nullptr);
                 gcap_pool2d_destroy(plan);
                 return status;
               });
}

TEST_F(OpsOnSim, BatchNormCreateReportsEachFailingCall) {
  const gcap_batch_norm_options_t options = NormOptions();
  FailEachCall({"cudnnCreateTensorDescriptor", "cudnnSetTensor4dDescriptor", "cudnnDeriveBNTensorDescriptor"},
               {"cudnnDestroyTensorDescriptor"}, [&] {
                 gcap_batch_norm_t* plan = nullptr;
                 gcap_status_t status = gcap_batch_norm_create(&options, &plan);
                 EXPECT_EQ(plan == nullptr, status != nullptr);
                 gcap_batch_norm_destroy(plan);
                 return status;
               });
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// A plan has several objects of the library, an engine many plans. Was: a warning for each.
TEST_F(OpsOnSim, OfALostDevicePlansEndWithOneWarning) {
  const gcap_matmul_options_t matmul = MatmulOptions();
  const gcap_conv2d_options_t conv = ConvOptions();
  const gcap_pool2d_options_t pool = PoolOptions();
  const gcap_batch_norm_options_t norm = NormOptions();
  for (int round = 0; round < 2; ++round) {
    gcap_matmul_t* matmuls[10] = {};
    gcap_conv2d_t* conv_plan = nullptr;
    gcap_pool2d_t* pool_plan = nullptr;
    gcap_batch_norm_t* norm_plan = nullptr;
    for (gcap_matmul_t*& plan : matmuls) GCAP_ASSERT_OK(gcap_matmul_create(&matmul, &plan));
    GCAP_ASSERT_OK(gcap_conv2d_create(&conv, &conv_plan));
    GCAP_ASSERT_OK(gcap_pool2d_create(&pool, &pool_plan));
    GCAP_ASSERT_OK(gcap_batch_norm_create(&norm, &norm_plan));
    const gcap_sim_fault_t lost = {"cudaDeviceSynchronize", 1, 0, cudaErrorIllegalAddress, /*sticky=*/1};
    gcap_sim_inject(&lost);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    LogCatcher log;
    for (gcap_matmul_t* plan : matmuls) gcap_matmul_destroy(plan);
    gcap_conv2d_destroy(conv_plan);
    gcap_pool2d_destroy(pool_plan);
    gcap_batch_norm_destroy(norm_plan);
    gcap_sim_clear_faults();
    EXPECT_EQ(CountOf(log.text(), " failed: "), 1u) << log.text();
    EXPECT_NE(log.text().find("cublasLtMatrixLayoutDestroy failed: "), std::string::npos) << log.text();
    // One that ends well: the next failure is another one, and is told.
    gcap_matmul_t* good = nullptr;
    GCAP_ASSERT_OK(gcap_matmul_create(&matmul, &good));
    gcap_matmul_destroy(good);
    EXPECT_EQ(CountOf(log.text(), " failed: "), 1u) << log.text();
  }
}

// Makes each of the functions fail once while a stream gets its handle of `kind`.
template <typename Handle>
void FailEachCallOfHandle(const Names& functions, const char* kind,
                          gcap_status_t (*get)(gcap_stream_t*, Handle* out_handle)) {
  const size_t others = gcap_sim_live(kind);
  for (const char* function : functions) {
    gcap_stream_t* stream = nullptr;
    Handle handle = nullptr;
    GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
    const size_t live = gcap_sim_live(nullptr);
    gcap_sim_fail_nth(function, 1, cudaErrorUnknown);
    const Outcome outcome(get(stream, &handle));
    EXPECT_TRUE(outcome.code == GCAP_LIBRARY_ERROR || outcome.code == GCAP_CUDA_ERROR) << function;
    EXPECT_TRUE(outcome.Names(function)) << outcome.message;
    EXPECT_EQ(handle, nullptr);
    EXPECT_EQ(gcap_sim_live(nullptr), live);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    GCAP_EXPECT_OK(get(stream, &handle));  // the failure left the stream as it was
    EXPECT_EQ(gcap_sim_live(kind), others + 1);
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    EXPECT_EQ(gcap_sim_live(kind), others);
  }
}

TEST_F(OpsOnSim, HandlesReportEachFailingCall) {
  FailEachCallOfHandle({"cudnnCreate", "cudnnSetStream"}, "cudnn handle", gcap_stream_cudnn_handle);
  FailEachCallOfHandle({"cublasLtCreate"}, "cublasLt handle", gcap_stream_cublaslt_handle);
  FailEachCallOfHandle(
      {"cudaDeviceGetAttribute", "cudaMalloc", "cublasCreate", "cublasSetStream", "cublasSetWorkspace"},
      "cublas handle", gcap_stream_cublas_handle);
}

// Kept while a scope is open, and ended by the next stream that ends without one.
// Also those of cuBLASLt, of which a GPU's library may give one to several callers.
TEST_F(OpsOnSim, EachStreamHasHandlesOfItsOwn) {
  gcap_stream_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &other));
  cublasLtHandle_t first = nullptr, again = nullptr, others = nullptr;
  GCAP_EXPECT_OK(gcap_stream_cublaslt_handle(stream_, &first));
  GCAP_EXPECT_OK(gcap_stream_cublaslt_handle(stream_, &again));
  GCAP_EXPECT_OK(gcap_stream_cublaslt_handle(other, &others));
  EXPECT_EQ(first, again);
  EXPECT_NE(first, others);
  GCAP_EXPECT_OK(gcap_stream_destroy(other));
}

TEST_F(OpsOnSim, AHandleThatEndsBesideACaptureIsKeptAndEndedLater) {
  gcap_stream_t *ending = nullptr, *last = nullptr;
  cublasHandle_t cublas = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &ending));
  GCAP_ASSERT_OK(gcap_stream_create(0, &last));
  GCAP_ASSERT_OK(gcap_stream_cublas_handle(ending, &cublas));
  GCAP_ASSERT_OK(gcap_stream_cublas_handle(last, &cublas));
  gcap_capture_t* capture = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
  std::thread([&] { GCAP_EXPECT_OK(gcap_stream_destroy(ending)); }).join();
  EXPECT_EQ(gcap_sim_live("cublas handle"), 2u);
  GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  gcap_retained_release(retained);
  GCAP_EXPECT_OK(gcap_stream_destroy(last));
  EXPECT_EQ(gcap_sim_live("cublas handle"), 0u);
}

TEST_F(OpsOnSim, ARunWithTheStreamsCublasHandleAllocatesNothing) {
  cublasHandle_t cublas = nullptr;
  GCAP_ASSERT_OK(gcap_stream_cublas_handle(stream_, &cublas));
  const DeviceFloats x(std::vector<float>(16, 1.0f)), y(std::vector<float>(16));
  const float one = 1.0f, zero = 0.0f;
  const uint64_t calls = gcap_sim_calls(nullptr);
  EXPECT_EQ(cublasSgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, x.get(), 4, x.get(), 4, &zero, y.get(), 4),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gcap_sim_calls(nullptr), calls + 1);
  Synchronize();
  EXPECT_EQ(y.Get()[0], 4.0f);
}

// The ops' operands and plans, all made, for tests of what a run does.
class RunsOnSim : public OpsOnSim {
 protected:
  void SetUp() override {
    OpsOnSim::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const gcap_matmul_options_t matmul = MatmulOptions();
    const gcap_conv2d_options_t conv = ConvOptions();
    const gcap_pool2d_options_t pool = PoolOptions();
    const gcap_batch_norm_options_t norm = NormOptions();
    GCAP_ASSERT_OK(gcap_matmul_create(&matmul, &matmul_));
    GCAP_ASSERT_OK(gcap_conv2d_create(&conv, &conv_));
    GCAP_ASSERT_OK(gcap_pool2d_create(&pool, &pool_));
    GCAP_ASSERT_OK(gcap_batch_norm_create(&norm, &norm_));
    in_ = std::make_unique<DeviceFloats>(RandomFloats(kCols * kDepth, 1));
    out_ = std::make_unique<DeviceFloats>(RandomFloats(kCols * kDepth, 2));
    workspace_ = std::make_unique<DeviceFloats>(std::vector<float>(kWorkspaceLimit / sizeof(float)));
  }
  void TearDown() override {
    gcap_sim_fail_nth(nullptr, 0, cudaSuccess);
    if (stream_ != nullptr) Synchronize();
    in_.reset();
    out_.reset();
    workspace_.reset();
    gcap_matmul_destroy(matmul_);
    gcap_conv2d_destroy(conv_);
    gcap_pool2d_destroy(pool_);
    gcap_batch_norm_destroy(norm_);
    OpsOnSim::TearDown();
  }

  gcap_status_t Matmul() {
    return gcap_matmul_run(matmul_, stream_, in_->get(), in_->get(), in_->get(), /*addend=*/nullptr, out_->get(),
                           workspace_->get());
  }
  gcap_status_t Conv() {
    return gcap_conv2d_run(conv_, stream_, in_->get(), in_->get(), in_->get(), out_->get(), workspace_->get());
  }
  gcap_status_t Pool() { return gcap_pool2d_run(pool_, stream_, in_->get(), out_->get()); }
  gcap_status_t Norm() {
    const float* in = in_->get();
    return gcap_batch_norm_run(norm_, stream_, in, in, in, in, in, out_->get());
  }

  gcap_matmul_t* matmul_ = nullptr;
  gcap_conv2d_t* conv_ = nullptr;
  gcap_pool2d_t* pool_ = nullptr;
  gcap_batch_norm_t* norm_ = nullptr;
  std::unique_ptr<DeviceFloats> in_, out_, workspace_;
};

TEST_F(RunsOnSim, RunsReportEachFailingCall) {
  const Names none;
  FailEachCall({"cudaGetDevice", "cublasLtMatmulDescSetAttribute", "cublasLtMatmul"}, none, [&] { return Matmul(); });
  FailEachCall({"cudaGetDevice", "cudnnConvolutionBiasActivationForward"}, none, [&] { return Conv(); });
  FailEachCall({"cudaGetDevice", "cudnnPoolingForward"}, none, [&] { return Pool(); });
  FailEachCall({"cudaGetDevice", "cudnnBatchNormalizationForwardInference"}, none, [&] { return Norm(); });
}

// The copies of a broadcast addend and the zeros that stand for operands without a depth.
TEST_F(RunsOnSim, AMatmulsCopiesReportEachFailingCall) {
  gcap_matmul_options_t options = MatmulOptions();
  options.k = 0;
  for (gcap_matmul_addend_t addend : {GCAP_MATMUL_ADDEND_ROW, GCAP_MATMUL_ADDEND_COLUMN}) {
    options.addend = addend;
    gcap_matmul_t* plan = nullptr;
    GCAP_ASSERT_OK(gcap_matmul_create(&options, &plan));
    const char* copy = addend == GCAP_MATMUL_ADDEND_ROW ? "cudaMemcpyAsync" : "cudaMemcpy2DAsync";
    FailEachCall({"cudaGetDevice", copy, "cudaMemsetAsync", "cublasLtMatmulDescSetAttribute", "cublasLtMatmul"}, {},
                 [&] {
                   return gcap_matmul_run(plan, stream_, nullptr, nullptr, in_->get(), in_->get(), out_->get(),
                                          workspace_->get());
                 });
    gcap_matmul_destroy(plan);
  }
}

// An input that is padded in the workspace, and a bias of zeros.
TEST_F(RunsOnSim, AConvolutionsCopiesReportEachFailingCall) {
  gcap_conv2d_options_t options = ConvOptions();
  options.pad_h_end = 2;
  options.relu = options.no_bias = true;
  gcap_conv2d_t* plan = nullptr;
  GCAP_ASSERT_OK(gcap_conv2d_create(&options, &plan));
  FailEachCall(
      {"cudaGetDevice", "cudaLaunchKernel", "cudaMemsetAsync", "cudnnConvolutionBiasActivationForward"}, {},
      [&] { return gcap_conv2d_run(plan, stream_, in_->get(), in_->get(), nullptr, out_->get(), workspace_->get()); });
  gcap_conv2d_destroy(plan);
  options.pad_h_end = -1;
  options.relu = false;
  GCAP_ASSERT_OK(gcap_conv2d_create(&options, &plan));
  FailEachCall({"cudaGetDevice", "cudnnConvolutionForward"}, {}, [&] {
    return gcap_conv2d_run(plan, stream_, in_->get(), in_->get(), nullptr, out_->get(), workspace_->get());
  });
  gcap_conv2d_destroy(plan);
}

TEST_F(RunsOnSim, RunsAllocateNothing) {
  const char* const kAllocators[] = {"cudaMalloc", "cudaMallocAsync", "cudaHostAlloc", "cudaMallocHost", "cudaFree"};
  std::vector<uint64_t> before;
  for (const char* name : kAllocators) before.push_back(gcap_sim_calls(name));
  const size_t live = gcap_sim_live(nullptr);
  GCAP_EXPECT_OK(Matmul());
  GCAP_EXPECT_OK(Conv());
  GCAP_EXPECT_OK(Pool());
  GCAP_EXPECT_OK(Norm());
  EXPECT_EQ(gcap_sim_live(nullptr), live);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(gcap_sim_calls(kAllocators[i]), before[i]) << kAllocators[i];
}

TEST_F(RunsOnSim, AFailedCallFailsTheCapture) {
  const struct {
    const char* function;
    std::function<gcap_status_t()> run;
  } kCases[] = {
      {"cublasLtMatmul", [&] { return Matmul(); }},
      {"cudnnConvolutionBiasActivationForward", [&] { return Conv(); }},
      {"cudnnPoolingForward", [&] { return Pool(); }},
      {"cudnnBatchNormalizationForwardInference", [&] { return Norm(); }},
  };
  for (const auto& [function, run] : kCases) {
    gcap_capture_t* capture = nullptr;
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
    gcap_sim_fail_nth(function, 1, cudaErrorUnknown);
    gcap_status_ignore(run());  // the caller forgets it; the latch does not
    GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, function);
    EXPECT_EQ(graph, nullptr);
    GCAP_EXPECT_OK(run());  // the stream is usable
  }
}

TEST_F(RunsOnSim, WorkspaceIsRequiredAndAlignedWhenThePlanNeedsIt) {
  ASSERT_GT(gcap_matmul_workspace_bytes(matmul_), 0u);
  ASSERT_GT(InfoOf(conv_).workspace_bytes, 0u);
  const float* in = in_->get();
  float* out = out_->get();
  const auto bad = GCAP_INVALID_ARGUMENT;
  GCAP_EXPECT_FAILS(gcap_matmul_run(matmul_, stream_, in, in, in, /*addend=*/nullptr, out, nullptr), bad,
                    "workspace is NULL");
  GCAP_EXPECT_FAILS(gcap_matmul_run(matmul_, stream_, in, in, in, /*addend=*/nullptr, out, workspace_->get() + 1), bad,
                    "256-byte aligned");
  GCAP_EXPECT_FAILS(gcap_conv2d_run(conv_, stream_, in, in, in, out, nullptr), bad, "workspace is NULL");
  GCAP_EXPECT_FAILS(gcap_conv2d_run(conv_, stream_, in, in, in, out, workspace_->get() + 1), bad, "256-byte aligned");
}

TEST_F(RunsOnSim, WithoutWorkspaceThePlanNeedsNone) {
  gcap_matmul_options_t options = MatmulOptions();
  options.max_workspace_bytes = 0;
  gcap_matmul_t* plan = nullptr;
  GCAP_ASSERT_OK(gcap_matmul_create(&options, &plan));
  EXPECT_EQ(gcap_matmul_workspace_bytes(plan), 0u);
  gcap_matmul_destroy(plan);
}

// The caller's device is 0, the stream's is 1.
TEST_F(RunsOnSim, RunsSetTheStreamsDeviceAndRestoreTheCallers) {
  GCAP_ASSERT_OK(gcap_stream_destroy(stream_));
  GCAP_ASSERT_OK(gcap_stream_create(1, &stream_));
  GCAP_ASSERT_OK(gcap_stream_cudnn_handle(stream_, &cudnn_));
  // The operands are memory of device 0.
  GCAP_EXPECT_CUDA(cudaSetDevice(1));
  GCAP_EXPECT_CUDA(cudaDeviceEnablePeerAccess(0, 0));
  GCAP_EXPECT_CUDA(cudaSetDevice(0));
  for (const auto& run : std::vector<std::function<gcap_status_t()>>{[&] { return Matmul(); }, [&] { return Conv(); },
                                                                     [&] { return Pool(); }, [&] { return Norm(); }}) {
    const uint64_t before = gcap_sim_calls("cudaSetDevice");
    GCAP_EXPECT_OK(run());
    EXPECT_EQ(gcap_sim_calls("cudaSetDevice"), before + 2);
    int device = -1;
    GCAP_EXPECT_CUDA(cudaGetDevice(&device));
    EXPECT_EQ(device, 0);
  }
}

TEST_F(OpsOnSim, MatmulWithoutAlgorithmIsUnimplemented) {
  const gcap_matmul_options_t options = MatmulOptions();
  gcap_matmul_t* plan = nullptr;
  gcap_sim_fail_nth("cublasLtMatmulAlgoGetHeuristic", 1, cudaErrorNotSupported);
  GCAP_EXPECT_FAILS(gcap_matmul_create(&options, &plan), GCAP_UNIMPLEMENTED, "k 512");
  EXPECT_EQ(plan, nullptr);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
