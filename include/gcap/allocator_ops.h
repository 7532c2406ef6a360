// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// allocator_ops.h: the table that an allocator's implementer fills in. Callers include allocator.h.
#ifndef GCAP_ALLOCATOR_OPS_H_
#define GCAP_ALLOCATOR_OPS_H_

#include "gcap/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GCAP_ALLOCATOR_OPS_VERSION 1u

// Allocator ops: one implementation. Set struct_version, fill the required members, leave the rest zero.
// Thread:   every member may be called from several threads at once.
// Capture:  alloc, free and trim may be called while a stream is capturing; an implementation whose calls would be
//           illegal then returns FAILED_PRECONDITION instead. No member leaves a capture open that it began.
// Lifetime: the table is copied; what `self` points to lives until `destroy`.
typedef struct gcap_allocator_ops {
  uint32_t struct_version;  // GCAP_ALLOCATOR_OPS_VERSION
  int32_t device_id;        // -1: host memory
  size_t alignment;         // bytes, a power of two
  void* self;               // handed to every member

  // Required, since 1. `bytes` is never 0; `*out_ptr` is NULL on entry. `ptr` is never NULL. After a failed free the
  // block is still live: the caller may retry, or continue to use the block.
  gcap_status_t (*alloc)(void* self, size_t bytes, void** out_ptr);
  gcap_status_t (*free)(void* self, void* ptr);

  // Optional, since 1. Absent: alloc.
  gcap_status_t (*alloc_on_stream)(void* self, size_t bytes, gcap_stream_t* stream, void** out_ptr);
  gcap_status_t (*reserve)(void* self, size_t bytes, void** out_ptr);
  // Optional, since 1. Absent: nothing happens.
  gcap_status_t (*trim)(void* self);
  // `*out_stats` belongs to the library. On entry its struct_size says how many bytes may be written, and all other
  // fields are zero. The library ignores what the function writes to struct_size, device_id and alignment.
  void (*get_stats)(void* self, gcap_allocator_stats_t* out_stats);
  void (*destroy)(void* self);
} gcap_allocator_ops_t;

// Creates an allocator from a table. On failure `ops->destroy` is not called.
//   INVALID_ARGUMENT    NULL, an unknown version, a missing required member, a device below -1, or an alignment that is
//                       not a power of two
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_allocator_create(const gcap_allocator_ops_t* ops,
                                             gcap_allocator_t** out_allocator) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_ALLOCATOR_OPS_H_
