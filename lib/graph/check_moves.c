// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A moved graph put to the test: by the public functions, and copies on the graph's stream. Of each buffer there are
// three pieces of memory meanwhile: what it had before, what a launch in place makes of that, and the copy that the
// graph is moved to.
//
// Locking: the manager's mutex only to read where the buffers are. Nobody else uses the id, so nothing changes between.

#include <stdlib.h>
#include <string.h>

#include "lib/graph/manager.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/forked.h"
#include "lib/internal/synchronize.h"

#define CHUNK_BYTES ((size_t)1 << 20)

// What the bytes of a buffer are while the graph is elsewhere: no NaN in any type, which arithmetic would leave as it
// is, and another byte in each buffer, so that a copy from one to the other shows.
static unsigned char poison_of(size_t buffer) { return (unsigned char)(0x11 + buffer * 29 % 0x4E); }

typedef struct trial {
  const char* name;  // of the captured graph
  char* address;     // where the buffer is
  size_t bytes, alignment;
  bool may_move;  // it is in device memory
  void* block;    // NULL: the buffer stays in place
  char *before, *after, *moved;
} trial_t;

typedef struct trials {
  gcap_graph_manager_t* manager;
  int id;
  cudaStream_t stream;
  trial_t* items;
  size_t count;
  gcap_graph_buffer_t* places;  // [count], for a replay
  unsigned char* chunk;         // two of CHUNK_BYTES
  int device_id;
  bool is_saved;  // the buffers must be restored
} trials_t;

// --- Memory ---------------------------------------------------------------------------------------------------------

static gcap_status_t allocate(trial_t* trial, int device_id) {
  const size_t bytes = (trial->bytes + 255) / 256 * 256;
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(device_id, &previous));
  gcap_status_t status = GCAP_CUDA(cudaMalloc(&trial->block, 3 * bytes + trial->alignment));
  GCAP_RETURN_IF_ERROR(gcap_status_join(status, gcap_thread_leave(device_id, &previous)));
  trial->moved = (char*)(((uintptr_t)trial->block + trial->alignment - 1) & ~(uintptr_t)(trial->alignment - 1));
  trial->before = trial->moved + bytes;
  trial->after = trial->before + bytes;
  return NULL;
}

static gcap_status_t read_buffers(trials_t* trials, const gcap_graph_slot_t* slot) {
  const gcap_graph_moving_t* moving = slot->graph->moving;
  if (moving == NULL || moving->relocation == NULL) {
    if (moving != NULL && moving->refusal != NULL) return gcap_status_clone(moving->refusal);
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d was captured without buffers", slot->id);
  }
  trials->stream = slot->graph->stream;
  trials->device_id = slot->graph->device_id;
  if (!gcap_life_goes_on(slot->graph->stream_life)) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d: its stream was destroyed", slot->id);
  }
  trials->items = calloc(moving->count + 1, sizeof(*trials->items));
  trials->places = calloc(moving->count + 1, sizeof(*trials->places));
  trials->chunk = malloc(2 * CHUNK_BYTES);
  if (trials->items == NULL || trials->places == NULL || trials->chunk == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to check graph id %d", slot->id);
  }
  trials->count = moving->count;
  for (size_t i = 0; i < moving->count; ++i) {
    const gcap_moving_buffer_t* buffer = &moving->relocation->buffers[i];
    trials->items[i] = (trial_t){.name = buffer->name,
                                 .address = (char*)buffer->address,
                                 .bytes = buffer->bytes,
                                 .alignment = buffer->alignment,
                                 .may_move = moving->places[i].type == GCAP_DRIVER_DEVICE_MEMORY};
  }
  return NULL;
}

// Copies of buffers that overlap do not, so the graph may do something else on them.
static gcap_status_t check_apart(const trials_t* trials) {
  for (size_t i = 0; i < trials->count; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const trial_t *a = &trials->items[i], *b = &trials->items[j];
      if (a->address >= b->address + b->bytes || b->address >= a->address + a->bytes) continue;
      return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                         "graph id %d cannot be checked: its buffers %zu '%s' and %zu '%s' overlap", trials->id, j,
                         b->name, i, a->name);
    }
  }
  return NULL;
}

static gcap_status_t begin(trials_t* trials) {
  gcap_graph_slot_t* slot = NULL;
  pthread_mutex_lock(&trials->manager->mutex);
  gcap_status_t status = gcap_graph_find_replayable(trials->manager, trials->id, &slot);
  if (status == NULL) status = read_buffers(trials, slot);
  pthread_mutex_unlock(&trials->manager->mutex);
  if (status == NULL) status = check_apart(trials);
  if (status == NULL) status = gcap_check_stream_not_capturing(trials->stream, "graph id %d", trials->id);
  for (size_t i = 0; status == NULL && i < trials->count; ++i) {
    if (trials->items[i].may_move) status = allocate(&trials->items[i], trials->device_id);
  }
  return status;
}

static gcap_status_t end(trials_t* trials) {
  enum cudaStreamCaptureMode mode;
  gcap_status_t pushed = gcap_relaxed_push(&mode);
  gcap_status_t status = NULL;
  for (size_t i = 0; i < trials->count; ++i) {
    status = gcap_status_join(status, GCAP_CUDA(cudaFree(trials->items[i].block)));
  }
  free(trials->items);
  free(trials->places);
  free(trials->chunk);
  return pushed != NULL ? gcap_status_join(pushed, status) : gcap_status_join(status, gcap_relaxed_pop(mode));
}

// --- Launches -------------------------------------------------------------------------------------------------------

static gcap_status_t copy(const trials_t* trials, char* to, const char* from, size_t bytes) {
  return GCAP_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, trials->stream));
}

// Launches the graph on the buffers, or on the memory beside them.
static gcap_status_t launch(const trials_t* trials, bool is_moved) {
  for (size_t i = 0; i < trials->count; ++i) {
    const trial_t* trial = &trials->items[i];
    char* address = is_moved && trial->block != NULL ? trial->moved : trial->address;
    trials->places[i] = (gcap_graph_buffer_t){trial->name, address, trial->bytes, trial->alignment};
  }
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.items = trials->places;
  buffers.count = trials->count;
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = trials->id;
  run.buffers = &buffers;
  run.synchronize = true;
  return gcap_graph_manager_replay(trials->manager, &run, NULL);
}

static gcap_status_t launch_in_place(trials_t* trials) {
  for (size_t i = 0; i < trials->count; ++i) {
    const trial_t* trial = &trials->items[i];
    if (trial->block != NULL) GCAP_RETURN_IF_ERROR(copy(trials, trial->before, trial->address, trial->bytes));
  }
  trials->is_saved = true;
  return launch(trials, /*is_moved=*/false);
}

static gcap_status_t launch_moved(trials_t* trials) {
  for (size_t i = 0; i < trials->count; ++i) {
    const trial_t* trial = &trials->items[i];
    if (trial->block == NULL) continue;
    GCAP_RETURN_IF_ERROR(copy(trials, trial->after, trial->address, trial->bytes));
    GCAP_RETURN_IF_ERROR(copy(trials, trial->moved, trial->before, trial->bytes));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(trial->address, poison_of(i), trial->bytes, trials->stream)));
  }
  return launch(trials, /*is_moved=*/true);
}

// --- What they left -------------------------------------------------------------------------------------------------

static gcap_status_t read(const trials_t* trials, const char* from, size_t bytes, unsigned char* chunk) {
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(chunk, from, bytes, cudaMemcpyDeviceToHost, trials->stream)));
  return gcap_synchronize_stream(trials->stream);
}

// Whether two pieces are equal; `b` NULL: whether each byte of `a` is `byte`.
static gcap_status_t compare(const trials_t* trials, const char* a, const char* b, unsigned char byte, size_t bytes,
                             bool* out_equal) {
  unsigned char *first = trials->chunk, *second = trials->chunk + CHUNK_BYTES;
  memset(second, byte, CHUNK_BYTES);
  *out_equal = true;
  for (size_t at = 0; *out_equal && at < bytes; at += CHUNK_BYTES) {
    const size_t now = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
    GCAP_RETURN_IF_ERROR(read(trials, a + at, now, first));
    if (b != NULL) GCAP_RETURN_IF_ERROR(read(trials, b + at, now, second));
    *out_equal = memcmp(first, second, now) == 0;
  }
  return NULL;
}

static gcap_status_t judge(const trials_t* trials) {
  for (size_t i = 0; i < trials->count; ++i) {
    const trial_t* trial = &trials->items[i];
    bool is_untouched = true, is_right = true;
    if (trial->block == NULL) continue;
    GCAP_RETURN_IF_ERROR(compare(trials, trial->address, NULL, poison_of(i), trial->bytes, &is_untouched));
    if (is_untouched) {
      GCAP_RETURN_IF_ERROR(compare(trials, trial->moved, trial->after, 0, trial->bytes, &is_right));
    }
    if (is_untouched && is_right) continue;
    return GCAP_STATUS(
        GCAP_FAILED_PRECONDITION, "graph id %d, moved from its buffers, %s buffer %zu '%s'%s", trials->id,
        is_untouched ? "leaves another result in" : "still writes to", i, trial->name,
        is_untouched ? ": it reads memory that a bind does not reach, or does not do the same twice" : "");
  }
  return NULL;
}

// Moves the graph back, and gives the buffers what they had.
static gcap_status_t restore(trials_t* trials) {
  if (!trials->is_saved) return NULL;
  gcap_status_t status = NULL;
  for (size_t i = 0; i < trials->count; ++i) {
    const trial_t* trial = &trials->items[i];
    if (trial->block == NULL) continue;
    gcap_status_t copied = copy(trials, trial->address, trial->before, trial->bytes);
    gcap_status_t bound = gcap_graph_manager_bind(trials->manager, trials->id, i, trial->address);
    status = gcap_status_join(status, gcap_status_join(copied, bound));
  }
  status = gcap_status_join(status, gcap_synchronize_stream(trials->stream));
  return gcap_status_annotate(status, gcap_status_code(status), "the buffers could not be restored");
}

gcap_status_t gcap_graph_manager_check_moves(gcap_graph_manager_t* manager, int id) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  trials_t trials = {.manager = manager, .id = id};
  gcap_status_t status = begin(&trials);
  if (status == NULL) status = launch_in_place(&trials);
  if (status == NULL) status = launch_moved(&trials);
  if (status == NULL) status = judge(&trials);
  status = gcap_status_join(status, restore(&trials));
  return gcap_status_join(status, end(&trials));
}
