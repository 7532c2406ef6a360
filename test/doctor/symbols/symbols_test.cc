// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Symbols of this program's own addresses, and of modules that have none; tools that are not there, fail, lie or hang.
#include "doctor/symbols/symbols.h"

#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/doctor/symbols/place.h"

namespace {

using Recording = std::unique_ptr<gcap_doctor_recording_t, decltype(&gcap_doctor_recording_destroy)>;

// What the loader added to the program's addresses.
uintptr_t Base() {
  uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uintptr_t*>(out) = info->dlpi_addr;
        return 1;  // the program is the first
      },
      &base);
  return base;
}

std::string Program() {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return std::string(path, length > 0 ? static_cast<size_t>(length) : 0);
}

std::string Hex(uintptr_t number) {
  char text[32];
  snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

struct Frame {
  std::string module, offset, function;
};

// A recording of one stack with these frames.
Recording OneStack(const std::vector<Frame>& frames) {
  std::string text = "gcap-events\tversion=1\tpid=1\ttime=1\tprogram=p\n";
  std::string ids;
  for (size_t i = 0; i < frames.size(); ++i) {
    std::string id = std::to_string(i + 1);
    text += "frame\tid=" + id + "\tmodule=" + frames[i].module + "\toffset=" + frames[i].offset +
            "\tfunction=" + frames[i].function + "\n";
    ids += (i != 0 ? "," : "") + id;
  }
  text += "stack\tid=1\tc=" + ids + "\n";
  FILE* file = fmemopen(text.data(), text.size(), "r");
  Recording recording(gcap_doctor_recording_read(file, "test"), gcap_doctor_recording_destroy);
  fclose(file);
  return recording;
}

void Resolve(const Recording& recording) {
  bool wanted[] = {true};
  ASSERT_EQ(recording->num_stacks, 1u);
  gcap_doctor_symbols_resolve(recording.get(), wanted, gcap_doctor_symbols_deadline());
}

// "function at file:line" of each frame of the stack; the file without its folders.
std::vector<std::string> Frames(const Recording& recording) {
  std::vector<std::string> frames;
  const gcap_doctor_event_stack_t& stack = recording->stacks[0];
  for (uint32_t i = 0; i < stack.num_c; ++i) {
    const gcap_doctor_event_frame_t& frame = recording->frames[stack.c[i]];
    std::string text = frame.function;
    if (frame.file != nullptr) {
      std::string file = frame.file;
      text += " at " + file.substr(file.rfind('/') + 1) + ":" + std::to_string(frame.line);
    }
    frames.push_back(text);
  }
  return frames;
}

bool Has(const char* tool) { return system((std::string("command -v ") + tool + " >/dev/null 2>&1").c_str()) == 0; }

class Symbols : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("GCAP_DOCTOR_SYMBOLIZER");
    setenv("GCAP_DOCTOR_SYMBOLIZER_SECONDS", "3600", 1);  // on a busy machine too
  }

  // A tool of one line of shell, with which the symbolizer is replaced.
  void UseTool(const std::string& line) {
    std::string path = testing::TempDir() + "/tool";
    std::ofstream(path) << "#!/bin/sh\n" << line << "\n";
    chmod(path.c_str(), 0755);
    setenv("GCAP_DOCTOR_SYMBOLIZER", path.c_str(), 1);
  }

  Frame Place() { return {Program(), Hex(reinterpret_cast<uintptr_t>(gcap_test_place()) - Base()), "before"}; }

  // With line tables and the tool; sanitizers and -O0 keep what is inlined always.
  std::vector<std::string> PlaceFrames() {
    return {"inlined_place at place.c:" + std::to_string(gcap_test_inlined_line),
            "outer_place at place.c:" + std::to_string(gcap_test_outer_line)};
  }
};

TEST_F(Symbols, OfStaticAndInlinedFunctions) {
  for (const char* tool : {"addr2line", "llvm-addr2line", "llvm-symbolizer"}) {
    if (!Has(tool)) continue;
    SCOPED_TRACE(tool);
    setenv("GCAP_DOCTOR_SYMBOLIZER", tool, 1);
    Recording recording = OneStack({{"/no/such/module.so", "0x10", "gone"}, Place(), {"[vdso]", "0x10", "vdso"}});
    Resolve(recording);
    std::vector<std::string> expected = PlaceFrames();
    expected.insert(expected.begin(), "gone");
    expected.push_back("vdso");
    EXPECT_EQ(Frames(recording), expected);
  }
}

TEST_F(Symbols, ByTheFirstToolThatIsThere) {
  if (!Has("addr2line") && !Has("llvm-addr2line") && !Has("llvm-symbolizer")) GTEST_SKIP() << "no symbolizer here";
  Recording recording = OneStack({Place()});
  Resolve(recording);
  EXPECT_EQ(Frames(recording), PlaceFrames());
}

TEST_F(Symbols, OfUnwantedStacksStay) {
  Recording recording = OneStack({Place()});
  bool wanted[] = {false};
  gcap_doctor_symbols_resolve(recording.get(), wanted, gcap_doctor_symbols_deadline());
  EXPECT_EQ(Frames(recording), std::vector<std::string>{"before"});
}

TEST_F(Symbols, NoneIsForNoTool) {
  setenv("GCAP_DOCTOR_SYMBOLIZER", "none", 1);
  Recording recording = OneStack({Place()});
  Resolve(recording);
  EXPECT_EQ(Frames(recording), std::vector<std::string>{"before"});
}

TEST_F(Symbols, StayWhereTheToolIsMissing) {
  setenv("GCAP_DOCTOR_SYMBOLIZER", "/no/such/tool", 1);
  Recording recording = OneStack({Place()});
  Resolve(recording);
  EXPECT_EQ(Frames(recording), std::vector<std::string>{"before"});
}

TEST_F(Symbols, StayWhereTheToolFails) {
  UseTool("echo 0x1; echo wrong; echo wrong.c:1; exit 1");
  Recording recording = OneStack({Place()});
  Resolve(recording);
  EXPECT_EQ(Frames(recording), std::vector<std::string>{"before"});
}

TEST_F(Symbols, StayWhereTheToolKnowsNothing) {
  UseTool("echo 0x1; echo '?'; echo '?:0'");
  Recording recording = OneStack({Place()});
  Resolve(recording);
  EXPECT_EQ(Frames(recording), std::vector<std::string>{"before"});
}

TEST_F(Symbols, OfMoreAnswersThanQuestionsAreDropped) {
  UseTool("for i in 1 2 3; do echo 0x$i; echo f$i; echo file.c:$i; done; echo 0x4; echo cut");
  Recording recording = OneStack({Place()});
  Resolve(recording);
  EXPECT_EQ(Frames(recording), std::vector<std::string>{"f1 at file.c:1"});
}

TEST_F(Symbols, WaitNoLongerThanAllowed) {
  UseTool("exec sleep 3600");
  setenv("GCAP_DOCTOR_SYMBOLIZER_SECONDS", "1", 1);
  Recording recording = OneStack({Place()});
  Resolve(recording);
  EXPECT_EQ(Frames(recording), std::vector<std::string>{"before"});
}

TEST_F(Symbols, ShareTheTimeOfAReport) {
  const std::string asked = testing::TempDir() + "/asked";
  std::ofstream(asked).flush();
  UseTool("echo >>" + asked + "; exec sleep 3600");
  setenv("GCAP_DOCTOR_SYMBOLIZER_SECONDS", "1", 1);
  bool wanted[] = {true};
  const uint64_t deadline = gcap_doctor_symbols_deadline();
  for (int i = 0; i < 8; ++i) {
    Recording recording = OneStack({Place()});
    gcap_doctor_symbols_resolve(recording.get(), wanted, deadline);
    EXPECT_EQ(Frames(recording), std::vector<std::string>{"before"});
  }
  std::ifstream file(asked);
  std::string first, second;
  std::getline(file, first);
  EXPECT_FALSE(std::getline(file, second)) << "a tool was asked after the time was over";
}

// The tool gets offsets of the calls, one byte before the returns, as arguments, in one process for a module.
TEST_F(Symbols, AskOnceForAModule) {
  UseTool("echo \"$@\" >>" + testing::TempDir() + "/asked");
  std::string asked = testing::TempDir() + "/asked";
  unlink(asked.c_str());
  Recording recording = OneStack({{Program(), "0x30", ""}, {Program(), "0x20", ""}, {Program(), "0x30", ""}});
  Resolve(recording);
  std::ifstream file(asked);
  std::string line, more;
  std::getline(file, line);
  EXPECT_EQ(line, "-a -f -i -C -e " + Program() + " 0x1f 0x2f 0x2f");
  EXPECT_FALSE(std::getline(file, more)) << more;
}

TEST_F(Symbols, OfCppAreReadable) {
  if (!Has("c++filt") && !Has("llvm-cxxfilt")) GTEST_SKIP() << "no c++filt here";
  Recording recording = OneStack({{"/no/such.so", "0x1", "_ZN2at6native7nonzeroERKNS_6TensorE"},
                                  {"/no/such.so", "0x2", "plain"},
                                  {"/no/such.so", "0x3", "_ZN5outer5innerEv"}});
  Resolve(recording);
  EXPECT_EQ(Frames(recording),
            (std::vector<std::string>{"at::native::nonzero(at::Tensor const&)", "plain", "outer::inner()"}));
}

TEST_F(Symbols, OfAFileThatIsNoElfStay) {
  UseTool("echo 0x1; echo wrong; echo wrong.c:1");
  std::string path = testing::TempDir() + "/text";
  std::ofstream(path) << "no ELF, and longer than its head, which is sixty-four bytes long in all of them.";
  Recording recording = OneStack({{path, "0x10", "before"}});
  Resolve(recording);
  EXPECT_EQ(Frames(recording), std::vector<std::string>{"before"});
}

}  // namespace
