// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A program that launches a graph on memory that it freed, without a driver: it loads the recorder as the driver would,
// and makes the calls to a CUPTI and to functions of the driver that stand for the real ones (test/doctor/record).
//
//     audited_program FAKE_DRIVER [healthy | again]
//
// `again`: becomes the healthy program by exec().
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/doctor/record/fake_driver.h"

enum { kBytes = 4096 };

static const uint64_t kAddress = UINT64_C(0x7f1200000000);
static void (*fake_call)(uint32_t callback, const char* function, const void* arguments, int result);
static void* exec_handle = (void*)(uintptr_t)0x4000;
static void* stream_handle = (void*)(uintptr_t)0x5000;

static void load(void* out_function, const char* path, const char* symbol) {
  void* library = dlopen(path != NULL ? path : "", RTLD_NOW);
  void* found = library != NULL ? dlsym(library, symbol) : NULL;
  if (found == NULL) {
    fprintf(stderr, "no %s: %s\n", symbol, dlerror());
    exit(97);
  }
  memcpy(out_function, &found, sizeof(found));
}

static __attribute__((noinline)) void allocate(uint64_t address) {
  const struct {
    uint64_t* address;
    uint64_t bytes;
  } arguments = {&address, kBytes};
  fake_call(243, "cuMemAlloc_v2", &arguments, 0);
  __asm__ volatile("");  // no tail call
}

static __attribute__((noinline)) void release(uint64_t address) {
  fake_call(245, "cuMemFree_v2", &address, 0);
  __asm__ volatile("");
}

static __attribute__((noinline)) void launch(void) {
  const struct { void *exec, *stream; } arguments = {exec_handle, stream_handle};
  fake_call(514, "cuGraphLaunch", &arguments, 0);
  __asm__ volatile("");
}

static void instantiate(fake_driver_graph_t* graph) {
  const struct {
    void** exec;
    void* graph;
    unsigned long long flags;
  } arguments = {&exec_handle, graph, 0};
  fake_call(643, "cuGraphInstantiateWithFlags", &arguments, 0);
}

int main(int argc, char** argv) {
  int (*initialize)(void);
  void* driver;
  load(&driver, argv[1], "cuGraphGetNodes");
  load(&initialize, getenv("CUDA_INJECTION64_PATH"), "InitializeInjection");
  if (initialize() != 1) return 96;
  load(&fake_call, getenv("GCAP_DOCTOR_CUPTI"), "fake_cupti_call");
  static uint64_t argument;
  argument = kAddress + 64;
  static void* arguments[] = {&argument};
  static fake_driver_function_t function = {.name = "_ZN3app4fillEPf", .num_params = 1, .sizes = {8}};
  static fake_driver_node_t node = {.id = 0x100000000};
  const void *function_at = &function, *arguments_at = arguments;
  memcpy(node.about, &function_at, sizeof(function_at));
  memcpy(node.about + 40, &arguments_at, sizeof(arguments_at));
  fake_driver_node_t* nodes[] = {&node};
  fake_driver_graph_t graph = {nodes, 1};
  allocate(kAddress);
  instantiate(&graph);
  launch();
  if (argc < 3 || strcmp(argv[2], "healthy") != 0) release(kAddress);
  launch();
  if (argc >= 3 && strcmp(argv[2], "again") == 0) execl("/proc/self/exe", argv[0], argv[1], "healthy", (char*)NULL);
  puts("done");
  return 0;
}
