// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap_session_run: what a run becomes.
//
// It first tries a replay; that path is one look-up and one launch, by the runtime of the main EP. Where the session
// takes no turns and has one set of shapes, the replay comes before all else. Otherwise the steps are issued (run.c). A
// capture that failed has executed nothing, so the session runs once more with GCAP_GRAPH_ID_NONE. On a thread that has
// a capture scope open, the run joins that capture instead: its stream is forked, and joined.
//
// Locking: the turns of the EPs, over a whole run.

#include <stdlib.h>

#include "gcap/capture.h"
#include "gcap/log.h"
#include "kit/session/policy.h"
#include "kit/session/run.h"
#include "kit/session/run_holes.h"
#include "kit/session/run_options.h"
#include "kit/session/tensors.h"
#include "kit/session/user_stream.h"
#include "kit/session/verified_run.h"
#include "lib/graph/inner.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/sized.h"
#include "lib/internal/unwind.h"
#include "lib/runtime/inner.h"

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
  gcap_run_t run;             // of the main EP
  gcap_run_moving_t* moving;  // the run's buffers; NULL: none
  bool has_no_graph;          // a replay was asked for, and there is none
  bool is_rehearsed;          // for a plan, in a scope of a graph manager's
} call_t;

// The run is as one of a session that captures. Field by field: compilers clear a whole struct in a slower way.
static inline void init_call(call_t* c, gcap_session_t* session, const gcap_run_options_t* options,
                             const gcap_tensor_t* inputs, const gcap_tensor_t* outputs) {
  c->session = session;
  c->options = options;
  c->inputs = inputs;
  c->outputs = outputs;
  c->moving = NULL;
  c->has_no_graph = false;
  c->is_rehearsed = false;
  gcap_run_init(&c->run);
  c->run.id = options->graph_id;
  if (options->user_stream != NULL) c->run.stream = (cudaStream_t)options->user_stream;
  c->run.synchronize = options->synchronize;
  c->run.capture_only = options->capture_only;
  c->run.pinned = options->pinned;
  c->run.taps = options->taps;
  c->run.num_taps = options->num_taps;
  c->run.synchronize |= options->num_taps != 0;
}

// Between the work that a user's stream was given before and after.
static gcap_status_t run_in_order(const call_t* c, const gcap_shapes_use_t* use) {
  const gcap_session_parts_t* parts = &c->session->parts;
  const cudaStream_t user = c->run.stream;
  const bool is_ordered = user != GCAP_RUN_OWN_STREAM;
  if (is_ordered) GCAP_RETURN_IF_ERROR(gcap_session_run_after(parts, user));
  gcap_status_t status = gcap_session_run_once(parts, use, &c->run, c->moving, c->inputs, c->outputs);
  return is_ordered ? gcap_status_join(status, gcap_session_run_before(parts, user)) : status;
}

// A graph that was captured without a scope of gcap has no part in the id, so the id stays bound.
static void pin_shapes(const call_t* c, const gcap_shapes_use_t* use) {
  if (use->id_hold == NULL || c->run.id == GCAP_GRAPH_ID_NONE || gcap_hold_is_shared(use->id_hold)) return;
  if (gcap_runtime_is_captured(c->session->parts.main_runtime, c->run.id))
    gcap_shapes_pin(c->session->shapes, c->run.id);
}

// A run of the engine (lib/graph/engine.c).
typedef struct steps {
  const call_t* call;
  const gcap_shapes_use_t* use;
  bool is_verified;  // the work that is issued is waited for
} steps_t;

static gcap_status_t issue_step(void* self, int id, gcap_run_result_t* result, gcap_graph_run_kind_t* out_kind) {
  const steps_t* steps = self;
  call_t c = *steps->call;
  if (id != c.run.id) {  // eagerly, after a failed capture or beside a replay
    gcap_run_init(&c.run);
    c.run.stream = steps->call->run.stream;
    c.run.synchronize = steps->call->run.synchronize || steps->is_verified;
    c.moving = NULL;
    c.run.taps = steps->call->run.taps;
    c.run.num_taps = steps->call->run.num_taps;
  }
  if (steps->call->run.result != NULL || c.run.num_taps != 0) c.run.result = result;
  if (id != GCAP_GRAPH_ID_NONE) atomic_store_explicit(&c.session->has_run, true, memory_order_relaxed);
  gcap_status_t status = run_in_order(&c, steps->use);
  *out_kind = c.moving != NULL ? c.moving->kind : GCAP_GRAPH_RUN_EAGER;
  if (status == NULL && *out_kind != GCAP_GRAPH_RUN_REHEARSAL) pin_shapes(&c, steps->use);
  return status;
}

static void leave(gcap_session_t** inside) { atomic_fetch_sub(&(*inside)->num_inside, 1); }

// Replays on the session's stream, which the holes' kernels work on, and in the order of a user's. As a run that calls
// kernels, which may try to end the session, or not return.
static __attribute__((noinline)) gcap_status_t replay_with_holes(const call_t* c, bool* out_replayed) {
  GCAP_AT_SCOPE_END(leave) gcap_session_t* inside = c->session;
  atomic_fetch_add(&inside->num_inside, 1);
  const gcap_session_parts_t* parts = &c->session->parts;
  gcap_run_t run = c->run;
  run.stream = GCAP_RUN_OWN_STREAM;
  const bool is_ordered = c->run.stream != GCAP_RUN_OWN_STREAM && gcap_runtime_has_graph(parts->main_runtime, &run);
  if (is_ordered) GCAP_RETURN_IF_ERROR(gcap_session_run_after(parts, c->run.stream));
  gcap_status_t status = gcap_runtime_replay(parts->main_runtime, &run, out_replayed);
  return is_ordered ? gcap_status_join(status, gcap_session_run_before(parts, c->run.stream)) : status;
}

// Replays, where the session may ask for that.
static inline __attribute__((always_inline)) gcap_status_t replay(const call_t* c, const gcap_shapes_use_t* use,
                                                                  bool* out_replayed) {
  if (use->plan->holes.count > 0) return replay_with_holes(c, out_replayed);
  return gcap_runtime_replay(c->session->parts.main_runtime, &c->run, out_replayed);
}

// --- A run whose replays are compared with its work -----------------------------------------------------------------

static gcap_status_t replay_step(void* self, gcap_run_result_t* result, bool* out_replayed) {
  const steps_t* steps = self;
  gcap_status_t status = replay(steps->call, steps->use, out_replayed);
  result->was_issued |= *out_replayed;
  return status;
}

static gcap_status_t work_step(void* self, gcap_run_result_t* result) {
  steps_t* steps = self;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  steps->is_verified = true;
  return issue_step(steps, GCAP_GRAPH_ID_NONE, result, &kind);
}

// The run once more, in the scope that records it.
static gcap_status_t run_in_scope(void* user) {
  const call_t* c = user;
  gcap_run_options_t options = *c->options;
  options.verify = NULL;
  return gcap_session_rehearse_in_turn(c->session, &options, c->inputs, c->outputs);
}

static gcap_status_t record_step(void* self, void** addresses, struct gcap_graph_recording* recording) {
  (void)addresses;  // a session's tensors are where the call says
  call_t c = *((const steps_t*)self)->call;
  return gcap_runtime_record(c.session->parts.main_runtime, c.run.id, run_in_scope, &c, recording);
}

static bool verifies(const call_t* c) {
  return c->options->verify != NULL && c->run.id != GCAP_GRAPH_ID_NONE && !c->run.capture_only;
}

static gcap_status_t verify(const call_t* c, const gcap_shapes_use_t* use, gcap_verified_run_t* verified,
                            gcap_run_steps_t* steps) {
  GCAP_RETURN_IF_ERROR(gcap_verified_run_init(&c->session->parts, &use->plan->model, c->inputs, c->outputs, &c->run,
                                              c->options->verify, verified));
  steps->replay = replay_step;
  steps->work = work_step;
  steps->record = record_step;
  steps->verified = &verified->run;
  steps->manager = verified->manager;
  return NULL;
}

// Of a captured run: a replay has read its taps, and kernels of an eager run have.
static gcap_status_t give_taps(const call_t* c, const gcap_run_result_t* result) {
  gcap_graph_manager_t* manager = NULL;
  if (c->run.num_taps == 0) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_runtime_graphs(c->session->parts.main_runtime, &manager));
  return gcap_graph_give_taps(manager, &c->run, result, GCAP_RUN_OWN_STREAM);
}

// --- The whole of a run with a graph -------------------------------------------------------------------------------

// Runs, after its rehearsals, and once more if the capture fails. Apart, so that a replay need not make room for it.
static __attribute__((noinline)) gcap_status_t run_by_steps(const call_t* c, const gcap_shapes_use_t* use) {
  GCAP_AT_SCOPE_END(leave) gcap_session_t* inside = c->session;
  atomic_fetch_add(&inside->num_inside, 1);
  gcap_shapes_use_t with_holes = *use;
  GCAP_RETURN_IF_ERROR(gcap_run_holes_create(&c->session->parts, use->plan, &with_holes.holes));
  GCAP_AT_SCOPE_END(gcap_run_holes_let_go) gcap_run_holes_t* holes = with_holes.holes;
  (void)holes;
  steps_t self = {c, &with_holes, false};
  const bool reruns = c->options->rerun_failed_capture && !c->run.capture_only;
  gcap_run_steps_t steps = {.self = &self, .issue = issue_step, .id = c->run.id, .reruns_failed_capture = reruns};
  GCAP_AT_SCOPE_END(gcap_verified_run_deinit) gcap_verified_run_t verified;
  verified.heap = NULL;
  if (verifies(c)) GCAP_RETURN_IF_ERROR(verify(c, use, &verified, &steps));
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  result.id = c->run.id;
  gcap_status_t status = gcap_run_by_steps(&steps, &result);
  if (status == NULL && result.outcome == GCAP_RUN_CAPTURED) status = give_taps(c, &result);
  gcap_run_give_result(&c->run, &result);
  return status;
}

// Replays if there is a graph, else runs. The replay comes before the engine: it is the way that costs.
static gcap_status_t replay_or_run(const call_t* c, const gcap_shapes_use_t* use) {
  if (c->run.capture_only) {
    return gcap_runtime_has_graph(c->session->parts.main_runtime, &c->run) ? NULL : run_by_steps(c, use);
  }
  if (c->run.id == GCAP_GRAPH_ID_NONE || c->has_no_graph || verifies(c)) return run_by_steps(c, use);
  bool replayed = false;
  gcap_status_t status = replay(c, use, &replayed);
  return replayed || status != NULL ? status : run_by_steps(c, use);
}

// The work of a run that captures within itself.
static gcap_status_t issue_once(void* user, const gcap_run_resources_t* resources) {
  (void)resources;
  const steps_t* self = user;
  return run_by_steps(self->call, self->use);
}

// As ONNX Runtime's runs do: again and again, until there is a graph.
static gcap_status_t run_until_captured(const call_t* c, const gcap_shapes_use_t* use) {
  if (gcap_runtime_has_graph(c->session->parts.main_runtime, &c->run)) return replay_or_run(c, use);
  steps_t self = {c, use, false};
  gcap_run_t run = c->run;
  run.work = issue_once;
  run.user = &self;
  return gcap_runtime_warm_up_whole(c->session->parts.main_runtime, &run, 1, /*on_run=*/NULL, /*user=*/NULL);
}

static gcap_status_t run_as_asked(const call_t* c, const gcap_shapes_use_t* use) {
  if (c->options->capture_in_run && c->run.id != GCAP_GRAPH_ID_NONE) return run_until_captured(c, use);
  return replay_or_run(c, use);
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

static gcap_status_t run_signed(call_t* c, const gcap_shapes_use_t* use) {
  GCAP_AT_SCOPE_END(bindings_deinit) bindings_t bindings;
  bindings.items = bindings.few;
  GCAP_RETURN_IF_ERROR(bindings_init(&use->plan->model, c->inputs, c->outputs, &bindings));
  c->run.bindings = bindings.items;
  c->run.num_bindings = bindings.count;
  return run_as_asked(c, use);
}

static gcap_status_t run_moving(call_t* c, const gcap_shapes_use_t* use) {
  if (c->options->check_bindings || c->options->bindings > GCAP_BINDINGS_RELOCATE) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "run option bindings is %d, allowed are fixed (0), copy (1), relocate (2); with check_bindings "
                       "fixed alone",
                       (int)c->options->bindings);
  }
  GCAP_AT_SCOPE_END(gcap_run_moving_deinit) gcap_run_moving_t moving;
  moving.heap = NULL;
  GCAP_RETURN_IF_ERROR(
      gcap_run_moving_init(&c->session->parts, use->plan, c->inputs, c->outputs, c->options->bindings, &moving));
  c->moving = &moving;
  c->run.buffers = &moving.buffers;
  return run_as_asked(c, use);
}

// --- In the caller's capture ----------------------------------------------------------------------------------------

// The scope ends with whoever began it; a kernel that ends it has no more to give to the graph.
static gcap_status_t check_still_open(const gcap_capture_t* capture) {
  if (gcap_capture_current() == capture) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the caller's capture scope was ended inside the run");
}

// A caller's graph has no holes of a session: whoever replays it takes no turn of the EPs.
static gcap_status_t check_policy(const gcap_session_parts_t* parts, const gcap_shape_plan_t* plan) {
  GCAP_RETURN_IF_ERROR(gcap_policy_check(&parts->model, parts->eps, parts->ep_of, &parts->program, parts->main_ep,
                                         GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES));
  return gcap_policy_check_kernels(&parts->model, parts->eps, parts->ep_of, &parts->program, parts->main_ep,
                                   GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES, plan->kernels);
}

static gcap_status_t join_capture(const call_t* c, const gcap_shapes_use_t* use, gcap_capture_t* capture) {
  gcap_session_t* session = c->session;
  GCAP_AT_SCOPE_END(gcap_run_holes_let_go) gcap_run_holes_t* holes = NULL;
  if (c->is_rehearsed) {
    GCAP_RETURN_IF_ERROR(gcap_run_holes_create(&session->parts, use->plan, &holes));
  } else {
    GCAP_RETURN_IF_ERROR(check_policy(&session->parts, use->plan));
  }
  gcap_shapes_use_t with_holes = *use;
  with_holes.holes = holes;
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(gcap_session_get_resources(&session->parts, session->parts.main_ep, &resources));
  const cudaStream_t stream = gcap_stream_handle(resources.stream);
  const bool is_origin = stream == gcap_capture_stream(capture);
  if (!is_origin) GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &stream, 1));
  GCAP_AT_SCOPE_END(leave) gcap_session_t* inside = session;
  atomic_fetch_add(&inside->num_inside, 1);
  gcap_run_t eager;
  gcap_run_init(&eager);
  gcap_status_t status =
      gcap_session_run_once(&session->parts, &with_holes, &eager, /*moving=*/NULL, c->inputs, c->outputs);
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

gcap_status_t gcap_session_check_plan(const gcap_shape_plan_t* plan) {
  if (plan == NULL || !plan->is_eager) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "there will be no graph: the model runs eagerly, since a kernel of it cannot be captured");
}

gcap_status_t gcap_session_check_graph(const gcap_session_t* session, int graph_id) {
  GCAP_RETURN_IF_ERROR(gcap_session_check_plan(session->fixed));
  if (session->parts.captures && graph_id != GCAP_GRAPH_ID_NONE) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "there will be no graph: %s",
                     graph_id == GCAP_GRAPH_ID_NONE ? "the graph id is -1, which is never captured"
                                                    : "the EP does not capture graphs (enable_cuda_graph)");
}

gcap_status_t gcap_session_check_tensors(const gcap_session_t* session, const gcap_tensor_t* inputs,
                                         const gcap_tensor_t* outputs) {
  const gcap_model_t* model = session->fixed != NULL ? &session->fixed->model : &session->parts.model.model;
  GCAP_RETURN_IF_ERROR(gcap_tensors_check(model, "input", model->inputs, model->num_inputs, inputs));
  if (session->fixed == NULL) return NULL;
  return gcap_tensors_check(model, "output", model->outputs, model->num_outputs, outputs);
}

// A run that is more than a replay or its work.
static gcap_status_t run_specially(call_t* c, const gcap_shapes_use_t* use) {
  const bool may_capture = c->run.id != GCAP_GRAPH_ID_NONE;
  gcap_status_t status = NULL;
  if (c->options->bindings != GCAP_BINDINGS_FIXED && may_capture) {
    status = run_moving(c, use);
  } else if (c->options->check_bindings && may_capture) {
    status = run_signed(c, use);
  } else {
    status = run_as_asked(c, use);
  }
  if (status != NULL || c->options->trimmed_devices == 0) return status;
  return trim(&c->session->parts, c->options->trimmed_devices);
}

// Whether a replay by the options is a launch and nothing else.
static inline bool is_plain(const gcap_run_options_t* o) {
  return o->bindings == GCAP_BINDINGS_FIXED && !o->check_bindings && !o->capture_only && o->trimmed_devices == 0 &&
         o->verify == NULL && o->num_taps == 0;
}

static gcap_status_t run_use(call_t* c, const gcap_shapes_use_t* use) {
  if (use->plan->is_eager) c->run.id = GCAP_GRAPH_ID_NONE;
  if (gcap_thread_captures()) return run_in_capture(c, use);
  return is_plain(c->options) && !c->options->capture_in_run ? replay_or_run(c, use) : run_specially(c, use);
}

// Refuses a struct that cannot be read, and says that nothing is verified yet.
static gcap_status_t check_verify(const gcap_run_options_t* options) {
  gcap_graph_verify_t known;
  return options->verify != NULL ? gcap_graph_verify_read(options->verify, &known) : NULL;
}

static gcap_status_t run_in_turn(call_t* c, gcap_run_holds_t held) {
  gcap_session_t* session = c->session;
  GCAP_RETURN_IF_ERROR(check_verify(c->options));
  if (c->run.num_taps != 0) GCAP_RETURN_IF_ERROR(gcap_run_read_taps(&c->run));
  const bool must_capture = c->run.capture_only && !gcap_thread_captures();
  if (must_capture) GCAP_RETURN_IF_ERROR(gcap_session_check_graph(session, c->run.id));
  if (!session->parts.captures) c->run.id = GCAP_GRAPH_ID_NONE;
  if (session->fixed != NULL) {
    const gcap_shapes_use_t use = {.plan = session->fixed, .held = held};
    return run_use(c, &use);
  }
  GCAP_AT_SCOPE_END(gcap_shapes_end_use) gcap_shapes_use_t use = {0};
  const int id = gcap_thread_is_capturing() ? GCAP_GRAPH_ID_NONE : c->run.id;
  GCAP_RETURN_IF_ERROR(gcap_shapes_begin_use(session->shapes, &session->parts, id, c->inputs, &use));
  use.held = held;
  if (must_capture) GCAP_RETURN_IF_ERROR(gcap_session_check_plan(use.plan));
  const gcap_model_t* model = &use.plan->model;
  GCAP_RETURN_IF_ERROR(gcap_tensors_check(model, "output", model->outputs, model->num_outputs, c->outputs));
  return run_use(c, &use);
}

gcap_status_t gcap_session_run_held_in_turn(gcap_session_t* session, const gcap_run_options_t* options,
                                            const gcap_tensor_t* inputs, const gcap_tensor_t* outputs,
                                            gcap_run_holds_t held) {
  call_t c;
  init_call(&c, session, options, inputs, outputs);
  return run_in_turn(&c, held);
}

gcap_status_t gcap_session_rehearse_in_turn(gcap_session_t* session, const gcap_run_options_t* options,
                                            const gcap_tensor_t* inputs, const gcap_tensor_t* outputs) {
  call_t c;
  init_call(&c, session, options, inputs, outputs);
  c.is_rehearsed = true;
  return run_in_turn(&c, (gcap_run_holds_t){0});
}

gcap_status_t gcap_session_run_in_turn(gcap_session_t* session, const gcap_run_options_t* options,
                                       const gcap_tensor_t* inputs, const gcap_tensor_t* outputs,
                                       gcap_run_result_t* result) {
  call_t c;
  init_call(&c, session, options, inputs, outputs);
  c.run.result = result;
  return run_in_turn(&c, (gcap_run_holds_t){0});
}

// A run in the turns of the EPs, which end also when a kernel's compute does not return.
static __attribute__((noinline)) gcap_status_t run_in_turns(call_t* c) {
  GCAP_RETURN_IF_ERROR(gcap_session_check_tensors(c->session, c->inputs, c->outputs));
  GCAP_AT_SCOPE_END(gcap_session_leave_turns)
  const gcap_session_parts_t* turns = gcap_session_enter_turns(&c->session->parts);
  (void)turns;
  return run_in_turn(c, (gcap_run_holds_t){0});
}

// Whether the run may be a replay and nothing else: what a steady state does. Its tensors need no message.
static inline bool may_be_a_replay(const call_t* c) {
  if (c->session->replays == NULL || gcap_thread_captures() || c->run.id == GCAP_GRAPH_ID_NONE) return false;
  const gcap_model_t* model = &c->session->fixed->model;
  return is_plain(c->options) && gcap_tensors_are_fixed(model, model->inputs, model->num_inputs, c->inputs) &&
         gcap_tensors_are_fixed(model, model->outputs, model->num_outputs, c->outputs);
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
  call_t c;
  init_call(&c, session, options, inputs, outputs);
  if (!may_be_a_replay(&c)) return run_in_turns(&c);
  bool replayed = false;
  gcap_status_t status = gcap_runtime_replay(session->replays, &c.run, &replayed);
  if (replayed || status != NULL) return status;
  c.has_no_graph = true;
  return run_in_turns(&c);
}
