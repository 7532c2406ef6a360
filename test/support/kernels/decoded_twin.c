// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twin of the kernel whose arguments are bytes and a recipe.
#include <stdlib.h>

#include "gcap_sim.h"
#include "test/support/kernels/decoded_body.h"

#ifndef GCAP_TWINS_BY_NAME  // nvcc's object defines it where there is one
void gcap_kernel_decoded(gcap_test_args_t args, gcap_test_recipe_t recipe, gcap_test_trace_t* trace) {
  (void)args, (void)recipe, (void)trace;
  abort();  // kernels are launched, never called
}
#endif

static void run(const gcap_sim_launch_t* launch, void* const* args) {
  (void)launch;
  decoded_run(args[0], *(const gcap_test_recipe_t*)args[1], *(gcap_test_trace_t* const*)args[2]);
}

// The trace alone: what else is touched depends on memory, and is told by no argument.
static size_t accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  (void)launch;
  const gcap_test_recipe_t* recipe = args[1];
  gcap_test_trace_t* trace = *(gcap_test_trace_t* const*)args[2];
  gcap_test_trace_slot_t* slot = &trace->slots[recipe->slot % GCAP_TEST_TRACE_SLOTS];
  if (capacity > 0) out[0] = (gcap_sim_access_t){slot, sizeof(*slot), 1};
  return 1;
}

__attribute__((constructor)) static void register_twin(void) {
  static const size_t bytes[] = {sizeof(gcap_test_args_t), sizeof(gcap_test_recipe_t), sizeof(gcap_test_trace_t*)};
  gcap_sim_kernel_t twin = {
      .name = "gcap_kernel_decoded", .arg_bytes = bytes, .num_args = 3, .run = run, .accesses = accesses};
#ifndef GCAP_TWINS_BY_NAME
  twin.function = (const void*)gcap_kernel_decoded;
#endif
  gcap_sim_register_kernel(&twin);
}
