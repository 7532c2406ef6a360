// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "gcap_sim.h"
#include "test/graph/cluster_kernel.h"

void cluster_kernel(int* out) {
  (void)out;
  abort();  // only its address is used
}
void other_cluster_kernel(int* out) {
  (void)out;
  exit(1);  // not the same code, or the compiler may make one function of both
}

static void run(const gcap_sim_launch_t* launch, void* const* args) {
  **(int* const*)args[0] = (int)(launch->cluster.x * launch->cluster.y * launch->cluster.z);
}

static size_t accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  (void)launch;
  if (capacity > 0) out[0] = (gcap_sim_access_t){*(int* const*)args[0], sizeof(int), /*is_write=*/1};
  return 1;
}

__attribute__((constructor)) static void register_twins(void) {
  static const size_t arg_bytes[] = {sizeof(int*)};
  const void* const functions[] = {(const void*)cluster_kernel, (const void*)other_cluster_kernel};
  static const char* const names[] = {"cluster_kernel", "other_cluster_kernel"};
  for (int i = 0; i < 2; ++i) {
    gcap_sim_register_kernel(&(gcap_sim_kernel_t){functions[i], names[i], arg_bytes, 1, run, accesses});
  }
}
