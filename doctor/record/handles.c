// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Ids of handles, a table for each kind.
//
// A stream's line is written at its first use by a write of its own, and another thread that uses it at that moment
// waits for the write: a line may stand twice in the file, but two lines of a stream would be two streams. Launches of
// an executable are counted here; their line goes out when the number of launches has doubled, or some seconds have
// passed, so that a program that is killed has told the most of them, and a replay costs no write.
//
// A program makes and destroys for ever. So a stream has no id before its first use in a recorded call, and what is
// kept of executables is used again. Records of activity may come after an executable is gone: of the last ones its
// number for CUPTI is kept. Locking: one lock, held over memory alone.
#include "doctor/record/handles.h"

#include <pthread.h>
#include <sched.h>

#include "doctor/base/grow.h"
#include "doctor/record/cupti_abi.h"
#include "doctor/record/map.h"
#include "doctor/record/writer.h"

enum {
  kMaxYields = 10000,  // a write takes some microseconds; a thread that died in it must not stop the others
  kKeptGraphs = 4096,  // of executables that are gone
};

#define MOST_UNTOLD_NS UINT64_C(5000000000)

typedef struct stream {
  const char* what;                      // NULL if it is not known
  enum { UNTOLD, TELLING, TOLD } state;  // of its line
} stream_t;

typedef struct exec {
  uint32_t id;  // 0 for a free place
  uint32_t cupti_graph;
  uint32_t next_free;                 // index + 1
  uint64_t launches, failed;          // in no line yet
  uint64_t all_launches, next_write;  // of `all_launches`
  uint64_t told_ns;                   // when a line went out
} exec_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gcap_doctor_map_t stream_ids, event_ids, graph_ids;
static gcap_doctor_map_t made_streams;  // that were not used yet: their flags + 1
static gcap_doctor_map_t exec_places;   // index + 1
static gcap_doctor_map_t exec_ids_by_graph;
static uint32_t last_event, last_graph, last_exec;
static stream_t* streams;  // by id - 1
static size_t num_streams, stream_capacity;
static exec_t* execs;
static size_t num_execs, exec_capacity;
static uint32_t first_free;                // of `execs`, index + 1
static uint32_t gone_graphs[kKeptGraphs];  // a ring
static size_t num_gone;

static uint32_t get_locked(gcap_doctor_map_t* ids, const void* handle, uint32_t* last) {
  uint32_t id = gcap_doctor_map_get(ids, (uintptr_t)handle);
  if (id == 0 && gcap_doctor_map_set(ids, (uintptr_t)handle, *last + 1)) id = ++*last;
  return id;
}

static uint32_t get(gcap_doctor_map_t* ids, const void* handle, uint32_t* last) {
  pthread_mutex_lock(&lock);
  uint32_t id = get_locked(ids, handle, last);
  pthread_mutex_unlock(&lock);
  return id;
}

static void forget(gcap_doctor_map_t* ids, const void* handle) {
  pthread_mutex_lock(&lock);
  gcap_doctor_map_remove(ids, (uintptr_t)handle);
  pthread_mutex_unlock(&lock);
}

uint32_t gcap_doctor_handle_event(const void* handle) { return get(&event_ids, handle, &last_event); }
void gcap_doctor_handle_event_gone(const void* handle) { forget(&event_ids, handle); }
uint32_t gcap_doctor_handle_graph(const void* handle) { return get(&graph_ids, handle, &last_graph); }
void gcap_doctor_handle_graph_gone(const void* handle) { forget(&graph_ids, handle); }

// --- Streams ---------------------------------------------------------------------------------------------------------

// Addresses of handles have no bits up there.
#define LEGACY_KEY UINT64_C(0x1000000000000000)
#define PER_THREAD_KEY UINT64_C(0x2000000000000000)

static uint64_t stream_key(const gcap_doctor_thread_t* thread, const void* handle, uint32_t context, bool is_per_thread,
                           const char** out_what) {
  const uintptr_t value = (uintptr_t)handle;
  *out_what = NULL;
  if (value > 2) return value;
  const bool own = value == 2 || (value == 0 && is_per_thread);
  *out_what = own ? "per_thread" : "legacy";
  return own ? PER_THREAD_KEY | (uint64_t)(context & 0xffff) << 32 | thread->id : LEGACY_KEY | context;
}

// With the lock held. 0 without memory.
static uint32_t add_stream(uint64_t key, const char* what) {
  if (!gcap_doctor_grow(&streams, &stream_capacity, num_streams + 1, sizeof(*streams))) return 0;
  const uint32_t made = gcap_doctor_map_get(&made_streams, key);
  if (made != 0) what = made == 2 ? "nonblocking" : "blocking";
  if (!gcap_doctor_map_set(&stream_ids, key, (uint32_t)num_streams + 1)) return 0;
  streams[num_streams++] = (stream_t){.what = what};
  return (uint32_t)num_streams;
}

static void tell_stream(uint32_t id, const char* what) {
  gcap_doctor_line_t line = {0};
  gcap_doctor_line_begin(&line, "stream");
  gcap_doctor_line_number(&line, "id", id);
  if (what != NULL) gcap_doctor_line_field(&line, "what", what);
  gcap_doctor_line_end(&line);
  gcap_doctor_writer_define(&line);
  gcap_doctor_line_free(&line);
  pthread_mutex_lock(&lock);
  streams[id - 1].state = TOLD;
  pthread_mutex_unlock(&lock);
}

static void await_stream(uint32_t id) {
  bool is_told = false;
  for (int i = 0; !is_told && i < kMaxYields; ++i) {
    if (i != 0) sched_yield();
    pthread_mutex_lock(&lock);
    is_told = streams[id - 1].state == TOLD;
    pthread_mutex_unlock(&lock);
  }
}

uint32_t gcap_doctor_handle_stream(const gcap_doctor_thread_t* thread, const void* handle, uint32_t context,
                                   bool is_per_thread) {
  const char* what;
  const uint64_t key = stream_key(thread, handle, context, is_per_thread, &what);
  pthread_mutex_lock(&lock);
  uint32_t id = gcap_doctor_map_get(&stream_ids, key);
  if (id == 0) id = add_stream(key, what);
  stream_t seen = {.state = TOLD};
  if (id != 0) {
    seen = streams[id - 1];
    if (seen.state == UNTOLD) streams[id - 1].state = TELLING;
  }
  pthread_mutex_unlock(&lock);
  if (seen.state == UNTOLD) tell_stream(id, seen.what);
  if (seen.state == TELLING) await_stream(id);
  return id;
}

void gcap_doctor_handle_stream_made(const void* handle, uint32_t flags) {
  if ((uintptr_t)handle <= 2) return;
  const bool is_nonblocking = (flags & GCAP_DOCTOR_CUDA_STREAM_NON_BLOCKING) != 0;
  pthread_mutex_lock(&lock);
  // If the stream was used already, its line is out: the handle's next line must not be another stream's.
  if (gcap_doctor_map_get(&stream_ids, (uintptr_t)handle) == 0) {
    gcap_doctor_map_set(&made_streams, (uintptr_t)handle, is_nonblocking ? 2 : 1);
  }
  pthread_mutex_unlock(&lock);
}

uint32_t gcap_doctor_handle_stream_gone(const void* handle) {
  pthread_mutex_lock(&lock);
  const uint32_t id = gcap_doctor_map_get(&stream_ids, (uintptr_t)handle);
  gcap_doctor_map_remove(&stream_ids, (uintptr_t)handle);
  gcap_doctor_map_remove(&made_streams, (uintptr_t)handle);
  pthread_mutex_unlock(&lock);
  return id;
}

// --- Executables -----------------------------------------------------------------------------------------------------

// With the lock held. The place of a new executable, index + 1; 0 without memory.
static uint32_t take_place(void) {
  const uint32_t place = first_free;
  if (place != 0) {
    first_free = execs[place - 1].next_free;
    return place;
  }
  if (!gcap_doctor_grow(&execs, &exec_capacity, num_execs + 1, sizeof(*execs))) return 0;
  return (uint32_t)++num_execs;
}

static void give_place(uint32_t place) {
  execs[place - 1] = (exec_t){.next_free = first_free};
  first_free = place;
}

// With the lock held. Forgets the oldest of those that are gone.
static void keep_gone_graph(uint32_t cupti_graph) {
  if (cupti_graph == 0) return;
  uint32_t* kept = &gone_graphs[num_gone++ % kKeptGraphs];
  if (*kept != 0) gcap_doctor_map_remove(&exec_ids_by_graph, *kept);
  *kept = cupti_graph;
}

// With the lock held.
static void tell_launches(exec_t* exec, gcap_doctor_line_t* out) {
  if (exec->id == 0 || (exec->launches == 0 && exec->failed == 0)) return;
  gcap_doctor_line_begin(out, "replays");
  gcap_doctor_line_number(out, "exec", exec->id);
  gcap_doctor_line_number(out, "count", exec->launches);
  if (exec->failed != 0) gcap_doctor_line_number(out, "failed", exec->failed);
  gcap_doctor_line_end(out);
  exec->launches = exec->failed = 0;
}

// With the lock held. NOTE: an executable whose end was not seen is ended by the next one at its address.
static void end_exec(const void* handle, gcap_doctor_line_t* out) {
  const uint32_t place = gcap_doctor_map_get(&exec_places, (uintptr_t)handle);
  if (place == 0) return;
  tell_launches(&execs[place - 1], out);
  keep_gone_graph(execs[place - 1].cupti_graph);
  gcap_doctor_map_remove(&exec_places, (uintptr_t)handle);
  give_place(place);
}

uint32_t gcap_doctor_exec_made(const void* handle, uint32_t cupti_graph, gcap_doctor_line_t* out) {
  uint32_t id = 0;
  pthread_mutex_lock(&lock);
  end_exec(handle, out);
  const uint32_t place = take_place();
  if (place != 0 && gcap_doctor_map_set(&exec_places, (uintptr_t)handle, place)) {
    id = ++last_exec;
    execs[place - 1] =
        (exec_t){.id = id, .cupti_graph = cupti_graph, .next_write = 1, .told_ns = gcap_doctor_writer_now()};
    if (cupti_graph != 0) gcap_doctor_map_set(&exec_ids_by_graph, cupti_graph, id);
  } else if (place != 0) {
    give_place(place);
  }
  pthread_mutex_unlock(&lock);
  return id;
}

uint32_t gcap_doctor_exec(const void* handle) {
  pthread_mutex_lock(&lock);
  const uint32_t place = gcap_doctor_map_get(&exec_places, (uintptr_t)handle);
  const uint32_t id = place != 0 ? execs[place - 1].id : 0;
  pthread_mutex_unlock(&lock);
  return id;
}

uint32_t gcap_doctor_exec_of_cupti_graph(uint32_t cupti_graph) {
  pthread_mutex_lock(&lock);
  const uint32_t id = gcap_doctor_map_get(&exec_ids_by_graph, cupti_graph);
  pthread_mutex_unlock(&lock);
  return id;
}

void gcap_doctor_exec_launched(const void* handle, bool failed, gcap_doctor_line_t* out) {
  const uint64_t now_ns = gcap_doctor_writer_now();
  pthread_mutex_lock(&lock);
  const uint32_t place = gcap_doctor_map_get(&exec_places, (uintptr_t)handle);
  if (place != 0) {
    exec_t* exec = &execs[place - 1];
    ++exec->launches;
    exec->failed += failed;
    ++exec->all_launches;
    if (exec->all_launches >= exec->next_write || now_ns - exec->told_ns >= MOST_UNTOLD_NS) {
      exec->next_write = 2 * exec->all_launches;
      exec->told_ns = now_ns;
      tell_launches(exec, out);
    }
  }
  pthread_mutex_unlock(&lock);
}

void gcap_doctor_exec_gone(const void* handle, gcap_doctor_line_t* out) {
  pthread_mutex_lock(&lock);
  end_exec(handle, out);
  pthread_mutex_unlock(&lock);
}

void gcap_doctor_execs_finish(gcap_doctor_line_t* out) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < num_execs; ++i) tell_launches(&execs[i], out);
  pthread_mutex_unlock(&lock);
}
