// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "bench/scratch/trace.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/scratch/draws.h"

namespace {

using gcap::bench::ReadTrace;
using gcap::bench::TraceOp;

std::string Path() { return std::string(std::getenv("TEST_TMPDIR")) + "/a.trace"; }

// What is wrong with a trace of this text, without the path; empty: nothing.
std::string ErrorOf(const std::string& text, std::vector<TraceOp>* out_ops) {
  std::ofstream(Path()) << text;
  std::string error;
  const bool good = ReadTrace(Path(), out_ops, &error);
  EXPECT_EQ(good, error.empty());
  return error.empty() ? error : error.substr(Path().size());
}

TEST(Trace, EveryKindOfLineIsRead) {
  std::vector<TraceOp> ops;
  EXPECT_EQ(ErrorOf("# made up\na 1 300 7\n\nr 2 5000\nf 1\nt\na 4 10 0\n", &ops), "");
  ASSERT_EQ(ops.size(), 5u);
  EXPECT_EQ(ops[0].kind, TraceOp::kAlloc);
  EXPECT_EQ(ops[0].block, 1u);
  EXPECT_EQ(ops[0].bytes, 300u);
  EXPECT_EQ(ops[0].stream, 7u);
  EXPECT_EQ(ops[1].kind, TraceOp::kReserve);
  EXPECT_EQ(ops[1].block, 2u);
  EXPECT_EQ(ops[1].bytes, 5000u);
  EXPECT_EQ(ops[2].kind, TraceOp::kFree);
  EXPECT_EQ(ops[2].block, 1u);
  EXPECT_EQ(ops[3].kind, TraceOp::kTrim);
  EXPECT_EQ(ops[4].stream, 0u);
}

TEST(Trace, WhatIsNotOfTheFormatIsNamedWithItsLine) {
  std::vector<TraceOp> ops;
  const std::string formats = "' is none of: a <block> <bytes> <stream>; r <block> <bytes>; f <block>; t";
  for (const char* line : {"a 1 300", "a 1 300 7 8", "x 1", "r 1", "f", "t 1", "a one 300 7", "a 1 -300 7"}) {
    EXPECT_EQ(ErrorOf(std::string("t\n") + line + "\n", &ops), ":2: '" + (line + formats));
    EXPECT_TRUE(ops.empty());
  }
}

TEST(Trace, ABlockIsGivenOnceAndFreedOnce) {
  std::vector<TraceOp> ops;
  EXPECT_EQ(ErrorOf("f 1\n", &ops), ":1: 'f 1' frees a block that is not live");
  EXPECT_EQ(ErrorOf("a 1 8 1\nf 1\nf 1\n", &ops), ":3: 'f 1' frees a block that is not live");
  EXPECT_EQ(ErrorOf("a 1 8 1\nf 1\nr 1 8\n", &ops), ":3: 'r 1 8' gives a block that was given before");
}

// What a replay of those that lie here may rely on.
TEST(Trace, TheRecordedOnesAreWhole) {
  const std::pair<const char*, size_t> traces[] = {
      {"digits_batch1", 1}, {"digits_batch32", 1}, {"digits_batch128", 1}, {"digits_batch32_threads4", 4}};
  for (const auto& [name, num_streams] : traces) {
    std::vector<TraceOp> ops;
    std::string error;
    ASSERT_TRUE(ReadTrace(std::string("bench/scratch/traces/") + name + ".trace", &ops, &error)) << error;
    EXPECT_GE(ops.size(), 1000u) << name;
    std::set<uint64_t> live, streams;
    for (const TraceOp& op : ops) {
      if (op.kind == TraceOp::kFree) live.erase(op.block);
      if (op.kind != TraceOp::kAlloc) continue;
      live.insert(op.block);
      streams.insert(op.stream);
      EXPECT_GT(op.bytes, 0u);
    }
    EXPECT_TRUE(live.empty()) << name;
    EXPECT_EQ(streams.size(), num_streams) << name;
    EXPECT_EQ(*streams.rbegin(), num_streams) << name;  // 1, 2, …
  }
}

TEST(Trace, AFileThatIsNotThereIsNamed) {
  std::vector<TraceOp> ops;
  std::string error;
  EXPECT_FALSE(ReadTrace("nowhere.trace", &ops, &error));
  EXPECT_EQ(error, "nowhere.trace: cannot be opened");
}

// The generator's published first values from state 0.
TEST(Draws, AreThoseOfSplitmix64) {
  gcap::bench::Random random(0);
  EXPECT_EQ(random.Next(), 0xe220a8397b1dcdafu);
  EXPECT_EQ(random.Next(), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(random.Next(), 0x06c45d188009454fu);
}

TEST(Draws, SizesLieInTheirRangeInEachPowerOfTwo) {
  gcap::bench::Random random(gcap::bench::kSeed);
  int of_power[12] = {};
  for (int i = 0; i < 12000; ++i) {
    const size_t bytes = random.Bytes(256, 12);
    ASSERT_GE(bytes, 256u);
    ASSERT_LT(bytes, size_t{256} << 12);
    for (int power = 11;; --power) {
      if (bytes < size_t{256} << power) continue;
      ++of_power[power];
      break;
    }
  }
  // 1,000 expected of each; its standard deviation is 30.
  for (int count : of_power) EXPECT_NEAR(count, 1000, 150);
}

TEST(Draws, MadeUpTracesReadAsTracesAndEndWithNothingLive) {
  for (const gcap::bench::Trace& trace : gcap::bench::MadeUpTraces()) {
    std::string text;
    size_t allocations = 0;
    for (const TraceOp& op : trace.ops) {
      const bool gives = op.kind == TraceOp::kAlloc;
      allocations += gives;
      text += gives ? "a " + std::to_string(op.block) + " " + std::to_string(op.bytes) + " 1\n"
                    : "f " + std::to_string(op.block) + "\n";
    }
    std::vector<TraceOp> ops;
    EXPECT_EQ(ErrorOf(text, &ops), "") << trace.name;
    EXPECT_EQ(ops.size(), 2 * allocations) << trace.name;
  }
}

TEST(Draws, PeakOfATraceIsOfWhatLivesAtATime) {
  gcap::bench::Trace trace = {"by hand", {}};
  std::string error;
  std::ofstream(Path()) << "a 1 100 1\na 2 50 1\nf 1\nt\nr 3 70 \na 4 10 2\nf 2\n";
  ASSERT_TRUE(ReadTrace(Path(), &trace.ops, &error)) << error;
  EXPECT_EQ(gcap::bench::PeakLiveBytes(trace), 150u);
}

}  // namespace
