// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The reader on files built here byte by byte: what it must accept, the sentence for each thing that it must refuse,
// and damaged files of every kind, which it must survive (the sanitizers watch) and never take for whole.
#include "examples/minimal_ep/digits/npy.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace {

const char kHeader2x3[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

// The elements 0.5, 1.5, … 5.5, as bytes in little endian: the exponents and mantissas were written out by hand.
const std::string kElements2x3(
    "\x00\x00\x00\x3f\x00\x00\xc0\x3f\x00\x00\x20\x40\x00\x00\x60\x40\x00\x00\x90\x40\x00\x00\xb0\x40", 24);

// A file: magic, version, length, header text padded to a multiple of 64 as NumPy does, elements.
std::string NpyFile(std::string header, const std::string& elements, int major = 1) {
  const size_t before = major == 1 ? 10 : 12;
  while ((before + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file("\x93NUMPY", 6);
  file += static_cast<char>(major);
  file += '\0';
  for (size_t i = 0; i < before - 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header + elements;
}

std::string Int32Bytes(const std::vector<uint32_t>& values) {
  std::string bytes;
  for (uint32_t value : values) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xff);
  }
  return bytes;
}

// A header for float32 of the given shape.
std::string Header(const std::string& shape) {
  return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
}

class Npy : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/npy_test_XXXXXX";
    ASSERT_NE(mkdtemp(&pattern[0]), nullptr);
    directory_ = pattern;
    // Thousands of files are written: this one is in memory.
    file_ = memfd_create("npy_test", 0);
    ASSERT_GE(file_, 0);
    path_ = "/proc/self/fd/" + std::to_string(file_);
  }

  void TearDown() override {
    npy_free(&array_);
    close(file_);
    EXPECT_EQ(rmdir(directory_.c_str()), 0);
  }

  // Writes the file and loads it into array_, message_.
  int Load(const std::string& bytes, const std::vector<int64_t>& shape, npy_dtype_t dtype = NPY_FLOAT32) {
    EXPECT_EQ(ftruncate(file_, 0), 0);
    EXPECT_EQ(pwrite(file_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return LoadPath(path_, shape, dtype);
  }

  int LoadPath(const std::string& path, const std::vector<int64_t>& shape, npy_dtype_t dtype = NPY_FLOAT32) {
    npy_free(&array_);
    char error[1024];
    memset(error, '#', sizeof error);
    memset(&array_, 0xa5, sizeof array_);
    const int result = npy_load(path.c_str(), dtype, shape.data(), shape.size(), &array_, error, sizeof error);
    message_ = error;
    if (result == 0) {
      EXPECT_EQ(message_, "");
    } else {
      EXPECT_EQ(message_.compare(0, path.size() + 2, path + ": "), 0) << message_;
      EXPECT_EQ(array_.data, nullptr) << message_;
      EXPECT_EQ(array_.count, 0u) << message_;
      EXPECT_EQ(array_.rank, 0u) << message_;
    }
    return result;
  }

  void ExpectRefusal(const std::string& bytes, const std::vector<int64_t>& shape, const std::string& sentence,
                     npy_dtype_t dtype = NPY_FLOAT32) {
    EXPECT_EQ(Load(bytes, shape, dtype), -1);
    EXPECT_NE(message_.find(sentence), std::string::npos) << message_ << "\ndoes not contain: " << sentence;
  }

  std::string directory_;
  std::string path_;
  int file_ = -1;
  std::string message_;
  npy_array_t array_ = {};
};

// ---- Accepted ----

TEST_F(Npy, LoadsEachVersion) {
  for (int major = 1; major <= 3; ++major) {
    ASSERT_EQ(Load(NpyFile(kHeader2x3, kElements2x3, major), {2, 3}), 0) << message_;
    EXPECT_EQ(array_.dtype, NPY_FLOAT32);
    ASSERT_EQ(array_.rank, 2u);
    EXPECT_EQ(array_.shape[0], 2u);
    EXPECT_EQ(array_.shape[1], 3u);
    ASSERT_EQ(array_.count, 6u);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(static_cast<float*>(array_.data)[i], 0.5f + i);
  }
}

TEST_F(Npy, LoadsInt32WhateverItsBits) {
  // The third would be a NaN if it were a float.
  const std::string bytes = Int32Bytes({7, 0xfffffffe, 0x7fc00000, 0x80000000});
  ASSERT_EQ(Load(NpyFile("{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }", bytes), {4}, NPY_INT32), 0)
      << message_;
  const int32_t expected[] = {7, -2, 2143289344, INT32_MIN};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(static_cast<int32_t*>(array_.data)[i], expected[i]) << i;
}

TEST_F(Npy, AnyLengthIsTakenFromTheFile) {
  ASSERT_EQ(Load(NpyFile(kHeader2x3, kElements2x3), {NPY_ANY, NPY_ANY}), 0) << message_;
  EXPECT_EQ(array_.shape[0], 2u);
  EXPECT_EQ(array_.shape[1], 3u);
}

TEST_F(Npy, AcceptsOtherSpellingsOfTheDictionary) {
  const char* headers[] = {
      "{'shape': (2, 3), 'descr': '<f4', 'fortran_order': False}",
      "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,3,),}",
      "  {  'descr'  :  '<f4'  ,  'fortran_order'  :  False  ,  'shape'  :  (  2  ,  3  )  }  ",
  };
  for (const char* header : headers) EXPECT_EQ(Load(NpyFile(header, kElements2x3), {2, 3}), 0) << message_;
}

TEST_F(Npy, AScalarHasRankZeroAndOneElement) {
  ASSERT_EQ(Load(NpyFile(Header("()"), Int32Bytes({0x3f800000})), {}), 0) << message_;
  EXPECT_EQ(array_.rank, 0u);
  ASSERT_EQ(array_.count, 1u);
  EXPECT_EQ(*static_cast<float*>(array_.data), 1.0f);
}

TEST_F(Npy, AnEmptyArrayIsFineIfItWasAskedFor) {
  ASSERT_EQ(Load(NpyFile(Header("(0, 3)"), ""), {0, 3}), 0) << message_;
  EXPECT_EQ(array_.count, 0u);
}

TEST_F(Npy, EightDimensionsAreFine) {
  ASSERT_EQ(Load(NpyFile(Header("(1, 1, 1, 2, 1, 1, 3, 1)"), kElements2x3), {1, 1, 1, 2, 1, 1, 3, 1}), 0) << message_;
  EXPECT_EQ(array_.count, 6u);
}

// ---- Refused, with a sentence ----

TEST_F(Npy, AMissingFileIsNamed) {
  EXPECT_EQ(LoadPath(directory_ + "/absent.npy", {1}), -1);
  EXPECT_EQ(message_, directory_ + "/absent.npy: cannot open: No such file or directory");
}

TEST_F(Npy, ADirectoryIsRefused) {
  EXPECT_EQ(LoadPath(directory_, {1}), -1);
  EXPECT_EQ(message_, directory_ + ": not a regular file, expected an .npy file");
}

TEST_F(Npy, AFifoWithoutAWriterDoesNotBlock) {
  const std::string fifo = directory_ + "/fifo.npy";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(LoadPath(fifo, {1}), -1);
  EXPECT_EQ(message_, fifo + ": not a regular file, expected an .npy file");
  EXPECT_EQ(unlink(fifo.c_str()), 0);
}

TEST_F(Npy, AnotherMagicIsRefused) {
  ExpectRefusal("PK\x03\x04 a zip archive", {2, 3},
                "not an .npy file: it starts with bytes 50 4b 03 04 20 61, expected 93 4e 55 4d 50 59");
}

TEST_F(Npy, AnUnknownVersionIsRefused) {
  std::string file = NpyFile(kHeader2x3, kElements2x3);
  file[6] = 4;
  ExpectRefusal(file, {2, 3}, "format version is 4.0, expected 1.0, 2.0 or 3.0");
  file[6] = 0;
  ExpectRefusal(file, {2, 3}, "format version is 0.0, expected");
  file[6] = 1;
  file[7] = 1;
  ExpectRefusal(file, {2, 3}, "format version is 1.1, expected");
}

TEST_F(Npy, AHugeHeaderIsRefused) {
  std::string file = NpyFile(kHeader2x3, kElements2x3, 2);
  file.replace(8, 4, "\xff\xff\xff\xff");
  ExpectRefusal(file, {2, 3}, "the header's length is 4294967295 bytes, expected at most 10000");
}

TEST_F(Npy, MalformedHeadersAreShown) {
  const std::string headers[] = {
      "",
      "{",
      "{}",
      "{'descr': '<f4', 'fortran_order': False}",                                   // no shape
      "{'descr': '<f4', 'shape': (2, 3)}",                                          // no order
      "{'fortran_order': False, 'shape': (2, 3)}",                                  // no type
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",  // one twice
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}",       // an unknown key
      "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}",                   // no comma
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} {}",               // something behind
      "{'descr': '<f4', 'fortran_order': false, 'shape': (2, 3)}",
      "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
      "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2, 3)}",
      "{'descr': '<f4, 'fortran_order': False, 'shape': (2, 3)}",
      "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (2, 3)}",
      "{'descr': '" + std::string(5000, 'f') + "', 'fortran_order': False, 'shape': (2, 3)}",
      "{, 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
      Header("(2, 3"),
      Header("2, 3"),
      Header("[2, 3]"),
      Header("(6)"),  // a number to Python, not a tuple
      Header("(,)"),
      Header("(2,, 3)"),
      Header("(2 3)"),
      Header("(-2, -3)"),
      Header("(+2, 3)"),
      Header("(02, 3)"),
      Header("(2.0, 3)"),
      Header("(0x2, 3)"),
      Header("(2L, 3L)"),
      Header("(9223372036854775808, 3)"),   // 2^63
      Header("(18446744073709551618, 3)"),  // 2^64 + 2
      Header("(1, 1, 1, 1, 1, 1, 1, 2, 3)"),
  };
  for (const std::string& header : headers) {
    ExpectRefusal(NpyFile(header, kElements2x3), {2, 3}, "malformed header \"" + header.substr(0, 99) + "\", expected");
  }
}

TEST_F(Npy, AHeaderMustEndInANewline) {
  std::string file = NpyFile(kHeader2x3, kElements2x3);
  file[file.size() - kElements2x3.size() - 1] = ' ';
  ExpectRefusal(file, {2, 3}, "then a newline");
}

TEST_F(Npy, UnprintableBytesAreNotShown) {
  ExpectRefusal(NpyFile("{'\x1b[31m\xff'}", kElements2x3), {2, 3}, "malformed header \"{'?[31m?'}\"");
}

TEST_F(Npy, FortranOrderIsRefused) {
  ExpectRefusal(NpyFile("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", kElements2x3), {2, 3},
                "the array is in Fortran order, expected C order");
}

TEST_F(Npy, AnotherTypeIsRefused) {
  for (const std::string descr : {"<f8", ">f4", "<f2", "<i4", "|b1", ""}) {
    const std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2, 3), }";
    ExpectRefusal(NpyFile(header, kElements2x3), {2, 3}, "the dtype is '" + descr + "', expected '<f4'");
  }
  ExpectRefusal(NpyFile(kHeader2x3, kElements2x3), {2, 3}, "the dtype is '<f4', expected '<i4'", NPY_INT32);
}

TEST_F(Npy, AnotherShapeIsRefused) {
  const std::string file = NpyFile(kHeader2x3, kElements2x3);
  ExpectRefusal(file, {2, 4}, "the shape is (2, 3), expected (2, 4)");
  ExpectRefusal(file, {3, 2}, "the shape is (2, 3), expected (3, 2)");
  ExpectRefusal(file, {6}, "the shape is (2, 3), expected (6,)");
  ExpectRefusal(file, {}, "the shape is (2, 3), expected ()");
  ExpectRefusal(file, {NPY_ANY, 3, 1}, "the shape is (2, 3), expected (*, 3, 1)");
  ExpectRefusal(NpyFile(Header("(0, 3)"), ""), {NPY_ANY, 3}, "the shape is (0, 3), expected (*, 3)");
  ExpectRefusal(file, std::vector<int64_t>(9, 1), "rank 9 was asked for, expected at most 8");
  // The longest text that a shape can have.
  const std::vector<int64_t> widest(8, INT64_MIN);
  ExpectRefusal(file, widest, "-9223372036854775808, -9223372036854775808)");
}

TEST_F(Npy, ASizeThatOverflowsIsRefused) {
  // The sizes in bytes are 2^64, 2^64 again by two factors, and more than 2^64 by a product that wraps to 24.
  ExpectRefusal(NpyFile(Header("(4611686018427387904,)"), ""), {NPY_ANY}, "has 2^63 bytes or more");
  ExpectRefusal(NpyFile(Header("(2147483648, 2147483648)"), ""), {NPY_ANY, NPY_ANY}, "has 2^63 bytes or more");
  ExpectRefusal(NpyFile(Header("(4611686018427387910,)"), kElements2x3), {NPY_ANY}, "has 2^63 bytes or more");
}

TEST_F(Npy, ASizeThatTheFileDoesNotHaveIsNotAllocated) {
  ExpectRefusal(NpyFile(Header("(1000000000000, 3)"), kElements2x3), {NPY_ANY, 3},
                "truncated: 24 bytes of elements, expected 12000000000000 for shape (1000000000000, 3)");
}

TEST_F(Npy, EveryTruncationIsRefused) {
  for (int major = 1; major <= 3; ++major) {
    const std::string file = NpyFile(kHeader2x3, kElements2x3, major);
    for (size_t bytes = 0; bytes < file.size(); ++bytes) {
      ExpectRefusal(file.substr(0, bytes), {2, 3}, "truncated: ");
    }
  }
  ExpectRefusal("", {2, 3}, "the file ends at byte 0, expected 8 more bytes of the magic and the version");
}

TEST_F(Npy, TrailingBytesAreRefused) {
  ExpectRefusal(NpyFile(kHeader2x3, kElements2x3 + "xyz"), {2, 3},
                "3 bytes after the last element, expected none for shape (2, 3)");
}

TEST_F(Npy, FloatsThatAreNotFiniteAreRefused) {
  const uint32_t kNan = 0x7fc00000, kInfinity = 0x7f800000, kOne = 0x3f800000, kLargest = 0x7f7fffff;
  ExpectRefusal(NpyFile(Header("(2, 2)"), Int32Bytes({kOne, kLargest, kOne, kNan})), {2, 2},
                "element 3 is nan, expected a finite number");
  ExpectRefusal(NpyFile(Header("(2,)"), Int32Bytes({kInfinity, kOne})), {2},
                "element 0 is inf, expected a finite number");
  ExpectRefusal(NpyFile(Header("(2,)"), Int32Bytes({kOne, kInfinity | 0x80000000})), {2},
                "element 1 is -inf, expected");
  EXPECT_EQ(Load(NpyFile(Header("(1,)"), Int32Bytes({kLargest})), {1}), 0) << message_;
}

TEST_F(Npy, AShortErrorBufferIsFilledAndTerminated) {
  npy_array_t array;
  char error[] = "########";
  EXPECT_EQ(npy_load("/nonexistent", NPY_FLOAT32, nullptr, 0, &array, error, 5), -1);
  EXPECT_STREQ(error, "/non");
  EXPECT_EQ(error[5], '#');
  EXPECT_EQ(npy_load("/nonexistent", NPY_FLOAT32, nullptr, 0, &array, nullptr, 0), -1);
}

TEST_F(Npy, FreeingTwiceIsFine) {
  ASSERT_EQ(Load(NpyFile(kHeader2x3, kElements2x3), {2, 3}), 0) << message_;
  npy_free(&array_);
  npy_free(&array_);
  EXPECT_EQ(array_.data, nullptr);
}

// ---- Damaged files ----

class NpyDamage : public Npy {
 protected:
  // A damaged file may still be a whole one (a space for a space, another number); then what was loaded must be what
  // the file ends in, and of the shape that was asked for.
  void Survive(const std::string& file) {
    if (Load(file, {NPY_ANY, 3}) != 0) return;
    ASSERT_EQ(array_.rank, 2u);
    ASSERT_EQ(array_.shape[1], 3u);
    ASSERT_EQ(array_.count, array_.shape[0] * 3);
    ASSERT_LT(array_.count * 4, file.size());
    EXPECT_EQ(memcmp(array_.data, file.data() + file.size() - array_.count * 4, array_.count * 4), 0);
    ++survived_;
  }

  int survived_ = 0;
};

TEST_F(NpyDamage, AnyByteMayBecomeAnyOfAFew) {
  const char replacements[] = {'\0', ' ', '\n', '\'', '"', '(', ')', ',', '{', '}', '0', '9', '-', '\x80', '\xff'};
  for (int major = 1; major <= 3; ++major) {
    const std::string whole = NpyFile(kHeader2x3, kElements2x3, major);
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string file = whole;
      for (char replacement : replacements) {
        file[at] = replacement;
        Survive(file);
      }
      for (int bit = 0; bit < 8; ++bit) {
        file[at] = static_cast<char>(whole[at] ^ 1 << bit);
        Survive(file);
      }
    }
  }
  EXPECT_GT(survived_, 0);  // else the files were refused for a reason that has nothing to do with the damage
}

// GCAP_NPY_SEED runs another seed.
TEST_F(NpyDamage, RandomCutsInsertionsAndCopies) {
  const char* chosen = getenv("GCAP_NPY_SEED");
  const unsigned seed = chosen == nullptr ? 1 : static_cast<unsigned>(strtoul(chosen, nullptr, 10));
  SCOPED_TRACE("GCAP_NPY_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&random](size_t limit) { return static_cast<size_t>(random() % limit); };
  const char* pieces[] = {"'", "(", "(2, 3)", "'shape': ", "9223372036854775807", "True", ", ", "}", "\n", "\\"};
  for (int round = 0; round < 4000; ++round) {
    std::string file = NpyFile(kHeader2x3, kElements2x3, 1 + round % 3);
    for (size_t edits = 1 + below(3); edits > 0 && file.size() > 1; --edits) {
      const size_t at = below(file.size());
      const size_t length = 1 + below(12);
      switch (below(4)) {
        case 0: file.erase(at, length); break;
        case 1: file.insert(at, pieces[below(std::size(pieces))]); break;
        case 2: file.insert(below(file.size()), file.substr(at, length)); break;
        default: file[at] = static_cast<char>(random());
      }
    }
    Survive(file);
  }
}

}  // namespace
