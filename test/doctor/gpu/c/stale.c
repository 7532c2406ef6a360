// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Plain CUDA programs that launch a graph on memory which is gone, for gcap-doctor audit: `stale NAME` runs one,
// `stale --list` prints what is to be found. The memory is allocated in allocate_NAME, freed in release_NAME, and the
// launch at fault is made in culprit_NAME, so the names of these functions must be in the stacks. The device may fault
// after it. Nothing of gcap is here.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The last call of a function would otherwise take the function's place in the stack.
#define KEEP_FRAME() __asm__ volatile("")
#define PLACE static __attribute__((noinline)) void
#define MAY_FAIL(call) \
  do {                 \
    (void)(call);      \
    KEEP_FRAME();      \
  } while (0)
#define MUST(call)                                                                             \
  do {                                                                                         \
    cudaError_t code = (call);                                                                 \
    if (code != cudaSuccess) {                                                                 \
      fprintf(stderr, "stale: %s answered %d %s\n", #call, (int)code, cudaGetErrorName(code)); \
      exit(2);                                                                                 \
    }                                                                                          \
    KEEP_FRAME();                                                                              \
  } while (0)

enum { kBytes = 1 << 20 };

static cudaStream_t stream;
static char *memory, *other, *host;
static cudaGraph_t graph;
static cudaGraphExec_t exec;

static void begin(void) { MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)); }

static void end(void) {
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
}

static void fill(void) {
  begin();
  MUST(cudaMemsetAsync(memory, 1, kBytes, stream));
  end();
}

static void wait(void) { MAY_FAIL(cudaStreamSynchronize(stream)); }

#define CULPRIT(name) \
  PLACE culprit_##name(void) { MAY_FAIL(cudaGraphLaunch(exec, stream)); }

// --- Memory of the device --------------------------------------------------------------------------------------------

CULPRIT(freed)
PLACE allocate_freed(void) { MUST(cudaMalloc((void**)&memory, kBytes)); }
PLACE release_freed(void) { MUST(cudaFree(memory)); }
static void run_freed(void) {
  allocate_freed();
  fill();
  MUST(cudaGraphLaunch(exec, stream));
  wait();
  release_freed();
  culprit_freed();
}

// The allocator gives the place to somebody else at once.
CULPRIT(taken)
PLACE allocate_taken(void) { MUST(cudaMalloc((void**)&memory, kBytes)); }
PLACE release_taken(void) { MUST(cudaFree(memory)); }
static void run_taken(void) {
  allocate_taken();
  fill();
  release_taken();
  MUST(cudaMalloc((void**)&other, kBytes));
  culprit_taken();
}

// The workspace belongs to the thread that captures, and ends with it (PyTorch 192061).
CULPRIT(thread)
PLACE allocate_thread(void) { MUST(cudaMalloc((void**)&memory, kBytes)); }
PLACE release_thread(void) { MUST(cudaFree(memory)); }
static void* capture_in_thread(void* unused) {
  allocate_thread();
  fill();
  release_thread();
  return unused;
}
static void run_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, capture_in_thread, NULL);
  pthread_join(thread, NULL);
  culprit_thread();
}

// Two graphs share a workspace, and the end of one of them frees it (PyTorch 193402).
CULPRIT(other_graph)
PLACE allocate_other_graph(void) { MUST(cudaMalloc((void**)&memory, kBytes)); }
PLACE release_other_graph(void) { MUST(cudaFree(memory)); }
static void run_other_graph(void) {
  allocate_other_graph();
  fill();
  cudaGraphExec_t first = exec;
  cudaGraph_t first_graph = graph;
  fill();
  MUST(cudaGraphLaunch(exec, stream));
  wait();
  MUST(cudaGraphExecDestroy(first));
  MUST(cudaGraphDestroy(first_graph));
  release_other_graph();
  culprit_other_graph();
}

// A buffer of stream-ordered memory is allocated for each step, and the graph has that of its capture.
CULPRIT(stream_ordered)
PLACE allocate_stream_ordered(void) { MUST(cudaMallocAsync((void**)&memory, kBytes, stream)); }
PLACE release_stream_ordered(void) { MUST(cudaFreeAsync(memory, stream)); }
static void run_stream_ordered(void) {
  allocate_stream_ordered();
  wait();
  fill();
  MUST(cudaGraphLaunch(exec, stream));
  release_stream_ordered();
  MUST(cudaMallocAsync((void**)&other, kBytes, stream));
  culprit_stream_ordered();
}

// --- Memory of the host ----------------------------------------------------------------------------------------------

static void copy_from(const void* from, size_t bytes) {
  if (memory == NULL) MUST(cudaMalloc((void**)&memory, kBytes));
  begin();
  MUST(cudaMemcpyAsync(memory, from, bytes, cudaMemcpyHostToDevice, stream));
  end();
}

// The pinned buffer behind a captured copy goes back after the capture, and another run takes it (ONNX Runtime 32121).
CULPRIT(pinned)
PLACE allocate_pinned(void) { MUST(cudaHostAlloc((void**)&host, kBytes, 0)); }
PLACE release_pinned(void) { MUST(cudaFreeHost(host)); }
static void run_pinned(void) {
  allocate_pinned();
  copy_from(host, kBytes);
  MUST(cudaGraphLaunch(exec, stream));
  wait();
  release_pinned();
  MUST(cudaHostAlloc((void**)&other, kBytes, 0));
  culprit_pinned();
}

// A captured copy reads pageable memory, which is a temporary's (PyTorch 172156). The C library unmaps what is as
// large.
CULPRIT(pageable)
static void run_pageable(void) {
  enum { kLarge = 64 << 20 };
  char* temporary = malloc(kLarge);
  memset(temporary, 1, kLarge);
  copy_from(temporary, kBytes);
  free(temporary);
  culprit_pageable();
}

// The same with a variable of the function that issues the copy (Paddle 78568).
CULPRIT(variable)
static __attribute__((noinline)) void copy_variable(void) {
  volatile char local[4096];
  for (size_t i = 0; i < sizeof(local); ++i) local[i] = 1;
  copy_from((const void*)local, 64);
}
static void run_variable(void) {
  copy_variable();
  culprit_variable();
}

// --- Executables -----------------------------------------------------------------------------------------------------

static void run_growth(void) {
  MUST(cudaMalloc((void**)&memory, kBytes));
  for (int i = 0; i < 200; ++i) {
    fill();
    MUST(cudaGraphLaunch(exec, stream));
  }
  wait();
}

// Buffers that are replaced, with an update each time; what is freed was never in a graph that is launched.
static void run_healthy(void) {
  MUST(cudaMalloc((void**)&memory, kBytes));
  fill();
  cudaGraphExec_t first = exec;
  for (int i = 0; i < 20; ++i) {
    cudaGraphExecUpdateResultInfo info;
    char* before = memory;
    MUST(cudaGraphLaunch(first, stream));
    wait();
    MUST(cudaMalloc((void**)&memory, kBytes));
    begin();
    MUST(cudaMemsetAsync(memory, 1, kBytes, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphExecUpdate(first, graph, &info));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaFree(before));
  }
  MUST(cudaGraphLaunch(first, stream));
  wait();
}

#define STALE(name) \
  { #name, "stale_memory - cudaGraphLaunch culprit_" #name, run_##name }
static const struct {
  const char *name, *finding;
  void (*run)(void);
} programs[] = {
    STALE(freed),
    STALE(taken),
    STALE(thread),
    STALE(other_graph),
    STALE(stream_ordered),
    STALE(pinned),
    STALE(pageable),
    STALE(variable),
    {"growth", "growth - - -", run_growth},
    {"healthy", "none - - -", run_healthy},
};

int main(int argc, char** argv) {
  for (size_t i = 0; argc == 2 && i < sizeof(programs) / sizeof(programs[0]); ++i) {
    if (strcmp(argv[1], "--list") == 0) printf("%s %s\n", programs[i].name, programs[i].finding);
    if (strcmp(argv[1], programs[i].name) != 0) continue;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    programs[i].run();
    wait();
    return 0;
  }
  if (argc == 2 && strcmp(argv[1], "--list") == 0) return 0;
  fprintf(stderr, "stale: expected one argument, a name of --list or --list itself\n");
  return 2;
}
