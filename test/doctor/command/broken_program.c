// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A program whose capture breaks, without a driver: it loads the recorder as the driver would, and makes the calls to a
// CUPTI that stands for the real one (test/doctor/record). The static functions have names and lines that a report must
// tell.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void (*fake_call)(uint32_t callback, const char* function, const void* arguments, int result);

static void load(void* out_function, const char* variable, const char* symbol) {
  const char* path = getenv(variable);
  void* library = dlopen(path != NULL ? path : "", RTLD_NOW);
  void* found = library != NULL ? dlsym(library, symbol) : NULL;
  if (found == NULL) {
    fprintf(stderr, "%s has no %s: %s\n", variable, symbol, dlerror());
    exit(97);
  }
  memcpy(out_function, &found, sizeof(found));
}

static __attribute__((noinline)) void wait_for_stream(void* stream) {
  fake_call(126, "cuStreamSynchronize", &stream, 900);
  __asm__ volatile("");  // no tail call
}

static __attribute__((noinline)) void capture(void* stream) {
  void* graph = NULL;
  const struct {
    void* stream;
    int mode;
  } begin = {stream, 0};
  const struct {
    void* stream;
    void** graph;
  } end = {stream, &graph};
  fake_call(539, "cuStreamBeginCapture_v2", &begin, 0);
  wait_for_stream(stream);
  fake_call(497, "cuStreamEndCapture", &end, 901);
}

int main(void) {
  int (*initialize)(void);
  load(&initialize, "CUDA_INJECTION64_PATH", "InitializeInjection");
  if (initialize() != 1) return 96;
  load(&fake_call, "GCAP_DOCTOR_CUPTI", "fake_cupti_call");
  capture((void*)(uintptr_t)0x5000);
  puts("done");
  return 0;
}
