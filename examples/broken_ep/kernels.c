// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The provider's one kernel: its launcher, and its CPU twin for the simulator. In a provider with a GPU build,
// scale_kernel is a __global__ function that nvcc compiles, and the twin stands in a file of its own that only tests
// link.
#include <stdlib.h>

#include "examples/broken_ep/broken_ep.h"
#include "gcap_sim.h"

// Only lends its address, which is the kernel's handle.
static void scale_kernel(const float* input, float factor, float* output) {
  (void)input, (void)factor, (void)output;
  abort();
}

cudaError_t launch_scale(const float* input, float factor, float* output, cudaStream_t stream) {
  void* args[] = {&input, &factor, &output};
  const dim3 grid = {ELEMENTS / 256, 1, 1}, block = {256, 1, 1};
  return cudaLaunchKernel((const void*)scale_kernel, grid, block, args, 0, stream);
}

typedef struct scale_args {
  const float* input;
  float factor;
  float* output;
} scale_args_t;

static scale_args_t unpack(void* const* args) {
  return (scale_args_t){*(const float**)args[0], *(const float*)args[1], *(float**)args[2]};
}

static void run(const gcap_sim_launch_t* launch, void* const* args) {
  (void)launch;
  const scale_args_t a = unpack(args);
  for (int i = 0; i < ELEMENTS; ++i) a.output[i] = a.factor * a.input[i];
}

static size_t accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  (void)launch;
  const scale_args_t a = unpack(args);
  const gcap_sim_access_t all[] = {{a.input, BYTES, 0}, {a.output, BYTES, 1}};
  for (size_t i = 0; i < 2 && i < capacity; ++i) out[i] = all[i];
  return 2;
}

__attribute__((constructor)) static void register_twin(void) {
  static const size_t arg_bytes[] = {sizeof(const float*), sizeof(float), sizeof(float*)};
  gcap_sim_register_kernel(&(gcap_sim_kernel_t){.function = (const void*)scale_kernel,
                                                .name = "scale",
                                                .arg_bytes = arg_bytes,
                                                .num_args = 3,
                                                .run = run,
                                                .accesses = accesses});
}
