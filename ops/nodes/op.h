// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// op.h: one row an operator, and what its functions get.
#ifndef GCAP_OPS_NODES_OP_H_
#define GCAP_OPS_NODES_OP_H_

#include <cublasLt.h>
#include <stdbool.h>

#include "gcap/kit/ops/nodes.h"
#include "gcap/kit/shape_inference.h"
#include "lib/internal/kept.h"
#include "ops/kernels/image_window.h"

typedef struct gcap_node_op gcap_node_op_t;

struct gcap_node_kernels {
  gcap_kernel_options_t options;
  gcap_stream_t* stream;  // has no work: its cuBLASLt handle, and so the plans of products, live as long as the kernels
  cublasLtHandle_t cublaslt;
  gcap_kept_t kept;  // of kernels that could not be ended
};

// A kernel.
typedef struct gcap_node_kernel {
  const gcap_node_op_t* op;
  gcap_node_t* node;                // its name and attributes; not its values
  void* plan;                       // what the row's `plan` made; else NULL
  gcap_tensor_t *inputs, *outputs;  // types and shapes; no data
  bool has_open_contents;           // an input that is read on the host is no constant, so each computation checks it
} gcap_node_kernel_t;

// What a plan is made from.
typedef struct gcap_node_planning {
  const gcap_node_kernels_t* kernels;
  const gcap_run_resources_t* resources;
  const gcap_node_t* node;                // its name and attributes; not its values
  const gcap_tensor_t *inputs, *outputs;  // types and shapes, which fit each other by gcap_infer_shapes; no data
} gcap_node_planning_t;

// A number that an attribute sets, or always `fallback` without a name.
typedef struct gcap_node_parameter {
  const char* name;
  float fallback;
} gcap_node_parameter_t;

struct gcap_node_op {
  const char* op_type;
  // The types of the inputs, then '>', then those of the outputs. T: one of `types`, the same everywhere. U: any of
  // `types`. F: f32. L: i64. I: i32 or i64. B: bool. A small letter is read on the host. What follows '?' may be
  // absent at the end; '*' repeats the one before.
  const char* signature;
  unsigned types;  // bits 1 << gcap_dtype_t
  // By then types are the row's and shapes those of creation.
  gcap_status_t (*compute)(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context);
  int code;                           // which of a family: gcap_binary_op_t, …
  gcap_node_parameter_t alpha, beta;  // of an operator of one input
  bool needs_cudnn;                   // the option use_cudnn may forbid it
  bool takes_left_out;  // what follows '?' may be a value without a name, of any type: the node leaves it out
  bool (*accepts)(const gcap_model_t* model, const gcap_node_t* node);  // optional: ranks and attributes
  // Optional, both or neither: what is made before a capture.
  gcap_status_t (*plan)(const gcap_node_planning_t* planning, void** out_plan);
  void (*end_plan)(void* plan);
};

// The row of an operator; NULL if there is none.
const gcap_node_op_t* gcap_node_op_find(const char* op_type);
// True if the node's values have the types that the row names, and ranks and attributes fit.
bool gcap_node_op_accepts(const gcap_node_op_t* op, const gcap_model_t* model, const gcap_node_t* node);
// True if the kernel reads the content of this input on the host.
bool gcap_node_op_reads_on_host(const gcap_node_op_t* op, int input);

// Makes the kernel of a node that the row accepts.
gcap_status_t gcap_node_kernel_create(const gcap_node_kernels_t* kernels, const gcap_run_resources_t* resources,
                                      const gcap_node_op_t* op, const gcap_model_t* model, const gcap_node_t* node,
                                      gcap_kernel_t* out_kernel);

// A refusal that names the node.
#define GCAP_NODE_REFUSE(node, format, ...) \
  GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s' (%s): " format, (node)->name, (node)->op_type, __VA_ARGS__)

// shared.c. For `accepts`, after the types: the model's value of an input; whether there is no attribute activation, or
// it is Relu.
const gcap_value_t* gcap_node_input(const gcap_model_t* model, const gcap_node_t* node, int input);
bool gcap_node_activation_fits(const gcap_node_t* node);
bool gcap_node_has_relu(const gcap_node_t* node);
// The number that ONNX's TensorProto has for a type (elementwise.c).
int64_t gcap_node_onnx_type(gcap_dtype_t dtype);
// For plans: a size as an int, which cuDNN counts in.
gcap_status_t gcap_node_int_size(const gcap_node_t* node, const char* what, int64_t size, int* out_size);
// Axis `i` of a window as a kernel counts it, in ints, over an input of `size` elements.
gcap_status_t gcap_node_window_side(const gcap_node_t* node, const gcap_window_t* window, int64_t size, int i,
                                    gcap_window_side_t* out_side);
// For `compute`: workspace for one computation, which the next one on the stream may have as soon as this one is
// issued.
gcap_status_t gcap_node_take_workspace(const gcap_kernel_context_t* context, size_t bytes, void** out_workspace);
gcap_status_t gcap_node_return_workspace(const gcap_kernel_context_t* context, void* workspace, gcap_status_t status);

#define GCAP_NODE_COMPUTE(name) \
  gcap_status_t name(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context)
#define GCAP_NODE_ACCEPTS(name) bool name(const gcap_model_t* model, const gcap_node_t* node)
#define GCAP_NODE_PLAN(name) gcap_status_t name(const gcap_node_planning_t* planning, void** out_plan)

// matmul.c, gemm.c
GCAP_NODE_ACCEPTS(gcap_node_fused_matmul_accepts);
GCAP_NODE_PLAN(gcap_node_matmul_plan);
GCAP_NODE_COMPUTE(gcap_node_matmul);
void gcap_node_matmul_end(void* plan);
GCAP_NODE_ACCEPTS(gcap_node_gemm_accepts);
GCAP_NODE_PLAN(gcap_node_gemm_plan);
GCAP_NODE_COMPUTE(gcap_node_gemm);
void gcap_node_gemm_end(void* plan);
// einsum.c
GCAP_NODE_ACCEPTS(gcap_node_einsum_accepts);
GCAP_NODE_PLAN(gcap_node_einsum_plan);
GCAP_NODE_COMPUTE(gcap_node_einsum);
void gcap_node_einsum_end(void* plan);
// attention.c, rotary.c
GCAP_NODE_ACCEPTS(gcap_node_attention_accepts);
GCAP_NODE_ACCEPTS(gcap_node_multi_head_accepts);
GCAP_NODE_PLAN(gcap_node_attention_plan);
GCAP_NODE_COMPUTE(gcap_node_attention);
void gcap_node_attention_end(void* plan);
enum { GCAP_NODE_ROTARY_OF_ONNX = 0, GCAP_NODE_ROTARY_OF_MICROSOFT };
GCAP_NODE_ACCEPTS(gcap_node_rotary_accepts);
GCAP_NODE_COMPUTE(gcap_node_rotary);
// conv.c, pool.c, batch_norm.c
GCAP_NODE_ACCEPTS(gcap_node_conv_accepts);
GCAP_NODE_PLAN(gcap_node_conv_plan);
GCAP_NODE_COMPUTE(gcap_node_conv);
void gcap_node_conv_end(void* plan);
GCAP_NODE_ACCEPTS(gcap_node_pool_accepts);
GCAP_NODE_ACCEPTS(gcap_node_global_pool_accepts);
GCAP_NODE_PLAN(gcap_node_pool_plan);
GCAP_NODE_COMPUTE(gcap_node_pool);
void gcap_node_pool_end(void* plan);
GCAP_NODE_ACCEPTS(gcap_node_lp_pool_accepts);
GCAP_NODE_COMPUTE(gcap_node_lp_pool);
GCAP_NODE_ACCEPTS(gcap_node_batch_norm_accepts);
GCAP_NODE_PLAN(gcap_node_batch_norm_plan);
GCAP_NODE_COMPUTE(gcap_node_batch_norm);
void gcap_node_batch_norm_end(void* plan);
// elementwise.c
GCAP_NODE_COMPUTE(gcap_node_binary);
GCAP_NODE_COMPUTE(gcap_node_mod);
GCAP_NODE_COMPUTE(gcap_node_bit_shift);
GCAP_NODE_COMPUTE(gcap_node_fold);
GCAP_NODE_COMPUTE(gcap_node_unary);
GCAP_NODE_COMPUTE(gcap_node_is_inf);
GCAP_NODE_COMPUTE(gcap_node_where);
GCAP_NODE_COMPUTE(gcap_node_leaky_relu);
GCAP_NODE_COMPUTE(gcap_node_gelu);
GCAP_NODE_COMPUTE(gcap_node_fast_gelu);
GCAP_NODE_COMPUTE(gcap_node_clip);
GCAP_NODE_COMPUTE(gcap_node_cast);
GCAP_NODE_ACCEPTS(gcap_node_bit_cast_accepts);
GCAP_NODE_COMPUTE(gcap_node_bit_cast);
GCAP_NODE_ACCEPTS(gcap_node_mod_accepts);
GCAP_NODE_ACCEPTS(gcap_node_bit_shift_accepts);
GCAP_NODE_ACCEPTS(gcap_node_gelu_accepts);
GCAP_NODE_ACCEPTS(gcap_node_cast_accepts);
// quantize.c
GCAP_NODE_ACCEPTS(gcap_node_quantize_accepts);
GCAP_NODE_COMPUTE(gcap_node_quantize);
GCAP_NODE_ACCEPTS(gcap_node_dequantize_accepts);
GCAP_NODE_COMPUTE(gcap_node_dequantize);
GCAP_NODE_COMPUTE(gcap_node_dynamic_quantize);
GCAP_NODE_ACCEPTS(gcap_node_matmul_integer_accepts);
GCAP_NODE_COMPUTE(gcap_node_matmul_integer);
GCAP_NODE_ACCEPTS(gcap_node_qlinear_matmul_accepts);
GCAP_NODE_COMPUTE(gcap_node_qlinear_matmul);
// reduce.c
GCAP_NODE_COMPUTE(gcap_node_softmax);
GCAP_NODE_COMPUTE(gcap_node_log_softmax);
GCAP_NODE_COMPUTE(gcap_node_softmax_in_rows);
GCAP_NODE_COMPUTE(gcap_node_log_softmax_in_rows);
GCAP_NODE_COMPUTE(gcap_node_layer_norm);
GCAP_NODE_COMPUTE(gcap_node_lrn);
GCAP_NODE_COMPUTE(gcap_node_reduce);
GCAP_NODE_ACCEPTS(gcap_node_layer_norm_accepts);
GCAP_NODE_ACCEPTS(gcap_node_lrn_accepts);
// conv_transpose.c, normalize.c, resize.c
GCAP_NODE_ACCEPTS(gcap_node_conv_transpose_accepts);
GCAP_NODE_COMPUTE(gcap_node_conv_transpose);
GCAP_NODE_ACCEPTS(gcap_node_channel_norm_accepts);
GCAP_NODE_COMPUTE(gcap_node_channel_norm);
GCAP_NODE_ACCEPTS(gcap_node_rms_norm_accepts);
GCAP_NODE_COMPUTE(gcap_node_rms_norm);
enum { GCAP_NODE_SKIP_CENTERS = 0, GCAP_NODE_SKIP_SIMPLIFIED };
GCAP_NODE_ACCEPTS(gcap_node_skip_norm_accepts);
GCAP_NODE_COMPUTE(gcap_node_skip_norm);
GCAP_NODE_ACCEPTS(gcap_node_lp_norm_accepts);
GCAP_NODE_COMPUTE(gcap_node_lp_norm);
GCAP_NODE_ACCEPTS(gcap_node_mean_variance_accepts);
GCAP_NODE_COMPUTE(gcap_node_mean_variance);
GCAP_NODE_ACCEPTS(gcap_node_resize_accepts);
GCAP_NODE_COMPUTE(gcap_node_resize);
GCAP_NODE_ACCEPTS(gcap_node_grid_sample_accepts);
GCAP_NODE_COMPUTE(gcap_node_grid_sample);
// recurrent.c
GCAP_NODE_ACCEPTS(gcap_node_recurrent_accepts);
GCAP_NODE_PLAN(gcap_node_recurrent_plan);
GCAP_NODE_COMPUTE(gcap_node_recurrent);
void gcap_node_recurrent_end(void* plan);
// layout.c
GCAP_NODE_COMPUTE(gcap_node_copy_elements);
GCAP_NODE_COMPUTE(gcap_node_transpose);
GCAP_NODE_COMPUTE(gcap_node_concat);
GCAP_NODE_COMPUTE(gcap_node_split);
GCAP_NODE_ACCEPTS(gcap_node_split_accepts);
GCAP_NODE_COMPUTE(gcap_node_slice);
GCAP_NODE_ACCEPTS(gcap_node_slice_accepts);
GCAP_NODE_COMPUTE(gcap_node_space_to_depth);
GCAP_NODE_COMPUTE(gcap_node_depth_to_space);
GCAP_NODE_COMPUTE(gcap_node_gather);
GCAP_NODE_COMPUTE(gcap_node_dropout);
GCAP_NODE_ACCEPTS(gcap_node_dropout_accepts);
// arrange.c
GCAP_NODE_COMPUTE(gcap_node_tile);
GCAP_NODE_COMPUTE(gcap_node_trilu);
GCAP_NODE_COMPUTE(gcap_node_eye_like);
GCAP_NODE_ACCEPTS(gcap_node_eye_like_accepts);
GCAP_NODE_COMPUTE(gcap_node_hardmax);
GCAP_NODE_COMPUTE(gcap_node_one_hot);
GCAP_NODE_ACCEPTS(gcap_node_one_hot_accepts);
GCAP_NODE_COMPUTE(gcap_node_cum_sum);
GCAP_NODE_COMPUTE(gcap_node_reverse_sequence);
// pad.c
GCAP_NODE_ACCEPTS(gcap_node_pad_accepts);
GCAP_NODE_COMPUTE(gcap_node_pad);
GCAP_NODE_COMPUTE(gcap_node_expand);
// source.c. The attribute `value`, 0 if it is absent, as an element of a type.
typedef struct gcap_node_element {
  unsigned char bytes[sizeof(int64_t)];
} gcap_node_element_t;
gcap_node_element_t gcap_node_value(const gcap_node_t* node, gcap_dtype_t dtype);
gcap_node_element_t gcap_node_element(gcap_dtype_t dtype, int64_t value);
bool gcap_node_is_float(gcap_dtype_t dtype);
GCAP_NODE_COMPUTE(gcap_node_constant_of_shape);
GCAP_NODE_ACCEPTS(gcap_node_constant_of_shape_accepts);
GCAP_NODE_COMPUTE(gcap_node_range);
// indices.c
GCAP_NODE_COMPUTE(gcap_node_gather_elements);
GCAP_NODE_COMPUTE(gcap_node_gather_nd);
GCAP_NODE_COMPUTE(gcap_node_scatter_elements);
GCAP_NODE_COMPUTE(gcap_node_scatter_nd);
GCAP_NODE_ACCEPTS(gcap_node_scatter_accepts);
GCAP_NODE_COMPUTE(gcap_node_tensor_scatter);
GCAP_NODE_ACCEPTS(gcap_node_tensor_scatter_accepts);
GCAP_NODE_COMPUTE(gcap_node_arg);
GCAP_NODE_COMPUTE(gcap_node_top_k);

#endif  // GCAP_OPS_NODES_OP_H_
