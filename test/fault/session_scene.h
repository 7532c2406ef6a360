// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// session_scene.h: a session of a small model on an EP: the scene of the walks over ep, ep_ops and session.
#ifndef GCAP_TEST_FAULT_SESSION_SCENE_H_
#define GCAP_TEST_FAULT_SESSION_SCENE_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "gcap/graph_plan.h"
#include "gcap/kit/ep.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/kit/io_binding.h"
#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/fault/out.h"
#include "test/fault/walk.h"
#include "test/session/session_test.h"
#include "test/support/device_floats.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

// Graphs are captured in an id's second run. What a walk destroys it sets to NULL.
class SessionScene : public Scene {
 public:
  SessionScene() : rig(std::make_unique<ChainRig>()) {
    gcap_graph_plan_init(&plan);
    GCAP_EXPECT_OK(rig->Create(GraphOptions(1)));
  }

  void ExpectNextRunWorks() override {
    // A run whose wait failed may still go on.
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    if (rig->session == nullptr) return;
    for (int run = 0; run < 3; ++run) rig->ExpectRightRun(&x, &y, 100.0f + static_cast<float>(run), kNextId);
  }

  cudaStream_t CapturingStream() override {
    gcap_run_resources_t resources;
    GCAP_EXPECT_OK(gcap_runtime_get_resources(Runtime(), &resources));
    return gcap_stream_handle(resources.stream);
  }

  gcap_status_t End() override {
    gcap_status_t status = DestroyBinding();
    status = gcap_status_join(status, DestroySession());
    if (kernel.destroy != nullptr) kernel.destroy(kernel.self);
    if (rig->ep != nullptr) status = gcap_status_join(status, rig->ep->End());
    rig->ep.reset();
    status = gcap_status_join(status, gcap_runtime_destroy(runtime));
    return gcap_status_join(status, gcap_ep_destroy(ep));
  }

  gcap_status_t DestroySession() {
    gcap_session_t* session = rig->session;
    rig->session = nullptr;
    return gcap_session_destroy(session);
  }
  // Both tensors in pageable memory.
  void CreateBinding() { GCAP_EXPECT_OK(gcap_io_binding_create(rig->session, &binding)); }
  gcap_status_t BindX() {
    const gcap_tensor_t tensor = Tensor(host_x.data(), {2, 3});
    return gcap_io_binding_bind_input(binding, "x", &tensor, {GCAP_MEMORY_HOST, 0});
  }
  gcap_status_t BindY() {
    const gcap_tensor_t tensor = Tensor(host_y.data(), {2, 3});
    return gcap_io_binding_bind_output(binding, "y", &tensor, {GCAP_MEMORY_HOST, 0});
  }
  gcap_status_t RunBound() {
    const gcap_run_options_t options = RunOptions(kBoundId, /*synchronize=*/true);
    return gcap_session_run_bound(rig->session, &options, binding);
  }
  void Bind(int runs) {
    CreateBinding();
    GCAP_EXPECT_OK(BindX());
    GCAP_EXPECT_OK(BindY());
    for (int run = 0; run < runs; ++run) GCAP_EXPECT_OK(RunBound());
  }
  gcap_status_t DestroyBinding() {
    gcap_status_t status = gcap_io_binding_destroy(binding);
    if (status == nullptr) binding = nullptr;
    return status;
  }
  gcap_ep_t* Ep() const { return rig->ep->get(); }
  gcap_runtime_t* Runtime() const { return rig->ep->runtime(); }
  void Run(int runs) {
    for (int run = 0; run < runs; ++run) rig->ExpectRightRun(&x, &y, static_cast<float>(run), kId);
  }

  static constexpr int kId = 0, kBoundId = 5;
  Floats host_x = Floats(kCount, 1.0f), host_y = Floats(kCount);
  DeviceFloats x{Floats(kCount)}, y{Floats(kCount)};
  std::unique_ptr<ChainRig> rig;
  gcap_kernel_t kernel = {};
  gcap_ep_t* ep = nullptr;  // what a walk makes
  gcap_runtime_t* runtime = nullptr;
  gcap_io_binding_t* binding = nullptr;
  // What calls fill in, and nobody looks at.
  gcap_options_t options;
  gcap_run_options_t run_options;
  gcap_run_t run;
  gcap_run_resources_t resources = {};
  gcap_stream_t* streams[2] = {};
  gcap_graph_plan_t plan;
  char text[8];

 private:
  static constexpr int kNextId = 9;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_FAULT_SESSION_SCENE_H_
