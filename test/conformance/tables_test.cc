// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The tables beside the record: every line has a case that plays it, every rule a case that shows it or a reason why
// none does, every listed difference a line.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "test/conformance/block.h"

namespace conformance {

namespace {

struct Rule {
  const char* id;
  cudaError_t code;
  const char* situation;
  const char* remedy;
};

const Rule kRules[] = {
#define CAPTURE_RULE(id, name, code, situation, remedy) {#id, code, situation, remedy},
#define CAPTURE_GATE(id, name, code, situation, remedy) {#id, code, situation, remedy},
#include "rules/capture_rules.inc"
#undef CAPTURE_GATE
#undef CAPTURE_RULE
};

struct Shown {
  const char* rule;
  const char* case_name;  // nullptr with a reason
  const char* reason;
};

const Shown kShown[] = {
#define SHOWN_BY(rule, case_name) {#rule, case_name, nullptr},
#define NOT_SHOWN(rule, reason) {#rule, nullptr, reason},
#include "test/conformance/rule_cases.inc"
#undef NOT_SHOWN
#undef SHOWN_BY
};

const Rule* FindRule(const std::string& id) {
  const auto* found =
      std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& rule) { return rule.id == id; });
  return found == std::end(kRules) ? nullptr : found;
}

std::vector<Line> RecordOf(const std::string& case_name) {
  std::vector<Line> lines;
  for (const Line& line : Record()) {
    if (line.case_name == case_name) lines.push_back(line);
  }
  return lines;
}

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

bool Registered(const std::string& case_name) {
  return std::any_of(Cases().begin(), Cases().end(), [&](const Case& one) { return one.name == case_name; });
}

// Every line of the record is played by exactly one block, so no observation is skipped in silence.
TEST(Record, EveryLineHasOneBlock) { EXPECT_EQ("", Join(UnplayedLines())); }

TEST(Record, NoCaseIsRegisteredTwice) {
  std::map<std::string, int> count;
  for (const Block& block : AllBlocks()) EXPECT_EQ(1, ++count[block.name()]) << block.name();
}

TEST(Differences, NameLinesOfTheRecord) { EXPECT_EQ("", Join(IdleDifferences())); }

TEST(Rules, EachIsShownOrHasAReason) {
  for (const Rule& rule : kRules) {
    const auto shown = std::count_if(std::begin(kShown), std::end(kShown), [&](const Shown& row) {
      return std::string(rule.id) == row.rule && row.case_name != nullptr;
    });
    const auto reasons = std::count_if(std::begin(kShown), std::end(kShown), [&](const Shown& row) {
      return std::string(rule.id) == row.rule && row.case_name == nullptr;
    });
    EXPECT_TRUE((shown > 0 && reasons == 0) || (shown == 0 && reasons == 1))
        << rule.id << ": " << rule.situation << ": " << shown << " cases, " << reasons << " reasons";
  }
}

// A case that shows a rule has its code in the record, unless no GPU was asked yet.
TEST(Rules, CasesAnswerTheirCodes) {
  for (const Shown& row : kShown) {
    if (row.case_name == nullptr) continue;
    const Rule* rule = FindRule(row.rule);
    ASSERT_NE(nullptr, rule) << row.rule;
    EXPECT_TRUE(Registered(row.case_name)) << row.rule << " names " << row.case_name;
    const std::vector<Line> lines = RecordOf(row.case_name);
    const bool unasked = lines.empty() && std::string(row.case_name).compare(0, 6, "probe.") == 0;
    if (unasked) continue;
    const std::string code = Format("%d | ", static_cast<int>(rule->code));
    const bool answers = std::any_of(lines.begin(), lines.end(),
                                     [&](const Line& line) { return line.answer.compare(0, code.size(), code) == 0; });
    EXPECT_TRUE(answers) << row.case_name << " never answers " << code << "of " << row.rule;
  }
}

TEST(Rules, AreR1UpwardsWithoutGap) {
  int number = 0;
  for (const Rule& rule : kRules) EXPECT_EQ("R" + std::to_string(++number), rule.id);
}

}  // namespace

}  // namespace conformance
