// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// internal.h: what the files of the simulated cuDNN share: descriptor contents, failures, tensor operands.
#ifndef GCAP_SIM_CUDNN_INTERNAL_H_
#define GCAP_SIM_CUDNN_INTERNAL_H_

#include <stddef.h>
#include <stdint.h>

#include "cudnn.h"
#include "sim/library/access.h"
#include "sim/library/element.h"
#include "sim/library/object.h"

enum { GCAP_SIM_DNN_N, GCAP_SIM_DNN_C, GCAP_SIM_DNN_H, GCAP_SIM_DNN_W, GCAP_SIM_DNN_D, GCAP_SIM_DNN_MAX_RANK };

// Dimensions are n, c, h, w, d whatever the memory order, which the strides (in elements) tell. An image has rank 4 and
// d 1; a volume, which convolutions alone take, has rank 5.
typedef struct gcap_sim_dnn_shape {
  int64_t rank;
  int64_t dims[GCAP_SIM_DNN_MAX_RANK];
  int64_t strides[GCAP_SIM_DNN_MAX_RANK];
} gcap_sim_dnn_shape_t;

// How every descriptor starts. is_set tells whether its values were given.
typedef struct gcap_sim_dnn_head {
  uint64_t magic;
  int64_t is_set;  // as wide as the magic: what is copied into queued work has no padding
} gcap_sim_dnn_head_t;

struct cudnnTensorStruct {
  gcap_sim_dnn_head_t head;
  cudnnDataType_t type;
  gcap_sim_dnn_shape_t shape;
};

// The shape is k, c, r, s.
struct cudnnFilterStruct {
  gcap_sim_dnn_head_t head;
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  gcap_sim_dnn_shape_t shape;
};

// Vertical, horizontal, of the depth.
struct cudnnConvolutionStruct {
  gcap_sim_dnn_head_t head;
  int axes;  // 2 or 3
  int pad[3];
  int stride[3];
  int dilation[3];
  int more_groups;  // beyond the one that a descriptor is created with
  cudnnConvolutionMode_t mode;
  cudnnDataType_t compute_type;
  cudnnMathType_t math_type;
};

struct cudnnPoolingStruct {
  gcap_sim_dnn_head_t head;
  int window[2];
  int pad[2];
  int stride[2];
  cudnnPoolingMode_t mode;
  cudnnNanPropagation_t nan;
};

struct cudnnActivationStruct {
  gcap_sim_dnn_head_t head;
  cudnnActivationMode_t mode;
  cudnnNanPropagation_t nan;
  double coef;
};

struct cudnnOpTensorStruct {
  gcap_sim_dnn_head_t head;
  cudnnOpTensorOp_t op;
  cudnnDataType_t compute_type;
  cudnnNanPropagation_t nan;
};

struct cudnnContext {
  uint64_t magic;
  int device;
  cudaStream_t stream;
};

extern const gcap_sim_object_kind_t gcap_sim_dnn_handle_kind;
extern const gcap_sim_object_kind_t gcap_sim_dnn_tensor_kind;
extern const gcap_sim_object_kind_t gcap_sim_dnn_filter_kind;
extern const gcap_sim_object_kind_t gcap_sim_dnn_convolution_kind;
extern const gcap_sim_object_kind_t gcap_sim_dnn_pooling_kind;
extern const gcap_sim_object_kind_t gcap_sim_dnn_activation_kind;
extern const gcap_sim_object_kind_t gcap_sim_dnn_op_tensor_kind;

// Keeps the message for cudnnGetLastErrorString and returns `status`.
__attribute__((format(printf, 3, 4))) cudnnStatus_t gcap_sim_dnn_fail(const char* function, cudnnStatus_t status,
                                                                      const char* format, ...);

// The cuDNN status that the simulated runtime's answer turns into.
cudnnStatus_t gcap_sim_dnn_status(const char* function, cudaError_t error);

// Enters a call that is legal in every capture: counts it and gives the injected fault, if any.
cudnnStatus_t gcap_sim_dnn_enter(const char* function);

// The same, and refuses a NULL handle.
cudnnStatus_t gcap_sim_dnn_enter_with_handle(const char* function, cudnnHandle_t handle);

// The same for a call on one descriptor, which need not be set yet.
cudnnStatus_t gcap_sim_dnn_enter_with(const char* function, const gcap_sim_object_kind_t* kind, const void* descriptor);

// Success when `descriptor` is there, alive and set. `what` names it in the message.
cudnnStatus_t gcap_sim_dnn_check(const char* function, const gcap_sim_object_kind_t* kind, const void* descriptor,
                                 const char* what);

// Where cuDNN's arrays of `rank` dimensions have one of ours: n, c, h, w or n, c, d, h, w.
int gcap_sim_dnn_place(int64_t rank, int dimension);

// The values of descriptors, once entered; arrays are cuDNN's, with `rank` entries, 4 or 5, for tensors and filters,
// `axes`, 2 or 3, for convolutions, 2 for poolings. `strides` NULL: packed, in the order of `format`.
cudnnStatus_t gcap_sim_dnn_set_tensor(const char* function, cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format,
                                      cudnnDataType_t type, int rank, const int* dims, const int* strides);
cudnnStatus_t gcap_sim_dnn_set_filter(const char* function, cudnnFilterDescriptor_t desc, cudnnDataType_t type,
                                      cudnnTensorFormat_t format, int rank, const int* dims);
cudnnStatus_t gcap_sim_dnn_set_convolution(const char* function, cudnnConvolutionDescriptor_t desc, int axes,
                                           const int* pad, const int* stride, const int* dilation,
                                           cudnnConvolutionMode_t mode, cudnnDataType_t compute_type);
cudnnStatus_t gcap_sim_dnn_set_pooling(const char* function, cudnnPoolingDescriptor_t desc, cudnnPoolingMode_t mode,
                                       cudnnNanPropagation_t nan, const int* window, const int* pad, const int* stride);
cudnnStatus_t gcap_sim_dnn_conv_output_dims(const char* function, cudnnConvolutionDescriptor_t conv,
                                            cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, int64_t* out);
cudnnStatus_t gcap_sim_dnn_pooling_output_dims(const char* function, cudnnPoolingDescriptor_t desc,
                                               cudnnTensorDescriptor_t x, int64_t* out);

// Out pointers of the getters may be NULL.
#define GCAP_SIM_DNN_PUT(out, value) \
  do {                               \
    if ((out) != NULL) {             \
      *(out) = (value);              \
    }                                \
  } while (0)

// The modelled type behind a cuDNN one; stops the program at one that is not modelled.
cudaDataType gcap_sim_dnn_element_type(const char* function, cudnnDataType_t type);

// 1 + (in + 2 pad - window) / stride; 0 when nothing fits.
int64_t gcap_sim_dnn_windows(int64_t in, int64_t window, int pad, int stride);

int gcap_sim_dnn_same_dims(const gcap_sim_dnn_shape_t* a, const gcap_sim_dnn_shape_t* b);

static inline int64_t gcap_sim_dnn_offset(const gcap_sim_dnn_shape_t* shape, int64_t n, int64_t c, int64_t h,
                                          int64_t w) {
  return n * shape->strides[0] + c * shape->strides[1] + h * shape->strides[2] + w * shape->strides[3];
}

// Stops the program at a volume.
void gcap_sim_dnn_require_image(const char* function, const gcap_sim_dnn_shape_t* shape);

// A tensor, filter or bias with its memory. data NULL: not there, and not touched.
typedef struct gcap_sim_dnn_operand {
  gcap_sim_dnn_shape_t shape;
  cudaDataType type;
  int32_t zero;  // where padding would be, which differs from call to call
  void* data;
} gcap_sim_dnn_operand_t;

// The operand that a set tensor descriptor describes. Stops the program when `data`, which may be NULL, is misaligned.
gcap_sim_dnn_operand_t gcap_sim_dnn_operand(const char* function, cudnnTensorDescriptor_t desc, const void* data);
void gcap_sim_dnn_add_access(gcap_sim_access_list_t* list, const gcap_sim_dnn_operand_t* operand,
                             gcap_sim_access_kind_t kind);

static inline double gcap_sim_dnn_load(const gcap_sim_dnn_operand_t* operand, int64_t n, int64_t c, int64_t h,
                                       int64_t w) {
  return gcap_sim_element_load(operand->data, operand->type,
                               (ptrdiff_t)gcap_sim_dnn_offset(&operand->shape, n, c, h, w));
}

// Makes dimensions of size 1 stand for all of `to`'s (stride 0); fails when another does not match.
cudnnStatus_t gcap_sim_dnn_broadcast(const char* function, gcap_sim_dnn_operand_t* operand,
                                     const gcap_sim_dnn_shape_t* to);

// One call of the form y = alpha * op(x) + beta * y. y is not read when beta is zero. The scalars are floats, or
// doubles where x and y are.
typedef struct gcap_sim_dnn_call {
  gcap_sim_dnn_operand_t x;
  gcap_sim_dnn_operand_t y;
  double alpha;
  double beta;
} gcap_sim_dnn_call_t;

// Enters such a call and checks what all of them have in common. The types of x and y may differ.
cudnnStatus_t gcap_sim_dnn_begin_mixed(const char* function, cudnnHandle_t handle, const void* alpha,
                                       cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                       cudnnTensorDescriptor_t y_desc, void* y, gcap_sim_dnn_call_t* out);

// The same where they must be equal.
cudnnStatus_t gcap_sim_dnn_begin(const char* function, cudnnHandle_t handle, const void* alpha,
                                 cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                 cudnnTensorDescriptor_t y_desc, void* y, gcap_sim_dnn_call_t* out);

// Refuses inputs and outputs of different dimensions.
cudnnStatus_t gcap_sim_dnn_require_same_dims(const char* function, const gcap_sim_dnn_call_t* call);

// What such a call touches, for a payload that starts with it.
void gcap_sim_dnn_describe(const void* payload, gcap_sim_access_list_t* list);

// Submits the kernel over the payload.
cudnnStatus_t gcap_sim_dnn_submit(cudnnHandle_t handle, const gcap_sim_library_kernel_t* kernel, const void* payload);

// Stores an element of y; `value` may still have to be rounded to what the call calculates in.
static inline void gcap_sim_dnn_store(const gcap_sim_dnn_call_t* call, int64_t n, int64_t c, int64_t h, int64_t w,
                                      double value) {
  const cudaDataType type = gcap_sim_element_compute_type(call->y.type);
  double result = gcap_sim_element_round(type, call->alpha * gcap_sim_element_round(type, value));
  if (call->beta != 0.0) {
    const double addend = gcap_sim_element_round(type, call->beta * gcap_sim_dnn_load(&call->y, n, c, h, w));
    result = gcap_sim_element_round(type, result + addend);
  }
  gcap_sim_element_store(call->y.data, call->y.type, (ptrdiff_t)gcap_sim_dnn_offset(&call->y.shape, n, c, h, w),
                         result);
}

// Calls `visit` for each element of y, in the order n, c, h, w.
typedef void (*gcap_sim_dnn_visit_t)(const void* payload, int64_t n, int64_t c, int64_t h, int64_t w);
void gcap_sim_dnn_for_each(const gcap_sim_dnn_shape_t* shape, gcap_sim_dnn_visit_t visit, const void* payload);

// A convolution with all that a fused call adds: y = relu?(alpha * conv(x, w) + beta * z + bias). z may be y.
typedef struct gcap_sim_dnn_conv {
  gcap_sim_dnn_operand_t x;
  gcap_sim_dnn_operand_t w;
  gcap_sim_dnn_operand_t y;
  gcap_sim_dnn_operand_t z;     // data NULL when beta is zero
  gcap_sim_dnn_operand_t bias;  // data NULL: none
  double alpha;
  double beta;
  int relu;
  int propagate_nan;  // through the relu
  int axes;
  int pad[3];  // vertical, horizontal, of the depth
  int stride[3];
  int dilation[3];
  int groups;
  int flip;  // a true convolution turns the filter round; a cross-correlation does not
  cudnnConvolutionFwdAlgo_t algo;
  int stage;  // of the algorithm, that the work is
  void* workspace;
} gcap_sim_dnn_conv_t;

// The type of a convolution's scalars, sums and transformed operands: CUDA_R_64F or CUDA_R_32F.
static inline cudaDataType gcap_sim_dnn_conv_compute_type(const gcap_sim_dnn_conv_t* conv) {
  return gcap_sim_element_compute_type(conv->y.type);
}

// One of the pieces of work that a convolution is made of, with the parts of the workspace that it touches.
typedef struct gcap_sim_dnn_stage {
  const char* name;            // as reports show it; NULL: that of the call
  void (*run)(void* payload);  // the payload is a gcap_sim_dnn_conv_t
  unsigned reads;              // parts of the workspace
  unsigned writes;
  int reads_x;
  int reads_w;
  int is_last;  // reads z and the bias, writes y
} gcap_sim_dnn_stage_t;

// The parts of a workspace, in their order, as bits.
enum {
  GCAP_SIM_DNN_TABLE = 1,
  GCAP_SIM_DNN_ROWS = 2,
  GCAP_SIM_DNN_COLUMNS = 4,
  GCAP_SIM_DNN_SUMS = 8,
  GCAP_SIM_DNN_NUM_PARTS = 4
};

// The stages of an algorithm; their number in *count, 0 for an algorithm that the simulator has not.
const gcap_sim_dnn_stage_t* gcap_sim_dnn_conv_stages(cudnnConvolutionFwdAlgo_t algo, size_t* count);

// Start and size in bytes of one part (its index, not its bit) of the algorithm's workspace; size 0 for one that the
// algorithm has not.
void gcap_sim_dnn_conv_part(const gcap_sim_dnn_conv_t* conv, cudnnConvolutionFwdAlgo_t algo, int part, size_t* offset,
                            size_t* bytes);

// Bytes of workspace that an algorithm needs.
size_t gcap_sim_dnn_conv_workspace(const gcap_sim_dnn_conv_t* conv, cudnnConvolutionFwdAlgo_t algo);

// What stands between a convolution's operands and its calls (convolution_problem.c): checked, without data pointers.
cudnnStatus_t gcap_sim_dnn_make_conv(const char* function, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                     cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y,
                                     gcap_sim_dnn_conv_t* out);

// Whether the simulated library has the algorithm for this problem.
int gcap_sim_dnn_conv_has(const gcap_sim_dnn_conv_t* conv, cudnnConvolutionFwdAlgo_t algo);

// Puts in the data pointers, checked.
cudnnStatus_t gcap_sim_dnn_bind_conv(const char* function, const void* x, const void* w, void* y,
                                     gcap_sim_dnn_conv_t* conv);

// Queues it: pointers, algorithm and workspace are set.
cudnnStatus_t gcap_sim_dnn_submit_conv(const char* function, cudaStream_t stream, const gcap_sim_dnn_conv_t* conv);

#endif  // GCAP_SIM_CUDNN_INTERNAL_H_
