// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// values.h: the values of one id, which may be others at each replay: what the runs are given, and what graphs take.
#ifndef GCAP_LIB_GRAPH_VALUES_H_
#define GCAP_LIB_GRAPH_VALUES_H_

#include "gcap/run.h"
#include "lib/contents/inner.h"
#include "lib/graph/value_block.h"

// Where a value is that the work reads on the device.
typedef struct gcap_graph_memory_value {
  size_t offset;  // in the block
  size_t bytes;   // 0: the value is not in memory
} gcap_graph_memory_value_t;

// Of a gcap_graph_moving_t, with whose buffers they are rehearsed, proved and set.
typedef struct gcap_graph_values {
  size_t count;
  gcap_changing_value_t* items;  // [count]; of a captured graph: as in its capture. One in memory: a byte, always 0
  gcap_value_bytes_t* wanted;    // [count]; what a replay wants, until a move leaves the old ones there
  gcap_graph_memory_value_t* memory;  // [count]
  size_t num_in_memory;
  unsigned char* in_block;  // [block_bytes]; of those in memory: of the run, then what a replay wants
  size_t block_bytes;
  gcap_graph_value_block_t* block;  // of those in memory; NULL: there are none, or it is not made yet
} gcap_graph_values_t;

// The bytes of those in memory, in a block; checks all of them.
//   INVALID_ARGUMENT  as gcap_graph_manager_begin_run
gcap_status_t gcap_graph_values_measure(const gcap_graph_buffers_t* given, size_t* out_block_bytes);
// Copies the values, whose names are copied too, checks them, and chooses what they are in rehearsals.
//   INVALID_ARGUMENT    as gcap_graph_manager_begin_run
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_values_create(const gcap_graph_buffers_t* given, gcap_graph_values_t* out_values);
// May free device memory.
gcap_status_t gcap_graph_values_end(gcap_graph_values_t* values);

// How many of them differ in rehearsals.
static inline size_t gcap_graph_values_num_rehearsed(const gcap_graph_values_t* values) {
  return values->count - values->num_in_memory;
}

// Makes the memory of a run that is to be captured on the stream, if it needs some and what it took over does not
// serve. `*out_is_new`: what was rehearsed has other addresses.
//   FAILED_PRECONDITION  the stream is capturing
//   others               as gcap_graph_value_block_create and gcap_graph_value_block_destroy
gcap_status_t gcap_graph_values_prepare(gcap_graph_values_t* values, cudaStream_t stream, bool* out_is_new);
// The same for an eager run, and after the run.
//   errors of gcap_graph_value_block_create_eager
gcap_status_t gcap_graph_values_begin_eager(gcap_graph_values_t* values, cudaStream_t stream);
gcap_status_t gcap_graph_values_end_eager(gcap_graph_values_t* values, cudaStream_t stream, bool is_drained);
// Takes over the memory of an earlier rehearsal of the same id.
void gcap_graph_values_adopt(gcap_graph_values_t* values, gcap_graph_values_t* earlier);
// How many bytes of a block a value takes: 0 if it is not in memory.
size_t gcap_graph_value_bytes_in_block(const gcap_graph_value_t* value);
// Where the work of a run finds a value; `set`: in this rehearsal, GCAP_STAND_IN_SETS for none.
const void* gcap_graph_values_place(const gcap_graph_values_t* values, size_t value, size_t set);

// Whether what `earlier` were in rehearsals shows what `values` would: all are the same.
bool gcap_graph_values_are_alike(const gcap_graph_values_t* values, const gcap_graph_values_t* earlier);

// Whether a run has as many values of the same sizes and types as its graph `id`, and all of them.
//   INVALID_ARGUMENT  it has not
gcap_status_t gcap_graph_values_check_same(const gcap_graph_values_t* values, int id,
                                           const gcap_graph_buffers_t* given);

// The next ones are of a captured graph. `relocation`: NULL if it was never to be moved.

// The present value, of one that arguments carry.
const gcap_value_bytes_t* gcap_graph_values_present(const gcap_graph_values_t* values,
                                                    const gcap_relocation_t* relocation, size_t value);
// The present value, in memory or not, as a run would give it. Points to what the next write or move changes.
gcap_graph_value_t gcap_graph_values_as_given(const gcap_graph_values_t* values, const gcap_relocation_t* relocation,
                                              size_t value);
// Has the launch that is issued to the stream next find the values in memory that are wanted; at first: those of the
// capture.
//   errors of gcap_graph_value_block_write
gcap_status_t gcap_graph_values_write(gcap_graph_values_t* values, cudaStream_t stream);
// Waits for what was written, before the end of a graph that was never launched.
//   errors of gcap_graph_value_block_settle: the block is not the values' any more
gcap_status_t gcap_graph_values_settle(gcap_graph_values_t* values, cudaStream_t stream);
// Notes what a replay wants. NULL: the present values, and none in memory is written.
void gcap_graph_values_aim(gcap_graph_values_t* values, const gcap_relocation_t* relocation,
                           const gcap_graph_value_t* given);
// The same for a run that has these.
void gcap_graph_values_aim_at(gcap_graph_values_t* values, const gcap_graph_values_t* run);
// Whether one that arguments carry is another one than the present one.
bool gcap_graph_values_move(const gcap_graph_values_t* values, const gcap_relocation_t* relocation);
// Why a graph that can be moved cannot have them; NULL: it can.
gcap_status_t gcap_graph_values_explain(const gcap_graph_values_t* values, const gcap_relocation_t* relocation);
bool gcap_graph_values_reach(const gcap_graph_values_t* values, const gcap_relocation_t* relocation);

#endif  // GCAP_LIB_GRAPH_VALUES_H_
