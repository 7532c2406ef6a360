// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The seed and what is drawn from it.
//
// The idea: a generator a purpose, all set by the one seed. So the draw of a fault does not shift the schedule, and a
// schedule found with some faults armed is found again. Locking: the global mutex.
#include "sim/base/random.h"

#include <errno.h>
#include <stdlib.h>

#include "sim/base/die.h"

static gcap_sim_random_state_t state;

// SplitMix64 (Steele, Lea, Flood 2014): one word of state, and neighbouring seeds give unrelated sequences.
static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

void gcap_sim_random_seed(uint64_t seed) {
  state.seeded = true;
  state.seed = seed;
  for (uint64_t i = 0; i < GCAP_SIM_RANDOM_COUNT; ++i) state.words[i] = mix(seed + mix(i));
}

static void seed_from_environment(void) {
  uint64_t seed = 0;
  const char* text = getenv("GCAP_SIM_SEED");
  if (text != NULL) {
    char* end;
    errno = 0;
    seed = strtoull(text, &end, 0);
    if (errno || *end || end == text) gcap_sim_die_of_setting("GCAP_SIM_SEED is '%s', expected a 64-bit number", text);
  }
  gcap_sim_random_seed(seed);
}

gcap_sim_random_state_t gcap_sim_random_save(void) {
  if (!state.seeded) seed_from_environment();
  return state;
}

void gcap_sim_random_restore(const gcap_sim_random_state_t* saved) { state = *saved; }

uint64_t gcap_sim_seed(void) {
  if (!state.seeded) seed_from_environment();
  return state.seed;
}

static uint64_t next(gcap_sim_random_purpose_t purpose) {
  if (!state.seeded) seed_from_environment();
  return mix(state.words[purpose] += UINT64_C(0x9E3779B97F4A7C15));
}

// The remainder prefers small numbers by bound / 2^64, which no one can notice.
size_t gcap_sim_random_below(gcap_sim_random_purpose_t purpose, size_t bound) {
  return (size_t)(next(purpose) % bound);
}

bool gcap_sim_random_chance(gcap_sim_random_purpose_t purpose, double probability) {
  // 53 bits fill a double's fraction: the number lies in [0, 1), so 0 never hits and 1 always does.
  return (double)(next(purpose) >> 11) * 0x1p-53 < probability;
}
