// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Where a run sets the device: before its capture begins and after it has ended, and not at each kernel.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "gcap/capture.h"
#include "gcap/kit/session.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"
#include "test/support/faults.h"

namespace {

using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::Fault;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::ModelBuilder;
using gcap::testing::NodeControl;
using gcap::testing::Outcome;
using gcap::testing::Reach;
using gcap::testing::Tensor;
using gcap::testing::TestEp;
using gcap::testing::TestEpConfig;

uint64_t SetDeviceCalls() { return gcap_sim_calls("cudaSetDevice"); }

// What the kernel in the middle of the chain saw last: how often the device was set, and how often since its capture
// began.
struct Seen {
  uint64_t calls, calls_in_capture;
  bool capturing;
} seen;

void Look() {
  gcap_capture_call_t calls[32];  // more than the capture has made so far
  const size_t count = std::min<size_t>(gcap_capture_get_calls(gcap_capture_current(), calls, 32), 32);
  seen = {SetDeviceCalls(), 0, gcap_thread_is_capturing()};
  for (size_t i = 0; i < count; ++i)
    seen.calls_in_capture += std::strstr(calls[i].operation, "cudaSetDevice") != nullptr;
}

TEST(SessionSetDevice, NoKernelSetsItInACapture) {
  constexpr int kDevice = 1;
  gcap_options_t options = GraphOptions(1);
  options.device_id = kDevice;
  TestEpConfig config;
  config.leave = Look;
  ASSERT_EQ(cudaSetDevice(kDevice), cudaSuccess);
  ChainRig rig("Leave");
  GCAP_ASSERT_OK(rig.Create(options, config));
  DeviceFloats x(Floats(6)), y(Floats(6));
  int id = 0;
  for (const int current : {kDevice, 0}) {
    SCOPED_TRACE(current == kDevice ? "the EP's device is current" : "another device is current");
    ASSERT_EQ(cudaSetDevice(current), cudaSuccess);
    GCAP_ASSERT_OK(rig.Run(x, y, id));
    EXPECT_FALSE(seen.capturing);
    const uint64_t before = SetDeviceCalls();
    GCAP_ASSERT_OK(rig.Run(x, y, id));
    EXPECT_TRUE(seen.capturing);
    EXPECT_EQ(seen.calls, before + (current == kDevice ? 0 : 1));
    EXPECT_EQ(seen.calls_in_capture, 0u);
    EXPECT_EQ(SetDeviceCalls(), before + (current == kDevice ? 0 : 2)) << "set before the capture, restored after it";
    ++id;
  }
  ASSERT_EQ(cudaSetDevice(kDevice), cudaSuccess);
  EXPECT_EQ(rig.count.executions, 4);
}

// The device is given back after a copy of the constants that failed.
TEST(SessionSetDevice, FaultsOfACreationAreToldInTheirOrder) {
  gcap_options_t options = GraphOptions(1);
  options.device_id = 1;
  ChainRig rig;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  GCAP_ASSERT_OK(gcap::testing::TestEp::Create(options, {}, &rig.ep));
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  gcap_run_resources_t resources;
  GCAP_ASSERT_OK(gcap_runtime_get_resources(rig.ep->runtime(), &resources));
  const auto trial = [&](Fault& fault) {
    const Outcome outcome = fault.During([&] { return rig.CreateSession(); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    EXPECT_EQ(rig.session == nullptr, fault.hit());
    GCAP_EXPECT_OK(gcap_session_destroy(rig.session));
    rig.session = nullptr;
  };
  EXPECT_EQ(gcap::testing::WalkFaults(trial, Reach::kAllAfter).functions.count("cudaMemcpyAsync"), 1u);
}

// Of a run on two devices each change of the device is needed, also those of its end.
TEST(SessionSetDevice, ADeviceThatCannotBeSetFailsTheRun) {
  std::unique_ptr<TestEp> eps[2];
  for (int device = 0; device < 2; ++device) {
    TestEpConfig config;
    config.name = "device " + std::to_string(device);
    config.ops = {device == 0 ? "Rotate" : "Bounce"};
    gcap_options_t options = GraphOptions();
    options.enable_cuda_graph = false;
    options.device_id = device;
    GCAP_ASSERT_OK(TestEp::Create(options, config, &eps[device]));
  }
  NodeControl bounce;
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "there", {x}, {a});
  m.Node("Bounce", "bounce", {a}, {y}, &bounce);
  const gcap_model_t model = m.Model();
  gcap_ep_t* const both[] = {eps[0]->get(), eps[1]->get()};
  gcap_session_t* session = nullptr;
  GCAP_ASSERT_OK(gcap_session_create(&model, both, 2, nullptr, &session));
  {
    DeviceFloats from(Floats(6));
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    DeviceFloats to(Floats(6));
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    const gcap_tensor_t input = Tensor(from.get(), {6}), output = Tensor(to.get(), {6});
    const auto run = [&] { return gcap_session_run(session, nullptr, &input, &output); };
    for (int warm_up = 0; warm_up < 2; ++warm_up) GCAP_EXPECT_OK(run());
    const size_t events = gcap_sim_live("event");
    GCAP_EXPECT_OK(run());
    EXPECT_EQ(gcap_sim_live("event"), events) << "those that order the devices";
    int failed = 0;
    for (bool hit = true; hit; failed += hit) {
      const uint64_t before = SetDeviceCalls();
      gcap_sim_fail_nth("cudaSetDevice", static_cast<uint64_t>(failed) + 1, cudaErrorUnknown);
      const Outcome outcome(run());
      gcap_sim_clear_faults();
      hit = SetDeviceCalls() - before > static_cast<uint64_t>(failed);
      EXPECT_EQ(outcome.Names("cudaSetDevice"), hit) << failed << ": " << outcome.message;
      for (int device = 1; device >= 0; --device) {
        ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      }
    }
    EXPECT_GE(failed, 4) << "two for the steps, two for the ends";
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  GCAP_EXPECT_OK(gcap_session_destroy(session));
}

}  // namespace
