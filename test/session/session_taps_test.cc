// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Taps that a session's kernels make, and that its runs read.

#include <string>

#include "gcap/graph_taps.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class SessionTaps : public DeviceTest {
 protected:
  // Taps the first input of each node, with the op as label, as a kernel of a provider may.
  static void TapInput(const char* op, const gcap_kernel_context_t* context) {
    const gcap_tensor_t& input = context->inputs[0];
    GCAP_EXPECT_OK(
        gcap_graph_tap_issue(gcap_stream_handle(context->resources.stream), op, input.data, gcap_tensor_bytes(&input)));
  }
};

TEST_F(SessionTaps, OfKernelsAreReadByEagerRunsCapturesAndReplays) {
  const LogCatcher log;
  for (const gcap_bindings_t bindings : {GCAP_BINDINGS_FIXED, GCAP_BINDINGS_RELOCATE}) {
    SCOPED_TRACE(bindings);
    gcap_options_t options;
    gcap_options_init(&options);
    options.enable_cuda_graph = true;
    options.graph.min_num_runs_before_capture = 1;
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(options));
    rig.ep->on_compute = TapInput;
    DeviceFloats x(Floats(6)), y(Floats(6));
    for (int i = 0; i < 4; ++i) {
      const float seed = 10.0f * i;
      const Floats content = {seed, seed + 1, seed + 2, seed + 3, seed + 4, seed + 5};
      x.Set(content);
      Floats rotated(6), none(6, -1);
      gcap_graph_tap_t taps[] = {{"Rotate", rotated.data(), 6 * sizeof(float), 0},
                                 {"no such op", none.data(), 6 * sizeof(float), 7}};
      gcap_run_options_t run = RunOptions(/*graph_id=*/0, /*synchronize=*/false);
      run.bindings = bindings;
      run.taps = taps;
      run.num_taps = 2;
      const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
      GCAP_ASSERT_OK(gcap_session_run(rig.session, &run, &input, &output));
      EXPECT_EQ(rotated, content) << "run " << i;
      EXPECT_EQ(taps[0].tapped_bytes, 6 * sizeof(float));
      EXPECT_EQ(none, Floats(6, -1));
      EXPECT_EQ(taps[1].tapped_bytes, 0u);
      EXPECT_EQ(y.Get(), ChainOf(content));
    }
    EXPECT_EQ(rig.ep->Info(0).replays, 3u);
    gcap_graph_tap_t unnamed = {nullptr, nullptr, 0, 0};
    gcap_run_options_t bad = RunOptions(/*graph_id=*/0, /*synchronize=*/true);
    bad.taps = &unnamed;
    bad.num_taps = 1;
    const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
    GCAP_EXPECT_FAILS(gcap_session_run(rig.session, &bad, &input, &output), GCAP_INVALID_ARGUMENT,
                      "taps[0].label is NULL");
  }
}

// The graph taps what its capture did, and the work something else, near enough for the verification.
TEST_F(SessionTaps, OfAVerifiedRunAreThoseOfTheWork) {
  const LogCatcher log;
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  options.graph.min_num_runs_before_capture = 0;
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(options));
  DeviceFloats x(Floats(6, 1)), y(Floats(6)), other(Floats(6, 3));
  static const float* tapped;
  tapped = x.get();
  rig.ep->on_compute = [](const char* op, const gcap_kernel_context_t* context) {
    if (std::string(op) != "Rotate") return;
    GCAP_EXPECT_OK(gcap_graph_tap_issue(gcap_stream_handle(context->resources.stream), op, tapped, 6 * sizeof(float)));
  };
  Floats seen(6);
  gcap_graph_tap_t tap = {"Rotate", seen.data(), 6 * sizeof(float), 0};
  const gcap_graph_verify_buffer_t near = {"Rotate", x.get(), 6 * sizeof(float), GCAP_DTYPE_F32, 10, 0, false};
  gcap_graph_verify_t verify;
  gcap_graph_verify_init(&verify);
  verify.buffers = &near;
  verify.num_buffers = 1;
  verify.each = 1;
  gcap_run_options_t run = RunOptions(/*graph_id=*/0, /*synchronize=*/true);
  run.taps = &tap;
  run.num_taps = 1;
  run.verify = &verify;
  const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
  GCAP_ASSERT_OK(gcap_session_run(rig.session, &run, &input, &output));
  EXPECT_EQ(seen, Floats(6, 1));
  tapped = other.get();
  GCAP_ASSERT_OK(gcap_session_run(rig.session, &run, &input, &output));
  EXPECT_EQ(seen, Floats(6, 3));
  EXPECT_EQ(tap.tapped_bytes, 6 * sizeof(float));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
