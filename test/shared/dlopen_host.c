// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A host that is linked with no CUDA: it opens the libraries while it runs, each for itself alone, as an interpreter
// does with its modules, and closes them while a thread that used them lives on.
//   dlopen_host

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int num_bad;

static void expect(int holds, const char* what) {
  if (holds) return;
  printf("FAILED: %s\n", what);
  ++num_bad;
}

static void* open_library(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) printf("FAILED: %s\n", dlerror());
  return library;
}

// Functions and data pointers are alike wherever dlsym exists, but C does not convert them.
#define LOOK_UP(library, name)                       \
  __extension__({                                    \
    __typeof__(&name) function_ = NULL;              \
    void* symbol_ = dlsym(library, #name);           \
    memcpy(&function_, &symbol_, sizeof(function_)); \
    function_;                                       \
  })

typedef struct used {
  void* runtime;
  pthread_barrier_t issued, closed;
} used_t;

// Leaves work on its own default stream, and ends once the libraries are closed.
static void* use(void* argument) {
  used_t* used = argument;
  void* memory = NULL;
  expect(LOOK_UP(used->runtime, cudaMalloc)(&memory, 64) == cudaSuccess, "a thread allocates");
  expect(LOOK_UP(used->runtime, cudaMemsetAsync)(memory, 1, 64, cudaStreamPerThread) == cudaSuccess, "a thread fills");
  expect(LOOK_UP(used->runtime, cudaFree)(memory) == cudaSuccess, "a thread frees");
  pthread_barrier_wait(&used->issued);
  pthread_barrier_wait(&used->closed);
  return NULL;
}

static void close_under_a_thread(void* runtime, void* dnn) {
  used_t used = {.runtime = runtime};
  pthread_t thread;
  pthread_barrier_init(&used.issued, NULL, 2);
  pthread_barrier_init(&used.closed, NULL, 2);
  pthread_create(&thread, NULL, use, &used);
  pthread_barrier_wait(&used.issued);
  expect(dlclose(dnn) == 0 && dlclose(runtime) == 0, "the libraries close");
  pthread_barrier_wait(&used.closed);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&used.closed);
  pthread_barrier_destroy(&used.issued);
}

int main(void) {
  void* runtime = open_library("libcudart.so.13");
  void* dnn = open_library("libcudnn.so.9");
  if (runtime == NULL || dnn == NULL) return 1;
  expect(dlsym(RTLD_DEFAULT, "cudaMalloc") == NULL, "RTLD_LOCAL gives nobody else cudaMalloc");
  expect(dlvsym(runtime, "cudaMalloc", "libcudart.so.13") == dlsym(runtime, "cudaMalloc"), "cudaMalloc has a version");
  expect(dlsym(runtime, "cudnnCreate") == NULL, "the runtime has no function of cuDNN");
  expect(dlsym(dnn, "cudaMalloc") == NULL, "cuDNN has no function of the runtime");

  // Both libraries have one simulator: cuDNN takes the runtime's stream.
  cudaStream_t stream;
  cudnnHandle_t handle;
  void* kept;
  expect(LOOK_UP(runtime, cudaStreamCreateWithFlags)(&stream, cudaStreamNonBlocking) == cudaSuccess, "a stream");
  expect(LOOK_UP(dnn, cudnnCreate)(&handle) == CUDNN_STATUS_SUCCESS, "a handle");
  expect(LOOK_UP(dnn, cudnnSetStream)(handle, stream) == CUDNN_STATUS_SUCCESS, "a handle with a stream");
  expect(LOOK_UP(dnn, cudnnDestroy)(handle) == CUDNN_STATUS_SUCCESS, "the end of a handle");
  expect(LOOK_UP(runtime, cudaStreamDestroy)(stream) == cudaSuccess, "the end of a stream");
  expect(LOOK_UP(runtime, cudaMalloc)(&kept, 64) == cudaSuccess, "memory");
  close_under_a_thread(runtime, dnn);

  runtime = open_library("libcudart.so.13");
  if (runtime == NULL) return 1;
  expect(LOOK_UP(runtime, cudaFree)(kept) == cudaSuccess, "memory of before is known when the runtime is opened again");
  cudaEvent_t forgotten;
  expect(LOOK_UP(runtime, cudaEventCreate)(&forgotten) == cudaSuccess, "an event");
  expect(dlclose(runtime) == 0, "the runtime closes");
  printf("%d expectations failed\n", num_bad);
  return num_bad != 0;
}
