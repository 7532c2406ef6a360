// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Objects carry the magic of their kind in their first word. Destroying one overwrites the word and puts the memory in
// a ring of the most recently destroyed, so that a late use still finds the mark instead of somebody else's data; only
// what falls out of the ring goes back to the allocator.
//
// Locking: one mutex around the ring. Objects themselves are not locked, as the libraries' own are not.
#include "sim/library/object.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/api/submit.h"

// The mark of a destroyed object ("destryed").
static const uint64_t kDestroyed = 0x6465737472796564u;

// How many destroyed objects keep their mark: more than any test destroys between a mistake and its report.
enum { kRingSize = 256 };

static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER;
static void* ring[kRingSize];
static size_t ring_next;

void gcap_sim_stop(const char* function, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "gcap sim: %s: ", function);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  abort();
}

void* gcap_sim_object_create(const gcap_sim_object_kind_t* kind, size_t bytes) {
  uint64_t* object = calloc(1, bytes);
  if (object == NULL) {
    return NULL;
  }
  *object = kind->magic;
  gcap_sim_handle_made(kind->name, object);
  return object;
}

void gcap_sim_object_check(const gcap_sim_object_kind_t* kind, const void* object, const char* function) {
  const uint64_t magic = *(const uint64_t*)object;
  if (magic == kDestroyed) {
    gcap_sim_stop(function, "%p is a %s that was destroyed", object, kind->name);
  }
  if (magic != kind->magic) {
    gcap_sim_stop(function, "%p is not a %s", object, kind->name);
  }
}

void gcap_sim_object_destroy(const gcap_sim_object_kind_t* kind, void* object) {
  *(uint64_t*)object = kDestroyed;
  gcap_sim_handle_gone(kind->name, object);
  pthread_mutex_lock(&ring_lock);
  void* oldest = ring[ring_next];
  ring[ring_next] = object;
  ring_next = (ring_next + 1) % kRingSize;
  pthread_mutex_unlock(&ring_lock);
  free(oldest);
}
