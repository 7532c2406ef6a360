// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// refusal.h: what the makers of allocators refuse in a capture, and what they log because it comes too late to refuse.
#ifndef GCAP_LIB_ALLOCATOR_REFUSAL_H_
#define GCAP_LIB_ALLOCATOR_REFUSAL_H_

#include <stdbool.h>
#include <stddef.h>

#include "gcap/status.h"

// FAILED_PRECONDITION while the calling thread captures, naming the refused `operation`. The memory stays the caller's,
// and the capture is none the worse.
gcap_status_t gcap_allocator_check_not_capturing(const char* operation) GCAP_NODISCARD;

// The same for memory that is asked for: names our function, the bytes, and `source`, where they would come from. Sets
// the latch: what was to be done with the memory is missing from the graph, also where nobody looks at this status.
gcap_status_t gcap_allocator_refuse_in_capture(bool reserved, size_t bytes, const char* source) GCAP_NODISCARD;

// Logs and frees a failure that came after the memory was given back: as the status of a free it would tell the caller
// that the block is still his. NULL is fine.
void gcap_allocator_log_after_free(gcap_status_t status);

#endif  // GCAP_LIB_ALLOCATOR_REFUSAL_H_
