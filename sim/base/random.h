// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// random.h: the seed, and random numbers for each purpose.
#ifndef GCAP_SIM_BASE_RANDOM_H_
#define GCAP_SIM_BASE_RANDOM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Each purpose has its own sequence, so that arming a fault or adding a thread does not shift the schedule.
typedef enum gcap_sim_random_purpose {
  GCAP_SIM_RANDOM_SCHEDULE,
  GCAP_SIM_RANDOM_FAULT,
  GCAP_SIM_RANDOM_TURNS,
  GCAP_SIM_RANDOM_COUNT
} gcap_sim_random_purpose_t;

// What explore puts aside while other seeds run.
typedef struct gcap_sim_random_state {
  bool seeded;
  uint64_t seed;
  uint64_t words[GCAP_SIM_RANDOM_COUNT];
} gcap_sim_random_state_t;

void gcap_sim_random_seed(uint64_t seed);
gcap_sim_random_state_t gcap_sim_random_save(void);
void gcap_sim_random_restore(const gcap_sim_random_state_t* state);
// The seed in force: set by a call, or by GCAP_SIM_SEED, or 0.
uint64_t gcap_sim_seed(void);
size_t gcap_sim_random_below(gcap_sim_random_purpose_t purpose, size_t bound);
// True with the given probability.
bool gcap_sim_random_chance(gcap_sim_random_purpose_t purpose, double probability);

#endif  // GCAP_SIM_BASE_RANDOM_H_
