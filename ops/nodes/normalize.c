// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Normalizations that are rows divided by what the rows have: InstanceNormalization, GroupNormalization,
// RMSNormalization, SimplifiedLayerNormalization (ONNX Runtime's name of it), LpNormalization,
// MeanVarianceNormalization, and SkipLayerNormalization and SkipSimplifiedLayerNormalization of com.microsoft.

#include "kit/shape/inner.h"
#include "ops/kernels/row_norm.h"
#include "ops/nodes/op.h"

// Rows of `columns` elements one after another.
static gcap_row_norm_params_t rows_of(int64_t rows, int64_t columns, float epsilon) {
  return (gcap_row_norm_params_t){.rows = rows,
                                  .columns = columns,
                                  .kept = 1,
                                  .inner = columns,
                                  .scale_rows = 1,
                                  .scale_span = 1,
                                  .epsilon = epsilon,
                                  .kind = GCAP_ROW_NORM_DEVIATION};
}

static int64_t product(const gcap_tensor_t* x, int first, int last) {
  int64_t elements = 1;
  for (int axis = first; axis < last; ++axis) elements *= x->shape[axis];
  return elements;
}

static float epsilon_of(const gcap_node_t* node) { return gcap_node_float(node, "epsilon", 1e-5f); }

// --- Of channels ----------------------------------------------------------------------------------------------------

bool gcap_node_channel_norm_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  for (int i = 1; i < 3; ++i) {
    if (gcap_node_input(model, node, i)->rank != 1) return false;
  }
  return gcap_node_input(model, node, 0)->rank >= 2 && gcap_node_int(node, "num_groups", 1) >= 1 &&
         epsilon_of(node) >= 0;
}

// An InstanceNormalization has as many groups as channels.
gcap_status_t gcap_node_channel_norm(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_node_t* node = kernel->node;
  const gcap_tensor_t *in = context->inputs, *x = &in[0];
  const int64_t channels = x->shape[1], pixels = product(x, 2, x->rank);
  const int64_t groups = kernel->op->code != 0 ? gcap_node_int(node, "num_groups", 1) : channels;
  if (channels % (groups > 0 ? groups : 1) != 0) {
    return GCAP_NODE_REFUSE(node, "num_groups is %lld, input 0 has %lld channels", (long long)groups,
                            (long long)channels);
  }
  for (int i = 1; i < 3; ++i) {
    if (in[i].shape[0] == channels) continue;
    return GCAP_NODE_REFUSE(node, "input %d has %lld elements, input 0 has %lld channels", i, (long long)in[i].shape[0],
                            (long long)channels);
  }
  if (gcap_tensor_elements(x) == 0) return NULL;
  const int64_t in_group = channels / groups;
  gcap_row_norm_params_t way = rows_of(x->shape[0] * groups, in_group * pixels, epsilon_of(node));
  way.centers = 1;
  way.scale_rows = groups;
  way.scale_columns = in_group;
  way.scale_span = pixels;
  return gcap_row_norm(context->resources.stream, &way, x, &in[1], &in[2], &context->outputs[0]);
}

// --- Of the last axes -----------------------------------------------------------------------------------------------

static int axis_of(const gcap_node_t* node, int rank) {
  const int64_t axis = gcap_node_int(node, "axis", -1);
  return (int)(axis < 0 ? axis + rank : axis);
}

// The scale has the axes that are normalized. Sizes that a run brings are compared when the work is issued.
bool gcap_node_rms_norm_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_value_t *x = gcap_node_input(model, node, 0), *scale = gcap_node_input(model, node, 1);
  const int64_t given = gcap_node_int(node, "axis", -1), axis = given < 0 ? given + x->rank : given;
  if (axis < 0 || axis >= x->rank || scale->rank != x->rank - axis) return false;
  for (int i = 0; i < scale->rank; ++i) {
    const int64_t size = x->shape[axis + i];
    if (size >= 0 && scale->shape[i] >= 0 && scale->shape[i] != size) return false;
  }
  return epsilon_of(node) >= 0;
}

gcap_status_t gcap_node_rms_norm(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_node_t* node = kernel->node;
  const gcap_tensor_t *x = &context->inputs[0], *scale = &context->inputs[1];
  const int axis = axis_of(node, x->rank);
  for (int i = 0; i < scale->rank; ++i) {
    if (scale->shape[i] == x->shape[axis + i]) continue;
    return GCAP_NODE_REFUSE(node, "dimension %d of input 1 is %lld, dimension %d of input 0 is %lld", i,
                            (long long)scale->shape[i], axis + i, (long long)x->shape[axis + i]);
  }
  const gcap_row_norm_params_t way = rows_of(product(x, 0, axis), product(x, axis, x->rank), epsilon_of(node));
  return gcap_row_norm(context->resources.stream, &way, x, scale, NULL, &context->outputs[0]);
}

// --- Of sums --------------------------------------------------------------------------------------------------------

// As the operators of com.microsoft have their outputs: what training wants of them is not given.
enum { Y, MEAN, INV_STD_VAR, SUM };

bool gcap_node_skip_norm_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  for (int i = MEAN; i <= INV_STD_VAR && i < node->num_outputs; ++i) {
    if (model->values[node->outputs[i]].name[0] != 0) return false;
  }
  const int rank = gcap_node_input(model, node, 0)->rank;
  return (rank == 2 || rank == 3) && gcap_node_float(node, "epsilon", 0) >= 0;
}

// An input that may be left out.
static const gcap_tensor_t* given(const gcap_node_kernel_t* kernel, const gcap_tensor_t* inputs, int input) {
  const bool is_there =
      input < kernel->node->num_inputs && !gcap_shape_is_left_out(inputs[input].rank, inputs[input].shape);
  return is_there ? &inputs[input] : NULL;
}

gcap_status_t gcap_node_skip_norm(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t *in = context->inputs, *out = context->outputs, *x = &in[0], *skip = &in[1];
  const bool centers = kernel->op->code == GCAP_NODE_SKIP_CENTERS;
  const int64_t columns = x->shape[x->rank - 1];
  gcap_row_norm_params_t way =
      rows_of(product(x, 0, x->rank - 1), columns, gcap_node_float(kernel->node, "epsilon", 1e-12f));
  way.centers = centers;
  way.skip_rows = product(skip, 0, skip->rank - 1);
  const gcap_tensor_t *bias = centers ? given(kernel, in, 3) : NULL, *addend = given(kernel, in, centers ? 4 : 3);
  const bool gives_sum = kernel->node->num_outputs > SUM && !gcap_shape_is_left_out(out[SUM].rank, out[SUM].shape);
  return gcap_skip_norm(context->resources.stream, &way, x, skip, addend, /*scale=*/&in[2], bias, &out[Y],
                        gives_sum ? &out[SUM] : NULL);
}

// --- Without a scale ------------------------------------------------------------------------------------------------

static int64_t p_of(const gcap_node_t* node) { return gcap_node_int(node, "p", 2); }

bool gcap_node_lp_norm_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const int rank = gcap_node_input(model, node, 0)->rank, axis = axis_of(node, rank);
  return axis >= 0 && axis < rank && (p_of(node) == 1 || p_of(node) == 2);
}

gcap_status_t gcap_node_lp_norm(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t* x = &context->inputs[0];
  const int axis = axis_of(kernel->node, x->rank);
  const int64_t behind = product(x, axis + 1, x->rank);
  gcap_row_norm_params_t way = rows_of(product(x, 0, axis) * behind, x->shape[axis], 0);
  way.kept = behind;
  way.inner = 1;
  way.kind = p_of(kernel->node) == 1 ? GCAP_ROW_NORM_L1 : GCAP_ROW_NORM_L2;
  return gcap_row_norm(context->resources.stream, &way, x, NULL, NULL, &context->outputs[0]);
}

// The axes of a MeanVarianceNormalization: `*out_first` of the beginning, and those from `*out_last` on. False: others.
static bool read_mean_axes(const gcap_node_t* node, int rank, int* out_first, int* out_last) {
  static const int64_t defaults[] = {0, 2, 3};
  size_t count = 0;
  const int64_t* axes = gcap_node_ints(node, "axes", &count);
  if (axes == NULL) axes = defaults;
  if (axes == defaults) count = 3;
  bool at[GCAP_MAX_RANK] = {false};
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank || at[axis]) return false;
    at[axis] = true;
  }
  *out_first = 0;
  *out_last = rank;
  while (*out_first < rank && at[*out_first]) ++*out_first;
  while (*out_last > *out_first && at[*out_last - 1]) --*out_last;
  return count > 0 && count == (size_t)(*out_first + rank - *out_last);
}

bool gcap_node_mean_variance_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  int first = 0, last = 0;
  return read_mean_axes(node, gcap_node_input(model, node, 0)->rank, &first, &last);
}

// ONNX adds 1e-9 to the deviation.
gcap_status_t gcap_node_mean_variance(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t* x = &context->inputs[0];
  int first = 0, last = 0;
  read_mean_axes(kernel->node, x->rank, &first, &last);
  const int64_t kept = product(x, first, last), inner = product(x, last, x->rank);
  gcap_row_norm_params_t way = rows_of(kept, product(x, 0, first) * inner, 1e-18f);
  way.kept = kept;
  way.inner = inner;
  way.centers = 1;
  return gcap_row_norm(context->resources.stream, &way, x, NULL, NULL, &context->outputs[0]);
}
