// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// core.h: what the files of the simulated CUDA runtime share.
//
// The idea: an API call never does device work. It makes a task (a copy, a kernel, …) and hands it to a stream, which
// queues it, or adds it to the graph that the stream is capturing into. The scheduler runs queued tasks later: as much
// as a synchronisation needs, or whatever a seeded generator picks when a call lets time pass.
//
// Locking: one global mutex guards everything. sim_enter takes it and sim_leave gives it back, so all code between runs
// under it; only host functions and destructors of user objects run without it, on a thread of their own or after the
// call's work is done. Reference counts are plain integers for that reason.
//
// Layers: registry (handles), thread, fault; task, scheduler; stream, event, memory, copy, kernel; capture, graph,
// exec.
#ifndef GCAP_SIM_CUDART_CORE_H_
#define GCAP_SIM_CUDART_CORE_H_

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../check/check.h"
#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "span.h"

#define SIM_MAX_DEVICES 8

typedef struct sim_block sim_block_t;
typedef struct sim_call_record sim_call_record_t;
typedef struct sim_capture sim_capture_t;
typedef struct sim_event sim_event_t;
typedef struct sim_exec sim_exec_t;
typedef struct sim_graph sim_graph_t;
typedef struct sim_launch sim_launch_t;
typedef struct sim_member sim_member_t;
typedef struct sim_node sim_node_t;
typedef struct sim_past sim_past_t;
typedef struct sim_pool sim_pool_t;
typedef struct sim_program sim_program_t;
typedef struct sim_stream sim_stream_t;
typedef struct sim_task sim_task_t;
typedef struct sim_user_object sim_user_object_t;

// --- API table (api.c) ---------------------------------------------------------------------------------------------

typedef enum sim_class { SIM_PURE, SIM_FREE, SIM_UNSAFE, SIM_FORBIDDEN, SIM_CONTEXT } sim_class_t;

typedef enum sim_api {
#define SIM_API(name, class) SIM_API_##name,
#define SIM_NOT_MODELLED(name, params)
#include "api.inc"
#undef SIM_API
#undef SIM_NOT_MODELLED
  SIM_API_COUNT
} sim_api_t;

// Takes the lock, counts the call, lets time pass, and returns an injected fault or what the row's class earns.
cudaError_t sim_enter(sim_api_t api);
// Keeps `code` as the thread's last error, gives the lock back, and runs what must run without it.
cudaError_t sim_leave(cudaError_t code);
// The same, but leaves the last error as it is.
cudaError_t sim_leave_quietly(cudaError_t code);

// The same for the simulator's own functions: takes the lock, notes where the call is made, and no more.
void sim_begin_call(const char* name);

void sim_lock(void);
// Gives the lock back and then runs what was deferred.
void sim_unlock(void);
pthread_mutex_t* sim_mutex(void);  // for condition variables

// Stops the program: a caller did what has no defined result on a GPU, or what is not modelled.
_Noreturn void sim_die(const char* format, ...) __attribute__((format(printf, 1, 2)));

const char* sim_error_name(cudaError_t code);

// --- The log of calls (log.c) ---------------------------------------------------------------------------------------

extern bool sim_log_on;

// Note something with the call under way, for its line in the log: an argument, or what became of a capture. Never an
// address: equal runs must give equal logs.
void sim_log_argument(const char* format, ...) __attribute__((format(printf, 1, 2)));
void sim_log_capture(const char* format, ...) __attribute__((format(printf, 1, 2)));
#define sim_note_argument(...) (sim_log_on ? sim_log_argument(__VA_ARGS__) : (void)0)
#define sim_note_capture(...) (sim_log_on ? sim_log_capture(__VA_ARGS__) : (void)0)

// --- Memory of the simulator itself (registry.c) -------------------------------------------------------------------

// Like calloc and realloc, but stop the program when the machine has no memory left.
void* sim_calloc(size_t count, size_t bytes);
// Grows the array at *items (of `bytes` each) to hold `need`; doubles, so that appending is cheap.
void sim_reserve(void* items, size_t* capacity, size_t need, size_t bytes);

// --- Handles (registry.c) ------------------------------------------------------------------------------------------

typedef enum sim_kind {
  SIM_STREAM,
  SIM_EVENT,
  SIM_GRAPH,
  SIM_NODE,
  SIM_EXEC,
  SIM_USER_OBJECT,
  SIM_POOL,
  SIM_KIND_COUNT
} sim_kind_t;

// A handle is no address but an index, a generation and a kind, so a stale or foreign one is told apart for certain.
void* sim_handle_create(sim_kind_t kind, void* object);
void sim_handle_destroy(void* handle);
// From now on the handle is not counted among the live ones: it is there for good, like a device's default pool.
void sim_handle_keep(void* handle);
// The object behind a handle; NULL for a NULL handle. Stops the program for a destroyed or foreign one.
void* sim_handle_get(sim_kind_t kind, const void* handle);
// The same, but NULL for one of these.
void* sim_handle_peek(sim_kind_t kind, const void* handle);
size_t sim_handle_count(sim_kind_t kind);
// Tells of each live handle that the program has to destroy: of graph nodes their graph takes care.
void sim_handle_origins(void (*visit)(const char* kind, const sim_origin_t* origin, void* user), void* user);
// Calls visit for each live object of the kind. It may destroy that object's handle and no other.
void sim_handle_each(sim_kind_t kind, void (*visit)(void* object, void* user), void* user);
const char* sim_kind_name(sim_kind_t kind);
// What the log calls the handle, written to `label`: the same in every run that makes the same calls.
#define SIM_LABEL_BYTES 48
const char* sim_handle_label(char label[SIM_LABEL_BYTES], sim_kind_t kind, const void* handle);
// Notes a handle that the call under way was given, or has made.
void sim_log_handle(sim_kind_t kind, const void* handle);
void sim_log_made(sim_kind_t kind, const void* handle);

// --- Threads (thread.c) --------------------------------------------------------------------------------------------

typedef struct sim_thread {
  uint64_t id;
  int device;
  int capture_mode;  // cudaThreadExchangeStreamCaptureMode; unchecked, as in the real runtime
  bool uses_device;  // it has made a call that needs one
  cudaError_t last_error;
  const char* call;                        // the function under way, for reports
  bool in_call;                            // between sim_enter and sim_leave
  uint64_t call_number;                    // of that call, counted over all threads
  sim_call_site_t site;                    // of that call
  bool in_host_function;                   // CUDA calls are refused there
  bool runs_host_functions;                // the thread that the simulator keeps for them
  bool in_device_work;                     // a twin or a library's work is running, under the lock
  size_t turn;                             // its index + 1 in the group that takes turns; 0: in none
  sim_call_record_t* record;               // for the log; NULL until the first call that is logged
  sim_stream_t* streams[SIM_MAX_DEVICES];  // per-thread default streams, made on first use
} sim_thread_t;

sim_thread_t* sim_thread(void);

// --- Faults of device work (fault.c) --------------------------------------------------------------------------------

// Device work failed: the next call that waits for the device, or finds its work done, answers `code`; it is sticky.
void sim_fault_device(cudaError_t code);
// Called where the host learns what the device did: a pending fault becomes sticky.
void sim_fault_surface(void);
// Has a fault stopped the device? Then work is done in name only.
bool sim_fault_stops_work(void);

// --- Devices (device.c) --------------------------------------------------------------------------------------------

int sim_device_count(void);
sim_stream_t* sim_legacy_stream(int device);
// May work of the device reach memory of the peer?
bool sim_peer_enabled(int device, int peer);
// Forgets what the device's peers may do.
void sim_peer_reset(int device);

// --- Marks: points in a stream that others wait for (scheduler.c) ---------------------------------------------------

typedef struct sim_mark {
  size_t refs;
  bool done;
  sim_stream_t* stream;  // the queue it is in; valid until done
  uint64_t when;         // the simulated time at which it was reached
  sim_stamp_t stamp;     // what comes before it, once it is reached
} sim_mark_t;

sim_mark_t* sim_mark_create(sim_stream_t* stream);
sim_mark_t* sim_mark_retain(sim_mark_t* mark);
void sim_mark_release(sim_mark_t* mark);

// --- Address space (vmem.c) ------------------------------------------------------------------------------------------

// One space for each device, and one for pinned host memory.
enum { SIM_PINNED_SPACE = SIM_MAX_DEVICES, SIM_NUM_SPACES };

// A range that is in no other's hands, at a multiple of SIM_ALIGNMENT; NULL when there is none.
void* sim_vmem_take(int space, size_t bytes);
// Gives a whole range back. Its bytes stay accessible, and it is not taken again soon.
void sim_vmem_give_back(int space, void* base, size_t bytes);
// Does the range reach into addresses that have no memory yet?
bool sim_vmem_is_bare(const void* address, size_t bytes);

// --- How much memory a device has (budget.c) -------------------------------------------------------------------------

size_t sim_budget_total(int device);
size_t sim_budget_free(int device);
// Takes device memory, from what pools hold unused if it must; false when there is not enough.
bool sim_budget_take(int device, size_t bytes);
void sim_budget_give_back(int device, size_t bytes);

// Gives back what pools of the device hold and nobody uses.
void sim_pools_release_unused(int device);
// Is there a free that no synchronisation has seen done?
bool sim_pools_pending(void);
// The host has waited for the stream with this id, or, if 0, for a device: frees that are done are known to be.
void sim_pools_synchronised(unsigned long long stream);

// --- Device and pinned memory (allocation.c)
// --------------------------------------------------------------------------

// There are two views of an address. Callers name an allocation from the call that makes it to the call that frees it:
// it is claimed. Device work finds it from the work that maps it to the work that unmaps it: it is live. Both are the
// same for cudaMalloc. A pool may give a claimed allocation the address of one that is live until its queued free runs.
typedef struct sim_allocation {
  size_t refs;  // one for being live, one for each task that names it
  char* base;
  size_t bytes;  // as asked for
  enum cudaMemoryType type;
  int device;
  unsigned int flags;      // of cudaHostAlloc or cudaHostRegister
  bool live;               // mapped: between the work that allocates it and the work that frees it
  bool claimed;            // owned by the caller: no call has freed it yet, though the work of one may still be queued
  bool of_graph;           // made by an allocation node: its address is its own also while nobody claims it
  bool registered;         // the caller's own host memory
  size_t range_bytes;      // of address space that goes back with it; 0 when that is not its own
  size_t budget_bytes;     // taken from the device's budget on its behalf
  sim_block_t* block;      // of the pool that it comes from, while claimed
  sim_span_t named;        // in the callers' view while claimed or of a graph
  sim_span_t mapped;       // in the work's view while live
  uint64_t graph;          // the serial of the graph whose node allocates it
  uint64_t freeing_graph;  // the serial of the graph with the last free node that was made for it
  bool coming;             // scratch: a launch that is being judged will allocate it
  sim_memory_t* memory;    // what the checks know of it
} sim_allocation_t;

// The allocation that holds the address: claimed by the caller, or owned by a graph. NULL when there is none.
sim_allocation_t* sim_allocation_find(const void* address);
// The allocation whose bytes device work finds at the address now.
sim_allocation_t* sim_allocation_mapped(const void* address);
// One that shares bytes with the range, in the callers' view.
sim_allocation_t* sim_allocation_overlap(const void* address, size_t bytes);
void sim_allocation_each(void (*visit)(void* allocation, void* user), void* user);
// Claimed allocations of the kind "device memory", "pinned memory" or "registered memory", or of all when NULL.
size_t sim_allocation_count(const char* kind);

// An allocation with one reference, in neither view.
sim_allocation_t* sim_allocation_create(void* base, size_t bytes, enum cudaMemoryType type, int device);
// The same, in a range of address space of its own; NULL when that is used up.
sim_allocation_t* sim_allocation_create_range(size_t bytes, enum cudaMemoryType type, int device);
// Makes it that of a graph: callers find it from now on, claimed or not.
void sim_allocation_give_to_graph(sim_allocation_t* allocation);
// The caller becomes its owner, or is no longer.
void sim_allocation_claim(sim_allocation_t* allocation);
void sim_allocation_disclaim(sim_allocation_t* allocation);
// Maps and unmaps it, in the order of the device's work: the start and the end of its contents.
void sim_allocation_begin(sim_allocation_t* allocation);
void sim_allocation_end(sim_allocation_t* allocation);
void sim_allocation_release(sim_allocation_t* allocation);

// cudaMalloc and its kin, and the frees that do not wait for a stream (memory.c). The free checks that the address may
// be freed so; sim_free_allocation frees any that is claimed.
cudaError_t sim_allocate(void** out, size_t bytes, enum cudaMemoryType type);
cudaError_t sim_free_now(void* address, enum cudaMemoryType type);
void sim_free_allocation(sim_allocation_t* allocation);

// Memory of graphs (graph_memory.c): the address is the graph's for good, a launch brings the memory, and it stays
// until a trim or the end of the graph and its executable.
sim_allocation_t* sim_graph_allocation_create(size_t bytes, int device);
// Brings the memory; false when the device has no more.
bool sim_graph_memory_bring(sim_allocation_t* allocation);
void sim_graph_memory_drop(sim_allocation_t* allocation);
// The tasks of memory nodes; on failure they return NULL and set the code.
sim_task_t* sim_graph_alloc_task(size_t bytes, int device, cudaError_t* code);
sim_task_t* sim_graph_free_task(const sim_graph_t* graph, void* address, cudaError_t* code);

// --- Tasks: what a piece of device work does (task.c) ---------------------------------------------------------------

typedef enum sim_task_kind {
  SIM_TASK_EMPTY,
  SIM_TASK_KERNEL,
  SIM_TASK_LIBRARY,
  SIM_TASK_COPY,
  SIM_TASK_FILL,
  SIM_TASK_HOST,
  SIM_TASK_EVENT_RECORD,
  SIM_TASK_EVENT_WAIT,
  SIM_TASK_ALLOC,
  SIM_TASK_FREE,
  SIM_TASK_NOTE,  // tells the checks of a sub-allocation; does nothing
} sim_task_kind_t;

typedef struct sim_copy {
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
} sim_copy_t;

typedef struct sim_fill {
  char* dst;
  size_t pitch;
  unsigned int value;
  unsigned int element_bytes;
  size_t width;  // elements a row
  size_t height;
  enum cudaMemoryType type;  // what the address was at the call
  int device;                // cudaInvalidDeviceId but for device memory
} sim_fill_t;

// Has the process memory everywhere in the range? (host_range.c)
bool sim_is_host_memory(const void* address, size_t bytes);
// Stop the program when pageable memory that the copy reads or writes is none (host_range.c).
void sim_check_source(const sim_copy_t* copy);
void sim_check_destination(const sim_copy_t* copy);

// Immutable once submitted, and counted: a stream's queue, graphs, their clones and executables share one.
struct sim_task {
  size_t refs;
  sim_task_kind_t kind;
  const char* name;
  sim_origin_t* origin;  // the call that made it
  sim_memory_t** named;  // of a graph's task: to what each address belonged that it names, or NULL
  size_t num_named;
  struct sim_watch* watched[2];  // the source and the target of a graph's copy that are pageable memory
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
      sim_copy_t copy;
      void* staged;  // the source as it was at the call, for eager copies from pageable memory
    } copy;
    sim_fill_t fill;
    struct {
      cudaHostFn_t function;
      void* data;
    } host;
    sim_event_t* event;
    sim_allocation_t* allocation;
    struct {
      sim_memory_t* memory;
      bool begins;
    } note;
  } u;
};

sim_task_t* sim_task_create(sim_task_kind_t kind, const char* name);
sim_task_t* sim_task_retain(sim_task_t* task);
void sim_task_release(sim_task_t* task);
// Does the work. Not for host functions and event nodes: the scheduler does those.
void sim_task_run(const sim_task_t* task);
enum cudaGraphNodeType sim_task_node_type(const sim_task_t* task);

// --- Streams (stream.c) and their queues (scheduler.c) --------------------------------------------------------------

// One entry of a stream's queue: a task or the launch of a graph.
typedef struct sim_op {
  struct sim_op* next;
  sim_task_t* task;
  sim_launch_t* launch;
  sim_mark_t* mark;  // reached when the operation is done; NULL while nobody waits
  sim_mark_t** waits;
  size_t num_waits;
  bool begun;
  sim_stamp_t submitted;  // what the host had seen by then
} sim_op_t;

// Attributes of a stream that only advise hardware.
typedef struct sim_stream_advice {
  struct cudaAccessPolicyWindow window;
  int policy;  // a cudaSynchronizationPolicy, or -1 when none was set, which a GPU tells like this
  cudaLaunchMemSyncDomainMap domains;
  cudaLaunchMemSyncDomain domain;
} sim_stream_advice_t;

struct sim_stream {
  cudaStream_t handle;  // NULL for the legacy stream and after destruction
  unsigned long long id;
  int device;
  int priority;
  unsigned int flags;
  bool legacy;
  bool per_thread;
  bool destroyed;        // goes away when its queue is empty
  bool running;          // a host function of its head is running, off the lock
  sim_member_t* member;  // set while the stream captures
  sim_op_t* head;
  sim_op_t* tail;
  sim_stream_advice_t advice;
  size_t busy_index;  // its place among the busy streams
  uint64_t frees;     // stream-ordered frees given to it so far
  sim_past_t* past;   // frees of other streams that its next work comes after
  sim_clock_t clock;  // of the work that has run
  size_t host_news;   // its places in lists of what others have yet to learn (order.c)
  size_t legacy_news;
};

// The stream behind a handle, with NULL and the two special handles resolved.
sim_stream_t* sim_stream_get(cudaStream_t handle);
sim_stream_t* sim_stream_create(int device, unsigned int flags, int priority);
int sim_clamp_priority(int priority);
// Ends a stream that has a handle.
void sim_stream_destroy(sim_stream_t* stream);
// Marks the stream as gone; it is freed once its queue has drained.
void sim_stream_retire(sim_stream_t* stream);

// Queues the task, or captures it; the capture rules for stream-ordered work hold. Takes over the reference.
cudaError_t sim_submit_task(sim_stream_t* stream, sim_task_t* task);
// The rules alone, for callers that must know first: 901, 906, or success.
cudaError_t sim_gate_ordered(sim_stream_t* stream);

// Queues an operation behind everything already in the stream, implicit ordering with the legacy stream included. It
// carries a task (reference taken over), or a launch (taken over), or neither, and waits for `wait` unless that is
// NULL.
void sim_enqueue(sim_stream_t* stream, sim_task_t* task, sim_launch_t* launch, sim_mark_t* wait);
// A new reference to the mark of all work submitted so far.
sim_mark_t* sim_stream_tail_mark(sim_stream_t* stream);
// The mark of an event recorded now: work of the stream like other work, so the implicit order holds for it.
sim_mark_t* sim_stream_record_mark(sim_stream_t* stream);
// What the stream is given next comes after the mark.
void sim_stream_wait_for(sim_stream_t* stream, sim_mark_t* mark);
// Runs a task at the call itself, on a stream that is idle.
void sim_run_at_once(sim_stream_t* stream, const sim_task_t* task);
// A new reference to the mark of the operation queued last, which must exist.
sim_mark_t* sim_stream_last_mark(sim_stream_t* stream);

// Runs what the mark needs, and returns when it is reached. Takes over the reference.
void sim_wait_for(sim_mark_t* mark);
// Brings the mark one step nearer, as the time between two queries would, and tells whether it is reached.
bool sim_poll(sim_mark_t* mark);
// The same for all work submitted to the stream so far.
bool sim_poll_stream(sim_stream_t* stream);
void sim_wait_for_device(int device);
// Called at each API call: moves random ready queues on.
void sim_turn(void);
uint64_t sim_now(void);

// Runs `function` once the current call has given the lock back.
void sim_defer(cudaHostFn_t function, void* data);
typedef struct sim_deferred sim_deferred_t;
sim_deferred_t* sim_take_deferred(void);
void sim_run_deferred(sim_deferred_t* first);

// --- Pasts: which frees a stream is known to come after (past.c) -----------------------------------------------------

// The free number `order` of a stream; 0 for none.
typedef struct sim_point {
  unsigned long long stream;
  uint64_t order;
} sim_point_t;

// Enough for a program's usual forks and joins.
#define SIM_MAX_PAST 16

struct sim_past {
  size_t refs;
  size_t count;
  sim_point_t points[SIM_MAX_PAST];
};

void sim_past_release(sim_past_t* past);
sim_past_t* sim_past_retain(sim_past_t* past);
bool sim_past_holds(const sim_past_t* past, sim_point_t point);
// The stream waits for the event's record.
void sim_past_learn(sim_stream_t* stream, const sim_event_t* event);

// --- Events (event.c) -----------------------------------------------------------------------------------------------

// One end of a dependency, kept at the other end: the node there and what the edge carries.
typedef struct sim_edge {
  sim_node_t* node;
  cudaGraphEdgeData data;
} sim_edge_t;

typedef struct sim_edges {
  sim_edge_t* items;
  size_t count;
  size_t capacity;
} sim_edges_t;

struct sim_event {
  cudaEvent_t handle;  // NULL once destroyed
  size_t refs;         // the handle, and the graph nodes that name it
  int device;
  unsigned int flags;
  bool recorded;
  sim_mark_t* mark;   // of the last eager record; NULL when the stream was idle then
  uint64_t when;      // time of a record that found its stream idle
  sim_point_t point;  // the last free of its stream before the record
  sim_past_t* past;   // what the stream came after then
  // A record inside a capture: its id and the nodes that the stream's next node would have depended on.
  unsigned long long capture_id;
  sim_edges_t nodes;
};

sim_task_t* sim_event_task(sim_task_kind_t kind, sim_event_t* event);
void sim_event_release(sim_event_t* event);
// Ends an event that has a handle.
void sim_event_destroy(sim_event_t* event);
void sim_event_set_mark(sim_event_t* event, sim_mark_t* mark);

// --- Rules and captures (rules.c, capture.c) ------------------------------------------------------------------------

typedef enum sim_rule {
#define CAPTURE_RULE(id, name, code, situation, remedy)
#define CAPTURE_GATE(id, name, code, situation, remedy) SIM_RULE_##name,
#include "rules/capture_rules.inc"
#undef CAPTURE_GATE
#undef CAPTURE_RULE
} sim_rule_t;

// The rule's number in the table: "R16".
const char* sim_rule_id(sim_rule_t rule);
cudaError_t sim_rule_code(sim_rule_t rule);
const char* sim_rule_situation(sim_rule_t rule);
const char* sim_rule_remedy(sim_rule_t rule);

// A stream's part in a capture. It outlives the stream, because work of a destroyed stream must still be joined.
struct sim_member {
  sim_capture_t* capture;
  sim_stream_t* stream;  // NULL once destroyed
  // What its next node will depend on. Waits append and may do so twice: sim_member_deps leaves each node once.
  sim_edges_t deps;
  cudaGraphNode_t* handles;  // deps as cudaStreamGetCaptureInfo gives them out
  cudaGraphEdgeData* edge_data;
  size_t handle_capacity;
  size_t edge_capacity;
};

struct sim_capture {
  unsigned long long id;
  enum cudaStreamCaptureMode mode;
  uint64_t thread;
  sim_stream_t* origin;
  sim_origin_t* begun;  // the call that began it
  sim_graph_t* graph;
  bool into_graph;  // the graph was the caller's before
  bool invalid;
  sim_member_t** members;
  size_t num_members;
  size_t member_capacity;
  sim_capture_t* next;
};

// Breaks the rule: invalidates the capture, keeps the reason, and returns the rule's code.
cudaError_t sim_capture_invalidate(sim_capture_t* capture, sim_rule_t rule);
// An unsafe call of this thread: 900, with every capture that it disturbs invalidated, or success.
cudaError_t sim_gate_unsafe(void);
// The same for the captures of other threads alone.
cudaError_t sim_gate_unsafe_beside_others(void);
// A call that no capture on the device survives, of whatever thread; on any device, if -1.
cudaError_t sim_gate_forbidden(int device);
// A use of the legacy stream: 906 while a blocking stream captures.
cudaError_t sim_gate_legacy(sim_stream_t* stream);
// A call that no stream may be given while it captures (synchronise, query, launch): 900.
cudaError_t sim_gate_not_capturing(sim_stream_t* stream);

sim_capture_t* sim_capture_find(unsigned long long id);
sim_member_t* sim_capture_join(sim_capture_t* capture, sim_stream_t* stream);
void sim_member_depend(sim_member_t* member, const sim_edges_t* nodes);
const sim_edges_t* sim_member_deps(sim_member_t* member);
void sim_capture_stream_destroyed(sim_stream_t* stream);

// --- Graphs (graph.c and graph_*.c, exec.c, program.c, update.c, user_object.c)
// ---------------------------------------

struct sim_node {
  cudaGraphNode_t handle;  // NULL in the copy that an executable keeps
  sim_graph_t* graph;
  uint64_t serial;  // never used again; ascending within a graph
  uint64_t source;  // the serial of the node that it was cloned from; 0 for none
  size_t index;     // its place in the graph, valid after sim_graph_number
  size_t first;     // of an executable's copy: its place in the program, and its last when it holds a graph
  size_t last;
  int device;
  sim_task_t* task;
  sim_graph_t* child;  // what a child graph node holds
  sim_edges_t in;      // whom it comes after, in the order in which it was told
  sim_edges_t out;
  cudaLaunchAttribute* attributes;  // of a kernel node: those that are not at their defaults
  size_t num_attributes;
  bool detached;   // in an open capture: taken out of its stream's dependencies, so nobody has to join it
  bool disabled;   // in an executable's copy
  uint64_t visit;  // scratch of graph walks
};

typedef struct sim_object_ref {
  sim_user_object_t* object;
  unsigned int count;
} sim_object_ref_t;

typedef struct sim_object_refs {
  sim_object_ref_t* items;
  size_t count;
  size_t capacity;
} sim_object_refs_t;

struct sim_graph {
  cudaGraph_t handle;  // NULL in the copy that an executable keeps
  uint64_t serial;     // never used again
  sim_node_t* owner;   // the child graph node that holds it
  bool moved;          // into that node, whole, instead of being copied
  sim_node_t** nodes;  // by ascending serial
  size_t num_nodes;
  size_t node_capacity;
  size_t num_edges;
  size_t num_memory_nodes;  // with those of the graphs it holds
  uint64_t source;          // the serial of the graph that it was cloned from; 0 for none
  sim_object_refs_t objects;
  bool capturing;           // belongs to an open capture
  sim_exec_t* memory_exec;  // the one executable that a graph with memory nodes may have
};

sim_graph_t* sim_graph_create(void);
void sim_graph_destroy(sim_graph_t* graph);
// Adds a node for the thread's device; takes over the task's reference.
sim_node_t* sim_graph_add(sim_graph_t* graph, sim_task_t* task, const sim_edge_t* deps, size_t num_deps);

// What an executable runs: a graph frozen at instantiation or update, with the graphs that its nodes hold laid out flat
// in place of those nodes: an empty entry before a held graph, one after it, and its nodes between, so that they run
// beside all that nothing orders against them. Launches in flight keep their program; a changed one is a copy.
struct sim_program {
  size_t refs;
  size_t num_nodes;
  sim_task_t** tasks;
  uint32_t* num_deps;
  uint32_t* first_successor;  // num_nodes + 1 offsets into successors
  uint32_t* successors;
  uint32_t* memory;  // the nodes that allocate and free
  size_t num_memory;
  size_t num_host;  // host functions among the tasks
  bool has_events;
  sim_object_refs_t objects;
  struct sim_chains* chains;  // made at the first launch
};

// One launch of a program on its way through a stream.
struct sim_launch {
  sim_program_t* program;
  uint32_t* deps_left;
  uint32_t* ready;  // nodes whose dependencies are done
  size_t num_ready;
  size_t num_ready_host;  // host functions among them
  size_t num_left;
  sim_mark_t** marks;  // for event nodes: what is waited for, or what is reached; NULL when there is none
  sim_origin_t* origin;
  sim_stamp_t start;    // of the launch, when it has more than one chain
  sim_stamp_t* stamps;  // of nodes that others in other chains wait for
};

sim_launch_t* sim_launch_create(sim_program_t* program, sim_stream_t* stream);
void sim_launch_destroy(sim_launch_t* launch);
// Takes the node at `pick` from those that are ready.
uint32_t sim_launch_take(sim_launch_t* launch, size_t pick);
// Node `node` is done: its successors may become ready.
void sim_launch_node_done(sim_launch_t* launch, uint32_t node);

void sim_object_refs_copy(sim_object_refs_t* to, const sim_object_refs_t* from);
void sim_object_refs_clear(sim_object_refs_t* refs);

// --- Kernels (kernel.c) ----------------------------------------------------------------------------------------------

// How much dynamic shared memory a launch of the kernel may ask for. Fails with what a function that is no kernel
// earns.
cudaError_t sim_kernel_max_shared(const void* function, size_t* out);
// Blocks of so many threads, with so much shared memory each, that a multiprocessor holds at a time.
size_t sim_occupancy(size_t threads, size_t shared_bytes);
// All blocks of a cooperative grid must be on the device at a time.
cudaError_t sim_judge_cooperative(dim3 grid, dim3 block, size_t shared_bytes);

// Makes the task of a launch; on failure returns NULL and sets the code.
sim_task_t* sim_kernel_task(const void* function, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                            cudaError_t* code);

// The same for a copy; fills in its types of memory.
sim_task_t* sim_copy_task(sim_copy_t* copy, cudaError_t* code);
// The same for a fill.
sim_task_t* sim_fill_task(const sim_fill_t* fill, cudaError_t* code);
// Is there memory, device or pinned, for all of the fill?
bool sim_fill_has_memory(const sim_fill_t* fill);
// The copy that the parameters describe, with positions folded into the addresses.
sim_copy_t sim_copy_of_params(const struct cudaMemcpy3DParms* params);
// Do the copied box and what the caller says of the memory around it go together?
cudaError_t sim_judge_copy_params(const struct cudaMemcpy3DParms* params);

#endif  // GCAP_SIM_CUDART_CORE_H_
