// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions on a second device, and on two devices at once.

#include <memory>
#include <thread>
#include <vector>

#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/session/holes_rig.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// Makes a device current for a scope.
class OnDevice {
 public:
  explicit OnDevice(int device_id) {
    EXPECT_EQ(cudaGetDevice(&previous_), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(device_id), cudaSuccess);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { EXPECT_EQ(cudaSetDevice(previous_), cudaSuccess); }

 private:
  int previous_ = 0;
};

class SessionDevices : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    int devices = 0;
    ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
    if (devices < 2) GTEST_SKIP() << "needs two devices";
  }
};

std::unique_ptr<TestEp> Ep(int device_id, const std::set<std::string>& ops, bool captures,
                           cudaStream_t user_stream = nullptr) {
  TestEpConfig config;
  config.name = "device " + std::to_string(device_id);
  config.ops = ops;
  gcap_options_t options = GraphOptions(1);
  options.device_id = device_id;
  options.enable_cuda_graph = captures;
  options.has_user_stream = user_stream != nullptr;
  options.user_stream = user_stream;
  std::unique_ptr<TestEp> ep;
  GCAP_EXPECT_OK(TestEp::Create(options, config, &ep));
  return ep;
}

// Upstream's test_cuda_graph_second_device.
TEST_F(SessionDevices, SecondDeviceCapturesAndReplaysWithNewContent) {
  ChainRig rig;
  gcap_options_t options = GraphOptions(1);
  options.device_id = 1;
  GCAP_ASSERT_OK(rig.Create(options));
  EXPECT_EQ(gcap_session_input_memory(rig.session, 0).device_id, 1);
  EXPECT_EQ(gcap_session_output_memory(rig.session, 0).device_id, 1);
  {
    const OnDevice second(1);
    DeviceFloats x(Floats(6)), y(Floats(6));
    for (int run = 0; run < 5; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(10 * run));
  }
  EXPECT_EQ(rig.ep->Info(0).captures, 1u);
  int current = -1;
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0);
}

// x on device 0 -> Rotate there -> a -> Bounce on device 1 -> b -> Rotate on device 0 -> y, where a is read again.
ModelBuilder ThereAndBack(NodeControl* bounce) {
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), b = m.Value("b", {6}), c = m.Value("c", {6});
  const int y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "there", {x}, {a});
  m.Node("Bounce", "bounce", {a}, {b}, bounce);
  m.Node("Rotate", "back", {b}, {c});
  m.Node("Join", "join", {c, a}, {y});
  return m;
}

// Each kernel is given the stream of its own EP.
template <int kDevice>
void ExpectStreamOfDevice(const char* op, const gcap_kernel_context_t* context) {
  EXPECT_EQ(gcap_stream_device(context->resources.stream), kDevice) << op;
}

class TwoDevices {
 public:
  TwoDevices(cudaStream_t first = nullptr, cudaStream_t second = nullptr, bool swapped = false)
      : eps_{Ep(0, {"Rotate", "Join"}, false, first), Ep(1, {"Bounce"}, false, second)} {
    eps_[0]->on_compute = ExpectStreamOfDevice<0>;
    eps_[1]->on_compute = ExpectStreamOfDevice<1>;
    Create(eps_[0]->get(), eps_[1]->get(), swapped);
  }
  // Another session on the EPs of `other`.
  TwoDevices(const TwoDevices& other, bool swapped) { Create(other.eps_[0]->get(), other.eps_[1]->get(), swapped); }
  ~TwoDevices() { GCAP_EXPECT_OK(gcap_session_destroy(session_)); }

  gcap_status_t Run(const DeviceFloats& x, const DeviceFloats& y, bool synchronize = true) {
    const gcap_tensor_t input = Tensor(x.get(), {6}), output = Tensor(y.get(), {6});
    const gcap_run_options_t options = RunOptions(0, synchronize);
    return gcap_session_run(session_, &options, &input, &output);
  }
  gcap_session_t* get() const { return session_; }
  gcap_ep_t* ep(int i) const { return eps_[i]->get(); }
  TestEp* test_ep(int i) const { return eps_[i].get(); }

 private:
  void Create(gcap_ep_t* first, gcap_ep_t* second, bool swapped) {
    gcap_ep_t* const eps[] = {swapped ? second : first, swapped ? first : second};
    const gcap_model_t model = builder_.Model();
    GCAP_EXPECT_OK(gcap_session_create(&model, eps, 2, nullptr, &session_));
  }

  NodeControl bounce_;
  ModelBuilder builder_ = ThereAndBack(&bounce_);
  std::unique_ptr<TestEp> eps_[2];
  gcap_session_t* session_ = nullptr;
};

Floats Expected(float f) { return {f + 2, f + 3, f + 4, f + 4, f + 5, f}; }
Floats Content(float f) { return {f, f + 1, f + 2, f + 3, f + 4, f + 5}; }

TEST_F(SessionDevices, ValuesCrossFromDeviceToDevice) {
  TwoDevices two;
  EXPECT_STREQ(gcap_session_node_ep_name(two.get(), 1), "device 1");
  DeviceFloats x(Floats(6)), y(Floats(6));
  const LogCatcher log;
  for (int run = 0; run < 4; ++run) {
    x.Set(Content(static_cast<float>(run)));
    GCAP_ASSERT_OK(two.Run(x, y));
    EXPECT_EQ(y.Get(), Expected(static_cast<float>(run)));
  }
  EXPECT_EQ(log.text(), "") << "such as what is left to the end of the run";
  int current = -1;
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0);
}

// Nobody waits between the runs: the streams are ordered at each crossing, and the memory of one run may be the next's.
// Whichever device is held up.
TEST_F(SessionDevices, RunsWithoutSynchronizeKeepTheirOrder) {
  constexpr int kRuns = 8;
  for (const int held : {-1, 0, 1}) {
    SCOPED_TRACE(held);
    TwoDevices two;
    std::vector<std::unique_ptr<DeviceFloats>> x, y;
    for (int run = 0; run < kRuns; ++run) {
      x.push_back(std::make_unique<DeviceFloats>(Content(static_cast<float>(run))));
      y.push_back(std::make_unique<DeviceFloats>(Floats(6)));
    }
    GCAP_ASSERT_OK(two.Run(*x[0], *y[0]));
    Gate gate;
    if (held >= 0) {
      const OnDevice device(held);
      gcap_run_resources_t resources;
      GCAP_ASSERT_OK(gcap_runtime_get_resources(gcap_ep_runtime(two.ep(held)), &resources));
      gate.Hold(resources.cuda_stream);
    }
    for (int run = 0; run < kRuns; ++run) GCAP_ASSERT_OK(two.Run(*x[run], *y[run], /*synchronize=*/false));
    gate.Open();
    GCAP_ASSERT_OK(gcap_runtime_synchronize(gcap_ep_runtime(two.ep(0))));
    GCAP_ASSERT_OK(gcap_runtime_synchronize(gcap_ep_runtime(two.ep(1))));
    for (int run = 0; run < kRuns; ++run) EXPECT_EQ(y[run]->Get(), Expected(static_cast<float>(run)));
  }
}

// x on device 0 -> Rotate there -> a -> Bounce on device 1 -> y there. Nothing comes back, so the first device may run
// ahead, and what it is to write next is what the second one has yet to copy.
TEST_F(SessionDevices, TheFirstDeviceDoesNotOverwriteWhatTheSecondHasYetToCopy) {
  constexpr int kRuns = 4;
  NodeControl bounce;
  ModelBuilder m;
  const int read = m.Value("x", {6}), a = m.Value("a", {6}), made = m.Value("y", {6});
  m.inputs = {read};
  m.outputs = {made};
  m.Node("Rotate", "there", {read}, {a});
  m.Node("Bounce", "bounce", {a}, {made}, &bounce);
  const std::unique_ptr<TestEp> first = Ep(0, {"Rotate"}, false), second = Ep(1, {"Bounce"}, false);
  gcap_ep_t* const eps[] = {first->get(), second->get()};
  const gcap_model_t model = m.Model();
  gcap_session_t* session = nullptr;
  GCAP_ASSERT_OK(gcap_session_create(&model, eps, 2, nullptr, &session));
  std::vector<std::unique_ptr<DeviceFloats>> x, y;
  for (int run = 0; run < kRuns; ++run) {
    x.push_back(std::make_unique<DeviceFloats>(Content(static_cast<float>(run))));
    const OnDevice device(1);
    y.push_back(std::make_unique<DeviceFloats>(Floats(6)));
  }
  const auto run = [&](int i) {
    const gcap_tensor_t input = Tensor(x[i]->get(), {6}), output = Tensor(y[i]->get(), {6});
    const gcap_run_options_t options = RunOptions(0, /*synchronize=*/false);
    return gcap_session_run(session, &options, &input, &output);
  };
  GCAP_ASSERT_OK(run(0));
  GCAP_ASSERT_OK(gcap_runtime_synchronize(second->runtime()));
  Gate gate;
  {
    const OnDevice device(1);
    gcap_run_resources_t resources;
    GCAP_ASSERT_OK(gcap_runtime_get_resources(second->runtime(), &resources));
    gate.Hold(resources.cuda_stream);
  }
  for (int i = 0; i < kRuns; ++i) GCAP_EXPECT_OK(run(i));
  std::this_thread::sleep_for(kPatience);
  gate.Open();
  GCAP_EXPECT_OK(gcap_runtime_synchronize(second->runtime()));
  for (int i = 0; i < kRuns; ++i) {
    const float f = static_cast<float>(i);
    EXPECT_EQ(y[i]->Get(), Floats({f + 1, f + 2, f + 3, f + 4, f + 5, f}));
  }
  GCAP_EXPECT_OK(gcap_session_destroy(session));
}

// --- Callbacks that do not return -----------------------------------------------------------------------------------

struct Thrown {};
int computes_until_throw = 0;
void CountDown(const char*, const gcap_kernel_context_t*) {
  if (computes_until_throw-- == 0) throw Thrown();
}

// Whichever kernel throws: the runs of both EPs end, their turns too, and the thread has its device back.
TEST_F(SessionDevices, AnExceptionEndsTheRunOnEachEp) {
  cudaStream_t streams[2] = {};
  for (int d = 0; d < 2; ++d) {
    const OnDevice device(d);
    ASSERT_EQ(cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking), cudaSuccess);
  }
  for (const bool takes_turns : {false, true}) {
    TwoDevices two(takes_turns ? streams[0] : nullptr, takes_turns ? streams[1] : nullptr);
    for (int i = 0; i < 2; ++i) two.test_ep(i)->on_compute = CountDown;
    DeviceFloats x(Floats(6)), y(Floats(6));
    for (int node = 0; node < 4; ++node) {
      SCOPED_TRACE(node);
      computes_until_throw = node;
      EXPECT_THROW(gcap_status_free(two.Run(x, y, /*synchronize=*/false)), Thrown);
      int current = -1;
      EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
      EXPECT_EQ(current, 0);
      for (int i = 0; i < 2; ++i) {
        gcap_allocator_stats_t stats;
        gcap_scratch_get_stats(gcap_runtime_scratch(two.test_ep(i)->runtime()), &stats);
        EXPECT_EQ(stats.requested_in_use_bytes, 0u) << "of EP " << i;
        GCAP_EXPECT_OK(gcap_runtime_synchronize(two.test_ep(i)->runtime()));
      }
      std::thread([&] {  // whose turn it may be now
        DeviceFloats in(Content(static_cast<float>(node))), out(Floats(6));
        GCAP_ASSERT_OK(two.Run(in, out));
        EXPECT_EQ(out.Get(), Expected(static_cast<float>(node)));
      })
          .join();
      x.Set(Content(static_cast<float>(node)));
      GCAP_ASSERT_OK(two.Run(x, y));
      EXPECT_EQ(y.Get(), Expected(static_cast<float>(node)));
    }
  }
  for (cudaStream_t stream : streams) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// The kernels of a hole find their device current, and the thread has its own one back, also behind an exception that
// leaves the hole of an eager run, of a captured one and of a replay.
TEST_F(SessionDevices, HolesAreOnTheDeviceOfTheirEp) {
  HolesRig rig;
  gcap_options_t options = GraphOptions(1);
  options.device_id = 1;
  GCAP_ASSERT_OK(rig.Create(options));
  rig.device->on_compute = [](const char* op, const gcap_kernel_context_t*) {
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 1) << op;
  };
  std::unique_ptr<DeviceFloats> x, y;
  {
    const OnDevice second(1);
    x = std::make_unique<DeviceFloats>(Floats(6));
    y = std::make_unique<DeviceFloats>(Floats(6));
  }
  for (int run = 0; run < 8; ++run) {
    const bool throws = run % 4 >= 2 || run == 0;
    rig.host.leave = throws ? [] { throw Thrown(); } : static_cast<void (*)()>(nullptr);
    if (throws) {
      EXPECT_THROW(gcap_status_free(rig.Run(x->get(), y->get())), Thrown);
    } else {
      GCAP_EXPECT_OK(rig.Run(x->get(), y->get()));
    }
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 0) << "run " << run;
    EXPECT_FALSE(gcap_thread_is_capturing());
  }
  EXPECT_EQ(rig.device->Info(0).captures, 1u);
  EXPECT_GE(rig.device->Info(0).replays, 5u) << "of which some threw";
  rig.host.leave = nullptr;
  const OnDevice second(1);
  for (int run = 0; run < 3; ++run) rig.ExpectRightRun(x.get(), y.get(), static_cast<float>(run));
  EXPECT_GE(rig.device->Info(0).replays, 3u);
  x.reset();
  y.reset();
}

// Two sessions name the same EPs in opposite orders, and each EP runs one run at a time. Turns that were taken in the
// order of the sessions would wait for each other for ever.
TEST_F(SessionDevices, SessionsWithOppositeOrdersOfEpsDoNotWaitForEachOther) {
  cudaStream_t streams[2] = {};
  for (int d = 0; d < 2; ++d) {
    const OnDevice device(d);
    ASSERT_EQ(cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking), cudaSuccess);
  }
  {
    TwoDevices first(streams[0], streams[1]);
    TwoDevices second(first, /*swapped=*/true);
    TwoDevices* const sessions[] = {&first, &second};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&sessions, t] {
        DeviceFloats x(Floats(6)), y(Floats(6));
        for (int run = 0; run < 50; ++run) {
          const float f = static_cast<float>(100 * t + run);
          x.Set(Content(f));
          GCAP_ASSERT_OK(sessions[t % 2]->Run(x, y));
          EXPECT_EQ(y.Get(), Expected(f));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (cudaStream_t stream : streams) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
