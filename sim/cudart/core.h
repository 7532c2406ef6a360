// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// core.h: what the files of the simulated CUDA runtime share.
//
// The idea: an API call never does device work. It makes a task (a copy, a kernel, …) and hands it to a stream, which
// queues it, or adds it to the graph that the stream is capturing into. The scheduler runs queued tasks later: as much
// as a synchronisation needs, or whatever a seeded generator picks when a call lets time pass.
//
// Locking: one global mutex guards everything. gcap_sim_enter takes it and gcap_sim_leave gives it back, so all code
// between runs under it; only host functions and destructors of user objects run without it, on a thread of their own
// or after the call's work is done. Reference counts are plain integers for that reason.
//
// Layers: registry (handles), thread, fault; task, scheduler; stream, event, memory, copy, kernel; capture, graph,
// exec.
#ifndef GCAP_SIM_CUDART_CORE_H_
#define GCAP_SIM_CUDART_CORE_H_

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/die.h"
#include "../base/heap.h"
#include "../base/lock.h"
#include "../base/span.h"
#include "../base/thread.h"
#include "../check/check.h"
#include "cuda_runtime_api.h"
#include "gcap_sim.h"

typedef struct gcap_sim_block gcap_sim_block_t;
typedef struct gcap_sim_capture gcap_sim_capture_t;
typedef struct gcap_sim_event gcap_sim_event_t;
typedef struct gcap_sim_exec gcap_sim_exec_t;
typedef struct gcap_sim_graph gcap_sim_graph_t;
typedef struct gcap_sim_kernel_launch gcap_sim_kernel_launch_t;
typedef struct gcap_sim_member gcap_sim_member_t;
typedef struct gcap_sim_node gcap_sim_node_t;
typedef struct gcap_sim_past gcap_sim_past_t;
typedef struct gcap_sim_pool gcap_sim_pool_t;
typedef struct gcap_sim_program gcap_sim_program_t;
typedef struct gcap_sim_stream gcap_sim_stream_t;
typedef struct gcap_sim_task gcap_sim_task_t;
typedef struct gcap_sim_user_object gcap_sim_user_object_t;

// --- API table (api.c) ----------------------------------------------------------------------------------------------

typedef enum gcap_sim_class {
  GCAP_SIM_PURE,
  GCAP_SIM_FREE,
  GCAP_SIM_UNSAFE,
  GCAP_SIM_FORBIDDEN,
  GCAP_SIM_CONTEXT
} gcap_sim_class_t;

typedef enum gcap_sim_api {
#define GCAP_SIM_API(name, class) GCAP_SIM_API_##name,
#define GCAP_SIM_NOT_MODELLED(name, params)
#include "api.inc"
#undef GCAP_SIM_API
#undef GCAP_SIM_NOT_MODELLED
  GCAP_SIM_API_COUNT
} gcap_sim_api_t;

// Takes the lock, counts the call, lets time pass, and returns an injected fault or what the row's class earns.
cudaError_t gcap_sim_enter(gcap_sim_api_t api);
// Keeps `code` as the thread's last error, gives the lock back, and runs what must run without it.
cudaError_t gcap_sim_leave(cudaError_t code);
// The same, but leaves the last error as it is.
cudaError_t gcap_sim_leave_quietly(cudaError_t code);

// The same for the simulator's own functions: takes the lock, notes where the call is made, and no more.
void gcap_sim_begin_call(const char* name);

const char* gcap_sim_error_name(cudaError_t code);

// --- The log of calls (log.c) ---------------------------------------------------------------------------------------

extern bool gcap_sim_log_on;

// Note something with the call under way, for its line in the log: an argument, or what became of a capture. Never an
// address: equal runs must give equal logs.
void gcap_sim_log_argument(const char* format, ...) __attribute__((format(printf, 1, 2)));
void gcap_sim_log_capture(const char* format, ...) __attribute__((format(printf, 1, 2)));
#define gcap_sim_note_argument(...) (gcap_sim_log_on ? gcap_sim_log_argument(__VA_ARGS__) : (void)0)
#define gcap_sim_note_capture(...) (gcap_sim_log_on ? gcap_sim_log_capture(__VA_ARGS__) : (void)0)

// --- Handles (registry.c) -------------------------------------------------------------------------------------------

typedef enum gcap_sim_kind {
  GCAP_SIM_STREAM,
  GCAP_SIM_EVENT,
  GCAP_SIM_GRAPH,
  GCAP_SIM_NODE,
  GCAP_SIM_EXEC,
  GCAP_SIM_USER_OBJECT,
  GCAP_SIM_POOL,
  GCAP_SIM_KIND_COUNT
} gcap_sim_kind_t;

// A handle is no address but an index, a generation and a kind, so a stale or foreign one is told apart for certain.
void* gcap_sim_handle_create(gcap_sim_kind_t kind, void* object);
void gcap_sim_handle_destroy(void* handle);
// From now on the handle is not counted among the live ones: it is there for good, like a device's default pool.
void gcap_sim_handle_keep(void* handle);
// The object behind a handle; NULL for a NULL handle. Stops the program for a destroyed or foreign one.
void* gcap_sim_handle_get(gcap_sim_kind_t kind, const void* handle);
// The same, but NULL for one of these.
void* gcap_sim_handle_peek(gcap_sim_kind_t kind, const void* handle);
size_t gcap_sim_handle_count(gcap_sim_kind_t kind);
// Tells of each live handle that the program has to destroy: of graph nodes their graph takes care.
void gcap_sim_handle_origins(void (*visit)(const char* kind, const gcap_sim_origin_t* origin, void* user), void* user);
// Calls visit for each live object of the kind. It may destroy that object's handle and no other.
void gcap_sim_handle_each(gcap_sim_kind_t kind, void (*visit)(void* object, void* user), void* user);
const char* gcap_sim_kind_name(gcap_sim_kind_t kind);
// What the log calls the handle, written to `label`: the same in every run that makes the same calls.
#define GCAP_SIM_LABEL_BYTES 48
const char* gcap_sim_handle_label(char label[GCAP_SIM_LABEL_BYTES], gcap_sim_kind_t kind, const void* handle);
// Notes a handle that the call under way was given, or has made.
void gcap_sim_log_handle(gcap_sim_kind_t kind, const void* handle);
void gcap_sim_log_made(gcap_sim_kind_t kind, const void* handle);

// --- Faults of device work (fault.c) --------------------------------------------------------------------------------

// Device work failed: the next call that waits for the device, or finds its work done, answers `code`; it is sticky.
void gcap_sim_fault_device(cudaError_t code);
// Called where the host learns what the device did: a pending fault becomes sticky.
void gcap_sim_fault_surface(void);
// Has a fault stopped the device? Then work is done in name only.
bool gcap_sim_fault_stops_work(void);

// --- Devices (device.c) ---------------------------------------------------------------------------------------------

int gcap_sim_device_count(void);
gcap_sim_stream_t* gcap_sim_legacy_stream(int device);
// May work of the device reach memory of the peer?
bool gcap_sim_peer_enabled(int device, int peer);
// Forgets what the device's peers may do.
void gcap_sim_peer_reset(int device);

// --- Marks: points in a stream that others wait for (scheduler.c) ---------------------------------------------------

typedef struct gcap_sim_mark {
  size_t refs;
  bool done;
  gcap_sim_stream_t* stream;  // the queue it is in; valid until done
  uint64_t when;              // the simulated time at which it was reached
  gcap_sim_stamp_t stamp;     // what comes before it, once it is reached
} gcap_sim_mark_t;

gcap_sim_mark_t* gcap_sim_mark_create(gcap_sim_stream_t* stream);
gcap_sim_mark_t* gcap_sim_mark_retain(gcap_sim_mark_t* mark);
void gcap_sim_mark_release(gcap_sim_mark_t* mark);

// --- Address space (vmem.c) -----------------------------------------------------------------------------------------

// One space for each device, and one for pinned host memory.
enum { GCAP_SIM_PINNED_SPACE = GCAP_SIM_MAX_DEVICES, GCAP_SIM_NUM_SPACES };

// A range that is in no other's hands, at a multiple of GCAP_SIM_ALIGNMENT; NULL when there is none.
void* gcap_sim_vmem_take(int space, size_t bytes);
// Gives a whole range back. Its bytes stay accessible, and it is not taken again soon.
void gcap_sim_vmem_give_back(int space, void* base, size_t bytes);
// Does the range reach into addresses that have no memory yet?
bool gcap_sim_vmem_is_bare(const void* address, size_t bytes);

// --- How much memory a device has (budget.c) ------------------------------------------------------------------------

size_t gcap_sim_budget_total(int device);
size_t gcap_sim_budget_free(int device);
// Takes device memory, from what pools hold unused if it must; false when there is not enough.
bool gcap_sim_budget_take(int device, size_t bytes);
void gcap_sim_budget_give_back(int device, size_t bytes);

// Gives back what pools of the device hold and nobody uses.
void gcap_sim_pools_release_unused(int device);
// Is there a free that no synchronisation has seen done?
bool gcap_sim_pools_pending(void);
// The host has waited for the stream with this id, or, if 0, for a device: frees that are done are known to be.
void gcap_sim_pools_synchronised(unsigned long long stream);

// --- Device and pinned memory (allocation.c) ------------------------------------------------------------------------

// There are two views of an address. Callers name an allocation from the call that makes it to the call that frees it:
// it is claimed. Device work finds it from the work that maps it to the work that unmaps it: it is live. Both are the
// same for cudaMalloc. A pool may give a claimed allocation the address of one that is live until its queued free runs.
typedef struct gcap_sim_allocation {
  size_t refs;  // one for being live, one for each task that names it
  char* base;
  size_t bytes;  // as asked for
  enum cudaMemoryType type;
  int device;
  unsigned int flags;       // of cudaHostAlloc or cudaHostRegister
  bool live;                // mapped: between the work that allocates it and the work that frees it
  bool claimed;             // owned by the caller: no call has freed it yet, though the work of one may still be queued
  bool of_graph;            // made by an allocation node: its address is its own also while nobody claims it
  bool registered;          // the caller's own host memory
  size_t range_bytes;       // of address space that goes back with it; 0 when that is not its own
  size_t budget_bytes;      // taken from the device's budget on its behalf
  gcap_sim_block_t* block;  // of the pool that it comes from, while claimed
  gcap_sim_span_t named;    // in the callers' view while claimed or of a graph
  gcap_sim_span_t mapped;   // in the work's view while live
  uint64_t graph;           // the serial of the graph whose node allocates it
  uint64_t freeing_graph;   // the serial of the graph with the last free node that was made for it
  bool coming;              // scratch: a launch that is being judged will allocate it
  gcap_sim_memory_t* memory;  // what the checks know of it
} gcap_sim_allocation_t;

// The allocation that holds the address: claimed by the caller, or owned by a graph. NULL when there is none.
gcap_sim_allocation_t* gcap_sim_allocation_find(const void* address);
// The allocation whose bytes device work finds at the address now.
gcap_sim_allocation_t* gcap_sim_allocation_mapped(const void* address);
// One that shares bytes with the range, in the callers' view.
gcap_sim_allocation_t* gcap_sim_allocation_overlap(const void* address, size_t bytes);
void gcap_sim_allocation_each(void (*visit)(void* allocation, void* user), void* user);
// Claimed allocations of the kind "device memory", "pinned memory" or "registered memory", or of all when NULL.
size_t gcap_sim_allocation_count(const char* kind);

// An allocation with one reference, in neither view.
gcap_sim_allocation_t* gcap_sim_allocation_create(void* base, size_t bytes, enum cudaMemoryType type, int device);
// The same, in a range of address space of its own; NULL when that is used up.
gcap_sim_allocation_t* gcap_sim_allocation_create_range(size_t bytes, enum cudaMemoryType type, int device);
// Makes it that of a graph: callers find it from now on, claimed or not.
void gcap_sim_allocation_give_to_graph(gcap_sim_allocation_t* allocation);
// The caller becomes its owner, or is no longer.
void gcap_sim_allocation_claim(gcap_sim_allocation_t* allocation);
void gcap_sim_allocation_disclaim(gcap_sim_allocation_t* allocation);
// Maps and unmaps it, in the order of the device's work: the start and the end of its contents.
void gcap_sim_allocation_begin(gcap_sim_allocation_t* allocation);
void gcap_sim_allocation_end(gcap_sim_allocation_t* allocation);
void gcap_sim_allocation_release(gcap_sim_allocation_t* allocation);

// cudaMalloc and its kin, and the frees that do not wait for a stream (memory.c). The free checks that the address may
// be freed so; gcap_sim_free_allocation frees any that is claimed.
cudaError_t gcap_sim_allocate(void** out, size_t bytes, enum cudaMemoryType type);
cudaError_t gcap_sim_free_now(void* address, enum cudaMemoryType type);
void gcap_sim_free_allocation(gcap_sim_allocation_t* allocation);

// Memory of graphs (graph_memory.c): the address is the graph's for good, a launch brings the memory, and it stays
// until a trim or the end of the graph and its executable.
gcap_sim_allocation_t* gcap_sim_graph_allocation_create(size_t bytes, int device);
// Brings the memory; false when the device has no more.
bool gcap_sim_graph_memory_bring(gcap_sim_allocation_t* allocation);
void gcap_sim_graph_memory_drop(gcap_sim_allocation_t* allocation);
// The tasks of memory nodes; on failure they return NULL and set the code.
gcap_sim_task_t* gcap_sim_graph_alloc_task(size_t bytes, int device, cudaError_t* code);
gcap_sim_task_t* gcap_sim_graph_free_task(const gcap_sim_graph_t* graph, void* address, cudaError_t* code);

// --- Tasks: what a piece of device work does (task.c) ---------------------------------------------------------------

typedef enum gcap_sim_task_kind {
  GCAP_SIM_TASK_EMPTY,
  GCAP_SIM_TASK_KERNEL,
  GCAP_SIM_TASK_LIBRARY,
  GCAP_SIM_TASK_COPY,
  GCAP_SIM_TASK_FILL,
  GCAP_SIM_TASK_HOST,
  GCAP_SIM_TASK_EVENT_RECORD,
  GCAP_SIM_TASK_EVENT_WAIT,
  GCAP_SIM_TASK_ALLOC,
  GCAP_SIM_TASK_FREE,
  GCAP_SIM_TASK_NOTE,  // tells the checks of a sub-allocation; does nothing
} gcap_sim_task_kind_t;

typedef struct gcap_sim_copy {
  void* dst;
  size_t dst_pitch;
  const void* src;
  size_t src_pitch;
  size_t width;  // bytes a row
  size_t height;
  size_t depth;      // slices; 0 counts as 1
  size_t dst_slice;  // bytes from one slice to the next
  size_t src_slice;
  enum cudaMemcpyKind kind;
  // What the addresses were at the call; the device is cudaInvalidDeviceId but for device memory.
  enum cudaMemoryType dst_type;
  enum cudaMemoryType src_type;
  int dst_device;
  int src_device;
} gcap_sim_copy_t;

typedef struct gcap_sim_fill {
  char* dst;
  size_t pitch;
  unsigned int value;
  unsigned int element_bytes;
  size_t width;  // elements a row
  size_t height;
  enum cudaMemoryType type;  // what the address was at the call
  int device;                // cudaInvalidDeviceId but for device memory
} gcap_sim_fill_t;

// Has the process memory everywhere in the range? (host_range.c)
bool gcap_sim_is_host_memory(const void* address, size_t bytes);
// Stop the program when pageable memory that the copy reads or writes is none (host_range.c).
void gcap_sim_check_source(const gcap_sim_copy_t* copy);
void gcap_sim_check_destination(const gcap_sim_copy_t* copy);

// Immutable once submitted, and counted: a stream's queue, graphs, their clones and executables share one.
struct gcap_sim_task {
  size_t refs;
  gcap_sim_task_kind_t kind;
  const char* name;
  gcap_sim_origin_t* origin;  // the call that made it
  gcap_sim_memory_t** named;  // of a graph's task: to what each address belonged that it names, or NULL
  size_t num_named;
  struct gcap_sim_watch* watched[2];  // the source and the target of a graph's copy that are pageable memory
  union {
    struct {
      const gcap_sim_kernel_t* twin;
      gcap_sim_launch_t launch;
      void** args;  // one block: the pointers, then the copied arguments
    } kernel;
    struct {
      void (*run)(void* payload);
      void* payload;
      gcap_sim_access_t* accesses;
      size_t num_accesses;
    } library;
    struct {
      gcap_sim_copy_t copy;
      void* staged;  // the source as it was at the call, for eager copies from pageable memory
    } copy;
    gcap_sim_fill_t fill;
    struct {
      cudaHostFn_t function;
      void* data;
    } host;
    gcap_sim_event_t* event;
    gcap_sim_allocation_t* allocation;
    struct {
      gcap_sim_memory_t* memory;
      bool begins;
    } note;
  } u;
};

gcap_sim_task_t* gcap_sim_task_create(gcap_sim_task_kind_t kind, const char* name);
gcap_sim_task_t* gcap_sim_task_retain(gcap_sim_task_t* task);
void gcap_sim_task_release(gcap_sim_task_t* task);
// Does the work. Not for host functions and event nodes: the scheduler does those.
void gcap_sim_task_run(const gcap_sim_task_t* task);
enum cudaGraphNodeType gcap_sim_task_node_type(const gcap_sim_task_t* task);

// --- Streams (stream.c) and their queues (scheduler.c) --------------------------------------------------------------

// One entry of a stream's queue: a task or the launch of a graph.
typedef struct gcap_sim_op {
  struct gcap_sim_op* next;
  gcap_sim_task_t* task;
  gcap_sim_kernel_launch_t* launch;
  gcap_sim_mark_t* mark;  // reached when the operation is done; NULL while nobody waits
  gcap_sim_mark_t** waits;
  size_t num_waits;
  bool begun;
  gcap_sim_stamp_t submitted;  // what the host had seen by then
} gcap_sim_op_t;

// Attributes of a stream that only advise hardware.
typedef struct gcap_sim_stream_advice {
  struct cudaAccessPolicyWindow window;
  int policy;  // a cudaSynchronizationPolicy, or -1 when none was set, which a GPU tells like this
  cudaLaunchMemSyncDomainMap domains;
  cudaLaunchMemSyncDomain domain;
} gcap_sim_stream_advice_t;

struct gcap_sim_stream {
  cudaStream_t handle;  // NULL for the legacy stream and after destruction
  unsigned long long id;
  int device;
  int priority;
  unsigned int flags;
  bool legacy;
  bool per_thread;
  bool destroyed;             // goes away when its queue is empty
  bool running;               // a host function of its head is running, off the lock
  gcap_sim_member_t* member;  // set while the stream captures
  gcap_sim_op_t* head;
  gcap_sim_op_t* tail;
  gcap_sim_stream_advice_t advice;
  size_t busy_index;       // its place among the busy streams
  uint64_t frees;          // stream-ordered frees given to it so far
  gcap_sim_past_t* past;   // frees of other streams that its next work comes after
  gcap_sim_clock_t clock;  // of the work that has run
  size_t host_news;        // its places in lists of what others have yet to learn (order.c)
  size_t legacy_news;
};

// The stream behind a handle, with NULL and the two special handles resolved.
gcap_sim_stream_t* gcap_sim_stream_get(cudaStream_t handle);
gcap_sim_stream_t* gcap_sim_stream_create(int device, unsigned int flags, int priority);
int gcap_sim_clamp_priority(int priority);
// Ends a stream that has a handle.
void gcap_sim_stream_destroy(gcap_sim_stream_t* stream);
// Marks the stream as gone; it is freed once its queue has drained.
void gcap_sim_stream_retire(gcap_sim_stream_t* stream);

// Queues the task, or captures it; the capture rules for stream-ordered work hold. Takes over the reference.
cudaError_t gcap_sim_submit_task(gcap_sim_stream_t* stream, gcap_sim_task_t* task);
// The rules alone, for callers that must know first: 901, 906, or success.
cudaError_t gcap_sim_gate_ordered(gcap_sim_stream_t* stream);

// Queues an operation behind everything already in the stream, implicit ordering with the legacy stream included. It
// carries a task (reference taken over), or a launch (taken over), or neither, and waits for `wait` unless that is
// NULL.
void gcap_sim_enqueue(gcap_sim_stream_t* stream, gcap_sim_task_t* task, gcap_sim_kernel_launch_t* launch,
                      gcap_sim_mark_t* wait);
// A new reference to the mark of all work submitted so far.
gcap_sim_mark_t* gcap_sim_stream_tail_mark(gcap_sim_stream_t* stream);
// The mark of an event recorded now: work of the stream like other work, so the implicit order holds for it.
gcap_sim_mark_t* gcap_sim_stream_record_mark(gcap_sim_stream_t* stream);
// What the stream is given next comes after the mark.
void gcap_sim_stream_wait_for(gcap_sim_stream_t* stream, gcap_sim_mark_t* mark);
// Runs a task at the call itself, on a stream that is idle.
void gcap_sim_run_at_once(gcap_sim_stream_t* stream, const gcap_sim_task_t* task);
// A new reference to the mark of the operation queued last, which must exist.
gcap_sim_mark_t* gcap_sim_stream_last_mark(gcap_sim_stream_t* stream);

// Runs what the mark needs, and returns when it is reached. Takes over the reference.
void gcap_sim_wait_for(gcap_sim_mark_t* mark);
// Brings the mark one step nearer, as the time between two queries would, and tells whether it is reached.
bool gcap_sim_poll(gcap_sim_mark_t* mark);
// The same for all work submitted to the stream so far.
bool gcap_sim_poll_stream(gcap_sim_stream_t* stream);
void gcap_sim_wait_for_device(int device);
// Called at each API call: moves random ready queues on.
void gcap_sim_turn(void);
uint64_t gcap_sim_now(void);

// --- Pasts: which frees a stream is known to come after (past.c) ----------------------------------------------------

// The free number `order` of a stream; 0 for none.
typedef struct gcap_sim_point {
  unsigned long long stream;
  uint64_t order;
} gcap_sim_point_t;

// Enough for a program's usual forks and joins.
#define GCAP_SIM_MAX_PAST 16

struct gcap_sim_past {
  size_t refs;
  size_t count;
  gcap_sim_point_t points[GCAP_SIM_MAX_PAST];
};

void gcap_sim_past_release(gcap_sim_past_t* past);
gcap_sim_past_t* gcap_sim_past_retain(gcap_sim_past_t* past);
bool gcap_sim_past_holds(const gcap_sim_past_t* past, gcap_sim_point_t point);
// The stream waits for the event's record.
void gcap_sim_past_learn(gcap_sim_stream_t* stream, const gcap_sim_event_t* event);

// --- Events (event.c) -----------------------------------------------------------------------------------------------

// One end of a dependency, kept at the other end: the node there and what the edge carries.
typedef struct gcap_sim_edge {
  gcap_sim_node_t* node;
  cudaGraphEdgeData data;
} gcap_sim_edge_t;

typedef struct gcap_sim_edges {
  gcap_sim_edge_t* items;
  size_t count;
  size_t capacity;
} gcap_sim_edges_t;

struct gcap_sim_event {
  cudaEvent_t handle;  // NULL once destroyed
  size_t refs;         // the handle, and the graph nodes that name it
  int device;
  unsigned int flags;
  bool recorded;
  gcap_sim_mark_t* mark;   // of the last eager record; NULL when the stream was idle then
  uint64_t when;           // time of a record that found its stream idle
  gcap_sim_point_t point;  // the last free of its stream before the record
  gcap_sim_past_t* past;   // what the stream came after then
  // A record inside a capture: its id and the nodes that the stream's next node would have depended on.
  unsigned long long capture_id;
  gcap_sim_edges_t nodes;
};

gcap_sim_task_t* gcap_sim_event_task(gcap_sim_task_kind_t kind, gcap_sim_event_t* event);
void gcap_sim_event_release(gcap_sim_event_t* event);
// Ends an event that has a handle.
void gcap_sim_event_destroy(gcap_sim_event_t* event);
void gcap_sim_event_set_mark(gcap_sim_event_t* event, gcap_sim_mark_t* mark);

// --- Rules and captures (rules.c, capture.c) ------------------------------------------------------------------------

typedef enum gcap_sim_rule {
#define CAPTURE_RULE(id, name, code, situation, remedy)
#define CAPTURE_GATE(id, name, code, situation, remedy) GCAP_SIM_RULE_##name,
#include "rules/capture_rules.inc"
#undef CAPTURE_GATE
#undef CAPTURE_RULE
} gcap_sim_rule_t;

// The rule's number in the table: "R16".
const char* gcap_sim_rule_id(gcap_sim_rule_t rule);
cudaError_t gcap_sim_rule_code(gcap_sim_rule_t rule);
const char* gcap_sim_rule_situation(gcap_sim_rule_t rule);
const char* gcap_sim_rule_remedy(gcap_sim_rule_t rule);

// A stream's part in a capture. It outlives the stream, because work of a destroyed stream must still be joined.
struct gcap_sim_member {
  gcap_sim_capture_t* capture;
  gcap_sim_stream_t* stream;  // NULL once destroyed
  // What its next node will depend on. Waits append and may do so twice: gcap_sim_member_deps leaves each node once.
  gcap_sim_edges_t deps;
  cudaGraphNode_t* handles;  // deps as cudaStreamGetCaptureInfo gives them out
  cudaGraphEdgeData* edge_data;
  size_t handle_capacity;
  size_t edge_capacity;
};

struct gcap_sim_capture {
  unsigned long long id;
  enum cudaStreamCaptureMode mode;
  uint64_t thread;
  gcap_sim_stream_t* origin;
  gcap_sim_origin_t* begun;  // the call that began it
  gcap_sim_graph_t* graph;
  bool into_graph;  // the graph was the caller's before
  bool invalid;
  gcap_sim_member_t** members;
  size_t num_members;
  size_t member_capacity;
  gcap_sim_capture_t* next;
};

// Breaks the rule: invalidates the capture, keeps the reason, and returns the rule's code.
cudaError_t gcap_sim_capture_invalidate(gcap_sim_capture_t* capture, gcap_sim_rule_t rule);
// An unsafe call of this thread: 900, with every capture that it disturbs invalidated, or success.
cudaError_t gcap_sim_gate_unsafe(void);
// The same for the captures of other threads alone.
cudaError_t gcap_sim_gate_unsafe_beside_others(void);
// A call that no capture on the device survives, of whatever thread; on any device, if -1.
cudaError_t gcap_sim_gate_forbidden(int device);
// A use of the legacy stream: 906 while a blocking stream captures.
cudaError_t gcap_sim_gate_legacy(gcap_sim_stream_t* stream);
// A call that no stream may be given while it captures (synchronise, query, launch): 900.
cudaError_t gcap_sim_gate_not_capturing(gcap_sim_stream_t* stream);

gcap_sim_capture_t* gcap_sim_capture_find(unsigned long long id);
gcap_sim_member_t* gcap_sim_capture_join(gcap_sim_capture_t* capture, gcap_sim_stream_t* stream);
void gcap_sim_member_depend(gcap_sim_member_t* member, const gcap_sim_edges_t* nodes);
const gcap_sim_edges_t* gcap_sim_member_deps(gcap_sim_member_t* member);
void gcap_sim_capture_stream_destroyed(gcap_sim_stream_t* stream);

// --- Graphs (graph.c and graph_*.c, exec.c, program.c, update.c, user_object.c) -------------------------------------

struct gcap_sim_node {
  cudaGraphNode_t handle;  // NULL in the copy that an executable keeps
  gcap_sim_graph_t* graph;
  uint64_t serial;  // never used again; ascending within a graph
  uint64_t source;  // the serial of the node that it was cloned from; 0 for none
  size_t index;     // its place in the graph, valid after gcap_sim_graph_number
  size_t first;     // of an executable's copy: its place in the program, and its last when it holds a graph
  size_t last;
  int device;
  gcap_sim_task_t* task;
  gcap_sim_graph_t* child;  // what a child graph node holds
  gcap_sim_edges_t in;      // whom it comes after, in the order in which it was told
  gcap_sim_edges_t out;
  cudaLaunchAttribute* attributes;  // of a kernel node: those that are not at their defaults
  size_t num_attributes;
  bool detached;   // in an open capture: taken out of its stream's dependencies, so nobody has to join it
  bool disabled;   // in an executable's copy
  uint64_t visit;  // scratch of graph walks
};

typedef struct gcap_sim_object_ref {
  gcap_sim_user_object_t* object;
  unsigned int count;
} gcap_sim_object_ref_t;

typedef struct gcap_sim_object_refs {
  gcap_sim_object_ref_t* items;
  size_t count;
  size_t capacity;
} gcap_sim_object_refs_t;

struct gcap_sim_graph {
  cudaGraph_t handle;       // NULL in the copy that an executable keeps
  uint64_t serial;          // never used again
  gcap_sim_node_t* owner;   // the child graph node that holds it
  bool moved;               // into that node, whole, instead of being copied
  gcap_sim_node_t** nodes;  // by ascending serial
  size_t num_nodes;
  size_t node_capacity;
  size_t num_edges;
  size_t num_memory_nodes;  // with those of the graphs it holds
  uint64_t source;          // the serial of the graph that it was cloned from; 0 for none
  gcap_sim_object_refs_t objects;
  bool capturing;                // belongs to an open capture
  gcap_sim_exec_t* memory_exec;  // the one executable that a graph with memory nodes may have
};

gcap_sim_graph_t* gcap_sim_graph_create(void);
void gcap_sim_graph_destroy(gcap_sim_graph_t* graph);
// Adds a node for the thread's device; takes over the task's reference.
gcap_sim_node_t* gcap_sim_graph_add(gcap_sim_graph_t* graph, gcap_sim_task_t* task, const gcap_sim_edge_t* deps,
                                    size_t num_deps);

// What an executable runs: a graph frozen at instantiation or update, with the graphs that its nodes hold laid out flat
// in place of those nodes: an empty entry before a held graph, one after it, and its nodes between, so that they run
// beside all that nothing orders against them. Launches in flight keep their program; a changed one is a copy.
struct gcap_sim_program {
  size_t refs;
  size_t num_nodes;
  gcap_sim_task_t** tasks;
  uint32_t* num_deps;
  uint32_t* first_successor;  // num_nodes + 1 offsets into successors
  uint32_t* successors;
  uint32_t* memory;  // the nodes that allocate and free
  size_t num_memory;
  size_t num_host;  // host functions among the tasks
  bool has_events;
  gcap_sim_object_refs_t objects;
  struct gcap_sim_chains* chains;  // made at the first launch
};

// One launch of a program on its way through a stream.
struct gcap_sim_kernel_launch {
  gcap_sim_program_t* program;
  uint32_t* deps_left;
  uint32_t* ready;  // nodes whose dependencies are done
  size_t num_ready;
  size_t num_ready_host;  // host functions among them
  size_t num_left;
  gcap_sim_mark_t** marks;  // for event nodes: what is waited for, or what is reached; NULL when there is none
  gcap_sim_origin_t* origin;
  gcap_sim_stamp_t start;    // of the launch, when it has more than one chain
  gcap_sim_stamp_t* stamps;  // of nodes that others in other chains wait for
};

gcap_sim_kernel_launch_t* gcap_sim_launch_create(gcap_sim_program_t* program, gcap_sim_stream_t* stream);
void gcap_sim_launch_destroy(gcap_sim_kernel_launch_t* launch);
// Takes the node at `pick` from those that are ready.
uint32_t gcap_sim_launch_take(gcap_sim_kernel_launch_t* launch, size_t pick);
// Node `node` is done: its successors may become ready.
void gcap_sim_launch_node_done(gcap_sim_kernel_launch_t* launch, uint32_t node);

void gcap_sim_object_refs_copy(gcap_sim_object_refs_t* to, const gcap_sim_object_refs_t* from);
void gcap_sim_object_refs_clear(gcap_sim_object_refs_t* refs);

// --- Kernels (kernel.c) ---------------------------------------------------------------------------------------------

// How much dynamic shared memory a launch of the kernel may ask for. Fails with what a function that is no kernel
// earns.
cudaError_t gcap_sim_kernel_max_shared(const void* function, size_t* out);
// Blocks of so many threads, with so much shared memory each, that a multiprocessor holds at a time.
size_t gcap_sim_occupancy(size_t threads, size_t shared_bytes);
// All blocks of a cooperative grid must be on the device at a time.
cudaError_t gcap_sim_judge_cooperative(dim3 grid, dim3 block, size_t shared_bytes);

// Makes the task of a launch; on failure returns NULL and sets the code.
gcap_sim_task_t* gcap_sim_kernel_task(const void* function, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                                      cudaError_t* code);

// The same for a copy; fills in its types of memory.
gcap_sim_task_t* gcap_sim_copy_task(gcap_sim_copy_t* copy, cudaError_t* code);
// The same for a fill.
gcap_sim_task_t* gcap_sim_fill_task(const gcap_sim_fill_t* fill, cudaError_t* code);
// Is there memory, device or pinned, for all of the fill?
bool gcap_sim_fill_has_memory(const gcap_sim_fill_t* fill);
// The copy that the parameters describe, with positions folded into the addresses.
gcap_sim_copy_t gcap_sim_copy_of_params(const struct cudaMemcpy3DParms* params);
// Do the copied box and what the caller says of the memory around it go together?
cudaError_t gcap_sim_judge_copy_params(const struct cudaMemcpy3DParms* params);

#endif  // GCAP_SIM_CUDART_CORE_H_
