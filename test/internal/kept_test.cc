// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// That a leak checker finds what is kept is shown where these run with one: nothing here frees.

#include "lib/internal/kept.h"

#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace gcap {
namespace testing {
namespace {

struct Object {
  int value = 0;
  gcap_kept_t kept = {};
};

TEST(Kept, FromManyThreadsIsLinkedOnceEach) {
  constexpr int kThreads = 4, kEach = 100;
  std::vector<std::vector<gcap_kept_t*>> links(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&links, t] {
      for (int i = 0; i < kEach; ++i) {
        auto* object = new Object;
        links[t].push_back(&object->kept);
        gcap_keep_for_ever(&object->kept);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  auto* last = new Object;
  gcap_keep_for_ever(&last->kept);
  std::set<const gcap_kept_t*> found;
  for (const gcap_kept_t* link = last->kept.next; link != nullptr; link = link->next) {
    EXPECT_TRUE(found.insert(link).second);
  }
  EXPECT_EQ(found.size(), size_t{kThreads * kEach});
  for (const auto& of_thread : links) {
    for (const gcap_kept_t* link : of_thread) EXPECT_EQ(found.count(link), 1u);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
