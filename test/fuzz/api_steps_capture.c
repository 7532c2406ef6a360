// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Steps with captures: scopes with forks, close steps and what they retain; captures that the user begins without gcap;
// the graphs that come of them.
#include "lib/stream/inner.h"
#include "test/fuzz/api_world.h"

// --- Scopes ---------------------------------------------------------------------------------------------------------

static bool owns_current_scope(void) {
  return fuzz_world.scope != NULL && fuzz_world.scope == gcap_capture_current() &&
         fuzz_world.scope_in_sink == fuzz_world.in_sink;
}

static void close_step(void* user, bool committed) {
  (void)user;
  (void)committed;
  --fuzz_world.released;
  FUZZ_CHECK(gcap_capture_current() == NULL, "a scope is open while another ends");
  fuzz_reenter();
  fuzz_world.scope = NULL;  // what a step left open is aborted
}

static void begin_scope(void) {
  const int slot = fuzz_draw_stream();
  if (slot == FUZZ_USERS_STREAM) return;
  gcap_capture_options_t options;
  gcap_capture_options_init(&options);
  const unsigned how = fuzz_draw(16);
  options.mode = (gcap_capture_mode_t)(how % 4);  // 3 does not exist
  options.ledger_calls = how / 4 == 3 ? 0 : how / 4 * 5;
  gcap_capture_t* scope = NULL;
  const cudaStream_t stream =
      slot < 0 ? fuzz_world.raw[fuzz_draw(FUZZ_RAW_STREAMS)] : gcap_stream_handle(fuzz_world.streams[slot].stream);
  // An own scope that is open is aborted by this call.
  if (slot >= 0) ++fuzz_world.streams[slot].users;
  gcap_status_t status = gcap_capture_begin(stream, how == 0 ? NULL : &options, &scope);
  if (slot >= 0) --fuzz_world.streams[slot].users;
  fuzz_world.scope = gcap_capture_current() == fuzz_world.scope ? fuzz_world.scope : NULL;
  if (!fuzz_ok(status)) return;
  fuzz_world.scope = scope;
  fuzz_world.scope_stream = slot;
  fuzz_world.scope_in_sink = fuzz_world.in_sink;
}

static void keep_graph(cudaGraph_t graph, gcap_retained_t* retained, int stream) {
  for (int i = 0; i < FUZZ_GRAPHS; ++i) {
    if (fuzz_world.graphs[i].graph != NULL) continue;
    fuzz_world.graphs[i] = (fuzz_graph_t){.graph = graph, .retained = retained, .stream = stream};
    return;
  }
  fuzz_cuda(cudaGraphDestroy(graph));
  gcap_retained_release(retained);
}

static void end_scope(void) {
  gcap_capture_t* scope = fuzz_world.scope;
  const int stream = fuzz_world.scope_stream;
  cudaGraph_t graph = NULL;
  gcap_retained_t* retained = NULL;
  const bool ended = fuzz_ok(gcap_capture_end(scope, &graph, &retained));
  if (fuzz_world.scope == scope) fuzz_world.scope = NULL;  // a close step may have begun another
  FUZZ_CHECK(ended == (graph != NULL) && (ended || retained == NULL), "a graph beside a refusal");
  if (ended) keep_graph(graph, retained, stream);
}

static void abort_scope(void) {
  gcap_capture_t* scope = fuzz_world.scope;
  gcap_capture_abort(scope);
  if (fuzz_world.scope == scope) fuzz_world.scope = NULL;
}

static void register_with(gcap_capture_t* scope) {
  ++fuzz_world.released;
  const unsigned what = fuzz_draw(3);
  gcap_status_t status = what == 0   ? gcap_capture_on_close(scope, close_step, NULL)
                         : what == 1 ? gcap_capture_retain(scope, fuzz_release, /*bytes=*/NULL, NULL)
                                     : gcap_capture_retain(scope, fuzz_release, fuzz_retained_bytes, NULL);
  if (!fuzz_ok(status)) --fuzz_world.released;
}

static void fork_or_join(gcap_capture_t* scope, bool is_fork) {
  cudaStream_t streams[2];
  size_t count = 0;
  for (; count < 2; ++count) {
    const int slot = fuzz_draw_stream();
    if (slot < 0 || slot == FUZZ_USERS_STREAM) break;
    streams[count] = gcap_stream_handle(fuzz_world.streams[slot].stream);
    fuzz_world.streams[slot].forked = true;
  }
  fuzz_ok(is_fork ? gcap_capture_fork(scope, streams, count) : gcap_capture_join(scope, streams, count));
}

void fuzz_capture_step(void) {
  gcap_capture_t* scope = gcap_capture_current();  // perhaps a manager's
  gcap_capture_call_t calls[4];
  switch (fuzz_draw(12)) {
    case 0:
    case 1:
      // A scope that is begun in a manager's run aborts the manager's.
      if (scope == NULL || (fuzz_world.in_sink == 0 && fuzz_draw(4) == 0)) begin_scope();
      break;
    case 2:
    case 3:
    case 4:
      if (owns_current_scope()) end_scope();
      break;
    case 5:
      if (owns_current_scope()) abort_scope();
      break;
    case 6: fork_or_join(scope, /*is_fork=*/true); break;
    case 7: fork_or_join(scope, /*is_fork=*/false); break;
    case 8:
    case 9: register_with(scope); break;
    case 10:
      gcap_label("a label of the target");
      GCAP_CAPTURE_NOTE("a call of the target", gcap_capture_stream(scope));
      break;
    default:
      gcap_label(NULL);  // of none, or of an earlier step
      gcap_capture_get_calls(scope, calls, 4);
      if (fuzz_draw(4) == 0) {
        gcap_status_t cause = GCAP_STATUS(GCAP_UNAVAILABLE, "given up");
        gcap_capture_fail(scope, cause);
        gcap_status_free(cause);
      }
  }
}

// --- Captures without gcap ------------------------------------------------------------------------------------------

// Ends one and runs its graph once, so that its reservation may be released afterwards.
static void end_users_capture(cudaStream_t stream) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  if (!fuzz_cuda(cudaStreamEndCapture(stream, &graph)) || graph == NULL) return;
  if (fuzz_cuda(cudaGraphInstantiate(&exec, graph, 0))) {
    if (!fuzz_captures()) fuzz_cuda(cudaGraphLaunch(exec, stream));
    if (!gcap_thread_is_capturing()) fuzz_wait(stream);
    fuzz_cuda(cudaGraphExecDestroy(exec));
  }
  fuzz_cuda(cudaGraphDestroy(graph));
}

void fuzz_users_capture_step(void) {
  // On the stream that is kept for this, or behind gcap's back on one that managers and scopes use.
  const gcap_stream_t* wrapper = fuzz_world.streams[FUZZ_USERS_STREAM].stream;
  const unsigned which = fuzz_draw(2 * FUZZ_RAW_STREAMS);
  if (which >= FUZZ_RAW_STREAMS && (wrapper == NULL || !gcap_stream_can_capture(wrapper))) return;
  if (which >= FUZZ_RAW_STREAMS && fuzz_world.streams[FUZZ_USERS_STREAM].ends) return;
  const cudaStream_t stream = which < FUZZ_RAW_STREAMS ? fuzz_world.raw[which] : gcap_stream_handle(wrapper);
  void* memory;
  switch (fuzz_draw(6)) {
    case 0:
    case 1: fuzz_cuda(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)fuzz_draw(3))); break;
    case 2:
    case 3:
      // Of a scope's or a manager's stream gcap ends the capture.
      if (gcap_thread_is_capturing() || fuzz_capture_of(stream) == 0) break;
      end_users_capture(stream);
      break;
    case 4:
      // What breaks a capture.
      if (fuzz_cuda(cudaMalloc(&memory, 64))) fuzz_cuda(cudaFree(memory));
      break;
    default: fuzz_cuda(cudaStreamQuery(stream));
  }
}

// --- Graphs ---------------------------------------------------------------------------------------------------------

static bool end_graph(fuzz_graph_t* graph) {
  if (graph->exec != NULL && !fuzz_wait_for_devices()) return false;
  if (graph->exec != NULL) fuzz_cuda(cudaGraphExecDestroy(graph->exec));
  fuzz_cuda(cudaGraphDestroy(graph->graph));
  gcap_retained_t* retained = graph->retained;
  *graph = (fuzz_graph_t){.graph = NULL};
  gcap_retained_release(retained);
  return true;
}

void fuzz_graph_step(void) {
  fuzz_graph_t* graph = &fuzz_world.graphs[fuzz_draw(FUZZ_GRAPHS)];
  if (graph->graph == NULL) return;
  if (fuzz_draw(4) == 0) {
    if (!fuzz_captures()) end_graph(graph);
    return;
  }
  if (graph->stream < 0 || fuzz_captures()) return;
  if (graph->exec == NULL) fuzz_cuda(cudaGraphInstantiate(&graph->exec, graph->graph, 0));
  if (graph->exec != NULL) {
    fuzz_cuda(cudaGraphLaunch(graph->exec, gcap_stream_handle(fuzz_world.streams[graph->stream].stream)));
  }
}

// --- The end --------------------------------------------------------------------------------------------------------

static void end_capture_of(cudaStream_t stream) {
  for (int device = 0; device < FUZZ_DEVICES && fuzz_capture_of(stream) != 0; ++device) {
    fuzz_cuda(cudaSetDevice(device));
    end_users_capture(stream);
  }
  fuzz_cuda(cudaSetDevice(0));
}

static void end_users_captures(void) {
  end_capture_of(cudaStreamPerThread);
  for (int i = 0; i < FUZZ_RAW_STREAMS; ++i) end_capture_of(fuzz_world.raw[i]);
  for (int i = 0; i < FUZZ_STREAMS; ++i) {
    const gcap_stream_t* stream = fuzz_world.streams[i].stream;
    if (stream != NULL && gcap_stream_can_capture(stream)) end_capture_of(gcap_stream_handle(stream));
  }
}

void fuzz_end_captures(void) {
  // A close step may begin another scope, but the input ends.
  while (owns_current_scope()) abort_scope();
  FUZZ_CHECK(gcap_capture_current() == NULL, "a scope of nobody is open");
  end_users_captures();
  end_users_captures();  // some may have joined the capture of a later one, whose end it is
  FUZZ_CHECK(!fuzz_captures(), "a stream stays captured");
}

void fuzz_end_graphs(void) {
  for (int i = 0; i < FUZZ_GRAPHS; ++i) {
    if (fuzz_world.graphs[i].graph != NULL)
      FUZZ_CHECK(end_graph(&fuzz_world.graphs[i]), "graph %d stays: %s", i, fuzz_world.refusal);
  }
}
