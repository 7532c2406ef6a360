// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// From callbacks to lines of calls.
//
// A call that will be written is noted as it begins, on a small stack of its thread, and written as it ends. Nothing is
// taken for granted of their order: the callbacks of a thread may be disabled, by another thread, between a call's
// beginning and its end, and enabled between those of another. So an end looks for its beginning by CUPTI's number of
// the call, and takes away what is above it, whose ends were not seen; beginnings of an earlier time of the switch are
// taken away too, and those that stand no higher on the thread's C stack than a call that begins: it is not within
// them. An end without a beginning is written only if the call failed, or made nodes.
//
// A framework asks before each of its launches whether the stream captures. Where the answer is that all is well, the
// line waits for the next one, and the thread makes one write for both. What a program does again and again beside its
// captures is counted (repeats.c). Locking: none.
#include "doctor/record/calls.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/record/copies.h"
#include "doctor/record/driver_calls.h"
#include "doctor/record/driver_log.h"
#include "doctor/record/graphs.h"
#include "doctor/record/handles.h"
#include "doctor/record/intern.h"
#include "doctor/record/memory_calls.h"
#include "doctor/record/pinned.h"
#include "doctor/record/raised.h"
#include "doctor/record/ranges.h"
#include "doctor/record/repeats.h"
#include "doctor/record/stacks.h"
#include "doctor/record/switch.h"
#include "doctor/record/writer.h"

// CUresult
enum {
  kInvalidValue = 1,
  kNotReady = 600,
  kWrongThread = 908,  // a capture is ended by the thread that began it: it goes on
};

static _Atomic uint64_t last_number;

uint64_t gcap_doctor_call_new_number(void) {
  return atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
}

// --- Arguments -------------------------------------------------------------------------------------------------------

static const void* argument(const gcap_doctor_cupti_call_t* data, uint32_t callback,
                            gcap_doctor_driver_argument_t kind) {
  const uint8_t at = gcap_doctor_driver_call(callback)->at[kind];
  return at != 0 && data->arguments != NULL ? (const char*)data->arguments + at - 1 : NULL;
}

static bool pointer_argument(const gcap_doctor_cupti_call_t* data, uint32_t callback,
                             gcap_doctor_driver_argument_t kind, void** out_pointer) {
  const void* at = argument(data, callback, kind);
  *out_pointer = NULL;
  if (at != NULL) memcpy(out_pointer, at, sizeof(*out_pointer));
  return at != NULL;
}

// What an argument points to; NULL if it points nowhere.
static void* output(const gcap_doctor_cupti_call_t* data, uint32_t callback, gcap_doctor_driver_argument_t kind) {
  void *place, *value = NULL;
  pointer_argument(data, callback, kind, &place);
  if (place != NULL) memcpy(&value, place, sizeof(value));
  return value;
}

static int32_t mode_of(const gcap_doctor_cupti_call_t* data, uint32_t callback) {
  int32_t mode = -1;
  void* place;
  const void* at = argument(data, callback, GCAP_DOCTOR_ARGUMENT_MODE);
  if (at == NULL && pointer_argument(data, callback, GCAP_DOCTOR_ARGUMENT_MODE_AT, &place)) at = place;
  if (at != NULL) memcpy(&mode, at, sizeof(mode));
  return mode;
}

static uint32_t stream_of(const gcap_doctor_thread_t* thread, const gcap_doctor_cupti_call_t* data, uint32_t callback) {
  void* handle;
  if (!pointer_argument(data, callback, GCAP_DOCTOR_ARGUMENT_STREAM, &handle)) {
    if (!pointer_argument(data, callback, GCAP_DOCTOR_ARGUMENT_LAUNCH_CONFIG, &handle) || handle == NULL) return 0;
    memcpy(&handle, (const char*)handle + GCAP_DOCTOR_CUDA_LAUNCH_CONFIG_STREAM, sizeof(handle));
  }
  return gcap_doctor_handle_stream(thread, handle, data->context_id,
                                   gcap_doctor_driver_call_is_per_thread(data->function));
}

// What a call is given; what it gives is known as it ends.
static void read_inputs(const gcap_doctor_thread_t* thread, const gcap_doctor_cupti_call_t* data,
                        gcap_doctor_open_call_t* call) {
  void* handle;
  call->stream = stream_of(thread, data, call->callback);
  call->mode = mode_of(data, call->callback);
  if (pointer_argument(data, call->callback, GCAP_DOCTOR_ARGUMENT_EVENT, &handle))
    call->event = gcap_doctor_handle_event(handle);
  if (pointer_argument(data, call->callback, GCAP_DOCTOR_ARGUMENT_GRAPH, &handle) && handle != NULL) {
    call->graph = gcap_doctor_handle_graph(handle);
  }
  if (pointer_argument(data, call->callback, GCAP_DOCTOR_ARGUMENT_EXEC, &handle)) call->exec = gcap_doctor_exec(handle);
}

static void read_outputs(const gcap_doctor_cupti_call_t* data, gcap_doctor_open_call_t* call) {
  void* event = output(data, call->callback, GCAP_DOCTOR_ARGUMENT_EVENT_OUT);
  void* graph = output(data, call->callback, GCAP_DOCTOR_ARGUMENT_GRAPH_OUT);
  void* exec = output(data, call->callback, GCAP_DOCTOR_ARGUMENT_EXEC_OUT);
  if (event != NULL) {
    gcap_doctor_handle_event_gone(event);  // another one had this address
    call->event = gcap_doctor_handle_event(event);
  }
  if (graph != NULL && call->graph == 0) call->graph = gcap_doctor_handle_graph(graph);
  if (exec != NULL) call->exec = gcap_doctor_exec(exec);
}

// --- Lines -----------------------------------------------------------------------------------------------------------

static const char* name_of_mode(int32_t mode) {
  static const char* const names[] = {"global", "thread_local", "relaxed"};
  return mode >= 0 && mode < 3 ? names[mode] : NULL;
}

// A number that a pointer among the arguments points to; -1 if there is none.
static int32_t number_at(const gcap_doctor_cupti_call_t* data, uint32_t callback, gcap_doctor_driver_argument_t kind) {
  void* place;
  int32_t number = -1;
  if (pointer_argument(data, callback, kind, &place) && place != NULL) memcpy(&number, place, sizeof(number));
  return number;
}

static const char* name_of_status(const gcap_doctor_cupti_call_t* data, uint32_t callback) {
  static const char* const names[] = {"none", "active", "invalidated"};
  const int32_t status = number_at(data, callback, GCAP_DOCTOR_ARGUMENT_STATUS_OUT);
  return status >= 0 && status < 3 ? names[status] : NULL;
}

// In the order of CUgraphExecUpdateResult; an update that went well has no name.
static const char* name_of_update(const gcap_doctor_cupti_call_t* data, uint32_t callback) {
  static const char* const names[] = {NULL,         "error",         "topology",         "node_type", "function",
                                      "parameters", "not_supported", "function_changed", "attributes"};
  const int32_t update = number_at(data, callback, GCAP_DOCTOR_ARGUMENT_UPDATE_OUT);
  return update >= 0 && update < (int32_t)(sizeof(names) / sizeof(names[0])) ? names[update] : NULL;
}

void gcap_doctor_call_write_name(gcap_doctor_line_t* out, const char* function) {
  char name[128];
  size_t length = gcap_doctor_driver_call_name_length(function);
  if (length >= sizeof(name)) length = sizeof(name) - 1;
  memcpy(name, function, length);
  name[length] = '\0';
  gcap_doctor_line_field(out, "function", name);
}

static void write_id(gcap_doctor_line_t* out, const char* key, uint32_t id) {
  if (id != 0) gcap_doctor_line_number(out, key, id);
}

static void write_text(gcap_doctor_line_t* out, const char* key, const char* text) {
  if (text != NULL) gcap_doctor_line_field(out, key, text);
}

// What a call has in common with others of its place. Zeroed first: its bytes are hashed.
typedef struct common {
  const char *mode, *status, *update, *copy, *host;  // NULL for none; each text has one address
  uint32_t thread, callback, depth, stack, range, stream;
  int32_t result, node_type;  // kNoNode for a call that made none, or several
} common_t;

enum {
  kNoNode = -1,
  kMostWaiting = 4096,  // bytes
};

static void write_common(gcap_doctor_line_t* out, const common_t* common, const gcap_doctor_cupti_call_t* data) {
  gcap_doctor_line_number(out, "thread", common->thread);
  gcap_doctor_call_write_name(out, data->function);
  gcap_doctor_line_number(out, "result", (uint32_t)common->result);
  write_id(out, "depth", common->depth);
  write_id(out, "stack", common->stack);
  write_id(out, "range", common->range);
  write_id(out, "stream", common->stream);
  write_text(out, "mode", common->mode);
  write_text(out, "status", common->status);
  write_text(out, "update", common->update);
  write_text(out, "kernel", data->symbol);
  write_text(out, "copy", common->copy);
  write_text(out, "host", common->host);
  if (common->node_type != kNoNode) gcap_doctor_graphs_write_type(out, common->node_type);
}

// The id of the line that has these in common; 0 without room for it. What has a stack has the rest in common with what
// is the same but for the stack.
static uint32_t like_of(gcap_doctor_thread_t* thread, const common_t* common, const gcap_doctor_cupti_call_t* data) {
  static gcap_doctor_intern_t likes = {.lock = PTHREAD_MUTEX_INITIALIZER};
  uint64_t key = gcap_doctor_hash(1, common, sizeof(*common));
  key = gcap_doctor_hash(key, data->function, strlen(data->function));
  if (data->symbol != NULL) key = gcap_doctor_hash(key, data->symbol, strlen(data->symbol));
  uint32_t id = gcap_doctor_intern_find(&likes, key, &thread->definitions, &thread->defined);
  if (id != 0) return id;
  gcap_doctor_line_t fields = {0};
  if (common->stack != 0) {
    common_t rest;
    memcpy(&rest, common, sizeof(rest));  // with what is between its members
    rest.stack = 0;
    const uint32_t like = like_of(thread, &rest, data);
    if (like == 0) return 0;
    gcap_doctor_line_number(&fields, "like", like);
    gcap_doctor_line_number(&fields, "stack", common->stack);
  } else {
    write_common(&fields, common, data);
  }
  id = gcap_doctor_intern_add(&likes, key, "like", &fields, &thread->definitions, &thread->defined);
  gcap_doctor_line_free(&fields);
  return id;
}

static void read_common(gcap_doctor_thread_t* thread, const gcap_doctor_open_call_t* call,
                        const gcap_doctor_cupti_call_t* data, int result, const gcap_doctor_copy_t* copy,
                        common_t* out) {
  memset(out, 0, sizeof(*out));
  out->mode = name_of_mode(call->mode);
  out->status = result == 0 ? name_of_status(data, call->callback) : NULL;
  out->update = result != 0 ? name_of_update(data, call->callback) : NULL;
  out->copy = copy->kind;
  out->host = gcap_doctor_copy_host(thread, copy);
  out->thread = thread->id;
  out->callback = call->callback;
  out->depth = thread->depth;
  out->stream = call->stream;
  out->result = result;
  out->node_type = kNoNode;
}

// The node that a call made, and how far back the node is from which an edge comes to it; 0 for none.
typedef struct made {
  gcap_doctor_node_run_t node;
  uint64_t back;
} made_t;

static void write_line(gcap_doctor_thread_t* thread, const gcap_doctor_open_call_t* call,
                       const gcap_doctor_cupti_call_t* data, const common_t* common, uint32_t like,
                       const gcap_doctor_copy_t* copy, uint64_t end_ns, const made_t* made) {
  gcap_doctor_line_t* out = &thread->out;
  gcap_doctor_line_begin(out, "call");
  gcap_doctor_line_number(out, "n", call->number);
  gcap_doctor_line_number(out, "t", call->start_ns);
  gcap_doctor_line_number(out, "ns", end_ns - call->start_ns);
  if (like != 0) {
    gcap_doctor_line_number(out, "like", like);
  } else {
    write_common(out, common, data);
  }
  write_id(out, "event", call->event);
  write_id(out, "graph", call->graph);
  write_id(out, "exec", call->exec);
  if (copy->has_bytes) gcap_doctor_line_number(out, "bytes", copy->bytes);
  if (common->node_type != kNoNode) {
    gcap_doctor_line_number(out, "in", made->node.graph);
    gcap_doctor_line_hex(out, "node", made->node.id);
    if (made->back != 0) gcap_doctor_line_number(out, "back", made->back);
  }
  gcap_doctor_line_end(out);
}

// Whether calls like this one may be counted: the call did not fail, made nothing, does not change a capture, as an
// event does that is recorded on a stream or waited for, and does not tell that one is broken. Lines of an audit name
// calls by their numbers.
static bool is_countable(const gcap_doctor_open_call_t* call, const common_t* common) {
  if (common->result != 0 && common->result != kNotReady) return false;
  if (common->node_type != kNoNode || call->num_nodes != 0 || call->graph != 0 || call->exec != 0) return false;
  if (call->is_named || (call->event != 0 && call->stream != 0)) return false;
  if (common->status != NULL && strcmp(common->status, "invalidated") == 0) return false;
  const bool is_audited =
      gcap_doctor_switch_audits() && gcap_doctor_memory_call(call->callback)->does != GCAP_DOCTOR_MEMORY_DOES_NOTHING;
  return gcap_doctor_driver_call(call->callback)->role == GCAP_DOCTOR_ROLE_NONE && !is_audited;
}

// The line of the call, or of what it ends.
static void write_or_count(gcap_doctor_thread_t* thread, const gcap_doctor_open_call_t* call,
                           const gcap_doctor_cupti_call_t* data, const common_t* common, const gcap_doctor_copy_t* copy,
                           uint64_t end_ns, const made_t* made) {
  const bool only_waits = thread->out.size == thread->can_wait;
  const uint32_t like = like_of(thread, common, data);
  const gcap_doctor_repeat_t repeat = {.like = like,
                                       .event = call->event,
                                       .bytes = copy->has_bytes ? copy->bytes : UINT64_MAX,
                                       .is_answer = common->status != NULL,
                                       .number = call->number,
                                       .start_ns = call->start_ns,
                                       .end_ns = end_ns};
  const bool is_counted = like != 0 && is_countable(call, common);
  if (is_counted && gcap_doctor_repeats_count(&repeat, &thread->out)) return;
  if (is_counted) {
    gcap_doctor_repeats_write(&repeat, &thread->out);
  } else {
    gcap_doctor_repeats_forget(&thread->out);
  }
  write_line(thread, call, data, common, like, copy, end_ns, made);
  const bool is_good_answer = common->status != NULL && strcmp(common->status, "active") == 0;
  if (only_waits && is_good_answer && common->node_type == kNoNode && thread->out.size < kMostWaiting) {
    thread->can_wait = thread->out.size;
    return;
  }
  gcap_doctor_thread_flush(thread);
  if (is_counted) gcap_doctor_repeats_remember(&repeat, &thread->out);
}

static void write_call(gcap_doctor_thread_t* thread, const gcap_doctor_open_call_t* call,
                       const gcap_doctor_cupti_call_t* data, int result, bool with_stack) {
  const uint64_t end_ns = gcap_doctor_writer_now();
  common_t common;
  gcap_doctor_copy_t copy;
  made_t made;
  gcap_doctor_copy_of_call(gcap_doctor_driver_call(call->callback), data->arguments, &copy);
  read_common(thread, call, data, result, &copy, &common);
  if (with_stack) common.stack = gcap_doctor_stack_record(thread);
  common.range = gcap_doctor_range_record(thread);
  const bool has_node = gcap_doctor_graphs_take_node(thread, call->number, &made.node, &made.back);
  if (has_node) common.node_type = made.node.type;
  write_or_count(thread, call, data, &common, &copy, end_ns, &made);
}

// --- Order -----------------------------------------------------------------------------------------------------------

static void drop_stale(gcap_doctor_thread_t* thread, uint32_t epoch) {
  while (thread->depth != 0 && thread->calls[thread->depth - 1].epoch != epoch &&
         gcap_doctor_driver_call(thread->calls[thread->depth - 1].callback)->role == GCAP_DOCTOR_ROLE_NONE) {
    --thread->depth;
  }
}

gcap_doctor_open_call_t* gcap_doctor_call_open(gcap_doctor_thread_t* thread) {
  drop_stale(thread, gcap_doctor_switch_epoch());
  return thread->depth != 0 ? &thread->calls[thread->depth - 1] : NULL;
}

// A capture takes nodes of calls that began before the callbacks were enabled, too: such a call is written as it ends.
uint64_t gcap_doctor_call_number(gcap_doctor_thread_t* thread) {
  const gcap_doctor_open_call_t* call = gcap_doctor_call_open(thread);
  if (call != NULL) return call->number;
  if (thread->unseen == 0 && gcap_doctor_switch_is_capturing()) thread->unseen = gcap_doctor_call_new_number();
  return thread->unseen;
}

bool gcap_doctor_call_makes_exec(const gcap_doctor_thread_t* thread) {
  for (uint32_t i = 0; i < thread->depth; ++i) {
    if (gcap_doctor_driver_call(thread->calls[i].callback)->role == GCAP_DOCTOR_ROLE_INSTANTIATE) return true;
  }
  return false;
}

// Calls that are written also where no capture is open.
static bool is_written_always(uint8_t role) {
  return role >= GCAP_DOCTOR_ROLE_BEGIN && role <= GCAP_DOCTOR_ROLE_EXCHANGE;
}

void gcap_doctor_call_entered(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data) {
  thread->last_failed = 0;
  const uint8_t role = gcap_doctor_driver_call(callback)->role;
  if (!gcap_doctor_switch_is_capturing() && !is_written_always(role)) return;
  if (gcap_doctor_driver_call_is_noise(callback, data->function)) return;
  const uint32_t epoch = gcap_doctor_switch_epoch();
  const uintptr_t position = (uintptr_t)__builtin_frame_address(0);
  drop_stale(thread, epoch);
  while (thread->depth != 0 && thread->calls[thread->depth - 1].position <= position) --thread->depth;
  if (thread->depth == GCAP_DOCTOR_MAX_DEPTH) return;
  gcap_doctor_open_call_t* call = &thread->calls[thread->depth];
  *call = (gcap_doctor_open_call_t){.callback = callback, .correlation = data->correlation};
  call->epoch = epoch;
  call->position = position;
  call->number = role == GCAP_DOCTOR_ROLE_NONE ? gcap_doctor_call_new_number()
                                               : gcap_doctor_repeats_forget_at_number(&thread->out, &last_number);
  call->start_ns = gcap_doctor_writer_now();
  read_inputs(thread, data, call);
  ++thread->depth;
}

// Takes the call that ends off the stack. False if its beginning was not seen.
static bool take(gcap_doctor_thread_t* thread, uint32_t callback, uint32_t correlation,
                 gcap_doctor_open_call_t* out_call) {
  for (uint32_t i = thread->depth; i > 0; --i) {
    if (thread->calls[i - 1].callback != callback || thread->calls[i - 1].correlation != correlation) continue;
    *out_call = thread->calls[i - 1];
    thread->depth = i - 1;
    return true;
  }
  return false;
}

// --- What calls mean for the recorder itself -------------------------------------------------------------------------

static void note_memory(uint32_t callback, uint8_t role, const gcap_doctor_cupti_call_t* data) {
  void* address = output(data, callback, GCAP_DOCTOR_ARGUMENT_MEMORY_OUT);
  size_t bytes = 0;
  const void* at = argument(data, callback, GCAP_DOCTOR_ARGUMENT_BYTES);
  if (at != NULL) memcpy(&bytes, at, sizeof(bytes));
  if (role == GCAP_DOCTOR_ROLE_HOST_REGISTER || role == GCAP_DOCTOR_ROLE_HOST_FREE ||
      role == GCAP_DOCTOR_ROLE_MANAGED_FREE) {
    pointer_argument(data, callback, GCAP_DOCTOR_ARGUMENT_MEMORY, &address);
  }
  if (role == GCAP_DOCTOR_ROLE_HOST_FREE || role == GCAP_DOCTOR_ROLE_MANAGED_FREE) {
    gcap_doctor_pinned_remove(address);
  } else {
    gcap_doctor_pinned_add(address, bytes);
  }
  if (role == GCAP_DOCTOR_ROLE_MANAGED_ALLOC) gcap_doctor_switch_watch_frees();
}

static void note_stream(uint32_t callback, const gcap_doctor_cupti_call_t* data) {
  uint32_t flags = 0;
  const void* at = argument(data, callback, GCAP_DOCTOR_ARGUMENT_FLAGS);
  if (at != NULL) memcpy(&flags, at, sizeof(flags));
  gcap_doctor_handle_stream_made(output(data, callback, GCAP_DOCTOR_ARGUMENT_STREAM_OUT), flags);
}

// Before the line of the call.
static void note_success(gcap_doctor_thread_t* thread, uint32_t callback, gcap_doctor_open_call_t* call,
                         const gcap_doctor_cupti_call_t* data) {
  const uint8_t role = gcap_doctor_driver_call(callback)->role;
  if (role >= GCAP_DOCTOR_ROLE_HOST_ALLOC && role <= GCAP_DOCTOR_ROLE_MANAGED_FREE) note_memory(callback, role, data);
  if (role == GCAP_DOCTOR_ROLE_STREAM_CREATE) note_stream(callback, data);
  if (role == GCAP_DOCTOR_ROLE_INSTANTIATE && call != NULL) {
    gcap_doctor_graphs_exec_made(thread, call, output(data, callback, GCAP_DOCTOR_ARGUMENT_EXEC_OUT));
  }
}

// After the line of the call: the callbacks may be disabled now.
static void note_end(uint8_t role, const gcap_doctor_open_call_t* call, int result) {
  if (role == GCAP_DOCTOR_ROLE_BEGIN && result == 0) gcap_doctor_switch_began(call->stream);
  if (role == GCAP_DOCTOR_ROLE_END && result != kWrongThread && result != kInvalidValue)
    gcap_doctor_switch_ended(call->stream);
}

static void note_launch(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_open_call_t* call,
                        const gcap_doctor_cupti_call_t* data, int result) {
  void* exec;
  if (call != NULL && call->num_nodes != 0) return;  // a capture took it as a node
  pointer_argument(data, callback, GCAP_DOCTOR_ARGUMENT_EXEC, &exec);
  gcap_doctor_exec_launched(exec, result != 0, &thread->out);
}

static bool is_failure(int result) { return result != 0 && result != kNotReady; }

// A call whose beginning was not seen: without its time, and, but for one that made nodes, without its place in the
// order.
static void write_unseen(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data,
                         int result, gcap_doctor_open_call_t* out_call) {
  *out_call = (gcap_doctor_open_call_t){.callback = callback, .start_ns = gcap_doctor_writer_now(), .mode = -1};
  out_call->is_named = thread->unseen != 0;  // by lines of nodes
  out_call->number = thread->unseen != 0 ? thread->unseen : gcap_doctor_call_new_number();
  read_inputs(thread, data, out_call);
  if (result == 0) read_outputs(data, out_call);
  write_call(thread, out_call, data, result, true);
}

static bool is_worth_writing(const gcap_doctor_thread_t* thread, uint8_t role, int result) {
  if (is_written_always(role) || thread->unseen != 0) return true;
  return is_failure(result) && (gcap_doctor_switch_is_capturing() || role == GCAP_DOCTOR_ROLE_LAUNCH);
}

void gcap_doctor_call_left(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data) {
  const uint8_t role = gcap_doctor_driver_call(callback)->role;
  const int result = data->result != NULL ? *(const int*)data->result : 0;
  gcap_doctor_open_call_t call;
  const bool has_begun = take(thread, callback, data->correlation, &call);
  const bool is_written = has_begun || is_worth_writing(thread, role, result);
  if (role == GCAP_DOCTOR_ROLE_LAUNCH) note_launch(thread, callback, has_begun ? &call : NULL, data, result);
  if (result == 0) note_success(thread, callback, has_begun ? &call : NULL, data);
  if (has_begun) {
    if (result == 0) read_outputs(data, &call);
    write_call(thread, &call, data, result, role != GCAP_DOCTOR_ROLE_EXCHANGE || gcap_doctor_switch_is_capturing());
  } else if (is_written) {
    write_unseen(thread, callback, data, result, &call);
  }
  thread->last_failed = is_written && is_failure(result) ? call.number : 0;
  thread->unseen = 0;
  if (role == GCAP_DOCTOR_ROLE_INSTANTIATE) thread->num_clones = 0;
  if (is_written_always(role)) note_end(role, &call, result);
  if (role == GCAP_DOCTOR_ROLE_BEGIN) gcap_doctor_driver_log_listen();
  if (is_written) gcap_doctor_raised_ask(thread, role, result, call.number);
  if (thread->out.size > thread->can_wait && thread->depth == 0) gcap_doctor_thread_flush(thread);
}
