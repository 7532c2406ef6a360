// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Buckets. The choice is a shortest way through the candidates: a step from i to j says that j is the next bucket after
// i, and costs what the runs of all sizes above i and up to j cost as j. In a layer for each number of buckets,
// least[j] is the cost of the sizes up to j where j is the last bucket.
//
// A step from i may be compared between two j without asking what came before: if going from a later i is better for
// j, it is better for every larger j, since no larger size costs less. So the best i of the middle j splits the layer,
// and each half looks at its part of the i alone: n * log(n) steps in a layer, not n^2. A candidate that must be a
// bucket lies within no step: such steps are left out, and those that are left have the same order.
//
// Locking: none, nothing is shared.

#include "gcap/buckets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buckets/candidates.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/sized.h"

GCAP_SIZED_OPTIONS(static, gcap_buckets_options);
static const gcap_sized_type_t choice_type = GCAP_SIZED_TYPE(gcap_buckets_choice);

// --- Dynamic programming --------------------------------------------------------------------------------------------

// Places: 0 is before all candidates, and place j > 0 is candidate j - 1.
typedef struct layers {
  const gcap_candidate_t* items;
  size_t count;          // of items
  size_t max_buckets;    // how many layers there are
  double *before, *now;  // [count + 1]: `least` of the layer before, and of this one; infinite where there is no way
  size_t* from;          // [max_buckets][count + 1]: the best i of each j
} layers_t;

typedef struct range {
  size_t begin, end;  // of places; `end` is no part of it
} range_t;

// Whether a candidate between two places must be a bucket.
static bool is_fixed_between(const layers_t* l, size_t i, size_t j) {
  const size_t up_to_i = i > 0 ? l->items[i - 1].fixed : 0;
  return l->items[j - 1].fixed - (size_t)l->items[j - 1].is_fixed > up_to_i;
}

static double cost_of_step(const layers_t* l, size_t i, size_t j) {
  const gcap_candidate_t* bucket = &l->items[j - 1];
  const uint64_t runs = bucket->up_to - (i > 0 ? l->items[i - 1].up_to : 0);
  return bucket->cost * (double)runs;
}

// Sets now[j], with the best i of a range. Where no way leads to j, the answer is `otherwise`.
static size_t find_best(layers_t* l, size_t* from, size_t j, range_t places, size_t otherwise) {
  size_t best = otherwise;
  l->now[j] = INFINITY;
  for (size_t i = places.begin; i < places.end && i < j; ++i) {
    if (isinf(l->before[i]) || is_fixed_between(l, i, j)) continue;
    const double cost = l->before[i] + cost_of_step(l, i, j);
    if (cost >= l->now[j]) continue;
    l->now[j] = cost;
    best = i;
  }
  return from[j] = best;
}

// Fills in a range of places of the layer. Where no way leads to the middle, none leads further, and the first half may
// have come from anywhere.
static void fill(layers_t* l, size_t* from, range_t places, range_t sources) {
  if (places.begin >= places.end) return;
  const size_t middle = places.begin + (places.end - places.begin) / 2;
  const size_t best = find_best(l, from, middle, sources, /*otherwise=*/sources.end - 1);
  fill(l, from, (range_t){places.begin, middle}, (range_t){sources.begin, best + 1});
  fill(l, from, (range_t){middle + 1, places.end}, (range_t){best, sources.end});
}

// Returns the fewest buckets that cost least.
static size_t fill_layers(layers_t* l) {
  for (size_t j = 0; j <= l->count; ++j) l->before[j] = j == 0 ? 0 : INFINITY;
  double least = INFINITY;
  size_t num_buckets = 0;
  for (size_t k = 1; k <= l->max_buckets; ++k) {
    size_t* from = l->from + (k - 1) * (l->count + 1);
    fill(l, from, (range_t){1, l->count + 1}, (range_t){0, l->count});
    l->now[0] = 0;
    if (l->now[l->count] < least) {
      least = l->now[l->count];
      num_buckets = k;
    }
    double* other = l->before;
    l->before = l->now;
    l->now = other;
  }
  return num_buckets;
}

// Goes the way back. A way of the layer for k buckets may have fewer.
static size_t read_way(const layers_t* l, size_t num_buckets, size_t* out_buckets) {
  size_t length = 0;
  size_t at = l->count;
  for (size_t k = num_buckets; at > 0; --k) {
    out_buckets[length++] = l->items[at - 1].size;
    at = l->from[(k - 1) * (l->count + 1) + at];
  }
  for (size_t i = 0; i < length / 2; ++i) {
    const size_t size = out_buckets[i];
    out_buckets[i] = out_buckets[length - 1 - i];
    out_buckets[length - 1 - i] = size;
  }
  return length;
}

static gcap_status_t choose(const gcap_candidates_t* candidates, size_t max_buckets, size_t* out_buckets,
                            size_t* out_count) {
  const size_t places = candidates->count + 1;
  layers_t l = {.items = candidates->items, .count = candidates->count};
  l.max_buckets = max_buckets < l.count ? max_buckets : l.count;
  double* least = calloc(2 * places, sizeof(*least));
  l.from = calloc(l.max_buckets, places * sizeof(*l.from));
  gcap_status_t status = NULL;
  if (least != NULL && l.from != NULL) {
    l.before = least;
    l.now = least + places;
    *out_count = read_way(&l, fill_layers(&l), out_buckets);
  } else {
    status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to choose %zu buckets of %zu sizes", l.max_buckets,
                         l.count);
  }
  free(l.from);
  free(least);
  return status;
}

// --- Choice ---------------------------------------------------------------------------------------------------------

static gcap_status_t check_room(size_t max_buckets) {
  if (max_buckets > 0 && max_buckets <= SIZE_MAX / sizeof(size_t)) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "max_buckets is %zu, allowed are 1..%zu", max_buckets,
                     SIZE_MAX / sizeof(size_t));
}

static gcap_status_t check_options(const gcap_buckets_options_t* options) {
  if (options->num_required > 0 && options->required == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "required is NULL and num_required is %zu, allowed without sizes is 0",
                       options->num_required);
  }
  if (options->max_bytes == 0 || options->bytes_per_bucket > 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "max_bytes is %zu and bytes_per_bucket is 0, allowed with a budget are bytes >= 1",
                     options->max_bytes);
}

// What must be a bucket has to fit.
static gcap_status_t limit(const gcap_candidates_t* candidates, const gcap_buckets_options_t* options,
                           size_t* max_buckets) {
  const size_t fixed = candidates->items[candidates->count - 1].fixed;
  if (fixed > *max_buckets) {
    return GCAP_STATUS(
        GCAP_INVALID_ARGUMENT,
        "max_buckets is %zu, allowed are %zu and more: so many sizes are required, with the largest, %zu", *max_buckets,
        fixed, candidates->items[candidates->count - 1].size);
  }
  if (options->max_bytes == 0) return NULL;
  const size_t affordable = options->max_bytes / options->bytes_per_bucket;
  if (fixed > affordable) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "max_bytes is %zu, room for %zu buckets of %zu bytes, allowed is room for %zu and more: so many "
                       "sizes are required, with the largest, %zu",
                       options->max_bytes, affordable, options->bytes_per_bucket, fixed,
                       candidates->items[candidates->count - 1].size);
  }
  if (affordable < *max_buckets) *max_buckets = affordable;
  return NULL;
}

// What the buckets come to, by what each size costs in its bucket.
static void count(const gcap_candidates_t* candidates, const size_t* buckets, gcap_buckets_choice_t* choice) {
  const gcap_candidate_t* items = candidates->items;
  size_t bucket = 0, at = 0;
  for (size_t i = 0; i < candidates->count; ++i) {
    if (items[i].size > buckets[bucket]) ++bucket;
    while (items[at].size < buckets[bucket]) ++at;
    const double runs = (double)items[i].count;
    choice->cost += runs * items[at].cost;
    choice->padding_cost += runs * (items[at].cost - items[i].cost);
  }
  choice->runs = items[candidates->count - 1].up_to;
  choice->other_runs = candidates->other_runs;
}

gcap_status_t gcap_buckets_choose(const gcap_size_count_t* sizes, size_t num_sizes,
                                  const gcap_buckets_options_t* options, size_t max_buckets, size_t* out_buckets,
                                  gcap_buckets_choice_t* out_choice) {
  gcap_buckets_choice_t choice;
  GCAP_RETURN_IF_NULL(out_choice);
  GCAP_RETURN_IF_ERROR(gcap_sized_read(&choice_type, out_choice, &choice));
  gcap_buckets_choice_init(&choice);
  gcap_sized_write(&choice_type, &choice, out_choice);
  GCAP_RETURN_IF_NULL(out_buckets);
  GCAP_RETURN_IF_ERROR(check_room(max_buckets));
  memset(out_buckets, 0, max_buckets * sizeof(*out_buckets));
  if (num_sizes > 0) GCAP_RETURN_IF_NULL(sizes);
  gcap_buckets_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_buckets_options_read(options, &known));
  GCAP_RETURN_IF_ERROR(check_options(&known));
  gcap_candidates_t candidates;
  GCAP_RETURN_IF_ERROR(gcap_candidates_read(sizes, num_sizes, &known, &candidates));
  gcap_status_t status = limit(&candidates, &known, &max_buckets);
  if (status == NULL) status = choose(&candidates, max_buckets, out_buckets, &choice.num_buckets);
  if (status == NULL) {
    count(&candidates, out_buckets, &choice);
    gcap_sized_write(&choice_type, &choice, out_choice);
  }
  gcap_candidates_free(&candidates);
  return status;
}

// --- Search ---------------------------------------------------------------------------------------------------------

size_t gcap_buckets_find(const size_t* buckets, size_t num_buckets, size_t size) {
  size_t found = 0;
  for (size_t begin = 0, end = num_buckets; begin < end;) {
    const size_t middle = begin + (end - begin) / 2;
    if (buckets[middle] >= size) {
      found = buckets[middle];
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return found;
}
