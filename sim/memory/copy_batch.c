// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Batches of copies.
//
// The idea: the copies of a batch are queued one after another, which is one of the orders that the real one allows.
// Unlike a single copy, a batch reads its source when the attribute says: in stream order, or during the call. A
// capture refuses a batch and stays valid, as measured. Locking: the global mutex.
#include <stdlib.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/heap.h"
#include "sim/memory/copy.h"
#include "sim/stream/capture.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

typedef struct batch {
  void* const* dsts;
  const void* const* srcs;
  const size_t* sizes;
  size_t count;
  const struct cudaMemcpyAttributes* attrs;
  const size_t* first;  // the copy from which on each attribute holds
  size_t num_attrs;
} batch_t;

// The attributes must start with the first copy, each with a later one than that before.
static bool is_batch(const batch_t* batch) {
  if (batch->dsts == NULL || batch->srcs == NULL || batch->sizes == NULL || batch->count == 0) return false;
  if (batch->attrs == NULL || batch->first == NULL || batch->num_attrs == 0 || batch->num_attrs > batch->count) {
    return false;
  }
  for (size_t i = 0; i < batch->num_attrs; ++i) {
    if (i == 0 ? batch->first[0] != 0 : batch->first[i] <= batch->first[i - 1]) return false;
    if (batch->first[i] >= batch->count || batch->attrs[i].flags > cudaMemcpyFlagPreferOverlapWithCompute) return false;
    enum cudaMemcpySrcAccessOrder order = batch->attrs[i].srcAccessOrder;
    if (order < cudaMemcpySrcAccessOrderStream || order > cudaMemcpySrcAccessOrderAny) return false;
  }
  return true;
}

static gcap_sim_task_t* make_copy(const batch_t* batch, size_t index, const struct cudaMemcpyAttributes* attr,
                                  cudaError_t* code) {
  gcap_sim_copy_t copy = {.dst = batch->dsts[index],
                          .src = batch->srcs[index],
                          .width = batch->sizes[index],
                          .height = 1,
                          .kind = cudaMemcpyDefault};
  gcap_sim_task_t* task = gcap_sim_copy_task(&copy, code);
  if (task != NULL && attr->srcAccessOrder == cudaMemcpySrcAccessOrderDuringApiCall &&
      copy.src_type != cudaMemoryTypeDevice) {
    gcap_sim_copy_stage(task);
  }
  return task;
}

// All copies are judged before the first is queued.
static cudaError_t copy_batch(const batch_t* batch, gcap_sim_stream_t* stream) {
  cudaError_t code = gcap_sim_gate_ordered(stream);
  if (code != cudaSuccess) return code;
  if (stream->member != NULL) return cudaErrorStreamCaptureUnsupported;
  if (stream->legacy || !is_batch(batch)) return cudaErrorInvalidValue;
  gcap_sim_task_t** tasks = gcap_sim_calloc(batch->count, sizeof(gcap_sim_task_t*));
  size_t made = 0;
  size_t attr = 0;
  while (code == cudaSuccess && made < batch->count) {
    if (attr + 1 < batch->num_attrs && batch->first[attr + 1] == made) ++attr;
    tasks[made] = make_copy(batch, made, &batch->attrs[attr], &code);
    if (code == cudaSuccess) ++made;
  }
  for (size_t i = 0; i < made; ++i) {
    if (code == cudaSuccess) {
      gcap_sim_submit_task(stream, tasks[i]);
    } else {
      gcap_sim_task_release(tasks[i]);
    }
  }
  free(tasks);
  return code;
}

cudaError_t cudaMemcpyBatchAsync(void* const* dsts, const void* const* srcs, const size_t* sizes, size_t count,
                                 struct cudaMemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
                                 cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpyBatchAsync);
  if (code == cudaSuccess) {
    batch_t batch = {dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs};
    code = copy_batch(&batch, gcap_sim_stream_get(stream));
  }
  return gcap_sim_leave(code);
}
