// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The record of the last calls alone: what it says of an address.

#include "lib/scratch/record.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

char* At(uintptr_t address) { return reinterpret_cast<char*>(address); }

class Record : public ::testing::Test {
 protected:
  void TearDown() override { gcap_scratch_record_deinit(&record_); }
  void Init(size_t num_remembered) { GCAP_ASSERT_OK(gcap_scratch_record_init(&record_, num_remembered)); }
  // Call `number`, about the block that call `block` gave.
  void Add(uint64_t number, uint64_t block, uintptr_t ptr, size_t bytes) {
    gcap_scratch_live_t live = {};
    live.ptr = At(ptr);
    live.bytes = bytes;
    live.number = block;
    gcap_scratch_record_add(&record_, &live, number);
  }
  std::string Of(uintptr_t address) { return gcap_scratch_history_of(&record_, At(address)).text; }
  bool Says(uintptr_t address, const std::string& text) { return Of(address).find(text) != std::string::npos; }

  gcap_scratch_record_t record_ = {};
};

TEST_F(Record, ThatRemembersNothingSaysNothing) {
  Init(0);
  Add(1, 1, 4096, 256);
  EXPECT_EQ(Of(4096), "");
  EXPECT_STREQ(gcap_scratch_history_of(nullptr, At(4096)).text, "");
}

TEST_F(Record, RefusesMoreThanAnybodyReads) {
  GCAP_EXPECT_FAILS(gcap_scratch_record_init(&record_, (size_t{1} << 20) + 1), GCAP_INVALID_ARGUMENT, "1048577");
}

TEST_F(Record, TellsAllocationAndFree) {
  Init(10);
  Add(1, 1, 4096, 256);
  Add(2, 2, 8192, 100);
  EXPECT_TRUE(Says(4096, "it was allocated as 256 bytes for no stream (call 1, ")) << Of(4096);
  EXPECT_FALSE(Says(4096, "freed"));
  Add(3, 1, 4096, 256);
  EXPECT_TRUE(Says(4096, "(call 1, ") && Says(4096, "and freed (call 3, ")) << Of(4096);
  EXPECT_TRUE(Says(4096 + 255, "it is byte 255 of block 0x1000, which was allocated")) << Of(4096 + 255);
  EXPECT_TRUE(Says(4096 + 256, "none of the last 10 calls was about it")) << Of(4096 + 256);
  EXPECT_TRUE(Says(8192, "100 bytes")) << Of(8192);
}

// An address that was given twice: the last time counts.
TEST_F(Record, TellsOfTheYoungestBlock) {
  Init(10);
  Add(1, 1, 4096, 256);
  Add(2, 1, 4096, 256);
  Add(3, 3, 4096, 512);
  EXPECT_TRUE(Says(4096, "512 bytes")) << Of(4096);
  EXPECT_FALSE(Says(4096, "freed")) << Of(4096);
}

TEST_F(Record, ForgetsTheOldestCalls) {
  Init(2);
  Add(1, 1, 4096, 256);
  Add(2, 2, 8192, 256);
  Add(3, 1, 4096, 256);
  EXPECT_TRUE(Says(4096, "and freed (call 3, ")) << Of(4096);
  EXPECT_FALSE(Says(4096, "call 1,")) << "its allocation is forgotten";
  Add(4, 2, 8192, 256);
  Add(5, 5, 512, 256);
  EXPECT_TRUE(Says(4096, "none of the last 2 calls")) << Of(4096);
}

TEST_F(Record, IsTheEndOfAMessage) {
  Init(10);
  Add(1, 1, 4096, 256);
  EXPECT_EQ(gcap_scratch_with_history(&record_, At(4096), nullptr), nullptr);
  GCAP_EXPECT_FAILS(
      gcap_scratch_with_history(&record_, At(4096), GCAP_STATUS(GCAP_INVALID_ARGUMENT, "address %d is odd", 4096)),
      GCAP_INVALID_ARGUMENT, "address 4096 is odd; it was allocated as 256 bytes");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
