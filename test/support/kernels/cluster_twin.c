// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the kernels that tell the size of their clusters.
#include <stdlib.h>

#include "gcap_sim.h"
#include "test/support/kernels/device_kernels.h"

#ifndef GCAP_TWINS_BY_NAME  // nvcc's object defines them where there is one
void gcap_kernel_cluster_size(unsigned int* out) {
  (void)out;
  abort();  // kernels are launched, never called
}

void gcap_kernel_cluster_size_too(unsigned int* out) {
  (void)out;
  abort();
}
#endif

static void run(const gcap_sim_launch_t* launch, void* const* args) {
  **(unsigned int* const*)args[0] = launch->cluster.x;
}

static size_t accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  (void)launch;
  if (capacity > 0) out[0] = (gcap_sim_access_t){*(unsigned int**)args[0], sizeof(unsigned int), 1};
  return 1;
}

__attribute__((constructor)) static void register_twins(void) {
  static const size_t arg_bytes[] = {sizeof(unsigned int*)};
  gcap_sim_kernel_t kernel = {.arg_bytes = arg_bytes, .num_args = 1, .run = run, .accesses = accesses};
#ifndef GCAP_TWINS_BY_NAME
  kernel.function = (const void*)gcap_kernel_cluster_size;
#endif
  kernel.name = "gcap_kernel_cluster_size";
  gcap_sim_register_kernel(&kernel);
#ifndef GCAP_TWINS_BY_NAME
  kernel.function = (const void*)gcap_kernel_cluster_size_too;
#endif
  kernel.name = "gcap_kernel_cluster_size_too";
  gcap_sim_register_kernel(&kernel);
}
