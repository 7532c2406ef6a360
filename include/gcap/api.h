// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// api.h: the attributes of public functions.
#ifndef GCAP_API_H_
#define GCAP_API_H_

// Marks what gcap offers; every other name of its objects is hidden (-fvisibility=hidden). In a static library the
// marked functions are hidden too, so that a plugin which links gcap exports only what the plugin itself means to, and
// two plugins with a gcap each never meet. Define GCAP_SHARED for every file of a build that makes gcap a shared
// library: then the marked functions are exported.
#if defined(GCAP_SHARED)
#define GCAP_API __attribute__((visibility("default")))
#else
#define GCAP_API
#endif

// The compiler warns where the result is not looked at.
#define GCAP_NODISCARD __attribute__((warn_unused_result))

#endif  // GCAP_API_H_
