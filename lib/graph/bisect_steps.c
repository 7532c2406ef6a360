// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The steps of two issues of one work, one beside the other. Two steps are alike by what was called and from where.
// What only one of the two has is left out where that makes the fewest that are left out, looked for a few steps ahead:
// a loop has the same step again and again. Nothing here is shared, so nothing is locked.

#include <stdlib.h>
#include <string.h>

#include "lib/graph/bisection.h"
#include "lib/internal/grow.h"

// How many steps the two may have that the other one lacks: what is kept of the way grows with the square.
#define MOST_LEFT_OUT 500

bool gcap_bisect_are_alike(const gcap_capture_step_t* a, const gcap_capture_step_t* b) {
  return a->line == b->line && strcmp(a->operation, b->operation) == 0 && strcmp(a->file, b->file) == 0;
}

// The steps of two lists that are alike, by the fewest that are left out (Myers, "An O(ND) Difference Algorithm and Its
// Variations", 1986). ends[d * row + k + MOST_LEFT_OUT]: how far of `a`, with d steps left out and k more of `a` than
// of `b` behind.
typedef struct matching {
  const gcap_capture_steps_t *a, *b;
  size_t* in_b;
  long* ends;
} matching_t;

enum { kRow = 2 * MOST_LEFT_OUT + 1 };

static long* end_at(const matching_t* m, int d, int k) {
  return &m->ends[(size_t)d * kRow + (size_t)(k + MOST_LEFT_OUT)];
}

// Whether the way to (d, k) leaves out a step of `b` last, and not one of `a`.
static bool leaves_out_b(const matching_t* m, int d, int k) {
  return k == -d || (k != d && *end_at(m, d - 1, k - 1) < *end_at(m, d - 1, k + 1));
}

static long begin_of(const matching_t* m, int d, int k) {
  if (d == 0) return 0;
  return leaves_out_b(m, d, k) ? *end_at(m, d - 1, k + 1) : *end_at(m, d - 1, k - 1) + 1;
}

// Follows what is alike. True: both lists are at their ends.
static bool extend(const matching_t* m, int d, int k) {
  const long a_count = (long)m->a->count, b_count = (long)m->b->count;
  long x = begin_of(m, d, k), y = x - k;
  while (x < a_count && y >= 0 && y < b_count && gcap_bisect_are_alike(&m->a->items[x], &m->b->items[y])) ++x, ++y;
  *end_at(m, d, k) = x;
  return x == a_count && y == b_count;
}

// Notes what is alike on the way to the ends.
static void note_way(const matching_t* m, int d, int k) {
  for (; d >= 0; --d) {
    const long begin = begin_of(m, d, k);
    for (long x = *end_at(m, d, k); x > begin; --x) m->in_b[x - 1] = (size_t)(x - 1 - k);
    if (d > 0) k += leaves_out_b(m, d, k) ? 1 : -1;
  }
}

// Two lists that have too little in common are alike up to the first step where they are not.
static void match_beginning(const matching_t* m) {
  for (size_t i = 0; i < m->a->count && i < m->b->count; ++i) {
    if (!gcap_bisect_are_alike(&m->a->items[i], &m->b->items[i])) return;
    m->in_b[i] = i;
  }
}

static void match(const matching_t* m) {
  for (int d = 0; d <= MOST_LEFT_OUT; ++d) {
    for (int k = -d; k <= d; k += 2) {
      if (!extend(m, d, k)) continue;
      note_way(m, d, k);
      return;
    }
  }
  match_beginning(m);
}

gcap_status_t gcap_bisect_match(const gcap_capture_steps_t* a, const gcap_capture_steps_t* b, size_t** out_in_b) {
  *out_in_b = malloc((a->count + 1) * sizeof(**out_in_b));
  const matching_t m = {a, b, *out_in_b, malloc((MOST_LEFT_OUT + 1) * (size_t)kRow * sizeof(long))};
  if (*out_in_b == NULL || m.ends == NULL) {
    free(m.ends);
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu steps", a->count);
  }
  for (size_t i = 0; i < a->count; ++i) (*out_in_b)[i] = GCAP_BISECT_NONE;
  match(&m);
  free(m.ends);
  return NULL;
}

gcap_status_t gcap_bisect_add_step(gcap_capture_steps_t* steps, const char* operation, const char* file, int line,
                                   cudaStream_t stream) {
  if (steps->count == GCAP_CAPTURE_MAX_STEPS) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "the work makes more than %u calls", GCAP_CAPTURE_MAX_STEPS);
  }
  if (!gcap_grow(&steps->items, &steps->room, steps->count + 1, sizeof(*steps->items))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu steps", steps->count + 1);
  }
  gcap_capture_step_t* step = &steps->items[steps->count++];
  *step = (gcap_capture_step_t){.line = line, .stream = stream};
  gcap_capture_step_write(step, operation, file);
  if (file[0] == '\0' && line == 0) step->kind = GCAP_CAPTURE_STEP_HOLE;
  return NULL;
}

void gcap_bisect_steps_free(gcap_bisect_steps_t* steps) {
  gcap_capture_steps_free(&steps->captured);
  gcap_capture_steps_free(&steps->eager);
  gcap_capture_steps_free(&steps->fresh);
  free(steps->in_graph);
  free(steps->in_fresh);
  free(steps->block_in_graph);
  free(steps->block_in_work);
  steps->in_graph = steps->in_fresh = steps->block_in_graph = steps->block_in_work = NULL;
}

void gcap_bisect_write_step(const gcap_capture_steps_t* steps, size_t step, gcap_text_t* text) {
  if (step >= steps->count) {
    gcap_text_add(text, "what comes behind the last of %zu noted calls", steps->count);
    return;
  }
  const gcap_capture_step_t* of = &steps->items[step];
  gcap_text_add(text, "step %zu of %zu, %s", step, steps->count, of->operation);
  gcap_labels_add(text, of->label);
  if (of->file[0] != '\0') gcap_text_add(text, " at %s:%d", of->file, of->line);
}
