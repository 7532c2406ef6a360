// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// holes_rig.h: a device EP whose policy is GCAP_GRAPH_ALLOW_HOLES beside an EP that runs on the host, and a session on
// both.
#ifndef GCAP_TEST_SESSION_HOLES_RIG_H_
#define GCAP_TEST_SESSION_HOLES_RIG_H_

#include <memory>
#include <utility>
#include <vector>

#include "test/session/host_ep.h"
#include "test/session/session_test.h"

namespace gcap {
namespace testing {

inline Floats Negated(Floats x) {
  for (float& element : x) element = -element;
  return x;
}
inline Floats Rotated(Floats x) {
  std::rotate(x.begin(), x.begin() + 1, x.end());
  return x;
}

inline Floats CountedFrom(float seed) {
  Floats content(kCount);
  for (size_t i = 0; i < content.size(); ++i) content[i] = seed + static_cast<float>(i);
  return content;
}

// x -> Rotate -> a -> Negate -> b -> Rotate -> c -> Alloc -> d -> Rotate -> y. The second is on the host, and the
// fourth calls cudaMalloc.
inline ModelBuilder TwoHoles(NodeControl* alloc) {
  alloc->capturable = false;
  alloc->misbehave = When::kAlways;
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), b = m.Value("b", {6}), c = m.Value("c", {6});
  const int d = m.Value("d", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "first", {x}, {a});
  m.Node("Negate", "negate", {a}, {b});
  m.Node("Rotate", "second", {b}, {c});
  m.Node("Alloc", "alloc", {c}, {d}, alloc);
  m.Node("Rotate", "third", {d}, {y});
  return m;
}

// x -> Rotate -> a -> Negate -> b -> Rotate -> y: with one hole.
inline ModelBuilder OneHole() {
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), b = m.Value("b", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "first", {x}, {a});
  m.Node("Negate", "negate", {a}, {b});
  m.Node("Rotate", "second", {b}, {y});
  return m;
}

class HolesRig {
 public:
  HolesRig() : model(TwoHoles(&control)) {}
  explicit HolesRig(ModelBuilder m) : model(std::move(m)) {}
  ~HolesRig() {
    GCAP_EXPECT_OK(gcap_session_destroy(session));
    device.reset();
  }
  HolesRig(const HolesRig&) = delete;
  HolesRig& operator=(const HolesRig&) = delete;

  gcap_status_t Create(const gcap_options_t& options = GraphOptions(1), bool eagerly = false) {
    if (device == nullptr) GCAP_RETURN_IF_ERROR(TestEp::Create(options, config, &device));
    const gcap_model_t made = model.Model();
    gcap_ep_t* const eps[] = {device->get(), host.get()};
    gcap_session_options_t session_options;
    gcap_session_options_init(&session_options);
    session_options.run_eagerly_if_not_capturable = eagerly;
    session_options.allow_holes = allow_holes;
    return gcap_session_create(&made, eps, 2, &session_options, &session);
  }

  gcap_status_t Run(float* x, float* y, const gcap_run_options_t& options = RunOptions(0, true)) {
    const gcap_tensor_t input = Tensor(x, {6}), output = Tensor(y, {6});
    return gcap_session_run(session, &options, &input, &output);
  }

  // Of TwoHoles.
  void ExpectRightRun(DeviceFloats* x, DeviceFloats* y, float seed,
                      const gcap_run_options_t& options = RunOptions(0, true)) {
    x->Set(CountedFrom(seed));
    y->Set(Floats(6, 77.0f));
    GCAP_ASSERT_OK(Run(x->get(), y->get(), options));
    if (!options.synchronize) GCAP_ASSERT_OK(gcap_runtime_synchronize(device->runtime()));
    EXPECT_EQ(y->Get(), Rotated(Rotated(Negated(Rotated(CountedFrom(seed))))));
  }

  NodeControl control;
  ModelBuilder model;
  TestEpConfig config = [] {
    TestEpConfig of_device;
    of_device.policy = GCAP_GRAPH_ALLOW_HOLES;
    return of_device;
  }();
  bool allow_holes = false;
  HostEp host;
  std::unique_ptr<TestEp> device;
  gcap_session_t* session = nullptr;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SESSION_HOLES_RIG_H_
