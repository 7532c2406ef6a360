// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The launch of a graph with holes: segment, function, segment. From the first segment to the last one the graph is the
// manager's `in_hole`, and nobody else runs, replays, binds or releases on the manager: other work between two segments
// could have their memory, which graphs of one stream may share. So the slot and its graph stay where they are.
//
// Locking: the mutex is held over the first launch, and dropped once over all that comes behind. The thread of the
// launch alone reads the graph meanwhile, and nobody changes it. A function may not return, because an exception leaves
// it or its thread is cancelled: then the manager is as after a failure, and the mutex is free.

#include "lib/graph/segment_launch.h"

#include "lib/graph/audit.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/unwind.h"

void gcap_graph_enter_holes(gcap_graph_manager_t* manager, gcap_graph_captured_t* captured) {
  manager->in_hole = captured;
  gcap_graph_hold_locked(manager);
}

void gcap_graph_leave_holes(gcap_graph_manager_t* manager) {
  manager->in_hole = NULL;
  gcap_graph_let_go_locked(manager);
}

// Where the buffers are and what the values are now.
static void place(gcap_graph_captured_t* captured, gcap_run_resources_t* resources) {
  const gcap_graph_moving_t* moving = captured->moving;
  void** addresses = captured->holes->addresses;
  if (moving == NULL) return;
  for (size_t i = 0; i < moving->count; ++i) addresses[i] = (void*)gcap_graph_moving_address(moving, i);
  const gcap_graph_values_t* values = &moving->values;
  for (size_t i = 0; i < values->count; ++i) {
    addresses[moving->count + i] =
        (void*)(values->memory[i].bytes != 0 ? gcap_graph_values_place(values, i, GCAP_STAND_IN_SETS)
                                             : gcap_graph_values_present(values, moving->relocation, i)->at);
  }
  resources->addresses = addresses;
  resources->num_addresses = moving->count;
  resources->num_values = values->count;
  if (values->count != 0) resources->values = (const void* const*)addresses + moving->count;
}

// Who sees CAPTURE_INVALIDATED issues the run again, and segments of it were launched: the capture is another one, of
// the function's own.
static __attribute__((noinline)) gcap_status_t name_hole(const gcap_graph_captured_t* captured, size_t index,
                                                         gcap_status_t status) {
  const gcap_code_t code = gcap_status_code(status);
  return gcap_status_annotate(status, code == GCAP_CAPTURE_INVALIDATED ? GCAP_CUDA_ERROR : code,
                              "graph id %d, hole '%s'", captured->id, captured->holes->list.items[index].name);
}

static gcap_status_t call(const gcap_graph_captured_t* captured, size_t index, gcap_run_resources_t* resources) {
  const gcap_graph_made_hole_t* made = &captured->holes->list.items[index];
  resources->stream = resources->cuda_stream == captured->stream ? made->resources.stream : NULL;
  resources->scratch = made->resources.scratch;
  resources->allocator = made->resources.allocator;
  gcap_status_t status = made->hole.work(made->hole.user, resources);
  if (status == NULL) status = gcap_check_thread_not_capturing("the launch of the next segment");
  return status == NULL ? NULL : name_hole(captured, index, status);
}

static __attribute__((noinline)) gcap_status_t name_launch(const gcap_graph_captured_t* captured, size_t index,
                                                           cudaError_t answer) {
  gcap_status_t status = gcap_status_from_cuda(answer, "cudaGraphLaunch(execs[index], stream)", __FILE__, __LINE__);
  return gcap_status_annotate(status, gcap_status_code(status), "graph id %d, segment %zu of %zu", captured->id, index,
                              captured->holes->list.count + 1);
}

// Not by GCAP_CUDA, whose success is a call: nobody's ledger is open here.
static gcap_status_t launch_segment(const gcap_graph_captured_t* captured, size_t index, cudaStream_t stream) {
  const gcap_graph_holes_t* holes = captured->holes;
  const bool is_empty = index == holes->list.count ? holes->is_last_empty : holes->execs[index] == NULL;
  if (is_empty) return NULL;
  const cudaError_t answer = cudaGraphLaunch(holes->execs[index], stream);
  return answer == cudaSuccess ? NULL : name_launch(captured, index, answer);
}

// Where a launch ends: behind so many functions, and so many segments.
typedef struct end {
  size_t functions, segments;
} end_t;

// A segment that is launched on a stream which a function left capturing is part of that capture, and is not executed.
// One look a launch: who begins a capture in one function and ends it in another one may not.
static gcap_status_t check_stream_left(const gcap_graph_captured_t* captured, cudaStream_t stream) {
  return gcap_check_stream_not_capturing(stream, "graph id %d, behind the last function of its holes", captured->id);
}

// What comes behind the first segment.
static gcap_status_t go_on(const gcap_graph_manager_t* manager, const gcap_graph_captured_t* captured, end_t end,
                           gcap_run_resources_t* resources) {
  gcap_status_t status = NULL;
  for (size_t i = 0; status == NULL && i < end.functions; ++i) {
    status = call(captured, i, resources);
    if (status == NULL && manager->audits_replays) status = gcap_graph_check_memory(captured);
    if (status == NULL && i + 1 == end.functions) status = check_stream_left(captured, resources->cuda_stream);
    if (status == NULL && i + 1 < end.segments) status = launch_segment(captured, i + 1, resources->cuda_stream);
  }
  return status;
}

// A launch whose functions have not all returned.
typedef struct unfinished {
  gcap_graph_manager_t* manager;  // NULL: they have
  cudaStream_t stream;
  bool was_inside;  // the thread, before
} unfinished_t;

static void leave_on_unwind(unfinished_t* launch) {
  gcap_graph_manager_t* manager = launch->manager;
  if (manager == NULL) return;
  gcap_graph_hole_set_inside(launch->was_inside);
  pthread_mutex_lock(&manager->mutex);
  gcap_status_ignore(gcap_graph_order_back(manager->in_hole, launch->stream));  // the exception tells
  gcap_graph_leave_holes(manager);
  pthread_mutex_unlock(&manager->mutex);
}

// A runtime's run makes its device current for the work, so its functions find that in a replay too. The functions of a
// plain graph manager have the thread's own in every run.
static gcap_status_t go_on_on_device(const gcap_graph_manager_t* manager, const gcap_graph_captured_t* captured,
                                     end_t end, gcap_run_resources_t* resources) {
  GCAP_AT_SCOPE_END(gcap_device_give_back_on_unwind) gcap_lent_device_t lent = {.id = -1};
  if (end.functions > 0 && captured->holes->list.items[0].resources.stream != NULL) {
    GCAP_RETURN_IF_ERROR(gcap_device_lend(captured->device_id, &lent));
  }
  gcap_status_t status = go_on(manager, captured, end, resources);
  return gcap_status_join(status, gcap_device_give_back(&lent));
}

static gcap_status_t go_on_without_mutex(gcap_graph_manager_t* manager, const gcap_graph_captured_t* captured,
                                         end_t end, gcap_run_resources_t* resources) {
  pthread_mutex_unlock(&manager->mutex);
  GCAP_AT_SCOPE_END(leave_on_unwind)
  unfinished_t unfinished = {manager, resources->cuda_stream, gcap_graph_hole_set_inside(true)};
  gcap_status_t status = go_on_on_device(manager, captured, end, resources);
  unfinished.manager = NULL;
  gcap_graph_hole_set_inside(unfinished.was_inside);
  pthread_mutex_lock(&manager->mutex);
  return status;
}

static gcap_status_t launch_until(gcap_graph_manager_t* manager, gcap_graph_captured_t* captured, end_t end,
                                  cudaStream_t stream, uint64_t* launches) {
  gcap_run_resources_t resources;
  gcap_run_resources_init(&resources);
  resources.cuda_stream = stream;
  place(captured, &resources);
  GCAP_RETURN_IF_ERROR(launch_segment(captured, 0, stream));
  ++*launches;
  return go_on_without_mutex(manager, captured, end, &resources);
}

gcap_status_t gcap_graph_launch_first(gcap_graph_manager_t* manager, gcap_graph_captured_t* captured, size_t count,
                                      cudaStream_t stream, uint64_t* launches) {
  if (count == 0) return NULL;
  return launch_until(manager, captured, (end_t){count, count}, stream, launches);
}

gcap_status_t gcap_graph_launch_entered(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, cudaStream_t stream) {
  gcap_graph_captured_t* captured = slot->graph;
  const size_t count = captured->holes->list.count;
  gcap_status_t status = launch_until(manager, captured, (end_t){count, count + 1}, stream, &slot->info.replays);
  gcap_graph_leave_holes(manager);
  return status;
}

gcap_status_t gcap_graph_launch_segments(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, cudaStream_t stream) {
  gcap_graph_enter_holes(manager, slot->graph);
  return gcap_graph_launch_entered(manager, slot, stream);
}
