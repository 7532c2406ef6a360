// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What an EP asks of its kernels, answered from the table of operators (ops.c).
//
// Locking: none; nothing changes after the creation. cuBLASLt's handle may plan on several threads at once. That of
// cuDNN may not, and is the planning thread's own (conv.c).

#include "gcap/kit/ops/nodes.h"

#include <stdlib.h>

#include "gcap/kit/ops/cublaslt.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/sized.h"
#include "ops/nodes/op.h"

GCAP_SIZED_OPTIONS(static, gcap_kernel_options);

static gcap_status_t start(gcap_node_kernels_t* kernels, int device_id) {
  GCAP_RETURN_IF_ERROR(gcap_stream_create(device_id, &kernels->stream));
  return gcap_stream_cublaslt_handle(kernels->stream, &kernels->cublaslt);
}

gcap_status_t gcap_node_kernels_create(int device_id, const gcap_kernel_options_t* options,
                                       gcap_node_kernels_t** out_kernels) {
  GCAP_RETURN_IF_NULL(out_kernels);
  *out_kernels = NULL;
  gcap_kernel_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_kernel_options_read(options, &known));
  if (known.prefer_nhwc) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "prefer_nhwc is 1, allowed is 0: tensors of a model are NCHW, and each convolution would "
                       "transpose them there and back");
  }
  gcap_node_kernels_t* kernels = calloc(1, sizeof(*kernels));
  if (kernels == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node kernels");
  kernels->options = known;
  gcap_status_t status = start(kernels, device_id);
  if (status != NULL) return gcap_status_join(status, gcap_node_kernels_destroy(kernels));
  *out_kernels = kernels;
  return NULL;
}

gcap_status_t gcap_node_kernels_destroy(gcap_node_kernels_t* kernels) {
  if (kernels == NULL) return NULL;
  gcap_status_t status = gcap_stream_destroy(kernels->stream);
  const gcap_code_t code = gcap_status_code(status);
  if (code == GCAP_FAILED_PRECONDITION) return status;
  if (code == GCAP_OK || code == GCAP_LEAKED) {
    free(kernels);
    return status;
  }
  gcap_keep_for_ever(&kernels->kept);
  return gcap_status_annotate(status, GCAP_LEAKED, "the node kernels are kept, since their stream could not be ended");
}

// The row that takes the node; NULL if there is none.
static const gcap_node_op_t* op_of(const gcap_node_kernels_t* kernels, const gcap_model_t* model,
                                   const gcap_node_t* node) {
  const gcap_node_op_t* op = node->op_type != NULL ? gcap_node_op_find(node->op_type) : NULL;
  if (op == NULL || (op->needs_cudnn && !kernels->options.use_cudnn)) return NULL;
  return gcap_node_op_accepts(op, model, node) ? op : NULL;
}

bool gcap_node_kernels_supports(const gcap_node_kernels_t* kernels, const gcap_model_t* model,
                                const gcap_node_t* node) {
  return op_of(kernels, model, node) != NULL;
}

gcap_input_place_t gcap_node_kernels_input_place(const gcap_node_kernels_t* kernels, const gcap_model_t* model,
                                                 const gcap_node_t* node, int input) {
  const gcap_node_op_t* op = op_of(kernels, model, node);
  return op != NULL && gcap_node_op_reads_on_host(op, input) ? GCAP_INPUT_IN_HOST_MEMORY : GCAP_INPUT_IN_EP_MEMORY;
}

gcap_status_t gcap_node_kernels_create_kernel(const gcap_node_kernels_t* kernels, const gcap_run_resources_t* resources,
                                              const gcap_model_t* model, const gcap_node_t* node,
                                              gcap_kernel_t* out_kernel) {
  GCAP_RETURN_IF_NULL(out_kernel);
  *out_kernel = (gcap_kernel_t){0};
  GCAP_RETURN_IF_NULL(kernels);
  GCAP_RETURN_IF_NULL(resources);
  GCAP_RETURN_IF_NULL(model);
  GCAP_RETURN_IF_NULL(node);
  const gcap_node_op_t* op = op_of(kernels, model, node);
  if (op == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "node '%s' (%s) is not supported with its types, ranks and attributes; see gcap/kit/ops/nodes.h",
                       node->name != NULL ? node->name : "(null)", node->op_type != NULL ? node->op_type : "(null)");
  }
  return gcap_node_kernel_create(kernels, resources, op, model, node, out_kernel);
}
