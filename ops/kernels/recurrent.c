// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The launches of recurrent networks. No state.
#include "ops/kernels/recurrent.h"

#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

// Few, so that a small state is spread over many multiprocessors.
enum { BLOCK_THREADS = 64 };

#define ENTRY(name, T, reads, writes) \
  [GCAP_RECURRENT_##name][GCAP_DTYPE_OF_##T] = (const void*)gcap_kernel_recurrent_##name##_##T,
static const void* const kernels[GCAP_RECURRENT_NUM_PARTS][GCAP_NUM_DTYPES] = {GCAP_RECURRENT_KERNELS(ENTRY)};

gcap_status_t gcap_recurrent(gcap_stream_t* stream, gcap_dtype_t dtype, gcap_recurrent_part_t part,
                             const gcap_recurrent_params_t* params) {
  gcap_recurrent_params_t given = *params;  // a launch's arguments are not const
  return gcap_op_launch(stream, kernels[part][dtype], given.elements, BLOCK_THREADS, BLOCK_THREADS, &given);
}
