// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "lib/internal/memory_source.h"

#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

// Has one piece, handed out under the number 1.
struct Source {
  Source(uintptr_t start, size_t bytes, uint64_t number) : start(start), bytes(bytes), number(number) {
    source.find = Find;
    gcap_memory_source_add(&source);
  }
  ~Source() { gcap_memory_source_remove(&source); }
  static gcap_status_t Find(gcap_memory_source_t* source, uintptr_t address, bool, gcap_memory_claim_t* out_claim,
                            bool* out_found) {
    const auto* self = reinterpret_cast<const Source*>(source);  // it comes first
    if (self->fails) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no memory to watch");
    *out_found = address - self->start < self->bytes;
    *out_claim = {self->start, self->bytes, self->number, 1, 0, ""};
    return nullptr;
  }

  gcap_memory_source_t source = {};
  const uintptr_t start;
  const size_t bytes;
  const uint64_t number;
  bool fails = false;
};

uint64_t SourceOf(uintptr_t address) {
  gcap_memory_claim_t claim = {};
  bool found = true;
  GCAP_EXPECT_OK(gcap_memory_find_claim(address, false, &claim, &found));
  return found ? claim.source : 0;
}

TEST(MemorySource, TheSmallestPieceAnswersWhicheverWasAddedLast) {
  EXPECT_EQ(SourceOf(1000), 0u);
  const Source inner(1000, 16, 1);
  {
    const Source outer(900, 200, 2);
    const Source innermost(1008, 4, 3);
    EXPECT_EQ(SourceOf(900), 2u);
    EXPECT_EQ(SourceOf(1000), 1u);
    EXPECT_EQ(SourceOf(1011), 3u);
    EXPECT_EQ(SourceOf(1012), 1u);
    EXPECT_EQ(SourceOf(1099), 2u);
    EXPECT_EQ(SourceOf(1100), 0u);
  }
  EXPECT_EQ(SourceOf(900), 0u);
  EXPECT_EQ(SourceOf(1011), 1u);
}

TEST(MemorySource, AFailureIsToldAndNobodyElseIsAsked) {
  Source source(1000, 16, 1);
  source.fails = true;
  gcap_memory_claim_t claim = {};
  bool found = true;
  GCAP_EXPECT_FAILS(gcap_memory_find_claim(1000, true, &claim, &found), GCAP_RESOURCE_EXHAUSTED, "to watch");
}

TEST(MemorySource, AClaimHoldsByItsHandOutOrByItsKeeper) {
  const auto claim = [](uint64_t source, uint64_t hand_out, uint64_t keeper) {
    return gcap_memory_claim_t{0, 0, source, hand_out, keeper, ""};
  };
  const auto holds = [](const gcap_memory_claim_t& a, const gcap_memory_claim_t& b) {
    return gcap_memory_claim_holds(&a, &b);
  };
  EXPECT_TRUE(holds(claim(1, 5, 0), claim(1, 5, 0)));
  EXPECT_TRUE(holds(claim(1, 5, 7), claim(1, 5, 0))) << "its keeper is gone, and it is live";
  EXPECT_TRUE(holds(claim(1, 5, 7), claim(1, 0, 7))) << "it was freed, and is kept";
  EXPECT_FALSE(holds(claim(1, 5, 0), claim(1, 6, 0)));
  EXPECT_FALSE(holds(claim(1, 5, 7), claim(1, 6, 8)));
  EXPECT_FALSE(holds(claim(1, 0, 0), claim(1, 0, 0))) << "nobody's";
  EXPECT_FALSE(holds(claim(1, 5, 7), claim(2, 5, 7))) << "another source";
}

}  // namespace
}  // namespace testing
}  // namespace gcap
