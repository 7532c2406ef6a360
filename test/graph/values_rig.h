// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// values_rig.h: runs with values that change, of work that reads them.
#ifndef GCAP_TEST_GRAPH_VALUES_RIG_H_
#define GCAP_TEST_GRAPH_VALUES_RIG_H_

#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "gcap/graph_values.h"
#include "test/graph/moving_test.h"

namespace gcap {
namespace testing {

// A number and its bounds. It lives as long as the runs that it is given to.
template <typename T>
struct Number {
  T now, low, high;
  gcap_graph_value_t As(const char* name) const {
    const gcap_graph_value_type_t type = std::is_floating_point<T>::value ? GCAP_GRAPH_VALUE_FLOAT
                                         : std::is_signed<T>::value       ? GCAP_GRAPH_VALUE_SIGNED
                                                                          : GCAP_GRAPH_VALUE_UNSIGNED;
    return {name, &now, sizeof(now), type, &low, &high, false, false};
  }
};

// The value of a run, as its work reads it.
template <typename T>
T Read(const gcap_run_resources_t* resources, size_t value) {
  T number;
  std::memcpy(&number, resources->values[value], sizeof(number));
  return number;
}

class GraphValues : public GraphMoving {
 protected:
  void SetUp() override {
    GraphMoving::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    x_ = std::make_unique<Floats>(3.0f);
    y_ = std::make_unique<Floats>(0.0f);
  }
  void TearDown() override {
    x_.reset();
    y_.reset();
    GraphMoving::TearDown();
  }

  static gcap_graph_buffers_t With(const std::vector<gcap_graph_value_t>& values,
                                   const std::vector<gcap_graph_buffer_t>& items = {}) {
    gcap_graph_buffers_t buffers = BuffersOf(items);
    buffers.values = values.data();
    buffers.num_values = values.size();
    return buffers;
  }
  // A whole run; counts the calls of the work, and notes what became of the run.
  Outcome RunWith(const gcap_graph_buffers_t& buffers, const WorkWith& work, int id = kId) {
    WorkWith counted = [&](const gcap_run_resources_t* resources) {
      ++calls_;
      return work(resources);
    };
    gcap_run_result_init(&result_);
    gcap_run_t run = RunOf(id, stream_->get(), /*synchronize=*/true);
    run.work = IssueWith;
    run.user = &counted;
    run.buffers = &buffers;
    run.result = &result_;
    return Outcome(gcap_graph_manager_run(manager_, &run));
  }
  gcap_status_t ReplayWith(const gcap_graph_buffers_t& buffers, int id = kId) {
    gcap_run_t run = ReplayOf(id, /*synchronize=*/true);
    run.buffers = &buffers;
    return gcap_graph_manager_replay(manager_, &run, nullptr);
  }
  Outcome WhyEager(int id = kId) const {
    return Outcome(gcap_graph_manager_explain(manager_, id, GCAP_GRAPH_WHY_EAGER));
  }

  // y = x + value 0, of 8 bytes.
  WorkWith Add() const {
    return [this](const gcap_run_resources_t* r) {
      return AddTo(r->cuda_stream, x_->get(), y_->get(), Read<uint64_t>(r, 0));
    };
  }

  std::unique_ptr<Floats> x_, y_;
  gcap_run_result_t result_ = {};
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_VALUES_RIG_H_
