// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Exceptions of Python's that left a capture. A program that handles one inside of its capture goes on, and ends the
// capture with none; so an exception left the capture if the program was handling it as it ended the capture, or if
// nobody ended the capture. Where a call broke the capture, the exception only repeats what the call answered, and
// where the graph was launched, the program meant it so. Locking: none.
#include "doctor/analyse/analysis.h"

void gcap_doctor_raised_note(gcap_doctor_analysis_t* analysis, uint32_t call) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  const uint32_t at = of->raised_at;
  const uint32_t ended = at < call ? analysis->capture_of[at] : GCAP_DOCTOR_NONE;
  if (ended != GCAP_DOCTOR_NONE && analysis->diagnosis->captures[ended].end == at) {
    if (analysis->diagnosis->captures[ended].thread == of->thread) analysis->states[ended].raised_at_end = call;
    analysis->capture_of[call] = ended;
    return;
  }
  const uint32_t open = analysis->threads[of->thread].newest_open;
  if (open != GCAP_DOCTOR_NONE) analysis->states[open].raised = call;
  analysis->capture_of[call] = open;
}

static bool is_uncaught(const gcap_doctor_analysis_t* analysis, uint32_t call) {
  return gcap_doctor_call_at(analysis, call)->raised_at == GCAP_DOCTOR_NONE;
}

// The exception that left the capture; GCAP_DOCTOR_NONE.
static uint32_t find_raised(const gcap_doctor_analysis_t* analysis, uint32_t index) {
  const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[index];
  const gcap_doctor_capture_state_t* state = &analysis->states[index];
  if (capture->culprit != GCAP_DOCTOR_NONE || capture->replays != 0) return GCAP_DOCTOR_NONE;
  if (gcap_doctor_is_before_gap(analysis, capture->begin))
    return GCAP_DOCTOR_NONE;  // its end, its launches may be left out
  if (capture->outcome == GCAP_DOCTOR_OUTCOME_GRAPH) return state->raised_at_end;
  if (capture->outcome != GCAP_DOCTOR_OUTCOME_OPEN || state->raised == GCAP_DOCTOR_NONE) return GCAP_DOCTOR_NONE;
  return is_uncaught(analysis, state->raised) || analysis->recording->ended
             ? state->raised
             : GCAP_DOCTOR_NONE;  // else the capture may go on
}

void gcap_doctor_raised_find(gcap_doctor_analysis_t* analysis) {
  for (uint32_t i = 0; i < analysis->diagnosis->num_captures; ++i) {
    const uint32_t call = find_raised(analysis, i);
    if (call == GCAP_DOCTOR_NONE) continue;
    gcap_doctor_finding_t* finding =
        gcap_doctor_finding_add(analysis, GCAP_DOCTOR_FINDING_EXCEPTION, GCAP_DOCTOR_SEVERITY_ERROR, i, call);
    // One that was handled in the capture may have been its last by chance.
    finding->is_certain = call == analysis->states[i].raised_at_end || is_uncaught(analysis, call);
    finding->other = analysis->states[i].last_ask;
    finding->rule = gcap_doctor_refused_rule(analysis, i);
    analysis->states[i].refused = true;
  }
}
