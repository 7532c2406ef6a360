// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// IO bindings: tensors by name. All that needs memory is done when a tensor is bound, so that a run needs none, and a
// graph can be captured at addresses that stay.
//
// Locking: none; a flag refuses a second user.

#include "gcap/kit/io_binding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/session/io_binding_internal.h"
#include "kit/session/tensors.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/text.h"
#include "lib/internal/unwind.h"

// --- One user at a time ---------------------------------------------------------------------------------------------

gcap_status_t gcap_io_binding_enter(gcap_io_binding_t* binding, const char* function) {
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(function));
  if (!atomic_exchange(&binding->is_used, true)) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "%s: the binding is in use, by a run that has not returned yet or by another thread", function);
}

void gcap_io_binding_leave(gcap_io_binding_t** entered) { atomic_store(&(*entered)->is_used, false); }

// As gcap_io_binding_enter, for what may not be called in a capture.
static gcap_status_t enter_outside_capture(gcap_io_binding_t* binding, const char* function) {
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(function));
  return gcap_io_binding_enter(binding, function);
}

// --- Names ----------------------------------------------------------------------------------------------------------

int gcap_io_binding_value(const gcap_io_binding_t* binding, int slot) {
  const gcap_model_t* model = &binding->session->parts.model.model;
  return gcap_io_binding_is_input(binding, slot) ? model->inputs[slot] : model->outputs[slot - binding->num_inputs];
}

const char* gcap_io_binding_name(const gcap_io_binding_t* binding, int slot) {
  return binding->session->parts.model.model.values[gcap_io_binding_value(binding, slot)].name;
}

// The slots [first, end) are those of the inputs or of the outputs.
static gcap_status_t find(const gcap_io_binding_t* binding, int first, int end, const char* name, int* out_slot) {
  for (*out_slot = first; *out_slot < end; ++*out_slot) {
    if (strcmp(gcap_io_binding_name(binding, *out_slot), name) == 0) return NULL;
  }
  char chars[256];
  gcap_text_t text;
  gcap_text_init(&text, chars, sizeof(chars));
  for (int i = first; i < end; ++i) {
    gcap_text_add(&text, "%s'%s'", i > first ? ", " : "", gcap_io_binding_name(binding, i));
  }
  const char* role = first == 0 ? "input" : "output";
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the model has no %s '%s'; its %ss are: %s", role, name, role,
                     first < end ? chars : "none");
}

// --- Staging --------------------------------------------------------------------------------------------------------

// Whether the memory is what the session reads or writes there.
static bool is_used_as_it_is(const gcap_session_parts_t* parts, int space, gcap_memory_t memory) {
  if (space == GCAP_SPACE_HOST) return gcap_memory_is_on_host(memory);
  return memory.kind == GCAP_MEMORY_DEVICE && memory.device_id == parts->ep_facts[space].device_id;
}

static gcap_status_t check_copy(const gcap_session_parts_t* parts, int space, bool is_input, gcap_memory_t memory) {
  char text[32] = "";
  if (memory.kind == GCAP_MEMORY_DEVICE) snprintf(text, sizeof(text), " %d", memory.device_id);
  const char* kind = gcap_memory_kind_name(memory.kind);
  if (space == GCAP_SPACE_HOST) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "is in %s%s memory, and the session has it in host memory: bind that",
                       kind, text);
  }
  const gcap_memory_t own = gcap_session_memory_of(parts, space);
  const gcap_memory_t src = is_input ? memory : own, dst = is_input ? own : memory;
  if (gcap_runtime_can_copy(parts->ep_facts[space].runtime, src, dst)) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "is in %s%s memory, and EP '%s' copies nothing between that and device %d",
                     kind, text, gcap_ep_name(parts->eps[space]), own.device_id);
}

// The bytes of a tensor that fits the model, whose symbols may be of any size.
static gcap_status_t count_bytes(const char* name, const gcap_tensor_t* tensor, size_t* out_bytes) {
  gcap_value_t value = {.name = name, .dtype = tensor->dtype, .rank = tensor->rank};
  memcpy(value.shape, tensor->shape, (size_t)tensor->rank * sizeof(tensor->shape[0]));
  *out_bytes = 0;
  GCAP_RETURN_IF_ERROR(gcap_session_check_size(&value));
  *out_bytes = gcap_tensor_bytes(tensor);
  return NULL;
}

// Gives the block in which the tensor is staged; NULL: it needs none.
static gcap_status_t stage(gcap_io_binding_t* binding, int slot, const gcap_tensor_t* tensor, gcap_memory_t memory,
                           gcap_staging_t** out_staging) {
  const gcap_session_parts_t* parts = &binding->session->parts;
  const int space = parts->program.slots[gcap_io_binding_value(binding, slot)].space;
  *out_staging = NULL;
  if (is_used_as_it_is(parts, space, memory)) return NULL;
  gcap_status_t status = check_copy(parts, space, gcap_io_binding_is_input(binding, slot), memory);
  if (status != NULL) {
    return gcap_status_annotate(status, gcap_status_code(status), "%s '%s'", gcap_io_binding_role(binding, slot),
                                gcap_io_binding_name(binding, slot));
  }
  size_t bytes = 0;
  GCAP_RETURN_IF_ERROR(count_bytes(gcap_io_binding_name(binding, slot), tensor, &bytes));
  if (bytes == 0) return NULL;
  return gcap_staging_get(parts, space, bytes, &binding->slots[slot].blocks, out_staging);
}

// --- Binding --------------------------------------------------------------------------------------------------------

static void free_unused(gcap_io_binding_t* binding, int slot) {
  gcap_io_slot_t* s = &binding->slots[slot];
  gcap_staging_free_unused(&binding->session->parts, &s->blocks, s->staging);
}

static gcap_status_t bind_slot(gcap_io_binding_t* binding, int slot, const gcap_tensor_t* tensor,
                               gcap_memory_t memory) {
  const gcap_session_t* session = binding->session;
  const gcap_model_t* model = session->fixed != NULL ? &session->fixed->model : &session->parts.model.model;
  const int value = gcap_io_binding_value(binding, slot);
  GCAP_RETURN_IF_ERROR(gcap_tensors_check(model, gcap_io_binding_role(binding, slot), &value, 1, tensor));
  gcap_staging_t* staging = NULL;
  GCAP_RETURN_IF_ERROR(stage(binding, slot, tensor, memory, &staging));
  gcap_io_slot_t* s = &binding->slots[slot];
  s->is_bound = true;
  s->tensor = *tensor;
  s->memory = memory;
  s->staging = staging;
  binding->was_staged |= staging != NULL;
  binding->tensors[slot] = *tensor;
  if (staging != NULL) binding->tensors[slot].data = staging->data;
  free_unused(binding, slot);
  return NULL;
}

static gcap_status_t bind_named(gcap_io_binding_t* entered, bool is_input, const char* name,
                                const gcap_tensor_t* tensor, gcap_memory_t memory) {
  GCAP_AT_SCOPE_END(gcap_io_binding_leave) gcap_io_binding_t* binding = entered;
  int slot = 0;
  const int first = is_input ? 0 : binding->num_inputs, end = is_input ? binding->num_inputs : binding->num_slots;
  GCAP_RETURN_IF_ERROR(find(binding, first, end, name, &slot));
  return bind_slot(binding, slot, tensor, memory);
}

gcap_status_t gcap_io_binding_bind_input(gcap_io_binding_t* binding, const char* name, const gcap_tensor_t* tensor,
                                         gcap_memory_t memory) {
  GCAP_RETURN_IF_NULL(binding);
  GCAP_RETURN_IF_NULL(name);
  GCAP_RETURN_IF_NULL(tensor);
  GCAP_RETURN_IF_ERROR(enter_outside_capture(binding, __func__));
  return bind_named(binding, /*is_input=*/true, name, tensor, memory);
}

gcap_status_t gcap_io_binding_bind_output(gcap_io_binding_t* binding, const char* name, const gcap_tensor_t* tensor,
                                          gcap_memory_t memory) {
  GCAP_RETURN_IF_NULL(binding);
  GCAP_RETURN_IF_NULL(name);
  GCAP_RETURN_IF_NULL(tensor);
  GCAP_RETURN_IF_ERROR(enter_outside_capture(binding, __func__));
  return bind_named(binding, /*is_input=*/false, name, tensor, memory);
}

static void clear(gcap_io_binding_t* entered) {
  GCAP_AT_SCOPE_END(gcap_io_binding_leave) gcap_io_binding_t* binding = entered;
  for (int i = 0; i < binding->num_slots; ++i) {
    binding->slots[i].is_bound = false;
    binding->slots[i].staging = NULL;
    free_unused(binding, i);
  }
}

gcap_status_t gcap_io_binding_clear(gcap_io_binding_t* binding) {
  GCAP_RETURN_IF_NULL(binding);
  GCAP_RETURN_IF_ERROR(enter_outside_capture(binding, __func__));
  clear(binding);
  return NULL;
}

// --- Creation and end -----------------------------------------------------------------------------------------------

static void free_memory(gcap_io_binding_t* binding) {
  free(binding->slots);
  free(binding->tensors);
  free(binding->holds);
  free(binding);
}

gcap_status_t gcap_io_binding_create(gcap_session_t* session, gcap_io_binding_t** out_binding) {
  GCAP_RETURN_IF_NULL(out_binding);
  *out_binding = NULL;
  GCAP_RETURN_IF_NULL(session);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  gcap_io_binding_t* binding = calloc(1, sizeof(*binding));
  if (binding == NULL) return gcap_session_no_memory();
  const gcap_model_t* model = &session->parts.model.model;
  binding->session = session;
  binding->num_inputs = model->num_inputs;
  binding->num_slots = model->num_inputs + model->num_outputs;
  const size_t count = (size_t)binding->num_slots + 1;  // not 0, of which calloc may give NULL
  binding->slots = calloc(count, sizeof(*binding->slots));
  binding->tensors = calloc(count, sizeof(*binding->tensors));
  binding->holds = calloc(count, sizeof(*binding->holds));
  if (binding->slots == NULL || binding->tensors == NULL || binding->holds == NULL) {
    free_memory(binding);
    return gcap_session_no_memory();
  }
  atomic_fetch_add(&session->num_io_bindings, 1);
  *out_binding = binding;
  return NULL;
}

gcap_status_t gcap_io_binding_destroy(gcap_io_binding_t* binding) {
  if (binding == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(enter_outside_capture(binding, __func__));
  gcap_session_t* session = binding->session;
  for (int i = 0; i < binding->num_slots; ++i) gcap_staging_leave_to_session(session, &binding->slots[i].blocks);
  gcap_staging_free_left(session);
  free_memory(binding);
  atomic_fetch_sub(&session->num_io_bindings, 1);  // last: another thread may then end the session
  return NULL;
}
