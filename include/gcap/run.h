// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run.h: one run of work, as a struct: what is run, on which stream and buffers, and what became of it. A graph manager
// (graph.h) and a runtime (runtime.h) take the same struct.
#ifndef GCAP_RUN_H_
#define GCAP_RUN_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/api.h"
#include "gcap/graph_values.h"
#include "gcap/graph_verify.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// An annotation id names one captured graph: one model, one set of shapes and addresses (ONNX Runtime's
// gpu_graph_id). Ids are >= 0. GCAP_GRAPH_ID_NONE means: never capture this run.
#define GCAP_GRAPH_ID_NONE (-1)

// A key names one captured graph as an id does, with bytes of the caller's own: all that decides what the work records,
// such as a struct of a batch size, a rank and a phase. Keys are compared byte by byte, so a struct whose padding or
// unused bytes are not cleared is another key each time: clear it with memset before its fields are set. A graph
// manager gives each key an id below GCAP_GRAPH_ID_NONE, which gcap_run_result_t.id and gcap_graph_manager_find give.
// Every function that takes an id takes that one too, but a run is begun by its key. The key is forgotten with its id,
// and its next run has another id. Of a runtime whose threads have managers of their own, the id is that of the calling
// thread.
#define GCAP_GRAPH_KEY_MAX_BYTES 256
#define GCAP_GRAPH_NAME_BYTES 64

typedef struct gcap_graph_key {
  const void* bytes;
  size_t size;  // 1 to GCAP_GRAPH_KEY_MAX_BYTES
  // Not compared. For messages and gcap_graph_info_t.name, which show its first GCAP_GRAPH_NAME_BYTES - 1 bytes. The
  // name of the first run counts, until the key is forgotten. May be NULL.
  const char* name;
} gcap_graph_key_t;

// --- What the work gets ---------------------------------------------------------------------------------------------

// What the work of a run may use. Fields are appended only, and struct_size says which there are
// (gcap_run_resources_init).
// Thread:   a plain value, for the thread that runs the work. What it names has the rules of its own header.
// Capture:  in a captured run `cuda_stream` is capturing, and so is the thread: the work issues, and waits for nothing.
// Lifetime: borrowed until the work returns, `addresses` for longer, as said there.
typedef struct gcap_run_resources {
  size_t struct_size;
  cudaStream_t cuda_stream;  // the work goes here
  // Where each buffer of gcap_run_t.buffers is in this run: use these addresses, not those of the struct. NULL: the run
  // has no buffers. In a captured run the array lives as long as the graph, so a host function may read the array: it
  // finds the addresses of the capture, also after a bind. In an eager run the array lives until the run returns, and
  // in a rehearsal, which executes nothing, until the work returns.
  void* const* addresses;
  size_t num_addresses;
  // Of a runtime; NULL in a run of a plain graph manager. The stream is that of `cuda_stream`. Scratch is for memory of
  // a run and of a sequence (scratch.h), the allocator for memory that is allocated seldom, such as weights.
  struct gcap_stream* stream;
  struct gcap_scratch* scratch;
  struct gcap_allocator* allocator;
  // What each value of gcap_run_t.buffers is in this run, aligned as any type: use these, not those of the struct. Of
  // one that is `in_memory` the address on the device. NULL: the run has no values. Array and values live as long as
  // `addresses` does, and a host function of a captured graph finds the values of the capture, also after replays with
  // others.
  const void* const* values;
  size_t num_values;
} gcap_run_resources_t;

// Resources of nothing.
static inline void gcap_run_resources_init(gcap_run_resources_t* resources) {
  const gcap_run_resources_t nothing = {sizeof(*resources), NULL, NULL, 0, NULL, NULL, NULL, NULL, 0};
  *resources = nothing;
}

// Issues the work of a run to resources->cuda_stream. Returns NULL if the work was issued. GCAP_CANCELLED: the work
// stops on purpose. A cancelled run is not captured and not issued again, and its id does not cool down.
typedef gcap_status_t (*gcap_work_t)(void* user, const gcap_run_resources_t* resources);

// --- Buffers and bindings -------------------------------------------------------------------------------------------

// A buffer that the work reads or writes, and that may be elsewhere at each replay. A graph is moved only while its
// buffers lie to one another as in its capture: those that lie otherwise are another graph of the id (graph_buffers.h).
// Thread, Capture and Lifetime as of gcap_run_t.
typedef struct gcap_graph_buffer {
  const char* name;  // for messages; may be NULL
  void* address;     // of this run
  size_t bytes;
  // Every address that is bound is a multiple of this power of two, at most 2 MiB. 0: that of `address`, at most 256.
  size_t alignment;
} gcap_graph_buffer_t;

// What the stand-ins of a rehearsal are (graph_buffers.h).
typedef enum gcap_graph_stand_ins {
  // Address space with no memory behind. If the rehearsal fails, as a cudaMemcpyAsync to such an address does, the next
  // rehearsal uses memory.
  GCAP_GRAPH_STAND_INS_ADDRESSES = 0,
  // Device memory of the buffers' sizes, for the time of the rehearsal: for work that reads the attributes of pointers.
  GCAP_GRAPH_STAND_INS_MEMORY,
} gcap_graph_stand_ins_t;

// What may be another one at each replay: buffers, and values. gcap_run_resources_t.addresses comes in the order of the
// buffers. Thread, Capture and Lifetime as of gcap_run_t.
typedef struct gcap_graph_buffers {
  size_t struct_size;  // set by gcap_graph_buffers_init
  const gcap_graph_buffer_t* items;
  size_t count;
  gcap_graph_stand_ins_t stand_ins;  // default ADDRESSES
  // [count]; NULL, the default: false for each. True: this work may have no pointer into the buffer at all. A graph
  // without a pointer into a buffer for which this is false cannot be moved, since the pointer may come from memory.
  const bool* may_be_unused;
  // The work's host functions do the same wherever the buffers are: neither their data nor what the data lead to
  // depends on an address of a buffer, or on a value. Default false: a graph with a host function cannot be moved.
  bool host_functions_may_stay;
  // Scalars that the work reads on the host (graph_values.h), always in the same order. Default NULL: none. A runtime
  // that is not gcap's own refuses them.
  const gcap_graph_value_t* values;
  size_t num_values;
} gcap_graph_buffers_t;

// Fills in the defaults: no buffers, and no values.
static inline void gcap_graph_buffers_init(gcap_graph_buffers_t* buffers) {
  const gcap_graph_buffers_t defaults = {
      sizeof(*buffers), NULL, 0, GCAP_GRAPH_STAND_INS_ADDRESSES, NULL, false, NULL, 0};
  *buffers = defaults;
}

// One tensor that a run is bound to. The address and the shape are built into the graph.
// Thread, Capture and Lifetime as of gcap_run_t.
typedef struct gcap_graph_binding {
  const char* name;  // for messages, not compared; may be NULL
  const void* address;
  int rank;
  const int64_t* shape;  // [rank]; NULL for rank 0
} gcap_graph_binding_t;

// A tap that a run reads (graph_taps.h).
// Thread, Capture and Lifetime as of gcap_run_t; the run writes `data` and `tapped_bytes` alone.
typedef struct gcap_graph_tap {
  const char* label;  // of the work's
  void* data;         // memory of the host. NULL: the size alone is wanted
  size_t bytes;       // of `data`. A tap of more bytes is cut
  // That the tap has; 0: the run had no such tap, or failed. A run that is verified gets those taps of its work that
  // the graph has too, also where it fails with REPLAY_DIFFERS.
  size_t tapped_bytes;
} gcap_graph_tap_t;

// --- What became of a run -------------------------------------------------------------------------------------------

typedef enum gcap_run_outcome {
  GCAP_RUN_NOT_DONE = 0,  // refused, cancelled, or failed
  GCAP_RUN_REPLAYED,      // the graph of the id was launched
  GCAP_RUN_CAPTURED,      // the work was captured, and its graph launched
  GCAP_RUN_EAGER,         // the work was issued to the stream: see gcap_run_result_t.why_eager
  GCAP_RUN_RECORDED,      // of a run with capture_only: the id has a graph, and nothing was launched
} gcap_run_outcome_t;

// Why a run was eager.
typedef enum gcap_why_eager {
  GCAP_EAGER_NOT = 0,         // the run was not
  GCAP_EAGER_NO_ID,           // its id is GCAP_GRAPH_ID_NONE
  GCAP_EAGER_OFF,             // the runtime does not capture (enable_cuda_graph)
  GCAP_EAGER_WARMING,         // the id warms up: at first, or since it was forgotten
  GCAP_EAGER_COOLING,         // an earlier capture of the id failed
  GCAP_EAGER_NOT_MOVABLE,     // the id's graph cannot be moved, or not to the run's buffers: GCAP_GRAPH_WHY_EAGER
  GCAP_EAGER_REFUSED,         // the driver did not begin a capture
  GCAP_EAGER_CAPTURE_FAILED,  // this run's capture failed, and its work was issued once more
  GCAP_EAGER_GUARD,           // the function of a guard gave no answer: GCAP_GRAPH_WHY_OTHER_VARIANT
  // This run's capture failed at a step that is a hole in the next one (gcap_graph_hole_t.break_where_refused), and its
  // work was issued once more. The next run may be captured. Of a run that is NOT_DONE: begin it again.
  GCAP_EAGER_STEP_REFUSED,
} gcap_why_eager_t;

// What a run answers besides its status.
// Thread:   plain data, which the call of the run writes before it returns.
// Capture:  as of gcap_run_t.
// Lifetime: the caller's, until the call returns.
typedef struct gcap_run_result {
  size_t struct_size;  // set by gcap_run_result_init
  gcap_run_outcome_t outcome;
  gcap_why_eager_t why_eager;
  // The device was given work of the run, or may have been: a caller who runs it again does it twice. False after a
  // failure that came before that.
  bool was_issued;
  // The id of the run, also that of its key. GCAP_GRAPH_ID_NONE: the run has neither, its key was never run, or the run
  // was refused.
  int id;
} gcap_run_result_t;

// Says how large the struct is. Every run sets the rest.
static inline void gcap_run_result_init(gcap_run_result_t* result) {
  const gcap_run_result_t nothing = {sizeof(*result), GCAP_RUN_NOT_DONE, GCAP_EAGER_NOT, false, GCAP_GRAPH_ID_NONE};
  *result = nothing;
}

GCAP_API const char* gcap_why_eager_name(gcap_why_eager_t why);  // "WARMING"

// --- The run --------------------------------------------------------------------------------------------------------

// The default of gcap_run_t.stream. No handle of CUDA's has this value.
#define GCAP_RUN_OWN_STREAM ((cudaStream_t)(uintptr_t)-1)

// One run.
// Thread:   plain data. One thread at a time writes the struct; the call that takes it writes `*result` alone.
// Capture:  the functions that take a run say what a capturing thread may do (graph.h, runtime.h).
// Lifetime: the struct, and what it points to, is read before the call returns. `user` and what the work uses are the
//           caller's affair.
typedef struct gcap_run {
  size_t struct_size;  // set by gcap_run_init
  int id;              // default GCAP_GRAPH_ID_NONE: never captured
  // Where the run goes. Default GCAP_RUN_OWN_STREAM: a replay goes to the stream that captured the graph, a run of a
  // runtime to the thread's stream. A graph manager's run has to name a stream. A replay, also a runtime's, may go to
  // any other stream of the device; 0 is the legacy default stream.
  cudaStream_t stream;
  gcap_work_t work;  // not called by begin, end and replay, where it may be NULL
  void* user;        // passed to `work`
  // Buffers that may be elsewhere at each replay (graph_buffers.h), and values that may be others. Default NULL: the
  // work uses fixed addresses.
  const gcap_graph_buffers_t* buffers;
  // The tensors that the run is bound to: inputs and outputs, always in the same order. A capture keeps a copy; a
  // replay with bindings is refused unless the graph was captured with equal ones. Default NULL: they are not compared.
  const gcap_graph_binding_t* bindings;
  size_t num_bindings;
  bool synchronize;           // waits until the results are complete. Default false
  gcap_run_result_t* result;  // what became of the run. Default NULL: nobody asks
  // Names the graph instead of `id`, which is then GCAP_GRAPH_ID_NONE. A capture copies it. Default NULL: `id` counts.
  const gcap_graph_key_t* key;
  // For work that must not be executed now, such as a step that writes to a cache: the id gets a graph, and the device
  // does nothing of the work. If the id has no graph, the run is a capture, be the id warm or not, and the graph is
  // uploaded and not launched. So what a capture forbids has to be there before: libraries, kernels that load when they
  // are first launched, scratch; an eager run of other work of the same kind finds all that. If the capture fails, so
  // does the run: it is never eager. Replays are refused. Default false.
  bool capture_only;
  // The graph that this run captures is not evicted for the manager's budget, which counts it. It stays until it is
  // released, or captured again by a run without this. If all graphs are pinned, the manager keeps more than the
  // budget. Default false.
  bool pinned;
  // Compares replays with the work (graph_verify.h). Default NULL: no replay is compared. Refused by functions without
  // work: a begin, and a replay alone.
  const gcap_graph_verify_t* verify;
  // Reads taps that the work makes (graph_taps.h), to the host: each with a label gets what the run had there. The run
  // then waits, as with `synchronize`. A failure to read is the run's: gcap_run_result_t.was_issued is true. Refused by
  // a begin, which does not end the run, and by a runtime that is not gcap's own. Default NULL: none is read.
  gcap_graph_tap_t* taps;
  size_t num_taps;
} gcap_run_t;

// Fills in the defaults.
static inline void gcap_run_init(gcap_run_t* run) {
  const gcap_run_t defaults = {sizeof(*run),
                               GCAP_GRAPH_ID_NONE,
                               GCAP_RUN_OWN_STREAM,
                               NULL,
                               NULL,
                               NULL,
                               NULL,
                               0,
                               false,
                               NULL,
                               NULL,
                               false,
                               false,
                               NULL,
                               NULL,
                               0};
  *run = defaults;
}

// How a run that was begun is to be executed.
typedef enum gcap_graph_run_kind {
  GCAP_GRAPH_RUN_EAGER = 0,  // issue the work; it runs
  GCAP_GRAPH_RUN_CAPTURE,    // issue the work; it is recorded, and runs at the run's end
  // Of a run with buffers: issue the work; it is recorded and never runs. Then begin again, on the same buffers, until
  // it is no rehearsal. On others the rehearsals may begin anew.
  GCAP_GRAPH_RUN_REHEARSAL,
} gcap_graph_run_kind_t;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_RUN_H_
