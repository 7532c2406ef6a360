// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An allocation inside a capture. The operator makes its workspace when it first runs, and its first run is captured:
// cudaMalloc may wait for the device, so it is refused, and the capture is invalid from there on.
#include "examples/broken_ep/broken_ep.h"

typedef struct operator_state {
  float* workspace;
} operator_state_t;

static cudaError_t prepare(operator_state_t* op) {
  return op->workspace ? cudaSuccess : cudaMalloc((void**)&op->workspace, BYTES);
}

static cudaError_t compute(operator_state_t* op, ep_t* ep) {
  TRY(prepare(op));
  TRY(launch_scale(ep->input, 2.0f, op->workspace, ep->compute));
  return launch_scale(op->workspace, 3.0f, ep->output, ep->compute);
}

// Captures the operator; *graph is NULL when that fails. The stream is out of its capture either way.
static cudaError_t capture(operator_state_t* op, ep_t* ep, cudaGraph_t* graph) {
  TRY(cudaStreamBeginCapture(ep->compute, cudaStreamCaptureModeGlobal));
  cudaError_t computed = compute(op, ep);
  cudaError_t ended = cudaStreamEndCapture(ep->compute, graph);
  return computed != cudaSuccess ? computed : ended;
}

// Captures and replays the operator, and where that fails runs it without a graph, as providers do. The results are
// right then, but the graph that was to make it fast is never made, and nobody is told.
static cudaError_t run(operator_state_t* op, ep_t* ep) {
  TRY(cudaMemsetAsync(ep->input, 0, BYTES, ep->compute));
  cudaGraph_t graph = NULL;
  if (capture(op, ep, &graph) != cudaSuccess) {
    (void)cudaGetLastError();  // the failed capture's; the eager run below answers for itself
    return compute(op, ep);
  }
  cudaGraphExec_t exec = NULL;
  TRY(cudaGraphInstantiate(&exec, graph, 0));
  TRY(cudaGraphDestroy(graph));
  TRY(cudaGraphLaunch(exec, ep->compute));
  return cudaGraphExecDestroy(exec);
}

static cudaError_t finish(operator_state_t* op, ep_t* ep) {
  TRY(cudaStreamSynchronize(ep->compute));
  return cudaFree(op->workspace);
}

cudaError_t allocation_in_capture_broken(ep_t* ep) {
  operator_state_t op = {0};
  TRY(run(&op, ep));
  return finish(&op, ep);
}

cudaError_t allocation_in_capture_repaired(ep_t* ep) {
  operator_state_t op = {0};
  TRY(prepare(&op));
  TRY(run(&op, ep));
  return finish(&op, ep);
}
