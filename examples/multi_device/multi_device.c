// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Several devices: an EP and a session for each, made with the option device_id. Each has streams, memory and graphs of
// its own on its device. So one thread keeps all devices busy: it issues all runs without a wait, and waits at the end.
// It never sets the current device: gcap does that where CUDA needs it, and sets it back. With two devices it prints:
//
//     device 0 of 2: run 4 was a replay, y = (13, 23), read from memory of device 0
//     device 1 of 2: run 4 was a replay, y = (103, 203), read from memory of device 1
//     the current device was 0, and is 0

#include <stdio.h>

#include "examples/lesson_ep/lesson_ep.h"
#include "gcap/kit/session.h"

#define MAX_DEVICES 16
#define NUM_RUNS 4  // two warm up, the third is captured, the fourth replays

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

// What there is for each device.
typedef struct lane {
  gcap_ep_t* ep;
  gcap_session_t* session;
  gcap_run_resources_t resources;  // the stream and the memory of the EP's runs
  gcap_tensor_t x, y;
  bool replayed;  // the last run
} lane_t;

// y = x + bias, with another bias on each device. The model may end once its session is created.
static gcap_status_t create_session(lane_t* lane, int device) {
  const float tens = device == 0 ? 10 : 100 * (float)device;
  const float bias[2] = {tens, 2 * tens};
  const gcap_value_t values[] = {
      {.name = "x", .rank = 1, .shape = {2}},
      {.name = "bias", .rank = 1, .shape = {2}, .host_data = bias},
      {.name = "y", .rank = 1, .shape = {2}},
  };
  const gcap_node_t node = {"Add", "add", (const int[]){0, 1}, 2, (const int[]){2}, 1, NULL};
  const gcap_model_t model = {values, 3, &node, 1, (const int[]){0}, 1, (const int[]){2}, 1, NULL, 0};
  return gcap_session_create(&model, &lane->ep, 1, /*options=*/NULL, &lane->session);
}

static gcap_status_t begin(lane_t* lane, int device) {
  char number[16];
  snprintf(number, sizeof(number), "%d", device);
  const char* keys[] = {"enable_cuda_graph", "device_id"};
  const char* texts[] = {"1", number};
  GCAP_RETURN_IF_ERROR(lesson_ep_create(keys, texts, 2, GCAP_GRAPH_ALL_NODES_ON_EP, &lane->ep));
  GCAP_RETURN_IF_ERROR(create_session(lane, device));
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(gcap_ep_runtime(lane->ep), &lane->resources));
  lane->x = lane->y = (gcap_tensor_t){.rank = 1, .shape = {2}};
  gcap_allocator_t* memory = lane->resources.allocator;
  GCAP_RETURN_IF_ERROR(gcap_allocator_alloc(memory, gcap_tensor_bytes(&lane->x), &lane->x.data));
  return gcap_allocator_alloc(memory, gcap_tensor_bytes(&lane->y), &lane->y.data);
}

// Copy in, run, copy out, and no wait. (A copy may go to a stream of any device; a kernel may not.)
static gcap_status_t issue(lane_t* lane, const float in[2], float out[2]) {
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  options.synchronize = false;
  lane->replayed = gcap_runtime_is_captured(gcap_ep_runtime(lane->ep), options.graph_id);
  cudaStream_t stream = gcap_stream_handle(lane->resources.stream);
  const size_t bytes = gcap_tensor_bytes(&lane->x);
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(lane->x.data, in, bytes, cudaMemcpyHostToDevice, stream)));
  GCAP_RETURN_IF_ERROR(gcap_session_run(lane->session, &options, &lane->x, &lane->y));
  return GCAP_CUDA(cudaMemcpyAsync(out, lane->y.data, bytes, cudaMemcpyDeviceToHost, stream));
}

static gcap_status_t show(const lane_t* lane, int device, int num_devices, const float out[2]) {
  struct cudaPointerAttributes attributes;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaPointerGetAttributes(&attributes, lane->y.data)));
  printf("device %d of %d: run %d was %s, y = (%g, %g), read from memory of device %d\n", device, num_devices, NUM_RUNS,
         lane->replayed ? "a replay" : "no replay", out[0], out[1], attributes.device);
  return NULL;
}

static gcap_status_t end(lane_t* lane) {
  GCAP_RETURN_IF_ERROR(gcap_session_destroy(lane->session));
  GCAP_RETURN_IF_ERROR(gcap_allocator_free(lane->resources.allocator, lane->y.data));
  GCAP_RETURN_IF_ERROR(gcap_allocator_free(lane->resources.allocator, lane->x.data));
  return gcap_ep_destroy(lane->ep);
}

int main(void) {
  int count = 0, before = 0, after = 0;
  TRY(GCAP_CUDA(cudaGetDeviceCount(&count)));
  TRY(GCAP_CUDA(cudaGetDevice(&before)));
  if (count > MAX_DEVICES) count = MAX_DEVICES;
  float(*in)[2], (*out)[2];  // page-locked: else a copy is not asynchronous
  TRY(GCAP_CUDA(cudaHostAlloc((void**)&in, NUM_RUNS * sizeof(*in), cudaHostAllocPortable)));
  TRY(GCAP_CUDA(cudaHostAlloc((void**)&out, MAX_DEVICES * sizeof(*out), cudaHostAllocPortable)));

  lane_t lanes[MAX_DEVICES];
  for (int device = 0; device < count; ++device) TRY(begin(&lanes[device], device));
  for (int run = 0; run < NUM_RUNS; ++run) {
    in[run][0] = in[run][1] = (float)run;
    for (int device = 0; device < count; ++device) TRY(issue(&lanes[device], in[run], out[device]));
  }
  for (int device = 0; device < count; ++device) TRY(gcap_runtime_synchronize(gcap_ep_runtime(lanes[device].ep)));
  for (int device = 0; device < count; ++device) TRY(show(&lanes[device], device, count, out[device]));
  for (int device = 0; device < count; ++device) TRY(end(&lanes[device]));
  TRY(GCAP_CUDA(cudaGetDevice(&after)));
  printf("the current device was %d, and is %d\n", before, after);

  TRY(GCAP_CUDA(cudaFreeHost(out)));
  TRY(GCAP_CUDA(cudaFreeHost(in)));
  return 0;
}
