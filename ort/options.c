// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A session's options for the EP. ONNX Runtime has them among all options of the session, as "ep.<name>.<key>".
//
// Locking: none; values only.

#include "ort/options.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

// Of an address of a process, on the machines that CUDA has.
enum { ADDRESS_BITS = 48 };

// True for keys of this EP, and for the ones of ONNX Runtime's CUDA EP, whose names gcap takes.
static bool is_ours(const gcap_ort_factory_t* factory, const char* key) {
  if (strncmp(key, "ep.", 3) != 0) return false;
  const char* name = factory->plugin->name;
  const size_t length = strlen(name);
  if (strncasecmp(key + 3, name, length) == 0 && key[3 + length] == '.') return true;
  return strncmp(key + 3, "cuda.", 5) == 0;
}

static gcap_status_t parse(const gcap_ort_factory_t* factory, const gcap_ort_device_t* device, const char* const* keys,
                           const char* const* values, size_t count, gcap_options_t* out_options) {
  const char** ours = calloc(2 * count + 1, sizeof(*ours));
  if (ours == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for options");
  size_t num_ours = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!is_ours(factory, keys[i])) continue;
    ours[num_ours] = keys[i];
    ours[count + num_ours++] = values[i];
  }
  gcap_options_init(out_options);
  out_options->device_id = device->id;
  gcap_status_t status = gcap_options_parse_for_ep(out_options, factory->plugin->name, ours, ours + count, num_ours);
  free(ours);
  return status;
}

// CUDA follows the pointer of a stream without a look, so a number that is none would end the process. Numbers that no
// address has are CUDA's own to judge.
static gcap_status_t check_stream(const gcap_options_t* options) {
  const uintptr_t address = (uintptr_t)options->user_stream;
  const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
  if (address <= (uintptr_t)cudaStreamPerThread || address >> ADDRESS_BITS != 0) return NULL;
  unsigned char page = 0;
  if (mincore((void*)(address / page_bytes * page_bytes), 1, &page) == 0 || errno != ENOMEM) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "user_compute_stream is %llu (%p), where this process has no memory; expected a cudaStream_t",
                     (unsigned long long)address, options->user_stream);
}

gcap_status_t gcap_ort_options_read(const gcap_ort_factory_t* factory, const gcap_ort_device_t* device,
                                    const gcap_ort_session_options_t* session, gcap_options_t* out_options) {
  const gcap_ort_host_t* host = &factory->host;
  gcap_ort_key_values_t* pairs = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetSessionOptionsConfigEntries(session, &pairs)));
  const char *const *keys = NULL, *const *values = NULL;
  size_t count = 0;
  host->api->GetKeyValuePairs(pairs, &keys, &values, &count);
  gcap_status_t status = parse(factory, device, keys, values, count, out_options);
  host->api->ReleaseKeyValuePairs(pairs);
  if (status == NULL) status = check_stream(out_options);
  if (status != NULL || out_options->device_id == device->id) return status;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "device_id is %d, but the session was given the device %d: leave device_id out, or choose the "
                     "OrtEpDevice whose cuda_device_id is %d",
                     out_options->device_id, device->id, out_options->device_id);
}
