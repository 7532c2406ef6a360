// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Wrong buffers, and rehearsals that go wrong: all is named, and nothing else changes.

#include <pthread.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <thread>

#include "test/graph/moving_test.h"
#include "test/support/log_catcher.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr char kNoAlignment[] = "allowed are 0 and powers of two up to 2097152";

// --- Wrong buffers --------------------------------------------------------------------------------------------------

class GraphMovingRefusal : public GraphMoving {
 protected:
  // Neither way of a run takes the buffers, before a capture and after one.
  void ExpectRefused(const gcap_graph_buffers_t& buffers, const char* culprit) {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_CAPTURE;
    void* at[4] = {};
    GCAP_EXPECT_FAILS(BeginPlainOn(manager_, kId, stream_->get(), &buffers, &kind, at), GCAP_INVALID_ARGUMENT, culprit);
    EXPECT_EQ(kind, GCAP_GRAPH_RUN_EAGER);
    const uint64_t replays = Info(kId).replays;
    const Outcome outcome = RunOn(buffers, AddOne);
    EXPECT_STREQ(gcap_code_name(outcome.code), "INVALID_ARGUMENT");
    EXPECT_TRUE(outcome.Names(culprit)) << outcome.message;
    EXPECT_EQ(Info(kId).replays, replays);
  }
  void ExpectRefused(const gcap_graph_buffer_t& second, const char* culprit) {
    const std::vector<gcap_graph_buffer_t> items = {{"first", input_->get(), kFloatsBytes, 0}, second};
    const gcap_graph_buffers_t buffers = BuffersOf(items);
    ExpectRefused(buffers, culprit);
  }
  using Add = std::function<gcap_status_t(void* const* at)>;
  // One run by hand, of at most two buffers; answers what it was.
  gcap_graph_run_kind_t RunByHand(const std::vector<gcap_graph_buffer_t>& items, const Add& add) {
    void* at[2] = {};
    const gcap_graph_run_kind_t kind = BeginOn(items, at);
    GCAP_EXPECT_OK(add(at));
    EXPECT_TRUE(End().ok());
    return kind;
  }
  // Rehearsals, and then the capture.
  void CaptureByHand(const std::vector<gcap_graph_buffer_t>& items, const Add& add) {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_REHEARSAL;
    while (kind == GCAP_GRAPH_RUN_REHEARSAL) kind = RunByHand(items, add);
    EXPECT_EQ(kind, GCAP_GRAPH_RUN_CAPTURE);
  }
  void SetUp() override {
    GraphMoving::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    input_ = std::make_unique<Floats>(1);
    output_ = std::make_unique<Floats>(9);
  }
  void TearDown() override {
    input_.reset();
    output_.reset();
    GraphMoving::TearDown();
  }

  std::unique_ptr<Floats> input_, output_;
};

TEST_F(GraphMovingRefusal, BuffersThatAreNone) {
  float* const memory = output_->get();
  for (const char* state : {"COLD", "CAPTURED"}) {
    EXPECT_EQ(State(kId), state);
    ExpectRefused({"second", nullptr, kFloatsBytes, 0}, "buffer 1 'second' is 256 bytes at (nil)");
    ExpectRefused({"second", memory, 0, 0}, "buffer 1 'second' is 0 bytes at 0x");
    ExpectRefused({nullptr, memory, SIZE_MAX, 0}, "buffer 1 '' is 18446744073709551615 bytes");
    ExpectRefused({"second", memory, kFloatsBytes, 48}, kNoAlignment);
    ExpectRefused({"second", memory, kFloatsBytes, size_t{4} << 20}, kNoAlignment);
    ExpectRefused({"second", memory + 1, kFloatsBytes - 4, 8}, "which is no multiple of its alignment 8");
    EXPECT_EQ(State(kId), state);
    EXPECT_EQ(calls_, state == std::string("COLD") ? 0 : 3);
    if (state == std::string("COLD")) {
      ASSERT_TRUE(RunOn(*input_, *output_).ok());
    }
  }
}

TEST_F(GraphMovingRefusal, ListsThatAreNone) {
  const std::vector<gcap_graph_buffer_t> items = Items(*input_, *output_);
  gcap_graph_buffers_t buffers = BuffersOf(items);
  buffers.stand_ins = static_cast<gcap_graph_stand_ins_t>(2);
  ExpectRefused(buffers, "stand-ins are 2, allowed are ADDRESSES (0), MEMORY (1)");
  buffers = BuffersOf(items);
  buffers.items = nullptr;
  ExpectRefused(buffers, "items");
  buffers = BuffersOf(items);
  buffers.struct_size = 0;
  ExpectRefused(buffers, "gcap_graph_buffers");
  buffers = BuffersOf(items);
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_CAPTURE;
  GCAP_EXPECT_FAILS(BeginPlainOn(manager_, kId, stream_->get(), &buffers, &kind, nullptr), GCAP_INVALID_ARGUMENT,
                    "out_addresses");
  EXPECT_EQ(State(kId), "COLD");
}

TEST_F(GraphMovingRefusal, OtherNumbersAndSizesThanTheCaptureHad) {
  ASSERT_TRUE(RunOn(*input_, *output_).ok());
  std::vector<gcap_graph_buffer_t> items = Items(*input_, *output_);
  items.push_back(items[0]);
  Outcome outcome = RunOn(items, AddOne);
  EXPECT_STREQ(gcap_code_name(outcome.code), "INVALID_ARGUMENT");
  EXPECT_TRUE(outcome.Names("graph id 3: the run has 3 buffers, and the graph has 2")) << outcome.message;
  items.resize(2);
  items[1].bytes = kFloatsBytes / 2;
  outcome = RunOn(items, AddOne);
  EXPECT_STREQ(gcap_code_name(outcome.code), "INVALID_ARGUMENT");
  EXPECT_TRUE(outcome.Names("buffer 1 'output' has 128 bytes, and had 256 when captured")) << outcome.message;
  GCAP_EXPECT_FAILS(ReplayAt({input_->get()}), GCAP_INVALID_ARGUMENT, "the run has 1 buffers, and the graph has 2");
  EXPECT_EQ(Info(kId).replays, 1u);
}

// Between a rehearsal and its capture: rehearsed again.
TEST_F(GraphMovingRefusal, OtherSizesThanTheRehearsalHad) {
  std::vector<gcap_graph_buffer_t> items = Items(*input_, *output_);
  const auto run = [&](gcap_graph_run_kind_t kind) {
    EXPECT_EQ(RunByHand(items, [&](void* const* at) { return AddTo(stream_->get(), at[0], at[1], 1, 8); }), kind);
  };
  run(GCAP_GRAPH_RUN_REHEARSAL);
  run(GCAP_GRAPH_RUN_REHEARSAL);
  items[1].bytes = kFloatsBytes / 2;
  run(GCAP_GRAPH_RUN_REHEARSAL);
  items[0].alignment = 16;
  run(GCAP_GRAPH_RUN_REHEARSAL);
  run(GCAP_GRAPH_RUN_REHEARSAL);
  items.pop_back();
  items.push_back({"another", output_->get(), kFloatsBytes / 2, 0});
  run(GCAP_GRAPH_RUN_CAPTURE);
  EXPECT_TRUE(WhyNotMovable().ok());
  GCAP_EXPECT_FAILS(Bind(1, nullptr), GCAP_INVALID_ARGUMENT, "buffer 1 'another' cannot be at (nil)");
}

// The rehearsals are at addresses that are otherwise than the buffers' in each bit, and in the other order. Of buffers
// elsewhere they would show nothing: what work makes of the order would be the same in all captures.
TEST_F(GraphMovingRefusal, BuffersInAnotherOrderThanTheRehearsalHadAreRehearsedAgain) {
  constexpr size_t kPage = 65536;  // of two buffers so far apart the lower bits are the same
  char* memory = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory), 2 * kPage), cudaSuccess);
  ASSERT_EQ(cudaMemset(memory, 0, 2 * kPage), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto add = [&](void* const* at) { return AddTo(stream_->get(), at[0], at[1], at[0] < at[1] ? 1 : 2); };
  std::vector<gcap_graph_buffer_t> items = {{"first", memory, kFloatsBytes, 0},
                                            {"second", memory + kPage, kFloatsBytes, 0}};
  EXPECT_EQ(RunByHand(items, add), GCAP_GRAPH_RUN_REHEARSAL);
  std::swap(items[0].address, items[1].address);
  CaptureByHand(items, add);
  EXPECT_FALSE(WhyNotMovable().ok());
  stream_->Synchronize();
  GCAP_EXPECT_CUDA(cudaFree(memory));
}

// Work that takes a kernel for aligned buffers: the stand-in of a buffer that is as badly aligned as can be is aligned.
TEST_F(GraphMovingRefusal, ABufferOfAnotherAlignmentThanTheRehearsalHadIsRehearsedAgain) {
  constexpr size_t kPage = 65536;
  char* memory = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory), 3 * kPage), cudaSuccess);
  ASSERT_EQ(cudaMemset(memory, 0, 3 * kPage), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  char* const aligned = memory + kPage - reinterpret_cast<uintptr_t>(memory) % kPage;
  const auto add = [&](void* const* at) {
    return AddTo(stream_->get(), at[0], at[0], reinterpret_cast<uintptr_t>(at[0]) % 8 == 0 ? 1 : 2);
  };
  std::vector<gcap_graph_buffer_t> items = {{"both", aligned + kPage - 4, kFloatsBytes, 4}};
  EXPECT_EQ(RunByHand(items, add), GCAP_GRAPH_RUN_REHEARSAL);
  items[0].address = aligned;
  CaptureByHand(items, add);
  EXPECT_FALSE(WhyNotMovable().ok());
  stream_->Synchronize();
  GCAP_EXPECT_CUDA(cudaFree(memory));
}

// Pointers that are equal in a rehearsal and in the capture could not be found.
TEST_F(GraphMovingRefusal, ACaptureAtTheStandInsIsRehearsedAgain) {
  void *at[2] = {}, *stand_ins[2] = {};
  std::vector<gcap_graph_buffer_t> items = Items(*input_, *output_);
  const auto fill = [&](void* place) { return GCAP_CUDA(cudaMemsetAsync(place, 0, 4, stream_->get())); };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(BeginOn(items, stand_ins), GCAP_GRAPH_RUN_REHEARSAL);
    GCAP_EXPECT_OK(fill(stand_ins[1]));
    EXPECT_TRUE(End().ok());
  }
  items[0].address = stand_ins[0];
  items[0].alignment = 256;
  EXPECT_EQ(BeginOn(items, at), GCAP_GRAPH_RUN_REHEARSAL);
  EXPECT_NE(at[0], stand_ins[0]);
  GCAP_EXPECT_OK(fill(at[1]));
  EXPECT_TRUE(End().ok());
}

// --- Wrong binds ----------------------------------------------------------------------------------------------------

TEST_F(GraphMovingRefusal, AddressesThatDoNotFit) {
  ASSERT_TRUE(RunOn(*input_, *output_).ok());
  output_->Fill(9);
  char* const memory = reinterpret_cast<char*>(output_->get());
  GCAP_EXPECT_FAILS(Bind(2, memory), GCAP_INVALID_ARGUMENT, "there is no buffer 2, the graph has 2");
  GCAP_EXPECT_FAILS(Bind(SIZE_MAX, memory), GCAP_INVALID_ARGUMENT, "there is no buffer 18446744073709551615");
  GCAP_EXPECT_FAILS(Bind(0, nullptr), GCAP_INVALID_ARGUMENT, "buffer 0 'input' cannot be at (nil)");
  GCAP_EXPECT_FAILS(Bind(0, reinterpret_cast<void*>(UINTPTR_MAX - 255)), GCAP_INVALID_ARGUMENT, "cannot be at 0x");
  GCAP_EXPECT_FAILS(Bind(0, memory + 8), GCAP_INVALID_ARGUMENT, "is no multiple of 256 bytes");
  char local[512];
  char* const aligned = local + 256 - reinterpret_cast<uintptr_t>(local) % 256;
  GCAP_EXPECT_FAILS(Bind(0, aligned), GCAP_INVALID_ARGUMENT, "memory that the driver does not know");
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  EXPECT_EQ(output_->value(), 2) << "as before";
}

// Memory may go on in another range. Whether two are one behind the other is the driver's choice.
TEST_F(GraphMovingRefusal, MemoryThatEndsTooEarly) {
  constexpr size_t kBytes = size_t{4} << 20;
  std::vector<char*> ranges(1);
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&ranges[0]), kBytes), cudaSuccess);
  const std::vector<gcap_graph_buffer_t> items = {{"large", ranges[0], kBytes, 0}};
  GCAP_EXPECT_CUDA(cudaMemsetAsync(ranges[0], 0, kBytes, stream_->get()));
  // A kernel: a GPU's driver sets no fill to memory of two allocations.
  const WorkOn work = [](cudaStream_t stream, void* const* at) { return AddTo(stream, at[0], at[0], 1); };
  ASSERT_TRUE(RunOn(items, work).ok());
  GCAP_EXPECT_FAILS(Bind(0, ranges[0] + 4096), GCAP_INVALID_ARGUMENT, "has 4194304 bytes, and the memory at 0x");
  for (int i = 0; i < 8; ++i) {
    GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&ranges.emplace_back()), kBytes));
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i - 1] + kBytes == ranges[i]) GCAP_EXPECT_OK(Bind(0, ranges[i - 1] + 4096));
    GCAP_EXPECT_OK(Bind(0, ranges[i]));
  }
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
  for (char* range : ranges) GCAP_EXPECT_CUDA(cudaFree(range));
}

// The runtime sets fills and copies for the device that is current.
TEST_F(GraphMovingRefusal, BindsWhileAnotherDeviceIsCurrent) {
  int devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  if (devices < 2) GTEST_SKIP() << "one device";
  const Floats other(9);
  const std::vector<gcap_graph_buffer_t> items = Items(*input_, *output_), others = Items(*input_, other);
  const WorkOn work = [](cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(at[1], 0, kFloatsBytes, stream)));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(at[1], at[0], kFloatsBytes, cudaMemcpyDeviceToDevice, stream)));
    return AddTo(stream, at[1], at[1], 1);
  };
  ASSERT_TRUE(RunOn(items, work).ok());
  const float value = output_->value();
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const Outcome moved = RunOn(others, work);
  int current = -1;
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 1);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_TRUE(moved.ok()) << moved.message;
  EXPECT_EQ(Info(kId).captures, 1u);
  EXPECT_EQ(other.value(), value);
}

// The driver sets kernels for the context that they are of.
TEST_F(GraphMovingRefusal, BindsKernelsWhileAnotherDeviceIsCurrent) {
  int devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  if (devices < 2) GTEST_SKIP() << "one device";
  const Floats other(9);
  ASSERT_TRUE(RunOn(*input_, *output_).ok());
  const float value = output_->value();
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const Outcome moved = RunOn(*input_, other);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_TRUE(moved.ok()) << moved.message;
  EXPECT_EQ(Info(kId).captures, 1u);
  EXPECT_EQ(other.value(), value);
}

TEST_F(GraphMovingRefusal, MemoryOfAnotherDevice) {
  int devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  if (devices < 2) GTEST_SKIP() << "one device";
  ASSERT_TRUE(RunOn(*input_, *output_).ok());
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  void* other = nullptr;
  EXPECT_EQ(cudaMalloc(&other, kFloatsBytes), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  GCAP_EXPECT_FAILS(Bind(0, other), GCAP_INVALID_ARGUMENT, "is on device 1, and was captured on device 0");
  GCAP_EXPECT_FAILS(ReplayAt({input_->get(), other}), GCAP_INVALID_ARGUMENT, "buffer 1 'output'");
  GCAP_EXPECT_CUDA(cudaFree(other));
}

TEST_F(GraphMovingRefusal, NoThreadBindsInItsOwnCapture) {
  ASSERT_TRUE(RunOn(*input_, *output_).ok());
  EXPECT_EQ(Begin(kId + 1), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_FAILS(Bind(0, output_->get()), GCAP_FAILED_PRECONDITION, "capturing");
  GCAP_EXPECT_FAILS(ReplayAt({output_->get(), output_->get()}), GCAP_FAILED_PRECONDITION, "capturing");
  EXPECT_EQ(RunOn(*input_, *output_).code, GCAP_FAILED_PRECONDITION);
  EXPECT_TRUE(End().ok());
}

// --- Rehearsals that go wrong ---------------------------------------------------------------------------------------

// Work whose nth call fails.
class FailingWork {
 public:
  explicit FailingWork(int first, int last) : first_(first), last_(last) {}
  WorkOn get() {
    return [this](cudaStream_t stream, void* const* at) {
      ++calls_;
      GCAP_RETURN_IF_ERROR(AddOne(stream, at));
      if (calls_ < first_ || calls_ > last_) return static_cast<gcap_status_t>(nullptr);
      return GCAP_STATUS(GCAP_LIBRARY_ERROR, "call %d failed", calls_);
    };
  }

 private:
  int calls_ = 0;
  const int first_, last_;
};

TEST_F(GraphMovingRefusal, WorkThatFailsInTheFirstRehearsalIsRehearsedAgain) {
  FailingWork work(1, 1);
  const Outcome outcome = RunOn(*input_, *output_, work.get());
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(calls_, 4) << "three rehearsals and the capture";
  EXPECT_TRUE(WhyNotMovable().ok());
  EXPECT_EQ(output_->value(), 2);
  EXPECT_EQ(Info(kId).failures, 0u);
}

TEST_F(GraphMovingRefusal, WorkThatFailsInBothRehearsalsRunsEagerly) {
  FailingWork work(1, 2);
  const Outcome outcome = RunOn(*input_, *output_, work.get());
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(calls_, 3) << "two rehearsals and an eager run";
  EXPECT_EQ(output_->value(), 2);
  EXPECT_EQ(State(kId), "COOLING");
  EXPECT_EQ(Info(kId).failures, 1u);
  GCAP_EXPECT_FAILS(gcap_graph_manager_explain(manager_, kId, GCAP_GRAPH_WHY_CAPTURE_FAILED), GCAP_CAPTURE_INVALIDATED,
                    "graph id 3, in its rehearsal");
  GCAP_EXPECT_FAILS(gcap_graph_manager_explain(manager_, kId, GCAP_GRAPH_WHY_CAPTURE_FAILED), GCAP_CAPTURE_INVALIDATED,
                    "call 2 failed");
  ASSERT_TRUE(RunOn(*input_, *output_, work.get()).ok()) << "cools down";
  ASSERT_TRUE(RunOn(*input_, *output_, work.get()).ok());
  EXPECT_EQ(State(kId), "CAPTURED");
  EXPECT_TRUE(WhyNotMovable().ok());
}

TEST_F(GraphMovingRefusal, WithoutARerunTheFailureOfTheRehearsalIsTheRuns) {
  CreateWith([](auto* options) { options->rerun_failed_capture = false; });
  FailingWork work(1, 2);
  const Outcome outcome = RunOn(*input_, *output_, work.get());
  EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(outcome.Names("in its rehearsal")) << outcome.message;
  EXPECT_EQ(output_->value(), 9) << "nothing was executed";
}

// Work that asks for the thread's last error must not find that of an earlier rehearsal.
TEST_F(GraphMovingRefusal, ARehearsalLeavesNoLastError) {
  const WorkOn work = [](cudaStream_t stream, void* const* at) {
    const cudaError_t before = cudaPeekAtLastError();
    (void)cudaMemcpyAsync(at[1], at[0], kFloatsBytes, cudaMemcpyDeviceToDevice, stream);
    if (cudaPeekAtLastError() == cudaSuccess) return static_cast<gcap_status_t>(nullptr);
    return GCAP_STATUS(GCAP_LIBRARY_ERROR, "%s", before == cudaSuccess ? "the copy was refused" : "left over");
  };
  const Outcome outcome = RunOn(*input_, *output_, work);
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(calls_, 4) << "three rehearsals and the capture";
  EXPECT_TRUE(WhyNotMovable().ok());
  EXPECT_EQ(output_->value(), 1);
}

TEST_F(GraphMovingRefusal, WorkThatFailsInTheCaptureKeepsNoGraph) {
  FailingWork work(3, 3);
  const Outcome outcome = RunOn(*input_, *output_, work.get());
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(calls_, 4) << "two rehearsals, the capture, an eager run";
  EXPECT_EQ(State(kId), "COOLING");
  EXPECT_EQ(output_->value(), 2);
}

// Every call fails: the failure of the eager run is the run's.
TEST_F(GraphMovingRefusal, WorkThatFailsAlways) {
  FailingWork work(1, 100);
  const Outcome outcome = RunOn(*input_, *output_, work.get());
  EXPECT_STREQ(gcap_code_name(outcome.code), "LIBRARY_ERROR");
  EXPECT_TRUE(outcome.Names("call 3 failed")) << outcome.message;
}

TEST_F(GraphMovingRefusal, ARehearsalThatIsNeverEnded) {
  void* at[2] = {};
  for (const gcap_graph_stand_ins_t stand_ins : {GCAP_GRAPH_STAND_INS_ADDRESSES, GCAP_GRAPH_STAND_INS_MEMORY}) {
    const std::vector<gcap_graph_buffer_t> items = Items(*input_, *output_);
    gcap_graph_buffers_t buffers = BuffersOf(items);
    buffers.stand_ins = stand_ins;
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    for (int i = 0; i < 2; ++i) {
      GCAP_EXPECT_OK(BeginPlainOn(manager_, kId, stream_->get(), &buffers, &kind, at));
      EXPECT_EQ(kind, GCAP_GRAPH_RUN_REHEARSAL);
      GCAP_EXPECT_OK(AddOne(stream_->get(), at));
    }
    EXPECT_EQ(warnings_, 1) << "a run of id 3 was never ended";
    warnings_ = 0;
    EXPECT_TRUE(End().ok());
    ASSERT_TRUE(RunOn(*input_, *output_).ok());
    EXPECT_TRUE(WhyNotMovable().ok());
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
  EXPECT_EQ(BeginOn(Items(*input_, *output_), at), GCAP_GRAPH_RUN_REHEARSAL);
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
  manager_ = nullptr;
}

TEST_F(GraphMovingRefusal, AThreadThatExitsInItsRehearsal) {
  std::thread([&] {
    void* at[2] = {};
    EXPECT_EQ(BeginOn(Items(*input_, *output_), at), GCAP_GRAPH_RUN_REHEARSAL);
  }).join();
  ASSERT_TRUE(RunOn(*input_, *output_).ok());
  EXPECT_EQ(State(kId), "CAPTURED");
  EXPECT_EQ(output_->value(), 2);
}

TEST_F(GraphMovingRefusal, AManagerThatEndsWithARehearsalKept) {
  void* at[2] = {};
  EXPECT_EQ(BeginOn(Items(*input_, *output_), at), GCAP_GRAPH_RUN_REHEARSAL);
  GCAP_EXPECT_OK(AddOne(stream_->get(), at));
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(BeginOn(Items(*input_, *output_), at, kId + 1), GCAP_GRAPH_RUN_REHEARSAL);
  EXPECT_TRUE(End().ok());
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId + 1));
}

TEST_F(GraphMovingRefusal, ARehearsalEndedBehindTheManagersBack) {
  void* at[2] = {};
  EXPECT_EQ(BeginOn(Items(*input_, *output_), at), GCAP_GRAPH_RUN_REHEARSAL);
  gcap_capture_abort(gcap_capture_current());
  const Outcome outcome = End();
  EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(outcome.Names("behind the manager's back")) << outcome.message;
  EXPECT_EQ(State(kId), "COOLING");
  ASSERT_TRUE(RunOn(*input_, *output_).ok());
  ASSERT_TRUE(RunOn(*input_, *output_).ok());
  EXPECT_EQ(State(kId), "CAPTURED");
}

// The nth call of the work throws: the exception passes, and no run is open.
TEST_F(GraphMovingRefusal, WorkThatThrows) {
  for (int nth = 1; nth <= 2; ++nth) {
    int calls = 0;
    const WorkOn work = [&](cudaStream_t stream, void* const* at) {
      if (++calls == nth) throw std::runtime_error("thrown");
      return AddOne(stream, at);
    };
    EXPECT_THROW((void)RunOn(*input_, *output_, work), std::runtime_error);
    EXPECT_FALSE(gcap_thread_is_capturing());
    for (int i = 0; i < 3 && State(kId) != "CAPTURED"; ++i) ASSERT_TRUE(RunOn(*input_, *output_, work).ok());
    EXPECT_EQ(State(kId), "CAPTURED");
    EXPECT_TRUE(WhyNotMovable().ok());
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
}

TEST_F(GraphMovingRefusal, WorkThatDoesNotReturn) {
  for (int nth = 1; nth <= 2; ++nth) {
    std::thread([&] {
      int calls = 0;
      const WorkOn work = [&](cudaStream_t stream, void* const* at) {
        if (++calls == nth) pthread_exit(nullptr);
        return AddOne(stream, at);
      };
      (void)RunOn(*input_, *output_, work);
      ADD_FAILURE() << "the work returned";
    }).join();
    for (int i = 0; i < 3 && State(kId) != "CAPTURED"; ++i) ASSERT_TRUE(RunOn(*input_, *output_).ok());
    EXPECT_EQ(State(kId), "CAPTURED");
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
