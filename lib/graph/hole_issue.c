// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The work of a captured run makes a hole, and ends a segment by it: the segment's graph goes to the run's list, which
// the scope of the capture leads to, as to the guards. Nothing is executed meanwhile, so a capture that fails behind a
// hole has lost nothing. When the capture is an executable, segment_launch.c launches and calls in turn. A step that is
// a hole where a capture refuses it is no hole until then (hole_attempt.c).
//
// Locking: none. The list is the run's, and so the thread's that issues the work.

#include <stdio.h>

#include "gcap/capture.h"
#include "lib/capture/inner.h"
#include "lib/capture/steps.h"
#include "lib/graph/guards.h"
#include "lib/graph/holes.h"
#include "lib/graph/inner.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/grow.h"
#include "lib/internal/sized.h"

GCAP_SIZED_OPTIONS(static, gcap_graph_hole);
GCAP_SIZED_OPTIONS(static, gcap_run_resources);

// Reads a hole in the library's layout, with a name.
static gcap_status_t read_hole(const gcap_graph_hole_t* given, gcap_graph_hole_t* out_hole) {
  GCAP_RETURN_IF_ERROR(gcap_graph_hole_read(given, out_hole));
  if (out_hole->name == NULL) out_hole->name = "";
  return NULL;
}

static gcap_status_t check(const gcap_graph_hole_t* hole) {
  if (hole->work == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "hole '%s' has no function: set work", hole->name);
  }
  if (!gcap_graph_is_on_stack_of_work(hole->user)) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "hole '%s' has its data at %p, a variable of the work, which is gone when the function is called: "
                     "let the data live as long as the graph",
                     hole->name, hole->user);
}

static gcap_status_t call_now(const gcap_run_resources_t* resources, const gcap_graph_hole_t* hole) {
  const gcap_graph_made_hole_t made = {.hole = *hole};
  gcap_step_observer_t* observer = gcap_observe_steps(NULL);  // the hole is one step, as in a capture
  gcap_status_t status = gcap_check_stream_not_capturing(
      resources->cuda_stream, "hole '%s', on a thread that has no run which captures it", hole->name);
  if (status == NULL) status = gcap_graph_hole_name(gcap_graph_hole_call(&made, resources), hole->name);
  gcap_observe_steps(observer);
  gcap_observe_hole(hole->name, resources->cuda_stream);
  return status;
}

// Ends the segment, and adds the hole behind it to the list.
static gcap_status_t keep(gcap_capture_t* capture, const gcap_graph_hole_t* hole, const gcap_run_resources_t* resources,
                          gcap_graph_hole_list_t* list) {
  gcap_graph_made_hole_t made = {.hole = *hole, .resources = *resources, .was_refused = hole->break_where_refused};
  made.hole.name = NULL;
  snprintf(made.name, sizeof(made.name), "%s", hole->name);
  if (!gcap_grow(&list->items, &list->room, list->count + 1, sizeof(*list->items))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for hole '%s'", made.name);
  }
  GCAP_RETURN_IF_ERROR(gcap_capture_split(capture, made.name, &made.before));
  list->items[list->count++] = made;
  return NULL;
}

// Whether the step is part of the segment, as far as earlier captures tell.
static bool is_tried(const gcap_graph_hole_t* hole, const gcap_graph_hole_list_t* list) {
  if (!hole->break_where_refused) return false;
  gcap_graph_step_name_t step;
  gcap_graph_step_name_write(hole, &step);
  return !gcap_graph_refused_has(list->refused, &step);
}

static gcap_status_t issue(gcap_capture_t* capture, const gcap_run_resources_t* resources,
                           const gcap_graph_hole_t* hole, bool* out_is_over) {
  gcap_graph_hole_t known_hole;
  GCAP_RETURN_IF_ERROR(read_hole(hole, &known_hole));
  gcap_run_resources_t known;
  GCAP_RETURN_IF_ERROR(gcap_run_resources_read(resources, &known));
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_hole("gcap_graph_hole_issue"));
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_guard("gcap_graph_hole_issue"));
  GCAP_RETURN_IF_ERROR(check(&known_hole));
  if (capture == NULL) return call_now(resources, &known_hole);
  gcap_graph_stated_list_t* stated = gcap_capture_owner(capture);
  if (stated == NULL) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "hole '%s' is made in a capture that is no run of a graph manager",
                       known_hole.name);
  }
  if (known.cuda_stream != gcap_capture_stream(capture)) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "hole '%s' is made on stream %p, and the run's stream is %p: join the streams that were forked, "
                       "and make the hole on that of the run",
                       known_hole.name, (void*)known.cuda_stream, (void*)gcap_capture_stream(capture));
  }
  if (is_tried(&known_hole, &stated->holes)) {
    return gcap_graph_hole_try(capture, &known_hole, &known, &stated->holes, out_is_over);
  }
  return keep(capture, &known_hole, &known, &stated->holes);
}

gcap_status_t gcap_graph_hole_issue(const gcap_run_resources_t* resources, const gcap_graph_hole_t* hole) {
  GCAP_RETURN_IF_NULL(resources);
  GCAP_RETURN_IF_NULL(hole);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_capture_t* capture = gcap_capture_current();
  bool is_over = false;
  gcap_status_t status = issue(capture, resources, hole, &is_over);
  if (status != NULL && capture != NULL && !is_over) gcap_capture_fail_once(capture, status);
  return status;
}
