// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Threads that lack memory at once: one of them gets a region, the others wait for it and look there first. So the
// arena holds what it would if they had come one after the other. Upstream is held until all of them are on their way.

#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "test/scratch/scratch_test_support.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kThreads = 8;
constexpr size_t kBytes = 1200000;  // of one thread's block; all of them fit into the first region
constexpr size_t kFirstRegionBytes = size_t{20} << 20;

class Growth : public ScratchTest {
 protected:
  void SetUp() override {
    ScratchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (gcap_stream_t*& stream : streams_) GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
    gcap_scratch_options_init(&options_);
    hooks_.wait_for_ever = true;
    Create();
    upstream_.on_alloc = [this] {
      ++num_inside_;
      while (is_held_ && std::this_thread::get_id() != passes_) usleep(1000);
    };
  }
  void TearDown() override {
    if (reservation_ != nullptr) Release(reservation_);
    ScratchTest::TearDown();
    for (gcap_stream_t* stream : streams_) GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }
  // Each stream's work on a thread of its own. Upstream answers none before all of them wait.
  void RunAtOnce(const std::function<void(gcap_stream_t*)>& work) {
    is_held_ = true;
    std::vector<std::thread> threads;
    for (gcap_stream_t* stream : streams_) threads.emplace_back([=] { work(stream); });
    AwaitCalls(kThreads);
    is_held_ = false;
    for (std::thread& thread : threads) thread.join();
  }
  // The scratch anew, with something in it that keeps it from being destroyed.
  void Create() {
    if (reservation_ != nullptr) Release(reservation_);
    ScratchTest::Create();
    reservation_ = Open(c_);
    Close(reservation_);
  }
  // Until so many calls of the scratch wait.
  void AwaitCalls(size_t count) {
    const std::string told = ", " + std::to_string(count) + " calls wait";
    while (!Outcome(gcap_scratch_destroy(scratch_)).Names(told)) usleep(1000);
  }

  gcap_scratch_reservation_t* reservation_ = nullptr;
  gcap_stream_t* streams_[kThreads] = {};
  std::atomic<bool> is_held_{false};
  std::thread::id passes_;  // is not held
  std::atomic<int> num_inside_{0};
};

// They held eight regions, and one when they came one after the other.
TEST_F(Growth, OfThreadsThatLackMemoryAtOnceIsOneRegion) {
  std::atomic<size_t> num_given{0};
  RunAtOnce([&](gcap_stream_t* stream) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, kBytes, stream, &ptr));
    ++num_given;
    while (num_given < kThreads) usleep(1000);
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
  });
  EXPECT_EQ(Stats().num_extensions, 1u);
  EXPECT_EQ(Stats().total_allocated_bytes, kFirstRegionBytes);
  Validate();
}

TEST_F(Growth, OfThreadsThatNameNoStreamIsOneRegion) {
  RunAtOnce([&](gcap_stream_t*) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_alloc(gcap_scratch_allocator(scratch_), kBytes, &ptr));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
  });
  EXPECT_EQ(Stats().total_allocated_bytes, kFirstRegionBytes);
}

// What each of them gets is less than all of them need: the second region comes when the first one is used up.
TEST_F(Growth, GoesOnWhereOneRegionIsNotEnough) {
  std::atomic<size_t> num_given{0};
  RunAtOnce([&](gcap_stream_t* stream) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 5 * kBytes, stream, &ptr));
    ++num_given;
    while (num_given < kThreads) usleep(1000);
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
  });
  const size_t per_region = kFirstRegionBytes / (5 * kBytes);
  EXPECT_EQ(Stats().num_extensions, (kThreads + per_region - 1) / per_region);
}

// All of them had run, and a trim has given everything back.
TEST_F(Growth, OfThreadsThatPrepareCapturesAtOnceIsOneRegion) {
  for (gcap_stream_t* stream : streams_) {
    Free(Alloc(kBytes, stream));
    Synchronize(stream);
    Trim();
  }
  ASSERT_EQ(Stats().total_allocated_bytes, 0u);
  const uint64_t num_extensions = Stats().num_extensions;
  RunAtOnce([&](gcap_stream_t* stream) { GCAP_EXPECT_OK(gcap_scratch_reservation_prepare(scratch_, stream)); });
  EXPECT_EQ(Stats().num_extensions, num_extensions + 1);
  upstream_.most_bytes = 0;
  for (gcap_stream_t* stream : streams_) Free(Alloc(kBytes, stream));
}

TEST_F(Growth, ThatFailsIsTriedByTheOthersThemselves) {
  upstream_.most_bytes = 0;
  hooks_.fail_at_once = true;  // nobody gives anything back
  Create();
  std::atomic<int> num_refused{0};
  RunAtOnce([&](gcap_stream_t* stream) {
    void* ptr = nullptr;
    if (Outcome(gcap_scratch_alloc(scratch_, kBytes, stream, &ptr)).code == GCAP_RESOURCE_EXHAUSTED) ++num_refused;
  });
  EXPECT_EQ(num_refused, static_cast<int>(kThreads));
  Validate();
}

// A thread that captures waits for nobody: it asks upstream, which refuses or not.
TEST_F(Growth, IsNotWaitedForByAThreadThatCaptures) {
  is_held_ = true;
  passes_ = std::this_thread::get_id();
  std::thread other([this] { Free(Alloc(kBytes, streams_[0])); });
  AwaitCalls(1);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(a_), nullptr, &capture));
  Free(Alloc(kBytes, b_));
  EXPECT_EQ(Stats().num_extensions, 1u);
  gcap_capture_abort(capture);
  is_held_ = false;
  other.join();
  EXPECT_EQ(Stats().num_extensions, 2u);
}

// What another thread gives back counts for the limit until upstream has it. Behind the wait nothing needs a trim.
TEST_F(Growth, WaitsForWhatAnotherThreadGivesBack) {
  options_.memory_limit_bytes = kFirstRegionBytes;
  Create();
  Free(Alloc(kBytes, a_));
  Synchronize(a_);
  std::atomic<bool> is_leaving{false}, may_leave{false};
  upstream_.on_release = [&](const char*, size_t) {
    is_leaving = true;
    while (!may_leave) usleep(1000);
  };
  std::thread gives([this] { Trim(); });
  while (!is_leaving) usleep(1000);
  std::thread lacks([this] { Free(Alloc(kBytes, b_)); });
  AwaitCalls(2);
  may_leave = true;
  gives.join();
  lacks.join();
  upstream_.on_release = nullptr;
  EXPECT_EQ(Stats().num_extensions, 2u);
  EXPECT_EQ(upstream_.num_trims(), 0u);
}

// Upstream may have another thread do its work, which uses the scratch: the wait has an end.
TEST_F(Growth, ThatWaitsForTheThreadThatWaitsForItGoesOn) {
  hooks_.wait_for_ever = false;
  Create();
  bool is_first = true;
  upstream_.on_alloc = [&] {
    if (!is_first) return;
    is_first = false;
    std::thread([this] { Free(Alloc(kBytes, b_)); }).join();
  };
  Free(Alloc(kBytes, a_));
  EXPECT_EQ(Stats().num_extensions, 2u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
