// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// program.h: what a run does, step by step, and where each value lies; the same for all shapes.
#ifndef GCAP_KIT_SESSION_PROGRAM_H_
#define GCAP_KIT_SESSION_PROGRAM_H_

#include "kit/session/model.h"

// Memory of the host, which all EPs that run there share; else the index of an EP on a device.
#define GCAP_SPACE_HOST (-1)

// What a slot's memory is.
typedef enum gcap_slot_kind {
  GCAP_SLOT_BETWEEN = 0,  // the run's: scratch, or on the host a part of one block
  GCAP_SLOT_BOUND,        // the caller's: an input or output
  GCAP_SLOT_CONSTANT,     // the session's, for its whole life
  GCAP_SLOT_KNOWN,        // on the host, known once the shapes are: what a shape node made
} gcap_slot_kind_t;

// One value in one space. Slot v, for each value v, is where the value is made, bound or given.
typedef struct gcap_slot {
  int value;
  int space;
  gcap_slot_kind_t kind;
  int last_reader;  // the last step that reads it; -1: none does
} gcap_slot_t;

// A node's input is a slot, or none if the node reads the shape alone.
#define GCAP_NO_SLOT (-1)

typedef struct gcap_step {
  int node;           // for a copy: the node that it is made for
  int ep;             // index of the EP that issues the step
  bool is_copy;       // of slot `from` to slot `to`; else the node is computed
  const int* inputs;  // the slot of each of the node's inputs
  int from, to;
} gcap_step_t;

// Thread: nothing changes after the init.
typedef struct gcap_program {
  gcap_slot_t* slots;
  int num_slots;
  gcap_step_t* steps;
  int num_steps;
  int num_copies;
  bool* is_folded;  // of each node: it is no step, but computed once for each set of shapes
  int* inputs;      // what the steps' inputs point into
} gcap_program_t;

// `ep_of`: of each node, the index in `eps`. On failure `*out_program` is empty.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_program_init(const gcap_session_model_t* model, gcap_ep_t* const* eps, size_t num_eps,
                                const int* ep_of, gcap_program_t* out_program) GCAP_NODISCARD;
void gcap_program_deinit(gcap_program_t* program);

#endif  // GCAP_KIT_SESSION_PROGRAM_H_
