// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The allocator interface over a table of our own: what is checked, what is filled in, what callers can rely on.

#include "gcap/allocator.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gcap/allocator_ops.h"
#include "gtest/gtest.h"
#include "test/support/allocator_stats.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

// An implementation that writes down how it is called.
struct Recorder {
  std::vector<std::string> calls;
  bool fail = false;
  bool give_nothing = false;
  char memory[64];

  gcap_status_t Give(const std::string& call, void** out_ptr) {
    calls.push_back(call);
    *out_ptr = give_nothing ? nullptr : memory;  // also on failure: the caller must not see it
    return fail ? GCAP_STATUS(GCAP_UNAVAILABLE, "%s is not in the mood", call.c_str()) : nullptr;
  }
  gcap_status_t Note(const std::string& call) {
    calls.push_back(call);
    return fail ? GCAP_STATUS(GCAP_UNAVAILABLE, "%s is not in the mood", call.c_str()) : nullptr;
  }
};

Recorder* Self(void* self) { return static_cast<Recorder*>(self); }

gcap_allocator_ops_t RequiredOps(Recorder* recorder) {
  gcap_allocator_ops_t ops = {};
  ops.struct_version = GCAP_ALLOCATOR_OPS_VERSION;
  ops.device_id = 3;
  ops.alignment = 64;
  ops.self = recorder;
  ops.alloc = [](void* self, size_t bytes, void** out_ptr) {
    return Self(self)->Give("alloc " + std::to_string(bytes), out_ptr);
  };
  ops.free = [](void* self, void*) { return Self(self)->Note("free"); };
  return ops;
}

gcap_allocator_ops_t AllOps(Recorder* recorder) {
  gcap_allocator_ops_t ops = RequiredOps(recorder);
  ops.alloc_on_stream = [](void* self, size_t bytes, gcap_stream_t*, void** out_ptr) {
    return Self(self)->Give("alloc_on_stream " + std::to_string(bytes), out_ptr);
  };
  ops.reserve = [](void* self, size_t bytes, void** out_ptr) {
    return Self(self)->Give("reserve " + std::to_string(bytes), out_ptr);
  };
  ops.trim = [](void* self) { return Self(self)->Note("trim"); };
  ops.get_stats = [](void*, gcap_allocator_stats_t* out_stats) { out_stats->num_allocs = 7; };
  ops.destroy = [](void* self) { Self(self)->calls.push_back("destroy"); };
  return ops;
}

class Allocator : public ::testing::Test {
 protected:
  using Calls = std::vector<std::string>;

  void TearDown() override { gcap_allocator_destroy(allocator_); }
  void Create(const gcap_allocator_ops_t& ops) { GCAP_ASSERT_OK(gcap_allocator_create(&ops, &allocator_)); }
  void ExpectRejected(const gcap_allocator_ops_t* ops, const std::string& culprit) {
    GCAP_EXPECT_FAILS(gcap_allocator_create(ops, &allocator_), GCAP_INVALID_ARGUMENT, culprit);
    EXPECT_EQ(allocator_, nullptr);
  }
  Calls TakeCalls() { return std::exchange(recorder_.calls, {}); }

  Recorder recorder_;
  gcap_allocator_t* allocator_ = nullptr;
  void* ptr_ = this;                                                      // something that must be overwritten
  gcap_stream_t* const stream_ = reinterpret_cast<gcap_stream_t*>(this);  // nobody looks into it
};

TEST_F(Allocator, CreateRejectsABadTable) {
  ExpectRejected(nullptr, "NULL");
  const gcap_allocator_ops_t good = AllOps(&recorder_);
  gcap_allocator_ops_t ops = good;
  ops.struct_version = 0;
  ExpectRejected(&ops, "is 0");
  ops.struct_version = GCAP_ALLOCATOR_OPS_VERSION + 1;
  ExpectRejected(&ops, "is " + std::to_string(GCAP_ALLOCATOR_OPS_VERSION + 1));
  ops = good, ops.alloc = nullptr;
  ExpectRejected(&ops, "member alloc");
  ops = good, ops.free = nullptr;
  ExpectRejected(&ops, "member free");
  for (size_t alignment : {0, 3, 96}) {
    ops = good, ops.alignment = alignment;
    ExpectRejected(&ops, "alignment of the allocator's ops is " + std::to_string(alignment));
  }
  ops = good, ops.device_id = -2;
  ExpectRejected(&ops, "-2");
  EXPECT_EQ(recorder_.calls, Calls{});  // destroy in particular
}

TEST_F(Allocator, CopiesTheTable) {
  gcap_allocator_ops_t ops = AllOps(&recorder_);
  Create(ops);
  ops = {};
  EXPECT_EQ(StatsOf(allocator_).device_id, 3);
  EXPECT_EQ(StatsOf(allocator_).alignment, 64u);
  GCAP_EXPECT_OK(gcap_allocator_alloc(allocator_, 5, &ptr_));
  EXPECT_EQ(TakeCalls(), Calls{"alloc 5"});
}

TEST_F(Allocator, CallsEachMemberWithItsArguments) {
  Create(AllOps(&recorder_));
  GCAP_EXPECT_OK(gcap_allocator_alloc(allocator_, 5, &ptr_));
  EXPECT_EQ(ptr_, recorder_.memory);
  GCAP_EXPECT_OK(gcap_allocator_alloc_on_stream(allocator_, 6, stream_, &ptr_));
  GCAP_EXPECT_OK(gcap_allocator_reserve(allocator_, 7, &ptr_));
  GCAP_EXPECT_OK(gcap_allocator_free(allocator_, ptr_));
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  gcap_allocator_stats_t stats;
  gcap_allocator_get_stats(allocator_, &stats);
  EXPECT_EQ(stats.num_allocs, 7u);
  EXPECT_EQ(stats.in_use_bytes, 0u);  // zeroed before the implementation saw it
  gcap_allocator_destroy(allocator_);
  allocator_ = nullptr;
  EXPECT_EQ(TakeCalls(), (Calls{"alloc 5", "alloc_on_stream 6", "reserve 7", "free", "trim", "destroy"}));
}

TEST_F(Allocator, WhateverAMemberDoesToTheSizeOfTheStatsTheCallerKeepsHis) {
  gcap_allocator_ops_t ops = AllOps(&recorder_);
  ops.get_stats = [](void*, gcap_allocator_stats_t* out_stats) {
    EXPECT_EQ(out_stats->struct_size, sizeof(*out_stats));
    gcap_allocator_stats_t stats = {};
    stats.limit_bytes = 8;
    *out_stats = stats;
  };
  Create(ops);
  gcap_allocator_stats_t stats;
  gcap_allocator_get_stats(allocator_, &stats);
  EXPECT_EQ(stats.struct_size, sizeof(stats));
  EXPECT_EQ(stats.limit_bytes, 8u);
}

TEST_F(Allocator, FillsInAbsentOptionalMembers) {
  Create(RequiredOps(&recorder_));
  GCAP_EXPECT_OK(gcap_allocator_alloc_on_stream(allocator_, 6, stream_, &ptr_));
  GCAP_EXPECT_OK(gcap_allocator_reserve(allocator_, 7, &ptr_));
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  gcap_allocator_stats_t stats;
  stats.num_allocs = 1;
  gcap_allocator_get_stats(allocator_, &stats);
  EXPECT_EQ(stats.num_allocs, 0u);
  EXPECT_EQ(TakeCalls(), (Calls{"alloc 6", "alloc 7"}));
}

TEST_F(Allocator, ZeroBytesAndNullReachNoImplementation) {
  Create(AllOps(&recorder_));
  GCAP_EXPECT_OK(gcap_allocator_alloc(allocator_, 0, &ptr_));
  EXPECT_EQ(ptr_, nullptr);
  ptr_ = this;
  GCAP_EXPECT_OK(gcap_allocator_alloc_on_stream(allocator_, 0, stream_, &ptr_));
  EXPECT_EQ(ptr_, nullptr);
  ptr_ = this;
  GCAP_EXPECT_OK(gcap_allocator_reserve(allocator_, 0, &ptr_));
  EXPECT_EQ(ptr_, nullptr);
  GCAP_EXPECT_OK(gcap_allocator_free(allocator_, nullptr));
  EXPECT_EQ(TakeCalls(), Calls{});
  gcap_allocator_destroy(nullptr);
}

TEST_F(Allocator, FailuresPassThroughAndGiveNull) {
  Create(AllOps(&recorder_));
  recorder_.fail = true;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 5, &ptr_), GCAP_UNAVAILABLE, "alloc 5");
  EXPECT_EQ(ptr_, nullptr);
  ptr_ = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc_on_stream(allocator_, 6, stream_, &ptr_), GCAP_UNAVAILABLE, "stream 6");
  EXPECT_EQ(ptr_, nullptr);
  ptr_ = this;
  GCAP_EXPECT_FAILS(gcap_allocator_reserve(allocator_, 7, &ptr_), GCAP_UNAVAILABLE, "reserve 7");
  EXPECT_EQ(ptr_, nullptr);
  GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, recorder_.memory), GCAP_UNAVAILABLE, "free");
  GCAP_EXPECT_FAILS(gcap_allocator_trim(allocator_), GCAP_UNAVAILABLE, "trim");
}

TEST_F(Allocator, AMissingArgumentIsNamedAndReachesNoImplementation) {
  const gcap_allocator_ops_t ops = AllOps(&recorder_);
  GCAP_EXPECT_FAILS(gcap_allocator_create(&ops, nullptr), GCAP_INVALID_ARGUMENT, "out_allocator is NULL");
  Create(ops);
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(nullptr, 5, &ptr_), GCAP_INVALID_ARGUMENT, "_alloc: allocator is NULL");
  EXPECT_EQ(ptr_, nullptr);
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 5, nullptr), GCAP_INVALID_ARGUMENT, "_alloc: out_ptr is NULL");
  GCAP_EXPECT_FAILS(gcap_allocator_reserve(nullptr, 5, &ptr_), GCAP_INVALID_ARGUMENT, "_reserve: allocator is NULL");
  GCAP_EXPECT_FAILS(gcap_allocator_reserve(allocator_, 5, nullptr), GCAP_INVALID_ARGUMENT, "_reserve: out_ptr is NULL");
  GCAP_EXPECT_FAILS(gcap_allocator_alloc_on_stream(nullptr, 5, stream_, &ptr_), GCAP_INVALID_ARGUMENT,
                    "_alloc_on_stream: allocator is NULL");
  GCAP_EXPECT_FAILS(gcap_allocator_alloc_on_stream(allocator_, 5, nullptr, &ptr_), GCAP_INVALID_ARGUMENT,
                    "_alloc_on_stream: stream is NULL");
  GCAP_EXPECT_FAILS(gcap_allocator_alloc_on_stream(allocator_, 5, stream_, nullptr), GCAP_INVALID_ARGUMENT,
                    "_alloc_on_stream: out_ptr is NULL");
  GCAP_EXPECT_FAILS(gcap_allocator_free(nullptr, this), GCAP_INVALID_ARGUMENT, "_free: allocator is NULL");
  GCAP_EXPECT_FAILS(gcap_allocator_trim(nullptr), GCAP_INVALID_ARGUMENT, "_trim: allocator is NULL");
  GCAP_EXPECT_FAILS(gcap_device_allocator_create(0, nullptr), GCAP_INVALID_ARGUMENT, "out_allocator is NULL");
  GCAP_EXPECT_FAILS(gcap_pinned_allocator_create(nullptr), GCAP_INVALID_ARGUMENT, "out_allocator is NULL");
  EXPECT_EQ(TakeCalls(), Calls{});
}

TEST_F(Allocator, ASizeThatOverflowsReachesNoImplementation) {
  Create(AllOps(&recorder_));
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 62}) {  // the alignment is 64
    const std::string culprit = std::to_string(bytes) + " bytes, which overflows";
    GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, bytes, &ptr_), GCAP_INVALID_ARGUMENT, culprit);
    EXPECT_EQ(ptr_, nullptr);
    GCAP_EXPECT_FAILS(gcap_allocator_alloc_on_stream(allocator_, bytes, stream_, &ptr_), GCAP_INVALID_ARGUMENT,
                      culprit);
    GCAP_EXPECT_FAILS(gcap_allocator_reserve(allocator_, bytes, &ptr_), GCAP_INVALID_ARGUMENT, culprit);
  }
  EXPECT_EQ(TakeCalls(), Calls{});
  GCAP_EXPECT_OK(gcap_allocator_alloc(allocator_, SIZE_MAX - 63, &ptr_));
  EXPECT_EQ(TakeCalls(), Calls{"alloc " + std::to_string(SIZE_MAX - 63)});
}

TEST_F(Allocator, SuccessWithoutMemoryIsTheImplementationsFault) {
  Create(AllOps(&recorder_));
  recorder_.give_nothing = true;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 55, &ptr_), GCAP_LIBRARY_ERROR, "no memory for 55 bytes");
  GCAP_EXPECT_FAILS(gcap_allocator_alloc_on_stream(allocator_, 66, stream_, &ptr_), GCAP_LIBRARY_ERROR, "66 bytes");
  GCAP_EXPECT_FAILS(gcap_allocator_reserve(allocator_, 77, &ptr_), GCAP_LIBRARY_ERROR, "77 bytes");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
