// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// From a finished capture to an executable that is launched, or for a run with capture_only uploaded. A graph with
// holes has an executable for each segment that has nodes; segment_launch.c launches them. If the id has an
// executable already, the executable is updated in place, if an update does what it says (compare.h). If it does not,
// or the driver refuses, the changed node is named, and a new executable is made. Until the launch has succeeded the id
// keeps all that it had; an executable that was updated in vain returns to the id, to be updated again.
//
// Locking: none. The id is CAPTURING meanwhile, so that nobody else touches its executable, and the new graph is not
// yet anybody's. The slot learns of the rest when the caller has the mutex.

#include <stdio.h>
#include <stdlib.h>

#include "gcap/log.h"
#include "lib/graph/audit.h"
#include "lib/graph/manager.h"
#include "lib/graph/node.h"
#include "lib/internal/cache_line.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/stream_table.h"
#include "lib/internal/unwind.h"

#define CHANGE_BYTES 512

// In the relaxed mode: it may free memory, which would break a capture of another thread in global mode. Where the mode
// cannot be had the executable goes all the same.
static gcap_status_t destroy_exec(cudaGraphExec_t exec) {
  enum cudaStreamCaptureMode mode;
  gcap_status_t pushed = gcap_relaxed_push(&mode);
  gcap_status_t status = GCAP_CUDA(cudaGraphExecDestroy(exec));
  return pushed != NULL ? gcap_status_join(pushed, status) : gcap_status_join(status, gcap_relaxed_pop(mode));
}

// With the executables of all segments but the last one.
static gcap_status_t destroy_holes(gcap_graph_captured_t* captured) {
  gcap_graph_holes_t* holes = captured->holes;
  if (holes == NULL) return NULL;
  gcap_status_t status = NULL;
  for (size_t i = 0; i < holes->list.count; ++i) {
    if (holes->execs[i] != NULL) status = gcap_status_join(status, destroy_exec(holes->execs[i]));
  }
  for (size_t i = 0; i < captured->use.more_execs; ++i) gcap_graph_cost_forget(captured->device_id, 0);
  status = gcap_status_join(status, gcap_graph_hole_list_free(&holes->list));
  free(holes->execs);
  free(holes->addresses);
  free(holes);
  return status;
}

gcap_status_t gcap_graph_captured_destroy(gcap_graph_captured_t* captured) {
  gcap_status_t status = NULL;
  if (captured->launched != NULL) status = GCAP_CUDA(cudaEventDestroy(captured->launched));
  if (captured->order != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaEventDestroy(captured->order)));
  if (captured->exec != NULL) {
    status = gcap_status_join(status, destroy_exec(captured->exec));
    gcap_graph_cost_forget(captured->device_id, captured->use.kernels);
  }
  status = gcap_status_join(status, destroy_holes(captured));
  if (captured->source != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaGraphDestroy(captured->source)));
  gcap_retained_release(captured->retained);
  gcap_graph_guards_release(captured->guards);
  gcap_life_release(captured->stream_life);
  gcap_graph_notes_destroy(captured->notes);
  gcap_capture_steps_free(&captured->steps);
  gcap_graph_tap_list_free(&captured->taps);
  status = gcap_status_join(status, gcap_graph_moving_destroy(captured->moving));
  gcap_contents_free(&captured->contents);
  free(captured->signature);
  free(captured);
  return status;
}

// Instantiates with parameters, the only form that names the node at fault.
gcap_status_t gcap_graph_instantiate(cudaGraph_t graph, cudaGraphExec_t* out_exec) {
  cudaGraphInstantiateParams params = {0};
  gcap_status_t status = GCAP_CUDA(cudaGraphInstantiateWithParams(out_exec, graph, &params));
  if (status == NULL) return NULL;
  *out_exec = NULL;
  return gcap_status_annotate(status, gcap_status_code(status), "the graph cannot be instantiated (%s%s%s)",
                              gcap_graph_node_instantiate_result_name(params.result_out),
                              params.errNode_out != NULL ? ", node of type " : "",
                              params.errNode_out != NULL ? gcap_graph_node_type_name(params.errNode_out) : "");
}

// Why the executable that the slot has does not become that of `captured`; NULL: it was updated.
static gcap_status_t update(const gcap_graph_slot_t* slot, const gcap_graph_captured_t* captured) {
  GCAP_RETURN_IF_ERROR(gcap_contents_check_update(&slot->graph->contents, &captured->contents));
  cudaGraphExecUpdateResultInfo info = {0};
  gcap_status_t refusal = GCAP_CUDA(cudaGraphExecUpdate(slot->graph->exec, captured->source, &info));
  return refusal == NULL ? NULL
                         : gcap_graph_node_explain_refusal(refusal, &info, &captured->contents, slot->info.nodes);
}

// Updates the executable that the slot has and moves it to `captured`. Where that cannot be it stays as it was; the
// returned status says which node changed and how.
static gcap_status_t try_to_update(gcap_graph_slot_t* slot, gcap_graph_captured_t* captured) {
  gcap_status_t refusal = update(slot, captured);
  if (refusal == NULL) {
    captured->updated = true;
    captured->exec = slot->graph->exec;
    slot->graph->exec = NULL;
    return NULL;
  }
  return gcap_status_annotate(refusal, gcap_status_code(refusal), "graph id %d could not be updated in place",
                              slot->id);
}

bool gcap_graph_has_nodes(const gcap_contents_t* contents, size_t segment) {
  size_t i = 0;
  while (i < contents->count && contents->nodes[i].graph != segment) ++i;
  return i < contents->count;
}

// Gives the segments before the last one executables. One without nodes needs none.
static gcap_status_t instantiate_segments(gcap_graph_captured_t* captured) {
  gcap_graph_holes_t* holes = captured->holes;
  const size_t count = holes->list.count;
  holes->execs[count] = captured->exec;
  holes->is_last_empty = !gcap_graph_has_nodes(&captured->contents, count);
  for (size_t i = 0; i < count; ++i) {
    if (!gcap_graph_has_nodes(&captured->contents, i)) continue;
    const gcap_graph_cost_watch_t watch = gcap_graph_cost_begin(captured->device_id, 0, /*may_measure=*/false);
    gcap_status_t status = gcap_graph_instantiate(holes->list.items[i].before, &holes->execs[i]);
    gcap_graph_cost_end(&watch, status == NULL);
    if (status != NULL) return status;
    ++captured->use.more_execs;
  }
  return NULL;
}

// The nodes of the graph that an executable was made from are what names its nodes: one whose nodes are set is new.
static bool may_update(const gcap_graph_captured_t* before, const gcap_graph_captured_t* captured) {
  if (before == NULL || captured->moving != NULL) return false;
  return captured->holes == NULL && before->holes == NULL;
}

// Gives `captured` an executable: the one that `slot` has, or a new one. Both may allocate, which would break another
// thread's capture in global mode.
static gcap_status_t make_exec(gcap_graph_slot_t* slot, gcap_graph_captured_t* captured, gcap_graph_build_t* build) {
  const uint64_t begin_ns = gcap_now_ns();
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = NULL;
  if (may_update(slot->graph, captured)) build->update_refusal = try_to_update(slot, captured);
  if (captured->exec == NULL) status = gcap_graph_instantiate(captured->source, &captured->exec);
  if (status == NULL && captured->holes != NULL) status = instantiate_segments(captured);
  build->instantiate_ns = gcap_now_ns() - begin_ns;
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}

// A graph that is not launched now is uploaded, so that its first launch is like the others. Its values are written all
// the same: a replay that brings none finds them.
static gcap_status_t launch_first(const gcap_graph_manager_t* manager, const gcap_graph_captured_t* captured,
                                  bool is_launched) {
  if (captured->moving != NULL) {
    GCAP_RETURN_IF_ERROR(gcap_graph_values_write(&captured->moving->values, captured->stream));
  }
  const cudaGraphExec_t* execs = gcap_graph_execs(captured);
  for (size_t i = 0; i < captured->contents.num_graphs && (manager->options.upload || !is_launched); ++i) {
    if (execs[i] != NULL) GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGraphUpload(execs[i], captured->stream)));
  }
  if (!is_launched || captured->holes != NULL) return NULL;
  return GCAP_CUDA(cudaGraphLaunch(captured->exec, captured->stream));
}

static gcap_status_t start(const gcap_graph_manager_t* manager, gcap_graph_slot_t* slot,
                           gcap_graph_captured_t* captured, bool is_launched, gcap_graph_build_t* build) {
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetDevice(captured->stream, &captured->device_id)));
  captured->use.device_id = captured->device_id;
  captured->use.node_bytes = captured->contents.allocated_bytes;
  if (captured->moving != NULL) captured->use.value_bytes = captured->moving->values.block_bytes;
  captured->use.kernels = captured->contents.num_kernels;
  captured->use.has_exec = true;
  // An update takes nothing, and the first launch brings the memory of allocation nodes too.
  const bool may_measure = slot->graph == NULL && captured->use.node_bytes == 0 && captured->holes == NULL;
  const gcap_graph_cost_watch_t watch = gcap_graph_cost_begin(captured->device_id, captured->use.kernels, may_measure);
  gcap_status_t status = make_exec(slot, captured, build);
  if (status == NULL && captured->moving != NULL) gcap_graph_moving_try(captured->moving, gcap_graph_execs(captured));
  if (status == NULL) status = launch_first(manager, captured, is_launched);
  gcap_graph_cost_end(&watch, captured->exec != NULL && !captured->updated);
  return status;
}

// Notes which stream it is, so that neither its end nor a later one with its handle goes unnoticed.
static gcap_status_t identify_stream(gcap_graph_captured_t* captured) {
  captured->stream_life = gcap_stream_table_life(captured->stream);
  if (captured->stream_life == NULL) return NULL;
  return GCAP_CUDA(cudaStreamGetId(captured->stream, &captured->stream_id));
}

// Gives an executable that was updated in vain back to the slot's graph, and destroys the rest. A copy of values may be
// on its way, although nothing was launched.
static gcap_status_t undo(gcap_graph_slot_t* slot, gcap_graph_captured_t* captured) {
  if (captured->updated) {
    slot->graph->exec = captured->exec;
    captured->exec = NULL;
    const gcap_contents_t contents = slot->graph->contents;
    slot->graph->contents = captured->contents;
    captured->contents = contents;
  }
  gcap_status_t status = NULL;
  if (captured->moving != NULL) status = gcap_graph_values_settle(&captured->moving->values, captured->stream);
  return gcap_status_join(status, gcap_graph_captured_destroy(captured));
}

// --- What changed ---------------------------------------------------------------------------------------------------

static void note_first(void* user, const gcap_graph_difference_t* difference) {
  char* text = user;
  if (text[0] != '\0') return;
  snprintf(text, CHANGE_BYTES, "%s: %s %s -> %s", difference->node_text, difference->field, difference->before,
           difference->after);
}

// How the capture differs from the one before; NULL: in nothing, or the arguments of that were not kept.
static gcap_status_t explain_change(const gcap_graph_slot_t* slot, const gcap_contents_t* contents) {
  if (slot->graph == NULL || !slot->graph->contents.with_arguments || !contents->with_arguments) return NULL;
  char first[CHANGE_BYTES] = "";
  const size_t count = gcap_contents_diff(&slot->graph->contents, contents, note_first, first);
  if (count == 0) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "graph id %d differs from its capture before in %zu fields; the first: %s", slot->id, count,
                     first);
}

static bool is_movable(const gcap_graph_captured_t* captured) {
  return captured->moving != NULL && !gcap_graph_moving_stays(captured->moving);
}

// What a function of a guard that did not return leaves of a capture.
static void destroy_on_unwind(gcap_graph_captured_t** unsettled) {
  if (*unsettled != NULL) gcap_status_ignore(gcap_graph_captured_destroy(*unsettled));  // the exception tells
}

// Gives the graph the guards that its work stated: those of its rehearsals, too, and still true.
static gcap_status_t settle_guards(gcap_graph_open_run_t* run, gcap_graph_captured_t* captured) {
  const gcap_graph_moving_t* moving = captured->moving;
  if (moving != NULL && moving->num_rehearsed > 0) {
    GCAP_RETURN_IF_ERROR(gcap_graph_stated_compare(&moving->stated, &run->stated));
  }
  GCAP_AT_SCOPE_END(destroy_on_unwind) gcap_graph_captured_t* unsettled = captured;
  gcap_status_t status = gcap_graph_guards_create(&run->stated, &captured->guards);
  unsettled = NULL;
  return status;
}

// Gives the graph the holes of its work, and reads all segments.
static gcap_status_t read_segments(gcap_graph_open_run_t* run, gcap_graph_captured_t* captured, bool with_arguments) {
  const gcap_graph_moving_t* moving = captured->moving;
  const size_t num_addresses = moving != NULL ? moving->count + moving->values.count : 0;
  const size_t count = run->stated.holes.count + 1;
  cudaGraph_t* segments = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_hole_list_segments(&run->stated.holes, captured->source, &segments));
  gcap_status_t status = gcap_contents_read_all(segments, count, with_arguments, &captured->contents);
  if (status == NULL) status = gcap_graph_holes_create(&run->stated.holes, num_addresses, &captured->holes);
  free(segments);
  return status;
}

// The executables are independent of the graphs they were made from.
static gcap_status_t drop_sources(gcap_graph_captured_t* captured) {
  gcap_status_t status = GCAP_CUDA(cudaGraphDestroy(captured->source));
  captured->source = NULL;
  if (captured->holes == NULL) return status;
  return gcap_status_join(status, gcap_graph_hole_list_drop_graphs(&captured->holes->list));
}

gcap_status_t gcap_graph_captured_build(const gcap_graph_manager_t* manager, gcap_graph_slot_t* slot,
                                        gcap_graph_open_run_t* run, cudaGraph_t source, gcap_retained_t* retained,
                                        gcap_graph_build_t* out_build) {
  *out_build = (gcap_graph_build_t){0};
  gcap_graph_captured_t* captured = gcap_calloc_line(sizeof(*captured));
  if (captured == NULL) {
    gcap_status_t status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to keep a graph");
    gcap_retained_release(retained);
    return gcap_status_join(status, GCAP_CUDA(cudaGraphDestroy(source)));
  }
  *captured = (gcap_graph_captured_t){.id = slot->id, .source = source, .retained = retained, .stream = run->stream};
  captured->signature = run->signature;
  captured->moving = run->moving;
  run->signature = NULL;
  run->moving = NULL;
  captured->steps = run->steps;
  captured->has_steps = run->keeps_steps;
  run->steps = (gcap_capture_steps_t){0};
  gcap_status_t status = gcap_graph_tap_list_copy(&run->stated.taps, &captured->taps);
  const bool may_move = captured->moving != NULL;
  const bool with_arguments =
      may_move || manager->options.keep_source || manager->options.audit != GCAP_GRAPH_AUDIT_OFF || run->keeps_steps;
  if (status == NULL) status = settle_guards(run, captured);
  if (status == NULL) status = read_segments(run, captured, with_arguments);
  if (status == NULL && may_move) status = gcap_graph_moving_relocate(captured->moving, &captured->contents);
  if (status == NULL) status = gcap_graph_note_memory(manager, captured);
  if (status == NULL) out_build->change = explain_change(slot, &captured->contents);
  if (status == NULL) status = identify_stream(captured);
  if (status == NULL) status = start(manager, slot, captured, !run->capture_only, out_build);
  if (status != NULL) return gcap_status_join(status, undo(slot, captured));
  if (captured->contents.count == 0) {
    gcap_log(GCAP_LOG_WARNING, "graph id %d was captured without a node: was its work issued on another stream?",
             slot->id);
  }
  out_build->nodes = captured->contents.num_top;
  if (!manager->options.keep_source && !is_movable(captured) && !captured->has_steps) {
    status = drop_sources(captured);
  }
  out_build->captured = captured;
  return status;
}
