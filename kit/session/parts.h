// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// parts.h: what a session is made of, but for its plans.
#ifndef GCAP_KIT_SESSION_PARTS_H_
#define GCAP_KIT_SESSION_PARTS_H_

#include "gcap/kit/session.h"
#include "kit/session/model.h"
#include "kit/session/program.h"

// What a session knows of each EP.
typedef struct gcap_session_ep {
  bool is_used;                 // it has a node, or captures
  bool runs_on_host;            // then it has none of the following
  gcap_runtime_t* runtime;      // of which everything is asked that runs need
  gcap_allocator_t* allocator;  // for the constants
  int device_id;
} gcap_session_ep_t;

// Thread: nothing changes after the session's creation.
typedef struct gcap_session_parts {
  gcap_session_model_t model;
  gcap_ep_t** eps;  // as given, by preference
  gcap_session_ep_t* ep_facts;
  size_t num_eps;
  int* ep_of;  // of each node, an index in eps
  int* used;   // the EPs that are used, by preference
  int num_used;
  gcap_ep_t** turns;  // the same in the order in which every session takes its turns
  bool takes_turns;   // one of them supports no concurrent runs
  int main_ep;        // the EP whose graphs and failures are the session's: the one that captures, or the first used
  gcap_runtime_t* main_runtime;     // of that EP
  bool captures;                    // runs become graphs of main_ep
  gcap_graph_node_policy_t policy;  // of the EP that captures, or what the session's options say
  bool runs_eagerly;                // if the model cannot be captured
  gcap_program_t program;
  void** constants;  // of each slot, its memory
} gcap_session_parts_t;

// Copies the model, puts its nodes on EPs, and chooses the EP that captures. On failure `*out_parts` is empty.
//   errors of gcap_session_create
gcap_status_t gcap_session_parts_init(const gcap_model_t* model, gcap_ep_t* const* eps, size_t num_eps,
                                      const gcap_session_options_t* options,
                                      gcap_session_parts_t* out_parts) GCAP_NODISCARD;
// The constants were freed.
void gcap_session_parts_deinit(gcap_session_parts_t* parts);

// What becomes of a refusal of the policy, which is freed: NULL if such a model runs eagerly, and one warning says so;
// else the refusal, with what to change.
//   FAILED_PRECONDITION  `refusal`
gcap_status_t gcap_session_take_refusal(const gcap_session_parts_t* parts, int capturing,
                                        gcap_status_t refusal) GCAP_NODISCARD;

// Claims the EPs that are used; all or none.
//   FAILED_PRECONDITION  as gcap_ep_claim
gcap_status_t gcap_session_parts_claim(const gcap_session_parts_t* parts) GCAP_NODISCARD;
// `has_run`: the main EP may have graphs of the session.
void gcap_session_parts_unclaim(const gcap_session_parts_t* parts, bool has_run);

// The memory of a space of the program: host, or an EP's device.
gcap_memory_t gcap_session_memory_of(const gcap_session_parts_t* parts, int space);

#endif  // GCAP_KIT_SESSION_PARTS_H_
