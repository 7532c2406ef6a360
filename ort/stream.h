// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stream.h: streams of gcap as ONNX Runtime has them, and the list of those that live: only what is in the list is ever
// dereferenced, for before 1.29 the runtime passes addresses of other objects as streams.
#ifndef GCAP_ORT_STREAM_H_
#define GCAP_ORT_STREAM_H_

#include "ort/objects.h"

// A stream in the runtime's hands. `abi` is first.
typedef struct gcap_ort_stream {
  gcap_ort_stream_impl_t abi;
  gcap_ort_factory_t* factory;
  gcap_stream_t* stream;
  cudaStream_t handle;         // the runtime keeps it
  gcap_ort_session_ep_t* ep;   // whose thread's stream it is, and who ends it; NULL: made for the runtime
  struct gcap_ort_lent* lent;  // with `ep`: whether the stream lives
  struct gcap_ort_stream* next;
} gcap_ort_stream_t;

// Before the stream of the calling thread's runs is handed out for the first time, and before it captures: another
// thread may release what was handed out, while this one exits and its stream ends.
gcap_status_t gcap_ort_stream_prepare(gcap_stream_t* stream) GCAP_NODISCARD;
// Hands the stream of the calling thread's runs to the runtime.
gcap_status_t gcap_ort_stream_lend(gcap_ort_session_ep_t* ep, gcap_ort_stream_impl_t** out_stream) GCAP_NODISCARD;

// OrtEpFactory.CreateSyncStreamForDevice: a stream for the application.
gcap_ort_status_t* gcap_ort_create_own_stream(gcap_ort_ep_factory_t* self, const gcap_ort_memory_device_t* device,
                                              const gcap_ort_key_values_t* options,
                                              gcap_ort_stream_impl_t** out_stream);

// The stream behind one of the runtime's. NULL if it is none of ours, or no longer lives. `*out_ep`, which may be NULL,
// is as gcap_ort_stream_t says.
gcap_stream_t* gcap_ort_stream_find(gcap_ort_factory_t* factory, const gcap_ort_sync_stream_t* stream,
                                    gcap_ort_session_ep_t** out_ep);

#endif  // GCAP_ORT_STREAM_H_
