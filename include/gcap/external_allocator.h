// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// external_allocator.h: an allocator over three callbacks of the application, for instance another framework's pool.
#ifndef GCAP_EXTERNAL_ALLOCATOR_H_
#define GCAP_EXTERNAL_ALLOCATOR_H_

#include <stddef.h>
#include <string.h>

#include "gcap/allocator.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// The callbacks, with the signatures of ONNX Runtime's gpu_external_alloc, gpu_external_free and
// gpu_external_empty_cache. Each callback runs with the allocator's device current and in the relaxed capture mode, so
// the callback may call cudaMalloc and cudaFree while another thread captures. Afterwards gcap restores the device, the
// capture mode and the last CUDA error. Callbacks run on the thread that needs memory, with no lock of gcap held:
// several may run at once, and each may call gcap. Memory from alloc must be usable on any stream at once; another
// framework's pool may rely on the order of its own stream (examples/external_allocator shows how to prevent that).
// Memory passed to free is not in use on any stream. A callback must return: no C++ exception or longjmp may leave it.
// A callback leaves no capture open that it began.
typedef struct gcap_external_allocator_options {
  size_t struct_size;  // set by gcap_external_allocator_options_init
  int device_id;
  void* (*alloc)(size_t bytes);  // required; NULL means out of memory; 256-byte aligned
  void (*free)(void* ptr);       // required
  void (*empty_cache)(void);     // optional: gives what the application caches back to the driver
} gcap_external_allocator_options_t;

// Sets the size and the defaults.
static inline void gcap_external_allocator_options_init(gcap_external_allocator_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = sizeof(*options);
}

// Creates an allocator from the callbacks. The allocator belongs to its creator, as a rule one session. Nothing is
// registered for the device or the process, so another session never sees these callbacks, and memory always returns
// through the pair that gave it.
// Thread:   thread-safe if the callbacks are.
// Capture:  while the calling thread is capturing, all functions but gcap_allocator_get_stats are refused with
//           FAILED_PRECONDITION, since the callbacks may not be legal then. Reserve memory before the capture.
// Lifetime: the callbacks must stay callable until the allocator is destroyed and every running callback has returned.
//           A callback may destroy the allocator, which then ends when the callback returns; memory that alloc returns
//           then goes back through free. A callback must not end the session, EP or run that it is called for.
//   INVALID_ARGUMENT    alloc without free or free without alloc, neither, or a negative device
//   RESOURCE_EXHAUSTED  no host memory
// Requests fail with RESOURCE_EXHAUSTED if alloc returns NULL, and with LIBRARY_ERROR if alloc returns a misaligned
// address or memory overlapping a live block. Either is returned through `free`, except an address that is already
// live: that belongs to its first owner. gcap_allocator_trim calls empty_cache; so does freeing a reserved block.
GCAP_API gcap_status_t gcap_external_allocator_create(const gcap_external_allocator_options_t* options,
                                                      gcap_allocator_t** out_allocator) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXTERNAL_ALLOCATOR_H_
