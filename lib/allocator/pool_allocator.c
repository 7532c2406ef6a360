// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The pool allocator: a CUDA memory pool that the allocator owns, so that its settings and trims do not touch the
// device's default pool. A block is freed in the order of the stream that it was allocated for, as in ONNX Runtime's
// CudaMempoolArena. The table of blocks remembers the stream and the life of its wrapper, which says whether the handle
// is still valid. A wrapper waits for its stream when it ends, so a block that outlives the wrapper is freed on the
// allocator's own stream, and so is a block that was allocated without a stream. Nothing happens on stream 0: that
// would break the captures of blocking streams.
//
// Capturing streams: in a capture the same call makes a node, and the memory belongs to the graph (rule R29). So before
// each call gcap queries the driver whether the stream is capturing. Every call is made in the relaxed mode (rules R26
// and R35).
//
// Invariant: an address is in the table exactly while it is allocated and the caller owns it. Locking: the table's
// mutex, never across a driver call; the driver orders the calls of several threads.

#include <stdatomic.h>
#include <stdlib.h>

#include "gcap/allocator_ops.h"
#include "gcap/log.h"
#include "lib/allocator/block_table.h"
#include "lib/allocator/refusal.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/run_trace.h"
#include "lib/internal/sized.h"
#include "lib/internal/stream_table.h"

#define POOL_ALIGNMENT 256u  // what the driver gives

GCAP_SIZED_OPTIONS(static, gcap_pool_allocator_options);

typedef struct pool_allocator {
  gcap_pool_allocator_options_t options;
  cudaMemPool_t pool;
  cudaStream_t stream;  // its own, for what has no stream
  gcap_block_table_t blocks;
  atomic_uint_fast64_t held_bytes;  // by the pool, when last asked
  atomic_uint_fast64_t num_trims;
} pool_allocator_t;

// --- The driver's calls; the thread has entered the device ----------------------------------------------------------

static gcap_status_t check_not_captured(const pool_allocator_t* allocator, cudaStream_t stream, const char* call) {
  // Nobody captures our own stream, nor can anybody capture the default stream, which must not be asked either.
  if (stream == allocator->stream || gcap_stream_is_alias(stream)) return NULL;
  return gcap_check_stream_not_capturing(stream, "%s", call);
}

static gcap_status_t ask_pool(pool_allocator_t* allocator, gcap_block_t* block) {
  GCAP_RETURN_IF_ERROR(check_not_captured(allocator, block->stream, "cudaMallocFromPoolAsync"));
  void* ptr = NULL;
  const cudaError_t answer = cudaMallocFromPoolAsync(&ptr, block->bytes, allocator->pool, block->stream);
  gcap_status_t status = gcap_status_from_cuda(answer, "cudaMallocFromPoolAsync", __FILE__, __LINE__);
  if (answer == cudaErrorMemoryAllocation) {
    status =
        gcap_status_annotate(status, GCAP_RESOURCE_EXHAUSTED, "the pool allocator cannot get %zu bytes", block->bytes);
  }
  if (status != NULL) return status;
  block->ptr = ptr;
  // Without a stream, any may use it: it has to be there.
  return block->stream == allocator->stream ? GCAP_CUDA(cudaStreamSynchronize(block->stream)) : NULL;
}

// Where a block is freed. A wrapper may be gone and another of the same stream live on, so the handle is looked up
// again: the free is either in the order of that stream, or nobody uses the block any more.
static cudaStream_t stream_to_free_on(const pool_allocator_t* allocator, const gcap_block_t* block) {
  if (gcap_life_goes_on(block->life)) return block->stream;
  gcap_life_t* life = gcap_stream_table_life(block->stream);
  bool usable = life != NULL && gcap_life_goes_on(life);
  gcap_life_release(life);
  return usable ? block->stream : allocator->stream;
}

// `*out_freed` tells whether the memory is gone, also where the thread's settings could not be restored.
static gcap_status_t give_back(pool_allocator_t* allocator, const gcap_block_t* block, bool* out_freed) {
  *out_freed = false;
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(allocator->options.device_id, &previous));
  cudaStream_t stream = stream_to_free_on(allocator, block);
  gcap_status_t status = check_not_captured(allocator, stream, "cudaFreeAsync");
  if (status == NULL) {
    status = GCAP_CUDA(cudaFreeAsync(block->ptr, stream));
    *out_freed = status == NULL;
  }
  return gcap_status_join(status, gcap_thread_leave(allocator->options.device_id, &previous));
}

// --- The table ------------------------------------------------------------------------------------------------------

// Allocates what `request` describes, all but the address. Takes over its life.
static gcap_status_t alloc_noted(pool_allocator_t* allocator, gcap_block_t request, void** out_ptr) {
  int device_id = allocator->options.device_id;
  gcap_thread_setting_t previous;
  gcap_status_t status = gcap_thread_enter(device_id, &previous);
  if (status == NULL) {
    status = ask_pool(allocator, &request);
    status = gcap_status_join(status, gcap_thread_leave(device_id, &previous));
  }
  if (status == NULL) status = gcap_block_table_enter(&allocator->blocks, &request);
  if (status == NULL) {
    gcap_trace_initialization(GCAP_INITIALIZED_MEMORY);
    *out_ptr = request.ptr;
    return NULL;
  }
  bool freed = false;
  if (request.ptr != NULL) status = gcap_status_join(status, give_back(allocator, &request, &freed));
  gcap_life_release(request.life);
  return status;
}

static gcap_status_t alloc_without_stream(pool_allocator_t* allocator, size_t bytes, bool reserved, void** out_ptr) {
  GCAP_RETURN_IF_ERROR(
      gcap_allocator_refuse_in_capture(reserved, bytes, "cudaMallocFromPoolAsync of the pool allocator"));
  const gcap_block_t request = {.bytes = bytes, .reserved = reserved, .stream = allocator->stream};
  return alloc_noted(allocator, request, out_ptr);
}

static gcap_status_t pool_alloc(void* self, size_t bytes, void** out_ptr) {
  return alloc_without_stream(self, bytes, /*reserved=*/false, out_ptr);
}

static gcap_status_t pool_reserve(void* self, size_t bytes, void** out_ptr) {
  return alloc_without_stream(self, bytes, /*reserved=*/true, out_ptr);
}

static gcap_status_t check_stream(const pool_allocator_t* allocator, const gcap_stream_t* stream) {
  if (gcap_stream_handle(stream) == cudaStreamPerThread) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "the stream is cudaStreamPerThread, which is another one on each thread: a free on another "
                       "thread could not be ordered");
  }
  if (gcap_stream_device(stream) == allocator->options.device_id) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the stream is on device %d, the pool allocator on device %d",
                     gcap_stream_device(stream), allocator->options.device_id);
}

static gcap_status_t pool_alloc_on_stream(void* self, size_t bytes, gcap_stream_t* stream, void** out_ptr) {
  pool_allocator_t* allocator = self;
  GCAP_RETURN_IF_ERROR(check_stream(allocator, stream));
  GCAP_RETURN_IF_ERROR(gcap_allocator_refuse_in_capture(false, bytes, "cudaMallocFromPoolAsync of the pool allocator"));
  cudaStream_t handle = gcap_stream_handle(stream);
  const gcap_block_t request = {.bytes = bytes, .stream = handle, .life = gcap_stream_table_life(handle)};
  return alloc_noted(allocator, request, out_ptr);
}

static gcap_status_t pool_free(void* self, void* ptr) {
  pool_allocator_t* allocator = self;
  GCAP_RETURN_IF_ERROR(gcap_allocator_check_not_capturing("cudaFreeAsync"));
  gcap_block_t block;
  GCAP_RETURN_IF_ERROR(gcap_block_table_take(&allocator->blocks, ptr, &block));
  bool freed = false;
  gcap_status_t status = give_back(allocator, &block, &freed);
  if (!freed) return gcap_status_join(status, gcap_block_table_put_back(&allocator->blocks, &block));
  gcap_allocator_log_after_free(status);
  gcap_life_release(block.life);
  return NULL;
}

static gcap_status_t pool_trim(void* self) {
  pool_allocator_t* allocator = self;
  GCAP_RETURN_IF_ERROR(gcap_allocator_check_not_capturing("cudaMemPoolTrimTo"));
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(allocator->options.device_id, &previous));
  gcap_status_t status = GCAP_CUDA(cudaMemPoolTrimTo(allocator->pool, allocator->options.bytes_kept_on_trim));
  if (status == NULL) atomic_fetch_add(&allocator->num_trims, 1);
  return gcap_status_join(status, gcap_thread_leave(allocator->options.device_id, &previous));
}

static gcap_status_t ask_held_bytes(pool_allocator_t* allocator) {
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(allocator->options.device_id, &previous));
  uint64_t bytes = 0;
  gcap_status_t status = GCAP_CUDA(cudaMemPoolGetAttribute(allocator->pool, cudaMemPoolAttrReservedMemCurrent, &bytes));
  if (status == NULL) atomic_store(&allocator->held_bytes, bytes);
  return gcap_status_join(status, gcap_thread_leave(allocator->options.device_id, &previous));
}

static void pool_get_stats(void* self, gcap_allocator_stats_t* out_stats) {
  pool_allocator_t* allocator = self;
  gcap_block_table_get_stats(&allocator->blocks, out_stats);
  // A capture is not the place for a question that can do without an answer.
  gcap_status_t status = gcap_thread_captures() ? NULL : ask_held_bytes(allocator);
  if (status != NULL) {
    gcap_log(GCAP_LOG_WARNING, "TotalAllocated of the pool allocator is an old one: %s", gcap_status_message(status));
  }
  gcap_status_free(status);
  out_stats->total_allocated_bytes = atomic_load(&allocator->held_bytes);
  out_stats->num_shrinkages = atomic_load(&allocator->num_trims);
}

// --- Its life -------------------------------------------------------------------------------------------------------

// Destroys what is there. The driver keeps a pool until its last block is freed and its streams have passed the frees.
static gcap_status_t end(pool_allocator_t* allocator) {
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(allocator->options.device_id, &previous));
  gcap_status_t status = NULL;
  if (allocator->stream != NULL) {
    status = GCAP_CUDA(cudaStreamSynchronize(allocator->stream));  // so that its frees are done, and hold no memory
    status = gcap_status_join(status, GCAP_CUDA(cudaStreamDestroy(allocator->stream)));
  }
  if (allocator->pool != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaMemPoolDestroy(allocator->pool)));
  return gcap_status_join(status, gcap_thread_leave(allocator->options.device_id, &previous));
}

static void pool_destroy(void* self) {
  pool_allocator_t* allocator = self;
  gcap_status_t status = end(allocator);
  if (status != NULL) {
    gcap_log(GCAP_LOG_ERROR, "at the end of the pool allocator: %s; the driver may keep its pool or its stream",
             gcap_status_message(status));
  }
  gcap_status_free(status);
  gcap_block_table_deinit(&allocator->blocks, "pool allocator");
  free(allocator);
}

static gcap_status_t make_pool(pool_allocator_t* allocator) {
  const struct cudaMemPoolProps props = {
      .allocType = cudaMemAllocationTypePinned,
      .location = {.type = cudaMemLocationTypeDevice, .id = allocator->options.device_id},
  };
  const cudaError_t answer = cudaMemPoolCreate(&allocator->pool, &props);
  gcap_status_t status = gcap_status_from_cuda(answer, "cudaMemPoolCreate", __FILE__, __LINE__);
  if (answer == cudaErrorNotSupported) {
    status =
        gcap_status_annotate(status, GCAP_UNIMPLEMENTED, "device %d has no memory pools", allocator->options.device_id);
  }
  if (status != NULL) return status;
  uint64_t threshold = allocator->options.release_threshold_bytes;
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemPoolSetAttribute(allocator->pool, cudaMemPoolAttrReleaseThreshold, &threshold)));
  return GCAP_CUDA(cudaStreamCreateWithFlags(&allocator->stream, cudaStreamNonBlocking));
}

static gcap_status_t publish(pool_allocator_t* allocator, gcap_allocator_t** out_allocator) {
  const gcap_allocator_ops_t ops = {
      .struct_version = GCAP_ALLOCATOR_OPS_VERSION,
      .device_id = allocator->options.device_id,
      .alignment = POOL_ALIGNMENT,
      .self = allocator,
      .alloc = pool_alloc,
      .free = pool_free,
      .alloc_on_stream = pool_alloc_on_stream,
      .reserve = pool_reserve,
      .trim = pool_trim,
      .get_stats = pool_get_stats,
      .destroy = pool_destroy,
  };
  return gcap_allocator_create(&ops, out_allocator);
}

gcap_status_t gcap_pool_allocator_create(const gcap_pool_allocator_options_t* options,
                                         gcap_allocator_t** out_allocator) {
  GCAP_RETURN_IF_NULL(out_allocator);
  *out_allocator = NULL;
  GCAP_RETURN_IF_NULL(options);
  gcap_pool_allocator_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_pool_allocator_options_read(options, &known));
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_pool_allocator_create"));
  GCAP_RETURN_IF_ERROR(gcap_check_device(known.device_id));
  pool_allocator_t* allocator = calloc(1, sizeof(*allocator));
  if (allocator == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a pool allocator");
  allocator->options = known;
  gcap_block_table_init(&allocator->blocks);
  gcap_thread_setting_t previous;
  gcap_status_t status = gcap_thread_enter(known.device_id, &previous);
  if (status == NULL) {
    status = make_pool(allocator);
    status = gcap_status_join(status, gcap_thread_leave(known.device_id, &previous));
  }
  if (status == NULL) status = publish(allocator, out_allocator);
  if (status == NULL) return NULL;
  status = gcap_status_join(status, end(allocator));
  gcap_block_table_deinit(&allocator->blocks, "pool allocator");
  free(allocator);
  return status;
}
