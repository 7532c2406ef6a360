// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// handle.h: what callers hold of streams, events, graphs, …
#ifndef GCAP_SIM_API_HANDLE_H_
#define GCAP_SIM_API_HANDLE_H_

#include <stddef.h>

#include "sim/check/origin.h"

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

#endif  // GCAP_SIM_API_HANDLE_H_
