// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which lines of the record belong to which block, and what the simulator answers instead where a difference is listed.
#include "test/conformance/block.h"

#include <algorithm>
#include <cstddef>
#include <map>

// The simulator's own function, absent on a GPU.
extern "C" size_t gcap_sim_live(const char* kind) __attribute__((weak));

namespace conformance {

namespace {

struct Difference {
  const char* case_name;
  const char* step;
  const char* answer;
  const char* reason;
};

const Difference kDifferences[] = {
#define DIFFERENCE(case_name, step, answer, reason) {case_name, step, answer, reason},
#include "test/conformance/expected_differences.inc"
#undef DIFFERENCE
    {"", "", "", ""},  // an array has at least one element
};

bool HasPrefix(const std::string& step, const std::string& prefix) {
  return step.compare(0, prefix.size() + 1, prefix + " ") == 0;
}

bool BelongsTo(const Block& block, const Line& line) {
  if (!block.prefix.empty()) return HasPrefix(line.step, block.prefix);
  const std::vector<std::string>& prefixes = block.source->blocks.prefixes();
  return std::none_of(prefixes.begin(), prefixes.end(),
                      [&](const std::string& p) { return !p.empty() && HasPrefix(line.step, p); });
}

bool Matches(const Difference& difference, const Line& line) {
  if (line.case_name != difference.case_name) return false;
  const std::string step = difference.step;
  if (step.compare(0, 2, "* ") != 0) return line.step == step;
  const std::string tail = step.substr(1);
  return line.step.size() > tail.size() && line.step.compare(line.step.size() - tail.size(), tail.size(), tail) == 0;
}

const Difference* FindDifference(const Line& line) {
  for (const Difference& difference : kDifferences) {
    if (Matches(difference, line)) return &difference;
  }
  return nullptr;
}

// The record by case: a walk over all of it for each block would be slow.
const std::vector<Line>& LinesOf(const std::string& case_name) {
  static const auto* by_case = [] {
    auto* lines = new std::map<std::string, std::vector<Line>>;
    for (const Line& line : Record()) (*lines)[line.case_name].push_back(line);
    return lines;
  }();
  static const std::vector<Line> none;
  const auto found = by_case->find(case_name);
  return found == by_case->end() ? none : found->second;
}

}  // namespace

std::vector<Block> AllBlocks() {
  std::vector<Block> blocks;
  for (const Case& source : Cases()) {
    for (const std::string& prefix : source.blocks.prefixes()) blocks.push_back({&source, prefix});
  }
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block& a, const Block& b) { return a.source->name < b.source->name; });
  return blocks;
}

std::vector<Line> Recorded(const Block& block) {
  std::vector<Line> lines;
  for (const Line& line : LinesOf(block.source->name)) {
    if (BelongsTo(block, line)) lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> Expected(const Block& block, std::string* complaint) {
  std::vector<std::string> expected;
  for (const Line& line : Recorded(block)) {
    const Difference* difference = OnSimulator() ? FindDifference(line) : nullptr;
    if (difference == nullptr) {
      expected.push_back(ToText(line));
      continue;
    }
    if (line.answer == difference->answer) *complaint += "listed as a difference, and none: " + ToText(line) + "\n";
    if (difference->answer[0] != '\0') expected.push_back(ToText({line.case_name, line.step, difference->answer}));
  }
  return expected;
}

std::set<std::string> CrashingSteps(const Block& block) {
  std::set<std::string> steps;
  for (const Line& line : Recorded(block)) {
    const Difference* difference = OnSimulator() ? FindDifference(line) : nullptr;
    if ((difference == nullptr ? line.answer : difference->answer) == kCrash) steps.insert(line.step);
  }
  return steps;
}

bool OnSimulator() { return &gcap_sim_live != nullptr; }

std::vector<std::string> IdleDifferences() {
  std::vector<std::string> idle;
  for (const Difference& difference : kDifferences) {
    const std::vector<Line>& lines = LinesOf(difference.case_name);
    const bool used =
        std::any_of(lines.begin(), lines.end(), [&](const Line& line) { return Matches(difference, line); });
    if (!used && difference.case_name[0] != '\0') {
      idle.push_back(std::string(difference.case_name) + " | " + difference.step + " (" + difference.reason + ")");
    }
  }
  return idle;
}

std::vector<std::string> UnplayedLines() {
  std::map<std::string, std::vector<Block>> blocks;
  for (const Block& block : AllBlocks()) blocks[block.source->name].push_back(block);
  std::vector<std::string> unplayed;
  for (const Line& line : Record()) {
    const std::vector<Block>& candidates = blocks[line.case_name];
    const auto owners =
        std::count_if(candidates.begin(), candidates.end(), [&](const Block& block) { return BelongsTo(block, line); });
    if (owners != 1) unplayed.push_back(ToText(line));
  }
  return unplayed;
}

}  // namespace conformance
