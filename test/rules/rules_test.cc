// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The rules as data: found by their number, by a call's text and code, and by the code alone; named in one sentence.
#include "rules/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace {

std::string IdOf(const gcap_rule_t* rule) { return rule != nullptr ? rule->id : "none"; }

TEST(Rules, AreFoundByTheirNumber) {
  size_t count = 0;
  const gcap_rule_t* all = gcap_rules(&count);
  ASSERT_EQ(count, 64u);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(gcap_rule_by_id(all[i].id), &all[i]);
  const gcap_rule_t* rule = gcap_rule_by_id("R16");
  ASSERT_NE(rule, nullptr);
  EXPECT_STREQ(rule->name, "MERGE");
  EXPECT_STREQ(rule->code_name, "cudaErrorStreamCaptureMerge");
  EXPECT_EQ(rule->code, 902);
  EXPECT_TRUE(rule->is_gate);
  EXPECT_FALSE(gcap_rule_by_id("R1")->is_gate);
  for (const char* none : {"R0", "R65", "r1", "R", ""}) EXPECT_EQ(gcap_rule_by_id(none), nullptr) << none;
  EXPECT_EQ(gcap_rule_by_id(nullptr), nullptr);
}

TEST(Rules, AreFoundByTheCallAndItsCode) {
  const struct {
    const char* call;
    int code;
    const char* rule;
  } rows[] = {
      {"cudaStreamSynchronize(stream)", 900, "R11"},
      {"cudaStreamSynchronize", 0, "R11"},  // a code that is not known
      {"cudaStreamWaitEvent(stream, event, 0)", 902, "R16"},
      {"cudaStreamWaitEvent(stream, event, 0)", 905, "R17"},
      {"cudaStreamWaitEvent(stream, event, 0)", 900, "none"},
      {"cudaMalloc(&p, 64)", 900, "R26"},
      {"cudaMalloc(&p, 64)", 2, "none"},  // no memory is no rule's matter
      {"cudaMallocHost(&p, 64)", 900, "R36"},
      {"cudaMallocHosts(&p, 64)", 900, "none"},  // another function
      {"cudaFre", 900, "none"},
      {"cublasLtDestroy(handle)", 901, "R42"},
      {"cudaStreamBeginCapture", 401, "R2"},
      {"cudaStreamBeginCapture", 900, "R1"},
      {"cudaGraphLaunch(exec, stream)", 900, "R11"},
      {"x = cudaFree(p)", 900, "none"},
      {"", 900, "none"},
  };
  for (const auto& row : rows) EXPECT_EQ(IdOf(gcap_rule_of_call(row.call, row.code)), row.rule) << row.call;
  EXPECT_EQ(gcap_rule_of_call(nullptr, 900), nullptr);
}

TEST(Rules, AreFoundByTheDriversNamesToo) {
  const std::pair<const char*, const char*> rows[] = {
      {"cuMemAlloc_v2", "R26"},     {"cuMemFree", "R28"},
      {"cuMemHostAlloc", "R36"},    {"cuStreamSynchronize_ptsz", "R11"},
      {"cuCtxSynchronize", "R12"},  {"cuMemPoolTrimTo(pool, 0)", "R35"},
      {"cuCtxSetLimit", "R49"},     {"cuMemAlloc_v2x", "none"},
      {"cuModuleLoadData", "none"},
  };
  for (const auto& [call, rule] : rows) EXPECT_EQ(IdOf(gcap_rule_of_call(call, 900)), rule) << call;
}

TEST(Rules, AreFoundByTheCodeAlone) {
  const std::pair<int, const char*> rows[] = {{900, "R26"}, {901, "R5"},   {902, "R16"}, {903, "R3"}, {904, "R6"},
                                              {905, "R17"}, {906, "R15"},  {907, "R13"}, {908, "R4"}, {0, "none"},
                                              {1, "none"},  {910, "none"}, {-1, "none"}};
  for (const auto& [code, rule] : rows) EXPECT_EQ(IdOf(gcap_rule_of_code(code)), rule) << code;
}

TEST(Rules, NameTheirCodes) {
  EXPECT_STREQ(gcap_rule_code_name(900), "cudaErrorStreamCaptureUnsupported");
  EXPECT_STREQ(gcap_rule_code_name(908), "cudaErrorStreamCaptureWrongThread");
  EXPECT_EQ(gcap_rule_code_name(719), nullptr);
  size_t count = 0;
  const gcap_rule_t* all = gcap_rules(&count);
  for (size_t i = 0; i < count; ++i) EXPECT_STREQ(gcap_rule_code_name(all[i].code), all[i].code_name) << all[i].id;
}

TEST(Rules, AreToldInOneSentence) {
  char text[512];
  const int length = gcap_rule_print(text, sizeof(text), gcap_rule_by_id("R12"));
  EXPECT_STREQ(
      text,
      "rule R12: a device-wide call while a stream of the device captures; remedy: keep it out of every capture "
      "of the process, of other threads too; see docs/rules/r12.md");
  EXPECT_EQ(length, static_cast<int>(std::string(text).size()));
  char cut[8];
  EXPECT_EQ(gcap_rule_print(cut, sizeof(cut), gcap_rule_by_id("R12")), length);
  EXPECT_STREQ(cut, "rule R1");
}

TEST(RuntimeNames, AreThoseOfTheDriversFunctions) {
  const std::pair<const char*, const char*> rows[] = {
      {"cuMemAlloc_v2", "cudaMalloc"},
      {"cuMemAlloc", "cudaMalloc"},
      {"cuMemcpyHtoDAsync_v2_ptsz", "cudaMemcpyAsync"},
      {"cuMemcpyDtoH_v2_ptds", "cudaMemcpy"},
      {"cuLaunchKernel_ptsz", "cudaLaunchKernel"},
      {"cuLaunchKernelEx", "cudaLaunchKernelExC"},
      {"cuStreamBeginCapture_v2_ptsz", "cudaStreamBeginCapture"},
      {"cuStreamGetCaptureInfo_v3", "cudaStreamGetCaptureInfo"},
      {"cuMemsetD2D8Async", "cudaMemset2DAsync"},
  };
  for (const auto& [driver, runtime] : rows) EXPECT_STREQ(gcap_rule_runtime_name(driver), runtime) << driver;
  for (const char* none : {"cudaMalloc", "cuModuleLoadData", "cuMem", "_v2", "_ptsz", "v2", "2", ""}) {
    EXPECT_EQ(gcap_rule_runtime_name(none), nullptr) << none;
  }
  EXPECT_EQ(gcap_rule_runtime_name(nullptr), nullptr);
  EXPECT_EQ(gcap_rule_runtime_name(std::string(1000, 'c').c_str()), nullptr);
}

// They are searched by halves.
TEST(RuntimeNames, AreInOrder) {
  const std::vector<std::string> names = {
#define DRIVER_CALL(driver_function, runtime_function) #driver_function,
#include "rules/driver_calls.inc"
#undef DRIVER_CALL
  };
  EXPECT_GT(names.size(), 100u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (const std::string& name : names) EXPECT_NE(gcap_rule_runtime_name(name.c_str()), nullptr) << name;
}

}  // namespace
