// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include <climits>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "test/base/heap_failure.h"

extern "C" {
#include "lib/graph/id_table.h"
}

namespace gcap {
namespace testing {
namespace {

class IdTable : public ::testing::Test {
 protected:
  void TearDown() override { gcap_graph_id_table_deinit(&table_); }

  // What the oracle holds, and nothing else, is found.
  void ExpectSameAs(const std::map<int, void*>& oracle, const std::set<int>& ids) {
    ASSERT_EQ(table_.count, oracle.size());
    for (const int id : ids) {
      const auto entry = oracle.find(id);
      ASSERT_EQ(gcap_graph_id_table_find(&table_, id), entry == oracle.end() ? nullptr : entry->second) << id;
    }
  }

  gcap_graph_id_table_t table_ = {};
};

TEST_F(IdTable, StartsEmptyAndWithoutMemory) {
  EXPECT_EQ(gcap_graph_id_table_find(&table_, 0), nullptr);
  EXPECT_EQ(gcap_graph_id_table_find(&table_, -1), nullptr);
  EXPECT_EQ(table_.capacity, 0u);
}

TEST_F(IdTable, FindsExtremeIds) {
  int slots[3];
  const int ids[] = {0, INT_MAX, 1};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(gcap_graph_id_table_insert(&table_, ids[i], &slots[i]));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(gcap_graph_id_table_find(&table_, ids[i]), &slots[i]);
}

TEST_F(IdTable, IsAtMostHalfFull) {
  int slot;
  for (int id = 0; id < 5000; ++id) {
    ASSERT_TRUE(gcap_graph_id_table_insert(&table_, id, &slot));
    ASSERT_LE(2 * table_.count, table_.capacity);
  }
}

TEST_F(IdTable, AgreesWithAMapUnderRandomInsertionsAndRemovals) {
  // Ids of a few residues and of neighbours, so that probes run into each other and removals have cells to move back.
  for (const unsigned seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::set<int> ids;
    while (ids.size() < 3000) {
      const int base = static_cast<int>(random() % 1000);
      ids.insert(random() % 2 == 0 ? base : base * 65536);
      ids.insert(static_cast<int>(random() & INT_MAX));
    }
    const std::vector<int> pool(ids.begin(), ids.end());
    std::map<int, void*> oracle;
    for (int step = 0; step < 30000; ++step) {
      const int id = pool[random() % pool.size()];
      void* slot = const_cast<int*>(&pool[random() % pool.size()]);
      if (oracle.count(id) != 0) {
        gcap_graph_id_table_remove(&table_, id);
        oracle.erase(id);
      } else {
        ASSERT_TRUE(gcap_graph_id_table_insert(&table_, id, slot));
        oracle[id] = slot;
      }
      if (step % 1000 == 0) ExpectSameAs(oracle, ids);
    }
    ExpectSameAs(oracle, ids);
    while (!oracle.empty()) {
      gcap_graph_id_table_remove(&table_, oracle.begin()->first);
      oracle.erase(oracle.begin());
    }
    ExpectSameAs(oracle, ids);
  }
}

TEST_F(IdTable, WithoutMemoryIsUnchanged) {
  int slot;
  {
    const HeapFailure no_memory;
    EXPECT_FALSE(gcap_graph_id_table_insert(&table_, 1, &slot));
  }
  EXPECT_EQ(table_.count, 0u);
  EXPECT_EQ(gcap_graph_id_table_find(&table_, 1), nullptr);
  while (2 * (table_.count + 1) <= table_.capacity || table_.count == 0) {
    ASSERT_TRUE(gcap_graph_id_table_insert(&table_, static_cast<int>(table_.count), &slot));
  }
  const size_t count = table_.count;
  {
    const HeapFailure no_memory;
    EXPECT_FALSE(gcap_graph_id_table_insert(&table_, 99, &slot));
    EXPECT_EQ(no_memory.hits(), 1);
  }
  EXPECT_EQ(table_.count, count);
  for (size_t id = 0; id < count; ++id) EXPECT_EQ(gcap_graph_id_table_find(&table_, static_cast<int>(id)), &slot);
  EXPECT_EQ(gcap_graph_id_table_find(&table_, 99), nullptr);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
