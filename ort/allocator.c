// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime's allocators over gcap's memory: device memory is scratch, pinned memory comes from the runtime.
//
// Locking: none of its own: scratch and the allocators lock. ONNX Runtime ends an allocator when no call of it is under
// way.

#include "ort/allocator.h"

#include <stdio.h>
#include <stdlib.h>

#include "gcap/log.h"
#include "ort/devices.h"
#include "ort/ep_end.h"
#include "ort/run.h"
#include "ort/stream.h"

// An allocator in the runtime's hands. `abi` is first.
typedef struct allocator {
  gcap_ort_allocator_t abi;
  gcap_ort_factory_t* factory;
  gcap_ort_session_ep_t* ep;  // NULL: of no session
  const gcap_ort_memory_info_t* info;
  gcap_scratch_t* scratch;  // NULL: pinned memory
  gcap_allocator_t* memory;
  gcap_runtime_t* own;  // of an allocator that the application configured; NULL: it uses the device's, or the EP's
} allocator_t;

static allocator_t* allocator_of(const gcap_ort_allocator_t* self) { return (allocator_t*)self; }

// The runtime understands NULL alone.
static void* given(const allocator_t* allocator, gcap_status_t status, size_t bytes, void* ptr) {
  if (status == NULL) return ptr;
  gcap_log(GCAP_LOG_ERROR, "%s: %zu bytes for ONNX Runtime: %s", allocator->factory->plugin->name, bytes,
           gcap_status_message(status));
  gcap_status_ignore(status);  // the caller gets NULL
  return NULL;
}

// What a run gets is freed by the runtime, when its tensors end, and not by gcap at the run's end.
static gcap_status_t alloc_on_stream(const allocator_t* allocator, size_t bytes, gcap_stream_t* stream,
                                     void** out_ptr) {
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(allocator->scratch, bytes, stream, out_ptr));
  return gcap_scratch_keep(allocator->scratch, *out_ptr);
}

// The stream whose work the memory is for: that of the thread's run, which all its kernels use; else the one that the
// runtime names, if it is ours.
static gcap_stream_t* stream_for(const allocator_t* allocator, const gcap_ort_sync_stream_t* named) {
  if (allocator->scratch == NULL) return NULL;
  const gcap_ort_run_t* run = allocator->ep != NULL ? gcap_ort_run_current(allocator->ep) : NULL;
  if (run != NULL) return run->resources.stream;
  if (named == NULL || allocator->factory->host.version < GCAP_ORT_VERSION_TRUE_STREAMS) return NULL;
  return gcap_ort_stream_find(allocator->factory, named, NULL);
}

static void* alloc_for(gcap_ort_allocator_t* self, size_t bytes, const gcap_ort_sync_stream_t* named) {
  const allocator_t* allocator = allocator_of(self);
  gcap_stream_t* stream = stream_for(allocator, named);
  void* ptr = NULL;
  gcap_status_t status = stream != NULL ? alloc_on_stream(allocator, bytes, stream, &ptr)
                                        : gcap_allocator_alloc(allocator->memory, bytes, &ptr);
  return given(allocator, status, bytes, ptr);
}

static void* alloc(gcap_ort_allocator_t* self, size_t bytes) { return alloc_for(self, bytes, NULL); }

static void* alloc_on(gcap_ort_allocator_t* self, size_t bytes, gcap_ort_sync_stream_t* stream) {
  return alloc_for(self, bytes, stream);
}

static void* reserve(gcap_ort_allocator_t* self, size_t bytes) {
  const allocator_t* allocator = allocator_of(self);
  void* ptr = NULL;
  gcap_status_t status = gcap_allocator_reserve(allocator->memory, bytes, &ptr);
  return given(allocator, status, bytes, ptr);
}

static void free_block(gcap_ort_allocator_t* self, void* ptr) {
  const allocator_t* allocator = allocator_of(self);
  gcap_status_t status = gcap_allocator_free(allocator->memory, ptr);
  if (status == NULL) return;
  gcap_log(GCAP_LOG_ERROR, "%s: ONNX Runtime frees %p: %s", allocator->factory->plugin->name, ptr,
           gcap_status_message(status));
  gcap_status_ignore(status);  // the caller does not ask
}

static const gcap_ort_memory_info_t* get_info(const gcap_ort_allocator_t* self) { return allocator_of(self)->info; }

static void add_number(const gcap_ort_host_t* host, gcap_ort_key_values_t* pairs, const char* key, uint64_t value) {
  char text[32];
  snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
  host->api->AddKeyValuePair(pairs, key, text);
}

static gcap_ort_status_t* get_stats(const gcap_ort_allocator_t* self, gcap_ort_key_values_t** out_pairs) {
  const allocator_t* allocator = allocator_of(self);
  const gcap_ort_host_t* host = &allocator->factory->host;
  gcap_allocator_stats_t stats;
  gcap_allocator_get_stats(allocator->memory, &stats);
  host->api->CreateKeyValuePairs(out_pairs);
  add_number(host, *out_pairs, "Limit", stats.limit_bytes);
  add_number(host, *out_pairs, "InUse", stats.in_use_bytes);
  add_number(host, *out_pairs, "RequestedInUse", stats.requested_in_use_bytes);
  add_number(host, *out_pairs, "TotalAllocated", stats.total_allocated_bytes);
  add_number(host, *out_pairs, "MaxInUse", stats.max_in_use_bytes);
  add_number(host, *out_pairs, "MaxAllocSize", stats.max_alloc_bytes);
  add_number(host, *out_pairs, "NumAllocs", stats.num_allocs);
  add_number(host, *out_pairs, "NumReserves", stats.num_reserves);
  add_number(host, *out_pairs, "NumArenaExtensions", stats.num_extensions);
  add_number(host, *out_pairs, "NumArenaShrinkages", stats.num_shrinkages);
  return NULL;
}

static gcap_ort_status_t* shrink(gcap_ort_allocator_t* self) {
  const allocator_t* allocator = allocator_of(self);
  return gcap_ort_give(&allocator->factory->host, gcap_allocator_trim(allocator->memory));
}

static gcap_status_t create(gcap_ort_factory_t* factory, gcap_ort_session_ep_t* ep, const allocator_t* parts,
                            gcap_ort_allocator_t** out_allocator) {
  allocator_t* allocator = malloc(sizeof(*allocator));
  if (allocator == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for an allocator");
  *allocator = *parts;
  allocator->factory = factory;
  allocator->ep = ep;
  allocator->abi = (gcap_ort_allocator_t){.version = factory->host.version,
                                          .Alloc = alloc,
                                          .Free = free_block,
                                          .Info = get_info,
                                          .Reserve = reserve,
                                          .GetStats = get_stats,
                                          .AllocOnStream = alloc_on,
                                          .Shrink = shrink};
  if (ep != NULL) gcap_ort_ep_retain(ep);
  *out_allocator = &allocator->abi;
  return NULL;
}

static gcap_status_t refuse(const gcap_ort_factory_t* factory) {
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "'%s' has no memory like that", factory->plugin->name);
}

static void destroy_runtime(gcap_runtime_t* runtime) {
  gcap_status_t status = gcap_runtime_destroy(runtime);
  if (status != NULL) gcap_log(GCAP_LOG_ERROR, "%s", gcap_status_message(status));
  gcap_status_ignore(status);  // nobody asks
}

// What an application says of an allocator.
typedef struct settings {
  const char *const *keys, *const *values;
  size_t count;
} settings_t;

static settings_t read_settings(const gcap_ort_factory_t* factory, const gcap_ort_key_values_t* pairs) {
  settings_t settings = {0};
  if (pairs != NULL) factory->host.api->GetKeyValuePairs(pairs, &settings.keys, &settings.values, &settings.count);
  return settings;
}

// A runtime with the arena that the application describes; NULL if it says nothing.
static gcap_status_t open_own(const gcap_ort_factory_t* factory, int device_id, const settings_t* said,
                              gcap_runtime_t** out_own) {
  if (said->count == 0) return NULL;
  gcap_options_t options;
  gcap_options_init(&options);
  GCAP_RETURN_IF_ERROR(
      gcap_options_parse_for_ep(&options, factory->plugin->name, said->keys, said->values, said->count));
  options.device_id = device_id;
  return gcap_runtime_create(&options, out_own);
}

static gcap_status_t create_shared_device(gcap_ort_factory_t* factory, const gcap_ort_device_t* device,
                                          const settings_t* said, gcap_ort_allocator_t** out_allocator) {
  allocator_t parts = {.info = device->memory};
  GCAP_RETURN_IF_ERROR(open_own(factory, device->id, said, &parts.own));
  parts.scratch = gcap_runtime_scratch(parts.own != NULL ? parts.own : device->runtime);
  parts.memory = gcap_scratch_allocator(parts.scratch);
  gcap_status_t status = create(factory, /*ep=*/NULL, &parts, out_allocator);
  if (status != NULL && parts.own != NULL) destroy_runtime(parts.own);
  return status;
}

static gcap_status_t create_shared(gcap_ort_factory_t* factory, const gcap_ort_memory_info_t* info,
                                   const settings_t* said, gcap_ort_allocator_t** out_allocator) {
  const gcap_ort_memory_device_t* memory = factory->host.ep_api->MemoryInfo_GetMemoryDevice(info);
  const gcap_ort_device_t* device = gcap_ort_device_of(factory, memory);
  gcap_memory_t where;
  if (device == NULL || !gcap_ort_memory_of(factory, memory, &where)) return refuse(factory);
  if (where.kind == GCAP_MEMORY_DEVICE) return create_shared_device(factory, device, said, out_allocator);
  if (said->count > 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "'%s': options of an arena for pinned memory, which has none",
                       factory->plugin->name);
  }
  allocator_t parts = {.info = device->pinned};
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_allocator(device->runtime, GCAP_MEMORY_PINNED, &parts.memory));
  return create(factory, /*ep=*/NULL, &parts, out_allocator);
}

gcap_ort_status_t* gcap_ort_create_shared_allocator(gcap_ort_ep_factory_t* self, const gcap_ort_memory_info_t* info,
                                                    const gcap_ort_key_values_t* options,
                                                    gcap_ort_allocator_t** out_allocator) {
  *out_allocator = NULL;
  gcap_ort_factory_t* factory = (gcap_ort_factory_t*)self;
  const settings_t said = read_settings(factory, options);
  return gcap_ort_give(&factory->host, create_shared(factory, info, &said, out_allocator));
}

static gcap_status_t create_of_session(gcap_ort_session_ep_t* ep, const gcap_ort_memory_info_t* info,
                                       gcap_ort_allocator_t** out_allocator) {
  const gcap_ort_memory_device_t* memory = ep->factory->host.ep_api->MemoryInfo_GetMemoryDevice(info);
  gcap_memory_t where;
  if (gcap_ort_device_of(ep->factory, memory) != ep->device) return refuse(ep->factory);
  if (!gcap_ort_memory_of(ep->factory, memory, &where)) return refuse(ep->factory);
  allocator_t parts = {.info = ep->device->pinned};
  if (where.kind == GCAP_MEMORY_DEVICE) {
    gcap_run_resources_t resources;
    GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(ep->runtime, &resources));
    parts.info = ep->device->memory;
    parts.scratch = resources.scratch;
    parts.memory = gcap_scratch_allocator(resources.scratch);
  } else {
    GCAP_RETURN_IF_ERROR(gcap_runtime_get_allocator(ep->runtime, GCAP_MEMORY_PINNED, &parts.memory));
  }
  return create(ep->factory, ep, &parts, out_allocator);
}

gcap_ort_status_t* gcap_ort_create_session_allocator(gcap_ort_ep_t* self, const gcap_ort_memory_info_t* info,
                                                     gcap_ort_allocator_t** out_allocator) {
  *out_allocator = NULL;
  gcap_ort_session_ep_t* ep = (gcap_ort_session_ep_t*)self;
  return gcap_ort_give(&ep->factory->host, create_of_session(ep, info, out_allocator));
}

void gcap_ort_release_allocator(gcap_ort_ep_factory_t* self, gcap_ort_allocator_t* allocator) {
  (void)self;
  gcap_ort_session_ep_t* ep = allocator_of(allocator)->ep;
  gcap_runtime_t* own = allocator_of(allocator)->own;
  free(allocator);
  if (own != NULL) destroy_runtime(own);
  if (ep != NULL) gcap_ort_ep_release(ep);
}
