// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch freed too early. The scratch comes from the pool in the order of the copy stream, a kernel on the compute
// stream reads it, and the free is in the order of the copy stream again, which knows nothing of the kernel: the pool
// may give the memory to somebody else while the kernel runs.
#include "examples/broken_ep/broken_ep.h"

// Allocates scratch and uploads into it on the copy stream, then computes from it on the compute stream.
static cudaError_t run_with_scratch(ep_t* ep, void** scratch) {
  TRY(cudaMallocAsync(scratch, BYTES, ep->copy));
  TRY(cudaMemcpyAsync(*scratch, ep->staging, BYTES, cudaMemcpyHostToDevice, ep->copy));
  TRY(cudaEventRecord(ep->event, ep->copy));
  TRY(cudaStreamWaitEvent(ep->compute, ep->event, 0));
  return launch_scale(*scratch, 2.0f, ep->output, ep->compute);
}

cudaError_t early_free_broken(ep_t* ep) {
  void* scratch = NULL;
  TRY(run_with_scratch(ep, &scratch));
  return cudaFreeAsync(scratch, ep->copy);
}

cudaError_t early_free_repaired(ep_t* ep) {
  void* scratch = NULL;
  TRY(run_with_scratch(ep, &scratch));
  TRY(cudaEventRecord(ep->event, ep->compute));
  TRY(cudaStreamWaitEvent(ep->copy, ep->event, 0));
  return cudaFreeAsync(scratch, ep->copy);
}
