// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What --config=audited links into each program.
#include <gtest/gtest.h>

#include "gcap/graph_options.h"
#include "gcap/status.h"

// lib/graph/inner.h
extern "C" gcap_status_t gcap_graph_manager_options_read(const gcap_graph_manager_options_t* given,
                                                         gcap_graph_manager_options_t* out_options);

namespace gcap {
namespace testing {
namespace {

TEST(EachReplay, AManagerThatAsksForNoAuditAuditsEachReplay) {
  gcap_graph_manager_options_t options, read;
  gcap_graph_manager_options_init(&options);
  ASSERT_EQ(options.audit, GCAP_GRAPH_AUDIT_OFF);
  ASSERT_EQ(gcap_graph_manager_options_read(&options, &read), nullptr);
  EXPECT_EQ(read.audit, GCAP_GRAPH_AUDIT_EACH_REPLAY);
}

TEST(EachReplay, OneThatAsksForAnotherAuditHasThat) {
  gcap_graph_manager_options_t options, read;
  gcap_graph_manager_options_init(&options);
  options.audit = GCAP_GRAPH_AUDIT_ON_DEMAND;
  ASSERT_EQ(gcap_graph_manager_options_read(&options, &read), nullptr);
  EXPECT_EQ(read.audit, GCAP_GRAPH_AUDIT_ON_DEMAND);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
