// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// candidates.h: the sizes that may be buckets, each with its runs and its cost, checked and in order.
#ifndef GCAP_LIB_BUCKETS_CANDIDATES_H_
#define GCAP_LIB_BUCKETS_CANDIDATES_H_

#include "gcap/buckets.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_candidate {
  size_t size;
  uint64_t count;  // runs of this size
  uint64_t up_to;  // runs of this size and of smaller ones
  double cost;     // of one run
  size_t fixed;    // how many candidates that must be buckets come before this one, and are this one
  bool is_fixed;   // must be a bucket
} gcap_candidate_t;

// Of a histogram. The last candidate is the largest size that is served, which is fixed.
typedef struct gcap_candidates {
  gcap_candidate_t* items;  // ascending, no size twice
  size_t count;             // >= 1
  uint64_t other_runs;      // of sizes that are larger than the last candidate
} gcap_candidates_t;

// On failure there is nothing to free.
//   INVALID_ARGUMENT    of gcap_buckets_choose, but for what is said of max_buckets and of max_bytes
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_candidates_read(const gcap_size_count_t* sizes, size_t num_sizes,
                                   const gcap_buckets_options_t* options, gcap_candidates_t* out) GCAP_NODISCARD;
void gcap_candidates_free(gcap_candidates_t* candidates);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_BUCKETS_CANDIDATES_H_
