// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The choice of buckets. Bytes as a histogram, options and costs, of which any may be hostile: sizes and counts of 64
// bits, costs of any bits. What must hold: a refusal is INVALID_ARGUMENT, has a message and leaves zeros; a choice
// keeps to the options, has a bucket for each run that it says has one, and one more bucket never costs more.
#include <math.h>
#include <stdbool.h>

#include "gcap/buckets.h"
#include "test/fuzz/input.h"

enum { kMaxLines = 12, kMaxRequired = 3, kMaxBuckets = 8 };

typedef struct costs {
  fuzz_input_t input;
  unsigned how;  // 0: flat or a small step, 1: any bits, 2: squares
  double last;
} costs_t;

typedef struct problem {
  gcap_size_count_t lines[kMaxLines];
  size_t num_lines, max_buckets;
  size_t required[kMaxRequired];
  gcap_buckets_options_t options;
  costs_t costs;
} problem_t;

static uint64_t word(fuzz_input_t* input) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | fuzz_byte(input);
  return value;
}

// Mostly small.
static uint64_t number(fuzz_input_t* input) { return fuzz_below(input, 8) == 0 ? word(input) : fuzz_byte(input); }

static double cost(void* user, size_t size) {
  costs_t* costs = user;
  if (costs->how == 2) return (double)size * (double)size;
  if (costs->how == 0) return costs->last += fuzz_below(&costs->input, 4);
  const uint64_t bits = word(&costs->input);
  memcpy(&costs->last, &bits, sizeof(bits));
  return costs->last;
}

static problem_t read(fuzz_input_t* input) {
  problem_t p = {.num_lines = fuzz_below(input, kMaxLines + 1), .max_buckets = fuzz_below(input, kMaxBuckets)};
  for (size_t i = 0; i < p.num_lines; ++i) p.lines[i] = (gcap_size_count_t){number(input), number(input)};
  gcap_buckets_options_init(&p.options);
  p.options.num_required = fuzz_below(input, kMaxRequired + 1);
  for (size_t i = 0; i < p.options.num_required; ++i) p.required[i] = number(input);
  if (fuzz_below(input, 2)) p.options.largest = number(input);
  if (fuzz_below(input, 4) == 0) p.options.max_bytes = number(input);
  p.options.bytes_per_bucket = fuzz_byte(input);
  p.costs.how = fuzz_below(input, 4);
  if (p.costs.how < 3) p.options.cost = cost;
  p.costs.input = *input;
  return p;
}

static gcap_status_t choose(const problem_t* p, size_t max_buckets, size_t* buckets, gcap_buckets_choice_t* choice) {
  costs_t costs = p->costs;
  gcap_buckets_options_t options = p->options;
  options.required = p->required;
  options.user = &costs;
  gcap_buckets_choice_init(choice);
  return gcap_buckets_choose(p->lines, p->num_lines, &options, max_buckets, buckets, choice);
}

static void check_refusal(gcap_status_t status, const size_t* buckets, const gcap_buckets_choice_t* choice) {
  FUZZ_CHECK(gcap_status_code(status) == GCAP_INVALID_ARGUMENT, "%s", gcap_status_message(status));
  FUZZ_CHECK(strstr(gcap_status_message(status), "allowed") != NULL ||
                 strstr(gcap_status_message(status), "there is no size") != NULL,
             "%s", gcap_status_message(status));
  FUZZ_CHECK(choice->num_buckets == 0 && choice->runs == 0, "a choice beside a refusal");
  for (size_t i = 0; i < kMaxBuckets; ++i) FUZZ_CHECK(buckets[i] == 0, "a bucket beside a refusal");
}

static void check_buckets(const problem_t* p, const size_t* buckets, const gcap_buckets_choice_t* choice) {
  const size_t count = choice->num_buckets;
  FUZZ_CHECK(count >= 1 && count <= p->max_buckets, "%zu buckets", count);
  for (size_t i = 0; i < kMaxBuckets; ++i) {
    FUZZ_CHECK(i < count ? buckets[i] > (i > 0 ? buckets[i - 1] : 0) : buckets[i] == 0, "bucket %zu", i);
  }
  const gcap_buckets_options_t* o = &p->options;
  if (o->max_bytes > 0) FUZZ_CHECK(count <= o->max_bytes / o->bytes_per_bucket, "%zu buckets", count);
  if (o->largest > 0) FUZZ_CHECK(buckets[count - 1] == o->largest, "the last bucket is %zu", buckets[count - 1]);
  for (size_t i = 0; i < o->num_required; ++i) {
    FUZZ_CHECK(gcap_buckets_find(buckets, count, p->required[i]) == p->required[i], "required[%zu]", i);
  }
  uint64_t runs = 0, other_runs = 0;
  for (size_t i = 0; i < p->num_lines; ++i) {
    const bool has_one = gcap_buckets_find(buckets, count, p->lines[i].size) != 0;
    if (has_one) runs += p->lines[i].count;
    if (!has_one) other_runs += p->lines[i].count;
  }
  FUZZ_CHECK(runs == choice->runs && other_runs == choice->other_runs, "runs");
  FUZZ_CHECK(isfinite(choice->cost) && choice->padding_cost >= 0, "cost %g", choice->cost);
  FUZZ_CHECK(choice->padding_cost <= choice->cost * (1 + 1e-9), "padding %g", choice->padding_cost);
}

// Rounding of sums is all that may be between them.
static void check_one_more(const problem_t* p, const gcap_buckets_choice_t* choice) {
  size_t buckets[kMaxBuckets] = {0};
  gcap_buckets_choice_t more;
  gcap_status_t status = choose(p, p->max_buckets + 1, buckets, &more);
  FUZZ_CHECK(status == NULL, "%s", gcap_status_message(status));
  FUZZ_CHECK(more.cost <= choice->cost * (1 + 1e-9), "%g with one more, %g without", more.cost, choice->cost);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  fuzz_input_t input = {data, bytes};
  const problem_t p = read(&input);
  size_t buckets[kMaxBuckets] = {0};
  gcap_buckets_choice_t choice;
  gcap_status_t status = choose(&p, p.max_buckets, buckets, &choice);
  if (status != NULL) {
    check_refusal(status, buckets, &choice);
  } else {
    check_buckets(&p, buckets, &choice);
    check_one_more(&p, &choice);
  }
  gcap_status_free(status);
  return 0;
}
