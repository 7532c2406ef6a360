// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// allocator.h: memory by one interface, whoever provides it. For callers; implementers include allocator_ops.h.
#ifndef GCAP_ALLOCATOR_H_
#define GCAP_ALLOCATOR_H_

#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// Counters under ONNX Runtime's arena statistics names. An allocator without one of them reports 0.
typedef struct gcap_allocator_stats {
  uint64_t limit_bytes;             // Limit; 0: none
  uint64_t in_use_bytes;            // InUse: handed out now, as rounded by the allocator
  uint64_t requested_in_use_bytes;  // RequestedInUse: handed out now, as asked for
  uint64_t max_in_use_bytes;        // MaxInUse
  uint64_t total_allocated_bytes;   // TotalAllocated: held from upstream now
  uint64_t max_alloc_bytes;         // MaxAllocSize: the largest single request
  uint64_t num_allocs;              // NumAllocs
  uint64_t num_reserves;            // NumReserves
  uint64_t num_extensions;          // NumArenaExtensions
  uint64_t num_shrinkages;          // NumArenaShrinkages
} gcap_allocator_stats_t;

// Allocator: somewhere to get memory. From gcap_allocator_create (allocator_ops.h), or one of the makers below.
// Thread:   thread-safe, unless the maker says otherwise.
// Capture:  the maker says which calls are legal. The device and pinned allocators refuse every call that would reach
//           the driver while a stream of the calling thread is being captured by gcap; memory refused so also fails
//           the capture, since what was to use it would be missing from the graph. A free refused so does not.
// Lifetime: outlives what was allocated from it.
// A function that returns a status answers a NULL argument with INVALID_ARGUMENT and the argument's name, but for an
// address to free, an allocator to destroy and options whose maker says so. The getters must not be given NULL.
typedef struct gcap_allocator gcap_allocator_t;

// cudaMalloc and cudaFree on `device_id`. Alignment 256 bytes.
//   INVALID_ARGUMENT  no such device
GCAP_API gcap_status_t gcap_device_allocator_create(int device_id, gcap_allocator_t** out_allocator) GCAP_NODISCARD;

// Page-locked host memory (cudaHostAlloc).
GCAP_API gcap_status_t gcap_pinned_allocator_create(gcap_allocator_t** out_allocator) GCAP_NODISCARD;

typedef struct gcap_pool_allocator_options {
  size_t struct_size;                // set by gcap_pool_allocator_options_init
  int device_id;                     // default 0
  uint64_t release_threshold_bytes;  // what the pool keeps when a stream is synchronised; default UINT64_MAX: all
  size_t bytes_kept_on_trim;         // what gcap_allocator_trim leaves; default 0
} gcap_pool_allocator_options_t;

// Fills in the defaults. Programs call the init function, which says how large their struct is.
GCAP_API void gcap_pool_allocator_options_set_defaults(gcap_pool_allocator_options_t* options);
static inline void gcap_pool_allocator_options_init(gcap_pool_allocator_options_t* options) {
  options->struct_size = sizeof(*options);
  gcap_pool_allocator_options_set_defaults(options);
}

// Stream-ordered device memory: cudaMallocFromPoolAsync out of a pool of the allocator's own. Alignment 256 bytes. The
// semantics are those of ONNX Runtime's CudaMempoolArena, but that nothing is ever done on stream 0.
// gcap_allocator_alloc_on_stream gives memory in the order of that stream. The free is in its order too, whoever frees:
// other streams' uses come before it when the stream has waited for them. A wrapper may be destroyed while its blocks
// are handed out, but not while one is being freed; a block that is freed after it must be in use nowhere.
// gcap_allocator_alloc and gcap_allocator_reserve wait until the memory is there for all streams, and what they gave is
// freed when no stream uses it any more.
// Capture: as the device allocator; so is a trim. A stream that somebody else captures is refused as well, but that
//          does not fail the capture. gcap_allocator_get_stats tells what the pool held when it was last asked.
// Statistics: TotalAllocated is what the pool holds from the driver, NumArenaShrinkages the trims; a trim leaves what
// the host does not know to be free yet. What is handed out at the end stays valid and is lost.
//   INVALID_ARGUMENT     no such device
//   FAILED_PRECONDITION  the calling thread is capturing
//   UNIMPLEMENTED        the device has no memory pools
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the runtime refused
// Its gcap_allocator_alloc_on_stream answers INVALID_ARGUMENT for a stream of another device, and for
// cudaStreamPerThread, which is another stream on each thread.
GCAP_API gcap_status_t gcap_pool_allocator_create(const gcap_pool_allocator_options_t* options,
                                                  gcap_allocator_t** out_allocator) GCAP_NODISCARD;

typedef enum gcap_allocator_event_kind {
  GCAP_ALLOCATOR_EVENT_ALLOC = 0,
  GCAP_ALLOCATOR_EVENT_RESERVE,
  GCAP_ALLOCATOR_EVENT_FREE,
  GCAP_ALLOCATOR_EVENT_TRIM,
} gcap_allocator_event_kind_t;

// What an allocator was asked for, and did. Requests that failed are no events.
typedef struct gcap_allocator_event {
  gcap_allocator_event_kind_t kind;
  uint64_t sequence;      // rises from 1; some numbers may be missing
  uint64_t block;         // the sequence number by which the block was given, 0 for a trim
  size_t bytes;           // as asked for, also of a free; 0 for a trim
  void* ptr;              // NULL for a trim
  gcap_stream_t* stream;  // of gcap_allocator_alloc_on_stream, else NULL
} gcap_allocator_event_t;

typedef struct gcap_counting_allocator_options {
  size_t struct_size;  // set by gcap_counting_allocator_options_init
  size_t limit_bytes;  // most that is handed out at a time; 0, the default: no limit
  // Optional. Called on the thread that made the request, without a lock, so from several threads at once: what they
  // report is put into order by sorting by `sequence`. It is not called in the middle of a request, so it may call
  // gcap; but a thread that captures calls it too.
  void (*on_event)(void* user, const gcap_allocator_event_t* event);
  void* user;
} gcap_counting_allocator_options_t;

// Fills in the defaults. Programs call the init function, which says how large their struct is.
GCAP_API void gcap_counting_allocator_options_set_defaults(gcap_counting_allocator_options_t* options);
static inline void gcap_counting_allocator_options_init(gcap_counting_allocator_options_t* options) {
  options->struct_size = sizeof(*options);
  gcap_counting_allocator_options_set_defaults(options);
}

// Decorates `upstream`: passes every request on, counts, keeps to a limit, and reports events that can be replayed.
// Device and alignment are the upstream's; the capture rules too. What it hands out is freed through it. `options`
// NULL: the defaults.
// Lifetime: the upstream stays the caller's and outlives it. What is handed out at the end stays the upstream's.
//   RESOURCE_EXHAUSTED  no host memory
// Its requests fail with RESOURCE_EXHAUSTED beyond the limit, naming the bytes requested, in use and allowed; with
// LIBRARY_ERROR when the upstream gives memory that is in use; and as the upstream's do.
GCAP_API gcap_status_t gcap_counting_allocator_create(gcap_allocator_t* upstream,
                                                      const gcap_counting_allocator_options_t* options,
                                                      gcap_allocator_t** out_allocator) GCAP_NODISCARD;

// Writes the event as a line of a trace, without a newline; as snprintf, gives the line's length and cuts it where
// there is no room. A trace is such lines in the order of `sequence`:
//   a <block> <bytes> <stream>  an allocation; <stream> is 0 for none, else any number that tells streams apart
//   r <block> <bytes>           a reserve
//   f <block>                   a free of what the line with that block gave
//   t                           a trim
GCAP_API int gcap_allocator_event_format(const gcap_allocator_event_t* event, char* out_line, size_t line_bytes);

// Ends the allocator. NULL is fine. Memory still handed out is the caller's mistake; the implementation says what
// becomes of it.
GCAP_API void gcap_allocator_destroy(gcap_allocator_t* allocator);

// Gives `bytes` bytes, aligned to gcap_allocator_alignment. 0 bytes give NULL and success.
//   INVALID_ARGUMENT     a size that overflows when it is rounded up to the alignment
//   RESOURCE_EXHAUSTED   with the bytes asked for
//   LIBRARY_ERROR        the implementation answered success, and no memory
//   FAILED_PRECONDITION  the calling thread is capturing (see above), with the bytes and the allocator
GCAP_API gcap_status_t gcap_allocator_alloc(gcap_allocator_t* allocator, size_t bytes, void** out_ptr) GCAP_NODISCARD;

// The same for use on `stream`. An allocator that knows nothing of streams treats it as gcap_allocator_alloc, whose
// errors these are.
GCAP_API gcap_status_t gcap_allocator_alloc_on_stream(gcap_allocator_t* allocator, size_t bytes, gcap_stream_t* stream,
                                                      void** out_ptr) GCAP_NODISCARD;

// The same for memory that lives long, such as weights: never taken from, nor given back to, a cache.
GCAP_API gcap_status_t gcap_allocator_reserve(gcap_allocator_t* allocator, size_t bytes, void** out_ptr) GCAP_NODISCARD;

// Gives memory back, however it was allocated. NULL is fine. On failure the block is still the caller's, who may try
// again.
//   INVALID_ARGUMENT  not allocated here, an address inside a block, or freed already (where the allocator can tell)
GCAP_API gcap_status_t gcap_allocator_free(gcap_allocator_t* allocator, void* ptr) GCAP_NODISCARD;

// Gives cached memory that nobody uses back upstream. An allocator without a cache does nothing.
GCAP_API gcap_status_t gcap_allocator_trim(gcap_allocator_t* allocator) GCAP_NODISCARD;

GCAP_API void gcap_allocator_get_stats(gcap_allocator_t* allocator, gcap_allocator_stats_t* out_stats);

GCAP_API int gcap_allocator_device(const gcap_allocator_t* allocator);        // -1: host memory
GCAP_API size_t gcap_allocator_alignment(const gcap_allocator_t* allocator);  // bytes, a power of two

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_ALLOCATOR_H_
