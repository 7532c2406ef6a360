// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// suspect.h: reads of bytes that nobody had written, until it is known whether a race explains them. Guarded by the
// global mutex.
#ifndef GCAP_SIM_CHECK_SUSPECT_H_
#define GCAP_SIM_CHECK_SUSPECT_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/check/clock.h"
#include "sim/check/shadow.h"

// The read touches bytes of the segment, from `begin` to `end`, that nobody has written so far.
void gcap_sim_suspect_add(gcap_sim_epoch_t read, gcap_sim_memory_t* memory, uintptr_t begin, uintptr_t end);
// Work at the clock writes these bytes: reads that it does not come after race with it, which is the cause.
void gcap_sim_suspect_written(const gcap_sim_clock_t* writer, uintptr_t begin, uintptr_t end);
// Does the clock come after a read that is still suspect?
bool gcap_sim_suspect_known(const gcap_sim_clock_t* clock);
// Reports the reads that the clock comes after, or all of them for NULL: no other cause will be found.
void gcap_sim_suspect_tell(const gcap_sim_clock_t* clock);
// Forgets them all: in a forked child they are the parent's.
void gcap_sim_suspect_forget(void);

#endif  // GCAP_SIM_CHECK_SUSPECT_H_
