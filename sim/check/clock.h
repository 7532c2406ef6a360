// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// clock.h: vector clocks over timelines: what happened before what.
#ifndef GCAP_SIM_CHECK_CLOCK_H_
#define GCAP_SIM_CHECK_CLOCK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gcap_sim_trie gcap_sim_trie_t;

// More is merged into one: two or three are what a loop of a few streams needs.
#define GCAP_SIM_MAX_LEARNT 4

typedef struct gcap_sim_moment {
  uint64_t at;  // the learner's own time
  uint64_t time;
  uint32_t timeline;
} gcap_sim_moment_t;

// A timeline is something that does one thing after another: the host, a stream, a chain of nodes of an executable
// graph. Its clock holds its own time, and the latest time of each other timeline that it comes after.
// Invariant: who knows time t of a timeline knows all that the timeline knew and did then. Hence learning something is
// a new moment, and so must be, by a tick, whatever it does next.
typedef struct gcap_sim_clock {
  uint32_t timeline;  // 0 while unused: the host's is 1
  uint64_t time;
  gcap_sim_trie_t* known;     // times of the others; an entry for itself may be stale, `time` counts
  gcap_sim_trie_t* absorbed;  // what was merged last: many learn the same again and again
  // Where `known` comes from: what it was at the time `base`, and these moments learnt since.
  uint64_t base;
  size_t num_learnt;
  gcap_sim_moment_t learnt[GCAP_SIM_MAX_LEARNT];
} gcap_sim_clock_t;

// A moment of a timeline, for others to learn.
typedef struct gcap_sim_stamp {
  uint32_t timeline;  // 0: no moment, nothing to learn
  uint64_t time;
  gcap_sim_trie_t* known;
  gcap_sim_trie_t* full;  // `known` with the moment itself, made when it is first needed
} gcap_sim_stamp_t;

// Starts a clock that comes after `after` (NULL: after nothing). Identities of closed timelines are taken over by who
// comes after all that they did, so that a program with short-lived streams does not collect them without end.
void gcap_sim_clock_open(gcap_sim_clock_t* clock, gcap_sim_stamp_t* after);
void gcap_sim_clock_close(gcap_sim_clock_t* clock);

// A new moment: what is done from now on is not known to those that hold a stamp of the clock.
void gcap_sim_clock_tick(gcap_sim_clock_t* clock);
// Comes after the stamp from now on; a new moment if that was news.
void gcap_sim_clock_learn(gcap_sim_clock_t* clock, gcap_sim_stamp_t* stamp);
bool gcap_sim_clock_knows(const gcap_sim_clock_t* clock, uint32_t timeline, uint64_t time);

// The clock's present moment. Release it, or hand it on.
gcap_sim_stamp_t gcap_sim_clock_stamp(const gcap_sim_clock_t* clock);
void gcap_sim_stamp_release(gcap_sim_stamp_t* stamp);

#endif  // GCAP_SIM_CHECK_CLOCK_H_
