// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// child.h: one block in a process of its own, for what leaves traces in a process and for what ends it.
#ifndef GCAP_TEST_CONFORMANCE_CHILD_H_
#define GCAP_TEST_CONFORMANCE_CHILD_H_

#include <set>
#include <string>
#include <vector>

namespace conformance {

// The argument that makes this program run one block, print it live and end.
extern const char kObserveFlag[];
// The argument that names a step not to try.
extern const char kWithoutFlag[];

struct ChildResult {
  std::vector<std::string> lines;
  std::string last_probe;  // the full step of the last call that was tried
  std::string errors;      // stderr
  int signal = 0;          // that ended it, SIGKILL after a time limit
  int exit_code = 0;
};

// Starts this program again for the block.
ChildResult RunInChild(const std::string& block, const std::set<std::string>& skipped);

}  // namespace conformance

#endif  // GCAP_TEST_CONFORMANCE_CHILD_H_
