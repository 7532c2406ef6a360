// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Strided arrays become ranges: dimensions are sorted by stride, those that continue each other without a gap collapse
// into one run, and the rest is walked. A packed tensor in any order is one range; a matrix inside a larger one is a
// range for each column. Exact ranges matter: a gap may be another stream's data, and touching it would look like a
// race. Out of memory is remembered and told by the submission. A list belongs to one call; no locking.
#include "sim/library/access.h"

#include <stdlib.h>

#include "sim/library/object.h"

enum { kMaxRank = 5 };

void gcap_sim_access_add(gcap_sim_access_list_t* list, const void* base, size_t bytes, gcap_sim_access_kind_t kind) {
  if (base == NULL || bytes == 0) {
    return;
  }
  if (list->count == list->capacity) {
    const size_t capacity = list->capacity == 0 ? 8 : list->capacity * 2;
    gcap_sim_access_t* items = realloc(list->items, capacity * sizeof(*items));
    if (items == NULL) {
      list->out_of_memory = 1;
      return;
    }
    list->items = items;
    list->capacity = capacity;
  }
  const gcap_sim_access_t access = {.address = base, .bytes = bytes, .is_write = kind == GCAP_SIM_WRITE};
  list->items[list->count++] = access;
}

typedef struct dimension {
  int64_t extent;
  int64_t stride;  // bytes
} dimension_t;

// Keeps the dimensions that move the address, sorted by stride. Returns how many there are, or -1 for an empty array.
static int sort_dimensions(size_t element_bytes, size_t rank, const int64_t* dims, const int64_t* strides,
                           dimension_t* out) {
  int count = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] <= 0) {
      return -1;
    }
    if (dims[i] == 1 || strides[i] == 0) {
      continue;
    }
    const dimension_t added = {dims[i], strides[i] * (int64_t)element_bytes};
    int at = count++;
    for (; at > 0 && out[at - 1].stride > added.stride; --at) {
      out[at] = out[at - 1];
    }
    out[at] = added;
  }
  return count;
}

// Advances the indices of the dimensions from `first` on; 0 when they have wrapped around.
static int next_index(const dimension_t* dims, int first, int count, int64_t* index) {
  for (int i = first; i < count; ++i) {
    if (++index[i] < dims[i].extent) {
      return 1;
    }
    index[i] = 0;
  }
  return 0;
}

void gcap_sim_access_add_strided(gcap_sim_access_list_t* list, const void* base, size_t element_bytes, size_t rank,
                                 const int64_t* dims, const int64_t* strides, gcap_sim_access_kind_t kind) {
  dimension_t sorted[kMaxRank];
  const int count = sort_dimensions(element_bytes, rank, dims, strides, sorted);
  if (base == NULL || count < 0) {
    return;
  }
  int64_t run = (int64_t)element_bytes;
  int first = 0;
  while (first < count && sorted[first].stride == run) {
    run *= sorted[first++].extent;
  }
  int64_t index[kMaxRank] = {0};
  do {
    int64_t offset = 0;
    for (int i = first; i < count; ++i) {
      offset += index[i] * sorted[i].stride;
    }
    gcap_sim_access_add(list, (const char*)base + offset, (size_t)run, kind);
  } while (next_index(sorted, first, count, index));
}

cudaError_t gcap_sim_access_submit(cudaStream_t stream, const gcap_sim_library_kernel_t* kernel, const void* payload) {
  gcap_sim_access_list_t list = {0};
  kernel->describe(payload, &list);
  const void* unreachable = gcap_sim_find_unreachable(stream, list.items, list.count);
  if (unreachable != NULL) {
    gcap_sim_stop(kernel->name, "%p is memory of another device than the stream's, without peer access: 700 on a GPU",
                  unreachable);
  }
  cudaError_t error = cudaErrorMemoryAllocation;
  if (!list.out_of_memory) {
    const gcap_sim_work_t work = {*kernel, payload, list.items, list.count};
    error = gcap_sim_submit(stream, &work);
  }
  free(list.items);
  return error;
}
