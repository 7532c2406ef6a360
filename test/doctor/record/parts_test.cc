// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The recorder's map, lines and pinned ranges, each against a plain one.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

extern "C" {
#include "doctor/record/line.h"
#include "doctor/record/map.h"
#include "doctor/record/pinned.h"
}

namespace {

TEST(RecordMap, IsAsStdMap) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    std::mt19937 random(seed);
    gcap_map_t map = {};
    std::map<uint64_t, uint32_t> plain;
    for (int i = 0; i < 20000; ++i) {
      // Few keys, so that they come again, and close together, so that they collide.
      const uint64_t key = random() % 500 * 16;
      if (random() % 3 != 0) {
        const uint32_t value = random() % 1000 + 1;
        ASSERT_TRUE(gcap_map_set(&map, key, value));
        plain[key] = value;
      } else {
        gcap_map_remove(&map, key);
        plain.erase(key);
      }
      const uint64_t asked = random() % 500 * 16;
      ASSERT_EQ(gcap_map_get(&map, asked), plain.count(asked) != 0 ? plain[asked] : 0)
          << "seed " << seed << ", step " << i;
    }
    EXPECT_EQ(map.count, plain.size());
    for (const auto& [key, value] : plain) EXPECT_EQ(gcap_map_get(&map, key), value);
    gcap_map_clear(&map);
    EXPECT_EQ(gcap_map_get(&map, 16), 0u);
  }
}

TEST(RecordMap, HashesOfDifferentBytesDiffer) {
  std::map<uint64_t, std::string> seen;
  std::string text;
  for (int i = 0; i < 300; ++i) {
    const uint64_t hash = gcap_hash(1, text.data(), text.size());
    EXPECT_EQ(seen.count(hash), 0u) << i;
    seen[hash] = text;
    text += '\0';  // the length counts, though the bytes are zeros
  }
  EXPECT_NE(gcap_hash(1, "a", 1), gcap_hash(2, "a", 1));
}

std::string Field(const std::string& value) {
  gcap_line_t text = {};
  gcap_line_field(&text, "k", value.c_str());
  std::string written(text.data, text.size);
  gcap_line_free(&text);
  EXPECT_EQ(written.substr(0, 3), "\tk=");
  return written.substr(3);
}

TEST(RecordLine, EscapesWhatEndsAFieldOrALine) {
  EXPECT_EQ(Field(""), "");
  EXPECT_EQ(Field("plain text, with = signs"), "plain text, with = signs");
  EXPECT_EQ(Field("a\tb\nc\rd\\e"), "a\\tb\\nc\\rd\\\\e");
}

TEST(RecordLine, IsUtf8WhateverItIsGiven) {
  const std::string kInstead = "\xef\xbf\xbd";
  EXPECT_EQ(Field("gr\xc3\xb6\xc3\x9f"
                  "e \xe2\x82\xac \xf0\x9f\x98\x80"),
            "gr\xc3\xb6\xc3\x9f"
            "e \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(Field("\xff"), kInstead);
  EXPECT_EQ(Field("\xc3"), kInstead);                                // cut off
  EXPECT_EQ(Field("\xe2\x82"), kInstead + kInstead);                 // cut off
  EXPECT_EQ(Field("\xc0\xaf"), kInstead + kInstead);                 // longer than needed
  EXPECT_EQ(Field("\xed\xa0\x80"), kInstead + kInstead + kInstead);  // half of a pair
  EXPECT_EQ(Field("\xf4\x90\x80\x80"), kInstead + kInstead + kInstead + kInstead);
}

TEST(RecordLine, WritesNumbersToTheirLimits) {
  gcap_line_t text = {};
  const uint32_t ids[] = {1, 4294967295u, 0};
  gcap_line_begin(&text, "call");
  gcap_line_number(&text, "n", 0);
  gcap_line_number(&text, "t", UINT64_MAX);
  gcap_line_hex(&text, "id", UINT64_MAX);
  gcap_line_ids(&text, "c", ids, 3);
  gcap_line_ids(&text, "py", ids, 0);
  gcap_line_end(&text);
  EXPECT_EQ(std::string(text.data, text.size),
            "call\tn=0\tt=18446744073709551615\tid=0xffffffffffffffff\tc=1,4294967295,0\n");
  gcap_line_free(&text);
}

TEST(RecordPinned, RangesEndWhereTheyEnd) {
  static char memory[1000];
  gcap_pinned_add(memory + 500, 100);
  gcap_pinned_add(memory + 100, 100);
  gcap_pinned_add(memory + 300, 100);
  gcap_pinned_add(nullptr, 100);
  gcap_pinned_add(memory + 900, 0);
  for (int i = 0; i < 1000; ++i) {
    const bool expected = i >= 100 && i < 600 && i / 100 % 2 == 1;
    EXPECT_EQ(gcap_pinned_has(memory + i), expected) << i;
  }
  gcap_pinned_remove(memory + 301);  // no beginning
  EXPECT_TRUE(gcap_pinned_has(memory + 300));
  gcap_pinned_remove(memory + 300);
  EXPECT_FALSE(gcap_pinned_has(memory + 300));
  gcap_pinned_add(memory + 100, 10);  // its end was not seen
  EXPECT_FALSE(gcap_pinned_has(memory + 150));
  gcap_pinned_remove(memory + 100);
  gcap_pinned_remove(memory + 500);
  EXPECT_FALSE(gcap_pinned_has(memory + 105) || gcap_pinned_has(memory + 550));
}

}  // namespace
