// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// User objects: counted things of the caller that live as long as a graph, a clone, an executable or a launch needs
// them.
//
// The idea: whoever holds an object holds a count of it; the last one to let go defers the destructor to the end of the
// call, when the lock is no longer held. Locking: the global mutex.
#include <limits.h>
#include <stdlib.h>

#include "core.h"

struct sim_user_object {
  cudaUserObject_t handle;
  void* data;
  cudaHostFn_t destroy;
  unsigned int refs;
};

static void release(sim_user_object_t* object, unsigned int count) {
  object->refs -= count;
  if (object->refs > 0) return;
  sim_defer(object->destroy, object->data);
  sim_handle_destroy(object->handle);
  free(object);
}

static void append(sim_object_refs_t* refs, sim_user_object_t* object, unsigned int count) {
  sim_reserve(&refs->items, &refs->capacity, refs->count + 1, sizeof(sim_object_ref_t));
  refs->items[refs->count++] = (sim_object_ref_t){object, count};
}

static void refs_add(sim_object_refs_t* refs, sim_user_object_t* object, unsigned int count) {
  for (size_t i = 0; i < refs->count; ++i) {
    if (refs->items[i].object != object) continue;
    refs->items[i].count += count;
    return;
  }
  append(refs, object, count);
}

void sim_object_refs_copy(sim_object_refs_t* to, const sim_object_refs_t* from) {
  bool empty = to->count == 0;  // then no object can be there already
  for (size_t i = 0; i < from->count; ++i) {
    sim_user_object_t* object = from->items[i].object;
    object->refs += 1;
    if (empty) {
      append(to, object, 1);
    } else {
      refs_add(to, object, 1);
    }
  }
}

void sim_object_refs_clear(sim_object_refs_t* refs) {
  for (size_t i = 0; i < refs->count; ++i) release(refs->items[i].object, refs->items[i].count);
  free(refs->items);
  *refs = (sim_object_refs_t){0};
}

static bool is_count(unsigned int count) { return count >= 1 && count <= INT_MAX; }

static cudaError_t create(cudaUserObject_t* out, void* data, cudaHostFn_t destroy, unsigned int refs,
                          unsigned int flags) {
  // Measured: more than INT_MAX may be held from the start, though no more may be added.
  if (!out || !destroy || refs == 0 || flags != cudaUserObjectNoDestructorSync) return cudaErrorInvalidValue;
  sim_user_object_t* object = sim_calloc(1, sizeof(*object));
  object->data = data;
  object->destroy = destroy;
  object->refs = refs;
  object->handle = sim_handle_create(SIM_USER_OBJECT, object);
  *out = object->handle;
  return cudaSuccess;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object_out, void* ptr, cudaHostFn_t destroy,
                                 unsigned int initialRefcount, unsigned int flags) {
  cudaError_t code = sim_enter(SIM_API_cudaUserObjectCreate);
  if (code == cudaSuccess) code = create(object_out, ptr, destroy, initialRefcount, flags);
  return sim_leave(code);
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
  cudaError_t code = sim_enter(SIM_API_cudaUserObjectRetain);
  if (code == cudaSuccess) {
    sim_user_object_t* o = sim_handle_get(SIM_USER_OBJECT, object);
    if (o && is_count(count)) {
      o->refs += count;
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return sim_leave(code);
}

static void release_checked(sim_user_object_t* object, unsigned int count) {
  if (count > object->refs) {
    sim_die("%s: %u references released, %u are left", sim_thread()->call, count, object->refs);
  }
  release(object, count);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  cudaError_t code = sim_enter(SIM_API_cudaUserObjectRelease);
  if (code == cudaSuccess) {
    sim_user_object_t* o = sim_handle_get(SIM_USER_OBJECT, object);
    if (o && is_count(count)) {
      release_checked(o, count);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return sim_leave(code);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                      unsigned int flags) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphRetainUserObject);
  if (code == cudaSuccess) {
    sim_graph_t* g = sim_handle_get(SIM_GRAPH, graph);
    sim_user_object_t* o = sim_handle_get(SIM_USER_OBJECT, object);
    if (g && o && is_count(count) && flags <= cudaGraphUserObjectMove) {
      // Moved references are the caller's own.
      if (flags != cudaGraphUserObjectMove) o->refs += count;
      refs_add(&g->objects, o, count);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return sim_leave(code);
}

static cudaError_t graph_release(sim_graph_t* graph, sim_user_object_t* object, unsigned int count) {
  if (!graph || !object || !is_count(count)) return cudaErrorInvalidValue;
  sim_object_refs_t* refs = &graph->objects;
  size_t i = 0;
  while (i < refs->count && refs->items[i].object != object) i += 1;
  if (i == refs->count || refs->items[i].count < count) return cudaErrorInvalidValue;
  refs->items[i].count -= count;
  if (refs->items[i].count == 0) refs->items[i] = refs->items[--refs->count];
  release(object, count);
  return cudaSuccess;
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphReleaseUserObject);
  if (code == cudaSuccess) {
    code = graph_release(sim_handle_get(SIM_GRAPH, graph), sim_handle_get(SIM_USER_OBJECT, object), count);
  }
  return sim_leave(code);
}
