// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// checking.h: a check under way, for the files of this module.
#ifndef GCAP_KIT_CHECK_CHECKING_H_
#define GCAP_KIT_CHECK_CHECKING_H_

#include "gcap/kit/check.h"
#include "gcap/runtime.h"
#include "kit/check/ranges.h"
#include "lib/internal/kept.h"
#include "lib/verify/inner.h"

// The two fills of the inputs, and the bytes of which memory is full before a run. The first byte makes a NaN of every
// floating-point format, the second a small number.
enum { GCAP_CHECK_NUM_FILLS = 2, GCAP_CHECK_POISON = 0xff, GCAP_CHECK_OTHER_POISON = 0x3c };

// What outputs have at several times, by slot of `outputs`; of `inputs` there are the first two.
enum {
  GCAP_CHECK_BEFORE = 0,                                       // a run of each fill
  GCAP_CHECK_AFTER = GCAP_CHECK_NUM_FILLS,                     // an eager run of each fill
  GCAP_CHECK_TWICE = GCAP_CHECK_AFTER + GCAP_CHECK_NUM_FILLS,  // two eager runs of the first fill
  GCAP_CHECK_NUM_SLOTS
};

// Where the operation runs: a stream, the graphs that are captured on it, and the scratch.
typedef struct gcap_check_place {
  gcap_runtime_t* runtime;  // NULL: not made yet
  cudaStream_t stream;
  gcap_check_ranges_t ranges;
  int id;  // of the graph
} gcap_check_place_t;

enum { GCAP_CHECK_HOME = 0, GCAP_CHECK_ELSEWHERE, GCAP_CHECK_NUM_PLACES };

// Memory that the check gets to fill it.
typedef struct gcap_check_churn {
  void** blocks;
  size_t count, room;
} gcap_check_churn_t;

typedef struct gcap_checking {
  gcap_check_t check;          // in the library's layout
  gcap_check_report_t report;  // likewise
  int device_id;
  // The buffers in device memory, and what they have at several times.
  gcap_verify_block_t *input_blocks, *output_blocks;
  size_t num_input_blocks;
  gcap_graph_verify_buffer_t* named;  // both, for a verification
  size_t num_named;
  gcap_verify_state_t *inputs, *outputs;
  unsigned char* host_fills;  // of inputs on the host, for each fill one behind the other
  size_t host_fill_bytes;     // of one fill
  gcap_check_place_t places[GCAP_CHECK_NUM_PLACES];
  cudaStream_t side;  // for replays; NULL: not made yet
  gcap_check_churn_t churn;
  bool has_work_failed;   // in the last run
  gcap_code_t work_code;  // of that failure
  gcap_kept_t kept;       // once a place cannot be ended
} gcap_checking_t;

// --- Parts of a check (each returns a failure of the check, not of the operation) ------------------------------------

// The errors of gcap_check_capturable of its arguments.
gcap_status_t gcap_checking_refuse(const gcap_check_t* check) GCAP_NODISCARD;

// Makes the lists of the buffers, the place at home, and both fills.
gcap_status_t gcap_checking_begin(gcap_checking_t* checking) GCAP_NODISCARD;
gcap_status_t gcap_checking_end(gcap_checking_t* checking) GCAP_NODISCARD;

// Both fills of the inputs, and of outputs that are in place, become what there is before a run.
gcap_status_t gcap_checking_fill(gcap_checking_t* checking) GCAP_NODISCARD;

gcap_status_t gcap_check_place_open(gcap_checking_t* checking, gcap_check_place_t* place) GCAP_NODISCARD;
// Frees also the scratch that the operation kept. LEAKED: what could not be ended is still there, for another call.
gcap_status_t gcap_check_place_close(gcap_check_place_t* place) GCAP_NODISCARD;

// The rest work at a place. Each begins and ends with an idle device.

// What there is before a run of the fill. Outputs that are not in place, and scratch that is nobody's, are full of the
// two bytes.
gcap_status_t gcap_checking_prepare(gcap_checking_t* checking, gcap_check_place_t* place, int fill,
                                    unsigned char in_outputs, unsigned char in_scratch) GCAP_NODISCARD;
// An eager run. `*out_failed`: the operation failed, which is a finding.
gcap_status_t gcap_checking_run(gcap_checking_t* checking, gcap_check_place_t* place, bool* out_failed) GCAP_NODISCARD;
// A capture that is not launched. `*out_failed`: likewise.
gcap_status_t gcap_checking_capture(gcap_checking_t* checking, gcap_check_place_t* place,
                                    bool* out_failed) GCAP_NODISCARD;
// A replay, on the stream. `*out_replayed`: false, if a guard of the operation refused it.
gcap_status_t gcap_checking_replay(gcap_checking_t* checking, gcap_check_place_t* place, cudaStream_t stream,
                                   bool* out_replayed) GCAP_NODISCARD;
// A replay of the fill that is compared with an eager run behind it, for what the manager says of the cause. NULL: that
// one does not differ. The caller owns `*out_difference`. The graph replays no more.
gcap_status_t gcap_checking_explain(gcap_checking_t* checking, gcap_check_place_t* place, int fill,
                                    gcap_status_t* out_difference) GCAP_NODISCARD;

// Gets memory of all sizes that the driver and the scratch may have for the next request, fills it, and gives the
// scratch back. The driver's is freed with the check.
gcap_status_t gcap_checking_churn(gcap_checking_t* checking) GCAP_NODISCARD;
gcap_status_t gcap_checking_free_churn(gcap_checking_t* checking) GCAP_NODISCARD;

// --- Stages. Each adds findings to the report. -------------------------------------------------------------------------

gcap_status_t gcap_checking_run_eagerly(gcap_checking_t* checking) GCAP_NODISCARD;
// `*out_captured`: there is a graph that may be launched.
gcap_status_t gcap_checking_record(gcap_checking_t* checking, gcap_check_place_t* place,
                                   bool* out_captured) GCAP_NODISCARD;
gcap_status_t gcap_checking_replay_all(gcap_checking_t* checking) GCAP_NODISCARD;

// A finding if what a buffer has differs from the slot. `fill`: whose inputs there were; `situation` begins the
// sentence. `*out_differs` may be NULL.
gcap_status_t gcap_checking_compare(gcap_checking_t* checking, int fill, size_t slot, gcap_check_kind_t kind,
                                    const char* situation, bool* out_differs) GCAP_NODISCARD;
// A finding if an eager run of the first fill changed an input.
gcap_status_t gcap_checking_compare_inputs(gcap_checking_t* checking) GCAP_NODISCARD;
// As gcap_checking_compare, of a replay, with its cause.
gcap_status_t gcap_checking_compare_replay(gcap_checking_t* checking, gcap_check_place_t* place, int fill, size_t slot,
                                           gcap_check_kind_t kind, const char* situation) GCAP_NODISCARD;
// Whether the graph works on its own memory alone; a finding if not.
gcap_status_t gcap_checking_audit(gcap_checking_t* checking, gcap_check_place_t* place, bool is_new,
                                  bool* out_sound) GCAP_NODISCARD;

// --- Findings ------------------------------------------------------------------------------------------------------------

static inline bool gcap_checking_has_findings(const gcap_checking_t* checking) {
  return checking->report.num_findings != 0;
}

void gcap_checking_add(gcap_checking_t* checking, gcap_check_kind_t kind, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
// The message of a failure as a finding. Consumes `failure`.
void gcap_checking_add_failure(gcap_checking_t* checking, gcap_check_kind_t kind, const char* situation,
                               gcap_status_t failure);

// Writes check->events, if there is one.
gcap_status_t gcap_checking_write_events(const gcap_checking_t* checking) GCAP_NODISCARD;

#endif  // GCAP_KIT_CHECK_CHECKING_H_
