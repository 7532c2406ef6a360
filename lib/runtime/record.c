// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// One more capture of a work, for who compares it with the graph of its id: from the reservation of that graph, so that
// what both take from scratch lies alike.
//
// Locking: as gcap_runtime_run.

#include "gcap/capture.h"
#include "lib/graph/inner.h"
#include "lib/runtime/forks.h"
#include "lib/runtime/inner.h"
#include "lib/runtime/runtime_internal.h"
#include "lib/runtime/thread_context.h"

// A work that is recorded.
typedef struct recorded {
  gcap_own_runtime_t* runtime;
  gcap_stream_t* stream;
  int graph_id;
  gcap_status_t (*work)(void* user);
  void* user;
} recorded_t;

static gcap_status_t record_in_reservation(void* user, const gcap_run_resources_t* resources) {
  (void)resources;  // those of the run that is begun in the scope
  const recorded_t* recorded = user;
  GCAP_RETURN_IF_ERROR(gcap_graph_memory_reserve(&recorded->runtime->graph_memory, recorded->stream, recorded->graph_id,
                                                 gcap_capture_current()));
  return recorded->work(recorded->user);
}

gcap_status_t gcap_runtime_record(gcap_runtime_t* runtime, int graph_id, gcap_status_t (*work)(void* user), void* user,
                                  struct gcap_graph_recording* recording) {
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->own->contexts, &context));
  recorded_t recorded = {runtime->own, gcap_thread_context_stream(context), graph_id, work, user};
  gcap_graph_memory_prepare(&runtime->own->graph_memory, recorded.stream, graph_id);
  gcap_forks_prepare(runtime->own, gcap_graph_memory_work(graph_id));
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = graph_id;
  run.work = record_in_reservation;
  run.user = &recorded;
  const gcap_run_resources_t resources = {.struct_size = sizeof(resources),
                                          .cuda_stream = gcap_stream_handle(recorded.stream)};
  return gcap_graph_record(&run, &resources, &runtime->own->options.graph.capture, recording);
}
