// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Bad input, row by row: the code that a GPU gives where it gives one, and the report where a GPU has no defined
// answer. What every function does with every sort of bad argument is bad_input_fuzz_test's part.
#include <gtest/gtest.h>

#include <climits>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

constexpr size_t kBytes = 256;

void KernelStub() {}
void CallingStub() {}
void UnknownStub() {}

const bool g_registered = [] {
  static const size_t bytes[] = {sizeof(int)};
  gcap_sim_kernel_t twin = {};
  twin.function = reinterpret_cast<const void*>(&KernelStub);
  twin.name = "takes_an_int";
  twin.arg_bytes = bytes;
  twin.num_args = 1;
  twin.run = [](const gcap_sim_launch_t*, void* const*) {};
  gcap_sim_register_kernel(&twin);
  gcap_sim_kernel_t calling = {};
  calling.function = reinterpret_cast<const void*>(&CallingStub);
  calling.name = "calls_cuda";
  calling.run = [](const gcap_sim_launch_t*, void* const*) { cudaGetLastError(); };
  gcap_sim_register_kernel(&calling);
  return true;
}();

// What the rows work with.
struct Frame {
  cudaStream_t stream, destroyed_stream;
  cudaEvent_t event, destroyed_event;
  cudaGraph_t graph, destroyed_graph;
  cudaGraphExec_t destroyed_exec;
  char *device, *pinned;
  char host[kBytes];
};

class BadInputRow : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&f_.stream, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaEventCreate(&f_.event));
    ASSERT_EQ(cudaSuccess, cudaGraphCreate(&f_.graph, 0));
    ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&f_.device), kBytes));
    ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&f_.pinned), kBytes));
    ASSERT_EQ(cudaSuccess, cudaStreamCreate(&f_.destroyed_stream));
    ASSERT_EQ(cudaSuccess, cudaStreamDestroy(f_.destroyed_stream));
    ASSERT_EQ(cudaSuccess, cudaEventCreate(&f_.destroyed_event));
    ASSERT_EQ(cudaSuccess, cudaEventDestroy(f_.destroyed_event));
    ASSERT_EQ(cudaSuccess, cudaGraphCreate(&f_.destroyed_graph, 0));
    ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&f_.destroyed_exec, f_.destroyed_graph, 0));
    ASSERT_EQ(cudaSuccess, cudaGraphDestroy(f_.destroyed_graph));
    ASSERT_EQ(cudaSuccess, cudaGraphExecDestroy(f_.destroyed_exec));
  }
  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_EQ(cudaSuccess, cudaFree(f_.device));
    EXPECT_EQ(cudaSuccess, cudaFreeHost(f_.pinned));
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(f_.graph));
    EXPECT_EQ(cudaSuccess, cudaEventDestroy(f_.event));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(f_.stream));
    EXPECT_EQ(0u, gcap_sim_live(nullptr));  // nothing that failed has left anything
    cudaGetLastError();
  }
  Frame f_ = {};
};

// --- Codes ----------------------------------------------------------------------------------------------------------

struct CodeRow {
  const char* what;
  cudaError_t code;
  cudaError_t (*call)(Frame& f);
};

template <class T>
T Enum(int value) {
  return static_cast<T>(value);
}

const CodeRow kCodes[] = {
    {"a device number below 0", cudaErrorInvalidDevice, [](Frame&) { return cudaSetDevice(-1); }},
    {"a device number out of range", cudaErrorInvalidDevice, [](Frame&) { return cudaSetDevice(INT_MAX); }},
    {"no place for the device number", cudaErrorInvalidValue, [](Frame&) { return cudaGetDevice(nullptr); }},
    {"no place for the device count", cudaErrorInvalidValue, [](Frame&) { return cudaGetDeviceCount(nullptr); }},
    {"a device attribute below the first", cudaErrorInvalidValue,
     [](Frame&) {
       int value;
       return cudaDeviceGetAttribute(&value, Enum<cudaDeviceAttr>(0), 0);
     }},
    {"a device attribute past the last", cudaErrorInvalidValue,
     [](Frame&) {
       int value;
       return cudaDeviceGetAttribute(&value, Enum<cudaDeviceAttr>(9999), 0);
     }},
    {"no place for the allocation", cudaErrorInvalidValue, [](Frame&) { return cudaMalloc(nullptr, 16); }},
    {"an allocation of all addresses", cudaErrorMemoryAllocation,
     [](Frame&) {
       void* p;
       return cudaMalloc(&p, SIZE_MAX);
     }},
    {"an asynchronous allocation of all addresses", cudaErrorMemoryAllocation,
     [](Frame& f) {
       void* p;
       return cudaMallocAsync(&p, SIZE_MAX, f.stream);
     }},
    {"a pinned allocation of all addresses", cudaErrorMemoryAllocation,
     [](Frame&) {
       void* p;
       return cudaMallocHost(&p, SIZE_MAX);
     }},
    {"a free of the stack", cudaErrorInvalidValue, [](Frame& f) { return cudaFree(f.host); }},
    {"a free within an allocation", cudaErrorInvalidValue, [](Frame& f) { return cudaFree(f.device + 1); }},
    {"a free of a stray address", cudaErrorInvalidValue,
     [](Frame&) { return cudaFree(reinterpret_cast<void*>(0x1234)); }},
    {"a kind of copy below the first", cudaErrorInvalidMemcpyDirection,
     [](Frame& f) { return cudaMemcpy(f.device, f.host, 1, Enum<cudaMemcpyKind>(-1)); }},
    {"a kind of copy past the last", cudaErrorInvalidMemcpyDirection,
     [](Frame& f) { return cudaMemcpyAsync(f.device, f.host, 1, Enum<cudaMemcpyKind>(5), f.stream); }},
    {"a copy from nowhere", cudaErrorInvalidValue,
     [](Frame& f) { return cudaMemcpy(f.device, nullptr, 1, cudaMemcpyHostToDevice); }},
    {"a copy to nowhere", cudaErrorInvalidValue,
     [](Frame& f) { return cudaMemcpyAsync(nullptr, f.device, 1, cudaMemcpyDeviceToHost, f.stream); }},
    {"a copy past the end", cudaErrorInvalidValue,
     [](Frame& f) { return cudaMemcpyAsync(f.pinned, f.device, kBytes + 1, cudaMemcpyDeviceToHost, f.stream); }},
    {"a copy of all addresses", cudaErrorInvalidValue,
     [](Frame& f) { return cudaMemcpyAsync(f.pinned, f.device, SIZE_MAX, cudaMemcpyDeviceToHost, f.stream); }},
    {"rows wider than their pitch", cudaErrorInvalidPitchValue,
     [](Frame& f) { return cudaMemcpy2DAsync(f.pinned, 8, f.device, 8, 9, 2, cudaMemcpyDeviceToHost, f.stream); }},
    {"rows without end", cudaErrorInvalidValue,
     [](Frame& f) {
       return cudaMemcpy2DAsync(f.pinned, 8, f.device, 8, 8, SIZE_MAX, cudaMemcpyDeviceToHost, f.stream);
     }},
    {"a fill of nowhere", cudaErrorInvalidValue, [](Frame&) { return cudaMemset(nullptr, 0, 1); }},
    {"a fill past the end", cudaErrorInvalidValue, [](Frame& f) { return cudaMemset(f.device, 0, kBytes + 1); }},
    {"a fill of all addresses", cudaErrorInvalidValue,
     [](Frame& f) { return cudaMemsetAsync(f.device, 0, SIZE_MAX, f.stream); }},
    {"unknown flags of a stream", cudaErrorInvalidValue,
     [](Frame&) {
       cudaStream_t s;
       return cudaStreamCreateWithFlags(&s, 2);
     }},
    {"no place for the stream", cudaErrorInvalidValue, [](Frame&) { return cudaStreamCreate(nullptr); }},
    {"the destruction of no stream", cudaErrorInvalidResourceHandle, [](Frame&) { return cudaStreamDestroy(nullptr); }},
    {"no place for the status", cudaErrorInvalidValue,
     [](Frame& f) { return cudaStreamIsCapturing(f.stream, nullptr); }},
    {"an unknown mode of capture", cudaErrorInvalidValue,
     [](Frame& f) { return cudaStreamBeginCapture(f.stream, Enum<cudaStreamCaptureMode>(3)); }},
    {"a mode of capture below the first", cudaErrorInvalidValue,
     [](Frame& f) { return cudaStreamBeginCapture(f.stream, Enum<cudaStreamCaptureMode>(-1)); }},
    {"the end of no capture", cudaErrorIllegalState,
     [](Frame& f) {
       cudaGraph_t graph;
       return cudaStreamEndCapture(f.stream, &graph);
     }},
    {"a record of no event", cudaErrorInvalidResourceHandle,
     [](Frame& f) { return cudaEventRecord(nullptr, f.stream); }},
    {"unknown flags of a record", cudaErrorInvalidValue,
     [](Frame& f) { return cudaEventRecordWithFlags(f.event, f.stream, 8); }},
    {"unknown flags of a wait", cudaErrorInvalidValue,
     [](Frame& f) { return cudaStreamWaitEvent(f.stream, f.event, 8); }},
    {"a function of the host that is none", cudaErrorInvalidValue,
     [](Frame& f) { return cudaLaunchHostFunc(f.stream, nullptr, nullptr); }},
    {"a kernel that is none", cudaErrorInvalidDeviceFunction,
     [](Frame& f) { return cudaLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, f.stream); }},
    {"a kernel without its arguments", cudaErrorInvalidValue,
     [](Frame& f) {
       return cudaLaunchKernel(reinterpret_cast<const void*>(&KernelStub), dim3(1), dim3(1), nullptr, 0, f.stream);
     }},
    {"a kernel without a twin", cudaErrorInvalidResourceHandle,
     [](Frame& f) {
       return cudaLaunchKernel(reinterpret_cast<const void*>(&UnknownStub), dim3(1), dim3(1), nullptr, 0, f.stream);
     }},
    {"no place for the graph", cudaErrorInvalidValue, [](Frame&) { return cudaGraphCreate(nullptr, 0); }},
    {"no place for the executable", cudaErrorInvalidValue,
     [](Frame& f) { return cudaGraphInstantiate(nullptr, f.graph, 0); }},
};

TEST_F(BadInputRow, GivesTheCodeOfAGpuAndKeepsItAsTheLastError) {
  for (const CodeRow& row : kCodes) {
    cudaGetLastError();
    EXPECT_EQ(row.code, row.call(f_)) << row.what;
    EXPECT_EQ(row.code, cudaGetLastError()) << row.what;
  }
}

// --- Reports --------------------------------------------------------------------------------------------------------

struct ReportRow {
  const char* report;  // a regular expression
  void (*call)(Frame& f);
};

template <class T>
T Stray() {
  return reinterpret_cast<T>(0x1234);
}

const ReportRow kReports[] = {
    {"cudaEventRecord: event .* was destroyed", [](Frame& f) { cudaEventRecord(f.destroyed_event, f.stream); }},
    {"cudaEventRecord: stream .* was destroyed", [](Frame& f) { cudaEventRecord(f.event, f.destroyed_stream); }},
    {"cudaEventQuery: event .* was destroyed", [](Frame& f) { cudaEventQuery(f.destroyed_event); }},
    {"cudaEventDestroy: event .* was destroyed", [](Frame& f) { cudaEventDestroy(f.destroyed_event); }},
    {"cudaStreamSynchronize: stream .* was destroyed", [](Frame& f) { cudaStreamSynchronize(f.destroyed_stream); }},
    {"cudaStreamDestroy: stream .* was destroyed", [](Frame& f) { cudaStreamDestroy(f.destroyed_stream); }},
    {"cudaMemcpyAsync: stream .* was destroyed",
     [](Frame& f) { cudaMemcpyAsync(f.pinned, f.device, 1, cudaMemcpyDefault, f.destroyed_stream); }},
    {"cudaGraphLaunch: exec .* was destroyed", [](Frame& f) { cudaGraphLaunch(f.destroyed_exec, f.stream); }},
    {"cudaGraphDestroy: graph .* was destroyed", [](Frame& f) { cudaGraphDestroy(f.destroyed_graph); }},
    {"cudaStreamSynchronize: stream .* is the handle of another kind",
     [](Frame& f) { cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(f.event)); }},
    {"cudaEventRecord: event .* is the handle of another kind",
     [](Frame& f) { cudaEventRecord(reinterpret_cast<cudaEvent_t>(f.stream), f.stream); }},
    {"cudaStreamSynchronize: stream .* is no handle", [](Frame&) { cudaStreamSynchronize(Stray<cudaStream_t>()); }},
    {"cudaStreamQuery: stream .* is no handle",
     [](Frame& f) { cudaStreamQuery(reinterpret_cast<cudaStream_t>(f.host)); }},
    {"cudaGraphLaunch: exec .* is no handle", [](Frame& f) { cudaGraphLaunch(Stray<cudaGraphExec_t>(), f.stream); }},
    {"cudaThreadExchangeStreamCaptureMode", [](Frame&) { cudaThreadExchangeStreamCaptureMode(nullptr); }},
    {"cudaLaunchKernel: argument 0 of takes_an_int is NULL",
     [](Frame& f) {
       void* arguments[] = {nullptr};
       cudaLaunchKernel(reinterpret_cast<const void*>(&KernelStub), dim3(1), dim3(1), arguments, 0, f.stream);
     }},
    {"a kernel's twin calls CUDA",
     [](Frame& f) {
       cudaLaunchKernel(reinterpret_cast<const void*>(&CallingStub), dim3(1), dim3(1), nullptr, 0, f.stream);
       cudaStreamSynchronize(f.stream);
     }},
    {"cudaMemcpy: 16 bytes at 0x1234 for a copy are no memory of this process",
     [](Frame& f) { cudaMemcpy(f.device, Stray<void*>(), 16, cudaMemcpyHostToDevice); }},
    {"cudaMemcpyAsync: 16 bytes at 0x1234 for a copy are no memory of this process",
     [](Frame& f) { cudaMemcpyAsync(Stray<void*>(), f.device, 16, cudaMemcpyDeviceToHost, f.stream); }},
    {"cudaMemcpy: 4 bytes at .* for a copy must not be written to",
     [](Frame& f) { cudaMemcpy(const_cast<char*>("text"), f.device, 4, cudaMemcpyDeviceToHost); }},
    {"gcap_sim_register_kernel: the twin is NULL", [](Frame&) { gcap_sim_register_kernel(nullptr); }},
    {"gcap_sim_register_kernel: run must be set",
     [](Frame&) {
       gcap_sim_kernel_t twin = {};
       gcap_sim_register_kernel(&twin);
     }},
    {"gcap_sim_register_kernel: no_sizes has no sizes",
     [](Frame&) {
       gcap_sim_kernel_t twin = {};
       twin.function = reinterpret_cast<const void*>(&UnknownStub);
       twin.name = "no_sizes";
       twin.num_args = 1;
       twin.run = [](const gcap_sim_launch_t*, void* const*) {};
       gcap_sim_register_kernel(&twin);
     }},
    {"gcap_sim_explore: the body is NULL", [](Frame&) { gcap_sim_explore(nullptr, nullptr, 0, 1, nullptr); }},
};

using BadInputRowDeathTest = BadInputRow;

TEST_F(BadInputRowDeathTest, WithoutADefinedAnswerStopsTheProgramAndNamesTheCall) {
  ASSERT_EQ(cudaSuccess, cudaMemset(f_.device, 0, kBytes));
  ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
  for (const ReportRow& row : kReports) EXPECT_DEATH(row.call(f_), std::string("gcap sim: .*") + row.report);
}

}  // namespace
