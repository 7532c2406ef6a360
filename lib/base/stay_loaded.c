// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Staying loaded: the object opens itself once more, by the path that the loader knows, and with RTLD_NODELETE. In a
// program this does nothing. The loader's functions are weak: a program that is linked without them is not unloaded.
// No state, nothing to lock.

#include "lib/base/stay_loaded.h"

#include <dlfcn.h>
#include <stddef.h>

#pragma weak dladdr
#pragma weak dlopen

void gcap_stay_loaded(void) {
  static const char inside = 0;  // any address of the object
  Dl_info info = {0};
  if (dladdr == NULL || dlopen == NULL || dladdr(&inside, &info) == 0 || info.dli_fname == NULL) return;
  (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}
