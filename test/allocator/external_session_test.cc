// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The application's callbacks under whole sessions: whose memory goes where, what captures see of them, and what is
// left when they fail. Each pool below is another application; the callbacks have no user pointer, so its state is
// global.

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gcap/capture.h"
#include "gcap/external_allocator.h"
#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"

namespace gcap {
namespace testing {
namespace {

enum class Answer { kMemory, kNull, kMisaligned, kSameAgain, kOverlapping };

constexpr size_t kManyBytes = size_t{3} << 19;  // more than a first region of scratch

// What an application gave and got back.
struct Pool {
  std::mutex mutex;
  std::map<char*, size_t> live;
  int allocs = 0, frees = 0, foreign_frees = 0, empty_caches = 0, calls_in_captures = 0;
  bool is_cache_full = false;  // alloc gives NULL until the cache is emptied
  int refusals = 0;            // how often it did
  int bad_alloc = 0;           // the alloc, counted from 1, that is answered so
  Answer bad_answer = Answer::kMemory;
  char* returned_badly = nullptr;  // what must come back of it
  std::function<void()> on_alloc;  // runs inside alloc, as a copy

  void NoteCall() {
    if (gcap_thread_is_capturing()) ++calls_in_captures;
  }

  // The answer instead of memory. With no block large enough for the overlap, a misaligned one.
  char* AnswerBadly() {
    if (bad_answer == Answer::kNull || live.empty()) return nullptr;
    char* const block = live.begin()->first;
    if (bad_answer == Answer::kSameAgain) return block;
    for (const auto& [ptr, bytes] : live) {
      if (bad_answer == Answer::kOverlapping && bytes > 256) return returned_badly = ptr + 256;
    }
    return returned_badly = block + 8;
  }

  void* Alloc(size_t bytes) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      NoteCall();
      if (is_cache_full) {
        ++refusals;
        return nullptr;
      }
      if (++allocs == bad_alloc) return AnswerBadly();
    }
    if (const auto hook = on_alloc) hook();
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
    const std::lock_guard<std::mutex> lock(mutex);
    live[static_cast<char*>(memory)] = bytes;
    return memory;
  }

  void Free(void* ptr) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      NoteCall();
      ++frees;
      char* const address = static_cast<char*>(ptr);
      if (address == returned_badly) {
        returned_badly = nullptr;
        return;
      }
      if (live.erase(address) == 0) ++foreign_frees;
    }
    EXPECT_EQ(cudaFree(ptr), cudaSuccess);
  }

  void EmptyCache() {
    const std::lock_guard<std::mutex> lock(mutex);
    NoteCall();
    ++empty_caches;
    is_cache_full = false;
  }

  void Reset() {
    allocs = frees = foreign_frees = empty_caches = calls_in_captures = bad_alloc = refusals = 0;
    is_cache_full = false;
    bad_answer = Answer::kMemory;
    on_alloc = nullptr;
  }

  // Of an application whose sessions are over.
  void ExpectAllBack() {
    EXPECT_EQ(allocs, frees);
    EXPECT_EQ(foreign_frees, 0);
    EXPECT_EQ(calls_in_captures, 0);
    EXPECT_TRUE(live.empty());
  }
};

template <int kIndex>
struct Callbacks {
  static inline Pool& pool = *new Pool;
  static void* Alloc(size_t bytes) { return pool.Alloc(bytes); }
  static void Free(void* ptr) { pool.Free(ptr); }
  static void EmptyCache() { pool.EmptyCache(); }

  // As a host hands them over: the addresses as text.
  static gcap_options_t Options(unsigned min_runs = 1) {
    const std::string values[] = {std::to_string(reinterpret_cast<uintptr_t>(&Alloc)),
                                  std::to_string(reinterpret_cast<uintptr_t>(&Free)),
                                  std::to_string(reinterpret_cast<uintptr_t>(&EmptyCache))};
    const char* const keys[] = {"gpu_external_alloc", "gpu_external_free", "gpu_external_empty_cache"};
    const char* const texts[] = {values[0].c_str(), values[1].c_str(), values[2].c_str()};
    gcap_options_t options = GraphOptions(min_runs);
    GCAP_EXPECT_OK(gcap_options_parse(&options, keys, texts, 3));
    return options;
  }
};

class ExternalSession : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    first_.Reset();
    second_.Reset();
  }

  // Runs until there is a graph and its replays.
  static void ExpectRightRuns(ChainRig* rig, int runs = 4, int graph_id = 0) {
    DeviceFloats x(Floats(6)), y(Floats(6));
    for (int run = 0; run < runs; ++run) rig->ExpectRightRun(&x, &y, 10.0f * static_cast<float>(run), graph_id);
    GCAP_EXPECT_OK(gcap_runtime_release(rig->ep->runtime(), graph_id));  // bound to these tensors
  }

  Pool& first_ = Callbacks<0>::pool;
  Pool& second_ = Callbacks<1>::pool;
};

TEST_F(ExternalSession, AllMemoryIsTheCallbacksAndGoesBackToThem) {
  {
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(Callbacks<0>::Options()));
    EXPECT_EQ(first_.live.size(), 1u) << "the constant";
    rig.bounce.scratch_bytes = kManyBytes;
    ExpectRightRuns(&rig);
    EXPECT_EQ(rig.ep->Info(0).state, GCAP_GRAPH_COLD);
    size_t bytes = 0;
    for (const auto& [ptr, size] : first_.live) bytes += size;
    EXPECT_GE(bytes, kManyBytes);
    char* const scratch = static_cast<char*>(rig.bounce.scratch.load());
    auto region = first_.live.upper_bound(scratch);
    ASSERT_NE(region, first_.live.begin());
    --region;
    EXPECT_LE(scratch + kManyBytes, region->first + region->second) << "what a kernel got is of the callbacks";
    EXPECT_EQ(first_.empty_caches, 0);
  }
  first_.ExpectAllBack();
  EXPECT_EQ(first_.empty_caches, 1) << "after the constant, which was reserved";
}

// ONNX Runtime's acceptance test of the same name.
TEST_F(ExternalSession, ExternalAllocator_IsSessionScoped) {
  const auto run_without = [this] {
    const int calls = first_.allocs + first_.frees + first_.empty_caches;
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
    rig.bounce.scratch_bytes = kManyBytes;
    ExpectRightRuns(&rig);
    GCAP_EXPECT_OK(gcap_scratch_trim(gcap_runtime_scratch(rig.ep->runtime())));
    EXPECT_EQ(first_.allocs + first_.frees + first_.empty_caches, calls);
  };
  run_without();
  {
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(Callbacks<0>::Options()));
    run_without();
    ExpectRightRuns(&rig);
    run_without();
    const int calls = first_.allocs + first_.frees + first_.empty_caches;
    ChainRig other;
    GCAP_ASSERT_OK(other.Create(Callbacks<1>::Options()));
    ExpectRightRuns(&other);
    EXPECT_GT(second_.allocs, 0);
    EXPECT_EQ(first_.allocs + first_.frees + first_.empty_caches, calls);
  }
  EXPECT_GT(first_.allocs, 0);
  first_.ExpectAllBack();
  second_.ExpectAllBack();
  run_without();
}

TEST_F(ExternalSession, ChangedCallbacksNeverGetOldPointers) {
  {
    ChainRig old_rig;
    gcap_options_t options = Callbacks<0>::Options();
    GCAP_ASSERT_OK(old_rig.Create(options));
    ExpectRightRuns(&old_rig);
    {
      ChainRig rig;
      options = Callbacks<1>::Options();
      GCAP_ASSERT_OK(rig.Create(options));
      for (size_t bytes = 1 << 10; bytes <= kManyBytes; bytes *= 4) {  // both grow, in turns
        old_rig.bounce.scratch_bytes = rig.bounce.scratch_bytes = bytes;
        ExpectRightRuns(&rig);
        ExpectRightRuns(&old_rig);
      }
    }
    EXPECT_GT(second_.allocs, 0);
    second_.ExpectAllBack();
    ExpectRightRuns(&old_rig);
    EXPECT_EQ(second_.allocs, second_.frees) << "no call came after the session's end";
  }
  first_.ExpectAllBack();
}

// A capture that has not enough cannot ask the callbacks: it fails, the run is done eagerly, and the next capture has
// what it needs.
TEST_F(ExternalSession, NoCallbackRunsWhileItsThreadCaptures) {
  {
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(Callbacks<0>::Options(/*min_runs=*/1)));
    DeviceFloats x(Floats(6)), y(Floats(6));
    rig.ExpectRightRun(&x, &y, 1.0f, GCAP_GRAPH_ID_NONE);
    const int allocs = first_.allocs;
    uint64_t failures = 0;
    for (int id = 0; id < 3; ++id) {
      rig.bounce.scratch_bytes = 1024;
      rig.ExpectRightRun(&x, &y, 1.0f, id);
      rig.bounce.scratch_bytes = kManyBytes << id;
      for (int run = 0; run < 5; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run), id);
      EXPECT_EQ(rig.ep->Info(id).captures, 1u);
      failures += rig.ep->Info(id).failures;
    }
    EXPECT_GT(failures, 0u) << "else no capture lacked memory, and this showed nothing";
    EXPECT_GT(first_.allocs, allocs) << "what it lacked came from the callbacks";
    EXPECT_EQ(first_.calls_in_captures, 0);
  }
  first_.ExpectAllBack();
}

// Callbacks call cudaMalloc, which would break another thread's capture in global mode.
TEST_F(ExternalSession, CallbacksLeaveAnotherThreadsCaptureAlone) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(Callbacks<0>::Options()));
  DeviceFloats x(Floats(6)), y(Floats(6));
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  std::promise<void> begun, may_end;
  std::thread capturing([&] {
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    begun.set_value();
    may_end.get_future().wait();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  });
  begun.get_future().wait();
  const int allocs = first_.allocs;
  rig.bounce.scratch_bytes = kManyBytes;
  GCAP_EXPECT_OK(rig.Run(x, y));
  EXPECT_GT(first_.allocs, allocs);
  GCAP_EXPECT_OK(gcap_scratch_trim(gcap_runtime_scratch(rig.ep->runtime())));
  EXPECT_GT(first_.frees, 0);
  may_end.set_value();
  capturing.join();
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(ExternalSession, ThreadsShareTheCallbacks) {
  {
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(Callbacks<0>::Options()));
    rig.bounce.scratch_bytes = kManyBytes;
    std::vector<std::thread> threads;
    // The callbacks force the unified stream, on which all threads share one set of graphs: an id has one binding.
    for (int t = 0; t < 4; ++t) threads.emplace_back([&rig, t] { ExpectRightRuns(&rig, 8, /*graph_id=*/t); });
    for (std::thread& thread : threads) thread.join();
  }
  first_.ExpectAllBack();
}

// --- Callbacks that fail --------------------------------------------------------------------------------------------

// Each alloc of a session's life in turn is answered badly. What was asked for fails, or is served by another try;
// afterwards all goes on as if nothing had been, and nothing is lost.
TEST_F(ExternalSession, BadAnswersFailWhatAskedAndLoseNothing) {
  for (const Answer answer : {Answer::kNull, Answer::kMisaligned, Answer::kSameAgain, Answer::kOverlapping}) {
    int failures = 0, bad_alloc = 1;
    for (bool reached = true; reached; ++bad_alloc) {
      SCOPED_TRACE("answer " + std::to_string(static_cast<int>(answer)) + ", alloc " + std::to_string(bad_alloc));
      first_.Reset();
      first_.bad_answer = answer;
      first_.bad_alloc = bad_alloc;
      const auto expect_code = [&](gcap_status_t status) {
        const Outcome outcome(status);
        if (outcome.ok()) return true;
        const bool is_null = answer == Answer::kNull || bad_alloc == 1;  // with no block to answer, it is NULL
        EXPECT_EQ(outcome.code, is_null ? GCAP_RESOURCE_EXHAUSTED : GCAP_LIBRARY_ERROR) << outcome.message;
        ++failures;
        return false;
      };
      {
        DeviceFloats x(Floats(6)), y(Floats(6));
        ChainRig rig;
        if (!expect_code(rig.Create(Callbacks<0>::Options()))) GCAP_ASSERT_OK(rig.CreateSession());
        for (size_t bytes : {size_t{1024}, kManyBytes, 4 * kManyBytes}) {
          rig.bounce.scratch_bytes = bytes;
          for (int run = 0; run < 3; ++run) expect_code(rig.Run(x, y, GCAP_GRAPH_ID_NONE));
        }
        rig.ExpectRightRun(&x, &y, 1.0f);
        GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(rig.ep->runtime())));
      }
      reached = first_.allocs >= bad_alloc;
      const bool never_freed =
          reached && (first_.bad_answer == Answer::kNull || bad_alloc == 1 || first_.bad_answer == Answer::kSameAgain);
      EXPECT_EQ(first_.frees, first_.allocs - (never_freed ? 1 : 0));
      EXPECT_EQ(first_.foreign_frees, 0);
      EXPECT_EQ(first_.returned_badly, nullptr) << "what was refused went back";
      EXPECT_TRUE(first_.live.empty());
    }
    EXPECT_GT(bad_alloc, 2) << "a constant and a region of scratch at least";
    EXPECT_GT(failures, 0);
  }
}

// An application whose cache holds what it could give: the run gets its memory once the cache is empty.
TEST_F(ExternalSession, OutOfMemoryEmptiesTheCacheAndTriesAgain) {
  {
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(Callbacks<0>::Options()));
    DeviceFloats x(Floats(6)), y(Floats(6));
    rig.ExpectRightRun(&x, &y, 1.0f, GCAP_GRAPH_ID_NONE);
    rig.bounce.scratch_bytes = kManyBytes;
    first_.is_cache_full = true;
    rig.ExpectRightRun(&x, &y, 2.0f, GCAP_GRAPH_ID_NONE);
    EXPECT_EQ(first_.empty_caches, 1);
    EXPECT_GT(first_.refusals, 0);
  }
  first_.ExpectAllBack();
}

// --- Callbacks that call gcap ---------------------------------------------------------------------------------------

TEST_F(ExternalSession, CallbackMayUseTheVeryScratchThatItServes) {
  {
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(Callbacks<0>::Options()));
    gcap_scratch_t* scratch = gcap_runtime_scratch(rig.ep->runtime());
    int calls = 0;
    first_.on_alloc = [&] {
      const auto outer = std::exchange(first_.on_alloc, nullptr);  // what follows may need memory too
      ++calls;
      gcap_run_resources_t run;
      GCAP_EXPECT_OK(gcap_runtime_get_resources(rig.ep->runtime(), &run));
      void* block = nullptr;
      GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, kManyBytes, run.stream, &block));
      GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch), GCAP_FAILED_PRECONDITION, "blocks are handed out");
      GCAP_EXPECT_OK(gcap_scratch_free(scratch, block));
      void* weights = nullptr;
      GCAP_EXPECT_OK(gcap_allocator_reserve(run.allocator, 256, &weights));
      GCAP_EXPECT_OK(gcap_allocator_free(run.allocator, weights));
      GCAP_EXPECT_OK(gcap_scratch_trim(scratch));
      GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
      first_.on_alloc = outer;
    };
    for (size_t bytes : {size_t{1024}, 2 * kManyBytes, 4 * kManyBytes}) {
      rig.bounce.scratch_bytes = bytes;
      ExpectRightRuns(&rig);
    }
    EXPECT_GT(calls, 0);
    first_.on_alloc = nullptr;
  }
  first_.ExpectAllBack();
}

TEST_F(ExternalSession, ScratchDoesNotEndWhileACallbackServesIt) {
  gcap_external_allocator_options_t options;
  gcap_external_allocator_options_init(&options);
  options.alloc = Callbacks<0>::Alloc;
  options.free = Callbacks<0>::Free;
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_external_allocator_create(&options, &allocator));
  gcap_scratch_t* scratch = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_create(allocator, nullptr, &scratch));
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  int calls = 0;
  first_.on_alloc = [&] {
    ++calls;
    GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch), GCAP_FAILED_PRECONDITION, "1 calls wait for upstream");
  };
  void* block = nullptr;
  GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, 256, stream, &block));
  EXPECT_EQ(calls, 1);
  GCAP_EXPECT_OK(gcap_scratch_free(scratch, block));
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  gcap_allocator_destroy(allocator);
  first_.on_alloc = nullptr;
  first_.ExpectAllBack();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
