// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// diff_rig.h: graphs that are captured to be told apart, and what gcap_graph_diff tells, as texts.
#ifndef GCAP_TEST_CONTENTS_DIFF_RIG_H_
#define GCAP_TEST_CONTENTS_DIFF_RIG_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gcap/graph_contents.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/kernels/device_kernels.h"
#include "test/support/kernels/moving_kernels.h"

namespace gcap {
namespace testing {

inline const void* const kAdd = reinterpret_cast<const void*>(gcap_kernel_add_scalar);
inline const void* const kRelu = reinterpret_cast<const void*>(gcap_kernel_relu_f32);
inline const void* const kCluster = reinterpret_cast<const void*>(gcap_kernel_cluster_size);
constexpr size_t kDiffBytes = 256;

// A graph that was captured.
class Graph {
 public:
  explicit Graph(const std::function<void(cudaStream_t)>& work) {
    const RawStream stream;
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    work(stream.get());
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream.get(), &graph_));
  }
  Graph() { GCAP_EXPECT_CUDA(cudaGraphCreate(&graph_, 0)); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { GCAP_EXPECT_CUDA(cudaGraphDestroy(graph_)); }
  cudaGraph_t get() const { return graph_; }

 private:
  cudaGraph_t graph_ = nullptr;
};

struct Launch {
  const void* kernel = kAdd;
  dim3 grid = dim3(1), block = dim3(32);
  size_t shared_bytes = 0;
  std::vector<cudaLaunchAttribute> attributes;
};

class Diff : public DeviceTest {
 protected:
  using Work = std::function<void(cudaStream_t)>;
  using Texts = std::vector<std::string>;

  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (float*& memory : memory_) GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), kDiffBytes));
  }
  void TearDown() override {
    for (float* memory : memory_) GCAP_EXPECT_CUDA(cudaFree(memory));
    DeviceTest::TearDown();
  }

  // "node 0 of 1, kernel x: grid: 1x1x1 -> 2x1x1" for each difference.
  static Texts TextsOf(const Graph& before, const Graph& after) {
    Texts texts;
    size_t count = 77;
    const auto add = [](void* user, const gcap_graph_difference_t* d) {
      EXPECT_EQ(d->struct_size, sizeof(*d));
      const std::string where = d->node_text;
      if (where != "the graph") {
        EXPECT_EQ(where.rfind("node " + std::to_string(d->node) + " of ", 0), 0u) << where;
      }
      static_cast<Texts*>(user)->push_back(where + ": " + d->field + ": " + d->before + " -> " + d->after);
    };
    GCAP_EXPECT_OK(gcap_graph_diff(before.get(), after.get(), add, &texts, &count));
    EXPECT_EQ(count, texts.size());
    size_t silent = 77;
    GCAP_EXPECT_OK(gcap_graph_diff(before.get(), after.get(), nullptr, nullptr, &silent));
    EXPECT_EQ(silent, count);
    return texts;
  }
  static Texts TextsOf(const Work& before, const Work& after) { return TextsOf(Graph(before), Graph(after)); }

  // Expects one difference, whose text ends like this.
  static void ExpectOne(const Work& before, const Work& after, const std::string& end) {
    const Texts texts = TextsOf(before, after);
    ASSERT_EQ(texts.size(), 1u) << ::testing::PrintToString(texts);
    EXPECT_TRUE(texts[0].size() >= end.size() && texts[0].compare(texts[0].size() - end.size(), end.size(), end) == 0)
        << texts[0];
  }

  template <typename... Args>
  static void LaunchWith(cudaStream_t stream, const Launch& launch, Args... args) {
    void* pointers[] = {&args...};
    cudaLaunchConfig_t config = {};
    config.gridDim = launch.grid;
    config.blockDim = launch.block;
    config.dynamicSmemBytes = launch.shared_bytes;
    config.stream = stream;
    std::vector<cudaLaunchAttribute> attributes = launch.attributes;
    config.attrs = attributes.data();
    config.numAttrs = static_cast<unsigned>(attributes.size());
    GCAP_EXPECT_CUDA(cudaLaunchKernelExC(&config, launch.kernel, pointers));
  }
  Work Add(const Launch& launch = {}, uint64_t addend = 1) const {
    return [=](cudaStream_t stream) { LaunchWith(stream, launch, memory_[0], memory_[1], addend, uint32_t{8}); };
  }

  float* memory_[3] = {};
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_CONTENTS_DIFF_RIG_H_
