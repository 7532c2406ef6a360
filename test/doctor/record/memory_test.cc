// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The table of the program's memory: against a plain map, and what it costs in looks at its trees.
#include <gtest/gtest.h>

#include <map>
#include <random>

extern "C" {
#include "doctor/record/memory.h"
}

namespace {

constexpr gcap_doctor_memory_place_t kPlace = {1, 0, "cuMemAlloc_v2", 1, 0, false};

class MemoryTest : public testing::Test {
 protected:
  ~MemoryTest() override {
    for (size_t i = 0; i < memory_.count; ++i) free(memory_.pieces[i].freed);
    free(memory_.pieces);
  }

  uint32_t Add(uint64_t begin, uint64_t bytes, gcap_doctor_memory_what_t what = GCAP_DOCTOR_MEMORY_DEVICE) {
    return gcap_doctor_memory_add(&memory_, begin, bytes, what, &kPlace);
  }
  uint32_t Find(uint64_t address) { return gcap_doctor_memory_find(&memory_, GCAP_DOCTOR_MEMORY_OF_DRIVER, address); }
  const gcap_doctor_memory_piece_t& At(uint32_t piece) { return *gcap_doctor_memory_at(&memory_, piece); }

  gcap_doctor_memory_t memory_ = {};
};

TEST_F(MemoryTest, FindsWhatAPlainMapFinds) {
  std::mt19937 random(4711);
  std::map<uint64_t, std::pair<uint64_t, uint32_t>> expected;  // the end and the piece, by the beginning
  for (int i = 0; i < 20000; ++i) {
    const uint64_t place = 0x1000 * (1 + random() % 4096);
    const auto found = expected.find(place);
    if (found != expected.end()) {
      gcap_doctor_memory_free(&memory_, found->second.second, &kPlace);
      expected.erase(found);
    } else {
      const uint64_t bytes = 1 + random() % 0x1000;
      expected[place] = {place + bytes, Add(place, bytes)};
    }
    const uint64_t asked = 0x1000 + random() % (0x1000 * 4097);
    const auto after = expected.upper_bound(asked);
    const auto before = after == expected.begin() ? expected.end() : std::prev(after);
    const uint32_t wanted = before != expected.end() && asked < before->second.first ? before->second.second : 0;
    ASSERT_EQ(Find(asked), wanted) << "step " << i;
  }
}

TEST_F(MemoryTest, OverlapFreesWhatWasThere) {
  const uint32_t first = Add(0x1000, 0x1000), second = Add(0x2000, 0x1000);
  gcap_doctor_memory_retain(&memory_, first);
  gcap_doctor_memory_retain(&memory_, second);
  const uint64_t epoch = memory_.epoch;
  const uint32_t over = Add(0x1800, 0x1000);
  EXPECT_TRUE(At(first).is_freed);
  EXPECT_TRUE(At(second).is_freed);
  EXPECT_EQ(At(first).freed, nullptr);
  EXPECT_EQ(memory_.epoch, epoch + 2);
  EXPECT_EQ(Find(0x1900), over);
  EXPECT_EQ(Find(0x1000), 0u);
}

TEST_F(MemoryTest, OnlyAPieceThatIsReferredToMovesTheEpochAndStays) {
  const uint32_t loose = Add(0x1000, 0x1000), held = Add(0x2000, 0x1000);
  gcap_doctor_memory_retain(&memory_, held);
  gcap_doctor_memory_free(&memory_, loose, &kPlace);
  EXPECT_EQ(memory_.epoch, 0u);
  gcap_doctor_memory_free(&memory_, held, &kPlace);
  EXPECT_EQ(memory_.epoch, 1u);
  EXPECT_TRUE(At(held).is_freed);
  ASSERT_NE(At(held).freed, nullptr);
  EXPECT_EQ(At(held).freed->call, 1u);
  gcap_doctor_memory_release(&memory_, held);
  // Both places are used again.
  Add(0x3000, 1);
  Add(0x4000, 1);
  EXPECT_EQ(memory_.count, 2u);
}

TEST_F(MemoryTest, BlocksLieWithinTheDriversMemoryAndEndWithIt) {
  const uint32_t segment = Add(0x10000, 0x10000);
  const uint32_t block = Add(0x11000, 0x1000, GCAP_DOCTOR_MEMORY_PYTORCH);
  gcap_doctor_memory_retain(&memory_, block);
  EXPECT_EQ(Find(0x11000), segment);
  EXPECT_EQ(gcap_doctor_memory_find(&memory_, GCAP_DOCTOR_MEMORY_OF_FRAMEWORK, 0x11fff), block);
  gcap_doctor_memory_free(&memory_, segment, &kPlace);
  EXPECT_TRUE(At(block).is_freed);
  EXPECT_EQ(gcap_doctor_memory_find(&memory_, GCAP_DOCTOR_MEMORY_OF_FRAMEWORK, 0x11fff), 0u);
}

TEST_F(MemoryTest, SizesThatAreNoneOrPassTheEndAreRefused) {
  EXPECT_EQ(Add(0x1000, 0), 0u);
  EXPECT_EQ(Add(UINT64_MAX - 1, 4), 0u);
  EXPECT_EQ(memory_.count, 0u);
}

// The expected depth of such a tree is below 3 times the logarithm; a million pieces in order are the worst for a tree
// that does not balance.
TEST_F(MemoryTest, AMillionAllocationsCostSomeDozenLooksEach) {
  constexpr uint64_t kPieces = 1000000, kLooks = 120;
  for (uint64_t i = 1; i <= kPieces; ++i) ASSERT_NE(Add(i * 0x1000, 0x1000), 0u);
  EXPECT_LT(memory_.steps, kPieces * 2 * kLooks);
  memory_.steps = 0;
  for (uint64_t i = 1; i <= kPieces; i += 100) EXPECT_EQ(At(Find(i * 0x1000 + 5)).begin, i * 0x1000);
  EXPECT_LT(memory_.steps, kPieces / 100 * kLooks);
  memory_.steps = 0;
  for (uint64_t i = 1; i <= kPieces; ++i) gcap_doctor_memory_free(&memory_, Find(i * 0x1000), &kPlace);
  EXPECT_LT(memory_.steps, kPieces * 2 * kLooks);
  EXPECT_EQ(memory_.roots[GCAP_DOCTOR_MEMORY_OF_DRIVER], 0u);
}

}  // namespace
