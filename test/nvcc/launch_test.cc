// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Kernels that nvcc registers and launches: twins found by name, wrong twins.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gcap_sim.h"
#include "test/nvcc/host_object.h"

namespace {

using gcap_test::CodeOfKernel;
using gcap_test::HostFunction;
using gcap_test::HostObject;
using gcap_test::Launch;

struct Pair {
  float* y;
  int64_t count;
};

// y[i] = factor * x[i], for each thread of the grid.
void RunScale(const gcap_sim_launch_t* launch, void* const* args) {
  const float* x = *static_cast<const float* const*>(args[0]);
  const float factor = *static_cast<const float*>(args[1]);
  float* y = *static_cast<float* const*>(args[2]);
  for (unsigned i = 0; i < launch->grid.x * launch->block.x; ++i) y[i] = factor * x[i];
}

// y[i] += 1
void RunAdd(const gcap_sim_launch_t*, void* const* args) {
  const Pair* pair = static_cast<const Pair*>(args[0]);
  for (int64_t i = 0; i < pair->count; ++i) pair->y[i] += 1;
}

void Register(const char* name, const std::vector<size_t>& bytes, decltype(RunScale)* run) {
  static auto* const kept = new std::vector<std::vector<size_t>>;  // for ever
  kept->push_back(bytes);
  gcap_sim_kernel_t twin = {};
  twin.name = name;
  twin.arg_bytes = kept->back().data();
  twin.num_args = bytes.size();
  twin.run = run;
  gcap_sim_register_kernel(&twin);
}

constexpr auto* kScale = HostFunction<0, const float*, float, float*>;
constexpr auto* kScaleAgain = HostFunction<1, const float*, float, float*>;
constexpr auto* kAdd = HostFunction<2, Pair>;
constexpr auto* kOther = HostFunction<3, const float*, float, float*>;
constexpr auto* kEmpty = HostFunction<4>;

constexpr char kScaleName[] = "_ZN2ns5scaleIfEEvPKT_S1_PS1_";  // ns::scale<float>(float const*, float, float*)
const std::vector<size_t> kScaleBytes = {8, 4, 8};

// Before main, and twins before their kernels: in no order that a linker promises.
const bool g_registered = [] {
  Register("ns::scale<float>", kScaleBytes, RunScale);
  Register("add", {sizeof(Pair)}, RunAdd);
  static HostObject* object = new HostObject({{kScaleName, {8, 4, 8}}, {"add", {16}}});  // to the program's end
  object->Add(kScale, kScaleName).Add(kAdd, "add").End();
  return true;
}();

class NvccLaunch : public testing::Test {
 protected:
  static constexpr int kCount = 8;

  void SetUp() override {
    gcap_sim_clear_faults();
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&x_), kCount * sizeof(float)));
    ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&y_), kCount * sizeof(float)));
    for (int i = 0; i < kCount; ++i) x_[i] = static_cast<float>(i), y_[i] = 0;
  }

  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    EXPECT_EQ(cudaSuccess, cudaFreeHost(x_));
    EXPECT_EQ(cudaSuccess, cudaFreeHost(y_));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream_));
  }

  void ExpectScaled(float factor, float added = 0) {
    ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    for (int i = 0; i < kCount; ++i) EXPECT_EQ(factor * static_cast<float>(i) + added, y_[i]) << i;
  }

  const float* x() const { return x_; }

  cudaStream_t stream_;
  float *x_, *y_;
};

using NvccLaunchDeathTest = NvccLaunch;

TEST_F(NvccLaunch, FindsTheTwinByName) {
  Launch(kScale, 2, 4, stream_, x(), 3.0f, y_);
  Launch(kAdd, 1, 1, stream_, Pair{y_, kCount});
  ExpectScaled(3, 1);
  EXPECT_EQ(cudaSuccess, cudaGetLastError());
}

TEST_F(NvccLaunch, TakesTheHostFunctionAsTheHandle) {
  float factor = 2;
  void* args[] = {&x_, &factor, &y_};
  const void* function = reinterpret_cast<const void*>(kScale);
  ASSERT_EQ(cudaSuccess, cudaLaunchKernel(function, dim3(2), dim3(4), args, 0, stream_));
  ExpectScaled(2);
  const char* name = nullptr;
  ASSERT_EQ(cudaSuccess, cudaFuncGetName(&name, function));
  EXPECT_STREQ(kScaleName, name);
  cudaFuncAttributes attributes;
  EXPECT_EQ(cudaSuccess, cudaFuncGetAttributes(&attributes, function));
}

// By hand parameters lie without gaps, where a guess from their sizes would leave one.
TEST_F(NvccLaunch, ParametersLieWhereTheMachineCodeSays) {
  size_t offset = 0, bytes = 0;
  ASSERT_EQ(cudaSuccess, cudaFuncGetParamInfo(reinterpret_cast<const void*>(kScale), 2, &offset, &bytes));
  EXPECT_EQ(12u, offset);
  EXPECT_EQ(8u, bytes);
}

TEST_F(NvccLaunch, CapturesAndReplays) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  Launch(kScale, 2, 4, stream_, x(), 3.0f, y_);
  Launch(kAdd, 1, 1, stream_, Pair{y_, kCount});
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
  ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
  for (int replay = 0; replay < 2; ++replay) ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  ExpectScaled(3, 1);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

// To the log, the counters and the faults it is the call that it stands for.
TEST_F(NvccLaunch, IsACallOfCudaLaunchKernel) {
  const uint64_t calls = gcap_sim_calls("cudaLaunchKernel");
  gcap_sim_fail_nth("cudaLaunchKernel", 1, cudaErrorLaunchOutOfResources);
  Launch(kScale, 2, 4, stream_, x(), 3.0f, y_);
  EXPECT_EQ(cudaErrorLaunchOutOfResources, cudaGetLastError());
  EXPECT_EQ(calls + 1, gcap_sim_calls("cudaLaunchKernel"));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  EXPECT_EQ(0, y_[1]);
}

TEST_F(NvccLaunch, AnswersABadConfigurationAsCudaDoes) {
  Launch(kScale, 1, 2048, stream_, x(), 3.0f, y_);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGetLastError());
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
  EXPECT_EQ(cudaErrorMissingConfiguration, __cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream));
}

// f<<<1, 8>>>(g()), where g launches something itself.
// The machine code tells what a launch needs, as an H200's runtime does: of `__launch_bounds__(64)`, 4,096 bytes of
// __shared__ and 128 of __constant__ variables, 800 of a thread's own.
TEST_F(NvccLaunch, TheMachineCodeSaysWhatALaunchNeeds) {
  static constexpr auto* kBounded = HostFunction<7, int*>;
  CodeOfKernel code = {"bounded", {8}};
  code.max_threads = 64;
  code.shared_bytes = 4096;
  code.const_bytes = 128;
  code.local_bytes = 800;
  code.registers = 40;
  HostObject object({code, {"other", {8}}});
  object.Add(kBounded, "bounded");
  Register("bounded", {8}, [](const gcap_sim_launch_t*, void* const*) {});
  const void* const kernel = reinterpret_cast<const void*>(kBounded);
  cudaFuncAttributes a = {};
  ASSERT_EQ(cudaSuccess, cudaFuncGetAttributes(&a, kernel));
  EXPECT_EQ(64, a.maxThreadsPerBlock);
  EXPECT_EQ(4096u, a.sharedSizeBytes);
  EXPECT_EQ(128u, a.constSizeBytes);
  EXPECT_EQ(800u, a.localSizeBytes);
  EXPECT_EQ(40, a.numRegs);
  EXPECT_EQ((48 << 10) - 4096, a.maxDynamicSharedSizeBytes);
  int* argument = nullptr;
  void* args[] = {&argument};
  const auto launch = [&](unsigned threads, size_t shared) {
    const cudaError_t error = cudaLaunchKernel(kernel, dim3(1), dim3(threads), args, shared, nullptr);
    (void)cudaGetLastError();
    return error;
  };
  EXPECT_EQ(cudaSuccess, launch(64, 44 << 10));
  EXPECT_EQ(cudaErrorInvalidValue, launch(65, 0));
  EXPECT_EQ(cudaErrorInvalidValue, launch(64, (44 << 10) + 1));
  EXPECT_EQ(cudaErrorInvalidValue,
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (227 << 10) - 4095));
  ASSERT_EQ(cudaSuccess, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 46 << 10));
  EXPECT_EQ(cudaSuccess, launch(64, 46 << 10));
  // 40 registers of 1,024 threads fit once into 65,536; of 64 threads each, 25 times, and the shared memory with the
  // system's 1 KiB 45 times.
  int blocks = -1;
  ASSERT_EQ(cudaSuccess, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 1024, 0));
  EXPECT_EQ(1, blocks);
  ASSERT_EQ(cudaSuccess, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 64, 0));
  EXPECT_EQ(25, blocks);
  ASSERT_EQ(cudaSuccess, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 64, 16 << 10));
  EXPECT_EQ(10, blocks);
}

TEST_F(NvccLaunch, LaunchesInTheArgumentsOfALaunch) {
  ASSERT_EQ(0u, __cudaPushCallConfiguration(dim3(2), dim3(4), 0, stream_));
  Launch(kScale, 1, 1, stream_, x(), 5.0f, y_);
  kScale(x(), 3.0f, y_);
  ExpectScaled(3);
}

TEST_F(NvccLaunch, AFunctionOfNoObjectIsNoKernel) {
  Launch(kOther, 1, 1, stream_, x(), 5.0f, y_);
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaGetLastError());
}

// A template is in each object that uses it, with a host function of its own.
TEST_F(NvccLaunch, AKernelInTwoObjectsHasOneTwin) {
  HostObject object({{kScaleName, {8, 4, 8}}});
  object.Add(kScaleAgain, kScaleName).End();
  Launch(kScaleAgain, 2, 4, stream_, x(), 3.0f, y_);
  ExpectScaled(3);
}

TEST_F(NvccLaunch, AKernelGoesWithItsObject) {
  for (int load = 0; load < 2; ++load) {
    {
      const std::string name = kScaleName;  // which goes with a plugin that is unloaded
      HostObject object;
      object.Add(kOther, name.c_str()).End();
      Launch(kOther, 2, 4, stream_, x(), 3.0f, y_);
      ExpectScaled(3);
    }
    Launch(kOther, 2, 4, stream_, x(), 4.0f, y_);
    EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaGetLastError());
  }
}

TEST_F(NvccLaunch, ObjectsHaveVariablesToo) {
  std::vector<char> code = gcap_test::FatBinaryOf({});
  gcap_test::Wrapper wrapper = {0x466243b1, 2, code.data(), nullptr};  // device code that was linked
  void** handle = __cudaRegisterFatBinary(&wrapper);
  static char variable;
  __cudaRegisterVar(handle, &variable, &variable, "variable", 0, 1, 0, 0);
  __cudaRegisterFatBinaryEnd(handle);
  EXPECT_EQ(1, __cudaInitModule(handle));
  EXPECT_DEATH(__cudaRegisterManagedVar(handle, nullptr, nullptr, "shared", 0, 4, 0, 0),
               "the __managed__ variable `shared` is not modelled");
  __cudaUnregisterFatBinary(handle);
  EXPECT_DEATH(__cudaUnregisterFatBinary(handle), "is no handle that __cudaRegisterFatBinary gave out");
}

// As in two libraries of which one is unloaded, whichever: the rest has the kernel and the variable.
TEST_F(NvccLaunchDeathTest, WhatStaysInAnotherObjectIsWhatItWas) {
  static char table, unknown;
  for (const bool first_goes : {true, false}) {
    std::unique_ptr<HostObject> objects[2];
    for (auto& object : objects) {
      const std::string kernel = "plain", known = "table", other = "unknown";  // which go with an object
      object.reset(new HostObject({{kernel, {8, 4, 24}}}, {{known, 4, {1, 2, 3, 4}}}));
      object->Add(kOther, kernel.c_str()).AddVariable(&table, known.c_str(), 4);
      object->AddVariable(&unknown, other.c_str(), 4).End();
    }
    objects[first_goes ? 0 : 1].reset();
    uint32_t value = 77;
    EXPECT_EQ(cudaSuccess, cudaMemcpyFromSymbol(&value, &table, sizeof(value)));
    EXPECT_EQ(0x04030201u, value);
    EXPECT_DEATH((void)cudaMemcpyFromSymbol(&value, &unknown, sizeof(value)), "uninitialized");
    EXPECT_DEATH((Register("plain", kScaleBytes, RunScale), Launch(kOther, 1, 1, stream_, x(), 1.0f, y_)),
                 "argument 2 of the twin `plain` has 8 bytes, that of the kernel `plain` has 24");
  }
}

// --- Twins that do not fit -------------------------------------------------------------------------------------------

TEST_F(NvccLaunchDeathTest, AKernelWithoutATwinStopsWithItsName) {
  HostObject object;
  object.Add(kOther, "_ZN2ns5otherEPKffPf").End();
  EXPECT_DEATH(
      Launch(kOther, 1, 1, stream_, x(), 1.0f, y_),
      "cudaLaunchKernel: kernel `ns::other\\(float const\\*, float, float\\*\\)` has no twin: register one by this "
      "name with gcap_sim_register_kernel, or skip such kernels with GCAP_SIM_MISSING_TWIN=skip");
}

// A name that is not a function's, one that is cut short, and those of types that are written in parts.
TEST_F(NvccLaunchDeathTest, AnyNameWillDo) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"_ZTI1k", "kernel `typeinfo for k` has no twin"},
      {"_Z1kPK", "kernel `_Z1kPK` has no twin"},
      {"__nv_static_99_short", "kernel `__nv_static_99_short` has no twin"},
      {"_Z1kILi3EEv6float4PFviEx", "kernel `k<3>\\(float4, void \\(\\*\\)\\(int\\), long long\\)` has no twin"},
      {"_Z1kILb1EEvPfPA4_i", "kernel `k<true>\\(float\\*, int \\(\\*\\) \\[4\\]\\)` has no twin"}};
  for (const auto& row : rows) {
    HostObject object;
    object.Add(kOther, row.first).End();
    EXPECT_DEATH(Launch(kOther, 1, 1, stream_, x(), 1.0f, y_), row.second);
  }
}

TEST_F(NvccLaunchDeathTest, TheEnvironmentSaysWhetherItStops) {
  HostObject object;
  object.Add(kOther, "_ZN2ns5otherEPKffPf").End();
  const auto launch_with = [&](const char* setting) {
    setenv("GCAP_SIM_MISSING_TWIN", setting, 1);
    Launch(kOther, 1, 1, stream_, x(), 1.0f, y_);
    _exit(cudaStreamSynchronize(stream_) == cudaSuccess && gcap_sim_skipped("ns::other") == 1 ? 0 : 1);
  };
  EXPECT_DEATH(launch_with("sometimes"), "GCAP_SIM_MISSING_TWIN is 'sometimes', expected stop or skip");
  EXPECT_DEATH(launch_with("stop"), "`ns::other.*` has no twin");
  EXPECT_EXIT(launch_with("skip"), testing::ExitedWithCode(0), "`ns::other.*` has no twin: its launches do nothing");
}

TEST_F(NvccLaunchDeathTest, ATwinIsRegisteredOnce) {
  EXPECT_DEATH(Register("add", {16}, RunAdd), "gcap_sim_register_kernel: add has a twin already");
  const auto another = [&] {
    Register(kScaleName, kScaleBytes, RunScale);
    HostObject object;
    object.Add(kOther, kScaleName).End();
    Launch(kOther, 1, 1, stream_, x(), 1.0f, y_);
  };
  EXPECT_DEATH(another(),
               "the kernel `ns::scale<float>\\(float const\\*, float, float\\*\\)` has two twins, "
               "`ns::scale<float>` and `_ZN2ns5scaleIfEEvPKT_S1_PS1_`");
  EXPECT_DEATH(Register(nullptr, {}, RunAdd), "the twin has no name");
}

TEST_F(NvccLaunchDeathTest, ATwinForTwoOverloadsIsRefused) {
  HostObject object;
  object.Add(kOther, "_Z4overPKffPf").Add(kEmpty, "_Z4overv").End();
  const auto both = [&] {
    Register("over", kScaleBytes, RunScale);
    Launch(kOther, 1, 1, stream_, x(), 1.0f, y_);
    Launch(kEmpty, 1, 1, stream_);
  };
  EXPECT_DEATH(both(), "the twin `over` is that of `over\\(float const\\*, float, float\\*\\)` and of `over\\(\\)`");
}

TEST_F(NvccLaunch, OverloadsHaveNamesOfTheirOwn) {
  HostObject object;
  object.Add(kOther, "_Z5partsPKffPf").Add(kEmpty, "_Z5partsv").End();
  Register("parts(float const*, float, float*)", kScaleBytes, RunScale);
  Register("_Z5partsv", {}, [](const gcap_sim_launch_t*, void* const*) {});
  Launch(kOther, 2, 4, stream_, x(), 2.0f, y_);
  Launch(kEmpty, 1, 1, stream_);
  EXPECT_EQ(cudaSuccess, cudaGetLastError());
  ExpectScaled(2);
}

// The sizes are known from the machine code, and without it from the name.
TEST_F(NvccLaunchDeathTest, ATwinTakesWhatTheKernelTakes) {
  const auto launch = [&](const char* name, const std::vector<CodeOfKernel>& code, const std::vector<size_t>& bytes) {
    Register(name, bytes, RunScale);
    HostObject object(code);
    object.Add(kOther, name).End();
    Launch(kOther, 1, 1, stream_, x(), 1.0f, y_);
  };
  const char* name = "_Z1kPKffPf";
  EXPECT_DEATH(launch(name, {}, {8, 4}),
               "the twin `_Z1kPKffPf` has 2 arguments, the kernel `k\\(float const\\*, float, float\\*\\)` has 3");
  EXPECT_DEATH(launch(name, {}, {8, 8, 8}),
               "argument 1 of the twin `_Z1kPKffPf` has 8 bytes, that of the kernel .* has 4");
  EXPECT_DEATH(launch("plain", {{"plain", {8, 4}}}, {8, 4, 8}), "`plain` has 3 arguments, the kernel `plain` has 2");
  EXPECT_DEATH(launch("plain", {{"plain", {8, 4, 24}}}, {8, 4, 8}), "argument 2 .* 8 bytes, .* has 24");
}

// nvcc writes them in two forms; any other leaves the name.
TEST_F(NvccLaunchDeathTest, TheSizesOfLargeParametersAreKnownToo) {
  const auto launch = [&](const char* name, const std::vector<uint32_t>& sizes, uint32_t attribute,
                          const std::vector<size_t>& bytes) {
    Register(name, bytes, RunScale);
    HostObject object({{name, sizes, attribute}});
    object.Add(kOther, name).End();
    Launch(kOther, 2, 4, stream_, x(), 3.0f, y_);
    ExpectScaled(3);
  };
  constexpr uint32_t kUnknown = 0x46;
  EXPECT_DEATH(launch("plain", {8, 4, 20000}, gcap_test::kLargeParam, {8, 4, 8}), "argument 2 .* has 20000");
  EXPECT_DEATH(launch("_Z1kPKffPf", {8, 4, 8}, kUnknown, {8, 4}), "has 2 arguments, the kernel .* has 3");
  launch("large", {8, 4, 8}, gcap_test::kLargeParam, {8, 4, 8});
  launch("unknown", {8, 4, 8}, kUnknown, {8, 4, 8});
}

TEST_F(NvccLaunchDeathTest, ATwinByAddressTakesWhatTheKernelTakes) {
  static const size_t kBytes[] = {8};
  const gcap_sim_kernel_t twin = {reinterpret_cast<const void*>(kOther), "mine", kBytes, 1, RunScale, nullptr};
  HostObject object({{"plain", {4}}});
  object.Add(kOther, "plain").End();
  EXPECT_DEATH((gcap_sim_register_kernel(&twin), Launch(kOther, 1, 1, stream_, x(), 1.0f, y_)),
               "argument 0 of the twin `mine` has 8 bytes, that of the kernel `plain` has 4");
}

TEST_F(NvccLaunchDeathTest, OneFunctionIsOneKernel) {
  HostObject object;
  object.Add(kOther, "one");
  EXPECT_DEATH(object.Add(kOther, "two"), "one function is registered as `one` and as `two`");
  EXPECT_DEATH(object.Add(kEmpty, nullptr), "lacks its function or its name");
}

}  // namespace
