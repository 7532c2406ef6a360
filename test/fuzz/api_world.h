// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// api_world.h: what the target api_fuzz has in its hands: a few objects of each kind, and what it must know of them to
// be a correct program.
//
// The target makes legal calls and calls that gcap promises to refuse, in any order, and no call that a header forbids.
// What a header forbids is kept out by the fields here, each of which says why it is there. All objects are made and
// ended within one input. Nothing here allocates, since the heap may be failing.
#ifndef GCAP_TEST_FUZZ_API_WORLD_H_
#define GCAP_TEST_FUZZ_API_WORLD_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "gcap/external_allocator.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/kit/kit.h"
#include "gcap/kit/ops/elementwise.h"
#include "gcap_sim.h"
#include "lib/stream/inner.h"
#include "test/fuzz/heap.h"
#include "test/fuzz/input.h"

enum {
  FUZZ_DEVICES = 2,
  FUZZ_RAW_STREAMS = 3,
  FUZZ_STREAMS = 6,
  FUZZ_NOTIFICATIONS = 3,
  FUZZ_ALLOCATORS = 4,
  FUZZ_SCRATCHES = 2,
  FUZZ_BLOCKS = 12,
  FUZZ_RESERVATIONS = 2,
  FUZZ_GRAPHS = 3,
  FUZZ_MANAGERS = 2,
  // Of a manager: this id and the next have buffers that move, and no other step uses them.
  FUZZ_MOVING_ID = 8,
  FUZZ_PLACES = 4,
  FUZZ_PLACE_BYTES = 1024,
  FUZZ_RUNTIMES = 2,
  FUZZ_MAX_DEPTH = 3,
  FUZZ_MAX_STEPS = 300,
  // Of FUZZ_STREAMS: the one for captures that the user begins without gcap, with reservations that he opens himself.
  // No scope and no manager uses it, since such a graph would lack an owner for its memory.
  FUZZ_USERS_STREAM = 5,
  // Of FUZZ_STREAMS: a stream of the pool.
  FUZZ_POOL_STREAM = 4
};

typedef enum fuzz_mode { FUZZ_PLAIN = 0, FUZZ_HEAP, FUZZ_FAULTS } fuzz_mode_t;

typedef struct fuzz_stream {
  gcap_stream_t* stream;
  int device;
  int users;    // calls of gcap on the stack that were given it: not to be destroyed from a callback
  bool ends;    // is being destroyed: takes no notification
  bool forked;  // into a capture scope, which it must outlive
  bool of_pool;
} fuzz_stream_t;

// A block of scratch or of an allocator. It is written on its stream alone, and never once its stream is gone.
typedef struct fuzz_block {
  void* ptr;
  size_t bytes;
  gcap_scratch_t* scratch;      // or
  gcap_allocator_t* allocator;  // one of them
  int stream;                   // -1: none, so the block is never written
  // 0, or the capture in which the block was allocated. It is written in that capture alone: what an eager call wrote
  // to it, a replay of that graph would not expect, and the other way about.
  unsigned long long capture;
  int run_stream;  // the stream of whose run it is; -1: none
} fuzz_block_t;

typedef struct fuzz_allocator {
  gcap_allocator_t* allocator;
  int device;
} fuzz_allocator_t;

typedef struct fuzz_scratch {
  gcap_scratch_t* scratch;
  int upstream;
  int device;                    // -1: host memory
  unsigned runs;                 // a bit for each stream that has a run open
  unsigned ended[FUZZ_STREAMS];  // how many runs of each stream have ended
} fuzz_scratch_t;

typedef struct fuzz_reservation {
  gcap_scratch_reservation_t* reservation;
  int shares;  // opens and reopens that were not released
  int scratch;
} fuzz_reservation_t;

// A graph of a scope that the target ended itself.
typedef struct fuzz_graph {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  gcap_retained_t* retained;
  int stream;  // its origin; -1 once that is gone
} fuzz_graph_t;

typedef struct fuzz_runtime {
  gcap_runtime_t* runtime;
  gcap_ep_t* ep;  // owns the runtime, if any
  gcap_session_t* session;
  float *x, *y;                   // of the session
  gcap_io_binding_t* io_binding;  // of the session
  int device;
  int calls;              // on the stack
  bool has_stale_graphs;  // of a session that ended: nobody may replay them
} fuzz_runtime_t;

// Decisions of the host on which the work of keys depends. Graphs have guards that look at them.
typedef struct fuzz_decisions {
  int32_t length;
  const void* table;
  char flags[6];
  int64_t answer;
  bool is_silent;  // the function of a guard gives no answer
  bool drifts;     // the function changes the length
} fuzz_decisions_t;

typedef struct fuzz_world {
  fuzz_input_t input;
  fuzz_mode_t mode;
  bool has_moves;  // half of the steps are about buffers that move
  bool has_keys;   // likewise, about runs by key
  int depth, steps;
  int in_sink;  // in the log sink: it ends nothing whose call may have logged, and begins no run that it cannot end
  bool leaked;  // an end said so, or a call that ends something was made to fail: leaks are no finding any more
  size_t live_before;                  // the simulator's handles
  cudaStream_t raw[FUZZ_RAW_STREAMS];  // the user's: device 0, device 0 and blocking, device 1
  fuzz_stream_t streams[FUZZ_STREAMS];
  gcap_stream_pool_t* pool;
  bool pool_ends;  // is being destroyed: not to be used from a callback
  gcap_notification_t* notifications[FUZZ_NOTIFICATIONS];
  int notification_streams[FUZZ_NOTIFICATIONS];
  fuzz_allocator_t allocators[FUZZ_ALLOCATORS];
  fuzz_scratch_t scratches[FUZZ_SCRATCHES];
  fuzz_block_t blocks[FUZZ_BLOCKS];
  fuzz_reservation_t reservations[FUZZ_RESERVATIONS];
  gcap_capture_t* scope;            // that the target began; a manager's is the manager's to end
  int scope_stream, scope_in_sink;  // its origin, and `in_sink` when it began
  fuzz_graph_t graphs[FUZZ_GRAPHS];
  gcap_graph_manager_t* managers[FUZZ_MANAGERS];
  char* places;  // where buffers that move lie: device memory of the user's, FUZZ_PLACES side by side
  fuzz_decisions_t decisions;
  unsigned char images[FUZZ_PLACES][FUZZ_PLACE_BYTES / 4];  // what the places have, as far as runs by key write to them
  bool is_unsettled;                                        // but that is not known now
  bool in_keyed;                                            // in a step of the runs by key, which are one at a time
  gcap_graph_manager_t* running;                            // whose run that is: a callback ends no run of it
  fuzz_runtime_t runtimes[FUZZ_RUNTIMES];
  char refusal[256];  // the last message
  int released;       // what was retained or deferred and is not released yet: 0 at the end
} fuzz_world_t;

extern fuzz_world_t fuzz_world;

static inline unsigned fuzz_draw(unsigned bound) { return fuzz_below(&fuzz_world.input, bound); }

// --- Outcomes -------------------------------------------------------------------------------------------------------

// A text is one line, and not empty.
void fuzz_check_line(const char* text);
// Consumes a status: whether it is a success. A failure has a message, and is none of gcap's own mistakes.
bool fuzz_ok(gcap_status_t status);
// Consumes the status of an end: whether the object is gone.
bool fuzz_gone(gcap_status_t status);
// A CUDA call of the target itself: whether it succeeded. Its error is not left behind.
bool fuzz_cuda(cudaError_t error);

// --- Knowledge ------------------------------------------------------------------------------------------------------

// The capture in which a stream is: 0 for none, ~0 for one that was broken, or if the runtime does not say.
unsigned long long fuzz_capture_of(cudaStream_t stream);
// Whether the thread has any capture open, with gcap or without.
bool fuzz_captures(void);
// A slot of FUZZ_STREAMS that has a stream, by a draw; -1: the drawn one is empty.
int fuzz_draw_stream(void);
// Writes all of a block on its stream, if a correct program may do so now.
void fuzz_write(const fuzz_block_t* block);
// Waits for a stream, whatever was made to fail; false if it is being captured.
bool fuzz_wait(cudaStream_t stream);
// Waits for all devices; false if a thread captures.
bool fuzz_wait_for_devices(void);
// A stream is gone: its blocks, notifications and graphs know it no more.
void fuzz_forget_stream(int stream);

// --- Steps ----------------------------------------------------------------------------------------------------------

// Takes up to `count` steps, drawn from the input.
void fuzz_steps(unsigned count);
// The same in a callback, if it is not too deep in others.
void fuzz_reenter(void);

void fuzz_stream_step(void);
void fuzz_timeline_step(void);
void fuzz_pool_step(void);
void fuzz_capture_step(void);
void fuzz_users_capture_step(void);
void fuzz_graph_step(void);
void fuzz_allocator_step(void);
void fuzz_scratch_step(void);
void fuzz_block_step(void);
void fuzz_reservation_step(void);
void fuzz_manager_step(void);
void fuzz_moving_step(void);
void fuzz_keyed_step(void);
void fuzz_runtime_step(void);
void fuzz_session_step(void);

// Before the first step: what the steps with keys read and know.
void fuzz_begin_keyed(void);

// Ends all of a kind. Every refusal was mended before, so none is expected any more.
void fuzz_end_manager_runs(void);
void fuzz_end_runtime_runs(void);
void fuzz_end_captures(void);
void fuzz_end_runtimes(void);
void fuzz_end_managers(void);
void fuzz_end_graphs(void);
void fuzz_end_scratches(void);
void fuzz_end_allocators(void);
void fuzz_end_streams(void);

// Takes further steps in a callback, and ends the scope that they left open.
void fuzz_reenter_and_end_scope(void);
// Callbacks that more than one kind of step hands out. Each counts in `released`.
void fuzz_release(void* user);
// Key 0 or 1, which is none of those of fuzz_keyed_step, whose work is another.
const gcap_graph_key_t* fuzz_key(unsigned which);
// States a drawn guard, which may be none.
void fuzz_state_guard(void);
// Allocates scratch of a runtime, uses it and, unless it is forgotten in a run, frees it.
gcap_status_t fuzz_use_scratch(const gcap_run_resources_t* resources, bool in_run);
// What a manager says of an id agrees.
void fuzz_check_graph(gcap_graph_manager_t* manager, int id);
size_t fuzz_retained_bytes(void* user);

#endif  // GCAP_TEST_FUZZ_API_WORLD_H_
