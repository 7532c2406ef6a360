// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The factory of a loaded plugin, and the two functions that make and end it.
//
// Locking: none. ONNX Runtime loads and unloads a library on one thread, when nothing of it is in use.

#include <stdlib.h>
#include <string.h>

#include "gcap/log.h"
#include "ort/allocator.h"
#include "ort/data_transfer.h"
#include "ort/devices.h"
#include "ort/ep.h"
#include "ort/log.h"
#include "ort/registry.h"
#include "ort/stream.h"

static const gcap_ort_factory_t* factory_of(const gcap_ort_ep_factory_t* self) {
  return (const gcap_ort_factory_t*)self;
}

static const char* get_name(const gcap_ort_ep_factory_t* self) { return factory_of(self)->plugin->name; }
static const char* get_vendor(const gcap_ort_ep_factory_t* self) { return factory_of(self)->plugin->vendor; }
static const char* get_version(const gcap_ort_ep_factory_t* self) { return factory_of(self)->plugin->version; }

static uint32_t get_vendor_id(const gcap_ort_ep_factory_t* self) {
  (void)self;
  return GCAP_ORT_VENDOR_ID;
}

static bool is_stream_aware(const gcap_ort_ep_factory_t* self) {
  (void)self;
  return true;
}

static const char* missing_of(const gcap_ort_plugin_t* plugin) {
  if (plugin == NULL || plugin->struct_size != sizeof(*plugin)) return "struct_size";
  if (plugin->name == NULL || plugin->name[0] == 0) return "name";
  if (plugin->vendor == NULL) return "vendor";
  if (plugin->version == NULL) return "version";
  if (plugin->create_ep == NULL) return "create_ep";
  if (plugin->ops == NULL) return "ops";
  return plugin->attributes == NULL ? "attributes" : NULL;
}

static void fill_in(gcap_ort_factory_t* factory) {
  factory->abi = (gcap_ort_ep_factory_t){
      .ort_version_supported = factory->host.version,
      .GetName = get_name,
      .GetVendor = get_vendor,
      .GetVendorId = get_vendor_id,
      .GetVersion = get_version,
      .GetSupportedDevices = gcap_ort_get_supported_devices,
      .CreateEp = gcap_ort_create_ep,
      .ReleaseEp = gcap_ort_release_ep,
      .CreateAllocator = gcap_ort_create_shared_allocator,
      .ReleaseAllocator = gcap_ort_release_allocator,
      .CreateDataTransfer = gcap_ort_create_data_transfer,
      .IsStreamAware = is_stream_aware,
      .CreateSyncStreamForDevice = gcap_ort_create_own_stream,
  };
}

static gcap_status_t destroy(gcap_ort_factory_t* factory) {
  gcap_status_t status = gcap_ort_devices_close(factory);
  gcap_ort_registry_close(factory);
  pthread_mutex_destroy(&factory->mutex);
  free(factory);
  return status;
}

static gcap_status_t create(const gcap_ort_plugin_t* plugin, const gcap_ort_host_t* host,
                            gcap_ort_factory_t** out_factory) {
  gcap_ort_factory_t* factory = calloc(1, sizeof(*factory));
  if (factory == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for plugin '%s'", plugin->name);
  factory->host = *host;
  factory->plugin = plugin;
  pthread_mutex_init(&factory->mutex, NULL);
  fill_in(factory);
  gcap_status_t status = gcap_ort_devices_open(factory);
  if (status == NULL) status = gcap_ort_registry_open(factory);
  if (status != NULL) return gcap_status_join(status, destroy(factory));
  *out_factory = factory;
  return NULL;
}

void* gcap_ort_create_factories(const gcap_ort_plugin_t* plugin, const void* api_base, const void* logger,
                                void** out_factories, size_t max_factories, size_t* out_num_factories) {
  *out_num_factories = 0;
  gcap_ort_host_t host;
  const char* missing = missing_of(plugin);
  gcap_ort_status_t* refusal = gcap_ort_host_open(api_base, missing == NULL ? plugin->name : "of gcap", &host);
  if (refusal != NULL) return refusal;
  gcap_status_t status = NULL;
  gcap_ort_factory_t* factory = NULL;
  if (missing != NULL) {
    status = GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the gcap_ort_plugin_t of this library lacks its %s", missing);
  } else if (max_factories < 1) {
    status =
        GCAP_STATUS(GCAP_INVALID_ARGUMENT, "plugin '%s' makes one factory, and there is room for none", plugin->name);
  } else {
    status = create(plugin, &host, &factory);
  }
  if (status != NULL) return gcap_ort_give(&host, status);
  if (logger != NULL) gcap_ort_log_begin(&factory->host, logger);
  out_factories[0] = factory;
  *out_num_factories = 1;
  return NULL;
}

void* gcap_ort_release_factory(void* factory) {
  gcap_ort_log_end();
  const gcap_ort_host_t host = ((gcap_ort_factory_t*)factory)->host;
  return gcap_ort_give(&host, destroy(factory));
}
