// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Copies for a host: between all kinds of memory, with and without a stream, in a capture, and what is refused.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "gcap/capture.h"
#include "gcap/graph_buffers.h"
#include "gcap/graph_plan.h"
#include "gcap/graph_values.h"
#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/base/device_work.h"
#include "test/ep/model_builder.h"
#include "test/runtime/runtime_fixture.h"
#include "test/support/allocator_stats.h"
#include "test/support/runs.h"

namespace {

using gcap::testing::DeviceFloats;
using gcap::testing::Floats;
using gcap::testing::Gate;
using gcap::testing::GraphOptions;
using gcap::testing::Outcome;
using gcap::testing::StatsOf;

constexpr gcap_memory_t kDevice = {GCAP_MEMORY_DEVICE, 0}, kHost = {GCAP_MEMORY_HOST, 0};
constexpr gcap_memory_t kPinned = {GCAP_MEMORY_PINNED, 0}, kNowhere = {GCAP_MEMORY_DEVICE, 999};
constexpr gcap_memory_t kNoKind = {static_cast<gcap_memory_kind_t>(7), 0};

// Floats in page-locked memory.
class PinnedFloats {
 public:
  explicit PinnedFloats(const Floats& values) : size_(values.size()) {
    EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&data_), size_ * sizeof(float)), cudaSuccess);
    std::memcpy(data_, values.data(), size_ * sizeof(float));
  }
  PinnedFloats(const PinnedFloats&) = delete;
  PinnedFloats& operator=(const PinnedFloats&) = delete;
  ~PinnedFloats() { EXPECT_EQ(cudaFreeHost(data_), cudaSuccess); }
  float* get() const { return data_; }
  Floats Get() const { return Floats(data_, data_ + size_); }

 private:
  size_t size_;
  float* data_ = nullptr;
};

gcap_tensor_t Tensor(void* data, int64_t count) { return gcap::testing::Tensor(data, {count}); }

class RuntimeCopy : public gcap::testing::RuntimeTest {
 protected:
  gcap_status_t CopyOne(const gcap_tensor_t& src, gcap_memory_t from, const gcap_tensor_t& dst, gcap_memory_t to,
                        gcap_stream_t* stream = nullptr) {
    const gcap_copy_t copy = {&src, from, &dst, to, stream};
    return gcap_runtime_copy_tensors(runtime_, &copy, 1);
  }
  // A run that waits for the gate before it copies.
  void RunHeld(Gate* gate, const DeviceFloats& from, const DeviceFloats& to) {
    const auto hold_and_copy = [&](const gcap_run_resources_t& run) {
      gate->Hold(gcap_stream_handle(run.stream));
      return Copy(run, from, to);
    };
    EXPECT_TRUE(Run(GCAP_GRAPH_ID_NONE, hold_and_copy, /*synchronize=*/false).ok());
  }
  void ExpectCopied(const DeviceFloats& from, const Floats& content) {
    Floats out(content.size());
    const int64_t count = static_cast<int64_t>(out.size());
    GCAP_EXPECT_OK(CopyOne(Tensor(from.get(), count), kDevice, Tensor(out.data(), count), kHost));
    EXPECT_EQ(out, content);
  }
  // A plan of one run, whose value is in device memory.
  void PlanWith(const gcap_graph_value_t& value) {
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.values = &value;
    buffers.num_values = 1;
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = 1;
    run.buffers = &buffers;
    run.work = [](void*, const gcap_run_resources_t*) { return gcap_status_t{}; };
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    GCAP_EXPECT_OK(gcap_runtime_plan(runtime_, &run, 1, &plan));
  }
  gcap_stream_t* NewStream() {
    gcap_stream_t* stream = nullptr;
    GCAP_EXPECT_OK(gcap_runtime_create_stream(runtime_, &stream));
    return stream;
  }
};

TEST_F(RuntimeCopy, GoesBetweenTheDeviceAndAllKindsOfMemory) {
  Create(GraphOptions());
  const Floats values = {1, -2, 3.5f, 0};
  Floats host = values, back(4);
  PinnedFloats pinned(Floats(4)), pinned_back(Floats(4));
  DeviceFloats a(Floats(4)), b(Floats(4)), c(Floats(4));
  const struct {
    void* src;
    gcap_memory_t from;
    void* dst;
    gcap_memory_t to;
  } way[] = {{host.data(), kHost, a.get(), kDevice},    {a.get(), kDevice, pinned.get(), kPinned},
             {pinned.get(), kPinned, b.get(), kDevice}, {b.get(), kDevice, c.get(), kDevice},
             {c.get(), kDevice, back.data(), kHost},    {c.get(), kDevice, pinned_back.get(), kPinned}};
  for (const auto& step : way) {
    EXPECT_TRUE(gcap_runtime_can_copy(runtime_, step.from, step.to));
    GCAP_EXPECT_OK(CopyOne(Tensor(step.src, 4), step.from, Tensor(step.dst, 4), step.to));
  }
  EXPECT_EQ(back, values);
  EXPECT_EQ(pinned_back.Get(), values);
  for (gcap_memory_t other : {kNowhere, {GCAP_MEMORY_DEVICE, -1}, kNoKind}) {
    EXPECT_FALSE(gcap_runtime_can_copy(runtime_, kDevice, other)) << other.kind << ' ' << other.device_id;
    EXPECT_FALSE(gcap_runtime_can_copy(runtime_, other, kDevice)) << other.kind << ' ' << other.device_id;
  }
  EXPECT_FALSE(gcap_runtime_can_copy(runtime_, kHost, kPinned));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

// In the order of its stream, and without a wait: what the host sees is what was there.
TEST_F(RuntimeCopy, InAStreamComesAfterItsEarlierWork) {
  Create(GraphOptions());
  gcap_stream_t* const stream = NewStream();
  const DeviceFloats x({1, 2});
  const PinnedFloats out({0, 0});
  Gate gate;
  gate.Hold(gcap_stream_handle(stream));
  GCAP_EXPECT_OK(CopyOne(Tensor(x.get(), 2), kDevice, Tensor(out.get(), 2), kPinned, stream));
  EXPECT_EQ(out.Get(), Floats({0, 0}));
  gate.Open();
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  EXPECT_EQ(out.Get(), Floats({1, 2}));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

// Of a batch some have a stream, each its own, and come after its earlier work; some are done on return.
TEST_F(RuntimeCopy, ABatchMayHaveAStreamForEachTensor) {
  Create(GraphOptions());
  gcap_stream_t* const streams[2] = {NewStream(), NewStream()};
  EXPECT_EQ(gcap_stream_ownership(streams[0]), GCAP_STREAM_OWNED);
  const DeviceFloats x({1, 2, 3, 4});
  const PinnedFloats out(Floats(4));
  gcap_stream_t* const order[] = {streams[0], nullptr, streams[1], nullptr};
  gcap_tensor_t src[4], dst[4];
  gcap_copy_t copies[4];
  for (int i = 0; i < 4; ++i) {
    src[i] = Tensor(x.get() + i, 1);
    dst[i] = Tensor(out.get() + i, 1);
    copies[i] = {&src[i], kDevice, &dst[i], kPinned, order[i]};
  }
  Gate gates[2];
  for (int i = 0; i < 2; ++i) gates[i].Hold(gcap_stream_handle(streams[i]));
  GCAP_EXPECT_OK(gcap_runtime_copy_tensors(runtime_, copies, 4));
  EXPECT_EQ(out.Get(), Floats({0, 2, 0, 4}));
  const Floats after[] = {{1, 2, 0, 4}, {1, 2, 3, 4}};
  for (int i = 0; i < 2; ++i) {
    gates[i].Open();
    GCAP_EXPECT_OK(gcap_stream_synchronize(streams[i]));
    EXPECT_EQ(out.Get(), after[i]);
  }
  for (gcap_stream_t* stream : streams) GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  GCAP_EXPECT_OK(gcap_runtime_copy_tensors(runtime_, nullptr, 0));
}

TEST_F(RuntimeCopy, ReachesEmptyTensorsAndTensorsOfOtherShapes) {
  Create(GraphOptions());
  Floats host = {1, 2, 3, 4, 5, 6};
  DeviceFloats x(Floats(6));
  const gcap_tensor_t matrix = gcap::testing::Tensor(host.data(), {2, 3});
  const gcap_tensor_t shapes[] = {Tensor(x.get(), 6), gcap::testing::Tensor(x.get(), {1, 1, 1, 1, 1, 1, 3, 2})};
  EXPECT_EQ(shapes[1].rank, GCAP_MAX_RANK);
  for (const gcap_tensor_t& shape : shapes) {
    host[0] += 10;
    GCAP_EXPECT_OK(CopyOne(matrix, kHost, shape, kDevice));
    EXPECT_EQ(x.Get(), host);
  }
  const gcap_tensor_t empty = gcap::testing::Tensor(nullptr, {0, 3});
  GCAP_EXPECT_OK(CopyOne(empty, kHost, Tensor(nullptr, 0), kDevice));
  bool yes = true, back = false;
  const auto byte = [](void* data) { return gcap::testing::Tensor(data, {}, GCAP_DTYPE_BOOL); };
  GCAP_EXPECT_OK(CopyOne(byte(&yes), kHost, byte(x.get()), kDevice));
  GCAP_EXPECT_OK(CopyOne(byte(x.get()), kDevice, byte(&back), kHost));
  EXPECT_TRUE(back);
}

TEST_F(RuntimeCopy, RefusesTensorsThatAreNotAlikeAndCopiesNothing) {
  Create(GraphOptions());
  Floats host = {7, 7, 7, 7};
  DeviceFloats x({1, 2, 3, 4});
  const gcap_tensor_t good_src = Tensor(host.data(), 4), good_dst = Tensor(x.get(), 4);
  const int64_t huge = int64_t{1} << 62, most = huge - 1;  // f32 in a size_t's bytes
  gcap_tensor_t no_type = good_src, no_rank = good_src, high_rank = good_src, integers = good_src;
  no_type.dtype = static_cast<gcap_dtype_t>(99);
  no_rank.rank = -1;
  high_rank.rank = GCAP_MAX_RANK + 1;
  integers.dtype = GCAP_DTYPE_I32;
  const struct {
    const char* named;
    gcap_tensor_t src, dst;
    gcap_memory_t to = kDevice;
  } rows[] = {
      {"copies[1]: src has 3 elements of f32, dst has 4 of f32", Tensor(host.data(), 3), good_dst},
      {"copies[1]: src has 4 elements of i32, dst has 4 of f32", integers, good_dst},
      {"copies[1]: src has type 99", no_type, good_dst},
      {"copies[1]: src has rank -1, allowed is 0 to 8", no_rank, good_dst},
      {"copies[1]: src has rank 9", high_rank, good_dst},
      {"copies[1]: dimension 0 of dst is -4", good_src, Tensor(x.get(), -4)},
      {"copies[1]: dimension 1 of src", gcap::testing::Tensor(host.data(), {huge, huge, huge}), good_dst},
      {"copies[1]: src has 4611686018427387904 elements of f32, which no memory holds", Tensor(host.data(), huge),
       good_dst},
      {"copies[1]: src has 4611686018427387903 elements of f32, dst has 4", Tensor(host.data(), most), good_dst},
      {"copies[1]: the data of src is NULL", Tensor(nullptr, 4), good_dst},
      {"copies[1]: the data of dst is NULL", good_src, Tensor(nullptr, 4)},
      {"does not copy from host memory to pinned memory", good_src, good_dst, kPinned},
      {"from host memory to memory of device 999", good_src, good_dst, kNowhere},
      {"copies[1]", good_src, good_dst, kNoKind},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.named);
    const gcap_copy_t copies[] = {{&good_src, kHost, &good_dst, kDevice, nullptr},
                                  {&row.src, kHost, &row.dst, row.to, nullptr}};
    GCAP_EXPECT_FAILS(gcap_runtime_copy_tensors(runtime_, copies, 2), GCAP_INVALID_ARGUMENT, row.named);
  }
  const gcap_copy_t no_src = {nullptr, kHost, &good_dst, kDevice, nullptr};
  GCAP_EXPECT_FAILS(gcap_runtime_copy_tensors(runtime_, &no_src, 1), GCAP_INVALID_ARGUMENT, "copies[0]: src is NULL");
  const gcap_copy_t no_dst = {&good_src, kHost, nullptr, kDevice, nullptr};
  GCAP_EXPECT_FAILS(gcap_runtime_copy_tensors(runtime_, &no_dst, 1), GCAP_INVALID_ARGUMENT, "copies[0]: dst is NULL");
  EXPECT_EQ(x.Get(), Floats({1, 2, 3, 4}));
}

// --- Order ----------------------------------------------------------------------------------------------------------

// What a run issued, and is held up, is in the copy that came after.
TEST_F(RuntimeCopy, InTheDefaultStreamComesAfterTheRunsOfItsThread) {
  Create(GraphOptions());
  EXPECT_TRUE(RuntimeInfo(runtime_).copies_in_default_stream);
  DeviceFloats x({1, 2}), y({0, 0});
  Gate gate;
  RunHeld(&gate, x, y);
  std::thread opener([&gate] {
    std::this_thread::sleep_for(gcap::testing::kPatience);
    gate.Open();
  });
  ExpectCopied(y, {1, 2});
  opener.join();
}

// The copy is done while the run cannot go on: it does not wait for it.
TEST_F(RuntimeCopy, OutsideTheDefaultStreamDoesNotWaitForRuns) {
  gcap_options_t options = GraphOptions();
  options.do_copy_in_default_stream = false;
  Create(options);
  EXPECT_FALSE(RuntimeInfo(runtime_).copies_in_default_stream);
  DeviceFloats x({1, 2}), y({0, 0}), other({3, 4});
  Gate gate;
  RunHeld(&gate, x, y);
  ExpectCopied(other, {3, 4});
  gate.Open();
  GCAP_EXPECT_OK(gcap_runtime_synchronize(runtime_));  // the host orders the copy after the run
  ExpectCopied(y, {1, 2});
}

// --- Threads that share a stream ------------------------------------------------------------------------------------

// Otherwise the wait and the plan would be refused, for the stream captures, and the copy would become a part of the
// graph.
TEST_F(RuntimeCopy, AndAWaitDoNotMeetTheCaptureOfAnotherThread) {
  gcap_options_t options = GraphOptions();
  options.graph_scope = GCAP_GRAPH_SCOPE_SESSION;
  Create(options);
  DeviceFloats x({1, 2}), y({0, 0}), z({3, 4});
  std::atomic<bool> captures{false};
  const auto copy = [&](const gcap_run_resources_t& run) {
    if (gcap_thread_is_capturing()) captures = true;
    std::this_thread::sleep_for(gcap::testing::kPatience);  // the others are at their calls by now
    return Copy(run, x, y);
  };
  const auto once_it_captures = [&captures](std::function<void()> call) {
    return std::thread([&captures, call = std::move(call)] {
      while (!captures) std::this_thread::yield();
      call();
    });
  };
  std::thread waits = once_it_captures([this] { GCAP_EXPECT_OK(gcap_runtime_synchronize(runtime_)); });
  std::thread copies = once_it_captures([&] { ExpectCopied(z, {3, 4}); });
  const float number = 3;
  const gcap_graph_value_t value = {"number", &number, sizeof(number), GCAP_GRAPH_VALUE_BYTES,
                                    nullptr,  nullptr, false,          true};
  std::thread plans = once_it_captures([&] { PlanWith(value); });
  for (int run = 0; run < 3; ++run) EXPECT_TRUE(RunWhole(0, copy).ok());
  waits.join();
  copies.join();
  plans.join();
  EXPECT_EQ(Info(0).captures, 1u);
  EXPECT_EQ(y.Get(), Floats({1, 2}));
}

TEST_F(RuntimeCopy, AndAWaitAreLegalInTheWorkOfARunThatHasTheTurn) {
  gcap_options_t options = GraphOptions();
  options.graph_scope = GCAP_GRAPH_SCOPE_SESSION;
  Create(options);
  DeviceFloats x({1, 2}), y({0, 0});
  const auto work = [&](const gcap_run_resources_t& run) {
    GCAP_EXPECT_OK(Copy(run, x, y));
    GCAP_EXPECT_OK(gcap_runtime_synchronize(runtime_));
    ExpectCopied(y, {1, 2});
    return gcap_status_t{};
  };
  EXPECT_TRUE(RunWhole(GCAP_GRAPH_ID_NONE, work).ok());
}

// --- Captures -------------------------------------------------------------------------------------------------------

// Also where the copy calls it pinned.
TEST_F(RuntimeCopy, OfPageableMemoryIsRefusedInACaptureAndNotInAnEagerRun) {
  for (gcap_memory_t named : {kHost, kPinned}) {
    SCOPED_TRACE(gcap_memory_kind_name(named.kind));
    Create(GraphOptions(1));
    Floats host = {1, 2};
    DeviceFloats x({0, 0});
    const gcap_tensor_t on_host = Tensor(host.data(), 2), on_device = Tensor(x.get(), 2);
    const std::pair<const char*, Work> rows[] = {
        {"copies[0]: src is pageable host memory",
         [&](const gcap_run_resources_t& run) { return CopyOne(on_host, named, on_device, kDevice, run.stream); }},
        {"copies[0]: dst is pageable host memory",
         [&](const gcap_run_resources_t& run) { return CopyOne(on_device, kDevice, on_host, named, run.stream); }}};
    for (const auto& row : rows) {
      const int id = static_cast<int>(&row - rows);
      EXPECT_TRUE(Run(id, row.second).ok());
      EXPECT_EQ(x.Get(), Floats({1, 2}));
      const Outcome captured = Run(id, row.second);
      EXPECT_EQ(captured.code, GCAP_CAPTURE_INVALIDATED);
      EXPECT_TRUE(captured.Names(row.first) && captured.Names("use pinned memory")) << captured.message;
    }
  }
}

// The graph would lack the copy, even if the work ignores the refusal.
TEST_F(RuntimeCopy, WithoutAStreamOfTheCaptureIsRefusedAndFailsTheCapture) {
  Create(GraphOptions(1));
  gcap_stream_t* const other = NewStream();
  DeviceFloats x({1, 2}), y({0, 0});
  const std::pair<gcap_stream_t*, const char*> rows[] = {{nullptr, "copies[0] has no stream"},
                                                         {other, "is not in the capture of this thread"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.second);
    const int id = static_cast<int>(&row - rows);
    const auto copy = [&](const gcap_run_resources_t&) {
      gcap_status_ignore(  // the scope knows
          CopyOne(Tensor(x.get(), 2), kDevice, Tensor(y.get(), 2), kDevice, row.first));
      return gcap_status_t(nullptr);
    };
    EXPECT_TRUE(Run(id, copy).ok());
    const Outcome captured = Run(id, copy);
    EXPECT_EQ(captured.code, GCAP_CAPTURE_INVALIDATED);
    EXPECT_TRUE(captured.Names(row.second)) << captured.message;
  }
  GCAP_EXPECT_OK(gcap_stream_destroy(other));
}

// A capture that was begun without gcap bakes the address just as well.
TEST_F(RuntimeCopy, OfPageableMemoryIsRefusedInAForeignCapture) {
  Create(GraphOptions());
  gcap_stream_t* const stream = NewStream();
  unsigned char host = 1;  // a byte is enough
  DeviceFloats x({0, 0});
  const cudaStream_t handle = gcap_stream_handle(stream);
  ASSERT_EQ(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  const gcap_tensor_t src = gcap::testing::Tensor(&host, {1}, GCAP_DTYPE_BOOL);
  const gcap_tensor_t dst = gcap::testing::Tensor(x.get(), {1}, GCAP_DTYPE_BOOL);
  GCAP_EXPECT_FAILS(CopyOne(src, kHost, dst, kDevice, stream), GCAP_FAILED_PRECONDITION, "src is pageable host memory");
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(handle, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

// --- Streams and memory ---------------------------------------------------------------------------------------------

TEST_F(RuntimeCopy, AStreamForTheHostIsTheUsersStreamIfThereIsOne) {
  gcap::testing::RawStream user;
  gcap_options_t options = GraphOptions();
  options.has_user_stream = true;
  options.user_stream = user.get();
  Create(options);
  gcap_stream_t* const stream = NewStream();
  EXPECT_EQ(gcap_stream_handle(stream), user.get());
  EXPECT_EQ(gcap_stream_ownership(stream), GCAP_STREAM_USER);
  EXPECT_NE(stream, Resources().stream);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  const DeviceFloats x({5, 6});
  ExpectCopied(x, {5, 6});
  Destroy();  // before its stream
}

// Threads that ask at once get one allocator.
TEST_F(RuntimeCopy, AllocatorsAreFoundByTheKindOfMemory) {
  Create(GraphOptions());
  std::vector<gcap_allocator_t*> found(8);
  std::vector<std::thread> threads;
  for (gcap_allocator_t*& mine : found) {
    threads.emplace_back(
        [this, &mine] { GCAP_EXPECT_OK(gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_PINNED, &mine)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (gcap_allocator_t* allocator : found) EXPECT_EQ(allocator, found[0]);
  EXPECT_EQ(StatsOf(found[0]).device_id, -1);
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_DEVICE, &allocator));
  EXPECT_EQ(allocator, Resources().allocator);
  void* block = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_alloc(found[0], 4096, &block));
  cudaPointerAttributes attributes = {};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, block), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  GCAP_EXPECT_OK(gcap_allocator_free(found[0], block));
  for (gcap_memory_kind_t kind : {GCAP_MEMORY_HOST, static_cast<gcap_memory_kind_t>(9)}) {
    allocator = found[0];
    GCAP_EXPECT_FAILS(gcap_runtime_get_allocator(runtime_, kind, &allocator), GCAP_INVALID_ARGUMENT,
                      "a runtime allocates device and pinned memory");
    EXPECT_EQ(allocator, nullptr);
  }
}

}  // namespace
