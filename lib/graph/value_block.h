// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// value_block.h: values that the work reads on the device: a block of device memory, which one copy fills before a
// launch.
#ifndef GCAP_LIB_GRAPH_VALUE_BLOCK_H_
#define GCAP_LIB_GRAPH_VALUE_BLOCK_H_

#include "lib/contents/inner.h"

// How many copies from pinned memory may be on their way at once.
#define GCAP_GRAPH_VALUE_SLOTS 16

// Of a graph: kept as long as the graph, and written from pinned memory. Of an eager run: made and freed in the order
// of its stream.
typedef struct gcap_graph_value_block {
  gcap_value_bytes_t* device;                  // [count]
  gcap_value_bytes_t* pinned;                  // [GCAP_GRAPH_VALUE_SLOTS * count]; NULL: of an eager run
  gcap_value_bytes_t* written;                 // [count]; what the last copy wrote
  cudaEvent_t passed[GCAP_GRAPH_VALUE_SLOTS];  // behind the copy from the slot; NULL: it had none yet
  size_t count, next;
  int device_id;
  bool is_of_graph;
  bool is_written;  // the device has `written`, or will have before what is issued next
  bool is_lost;     // a copy may be on its way, and no event tells: no slot may be written
} gcap_graph_value_block_t;

// Makes the block of a graph. Not while the thread captures.
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          no device memory, or no pinned memory
gcap_status_t gcap_graph_value_block_create(size_t count, cudaStream_t stream, gcap_graph_value_block_t** out_block);
// Makes the block of an eager run with these values, in the order of the stream, and frees it so.
//   FAILED_PRECONDITION  the stream is capturing
//   others               as above
gcap_status_t gcap_graph_value_block_create_eager(const gcap_changing_value_t* values, size_t count,
                                                  cudaStream_t stream, gcap_graph_value_block_t** out_block);
// After the run. If it cannot be freed in the order of the stream, waits for the stream.
//   LEAKED  the stream is capturing: the memory is kept
gcap_status_t gcap_graph_value_block_end_eager(gcap_graph_value_block_t* block, cudaStream_t stream);
// Ends a block of a graph that is launched no more. Of an eager run the memory is kept, since work may use it; NULL is
// fine.
gcap_status_t gcap_graph_value_block_destroy(gcap_graph_value_block_t* block);

// Has what is issued to the stream next find these values, in pageable memory, in the block of a graph. Does nothing if
// they are there. `*out_torn`: the block may have other values than before.
//   FAILED_PRECONDITION  the stream is capturing; or an earlier copy could not be followed
//   CUDA_ERROR           the copy could not be issued. Whatever it is, nothing is to be launched
gcap_status_t gcap_graph_value_block_write(gcap_graph_value_block_t* block, const gcap_value_bytes_t* values,
                                           cudaStream_t stream, bool* out_torn);

#endif  // GCAP_LIB_GRAPH_VALUE_BLOCK_H_
