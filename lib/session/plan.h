// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// plan.h: a model made ready to run: where each value lives and how long.
#ifndef GCAP_LIB_SESSION_PLAN_H_
#define GCAP_LIB_SESSION_PLAN_H_

#include "gcap/ep.h"

typedef enum plan_storage {
  GCAP_PLAN_BETWEEN = 0,  // made by one node, read by others: scratch
  GCAP_PLAN_INPUT,        // bound by the caller
  GCAP_PLAN_OUTPUT,       // bound by the caller, made by a node
  GCAP_PLAN_CONSTANT,     // on the device for the session's life
} gcap_plan_storage_t;

typedef struct gcap_plan_value {
  char* name;
  gcap_plan_storage_t storage;
  int bound_index;       // of the model's inputs or outputs
  bool is_made;          // some node writes it
  int last_reader;       // node index; -1: nobody reads it
  gcap_tensor_t tensor;  // shape and type; data only for a constant
} gcap_plan_value_t;

typedef struct gcap_plan_node {
  char* name;
  int* inputs;
  int num_inputs;
  int* outputs;
  int num_outputs;
} gcap_plan_node_t;

typedef struct gcap_plan {
  gcap_plan_value_t* values;
  int num_values;
  gcap_plan_node_t* nodes;
  int num_nodes;
  int* inputs;  // value indices
  int num_inputs;
  int* outputs;
  int num_outputs;
  int max_node_values;  // inputs or outputs of the largest node
} gcap_plan_t;

// Checks the model and copies what a run needs of it. On failure `*out_plan` is empty.
gcap_status_t gcap_plan_init(const gcap_model_t* model, gcap_plan_t* out_plan);
void gcap_plan_deinit(gcap_plan_t* plan);

#endif  // GCAP_LIB_SESSION_PLAN_H_
