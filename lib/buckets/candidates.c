// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Candidates. Since a larger size costs no less, the best bucket for some sizes is the largest of them: so a bucket is
// a size of the histogram, or one that must be a bucket. All these are collected, sorted, and made one where they are
// the same size. What a caller may get wrong is found here, so that the choice works on numbers that are right: no sum
// of counts overflows, and no sum of costs is infinite.
//
// Locking: none, nothing is shared.

#include "lib/buckets/candidates.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

// Of all runs. The other half is for what rounding adds where the costs of some buckets are added up.
static const double kMaxCost = DBL_MAX / 2;

// --- Sizes ----------------------------------------------------------------------------------------------------------

static gcap_status_t check_sizes(const gcap_size_count_t* sizes, size_t num_sizes,
                                 const gcap_buckets_options_t* options) {
  for (size_t i = 0; i < num_sizes; ++i) {
    if (sizes[i].size > 0 || sizes[i].count == 0) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "sizes[%zu].size is 0 with a count of %llu, allowed are sizes >= 1", i,
                       (unsigned long long)sizes[i].count);
  }
  for (size_t i = 0; i < options->num_required; ++i) {
    const size_t size = options->required[i];
    if (size == 0) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "required[%zu] is 0, allowed are sizes >= 1", i);
    if (options->largest == 0 || size <= options->largest) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "required[%zu] is %zu, allowed are sizes up to `largest`, which is %zu",
                       i, size, options->largest);
  }
  return NULL;
}

static void add(gcap_candidates_t* to, size_t size, uint64_t count, bool is_fixed) {
  to->items[to->count++] = (gcap_candidate_t){.size = size, .count = count, .is_fixed = is_fixed};
}

static void collect(const gcap_size_count_t* sizes, size_t num_sizes, const gcap_buckets_options_t* options,
                    gcap_candidates_t* to) {
  for (size_t i = 0; i < num_sizes; ++i) {
    if (sizes[i].count > 0) add(to, sizes[i].size, sizes[i].count, /*is_fixed=*/false);
  }
  for (size_t i = 0; i < options->num_required; ++i) add(to, options->required[i], /*count=*/0, /*is_fixed=*/true);
  if (options->largest > 0) add(to, options->largest, /*count=*/0, /*is_fixed=*/true);
}

static int compare_sizes(const void* a, const void* b) {
  const gcap_candidate_t *x = a, *y = b;
  return (x->size > y->size) - (x->size < y->size);
}

// One of each size. The counts have a sum, so none of them overflows.
static void merge(gcap_candidates_t* candidates) {
  gcap_candidate_t* items = candidates->items;
  size_t last = 0;
  for (size_t i = 1; i < candidates->count; ++i) {
    if (items[i].size != items[last].size) {
      items[++last] = items[i];
      continue;
    }
    items[last].count += items[i].count;
    items[last].is_fixed |= items[i].is_fixed;
  }
  candidates->count = last + 1;
}

// What is larger than the largest size that is served has no bucket.
static void cut(gcap_candidates_t* candidates, size_t largest) {
  while (largest > 0 && candidates->items[candidates->count - 1].size > largest) {
    candidates->other_runs += candidates->items[--candidates->count].count;
  }
  candidates->items[candidates->count - 1].is_fixed = true;
}

// --- Counts and costs -----------------------------------------------------------------------------------------------

static gcap_status_t check_counts(const gcap_candidates_t* candidates) {
  uint64_t sum = 0;
  for (size_t i = 0; i < candidates->count; ++i) {
    const gcap_candidate_t* item = &candidates->items[i];
    if (!__builtin_add_overflow(sum, item->count, &sum)) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the counts up to size %zu add up to more than %llu, which is allowed",
                       item->size, (unsigned long long)UINT64_MAX);
  }
  return NULL;
}

static void add_up(gcap_candidates_t* candidates) {
  uint64_t runs = 0;
  size_t fixed = 0;
  for (size_t i = 0; i < candidates->count; ++i) {
    gcap_candidate_t* item = &candidates->items[i];
    item->up_to = runs += item->count;
    item->fixed = fixed += item->is_fixed;
  }
}

static gcap_status_t find_costs(const gcap_candidates_t* candidates, const gcap_buckets_options_t* options) {
  double before = 0;
  for (size_t i = 0; i < candidates->count; ++i) {
    gcap_candidate_t* item = &candidates->items[i];
    item->cost = options->cost != NULL ? options->cost(options->user, item->size) : (double)item->size;
    if (!isfinite(item->cost) || item->cost < 0) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the cost of size %zu is %g, allowed are finite numbers >= 0",
                         item->size, item->cost);
    }
    if (item->cost < before) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                         "the cost of size %zu is %.17g, allowed is no less than that of size %zu, which is %.17g",
                         item->size, item->cost, item[-1].size, before);
    }
    before = item->cost;
  }
  const gcap_candidate_t* last = &candidates->items[candidates->count - 1];
  if (last->cost * (double)last->up_to <= kMaxCost) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%llu runs that cost %g each, as size %zu does: allowed is a sum up to %g",
                     (unsigned long long)last->up_to, last->cost, last->size, kMaxCost);
}

// --- All ------------------------------------------------------------------------------------------------------------

static gcap_status_t make(const gcap_size_count_t* sizes, size_t num_sizes, const gcap_buckets_options_t* options,
                          gcap_candidates_t* candidates) {
  collect(sizes, num_sizes, options, candidates);
  if (candidates->count == 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "there is no size: of %zu sizes none has a count, none is required, and `largest` is 0",
                       num_sizes);
  }
  qsort(candidates->items, candidates->count, sizeof(*candidates->items), compare_sizes);
  GCAP_RETURN_IF_ERROR(check_counts(candidates));
  merge(candidates);
  cut(candidates, options->largest);
  add_up(candidates);
  return find_costs(candidates, options);
}

gcap_status_t gcap_candidates_read(const gcap_size_count_t* sizes, size_t num_sizes,
                                   const gcap_buckets_options_t* options, gcap_candidates_t* out) {
  *out = (gcap_candidates_t){0};
  GCAP_RETURN_IF_ERROR(check_sizes(sizes, num_sizes, options));
  // One more for `largest`. Both arrays are there, so their lengths have a sum.
  out->items = calloc(num_sizes + options->num_required + 1, sizeof(*out->items));
  if (out->items == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu sizes", num_sizes + options->num_required);
  }
  gcap_status_t status = make(sizes, num_sizes, options, out);
  if (status != NULL) gcap_candidates_free(out);
  return status;
}

void gcap_candidates_free(gcap_candidates_t* candidates) { free(candidates->items); }
