// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run.h: one execution of a program.
#ifndef GCAP_KIT_SESSION_RUN_H_
#define GCAP_KIT_SESSION_RUN_H_

#include "kit/session/moving.h"
#include "kit/session/resources.h"
#include "kit/session/session_internal.h"

// Runs the plan's steps once, between the begin and the end of a run on each EP. `asked` is the main EP's run; the
// others run eagerly. `moving`: asked->buffers, NULL if there are none. Such a run may be a rehearsal, which executes
// nothing: moving->kind says so. The tensors were checked. In a turn of the EPs.
//   CAPTURE_INVALIDATED  as gcap_runtime_end_run
//   RESOURCE_EXHAUSTED   no host memory
//   others               of the EPs, their scratch and their kernels
gcap_status_t gcap_session_run_once(const gcap_session_parts_t* parts, const gcap_shapes_use_t* use,
                                    const gcap_run_t* asked, gcap_run_moving_t* moving, const gcap_tensor_t* inputs,
                                    const gcap_tensor_t* outputs) GCAP_NODISCARD;

// As gcap_session_run. In a turn of the EPs; options and result are of this version. A runtime of a table may leave the
// result as it is.
gcap_status_t gcap_session_run_in_turn(gcap_session_t* session, const gcap_run_options_t* options,
                                       const gcap_tensor_t* inputs, const gcap_tensor_t* outputs,
                                       gcap_run_result_t* result) GCAP_NODISCARD;

// The same without a result; a graph that the run is captured into gets a part of each hold.
gcap_status_t gcap_session_run_held_in_turn(gcap_session_t* session, const gcap_run_options_t* options,
                                            const gcap_tensor_t* inputs, const gcap_tensor_t* outputs,
                                            gcap_run_holds_t held) GCAP_NODISCARD;

// A run for a plan of graphs, into the scope of its rehearsal (gcap_runtime_rehearse): with holes, which are not
// called.
gcap_status_t gcap_session_rehearse_in_turn(gcap_session_t* session, const gcap_run_options_t* options,
                                            const gcap_tensor_t* inputs, const gcap_tensor_t* outputs) GCAP_NODISCARD;

// Checks what needs no turn: the inputs, and the outputs of a model whose inputs have fixed shapes.
//   INVALID_ARGUMENT  as gcap_session_run
gcap_status_t gcap_session_check_tensors(const gcap_session_t* session, const gcap_tensor_t* inputs,
                                         const gcap_tensor_t* outputs) GCAP_NODISCARD;

// Refuses what shall end in a graph, and can have none.
//   FAILED_PRECONDITION  as gcap_session_warm_up
gcap_status_t gcap_session_check_plan(const gcap_shape_plan_t* plan) GCAP_NODISCARD;  // NULL is fine
gcap_status_t gcap_session_check_graph(const gcap_session_t* session, int graph_id) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_RUN_H_
