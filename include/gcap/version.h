// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// version.h: the version of these headers and of the library that was linked.
#ifndef GCAP_VERSION_H_
#define GCAP_VERSION_H_

#include "gcap/api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GCAP_VERSION_MAJOR 0
#define GCAP_VERSION_MINOR 1
#define GCAP_VERSION_PATCH 0
// One number that grows with the version: 10000 * major + 100 * minor + patch.
#define GCAP_VERSION (10000 * GCAP_VERSION_MAJOR + 100 * GCAP_VERSION_MINOR + GCAP_VERSION_PATCH)

// GCAP_VERSION of the linked library.
GCAP_API int gcap_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_VERSION_H_
