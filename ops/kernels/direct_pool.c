// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The parameters and the launch of direct poolings. No state.
#include "ops/kernels/direct_pool.h"

#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

gcap_status_t gcap_direct_pool_plan(const gcap_image_problem_t* problem, bool is_max, const int counted_end[2],
                                    gcap_direct_pool_params_t* out_params) {
  gcap_direct_pool_params_t params = {.is_max = is_max};
  GCAP_RETURN_IF_ERROR(gcap_image_plan(problem, &params.window, &params.x_strides));
  params.end_h = params.window.h.input;
  params.end_w = params.window.w.input;
  if (counted_end != NULL) {
    params.begin_h = -problem->pad[0];
    params.begin_w = -problem->pad[1];
    params.end_h += counted_end[0];
    params.end_w += counted_end[1];
  }
  *out_params = params;
  return NULL;
}

#define ENTRY(T) [GCAP_DTYPE_OF_##T] = (const void*)gcap_kernel_direct_pool_##T,
static const void* const kernels[GCAP_NUM_DTYPES] = {GCAP_DIRECT_POOL_KERNELS(ENTRY)};

gcap_status_t gcap_direct_pool(gcap_stream_t* stream, gcap_dtype_t dtype, const gcap_direct_pool_params_t* params) {
  gcap_direct_pool_params_t given = *params;  // a launch's arguments are not const
  return gcap_op_launch(stream, kernels[dtype], given.window.outputs, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &given);
}
