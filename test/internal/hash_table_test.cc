// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "lib/internal/hash_table.h"

#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "test/base/heap_failure.h"

namespace gcap {
namespace testing {
namespace {

struct Cell {
  uint64_t key;
  uint64_t value;
};

class HashTable : public ::testing::Test {
 protected:
  HashTable() { table_.cell_bytes = sizeof(Cell); }
  ~HashTable() override { gcap_hash_table_deinit(&table_); }

  Cell* Find(uint64_t key) { return static_cast<Cell*>(gcap_hash_table_find(&table_, key)); }
  Cell* Insert(uint64_t key) { return static_cast<Cell*>(gcap_hash_table_insert(&table_, key)); }

  // What a walk through all cells meets.
  std::map<uint64_t, uint64_t> All() {
    std::map<uint64_t, uint64_t> all;
    for (size_t i = 0; i < table_.capacity; ++i) {
      const auto* cell = static_cast<const Cell*>(gcap_hash_table_used_at(&table_, i));
      if (cell == nullptr) continue;
      EXPECT_TRUE(all.emplace(cell->key, cell->value).second) << "key " << cell->key << " has two cells";
    }
    return all;
  }

  gcap_hash_table_t table_ = {};
};

TEST_F(HashTable, OfZerosIsEmpty) {
  EXPECT_EQ(Find(1), nullptr);
  EXPECT_EQ(table_.count, 0u);
  EXPECT_TRUE(All().empty());
}

TEST_F(HashTable, ANewCellIsZeroButForItsKey) {
  Cell* cell = Insert(7);
  ASSERT_NE(cell, nullptr);
  EXPECT_EQ(cell->key, 7u);
  EXPECT_EQ(cell->value, 0u);
  cell->value = 1;
  gcap_hash_table_remove(&table_, cell);
  EXPECT_EQ(Find(7), nullptr);
  cell = Insert(7);
  ASSERT_NE(cell, nullptr);
  EXPECT_EQ(cell->value, 0u) << "nothing is left of the one before";
}

// Keys of few values, and far apart, so that many share a home and probes go round the end of the table.
TEST_F(HashTable, BehavesLikeAMap) {
  for (const uint64_t stride : {uint64_t{1}, uint64_t{256}, uint64_t{1} << 32, uint64_t{1} << 58}) {
    SCOPED_TRACE(stride);
    std::mt19937_64 random(20240917);
    std::map<uint64_t, uint64_t> model = All();
    ASSERT_TRUE(model.empty());
    for (uint64_t step = 0; step < 4000; ++step) {
      const uint64_t key = (1 + random() % 60) * stride;
      Cell* cell = Find(key);
      ASSERT_EQ(cell != nullptr, model.count(key) == 1) << "key " << key << " at step " << step;
      if (cell == nullptr) {
        cell = Insert(key);
        ASSERT_NE(cell, nullptr);
        cell->value = step;
        model[key] = step;
      } else {
        ASSERT_EQ(cell->value, model[key]);
        gcap_hash_table_remove(&table_, cell);
        model.erase(key);
      }
      ASSERT_EQ(table_.count, model.size());
      ASSERT_LE(2 * table_.count, table_.capacity);
      ASSERT_EQ(All(), model) << "at step " << step;
    }
    for (const auto& entry : model) gcap_hash_table_remove(&table_, Find(entry.first));
  }
}

TEST_F(HashTable, WithRoomMadeEarlierNoInsertionNeedsMemory) {
  ASSERT_TRUE(gcap_hash_table_reserve(&table_, 100));
  const HeapFailure no_memory;
  for (uint64_t key = 1; key <= 100; ++key) ASSERT_NE(Insert(key), nullptr);
  EXPECT_EQ(no_memory.hits(), 0);
}

TEST_F(HashTable, WithoutMemoryStaysAsItIs) {
  std::map<uint64_t, uint64_t> model;
  bool was_full = false;
  for (uint64_t key = 1; !was_full; ++key) {
    {
      const HeapFailure no_memory;
      was_full = table_.capacity != 0 && 2 * (table_.count + 1) > table_.capacity;
      Cell* cell = Insert(key);
      EXPECT_EQ(cell == nullptr, no_memory.hits() == 1);
      if (cell != nullptr) model[key] = 0;
    }
    EXPECT_EQ(All(), model);
    if (model.count(key) == 1) continue;
    ASSERT_NE(Insert(key), nullptr) << "with memory again";
    model[key] = 0;
  }
  EXPECT_EQ(All(), model);
}

// A caller that removes while it walks looks at the same cell again.
TEST_F(HashTable, CanBeEmptiedInAWalk) {
  for (uint64_t key = 1; key <= 500; ++key) ASSERT_NE(Insert(key * key), nullptr);
  size_t removed = 0;
  for (size_t i = 0; i < table_.capacity;) {
    void* cell = gcap_hash_table_used_at(&table_, i);
    if (cell == nullptr) {
      ++i;
    } else {
      gcap_hash_table_remove(&table_, cell);
      ++removed;
    }
  }
  EXPECT_EQ(removed, 500u);
  EXPECT_EQ(table_.count, 0u);
}

TEST_F(HashTable, DeinitLeavesAnEmptyTable) {
  ASSERT_NE(Insert(1), nullptr);
  gcap_hash_table_deinit(&table_);
  EXPECT_EQ(Find(1), nullptr);
  ASSERT_NE(Insert(1), nullptr);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
