// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Captures, as they come and as they should not: what the recorder writes of them.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "test/doctor/record/program.h"

namespace {

void* const kStream = Handle(0x1000);
void* const kOther = Handle(0x2000);
void* const kGraph = Handle(0x3000);
void* const kExec = Handle(0x4000);

// --- Captures that go well -------------------------------------------------------------------------------------------

TEST(Recorder, CaptureIsWrittenWithItsNodesEdgesAndLaunches) {
  Recorded recorded = Record([] {
    uint64_t first = 0x100000000, second = 0x100000001, first_copy = 0x200000000, second_copy = 0x200000001;
    Begin(kStream, 1);
    Launch(kStream, kGraph, &first, nullptr, "one");
    Launch(kStream, kGraph, &second, &first, "two");
    End(kStream, kGraph);
    Instantiate(kExec, kGraph, {{&first, &first_copy}, {&second, &second_copy}});
    for (int i = 0; i < 10; ++i) Replay(kExec, kStream);
  });
  const gcap_doctor_recording_t& events = *recorded.events;
  EXPECT_TRUE(events.ended);
  EXPECT_EQ(events.cupti, 130000u);
  ASSERT_EQ(events.num_calls, 5u) << recorded.text;
  EXPECT_EQ(recorded.Call("cuStreamBeginCapture").mode, GCAP_DOCTOR_MODE_THREAD_LOCAL);
  const auto launches = recorded.Calls("cuLaunchKernel");
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_STREQ(launches[0]->kernel, "one");
  EXPECT_EQ(launches[0]->num_nodes, 1u);
  EXPECT_EQ(launches[1]->num_nodes, 1u);
  EXPECT_NE(launches[0]->stream, GCAP_DOCTOR_NONE);
  EXPECT_EQ(launches[0]->stream, recorded.Call("cuStreamEndCapture").stream);
  ASSERT_EQ(events.num_nodes, 2u);
  EXPECT_EQ(events.nodes[0].id, 0x100000000u);
  EXPECT_STREQ(events.nodes[0].type, "kernel");
  EXPECT_EQ(events.nodes[0].graph, recorded.Call("cuStreamEndCapture").graph);
  ASSERT_EQ(events.num_edges, 1u);
  EXPECT_EQ(events.edges[0].from, 0x100000000u);
  EXPECT_EQ(events.edges[0].to, 0x100000001u);
  ASSERT_EQ(events.num_execs, 1u);
  EXPECT_EQ(events.execs[0].graph, events.nodes[0].graph);
  EXPECT_EQ(events.execs[0].replays, 10u);
  EXPECT_EQ(events.execs[0].failed_replays, 0u);
  EXPECT_EQ(events.execs[0].id, recorded.Call("cuGraphInstantiateWithFlags").exec);
  ASSERT_EQ(events.num_clones, 2u);
  EXPECT_EQ(events.clones[1].from, 0x100000001u);
  EXPECT_EQ(events.clones[1].to, 0x200000001u);
  // A graph is replayed without a write for each time.
  EXPECT_TRUE(recorded.Calls("cuGraphLaunch").empty());
}

TEST(Recorder, FewCallbacksAreEnabledOutsideOfCaptures) {
  Record([] {
    const uint32_t few = fake.enabled();
    IN_PROGRAM(few < 40);
    IN_PROGRAM(fake.is_enabled(539) && fake.is_enabled(497) && fake.is_enabled(514));
    IN_PROGRAM(!fake.is_enabled(126) && !fake.is_enabled(307));
    Begin(kStream);
    IN_PROGRAM(fake.enabled() > 700);
    Begin(kOther);
    End(kStream, kGraph);
    IN_PROGRAM(fake.enabled() > 700);
    End(kOther, kGraph);
    IN_PROGRAM(fake.enabled() == few);
    IN_PROGRAM(fake.is_enabled(539) && fake.is_enabled(497));
    // Again, now that the recorder knows how many there are.
    Begin(kStream);
    IN_PROGRAM(fake.is_enabled(126));
    End(kStream, nullptr, 901);
    IN_PROGRAM(fake.enabled() == few);
  });
}

TEST(Recorder, EachCaptureHasItsCalls) {
  Recorded recorded = Record([] {
    for (int i = 0; i < 3; ++i) {
      Begin(kStream);
      Launch(kStream, kGraph, nullptr);
      End(kStream, kGraph);
    }
  });
  const auto begins = recorded.Calls("cuStreamBeginCapture"), launches = recorded.Calls("cuLaunchKernel");
  ASSERT_EQ(begins.size(), 3u);
  ASSERT_EQ(launches.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(launches[i]->number, begins[i]->number + 1);
}

TEST(Recorder, CallsOutsideOfCapturesAreNotWrittenButLaunchesThatFail) {
  Recorded recorded = Record([] {
    Synchronize(kStream);
    Begin(kStream);
    End(kStream, kGraph);
    Synchronize(kStream);
    Instantiate(kExec, kGraph, {});
    Replay(kExec, kStream);
    Replay(kExec, kStream, 700);
    Replay(Handle(0x9990), kStream, 400);
  });
  EXPECT_TRUE(recorded.Calls("cuStreamSynchronize").empty());
  const auto launches = recorded.Calls("cuGraphLaunch");
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0]->result, 700);
  EXPECT_EQ(launches[0]->exec, recorded.events->execs[0].id);
  EXPECT_EQ(launches[1]->exec, GCAP_DOCTOR_NONE);  // nobody made it
  EXPECT_EQ(recorded.events->execs[0].replays, 2u);
  EXPECT_EQ(recorded.events->execs[0].failed_replays, 1u);
}

TEST(Recorder, GraphLaunchedIntoACaptureIsANodeAndNoReplay) {
  Recorded recorded = Record([] {
    uint64_t node = 5;
    Instantiate(kExec, kGraph, {});
    Begin(kStream);
    const void* arguments[] = {kExec, kStream};
    const uint32_t correlation = fake.enter(514, "cuGraphLaunch", arguments);
    gcap_doctor_cupti_graph_t data = {};
    data.graph = Handle(0x5000);
    data.node = &node;
    data.node_type = 4;
    fake.graph(GCAP_DOCTOR_CUPTI_NODE_STARTS, &data);
    data.node_type = 0;  // as CUPTI says of every node that is made
    fake.graph(GCAP_DOCTOR_CUPTI_NODE_CREATED, &data);
    fake.exit(514, "cuGraphLaunch", arguments, correlation, 0, nullptr);
    Replay(kExec, kOther);  // by its side, for true
    End(kStream, Handle(0x5000));
  });
  EXPECT_EQ(recorded.Calls("cuGraphLaunch").size(), 2u);
  EXPECT_EQ(recorded.events->execs[0].replays, 1u);
  ASSERT_EQ(recorded.events->num_nodes, 1u);
  EXPECT_STREQ(recorded.events->nodes[0].type, "child");
}

TEST(Recorder, CallsWithinCallsHaveTheirDepth) {
  Recorded recorded = Record([] {
    Begin(kStream);
    Within(126, "cuStreamSynchronize", &kStream, 900,
           [] { Within(120, "cuEventQuery", &kOther, 600, [] { Launch(kStream, kGraph, nullptr); }); });
    End(kStream, nullptr, 901);
  });
  EXPECT_EQ(recorded.Call("cuStreamSynchronize").depth, 0u);
  EXPECT_EQ(recorded.Call("cuEventQuery").depth, 1u);
  EXPECT_EQ(recorded.Call("cuLaunchKernel").depth, 2u);
  EXPECT_LT(recorded.Call("cuStreamSynchronize").number, recorded.Call("cuEventQuery").number);
  EXPECT_EQ(recorded.Call("cuEventQuery").result, 600);
  EXPECT_NE(recorded.Call("cuEventQuery").event, GCAP_DOCTOR_NONE);
  EXPECT_EQ(recorded.Call("cuStreamEndCapture").graph, GCAP_DOCTOR_NONE);
}

TEST(Recorder, QuestionsAreWrittenOnlyIfTheyFail) {
  Recorded recorded = Record([] {
    int device = 0;
    const void* arguments[] = {&device, nullptr};
    Begin(kStream);
    fake.call(795, "cuCtxGetDevice_v2", arguments, 0);
    fake.call(795, "cuCtxGetDevice_v2", arguments, 201);
    fake.call(677, "cuGetProcAddress_v2", nullptr, 0);
    fake.call(310, "cuPointerGetAttribute", nullptr, 0);
    fake.call(450, "cuPointerGetAttributes", nullptr, 0);
    End(kStream, kGraph);
    fake.call(450, "cuPointerGetAttributes", nullptr, 0);
  });
  // What a pointer is tells the reader why a launch that follows is refused.
  EXPECT_EQ(recorded.Call("cuPointerGetAttribute").result, 0);
  EXPECT_EQ(recorded.Call("cuPointerGetAttributes").result, 0);
  EXPECT_EQ(recorded.Call("cuCtxGetDevice").result, 201);
  EXPECT_TRUE(recorded.Calls("cuGetProcAddress").empty());
}

TEST(Recorder, CallThatIsInNoTableIsWrittenByItsName) {
  Recorded recorded = Record([] {
    Begin(kStream);
    fake.call(742, "cuFuncLoad_v3_ptsz", nullptr, 905);
    End(kStream, kGraph);
  });
  EXPECT_EQ(recorded.Call("cuFuncLoad").result, 905);
}

// --- Threads ---------------------------------------------------------------------------------------------------------

TEST(Recorder, ThreadsCaptureAtOnce) {
  constexpr int kThreads = 4, kCaptures = 25, kNodes = 20;
  Recorded recorded = Record([] {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([i] {
        pthread_setname_np(pthread_self(), ("worker" + std::to_string(i)).c_str());
        for (int j = 0; j < kCaptures; ++j) {
          void* stream = Handle(0x10000 + 0x100 * i);
          void* graph = Handle(0x20000 + 0x100 * i);
          uint64_t ids[kNodes];
          gcap_doctor_cupti_graph_t data = {};
          data.graph = graph;
          fake.graph(GCAP_DOCTOR_CUPTI_GRAPH_CREATED, &data);
          Begin(stream);
          for (int k = 0; k < kNodes; ++k) {
            ids[k] = (static_cast<uint64_t>(i * kCaptures + j + 1) << 32) + k;
            Launch(stream, graph, &ids[k], k != 0 ? &ids[k - 1] : nullptr);
          }
          End(stream, graph);
          Instantiate(Handle(0x30000 + 0x100 * i), graph, {{&ids[0], &ids[1]}});
          Replay(Handle(0x30000 + 0x100 * i), stream);
          data.exec = Handle(0x30000 + 0x100 * i);
          fake.graph(GCAP_DOCTOR_CUPTI_EXEC_DESTROY, &data);
          fake.graph(GCAP_DOCTOR_CUPTI_GRAPH_DESTROY, &data);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    IN_PROGRAM(fake.enabled() < 40);
  });
  const gcap_doctor_recording_t& events = *recorded.events;
  EXPECT_EQ(recorded.Calls("cuStreamBeginCapture").size(), 100u);
  EXPECT_EQ(recorded.Calls("cuLaunchKernel").size(), 2000u);
  EXPECT_EQ(events.num_nodes, 2000u);
  EXPECT_EQ(events.num_edges, 1900u);
  EXPECT_EQ(events.num_execs, 100u);
  EXPECT_EQ(events.num_streams, 4u);
  std::set<uint32_t> graphs;
  for (size_t i = 0; i < events.num_nodes; ++i) {
    graphs.insert(events.nodes[i].graph);
    // Each node belongs to a launch on the stream that its thread captures.
    ASSERT_NE(events.nodes[i].call, GCAP_DOCTOR_NONE);
    EXPECT_STREQ(events.calls[events.nodes[i].call].function, "cuLaunchKernel");
  }
  EXPECT_EQ(graphs.size(), 100u);
  std::set<std::string> names;
  for (size_t i = 0; i < events.num_threads; ++i) names.insert(events.threads[i].name);
  EXPECT_EQ(names.count("worker0") + names.count("worker3"), 2u);
  for (size_t i = 0; i < events.num_execs; ++i) EXPECT_EQ(events.execs[i].replays, 1u);
}

TEST(Recorder, AnotherThreadsCallIsWrittenAsItsOwn) {
  Recorded recorded = Record([] {
    Begin(kStream);
    std::thread([] {
      pthread_setname_np(pthread_self(), "loader");
      size_t bytes = 4096;
      const void* arguments[] = {&bytes, reinterpret_cast<void*>(bytes)};
      fake.call(243, "cuMemAlloc_v2", arguments, 906);
    }).join();
    End(kStream, nullptr, 901);
  });
  const gcap_doctor_event_call_t& call = recorded.Call("cuMemAlloc");
  EXPECT_EQ(call.result, 906);
  EXPECT_EQ(call.bytes, 4096u);
  EXPECT_STREQ(recorded.events->threads[call.thread].name, "loader");
  EXPECT_NE(call.thread, recorded.Call("cuStreamEndCapture").thread);
}

void* SynchronizeInThread(void*) {
  Synchronize(kOther);
  return nullptr;
}

TEST(Recorder, ThreadThatAConstructorWaitsForIsRecorded) {
  Recorded recorded = Record([] {
    char address[32];
    snprintf(address, sizeof(address), "%lx", reinterpret_cast<unsigned long>(&SynchronizeInThread));
    setenv("GCAP_TEST_WORK", address, 1);
    alarm(300);  // ends what hangs
    Begin(kStream);
    IN_PROGRAM(dlopen("test/doctor/record/libconstructor.so", RTLD_NOW) != nullptr);
    End(kStream, kGraph);
  });
  EXPECT_EQ(recorded.status, 0);
  const gcap_doctor_event_call_t& call = recorded.Call("cuStreamSynchronize");
  ASSERT_NE(call.stack, GCAP_DOCTOR_NONE);
  EXPECT_GT(recorded.events->stacks[call.stack].num_c, 0u);
  // The names of exported functions are known without the loader.
  EXPECT_NE(recorded.text.find("\tfunction=fake_cupti_call"), std::string::npos) << recorded.text;
}

TEST(Recorder, ModulesHaveTheirBuildIds) {
  Recorded recorded = Record([] {
    Begin(kStream);
    for (const char* path : {"test/doctor/record/libbuilt.so", "test/doctor/record/libunbuilt.so"}) {
      void* library = dlopen(path, RTLD_NOW);
      IN_PROGRAM(library != nullptr);
      auto* through = reinterpret_cast<void (*)(void (*)())>(dlsym(library, "gcap_test_through"));
      IN_PROGRAM(through != nullptr);
      through([] { Synchronize(kStream); });
      through([] { Synchronize(kStream); });
    }
    End(kStream, kGraph);
  });
  const gcap_doctor_recording_t& events = *recorded.events;
  EXPECT_EQ(recorded.status, 0) << recorded.said;
  std::map<std::string, std::string> builds;  // by the module's name
  for (size_t i = 0; i < events.num_frames; ++i) {
    const gcap_doctor_event_frame_t& frame = events.frames[i];
    ASSERT_NE(frame.build, nullptr) << recorded.text;
    const std::string module = frame.module;
    builds[module.substr(module.rfind('/') + 1)] = frame.build;
  }
  EXPECT_EQ(builds["libbuilt.so"], "0123456789abcdef01") << recorded.text;
  ASSERT_EQ(builds.count("libunbuilt.so"), 1u) << recorded.text;
  EXPECT_EQ(builds["libunbuilt.so"], "");
  // Once for a module.
  const size_t first = recorded.text.find("libbuilt.so\tbuild=");
  EXPECT_NE(first, std::string::npos) << recorded.text;
  EXPECT_EQ(recorded.text.find("libbuilt.so\tbuild=", first + 1), std::string::npos) << recorded.text;
}

// --- Captures that do not --------------------------------------------------------------------------------------------

TEST(Recorder, BeginThatFailsOpensNothing) {
  Recorded recorded = Record([] {
    const uint32_t few = fake.enabled();
    Begin(kStream, 0, 900);
    IN_PROGRAM(fake.enabled() == few);
    Synchronize(kStream);
  });
  EXPECT_EQ(recorded.Call("cuStreamBeginCapture").result, 900);
  EXPECT_TRUE(recorded.Calls("cuStreamSynchronize").empty());
}

TEST(Recorder, EndWithoutABeginClosesNothing) {
  Recorded recorded = Record([] {
    End(kStream, nullptr, 401);
    Begin(kStream);
    End(kOther, nullptr, 401);
    IN_PROGRAM(fake.enabled() > 700);
    End(kStream, nullptr, 908);  // of another thread: the capture goes on
    IN_PROGRAM(fake.enabled() > 700);
    End(kStream, kGraph);
    IN_PROGRAM(fake.enabled() < 40);
  });
  EXPECT_EQ(recorded.Calls("cuStreamEndCapture").size(), 4u);
}

TEST(Recorder, CaptureOfAStreamThatIsDestroyedIsOver) {
  Record([] {
    Begin(kStream);
    fake.stream(GCAP_DOCTOR_CUPTI_STREAM_DESTROY, kStream);
    IN_PROGRAM(fake.enabled() < 40);
  });
}

TEST(Recorder, CallBehindAnInstantiationThatFailsMakesNoExecutable) {
  Recorded recorded = Record([] {
    uint64_t from = 1, to = 2;
    Instantiate(kExec, kGraph, {{&from, &to}}, 801);
    Instantiate(Handle(0x4100), kGraph, {});
  });
  ASSERT_EQ(recorded.events->num_execs, 1u);
  EXPECT_EQ(recorded.events->num_clones, 0u);
}

TEST(Recorder, ExecutableIsKnownWithoutItsCallback) {
  Recorded recorded = Record([] {
    struct {
      void** exec;
      void* graph;
      unsigned long long flags;
    } arguments = {const_cast<void**>(&kExec), kGraph, 0};
    fake.call(643, "cuGraphInstantiateWithFlags", &arguments, 0);
    Replay(kExec, kStream);
  });
  ASSERT_EQ(recorded.events->num_execs, 1u);
  EXPECT_EQ(recorded.events->execs[0].replays, 1u);
}

TEST(Recorder, UpdateThatIsRefusedSaysWhy) {
  Recorded recorded = Record([] {
    int why = 3;
    const void* arguments[] = {kExec, kGraph, &why};
    fake.call(696, "cuGraphExecUpdate_v2", arguments, 910);
  });
  EXPECT_EQ(recorded.Call("cuGraphExecUpdate").result, 910);
  EXPECT_NE(recorded.text.find("\tupdate=node_type"), std::string::npos) << recorded.text;
}

TEST(Recorder, StateOfACaptureIsWritten) {
  Recorded recorded = Record([] {
    int status = 2;
    const void* arguments[] = {kStream, &status};
    Begin(kStream);
    fake.call(499, "cuStreamIsCapturing", arguments, 0);
    End(kStream, nullptr, 901);
  });
  EXPECT_EQ(recorded.Call("cuStreamIsCapturing").result, 0);
  EXPECT_NE(recorded.text.find("\tstatus=invalidated"), std::string::npos) << recorded.text;
}

// --- Callbacks out of order ------------------------------------------------------------------------------------------

TEST(Recorder, EndOfACallWhoseBeginningWasNotSeenIsWrittenIfItFailed) {
  Recorded recorded = Record([] {
    Begin(kStream);
    fake.exit(126, "cuStreamSynchronize", &kStream, 77777, 0, nullptr);
    fake.exit(17, "cuCtxSynchronize", nullptr, 77778, 906, nullptr);
    fake.exit(120, "cuEventQuery", &kOther, 77779, 600, nullptr);
    End(kStream, nullptr, 901);
  });
  EXPECT_TRUE(recorded.Calls("cuStreamSynchronize").empty());
  EXPECT_TRUE(recorded.Calls("cuEventQuery").empty());
  EXPECT_EQ(recorded.Call("cuCtxSynchronize").result, 906);
}

TEST(Recorder, CallThatMadeANodeIsWrittenThoughItsBeginningWasNotSeen) {
  Recorded recorded = Record([] {
    uint64_t node = 9;
    gcap_doctor_cupti_graph_t data = {};
    data.graph = kGraph;
    data.node = &node;
    Begin(kStream);
    fake.graph(GCAP_DOCTOR_CUPTI_NODE_CREATED, &data);
    fake.exit(126, "cuStreamSynchronize", &kStream, 77777, 0, nullptr);
    Launch(kStream, kGraph, nullptr);
    End(kStream, kGraph);
  });
  ASSERT_EQ(recorded.events->num_nodes, 1u);
  const uint32_t call = recorded.events->nodes[0].call;
  ASSERT_NE(call, GCAP_DOCTOR_NONE) << recorded.text;
  EXPECT_STREQ(recorded.events->calls[call].function, "cuStreamSynchronize");
  EXPECT_EQ(recorded.Call("cuLaunchKernel").num_nodes, 0u);
}

TEST(Recorder, BeginningWithoutAnEndIsForgotten) {
  Recorded recorded = Record([] {
    Begin(kStream);
    fake.enter(126, "cuStreamSynchronize", &kStream);  // and the callbacks are disabled
    End(kStream, kGraph);
    Begin(kStream);
    Launch(kStream, kGraph, nullptr);
    End(kStream, kGraph);
  });
  EXPECT_EQ(recorded.Call("cuLaunchKernel").depth, 0u);
  EXPECT_EQ(recorded.Calls("cuStreamBeginCapture")[1]->depth, 0u);
}

// At a depth of the stack of its own, and its end is lost.
void EnterDeeper(int depth) {
  const std::function<void()> next = [depth] {
    depth == 0 ? void(fake.enter(120, "cuEventQuery", &kOther)) : EnterDeeper(depth - 1);
  };
  next();
}

TEST(Recorder, EndTakesAwayTheCallsWithinWhoseEndsWereNotSeen) {
  Recorded recorded = Record([] {
    Begin(kStream);
    Within(126, "cuStreamSynchronize", &kStream, 0, [] {
      for (int i = 0; i < 3; ++i) EnterDeeper(i);
    });
    Launch(kStream, kGraph, nullptr);
    End(kStream, kGraph);
  });
  EXPECT_EQ(recorded.Call("cuStreamSynchronize").depth, 0u);
  EXPECT_EQ(recorded.Call("cuLaunchKernel").depth, 0u);
}

TEST(Recorder, BeginningsWithoutEndsDoNotPileUp) {
  // Even in one capture: a call that begins where another began is not within it.
  Recorded recorded = Record([] {
    Begin(kStream);
    for (int i = 0; i < 100; ++i) fake.enter(126, "cuStreamSynchronize", &kStream);
    Launch(kStream, kGraph, nullptr);
    End(kStream, kGraph);
  });
  EXPECT_LE(recorded.Call("cuLaunchKernel").depth, 1u);
  EXPECT_EQ(recorded.Call("cuStreamEndCapture").depth, recorded.Call("cuLaunchKernel").depth);
}

void SynchronizeWithin(int depth) {
  Within(126, "cuStreamSynchronize", &kStream, 0, [depth] {
    if (depth > 1) {
      SynchronizeWithin(depth - 1);
    } else {
      Synchronize(kStream, 900);
    }
  });
}

TEST(Recorder, CallsDeeperThanFitAreWrittenIfTheyFail) {
  Recorded recorded = Record([] {
    Begin(kStream);
    SynchronizeWithin(40);
    Launch(kStream, kGraph, nullptr);
    End(kStream, kGraph);
  });
  const auto calls = recorded.Calls("cuStreamSynchronize");
  ASSERT_EQ(calls.size(), 17u);
  int failed = 0;
  for (const auto* call : calls) failed += call->result == 900;
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(recorded.Call("cuLaunchKernel").depth, 0u);
}

TEST(Recorder, CallbacksWithoutArgumentsOrResultsAreBorne) {
  Recorded recorded = Record([] {
    Begin(kStream);
    fake.call(306, "cuMemcpyAsync", nullptr, 0);
    fake.call(307, "cuLaunchKernel", nullptr, 1);
    fake.graph(GCAP_DOCTOR_CUPTI_NODE_CREATED, nullptr);
    gcap_doctor_cupti_graph_t nothing = {};
    for (uint32_t i = 1; i < 24; ++i) fake.graph(i, &nothing);
    End(kStream, kGraph);
  });
  EXPECT_EQ(recorded.Call("cuLaunchKernel").result, 1);
}

long KilobytesInUse() {
  long pages = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == nullptr || fscanf(file, "%ld %ld", &pages, &resident) != 2) return -1;
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

TEST(Recorder, StreamsThatComeAndGoLeaveNothing) {
  Recorded recorded = Record([] {
    void* stream = kOther;
    const struct {
      void** stream;
      unsigned flags;
    } arguments = {&stream, 1};
    const long before = KilobytesInUse();
    for (int i = 0; i < 1000000; ++i) {
      fake.stream(GCAP_DOCTOR_CUPTI_STREAM_CREATED, stream);
      fake.call(124, "cuStreamCreate", &arguments, 0);
      fake.stream(GCAP_DOCTOR_CUPTI_STREAM_DESTROY, stream);
    }
    IN_PROGRAM(KilobytesInUse() - before < 4096);
    fake.call(124, "cuStreamCreate", &arguments, 0);
    Begin(stream);
    End(stream, kGraph);
  });
  ASSERT_EQ(recorded.events->num_streams, 1u);
  EXPECT_NE(recorded.text.find("stream\tid=1\twhat=nonblocking"), std::string::npos) << recorded.text;
}

TEST(Recorder, ExecutableAtAnOldAddressIsAnother) {
  Recorded recorded = Record([] {
    gcap_doctor_cupti_graph_t data = {};
    data.exec = kExec;
    for (int i = 0; i < 3; ++i) {
      Instantiate(kExec, kGraph, {});
      for (int j = 0; j <= 10 * i; ++j) Replay(kExec, kStream);
      if (i == 0) fake.graph(GCAP_DOCTOR_CUPTI_EXEC_DESTROY, &data);  // the end of the second is not seen
    }
  });
  ASSERT_EQ(recorded.events->num_execs, 3u);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(recorded.events->execs[i].replays, 10 * i + 1);
}

// --- The program's end -----------------------------------------------------------------------------------------------

TEST(Recorder, ChildOfForkRecordsNothing) {
  Recorded recorded = Record([] {
    Begin(kStream);
    const pid_t pid = fork();
    if (pid == 0) {
      Synchronize(kStream, 900);
      End(kStream, kGraph);
      exit(0);
    }
    int status = 0;
    IN_PROGRAM(waitpid(pid, &status, 0) == pid && status == 0);
    Launch(kStream, kGraph, nullptr);
    End(kStream, kGraph);
  });
  EXPECT_TRUE(recorded.Calls("cuStreamSynchronize").empty());
  recorded.Call("cuLaunchKernel");
  EXPECT_EQ(recorded.text.find("\nend\t"), recorded.text.rfind("\nend\t"));
}

TEST(Recorder, CrashLeavesWholeLines) {
  Recorded recorded = Record([] {
    Begin(kStream);
    Launch(kStream, kGraph, nullptr);
    Instantiate(kExec, kGraph, {});
    for (int i = 0; i < 5; ++i) Replay(kExec, kStream);
    fake.enter(126, "cuStreamSynchronize", &kStream);
    raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(recorded.status));
  EXPECT_FALSE(recorded.events->ended);
  recorded.Call("cuLaunchKernel");
  EXPECT_EQ(recorded.events->execs[0].replays, 4u);  // told at 1, 2 and 4
}

// A question whose answer is that all is well needs no write of its own; what says more goes out at once.
TEST(Recorder, CrashLeavesWhatBreaksACapture) {
  int status = 1;
  const void* arguments[] = {kStream, &status};
  Recorded recorded = Record([&] {
    Begin(kStream);
    for (int i = 0; i < 3; ++i) fake.call(499, "cuStreamIsCapturing", arguments, 0);
    Synchronize(kStream);
    for (int i = 0; i < 200; ++i) fake.call(499, "cuStreamIsCapturing", arguments, 0);
    status = 2;
    fake.call(499, "cuStreamIsCapturing", arguments, 0);
    raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(recorded.status));
  const auto questions = recorded.Calls("cuStreamIsCapturing");
  EXPECT_EQ(recorded.Count("cuStreamIsCapturing"), 204u);
  EXPECT_STREQ(questions.back()->status, "invalidated");
  recorded.Call("cuStreamSynchronize");
}

TEST(Recorder, QuestionsOfAThreadThatEndsAreThere) {
  Recorded recorded = Record([] {
    Begin(kStream);
    std::thread([] {
      int status = 1;
      const void* arguments[] = {kStream, &status};
      fake.call(499, "cuStreamIsCapturing", arguments, 0);
    }).join();
  });
  EXPECT_STREQ(recorded.Call("cuStreamIsCapturing").status, "active");
}

TEST(Recorder, ProgramThatClosesAllFilesKeepsItsOwn) {
  const std::string own = Prefix() + ".own";
  Recorded recorded = Record([&own] {
    Begin(kStream);
    Launch(kStream, kGraph, nullptr);
    for (int i = 3; i < 100; ++i) close(i);
    for (int i = 3; i < 100; ++i) IN_PROGRAM(open(own.c_str(), O_RDWR | O_CREAT, 0600) == i);
    Synchronize(kStream, 900);
    End(kStream, kGraph);
    struct stat status;
    IN_PROGRAM(stat(own.c_str(), &status) == 0 && status.st_size == 0);
  });
  recorded.Call("cuLaunchKernel");
  EXPECT_EQ(recorded.said, "");
}

TEST(Recorder, ThreadThatIsToBeCancelledEndsWhereItWould) {
  Recorded recorded = Record([] {
    Begin(kStream);
    static std::atomic<bool> is_asked{false}, has_passed{false};
    std::thread thread([] {
      while (!is_asked) std::this_thread::yield();
      Synchronize(kStream);  // its write would be a place to end
      has_passed = true;
      pause();
    });
    pthread_cancel(thread.native_handle());
    is_asked = true;
    thread.join();
    IN_PROGRAM(has_passed);
    End(kStream, kGraph);
  });
  recorded.Call("cuStreamSynchronize");
}

TEST(Recorder, ErrnoIsTheProgramsOwn) {
  Record([] {
    errno = 77;
    Begin(kStream);
    Launch(kStream, kGraph, nullptr);
    End(kStream, kGraph);
    IN_PROGRAM(errno == 77);
  });
}

// Threads that call the driver until after the recorder's end; a checker of leaks comes later, and finds them at rest.
struct Callers {
  std::atomic<int> calls{0};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;

  ~Callers() {
    is_over = true;
    for (std::thread& thread : threads) thread.join();
  }
} callers;

TEST(Recorder, ThreadsMayRunWhileTheProgramEnds) {
  Recorded recorded = Record([] {
    Begin(kStream);
    for (int i = 0; i < 2; ++i) {
      callers.threads.emplace_back([] {
        for (; !callers.is_over; ++callers.calls) Synchronize(kStream);
      });
    }
    while (callers.calls < 100) std::this_thread::yield();
  });
  EXPECT_TRUE(recorded.events->ended);
  EXPECT_GE(recorded.Count("cuStreamSynchronize"), 100u);
}

}  // namespace
