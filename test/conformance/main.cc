// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The conformance test: every block of every case is a test that compares what the CUDA runtime answers with what a GPU
// answered. The same program runs on the simulator and on a GPU.
//
//   conformance_test                   compares
//   conformance_test --record[=PART]   prints the observations of every block whose name contains PART, each block in
//                                      a process of its own; what the process does not survive becomes CRASH
//   conformance_test --observe=BLOCK   runs one block, and prints what it observes
//   conformance_test --list            prints the names of all blocks
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "test/conformance/block.h"
#include "test/conformance/child.h"
#include "test/support/device_test.h"

namespace conformance {

namespace {

constexpr char kRecordFlag[] = "--record";

// No block leaves its errors, device or thread mode to the next one.
void Reset() {
  (void)cudaGetLastError();
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  (void)cudaThreadExchangeStreamCaptureMode(&mode);
  (void)cudaSetDevice(0);
}

std::vector<std::string> Observe(const Block& block, const std::set<std::string>& skipped, bool live) {
  Observer observer(block.source->name, block.prefix, skipped, live);
  block.source->run(observer);
  Reset();
  return observer.lines();
}

// Both lists beside each other, marked where they part.
std::string SideBySide(const std::vector<std::string>& expected, const std::vector<std::string>& got) {
  std::ostringstream text;
  for (size_t i = 0; i < std::max(expected.size(), got.size()); ++i) {
    const std::string left = i < expected.size() ? expected[i] : "(no line)";
    const std::string right = i < got.size() ? got[i] : "(no line)";
    if (left == right) {
      text << "         " << left << "\n";
    } else {
      text << "expected " << left << "\n     got " << right << "\n";
    }
  }
  return text.str();
}

// What ended the process, as a reader wants it.
std::string Ending(const ChildResult& child) {
  std::ostringstream text;
  if (child.signal != 0) text << "signal " << child.signal;
  if (child.signal == 0) text << "exit code " << child.exit_code;
  text << " at \"" << child.last_probe << "\"\n" << child.errors;
  return text.str();
}

// The step ends a process of its own; the simulator says why.
void ExpectCrash(const Block& block, const std::string& step, std::set<std::string> others) {
  others.erase(step);
  const ChildResult child = RunInChild(block.name(), others);
  EXPECT_NE(0, child.signal) << step << " returned";
  EXPECT_EQ(step, child.last_probe) << Ending(child);
  if (!OnSimulator()) return;
  EXPECT_EQ(SIGABRT, child.signal) << Ending(child);
  EXPECT_NE(std::string::npos, child.errors.find("gcap sim:")) << child.errors;
}

std::vector<std::string> RunBlock(const Block& block, const std::set<std::string>& crashing) {
  if (!block.source->blocks.own_process()) return Observe(block, crashing, /*live=*/false);
  const ChildResult child = RunInChild(block.name(), crashing);
  EXPECT_EQ(0, child.signal) << Ending(child);
  EXPECT_EQ(0, child.exit_code) << Ending(child);
  return child.lines;
}

// A case that may be ahead of the record.
bool IsProbe(const Block& block) { return block.source->name.compare(0, 6, "probe.") == 0; }

class BlockTest : public gcap::testing::DeviceTest {
 public:
  explicit BlockTest(Block block) : block_(std::move(block)) {}

  void TestBody() override {
    int devices = 0;
    ASSERT_EQ(cudaSuccess, cudaGetDeviceCount(&devices));
    if (devices < block_.source->blocks.devices()) {
      GTEST_SKIP() << "needs " << block_.source->blocks.devices() << " devices, this machine has " << devices;
    }
    const std::set<std::string> crashing = CrashingSteps(block_);
    std::string complaint;
    const std::vector<std::string> expected = Expected(block_, &complaint);
    if (expected.empty() && IsProbe(block_)) GTEST_SKIP() << "no GPU was asked yet; see --record";
    const std::vector<std::string> got = RunBlock(block_, crashing);
    EXPECT_FALSE(expected.empty()) << block_.name() << " has no record; got\n" << SideBySide({}, got);
    EXPECT_EQ(complaint, "");
    EXPECT_TRUE(expected == got) << SideBySide(expected, got);
    for (const std::string& step : crashing) ExpectCrash(block_, step, crashing);
  }

 private:
  const Block block_;
};

// "cap.cudaFree" run as "self GLOBAL" is the test cap.cudaFree/self_GLOBAL.
void RegisterBlocks() {
  for (const Block& block : AllBlocks()) {
    const std::string& name = block.source->name;
    const size_t dot = name.find('.');
    std::string test = name.substr(dot + 1) + (block.prefix.empty() ? "" : "/" + block.prefix);
    std::replace(test.begin(), test.end(), ' ', '_');
    testing::RegisterTest(name.substr(0, dot).c_str(), test.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [block]() -> gcap::testing::DeviceTest* { return new BlockTest(block); });
  }
}

// Runs the block, and again without what ended it, until it comes to its end.
void RecordBlock(const Block& block) {
  std::set<std::string> skipped;
  ChildResult child = RunInChild(block.name(), skipped);
  while (child.signal != 0 && skipped.insert(child.last_probe).second) child = RunInChild(block.name(), skipped);
  if (child.signal != 0 || child.exit_code != 0) {
    std::fprintf(stderr, "%s: not recorded, it ended with %s\n", block.name().c_str(), Ending(child).c_str());
    return;
  }
  for (const std::string& line : child.lines) std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int RecordBlocks(const std::string& part) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) return 2;
  for (const Block& block : AllBlocks()) {
    if (block.name().find(part) == std::string::npos || devices < block.source->blocks.devices()) continue;
    RecordBlock(block);
  }
  return 0;
}

int ListBlocks() {
  for (const Block& block : AllBlocks()) std::printf("%s\n", block.name().c_str());
  return 0;
}

int ObserveLive(const std::string& name, const std::set<std::string>& skipped) {
  for (const Block& block : AllBlocks()) {
    if (block.name() != name) continue;
    Observe(block, skipped, /*live=*/true);
    // What such a block leaves behind, after a device reset for instance, goes with its process; nobody looks for
    // leaks.
    std::fflush(nullptr);
    std::_Exit(0);
  }
  std::fprintf(stderr, "no block %s\n", name.c_str());
  return 2;
}

// The value of an argument "FLAGvalue"; false when it is another argument.
bool Value(const std::string& argument, const std::string& flag, std::string* value) {
  if (argument.compare(0, flag.size(), flag) != 0) return false;
  *value = argument.substr(flag.size());
  return true;
}

// The simulator's own settings, read at the first call: two devices, and no checks, since the cases ask for codes and
// race as they please. A GPU knows nothing of them.
void SetUpSimulator() {
  setenv("GCAP_SIM_DEVICES", "2", 0);
  setenv("GCAP_SIM_CHECKS", "all=off", 0);
}

int Main(int argc, char** argv) {
  SetUpSimulator();
  std::string observed;
  std::set<std::string> skipped;
  for (int i = 1; i < argc; ++i) {
    std::string value;
    if (Value(argv[i], std::string(kRecordFlag) + "=", &value)) return RecordBlocks(value);
    if (std::string(argv[i]) == kRecordFlag) return RecordBlocks("");
    if (std::string(argv[i]) == "--list") return ListBlocks();
    if (Value(argv[i], kObserveFlag, &value)) observed = value;
    if (Value(argv[i], kWithoutFlag, &value)) skipped.insert(value);
  }
  if (!observed.empty()) return ObserveLive(observed, skipped);
  RegisterBlocks();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace

}  // namespace conformance

int main(int argc, char** argv) { return conformance::Main(argc, argv); }
