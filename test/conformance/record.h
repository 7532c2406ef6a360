// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// record.h: what a GPU answered, as recorded/*.txt keep it: one observation a line,
//   case | step | code | name | state
// A step starts with the prefix of its block ("self GLOBAL op"), when its case is run in several ways.
#ifndef GCAP_TEST_CONFORMANCE_RECORD_H_
#define GCAP_TEST_CONFORMANCE_RECORD_H_

#include <string>
#include <vector>

namespace conformance {

// The lines of all record files, then nullptr. Generated at build time.
extern const char* const kRecordText[];

struct Line {
  std::string case_name;
  std::string step;
  std::string answer;  // code | name | state
};

// Reads a line; stops the program when it is none.
Line ParseLine(const std::string& text);
std::string ToText(const Line& line);

// Every line of every record file, without the comments, in their order.
const std::vector<Line>& Record();

// The answer of a call that the real runtime does not survive.
extern const char kCrash[];

}  // namespace conformance

#endif  // GCAP_TEST_CONFORMANCE_RECORD_H_
