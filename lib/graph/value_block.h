// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// value_block.h: values that the work reads on the device: a block of device memory, which one copy fills before a
// launch.
#ifndef GCAP_LIB_GRAPH_VALUE_BLOCK_H_
#define GCAP_LIB_GRAPH_VALUE_BLOCK_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#include "gcap/status.h"
#include "lib/internal/kept.h"

// How many copies from pinned memory may be on their way at once. Of a block of many bytes fewer, so that its ring has
// no more than GCAP_GRAPH_VALUE_RING_BYTES; but no fewer than the least.
#define GCAP_GRAPH_VALUE_SLOTS 64
#define GCAP_GRAPH_VALUE_LEAST_SLOTS 8
#define GCAP_GRAPH_VALUE_RING_BYTES ((size_t)64 << 10)

// Of a graph: kept as long as the graph, and written from pinned memory. Of an eager run: made and freed in the order
// of its stream.
typedef struct gcap_graph_value_block {
  unsigned char* device;  // [bytes]
  unsigned char* pinned;  // [slots * bytes]; NULL: of an eager run
  size_t bytes;
  size_t slots;           // a power of two
  size_t next;            // the slot of the next copy
  cudaEvent_t passed[2];  // behind the copies from each half of the slots
  int device_id;
  bool is_of_graph;
  bool was_copied;   // a copy from pinned memory may be on its way
  bool is_written;   // the device has `written`, or will have before what is issued next
  bool is_unmarked;  // the half before that of `next` has no event behind its copies yet
  gcap_kept_t kept;  // once its copies cannot be waited for
  unsigned char written[] __attribute__((aligned(16)));  // [bytes]; what the last copy wrote
} gcap_graph_value_block_t;

// Makes the block of a graph. Not while the thread captures.
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          no device memory, no pinned memory, or no events
gcap_status_t gcap_graph_value_block_create(size_t bytes, cudaStream_t stream, gcap_graph_value_block_t** out_block);
// Whether a block of a graph, which nobody uses, is as one made for the stream.
//   CUDA_ERROR  the runtime does not say
gcap_status_t gcap_graph_value_block_serves(const gcap_graph_value_block_t* block, size_t bytes, cudaStream_t stream,
                                            bool* out_serves);
// Makes the block of an eager run with these values, in the order of the stream, and frees it so.
//   FAILED_PRECONDITION  the stream is capturing
//   others               as above
gcap_status_t gcap_graph_value_block_create_eager(const void* values, size_t bytes, cudaStream_t stream,
                                                  gcap_graph_value_block_t** out_block);
// After the run. If it cannot be freed in the order of the stream, waits for the stream. `is_drained`: the stream is
// gone, and has nothing in flight.
//   LEAKED  the stream is capturing: the memory is kept
gcap_status_t gcap_graph_value_block_end_eager(gcap_graph_value_block_t* block, cudaStream_t stream, bool is_drained);
// Ends a block of a graph that is launched no more. Of an eager run the memory is kept, since work may use it; NULL is
// fine.
gcap_status_t gcap_graph_value_block_destroy(gcap_graph_value_block_t* block);

// Has what is issued to the stream next find these values, in pageable memory, in the block of a graph. Does nothing if
// they are there. The stream is always the same one.
//   FAILED_PRECONDITION  the stream is capturing
//   CUDA_ERROR           the copy could not be issued. Whatever it is, nothing is to be launched
gcap_status_t gcap_graph_value_block_write(gcap_graph_value_block_t* block, const void* values, cudaStream_t stream);

// Waits for the copies to a block of a graph that was never launched, on its stream.
//   LEAKED  the wait failed: the block is kept until the process ends, and is the caller's no more
gcap_status_t gcap_graph_value_block_settle(gcap_graph_value_block_t* block, cudaStream_t stream);

#endif  // GCAP_LIB_GRAPH_VALUE_BLOCK_H_
