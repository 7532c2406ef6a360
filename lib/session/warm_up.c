// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Warm-up: runs until there is a graph.
//
// Locking: the turns of the EPs, over all runs.

#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/unwind.h"
#include "lib/options/run_options.h"
#include "lib/session/run.h"

static gcap_status_t not_captured(gcap_ep_t* ep, int graph_id) {
  gcap_status_t failure = gcap_ep_explain(ep, graph_id, GCAP_GRAPH_WHY_CAPTURE_FAILED);
  gcap_status_t status =
      GCAP_STATUS(GCAP_UNAVAILABLE, "EP '%s' has not captured graph id %d after %d runs; %s%s", gcap_ep_name(ep),
                  graph_id, GCAP_SESSION_MAX_WARM_UP_RUNS,
                  failure != NULL ? "the last capture failed: "
                                  : "no capture failed: either the EP wants more runs before its first capture "
                                    "(min_num_runs_before_cuda_graph_capture), or it does not report its graphs",
                  failure != NULL ? gcap_status_message(failure) : "");
  gcap_status_free(failure);
  return status;
}

static void end_turns(gcap_session_t** turns) { gcap_session_end_turns(&(*turns)->parts); }

static gcap_status_t run_until_captured(gcap_session_t* session, const gcap_run_options_t* options,
                                        const gcap_tensor_t* inputs, const gcap_tensor_t* outputs, bool* out_captured) {
  gcap_ep_t* ep = session->parts.eps[session->parts.main_ep];
  gcap_session_begin_turns(&session->parts);
  GCAP_AT_SCOPE_END(end_turns) gcap_session_t* turns = session;
  gcap_status_t status = NULL;
  *out_captured = gcap_ep_is_graph_captured(ep, options->graph_id);
  for (int i = 0; i < GCAP_SESSION_MAX_WARM_UP_RUNS && status == NULL && !*out_captured; ++i) {
    status = gcap_session_run_in_turn(turns, options, inputs, outputs);
    *out_captured = status == NULL && gcap_ep_is_graph_captured(ep, options->graph_id);
  }
  return status;
}

gcap_status_t gcap_session_warm_up(gcap_session_t* session, const gcap_run_options_t* given,
                                   const gcap_tensor_t* inputs, const gcap_tensor_t* outputs) {
  GCAP_RETURN_IF_NULL(session);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_run_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_run_options_read(given, &known));
  const gcap_run_options_t* options = &known;
  if (!session->parts.captures || options->graph_id == GCAP_GRAPH_ID_NONE) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "nothing to warm up: %s",
                       options->graph_id == GCAP_GRAPH_ID_NONE ? "the graph id is -1, which is never captured"
                                                               : "the EP does not capture graphs (enable_cuda_graph)");
  }
  GCAP_RETURN_IF_ERROR(gcap_session_check_tensors(session, inputs, outputs));
  bool captured = false;
  gcap_status_t status = run_until_captured(session, options, inputs, outputs, &captured);
  if (status != NULL || captured) return status;
  return not_captured(session->parts.eps[session->parts.main_ep], options->graph_id);
}
