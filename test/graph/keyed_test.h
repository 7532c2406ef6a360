// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// keyed_test.h: runs whose work follows decisions of the host: by id or by key, with what became of each. The work may
// be any callable; Fill bakes a decision into a node, and Seen is what the device made of the last run.
#ifndef GCAP_TEST_GRAPH_KEYED_TEST_H_
#define GCAP_TEST_GRAPH_KEYED_TEST_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

template <class Bytes>
gcap_graph_key_t KeyOf(const Bytes& bytes, const char* name = nullptr) {
  return {&bytes, sizeof(bytes), name};
}

class KeyedTest : public ManagerTest {
 protected:
  using Work = std::function<gcap_status_t(cudaStream_t)>;

  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    gcap_graph_manager_options_init(&options_);
    options_.min_num_runs_before_capture = 0;
    GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&byte_), 1));
    GCAP_EXPECT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&seen_), 1));
  }
  void TearDown() override {
    if (!IsSkipped()) {
      DestroyManager();
      GCAP_EXPECT_CUDA(cudaFree(byte_));
      GCAP_EXPECT_CUDA(cudaFreeHost(seen_));
    }
    ManagerTest::TearDown();
  }
  void CreateKeyed() { GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &manager_)); }

  // The step of an engine: the value is an argument of a node, and so of the graph.
  gcap_status_t Fill(cudaStream_t stream, int value) const {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(byte_, value, 1, stream)));
    return GCAP_CUDA(cudaMemcpyAsync(seen_, byte_, 1, cudaMemcpyDeviceToHost, stream));
  }
  int Seen() const { return *seen_; }

  gcap_run_t RunBy(const gcap_graph_key_t* key, int id = GCAP_GRAPH_ID_NONE) {
    gcap_run_t run = RunOf(id, stream_->get(), /*synchronize=*/true);
    run.key = key;
    run.result = &result_;
    gcap_run_result_init(&result_);
    return run;
  }
  // A whole run, which leaves its result in result_.
  Outcome RunWork(gcap_run_t run, const Work& work) {
    run.work = [](void* user, const gcap_run_resources_t* resources) {
      return (*static_cast<const Work*>(user))(resources->cuda_stream);
    };
    run.user = const_cast<Work*>(&work);
    return Outcome(gcap_graph_manager_run(manager_, &run));
  }
  // A run by key of a step that fills.
  Outcome RunFill(const gcap_graph_key_t& key, int value) {
    *seen_ = 0xff;
    return RunWork(RunBy(&key), [this, value](cudaStream_t stream) { return Fill(stream, value); });
  }
  // Such a run, which must go this way, and do what its own step does.
  void ExpectFill(const gcap_graph_key_t& key, int value, gcap_run_outcome_t outcome) {
    const Outcome run = RunFill(key, value);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(Seen(), value);
    EXPECT_EQ(result_.outcome, outcome) << "value " << value;
  }
  int IdOf(const gcap_graph_key_t& key) {
    int id = 0;
    GCAP_EXPECT_OK(gcap_graph_manager_find(manager_, &key, &id));
    return id;
  }
  Outcome Explain(int id, gcap_graph_question_t question) {
    return Outcome(gcap_graph_manager_explain(manager_, id, question));
  }

  gcap_graph_manager_options_t options_;
  gcap_run_result_t result_;
  unsigned char* byte_ = nullptr;
  unsigned char* seen_ = nullptr;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_KEYED_TEST_H_
