// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Plain CUDA programs, each with one mistake in a capture, for gcap-doctor: `mistakes NAME` runs one, `mistakes --list`
// prints what the doctor should find: the name, the finding, the rule and the function of CUDA's. The call at fault is
// always made in the function culprit_NAME, so the name of that function must be in its stack. Nothing of gcap is here.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // pthread_setname_np
#endif
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The last call of a function would otherwise take the function's place in the stack.
#define KEEP_FRAME() __asm__ volatile("")
#define CULPRIT static __attribute__((noinline)) void
// What a mistake answers is the doctor's matter.
#define MAY_FAIL(call) \
  do {                 \
    (void)(call);      \
    KEEP_FRAME();      \
  } while (0)
// What a program needs to come to its mistake.
#define MUST(call)                                                                                \
  do {                                                                                            \
    cudaError_t code = (call);                                                                    \
    if (code != cudaSuccess) {                                                                    \
      fprintf(stderr, "mistakes: %s answered %d %s\n", #call, (int)code, cudaGetErrorName(code)); \
      exit(2);                                                                                    \
    }                                                                                             \
  } while (0)

enum { kBytes = 1 << 16 };

static cudaStream_t stream, side;
static cudaEvent_t fork_event, join_event;
static char *memory, *pinned;
static char pageable[kBytes];
static cudaGraph_t graph;
static cudaGraphExec_t exec;

static void begin(enum cudaStreamCaptureMode mode) {
  MUST(cudaStreamBeginCapture(stream, mode));
  MUST(cudaMemsetAsync(memory, 1, kBytes, stream));
}

// The graph, if there is one, is launched twice.
static void end_and_launch(void) {
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess || graph == NULL) return;
  if (cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) return;
  MAY_FAIL(cudaGraphLaunch(exec, stream));
  MAY_FAIL(cudaGraphLaunch(exec, stream));
  MAY_FAIL(cudaStreamSynchronize(stream));
}

// --- Calls that break a capture ---------------------------------------------------------------------------------------

CULPRIT culprit_stream_synchronize(void) { MAY_FAIL(cudaStreamSynchronize(stream)); }
CULPRIT culprit_device_synchronize(void) { MAY_FAIL(cudaDeviceSynchronize()); }
CULPRIT culprit_malloc(void) { MAY_FAIL(cudaMalloc((void**)&memory, kBytes)); }
CULPRIT culprit_free(void) { MAY_FAIL(cudaFree(memory)); }
CULPRIT culprit_host_alloc(void) { MAY_FAIL(cudaHostAlloc((void**)&pinned, kBytes, 0)); }
CULPRIT culprit_stream_query(void) { MAY_FAIL(cudaStreamQuery(stream)); }
CULPRIT culprit_event_query(void) { MAY_FAIL(cudaEventQuery(fork_event)); }
CULPRIT culprit_isolation(void) { MAY_FAIL(cudaStreamWaitEvent(stream, fork_event, 0)); }
CULPRIT culprit_synchronous_copy(void) { MAY_FAIL(cudaMemcpy(pageable, memory, kBytes, cudaMemcpyDeviceToHost)); }
CULPRIT culprit_set_limit(void) { MAY_FAIL(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 24)); }

CULPRIT culprit_library_destroy(void) {
  static cublasLtHandle_t handle;
  if (handle == NULL) {
    cublasLtCreate(&handle);
    return;
  }
  cublasLtDestroy(handle);
  KEEP_FRAME();
}

#define SIMPLE(name)                         \
  static void run_##name(void) {             \
    begin(cudaStreamCaptureModeThreadLocal); \
    culprit_##name();                        \
    end_and_launch();                        \
  }
SIMPLE(stream_synchronize)
SIMPLE(device_synchronize)
SIMPLE(malloc)
SIMPLE(free)
SIMPLE(host_alloc)
SIMPLE(stream_query)
SIMPLE(synchronous_copy)
SIMPLE(set_limit)

static void run_event_query(void) {
  begin(cudaStreamCaptureModeThreadLocal);
  MUST(cudaEventRecord(fork_event, stream));
  culprit_event_query();
  end_and_launch();
}

static void run_isolation(void) {
  MUST(cudaEventRecord(fork_event, side));
  begin(cudaStreamCaptureModeThreadLocal);
  culprit_isolation();
  end_and_launch();
}

static void run_library_destroy(void) {
  culprit_library_destroy();  // creates
  begin(cudaStreamCaptureModeThreadLocal);
  culprit_library_destroy();
  end_and_launch();
}

static void* call_culprit(void* culprit) {
  ((void (*)(void))culprit)();
  return NULL;
}

static void run_other_thread(void) {
  begin(cudaStreamCaptureModeGlobal);
  pthread_t thread;
  pthread_create(&thread, NULL, call_culprit, (void*)culprit_malloc);
  pthread_setname_np(thread, "loader");
  pthread_join(thread, NULL);
  end_and_launch();
}

// --- Forks and ends --------------------------------------------------------------------------------------------------

CULPRIT culprit_unjoined(void) {
  MUST(cudaEventRecord(fork_event, stream));
  MUST(cudaStreamWaitEvent(side, fork_event, 0));
  KEEP_FRAME();
}

static void run_unjoined(void) {
  begin(cudaStreamCaptureModeThreadLocal);
  culprit_unjoined();
  MUST(cudaMemsetAsync(memory, 2, kBytes, side));
  end_and_launch();
}

CULPRIT culprit_left_open(void) {
  begin(cudaStreamCaptureModeThreadLocal);
  KEEP_FRAME();
}
static void run_left_open(void) { culprit_left_open(); }

CULPRIT culprit_wrong_thread(void) { MAY_FAIL(cudaStreamEndCapture(stream, &graph)); }
static void run_wrong_thread(void) {
  begin(cudaStreamCaptureModeThreadLocal);
  pthread_t thread;
  pthread_create(&thread, NULL, call_culprit, (void*)culprit_wrong_thread);
  pthread_join(thread, NULL);
}

CULPRIT culprit_empty_graph(void) {
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  KEEP_FRAME();
}
static void run_empty_graph(void) {
  culprit_empty_graph();
  end_and_launch();
}

// --- Graphs that are made, and are not what was meant -----------------------------------------------------------------

CULPRIT culprit_legacy(void) { MAY_FAIL(cudaMemsetAsync(memory, 2, kBytes, NULL)); }
CULPRIT culprit_pageable(void) { MAY_FAIL(cudaMemcpyAsync(memory, pageable, kBytes, cudaMemcpyHostToDevice, stream)); }
CULPRIT culprit_stack_memory(void) {
  char on_stack[256];
  memset(on_stack, 1, sizeof(on_stack));
  MAY_FAIL(cudaMemcpyAsync(memory, on_stack, sizeof(on_stack), cudaMemcpyHostToDevice, stream));
}
CULPRIT culprit_allocation_node(void) {
  void* scratch = NULL;
  MAY_FAIL(cudaMallocAsync(&scratch, kBytes, stream));
}
CULPRIT culprit_lost_call(void) {
  MAY_FAIL(cudaMemcpyAsync(memory, memory + kBytes / 2, (size_t)1 << 50, cudaMemcpyDeviceToDevice, stream));
}
SIMPLE(legacy)
SIMPLE(pageable)
SIMPLE(stack_memory)
SIMPLE(lost_call)

static void end_and_launch_once(void) {
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  MUST(cudaGraphLaunch(exec, stream));
}

static void run_allocation_node(void) {
  begin(cudaStreamCaptureModeThreadLocal);
  culprit_allocation_node();
  end_and_launch_once();
  MUST(cudaStreamSynchronize(stream));
}

CULPRIT culprit_relaunch(void) { MAY_FAIL(cudaGraphLaunch(exec, stream)); }
static void run_relaunch(void) {
  begin(cudaStreamCaptureModeThreadLocal);
  culprit_allocation_node();
  end_and_launch_once();
  culprit_relaunch();
}

CULPRIT culprit_recaptured(void) {
  begin(cudaStreamCaptureModeThreadLocal);
  KEEP_FRAME();
}
static void run_recaptured(void) {
  for (int step = 0; step < 20; ++step) {
    culprit_recaptured();
    end_and_launch_once();
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
  }
  MUST(cudaStreamSynchronize(stream));
}

CULPRIT culprit_update_refused(void) {
  cudaGraphExecUpdateResultInfo info;
  MAY_FAIL(cudaGraphExecUpdate(exec, graph, &info));
}
static void run_update_refused(void) {
  begin(cudaStreamCaptureModeThreadLocal);
  end_and_launch();
  begin(cudaStreamCaptureModeThreadLocal);
  MUST(cudaMemcpyAsync(memory, memory + kBytes / 2, kBytes / 2, cudaMemcpyDeviceToDevice, stream));
  MUST(cudaStreamEndCapture(stream, &graph));
  culprit_update_refused();
}

static void run_healthy(void) {
  begin(cudaStreamCaptureModeThreadLocal);
  MUST(cudaEventRecord(fork_event, stream));
  MUST(cudaStreamWaitEvent(side, fork_event, 0));
  MUST(cudaMemcpyAsync(pinned, memory, kBytes, cudaMemcpyDeviceToHost, side));
  MUST(cudaEventRecord(join_event, side));
  MUST(cudaStreamWaitEvent(stream, join_event, 0));
  end_and_launch();
}

static const struct {
  const char *name, *finding;
  void (*run)(void);
} mistakes[] = {
    {"stream_synchronize", "culprit R11 cudaStreamSynchronize culprit_stream_synchronize", run_stream_synchronize},
    {"device_synchronize", "culprit R12 cudaDeviceSynchronize culprit_device_synchronize", run_device_synchronize},
    {"malloc", "culprit R26 cudaMalloc culprit_malloc", run_malloc},
    {"free", "culprit R28 cudaFree culprit_free", run_free},
    {"host_alloc", "culprit R36 cudaHostAlloc culprit_host_alloc", run_host_alloc},
    {"stream_query", "culprit R11 cudaStreamQuery culprit_stream_query", run_stream_query},
    {"event_query", "culprit R13 cudaEventQuery culprit_event_query", run_event_query},
    {"isolation", "culprit R17 cudaStreamWaitEvent culprit_isolation", run_isolation},
    {"synchronous_copy", "escaped R64 cudaMemcpy culprit_synchronous_copy", run_synchronous_copy},
    {"set_limit", "culprit R49 cudaDeviceSetLimit culprit_set_limit", run_set_limit},
    {"library_destroy", "culprit R42 - culprit_library_destroy", run_library_destroy},
    {"other_thread", "culprit R26 cudaMalloc culprit_malloc", run_other_thread},
    {"wrong_thread", "culprit R4 cudaStreamEndCapture culprit_wrong_thread", run_wrong_thread},
    {"unjoined", "unjoined R6 cudaStreamWaitEvent culprit_unjoined", run_unjoined},
    {"left_open", "left_open R7 cudaStreamBeginCapture culprit_left_open", run_left_open},
    {"empty_graph", "empty_graph R8 cudaStreamBeginCapture culprit_empty_graph", run_empty_graph},
    {"legacy", "escaped R64 cudaMemsetAsync culprit_legacy", run_legacy},
    {"pageable", "pageable R38 cudaMemcpyAsync culprit_pageable", run_pageable},
    {"stack_memory", "pageable R38 cudaMemcpyAsync culprit_stack_memory", run_stack_memory},
    {"allocation_node", "allocation_node R29 cudaMallocAsync culprit_allocation_node", run_allocation_node},
    {"relaunch", "launch_failed R30 cudaGraphLaunch culprit_relaunch", run_relaunch},
    {"lost_call", "lost_call R9 cudaMemcpyAsync culprit_lost_call", run_lost_call},
    {"recaptured", "recaptured - cudaStreamBeginCapture culprit_recaptured", run_recaptured},
    {"update_refused", "update_refused R54 cudaGraphExecUpdate culprit_update_refused", run_update_refused},
    {"healthy", "none - - -", run_healthy},
};

int main(int argc, char** argv) {
  for (size_t i = 0; argc == 2 && i < sizeof(mistakes) / sizeof(mistakes[0]); ++i) {
    if (strcmp(argv[1], "--list") == 0) printf("%s %s\n", mistakes[i].name, mistakes[i].finding);
    if (strcmp(argv[1], mistakes[i].name) != 0) continue;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&fork_event, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&join_event, cudaEventDisableTiming));
    MUST(cudaMalloc((void**)&memory, kBytes));
    MUST(cudaHostAlloc((void**)&pinned, kBytes, 0));
    mistakes[i].run();
    return 0;
  }
  if (argc == 2 && strcmp(argv[1], "--list") == 0) return 0;
  fprintf(stderr, "mistakes: expected one argument, a name of --list or --list itself\n");
  return 2;
}
