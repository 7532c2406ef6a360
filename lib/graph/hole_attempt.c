// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Steps with break_where_refused that no capture has refused yet. Such a step is called in the capture. If the capture
// fails there, what failed tells whether a rule of captures is the reason, or something that may be otherwise next
// time; in doubt it is the rule, since a hole costs a launch, and a step that is tried in vain costs the graph.
//
// The list is the run's, and belongs to somebody else once the step has closed the capture. So the list says that the
// step was refused before the step is called, and is told otherwise behind it.
//
// Locking: none. The list is the run's, and so the thread's that issues the work.

#include "lib/graph/holes.h"
#include "lib/internal/unwind.h"

// A call of a step.
typedef struct attempt {
  gcap_capture_attempt_t scope;  // not begun: the call has ended
  gcap_graph_hole_list_t* list;
  const char* name;
} attempt_t;

// Whether the failure is of the kinds by which the driver, a library or gcap refuses what a capture forbids.
static bool is_refusal(gcap_status_t failure) {
  switch (gcap_status_code(failure)) {
    case GCAP_FAILED_PRECONDITION:
    case GCAP_CAPTURE_INVALIDATED:
    case GCAP_CUDA_ERROR:
    case GCAP_LIBRARY_ERROR: return true;
    default: return false;
  }
}

// Ends the attempt of a function that returned this. Gives what the function did to the capture.
static gcap_status_t settle(attempt_t* attempt, gcap_status_t returned) {
  const bool is_over = attempt->scope.is_over;
  gcap_status_t broken = gcap_capture_attempt_end(&attempt->scope, attempt->name);
  attempt->scope.capture = NULL;
  if (is_over) return broken;
  attempt->list->is_refused = is_refusal(broken) || is_refusal(returned);
  return broken;
}

static void settle_on_unwind(attempt_t* attempt) {
  if (attempt->scope.capture != NULL) gcap_status_ignore(settle(attempt, /*returned=*/NULL));  // the exception tells
}

gcap_status_t gcap_graph_hole_try(gcap_capture_t* capture, const gcap_graph_hole_t* hole,
                                  const gcap_run_resources_t* resources, gcap_graph_hole_list_t* list,
                                  bool* out_is_over) {
  *out_is_over = false;
  GCAP_AT_SCOPE_END(settle_on_unwind) attempt_t attempt = {.list = list, .name = hole->name};
  GCAP_RETURN_IF_ERROR(gcap_capture_attempt_begin(capture, hole->name, &attempt.scope));
  gcap_graph_step_name_write(hole, &list->tried);
  list->is_refused = true;
  const gcap_graph_made_hole_t made = {.hole = *hole};
  gcap_status_t returned = gcap_graph_hole_call(&made, resources);
  *out_is_over = attempt.scope.is_over;
  gcap_status_t broken = settle(&attempt, returned);
  gcap_status_t status = returned != NULL ? returned : broken;
  if (returned != NULL) gcap_status_free(broken);  // what was returned tells
  return gcap_graph_hole_name(status, hole->name);
}

gcap_status_t gcap_graph_refuse_in_attempt(const char* operation) {
  if (!gcap_capture_is_in_attempt()) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: called by the function of a hole, which is being captured",
                     operation);
}
