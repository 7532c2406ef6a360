// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which forks never came back: the driver refuses such a capture without naming them.
//
// The calls of the capture are walked again. Each of its streams has for every stream of the capture the number of
// works that its next work comes after; a record copies these numbers into the event, and a wait takes the larger ones.
// A stream is unjoined if in the end it has worked more often than the origin knows. Locking: none.
#include <stdlib.h>

#include "doctor/analyse/analysis.h"

enum {
  kUnjoined = 904,
  kMaxMembers = 256,  // beyond, the numbers would be many; no program has that many forks in one capture
};

typedef struct member {
  uint32_t stream;
  uint32_t joined;     // the wait; GCAP_DOCTOR_NONE for the origin
  uint32_t last_work;  // GCAP_DOCTOR_NONE
  uint32_t destroyed;  // GCAP_DOCTOR_NONE
  uint32_t knows[kMaxMembers];
} member_t;

typedef struct snapshot {
  uint32_t capture;
  uint32_t knows_count;
  uint32_t* knows;
} snapshot_t;

typedef struct forks {
  gcap_doctor_analysis_t* analysis;
  gcap_doctor_heap_t heap;
  uint32_t capture;
  uint32_t count;
  member_t* members[kMaxMembers];
  uint32_t* slot_of;      // by stream; valid where the member at that slot has this stream
  snapshot_t* snapshots;  // by place of the event
  size_t* first_call;     // by capture, and one beyond the last: where its calls begin in `calls`
  uint32_t* calls;        // of the unjoined captures, those of one together and in their order
} forks_t;

static member_t* find_member(const forks_t* forks, uint32_t stream) {
  if (stream == GCAP_DOCTOR_NONE) return NULL;
  const uint32_t slot = forks->slot_of[stream];
  return slot < forks->count && forks->members[slot]->stream == stream ? forks->members[slot] : NULL;
}

static member_t* add_member(forks_t* forks, uint32_t stream, uint32_t joined) {
  if (stream == GCAP_DOCTOR_NONE || forks->count == kMaxMembers) return NULL;
  member_t* member = gcap_doctor_heap_alloc(&forks->heap, sizeof(*member));
  member->stream = stream;
  member->joined = joined;
  member->last_work = member->destroyed = GCAP_DOCTOR_NONE;
  forks->slot_of[stream] = forks->count;
  forks->members[forks->count++] = member;
  return member;
}

static snapshot_t* snapshot_of(const forks_t* forks, uint32_t event) {
  const uint32_t place = gcap_doctor_ids_find(&forks->analysis->events, event);
  return place != GCAP_DOCTOR_NONE ? &forks->snapshots[place] : NULL;
}

static void record(forks_t* forks, const member_t* member, uint32_t event) {
  snapshot_t* snapshot = snapshot_of(forks, event);
  if (snapshot == NULL) return;
  *snapshot = (snapshot_t){.capture = forks->capture,
                           .knows = gcap_doctor_heap_alloc(&forks->heap, forks->count * sizeof(uint32_t))};
  // Of streams that join later nothing is known.
  for (uint32_t i = 0; i < forks->count; ++i) snapshot->knows[i] = member->knows[i];
  snapshot->knows_count = forks->count;
}

static void wait_for(forks_t* forks, member_t* member, uint32_t event) {
  const snapshot_t* snapshot = snapshot_of(forks, event);
  if (snapshot == NULL || snapshot->capture != forks->capture) return;
  for (uint32_t i = 0; i < snapshot->knows_count; ++i) {
    if (member->knows[i] < snapshot->knows[i]) member->knows[i] = snapshot->knows[i];
  }
}

static void follow(forks_t* forks, uint32_t call) {
  gcap_doctor_analysis_t* analysis = forks->analysis;
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  const gcap_doctor_call_kind_t kind = gcap_doctor_kind_at(analysis, call);
  member_t* member = find_member(forks, of->stream);
  if (of->result != 0) return;
  const bool is_in = kind == GCAP_DOCTOR_CALL_WAIT || analysis->stream_capture[call] == forks->capture;
  if (member == NULL && is_in) member = add_member(forks, of->stream, call);
  if (member == NULL) return;
  if (kind == GCAP_DOCTOR_CALL_WAIT) wait_for(forks, member, of->event);
  if (kind == GCAP_DOCTOR_CALL_RECORD) record(forks, member, of->event);
  if (kind == GCAP_DOCTOR_CALL_STREAM_DESTROY) member->destroyed = call;
  if (analysis->made[call] != 0 || gcap_doctor_call_is_work(kind)) {
    ++member->knows[forks->slot_of[member->stream]];
    member->last_work = call;
  }
}

static void add_finding(forks_t* forks, const member_t* member) {
  gcap_doctor_finding_t* finding = gcap_doctor_finding_add(forks->analysis, GCAP_DOCTOR_FINDING_UNJOINED,
                                                           GCAP_DOCTOR_SEVERITY_ERROR, forks->capture, member->joined);
  finding->rule = gcap_rule_by_id(member->destroyed != GCAP_DOCTOR_NONE ? "R23" : "R6");
  finding->other = member->last_work;
}

// Nothing in the recording tells the fork: the end is all there is to show.
static void add_unknown(forks_t* forks) {
  gcap_doctor_finding_t* finding =
      gcap_doctor_finding_add(forks->analysis, GCAP_DOCTOR_FINDING_UNJOINED, GCAP_DOCTOR_SEVERITY_ERROR, forks->capture,
                              forks->analysis->diagnosis->captures[forks->capture].end);
  finding->rule = gcap_rule_by_id("R6");
  finding->is_certain = false;
}

static void find_in(forks_t* forks) {
  gcap_doctor_analysis_t* analysis = forks->analysis;
  gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[forks->capture];
  forks->count = 0;
  gcap_doctor_heap_init(&forks->heap);
  const member_t* origin = add_member(forks, capture->stream, GCAP_DOCTOR_NONE);
  for (size_t i = forks->first_call[forks->capture]; i < forks->first_call[forks->capture + 1]; ++i) {
    if (origin != NULL && forks->calls[i] < capture->end) follow(forks, forks->calls[i]);
  }
  uint32_t found = 0;
  for (uint32_t i = 1; i < forks->count; ++i) {
    const member_t* member = forks->members[i];
    if (origin->knows[i] >= member->knows[i]) continue;
    add_finding(forks, member);
    if (found++ == 0) capture->culprit = member->joined;
  }
  if (found == 0) add_unknown(forks);
  gcap_doctor_heap_deinit(&forks->heap);
}

static bool is_unjoined(const gcap_doctor_analysis_t* analysis, uint32_t capture) {
  return capture != GCAP_DOCTOR_NONE && analysis->diagnosis->captures[capture].result == kUnjoined;
}

// Captures may overlap: to walk all calls for each of them would take the square of the time.
static void sort_calls(forks_t* forks) {
  gcap_doctor_analysis_t* analysis = forks->analysis;
  const size_t num_captures = analysis->diagnosis->num_captures, num_calls = analysis->recording->num_calls;
  forks->first_call = gcap_doctor_heap_alloc(&analysis->heap, (num_captures + 2) * sizeof(*forks->first_call));
  for (uint32_t call = 0; call < num_calls; ++call) {
    if (is_unjoined(analysis, analysis->capture_of[call])) ++forks->first_call[analysis->capture_of[call] + 2];
  }
  for (size_t i = 2; i < num_captures + 2; ++i) forks->first_call[i] += forks->first_call[i - 1];
  forks->calls =
      gcap_doctor_heap_alloc(&analysis->heap, (forks->first_call[num_captures + 1] + 1) * sizeof(*forks->calls));
  // Each capture's place moves on as it is filled, up to where the next one begins.
  for (uint32_t call = 0; call < num_calls; ++call) {
    const uint32_t capture = analysis->capture_of[call];
    if (is_unjoined(analysis, capture)) forks->calls[forks->first_call[capture + 1]++] = call;
  }
}

void gcap_doctor_forks_find(gcap_doctor_analysis_t* analysis) {
  const gcap_doctor_recording_t* recording = analysis->recording;
  forks_t forks = {.analysis = analysis};
  forks.slot_of = gcap_doctor_heap_alloc(&analysis->heap, (recording->num_streams + 1) * sizeof(*forks.slot_of));
  forks.snapshots = gcap_doctor_heap_alloc(&analysis->heap, (analysis->events.count + 1) * sizeof(*forks.snapshots));
  for (size_t i = 0; i < analysis->events.count; ++i) forks.snapshots[i].capture = GCAP_DOCTOR_NONE;
  sort_calls(&forks);
  for (uint32_t i = 0; i < analysis->diagnosis->num_captures; ++i) {
    forks.capture = i;
    if (is_unjoined(analysis, i)) find_in(&forks);
  }
}
