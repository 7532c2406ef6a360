// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Published defects of graphs that replay onto memory that is gone, or is somebody else's, as miniatures: what each
// program did, on an allocator like its own, and that the audit finds it before the launch. Each test names the thread
// that reports the defect, or repairs it.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/graph/audit_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class Published : public AuditTest {
 protected:
  // A manager that audits each replay, over memory of this allocator if there is one.
  void Audited(CachingAllocator* allocator = nullptr) { Create(GCAP_GRAPH_AUDIT_EACH_REPLAY, allocator); }

  // The replay is refused, by what the audit says: these texts.
  void ExpectFound(int id, const std::vector<std::string>& texts) {
    const uint64_t replays = Info(id).replays;
    const Outcome refused = Replay(id);
    EXPECT_EQ(refused.code, GCAP_FAILED_PRECONDITION) << "replayed onto memory that is not its own";
    EXPECT_EQ(Info(id).replays, replays);
    for (const std::string& text : texts) EXPECT_TRUE(refused.Names(text)) << text << " is not in: " << refused.message;
    EXPECT_GE(Findings(id), 1u);
  }
  static std::vector<unsigned char> BytesOf(const void* memory) {
    std::vector<unsigned char> bytes(kAuditBytes);
    GCAP_EXPECT_CUDA(cudaMemcpy(bytes.data(), memory, bytes.size(), cudaMemcpyDeviceToHost));
    return bytes;
  }
  void ExpectReplays(int id) {
    const Outcome outcome = Replay(id);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
  }
};

// A warm-up after the capture asks for a larger workspace, which replaces the one that the graphs have.
TEST_F(Published, Vllm55336WorkspaceReplacedAfterTheCapture) {
  Audited();
  const DeviceMemory input;
  auto workspace = std::make_unique<DeviceMemory>();
  Capture(0, [&](cudaStream_t stream) { return Relu(stream, input.get(), workspace->get()); });
  ExpectReplays(0);
  workspace.reset();
  workspace = std::make_unique<DeviceMemory>();
  workspace->Free();
  workspace->Alloc(64 * kAuditBytes);
  ExpectFound(0, {"argument 1"});
}

// Graphs are captured for one batch size after the other, and the workspace grows for a larger one: the earlier graphs
// keep the memory that went back to the allocator.
TEST_F(Published, Vllm44053WorkspaceGrowsInALaterCapture) {
  CachingAllocator allocator;
  Audited(&allocator);
  const DeviceMemory input;
  void* workspace = allocator.Alloc();
  Capture(1, [&](cudaStream_t stream) { return Relu(stream, input.get(), workspace); });
  void* larger = allocator.Alloc();
  allocator.Free(workspace);
  Capture(8, [&](cudaStream_t stream) { return Relu(stream, input.get(), larger); });
  ExpectFound(1, {"argument 1", "hand-out 1", "free"});
  ExpectReplays(8);
}

// A plan wants a few bytes more than the shared workspace has, which is resized: freed, and allocated elsewhere. The
// old place is some tensor's at once.
TEST_F(Published, FlashInfer4553WorkspaceResizedAndItsPlaceTaken) {
  CachingAllocator allocator;
  Audited(&allocator);
  void *input = allocator.Alloc(), *workspace = allocator.Alloc();
  Capture(0, [&](cudaStream_t stream) { return Relu(stream, input, workspace); });
  allocator.Free(workspace);
  ASSERT_EQ(allocator.Alloc(), workspace) << "a tensor";
  ExpectFound(0, {"argument 1", "hand-out 2", "hand-out 3"});
}

// The pinned buffer behind a captured copy goes back to its arena after the capture, and a run of another shape takes
// it.
TEST_F(Published, OnnxRuntime32121PinnedStagingBufferRecycled) {
  CachingAllocator pinned(DeviceMemory::kPinned);
  Audited(&pinned);
  const DeviceMemory pointers;
  void* staging = pinned.Alloc();
  Capture(0, [&](cudaStream_t stream) { return Copy(stream, pointers.get(), staging); });
  pinned.Free(staging);
  ASSERT_EQ(pinned.Alloc(), staging) << "a prefill";
  ExpectFound(0, {"the source", "hand-out 1", "hand-out 2"});
}

// A captured copy reads pageable memory, which is a temporary's: the capture itself is refused, and its work runs.
TEST_F(Published, PyTorch172156PageableMemoryBehindACapturedCopy) {
  Audited();
  const DeviceMemory output;
  auto temporary = std::make_unique<std::vector<char>>(kAuditBytes);
  const Outcome failed =
      CaptureFails(0, [&](cudaStream_t stream) { return Copy(stream, output.get(), temporary->data()); });
  EXPECT_TRUE(failed.Names("the source")) << failed.message;
  EXPECT_TRUE(failed.Names("use pinned memory, or retain it")) << failed.message;
}

// The same with a variable of the function that issues the copy.
TEST_F(Published, Paddle78568HostLocalVariableBehindACapturedCopy) {
  Audited();
  const DeviceMemory output;
  const Outcome failed = CaptureFails(0, [&](cudaStream_t stream) {
    float local[kAuditFloats] = {};
    return Copy(stream, output.get(), local);
  });
  EXPECT_TRUE(failed.Names("the source")) << failed.message;
}

// States are in two buffers that change places at each step, and one graph is replayed for both: all memory is alive,
// but the run means the other.
TEST_F(Published, OnnxRuntimeGenai2446BuffersThatAlternate) {
  Audited();
  const DeviceMemory past, present;
  const int64_t shape[] = {kAuditFloats};
  const Bindings even = {{"past", past.get(), 1, shape}, {"present", present.get(), 1, shape}};
  const Bindings odd = {{"past", present.get(), 1, shape}, {"present", past.get(), 1, shape}};
  Capture(
      0, [&](cudaStream_t stream) { return Relu(stream, past.get(), present.get()); }, even);
  gcap_run_t run = RunOf(0, GCAP_RUN_OWN_STREAM);
  run.num_bindings = 2;
  run.bindings = even.data();
  EXPECT_TRUE(ReplayAs(run).ok());
  run.bindings = odd.data();
  const Outcome refused = ReplayAs(run);
  EXPECT_EQ(refused.code, GCAP_FAILED_PRECONDITION);
  EXPECT_TRUE(refused.Names("past")) << refused.message;
}

// Graphs that were captured on one stream share its library workspace, and the end of one of them frees it.
TEST_F(Published, PyTorch193402WorkspaceFreedWithAnotherGraph) {
  Audited();
  const DeviceMemory input;
  auto workspace = std::make_unique<DeviceMemory>();
  Capture(0, [&](cudaStream_t stream) { return Relu(stream, input.get(), workspace->get()); });
  const auto clear = [](void* user) { static_cast<std::unique_ptr<DeviceMemory>*>(user)->reset(); };
  Capture(1, [&](cudaStream_t stream) {
    GCAP_RETURN_IF_ERROR(gcap_capture_retain(gcap_capture_current(), clear, /*bytes=*/nullptr, &workspace));
    return Relu(stream, input.get(), workspace->get());
  });
  ExpectReplays(0);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 1));
  ExpectFound(0, {"argument 1", "no memory that the driver knows"});
}

// The workspace belongs to the thread that captures, and ends with it.
TEST_F(Published, PyTorch192061WorkspaceOfAThreadThatHasExited) {
  Audited();
  const DeviceMemory input;
  std::thread([&] {
    const DeviceMemory workspace;
    Capture(0, [&](cudaStream_t stream) { return Relu(stream, input.get(), workspace.get()); });
  }).join();
  ExpectFound(0, {"argument 1"});
}

// Each call of an operator allocates its workspace and frees it on return, also in a capture.
TEST_F(Published, TensorRtLlm15534WorkspaceOfOneCall) {
  CachingAllocator allocator;
  Audited(&allocator);
  const DeviceMemory input;
  const Outcome failed = CaptureFails(0, [&](cudaStream_t stream) {
    void* workspace = allocator.Alloc();
    gcap_status_t status = Relu(stream, input.get(), workspace);
    allocator.Free(workspace);
    return status;
  });
  EXPECT_TRUE(failed.Names("argument 1")) << failed.message;
  EXPECT_TRUE(failed.Names("free")) << failed.message;
}

// A pool that is short of memory gives its buffers back to the driver, and the graphs have them.
TEST_F(Published, LlamaCpp26771PoolFlushed) {
  CachingAllocator pool;
  Audited(&pool);
  void *input = pool.Alloc(), *output = pool.Alloc();
  Capture(0, [&](cudaStream_t stream) { return Relu(stream, input, output); });
  ExpectReplays(0);
  pool.Flush();
  ExpectFound(0, {"2 of the graph's 2 pointers", "argument 0", "no memory that the driver knows"});
}

// Small tensors with the layout of block tables are made anew at a wake-up: of the same sizes, perhaps at the same
// places, but others.
TEST_F(Published, Vllm53197TensorsMadeAnewAtAWakeUp) {
  Audited();
  const DeviceMemory output;
  DeviceMemory layout;
  Capture(0, [&](cudaStream_t stream) { return Relu(stream, layout.get(), output.get()); });
  const DeviceMemory kept;
  layout.Free();
  layout.Alloc();
  ExpectFound(0, {"argument 0", "buffer id"});
}

// What a capture used for a while and freed is handed out again, to the backup that a step is rolled back to: each
// replay overwrites the backup. The oracle is the step without graphs: a state that is rolled back is what it was.
TEST_F(Published, CubeCl1612BackupInThePlaceOfAFreedIntermediate) {
  CachingAllocator pool;
  Audited(&pool);
  struct Step {
    CachingAllocator* pool;
    void *state, *intermediate;
  } step = {&pool, pool.Alloc(), nullptr};
  const auto issue = [](void* user, cudaStream_t stream) {
    Step* const s = static_cast<Step*>(user);
    s->intermediate = s->pool->Alloc();
    gcap_status_t status = GCAP_CUDA(cudaMemsetAsync(s->intermediate, 0xee, kAuditBytes, stream));
    if (status == nullptr) status = Copy(stream, s->state, s->intermediate);
    s->pool->Free(s->intermediate);
    return status;
  };
  void* backup = nullptr;
  const LogCatcher log;
  for (int token = 0; token < 6; ++token) {
    GCAP_EXPECT_CUDA(cudaMemset(step.state, token, kAuditBytes));
    if (token > 0) {
      GCAP_EXPECT_CUDA(cudaMemcpy(backup, step.state, kAuditBytes, cudaMemcpyDeviceToDevice));
    }
    GCAP_EXPECT_CUDA(cudaDeviceSynchronize());
    const Outcome run(RunPlain(manager_, 0, stream_->get(), issue, &step, /*synchronize=*/true));
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(BytesOf(step.state), std::vector<unsigned char>(kAuditBytes, 0xee)) << "the step";
    if (token == 0) {
      backup = pool.Alloc();
      ASSERT_EQ(backup, step.intermediate) << "the backup is where the capture had its intermediate";
      continue;
    }
    GCAP_EXPECT_CUDA(cudaMemcpy(step.state, backup, kAuditBytes, cudaMemcpyDeviceToDevice));
    EXPECT_EQ(BytesOf(step.state), std::vector<unsigned char>(kAuditBytes, static_cast<unsigned char>(token)));
  }
  const Outcome why(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_CAPTURE_FAILED));
  EXPECT_TRUE(why.Names("application's allocator") && why.Names(", free")) << why.message;
}

// A buffer of stream-ordered memory is allocated for each step, and the graph has that of its capture.
TEST_F(Published, Imp1648StreamOrderedMemoryOfOneStep) {
  Audited();
  const DeviceMemory output;
  void* step = nullptr;
  GCAP_EXPECT_CUDA(cudaMallocAsync(&step, kAuditBytes, stream_->get()));
  GCAP_EXPECT_CUDA(cudaMemsetAsync(step, 0, kAuditBytes, stream_->get()));
  Capture(0, [&](cudaStream_t stream) { return Relu(stream, step, output.get()); });
  ExpectReplays(0);
  GCAP_EXPECT_CUDA(cudaFreeAsync(step, stream_->get()));
  void* next = nullptr;
  GCAP_EXPECT_CUDA(cudaMallocAsync(&next, kAuditBytes, stream_->get()));
  EXPECT_EQ(next, step) << "the pool gives the same place";
  ExpectFound(0, {"argument 0", "buffer id"});
  GCAP_EXPECT_CUDA(cudaFreeAsync(next, stream_->get()));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
