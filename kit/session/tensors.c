// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a run is given, against the model. A symbol has the size of the first dimension that has it, in the order of the
// inputs; each further one must agree.
//
// Locking: none. No heap: a replay checks its tensors, too.

#include "kit/session/tensors.h"

#include "lib/internal/text.h"

static gcap_status_t check_shape(const char* role, const gcap_value_t* value, const gcap_tensor_t* given) {
  for (int d = 0; d < value->rank; ++d) {
    const int64_t wanted = value->shape[d];
    if (wanted >= 0 ? given->shape[d] == wanted : given->shape[d] >= 0) continue;
    if (wanted >= 0) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s '%s': dimension %d is %lld, the model wants %lld", role,
                         value->name, d, (long long)given->shape[d], (long long)wanted);
    }
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s '%s': dimension %d is %lld, allowed is 0 or more", role, value->name,
                       d, (long long)given->shape[d]);
  }
  return NULL;
}

// Not by the number of elements: sizes that the model does not fix may be so large that their product overflows.
static bool is_empty(const gcap_tensor_t* tensor) {
  for (int d = 0; d < tensor->rank; ++d) {
    if (tensor->shape[d] == 0) return true;
  }
  return false;
}

static gcap_status_t check_tensor(const char* role, const gcap_value_t* value, const gcap_tensor_t* given) {
  if (given->dtype != value->dtype || given->rank != value->rank) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s '%s' has type %s and rank %d, the model wants %s and rank %d", role,
                       value->name, gcap_dtype_name(given->dtype), given->rank, gcap_dtype_name(value->dtype),
                       value->rank);
  }
  GCAP_RETURN_IF_ERROR(check_shape(role, value, given));
  if (given->data != NULL || is_empty(given)) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s '%s' has no data", role, value->name);
}

gcap_status_t gcap_tensors_check(const gcap_model_t* model, const char* role, const int* indices, int count,
                                 const gcap_tensor_t* tensors) {
  if (count > 0 && tensors == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the %ss are NULL, the model has %d", role, count);
  }
  for (int i = 0; i < count; ++i) {
    GCAP_RETURN_IF_ERROR(check_tensor(role, &model->values[indices[i]], &tensors[i]));
  }
  return NULL;
}

// Where a symbol got its size.
static const char* first_with(const gcap_model_t* model, int64_t dimension) {
  for (int i = 0; i < model->num_inputs; ++i) {
    const gcap_value_t* value = &model->values[model->inputs[i]];
    for (int d = 0; d < value->rank; ++d) {
      if (value->shape[d] == dimension) return value->name;
    }
  }
  return "?";
}

static gcap_status_t solve_input(const gcap_model_t* model, const gcap_value_t* value, const gcap_tensor_t* given,
                                 int64_t* sizes) {
  for (int d = 0; d < value->rank; ++d) {
    if (value->shape[d] >= 0) continue;
    const int64_t symbol = GCAP_DIM_SYMBOL(value->shape[d]);  // the macro is its own inverse
    if (sizes[symbol] < 0) sizes[symbol] = given->shape[d];
    if (sizes[symbol] == given->shape[d]) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "symbol '%s' has two sizes in one run: %lld in input '%s', and %lld in dimension %d of input "
                       "'%s'",
                       gcap_session_symbol_name(model, symbol), (long long)sizes[symbol],
                       first_with(model, value->shape[d]), (long long)given->shape[d], d, value->name);
  }
  return NULL;
}

gcap_status_t gcap_tensors_solve(const gcap_model_t* model, const gcap_tensor_t* inputs, int64_t* out_sizes) {
  for (int s = 0; s < model->num_symbols; ++s) out_sizes[s] = -1;
  for (int i = 0; i < model->num_inputs; ++i) {
    GCAP_RETURN_IF_ERROR(solve_input(model, &model->values[model->inputs[i]], &inputs[i], out_sizes));
  }
  return NULL;
}

bool gcap_tensors_have_shapes(const gcap_model_t* model, const gcap_tensor_t* inputs) {
  for (int i = 0; i < model->num_inputs; ++i) {
    const gcap_value_t* value = &model->values[model->inputs[i]];
    for (int d = 0; d < value->rank; ++d) {
      if (inputs[i].shape[d] != value->shape[d]) return false;
    }
  }
  return true;
}

void gcap_tensors_describe(const gcap_model_t* model, const gcap_tensor_t* tensors,
                           char chars[GCAP_SHAPES_TEXT_BYTES]) {
  gcap_text_t text;
  gcap_text_init(&text, chars, GCAP_SHAPES_TEXT_BYTES);
  for (int i = 0; i < model->num_inputs; ++i) {
    const gcap_value_t* value = &model->values[model->inputs[i]];
    const int64_t* shape = tensors != NULL ? tensors[i].shape : value->shape;
    gcap_text_add(&text, "%s'%s' [", i > 0 ? ", " : "", value->name);
    for (int d = 0; d < value->rank; ++d) gcap_text_add(&text, "%s%lld", d > 0 ? "," : "", (long long)shape[d]);
    gcap_text_add(&text, "]");
  }
}
