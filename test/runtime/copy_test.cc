// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Copies for a host: between all kinds of memory, with and without a stream, in a capture, and what is refused.

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/base/device_work.h"
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

constexpr gcap_memory_t kDevice = {GCAP_MEMORY_DEVICE, 0};
constexpr gcap_memory_t kHost = {GCAP_MEMORY_HOST, 0};
constexpr gcap_memory_t kPinned = {GCAP_MEMORY_PINNED, 0};

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

gcap_tensor_t Tensor(void* data, int64_t count) { return {data, GCAP_DTYPE_F32, 1, {count}}; }

class RuntimeCopy : public gcap::testing::RuntimeTest {
 protected:
  gcap_status_t CopyOne(const gcap_tensor_t& src, gcap_memory_t from, const gcap_tensor_t& dst, gcap_memory_t to,
                        gcap_stream_t* stream = nullptr) {
    const gcap_copy_t copy = {&src, from, &dst, to, stream};
    return gcap_runtime_copy_tensors(runtime_, &copy, 1);
  }
};

TEST_F(RuntimeCopy, GoesBetweenTheDeviceAndAllKindsOfMemory) {
  Create(GraphOptions());
  const Floats values = {1, -2, 3.5f, 0};
  Floats host = values, back(4);
  PinnedFloats pinned(Floats(4)), pinned_back(Floats(4));
  DeviceFloats a(Floats(4)), b(Floats(4));
  const gcap_tensor_t host_tensor = Tensor(host.data(), 4), back_tensor = Tensor(back.data(), 4);
  const gcap_tensor_t pinned_tensor = Tensor(pinned.get(), 4), a_tensor = Tensor(a.get(), 4);
  const gcap_tensor_t b_tensor = Tensor(b.get(), 4), pinned_back_tensor = Tensor(pinned_back.get(), 4);
  GCAP_EXPECT_OK(CopyOne(host_tensor, kHost, a_tensor, kDevice));
  GCAP_EXPECT_OK(CopyOne(a_tensor, kDevice, pinned_tensor, kPinned));
  GCAP_EXPECT_OK(CopyOne(pinned_tensor, kPinned, b_tensor, kDevice));
  EXPECT_EQ(pinned.Get(), values);
  GCAP_EXPECT_OK(CopyOne(b_tensor, kDevice, back_tensor, kHost));
  EXPECT_EQ(back, values);
  a.Set({9, 9, 9, 9});
  GCAP_EXPECT_OK(CopyOne(b_tensor, kDevice, a_tensor, kDevice));
  GCAP_EXPECT_OK(CopyOne(a_tensor, kDevice, pinned_back_tensor, kPinned));
  EXPECT_EQ(pinned_back.Get(), values);
}

TEST_F(RuntimeCopy, SaysWhatItCopies) {
  Create(GraphOptions());
  const gcap_memory_t nowhere = {GCAP_MEMORY_DEVICE, 999}, negative = {GCAP_MEMORY_DEVICE, -1};
  const gcap_memory_t no_kind = {static_cast<gcap_memory_kind_t>(7), 0};
  for (gcap_memory_t other : {kDevice, kHost, kPinned}) {
    EXPECT_TRUE(gcap_runtime_can_copy(runtime_, kDevice, other)) << gcap_memory_kind_name(other.kind);
    EXPECT_TRUE(gcap_runtime_can_copy(runtime_, other, kDevice)) << gcap_memory_kind_name(other.kind);
  }
  for (gcap_memory_t other : {nowhere, negative, no_kind}) {
    EXPECT_FALSE(gcap_runtime_can_copy(runtime_, kDevice, other)) << other.kind << ' ' << other.device_id;
    EXPECT_FALSE(gcap_runtime_can_copy(runtime_, other, kDevice)) << other.kind << ' ' << other.device_id;
  }
  EXPECT_FALSE(gcap_runtime_can_copy(runtime_, kHost, kPinned));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

// In the order of its stream, and without a wait: what the host sees is what was there.
TEST_F(RuntimeCopy, InAStreamComesAfterItsEarlierWork) {
  Create(GraphOptions());
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create_stream(runtime_, &stream));
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

// Of a batch some have a stream, each its own, and some are done on return.
TEST_F(RuntimeCopy, ABatchMayHaveAStreamForEachTensor) {
  Create(GraphOptions());
  gcap_stream_t* streams[2];
  for (gcap_stream_t*& stream : streams) GCAP_ASSERT_OK(gcap_runtime_create_stream(runtime_, &stream));
  EXPECT_EQ(gcap_stream_ownership(streams[0]), GCAP_STREAM_OWNED);
  const DeviceFloats x({1, 2, 3, 4});
  const PinnedFloats out(Floats(4));
  std::vector<gcap_tensor_t> src, dst;
  for (int i = 0; i < 4; ++i) {
    src.push_back(Tensor(x.get() + i, 1));
    dst.push_back(Tensor(out.get() + i, 1));
  }
  gcap_stream_t* const order[] = {streams[0], nullptr, streams[1], nullptr};
  std::vector<gcap_copy_t> copies;
  for (int i = 0; i < 4; ++i) copies.push_back({&src[i], kDevice, &dst[i], kPinned, order[i]});
  Gate gates[2];
  for (int i = 0; i < 2; ++i) gates[i].Hold(gcap_stream_handle(streams[i]));
  GCAP_EXPECT_OK(gcap_runtime_copy_tensors(runtime_, copies.data(), copies.size()));
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

// The same struct, checked alike.
TEST_F(RuntimeCopy, OneTensorIsABatchOfOne) {
  Create(GraphOptions());
  Floats host = {1, 2};
  const DeviceFloats x((Floats(2)));
  const gcap_tensor_t src = Tensor(host.data(), 2), dst = Tensor(x.get(), 2), short_dst = Tensor(x.get(), 1);
  const gcap_memory_t no_kind = {static_cast<gcap_memory_kind_t>(7), 0};
  const gcap_copy_t rows[] = {{&src, kHost, &dst, kDevice, nullptr},
                              {&src, kHost, &short_dst, kDevice, nullptr},
                              {&src, no_kind, &dst, kDevice, nullptr},
                              {&src, kHost, &dst, kHost, nullptr},
                              {nullptr, kHost, &dst, kDevice, nullptr}};
  for (const gcap_copy_t& copy : rows) {
    const Outcome one(gcap_runtime_copy_tensors(runtime_, &copy, 1)),
        batch(gcap_runtime_copy_tensors(runtime_, &copy, 1));
    EXPECT_EQ(one.code, batch.code);
    EXPECT_EQ(one.message, batch.message);
    EXPECT_EQ(one.ok(), &copy == rows) << one.message;
  }
}

TEST_F(RuntimeCopy, ReachesEmptyTensorsAndTensorsOfOtherShapes) {
  Create(GraphOptions());
  Floats host = {1, 2, 3, 4, 5, 6};
  DeviceFloats x(Floats(6));
  const gcap_tensor_t matrix = {host.data(), GCAP_DTYPE_F32, 2, {2, 3}};
  GCAP_EXPECT_OK(CopyOne(matrix, kHost, Tensor(x.get(), 6), kDevice));
  EXPECT_EQ(x.Get(), host);
  const gcap_tensor_t empty = {nullptr, GCAP_DTYPE_F32, 2, {0, 3}};
  GCAP_EXPECT_OK(CopyOne(empty, kHost, Tensor(nullptr, 0), kDevice));
  const gcap_tensor_t deep = {x.get(), GCAP_DTYPE_F32, GCAP_MAX_RANK, {1, 1, 1, 1, 1, 1, 3, 2}};
  const Floats other = {6, 5, 4, 3, 2, 1};
  host = other;
  GCAP_EXPECT_OK(CopyOne(matrix, kHost, deep, kDevice));
  EXPECT_EQ(x.Get(), other);
  const bool yes = true;
  bool back = false;
  const gcap_tensor_t byte = {const_cast<bool*>(&yes), GCAP_DTYPE_BOOL, 0, {}};
  const gcap_tensor_t on_device = {x.get(), GCAP_DTYPE_BOOL, 0, {}}, byte_back = {&back, GCAP_DTYPE_BOOL, 0, {}};
  GCAP_EXPECT_OK(CopyOne(byte, kHost, on_device, kDevice));
  GCAP_EXPECT_OK(CopyOne(on_device, kDevice, byte_back, kHost));
  EXPECT_TRUE(back);
}

TEST_F(RuntimeCopy, RefusesTensorsThatAreNotAlikeAndCopiesNothing) {
  Create(GraphOptions());
  Floats host = {7, 7, 7, 7};
  DeviceFloats x({1, 2, 3, 4});
  const gcap_tensor_t good_src = Tensor(host.data(), 4), good_dst = Tensor(x.get(), 4);
  struct Row {
    const char* named;
    gcap_tensor_t src, dst;
    gcap_memory_t to = kDevice;
  };
  const int64_t huge = int64_t{1} << 62;
  const gcap_tensor_t too_large = {host.data(), GCAP_DTYPE_F32, 3, {huge, huge, huge}};
  const gcap_tensor_t too_many = {host.data(), GCAP_DTYPE_F32, 1, {huge}};
  gcap_tensor_t no_type = good_src, no_rank = good_src, high_rank = good_src, integers = good_src;
  no_type.dtype = static_cast<gcap_dtype_t>(99);
  no_rank.rank = -1;
  high_rank.rank = GCAP_MAX_RANK + 1;
  integers.dtype = GCAP_DTYPE_I32;
  const Row rows[] = {
      {"copies[1]: src has 3 elements of f32, dst has 4 of f32", Tensor(host.data(), 3), good_dst},
      {"copies[1]: src has 4 elements of i32, dst has 4 of f32", integers, good_dst},
      {"copies[1]: src has type 99", no_type, good_dst},
      {"copies[1]: src has rank -1, allowed is 0 to 8", no_rank, good_dst},
      {"copies[1]: src has rank 9", high_rank, good_dst},
      {"copies[1]: dimension 0 of dst is -4", good_src, Tensor(x.get(), -4)},
      {"copies[1]: dimension 1 of src", too_large, good_dst},
      {"copies[1]: src has 4611686018427387904 elements of f32, which no memory holds", too_many, good_dst},
      {"copies[1]: the data of src is NULL", Tensor(nullptr, 4), good_dst},
      {"copies[1]: the data of dst is NULL", good_src, Tensor(nullptr, 4)},
      {"does not copy from host memory to pinned memory", good_src, good_dst, kPinned},
      {"from host memory to memory of device 999", good_src, good_dst, {GCAP_MEMORY_DEVICE, 999}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.named);
    const gcap_copy_t copies[] = {{&good_src, kHost, &good_dst, kDevice, nullptr},
                                  {&row.src, kHost, &row.dst, row.to, nullptr}};
    GCAP_EXPECT_FAILS(gcap_runtime_copy_tensors(runtime_, copies, 2), GCAP_INVALID_ARGUMENT, row.named);
  }
  const gcap_copy_t without[] = {{nullptr, kHost, &good_dst, kDevice, nullptr},
                                 {&good_src, kHost, nullptr, kDevice, nullptr}};
  GCAP_EXPECT_FAILS(gcap_runtime_copy_tensors(runtime_, &without[0], 1), GCAP_INVALID_ARGUMENT,
                    "copies[0]: src is NULL");
  GCAP_EXPECT_FAILS(gcap_runtime_copy_tensors(runtime_, &without[1], 1), GCAP_INVALID_ARGUMENT,
                    "copies[0]: dst is NULL");
  EXPECT_EQ(x.Get(), Floats({1, 2, 3, 4}));
}

// --- Order ----------------------------------------------------------------------------------------------------------

// What a run issued, and is held up, is in the copy that came after.
TEST_F(RuntimeCopy, InTheDefaultStreamComesAfterTheRunsOfItsThread) {
  Create(GraphOptions());
  EXPECT_TRUE(RuntimeInfo(runtime_).copies_in_default_stream);
  DeviceFloats x({1, 2}), y({0, 0});
  Gate gate;
  const auto hold_and_copy = [&](const gcap_run_resources_t& run) {
    gate.Hold(gcap_stream_handle(run.stream));
    return Copy(run, x, y);
  };
  EXPECT_TRUE(Run(GCAP_GRAPH_ID_NONE, hold_and_copy, /*synchronize=*/false).ok());
  std::thread opener([&gate] {
    std::this_thread::sleep_for(gcap::testing::kPatience);
    gate.Open();
  });
  Floats out(2);
  GCAP_EXPECT_OK(CopyOne(Tensor(y.get(), 2), kDevice, Tensor(out.data(), 2), kHost));
  opener.join();
  EXPECT_EQ(out, Floats({1, 2}));
}

// The copy is done while the run cannot go on: it does not wait for it.
TEST_F(RuntimeCopy, OutsideTheDefaultStreamDoesNotWaitForRuns) {
  gcap_options_t options = GraphOptions();
  options.do_copy_in_default_stream = false;
  Create(options);
  EXPECT_FALSE(RuntimeInfo(runtime_).copies_in_default_stream);
  DeviceFloats x({1, 2}), y({0, 0}), other({3, 4});
  Gate gate;
  const auto hold_and_copy = [&](const gcap_run_resources_t& run) {
    gate.Hold(gcap_stream_handle(run.stream));
    return Copy(run, x, y);
  };
  EXPECT_TRUE(Run(GCAP_GRAPH_ID_NONE, hold_and_copy, /*synchronize=*/false).ok());
  Floats out(2);
  GCAP_EXPECT_OK(CopyOne(Tensor(other.get(), 2), kDevice, Tensor(out.data(), 2), kHost));
  EXPECT_EQ(out, Floats({3, 4}));
  gate.Open();
  GCAP_EXPECT_OK(gcap_runtime_synchronize(runtime_));  // the host orders the copy after the run
  GCAP_EXPECT_OK(CopyOne(Tensor(y.get(), 2), kDevice, Tensor(out.data(), 2), kHost));
  EXPECT_EQ(out, Floats({1, 2}));
}

// --- Captures -------------------------------------------------------------------------------------------------------

TEST_F(RuntimeCopy, OfPinnedMemoryInARunIsRepeatedByEachReplay) {
  Create(GraphOptions(1));
  PinnedFloats in({0, 0}), out({0, 0});
  DeviceFloats x({0, 0});
  const auto there_and_back = [&](const gcap_run_resources_t& run) {
    const gcap_tensor_t from = Tensor(in.get(), 2), on_device = Tensor(x.get(), 2), to = Tensor(out.get(), 2);
    const gcap_copy_t copies[] = {{&from, kPinned, &on_device, kDevice, run.stream},
                                  {&on_device, kDevice, &to, kPinned, run.stream}};
    return gcap_runtime_copy_tensors(runtime_, copies, 2);
  };
  for (float round = 1; round <= 4; ++round) {
    in.get()[0] = round;
    in.get()[1] = -round;
    EXPECT_TRUE(round <= 2 ? Run(0, there_and_back).ok() : Replay(0)) << round;
    EXPECT_EQ(out.Get(), Floats({round, -round}));
  }
}

// Also where the copy calls it pinned.
TEST_F(RuntimeCopy, OfPageableMemoryIsRefusedInACaptureAndNotInAnEagerRun) {
  for (gcap_memory_t named : {kHost, kPinned}) {
    SCOPED_TRACE(gcap_memory_kind_name(named.kind));
    Create(GraphOptions(1));
    Floats host = {1, 2};
    DeviceFloats x({0, 0});
    const auto copy = [&](const gcap_run_resources_t& run) {
      return CopyOne(Tensor(host.data(), 2), named, Tensor(x.get(), 2), kDevice, run.stream);
    };
    EXPECT_TRUE(Run(0, copy).ok());
    EXPECT_EQ(x.Get(), host);
    const Outcome captured = Run(0, copy);
    EXPECT_EQ(captured.code, GCAP_CAPTURE_INVALIDATED);
    EXPECT_TRUE(captured.Names("copies[0]: src is pageable host memory")) << captured.message;
    EXPECT_TRUE(captured.Names("use pinned memory")) << captured.message;
    const auto back = [&](const gcap_run_resources_t& run) {
      return CopyOne(Tensor(x.get(), 2), kDevice, Tensor(host.data(), 2), named, run.stream);
    };
    EXPECT_TRUE(Run(1, back).ok());
    const Outcome captured_back = Run(1, back);
    EXPECT_TRUE(captured_back.Names("copies[0]: dst is pageable host memory")) << captured_back.message;
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime_));
    runtime_ = nullptr;
  }
}

// The graph would lack the copy, even if the work ignores the refusal.
TEST_F(RuntimeCopy, WithoutAStreamOfTheCaptureIsRefusedAndFailsTheCapture) {
  Create(GraphOptions(1));
  gcap_stream_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create_stream(runtime_, &other));
  DeviceFloats x({1, 2}), y({0, 0});
  struct Row {
    gcap_stream_t* stream;
    const char* named;
  };
  const Row rows[] = {{nullptr, "copies[0] has no stream"}, {other, "is not in the capture of this thread"}};
  int id = 0;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.named);
    const auto copy = [&](const gcap_run_resources_t&) {
      gcap_status_ignore(  // the scope knows
          CopyOne(Tensor(x.get(), 2), kDevice, Tensor(y.get(), 2), kDevice, row.stream));
      return gcap_status_t(nullptr);
    };
    EXPECT_TRUE(Run(id, copy).ok());
    const Outcome captured = Run(id, copy);
    EXPECT_EQ(captured.code, GCAP_CAPTURE_INVALIDATED);
    EXPECT_TRUE(captured.Names(row.named)) << captured.message;
    ++id;
  }
  GCAP_EXPECT_OK(gcap_stream_destroy(other));
}

// A capture that was begun without gcap bakes the address just as well.
TEST_F(RuntimeCopy, OfPageableMemoryIsRefusedInAForeignCapture) {
  Create(GraphOptions());
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create_stream(runtime_, &stream));
  Floats host = {1, 2};
  DeviceFloats x({0, 0});
  const cudaStream_t handle = gcap_stream_handle(stream);
  ASSERT_EQ(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  GCAP_EXPECT_FAILS(CopyOne(Tensor(host.data(), 2), kHost, Tensor(x.get(), 2), kDevice, stream),
                    GCAP_FAILED_PRECONDITION, "src is pageable host memory");
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
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_create_stream(runtime_, &stream));
  EXPECT_EQ(gcap_stream_handle(stream), user.get());
  EXPECT_EQ(gcap_stream_ownership(stream), GCAP_STREAM_USER);
  EXPECT_NE(stream, Resources().stream);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  Floats host = {5, 6};
  DeviceFloats x({0, 0});
  GCAP_EXPECT_OK(CopyOne(Tensor(host.data(), 2), kHost, Tensor(x.get(), 2), kDevice));
  EXPECT_EQ(x.Get(), host);
  GCAP_EXPECT_OK(gcap_runtime_destroy(runtime_));  // before its stream
  runtime_ = nullptr;
}

TEST_F(RuntimeCopy, AllocatorsAreFoundByTheKindOfMemory) {
  Create(GraphOptions());
  gcap_allocator_t *device = nullptr, *pinned = nullptr, *again = nullptr;
  GCAP_ASSERT_OK(gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_DEVICE, &device));
  EXPECT_EQ(device, Resources().allocator);
  GCAP_ASSERT_OK(gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_PINNED, &pinned));
  EXPECT_EQ(StatsOf(pinned).device_id, -1);
  GCAP_ASSERT_OK(gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_PINNED, &again));
  EXPECT_EQ(again, pinned);
  void* block = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_alloc(pinned, 4096, &block));
  cudaPointerAttributes attributes = {};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, block), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  GCAP_EXPECT_OK(gcap_allocator_free(pinned, block));
  for (gcap_memory_kind_t kind : {GCAP_MEMORY_HOST, static_cast<gcap_memory_kind_t>(9)}) {
    again = pinned;
    GCAP_EXPECT_FAILS(gcap_runtime_get_allocator(runtime_, kind, &again), GCAP_INVALID_ARGUMENT,
                      "a runtime allocates device and pinned memory");
    EXPECT_EQ(again, nullptr);
  }
}

// Threads that ask at once get one allocator.
TEST_F(RuntimeCopy, PinnedMemoryHasOneAllocatorForAllThreads) {
  Create(GraphOptions());
  constexpr size_t kThreads = 8;
  std::vector<gcap_allocator_t*> found(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back(
        [this, &found, i] { GCAP_EXPECT_OK(gcap_runtime_get_allocator(runtime_, GCAP_MEMORY_PINNED, &found[i])); });
  }
  for (std::thread& thread : threads) thread.join();
  for (gcap_allocator_t* allocator : found) EXPECT_EQ(allocator, found[0]);
}

}  // namespace
