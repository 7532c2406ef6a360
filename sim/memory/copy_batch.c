// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Batches of copies, of rows and of boxes.
//
// The idea: the copies of a batch are queued one after another, which is one of the orders that the real one allows.
// Unlike a single copy, a batch reads its source when it is told to: in stream order, or during the call. A capture
// refuses a batch and stays valid, as measured. Locking: the global mutex.
#include <stdlib.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/memory/copy.h"
#include "sim/stream/capture.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

// --- Any batch ------------------------------------------------------------------------------------------------------

// Makes the task of copy `index`; they are asked for in their order. On failure returns NULL and sets the code.
typedef gcap_sim_task_t* (*make_fn_t)(void* batch, size_t index, cudaError_t* code);

static bool is_how(enum cudaMemcpySrcAccessOrder order, unsigned int flags) {
  return order >= cudaMemcpySrcAccessOrderStream && order <= cudaMemcpySrcAccessOrderAny &&
         flags <= cudaMemcpyFlagPreferOverlapWithCompute;
}

static gcap_sim_task_t* make_task(gcap_sim_copy_t* copy, enum cudaMemcpySrcAccessOrder order, cudaError_t* code) {
  gcap_sim_task_t* task = gcap_sim_copy_task(copy, code);
  bool during_call = order == cudaMemcpySrcAccessOrderDuringApiCall && copy->src_type != cudaMemoryTypeDevice;
  if (task != NULL && during_call) gcap_sim_copy_stage(task);
  return task;
}

// May the stream be given a batch?
static cudaError_t judge_stream(gcap_sim_stream_t* stream) {
  cudaError_t code = gcap_sim_gate_ordered(stream);
  if (code != cudaSuccess) return code;
  if (stream->member != NULL) return cudaErrorStreamCaptureUnsupported;
  return stream->legacy ? cudaErrorInvalidValue : cudaSuccess;
}

// All copies are judged before the first is queued.
static cudaError_t queue(void* batch, size_t count, make_fn_t make, gcap_sim_stream_t* stream) {
  cudaError_t code = cudaSuccess;
  gcap_sim_task_t** tasks = gcap_sim_calloc(count, sizeof(gcap_sim_task_t*));
  size_t made = 0;
  while (code == cudaSuccess && made < count) {
    tasks[made] = make(batch, made, &code);
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

// --- Rows -----------------------------------------------------------------------------------------------------------

typedef struct row_batch {
  void* const* dsts;
  const void* const* srcs;
  const size_t* sizes;
  size_t count;
  const struct cudaMemcpyAttributes* attrs;
  const size_t* first;  // the copy from which on each attribute holds
  size_t num_attrs;
  size_t attr;  // that of the copy asked for last
} row_batch_t;

// The attributes must start with the first copy, each with a later one than that before.
static bool is_batch(const row_batch_t* batch) {
  if (batch->dsts == NULL || batch->srcs == NULL || batch->sizes == NULL || batch->count == 0) return false;
  if (batch->attrs == NULL || batch->first == NULL || batch->num_attrs == 0 || batch->num_attrs > batch->count) {
    return false;
  }
  for (size_t i = 0; i < batch->num_attrs; ++i) {
    if (i == 0 ? batch->first[0] != 0 : batch->first[i] <= batch->first[i - 1]) return false;
    if (batch->first[i] >= batch->count || !is_how(batch->attrs[i].srcAccessOrder, batch->attrs[i].flags)) return false;
  }
  return true;
}

static gcap_sim_task_t* make_row(void* user, size_t index, cudaError_t* code) {
  row_batch_t* batch = user;
  if (batch->attr + 1 < batch->num_attrs && batch->first[batch->attr + 1] == index) ++batch->attr;
  gcap_sim_copy_t copy = {.dst = batch->dsts[index],
                          .src = batch->srcs[index],
                          .width = batch->sizes[index],
                          .height = 1,
                          .kind = cudaMemcpyDefault};
  return make_task(&copy, batch->attrs[batch->attr].srcAccessOrder, code);
}

cudaError_t cudaMemcpyBatchAsync(void* const* dsts, const void* const* srcs, const size_t* sizes, size_t count,
                                 struct cudaMemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
                                 cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpyBatchAsync);
  if (code == cudaSuccess) {
    gcap_sim_stream_t* s = gcap_sim_stream_get(stream);
    row_batch_t batch = {dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, 0};
    code = judge_stream(s);
    if (code == cudaSuccess && !is_batch(&batch)) code = cudaErrorInvalidValue;
    if (code == cudaSuccess) code = queue(&batch, count, make_row, s);
  }
  return gcap_sim_leave(code);
}

// --- Boxes ----------------------------------------------------------------------------------------------------------

// Where an operand's rows and slices lie. Measured in bytes; what is 0 is as large as the box.
typedef struct place {
  void* address;
  size_t pitch;
  size_t slice;
} place_t;

static bool find_place(const struct cudaMemcpy3DOperand* operand, struct cudaExtent extent, place_t* out) {
  if (operand->type == cudaMemcpyOperandTypeArray) {
    gcap_sim_die("%s: CUDA arrays are not modelled", gcap_sim_thread()->call);
  }
  if (operand->type != cudaMemcpyOperandTypePointer) return false;
  size_t pitch = operand->op.ptr.rowLength ? operand->op.ptr.rowLength : extent.width;
  size_t rows = operand->op.ptr.layerHeight ? operand->op.ptr.layerHeight : extent.height;
  if (pitch < extent.width || rows < extent.height || (rows > 0 && pitch > SIZE_MAX / rows)) return false;
  *out = (place_t){.address = operand->op.ptr.ptr, .pitch = pitch, .slice = pitch * rows};
  return true;
}

static gcap_sim_task_t* make_box(void* user, size_t index, cudaError_t* code) {
  const struct cudaMemcpy3DBatchOp* op = &((const struct cudaMemcpy3DBatchOp*)user)[index];
  place_t dst;
  place_t src;
  bool ok = op->extent.depth > 0 && is_how(op->srcAccessOrder, op->flags) && find_place(&op->dst, op->extent, &dst) &&
            find_place(&op->src, op->extent, &src);
  *code = cudaErrorInvalidValue;
  if (!ok) return NULL;
  gcap_sim_copy_t copy = {.dst = dst.address,
                          .dst_pitch = dst.pitch,
                          .dst_slice = dst.slice,
                          .src = src.address,
                          .src_pitch = src.pitch,
                          .src_slice = src.slice,
                          .width = op->extent.width,
                          .height = op->extent.height,
                          .depth = op->extent.depth,
                          .kind = cudaMemcpyDefault};
  return make_task(&copy, op->srcAccessOrder, code);
}

cudaError_t cudaMemcpy3DBatchAsync(size_t numOps, struct cudaMemcpy3DBatchOp* opList, unsigned long long flags,
                                   cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpy3DBatchAsync);
  if (code == cudaSuccess) {
    gcap_sim_stream_t* s = gcap_sim_stream_get(stream);
    code = judge_stream(s);
    if (code == cudaSuccess && (numOps == 0 || opList == NULL || flags != 0)) code = cudaErrorInvalidValue;
    if (code == cudaSuccess) code = queue(opList, numOps, make_box, s);
  }
  return gcap_sim_leave(code);
}
