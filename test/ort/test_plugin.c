// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The plugin that the tests load: the kernels of //ops/nodes, which count and fail as the test says. It exports the
// simulator too, so that tests see what is alive there and make its calls fail.

#include "test/ort/test_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gcap/capture.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/kit/ops/nodes.h"
#include "gcap/kit/ort.h"
#include "gcap/kit/shape_inference.h"
#include "gcap/log.h"
#include "gcap/runtime_ops.h"
#include "gcap_sim.h"
#include "ort/abi/api.h"

static test_plugin_t state;

__attribute__((visibility("default"))) test_plugin_t* test_plugin_state(void) { return &state; }

static test_plugin_sink_t test_sink;

static void pass_on(void* user, gcap_log_level_t level, const char* message) {
  (void)level;
  test_sink(user, message);
}

__attribute__((visibility("default"))) void test_plugin_set_sink(test_plugin_sink_t sink, void* user) {
  test_sink = sink;
  gcap_log_set_sink(sink != NULL ? pass_on : NULL, user, GCAP_LOG_WARNING);
}

typedef struct test_kernel {
  gcap_kernel_t kernel;
  int issued, done;  // of the computations that are watched
  char name[64];
} test_kernel_t;

static bool fails(const test_kernel_t* kernel) {
  if (state.failing_node != NULL && strcmp(state.failing_node, kernel->name) != 0) return false;
  return state.fails == (gcap_thread_is_capturing() ? TEST_PLUGIN_IN_CAPTURE : TEST_PLUGIN_EAGERLY);
}

static void note_done(void* user) {
  test_kernel_t* kernel = user;
  __atomic_fetch_add(&kernel->done, 1, __ATOMIC_RELAXED);
}

static gcap_status_t compute(void* self, const gcap_kernel_context_t* context) {
  test_kernel_t* kernel = self;
  __atomic_fetch_add(&state.computes, 1, __ATOMIC_RELAXED);
  if (gcap_thread_is_capturing()) __atomic_fetch_add(&state.captured_computes, 1, __ATOMIC_RELAXED);
  if (fails(kernel)) return GCAP_STATUS(GCAP_INTERNAL, "the test makes the kernel of '%s' fail", kernel->name);
  GCAP_RETURN_IF_ERROR(kernel->kernel.compute(kernel->kernel.self, context));
  if (!state.watches_ends || gcap_thread_is_capturing()) return NULL;
  __atomic_fetch_add(&kernel->issued, 1, __ATOMIC_RELAXED);
  return GCAP_CUDA(cudaLaunchHostFunc(gcap_stream_handle(context->resources.stream), note_done, kernel));
}

static void destroy_kernel(void* self) {
  test_kernel_t* kernel = self;
  __atomic_store_n(&state.waits_at_end, gcap_sim_calls("cudaStreamSynchronize"), __ATOMIC_RELAXED);
  if (kernel->kernel.destroy != NULL) kernel->kernel.destroy(kernel->kernel.self);
  __atomic_fetch_sub(&state.live_kernels, 1, __ATOMIC_RELAXED);
  if (__atomic_load_n(&kernel->done, __ATOMIC_RELAXED) != kernel->issued) {
    __atomic_fetch_add(&state.early_ends, 1, __ATOMIC_RELAXED);
    return;  // the host function still comes
  }
  free(kernel);
}

typedef struct test_ep {
  gcap_runtime_t* runtime;
  gcap_runtime_t* other;  // of GcapOther: a table of the test's, which asks `runtime`
  gcap_node_kernels_t* kernels;
} test_ep_t;

static bool supports(void* self, const gcap_model_t* model, const gcap_node_t* node) {
  return gcap_node_kernels_supports(((test_ep_t*)self)->kernels, model, node);
}

static gcap_status_t create_kernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                   gcap_kernel_t* out_kernel) {
  const test_ep_t* ep = self;
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(ep->runtime, &resources));
  test_kernel_t* kernel = calloc(1, sizeof(*kernel));
  if (kernel == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory");
  gcap_status_t status = gcap_node_kernels_create_kernel(ep->kernels, &resources, model, node, &kernel->kernel);
  if (status != NULL) {
    free(kernel);
    return status;
  }
  strncpy(kernel->name, node->name, sizeof(kernel->name) - 1);
  __atomic_fetch_add(&state.made_kernels, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&state.live_kernels, 1, __ATOMIC_RELAXED);
  const bool is_failing = state.failing_node != NULL && strcmp(state.failing_node, kernel->name) == 0;
  *out_kernel = (gcap_kernel_t){.self = kernel,
                                .compute = compute,
                                .destroy = destroy_kernel,
                                .not_capturable = is_failing && state.not_capturable};
  return NULL;
}

static gcap_input_place_t input_place(void* self, const gcap_model_t* model, const gcap_node_t* node, int input) {
  if (state.forgets_input_place) return GCAP_INPUT_IN_EP_MEMORY;
  return gcap_node_kernels_input_place(((test_ep_t*)self)->kernels, model, node, input);
}

static gcap_status_t infer_shapes(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                  const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  (void)self, (void)model;
  if (state.infers_any_rank) {
    for (int i = 0; i < outputs[0].rank; ++i) outputs[0].shape[i] = 1;
    return NULL;
  }
  return gcap_infer_shapes(node, inputs, outputs);
}

static gcap_graph_node_policy_t policy(const void* self) {
  (void)self;
  return state.not_capturable ? GCAP_GRAPH_ALLOW_HOLES : GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES;
}

static gcap_status_t destroy(void* self) {
  test_ep_t* ep = self;
  gcap_status_t status = gcap_runtime_destroy(ep->runtime);
  if (status != NULL && gcap_status_code(status) != GCAP_LEAKED) return status;
  status = gcap_status_join(status, gcap_runtime_destroy(ep->other));
  status = gcap_status_join(status, gcap_node_kernels_destroy(ep->kernels));
  free(ep);
  return gcap_status_annotate(status, GCAP_LEAKED, "the EP is gone");
}

// GcapOther is a second EP of a session, whose runtime does not begin a run when the test says so.
static gcap_runtime_t* inner(void* self) { return ((test_ep_t*)self)->runtime; }

static gcap_status_t get_other_resources(void* self, gcap_run_resources_t* out_resources) {
  return gcap_runtime_get_resources(inner(self), out_resources);
}

static gcap_status_t synchronize_other(void* self) { return gcap_runtime_synchronize(inner(self)); }

static gcap_status_t begin_other_run(void* self, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind,
                                     void** out_addresses) {
  if (state.other_fails && gcap_thread_is_capturing()) return GCAP_STATUS(GCAP_INTERNAL, "the test lets no run begin");
  return gcap_runtime_begin_run(inner(self), run, out_kind, out_addresses);
}

static gcap_status_t end_other_run(void* self, const gcap_run_t* run, gcap_status_t status) {
  return gcap_runtime_end_run(inner(self), run, status);
}

static gcap_runtime_info_t info_of(const void* self) {
  gcap_runtime_info_t info;
  gcap_runtime_get_info(((const test_ep_t*)self)->runtime, &info);
  return info;
}

static bool is_other_enabled(const void* self) { return info_of(self).is_graph_capture_enabled; }

static bool is_other_captured(void* self, int id) { return gcap_runtime_is_captured(inner(self), id); }

static gcap_status_t replay_other(void* self, const gcap_run_t* run, bool* out_replayed) {
  return gcap_runtime_replay(inner(self), run, out_replayed);
}

static gcap_status_t release_other(void* self, int id) { return gcap_runtime_release(inner(self), id); }

static gcap_status_t explain_other(void* self, int id, gcap_graph_question_t question) {
  return gcap_runtime_explain(inner(self), id, question);
}

static bool is_other_concurrent(const void* self) { return info_of(self).supports_concurrent_runs; }

static bool can_copy_other(const void* self, gcap_memory_t src, gcap_memory_t dst) {
  return gcap_runtime_can_copy(((const test_ep_t*)self)->runtime, src, dst);
}

static gcap_status_t copy_other(void* self, const gcap_copy_t* copies, size_t count) {
  return gcap_runtime_copy_tensors(inner(self), copies, count);
}

static gcap_status_t get_other_allocator(void* self, gcap_memory_kind_t kind, gcap_allocator_t** out_allocator) {
  return gcap_runtime_get_allocator(inner(self), kind, out_allocator);
}

static gcap_status_t create_other_runtime(test_ep_t* ep) {
  const gcap_runtime_ops_t ops = {.struct_size = sizeof(ops),
                                  .self = ep,
                                  .get_resources = get_other_resources,
                                  .synchronize = synchronize_other,
                                  .begin_run = begin_other_run,
                                  .end_run = end_other_run,
                                  .is_captured = is_other_captured,
                                  .replay = replay_other,
                                  .is_graph_capture_enabled = is_other_enabled,
                                  .release = release_other,
                                  .explain = explain_other,
                                  .is_concurrent_run_supported = is_other_concurrent,
                                  .can_copy = can_copy_other,
                                  .copy_tensors = copy_other,
                                  .get_allocator = get_other_allocator};
  return gcap_runtime_create_from(&ops, &ep->other);
}

static gcap_status_t create_ep(void* user, const gcap_options_t* options, gcap_ep_t** out_ep) {
  const bool is_other = user != NULL;
  test_ep_t* ep = calloc(1, sizeof(*ep));
  if (ep == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory");
  gcap_status_t status = gcap_runtime_create(options, &ep->runtime);
  if (status == NULL) status = gcap_node_kernels_create(options->device_id, &options->kernels, &ep->kernels);
  if (status == NULL && is_other) status = create_other_runtime(ep);
  const gcap_ep_ops_t ops = {
      .struct_size = sizeof(gcap_ep_ops_t),
      .name = is_other ? "other" : "test",
      .self = ep,
      .supports = supports,
      .create_kernel = create_kernel,
      .input_place = input_place,
      .infer_shapes = infer_shapes,
      .graph_capture_node_assignment_policy = policy,
      .destroy = destroy,
      .runtime = is_other ? ep->other : ep->runtime,
  };
  if (status == NULL) status = gcap_ep_create(&ops, out_ep);
  return status == NULL ? NULL : gcap_status_join(status, destroy(ep));
}

#define PLUGIN(ep_name, which)                                                                                   \
  {                                                                                                              \
    .struct_size = sizeof(gcap_ort_plugin_t), .name = ep_name, .vendor = "the gcap authors", .version = "0.1.0", \
    .user = which, .create_ep = create_ep, .ops = gcap_ort_node_ops, .attributes = gcap_ort_node_attributes,     \
  }

static int other;
static const gcap_ort_plugin_t plugin = PLUGIN("GcapTest", NULL);
static const gcap_ort_plugin_t other_plugin = PLUGIN("GcapOther", &other);

// --- ONNX Runtime as the plugin sees it -----------------------------------------------------------------------------

static const gcap_ort_api_base_t* real_base;
static gcap_ort_api_t api;
static gcap_ort_ep_api_t ep_api;

static const gcap_ort_ep_api_t* get_ep_api(void) { return &ep_api; }
static const gcap_ort_api_t* get_api(uint32_t version) {
  (void)version;
  return &api;
}
static const char* get_version(void) { return real_base->GetVersionString(); }
static const gcap_ort_api_base_t broken_base = {get_api, get_version};

// Whatever it is called with.
static gcap_ort_status_t* fail(void) { return api.CreateStatus(GCAP_ORT_FAIL, "the test makes ONNX Runtime fail"); }

__attribute__((visibility("default"))) void test_plugin_restore_slots(void) {
  unsigned minor = 0;
  sscanf(real_base->GetVersionString(), "1.%u.", &minor);
  const gcap_ort_api_t* real = real_base->GetApi(minor);
  api = *real;
  ep_api = *real->GetEpApi();
  api.GetEpApi = get_ep_api;
}

__attribute__((visibility("default"))) void test_plugin_break_slot(bool of_ep_api, size_t index) {
  gcap_ort_status_t* (**slots)(void) = of_ep_api ? (void*)&ep_api : (void*)&api;
  slots[index] = fail;
}

// --- The entry points -----------------------------------------------------------------------------------------------

// What GCAP_ORT_DEFINE_PLUGIN defines, for two.
__attribute__((visibility("default"))) void* CreateEpFactories(const char* registration, const void* api_base,
                                                               const void* logger, void** out_factories,
                                                               size_t max_factories, size_t* out_num_factories);
void* CreateEpFactories(const char* registration, const void* api_base, const void* logger, void** out_factories,
                        size_t max_factories, size_t* out_num_factories) {
  (void)registration;
  size_t count = 0;
  *out_num_factories = 0;
  const bool is_first = real_base == NULL;
  real_base = api_base;
  if (is_first) test_plugin_restore_slots();  // else a test has broken some
  api_base = &broken_base;
  void* status = gcap_ort_create_factories(&plugin, api_base, logger, out_factories, max_factories, &count);
  if (status != NULL) return status;
  *out_num_factories = 1;
  status = gcap_ort_create_factories(&other_plugin, api_base, logger, out_factories + 1, max_factories - 1, &count);
  if (status == NULL) *out_num_factories = 2;
  return status;
}

__attribute__((visibility("default"))) void* ReleaseEpFactory(void* factory);
void* ReleaseEpFactory(void* factory) { return gcap_ort_release_factory(factory); }
