// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Holes, verification and bisection where two devices work: functions of holes and captured segments that fork to a
// stream of the other device, buffers in the memory of both, and a graph of a device that is not the thread's current
// one. On a machine with one device all is skipped.

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/graph/verify_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// The device is current while the object lives, and then device 0.
class OnDevice {
 public:
  explicit OnDevice(int device) { GCAP_EXPECT_CUDA(cudaSetDevice(device)); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { GCAP_EXPECT_CUDA(cudaSetDevice(0)); }
};

class VerifyDevices : public VerifyTest {
 protected:
  void SetUp() override {
    VerifyTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    int devices = 0;
    GCAP_EXPECT_CUDA(cudaGetDeviceCount(&devices));
    if (devices < 2) GTEST_SKIP() << "needs two devices, this machine has " << devices;
    verify_.bisect = true;
    x_ = std::make_unique<Floats>(1.0f);
    y_ = std::make_unique<Floats>();
    GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&near_event_, cudaEventDisableTiming));
    const OnDevice far(1);
    far_stream_ = std::make_unique<RawStream>();
    far_ = std::make_unique<Floats>(5.0f);
    other_far_ = std::make_unique<Floats>(50.0f);
    GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&far_event_, cudaEventDisableTiming));
  }
  void TearDown() override {
    DestroyManager();
    for (cudaEvent_t event : {near_event_, far_event_}) {
      if (event != nullptr) {
        GCAP_EXPECT_CUDA(cudaEventDestroy(event));
      }
    }
    for (auto* floats : {&x_, &y_, &far_, &other_far_}) floats->reset();
    far_stream_.reset();
    VerifyTest::TearDown();
  }

  // Memory is of the device that was current when it was made; copies are made with that one current.
  float Far() const {
    const OnDevice far(1);
    return far_->value();
  }
  void NameAll() { named_ = {Named("x", *x_), Named("y", *y_), Named("far", *far_)}; }
  void Capture(const WorkWith& work) {
    const Outcome run = RunVerified(work);
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
  }
  Outcome ExpectFound(const WorkWith& work, size_t step, gcap_graph_fault_t fault) {
    const LogCatcher log;
    const Outcome run = RunVerified(work);
    EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
    EXPECT_EQ(report_.step, step) << run.message;
    EXPECT_EQ(report_.fault, fault) << run.message;
    int device = -1;
    GCAP_EXPECT_CUDA(cudaGetDevice(&device));
    EXPECT_EQ(device, 0) << "the thread's device is what it was";
    return run;
  }

  // far += addend, on the other device, between what the stream was given before and after. For the function of a hole.
  gcap_status_t AddFar(cudaStream_t stream, uint64_t addend) const {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(near_event_, stream)));
    const OnDevice far(1);
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamWaitEvent(far_stream_->get(), near_event_, 0)));
    GCAP_RETURN_IF_ERROR(AddTo(far_stream_->get(), far_->get(), far_->get(), addend));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(far_event_, far_stream_->get())));
    return GCAP_CUDA(cudaStreamWaitEvent(stream, far_event_, 0));
  }
  // The same in the work of a run, where the fork is the capture's; from this memory of the other device.
  gcap_status_t AddFarInGraph(cudaStream_t stream, const Floats& from, uint64_t addend) const {
    const cudaStream_t far_stream = far_stream_->get();
    gcap_capture_t* const capture = gcap_capture_current();
    if (capture == nullptr) {
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(stream)));
    } else {
      GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &far_stream, 1));
    }
    {
      const OnDevice far(1);
      GCAP_RETURN_IF_ERROR(AddTo(far_stream, from.get(), far_->get(), addend));
    }
    if (capture != nullptr) return gcap_capture_join(capture, &far_stream, 1);
    return GCAP_CUDA(cudaStreamSynchronize(far_stream));
  }
  // y = far, over the border.
  gcap_status_t FetchFar(cudaStream_t stream) const {
    return GCAP_CUDA(cudaMemcpyAsync(y_->get(), far_->get(), kFloatsBytes, cudaMemcpyDefault, stream));
  }

  std::unique_ptr<Floats> x_, y_, far_, other_far_;
  std::unique_ptr<RawStream> far_stream_;
  cudaEvent_t near_event_ = nullptr, far_event_ = nullptr;
  Hole hole_;
};

TEST_F(VerifyDevices, AFunctionForksToTheOtherDevice) {
  options_.min_num_runs_before_capture = 1;
  CreateManager();
  hole_.function = [this](const gcap_run_resources_t* r) { return AddFar(r->cuda_stream, 10); };
  const WorkWith work = [this](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(r, x_->get(), 1));
    GCAP_RETURN_IF_ERROR(hole_.Issue(r));
    GCAP_RETURN_IF_ERROR(FetchFar(r->cuda_stream));
    return Add(r, x_->get(), 2);
  };
  float x = 1, far = 5;
  for (const gcap_run_outcome_t outcome : {GCAP_RUN_EAGER, GCAP_RUN_CAPTURED, GCAP_RUN_REPLAYED, GCAP_RUN_REPLAYED}) {
    ExpectRun(work, outcome);
    EXPECT_EQ(x_->value(), x += 3);
    EXPECT_EQ(Far(), far += 10);
    EXPECT_EQ(y_->value(), far) << "the segment behind the hole comes after the other device";
  }
}

TEST_F(VerifyDevices, MemoryOfBothDevicesIsPutBackAndCompared) {
  CreateManager();
  NameAll();
  uint64_t in_hole = 10;
  hole_.function = [&](const gcap_run_resources_t* r) { return AddFar(r->cuda_stream, in_hole); };
  const WorkWith work = [this](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(AddFarInGraph(r->cuda_stream, *far_, 1));
    GCAP_RETURN_IF_ERROR(hole_.Issue(r));
    GCAP_RETURN_IF_ERROR(FetchFar(r->cuda_stream));
    return Add(r, x_->get(), 2);
  };
  Capture(work);
  float x = 3, far = 16;
  for (int i = 0; i < 3; ++i) {
    in_hole += 10;
    ExpectSound(work);
    EXPECT_EQ(report_.compared_bytes, 3 * kFloatsBytes);
    EXPECT_EQ(x_->value(), x += 2);
    EXPECT_EQ(Far(), far += 1 + static_cast<float>(in_hole)) << "once";
    EXPECT_EQ(y_->value(), far);
  }
}

TEST_F(VerifyDevices, AFunctionThatDoesSomethingElseOnTheOtherDeviceIsFound) {
  CreateManager();
  NameAll();
  uint64_t calls = 0, step = 0;
  hole_.function = [&](const gcap_run_resources_t* r) { return AddFar(r->cuda_stream, 10 + step * calls++); };
  const WorkWith work = [this](const gcap_run_resources_t* r) -> gcap_status_t {
    GCAP_RETURN_IF_ERROR(Add(r, x_->get(), 1));
    GCAP_RETURN_IF_ERROR(hole_.Issue(r));
    return FetchFar(r->cuda_stream);
  };
  Capture(work);
  ExpectSound(work);
  step = 1;
  const Outcome run = ExpectFound(work, 1, GCAP_GRAPH_FAULT_HOLE);
  EXPECT_TRUE(run.Names("hole 'hole'")) << run.message;
  EXPECT_EQ(report_.step_buffer, 2u) << "far: " << run.message;
}

// A kernel of the other device, in a segment, before a hole and behind one.
TEST_F(VerifyDevices, AKernelOfTheOtherDeviceIsFoundByItsArgument) {
  for (const bool is_behind : {false, true}) {
    for (const bool is_pointer : {false, true}) {
      SCOPED_TRACE(std::string(is_behind ? "behind" : "before") + (is_pointer ? ", a pointer" : ", a scalar"));
      CreateManager();
      NameAll();
      const Floats* from = far_.get();
      uint64_t addend = 1;
      hole_.function = [this](const gcap_run_resources_t* r) { return AddFar(r->cuda_stream, 10); };
      const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
        GCAP_RETURN_IF_ERROR(Add(r, x_->get(), 1));
        if (is_behind) GCAP_RETURN_IF_ERROR(hole_.Issue(r));
        GCAP_RETURN_IF_ERROR(AddFarInGraph(r->cuda_stream, *from, addend));
        if (!is_behind) GCAP_RETURN_IF_ERROR(hole_.Issue(r));
        return FetchFar(r->cuda_stream);
      };
      Capture(work);
      ExpectSound(work);
      if (is_pointer) {
        from = other_far_.get();
      } else {
        addend = 2;
      }
      const LogCatcher log;
      const Outcome run = RunVerified(work);
      EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
      EXPECT_EQ(report_.fault, is_pointer ? GCAP_GRAPH_FAULT_STALE_POINTER : GCAP_GRAPH_FAULT_FROZEN_VALUE)
          << run.message;
      EXPECT_EQ(report_.step_buffer, 2u) << "far: " << run.message;
      EXPECT_TRUE(run.Names(is_pointer ? "argument 0" : "argument 2 is 0x1")) << run.message;
      DestroyManager();
    }
  }
}

// The work makes its stream's device current, and the thread's is another one when the run begins.
TEST_F(VerifyDevices, AGraphOfAnotherDeviceThanTheThreadsIsSearched) {
  CreateManager();
  named_ = {Named("far", *far_), Named("other far", *other_far_)};
  uint64_t addend = 1;
  hole_.function = [this](const gcap_run_resources_t* r) {
    const OnDevice far(1);
    return AddTo(r->cuda_stream, far_->get(), other_far_->get(), 10);
  };
  const WorkWith work = [&](const gcap_run_resources_t* r) -> gcap_status_t {
    {
      const OnDevice far(1);
      GCAP_RETURN_IF_ERROR(Add(r, far_->get(), addend));
    }
    GCAP_RETURN_IF_ERROR(hole_.Issue(r));
    const OnDevice far(1);
    return Add(r, far_->get(), 2);
  };
  const auto run_far = [&] {
    gcap_run_t run = VerifiedRun();
    run.stream = far_stream_->get();
    return RunHoled(run, work);
  };
  for (int i = 0; i < 3; ++i) {
    const Outcome run = run_far();
    EXPECT_TRUE(run.ok()) << run.message;
    EXPECT_EQ(report_.is_verified, i > 0);
    EXPECT_EQ(Far(), 5 + 3 * (i + 1));
  }
  addend = 4;
  const LogCatcher log;
  const Outcome run = run_far();
  EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
  EXPECT_EQ(report_.step, 0u) << run.message;
  EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_FROZEN_VALUE) << run.message;
  EXPECT_EQ(Far(), 5 + 9 + 6) << "what the work left";
  int device = -1;
  GCAP_EXPECT_CUDA(cudaGetDevice(&device));
  EXPECT_EQ(device, 0);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
