// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a captured run keeps: a scratch reservation, which the scope closes and the graph retains. So a failed capture
// returns the memory, and so does a released graph. With sharing, all graphs of one stream retain one reservation: each
// capture opens the reservation again, and each graph counts with its share of the bytes. The reservation ends with the
// last of its graphs. Graphs end before their stream, so the reservation never outlives the stream.
//
// Locking: the mutex guards the list and the numbers of graphs, and is held while a reservation is opened again or
// given up, so that the two exclude each other. Only scratch's locks are taken below this mutex, and no function that
// may reach the upstream allocator is called with it.

#include "lib/runtime/graph_memory.h"

#include <stdio.h>
#include <stdlib.h>

#include "gcap/log.h"
#include "lib/base/capture_hooks.h"
#include "lib/capture/inner.h"
#include "lib/scratch/inner.h"

// A reservation and the graphs that have it.
typedef struct graph_reservation {
  gcap_graph_memory_t* memory;
  gcap_stream_t* stream;
  gcap_scratch_reservation_t* scratch;
  size_t num_graphs;
  struct graph_reservation* next;  // on the list, if it is shared
} graph_reservation_t;

void gcap_graph_memory_init(gcap_graph_memory_t* memory, gcap_scratch_t* scratch, bool shared) {
  *memory = (gcap_graph_memory_t){.scratch = scratch, .shared = shared};
  pthread_mutex_init(&memory->mutex, NULL);
}

void gcap_graph_memory_deinit(gcap_graph_memory_t* memory) {
  if (memory->scratch != NULL) pthread_mutex_destroy(&memory->mutex);
}

// --- With the mutex held --------------------------------------------------------------------------------------------

// The reservation that the graphs of the stream have in common; NULL while there is none.
static graph_reservation_t* find_shared(const gcap_graph_memory_t* memory, const gcap_stream_t* stream) {
  graph_reservation_t* reservation = memory->in_common;
  while (reservation != NULL && reservation->stream != stream) reservation = reservation->next;
  return reservation;
}

static gcap_status_t open_new(gcap_graph_memory_t* memory, gcap_stream_t* stream,
                              graph_reservation_t** out_reservation) {
  graph_reservation_t* reservation = calloc(1, sizeof(*reservation));
  if (reservation == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to note a graph's reservation");
  gcap_status_t status = gcap_scratch_reservation_open(memory->scratch, stream, &reservation->scratch);
  if (status != NULL) {
    free(reservation);
    return status;
  }
  reservation->memory = memory;
  reservation->stream = stream;
  *out_reservation = reservation;
  return NULL;
}

// The reservation that the graphs of the stream share, opened again. The first graph makes it, and opens it twice: one
// that was opened again takes memory where it can grow.
static gcap_status_t open_shared(gcap_graph_memory_t* memory, gcap_stream_t* stream,
                                 graph_reservation_t** out_reservation) {
  graph_reservation_t* reservation = find_shared(memory, stream);
  const bool is_new = reservation == NULL;
  if (is_new) {
    GCAP_RETURN_IF_ERROR(open_new(memory, stream, &reservation));
    gcap_scratch_reservation_close(reservation->scratch);
  }
  gcap_status_t status = gcap_scratch_reservation_reopen(reservation->scratch);
  if (is_new && status != NULL) {
    gcap_scratch_reservation_release(reservation->scratch);
    free(reservation);
  }
  if (status != NULL) return status;
  if (is_new) {
    reservation->next = memory->in_common;
    memory->in_common = reservation;
  }
  *out_reservation = reservation;
  return NULL;
}

// Opens the reservation of one graph more.
static gcap_status_t open_locked(gcap_graph_memory_t* memory, gcap_stream_t* stream,
                                 graph_reservation_t** out_reservation) {
  if (memory->shared) {
    GCAP_RETURN_IF_ERROR(open_shared(memory, stream, out_reservation));
  } else {
    GCAP_RETURN_IF_ERROR(open_new(memory, stream, out_reservation));
  }
  ++(*out_reservation)->num_graphs;
  return NULL;
}

// Takes one graph off it. The last one ends it; a shared one was opened once more than it has had graphs.
static void give_up_locked(graph_reservation_t* reservation) {
  gcap_graph_memory_t* memory = reservation->memory;
  gcap_scratch_reservation_release(reservation->scratch);
  if (--reservation->num_graphs > 0) return;
  if (memory->shared) {
    gcap_scratch_reservation_release(reservation->scratch);
    graph_reservation_t** link = &memory->in_common;
    while (*link != reservation) link = &(*link)->next;
    *link = reservation->next;
  }
  free(reservation);
}

// --- What a capture calls -------------------------------------------------------------------------------------------

static void close_reservation(void* user, bool committed) {
  // Either way the retained entry gives it up, later or now.
  gcap_scratch_reservation_close_with(((graph_reservation_t*)user)->scratch, committed);
}

static void release_reservation(void* user) {
  graph_reservation_t* reservation = user;
  gcap_graph_memory_t* memory = reservation->memory;
  pthread_mutex_lock(&memory->mutex);
  give_up_locked(reservation);
  pthread_mutex_unlock(&memory->mutex);
}

static size_t reservation_bytes(void* user) {
  graph_reservation_t* reservation = user;
  pthread_mutex_lock(&reservation->memory->mutex);
  size_t num_graphs = reservation->num_graphs;
  pthread_mutex_unlock(&reservation->memory->mutex);
  return gcap_scratch_reservation_bytes(reservation->scratch) / num_graphs;
}

static void list_reservation(void* user, void (*visit)(void* context, void* address, size_t bytes), void* context) {
  gcap_scratch_reservation_list(((graph_reservation_t*)user)->scratch, visit, context);
}

// --- Around a capture -----------------------------------------------------------------------------------------------

// Opens the shared reservation, if there is one, since the free memory of an open reservation counts.
static gcap_status_t open_to_prepare(gcap_graph_memory_t* memory, gcap_stream_t* stream,
                                     graph_reservation_t** out_reservation) {
  pthread_mutex_lock(&memory->mutex);
  const bool is_shared = find_shared(memory, stream) != NULL;
  gcap_status_t status = is_shared ? open_locked(memory, stream, out_reservation) : NULL;
  pthread_mutex_unlock(&memory->mutex);
  return status;
}

void gcap_graph_memory_prepare(gcap_graph_memory_t* memory, gcap_stream_t* stream, int graph_id) {
  if (gcap_thread_captures()) return;  // a run was left open: its end comes first, and this run finds what there is
  graph_reservation_t* reservation = NULL;
  gcap_status_t status = open_to_prepare(memory, stream, &reservation);
  if (status == NULL) {
    status = gcap_scratch_prepare_for(memory->scratch, stream, gcap_graph_memory_work(graph_id));
  }
  if (reservation != NULL) {
    close_reservation(reservation, /*committed=*/false);
    release_reservation(reservation);
  }
  if (status == NULL) return;
  gcap_log(GCAP_LOG_WARNING, "a capture may lack memory: %s", gcap_status_message(status));
  gcap_status_free(status);
}

gcap_status_t gcap_graph_memory_reserve(gcap_graph_memory_t* memory, gcap_stream_t* stream, int graph_id,
                                        gcap_capture_t* capture) {
  graph_reservation_t* reservation = NULL;
  pthread_mutex_lock(&memory->mutex);
  gcap_status_t status = open_locked(memory, stream, &reservation);
  pthread_mutex_unlock(&memory->mutex);
  if (status != NULL) return status;
  char label[32];
  snprintf(label, sizeof(label), "graph %d", graph_id);
  gcap_scratch_reservation_set_label(reservation->scratch, label);
  status = gcap_capture_retain_memory(capture, release_reservation, reservation_bytes, list_reservation, reservation);
  if (status != NULL) {
    close_reservation(reservation, /*committed=*/false);
    release_reservation(reservation);
    return status;
  }
  status = gcap_capture_on_close(capture, close_reservation, reservation);
  if (status != NULL) close_reservation(reservation, /*committed=*/false);
  return status;
}
