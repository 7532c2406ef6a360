// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The call log: which calls a filter selects, and what a line tells.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"

extern "C" {
#include "sim/api/submit.h"
}

namespace {

using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

void KernelStub() {}

const bool g_registered = [] {
  gcap_sim_kernel_t twin = {};
  twin.function = reinterpret_cast<const void*>(&KernelStub);
  twin.name = "log_test_kernel";
  twin.run = [](const gcap_sim_launch_t*, void* const*) {};
  gcap_sim_register_kernel(&twin);
  return true;
}();

class Log : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaEventCreate(&event_));
  }
  void TearDown() override {
    gcap_sim_set_log(nullptr, nullptr, nullptr);
    EXPECT_EQ(cudaSuccess, cudaEventDestroy(event_));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream_));
    cudaGetLastError();
  }
  void Select(const char* filter) {
    lines_.clear();
    gcap_sim_set_log(
        filter, [](void* lines, const char* line) { static_cast<std::vector<std::string>*>(lines)->push_back(line); },
        &lines_);
  }
  // The names of the functions that were logged, in order.
  std::string Names() const {
    std::string names;
    for (const std::string& line : lines_) {
      size_t end = line.find('(');
      size_t begin = line.rfind(' ', end) + 1;
      names += (names.empty() ? "" : " ") + line.substr(begin, end - begin);
    }
    return names;
  }
  // Makes calls of several kinds, one of which fails.
  void MakeCalls() {
    int device;
    EXPECT_EQ(cudaSuccess, cudaGetDevice(&device));
    EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventRecord(nullptr, stream_));
    EXPECT_EQ(cudaSuccess, cudaEventRecord(event_, stream_));
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaGetLastError());
  }

  cudaStream_t stream_;
  cudaEvent_t event_;
  std::vector<std::string> lines_;
};

TEST_F(Log, StarSelectsEveryCallInOrder) {
  Select("*");
  MakeCalls();
  EXPECT_EQ("cudaGetDevice cudaEventRecord cudaEventRecord cudaStreamSynchronize cudaGetLastError", Names());
}

TEST_F(Log, NamesAndPrefixesSelect) {
  Select("cudaGetDevice,cudaStream*");
  MakeCalls();
  EXPECT_EQ("cudaGetDevice cudaStreamSynchronize", Names());
}

TEST_F(Log, ExclusionsAloneSelectAllElse) {
  Select("-cudaEvent*,-cudaGetDevice");
  MakeCalls();
  EXPECT_EQ("cudaStreamSynchronize cudaGetLastError", Names());
}

TEST_F(Log, ExclusionBeatsSelection) {
  Select("cuda*,-cudaGetLastError,-cudaEventRecord");
  MakeCalls();
  EXPECT_EQ("cudaGetDevice cudaStreamSynchronize", Names());
}

TEST_F(Log, ErrorsSelectsFailedCalls) {
  Select("errors,-cudaGetLastError");
  MakeCalls();
  ASSERT_EQ("cudaEventRecord", Names());
  EXPECT_NE(std::string::npos, lines_[0].find("-> 400 cudaErrorInvalidResourceHandle"));
}

TEST_F(Log, EndsWithNullAndWithNothing) {
  for (const char* end : {static_cast<const char*>(nullptr), ""}) {
    Select("*");
    Select(end);
    MakeCalls();
    EXPECT_EQ("", Names());
  }
}

TEST_F(Log, LineTellsNumberThreadArgumentsAndResult) {
  uint64_t calls = gcap_sim_calls(nullptr);
  Select("*");
  EXPECT_EQ(cudaSuccess, cudaEventRecord(event_, stream_));
  ASSERT_EQ(1u, lines_.size());
  const std::string start = "#" + std::to_string(calls + 1) + " thread ";
  EXPECT_EQ(start, lines_[0].substr(0, start.size()));
  EXPECT_NE(std::string::npos, lines_[0].find(" cudaEventRecord(event "));
  EXPECT_NE(std::string::npos, lines_[0].find(", stream "));
  EXPECT_NE(std::string::npos, lines_[0].find(") -> 0 cudaSuccess"));
}

TEST_F(Log, OneHandleHasOneNameAndAnotherHasAnother) {
  cudaStream_t other;
  Select("*");
  ASSERT_EQ(cudaSuccess, cudaStreamCreate(&other));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(other));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamDestroy(other));
  ASSERT_EQ(4u, lines_.size());
  size_t made = lines_[0].find("makes stream ");
  ASSERT_NE(std::string::npos, made);
  const std::string name = lines_[0].substr(made + 6);
  EXPECT_NE(std::string::npos, lines_[1].find("(" + name + ")"));
  EXPECT_EQ(std::string::npos, lines_[2].find("(" + name + ")"));
  EXPECT_NE(std::string::npos, lines_[3].find("(" + name + ")"));
}

TEST_F(Log, ManyHandlesAreCutShortOnce) {
  std::vector<cudaGraphNode_t> nodes(20);
  cudaGraph_t graph;
  cudaGraphNode_t last;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&graph, 0));
  for (cudaGraphNode_t& node : nodes) ASSERT_EQ(cudaSuccess, cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
  Select("*");
  ASSERT_EQ(cudaSuccess, cudaGraphAddEmptyNode(&last, graph, nodes.data(), nodes.size()));
  ASSERT_EQ(1u, lines_.size());
  size_t cut = lines_[0].find("…");
  ASSERT_NE(std::string::npos, cut);
  EXPECT_EQ(cut, lines_[0].rfind("…"));
  gcap_sim_set_log(nullptr, nullptr, nullptr);
  ASSERT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

TEST_F(Log, TellsSizesKernelsAndSpecialStreams) {
  void* memory;
  Select("*");
  ASSERT_EQ(cudaSuccess, cudaMalloc(&memory, 4096));
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(memory, static_cast<char*>(memory) + 64, 64, cudaMemcpyDeviceToDevice, 0));
  ASSERT_EQ(cudaSuccess, cudaLaunchKernel(reinterpret_cast<const void*>(&KernelStub), dim3(1), dim3(1), nullptr, 0,
                                          cudaStreamPerThread));
  ASSERT_EQ(cudaSuccess, cudaFree(memory));
  ASSERT_EQ(4u, lines_.size());
  EXPECT_NE(std::string::npos, lines_[0].find("cudaMalloc(4096 bytes)"));
  EXPECT_NE(std::string::npos, lines_[1].find("64 bytes"));
  EXPECT_NE(std::string::npos, lines_[1].find("legacy stream"));
  EXPECT_NE(std::string::npos, lines_[2].find("kernel log_test_kernel"));
  EXPECT_NE(std::string::npos, lines_[2].find("per-thread stream"));
}

TEST_F(Log, TellsWhatAReaderOfCapturesNeeds) {
  cudaStream_t blocking;
  cudaGraph_t graph;
  void *device, *pinned;
  char pageable[64] = {};
  ASSERT_EQ(cudaSuccess, cudaMalloc(&device, 64));
  ASSERT_EQ(cudaSuccess, cudaMallocHost(&pinned, 64));
  Select("*");
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_EQ(cudaSuccess, cudaStreamCreate(&blocking));
  ASSERT_EQ(cudaSuccess, cudaStreamDestroy(blocking));
  ASSERT_EQ(cudaSuccess, cudaThreadExchangeStreamCaptureMode(&mode));
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(device, pageable, 64, cudaMemcpyHostToDevice, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(pinned, device, 64, cudaMemcpyDeviceToHost, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device, 0, 64, stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
  gcap_sim_set_log(nullptr, nullptr, nullptr);
  ASSERT_EQ(cudaSuccess, cudaThreadExchangeStreamCaptureMode(&mode));
  ASSERT_EQ(8u, lines_.size());
  EXPECT_NE(std::string::npos, lines_[0].find("cudaStreamCreate(blocking) ")) << lines_[0];
  EXPECT_NE(std::string::npos, lines_[2].find("(mode relaxed)")) << lines_[2];
  EXPECT_NE(std::string::npos, lines_[3].find(", mode thread-local)")) << lines_[3];
  const size_t made = lines_[3].find("makes graph ");
  ASSERT_NE(std::string::npos, made) << lines_[3];
  const std::string name = lines_[3].substr(made + 6, lines_[3].find(',', made) - made - 6);
  EXPECT_NE(std::string::npos, lines_[4].find("64 bytes, pageable memory to device")) << lines_[4];
  EXPECT_NE(std::string::npos, lines_[4].find(" (memcpy of " + name + ")")) << lines_[4];
  EXPECT_NE(std::string::npos, lines_[5].find("64 bytes, device to pinned memory")) << lines_[5];
  EXPECT_NE(std::string::npos, lines_[6].find(" (memset of " + name + ")")) << lines_[6];
  ASSERT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  ASSERT_EQ(cudaSuccess, cudaFree(device));
  ASSERT_EQ(cudaSuccess, cudaFreeHost(pinned));
}

TEST_F(Log, CapturesSelectsWhatChangesACapture) {
  cudaStream_t fork;
  cudaGraph_t graph;
  void* memory;
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&fork, cudaStreamNonBlocking));
  Select("captures");
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event_, stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(fork, event_, 0));
  ASSERT_EQ(cudaErrorStreamCaptureUnsupported, cudaMalloc(&memory, 64));
  ASSERT_EQ(cudaErrorStreamCaptureUnsupported, cudaMalloc(&memory, 64));
  ASSERT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ("cudaStreamBeginCapture cudaStreamWaitEvent cudaMalloc cudaStreamEndCapture", Names());
  EXPECT_NE(std::string::npos, lines_[0].find("begins capture "));
  EXPECT_NE(std::string::npos, lines_[0].find(" active]"));
  EXPECT_NE(std::string::npos, lines_[1].find("joins capture "));
  EXPECT_NE(std::string::npos, lines_[2].find("invalidates capture "));
  EXPECT_NE(std::string::npos, lines_[2].find(": rule R26: "));
  EXPECT_NE(std::string::npos, lines_[2].find("; remedy: "));
  EXPECT_NE(std::string::npos, lines_[3].find("ends capture "));
  ASSERT_EQ(cudaSuccess, cudaStreamDestroy(fork));
}

TEST_F(Log, TellsLibraryCallsAndTheirEffects) {
  cudaGraph_t graph;
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  Select("aLibrary*");
  ASSERT_EQ(cudaSuccess, gcap_sim_library_call("aLibraryCall", GCAP_SIM_CALL_FREE));
  gcap_sim_invalidate_captures("aLibraryCall");
  ASSERT_EQ(2u, lines_.size());
  EXPECT_NE(std::string::npos, lines_[0].find("aLibraryCall() -> 0 cudaSuccess"));
  EXPECT_NE(std::string::npos, lines_[1].find("invalidates capture"));
  ASSERT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream_, &graph));
}

TEST_F(Log, ThreadsHaveNumbersAndHostFunctionsSayWhatTheyAre) {
  Select("cudaGetDevice");
  int device;
  EXPECT_EQ(cudaSuccess, cudaGetDevice(&device));
  std::thread([] {
    int device;
    EXPECT_EQ(cudaSuccess, cudaGetDevice(&device));
  }).join();
  ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(
                             stream_,
                             [](void*) {
                               int device;
                               EXPECT_EQ(cudaErrorNotPermitted, cudaGetDevice(&device));
                             },
                             nullptr));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  ASSERT_EQ(3u, lines_.size());
  auto thread_of = [](const std::string& line) { return line.substr(line.find(' '), line.find(" cuda")); };
  EXPECT_NE(thread_of(lines_[0]), thread_of(lines_[1]));
  EXPECT_NE(std::string::npos, lines_[2].find(" host functions cudaGetDevice() -> 800 "));
}

TEST_F(Log, GoesToStderrWithoutASink) {
  CaptureStderr();
  gcap_sim_set_log("cudaGetDevice", nullptr, nullptr);
  int device;
  EXPECT_EQ(cudaSuccess, cudaGetDevice(&device));
  gcap_sim_set_log(nullptr, nullptr, nullptr);
  const std::string text = GetCapturedStderr();
  EXPECT_EQ(0u, text.find("gcap sim: #"));
  EXPECT_NE(std::string::npos, text.find("cudaGetDevice() -> 0 cudaSuccess\n"));
}

using LogDeathTest = Log;

TEST_F(LogDeathTest, FilterThatNamesNothingStopsTheProgram) {
  EXPECT_DEATH(Select("cudaMalloc,,cudaFree"), "filter has ''");
  EXPECT_DEATH(Select("cuda*Async"), "filter has 'cuda\\*Async'");
  EXPECT_DEATH(Select("1"), "filter has '1'");
  EXPECT_DEATH(Select("-"), "filter has ''");
}

}  // namespace
