// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// host.h: the ONNX Runtime that loaded the plugin: its functions, its version, and failures from one side to the other.
#ifndef GCAP_ORT_HOST_H_
#define GCAP_ORT_HOST_H_

#include "gcap/status.h"
#include "ort/abi/api.h"

typedef struct gcap_ort_host {
  const gcap_ort_api_t* api;
  const gcap_ort_ep_api_t* ep_api;
  // The lower one of the runtime's version and the newest that gcap knows. All tables of gcap report it: 1.26 refuses a
  // table that is newer than itself.
  uint32_t version;
} gcap_ort_host_t;

// Fills in `*out_host`. NULL for success; else an OrtStatus.
//   NOT_IMPLEMENTED  the runtime is too old; the message has both versions
gcap_ort_status_t* gcap_ort_host_open(const gcap_ort_api_base_t* base, const char* plugin, gcap_ort_host_t* out_host);

// Turns a failure into one of the runtime's, and frees it. NULL gives NULL.
gcap_ort_status_t* gcap_ort_give(const gcap_ort_host_t* host, gcap_status_t status);

// Turns a failure of the runtime's into one of gcap's, and frees it. NULL gives NULL. `call` is the text of the call.
gcap_status_t gcap_ort_take(const gcap_ort_host_t* host, gcap_ort_status_t* status, const char* call, const char* file,
                            int line) GCAP_NODISCARD;

// Calls a function of the runtime's OrtApi, or OrtEpApi, that may fail: GCAP_ORT_CALL(host, Node_GetName(node, &name)).
#define GCAP_ORT_CALL(host, call) gcap_ort_take((host), (host)->api->call, #call, __FILE__, __LINE__)
#define GCAP_ORT_EP_CALL(host, call) gcap_ort_take((host), (host)->ep_api->call, #call, __FILE__, __LINE__)

#endif  // GCAP_ORT_HOST_H_
