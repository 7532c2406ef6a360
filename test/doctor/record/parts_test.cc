// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The recorder's map, lines, lists and pinned ranges, each against a plain one.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "doctor/base/grow.h"
#include "test/rules/event_texts.h"

extern "C" {
#include "doctor/record/elf_symbol.h"
#include "doctor/record/line.h"
#include "doctor/record/map.h"
#include "doctor/record/pinned.h"
}

namespace {

TEST(RecordMap, IsAsStdMap) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    std::mt19937 random(seed);
    gcap_doctor_map_t map = {};
    std::map<uint64_t, uint32_t> plain;
    for (int i = 0; i < 20000; ++i) {
      // Few keys, so that they come again, and close together, so that they collide.
      const uint64_t key = random() % 500 * 16;
      if (random() % 3 != 0) {
        const uint32_t value = random() % 1000 + 1;
        ASSERT_TRUE(gcap_doctor_map_set(&map, key, value));
        plain[key] = value;
      } else {
        gcap_doctor_map_remove(&map, key);
        plain.erase(key);
      }
      const uint64_t asked = random() % 500 * 16;
      ASSERT_EQ(gcap_doctor_map_get(&map, asked), plain.count(asked) != 0 ? plain[asked] : 0)
          << "seed " << seed << ", step " << i;
    }
    EXPECT_EQ(map.count, plain.size());
    for (const auto& [key, value] : plain) EXPECT_EQ(gcap_doctor_map_get(&map, key), value);
    gcap_doctor_map_clear(&map);
    EXPECT_EQ(gcap_doctor_map_get(&map, 16), 0u);
  }
}

TEST(RecordMap, HashesOfDifferentBytesDiffer) {
  std::map<uint64_t, std::string> seen;
  std::string text;
  for (int i = 0; i < 300; ++i) {
    const uint64_t hash = gcap_doctor_hash(1, text.data(), text.size());
    EXPECT_EQ(seen.count(hash), 0u) << i;
    seen[hash] = text;
    text += '\0';  // the length counts, though the bytes are zeros
  }
  EXPECT_NE(gcap_doctor_hash(1, "a", 1), gcap_doctor_hash(2, "a", 1));
}

std::string Field(const std::string& value) {
  gcap_doctor_line_t text = {};
  gcap_doctor_line_field(&text, "k", value.c_str());
  std::string written(text.data, text.size);
  gcap_doctor_line_free(&text);
  EXPECT_EQ(written.substr(0, 3), "\tk=");
  return written.substr(3);
}

TEST(RecordLine, WritesTextsAsTheFormatSays) {
  EXPECT_EQ(Field(""), "");
  for (const gcap::testing::EventText& row : gcap::testing::kEventTexts) EXPECT_EQ(Field(row.text), row.written);
}

TEST(RecordLine, GrowsAsItIsFilled) {
  gcap_doctor_line_t text = {};
  std::string plain;
  for (int i = 0; i < 5000; ++i) {
    const std::string piece(static_cast<size_t>(i % 97), static_cast<char>('a' + i % 26));
    gcap_doctor_line_append(&text, piece.data(), piece.size());
    plain += piece;
  }
  EXPECT_FALSE(text.failed);
  EXPECT_EQ(std::string(text.data, text.size), plain);
  gcap_doctor_line_free(&text);
}

TEST(RecordGrow, RefusesBytesThatNoSizeHolds) {
  int* items = nullptr;
  size_t capacity = 0;
  EXPECT_FALSE(gcap_doctor_grow(&items, &capacity, SIZE_MAX / sizeof(*items) + 1, sizeof(*items)));
  capacity = SIZE_MAX / 2 + 1;  // doubling it wraps
  EXPECT_FALSE(gcap_doctor_grow(&items, &capacity, SIZE_MAX / 2 + 2, sizeof(*items)));
  EXPECT_EQ(items, nullptr);
  EXPECT_EQ(capacity, SIZE_MAX / 2 + 1);
}

TEST(RecordLine, WritesNumbersToTheirLimits) {
  gcap_doctor_line_t text = {};
  const uint32_t ids[] = {1, 4294967295u, 0};
  gcap_doctor_line_begin(&text, "call");
  gcap_doctor_line_number(&text, "n", 0);
  gcap_doctor_line_number(&text, "t", UINT64_MAX);
  gcap_doctor_line_hex(&text, "id", UINT64_MAX);
  gcap_doctor_line_ids(&text, "c", ids, 3);
  gcap_doctor_line_ids(&text, "py", ids, 0);
  gcap_doctor_line_end(&text);
  EXPECT_EQ(std::string(text.data, text.size),
            "call\tn=0\tt=18446744073709551615\tid=0xffffffffffffffff\tc=1,4294967295,0\n");
  gcap_doctor_line_free(&text);
}

TEST(RecordPinned, RangesEndWhereTheyEnd) {
  static char memory[1000];
  gcap_doctor_pinned_add(memory + 500, 100);
  gcap_doctor_pinned_add(memory + 100, 100);
  gcap_doctor_pinned_add(memory + 300, 100);
  gcap_doctor_pinned_add(nullptr, 100);
  gcap_doctor_pinned_add(memory + 900, 0);
  for (int i = 0; i < 1000; ++i) {
    const bool expected = i >= 100 && i < 600 && i / 100 % 2 == 1;
    EXPECT_EQ(gcap_doctor_pinned_has(memory + i), expected) << i;
  }
  gcap_doctor_pinned_remove(memory + 301);  // no beginning
  EXPECT_TRUE(gcap_doctor_pinned_has(memory + 300));
  gcap_doctor_pinned_remove(memory + 300);
  EXPECT_FALSE(gcap_doctor_pinned_has(memory + 300));
  gcap_doctor_pinned_add(memory + 100, 10);  // its end was not seen
  EXPECT_FALSE(gcap_doctor_pinned_has(memory + 150));
  gcap_doctor_pinned_remove(memory + 100);
  gcap_doctor_pinned_remove(memory + 500);
  EXPECT_FALSE(gcap_doctor_pinned_has(memory + 105) || gcap_doctor_pinned_has(memory + 550));
}

// The loader's own answer is the plain one.
TEST(RecordElf, NamesAreThoseOfTheLoader) {
  gcap_doctor_elf_start();
  std::mt19937 random(3);
  uint32_t id = 0;
  for (const char* inside : {"malloc", "_ZSt9terminatev", "cos"}) {
    void* library = dlopen(inside[0] == 'c'   ? "libm.so.6"
                           : inside[0] == 'm' ? "libc.so.6"
                                              : "libstdc++.so.6",
                           RTLD_NOW);
    ASSERT_NE(library, nullptr);
    const char* function = static_cast<const char*>(dlsym(library, inside));
    const struct link_map* module = gcap_doctor_elf_module(function);
    ASSERT_NE(module, nullptr);
    int num_named = 0;
    ++id;
    for (int i = 0; i < 20000; ++i) {
      const char* address = i == 0 ? function : function + static_cast<int>(random() % 400000) - 200000;
      Dl_info info = {};
      if (gcap_doctor_elf_module(address) != module || dladdr(address, &info) == 0) continue;
      const char* name = gcap_doctor_elf_name(module, id, address);
      ASSERT_EQ(name != nullptr, info.dli_sname != nullptr) << (name != nullptr ? name : info.dli_sname);
      if (name == nullptr) continue;
      ++num_named;
      // A function may have several names.
      if (std::string(name) != info.dli_sname) {
        ASSERT_EQ(gcap_doctor_elf_exported(module, name), info.dli_saddr) << name << " for " << info.dli_sname;
      }
    }
    EXPECT_GT(num_named, 1000) << inside;  // how much of a library is exported differs by its build
  }
  EXPECT_EQ(gcap_doctor_elf_name(gcap_doctor_elf_module(reinterpret_cast<void*>(&malloc)), 0, nullptr), nullptr);
}

}  // namespace
