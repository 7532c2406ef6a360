// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// verify_test.h: runs whose replays are compared with their work, on buffers of floats.
#ifndef GCAP_TEST_GRAPH_VERIFY_TEST_H_
#define GCAP_TEST_GRAPH_VERIFY_TEST_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "gcap/graph_verify.h"
#include "test/graph/holes_test.h"

namespace gcap {
namespace testing {

class VerifyTest : public HolesTest {
 protected:
  void SetUp() override {
    HolesTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    gcap_graph_verify_init(&verify_);
    verify_.each = 1;
    verify_.report = &report_;
    verify_.user = this;
    gcap_graph_verify_report_init(&report_);
  }

  // A buffer that is compared as floats.
  static gcap_graph_verify_buffer_t Named(const char* name, const Floats& floats, double absolute = 0) {
    return {name, floats.get(), kFloatsBytes, GCAP_DTYPE_F32, absolute, 0, false};
  }
  gcap_run_t VerifiedRun(int id = kId) {
    gcap_run_t run = RunBy(id);
    verify_.buffers = named_.data();
    verify_.num_buffers = named_.size();
    run.verify = &verify_;
    return run;
  }
  Outcome RunVerified(const WorkWith& work, int id = kId) { return RunHoled(VerifiedRun(id), work); }

  // A run that replays, and whether that was compared with the work, and is right.
  void ExpectSound(const WorkWith& work, bool is_verified = true) {
    const Outcome run = RunVerified(work);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(result_.outcome, GCAP_RUN_REPLAYED);
    EXPECT_EQ(report_.is_verified, is_verified);
    EXPECT_EQ(report_.buffer, SIZE_MAX);
    EXPECT_EQ(report_.different, 0u);
  }
  void ExpectWrong(const WorkWith& work, const char* culprit) {
    GCAP_EXPECT_FAILS(RunRaw(work), GCAP_REPLAY_DIFFERS, culprit);
    EXPECT_EQ(result_.outcome, GCAP_RUN_NOT_DONE);
    EXPECT_TRUE(result_.was_issued);
    EXPECT_TRUE(report_.is_verified);
  }
  gcap_status_t RunRaw(const WorkWith& work, int id = kId) {
    gcap_run_t run = VerifiedRun(id);
    run.work = IssueWith;
    run.user = const_cast<WorkWith*>(&work);
    return gcap_graph_manager_run(manager_, &run);
  }

  std::vector<gcap_graph_verify_buffer_t> named_;
  gcap_graph_verify_t verify_;
  gcap_graph_verify_report_t report_;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_VERIFY_TEST_H_
