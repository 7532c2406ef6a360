// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A file of events, read: what each line becomes, and what a damaged line does to the rest.
#include "doctor/events/recording.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <memory>
#include <string>

namespace {

struct Destroy {
  void operator()(gcap_doctor_recording_t* recording) const { gcap_doctor_recording_destroy(recording); }
};
using Recording = std::unique_ptr<gcap_doctor_recording_t, Destroy>;

Recording Read(std::string text) {
  FILE* file = fmemopen(text.data(), text.size(), "r");
  Recording recording(gcap_doctor_recording_read(file, "test"));
  fclose(file);
  return recording;
}

const char kFirst[] = "gcap-events\tversion=1\tpid=7\ttime=100\tprogram=a b\n";

TEST(Recording, CallsComeInTheOrderInWhichTheyBegan) {
  Recording recording = Read(std::string(kFirst) +
                             "thread\tid=1\tos=70\tname=main\n"
                             "call\tn=2\tt=20\tend=30\tthread=1\tdepth=1\tfunction=cuMemAlloc\tresult=900\n"
                             "call\tn=1\tt=10\tend=40\tthread=1\tfunction=cuMemcpyHtoDAsync\tresult=0\thost=pageable\n"
                             "end\tt=50\n");
  ASSERT_EQ(recording->num_calls, 2u);
  EXPECT_STREQ(recording->calls[0].function, "cuMemcpyHtoDAsync");
  EXPECT_EQ(recording->calls[0].host, GCAP_DOCTOR_HOST_PAGEABLE);
  EXPECT_EQ(recording->calls[0].bytes, GCAP_DOCTOR_NO_NUMBER);
  EXPECT_EQ(recording->calls[1].result, 900);
  EXPECT_EQ(recording->calls[1].depth, 1u);
  EXPECT_STREQ(recording->threads[recording->calls[1].thread].name, "main");
  EXPECT_TRUE(recording->ended);
  EXPECT_EQ(recording->pid, 7u);
  EXPECT_STREQ(recording->program, "a b");
  EXPECT_EQ(recording->damage.lines, 0u);
}

TEST(Recording, NodesBelongToTheCallThatMadeThem) {
  Recording recording = Read(std::string(kFirst) +
                             "thread\tid=1\tos=70\n"
                             "node\tgraph=3\tid=0x100000000\ttype=kernel\tcall=9\n"
                             "node\tgraph=3\tid=0x100000001\ttype=memset\tcall=4\n"
                             "call\tn=9\tthread=1\tfunction=cuLaunchKernel\tresult=0\tkernel=k\n");
  ASSERT_EQ(recording->num_nodes, 2u);
  EXPECT_EQ(recording->nodes[0].call, 0u);
  EXPECT_EQ(recording->nodes[0].id, 0x100000000u);
  EXPECT_EQ(recording->nodes[1].call, GCAP_DOCTOR_NONE);  // no call 4
  EXPECT_EQ(recording->calls[0].num_nodes, 1u);
}

TEST(Recording, ABeginHasTheNameOfItsWork) {
  Recording recording = Read(std::string(kFirst) +
                             "thread\tid=1\tos=70\n"
                             "call\tn=1\tthread=1\tfunction=cudaStreamBeginCapture\tresult=0\tlabel=graph id 3\n"
                             "call\tn=2\tthread=1\tfunction=cudaStreamEndCapture\tresult=0\n");
  ASSERT_EQ(recording->num_calls, 2u);
  EXPECT_STREQ(recording->calls[0].label, "graph id 3");
  EXPECT_EQ(recording->calls[1].label, nullptr);
}

TEST(Recording, FramesHaveTheBuildsOfTheirModules) {
  Recording recording = Read(std::string(kFirst) +
                             "module\tid=1\tpath=/a.so\tbuild=12ab\n"
                             "module\tid=2\tpath=/b.so\n"
                             "frame\tid=1\tmodule=/a.so\tloaded=1\toffset=0x10\n"
                             "frame\tid=2\tmodule=/b.so\tloaded=2\toffset=0x10\n"
                             "frame\tid=3\tmodule=/c.so\toffset=0x10\n"
                             "frame\tid=4\tmodule=/d.so\tloaded=3\toffset=0x10\n");
  ASSERT_EQ(recording->num_frames, 3u);
  EXPECT_STREQ(recording->frames[0].build, "12ab");
  EXPECT_STREQ(recording->frames[1].build, "");
  EXPECT_EQ(recording->frames[2].build, nullptr);  // as an older recorder writes it
  EXPECT_EQ(recording->damage.lines, 1u);
  EXPECT_STREQ(recording->damage.reason, "a frame of a module not defined");
}

TEST(Recording, StacksHaveTheirFrames) {
  Recording recording = Read(std::string(kFirst) +
                             "thread\tid=1\tos=70\n"
                             "frame\tid=1\tmodule=/usr/lib/libcuda.so.1\toffset=0x10\tfunction=cuMemAlloc_v2\n"
                             "frame\tid=2\tmodule=/opt/my\\tapp\toffset=0x20\n"
                             "pyframe\tid=3\tfile=a.py\tline=12\tfunction=body\n"
                             "stack\tid=1\tc=1,2\tpy=3\n"
                             "stack\tid=2\tc=1\twhy=no interpreter\n"
                             "call\tn=1\tthread=1\tfunction=cuMemAlloc\tresult=0\tstack=1\n");
  ASSERT_EQ(recording->num_calls, 1u);
  const uint32_t stack = recording->calls[0].stack;
  const gcap_doctor_event_frame_t& c = recording->frames[gcap_doctor_recording_c_frame(recording.get(), stack)];
  EXPECT_STREQ(c.module, "/opt/my\tapp");
  const gcap_doctor_event_frame_t& python =
      recording->frames[gcap_doctor_recording_python_frame(recording.get(), stack)];
  EXPECT_STREQ(python.file, "a.py");
  EXPECT_EQ(python.line, 12u);
  EXPECT_STREQ(recording->stacks[1].why, "no interpreter");
}

TEST(Recording, LaunchesAndTimesAddUp) {
  Recording recording = Read(std::string(kFirst) +
                             "exec\tid=2\tgraph=1\n"
                             "clone\texec=2\tfrom=0x100000000\tto=0x200000000\n"
                             "replays\texec=2\tcount=10\n"
                             "replays\texec=2\tcount=5\tfailed=1\n"
                             "time\texec=2\tnode=0x200000000\tcount=15\tns=3000\n"
                             "whole\texec=2\tcount=15\tns=3100\n");
  ASSERT_EQ(recording->num_execs, 1u);
  EXPECT_EQ(recording->execs[0].replays, 15u);
  EXPECT_EQ(recording->execs[0].failed_replays, 1u);
  EXPECT_EQ(recording->execs[0].whole_ns, 3100u);
  EXPECT_EQ(recording->clones[0].to, recording->times[0].node);
}

TEST(Recording, DamagedLinesAreCountedAndTheRestIsRead) {
  const char* damaged[] = {
      "call\tn=1\tthread=9\tfunction=f\tresult=0",   // a thread that was not defined
      "call\tn=1\tfunction=f\tresult=0",             // no thread
      "call\tn=x\tthread=1\tfunction=f\tresult=0",   // no number
      "call\tn=-1\tthread=1\tfunction=f\tresult=0",  // no number either
      "call\tn=5000000000\tthread=1\tfunction=f\tresult=0",
      "stack\tid=1\tc=77",
      "thread\tid=4000000000\tos=1",
      "note\ttext",
      "note\ttext=a\\qb",
      "replays\texec=77\tcount=1",
      "\tid=1",
  };
  for (const char* line : damaged) {
    Recording recording = Read(std::string(kFirst) + "thread\tid=1\tos=70\n" + line + "\n" +
                               "call\tn=2\tthread=1\tfunction=cuMemFree\tresult=0\n");
    EXPECT_EQ(recording->damage.lines, 1u) << line;
    EXPECT_EQ(recording->damage.first, 3u) << line;
    EXPECT_NE(recording->damage.reason, nullptr) << line;
    ASSERT_EQ(recording->num_calls, 1u) << line;
    EXPECT_STREQ(recording->calls[0].function, "cuMemFree");
  }
}

// One large id would cost memory for all below it.
TEST(Recording, IdsThatNoRecorderGivesAreDamage) {
  for (const char* line : {"thread\tid=%u\tos=1\n", "stream\tid=%u\n", "stack\tid=%u\n", "exec\tid=%u\tgraph=1\n",
                           "frame\tid=%u\tmodule=m\toffset=0x1\n", "pyframe\tid=%u\tfile=f\tline=1\tfunction=g\n"}) {
    char good[80], bad[80];
    snprintf(good, sizeof(good), line, 1u << 16);
    snprintf(bad, sizeof(bad), line, 1u << 17);
    Recording recording = Read(std::string(kFirst) + good + bad);
    EXPECT_EQ(recording->damage.lines, 1u) << line;
    EXPECT_EQ(recording->damage.first, 3u) << line;
  }
}

TEST(Recording, IdsMayGrowWithTheFile) {
  std::string text = kFirst;
  for (unsigned id = 1; id <= 200000; ++id) text += "stack\tid=" + std::to_string(id) + "\n";
  Recording recording = Read(text);
  EXPECT_EQ(recording->damage.lines, 0u);
  EXPECT_EQ(recording->num_stacks, 200000u);
}

TEST(Recording, KindsAndKeysOfALaterWriterAreSkipped) {
  Recording recording = Read(std::string(kFirst) + "weather\tsky=blue\nnote\ttext=hello\tcolour=red\n");
  EXPECT_EQ(recording->damage.lines, 0u);
  ASSERT_EQ(recording->num_notes, 1u);
  EXPECT_STREQ(recording->notes[0], "hello");
}

TEST(Recording, FileThatIsNoRecordingSaysSo) {
  EXPECT_EQ(Read("PK\x03\x04 something\n")->damage.first, 1u);
  EXPECT_STREQ(Read("\n")->damage.reason, "the first line is not that of a file of events");
  Recording later = Read("gcap-events\tversion=2\n");
  EXPECT_STREQ(later->damage.reason, "the version of the format is not 1");
}

}  // namespace
