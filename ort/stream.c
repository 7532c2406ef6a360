// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Streams and notifications of gcap as ONNX Runtime has them.
//
// Locking: the factory's `mutex` over the list of streams. `mutex` of a lent stream: who releases the stream may wait
// for the stream's work under it, and the stream's end waits for that.

#include "ort/stream.h"

#include <stdlib.h>

#include "gcap/log.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/cuda_guard.h"
#include "ort/devices.h"
#include "ort/turn.h"

// --- Streams of threads ---------------------------------------------------------------------------------------------

// Whether a thread's stream lives. The stream has one as an attachment, and so have its wrappers in the runtime's
// hands.
typedef struct gcap_ort_lent {
  pthread_mutex_t mutex;  // held over a wait for the stream by another thread: its end waits meanwhile
  atomic_bool has_ended;
  atomic_int references;
} lent_t;

static gcap_status_t create_lent(gcap_stream_t* stream, void** out_object) {
  (void)stream;
  lent_t* lent = calloc(1, sizeof(*lent));
  if (lent == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to lend a stream");
  pthread_mutex_init(&lent->mutex, NULL);
  atomic_init(&lent->references, 1);
  *out_object = lent;
  return NULL;
}

static void give_up_lent(lent_t* lent) {
  if (atomic_fetch_sub(&lent->references, 1) > 1) return;
  pthread_mutex_destroy(&lent->mutex);
  free(lent);
}

// The stream ends.
static void end_lent(void* object) {
  lent_t* lent = object;
  pthread_mutex_lock(&lent->mutex);
  atomic_store(&lent->has_ended, true);
  pthread_mutex_unlock(&lent->mutex);
  give_up_lent(lent);
}

static const gcap_attachment_key_t lent_key = {
    .name = "mark of ONNX Runtime's", .create = create_lent, .destroy = end_lent};

gcap_status_t gcap_ort_stream_prepare(gcap_stream_t* stream) {
  void* lent = NULL;
  return gcap_stream_attachment(stream, &lent_key, &lent);
}

// The stream, unless the thread whose it was has ended, and the stream with it.
static gcap_stream_t* living(const gcap_ort_stream_t* stream) {
  const bool has_ended = stream->lent != NULL && atomic_load(&stream->lent->has_ended);
  return has_ended ? NULL : stream->stream;
}

// Waits for the stream of a thread that may be exiting: for the handle alone, since its thread has the rest of it.
// Where threads share the stream and one uses it now, there is no wait.
static gcap_status_t wait_for_lent(const gcap_ort_stream_t* stream) {
  if (!gcap_ort_turn_try_begin(stream->ep)) return NULL;
  pthread_mutex_lock(&stream->lent->mutex);
  gcap_status_t status = NULL;
  if (living(stream) != NULL) {
    status = gcap_check_stream_not_capturing(stream->handle, "the release of a stream by ONNX Runtime");
    if (status == NULL) status = gcap_relaxed_synchronize(stream->handle);
  }
  pthread_mutex_unlock(&stream->lent->mutex);
  gcap_ort_turn_end(stream->ep);
  return status;
}

// --- The list -------------------------------------------------------------------------------------------------------

static void list_add(gcap_ort_stream_t* stream) {
  pthread_mutex_lock(&stream->factory->mutex);
  stream->next = stream->factory->streams;
  stream->factory->streams = stream;
  pthread_mutex_unlock(&stream->factory->mutex);
}

static void list_remove(gcap_ort_stream_t* stream) {
  pthread_mutex_lock(&stream->factory->mutex);
  gcap_ort_stream_t** link = &stream->factory->streams;
  while (*link != stream) link = &(*link)->next;
  *link = stream->next;
  pthread_mutex_unlock(&stream->factory->mutex);
}

gcap_stream_t* gcap_ort_stream_find(gcap_ort_factory_t* factory, const gcap_ort_sync_stream_t* stream,
                                    gcap_ort_session_ep_t** out_ep) {
  if (out_ep != NULL) *out_ep = NULL;
  if (stream == NULL) return NULL;  // what runs on the CPU has none
  const gcap_ort_stream_impl_t* impl = factory->host.ep_api->SyncStream_GetImpl(stream);
  gcap_stream_t* found = NULL;
  pthread_mutex_lock(&factory->mutex);
  for (gcap_ort_stream_t* s = factory->streams; s != NULL && found == NULL; s = s->next) {
    if (&s->abi != impl) continue;
    found = living(s);
    if (out_ep != NULL) *out_ep = s->ep;
  }
  pthread_mutex_unlock(&factory->mutex);
  return found;
}

// --- Notifications --------------------------------------------------------------------------------------------------

typedef struct notification {
  gcap_ort_notification_impl_t abi;
  gcap_ort_factory_t* factory;
  gcap_notification_t* notification;
} notification_t;

static void notification_release(gcap_ort_notification_impl_t* self) {
  gcap_notification_destroy(((notification_t*)self)->notification);
  free(self);
}

static gcap_ort_status_t* activate(gcap_ort_notification_impl_t* self) {
  const notification_t* n = (notification_t*)self;
  return gcap_ort_give(&n->factory->host, gcap_notification_record(n->notification));
}

static gcap_ort_status_t* wait_on_device(gcap_ort_notification_impl_t* self, gcap_ort_sync_stream_t* consumer) {
  const notification_t* n = (notification_t*)self;
  gcap_stream_t* stream = gcap_ort_stream_find(n->factory, consumer, NULL);
  // The CPU, or a stream of others: the host waits in its place.
  gcap_status_t status = stream != NULL ? gcap_notification_wait(n->notification, stream)
                                        : gcap_notification_wait_on_host(n->notification);
  return gcap_ort_give(&n->factory->host, status);
}

static gcap_ort_status_t* wait_on_host(gcap_ort_notification_impl_t* self) {
  const notification_t* n = (notification_t*)self;
  return gcap_ort_give(&n->factory->host, gcap_notification_wait_on_host(n->notification));
}

static gcap_status_t create_notification_of(gcap_ort_factory_t* factory, gcap_stream_t* producer,
                                            gcap_ort_notification_impl_t** out) {
  if (producer == NULL) return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the thread of this stream has ended");
  notification_t* n = calloc(1, sizeof(*n));
  if (n == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a notification");
  n->abi = (gcap_ort_notification_impl_t){.ort_version_supported = factory->host.version,
                                          .Release = notification_release,
                                          .Activate = activate,
                                          .WaitOnDevice = wait_on_device,
                                          .WaitOnHost = wait_on_host};
  n->factory = factory;
  gcap_status_t status = gcap_notification_create(producer, &n->notification);
  if (status != NULL) {
    free(n);
    return status;
  }
  *out = &n->abi;
  return NULL;
}

static gcap_ort_status_t* create_notification(gcap_ort_stream_impl_t* self, gcap_ort_notification_impl_t** out) {
  const gcap_ort_stream_t* stream = (gcap_ort_stream_t*)self;
  *out = NULL;
  return gcap_ort_give(&stream->factory->host, create_notification_of(stream->factory, living(stream), out));
}

// --- Streams --------------------------------------------------------------------------------------------------------

static void* get_handle(gcap_ort_stream_impl_t* self) { return ((gcap_ort_stream_t*)self)->handle; }

// The runtime flushes at the end of a run that waits, so that OnRunEnd has waited for a thread's stream. Threads may
// share that stream, and another one may have it now.
static gcap_ort_status_t* flush(gcap_ort_stream_impl_t* self) {
  const gcap_ort_stream_t* stream = (gcap_ort_stream_t*)self;
  if (stream->ep != NULL) return NULL;
  return gcap_ort_give(&stream->factory->host, gcap_stream_synchronize(stream->stream));
}

// The same: OnRunEnd did the housekeeping, in runs that do not wait too.
static gcap_ort_status_t* on_session_run_end(gcap_ort_stream_impl_t* self) {
  const gcap_ort_stream_t* stream = (gcap_ort_stream_t*)self;
  if (stream->ep != NULL) return NULL;
  return gcap_ort_give(&stream->factory->host, gcap_stream_end_run(stream->stream, /*synchronize=*/false));
}

// A session that ends releases its streams before its kernels, whose last work may be under way.
static void release(gcap_ort_stream_impl_t* self) {
  gcap_ort_stream_t* stream = (gcap_ort_stream_t*)self;
  list_remove(stream);
  gcap_status_t status = stream->ep == NULL ? gcap_stream_destroy(stream->stream) : wait_for_lent(stream);
  if (stream->ep != NULL) give_up_lent(stream->lent);
  if (status != NULL) gcap_log(GCAP_LOG_ERROR, "%s", gcap_status_message(status));
  gcap_status_ignore(status);  // nobody asks
  free(stream);
}

static gcap_status_t wrap(gcap_ort_factory_t* factory, gcap_stream_t* made, gcap_ort_session_ep_t* ep, lent_t* lent,
                          gcap_ort_stream_impl_t** out_stream) {
  gcap_ort_stream_t* stream = calloc(1, sizeof(*stream));
  if (stream == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a stream of ONNX Runtime");
  stream->abi = (gcap_ort_stream_impl_t){.ort_version_supported = factory->host.version,
                                         .Release = release,
                                         .GetHandle = get_handle,
                                         .CreateNotification = create_notification,
                                         .Flush = flush,
                                         .OnSessionRunEnd = on_session_run_end};
  stream->factory = factory;
  stream->stream = made;
  stream->handle = gcap_stream_handle(made);
  stream->ep = ep;
  stream->lent = lent;
  if (lent != NULL) atomic_fetch_add(&lent->references, 1);
  list_add(stream);
  *out_stream = &stream->abi;
  return NULL;
}

gcap_status_t gcap_ort_stream_lend(gcap_ort_session_ep_t* ep, gcap_ort_stream_impl_t** out_stream) {
  gcap_run_resources_t resources;
  void* lent = NULL;
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(ep->runtime, &resources));
  GCAP_RETURN_IF_ERROR(gcap_stream_attachment(resources.stream, &lent_key, &lent));
  return wrap(ep->factory, resources.stream, ep, lent, out_stream);
}

static gcap_status_t create_own(gcap_ort_factory_t* factory, const gcap_ort_memory_device_t* memory,
                                gcap_ort_stream_impl_t** out_stream) {
  const gcap_ort_device_t* device = gcap_ort_device_of(factory, memory);
  if (device == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "'%s' has no such device", factory->plugin->name);
  gcap_stream_t* stream = NULL;
  GCAP_RETURN_IF_ERROR(gcap_runtime_create_stream(device->runtime, &stream));
  gcap_status_t status = wrap(factory, stream, /*ep=*/NULL, /*lent=*/NULL, out_stream);
  return status == NULL ? NULL : gcap_status_join(status, gcap_stream_destroy(stream));
}

gcap_ort_status_t* gcap_ort_create_own_stream(gcap_ort_ep_factory_t* self, const gcap_ort_memory_device_t* device,
                                              const gcap_ort_key_values_t* options,
                                              gcap_ort_stream_impl_t** out_stream) {
  (void)options;
  *out_stream = NULL;
  gcap_ort_factory_t* factory = (gcap_ort_factory_t*)self;
  return gcap_ort_give(&factory->host, create_own(factory, device, out_stream));
}
