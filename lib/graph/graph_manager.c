// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The graph manager: which run of an id is captured, and what becomes of its graph.
//
// An id has a slot once it was run; the slot holds its state, its counters and, when captured, the executable with the
// stream that captured it and what the capture retained. Two functions move states: plan_run before a run, and finish_*
// after it. The capture itself is the capture module's; here is only what comes before and after.
//
// Locking: one mutex guards the table, the slots and the open run. It is held across cudaGraphLaunch, which serialises
// the replays, but across no wait: a launch that was issued keeps its executable alive until release has waited for it.

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "gcap/graph.h"
#include "gcap/log.h"
#include "lib/base/cuda_guard.h"
#include "lib/base/thread_state.h"
#include "lib/graph/id_table.h"

// A failed capture doubles the back-off at most this often: 1,024 times the first.
#define MAX_BACKOFF_DOUBLINGS 10u

typedef struct slot {
  int id;
  gcap_graph_info_t info;
  uint32_t failures_in_a_row;
  uint64_t cooling_runs;  // eager runs still due
  // While CAPTURED.
  cudaGraphExec_t exec;
  cudaStream_t stream;
  int device_id;
  gcap_retained_t* retained;
  struct slot* next_detached;  // once out of the table
  cudaEvent_t launched;        // and recorded behind its last launch
} slot_t;

// The run between begin_run and end_run.
typedef struct open_run {
  bool is_open;
  pthread_t thread;
  int id;
  cudaStream_t stream;
  gcap_capture_t* capture;  // NULL: eager
  uint64_t begin_ns;
} open_run_t;

struct gcap_graph_manager {
  gcap_graph_manager_options_t options;
  pthread_mutex_t mutex;
  id_table_t slots;
  open_run_t run;
  atomic_bool scope_open;  // the open run's capture scope is; its thread may close it at any time
};

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

const char* gcap_graph_state_name(gcap_graph_state_t state) {
  switch (state) {
    case GCAP_GRAPH_COLD: return "COLD";
    case GCAP_GRAPH_WARMING: return "WARMING";
    case GCAP_GRAPH_READY: return "READY";
    case GCAP_GRAPH_CAPTURING: return "CAPTURING";
    case GCAP_GRAPH_CAPTURED: return "CAPTURED";
    case GCAP_GRAPH_COOLING: return "COOLING";
  }
  return "unknown gcap_graph_state_t";
}

void gcap_graph_manager_options_init(gcap_graph_manager_options_t* options) {
  *options = (gcap_graph_manager_options_t){.min_num_runs_before_capture = 2, .backoff_runs = 1};
  gcap_capture_options_init(&options->capture);
}

gcap_status_t gcap_graph_manager_create(const gcap_graph_manager_options_t* options,
                                        gcap_graph_manager_t** out_manager) {
  *out_manager = NULL;
  if (options != NULL) GCAP_RETURN_IF_ERROR(gcap_capture_options_check(&options->capture));
  gcap_graph_manager_t* manager = calloc(1, sizeof(*manager));
  if (manager == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a graph manager");
  if (options != NULL) {
    manager->options = *options;
  } else {
    gcap_graph_manager_options_init(&manager->options);
  }
  pthread_mutex_init(&manager->mutex, NULL);
  *out_manager = manager;
  return NULL;
}

// --- The open run ---------------------------------------------------------------------------------------------------

// A scope may be closed behind the manager's back, and the next one may lie at its address: the scope itself must tell.
static void note_scope_closed(void* user, bool committed) {
  (void)committed;
  ((gcap_graph_manager_t*)user)->scope_open = false;
}

// Begins the capture of a run. On failure none is open.
static gcap_status_t open_scope(gcap_graph_manager_t* manager, open_run_t* run) {
  run->begin_ns = now_ns();
  GCAP_RETURN_IF_ERROR(gcap_capture_begin(run->stream, &manager->options.capture, &run->capture));
  manager->scope_open = true;
  gcap_status_t status = gcap_capture_on_close(run->capture, note_scope_closed, manager);
  if (status != NULL) {
    gcap_capture_abort(run->capture);
    run->capture = NULL;
  }
  return status;
}

// Whether the run's capture scope is still there to be ended by this thread.
static bool owns_scope(const gcap_graph_manager_t* manager, const open_run_t* run) {
  return run->capture != NULL && manager->scope_open && run->capture == gcap_capture_current();
}

// Aborts a run that this thread left open. Called with the mutex held.
static gcap_status_t close_abandoned_run(gcap_graph_manager_t* manager) {
  open_run_t* run = &manager->run;
  if (!run->is_open) return NULL;
  // The scope of a capture goes with its thread; then the run is nobody's.
  bool is_orphan = run->capture != NULL && !manager->scope_open;
  if (!is_orphan && !pthread_equal(run->thread, pthread_self())) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "another thread has a run of id %d open in this graph manager",
                       run->id);
  }
  gcap_log(GCAP_LOG_WARNING, "a run of id %d was never ended; it is aborted", run->id);
  if (owns_scope(manager, run)) gcap_capture_abort(run->capture);
  run->is_open = false;
  slot_t* slot = id_table_find(&manager->slots, run->id);
  if (run->capture != NULL && slot != NULL) slot->info.state = GCAP_GRAPH_READY;
  return NULL;
}

static gcap_status_t find_or_add_slot(gcap_graph_manager_t* manager, int id, slot_t** out_slot) {
  *out_slot = id_table_find(&manager->slots, id);
  if (*out_slot != NULL) return NULL;
  slot_t* slot = calloc(1, sizeof(*slot));
  if (slot == NULL || !id_table_insert(&manager->slots, id, slot)) {
    free(slot);
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for graph id %d", id);
  }
  slot->id = id;
  *out_slot = slot;
  return NULL;
}

// Moves an id that is not captured on by one run, and tells whether that run is to be captured.
static bool plan_run(const gcap_graph_manager_t* manager, slot_t* slot) {
  gcap_graph_info_t* info = &slot->info;
  if (info->state == GCAP_GRAPH_COLD) info->state = GCAP_GRAPH_WARMING;
  if (info->state == GCAP_GRAPH_WARMING && info->eager_runs >= manager->options.min_num_runs_before_capture) {
    info->state = GCAP_GRAPH_READY;
  }
  if (info->state == GCAP_GRAPH_COOLING) {
    if (slot->cooling_runs == 0) {
      info->state = GCAP_GRAPH_READY;
    } else {
      --slot->cooling_runs;
    }
  }
  return info->state == GCAP_GRAPH_READY;
}

// Sends an id whose capture failed into its back-off.
static void cool_down(const gcap_graph_manager_t* manager, slot_t* slot) {
  uint32_t doublings =
      slot->failures_in_a_row < MAX_BACKOFF_DOUBLINGS ? slot->failures_in_a_row : MAX_BACKOFF_DOUBLINGS;
  slot->cooling_runs = (uint64_t)manager->options.backoff_runs << doublings;
  ++slot->failures_in_a_row;
  ++slot->info.failures;
  slot->info.state = GCAP_GRAPH_COOLING;
}

static gcap_status_t begin_run_locked(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                      gcap_graph_run_kind_t* out_kind) {
  GCAP_RETURN_IF_ERROR(close_abandoned_run(manager));
  open_run_t run = {.is_open = true, .thread = pthread_self(), .id = id, .stream = stream};
  if (id != GCAP_GRAPH_ID_NONE) {
    slot_t* slot = NULL;
    GCAP_RETURN_IF_ERROR(find_or_add_slot(manager, id, &slot));
    if (slot->info.state == GCAP_GRAPH_CAPTURED) {
      return GCAP_STATUS(GCAP_ALREADY_EXISTS, "graph id %d is captured: replay it, or release it first", id);
    }
    if (plan_run(manager, slot)) {
      gcap_status_t status = open_scope(manager, &run);
      if (gcap_status_code(status) == GCAP_CUDA_ERROR) {
        // The driver would not start a capture: the run itself can still be done, eagerly.
        gcap_log(GCAP_LOG_WARNING, "graph id %d runs eagerly: %s", id, gcap_status_message(status));
        gcap_status_free(status);
        cool_down(manager, slot);
        status = NULL;
      }
      if (status != NULL) return status;
      if (run.capture != NULL) slot->info.state = GCAP_GRAPH_CAPTURING;
    }
  }
  manager->run = run;
  *out_kind = run.capture != NULL ? GCAP_GRAPH_RUN_CAPTURE : GCAP_GRAPH_RUN_EAGER;
  return NULL;
}

gcap_status_t gcap_graph_manager_begin_run(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                           gcap_graph_run_kind_t* out_kind) {
  *out_kind = GCAP_GRAPH_RUN_EAGER;
  if (id < GCAP_GRAPH_ID_NONE) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id is %d, allowed are ids >= 0, and -1 for no capture", id);
  }
  if (id != GCAP_GRAPH_ID_NONE && stream == cudaStreamPerThread) {
    return GCAP_STATUS(
        GCAP_INVALID_ARGUMENT,
        "graph id %d: the stream is cudaStreamPerThread, which is another stream on each thread; pass one "
        "created with cudaStreamNonBlocking",
        id);
  }
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = begin_run_locked(manager, id, stream, out_kind);
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

// --- From a finished capture to a launched executable ---------------------------------------------------------------

static const char* node_type_name(cudaGraphNode_t node) {
  enum cudaGraphNodeType type;
  gcap_status_t status = GCAP_CUDA(cudaGraphNodeGetType(node, &type));
  if (status != NULL) {
    gcap_status_ignore(status);  // only an explanation is lost
    return "unknown";
  }
  switch (type) {
    case cudaGraphNodeTypeKernel: return "kernel";
    case cudaGraphNodeTypeMemcpy: return "memcpy";
    case cudaGraphNodeTypeMemset: return "memset";
    case cudaGraphNodeTypeHost: return "host";
    case cudaGraphNodeTypeGraph: return "child graph";
    case cudaGraphNodeTypeEmpty: return "empty";
    case cudaGraphNodeTypeMemAlloc: return "memory allocation";
    case cudaGraphNodeTypeMemFree: return "memory free";
    default: return "other";
  }
}

static const char* instantiate_result_name(cudaGraphInstantiateResult result) {
  switch (result) {
    case cudaGraphInstantiateSuccess: return "success";
    case cudaGraphInstantiateInvalidStructure: return "invalid structure";
    case cudaGraphInstantiateNodeOperationNotSupported: return "node operation not supported";
    case cudaGraphInstantiateMultipleDevicesNotSupported: return "multiple devices not supported";
    default: return "error";
  }
}

// Instantiates with parameters, the only form that names the node at fault.
static gcap_status_t instantiate(cudaGraph_t graph, cudaGraphExec_t* out_exec) {
  *out_exec = NULL;
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  cudaGraphInstantiateParams params = {0};
  gcap_status_t status = GCAP_CUDA(cudaGraphInstantiateWithParams(out_exec, graph, &params));
  if (status != NULL) {
    *out_exec = NULL;
    status = gcap_status_annotate(status, GCAP_CUDA_ERROR, "the graph cannot be instantiated (%s%s%s)",
                                  instantiate_result_name(params.result_out),
                                  params.errNode_out != NULL ? ", node of type " : "",
                                  params.errNode_out != NULL ? node_type_name(params.errNode_out) : "");
  }
  gcap_status_t restored = gcap_relaxed_pop(mode);
  if (status == NULL && restored != NULL) {
    restored = gcap_status_join(restored, GCAP_CUDA(cudaGraphExecDestroy(*out_exec)));
    *out_exec = NULL;
  }
  return gcap_status_join(status, restored);
}

static gcap_status_t destroy_exec(cudaGraphExec_t exec) {
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = GCAP_CUDA(cudaGraphExecDestroy(exec));
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}

static gcap_status_t synchronize_stream(cudaStream_t stream) {
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = GCAP_CUDA(cudaStreamSynchronize(stream));
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}

// Makes the executable of `graph` in `slot` and launches it once. On failure the slot holds none.
static gcap_status_t build_and_launch(slot_t* slot, cudaGraph_t graph, cudaStream_t stream) {
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGetDevice(&slot->device_id)));
  size_t nodes = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphGetNodes(graph, NULL, &nodes)));
  if (nodes == 0) {
    gcap_log(GCAP_LOG_WARNING, "graph id %d was captured without a node: was its work issued on another stream?",
             slot->id);
  }
  uint64_t begin_ns = now_ns();
  GCAP_RETURN_IF_ERROR(instantiate(graph, &slot->exec));
  slot->info.instantiate_ns = now_ns() - begin_ns;
  gcap_status_t status = GCAP_CUDA(cudaGraphLaunch(slot->exec, stream));
  if (status != NULL) {
    status = gcap_status_join(status, destroy_exec(slot->exec));
    slot->exec = NULL;
    return status;
  }
  slot->info.nodes = nodes;
  return NULL;
}

static gcap_status_t finish_capture(gcap_graph_manager_t* manager, const open_run_t* run, slot_t* slot,
                                    gcap_status_t run_status) {
  gcap_capture_fail(run->capture, run_status);
  cudaGraph_t graph = NULL;
  gcap_retained_t* retained = NULL;
  gcap_status_t status = gcap_capture_end(run->capture, &graph, &retained);
  slot->info.capture_ns = now_ns() - run->begin_ns;
  if (status == NULL) {
    status = build_and_launch(slot, graph, run->stream);
    // The executable is independent of the graph it was made from.
    status = gcap_status_join(status, GCAP_CUDA(cudaGraphDestroy(graph)));
    if (slot->exec == NULL) gcap_retained_release(retained);
  }
  if (slot->exec == NULL) {
    cool_down(manager, slot);
    return gcap_status_annotate(status, GCAP_CAPTURE_INVALIDATED, "graph id %d", run->id);
  }
  slot->stream = run->stream;
  slot->retained = retained;
  slot->failures_in_a_row = 0;
  slot->info.state = GCAP_GRAPH_CAPTURED;
  ++slot->info.captures;
  ++slot->info.replays;
  return status;
}

// Whether `run` can be ended by the calling thread.
static gcap_status_t check_run(const open_run_t* run) {
  if (!run->is_open) return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "no run is open: call gcap_graph_manager_begin_run");
  if (!pthread_equal(run->thread, pthread_self())) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the open run of id %d belongs to another thread", run->id);
  }
  return NULL;
}

static gcap_status_t end_run_locked(gcap_graph_manager_t* manager, gcap_status_t run_status, open_run_t* out_run) {
  GCAP_RETURN_IF_ERROR(check_run(&manager->run));
  *out_run = manager->run;
  manager->run.is_open = false;
  slot_t* slot = id_table_find(&manager->slots, out_run->id);
  if (out_run->capture == NULL) {
    if (slot != NULL && run_status == NULL) ++slot->info.eager_runs;
    return NULL;
  }
  if (!owns_scope(manager, out_run)) {
    cool_down(manager, slot);
    return GCAP_STATUS(GCAP_CAPTURE_INVALIDATED, "the capture of graph id %d was ended behind the manager's back",
                       out_run->id);
  }
  return finish_capture(manager, out_run, slot, run_status);
}

gcap_status_t gcap_graph_manager_end_run(gcap_graph_manager_t* manager, gcap_status_t run_status, bool synchronize) {
  open_run_t run;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = end_run_locked(manager, run_status, &run);
  pthread_mutex_unlock(&manager->mutex);
  if (status == NULL && run_status == NULL && synchronize) status = synchronize_stream(run.stream);
  return status;
}

// --- Replay and release ---------------------------------------------------------------------------------------------

// A launch into a capture of ours, by another thread, would break it.
static gcap_status_t check_not_captured_into(const gcap_graph_manager_t* manager, const slot_t* slot) {
  const open_run_t* run = &manager->run;
  if (!run->is_open || run->capture == NULL || run->stream != slot->stream) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d: another thread is capturing graph id %d on its stream",
                     slot->id, run->id);
}

bool gcap_graph_manager_is_captured(gcap_graph_manager_t* manager, int id) {
  pthread_mutex_lock(&manager->mutex);
  const slot_t* slot = id_table_find(&manager->slots, id);
  bool captured = slot != NULL && slot->info.state == GCAP_GRAPH_CAPTURED;
  pthread_mutex_unlock(&manager->mutex);
  return captured;
}

gcap_status_t gcap_graph_manager_try_replay(gcap_graph_manager_t* manager, int id, bool synchronize,
                                            bool* out_replayed) {
  *out_replayed = false;
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_graph_manager_replay"));
  pthread_mutex_lock(&manager->mutex);
  slot_t* slot = id_table_find(&manager->slots, id);
  if (slot == NULL || slot->info.state != GCAP_GRAPH_CAPTURED) {
    pthread_mutex_unlock(&manager->mutex);
    return NULL;
  }
  cudaStream_t stream = slot->stream;
  gcap_status_t status = check_not_captured_into(manager, slot);
  if (status == NULL) status = GCAP_CUDA(cudaGraphLaunch(slot->exec, stream));
  if (status == NULL) ++slot->info.replays;
  pthread_mutex_unlock(&manager->mutex);
  *out_replayed = status == NULL;
  if (status == NULL && synchronize) status = synchronize_stream(stream);
  return status;
}

gcap_status_t gcap_graph_manager_replay(gcap_graph_manager_t* manager, int id, bool synchronize) {
  bool replayed = false;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_try_replay(manager, id, synchronize, &replayed));
  if (replayed) return NULL;
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(manager, id, &info);
  return GCAP_STATUS(GCAP_NOT_FOUND, "graph id %d is not captured: it is %s", id, gcap_graph_state_name(info.state));
}

// Records an event behind everything issued on the graph's stream so far.
static gcap_status_t record_launched(slot_t* slot) {
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(slot->device_id, &previous));
  gcap_status_t status = GCAP_CUDA(cudaEventCreateWithFlags(&slot->launched, cudaEventDisableTiming));
  if (status == NULL) status = GCAP_CUDA(cudaEventRecord(slot->launched, slot->stream));
  status = gcap_status_join(status, gcap_device_pop(slot->device_id, previous));
  if (status != NULL && slot->launched != NULL) {
    status = gcap_status_join(status, GCAP_CUDA(cudaEventDestroy(slot->launched)));
    slot->launched = NULL;
  }
  return status;
}

// Takes a captured slot out of the table; on failure it stays there. Called with the mutex held, so that neither a
// launch nor a capture of this manager comes between the question and the event.
static gcap_status_t detach(gcap_graph_manager_t* manager, slot_t* slot) {
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamIsCapturing(slot->stream, &state)));
  if (state != cudaStreamCaptureStatusNone) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d: its stream %p is capturing; end the capture first",
                       slot->id, (void*)slot->stream);
  }
  GCAP_RETURN_IF_ERROR(record_launched(slot));
  id_table_remove(&manager->slots, slot->id);
  return NULL;
}

// Keeps for ever what may still be running. It stays reachable, so that a leak checker can tell it from an accident.
static void quarantine(slot_t* slot) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static slot_t* quarantined;
  pthread_mutex_lock(&mutex);
  slot->next_detached = quarantined;
  quarantined = slot;
  pthread_mutex_unlock(&mutex);
}

// Waits for the last launch of a detached slot, then destroys the executable. `*out_idle` tells whether the wait was
// successful.
static gcap_status_t wait_and_destroy_exec(slot_t* slot, bool* out_idle) {
  *out_idle = false;
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = GCAP_CUDA(cudaEventSynchronize(slot->launched));
  *out_idle = status == NULL;
  if (*out_idle) {
    status = GCAP_CUDA(cudaEventDestroy(slot->launched));
    status = gcap_status_join(status, GCAP_CUDA(cudaGraphExecDestroy(slot->exec)));
  }
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}

// Ends a detached slot: nobody can launch it any more.
static gcap_status_t retire(slot_t* slot) {
  bool idle = false;
  gcap_status_t status = wait_and_destroy_exec(slot, &idle);
  if (!idle) {
    status =
        gcap_status_annotate(status, gcap_status_code(status),
                             "graph id %d may still be running and is kept for ever with all it retains", slot->id);
    quarantine(slot);
    return status;
  }
  gcap_retained_release(slot->retained);
  free(slot);
  return status;
}

gcap_status_t gcap_graph_manager_release(gcap_graph_manager_t* manager, int id) {
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_graph_manager_release"));
  pthread_mutex_lock(&manager->mutex);
  slot_t* slot = id_table_find(&manager->slots, id);
  bool captured = slot != NULL && slot->info.state == GCAP_GRAPH_CAPTURED;
  gcap_status_t status = captured ? detach(manager, slot) : NULL;
  pthread_mutex_unlock(&manager->mutex);
  if (!captured) return GCAP_STATUS(GCAP_NOT_FOUND, "graph id %d is not captured: nothing to release", id);
  return status == NULL ? retire(slot) : status;
}

// Detaches every captured slot that can be, as a list.
static gcap_status_t detach_all(gcap_graph_manager_t* manager, slot_t** out_detached) {
  *out_detached = NULL;
  gcap_status_t status = NULL;
  pthread_mutex_lock(&manager->mutex);
  for (size_t i = 0; i < manager->slots.capacity;) {
    slot_t* slot = manager->slots.cells[i].slot;
    gcap_status_t failure = NULL;
    bool captured = slot != NULL && slot->info.state == GCAP_GRAPH_CAPTURED;
    if (captured) failure = detach(manager, slot);
    if (captured && failure == NULL) {
      slot->next_detached = *out_detached;
      *out_detached = slot;
    } else {
      ++i;  // a slot that went made room for another one in its cell
    }
    status = gcap_status_join(status, failure);
  }
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

gcap_status_t gcap_graph_manager_release_all(gcap_graph_manager_t* manager) {
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_graph_manager_release_all"));
  slot_t* slot = NULL;
  gcap_status_t status = detach_all(manager, &slot);
  while (slot != NULL) {
    slot_t* next = slot->next_detached;
    status = gcap_status_join(status, retire(slot));
    slot = next;
  }
  return status;
}

gcap_status_t gcap_graph_manager_destroy(gcap_graph_manager_t* manager) {
  if (manager == NULL) return NULL;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = close_abandoned_run(manager);
  pthread_mutex_unlock(&manager->mutex);
  if (status == NULL) status = gcap_check_thread_not_capturing("gcap_graph_manager_destroy");
  if (status != NULL) return status;
  status = gcap_graph_manager_release_all(manager);
  for (size_t i = 0; i < manager->slots.capacity; ++i) {
    slot_t* slot = manager->slots.cells[i].slot;
    if (slot != NULL && slot->info.state == GCAP_GRAPH_CAPTURED) {
      quarantine(slot);
    } else {
      free(slot);
    }
  }
  id_table_deinit(&manager->slots);
  pthread_mutex_destroy(&manager->mutex);
  free(manager);
  return status;
}

void gcap_graph_manager_get_info(gcap_graph_manager_t* manager, int id, gcap_graph_info_t* out_info) {
  *out_info = (gcap_graph_info_t){0};
  pthread_mutex_lock(&manager->mutex);
  const slot_t* slot = id_table_find(&manager->slots, id);
  if (slot != NULL) *out_info = slot->info;
  pthread_mutex_unlock(&manager->mutex);
}
