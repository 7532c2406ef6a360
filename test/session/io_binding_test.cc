// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// IO bindings: tensors by name, in whatever memory, over many runs. The first tests do what ONNX Runtime's tests of
// its IoBinding do: a CPU input that is bound and synchronized, outputs on the device and on the CPU.

#include "gcap/kit/io_binding.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/session/host_ep.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"

namespace gcap {
namespace testing {
namespace {

constexpr gcap_memory_t kDevice = {GCAP_MEMORY_DEVICE, 0};
constexpr gcap_memory_t kHost = {GCAP_MEMORY_HOST, 0};
constexpr gcap_memory_t kPinned = {GCAP_MEMORY_PINNED, 0};

// Floats in page-locked memory.
class PinnedFloats {
 public:
  explicit PinnedFloats(size_t count) : count_(count) {
    EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&data_), count * sizeof(float)), cudaSuccess);
    Set(Floats(count, 77.0f));
  }
  PinnedFloats(const PinnedFloats&) = delete;
  PinnedFloats& operator=(const PinnedFloats&) = delete;
  ~PinnedFloats() { EXPECT_EQ(cudaFreeHost(data_), cudaSuccess); }
  float* get() const { return data_; }
  void Set(const Floats& values) { std::copy(values.begin(), values.end(), data_); }
  Floats Get() const { return Floats(data_, data_ + count_); }

 private:
  const size_t count_;
  float* data_ = nullptr;
};

Floats Counted(float seed, size_t count = kCount) {
  Floats content(count);
  for (size_t i = 0; i < count; ++i) content[i] = seed + static_cast<float>(i);
  return content;
}

// Writes to where the tensor is bound.
void Set(Floats* bound, const Floats& content) { std::copy(content.begin(), content.end(), bound->begin()); }

// The bytes that are allocated from the EP's allocator, to see what is staged.
uint64_t InUse(gcap_ep_t* ep) {
  gcap_allocator_t* allocator = nullptr;
  GCAP_EXPECT_OK(gcap_runtime_get_allocator(gcap_ep_runtime(ep), GCAP_MEMORY_DEVICE, &allocator));
  gcap_allocator_stats_t stats;
  gcap_allocator_get_stats(allocator, &stats);
  return stats.in_use_bytes;
}

// A session of the chain, whose x and y are [2, 3], and a binding. A graph is captured in the second run of its id.
class IoBinding : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    rig_ = std::make_unique<ChainRig>();
    GCAP_ASSERT_OK(rig_->Create(GraphOptions(1)));
    GCAP_ASSERT_OK(gcap_io_binding_create(rig_->session, &binding_));
  }
  void TearDown() override { GCAP_EXPECT_OK(gcap_io_binding_destroy(binding_)); }

  gcap_status_t BindX(void* data, gcap_memory_t memory) {
    const gcap_tensor_t tensor = Tensor(data, {2, 3});
    return gcap_io_binding_bind_input(binding_, "x", &tensor, memory);
  }
  gcap_status_t BindY(void* data, gcap_memory_t memory) {
    const gcap_tensor_t tensor = Tensor(data, {2, 3});
    return gcap_io_binding_bind_output(binding_, "y", &tensor, memory);
  }
  gcap_status_t Run(int graph_id = 0, bool synchronize = true) {
    const gcap_run_options_t options = RunOptions(graph_id, synchronize);
    return gcap_session_run_bound(rig_->session, &options, binding_);
  }
  gcap_ep_t* ep() const { return rig_->ep->get(); }

  std::unique_ptr<ChainRig> rig_;
  gcap_io_binding_t* binding_ = nullptr;
};

// Upstream's test_bind_input_only and test_iobinding: a CPU input is bound and synchronized, the output stays where it
// was made.
TEST_F(IoBinding, CpuInputIsBoundAndTheOutputStaysOnTheDevice) {
  Floats x = Counted(1);
  DeviceFloats y(Floats(6, 77.0f));
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(y.get(), kDevice));
  GCAP_EXPECT_OK(gcap_io_binding_synchronize(binding_));
  GCAP_ASSERT_OK(Run(GCAP_GRAPH_ID_NONE, /*synchronize=*/false));
  GCAP_EXPECT_OK(gcap_io_binding_synchronize(binding_));
  EXPECT_EQ(y.Get(), ChainOf(Counted(1)));
}

TEST_F(IoBinding, OutputsInHostMemoryAreThereOnReturn) {
  Floats x = Counted(3), y(6, 77.0f);
  PinnedFloats pinned_x(6), pinned_y(6);
  pinned_x.Set(Counted(4));
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(y.data(), kHost));
  GCAP_ASSERT_OK(Run(GCAP_GRAPH_ID_NONE));
  EXPECT_EQ(y, ChainOf(Counted(3)));
  GCAP_ASSERT_OK(BindX(pinned_x.get(), kPinned));
  GCAP_ASSERT_OK(BindY(pinned_y.get(), kPinned));
  GCAP_ASSERT_OK(Run(GCAP_GRAPH_ID_NONE));
  EXPECT_EQ(pinned_y.Get(), ChainOf(Counted(4)));
}

// The graph has the staging addresses, so also the addresses of host memory may change.
TEST_F(IoBinding, HostContentsAndAddressesChangeBetweenReplays) {
  std::vector<Floats> inputs, outputs;
  for (int run = 0; run < 6; ++run) {
    inputs.push_back(Counted(static_cast<float>(10 * run)));
    outputs.push_back(Floats(6, 77.0f));
    GCAP_ASSERT_OK(BindX(inputs.back().data(), kHost));
    GCAP_ASSERT_OK(BindY(outputs.back().data(), kHost));
    GCAP_ASSERT_OK(Run());
    EXPECT_EQ(outputs.back(), ChainOf(inputs.back()));
    Set(&inputs.back(), Floats(6, -1.0f));
    GCAP_ASSERT_OK(Run());
    EXPECT_EQ(outputs.back(), ChainOf(Floats(6, -1.0f)));
  }
  EXPECT_EQ(rig_->ep->Info(0).captures, 1u);
  EXPECT_EQ(rig_->ep->Info(0).replays, 11u) << "the captured run is launched too";
}

TEST_F(IoBinding, DeviceMemoryIsUsedAsItIs) {
  const uint64_t before = InUse(ep());
  DeviceFloats x(Counted(1)), y(Floats(6));
  GCAP_ASSERT_OK(BindX(x.get(), kDevice));
  GCAP_ASSERT_OK(BindY(y.get(), kDevice));
  EXPECT_EQ(InUse(ep()), before) << "nothing is staged";
  gcap_run_options_t options = RunOptions(0, true);
  options.check_bindings = true;
  for (int run = 0; run < 3; ++run) {
    GCAP_ASSERT_OK(gcap_session_run_bound(rig_->session, &options, binding_));
    EXPECT_EQ(y.Get(), ChainOf(Counted(1)));
  }
  const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
  GCAP_EXPECT_OK(gcap_session_run(rig_->session, &options, &input, &output));
  EXPECT_EQ(rig_->ep->Info(0).captures, 1u);
  EXPECT_EQ(rig_->ep->Info(0).replays, 3u) << "the binding's graph has the tensors' addresses";
}

TEST_F(IoBinding, WarmUpCapturesIt) {
  Floats x = Counted(1), y(6, 77.0f);
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(y.data(), kHost));
  gcap_run_options_t options = RunOptions(3, true);
  GCAP_ASSERT_OK(gcap_session_warm_up_bound(rig_->session, &options, binding_));
  EXPECT_TRUE(gcap_runtime_is_captured(gcap_ep_runtime(ep()), 3));
  EXPECT_EQ(y, ChainOf(Counted(1)));
  Set(&x, Counted(50));
  GCAP_ASSERT_OK(Run(3));
  EXPECT_EQ(y, ChainOf(Counted(50)));
  EXPECT_EQ(rig_->ep->Info(3).captures, 1u);
  options.graph_id = GCAP_GRAPH_ID_NONE;
  GCAP_EXPECT_FAILS(gcap_session_warm_up_bound(rig_->session, &options, binding_), GCAP_FAILED_PRECONDITION,
                    "the graph id is -1");
}

TEST_F(IoBinding, WarmUpInVainQuotesTheLastFailure) {
  Floats x = Counted(1), y(6, 77.0f);
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(y.data(), kHost));
  rig_->middle.misbehave = When::kInCapture;
  GCAP_EXPECT_FAILS(gcap_session_warm_up_bound(rig_->session, nullptr, binding_), GCAP_UNAVAILABLE, "told to fail");
  rig_->middle.misbehave = When::kNever;
  GCAP_EXPECT_OK(Run(5));
  EXPECT_EQ(y, ChainOf(Counted(1)));
}

TEST_F(IoBinding, ARunThatIsCapturedOnlyCopiesNothing) {
  Floats x = Counted(1), y(6, 77.0f);
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(y.data(), kHost));
  GCAP_EXPECT_OK(Run(GCAP_GRAPH_ID_NONE));  // finds scratch
  y.assign(6, 77.0f);                       // where it is
  gcap_run_options_t options = RunOptions(5, true);
  options.capture_only = true;
  GCAP_EXPECT_OK(gcap_session_run_bound(rig_->session, &options, binding_));
  EXPECT_EQ(y, Floats(6, 77.0f));
  EXPECT_TRUE(gcap_runtime_is_captured(rig_->ep->runtime(), 5));
  GCAP_EXPECT_OK(Run(5));
  EXPECT_EQ(y, ChainOf(Counted(1)));
  EXPECT_EQ(rig_->ep->Info(5).replays, 1u);
}

// --- Refusals -------------------------------------------------------------------------------------------------------

TEST_F(IoBinding, NamesThatTheModelLacksAreAnsweredWithThoseThatItHas) {
  Floats data(6);
  const gcap_tensor_t tensor = Tensor(data.data(), {2, 3});
  GCAP_EXPECT_FAILS(gcap_io_binding_bind_input(binding_, "y", &tensor, kHost), GCAP_INVALID_ARGUMENT,
                    "the model has no input 'y'; its inputs are: 'x'");
  GCAP_EXPECT_FAILS(gcap_io_binding_bind_input(binding_, "x2", &tensor, kHost), GCAP_INVALID_ARGUMENT,
                    "the model has no input 'x2'; its inputs are: 'x'");
  GCAP_EXPECT_FAILS(gcap_io_binding_bind_output(binding_, "x", &tensor, kHost), GCAP_INVALID_ARGUMENT,
                    "the model has no output 'x'; its outputs are: 'y'");
}

TEST_F(IoBinding, TensorsThatAreNotTheModelsAreRefusedWhenBound) {
  Floats data(6);
  auto bind = [&](const gcap_tensor_t& tensor, gcap_memory_t memory) {
    return gcap_io_binding_bind_input(binding_, "x", &tensor, memory);
  };
  GCAP_EXPECT_FAILS(bind(Tensor(data.data(), {2, 3}, GCAP_DTYPE_I32), kHost), GCAP_INVALID_ARGUMENT,
                    "input 'x' has type i32 and rank 2, the model wants f32");
  GCAP_EXPECT_FAILS(bind(Tensor(data.data(), {6}), kHost), GCAP_INVALID_ARGUMENT, "input 'x' has type f32 and rank 1");
  GCAP_EXPECT_FAILS(bind(Tensor(data.data(), {3, 2}), kHost), GCAP_INVALID_ARGUMENT,
                    "input 'x': dimension 0 is 3, the model wants 2");
  GCAP_EXPECT_FAILS(bind(Tensor(nullptr, {2, 3}), kHost), GCAP_INVALID_ARGUMENT, "input 'x' has no data");
  GCAP_EXPECT_FAILS(bind(Tensor(data.data(), {2, 3}), {GCAP_MEMORY_DEVICE, 99}), GCAP_INVALID_ARGUMENT,
                    "input 'x': is in device 99 memory");
  GCAP_EXPECT_FAILS(bind(Tensor(data.data(), {2, 3}), {static_cast<gcap_memory_kind_t>(7), 0}), GCAP_INVALID_ARGUMENT,
                    "input 'x': is in");
  GCAP_EXPECT_FAILS(Run(), GCAP_INVALID_ARGUMENT, "input 'x' is not bound");
}

TEST_F(IoBinding, AnEpThatCopiesOneWayStagesOneWay) {
  ChainRig rig;
  TestEpConfig config;
  config.counts_runs = config.copies_late = true;
  config.copies_to_host = false;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1), config));
  gcap_io_binding_t* binding = nullptr;
  GCAP_ASSERT_OK(gcap_io_binding_create(rig.session, &binding));
  Floats x = Counted(1), on_host(6);
  DeviceFloats y(Floats(6));
  const gcap_tensor_t input = Tensor(x.data(), {2, 3}), output = Tensor(y.get(), {2, 3});
  const gcap_tensor_t output_on_host = Tensor(on_host.data(), {2, 3});
  GCAP_EXPECT_OK(gcap_io_binding_bind_input(binding, "x", &input, kHost));
  GCAP_EXPECT_FAILS(gcap_io_binding_bind_output(binding, "y", &output_on_host, kHost), GCAP_INVALID_ARGUMENT,
                    "output 'y': is in");
  GCAP_EXPECT_OK(gcap_io_binding_bind_output(binding, "y", &output, kDevice));
  const gcap_run_options_t options = RunOptions(GCAP_GRAPH_ID_NONE, true);
  GCAP_EXPECT_OK(gcap_session_run_bound(rig.session, &options, binding));
  EXPECT_EQ(y.Get(), ChainOf(Counted(1)));
  GCAP_EXPECT_OK(gcap_io_binding_destroy(binding));
}

TEST_F(IoBinding, RefusedBindLeavesTheEarlierTensorBound) {
  Floats x = Counted(1), y(6, 77.0f);
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(y.data(), kHost));
  GCAP_EXPECT_FAILS(BindX(nullptr, kHost), GCAP_INVALID_ARGUMENT, "no data");
  GCAP_ASSERT_OK(Run());
  EXPECT_EQ(y, ChainOf(Counted(1)));
}

TEST_F(IoBinding, WhatIsNotBoundIsNamedByTheRun) {
  Floats x = Counted(1), y(6, 77.0f);
  GCAP_EXPECT_FAILS(Run(), GCAP_INVALID_ARGUMENT, "input 'x' is not bound");
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_EXPECT_FAILS(Run(), GCAP_INVALID_ARGUMENT, "output 'y' is not bound");
  GCAP_ASSERT_OK(BindY(y.data(), kHost));
  GCAP_ASSERT_OK(Run());
  GCAP_EXPECT_OK(gcap_io_binding_clear(binding_));
  GCAP_EXPECT_FAILS(Run(), GCAP_INVALID_ARGUMENT, "input 'x' is not bound");
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_EXPECT_FAILS(Run(), GCAP_INVALID_ARGUMENT, "output 'y' is not bound");
}

TEST_F(IoBinding, AnotherSessionsIsRefused) {
  ChainRig other;
  GCAP_ASSERT_OK(other.Create(GraphOptions(1)));
  GCAP_EXPECT_FAILS(gcap_session_run_bound(other.session, nullptr, binding_), GCAP_INVALID_ARGUMENT,
                    "the binding is of another session");
}

TEST_F(IoBinding, SessionDoesNotEndWhileOneLives) {
  GCAP_EXPECT_FAILS(gcap_session_destroy(rig_->session), GCAP_FAILED_PRECONDITION, "the session has 1 IO bindings");
  Floats x = Counted(1), y(6, 77.0f);
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(y.data(), kHost));
  GCAP_ASSERT_OK(Run());
  EXPECT_EQ(y, ChainOf(Counted(1)));
}

// What a kernel calls, which has no pointer of ours.
gcap_io_binding_t* used_binding = nullptr;
std::string use_outcome;
void UseBinding() {
  use_outcome = Outcome(gcap_io_binding_destroy(used_binding)).message + "; " +
                Outcome(gcap_io_binding_clear(used_binding)).message + "; " +
                Outcome(gcap_io_binding_synchronize(used_binding)).message + "; " +
                Outcome(gcap_session_run_bound(nullptr, nullptr, used_binding)).message;
}

TEST_F(IoBinding, UseInsideItsOwnRunIsRefused) {
  ChainRig rig("Leave");
  TestEpConfig config;
  config.leave = UseBinding;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1), config));
  GCAP_ASSERT_OK(gcap_io_binding_create(rig.session, &used_binding));
  Floats x = Counted(1), y(6, 77.0f);
  const gcap_tensor_t input = Tensor(x.data(), {2, 3}), output = Tensor(y.data(), {2, 3});
  GCAP_ASSERT_OK(gcap_io_binding_bind_input(used_binding, "x", &input, kHost));
  GCAP_ASSERT_OK(gcap_io_binding_bind_output(used_binding, "y", &output, kHost));
  const gcap_run_options_t options = RunOptions(GCAP_GRAPH_ID_NONE, true);
  GCAP_EXPECT_OK(gcap_session_run_bound(rig.session, &options, used_binding));
  EXPECT_EQ(y, ChainOf(Counted(1)));
  for (const char* function : {"destroy", "clear", "synchronize"}) {
    EXPECT_NE(use_outcome.find(std::string("gcap_io_binding_") + function + ": the binding is in use"),
              std::string::npos)
        << use_outcome;
  }
  GCAP_EXPECT_OK(gcap_io_binding_destroy(used_binding));
}

gcap_status_t ended_in_kernel = nullptr;

// Was: the scope that the kernel had ended was told of the failure, after it was freed.
TEST_F(IoBinding, RunInAScopeThatAKernelEndsSaysSo) {
  ChainRig rig("Leave");
  TestEpConfig config;
  config.leave = [] {
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    if (gcap_capture_current() == nullptr) return;
    ended_in_kernel = gcap_capture_end(gcap_capture_current(), &graph, &retained);
  };
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1), config));
  DeviceFloats x(Counted(1)), y(Floats(6));
  GCAP_ASSERT_OK(rig.Run(x, y, GCAP_GRAPH_ID_NONE));
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream, nullptr, &capture));
  EXPECT_FALSE(Outcome(rig.Run(x, y, GCAP_GRAPH_ID_NONE)).ok());
  GCAP_EXPECT_FAILS(ended_in_kernel, GCAP_CAPTURE_INVALIDATED, "never joined");
  EXPECT_EQ(gcap_capture_current(), nullptr);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  GCAP_EXPECT_OK(gcap_runtime_synchronize(rig.ep->runtime()));  // what came behind the end was executed
  rig.ExpectRightRun(&x, &y, 4.0f, GCAP_GRAPH_ID_NONE);
}

bool leaves = false;

TEST_F(IoBinding, RunThatAKernelLeavesByAnExceptionLeavesItUsable) {
  ChainRig rig("Leave");
  TestEpConfig config;
  config.leave = [] {
    if (leaves) throw std::runtime_error("a shape is wrong");
  };
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1), config));
  gcap_io_binding_t* binding = nullptr;
  GCAP_ASSERT_OK(gcap_io_binding_create(rig.session, &binding));
  Floats x = Counted(1), y(6, 77.0f);
  const gcap_tensor_t input = Tensor(x.data(), {2, 3}), output = Tensor(y.data(), {2, 3});
  GCAP_ASSERT_OK(gcap_io_binding_bind_input(binding, "x", &input, kHost));
  GCAP_ASSERT_OK(gcap_io_binding_bind_output(binding, "y", &output, kHost));
  for (int run = 0; run < 2; ++run) {  // eager, then in a capture
    leaves = true;
    EXPECT_THROW(gcap_status_ignore(gcap_session_run_bound(rig.session, nullptr, binding)), std::runtime_error);
    leaves = false;
    Set(&x, Counted(static_cast<float>(10 * run)));
    GCAP_EXPECT_OK(gcap_session_run_bound(rig.session, nullptr, binding));
    EXPECT_EQ(y, ChainOf(x));
  }
  GCAP_EXPECT_OK(gcap_io_binding_destroy(binding));
}

// --- Without a wait -------------------------------------------------------------------------------------------------

TEST_F(IoBinding, RunWithoutSynchronizeRefusesPageableOutputsAndFillsPinnedOnes) {
  PinnedFloats x(6), y(6);
  Floats pageable(6, 77.0f);
  x.Set(Counted(1));
  GCAP_ASSERT_OK(BindX(x.get(), kPinned));
  GCAP_ASSERT_OK(BindY(pageable.data(), kHost));
  GCAP_EXPECT_FAILS(Run(0, /*synchronize=*/false), GCAP_FAILED_PRECONDITION, "output 'y': is in pageable host memory");
  EXPECT_EQ(pageable, Floats(6, 77.0f));
  GCAP_ASSERT_OK(BindY(y.get(), kPinned));
  for (int run = 0; run < 4; ++run) {
    x.Set(Counted(static_cast<float>(run)));
    GCAP_ASSERT_OK(Run(0, /*synchronize=*/false));
    GCAP_EXPECT_OK(gcap_io_binding_synchronize(binding_));
    EXPECT_EQ(y.Get(), ChainOf(Counted(static_cast<float>(run))));
  }
  EXPECT_EQ(rig_->ep->Info(0).captures, 1u);
}

std::promise<void>* entered_kernel = nullptr;
std::atomic<bool> has_waited{false}, waited_in_kernel{false};
void StayInKernel() {
  if (entered_kernel == nullptr) return;
  entered_kernel->set_value();
  entered_kernel = nullptr;
  std::this_thread::sleep_for(kPatience);
  waited_in_kernel = has_waited.load();
}

// On a stream of the application's one run at a time is issued, and the wait of another thread comes behind that.
TEST_F(IoBinding, SynchronizeTakesATurnAndGivesItBack) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    ChainRig rig("Leave");
    TestEpConfig config;
    config.leave = StayInKernel;
    gcap_options_t options = GraphOptions(1);
    options.has_user_stream = true;
    options.user_stream = stream;
    GCAP_ASSERT_OK(rig.Create(options, config));
    gcap_io_binding_t* binding = nullptr;
    GCAP_ASSERT_OK(gcap_io_binding_create(rig.session, &binding));
    DeviceFloats x(Counted(1)), y(Floats(6));
    std::promise<void> entered;
    entered_kernel = &entered;
    std::thread waits([&] {
      entered.get_future().wait();
      GCAP_EXPECT_OK(gcap_io_binding_synchronize(binding));
      has_waited = true;
    });
    GCAP_EXPECT_OK(rig.Run(x, y, GCAP_GRAPH_ID_NONE));
    waits.join();
    EXPECT_FALSE(waited_in_kernel);
    rig.ExpectRightRun(&x, &y, 2.0f);
    GCAP_EXPECT_OK(gcap_io_binding_destroy(binding));
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// What the user's stream is given after the run, eager, captured or replayed, comes after the copy of the output.
TEST_F(IoBinding, UserStreamIsOrderedAroundTheCopies) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    PinnedFloats x(6), y(6), later(6);
    DeviceFloats between(Floats(6));
    GCAP_ASSERT_OK(BindX(x.get(), kPinned));
    GCAP_ASSERT_OK(BindY(y.get(), kPinned));
    gcap_run_options_t options = RunOptions(0, /*synchronize=*/false);
    options.user_stream = stream;
    for (int run = 0; run < 5; ++run) {
      const Floats content = Counted(static_cast<float>(10 * run));
      // The input arrives on the stream, and the output leaves on it.
      between.Set(content);
      EXPECT_EQ(cudaMemcpyAsync(x.get(), between.get(), 24, cudaMemcpyDeviceToHost, stream), cudaSuccess);
      GCAP_ASSERT_OK(gcap_session_run_bound(rig_->session, &options, binding_));
      EXPECT_EQ(cudaMemcpyAsync(between.get(), y.get(), 24, cudaMemcpyHostToDevice, stream), cudaSuccess);
      EXPECT_EQ(cudaMemcpyAsync(later.get(), between.get(), 24, cudaMemcpyDeviceToHost, stream), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(later.Get(), ChainOf(content));
    }
    EXPECT_EQ(rig_->ep->Info(0).captures, 1u);
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// The staging memory of a run that goes on stays, whatever is bound meanwhile.
TEST_F(IoBinding, ClearWhileARunGoesOnTakesNothingFromIt) {
  PinnedFloats x(6), y(6);
  x.Set(Counted(8));
  GCAP_ASSERT_OK(BindX(x.get(), kPinned));
  GCAP_ASSERT_OK(BindY(y.get(), kPinned));
  GCAP_ASSERT_OK(Run(GCAP_GRAPH_ID_NONE, /*synchronize=*/false));
  const uint64_t held = InUse(ep());
  GCAP_EXPECT_OK(gcap_io_binding_clear(binding_));
  EXPECT_EQ(InUse(ep()), held) << "nobody has waited for the run";
  GCAP_EXPECT_OK(gcap_io_binding_synchronize(binding_));
  EXPECT_EQ(y.Get(), ChainOf(Counted(8)));
  GCAP_EXPECT_OK(gcap_io_binding_clear(binding_));
  EXPECT_LE(InUse(ep()), held - 48) << "it is freed when it is looked for again";
}

// --- Graphs and staging memory --------------------------------------------------------------------------------------

TEST_F(IoBinding, GraphOfAnotherBindingIsRefusedByTheTensorsName) {
  Floats x = Counted(1), y(6, 77.0f);
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(y.data(), kHost));
  GCAP_ASSERT_OK(gcap_session_warm_up_bound(rig_->session, nullptr, binding_));
  gcap_io_binding_t* first = binding_;
  GCAP_ASSERT_OK(gcap_io_binding_create(rig_->session, &binding_));
  GCAP_EXPECT_OK(BindX(x.data(), kHost));
  GCAP_EXPECT_OK(BindY(y.data(), kHost));
  GCAP_EXPECT_FAILS(Run(), GCAP_FAILED_PRECONDITION, "'x'");
  // Was: nothing to run, and an output out of memory that nobody had written.
  GCAP_EXPECT_FAILS(gcap_session_warm_up_bound(rig_->session, nullptr, binding_), GCAP_FAILED_PRECONDITION, "'x'");
  EXPECT_EQ(y, ChainOf(Counted(1)));
  GCAP_EXPECT_OK(gcap_io_binding_destroy(binding_));
  binding_ = first;
  Set(&x, Counted(20));
  GCAP_ASSERT_OK(Run());
  EXPECT_EQ(y, ChainOf(Counted(20)));
}

TEST_F(IoBinding, ReplayAfterATensorMovedFromTheHostToTheDeviceIsRefusedByItsName) {
  Floats x = Counted(1);
  DeviceFloats device_x(Counted(30)), y(Floats(6));
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(y.get(), kDevice));
  GCAP_ASSERT_OK(gcap_session_warm_up_bound(rig_->session, nullptr, binding_));
  GCAP_ASSERT_OK(BindX(device_x.get(), kDevice));
  GCAP_EXPECT_FAILS(Run(), GCAP_FAILED_PRECONDITION, "'x'");
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(Run());
  EXPECT_EQ(y.Get(), ChainOf(Counted(1))) << "the memory that the graph has was kept";
  EXPECT_EQ(rig_->ep->Info(0).captures, 1u);
}

TEST_F(IoBinding, StagingMemoryLastsAsLongAsItsGraphAndNoLonger) {
  Floats x = Counted(1), y(6, 77.0f);
  {
    DeviceFloats device_x(Counted(1)), device_y(Floats(6));
    for (int run = 0; run < 2; ++run) GCAP_ASSERT_OK(rig_->Run(device_x, device_y, GCAP_GRAPH_ID_NONE));
  }
  const uint64_t before = InUse(ep());  // scratch has its memory
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(y.data(), kHost));
  const uint64_t bound = InUse(ep());
  EXPECT_GE(bound, before + 48);
  GCAP_ASSERT_OK(Run(GCAP_GRAPH_ID_NONE));
  GCAP_EXPECT_OK(gcap_io_binding_clear(binding_));
  EXPECT_EQ(InUse(ep()), before) << "no graph has it";
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(y.data(), kHost));
  GCAP_ASSERT_OK(gcap_session_warm_up_bound(rig_->session, nullptr, binding_));
  const uint64_t captured = InUse(ep());
  GCAP_EXPECT_OK(gcap_io_binding_destroy(binding_));
  binding_ = nullptr;
  EXPECT_EQ(InUse(ep()), captured) << "a graph has it";
  GCAP_EXPECT_OK(gcap_session_release_captured_graph(rig_->session, 0));
  EXPECT_LE(InUse(ep()), captured - (bound - before));
}

TEST_F(IoBinding, StagingMemoryThatNoGraphHasEndsWithTheBinding) {
  Floats x = Counted(1), y(6, 77.0f);
  {
    DeviceFloats device_x(Counted(1)), device_y(Floats(6));
    for (int run = 0; run < 2; ++run) GCAP_ASSERT_OK(rig_->Run(device_x, device_y, GCAP_GRAPH_ID_NONE));
  }
  const uint64_t before = InUse(ep());  // scratch has its memory
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(y.data(), kHost));
  GCAP_ASSERT_OK(Run(GCAP_GRAPH_ID_NONE));
  EXPECT_GT(InUse(ep()), before);
  GCAP_EXPECT_OK(gcap_io_binding_destroy(binding_));
  binding_ = nullptr;
  EXPECT_EQ(InUse(ep()), before) << "and not with the session";
}

// A graph that was never released ends after its session, which then has freed the staging memory.
TEST_F(IoBinding, GraphMayOutliveBindingAndSession) {
  Floats x = Counted(1), y(6, 77.0f);
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(y.data(), kHost));
  GCAP_ASSERT_OK(gcap_session_warm_up_bound(rig_->session, nullptr, binding_));
  GCAP_EXPECT_OK(gcap_io_binding_destroy(binding_));
  binding_ = nullptr;
  GCAP_EXPECT_OK(gcap_session_destroy(rig_->session));
  rig_->session = nullptr;
}

// --- Symbols --------------------------------------------------------------------------------------------------------

// y = Rotate(x) over [n, 3].
class IoBindingShapes : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const int64_t n = builder_.Symbol("n");
    builder_.inputs = {builder_.Value("x", {n, 3})};
    builder_.outputs = {builder_.Value("y", {n, 3})};
    builder_.Node("Rotate", "rotate", {0}, {1});
    GCAP_ASSERT_OK(TestEp::Create(GraphOptions(1), {}, &ep_));
    const gcap_model_t model = builder_.Model();
    gcap_ep_t* const eps[] = {ep_->get()};
    GCAP_ASSERT_OK(gcap_session_create(&model, eps, 1, nullptr, &session_));
    GCAP_ASSERT_OK(gcap_io_binding_create(session_, &binding_));
  }
  void TearDown() override {
    GCAP_EXPECT_OK(gcap_io_binding_destroy(binding_));
    GCAP_EXPECT_OK(gcap_session_destroy(session_));
  }

  gcap_status_t Bind(const Floats& x, Floats* y, int64_t x_rows, int64_t y_rows) {
    const gcap_tensor_t in = Tensor(const_cast<float*>(x.data()), {x_rows, 3}), out = Tensor(y->data(), {y_rows, 3});
    GCAP_RETURN_IF_ERROR(gcap_io_binding_bind_input(binding_, "x", &in, kHost));
    return gcap_io_binding_bind_output(binding_, "y", &out, kHost);
  }
  gcap_status_t Run(int graph_id) {
    const gcap_run_options_t options = RunOptions(graph_id, true);
    return gcap_session_run_bound(session_, &options, binding_);
  }
  void ExpectRightRun(int64_t rows, int graph_id, float seed) {
    Floats x = Counted(seed, static_cast<size_t>(3 * rows)), y(x.size(), 77.0f);
    GCAP_ASSERT_OK(Bind(x, &y, rows, rows));
    GCAP_ASSERT_OK(Run(graph_id));
    if (rows > 0) std::rotate(x.begin(), x.begin() + 1, x.end());
    EXPECT_EQ(y, x);
  }

  ModelBuilder builder_;
  std::unique_ptr<TestEp> ep_;
  gcap_session_t* session_ = nullptr;
  gcap_io_binding_t* binding_ = nullptr;
};

// A size that comes back finds the staging memory that the graph of its id has.
TEST_F(IoBindingShapes, SizesThatTakeTurnsEachFindTheirGraph) {
  for (int run = 0; run < 5; ++run) {
    ExpectRightRun(2, 1, static_cast<float>(run));
    ExpectRightRun(4, 2, static_cast<float>(100 + run));
  }
  for (int id : {1, 2}) {
    EXPECT_EQ(ep_->Info(id).captures, 1u);
    EXPECT_EQ(ep_->Info(id).replays, 4u);
  }
}

TEST_F(IoBindingShapes, AnotherSizeUnderACapturedIdIsRefusedUntilTheGraphIsReleased) {
  for (int run = 0; run < 3; ++run) ExpectRightRun(2, 1, static_cast<float>(run));
  Floats x(12), y(12);
  GCAP_ASSERT_OK(Bind(x, &y, 4, 4));
  GCAP_EXPECT_FAILS(Run(1), GCAP_FAILED_PRECONDITION, "graph id 1 means the shapes 'x' [2,3]");
  ExpectRightRun(2, 1, 40);
  GCAP_EXPECT_OK(gcap_session_release_captured_graph(session_, 1));
  for (int run = 0; run < 3; ++run) ExpectRightRun(4, 1, static_cast<float>(run));
}

TEST_F(IoBindingShapes, OutputsAreComparedWithTheInputsByTheRun) {
  Floats x(12), y(12);
  GCAP_ASSERT_OK(Bind(x, &y, 4, 3));
  GCAP_EXPECT_FAILS(Run(1), GCAP_INVALID_ARGUMENT, "output 'y': dimension 0 is 3, the model wants 4");
  GCAP_EXPECT_FAILS(Bind(x, &y, INT64_MAX, 4), GCAP_INVALID_ARGUMENT, "'x'");
  ExpectRightRun(0, 3, 0);
  ExpectRightRun(1, 4, 9);
}

// --- In a capture of the caller -------------------------------------------------------------------------------------

class IoBindingInCapture : public IoBinding {
 protected:
  void SetUp() override {
    IoBinding::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    IoBinding::TearDown();
    if (stream_ != nullptr) {
      EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    }
  }
  cudaStream_t stream_ = nullptr;
};

TEST_F(IoBindingInCapture, PinnedMemoryIsCopiedInEachReplay) {
  PinnedFloats x(6), y(6);
  GCAP_ASSERT_OK(BindX(x.get(), kPinned));
  GCAP_ASSERT_OK(BindY(y.get(), kPinned));
  GCAP_ASSERT_OK(Run(GCAP_GRAPH_ID_NONE));
  gcap_capture_t* capture = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream_, nullptr, &capture));
  GCAP_EXPECT_OK(Run());
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  // The graph has its own part of the staging memory.
  GCAP_EXPECT_OK(gcap_io_binding_destroy(binding_));
  binding_ = nullptr;
  for (int run = 0; run < 3; ++run) {
    x.Set(Counted(static_cast<float>(10 * run)));
    EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(y.Get(), ChainOf(Counted(static_cast<float>(10 * run))));
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  gcap_retained_release(retained);
}

TEST_F(IoBindingInCapture, PageableMemoryIsRefusedByNameAndFailsTheScope) {
  Floats x = Counted(1), y(6, 77.0f);
  DeviceFloats device_y(Floats(6));
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(BindY(device_y.get(), kDevice));
  GCAP_ASSERT_OK(Run(GCAP_GRAPH_ID_NONE));
  for (const gcap_memory_t claimed : {kHost, kPinned}) {  // what is only said to be pinned is found out
    GCAP_ASSERT_OK(BindX(x.data(), claimed));
    gcap_capture_t* capture = nullptr;
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(stream_, nullptr, &capture));
    GCAP_EXPECT_FAILS(Run(), GCAP_FAILED_PRECONDITION, "input 'x'");
    GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "pageable host memory");
  }
  GCAP_ASSERT_OK(BindX(x.data(), kHost));
  GCAP_ASSERT_OK(Run(GCAP_GRAPH_ID_NONE));
  EXPECT_EQ(device_y.Get(), ChainOf(Counted(1)));
}

TEST_F(IoBindingInCapture, RunWithoutAllTensorsFailsTheScope) {
  DeviceFloats x(Floats(6));
  GCAP_ASSERT_OK(BindX(x.get(), kDevice));
  gcap_capture_t* capture = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream_, nullptr, &capture));
  GCAP_EXPECT_FAILS(Run(), GCAP_INVALID_ARGUMENT, "output 'y' is not bound");
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "output 'y' is not bound");
}

TEST_F(IoBindingInCapture, OnlyRunsMayBeCalledThere) {
  Floats x = Counted(1);
  gcap_io_binding_t* other = nullptr;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream_, nullptr, &capture));
  GCAP_EXPECT_FAILS(BindX(x.data(), kHost), GCAP_FAILED_PRECONDITION, "gcap_io_binding_bind_input");
  GCAP_EXPECT_FAILS(BindY(x.data(), kHost), GCAP_FAILED_PRECONDITION, "gcap_io_binding_bind_output");
  GCAP_EXPECT_FAILS(gcap_io_binding_clear(binding_), GCAP_FAILED_PRECONDITION, "gcap_io_binding_clear");
  GCAP_EXPECT_FAILS(gcap_io_binding_synchronize(binding_), GCAP_FAILED_PRECONDITION, "gcap_io_binding_synchronize");
  GCAP_EXPECT_FAILS(gcap_io_binding_create(rig_->session, &other), GCAP_FAILED_PRECONDITION, "gcap_io_binding_create");
  GCAP_EXPECT_FAILS(gcap_io_binding_destroy(binding_), GCAP_FAILED_PRECONDITION, "gcap_io_binding_destroy");
  GCAP_EXPECT_FAILS(gcap_session_warm_up_bound(rig_->session, nullptr, binding_), GCAP_FAILED_PRECONDITION,
                    "gcap_session_warm_up_bound");
  gcap_capture_abort(capture);
}

// --- Threads, hosts, devices ----------------------------------------------------------------------------------------

TEST_F(IoBinding, EachThreadHasItsOwn) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      gcap_io_binding_t* binding = nullptr;
      Floats x(6), y(6, 77.0f);
      const gcap_tensor_t in = Tensor(x.data(), {2, 3}), out = Tensor(y.data(), {2, 3});
      GCAP_EXPECT_OK(gcap_io_binding_create(rig_->session, &binding));
      GCAP_EXPECT_OK(gcap_io_binding_bind_input(binding, "x", &in, kHost));
      GCAP_EXPECT_OK(gcap_io_binding_bind_output(binding, "y", &out, kHost));
      for (int run = 0; run < 5; ++run) {
        Set(&x, Counted(static_cast<float>(100 * t + run)));
        GCAP_EXPECT_OK(gcap_session_run_bound(rig_->session, nullptr, binding));
        wrong += y != ChainOf(x);
      }
      GCAP_EXPECT_OK(gcap_io_binding_destroy(binding));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(IoBindingOnHost, HostMemoryIsUsedAsItIsWhereTheHostReadsIt) {
  HostEp host;
  ModelBuilder m;
  m.inputs = {m.Value("x", {3})};
  m.outputs = {m.Value("y", {3})};
  m.Node("Negate", "negate", {0}, {1});
  const gcap_model_t model = m.Model();
  gcap_ep_t* const eps[] = {host.get()};
  gcap_session_t* session = nullptr;
  gcap_io_binding_t* binding = nullptr;
  GCAP_ASSERT_OK(gcap_session_create(&model, eps, 1, nullptr, &session));
  GCAP_ASSERT_OK(gcap_io_binding_create(session, &binding));
  Floats x = {1, 2, 3}, y(3);
  const gcap_tensor_t in = Tensor(x.data(), {3}), out = Tensor(y.data(), {3});
  GCAP_EXPECT_FAILS(gcap_io_binding_bind_input(binding, "x", &in, kDevice), GCAP_INVALID_ARGUMENT,
                    "input 'x': is in device 0 memory");
  GCAP_EXPECT_OK(gcap_io_binding_bind_input(binding, "x", &in, kHost));
  GCAP_EXPECT_OK(gcap_io_binding_bind_output(binding, "y", &out, kHost));
  const gcap_run_options_t options = RunOptions(0, /*synchronize=*/false);
  GCAP_EXPECT_OK(gcap_session_run_bound(session, &options, binding));
  EXPECT_EQ(y, Floats({-1, -2, -3}));
  GCAP_EXPECT_OK(gcap_io_binding_destroy(binding));
  GCAP_EXPECT_OK(gcap_session_destroy(session));
}

// On a GPU machine with one device, skipped.
TEST_F(IoBinding, MemoryOfAnotherDeviceIsStaged) {
  int devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  if (devices < 2) GTEST_SKIP() << "needs two devices";
  constexpr gcap_memory_t second = {GCAP_MEMORY_DEVICE, 1};
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  {
    DeviceFloats x(Counted(1)), y(Floats(6, 77.0f));
    GCAP_EXPECT_OK(BindX(x.get(), second));
    GCAP_EXPECT_OK(BindY(y.get(), second));
    for (int run = 0; run < 4; ++run) {
      x.Set(Counted(static_cast<float>(run)));
      GCAP_EXPECT_OK(Run());
      EXPECT_EQ(y.Get(), ChainOf(Counted(static_cast<float>(run))));
    }
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 1) << "the thread's device is left alone";
  }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(rig_->ep->Info(0).captures, 1u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
