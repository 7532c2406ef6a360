// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// session_test.h: what the session's tests share: models with a known answer, and one call for a run.
#ifndef GCAP_TEST_SESSION_SESSION_TEST_H_
#define GCAP_TEST_SESSION_SESSION_TEST_H_

#include <algorithm>
#include <memory>
#include <vector>

#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/ep/model_builder.h"
#include "test/ep/test_ep.h"
#include "test/support/device_floats.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

using Floats = std::vector<float>;

constexpr int64_t kCount = 6;  // floats in each value of the models below

// x -> Rotate -> a -> op -> b -> Bounce -> c -> Join with the constant -> d -> Count -> y. Two of the nodes use scratch
// of their own, and a to d lie in the session's.
inline ModelBuilder Chain(const char* op, NodeControl* of_op, NodeControl* of_bounce, NodeControl* of_count) {
  ModelBuilder m;
  const int x = m.Value("x", {2, 3}), a = m.Value("a", {2, 3}), b = m.Value("b", {2, 3}), c = m.Value("c", {2, 3});
  const int w = m.Constant("w", {2, 3}, {-1, -2, -3, -4, -5, -6});
  const int d = m.Value("d", {2, 3}), y = m.Value("y", {2, 3});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "rotate", {x}, {a});
  m.Node(op, "middle", {a}, {b}, of_op);
  m.Node("Bounce", "bounce", {b}, {c}, of_bounce);
  m.Node("Join", "join", {c, w}, {d});
  m.Node("Count", "count", {d}, {y}, of_count);
  return m;
}

// What the chain makes of x when its middle copies.
inline Floats ChainOf(Floats x) {
  std::rotate(x.begin(), x.begin() + 1, x.end());
  return {x[0], x[1], x[2], -4, -5, -6};
}

inline gcap_run_options_t RunOptions(int graph_id, bool synchronize) {
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  options.graph_id = graph_id;
  options.synchronize = synchronize;
  return options;
}

// An EP, a session of the chain on it, and one thread's tensors.
class ChainRig {
 public:
  explicit ChainRig(const char* op = "Fail") : builder_(Chain(op, &middle, &bounce, &count)) {}
  ~ChainRig() {
    GCAP_EXPECT_OK(gcap_session_destroy(session));
    // The graphs' host functions count in this object: the EP, and with it the graphs, must go first.
    ep.reset();
  }
  ChainRig(const ChainRig&) = delete;
  ChainRig& operator=(const ChainRig&) = delete;

  gcap_status_t Create(const gcap_options_t& options, const TestEpConfig& config = {}) {
    GCAP_RETURN_IF_ERROR(TestEp::Create(options, config, &ep));
    return CreateSession();
  }
  gcap_status_t CreateSession() {
    const gcap_model_t model = builder_.Model();
    gcap_ep_t* const eps[] = {ep->get()};
    return gcap_session_create(&model, eps, 1, nullptr, &session);
  }

  gcap_status_t Run(const DeviceFloats& x, const DeviceFloats& y, int graph_id = 0, bool synchronize = true) {
    const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
    const gcap_run_options_t options = RunOptions(graph_id, synchronize);
    return gcap_session_run(session, &options, &input, &output);
  }
  gcap_status_t WarmUp(const DeviceFloats& x, const DeviceFloats& y, int graph_id = 0) {
    const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
    const gcap_run_options_t options = RunOptions(graph_id, true);
    const gcap_warm_up_run_t run = {&options, &input, &output};
    return gcap_session_warm_up(session, &run, 1, nullptr, nullptr);
  }

  // Runs with new content and expects the right answer, whichever way the run goes.
  void ExpectRightRun(DeviceFloats* x, DeviceFloats* y, float seed, int graph_id = 0) {
    Floats content(kCount);
    for (size_t i = 0; i < content.size(); ++i) content[i] = seed + static_cast<float>(i);
    x->Set(content);
    y->Set(Floats(kCount, 77.0f));
    GCAP_ASSERT_OK(Run(*x, *y, graph_id));
    EXPECT_EQ(y->Get(), ChainOf(content));
  }

  NodeControl middle, bounce, count;
  std::unique_ptr<TestEp> ep;
  gcap_session_t* session = nullptr;

 private:
  ModelBuilder builder_;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SESSION_SESSION_TEST_H_
