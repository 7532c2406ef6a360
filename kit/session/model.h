// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// model.h: the session's own copy of a model, checked.
#ifndef GCAP_KIT_SESSION_MODEL_H_
#define GCAP_KIT_SESSION_MODEL_H_

#include <stdbool.h>

#include "gcap/kit/ep.h"

// Who brings a value.
typedef enum gcap_value_role {
  GCAP_VALUE_BETWEEN = 0,  // made by a node, read by others
  GCAP_VALUE_INPUT,        // bound by the caller
  GCAP_VALUE_OUTPUT,       // bound by the caller, made by a node
  GCAP_VALUE_CONSTANT,
} gcap_value_role_t;

typedef struct gcap_value_facts {
  gcap_value_role_t role;
  int bound_index;  // of the model's inputs or outputs
  int maker;        // the node that writes it; -1: none does
} gcap_value_facts_t;

// Thread: nothing changes after the init.
typedef struct gcap_session_model {
  gcap_model_t model;         // arrays and names are copies; constants' contents and attributes are the caller's
  gcap_value_facts_t* facts;  // of each value
  bool is_open;               // a dimension of an input is a symbol: each run brings the shapes
  int max_node_values;        // inputs or outputs of the largest node
  int num_node_inputs;        // of all nodes together
} gcap_session_model_t;

// Checks the model and copies what a session needs of it. On failure `*out_copy` is empty.
//   INVALID_ARGUMENT    as gcap_session_create
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_session_model_init(const gcap_model_t* model, gcap_session_model_t* out_copy) GCAP_NODISCARD;
void gcap_session_model_deinit(gcap_session_model_t* copy);

// The name of a symbol, for messages; "?" if the model names none.
const char* gcap_session_symbol_name(const gcap_model_t* model, int64_t number);

// Whether elements of the type fit into memory at all: no product of sizes overflows. Sizes that are not fixed count as
// 1. The message begins with "value 'name'".
//   INVALID_ARGUMENT  a dimension is too large
gcap_status_t gcap_session_check_size(const gcap_value_t* value) GCAP_NODISCARD;

// RESOURCE_EXHAUSTED, for all of kit/session.
gcap_status_t gcap_session_no_memory(void) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_MODEL_H_
