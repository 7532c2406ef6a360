// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Replays of a session compared with its work: tensors by their names, whichever bindings a run has, and streams.

#include <string>

#include "gcap/graph_verify.h"
#include "gcap/kit/io_binding.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

const Floats kContent = {1, 2, 3, 4, 5, 6};

class SessionVerify : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    gcap_graph_verify_init(&verify_);
    verify_.each = 1;
    verify_.report = &report_;
    gcap_graph_verify_report_init(&report_);
  }
  static gcap_options_t Options() {
    gcap_options_t options;
    gcap_options_init(&options);
    options.enable_cuda_graph = true;
    options.graph.min_num_runs_before_capture = 1;
    return options;
  }
  gcap_run_options_t Verified(gcap_bindings_t bindings = GCAP_BINDINGS_FIXED, int graph_id = 0) const {
    gcap_run_options_t options = RunOptions(graph_id, true);
    options.bindings = bindings;
    options.verify = &verify_;
    return options;
  }
  static gcap_status_t Run(const ChainRig& rig, const gcap_run_options_t& options, const DeviceFloats& x,
                           const DeviceFloats& y) {
    const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
    return gcap_session_run(rig.session, &options, &input, &output);
  }

  gcap_graph_verify_t verify_;
  gcap_graph_verify_report_t report_;
};

TEST_F(SessionVerify, AReplayIsComparedWithTheModelsNodes) {
  for (const gcap_bindings_t bindings : {GCAP_BINDINGS_FIXED, GCAP_BINDINGS_COPY, GCAP_BINDINGS_RELOCATE}) {
    SCOPED_TRACE(bindings);
    DeviceFloats x(kContent), y(Floats(6));
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(Options()));
    const gcap_run_options_t options = Verified(bindings);
    for (int i = 0; i < 2; ++i) {
      GCAP_ASSERT_OK(Run(rig, options, x, y));
      EXPECT_FALSE(report_.is_verified);
    }
    const int executions = rig.count.executions;
    for (int i = 1; i <= 3; ++i) {
      y.Set(Floats(6));
      GCAP_ASSERT_OK(Run(rig, options, x, y));
      EXPECT_TRUE(report_.is_verified);
      EXPECT_EQ(report_.compared_bytes, 2 * y.Bytes());
      EXPECT_EQ(rig.count.executions, executions + 2 * i) << "by the replay and by the work";
      EXPECT_EQ(y.Get(), ChainOf(kContent));
    }
    EXPECT_EQ(rig.ep->Info(0).replays, 4u);
  }
}

TEST_F(SessionVerify, ATensorThatTheGraphDoesNotKnowIsToldByItsName) {
  DeviceFloats x(kContent), y(Floats(6)), other(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(Options()));
  for (int i = 0; i < 3; ++i) GCAP_ASSERT_OK(Run(rig, Verified(), x, y));
  EXPECT_TRUE(report_.is_verified);
  const LogCatcher log;
  GCAP_EXPECT_FAILS(Run(rig, Verified(), x, other), GCAP_REPLAY_DIFFERS,
                    "graph id 0: its replay differs from its work: buffer 1 'y' differs first in element 0 (f32): the "
                    "replay has 0, the work 2; 6 of all elements differ");
  EXPECT_EQ(report_.buffer, 1u);
  EXPECT_EQ(report_.different, 6u);
  EXPECT_EQ(other.Get(), ChainOf(kContent)) << "what the work left";
  EXPECT_FALSE(gcap_runtime_is_captured(rig.ep->runtime(), 0));
  GCAP_ASSERT_OK(Run(rig, Verified(), x, other));
  EXPECT_FALSE(report_.is_verified) << "the id cools down";
}

TEST_F(SessionVerify, TheNodeThatKnowsAnotherTensorIsFound) {
  DeviceFloats x(kContent), y(Floats(6)), other(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(Options()));
  verify_.bisect = true;
  for (int i = 0; i < 3; ++i) GCAP_ASSERT_OK(Run(rig, Verified(), x, y));
  EXPECT_TRUE(report_.is_verified);
  const LogCatcher log;
  GCAP_EXPECT_FAILS(Run(rig, Verified(), x, other), GCAP_REPLAY_DIFFERS, "stale pointer: node ");
  EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_STALE_POINTER);
  EXPECT_NE(report_.step, SIZE_MAX);
  EXPECT_EQ(other.Get(), ChainOf(kContent)) << "what the work left";
  for (int i = 0; i < 4; ++i) GCAP_ASSERT_OK(Run(rig, Verified(), x, other));
  EXPECT_TRUE(report_.is_verified) << "captured anew";
}

TEST_F(SessionVerify, WhatTheCallerListsSaysHowATensorIsCompared) {
  DeviceFloats x(kContent), y(Floats(6)), other(Floats(6)), state(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(Options()));
  for (int i = 0; i < 2; ++i) GCAP_ASSERT_OK(Run(rig, Verified(), x, y));
  const gcap_graph_verify_buffer_t listed[] = {
      {"kept", state.get(), state.Bytes(), GCAP_DTYPE_F32, 0, 0, false},
      {nullptr, other.get(), other.Bytes(), GCAP_DTYPE_F32, /*absolute=*/100, 0, false}};
  verify_.buffers = listed;
  verify_.num_buffers = 2;
  GCAP_ASSERT_OK(Run(rig, Verified(), x, other));
  EXPECT_TRUE(report_.is_verified);
  EXPECT_EQ(report_.compared_bytes, 3 * y.Bytes());
  EXPECT_EQ(other.Get(), ChainOf(kContent));
}

TEST_F(SessionVerify, AReplayOnAUsersStreamIsCompared) {
  DeviceFloats x(kContent), y(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(Options()));
  const RawStream stream;
  gcap_run_options_t options = Verified();
  options.user_stream = stream.get();
  for (int i = 0; i < 4; ++i) {
    y.Set(Floats(6));
    GCAP_ASSERT_OK(Run(rig, options, x, y));
    EXPECT_EQ(y.Get(), ChainOf(kContent));
    EXPECT_EQ(report_.is_verified, i >= 2);
  }
}

TEST_F(SessionVerify, ABindingStagesAndItsReplaysAreCompared) {
  DeviceFloats y(Floats(6));
  Floats x = kContent;
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(Options()));
  gcap_io_binding_t* binding = nullptr;
  GCAP_ASSERT_OK(gcap_io_binding_create(rig.session, &binding));
  const gcap_tensor_t input = Tensor(x.data(), {2, 3}), output = Tensor(y.get(), {2, 3});
  GCAP_ASSERT_OK(gcap_io_binding_bind_input(binding, "x", &input, {GCAP_MEMORY_HOST, 0}));
  GCAP_ASSERT_OK(gcap_io_binding_bind_output(binding, "y", &output, {GCAP_MEMORY_DEVICE, 0}));
  const gcap_run_options_t options = Verified();
  for (int i = 0; i < 4; ++i) {
    x[0] = static_cast<float>(10 + i);
    GCAP_ASSERT_OK(gcap_session_run_bound(rig.session, &options, binding));
    EXPECT_EQ(y.Get(), ChainOf(x));
    EXPECT_EQ(report_.is_verified, i >= 2);
  }
  GCAP_EXPECT_OK(gcap_io_binding_destroy(binding));
}

TEST_F(SessionVerify, NothingIsVerifiedWithoutAnIdOrByACaptureAlone) {
  DeviceFloats x(kContent), y(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(Options()));
  gcap_run_options_t options = Verified(GCAP_BINDINGS_FIXED, GCAP_GRAPH_ID_NONE);
  report_.is_verified = true;
  GCAP_ASSERT_OK(Run(rig, options, x, y));
  EXPECT_FALSE(report_.is_verified);
  options = Verified();
  options.capture_only = true;
  for (int i = 0; i < 2; ++i) {
    GCAP_ASSERT_OK(Run(rig, options, x, y));
    EXPECT_FALSE(report_.is_verified);
  }
  verify_.struct_size = 5;
  for (const int id : {0, GCAP_GRAPH_ID_NONE}) {
    GCAP_EXPECT_FAILS(Run(rig, Verified(GCAP_BINDINGS_FIXED, id), x, y), GCAP_INVALID_ARGUMENT, "gcap_graph_verify");
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
