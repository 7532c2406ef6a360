// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A staging buffer freed after the capture. The capture keeps the buffer's address, not what is in it: each replay
// reads that address again, whoever has it by then.
#include "examples/broken_ep/broken_ep.h"

// Captures an upload from `table`, a pinned buffer, and a kernel that reads what arrived.
static cudaError_t capture(const float* table, ep_t* ep, cudaGraphExec_t* exec) {
  cudaGraph_t graph = NULL;
  TRY(cudaStreamBeginCapture(ep->compute, cudaStreamCaptureModeThreadLocal));
  TRY(cudaMemcpyAsync(ep->input, table, BYTES, cudaMemcpyHostToDevice, ep->compute));
  TRY(launch_scale(ep->input, 2.0f, ep->output, ep->compute));
  TRY(cudaStreamEndCapture(ep->compute, &graph));
  TRY(cudaGraphInstantiate(exec, graph, 0));
  return cudaGraphDestroy(graph);
}

static cudaError_t make_table(float** table) {
  TRY(cudaMallocHost((void**)table, BYTES));
  for (int i = 0; i < ELEMENTS; ++i) (*table)[i] = (float)i;
  return cudaSuccess;
}

static cudaError_t replay(cudaGraphExec_t exec, ep_t* ep) {
  for (int run = 0; run < 3; ++run) TRY(cudaGraphLaunch(exec, ep->compute));
  return cudaStreamSynchronize(ep->compute);
}

cudaError_t stale_staging_broken(ep_t* ep) {
  float* table = NULL;
  cudaGraphExec_t exec = NULL;
  TRY(make_table(&table));
  TRY(capture(table, ep, &exec));
  TRY(cudaFreeHost(table));
  TRY(replay(exec, ep));
  return cudaGraphExecDestroy(exec);
}

cudaError_t stale_staging_repaired(ep_t* ep) {
  float* table = NULL;
  cudaGraphExec_t exec = NULL;
  TRY(make_table(&table));
  TRY(capture(table, ep, &exec));
  TRY(replay(exec, ep));
  TRY(cudaGraphExecDestroy(exec));
  return cudaFreeHost(table);
}
