// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A table by name, sorted, for functions that need one; families of functions by the beginning of their names. The
// names are those of the runtime and of the driver without "cuda" or "cu", for most have the same. Locking: none.
#include "doctor/analyse/functions.h"

#include <stddef.h>
#include <string.h>

enum { kMaxName = 96 };  // the driver's longest name has about 50 characters

// In the order of strcmp: searched by halving.
static const struct {
  const char* name;
  gcap_doctor_call_kind_t kind;
} table[] = {
    {"CtxEnablePeerAccess", GCAP_DOCTOR_CALL_REFUSED},
    {"CtxResetPersistingL2Cache", GCAP_DOCTOR_CALL_REFUSED},
    {"CtxSetLimit", GCAP_DOCTOR_CALL_UNSAFE},
    {"CtxSynchronize", GCAP_DOCTOR_CALL_DEVICE_SYNC},
    {"DeviceEnablePeerAccess", GCAP_DOCTOR_CALL_REFUSED},
    {"DeviceSetLimit", GCAP_DOCTOR_CALL_UNSAFE},
    {"DeviceSynchronize", GCAP_DOCTOR_CALL_DEVICE_SYNC},
    {"EventElapsedTime", GCAP_DOCTOR_CALL_REFUSED},
    {"EventQuery", GCAP_DOCTOR_CALL_EVENT_QUERY},
    {"EventRecord", GCAP_DOCTOR_CALL_RECORD},
    {"EventRecordWithFlags", GCAP_DOCTOR_CALL_RECORD},
    {"EventSynchronize", GCAP_DOCTOR_CALL_EVENT_QUERY},
    {"Free", GCAP_DOCTOR_CALL_UNSAFE},
    {"FreeAsync", GCAP_DOCTOR_CALL_ALLOCATE_ASYNC},
    {"FreeHost", GCAP_DOCTOR_CALL_UNSAFE},
    {"GraphDestroyNode", GCAP_DOCTOR_CALL_REFUSED},
    {"GraphExecDestroy", GCAP_DOCTOR_CALL_UNSAFE},
    {"GraphExecUpdate", GCAP_DOCTOR_CALL_UPDATE},
    {"GraphInstantiate", GCAP_DOCTOR_CALL_INSTANTIATE},
    {"GraphInstantiateWithFlags", GCAP_DOCTOR_CALL_INSTANTIATE},
    {"GraphInstantiateWithParams", GCAP_DOCTOR_CALL_INSTANTIATE},
    {"GraphLaunch", GCAP_DOCTOR_CALL_GRAPH_LAUNCH},
    {"HostAlloc", GCAP_DOCTOR_CALL_ALLOCATE},
    {"HostRegister", GCAP_DOCTOR_CALL_UNSAFE},
    {"HostUnregister", GCAP_DOCTOR_CALL_UNSAFE},
    {"LaunchHostFunc", GCAP_DOCTOR_CALL_HOST_FUNCTION},
    {"Malloc", GCAP_DOCTOR_CALL_ALLOCATE},
    {"MallocAsync", GCAP_DOCTOR_CALL_ALLOCATE_ASYNC},
    {"MallocFromPoolAsync", GCAP_DOCTOR_CALL_ALLOCATE_ASYNC},
    {"MallocHost", GCAP_DOCTOR_CALL_ALLOCATE},
    {"MallocManaged", GCAP_DOCTOR_CALL_ALLOCATE},
    {"MallocPitch", GCAP_DOCTOR_CALL_ALLOCATE},
    {"MemAlloc", GCAP_DOCTOR_CALL_ALLOCATE},
    {"MemAllocAsync", GCAP_DOCTOR_CALL_ALLOCATE_ASYNC},
    {"MemAllocFromPoolAsync", GCAP_DOCTOR_CALL_ALLOCATE_ASYNC},
    {"MemAllocHost", GCAP_DOCTOR_CALL_ALLOCATE},
    {"MemAllocManaged", GCAP_DOCTOR_CALL_ALLOCATE},
    {"MemAllocPitch", GCAP_DOCTOR_CALL_ALLOCATE},
    {"MemCreate", GCAP_DOCTOR_CALL_ALLOCATE},
    {"MemFree", GCAP_DOCTOR_CALL_UNSAFE},
    {"MemFreeAsync", GCAP_DOCTOR_CALL_ALLOCATE_ASYNC},
    {"MemFreeHost", GCAP_DOCTOR_CALL_UNSAFE},
    {"MemHostAlloc", GCAP_DOCTOR_CALL_ALLOCATE},
    {"MemHostRegister", GCAP_DOCTOR_CALL_UNSAFE},
    {"MemHostUnregister", GCAP_DOCTOR_CALL_UNSAFE},
    {"MemPoolCreate", GCAP_DOCTOR_CALL_UNSAFE},
    {"MemPoolDestroy", GCAP_DOCTOR_CALL_UNSAFE},
    {"MemPoolTrimTo", GCAP_DOCTOR_CALL_UNSAFE},
    {"Memcpy3DBatchAsync", GCAP_DOCTOR_CALL_REFUSED},
    {"MemcpyBatchAsync", GCAP_DOCTOR_CALL_REFUSED},
    {"PointerGetAttribute", GCAP_DOCTOR_CALL_ASK_POINTER},
    {"PointerGetAttributes", GCAP_DOCTOR_CALL_ASK_POINTER},
    {"StreamBeginCapture", GCAP_DOCTOR_CALL_BEGIN},
    {"StreamBeginCaptureToGraph", GCAP_DOCTOR_CALL_BEGIN},
    {"StreamDestroy", GCAP_DOCTOR_CALL_STREAM_DESTROY},
    {"StreamEndCapture", GCAP_DOCTOR_CALL_END},
    {"StreamGetCaptureInfo", GCAP_DOCTOR_CALL_ASK},
    {"StreamIsCapturing", GCAP_DOCTOR_CALL_ASK},
    {"StreamQuery", GCAP_DOCTOR_CALL_STREAM_SYNC},
    {"StreamSynchronize", GCAP_DOCTOR_CALL_STREAM_SYNC},
    {"StreamUpdateCaptureDependencies", GCAP_DOCTOR_CALL_REFUSED},
    {"StreamWaitEvent", GCAP_DOCTOR_CALL_WAIT},
    {"ThreadExchangeStreamCaptureMode", GCAP_DOCTOR_CALL_EXCHANGE},
};

// The name without "cuda" or "cu"; NULL if it has neither.
static const char* without_prefix(const char* function) {
  if (strncmp(function, "cuda", 4) == 0) return function + 4;
  return strncmp(function, "cu", 2) == 0 ? function + 2 : NULL;
}

static bool ends_with(const char* name, size_t length, const char* ending) {
  const size_t bytes = strlen(ending);
  return length > bytes && strncmp(name + length - bytes, ending, bytes) == 0;
}

// Copies the name without the endings of versions and of default streams; false if it is too long to be one.
static bool copy_name(const char* function, char name[kMaxName]) {
  static const char* const endings[] = {"_ptsz", "_ptds", "_v2", "_v3", "_v4"};
  size_t length = strlen(function);
  for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); ++i) {
    if (ends_with(function, length, endings[i])) length -= strlen(endings[i]);
  }
  if (length >= kMaxName) return false;
  memcpy(name, function, length);
  name[length] = '\0';
  return true;
}

static bool begins_with(const char* name, const char* beginning) {
  return strncmp(name, beginning, strlen(beginning)) == 0;
}

gcap_doctor_call_kind_t gcap_doctor_call_kind(const char* function) {
  char name[kMaxName];
  const char* rest = without_prefix(function);
  if (rest == NULL || !copy_name(rest, name)) return GCAP_DOCTOR_CALL_OTHER;
  size_t low = 0, high = sizeof(table) / sizeof(table[0]);
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const int order = strcmp(table[middle].name, name);
    if (order == 0) return table[middle].kind;
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (begins_with(name, "Launch")) return GCAP_DOCTOR_CALL_KERNEL;
  if (begins_with(name, "Memcpy")) return GCAP_DOCTOR_CALL_COPY;
  if (begins_with(name, "Memset")) return GCAP_DOCTOR_CALL_FILL;
  return GCAP_DOCTOR_CALL_OTHER;
}

bool gcap_doctor_call_has_no_stream(const char* function) {
  const char* rest = without_prefix(function);
  if (rest == NULL || (!begins_with(rest, "Memcpy") && !begins_with(rest, "Memset"))) return false;
  return strstr(rest, "Async") == NULL;
}

bool gcap_doctor_call_is_question(const char* function) {
  const char* rest = without_prefix(function);
  if (rest == NULL) return false;
  return strstr(rest, "Get") != NULL || strstr(rest, "Query") != NULL || strstr(rest, "IsCapturing") != NULL ||
         strstr(rest, "CanAccessPeer") != NULL || strstr(rest, "EnablePeerAccess") != NULL ||
         begins_with(rest, "Occupancy");
}

bool gcap_doctor_call_tells(const gcap_doctor_event_call_t* call, const char* status) {
  return call->status != NULL && call->result == 0 && strcmp(call->status, status) == 0;
}

bool gcap_doctor_is_of_package(const char* file) {
  return strstr(file, "site-packages") != NULL || strstr(file, "dist-packages") != NULL ||
         strstr(file, "/torch/") != NULL || strncmp(file, "<frozen", strlen("<frozen")) == 0;
}
