// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reads the record: splitting at the first two bars, since the answer is compared as a whole.
#include "test/conformance/record.h"

#include <cstdio>
#include <cstdlib>

namespace conformance {

namespace {

constexpr char kBar[] = " | ";
constexpr size_t kBarLength = sizeof(kBar) - 1;

std::vector<Line> ReadAll() {
  std::vector<Line> lines;
  for (const char* const* text = kRecordText; *text != nullptr; ++text) {
    if (**text != '\0' && **text != '#') lines.push_back(ParseLine(*text));
  }
  return lines;
}

}  // namespace

const char kCrash[] = "- | - | CRASH signal=11";

Line ParseLine(const std::string& text) {
  const size_t first = text.find(kBar);
  const size_t second = first == std::string::npos ? first : text.find(kBar, first + kBarLength);
  if (second == std::string::npos) {
    std::fprintf(stderr, "not an observation (case | step | code | name | state): %s\n", text.c_str());
    std::abort();
  }
  const size_t step = first + kBarLength;
  return {text.substr(0, first), text.substr(step, second - step), text.substr(second + kBarLength)};
}

std::string ToText(const Line& line) { return line.case_name + kBar + line.step + kBar + line.answer; }

const std::vector<Line>& Record() {
  static const std::vector<Line> lines = ReadAll();
  return lines;
}

}  // namespace conformance
