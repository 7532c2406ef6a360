// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs that launch nothing, and runs that need their work: what such a run may not be, and when it is done. Whoever
// begins, replays or runs one asks here, a manager as a runtime. Nothing is shared, so there is nothing to lock.

#include "lib/graph/inner.h"

gcap_status_t gcap_run_check_capture_only(const gcap_run_t* run) {
  if (!run->capture_only || run->id != GCAP_GRAPH_ID_NONE || run->key != NULL) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "the run is capture_only and its graph id is -1, allowed are ids >= 0, or a key");
}

gcap_status_t gcap_run_refuse_verify(const gcap_run_t* run, const char* call) {
  if (run->verify == NULL) return NULL;
  return GCAP_STATUS(
      GCAP_INVALID_ARGUMENT,
      "graph id %d: the run has `verify`, and %s has no work to compare a replay with: run it in one call", run->id,
      call);
}

gcap_status_t gcap_run_refuse_taps(const gcap_run_t* run, const char* call) {
  if (run->num_taps == 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "graph id %d: the run has %zu taps to be read, and %s does not end it: run it in one call",
                     run->id, run->num_taps, call);
}

gcap_status_t gcap_run_refuse_replay(const gcap_run_t* run) {
  GCAP_RETURN_IF_ERROR(gcap_run_refuse_verify(run, "a replay alone"));
  if (!run->capture_only) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: capture_only is true, allowed in a replay is false", run->id);
}

bool gcap_run_is_recorded(bool is_captured, int id, gcap_run_result_t* result) {
  if (is_captured) result->outcome = GCAP_RUN_RECORDED;
  if (is_captured) result->id = id;
  return is_captured;
}
