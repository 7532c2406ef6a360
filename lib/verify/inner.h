// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// inner.h: what pieces of memory have at several times. Copies of them are kept in slots, put back, and compared.
#ifndef GCAP_LIB_VERIFY_INNER_H_
#define GCAP_LIB_VERIFY_INNER_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"
#include "gcap/tensor.h"
#include "lib/internal/text.h"

// --- Areas ----------------------------------------------------------------------------------------------------------

// Memory that shares no byte with another area, once merged.
typedef struct gcap_area {
  char* begin;
  size_t bytes;
  size_t owner;  // the least of those that were merged
} gcap_area_t;

// Makes one area of those that share bytes, and sorts them by address. Returns how many are left.
size_t gcap_areas_merge(gcap_area_t* areas, size_t count);

// The index of the merged area that the address is in, which is in one.
size_t gcap_areas_find(const gcap_area_t* areas, const void* address);

// --- States ---------------------------------------------------------------------------------------------------------

// A piece of memory that is kept. Pieces may share bytes.
typedef struct gcap_verify_block {
  const char* name;  // for messages; NULL: none
  void* address;
  size_t bytes;
  gcap_dtype_t type;
  double absolute, relative;  // as in gcap_graph_verify_buffer_t
  bool is_compared;
  bool is_tap;  // a message calls it so, by its name. Taps come before all other blocks
} gcap_verify_block_t;

// The slot of what the blocks have now. Nothing is saved there, or restored from there.
#define GCAP_VERIFY_NOW SIZE_MAX

// State: what blocks have at several times, in as many slots.
// Thread:   one at a time.
// Capture:  no function is for a thread that captures, or for a stream that is captured.
// Lifetime: the caller destroys it. Blocks are copied, their names and their memory outlive it.
typedef struct gcap_verify_state gcap_verify_state_t;

// Makes a state with slots of nothing, in memory of the stream's device, or of the host where that device has none.
//   INVALID_ARGUMENT    of a block: no address, no bytes, bytes that are no multiple of an element's, no such type, a
//                       tolerance that is negative or NaN, or memory that is not wholly in one allocation; the message
//                       names the block
//   RESOURCE_EXHAUSTED  neither device nor host memory
//   UNIMPLEMENTED       as gcap_driver_find_allocation
//   CUDA_ERROR          the driver does not answer
gcap_status_t gcap_verify_state_create(const gcap_verify_block_t* blocks, size_t count, size_t num_slots,
                                       cudaStream_t stream, gcap_verify_state_t** out_state) GCAP_NODISCARD;
// Frees the slots; copies on their way are waited for. NULL is fine.
//   CUDA_ERROR  the device was lost, or the memory could not be freed. The state is gone
gcap_status_t gcap_verify_state_destroy(gcap_verify_state_t* state) GCAP_NODISCARD;

// Has the stream copy all blocks into the slot, or back. A saved slot stays as it is.
//   CUDA_ERROR  a copy could not be issued; others may have been
gcap_status_t gcap_verify_state_save(gcap_verify_state_t* state, size_t slot, cudaStream_t stream) GCAP_NODISCARD;
gcap_status_t gcap_verify_state_restore(gcap_verify_state_t* state, size_t slot, cudaStream_t stream) GCAP_NODISCARD;

// Whether the memory is in the blocks as one piece.
bool gcap_verify_state_has(const gcap_verify_state_t* state, const void* address, size_t bytes);
// Copies what a saved slot has of such memory to the host. Waits.
//   CUDA_ERROR  the copy or the wait failed
gcap_status_t gcap_verify_state_read(const gcap_verify_state_t* state, size_t slot, const void* address, size_t bytes,
                                     cudaStream_t stream, void* out_bytes) GCAP_NODISCARD;

// What two slots have of the blocks that are compared.
typedef struct gcap_verify_difference {
  size_t block;             // the first that differs; SIZE_MAX: none
  size_t element;           // its first that differs
  double actual, expected;  // the two values
  uint64_t actual_bits, expected_bits;
  uint64_t different;         // elements, of all blocks. One that two blocks have counts twice
  double largest_difference;  // of two numbers
  size_t nan_block;           // the first with a NaN in `actual` and none in `expected`; SIZE_MAX: none
  size_t nan_element;
  uint64_t compared_bytes;
} gcap_verify_difference_t;

// Compares two slots, each saved or GCAP_VERIFY_NOW, after what the stream was given so far. Waits.
//   CUDA_ERROR  a copy or a wait failed
gcap_status_t gcap_verify_state_compare(gcap_verify_state_t* state, size_t expected, size_t actual, cudaStream_t stream,
                                        gcap_verify_difference_t* out_difference) GCAP_NODISCARD;

// Says in words what differs: "buffer 1 'y' differs: element 3 (f32) is 2, and 5 in the work; …". `block` of the
// difference is not SIZE_MAX.
void gcap_verify_write_difference(const gcap_verify_state_t* state, const gcap_verify_difference_t* difference,
                                  gcap_text_t* text);

#endif  // GCAP_LIB_VERIFY_INNER_H_
