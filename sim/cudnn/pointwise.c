// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Calls that treat each element alone: adding a tensor, which may be broadcast, copies between layouts and types,
// setting, scaling, binary operations and activations. Stateless.
#include <math.h>

#include "sim/cudnn/internal.h"

// The payload of an addition, a copy, a scaling and a setting is the call alone; others start with it, as
// gcap_sim_dnn_describe wants.
typedef struct activation {
  gcap_sim_dnn_call_t call;
  struct cudnnActivationStruct desc;
} activation_t;

typedef struct binary {
  gcap_sim_dnn_call_t call;  // x is A
  gcap_sim_dnn_operand_t b;
  cudnnOpTensorOp_t op;
  int zero;  // where padding would be
  double alpha_a;
  double alpha_b;
} binary_t;

// y = alpha * x + beta * y, where x has stride 0 in the dimensions in which it is broadcast.
static void add_element(const void* payload, int64_t n, int64_t c, int64_t h, int64_t w) {
  const gcap_sim_dnn_call_t* call = payload;
  gcap_sim_dnn_store(call, n, c, h, w, gcap_sim_dnn_load(&call->x, n, c, h, w));
}

static void run_addition(void* payload) {
  gcap_sim_dnn_for_each(&((const gcap_sim_dnn_call_t*)payload)->y.shape, add_element, payload);
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t aDesc,
                             const void* A, const void* beta, const cudnnTensorDescriptor_t cDesc, void* C) {
  gcap_sim_dnn_call_t call;
  cudnnStatus_t status = gcap_sim_dnn_begin(__func__, handle, alpha, aDesc, A, beta, cDesc, C, &call);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_broadcast(__func__, &call.x, &call.y.shape);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const gcap_sim_library_kernel_t kernel = {__func__, run_addition, gcap_sim_dnn_describe, sizeof(call), 0};
  return gcap_sim_dnn_submit(handle, &kernel, &call);
}

// Measured: between half and bfloat16 there is no way.
cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t xDesc,
                                   const void* x, const void* beta, const cudnnTensorDescriptor_t yDesc, void* y) {
  gcap_sim_dnn_call_t call;
  cudnnStatus_t status = gcap_sim_dnn_begin_mixed(__func__, handle, alpha, xDesc, x, beta, yDesc, y, &call);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_require_same_dims(__func__, &call);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if ((call.x.type == CUDA_R_64F) != (call.y.type == CUDA_R_64F)) {
    gcap_sim_stop(__func__, "between doubles and another type is not modelled");
  }
  if (call.x.type != call.y.type && call.x.type != CUDA_R_32F && call.y.type != CUDA_R_32F) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_NOT_SUPPORTED, "half and bfloat16 do not turn into each other");
  }
  const gcap_sim_library_kernel_t kernel = {__func__, run_addition, gcap_sim_dnn_describe, sizeof(call), 0};
  return gcap_sim_dnn_submit(handle, &kernel, &call);
}

// y = alpha * y, as the addition of nothing: alpha is the call's beta, and x stays untouched.
static void scale_element(const void* payload, int64_t n, int64_t c, int64_t h, int64_t w) {
  gcap_sim_dnn_store(payload, n, c, h, w, 0.0);
}

static void run_scaling(void* payload) {
  gcap_sim_dnn_for_each(&((const gcap_sim_dnn_call_t*)payload)->y.shape, scale_element, payload);
}

cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t yDesc, void* y, const void* alpha) {
  static const double zero = 0.0;  // as a float, 0 too
  gcap_sim_dnn_call_t call;
  cudnnStatus_t status = gcap_sim_dnn_begin(__func__, handle, &zero, yDesc, y, alpha, yDesc, y, &call);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  call.x.data = NULL;
  const gcap_sim_library_kernel_t kernel = {__func__, run_scaling, gcap_sim_dnn_describe, sizeof(call), 0};
  return gcap_sim_dnn_submit(handle, &kernel, &call);
}

// y = alpha, which is the value.
static void set_element(const void* payload, int64_t n, int64_t c, int64_t h, int64_t w) {
  gcap_sim_dnn_store(payload, n, c, h, w, 1.0);
}

static void run_setting(void* payload) {
  gcap_sim_dnn_for_each(&((const gcap_sim_dnn_call_t*)payload)->y.shape, set_element, payload);
}

cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t yDesc, void* y, const void* valuePtr) {
  static const double zero = 0.0;  // as a float, 0 too
  gcap_sim_dnn_call_t call;
  cudnnStatus_t status = gcap_sim_dnn_begin(__func__, handle, &zero, yDesc, y, &zero, yDesc, y, &call);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (valuePtr == NULL) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "the value is NULL");
  }
  // measured: a float also where y has halves
  call.alpha = gcap_sim_element_load(valuePtr, gcap_sim_element_compute_type(call.y.type), 0);
  call.x.data = NULL;
  const gcap_sim_library_kernel_t kernel = {__func__, run_setting, gcap_sim_dnn_describe, sizeof(call), 0};
  return gcap_sim_dnn_submit(handle, &kernel, &call);
}

static double combine(cudnnOpTensorOp_t op, double a, double b) {
  switch (op) {
    case CUDNN_OP_TENSOR_MUL: return a * b;
    case CUDNN_OP_TENSOR_MIN: return fmin(a, b);
    case CUDNN_OP_TENSOR_MAX: return fmax(a, b);
    case CUDNN_OP_TENSOR_SQRT: return sqrt(a);
    case CUDNN_OP_TENSOR_NOT: return 1.0 - a;
    default: return a + b;
  }
}

static int reads_b(cudnnOpTensorOp_t op) { return op != CUDNN_OP_TENSOR_SQRT && op != CUDNN_OP_TENSOR_NOT; }

static void combine_element(const void* payload, int64_t n, int64_t c, int64_t h, int64_t w) {
  const binary_t* binary = payload;
  const cudaDataType type = gcap_sim_element_compute_type(binary->call.y.type);
  const double a = binary->alpha_a * gcap_sim_dnn_load(&binary->call.x, n, c, h, w);
  const double b = reads_b(binary->op) ? binary->alpha_b * gcap_sim_dnn_load(&binary->b, n, c, h, w) : 0.0;
  const double result = combine(binary->op, gcap_sim_element_round(type, a), gcap_sim_element_round(type, b));
  gcap_sim_dnn_store(&binary->call, n, c, h, w, result);
}

static void run_binary(void* payload) {
  gcap_sim_dnn_for_each(&((const binary_t*)payload)->call.y.shape, combine_element, payload);
}

// Measured: A and B of one type (else a bad parameter), C of the same or floats, from floats anything. Documented:
// doubles go with doubles alone, and are calculated in doubles.
static cudnnStatus_t check_binary_types(const char* function, const binary_t* binary, cudnnDataType_t compute_type) {
  const cudaDataType in = binary->call.x.type;
  const cudaDataType out = binary->call.y.type;
  if (in != binary->b.type) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "A and B have different types");
  }
  const int is_double = in == CUDA_R_64F;
  if (compute_type != (is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT) || is_double != (out == CUDA_R_64F) ||
      (in != out && in != CUDA_R_32F && out != CUDA_R_32F)) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED, "these types do not go together");
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_operation(const char* function, cudnnOpTensorDescriptor_t desc) {
  if (desc == NULL) {
    gcap_sim_stop(function, "the operation's descriptor is NULL, which crashes the real library");
  }
  gcap_sim_object_check(&gcap_sim_dnn_op_tensor_kind, desc, function);
  if (!desc->head.is_set) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED,
                             "the operation's descriptor was created but never set");
  }
  return CUDNN_STATUS_SUCCESS;
}

static void describe_binary(const void* payload, gcap_sim_access_list_t* list) {
  const binary_t* binary = payload;
  if (reads_b(binary->op)) {
    gcap_sim_dnn_add_access(list, &binary->b, GCAP_SIM_READ);
  }
  gcap_sim_dnn_describe(&binary->call, list);
}

// B is checked also where the operation does not read it.
static cudnnStatus_t bind_b(const char* function, const void* alpha, cudnnTensorDescriptor_t desc, const void* data,
                            binary_t* out) {
  cudnnStatus_t status = gcap_sim_dnn_check(function, &gcap_sim_dnn_tensor_kind, desc, "B's descriptor");
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (alpha == NULL || data == NULL) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "B or its scalar is NULL");
  }
  out->b = gcap_sim_dnn_operand(function, desc, data);
  const int is_double = out->b.type == CUDA_R_64F && out->call.y.type == CUDA_R_64F;
  out->alpha_b = gcap_sim_element_load(alpha, is_double ? CUDA_R_64F : CUDA_R_32F, 0);
  return gcap_sim_dnn_broadcast(function, &out->b, &out->call.y.shape);
}

cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, const cudnnOpTensorDescriptor_t opTensorDesc, const void* alpha1,
                            const cudnnTensorDescriptor_t aDesc, const void* A, const void* alpha2,
                            const cudnnTensorDescriptor_t bDesc, const void* B, const void* beta,
                            const cudnnTensorDescriptor_t cDesc, void* C) {
  binary_t binary = {0};
  cudnnStatus_t status = gcap_sim_dnn_begin_mixed(__func__, handle, alpha1, aDesc, A, beta, cDesc, C, &binary.call);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_operation(__func__, opTensorDesc);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_require_same_dims(__func__, &binary.call);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = bind_b(__func__, alpha2, bDesc, B, &binary);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_binary_types(__func__, &binary, opTensorDesc->compute_type);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  binary.op = opTensorDesc->op;
  binary.alpha_a = binary.call.alpha;
  binary.call.alpha = 1.0;
  const gcap_sim_library_kernel_t kernel = {__func__, run_binary, describe_binary, sizeof(binary), 0};
  return gcap_sim_dnn_submit(handle, &kernel, &binary);
}

// In doubles throughout: the result is rounded to what the call calculates in.
static double activate(const struct cudnnActivationStruct* desc, double coef, double value) {
  const int is_relu = desc->mode == CUDNN_ACTIVATION_RELU || desc->mode == CUDNN_ACTIVATION_CLIPPED_RELU;
  if (isnan(value)) {
    return is_relu && desc->nan == CUDNN_NOT_PROPAGATE_NAN ? 0.0 : value;
  }
  switch (desc->mode) {
    case CUDNN_ACTIVATION_SIGMOID: return 1.0 / (1.0 + exp(-value));
    case CUDNN_ACTIVATION_RELU: return value > 0.0 ? value : 0.0;
    case CUDNN_ACTIVATION_TANH: return tanh(value);
    case CUDNN_ACTIVATION_CLIPPED_RELU: return value > 0.0 ? fmin(value, coef) : 0.0;
    case CUDNN_ACTIVATION_ELU: return value > 0.0 ? value : coef * expm1(value);
    case CUDNN_ACTIVATION_SWISH: return value / (1.0 + exp(-value));  // the descriptor's coefficient is not its beta
    default: return value;
  }
}

static void activate_element(const void* payload, int64_t n, int64_t c, int64_t h, int64_t w) {
  const activation_t* activation = payload;
  const gcap_sim_dnn_call_t* call = &activation->call;
  const double coef = gcap_sim_element_round(gcap_sim_element_compute_type(call->y.type), activation->desc.coef);
  gcap_sim_dnn_store(call, n, c, h, w, activate(&activation->desc, coef, gcap_sim_dnn_load(&call->x, n, c, h, w)));
}

static void run_activation(void* payload) {
  gcap_sim_dnn_for_each(&((const activation_t*)payload)->call.y.shape, activate_element, payload);
}

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t activationDesc,
                                     const void* alpha, const cudnnTensorDescriptor_t xDesc, const void* x,
                                     const void* beta, const cudnnTensorDescriptor_t yDesc, void* y) {
  activation_t activation;
  cudnnStatus_t status = gcap_sim_dnn_begin(__func__, handle, alpha, xDesc, x, beta, yDesc, y, &activation.call);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_check(__func__, &gcap_sim_dnn_activation_kind, activationDesc, "the activation's descriptor");
  }
  if (status == CUDNN_STATUS_SUCCESS && activationDesc->mode == CUDNN_ACTIVATION_IDENTITY) {
    status = gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "identity is for the fused convolution alone");
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_require_same_dims(__func__, &activation.call);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  activation.desc = *activationDesc;
  const gcap_sim_library_kernel_t kernel = {__func__, run_activation, gcap_sim_dnn_describe, sizeof(activation), 0};
  return gcap_sim_dnn_submit(handle, &kernel, &activation);
}
