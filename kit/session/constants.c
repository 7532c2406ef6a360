// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Constants. Each device EP that reads one has a copy, and so has the host if a step reads it there, since the model
// that has the content may end before the session.
//
// The copies go on the EP's stream, and are waited for. cudaMemcpy would do neither: it uses the legacy stream, which
// breaks the captures of blocking streams, and may return before pageable memory has reached the device.
//
// Locking: none; called in a turn of the EPs.

#include "kit/session/constants.h"

#include <stdlib.h>
#include <string.h>

#include "kit/session/resources.h"

static size_t bytes_of(const gcap_session_parts_t* parts, const gcap_slot_t* slot) {
  const gcap_value_t* value = &parts->model.model.values[slot->value];
  gcap_tensor_t tensor = {.dtype = value->dtype, .rank = value->rank};
  memcpy(tensor.shape, value->shape, sizeof(tensor.shape));
  return gcap_tensor_bytes(&tensor);
}

static gcap_status_t copy_to_host(gcap_session_parts_t* parts, int s, const void* content) {
  const size_t bytes = bytes_of(parts, &parts->program.slots[s]);
  parts->constants[s] = malloc(bytes > 0 ? bytes : 1);
  if (parts->constants[s] == NULL) return gcap_session_no_memory();
  memcpy(parts->constants[s], content, bytes);
  return NULL;
}

static gcap_status_t copy_to_device(gcap_session_parts_t* parts, int s, const void* content, gcap_stream_t* stream) {
  const size_t bytes = bytes_of(parts, &parts->program.slots[s]);
  if (bytes == 0) return NULL;
  gcap_allocator_t* allocator = parts->ep_facts[parts->program.slots[s].space].allocator;
  GCAP_RETURN_IF_ERROR(gcap_allocator_reserve(allocator, bytes, &parts->constants[s]));
  return GCAP_CUDA(
      cudaMemcpyAsync(parts->constants[s], content, bytes, cudaMemcpyHostToDevice, gcap_stream_handle(stream)));
}

// Copies the constants that are read in the space. `stream` is the EP's; NULL: the host's.
static gcap_status_t copy_all(gcap_session_parts_t* parts, int space, gcap_stream_t* stream) {
  for (int s = 0; s < parts->program.num_slots; ++s) {
    const gcap_slot_t* slot = &parts->program.slots[s];
    if (slot->kind != GCAP_SLOT_CONSTANT || slot->space != space || slot->last_reader < 0) continue;
    const void* content = parts->model.model.values[slot->value].host_data;
    GCAP_RETURN_IF_ERROR(stream == NULL ? copy_to_host(parts, s, content) : copy_to_device(parts, s, content, stream));
  }
  return NULL;
}

static gcap_status_t copy_to_ep(gcap_session_parts_t* parts, int ep, gcap_device_visit_t* devices) {
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(gcap_session_get_resources(parts, ep, &resources));
  GCAP_RETURN_IF_ERROR(gcap_device_visit_enter(devices, parts, ep));
  gcap_status_t status = copy_all(parts, ep, resources.stream);
  return gcap_status_join(status, gcap_stream_synchronize(resources.stream));
}

gcap_status_t gcap_constants_create(gcap_session_parts_t* parts) {
  parts->constants = calloc((size_t)parts->program.num_slots, sizeof(*parts->constants));
  if (parts->constants == NULL) return gcap_session_no_memory();
  GCAP_RETURN_IF_ERROR(copy_all(parts, GCAP_SPACE_HOST, NULL));
  gcap_device_visit_t devices = {0};
  gcap_status_t status = NULL;
  for (int i = 0; i < parts->num_used && status == NULL; ++i) {
    const int ep = parts->used[i];
    if (!parts->ep_facts[ep].runs_on_host) status = copy_to_ep(parts, ep, &devices);
  }
  return gcap_status_join(status, gcap_device_visit_leave(&devices));
}

gcap_status_t gcap_constants_free(gcap_session_parts_t* parts, bool may_be_read) {
  gcap_status_t status = NULL;
  for (int s = 0; parts->constants != NULL && s < parts->program.num_slots; ++s) {
    const gcap_slot_t* slot = &parts->program.slots[s];
    if (slot->space == GCAP_SPACE_HOST) {
      free(parts->constants[s]);
    } else if (parts->constants[s] != NULL && !may_be_read) {
      gcap_status_t freed = gcap_allocator_free(parts->ep_facts[slot->space].allocator, parts->constants[s]);
      freed = gcap_status_annotate(freed, gcap_status_code(freed), "constant '%s' cannot be freed and is kept",
                                   parts->model.model.values[slot->value].name);
      status = gcap_status_join(status, freed);
    }
  }
  free(parts->constants);
  parts->constants = NULL;
  return status;
}
