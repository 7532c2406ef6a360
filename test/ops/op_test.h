// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// op_test.h: what the tests of the ops share: a stream, device arrays, random data, and capture by the bare runtime.
#ifndef GCAP_TEST_OPS_OP_TEST_H_
#define GCAP_TEST_OPS_OP_TEST_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "test/support/device_floats.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

#define GCAP_EXPECT_CUDA(expr) EXPECT_EQ(expr, cudaSuccess) << #expr

// Uniform in [-1, 1), the same for the same seed.
inline std::vector<float> RandomFloats(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(generator);
  return values;
}

// Arrays that start `offset` floats into their allocation, where they are aligned as floats and no better.
inline std::vector<float> Behind(size_t offset, std::vector<float> values) {
  values.insert(values.begin(), offset, 0.0f);
  return values;
}
inline std::vector<float> Without(size_t offset, std::vector<float> values) {
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(offset));
  return values;
}

// A captured and instantiated graph.
class Graph {
 public:
  // Captures what `issue` puts on `stream`.
  Graph(gcap_stream_t* stream, const std::function<void()>& issue) : stream_(stream) {
    const cudaStream_t handle = gcap_stream_handle(stream);
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal));
    issue();
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(handle, &graph_));
    GCAP_EXPECT_CUDA(cudaGraphInstantiate(&exec_, graph_, 0));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    GCAP_EXPECT_CUDA(cudaGraphExecDestroy(exec_));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph_));
  }

  void Replay() {
    GCAP_EXPECT_CUDA(cudaGraphLaunch(exec_, gcap_stream_handle(stream_)));
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  }

  // How many nodes there are. Each must be a kernel: nothing that allocates or calls back.
  size_t CountKernels() const {
    size_t count = 0;
    GCAP_EXPECT_CUDA(cudaGraphGetNodes(graph_, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    GCAP_EXPECT_CUDA(cudaGraphGetNodes(graph_, nodes.data(), &count));
    for (cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type;
      GCAP_EXPECT_CUDA(cudaGraphNodeGetType(node, &type));
      EXPECT_EQ(type, cudaGraphNodeTypeKernel);
    }
    return count;
  }

 private:
  gcap_stream_t* stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

// Tests of ops: a stream on device 0.
class OpTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(gcap_stream_create(0, &stream_));
  }
  void TearDown() override {
    GCAP_EXPECT_OK(gcap_stream_destroy(stream_));
    DeviceTest::TearDown();
  }

  void Synchronize() { GCAP_ASSERT_OK(gcap_stream_synchronize(stream_)); }

  gcap_stream_t* stream_ = nullptr;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_OPS_OP_TEST_H_
