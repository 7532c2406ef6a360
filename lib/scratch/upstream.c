// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Traffic with the upstream allocator: growing by a region, and giving idle regions back.
//
// Upstream may be foreign code that calls this scratch again, so the arena is unlocked around each call. What is on its
// way then is counted in in_transit_bytes and num_regions_in_transit: the memory limit holds meanwhile, and the array
// of regions keeps a place for each, so that coming home never fails.
//
// One thread grows the arena at a time, and others that lack memory wait for the region and look there first: what is
// held does not depend on how many of them lacked memory at once. A thread that captures does not wait, nor does one
// that is inside upstream already, which others may be waiting for. The wait has an end, since upstream is foreign
// code: it may itself wait for what the waiting thread holds, such as an interpreter's lock.

#include "lib/scratch/upstream.h"

#include <time.h>

#include "lib/base/capture_hooks.h"
#include "lib/internal/clock.h"
#include "lib/scratch/lock.h"

// Many times what a driver takes for a region.
#define PATIENCE_NS UINT64_C(1000000000)

enum {
  kLittleBytes = 4 << 20,
  kSmallBytes = 1 << 20,
  kRegionBytes = 20 << 20,
  kRegionShare = 8,
  kRegionUnit = 2 << 20,  // in which cudaMalloc takes large ones
};

// --- Inside upstream ------------------------------------------------------------------------------------------------

static _Thread_local unsigned num_upstream_calls;  // that this thread is in, of any arena

static int enter_upstream(gcap_scratch_t* scratch) {
  ++num_upstream_calls;
  return gcap_scratch_pause_lock(scratch);
}

static void leave_upstream(gcap_scratch_t* scratch, int paused) {
  gcap_scratch_resume_lock(scratch, paused);
  --num_upstream_calls;
}

// --- Regions of other threads ---------------------------------------------------------------------------------------

void gcap_scratch_arrivals_init(gcap_scratch_t* scratch) {
  pthread_mutex_init(&scratch->arrivals_mutex, NULL);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&scratch->arrived, &attributes);
  pthread_condattr_destroy(&attributes);
}

void gcap_scratch_arrivals_deinit(gcap_scratch_t* scratch) {
  pthread_cond_destroy(&scratch->arrived);
  pthread_mutex_destroy(&scratch->arrivals_mutex);
}

static void announce_arrival(gcap_scratch_t* scratch) {
  pthread_mutex_lock(&scratch->arrivals_mutex);
  ++scratch->num_arrivals;
  pthread_cond_broadcast(&scratch->arrived);
  pthread_mutex_unlock(&scratch->arrivals_mutex);
}

// Waits for the next arrival; false when the patience was over before.
static bool wait_for_arrival(gcap_scratch_t* scratch, gcap_scratch_patience_t* patience) {
  const bool has_end = !scratch->test_hooks.wait_for_ever;
  if (gcap_thread_captures() || num_upstream_calls > 0) return false;
  if (patience->until_ns == 0) patience->until_ns = gcap_now_ns() + PATIENCE_NS;
  const struct timespec until = {.tv_sec = (time_t)(patience->until_ns / UINT64_C(1000000000)),
                                 .tv_nsec = (long)(patience->until_ns % UINT64_C(1000000000))};
  const uint64_t num_arrivals = scratch->num_arrivals;
  const int paused = gcap_scratch_pause_lock(scratch);
  pthread_mutex_lock(&scratch->arrivals_mutex);
  int error = 0;
  while (scratch->num_arrivals == num_arrivals && error == 0) {
    error = has_end ? pthread_cond_timedwait(&scratch->arrived, &scratch->arrivals_mutex, &until)
                    : pthread_cond_wait(&scratch->arrived, &scratch->arrivals_mutex);
  }
  const bool arrived = scratch->num_arrivals != num_arrivals;
  pthread_mutex_unlock(&scratch->arrivals_mutex);
  gcap_scratch_resume_lock(scratch, paused);
  return arrived;
}

bool gcap_scratch_wait_for_growth(gcap_scratch_t* scratch, gcap_scratch_patience_t* patience) {
  return scratch->num_growing_calls > 0 && wait_for_arrival(scratch, patience);
}

bool gcap_scratch_wait_for_transit(gcap_scratch_t* scratch, gcap_scratch_patience_t* patience) {
  return scratch->num_regions_in_transit > 0 && wait_for_arrival(scratch, patience);
}

// --- The regions that are held --------------------------------------------------------------------------------------

static void list_region(gcap_scratch_t* scratch, gcap_scratch_region_t* region) {
  gcap_scratch_list_region(&scratch->store, region);
  scratch->stats.total_allocated_bytes += region->bytes;
}

static void unlist_region(gcap_scratch_t* scratch, const gcap_scratch_region_t* region) {
  gcap_scratch_unlist_region(&scratch->store, region);
  scratch->stats.total_allocated_bytes -= region->bytes;
}

static void add_region(gcap_scratch_t* scratch, gcap_scratch_region_t* region) {
  list_region(scratch, region);
  gcap_scratch_put(&scratch->store, region->first);
}

// --- Growing --------------------------------------------------------------------------------------------------------

// How much to ask for. What is held doubles while it is little and requests are small, so that a small model stays
// small. Then come regions of one size, or of a share of what is held when that is more: large enough that large
// requests share them, and so few that one more is little beside the rest. ONNX Runtime's arena, whose options these
// are, doubles each region, as RMM's pool does: at the peak of a run nearly half of what they hold may be spare. The
// sizes are those that PyTorch's caching allocator calls kLargeBuffer and kSmallSize.
static size_t plan_growth(const gcap_scratch_t* scratch, size_t needed_bytes) {
  const gcap_scratch_options_t* options = &scratch->options;
  if (options->extend_as_requested || options->bypass) return needed_bytes;
  const size_t held = gcap_scratch_held_bytes(scratch);
  size_t bytes = held;
  if (held >= kLittleBytes || needed_bytes > kSmallBytes) {
    bytes = held / kRegionShare / kRegionUnit * kRegionUnit;
    if (bytes < kRegionBytes) bytes = kRegionBytes;
  }
  if (bytes > options->max_extend_bytes) bytes = options->max_extend_bytes;
  if (bytes < scratch->next_region_bytes) bytes = scratch->next_region_bytes;
  return bytes < needed_bytes ? needed_bytes : bytes;
}

static gcap_status_t apply_limit(const gcap_scratch_t* scratch, size_t needed_bytes, size_t* bytes) {
  size_t limit = scratch->options.memory_limit_bytes;
  if (limit == 0) return NULL;
  size_t left = limit > gcap_scratch_held_bytes(scratch) ? limit - gcap_scratch_held_bytes(scratch) : 0;
  left -= left % GCAP_SCRATCH_GRANULE_BYTES;
  if (needed_bytes > left) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED,
                       "scratch needs %zu bytes more; its limit is %zu, of which %zu are held from upstream",
                       needed_bytes, limit, gcap_scratch_held_bytes(scratch));
  }
  if (*bytes > left) *bytes = left;
  return NULL;
}

// One region from upstream. Holds nothing.
static gcap_status_t fetch_region(gcap_scratch_t* scratch, size_t bytes, gcap_scratch_block_t* block,
                                  gcap_scratch_region_t** out_region, bool* out_is_short) {
  gcap_allocator_t* upstream = scratch->upstream;
  *out_region = NULL;
  void* base = NULL;
  gcap_status_t given = gcap_allocator_alloc(upstream, bytes, &base);
  // Upstream says no more than this. Where host memory is short for its status, the code is the same whatever the cause
  // was: then less is asked for, or something given back, in vain; nothing else hangs on the code.
  *out_is_short = gcap_status_code(given) == GCAP_RESOURCE_EXHAUSTED;
  if (given != NULL) return given;
  if (base == NULL || (uintptr_t)base % GCAP_SCRATCH_GRANULE_BYTES != 0) {
    gcap_status_t status =
        GCAP_STATUS(GCAP_LIBRARY_ERROR, "scratch's upstream allocator gave %p for %zu bytes", base, bytes);
    return gcap_status_join(status, gcap_allocator_free(upstream, base));
  }
  gcap_status_t status = gcap_scratch_region_create(&scratch->store, base, bytes, block, out_region);
  return status == NULL ? NULL : gcap_status_join(status, gcap_allocator_free(upstream, base));
}

// The planned region, or one of just what is needed where upstream has not enough for the plan.
static gcap_status_t fetch_planned(gcap_scratch_t* scratch, size_t planned_bytes, size_t needed_bytes,
                                   gcap_scratch_block_t* block, gcap_scratch_region_t** out_region,
                                   bool* out_is_short) {
  gcap_status_t status = fetch_region(scratch, planned_bytes, block, out_region, out_is_short);
  if (gcap_status_code(status) != GCAP_RESOURCE_EXHAUSTED || planned_bytes == needed_bytes) return status;
  gcap_status_free(status);
  return fetch_region(scratch, needed_bytes, block, out_region, out_is_short);
}

gcap_status_t gcap_scratch_get_region(gcap_scratch_t* scratch, size_t bytes, bool reserved,
                                      gcap_scratch_block_t** out_block, bool* out_is_short) {
  *out_block = NULL;
  size_t planned = reserved ? bytes : plan_growth(scratch, bytes);
  gcap_status_t status = apply_limit(scratch, bytes, &planned);
  *out_is_short = status != NULL;
  if (status != NULL) return status;
  const size_t num_places = scratch->store.num_regions + scratch->num_regions_in_transit + 1;
  GCAP_RETURN_IF_ERROR(gcap_scratch_make_region_places(&scratch->store, num_places));
  gcap_scratch_block_t* block = gcap_scratch_block_new(&scratch->store.slabs, NULL);
  if (block == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to describe a scratch block");
  const size_t num_growing = reserved || scratch->options.bypass ? 0 : 1;  // of no use to others
  ++scratch->num_regions_in_transit;
  scratch->in_transit_bytes += planned;
  scratch->num_growing_calls += num_growing;
  const int paused = enter_upstream(scratch);
  gcap_scratch_region_t* region = NULL;
  status = fetch_planned(scratch, planned, bytes, block, &region, out_is_short);
  leave_upstream(scratch, paused);
  --scratch->num_regions_in_transit;
  scratch->in_transit_bytes -= planned;
  scratch->num_growing_calls -= num_growing;
  announce_arrival(scratch);
  if (status != NULL) {
    gcap_scratch_block_recycle(&scratch->store.slabs, NULL, block);
    return status;
  }
  region->reserved = reserved;
  if (!reserved) scratch->next_region_bytes = 0;
  ++*(reserved ? &scratch->stats.num_reserves : &scratch->stats.num_extensions);
  add_region(scratch, region);
  *out_block = region->first;
  return NULL;
}

gcap_status_t gcap_scratch_grow(gcap_scratch_t* scratch, size_t bytes, gcap_scratch_block_t** out_block) {
  bool is_short;
  return gcap_scratch_get_region(scratch, bytes, /*reserved=*/false, out_block, &is_short);
}

// --- Giving back ----------------------------------------------------------------------------------------------------

// What is handed out, or kept by a graph, has a state.
static bool is_idle(const gcap_scratch_region_t* region) {
  return region->first->upper == NULL && gcap_scratch_block_owner(region->first) == NULL;
}

// Takes the idle regions out of the arena, as a list.
static gcap_scratch_region_t* take_idle(gcap_scratch_t* scratch, bool all) {
  gcap_scratch_store_t* store = &scratch->store;
  gcap_scratch_region_t* idle = NULL;
  size_t num_kept = 0;
  for (size_t i = 0; i < store->num_regions; ++i) {
    gcap_scratch_region_t* region = store->regions[i];
    if (!is_idle(region) || (region->held && !all)) {
      store->regions[num_kept++] = region;
      continue;
    }
    gcap_scratch_pool_remove(&store->untagged, region->first);
    scratch->stats.total_allocated_bytes -= region->bytes;
    scratch->in_transit_bytes += region->bytes;
    ++scratch->num_regions_in_transit;
    region->next = idle;
    idle = region;
  }
  store->num_regions = num_kept;
  return idle;
}

// Frees the memory of a region in transit, which is in transit no more; with the arena unlocked meanwhile.
static gcap_status_t send_back(gcap_scratch_t* scratch, const gcap_scratch_region_t* region) {
  const int paused = enter_upstream(scratch);
  gcap_status_t status = gcap_allocator_free(scratch->upstream, region->base);
  leave_upstream(scratch, paused);
  --scratch->num_regions_in_transit;
  scratch->in_transit_bytes -= region->bytes;
  announce_arrival(scratch);
  // A free that fails has freed nothing (gcap/allocator_ops.h), and this code would say the contrary of the scratch.
  if (gcap_status_code(status) == GCAP_LEAKED)
    status =
        gcap_status_annotate(status, GCAP_LIBRARY_ERROR, "the free of scratch's upstream allocator answers LEAKED");
  return status;
}

gcap_status_t gcap_scratch_trim_upstream(gcap_scratch_t* scratch) {
  const int paused = enter_upstream(scratch);
  gcap_status_t status = gcap_allocator_trim(scratch->upstream);
  leave_upstream(scratch, paused);
  return status;
}

gcap_status_t gcap_scratch_give_back_idle(gcap_scratch_t* scratch, bool all) {
  gcap_status_t status = NULL;
  gcap_scratch_region_t* idle = take_idle(scratch, all);
  while (idle != NULL) {
    gcap_scratch_region_t* region = idle;
    idle = region->next;
    gcap_status_t freed = send_back(scratch, region);
    if (freed != NULL) {
      add_region(scratch, region);
    } else {
      gcap_scratch_region_destroy(&scratch->store, region);
      ++scratch->stats.num_shrinkages;
      // What was learned of the need is out of date.
      scratch->next_region_bytes = scratch->options.initial_growth_chunk_bytes;
    }
    status = gcap_status_join(status, freed);
  }
  return status;
}

gcap_status_t gcap_scratch_give_back_reserved(gcap_scratch_t* scratch, gcap_scratch_region_t* region) {
  unlist_region(scratch, region);
  ++scratch->num_regions_in_transit;
  scratch->in_transit_bytes += region->bytes;
  gcap_status_t status = send_back(scratch, region);
  if (status != NULL) {
    list_region(scratch, region);
  } else {
    gcap_scratch_region_destroy(&scratch->store, region);
  }
  return status;
}
