// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The holes of a run. The work of the run takes and frees the device memory of all values, also of those that a hole
// makes, so that the memory is the graph's. The function of a hole only issues the hole's steps, to where the values
// were when the work was issued; a replay of a run with buffers says where those are. An eager run makes the same
// holes, whose functions are then called at once: so it meets what replays meet.
//
// The memory on the host serves each replay again. What an earlier one still copies from there must not be overwritten,
// so a hole waits for the stream before its first work on the host, as each copy to the host does.
//
// Locking: none. A graph manager calls one function at a time.

#include "kit/session/run_holes.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "gcap/graph_holes.h"
#include "kit/session/steps.h"

// What a function is given.
typedef struct gcap_run_hole {
  gcap_run_holes_t* of;
  int index;
} gcap_run_hole_t;

// --- Life -----------------------------------------------------------------------------------------------------------

// Takes `bytes` behind what is taken, and returns where they begin.
static size_t take(size_t* taken, size_t bytes) {
  const size_t alignment = _Alignof(max_align_t), at = *taken;
  *taken += (bytes + alignment - 1) / alignment * alignment;
  return at;
}

// All is one piece of memory, which the last part of the hold frees.
gcap_status_t gcap_run_holes_create(const gcap_session_parts_t* parts, const gcap_shape_plan_t* plan,
                                    gcap_run_holes_t** out_holes) {
  *out_holes = NULL;
  if (plan->holes.count == 0) return NULL;
  const size_t num_bound = (size_t)parts->model.model.num_inputs + (size_t)parts->model.model.num_outputs;
  const size_t num_tensors = (size_t)parts->program.num_slots + 2 * (size_t)parts->model.max_node_values;
  const size_t num_holes = (size_t)plan->holes.count;
  size_t bytes = 0;
  take(&bytes, GCAP_HOST_MEMORY_OFFSET + plan->host_bytes);
  const size_t self = take(&bytes, sizeof(gcap_run_holes_t)), items = take(&bytes, num_holes * sizeof(gcap_run_hole_t));
  const size_t slots = take(&bytes, num_bound * sizeof(int));
  const size_t resources = take(&bytes, parts->num_eps * sizeof(gcap_run_resources_t));
  const size_t tensors = take(&bytes, num_tensors * sizeof(gcap_tensor_t));
  char* memory = calloc(1, bytes);
  if (memory == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu holes", num_holes);
  gcap_run_holes_t* holes = (gcap_run_holes_t*)(memory + self);
  holes->hold = (gcap_hold_t*)memory;
  atomic_init(&holes->hold->parts, 1);
  holes->items = (gcap_run_hole_t*)(memory + items);
  for (size_t i = 0; i < num_holes; ++i) holes->items[i] = (gcap_run_hole_t){holes, (int)i};
  holes->moved_slots = (int*)(memory + slots);
  holes->state = (gcap_run_state_t){.parts = parts, .plan = plan, .host = holes->hold};
  holes->state.resources = (gcap_run_resources_t*)(memory + resources);
  for (size_t e = 0; e < parts->num_eps; ++e) gcap_run_resources_init(&holes->state.resources[e]);
  holes->state.tensors = (gcap_tensor_t*)(memory + tensors);
  holes->state.node_inputs = holes->state.tensors + parts->program.num_slots;
  holes->state.node_outputs = holes->state.node_inputs + parts->model.max_node_values;
  memcpy(holes->state.tensors, plan->tensors, (size_t)parts->program.num_slots * sizeof(gcap_tensor_t));
  *out_holes = holes;
  return NULL;
}

void gcap_run_holes_let_go(gcap_run_holes_t** holes) {
  if (*holes != NULL) gcap_hold_let_go((*holes)->hold);
}

gcap_status_t gcap_run_holes_enter(gcap_run_holes_t* holes, const gcap_run_moving_t* moving, gcap_capture_t* capture) {
  holes->num_moved = moving != NULL && !moving->copies ? moving->buffers.count : 0;
  for (size_t i = 0; i < holes->num_moved; ++i) holes->moved_slots[i] = moving->tensors[i].slot;
  return capture != NULL ? gcap_hold_give_to_capture(holes->hold, capture) : NULL;
}

// --- The function ---------------------------------------------------------------------------------------------------

static const gcap_plan_hole_t* plan_of(const gcap_run_hole_t* hole) {
  return &hole->of->state.plan->holes.items[hole->index];
}

// The stream and the buffers of the run, or of the replay, that calls the function.
static gcap_status_t place(const gcap_run_hole_t* hole, const gcap_run_resources_t* resources) {
  gcap_run_state_t* state = &hole->of->state;
  if (resources->stream == NULL) {
    return GCAP_STATUS(
        GCAP_FAILED_PRECONDITION,
        "the hole of node '%s' is called on stream %p, which is not that of the session's EP: replay the "
        "graph by gcap_session_run, whose user_stream may be any",
        plan_of(hole)->name, (void*)resources->cuda_stream);
  }
  gcap_run_resources_t* own = &state->resources[state->parts->main_ep];
  own->cuda_stream = resources->cuda_stream;
  own->stream = resources->stream;
  own->scratch = resources->scratch;
  own->allocator = resources->allocator;
  for (size_t i = 0; i < hole->of->num_moved && i < resources->num_addresses; ++i) {
    state->tensors[hole->of->moved_slots[i]].data = resources->addresses[i];
  }
  return NULL;
}

// Whoever calls the function has the EP's device current, and gives the thread's own one back.
static gcap_status_t issue_steps(const gcap_run_hole_t* hole) {
  gcap_run_state_t* state = &hole->of->state;
  const gcap_session_parts_t* parts = state->parts;
  bool has_waited = hole->of->num_runs <= 1;
  gcap_status_t status = NULL;
  for (int i = plan_of(hole)->begin; status == NULL && i < plan_of(hole)->end; ++i) {
    const gcap_step_t* step = &parts->program.steps[i];
    const bool on_host = parts->ep_facts[step->ep].runs_on_host;
    if (on_host && !has_waited) status = gcap_session_synchronize(parts, parts->main_ep);
    has_waited |= on_host || (step->is_copy && parts->program.slots[step->to].space == GCAP_SPACE_HOST);
    if (status == NULL) status = gcap_run_enter_step(state, i);
    if (status == NULL) status = gcap_run_compute_step(state, i);
  }
  return gcap_status_join(status, gcap_device_visit_leave(&state->devices));
}

static gcap_status_t run_hole(void* user, const gcap_run_resources_t* resources) {
  const gcap_run_hole_t* hole = user;
  GCAP_RETURN_IF_ERROR(place(hole, resources));
  if (hole->index == 0) ++hole->of->num_runs;
  return issue_steps(hole);
}

// --- The work -------------------------------------------------------------------------------------------------------

static void note_slot(gcap_run_holes_t* holes, const gcap_run_state_t* run, int slot) {
  if (slot != GCAP_NO_SLOT) holes->state.tensors[slot].data = run->tensors[slot].data;
}

// Notes where the values are that the step reads and makes.
static void note_step(gcap_run_holes_t* holes, const gcap_run_state_t* run, const gcap_step_t* step) {
  const gcap_node_t* node = &run->plan->model.nodes[step->node];
  if (step->is_copy) {
    note_slot(holes, run, step->from);
    note_slot(holes, run, step->to);
    return;
  }
  for (int i = 0; i < node->num_inputs; ++i) note_slot(holes, run, step->inputs[i]);
  for (int i = 0; i < node->num_outputs; ++i) note_slot(holes, run, node->outputs[i]);
}

gcap_status_t gcap_run_holes_issue(gcap_run_holes_t* holes, gcap_run_state_t* run, int index) {
  gcap_run_hole_t* hole = &holes->items[index];
  const gcap_plan_hole_t* plan = plan_of(hole);
  for (int i = plan->begin; i < plan->end; ++i) {
    GCAP_RETURN_IF_ERROR(gcap_run_enter_step(run, i));
    GCAP_RETURN_IF_ERROR(gcap_run_allocate_step(run, i));
    note_step(holes, run, &run->parts->program.steps[i]);
  }
  gcap_graph_hole_t made;
  gcap_graph_hole_init(&made);
  made.name = plan->name;
  made.work = run_hole;
  made.user = hole;
  gcap_status_t status = gcap_graph_hole_issue(&run->resources[run->parts->main_ep], &made);
  for (int i = plan->begin; status == NULL && i < plan->end; ++i) status = gcap_run_free_step(run, i);
  return status;
}
