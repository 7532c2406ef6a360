// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the environment asks of the recorder, and what it says where it cannot record: one sentence, and the program
// runs.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/doctor/record/program.h"

namespace {

void* const kStream = Handle(0x1000);
void* const kGraph = Handle(0x3000);

void Capture() {
  Begin(kStream);
  Launch(kStream, kGraph, nullptr);
  End(kStream, kGraph);
}

// The program ran, and the sentence is on stderr, once, and in the file.
void ExpectSaid(const Recorded& recorded, const std::string& sentence) {
  EXPECT_EQ(recorded.status, 0);
  EXPECT_NE(recorded.said.find("gcap-doctor: "), std::string::npos);
  EXPECT_NE(recorded.said.find(sentence), std::string::npos) << recorded.said;
  EXPECT_EQ(recorded.said.find('\n'), recorded.said.size() - 1) << recorded.said;
  ASSERT_NE(recorded.events, nullptr);
  ASSERT_EQ(recorded.events->num_notes, 1u) << recorded.text;
  EXPECT_NE(std::string(recorded.events->notes[0]).find(sentence), std::string::npos);
}

TEST(RecorderSettings, NothingIsSaidWhereAllIsWell) {
  Recorded recorded = Record(Capture);
  EXPECT_EQ(recorded.said, "");
  EXPECT_EQ(recorded.events->num_notes, 0u);
  EXPECT_NE(std::string(recorded.events->program).find("settings_test"), std::string::npos);
}

TEST(RecorderSettings, FileThatCannotBeMadeIsSaid) {
  Recorded recorded = Record(Capture, {{"GCAP_DOCTOR_EVENTS", "/nowhere/at/all"}});
  EXPECT_EQ(recorded.events, nullptr);
  EXPECT_EQ(recorded.status, 0);
  EXPECT_NE(recorded.said.find("'/nowhere/at/all."), std::string::npos) << recorded.said;
  EXPECT_NE(recorded.said.find("No such file or directory"), std::string::npos) << recorded.said;
}

TEST(RecorderSettings, PathThatIsTooLongIsSaid) {
  Recorded recorded = Record(Capture, {{"GCAP_DOCTOR_EVENTS", "/tmp/" + std::string(5000, 'x')}});
  EXPECT_EQ(recorded.status, 0);
  EXPECT_NE(recorded.said.find("File name too long"), std::string::npos) << recorded.said.substr(0, 200);
}

TEST(RecorderSettings, CuptiThatCannotBeLoadedIsSaid) {
  ExpectSaid(Record(Capture, {{"GCAP_DOCTOR_CUPTI", "/nowhere/libcupti.so"}}),
             "GCAP_DOCTOR_CUPTI is '/nowhere/libcupti.so', which cannot be loaded");
}

TEST(RecorderSettings, LibraryThatIsNoCuptiIsSaid) {
  ExpectSaid(Record(Capture, {{"GCAP_DOCTOR_CUPTI", "libm.so.6"}}), "has no function cuptiGetVersion");
  ExpectSaid(Record(Capture, {{"GCAP_DOCTOR_CUPTI", "./" + OldFakePath()}}), "has no function cuptiGetGraphNodeId");
}

TEST(RecorderSettings, CuptiThatIsTooOldIsSaid) {
  ExpectSaid(Record(Capture, {{"FAKE_CUPTI_VERSION", "17"}}), "has version 17, which is older than CUDA 12.0's (18)");
}

TEST(RecorderSettings, AnotherToolIsSaid) {
  ExpectSaid(Record(Capture, {{"FAKE_CUPTI_SUBSCRIBE", "39"}}), "another tool uses CUPTI in this process");
}

TEST(RecorderSettings, DriverThatIsTooOldIsSaid) {
  ExpectSaid(Record(Capture, {{"FAKE_CUPTI_SUBSCRIBE", "14"}}), "the driver is older than CUPTI's version 130000");
  ExpectSaid(Record(Capture, {{"FAKE_CUPTI_SUBSCRIBE", "15"}}), "CUPTI does not work with this driver");
}

TEST(RecorderSettings, OtherRefusalsAreSaid) {
  ExpectSaid(Record(Capture, {{"FAKE_CUPTI_SUBSCRIBE", "35"}}), "lacks the right");
  ExpectSaid(Record(Capture, {{"FAKE_CUPTI_SUBSCRIBE", "999"}}), "CUPTI refuses (999, FAKE_ERROR)");
}

TEST(RecorderSettings, NoCuptiAnywhereIsSaid) {
  Recorded recorded = Record(Capture, {{"GCAP_DOCTOR_CUPTI", ""}, {"CUDA_HOME", ""}, {"CUDA_PATH", ""}});
  if (recorded.events->cupti != 0) GTEST_SKIP() << "this machine has a CUPTI, which the recorder found";
  ExpectSaid(recorded, "no CUPTI was found");
}

TEST(RecorderSettings, CuptiIsFoundInAToolkit) {
  char folder[] = "/tmp/gcap_toolkit.XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string library = std::string(folder) + "/extras/CUPTI/lib64/";
  ASSERT_EQ(system(("mkdir -p " + library).c_str()), 0);
  // What is loaded already goes first, so it is a copy.
  ASSERT_EQ(system(("cp " + FakePath() + " " + library + "libcupti.so.12").c_str()), 0);
  Recorded recorded = Record([] {}, {{"GCAP_DOCTOR_CUPTI", ""}, {"CUDA_HOME", folder}});
  EXPECT_EQ(recorded.said, "");
  EXPECT_EQ(recorded.events->cupti, 130000u);
  ASSERT_EQ(system(("rm -r " + std::string(folder)).c_str()), 0);
}

TEST(RecorderSettings, BadValuesAreSaidAndDefaultsAreUsed) {
  for (const char* bad : {"lots", "0", "-5", "12x", "99999999999999999999"}) {
    Recorded recorded = Record(Capture, {{"GCAP_DOCTOR_LIMIT_MB", bad}});
    EXPECT_NE(recorded.said.find("GCAP_DOCTOR_LIMIT_MB is '" + std::string(bad) + "'"), std::string::npos);
    recorded.Call("cuLaunchKernel");
  }
  Recorded recorded = Record(Capture, {{"GCAP_DOCTOR_TIME", "yes"}});
  EXPECT_NE(recorded.said.find("GCAP_DOCTOR_TIME is 'yes', expected 0 or 1: 0 is used."), std::string::npos);
  recorded.Call("cuLaunchKernel");
}

TEST(RecorderSettings, SecondProgramOfAProcessHasItsOwnFile) {
  if (getenv("GCAP_TEST_SECOND") != nullptr) {
    // The program after exec(), as the driver starts it; its stderr is a pipe that nobody reads.
    void* library = dlopen(RecorderPath().c_str(), RTLD_NOW);
    ASSERT_NE(library, nullptr);
    auto* initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
    ASSERT_EQ(initialize(), 1);
    return;
  }
  const std::string victim = Prefix() + ".victim";
  ASSERT_EQ(system(("printf kept > " + victim).c_str()), 0);
  Recorded recorded = Record([&victim] {
    Capture();
    // Where the second file will be somebody laid a link.
    const std::string second = Prefix() + "." + std::to_string(getpid()) + ".2.events";
    unlink(second.c_str());
    IN_PROGRAM(symlink(victim.c_str(), second.c_str()) == 0);
    int ends[2];
    IN_PROGRAM(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    close(ends[0]);
    setenv("GCAP_TEST_SECOND", "1", 1);
    setenv("GCAP_DOCTOR_CUPTI", "/nowhere/libcupti.so", 1);
    for (const char* name : {"XML_OUTPUT_FILE", "TEST_PREMATURE_EXIT_FILE", "TEST_TOTAL_SHARDS"}) unsetenv(name);
    execl("/proc/self/exe", "second", "--gtest_filter=*SecondProgramOfAProcess*", nullptr);
    IN_PROGRAM(false);
  });
  EXPECT_EQ(recorded.status, 0);
  recorded.Call("cuStreamEndCapture");
  const std::string second = recorded.path.substr(0, recorded.path.size() - strlen("events")) + "2.events";
  struct stat status;
  ASSERT_EQ(lstat(second.c_str(), &status), 0) << second;
  EXPECT_EQ(status.st_mode, static_cast<mode_t>(S_IFREG | 0600));
  EXPECT_GT(status.st_size, 0);
  ASSERT_EQ(stat(victim.c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 4);
}

TEST(RecorderSettings, ProcessThatMayHaveNoLargeFilesLives) {
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit low = {256 << 10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  Recorded recorded = Record([] {
    Begin(kStream);
    for (int i = 0; i < 10000; ++i) Wait(kStream);
  });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(recorded.status, 0);
  EXPECT_EQ(recorded.said, "");
  EXPECT_LT(recorded.text.size(), 256u << 10);
  EXPECT_EQ(recorded.events->calls[recorded.events->num_calls - 1].number, 10001u);
}

// Neither the first line nor the sentence that there is none, in a file or not, ends the program.
TEST(RecorderSettings, ProcessThatMayHaveNoFilesLives) {
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  for (rlim_t bytes : {0, 1 << 10, 64 << 10, 65 << 10}) {
    SCOPED_TRACE(bytes);
    const struct rlimit low = {bytes, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
    Recorded recorded = Record(Capture);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(recorded.status, 0);
    EXPECT_EQ(recorded.events, nullptr);
    // stderr is a file here, as long as the limit lets it be.
    EXPECT_EQ(recorded.said.find("RLIMIT_FSIZE lets") != std::string::npos, bytes != 0) << recorded.said;
  }
}

TEST(RecorderSettings, ProcessThatLowersWhatItMayHaveLives) {
  Recorded recorded = Record([] {
    Begin(kStream);
    const struct rlimit none = {0, 0};
    IN_PROGRAM(setrlimit(RLIMIT_FSIZE, &none) == 0);
    for (int i = 0; i < 10; ++i) Wait(kStream);
    // Nor does the signal wait for the program, or for another write of its own to end it.
    sigset_t pending;
    IN_PROGRAM(sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 0);
  });
  EXPECT_EQ(recorded.status, 0);
  EXPECT_FALSE(recorded.events->ended);
  EXPECT_EQ(recorded.text.back(), '\n');
}

TEST(RecorderSettings, FirstLineNamesTheRun) {
  EXPECT_NE(Record(Capture, {{"GCAP_DOCTOR_RUN", "7.8\t"}}).text.find("\trun=7.8\\t\tprogram="), std::string::npos);
  EXPECT_EQ(Record(Capture).text.find("\trun="), std::string::npos);
}

TEST(RecorderSettings, WriteThatFailsIsSaidAndLeavesWholeLines) {
  Recorded recorded = Record([] {
    signal(SIGXFSZ, SIG_IGN);
    Begin(kStream);
    const struct rlimit limit = {32 << 10, 32 << 10};
    IN_PROGRAM(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (int i = 0; i < 2000; ++i) Wait(kStream);
    End(kStream, kGraph);
  });
  EXPECT_EQ(recorded.said, "");
  EXPECT_FALSE(recorded.events->ended);
  EXPECT_GT(recorded.Calls("cuStreamWaitEvent").size(), 20u);
  EXPECT_EQ(recorded.text.back(), '\n');
}

TEST(RecorderSettings, InitializedTwiceIsInitializedOnce) {
  Recorded recorded = Record([] {
    IN_PROGRAM(initialize_injection() == 1);
    Capture();
  });
  recorded.Call("cuLaunchKernel");
  EXPECT_EQ(recorded.said, "");
}

}  // namespace
