// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Steps with runtimes, EPs over them and sessions. Kernels misbehave: they fail, forget their scratch, break the
// capture, or take further steps.
#include "test/fuzz/api_world.h"

enum { kCount = 64, kBytes = kCount * sizeof(float) };

// --- Work -----------------------------------------------------------------------------------------------------------

// In a run the block may be forgotten: the run's end frees it.
gcap_status_t fuzz_use_scratch(const gcap_run_resources_t* resources, bool in_run) {
  void* memory;
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(resources->scratch, kBytes << fuzz_draw(6), resources->stream, &memory));
  const cudaStream_t stream = gcap_stream_handle(resources->stream);
  gcap_status_t status = NULL;
  if (memory != NULL) status = GCAP_CUDA(cudaMemsetAsync(memory, 0, kBytes, stream));
  const gcap_tensor_t x = {memory, GCAP_DTYPE_F32, 1, {kCount}};
  if (status == NULL) status = gcap_unary(resources->stream, GCAP_UNARY_RELU, &x, &x);
  const bool forgets = in_run && fuzz_draw(8) == 0;
  if (forgets) return status;
  gcap_status_t freed = gcap_scratch_free(resources->scratch, memory);
  if (freed != NULL && !in_run) {
    // No run frees the block that stays live.
    gcap_status_free(freed);
    gcap_sim_clear_faults();
    fuzz_heap_fail(0, 0);
    freed = gcap_scratch_free(resources->scratch, memory);
  }
  return gcap_status_join(status, freed);
}

static gcap_status_t misbehave(void) {
  void* memory = NULL;
  switch (fuzz_draw(12)) {
    case 0: return GCAP_STATUS(GCAP_UNAVAILABLE, "the kernel did not succeed");
    case 1:
      // Breaks a capture.
      if (fuzz_cuda(cudaMalloc(&memory, 64)) && !fuzz_cuda(cudaFree(memory))) fuzz_world.leaked = true;
      return NULL;
    case 2:
    case 3: fuzz_reenter(); return NULL;
    default: return NULL;
  }
}

static gcap_status_t work(void* user, const gcap_run_resources_t* resources) {
  (void)user;
  gcap_status_t status = fuzz_use_scratch(resources, /*in_run=*/true);
  if (status == NULL) status = misbehave();
  return status;
}

// --- The EP ---------------------------------------------------------------------------------------------------------

static gcap_status_t compute(void* self, const gcap_kernel_context_t* context) {
  (void)self;
  GCAP_RETURN_IF_ERROR(fuzz_use_scratch(&context->resources, /*in_run=*/true));
  GCAP_RETURN_IF_ERROR(misbehave());
  const cudaStream_t stream = gcap_stream_handle(context->resources.stream);
  // The shapes of a model may differ by chance; the whole output is written.
  const size_t in_bytes = gcap_tensor_bytes(&context->inputs[0]), out_bytes = gcap_tensor_bytes(&context->outputs[0]);
  const size_t bytes = in_bytes < out_bytes ? in_bytes : out_bytes;
  if (bytes < out_bytes) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(context->outputs[0].data, 0, out_bytes, stream)));
  }
  return GCAP_CUDA(
      cudaMemcpyAsync(context->outputs[0].data, context->inputs[0].data, bytes, cudaMemcpyDeviceToDevice, stream));
}

static void destroy_kernel(void* self) {
  (void)self;
  --fuzz_world.released;
}

static bool ep_supports(void* self, const gcap_model_t* model, const gcap_node_t* node) {
  (void)self;
  (void)model;
  return strcmp(node->op_type, "Copy") == 0;
}

static gcap_status_t ep_create_kernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                      gcap_kernel_t* out_kernel) {
  (void)self;
  (void)model;
  (void)node;
  if (fuzz_draw(8) == 0) return GCAP_STATUS(GCAP_UNAVAILABLE, "no kernel today");
  if (fuzz_draw(8) == 0) return NULL;  // without its functions
  ++fuzz_world.released;
  *out_kernel = (gcap_kernel_t){.compute = compute, .destroy = destroy_kernel};
  return NULL;
}

static gcap_graph_node_policy_t ep_policy(const void* self) {
  (void)self;
  return GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES;
}

static void create_ep(fuzz_runtime_t* slot) {
  gcap_ep_ops_t ops = {.struct_size = fuzz_draw(16) == 0 ? 9 : sizeof(ops),
                       .supports_concurrent_runs = fuzz_draw(4) == 0,  // the runtime's answer counts
                       .name = "fuzz",
                       .supports = ep_supports,
                       .create_kernel = ep_create_kernel,
                       .graph_capture_node_assignment_policy = fuzz_draw(4) == 0 ? ep_policy : NULL,
                       .runtime = slot->runtime};
  ops.runs_on_host = fuzz_draw(16) == 0;  // refused
  fuzz_ok(gcap_ep_create(&ops, &slot->ep));
}

// --- Sessions -------------------------------------------------------------------------------------------------------

static void free_tensors(fuzz_runtime_t* slot) {
  if (!fuzz_wait_for_devices()) return;
  if (slot->x != NULL && !fuzz_cuda(cudaFree(slot->x))) fuzz_world.leaked = true;
  if (slot->y != NULL && !fuzz_cuda(cudaFree(slot->y))) fuzz_world.leaked = true;
  slot->x = slot->y = NULL;
}

static bool make_tensors(fuzz_runtime_t* slot) {
  if (slot->x != NULL) return true;
  if (fuzz_captures() || !fuzz_cuda(cudaSetDevice(slot->device))) return false;
  const bool made = fuzz_cuda(cudaMalloc((void**)&slot->x, kBytes)) &&
                    fuzz_cuda(cudaMalloc((void**)&slot->y, kBytes)) && fuzz_cuda(cudaMemset(slot->x, 0, kBytes)) &&
                    fuzz_cuda(cudaDeviceSynchronize());
  fuzz_cuda(cudaSetDevice(0));
  if (!made) free_tensors(slot);  // what is still being filled is not used
  return made;
}

// Two nodes in a row; by chance an index, a shape, a name or a count is wrong.
static void create_session(fuzz_runtime_t* slot) {
  int edges[] = {0, 1, 2, 3};
  if (fuzz_draw(8) == 0) edges[fuzz_draw(4)] = (int)fuzz_draw(8) - 2;
  gcap_value_t values[3] = {{.name = "x", .rank = 1, .shape = {kCount}},
                            {.name = "middle", .rank = 1, .shape = {kCount}},
                            {.name = "y", .rank = 1, .shape = {kCount}}};
  switch (fuzz_draw(16)) {
    case 0: values[1].shape[0] = (int64_t)fuzz_draw(4) - 2; break;
    case 1: values[fuzz_draw(3)].rank = (int)fuzz_draw(16) - 3; break;
    case 2: values[fuzz_draw(3)].name = NULL; break;
    case 3: values[fuzz_draw(3)].dtype = (gcap_dtype_t)8; break;
    case 4: values[1].shape[0] = INT64_MAX; break;
    default: break;
  }
  const gcap_node_t nodes[2] = {{"Copy", "first", &edges[0], 1, &edges[1], 1, NULL},
                                {fuzz_draw(16) ? "Copy" : "Other", "second", &edges[1], 1, &edges[2], 1, NULL}};
  const gcap_model_t model = {values, 3, nodes, 2, &edges[0], 1, &edges[2], 1, NULL, 0};
  fuzz_ok(gcap_session_create(&model, &slot->ep, 1, NULL, &slot->session));
}

static void run_session(fuzz_runtime_t* slot, bool warm_up) {
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  options.graph_id = (int)fuzz_draw(4) - 1;
  const unsigned how = fuzz_draw(8);
  options.synchronize = how & 1;
  options.rerun_failed_capture = how & 2;
  options.check_bindings = how & 4;
  gcap_tensor_t input = {.data = slot->x, .rank = 1, .shape = {kCount}};
  gcap_tensor_t output = {.data = slot->y, .rank = 1, .shape = {kCount}};
  if (fuzz_draw(16) == 0) input.shape[0] = 3;
  if (fuzz_draw(16) == 0) output.data = NULL;
  const gcap_warm_up_run_t run = {&options, &input, &output};
  fuzz_ok(warm_up ? gcap_session_warm_up(slot->session, &run, 1, NULL, NULL)
                  : gcap_session_run(slot->session, fuzz_draw(8) ? &options : NULL, &input, &output));
}

// The binding, unless the thread captures, since a kernel began what it did not end.
static void end_io_binding(fuzz_runtime_t* slot) {
  if (slot->io_binding != NULL && fuzz_gone(gcap_io_binding_destroy(slot->io_binding))) slot->io_binding = NULL;
}

// An IO binding of host memory, usually for one run. The memory outlives what is under way.
static void run_bound(fuzz_runtime_t* slot) {
  static float in[kCount], out[kCount];
  const gcap_memory_t host = {.kind = GCAP_MEMORY_HOST};
  if (slot->io_binding == NULL && !fuzz_ok(gcap_io_binding_create(slot->session, &slot->io_binding))) return;
  gcap_tensor_t input = {.data = in, .rank = 1, .shape = {kCount}};
  const gcap_tensor_t output = {.data = out, .rank = 1, .shape = {kCount}};
  if (fuzz_draw(16) == 0) input.shape[0] = 3;
  fuzz_ok(gcap_io_binding_bind_input(slot->io_binding, fuzz_draw(16) ? "x" : "y", &input, host));
  fuzz_ok(gcap_io_binding_bind_output(slot->io_binding, "y", &output, host));
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  options.graph_id = (int)fuzz_draw(4) - 1;
  options.synchronize = fuzz_draw(4);
  fuzz_ok(fuzz_draw(4) ? gcap_session_run_bound(slot->session, &options, slot->io_binding)
                       : gcap_session_warm_up_bound(slot->session, &options, slot->io_binding));
  if (fuzz_draw(4) == 0) fuzz_ok(gcap_io_binding_clear(slot->io_binding));
  if (fuzz_draw(2)) end_io_binding(slot);
}

static void end_session(fuzz_runtime_t* slot) {
  if (slot->session == NULL || !fuzz_gone(gcap_session_destroy(slot->session))) return;
  slot->session = NULL;
  slot->has_stale_graphs = true;
}

// A session's functions may not be called on a thread that captures.
void fuzz_session_step(void) {
  fuzz_runtime_t* slot = &fuzz_world.runtimes[fuzz_draw(FUZZ_RUNTIMES)];
  if (slot->runtime == NULL || slot->calls > 0 || fuzz_captures()) return;
  const unsigned what = fuzz_draw(10);
  ++slot->calls;
  if (slot->ep == NULL) {
    create_ep(slot);
  } else if (slot->session == NULL) {
    if (make_tensors(slot)) create_session(slot);
  } else if (what < 6) {
    run_session(slot, /*warm_up=*/what == 0);
  } else if (what == 6) {
    fuzz_ok(gcap_session_release_captured_graph(slot->session, (int)fuzz_draw(4)));
  } else if (what == 7 && fuzz_world.in_sink == 0) {
    end_session(slot);
  } else if (what == 8 && fuzz_world.in_sink == 0) {
    run_bound(slot);
  }
  --slot->calls;
}

// --- Runtimes -------------------------------------------------------------------------------------------------------

static void create_runtime(fuzz_runtime_t* slot) {
  gcap_options_t options;
  gcap_options_init(&options);
  const unsigned how = fuzz_draw(256);
  slot->device = how & 1;
  options.device_id = slot->device;
  options.enable_cuda_graph = how & 6;
  options.share_graph_memory = how & 8;
  options.use_mempool = (how & 48) == 16;
  options.arena.red_zones = (how & 48) == 32;
  options.arena.poison_on_free = (how & 192) == 64;
  options.graph.min_num_runs_before_capture = how >> 6;
  options.graph.max_graphs = fuzz_draw(4) == 0 ? 1 : 0;
  options.arena.initial_chunk_bytes = 1 << 16;
  options.do_copy_in_default_stream = how & 4;
  if (fuzz_draw(4) == 0) {
    options.has_user_stream = true;
    options.user_stream = slot->device == 0 ? fuzz_world.raw[fuzz_draw(2)] : fuzz_world.raw[2];
  }
  slot->has_stale_graphs = false;
  ++slot->calls;  // a callback makes none in the same place
  fuzz_ok(gcap_runtime_create(&options, &slot->runtime));
  --slot->calls;
}

// The session, the EP and the runtime, as far as none refuses.
static void destroy_runtime(fuzz_runtime_t* slot) {
  if (slot->calls > 0 || fuzz_world.in_sink > 0) return;
  ++slot->calls;
  end_io_binding(slot);
  end_session(slot);
  if (slot->session == NULL && slot->ep != NULL && fuzz_gone(gcap_ep_destroy(slot->ep))) {
    slot->ep = NULL;
    slot->runtime = NULL;
  }
  if (slot->ep == NULL && slot->runtime != NULL && fuzz_gone(gcap_runtime_destroy(slot->runtime))) slot->runtime = NULL;
  --slot->calls;
  if (slot->runtime == NULL) free_tensors(slot);
}

// Legal in a run; elsewhere the fork is refused. The join may be forgotten: the run's end joins, and fails.
static void fork_and_join(fuzz_runtime_t* slot) {
  gcap_run_resources_t resources;
  gcap_stream_t* forked = NULL;
  if (!fuzz_ok(gcap_runtime_get_resources(slot->runtime, &resources))) return;
  if (!fuzz_ok(gcap_runtime_fork(slot->runtime, 1, &forked))) return;
  resources.stream = forked;
  fuzz_ok(fuzz_use_scratch(&resources, /*in_run=*/true));
  if (fuzz_draw(4) != 0) fuzz_ok(gcap_runtime_join(slot->runtime));
}

static void copy(fuzz_runtime_t* slot) {
  gcap_run_resources_t resources;
  if (!make_tensors(slot) || !fuzz_ok(gcap_runtime_get_resources(slot->runtime, &resources))) return;
  const gcap_memory_t device = {GCAP_MEMORY_DEVICE, slot->device};
  const gcap_memory_t host = {(gcap_memory_kind_t)(1 + fuzz_draw(3)), 0};  // also a kind that does not exist
  static float content[kCount];  // a copy whose wait failed may still write to it
  const int64_t count = fuzz_draw(16) == 0 ? (int64_t)fuzz_draw(4) - 2 : kCount;
  const gcap_tensor_t in_host = {.data = content, .rank = 1, .shape = {count}};
  const gcap_tensor_t on_device = {.data = slot->x, .rank = 1, .shape = {kCount}};
  const gcap_copy_t copies[2] = {{&in_host, host, &on_device, device, NULL},
                                 {&on_device, device, &in_host, host, NULL}};
  fuzz_ok(gcap_runtime_copy_tensors(slot->runtime, copies, 1 + fuzz_draw(2)));
}

static void call_for_host(fuzz_runtime_t* slot) {
  gcap_stream_t* stream = NULL;
  gcap_allocator_t* allocator = NULL;
  switch (fuzz_draw(6)) {
    case 0: fork_and_join(slot); break;
    case 1: fuzz_ok(gcap_runtime_join(slot->runtime)); break;
    case 2: copy(slot); break;
    case 3:
      if (fuzz_captures() || !fuzz_ok(gcap_runtime_create_stream(slot->runtime, &stream))) break;
      if (!fuzz_gone(gcap_stream_destroy(stream))) {
        fuzz_world.leaked = true;
      }
      break;
    case 4: fuzz_ok(gcap_runtime_get_allocator(slot->runtime, (gcap_memory_kind_t)fuzz_draw(4), &allocator)); break;
    default:
      if (!fuzz_captures()) fuzz_ok(gcap_scratch_validate(gcap_runtime_scratch(slot->runtime)));
  }
}

// The graphs of this thread, and a runtime from a table that lacks what is required.
static void read_graphs(fuzz_runtime_t* slot, int id) {
  gcap_graph_manager_t* graphs = NULL;
  gcap_graph_info_t info;
  if (fuzz_ok(gcap_runtime_graphs(slot->runtime, &graphs))) gcap_graph_manager_get_info(graphs, id, &info);
  gcap_runtime_t* none = NULL;
  const gcap_runtime_ops_t ops = {.struct_size = sizeof(ops)};
  fuzz_ok(gcap_runtime_create_from(&ops, &none));
}

// Some runs are by key, pinned, or captured only.
static void draw_fields(gcap_run_t* run) {
  const unsigned how = fuzz_draw(32);
  if (how & 1) {
    run->id = GCAP_GRAPH_ID_NONE;
    run->key = fuzz_key(how & 2 ? 1 : 0);
  }
  run->pinned = how & 4;
  run->capture_only = (how & 24) == 24;
}

static void call(fuzz_runtime_t* slot) {
  const int id = (int)fuzz_draw(5) - 1;
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = id;
  if (fuzz_world.has_keys) draw_fields(&run);
  gcap_run_resources_t resources;
  switch (fuzz_draw(12)) {
    case 0:
    case 1:
    case 2:
      run.work = work;
      run.synchronize = fuzz_draw(2);
      if (!slot->has_stale_graphs) fuzz_ok(gcap_runtime_run(slot->runtime, &run));
      break;
    case 3:
      if (fuzz_world.in_sink == 0) fuzz_ok(gcap_runtime_begin_run(slot->runtime, &run, NULL, NULL));
      break;
    case 4:
      run.synchronize = fuzz_draw(2);
      fuzz_ok(gcap_runtime_end_run(slot->runtime, &run, NULL));
      break;
    case 5:
      if (!slot->has_stale_graphs) fuzz_ok(gcap_runtime_replay(slot->runtime, &run, NULL));
      break;
    case 6: fuzz_ok(gcap_runtime_release(slot->runtime, id)); break;
    case 7: fuzz_ok(gcap_runtime_synchronize(slot->runtime)); break;
    case 8: read_graphs(slot, id); break;
    case 9: gcap_status_free(gcap_runtime_explain(slot->runtime, id, GCAP_GRAPH_WHY_CAPTURE_FAILED)); break;
    case 10:
      if (fuzz_ok(gcap_runtime_get_resources(slot->runtime, &resources)) && !fuzz_captures()) {
        fuzz_ok(fuzz_use_scratch(&resources, /*in_run=*/false));
      }
      break;
    default: call_for_host(slot);
  }
}

void fuzz_runtime_step(void) {
  fuzz_runtime_t* slot = &fuzz_world.runtimes[fuzz_draw(FUZZ_RUNTIMES)];
  if (slot->runtime == NULL) {
    if (slot->calls == 0) create_runtime(slot);
    return;
  }
  // A thread must not take the turn of a runtime with a user stream twice.
  if (slot->calls > 0 || slot->session != NULL) return;
  if (fuzz_draw(16) == 0) {
    destroy_runtime(slot);
    return;
  }
  ++slot->calls;
  // The stream's device is current while the runtime is used.
  if (fuzz_cuda(cudaSetDevice(slot->device))) call(slot);
  fuzz_cuda(cudaSetDevice(0));
  --slot->calls;
}

// --- The end --------------------------------------------------------------------------------------------------------

void fuzz_end_runtime_runs(void) {
  for (int i = 0; i < FUZZ_RUNTIMES; ++i) {
    fuzz_runtime_t* slot = &fuzz_world.runtimes[i];
    if (slot->runtime != NULL) fuzz_ok(gcap_runtime_end_run(slot->runtime, NULL, NULL));
  }
}

void fuzz_end_runtimes(void) {
  for (int i = 0; i < FUZZ_RUNTIMES; ++i) {
    fuzz_runtime_t* slot = &fuzz_world.runtimes[i];
    if (slot->runtime != NULL) destroy_runtime(slot);
    FUZZ_CHECK(slot->runtime == NULL, "runtime %d stays: %s", i, fuzz_world.refusal);
    free_tensors(slot);
  }
}
