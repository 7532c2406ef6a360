// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The first pass: one walk over all calls, in the order in which they began, that follows the state of each stream,
// event and thread, as the driver does.
//
// A begin opens a capture on its stream; a wait on an event that was recorded in it takes another stream in; an end
// closes it. A call belongs to the capture of its stream; else to the one in whose graph it made a node, or that
// recorded its event; else to the one that its thread began last. Calls that fail are compared with all open captures,
// since a call of any thread may break them. Locking: none.
#include <stdlib.h>

#include "doctor/analyse/analysis.h"

void gcap_doctor_pairs_add(gcap_doctor_pairs_t* pairs, uint32_t capture, uint32_t call) {
  pairs->items = gcap_doctor_heap_grow(pairs->items, pairs->count, &pairs->capacity, sizeof(*pairs->items));
  pairs->items[pairs->count++] = (gcap_doctor_pair_t){.capture = capture, .call = call};
}

// --- Open captures ---------------------------------------------------------------------------------------------------

static void note_blocking(gcap_doctor_analysis_t* analysis, uint32_t capture) {
  if (analysis->states[capture].num_blocking++ == 0) ++analysis->num_open_blocking;
}

static void take_in(gcap_doctor_analysis_t* analysis, uint32_t stream, uint32_t capture, uint32_t wait) {
  if (stream == GCAP_DOCTOR_NONE) return;
  gcap_doctor_capture_state_t* state = &analysis->states[capture];
  if (!gcap_doctor_stream_is_nonblocking(analysis, stream)) note_blocking(analysis, capture);
  analysis->streams[stream] =
      (gcap_doctor_stream_state_t){.capture = capture, .joined = wait, .next = state->newest_stream};
  state->newest_stream = stream;
  if (wait != GCAP_DOCTOR_NONE) gcap_doctor_pairs_add(&analysis->ties, capture, stream);
}

static void close_capture(gcap_doctor_analysis_t* analysis, uint32_t capture) {
  gcap_doctor_capture_state_t* state = &analysis->states[capture];
  if (state->open_at == GCAP_DOCTOR_NONE) return;
  if (state->num_blocking != 0) --analysis->num_open_blocking;
  for (uint32_t stream = state->newest_stream; stream != GCAP_DOCTOR_NONE; stream = analysis->streams[stream].next) {
    analysis->streams[stream].capture = GCAP_DOCTOR_NONE;
  }
  const uint32_t last = analysis->open[--analysis->num_open];
  analysis->open[state->open_at] = last;
  analysis->states[last].open_at = state->open_at;
  state->open_at = GCAP_DOCTOR_NONE;
  if (state->older != GCAP_DOCTOR_NONE) analysis->states[state->older].newer = state->newer;
  if (state->newer != GCAP_DOCTOR_NONE) {
    analysis->states[state->newer].older = state->older;
  } else {
    analysis->threads[analysis->diagnosis->captures[capture].thread].newest_open = state->older;
  }
  gcap_doctor_culprit_leave(analysis, capture);
}

static void open_capture(gcap_doctor_analysis_t* analysis, uint32_t call) {
  gcap_doctor_diagnosis_t* diagnosis = analysis->diagnosis;
  const gcap_doctor_event_call_t* begin = gcap_doctor_call_at(analysis, call);
  if (begin->stream != GCAP_DOCTOR_NONE && analysis->streams[begin->stream].capture != GCAP_DOCTOR_NONE) {
    close_capture(analysis, analysis->streams[begin->stream].capture);  // its end is missing in the file
  }
  const uint32_t capture = (uint32_t)diagnosis->num_captures;
  diagnosis->captures = gcap_doctor_heap_grow(diagnosis->captures, diagnosis->num_captures,
                                              &diagnosis->capture_capacity, sizeof(*diagnosis->captures));
  analysis->states =
      gcap_doctor_heap_grow(analysis->states, capture, &analysis->state_capacity, sizeof(*analysis->states));
  diagnosis->captures[diagnosis->num_captures++] = (gcap_doctor_captured_t){.begin = call,
                                                                            .end = GCAP_DOCTOR_NONE,
                                                                            .stream = begin->stream,
                                                                            .thread = begin->thread,
                                                                            .mode = begin->mode,
                                                                            .graph = GCAP_DOCTOR_NONE,
                                                                            .exec = GCAP_DOCTOR_NONE,
                                                                            .culprit = GCAP_DOCTOR_NONE};
  gcap_doctor_thread_state_t* thread = &analysis->threads[begin->thread];
  analysis->states[capture] = (gcap_doctor_capture_state_t){.strong = GCAP_DOCTOR_NONE,
                                                            .silent = GCAP_DOCTOR_NONE,
                                                            .alive = GCAP_DOCTOR_NONE,
                                                            .first_901 = GCAP_DOCTOR_NONE,
                                                            .last_good = GCAP_DOCTOR_NONE,
                                                            .last_node = GCAP_DOCTOR_NONE,
                                                            .last_ask = GCAP_DOCTOR_NONE,
                                                            .last_pointer = GCAP_DOCTOR_NONE,
                                                            .raised = GCAP_DOCTOR_NONE,
                                                            .raised_at_end = GCAP_DOCTOR_NONE,
                                                            .newest_stream = GCAP_DOCTOR_NONE,
                                                            .older = thread->newest_open,
                                                            .newer = GCAP_DOCTOR_NONE,
                                                            .unsettled_at = GCAP_DOCTOR_NONE,
                                                            .open_at = (uint32_t)analysis->num_open};
  if (thread->newest_open != GCAP_DOCTOR_NONE) analysis->states[thread->newest_open].newer = capture;
  thread->newest_open = capture;
  gcap_doctor_culprit_enter(analysis, capture);
  thread->was_refused = false;
  analysis->open =
      gcap_doctor_heap_grow(analysis->open, analysis->num_open, &analysis->open_capacity, sizeof(uint32_t));
  analysis->open[analysis->num_open++] = capture;
  take_in(analysis, begin->stream, capture, GCAP_DOCTOR_NONE);
  if (begin->stream == GCAP_DOCTOR_NONE) note_blocking(analysis, capture);
  analysis->capture_of[call] = capture;
}

// The capture that an end is about: that of its stream, or the thread's newest one where the stream is not known.
static uint32_t capture_to_end(const gcap_doctor_analysis_t* analysis, const gcap_doctor_event_call_t* end) {
  if (end->stream != GCAP_DOCTOR_NONE) return analysis->streams[end->stream].capture;
  return analysis->threads[end->thread].newest_open;
}

static void end_capture(gcap_doctor_analysis_t* analysis, uint32_t call) {
  enum { kInvalidated = 901, kUnmatched = 903 };
  const gcap_doctor_event_call_t* end = gcap_doctor_call_at(analysis, call);
  const uint32_t index = capture_to_end(analysis, end);
  analysis->capture_of[call] = index;
  gcap_doctor_thread_state_t* thread = &analysis->threads[end->thread];
  if (index == GCAP_DOCTOR_NONE) {
    // After a begin that was refused it says nothing new.
    if (end->result != 0 && !thread->was_refused) gcap_doctor_pairs_add(&analysis->refused, GCAP_DOCTOR_NONE, call);
    thread->was_refused = false;
    return;
  }
  if (end->result == kUnmatched) {  // on a stream that joined: the capture is broken, and goes on
    gcap_doctor_culprit_look(analysis, call);
    return;
  }
  gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[index];
  capture->end = call;
  capture->result = end->result;
  capture->outcome = end->result == 0 ? GCAP_DOCTOR_OUTCOME_GRAPH : GCAP_DOCTOR_OUTCOME_BROKEN;
  if (end->result == 0) capture->graph = end->graph;
  if (end->result == kInvalidated) gcap_doctor_culprit_find_broken(analysis, call, index);
  const uint32_t place = gcap_doctor_ids_find(&analysis->graphs, capture->graph);
  if (place != GCAP_DOCTOR_NONE) analysis->capture_of_graph[place] = index;
  close_capture(analysis, index);
}

// --- Calls between ---------------------------------------------------------------------------------------------------

static bool is_open(const gcap_doctor_analysis_t* analysis, uint32_t capture) {
  return capture != GCAP_DOCTOR_NONE && analysis->states[capture].open_at != GCAP_DOCTOR_NONE;
}

static uint32_t capture_of_event(const gcap_doctor_analysis_t* analysis, uint32_t event) {
  const uint32_t place = gcap_doctor_ids_find(&analysis->events, event);
  if (place == GCAP_DOCTOR_NONE) return GCAP_DOCTOR_NONE;
  const uint32_t capture = analysis->event_states[place].capture;
  return is_open(analysis, capture) ? capture : GCAP_DOCTOR_NONE;
}

static uint32_t capture_of_graph(const gcap_doctor_analysis_t* analysis, uint32_t graph) {
  const uint32_t place = gcap_doctor_ids_find(&analysis->graphs, graph);
  if (place == GCAP_DOCTOR_NONE) return GCAP_DOCTOR_NONE;
  const uint32_t capture = analysis->capture_of_graph[place];
  return is_open(analysis, capture) ? capture : GCAP_DOCTOR_NONE;
}

static void follow_event(gcap_doctor_analysis_t* analysis, uint32_t call) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  const uint32_t place = gcap_doctor_ids_find(&analysis->events, of->event);
  if (of->result != 0 || place == GCAP_DOCTOR_NONE || of->stream == GCAP_DOCTOR_NONE) return;
  gcap_doctor_stream_state_t* stream = &analysis->streams[of->stream];
  if (gcap_doctor_kind_at(analysis, call) == GCAP_DOCTOR_CALL_RECORD) {
    analysis->event_states[place] = (gcap_doctor_event_state_t){.capture = stream->capture, .stream = of->stream};
    return;
  }
  const uint32_t capture = analysis->event_states[place].capture;
  if (is_open(analysis, capture) && stream->capture == GCAP_DOCTOR_NONE) take_in(analysis, of->stream, capture, call);
}

static uint32_t capture_of(const gcap_doctor_analysis_t* analysis, uint32_t call) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  uint32_t capture = of->stream != GCAP_DOCTOR_NONE ? analysis->streams[of->stream].capture : GCAP_DOCTOR_NONE;
  if (capture == GCAP_DOCTOR_NONE) capture = capture_of_graph(analysis, analysis->graph_of[call]);
  if (capture == GCAP_DOCTOR_NONE && of->event != GCAP_DOCTOR_NONE) capture = capture_of_event(analysis, of->event);
  return capture != GCAP_DOCTOR_NONE ? capture : analysis->threads[of->thread].newest_open;
}

// The capturing thread's work that made no node, although nothing had failed yet.
static bool is_beside(const gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t capture) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  const gcap_doctor_capture_state_t* state = &analysis->states[capture];
  if (of->depth != 0 || of->thread != analysis->diagnosis->captures[capture].thread) return false;
  if (state->strong != GCAP_DOCTOR_NONE || state->first_901 != GCAP_DOCTOR_NONE || analysis->made[call] != 0)
    return false;
  if (of->bytes == 0) return false;  // nothing to copy
  if (of->stream != GCAP_DOCTOR_NONE) return analysis->streams[of->stream].capture == GCAP_DOCTOR_NONE;
  return gcap_doctor_call_has_no_stream(of->function);
}

static void note_good(gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t capture) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  const gcap_doctor_call_kind_t kind = gcap_doctor_kind_at(analysis, call);
  gcap_doctor_capture_state_t* state = &analysis->states[capture];
  const bool is_on = of->stream != GCAP_DOCTOR_NONE && analysis->streams[of->stream].capture == capture;
  const bool is_own = of->thread == analysis->diagnosis->captures[capture].thread;
  if (analysis->made[analysis->outer[call]] != 0) {
    state->last_node = analysis->outer[call];
    state->last_ask = state->last_pointer = GCAP_DOCTOR_NONE;
  }
  // Only a capture that is not broken takes work. Work in a graph of the program's own shows nothing.
  const bool is_in = is_on || capture_of_graph(analysis, analysis->graph_of[call]) == capture;
  const bool made_node = of->num_nodes != 0 || (is_on && gcap_doctor_call_is_work(kind));
  if ((is_in && made_node) || (is_on && gcap_doctor_call_tells(of, "active"))) {
    gcap_doctor_culprit_note_alive(analysis, call, capture);
  }
  if (is_own && gcap_doctor_library_of(of->function))
    ++state->works;  // of a simulator's log, which tells no node of it
  if (gcap_doctor_call_is_work(kind)) {
    if (is_on) ++state->works;
    if (is_beside(analysis, call, capture)) gcap_doctor_pairs_add(&analysis->escapes, capture, call);
  }
  if (kind == GCAP_DOCTOR_CALL_COPY && analysis->made[call] != 0 &&
      (of->host == GCAP_DOCTOR_HOST_PAGEABLE || of->host == GCAP_DOCTOR_HOST_STACK)) {
    gcap_doctor_pairs_add(&analysis->copies, capture, call);
  }
  if (is_own && kind == GCAP_DOCTOR_CALL_ASK) gcap_doctor_refused_note(analysis, call, capture);
  if (is_own && kind == GCAP_DOCTOR_CALL_ASK_POINTER) state->last_pointer = call;
  if (is_on && (kind != GCAP_DOCTOR_CALL_ASK || gcap_doctor_call_tells(of, "active")) &&
      state->first_901 == GCAP_DOCTOR_NONE)
    state->last_good = call;
}

// A wait of a capture for another stream's work, which the driver refuses but for external events.
static void note_refused_wait(gcap_doctor_analysis_t* analysis, uint32_t call) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  const uint32_t place = gcap_doctor_ids_find(&analysis->events, of->event);
  if (place == GCAP_DOCTOR_NONE || analysis->stream_capture[call] == GCAP_DOCTOR_NONE) return;
  const gcap_doctor_event_state_t* event = &analysis->event_states[place];
  if (event->stream == GCAP_DOCTOR_NONE || event->capture == analysis->stream_capture[call]) return;
  gcap_doctor_pairs_add(&analysis->ties, analysis->stream_capture[call], event->stream);
}

static void note_call(gcap_doctor_analysis_t* analysis, uint32_t call) {
  enum { kNotReady = 600 };
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  const gcap_doctor_call_kind_t kind = gcap_doctor_kind_at(analysis, call);
  const uint32_t capture = analysis->capture_of[call] = capture_of(analysis, call);
  if (of->result != 0 && of->result != kNotReady) {
    gcap_doctor_culprit_look(analysis, call);
    if (kind == GCAP_DOCTOR_CALL_WAIT) note_refused_wait(analysis, call);
    if (capture != GCAP_DOCTOR_NONE) gcap_doctor_pairs_add(&analysis->failures, capture, call);
    return;
  }
  if (kind == GCAP_DOCTOR_CALL_RECORD || kind == GCAP_DOCTOR_CALL_WAIT) follow_event(analysis, call);
  const bool is_outside = of->stream != GCAP_DOCTOR_NONE && analysis->streams[of->stream].capture == GCAP_DOCTOR_NONE;
  // Its wait was not recorded; the node shows that there was one.
  if (is_outside && is_open(analysis, capture) && capture_of_graph(analysis, analysis->graph_of[call]) == capture) {
    take_in(analysis, of->stream, capture, call);
    analysis->stream_capture[call] = capture;
  }
  if (kind == GCAP_DOCTOR_CALL_WAIT && of->stream != GCAP_DOCTOR_NONE) {  // it may just have taken the stream in
    const uint32_t joined = analysis->streams[of->stream].capture;
    if (joined != GCAP_DOCTOR_NONE) analysis->capture_of[call] = joined;
  }
  gcap_doctor_culprit_look_silent(analysis, call);
  if (capture != GCAP_DOCTOR_NONE && gcap_doctor_call_tells(of, "invalidated"))
    gcap_doctor_culprit_find_broken(analysis, call, capture);
  if (analysis->capture_of[call] != GCAP_DOCTOR_NONE) note_good(analysis, call, analysis->capture_of[call]);
}

// A wait on an event that was last recorded in a capture that is no more; the call is then that capture's.
static bool is_for_ended(gcap_doctor_analysis_t* analysis, uint32_t call) {
  enum { kInvalidValue = 1 };
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  const uint32_t place = gcap_doctor_ids_find(&analysis->events, of->event);
  if (of->result != kInvalidValue || place == GCAP_DOCTOR_NONE || analysis->stream_capture[call] != GCAP_DOCTOR_NONE)
    return false;
  const uint32_t capture = analysis->event_states[place].capture;
  if (capture == GCAP_DOCTOR_NONE || is_open(analysis, capture)) return false;
  analysis->capture_of[call] = capture;
  return true;
}

static void follow_thread(gcap_doctor_analysis_t* analysis, uint32_t call) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  gcap_doctor_thread_state_t* thread = &analysis->threads[of->thread];
  analysis->modes[call] = (uint8_t)thread->mode;
  if (of->stream != GCAP_DOCTOR_NONE) analysis->stream_capture[call] = analysis->streams[of->stream].capture;
  if (gcap_doctor_kind_at(analysis, call) != GCAP_DOCTOR_CALL_EXCHANGE || of->result != 0 ||
      of->mode == GCAP_DOCTOR_MODE_UNKNOWN)
    return;
  thread->mode = of->mode;
  thread->exchange = call;
}

static void learn_graph(gcap_doctor_analysis_t* analysis, uint32_t call) {
  const uint32_t place = gcap_doctor_ids_find(&analysis->graphs, analysis->graph_of[call]);
  const uint32_t capture = analysis->capture_of[call];
  if (place != GCAP_DOCTOR_NONE && capture != GCAP_DOCTOR_NONE) analysis->capture_of_graph[place] = capture;
}

// Calls are left out here: what was open may be over, and what was known of events and threads may not be so any more.
static void forget_at_gap(gcap_doctor_analysis_t* analysis) {
  while (analysis->num_open != 0) close_capture(analysis, analysis->open[analysis->num_open - 1]);
  for (size_t i = 0; i < analysis->events.count; ++i) {
    analysis->event_states[i] = (gcap_doctor_event_state_t){.capture = GCAP_DOCTOR_NONE, .stream = GCAP_DOCTOR_NONE};
  }
  for (size_t i = 0; i < analysis->recording->num_threads; ++i) {
    analysis->threads[i].mode = GCAP_DOCTOR_MODE_UNKNOWN;
  }
}

void gcap_doctor_analysis_read_captures(gcap_doctor_analysis_t* analysis) {
  const gcap_doctor_recording_t* recording = analysis->recording;
  for (uint32_t call = 0; call < recording->num_calls; ++call) {
    if (recording->reached_limit && call == recording->gap) forget_at_gap(analysis);
    const gcap_doctor_event_call_t* of = &recording->calls[call];
    const gcap_doctor_call_kind_t kind = gcap_doctor_kind_at(analysis, call);
    analysis->capture_of[call] = GCAP_DOCTOR_NONE;
    follow_thread(analysis, call);
    if (of->says != NULL) gcap_doctor_culprit_look_said(analysis, call);
    if (of->raised != NULL) {
      gcap_doctor_raised_note(analysis, call);
    } else if (kind == GCAP_DOCTOR_CALL_BEGIN && of->depth == 0 && of->result == 0) {
      open_capture(analysis, call);
    } else if (kind == GCAP_DOCTOR_CALL_BEGIN && of->depth == 0) {
      analysis->threads[of->thread].was_refused = true;
      gcap_doctor_pairs_add(&analysis->refused, analysis->stream_capture[call], call);
    } else if (kind == GCAP_DOCTOR_CALL_END && of->depth == 0) {
      end_capture(analysis, call);
    } else if (kind == GCAP_DOCTOR_CALL_WAIT && of->result != 0 && is_for_ended(analysis, call)) {
      gcap_doctor_pairs_add(&analysis->failures, analysis->capture_of[call], call);
    } else if (analysis->num_open == 0) {
      if (kind == GCAP_DOCTOR_CALL_RECORD) follow_event(analysis, call);  // a log has these outside of captures too
    } else {
      note_call(analysis, call);
      if (analysis->graph_of[call] != GCAP_DOCTOR_NONE) learn_graph(analysis, call);
    }
  }
}
