// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// block.h: the blocks of all cases, and what each should show.
#ifndef GCAP_TEST_CONFORMANCE_BLOCK_H_
#define GCAP_TEST_CONFORMANCE_BLOCK_H_

#include <set>
#include <string>
#include <vector>

#include "test/conformance/observe.h"
#include "test/conformance/record.h"

namespace conformance {

struct Block {
  const Case* source;
  std::string prefix;

  std::string name() const { return source->name + "/" + prefix; }
};

// Every block of every case, in the order of their names.
std::vector<Block> AllBlocks();

// The lines of the record that belong to the block: those of its case whose step starts with its prefix, or with no
// prefix of the case.
std::vector<Line> Recorded(const Block& block);

// What the block shows in this world: the record, on the simulator with the expected differences. A difference that
// changes nothing is told in `*complaint`.
std::vector<std::string> Expected(const Block& block, std::string* complaint);

// The steps of the block that this world does not survive, by the record or the expected differences.
std::set<std::string> CrashingSteps(const Block& block);

// Does this program link the simulator?
bool OnSimulator();

// Rows of expected_differences.inc that name no line of the record.
std::vector<std::string> IdleDifferences();

// Lines of the record that belong to no block.
std::vector<std::string> UnplayedLines();

}  // namespace conformance

#endif  // GCAP_TEST_CONFORMANCE_BLOCK_H_
