// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Tensors that are elsewhere at each replay. With bindings=relocate the kernels work on them, and the graph's pointers
// are moved. With bindings=copy only copies have their addresses, so whatever the kernels do with pointers, the graph
// can be moved, and none of their host functions has a tensor's address; the copies are nodes of the graph, and what
// they copy to is scratch that the graph keeps.
//
// Locking: none; all is the run's own.

#include "kit/session/moving.h"

#include <stdlib.h>

// --- Life -----------------------------------------------------------------------------------------------------------

static gcap_status_t make_room(gcap_run_moving_t* moving, size_t count) {
  moving->tensors = moving->few_tensors;
  moving->items = moving->few_items;
  moving->addresses = moving->few_addresses;
  moving->may_be_unused = moving->few_may_be_unused;
  if (count <= GCAP_MOVING_WITHOUT_HEAP) return NULL;
  moving->heap = calloc(count, sizeof(*moving->items) + sizeof(*moving->tensors) + sizeof(*moving->addresses) +
                                   sizeof(*moving->may_be_unused));
  if (moving->heap == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu tensors", count);
  moving->items = moving->heap;
  moving->tensors = (gcap_moving_tensor_t*)(moving->items + count);
  moving->addresses = (void**)(moving->tensors + count);
  moving->may_be_unused = (bool*)(moving->addresses + count);
  return NULL;
}

static gcap_status_t add(gcap_run_moving_t* moving, const gcap_session_parts_t* parts, const gcap_shape_plan_t* plan,
                         int value, const gcap_tensor_t* tensor, bool is_input) {
  const size_t bytes = gcap_tensor_bytes(tensor);
  if (bytes == 0) return NULL;
  const gcap_slot_t* slot = &parts->program.slots[value];
  const char* name = plan->values[value].name;
  if (slot->space != parts->main_ep) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "%s '%s' is not in the memory of EP '%s', whose graph replays: bindings must be fixed",
                       is_input ? "input" : "output", name, gcap_ep_name(parts->eps[parts->main_ep]));
  }
  const size_t i = moving->buffers.count++;
  moving->items[i] =
      (gcap_graph_buffer_t){.name = name, .address = tensor->data, .bytes = bytes, .alignment = moving->copies ? 1 : 0};
  moving->tensors[i] = (gcap_moving_tensor_t){.slot = value, .is_input = is_input};
  moving->addresses[i] = tensor->data;
  const bool is_in_graph = plan->holes.count > 0 ? plan->holes.is_in_graph[value] : !is_input || slot->last_reader >= 0;
  moving->may_be_unused[i] = !moving->copies && !is_in_graph;
  return NULL;
}

gcap_status_t gcap_run_moving_init(const gcap_session_parts_t* parts, const gcap_shape_plan_t* plan,
                                   const gcap_tensor_t* inputs, const gcap_tensor_t* outputs, gcap_bindings_t bindings,
                                   gcap_run_moving_t* moving) {
  const gcap_model_t* model = &plan->model;
  gcap_graph_buffers_init(&moving->buffers);
  moving->kind = GCAP_GRAPH_RUN_EAGER;
  moving->heap = NULL;
  moving->copies = bindings == GCAP_BINDINGS_COPY;
  GCAP_RETURN_IF_ERROR(make_room(moving, (size_t)model->num_inputs + (size_t)model->num_outputs));
  moving->buffers.items = moving->items;
  moving->buffers.may_be_unused = moving->may_be_unused;
  moving->buffers.host_functions_may_stay = moving->copies;
  // A copy to an address without memory is refused by the runtime.
  if (moving->copies) moving->buffers.stand_ins = GCAP_GRAPH_STAND_INS_MEMORY;
  gcap_status_t status = NULL;
  for (int i = 0; status == NULL && i < model->num_inputs; ++i) {
    status = add(moving, parts, plan, model->inputs[i], &inputs[i], /*is_input=*/true);
  }
  for (int i = 0; status == NULL && i < model->num_outputs; ++i) {
    status = add(moving, parts, plan, model->outputs[i], &outputs[i], /*is_input=*/false);
  }
  if (status != NULL) gcap_run_moving_deinit(moving);
  return status;
}

void gcap_run_moving_deinit(gcap_run_moving_t* moving) {
  free(moving->heap);
  moving->heap = NULL;
}

// --- In a run -------------------------------------------------------------------------------------------------------

// Copies between a tensor and the scratch that stands in its place.
static gcap_status_t copy(const gcap_run_moving_t* moving, const gcap_run_state_t* run, size_t i) {
  const gcap_moving_tensor_t* tensor = &moving->tensors[i];
  const gcap_session_parts_t* parts = run->parts;
  gcap_tensor_t bound = run->tensors[tensor->slot], staged = bound;
  bound.data = moving->addresses[i];
  staged.data = tensor->staged;
  const gcap_memory_t memory = gcap_session_memory_of(parts, parts->main_ep);
  const gcap_copy_t copy = {.src = tensor->is_input ? &bound : &staged,
                            .src_memory = memory,
                            .dst = tensor->is_input ? &staged : &bound,
                            .dst_memory = memory,
                            .stream = run->resources[parts->main_ep].stream};
  return gcap_runtime_copy_tensors(parts->main_runtime, &copy, 1);
}

static gcap_status_t stage(gcap_run_moving_t* moving, gcap_run_state_t* run, size_t i) {
  gcap_moving_tensor_t* tensor = &moving->tensors[i];
  const gcap_run_resources_t* resources = &run->resources[run->parts->main_ep];
  GCAP_RETURN_IF_ERROR(
      gcap_scratch_alloc(resources->scratch, moving->items[i].bytes, resources->stream, &tensor->staged));
  return tensor->is_input ? copy(moving, run, i) : NULL;
}

gcap_status_t gcap_run_moving_enter(gcap_run_moving_t* moving, gcap_run_state_t* run) {
  for (size_t i = 0; i < moving->buffers.count; ++i) {
    if (moving->copies) GCAP_RETURN_IF_ERROR(stage(moving, run, i));
    run->tensors[moving->tensors[i].slot].data = moving->copies ? moving->tensors[i].staged : moving->addresses[i];
  }
  return NULL;
}

gcap_status_t gcap_run_moving_leave(gcap_run_moving_t* moving, gcap_run_state_t* run, gcap_status_t status) {
  gcap_scratch_t* scratch = run->resources[run->parts->main_ep].scratch;
  for (size_t i = 0; i < moving->buffers.count; ++i) {
    gcap_moving_tensor_t* tensor = &moving->tensors[i];
    if (tensor->staged == NULL) continue;
    if (status == NULL && !tensor->is_input) status = copy(moving, run, i);
    status = gcap_status_join(status, gcap_scratch_free(scratch, tensor->staged));
    tensor->staged = NULL;
  }
  return status;
}
