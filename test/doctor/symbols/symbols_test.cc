// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Symbols of this program's own addresses, and of modules that have none; tools that are not there, fail, lie or hang.
#include "doctor/symbols/symbols.h"

#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "doctor/base/build_id.h"
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

// The program's own, by its BUILD.bazel.
const char kBuild[] = "0123456789abcdef0123456789abcdef01234567";
const char kOtherBuild[] = "fedcba9876543210";
const char kUntold[] = "untold";

struct Frame {
  std::string module, offset, function;
  std::string build = kBuild;
};

// A recording of one stack with these frames.
Recording OneStack(const std::vector<Frame>& frames) {
  std::string text = "gcap-events\tversion=1\tpid=1\ttime=1\tprogram=p\n";
  std::string ids;
  for (size_t i = 0; i < frames.size(); ++i) {
    std::string id = std::to_string(i + 1);
    const bool is_told = frames[i].build != kUntold;
    if (is_told) {
      text += "module\tid=" + id + "\tpath=" + frames[i].module +
              (frames[i].build.empty() ? "" : "\tbuild=" + frames[i].build) + "\n";
    }
    text += "frame\tid=" + id + "\tmodule=" + frames[i].module + "\toffset=" + frames[i].offset +
            (is_told ? "\tloaded=" + id : "") + "\tfunction=" + frames[i].function + "\n";
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

  Frame Place(const std::string& build = kBuild) {
    Frame frame = PlaceOfAny();
    frame.build = build;
    return frame;
  }

  static Frame PlaceOfAny() {
    return {Program(), Hex(reinterpret_cast<uintptr_t>(gcap_test_place()) - Base()), "before"};
  }

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

// --- Build ids -------------------------------------------------------------------------------------------------------

std::vector<std::string> Notes(const Recording& recording) {
  return std::vector<std::string>(recording->notes, recording->notes + recording->num_notes);
}

// Resolved by the first tool, or not, without one.
std::vector<std::string> NamesOf(const Recording& recording) {
  Resolve(recording);
  return Frames(recording);
}

// The program with another name in place of "GNU" before its build id: it has none.
std::string ProgramWithoutBuild() {
  std::ifstream file(Program(), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::string note("GNU\0", 4);
  for (size_t i = 0; kBuild[i] != '\0'; i += 2) {
    note += static_cast<char>(std::stoi(std::string(kBuild + i, 2), nullptr, 16));
  }
  const size_t at = bytes.find(note);
  EXPECT_NE(at, std::string::npos);
  if (at != std::string::npos) bytes.replace(at, 3, "any");
  const std::string path = testing::TempDir() + "/without_build";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

class BuildIds : public Symbols {
 protected:
  void SetUp() override {
    Symbols::SetUp();
    UseTool("for last; do :; done; echo $last; echo named; echo named.c:7");
  }
  const std::vector<std::string> kNamed = {"named at named.c:7"}, kBefore = {"before"};
};

TEST_F(BuildIds, OfTheSameBuildSayNothing) {
  Recording recording = OneStack({Place()});
  EXPECT_EQ(NamesOf(recording), kNamed);
  EXPECT_EQ(Notes(recording), std::vector<std::string>{});
}

TEST_F(BuildIds, AFileOfAnotherBuildNamesNothing) {
  Recording recording = OneStack({Place(kOtherBuild), Place(kOtherBuild)});
  EXPECT_EQ(NamesOf(recording), (std::vector<std::string>{"before", "before"}));
  EXPECT_EQ(Notes(recording),
            std::vector<std::string>{Program() + " is another build on this machine, and names no frame: build id " +
                                     kBuild + ", recorded " + kOtherBuild});
}

TEST_F(BuildIds, AModuleInTwoBuildsHasTheNamesOfOne) {
  Recording recording = OneStack({Place(kOtherBuild), Place(kBuild), Place(kOtherBuild)});
  EXPECT_EQ(NamesOf(recording), (std::vector<std::string>{"before", "named at named.c:7", "before"}));
  EXPECT_EQ(Notes(recording).size(), 1u);
}

TEST_F(BuildIds, AModuleWithoutOneIsNotAFileWithOne) {
  Recording recording = OneStack({Place("")});
  EXPECT_EQ(NamesOf(recording), kBefore);
  ASSERT_EQ(Notes(recording).size(), 1u);
  EXPECT_NE(Notes(recording)[0].find(std::string("build id ") + kBuild + ", recorded none"), std::string::npos)
      << Notes(recording)[0];
}

TEST_F(BuildIds, AFileWithoutOneIsNotAModuleWithOne) {
  Frame frame = Place();
  frame.module = ProgramWithoutBuild();
  Recording recording = OneStack({frame});
  EXPECT_EQ(NamesOf(recording), kBefore);
  ASSERT_EQ(Notes(recording).size(), 1u);
  EXPECT_NE(Notes(recording)[0].find(std::string("build id none, recorded ") + kBuild), std::string::npos)
      << Notes(recording)[0];
}

TEST_F(BuildIds, WhereThereAreNoneItIsSaid) {
  Frame frame = Place("");
  frame.module = ProgramWithoutBuild();
  Recording recording = OneStack({frame});
  EXPECT_EQ(NamesOf(recording), kNamed);
  EXPECT_EQ(Notes(recording),
            std::vector<std::string>{"modules have no build id: names of C frames are those of this machine's files, "
                                     "which may be other builds than the program's (" +
                                     frame.module + ")"});
}

TEST_F(BuildIds, OfAnOlderFileAreNotTold) {
  Recording recording = OneStack({Place(kUntold), {"/no/such.so", "0x10", "gone", kUntold}});
  EXPECT_EQ(NamesOf(recording), (std::vector<std::string>{"named at named.c:7", "gone"}));
  EXPECT_EQ(Notes(recording),
            std::vector<std::string>{"the file of events tells no build ids: names of C frames are those of this "
                                     "machine's files, which may be other builds than the program's (" +
                                     Program() + ")"});
}

// Notes of an ELF file, put together here.
std::string Note(uint32_t type, const std::string& name, const std::string& id, size_t align) {
  std::string note;
  for (uint32_t number : {static_cast<uint32_t>(name.size()), static_cast<uint32_t>(id.size()), type}) {
    note.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  for (const std::string& part : {name, id}) {
    note += part;
    while (note.size() % align != 0 && (align == 8 || part == name || note.size() % 4 != 0)) note += '\0';
  }
  return note;
}

std::string IdIn(const std::string& notes, size_t align) {
  // Of the size of the notes, so that a sanitizer sees what is read beyond.
  std::vector<unsigned char> bytes(notes.begin(), notes.end());
  char text[GCAP_DOCTOR_BUILD_ID_TEXT];
  gcap_doctor_build_id_find(bytes.data(), bytes.size(), align, text);
  return text;
}

const std::string kGnu("GNU\0", 4);

TEST(BuildIdNotes, AreReadWhereTheyStand) {
  EXPECT_EQ(IdIn(Note(3, kGnu, "\x01\xab", 4), 4), "01ab");
  EXPECT_EQ(IdIn(Note(1, kGnu, "1234567", 4) + Note(3, kGnu, "\x7f", 4), 4), "7f");
  EXPECT_EQ(IdIn(Note(5, kGnu, "123456789", 8) + Note(3, kGnu, "\x7f", 8), 8), "7f");
  EXPECT_EQ(IdIn(Note(3, std::string("Go\0\0", 4), "\x01", 4), 4), "");
  EXPECT_EQ(IdIn(Note(1, kGnu, "\x01", 4), 4), "");
  EXPECT_EQ(IdIn("", 4), "");
}

TEST(BuildIdNotes, ThatAreDamagedHaveNone) {
  const std::string whole = Note(3, kGnu, "\x01\xab\x02\x03", 4);
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_EQ(IdIn(whole.substr(0, size), 4), "") << size;
  for (size_t field = 0; field < 8; field += 4) {
    std::string huge = whole;
    memset(&huge[field], 0xff, 4);
    EXPECT_EQ(IdIn(huge + whole, 4), "") << field;
  }
  EXPECT_EQ(IdIn(Note(3, kGnu, std::string(GCAP_DOCTOR_MAX_BUILD_ID, '\x11'), 4), 4).size(),
            2u * GCAP_DOCTOR_MAX_BUILD_ID);
  EXPECT_EQ(IdIn(Note(3, kGnu, std::string(GCAP_DOCTOR_MAX_BUILD_ID + 1, '\x11'), 4), 4), "");
}

// --- Installed packages ----------------------------------------------------------------------------------------------

TEST(Installed, PackagesHaveADistInfoBesideThem) {
  const std::string root = testing::TempDir() + "/installed";
  for (const char* folder : {"", "/vendor", "/vendor/warp", "/vendor/warp/_src", "/vendor/warp_lang-1.19.dist-info",
                             "/mine", "/mine/models"}) {
    mkdir((root + folder).c_str(), 0755);
  }
  for (const char* file : {"/vendor/warp/__init__.py", "/vendor/warp/_src/__init__.py", "/mine/models/__init__.py"}) {
    std::ofstream(root + file).flush();
  }
  std::string text = "gcap-events\tversion=1\tpid=1\ttime=1\tprogram=p\n";
  const std::vector<std::string> files = {root + "/vendor/warp/_src/context.py", root + "/vendor/six.py",
                                          root + "/mine/models/net.py", root + "/mine/serve.py", "serve.py"};
  for (size_t i = 0; i < files.size(); ++i) {
    const char* function = i == 3 ? "<module>" : "f";
    text += "pyframe\tid=" + std::to_string(i + 1) + "\tfile=" + files[i] + "\tline=1\tfunction=" + function + "\n";
  }
  FILE* file = fmemopen(text.data(), text.size(), "r");
  Recording recording(gcap_doctor_recording_read(file, "test"), gcap_doctor_recording_destroy);
  fclose(file);
  gcap_doctor_symbols_find_installed(recording.get());
  std::vector<bool> installed;
  for (size_t i = 0; i < recording->num_frames; ++i) installed.push_back(recording->frames[i].is_installed);
  EXPECT_EQ(installed, (std::vector<bool>{true, true, false, false, false}));
}

// --- Whose stacks, and by which tool ---------------------------------------------------------------------------------

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
