// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The simulator knows which call broke a capture; the analyser concludes it from the calls and their answers alone. In
// every block of every case of //test/conformance both name the same one.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "test/doctor/sim_rules/logged.h"

namespace gcap {
namespace testing {
namespace {

enum { kParts = 40, kUnjoined = 904 };

std::vector<std::string> Blocks() { return LinesOf({getenv("CASES"), "--list"}); }

std::string CallOf(const Logged& logged, uint32_t call) {
  if (call == GCAP_DOCTOR_NONE) return "none";
  return logged.FunctionOf(call) + " #" + std::to_string(logged.recording().calls[call].number);
}

// Returns how many captures were broken by a call.
size_t Compare(const std::string& block) {
  const Logged logged(LogOf({getenv("CASES"), "--observe=" + block}), /*with_says=*/false);
  size_t broken = 0;
  for (size_t i = 0; i < logged.diagnosis().num_captures; ++i) {
    const gcap_doctor_captured_t& capture = logged.diagnosis().captures[i];
    const uint32_t breaker = logged.BreakerOf(capture);
    // Of an unjoined fork the analyser names the wait that began it, and the simulator the end that met it.
    if (breaker == GCAP_DOCTOR_NONE || capture.result == kUnjoined) continue;
    ++broken;
    EXPECT_EQ(CallOf(logged, capture.culprit), CallOf(logged, breaker)) << block << "\n" << logged.Findings();
  }
  return broken;
}

class Culprits : public ::testing::TestWithParam<size_t> {};

TEST_P(Culprits, AreThoseThatTheSimulatorKnows) {
  const std::vector<std::string> blocks = Blocks();
  ASSERT_GT(blocks.size(), 1500u);
  size_t broken = 0;
  for (size_t i = GetParam(); i < blocks.size(); i += kParts) broken += Compare(blocks[i]);
  EXPECT_GT(broken, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, Culprits, ::testing::Range<size_t>(0, kParts));

}  // namespace
}  // namespace testing
}  // namespace gcap
