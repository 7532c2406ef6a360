// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The version of the linked library, for programs that vendor one gcap and meet another.

#include "gcap/version.h"

int gcap_version(void) { return GCAP_VERSION; }
