// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An arena's options. Values only, so there is nothing to lock.

#include "lib/scratch/options.h"

GCAP_SIZED_OPTIONS(, gcap_scratch_options);
