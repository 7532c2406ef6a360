// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The functions that PyTorch's pluggable allocator calls (examples/pytorch_extension), called as PyTorch does: tensors
// that come and go, memory used on a second stream, and captures that were begun without gcap.

#include "examples/pytorch_extension/scratch_allocator.h"

#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

#include "gcap/gcap.hpp"
#include "gtest/gtest.h"
#include "test/support/device_test.h"

namespace gcap {
namespace testing {
namespace {

constexpr ssize_t kBytes = 1 << 16;
cudaStream_t current;

class TorchAllocator : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (cudaStream_t* stream : {&a_, &b_}) {
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
    }
    current = a_;
    gcap_torch_set_current_stream([](int) { return current; });
  }
  // The streams stay, as PyTorch's do: the allocator has wrapped them.
  void* Alloc(cudaStream_t stream) { return gcap_torch_alloc(kBytes, 0, stream); }
  void Free(void* ptr, cudaStream_t stream) { gcap_torch_free(ptr, kBytes, 0, stream); }
  void Fill(void* ptr, int value, cudaStream_t stream) {
    EXPECT_EQ(cudaMemsetAsync(ptr, value, kBytes, stream), cudaSuccess);
  }
  int Byte(const void* ptr, cudaStream_t stream) {
    unsigned char byte = 0;
    EXPECT_EQ(cudaMemcpyAsync(&byte, ptr, 1, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    return byte;
  }
  GcapTorchStats Stats() {
    GcapTorchStats stats;
    gcap_torch_get_stats(0, &stats);
    return stats;
  }
  // As torch.cuda.graph: warm-up on the stream, then the capture of two fills by way of a temporary.
  // `also` is called in the capture.
  cudaGraphExec_t Capture(
      GcapTorchPool pool, int value, void** out_output, const std::function<void()>& also = [] {}) {
    const auto work = [&] {
      void* const temporary = Alloc(a_);
      *out_output = Alloc(a_);
      Fill(temporary, value, a_);
      EXPECT_EQ(cudaMemcpyAsync(*out_output, temporary, kBytes, cudaMemcpyDeviceToDevice, a_), cudaSuccess);
      Free(temporary, a_);
    };
    work();
    Free(*out_output, a_);
    gcap_torch_begin_pool(0, pool, [](cudaStream_t) { return true; });
    EXPECT_EQ(cudaStreamBeginCapture(a_, cudaStreamCaptureModeGlobal), cudaSuccess);
    work();
    also();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaSuccess);
    gcap_torch_end_pool(0, pool);
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return exec;
  }
  void Release(cudaGraphExec_t exec, GcapTorchPool pool) {
    EXPECT_EQ(cudaStreamSynchronize(a_), cudaSuccess);
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    gcap_torch_release_pool(0, pool);
  }
  // A tensor of the first stream, which the second one uses last, and PyTorch has said so.
  void* AllocUsedByB() {
    void* const ptr = Alloc(a_);
    Fill(ptr, 1, a_);
    EXPECT_EQ(cudaStreamSynchronize(a_), cudaSuccess);
    Fill(ptr, 2, b_);
    gcap_torch_record_stream(ptr, b_);
    return ptr;
  }
  // Tensors over all that is free, full of something else.
  void ExpectUndisturbedBy(cudaGraphExec_t exec, const void* output, int value) {
    std::vector<void*> rubbish;
    for (int i = 0; i < 32; ++i) {
      rubbish.push_back(Alloc(a_));
      Fill(rubbish.back(), 0x7f, a_);
    }
    EXPECT_EQ(cudaGraphLaunch(exec, a_), cudaSuccess);
    EXPECT_EQ(Byte(output, a_), value);
    for (void* ptr : rubbish) {
      EXPECT_EQ(Byte(ptr, a_), 0x7f);
      Free(ptr, a_);
    }
  }

  cudaStream_t a_ = nullptr, b_ = nullptr;
};

TEST_F(TorchAllocator, DescribesWhatLives) {
  void* const tensor = Alloc(a_);
  std::string text(static_cast<size_t>(gcap_torch_describe(0, nullptr, 0)) + 1, '\0');
  EXPECT_EQ(gcap_torch_describe(0, &text[0], text.size()), static_cast<int>(text.size() - 1));
  char address[32];
  snprintf(address, sizeof(address), "%p", tensor);
  EXPECT_NE(text.find(address), std::string::npos) << text;
  Free(tensor, a_);
}

TEST_F(TorchAllocator, GivesAStreamItsMemoryAgain) {
  void* const first = Alloc(a_);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 256, 0u);
  Free(first, a_);
  void* const again = Alloc(a_);
  EXPECT_EQ(again, first);
  void* const other = Alloc(b_);
  EXPECT_NE(other, first);
  Free(again, a_);
  Free(other, b_);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

TEST_F(TorchAllocator, ServesTheDefaultStream) {
  void* const ptr = Alloc(nullptr);
  Fill(ptr, 1, nullptr);
  EXPECT_EQ(Byte(ptr, nullptr), 1);
  Free(ptr, nullptr);
}

// On the simulator a free that did not wait would be a race.
TEST_F(TorchAllocator, WaitsForAStreamThatWasRecorded) {
  void* const ptr = AllocUsedByB();
  Free(ptr, a_);
  void* const again = Alloc(a_);
  EXPECT_EQ(again, ptr);
  Fill(again, 3, a_);
  EXPECT_EQ(Byte(again, a_), 3);
  Free(again, a_);
}

// A capture cannot wait for the recorded stream, which is not in it; the capture ends well, and the block goes after
// it.
TEST_F(TorchAllocator, FreesInACaptureWhatAnotherStreamUsesWhenThePoolEnds) {
  void* const ptr = AllocUsedByB();
  void* output = nullptr;
  const GcapTorchPool pool(0, 4);
  const cudaGraphExec_t exec = Capture(pool, 5, &output, [&] { Free(ptr, a_); });
  ASSERT_NE(exec, nullptr);
  EXPECT_EQ(Stats().in_use_bytes, uint64_t{kBytes}) << "the output alone";
  ExpectUndisturbedBy(exec, output, 5);
  Free(output, a_);
  Release(exec, pool);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

TEST_F(TorchAllocator, KeepsWhatACaptureAllocated) {
  void* output = nullptr;
  const GcapTorchPool pool(0, 1);
  const cudaGraphExec_t exec = Capture(pool, 5, &output);
  ExpectUndisturbedBy(exec, output, 5);
  Free(output, a_);  // the tensor is gone, the graph is not
  ExpectUndisturbedBy(exec, output, 5);
  Release(exec, pool);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

TEST_F(TorchAllocator, LetsATensorOutliveItsGraph) {
  void* output = nullptr;
  const GcapTorchPool pool(0, 3);
  const cudaGraphExec_t exec = Capture(pool, 5, &output);
  ExpectUndisturbedBy(exec, output, 5);
  Release(exec, pool);
  EXPECT_EQ(Stats().in_use_bytes, uint64_t{kBytes});
  EXPECT_EQ(Byte(output, a_), 5);
  Free(output, a_);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

TEST_F(TorchAllocator, SharesAPoolAmongGraphs) {
  void *first = nullptr, *second = nullptr;
  const GcapTorchPool pool(0, 2);
  const cudaGraphExec_t a = Capture(pool, 5, &first);
  const cudaGraphExec_t b = Capture(pool, 6, &second);
  EXPECT_NE(first, second);  // it is live
  ExpectUndisturbedBy(a, first, 5);
  ExpectUndisturbedBy(b, second, 6);
  Free(first, a_);
  Release(a, pool);
  ExpectUndisturbedBy(b, second, 6);
  Free(second, a_);
  Release(b, pool);
  gcap_torch_release_pool(0, pool);  // of a capture that never began
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

TEST_F(TorchAllocator, ThrowsWhenThereIsNoMemory) {
  try {
    (void)gcap_torch_alloc(ssize_t{1} << 46, 0, a_);
    FAIL() << "64 TiB were allocated";
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.failure().code(), GCAP_RESOURCE_EXHAUSTED) << thrown.what();
  }
  gcap_torch_trim(0);
  EXPECT_EQ(Stats().held_bytes, 0u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
