// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A provider that has a stream and a CUDA graph of its own already, as a framework has: it tells gcap of them by a
// table of functions (gcap/runtime_ops.h), and a session runs its kernel on them. The provider runs an id once eagerly,
// then captures it into its one graph, and replays that. It prints:
//
//     run 1 is eager:    x = 1, y = 1
//     run 2 is captured: x = 2, y = 2
//     run 3 is a replay: x = 3, y = 3
//
// What such a provider does without, gcap's own runtime has: scopes that name the call that broke a capture, graphs
// that keep their scratch, threads that run at once.

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "gcap/allocator.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/kit/session.h"
#include "gcap/runtime_ops.h"

typedef struct provider {
  gcap_run_resources_t resources;  // its stream, scratch and memory
  int num_runs;                    // of graph id 0
  cudaGraphExec_t graph;           // of graph id 0
  bool captures;                   // the open run is being captured
} provider_t;

// --- The runtime ----------------------------------------------------------------------------------------------------

static gcap_status_t get_resources(void* self, gcap_run_resources_t* out_resources) {
  const provider_t* p = self;
  out_resources->stream = p->resources.stream;
  out_resources->scratch = p->resources.scratch;
  out_resources->allocator = p->resources.allocator;
  return NULL;
}

static gcap_status_t synchronize(void* self) { return gcap_stream_synchronize(((provider_t*)self)->resources.stream); }

static gcap_status_t begin_run(void* self, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind,
                               void** out_addresses) {
  (void)out_addresses;  // no run has buffers, since the table does not say moves_buffers
  provider_t* p = self;
  p->captures = run->id == 0 && p->num_runs++ > 0;
  if (!p->captures) return NULL;
  *out_kind = GCAP_GRAPH_RUN_CAPTURE;
  return GCAP_CUDA(cudaStreamBeginCapture(p->resources.cuda_stream, cudaStreamCaptureModeThreadLocal));
}

// Instantiates the graph of the capture and launches it. Where that fails, nothing of the run was executed.
static gcap_status_t launch_captured(provider_t* p, gcap_status_t run_status) {
  cudaGraph_t graph = NULL;
  gcap_status_t status =
      gcap_status_join(run_status, GCAP_CUDA(cudaStreamEndCapture(p->resources.cuda_stream, &graph)));
  if (status == NULL) status = GCAP_CUDA(cudaGraphInstantiateWithFlags(&p->graph, graph, 0));
  if (graph != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaGraphDestroy(graph)));
  if (status != NULL) return gcap_status_annotate(status, GCAP_CAPTURE_INVALIDATED, "the run was not captured");
  return GCAP_CUDA(cudaGraphLaunch(p->graph, p->resources.cuda_stream));
}

static gcap_status_t end_run(void* self, const gcap_run_t* run, gcap_status_t run_status) {
  provider_t* p = self;
  gcap_status_t status = p->captures ? launch_captured(p, run_status) : run_status;
  p->captures = false;
  return status == NULL && run->synchronize ? synchronize(self) : status;
}

static bool is_graph_capture_enabled(const void* self) { return self != NULL; }

static bool is_captured(void* self, int id) { return id == 0 && ((provider_t*)self)->graph != NULL; }

static gcap_status_t replay(void* self, const gcap_run_t* run, bool* out_replayed) {
  provider_t* p = self;
  if (!is_captured(self, run->id)) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphLaunch(p->graph, p->resources.cuda_stream)));
  *out_replayed = true;
  return run->synchronize ? synchronize(self) : NULL;
}

static gcap_status_t destroy(void* self) {
  provider_t* p = self;
  if (p->graph != NULL) GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphExecDestroy(p->graph)));
  p->graph = NULL;
  GCAP_RETURN_IF_ERROR(gcap_scratch_destroy(p->resources.scratch));
  gcap_allocator_destroy(p->resources.allocator);
  return gcap_stream_destroy(p->resources.stream);
}

static gcap_status_t create_runtime(provider_t* p, gcap_runtime_t** out_runtime) {
  gcap_run_resources_init(&p->resources);
  GCAP_RETURN_IF_ERROR(gcap_stream_create(/*device_id=*/0, &p->resources.stream));
  GCAP_RETURN_IF_ERROR(gcap_device_allocator_create(/*device_id=*/0, &p->resources.allocator));
  GCAP_RETURN_IF_ERROR(gcap_scratch_create(p->resources.allocator, /*options=*/NULL, &p->resources.scratch));
  p->resources.cuda_stream = gcap_stream_handle(p->resources.stream);
  const gcap_runtime_ops_t ops = {.struct_size = sizeof(ops),
                                  .self = p,
                                  .get_resources = get_resources,
                                  .synchronize = synchronize,
                                  .begin_run = begin_run,
                                  .end_run = end_run,
                                  .is_captured = is_captured,
                                  .replay = replay,
                                  .is_graph_capture_enabled = is_graph_capture_enabled,
                                  .destroy = destroy};
  return gcap_runtime_create_from(&ops, out_runtime);
}

// --- Its kernel, and a host -----------------------------------------------------------------------------------------

static bool supports(void* self, const gcap_model_t* model, const gcap_node_t* node) {
  return self == NULL && model != NULL && node->num_inputs == 1 && node->num_outputs == 1;
}

static gcap_status_t copy(void* self, const gcap_kernel_context_t* context) {
  (void)self;
  const gcap_tensor_t *x = &context->inputs[0], *y = &context->outputs[0];
  return GCAP_CUDA(cudaMemcpyAsync(y->data, x->data, gcap_tensor_bytes(y), cudaMemcpyDeviceToDevice,
                                   context->resources.cuda_stream));
}

static gcap_status_t create_kernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                   gcap_kernel_t* out_kernel) {
  (void)self, (void)model, (void)node;
  *out_kernel = (gcap_kernel_t){.compute = copy};
  return NULL;
}

static gcap_status_t run(const provider_t* p, gcap_ep_t* ep) {
  const gcap_value_t values[] = {{.name = "x", .rank = 1, .shape = {1}}, {.name = "y", .rank = 1, .shape = {1}}};
  const int in = 0, out = 1;
  const gcap_node_t node = {"Copy", "copy", &in, 1, &out, 1, NULL};
  const gcap_model_t model = {values, 2, &node, 1, &in, 1, &out, 1, NULL, 0};
  gcap_session_t* session;
  GCAP_RETURN_IF_ERROR(gcap_session_create(&model, &ep, 1, /*options=*/NULL, &session));
  float* memory;  // x, then y
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMallocManaged((void**)&memory, 2 * sizeof(float), cudaMemAttachGlobal)));
  const gcap_tensor_t x = {.rank = 1, .shape = {1}, .data = memory}, y = {.rank = 1, .shape = {1}, .data = memory + 1};
  for (int n = 1; n <= 3; ++n) {
    const bool replays = p->graph != NULL;
    memory[0] = (float)n;
    GCAP_RETURN_IF_ERROR(gcap_session_run(session, /*options=*/NULL, &x, &y));  // graph id 0
    const char* way = replays ? "a replay:" : p->graph != NULL ? "captured:" : "eager:   ";
    printf("run %d is %s x = %g, y = %g\n", n, way, memory[0], memory[1]);
  }
  GCAP_RETURN_IF_ERROR(gcap_session_destroy(session));
  return GCAP_CUDA(cudaFree(memory));
}

int main(void) {
  provider_t provider = {0};
  gcap_ep_t* ep = NULL;
  gcap_ep_ops_t ops = {.struct_size = sizeof(ops), .name = "own", .supports = supports, .create_kernel = create_kernel};
  gcap_status_t status = create_runtime(&provider, &ops.runtime);
  if (status == NULL) status = gcap_ep_create(&ops, &ep);
  if (status == NULL) status = run(&provider, ep);
  if (status == NULL) status = gcap_ep_destroy(ep);  // ends the runtime, and with it the provider
  if (status != NULL) fprintf(stderr, "%s\n", gcap_status_message(status));
  return status != NULL;
}
