// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The order of the steps of a run. A captured run that failed has executed nothing, so the same work may be issued
// again. A cancelled run has another code, and stops here.
//
// Locking: none; the steps lock.

#include "lib/graph/inner.h"

#include <stdlib.h>
#include <string.h>

#include "gcap/capture.h"
#include "gcap/log.h"
#include "lib/graph/verify.h"

bool gcap_graph_is_named(const char* message) {
  return strncmp(message, "graph id ", strlen("graph id ")) == 0 ||
         strncmp(message, "graph key ", strlen("graph key ")) == 0;
}

bool gcap_run_take_failed_capture(int id, gcap_status_t failure) {
  if (gcap_status_code(failure) != GCAP_CAPTURE_INVALIDATED) return false;
  const char* message = gcap_status_message(failure);
  if (gcap_graph_is_named(message)) {
    gcap_log(GCAP_LOG_WARNING, "the work of a failed capture is run again, eagerly: %s", message);
  } else {
    gcap_log(GCAP_LOG_WARNING, "graph id %d is run again, eagerly: %s", id, message);
  }
  gcap_status_free(failure);
  return true;
}

gcap_status_t gcap_run_keep_addresses(gcap_graph_run_kind_t kind, gcap_run_resources_t* resources) {
  gcap_capture_t* capture = kind == GCAP_GRAPH_RUN_CAPTURE ? gcap_capture_current() : NULL;
  const size_t count = resources->num_addresses + resources->num_values;
  if (capture == NULL || count == 0) return NULL;
  const size_t bytes = count * sizeof(*resources->addresses);
  void** kept = malloc(bytes);
  if (kept == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu addresses", count);
  }
  memcpy(kept, resources->addresses, bytes);
  gcap_status_t status = gcap_capture_retain(capture, free, /*bytes=*/NULL, kept);
  if (status != NULL) {
    free(kept);
    return status;
  }
  resources->addresses = kept;
  if (resources->num_values != 0) resources->values = (const void* const*)kept + resources->num_addresses;
  return NULL;
}

// Issues the run: first its rehearsals.
static gcap_status_t issue(const gcap_run_steps_t* steps, gcap_run_result_t* result) {
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  gcap_status_t status = NULL;
  do {
    status = steps->issue(steps->self, steps->id, result, &kind);
  } while (status == NULL && kind == GCAP_GRAPH_RUN_REHEARSAL);
  return status;
}

// Whether another thread captured the id after the replay found no graph: there is one to be replayed now. What the
// work of an eager run returns may have this code too.
static bool take_captured_meanwhile(const gcap_run_steps_t* steps, const gcap_run_result_t* result,
                                    gcap_status_t status) {
  if (steps->replay == NULL || result->was_issued || gcap_status_code(status) != GCAP_ALREADY_EXISTS) return false;
  gcap_status_free(status);
  return true;
}

static gcap_status_t replay(const gcap_run_steps_t* steps, gcap_run_result_t* result, bool* out_replayed) {
  *out_replayed = false;
  if (steps->replay == NULL) return NULL;
  if (steps->verified != NULL) return gcap_graph_verify_replay(steps, result, out_replayed);
  return steps->replay(steps->self, result, out_replayed);
}

// Whether the capture of a run that has no other way failed at a step which is a hole in the next one. Nothing was
// executed, and the number of such steps is bounded.
static bool take_refused_step(const gcap_run_steps_t* steps, const gcap_run_result_t* result, gcap_status_t status) {
  if (!steps->captures_only || status == NULL || result->why_eager != GCAP_EAGER_STEP_REFUSED) return false;
  gcap_status_free(status);
  return true;
}

gcap_status_t gcap_run_by_steps(const gcap_run_steps_t* steps, gcap_run_result_t* result) {
  gcap_status_t status = NULL;
  do {
    bool replayed = false;
    GCAP_RETURN_IF_ERROR(replay(steps, result, &replayed));
    if (replayed) return NULL;
    status = issue(steps, result);
  } while (take_captured_meanwhile(steps, result, status) || take_refused_step(steps, result, status));
  // What the work of an eager run returns may have this code too.
  const bool may_rerun = steps->reruns_failed_capture && !result->was_issued;
  const int id = result->id;
  const bool is_step = result->why_eager == GCAP_EAGER_STEP_REFUSED;
  if (!may_rerun || !gcap_run_take_failed_capture(id, status)) return status;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  status = steps->issue(steps->self, GCAP_GRAPH_ID_NONE, result, &kind);
  result->why_eager = is_step ? GCAP_EAGER_STEP_REFUSED : GCAP_EAGER_CAPTURE_FAILED;
  result->id = id;
  return status;
}
