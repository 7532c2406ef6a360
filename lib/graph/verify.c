// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A replay compared with its work: copies, replay, copies back, the work, compare. All that can be known beforehand is
// looked at before the replay, so that a refusal has issued nothing. What the replay left is kept in a second copy;
// what the work left is what the memory has, and stays there.
//
// Between the steps another thread may release the graph, or capture it anew. What it retains is shared meanwhile, so
// the copies of its scratch are of its scratch; and a ticket, which no other look has, tells whether the graph that was
// replayed is that one, and afterwards whether the graph that was found wrong is the slot's still.
//
// Locking: the manager's mutex, for the look at the graph and for its end as one that replays; not over a step, a copy
// or a callback, of which each may fail or not return.

#include "lib/graph/verify.h"

#include <stdlib.h>
#include <string.h>

#include "gcap/log.h"
#include "lib/graph/bisection.h"
#include "lib/graph/manager.h"
#include "lib/graph/prefix.h"
#include "lib/graph/run.h"
#include "lib/graph/variants.h"
#include "lib/internal/grow.h"
#include "lib/internal/synchronize.h"
#include "lib/internal/unwind.h"
#include "lib/verify/inner.h"

// The slots of the copies.
enum { BEFORE = 0, REPLAYED, WORK, NUM_SLOTS };

typedef struct verification {
  const gcap_run_steps_t* steps;
  // Of the graph that is due.
  int id;
  uint64_t ticket;
  cudaStream_t stream;    // of the replay
  cudaStream_t captured;  // that captured it
  gcap_retained_t* retained;
  gcap_graph_tap_list_t taps;
  gcap_status_t refusal;  // why the graph cannot be verified
  // What is copied: taps, buffers, and behind them the graph's own memory.
  gcap_verify_block_t* blocks;
  size_t num_blocks, room;
  size_t num_buffers;  // of the blocks, with the taps
  gcap_verify_state_t* state;
} verification_t;

// Others may verify the graph from now on.
static void let_others(const verification_t* v) {
  if (v->ticket == 0) return;
  gcap_graph_manager_t* manager = v->steps->manager;
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_slot_t* slot = gcap_graph_find_verified(manager, v->id, v->ticket);
  if (slot != NULL) slot->graph->verify.is_under_way = false;
  pthread_mutex_unlock(&manager->mutex);
}

static gcap_status_t end(verification_t* v) {
  let_others(v);
  v->ticket = 0;
  gcap_status_t status = gcap_verify_state_destroy(v->state);
  v->state = NULL;
  gcap_retained_release(v->retained);
  v->retained = NULL;
  gcap_graph_tap_list_free(&v->taps);
  free(v->blocks);
  v->blocks = NULL;
  gcap_status_free(v->refusal);
  v->refusal = NULL;
  return status;
}

static void end_on_unwind(verification_t* v) { gcap_status_ignore(end(v)); }  // the exception tells

// --- Which replay is due --------------------------------------------------------------------------------------------

// Whether the run's buffers are elsewhere than the graph's.
static bool moves(const gcap_graph_moving_t* moving, const gcap_graph_buffers_t* buffers) {
  for (size_t i = 0; i < buffers->count && i < moving->count; ++i) {
    if ((uintptr_t)buffers->items[i].address != gcap_graph_moving_address(moving, i)) return true;
  }
  return false;
}

// Counts a replay of the graph, and tells whether it is due.
static bool count(gcap_graph_captured_t* graph, const gcap_run_t* run) {
  gcap_graph_verify_counts_t* counts = &graph->verify;
  const gcap_graph_verify_t* verify = run->verify;
  uint64_t num_moves = graph->moving != NULL ? graph->moving->num_moves : 0;
  if (graph->moving != NULL && run->buffers != NULL) num_moves += moves(graph->moving, run->buffers);
  if (num_moves != counts->num_moves) counts->since_move = 0;
  counts->num_moves = num_moves;
  ++counts->replays;
  ++counts->since_move;
  return counts->since_move <= verify->first || (verify->each != 0 && counts->replays % verify->each == 0);
}

// Notes the graph that is due. Two verifications of one graph would put back one another's scratch and buffers.
static void take(verification_t* v, gcap_graph_captured_t* graph) {
  gcap_graph_manager_t* manager = v->steps->manager;
  const gcap_run_t* run = v->steps->verified;
  v->id = graph->id;
  v->captured = graph->stream;
  v->stream = run->stream == GCAP_RUN_OWN_STREAM ? graph->stream : run->stream;
  if (graph->verify.is_under_way) {
    v->refusal =
        GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                    "graph id %d is being verified by another run: let one run at a time verify a graph", graph->id);
    return;
  }
  graph->verify.ticket = v->ticket = ++manager->num_uses;
  graph->verify.is_under_way = true;
  v->retained = gcap_retained_share(graph->retained);
  v->refusal = gcap_graph_tap_list_copy(&graph->taps, &v->taps);
}

// Finds the graph that the run would replay, and whether that replay is due.
static bool look(verification_t* v) {
  gcap_graph_manager_t* manager = v->steps->manager;
  const gcap_run_t* run = v->steps->verified;
  gcap_graph_choice_t choice;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = gcap_graph_choose(manager, run, &choice);
  gcap_graph_captured_t* graph = choice.held != NULL ? choice.held->graph : NULL;
  const bool is_due = graph != NULL && count(graph, run);
  if (is_due) take(v, graph);
  pthread_mutex_unlock(&manager->mutex);
  gcap_status_ignore(status);  // the replay tells
  return is_due;
}

// --- What is copied -------------------------------------------------------------------------------------------------

static gcap_status_t add(verification_t* v, gcap_verify_block_t block) {
  if (!gcap_grow(&v->blocks, &v->room, v->num_blocks + 1, sizeof(*v->blocks))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to verify graph id %d", v->id);
  }
  v->blocks[v->num_blocks++] = block;
  return NULL;
}

static gcap_verify_block_t block_of(const gcap_graph_verify_buffer_t* buffer) {
  return (gcap_verify_block_t){.name = buffer->name,
                               .address = buffer->address,
                               .bytes = buffer->bytes,
                               .type = buffer->type,
                               .absolute = buffer->absolute,
                               .relative = buffer->relative,
                               .is_compared = !buffer->is_state};
}

// Says how buffers of the run are compared that lie where this one does. Returns how many there are.
static size_t refine(verification_t* v, size_t num_of_run, const gcap_graph_verify_buffer_t* buffer) {
  size_t found = 0;
  for (size_t i = v->taps.count; i < num_of_run; ++i) {
    gcap_verify_block_t* block = &v->blocks[i];
    if (block->address != buffer->address || block->bytes != buffer->bytes) continue;
    const char* name = block->name;
    *block = block_of(buffer);
    if (block->name == NULL) block->name = name;
    ++found;
  }
  return found;
}

// Taps are compared byte by byte, or as a listed buffer says that has the name of their label.
static gcap_status_t list_taps(verification_t* v) {
  const gcap_graph_verify_t* verify = v->steps->verified->verify;
  for (size_t i = 0; i < v->taps.count; ++i) {
    const gcap_graph_made_tap_t* tap = &v->taps.items[i];
    gcap_verify_block_t block = {.type = GCAP_DTYPE_BOOL, .is_compared = true};
    for (size_t k = 0; k < verify->num_buffers; ++k) {
      const gcap_graph_verify_buffer_t* buffer = &verify->buffers[k];
      if (buffer->name != NULL && strcmp(buffer->name, tap->label) == 0) block = block_of(buffer);
    }
    block.name = tap->label;
    block.address = tap->memory;
    block.bytes = tap->bytes;
    block.is_tap = true;
    GCAP_RETURN_IF_ERROR(add(v, block));
  }
  return NULL;
}

static gcap_status_t list_buffers(verification_t* v) {
  const gcap_graph_buffers_t* of_run = v->steps->verified->buffers;
  const gcap_graph_verify_t* verify = v->steps->verified->verify;
  for (size_t i = 0; of_run != NULL && i < of_run->count; ++i) {
    const gcap_graph_buffer_t* buffer = &of_run->items[i];
    GCAP_RETURN_IF_ERROR(add(v, (gcap_verify_block_t){.name = buffer->name,
                                                      .address = buffer->address,
                                                      .bytes = buffer->bytes,
                                                      .type = GCAP_DTYPE_BOOL,
                                                      .is_compared = true}));
  }
  const size_t num_of_run = v->num_blocks;
  for (size_t i = 0; i < verify->num_buffers; ++i) {
    if (refine(v, num_of_run, &verify->buffers[i]) > 0) continue;
    GCAP_RETURN_IF_ERROR(add(v, block_of(&verify->buffers[i])));
  }
  v->num_buffers = v->num_blocks;
  return NULL;
}

// A walk over the graph's scratch.
typedef struct walk {
  verification_t* v;
  gcap_status_t status;
} walk_t;

static void add_scratch(void* context, void* address, size_t bytes) {
  walk_t* walk = context;
  if (walk->status != NULL) return;
  const gcap_verify_block_t block = {
      .name = "scratch of the graph", .address = address, .bytes = bytes, .type = GCAP_DTYPE_BOOL};
  walk->status = add(walk->v, block);
}

static gcap_status_t list_blocks(verification_t* v) {
  GCAP_RETURN_IF_ERROR(list_taps(v));
  GCAP_RETURN_IF_ERROR(list_buffers(v));
  walk_t walk = {.v = v};
  gcap_retained_list(v->retained, add_scratch, &walk);
  return walk.status;
}

// --- The steps ------------------------------------------------------------------------------------------------------

static gcap_status_t call(gcap_status_t (*function)(void* user, cudaStream_t stream), const verification_t* v,
                          const char* what) {
  if (function == NULL) return NULL;
  gcap_status_t status = function(v->steps->verified->verify->user, v->stream);
  if (status == NULL) status = gcap_check_thread_not_capturing("the verification of a replay, behind a callback");
  return gcap_status_annotate(status, gcap_status_code(status), "graph id %d, verified: %s", v->id, what);
}

// Refuses what would refuse the work, once the replay is done.
static gcap_status_t check_may_run(const verification_t* v) {
  gcap_graph_manager_t* manager = v->steps->manager;
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_guard("a run that is verified"));
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_work(manager));
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = gcap_graph_run_check_abandoned(manager);
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

// Copies what there is before the replay. Earlier work of the stream that captured the graph comes first.
static gcap_status_t save(verification_t* v) {
  gcap_status_t refusal = v->refusal;
  v->refusal = NULL;
  GCAP_RETURN_IF_ERROR(refusal);
  GCAP_RETURN_IF_ERROR(check_may_run(v));
  if (v->captured != v->stream) GCAP_RETURN_IF_ERROR(gcap_synchronize_stream(v->captured));
  GCAP_RETURN_IF_ERROR(list_blocks(v));
  const size_t num_slots = v->steps->verified->verify->bisect ? NUM_SLOTS : WORK;
  GCAP_RETURN_IF_ERROR(gcap_verify_state_create(v->blocks, v->num_blocks, num_slots, v->stream, &v->state));
  GCAP_RETURN_IF_ERROR(gcap_verify_state_save(v->state, BEFORE, v->stream));
  return call(v->steps->verified->verify->save, v, "save");
}

// Keeps what the replay left, and puts back what there was before it.
static gcap_status_t put_back(verification_t* v) {
  GCAP_RETURN_IF_ERROR(gcap_verify_state_save(v->state, REPLAYED, v->stream));
  GCAP_RETURN_IF_ERROR(gcap_verify_state_restore(v->state, BEFORE, v->stream));
  GCAP_RETURN_IF_ERROR(call(v->steps->verified->verify->restore, v, "restore"));
  return gcap_synchronize_stream(v->stream);
}

static gcap_status_t issue_work(const verification_t* v) {
  gcap_run_result_t eager;
  gcap_run_result_init(&eager);
  GCAP_AT_SCOPE_END(gcap_graph_tap_redirection_end) gcap_graph_tap_redirection_t redirection;
  gcap_graph_tap_redirection_begin(&redirection, &v->taps);
  gcap_status_t status = v->steps->work(v->steps->self, &eager);
  return gcap_status_annotate(status, gcap_status_code(status), "graph id %d, verified", v->id);
}

// --- Taps -----------------------------------------------------------------------------------------------------------

// A replay of a runtime has read its own already.
static void forget_taps(const gcap_run_t* run) {
  for (size_t i = 0; i < run->num_taps; ++i) run->taps[i].tapped_bytes = 0;
}

// Gives the run those that the work made. The graph's memory has them by now.
static gcap_status_t give_taps(const verification_t* v) {
  const gcap_run_t* run = v->steps->verified;
  return run->num_taps == 0 ? NULL : gcap_graph_taps_read(&v->taps, run->taps, run->num_taps, v->stream);
}

// --- The verdict ----------------------------------------------------------------------------------------------------

static void report(const verification_t* v, const gcap_verify_difference_t* difference,
                   gcap_graph_verify_report_t* out_report) {
  const size_t num_taps = v->taps.count;
  const bool is_tap = difference->block < num_taps;
  const bool has_nan = difference->nan_block != SIZE_MAX && difference->nan_block >= num_taps;
  out_report->is_verified = true;
  out_report->compared_bytes = difference->compared_bytes;
  out_report->tap = is_tap ? difference->block : SIZE_MAX;
  out_report->buffer = is_tap || difference->block == SIZE_MAX ? SIZE_MAX : difference->block - num_taps;
  out_report->element = difference->element;
  out_report->replayed = difference->actual;
  out_report->eager = difference->expected;
  out_report->different = difference->different;
  out_report->largest_difference = difference->largest_difference;
  out_report->nan_buffer = has_nan ? difference->nan_block - num_taps : SIZE_MAX;
  out_report->nan_element = difference->nan_element;
}

// Looks for the first step that differs. The buffers have what the work left, unless that fails.
static gcap_status_t bisect(const verification_t* v, gcap_graph_verify_report_t* out_report,
                            gcap_capture_step_t* out_step, gcap_text_t* text) {
  const gcap_bisect_subject_t subject = {.run = v->steps,
                                         .id = v->id,
                                         .ticket = v->ticket,
                                         .stream = v->stream,
                                         .state = v->state,
                                         .before = BEFORE,
                                         .spare = REPLAYED,
                                         .work = WORK,
                                         .blocks = v->blocks,
                                         .taps = &v->taps,
                                         .num_buffers = v->num_buffers};
  return gcap_bisect(&subject, out_report, out_step, text);
}

static void write_events(const verification_t* v, const gcap_graph_verify_report_t* found,
                         const gcap_capture_step_t* step, gcap_status_t failure) {
  const char* path = v->steps->verified->verify->events;
  if (path == NULL) return;
  const bool has_step = step->operation[0] != '\0';
  gcap_status_t status =
      gcap_bisect_write_events(path, has_step ? step : NULL, found->fault, gcap_status_message(failure));
  if (status != NULL) gcap_log(GCAP_LOG_WARNING, "%s", gcap_status_message(status));
  gcap_status_free(status);
}

// Has the graph that was found wrong replay no more.
static gcap_status_t give_up(const verification_t* v, gcap_status_t failure) {
  gcap_graph_manager_t* manager = v->steps->manager;
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_slot_t* slot = gcap_graph_find_verified(manager, v->id, v->ticket);
  if (slot != NULL && slot->info.state == GCAP_GRAPH_CAPTURED) {
    failure = gcap_graph_name_failure(slot, failure);
    gcap_graph_slot_cool_down(manager, slot, GCAP_GRAPH_STEP_DIFFERS, failure);
  }
  pthread_mutex_unlock(&manager->mutex);
  gcap_log(GCAP_LOG_WARNING, "%s", gcap_status_message(failure));
  return failure;
}

static gcap_status_t differ(const verification_t* v, const gcap_verify_difference_t* difference,
                            gcap_graph_verify_report_t* out_report) {
  char chars[8192];
  gcap_text_t text;
  gcap_text_init(&text, chars, sizeof(chars));
  gcap_verify_write_difference(v->state, difference, &text);
  gcap_capture_step_t step = {0};
  gcap_status_t restored = NULL;
  if (v->steps->verified->verify->bisect) restored = bisect(v, out_report, &step, &text);
  gcap_status_t failure =
      GCAP_STATUS(GCAP_REPLAY_DIFFERS, "graph id %d: its replay differs from its work: %s", v->id, chars);
  failure = give_up(v, failure);
  write_events(v, out_report, &step, failure);
  if (restored == NULL) restored = give_taps(v);
  return gcap_status_join(failure, restored);
}

static gcap_status_t judge(verification_t* v, gcap_graph_verify_report_t* out_report) {
  gcap_verify_difference_t difference;
  GCAP_RETURN_IF_ERROR(gcap_verify_state_compare(v->state, GCAP_VERIFY_NOW, REPLAYED, v->stream, &difference));
  report(v, &difference, out_report);
  return difference.block == SIZE_MAX ? give_taps(v) : differ(v, &difference, out_report);
}

// Whether the graph that was replayed is the one that was looked at: what was copied is of no other.
static bool is_known(const verification_t* v) {
  gcap_graph_manager_t* manager = v->steps->manager;
  pthread_mutex_lock(&manager->mutex);
  const gcap_graph_slot_t* launched = gcap_graph_find_launched(manager, v->id);
  const bool is_known = launched != NULL && launched->graph->verify.ticket == v->ticket;
  pthread_mutex_unlock(&manager->mutex);
  return is_known;
}

static gcap_status_t verify(verification_t* v, gcap_run_result_t* result, bool* out_replayed,
                            gcap_graph_verify_report_t* out_report) {
  GCAP_RETURN_IF_ERROR(save(v));
  GCAP_RETURN_IF_ERROR(v->steps->replay(v->steps->self, result, out_replayed));
  if (!*out_replayed || !is_known(v)) return NULL;
  forget_taps(v->steps->verified);
  gcap_status_t status = gcap_synchronize_stream(v->stream);
  if (status == NULL) status = put_back(v);
  if (status == NULL) status = issue_work(v);
  return status == NULL ? judge(v, out_report) : status;
}

gcap_status_t gcap_graph_verify_replay(const gcap_run_steps_t* steps, gcap_run_result_t* result, bool* out_replayed) {
  if (steps->verified->verify->bisect) gcap_graph_keep_steps(steps->manager, true);
  GCAP_AT_SCOPE_END(end_on_unwind) verification_t v = {.steps = steps};
  if (!look(&v)) return steps->replay(steps->self, result, out_replayed);
  gcap_graph_verify_report_t found;
  gcap_graph_verify_report_init(&found);
  gcap_status_t status = verify(&v, result, out_replayed, &found);
  status = gcap_status_join(status, end(&v));
  if (status != NULL) result->outcome = GCAP_RUN_NOT_DONE;
  gcap_graph_verify_give_report(steps->verified->verify, &found);
  return status;
}
