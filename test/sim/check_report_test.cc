// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What becomes of a report: actions, suppressions, the list, leaks, the environment.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "test/sim/check_test.h"

namespace {

using gcap_test::Check;
using gcap_test::Step;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

#define OK(call) EXPECT_EQ(cudaSuccess, call)

class CheckReport : public Check {
 protected:
  void Race() {
    OK(cudaDeviceSynchronize());
    OK(Fill(x_, a_));
    OK(Step(y_, x_, kBytes, b_));
    OK(cudaDeviceSynchronize());
  }

  // Of the body, recorded and printed.
  template <typename Body>
  static size_t Count(Body body) {
    gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_OFF);
    CaptureStderr();
    body();
    const size_t count = gcap_sim_check();
    printed_ = GetCapturedStderr();
    return count;
  }

  static std::string printed_;
};

std::string CheckReport::printed_;

TEST_F(CheckReport, IsPrintedAndKept) {
  EXPECT_EQ(1u, Count([&] {
              Race();
              ASSERT_NE(nullptr, gcap_sim_report(0));  // also before the check
              EXPECT_EQ(nullptr, gcap_sim_report(1));
            }));
  ASSERT_NE(nullptr, gcap_sim_report(0));
  const char* text = gcap_sim_report(0);
  EXPECT_EQ(printed_, text);
  EXPECT_EQ(nullptr, gcap_sim_report(1));
  EXPECT_EQ(0u, Count([] {}));
  EXPECT_EQ(printed_, "");
  EXPECT_NE(nullptr, strstr(text, "race on")) << "valid until the next check but one";
  EXPECT_EQ(nullptr, gcap_sim_report(0));
}

// Of a stripped library addr2line knows the functions, and guesses one file for all: crtstuff.c.
TEST_F(CheckReport, TellsNoFileWithoutALine) {
  const std::string path = testing::TempDir() + "/symbolizer";
  std::ofstream(path) << "#!/bin/sh\nshift 3\nfor i; do printf '%s\\nits_function\\ncrtstuff.c:?\\n' $i; done\n";
  ASSERT_EQ(0, chmod(path.c_str(), 0755));
  setenv("GCAP_SIM_SYMBOLIZER", path.c_str(), 1);
  EXPECT_EQ(1u, Count([&] {  // calls whose names were not asked for yet
              OK(Fill(x_, a_));
              OK(Step(y_, x_, kBytes, b_));
              OK(cudaDeviceSynchronize());
            }));
  unsetenv("GCAP_SIM_SYMBOLIZER");
  EXPECT_NE(std::string::npos, printed_.find("at its_function\n")) << printed_;
  EXPECT_EQ(std::string::npos, printed_.find("crtstuff.c")) << printed_;
}

TEST_F(CheckReport, HasTheSeedThatShowsItAgain) {
  gcap_sim_set_seed(4711);
  EXPECT_EQ(1u, Count([&] { Race(); }));
  EXPECT_NE(std::string::npos, printed_.find("GCAP_SIM_SEED=4711")) << printed_;
  gcap_sim_set_seed(0);
}

TEST_F(CheckReport, IsToldOnceForTwoStacksUntilTheNextCheck) {
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(1u, Count([&] {
                for (int i = 0; i < 20; ++i) Race();
              }));
  }
  EXPECT_EQ(2u, Count([&] {
              Race();
              OK(Fill(x_, a_));  // another place
              OK(Step(y_, x_, kBytes, b_));
              OK(cudaDeviceSynchronize());
            }));
}

TEST_F(CheckReport, OffDoesNotLook) {
  gcap_sim_set_action(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_OFF);
  EXPECT_EQ(0u, Count([&] { Race(); }));
  gcap_sim_set_action(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_RECORD);
}

// What happened while no check looked is held against nobody: neither a write that is not known nor bytes that seem not
// to be written.
TEST_F(CheckReport, ChecksThatLookAgainForgetWhatWasBefore) {
  void* memory;
  EXPECT_EQ(0u, Count([&] {
              gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_OFF);
              OK(cudaMalloc(&memory, kBytes));
              OK(Fill(memory, a_));
              for (int i = 0; i < 40; ++i) cudaEventQuery(e1_);
              gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_RECORD);
              gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_OFF);
              OK(cudaStreamSynchronize(a_));
              OK(Step(y_, static_cast<unsigned char*>(memory), kBytes, b_));
              OK(cudaStreamSynchronize(b_));
            }));
  OK(cudaFree(memory));
  EXPECT_EQ(1u, Count([&] { Race(); }));
}

using CheckReportDeathTest = CheckReport;

TEST_F(CheckReportDeathTest, AbortsByDefault) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  gcap_sim_set_action(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_ABORT);
  EXPECT_EXIT(Race(), testing::KilledBySignal(SIGABRT), "race on 256 bytes");
}

TEST_F(CheckReport, CanBecomeAStickyError) {
  gcap_sim_set_action(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_ERROR);
  EXPECT_EQ(1u, Count([&] {
              OK(cudaDeviceSynchronize());
              OK(Fill(x_, a_));
              OK(Step(y_, x_, kBytes, b_));
              EXPECT_EQ(cudaErrorIllegalAddress, cudaDeviceSynchronize());
              EXPECT_EQ(cudaErrorIllegalAddress, cudaGetLastError());
              EXPECT_EQ(cudaErrorIllegalAddress, cudaStreamSynchronize(a_));
              gcap_sim_clear_faults();
            }));
  gcap_sim_set_action(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_RECORD);
}

// --- Destroyed handles ----------------------------------------------------------------------------------------------

__attribute__((noinline)) void DestroyHere(cudaEvent_t event) { OK(cudaEventDestroy(event)); }

// The report had the handle's address and nothing else.
TEST_F(CheckReportDeathTest, ADestroyedHandleIsToldWithTheCallsThatMadeAndDestroyedIt) {
  cudaEvent_t event, next;
  OK(cudaEventCreate(&event));
  DestroyHere(event);
  const char* told =
      "cudaEventRecord: event 0x[0-9a-f]+ was destroyed\n  used by cudaEventRecord, call .*TestBody.*"
      "made by cudaEventCreate, call .*TestBody.*destroyed by cudaEventDestroy, call .*DestroyHere.*Remedy: ";
  EXPECT_DEATH(cudaEventRecord(event, a_), told);
  OK(cudaEventCreateWithFlags(&next, cudaEventDisableTiming));  // in its place
  EXPECT_DEATH(cudaEventRecord(event, a_), told);
  OK(cudaEventDestroy(next));
  EXPECT_DEATH(cudaEventRecord(next, a_), "was destroyed.*made by cudaEventCreateWithFlags");
}

TEST_F(CheckReportDeathTest, EveryKindOfDestroyedHandleIsTold) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t node;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamDestroy(stream));
  EXPECT_DEATH(cudaStreamQuery(stream), "was destroyed.*made by cudaStreamCreate,.*destroyed by cudaStreamDestroy");
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphExecDestroy(exec));
  EXPECT_DEATH(cudaGraphLaunch(exec, a_),
               "was destroyed.*made by cudaGraphInstantiate,.*destroyed by cudaGraphExecDestroy");
  OK(cudaGraphDestroy(graph));
  EXPECT_DEATH(cudaGraphDestroy(graph), "was destroyed.*made by cudaGraphCreate,.*destroyed by cudaGraphDestroy");
  cudaGraphNodeType type;
  EXPECT_DEATH(cudaGraphNodeGetType(node, &type), "was destroyed.*destroyed by cudaGraphDestroy");
}

// --- Refused calls --------------------------------------------------------------------------------------------------

// A second free answered cudaErrorInvalidValue, and nothing was said.
TEST_F(CheckReport, ASecondFreeIsToldWithTheFirst) {
  ExpectOne({"refused call: a second free of device memory", "allocated by cudaMalloc,", "freed by cudaFree,",
             "freed again by cudaFree,", "Remedy: "},
            [&] {
              void* memory;
              OK(cudaMalloc(&memory, kBytes));
              OK(cudaFree(memory));
              EXPECT_EQ(cudaErrorInvalidValue, cudaFree(memory));
            });
  ExpectOne({"a second free of pinned memory", "freed by cudaFreeHost,", "freed again by cudaFreeHost,"}, [&] {
    void* memory;
    OK(cudaMallocHost(&memory, kBytes));
    OK(cudaFreeHost(memory));
    EXPECT_EQ(cudaErrorInvalidValue, cudaFreeHost(memory));
  });
  // Also while the first free is still pending.
  ExpectOne({"a second free of device memory", "freed by cudaFreeAsync,", "freed again by cudaFreeAsync,"}, [&] {
    void* memory;
    OK(cudaMallocAsync(&memory, kBytes, a_));
    OK(cudaFreeAsync(memory, a_));
    EXPECT_EQ(cudaErrorInvalidValue, cudaFreeAsync(memory, a_));
  });
}

TEST_F(CheckReport, AFreeOfWhatWasNeverAllocatedIsNoSecondFree) {
  ExpectNone([&] {
    int local;
    EXPECT_EQ(cudaErrorInvalidValue, cudaFree(&local));
    EXPECT_EQ(cudaErrorInvalidValue, cudaFree(x_ + 1));
    EXPECT_EQ(cudaErrorInvalidValue, cudaFreeHost(x_));
  });
}

TEST_F(CheckReport, ASecondFreeStopsNobodyByDefault) {
  gcap_sim_set_action(GCAP_SIM_CHECK_REFUSED_CALL, GCAP_SIM_ACTION_DEFAULT);
  EXPECT_EQ(0u, Count([&] {
              void* memory;
              OK(cudaMalloc(&memory, kBytes));
              OK(cudaFree(memory));
              EXPECT_EQ(cudaErrorInvalidValue, cudaFree(memory));
            }));
  EXPECT_NE(std::string::npos, printed_.find("refused call: a second free")) << printed_;
  gcap_sim_set_action(GCAP_SIM_CHECK_REFUSED_CALL, GCAP_SIM_ACTION_RECORD);
}

// The second launch answered cudaErrorInvalidValue, and nothing was said.
TEST_F(CheckReport, ALaunchOfAGraphWhoseAllocationNobodyFreedIsTold) {
  ExpectOne({"refused call: a second launch of a graph that did not free its allocation (R30), device memory",
             "allocated by cudaMallocAsync,", "launched by cudaGraphLaunch,", "launched again by cudaGraphLaunch,",
             "Nobody has freed it since. Remedy: "},
            [&] {
              void* memory;
              cudaGraph_t graph;
              cudaGraphExec_t exec;
              OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
              OK(cudaMallocAsync(&memory, kBytes, a_));
              OK(cudaStreamEndCapture(a_, &graph));
              OK(cudaGraphInstantiate(&exec, graph, 0));
              OK(cudaGraphLaunch(exec, a_));
              EXPECT_EQ(cudaErrorInvalidValue, cudaGraphLaunch(exec, a_));
              OK(cudaFreeAsync(memory, a_));
              OK(cudaGraphLaunch(exec, a_));
              OK(cudaFreeAsync(memory, a_));
              OK(cudaStreamSynchronize(a_));
              OK(cudaGraphExecDestroy(exec));
              OK(cudaGraphDestroy(graph));
            });
}

// It was taken for freed, since an earlier launch's was.
TEST_F(CheckReport, AWrongFreeOfWhatAGraphHasAllocatedAgainIsNoSecondFree) {
  EXPECT_EQ(0u, Count([&] {
              void* memory;
              cudaGraph_t graph;
              cudaGraphExec_t exec;
              OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
              OK(cudaMallocAsync(&memory, kBytes, a_));
              OK(cudaStreamEndCapture(a_, &graph));
              OK(cudaGraphInstantiate(&exec, graph, 0));
              for (int launch = 0; launch < 2; ++launch) {
                OK(cudaGraphLaunch(exec, a_));
                OK(cudaStreamSynchronize(a_));
                EXPECT_EQ(cudaErrorInvalidValue, cudaFreeHost(memory));
                OK(cudaFree(memory));
              }
              OK(cudaGraphExecDestroy(exec));
              OK(cudaGraphDestroy(graph));
            }));
}

// --- Suppressions ---------------------------------------------------------------------------------------------------

__attribute__((noinline)) cudaError_t FillOfALibraryThatIsNotOurs(void* memory, cudaStream_t stream) {
  cudaError_t code = cudaMemsetAsync(memory, 1, 256, stream);
  return code == cudaSuccess ? code : cudaErrorUnknown;  // no tail call: the frame stays
}

// A suppression cannot be taken back, so each test names something of its own.
TEST_F(CheckReport, IsDroppedByTheNameOfAFunctionOfItsStacks) {
  auto race = [&] {
    OK(cudaDeviceSynchronize());
    OK(FillOfALibraryThatIsNotOurs(x_, a_));
    OK(Step(y_, x_, kBytes, b_));
    OK(cudaDeviceSynchronize());
  };
  EXPECT_EQ(1u, Count(race));
  ASSERT_NE(std::string::npos, printed_.find("FillOfALibraryThatIsNotOurs")) << "no symbols: is addr2line there?";
  gcap_sim_suppress(GCAP_SIM_CHECK_UNINITIALIZED, "(anonymous namespace)::FillOfALibraryThatIsNotOurs", "another kind");
  EXPECT_EQ(1u, Count(race));
  gcap_sim_suppress(GCAP_SIM_CHECK_RACE, "FillOfALibraryThatIsNotOur", "not exactly the name");
  EXPECT_EQ(1u, Count(race));
  gcap_sim_suppress(GCAP_SIM_CHECK_RACE, "(anonymous namespace)::FillOfALibraryThatIsNotOurs", "a test");
  EXPECT_EQ(0u, Count(race));
  EXPECT_EQ(1u, Count([&] { Race(); }));
}

TEST_F(CheckReport, IsDroppedByTheNameOfAnAnnotation) {
  auto overlap = [&] {
    gcap_sim_annotate_alloc(x_, 64, a_, "an arena of its own");
    gcap_sim_annotate_alloc(x_, 64, a_, "another");
    gcap_sim_annotate_free(x_, a_);
  };
  EXPECT_EQ(1u, Count(overlap));
  gcap_sim_suppress(GCAP_SIM_CHECK_OVERLAP, "an arena of its own", "it is two views of one buffer");
  EXPECT_EQ(0u, Count(overlap));
}

TEST_F(CheckReportDeathTest, SuppressionsAreToldAtExit) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto drop = [&] {
    gcap_sim_suppress(GCAP_SIM_CHECK_RACE, "cudaLaunchKernel", "a reason of its own");
    Race();
    exit(0);
  };
  EXPECT_EXIT(drop(), testing::ExitedWithCode(0), "1 reports dropped for race:cudaLaunchKernel # a reason of its own");
}

TEST_F(CheckReportDeathTest, BadArgumentsStop) {
  EXPECT_DEATH(gcap_sim_suppress(GCAP_SIM_CHECK_RACE, "name", ""), "expected a check, a name and a reason");
  EXPECT_DEATH(gcap_sim_suppress(GCAP_SIM_CHECK_RACE, nullptr, "why"), "expected a check, a name and a reason");
  EXPECT_DEATH(gcap_sim_set_action(static_cast<gcap_sim_check_kind_t>(99), GCAP_SIM_ACTION_OFF), "check 99");
}

// --- Leaks ----------------------------------------------------------------------------------------------------------

TEST_F(CheckReport, LeaksAreGroupedByThePlaceThatMadeThem) {
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_RECORD);
  CaptureStderr();
  gcap_sim_check();  // the fixture's own, which are told once
  void* memory[3];
  for (void*& m : memory) OK(cudaMalloc(&m, 1000));
  cudaEvent_t event;
  OK(cudaEventCreate(&event));
  EXPECT_EQ(size_t{2}, gcap_sim_check());
  GetCapturedStderr();
  std::string all;
  for (size_t i = 0; gcap_sim_report(i); ++i) all += gcap_sim_report(i);
  EXPECT_NE(std::string::npos, all.find("leak of 3 of the kind \"device memory\", 3000 bytes")) << all;
  EXPECT_NE(std::string::npos, all.find("LeaksAreGroupedByThePlaceThatMadeThem")) << all;
  EXPECT_NE(std::string::npos, all.find("made by cudaEventCreate")) << all;
  for (void* m : memory) OK(cudaFree(m));
  OK(cudaEventDestroy(event));
  CaptureStderr();
  EXPECT_EQ(size_t{0}, gcap_sim_check());
  GetCapturedStderr();
}

TEST_F(CheckReportDeathTest, LeaksAreToldAtExit) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto leave = [](gcap_sim_action_t action) {
    gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, action);
    exit(3);
  };
  EXPECT_EXIT(leave(GCAP_SIM_ACTION_DEFAULT), testing::ExitedWithCode(3), "leak of 1 of the kind \"pinned memory\"");
  EXPECT_EXIT(leave(GCAP_SIM_ACTION_RECORD), testing::ExitedWithCode(3), "leak of 1 of the kind \"pinned memory\"");
  EXPECT_EXIT(leave(GCAP_SIM_ACTION_ABORT), testing::KilledBySignal(SIGABRT), "leak of");
  EXPECT_EXIT(leave(GCAP_SIM_ACTION_OFF), testing::ExitedWithCode(3), "^$");
}

// A child was told of all that its parent had made, whose end is the parent's affair.
TEST_F(CheckReportDeathTest, AForkedChildIsToldOfItsOwnLeaksAlone) {
  testing::FLAGS_gtest_death_test_style = "fast";
  cudaStream_t of_parent;
  OK(cudaStreamCreate(&of_parent));
  // The simulator's own thread has begun, and is known: else asan finds the thread's memory in the child, which has no
  // such thread.
  OK(cudaLaunchHostFunc(
      of_parent, [](void*) {}, nullptr));
  OK(cudaStreamSynchronize(of_parent));
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_RECORD);
  const auto leave = [](bool makes) {
    void* memory;
    if (makes) {
      OK(cudaMalloc(&memory, 64));
    }
    exit(3);
  };
  // Of a thread that the parent had, a leak checker of the compiler's may say that it finds none in the child.
  const char* const nothing = "^(==[0-9]+==Running thread [0-9]+ was not suspended. False leaks are possible.\n)?$";
  EXPECT_EXIT(leave(false), testing::ExitedWithCode(3), nothing);
  EXPECT_EXIT(leave(true), testing::ExitedWithCode(3), "^gcap sim: leak of 1 of the kind .device memory");
  OK(cudaStreamDestroy(of_parent));
}

// --- The environment ------------------------------------------------------------------------------------------------

// What a program does that is started with the variable: this one, again, in a test that only runs there.
std::string RunWith(const std::string& variables, int* status) {
  char self[4096] = {0};
  EXPECT_GT(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
  const std::string command = variables + " CHECK_REPORT_CHILD=1 '" + self + "' --gtest_filter=CheckReportChild.* 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  char line[512];
  while (pipe && fgets(line, sizeof(line), pipe)) out += line;
  *status = pclose(pipe);
  return out;
}

// Not of the fixture, which sets actions.
TEST(CheckReportChild, Races) {
  if (!getenv("CHECK_REPORT_CHILD")) GTEST_SKIP() << "runs in a child of CheckReport.Environment…";
  int devices;
  cudaStream_t a, b;
  void* memory;
  ASSERT_EQ(cudaSuccess, cudaGetDeviceCount(&devices));
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  ASSERT_EQ(cudaSuccess, cudaMalloc(&memory, 64));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory, 1, 64, a));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory, 1, 64, b));
  ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
}

TEST(CheckReportEnvironment, SetsActions) {
  int status;
  std::string out = RunWith("GCAP_SIM_CHECKS=", &status);
  EXPECT_NE(0, status);
  EXPECT_NE(std::string::npos, out.find("race on 64 bytes")) << out;
  EXPECT_EQ(std::string::npos, out.find("leak")) << out;
  out = RunWith("GCAP_SIM_CHECKS=race=record", &status);
  EXPECT_EQ(0, status) << out;
  EXPECT_NE(std::string::npos, out.find("race on 64 bytes")) << out;
  // It was told only to who had set the action, which the manual did not say.
  EXPECT_NE(std::string::npos, out.find("leak of 1 of the kind \"device memory\"")) << out;
  out = RunWith("GCAP_SIM_CHECKS=race=record,leak=off", &status);
  EXPECT_EQ(0, status) << out;
  EXPECT_EQ(std::string::npos, out.find("leak")) << out;
  out = RunWith("GCAP_SIM_CHECKS=all=off", &status);
  EXPECT_EQ(0, status) << out;
  EXPECT_EQ(std::string::npos, out.find("gcap sim")) << out;
}

TEST(CheckReportEnvironment, BadTextStopsAndSaysWhatIsAllowed) {
  for (const char* bad : {"race", "race=maybe", "rac=off", "race=off,,", "=off"}) {
    int status;
    const std::string out = RunWith(std::string("GCAP_SIM_CHECKS=") + bad, &status);
    EXPECT_NE(0, status) << bad;
    EXPECT_NE(std::string::npos, out.find("GCAP_SIM_CHECKS has '")) << bad << out;
    EXPECT_NE(std::string::npos, out.find("abort, record, error, off, warn, default")) << bad << out;
  }
  int status;
  EXPECT_NE(std::string::npos,
            RunWith("GCAP_SIM_STACKS=33", &status).find("GCAP_SIM_STACKS is '33', expected 0 to 32"));
  EXPECT_NE(0, status);
}

// Each was blamed on the call that happened to look first ("cudaStreamCreateWithFlags: GCAP_SIM_CHECKS has 'bogus'").
TEST(CheckReportEnvironment, ABadVariableIsBlamedOnItself) {
  for (const char* variable :
       {"CHECKS", "SUPPRESSIONS", "STACKS", "SEED", "SCHEDULE", "DEVICES", "DEVICE_BYTES", "LOG"}) {
    int status;
    const std::string name = std::string("GCAP_SIM_") + variable;
    const std::string out = RunWith(name + "='1 bogus'", &status);
    EXPECT_NE(0, status) << name;
    EXPECT_NE(std::string::npos, out.find("\ngcap sim: " + name + " ")) << out;
  }
}

TEST(CheckReportEnvironment, StacksAndSymbolsCanBeLeftOut) {
  int status;
  std::string out = RunWith("GCAP_SIM_CHECKS=all=record GCAP_SIM_STACKS=0", &status);
  EXPECT_EQ(0, status);
  EXPECT_NE(std::string::npos, out.find("race on 64 bytes")) << out;
  EXPECT_EQ(std::string::npos, out.find(" at ")) << out;
  out = RunWith("GCAP_SIM_CHECKS=all=record GCAP_SIM_SYMBOLIZER=none", &status);
  EXPECT_EQ(0, status);
  EXPECT_NE(std::string::npos, out.find("check_report_test+0x")) << out;
}

TEST(CheckReportEnvironment, ReadsSuppressions) {
  const std::string path = testing::TempDir() + "/suppressions";
  auto write = [&](const char* text) {
    FILE* file = fopen(path.c_str(), "w");
    ASSERT_NE(nullptr, file);
    fputs(text, file);
    fclose(file);
  };
  int status;
  write("# of this test\n\nrace:cudaMemsetAsync # both write the same\n");
  std::string out = RunWith("GCAP_SIM_SUPPRESSIONS=" + path, &status);
  EXPECT_EQ(0, status) << out;
  EXPECT_NE(std::string::npos, out.find("1 reports dropped for race:cudaMemsetAsync # both write the same")) << out;
  for (const char* bad :
       {"race:cudaMemsetAsync\n", "race:cudaMemsetAsync # \n", "races:name # why\n", "race: # why\n"}) {
    write(bad);
    out = RunWith("GCAP_SIM_SUPPRESSIONS=" + path, &status);
    EXPECT_NE(0, status) << bad;
    EXPECT_NE(std::string::npos, out.find("suppressions:1 is '")) << bad << out;
    EXPECT_NE(std::string::npos, out.find("expected check:name # reason")) << bad << out;
  }
  remove(path.c_str());
  EXPECT_NE(std::string::npos, RunWith("GCAP_SIM_SUPPRESSIONS=/no/such/file", &status).find("cannot be read"));
  EXPECT_NE(0, status);
}

}  // namespace
