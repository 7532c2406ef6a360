// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which runtime this is, and failures from one side to the other.
//
// Locking: none; values only.

#include "ort/host.h"

#include <stdio.h>

// "1.26.0": 26. 0 for anything else.
static uint32_t minor_of(const char* version) {
  unsigned minor = 0;
  return sscanf(version, "1.%u.", &minor) == 1 ? minor : 0;
}

gcap_ort_status_t* gcap_ort_host_open(const gcap_ort_api_base_t* base, const char* plugin, gcap_ort_host_t* out_host) {
  const char* version = base->GetVersionString();
  const uint32_t minor = minor_of(version);
  if (minor < GCAP_ORT_OLDEST_VERSION) {
    char text[256];
    snprintf(text, sizeof(text), "the plugin '%s' needs ONNX Runtime 1.%u or newer; this is %s", plugin,
             GCAP_ORT_OLDEST_VERSION, version);
    return base->GetApi(1)->CreateStatus(GCAP_ORT_NOT_IMPLEMENTED, text);
  }
  out_host->version = minor < GCAP_ORT_NEWEST_VERSION ? minor : GCAP_ORT_NEWEST_VERSION;
  out_host->api = base->GetApi(out_host->version);
  out_host->ep_api = out_host->api->GetEpApi();
  return NULL;
}

// EP_FAIL says that the device or the EP is broken: the Python module then goes on without the EP, and tells nobody.
static gcap_ort_error_code_t code_of(gcap_status_t status) {
  switch (gcap_status_code(status)) {
    case GCAP_INVALID_ARGUMENT: return GCAP_ORT_INVALID_ARGUMENT;
    case GCAP_UNIMPLEMENTED: return GCAP_ORT_NOT_IMPLEMENTED;
    case GCAP_CUDA_ERROR:
    case GCAP_DEVICE_LOST:
    case GCAP_LIBRARY_ERROR:
    case GCAP_INTERNAL: return GCAP_ORT_EP_FAIL;
    default: return GCAP_ORT_FAIL;
  }
}

gcap_ort_status_t* gcap_ort_give(const gcap_ort_host_t* host, gcap_status_t status) {
  if (status == NULL) return NULL;
  gcap_ort_status_t* given = host->api->CreateStatus(code_of(status), gcap_status_message(status));
  gcap_status_free(status);
  return given;
}

gcap_status_t gcap_ort_take(const gcap_ort_host_t* host, gcap_ort_status_t* status, const char* call, const char* file,
                            int line) {
  if (status == NULL) return NULL;
  const bool bad = host->api->GetErrorCode(status) == GCAP_ORT_INVALID_ARGUMENT;
  gcap_status_t taken = gcap_status_make(bad ? GCAP_INVALID_ARGUMENT : GCAP_LIBRARY_ERROR, file, line,
                                         "ONNX Runtime: %s: %s", call, host->api->GetErrorMessage(status));
  host->api->ReleaseStatus(status);
  return taken;
}
