// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The EP of one session: made of the plugin's gcap EP, and ended when neither the session nor a tensor needs it.
//
// Locking: the factory's `mutex` while the EP joins the list of those that live.

#include "ort/ep.h"

#include <stdlib.h>

#include "gcap/log.h"
#include "ort/allocator.h"
#include "ort/capability.h"
#include "ort/ep_end.h"
#include "ort/options.h"
#include "ort/profiler.h"
#include "ort/release.h"
#include "ort/replay.h"
#include "ort/run.h"
#include "ort/stream.h"
#include "ort/turn.h"

static gcap_ort_session_ep_t* ep_of(const gcap_ort_ep_t* self) { return (gcap_ort_session_ep_t*)self; }

static const char* get_name(const gcap_ort_ep_t* self) { return ep_of(self)->factory->plugin->name; }

static gcap_ort_status_t* get_kernel_registry(gcap_ort_ep_t* self, const gcap_ort_kernel_registry_t** out_registry) {
  *out_registry = ep_of(self)->factory->registry;
  return NULL;
}

static gcap_ort_status_t* is_concurrent_run_supported(gcap_ort_ep_t* self, bool* out_supported) {
  *out_supported = gcap_ep_supports_concurrent_runs(ep_of(self)->ep);
  return NULL;
}

// ONNX Runtime asks when it has given each node to an EP. Where the CPU is allowed, it takes any node there that shares
// no tensor with the EP for one that computes shapes, and a replay would not compute the node.
static gcap_ort_node_policy_t get_policy(const gcap_ort_ep_t* self) {
  const gcap_ort_session_ep_t* ep = ep_of(self);
  const bool is_allowed = gcap_ep_graph_capture_node_assignment_policy(ep->ep) != GCAP_GRAPH_ALL_NODES_ON_EP;
  return is_allowed && !ep->leaves_nodes ? GCAP_ORT_ALLOW_CPU_FOR_SHAPES : GCAP_ORT_ALL_NODES_ON_EP;
}

// The stream of the calling thread's runs: it is known before a run begins, so that a capture can begin on it.
static gcap_ort_status_t* create_stream(gcap_ort_ep_t* self, const gcap_ort_memory_device_t* device,
                                        gcap_ort_stream_impl_t** out_stream) {
  (void)device;
  *out_stream = NULL;
  return gcap_ort_give(&ep_of(self)->factory->host, gcap_ort_stream_lend(ep_of(self), out_stream));
}

static void fill_in(gcap_ort_session_ep_t* ep) {
  ep->abi = (gcap_ort_ep_t){
      .ort_version_supported = ep->factory->host.version,
      .GetName = get_name,
      .GetCapability = gcap_ort_get_capability,
      .OnRunStart = gcap_ort_on_run_start,
      .OnRunEnd = gcap_ort_on_run_end,
      .CreateAllocator = gcap_ort_create_session_allocator,
      .CreateSyncStreamForDevice = create_stream,
      .GetKernelRegistry = get_kernel_registry,
      .IsConcurrentRunSupported = is_concurrent_run_supported,
      .Sync = gcap_ort_sync,
      .CreateProfiler = gcap_ort_create_profiler,
      .IsGraphCaptureEnabled = gcap_ort_is_graph_capture_enabled,
      .IsGraphCaptured = gcap_ort_is_graph_captured,
      .ReplayGraph = gcap_ort_replay_graph,
      .GetGraphCaptureNodeAssignmentPolicy = get_policy,
      .ReleaseCapturedGraph = gcap_ort_release_captured_graph,
  };
}

// --- Begin and end --------------------------------------------------------------------------------------------------

static void list_add(gcap_ort_session_ep_t* ep) {
  pthread_mutex_lock(&ep->factory->mutex);
  ep->next = ep->factory->eps;
  ep->factory->eps = ep;
  pthread_mutex_unlock(&ep->factory->mutex);
}

// CreateEp gets the devices as their hardware and the metadata that gcap_ort_get_supported_devices gave them.
static gcap_status_t find_device(const gcap_ort_factory_t* factory, const gcap_ort_key_values_t* const* metadata,
                                 size_t num_devices, const gcap_ort_device_t** out_device) {
  if (num_devices != 1) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "a session gives '%s' %zu devices; expected 1", factory->plugin->name,
                       num_devices);
  }
  const char* text = metadata[0] != NULL ? factory->host.api->GetKeyValue(metadata[0], "cuda_device_id") : NULL;
  char* end = NULL;
  const long id = text != NULL ? strtol(text, &end, 10) : -1;
  if (end == NULL || end == text || *end != 0 || id < 0 || id >= factory->num_devices) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the device's metadata cuda_device_id is '%s'; expected 0 to %d",
                       text != NULL ? text : "absent", factory->num_devices - 1);
  }
  *out_device = &factory->devices[id];
  return NULL;
}

static gcap_status_t check(const gcap_ort_session_ep_t* ep) {
  if (!gcap_ep_runs_on_host(ep->ep)) return gcap_ep_claim(ep->ep);
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the EP of plugin '%s' runs on the host; expected one of a device",
                     ep->factory->plugin->name);
}

static gcap_status_t create_parts(gcap_ort_session_ep_t* ep, const gcap_ort_session_options_t* session) {
  const gcap_ort_plugin_t* plugin = ep->factory->plugin;
  GCAP_RETURN_IF_ERROR(gcap_ort_options_read(ep->factory, ep->device, session, &ep->options));
  GCAP_RETURN_IF_ERROR(gcap_ort_runs_create(&ep->releases, &ep->runs));
  gcap_status_t status = plugin->create_ep(plugin->user, &ep->options, &ep->ep);
  if (status != NULL) return gcap_status_join(status, gcap_affine_destroy(ep->runs));
  ep->runtime = gcap_ep_runtime(ep->ep);
  status = check(ep);
  if (status == NULL) return NULL;
  status = gcap_status_join(status, gcap_affine_destroy(ep->runs));
  return gcap_status_join(status, gcap_ep_destroy(ep->ep));
}

static gcap_status_t create(gcap_ort_factory_t* factory, const gcap_ort_key_values_t* const* metadata,
                            size_t num_devices, const gcap_ort_session_options_t* session, gcap_ort_ep_t** out_ep) {
  const gcap_ort_device_t* device = NULL;
  GCAP_RETURN_IF_ERROR(find_device(factory, metadata, num_devices, &device));
  gcap_ort_session_ep_t* ep = calloc(1, sizeof(*ep));
  if (ep == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for an EP");
  ep->factory = factory;
  ep->device = device;
  atomic_init(&ep->references, 1);
  gcap_ort_turn_init(&ep->turn);
  atomic_init(&ep->profiler, NULL);
  atomic_init(&ep->warning, NULL);
  gcap_ort_releases_init(&ep->releases);
  pthread_mutex_init(&ep->open_mutex, NULL);
  fill_in(ep);
  gcap_status_t status = create_parts(ep, session);
  if (status != NULL) {
    gcap_ort_ep_free(ep);
    return status;
  }
  list_add(ep);
  *out_ep = &ep->abi;
  return NULL;
}

gcap_ort_status_t* gcap_ort_create_ep(gcap_ort_ep_factory_t* self, const gcap_ort_hardware_device_t* const* hardware,
                                      const gcap_ort_key_values_t* const* metadata, size_t num_devices,
                                      const gcap_ort_session_options_t* options, const gcap_ort_logger_t* logger,
                                      gcap_ort_ep_t** out_ep) {
  (void)hardware, (void)logger;
  *out_ep = NULL;
  gcap_ort_factory_t* factory = (gcap_ort_factory_t*)self;
  return gcap_ort_give(&factory->host, create(factory, metadata, num_devices, options, out_ep));
}

void gcap_ort_release_ep(gcap_ort_ep_factory_t* self, gcap_ort_ep_t* ep) {
  (void)self;
  gcap_ort_run_abandon(ep_of(ep));
  gcap_ep_unclaim(ep_of(ep)->ep, /*has_run=*/true);
  gcap_ort_ep_release(ep_of(ep));
}
