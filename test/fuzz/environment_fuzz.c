// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The simulator's environment. Input: a line `NAME=value` for each variable, without the prefix GCAP_SIM_. A child of
// the process runs a small program under it. The program ends, or the simulator stops it with a message that begins
// with its own name; nothing else may happen.
//
// The simulator reads a variable once in a process, hence the child. SUPPRESSIONS is given the file's content, since a
// path would read this machine's files, and SYMBOLIZER no path, since the simulator would run it.
#include <cuda_runtime_api.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "gcap_sim.h"
#include "test/fuzz/child_coverage.h"
#include "test/fuzz/memory_file.h"

enum { kMaxName = 24, kMaxValue = 400, kBytes = 256, kChildSeconds = 20 };

static const char* const kNames[] = {"SEED",         "SCHEDULE", "DEVICES", "DEVICE_BYTES", "CHECKS",
                                     "SUPPRESSIONS", "STACKS",   "LOG",     "EXPLORE",      "SYMBOLIZER"};

static void set_variable(const char* name, char* value, size_t bytes) {
  char full[kMaxName + 16];
  snprintf(full, sizeof(full), "GCAP_SIM_%s", name);
  if (strcmp(name, "SUPPRESSIONS") == 0) {
    for (char* at = value; *at != '\0'; ++at) {
      if (*at == ';') *at = '\n';
    }
    setenv(full, fuzz_memory_file((const uint8_t*)value, bytes).path, 1);  // the child's end closes it
    return;
  }
  for (char* at = value; strcmp(name, "SYMBOLIZER") == 0 && *at != '\0'; ++at) {
    if (*at == '/') *at = '_';
  }
  setenv(full, value, 1);
}

static void set_environment(fuzz_input_t input) {
  setenv("PATH", "/nonexistent", 1);
  while (input.left > 0) {
    char line[kMaxName + kMaxValue], name[kMaxName], value[kMaxValue];
    fuzz_input_t pair = {(const uint8_t*)line, fuzz_text(&input, '\n', line, sizeof(line))};
    fuzz_text(&pair, '=', name, sizeof(name));
    const size_t bytes = fuzz_text(&pair, '\0', value, sizeof(value));
    for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); ++i) {
      if (strcmp(name, kNames[i]) == 0) set_variable(name, value, bytes);
    }
  }
}

// Work on two streams that nothing orders and that shares nothing, and a graph; what is left is a leak.
static int small_program(void* user) {
  (void)user;
  cudaStream_t streams[2] = {NULL, NULL};
  char* memory = NULL;
  if (cudaMalloc((void**)&memory, 2 * kBytes) != cudaSuccess) return 0;
  for (int i = 0; i < 2; ++i) {
    cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    cudaMemsetAsync(memory + i * kBytes, i, kBytes, streams[i]);
  }
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal);
  cudaMemsetAsync(memory, 7, kBytes, streams[0]);
  void* refused;
  cudaMalloc(&refused, kBytes);  // breaks the capture, which the check `capture` reports
  cudaStreamEndCapture(streams[0], &graph);
  if (graph != NULL && cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess) cudaGraphLaunch(exec, streams[0]);
  cudaDeviceSynchronize();
  cudaStreamDestroy(streams[0]);
  cudaStreamDestroy(streams[1]);
  cudaFree(memory);
  cudaGetLastError();
  return 0;
}

static void stopped_by_the_simulator(int number) {
  fuzz_send_coverage();
  signal(number, SIG_DFL);
  raise(number);
}

static _Noreturn void run_child(fuzz_input_t input, int standard_error) {
  dup2(standard_error, STDERR_FILENO);
  signal(SIGABRT, stopped_by_the_simulator);
  alarm(kChildSeconds);
  set_environment(input);
  small_program(NULL);
  void* leak;
  cudaMalloc(&leak, kBytes);
  gcap_sim_check();
  if (getenv("GCAP_SIM_EXPLORE") != NULL) gcap_sim_explore(small_program, NULL, 1, 2, NULL);
  fuzz_send_coverage();
  _exit(0);
}

// What the child wrote, the beginning of it.
static const char* read_errors(int descriptor) {
  static char text[1 << 14];
  const ssize_t bytes = pread(descriptor, text, sizeof(text) - 1, 0);
  text[bytes > 0 ? bytes : 0] = '\0';
  return text;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const fuzz_memory_file_t errors = fuzz_memory_file(data, 0);
  fuzz_share_coverage();
  const pid_t child = fork();
  FUZZ_CHECK(child >= 0, "no child");
  if (child == 0) run_child((fuzz_input_t){data, bytes}, errors.descriptor);
  int end = 0;
  while (waitpid(child, &end, 0) != child) FUZZ_CHECK(errno == EINTR, "the child is lost");
  fuzz_receive_coverage();
  const char* text = read_errors(errors.descriptor);
  const bool stopped = WIFSIGNALED(end) && WTERMSIG(end) == SIGABRT && strncmp(text, "gcap sim: ", 10) == 0;
  FUZZ_CHECK(stopped || (WIFEXITED(end) && WEXITSTATUS(end) == 0), "the child ended with %#x:\n%s", (unsigned)end,
             text);
  close(errors.descriptor);
  return 0;
}
