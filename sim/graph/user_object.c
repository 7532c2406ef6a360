// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// User objects: counted things of the caller that live as long as a graph, a clone, an executable or a launch needs
// them.
//
// The idea: whoever holds an object holds a count of it; the last one to let go defers the destructor to the end of the
// call, when the lock is no longer held. Locking: the global mutex.
#include "sim/graph/user_object.h"

#include <limits.h>
#include <stdlib.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/thread.h"
#include "sim/graph/graph.h"

struct gcap_sim_user_object {
  cudaUserObject_t handle;
  void* data;
  cudaHostFn_t destroy;
  unsigned int refs;
};

static void release(gcap_sim_user_object_t* object, unsigned int count) {
  object->refs -= count;
  if (object->refs > 0) return;
  gcap_sim_defer(object->destroy, object->data);
  gcap_sim_handle_destroy(object->handle);
  free(object);
}

static void append(gcap_sim_object_refs_t* refs, gcap_sim_user_object_t* object, unsigned int count) {
  gcap_sim_reserve(&refs->items, &refs->capacity, refs->count + 1, sizeof(gcap_sim_object_ref_t));
  refs->items[refs->count++] = (gcap_sim_object_ref_t){object, count};
}

static void refs_add(gcap_sim_object_refs_t* refs, gcap_sim_user_object_t* object, unsigned int count) {
  for (size_t i = 0; i < refs->count; ++i) {
    if (refs->items[i].object != object) continue;
    refs->items[i].count += count;
    return;
  }
  append(refs, object, count);
}

void gcap_sim_object_refs_copy(gcap_sim_object_refs_t* to, const gcap_sim_object_refs_t* from) {
  bool empty = to->count == 0;  // then no object can be there already
  for (size_t i = 0; i < from->count; ++i) {
    gcap_sim_user_object_t* object = from->items[i].object;
    ++object->refs;
    if (empty) {
      append(to, object, 1);
    } else {
      refs_add(to, object, 1);
    }
  }
}

void gcap_sim_object_refs_clear(gcap_sim_object_refs_t* refs) {
  for (size_t i = 0; i < refs->count; ++i) release(refs->items[i].object, refs->items[i].count);
  free(refs->items);
  *refs = (gcap_sim_object_refs_t){0};
}

static bool is_count(unsigned int count) { return count >= 1 && count <= INT_MAX; }

static cudaError_t create(cudaUserObject_t* out, void* data, cudaHostFn_t destroy, unsigned int refs,
                          unsigned int flags) {
  // Measured: more than INT_MAX may be held from the start, though no more may be added.
  if (out == NULL || destroy == NULL || refs == 0 || flags != cudaUserObjectNoDestructorSync) {
    return cudaErrorInvalidValue;
  }
  gcap_sim_user_object_t* object = gcap_sim_calloc(1, sizeof(*object));
  object->data = data;
  object->destroy = destroy;
  object->refs = refs;
  object->handle = gcap_sim_handle_create(GCAP_SIM_USER_OBJECT, object);
  *out = object->handle;
  return cudaSuccess;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object_out, void* ptr, cudaHostFn_t destroy,
                                 unsigned int initialRefcount, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaUserObjectCreate);
  if (code == cudaSuccess) code = create(object_out, ptr, destroy, initialRefcount, flags);
  return gcap_sim_leave(code);
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaUserObjectRetain);
  if (code == cudaSuccess) {
    gcap_sim_user_object_t* o = gcap_sim_handle_get(GCAP_SIM_USER_OBJECT, object);
    if (o != NULL && is_count(count)) {
      o->refs += count;
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}

static void release_checked(gcap_sim_user_object_t* object, unsigned int count) {
  if (count > object->refs) {
    gcap_sim_die("%s: %u references released, %u are left", gcap_sim_thread()->call, count, object->refs);
  }
  release(object, count);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaUserObjectRelease);
  if (code == cudaSuccess) {
    gcap_sim_user_object_t* o = gcap_sim_handle_get(GCAP_SIM_USER_OBJECT, object);
    if (o != NULL && is_count(count)) {
      release_checked(o, count);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                      unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphRetainUserObject);
  if (code == cudaSuccess) {
    gcap_sim_graph_t* g = gcap_sim_handle_get(GCAP_SIM_GRAPH, graph);
    gcap_sim_user_object_t* o = gcap_sim_handle_get(GCAP_SIM_USER_OBJECT, object);
    if (g != NULL && o != NULL && is_count(count) && flags <= cudaGraphUserObjectMove) {
      // Moved references are the caller's own.
      if (flags != cudaGraphUserObjectMove) o->refs += count;
      refs_add(&g->objects, o, count);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}

static cudaError_t graph_release(gcap_sim_graph_t* graph, gcap_sim_user_object_t* object, unsigned int count) {
  if (graph == NULL || object == NULL || !is_count(count)) return cudaErrorInvalidValue;
  gcap_sim_object_refs_t* refs = &graph->objects;
  size_t i = 0;
  while (i < refs->count && refs->items[i].object != object) ++i;
  if (i == refs->count || refs->items[i].count < count) return cudaErrorInvalidValue;
  refs->items[i].count -= count;
  if (refs->items[i].count == 0) refs->items[i] = refs->items[--refs->count];
  release(object, count);
  return cudaSuccess;
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphReleaseUserObject);
  if (code == cudaSuccess) {
    code = graph_release(gcap_sim_handle_get(GCAP_SIM_GRAPH, graph), gcap_sim_handle_get(GCAP_SIM_USER_OBJECT, object),
                         count);
  }
  return gcap_sim_leave(code);
}
