// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A kernel whose arguments are bytes and a recipe.
#include "test/support/kernels/decoded_body.h"

__global__ void gcap_kernel_decoded(gcap_test_args_t args, gcap_test_recipe_t recipe, gcap_test_trace_t* trace) {
  if (threadIdx.x == 0 && blockIdx.x == 0) decoded_run(&args, recipe, trace);
}
