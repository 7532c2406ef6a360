// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// silence.h: time that passes for others.
#ifndef GCAP_SIM_BASE_SILENCE_H_
#define GCAP_SIM_BASE_SILENCE_H_

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// Waits on the condition with the global mutex; false after `milliseconds`.
bool gcap_sim_wait_ms(pthread_cond_t* condition, unsigned milliseconds);
// Is no other thread of the process running? A thread that is ready but has no processor counts as running.
bool gcap_sim_others_sleep(void);
// The processor time that the process has had so far, of all its threads.
uint64_t gcap_sim_processor_ms(void);

#endif  // GCAP_SIM_BASE_SILENCE_H_
