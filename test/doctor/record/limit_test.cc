// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// How large a recording becomes, and what is in one that reached its limit: the first calls and the last ones, however
// the program ends. Numbers of bytes are bounds that docs/doctor_events.md states.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>
#include <utility>

#include "doctor/analyse/diagnosis.h"
#include "test/doctor/record/program.h"

namespace {

void* const kStream = Handle(0x1000);
void* const kOther = Handle(0x2000);
void* const kGraph = Handle(0x3000);
void* const kExec = Handle(0x4000);
const Environment kOneMegabyte = {{"GCAP_DOCTOR_LIMIT_MB", "1"}};
constexpr size_t kMegabyte = 1 << 20;

void Ask(void* stream) {
  int status = 1;
  const void* arguments[] = {stream, &status};
  fake.call(499, "cuStreamIsCapturing", arguments, 0);
}

// As a framework captures: a question before each launch, nodes one behind the other, an executable, launches.
void CaptureChain(void* stream, uint64_t graph, int nodes) {
  std::vector<uint64_t> ids(static_cast<size_t>(nodes)), copies(ids.size());
  std::vector<std::pair<uint64_t*, uint64_t*>> clones;
  void* handle = Handle(0x100000 * graph);
  gcap_doctor_cupti_graph_t data = {};
  data.graph = handle;
  fake.graph(GCAP_DOCTOR_CUPTI_GRAPH_CREATED, &data);
  Begin(stream);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = (graph << 32) + i;
    copies[i] = ((graph + 1) << 32) + i;
    clones.push_back({&ids[i], &copies[i]});
    Ask(stream);
    Launch(stream, handle, &ids[i], i != 0 ? &ids[i - 1] : nullptr,
           "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_");
  }
  End(stream, handle);
  Instantiate(kExec, handle, clones);
  Replay(kExec, stream);
  data.exec = kExec;
  fake.graph(GCAP_DOCTOR_CUPTI_EXEC_DESTROY, &data);
  fake.graph(GCAP_DOCTOR_CUPTI_GRAPH_DESTROY, &data);
}

// With a limit that is passed, and a ring that turns, every some hundred calls: the recorder stays below what a file of
// its process may have.
constexpr size_t kSmall = 32 << 10;
Recorded RecordSmall(const std::function<void()>& program) {
  struct rlimit before;
  EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit low = {kSmall + (64 << 10), before.rlim_max};
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  Recorded recorded = Record(program);
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_LE(recorded.text.size(), kSmall);
  return recorded;
}

std::unique_ptr<gcap_doctor_diagnosis_t, void (*)(gcap_doctor_diagnosis_t*)> Diagnose(const Recorded& recorded) {
  return {gcap_doctor_diagnosis_create(recorded.events.get()), gcap_doctor_diagnosis_destroy};
}

uint64_t LastNumber(const Recorded& recorded) { return recorded.events->calls[recorded.events->num_calls - 1].number; }

// --- Bytes -----------------------------------------------------------------------------------------------------------

// The measure is the calls', though most make a node, an edge and a copy too.
TEST(RecordingSize, OfACallIsBelowAHundredBytes) {
  constexpr int kCaptures = 50, kNodes = 200;
  Recorded recorded = Record([] {
    for (uint64_t i = 0; i < kCaptures; ++i) CaptureChain(kStream, 2 * i + 1, kNodes);
  });
  const gcap_doctor_recording_t& events = *recorded.events;
  ASSERT_EQ(events.num_calls, static_cast<size_t>(kCaptures * (2 * kNodes + 3)));
  EXPECT_EQ(events.num_nodes, static_cast<size_t>(kCaptures * kNodes));
  EXPECT_EQ(events.num_edges, static_cast<size_t>(kCaptures * (kNodes - 1)));
  EXPECT_EQ(events.num_clones, static_cast<size_t>(kCaptures * kNodes));
  EXPECT_LT(recorded.text.size() / events.num_calls, 100u);
  EXPECT_FALSE(events.reached_limit);
}

template <int kPlace>
__attribute__((noinline)) void CaptureAt(uint64_t* ids) {
  Ask(kStream);
  Launch(kStream, kGraph, &ids[kPlace], kPlace != 0 ? &ids[kPlace - 1] : nullptr,
         "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_");
  asm volatile("");  // the calls are none of a tail
}

template <int... kPlaces>
void CaptureAtAll(uint64_t* ids, std::integer_sequence<int, kPlaces...>) {
  (CaptureAt<kPlaces>(ids), ...);
}

// Each place costs its frames and the line of its stack, and nothing that other places have too.
TEST(RecordingSize, OfACallFromANewPlaceIsBelowTwoHundredBytes) {
  constexpr int kPlaces = 400;
  Recorded recorded = Record([] {
    std::vector<uint64_t> ids(kPlaces);
    for (int i = 0; i < kPlaces; ++i) ids[i] = (uint64_t{1} << 32) + i;
    Begin(kStream);
    CaptureAtAll(ids.data(), std::make_integer_sequence<int, kPlaces>());
    End(kStream, kGraph);
  });
  const gcap_doctor_recording_t& events = *recorded.events;
  ASSERT_EQ(events.num_calls, static_cast<size_t>(2 * kPlaces + 2));
  EXPECT_GE(events.num_stacks, static_cast<size_t>(2 * kPlaces));
  EXPECT_LT(recorded.text.size() / events.num_calls, 200u);
}

// Of a graph that is built by hand, with children, a call may make many nodes.
TEST(RecordingSize, OfManyNodesIsThatOfALine) {
  constexpr uint64_t kNodes = 10000;
  Recorded recorded = Record([] {
    std::vector<uint64_t> ids(kNodes);
    gcap_doctor_cupti_graph_t data = {};
    data.graph = kGraph;
    for (uint64_t i = 0; i < kNodes; ++i) {
      ids[i] = (uint64_t{7} << 32) + i;
      data.node = &ids[i];
      data.original_node = &ids[0];
      data.dependency = i != 0 ? &ids[i - 1] : nullptr;
      if (i != 0) fake.graph(GCAP_DOCTOR_CUPTI_DEPENDENCY_CREATED, &data);
      fake.graph(GCAP_DOCTOR_CUPTI_NODE_CLONED, &data);
    }
  });
  const gcap_doctor_recording_t& events = *recorded.events;
  ASSERT_EQ(events.num_nodes, kNodes);
  ASSERT_EQ(events.num_edges, kNodes - 1);
  std::set<uint64_t> ids;
  for (size_t i = 0; i < events.num_nodes; ++i) ids.insert(events.nodes[i].id);
  EXPECT_EQ(ids.size(), kNodes);
  EXPECT_EQ(*ids.rbegin() - *ids.begin(), kNodes - 1);
  for (size_t i = 0; i < events.num_edges; ++i) EXPECT_EQ(events.edges[i].from + 1, events.edges[i].to);
  EXPECT_LT(recorded.text.size(), kNodes);  // less than a byte each
}

// --- The limit -------------------------------------------------------------------------------------------------------

// A program that begins with a search, and then makes its own capture.
TEST(RecordingLimit, LeavesOutTheMiddle) {
  constexpr uint64_t kSearch = 40000;
  Recorded recorded = Record(
      [] {
        CaptureChain(kStream, 1, 10);
        Begin(kStream);
        for (uint64_t i = 0; i < kSearch; ++i) Wait(kStream);
        End(kStream, kGraph);
        Begin(kOther, 1);
        Launch(kOther, kGraph, nullptr);
        fake.call(17, "cuCtxSynchronize", nullptr, 900);
        End(kOther, nullptr, 901);
      },
      kOneMegabyte);
  const gcap_doctor_recording_t& events = *recorded.events;
  EXPECT_TRUE(events.ended);
  EXPECT_TRUE(events.reached_limit);
  EXPECT_LE(recorded.text.size(), kMegabyte);
  EXPECT_GT(events.num_calls, 10000u);
  EXPECT_EQ(events.calls[0].number, 1u);
  EXPECT_EQ(LastNumber(recorded), 23u + 1 + kSearch + 1 + 4);
  ASSERT_LT(events.gap, events.num_calls);
  EXPECT_EQ(events.num_calls + events.left_out, LastNumber(recorded));
  EXPECT_EQ(events.calls[events.gap].number - events.calls[events.gap - 1].number - 1, events.left_out);
  ASSERT_EQ(events.num_notes, 1u);
  EXPECT_NE(std::string(events.notes[0]).find("about " + std::to_string(events.left_out) + " calls are left out"),
            std::string::npos)
      << events.notes[0];
  const auto diagnosis = Diagnose(recorded);
  ASSERT_EQ(diagnosis->num_findings, 1u);  // of what began before nothing is said
  EXPECT_EQ(diagnosis->findings[0].kind, GCAP_DOCTOR_FINDING_CULPRIT);
  EXPECT_STREQ(events.calls[diagnosis->findings[0].call].function, "cuCtxSynchronize");
  EXPECT_EQ(diagnosis->captures[diagnosis->findings[0].capture].mode, GCAP_DOCTOR_MODE_THREAD_LOCAL);
}

TEST(RecordingLimit, ThatIsNotPassedLeavesNothingOut) {
  Recorded recorded = RecordSmall([] {
    Begin(kStream);
    for (int i = 0; i < 300; ++i) Wait(kStream);
    End(kStream, kGraph);
  });
  EXPECT_NE(recorded.text.find("\nring\t"), std::string::npos);
  EXPECT_FALSE(recorded.events->reached_limit);
  EXPECT_EQ(recorded.events->num_calls, 302u);
  EXPECT_EQ(recorded.events->num_notes, 0u);
}

TEST(RecordingLimit, ProgramThatIsKilledHasItsLastCalls) {
  for (int calls : {100, 300, 500, 1000, 2000, 2010, 2020, 2030, 2040, 2050}) {
    Recorded recorded = RecordSmall([calls] {
      Begin(kStream);
      for (int i = 0; i < calls; ++i) Wait(kStream);
      raise(SIGKILL);
    });
    EXPECT_TRUE(WIFSIGNALED(recorded.status));
    EXPECT_FALSE(recorded.events->ended);
    EXPECT_EQ(LastNumber(recorded), static_cast<uint64_t>(calls) + 1);
    EXPECT_EQ(recorded.events->num_calls + recorded.events->left_out, static_cast<uint64_t>(calls) + 1);
    // Between these it depends on how long the names of files are.
    if (calls <= 100) {
      EXPECT_FALSE(recorded.events->reached_limit);
    }
    if (calls >= 2000) {
      EXPECT_TRUE(recorded.events->reached_limit);
    }
    // Behind the last line there is nothing of a round ago.
    const size_t last = recorded.text.find("call\tn=" + std::to_string(calls + 1) + "\t");
    ASSERT_NE(last, std::string::npos);
    const size_t end = recorded.text.find('\n', last) + 1;
    EXPECT_TRUE(end == recorded.text.size() || recorded.text[end] == '\0' ||
                recorded.text.compare(end, 8, "segment\t") == 0)
        << recorded.text.substr(end, 50);
  }
}

// Wherever the kill comes: between the bytes of a segment that is prepared, too.
TEST(RecordingLimit, ProgramMayBeKilledAtAnyTime) {
  for (int i = 0; i < 10; ++i) {
    Recorded recorded = RecordSmall([i] {
      Begin(kStream);
      std::thread([i] {
        usleep(static_cast<useconds_t>(50000 + 7000 * i));
        raise(SIGKILL);
      }).detach();
      for (;;) Wait(kStream);
    });
    EXPECT_TRUE(WIFSIGNALED(recorded.status));
    EXPECT_GT(recorded.events->num_calls, 0u);
  }
}

TEST(RecordingLimit, ThreadsShareIt) {
  constexpr int kThreads = 4, kCalls = 2000;
  Recorded recorded = RecordSmall([] {
    Begin(kStream);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([] {
        for (int j = 0; j < kCalls; ++j) Wait(kOther);
        fake.call(17, "cuCtxSynchronize", nullptr, 0);
      });
    }
    for (std::thread& thread : threads) thread.join();
    End(kStream, kGraph);
  });
  EXPECT_TRUE(recorded.events->ended);
  EXPECT_TRUE(recorded.events->reached_limit);
  EXPECT_EQ(LastNumber(recorded), static_cast<uint64_t>(kThreads) * (kCalls + 1) + 2);
  for (size_t i = 1; i < recorded.events->num_calls; ++i) {
    ASSERT_LT(recorded.events->calls[i - 1].number, recorded.events->calls[i].number);
  }
}

// What lines refer to has an end too: from then on a call has no stack, and says the rest itself.
TEST(RecordingLimit, DefinitionsHaveTheirPart) {
  constexpr int kKernels = 6000;
  Recorded recorded = Record(
      [] {
        Begin(kStream);
        for (int i = 0; i < kKernels; ++i) {
          Launch(kStream, kGraph, nullptr, nullptr, (std::string(150, 'k') + std::to_string(i)).c_str());
        }
        End(kStream, kGraph);
      },
      kOneMegabyte);
  EXPECT_LE(recorded.text.size(), kMegabyte);
  const auto launches = recorded.Calls("cuLaunchKernel");
  ASSERT_FALSE(launches.empty());
  EXPECT_EQ(launches.back()->kernel, std::string(150, 'k') + std::to_string(kKernels - 1));
  EXPECT_EQ(LastNumber(recorded), static_cast<uint64_t>(kKernels) + 2);
}

TEST(RecordingLimit, ExecutablesOfTheMiddleAreKnown) {
  Recorded recorded = RecordSmall([] {
    Begin(kStream);
    for (int i = 0; i < 1000; ++i) Wait(kStream);
    Instantiate(kExec, kGraph, {});
    Replay(kExec, kStream);
    for (int i = 0; i < 1000; ++i) Wait(kStream);
    End(kStream, kGraph);
    for (int i = 0; i < 7; ++i) Replay(kExec, kOther);
  });
  EXPECT_TRUE(recorded.events->reached_limit);
  ASSERT_EQ(recorded.events->num_execs, 1u);
  EXPECT_GE(recorded.events->execs[0].replays, 7u);
}

}  // namespace
