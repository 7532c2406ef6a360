// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// row_lanes.h: how many threads share a row.
#ifndef GCAP_OPS_KERNELS_ROW_LANES_H_
#define GCAP_OPS_KERNELS_ROW_LANES_H_

#include <stdbool.h>
#include <stdint.h>

enum {
  GCAP_WARP_THREADS = 32,
  GCAP_ROW_BLOCK_THREADS = 512,
};

typedef struct gcap_row_lanes {
  unsigned lanes;          // threads for each row
  unsigned block_threads;  // of which blocks are made
} gcap_row_lanes_t;

// For `rows` of `columns` elements. `across`: neighbours in memory are of different rows.
static inline gcap_row_lanes_t gcap_choose_row_lanes(int64_t rows, int64_t columns, bool across) {
  // Threads of a warp that read one element each of 32 neighbouring rows read 32 neighbours; 16384 threads are an
  // eighth of what fills the largest GPU of today, below which lanes help more than neighbours.
  if (columns < 8 || (across && rows >= 16384)) return (gcap_row_lanes_t){1, 256};
  // 32 elements a lane; above, a row has work for a whole block.
  if (columns <= 1024) return (gcap_row_lanes_t){GCAP_WARP_THREADS, 256};
  return (gcap_row_lanes_t){GCAP_ROW_BLOCK_THREADS, GCAP_ROW_BLOCK_THREADS};
}

#endif  // GCAP_OPS_KERNELS_ROW_LANES_H_
