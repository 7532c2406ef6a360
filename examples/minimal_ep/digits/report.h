// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// report.h: the program's figures, as a table or as one JSON object.
#ifndef GCAP_EXAMPLES_MINIMAL_EP_DIGITS_REPORT_H_
#define GCAP_EXAMPLES_MINIMAL_EP_DIGITS_REPORT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "examples/minimal_ep/digits/stats.h"

#ifdef __cplusplus
extern "C" {
#endif

// report_t: all figures of one run of the program. Filled by the caller.
typedef struct report {
  const char* device;
  double accuracy;  // 0..1
  size_t images;
  size_t batch;
  size_t threads;
  bool has_replay;  // false: eager only; the replay figures mean nothing
  double max_abs_diff_eager_replay;
  double max_abs_diff_reference;
  stats_summary_t eager;
  stats_summary_t replay;
  size_t nodes;  // of one graph
  size_t holes, eager_warm_ups;
  uint64_t captures, replays;
  uint64_t scratch_reserved_bytes, scratch_peak_bytes;
  bool has_cuda_calls;  // false on a GPU, which does not count them
  uint64_t cuda_calls;  // from the making of the provider to its end: what --inject-fault counts
} report_t;

void report_print_table(const report_t* report, FILE* stream);

// One object on one line. Figures that were not measured are null.
void report_print_json(const report_t* report, FILE* stream);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_MINIMAL_EP_DIGITS_REPORT_H_
