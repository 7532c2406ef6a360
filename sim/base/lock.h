// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// lock.h: the one mutex that guards everything, and what has to wait until nobody holds it.
#ifndef GCAP_SIM_BASE_LOCK_H_
#define GCAP_SIM_BASE_LOCK_H_

#include <pthread.h>

void gcap_sim_lock(void);
// Gives the lock back and then runs what was deferred.
void gcap_sim_unlock(void);
pthread_mutex_t* gcap_sim_mutex(void);  // for condition variables

// Runs `function` once the current call has given the lock back.
void gcap_sim_defer(void (*function)(void* data), void* data);

#endif  // GCAP_SIM_BASE_LOCK_H_
