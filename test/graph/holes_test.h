// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// holes_test.h: runs whose work has holes, on buffers of floats.
#ifndef GCAP_TEST_GRAPH_HOLES_TEST_H_
#define GCAP_TEST_GRAPH_HOLES_TEST_H_

#include <functional>
#include <vector>

#include "gcap/capture.h"
#include "gcap/graph_holes.h"
#include "test/graph/moving_test.h"

namespace gcap {
namespace testing {

// What a hole does, which lives as long as the graph.
struct Hole {
  WorkWith function = [](const gcap_run_resources_t*) -> gcap_status_t { return nullptr; };
  int calls = 0;
  const char* name = "hole";
  bool break_where_refused = false;

  static gcap_status_t Call(void* user, const gcap_run_resources_t* resources) {
    Hole* hole = static_cast<Hole*>(user);
    ++hole->calls;
    return hole->function(resources);
  }
  gcap_status_t Issue(const gcap_run_resources_t* resources) {
    gcap_graph_hole_t hole;
    gcap_graph_hole_init(&hole);
    hole.name = name;
    hole.work = Call;
    hole.user = this;
    hole.break_where_refused = break_where_refused;
    return gcap_graph_hole_issue(resources, &hole);
  }
};

// x += addend, on all floats.
inline gcap_status_t Add(const gcap_run_resources_t* resources, const void* x, uint64_t addend) {
  return AddTo(resources->cuda_stream, x, const_cast<void*>(x), addend);
}

// Waits for the stream, and reads the first float at `x`: a decision of the host on what the device computed.
inline gcap_status_t ReadFirst(const gcap_run_resources_t* resources, const void* x, float* out_value) {
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(out_value, x, sizeof(*out_value), cudaMemcpyDeviceToHost, resources->cuda_stream)));
  return GCAP_CUDA(cudaStreamSynchronize(resources->cuda_stream));
}

class HolesTest : public ManagerTest {
 protected:
  static constexpr int kId = 3;

  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    gcap_graph_manager_options_init(&options_);
    options_.min_num_runs_before_capture = 0;
  }
  void CreateManager() { GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &manager_)); }

  gcap_run_t RunBy(int id = kId) {
    gcap_run_t run = RunOf(id, stream_->get(), /*synchronize=*/true);
    run.result = &result_;
    gcap_run_result_init(&result_);
    return run;
  }
  Outcome RunHoled(gcap_run_t run, const WorkWith& work) {
    run.work = IssueWith;
    run.user = const_cast<WorkWith*>(&work);
    return Outcome(gcap_graph_manager_run(manager_, &run));
  }
  // Such a run, which must go this way.
  void ExpectRun(const WorkWith& work, gcap_run_outcome_t outcome, int id = kId) {
    const Outcome run = RunHoled(RunBy(id), work);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(result_.outcome, outcome);
    EXPECT_TRUE(result_.was_issued);
  }
  Outcome ReplayId(int id = kId, cudaStream_t stream = GCAP_RUN_OWN_STREAM) {
    gcap_run_t run = RunBy(id);
    run.stream = stream;
    return Outcome(gcap_graph_manager_replay(manager_, &run, nullptr));
  }

  gcap_graph_manager_options_t options_;
  gcap_run_result_t result_;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_HOLES_TEST_H_
