// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap_session_run: what a run becomes.
//
// It first tries a replay; that path is one look-up and one launch. Otherwise the steps are issued (run.c). A capture
// that failed has executed nothing, so the session runs once more with GCAP_GRAPH_ID_NONE. On a thread that has a
// capture scope open, the run joins that capture instead: its stream is forked, and joined.
//
// Locking: the turns of the EPs, over a whole run.

#include <stdlib.h>

#include "gcap/capture.h"
#include "gcap/log.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/sized.h"
#include "lib/internal/unwind.h"
#include "lib/options/run_options.h"
#include "lib/session/policy.h"
#include "lib/session/run.h"
#include "lib/session/tensors.h"
#include "lib/session/user_stream.h"

// --- Signature ------------------------------------------------------------------------------------------------------

// What a run is bound to. Few enough tensors need no heap: a replay allocates nothing then.
#define BINDINGS_WITHOUT_HEAP 16

typedef struct bindings {
  gcap_graph_binding_t* items;
  size_t count;
  gcap_graph_binding_t few[BINDINGS_WITHOUT_HEAP];
} bindings_t;

static void bind(const gcap_model_t* model, const int* values, int count, const gcap_tensor_t* tensors,
                 bindings_t* bindings) {
  for (int i = 0; i < count; ++i) {
    const gcap_value_t* value = &model->values[values[i]];
    bindings->items[bindings->count++] = (gcap_graph_binding_t){
        .name = value->name, .address = tensors[i].data, .rank = value->rank, .shape = value->shape};
  }
}

static gcap_status_t bindings_init(const gcap_model_t* model, const gcap_tensor_t* inputs, const gcap_tensor_t* outputs,
                                   bindings_t* bindings) {
  size_t count = (size_t)model->num_inputs + (size_t)model->num_outputs;
  bindings->count = 0;
  bindings->items = bindings->few;
  if (count > BINDINGS_WITHOUT_HEAP) bindings->items = malloc(count * sizeof(*bindings->items));
  if (bindings->items == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu bindings", count);
  bind(model, model->inputs, model->num_inputs, inputs, bindings);
  bind(model, model->outputs, model->num_outputs, outputs, bindings);
  return NULL;
}

static void bindings_deinit(bindings_t* bindings) {
  if (bindings->items != bindings->few) free(bindings->items);
}

// --- A run of a plan ------------------------------------------------------------------------------------------------

typedef struct call {
  gcap_session_t* session;
  const gcap_run_options_t* options;
  const gcap_tensor_t* inputs;
  const gcap_tensor_t* outputs;
} call_t;

static gcap_ep_t* main_ep(const call_t* c) { return c->session->parts.eps[c->session->parts.main_ep]; }

// Between the work that a user's stream was given before and after.
static gcap_status_t run_in_order(const call_t* c, const gcap_shapes_use_t* use, int graph_id,
                                  const gcap_run_bindings_t* bound) {
  const gcap_session_parts_t* parts = &c->session->parts;
  const cudaStream_t user = (cudaStream_t)c->options->user_stream;
  if (user != NULL) GCAP_RETURN_IF_ERROR(gcap_session_run_after(parts, user));
  gcap_status_t status =
      gcap_session_run_once(parts, use, graph_id, c->options->synchronize, c->inputs, c->outputs, bound);
  return user == NULL ? status : gcap_status_join(status, gcap_session_run_before(parts, user));
}

static bool is_rehearsed_only(const gcap_run_bindings_t* bound) {
  return bound != NULL && bound->moving != NULL && bound->moving->kind == GCAP_GRAPH_RUN_REHEARSAL;
}

static gcap_status_t run_once(const call_t* c, const gcap_shapes_use_t* use, int graph_id,
                              const gcap_run_bindings_t* bound) {
  gcap_status_t status = NULL;
  do {
    status = run_in_order(c, use, graph_id, bound);
  } while (status == NULL && is_rehearsed_only(bound));
  if (use->id_hold == NULL || status != NULL || graph_id == GCAP_GRAPH_ID_NONE) return status;
  // A graph that was captured without a scope of gcap has no part in the id, so the id stays bound.
  if (!gcap_hold_is_shared(use->id_hold) && gcap_ep_is_graph_captured(main_ep(c), graph_id)) {
    gcap_shapes_pin(c->session->shapes, graph_id);
  }
  return NULL;
}

static gcap_status_t replay_with_options(const call_t* c, const gcap_run_bindings_t* bound, bool* out_replayed) {
  gcap_graph_replay_options_t replay;
  gcap_graph_replay_options_init(&replay);
  replay.synchronize = c->options->synchronize;
  replay.on_stream = c->options->user_stream != NULL;
  replay.stream = (cudaStream_t)c->options->user_stream;
  if (bound != NULL && bound->moving != NULL) {
    const gcap_graph_buffers_t* buffers = &bound->moving->buffers;
    for (size_t i = 0; i < buffers->count; ++i) bound->moving->addresses[i] = buffers->items[i].address;
    replay.addresses = bound->moving->addresses;
    replay.num_addresses = buffers->count;
  } else if (bound != NULL) {
    replay.check_bindings = true;
    replay.bindings = bound->items;
    replay.num_bindings = bound->count;
  }
  return gcap_ep_replay_graph(main_ep(c), c->options->graph_id, &replay, out_replayed);
}

static inline gcap_status_t replay(const call_t* c, const gcap_run_bindings_t* bound, bool* out_replayed) {
  const gcap_run_options_t* o = c->options;
  if (o->synchronize || o->user_stream != NULL || bound != NULL) return replay_with_options(c, bound, out_replayed);
  return gcap_ep_replay_graph(main_ep(c), o->graph_id, /*options=*/NULL, out_replayed);
}

static void leave(gcap_session_t** inside) { atomic_fetch_sub(&(*inside)->num_inside, 1); }

// Runs once, or twice if the capture fails.
static gcap_status_t run(const call_t* c, const gcap_shapes_use_t* use, const gcap_run_bindings_t* bound) {
  GCAP_AT_SCOPE_END(leave) gcap_session_t* inside = c->session;
  atomic_fetch_add(&inside->num_inside, 1);
  gcap_status_t status =
      run_once(c, use, c->session->parts.captures ? c->options->graph_id : GCAP_GRAPH_ID_NONE, bound);
  if (gcap_status_code(status) != GCAP_CAPTURE_INVALIDATED || !c->options->rerun_failed_capture) return status;
  gcap_log(GCAP_LOG_WARNING, "the run is done again eagerly: %s", gcap_status_message(status));
  gcap_status_free(status);
  return run_once(c, use, GCAP_GRAPH_ID_NONE, NULL);
}

// Replays if there is a graph, else runs. `bound` NULL: no graph is signed.
static inline gcap_status_t replay_or_run(const call_t* c, const gcap_shapes_use_t* use, bool may_capture,
                                          const gcap_run_bindings_t* bound) {
  bool replayed = false;
  if (may_capture) GCAP_RETURN_IF_ERROR(replay(c, bound, &replayed));
  return replayed ? NULL : run(c, use, bound);
}

gcap_status_t gcap_session_not_captured(const gcap_session_parts_t* parts, int graph_id) {
  gcap_ep_t* ep = parts->eps[parts->main_ep];
  gcap_status_t failure = gcap_ep_explain(ep, graph_id, GCAP_GRAPH_WHY_CAPTURE_FAILED);
  gcap_status_t status = GCAP_STATUS(
      GCAP_UNAVAILABLE, "EP '%s' has not captured graph id %d after %d runs; %s%s", gcap_ep_name(ep), graph_id,
      GCAP_SESSION_MAX_WARM_UP_RUNS,
      failure != NULL ? "the last capture failed: "
                      : "it reports no failed capture: either it wants more runs before its first capture "
                        "(min_num_runs_before_cuda_graph_capture), or it never captures, or does not report its graphs",
      failure != NULL ? gcap_status_message(failure) : "");
  gcap_status_free(failure);
  return status;
}

// As ONNX Runtime's runs do: again and again, until there is a graph.
static gcap_status_t run_until_captured(const call_t* c, const gcap_shapes_use_t* use,
                                        const gcap_run_bindings_t* bound) {
  for (int i = 0; i < GCAP_SESSION_MAX_WARM_UP_RUNS; ++i) {
    GCAP_RETURN_IF_ERROR(replay_or_run(c, use, /*may_capture=*/true, bound));
    if (gcap_ep_is_graph_captured(main_ep(c), c->options->graph_id)) return NULL;
  }
  return gcap_session_not_captured(&c->session->parts, c->options->graph_id);
}

static inline gcap_status_t run_as_asked(const call_t* c, const gcap_shapes_use_t* use, bool may_capture,
                                         const gcap_run_bindings_t* bound) {
  if (c->options->capture_in_run && may_capture) return run_until_captured(c, use, bound);
  return replay_or_run(c, use, may_capture, bound);
}

static gcap_status_t trim(const gcap_session_parts_t* parts, uint64_t devices) {
  gcap_status_t status = NULL;
  for (int i = 0; i < parts->num_used; ++i) {
    const gcap_session_ep_t* facts = &parts->ep_facts[parts->used[i]];
    if (facts->runs_on_host || facts->device_id >= 64 || (devices >> facts->device_id & 1) == 0) continue;
    status = gcap_status_join(status, gcap_ep_trim(parts->eps[parts->used[i]]));
  }
  return status;
}

static gcap_status_t run_signed(const call_t* c, const gcap_shapes_use_t* use) {
  GCAP_AT_SCOPE_END(bindings_deinit) bindings_t bindings;
  bindings.items = bindings.few;
  GCAP_RETURN_IF_ERROR(bindings_init(&use->plan->model, c->inputs, c->outputs, &bindings));
  const gcap_run_bindings_t bound = {.items = bindings.items, .count = bindings.count};
  return run_as_asked(c, use, /*may_capture=*/true, &bound);
}

static gcap_status_t run_moving(const call_t* c, const gcap_shapes_use_t* use) {
  if (c->options->check_bindings || c->options->bindings > GCAP_BINDINGS_RELOCATE) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "run option bindings is %d, allowed are fixed (0), copy (1), relocate (2); with check_bindings "
                       "fixed alone",
                       (int)c->options->bindings);
  }
  GCAP_AT_SCOPE_END(gcap_run_moving_deinit) gcap_run_moving_t moving;
  moving.heap = NULL;
  GCAP_RETURN_IF_ERROR(gcap_run_moving_init(&c->session->parts, &use->plan->model, c->inputs, c->outputs,
                                            c->options->bindings, &moving));
  const gcap_run_bindings_t bound = {.moving = &moving};
  return run_as_asked(c, use, /*may_capture=*/true, &bound);
}

// --- In the caller's capture ----------------------------------------------------------------------------------------

// The scope ends with whoever began it; a kernel that ends it has no more to give to the graph.
static gcap_status_t check_still_open(const gcap_capture_t* capture) {
  if (gcap_capture_current() == capture) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the caller's capture scope was ended inside the run");
}

static gcap_status_t join_capture(const call_t* c, const gcap_shapes_use_t* use, gcap_capture_t* capture) {
  gcap_session_t* session = c->session;
  GCAP_RETURN_IF_ERROR(gcap_policy_check(&session->parts.model, session->parts.eps, session->parts.ep_of,
                                         &session->parts.program, session->parts.main_ep,
                                         GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES));
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(gcap_session_get_resources(&session->parts, session->parts.main_ep, &resources));
  const cudaStream_t stream = gcap_stream_handle(resources.stream);
  const bool is_origin = stream == gcap_capture_stream(capture);
  if (!is_origin) GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &stream, 1));
  GCAP_AT_SCOPE_END(leave) gcap_session_t* inside = session;
  atomic_fetch_add(&inside->num_inside, 1);
  gcap_status_t status = gcap_session_run_once(&session->parts, use, GCAP_GRAPH_ID_NONE, /*synchronize=*/false,
                                               c->inputs, c->outputs, /*bound=*/NULL);
  gcap_status_t open = check_still_open(capture);
  if (is_origin || open != NULL) return gcap_status_join(status, open);
  return gcap_status_join(status, gcap_capture_join(capture, &stream, 1));
}

// What the graph would lack fails the capture.
static gcap_status_t run_in_capture(const call_t* c, const gcap_shapes_use_t* use) {
  gcap_capture_t* capture = gcap_capture_current();
  gcap_status_t status = join_capture(c, use, capture);
  status = gcap_status_annotate(status, gcap_status_code(status), "gcap_session_run in a capture of its caller");
  if (gcap_capture_current() == capture) gcap_capture_fail(capture, status);
  return status;
}

// --- The whole ------------------------------------------------------------------------------------------------------

gcap_status_t gcap_session_check_tensors(const gcap_session_t* session, const gcap_tensor_t* inputs,
                                         const gcap_tensor_t* outputs) {
  const gcap_model_t* model = session->fixed != NULL ? &session->fixed->model : &session->parts.model.model;
  GCAP_RETURN_IF_ERROR(gcap_tensors_check(model, "input", model->inputs, model->num_inputs, inputs));
  if (session->fixed == NULL) return NULL;
  return gcap_tensors_check(model, "output", model->outputs, model->num_outputs, outputs);
}

static inline gcap_status_t run_plan(const call_t* c, const gcap_shapes_use_t* use) {
  const bool may_capture = c->session->parts.captures && c->options->graph_id != GCAP_GRAPH_ID_NONE;
  if (c->options->bindings != GCAP_BINDINGS_FIXED && may_capture) return run_moving(c, use);
  if (c->options->check_bindings && may_capture) return run_signed(c, use);
  return run_as_asked(c, use, may_capture, NULL);
}

static inline gcap_status_t run_use(const call_t* c, const gcap_shapes_use_t* use) {
  if (gcap_thread_captures()) return run_in_capture(c, use);
  GCAP_RETURN_IF_ERROR(run_plan(c, use));
  return c->options->trimmed_devices == 0 ? NULL : trim(&c->session->parts, c->options->trimmed_devices);
}

gcap_status_t gcap_session_run_held_in_turn(gcap_session_t* session, const gcap_run_options_t* options,
                                            const gcap_tensor_t* inputs, const gcap_tensor_t* outputs,
                                            gcap_run_holds_t held) {
  const call_t c = {session, options, inputs, outputs};
  if (session->fixed != NULL) {
    const gcap_shapes_use_t use = {.plan = session->fixed, .held = held};
    return run_use(&c, &use);
  }
  GCAP_AT_SCOPE_END(gcap_shapes_end_use) gcap_shapes_use_t use = {0};
  const int id = session->parts.captures && !gcap_thread_is_capturing() ? options->graph_id : GCAP_GRAPH_ID_NONE;
  GCAP_RETURN_IF_ERROR(gcap_shapes_begin_use(session->shapes, &session->parts, id, inputs, &use));
  use.held = held;
  const gcap_model_t* model = &use.plan->model;
  GCAP_RETURN_IF_ERROR(gcap_tensors_check(model, "output", model->outputs, model->num_outputs, outputs));
  return run_use(&c, &use);
}

gcap_status_t gcap_session_run_in_turn(gcap_session_t* session, const gcap_run_options_t* options,
                                       const gcap_tensor_t* inputs, const gcap_tensor_t* outputs) {
  return gcap_session_run_held_in_turn(session, options, inputs, outputs, (gcap_run_holds_t){0});
}

gcap_status_t gcap_session_run(gcap_session_t* session, const gcap_run_options_t* options, const gcap_tensor_t* inputs,
                               const gcap_tensor_t* outputs) {
  GCAP_RETURN_IF_NULL(session);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_run_options_t known;
  if (options == NULL || options->struct_size != sizeof(*options)) {  // the defaults, or of another version
    GCAP_RETURN_IF_ERROR(gcap_run_options_read(options, &known));
    options = &known;
  }
  GCAP_RETURN_IF_ERROR(gcap_session_check_tensors(session, inputs, outputs));
  GCAP_AT_SCOPE_END(gcap_session_leave_turns)
  const gcap_session_parts_t* turns = gcap_session_enter_turns(&session->parts);
  (void)turns;
  return gcap_session_run_in_turn(session, options, inputs, outputs);
}
