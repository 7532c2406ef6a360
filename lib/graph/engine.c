// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The order of the steps of a run. A captured run that failed has executed nothing, so the same work may be issued
// again. A cancelled run has another code, and stops here.
//
// Locking: none; the steps lock.

#include "lib/graph/inner.h"

#include "gcap/log.h"

bool gcap_run_take_failed_capture(int id, gcap_status_t failure) {
  if (gcap_status_code(failure) != GCAP_CAPTURE_INVALIDATED) return false;
  gcap_log(GCAP_LOG_WARNING, "graph id %d is run again, eagerly: %s", id, gcap_status_message(failure));
  gcap_status_free(failure);
  return true;
}

gcap_status_t gcap_run_by_steps(const gcap_run_steps_t* steps, gcap_run_result_t* result) {
  bool replayed = false;
  if (steps->replay != NULL) GCAP_RETURN_IF_ERROR(steps->replay(steps->self, result, &replayed));
  if (replayed) return NULL;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  gcap_status_t status = NULL;
  do {
    status = steps->issue(steps->self, steps->id, result, &kind);
  } while (status == NULL && kind == GCAP_GRAPH_RUN_REHEARSAL);
  // What the work of an eager run returns may have this code too.
  const bool may_rerun = steps->reruns_failed_capture && !result->was_issued;
  if (!may_rerun || !gcap_run_take_failed_capture(steps->id, status)) return status;
  status = steps->issue(steps->self, GCAP_GRAPH_ID_NONE, result, &kind);
  result->why_eager = GCAP_EAGER_CAPTURE_FAILED;
  return status;
}
