// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// kept.h: objects that are kept for ever, because something that cannot be waited for may still use them.
#ifndef GCAP_LIB_INTERNAL_KEPT_H_
#define GCAP_LIB_INTERNAL_KEPT_H_

#ifdef __cplusplus
extern "C" {
#endif

// A link of the list, embedded in the object that is kept.
typedef struct gcap_kept {
  struct gcap_kept* next;
} gcap_kept_t;

// Keeps for ever the object that `link` is a part of, with all that it refers to. A leak checker finds the object
// reachable, and so can tell it from an accident. Called once for an object, from any thread; needs no memory.
void gcap_keep_for_ever(gcap_kept_t* link);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_INTERNAL_KEPT_H_
