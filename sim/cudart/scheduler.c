// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The scheduler: queues of streams, what is ready in them, and who moves when.
//
// The idea: an operation waits for the one before it in its stream and for marks in other streams. A synchronisation
// follows the marks backwards and runs only what it needs. Besides, each API call gives a seeded generator the chance
// to move a few ready queues on, so that one seed is one interleaving, and work without an ordering really runs
// unordered. Host functions run on a thread of their own, as on a GPU: a caller may hold a lock that such a function
// wants.
//
// Invariants: a stream is among the busy ones exactly while its queue is not empty; a mark that is not reached belongs
// to an operation in a queue; marks only point to older work, so the walk over blockers ends. Locking: the global
// mutex; `progress` tells of finished host functions, `wanted` of work for the host thread.
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "core.h"

// How long the program may be silent, with host functions pending, until time passes by itself. Long against the pause
// between two API calls, short against a test's patience.
#define IDLE_MS 100
// A thread that spins is not silent, but may wait all the same: after so many pauses it counts as silent.
#define MAX_PAUSES 20

// A host function on its way to the host thread.
typedef struct host_call {
  struct host_call* next;
  sim_stream_t* stream;
  sim_task_t* task;
  uint32_t node;  // of the launch at the stream's head, if that is a launch
} host_call_t;

struct sim_deferred {
  struct sim_deferred* next;
  cudaHostFn_t function;
  void* data;
};

static struct {
  bool ready;
  sim_schedule_t schedule;
  uint64_t now;       // operations done so far: the simulated time
  uint64_t activity;  // API calls so far
  sim_stream_t** busy;
  size_t num_busy;
  size_t busy_capacity;
  sim_deferred_t* deferred;
  sim_deferred_t* last_deferred;  // valid while there is a first
} scheduler;

static struct {
  bool started;
  size_t pending;   // host functions in queues, submitted and not done
  uint64_t handed;  // host functions handed to the thread so far, which takes them in this order
  uint64_t done;
  host_call_t* first;
  host_call_t* last;
  pthread_cond_t wanted;
  pthread_cond_t progress;
} host = {.wanted = PTHREAD_COND_INITIALIZER, .progress = PTHREAD_COND_INITIALIZER};

// --- Seed and schedule ----------------------------------------------------------------------------------------------

static sim_schedule_t schedule_from_environment(void) {
  const char* name = getenv("GCAP_SIM_SCHEDULE");
  if (!name || strcmp(name, "random") == 0) return SIM_SCHEDULE_RANDOM;
  if (strcmp(name, "lazy") == 0) return SIM_SCHEDULE_LAZY;
  if (strcmp(name, "eager") == 0) return SIM_SCHEDULE_EAGER;
  sim_die("GCAP_SIM_SCHEDULE is '%s', expected lazy, eager or random", name);
}

static void prepare(void) {
  if (scheduler.ready) return;
  scheduler.ready = true;
  scheduler.schedule = schedule_from_environment();
}

sim_schedule_t sim_set_schedule(sim_schedule_t schedule) {
  prepare();
  sim_schedule_t before = scheduler.schedule;
  scheduler.schedule = schedule;
  return before;
}

void gcap_sim_set_seed(uint64_t seed) {
  sim_lock();
  sim_random_seed(seed);
  sim_unlock();
}

static size_t random_below(size_t bound) { return sim_random_below(SIM_RANDOM_SCHEDULE, bound); }

uint64_t sim_now(void) { return scheduler.now; }

// --- Marks ----------------------------------------------------------------------------------------------------------

sim_mark_t* sim_mark_create(sim_stream_t* stream) {
  sim_mark_t* mark = sim_calloc(1, sizeof(*mark));
  mark->refs = 1;
  mark->stream = stream;
  return mark;
}

sim_mark_t* sim_mark_retain(sim_mark_t* mark) {
  if (mark) mark->refs += 1;
  return mark;
}

void sim_mark_release(sim_mark_t* mark) {
  if (!mark || --mark->refs > 0) return;
  sim_stamp_release(&mark->stamp);
  free(mark);
}

static void reach(sim_mark_t* mark) {
  mark->done = true;
  mark->stream = NULL;
  mark->when = scheduler.now;
}

// --- Queues ---------------------------------------------------------------------------------------------------------

static void add_busy(sim_stream_t* stream) {
  sim_reserve(&scheduler.busy, &scheduler.busy_capacity, scheduler.num_busy + 1, sizeof(sim_stream_t*));
  stream->busy_index = scheduler.num_busy;
  scheduler.busy[scheduler.num_busy++] = stream;
}

static void remove_busy(sim_stream_t* stream) {
  sim_stream_t* last = scheduler.busy[--scheduler.num_busy];
  scheduler.busy[stream->busy_index] = last;
  last->busy_index = stream->busy_index;
}

static sim_mark_t* op_mark(sim_stream_t* stream, sim_op_t* op) {
  if (!op->mark) op->mark = sim_mark_create(stream);
  return op->mark;
}

static bool is_blocking(const sim_stream_t* stream) {
  return !stream->legacy && (stream->flags & cudaStreamNonBlocking) == 0;
}

static void op_wait(sim_stream_t* stream, sim_op_t* op, size_t* capacity, sim_mark_t* mark) {
  if (!mark || (mark->done && sim_order_knows(stream, mark))) return;
  sim_reserve(&op->waits, capacity, op->num_waits + 1, sizeof(sim_mark_t*));
  op->waits[op->num_waits++] = sim_mark_retain(mark);
}

// The legacy stream waits for all blocking streams of its device, and each of them for the legacy stream.
static void wait_implicitly(sim_stream_t* stream, sim_op_t* op, size_t* capacity) {
  if (is_blocking(stream)) {
    sim_stream_t* legacy = sim_legacy_stream(stream->device);
    if (legacy->tail) op_wait(stream, op, capacity, op_mark(legacy, legacy->tail));
  }
  if (!stream->legacy) return;
  for (size_t i = 0; i < scheduler.num_busy; ++i) {
    sim_stream_t* other = scheduler.busy[i];
    if (other->device != stream->device || !is_blocking(other)) continue;
    op_wait(stream, op, capacity, op_mark(other, other->tail));
  }
}

static size_t host_functions(const sim_task_t* task, const sim_launch_t* launch) {
  if (launch) return launch->program->num_host;
  return task && task->kind == SIM_TASK_HOST ? 1 : 0;
}

static void* host_thread(void* unused);

static void start_host_thread(void) {
  if (host.started) return;
  pthread_t thread;
  if (pthread_create(&thread, NULL, host_thread, NULL) != 0) sim_die("cannot start the thread of host functions");
  pthread_detach(thread);
  host.started = true;
}

void sim_scheduler_forked(void) {
  host.started = false;
  pthread_cond_init(&host.wanted, NULL);
  pthread_cond_init(&host.progress, NULL);
}

static void expect_host_functions(size_t count) {
  if (count == 0) return;
  host.pending += count;
  start_host_thread();
  pthread_cond_signal(&host.wanted);
}

void sim_enqueue(sim_stream_t* stream, sim_task_t* task, sim_launch_t* launch, sim_mark_t* wait) {
  sim_op_t* op = sim_calloc(1, sizeof(*op));
  size_t capacity = 0;
  op->task = task;
  op->launch = launch;
  sim_order_submit(op);
  op_wait(stream, op, &capacity, wait);
  wait_implicitly(stream, op, &capacity);
  if (stream->tail) {
    stream->tail->next = op;
  } else {
    stream->head = op;
    add_busy(stream);
  }
  stream->tail = op;
  expect_host_functions(host_functions(task, launch));
}

// A blocking stream with work, for the legacy stream to wait for.
static sim_stream_t* busy_blocking_stream(int device) {
  for (size_t i = 0; i < scheduler.num_busy; ++i) {
    if (scheduler.busy[i]->device == device && is_blocking(scheduler.busy[i])) return scheduler.busy[i];
  }
  return NULL;
}

sim_mark_t* sim_stream_tail_mark(sim_stream_t* stream) {
  if (stream->legacy && busy_blocking_stream(stream->device)) sim_enqueue(stream, NULL, NULL, NULL);
  if (stream->tail) return sim_mark_retain(op_mark(stream, stream->tail));
  sim_mark_t* mark = sim_mark_create(NULL);
  reach(mark);
  sim_order_mark_idle(stream, mark);
  return mark;
}

// Is there work that orders itself before whatever the stream is given next, though it is not in its queue?
static bool is_held_implicitly(const sim_stream_t* stream) {
  if (stream->legacy) return busy_blocking_stream(stream->device) != NULL;
  return is_blocking(stream) && sim_legacy_stream(stream->device)->tail;
}

sim_mark_t* sim_stream_record_mark(sim_stream_t* stream) {
  if (is_held_implicitly(stream)) sim_enqueue(stream, NULL, NULL, NULL);
  if (!stream->tail) sim_order_implicitly(stream);
  return sim_stream_tail_mark(stream);
}

void sim_stream_wait_for(sim_stream_t* stream, sim_mark_t* mark) {
  if (stream->head || !mark->done || is_held_implicitly(stream)) {
    sim_enqueue(stream, NULL, NULL, mark);
    return;
  }
  // What is done already needs no place in an idle queue, but the stream comes after it all the same.
  sim_order_implicitly(stream);
  sim_order_wait(stream, mark);
}

sim_mark_t* sim_stream_last_mark(sim_stream_t* stream) { return sim_mark_retain(op_mark(stream, stream->tail)); }

static void finish_head(sim_stream_t* stream) {
  sim_op_t* op = stream->head;
  scheduler.now += 1;
  sim_order_finish(stream, op);
  if (op->mark) reach(op->mark);
  sim_mark_release(op->mark);
  sim_task_release(op->task);
  if (op->launch) sim_launch_destroy(op->launch);
  free(op->waits);
  stream->head = op->next;
  free(op);
  if (stream->head) return;
  stream->tail = NULL;
  remove_busy(stream);
  if (stream->destroyed) sim_stream_retire(stream);
}

// --- What can move --------------------------------------------------------------------------------------------------

static bool node_blocked(const sim_launch_t* launch, uint32_t node) {
  return launch->program->tasks[node]->kind == SIM_TASK_EVENT_WAIT && launch->marks[node] && !launch->marks[node]->done;
}

// The mark that keeps the head of the queue where it is; NULL when it can run.
static sim_mark_t* blocker(sim_stream_t* stream) {
  sim_op_t* op = stream->head;
  while (op->num_waits && op->waits[op->num_waits - 1]->done) {
    sim_order_wait(stream, op->waits[--op->num_waits]);
    sim_mark_release(op->waits[op->num_waits]);
  }
  if (op->num_waits) return op->waits[op->num_waits - 1];
  if (!op->launch || op->launch->num_left == 0) return NULL;
  sim_mark_t* mark = NULL;
  for (size_t i = 0; i < op->launch->num_ready; ++i) {
    uint32_t node = op->launch->ready[i];
    if (!node_blocked(op->launch, node)) return NULL;
    mark = op->launch->marks[node];
  }
  return mark;
}

// Would a step hand something to the host thread?
static bool head_is_host_function(const sim_stream_t* stream) {
  const sim_op_t* op = stream->head;
  if (!op->launch) return op->task && op->task->kind == SIM_TASK_HOST;
  return op->launch->num_ready_host > 0;
}

// --- Steps ----------------------------------------------------------------------------------------------------------

// Has the program been silent for these many pauses? Silence is what a program that waits by means of its own shows.
static bool is_silent(size_t pauses) { return pauses >= MAX_PAUSES || sim_others_sleep(); }

// Waits until the host function last handed over is done, so that it never runs beside its caller and one seed stays
// one interleaving. Unless it waits for the caller in its turn: then both go on, as they would on a GPU.
static void await_host_function(void) {
  uint64_t ticket = host.handed;
  size_t pauses = 0;
  while (host.done < ticket) {
    if (!sim_wait_ms(&host.progress, IDLE_MS) && host.done < ticket && is_silent(++pauses)) return;
  }
}

static void hand_to_host(sim_stream_t* stream, sim_task_t* task, uint32_t node) {
  host_call_t* call = sim_calloc(1, sizeof(*call));
  call->stream = stream;
  call->task = sim_task_retain(task);
  call->node = node;
  stream->running = true;
  if (host.last) {
    host.last->next = call;
  } else {
    host.first = call;
  }
  host.last = call;
  host.handed += 1;
  start_host_thread();  // it does not live on in a forked child
  pthread_cond_signal(&host.wanted);
  if (!sim_thread()->runs_host_functions) await_host_function();
}

static void run_task(sim_stream_t* stream, const sim_task_t* task, uint32_t node) {
  if (sim_access_begin(stream, task, node)) sim_task_run(task);
  sim_access_end();
}

void sim_run_at_once(sim_stream_t* stream, const sim_task_t* task) {
  if (sim_access_begin_at_once(stream, task)) sim_task_run(task);
  sim_access_end();
}

static void node_done(sim_stream_t* stream, uint32_t node) {
  sim_launch_t* launch = stream->head->launch;
  scheduler.now += 1;
  sim_order_finish_node(stream, launch, node);
  sim_launch_node_done(launch, node);
  if (launch->num_left == 0) finish_head(stream);
}

// Runs one node of the launch at the head; which one of those that can run, the seed decides.
static void step_launch(sim_stream_t* stream) {
  sim_launch_t* launch = stream->head->launch;
  if (launch->num_left == 0) {
    finish_head(stream);
    return;
  }
  size_t pick = random_below(launch->num_ready);
  while (node_blocked(launch, launch->ready[pick])) pick = (pick + 1) % launch->num_ready;
  uint32_t node = sim_launch_take(launch, pick);
  sim_task_t* task = launch->program->tasks[node];
  sim_order_begin_node(stream, launch, node);
  if (task->kind == SIM_TASK_HOST && !sim_fault_stops_work()) {
    hand_to_host(stream, task, node);
    return;
  }
  if (task->kind == SIM_TASK_HOST) host.pending -= 1;
  if (task->kind == SIM_TASK_EVENT_RECORD) {
    sim_order_mark_node(stream, launch, node);
    reach(launch->marks[node]);
  } else {
    run_task(stream, task, node);
  }
  node_done(stream, node);
}

// Runs one piece of work of a stream whose head can run.
static void step(sim_stream_t* stream) {
  sim_op_t* op = stream->head;
  if (!op->begun) sim_order_begin(stream, op);
  if (op->launch) {
    step_launch(stream);
  } else if (op->task && op->task->kind == SIM_TASK_HOST && !sim_fault_stops_work()) {
    hand_to_host(stream, op->task, 0);
  } else {
    if (op->task && op->task->kind == SIM_TASK_HOST) host.pending -= 1;
    if (op->task) run_task(stream, op->task, 0);
    finish_head(stream);
  }
}

static bool can_step(sim_stream_t* stream) { return !stream->running && !blocker(stream); }

// Moves a random queue, if the one drawn is ready. Host functions wait for a synchronisation, a query or silence.
static void random_step(void) {
  if (scheduler.num_busy == 0) return;
  sim_stream_t* stream = scheduler.busy[random_below(scheduler.num_busy)];
  if (can_step(stream) && !head_is_host_function(stream)) step(stream);
}

static void run_all_ready(void) {
  for (size_t i = 0; i < scheduler.num_busy;) {
    if (can_step(scheduler.busy[i])) {
      step(scheduler.busy[i]);
      i = 0;  // a step may unblock any queue, and removes its own when it is done
    } else {
      i += 1;
    }
  }
}

void sim_turn(void) {
  prepare();
  scheduler.activity += 1;
  if (scheduler.schedule == SIM_SCHEDULE_EAGER) run_all_ready();
  if (scheduler.schedule != SIM_SCHEDULE_RANDOM) return;
  // Up to three steps: enough that queues drain in a long run, few enough that work piles up in a short one.
  for (size_t steps = random_below(4); steps > 0; --steps) random_step();
}

// --- Waiting --------------------------------------------------------------------------------------------------------

// The stream that must move for the mark to be reached; NULL while a host function on the way is running.
static sim_stream_t* next_to_move(const sim_mark_t* mark) {
  for (;;) {
    if (mark->stream->running) return NULL;
    const sim_mark_t* before = blocker(mark->stream);
    if (!before) return mark->stream;
    mark = before;
  }
}

// Lets other threads go on until a host function is done, those that take turns with this one included: one of them may
// be what that function waits for.
static void await_progress(void) {
  sim_thread_t* thread = sim_thread();
  sim_turns_step_out(thread);
  pthread_cond_wait(&host.progress, sim_mutex());
  sim_turns_step_in(thread);
}

// The marks on the way from the one that is wanted to the one that can move: the way is kept, since a chain of waits
// may be as long as there are streams.
typedef struct way {
  sim_mark_t** marks;
  size_t count;
  size_t capacity;
} way_t;

static void way_push(way_t* way, sim_mark_t* mark) {
  sim_reserve(&way->marks, &way->capacity, way->count + 1, sizeof(sim_mark_t*));
  way->marks[way->count++] = mark;
}

// The stream that must move next; NULL when there is none, because the mark is reached or a host function is running.
static sim_stream_t* way_end(way_t* way) {
  while (way->count > 0) {
    sim_mark_t* mark = way->marks[way->count - 1];
    if (mark->done) {
      sim_mark_release(mark);
      way->count -= 1;
      continue;
    }
    if (mark->stream->running) return NULL;
    sim_mark_t* before = blocker(mark->stream);
    if (!before) return mark->stream;
    way_push(way, sim_mark_retain(before));
  }
  return NULL;
}

void sim_wait_for(sim_mark_t* mark) {
  way_t way = {NULL, 0, 0};
  if (mark && !mark->done) way_push(&way, sim_mark_retain(mark));
  for (;;) {
    sim_stream_t* stream = way_end(&way);
    if (way.count == 0) break;
    if (!stream) {
      await_progress();
      continue;
    }
    step(stream);
    if (scheduler.schedule == SIM_SCHEDULE_RANDOM && random_below(4) == 0) random_step();
  }
  free(way.marks);
  if (mark) sim_order_host_saw(mark);
  sim_mark_release(mark);
  sim_fault_surface();
}

bool sim_poll(sim_mark_t* mark) {
  sim_mark_retain(mark);  // a step may give up the lock
  if (mark && !mark->done) {
    sim_stream_t* stream = next_to_move(mark);
    if (stream) step(stream);
  }
  bool done = !mark || mark->done;
  if (mark && done) sim_order_host_saw(mark);
  sim_mark_release(mark);
  if (done) sim_fault_surface();
  return done;
}

static sim_stream_t* pending(sim_stream_t* stream) {
  if (stream->head) return stream;
  return stream->legacy ? busy_blocking_stream(stream->device) : NULL;
}

bool sim_poll_stream(sim_stream_t* stream) {
  sim_stream_t* busy = pending(stream);
  if (!busy) {
    sim_order_host_saw_stream(stream);
    return sim_poll(NULL);
  }
  bool legacy = stream->legacy;  // only that one is sure to outlive the step
  sim_mark_t* mark = sim_mark_retain(op_mark(busy, busy->tail));
  bool done = sim_poll(mark);
  sim_mark_release(mark);
  if (!legacy) return done;
  done = done && !pending(stream);
  if (done) sim_order_host_saw_stream(stream);
  return done;
}

void sim_wait_for_device(int device) {
  size_t count = 0;
  sim_mark_t** marks = sim_calloc(scheduler.num_busy, sizeof(sim_mark_t*));
  for (size_t i = 0; i < scheduler.num_busy; ++i) {
    sim_stream_t* stream = scheduler.busy[i];
    if (stream->device == device) marks[count++] = sim_mark_retain(op_mark(stream, stream->tail));
  }
  for (size_t i = 0; i < count; ++i) sim_wait_for(marks[i]);
  free(marks);
  sim_order_host_saw_device(device);
  sim_fault_surface();
}

// --- The host thread ------------------------------------------------------------------------------------------------

// Waits until there is a host function to run. When the program falls silent with some pending, it may be waiting for
// one by means of its own, so the queues advance by themselves then.
static void wait_for_host_call(size_t* pauses) {
  if (host.pending == 0) {
    pthread_cond_wait(&host.wanted, sim_mutex());
    return;
  }
  uint64_t activity = scheduler.activity;
  bool silent = !sim_wait_ms(&host.wanted, IDLE_MS) && activity == scheduler.activity;
  *pauses = silent ? *pauses + 1 : 0;
  if (silent && is_silent(*pauses)) run_all_ready();
}

static void run_host_call(host_call_t* call) {
  sim_access_begin_host_function(call->stream, call->task, call->node);
  sim_unlock();
  call->task->u.host.function(call->task->u.host.data);
  sim_lock();
  sim_access_end();
  sim_task_release(call->task);
  call->stream->running = false;
  host.pending -= 1;
  if (call->stream->head->launch) {
    node_done(call->stream, call->node);
  } else {
    finish_head(call->stream);
  }
  sim_unlock();  // runs what this has deferred, before whoever waits goes on
  sim_lock();
  host.done += 1;
  pthread_cond_broadcast(&host.progress);
}

static void* host_thread(void* unused) {
  (void)unused;
  sim_thread()->in_host_function = true;
  sim_thread()->runs_host_functions = true;
  sim_lock();
  for (size_t pauses = 0;;) {
    host_call_t* call = host.first;
    if (!call) {
      wait_for_host_call(&pauses);
      sim_unlock();  // runs what was deferred meanwhile
      sim_lock();
      continue;
    }
    host.first = call->next;
    if (!host.first) host.last = NULL;
    run_host_call(call);
    free(call);
  }
  return NULL;
}

// --- Deferred destructors -------------------------------------------------------------------------------------------

void sim_defer(cudaHostFn_t function, void* data) {
  sim_deferred_t* added = sim_calloc(1, sizeof(*added));
  *added = (sim_deferred_t){.function = function, .data = data};
  if (scheduler.deferred) {
    scheduler.last_deferred->next = added;
  } else {
    scheduler.deferred = added;
  }
  scheduler.last_deferred = added;
}

sim_deferred_t* sim_take_deferred(void) {
  sim_deferred_t* first = scheduler.deferred;
  scheduler.deferred = NULL;
  return first;
}

void sim_run_deferred(sim_deferred_t* first) {
  sim_thread_t* thread = sim_thread();
  bool before = thread->in_host_function;
  thread->in_host_function = true;
  while (first) {
    sim_deferred_t* next = first->next;
    first->function(first->data);
    free(first);
    first = next;
  }
  thread->in_host_function = before;
}
