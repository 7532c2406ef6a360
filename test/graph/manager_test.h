// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// manager_test.h: what the tests of the graph manager share: a manager, a stream, and runs of a job.
#ifndef GCAP_TEST_GRAPH_MANAGER_TEST_H_
#define GCAP_TEST_GRAPH_MANAGER_TEST_H_

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "gcap/graph.h"
#include "gcap/log.h"
#include "gtest/gtest.h"
#include "lib/internal/capture_gate.h"
#include "test/base/device_work.h"
#include "test/graph/twins.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {

// Beside so many bytes executables do not count.
constexpr size_t kMany = size_t{1} << 24;

class ManagerTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    stream_ = std::make_unique<RawStream>();
    gcap_log_set_sink(CountLog, &warnings_, GCAP_LOG_WARNING);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    DestroyManager();
    EXPECT_FALSE(gcap_thread_is_capturing());
    EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    EXPECT_EQ(stream_->CaptureStatus(), cudaStreamCaptureStatusNone);
    stream_.reset();
    gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING);
    DeviceTest::TearDown();
  }

  void Create(uint32_t min_runs, uint32_t backoff_runs = 1) {
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    options.min_num_runs_before_capture = min_runs;
    options.backoff_runs = backoff_runs;
    GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &manager_));
  }

  // Before what its graphs use.
  void DestroyManager() {
    EXPECT_EQ(gcap_test_count_twins(manager_), 0u) << "an id was captured again that had a graph for the run";
    GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
    manager_ = nullptr;
  }

  // Opens a run, which must succeed, and says how to execute it.
  gcap_graph_run_kind_t Begin(int id) {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    GCAP_EXPECT_OK(BeginPlain(manager_, id, stream_->get(), &kind));
    return kind;
  }
  Outcome End(gcap_status_t run_status = nullptr) {
    return Outcome(EndPlain(manager_, run_status, /*synchronize=*/true));
  }

  // A run of `job` that must succeed, synchronised.
  gcap_graph_run_kind_t Run(int id, const CopyJob& job) {
    const gcap_graph_run_kind_t kind = Begin(id);
    GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
    const Outcome outcome = End();
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    return kind;
  }
  // A run whose work fails, and whose status says so.
  void FailingRun(int id) {
    const bool captured = Begin(id) == GCAP_GRAPH_RUN_CAPTURE;
    const Outcome outcome = End(GCAP_STATUS(GCAP_LIBRARY_ERROR, "the kernel failed"));
    EXPECT_STREQ(gcap_code_name(outcome.code), captured ? "CAPTURE_INVALIDATED" : "LIBRARY_ERROR");
  }

  gcap_graph_info_t Info(int id) const {
    gcap_graph_info_t info;
    gcap_graph_manager_get_info(manager_, id, &info);
    return info;
  }
  // What its graph keeps beside the executable.
  size_t RetainedBytes(int id) const { return RetainedOf(Info(id)); }
  static size_t RetainedOf(const gcap_graph_info_t& info) { return info.bytes - info.exec_bytes; }
  std::string State(int id) const { return gcap_graph_state_name(Info(id).state); }

  static void CountLog(void* count, gcap_log_level_t, const char*) { ++*static_cast<int*>(count); }
  static void CountRelease(void* count) { ++*static_cast<int*>(count); }

  std::unique_ptr<RawStream> stream_;
  gcap_graph_manager_t* manager_ = nullptr;
  int warnings_ = 0;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_MANAGER_TEST_H_
