// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What each call does to a capture, as a table in the notation of the record that was measured on a GPU:
//   code, then the state of the capturing stream (A active, I invalidated, N none), `>` code of the end, `n` nodes.
// Three values are for global, thread-local and relaxed mode, "(all)" is one for the three. `self` is the capturing
// thread, `other` another one, `both` the two alike, `blocking` a capture on a blocking stream. Each run captures a
// memset, makes the call, and captures another memset: two nodes are the frame's own.
#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cuda_runtime.h"

namespace {

constexpr size_t kBytes = 4096;

// What a row may use. `captured` was recorded in the capture, `before` ahead of it, `never` not at all.
struct Frame {
  cudaStreamCaptureMode mode;
  cudaStream_t stream, other, blocking;
  cudaEvent_t captured, before, never;
  char* device;
  char* device2;
  char* async;
  char* pinned;
  char pageable[kBytes];
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  std::vector<std::function<void()>> cleanup;
};

struct Row {
  const char* name;
  const char* expected;
  std::function<cudaError_t(Frame&)> call;
};

void Nothing(void*) {}

// Joins `other` to the capture without giving it work.
void Fork(Frame& f) { ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(f.other, f.captured, 0)); }

cudaError_t WithMode(cudaStreamCaptureMode mode, const std::function<cudaError_t()>& call) {
  EXPECT_EQ(cudaSuccess, cudaThreadExchangeStreamCaptureMode(&mode));
  cudaError_t code = call();
  EXPECT_EQ(cudaSuccess, cudaThreadExchangeStreamCaptureMode(&mode));
  return code;
}

cudaError_t MallocAndFree(Frame& f) {
  void* p = nullptr;
  cudaError_t code = cudaMalloc(&p, kBytes);
  f.cleanup.push_back([p] { EXPECT_EQ(cudaSuccess, cudaFree(p)); });
  return code;
}

cudaError_t FreeInstead(Frame& f, char** p) {
  cudaError_t code = cudaFree(*p);
  if (code == cudaSuccess) *p = nullptr;
  (void)f;
  return code;
}

cudaGraph_t CapturingGraph(Frame& f) {
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaSuccess, cudaStreamGetCaptureInfo(f.stream, &status, nullptr, &graph, nullptr, nullptr, nullptr));
  return graph;
}

cudaError_t Instantiate(Frame& f, cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  cudaError_t code = cudaGraphInstantiate(&exec, graph, 0);
  if (code == cudaSuccess) f.cleanup.push_back([exec] { EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec)); });
  return code;
}

constexpr char kUnsafe[] = "self 900I>901 900I>901 0A>0n2 | other 900I>901 0A>0n2 0A>0n2";
constexpr char kUnsafeToo[] =
    "self 900I>901 900I>901 0A>0n2 | other 900I>901 0A>0n2 0A>0n2 | blocking 900I>901 900I>901 0A>0n2";
constexpr char kLegal[] = "both 0A>0n2 (all)";
constexpr char kNode[] = "both 0A>0n3 (all)";
constexpr char kNever[] = "both 900I>901 (all)";
constexpr char kImplicit[] = "both 0A>0n2 (all) | blocking 906I>901 (all)";

const Row kRows[] = {
    // Memory.
    {"cudaMalloc", kUnsafe, [](Frame& f) { return MallocAndFree(f); }},
    {"cudaFree", kUnsafe, [](Frame& f) { return FreeInstead(f, &f.device2); }},
    {"cudaFree_null", kUnsafe, [](Frame&) { return cudaFree(nullptr); }},
    {"cudaFreeHost", kUnsafe,
     [](Frame& f) {
       cudaError_t code = cudaFreeHost(f.pinned);
       if (code == cudaSuccess) f.pinned = nullptr;
       return code;
     }},
    {"cudaMallocAsync_capturing", kNode,
     [](Frame& f) {
       void* p;
       return cudaMallocAsync(&p, kBytes, f.stream);
     }},
    {"cudaMallocAsync_zero_capturing", kLegal,
     [](Frame& f) {
       void* p;
       return cudaMallocAsync(&p, 0, f.stream);
     }},
    {"cudaMallocAsync_other", kUnsafe,
     [](Frame& f) {
       void* p = nullptr;
       cudaError_t code = cudaMallocAsync(&p, kBytes, f.other);
       f.cleanup.push_back([p] { EXPECT_EQ(cudaSuccess, cudaFree(p)); });
       return code;
     }},
    {"cudaFreeAsync_pre_capturing", "both 1A>0n2 (all)", [](Frame& f) { return cudaFreeAsync(f.async, f.stream); }},
    {"cudaFreeAsync_cudaMalloced_capturing", "both 1A>0n2 (all)",
     [](Frame& f) { return cudaFreeAsync(f.device2, f.stream); }},
    {"cudaFreeAsync_pre_other", kUnsafe,
     [](Frame& f) {
       cudaError_t code = cudaFreeAsync(f.async, f.other);
       if (code == cudaSuccess) f.async = nullptr;
       return code;
     }},
    {"cudaMallocAsync_FreeAsync_capturing", "both 0A>0n4 (all)",
     [](Frame& f) {
       void* p;
       EXPECT_EQ(cudaSuccess, cudaMallocAsync(&p, kBytes, f.stream));
       return cudaFreeAsync(p, f.stream);
     }},
    {"cudaMallocAsync_capturing_FreeAsync_other", "self 900I>901 900I>901 1A>0n3 | other 900I>901 1A>0n3 1A>0n3",
     [](Frame& f) {
       void* p;
       EXPECT_EQ(cudaSuccess, cudaMallocAsync(&p, kBytes, f.stream));
       return cudaFreeAsync(p, f.other);
     }},
    {"cudaMemGetInfo", kLegal,
     [](Frame&) {
       size_t a, b;
       return cudaMemGetInfo(&a, &b);
     }},
    // Copies and fills.
    {"cudaMemcpy_d2d", kImplicit,
     [](Frame& f) { return cudaMemcpy(f.device2, f.device, 16, cudaMemcpyDeviceToDevice); }},
    {"cudaMemcpy_zero", "both 0A>0n2 (all) | blocking 0A>0n2 (all)",
     [](Frame& f) { return cudaMemcpy(f.device2, f.device, 0, cudaMemcpyDeviceToDevice); }},
    {"cudaMemcpyAsync_h2d_pinned", kNode,
     [](Frame& f) { return cudaMemcpyAsync(f.device, f.pinned, 16, cudaMemcpyHostToDevice, f.stream); }},
    {"cudaMemcpyAsync_h2d_pageable", kNode,
     [](Frame& f) { return cudaMemcpyAsync(f.device, f.pageable, 16, cudaMemcpyHostToDevice, f.stream); }},
    {"cudaMemcpyAsync_d2h_pageable", kNode,
     [](Frame& f) { return cudaMemcpyAsync(f.pageable, f.device, 16, cudaMemcpyDeviceToHost, f.stream); }},
    {"cudaMemcpyAsync_d2d", kNode,
     [](Frame& f) { return cudaMemcpyAsync(f.device2, f.device, 16, cudaMemcpyDeviceToDevice, f.stream); }},
    {"cudaMemcpyAsync_h2h_pinned", kNode,
     [](Frame& f) { return cudaMemcpyAsync(f.pinned, f.pinned + 64, 16, cudaMemcpyHostToHost, f.stream); }},
    {"cudaMemcpyAsync_badkind", "both 21A>0n2 (all)",
     [](Frame& f) { return cudaMemcpyAsync(f.device2, f.device, 16, static_cast<cudaMemcpyKind>(7), f.stream); }},
    {"cudaMemcpyAsync_wrongkind", kNode,
     [](Frame& f) { return cudaMemcpyAsync(f.device2, f.device, 16, cudaMemcpyHostToDevice, f.stream); }},
    {"cudaMemcpyAsync_nulldst", "both 1A>0n2 (all)",
     [](Frame& f) { return cudaMemcpyAsync(nullptr, f.device, 16, cudaMemcpyDeviceToDevice, f.stream); }},
    {"cudaMemcpyAsync_legacy", kImplicit,
     [](Frame& f) { return cudaMemcpyAsync(f.device2, f.device, 16, cudaMemcpyDeviceToDevice, cudaStreamLegacy); }},
    {"cudaMemcpyAsync_perthread", kLegal,
     [](Frame& f) { return cudaMemcpyAsync(f.device2, f.device, 16, cudaMemcpyDeviceToDevice, cudaStreamPerThread); }},
    {"cudaMemcpy2DAsync", kNode,
     [](Frame& f) {
       return cudaMemcpy2DAsync(f.device2, 64, f.device, 64, 16, 4, cudaMemcpyDeviceToDevice, f.stream);
     }},
    {"cudaMemsetAsync", kNode, [](Frame& f) { return cudaMemsetAsync(f.device, 1, 16, f.stream); }},
    {"cudaMemsetAsync_zero", kLegal, [](Frame& f) { return cudaMemsetAsync(f.device, 1, 0, f.stream); }},
    // Synchronisation and queries.
    {"cudaDeviceSynchronize", kNever, [](Frame&) { return cudaDeviceSynchronize(); }},
    {"cudaStreamSynchronize_capturing", kNever, [](Frame& f) { return cudaStreamSynchronize(f.stream); }},
    {"cudaStreamQuery_capturing", kNever, [](Frame& f) { return cudaStreamQuery(f.stream); }},
    {"cudaStreamSynchronize_other", kUnsafeToo, [](Frame& f) { return cudaStreamSynchronize(f.other); }},
    {"cudaStreamSynchronize_otherblocking", kUnsafeToo, [](Frame& f) { return cudaStreamSynchronize(f.blocking); }},
    {"cudaStreamSynchronize_perthread", kUnsafeToo, [](Frame&) { return cudaStreamSynchronize(cudaStreamPerThread); }},
    {"cudaStreamQuery_other", kUnsafeToo, [](Frame& f) { return cudaStreamQuery(f.other); }},
    {"cudaStreamQuery_otherblocking", kUnsafeToo, [](Frame& f) { return cudaStreamQuery(f.blocking); }},
    {"cudaStreamQuery_legacy", "self 900I>901 900I>901 0A>0n2 | other 900I>901 0A>0n2 0A>0n2 | blocking 906I>901 (all)",
     [](Frame&) { return cudaStreamQuery(cudaStreamLegacy); }},
    {"sync_joined", kNever,
     [](Frame& f) {
       Fork(f);
       return cudaStreamSynchronize(f.other);
     }},
    // Events.
    {"cudaEventQuery_captured", "both 907I>901 (all)", [](Frame& f) { return cudaEventQuery(f.captured); }},
    {"cudaEventQuery_pre", kUnsafe, [](Frame& f) { return cudaEventQuery(f.before); }},
    {"cudaEventQuery_never", kUnsafe, [](Frame& f) { return cudaEventQuery(f.never); }},
    {"cudaEventSynchronize_captured", "both 907I>901 (all)", [](Frame& f) { return cudaEventSynchronize(f.captured); }},
    {"cudaEventSynchronize_pre", kUnsafe, [](Frame& f) { return cudaEventSynchronize(f.before); }},
    {"cudaEventSynchronize_never", kUnsafe, [](Frame& f) { return cudaEventSynchronize(f.never); }},
    {"cudaEventElapsedTime_captured", "both 907A>0n2 (all)",
     [](Frame& f) {
       float ms;
       return cudaEventElapsedTime(&ms, f.captured, f.captured);
     }},
    {"cudaEventRecord_capturing", kLegal, [](Frame& f) { return cudaEventRecord(f.never, f.stream); }},
    {"cudaEventRecord_captured_on_other", kLegal, [](Frame& f) { return cudaEventRecord(f.captured, f.other); }},
    {"cudaEventRecordExternal_capturing", kNode,
     [](Frame& f) { return cudaEventRecordWithFlags(f.never, f.stream, cudaEventRecordExternal); }},
    {"cudaEventRecordExternal_capturedevent", kNode,
     [](Frame& f) { return cudaEventRecordWithFlags(f.captured, f.stream, cudaEventRecordExternal); }},
    {"cudaEventRecordExternal_other", "both 401A>0n2 (all)",
     [](Frame& f) { return cudaEventRecordWithFlags(f.never, f.other, cudaEventRecordExternal); }},
    {"cudaEventRecordWithFlags_badflag", "both 1A>0n2 (all)",
     [](Frame& f) { return cudaEventRecordWithFlags(f.never, f.stream, 8); }},
    {"cudaEventRecordExternal_then_query", "self 900I>901 900I>901 0A>0n3 | other 900I>901 0A>0n3 0A>0n3",
     [](Frame& f) {
       EXPECT_EQ(cudaSuccess, cudaEventRecordWithFlags(f.never, f.stream, cudaEventRecordExternal));
       return cudaEventQuery(f.never);
     }},
    {"cudaEventCreateWithFlags", kLegal,
     [](Frame& f) {
       cudaEvent_t event;
       cudaError_t code = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
       f.cleanup.push_back([event] { EXPECT_EQ(cudaSuccess, cudaEventDestroy(event)); });
       return code;
     }},
    {"cudaEventDestroy_pre", kLegal,
     [](Frame& f) {
       cudaError_t code = cudaEventDestroy(f.before);
       f.before = nullptr;
       return code;
     }},
    {"cudaEventDestroy_captured", kLegal,
     [](Frame& f) {
       cudaError_t code = cudaEventDestroy(f.captured);
       f.captured = nullptr;
       return code;
     }},
    {"cudaEventDestroy_externalnode", kNode,
     [](Frame& f) {
       EXPECT_EQ(cudaSuccess, cudaEventRecordWithFlags(f.never, f.stream, cudaEventRecordExternal));
       cudaError_t code = cudaEventDestroy(f.never);
       f.never = nullptr;
       return code;
     }},
    // Waits.
    {"cudaStreamWaitEvent_pre", "both 905I>901 (all)",
     [](Frame& f) { return cudaStreamWaitEvent(f.stream, f.before); }},
    {"cudaStreamWaitEvent_never", kLegal, [](Frame& f) { return cudaStreamWaitEvent(f.stream, f.never); }},
    {"cudaStreamWaitEvent_pre_external", kNode,
     [](Frame& f) { return cudaStreamWaitEvent(f.stream, f.before, cudaEventWaitExternal); }},
    {"cudaStreamWaitEvent_never_external", kNode,
     [](Frame& f) { return cudaStreamWaitEvent(f.stream, f.never, cudaEventWaitExternal); }},
    {"cudaStreamWaitEvent_captured_external", kNode,
     [](Frame& f) { return cudaStreamWaitEvent(f.stream, f.captured, cudaEventWaitExternal); }},
    {"cudaStreamWaitEvent_join", "both 0A>0n2 (all) | blocking 0A>0n2 (all)",
     [](Frame& f) { return cudaStreamWaitEvent(f.other, f.captured); }},
    {"cudaStreamWaitEvent_join_external", "both 401A>0n2 (all)",
     [](Frame& f) { return cudaStreamWaitEvent(f.other, f.captured, cudaEventWaitExternal); }},
    {"cudaStreamWaitEvent_join_blocking", kLegal, [](Frame& f) { return cudaStreamWaitEvent(f.blocking, f.captured); }},
    {"cudaStreamWaitEvent_join_legacy", "both 906I>901 (all) | blocking 906I>901 (all)",
     [](Frame& f) { return cudaStreamWaitEvent(cudaStreamLegacy, f.captured); }},
    {"cudaStreamWaitEvent_join_perthread", kLegal,
     [](Frame& f) { return cudaStreamWaitEvent(cudaStreamPerThread, f.captured); }},
    {"fork_nowork_join", kLegal,
     [](Frame& f) {
       Fork(f);
       EXPECT_EQ(cudaSuccess, cudaEventRecord(f.never, f.other));
       return cudaStreamWaitEvent(f.stream, f.never);
     }},
    {"cudaStreamWaitEvent_merge", "both 902I>901 (all)",
     [](Frame& f) {
       EXPECT_EQ(cudaSuccess, cudaStreamBeginCapture(f.other, f.mode));
       EXPECT_EQ(cudaSuccess, cudaEventRecord(f.never, f.other));
       cudaError_t code = cudaStreamWaitEvent(f.stream, f.never);
       cudaGraph_t graph;
       EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(f.other, &graph));
       return code;
     }},
    // Begin and end.
    {"begin_again", "both 401A>0n2 (all)", [](Frame& f) { return cudaStreamBeginCapture(f.stream, f.mode); }},
    {"begin_legacy", "both 900A>0n2 (all)", [](Frame& f) { return cudaStreamBeginCapture(cudaStreamLegacy, f.mode); }},
    {"begin_on_joined", "both 401A>0n2 (all)",
     [](Frame& f) {
       Fork(f);
       return cudaStreamBeginCapture(f.other, f.mode);
     }},
    {"nested_begin_end_other", kLegal,
     [](Frame& f) {
       EXPECT_EQ(cudaSuccess, cudaStreamBeginCapture(f.other, f.mode));
       cudaGraph_t graph = nullptr;
       cudaError_t code = cudaStreamEndCapture(f.other, &graph);
       EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
       return code;
     }},
    {"end_other", "both 401A>0n2 (all)",
     [](Frame& f) {
       cudaGraph_t graph;
       return cudaStreamEndCapture(f.other, &graph);
     }},
    {"end_on_joined", "both 903I>901 (all)",
     [](Frame& f) {
       Fork(f);
       cudaGraph_t graph;
       return cudaStreamEndCapture(f.other, &graph);
     }},
    {"end_null_out", "self 0N>401 (all) | other 908N>401 908N>401 0N>401",
     [](Frame& f) { return cudaStreamEndCapture(f.stream, nullptr); }},
    {"cudaThreadExchangeStreamCaptureMode", kLegal,
     [](Frame&) { return WithMode(cudaStreamCaptureModeRelaxed, [] { return cudaSuccess; }); }},
    {"relaxed_exchange_cudaMalloc", kLegal,
     [](Frame& f) { return WithMode(cudaStreamCaptureModeRelaxed, [&f] { return MallocAndFree(f); }); }},
    {"threadlocal_exchange_cudaMalloc", "self 900I>901 900I>901 0A>0n2 | other 0A>0n2 (all)",
     [](Frame& f) { return WithMode(cudaStreamCaptureModeThreadLocal, [&f] { return MallocAndFree(f); }); }},
    {"relaxed_exchange_cudaEventQuery_pre", kLegal,
     [](Frame& f) { return WithMode(cudaStreamCaptureModeRelaxed, [&f] { return cudaEventQuery(f.before); }); }},
    {"relaxed_exchange_cudaDeviceSynchronize", kNever,
     [](Frame&) { return WithMode(cudaStreamCaptureModeRelaxed, [] { return cudaDeviceSynchronize(); }); }},
    {"relaxed_exchange_cudaFree", kLegal,
     [](Frame& f) { return WithMode(cudaStreamCaptureModeRelaxed, [&f] { return FreeInstead(f, &f.device2); }); }},
    // Streams and devices.
    {"cudaStreamCreate", "both 0A>0n2 (all) | blocking 0A>0n2 (all)",
     [](Frame& f) {
       cudaStream_t stream;
       cudaError_t code = cudaStreamCreate(&stream);
       f.cleanup.push_back([stream] { EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream)); });
       return code;
     }},
    {"cudaStreamGetFlags", kNever,
     [](Frame& f) {
       unsigned int flags;
       return cudaStreamGetFlags(f.stream, &flags);
     }},
    {"cudaStreamGetId", kNever,
     [](Frame& f) {
       unsigned long long id;
       return cudaStreamGetId(f.stream, &id);
     }},
    {"cudaStreamGetDevice", kNever,
     [](Frame& f) {
       int device;
       return cudaStreamGetDevice(f.stream, &device);
     }},
    {"cudaStreamGetPriority", kLegal,
     [](Frame& f) {
       int priority;
       return cudaStreamGetPriority(f.stream, &priority);
     }},
    {"cudaStreamIsCapturing_legacy", "both 0A>0n2 (all) | blocking 906A>0n2 (all)",
     [](Frame&) {
       cudaStreamCaptureStatus status;
       return cudaStreamIsCapturing(cudaStreamLegacy, &status);
     }},
    {"cudaStreamIsCapturing_perthread", "both 0A>0n2 (all) | blocking 0A>0n2 (all)",
     [](Frame&) {
       cudaStreamCaptureStatus status;
       return cudaStreamIsCapturing(cudaStreamPerThread, &status);
     }},
    {"cudaStreamGetCaptureInfo_legacy", "both 0A>0n2 (all) | blocking 906A>0n2 (all)",
     [](Frame&) {
       cudaStreamCaptureStatus status;
       return cudaStreamGetCaptureInfo(cudaStreamLegacy, &status);
     }},
    {"updatedeps_set_none", kLegal,
     [](Frame& f) {
       return cudaStreamUpdateCaptureDependencies(f.stream, nullptr, nullptr, 0, cudaStreamSetCaptureDependencies);
     }},
    {"updatedeps_badflag", "both 1A>0n2 (all)",
     [](Frame& f) { return cudaStreamUpdateCaptureDependencies(f.stream, nullptr, nullptr, 0, 7); }},
    {"cudaSetDevice", kLegal, [](Frame&) { return cudaSetDevice(0); }},
    {"cudaRuntimeGetVersion", kLegal,
     [](Frame&) {
       int version;
       return cudaRuntimeGetVersion(&version);
     }},
    // Host functions.
    {"cudaLaunchHostFunc_capturing", kNode, [](Frame& f) { return cudaLaunchHostFunc(f.stream, Nothing, nullptr); }},
    {"cudaLaunchHostFunc_other", kLegal, [](Frame& f) { return cudaLaunchHostFunc(f.other, Nothing, nullptr); }},
    {"cudaLaunchHostFunc_legacy", kImplicit,
     [](Frame&) { return cudaLaunchHostFunc(cudaStreamLegacy, Nothing, nullptr); }},
    {"cudaLaunchHostFunc_nullfn", "both 1A>0n2 (all)",
     [](Frame& f) { return cudaLaunchHostFunc(f.stream, nullptr, nullptr); }},
    // Graphs.
    {"cudaGraphCreate", kLegal,
     [](Frame& f) {
       cudaGraph_t graph;
       cudaError_t code = cudaGraphCreate(&graph, 0);
       f.cleanup.push_back([graph] { EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph)); });
       return code;
     }},
    {"cudaGraphDestroy_other", kLegal,
     [](Frame& f) {
       cudaError_t code = cudaGraphDestroy(f.graph);
       f.graph = nullptr;
       return code;
     }},
    {"cudaGraphInstantiate_other", kUnsafe, [](Frame& f) { return Instantiate(f, f.graph); }},
    {"cudaGraphInstantiate_capturing_graph", kUnsafe, [](Frame& f) { return Instantiate(f, CapturingGraph(f)); }},
    {"cudaGraphClone_other", kLegal,
     [](Frame& f) {
       cudaGraph_t graph;
       cudaError_t code = cudaGraphClone(&graph, f.graph);
       f.cleanup.push_back([graph] { EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph)); });
       return code;
     }},
    {"cudaGraphExecUpdate", kLegal, [](Frame& f) { return cudaGraphExecUpdate(f.exec, f.graph, nullptr); }},
    {"cudaGraphLaunch_capturing", kNever, [](Frame& f) { return cudaGraphLaunch(f.exec, f.stream); }},
    {"cudaGraphUpload_capturing", kNever, [](Frame& f) { return cudaGraphUpload(f.exec, f.stream); }},
    {"cudaGraphExecDestroy", kUnsafe,
     [](Frame& f) {
       cudaError_t code = cudaGraphExecDestroy(f.exec);
       if (code == cudaSuccess) f.exec = nullptr;
       return code;
     }},
    {"cudaDeviceGetGraphMemAttribute", kLegal,
     [](Frame&) {
       unsigned long long bytes;
       return cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes);
     }},
    {"cudaDeviceGraphMemTrim", kLegal, [](Frame&) { return cudaDeviceGraphMemTrim(0); }},
};

void SetUpFrame(Frame& f, cudaStreamCaptureMode mode, bool blocking) {
  f.mode = mode;
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&f.stream, blocking ? cudaStreamDefault : cudaStreamNonBlocking));
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&f.other, cudaStreamNonBlocking));
  ASSERT_EQ(cudaSuccess, cudaStreamCreate(&f.blocking));
  for (cudaEvent_t* event : {&f.captured, &f.before, &f.never}) ASSERT_EQ(cudaSuccess, cudaEventCreate(event));
  for (char** p : {&f.device, &f.device2}) ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(p), kBytes));
  ASSERT_EQ(cudaSuccess, cudaMallocAsync(reinterpret_cast<void**>(&f.async), kBytes, f.other));
  ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&f.pinned), kBytes));
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&f.graph, 0));
  cudaGraphNode_t node;
  ASSERT_EQ(cudaSuccess, cudaGraphAddEmptyNode(&node, f.graph, nullptr, 0));
  ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&f.exec, f.graph, 0));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(f.before, f.other));
  ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
}

void TearDownFrame(Frame& f) {
  for (auto& undo : f.cleanup) undo();
  for (char* p : {f.device, f.device2, f.async}) EXPECT_EQ(cudaSuccess, cudaFree(p));
  EXPECT_EQ(cudaSuccess, cudaFreeHost(f.pinned));
  if (f.exec) {
    EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(f.exec));
  }
  if (f.graph) {
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(f.graph));
  }
  for (cudaEvent_t event : {f.captured, f.before, f.never}) {
    if (event) {
      EXPECT_EQ(cudaSuccess, cudaEventDestroy(event));
    }
  }
  for (cudaStream_t stream : {f.stream, f.other, f.blocking}) EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
  cudaGetLastError();
}

// Runs the row and returns what happened, in the notation of the table.
std::string Observe(const Row& row, cudaStreamCaptureMode mode, bool other_thread, bool blocking) {
  Frame f = {};
  SetUpFrame(f, mode, blocking);
  EXPECT_EQ(cudaSuccess, cudaStreamBeginCapture(f.stream, mode));
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(f.device, 1, kBytes, f.stream));
  EXPECT_EQ(cudaSuccess, cudaEventRecord(f.captured, f.stream));
  cudaError_t code = cudaSuccess;
  if (other_thread) {
    std::thread([&] { code = row.call(f); }).join();
  } else {
    code = row.call(f);
  }
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_EQ(cudaSuccess, cudaStreamIsCapturing(f.stream, &status));
  if (status == cudaStreamCaptureStatusActive) {
    EXPECT_EQ(cudaSuccess, cudaMemsetAsync(f.device, 2, kBytes, f.stream));
  }
  cudaGraph_t graph = nullptr;
  cudaError_t end = cudaStreamEndCapture(f.stream, &graph);
  std::ostringstream out;
  out << code << "NAI"[status] << ">" << end;
  if (graph) {
    size_t nodes = 0;
    EXPECT_EQ(cudaSuccess, cudaGraphGetNodes(graph, nullptr, &nodes));
    out << "n" << nodes;
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  }
  TearDownFrame(f);
  return out.str();
}

// One part of a row between bars: who, and the values for the three modes.
struct Part {
  std::string who;
  std::string values[3];
};

std::vector<Part> Parse(const char* expected) {
  std::vector<Part> parts;
  std::istringstream text(expected);
  std::string word;
  while (text >> word) {
    Part part;
    part.who = word;
    text >> part.values[0] >> part.values[1];
    if (part.values[1] == "(all)") {
      part.values[1] = part.values[2] = part.values[0];
    } else {
      text >> part.values[2];
    }
    parts.push_back(part);
    text >> word;  // the bar
  }
  return parts;
}

class CaptureTable : public testing::TestWithParam<Row> {};

TEST_P(CaptureTable, Answers) {
  constexpr cudaStreamCaptureMode kModes[] = {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                              cudaStreamCaptureModeRelaxed};
  const Row& row = GetParam();
  for (const Part& part : Parse(row.expected)) {
    for (int i = 0; i < 3; ++i) {
      SCOPED_TRACE(part.who + " mode " + std::to_string(i));
      bool blocking = part.who == "blocking";
      if (part.who != "other") {
        EXPECT_EQ(part.values[i], Observe(row, kModes[i], false, blocking));
      }
      if (part.who == "other" || part.who == "both") {
        EXPECT_EQ(part.values[i], Observe(row, kModes[i], true, false));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, CaptureTable, testing::ValuesIn(kRows),
                         [](const testing::TestParamInfo<Row>& info) { return std::string(info.param.name); });

}  // namespace
