// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch of a session that cannot be freed when the session wants to: with red zones a free makes CUDA calls, which
// fail in a capture that a kernel broke, or because they fail. Was: the session forgot the block, no run said so, and
// the runtime could never end.

#include <cuda_runtime_api.h>

#include <functional>
#include <string>

#include "gcap/kit/ep_ops.h"
#include "gcap/kit/session.h"
#include "gcap/runtime.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/support/device_floats.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// Two nodes, each of which copies, so that "between" lies in the session's scratch. Before the second one does, it
// misbehaves as it is told.
class Rig {
 public:
  explicit Rig(bool captures) {
    gcap_options_t options;
    gcap_options_init(&options);
    options.enable_cuda_graph = captures;
    options.graph.min_num_runs_before_capture = 1;
    options.arena.red_zones = true;
    GCAP_EXPECT_OK(gcap_runtime_create(&options, &runtime));
    gcap_ep_ops_t ops = {};
    ops.struct_size = sizeof(gcap_ep_ops_t);
    ops.name = "rig";
    ops.self = this;
    ops.supports = [](void*, const gcap_model_t*, const gcap_node_t*) { return true; };
    ops.create_kernel = [](void* self, const gcap_model_t*, const gcap_node_t* node, gcap_kernel_t* out) {
      out->self = self;
      out->compute = node->name == std::string("second") ? Second : Copy;
      return gcap_status_t(nullptr);
    };
    ops.runtime = runtime;
    GCAP_EXPECT_OK(gcap_ep_create(&ops, &ep));
    const int in = 0, between = 1, out = 2;
    const gcap_value_t values[] = {{"in", GCAP_DTYPE_F32, 1, {16}, nullptr},
                                   {"between", GCAP_DTYPE_F32, 1, {16}, nullptr},
                                   {"out", GCAP_DTYPE_F32, 1, {16}, nullptr}};
    const gcap_node_t nodes[] = {{"Copy", "first", &in, 1, &between, 1, nullptr},
                                 {"Copy", "second", &between, 1, &out, 1, nullptr}};
    const gcap_model_t model = {values, 3, nodes, 2, &in, 1, &out, 1, nullptr, 0};
    GCAP_EXPECT_OK(gcap_session_create(&model, &ep, 1, nullptr, &session));
  }
  static Rig* Of(void* self) { return static_cast<Rig*>(self); }

  static gcap_status_t Copy(void*, const gcap_kernel_context_t* context) {
    return GCAP_CUDA(cudaMemcpyAsync(context->outputs[0].data, context->inputs[0].data, 16 * sizeof(float),
                                     cudaMemcpyDeviceToDevice, gcap_stream_handle(context->resources.stream)));
  }
  static gcap_status_t Second(void* self, const gcap_kernel_context_t* context) {
    gcap_status_t status = Copy(self, context);
    if (Of(self)->misbehave) Of(self)->misbehave();
    return status;
  }

  Outcome Run() {
    const gcap_tensor_t input = {x.get(), GCAP_DTYPE_F32, 1, {16}}, output = {y.get(), GCAP_DTYPE_F32, 1, {16}};
    return Outcome(gcap_session_run(session, nullptr, &input, &output));
  }
  void ExpectRightRun(float seed) {
    const std::vector<float> content(16, seed);
    x.Set(content);
    y.Set(std::vector<float>(16, -1.0f));
    const Outcome outcome = Run();
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(y.Get(), content);
  }
  uint64_t BytesInUse() {
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(gcap_runtime_scratch(runtime), &stats);
    return stats.requested_in_use_bytes;
  }
  // Everything ends, and at the first call.
  void ExpectEnds() {
    GCAP_EXPECT_OK(gcap_session_destroy(session));
    GCAP_EXPECT_OK(gcap_ep_destroy(ep));
  }

  std::function<void()> misbehave;
  DeviceFloats x{std::vector<float>(16)}, y{std::vector<float>(16)};
  gcap_runtime_t* runtime = nullptr;
  gcap_ep_t* ep = nullptr;
  gcap_session_t* session = nullptr;
};

// The classic mistake: an allocation inside the capture, whose error nobody reports.
void AllocateInCapture() {
  void* memory = nullptr;
  if (!gcap_thread_is_capturing()) return;
  EXPECT_NE(cudaMalloc(&memory, 16), cudaSuccess);
  (void)cudaGetLastError();
}

TEST(SessionLeak, CaptureThatAKernelBrokeLosesNoScratch) {
  LogCatcher log;
  {
    Rig rig(/*captures=*/true);
    rig.misbehave = AllocateInCapture;
    for (int run = 0; run < 6; ++run) {
      rig.ExpectRightRun(static_cast<float>(run));
      EXPECT_EQ(rig.BytesInUse(), 0u) << "after run " << run;
    }
    EXPECT_NE(log.text().find("is run again, eagerly"), std::string::npos) << log.text();
    EXPECT_NE(log.text().find("no longer after second"), std::string::npos) << log.text();
    rig.misbehave = nullptr;
    for (int run = 0; run < 6; ++run) rig.ExpectRightRun(static_cast<float>(run));
    EXPECT_TRUE(gcap_runtime_is_captured(gcap_ep_runtime(rig.ep), 0))
        << "the id is captured as soon as the kernel behaves";
    rig.ExpectEnds();
  }
}

// Each CUDA call of a run fails once, with those of the red zones among them.
TEST(SessionLeak, CallThatFailsLosesNoScratchAndIsNamed) {
  for (bool captures : {false, true}) {
    SCOPED_TRACE(captures ? "a capture" : "an eager run");
    const Walked walked = WalkFaults([&](Fault& fault) {
      LogCatcher log;
      Rig rig(captures);
      rig.ExpectRightRun(1);
      fault.Arm();
      const Outcome outcome = rig.Run();
      fault.Disarm();
      const bool is_told = (outcome.message + log.text()).find(fault.function()) != std::string::npos;
      EXPECT_TRUE(!fault.hit() || is_told) << outcome.message << log.text();
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      EXPECT_EQ(rig.BytesInUse(), 0u) << outcome.message;
      rig.ExpectRightRun(2);
      rig.ExpectEnds();
    });
    EXPECT_EQ(walked.functions.count("cudaMemcpyAsync"), 1u);
  }
}

// Also when each call that a free needs fails, the run's end lets go of the block, and says of which node.
TEST(SessionLeak, BlockThatCannotBeCheckedGoesBackAndNamesItsNodeAndItsCall) {
  Rig rig(/*captures=*/false);
  rig.ExpectRightRun(1);
  rig.misbehave = [] {
    const gcap_sim_fault_t each = {"cudaMemcpyAsync", 0, /*probability=*/1, cudaErrorUnknown, 0};
    gcap_sim_inject(&each);
  };
  const Outcome outcome = rig.Run();
  gcap_sim_clear_faults();
  rig.misbehave = nullptr;
  EXPECT_EQ(outcome.code, GCAP_CUDA_ERROR);
  EXPECT_TRUE(outcome.Names("'first'")) << "who allocated it: " << outcome.message;
  EXPECT_TRUE(outcome.Names("cudaMemcpyAsync")) << outcome.message;
  EXPECT_EQ(rig.BytesInUse(), 0u);
  rig.ExpectRightRun(2);
  rig.ExpectEnds();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
