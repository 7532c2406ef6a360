// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Python stacks, in the interpreters of this machine: each version that is on PATH or in pyenv's folder runs
// python_program.py. An interpreter that was stripped of its hidden symbols is tried too.
#include <glob.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "test/doctor/record/program.h"

namespace {

const char kProgram[] = "test/doctor/record/python_program.py";
const char kRaising[] = "test/doctor/record/raising_program.py";

std::vector<std::string> Glob(const std::string& pattern) {
  glob_t found;
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) paths.push_back(found.gl_pathv[i]);
    globfree(&found);
  }
  return paths;
}

bool Runs(const std::string& python) { return system((python + " -c 'import ctypes' >/dev/null 2>&1").c_str()) == 0; }

// "" if there is none.
std::string Interpreter(const std::string& version) {
  const struct passwd* user = getpwuid(getuid());
  std::vector<std::string> candidates = {"/usr/bin/python" + version, "/usr/local/bin/python" + version};
  if (user != nullptr) {
    for (const std::string& path :
         Glob(std::string(user->pw_dir) + "/.pyenv/versions/" + version + ".*/bin/python" + version)) {
      candidates.insert(candidates.begin(), path);
    }
  }
  for (const std::string& python : candidates) {
    if (access(python.c_str(), X_OK) == 0 && Runs(python)) return python;
  }
  return "";
}

// The recording of the program, run by a shell command that begins with `python`.
Recorded RecordPython(const std::string& python, const std::string& way, const std::string& program = kProgram,
                      int status = 0) {
  const std::string prefix = Prefix() + "." + way;
  for (const std::string& path : Glob(prefix + ".*.events")) unlink(path.c_str());
  const std::string command = "GCAP_DOCTOR_EVENTS=" + prefix + " GCAP_DOCTOR_CUPTI=./" + FakePath() + " " + python +
                              " " + program + " ./" + RecorderPath() + " ./" + FakePath() + " " + way;
  Recorded recorded;
  recorded.status = system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(recorded.status), status) << command;
  const auto paths = Glob(prefix + ".*.events");
  EXPECT_EQ(paths.size(), 1u);
  if (paths.size() != 1) return recorded;
  FILE* file = fopen(paths[0].c_str(), "r");
  recorded.events.reset(gcap_doctor_recording_read(file, "test"));
  fclose(file);
  EXPECT_EQ(recorded.events->damage.lines, 0u) << recorded.events->damage.reason;
  return recorded;
}

uint32_t LineOf(const std::string& text, const char* program = kProgram) {
  std::ifstream file(program);
  std::string line;
  for (uint32_t number = 1; std::getline(file, line); ++number) {
    if (line.find(text) != std::string::npos) return number;
  }
  return 0;
}

struct Frame {
  std::string file, function;
  uint32_t line;
};

std::vector<Frame> PythonStack(const Recorded& recorded, const gcap_doctor_event_call_t& call) {
  std::vector<Frame> frames;
  if (call.stack == GCAP_DOCTOR_NONE) return frames;
  const gcap_doctor_event_stack_t& stack = recorded.events->stacks[call.stack];
  for (uint32_t i = 0; i < stack.num_python; ++i) {
    const gcap_doctor_event_frame_t& frame = recorded.events->frames[stack.python[i]];
    frames.push_back({frame.file, frame.function, frame.line});
  }
  return frames;
}

void ExpectLine(const Recorded& recorded, bool in_thread) {
  const std::vector<Frame> frames = PythonStack(recorded, recorded.Call("cuStreamSynchronize"));
  ASSERT_GE(frames.size(), 3u);
  EXPECT_EQ(frames[0].function, "call");
  EXPECT_EQ(frames[1].function,
            "gr\xc3\xb6\xc3\x9f"
            "e");
  EXPECT_EQ(frames[1].line, LineOf("# THE LINE"));
  EXPECT_NE(frames[1].file.find("python_program.py"), std::string::npos);
  EXPECT_EQ(frames.back().function, in_thread ? "_bootstrap" : "<module>");
}

// Places of a program that calls from few lines, many times: each time has its own line.
void ExpectLoop(const Recorded& recorded) {
  const struct {
    const char* line;
    const char* function;
  } expected[] = {{"# THIRD", "loop"}, {"# FIRST", "steps"}, {"# SECOND", "steps"}, {"# FOURTH", "<lambda>"}};
  const auto calls = recorded.Calls("cuStreamQuery");
  ASSERT_EQ(calls.size(), 80u);
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::vector<Frame> frames = PythonStack(recorded, *calls[i]);
    const auto& wanted = expected[i % 4];
    ASSERT_GT(frames.size(), 4u) << i;
    EXPECT_EQ(frames[1].function, "query") << i;
    EXPECT_EQ(frames[2].function, wanted.function) << i;
    EXPECT_EQ(frames[2].line, LineOf(wanted.line)) << i;
    EXPECT_EQ(frames.back().function, "<module>") << i;
  }
}

// More places than it takes until the recorder reads frames itself; and functions that take each other's memory.
void ExpectMany(const Recorded& recorded) {
  const auto calls = recorded.Calls("cuEventQuery");
  ASSERT_EQ(calls.size(), 130u);
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::vector<Frame> frames = PythonStack(recorded, *calls[i]);
    const std::string name = i >= 90 ? "short_" + std::to_string(i - 90) : i / 30 == 1 ? "other" : "long";
    ASSERT_GT(frames.size(), 4u) << i;
    EXPECT_EQ(frames[0].function, "call") << i;
    EXPECT_EQ(frames[1].function, "asked") << i;
    EXPECT_EQ(frames[2].function, name) << i;
    EXPECT_EQ(frames[2].file, name + ".py") << i;
    EXPECT_EQ(frames[2].line, i >= 90 ? 2 : 2 + i % 30) << i;
    EXPECT_EQ(frames[3].function, "many") << i;
    EXPECT_EQ(frames.back().function, "<module>") << i;
  }
}

void ExpectStacks(const std::string& python) {
  for (const char* way : {"unlocked", "locked", "thread"}) {
    SCOPED_TRACE(way);
    Recorded recorded = RecordPython(python, way);
    if (recorded.events == nullptr) continue;
    ExpectLine(recorded, std::string(way) == "thread");
    ExpectLoop(recorded);
    ExpectMany(recorded);
    const std::vector<Frame> deep = PythonStack(recorded, recorded.Call("cuCtxSynchronize"));
    EXPECT_EQ(deep.size(), 64u);  // the innermost of 153
    EXPECT_EQ(deep.empty() ? "" : deep.back().function, "deep");
  }
}

// The exceptions of a program.
std::vector<const gcap_doctor_event_call_t*> Raised(const Recorded& recorded) {
  std::vector<const gcap_doctor_event_call_t*> raised;
  for (size_t i = 0; recorded.events != nullptr && i < recorded.events->num_calls; ++i) {
    if (recorded.events->calls[i].raised != nullptr) raised.push_back(&recorded.events->calls[i]);
  }
  return raised;
}

// The function of the call after which an exception was seen; "" for one that nobody caught.
std::string After(const Recorded& recorded, const gcap_doctor_event_call_t& raised) {
  return raised.raised_at != GCAP_DOCTOR_NONE ? recorded.events->calls[raised.raised_at].function : "";
}

void ExpectRaised(const std::string& python, const char* way, const std::string& after, int status) {
  SCOPED_TRACE(way);
  Recorded recorded = RecordPython(python, way, kRaising, status);
  const auto raised = Raised(recorded);
  ASSERT_EQ(raised.size(), 1u) << recorded.text;
  EXPECT_STREQ(raised[0]->raised, "ValueError");
  EXPECT_STREQ(raised[0]->arguments, "no such l\xc3\xa4yer");
  EXPECT_EQ(After(recorded, *raised[0]), after);
  const std::vector<Frame> frames = PythonStack(recorded, *raised[0]);
  ASSERT_GE(frames.size(), 3u);
  EXPECT_EQ(frames[0].function, "refuse");
  EXPECT_EQ(frames[0].line, LineOf("# THE LINE", kRaising));
  EXPECT_EQ(frames[1].function, way);
  EXPECT_EQ(frames.back().function, "<module>");
}

void ExpectNothingRaised(const std::string& python, const char* way) {
  SCOPED_TRACE(way);
  Recorded recorded = RecordPython(python, way, kRaising);
  EXPECT_EQ(Raised(recorded).size(), 0u);
}

class Python : public testing::TestWithParam<const char*> {};

TEST_P(Python, LineOfACallIsNamed) {
  const std::string python = Interpreter(GetParam());
  if (python.empty()) GTEST_SKIP() << "no Python " << GetParam() << " with ctypes on this machine";
  ExpectStacks(python);
}

TEST_P(Python, ExceptionThatMeetsACaptureIsSeen) {
  const std::string python = Interpreter(GetParam());
  if (python.empty()) GTEST_SKIP() << "no Python " << GetParam() << " with ctypes on this machine";
  ExpectRaised(python, "left", "cuStreamEndCapture", 0);
  ExpectRaised(python, "uncaught", "", 1);
  ExpectRaised(python, "handled", "cuStreamQuery", 0);
  ExpectNothingRaised(python, "inside");
  ExpectNothingRaised(python, "before");
  ExpectNothingRaised(python, "thread");  // docs/doctor.md says so
}

// The recorder runs no code of the program's: a message that is no text is left out.
TEST_P(Python, MessageIsNotAskedOfTheProgram) {
  const std::string python = Interpreter(GetParam());
  if (python.empty()) GTEST_SKIP() << "no Python " << GetParam() << " with ctypes on this machine";
  Recorded recorded = RecordPython(python, "odd", kRaising);
  const auto raised = Raised(recorded);
  ASSERT_EQ(raised.size(), 1u);
  EXPECT_STREQ(raised[0]->raised, "__main__.Odd");
  EXPECT_STREQ(raised[0]->arguments, "");
  EXPECT_EQ(recorded.Calls("cuCtxSynchronize").size(), 0u);
}

// "3.14t" is a build without the interpreter's lock.
INSTANTIATE_TEST_SUITE_P(Versions, Python,
                         testing::Values("3.9", "3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t"));

// Without the hidden symbol, a thread that holds the lock is shown, and one that gave it back says why it is not.
TEST(StrippedPython, IsShownWithTheLockAndSaysWhyWithoutIt) {
  for (const char* version : {"3.13", "3.10", "3.9"}) {
    const std::string python = Interpreter(version);
    const auto libraries = Glob(python.substr(0, python.rfind("/bin/") + 1) + "lib/libpython" + version + ".so.1.0");
    if (python.empty() || libraries.empty()) continue;
    const std::string stripped = testing::TempDir() + "/libpython" + version + ".so.1.0";
    if (system(("strip -s -o " + stripped + " " + libraries[0]).c_str()) != 0) continue;
    const std::string command = "LD_PRELOAD=" + stripped + " " + python;
    ExpectLine(RecordPython(command, "locked"), false);
    Recorded recorded = RecordPython(command, "unlocked");
    const gcap_doctor_event_call_t& call = recorded.Call("cuStreamSynchronize");
    ASSERT_NE(call.stack, GCAP_DOCTOR_NONE);
    const gcap_doctor_event_stack_t& stack = recorded.events->stacks[call.stack];
    EXPECT_EQ(stack.num_python, 0u);
    ASSERT_NE(stack.why, nullptr);
    EXPECT_NE(std::string(stack.why).find("hides _Py_DumpTraceback"), std::string::npos) << stack.why;
    return;
  }
  GTEST_SKIP() << "no shared libpython without an exported _Py_DumpTraceback, or no strip, on this machine";
}

}  // namespace
