// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// runtime_ops.h: the table of functions behind a runtime, for a provider that has streams, or graphs, of its own.
// gcap's own runtime (gcap_runtime_create) fills in the same table.
#ifndef GCAP_RUNTIME_OPS_H_
#define GCAP_RUNTIME_OPS_H_

#include "gcap/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// Runtime ops: one implementation. Start from zeros, set struct_size, fill in get_resources and synchronize. The
// function gcap_runtime_<member> of runtime.h specifies each member; a member that is absent has the default that its
// comment here says.
// Thread:   members may be called from several threads at once. If the runtime supports no concurrent runs, one thread
//           at a time runs.
// Capture:  end_run, get_resources and what kernels call are called inside the capture that begin_run began.
// Lifetime: gcap_runtime_create_from copies the table. `self` stays valid until `destroy`, or without one until
//           gcap_runtime_destroy has returned.
// Versions: struct_size says where the table ends. What a shorter table lacks is absent. Of a longer one, the members
//           that this gcap knows are used, and the others are not looked at.
typedef struct gcap_runtime_ops {
  size_t struct_size;  // sizeof(gcap_runtime_ops_t) as the implementer was compiled
  void* self;          // passed to every member

  // Required. get_resources fills in `stream`, `scratch` and `allocator`; the rest is zero on entry, and cuda_stream is
  // that of `stream` if it stays so.
  gcap_status_t (*get_resources)(void* self, gcap_run_resources_t* out_resources);
  gcap_status_t (*synchronize)(void* self);

  // Optional; both or neither. Absent: a run needs no begin, and its end only synchronizes. The run and its buffers are
  // of the library's layout. `out_kind` is never NULL if the run has buffers, nor is `out_addresses` if there is one.
  // run->stream is GCAP_RUN_OWN_STREAM in both. end_run and replay set run->result, if it is not NULL; its struct_size
  // says what may be written.
  gcap_status_t (*begin_run)(void* self, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind, void** out_addresses);
  gcap_status_t (*end_run)(void* self, const gcap_run_t* run, gcap_status_t run_status);

  // Optional: graphs. A runtime that says that it captures, but lacks one of the next two or begin_run, runs without
  // capture: each run begins with GCAP_GRAPH_ID_NONE, and one warning names the member.
  bool (*is_captured)(void* self, int id);
  // `out_replayed` is never NULL, and false on entry. run->stream may be any stream of the device: the launch then
  // comes after the work of the thread's stream, and before its next work.
  gcap_status_t (*replay)(void* self, const gcap_run_t* run, bool* out_replayed);
  // Default: false.
  bool (*is_graph_capture_enabled)(const void* self);
  // Default: refused.
  gcap_status_t (*release)(void* self, int id);
  // Default: no failure is known.
  gcap_status_t (*explain)(void* self, int id, gcap_graph_question_t question);
  // begin_run and replay follow gcap_run_t.buffers; begin_run signs, and replay checks, gcap_run_t.bindings. Default:
  // a run with buffers, or with bindings, is refused before the table is called.
  bool moves_buffers;
  bool checks_bindings;

  // Optional. Default: false. Called once, by gcap_runtime_create_from.
  bool (*is_concurrent_run_supported)(const void* self);

  // Optional: copies; the first two or neither. Default: nothing is copied. `copies` is never NULL, `count` not 0.
  bool (*can_copy)(const void* self, gcap_memory_t src, gcap_memory_t dst);
  gcap_status_t (*copy_tensors)(void* self, const gcap_copy_t* copies, size_t count);
  // Default: true.
  bool (*copies_in_default_stream)(const void* self);

  // Optional. Default: refused, but for device memory, whose allocator is that of get_resources.
  gcap_status_t (*create_stream)(void* self, gcap_stream_t** out_stream);
  gcap_status_t (*get_allocator)(void* self, gcap_memory_kind_t kind, gcap_allocator_t** out_allocator);

  // Optional: more streams in a run; both or neither. Default: refused.
  gcap_status_t (*fork)(void* self, size_t count, gcap_stream_t** out_streams);
  gcap_status_t (*join)(void* self);

  // Optional. Ends `self`, and answers as every end in gcap.h: NULL, `self` is gone; LEAKED, `self` is gone but a part
  // of it is kept; any other code, `self` is whole and `destroy` is called again later. Default: nothing ends.
  gcap_status_t (*destroy)(void* self);

  // begin_run and replay follow gcap_run_t.key, and end_run sets gcap_run_result_t.id. Default: a run with a key is
  // refused before the table is called.
  bool takes_keys;
} gcap_runtime_ops_t;

// Makes a runtime from a table. On failure the table's `destroy` is not called.
//   INVALID_ARGUMENT    `ops` is NULL; a size that is no version's; a missing member; the message names the member
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_runtime_create_from(const gcap_runtime_ops_t* ops,
                                                gcap_runtime_t** out_runtime) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_RUNTIME_OPS_H_
