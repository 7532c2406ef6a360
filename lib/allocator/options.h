// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// options.h: a pool allocator's options and their defaults.
#ifndef GCAP_LIB_ALLOCATOR_OPTIONS_H_
#define GCAP_LIB_ALLOCATOR_OPTIONS_H_

#include "gcap/allocator.h"
#include "lib/internal/sized.h"

extern const gcap_sized_type_t gcap_pool_allocator_options_type;

// The caller's options in the library's layout; of NULL the defaults.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_pool_allocator_options_read(const gcap_pool_allocator_options_t* given,
                                               gcap_pool_allocator_options_t* out_options) GCAP_NODISCARD;

#endif  // GCAP_LIB_ALLOCATOR_OPTIONS_H_
