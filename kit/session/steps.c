// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The steps of a run. What lies between nodes is in scratch of its device from the step that makes it to the last one
// that reads it; the stream's order protects the memory. On the host it is in one block, for the whole run.
//
// Copies: to the host, the host waits for the stream, since the next node there reads at once. To a device, the copy is
// on the stream that reads it. Between devices, the copy is on the stream of the device that it ends on, behind what
// the other one has done; and that one goes on behind the copy, since it may use the memory again.
//
// Locking: none; the state is the run's own.

#include "kit/session/steps.h"

#include "gcap/capture.h"

static const gcap_slot_t* slot_at(const gcap_run_state_t* run, int slot) { return &run->parts->program.slots[slot]; }

// --- Memory of one value --------------------------------------------------------------------------------------------

static gcap_status_t allocate(gcap_run_state_t* run, int s) {
  const gcap_slot_t* slot = slot_at(run, s);
  gcap_tensor_t* tensor = &run->tensors[s];
  if (slot->kind != GCAP_SLOT_BETWEEN) return NULL;
  if (slot->space != GCAP_SPACE_HOST) {
    const gcap_run_resources_t* resources = &run->resources[slot->space];
    return gcap_scratch_alloc(resources->scratch, gcap_tensor_bytes(tensor), resources->stream, &tensor->data);
  }
  tensor->data = (char*)run->host + GCAP_HOST_MEMORY_OFFSET + run->plan->host_offsets[s];
  return NULL;
}

// A block that is not freed keeps its address, to be tried again when the run has failed; at last the run's end does.
static gcap_status_t free_slot(gcap_run_state_t* run, int s) {
  const gcap_slot_t* slot = slot_at(run, s);
  if (slot->kind != GCAP_SLOT_BETWEEN || slot->space == GCAP_SPACE_HOST) return NULL;
  gcap_status_t status = gcap_scratch_free(run->resources[slot->space].scratch, run->tensors[s].data);
  if (status == NULL || gcap_status_code(status) == GCAP_INTERNAL) run->tensors[s].data = NULL;  // it is freed
  return status;
}

// --- Copies ---------------------------------------------------------------------------------------------------------

static gcap_status_t issue_copy(gcap_run_state_t* run, const gcap_step_t* step) {
  const int from = slot_at(run, step->from)->space, to = slot_at(run, step->to)->space;
  gcap_runtime_t* runtime = run->parts->ep_facts[step->ep].runtime;
  gcap_stream_t* stream = run->resources[step->ep].stream;
  const bool is_between_devices = from != GCAP_SPACE_HOST && to != GCAP_SPACE_HOST;
  if (is_between_devices) GCAP_RETURN_IF_ERROR(gcap_session_order(run->resources[from].stream, stream));
  const gcap_copy_t copy = {.src = &run->tensors[step->from],
                            .src_memory = gcap_session_memory_of(run->parts, from),
                            .dst = &run->tensors[step->to],
                            .dst_memory = gcap_session_memory_of(run->parts, to),
                            .stream = stream};
  GCAP_RETURN_IF_ERROR(gcap_runtime_copy_tensors(runtime, &copy, 1));
  if (is_between_devices) return gcap_session_order(stream, run->resources[from].stream);
  return to == GCAP_SPACE_HOST ? gcap_runtime_synchronize(runtime) : NULL;
}

// --- Nodes ----------------------------------------------------------------------------------------------------------

static gcap_status_t issue_node(gcap_run_state_t* run, const gcap_step_t* step) {
  const gcap_session_parts_t* parts = run->parts;
  const gcap_node_t* node = &run->plan->model.nodes[step->node];
  const gcap_run_resources_t* resources = &run->resources[step->ep];
  const bool on_host = parts->ep_facts[step->ep].runs_on_host;
  for (int i = 0; i < node->num_outputs; ++i) run->node_outputs[i] = run->tensors[node->outputs[i]];
  for (int i = 0; i < node->num_inputs; ++i) {
    const bool reads = step->inputs[i] != GCAP_NO_SLOT;
    run->node_inputs[i] = run->tensors[reads ? step->inputs[i] : node->inputs[i]];
    if (!reads) run->node_inputs[i].data = NULL;
  }
  const gcap_kernel_context_t context = {
      .resources = *resources, .inputs = run->node_inputs, .outputs = run->node_outputs, .ep = parts->eps[step->ep]};
  const gcap_kernel_t* kernel = &run->plan->kernels[step->node];
  gcap_status_t status = kernel->compute(kernel->self, &context);
  // Asks after each node whether the capture goes on: a kernel may have broken it without a word.
  if (!on_host) GCAP_CAPTURE_NOTE(node->name, gcap_stream_handle(resources->stream));
  return status;
}

// --- Steps ----------------------------------------------------------------------------------------------------------

static const gcap_step_t* step_at(const gcap_run_state_t* run, int index) { return &run->parts->program.steps[index]; }
static const gcap_node_t* node_of(const gcap_run_state_t* run, const gcap_step_t* step) {
  return &run->plan->model.nodes[step->node];
}

static gcap_status_t name_step(const gcap_run_state_t* run, const gcap_step_t* step, gcap_status_t status) {
  return gcap_status_annotate(status, gcap_status_code(status), "%s'%s'", step->is_copy ? "a copy for node " : "node ",
                              node_of(run, step)->name);
}

gcap_status_t gcap_run_enter_step(gcap_run_state_t* run, int index) {
  const gcap_step_t* step = step_at(run, index);
  gcap_status_t status = gcap_device_visit_enter(&run->devices, run->parts, step->ep);
  if (status != NULL) return name_step(run, step, status);
  if (step->is_copy || run->parts->ep_facts[step->ep].runs_on_host) return NULL;
  const gcap_run_resources_t* resources = &run->resources[step->ep];
  gcap_scratch_set_node(resources->scratch, resources->stream, node_of(run, step)->name);  // a name of the session's
  return NULL;
}

gcap_status_t gcap_run_allocate_step(gcap_run_state_t* run, int index) {
  const gcap_step_t* step = step_at(run, index);
  gcap_status_t status = step->is_copy ? allocate(run, step->to) : NULL;
  const gcap_node_t* node = node_of(run, step);
  for (int i = 0; status == NULL && !step->is_copy && i < node->num_outputs; ++i) {
    status = allocate(run, node->outputs[i]);
  }
  return status == NULL ? NULL : name_step(run, step, status);
}

gcap_status_t gcap_run_compute_step(gcap_run_state_t* run, int index) {
  const gcap_step_t* step = step_at(run, index);
  gcap_status_t status = step->is_copy ? issue_copy(run, step) : issue_node(run, step);
  return status == NULL ? NULL : name_step(run, step, status);
}

gcap_status_t gcap_run_free_step(gcap_run_state_t* run, int index) {
  const gcap_step_t* step = step_at(run, index);
  if (step->is_copy) return slot_at(run, step->from)->last_reader == index ? free_slot(run, step->from) : NULL;
  const gcap_node_t* node = node_of(run, step);
  gcap_status_t status = NULL;
  for (int i = 0; i < node->num_inputs; ++i) {
    const int s = step->inputs[i];
    if (s != GCAP_NO_SLOT && slot_at(run, s)->last_reader == index)
      status = gcap_status_join(status, free_slot(run, s));
  }
  for (int i = 0; i < node->num_outputs; ++i) {
    const int s = node->outputs[i];
    if (slot_at(run, s)->last_reader == -1) status = gcap_status_join(status, free_slot(run, s));
  }
  return status;
}

gcap_status_t gcap_run_free_values(gcap_run_state_t* run) {
  gcap_status_t status = NULL;
  for (int s = 0; s < run->parts->program.num_slots; ++s) {
    if (run->tensors[s].data != NULL) status = gcap_status_join(status, free_slot(run, s));
  }
  return status;
}
