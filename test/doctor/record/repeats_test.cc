// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Calls that a program makes again and again beside a capture are counted: what is between the first and the last one
// of a kind changes no capture, and nothing that does is counted.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "test/doctor/record/program.h"

namespace {

void* const kStream = Handle(0x1000);
void* const kOther = Handle(0x2000);
void* const kGraph = Handle(0x3000);

void Query(uintptr_t event, int result = 600) {
  void* handle = Handle(event);
  fake.call(120, "cuEventQuery", &handle, result);
}

// A launch on a stream that does not capture.
void LaunchBeside(const char* kernel = "kernel") { Launch(kOther, nullptr, nullptr, nullptr, kernel); }

// Runs it while a capture is open.
Recorded InCapture(const std::function<void()>& work) {
  return Record([&work] {
    Begin(kStream);
    work();
    End(kStream, kGraph);
  });
}

void ExpectCounted(const gcap_doctor_event_call_t& call, uint64_t number, uint64_t count) {
  EXPECT_EQ(call.number, number);
  EXPECT_EQ(call.count, count);
}

TEST(Repeats, LaunchesBesideACaptureAreAFewLines) {
  constexpr uint64_t kLaunches = 100000;
  Recorded recorded = InCapture([] {
    for (uint64_t i = 0; i < kLaunches; ++i) LaunchBeside();
  });
  const auto calls = recorded.Calls("cuLaunchKernel");
  EXPECT_EQ(recorded.Count("cuLaunchKernel"), kLaunches);
  ASSERT_GE(calls.size(), 2u);
  ExpectCounted(*calls.front(), 2, 1);
  EXPECT_EQ(calls.back()->number, kLaunches + 1);
  EXPECT_LT(recorded.text.size(), 8u << 10);  // 10 MB of lines of their own
  EXPECT_FALSE(recorded.events->reached_limit);
  EXPECT_STREQ(calls.back()->kernel, "kernel");
  EXPECT_EQ(calls.back()->stack, calls.front()->stack);
  EXPECT_LT(calls.front()->end_ns, calls.back()->end_ns);
}

TEST(Repeats, TheTimesOfTheFirstAndOfTheLastOneAreKept) {
  Recorded recorded = InCapture([] {
    for (int i = 0; i < 50; ++i) LaunchBeside();
  });
  const auto calls = recorded.Calls("cuLaunchKernel");
  ASSERT_EQ(calls.size(), 2u) << recorded.text;
  ExpectCounted(*calls[0], 2, 1);
  ExpectCounted(*calls[1], 51, 49);
  EXPECT_LE(calls[0]->end_ns, calls[1]->since_ns);
  EXPECT_LT(calls[1]->since_ns, calls[1]->start_ns);
  EXPECT_LE(calls[1]->end_ns, recorded.Call("cuStreamEndCapture").start_ns);
}

TEST(Repeats, ALoopMayHaveSeveralCalls) {
  Recorded recorded = InCapture([] {
    for (int i = 0; i < 100; ++i) {
      LaunchBeside("first");
      Query(0x9000);
      LaunchBeside("second");
    }
  });
  EXPECT_EQ(recorded.Count("cuLaunchKernel"), 200u);
  EXPECT_EQ(recorded.Calls("cuLaunchKernel").size(), 4u);
  const auto queries = recorded.Calls("cuEventQuery");
  ASSERT_EQ(queries.size(), 2u);
  ExpectCounted(*queries[0], 3, 1);
  ExpectCounted(*queries[1], 3 * 99 + 3, 99);
  EXPECT_EQ(queries[1]->result, 600);
}

TEST(Repeats, AnythingElseBeginsThemAnew) {
  Recorded recorded = InCapture([] {
    uint64_t node = 1;
    for (int i = 0; i < 10; ++i) LaunchBeside();
    Launch(kStream, kGraph, &node);
    for (int i = 0; i < 10; ++i) LaunchBeside();
    Synchronize(kOther, 900);
    for (int i = 0; i < 10; ++i) LaunchBeside();
  });
  const auto calls = recorded.Calls("cuLaunchKernel");
  ASSERT_EQ(calls.size(), 7u) << recorded.text;
  ExpectCounted(*calls[1], 11, 9);
  ExpectCounted(*calls[2], 12, 1);  // the node
  ExpectCounted(*calls[3], 13, 1);
  ExpectCounted(*calls[4], 22, 9);
  EXPECT_EQ(recorded.Call("cuStreamSynchronize").number, 23u);
  ExpectCounted(*calls[5], 24, 1);
  ExpectCounted(*calls[6], 33, 9);
}

TEST(Repeats, WhatMatchesInPartIsAnotherCall) {
  Recorded recorded = InCapture([] {
    for (int i = 0; i < 3; ++i) Query(0x9000 + 0x100 * static_cast<uintptr_t>(i));  // events
    for (int i = 0; i < 3; ++i) Query(0x9000, 0);                                   // a result
    for (const char* kernel : {"a", "b", "c"}) LaunchBeside(kernel);
  });
  EXPECT_EQ(recorded.Calls("cuEventQuery").size(), 5u) << recorded.text;
  EXPECT_EQ(recorded.Count("cuEventQuery"), 6u);
  EXPECT_EQ(recorded.Calls("cuLaunchKernel").size(), 3u);
}

// Each has a line: a failure, a wait that may take a stream into a capture, a node, an answer that a capture is broken.
TEST(Repeats, WhatChangesACaptureIsNotCounted) {
  Recorded recorded = InCapture([] {
    for (int i = 0; i < 5; ++i) Synchronize(kOther, 900);
    for (int i = 0; i < 5; ++i) Wait(kOther);
    for (uint64_t i = 0; i < 5; ++i) Launch(kStream, kGraph, &i);
    int status = 2;
    const void* arguments[] = {kStream, &status};
    for (int i = 0; i < 5; ++i) fake.call(499, "cuStreamIsCapturing", arguments, 0);
  });
  for (const char* function : {"cuStreamSynchronize", "cuStreamWaitEvent", "cuLaunchKernel", "cuStreamIsCapturing"}) {
    EXPECT_EQ(recorded.Calls(function).size(), 5u) << function;
  }
}

// Of another thread's loop no count reaches across the end of a capture.
TEST(Repeats, NoCountReachesAcrossTheEndOfACapture) {
  static std::atomic<int> calls;
  static std::atomic<bool> is_over;
  Recorded recorded = Record([] {
    Begin(kStream);
    std::thread polls([] {
      for (; !is_over; ++calls) Query(0x9000);
    });
    const auto await_ten = [] {
      const int before = calls;
      while (calls < before + 10) std::this_thread::yield();
    };
    void* graph = kGraph;
    for (int i = 0; i < 20; ++i) {
      Begin(kOther);
      await_ten();
      const struct {
        void* stream;
        void** graph;
      } arguments = {kOther, &graph};
      Within(497, "cuStreamEndCapture", &arguments, 0, await_ten);  // the other thread's calls go on in it
    }
    is_over = true;
    polls.join();
    End(kStream, kGraph);
  });
  const gcap_doctor_recording_t& events = *recorded.events;
  std::vector<uint64_t> changes;
  for (size_t i = 0; i < events.num_calls; ++i) {
    if (std::string(events.calls[i].function) != "cuEventQuery") changes.push_back(events.calls[i].number);
  }
  for (const auto* call : recorded.Calls("cuEventQuery")) {
    const uint64_t first = call->number - call->count + 1;  // there are no other calls between them
    for (uint64_t change : changes) {
      EXPECT_TRUE(change < first || change > call->number) << change << " within " << first << " to " << call->number;
    }
  }
  EXPECT_GE(recorded.Count("cuEventQuery"), 300u);
}

// Its count is held for a second at most.
TEST(Repeats, ACrashLosesNoMoreThanASecond) {
  Recorded recorded = Record([] {
    Begin(kStream);
    for (int i = 0; i < 20; ++i) {
      LaunchBeside();
      usleep(100000);
    }
    raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(recorded.status));
  EXPECT_GE(recorded.Count("cuLaunchKernel"), 9u);
}

TEST(Repeats, OfMoreKindsThanAreRememberedAllAreThere) {
  constexpr int kKinds = 200;
  Recorded recorded = InCapture([] {
    for (int round = 0; round < 3; ++round) {
      for (uintptr_t i = 0; i < kKinds; ++i) {
        for (int k = 0; k < 3; ++k) Query(0x10000 + 0x100 * i);
      }
    }
  });
  EXPECT_EQ(recorded.Count("cuEventQuery"), 9u * kKinds);
  EXPECT_EQ(recorded.Calls("cuEventQuery").size(), 6u * kKinds);
}

// An audit's lines name calls of memory by their numbers.
TEST(Repeats, CallsOfMemoryAreCountedOnlyWithoutAnAudit) {
  const auto allocate = [] {
    Begin(kStream);
    for (int i = 0; i < 10; ++i) {
      void* address = Handle(0x700000);
      const void* arguments[] = {&address, reinterpret_cast<void*>(64)};
      fake.call(243, "cuMemAlloc_v2", arguments, 0);
    }
    End(kStream, kGraph);
  };
  EXPECT_EQ(Record(allocate).Calls("cuMemAlloc").size(), 2u);
  const Environment audit = {{"GCAP_DOCTOR_AUDIT", "1"}, {"FAKE_DRIVER", "1"}};
  EXPECT_EQ(Record(allocate, audit).Calls("cuMemAlloc").size(), 10u);
}

}  // namespace
