// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The external adapter: what of the application's callbacks is called when, and what becomes of their wrong answers.

#include "gcap/external_allocator.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "test/allocator/external_callbacks.h"
#include "test/support/allocator_stats.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class ExternalAllocator : public DeviceTest {
 protected:
  using Calls = std::vector<std::string>;

  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    application = {};
    const gcap_external_allocator_options_t options = ExternalOptions(0);
    GCAP_ASSERT_OK(gcap_external_allocator_create(&options, &allocator_));
  }
  void TearDown() override {
    gcap_allocator_destroy(allocator_);
    EXPECT_EQ(application.num_blocks, 0u);
    application = {};
  }

  void* Alloc(size_t bytes) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_alloc(allocator_, bytes, &ptr));
    return ptr;
  }
  void Free(void* ptr) { GCAP_EXPECT_OK(gcap_allocator_free(allocator_, ptr)); }
  void ExpectRejected(const gcap_external_allocator_options_t* options, const std::string& culprit) {
    gcap_allocator_t* allocator = nullptr;
    GCAP_EXPECT_FAILS(gcap_external_allocator_create(options, &allocator), GCAP_INVALID_ARGUMENT, culprit);
    EXPECT_EQ(allocator, nullptr);
  }
  gcap_allocator_stats_t Stats() {
    gcap_allocator_stats_t stats;
    gcap_allocator_get_stats(allocator_, &stats);
    return stats;
  }

  gcap_allocator_t* allocator_ = nullptr;
};

TEST_F(ExternalAllocator, CreateNeedsAllocAndFreeTogether) {
  ExpectRejected(nullptr, "NULL");
  gcap_external_allocator_options_t options = ExternalOptions(0);
  options.alloc = nullptr;
  ExpectRejected(&options, "free is given without alloc");
  options = ExternalOptions(0), options.free = nullptr;
  ExpectRejected(&options, "alloc is given without free");
  options.alloc = nullptr;
  ExpectRejected(&options, "both absent");
  options = ExternalOptions(-1);
  ExpectRejected(&options, "device_id is -1");
}

TEST_F(ExternalAllocator, PassesAllocAndFreeOn) {
  EXPECT_EQ(StatsOf(allocator_).device_id, 0);
  EXPECT_EQ(StatsOf(allocator_).alignment, 256u);
  void* ptr = Alloc(100);
  EXPECT_EQ(Stats().in_use_bytes, 100u);
  Free(ptr);
  EXPECT_EQ(application.TakeCalls(), (Calls{"alloc 100", "free"}));
  EXPECT_EQ(application.devices, (std::vector<int>{0, 0}));
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  EXPECT_EQ(Stats().num_allocs, 1u);
}

TEST_F(ExternalAllocator, ZeroBytesAndNullReachNoCallback) {
  EXPECT_EQ(Alloc(0), nullptr);
  Free(nullptr);
  EXPECT_EQ(application.calls, Calls{});
}

TEST_F(ExternalAllocator, EmptiesTheCacheAfterFreeingAReservedBlockOnly) {
  void* reserved = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_reserve(allocator_, 100, &reserved));
  void* ordinary = Alloc(200);
  EXPECT_EQ(Stats().num_reserves, 1u);
  application.TakeCalls();
  Free(ordinary);
  EXPECT_EQ(application.TakeCalls(), Calls{"free"});
  Free(reserved);
  EXPECT_EQ(application.TakeCalls(), (Calls{"free", "empty_cache"}));
}

TEST_F(ExternalAllocator, TrimEmptiesTheCache) {
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  EXPECT_EQ(application.TakeCalls(), Calls{"empty_cache"});
}

TEST_F(ExternalAllocator, DoesWithoutEmptyCache) {
  gcap_external_allocator_options_t options = ExternalOptions(0);
  options.empty_cache = nullptr;
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_external_allocator_create(&options, &allocator));
  void* ptr = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_reserve(allocator, 100, &ptr));
  GCAP_EXPECT_OK(gcap_allocator_free(allocator, ptr));
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator));
  gcap_allocator_destroy(allocator);
  EXPECT_EQ(application.TakeCalls(), (Calls{"alloc 100", "free"}));
}

TEST_F(ExternalAllocator, NullMeansOutOfMemory) {
  application.is_empty = true;
  void* ptr = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 4321, &ptr), GCAP_RESOURCE_EXHAUSTED, "4321");
  EXPECT_EQ(ptr, nullptr);
}

TEST_F(ExternalAllocator, GivesMisalignedMemoryBack) {
  // The application would free the address it gave; here it is one that must only come back.
  static void* freed;
  freed = nullptr;
  gcap_external_allocator_options_t options = ExternalOptions(0);
  alignas(256) static char memory[512];
  options.alloc = [](size_t) -> void* { return memory + 8; };
  options.free = [](void* ptr) { freed = ptr; };
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_external_allocator_create(&options, &allocator));
  void* ptr = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator, 16, &ptr), GCAP_LIBRARY_ERROR, "not aligned");
  EXPECT_EQ(ptr, nullptr);
  EXPECT_EQ(freed, memory + 8);
  gcap_allocator_destroy(allocator);
}

TEST_F(ExternalAllocator, RejectsAnAddressThatIsInUse) {
  void* first = Alloc(100);
  application.next_answer = first;
  application.TakeCalls();
  void* ptr = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 50, &ptr), GCAP_LIBRARY_ERROR, "in use");
  EXPECT_EQ(ptr, nullptr);
  EXPECT_EQ(application.TakeCalls(), Calls{"alloc 50"});  // not freed: the first owner uses it
  EXPECT_EQ(Stats().in_use_bytes, 100u);
  application.answers.clear();
  Free(first);
}

TEST_F(ExternalAllocator, RejectsMemoryThatReachesIntoABlock) {
  alignas(256) static char memory[16 * 256];
  application.next_answer = memory + 4 * 256;  // the block in use: granules 4 to 7
  void* block = Alloc(4 * 256);
  ASSERT_EQ(block, memory + 4 * 256);
  const struct {
    size_t first_granule, bytes;
  } rows[] = {{5, 1}, {7, 256}, {7, 2 * 256}, {0, 4 * 256 + 1}, {3, 6 * 256}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.first_granule);
    application.next_answer = memory + row.first_granule * 256;
    application.TakeCalls();
    void* ptr = this;
    GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, row.bytes, &ptr), GCAP_LIBRARY_ERROR, "overlap the 1024 bytes");
    EXPECT_EQ(ptr, nullptr);
    EXPECT_EQ(application.TakeCalls(), (Calls{"alloc " + std::to_string(row.bytes), "free"}));
    EXPECT_EQ(application.answers, std::vector<void*>{block}) << "the rejected address went back, the block did not";
    EXPECT_EQ(Stats().in_use_bytes, 1024u);
  }
  // Neighbours are no offence.
  for (size_t first_granule : {0, 8}) {
    application.next_answer = memory + first_granule * 256;
    void* neighbour = Alloc(4 * 256);
    EXPECT_EQ(neighbour, memory + first_granule * 256);
    Free(neighbour);
  }
  Free(block);
  application.next_answer = memory + 5 * 256;
  Free(Alloc(256));  // nobody uses it any more
  EXPECT_EQ(application.answers.size(), 0u);
}

TEST_F(ExternalAllocator, RejectsMemoryBeyondTheLastAddress) {
  application.next_answer = reinterpret_cast<void*>(~uintptr_t{255});
  void* ptr = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 512, &ptr), GCAP_LIBRARY_ERROR, "beyond the last address");
  EXPECT_EQ(ptr, nullptr);
  EXPECT_EQ(application.answers.size(), 0u) << "given back";
}

// Many blocks in no order of addresses: the neighbours of each are found.
TEST_F(ExternalAllocator, KnowsItsBlocksInAnyOrder) {
  constexpr size_t kBlocks = 64;
  alignas(256) static char memory[kBlocks * 512];
  const auto block = [](size_t i) { return memory + i % kBlocks * 512; };
  for (size_t i = 0; i < kBlocks; ++i) {
    application.next_answer = block(37 * i);
    ASSERT_EQ(Alloc(512), block(37 * i));
  }
  for (size_t i = 0; i < kBlocks; ++i) {
    application.next_answer = block(i) + 256;
    void* ptr = nullptr;
    GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 1, &ptr), GCAP_LIBRARY_ERROR, "overlap");
    Free(block(23 * i));
    application.next_answer = block(23 * i) + 256;
    Free(Alloc(256));
    application.next_answer = block(23 * i);
    ASSERT_EQ(Alloc(512), block(23 * i));
  }
  for (size_t i = 0; i < kBlocks; ++i) Free(block(41 * i));
  EXPECT_EQ(application.answers.size(), 0u);
}

TEST_F(ExternalAllocator, RejectsWhatItDidNotHandOut) {
  void* ptr = Alloc(1024);
  application.TakeCalls();
  GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, this), GCAP_INVALID_ARGUMENT, "not handed out");
  GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, static_cast<char*>(ptr) + 256), GCAP_INVALID_ARGUMENT,
                    "not handed out");
  EXPECT_EQ(application.TakeCalls(), Calls{});
  Free(ptr);
  GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, ptr), GCAP_INVALID_ARGUMENT, "not handed out");
  EXPECT_EQ(application.TakeCalls(), Calls{"free"});
}

TEST_F(ExternalAllocator, CallsNothingWhileItsThreadCaptures) {
  void* ptr = Alloc(100);
  application.TakeCalls();
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream, nullptr, &capture));
  void* other = nullptr;
  GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, ptr), GCAP_FAILED_PRECONDITION, "captures");
  GCAP_EXPECT_FAILS(gcap_allocator_trim(allocator_), GCAP_FAILED_PRECONDITION, "captures");
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 64, &other), GCAP_FAILED_PRECONDITION, "alloc of 64 bytes");
  GCAP_EXPECT_FAILS(gcap_allocator_reserve(allocator_, 32, &other), GCAP_FAILED_PRECONDITION, "reserve of 32 bytes");
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED,
                    "gcap_allocator_alloc of 64 bytes");
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(application.TakeCalls(), Calls{});
  Free(ptr);
}

// --- What callbacks may do ------------------------------------------------------------------------------------------

TEST_F(ExternalAllocator, AllocMayCallTheAllocator) {
  void* older = Alloc(30);
  void* inner = nullptr;
  application.TakeCalls();
  application.on_alloc = [&] {
    application.on_alloc = nullptr;
    inner = Alloc(10);
    Free(older);
    GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
    EXPECT_EQ(Stats().in_use_bytes, 10u);
  };
  void* outer = Alloc(20);
  EXPECT_EQ(application.TakeCalls(), (Calls{"alloc 20", "alloc 10", "free", "empty_cache"}));
  EXPECT_EQ(Stats().in_use_bytes, 30u);
  Free(inner);
  Free(outer);
}

TEST_F(ExternalAllocator, FreeAndEmptyCacheMayCallTheAllocator) {
  void* reserved = nullptr;
  void* of_free = nullptr;
  void* of_empty_cache = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_reserve(allocator_, 100, &reserved));
  application.TakeCalls();
  application.on_free = [&] {
    application.on_free = nullptr;
    of_free = Alloc(10);
    GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, reserved), GCAP_INVALID_ARGUMENT, "not handed out");
  };
  application.on_empty_cache = [&] {
    application.on_empty_cache = nullptr;
    of_empty_cache = Alloc(20);
    Free(of_free);
  };
  Free(reserved);
  EXPECT_EQ(application.TakeCalls(), (Calls{"free", "alloc 10", "empty_cache", "alloc 20", "free"}));
  EXPECT_EQ(Stats().in_use_bytes, 20u);
  Free(of_empty_cache);
}

TEST_F(ExternalAllocator, DestroyedInsideAllocEndsAndGivesTheMemoryBack) {
  const LogCatcher log;
  application.on_alloc = [&] {
    application.on_alloc = nullptr;
    gcap_allocator_destroy(std::exchange(allocator_, nullptr));
  };
  void* ptr = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 100, &ptr), GCAP_FAILED_PRECONDITION, "destroyed inside");
  EXPECT_EQ(ptr, nullptr);
  EXPECT_EQ(application.TakeCalls(), (Calls{"alloc 100", "free"}));
  EXPECT_NE(log.text().find("one of its callbacks"), std::string::npos) << log.text();
}

TEST_F(ExternalAllocator, DestroyedInsideFreeOrEmptyCacheEndsAfterIt) {
  const LogCatcher log;
  const auto destroy = [&] { gcap_allocator_destroy(std::exchange(allocator_, nullptr)); };
  void* reserved = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_reserve(allocator_, 100, &reserved));
  application.on_free = destroy;
  Free(reserved);
  EXPECT_EQ(application.TakeCalls(), (Calls{"alloc 100", "free", "empty_cache"}));
  const gcap_external_allocator_options_t options = ExternalOptions(0);
  GCAP_ASSERT_OK(gcap_external_allocator_create(&options, &allocator_));
  application.on_empty_cache = destroy;
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  EXPECT_EQ(application.TakeCalls(), Calls{"empty_cache"});
  EXPECT_EQ(log.text().find("handed out"), std::string::npos) << log.text();
}

// Else the next kernel launch would seem to have failed.
TEST_F(ExternalAllocator, LastErrorOfACallbackIsNotHandedOn) {
  const auto fail = [] { EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice); };
  application.on_alloc = application.on_free = application.on_empty_cache = fail;
  void* reserved = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_reserve(allocator_, 100, &reserved));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  Free(reserved);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  application.is_empty = true;
  void* ptr = nullptr;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 100, &ptr), GCAP_RESOURCE_EXHAUSTED, "100");
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(ExternalAllocator, LastErrorFromBeforeIsLeftAlone) {
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  Free(Alloc(100));
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST_F(ExternalAllocator, CaptureModeThatACallbackChangesIsRestored) {
  std::vector<cudaStreamCaptureMode> seen;
  application.on_alloc = application.on_free = application.on_empty_cache = [&] {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    seen.push_back(mode);
  };
  void* reserved = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_reserve(allocator_, 100, &reserved));
  Free(reserved);
  EXPECT_EQ(seen, std::vector<cudaStreamCaptureMode>(3, cudaStreamCaptureModeRelaxed)) << "alloc, free, empty_cache";
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
}

// --- Whose callbacks ------------------------------------------------------------------------------------------------

TEST_F(ExternalAllocator, CallbacksAreThoseOfItsCreation) {
  gcap_external_allocator_options_t options = ExternalOptions(0);
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_external_allocator_create(&options, &allocator));
  options.alloc = [](size_t) -> void* { return nullptr; };
  options.free = [](void*) { ADD_FAILURE() << "not this one"; };
  void* ptr = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_alloc(allocator, 100, &ptr));
  GCAP_EXPECT_OK(gcap_allocator_free(allocator, ptr));
  gcap_allocator_destroy(allocator);
  EXPECT_EQ(application.TakeCalls(), (Calls{"alloc 100", "free"}));
}

TEST_F(ExternalAllocator, KeepsToItsOwnCallbacks) {
  static int other_frees;
  other_frees = 0;
  gcap_external_allocator_options_t options;
  gcap_external_allocator_options_init(&options);
  options.alloc = [](size_t) { return std::aligned_alloc(256, 256); };
  options.free = [](void* ptr) { ++other_frees, std::free(ptr); };
  gcap_allocator_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_external_allocator_create(&options, &other));
  void* ours = Alloc(100);
  void* theirs = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_alloc(other, 100, &theirs));
  EXPECT_EQ(application.TakeCalls(), Calls{"alloc 100"});
  GCAP_EXPECT_FAILS(gcap_allocator_free(other, ours), GCAP_INVALID_ARGUMENT, "not handed out");
  GCAP_EXPECT_OK(gcap_allocator_free(other, theirs));
  EXPECT_EQ(other_frees, 1);
  EXPECT_EQ(application.TakeCalls(), Calls{});
  gcap_allocator_destroy(other);
  Free(ours);
}

TEST_F(ExternalAllocator, DestroySaysWhatIsLost) {
  const LogCatcher log;
  void* ptr = Alloc(100);
  gcap_allocator_destroy(allocator_);
  allocator_ = nullptr;
  EXPECT_NE(log.text().find("1 blocks (100 bytes)"), std::string::npos) << log.text();
  ExternalFree(ptr);  // the application's, as before
}

TEST_F(ExternalAllocator, DestroySaysNothingWhereNothingIsLost) {
  const LogCatcher log;
  Free(Alloc(100));
  gcap_allocator_destroy(allocator_);
  allocator_ = nullptr;
  EXPECT_EQ(log.text(), "");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
