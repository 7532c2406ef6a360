// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// scratch_test_support.h: scratch over an upstream of host memory that the test watches and steers, and streams that
// are real. Placement does not depend on what the memory is, so the tests see it all and need no device memory.
#ifndef GCAP_TEST_SCRATCH_SCRATCH_TEST_SUPPORT_H_
#define GCAP_TEST_SCRATCH_SCRATCH_TEST_SUPPORT_H_

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "gcap/allocator_ops.h"
#include "gcap/scratch.h"
#include "gtest/gtest.h"
#include "lib/scratch/test_hooks.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

class Upstream {
 public:
  explicit Upstream(size_t alignment = 256) {
    gcap_allocator_ops_t ops = {};
    ops.struct_version = GCAP_ALLOCATOR_OPS_VERSION;
    ops.device_id = 0;
    ops.alignment = alignment;
    ops.self = this;
    ops.alloc = [](void* self, size_t bytes, void** out) { return static_cast<Upstream*>(self)->Alloc(bytes, out); };
    ops.free = [](void* self, void* ptr) { return static_cast<Upstream*>(self)->Free(ptr); };
    ops.trim = [](void* self) { return static_cast<Upstream*>(self)->Trim(); };
    GCAP_EXPECT_OK(gcap_allocator_create(&ops, &allocator_));
  }
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;
  ~Upstream() {
    gcap_allocator_destroy(allocator_);
    EXPECT_TRUE(regions_.empty()) << regions_.size() << " regions were not given back";
  }

  gcap_allocator_t* get() const { return allocator_; }

  // Sizes asked for so far, refused ones too.
  std::vector<size_t> requests() const { return requests_; }
  size_t num_regions() const { return regions_.size(); }
  size_t num_trims() const { return num_trims_; }
  bool Owns(const void* ptr, size_t bytes) const {
    const char* address = static_cast<const char*>(ptr);
    for (const auto& [base, region_bytes] : regions_) {
      if (base <= address && address + bytes <= base + region_bytes) return true;
    }
    return false;
  }
  // The region at an address, or nothing; for those that count bytes themselves.
  const std::map<const char*, size_t>& regions() const { return regions_; }

  size_t most_bytes = SIZE_MAX;                         // larger requests are RESOURCE_EXHAUSTED
  size_t capacity_bytes = SIZE_MAX;                     // and so are those beyond it in sum
  size_t cached_bytes = 0;                              // part of the capacity until a trim
  bool refuses_trim = false;                            // UNAVAILABLE
  bool refuses_free = false;                            // UNAVAILABLE
  size_t shift_bytes = 0;                               // the next answer is this much off
  std::function<void()> on_alloc;                       // runs inside alloc
  std::function<void(const char*, size_t)> on_release;  // told of each region that is given back

 private:
  gcap_status_t Alloc(size_t bytes, void** out_ptr) {
    if (on_alloc) on_alloc();
    const std::lock_guard<std::mutex> lock(mutex_);
    requests_.push_back(bytes);
    if (bytes > most_bytes || bytes + cached_bytes > capacity_bytes - held_bytes_)
      return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "upstream has no %zu bytes", bytes);
    char* base = static_cast<char*>(std::aligned_alloc(256, bytes + 256)) + shift_bytes;
    shifts_[base] = shift_bytes;
    shift_bytes = 0;
    regions_[base] = bytes;
    held_bytes_ += bytes;
    *out_ptr = base;
    return nullptr;
  }
  gcap_status_t Free(void* ptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (refuses_free) return GCAP_STATUS(GCAP_UNAVAILABLE, "upstream takes nothing back now");
    const auto found = regions_.find(static_cast<char*>(ptr));
    if (found == regions_.end()) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "not upstream's");
    if (on_release) on_release(found->first, found->second);
    std::free(static_cast<char*>(ptr) - shifts_[found->first]);
    held_bytes_ -= found->second;
    regions_.erase(found);
    return nullptr;
  }

  gcap_status_t Trim() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++num_trims_;
    if (refuses_trim) return GCAP_STATUS(GCAP_UNAVAILABLE, "upstream trims nothing now");
    cached_bytes = 0;
    return nullptr;
  }

  gcap_allocator_t* allocator_ = nullptr;
  std::mutex mutex_;
  size_t held_bytes_ = 0;
  size_t num_trims_ = 0;
  std::vector<size_t> requests_;
  std::map<const char*, size_t> regions_;
  std::map<const char*, size_t> shifts_;
};

constexpr size_t kGranule = 256;
constexpr size_t kChunk = 16 * kGranule;  // first region of the tests below

// Scratch of small regions, three streams, and every step followed by gcap_scratch_validate.
class ScratchTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (gcap_stream_t** stream : {&a_, &b_, &c_}) GCAP_ASSERT_OK(gcap_stream_create(0, stream));
    gcap_scratch_options_init(&options_);
    options_.initial_chunk_bytes = kChunk;
    options_.initial_growth_chunk_bytes = 2 * kChunk;
    Create();
  }
  void TearDown() override {
    for (gcap_stream_t* stream : {a_, b_, c_}) {
      if (stream != nullptr) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    }
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    for (gcap_stream_t* stream : {a_, b_, c_}) GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }

  // Replaces the scratch by one with the options of now.
  void Create() {
    GCAP_ASSERT_OK(gcap_scratch_destroy(scratch_));
    GCAP_ASSERT_OK(gcap_scratch_create(upstream_.get(), &options_, &scratch_));
    gcap_scratch_set_test_hooks(scratch_, &hooks_);
  }

  void Validate() { GCAP_EXPECT_OK(gcap_scratch_validate(scratch_)); }
  char* Alloc(size_t bytes, gcap_stream_t* stream) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, bytes, stream, &ptr));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(ptr) % kGranule, 0u);
    EXPECT_TRUE(upstream_.Owns(ptr, bytes));
    Validate();
    return static_cast<char*>(ptr);
  }
  void Free(void* ptr) {
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
    Validate();
  }
  void ExpectAllocFails(size_t bytes, gcap_stream_t* stream, gcap_code_t code, const std::string& culprit) {
    void* ptr = this;
    GCAP_EXPECT_FAILS(gcap_scratch_alloc(scratch_, bytes, stream, &ptr), code, culprit);
    EXPECT_EQ(ptr, nullptr);
    Validate();
  }
  // Takes whole granules for the stream until no region has one more, and gives them all back.
  size_t GranulesLeftFor(gcap_stream_t* stream) {
    std::vector<void*> taken;
    upstream_.most_bytes = 0;
    void* ptr = nullptr;
    while (Outcome(gcap_scratch_alloc(scratch_, kGranule, stream, &ptr)).ok()) taken.push_back(ptr);
    upstream_.most_bytes = SIZE_MAX;
    for (void* block : taken) Free(block);
    return taken.size();
  }
  void Synchronize(gcap_stream_t* stream) { GCAP_EXPECT_OK(gcap_stream_synchronize(stream)); }
  // The consumer waits for all that the producer was given so far.
  void Wait(gcap_stream_t* consumer, gcap_stream_t* producer) {
    gcap_notification_t* notification = nullptr;
    GCAP_ASSERT_OK(gcap_notification_create(producer, &notification));
    GCAP_EXPECT_OK(gcap_notification_record(notification));
    GCAP_EXPECT_OK(gcap_notification_wait(notification, consumer));
    gcap_notification_destroy(notification);
  }
  gcap_scratch_reservation_t* Open(gcap_stream_t* stream) {
    gcap_scratch_reservation_t* reservation = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_reservation_open(scratch_, stream, &reservation));
    Validate();
    return reservation;
  }
  void Close(gcap_scratch_reservation_t* reservation) {
    gcap_scratch_reservation_close(reservation);
    Validate();
  }
  void Release(gcap_scratch_reservation_t* reservation) {
    gcap_scratch_reservation_release(reservation);
    Validate();
  }
  void Trim() {
    GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
    Validate();
  }
  gcap_allocator_stats_t Stats() {
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(scratch_, &stats);
    return stats;
  }
  size_t NumRequests() const { return upstream_.requests().size(); }

  Upstream upstream_;
  gcap_scratch_options_t options_;
  gcap_scratch_test_hooks_t hooks_ = {};
  gcap_scratch_t* scratch_ = nullptr;
  gcap_stream_t* a_ = nullptr;
  gcap_stream_t* b_ = nullptr;
  gcap_stream_t* c_ = nullptr;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SCRATCH_SCRATCH_TEST_SUPPORT_H_
