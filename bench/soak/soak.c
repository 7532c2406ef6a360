// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Soak: replays as many times as it is told, along the ways that programs take, and fails if memory grows.
//   soak [--replays=N]    default 20,000
//
// The ways: a runtime with more ids than its budget of graphs, so that ids are evicted and captured again; a graph
// manager whose id is captured again and updated in place now and then; a session on a small EP. All allocate scratch.
// The memory in use of the device and the resident memory of the process are printed at intervals. Those of the first
// tenth, in which everything has happened at least once, are the measure for the rest: neither may be exceeded by more
// than the allowance, which is for the pages that a heap touches late. A leak of one byte in two replays is found in
// 10^7 replays. At the end the outputs must be right, and evictions and updates must have happened.
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gcap/graph.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/kit/ops/elementwise.h"
#include "gcap/kit/session.h"
#include "gcap/runtime.h"

enum {
  kCount = 1024,  // floats of a tensor
  kBytes = kCount * sizeof(float),
  kResidentIds = 4,  // of the runtime: replayed all the time
  kPassingIds = 8,   // run now and then, which evicts
  kBudget = 6,       // graphs
  kRoundsPerPassingId = 100,
  kRoundsPerUpdate = 250,
  kRoundsPerWait = 8,
  kIntervals = 20,
  kReplaysPerRound = 6,  // about: kResidentIds + one of the manager + one of the session
  kAllowance = 4 << 20,  // bytes
  kManagerId = 0
};

static void check(gcap_status_t status, const char* what) {
  if (status == NULL) return;
  fprintf(stderr, "soak: %s: %s\n", what, gcap_status_message(status));
  exit(1);
}
#define CHECK(expression) check((expression), #expression)
#define CHECK_CUDA(call) check(GCAP_CUDA(call), #call)

static void expect(bool condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "soak: %s\n", what);
  exit(1);
}

// --- Work -----------------------------------------------------------------------------------------------------------

typedef struct tensors {
  float* x;  // -1, 2, -1, 2, …
  float* y;  // max(x, 0)
} tensors_t;

static tensors_t make_tensors(void) {
  tensors_t tensors;
  float host[kCount];
  for (int i = 0; i < kCount; ++i) host[i] = i % 2 ? 2.0f : -1.0f;
  CHECK_CUDA(cudaMalloc((void**)&tensors.x, kBytes));
  CHECK_CUDA(cudaMalloc((void**)&tensors.y, kBytes));
  CHECK_CUDA(cudaMemcpy(tensors.x, host, kBytes, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemset(tensors.y, 0xFF, kBytes));
  CHECK_CUDA(cudaDeviceSynchronize());
  return tensors;
}

static void check_and_free(tensors_t tensors) {
  float host[kCount];
  CHECK_CUDA(cudaMemcpy(host, tensors.y, kBytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) expect(host[i] == (i % 2 ? 2.0f : 0.0f), "an output is wrong");
  CHECK_CUDA(cudaFree(tensors.x));
  CHECK_CUDA(cudaFree(tensors.y));
}

// y = relu(x), by way of scratch of a size that `id` has a part in.
static gcap_status_t relu_by_scratch(const gcap_run_resources_t* resources, int id, const float* x, float* y) {
  void* middle;
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(resources->scratch, kBytes + (size_t)id * 4096, resources->stream, &middle));
  gcap_status_t status =
      GCAP_CUDA(cudaMemcpyAsync(middle, x, kBytes, cudaMemcpyDeviceToDevice, gcap_stream_handle(resources->stream)));
  const gcap_tensor_t in = {middle, GCAP_DTYPE_F32, 1, {kCount}}, out = {y, GCAP_DTYPE_F32, 1, {kCount}};
  if (status == NULL) status = gcap_unary(resources->stream, GCAP_UNARY_RELU, &in, &out);
  return gcap_status_join(status, gcap_scratch_free(resources->scratch, middle));
}

// --- The runtime ----------------------------------------------------------------------------------------------------

typedef struct runtime_work {
  tensors_t tensors;
  int id;
} runtime_work_t;

static gcap_status_t runtime_work(void* user, const gcap_run_resources_t* resources) {
  const runtime_work_t* work = user;
  return relu_by_scratch(resources, work->id, work->tensors.x, work->tensors.y);
}

static gcap_runtime_t* make_runtime(void) {
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  options.graph.min_num_runs_before_capture = 1;
  options.graph.max_graphs = kBudget;
  gcap_runtime_t* runtime;
  CHECK(gcap_runtime_create(&options, &runtime));
  return runtime;
}

// --- The manager ----------------------------------------------------------------------------------------------------

static gcap_status_t manager_work(void* user, const gcap_run_resources_t* resources) {
  const tensors_t* tensors = user;
  cudaStream_t stream = resources->cuda_stream;
  return GCAP_CUDA(cudaMemcpyAsync(tensors->y, tensors->x, kBytes, cudaMemcpyDeviceToDevice, stream));
}

// --- The session: one node on an EP over a runtime of its own --------------------------------------------------------

static gcap_status_t compute(void* self, const gcap_kernel_context_t* context) {
  (void)self;
  return relu_by_scratch(&context->resources, 0, context->inputs[0].data, context->outputs[0].data);
}

static bool ep_supports(void* self, const gcap_model_t* model, const gcap_node_t* node) {
  (void)self;
  (void)model;
  return strcmp(node->op_type, "Relu") == 0;
}

static gcap_status_t ep_create_kernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                      gcap_kernel_t* out_kernel) {
  (void)self;
  (void)model;
  (void)node;
  *out_kernel = (gcap_kernel_t){.compute = compute};
  return NULL;
}

static gcap_ep_t* make_ep(void) {
  gcap_ep_ops_t ops = {
      .struct_size = sizeof(gcap_ep_ops_t),
      .name = "soak",
      .supports = ep_supports,
      .create_kernel = ep_create_kernel,
      .runtime = make_runtime(),
  };
  gcap_ep_t* ep;
  CHECK(gcap_ep_create(&ops, &ep));
  return ep;
}

static gcap_session_t* make_session(gcap_ep_t* ep) {
  static const int zero = 0, one = 1;
  const gcap_value_t values[2] = {{.name = "x", .rank = 1, .shape = {kCount}},
                                  {.name = "y", .rank = 1, .shape = {kCount}}};
  const gcap_node_t node = {"Relu", "relu", &zero, 1, &one, 1, NULL};
  const gcap_model_t model = {values, 2, &node, 1, &zero, 1, &one, 1, NULL, 0};
  gcap_session_t* session;
  CHECK(gcap_session_create(&model, &ep, 1, /*options=*/NULL, &session));
  return session;
}

static gcap_tensor_t tensor_of(float* data) { return (gcap_tensor_t){.data = data, .rank = 1, .shape = {kCount}}; }

// --- Memory ---------------------------------------------------------------------------------------------------------

typedef struct memory {
  size_t device, host;  // bytes
} memory_t;

static memory_t memory_in_use(void) {
  size_t free_bytes = 0, total = 0;
  CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total));
  unsigned long size = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  expect(file != NULL && fscanf(file, "%lu %lu", &size, &resident) == 2, "/proc/self/statm cannot be read");
  fclose(file);
  return (memory_t){total - free_bytes, resident * (size_t)sysconf(_SC_PAGESIZE)};
}

// --- The soak -------------------------------------------------------------------------------------------------------

typedef struct soak {
  cudaStream_t stream;
  gcap_graph_manager_t* manager;
  gcap_runtime_t* runtime;
  gcap_ep_t* ep;
  gcap_session_t* session;
  tensors_t manager_tensors, session_tensors, runtime_tensors;
} soak_t;

static soak_t begin(void) {
  soak_t soak = {
      .manager_tensors = make_tensors(), .session_tensors = make_tensors(), .runtime_tensors = make_tensors()};
  CHECK_CUDA(cudaStreamCreateWithFlags(&soak.stream, cudaStreamNonBlocking));
  CHECK_CUDA(cudaMemset(soak.manager_tensors.x, 0, kBytes));
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK(gcap_graph_manager_create(NULL, &soak.manager));
  soak.runtime = make_runtime();
  soak.ep = make_ep();
  soak.session = make_session(soak.ep);
  return soak;
}

static void run_on_runtime(const soak_t* soak, int id, bool synchronize) {
  runtime_work_t work = {soak->runtime_tensors, id};
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = id;
  run.work = runtime_work;
  run.user = &work;
  run.synchronize = synchronize;
  CHECK(gcap_runtime_run(soak->runtime, &run));
}

static void round_of_replays(soak_t* soak, unsigned long round) {
  const bool synchronize = round % kRoundsPerWait == 0;
  for (int id = 0; id < kResidentIds; ++id) run_on_runtime(soak, id, synchronize);
  if (round % kRoundsPerPassingId == 0) {
    const int passing = kResidentIds + (int)(round / kRoundsPerPassingId % kPassingIds);
    for (int run = 0; run < 3; ++run) run_on_runtime(soak, passing, false);
  }
  if (round % kRoundsPerUpdate == 0 && gcap_graph_manager_is_captured(soak->manager, kManagerId)) {
    CHECK(gcap_graph_manager_recapture(soak->manager, kManagerId));
  }
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = kManagerId;
  run.stream = soak->stream;
  run.work = manager_work;
  run.user = &soak->manager_tensors;
  run.synchronize = synchronize;
  CHECK(gcap_graph_manager_run(soak->manager, &run));
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  options.synchronize = synchronize;
  const gcap_tensor_t input = tensor_of(soak->session_tensors.x), output = tensor_of(soak->session_tensors.y);
  CHECK(gcap_session_run(soak->session, &options, &input, &output));
}

// What the soak is about has happened.
static void check_counters(const soak_t* soak, unsigned long rounds) {
  gcap_graph_manager_t* graphs = NULL;
  CHECK(gcap_runtime_graphs(soak->runtime, &graphs));
  gcap_graph_info_t info;
  uint64_t evictions = 0, replays = 0;
  for (int id = 0; id < kResidentIds + kPassingIds; ++id) {
    gcap_graph_manager_get_info(graphs, id, &info);
    evictions += info.evictions;
    replays += info.replays;
  }
  gcap_graph_manager_get_info(soak->manager, kManagerId, &info);
  printf("runtime: %llu replays, %llu evictions; manager: %llu replays, %llu updates in place\n",
         (unsigned long long)replays, (unsigned long long)evictions, (unsigned long long)info.replays,
         (unsigned long long)info.updates);
  expect(replays >= kResidentIds * (rounds - 2), "the runtime did not replay");
  expect(info.replays >= rounds - 2, "the manager did not replay");
  expect(evictions > 0 && info.updates > 0, "nothing was evicted or updated: too few replays for a soak");
}

static void end(soak_t* soak) {
  CHECK(gcap_runtime_synchronize(soak->runtime));
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK(gcap_session_destroy(soak->session));
  CHECK(gcap_ep_destroy(soak->ep));
  CHECK(gcap_runtime_destroy(soak->runtime));
  CHECK(gcap_graph_manager_destroy(soak->manager));
  CHECK_CUDA(cudaStreamDestroy(soak->stream));
  check_and_free(soak->session_tensors);
  check_and_free(soak->runtime_tensors);
  CHECK_CUDA(cudaFree(soak->manager_tensors.x));
  CHECK_CUDA(cudaFree(soak->manager_tensors.y));
}

static unsigned long replays_asked_for(int argc, char** argv) {
  unsigned long replays = 20000;
  for (int i = 1; i < argc; ++i) {
    char rest;
    expect(sscanf(argv[i], "--replays=%lu%c", &replays, &rest) == 1, "allowed is --replays=N");
  }
  expect(replays >= 20000 && replays <= 10000000000ul, "allowed are 20,000 to 10^10 replays");
  return replays;
}

int main(int argc, char** argv) {
  const unsigned long rounds = (replays_asked_for(argc, argv) + kReplaysPerRound - 1) / kReplaysPerRound;
  soak_t soak = begin();
  memory_t first = {0, 0};
  bool flat = true;
  printf("%12s %14s %14s\n", "replays", "device bytes", "host bytes");
  for (unsigned long interval = 0; interval < kIntervals; ++interval) {
    const unsigned long last = rounds * (interval + 1) / kIntervals;
    for (unsigned long round = rounds * interval / kIntervals; round < last; ++round) round_of_replays(&soak, round);
    CHECK_CUDA(cudaDeviceSynchronize());
    const memory_t now = memory_in_use();
    printf("%12lu %14zu %14zu\n", last * kReplaysPerRound, now.device, now.host);
    fflush(stdout);
    if (interval == 1) first = now;
    flat = flat && (interval < 2 || (now.device <= first.device + kAllowance && now.host <= first.host + kAllowance));
  }
  check_counters(&soak, rounds);
  end(&soak);
  printf("%s\n", flat ? "memory is flat" : "FAILED: memory grows");
  return flat ? 0 : 1;
}
