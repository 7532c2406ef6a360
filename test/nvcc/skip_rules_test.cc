// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a kernel without a twin is taken to read and write, by its arguments.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gcap_sim.h"
#include "test/nvcc/host_object.h"
#include "test/sim/driver_abi.h"

namespace {

using gcap_test::CodeOfKernel;
using gcap_test::HostFunction;
using gcap_test::HostObject;
using gcap_test::Launch;

struct Params {
  const char* name_only;
  char* data;
  int64_t count;
};

constexpr auto* kCopy = HostFunction<300, const char*, char*, int>;
constexpr auto* kPlain = HostFunction<301, char*, int>;
constexpr auto* kStruct = HostFunction<302, Params>;
constexpr auto* kHidden = HostFunction<303, int, Params>;
constexpr auto* kTable = HostFunction<304, char**>;
constexpr auto* kNothingKnown = HostFunction<305, char*>;
constexpr auto* kStatic = HostFunction<306, float*>;
constexpr auto* kLeaving = HostFunction<307, float*>;

const bool g_registered = [] {
  static HostObject* object = new HostObject({{"plain", {8, 4}}, {"_ZN2ns7structsENS_6ParamsE", {24}}});
  object->Add(kCopy, "_ZN2ns4copyEPKcPci").Add(kPlain, "plain").Add(kStruct, "_ZN2ns7structsENS_6ParamsE");
  object->Add(kHidden, "_ZN2ns6hiddenEiNS_6ParamsE").Add(kTable, "_ZN2ns5tableEPPc");
  object->Add(kNothingKnown, "nothing_known").Add(kStatic, "__nv_static_22__1ce3a087_4_x_cu_named__Z4statPf").End();
  return true;
}();

class SkipRules : public testing::Test {
 protected:
  static constexpr size_t kBytes = 256;

  void SetUp() override {
    gcap_sim_set_missing_twin(GCAP_SIM_MISSING_TWIN_SKIP);
    gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_RECORD);
    gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_OFF);
    for (cudaStream_t* stream : {&stream_, &other_}) {
      ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    }
    for (char** memory : {&x_, &y_}) ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(memory), kBytes));
  }

  void TearDown() override {
    cudaDeviceSynchronize();
    gcap_sim_check();
    for (char* memory : {x_, y_}) EXPECT_EQ(cudaSuccess, cudaFree(memory));
    for (cudaStream_t stream : {stream_, other_}) EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
    gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_DEFAULT);
    gcap_sim_set_missing_twin(GCAP_SIM_MISSING_TWIN_STOP);
  }

  // The one report since the last look, "" for none.
  static std::string Report() {
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    const size_t count = gcap_sim_check();
    EXPECT_LE(count, 1u);
    return count > 0 ? gcap_sim_report(0) : "";
  }

  // Is it told that nobody has written these bytes?
  bool IsUnwritten(const char* memory, size_t bytes = 1) {
    char host[kBytes];
    EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(host, memory, bytes, cudaMemcpyDeviceToHost, stream_));
    return Report().find("uninitialized") != std::string::npos;
  }

  cudaStream_t stream_, other_;
  char *x_, *y_;
};

using SkipRulesDeathTest = SkipRules;

TEST_F(SkipRules, WhatIsNotConstIsWritten) {
  Launch(kCopy, 1, 1, stream_, static_cast<const char*>(x_), y_, 1);
  EXPECT_EQ("", Report());  // nobody knows that the kernel looks at x
  EXPECT_FALSE(IsUnwritten(y_, kBytes));
  EXPECT_TRUE(IsUnwritten(x_));
}

TEST_F(SkipRules, WhatComesBeforeThePointerIsNotWritten) {
  Launch(kCopy, 1, 1, stream_, static_cast<const char*>(x_), y_ + 64, 1);
  EXPECT_FALSE(IsUnwritten(y_ + 64, kBytes - 64));
  EXPECT_TRUE(IsUnwritten(y_ + 63));
}

TEST_F(SkipRules, APartOfAnArenaEndsWhereItEnds) {
  gcap_sim_annotate_alloc(y_ + 64, 64, stream_, "part");
  Launch(kCopy, 1, 1, stream_, static_cast<const char*>(x_), y_ + 64, 1);
  EXPECT_FALSE(IsUnwritten(y_ + 64, 64));
  EXPECT_TRUE(IsUnwritten(y_ + 128));
  gcap_sim_annotate_free(y_ + 64, stream_);
}

// The sizes are known from machine code; which words are addresses, by where they point.
TEST_F(SkipRules, WordsThatAreAddressesMayBeWritten) {
  Launch(kStruct, 1, 1, stream_, Params{nullptr, y_, 0x1234});
  EXPECT_FALSE(IsUnwritten(y_, kBytes));
  EXPECT_TRUE(IsUnwritten(x_));
  Launch(kPlain, 1, 1, stream_, x_, 7);
  EXPECT_FALSE(IsUnwritten(x_));
}

TEST_F(SkipRules, BehindATableOrAnUnknownStructAllMayBeWritten) {
  Launch(kTable, 1, 1, stream_, static_cast<char**>(nullptr));
  EXPECT_FALSE(IsUnwritten(x_));
  char* later;
  ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&later), kBytes));
  EXPECT_TRUE(IsUnwritten(later));
  Launch(kHidden, 1, 1, stream_, 1, Params{nullptr, later, 1});
  EXPECT_FALSE(IsUnwritten(later));
  EXPECT_EQ(cudaSuccess, cudaFree(later));
  ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&later), kBytes));
  Launch(kNothingKnown, 1, 1, stream_, later);
  EXPECT_FALSE(IsUnwritten(later));
  EXPECT_EQ(cudaSuccess, cudaFree(later));
}

// Two that only read are no race, and a write is one with either.
TEST_F(SkipRules, PointersToConstAreRead) {
  ASSERT_EQ(cudaSuccess, cudaMemset(x_, 0, kBytes));
  ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
  char* z;
  ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&z), kBytes));
  Launch(kCopy, 1, 1, stream_, static_cast<const char*>(x_), y_, 1);
  Launch(kCopy, 1, 1, other_, static_cast<const char*>(x_), z, 1);
  EXPECT_EQ("", Report());
  Launch(kCopy, 1, 1, stream_, static_cast<const char*>(x_), y_, 1);
  Launch(kCopy, 1, 1, other_, static_cast<const char*>(z), x_, 1);
  const std::string report = Report();
  EXPECT_NE(std::string::npos, report.find("race on 1 byte")) << report;
  EXPECT_NE(std::string::npos, report.find("kernel `ns::copy`")) << report;
  EXPECT_EQ(cudaSuccess, cudaFree(z));
}

// Of words nobody knows whether they are read or written: no race among them, and one with a write that is certain.
TEST_F(SkipRules, WordsThatAreAddressesAreRead) {
  Launch(kPlain, 1, 1, stream_, x_, 1);
  Launch(kStruct, 1, 1, other_, Params{x_, y_, 0});
  EXPECT_EQ("", Report());
  Launch(kPlain, 1, 1, stream_, x_, 1);
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(x_, 0, kBytes, other_));
  EXPECT_NE(std::string::npos, Report().find("race")) << "a write and a word";
}

TEST_F(SkipRules, MemoryOfTheHostOrOfNobodyIsTold) {
  char host = 0;
  Launch(kCopy, 1, 1, stream_, static_cast<const char*>(x_), &host, 1);
  EXPECT_NE(std::string::npos, Report().find("kernel `ns::copy`"));
  char* gone;
  ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&gone), kBytes));
  ASSERT_EQ(cudaSuccess, cudaFree(gone));
  Launch(kCopy, 1, 1, stream_, static_cast<const char*>(gone), y_, 1);
  EXPECT_NE(std::string::npos, Report().find("freed by cudaFree"));
  Launch(kCopy, 1, 1, stream_, static_cast<const char*>(nullptr), static_cast<char*>(nullptr), 0);
  EXPECT_EQ("", Report());
}

// --- Nodes ----------------------------------------------------------------------------------------------------------

class SkippedNode : public SkipRules {
 protected:
  template <typename... Args, typename... Given>
  cudaGraphNode_t Capture(void (*kernel)(Args...), Given... args) {
    EXPECT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
    Launch(kernel, 1, 1, stream_, args...);
    EXPECT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph_));
    cudaGraphNode_t node = nullptr;
    size_t count = 1;
    EXPECT_EQ(cudaSuccess, cudaGraphGetNodes(graph_, &node, &count));
    return node;
  }
  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph_));
    SkipRules::TearDown();
  }
  cudaGraph_t graph_ = nullptr;
};

using SkippedNodeDeathTest = SkippedNode;

TEST_F(SkippedNode, HasTheArgumentsOfTheLaunch) {
  cudaGraphNode_t node = Capture(kStruct, Params{x_, y_, 42});
  cudaKernelNodeParams params = {};
  ASSERT_EQ(cudaSuccess, cudaGraphKernelNodeGetParams(node, &params));
  EXPECT_EQ(reinterpret_cast<void*>(kStruct), params.func);
  Params copied;
  memcpy(&copied, params.kernelParams[0], sizeof(copied));
  EXPECT_EQ(y_, copied.data);
  EXPECT_EQ(42, copied.count);
  EXPECT_EQ(cudaSuccess, cudaGraphKernelNodeSetParams(node, &params));
}

TEST_F(SkippedNode, IsToldByTheDriverToo) {
  using gcap::testing::DriverEntry;
  cudaGraphNode_t node = Capture(kStruct, Params{x_, y_, 42});
  gcap::testing::DriverNode told = {};
  ASSERT_EQ(0, DriverEntry<gcap::testing::GetNode>("cuGraphKernelNodeGetParams")(node, &told));
  Params copied;
  memcpy(&copied, told.params[0], sizeof(copied));
  EXPECT_EQ(y_, copied.data);
  const char* name = nullptr;
  EXPECT_EQ(0, DriverEntry<gcap::testing::GetName>("cuFuncGetName")(&name, told.func));
  EXPECT_STREQ("_ZN2ns7structsENS_6ParamsE", name);
  size_t offset = 77, bytes = 77;
  EXPECT_EQ(0, DriverEntry<gcap::testing::GetParam>("cuFuncGetParamInfo")(told.func, 0, &offset, &bytes));
  EXPECT_EQ(0u, offset);
  EXPECT_EQ(sizeof(Params), bytes);
  EXPECT_EQ(1, DriverEntry<gcap::testing::GetParam>("cuFuncGetParamInfo")(told.func, 1, &offset, &bytes));
}

TEST_F(SkippedNodeDeathTest, WithoutSizesHasNoneAndSaysSo) {
  cudaGraphNode_t node = Capture(kHidden, 1, Params{x_, y_, 42});
  cudaKernelNodeParams params = {};
  EXPECT_DEATH(cudaGraphKernelNodeGetParams(node, &params),
               "the arguments of kernel `ns::hidden\\(int, ns::Params\\)` are not known: .* size of argument 1");
  gcap::testing::DriverNode told = {};
  const auto get = gcap::testing::DriverEntry<gcap::testing::GetNode>("cuGraphKernelNodeGetParams");
  EXPECT_DEATH(get(node, &told), "the arguments of kernel `ns::hidden\\(int, ns::Params\\)` are not known");
}

TEST_F(SkippedNodeDeathTest, OfAKernelOfWhichNothingIsKnownSaysSo) {
  cudaGraphNode_t node = Capture(kNothingKnown, x_);
  cudaKernelNodeParams params = {};
  EXPECT_DEATH(cudaGraphKernelNodeGetParams(node, &params), "the arguments of kernel `nothing_known` are not known");
}

// --- Which kernels --------------------------------------------------------------------------------------------------

TEST_F(SkipRulesDeathTest, ATwinComesBeforeTheFirstLaunch) {
  static const size_t kTwinBytes[] = {8, 8, 4};
  gcap_sim_kernel_t twin = {};
  twin.name = "ns::copy";
  twin.arg_bytes = kTwinBytes;
  twin.num_args = 3;
  twin.run = [](const gcap_sim_launch_t*, void* const*) {};
  Launch(kCopy, 1, 1, stream_, static_cast<const char*>(x_), y_, 1);
  EXPECT_DEATH(gcap_sim_register_kernel(&twin), "ns::copy was launched without a twin: register twins before that");
  twin.function = reinterpret_cast<const void*>(kCopy);
  EXPECT_DEATH(gcap_sim_register_kernel(&twin), "ns::copy was launched without a twin: register twins before that");
}

TEST_F(SkipRulesDeathTest, TheUserMayStopAgain) {
  Launch(kCopy, 1, 1, stream_, static_cast<const char*>(x_), y_, 1);
  gcap_sim_set_missing_twin(GCAP_SIM_MISSING_TWIN_STOP);
  EXPECT_DEATH(Launch(kCopy, 1, 1, stream_, static_cast<const char*>(x_), y_, 1), "`ns::copy.*` has no twin");
}

// Device code that is linked: the name of a file's own kernel has the file's before it.
TEST_F(SkipRulesDeathTest, AStaticKernelOfLinkedCodeHasItsName) {
  gcap_sim_set_missing_twin(GCAP_SIM_MISSING_TWIN_STOP);
  EXPECT_DEATH(Launch(kStatic, 1, 1, stream_, static_cast<float*>(nullptr)), "kernel `stat\\(float\\*\\)` has no twin");
}

TEST_F(SkipRules, EachKernelIsSaidOnce) {
  testing::internal::CaptureStderr();
  HostObject object;
  constexpr auto* kOnce = HostFunction<307, char*>;
  object.Add(kOnce, "_ZN2ns4onceEPc").End();
  for (int i = 0; i < 2; ++i) Launch(kOnce, 1, 1, stream_, y_);
  EXPECT_EQ("", Report());
  EXPECT_EQ(2u, gcap_sim_skipped("ns::once"));
  EXPECT_EQ("gcap sim: kernel `ns::once(char*)` has no twin: its launches do nothing, and what they write is unknown\n",
            testing::internal::GetCapturedStderr());
}

// A library that is unloaded does not take what is known of its launches away.
TEST_F(SkipRules, LaunchesOfAKernelThatIsGoneCount) {
  const uint64_t all = gcap_sim_skipped(nullptr);
  for (uint64_t load = 1; load <= 2; ++load) {
    {
      HostObject object;
      object.Add(kLeaving, "_ZN2ns7leavingEPf").End();
      Launch(kLeaving, 1, 1, stream_, nullptr);
      EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    }
    EXPECT_EQ(all + load, gcap_sim_skipped(nullptr));
    EXPECT_EQ(load, gcap_sim_skipped("ns::leaving"));
  }
}

}  // namespace
