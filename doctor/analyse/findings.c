// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The list of findings. A mistake in a loop is found once for each time: findings of one kind, from one place, are put
// together and counted, the earliest of them stays. Sentences are written after that. Locking: none.
#include <stdlib.h>
#include <string.h>

#include "doctor/analyse/analysis.h"

gcap_doctor_finding_t* gcap_doctor_finding_add(gcap_doctor_analysis_t* analysis, gcap_doctor_finding_kind_t kind,
                                               gcap_doctor_severity_t severity, uint32_t capture, uint32_t call) {
  gcap_doctor_diagnosis_t* diagnosis = analysis->diagnosis;
  diagnosis->findings = gcap_doctor_heap_grow(diagnosis->findings, diagnosis->num_findings,
                                              &diagnosis->finding_capacity, sizeof(*diagnosis->findings));
  gcap_doctor_finding_t* finding = &diagnosis->findings[diagnosis->num_findings++];
  *finding = (gcap_doctor_finding_t){.kind = kind,
                                     .severity = severity,
                                     .capture = capture,
                                     .call = call,
                                     .other = GCAP_DOCTOR_NONE,
                                     .is_certain = true,
                                     .count = 1,
                                     .num_captures = capture != GCAP_DOCTOR_NONE ? 1 : 0,
                                     .sentence = "",
                                     .remedy = ""};
  return finding;
}

const char* gcap_doctor_finding_kind_name(gcap_doctor_finding_kind_t kind) {
  switch (kind) {
    case GCAP_DOCTOR_FINDING_CULPRIT: return "culprit";
    case GCAP_DOCTOR_FINDING_UNJOINED: return "unjoined";
    case GCAP_DOCTOR_FINDING_ESCAPED: return "escaped";
    case GCAP_DOCTOR_FINDING_LOST_CALL: return "lost_call";
    case GCAP_DOCTOR_FINDING_EXCEPTION: return "exception";
    case GCAP_DOCTOR_FINDING_REFUSED: return "refused";
    case GCAP_DOCTOR_FINDING_PAGEABLE: return "pageable";
    case GCAP_DOCTOR_FINDING_ALLOCATION_NODE: return "allocation_node";
    case GCAP_DOCTOR_FINDING_EMPTY_GRAPH: return "empty_graph";
    case GCAP_DOCTOR_FINDING_LEFT_OPEN: return "left_open";
    case GCAP_DOCTOR_FINDING_RECAPTURED: return "recaptured";
    case GCAP_DOCTOR_FINDING_UPDATE_REFUSED: return "update_refused";
    case GCAP_DOCTOR_FINDING_LAUNCH_FAILED: return "launch_failed";
    case GCAP_DOCTOR_FINDING_NEVER_LAUNCHED: return "never_launched";
    case GCAP_DOCTOR_FINDING_MODE_KEPT: return "mode_kept";
    case GCAP_DOCTOR_FINDING_DIFFERS: return "differs";
    case GCAP_DOCTOR_FINDING_STALE: return "stale_memory";
    case GCAP_DOCTOR_FINDING_SHARED: return "shared_launch";
    case GCAP_DOCTOR_FINDING_GROWTH: return "growth";
  }
  return "unknown";
}

// --- Together --------------------------------------------------------------------------------------------------------

// What makes two findings the same one.
typedef struct key {
  int kind, severity, certain, result;
  uint32_t stack, stream, other_stack;
  const char* function;
  const gcap_rule_t* rule;
  gcap_doctor_finding_t finding;
} same_t;

#define COMPARE(a, b) \
  if ((a) != (b)) return (a) < (b) ? -1 : 1

static int compare_keys(const same_t* a, const same_t* b) {
  COMPARE(a->kind, b->kind);
  COMPARE(a->severity, b->severity);
  COMPARE(a->certain, b->certain);
  COMPARE((uintptr_t)a->rule, (uintptr_t)b->rule);
  COMPARE(a->result, b->result);
  COMPARE(a->stack, b->stack);
  COMPARE(a->stream, b->stream);
  COMPARE(a->other_stack, b->other_stack);
  return strcmp(a->function, b->function);
}

static int by_key(const void* left, const void* right) {
  const same_t *a = left, *b = right;
  const int order = compare_keys(a, b);
  if (order != 0) return order;
  COMPARE(a->finding.call, b->finding.call);
  COMPARE(a->finding.capture, b->finding.capture);
  return 0;
}

static same_t key_of(const gcap_doctor_analysis_t* analysis, const gcap_doctor_finding_t* finding) {
  same_t key = {.kind = (int)finding->kind,
                .severity = (int)finding->severity,
                .certain = finding->is_certain,
                .rule = finding->rule,
                .stack = GCAP_DOCTOR_NONE,
                .stream = GCAP_DOCTOR_NONE,
                .other_stack = GCAP_DOCTOR_NONE,
                .function = "",
                .finding = *finding};
  if (finding->call != GCAP_DOCTOR_NONE) {
    const gcap_doctor_event_call_t* call = gcap_doctor_call_at(analysis, finding->call);
    key.stack = call->stack;
    key.function = call->function;
    key.result = call->result;
    if (call->stack == GCAP_DOCTOR_NONE) key.stream = call->stream;  // else the place alone decides
  }
  // Memory of two places is two mistakes.
  const bool counts_other = !finding->is_certain || finding->kind == GCAP_DOCTOR_FINDING_STALE;
  if (finding->other != GCAP_DOCTOR_NONE && counts_other) {
    key.other_stack = gcap_doctor_call_at(analysis, finding->other)->stack;
  }
  return key;
}

static void put_together(gcap_doctor_analysis_t* analysis) {
  gcap_doctor_diagnosis_t* diagnosis = analysis->diagnosis;
  const size_t count = diagnosis->num_findings;
  if (count == 0) return;
  same_t* keys = gcap_doctor_heap_alloc(&analysis->heap, count * sizeof(*keys));
  for (size_t i = 0; i < count; ++i) keys[i] = key_of(analysis, &diagnosis->findings[i]);
  qsort(keys, count, sizeof(*keys), by_key);
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i != 0 && compare_keys(&keys[i - 1], &keys[i]) == 0) {
      gcap_doctor_finding_t* first = &diagnosis->findings[kept - 1];
      // One call may break two captures.
      const bool is_once = keys[i].finding.call != GCAP_DOCTOR_NONE && keys[i].finding.call == keys[i - 1].finding.call;
      if (!is_once) first->count += keys[i].finding.count;
      if (keys[i].finding.capture != keys[i - 1].finding.capture) ++first->num_captures;
    } else {
      diagnosis->findings[kept++] = keys[i].finding;
    }
  }
  diagnosis->num_findings = kept;
}

// --- In order --------------------------------------------------------------------------------------------------------

// Why a capture failed comes before all else of the same severity.
static int rank(gcap_doctor_finding_kind_t kind) {
  return kind == GCAP_DOCTOR_FINDING_CULPRIT || kind == GCAP_DOCTOR_FINDING_UNJOINED ||
                 kind == GCAP_DOCTOR_FINDING_EXCEPTION
             ? 0
             : 1;
}

static int worst_first(const void* left, const void* right) {
  const gcap_doctor_finding_t *a = left, *b = right;
  COMPARE(a->severity, b->severity);
  COMPARE(rank(a->kind), rank(b->kind));
  COMPARE(a->call, b->call);
  COMPARE(a->kind, b->kind);
  COMPARE(a->capture, b->capture);
  return 0;
}

void gcap_doctor_findings_finish(gcap_doctor_analysis_t* analysis) {
  gcap_doctor_diagnosis_t* diagnosis = analysis->diagnosis;
  put_together(analysis);
  if (diagnosis->num_findings != 0) {
    qsort(diagnosis->findings, diagnosis->num_findings, sizeof(*diagnosis->findings), worst_first);
  }
  for (size_t i = 0; i < diagnosis->num_findings; ++i) gcap_doctor_words_write(analysis, &diagnosis->findings[i]);
}
