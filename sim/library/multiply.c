// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Products by tiles of 4 x 8 sums, which fill the vector registers of any x86-64 or ARM and stay there over the whole
// depth; rows that are left over go one by one. The columns of a tile are copied together first: their reads then
// follow one another, and a tile at the edge is one like all others, with zeros that nobody looks at. Stateless.
//
// NOTE: ISO C (-std=c11) keeps a compiler from fusing a product and a sum, which would round once less on some
// machines.
#include "sim/library/multiply.h"

#include <stdlib.h>
#include <string.h>

#include "sim/library/object.h"

enum { kLanes = 4, kVectors = 2, kTileWidth = kLanes * kVectors, kTileRows = 4 };

typedef float vector_t __attribute__((vector_size(kLanes * sizeof(float))));

float* gcap_sim_allocate_floats(const char* name, int64_t count) {
  float* floats = malloc(count > 0 ? (size_t)count * sizeof(*floats) : 1);
  if (floats == NULL) {
    gcap_sim_stop(name, "the host has no memory for %lld floats", (long long)count);
  }
  return floats;
}

// panel[l] = the `used` columns from `columns` on, then zeros
static void fill_panel(const float* columns, int64_t depth, int64_t width, int64_t used, vector_t (*panel)[kVectors]) {
  for (int64_t l = 0; l < depth; ++l) {
    float lanes[kTileWidth] = {0.0f};
    memcpy(lanes, columns + l * width, (size_t)used * sizeof(float));
    memcpy(panel[l], lanes, sizeof(lanes));
  }
}

// kTileRows rows from `rows` on.
static void multiply_tile(const float* rows, int64_t depth, vector_t (*panel)[kVectors],
                          vector_t out[kTileRows][kVectors]) {
  const float *first = rows, *second = first + depth, *third = second + depth, *fourth = third + depth;
  vector_t sums[kTileRows][kVectors] = {{{0.0f}}};
  for (int64_t l = 0; l < depth; ++l) {
    const vector_t left = panel[l][0], right = panel[l][1];
    sums[0][0] += first[l] * left;
    sums[0][1] += first[l] * right;
    sums[1][0] += second[l] * left;
    sums[1][1] += second[l] * right;
    sums[2][0] += third[l] * left;
    sums[2][1] += third[l] * right;
    sums[3][0] += fourth[l] * left;
    sums[3][1] += fourth[l] * right;
  }
  memcpy(out, sums, sizeof(sums));
}

// One row: those that are left over.
static void multiply_row(const float* row, int64_t depth, vector_t (*panel)[kVectors], vector_t out[kVectors]) {
  vector_t left = {0.0f}, right = {0.0f};
  for (int64_t l = 0; l < depth; ++l) {
    left += row[l] * panel[l][0];
    right += row[l] * panel[l][1];
  }
  out[0] = left;
  out[1] = right;
}

void gcap_sim_multiply(const char* name, const float* rows, int64_t count, int64_t depth, const float* columns,
                       int64_t width, float* sums) {
  // malloc aligns for any vector of the machine.
  vector_t(*panel)[kVectors] = (vector_t(*)[kVectors])gcap_sim_allocate_floats(name, depth * kTileWidth);
  for (int64_t j = 0; j < width; j += kTileWidth) {
    const int64_t used = width - j < kTileWidth ? width - j : kTileWidth;
    fill_panel(columns + j, depth, width, used, panel);
    for (int64_t i = 0; i < count;) {
      vector_t tile[kTileRows][kVectors];
      const int64_t done = count - i < kTileRows ? 1 : kTileRows;
      if (done == 1) {
        multiply_row(rows + i * depth, depth, panel, tile[0]);
      } else {
        multiply_tile(rows + i * depth, depth, panel, tile);
      }
      for (int64_t r = 0; r < done; ++r) {
        memcpy(sums + (i + r) * width + j, tile[r], (size_t)used * sizeof(float));
      }
      i += done;
    }
  }
  free(panel);
}
