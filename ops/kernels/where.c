// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The choice between two inputs, with broadcasting: checks and the launch. No state.
#include "gcap/kit/ops/elementwise.h"
#include "lib/internal/check_argument.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"
#include "ops/kernels/where_kernels.h"

#define ENTRY(bytes, type) [bytes] = (const void*)gcap_kernel_where_##bytes,
static const void* const kernels[] = {GCAP_WHERE_KERNELS(ENTRY)};

gcap_status_t gcap_where(gcap_stream_t* stream, const gcap_tensor_t* condition, const gcap_tensor_t* a,
                         const gcap_tensor_t* b, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(condition);
  GCAP_RETURN_IF_NULL(a);
  GCAP_RETURN_IF_NULL(b);
  GCAP_RETURN_IF_NULL(y);
  const gcap_named_tensor_t inputs[] = {{"condition", condition}, {"a", a}, {"b", b}};
  for (int k = 0; k < 3; ++k) GCAP_RETURN_IF_ERROR(gcap_check_tensor(inputs[k].name, inputs[k].tensor));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("condition", condition, GCAP_DTYPE_BOOL, "it chooses"));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("b", b, a->dtype, "the type of a"));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("y", y, a->dtype, "the type of a"));
  gcap_where_params_t params = {.condition = condition->data, .a = a->data, .b = b->data, .y = y->data};
  GCAP_RETURN_IF_ERROR(gcap_broadcast(inputs, 3, y, &params.map));
  if (gcap_tensor_elements(y) == 0) return NULL;
  return gcap_op_launch(stream, kernels[gcap_dtype_bytes(a->dtype)], params.map.count, GCAP_BLOCK_THREADS,
                        GCAP_BLOCK_THREADS, &params);
}
