// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Memory that is free goes to somebody else, who writes to it. A graph that still works there is then wrong, which
// nothing shows as long as the memory has what it had. So memory of all usual sizes is asked for, and filled: of the
// scratch at home, of which all that is idle is given back afterwards, and of the driver. Locking: none.

#include <stdlib.h>

#include "kit/check/checking.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/grow.h"

// Of each size two blocks: one in the place of what was freed, and one beside.
enum { kBlocksOfASize = 2, kLeastBits = 9, kMostBits = 20 };

static gcap_status_t get(gcap_checking_t* checking, size_t bytes) {
  gcap_check_churn_t* churn = &checking->churn;
  if (!gcap_grow(&churn->blocks, &churn->room, churn->count + 1, sizeof(*churn->blocks))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to churn the allocator");
  }
  void* block = NULL;
  gcap_status_t status = gcap_relaxed_malloc(checking->device_id, bytes, &block);
  if (block != NULL) churn->blocks[churn->count++] = block;
  return status != NULL
             ? status
             : GCAP_CUDA(cudaMemsetAsync(block, GCAP_CHECK_POISON, bytes, checking->places[GCAP_CHECK_HOME].stream));
}

static gcap_status_t churn_driver(gcap_checking_t* checking) {
  for (int bits = kLeastBits; bits <= kMostBits; ++bits) {
    for (int i = 0; i < kBlocksOfASize; ++i) GCAP_RETURN_IF_ERROR(get(checking, (size_t)1 << bits));
  }
  for (size_t i = 0; i < checking->num_named; ++i) GCAP_RETURN_IF_ERROR(get(checking, checking->named[i].bytes));
  return NULL;
}

// What is handed out here is live until the ranges are freed, or noted as free.
static gcap_status_t churn_scratch(gcap_check_place_t* place) {
  gcap_scratch_t* scratch = gcap_runtime_scratch(place->runtime);
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(place->runtime, &resources));
  const size_t largest = place->ranges.largest;
  gcap_status_t status = NULL;
  for (size_t bytes = largest; status == NULL && bytes > 0; bytes /= 2) {
    void* block = NULL;
    status = gcap_scratch_alloc(scratch, bytes, resources.stream, &block);
    if (status == NULL) status = GCAP_CUDA(cudaMemsetAsync(block, GCAP_CHECK_POISON, bytes, place->stream));
    status = gcap_status_join(status, gcap_scratch_free(scratch, block));
  }
  status = gcap_status_join(status, gcap_stream_synchronize(resources.stream));
  return gcap_status_join(status, gcap_scratch_trim(scratch));
}

gcap_status_t gcap_checking_churn(gcap_checking_t* checking) {
  GCAP_RETURN_IF_ERROR(churn_scratch(&checking->places[GCAP_CHECK_HOME]));
  return churn_driver(checking);
}

gcap_status_t gcap_checking_free_churn(gcap_checking_t* checking) {
  gcap_check_churn_t* churn = &checking->churn;
  gcap_status_t status = NULL;
  for (size_t i = 0; i < churn->count; ++i) status = gcap_status_join(status, GCAP_CUDA(cudaFree(churn->blocks[i])));
  free(churn->blocks);
  *churn = (gcap_check_churn_t){.blocks = NULL};
  return status;
}
