// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// spans.h: the address ranges that callbacks gave, so that one which overlaps another is told apart.
#ifndef GCAP_LIB_ALLOCATOR_SPANS_H_
#define GCAP_LIB_ALLOCATOR_SPANS_H_

#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"

typedef struct gcap_external_span {
  uintptr_t begin, end;  // [begin, end)
} gcap_external_span_t;

// Thread: one at a time.
typedef struct gcap_external_spans {
  gcap_external_span_t* spans;  // by address, disjoint
  size_t count, capacity;
} gcap_external_spans_t;

// Enters `bytes` bytes, at least one, at `ptr`. `*out_rival` is the span in the way, with ALREADY_EXISTS.
//   ALREADY_EXISTS      some of it is entered already
//   INVALID_ARGUMENT    it would reach beyond the last address
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_external_spans_add(gcap_external_spans_t* spans, const void* ptr, size_t bytes,
                                      gcap_external_span_t* out_rival) GCAP_NODISCARD;

// Takes out the span that begins at `ptr`; it is there.
void gcap_external_spans_remove(gcap_external_spans_t* spans, const void* ptr);

void gcap_external_spans_deinit(gcap_external_spans_t* spans);

#endif  // GCAP_LIB_ALLOCATOR_SPANS_H_
