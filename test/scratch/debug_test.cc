// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch's debug options: what they tell of good programs and of bad ones. The memory is a device's, and the damage is
// done on it.

#include <cstdint>
#include <vector>

#include "gcap/allocator.h"
#include "gcap/scratch.h"
#include "gtest/gtest.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

class ScratchDebug : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (gcap_stream_t** stream : {&a_, &b_}) GCAP_ASSERT_OK(gcap_stream_create(0, stream));
    GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device_));
    gcap_scratch_options_init(&options_);
  }
  void TearDown() override {
    for (gcap_stream_t* stream : {a_, b_}) {
      if (stream != nullptr) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    }
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    gcap_allocator_destroy(device_);
    for (gcap_stream_t* stream : {a_, b_}) GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }

  // Makes the scratch, with the options of now.
  void Create() { GCAP_ASSERT_OK(gcap_scratch_create(device_, &options_, &scratch_)); }
  char* Alloc(size_t bytes, gcap_stream_t* stream) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, bytes, stream, &ptr));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(ptr) % 256, 0u);
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
    return static_cast<char*>(ptr);
  }
  void Free(void* ptr) {
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
  }

  gcap_scratch_options_t options_;
  gcap_allocator_t* device_ = nullptr;
  gcap_scratch_t* scratch_ = nullptr;
  gcap_stream_t* a_ = nullptr;
  gcap_stream_t* b_ = nullptr;
};

// --- Events ---------------------------------------------------------------------------------------------------------

class ScratchEvents : public ScratchDebug {
 protected:
  void SetUp() override {
    ScratchDebug::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    options_.on_event = [](void* user, const gcap_allocator_event_t* event) {
      static_cast<ScratchEvents*>(user)->events_.push_back(*event);
    };
    options_.user = this;
    Create();
  }
  void ExpectEvent(size_t i, const gcap_allocator_event_t& expected) {
    ASSERT_LT(i, events_.size());
    const gcap_allocator_event_t& event = events_[i];
    EXPECT_EQ(event.kind, expected.kind);
    EXPECT_EQ(event.sequence, expected.sequence);
    EXPECT_EQ(event.block, expected.block);
    EXPECT_EQ(event.bytes, expected.bytes);
    EXPECT_EQ(event.ptr, expected.ptr);
    EXPECT_EQ(event.stream, expected.stream);
  }

  std::vector<gcap_allocator_event_t> events_;
};

TEST_F(ScratchEvents, TellOfEachAllocationFreeAndTrim) {
  char* first = Alloc(300, a_);
  char* second = Alloc(5, b_);
  Free(first);
  char* third = Alloc(1000, a_);
  Free(third);
  Free(second);
  GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
  ASSERT_EQ(events_.size(), 7u);
  ExpectEvent(0, {GCAP_ALLOCATOR_EVENT_ALLOC, 1, 1, 300, first, a_});
  ExpectEvent(1, {GCAP_ALLOCATOR_EVENT_ALLOC, 2, 2, 5, second, b_});
  ExpectEvent(2, {GCAP_ALLOCATOR_EVENT_FREE, 3, 1, 300, first, nullptr});
  ExpectEvent(3, {GCAP_ALLOCATOR_EVENT_ALLOC, 4, 4, 1000, third, a_});
  ExpectEvent(4, {GCAP_ALLOCATOR_EVENT_FREE, 5, 4, 1000, third, nullptr});
  ExpectEvent(5, {GCAP_ALLOCATOR_EVENT_FREE, 6, 2, 5, second, nullptr});
  ExpectEvent(6, {GCAP_ALLOCATOR_EVENT_TRIM, 7, 0, 0, nullptr, nullptr});
}

TEST_F(ScratchEvents, AreNotMadeOfWhatFailedOrWasNothing) {
  void* ptr = nullptr;
  GCAP_EXPECT_FAILS(gcap_scratch_alloc(scratch_, 100, nullptr, &ptr), GCAP_INVALID_ARGUMENT, "stream");
  GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 0, a_, &ptr));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, nullptr));
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, this), GCAP_INVALID_ARGUMENT, "not allocated");
  EXPECT_TRUE(events_.empty());
  Free(Alloc(100, a_));
  EXPECT_EQ(events_.size(), 2u);
}

// The callback holds nothing, so it may use the scratch that called it.
TEST_F(ScratchDebug, EventsMayBeAnsweredByMoreCalls) {
  struct Nested {
    gcap_scratch_t* scratch = nullptr;
    gcap_stream_t* stream = nullptr;
    int events = 0;
  } nested;
  options_.on_event = [](void* user, const gcap_allocator_event_t*) {
    Nested* self = static_cast<Nested*>(user);
    if (++self->events > 1) return;
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(self->scratch, 50, self->stream, &ptr));
    GCAP_EXPECT_OK(gcap_scratch_free(self->scratch, ptr));
  };
  options_.user = &nested;
  Create();
  nested.scratch = scratch_;
  nested.stream = b_;
  Free(Alloc(100, a_));
  EXPECT_EQ(nested.events, 4);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
