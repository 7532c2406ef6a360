// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "lib/internal/grow.h"

#include <cstdint>
#include <cstdlib>

#include "gtest/gtest.h"
#include "test/base/heap_failure.h"

namespace gcap {
namespace testing {
namespace {

TEST(Grow, KeepsItemsAndDoublesItsRoom) {
  size_t* items = nullptr;
  size_t room = 0;
  int num_moves = 0;
  for (size_t i = 0; i < 1000; ++i) {
    const size_t before = room;
    ASSERT_TRUE(gcap_grow(&items, &room, i + 1, sizeof(*items)));
    ASSERT_GT(room, i);
    if (room != before) ++num_moves;
    items[i] = i;
  }
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(items[i], i);
  EXPECT_LE(num_moves, 10);
  free(items);
}

TEST(Grow, GivesAsMuchAsIsNeededAtOnce) {
  char* items = nullptr;
  size_t room = 0;
  ASSERT_TRUE(gcap_grow(&items, &room, 5000, 1));
  EXPECT_GE(room, 5000u);
  const char* same = items;
  const size_t enough = room;
  EXPECT_TRUE(gcap_grow(&items, &room, enough, 1));
  EXPECT_EQ(items, same);
  EXPECT_EQ(room, enough);
  free(items);
}

TEST(Grow, RefusesBytesThatNoSizeHolds) {
  int* items = nullptr;
  size_t room = 0;
  EXPECT_FALSE(gcap_grow(&items, &room, SIZE_MAX / sizeof(*items) + 1, sizeof(*items)));
  EXPECT_FALSE(gcap_grow(&items, &room, SIZE_MAX, sizeof(*items)));
  EXPECT_EQ(items, nullptr);
  EXPECT_EQ(room, 0u);
  room = SIZE_MAX / 2 + 1;  // doubling it wraps
  EXPECT_FALSE(gcap_grow(&items, &room, SIZE_MAX / 2 + 2, sizeof(*items)));
  EXPECT_EQ(room, SIZE_MAX / 2 + 1);
}

TEST(Grow, WithoutHostMemoryTheListStaysAsItWas) {
  int* items = nullptr;
  size_t room = 0;
  ASSERT_TRUE(gcap_grow(&items, &room, 1, sizeof(*items)));
  items[0] = 4711;
  int* const same = items;
  const size_t before = room;
  {
    const HeapFailure no_memory;
    EXPECT_FALSE(gcap_grow(&items, &room, before + 1, sizeof(*items)));
    EXPECT_EQ(no_memory.hits(), 1);
  }
  EXPECT_EQ(items, same);
  EXPECT_EQ(room, before);
  EXPECT_EQ(items[0], 4711);
  free(items);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
