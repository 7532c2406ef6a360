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
  Recording later = Read("gcap-events\tversion=2\n");
  EXPECT_STREQ(later->damage.reason, "the version of the format is not 1");
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
  const Place main = {"/work/serve/main.py", "<module>"}, model = {"/work/serve/models/net.py", "forward"};
  for (const char* framework :
       {"/opt/target/warp/_src/context.py", "/home/me/src/warp/warp/context.py",
        "/usr/lib/python3.12/site-packages/warp/context.py", "/usr/lib/python3.12/contextlib.py", "<frozen runpy>",
        "/work/serve/.venv/lib/python3.12/site-packages/warp/context.py"}) {
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
  EXPECT_EQ(First({{"/work/serve2/net.py", "f"}, {"/work/serve/main.py", "<module>"}}), "/work/serve/main.py");
  // An older recorder tells no folder: what is not installed.
  EXPECT_EQ(First({{"/x/site-packages/torch/a.py", "f"}, {"/home/me/net.py", "forward"}, {"serve.py", "<module>"}}, ""),
            "/home/me/net.py");
}

TEST(UserFrame, OfAThreadIsTheProgramsToo) {
  Recording recording = Read(std::string(kFirst) +
                             "pyframe\tid=1\tfile=/work/serve/main.py\tline=1\tfunction=<module>\n"
                             "pyframe\tid=2\tfile=/opt/warp/context.py\tline=1\tfunction=f\n"
                             "pyframe\tid=3\tfile=/work/serve/load.py\tline=1\tfunction=load\n"
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
                   {"/work/tests/test_net.py", "test_net"},
                   {packages + "_pytest/python.py", "pytest_pyfunc_call"},
                   {"/x/bin/pytest", "<module>"}}),
            "/work/tests/test_net.py");
  // A program of one's own in such a folder.
  EXPECT_EQ(First({{"/opt/warp/context.py", "f"}, {"/home/me/bin/serve.py", "<module>"}}), "/home/me/bin/serve.py");
}

TEST(UserFrame, OfNothingButPythonIsTheInnermost) {
  EXPECT_EQ(First({{"/usr/lib/python3.12/threading.py", "run"}, {"<frozen runpy>", "f"}}),
            "/usr/lib/python3.12/threading.py");
  EXPECT_EQ(First({}), "none");
}

}  // namespace
