// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The harness itself: a comparison that could not fail would make every case worthless.
#include <gtest/gtest.h>

#include "test/conformance/block.h"
#include "test/conformance/child.h"

namespace conformance {

namespace {

using Lines = std::vector<std::string>;

TEST(Harness, ObservationsHaveTheFormOfTheRecord) {
  Observer o("a.case", "self RELAXED", {}, /*live=*/false);
  o.Call("op", cudaSuccess);
  o.Call("op", cudaErrorInvalidValue, "peek=1");
  o.Note("after", "last=1");
  const Lines expected = {"a.case | self RELAXED op | 0 | cudaSuccess",
                          "a.case | self RELAXED op | 1 | cudaErrorInvalidValue | peek=1",
                          "a.case | self RELAXED after | - | - | last=1"};
  EXPECT_EQ(expected, o.lines());
  for (const std::string& line : o.lines()) EXPECT_EQ(line, ToText(ParseLine(line)));
}

TEST(Harness, AProbeTellsTheLastErrorWhereItDiffers) {
  Observer o("a.case", "", {}, /*live=*/false);
  (void)cudaGetLastError();
  o.Probe("makes up a code", [] { return cudaErrorNotReady; });
  o.Probe(
      "fails", [] { return cudaSetDevice(-1); }, [] { return std::string("x=1"); });
  const Lines expected = {"a.case | makes up a code | 600 | cudaErrorNotReady | last=0",
                          "a.case | fails | 101 | cudaErrorInvalidDevice | x=1"};
  EXPECT_EQ(expected, o.lines());
  EXPECT_EQ(cudaSuccess, cudaPeekAtLastError());
}

TEST(Harness, AStepThatCrashesIsNotCalled) {
  Observer o("a.case", "GLOBAL", {"GLOBAL dies"}, /*live=*/false);
  bool called = false;
  o.Probe("dies", [&] {
    called = true;
    return cudaSuccess;
  });
  EXPECT_FALSE(called);
  EXPECT_EQ(Lines{std::string("a.case | GLOBAL dies | ") + kCrash}, o.lines());
}

TEST(Harness, ThePrefixTellsModeAndThread) {
  const Observer global("a.case", "GLOBAL", {}, false);
  const Observer other("a.case", "other THREAD_LOCAL", {}, false);
  const Observer blocking("a.case", "blocking RELAXED", {}, false);
  EXPECT_EQ(cudaStreamCaptureModeGlobal, global.mode());
  EXPECT_EQ(cudaStreamCaptureModeThreadLocal, other.mode());
  EXPECT_EQ(cudaStreamCaptureModeRelaxed, blocking.mode());
  EXPECT_FALSE(global.on_other_thread() || global.on_blocking_stream());
  EXPECT_TRUE(other.on_other_thread());
  EXPECT_TRUE(blocking.on_blocking_stream());
}

// Lines are known by the record file: 4 for each of 3 modes of begin.legacy.
TEST(Harness, ABlockOwnsTheLinesOfItsPrefix) {
  const Case each = {"begin.legacy", EachMode(), nullptr};
  const Case whole = {"begin.legacy", Once(), nullptr};
  const std::vector<Line> lines = Recorded({&each, "THREAD_LOCAL"});
  ASSERT_EQ(4u, lines.size());
  for (const Line& line : lines) EXPECT_EQ(0u, line.step.find("THREAD_LOCAL "));
  EXPECT_EQ(12u, Recorded({&whole, ""}).size());
  EXPECT_EQ(0u, Recorded({&each, "LOCAL"}).size());
}

// A line that is no observation would drop out of every comparison.
TEST(HarnessDeathTest, ALineWithoutFieldsStopsTheProgram) {
  EXPECT_DEATH(ParseLine("begin.legacy: 0"), "not an observation");
}

TEST(Harness, AChildRunsOneBlock) {
  const Case whole = {"order.capture_and_eager", Once(), nullptr};
  const ChildResult child = RunInChild("order.capture_and_eager/", {});
  EXPECT_EQ(0, child.signal);
  EXPECT_EQ(0, child.exit_code);
  EXPECT_EQ(Recorded({&whole, ""}).size(), child.lines.size());
  EXPECT_NE(0, RunInChild("no such block", {}).exit_code);
}

}  // namespace

}  // namespace conformance
