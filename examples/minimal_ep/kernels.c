// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Five kernels, one table row each. `create` does all that may allocate, search or fail for want of something: it runs
// when the session is made. `compute` issues work on the run's stream and takes its workspace from the run's scratch,
// which inside a capture comes out of the graph's reservation.

#include "examples/minimal_ep/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "examples/minimal_ep/minimal_ep.h"
#include "gcap/ops/conv2d.h"
#include "gcap/ops/elementwise.h"
#include "gcap/ops/matmul.h"
#include "gcap/ops/normalize.h"
#include "gcap/ops/pool2d.h"

// Enough for the fast algorithms of small layers; see gcap_conv2d_options_t.
#define MAX_WORKSPACE_BYTES ((size_t)4 << 20)

// --- Libraries ------------------------------------------------------------------------------------------------------

gcap_status_t kernel_libraries_init(int device_id, kernel_libraries_t* out_libraries) {
  *out_libraries = (kernel_libraries_t){0};
  int previous = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGetDevice(&previous)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaSetDevice(device_id)));
  gcap_status_t status = NULL;
  cublasStatus_t lt = cublasLtCreate(&out_libraries->cublaslt);
  if (lt != CUBLAS_STATUS_SUCCESS) {
    status = GCAP_STATUS(GCAP_LIBRARY_ERROR, "cublasLtCreate failed: %s (%d)", cublasLtGetStatusString(lt), (int)lt);
  }
  if (status == NULL) {
    cudnnStatus_t dnn = cudnnCreate(&out_libraries->cudnn);
    if (dnn != CUDNN_STATUS_SUCCESS) {
      status = GCAP_STATUS(GCAP_LIBRARY_ERROR, "cudnnCreate failed: %s (%d)", cudnnGetErrorString(dnn), (int)dnn);
    }
  }
  return gcap_status_join(status, GCAP_CUDA(cudaSetDevice(previous)));
}

gcap_status_t kernel_libraries_deinit(kernel_libraries_t* libraries) {
  gcap_status_t status = NULL;
  if (libraries->cudnn != NULL && cudnnDestroy(libraries->cudnn) != CUDNN_STATUS_SUCCESS) {
    status = GCAP_STATUS(GCAP_LIBRARY_ERROR, "cudnnDestroy failed");
  }
  if (libraries->cublaslt != NULL && cublasLtDestroy(libraries->cublaslt) != CUBLAS_STATUS_SUCCESS) {
    status = gcap_status_join(status, GCAP_STATUS(GCAP_LIBRARY_ERROR, "cublasLtDestroy failed"));
  }
  *libraries = (kernel_libraries_t){0};
  return status;
}

// --- What all kernels share -----------------------------------------------------------------------------------------

static const gcap_value_t* input_of(const gcap_model_t* model, const gcap_node_t* node, int i) {
  return &model->values[node->inputs[i]];
}

static const gcap_value_t* output_of(const gcap_model_t* model, const gcap_node_t* node) {
  return &model->values[node->outputs[0]];
}

static int64_t num_elements(const int64_t* shape, int rank) {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= shape[i];
  return count;
}

static bool has_shape(const gcap_value_t* value, int rank, const int64_t* shape) {
  return value->rank == rank && memcmp(value->shape, shape, (size_t)rank * sizeof(*shape)) == 0;
}

// cuDNN counts in int.
static bool fits_int(const gcap_value_t* value) { return num_elements(value->shape, value->rank) <= INT32_MAX; }

// Workspace for one computation: the next one on this stream may have it as soon as this one is issued.
static gcap_status_t take_workspace(const gcap_kernel_context_t* context, size_t bytes, void** out_workspace) {
  return gcap_scratch_alloc(context->resources.scratch, bytes, context->resources.stream, out_workspace);
}

static gcap_status_t return_workspace(const gcap_kernel_context_t* context, void* workspace, gcap_status_t status) {
  return gcap_status_join(status, gcap_scratch_free(context->resources.scratch, workspace));
}

// --- Conv -----------------------------------------------------------------------------------------------------------

static bool conv_supports(const gcap_model_t* model, const gcap_node_t* node) {
  const minimal_ep_conv_attributes_t* attributes = node->attributes;
  if (attributes == NULL || node->num_inputs != 3) return false;
  const gcap_value_t *x = input_of(model, node, 0), *weight = input_of(model, node, 1),
                     *bias = input_of(model, node, 2);
  const gcap_value_t* y = output_of(model, node);
  if (x->rank != 4 || weight->rank != 4 || weight->shape[1] != x->shape[1] || !fits_int(x) || !fits_int(y))
    return false;
  if (attributes->stride < 1 || attributes->pad < 0) return false;
  int64_t height = x->shape[2] + INT64_C(2) * attributes->pad - weight->shape[2];
  int64_t width = x->shape[3] + INT64_C(2) * attributes->pad - weight->shape[3];
  if (height < 0 || width < 0) return false;
  const int64_t out[4] = {x->shape[0], weight->shape[0], height / attributes->stride + 1,
                          width / attributes->stride + 1};
  return has_shape(bias, 1, &weight->shape[0]) && has_shape(y, 4, out);
}

static gcap_status_t conv_compute(void* self, const gcap_kernel_context_t* context) {
  const gcap_conv2d_t* conv = self;
  void* workspace = NULL;
  GCAP_RETURN_IF_ERROR(take_workspace(context, gcap_conv2d_workspace_bytes(conv), &workspace));
  gcap_status_t status =
      gcap_conv2d_run(conv, context->resources.stream, context->inputs[0].data, context->inputs[1].data,
                      context->inputs[2].data, context->outputs[0].data, workspace);
  return return_workspace(context, workspace, status);
}

static void conv_destroy(void* self) { gcap_conv2d_destroy(self); }

static gcap_status_t conv_create(const kernel_libraries_t* libraries, const gcap_model_t* model,
                                 const gcap_node_t* node, gcap_kernel_t* out_kernel) {
  const minimal_ep_conv_attributes_t* attributes = node->attributes;
  const gcap_value_t *x = input_of(model, node, 0), *weight = input_of(model, node, 1);
  gcap_conv2d_options_t options;
  gcap_conv2d_options_init(&options);
  options.handle = libraries->cudnn;
  options.n = (int)x->shape[0];
  options.c = (int)x->shape[1];
  options.h = (int)x->shape[2];
  options.w = (int)x->shape[3];
  options.k = (int)weight->shape[0];
  options.kernel_h = (int)weight->shape[2];
  options.kernel_w = (int)weight->shape[3];
  options.stride_h = attributes->stride;
  options.stride_w = attributes->stride;
  options.pad_h = attributes->pad;
  options.pad_w = attributes->pad;
  options.relu = attributes->relu;
  options.max_workspace_bytes = MAX_WORKSPACE_BYTES;
  gcap_conv2d_t* conv = NULL;
  GCAP_RETURN_IF_ERROR(gcap_conv2d_create(&options, &conv));
  *out_kernel = (gcap_kernel_t){.self = conv, .compute = conv_compute, .destroy = conv_destroy};
  return NULL;
}

// --- MaxPool --------------------------------------------------------------------------------------------------------

static bool pool_supports(const gcap_model_t* model, const gcap_node_t* node) {
  const minimal_ep_pool_attributes_t* attributes = node->attributes;
  if (attributes == NULL || node->num_inputs != 1 || attributes->window < 1 || attributes->stride < 1) return false;
  const gcap_value_t *x = input_of(model, node, 0), *y = output_of(model, node);
  if (x->rank != 4 || !fits_int(x) || x->shape[2] < attributes->window || x->shape[3] < attributes->window)
    return false;
  const int64_t out[4] = {x->shape[0], x->shape[1], (x->shape[2] - attributes->window) / attributes->stride + 1,
                          (x->shape[3] - attributes->window) / attributes->stride + 1};
  return has_shape(y, 4, out);
}

static gcap_status_t pool_compute(void* self, const gcap_kernel_context_t* context) {
  return gcap_pool2d_run(self, context->resources.stream, context->inputs[0].data, context->outputs[0].data);
}

static void pool_destroy(void* self) { gcap_pool2d_destroy(self); }

static gcap_status_t pool_create(const kernel_libraries_t* libraries, const gcap_model_t* model,
                                 const gcap_node_t* node, gcap_kernel_t* out_kernel) {
  (void)libraries;
  const minimal_ep_pool_attributes_t* attributes = node->attributes;
  const gcap_value_t* x = input_of(model, node, 0);
  gcap_pool2d_options_t options;
  gcap_pool2d_options_init(&options);
  options.n = (int)x->shape[0];
  options.c = (int)x->shape[1];
  options.h = (int)x->shape[2];
  options.w = (int)x->shape[3];
  options.kernel_h = options.kernel_w = attributes->window;
  options.stride_h = options.stride_w = attributes->stride;
  gcap_pool2d_t* pool = NULL;
  GCAP_RETURN_IF_ERROR(gcap_pool2d_create(&options, &pool));
  *out_kernel = (gcap_kernel_t){.self = pool, .compute = pool_compute, .destroy = pool_destroy};
  return NULL;
}

// --- Gemm -----------------------------------------------------------------------------------------------------------

static bool gemm_supports(const gcap_model_t* model, const gcap_node_t* node) {
  if (node->attributes == NULL || node->num_inputs != 3) return false;
  const gcap_value_t *a = input_of(model, node, 0), *weight = input_of(model, node, 1),
                     *bias = input_of(model, node, 2);
  if (a->rank != 2 || weight->rank != 2 || weight->shape[1] != a->shape[1]) return false;
  const int64_t out[2] = {a->shape[0], weight->shape[0]};
  return has_shape(bias, 1, &weight->shape[0]) && has_shape(output_of(model, node), 2, out);
}

static gcap_status_t gemm_compute(void* self, const gcap_kernel_context_t* context) {
  const gcap_matmul_t* matmul = self;
  void* workspace = NULL;
  GCAP_RETURN_IF_ERROR(take_workspace(context, gcap_matmul_workspace_bytes(matmul), &workspace));
  gcap_status_t status =
      gcap_matmul_run(matmul, context->resources.stream, context->inputs[0].data, context->inputs[1].data,
                      context->inputs[2].data, context->outputs[0].data, workspace);
  return return_workspace(context, workspace, status);
}

static void gemm_destroy(void* self) { gcap_matmul_destroy(self); }

static gcap_status_t gemm_create(const kernel_libraries_t* libraries, const gcap_model_t* model,
                                 const gcap_node_t* node, gcap_kernel_t* out_kernel) {
  const minimal_ep_gemm_attributes_t* attributes = node->attributes;
  const gcap_value_t *a = input_of(model, node, 0), *weight = input_of(model, node, 1);
  gcap_matmul_options_t options;
  gcap_matmul_options_init(&options);
  options.handle = libraries->cublaslt;
  options.m = a->shape[0];
  options.n = weight->shape[0];
  options.k = a->shape[1];
  options.epilogue = attributes->relu ? GCAP_MATMUL_EPILOGUE_BIAS_RELU : GCAP_MATMUL_EPILOGUE_BIAS;
  options.max_workspace_bytes = MAX_WORKSPACE_BYTES;
  gcap_matmul_t* matmul = NULL;
  GCAP_RETURN_IF_ERROR(gcap_matmul_create(&options, &matmul));
  *out_kernel = (gcap_kernel_t){.self = matmul, .compute = gemm_compute, .destroy = gemm_destroy};
  return NULL;
}

// --- Relu, Softmax: nothing to plan ---------------------------------------------------------------------------------

static void nothing_to_destroy(void* self) { (void)self; }

static bool relu_supports(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_value_t *x = input_of(model, node, 0), *y = output_of(model, node);
  return node->num_inputs == 1 && num_elements(x->shape, x->rank) == num_elements(y->shape, y->rank);
}

static gcap_status_t relu_compute(void* self, const gcap_kernel_context_t* context) {
  (void)self;
  gcap_tensor_t y = context->inputs[0];  // the output may have another shape of as many elements
  y.data = context->outputs[0].data;
  return gcap_unary(context->resources.stream, GCAP_UNARY_RELU, &context->inputs[0], &y);
}

static gcap_status_t relu_create(const kernel_libraries_t* libraries, const gcap_model_t* model,
                                 const gcap_node_t* node, gcap_kernel_t* out_kernel) {
  (void)libraries, (void)model, (void)node;
  *out_kernel = (gcap_kernel_t){.compute = relu_compute, .destroy = nothing_to_destroy};
  return NULL;
}

static bool softmax_supports(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_value_t* x = input_of(model, node, 0);
  return node->num_inputs == 1 && x->rank == 2 && has_shape(output_of(model, node), 2, x->shape);
}

static gcap_status_t softmax_compute(void* self, const gcap_kernel_context_t* context) {
  (void)self;
  return gcap_softmax(context->resources.stream, &context->inputs[0], /*axis=*/1, &context->outputs[0]);
}

static gcap_status_t softmax_create(const kernel_libraries_t* libraries, const gcap_model_t* model,
                                    const gcap_node_t* node, gcap_kernel_t* out_kernel) {
  (void)libraries, (void)model, (void)node;
  *out_kernel = (gcap_kernel_t){.compute = softmax_compute, .destroy = nothing_to_destroy};
  return NULL;
}

// --- The table ------------------------------------------------------------------------------------------------------

typedef struct op {
  const char* op_type;
  bool (*supports)(const gcap_model_t* model, const gcap_node_t* node);
  gcap_status_t (*create)(const kernel_libraries_t* libraries, const gcap_model_t* model, const gcap_node_t* node,
                          gcap_kernel_t* out_kernel);
} op_t;

static const op_t ops[] = {
    {"Conv", conv_supports, conv_create},          {"MaxPool", pool_supports, pool_create},
    {"Gemm", gemm_supports, gemm_create},          {"Relu", relu_supports, relu_create},
    {"Softmax", softmax_supports, softmax_create},
};

static const op_t* find_op(const char* op_type) {
  for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); ++i) {
    if (strcmp(op_type, ops[i].op_type) == 0) return &ops[i];
  }
  return NULL;
}

bool kernel_supports(const gcap_model_t* model, const gcap_node_t* node) {
  const op_t* op = find_op(node->op_type);
  return op != NULL && node->num_inputs >= 1 && node->num_outputs == 1 && op->supports(model, node);
}

gcap_status_t kernel_create(const kernel_libraries_t* libraries, const gcap_model_t* model, const gcap_node_t* node,
                            gcap_kernel_t* out_kernel) {
  return find_op(node->op_type)->create(libraries, model, node, out_kernel);
}
