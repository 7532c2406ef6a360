// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Audits: whose memory a captured graph works on, and whether it still is.

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gcap/allocator.h"
#include "gcap/graph.h"
#include "gcap/graph_buffers.h"
#include "gcap/graph_guards.h"
#include "gcap/scratch.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "test/graph/audit_test.h"

namespace gcap {
namespace testing {
namespace {

using GraphAudit = AuditTest;

// --- Owners ---------------------------------------------------------------------------------------------------------

TEST_F(GraphAudit, NamesTheOwnerOfEachPointer) {
  Create(GCAP_GRAPH_AUDIT_EACH_REPLAY);
  const DeviceMemory input, output;
  Capture(0, [&](cudaStream_t stream) { return Relu(stream, input.get(), output.get()); });
  const std::vector<Pointer> pointers = Audit(0);
  ASSERT_EQ(pointers.size(), 2u) << "the count is no pointer";
  EXPECT_EQ(pointers[0].owner, "FOREIGN");
  EXPECT_EQ(pointers[0].address, input.get());
  EXPECT_EQ(pointers[0].place, "argument 0");
  EXPECT_NE(pointers[0].node.find("node 0 of 1, kernel"), std::string::npos) << pointers[0].node;
  EXPECT_NE(pointers[0].memory.find("256 bytes at"), std::string::npos) << pointers[0].memory;
  EXPECT_EQ(pointers[1].place, "argument 1");
  EXPECT_FALSE(pointers[0].is_finding || pointers[1].is_finding);
  EXPECT_TRUE(Replay(0).ok());
}

TEST_F(GraphAudit, NamesBindingsRetainedAndTheGraphsOwnMemory) {
  Create(GCAP_GRAPH_AUDIT_EACH_REPLAY);
  const DeviceMemory input;
  static int32_t pageable[64];
  const int64_t shape[] = {64};
  const gcap_graph_binding_t binding = {"logits", input.get(), 1, shape};
  Capture(0,
          [&](cudaStream_t stream) -> gcap_status_t {
            void* own = nullptr;
            GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMallocAsync(&own, kAuditBytes, stream)));
            GCAP_RETURN_IF_ERROR(gcap_capture_retain(
                gcap_capture_current(), [](void*) {}, /*bytes=*/nullptr, pageable));
            GCAP_RETURN_IF_ERROR(
                GCAP_CUDA(cudaMemcpyAsync(input.get(), pageable, kAuditBytes, cudaMemcpyHostToDevice, stream)));
            GCAP_RETURN_IF_ERROR(
                GCAP_CUDA(cudaMemcpyAsync(own, input.get(), kAuditBytes, cudaMemcpyDeviceToDevice, stream)));
            return GCAP_CUDA(cudaFreeAsync(own, stream));
          },
          {binding});
  const std::vector<Pointer> pointers = Audit(0);
  ASSERT_EQ(pointers.size(), 4u);
  EXPECT_EQ(pointers[0].owner, "RETAINED");
  EXPECT_EQ(pointers[0].place, "the source");
  EXPECT_EQ(pointers[1].owner, "BUFFER");
  EXPECT_EQ(pointers[1].memory.rfind("logits: ", 0), 0u) << pointers[1].memory;
  EXPECT_EQ(pointers[3].owner, "GRAPH");
  EXPECT_EQ(Findings(0), 0u);
  EXPECT_TRUE(Replay(0).ok());
}

TEST_F(GraphAudit, LooksAtEachGraphOfTheId) {
  Create(GCAP_GRAPH_AUDIT_ON_DEMAND);
  const DeviceMemory input, kept;
  DeviceMemory freed;
  int decision = 0;
  for (const DeviceMemory* const output : {const_cast<const DeviceMemory*>(&freed), &kept}) {
    ++decision;
    Capture(0, [&](cudaStream_t stream) -> gcap_status_t {
      gcap_graph_guard_t guard;
      gcap_graph_guard_init(&guard);
      guard.address = &decision;
      guard.bytes = sizeof(decision);
      guard.low = guard.high = decision;
      GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
      return Relu(stream, input.get(), output->get());
    });
  }
  EXPECT_EQ(Audit(0).size(), 4u);
  EXPECT_EQ(Findings(0), 0u);
  freed.Free();
  EXPECT_EQ(Findings(0), 1u) << "of the graph that replays when the decision is 1 again";
  freed.Alloc();
}

// Of what is retained the first byte alone is known, and of this memory the driver knows nothing.
TEST_F(GraphAudit, APointerBesideThatOfRetainedPageableMemoryIsNobodys) {
  Create(GCAP_GRAPH_AUDIT_ON_DEMAND);
  const DeviceMemory output;
  static char pageable[2 * kAuditBytes];
  Capture(0, [&](cudaStream_t stream) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(gcap_capture_retain(
        gcap_capture_current(), [](void*) {}, /*bytes=*/nullptr, pageable));
    return GCAP_CUDA(cudaMemcpyAsync(output.get(), pageable + 1, kAuditBytes, cudaMemcpyHostToDevice, stream));
  });
  EXPECT_EQ(Audit(0)[0].owner, "UNKNOWN");
}

TEST_F(GraphAudit, APointerIntoRetainedMemoryIsRetainedMemorys) {
  Create(GCAP_GRAPH_AUDIT_EACH_REPLAY);
  const DeviceMemory output;
  void* retained = nullptr;
  GCAP_EXPECT_CUDA(cudaMallocHost(&retained, 2 * kAuditBytes));
  const auto release = [](void* user) { GCAP_EXPECT_CUDA(cudaFreeHost(user)); };
  Capture(0, [&](cudaStream_t stream) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(gcap_capture_retain(gcap_capture_current(), release, /*bytes=*/nullptr, retained));
    return Copy(stream, output.get(), static_cast<char*>(retained) + kAuditBytes);
  });
  EXPECT_EQ(Audit(0)[0].owner, "RETAINED");
  EXPECT_TRUE(Replay(0).ok());
}

TEST_F(GraphAudit, NamesTheBlockOfTheApplicationsAllocator) {
  CachingAllocator allocator;
  Create(GCAP_GRAPH_AUDIT_ON_DEMAND, &allocator);
  void *input = allocator.Alloc(), *output = allocator.Alloc();
  Capture(0, [&](cudaStream_t stream) { return Relu(stream, input, output); });
  const std::vector<Pointer> pointers = Audit(0);
  ASSERT_EQ(pointers.size(), 2u);
  EXPECT_EQ(pointers[1].owner, "ALLOCATOR");
  EXPECT_NE(pointers[1].memory.find("hand-out 2"), std::string::npos) << pointers[1].memory;
  allocator.Free(output);
  EXPECT_EQ(Findings(0), 1u);
  EXPECT_EQ(allocator.Alloc(), output);
  EXPECT_EQ(Findings(0), 1u) << "somebody else's";
  EXPECT_NE(Audit(0)[1].now.find("hand-out 3"), std::string::npos);
}

// --- Levels ---------------------------------------------------------------------------------------------------------

TEST_F(GraphAudit, OnDemandTellsAndReplaysAllTheSame) {
  Create(GCAP_GRAPH_AUDIT_ON_DEMAND);
  DeviceMemory pinned(DeviceMemory::kPinned), output;
  Capture(0, [&](cudaStream_t stream) { return Copy(stream, output.get(), pinned.get()); });
  EXPECT_EQ(Findings(0), 0u);
  void* freed = pinned.get();
  pinned.Free();
  EXPECT_EQ(Findings(0), 1u);
  const std::vector<Pointer> pointers = Audit(0);
  EXPECT_TRUE(pointers[0].is_finding);
  EXPECT_EQ(pointers[0].address, freed);
  EXPECT_EQ(pointers[0].now, "no memory that the driver knows (freed since)");
  EXPECT_FALSE(pointers[1].is_finding);
  EXPECT_EQ(pointers[1].now, "");
}

TEST_F(GraphAudit, OnDemandLogsACaptureWithAFinding) {
  Create(GCAP_GRAPH_AUDIT_ON_DEMAND);
  const DeviceMemory output;
  static char pageable[kAuditBytes];
  Capture(0, [&](cudaStream_t stream) { return Copy(stream, output.get(), pageable); });
  EXPECT_EQ(State(0), "CAPTURED");
  EXPECT_EQ(warnings_, 1);
  EXPECT_EQ(Findings(0), 1u);
  EXPECT_EQ(Audit(0)[0].owner, "UNKNOWN");
}

TEST_F(GraphAudit, EachReplayRefusesMemoryThatIsGoneUntilTheGraphIsCapturedAgain) {
  Create(GCAP_GRAPH_AUDIT_EACH_REPLAY);
  const DeviceMemory input;
  DeviceMemory output;
  const auto work = [&](cudaStream_t stream) { return Relu(stream, input.get(), output.get()); };
  Capture(0, work);
  EXPECT_TRUE(Replay(0).ok());
  const uint64_t replays = Info(0).replays;
  output.Free();
  const Outcome refused = Replay(0);
  EXPECT_EQ(refused.code, GCAP_FAILED_PRECONDITION);
  for (const char* text : {"graph id 0: the memory behind 1 of the graph's 2 pointers", "node 0 of 1, kernel",
                           "argument 1", "256 bytes", "driver knows"}) {
    EXPECT_TRUE(refused.Names(text)) << text << " is not in: " << refused.message;
  }
  EXPECT_EQ(Info(0).replays, replays) << "nothing was launched";
  const Outcome elsewhere = ReplayOn(0, RawStream().get());
  EXPECT_EQ(elsewhere.code, GCAP_FAILED_PRECONDITION) << elsewhere.message;
  output.Alloc();
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  Capture(0, work);
  EXPECT_TRUE(Replay(0).ok());
}

TEST_F(GraphAudit, WithoutNotesThereIsNothingToAudit) {
  Create(GCAP_GRAPH_AUDIT_OFF);
  const DeviceMemory input, output;
  GCAP_EXPECT_FAILS(gcap_graph_manager_audit(manager_, 0, nullptr, nullptr, nullptr), GCAP_NOT_FOUND, "graph id 0");
  Capture(0, [&](cudaStream_t stream) { return Relu(stream, input.get(), output.get()); });
  GCAP_EXPECT_FAILS(gcap_graph_manager_audit(manager_, 0, nullptr, nullptr, nullptr), GCAP_FAILED_PRECONDITION,
                    "option audit");
}

TEST_F(GraphAudit, RefusesALevelThatDoesNotExist) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.audit = static_cast<gcap_graph_audit_level_t>(3);
  GCAP_EXPECT_FAILS(gcap_graph_manager_create(&options, &manager_), GCAP_INVALID_ARGUMENT, "graph audit is 3");
}

// What an audit tells may be told on: no lock of the manager is held.
TEST_F(GraphAudit, TheCallbackMayCallTheManager) {
  Create(GCAP_GRAPH_AUDIT_ON_DEMAND);
  const DeviceMemory input, output;
  Capture(0, [&](cudaStream_t stream) { return Relu(stream, input.get(), output.get()); });
  const auto release = [](void* manager, const gcap_graph_pointer_t*) {
    gcap_status_ignore(gcap_graph_manager_release(static_cast<gcap_graph_manager_t*>(manager), 0));
  };
  size_t findings = 1;
  GCAP_EXPECT_OK(gcap_graph_manager_audit(manager_, 0, release, manager_, &findings));
  EXPECT_EQ(findings, 0u);
  EXPECT_EQ(State(0), "COLD");
}

// --- Buffers that move ----------------------------------------------------------------------------------------------

TEST_F(GraphAudit, FollowsTheBuffersThatAreBound) {
  Create(GCAP_GRAPH_AUDIT_EACH_REPLAY);
  DeviceMemory first;
  const DeviceMemory output;
  CaptureOn(0, first.get(), output.get());
  ASSERT_EQ(State(0), "CAPTURED");
  EXPECT_EQ(Audit(0)[0].owner, "BUFFER");
  EXPECT_EQ(Audit(0)[0].memory.rfind("input: ", 0), 0u) << Audit(0)[0].memory;
  DeviceMemory second;
  GCAP_EXPECT_OK(gcap_graph_manager_bind(manager_, 0, 0, second.get()));
  first.Free();
  EXPECT_EQ(Findings(0), 0u) << "no longer the graph's";
  EXPECT_TRUE(Replay(0).ok());
  second.Free();
  const Outcome refused = Replay(0);
  EXPECT_EQ(refused.code, GCAP_FAILED_PRECONDITION);
  EXPECT_TRUE(refused.Names("input: buffer id")) << refused.message;
  const DeviceMemory third;
  GCAP_EXPECT_OK(gcap_graph_manager_bind(manager_, 0, 0, third.get()));
  EXPECT_TRUE(Replay(0).ok());
}

// --- Scratch --------------------------------------------------------------------------------------------------------

class ScratchAudit : public AuditTest {
 protected:
  void SetUp() override {
    AuditTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(gcap_device_allocator_create(0, &allocator_));
    GCAP_ASSERT_OK(gcap_scratch_create(allocator_, nullptr, &scratch_));
    GCAP_ASSERT_OK(gcap_stream_wrap(stream_->get(), GCAP_STREAM_EXTERNAL, 0, 0, &wrapped_));
    Create(GCAP_GRAPH_AUDIT_EACH_REPLAY);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
    manager_ = nullptr;
    GCAP_EXPECT_OK(gcap_stream_synchronize(wrapped_));
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    GCAP_EXPECT_OK(gcap_stream_destroy(wrapped_));
    gcap_allocator_destroy(allocator_);
    AuditTest::TearDown();
  }
  void* Alloc() {
    void* block = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, kAuditBytes, wrapped_, &block));
    return block;
  }
  void* AllocZeros() {
    void* block = Alloc();
    GCAP_EXPECT_CUDA(cudaMemsetAsync(block, 0, kAuditBytes, stream_->get()));
    return block;
  }
  void Free(void* block) { GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block)); }
  void CaptureCopy(int id, void* to, const void* from) {
    Capture(id, [&](cudaStream_t stream) { return Copy(stream, to, from); });
  }

  gcap_allocator_t* allocator_ = nullptr;
  gcap_scratch_t* scratch_ = nullptr;
  gcap_stream_t* wrapped_ = nullptr;
};

TEST_F(ScratchAudit, WhatAReservationKeepsIsTheGraphsWhoeverFreesIt) {
  Free(Alloc());  // a region
  const DeviceMemory output;
  Capture(0, [&](cudaStream_t stream) {
    void* block = Alloc();
    gcap_status_t status = Copy(stream, output.get(), block);
    Free(block);
    return status;
  });
  EXPECT_EQ(Audit(0)[0].owner, "RESERVATION");
  Free(Alloc());
  EXPECT_EQ(Findings(0), 0u);
  EXPECT_TRUE(Replay(0).ok());
}

TEST_F(ScratchAudit, ABlockThatStaysLiveIsNoFindingAndOneThatWasFreedIs) {
  const DeviceMemory output;
  void* block = Alloc();
  CaptureCopy(0, output.get(), block);
  EXPECT_EQ(Audit(0)[0].owner, "SCRATCH");
  Free(Alloc());
  EXPECT_TRUE(Replay(0).ok());
  Free(block);
  const Outcome refused = Replay(0);
  EXPECT_EQ(refused.code, GCAP_FAILED_PRECONDITION);
  EXPECT_TRUE(refused.Names("of scratch at")) << refused.message;
  EXPECT_TRUE(refused.Names(", free")) << refused.message;
}

TEST_F(ScratchAudit, ABlockThatWasHandedOutAgainIsAFindingThoughItLooksTheSame) {
  const DeviceMemory output;
  void* block = Alloc();
  CaptureCopy(0, output.get(), block);
  Free(block);
  ASSERT_EQ(Alloc(), block);
  EXPECT_EQ(Findings(0), 1u);
  CaptureCopy(1, output.get(), block);  // that has the block as it is now
  EXPECT_EQ(Findings(0), 1u);
  EXPECT_EQ(Findings(1), 0u);
  EXPECT_TRUE(Replay(1).ok());
  EXPECT_EQ(Replay(0).code, GCAP_FAILED_PRECONDITION);
  Free(block);
}

// A sequence ends, the next one gets its block, and the run names that block: it is the graph's.
TEST_F(ScratchAudit, ARunThatNamesItsBufferSaysWhoseTheMemoryIs) {
  void* output = Alloc();
  for (int run = 0; run < 4; ++run) {
    void* block = AllocZeros();
    CaptureOn(0, block, output);
    EXPECT_EQ(State(0), "CAPTURED");
    EXPECT_EQ(Findings(0), 0u);
    Free(block);
  }
  void* stolen = Alloc();
  const Outcome refused = Replay(0);
  EXPECT_EQ(refused.code, GCAP_FAILED_PRECONDITION) << "nobody named it";
  EXPECT_TRUE(refused.Names("(freed and handed out again since)")) << refused.message;
  Free(stolen);
  Free(output);
}

// A bind names one buffer. What became of the others is found out.
TEST_F(ScratchAudit, ABindOfOneBufferSaysNothingOfTheOthers) {
  void* input = AllocZeros();
  void* output = Alloc();
  CaptureOn(0, input, output);
  void* gap = Alloc();  // a bind of buffers that touch otherwise than in the capture is refused
  void* other = Alloc();
  Free(output);
  void* stolen = Alloc();
  ASSERT_EQ(stolen, output);
  GCAP_EXPECT_OK(gcap_graph_manager_bind(manager_, 0, 0, other));
  EXPECT_EQ(Findings(0), 1u);
  for (void* block : {input, gap, other, stolen}) Free(block);
}

// The same of a graph that cannot be moved: its buffers stay, and the run that replays it names them.
TEST_F(ScratchAudit, ARunOnTheBuffersOfAGraphThatStaysSaysWhoseTheMemoryIs) {
  DeviceMemory memory;
  memory.Free();
  memory.Alloc(2 * kAuditBytes);
  static char* fixed;
  fixed = static_cast<char*>(memory.get());
  void* output = Alloc();
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  const gcap_graph_buffer_t item = {"output", output, kAuditBytes, 0};
  buffers.items = &item;
  buffers.count = 1;
  // The source differs from one capture to the next, so nothing moves.
  static int calls;
  const auto work = [](void*, cudaStream_t stream, void* const* addresses) {
    return Relu(stream, fixed + 4 * (calls++ % 3), addresses[0]);
  };
  for (int run = 0; run < 3; ++run) {
    GCAP_EXPECT_OK(RunPlainOn(manager_, 0, stream_->get(), &buffers, work, nullptr, /*synchronize=*/true));
    EXPECT_EQ(State(0), "CAPTURED");
    Free(output);
    ASSERT_EQ(Alloc(), output);
  }
  Free(output);
}

TEST_F(ScratchAudit, AnotherGraphsReservationIsAFindingOnceThatGraphIsReleased) {
  Free(Alloc());
  const DeviceMemory output;
  void* block = nullptr;
  Capture(0, [&](cudaStream_t stream) {
    block = Alloc();
    gcap_status_t status = Copy(stream, block, output.get());
    Free(block);
    return status;
  });
  CaptureCopy(1, output.get(), block);
  EXPECT_TRUE(Replay(1).ok());
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  EXPECT_EQ(Replay(1).code, GCAP_FAILED_PRECONDITION);
}

TEST_F(ScratchAudit, ABlockThatItsGraphLeftLiveStaysItsOwners) {
  Free(Alloc());
  const DeviceMemory output;
  void* block = nullptr;
  Capture(0, [&](cudaStream_t stream) {
    block = Alloc();
    return Copy(stream, block, output.get());
  });
  CaptureCopy(1, output.get(), block);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  EXPECT_EQ(Findings(1), 0u) << "it is live, with who allocated it";
  EXPECT_TRUE(Replay(1).ok());
  Free(block);
  EXPECT_EQ(Findings(1), 1u);
}

TEST_F(ScratchAudit, AFreeBlockFailsTheCapture) {
  const DeviceMemory output;
  void* block = Alloc();
  Free(block);
  const Outcome failed = CaptureFails(0, [&](cudaStream_t stream) { return Copy(stream, output.get(), block); });
  EXPECT_TRUE(failed.Names("of scratch at")) << failed.message;
}

// Other threads allocate and free all the while, also what a graph relies on.
TEST_F(ScratchAudit, AuditsBesideTheTrafficOfOtherThreads) {
  const DeviceMemory output;
  void* kept = Alloc();
  CaptureCopy(0, output.get(), kept);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([this, &stop] {
      gcap_stream_t* stream = nullptr;
      GCAP_EXPECT_OK(gcap_stream_create(0, &stream));
      while (!stop) {
        void* block = nullptr;
        GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, kAuditBytes, stream, &block));
        GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block));
      }
      GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
      GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    });
  }
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Replay(0).ok());
  std::thread([this, kept] { Free(kept); }).join();
  EXPECT_EQ(Replay(0).code, GCAP_FAILED_PRECONDITION);
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// --- Without a manager ----------------------------------------------------------------------------------------------

TEST_F(GraphAudit, AnyGraphCanBeAudited) {
  DeviceMemory input;
  const DeviceMemory output;
  const cudaStream_t stream = stream_->get();
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  GCAP_EXPECT_OK(Copy(stream, output.get(), input.get()));
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream, &graph));
  gcap_graph_notes_t* notes = nullptr;
  GCAP_ASSERT_OK(gcap_graph_notes_create(graph, nullptr, nullptr, &notes));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  size_t findings = 9;
  GCAP_EXPECT_OK(gcap_graph_audit(notes, nullptr, nullptr, &findings));
  EXPECT_EQ(findings, 0u);
  input.Free();
  GCAP_EXPECT_OK(gcap_graph_audit(notes, nullptr, nullptr, &findings));
  EXPECT_EQ(findings, 1u);
  gcap_graph_notes_destroy(notes);
}

TEST_F(GraphAudit, OwnersHaveNames) {
  EXPECT_STREQ(gcap_graph_owner_name(GCAP_GRAPH_OWNER_UNKNOWN), "UNKNOWN");
  EXPECT_STREQ(gcap_graph_owner_name(GCAP_GRAPH_OWNER_FOREIGN), "FOREIGN");
  EXPECT_STREQ(gcap_graph_owner_name(static_cast<gcap_graph_owner_t>(99)), "INVALID");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
