// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "lib/internal/text.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace gcap {
namespace testing {
namespace {

// What `parts` give in a buffer of `bytes` bytes, which stands between two that nobody may write.
struct Built {
  Built(size_t bytes, const std::vector<std::string>& parts) : buffer(bytes + 2, '#') {
    gcap_text_t text;
    gcap_text_init(&text, bytes == 0 ? nullptr : &buffer[1], bytes);
    for (const std::string& part : parts) gcap_text_add(&text, "%s", part.c_str());
    length = text.length;
    is_cut = gcap_text_is_cut(&text);
    if (bytes > 0) chars = &buffer[1];
    EXPECT_EQ(buffer.front(), '#');
    EXPECT_EQ(buffer.back(), '#');
    EXPECT_LE(chars.size() + 1, std::max(bytes, size_t{1}));
  }

  std::string buffer;
  std::string chars;
  size_t length = 0;
  bool is_cut = false;
};

TEST(Text, IsEmptyAtFirst) {
  const Built built(8, {});
  EXPECT_EQ(built.chars, "");
  EXPECT_EQ(built.length, 0u);
  EXPECT_FALSE(built.is_cut);
}

TEST(Text, PutsPartsTogether) {
  const Built built(8, {"one", "", "two!"});
  EXPECT_EQ(built.chars, "onetwo!") << "just fits";
  EXPECT_EQ(built.length, 7u);
  EXPECT_FALSE(built.is_cut);
}

TEST(Text, Formats) {
  char chars[32];
  gcap_text_t text;
  gcap_text_init(&text, chars, sizeof(chars));
  gcap_text_add(&text, "%d of %s", 3, "four");
  EXPECT_STREQ(chars, "3 of four");
}

TEST(Text, MarksACutAndCountsOn) {
  const Built built(8, {"one", "two!!", "three"});
  EXPECT_EQ(built.chars, "onet...");
  EXPECT_EQ(built.length, 13u) << "of what all would have had";
  EXPECT_TRUE(built.is_cut);
}

TEST(Text, StaysAsItWasCut) {
  const Built once(10, {"0123456789"});
  const Built more(10, {"0123456789", "abc", "", "d"});
  EXPECT_EQ(once.chars, "012345...");
  EXPECT_EQ(more.chars, once.chars);
  EXPECT_EQ(more.length, 14u);
}

TEST(Text, CutIntoTheTextBeforeItWhenThatLeavesNoRoomForDots) {
  const Built built(8, {"onetwo", "three"});
  EXPECT_EQ(built.chars, "onet...");
}

// However small the buffer and wherever the text was broken into parts.
TEST(Text, NeverWritesBeyondItsBuffer) {
  const std::string whole = "0123456789";
  for (size_t bytes = 0; bytes <= whole.size() + 2; ++bytes) {
    for (size_t split = 0; split <= whole.size(); ++split) {
      const Built built(bytes, {whole.substr(0, split), whole.substr(split)});
      EXPECT_EQ(built.length, whole.size());
      std::string expected = whole;
      if (bytes <= whole.size()) {
        const size_t room = bytes == 0 ? 0 : bytes - 1;
        const size_t dots = std::min(room, size_t{3});
        expected = whole.substr(0, room - dots) + std::string(dots, '.');
      }
      EXPECT_EQ(built.chars, expected) << bytes << " bytes, split at " << split;
    }
  }
}

TEST(Text, LeavesNoHalfCharacter) {
  // Each ∞ has three bytes.
  EXPECT_EQ(Built(10, {"ab∞∞∞"}).chars, "ab∞...");
  EXPECT_EQ(Built(9, {"ab∞∞∞"}).chars, "ab∞...") << "just fits";
  EXPECT_EQ(Built(8, {"ab∞∞∞"}).chars, "ab...");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
