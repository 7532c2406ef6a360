// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What --config=audited links into each program, with the library's own function played by the test.
#include <gtest/gtest.h>

#include "gcap/graph_options.h"
#include "gcap/status.h"

extern "C" gcap_status_t __wrap_gcap_graph_manager_options_read(const gcap_graph_manager_options_t* given,
                                                                gcap_graph_manager_options_t* out_options);

extern "C" gcap_status_t __real_gcap_graph_manager_options_read(const gcap_graph_manager_options_t* given,
                                                                gcap_graph_manager_options_t* out_options) {
  *out_options = *given;
  return nullptr;
}

namespace gcap {
namespace testing {
namespace {

gcap_graph_audit_level_t AuditFor(gcap_graph_audit_level_t asked) {
  gcap_graph_manager_options_t options, read;
  gcap_graph_manager_options_init(&options);
  options.audit = asked;
  EXPECT_EQ(__wrap_gcap_graph_manager_options_read(&options, &read), nullptr);
  return read.audit;
}

TEST(EachReplay, AManagerThatAsksForNoAuditAuditsEachReplay) {
  EXPECT_EQ(AuditFor(GCAP_GRAPH_AUDIT_OFF), GCAP_GRAPH_AUDIT_EACH_REPLAY);
}

TEST(EachReplay, OneThatAsksForAnotherAuditHasThat) {
  EXPECT_EQ(AuditFor(GCAP_GRAPH_AUDIT_ON_DEMAND), GCAP_GRAPH_AUDIT_ON_DEMAND);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
