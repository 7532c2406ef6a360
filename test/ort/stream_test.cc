// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Streams, memory and devices that the application brings or chooses.

#include <cstdio>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"
#include "gtest/gtest.h"
#include "test/ort/onnx_model.h"
#include "test/ort/runtime.h"

namespace gcap {
namespace testing {
namespace {

std::string Sums() {
  return OnnxModel()
      .Node("Add", "inner", {"a", "b"}, {"s"})
      .Node("Relu", "relu", {"s"}, {"r"})
      .Node("Add", "outer", {"r", "b"}, {"c"})
      .Input("a", {4})
      .Input("b", {4})
      .Output("c", {4})
      .Bytes();
}

std::string Pointer(const void* pointer) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", pointer);
  return text;
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The application's memory, which is the simulator's of the plugin.
struct Memory {
  cudaError_t (*malloc)(void** ptr, size_t bytes) = nullptr;
  cudaError_t (*free)(void* ptr) = nullptr;
  int allocs = 0;
  int frees = 0;
} memory;

void* Alloc(size_t bytes) {
  ++memory.allocs;
  void* ptr = nullptr;
  return memory.malloc(&ptr, bytes) == cudaSuccess ? ptr : nullptr;
}
void Free(void* ptr) {
  ++memory.frees;
  memory.free(ptr);
}

class StreamTest : public OrtTest {
 protected:
  void SetUp() override {
    OrtTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto create = Find<cudaError_t (*)(cudaStream_t*, unsigned)>("cudaStreamCreateWithFlags");
    ASSERT_EQ(create(&stream_, cudaStreamNonBlocking), cudaSuccess);
    memory = Memory();
    memory.malloc = Find<cudaError_t (*)(void**, size_t)>("cudaMalloc");
    memory.free = Find<cudaError_t (*)(void*)>("cudaFree");
  }
  void TearDown() override {
    if (stream_ != nullptr) {
      EXPECT_EQ(Find<cudaError_t (*)(cudaStream_t)>("cudaStreamDestroy")(stream_), cudaSuccess);
    }
    OrtTest::TearDown();
  }
  Options WithStream(const std::string& graphs) {
    return {{"enable_cuda_graph", graphs}, {"has_user_compute_stream", "1"}, {"user_compute_stream", Pointer(stream_)}};
  }
  void Wait() { EXPECT_EQ(Find<cudaError_t (*)(cudaStream_t)>("cudaStreamSynchronize")(stream_), cudaSuccess); }

  cudaStream_t stream_ = nullptr;
};

// Device tensors of the model, bound.
struct Bound {
  Bound(OrtTest*, const Ort* ort, gcap_ort_env_t* env, const gcap_ort_ep_device_t* device, OrtSession* session)
      : a(ort, env, device, {4}, {1, 1, 1, 1}), b(ort, env, device, {4}, {1, 2, 3, 4}), c(ort, env, device, {4}, {}) {
    session->BindInput("a", a);
    session->BindInput("b", b);
    session->BindOutput("c", c);
  }
  DeviceTensor a, b, c;
};

TEST_F(StreamTest, CaptureAndReplayOnTheApplicationsStream) {
  OrtSession session(ort_, env(), device(), Sums(), WithStream("1"));
  ASSERT_EQ(session.error(), "");
  Bound bound(this, ort_, env(), device(), &session);
  for (const std::string id : {"1", "2", "1", "2", "1", "2", "1", "2"}) {
    EXPECT_EQ(session.Run({{"gpu_graph_id", id}, {"disable_synchronize_execution_providers", "1"}}), "");
  }
  Wait();
  EXPECT_EQ(bound.c.Get(), (Floats{3, 5, 7, 9}));
  EXPECT_EQ(plugin().captured_computes, 6) << "one capture for each id";
  bound.a.Set({2, 2, 2, 2});
  EXPECT_EQ(session.Run({{"gpu_graph_id", "1"}, {"disable_synchronize_execution_providers", "1"}}), "");
  Wait();
  EXPECT_EQ(bound.c.Get(), (Floats{4, 6, 8, 10}));
}

TEST_F(StreamTest, DefaultStreamRunsWithoutGraphs) {
  OrtSession session(ort_, env(), device(), Sums(), {{"has_user_compute_stream", "1"}, {"user_compute_stream", "0"}});
  ASSERT_EQ(session.error(), "");
  Bound bound(this, ort_, env(), device(), &session);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(bound.c.Get(), (Floats{3, 5, 7, 9}));
  OrtSession refused(ort_, env(), device(), Sums(),
                     {{"enable_cuda_graph", "1"}, {"has_user_compute_stream", "1"}, {"user_compute_stream", "0"}});
  EXPECT_TRUE(Has(refused.error(), "enable_cuda_graph")) << refused.error();
}

TEST_F(StreamTest, RunInsideTheApplicationsOwnCaptureIsRefused) {
  OrtSession session(ort_, env(), device(), Sums(), WithStream("1"));
  ASSERT_EQ(session.error(), "");
  Bound bound(this, ort_, env(), device(), &session);
  EXPECT_EQ(session.Run({{"gpu_graph_id", "-1"}}), "");
  const auto begin = Find<cudaError_t (*)(cudaStream_t, cudaStreamCaptureMode)>("cudaStreamBeginCapture");
  const auto end = Find<cudaError_t (*)(cudaStream_t, cudaGraph_t*)>("cudaStreamEndCapture");
  const auto destroy = Find<cudaError_t (*)(cudaGraph_t)>("cudaGraphDestroy");
  ASSERT_EQ(begin(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  const std::string error = session.Run();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(end(stream_, &graph), cudaSuccess) << "the application's capture is as it was";
  EXPECT_TRUE(graph == nullptr || destroy(graph) == cudaSuccess);
  EXPECT_TRUE(Has(error, "captur")) << error;
  bound.a.Set({2, 2, 2, 2});
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(bound.c.Get(), (Floats{4, 6, 8, 10}));
}

TEST_F(StreamTest, RunOnAStreamOfTheRuntimes) {
  OrtSession session(ort_, env(), device(), Sums(), {});
  ASSERT_EQ(session.error(), "");
  Bound bound(this, ort_, env(), device(), &session);
  gcap_ort_sync_stream_t* stream = nullptr;
  Ok(api().CreateSyncStreamForEpDevice(device(), nullptr, &stream));
  EXPECT_EQ(session.Run({}, stream), "");
  EXPECT_EQ(bound.c.Get(), (Floats{3, 5, 7, 9}));
  api().ReleaseSyncStream(stream);
}

TEST_F(StreamTest, ExternalAllocatorIsOfItsSession) {
  {
    OrtSession session(ort_, env(), device(), Sums(),
                       {{"gpu_external_alloc", Pointer(reinterpret_cast<void*>(Alloc))},
                        {"gpu_external_free", Pointer(reinterpret_cast<void*>(Free))},
                        {"enable_cuda_graph", "1"}});
    ASSERT_EQ(session.error(), "");
    Bound bound(this, ort_, env(), device(), &session);
    EXPECT_EQ(session.Run(), "");
    EXPECT_EQ(session.Run(), "");
    EXPECT_EQ(bound.c.Get(), (Floats{3, 5, 7, 9}));
    EXPECT_GT(memory.allocs, 0);
  }
  EXPECT_EQ(memory.allocs, memory.frees);
  const int before = memory.allocs;
  OrtSession other(ort_, env(), device(), Sums(), {});
  ASSERT_EQ(other.error(), "");
  Bound bound(this, ort_, env(), device(), &other);
  EXPECT_EQ(other.Run(), "");
  EXPECT_EQ(memory.allocs, before);
}

TEST_F(StreamTest, SecondDevice) {
  ASSERT_EQ(num_devices(), 2u);
  OrtSession session(ort_, env(), device(1), Sums(), {{"enable_cuda_graph", "1"}});
  ASSERT_EQ(session.error(), "");
  Bound bound(this, ort_, env(), device(1), &session);
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(bound.c.Get(), (Floats{3, 5, 7, 9}));
  bound.a.Set({2, 2, 2, 2});
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(bound.c.Get(), (Floats{4, 6, 8, 10}));
}

TEST_F(StreamTest, MempoolBelowTheArena) {
  OrtSession session(ort_, env(), device(), Sums(), {{"enable_cuda_graph", "1"}, {"arena.use_cuda_mempool", "1"}});
  ASSERT_EQ(session.error(), "");
  Bound bound(this, ort_, env(), device(), &session);
  EXPECT_EQ(session.Run(), "");
  bound.a.Set({2, 2, 2, 2});
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(bound.c.Get(), (Floats{4, 6, 8, 10}));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
