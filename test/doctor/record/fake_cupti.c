// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A CUPTI without a driver: callbacks come when a test says so, if the subscriber enabled them. Nodes and executables
// are made by the test: the address of a node points to its id. What it does wrong on purpose is in the environment:
//   FAKE_CUPTI_SUBSCRIBE  the error that cuptiSubscribe returns
//   FAKE_CUPTI_VERSION    the version
#include "test/doctor/record/fake_cupti.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum {
  kNumCallbacks = 807,  // of CUDA 13.0's driver
  kNumResources = 24,
  kMaxRecords = 4096,
  kKernelBytes = 216,
  kCopyBytes = 96,
};

static gcap_doctor_cupti_callback_t subscriber;
static void* subscriber_data;
static _Atomic uint8_t enabled[kNumCallbacks], resources[kNumResources];
static _Atomic uint32_t last_correlation;
static atomic_bool is_domain_enabled;  // the driver's
static atomic_int changes;             // of callbacks, at this moment: CUPTI wants one at a time
static void (*_Atomic change_hook)(void);
static gcap_doctor_cupti_buffer_wanted_t buffer_wanted;
static gcap_doctor_cupti_buffer_filled_t buffer_filled;
static struct record {
  int32_t kind;
  uint32_t graph, correlation;
  uint64_t node, start_ns, end_ns;
} records[kMaxRecords];
static size_t num_records;

static int number_of(const char* variable, int otherwise) {
  const char* value = getenv(variable);
  return value != NULL ? atoi(value) : otherwise;
}

// --- CUPTI -----------------------------------------------------------------------------------------------------------

#ifndef FAKE_CUPTI_OLD
EXPORT int cuptiGetGraphNodeId(void* node, uint64_t* id);
EXPORT int cuptiGetGraphNodeId(void* node, uint64_t* id) {
  *id = *(const uint64_t*)node;
  return GCAP_DOCTOR_CUPTI_SUCCESS;
}
#endif

EXPORT int cuptiGetVersion(uint32_t* version);
EXPORT int cuptiGetVersion(uint32_t* version) {
  *version = (uint32_t)number_of("FAKE_CUPTI_VERSION", 130000);
  return GCAP_DOCTOR_CUPTI_SUCCESS;
}

EXPORT int cuptiGetResultString(int result, const char** string);
EXPORT int cuptiGetResultString(int result, const char** string) {
  *string = result == GCAP_DOCTOR_CUPTI_SUCCESS ? "FAKE_SUCCESS" : "FAKE_ERROR";
  return GCAP_DOCTOR_CUPTI_SUCCESS;
}

EXPORT int cuptiSubscribe(gcap_doctor_cupti_subscriber_t** out, gcap_doctor_cupti_callback_t callback, void* user);
EXPORT int cuptiSubscribe(gcap_doctor_cupti_subscriber_t** out, gcap_doctor_cupti_callback_t callback, void* user) {
  const int error = number_of("FAKE_CUPTI_SUBSCRIBE", GCAP_DOCTOR_CUPTI_SUCCESS);
  if (error != GCAP_DOCTOR_CUPTI_SUCCESS) return error;
  if (subscriber != NULL) return GCAP_DOCTOR_CUPTI_MULTIPLE_SUBSCRIBERS;
  subscriber_data = user;
  subscriber = callback;
  *out = (gcap_doctor_cupti_subscriber_t*)&subscriber;
  return GCAP_DOCTOR_CUPTI_SUCCESS;
}

EXPORT int cuptiUnsubscribe(gcap_doctor_cupti_subscriber_t* who);
EXPORT int cuptiUnsubscribe(gcap_doctor_cupti_subscriber_t* who) {
  (void)who;
  subscriber = NULL;
  return GCAP_DOCTOR_CUPTI_SUCCESS;
}

// Two changes at once are undefined in CUPTI, and end a test here.
static int change(_Atomic uint8_t* places, uint32_t begin, uint32_t end, uint32_t enable) {
  if (atomic_fetch_add(&changes, 1) != 0) abort();
  void (*hook)(void) = atomic_exchange(&change_hook, NULL);
  if (hook != NULL) hook();
  for (uint32_t i = begin; i < end; ++i) atomic_store(&places[i], enable != 0);
  atomic_fetch_sub(&changes, 1);
  return GCAP_DOCTOR_CUPTI_SUCCESS;
}

EXPORT int cuptiEnableCallback(uint32_t enable, gcap_doctor_cupti_subscriber_t* who, int32_t domain, uint32_t id);
EXPORT int cuptiEnableCallback(uint32_t enable, gcap_doctor_cupti_subscriber_t* who, int32_t domain, uint32_t id) {
  (void)who;
  if (domain == GCAP_DOCTOR_CUPTI_DRIVER && id < kNumCallbacks) return change(enabled, id, id + 1, enable);
  if (domain == GCAP_DOCTOR_CUPTI_RESOURCE && id < kNumResources) return change(resources, id, id + 1, enable);
  return GCAP_DOCTOR_CUPTI_INVALID_PARAMETER;
}

EXPORT int cuptiEnableDomain(uint32_t enable, gcap_doctor_cupti_subscriber_t* who, int32_t domain);
EXPORT int cuptiEnableDomain(uint32_t enable, gcap_doctor_cupti_subscriber_t* who, int32_t domain) {
  (void)who;
  if (domain == GCAP_DOCTOR_CUPTI_DRIVER) {
    // CUPTI 13.0 does nothing then, whatever became of the single callbacks.
    if (atomic_exchange(&is_domain_enabled, enable != 0) && enable != 0) return GCAP_DOCTOR_CUPTI_SUCCESS;
    return change(enabled, 1, kNumCallbacks, enable);
  }
  if (domain == GCAP_DOCTOR_CUPTI_RESOURCE) return change(resources, 1, kNumResources, enable);
  return GCAP_DOCTOR_CUPTI_INVALID_PARAMETER;
}

EXPORT int cuptiActivityRegisterCallbacks(gcap_doctor_cupti_buffer_wanted_t wanted,
                                          gcap_doctor_cupti_buffer_filled_t filled);
EXPORT int cuptiActivityRegisterCallbacks(gcap_doctor_cupti_buffer_wanted_t wanted,
                                          gcap_doctor_cupti_buffer_filled_t filled) {
  buffer_wanted = wanted;
  buffer_filled = filled;
  return GCAP_DOCTOR_CUPTI_SUCCESS;
}

EXPORT int cuptiActivityEnable(int32_t kind);
EXPORT int cuptiActivityEnable(int32_t kind) {
  (void)kind;
  return number_of("FAKE_CUPTI_ACTIVITY", GCAP_DOCTOR_CUPTI_SUCCESS);
}

static size_t size_of_kind(int32_t kind) { return kind == GCAP_DOCTOR_CUPTI_KIND_KERNEL ? kKernelBytes : kCopyBytes; }

EXPORT int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, void** record);
EXPORT int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, void** record) {
  uint8_t* next = buffer;
  int32_t kind;
  if (*record != NULL) {
    memcpy(&kind, *record, sizeof(kind));
    next = (uint8_t*)*record + size_of_kind(kind);
  }
  if (next >= buffer + valid) return GCAP_DOCTOR_CUPTI_MAX_LIMIT_REACHED;
  *record = next;
  return GCAP_DOCTOR_CUPTI_SUCCESS;
}

static void put(uint8_t* at, const struct record* record) {
  const int is_kernel = record->kind == GCAP_DOCTOR_CUPTI_KIND_KERNEL;
  memset(at, 0, size_of_kind(record->kind));
  memcpy(at, &record->kind, 4);
  memcpy(at + GCAP_DOCTOR_CUPTI_RECORD_START, &record->start_ns, 8);
  memcpy(at + GCAP_DOCTOR_CUPTI_RECORD_END, &record->end_ns, 8);
  memcpy(at + (is_kernel ? GCAP_DOCTOR_CUPTI_KERNEL_NODE : GCAP_DOCTOR_CUPTI_COPY_NODE), &record->node, 8);
  memcpy(at + (is_kernel ? GCAP_DOCTOR_CUPTI_KERNEL_GRAPH : GCAP_DOCTOR_CUPTI_COPY_GRAPH), &record->graph, 4);
  memcpy(at + (is_kernel ? GCAP_DOCTOR_CUPTI_KERNEL_CORRELATION : GCAP_DOCTOR_CUPTI_COPY_CORRELATION),
         &record->correlation, 4);
}

EXPORT int cuptiActivityFlushAll(uint32_t flags);
EXPORT int cuptiActivityFlushAll(uint32_t flags) {
  (void)flags;
  size_t done = 0;
  while (done < num_records) {
    uint8_t* buffer = NULL;
    size_t size = 0, most = 0, valid = 0;
    buffer_wanted(&buffer, &size, &most);
    for (; done < num_records && valid + kKernelBytes <= size; ++done) {
      put(buffer + valid, &records[done]);
      valid += size_of_kind(records[done].kind);
    }
    buffer_filled(NULL, 0, buffer, size, valid);
  }
  num_records = 0;
  return GCAP_DOCTOR_CUPTI_SUCCESS;
}

// --- The test's side -------------------------------------------------------------------------------------------------

static void tell(int32_t site, uint32_t callback, const char* function, const void* arguments, uint32_t correlation,
                 int* result, const char* symbol) {
  uint64_t shared = 0;
  const gcap_doctor_cupti_call_t data = {.site = site,
                                         .function = function,
                                         .arguments = arguments,
                                         .result = result,
                                         .symbol = symbol,
                                         .context_id = 1,
                                         .correlation_data = &shared,
                                         .correlation = correlation};
  if (subscriber != NULL && atomic_load(&enabled[callback])) {
    subscriber(subscriber_data, GCAP_DOCTOR_CUPTI_DRIVER, callback, &data);
  }
}

EXPORT uint32_t fake_cupti_enter(uint32_t callback, const char* function, const void* arguments) {
  const uint32_t correlation = atomic_fetch_add(&last_correlation, 1) + 1;
  tell(GCAP_DOCTOR_CUPTI_ENTER, callback, function, arguments, correlation, NULL, NULL);
  return correlation;
}

EXPORT void fake_cupti_exit(uint32_t callback, const char* function, const void* arguments, uint32_t correlation,
                            int result, const char* symbol) {
  tell(GCAP_DOCTOR_CUPTI_EXIT, callback, function, arguments, correlation, &result, symbol);
}

EXPORT void fake_cupti_call(uint32_t callback, const char* function, const void* arguments, int result) {
  fake_cupti_exit(callback, function, arguments, fake_cupti_enter(callback, function, arguments), result, NULL);
}

static void tell_resource(uint32_t callback, void* stream, const void* descriptor) {
  const gcap_doctor_cupti_resource_t data = {.stream = stream, .descriptor = (void*)descriptor};
  if (subscriber != NULL && atomic_load(&resources[callback])) {
    subscriber(subscriber_data, GCAP_DOCTOR_CUPTI_RESOURCE, callback, &data);
  }
}

EXPORT void fake_cupti_stream(uint32_t callback, void* stream) { tell_resource(callback, stream, NULL); }

EXPORT void fake_cupti_graph(uint32_t callback, const gcap_doctor_cupti_graph_t* data) {
  tell_resource(callback, NULL, data);
}

EXPORT void fake_cupti_flush(void) { cuptiActivityFlushAll(0); }

EXPORT void fake_cupti_at_change(void (*hook)(void)) { atomic_store(&change_hook, hook); }

EXPORT uint32_t fake_cupti_enabled(void) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < kNumCallbacks; ++i) count += atomic_load(&enabled[i]);
  return count;
}

EXPORT int fake_cupti_is_enabled(uint32_t callback) { return atomic_load(&enabled[callback]); }

EXPORT void fake_cupti_record(int32_t kind, uint32_t graph, uint64_t node, uint32_t correlation, uint64_t start_ns,
                              uint64_t end_ns) {
  if (num_records == kMaxRecords) abort();
  records[num_records++] = (struct record){kind, graph, correlation, node, start_ns, end_ns};
}
