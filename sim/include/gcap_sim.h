// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap_sim.h: what the simulator offers beyond CUDA's own API: CPU twins of kernels, seeds, injected faults, leak
// checks.
//
// Only tests and kernel twins include this header. Library code never does: it must not know whether it runs on the
// simulator.
//
// Environment, read once: GCAP_SIM_SEED (see gcap_sim_set_seed), GCAP_SIM_DEVICES (1 by default), GCAP_SIM_SCHEDULE:
// `random` lets a seeded generator move queues at API calls, `lazy` runs only what a synchronisation needs, `eager`
// runs at each call all that the calls before it made ready. GCAP_SIM_LOG, when set, tells on stderr what broke a
// capture.
#ifndef GCAP_SIM_H_
#define GCAP_SIM_H_

#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// One byte range that an operation reads or writes. `bytes` may be 0.
typedef struct gcap_sim_access {
  const void* address;
  size_t bytes;
  int is_write;
} gcap_sim_access_t;

// The launch configuration a twin runs under.
typedef struct gcap_sim_launch {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
} gcap_sim_launch_t;

// A kernel's CPU twin: what `cudaLaunchKernel(function, …)` runs here.
// Thread:   register from any thread, normally from a constructor function before main.
// Lifetime: copied at registration; the arrays and strings it points to must live as long as the program.
typedef struct gcap_sim_kernel {
  const void* function;     // the handle that callers pass to cudaLaunchKernel: the address of the host stub
  const char* name;         // shown in reports and graph dumps
  const size_t* arg_bytes;  // size of each argument: arguments are copied at the launch, as CUDA copies them
  size_t num_args;
  // Computes the whole grid. `args[i]` points to the copied argument i.
  void (*run)(const gcap_sim_launch_t* launch, void* const* args);
  // Tells which bytes this launch touches; writes up to `capacity` entries and returns how many there are.
  size_t (*accesses)(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity);
} gcap_sim_kernel_t;

// Registers a twin. Stops the program with a message when `function` is NULL or has a twin already.
void gcap_sim_register_kernel(const gcap_sim_kernel_t* kernel);

// Sets the seed of the scheduler that picks which ready queue advances at an API call. Also read once from the
// environment variable GCAP_SIM_SEED; 0 by default. One seed and one sequence of calls are one interleaving.
void gcap_sim_set_seed(uint64_t seed);

// Makes the nth call (1 is the next one) of the named function return `code` without doing anything; `function` NULL
// counts calls of all functions. One fault is armed at a time; n == 0 disarms.
void gcap_sim_fail_nth(const char* function, uint64_t n, cudaError_t code);

// Calls made so far of the named function, or of all functions when NULL. A name that is not simulated gives 0.
uint64_t gcap_sim_calls(const char* function);

// Live handles and allocations of one kind: "stream", "event", "graph", "exec", "device memory", "pinned memory",
// "cublasLt handle", "cudnn handle", … or of all kinds when NULL.
size_t gcap_sim_live(const char* kind);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_SIM_H_
