// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap on a stream of the application (user_compute_stream). The application copies frames in and results out on its
// own stream, and gcap's runs come between the copies: eager, captured, replayed, all on that stream. So nothing needs
// an event or a wait in between; the application waits once, at the end. gcap captures the stream and leaves it alone:
// the stream outlives the runtime. It prints:
//
//     frame 1 of 5: runs eagerly, result 1
//     frame 2 of 5: runs eagerly, result 2
//     frame 3 of 5: is captured, result 3
//     frame 4 of 5: replays, result 4
//     frame 5 of 5: replays, result 5
//     the stream is still the application's: it copied 42

#include <stdio.h>

#include "gcap/runtime.h"

#define NUM_FRAMES 5

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

typedef struct buffers {
  unsigned char* input;  // one byte each, on the device
  unsigned char* output;
  unsigned char* frames;  // NUM_FRAMES bytes each, page-locked
  unsigned char* results;
} buffers_t;

// What a run does. The stream of `run` is the application's.
static gcap_status_t process(void* user, const gcap_run_resources_t* run) {
  const buffers_t* buffers = user;
  return GCAP_CUDA(
      cudaMemcpyAsync(buffers->output, buffers->input, 1, cudaMemcpyDeviceToDevice, gcap_stream_handle(run->stream)));
}

static gcap_status_t create_runtime(cudaStream_t stream, gcap_runtime_t** out_runtime) {
  char address[32];
  snprintf(address, sizeof(address), "%p", (void*)stream);
  const char* keys[] = {"enable_cuda_graph", "user_compute_stream"};
  const char* values[] = {"1", address};
  gcap_options_t options;
  gcap_options_init(&options);
  GCAP_RETURN_IF_ERROR(gcap_options_parse(&options, keys, values, 2));
  return gcap_runtime_create(&options, out_runtime);
}

static const char* next_run(gcap_runtime_t* runtime) {
  if (gcap_runtime_is_captured(runtime, /*graph_id=*/0)) return "replays";
  gcap_graph_manager_t* graphs = NULL;
  gcap_graph_info_t info;
  gcap_status_ignore(gcap_runtime_graphs(runtime, &graphs));  // without one, nothing is captured next
  gcap_graph_manager_get_info(graphs, /*id=*/0, &info);
  return info.captures_next ? "is captured" : "runs eagerly";
}

// One frame: copy in, run, copy out. Nothing here waits.
static gcap_status_t issue_frame(gcap_runtime_t* runtime, cudaStream_t stream, buffers_t* buffers, int frame) {
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(buffers->input, &buffers->frames[frame], 1, cudaMemcpyHostToDevice, stream)));
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = 0;
  run.work = process;
  run.user = buffers;
  GCAP_RETURN_IF_ERROR(gcap_runtime_run(runtime, &run));
  return GCAP_CUDA(cudaMemcpyAsync(&buffers->results[frame], buffers->output, 1, cudaMemcpyDeviceToHost, stream));
}

int main(void) {
  buffers_t buffers;
  TRY(GCAP_CUDA(cudaMalloc((void**)&buffers.input, 1)));
  TRY(GCAP_CUDA(cudaMalloc((void**)&buffers.output, 1)));
  TRY(GCAP_CUDA(cudaHostAlloc((void**)&buffers.frames, NUM_FRAMES, 0)));
  TRY(GCAP_CUDA(cudaHostAlloc((void**)&buffers.results, NUM_FRAMES, 0)));
  for (int frame = 0; frame < NUM_FRAMES; ++frame) buffers.frames[frame] = (unsigned char)(frame + 1);
  cudaStream_t stream;
  TRY(GCAP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)));

  gcap_runtime_t* runtime = NULL;
  TRY(create_runtime(stream, &runtime));
  const char* ways[NUM_FRAMES];
  for (int frame = 0; frame < NUM_FRAMES; ++frame) {
    ways[frame] = next_run(runtime);
    TRY(issue_frame(runtime, stream, &buffers, frame));
  }
  TRY(GCAP_CUDA(cudaStreamSynchronize(stream)));
  for (int frame = 0; frame < NUM_FRAMES; ++frame) {
    printf("frame %d of %d: %s, result %d\n", frame + 1, NUM_FRAMES, ways[frame], buffers.results[frame]);
  }
  TRY(gcap_runtime_destroy(runtime));

  buffers.frames[0] = 42;
  TRY(GCAP_CUDA(cudaMemcpyAsync(&buffers.results[0], &buffers.frames[0], 1, cudaMemcpyHostToHost, stream)));
  TRY(GCAP_CUDA(cudaStreamSynchronize(stream)));
  printf("the stream is still the application's: it copied %d\n", buffers.results[0]);
  TRY(GCAP_CUDA(cudaStreamDestroy(stream)));
  TRY(GCAP_CUDA(cudaFreeHost(buffers.results)));
  TRY(GCAP_CUDA(cudaFreeHost(buffers.frames)));
  TRY(GCAP_CUDA(cudaFree(buffers.output)));
  TRY(GCAP_CUDA(cudaFree(buffers.input)));
  return 0;
}
