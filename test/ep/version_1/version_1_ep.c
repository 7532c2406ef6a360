// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The EP of version 1. This file sees the headers of that version beside it, and never those of today.

#include "test/ep/version_1/version_1_ep.h"

#include <string.h>

#include "gcap/ep_ops.h"

#if GCAP_EP_OPS_VERSION != 1u
#error "these are not the headers of version 1"
#endif

static bool supports(void* self, const gcap_model_t* model, const gcap_node_t* node) {
  (void)self;
  (void)model;
  return strcmp(node->op_type, "Copy") == 0;
}

static gcap_status_t compute(void* self, const gcap_kernel_context_t* context) {
  (void)self;
  return GCAP_CUDA(cudaMemcpyAsync(context->outputs[0].data, context->inputs[0].data,
                                   gcap_tensor_bytes(&context->outputs[0]), cudaMemcpyDeviceToDevice,
                                   gcap_stream_handle(context->resources.stream)));
}

static gcap_status_t create_kernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                   gcap_kernel_t* out_kernel) {
  (void)self;
  (void)model;
  (void)node;
  *out_kernel = (gcap_kernel_t){.compute = compute};
  return NULL;
}

static gcap_status_t get_run_resources(void* self, gcap_run_resources_t* out_resources) {
  return gcap_runtime_get_resources(self, out_resources);
}
static gcap_status_t synchronize(void* self) { return gcap_runtime_synchronize(self); }
static gcap_status_t begin_run(void* self, int graph_id) { return gcap_runtime_begin_run(self, graph_id); }
static gcap_status_t end_run(void* self, gcap_status_t run_status, bool synchronize_stream) {
  return gcap_runtime_end_run(self, run_status, synchronize_stream);
}
static bool is_graph_capture_enabled(const void* self) { return gcap_runtime_is_graph_capture_enabled(self); }
static bool is_graph_captured(void* self, int graph_id) { return gcap_runtime_is_captured(self, graph_id); }
static gcap_status_t replay_graph(void* self, int graph_id, const gcap_graph_replay_options_t* options,
                                  bool* out_replayed) {
  return gcap_runtime_replay(self, graph_id, options, out_replayed);
}
static gcap_status_t release_captured_graph(void* self, int graph_id) { return gcap_runtime_release(self, graph_id); }
static gcap_status_t explain(void* self, int graph_id, gcap_graph_question_t question) {
  return gcap_runtime_explain(self, graph_id, question);
}

static gcap_ep_ops_t make_table(gcap_runtime_t* runtime) {
  return (gcap_ep_ops_t){
      .struct_version = GCAP_EP_OPS_VERSION,
      .supports_concurrent_runs = gcap_runtime_supports_concurrent_runs(runtime),
      .name = "version 1",
      .self = runtime,
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
      .explain = explain,
  };
}

gcap_status_t version_1_ep_create(gcap_runtime_t* runtime, const char* missing, struct gcap_ep** out_ep) {
  struct {
    gcap_ep_ops_t ops;
    unsigned char garbage[256];
  } table;
  memset(&table, 0xA5, sizeof(table));
  table.ops = make_table(runtime);
  if (missing == NULL) missing = "";
  if (strcmp(missing, "is_graph_captured") == 0) table.ops.is_graph_captured = NULL;
  if (strcmp(missing, "replay_graph") == 0) table.ops.replay_graph = NULL;
  if (strcmp(missing, "begin_run and end_run") == 0) {
    table.ops.begin_run = NULL;
    table.ops.end_run = NULL;
  }
  return gcap_ep_create(&table.ops, out_ep);
}
