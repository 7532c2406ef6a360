// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The search. A place is behind a step of the work; the last place is behind all of it. At a place the beginning of the
// graph, up to the step that the place is behind, is replayed from the memory of before; then the work is issued from
// that memory, and when it is at the place the two are compared. The work goes on to its end, so behind each look the
// host's state and the memory are those of a whole eager run.
//
// Between a place where the two are equal and one where they differ there is one where they begin to differ, and
// halving finds one. It is the first one where the difference stays. Where it goes, and comes again from memory that
// nobody named, an earlier one may be there: it is looked for where what was found has no cause.
//
// Locking: the manager's mutex for the look at the graph alone. The work, the functions of holes and the callbacks may
// not return: what the search has is freed then.

#include "lib/graph/bisection.h"

#include <stdlib.h>

#include "lib/graph/manager.h"
#include "lib/graph/prefix.h"
#include "lib/graph/variants.h"
#include "lib/internal/synchronize.h"
#include "lib/internal/unwind.h"

// How often a place is looked at where a race may show.
#define LOOKS_AT_RACE 8

// --- A look at a place ----------------------------------------------------------------------------------------------

// The places are those behind the steps, and the end.
static size_t num_places(const gcap_bisection_t* b) { return b->steps.eager.count + 1; }

// How many steps of the graph come up to the place.
static size_t beginning_at(const gcap_bisection_t* b, size_t place) {
  if (place == b->steps.eager.count) return b->steps.captured.count;
  for (size_t i = place + 1; i > 0; --i) {
    if (b->steps.in_graph[i - 1] != GCAP_BISECT_NONE) return b->steps.in_graph[i - 1] + 1;
  }
  return 0;
}

static gcap_status_t compare(gcap_bisect_pass_t* pass) {
  const gcap_bisect_subject_t* subject = &pass->b->subject;
  GCAP_RETURN_IF_ERROR(gcap_bisect_wait_for_devices(pass->b));
  pass->is_compared = true;
  GCAP_RETURN_IF_ERROR(gcap_verify_state_compare(subject->state, GCAP_VERIFY_NOW, subject->spare, subject->stream,
                                                 &pass->difference.named));
  if (pass->difference.named.block != SIZE_MAX || !pass->b->looks_at_scratch) return NULL;
  return gcap_bisect_suspect_scratch(pass);
}

static gcap_status_t compare_at_place(gcap_bisect_pass_t* pass, size_t step) {
  return step == pass->place ? compare(pass) : NULL;
}

static gcap_status_t confirm_at_place(gcap_bisect_pass_t* pass, size_t step) {
  if (step != pass->place) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_bisect_wait_for_devices(pass->b));
  return gcap_bisect_confirm_scratch(pass);
}

// Issues the work once more, where its scratch is another one. Takes what the first pass suspects.
static gcap_status_t confirm(gcap_bisect_pass_t* suspected, gcap_bisect_scratch_difference_t* out_difference) {
  gcap_bisection_t* b = suspected->b;
  GCAP_AT_SCOPE_END(gcap_bisect_pass_end)
  gcap_bisect_pass_t pass = {.b = b,
                             .at_step = confirm_at_place,
                             .fill = GCAP_BISECT_OTHER_FILL,
                             .place = suspected->place,
                             .suspects = suspected->suspects,
                             .num_suspects = suspected->num_suspects,
                             .difference = {.scratch = {.block = GCAP_BISECT_NONE}}};
  suspected->suspects = NULL;
  suspected->num_suspects = 0;
  GCAP_RETURN_IF_ERROR(gcap_bisect_put_back(b));
  GCAP_RETURN_IF_ERROR(gcap_bisect_issue(&pass));
  *out_difference = pass.difference.scratch;
  return NULL;
}

// Whether the two differ at the place.
static gcap_status_t look(gcap_bisection_t* b, size_t place, gcap_bisect_difference_t* out_difference) {
  const gcap_bisect_subject_t* subject = &b->subject;
  ++b->report->replays;
  GCAP_RETURN_IF_ERROR(gcap_bisect_put_back(b));
  if (b->looks_at_scratch) GCAP_RETURN_IF_ERROR(gcap_bisect_fill_scratch_of_graph(b));
  GCAP_RETURN_IF_ERROR(gcap_graph_launch_prefix(subject->run->manager, subject->run->verified, beginning_at(b, place)));
  GCAP_RETURN_IF_ERROR(gcap_synchronize_stream(subject->stream));
  GCAP_RETURN_IF_ERROR(gcap_verify_state_save(subject->state, subject->spare, subject->stream));
  GCAP_RETURN_IF_ERROR(gcap_bisect_put_back(b));
  GCAP_AT_SCOPE_END(gcap_bisect_pass_end)
  gcap_bisect_pass_t pass = {.b = b,
                             .at_step = compare_at_place,
                             .fill = b->looks_at_scratch ? GCAP_BISECT_FILL : GCAP_BISECT_NO_FILL,
                             .place = place,
                             .difference = {.scratch = {.block = GCAP_BISECT_NONE}}};
  GCAP_RETURN_IF_ERROR(gcap_bisect_issue(&pass));
  if (!pass.is_compared && place == b->steps.eager.count) GCAP_RETURN_IF_ERROR(compare(&pass));
  if (pass.num_suspects > 0) GCAP_RETURN_IF_ERROR(confirm(&pass, &pass.difference.scratch));
  *out_difference = pass.difference;
  if (pass.is_compared) return NULL;
  return GCAP_STATUS(GCAP_UNAVAILABLE, "the work makes another number of calls each time: %zu, then %zu",
                     b->steps.eager.count, pass.num_steps);
}

// --- What is looked at ----------------------------------------------------------------------------------------------

// Reads the steps and the arguments of the graph, if it is still the one that was verified.
static gcap_status_t read_graph(gcap_bisection_t* b) {
  const gcap_bisect_subject_t* subject = &b->subject;
  gcap_graph_manager_t* manager = subject->run->manager;
  gcap_status_t status = GCAP_STATUS(GCAP_UNAVAILABLE, "graph id %d was captured anew, or released", subject->id);
  pthread_mutex_lock(&manager->mutex);
  const gcap_graph_slot_t* slot = gcap_graph_find_verified(manager, subject->id, subject->ticket);
  if (slot != NULL) {
    gcap_status_ignore(status);
    status = gcap_contents_copy(&slot->graph->contents, &b->now);
    b->device_id = slot->graph->device_id;
    if (status == NULL) status = gcap_capture_steps_copy(&slot->graph->steps, &b->steps.captured);
    b->refused = gcap_graph_refused_retain(slot->refused);
  }
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

// A buffer in the memory of another device is written by streams of that one, which join the run's later or never.
static gcap_status_t list_devices(gcap_bisection_t* b) {
  for (size_t i = 0; i < b->subject.num_buffers; ++i) {
    gcap_driver_allocation_t memory;
    GCAP_RETURN_IF_ERROR(gcap_driver_find_allocation((uintptr_t)b->subject.blocks[i].address, &memory));
    const bool is_other = memory.type == GCAP_DRIVER_DEVICE_MEMORY && memory.device != b->device_id;
    if (is_other && memory.device >= 0 && memory.device < GCAP_BISECT_MAX_DEVICES) {
      b->other_devices |= UINT64_C(1) << memory.device;
    }
  }
  return NULL;
}

static void free_recording(struct gcap_graph_recording* recording) {
  gcap_status_ignore(gcap_graph_recording_free(recording));  // beside a failure or an exception, which tells
}

static gcap_status_t read_recording(gcap_bisection_t* b, struct gcap_graph_recording* recording) {
  const gcap_graph_hole_list_t* holes = &recording->stated.holes;
  cudaGraph_t* segments = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_hole_list_segments(holes, recording->last, &segments));
  gcap_status_t status = gcap_contents_read_all(segments, holes->count + 1, /*with_arguments=*/true, &b->fresh);
  free(segments);
  if (status != NULL) gcap_contents_free(&b->fresh);
  b->steps.fresh = recording->steps;
  recording->steps = (gcap_capture_steps_t){0};
  return status;
}

static void free_addresses(void*** addresses) { free(*addresses); }

// Where the work finds what is in memory: where the graph has it.
static void place_values(const gcap_bisection_t* b, const gcap_graph_buffers_t* buffers, void** addresses) {
  gcap_graph_manager_t* manager = b->subject.run->manager;
  pthread_mutex_lock(&manager->mutex);
  const gcap_graph_slot_t* slot = gcap_graph_find_verified(manager, b->subject.id, b->subject.ticket);
  const gcap_graph_moving_t* moving = slot != NULL ? slot->graph->moving : NULL;
  for (size_t i = 0; moving != NULL && i < buffers->num_values && i < moving->values.count; ++i) {
    if (moving->values.memory[i].bytes == 0) continue;
    addresses[buffers->count + i] = (void*)gcap_graph_values_place(&moving->values, i, GCAP_STAND_IN_SETS);
  }
  pthread_mutex_unlock(&manager->mutex);
}

// Captures the work once more. What fails here costs the comparison of arguments alone.
static gcap_status_t capture_afresh(gcap_bisection_t* b) {
  const gcap_bisect_subject_t* subject = &b->subject;
  const gcap_graph_buffers_t* buffers = subject->run->verified->buffers;
  GCAP_AT_SCOPE_END(free_addresses) void** addresses = NULL;
  if (buffers != NULL) GCAP_RETURN_IF_ERROR(gcap_graph_buffers_copy_addresses(buffers, &addresses));
  if (buffers != NULL) place_values(b, buffers, addresses);
  GCAP_AT_SCOPE_END(free_recording) struct gcap_graph_recording recording = {.keeps_steps = true};
  recording.stated.holes.refused = gcap_graph_refused_retain(b->refused);
  recording.stated.taps.rehearsed = subject->taps;  // the same memory, or each tap would seem to have moved
  GCAP_RETURN_IF_ERROR(gcap_bisect_put_back(b));
  gcap_status_t status = subject->run->record(subject->run->self, addresses, &recording);
  if (status == NULL) status = read_recording(b, &recording);
  return gcap_status_join(status, gcap_graph_recording_free(&recording));
}

static gcap_status_t list_steps(gcap_bisection_t* b) {
  GCAP_RETURN_IF_ERROR(gcap_bisect_put_back(b));
  gcap_bisect_pass_t pass = {.b = b};
  GCAP_RETURN_IF_ERROR(gcap_bisect_issue(&pass));
  gcap_bisect_steps_t* steps = &b->steps;
  GCAP_RETURN_IF_ERROR(gcap_bisect_match(&steps->eager, &steps->captured, &steps->in_graph));
  GCAP_RETURN_IF_ERROR(gcap_bisect_pair_blocks(b));
  return gcap_bisect_match(&steps->captured, &steps->fresh, &steps->in_fresh);
}

// --- The search -----------------------------------------------------------------------------------------------------

static bool is_scratch(const gcap_bisect_difference_t* difference) {
  return difference->scratch.block != GCAP_BISECT_NONE;
}

static bool differs(const gcap_bisect_difference_t* difference) {
  return difference->named.block != SIZE_MAX || is_scratch(difference);
}

static void note_difference(gcap_bisection_t* b, size_t step, const gcap_bisect_difference_t* difference) {
  gcap_graph_verify_report_t* report = b->report;
  const gcap_verify_difference_t* named = &difference->named;
  report->step = step;
  if (is_scratch(difference)) {
    report->step_element = difference->scratch.byte;
    report->step_replayed = difference->scratch.actual;
    report->step_eager = difference->scratch.expected;
    return;
  }
  const size_t num_taps = b->subject.taps->count;
  report->step_buffer = named->block < num_taps ? SIZE_MAX : named->block - num_taps;
  report->step_element = named->element;
  report->step_replayed = named->actual;
  report->step_eager = named->expected;
}

// What was found so far.
typedef struct found {
  size_t place;  // GCAP_BISECT_NONE: the difference did not come again
  gcap_bisect_difference_t difference;
} found_t;

// A place where the two differ, and are equal at the place before; from the place `low` on.
static gcap_status_t halve(gcap_bisection_t* b, size_t low, found_t* found) {
  found->place = GCAP_BISECT_NONE;
  gcap_bisect_difference_t difference;
  size_t high = num_places(b) - 1;  // a place that differs
  GCAP_RETURN_IF_ERROR(look(b, high, &difference));
  if (!differs(&difference)) return NULL;
  *found = (found_t){high, difference};
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    GCAP_RETURN_IF_ERROR(look(b, middle, &difference));
    if (differs(&difference)) {
      high = middle;
      *found = (found_t){high, difference};
    } else {
      low = middle + 1;
    }
  }
  return NULL;
}

// The first place where they differ, before the one that was found.
static gcap_status_t look_at_each(gcap_bisection_t* b, found_t* found) {
  b->report->is_linear = true;
  for (size_t place = 0; place < found->place; ++place) {
    gcap_bisect_difference_t difference;
    GCAP_RETURN_IF_ERROR(look(b, place, &difference));
    if (differs(&difference)) *found = (found_t){place, difference};
  }
  return NULL;
}

// The first use of memory that nobody wrote, where scratch differs.
static gcap_status_t explain_scratch(gcap_bisection_t* b, const found_t* in_scratch, found_t* found,
                                     gcap_bisect_cause_t* cause) {
  if (in_scratch->place == GCAP_BISECT_NONE) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_bisect_find_first_use(b, in_scratch->place, cause));
  if (cause->fault != GCAP_GRAPH_FAULT_UNKNOWN) *found = *in_scratch;
  return NULL;
}

// Where what was found has no cause: the places before it, and what is wrong with the graph there. `in_scratch`: the
// first place where scratch differs, if that has no cause either.
static gcap_status_t explain(gcap_bisection_t* b, const found_t* in_scratch, found_t* found,
                             gcap_bisect_cause_t* cause) {
  GCAP_RETURN_IF_ERROR(gcap_bisect_find_missing_join(b, found->place, cause));
  if (cause->fault != GCAP_GRAPH_FAULT_UNKNOWN) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_bisect_find_change(b, found->place, cause));
  if (cause->fault != GCAP_GRAPH_FAULT_UNKNOWN) {
    gcap_bisect_difference_t difference;
    GCAP_RETURN_IF_ERROR(look(b, cause->step, &difference));
    if (differs(&difference)) *found = (found_t){cause->step, difference};
    return NULL;
  }
  GCAP_RETURN_IF_ERROR(explain_scratch(b, in_scratch, found, cause));
  if (cause->fault != GCAP_GRAPH_FAULT_UNKNOWN) return NULL;
  GCAP_RETURN_IF_ERROR(look_at_each(b, found));
  GCAP_RETURN_IF_ERROR(gcap_bisect_find_cause(b, found->place, cause));
  if (cause->fault != GCAP_GRAPH_FAULT_UNKNOWN) return NULL;
  return gcap_bisect_find_first_use(b, found->place, cause);
}

// What a race left may show behind a later step, at which the functions of a hole then are blamed. So if two nodes
// without an order are there, their place is looked at a few times more.
static gcap_status_t look_for_race(gcap_bisection_t* b, found_t* found, gcap_bisect_cause_t* cause) {
  gcap_bisect_cause_t join;
  if (cause->fault != GCAP_GRAPH_FAULT_HOLE) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_bisect_find_missing_join(b, found->place, &join));
  if (join.fault == GCAP_GRAPH_FAULT_UNKNOWN || join.step >= found->place) return NULL;
  for (int i = 0; i < LOOKS_AT_RACE; ++i) {
    gcap_bisect_difference_t difference;
    GCAP_RETURN_IF_ERROR(look(b, join.step, &difference));
    if (!differs(&difference)) continue;
    *found = (found_t){join.step, difference};
    *cause = join;
    return NULL;
  }
  return NULL;
}

// The difference did not come again, as one does that depends on when work runs.
static gcap_status_t explain_without_place(gcap_bisection_t* b, gcap_bisect_cause_t* cause) {
  const size_t end = num_places(b) - 1;
  GCAP_RETURN_IF_ERROR(gcap_bisect_find_missing_join(b, end, cause));
  return cause->fault != GCAP_GRAPH_FAULT_UNKNOWN ? NULL : gcap_bisect_find_change(b, end, cause);
}

// Scratch that differs without a cause may differ in a sound graph: what the work has there need not be the same twice.
static gcap_status_t leave_scratch_out(gcap_bisection_t* b, found_t* in_scratch, found_t* found,
                                       gcap_bisect_cause_t* cause) {
  in_scratch->place = GCAP_BISECT_NONE;
  if (!is_scratch(&found->difference)) return NULL;
  *in_scratch = *found;
  b->looks_at_scratch = false;
  GCAP_RETURN_IF_ERROR(halve(b, found->place + 1, found));
  if (found->place == GCAP_BISECT_NONE) *found = *in_scratch;
  return gcap_bisect_find_cause(b, found->place, cause);
}

static gcap_status_t search(gcap_bisection_t* b, found_t* found, gcap_bisect_cause_t* cause, gcap_text_t* text) {
  GCAP_RETURN_IF_ERROR(read_graph(b));
  GCAP_RETURN_IF_ERROR(list_devices(b));
  gcap_status_t afresh = capture_afresh(b);
  if (afresh != NULL) {
    gcap_text_add(text, "; the work could not be captured once more, so arguments are not compared: %s",
                  gcap_status_message(afresh));
    gcap_status_free(afresh);
  }
  GCAP_RETURN_IF_ERROR(list_steps(b));
  if (b->steps.captured.count == 0 || b->steps.captured.is_cut) {
    gcap_text_add(text, "; the graph was captured without all of its steps, so none is looked for");
    return gcap_bisect_find_change(b, num_places(b) - 1, cause);
  }
  GCAP_RETURN_IF_ERROR(halve(b, /*low=*/0, found));
  if (found->place == GCAP_BISECT_NONE) return explain_without_place(b, cause);
  GCAP_RETURN_IF_ERROR(gcap_bisect_find_cause(b, found->place, cause));
  if (cause->fault != GCAP_GRAPH_FAULT_UNKNOWN) return look_for_race(b, found, cause);
  found_t in_scratch;
  GCAP_RETURN_IF_ERROR(leave_scratch_out(b, &in_scratch, found, cause));
  return cause->fault != GCAP_GRAPH_FAULT_UNKNOWN ? NULL : explain(b, &in_scratch, found, cause);
}

// --- In words -------------------------------------------------------------------------------------------------------

static void describe(gcap_bisection_t* b, const found_t* found, const gcap_bisect_cause_t* cause, gcap_text_t* text) {
  const gcap_graph_verify_report_t* report = b->report;
  gcap_text_add(text, "; ");
  if (found->place == GCAP_BISECT_NONE) {
    gcap_text_add(text, "the difference did not come again in %llu replays", (unsigned long long)report->replays);
  } else {
    gcap_text_add(text, "they differ first behind ");
    gcap_bisect_write_step(&b->steps.eager, found->place, text);
    gcap_text_add(text, " (%llu replays%s): ", (unsigned long long)report->replays,
                  report->is_linear ? ", a place at a time" : "");
    if (is_scratch(&found->difference)) {
      gcap_bisect_write_scratch_difference(b, &found->difference.scratch, text);
    } else {
      gcap_verify_write_difference(b->subject.state, &found->difference.named, text);
    }
  }
  gcap_text_add(text, "; %s", cause->fault != GCAP_GRAPH_FAULT_UNKNOWN ? cause->text : "no cause is seen");
}

static void report_found(gcap_bisection_t* b, const found_t* found, const gcap_bisect_cause_t* cause) {
  gcap_graph_verify_report_t* report = b->report;
  if (found->place != GCAP_BISECT_NONE) note_difference(b, found->place, &found->difference);
  report->fault = cause->fault;
  report->node = cause->node;
  report->earlier = cause->earlier;
  if (cause->fault == GCAP_GRAPH_FAULT_MISSING_JOIN) report->step = cause->step;
}

static void end(gcap_bisection_t* b) {
  gcap_bisect_steps_free(&b->steps);
  gcap_graph_refused_release(b->refused);
  gcap_contents_free(&b->now);
  gcap_contents_free(&b->fresh);
  free(b->writes);
}

// Puts back what the work left. Where the device cannot be waited for, because others capture, its streams are.
static gcap_status_t put_back_work(const gcap_bisection_t* b) {
  const gcap_bisect_subject_t* subject = &b->subject;
  gcap_status_t status = gcap_bisect_wait_for_devices(b);
  if (gcap_status_code(status) == GCAP_UNAVAILABLE) {
    gcap_status_free(status);
    status = gcap_synchronize_stream(subject->stream);
  }
  status = gcap_status_join(status, gcap_verify_state_restore(subject->state, subject->work, subject->stream));
  return gcap_status_join(status, gcap_synchronize_stream(subject->stream));
}

gcap_status_t gcap_bisect(const gcap_bisect_subject_t* subject, gcap_graph_verify_report_t* report,
                          gcap_capture_step_t* out_step, gcap_text_t* text) {
  GCAP_AT_SCOPE_END(end) gcap_bisection_t b = {.subject = *subject, .device_id = -1, .report = report};
  found_t found = {.place = GCAP_BISECT_NONE};
  gcap_bisect_cause_t cause = {.step = GCAP_BISECT_NONE, .node = SIZE_MAX, .earlier = SIZE_MAX};
  GCAP_RETURN_IF_ERROR(gcap_verify_state_save(subject->state, subject->work, subject->stream));
  gcap_status_t status = search(&b, &found, &cause, text);
  if (status == NULL) {
    report_found(&b, &found, &cause);
    describe(&b, &found, &cause, text);
  } else {
    gcap_text_add(text, "; the search for the first step that differs failed: %s", gcap_status_message(status));
    gcap_status_free(status);
  }
  if (report->step < b.steps.eager.count) *out_step = b.steps.eager.items[report->step];
  return put_back_work(&b);
}
