// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// internal.h: what the files of the simulated cuDNN share: descriptor contents, failures, tensor operands.
#ifndef GCAP_SIM_CUDNN_INTERNAL_H_
#define GCAP_SIM_CUDNN_INTERNAL_H_

#include <stddef.h>
#include <stdint.h>

#include "cudnn.h"
#include "sim/library/access.h"
#include "sim/library/object.h"

// Dimensions are n, c, h, w whatever the memory order, which the strides (in elements) tell.
typedef struct sim_dnn_shape {
  int64_t dims[4];
  int64_t strides[4];
} sim_dnn_shape_t;

enum { SIM_DNN_N, SIM_DNN_C, SIM_DNN_H, SIM_DNN_W };

// How every descriptor starts. is_set tells whether its values were given.
typedef struct sim_dnn_head {
  uint64_t magic;
  int is_set;
} sim_dnn_head_t;

struct cudnnTensorStruct {
  sim_dnn_head_t head;
  cudnnDataType_t type;
  sim_dnn_shape_t shape;
};

// The shape is k, c, r, s.
struct cudnnFilterStruct {
  sim_dnn_head_t head;
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  sim_dnn_shape_t shape;
};

// Pairs are vertical, horizontal.
struct cudnnConvolutionStruct {
  sim_dnn_head_t head;
  int pad[2];
  int stride[2];
  int dilation[2];
  int more_groups;  // beyond the one that a descriptor is created with
  cudnnConvolutionMode_t mode;
  cudnnDataType_t compute_type;
  cudnnMathType_t math_type;
};

struct cudnnPoolingStruct {
  sim_dnn_head_t head;
  int window[2];
  int pad[2];
  int stride[2];
  cudnnPoolingMode_t mode;
  cudnnNanPropagation_t nan;
};

struct cudnnActivationStruct {
  sim_dnn_head_t head;
  cudnnActivationMode_t mode;
  cudnnNanPropagation_t nan;
  double coef;
};

struct cudnnContext {
  uint64_t magic;
  cudaStream_t stream;
};

extern const sim_object_kind_t sim_dnn_handle_kind;
extern const sim_object_kind_t sim_dnn_tensor_kind;
extern const sim_object_kind_t sim_dnn_filter_kind;
extern const sim_object_kind_t sim_dnn_convolution_kind;
extern const sim_object_kind_t sim_dnn_pooling_kind;
extern const sim_object_kind_t sim_dnn_activation_kind;

// Keeps the message for cudnnGetLastErrorString and returns `status`.
__attribute__((format(printf, 3, 4))) cudnnStatus_t sim_dnn_fail(const char* function, cudnnStatus_t status,
                                                                 const char* format, ...);

// The cuDNN status that the simulated runtime's answer turns into.
cudnnStatus_t sim_dnn_status(const char* function, cudaError_t error);

// Enters a call that is legal in every capture: counts it and gives the injected fault, if any.
cudnnStatus_t sim_dnn_enter(const char* function);

// The same, and refuses a NULL handle.
cudnnStatus_t sim_dnn_enter_with_handle(const char* function, cudnnHandle_t handle);

// Success when `descriptor` is there, alive and set. `what` names it in the message.
cudnnStatus_t sim_dnn_check(const char* function, const sim_object_kind_t* kind, const void* descriptor,
                            const char* what);

// Stops the program when a type is not float, the one that is modelled.
void sim_dnn_stop_unless_float(const char* function, cudnnDataType_t type);

// 1 + (in + 2 pad - window) / stride; 0 when nothing fits.
int64_t sim_dnn_windows(int64_t in, int64_t window, int pad, int stride);

int sim_dnn_same_dims(const sim_dnn_shape_t* a, const sim_dnn_shape_t* b);
void sim_dnn_add_access(sim_access_list_t* list, const sim_dnn_shape_t* shape, const float* data,
                        sim_access_kind_t kind);

static inline int64_t sim_dnn_offset(const sim_dnn_shape_t* shape, int64_t n, int64_t c, int64_t h, int64_t w) {
  return n * shape->strides[0] + c * shape->strides[1] + h * shape->strides[2] + w * shape->strides[3];
}

// One call of the form y = alpha * op(x) + beta * y. y is not read when beta is zero.
typedef struct sim_dnn_call {
  sim_dnn_shape_t x_shape;
  sim_dnn_shape_t y_shape;
  const float* x;
  float* y;
  float alpha;
  float beta;
} sim_dnn_call_t;

// Enters such a call and checks what all of them have in common.
cudnnStatus_t sim_dnn_begin(const char* function, cudnnHandle_t handle, const void* alpha,
                            cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                            cudnnTensorDescriptor_t y_desc, void* y, sim_dnn_call_t* out);

// Submits it; the payload starts with the call.
cudnnStatus_t sim_dnn_submit(const char* function, cudnnHandle_t handle, void (*run)(void*), const void* payload,
                             size_t payload_bytes);

static inline void sim_dnn_store(const sim_dnn_call_t* call, int64_t offset, float value) {
  const float scaled = call->alpha * value;
  call->y[offset] = call->beta == 0.0f ? scaled : scaled + call->beta * call->y[offset];
}

// A convolution with all that a fused call adds: y = relu?(alpha * conv(x, w) + beta * z + bias). z may be y.
typedef struct sim_dnn_conv {
  sim_dnn_shape_t x_shape;
  sim_dnn_shape_t w_shape;
  sim_dnn_shape_t y_shape;
  sim_dnn_shape_t z_shape;
  const float* x;
  const float* w;
  const float* z;     // NULL when beta is zero
  const float* bias;  // or NULL
  float* y;
  int64_t bias_stride;
  float alpha;
  float beta;
  int relu;
  int propagate_nan;  // through the relu
  int pad[2];
  int stride[2];
  int dilation[2];
  int groups;
  int flip;  // a true convolution turns the filter round; a cross-correlation does not
  cudnnConvolutionFwdAlgo_t algo;
  void* workspace;
} sim_dnn_conv_t;

// Bytes of workspace that an algorithm which the simulator has needs.
size_t sim_dnn_conv_workspace(const sim_dnn_conv_t* conv, cudnnConvolutionFwdAlgo_t algo);

// Work for sim_submit; the payload is a sim_dnn_conv_t. The table is what IMPLICIT_PRECOMP_GEMM computes first.
void sim_dnn_run_conv_table(void* payload);
void sim_dnn_run_conv(void* payload);

#endif  // GCAP_SIM_CUDNN_INTERNAL_H_
