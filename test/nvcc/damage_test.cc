// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Fat binaries that are damaged.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "gcap_sim.h"
#include "test/nvcc/host_object.h"

namespace {

using gcap_test::CodeOfKernel;
using gcap_test::HostFunction;
using gcap_test::Launch;

constexpr auto* kOther = HostFunction<400, const float*, float, float*>;

// Registers the code and asks for the parameters of its kernel, by a launch.
void LoadAndLaunch(const std::vector<char>& code) {
  gcap_test::Wrapper wrapper = {0x466243b1, 1, code.data(), nullptr};
  void** handle = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(handle, reinterpret_cast<const char*>(kOther), nullptr, "damaged", -1, nullptr, nullptr,
                         nullptr, nullptr, nullptr);
  gcap_sim_set_missing_twin(GCAP_SIM_MISSING_TWIN_SKIP);
  Launch(kOther, 1, 1, nullptr, nullptr, 0.0f, nullptr);
}

const std::vector<CodeOfKernel> kDamaged = {{"damaged", {8, 4, 8}}};

TEST(NvccDamageDeathTest, AWrapperOrHeaderThatIsNoneIsSaidSo) {
  gcap_test::Wrapper wrapper = {};
  EXPECT_DEATH(__cudaRegisterFatBinary(nullptr), "a fat binary is damaged: there is none");
  EXPECT_DEATH(__cudaRegisterFatBinary(&wrapper), "its wrapper begins with 0x00000000, expected 0x466243b1");
  wrapper.magic = 0x466243b1;
  EXPECT_DEATH(__cudaRegisterFatBinary(&wrapper), "wrapper has version 0, expected 1 or 2");
  wrapper.version = 1;
  EXPECT_DEATH(__cudaRegisterFatBinary(&wrapper), "its wrapper points to no code");
  std::vector<char> code = gcap_test::FatBinaryOf(kDamaged);
  wrapper.code = code.data();
  code[0] = 0;
  EXPECT_DEATH(__cudaRegisterFatBinary(&wrapper), "it begins with 0xba55ed00, expected 0xba55ed50");
  code[0] = 0x50, code[6] = 17;
  EXPECT_DEATH(__cudaRegisterFatBinary(&wrapper), "version 1 and a header of 17 bytes, expected 1 and 16");
}

TEST(NvccDamageDeathTest, ATruncatedOneIsSaidSo) {
  std::vector<char> code = gcap_test::FatBinaryOf(kDamaged);
  uint64_t entries = code.size() - 16;
  for (uint64_t cut : {entries - 1, entries - 64, uint64_t{68 + 15}}) {
    std::vector<char> part(code.begin(), code.begin() + 16 + static_cast<std::ptrdiff_t>(cut));
    memcpy(&part[8], &cut, sizeof(cut));
    EXPECT_DEATH(LoadAndLaunch(part), "a fat binary is damaged: an entry (is cut short|reaches beyond the end)") << cut;
  }
}

// Whatever byte is wrong: the kernel's parameters are other ones, or there is a sentence.
TEST(NvccDamageDeathTest, NoByteOfItCrashesTheProgram) {
  const std::vector<char> whole = gcap_test::FatBinaryOf(kDamaged);
  int stopped = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (i >= 8 && i < 16) continue;  // how much is to be read
    for (char value : {'\xff', '\x41'}) {
      const pid_t child = fork();
      if (child == 0) {
        std::vector<char> code = whole;
        code[i] = value;
        if (freopen("/dev/null", "w", stderr) == nullptr) _exit(2);
        LoadAndLaunch(code);
        _exit(0);
      }
      int status = 0;
      ASSERT_EQ(child, waitpid(child, &status, 0));
      const bool sentence = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
      ASSERT_TRUE(sentence || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << "byte " << i << ", status " << status;
      stopped += sentence;
    }
  }
  EXPECT_GT(stopped, 20);
}

}  // namespace
