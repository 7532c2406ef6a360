// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A provider has two halves. What every provider needs (streams, scratch, warm-up, capture, replay) is the EP
// runtime's: the ops table below forwards to it. What makes this one special is its kernels (kernels.c): each plans its
// node once, when the session is created, and afterwards only issues work, so it is as legal inside a capture as
// outside.

#include "examples/minimal_ep/minimal_ep.h"

#include <cublasLt.h>
#include <cudnn.h>
#include <stdlib.h>
#include <string.h>

#include "examples/minimal_ep/kernels.h"

typedef struct minimal_ep {
  gcap_runtime_t* runtime;
  kernel_libraries_t libraries;  // for planning; runs use the handles attached to their stream
} minimal_ep_t;

static bool supports(void* self, const gcap_model_t* model, const gcap_node_t* node) {
  (void)self;
  return kernel_supports(model, node);
}

static gcap_status_t create_kernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                   gcap_kernel_t* out_kernel) {
  minimal_ep_t* ep = self;
  return kernel_create(&ep->libraries, model, node, out_kernel);
}

static gcap_status_t get_run_resources(void* self, gcap_run_resources_t* out_resources) {
  return gcap_runtime_get_resources(((minimal_ep_t*)self)->runtime, out_resources);
}

static gcap_status_t synchronize(void* self) { return gcap_runtime_synchronize(((minimal_ep_t*)self)->runtime); }

static gcap_status_t begin_run(void* self, int graph_id) {
  return gcap_runtime_begin_run(((minimal_ep_t*)self)->runtime, graph_id);
}

static gcap_status_t end_run(void* self, gcap_status_t run_status, bool synchronize_stream) {
  return gcap_runtime_end_run(((minimal_ep_t*)self)->runtime, run_status, synchronize_stream);
}

static bool is_graph_capture_enabled(const void* self) {
  return gcap_runtime_is_graph_capture_enabled(((const minimal_ep_t*)self)->runtime);
}

static bool is_graph_captured(void* self, int graph_id) {
  return gcap_runtime_is_captured(((minimal_ep_t*)self)->runtime, graph_id);
}

static gcap_status_t replay_graph(void* self, int graph_id, const gcap_graph_replay_options_t* options,
                                  bool* out_replayed) {
  return gcap_runtime_replay(((minimal_ep_t*)self)->runtime, graph_id, options, out_replayed);
}

static gcap_status_t sign_graph(void* self, const gcap_graph_binding_t* bindings, size_t num_bindings) {
  return gcap_runtime_sign(((minimal_ep_t*)self)->runtime, bindings, num_bindings);
}

static gcap_status_t explain(void* self, int graph_id, gcap_graph_question_t question) {
  return gcap_runtime_explain(((minimal_ep_t*)self)->runtime, graph_id, question);
}

static gcap_status_t release_captured_graph(void* self, int graph_id) {
  return gcap_runtime_release(((minimal_ep_t*)self)->runtime, graph_id);
}

// Streams, with the handles attached to them, go with the runtime; the planning handles after it. A runtime that
// refuses is whole, and so is the EP.
static gcap_status_t destroy(void* self) {
  minimal_ep_t* ep = self;
  gcap_status_t status = gcap_runtime_destroy(ep->runtime);
  if (status != NULL && gcap_status_code(status) != GCAP_LEAKED) return status;
  status = gcap_status_join(status, kernel_libraries_deinit(&ep->libraries));
  free(ep);
  return gcap_status_annotate(status, GCAP_LEAKED, "the EP is gone");
}

gcap_status_t minimal_ep_create(const gcap_options_t* options, gcap_ep_t** out_ep, gcap_runtime_t** out_runtime) {
  *out_ep = NULL;
  *out_runtime = NULL;
  minimal_ep_t* ep = calloc(1, sizeof(*ep));
  if (ep == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for an EP");
  gcap_status_t status = gcap_runtime_create(options, &ep->runtime);
  if (status == NULL) status = kernel_libraries_init(options->device_id, &ep->libraries);
  if (status != NULL) return gcap_status_join(status, destroy(ep));
  const gcap_ep_ops_t ops = {
      .struct_version = GCAP_EP_OPS_VERSION,
      .struct_bytes = sizeof(gcap_ep_ops_t),
      .supports_concurrent_runs = gcap_runtime_supports_concurrent_runs(ep->runtime),
      .name = "minimal",
      .self = ep,
      .supports = supports,
      .create_kernel = create_kernel,
      .get_run_resources = get_run_resources,
      .synchronize = synchronize,
      .begin_run = begin_run,
      .end_run = end_run,
      .is_graph_capture_enabled = is_graph_capture_enabled,
      .is_graph_captured = is_graph_captured,
      .replay_graph = replay_graph,
      .release_captured_graph = release_captured_graph,
      .destroy = destroy,
      .sign_graph = sign_graph,
      .explain = explain,
  };
  status = gcap_ep_create(&ops, out_ep);
  if (status != NULL) return gcap_status_join(status, destroy(ep));
  *out_runtime = ep->runtime;
  return NULL;
}
