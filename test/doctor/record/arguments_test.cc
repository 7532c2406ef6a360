// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What is written of the arguments of calls: streams, events, modes, copies and the memory in them; and of stacks.
#include <alloca.h>
#include <gtest/gtest.h>
#include <string.h>

#include <map>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "test/doctor/record/program.h"

namespace {

void* const kStream = Handle(0x1000);
void* const kGraph = Handle(0x3000);
void* const kDevice = Handle(0x700000000000);

std::string StreamOf(const Recorded& recorded, const gcap_doctor_event_call_t& call) {
  return call.stream == GCAP_DOCTOR_NONE ? "none" : recorded.events->streams[call.stream].what;
}

void InCapture(const std::function<void()>& work) {
  Begin(kStream);
  work();
  End(kStream, kGraph);
}

// --- Streams ---------------------------------------------------------------------------------------------------------

TEST(RecordedStream, SaysWhatItIs) {
  Recorded recorded = Record([] {
    auto create = [](void* handle, unsigned flags) {
      struct {
        void** stream;
        unsigned flags;
      } arguments = {&handle, flags};
      const uint32_t correlation = fake.enter(124, "cuStreamCreate", &arguments);
      fake.stream(GCAP_DOCTOR_CUPTI_STREAM_CREATED, handle);
      fake.exit(124, "cuStreamCreate", &arguments, correlation, 0, nullptr);
    };
    create(kStream, 1);
    create(Handle(0x1100), 0);
    InCapture([] {
      void* streams[] = {Handle(0x1100), nullptr, Handle(1), Handle(2), Handle(0x1200)};
      for (void*& stream : streams) fake.call(126, "cuStreamSynchronize", &stream, 0);
      fake.call(440, "cuStreamSynchronize_ptsz", &streams[1], 0);
    });
  });
  EXPECT_EQ(StreamOf(recorded, recorded.Call("cuStreamBeginCapture")), "nonblocking");
  const auto calls = recorded.Calls("cuStreamSynchronize");
  ASSERT_EQ(calls.size(), 6u) << recorded.text;
  EXPECT_EQ(StreamOf(recorded, *calls[0]), "blocking");
  EXPECT_EQ(StreamOf(recorded, *calls[1]), "legacy");
  EXPECT_EQ(calls[1]->stream, calls[2]->stream);
  EXPECT_EQ(StreamOf(recorded, *calls[3]), "per_thread");
  EXPECT_EQ(StreamOf(recorded, *calls[4]), "");  // made before the recorder looked
  EXPECT_EQ(StreamOf(recorded, *calls[5]), "per_thread");
  EXPECT_EQ(calls[3]->stream, calls[5]->stream);
}

TEST(RecordedStream, OfAThreadIsNotThatOfAnother) {
  Recorded recorded = Record([] {
    InCapture([] {
      Synchronize(Handle(2));
      std::thread([] { Synchronize(Handle(2)); }).join();
      Synchronize(Handle(2));
    });
  });
  const auto calls = recorded.Calls("cuStreamSynchronize");
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_NE(calls[0]->stream, calls[1]->stream);
  EXPECT_EQ(calls[0]->stream, calls[2]->stream);
}

TEST(RecordedStream, MadeAgainIsAnother) {
  Recorded recorded = Record([] {
    Begin(kStream);
    Synchronize(Handle(0x1100));
    fake.stream(GCAP_DOCTOR_CUPTI_STREAM_DESTROY, Handle(0x1100));
    fake.stream(GCAP_DOCTOR_CUPTI_STREAM_CREATED, Handle(0x1100));
    Synchronize(Handle(0x1100));
    Synchronize(Handle(0x1100));
    End(kStream, kGraph);
  });
  const auto calls = recorded.Calls("cuStreamSynchronize");
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_NE(calls[0]->stream, calls[1]->stream);
  EXPECT_EQ(calls[1]->stream, calls[2]->stream);
}

TEST(RecordedStream, FirstUsedByManyThreadsAtOnceIsOne) {
  Recorded recorded = Record([] {
    InCapture([] {
      std::vector<std::thread> threads;
      for (int i = 0; i < 8; ++i) {
        threads.emplace_back([] {
          for (uintptr_t j = 0; j < 100; ++j) Synchronize(Handle(0x100000 + j));
        });
      }
      for (std::thread& thread : threads) thread.join();
    });
  });
  EXPECT_EQ(recorded.Calls("cuStreamSynchronize").size(), 800u);
  EXPECT_EQ(recorded.events->num_streams, 101u);
}

TEST(RecordedStream, IsThatOfALaunchsConfiguration) {
  Recorded recorded = Record([] {
    InCapture([] {
      char config[56] = {};
      memcpy(config + 32, &kStream, sizeof(kStream));
      const void* arguments[] = {config, nullptr, nullptr, nullptr};
      fake.call(652, "cuLaunchKernelEx", arguments, 0);
      arguments[0] = nullptr;
      fake.call(652, "cuLaunchKernelEx", arguments, 1);
    });
  });
  const auto calls = recorded.Calls("cuLaunchKernelEx");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0]->stream, recorded.Call("cuStreamBeginCapture").stream);
  EXPECT_EQ(calls[1]->stream, GCAP_DOCTOR_NONE);
}

// --- Events and modes ------------------------------------------------------------------------------------------------

TEST(RecordedEvent, IsTheSameInRecordAndWaitAndAnotherWhenMadeAgain) {
  Recorded recorded = Record([] {
    InCapture([] {
      void* event = Handle(0x8000);
      void* out = &event;
      const void* record[] = {event, kStream};
      const void* wait[] = {Handle(0x1100), event, nullptr};
      fake.call(119, "cuEventRecord", record, 0);
      fake.call(295, "cuStreamWaitEvent", wait, 0);
      fake.call(118, "cuEventCreate", &out, 0);
      fake.call(119, "cuEventRecord", record, 0);
    });
  });
  const auto records = recorded.Calls("cuEventRecord");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0]->event, recorded.Call("cuStreamWaitEvent").event);
  EXPECT_NE(records[0]->event, records[1]->event);
  EXPECT_EQ(records[1]->event, recorded.Call("cuEventCreate").event);
}

TEST(RecordedMode, OfAnExchangeIsTheOneChangedTo) {
  Recorded recorded = Record([] {
    int mode = 2;
    int* at = &mode;
    const uint32_t correlation = fake.enter(541, "cuThreadExchangeStreamCaptureMode", &at);
    mode = 0;  // the driver gives the one before
    fake.exit(541, "cuThreadExchangeStreamCaptureMode", &at, correlation, 0, nullptr);
    Begin(kStream, 2);
  });
  EXPECT_EQ(recorded.Call("cuThreadExchangeStreamCaptureMode").mode, GCAP_DOCTOR_MODE_RELAXED);
  EXPECT_EQ(recorded.Call("cuStreamBeginCapture").mode, GCAP_DOCTOR_MODE_RELAXED);
}

// --- Copies ----------------------------------------------------------------------------------------------------------

void CopyToDevice(const void* from, size_t bytes) {
  const void* arguments[] = {kDevice, from, reinterpret_cast<void*>(bytes), kStream};
  fake.call(277, "cuMemcpyHtoDAsync_v2", arguments, 0);
}

TEST(RecordedCopy, SaysWhatTheHostsMemoryIs) {
  static char pageable[64], pinned[64], registered[64], managed[64];
  Recorded recorded = Record([] {
    void* address = pinned;
    const void* allocate[] = {&address, reinterpret_cast<void*>(64)};
    fake.call(39, "cuMemHostAlloc", allocate, 0);
    const void* enroll[] = {registered, reinterpret_cast<void*>(64), nullptr};
    fake.call(379, "cuMemHostRegister_v2", enroll, 0);
    void* managed_address = managed;
    const void* manage[] = {&managed_address, reinterpret_cast<void*>(64)};
    fake.call(371, "cuMemAllocManaged", manage, 0);
    InCapture([] {
      char stack[64];
      size_t bytes = 8;  // different ones: calls that are the same are counted
      for (const char* from : {pageable, pinned, pinned + 63, registered, managed, stack}) CopyToDevice(from, bytes++);
    });
    void* unpin = pinned;
    fake.call(38, "cuMemFreeHost", &unpin, 0);
    fake.call(302, "cuMemHostUnregister", enroll, 713);  // it failed: still pinned
    void* unmanage = managed;
    fake.call(245, "cuMemFree_v2", &unmanage, 0);
    InCapture([] {
      for (const char* from : {pinned, registered, managed}) CopyToDevice(from, 8);
    });
  });
  const auto calls = recorded.Calls("cuMemcpyHtoDAsync");
  ASSERT_EQ(calls.size(), 9u) << recorded.text;
  const gcap_doctor_event_host_t expected[] = {
      GCAP_DOCTOR_HOST_PAGEABLE, GCAP_DOCTOR_HOST_PINNED, GCAP_DOCTOR_HOST_PINNED,
      GCAP_DOCTOR_HOST_PINNED,   GCAP_DOCTOR_HOST_PINNED, GCAP_DOCTOR_HOST_STACK,
      GCAP_DOCTOR_HOST_PAGEABLE, GCAP_DOCTOR_HOST_PINNED, GCAP_DOCTOR_HOST_PAGEABLE};
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(calls[i]->host, expected[i]) << i;
    EXPECT_STREQ(calls[i]->copy, "htod");
    EXPECT_EQ(calls[i]->bytes, i < 6 ? 8 + i : 8);
  }
}

TEST(RecordedCopy, SaysItsDirection) {
  static char pageable[64];
  Recorded recorded = Record([] {
    InCapture([] {
      const void* to_host[] = {pageable, kDevice, reinterpret_cast<void*>(16)};
      fake.call(278, "cuMemcpyDtoH_v2", to_host, 0);
      const void* between[] = {kDevice, kDevice, reinterpret_cast<void*>(24), kStream};
      fake.call(281, "cuMemcpyDtoDAsync_v2", between, 0);
      fake.call(306, "cuMemcpyAsync", between, 0);
      char stack[8];
      const void* any[] = {kDevice, stack, reinterpret_cast<void*>(8), kStream};
      fake.call(306, "cuMemcpyAsync", any, 0);
      const void* fill[] = {kDevice, nullptr, reinterpret_cast<void*>(10), kStream};
      fake.call(220, "cuMemsetD32Async", fill, 0);
    });
  });
  EXPECT_STREQ(recorded.Call("cuMemcpyDtoH").copy, "dtoh");
  EXPECT_EQ(recorded.Call("cuMemcpyDtoH").host, GCAP_DOCTOR_HOST_PAGEABLE);
  EXPECT_EQ(recorded.Call("cuMemcpyDtoH").bytes, 16u);
  EXPECT_STREQ(recorded.Call("cuMemcpyDtoDAsync").copy, "dtod");
  EXPECT_EQ(recorded.Call("cuMemcpyDtoDAsync").host, GCAP_DOCTOR_HOST_UNKNOWN);
  const auto any = recorded.Calls("cuMemcpyAsync");
  ASSERT_EQ(any.size(), 2u);
  EXPECT_STREQ(any[0]->copy, "default");
  EXPECT_EQ(any[0]->host, GCAP_DOCTOR_HOST_UNKNOWN);
  EXPECT_EQ(any[1]->host, GCAP_DOCTOR_HOST_STACK);
  EXPECT_EQ(recorded.Call("cuMemsetD32Async").bytes, 40u);
  EXPECT_EQ(recorded.Call("cuMemsetD32Async").copy, nullptr);
}

TEST(RecordedCopy, OfRowsIsReadFromItsDescription) {
  static char pageable[64];
  Recorded recorded = Record([] {
    InCapture([] {
      // CUDA_MEMCPY2D: words of eight bytes.
      const void* rows[16] = {};
      const int host = 1, device = 2, array = 3, unified = 4;
      memcpy(&rows[2], &host, sizeof(host));
      rows[3] = pageable;
      memcpy(&rows[9], &array, sizeof(array));
      rows[14] = reinterpret_cast<void*>(8);
      rows[15] = reinterpret_cast<void*>(4);
      const void* arguments[] = {rows, kStream};
      fake.call(289, "cuMemcpy2DAsync_v2", arguments, 0);
      const void* planes[25] = {};
      memcpy(&planes[4], &device, sizeof(device));
      memcpy(&planes[15], &host, sizeof(host));
      planes[16] = pageable;
      for (int i = 22; i < 25; ++i) planes[i] = reinterpret_cast<void*>(3);
      arguments[0] = planes;
      fake.call(291, "cuMemcpy3DAsync_v2", arguments, 0);
      memcpy(&planes[15], &unified, sizeof(unified));
      fake.call(290, "cuMemcpy3D_v2", arguments, 0);
    });
  });
  EXPECT_STREQ(recorded.Call("cuMemcpy2DAsync").copy, "htod");
  EXPECT_EQ(recorded.Call("cuMemcpy2DAsync").bytes, 32u);
  EXPECT_EQ(recorded.Call("cuMemcpy2DAsync").host, GCAP_DOCTOR_HOST_PAGEABLE);
  EXPECT_STREQ(recorded.Call("cuMemcpy3DAsync").copy, "dtoh");
  EXPECT_EQ(recorded.Call("cuMemcpy3DAsync").bytes, 27u);
  EXPECT_STREQ(recorded.Call("cuMemcpy3D").copy, "default");
  EXPECT_EQ(recorded.Call("cuMemcpy3D").host, GCAP_DOCTOR_HOST_UNKNOWN);
}

// --- Stacks ----------------------------------------------------------------------------------------------------------

TEST(RecordedStack, IsWrittenOnceForEachPlace) {
  Recorded recorded = Record([] {
    InCapture([] {
      for (int i = 0; i < 50; ++i) Wait(kStream);
      Wait(kStream);
    });
  });
  const auto calls = recorded.Calls("cuStreamWaitEvent");
  ASSERT_EQ(calls.size(), 51u);
  std::set<uint32_t> stacks;
  for (const auto* call : calls) stacks.insert(call->stack);
  EXPECT_EQ(stacks.size(), 2u);
  EXPECT_EQ(stacks.count(GCAP_DOCTOR_NONE), 0u);
  const gcap_doctor_event_stack_t& stack = recorded.events->stacks[calls[0]->stack];
  ASSERT_GT(stack.num_c, 2u);
  EXPECT_EQ(stack.why, nullptr);  // no interpreter here
  // The recorder's own frames are not the program's.
  const gcap_doctor_event_frame_t& inner = recorded.events->frames[stack.c[0]];
  EXPECT_NE(std::string(inner.module).find("libfake_cupti.so"), std::string::npos) << inner.module;
  std::set<std::string> modules;
  for (uint32_t i = 0; i < stack.num_c; ++i) modules.insert(recorded.events->frames[stack.c[i]].module);
  bool has_program = false;
  for (const std::string& module : modules) has_program |= module.find("arguments_test") != std::string::npos;
  EXPECT_TRUE(has_program);
}

// Which functions are between the test and the driver: the digits of a number to the base of three, innermost last.
template <int kFunction>
__attribute__((noinline)) void Through(int path, int left, size_t bytes);

void Deeper(int path, int left, size_t bytes) {
  if (left == 0) return Wait(kStream);
  switch (path % 3) {
    case 0: return Through<0>(path / 3, left - 1, bytes);
    case 1: return Through<1>(path / 3, left - 1, bytes);
    default: return Through<2>(path / 3, left - 1, bytes);
  }
}

// Frames have another size each time, so that old return addresses stay behind in others.
template <int kFunction>
void Through(int path, int left, size_t bytes) {
  auto* room = static_cast<volatile char*>(alloca(16 + bytes % 3 * 64 + kFunction));
  room[0] = static_cast<char>(path);
  Deeper(path, left, bytes / 3);
  room[1] = room[0];
}

TEST(RecordedStack, IsThatOfItsPathWhateverTheStackWasBefore) {
  constexpr int kDepth = 4, kPaths = 81, kCalls = 3000;
  std::mt19937 random(11);
  std::vector<std::pair<int, size_t>> calls;
  for (int i = 0; i < kCalls; ++i) calls.emplace_back(random() % kPaths, random() % kPaths);
  Recorded recorded = Record([&calls] {
    InCapture([&calls] {
      for (const auto& [path, bytes] : calls) Deeper(path, kDepth, bytes);
    });
  });
  const auto made = recorded.Calls("cuStreamWaitEvent");
  ASSERT_EQ(made.size(), calls.size());
  std::map<int, uint32_t> stacks;
  std::set<uint32_t> different;
  for (size_t i = 0; i < made.size(); ++i) {
    const uint32_t stack = stacks.emplace(calls[i].first, made[i]->stack).first->second;
    ASSERT_EQ(made[i]->stack, stack) << "call " << i << ", path " << calls[i].first;
    different.insert(stack);
  }
  EXPECT_EQ(different.size(), stacks.size());
}

TEST(RecordedStack, OfManyThreadsIsDefinedBeforeItIsUsed) {
  // Threads that meet the same new places at the same time: the reader refuses a stack or frame that is not defined.
  Recorded recorded = Record([] {
    InCapture([] {
      std::vector<std::thread> threads;
      for (int i = 0; i < 8; ++i) {
        threads.emplace_back([] {
          for (int j = 0; j < 50; ++j) {
            if (j % 2 == 0) Synchronize(kStream);
            if (j % 3 == 0) Synchronize(kStream);
            if (j % 5 == 0) Launch(kStream, kGraph, nullptr);
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
    });
  });
  EXPECT_EQ(recorded.Count("cuStreamSynchronize"), 8u * (25 + 17));
  for (const auto* call : recorded.Calls("cuLaunchKernel")) EXPECT_NE(call->stack, GCAP_DOCTOR_NONE);
}

}  // namespace
