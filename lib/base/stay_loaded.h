// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stay_loaded.h: for gcap in a shared object that its host unloads.
#ifndef GCAP_LIB_BASE_STAY_LOADED_H_
#define GCAP_LIB_BASE_STAY_LOADED_H_

// Keeps the shared object that gcap is linked into loaded until the process ends, however often it is closed. Called
// before the process is given a function of ours that it calls later, such as the destructor of a pthread key: a thread
// may exit at any time after, and one that is exiting cannot be waited for.
void gcap_stay_loaded(void);

#endif  // GCAP_LIB_BASE_STAY_LOADED_H_
