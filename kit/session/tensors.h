// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// tensors.h: the tensors that a run is given, against the model: types, shapes, symbols.
#ifndef GCAP_KIT_SESSION_TENSORS_H_
#define GCAP_KIT_SESSION_TENSORS_H_

#include "kit/session/model.h"

// Checks a run's inputs or outputs: `count` tensors for the values `indices` of the model. Sizes that the model does
// not fix may be any from 0 on.
//   INVALID_ARGUMENT  a type or size is not the model's, or a tensor with elements has no data; the message names it
gcap_status_t gcap_tensors_check(const gcap_model_t* model, const char* role, const int* indices, int count,
                                 const gcap_tensor_t* tensors) GCAP_NODISCARD;

// Whether gcap_tensors_check would find nothing, of a model that leaves no size open and of tensors that all have data.
// False: that function tells. Inline: every replay asks.
static inline bool gcap_tensors_are_fixed(const gcap_model_t* model, const int* indices, int count,
                                          const gcap_tensor_t* tensors) {
  if (count > 0 && tensors == NULL) return false;
  for (int i = 0; i < count; ++i) {
    const gcap_value_t* value = &model->values[indices[i]];
    const gcap_tensor_t* given = &tensors[i];
    if (given->dtype != value->dtype || given->rank != value->rank || given->data == NULL) return false;
    for (int d = 0; d < value->rank; ++d) {
      if (given->shape[d] != value->shape[d]) return false;
    }
  }
  return true;
}

// Sets `out_sizes[s]` to the size of symbol s, of the inputs `inputs`, which were checked. A symbol that no input has
// gets -1.
//   INVALID_ARGUMENT  a symbol has two sizes; the message names the symbol, the tensors and both
gcap_status_t gcap_tensors_solve(const gcap_model_t* model, const gcap_tensor_t* inputs,
                                 int64_t* out_sizes) GCAP_NODISCARD;

// Whether the inputs have the shapes of the values.
bool gcap_tensors_have_shapes(const gcap_model_t* model, const gcap_tensor_t* inputs);

// Writes "'x' [2,3], 'w' [3]": the model's inputs with the shapes of `tensors`, or with those of its values.
#define GCAP_SHAPES_TEXT_BYTES 256
void gcap_tensors_describe(const gcap_model_t* model, const gcap_tensor_t* tensors, char text[GCAP_SHAPES_TEXT_BYTES]);

#endif  // GCAP_KIT_SESSION_TENSORS_H_
