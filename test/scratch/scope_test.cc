// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Captures whose work allocates scratch and opens no reservation: the capture scope has one opened, closes it, and the
// graph keeps it. First who gets one and who is refused, then when host memory is short, then real graphs of a manager.

#include <cuda_runtime_api.h>

#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "lib/capture/inner.h"
#include "lib/scratch/inner.h"
#include "test/base/heap_failure.h"
#include "test/scratch/scratch_test_support.h"
#include "test/support/device_floats.h"
#include "test/support/log_catcher.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

class Scope : public ScratchTest {
 protected:
  void TearDown() override {
    gcap_capture_abort(capture_);
    Release();
    ScratchTest::TearDown();
  }
  // A warm-up: the arena gets its first region.
  void WarmUp(gcap_stream_t* stream) { Free(Alloc(kChunk, stream)); }
  void Begin(gcap_stream_t* stream) {
    GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream), nullptr, &capture_));
  }
  // Ends in a graph, which is destroyed; what it retains stays.
  void Commit() {
    cudaGraph_t graph = nullptr;
    GCAP_EXPECT_OK(gcap_capture_end(capture_, &graph, &retained_));
    capture_ = nullptr;
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    Validate();
  }
  void ExpectEndFails(const std::string& culprit) {
    cudaGraph_t graph = nullptr;
    GCAP_EXPECT_FAILS(gcap_capture_end(capture_, &graph, &retained_), GCAP_CAPTURE_INVALIDATED, culprit);
    capture_ = nullptr;
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(retained_, nullptr);
    Validate();
  }
  void Release() {
    gcap_retained_release(retained_);
    retained_ = nullptr;
    if (scratch_ != nullptr) Validate();
  }
  void Fork(gcap_stream_t* stream) {
    const cudaStream_t handle = gcap_stream_handle(stream);
    GCAP_EXPECT_OK(gcap_capture_fork(capture_, &handle, 1));
  }
  void Join(gcap_stream_t* stream) {
    const cudaStream_t handle = gcap_stream_handle(stream);
    GCAP_EXPECT_OK(gcap_capture_join(capture_, &handle, 1));
  }
  std::string Describe() {
    char text[2048];
    gcap_scratch_describe(scratch_, text, sizeof(text));
    return text;
  }

  gcap_capture_t* capture_ = nullptr;
  gcap_retained_t* retained_ = nullptr;
};

// Which a comparison of a replay with its work puts aside and back.
TEST_F(Scope, AGraphListsTheMemoryThatItGot) {
  WarmUp(a_);
  Begin(a_);
  char *const first = Alloc(2 * kGranule, a_), *const second = Alloc(3 * kGranule, a_);
  Free(second);
  Free(first);
  Commit();
  const auto add = [](void* listed, void* address, size_t bytes) {
    for (size_t i = 0; i < bytes / kGranule; ++i) {
      static_cast<std::set<char*>*>(listed)->insert(static_cast<char*>(address) + i * kGranule);
    }
  };
  std::set<char*> listed, expected;
  gcap_retained_list(retained_, add, &listed);
  for (size_t i = 0; i < 2; ++i) expected.insert(first + i * kGranule);
  for (size_t i = 0; i < 3; ++i) expected.insert(second + i * kGranule);
  EXPECT_EQ(listed, expected);
}

// --- Who gets a reservation -----------------------------------------------------------------------------------------

TEST_F(Scope, AnAllocationOpensAReservationThatTheGraphKeeps) {
  WarmUp(a_);
  Begin(a_);
  char* block = Alloc(6 * kGranule, a_);
  EXPECT_NE(Describe().find("1536 are kept by a graph"), std::string::npos) << Describe();
  Free(block);
  EXPECT_EQ(Alloc(4 * kGranule, a_), block);  // diverted: its own freed blocks first
  Free(block);
  EXPECT_EQ(NumRequests(), 1u);
  Commit();
  EXPECT_EQ(gcap_retained_bytes(retained_), 6 * kGranule);
  EXPECT_EQ(GranulesLeftFor(a_), 10u);  // the scope has closed the reservation
  GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION, "1 reservations");
  Release();
  EXPECT_EQ(GranulesLeftFor(a_), 16u);
}

TEST_F(Scope, AScopeThatIsGivenUpGivesTheMemoryBack) {
  WarmUp(a_);
  Begin(a_);
  char* block = Alloc(6 * kGranule, a_);
  gcap_capture_abort(capture_);
  capture_ = nullptr;
  Validate();
  EXPECT_EQ(GranulesLeftFor(a_), 10u);  // the block is live still
  Free(block);
  EXPECT_EQ(GranulesLeftFor(a_), 16u);
}

TEST_F(Scope, WhatACaptureLackedFailsItAndIsThereForTheNextOne) {
  WarmUp(a_);
  Begin(a_);
  ExpectAllocFails(kChunk + 1, a_, GCAP_RESOURCE_EXHAUSTED, "lacks 4352 more");
  ExpectEndFails("lacks 4352 more");
  EXPECT_EQ(NumRequests(), 1u);
  Free(Alloc(1, a_));  // an eager run
  Begin(a_);
  Free(Alloc(kChunk + 1, a_));
  Commit();
}

// Captured work may use it: at each replay it does so again.
TEST_F(Scope, ABlockFromBeforeThatIsFreedInsideJoinsTheGraph) {
  char* older = Alloc(kChunk, a_);
  Begin(a_);
  Free(older);
  Commit();
  EXPECT_EQ(gcap_retained_bytes(retained_), kChunk);
  EXPECT_EQ(GranulesLeftFor(a_), 0u);
  Release();
  EXPECT_EQ(GranulesLeftFor(a_), 16u);
}

TEST_F(Scope, ABlockThatIsFreedAfterwardsStaysWithTheGraph) {
  WarmUp(a_);
  Begin(a_);
  char* block = Alloc(6 * kGranule, a_);
  Commit();
  Free(block);
  EXPECT_EQ(GranulesLeftFor(a_), 10u);
  Release();
  EXPECT_EQ(GranulesLeftFor(a_), 16u);
}

TEST_F(Scope, AForkedStreamGetsAReservationOfItsOwn) {
  WarmUp(a_);
  Synchronize(a_);
  Begin(a_);
  Fork(b_);
  char* of_b = Alloc(2 * kGranule, b_);
  char* of_a = Alloc(3 * kGranule, a_);
  Free(of_b);
  char* more_of_a = Alloc(2 * kGranule, a_);
  EXPECT_NE(more_of_a, of_b);  // another stream's
  EXPECT_EQ(Alloc(2 * kGranule, b_), of_b);
  Free(of_b);
  Join(b_);
  Commit();
  EXPECT_EQ(gcap_retained_bytes(retained_), 7 * kGranule);
  EXPECT_EQ(GranulesLeftFor(b_), 9u);
  Free(of_a);
  Free(more_of_a);
  Release();
}

TEST_F(Scope, AStreamThatItDoesNotCaptureIsNotConcerned) {
  WarmUp(a_);
  Synchronize(a_);
  Begin(a_);
  Free(Alloc(2 * kGranule, b_));
  Free(Alloc(2 * kChunk, b_));  // b may still grow
  EXPECT_EQ(NumRequests(), 2u);
  Commit();
  EXPECT_EQ(gcap_retained_bytes(retained_), 0u);
}

TEST_F(Scope, AnOpenReservationIsUsed) {
  WarmUp(a_);
  Begin(a_);
  gcap_scratch_reservation_t* reservation = Open(a_);
  Free(Alloc(2 * kGranule, a_));
  Close(reservation);
  Free(Alloc(3 * kGranule, a_));  // closed: what comes now is the graph's own
  Commit();
  EXPECT_EQ(gcap_scratch_reservation_bytes(reservation), 2 * kGranule);
  EXPECT_EQ(gcap_retained_bytes(retained_), 3 * kGranule);
  Release();
  ScratchTest::Release(reservation);
}

TEST_F(Scope, ItsReservationIsTheOneThatIsOpen) {
  WarmUp(a_);
  Begin(a_);
  Free(Alloc(2 * kGranule, a_));
  gcap_scratch_reservation_t* second = nullptr;
  GCAP_EXPECT_FAILS(gcap_scratch_reservation_open(scratch_, a_, &second), GCAP_ALREADY_EXISTS, "open");
  Commit();
}

TEST_F(Scope, EachScratchHasAReservationOfItsOwn) {
  gcap_scratch_t* second = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_create(upstream_.get(), &options_, &second));
  void* block = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_alloc(second, kChunk, a_, &block));
  GCAP_EXPECT_OK(gcap_scratch_free(second, block));
  WarmUp(a_);
  Begin(a_);
  GCAP_ASSERT_OK(gcap_scratch_alloc(second, 5 * kGranule, a_, &block));
  GCAP_EXPECT_OK(gcap_scratch_free(second, block));
  Free(Alloc(2 * kGranule, a_));
  Commit();
  EXPECT_EQ(gcap_retained_bytes(retained_), 7 * kGranule);
  Release();
  GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
  GCAP_EXPECT_OK(gcap_scratch_destroy(second));
}

TEST_F(Scope, AnEarlierGraphsBlockThatIsFreedInsideIsKeptByBoth) {
  WarmUp(a_);
  Begin(a_);
  char* block = Alloc(kChunk, a_);
  Commit();
  gcap_retained_t* first = retained_;
  retained_ = nullptr;
  Begin(a_);
  Free(block);
  Commit();
  gcap_retained_release(first);
  Validate();
  EXPECT_EQ(GranulesLeftFor(a_), 0u);
  Release();
  EXPECT_EQ(GranulesLeftFor(a_), 16u);
}

TEST_F(Scope, AStreamThatIsDestroyedLeavesItsMemoryToTheGraph) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  WarmUp(stream);
  Begin(stream);
  Free(Alloc(6 * kGranule, stream));
  Commit();
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  Validate();
  EXPECT_EQ(gcap_retained_bytes(retained_), 6 * kGranule);
  Release();
}

// A stream that its own capture was begun for without gcap, or by another thread, is not the scope's.
TEST_F(Scope, AStreamOfAnotherCaptureIsRefused) {
  WarmUp(b_);
  char* held = Alloc(kGranule, b_);
  Begin(a_);
  ASSERT_EQ(cudaStreamBeginCapture(gcap_stream_handle(b_), cudaStreamCaptureModeRelaxed), cudaSuccess);
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, held), GCAP_FAILED_PRECONDITION, "no open reservation");
  ExpectAllocFails(kGranule, b_, GCAP_FAILED_PRECONDITION, "no open reservation");
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(gcap_stream_handle(b_), &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ExpectEndFails("gcap_scratch_alloc");
  Free(held);
  EXPECT_EQ(GranulesLeftFor(b_), 16u);
}

TEST_F(Scope, DebugOptionsWorkAsInAnyReservation) {
  options_.red_zones = options_.poison_on_free = true;
  options_.recorded_operations = 10;
  gcap_allocator_t* device = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device));
  gcap_scratch_t* scratch = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_create(device, &options_, &scratch));
  void* block = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, kGranule, a_, &block));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch, block));
  Begin(a_);
  GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, kGranule, a_, &block));
  EXPECT_EQ(cudaMemsetAsync(block, 1, kGranule + 1, gcap_stream_handle(a_)), cudaSuccess);  // one byte too many
  GCAP_EXPECT_OK(gcap_scratch_free(scratch, block));
  cudaGraph_t graph = nullptr;
  GCAP_ASSERT_OK(gcap_capture_end(capture_, &graph, &retained_));
  capture_ = nullptr;
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, gcap_stream_handle(a_)), cudaSuccess);
  GCAP_EXPECT_FAILS(gcap_scratch_validate(scratch), GCAP_INTERNAL, "byte 1 after");
  GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  Release();
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  gcap_allocator_destroy(device);
}

// --- Short host memory ----------------------------------------------------------------------------------------------

// One heap allocation after the other fails: each time the capture fails, says why, and gives all back.
TEST_F(Scope, WithoutHostMemoryTheCaptureFailsAndNothingIsKept) {
  WarmUp(a_);
  int num_failures = 0;
  for (int skip = 0;; ++skip) {
    ASSERT_LT(skip, 20);
    SCOPED_TRACE("heap allocation " + std::to_string(skip + 1) + " fails");
    Begin(a_);
    void* block = nullptr;
    int hits = 0;
    const Outcome given = [&] {
      const HeapFailure failure(1, skip);
      const Outcome result(gcap_scratch_alloc(scratch_, kGranule, a_, &block));
      hits = failure.hits();
      return result;
    }();
    Validate();
    if (hits == 0) {
      EXPECT_TRUE(given.ok()) << given.message;
      Free(block);
      Commit();
      EXPECT_EQ(gcap_retained_bytes(retained_), kGranule);
      break;
    }
    ++num_failures;
    EXPECT_EQ(given.code, GCAP_RESOURCE_EXHAUSTED);
    EXPECT_EQ(block, nullptr);
    ExpectEndFails("no host memory");
    EXPECT_EQ(GranulesLeftFor(a_), 16u);
    EXPECT_EQ(Stats().in_use_bytes, 0u);
  }
  EXPECT_EQ(num_failures, 3);  // the reservation, its retained entry, its close step
  Release();
}

TEST_F(Scope, WithoutHostMemoryAFreeLeavesTheBlockLiveAndFailsTheCapture) {
  for (int skip : {0, 1, 2}) {
    char* older = Alloc(kChunk, a_);
    Begin(a_);
    {
      const HeapFailure failure(1, skip);
      GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, older), GCAP_RESOURCE_EXHAUSTED, "no host memory");
      EXPECT_EQ(failure.hits(), 1);
    }
    Validate();
    ExpectEndFails("no host memory");
    Free(older);
    EXPECT_EQ(GranulesLeftFor(a_), 16u);
  }
}

// --- Real graphs ----------------------------------------------------------------------------------------------------

constexpr size_t kFloats = 4096;

// What a newcomer writes: a manager, a scratch, and work that allocates, with nothing in between.
class Program {
 public:
  Program(gcap_scratch_t* scratch, gcap_stream_t* stream, gcap_stream_t* forked = nullptr)
      : scratch_(scratch), stream_(stream), forked_(forked), x_(std::vector<float>(kFloats)), y_(x_.Get()) {
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    GCAP_EXPECT_OK(gcap_graph_manager_create(&options, &manager_));
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_)); }

  gcap_graph_manager_t* manager() const { return manager_; }
  // Copies an input of its own by way of scratch, and does not wait.
  void Start(int id, float seed) {
    expected_.resize(kFloats);
    std::iota(expected_.begin(), expected_.end(), seed);
    x_.Set(expected_);
    y_.Set(std::vector<float>(kFloats, -1.0f));
    GCAP_EXPECT_OK(RunPlain(manager_, id, gcap_stream_handle(stream_), Work, this,
                            /*synchronize=*/false));
  }
  // After a synchronization.
  bool OutputIsInput() const { return y_.Get() == expected_; }
  gcap_graph_info_t Info(int id) const {
    gcap_graph_info_t info;
    gcap_graph_manager_get_info(manager_, id, &info);
    return info;
  }

 private:
  static gcap_status_t Work(void* self, cudaStream_t) { return static_cast<Program*>(self)->Issue(); }
  gcap_status_t Issue() {
    const cudaStream_t forked = forked_ == nullptr ? nullptr : gcap_stream_handle(forked_);
    gcap_capture_t* capture = forked_ == nullptr ? nullptr : gcap_capture_current();
    gcap_stream_t* stream = capture == nullptr ? stream_ : forked_;
    if (capture != nullptr) GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &forked, 1));
    GCAP_RETURN_IF_ERROR(CopyOn(stream));
    return capture == nullptr ? nullptr : gcap_capture_join(capture, &forked, 1);
  }
  gcap_status_t CopyOn(gcap_stream_t* stream) {
    const cudaStream_t handle = gcap_stream_handle(stream);
    void* first = nullptr;
    void* second = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(scratch_, x_.Bytes(), stream, &first));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(first, x_.get(), x_.Bytes(), cudaMemcpyDeviceToDevice, handle)));
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(scratch_, x_.Bytes(), stream, &second));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(second, first, x_.Bytes(), cudaMemcpyDeviceToDevice, handle)));
    GCAP_RETURN_IF_ERROR(gcap_scratch_free(scratch_, first));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(y_.get(), second, x_.Bytes(), cudaMemcpyDeviceToDevice, handle)));
    return gcap_scratch_free(scratch_, second);
  }

  gcap_scratch_t* scratch_;
  gcap_stream_t* stream_;
  gcap_stream_t* forked_;
  DeviceFloats x_, y_;
  std::vector<float> expected_;
  gcap_graph_manager_t* manager_ = nullptr;
};

class NaiveProgram : public ScratchTest {
 protected:
  void SetUp() override {
    ScratchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device_));
    GCAP_ASSERT_OK(gcap_scratch_create(device_, nullptr, &on_device_));
  }
  void TearDown() override {
    if (on_device_ != nullptr) {
      for (gcap_stream_t* stream : {a_, b_, c_}) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
      GCAP_EXPECT_OK(gcap_scratch_destroy(on_device_));
      gcap_allocator_destroy(device_);
    }
    ScratchTest::TearDown();
  }
  // Writes over all scratch that a stream gets, while a replay may be running.
  void WriteEagerly(gcap_stream_t* stream) {
    std::vector<void*> blocks(80, nullptr);  // more than a region
    for (void*& block : blocks) {
      GCAP_ASSERT_OK(gcap_scratch_alloc(on_device_, kFloats * sizeof(float), stream, &block));
      EXPECT_EQ(cudaMemsetAsync(block, 0x5a, kFloats * sizeof(float), gcap_stream_handle(stream)), cudaSuccess);
    }
    for (void* block : blocks) GCAP_EXPECT_OK(gcap_scratch_free(on_device_, block));
  }
  // Runs, with eager traffic behind each.
  void ExpectRunsAreRight(Program* program, int id, int num_runs) {
    for (int run = 0; run < num_runs; ++run) {
      program->Start(id, static_cast<float>(100 * run + id));
      WriteEagerly(c_);
      WriteEagerly(a_);
      for (gcap_stream_t* stream : {c_, b_, a_}) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
      EXPECT_TRUE(program->OutputIsInput()) << "run " << run << " of graph " << id;
      GCAP_EXPECT_OK(gcap_scratch_trim(on_device_));
      GCAP_EXPECT_OK(gcap_scratch_validate(on_device_));
    }
  }
  size_t HeldBytes() {
    GCAP_EXPECT_OK(gcap_scratch_trim(on_device_));
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(on_device_, &stats);
    return stats.total_allocated_bytes;
  }

  gcap_allocator_t* device_ = nullptr;
  gcap_scratch_t* on_device_ = nullptr;
};

TEST_F(NaiveProgram, CapturesAtItsFirstCaptureAndReplaysRight) {
  constexpr int kRuns = 6;
  Program program(on_device_, a_);
  for (int id : {0, 1}) {
    program.Start(id, 1.0f);
    GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
  }
  const LogCatcher log;
  // No trim between the warm-up and the capture: a trim would take away what the warm-up has found.
  for (int id : {0, 1}) {
    while (program.Info(id).captures + program.Info(id).failures == 0) {
      program.Start(id, 2.0f);
      GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
      EXPECT_TRUE(program.OutputIsInput());
    }
    EXPECT_EQ(program.Info(id).captures, 1u);
    EXPECT_EQ(program.Info(id).failures, 0u);
    EXPECT_GE(program.Info(id).bytes, 2 * kFloats * sizeof(float));
  }
  EXPECT_EQ(log.text(), "");
  for (int id : {0, 1}) {
    const uint64_t replays = program.Info(id).replays;
    ExpectRunsAreRight(&program, id, kRuns);
    EXPECT_EQ(program.Info(id).replays, replays + kRuns);
  }
  GCAP_EXPECT_OK(gcap_graph_manager_release(program.manager(), 0));
  EXPECT_GT(HeldBytes(), 0u);
  ExpectRunsAreRight(&program, 1, 1);
  GCAP_EXPECT_OK(gcap_graph_manager_release(program.manager(), 1));
  GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
  EXPECT_EQ(HeldBytes(), 0u);
}

TEST_F(NaiveProgram, MayForkItsCapture) {
  Program program(on_device_, a_, b_);
  while (program.Info(0).captures + program.Info(0).failures == 0) {
    program.Start(0, 2.0f);
    GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
    EXPECT_TRUE(program.OutputIsInput());
  }
  EXPECT_EQ(program.Info(0).captures, 1u);
  ExpectRunsAreRight(&program, 0, 4);
  GCAP_EXPECT_OK(gcap_graph_manager_release(program.manager(), 0));
  for (gcap_stream_t* stream : {b_, a_}) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  EXPECT_EQ(HeldBytes(), 0u);
}

// Two threads, each with a stream, a scope and a graph of its own over one scratch.
TEST_F(NaiveProgram, RunsOnSeveralThreads) {
  Program first(on_device_, a_), second(on_device_, b_);
  std::vector<std::thread> threads;
  for (auto [program, stream] : {std::pair{&first, a_}, std::pair{&second, b_}}) {
    threads.emplace_back([program = program, stream = stream] {
      for (int run = 0; run < 12; ++run) {
        program->Start(0, static_cast<float>(run));
        GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
        EXPECT_TRUE(program->OutputIsInput()) << "run " << run;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(first.Info(0).replays, 1u);
  EXPECT_GE(second.Info(0).replays, 1u);
  GCAP_EXPECT_OK(gcap_scratch_validate(on_device_));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
