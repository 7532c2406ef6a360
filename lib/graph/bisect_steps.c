// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The steps of two issues of one work, one beside the other. Two steps are alike by what was called and from where.
// What only one of the two has is left out where that makes the fewest that are left out, looked for a few steps ahead:
// a loop has the same step again and again. Nothing here is shared, so nothing is locked.

#include <stdlib.h>
#include <string.h>

#include "lib/graph/bisect.h"
#include "lib/internal/grow.h"

// How many steps one issue may have that the other one lacks, in one place.
#define MOST_LEFT_OUT 256

bool gcap_bisect_are_alike(const gcap_capture_step_t* a, const gcap_capture_step_t* b) {
  return a->line == b->line && strcmp(a->operation, b->operation) == 0 && strcmp(a->file, b->file) == 0;
}

// How many steps of `a` and of `b` are left out before the next two that are alike; false: none are near.
static bool find_next(const gcap_capture_steps_t* a, const gcap_capture_steps_t* b, size_t* i, size_t* j) {
  for (size_t left_out = 0; left_out <= MOST_LEFT_OUT; ++left_out) {
    for (size_t of_a = 0; of_a <= left_out; ++of_a) {
      const size_t x = *i + of_a, y = *j + (left_out - of_a);
      if (x >= a->count || y >= b->count || !gcap_bisect_are_alike(&a->items[x], &b->items[y])) continue;
      *i = x;
      *j = y;
      return true;
    }
  }
  return false;
}

gcap_status_t gcap_bisect_match(const gcap_capture_steps_t* a, const gcap_capture_steps_t* b, size_t** out_in_b) {
  *out_in_b = malloc((a->count + 1) * sizeof(**out_in_b));
  if (*out_in_b == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu steps", a->count);
  for (size_t i = 0; i < a->count; ++i) (*out_in_b)[i] = GCAP_BISECT_NONE;
  for (size_t i = 0, j = 0; find_next(a, b, &i, &j); ++i, ++j) (*out_in_b)[i] = j;
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
  steps->in_graph = steps->in_fresh = NULL;
}

void gcap_bisect_write_step(const gcap_capture_steps_t* steps, size_t step, gcap_text_t* text) {
  if (step >= steps->count) {
    gcap_text_add(text, "what comes behind the last of %zu noted calls", steps->count);
    return;
  }
  const gcap_capture_step_t* of = &steps->items[step];
  gcap_text_add(text, "step %zu of %zu, %s", step, steps->count, of->operation);
  if (of->file[0] != '\0') gcap_text_add(text, " at %s:%d", of->file, of->line);
}
