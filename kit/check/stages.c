// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The stages of a check, each as a list of runs and of what is compared behind them. A finding of a stage makes those
// behind it say nothing: replays of work that is not repeatable differ, and so on. So a stage that has a finding ends,
// and none of the replays is tried. The capture is: what is wrong with it is found by no run.
//
// Locking: none.

#include "kit/check/checking.h"

// --- Eager runs ---------------------------------------------------------------------------------------------------------

// One eager run of the first fill, compared with the first one.
static gcap_status_t run_again(gcap_checking_t* checking, unsigned char in_outputs, unsigned char in_scratch,
                               gcap_check_kind_t kind, const char* situation) {
  gcap_check_place_t* home = &checking->places[GCAP_CHECK_HOME];
  if (gcap_checking_has_findings(checking)) return NULL;
  bool failed = false;
  GCAP_RETURN_IF_ERROR(gcap_checking_prepare(checking, home, 0, in_outputs, in_scratch));
  GCAP_RETURN_IF_ERROR(gcap_checking_run(checking, home, &failed));
  if (failed) return NULL;
  return gcap_checking_compare(checking, 0, GCAP_CHECK_AFTER, kind, situation, NULL);
}

// A run whose outcome is kept.
static gcap_status_t run_first(gcap_checking_t* checking, int fill, size_t slot) {
  gcap_check_place_t* home = &checking->places[GCAP_CHECK_HOME];
  if (gcap_checking_has_findings(checking)) return NULL;
  bool failed = false;
  GCAP_RETURN_IF_ERROR(gcap_checking_prepare(checking, home, fill, GCAP_CHECK_POISON, GCAP_CHECK_POISON));
  GCAP_RETURN_IF_ERROR(gcap_checking_run(checking, home, &failed));
  if (slot == GCAP_CHECK_TWICE && !failed) GCAP_RETURN_IF_ERROR(gcap_checking_run(checking, home, &failed));
  if (failed) return NULL;
  return gcap_verify_state_save(checking->outputs, slot, home->stream);
}

// Both fills give the same: nobody could see that a replay has the inputs of its capture.
static gcap_status_t look_at_outputs(gcap_checking_t* checking) {
  if (gcap_checking_has_findings(checking) || checking->check.num_inputs == 0) return NULL;
  gcap_verify_difference_t difference;
  GCAP_RETURN_IF_ERROR(gcap_verify_state_compare(checking->outputs, GCAP_CHECK_AFTER, GCAP_CHECK_AFTER + 1,
                                                 checking->places[GCAP_CHECK_HOME].stream, &difference));
  if (difference.block != SIZE_MAX) return NULL;
  gcap_checking_add(checking, GCAP_CHECK_SAME_OUTPUTS,
                    "eager runs with two fills of the inputs leave the same in all %zu outputs",
                    checking->check.num_outputs);
  return NULL;
}

static void look_at_scratch(gcap_checking_t* checking, const size_t kept[3]) {
  checking->report.kept_scratch_bytes = kept[2];
  if (gcap_checking_has_findings(checking) || kept[1] <= kept[0] || kept[2] <= kept[1]) return;
  gcap_checking_add(checking, GCAP_CHECK_LEAKS_SCRATCH,
                    "each eager run keeps more scratch: %zu bytes, then %zu, then %zu, from the same memory", kept[0],
                    kept[1], kept[2]);
}

gcap_status_t gcap_checking_run_eagerly(gcap_checking_t* checking) {
  enum { BYTE = GCAP_CHECK_POISON, OTHER = GCAP_CHECK_OTHER_POISON };
  gcap_check_ranges_t* ranges = &checking->places[GCAP_CHECK_HOME].ranges;
  size_t kept[3];
  GCAP_RETURN_IF_ERROR(run_first(checking, 0, GCAP_CHECK_AFTER));  // finds libraries and memory
  kept[0] = gcap_check_ranges_live_bytes(ranges);
  GCAP_RETURN_IF_ERROR(run_first(checking, 0, GCAP_CHECK_AFTER));
  kept[1] = gcap_check_ranges_live_bytes(ranges);
  GCAP_RETURN_IF_ERROR(gcap_checking_compare_inputs(checking));
  GCAP_RETURN_IF_ERROR(
      run_again(checking, BYTE, BYTE, GCAP_CHECK_NOT_REPEATABLE, "two eager runs from the same memory differ"));
  kept[2] = gcap_check_ranges_live_bytes(ranges);
  look_at_scratch(checking, kept);
  GCAP_RETURN_IF_ERROR(
      run_again(checking, OTHER, BYTE, GCAP_CHECK_READS_OUTPUT, "what the outputs had before an eager run counts"));
  GCAP_RETURN_IF_ERROR(
      run_again(checking, BYTE, OTHER, GCAP_CHECK_READS_SCRATCH, "what scratch had before an eager run counts"));
  GCAP_RETURN_IF_ERROR(run_first(checking, 1, GCAP_CHECK_AFTER + 1));
  GCAP_RETURN_IF_ERROR(look_at_outputs(checking));
  return run_first(checking, 0, GCAP_CHECK_TWICE);
}

// --- The capture --------------------------------------------------------------------------------------------------------

gcap_status_t gcap_checking_record(gcap_checking_t* checking, gcap_check_place_t* place, bool* out_captured) {
  *out_captured = false;
  bool failed = false, escaped = false, is_sound = false;
  GCAP_RETURN_IF_ERROR(gcap_checking_prepare(checking, place, 0, GCAP_CHECK_POISON, GCAP_CHECK_POISON));
  GCAP_RETURN_IF_ERROR(gcap_checking_capture(checking, place, &failed));
  if (failed) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_checking_compare(checking, 0, GCAP_CHECK_BEFORE, GCAP_CHECK_ESCAPED,
                                             "work runs while it is captured", &escaped));
  GCAP_RETURN_IF_ERROR(gcap_checking_audit(checking, place, /*is_new=*/true, &is_sound));
  *out_captured = !escaped && is_sound;
  return NULL;
}

// --- Replays -----------------------------------------------------------------------------------------------------------

// One replay of a fill, or two in a row, on the stream.
typedef struct replay {
  int fill;
  size_t slot;
  gcap_check_kind_t kind;
  const char* situation;
} replay_t;

static gcap_status_t try_replay(gcap_checking_t* checking, gcap_check_place_t* place, cudaStream_t stream,
                                const replay_t* replay) {
  if (gcap_checking_has_findings(checking)) return NULL;
  bool is_sound = false;
  GCAP_RETURN_IF_ERROR(gcap_checking_prepare(checking, place, replay->fill, GCAP_CHECK_POISON, GCAP_CHECK_POISON));
  GCAP_RETURN_IF_ERROR(gcap_checking_audit(checking, place, /*is_new=*/false, &is_sound));
  if (!is_sound) return NULL;
  for (int i = 0; i < (replay->slot == GCAP_CHECK_TWICE ? 2 : 1); ++i) {
    bool replayed = false;
    GCAP_RETURN_IF_ERROR(gcap_checking_replay(checking, place, stream, &replayed));
    if (!replayed) return NULL;
  }
  return gcap_checking_compare_replay(checking, place, replay->fill, replay->slot, replay->kind, replay->situation);
}

// All once more on another stream, with other scratch.
static gcap_status_t go_elsewhere(gcap_checking_t* checking) {
  gcap_check_place_t* place = &checking->places[GCAP_CHECK_ELSEWHERE];
  bool failed = false, captured = false, differs = false;
  GCAP_RETURN_IF_ERROR(gcap_check_place_open(checking, place));
  for (int i = 0; i < 2; ++i) {  // the first one finds libraries and memory
    GCAP_RETURN_IF_ERROR(gcap_checking_prepare(checking, place, 0, GCAP_CHECK_POISON, GCAP_CHECK_POISON));
    GCAP_RETURN_IF_ERROR(gcap_checking_run(checking, place, &failed));
    if (failed) return NULL;
  }
  GCAP_RETURN_IF_ERROR(gcap_checking_compare(checking, 0, GCAP_CHECK_AFTER, GCAP_CHECK_STREAM_BOUND,
                                             "an eager run on another stream differs from one before", &differs));
  if (differs) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_checking_record(checking, place, &captured));
  if (!captured) return NULL;
  const replay_t replay = {1, GCAP_CHECK_AFTER + 1, GCAP_CHECK_STREAM_BOUND,
                           "a replay of a capture on another stream differs from an eager run"};
  return try_replay(checking, place, place->stream, &replay);
}

gcap_status_t gcap_checking_replay_all(gcap_checking_t* checking) {
  static const replay_t at_home[] = {
      {0, GCAP_CHECK_AFTER, GCAP_CHECK_DIFFERS, "a replay with the inputs of the capture differs from an eager run"},
      {0, GCAP_CHECK_TWICE, GCAP_CHECK_NOT_RESET, "two replays in a row differ from two eager runs in a row"},
      {1, GCAP_CHECK_AFTER + 1, GCAP_CHECK_FROZEN, "a replay with other inputs differs from an eager run"},
  };
  static const replay_t beside = {1, GCAP_CHECK_AFTER + 1, GCAP_CHECK_STREAM_BOUND,
                                  "a replay on another stream differs from an eager run"};
  static const replay_t after_churn = {0, GCAP_CHECK_AFTER, GCAP_CHECK_FREED_MEMORY,
                                       "a replay after memory was handed out differs from an eager run"};
  gcap_check_place_t* home = &checking->places[GCAP_CHECK_HOME];
  for (size_t i = 0; i < sizeof(at_home) / sizeof(at_home[0]); ++i) {
    GCAP_RETURN_IF_ERROR(try_replay(checking, home, home->stream, &at_home[i]));
  }
  if (gcap_checking_has_findings(checking)) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamCreateWithFlags(&checking->side, cudaStreamNonBlocking)));
  GCAP_RETURN_IF_ERROR(try_replay(checking, home, checking->side, &beside));
  if (!gcap_checking_has_findings(checking)) GCAP_RETURN_IF_ERROR(go_elsewhere(checking));
  if (gcap_checking_has_findings(checking)) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_checking_churn(checking));
  return try_replay(checking, home, home->stream, &after_churn);
}
