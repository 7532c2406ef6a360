// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// external_allocator.h: an allocator over three callbacks of the application, such as another framework's pool.
#ifndef GCAP_EXTERNAL_ALLOCATOR_H_
#define GCAP_EXTERNAL_ALLOCATOR_H_

#include <stddef.h>

#include "gcap/allocator.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// The callbacks, with the signatures of ONNX Runtime's gpu_external_alloc, gpu_external_free and
// gpu_external_empty_cache. They run with the allocator's device current, and in the relaxed capture mode, so that they
// may call cudaMalloc and cudaFree while another thread captures.
typedef struct gcap_external_allocator_options {
  int device_id;
  void* (*alloc)(size_t bytes);  // required; NULL means out of memory; 256-byte aligned
  void (*free)(void* ptr);       // required
  void (*empty_cache)(void);     // optional
} gcap_external_allocator_options_t;

// Makes an allocator of the callbacks. It belongs to whoever created it, one session as a rule: nothing is registered
// for the device or the process, so another session never sees these callbacks, and memory always goes back through the
// pair that gave it.
// Thread:   thread-safe when the callbacks are.
// Capture:  alloc and free refuse with FAILED_PRECONDITION while the calling thread captures: nobody can promise that
//           the callbacks are legal then. Reserve memory before.
// Lifetime: the callbacks stay callable until the allocator is destroyed.
//   INVALID_ARGUMENT  alloc without free or free without alloc, neither, or a negative device
// Its calls fail with RESOURCE_EXHAUSTED when alloc returns NULL, and with LIBRARY_ERROR when it returns a misaligned
// address (which is given back to `free`). gcap_allocator_trim, and freeing a reserved block, call empty_cache.
gcap_status_t gcap_external_allocator_create(const gcap_external_allocator_options_t* options,
                                             gcap_allocator_t** out_allocator) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXTERNAL_ALLOCATOR_H_
