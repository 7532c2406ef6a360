// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// allocator.h: one interface for memory of any provider. For callers; implementers include allocator_ops.h.
#ifndef GCAP_ALLOCATOR_H_
#define GCAP_ALLOCATOR_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gcap/status.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// What an allocator is, and its counters, under ONNX Runtime's arena statistics names. An allocator reports 0 for a
// counter that it does not have.
typedef struct gcap_allocator_stats {
  size_t struct_size;               // set by gcap_allocator_get_stats and gcap_scratch_get_stats
  int device_id;                    // -1: host memory
  size_t alignment;                 // of every block; bytes, a power of two
  uint64_t limit_bytes;             // Limit; 0: none
  uint64_t in_use_bytes;            // InUse: allocated now, as rounded by the allocator
  uint64_t requested_in_use_bytes;  // RequestedInUse: allocated now, as requested
  uint64_t max_in_use_bytes;        // MaxInUse
  uint64_t total_allocated_bytes;   // TotalAllocated: held from upstream now
  uint64_t max_alloc_bytes;         // MaxAllocSize: the largest single request
  uint64_t num_allocs;              // NumAllocs
  uint64_t num_reserves;            // NumReserves
  uint64_t num_extensions;          // NumArenaExtensions
  uint64_t num_shrinkages;          // NumArenaShrinkages
} gcap_allocator_stats_t;

// Allocator: a source of memory. From gcap_allocator_create (allocator_ops.h), or from one of the makers below.
// Thread:   thread-safe, unless the maker says otherwise.
// Capture:  the maker says which calls are legal. While the calling thread has a capture scope open, the device and
//           pinned allocators refuse every call that would reach the driver. A refused allocation also fails the
//           capture, since the graph would lack the work that needs the memory. A refused free does not.
// Lifetime: outlives the memory allocated from it.
// NULL arguments return INVALID_ARGUMENT with the argument's name, except an address to free, an allocator to destroy,
// and options whose maker says so. The getters must not be passed NULL.
typedef struct gcap_allocator gcap_allocator_t;

// Creates an allocator of device memory: cudaMalloc and cudaFree on `device_id`. Alignment 256 bytes.
//   INVALID_ARGUMENT    no such device
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the runtime refused
GCAP_API gcap_status_t gcap_device_allocator_create(int device_id, gcap_allocator_t** out_allocator) GCAP_NODISCARD;

// Creates an allocator of page-locked host memory (cudaHostAlloc). Alignment 256 bytes.
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_pinned_allocator_create(gcap_allocator_t** out_allocator) GCAP_NODISCARD;

typedef struct gcap_pool_allocator_options {
  size_t struct_size;                // set by gcap_pool_allocator_options_init
  int device_id;                     // default 0
  uint64_t release_threshold_bytes;  // what the pool keeps when a stream is synchronized; default UINT64_MAX: all
  size_t bytes_kept_on_trim;         // what the pool keeps in gcap_allocator_trim; default 0
} gcap_pool_allocator_options_t;

// Sets the size and the defaults.
static inline void gcap_pool_allocator_options_init(gcap_pool_allocator_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = sizeof(*options);
  options->release_threshold_bytes = UINT64_MAX;
}

// Creates an allocator of stream-ordered device memory: cudaMallocFromPoolAsync from a CUDA memory pool that the
// allocator owns. Alignment 256 bytes. The semantics are those of ONNX Runtime's CudaMempoolArena, except that nothing
// is ever done on stream 0.
// gcap_allocator_alloc_on_stream allocates in the order of that stream, and a free by any thread is in that stream's
// order too. So the stream must have waited for other streams' uses of the block. A wrapper may be destroyed while its
// blocks are live, but not while one of them is being freed. A block freed after its wrapper was destroyed must not be
// in use anywhere.
// gcap_allocator_alloc and gcap_allocator_reserve wait until the memory is ready for all streams. Free such memory when
// no stream uses it any more.
// Capture:    as the device allocator, also for a trim. A stream captured by another thread, or without gcap, is
//             refused too, but that does not fail its capture. Meanwhile TotalAllocated is that of the last query.
// Statistics: TotalAllocated is what the pool holds from the driver, NumArenaShrinkages counts trims. A trim keeps what
//             the host does not know to be free yet.
// Memory that is live when the allocator ends stays valid and is leaked.
//   INVALID_ARGUMENT     no such device
//   FAILED_PRECONDITION  the calling thread is capturing
//   UNIMPLEMENTED        the device has no memory pools
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the runtime refused
// gcap_allocator_alloc_on_stream of this allocator returns INVALID_ARGUMENT for a stream of another device, and for
// cudaStreamPerThread, which is a different stream on each thread.
GCAP_API gcap_status_t gcap_pool_allocator_create(const gcap_pool_allocator_options_t* options,
                                                  gcap_allocator_t** out_allocator) GCAP_NODISCARD;

typedef enum gcap_allocator_event_kind {
  GCAP_ALLOCATOR_EVENT_ALLOC = 0,
  GCAP_ALLOCATOR_EVENT_RESERVE,
  GCAP_ALLOCATOR_EVENT_FREE,
  GCAP_ALLOCATOR_EVENT_TRIM,
} gcap_allocator_event_kind_t;

// A request to a scratch that succeeded (gcap_scratch_options_t.on_event). A request that failed is not reported. A
// trace (arena.trace_file of gcap_options_t) is a file of events in the order of `sequence`, a line each:
//   a <block> <bytes> <stream>  an allocation; <stream> is 0 for none, else a number that identifies the stream
//   r <block> <bytes>           a reserve
//   f <block>                   a free of the block that the line with that number allocated
//   t                           a trim
typedef struct gcap_allocator_event {
  gcap_allocator_event_kind_t kind;
  uint64_t sequence;      // rises from 1; some numbers may be missing
  uint64_t block;         // the sequence number of the block's allocation; 0 for a trim
  size_t bytes;           // as requested, also in a free; 0 for a trim
  void* ptr;              // NULL for a trim
  gcap_stream_t* stream;  // of an allocation for a stream, else NULL
} gcap_allocator_event_t;

// Ends the allocator. NULL is fine. The caller must have freed all memory; the implementation says what becomes of
// memory that is still live.
GCAP_API void gcap_allocator_destroy(gcap_allocator_t* allocator);

// Allocates `bytes` bytes, aligned to gcap_allocator_stats_t.alignment. 0 bytes give NULL and success.
//   INVALID_ARGUMENT     a size that overflows when rounded up to the alignment
//   RESOURCE_EXHAUSTED   no memory; the message has the bytes requested
//   LIBRARY_ERROR        the implementation returned success but no memory
//   FAILED_PRECONDITION  the calling thread is capturing (see above); the message has the bytes and the allocator
//   CUDA_ERROR           the runtime refused
// Also what the implementation returns.
GCAP_API gcap_status_t gcap_allocator_alloc(gcap_allocator_t* allocator, size_t bytes, void** out_ptr) GCAP_NODISCARD;

// As gcap_allocator_alloc, for use on `stream`. An allocator without stream order treats this as gcap_allocator_alloc.
//   INVALID_ARGUMENT  no stream, or a stream that the implementation does not accept
//   others            as gcap_allocator_alloc
GCAP_API gcap_status_t gcap_allocator_alloc_on_stream(gcap_allocator_t* allocator, size_t bytes, gcap_stream_t* stream,
                                                      void** out_ptr) GCAP_NODISCARD;

// As gcap_allocator_alloc, for long-lived memory such as weights: such memory never comes from a cache or returns to
// one.
//   others  as gcap_allocator_alloc
GCAP_API gcap_status_t gcap_allocator_reserve(gcap_allocator_t* allocator, size_t bytes, void** out_ptr) GCAP_NODISCARD;

// Frees memory, however it was allocated. NULL is fine. On failure, but for INTERNAL, the block still belongs to the
// caller, who may retry.
//   INVALID_ARGUMENT     not allocated here, an address inside a block, or freed already (if the allocator detects it)
//   FAILED_PRECONDITION  the calling thread is capturing (see above)
//   CUDA_ERROR           the runtime refused
// Also what the implementation returns.
GCAP_API gcap_status_t gcap_allocator_free(gcap_allocator_t* allocator, void* ptr) GCAP_NODISCARD;

// Gives cached, unused memory back upstream. An allocator without a cache does nothing.
//   FAILED_PRECONDITION  the calling thread is capturing, and the trim would reach the driver or a callback
//   CUDA_ERROR           the runtime refused
// Also what the implementation returns.
GCAP_API gcap_status_t gcap_allocator_trim(gcap_allocator_t* allocator) GCAP_NODISCARD;

// The allocator's device, alignment and counters; the latter are all zero if the implementation has none.
GCAP_API void gcap_allocator_read_stats(gcap_allocator_t* allocator, gcap_allocator_stats_t* out_stats);
static inline void gcap_allocator_get_stats(gcap_allocator_t* allocator, gcap_allocator_stats_t* out_stats) {
  out_stats->struct_size = sizeof(*out_stats);
  gcap_allocator_read_stats(allocator, out_stats);
}

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_ALLOCATOR_H_
