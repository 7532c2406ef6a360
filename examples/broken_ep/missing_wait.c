// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A wait between two streams that is missing. The upload runs on a stream of its own, and the kernel reads the input
// while it may still be on its way. It works as long as the copy engine is quick enough: a race.
#include "examples/broken_ep/broken_ep.h"

cudaError_t missing_wait_broken(ep_t* ep) {
  TRY(cudaMemcpyAsync(ep->input, ep->staging, BYTES, cudaMemcpyHostToDevice, ep->copy));
  return launch_scale(ep->input, 2.0f, ep->output, ep->compute);
}

cudaError_t missing_wait_repaired(ep_t* ep) {
  TRY(cudaMemcpyAsync(ep->input, ep->staging, BYTES, cudaMemcpyHostToDevice, ep->copy));
  TRY(cudaEventRecord(ep->event, ep->copy));
  TRY(cudaStreamWaitEvent(ep->compute, ep->event, 0));
  return launch_scale(ep->input, 2.0f, ep->output, ep->compute);
}
