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
// gpu_external_empty_cache. Each runs with the allocator's device current, and in the relaxed capture mode, so that it
// may call cudaMalloc and cudaFree while another thread captures; both, and the last CUDA error, are afterwards as they
// were, whatever it did to them. They run on the thread that needs memory, without a lock of gcap, so several may run
// at once, and each may call gcap. What alloc gives must be free for work on any stream at once: another framework's
// pool may count on the order of its own stream (examples/external_allocator shows how it is told not to). What free
// gets back no stream uses any more. A callback returns: a C++ exception or a longjmp must not leave it.
typedef struct gcap_external_allocator_options {
  size_t struct_size;  // set by gcap_external_allocator_options_init
  int device_id;
  void* (*alloc)(size_t bytes);  // required; NULL means out of memory; 256-byte aligned
  void (*free)(void* ptr);       // required
  void (*empty_cache)(void);     // optional: gives what the application caches back to the driver
} gcap_external_allocator_options_t;

// Fills in the defaults. Programs call the init function, which says how large their struct is.
GCAP_API void gcap_external_allocator_options_set_defaults(gcap_external_allocator_options_t* options);
static inline void gcap_external_allocator_options_init(gcap_external_allocator_options_t* options) {
  options->struct_size = sizeof(*options);
  gcap_external_allocator_options_set_defaults(options);
}

// Makes an allocator of the callbacks. It belongs to whoever created it, one session as a rule: nothing is registered
// for the device or the process, so another session never sees these callbacks, and memory always goes back through the
// pair that gave it.
// Thread:   thread-safe when the callbacks are.
// Capture:  all but its statistics are refused with FAILED_PRECONDITION while the calling thread captures: nobody can
//           promise that the callbacks are legal then. Reserve memory before.
// Lifetime: the callbacks stay callable until the allocator is destroyed, and until those have returned that run then.
//           A callback may destroy it: it ends when the callback returns, and alloc gets its memory back. It must not
//           end the session, EP or run that it is called for.
//   INVALID_ARGUMENT    alloc without free or free without alloc, neither, or a negative device
//   RESOURCE_EXHAUSTED  no host memory
// Its requests fail with RESOURCE_EXHAUSTED when alloc returns NULL, and with LIBRARY_ERROR when it returns an address
// that is misaligned, or memory of which some is handed out; both go back to `free`, unless the very address is handed
// out, and so its first owner's. gcap_allocator_trim, and freeing a reserved block, call empty_cache.
GCAP_API gcap_status_t gcap_external_allocator_create(const gcap_external_allocator_options_t* options,
                                                      gcap_allocator_t** out_allocator) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXTERNAL_ALLOCATOR_H_
