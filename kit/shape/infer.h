// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// infer.h: what the families of operators share: one function an operator, and how it reads inputs and gives shapes.
#ifndef GCAP_KIT_SHAPE_INFER_H_
#define GCAP_KIT_SHAPE_INFER_H_

#include "gcap/kit/shape_inference.h"

// A refusal that names the node: GCAP_SHAPE_REFUSE(node, "input 0 has …", …).
#define GCAP_SHAPE_REFUSE(node, ...) gcap_shape_refuse((node), __FILE__, __LINE__, __VA_ARGS__)
gcap_status_t gcap_shape_refuse(const gcap_node_t* node, const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 4, 5)));

// A shape that is being made. Sizes that depend on what is unknown are GCAP_DIM_INFERRED.
typedef struct gcap_shape {
  int rank;
  int64_t at[GCAP_MAX_RANK];
} gcap_shape_t;

// Numbers that an input or an attribute holds.
typedef struct gcap_numbers {
  bool known;  // false: there are `count` of them, but the content is unknown
  int count;
  int64_t at[GCAP_MAX_RANK];
} gcap_numbers_t;

// Adds a size to a shape.
//   INVALID_ARGUMENT  it would have more than GCAP_MAX_RANK
gcap_status_t gcap_shape_add(const gcap_node_t* node, gcap_shape_t* shape, int64_t size);
gcap_shape_t gcap_shape_of(const gcap_tensor_t* tensor);
gcap_shape_t gcap_shape_unknown(int rank);  // all sizes GCAP_DIM_INFERRED
// These sizes; all GCAP_DIM_INFERRED if they are not known.
gcap_shape_t gcap_shape_of_sizes(int rank, bool known, const int64_t* sizes);

// The number of elements of the axes begin..end-1. It cannot overflow: inputs are checked before.
int64_t gcap_shape_count(const gcap_tensor_t* tensor, int begin, int end);

// Gives a shape to an output: fills in what is GCAP_DIM_INFERRED there, and compares the rest.
//   INVALID_ARGUMENT  another rank or size than the model has, or too many bytes
gcap_status_t gcap_shape_give(const gcap_node_t* node, int output, const gcap_shape_t* shape, gcap_tensor_t* tensor);

// Checks that an input has a shape at all, of 0..GCAP_MAX_RANK sizes of 0 or more, and PTRDIFF_MAX bytes at most.
gcap_status_t gcap_shape_check_input(const gcap_node_t* node, int input, const gcap_tensor_t* tensor);

// Reads a list of integers: input number `input`, of rank 1.
gcap_status_t gcap_shape_read_input(const gcap_node_t* node, int input, const gcap_tensor_t* tensor,
                                    gcap_numbers_t* out_numbers);
// Reads attribute `name`; if the node has none, input 1, where a number alone is a list of one; if it has none either,
// no numbers, and `*out_given` is false.
gcap_status_t gcap_shape_read_numbers(const gcap_node_t* node, const char* name, const gcap_tensor_t* inputs,
                                      gcap_numbers_t* out_numbers, bool* out_given);
// Whether the content of a tensor is known; one without elements has none.
bool gcap_shape_is_known(const gcap_tensor_t* tensor);
// Element `index` of a tensor of i32 or i64.
int64_t gcap_shape_integer_at(const gcap_tensor_t* tensor, int64_t index);

// Resolves one axis of a tensor of `rank` dimensions. `what` is "axis", "axes[1]", …
gcap_status_t gcap_shape_axis(const gcap_node_t* node, const char* what, int64_t axis, int rank, int* out_axis);
// Resolves axes, each once: out_at[axis] is true.
gcap_status_t gcap_shape_axes(const gcap_node_t* node, const gcap_numbers_t* axes, int rank,
                              bool out_at[GCAP_MAX_RANK]);

// One function a family or operator; inputs are checked, and as many as the table in operators.c says.
typedef gcap_status_t gcap_infer_t(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs);

gcap_infer_t gcap_infer_elementwise, gcap_infer_same, gcap_infer_same_with_axis, gcap_infer_dropout;   // elementwise.c
gcap_infer_t gcap_infer_same_in_rows;                                                                  // elementwise.c
gcap_infer_t gcap_infer_layer_norm, gcap_infer_onto_first, gcap_infer_skip_norm;                       // elementwise.c
gcap_infer_t gcap_infer_shape_op, gcap_infer_size_op, gcap_infer_constant_of_shape, gcap_infer_range;  // sources.c
gcap_infer_t gcap_infer_reshape, gcap_infer_flatten, gcap_infer_squeeze, gcap_infer_unsqueeze;         // layout.c
gcap_infer_t gcap_infer_expand, gcap_infer_transpose;                                                  // layout.c
gcap_infer_t gcap_infer_space_to_depth, gcap_infer_depth_to_space, gcap_infer_pad;            // blocks.c, pad.c
gcap_infer_t gcap_infer_concat, gcap_infer_gather, gcap_infer_slice_op, gcap_infer_split;     // parts.c
gcap_infer_t gcap_infer_reduce, gcap_infer_matmul, gcap_infer_fused_matmul, gcap_infer_gemm;  // products.c
gcap_infer_t gcap_infer_attention, gcap_infer_einsum;                                         // attention.c, einsum.c
gcap_infer_t gcap_infer_quantize, gcap_infer_dynamic_quantize, gcap_infer_matmul_integer;     // quantize.c
gcap_infer_t gcap_infer_qlinear_matmul;                                                       // quantize.c
gcap_infer_t gcap_infer_resize_op, gcap_infer_grid_sample;                                    // resize.c
gcap_infer_t gcap_infer_conv_transpose;                                                       // window.c
gcap_infer_t gcap_infer_conv, gcap_infer_pool, gcap_infer_global_pool;                        // window.c
gcap_infer_t gcap_infer_gather_elements, gcap_infer_gather_nd;                                // indices.c
gcap_infer_t gcap_infer_scatter_elements, gcap_infer_scatter_nd;                              // indices.c
gcap_infer_t gcap_infer_recurrent;                                                            // recurrent.c
gcap_infer_t gcap_infer_arg, gcap_infer_top_k;                                                // indices.c
gcap_infer_t gcap_infer_tile, gcap_infer_trilu, gcap_infer_eye_like, gcap_infer_one_hot;      // arrange.c
gcap_infer_t gcap_infer_cum_sum, gcap_infer_reverse_sequence;                                 // arrange.c
gcap_infer_t gcap_infer_tensor_scatter;                                                       // indices.c

// MatMul of input 0 and input `b_input`, as numpy.matmul: a vector is a row on the left and a column on the right, and
// its axis is not in the output.
gcap_status_t gcap_infer_product(const gcap_node_t* node, const gcap_tensor_t* a, int b_input, const gcap_tensor_t* b,
                                 gcap_tensor_t* outputs);

// Broadcasts `tensor`, the input number `input`, into `*shape`.
gcap_status_t gcap_shape_broadcast(const gcap_node_t* node, int input, const gcap_shape_t* of_input,
                                   gcap_shape_t* shape);

#endif  // GCAP_KIT_SHAPE_INFER_H_
