// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The order between the stream that captured a graph and another one that launches the graph: launches of one graph,
// and of graphs that share memory, are in the order of the stream that captured them. Each stream waits for the other
// by one event, which belongs to the graph.
//
// Locking: the manager's mutex. One wait of the host happens under the mutex: when a launch succeeded but the capturing
// stream could not be ordered after the launch, only a wait restores the order.

#include "lib/graph/manager.h"
#include "lib/internal/cuda_event.h"

static gcap_status_t prepare(gcap_graph_captured_t* captured) {
  if (captured->order != NULL) return NULL;
  return gcap_event_create(captured->device_id, &captured->order);
}

// Lets what `later` is given from now on come after all that `earlier` was given so far.
static gcap_status_t put_in_order(const gcap_graph_captured_t* captured, cudaStream_t earlier, cudaStream_t later) {
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(captured->order, earlier)));
  return GCAP_CUDA(cudaStreamWaitEvent(later, captured->order, 0));
}

// The launch is out, and the capturing stream does not know: waiting for it is as good.
static gcap_status_t recover(gcap_graph_captured_t* captured, cudaStream_t stream, gcap_status_t failure) {
  failure = gcap_status_annotate(failure, gcap_status_code(failure),
                                 "graph id %d was launched on stream %p, and was waited for since its order could not "
                                 "be told to stream %p",
                                 captured->id, (void*)stream, (void*)captured->stream);
  gcap_status_t waited = gcap_relaxed_synchronize(stream);
  if (waited != NULL) captured->stray = true;
  return gcap_status_join(failure, waited);
}

gcap_status_t gcap_graph_order_there(gcap_graph_captured_t* captured, cudaStream_t stream) {
  GCAP_RETURN_IF_ERROR(prepare(captured));
  return put_in_order(captured, captured->stream, stream);
}

gcap_status_t gcap_graph_order_back(gcap_graph_captured_t* captured, cudaStream_t stream) {
  if (stream == captured->stream) return NULL;
  gcap_status_t status = put_in_order(captured, stream, captured->stream);
  return status == NULL ? NULL : recover(captured, stream, status);
}
