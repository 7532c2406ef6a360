// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Attributes of streams.
//
// The idea: priority is the stream's own; the others only advise hardware, so they are kept and given back, and change
// nothing. They may be read and set while the stream captures, as measured. Locking: the global mutex.
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/die.h"
#include "sim/device/properties.h"
#include "sim/stream/stream.h"

bool gcap_sim_is_window(const struct cudaAccessPolicyWindow* window) {
  if (window->num_bytes > GCAP_SIM_MAX_WINDOW_BYTES || !(window->hitRatio >= 0 && window->hitRatio <= 1)) return false;
  // Measured: what misses may not be told to persist, and what hits is not looked at.
  return (unsigned int)window->missProp <= cudaAccessPropertyStreaming;
}

static cudaError_t set(gcap_sim_stream_t* stream, cudaStreamAttrID id, const cudaStreamAttrValue* value) {
  if (value == NULL) gcap_sim_die("cudaStreamSetAttribute: the value is NULL: the real runtime reads it");
  gcap_sim_stream_advice_t* advice = &stream->advice;
  switch (id) {
    case cudaLaunchAttributePriority: stream->priority = gcap_sim_clamp_priority(value->priority); return cudaSuccess;
    case cudaLaunchAttributeAccessPolicyWindow:
      if (!gcap_sim_is_window(&value->accessPolicyWindow)) return cudaErrorInvalidValue;
      advice->window = value->accessPolicyWindow;
      return cudaSuccess;
    case cudaLaunchAttributeSynchronizationPolicy:
      if (value->syncPolicy < cudaSyncPolicyAuto || value->syncPolicy > cudaSyncPolicyBlockingSync) break;
      advice->policy = value->syncPolicy;
      return cudaSuccess;
    case cudaLaunchAttributeMemSyncDomainMap: advice->domains = value->memSyncDomainMap; return cudaSuccess;
    case cudaLaunchAttributeMemSyncDomain:
      if ((unsigned int)value->memSyncDomain > cudaLaunchMemSyncDomainRemote) break;
      advice->domain = value->memSyncDomain;
      return cudaSuccess;
    default: break;  // an attribute of launches alone, or none
  }
  return cudaErrorInvalidValue;
}

cudaError_t cudaStreamSetAttribute(cudaStream_t hStream, cudaStreamAttrID attr, const cudaStreamAttrValue* value) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamSetAttribute);
  if (code == cudaSuccess) code = set(gcap_sim_stream_get(hStream), attr, value);
  return gcap_sim_leave(code);
}

static cudaError_t get(const gcap_sim_stream_t* stream, cudaStreamAttrID id, cudaStreamAttrValue* value) {
  if (value == NULL) gcap_sim_die("cudaStreamGetAttribute: the value is NULL: the real runtime writes it");
  const gcap_sim_stream_advice_t* advice = &stream->advice;
  cudaStreamAttrValue found;
  memset(&found, 0, sizeof(found));
  switch (id) {
    case cudaLaunchAttributePriority: found.priority = stream->priority; break;
    case cudaLaunchAttributeAccessPolicyWindow: found.accessPolicyWindow = advice->window; break;
    case cudaLaunchAttributeSynchronizationPolicy:
      found.syncPolicy = (enum cudaSynchronizationPolicy)advice->policy;
      break;
    case cudaLaunchAttributeMemSyncDomainMap: found.memSyncDomainMap = advice->domains; break;
    case cudaLaunchAttributeMemSyncDomain: found.memSyncDomain = advice->domain; break;
    default: return cudaErrorInvalidValue;
  }
  *value = found;
  return cudaSuccess;
}

cudaError_t cudaStreamGetAttribute(cudaStream_t hStream, cudaStreamAttrID attr, cudaStreamAttrValue* value_out) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamGetAttribute);
  if (code == cudaSuccess) code = get(gcap_sim_stream_get(hStream), attr, value_out);
  return gcap_sim_leave(code);
}

// Streams of two devices have nothing in common to copy.
cudaError_t cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamCopyAttributes);
  if (code == cudaSuccess) {
    gcap_sim_stream_t* to = gcap_sim_stream_get(dst);
    const gcap_sim_stream_t* from = gcap_sim_stream_get(src);
    if (to->device == from->device) {
      to->advice = from->advice;
      to->priority = from->priority;
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}
