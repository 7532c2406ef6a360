// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a call of cuBLAS does to a capture: one row a call, one test for each mode and for the capturing and another
// thread. The answer, as capture_text.h has it, goes on with the kinds of the graph's nodes in their order (K a kernel,
// C a copy, S a memset, A an allocation, F a free, O another) and "r" with the codes of two launches, each awaited:
// 0A>0n3AKFr0,0. Answers stand in recorded.inc.
#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cublas_v2.h"
#include "gtest/gtest.h"
#include "test/conformance/libraries/answer.h"
#include "test/conformance/libraries/capture_text.h"
#include "test/conformance/libraries/numbers.h"

namespace conformance {
namespace {

using gcap_test::DeviceArray;

// Whether a handle has a workspace of the caller's.
enum class Workspace { kCallers, kLibrarys };

// Everything a row may call: each product has run once, so that a first use in the process and a later one do not
// differ.
class World {
 public:
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;

  explicit World(bool blocking) : workspace(kWorkspaceBytes) {
    EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&capturing, blocking ? cudaStreamDefault : cudaStreamNonBlocking));
    EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&eager, cudaStreamNonBlocking));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasCreate(&handle));
    Use(eager, Workspace::kLibrarys);
    for (const int k : {64, 2048}) {
      EXPECT_EQ(CUBLAS_STATUS_SUCCESS, Sgemm(k));
      EXPECT_EQ(CUBLAS_STATUS_SUCCESS, Dgemm(k));
      EXPECT_EQ(CUBLAS_STATUS_SUCCESS, HalfGemm(k));
    }
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, Batched());
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
  }
  ~World() {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
    for (const cublasHandle_t made : {handle, other_handle}) {
      if (made != nullptr) {
        EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasDestroy(made));
      }
    }
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(eager));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(capturing));
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // The handle on a stream. Setting a stream gives the library's own workspace back.
  cublasStatus_t Use(cudaStream_t stream, Workspace whose) {
    const cublasStatus_t status = cublasSetStream(handle, stream);
    if (whose == Workspace::kLibrarys || status != CUBLAS_STATUS_SUCCESS) return status;
    return cublasSetWorkspace(handle, workspace.get(), kWorkspaceBytes);
  }

  // Products of 64 x k and k x 64.
  cublasStatus_t Sgemm(int k, int m = 64) {
    auto* x = static_cast<float*>(in);
    return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, 64, k, static_cast<const float*>(alpha), x, 64, x,
                       std::max(k, 1), static_cast<const float*>(beta), static_cast<float*>(out), 64);
  }
  cublasStatus_t Dgemm(int k) {
    auto* x = static_cast<double*>(in);
    return cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, k, &alpha_f64, x, 64, x, k, &beta_f64,
                       static_cast<double*>(out), 64);
  }
  cublasStatus_t HalfGemm(int k) {
    return cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, k, alpha, inputs.get(), CUDA_R_16F, 64, inputs.get(),
                        CUDA_R_16F, k, beta, output.get(), CUDA_R_16F, 64, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  }
  cublasStatus_t Batched() {
    return cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, 64, alpha, inputs.get(), CUDA_R_32F, 64,
                                      4096, inputs.get(), CUDA_R_32F, 64, 4096, beta, output.get(), CUDA_R_32F, 64,
                                      4096, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  }

  cudaStream_t capturing = nullptr, eager = nullptr;
  cublasHandle_t handle = nullptr, other_handle = nullptr;  // the other is made by a row
  DeviceMemory workspace;
  DeviceArray<double> inputs{std::vector<double>(64 * 2048)}, output{std::vector<double>(2 * 64 * 64)};
  DeviceArray<float> scalars{{1.0f, 0.0f}};
  void *in = inputs.get(), *out = output.get();  // zeros
  const float alpha_f32 = 1.0f, beta_f32 = 0.0f;
  const double alpha_f64 = 1.0, beta_f64 = 0.0;
  const void *alpha = &alpha_f32, *beta = &beta_f32;
};

struct Row {
  const char* name;
  std::function<void(World*)> prepare;      // before the capture; may be empty
  std::function<std::string(World*)> call;  // in the capture
  bool blocking = false;                    // the capturing stream is a blocking one
};

std::vector<Row> HandleRows() {
  return {
      {"cublasCreate", nullptr, [](World* w) { return Text(cublasCreate(&w->other_handle)); }},
      {"cublasDestroy", [](World* w) { EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasCreate(&w->other_handle)); },
       [](World* w) {
         const cublasStatus_t status = cublasDestroy(w->other_handle);
         w->other_handle = nullptr;
         return Text(status);
       }},
      {"cublasDestroy_null", nullptr, [](World*) { return Text(cublasDestroy(nullptr)); }},
      {"cublasSetStream_capturing", nullptr, [](World* w) { return Text(cublasSetStream(w->handle, w->capturing)); }},
      {"cublasSetStream_away", [](World* w) { w->Use(w->capturing, Workspace::kCallers); },
       [](World* w) { return Text(cublasSetStream(w->handle, w->eager)); }},
      {"cublasSetStream_null", nullptr, [](World* w) { return Text(cublasSetStream(w->handle, nullptr)); }},
      {"cublasGetStream", nullptr,
       [](World* w) {
         cudaStream_t stream = nullptr;
         const std::string text = Text(cublasGetStream(w->handle, &stream));
         EXPECT_EQ(w->eager, stream);
         return text;
       }},
      {"cublasSetWorkspace", [](World* w) { w->Use(w->capturing, Workspace::kLibrarys); },
       [](World* w) { return Text(cublasSetWorkspace(w->handle, w->workspace.get(), World::kWorkspaceBytes)); }},
      {"cublasSetWorkspace_null", [](World* w) { w->Use(w->capturing, Workspace::kCallers); },
       [](World* w) { return Text(cublasSetWorkspace(w->handle, nullptr, 0)); }},
      {"cublasSetPointerMode", nullptr,
       [](World* w) { return Text(cublasSetPointerMode(w->handle, CUBLAS_POINTER_MODE_DEVICE)); }},
      {"cublasSetMathMode", nullptr,
       [](World* w) { return Text(cublasSetMathMode(w->handle, CUBLAS_TF32_TENSOR_OP_MATH)); }},
      {"cublasGetVersion", nullptr,
       [](World* w) {
         int version = 0;
         return Text(cublasGetVersion(w->handle, &version));
       }},
  };
}

void OnCapturing(World* w) { EXPECT_EQ(CUBLAS_STATUS_SUCCESS, w->Use(w->capturing, Workspace::kCallers)); }
void OnCapturingWithoutWorkspace(World* w) {
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, w->Use(w->capturing, Workspace::kLibrarys));
}

std::vector<Row> ProductRows() {
  const auto sgemm = [](World* w) { return Text(w->Sgemm(64)); };
  const auto sgemm_long = [](World* w) { return Text(w->Sgemm(2048)); };
  const auto dgemm = [](World* w) { return Text(w->Dgemm(64)); };
  const auto dgemm_long = [](World* w) { return Text(w->Dgemm(2048)); };
  const auto half = [](World* w) { return Text(w->HalfGemm(64)); };
  const auto half_long = [](World* w) { return Text(w->HalfGemm(2048)); };
  const auto batched = [](World* w) { return Text(w->Batched()); };
  return {
      {"sgemm_with_workspace", OnCapturing, sgemm},
      {"sgemm_without_workspace", OnCapturingWithoutWorkspace, sgemm},
      {"sgemm_long_with_workspace", OnCapturing, sgemm_long},
      {"sgemm_long_without_workspace", OnCapturingWithoutWorkspace, sgemm_long},
      {"sgemm_twice_without_workspace", OnCapturingWithoutWorkspace,
       [](World* w) { return Text(w->Sgemm(2048), w->Sgemm(2048)); }},
      {"dgemm_with_workspace", OnCapturing, dgemm},
      {"dgemm_without_workspace", OnCapturingWithoutWorkspace, dgemm},
      {"dgemm_long_with_workspace", OnCapturing, dgemm_long},
      {"dgemm_long_without_workspace", OnCapturingWithoutWorkspace, dgemm_long},
      {"half_with_workspace", OnCapturing, half},
      {"half_without_workspace", OnCapturingWithoutWorkspace, half},
      {"half_long_with_workspace", OnCapturing, half_long},
      {"half_long_without_workspace", OnCapturingWithoutWorkspace, half_long},
      {"batched_with_workspace", OnCapturing, batched},
      {"batched_without_workspace", OnCapturingWithoutWorkspace, batched},
  };
}

// Breaks the capture without a trace but that.
void Invalidate() {
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
  (void)cudaGetLastError();
}

// Where the handle's settings change in the capture, and where the product is not one of the capturing stream's.
std::vector<Row> SettingRows() {
  const auto set_then_sgemm = [](World* w, Workspace whose) {
    const cublasStatus_t set = w->Use(w->capturing, whose);
    return Text(set, w->Sgemm(64));
  };
  const auto sgemm_then_set = [](World* w, Workspace whose) {
    const cublasStatus_t multiplied = w->Sgemm(64);
    return Text(multiplied, w->Use(w->capturing, whose));
  };
  return {
      {"sgemm_stream_set_before", nullptr, [=](World* w) { return set_then_sgemm(w, Workspace::kLibrarys); }},
      {"sgemm_stream_and_workspace_set_before", nullptr,
       [=](World* w) { return set_then_sgemm(w, Workspace::kCallers); }},
      {"sgemm_stream_set_after", nullptr, [=](World* w) { return sgemm_then_set(w, Workspace::kLibrarys); }},
      {"sgemm_stream_and_workspace_set_after", nullptr,
       [=](World* w) { return sgemm_then_set(w, Workspace::kCallers); }},
      {"sgemm_scalars_in_device_memory", OnCapturing,
       [](World* w) {
         const cublasStatus_t mode = cublasSetPointerMode(w->handle, CUBLAS_POINTER_MODE_DEVICE);
         w->alpha = w->scalars.get(), w->beta = w->scalars.get() + 1;
         return Text(mode, w->Sgemm(64));
       }},
      {"sgemm_by_a_new_handle",
       [](World* w) {
         EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasCreate(&w->other_handle));
         std::swap(w->handle, w->other_handle);
         OnCapturing(w);
       },
       [](World* w) { return Text(w->Sgemm(64)); }},
      {"sgemm_eager", nullptr, [](World* w) { return Text(w->Sgemm(64)); }},
      {"sgemm_legacy", [](World* w) { w->Use(nullptr, Workspace::kCallers); },
       [](World* w) { return Text(w->Sgemm(64)); }, true},
      {"sgemm_wrong_argument", OnCapturing, [](World* w) { return Text(w->Sgemm(64, -1)); }},
      {"sgemm_no_rows", OnCapturing, [](World* w) { return Text(w->Sgemm(64, 0)); }},
      {"sgemm_no_depth", OnCapturing, [](World* w) { return Text(w->Sgemm(0)); }},
      {"sgemm_invalidated", OnCapturing,
       [](World* w) {
         Invalidate();
         return Text(w->Sgemm(64));
       }},
      {"sgemm_long_invalidated", OnCapturing,
       [](World* w) {
         Invalidate();
         return Text(w->Sgemm(2048));
       }},
      // What is left of the library in a capture that is invalid.
      {"invalidated", OnCapturing,
       [](World* w) {
         Invalidate();
         const cublasStatus_t created = cublasCreate(&w->other_handle);
         const cublasStatus_t set = cublasSetStream(w->handle, w->eager);
         return Text(created, set, w->Sgemm(64));
       }},
  };
}

const std::vector<Row>& Rows() {
  static const auto* rows = [] {
    auto* all = new std::vector<Row>(HandleRows());
    for (const auto& more : {ProductRows(), SettingRows()}) all->insert(all->end(), more.begin(), more.end());
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
    for (int i = 0; i < 6; ++i) cases.push_back({&row, i / 2, i % 2 != 0});
  }
  return cases;
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  static const char* const kModes[] = {"global", "threadlocal", "relaxed"};
  return std::string(info.param.row->name) + (info.param.other ? "_other_" : "_self_") + kModes[info.param.mode];
}

char KindOf(cudaGraphNode_t node) {
  cudaGraphNodeType type;
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetType(node, &type));
  switch (type) {
    case cudaGraphNodeTypeKernel: return 'K';
    case cudaGraphNodeTypeMemcpy: return 'C';
    case cudaGraphNodeTypeMemset: return 'S';
    case cudaGraphNodeTypeMemAlloc: return 'A';
    case cudaGraphNodeTypeMemFree: return 'F';
    default: return 'O';
  }
}

std::string Describe(cudaGraph_t graph, cudaStream_t stream) {
  size_t count = 0;
  EXPECT_EQ(cudaSuccess, cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) {
    EXPECT_EQ(cudaSuccess, cudaGraphGetNodes(graph, nodes.data(), &count));
  }
  std::string text;
  for (const cudaGraphNode_t node : nodes) text += KindOf(node);
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
  cudaError_t launches[2];
  for (cudaError_t& launch : launches) {
    launch = cudaGraphLaunch(exec, stream);
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream));
  }
  (void)cudaGetLastError();
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  return text + "r" + Text(launches[0], launches[1]);
}

class CublasCapture : public testing::TestWithParam<Case> {};

TEST_P(CublasCapture, IsAsRecorded) {
  const Case& c = GetParam();
  World world(c.row->blocking);
  if (c.row->prepare) c.row->prepare(&world);
  const std::string got = ObserveCapture(
      world.capturing, c.mode, c.other, [&] { return c.row->call(&world); },
      [&](cudaGraph_t graph) { return Describe(graph, world.capturing); });
  EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
  // The stream works again.
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(world.output.get(), 0, 64, world.capturing));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(world.capturing));
  CompareWithRecord(CaseName({c, 0}), got);
}

INSTANTIATE_TEST_SUITE_P(Rows, CublasCapture, testing::ValuesIn(Cases()), CaseName);

}  // namespace
}  // namespace conformance
