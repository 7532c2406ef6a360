// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// allocator.h: ONNX Runtime's allocators over gcap's memory.
#ifndef GCAP_ORT_ALLOCATOR_H_
#define GCAP_ORT_ALLOCATOR_H_

#include "ort/objects.h"

// OrtEpFactory.CreateAllocator: memory of no session.
gcap_ort_status_t* gcap_ort_create_shared_allocator(gcap_ort_ep_factory_t* self, const gcap_ort_memory_info_t* info,
                                                    const gcap_ort_key_values_t* options,
                                                    gcap_ort_allocator_t** out_allocator);
// OrtEp.CreateAllocator: memory of a session. Inside a run, device memory is scratch of the run's stream: in a capture
// the graph keeps it.
gcap_ort_status_t* gcap_ort_create_session_allocator(gcap_ort_ep_t* self, const gcap_ort_memory_info_t* info,
                                                     gcap_ort_allocator_t** out_allocator);
// OrtEpFactory.ReleaseAllocator: of both.
void gcap_ort_release_allocator(gcap_ort_ep_factory_t* self, gcap_ort_allocator_t* allocator);

#endif  // GCAP_ORT_ALLOCATOR_H_
