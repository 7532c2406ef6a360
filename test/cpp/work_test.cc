// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap::run: callables as work, what they return, and what they throw, in a warm-up run, in the captured run and where
// a replay does not call them.

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include "gcap/gcap.hpp"
#include "gtest/gtest.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

constexpr int kId = 7;

// A manager that captures the second run, and a byte that its work fills.
class Work : public DeviceTest {
 public:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    on_ = own<gcap_stream_create>(0).value_or_throw();
    device_ = own<gcap_device_allocator_create>(0).value_or_throw();
    byte_ = own<gcap_allocator_alloc>(device_.get(), size_t{1}).value_or_throw();
    auto options = filled_by<gcap_graph_manager_options_init>();
    options.min_num_runs_before_capture = 1;
    graphs_ = own<gcap_graph_manager_create>(&options).value_or_throw();
  }

  cudaStream_t handle() const { return gcap_stream_handle(on_.get()); }
  gcap_status_t Fill(int value) { return GCAP_CUDA(cudaMemsetAsync(byte_.get(), value, 1, handle())); }
  int Byte() {
    unsigned char byte = 0;
    check(GCAP_CUDA(cudaMemcpyAsync(&byte, byte_.get(), 1, cudaMemcpyDeviceToHost, handle())));
    check(gcap_stream_synchronize(on_.get()));
    return byte;
  }
  gcap_graph_info_t Info() { return filled_by<gcap_graph_manager_get_info>(graphs_.get(), kId); }
  template <class Callable>
  status Run(Callable&& work) {
    return run(graphs_.get(), {kId, handle()}, work);
  }
  void ExpectFill(int value) {
    const status outcome = Run([&](cudaStream_t) { return Fill(value); });
    EXPECT_TRUE(outcome.ok()) << outcome.message();
    EXPECT_EQ(Byte(), value);
  }
  // No capture is open, and the stream works.
  void ExpectIdle() {
    EXPECT_FALSE(gcap_thread_is_capturing());
    EXPECT_EQ(cudaStreamSynchronize(handle()), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }

  stream on_;
  allocator device_;
  memory byte_, pair_;
  graph_manager graphs_;
};

TEST_F(Work, ReturnsNothingOrAStatusOfEitherKind) {
  EXPECT_TRUE(run(graphs_.get(), {GCAP_GRAPH_ID_NONE, handle()}, [&](cudaStream_t) { check(Fill(1)); }).ok());
  EXPECT_EQ(Byte(), 1);
  EXPECT_TRUE(run(graphs_.get(), {GCAP_GRAPH_ID_NONE, handle()}, [&](cudaStream_t) { return status(Fill(2)); }).ok());
  EXPECT_EQ(Byte(), 2);
  status failed = run(graphs_.get(), {GCAP_GRAPH_ID_NONE, handle()},
                      [&](cudaStream_t) -> status { return GCAP_STATUS(GCAP_NOT_FOUND, "no layer 3"); });
  GCAP_EXPECT_FAILS(failed.release(), GCAP_NOT_FOUND, "no layer 3");
}

// A callable is neither copied nor moved.
TEST_F(Work, MayBeAnyCallable) {
  struct Filler {
    explicit Filler(Work* test) : test(test) {}
    Filler(const Filler&) = delete;
    Filler& operator=(const Filler&) = delete;
    gcap_status_t operator()(cudaStream_t) { return test->Fill(value); }
    Work* test;
    int value = 3;
  };
  Filler filler(this);
  EXPECT_TRUE(Run(filler).ok());
  EXPECT_EQ(Byte(), 3);
  auto value = std::make_unique<int>(4);
  EXPECT_TRUE(Run([&, value = std::move(value)](cudaStream_t) { return Fill(*value); }).ok());
  EXPECT_EQ(Byte(), 4);
}

TEST_F(Work, ThatThrowsInAWarmUpThrowsAtTheCaller) {
  try {
    (void)Run([](cudaStream_t) { throw std::out_of_range("layer 3"); });
    FAIL() << "nothing was thrown";
  } catch (const std::out_of_range& thrown) {
    EXPECT_STREQ(thrown.what(), "layer 3");
  }
  ExpectIdle();
  EXPECT_EQ(Info().eager_runs, 0u);
  ExpectFill(5);
}

TEST_F(Work, ThatThrowsInACaptureIsUndoneAndThrowsAtTheCaller) {
  const LogCatcher log;
  ExpectFill(1);
  int calls = 0;
  const auto work = [&](cudaStream_t) {
    ++calls;
    EXPECT_TRUE(gcap_thread_is_capturing());
    check(Fill(2));
    throw std::out_of_range("layer 3");
  };
  EXPECT_THROW((void)Run(work), std::out_of_range);
  EXPECT_EQ(calls, 1);
  ExpectIdle();
  EXPECT_EQ(Byte(), 1);  // nothing of the run was done
  EXPECT_EQ(Info().state, GCAP_GRAPH_COOLING);
  GCAP_EXPECT_FAILS(gcap_graph_manager_explain(graphs_.get(), kId, GCAP_GRAPH_WHY_CAPTURE_FAILED),
                    GCAP_CAPTURE_INVALIDATED, "the work threw an exception: layer 3");
  ExpectFill(3);
  EXPECT_THROW((void)Run([](cudaStream_t) { throw 17; }), int);  // anything may be thrown
  ExpectIdle();
  for (int value : {4, 5, 6}) ExpectFill(value);
  EXPECT_EQ(Info().state, GCAP_GRAPH_CAPTURED);
}

TEST_F(Work, ThatIsReplayedIsNotCalled) {
  ExpectFill(6);
  ExpectFill(6);
  const status outcome = Run([](cudaStream_t) { throw std::out_of_range("not called"); });
  EXPECT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(Byte(), 6);
}

TEST_F(Work, ThatThrowsAnErrorHasReturnedIt) {
  const status outcome = Run([](cudaStream_t) { check(GCAP_STATUS(GCAP_NOT_FOUND, "no layer 3")); });
  EXPECT_EQ(outcome.code(), GCAP_NOT_FOUND);
  EXPECT_STREQ(outcome.message(), "no layer 3");
}

// As where a status is returned, the failed capture costs a warning, and the device does the work.
TEST_F(Work, ThatThrowsAnErrorInACaptureIsIssuedAgain) {
  const LogCatcher log;
  ExpectFill(1);
  int calls = 0;
  const status outcome = Run([&](cudaStream_t) {
    ++calls;
    check(Fill(2));
    if (gcap_thread_is_capturing()) check(GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no room in the graph"));
  });
  EXPECT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(Byte(), 2);
  EXPECT_NE(log.text().find("no room in the graph"), std::string::npos) << log.text();
}

TEST_F(Work, OfARuntimeHasItsResources) {
  auto options = filled_by<gcap_options_init>();
  options.enable_cuda_graph = true;
  options.graph.min_num_runs_before_capture = 1;
  const runtime engine = own<gcap_runtime_create>(&options).value_or_throw();
  int calls = 0;
  const auto work = [&](const gcap_run_resources_t& resources) {
    ++calls;
    const auto block = own<gcap_scratch_alloc>(resources.scratch, size_t{64}, resources.stream).value_or_throw();
    const cudaStream_t stream = gcap_stream_handle(resources.stream);
    check(GCAP_CUDA(cudaMemsetAsync(block.get(), 8, 64, stream)));
    check(GCAP_CUDA(cudaMemcpyAsync(byte_.get(), block.get(), 1, cudaMemcpyDeviceToDevice, stream)));
  };
  run_args how(0);
  how.synchronize = true;
  for (int i = 0; i < 3; ++i) check(run(engine.get(), how, work));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(Byte(), 8);
  EXPECT_THROW((void)run(engine.get(), 1, [](const gcap_run_resources_t&) { throw 17; }), int);
  ExpectIdle();
  EXPECT_EQ(filled_by<gcap_scratch_get_stats>(gcap_runtime_scratch(engine.get())).requested_in_use_bytes, 0u);
}

// A thread that is cancelled in its work ends, and the run with it: the cancellation is no exception to catch.
TEST_F(Work, MayBeCancelled) {
  std::pair<Work*, std::atomic<bool>> shared(this, false);
  pthread_t thread;
  const auto body = [](void* user) -> void* {
    auto* const shared = static_cast<std::pair<Work*, std::atomic<bool>>*>(user);
    (void)shared->first->Run([&](cudaStream_t) {
      shared->second = true;
      while (true) pause();
    });
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, body, &shared), 0);
  while (!shared.second) usleep(100);
  ASSERT_EQ(pthread_cancel(thread), 0);
  void* answer = nullptr;
  ASSERT_EQ(pthread_join(thread, &answer), 0);
  EXPECT_EQ(answer, PTHREAD_CANCELED);
  ExpectFill(9);
}

// --- Work on buffers that move --------------------------------------------------------------------------------------

class WorkOnBuffers : public Work {
 public:
  void SetUp() override {
    Work::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    other_ = own<gcap_allocator_alloc>(device_.get(), size_t{1}).value_or_throw();
  }
  template <class Callable>
  status RunAt(const memory& place, Callable&& work) {
    item_ = {"byte", place.get(), 1, 1};
    buffers_.items = &item_;
    buffers_.count = 1;
    run_args how(kId, handle());
    how.buffers = &buffers_;
    how.synchronize = true;
    return run(graphs_.get(), how, work);
  }

  memory other_;
  gcap_graph_buffer_t item_ = {};
  gcap_graph_buffers_t buffers_ = filled_by<gcap_graph_buffers_init>();
};

TEST_F(Work, MayHaveAKey) {
  struct Step {
    int64_t batch, rank;
  };
  for (int64_t round = 0; round < 3; ++round) {
    for (int64_t batch = 1; batch <= 2; ++batch) {
      const Step step = {batch, 7};
      const auto key = key_of(step, batch == 1 ? "one" : "two");
      check(run(graphs_.get(), {&key, handle()}, [&](cudaStream_t) { return Fill(static_cast<int>(batch)); }));
      EXPECT_EQ(Byte(), batch);
      int id = 0;
      check(gcap_graph_manager_find(graphs_.get(), &key, &id));
      const auto info = filled_by<gcap_graph_manager_get_info>(graphs_.get(), id);
      EXPECT_EQ(info.captures, round == 0 ? 0u : 1u);
      EXPECT_STREQ(info.name, key.name);
    }
  }
}

TEST_F(Work, HasValuesOfBothKinds) {
  struct Row {
    unsigned char first, second;
  };
  number<uint8_t> fill = {"fill", 0, 200};
  int calls = 0;
  const auto work = [&](const gcap_run_resources_t& at) {
    ++calls;
    check(Fill(value<uint8_t>(at, 0)));
    return GCAP_CUDA(cudaMemcpyAsync(static_cast<char*>(pair_.get()), &value_on_device<Row>(at, 1)->second, 1,
                                     cudaMemcpyDeviceToDevice, at.cuda_stream));
  };
  pair_ = own<gcap_allocator_alloc>(device_.get(), size_t{1}).value_or_throw();
  for (unsigned char i = 0; i < 5; ++i) {
    fill.now = static_cast<uint8_t>(10 + i);
    const Row row = {0, static_cast<unsigned char>(100 + i)};
    const gcap_graph_value_t values[] = {fill, value_in_memory("row", row)};
    const auto changing = buffers_of(values);
    run_args how(kId, handle());
    how.buffers = &changing;
    check(run(graphs_.get(), how, work));
    EXPECT_EQ(Byte(), 10 + i);
    std::swap(byte_, pair_);
    EXPECT_EQ(Byte(), 100 + i);
    std::swap(byte_, pair_);
  }
  EXPECT_EQ(calls, 5) << "eager, three rehearsals, the capture";
  EXPECT_EQ(Info().captures, 1u);
}

// Which C struct a number becomes.
TEST(Number, HasItsTypeAndBounds) {
  const number<float> f = {"f", -1, 1};
  const number<int16_t> i = {"i", -5, 5, 3};
  const number<uint64_t> u = {"u", 2, 9};
  const gcap_graph_value_t values[] = {f, i, u};
  EXPECT_EQ(values[0].type, GCAP_GRAPH_VALUE_FLOAT);
  EXPECT_EQ(values[1].type, GCAP_GRAPH_VALUE_SIGNED);
  EXPECT_EQ(values[2].type, GCAP_GRAPH_VALUE_UNSIGNED);
  EXPECT_EQ(values[1].bytes, 2u);
  EXPECT_EQ(*static_cast<const int16_t*>(values[1].data), 3);
  EXPECT_EQ(*static_cast<const uint64_t*>(values[2].data), 2u) << "the lower bound, unless it is said";
  EXPECT_EQ(*static_cast<const float*>(values[0].high), 1);
  EXPECT_EQ(buffers_of(values).num_values, 3u);
  EXPECT_EQ(buffers_of(values).count, 0u);
}

TEST_F(WorkOnBuffers, IsCapturedAndReplayedElsewhere) {
  int calls = 0;
  const auto work = [&](const gcap_run_resources_t& at) {
    ++calls;
    return GCAP_CUDA(cudaMemsetAsync(at.addresses[0], 7, 1, at.cuda_stream));
  };
  for (int i = 0; i < 2; ++i) check(RunAt(other_, work));
  EXPECT_EQ(calls, 4) << "eager, two rehearsals, the capture";
  check(Run([&](cudaStream_t) { return Fill(1); }));  // a replay, where it was bound last
  check(RunAt(byte_, work));
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(Byte(), 7);
  EXPECT_EQ(Info().captures, 1u);
}

TEST_F(WorkOnBuffers, MayReturnNothingAndThrow) {
  check(RunAt(byte_, [&](const gcap_run_resources_t& at) {
    EXPECT_EQ(at.addresses[0], byte_.get());
    check(Fill(3));
  }));
  EXPECT_EQ(Byte(), 3);
  const status failed = RunAt(byte_, [] { check(GCAP_STATUS(GCAP_LIBRARY_ERROR, "no")); });
  EXPECT_EQ(failed.code(), GCAP_LIBRARY_ERROR) << failed.message();
  EXPECT_THROW((void)RunAt(byte_, [] { throw std::runtime_error("thrown"); }), std::runtime_error);
  ExpectIdle();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
