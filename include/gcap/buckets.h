// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// buckets.h: for which sizes graphs are captured. A graph has one size, such as a batch of 8 or a length of 512; a run
// of another size is padded to a bucket, a size that has a graph. Plain C: nothing here calls CUDA.
#ifndef GCAP_BUCKETS_H_
#define GCAP_BUCKETS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/api.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// One line of a histogram: how often runs had this size. Lines come in any order. Lines of one size are added up, so
// sizes may be rounded up before, to what kernels like. A line whose count is 0 says nothing.
typedef struct gcap_size_count {
  size_t size;     // >= 1
  uint64_t count;  // of runs
} gcap_size_count_t;

// What a choice depends on besides the histogram.
// Thread:   plain data. One thread at a time writes the struct.
// Capture:  legal: nothing here calls CUDA.
// Lifetime: gcap_buckets_choose reads the struct, and what it points to, before it returns.
typedef struct gcap_buckets_options {
  size_t struct_size;  // set by gcap_buckets_options_init
  // What one run of a size costs, in any unit: a time, or a number of elements. A run that is padded costs what a run
  // of its bucket costs, so padding costs cost(bucket) - cost(size). Default NULL: a run costs its size. That is true
  // of batches of a decoder, whose step takes a fixed time and a time for each sequence: the fixed time cancels out,
  // and the unit changes no choice. A prefill takes a * length + b * length^2, or what was measured: a function says
  // so, and a coefficient for each element could not. Called once for each size that may be a bucket, from the smallest
  // on. Each answer is finite and >= 0, and a larger size costs no less, so that the smallest bucket is the best one.
  double (*cost)(void* user, size_t size);
  void* user;  // passed to `cost`
  // The largest size that is served: it is a bucket, and runs of larger sizes have none. Default 0: the largest size of
  // the histogram and of `required`.
  size_t largest;
  const size_t* required;  // [num_required]: sizes that are buckets in any case, in any order. Default NULL: none
  size_t num_required;
  // A budget of device memory. Default 0: the number of buckets alone is limited. Else there are at most max_bytes /
  // bytes_per_bucket buckets.
  size_t max_bytes;
  // What the graph of one bucket holds: gcap_graph_plan_t.bytes of one run (graph_plan.h). An executable takes as much
  // for any size that has as many kernels. Where graphs keep scratch of their own, plan a run of the largest size:
  // then no bucket holds more, and the budget is kept. Where graphs share scratch, plan bytes without it, and take what
  // they share off the budget. A plan of all the buckets that were chosen says what they hold together.
  size_t bytes_per_bucket;
} gcap_buckets_options_t;

// Sets the size and the defaults.
static inline void gcap_buckets_options_init(gcap_buckets_options_t* options) {
  const gcap_buckets_options_t defaults = {sizeof(*options), NULL, NULL, 0, NULL, 0, 0, 0};
  *options = defaults;
}

// What a choice comes to.
// Thread:   plain data. One thread at a time writes the struct.
// Capture:  legal: nothing here calls CUDA.
// Lifetime: the caller's.
typedef struct gcap_buckets_choice {
  size_t struct_size;   // set by gcap_buckets_choice_init
  size_t num_buckets;   // how many of out_buckets are set
  uint64_t runs;        // of the histogram that have a bucket
  uint64_t other_runs;  // larger than `largest`: no bucket
  double cost;          // of the runs that have a bucket, each as its bucket
  double padding_cost;  // the part of `cost` that is padding
} gcap_buckets_choice_t;

// A choice of nothing. Programs call it before they have a choice made.
static inline void gcap_buckets_choice_init(gcap_buckets_choice_t* choice) {
  const gcap_buckets_choice_t nothing = {sizeof(*choice), 0, 0, 0, 0, 0};
  *choice = nothing;
}

// Chooses buckets for a histogram. Of all sets of at most `max_buckets` sizes that keep to `options`, the choice is one
// whose padding costs least, and of these one of the fewest sizes. `options` NULL: the defaults. `out_buckets`, room
// for `max_buckets` sizes: the buckets, ascending, behind them zeros. `out_choice` says how many there are. By dynamic
// programming, in a time of max_buckets * n * log(n) for n sizes, and memory of max_buckets * n. Costs are compared as
// double, which is exact for whole numbers below 2^53.
// Thread:   any. `cost` is called on this thread, without a lock.
// Capture:  legal.
//   INVALID_ARGUMENT    max_buckets is 0, or no array has so much room; no size at all: no count, no required size and
//                       no largest; no `required` although there is a count; a size of 0 that has a count or is
//                       required; a required size above `largest`; more sizes that must be buckets than max_buckets, or
//                       than max_bytes has room for; max_bytes without bytes_per_bucket; a cost that is negative or no
//                       finite number, or below that of a smaller size; counts whose sum is beyond UINT64_MAX, or runs
//                       whose cost is beyond half of DBL_MAX
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_buckets_choose(const gcap_size_count_t* sizes, size_t num_sizes,
                                           const gcap_buckets_options_t* options, size_t max_buckets,
                                           size_t* out_buckets, gcap_buckets_choice_t* out_choice) GCAP_NODISCARD;

// Returns the smallest of `buckets` that is no smaller than `size`, which may serve as the id of its graph. 0: there is
// none, so the run is eager. `buckets` ascend. If they do not, the answer may be a larger one than need be, or 0, but
// never one that is too small. Takes no lock and no memory.
// Thread:   any.
// Capture:  legal.
GCAP_API size_t gcap_buckets_find(const size_t* buckets, size_t num_buckets, size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_BUCKETS_H_
