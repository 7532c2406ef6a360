// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A counter with a digit for each axis. Each step adds the strides of the digit that moves, and takes back those of the
// digits that return to zero, so that no element needs a division.

#include "kit/cpu_ep/walk.h"

#include <stdbool.h>
#include <string.h>

void gcap_cpu_walk_init(gcap_cpu_walk_t* walk, const gcap_tensor_t* over) { *walk = (gcap_cpu_walk_t){.over = over}; }

void gcap_cpu_walk_add(gcap_cpu_walk_t* walk, const int64_t strides[GCAP_MAX_RANK], int64_t at) {
  const int operand = walk->num_operands++;
  walk->at[operand] = at;
  memcpy(walk->strides[operand], strides, sizeof(walk->strides[operand]));
}

void gcap_cpu_strides(const gcap_tensor_t* tensor, int64_t out_strides[GCAP_MAX_RANK]) {
  memset(out_strides, 0, GCAP_MAX_RANK * sizeof(*out_strides));
  int64_t stride = 1;
  for (int i = tensor->rank - 1; i >= 0; --i) {
    out_strides[i] = stride;
    stride *= tensor->shape[i];
  }
}

void gcap_cpu_walk_add_broadcast(gcap_cpu_walk_t* walk, const gcap_tensor_t* tensor) {
  int64_t own[GCAP_MAX_RANK], strides[GCAP_MAX_RANK] = {0};
  gcap_cpu_strides(tensor, own);
  const int offset = walk->over->rank - tensor->rank;
  for (int i = 0; i < tensor->rank; ++i) strides[offset + i] = tensor->shape[i] == 1 ? 0 : own[i];
  gcap_cpu_walk_add(walk, strides, 0);
}

void gcap_cpu_walk_next(gcap_cpu_walk_t* walk) {
  for (int axis = walk->over->rank - 1; axis >= 0; --axis) {
    const int64_t last = walk->over->shape[axis] - 1;
    const bool moves = walk->index[axis] < last;
    const int64_t steps = moves ? 1 : -last;
    walk->index[axis] += steps;
    for (int i = 0; i < walk->num_operands; ++i) walk->at[i] += steps * walk->strides[i][axis];
    if (moves) return;
  }
}
