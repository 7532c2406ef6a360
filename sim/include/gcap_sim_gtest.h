// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap_sim_gtest.h: a GoogleTest listener that fails the test in which one of the simulator's checks reports. C++, for
// test programs with a main function of their own; see sim/README.md.
#ifndef GCAP_SIM_GTEST_H_
#define GCAP_SIM_GTEST_H_

#include <cstddef>
#include <cstdlib>

#include "gcap_sim.h"
#include "gtest/gtest.h"

namespace gcap_sim {

// What a test leaves alive fails it, unless it is told to ignore that: what a whole suite shares outlives its tests.
enum class Leaks { kReport, kIgnore };

class GoogleTestListener : public ::testing::EmptyTestEventListener {
 public:
  void OnTestEnd(const ::testing::TestInfo&) override {
    const size_t count = gcap_sim_check();
    for (size_t i = 0; i < count; ++i) {
      const char* report = gcap_sim_report(i);
      ADD_FAILURE() << (report != nullptr ? report : "a report that was not kept");
    }
  }
};

// Call it after InitGoogleTest. A check that would abort records instead, so that the other tests run too, unless
// GCAP_SIM_CHECKS is set. A check that warns goes on to warn, and fails no test.
inline void InstallGoogleTestListener(Leaks leaks = Leaks::kReport) {
  for (int kind = 0; kind <= GCAP_SIM_CHECK_LEAK && std::getenv("GCAP_SIM_CHECKS") == nullptr; ++kind) {
    gcap_sim_set_action(static_cast<gcap_sim_check_kind_t>(kind), GCAP_SIM_ACTION_RECORD);
  }
  if (leaks == Leaks::kIgnore) gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_OFF);
  ::testing::UnitTest::GetInstance()->listeners().Append(new GoogleTestListener);
}

}  // namespace gcap_sim

#endif  // GCAP_SIM_GTEST_H_
