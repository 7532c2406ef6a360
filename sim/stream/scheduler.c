// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The scheduler: queues of streams, what is ready in them, and who moves when.
//
// The idea: an operation waits for the one before it in its stream and for marks in other streams. A synchronisation
// follows the marks backwards and runs only what it needs. Besides, each API call gives a seeded generator the chance
// to move a few ready queues on, so that one seed is one interleaving, and work without an ordering really runs
// unordered. Host functions run on a thread of their own, as on a GPU: a caller may hold a lock that such a function
// wants. That thread also looks whether the program waits without a call, for bytes that pending work writes, say.
//
// Invariants: a stream is among the busy ones exactly while its queue is not empty; a mark that is not reached belongs
// to an operation in a queue; marks only point to older work, so the walk over blockers ends. Locking: the global
// mutex; `progress` tells of finished host functions, `wanted` of work for the host thread.
#include "sim/stream/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "sim/api/fault.h"
#include "sim/api/turns.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/random.h"
#include "sim/base/silence.h"
#include "sim/base/thread.h"
#include "sim/bridge/chains.h"
#include "sim/bridge/order.h"
#include "sim/bridge/task_access.h"
#include "sim/check/suspect.h"
#include "sim/device/device.h"
#include "sim/graph/program.h"
#include "sim/stream/mark.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

// How long the program may be silent, with host functions pending, until time passes by itself. Long against the pause
// between two API calls, short against a test's patience.
enum { kIdleMs = 100 };
// A thread that spins is not silent, but may wait all the same: after so many pauses, and as much processor time, it
// counts as silent.
enum { kMaxPauses = 20 };
// The same with no host function pending: nobody but the program's own loop can be waiting, and a program that computes
// between two calls is not to be disturbed. So many pauses of so long.
enum { kLongIdleMs = 500, kLongPauses = 2 };

// A host function on its way to the host thread.
typedef struct host_call {
  struct host_call* next;
  gcap_sim_stream_t* stream;
  gcap_sim_task_t* task;
  uint32_t node;  // of the launch at the stream's head, if that is a launch
} host_call_t;

static struct {
  bool ready;
  gcap_sim_schedule_t schedule;
  uint64_t now;       // operations done so far: the simulated time
  uint64_t activity;  // API calls so far
  gcap_sim_stream_t** busy;
  size_t num_busy;
  size_t busy_capacity;
} scheduler;

static struct {
  bool started;
  bool is_forked;   // this process is a child of one that had made calls
  size_t pending;   // host functions in queues, submitted and not done
  uint64_t handed;  // host functions handed to the thread so far, which takes them in this order
  uint64_t done;
  host_call_t* first;
  host_call_t* last;
  gcap_sim_thread_t* thread;  // its record: the leak checker of a forked child finds no stack of the thread to look at
  pthread_cond_t wanted;
  pthread_cond_t progress;
} host = {.wanted = PTHREAD_COND_INITIALIZER, .progress = PTHREAD_COND_INITIALIZER};

// --- Seed and schedule ----------------------------------------------------------------------------------------------

static gcap_sim_schedule_t schedule_from_environment(void) {
  const char* name = getenv("GCAP_SIM_SCHEDULE");
  if (name == NULL || strcmp(name, "random") == 0) return GCAP_SIM_SCHEDULE_RANDOM;
  if (strcmp(name, "lazy") == 0) return GCAP_SIM_SCHEDULE_LAZY;
  if (strcmp(name, "eager") == 0) return GCAP_SIM_SCHEDULE_EAGER;
  gcap_sim_die_of_setting("GCAP_SIM_SCHEDULE is '%s', expected lazy, eager or random", name);
}

static void prepare(void) {
  if (scheduler.ready) return;
  scheduler.ready = true;
  scheduler.schedule = schedule_from_environment();
}

gcap_sim_schedule_t gcap_sim_set_schedule(gcap_sim_schedule_t schedule) {
  prepare();
  gcap_sim_schedule_t before = scheduler.schedule;
  scheduler.schedule = schedule;
  return before;
}

void gcap_sim_set_seed(uint64_t seed) {
  gcap_sim_lock();
  gcap_sim_random_seed(seed);
  gcap_sim_unlock();
}

static size_t random_below(size_t bound) { return gcap_sim_random_below(GCAP_SIM_RANDOM_SCHEDULE, bound); }

uint64_t gcap_sim_now(void) { return scheduler.now; }

// --- Marks ----------------------------------------------------------------------------------------------------------

static void reach(gcap_sim_mark_t* mark) {
  mark->done = true;
  mark->stream = NULL;
  mark->when = scheduler.now;
}

// --- Queues ---------------------------------------------------------------------------------------------------------

static void add_busy(gcap_sim_stream_t* stream) {
  gcap_sim_reserve(&scheduler.busy, &scheduler.busy_capacity, scheduler.num_busy + 1, sizeof(gcap_sim_stream_t*));
  stream->busy_index = scheduler.num_busy;
  scheduler.busy[scheduler.num_busy++] = stream;
}

static void remove_busy(gcap_sim_stream_t* stream) {
  gcap_sim_stream_t* last = scheduler.busy[--scheduler.num_busy];
  scheduler.busy[stream->busy_index] = last;
  last->busy_index = stream->busy_index;
}

static gcap_sim_mark_t* op_mark(gcap_sim_stream_t* stream, gcap_sim_op_t* op) {
  if (op->mark == NULL) op->mark = gcap_sim_mark_create(stream);
  return op->mark;
}

static bool is_blocking(const gcap_sim_stream_t* stream) {
  return !stream->legacy && (stream->flags & cudaStreamNonBlocking) == 0;
}

static void op_wait(gcap_sim_stream_t* stream, gcap_sim_op_t* op, size_t* capacity, gcap_sim_mark_t* mark) {
  if (mark == NULL || (mark->done && gcap_sim_order_knows(stream, mark))) return;
  gcap_sim_reserve(&op->waits, capacity, op->num_waits + 1, sizeof(gcap_sim_mark_t*));
  op->waits[op->num_waits++] = gcap_sim_mark_retain(mark);
}

// The legacy stream waits for all blocking streams of its device, and each of them for the legacy stream.
static void wait_implicitly(gcap_sim_stream_t* stream, gcap_sim_op_t* op, size_t* capacity) {
  if (is_blocking(stream)) {
    gcap_sim_stream_t* legacy = gcap_sim_legacy_stream(stream->device);
    if (legacy->tail != NULL) op_wait(stream, op, capacity, op_mark(legacy, legacy->tail));
  }
  if (!stream->legacy) return;
  for (size_t i = 0; i < scheduler.num_busy; ++i) {
    gcap_sim_stream_t* other = scheduler.busy[i];
    if (other->device != stream->device || !is_blocking(other)) continue;
    op_wait(stream, op, capacity, op_mark(other, other->tail));
  }
}

static size_t host_functions(const gcap_sim_task_t* task, const gcap_sim_kernel_launch_t* launch) {
  if (launch != NULL) return launch->program->num_host;
  return task != NULL && task->kind == GCAP_SIM_TASK_HOST ? 1 : 0;
}

static void* host_thread(void* unused);

static void start_host_thread(void) {
  pthread_t thread;
  if (host.started || pthread_create(&thread, NULL, host_thread, NULL) != 0) return;
  pthread_detach(thread);
  host.started = true;
}

static void need_host_thread(void) {
  start_host_thread();
  if (!host.started) gcap_sim_die("cannot start the thread of host functions");
}

void gcap_sim_scheduler_forked(void) {
  host.started = false;
  host.is_forked = true;
  pthread_cond_init(&host.wanted, NULL);
  pthread_cond_init(&host.progress, NULL);
}

static void expect_host_functions(size_t count) {
  if (count == 0) return;
  host.pending += count;
  need_host_thread();
  pthread_cond_signal(&host.wanted);
}

void gcap_sim_enqueue(gcap_sim_stream_t* stream, gcap_sim_task_t* task, gcap_sim_kernel_launch_t* launch,
                      gcap_sim_mark_t* wait) {
  gcap_sim_op_t* op = gcap_sim_calloc(1, sizeof(*op));
  size_t capacity = 0;
  op->task = task;
  op->launch = launch;
  gcap_sim_order_submit(op);
  op_wait(stream, op, &capacity, wait);
  wait_implicitly(stream, op, &capacity);
  if (stream->tail != NULL) {
    stream->tail->next = op;
  } else {
    stream->head = op;
    add_busy(stream);
  }
  stream->tail = op;
  // A forked child gets the thread for host functions alone: sanitizers refuse new threads in one.
  if (!host.is_forked) start_host_thread();
  expect_host_functions(host_functions(task, launch));
}

// A blocking stream with work, for the legacy stream to wait for.
static gcap_sim_stream_t* busy_blocking_stream(int device) {
  for (size_t i = 0; i < scheduler.num_busy; ++i) {
    if (scheduler.busy[i]->device == device && is_blocking(scheduler.busy[i])) return scheduler.busy[i];
  }
  return NULL;
}

gcap_sim_mark_t* gcap_sim_stream_tail_mark(gcap_sim_stream_t* stream) {
  if (stream->legacy && busy_blocking_stream(stream->device) != NULL) gcap_sim_enqueue(stream, NULL, NULL, NULL);
  if (stream->tail != NULL) return gcap_sim_mark_retain(op_mark(stream, stream->tail));
  gcap_sim_mark_t* mark = gcap_sim_mark_create(NULL);
  reach(mark);
  gcap_sim_order_mark_idle(stream, mark);
  return mark;
}

// Is there work that orders itself before whatever the stream is given next, though it is not in its queue?
static bool is_held_implicitly(const gcap_sim_stream_t* stream) {
  if (stream->legacy) return busy_blocking_stream(stream->device) != NULL;
  return is_blocking(stream) && gcap_sim_legacy_stream(stream->device)->tail != NULL;
}

gcap_sim_mark_t* gcap_sim_stream_record_mark(gcap_sim_stream_t* stream) {
  if (is_held_implicitly(stream)) gcap_sim_enqueue(stream, NULL, NULL, NULL);
  if (stream->tail == NULL) gcap_sim_order_implicitly(stream);
  return gcap_sim_stream_tail_mark(stream);
}

void gcap_sim_stream_wait_for(gcap_sim_stream_t* stream, gcap_sim_mark_t* mark) {
  if (stream->head != NULL || !mark->done || is_held_implicitly(stream)) {
    gcap_sim_enqueue(stream, NULL, NULL, mark);
    return;
  }
  // What is done already needs no place in an idle queue, but the stream comes after it all the same.
  gcap_sim_order_implicitly(stream);
  gcap_sim_order_wait(stream, mark);
}

gcap_sim_mark_t* gcap_sim_stream_last_mark(gcap_sim_stream_t* stream) {
  return gcap_sim_mark_retain(op_mark(stream, stream->tail));
}

static void finish_head(gcap_sim_stream_t* stream) {
  gcap_sim_op_t* op = stream->head;
  ++scheduler.now;
  gcap_sim_order_finish(stream, op);
  if (op->mark != NULL) reach(op->mark);
  gcap_sim_mark_release(op->mark);
  gcap_sim_task_release(op->task);
  if (op->launch != NULL) gcap_sim_launch_destroy(op->launch);
  free(op->waits);
  stream->head = op->next;
  free(op);
  if (stream->head != NULL) return;
  stream->tail = NULL;
  remove_busy(stream);
  if (stream->destroyed) gcap_sim_stream_retire(stream);
}

// --- What can move --------------------------------------------------------------------------------------------------

static bool node_blocked(const gcap_sim_kernel_launch_t* launch, uint32_t node) {
  return launch->program->tasks[node]->kind == GCAP_SIM_TASK_EVENT_WAIT && launch->marks[node] != NULL &&
         !launch->marks[node]->done;
}

// The mark that keeps the head of the queue where it is; NULL when it can run.
static gcap_sim_mark_t* blocker(gcap_sim_stream_t* stream) {
  gcap_sim_op_t* op = stream->head;
  while (op->num_waits && op->waits[op->num_waits - 1]->done) {
    gcap_sim_order_wait(stream, op->waits[--op->num_waits]);
    gcap_sim_mark_release(op->waits[op->num_waits]);
  }
  if (op->num_waits) return op->waits[op->num_waits - 1];
  if (op->launch == NULL || op->launch->num_left == 0) return NULL;
  gcap_sim_mark_t* mark = NULL;
  for (size_t i = 0; i < op->launch->num_ready; ++i) {
    uint32_t node = op->launch->ready[i];
    if (!node_blocked(op->launch, node)) return NULL;
    mark = op->launch->marks[node];
  }
  return mark;
}

// Would a step hand something to the host thread?
static bool head_is_host_function(const gcap_sim_stream_t* stream) {
  const gcap_sim_op_t* op = stream->head;
  if (op->launch == NULL) return op->task != NULL && op->task->kind == GCAP_SIM_TASK_HOST;
  return op->launch->num_ready_host > 0;
}

// --- Steps ----------------------------------------------------------------------------------------------------------

// What a wait has seen of the program: the pauses in a row, and the processor time when the first one began.
typedef struct quiet {
  size_t pauses;
  uint64_t began_ms;
} quiet_t;

// Is the program silent, as one is that waits by means of its own? Either all sleep, or it has spun for so many pauses.
static bool is_silent(const quiet_t* quiet, size_t max_pauses, unsigned pause_ms) {
  const bool spins = quiet->pauses >= max_pauses && gcap_sim_processor_ms() - quiet->began_ms >= max_pauses * pause_ms;
  return spins || gcap_sim_others_sleep();
}

// Waits until the host function last handed over is done, so that it never runs beside its caller and one seed stays
// one interleaving. Unless it waits for the caller in its turn: then both go on, as they would on a GPU.
static void await_host_function(void) {
  uint64_t ticket = host.handed;
  quiet_t quiet = {.began_ms = gcap_sim_processor_ms()};
  while (host.done < ticket) {
    if (gcap_sim_wait_ms(&host.progress, kIdleMs) || host.done >= ticket) continue;
    ++quiet.pauses;
    if (is_silent(&quiet, kMaxPauses, kIdleMs)) return;
  }
}

static void hand_to_host(gcap_sim_stream_t* stream, gcap_sim_task_t* task, uint32_t node) {
  host_call_t* call = gcap_sim_calloc(1, sizeof(*call));
  call->stream = stream;
  call->task = gcap_sim_task_retain(task);
  call->node = node;
  stream->running = true;
  if (host.last != NULL) {
    host.last->next = call;
  } else {
    host.first = call;
  }
  host.last = call;
  ++host.handed;
  need_host_thread();  // it does not live on in a forked child
  pthread_cond_signal(&host.wanted);
  if (!gcap_sim_thread()->runs_host_functions) await_host_function();
}

static void run_task(gcap_sim_stream_t* stream, const gcap_sim_task_t* task, uint32_t node) {
  if (gcap_sim_access_begin(stream, task, node)) gcap_sim_task_run(task);
  gcap_sim_access_end();
}

void gcap_sim_run_at_once(gcap_sim_stream_t* stream, const gcap_sim_task_t* task) {
  if (gcap_sim_access_begin_at_once(stream, task)) gcap_sim_task_run(task);
  gcap_sim_access_end();
}

static void node_done(gcap_sim_stream_t* stream, uint32_t node) {
  gcap_sim_kernel_launch_t* launch = stream->head->launch;
  ++scheduler.now;
  gcap_sim_order_finish_node(stream, launch, node);
  gcap_sim_launch_node_done(launch, node);
  if (launch->num_left == 0) finish_head(stream);
}

// Runs one node of the launch at the head; which one of those that can run, the seed decides.
static void step_launch(gcap_sim_stream_t* stream) {
  gcap_sim_kernel_launch_t* launch = stream->head->launch;
  if (launch->num_left == 0) {
    finish_head(stream);
    return;
  }
  size_t pick = random_below(launch->num_ready);
  while (node_blocked(launch, launch->ready[pick])) pick = (pick + 1) % launch->num_ready;
  uint32_t node = gcap_sim_launch_take(launch, pick);
  gcap_sim_task_t* task = launch->program->tasks[node];
  gcap_sim_order_begin_node(stream, launch, node);
  if (task->kind == GCAP_SIM_TASK_HOST && !gcap_sim_fault_stops_work()) {
    hand_to_host(stream, task, node);
    return;
  }
  if (task->kind == GCAP_SIM_TASK_HOST) --host.pending;
  if (task->kind != GCAP_SIM_TASK_EVENT_RECORD) run_task(stream, task, node);
  if (task->kind == GCAP_SIM_TASK_EVENT_RECORD) gcap_sim_order_mark_node(stream, launch, node);
  if (task->kind == GCAP_SIM_TASK_EVENT_RECORD || gcap_sim_task_holds_host(task)) reach(launch->marks[node]);
  node_done(stream, node);
}

// Runs one piece of work of a stream whose head can run.
static void step(gcap_sim_stream_t* stream) {
  gcap_sim_op_t* op = stream->head;
  if (!op->begun) gcap_sim_order_begin(stream, op);
  if (op->launch != NULL) {
    step_launch(stream);
  } else if (op->task != NULL && op->task->kind == GCAP_SIM_TASK_HOST && !gcap_sim_fault_stops_work()) {
    hand_to_host(stream, op->task, 0);
  } else {
    if (op->task != NULL && op->task->kind == GCAP_SIM_TASK_HOST) --host.pending;
    if (op->task != NULL) run_task(stream, op->task, 0);
    finish_head(stream);
  }
}

static bool can_step(gcap_sim_stream_t* stream) { return !stream->running && blocker(stream) == NULL; }

// Moves a random queue, if the one drawn is ready. Host functions wait for a synchronisation, a query or silence.
static void random_step(void) {
  if (scheduler.num_busy == 0) return;
  gcap_sim_stream_t* stream = scheduler.busy[random_below(scheduler.num_busy)];
  if (can_step(stream) && !head_is_host_function(stream)) step(stream);
}

static void run_all_ready(bool with_host_functions) {
  for (size_t i = 0; i < scheduler.num_busy;) {
    gcap_sim_stream_t* stream = scheduler.busy[i];
    if (can_step(stream) && (with_host_functions || !head_is_host_function(stream))) {
      step(stream);
      i = 0;  // a step may unblock any queue, and removes its own when it is done
    } else {
      ++i;
    }
  }
}

void gcap_sim_turn(void) {
  prepare();
  ++scheduler.activity;
  if (scheduler.schedule == GCAP_SIM_SCHEDULE_EAGER) run_all_ready(true);
  if (scheduler.schedule != GCAP_SIM_SCHEDULE_RANDOM) return;
  // At every other call nothing, so that what was just issued is often still pending; else up to five steps, which is
  // enough that queues drain in a long run.
  if (random_below(2) == 0) return;
  for (size_t steps = 1 + random_below(5); steps > 0; --steps) random_step();
}

// Is there work behind a host function that has not run, or is not done?
static bool is_held_by_host_function(void) {
  for (size_t i = 0; i < scheduler.num_busy; ++i) {
    gcap_sim_stream_t* stream = scheduler.busy[i];
    if (stream->running || (can_step(stream) && head_is_host_function(stream))) return true;
  }
  return false;
}

// The host has seen work done. Of a read among it that found bytes unwritten, the cause is a race if pending work
// writes them: that work runs now. What the host submits from now on comes after the read, so no other cause will be
// found. Work behind a host function cannot run yet: a later wait tells.
static void settle_suspects(void) {
  const gcap_sim_clock_t* clock = gcap_sim_order_host();
  if (!gcap_sim_suspect_known(clock)) return;
  run_all_ready(false);
  if (!is_held_by_host_function()) gcap_sim_suspect_tell(clock);
}

// --- Waiting --------------------------------------------------------------------------------------------------------

// The stream that must move for the mark to be reached; NULL while a host function on the way is running.
static gcap_sim_stream_t* next_to_move(const gcap_sim_mark_t* mark) {
  for (;;) {
    if (mark->stream->running) return NULL;
    const gcap_sim_mark_t* before = blocker(mark->stream);
    if (before == NULL) return mark->stream;
    mark = before;
  }
}

// Lets other threads go on until a host function is done, those that take turns with this one included: one of them may
// be what that function waits for.
static void await_progress(void) {
  gcap_sim_thread_t* thread = gcap_sim_thread();
  gcap_sim_turns_step_out(thread);
  pthread_cond_wait(&host.progress, gcap_sim_mutex());
  gcap_sim_turns_step_in(thread);
}

// The marks on the way from the one that is wanted to the one that can move: the way is kept, since a chain of waits
// may be as long as there are streams.
typedef struct way {
  gcap_sim_mark_t** marks;
  size_t count;
  size_t capacity;
} way_t;

static void way_push(way_t* way, gcap_sim_mark_t* mark) {
  gcap_sim_reserve(&way->marks, &way->capacity, way->count + 1, sizeof(gcap_sim_mark_t*));
  way->marks[way->count++] = mark;
}

// The stream that must move next; NULL when there is none, because the mark is reached or a host function is running.
static gcap_sim_stream_t* way_end(way_t* way) {
  while (way->count > 0) {
    gcap_sim_mark_t* mark = way->marks[way->count - 1];
    if (mark->done) {
      gcap_sim_mark_release(mark);
      --way->count;
      continue;
    }
    if (mark->stream->running) return NULL;
    gcap_sim_mark_t* before = blocker(mark->stream);
    if (before == NULL) return mark->stream;
    way_push(way, gcap_sim_mark_retain(before));
  }
  return NULL;
}

void gcap_sim_run_until(gcap_sim_mark_t* mark) {
  way_t way = {NULL, 0, 0};
  if (mark != NULL && !mark->done) way_push(&way, gcap_sim_mark_retain(mark));
  for (;;) {
    gcap_sim_stream_t* stream = way_end(&way);
    if (way.count == 0) break;
    if (stream == NULL) {
      await_progress();
      continue;
    }
    step(stream);
    if (scheduler.schedule == GCAP_SIM_SCHEDULE_RANDOM && random_below(4) == 0) random_step();
  }
  free(way.marks);
}

void gcap_sim_wait_for(gcap_sim_mark_t* mark) {
  gcap_sim_run_until(mark);
  if (mark != NULL) gcap_sim_order_host_saw(mark);
  gcap_sim_mark_release(mark);
  settle_suspects();
  gcap_sim_fault_surface();
}

static void step_towards(const gcap_sim_mark_t* mark) {
  gcap_sim_stream_t* stream = next_to_move(mark);
  if (stream != NULL) step(stream);
}

// Is the question asked before the work has moved? Only the eager schedule knows a device that is always ahead.
static bool asks_early(void) {
  if (scheduler.schedule == GCAP_SIM_SCHEDULE_RANDOM) return random_below(2) == 0;
  return scheduler.schedule == GCAP_SIM_SCHEDULE_LAZY;
}

bool gcap_sim_poll(gcap_sim_mark_t* mark) {
  gcap_sim_mark_retain(mark);  // a step may give up the lock
  bool pending = mark != NULL && !mark->done;
  bool early = pending && asks_early();
  if (pending && !early) step_towards(mark);
  bool done = mark == NULL || mark->done;
  if (mark != NULL && done) gcap_sim_order_host_saw(mark);
  if (early) step_towards(mark);
  gcap_sim_mark_release(mark);
  if (done) settle_suspects();
  if (done) gcap_sim_fault_surface();
  return done;
}

static gcap_sim_stream_t* pending(gcap_sim_stream_t* stream) {
  if (stream->head != NULL) return stream;
  return stream->legacy ? busy_blocking_stream(stream->device) : NULL;
}

bool gcap_sim_poll_stream(gcap_sim_stream_t* stream) {
  gcap_sim_stream_t* busy = pending(stream);
  if (busy == NULL) {
    gcap_sim_order_host_saw_stream(stream);
    return gcap_sim_poll(NULL);
  }
  bool legacy = stream->legacy;  // only that one is sure to outlive the step
  gcap_sim_mark_t* mark = gcap_sim_mark_retain(op_mark(busy, busy->tail));
  bool done = gcap_sim_poll(mark);
  gcap_sim_mark_release(mark);
  if (!legacy) return done;
  done = done && pending(stream) == NULL;
  if (done) gcap_sim_order_host_saw_stream(stream);
  return done;
}

void gcap_sim_wait_for_device(int device) {
  size_t count = 0;
  gcap_sim_mark_t** marks = gcap_sim_calloc(scheduler.num_busy, sizeof(gcap_sim_mark_t*));
  for (size_t i = 0; i < scheduler.num_busy; ++i) {
    gcap_sim_stream_t* stream = scheduler.busy[i];
    if (stream->device == device) marks[count++] = gcap_sim_mark_retain(op_mark(stream, stream->tail));
  }
  for (size_t i = 0; i < count; ++i) gcap_sim_wait_for(marks[i]);
  free(marks);
  gcap_sim_order_host_saw_device(device);
  settle_suspects();
  gcap_sim_fault_surface();
}

// --- The host thread ------------------------------------------------------------------------------------------------

// Waits until there is a host function to run. When the program falls silent with work pending, it may be waiting for
// that by means of its own, so the queues advance by themselves then.
static void wait_for_host_call(quiet_t* quiet) {
  const bool any = host.pending > 0;
  const unsigned pause_ms = any ? kIdleMs : kLongIdleMs;
  const uint64_t activity = scheduler.activity;
  if (gcap_sim_wait_ms(&host.wanted, pause_ms) || activity != scheduler.activity || scheduler.num_busy == 0) {
    *quiet = (quiet_t){.began_ms = gcap_sim_processor_ms()};
    return;
  }
  ++quiet->pauses;
  if (!any && quiet->pauses < kLongPauses) return;
  if (is_silent(quiet, any ? kMaxPauses : kLongPauses, pause_ms)) run_all_ready(true);
}

static void run_host_call(host_call_t* call) {
  gcap_sim_access_begin_host_function(call->stream, call->task, call->node);
  gcap_sim_unlock();
  call->task->u.host.function(call->task->u.host.data);
  gcap_sim_lock();
  gcap_sim_access_end();
  gcap_sim_task_release(call->task);
  call->stream->running = false;
  --host.pending;
  if (call->stream->head->launch != NULL) {
    node_done(call->stream, call->node);
  } else {
    finish_head(call->stream);
  }
  gcap_sim_unlock();  // runs what this has deferred, before whoever waits goes on
  gcap_sim_lock();
  ++host.done;
  pthread_cond_broadcast(&host.progress);
}

static void* host_thread(void* unused) {
  (void)unused;
  gcap_sim_thread_t* thread = gcap_sim_thread();
  thread->in_host_function = true;
  thread->runs_host_functions = true;
  gcap_sim_lock();
  host.thread = thread;
  for (quiet_t quiet = {.began_ms = gcap_sim_processor_ms()};;) {
    host_call_t* call = host.first;
    if (call == NULL) {
      wait_for_host_call(&quiet);
      gcap_sim_unlock();  // runs what was deferred meanwhile
      gcap_sim_lock();
      continue;
    }
    host.first = call->next;
    if (host.first == NULL) host.last = NULL;
    run_host_call(call);
    free(call);
  }
  return NULL;
}
