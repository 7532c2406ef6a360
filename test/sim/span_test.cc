// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The tree of byte ranges, against a map that is searched by hand.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

extern "C" {
#include "sim/base/span.h"
}

namespace {

using Spans = std::map<uintptr_t, std::unique_ptr<gcap_sim_span_t>>;

void* Pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

// The span that shares bytes with the range, found the slow way.
void* Overlapping(const Spans& spans, uintptr_t begin, size_t bytes) {
  for (const auto& entry : spans) {
    const gcap_sim_span_t& span = *entry.second;
    if (span.begin < begin + bytes && begin < span.begin + span.bytes) return span.owner;
  }
  return nullptr;
}

TEST(Span, AgreesWithASearchByHand) {
  constexpr uintptr_t kAddresses = 4000;
  std::mt19937 random(7);
  Spans spans;
  gcap_sim_span_t* root = nullptr;
  for (int i = 0; i < 20000; ++i) {
    const uintptr_t begin = 1 + random() % kAddresses;
    const size_t bytes = 1 + random() % 12;
    void* hit = Overlapping(spans, begin, bytes);
    auto* found = static_cast<gcap_sim_span_t*>(gcap_sim_span_overlap(root, Pointer(begin), bytes));
    ASSERT_EQ(hit == nullptr, found == nullptr);
    if (found) {
      ASSERT_TRUE(found->begin < begin + bytes && begin < found->begin + found->bytes);
    }
    ASSERT_EQ(Overlapping(spans, begin, 1), gcap_sim_span_find(root, Pointer(begin)));
    if (!hit) {
      auto span = std::make_unique<gcap_sim_span_t>();
      span->begin = begin;
      span->bytes = bytes;
      span->owner = span.get();
      gcap_sim_span_insert(&root, span.get());
      spans[begin] = std::move(span);
    } else if (random() % 2) {
      auto* span = static_cast<gcap_sim_span_t*>(hit);
      gcap_sim_span_remove(&root, span);
      spans.erase(span->begin);
    }
  }
  std::vector<uintptr_t> seen, expected;
  gcap_sim_span_each(
      root,
      [](void* owner, void* user) {
        static_cast<std::vector<uintptr_t>*>(user)->push_back(static_cast<gcap_sim_span_t*>(owner)->begin);
      },
      &seen);
  for (const auto& entry : spans) expected.push_back(entry.first);
  EXPECT_EQ(expected, seen);
}

size_t Depth(const gcap_sim_span_t* span) { return span ? 1 + std::max(Depth(span->left), Depth(span->right)) : 0; }

TEST(Span, StaysShallow) {
  constexpr size_t kSpans = 10000;
  std::vector<gcap_sim_span_t> spans(kSpans);
  gcap_sim_span_t* root = nullptr;
  for (size_t i = 0; i < kSpans; ++i) {  // in order, the worst case of a plain tree
    spans[i].begin = (i + 1) * 512;
    spans[i].bytes = 512;
    spans[i].owner = &spans[i];
    gcap_sim_span_insert(&root, &spans[i]);
  }
  // A random tree of n is about 2 ln n levels on average and 4.3 ln n deep: 40 here.
  EXPECT_GE(50u, Depth(root));
}

}  // namespace
