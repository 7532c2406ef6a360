// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The programs of test/doctor/gpu/c/stale.c on the simulator: its log and its report of the replay are the finding that
// an audit makes on a GPU.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <sstream>
#include <string>

#include "test/doctor/sim_rules/logged.h"

namespace gcap {
namespace testing {
namespace {

TEST(StalePrograms, AreFoundInTheSimulatorsLog) {
  const std::string program = getenv("STALE");
  size_t num_found = 0;
  for (const std::string& line : LinesOf({program, "--list"})) {
    std::string name, kind;
    std::istringstream(line) >> name >> kind;
    // Of the host's memory that nobody pinned the simulator alone sees the copy that fails; growth needs the recorder.
    if (name == "pageable" || name == "variable" || name == "growth") continue;
    const Logged logged = Logged::Of({program, name});
    const gcap_doctor_finding_t* finding = logged.Find(GCAP_DOCTOR_FINDING_STALE, "cudaGraphLaunch");
    ASSERT_EQ(finding != nullptr, kind == "stale_memory") << name << "\n" << logged.Findings();
    if (finding == nullptr) continue;
    ++num_found;
    ASSERT_EQ(finding->num_places, 3u) << name;
    EXPECT_STREQ(finding->places[1].what, "freed");
    EXPECT_EQ(logged.FunctionOf(finding->places[1].call).find("cudaFree"), 0u) << name;
  }
  EXPECT_EQ(num_found, 6u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
