// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Mistakes made here, with the calls logged to this program itself: what no case of //test/conformance does.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "gcap_sim.h"
#include "test/base/device_work.h"
#include "test/doctor/sim_rules/logged.h"

namespace gcap {
namespace testing {
namespace {

class Mistakes : public ::testing::Test {
 protected:
  void SetUp() override {
    GCAP_EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    GCAP_EXPECT_CUDA(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking));
    GCAP_EXPECT_CUDA(cudaMalloc(&memory_, 64));
  }
  void TearDown() override {
    GCAP_EXPECT_CUDA(cudaFree(memory_));
    GCAP_EXPECT_CUDA(cudaStreamDestroy(other_));
    GCAP_EXPECT_CUDA(cudaStreamDestroy(stream_));
  }

  Logged Log(const std::function<void()>& work) {
    std::string log;
    gcap_sim_set_log(
        "*", [](void* user, const char* line) { *static_cast<std::string*>(user) += std::string(line) + "\n"; }, &log);
    work();
    gcap_sim_set_log(nullptr, nullptr, nullptr);
    return Logged(log + "gcap sim: the program ends\n");
  }

  void Begin() { GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal)); }
  void Fill(cudaStream_t stream) { GCAP_EXPECT_CUDA(cudaMemsetAsync(memory_, 1, 64, stream)); }
  void End() {
    cudaGraph_t graph = nullptr;
    (void)cudaStreamEndCapture(stream_, &graph);
    (void)cudaGetLastError();
    if (graph != nullptr) {
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    }
  }

  static void ExpectOne(const Logged& logged, gcap_doctor_finding_kind_t kind, const std::string& function,
                        const std::string& rule) {
    EXPECT_EQ(logged.recording().damage.lines, 0u);
    const gcap_doctor_finding_t* finding = logged.Find(kind, function);
    ASSERT_NE(finding, nullptr) << logged.Findings() << logged.log();
    ASSERT_NE(finding->rule, nullptr) << logged.Findings();
    EXPECT_EQ(finding->rule->id, rule);
    EXPECT_TRUE(finding->is_certain);
    EXPECT_EQ(logged.diagnosis().num_findings, 1u) << logged.Findings();
  }

  cudaStream_t stream_ = nullptr, other_ = nullptr;
  void* memory_ = nullptr;
};

// The simulator's report of a replay on memory that was freed is the finding of an audit, with the calls of the log.
TEST_F(Mistakes, GraphThatIsLaunchedOnFreedMemory) {
  void* freed = nullptr;
  std::string log;
  gcap_sim_set_action(GCAP_SIM_CHECK_BAKED_POINTER, GCAP_SIM_ACTION_RECORD);
  const auto append = [](void* user, const char* line) {
    *static_cast<std::string*>(user) += std::string(line) + "\n";
  };
  gcap_sim_set_log("*", append, &log);
  GCAP_EXPECT_CUDA(cudaMalloc(&freed, 4096));
  Begin();
  GCAP_EXPECT_CUDA(cudaMemsetAsync(freed, 1, 4096, stream_));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_, &graph));
  GCAP_EXPECT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  GCAP_EXPECT_CUDA(cudaGraphLaunch(exec, stream_));
  GCAP_EXPECT_CUDA(cudaStreamSynchronize(stream_));
  GCAP_EXPECT_CUDA(cudaFree(freed));
  GCAP_EXPECT_CUDA(cudaGraphLaunch(exec, stream_));
  (void)cudaStreamSynchronize(stream_);
  gcap_sim_set_log(nullptr, nullptr, nullptr);
  GCAP_EXPECT_CUDA(cudaGraphExecDestroy(exec));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_OFF);  // of the fixture's
  ASSERT_EQ(gcap_sim_check(), 1u);
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_DEFAULT);
  gcap_sim_set_action(GCAP_SIM_CHECK_BAKED_POINTER, GCAP_SIM_ACTION_DEFAULT);
  const Logged logged(log + gcap_sim_report(0) + "gcap sim: the program ends\n");
  const gcap_doctor_finding_t* finding = logged.Find(GCAP_DOCTOR_FINDING_STALE, "cudaGraphLaunch");
  ASSERT_NE(finding, nullptr) << logged.Findings() << gcap_sim_report(0);
  EXPECT_EQ(logged.diagnosis().num_findings, 1u) << logged.Findings();
  EXPECT_EQ(finding->capture, 0u);
  ASSERT_EQ(finding->num_places, 3u);
  const char* const functions[][2] = {
      {"allocated", "cudaMalloc"}, {"freed", "cudaFree"}, {"captured", "cudaMemsetAsync"}};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_STREQ(finding->places[i].what, functions[i][0]);
    EXPECT_EQ(logged.FunctionOf(finding->places[i].call), functions[i][1]);
  }
  EXPECT_NE(std::string(finding->sentence).find("4096 bytes of device memory"), std::string::npos) << finding->sentence;
}

// It answers success, and only the state of the capture tells.
TEST_F(Mistakes, LibrarysHandleDestroyedInACapture) {
  cublasLtHandle_t handle = nullptr;
  ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
  const Logged logged = Log([&] {
    Begin();
    Fill(stream_);
    EXPECT_EQ(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
    End();
  });
  ExpectOne(logged, GCAP_DOCTOR_FINDING_CULPRIT, "cublasLtDestroy", "R42");
}

TEST_F(Mistakes, LibrarysHandleMadeInACapture) {
  cublasHandle_t blas = nullptr;
  Logged logged = Log([&] {
    Begin();
    Fill(stream_);
    if (cublasCreate(&blas) != CUBLAS_STATUS_SUCCESS) blas = nullptr;
    End();
  });
  ExpectOne(logged, GCAP_DOCTOR_FINDING_CULPRIT, "cublasCreate", "R42");
  if (blas != nullptr) {
    EXPECT_EQ(cublasDestroy(blas), CUBLAS_STATUS_SUCCESS);
  }
  cudnnHandle_t dnn = nullptr;
  logged = Log([&] {
    Begin();
    Fill(stream_);
    if (cudnnCreate(&dnn) != CUDNN_STATUS_SUCCESS) dnn = nullptr;
    End();
  });
  ExpectOne(logged, GCAP_DOCTOR_FINDING_CULPRIT, "cudnnCreate", "R42");
  if (dnn != nullptr) {
    EXPECT_EQ(cudnnDestroy(dnn), CUDNN_STATUS_SUCCESS);
  }
}

TEST_F(Mistakes, CaptureLeftOpen) {
  const Logged logged = Log([&] {
    Begin();
    Fill(stream_);
  });
  End();
  ExpectOne(logged, GCAP_DOCTOR_FINDING_LEFT_OPEN, "cudaStreamBeginCapture", "R7");
}

TEST_F(Mistakes, ModeNotExchangedBack) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  const Logged logged = Log([&] { GCAP_EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode)); });
  GCAP_EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  ExpectOne(logged, GCAP_DOCTOR_FINDING_MODE_KEPT, "cudaThreadExchangeStreamCaptureMode", "R60");
}

TEST_F(Mistakes, WorkOnAnotherStream) {
  const Logged logged = Log([&] {
    Begin();
    Fill(stream_);
    Fill(other_);
    End();
  });
  ExpectOne(logged, GCAP_DOCTOR_FINDING_ESCAPED, "cudaMemsetAsync", "R64");
  EXPECT_EQ(logged.diagnosis().findings[0].severity, GCAP_DOCTOR_SEVERITY_ERROR);
}

TEST_F(Mistakes, NoneInAHealthyCapture) {
  const Logged logged = Log([&] {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    Begin();
    Fill(stream_);
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream_, &graph));
    GCAP_EXPECT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    GCAP_EXPECT_CUDA(cudaGraphLaunch(exec, stream_));
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(stream_));
    GCAP_EXPECT_CUDA(cudaGraphExecDestroy(exec));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  });
  EXPECT_EQ(logged.diagnosis().num_captures, 1u);
  EXPECT_EQ(logged.diagnosis().num_findings, 0u) << logged.Findings();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
