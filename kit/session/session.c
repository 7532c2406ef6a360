// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions: a small version of what ONNX Runtime's InferenceSession does around the graphs of EPs. A model is copied
// (model.c), its nodes are put on EPs (partition.c), which gives the steps of a run (program.c); whether these can
// become a graph is decided now (policy.c, parts.c). Constants are copied once (constants.c). For each set of input
// shapes a plan is made (shape_plan.c), at once if the model has its shapes fixed, else when a run first brings them
// (shapes.c). run.c and steps.c run a plan; session_run.c says what a run becomes.
//
// Locking: a session changes only while it is made and ended, in turns of its EPs. What changes in a run is the run's
// own, or the shapes', which lock.

#include "gcap/kit/session.h"

#include <stdlib.h>

#include "kit/session/constants.h"
#include "kit/session/resources.h"
#include "kit/session/session_internal.h"
#include "kit/session/staging.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/sized.h"
#include "lib/internal/unwind.h"

GCAP_SIZED_OPTIONS(static, gcap_session_options);

// --- Creation -------------------------------------------------------------------------------------------------------

static gcap_status_t check_eps(gcap_ep_t* const* eps, size_t num_eps) {
  if (num_eps == 0) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "a session needs at least one EP");
  for (size_t i = 0; i < num_eps; ++i) {
    if (eps[i] == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gcap_session_create: eps[%zu] is NULL", i);
  }
  return NULL;
}

// Each copy can be made by the EP that issues it.
static gcap_status_t check_copies(const gcap_session_parts_t* parts, const gcap_step_t* step) {
  const gcap_slot_t *from = &parts->program.slots[step->from], *to = &parts->program.slots[step->to];
  const gcap_memory_t src = gcap_session_memory_of(parts, from->space), dst = gcap_session_memory_of(parts, to->space);
  gcap_runtime_t* runtime = parts->ep_facts[step->ep].runtime;
  if (runtime != NULL && gcap_runtime_can_copy(runtime, src, dst)) return NULL;
  return GCAP_STATUS(
      GCAP_UNIMPLEMENTED, "node '%s' needs a copy of '%s' from %s to %s memory, which EP '%s' cannot make",
      parts->model.model.nodes[step->node].name, parts->model.model.values[from->value].name,
      gcap_memory_kind_name(src.kind), gcap_memory_kind_name(dst.kind), gcap_ep_name(parts->eps[step->ep]));
}

static gcap_status_t note_devices(gcap_session_parts_t* parts) {
  for (int i = 0; i < parts->num_used; ++i) {
    gcap_session_ep_t* facts = &parts->ep_facts[parts->used[i]];
    if (facts->runs_on_host) continue;
    gcap_run_resources_t resources;
    GCAP_RETURN_IF_ERROR(gcap_session_get_resources(parts, parts->used[i], &resources));
    facts->allocator = resources.allocator;
    facts->device_id = gcap_stream_device(resources.stream);
  }
  for (int i = 0; i < parts->program.num_steps; ++i) {
    const gcap_step_t* step = &parts->program.steps[i];
    if (step->is_copy) GCAP_RETURN_IF_ERROR(check_copies(parts, step));
  }
  return NULL;
}

// Fills a session whose EPs are claimed. Called in their turns.
static gcap_status_t build(gcap_session_t* session, const gcap_session_options_t* options) {
  gcap_session_parts_t* parts = &session->parts;
  GCAP_RETURN_IF_ERROR(note_devices(parts));
  GCAP_RETURN_IF_ERROR(gcap_constants_create(parts));
  if (parts->model.is_open) return gcap_shapes_create(options->max_shapes_without_id, &session->shapes);
  GCAP_RETURN_IF_ERROR(gcap_shape_plan_create(parts, /*inputs=*/NULL, &session->fixed));
  const bool launches_alone = session->fixed->holes.count == 0 && !session->fixed->is_eager;
  if (parts->captures && !parts->takes_turns && launches_alone) session->replays = parts->main_runtime;
  return NULL;
}

// Ends a session but for its constants, and with it the turns and the claims. The claims are last: without one, another
// thread may destroy the EP.
static void take_apart(gcap_session_t* session) {
  gcap_shape_plan_destroy(session->fixed, &session->parts);
  gcap_shapes_destroy(session->shapes, &session->parts);
  gcap_session_end_turns(&session->parts);
  gcap_session_parts_unclaim(&session->parts, atomic_load(&session->has_run));
  gcap_session_parts_deinit(&session->parts);
  free(session);
}

// Ends a session that is not handed out. A shape node's compute, of a model with fixed shapes, need not return.
static void abandon(gcap_session_t** made) {
  if (*made == NULL) return;
  gcap_status_ignore(gcap_constants_free(&(*made)->parts, /*may_be_read=*/false));  // the exception tells
  take_apart(*made);
}

gcap_status_t gcap_session_create(const gcap_model_t* model, gcap_ep_t* const* eps, size_t num_eps,
                                  const gcap_session_options_t* given, gcap_session_t** out_session) {
  GCAP_RETURN_IF_NULL(out_session);
  *out_session = NULL;
  GCAP_RETURN_IF_NULL(model);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if (num_eps > 0) GCAP_RETURN_IF_NULL(eps);
  GCAP_RETURN_IF_ERROR(check_eps(eps, num_eps));
  gcap_session_options_t options;
  GCAP_RETURN_IF_ERROR(gcap_session_options_read(given, &options));
  gcap_session_t* session = calloc(1, sizeof(*session));
  if (session == NULL) return gcap_session_no_memory();
  gcap_status_t status = gcap_session_parts_init(model, eps, num_eps, &options, &session->parts);
  if (status == NULL) status = gcap_session_parts_claim(&session->parts);
  if (status != NULL) {
    gcap_session_parts_deinit(&session->parts);
    free(session);
    return status;
  }
  gcap_session_begin_turns(&session->parts);
  GCAP_AT_SCOPE_END(abandon) gcap_session_t* made = session;
  status = build(session, &options);
  made = NULL;
  if (status != NULL) {
    status = gcap_status_join(status, gcap_constants_free(&session->parts, /*may_be_read=*/false));
    take_apart(session);
    return status;
  }
  gcap_session_end_turns(&session->parts);
  *out_session = session;
  return NULL;
}

// --- End ------------------------------------------------------------------------------------------------------------

// Whether a wait that failed may succeed later: then the session stays whole. Of a lost device it would stay for ever.
static bool may_be_retried(gcap_code_t code) {
  return code == GCAP_FAILED_PRECONDITION || code == GCAP_RESOURCE_EXHAUSTED || code == GCAP_UNAVAILABLE;
}

// Waits for the calling thread's work on each EP. `*out_stays`: the session must stay whole.
static gcap_status_t wait_for_eps(const gcap_session_t* session, bool* out_stays) {
  gcap_status_t status = NULL;
  *out_stays = false;
  for (int i = 0; i < session->parts.num_used && !*out_stays; ++i) {
    gcap_status_t waited = gcap_session_synchronize(&session->parts, session->parts.used[i]);
    *out_stays = may_be_retried(gcap_status_code(waited));
    status = *out_stays ? gcap_status_join(waited, status) : gcap_status_join(status, waited);
  }
  return status;
}

gcap_status_t gcap_session_destroy(gcap_session_t* session) {
  if (session == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_session_destroy"));
  if (atomic_load(&session->num_inside) > 0) {  // before the turn, which the thread of a kernel has already
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "gcap_session_destroy: a run of this session has not returned yet, or calls back");
  }
  const size_t num_io_bindings = atomic_load(&session->num_io_bindings);
  if (num_io_bindings > 0) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "gcap_session_destroy: the session has %zu IO bindings; gcap_io_binding_destroy them first",
                       num_io_bindings);
  }
  gcap_session_begin_turns(&session->parts);
  bool stays = false;
  // An asynchronous run may still read the constants.
  gcap_status_t status = wait_for_eps(session, &stays);
  if (stays) {
    gcap_session_end_turns(&session->parts);
    return gcap_status_annotate(status, gcap_status_code(status), "gcap_session_destroy");
  }
  const bool may_be_read = status != NULL;
  if (may_be_read)
    status = gcap_status_annotate(status, GCAP_LEAKED, "the device may still read the constants, which are kept");
  status = gcap_status_join(status, gcap_constants_free(&session->parts, may_be_read));
  status = gcap_status_join(status, gcap_staging_end(session, may_be_read));
  take_apart(session);
  return gcap_status_annotate(status, GCAP_LEAKED, "gcap_session_destroy");
}

// --- Questions ------------------------------------------------------------------------------------------------------

static const char* ep_name(const gcap_session_t* session) {
  return gcap_ep_name(session->parts.eps[session->parts.main_ep]);
}

void gcap_session_read_info(const gcap_session_t* session, gcap_session_info_t* out_info) {
  static const gcap_sized_type_t type = {.name = "gcap_session_info", .bytes = sizeof(gcap_session_info_t)};
  const gcap_shape_plan_t* fixed = session->fixed;
  gcap_session_info_t info = {
      .struct_size = sizeof(info), .captures = session->parts.captures, .ep_name = ep_name(session)};
  if (fixed != NULL) {
    info.captures &= !fixed->is_eager;
    info.holes = (size_t)fixed->holes.count;
    info.node_holes = fixed->holes.of_node;
  }
  gcap_sized_write(&type, &info, out_info);
}

const char* gcap_session_node_ep_name(const gcap_session_t* session, int node) {
  return gcap_ep_name(session->parts.eps[session->parts.ep_of[node]]);
}

static gcap_memory_t memory_of(const gcap_session_t* session, int value) {
  return gcap_session_memory_of(&session->parts, session->parts.program.slots[value].space);
}

gcap_memory_t gcap_session_input_memory(const gcap_session_t* session, int input) {
  return memory_of(session, session->parts.model.model.inputs[input]);
}

gcap_memory_t gcap_session_output_memory(const gcap_session_t* session, int output) {
  return memory_of(session, session->parts.model.model.outputs[output]);
}

gcap_status_t gcap_session_release_captured_graph(gcap_session_t* session, int graph_id) {
  GCAP_RETURN_IF_NULL(session);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_runtime_t* runtime = session->parts.main_runtime;
  if (runtime == NULL) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "EP '%s' cannot release graph id %d: it captures no graphs",
                       ep_name(session), graph_id);
  }
  gcap_session_begin_turns(&session->parts);
  gcap_status_t status = gcap_runtime_release(runtime, graph_id);
  if (session->shapes != NULL) gcap_shapes_release(session->shapes, &session->parts, graph_id);
  if (status == NULL) gcap_staging_free_left(session);
  gcap_session_end_turns(&session->parts);
  return status;
}
