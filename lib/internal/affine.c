// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Affine sets. An object hangs on two lists: its thread's and its set's. Whoever ends first, thread or set, takes it
// off both under one mutex, and with that has the right and the duty to end it; so nothing ends twice and nothing
// remains. A set that ends waits until exiting threads have finished with the objects they took. Before its end a set
// can be looked at: exiting threads then wait with the taking, so that what was seen still holds.
//
// The look-up in the steady state is a small thread-local cache keyed by the set's serial number; an entry of a set
// that is gone is simply overwritten some day. Only the thread itself makes its objects and so adds to its list; others
// only take from it.
//
// Locking: affine_mutex guards all lists and counts. It is never held across `create` or `end`.

#include "lib/internal/affine.h"

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gcap/log.h"
#include "lib/base/stay_loaded.h"
#include "lib/internal/forked.h"

// A place on a list; `*slot` is what points to it.
typedef struct link {
  struct link* next;
  struct link** slot;
} link_t;

// What one thread has.
typedef struct record {
  link_t* objects;
} record_t;

typedef struct node {
  link_t of_thread;
  link_t of_set;
  gcap_affine_t* set;
  void* object;
} node_t;

struct gcap_affine {
  gcap_affine_ops_t ops;
  uint64_t serial;
  link_t* objects;
  size_t count;
  size_t num_ending;     // taken by exiting threads, not ended yet
  bool is_being_looked;  // nobody takes an object off meanwhile
};

static pthread_mutex_t affine_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t may_go_on = PTHREAD_COND_INITIALIZER;  // an object ended, or a look at a set
static uint64_t next_serial = 1;
static pthread_key_t record_key;  // its destructor runs when a thread exits
static pthread_once_t record_key_once = PTHREAD_ONCE_INIT;
static int record_key_error;

GCAP_THREAD_LOCAL gcap_affine_recent_t gcap_affine_recent[GCAP_AFFINE_NUM_RECENT];
static _Thread_local size_t next_victim;  // in turn: sets used alternately do not evict each other
static _Thread_local int num_exits;       // rounds of destructors that found objects on this thread

static node_t* node_of_thread(link_t* link) { return (node_t*)((char*)link - offsetof(node_t, of_thread)); }

static node_t* node_of_set(link_t* link) { return (node_t*)((char*)link - offsetof(node_t, of_set)); }

static void link_push(link_t** head, link_t* link) {
  link->next = *head;
  link->slot = head;
  if (*head != NULL) (*head)->slot = &link->next;
  *head = link;
}

static void link_remove(link_t* link) {
  *link->slot = link->next;
  if (link->next != NULL) link->next->slot = link->slot;
}

// Takes a node off both lists. Called with the mutex held.
static void take(node_t* node) {
  link_remove(&node->of_thread);
  link_remove(&node->of_set);
  --node->set->count;
}

// Ends the object of a node that is on no list.
static gcap_status_t end_object(node_t* node, bool by_thread_exit) {
  const gcap_affine_ops_t* ops = &node->set->ops;
  gcap_status_t status = ops->end(ops->user, node->object, by_thread_exit);
  free(node);
  return status;
}

// --- Threads --------------------------------------------------------------------------------------------------------

// Ends what the thread has, and what `end` makes meanwhile. A destructor of the thread that comes later may ask again,
// which gives the thread a new record and this function a further round.
static void thread_exits(void* value) {
  if (gcap_is_forked()) return;
  record_t* record = value;
  // Back for the time of the loop, so that `end` finds what is left. Without memory it would find nothing.
  (void)pthread_setspecific(record_key, record);
  pthread_mutex_lock(&affine_mutex);
  while (record->objects != NULL) {
    node_t* node = node_of_thread(record->objects);
    gcap_affine_t* set = node->set;
    if (set->is_being_looked) {
      pthread_cond_wait(&may_go_on, &affine_mutex);
      continue;
    }
    take(node);
    ++set->num_ending;
    pthread_mutex_unlock(&affine_mutex);
    memset(gcap_affine_recent, 0, sizeof(gcap_affine_recent));
    gcap_status_t status = end_object(node, /*by_thread_exit=*/true);
    if (status != NULL) {
      gcap_log(GCAP_LOG_ERROR, "at the end of a thread, its %s: %s", set->ops.name, gcap_status_message(status));
      gcap_status_free(status);
    }
    pthread_mutex_lock(&affine_mutex);
    --set->num_ending;
    pthread_cond_broadcast(&may_go_on);
  }
  pthread_mutex_unlock(&affine_mutex);
  (void)pthread_setspecific(record_key, NULL);  // a key that has a value takes NULL without memory
  free(record);
  ++num_exits;
}

static void make_record_key(void) {
  gcap_stay_loaded();
  record_key_error = pthread_key_create(&record_key, thread_exits);
}

// The calling thread's record, made on first use.
static gcap_status_t get_record(record_t** out_record) {
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked("an object of a thread"));
  pthread_once(&record_key_once, make_record_key);
  if (record_key_error != 0) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "pthread_key_create failed: error %d", record_key_error);
  }
  *out_record = pthread_getspecific(record_key);
  if (*out_record != NULL) return NULL;
  if (num_exits >= PTHREAD_DESTRUCTOR_ITERATIONS) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "this thread is exiting and nothing would end what is made now: "
                       "%d rounds of destructors are over",
                       num_exits);
  }
  record_t* record = calloc(1, sizeof(*record));
  if (record == NULL || pthread_setspecific(record_key, record) != 0) {
    free(record);
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a thread's record");
  }
  *out_record = record;
  return NULL;
}

// --- Sets -----------------------------------------------------------------------------------------------------------

gcap_status_t gcap_affine_create(const gcap_affine_ops_t* ops, gcap_affine_t** out_set) {
  *out_set = NULL;
  gcap_watch_forks();
  gcap_affine_t* set = calloc(1, sizeof(*set));
  if (set == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a set of %ss", ops->name);
  set->ops = *ops;
  pthread_mutex_lock(&affine_mutex);
  set->serial = next_serial++;
  pthread_mutex_unlock(&affine_mutex);
  *out_set = set;
  return NULL;
}

gcap_status_t gcap_affine_look(gcap_affine_t* set, gcap_status_t (*look)(void* user, void* object)) {
  gcap_status_t status = NULL;
  pthread_mutex_lock(&affine_mutex);
  set->is_being_looked = true;
  for (link_t* link = set->objects; link != NULL && status == NULL; link = link->next) {
    void* object = node_of_set(link)->object;
    pthread_mutex_unlock(&affine_mutex);
    status = look(set->ops.user, object);
    pthread_mutex_lock(&affine_mutex);
  }
  set->is_being_looked = false;
  pthread_cond_broadcast(&may_go_on);
  pthread_mutex_unlock(&affine_mutex);
  return status;
}

gcap_status_t gcap_affine_destroy(gcap_affine_t* set) {
  if (set == NULL) return NULL;
  gcap_status_t status = NULL;
  pthread_mutex_lock(&affine_mutex);
  for (;;) {
    if (set->objects != NULL) {
      node_t* node = node_of_set(set->objects);
      take(node);
      pthread_mutex_unlock(&affine_mutex);
      status = gcap_status_join(status, end_object(node, /*by_thread_exit=*/false));
      pthread_mutex_lock(&affine_mutex);
    } else if (set->num_ending > 0) {
      pthread_cond_wait(&may_go_on, &affine_mutex);
    } else {
      break;
    }
  }
  pthread_mutex_unlock(&affine_mutex);
  free(set);
  return status;
}

uint64_t gcap_affine_serial(const gcap_affine_t* set) { return set->serial; }

static void remember(const gcap_affine_t* set, void* object) {
  size_t victim = next_victim++ % GCAP_AFFINE_NUM_RECENT;
  gcap_affine_recent[victim].serial = set->serial;
  gcap_affine_recent[victim].object = object;
}

// Looks through the thread's own list: it is as long as the thread has sets, however many threads a set has.
static void* find_listed(const gcap_affine_t* set, const record_t* record) {
  void* object = NULL;
  pthread_mutex_lock(&affine_mutex);
  for (link_t* link = record->objects; object == NULL && link != NULL; link = link->next) {
    const node_t* node = node_of_thread(link);
    if (node->set == set) object = node->object;
  }
  pthread_mutex_unlock(&affine_mutex);
  if (object != NULL) remember(set, object);
  return object;
}

void* gcap_affine_find(gcap_affine_t* set) {
  void* object = gcap_affine_recall(set->serial);
  if (object != NULL || gcap_is_forked()) return object;
  pthread_once(&record_key_once, make_record_key);
  const record_t* record = record_key_error == 0 ? pthread_getspecific(record_key) : NULL;
  return record != NULL ? find_listed(set, record) : NULL;
}

static gcap_status_t create_object(gcap_affine_t* set, record_t* record, void** out_object) {
  node_t* node = calloc(1, sizeof(*node));
  if (node == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a %s", set->ops.name);
  node->set = set;
  gcap_status_t status = set->ops.create(set->ops.user, &node->object);
  if (status != NULL) {
    free(node);
    return status;
  }
  pthread_mutex_lock(&affine_mutex);
  link_push(&record->objects, &node->of_thread);
  link_push(&set->objects, &node->of_set);
  ++set->count;
  pthread_mutex_unlock(&affine_mutex);
  remember(set, node->object);
  *out_object = node->object;
  return NULL;
}

// Apart, so that a steady state need not save the registers that this uses.
static __attribute__((noinline)) gcap_status_t find_or_create(gcap_affine_t* set, void** out_object) {
  record_t* record = NULL;
  GCAP_RETURN_IF_ERROR(get_record(&record));
  *out_object = find_listed(set, record);
  return *out_object != NULL ? NULL : create_object(set, record, out_object);
}

gcap_status_t gcap_affine_get(gcap_affine_t* set, void** out_object) {
  *out_object = gcap_affine_recall(set->serial);
  return *out_object != NULL ? NULL : find_or_create(set, out_object);
}

size_t gcap_affine_count(gcap_affine_t* set) {
  pthread_mutex_lock(&affine_mutex);
  size_t count = set->count;
  pthread_mutex_unlock(&affine_mutex);
  return count;
}
