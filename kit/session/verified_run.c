// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The tensors of a run as the buffers of its verification: those in the memory of the main EP, which its graph reads
// and writes, inputs first, each with its type. What the caller lists comes behind, and says of a tensor how that one
// is compared.
//
// Locking: none; all is the run's own.

#include "kit/session/verified_run.h"

#include <stdlib.h>
#include <string.h>

#include "lib/graph/inner.h"

static void add(gcap_verified_run_t* verified, gcap_graph_buffer_t* items, gcap_graph_verify_buffer_t* named,
                const gcap_value_t* value, const gcap_tensor_t* tensor) {
  const size_t bytes = gcap_tensor_bytes(tensor), i = verified->buffers.count;
  if (bytes == 0) return;
  items[i] = (gcap_graph_buffer_t){.name = value->name, .address = tensor->data, .bytes = bytes};
  named[i] =
      (gcap_graph_verify_buffer_t){.name = value->name, .address = tensor->data, .bytes = bytes, .type = tensor->dtype};
  ++verified->buffers.count;
}

static gcap_status_t name_tensors(const gcap_session_parts_t* parts, const gcap_model_t* model,
                                  const gcap_tensor_t* inputs, const gcap_tensor_t* outputs,
                                  gcap_verified_run_t* verified) {
  gcap_graph_verify_t* verify = &verified->verify;
  const size_t count = (size_t)model->num_inputs + (size_t)model->num_outputs;
  gcap_graph_buffer_t* items = NULL;
  const size_t room = count * sizeof(*items) + (count + verify->num_buffers) * sizeof(*verify->buffers);
  verified->heap = items = malloc(room + 1);
  if (items == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu tensors to verify", count);
  gcap_graph_verify_buffer_t* named = (gcap_graph_verify_buffer_t*)(items + count);
  for (int i = 0; i < model->num_inputs + model->num_outputs; ++i) {
    const bool is_input = i < model->num_inputs;
    const int at = is_input ? i : i - model->num_inputs;
    const int value = is_input ? model->inputs[at] : model->outputs[at];
    if (parts->program.slots[value].space != parts->main_ep) continue;
    add(verified, items, named, &model->values[value], is_input ? &inputs[at] : &outputs[at]);
  }
  if (verify->num_buffers > 0) {
    memcpy(named + verified->buffers.count, verify->buffers, verify->num_buffers * sizeof(*named));
  }
  verified->buffers.items = items;
  verify->buffers = named;
  verify->num_buffers += verified->buffers.count;
  return NULL;
}

gcap_status_t gcap_verified_run_init(const gcap_session_parts_t* parts, const gcap_model_t* model,
                                     const gcap_tensor_t* inputs, const gcap_tensor_t* outputs, const gcap_run_t* asked,
                                     const gcap_graph_verify_t* verify, gcap_verified_run_t* verified) {
  verified->run = *asked;
  verified->heap = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_verify_read(verify, &verified->verify));
  GCAP_RETURN_IF_ERROR(gcap_runtime_graphs(parts->main_runtime, &verified->manager));
  gcap_graph_buffers_init(&verified->buffers);
  GCAP_RETURN_IF_ERROR(name_tensors(parts, model, inputs, outputs, verified));
  verified->run.verify = &verified->verify;
  verified->run.buffers = &verified->buffers;
  return NULL;
}

void gcap_verified_run_deinit(gcap_verified_run_t* verified) {
  free(verified->heap);
  verified->heap = NULL;
}
