// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runtimes of each of two devices, whichever one the thread has current: the functions of holes, in eager runs,
// captures, replays, verifications and searches, find the runtime's device; replays are compared, and a fault is found.
// On a machine with one device the cases of device 1 are skipped.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gcap/graph_guards.h"
#include "gcap/graph_holes.h"
#include "gcap/graph_taps.h"
#include "gcap/graph_verify.h"
#include "gtest/gtest.h"
#include "test/runtime/runtime_fixture.h"
#include "test/support/log_catcher.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kCount = 64;
constexpr size_t kBytes = kCount * sizeof(float);

struct Devices {
  int of_runtime, of_thread;
};

class RuntimeDeviceHoles : public RuntimeTest, public ::testing::WithParamInterface<Devices> {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    int devices = 0;
    ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
    const Devices device = GetParam();
    if (std::max(device.of_runtime, device.of_thread) >= devices) GTEST_SKIP() << "needs two devices";
    ASSERT_EQ(cudaSetDevice(device.of_runtime), cudaSuccess);
    x_ = std::make_unique<DeviceFloats>(Floats(kCount, 1));
    other_ = std::make_unique<DeviceFloats>(Floats(kCount, 8));
    aside_ = std::make_unique<DeviceFloats>(Floats(kCount));
    y_ = std::make_unique<DeviceFloats>(Floats(kCount));
    ASSERT_EQ(cudaSetDevice(device.of_thread), cudaSuccess);
    gcap_options_t options = GraphOptions(1);
    options.device_id = device.of_runtime;
    Create(options);
    from_ = x_.get();
  }
  void TearDown() override {
    RuntimeTest::TearDown();
    for (auto* floats : {&x_, &other_, &aside_, &y_}) floats->reset();
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  }

  static gcap_status_t Move(void* to, const void* from, cudaStream_t stream) {
    return GCAP_CUDA(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, stream));
  }
  // Waits, and takes memory of the current device and scratch of the run: aside = y.
  static gcap_status_t Call(void* user, const gcap_run_resources_t* run) {
    RuntimeDeviceHoles* test = static_cast<RuntimeDeviceHoles*>(user);
    ++test->calls_;
    int current = -1;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGetDevice(&current)));
    EXPECT_EQ(current, GetParam().of_runtime);
    EXPECT_EQ(gcap_stream_device(run->stream), GetParam().of_runtime);
    void* block = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, kBytes, run->stream, &block));
    gcap_status_t status = Move(block, test->y_->get(), run->cuda_stream);
    if (status == nullptr) status = Move(test->aside_->get(), block, run->cuda_stream);
    if (status == nullptr) status = GCAP_CUDA(cudaStreamSynchronize(run->cuda_stream));
    return gcap_status_join(status, gcap_scratch_free(run->scratch, block));
  }
  // y comes from x by way of a forked stream, then a hole, then a tap of what is behind it.
  gcap_status_t Issue(const gcap_run_resources_t& run) {
    gcap_stream_t* forked = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_runtime_fork(runtime_, 1, &forked));
    GCAP_RETURN_IF_ERROR(Move(y_->get(), x_->get(), gcap_stream_handle(forked)));
    GCAP_RETURN_IF_ERROR(gcap_runtime_join(runtime_));
    gcap_graph_hole_t hole;
    gcap_graph_hole_init(&hole);
    hole.name = "aside";
    hole.work = Call;
    hole.user = this;
    GCAP_RETURN_IF_ERROR(gcap_graph_hole_issue(&run, &hole));
    GCAP_RETURN_IF_ERROR(Move(y_->get(), from_->get(), run.cuda_stream));
    return gcap_graph_tap_issue(run.cuda_stream, "y", y_->get(), kBytes);
  }
  Outcome RunVerified() {
    const gcap_graph_verify_buffer_t named[] = {{"y", y_->get(), kBytes, GCAP_DTYPE_F32, 0, 0, false},
                                                {"aside", aside_->get(), kBytes, GCAP_DTYPE_F32, 0, 0, false}};
    gcap_graph_verify_t verify;
    gcap_graph_verify_init(&verify);
    verify.buffers = named;
    verify.num_buffers = 2;
    verify.each = 1;
    verify.bisect = true;
    verify.report = &report_;
    tapped_ = Floats(kCount);
    gcap_graph_tap_t tap = {"y", tapped_.data(), kBytes, 0};
    gcap_run_t run = RunOf(0, /*synchronize=*/true);
    run.work = [](void* test, const gcap_run_resources_t* resources) {
      return static_cast<RuntimeDeviceHoles*>(test)->Issue(*resources);
    };
    run.user = this;
    run.verify = &verify;
    run.taps = &tap;
    run.num_taps = 1;
    const Outcome outcome(gcap_runtime_run(runtime_, &run));
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, GetParam().of_thread) << "the thread has its own again";
    return outcome;
  }

  std::unique_ptr<DeviceFloats> x_, other_, aside_, y_;
  const DeviceFloats* from_ = nullptr;  // of y behind the hole: a graph keeps that of its capture
  Floats tapped_;
  gcap_graph_verify_report_t report_ = {};
  int calls_ = 0;
};

TEST_P(RuntimeDeviceHoles, AreVerifiedAndSearched) {
  gcap_graph_verify_report_init(&report_);
  for (int run = 0; run < 4; ++run) {
    x_->Set(Floats(kCount, static_cast<float>(run)));
    const Outcome outcome = RunVerified();
    ASSERT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(report_.is_verified, run >= 2);
    EXPECT_EQ(y_->Get(), Floats(kCount, static_cast<float>(run)));
    EXPECT_EQ(aside_->Get(), y_->Get());
    EXPECT_EQ(tapped_, y_->Get());
  }
  EXPECT_EQ(calls_, 6) << "eager, captured, and twice in each verified run";
  from_ = other_.get();
  const LogCatcher log;
  const Outcome found = RunVerified();
  EXPECT_STREQ(gcap_code_name(found.code), "REPLAY_DIFFERS") << found.message;
  EXPECT_EQ(report_.tap, 0u) << found.message;
  EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_STALE_POINTER) << found.message;
  EXPECT_EQ(report_.node, 1u) << "the copy behind the hole: " << found.message;
  EXPECT_EQ(report_.step_buffer, 0u) << "y: " << found.message;
  EXPECT_EQ(y_->Get(), Floats(kCount, 8)) << "what the work left";
  EXPECT_EQ(tapped_, Floats(kCount, 8));
  EXPECT_EQ(aside_->Get(), Floats(kCount, 3));
}

TEST_P(RuntimeDeviceHoles, GiveTheThreadItsDeviceBackWhenTheyThrow) {
  struct Throwing {
    bool throws = false;
    int current = -1;
  } throwing;
  const auto issue = [](void* user, const gcap_run_resources_t* run) -> gcap_status_t {
    gcap_graph_hole_t hole;
    gcap_graph_hole_init(&hole);
    hole.user = user;
    hole.work = [](void* user, const gcap_run_resources_t*) -> gcap_status_t {
      Throwing* throwing = static_cast<Throwing*>(user);
      EXPECT_EQ(cudaGetDevice(&throwing->current), cudaSuccess);
      if (throwing->throws) throw 17;
      return nullptr;
    };
    return gcap_graph_hole_issue(run, &hole);
  };
  for (int run = 0; run < 2; ++run) GCAP_ASSERT_OK(RunOnRuntime(runtime_, 0, issue, &throwing, true));
  for (const bool throws : {false, true}) {
    throwing.throws = throws;
    throwing.current = -1;
    const auto replay = [&] { return Outcome(RunOnRuntime(runtime_, 0, issue, &throwing, true)); };
    if (throws) {
      EXPECT_THROW(replay(), int);
    } else {
      EXPECT_TRUE(replay().ok());
    }
    EXPECT_EQ(throwing.current, GetParam().of_runtime);
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, GetParam().of_thread);
  }
}

TEST_P(RuntimeDeviceHoles, GuardsAreAskedOnTheDeviceOfTheRun) {
  struct Guarded {
    const DeviceFloats *from, *to;
    int works = 0;
    std::vector<int> devices;  // of each question
  } guarded{x_.get(), y_.get(), 0, {}};
  const auto issue = [](void* user, const gcap_run_resources_t* run) -> gcap_status_t {
    Guarded* guarded = static_cast<Guarded*>(user);
    ++guarded->works;
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.kind = GCAP_GRAPH_GUARD_ANSWER;
    guard.user = user;
    guard.ask = [](void* user, int64_t* out_answer) -> gcap_status_t {
      int current = -1;
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGetDevice(&current)));
      static_cast<Guarded*>(user)->devices.push_back(current);
      *out_answer = current;
      return nullptr;
    };
    GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
    return Move(guarded->to->get(), guarded->from->get(), run->cuda_stream);
  };
  for (int run = 0; run < 3; ++run) GCAP_ASSERT_OK(RunOnRuntime(runtime_, 0, issue, &guarded, true));
  EXPECT_EQ(guarded.works, 2) << "eager and captured; the third run is a replay";
  EXPECT_EQ(guarded.devices, std::vector<int>(3, GetParam().of_runtime))
      << "stated, at the end of the capture, replayed";
  int current = -1;
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, GetParam().of_thread);
}

INSTANTIATE_TEST_SUITE_P(OfEach, RuntimeDeviceHoles,
                         ::testing::Values(Devices{0, 0}, Devices{0, 1}, Devices{1, 0}, Devices{1, 1}),
                         [](const auto& info) {
                           return "Device" + std::to_string(info.param.of_runtime) + "WhereTheThreadHas" +
                                  std::to_string(info.param.of_thread);
                         });

}  // namespace
}  // namespace testing
}  // namespace gcap
