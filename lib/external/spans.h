// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// spans.h: the address ranges that callbacks gave, so that one which overlaps another is told apart.
#ifndef GCAP_LIB_EXTERNAL_SPANS_H_
#define GCAP_LIB_EXTERNAL_SPANS_H_

#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"

typedef struct external_span {
  uintptr_t begin, end;  // [begin, end)
} external_span_t;

// Thread: one at a time.
typedef struct external_spans {
  external_span_t* spans;  // by address, disjoint
  size_t count, capacity;
} external_spans_t;

// Enters `bytes` bytes, at least one, at `ptr`. `*out_rival` is the span in the way, with ALREADY_EXISTS.
//   ALREADY_EXISTS      some of it is entered already
//   INVALID_ARGUMENT    it would reach beyond the last address
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t external_spans_add(external_spans_t* spans, const void* ptr, size_t bytes,
                                 external_span_t* out_rival) GCAP_NODISCARD;

// Takes out the span that begins at `ptr`; it is there.
void external_spans_remove(external_spans_t* spans, const void* ptr);

void external_spans_deinit(external_spans_t* spans);

#endif  // GCAP_LIB_EXTERNAL_SPANS_H_
