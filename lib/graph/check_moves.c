// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A moved graph put to the test: by the public functions, and copies on the graph's stream. The memory where the
// buffers are and have been is a list of areas that share no byte. Of each area there are two copies meanwhile: what it
// had before, and what a launch in place made of that. Of each group of buffers there is the copy that the graph is
// moved to. A place where a buffer has been counts only if the driver still has the same allocation there.
//
// Locking: the manager's mutex to read where the buffers are and have been, and to put them back. Nobody else uses the
// id, so nothing changes between.

#include <stdlib.h>
#include <string.h>

#include "lib/graph/bind.h"
#include "lib/graph/manager.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/forked.h"
#include "lib/internal/synchronize.h"
#include "lib/verify/inner.h"

#define CHUNK_BYTES ((size_t)1 << 20)

// Between two copies, so that they do not touch.
#define APART_BYTES ((size_t)256)

// What the bytes of an area are while the graph is elsewhere: no NaN in any type, which arithmetic would leave as it
// is, and another byte in each area, so that a copy from one to the other shows.
static unsigned char poison_of(size_t area) { return (unsigned char)(0x11 + area * 29 % 0x4E); }

// The copies of an area's bytes.
typedef struct copies {
  char *before, *after;
} copies_t;

// Buffers that move together.
typedef struct group {
  char* begin;
  size_t bytes, alignment;
  bool may_move;  // it is in device memory
  void* block;    // NULL: the group stays in place
  char* moved;
} group_t;

typedef struct trial {
  const char* name;  // of the captured graph
  char* address;     // where the buffer is
  size_t bytes, alignment;
  size_t group;
} trial_t;

typedef struct trials {
  gcap_graph_manager_t* manager;
  int id;
  cudaStream_t stream;
  trial_t* items;  // the buffers
  size_t count;
  group_t* groups;
  size_t num_groups;
  gcap_graph_spot_t* spots;  // where the buffers have been
  size_t num_spots;
  gcap_area_t* areas;  // owned by the buffer that is there, or else by the spot: behind the buffers
  copies_t* copies;    // of each area
  size_t num_areas;
  gcap_graph_buffer_t* places;  // [count], for a replay
  gcap_graph_value_t* values;   // as they are now, for a replay; of the captured graph
  size_t num_values;
  unsigned char* chunk;  // two of CHUNK_BYTES
  int device_id;
  bool is_saved;  // the areas must be restored
} trials_t;

// --- What is looked at ----------------------------------------------------------------------------------------------

static gcap_status_t make_lists(trials_t* trials, const gcap_graph_moving_t* moving) {
  trials->items = calloc(moving->count + 1, sizeof(*trials->items));
  trials->places = calloc(moving->count + 1, sizeof(*trials->places));
  trials->values = calloc(moving->values.count + 1, sizeof(*trials->values));
  trials->groups = calloc(moving->layout.num_groups + 1, sizeof(*trials->groups));
  trials->spots = calloc(moving->num_spots + 1, sizeof(*trials->spots));
  trials->areas = calloc(moving->count + moving->num_spots + 1, sizeof(*trials->areas));
  trials->copies = calloc(moving->count + moving->num_spots + 1, sizeof(*trials->copies));
  trials->chunk = malloc(2 * CHUNK_BYTES);
  if (trials->items != NULL && trials->places != NULL && trials->values != NULL && trials->groups != NULL &&
      trials->spots != NULL && trials->areas != NULL && trials->copies != NULL && trials->chunk != NULL) {
    return NULL;
  }
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to check graph id %d", trials->id);
}

static void read_lists(trials_t* trials, const gcap_graph_moving_t* moving) {
  const gcap_moving_buffer_t* buffers = gcap_relocation_buffers(moving->relocation);
  const gcap_layout_t* layout = &moving->layout;
  trials->count = moving->count;
  for (size_t i = 0; i < moving->count; ++i) {
    trials->items[i] = (trial_t){.name = buffers[i].name,
                                 .address = (char*)buffers[i].address,
                                 .bytes = buffers[i].bytes,
                                 .alignment = buffers[i].alignment,
                                 .group = layout->group_of[i]};
  }
  trials->num_values = moving->values.count;
  for (size_t i = 0; i < trials->num_values; ++i) {
    trials->values[i] = gcap_graph_values_as_given(&moving->values, moving->relocation, i);
  }
  trials->num_groups = layout->num_groups;
  for (size_t i = 0; i < layout->num_groups; ++i) {
    const gcap_layout_group_t* group = &layout->groups[i];
    trials->groups[i] = (group_t){.begin = (char*)buffers[group->first].address,
                                  .bytes = group->bytes,
                                  .alignment = group->alignment,
                                  .may_move = moving->places[group->first].type == GCAP_DRIVER_DEVICE_MEMORY};
  }
  trials->num_spots = moving->num_spots;
  if (moving->num_spots > 0) memcpy(trials->spots, moving->spots, moving->num_spots * sizeof(*trials->spots));
}

static gcap_status_t read_buffers(trials_t* trials, const gcap_graph_slot_t* slot) {
  const gcap_graph_moving_t* moving = slot->graph->moving;
  if (moving == NULL) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d was captured without buffers", slot->id);
  }
  if (gcap_graph_moving_stays(moving)) return gcap_status_clone(moving->refusal);
  trials->stream = slot->graph->stream;
  trials->device_id = slot->graph->device_id;
  if (!gcap_life_goes_on(slot->graph->stream_life)) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d: its stream was destroyed", slot->id);
  }
  GCAP_RETURN_IF_ERROR(make_lists(trials, moving));
  read_lists(trials, moving);
  return NULL;
}

// Whether the memory is what it was when the buffer was there.
static gcap_status_t find_is_left(const gcap_graph_spot_t* spot, size_t bytes, bool* out_is_left) {
  gcap_driver_allocation_t memory;
  GCAP_RETURN_IF_ERROR(gcap_driver_find_allocation(spot->address, &memory));
  *out_is_left = memory.type == GCAP_DRIVER_DEVICE_MEMORY && memory.buffer_id == spot->buffer_id &&
                 bytes <= memory.start + memory.bytes - spot->address;
  return NULL;
}

static gcap_status_t find_areas(trials_t* trials) {
  for (size_t i = 0; i < trials->count; ++i) {
    const trial_t* trial = &trials->items[i];
    if (!trials->groups[trial->group].may_move) continue;
    trials->areas[trials->num_areas++] = (gcap_area_t){.begin = trial->address, .bytes = trial->bytes, .owner = i};
  }
  for (size_t i = 0; i < trials->num_spots; ++i) {
    const gcap_graph_spot_t* spot = &trials->spots[i];
    bool is_left = false;
    GCAP_RETURN_IF_ERROR(find_is_left(spot, trials->items[spot->buffer].bytes, &is_left));
    if (!is_left) continue;
    trials->areas[trials->num_areas++] = (gcap_area_t){
        .begin = (char*)spot->address, .bytes = trials->items[spot->buffer].bytes, .owner = trials->count + i};
  }
  trials->num_areas = gcap_areas_merge(trials->areas, trials->num_areas);
  return NULL;
}

// --- Memory ---------------------------------------------------------------------------------------------------------

static gcap_status_t allocate_group(const trials_t* trials, group_t* group) {
  GCAP_RETURN_IF_ERROR(
      gcap_relaxed_malloc(trials->device_id, group->bytes + 2 * group->alignment + APART_BYTES, &group->block));
  const uintptr_t mask = group->alignment - 1;
  group->moved = (char*)((((uintptr_t)group->block + mask) & ~mask) + ((uintptr_t)group->begin & mask));
  return NULL;
}

static gcap_status_t allocate_copies(const trials_t* trials, size_t area) {
  void* block = NULL;
  gcap_status_t status = gcap_relaxed_malloc(trials->device_id, 2 * trials->areas[area].bytes, &block);
  trials->copies[area].before = block;
  if (status == NULL) trials->copies[area].after = (char*)block + trials->areas[area].bytes;
  return status;
}

static gcap_status_t begin(trials_t* trials) {
  gcap_graph_slot_t* slot = NULL;
  pthread_mutex_lock(&trials->manager->mutex);
  gcap_status_t status = gcap_graph_find_replayable(trials->manager, trials->id, &slot);
  if (status == NULL) status = gcap_graph_check_alone(slot);
  if (status == NULL && slot->graph->holes != NULL) {
    status = GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                         "graph id %d has holes, whose functions a trial would call: its moves cannot be checked",
                         trials->id);
  }
  if (status == NULL) status = read_buffers(trials, slot);
  pthread_mutex_unlock(&trials->manager->mutex);
  if (status == NULL) status = gcap_check_stream_not_capturing(trials->stream, "graph id %d", trials->id);
  if (status == NULL) status = find_areas(trials);
  for (size_t i = 0; status == NULL && i < trials->num_areas; ++i) status = allocate_copies(trials, i);
  for (size_t i = 0; status == NULL && i < trials->num_groups; ++i) {
    if (trials->groups[i].may_move) status = allocate_group(trials, &trials->groups[i]);
  }
  return status;
}

static gcap_status_t end(trials_t* trials) {
  enum cudaStreamCaptureMode mode;
  gcap_status_t pushed = gcap_relaxed_push(&mode);
  gcap_status_t status = NULL;
  for (size_t i = 0; i < trials->num_areas; ++i) {
    status = gcap_status_join(status, GCAP_CUDA(cudaFree(trials->copies[i].before)));
  }
  for (size_t i = 0; i < trials->num_groups; ++i) {
    status = gcap_status_join(status, GCAP_CUDA(cudaFree(trials->groups[i].block)));
  }
  free(trials->items);
  free(trials->groups);
  free(trials->spots);
  free(trials->areas);
  free(trials->copies);
  free(trials->places);
  free(trials->values);
  free(trials->chunk);
  return pushed != NULL ? gcap_status_join(pushed, status) : gcap_status_join(status, gcap_relaxed_pop(mode));
}

// --- Launches -------------------------------------------------------------------------------------------------------

static gcap_status_t copy(const trials_t* trials, char* to, const char* from, size_t bytes) {
  return GCAP_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, trials->stream));
}

// Where a buffer is in the copy of its group.
static char* moved_of(const trials_t* trials, const trial_t* trial) {
  const group_t* group = &trials->groups[trial->group];
  return group->block != NULL ? group->moved + (trial->address - group->begin) : trial->address;
}

// Where the copies of before, or of after, have an address of a buffer.
static char* in_copy(const trials_t* trials, const char* address, bool is_after) {
  const size_t area = gcap_areas_find(trials->areas, address);
  const copies_t* copies = &trials->copies[area];
  return (is_after ? copies->after : copies->before) + (address - trials->areas[area].begin);
}

static gcap_graph_buffers_t places_of(const trials_t* trials, bool is_moved) {
  for (size_t i = 0; i < trials->count; ++i) {
    const trial_t* trial = &trials->items[i];
    char* address = is_moved ? moved_of(trials, trial) : trial->address;
    trials->places[i] = (gcap_graph_buffer_t){trial->name, address, trial->bytes, trial->alignment};
  }
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.items = trials->places;
  buffers.count = trials->count;
  buffers.values = trials->values;
  buffers.num_values = trials->num_values;
  return buffers;
}

// Launches the graph on the buffers, or on their copies.
static gcap_status_t launch(const trials_t* trials, bool is_moved) {
  const gcap_graph_buffers_t buffers = places_of(trials, is_moved);
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = trials->id;
  run.buffers = &buffers;
  run.synchronize = true;
  return gcap_graph_manager_replay(trials->manager, &run, NULL);
}

static gcap_status_t launch_in_place(trials_t* trials) {
  for (size_t i = 0; i < trials->num_areas; ++i) {
    const gcap_area_t* area = &trials->areas[i];
    GCAP_RETURN_IF_ERROR(copy(trials, trials->copies[i].before, area->begin, area->bytes));
  }
  trials->is_saved = true;
  return launch(trials, /*is_moved=*/false);
}

static gcap_status_t launch_moved(trials_t* trials) {
  for (size_t i = 0; i < trials->num_groups; ++i) {
    const group_t* group = &trials->groups[i];
    if (group->block == NULL) continue;
    const char* before = in_copy(trials, group->begin, /*is_after=*/false);
    GCAP_RETURN_IF_ERROR(copy(trials, group->moved, before, group->bytes));
  }
  for (size_t i = 0; i < trials->num_areas; ++i) {
    const gcap_area_t* area = &trials->areas[i];
    GCAP_RETURN_IF_ERROR(copy(trials, trials->copies[i].after, area->begin, area->bytes));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(area->begin, poison_of(i), area->bytes, trials->stream)));
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

static gcap_status_t judge_areas(const trials_t* trials) {
  for (size_t i = 0; i < trials->num_areas; ++i) {
    const gcap_area_t* area = &trials->areas[i];
    bool is_untouched = true;
    GCAP_RETURN_IF_ERROR(compare(trials, area->begin, NULL, poison_of(i), area->bytes, &is_untouched));
    if (is_untouched) continue;
    const bool is_present = area->owner < trials->count;
    const size_t buffer = is_present ? area->owner : trials->spots[area->owner - trials->count].buffer;
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "graph id %d, moved from its buffers, still writes to %sbuffer %zu '%s'%s", trials->id,
                       is_present ? "" : "memory where ", buffer, trials->items[buffer].name,
                       is_present ? "" : " has been");
  }
  return NULL;
}

static gcap_status_t judge_results(const trials_t* trials) {
  for (size_t i = 0; i < trials->count; ++i) {
    const trial_t* trial = &trials->items[i];
    if (trials->groups[trial->group].block == NULL) continue;
    const char* after = in_copy(trials, trial->address, /*is_after=*/true);
    bool is_right = true;
    GCAP_RETURN_IF_ERROR(compare(trials, moved_of(trials, trial), after, 0, trial->bytes, &is_right));
    if (is_right) continue;
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "graph id %d, moved from its buffers, leaves another result in buffer %zu '%s': it reads memory "
                       "that a bind does not reach, or does not do the same twice",
                       trials->id, i, trial->name);
  }
  return NULL;
}

static gcap_status_t judge(const trials_t* trials) {
  GCAP_RETURN_IF_ERROR(judge_areas(trials));
  return judge_results(trials);
}

static gcap_status_t move_back(const trials_t* trials) {
  const gcap_graph_buffers_t buffers = places_of(trials, /*is_moved=*/false);
  gcap_graph_slot_t* slot = NULL;
  bool is_refused = false;
  pthread_mutex_lock(&trials->manager->mutex);
  gcap_status_t status = gcap_graph_find_replayable(trials->manager, trials->id, &slot);
  if (status == NULL) status = gcap_graph_plan_bind(slot, &buffers, NULL);
  if (status == NULL) status = gcap_graph_apply_bind(slot, &is_refused);
  pthread_mutex_unlock(&trials->manager->mutex);
  return status;
}

// Moves the graph back, and gives the areas what they had.
static gcap_status_t restore(const trials_t* trials) {
  if (!trials->is_saved) return NULL;
  gcap_status_t status = NULL;
  for (size_t i = 0; i < trials->num_areas; ++i) {
    const gcap_area_t* area = &trials->areas[i];
    status = gcap_status_join(status, copy(trials, area->begin, trials->copies[i].before, area->bytes));
  }
  status = gcap_status_join(status, move_back(trials));
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
