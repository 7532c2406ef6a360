// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// From each kind of callback of a scratch, everything that a scratch can do: upstream's members, the callback for
// events, and the log sink at each of its occasions. No lock is held, nothing is lost, and events come in order. Also:
// a callback that its thread is cancelled in.

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "gcap/allocator_ops.h"
#include "gcap/log.h"
#include "gtest/gtest.h"
#include "lib/scratch/inner.h"
#include "test/scratch/scratch_test_support.h"
#include "test/support/allocator_stats.h"

namespace gcap {
namespace testing {
namespace {

// An upstream that calls back before each of its members does anything.
class Calling {
 public:
  explicit Calling(gcap_allocator_t* below) : below_(below) {
    gcap_allocator_ops_t ops = {};
    ops.struct_version = GCAP_ALLOCATOR_OPS_VERSION;
    ops.device_id = StatsOf(below).device_id;
    ops.alignment = StatsOf(below).alignment;
    ops.self = this;
    ops.alloc = [](void* self, size_t bytes, void** out) {
      Run(static_cast<Calling*>(self)->on_alloc);
      return gcap_allocator_alloc(static_cast<Calling*>(self)->below_, bytes, out);
    };
    ops.free = [](void* self, void* ptr) {
      Run(static_cast<Calling*>(self)->on_free);
      return gcap_allocator_free(static_cast<Calling*>(self)->below_, ptr);
    };
    ops.trim = [](void* self) {
      Run(static_cast<Calling*>(self)->on_trim);
      return gcap_allocator_trim(static_cast<Calling*>(self)->below_);
    };
    GCAP_EXPECT_OK(gcap_allocator_create(&ops, &allocator_));
  }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;
  ~Calling() { gcap_allocator_destroy(allocator_); }
  gcap_allocator_t* get() const { return allocator_; }

  std::function<void()> on_alloc, on_free, on_trim;

 private:
  static void Run(const std::function<void()>& callback) {
    if (callback) callback();
  }
  gcap_allocator_t* below_;
  gcap_allocator_t* allocator_ = nullptr;
};

class ScratchCallbacks : public ScratchTest {
 protected:
  void SetUp() override {
    ScratchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(gcap_scratch_destroy(scratch_));
    options_.on_event = [](void* self, const gcap_allocator_event_t* event) {
      static_cast<ScratchCallbacks*>(self)->OnEvent(*event);
    };
    options_.user = this;
    GCAP_ASSERT_OK(gcap_scratch_create(calling_.get(), &options_, &scratch_));
    gcap_log_set_sink([](void* self, gcap_log_level_t, const char*) { static_cast<ScratchCallbacks*>(self)->OnLog(); },
                      this, GCAP_LOG_WARNING);
  }
  void TearDown() override {
    gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING);
    options_.user = nullptr;
    ScratchTest::TearDown();
    for (size_t i = 0; i < sequences_.size(); ++i) EXPECT_EQ(sequences_[i], i + 1) << "events come in order";
  }

  // Once in the test: what a callback might do, on a stream of its own. The calls that it makes call back as well.
  void UseEverything() {
    if (++num_callbacks_ != 1) return;
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 100, c_, &ptr));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 5 * kChunk, c_, &ptr));  // grows
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
    GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, c_));
    gcap_scratch_set_node(scratch_, c_, "of the callback");
    void* left = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 100, c_, &left));
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 100, c_, &ptr));
    GCAP_EXPECT_OK(gcap_scratch_keep(scratch_, ptr));
    GCAP_EXPECT_OK(gcap_scratch_end_run(scratch_, c_));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
    gcap_scratch_reservation_t* reservation = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_reservation_prepare(scratch_, c_));
    GCAP_EXPECT_OK(gcap_scratch_reservation_open(scratch_, c_, &reservation));
    gcap_scratch_reservation_set_label(reservation, "of the callback");
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 100, c_, &ptr));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
    EXPECT_EQ(gcap_scratch_reservation_bytes(reservation), kGranule);
    gcap_scratch_reservation_close(reservation);
    GCAP_EXPECT_OK(gcap_scratch_reservation_reopen(reservation));
    gcap_scratch_reservation_release(reservation);
    gcap_scratch_reservation_release(reservation);
    for (const auto alloc : {gcap_allocator_alloc, gcap_allocator_reserve}) {
      GCAP_EXPECT_OK(alloc(gcap_scratch_allocator(scratch_), 100, &ptr));
      GCAP_EXPECT_OK(gcap_allocator_free(gcap_scratch_allocator(scratch_), ptr));
    }
    GCAP_EXPECT_OK(gcap_stream_synchronize(c_));
    GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, c_));
    GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
    char text[256];
    EXPECT_GT(gcap_scratch_describe(scratch_, text, sizeof(text)), 0);
    EXPECT_GE(Stats().num_allocs, 1u);
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
    GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION, "scratch cannot end");
  }
  std::function<void()> use_everything_ = [this] { UseEverything(); };

  void OnEvent(const gcap_allocator_event_t& event) {
    sequences_.push_back(event.sequence);
    if (on_event_) on_event_();
  }
  void OnLog() {
    if (on_log_) on_log_();
  }

  Calling calling_{upstream_.get()};
  std::function<void()> on_event_, on_log_;
  std::vector<uint64_t> sequences_;
  int num_callbacks_ = 0;
};

TEST_F(ScratchCallbacks, OfUpstreamsAllocMayUseTheScratch) {
  calling_.on_alloc = use_everything_;
  Free(Alloc(kGranule, a_));
  EXPECT_GE(num_callbacks_, 1);
}

TEST_F(ScratchCallbacks, OfUpstreamsAllocForAReserveMayUseTheScratch) {
  calling_.on_alloc = use_everything_;
  void* ptr = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_reserve(gcap_scratch_allocator(scratch_), kGranule, &ptr));
  EXPECT_GE(num_callbacks_, 1);
  calling_.on_free = [this] {
    num_callbacks_ = 0;
    calling_.on_free = nullptr;
    UseEverything();
  };
  GCAP_EXPECT_OK(gcap_allocator_free(gcap_scratch_allocator(scratch_), ptr));
  EXPECT_GE(num_callbacks_, 1);
}

TEST_F(ScratchCallbacks, OfUpstreamsFreeMayUseTheScratch) {
  Free(Alloc(kGranule, a_));
  Synchronize(a_);
  calling_.on_free = use_everything_;
  Trim();
  EXPECT_GE(num_callbacks_, 1);
}

TEST_F(ScratchCallbacks, OfUpstreamsTrimMayUseTheScratch) {
  options_.extend_as_requested = true;
  upstream_.cached_bytes = kChunk;
  upstream_.capacity_bytes = 8 * kChunk;
  calling_.on_trim = use_everything_;
  Free(Alloc(8 * kChunk, a_));
  EXPECT_GE(num_callbacks_, 1);
}

// What upstream takes back at the end it may ask for again.
TEST_F(ScratchCallbacks, OfUpstreamsFreeAtTheEndMayUseTheScratch) {
  Free(Alloc(kGranule, a_));
  Synchronize(a_);
  void* ptr = nullptr;
  calling_.on_free = [&] {
    calling_.on_free = nullptr;
    UseEverything();
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 100, c_, &ptr));
  };
  GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION, "1 blocks are handed out");
  EXPECT_EQ(num_callbacks_, 1);
  Validate();
  Free(ptr);
  Synchronize(c_);
  calling_.on_free = [&] {
    calling_.on_free = nullptr;
    Free(Alloc(100, c_));
  };
  GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION, "holds 1 regions again");
  Validate();
}

TEST_F(ScratchCallbacks, ForEventsMayUseTheScratch) {
  void* held = nullptr;
  const std::vector<std::function<void()>> operations = {
      [&] { held = Alloc(kGranule, a_); },
      [&] { Free(held); },
      [&] { GCAP_EXPECT_OK(gcap_scratch_trim(scratch_)); },
  };
  void* other = Alloc(kGranule, b_);  // so that no callback may end the scratch
  for (const auto& operation : operations) {
    num_callbacks_ = 0;
    on_event_ = use_everything_;
    operation();
    EXPECT_GE(num_callbacks_, 1);
  }
  on_event_ = nullptr;
  Free(other);
}

// The last event of all: nothing is left to be done after it.
TEST_F(ScratchCallbacks, ForEventsMayEndTheScratch) {
  void* ptr = Alloc(kGranule, a_);
  on_event_ = [this] {
    on_event_ = nullptr;
    Synchronize(a_);
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
  };
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
  scratch_ = nullptr;
}

// With a trace file a sink that took scratch waited for the line of its own caller, for ever.
TEST_F(ScratchCallbacks, ForTheLogOfTroubleMayUseTheScratch) {
  Free(Alloc(kChunk, a_));
  Synchronize(a_);
  upstream_.cached_bytes = kChunk;
  upstream_.capacity_bytes = 12 * kChunk;
  upstream_.refuses_free = true;
  on_log_ = [this] {
    upstream_.refuses_free = false;
    upstream_.capacity_bytes = SIZE_MAX;
    UseEverything();
  };
  Free(Alloc(11 * kChunk, b_));
  EXPECT_GE(num_callbacks_, 1);
}

TEST_F(ScratchCallbacks, ForTheLogOfADeficitMayUseTheScratch) {
  Free(Alloc(kChunk, a_));
  gcap_scratch_reservation_t* reservation = Open(a_);
  ExpectAllocFails(2 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, "lacks");
  Release(reservation);
  upstream_.most_bytes = 0;
  on_log_ = [this] {
    upstream_.most_bytes = SIZE_MAX;
    UseEverything();
  };
  Free(Alloc(kGranule, a_));
  EXPECT_GE(num_callbacks_, 1);
}

TEST_F(ScratchCallbacks, ForTheLogOfARunMayUseTheScratch) {
  GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, a_));
  Alloc(kGranule, a_);
  on_log_ = use_everything_;
  GCAP_EXPECT_OK(gcap_scratch_end_run(scratch_, a_));
  EXPECT_GE(num_callbacks_, 1);
  Validate();
}

// --- Cancelled threads ----------------------------------------------------------------------------------------------

// A thread that is to be cancelled when it comes by a place where that may happen.
class Cancelled {
 public:
  // Called in the callback: waits for the cancellation, and is a place where the thread may be cancelled.
  void Reach() {
    reached_ = true;
    while (!cancelled_) usleep(1000);
    pthread_testcancel();
  }
  // Runs `work` on a thread, and cancels the thread once it is in the callback.
  void Run(std::function<void()> work) {
    const auto body = [](void* user) -> void* {
      (*static_cast<std::function<void()>*>(user))();
      pthread_testcancel();
      return user;
    };
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, nullptr, body, &work), 0);
    while (!reached_) usleep(1000);
    EXPECT_EQ(pthread_cancel(thread), 0);
    cancelled_ = true;
    void* result = nullptr;
    EXPECT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED) << "it is cancelled when the call is over";
  }

 private:
  std::atomic<bool> reached_{false}, cancelled_{false};
};

// It died there, and what was under way was under way for ever: the scratch could not be destroyed.
TEST_F(ScratchCallbacks, AThreadIsNotCancelledInUpstream) {
  void* ptr = nullptr;
  Cancelled fetching;
  calling_.on_alloc = [&] { fetching.Reach(); };
  fetching.Run([&] { GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 100, a_, &ptr)); });
  calling_.on_alloc = nullptr;
  ASSERT_NE(ptr, nullptr);
  Free(ptr);
  Synchronize(a_);
  Cancelled trimming;
  calling_.on_free = [&] { trimming.Reach(); };
  trimming.Run([&] { GCAP_EXPECT_OK(gcap_scratch_trim(scratch_)); });
  calling_.on_free = nullptr;
  EXPECT_EQ(upstream_.num_regions(), 0u);
  Validate();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
