// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A file of events, read: what each line becomes, and what a damaged line does to the rest.
#include "doctor/events/recording.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <memory>
#include <string>
#include <vector>

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
  for (const char* version : {"0", "4"}) {
    Recording other = Read("gcap-events\tversion=" + std::string(version) + "\n");
    EXPECT_STREQ(other->damage.reason, "the version of the format is none of 1, 2 and 3");
  }
}

// --- Version 2 -------------------------------------------------------------------------------------------------------

const char kSecond[] = "gcap-events\tversion=2\tpid=7\ttime=100\tprogram=a b\nthread\tid=1\tos=70\n";

TEST(RecordingOfVersion2, CallsHaveInCommonWhatALineSays) {
  Recording recording =
      Read(std::string(kSecond) +
           "stream\tid=1\n"
           "like\tid=1\tthread=1\tfunction=cuLaunchKernel\tresult=0\tstream=1\tkernel=k\ttype=kernel\n"
           "call\tn=1\tt=10\tns=5\tlike=1\tin=3\tnode=0x100000000\n"
           "call\tn=2\tt=20\tns=7\tlike=1\tin=3\tnode=0x100000004\tback=4\n"
           "call\tn=3\tt=30\tns=1\tlike=1\tresult=900\n");
  ASSERT_EQ(recording->damage.lines, 0u) << recording->damage.reason;
  ASSERT_EQ(recording->num_calls, 3u);
  EXPECT_EQ(recording->calls[1].end_ns, 27u);
  EXPECT_STREQ(recording->calls[1].kernel, "k");
  EXPECT_EQ(recording->calls[1].stream, 0u);
  EXPECT_EQ(recording->calls[1].num_nodes, 1u);
  EXPECT_EQ(recording->calls[1].result, 0);
  EXPECT_EQ(recording->calls[2].result, 900);
  EXPECT_EQ(recording->calls[2].num_nodes, 0u);
  ASSERT_EQ(recording->num_nodes, 2u);
  EXPECT_STREQ(recording->nodes[1].type, "kernel");
  EXPECT_EQ(recording->nodes[1].graph, 3u);
  ASSERT_EQ(recording->num_edges, 1u);
  EXPECT_EQ(recording->edges[0].from, 0x100000000u);
  EXPECT_EQ(recording->edges[0].to, 0x100000004u);
}

TEST(RecordingOfVersion2, ALineMayBeForMany) {
  Recording recording = Read(std::string(kSecond) +
                             "node\tgraph=1\tid=0x10\ttype=memset\tcount=1024\n"
                             "edge\tgraph=1\tfrom=0x10\tto=0x12\tcount=3\n"
                             "clone\texec=1\tfrom=0x10\tto=0x20\tcount=2\n");
  EXPECT_EQ(recording->damage.lines, 0u);
  ASSERT_EQ(recording->num_nodes, 1024u);
  EXPECT_EQ(recording->nodes[1023].id, 0x10u + 1023);
  ASSERT_EQ(recording->num_edges, 3u);
  EXPECT_EQ(recording->edges[2].from, 0x12u);
  EXPECT_EQ(recording->edges[2].to, 0x14u);
  ASSERT_EQ(recording->num_clones, 2u);
  EXPECT_EQ(recording->clones[1].to, 0x21u);
}

TEST(RecordingOfVersion2, FramesHaveThePathsOfTheirModules) {
  Recording recording =
      Read(std::string(kSecond) + "module\tid=1\tpath=/a.so\tbuild=12ab\nframe\tid=1\tloaded=1\toffset=0x10\n");
  ASSERT_EQ(recording->num_frames, 1u);
  EXPECT_STREQ(recording->frames[0].module, "/a.so");
  EXPECT_STREQ(recording->frames[0].build, "12ab");
}

TEST(RecordingOfVersion2, StacksHaveFramesInCommon) {
  Recording recording = Read(std::string(kSecond) +
                             "module\tid=1\tpath=/a.so\n"
                             "frame\tid=1\tloaded=1\toffset=0x10\nframe\tid=2\tloaded=1\toffset=0x20\n"
                             "frame\tid=3\tloaded=1\toffset=0x30\npyframe\tid=4\tfile=a.py\tline=1\tfunction=f\n"
                             "stack\tid=1\tc=1,2,3\tpy=4\n"
                             "stack\tid=2\tc=3\tc_of=1\tc_from=1\tpy_of=1\n"
                             "stack\tid=3\tc_of=2\n"
                             "like\tid=1\tthread=1\tfunction=f\tresult=0\tkernel=k\nlike\tid=2\tlike=1\tstack=3\n"
                             "call\tn=1\tlike=2\n");
  ASSERT_EQ(recording->damage.lines, 0u) << recording->damage.reason;
  ASSERT_EQ(recording->num_stacks, 3u);
  const gcap_doctor_event_stack_t& last = recording->stacks[2];
  ASSERT_EQ(last.num_c, 3u);
  EXPECT_EQ(std::vector<uint32_t>(last.c, last.c + 3), (std::vector<uint32_t>{2, 1, 2}));
  EXPECT_EQ(last.num_python, 0u);
  EXPECT_EQ(recording->stacks[1].num_python, 1u);
  ASSERT_EQ(recording->num_calls, 1u);
  EXPECT_EQ(recording->calls[0].stack, 2u);
  EXPECT_STREQ(recording->calls[0].kernel, "k");
}

// Each stack has all frames of the one before, and one more.
TEST(RecordingOfVersion2, StacksDoNotGrowForEver) {
  std::string text =
      std::string(kSecond) + "module\tid=1\tpath=/a.so\nframe\tid=1\tloaded=1\toffset=0x10\n" + "stack\tid=1\tc=1\n";
  for (int id = 2; id <= 1100; ++id) {
    text += "stack\tid=" + std::to_string(id) + "\tc=1\tc_of=" + std::to_string(id - 1) + "\n";
  }
  Recording recording = Read(text);
  EXPECT_EQ(recording->num_stacks, 1024u);
  EXPECT_EQ(recording->damage.lines, 76u);
  EXPECT_STREQ(recording->damage.reason, "a stack of more than 1024 frames");
}

TEST(RecordingOfVersion2, DamagedLinesAreCounted) {
  const char* damaged[] = {
      "call\tn=1\tlike=2",
      "call\tn=1\tlike=1\tnode=0x10",                   // in no graph
      "call\tn=1\tlike=1\tin=1\tnode=0x10\tback=0x11",  // behind a node below 0
      "call\tn=1\tlike=2000000000\tt=1",
      "like\tid=2\tthread=1\tresult=0",
      "like\tid=2\tlike=7\tstack=1",
      "stack\tid=1\tc_of=1",
      "stack\tid=1\tpy_of=x",
      "like\tid=2\tthread=9\tfunction=f\tresult=0",
      "like\tid=4000000000\tthread=1\tfunction=f\tresult=0",
      "node\tgraph=1\tid=0x10\ttype=memset\tcount=0",
      "node\tgraph=1\tid=0x10\ttype=memset\tcount=1025",
      "edge\tgraph=1\tfrom=1\tto=2\tcount=99999999999999999999",
      "clone\texec=1\tfrom=1\tto=2\tcount=x",
      "frame\tid=1\toffset=0x10",
      "ring\tat=0\tsize=10\tcount=1",
      "ring\tat=1000\tsize=10\tcount=257",
      "ring\tat=1000\tsize=9999999999999999999\tcount=2",
      "segment\tn=x",
  };
  for (const char* line : damaged) {
    Recording recording = Read(std::string(kSecond) + "like\tid=1\tthread=1\tfunction=f\tresult=0\ttype=kernel\n" +
                               line + "\ncall\tn=2\tlike=1\n");
    EXPECT_EQ(recording->damage.lines, 1u) << line;
    EXPECT_EQ(recording->damage.first, 4u) << line;
    ASSERT_EQ(recording->num_calls, 1u) << line;
    EXPECT_EQ(recording->num_nodes, 0u) << line;
  }
}

// A file that reached its limit: a beginning, and segments of 200 bytes from 1000 on.
std::string Ring(const std::string& beginning, const std::vector<std::string>& segments) {
  std::string text = std::string(kSecond) + "like\tid=1\tthread=1\tfunction=f\tresult=0\n" + beginning +
                     "ring\tat=1000\tsize=200\tcount=" + std::to_string(segments.size()) + "\n";
  text.resize(1000, '\0');
  for (const std::string& segment : segments) {
    text += segment;
    text.resize(text.size() + 200 - segment.size(), '\0');
  }
  return text;
}

std::string Call(int number) { return "call\tn=" + std::to_string(number) + "\tlike=1\n"; }

TEST(RecordingOfVersion2, SegmentsAreReadInTheirOrder) {
  Recording recording = Read(Ring(Call(1) + Call(2), {"segment\tn=4\n" + Call(9) + "note\ttext=last\nend\tt=9\n",
                                                      "segment\tn=2\n" + Call(6) + "note\ttext=early\n",
                                                      "segment\tn=3\n" + Call(7) + Call(8) + "note\ttext=late\n"}));
  EXPECT_EQ(recording->damage.lines, 0u);
  EXPECT_TRUE(recording->reached_limit);
  EXPECT_TRUE(recording->ended);
  ASSERT_EQ(recording->num_calls, 6u);
  EXPECT_EQ(recording->gap, 2u);
  EXPECT_EQ(recording->left_out, 3u);
  ASSERT_EQ(recording->num_notes, 4u);
  EXPECT_NE(std::string(recording->notes[0])
                .find("about 3 calls are left out, those between call 2 (f, at 0.000 s) and "
                      "call 6 (f,"),
            std::string::npos)
      << recording->notes[0];
  EXPECT_STREQ(recording->notes[1], "early");
  EXPECT_STREQ(recording->notes[2], "late");
  EXPECT_STREQ(recording->notes[3], "last");
}

// An exception has a number among those of the calls.
TEST(RecordingOfVersion2, AnExceptionMayBeTheLastOneBeforeTheRing) {
  const std::string raise = "raise\tn=3\tthread=1\ttype=KeyError\n";
  Recording recording = Read(Ring(Call(2) + raise, {"segment\tn=2\nnote\ttext=no call\n", "segment\tn=3\n"}));
  EXPECT_EQ(recording->damage.lines, 0u);
  EXPECT_EQ(recording->gap, 2u);
  EXPECT_EQ(recording->left_out, 0u);
  recording = Read(Ring(Call(2), {"segment\tn=2\n" + std::string("raise\tn=7\tthread=1\ttype=KeyError\n") + Call(9)}));
  EXPECT_EQ(recording->gap, 1u);
  EXPECT_EQ(recording->left_out, 4u);
}

// --- Version 3 -------------------------------------------------------------------------------------------------------

TEST(RecordingOfVersion3, ALineIsForAsManyCallsAsItSays) {
  Recording recording = Read(
      "gcap-events\tversion=3\tpid=7\ttime=100\tprogram=a\nthread\tid=1\tos=70\n"
      "like\tid=1\tthread=1\tfunction=f\tresult=0\n"
      "call\tn=1\tt=5\tns=1\tlike=1\n"
      "call\tn=90\tt=900\tns=7\tlike=1\tcount=40\tfirst=3\tsince=30\n");
  EXPECT_EQ(recording->damage.lines, 0u);
  ASSERT_EQ(recording->num_calls, 2u);
  EXPECT_EQ(recording->calls[0].count, 1u);
  EXPECT_EQ(recording->calls[0].since_ns, 5u);
  const gcap_doctor_event_call_t& last = recording->calls[1];
  EXPECT_EQ(last.number, 90u);
  EXPECT_EQ(last.count, 40u);
  EXPECT_EQ(last.since_ns, 30u);
  EXPECT_EQ(last.start_ns, 900u);
  EXPECT_EQ(last.end_ns, 907u);
  EXPECT_EQ(gcap_doctor_recording_count_calls(recording.get()), 41u);
}

TEST(RecordingOfVersion3, MoreCallsThanNumbersAreDamage) {
  const char* const damaged[] = {"count=0",  "count=2",          "count=9\tfirst=3",
                                 "first=11", "count=x\tfirst=1", "count=18446744073709551615\tfirst=0"};
  for (const char* fields : damaged) {
    Recording recording = Read(std::string(kSecond) + "call\tn=10\tthread=1\tfunction=f\tresult=0\t" + fields +
                               "\ncall\tn=12\tthread=1\tfunction=g\tresult=0\n");
    EXPECT_EQ(recording->damage.lines, 1u) << fields;
    EXPECT_EQ(gcap_doctor_recording_count_calls(recording.get()), 1u) << fields;
  }
}

// Calls of a count that reaches back before the ring are not left out.
TEST(RecordingOfVersion3, WhatIsCountedInTheRingIsNotLeftOut) {
  const std::string counted = "call\tn=30\tthread=1\tfunction=f\tresult=0\tcount=20\tfirst=";
  EXPECT_EQ(Read(Ring(Call(2), {"segment\tn=2\n" + counted + "6\n"}))->left_out, 3u);
  EXPECT_EQ(Read(Ring(Call(2), {"segment\tn=2\n" + counted + "1\n"}))->left_out, 0u);
}

TEST(RecordingOfVersion2, WhatIsLeftOutOfTheRingIsNoDamage) {
  Recording recording =
      Read(Ring(Call(2), {"segment\tn=2\nlike\tid=4\tlike=3\tstack=9\ncall\tn=7\tlike=4\n" + Call(9)}));
  EXPECT_EQ(recording->damage.lines, 0u) << recording->damage.reason;
  EXPECT_EQ(recording->num_calls, 2u);
}

TEST(RecordingOfVersion2, NotesTellWhetherTheEndIsLeftOut) {
  const struct {
    const char *first, *note;
    bool is_cut;
  } cases[] = {
      {"gcap-events\tversion=1\tpid=7\ttime=1\tprogram=a\nthread\tid=1\tos=70\n", "256 MB, the limit", true},
      {kSecond, "PyTorch does not tell its blocks (RuntimeError: beyond the limit)", false},
      {kSecond, "the recording stopped: writing to its file failed (No space left on device).", true},
  };
  for (const auto& one : cases) {
    Recording recording =
        Read(std::string(one.first) + "call\tn=1\tthread=1\tfunction=f\tresult=0\nnote\ttext=" + one.note + "\n");
    EXPECT_EQ(recording->reached_limit, one.is_cut) << one.note;
    EXPECT_EQ(recording->gap, one.is_cut ? 1u : 0u) << one.note;
  }
}

TEST(RecordingOfVersion2, RingThatDidNotTurnLeavesNothingOut) {
  Recording recording = Read(Ring(Call(1), {"segment\tn=1\n" + Call(2), "segment\tn=2\n" + Call(3), ""}));
  EXPECT_EQ(recording->num_calls, 3u);
  EXPECT_FALSE(recording->reached_limit);
  EXPECT_EQ(recording->num_notes, 0u);
  EXPECT_EQ(Read(Ring(Call(1), {"", ""}))->num_calls, 1u);
}

// The program died as it prepared the place of segment 1 for segment 4.
TEST(RecordingOfVersion2, SegmentWithoutItsFirstLineIsNone) {
  Recording recording = Read(Ring(Call(1), {std::string(20, '\0') + "call\tn=2\tlike=1\n", "segment\tn=2\n" + Call(3),
                                            "segment\tn=3\n" + Call(4)}));
  EXPECT_EQ(recording->damage.lines, 0u);
  EXPECT_EQ(recording->num_calls, 3u);
  EXPECT_TRUE(recording->reached_limit);
  EXPECT_EQ(recording->left_out, 1u);
}

TEST(RecordingOfVersion2, LinesThatWereNotFinishedAreNone) {
  Recording recording = Read(std::string(kSecond) + "like\tid=1\tthread=1\tfunction=f\tresult=0\n" + Call(1) +
                             "call\tn=2\tli" + std::string(30, '\0') + Call(3));
  EXPECT_EQ(recording->damage.lines, 0u);
  ASSERT_EQ(recording->num_calls, 2u);
  EXPECT_EQ(recording->calls[1].number, 3u);
}

// What a line of the ring refers to may be gone with an older segment.
TEST(RecordingOfVersion2, WhatIsLeftOutIsNoDamage) {
  Recording recording = Read(Ring(Call(1), {"segment\tn=7\ncall\tn=50\tthread=3\tfunction=g\tresult=0\tstack=9\n",
                                            "segment\tn=8\nreplays\texec=5\tcount=2\nwhole\texec=5\tcount=1\tns=1\n"}));
  EXPECT_EQ(recording->damage.lines, 0u) << recording->damage.reason;
  ASSERT_EQ(recording->num_calls, 2u);
  EXPECT_EQ(recording->calls[1].stack, GCAP_DOCTOR_NONE);
  EXPECT_EQ(recording->threads[recording->calls[1].thread].id, 3u);
}

TEST(RecordingOfVersion2, RingBeforeItsLineIsDamage) {
  Recording recording = Read(std::string(kSecond) + "ring\tat=10\tsize=20\tcount=1\n" + "end\tt=1\n");
  EXPECT_STREQ(recording->damage.reason, "a ring before its own line");
}

// --- The user's Python frame ------------------------------------------------------------------------------------------

struct Place {
  std::string file, function;
};

// The file of the frame that comes first, of a stack that is innermost first; `folder` is where the program ran.
std::string First(const std::vector<Place>& places, const std::string& folder = "/home/me") {
  std::string text = std::string(kFirst) + "system\tfolder=" + folder + "\n", ids;
  if (folder.empty()) text = kFirst;
  for (size_t i = 0; i < places.size(); ++i) {
    const std::string id = std::to_string(i + 1);
    text += "pyframe\tid=" + id + "\tfile=" + places[i].file + "\tline=1\tfunction=" + places[i].function + "\n";
    ids += (i != 0 ? "," : "") + id;
  }
  Recording recording = Read(text + "stack\tid=1\tpy=" + ids + "\n");
  EXPECT_EQ(recording->damage.lines, 0u);
  const uint32_t frame = gcap_doctor_recording_user_frame(recording.get(), 0);
  return frame != GCAP_DOCTOR_NONE ? recording->frames[frame].file : "none";
}

TEST(UserFrame, IsOfTheProgramWhereverAFrameworkLies) {
  const Place main = {"/srv/serve/main.py", "<module>"}, model = {"/srv/serve/models/net.py", "forward"};
  for (const char* framework :
       {"/opt/target/warp/_src/context.py", "/home/me/src/warp/warp/context.py",
        "/usr/lib/python3.12/site-packages/warp/context.py", "/usr/lib/python3.12/contextlib.py", "<frozen runpy>",
        "/srv/serve/.venv/lib/python3.12/site-packages/warp/context.py"}) {
    EXPECT_EQ(First({{framework, "set_stream"}, {framework, "numpy"}, model, main}), model.file) << framework;
    EXPECT_EQ(First({{framework, "set_stream"}, main}), main.file) << framework;
  }
}

TEST(UserFrame, IsOfTheFolderInWhichAScriptLies) {
  const Place framework = {"/opt/target/warp/context.py", "f"};
  EXPECT_EQ(First({framework, {"/home/me/net.py", "forward"}, {"serve.py", "<module>"}}), "/home/me/net.py");
  EXPECT_EQ(First({framework, {"/home/me/app/net.py", "forward"}, {"./app/serve.py", "<module>"}}),
            "/home/me/app/net.py");
  EXPECT_EQ(First({framework, {"/home/other/net.py", "forward"}, {"app/serve.py", "<module>"}}), "app/serve.py");
  // A folder whose name begins alike is another one.
  EXPECT_EQ(First({{"/srv/serve2/net.py", "f"}, {"/srv/serve/main.py", "<module>"}}), "/srv/serve/main.py");
  // An older recorder tells no folder: what is not installed.
  EXPECT_EQ(First({{"/x/site-packages/torch/a.py", "f"}, {"/home/me/net.py", "forward"}, {"serve.py", "<module>"}}, ""),
            "/home/me/net.py");
}

TEST(UserFrame, OfAThreadIsTheProgramsToo) {
  Recording recording = Read(std::string(kFirst) +
                             "pyframe\tid=1\tfile=/srv/serve/main.py\tline=1\tfunction=<module>\n"
                             "pyframe\tid=2\tfile=/opt/warp/context.py\tline=1\tfunction=f\n"
                             "pyframe\tid=3\tfile=/srv/serve/load.py\tline=1\tfunction=load\n"
                             "pyframe\tid=4\tfile=/usr/lib/python3.12/threading.py\tline=1\tfunction=_bootstrap\n"
                             "stack\tid=1\tpy=2,3,4\n"
                             "stack\tid=2\tpy=2,1\n");
  EXPECT_EQ(gcap_doctor_recording_user_frame(recording.get(), 0), 2u);
}

TEST(UserFrame, OfAnInstalledProgramIsItsPackage) {
  const std::string packages = "/x/lib/python3.12/site-packages/";
  const Place torch = {packages + "torch/nn.py", "call"}, model = {packages + "vllm/model.py", "forward"};
  EXPECT_EQ(First({torch, model, {packages + "vllm/cli/main.py", "main"}, {"/x/bin/vllm", "<module>"}}), model.file);
  EXPECT_EQ(First({torch, model, {packages + "vllm/cli/__main__.py", "<module>"}, {"<frozen runpy>", "_run_code"}}),
            model.file);
  // A module without a package of its own.
  EXPECT_EQ(First({torch, {packages + "tool.py", "<module>"}}), packages + "tool.py");
}

TEST(UserFrame, OfATestIsTheTestAndNotItsRunner) {
  const std::string packages = "/x/lib/python3.12/site-packages/";
  EXPECT_EQ(First({{packages + "torch/nn.py", "call"},
                   {"/srv/tests/test_net.py", "test_net"},
                   {packages + "_pytest/python.py", "pytest_pyfunc_call"},
                   {"/x/bin/pytest", "<module>"}}),
            "/srv/tests/test_net.py");
  // A program of one's own in such a folder.
  EXPECT_EQ(First({{"/opt/warp/context.py", "f"}, {"/home/me/bin/serve.py", "<module>"}}), "/home/me/bin/serve.py");
}

TEST(UserFrame, OfNothingButPythonIsTheInnermost) {
  EXPECT_EQ(First({{"/usr/lib/python3.12/threading.py", "run"}, {"<frozen runpy>", "f"}}),
            "/usr/lib/python3.12/threading.py");
  EXPECT_EQ(First({}), "none");
}

}  // namespace
