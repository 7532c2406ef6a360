// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// One thread's work. The device buffers are bound once and keep their addresses: a graph bakes them in, and a new batch
// only changes their contents. Uploads and downloads go on the provider's stream, so they are ordered with the runs.

#include "examples/minimal_ep/digits/workload.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define IMAGE_BYTES (REFERENCE_IMAGE_PIXELS * sizeof(float))
#define PROBABILITY_BYTES (REFERENCE_CLASSES * sizeof(float))

typedef struct buffers {
  float* host_images;  // page-locked, [batch][1][8][8]
  float* host_eager;   // page-locked, [batch][10]
  float* host_replay;
  gcap_tensor_t images;  // on the device
  gcap_tensor_t probabilities;
  gcap_run_resources_t resources;
} buffers_t;

static gcap_status_t buffers_init(const workload_t* workload, buffers_t* buffers) {
  *buffers = (buffers_t){0};
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(gcap_ep_runtime(workload->ep), &buffers->resources));
  size_t batch = workload->batch;
  buffers->images =
      (gcap_tensor_t){.rank = 4, .shape = {(int64_t)batch, 1, REFERENCE_IMAGE_SIDE, REFERENCE_IMAGE_SIDE}};
  buffers->probabilities = (gcap_tensor_t){.rank = 2, .shape = {(int64_t)batch, REFERENCE_CLASSES}};
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaHostAlloc((void**)&buffers->host_images, batch * IMAGE_BYTES, 0)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaHostAlloc((void**)&buffers->host_eager, batch * PROBABILITY_BYTES, 0)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaHostAlloc((void**)&buffers->host_replay, batch * PROBABILITY_BYTES, 0)));
  gcap_allocator_t* allocator = buffers->resources.allocator;
  GCAP_RETURN_IF_ERROR(gcap_allocator_reserve(allocator, batch * IMAGE_BYTES, &buffers->images.data));
  return gcap_allocator_reserve(allocator, batch * PROBABILITY_BYTES, &buffers->probabilities.data);
}

static gcap_status_t free_host(float* memory) { return memory == NULL ? NULL : GCAP_CUDA(cudaFreeHost(memory)); }

static gcap_status_t buffers_deinit(buffers_t* buffers) {
  if (buffers->resources.allocator == NULL) return NULL;
  gcap_status_t status = gcap_stream_synchronize(buffers->resources.stream);
  status = gcap_status_join(status, free_host(buffers->host_images));
  status = gcap_status_join(status, free_host(buffers->host_eager));
  status = gcap_status_join(status, free_host(buffers->host_replay));
  gcap_allocator_t* allocator = buffers->resources.allocator;
  status = gcap_status_join(status, gcap_allocator_free(allocator, buffers->images.data));
  return gcap_status_join(status, gcap_allocator_free(allocator, buffers->probabilities.data));
}

// Puts images [first, first + batch) on the device; what lies behind the last image is zero.
static gcap_status_t upload(const workload_t* workload, buffers_t* buffers, size_t first) {
  size_t left = workload->digits->count - first;
  size_t num_images = left < workload->batch ? left : workload->batch;
  const float* images = (const float*)workload->digits->images.data + first * REFERENCE_IMAGE_PIXELS;
  memset(buffers->host_images, 0, workload->batch * IMAGE_BYTES);
  memcpy(buffers->host_images, images, num_images * IMAGE_BYTES);
  return GCAP_CUDA(cudaMemcpyAsync(buffers->images.data, buffers->host_images, workload->batch * IMAGE_BYTES,
                                   cudaMemcpyHostToDevice, gcap_stream_handle(buffers->resources.stream)));
}

static gcap_run_options_t run_options(int graph_id, bool synchronize) {
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  options.graph_id = graph_id;
  options.synchronize = synchronize;
  return options;
}

// Runs the uploaded batch with `graph_id` and brings the probabilities to `host`.
static gcap_status_t classify(const workload_t* workload, buffers_t* buffers, int graph_id, float* host) {
  const gcap_run_options_t options = run_options(graph_id, workload->synchronize);
  GCAP_RETURN_IF_ERROR(gcap_session_run(workload->session, &options, &buffers->images, &buffers->probabilities));
  gcap_stream_t* stream = buffers->resources.stream;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(host, buffers->probabilities.data, workload->batch * PROBABILITY_BYTES,
                                                 cudaMemcpyDeviceToHost, gcap_stream_handle(stream))));
  return gcap_stream_synchronize(stream);
}

// The larger of `largest` and the largest |a − b|; a NaN counts as infinite.
static double max_abs_diff(double largest, const float* a, const float* b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    double diff = fabs((double)a[i] - (double)b[i]);
    if (!(diff <= largest)) largest = isnan(diff) ? INFINITY : diff;
  }
  return largest;
}

static void compare(const workload_t* workload, const buffers_t* buffers, size_t first, workload_result_t* result) {
  size_t left = workload->digits->count - first;
  size_t num_images = left < workload->batch ? left : workload->batch;
  size_t num_values = num_images * REFERENCE_CLASSES;
  const float* reference = workload->reference + first * REFERENCE_CLASSES;
  result->max_abs_diff_reference =
      max_abs_diff(result->max_abs_diff_reference, buffers->host_eager, reference, num_values);
  const float* final = buffers->host_eager;
  if (workload->use_graph) {
    final = buffers->host_replay;
    result->max_abs_diff_reference = max_abs_diff(result->max_abs_diff_reference, final, reference, num_values);
    result->max_abs_diff_eager_replay =
        max_abs_diff(result->max_abs_diff_eager_replay, buffers->host_eager, final, num_values);
  }
  const int32_t* labels = (const int32_t*)workload->digits->labels.data + first;
  for (size_t i = 0; i < num_images; ++i) {
    size_t best = reference_argmax(final + i * REFERENCE_CLASSES, REFERENCE_CLASSES);
    result->correct += best == (size_t)labels[i];
  }
}

static void count_eager(void* user, size_t index, size_t total, const gcap_run_result_t* result) {
  (void)index, (void)total;
  *(size_t*)user += result->outcome == GCAP_RUN_EAGER;
}

static gcap_status_t classify_all(const workload_t* workload, buffers_t* buffers, int graph_id,
                                  workload_result_t* result) {
  if (workload->use_graph) {
    GCAP_RETURN_IF_ERROR(upload(workload, buffers, 0));
    const gcap_run_options_t options = run_options(graph_id, true);
    const gcap_warm_up_run_t run = {&options, &buffers->images, &buffers->probabilities};
    GCAP_RETURN_IF_ERROR(gcap_session_warm_up(workload->session, &run, 1, count_eager, &result->eager_warm_ups));
  }
  for (size_t first = 0; first < workload->digits->count; first += workload->batch) {
    GCAP_RETURN_IF_ERROR(upload(workload, buffers, first));
    GCAP_RETURN_IF_ERROR(classify(workload, buffers, GCAP_GRAPH_ID_NONE, buffers->host_eager));
    if (workload->use_graph) GCAP_RETURN_IF_ERROR(classify(workload, buffers, graph_id, buffers->host_replay));
    compare(workload, buffers, first, result);
  }
  return NULL;
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static gcap_status_t time_runs(const workload_t* workload, buffers_t* buffers, int graph_id, uint64_t* samples_ns) {
  const gcap_run_options_t options = run_options(graph_id, workload->synchronize);
  for (size_t i = 0; i < workload->runs; ++i) {
    uint64_t begin_ns = now_ns();
    GCAP_RETURN_IF_ERROR(gcap_session_run(workload->session, &options, &buffers->images, &buffers->probabilities));
    samples_ns[i] = now_ns() - begin_ns;
  }
  return gcap_runtime_synchronize(gcap_ep_runtime(workload->ep));
}

gcap_status_t workload_run(const workload_t* workload, int graph_id, workload_result_t* result) {
  buffers_t buffers;
  gcap_status_t status = buffers_init(workload, &buffers);
  if (status == NULL) status = classify_all(workload, &buffers, graph_id, result);
  if (status == NULL) status = time_runs(workload, &buffers, GCAP_GRAPH_ID_NONE, result->eager_ns);
  if (status == NULL && workload->use_graph) status = time_runs(workload, &buffers, graph_id, result->replay_ns);
  gcap_graph_manager_t* graphs = NULL;
  if (status == NULL) status = gcap_runtime_graphs(gcap_ep_runtime(workload->ep), &graphs);
  gcap_graph_manager_get_info(graphs, graph_id, &result->graph);
  return gcap_status_join(status, buffers_deinit(&buffers));
}
