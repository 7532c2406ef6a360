// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A pack gives the inputs that are in it, and a pack that somebody damaged gives a sentence that names the line.
#include "test/fuzz/pack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace gcap::testing {
namespace {

using Inputs = std::vector<std::pair<std::string, std::string>>;

class FuzzPack : public ::testing::Test {
 protected:
  // Reads a pack of these bytes. The sentence is empty where nothing is refused.
  void Read(const std::string& text) {
    const std::string path = ::testing::TempDir() + "/test.pack";
    std::ofstream(path, std::ios::binary) << text;
    char error[FUZZ_PACK_ERROR_BYTES] = "";
    inputs_.clear();
    const bool good = fuzz_pack_read(
        path.c_str(),
        [](void* inputs, const char* name, const uint8_t* data, size_t bytes) {
          static_cast<Inputs*>(inputs)->emplace_back(name, std::string(reinterpret_cast<const char*>(data), bytes));
        },
        &inputs_, error);
    EXPECT_EQ(good, error[0] == '\0') << error;
    sentence_ = error;
  }
  void ReadLines(const std::string& lines) { Read(FUZZ_PACK_HEADING + lines); }

  void ExpectRefused(const std::string& line, const std::string& why) {
    EXPECT_NE(std::string::npos, sentence_.find("test.pack:" + line + ": ")) << sentence_;
    EXPECT_NE(std::string::npos, sentence_.find(why)) << sentence_;
  }

  Inputs inputs_;
  std::string sentence_;
};

TEST_F(FuzzPack, GivesEachInput) {
  ReadLines("09.a-b_c:\nall:00ff\nb:0a3a\nend\n");
  EXPECT_EQ("", sentence_);
  EXPECT_EQ((Inputs{{"09.a-b_c", ""}, {"all", std::string("\0\xff", 2)}, {"b", "\n:"}}), inputs_);
}

TEST_F(FuzzPack, MayBeEmpty) {
  ReadLines("end\n");
  EXPECT_EQ("", sentence_);
  EXPECT_EQ(Inputs(), inputs_);
}

TEST_F(FuzzPack, CutAnywhereIsRefused) {
  const std::string whole = std::string(FUZZ_PACK_HEADING) + "a:00\nb:0102\nend\n";
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    Read(whole.substr(0, bytes));
    EXPECT_NE("", sentence_) << "the first " << bytes << " bytes";
  }
  Read(whole.substr(0, whole.size() - 1));
  ExpectRefused("4", "cut off");
  Read(whole.substr(0, whole.size() - 4));
  ExpectRefused("4", "cut off");
  Read("");
  ExpectRefused("1", "heading");
}

TEST_F(FuzzPack, NothingMayComeAfterTheEnd) {
  ReadLines("end\na:00\n");
  ExpectRefused("2", "'end'");
}

TEST_F(FuzzPack, ANameComesOnceAndInOrder) {
  ReadLines("a:00\nb:01\nb:01\nend\n");
  ExpectRefused("4", "'b' is there twice");
  ReadLines("a:00\nc:01\nb:01\nend\n");
  ExpectRefused("4", "'b' stands behind 'c'");
  ReadLines("a:00\nb:01\na:00\nend\n");
  ExpectRefused("4", "'a' stands behind 'b'");
}

TEST_F(FuzzPack, AnUnknownCharacterIsNamed) {
  for (const std::string hex : {"0g", "0A", "0 ", "0\r"}) {
    ReadLines("a:" + hex + "\nend\n");
    ExpectRefused("2", "'a' has the character of code " + std::to_string(hex[1]) + ",");
  }
  ReadLines(std::string("a:00\0b\nend\n", 11));
  ExpectRefused("2", "of code 0,");
}

TEST_F(FuzzPack, HalfAByteIsRefused) {
  ReadLines("a:000\nend\n");
  ExpectRefused("2", "3 hex digits");
}

TEST_F(FuzzPack, ALineIsANameAndItsBytes) {
  ReadLines("a 00\nend\n");
  ExpectRefused("2", "colon");
  ReadLines("\nend\n");
  ExpectRefused("2", "colon");
}

// A name is a file's name when it is unpacked.
TEST_F(FuzzPack, ANameThatIsNoFilesIsRefused) {
  for (const std::string& name : {std::string(""), std::string("../a"), std::string(".a"), std::string("a/b"),
                                  std::string("a b"), std::string(65, 'a')}) {
    ReadLines(name + ":00\nend\n");
    ExpectRefused("2", "'" + name + "' is no name");
    EXPECT_EQ(Inputs(), inputs_);
  }
  ReadLines(std::string(64, 'a') + ":00\nend\n");
  EXPECT_EQ("", sentence_);
}

TEST_F(FuzzPack, AFileThatIsNoneOrTooLargeIsRefused) {
  char error[FUZZ_PACK_ERROR_BYTES] = "";
  EXPECT_FALSE(fuzz_pack_read("/nonexistent.pack", nullptr, nullptr, error));
  EXPECT_NE(nullptr, strstr(error, "/nonexistent.pack cannot be read")) << error;
  Read(std::string(FUZZ_PACK_MAX_BYTES + 1, '0'));
  EXPECT_NE(std::string::npos, sentence_.find("more than 1048576 bytes")) << sentence_;
}

}  // namespace
}  // namespace gcap::testing
