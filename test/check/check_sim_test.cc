// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A check whose CUDA calls and allocations fail: no failure is taken for a verdict, and nothing is left. That each call
// may fail is walked over in test/fault; here a part of them is looked at more closely.

#include "gcap/graph_holes.h"
#include "gcap_sim.h"
#include "test/base/heap_failure.h"
#include "test/check/operation.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// Questions that another call answers as well, that are after a name, or that measure what an executable takes.
bool IsOfAQuestion(const std::string& function) {
  return function.find("Get") != std::string::npos || function == "cudaStreamIsCapturing";
}

class CheckSim : public DeviceTest {
 protected:
  void SetUp() override {
    operation_ = std::make_unique<Operation>("chain");
    const float* x = operation_->Input("x");
    float* y = operation_->Output("y");
    operation_->work = [=](const gcap_run_resources_t* r) -> gcap_status_t {
      void* between = nullptr;
      GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(r->scratch, kElementBytes, r->stream, &between));
      gcap_status_t status = Relu(x, static_cast<float*>(between), r->cuda_stream);
      if (status == nullptr) status = Add(static_cast<float*>(between), y, 1, r->cuda_stream);
      return gcap_status_join(status, gcap_scratch_free(r->scratch, between));
    };
    gcap_check_report_init(&report_);
    const Outcome first(operation_->Run(&report_));
    ASSERT_TRUE(first.ok() && report_.num_findings == 0) << first.message << TextOf(operation_->check, report_);
    whole_ = report_;
  }

  std::unique_ptr<Operation> operation_;
  gcap_check_report_t report_, whole_;
};

// A failure of gcap's own calls fails the check; one of the operation's is a finding that names the call.
TEST_F(CheckSim, AFailedCallIsNoVerdict) {
  constexpr uint64_t kStep = 11;  // each call in one of some trials would take seconds
  uint64_t hits = 0, failures = 0, findings = 0;
  for (uint64_t n = 1;; n += kStep) {
    const Handles before = LiveHandles();
    const LogCatcher log;
    Fault fault(n);
    const Outcome outcome = fault.During([this] { return operation_->Run(&report_); });
    if (!fault.hit()) break;
    SCOPED_TRACE("CUDA call " + std::to_string(n) + ", " + fault.function());
    ++hits;
    const std::string text = TextOf(operation_->check, report_);
    if (!outcome.ok()) {
      ++failures;
      EXPECT_TRUE(fault.ComesFirst(outcome)) << outcome.message;
      EXPECT_FALSE(report_.is_done);
    } else if (report_.num_findings != 0) {
      ++findings;
      EXPECT_NE(text.find(fault.function()), std::string::npos) << text;
    } else {
      EXPECT_TRUE(IsOfAQuestion(fault.function()) || log.text().find(fault.function()) != std::string::npos);
      EXPECT_EQ(report_.replays, whole_.replays);
    }
    if ((outcome.message + log.text()).find(" kept") != std::string::npos) fault.AllowKept();
    fault.ExpectNothingLeft(before);
  }
  EXPECT_GT(hits, 50u);
  EXPECT_GT(failures, hits / 2);
  EXPECT_GT(findings, 0u);
}

// What gcap asks of a capture for its steps.
TEST_F(CheckSim, AQuestionThatFailsInACaptureIsToldByItsName) {
  for (const char* question : {"cudaStreamGetCaptureInfo", "cudaGraphGetNodes"}) {
    int found = 0;
    for (uint64_t n = 1;; ++n) {
      const uint64_t before = gcap_sim_calls(question);
      gcap_sim_fail_nth(question, n, cudaErrorUnknown);
      const Outcome outcome(operation_->Run(&report_));
      gcap_sim_clear_faults();
      if (gcap_sim_calls(question) - before < n) break;
      if (!outcome.ok() || report_.num_findings == 0) continue;
      ++found;
      EXPECT_STREQ(report_.findings[0].name, "not_captured");
      EXPECT_NE(std::string(report_.findings[0].sentence).find(question), std::string::npos)
          << TextOf(operation_->check, report_);
    }
    EXPECT_GE(found, 1) << question;
  }
}

// The struct of the check, and its lists. Later the simulator would lack memory as well.
TEST_F(CheckSim, NoHostMemoryIsNoVerdict) {
  for (int skip = 0; skip < 5; ++skip) {
    SCOPED_TRACE("allocation " + std::to_string(skip));
    const Outcome outcome([&] {
      const HeapFailure no_memory(1, skip);
      gcap_status_t status = operation_->Run(&report_);
      EXPECT_EQ(no_memory.hits(), 1);
      return status;
    }());
    EXPECT_STREQ(gcap_code_name(outcome.code), "RESOURCE_EXHAUSTED") << outcome.message;
    EXPECT_TRUE(outcome.Names("no host memory")) << outcome.message;
    EXPECT_FALSE(report_.is_done) << "of an earlier check";
  }
}

// What is free is got before the last replay, two blocks of each size from 512 bytes to 1 MiB, and of each buffer's.
TEST_F(CheckSim, MemoryOfAllSizesIsHandedOutBeforeTheLastReplay) {
  const uint64_t before = gcap_sim_calls("cudaMalloc");
  GCAP_EXPECT_OK(operation_->Run(&report_));
  const uint64_t whole = gcap_sim_calls("cudaMalloc") - before;
  operation_->work = [](const gcap_run_resources_t*) -> gcap_status_t { return GCAP_STATUS(GCAP_CANCELLED, "no"); };
  GCAP_EXPECT_OK(operation_->Run(&report_));  // ends before the replays
  EXPECT_GE(whole, gcap_sim_calls("cudaMalloc") - before - whole + 2 * 12 + 2);
}

// A function of the graph counts what was given back: the last replay comes behind the memory of eager runs, of which
// the graph has another region.
TEST_F(CheckSim, IdleScratchIsGivenBackBeforeTheLastReplay) {
  std::vector<uint64_t> frees;
  operation_->work = [&frees, issue = operation_->work](const gcap_run_resources_t* r) -> gcap_status_t {
    void* memory = nullptr;
    const size_t bytes = size_t{gcap_thread_is_capturing() ? 32u : 2u} << 20;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(r->scratch, bytes, r->stream, &memory));
    gcap_status_t status = gcap_scratch_free(r->scratch, memory);
    gcap_graph_hole_t hole;
    gcap_graph_hole_init(&hole);
    hole.work = [](void* user, const gcap_run_resources_t*) -> gcap_status_t {
      static_cast<std::vector<uint64_t>*>(user)->push_back(gcap_sim_calls("cudaFree"));
      return nullptr;
    };
    hole.user = &frees;
    if (status == nullptr) status = gcap_graph_hole_issue(r, &hole);
    return status != nullptr ? status : issue(r);
  };
  GCAP_EXPECT_OK(operation_->Run(&report_));
  EXPECT_EQ(report_.num_findings, 0u) << TextOf(operation_->check, report_);
  ASSERT_GE(frees.size(), 2u);
  EXPECT_GT(frees.back(), frees[frees.size() - 2]);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
