// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A pool allocator's options. Values only, so there is nothing to lock.

#include "lib/allocator/options.h"

GCAP_SIZED_OPTIONS(, gcap_pool_allocator_options);
