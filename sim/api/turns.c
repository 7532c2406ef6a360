// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Turns: several host threads, one interleaving a seed.
//
// The idea: of a group's threads only the one that has the turn runs at all, its own code between two calls included.
// At the start of each call it gives the turn away, the seed draws who of the members has it next (itself, perhaps),
// and it waits for its own next turn. No thread's speed has a say in that. All members must have joined before the
// first draw, for the same reason.
//
// Invariants: the owner is an active member, or there is none. A member is active from join to leave, but while it is
// stuck in a call on a host function. Locking: the global mutex; each member has a condition of its own, so that a turn
// wakes one thread.
#include "sim/api/turns.h"

#include <stdlib.h>

#include "gcap_sim.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/random.h"
#include "sim/base/silence.h"
#include "sim/base/thread.h"

// After so many seconds at whose ends all other threads slept: one that computes, or gets no processor, is waited for.
// Long against anything that a thread sleeps for between two calls, short against a test's time limit.
enum { kPatienceS = 5 };

#define NOBODY SIZE_MAX

typedef struct member {
  pthread_cond_t wake;
  bool joined;  // at least once
  bool active;
} member_t;

static struct {
  member_t* members;
  size_t count;
  size_t num_joined;
  size_t num_active;
  size_t owner;
  uint64_t draws;
} group = {.owner = NOBODY};

// Draws the next owner. Before all have joined there is none.
static void draw(void) {
  group.owner = NOBODY;
  ++group.draws;
  if (group.num_joined < group.count || group.num_active == 0) return;
  size_t skip = gcap_sim_random_below(GCAP_SIM_RANDOM_TURNS, group.num_active);
  size_t index = 0;
  while (!group.members[index].active || skip-- > 0) ++index;
  group.owner = index;
  pthread_cond_signal(&group.members[index].wake);
}

static _Noreturn void report_stall(size_t index) {
  if (group.owner != NOBODY) {
    gcap_sim_die(
        "turns: thread %zu has waited %d s for thread %zu, which has the turn and makes no call; a thread that "
        "blocks on anything but the simulator must call gcap_sim_turns_leave first",
        index, kPatienceS, group.owner);
  }
  gcap_sim_die("turns: thread %zu has waited %d s for the group: %zu of %zu threads have joined", index, kPatienceS,
               group.num_joined, group.count);
}

static void wait_for_turn(size_t index) {
  uint64_t draws = group.draws;
  int seconds = 0;
  while (group.owner != index) {
    if (!gcap_sim_wait_ms(&group.members[index].wake, 1000) && gcap_sim_others_sleep()) ++seconds;
    if (draws != group.draws) seconds = 0;
    draws = group.draws;
    if (seconds == kPatienceS && group.owner != index) report_stall(index);
  }
}

static void activate(size_t index) {
  group.members[index].active = true;
  ++group.num_active;
  if (group.owner == NOBODY) draw();
}

static void deactivate(size_t index) {
  group.members[index].active = false;
  --group.num_active;
  if (group.owner == index) draw();
}

void gcap_sim_turns_arrive(gcap_sim_thread_t* thread) {
  if (!thread->turn) return;
  draw();
  wait_for_turn(thread->turn - 1);
}

void gcap_sim_turns_step_out(gcap_sim_thread_t* thread) {
  if (thread->turn) deactivate(thread->turn - 1);
}

void gcap_sim_turns_step_in(gcap_sim_thread_t* thread) {
  if (!thread->turn) return;
  activate(thread->turn - 1);
  wait_for_turn(thread->turn - 1);
}

void gcap_sim_turns_thread_ends(gcap_sim_thread_t* thread) {
  if (!thread->turn) return;
  deactivate(thread->turn - 1);
  thread->turn = 0;
}

void gcap_sim_turns_begin(size_t num_threads) {
  gcap_sim_lock();
  if (num_threads == 0) gcap_sim_die("gcap_sim_turns_begin: a group has at least one thread");
  if (group.num_active) {
    gcap_sim_die("gcap_sim_turns_begin: %zu threads of the last group have not left", group.num_active);
  }
  for (size_t i = 0; i < group.count; ++i) pthread_cond_destroy(&group.members[i].wake);
  free(group.members);
  group.members = gcap_sim_calloc(num_threads, sizeof(member_t));
  for (size_t i = 0; i < num_threads; ++i) pthread_cond_init(&group.members[i].wake, NULL);
  group.count = num_threads;
  group.num_joined = 0;
  group.owner = NOBODY;
  gcap_sim_unlock();
}

void gcap_sim_turns_join(size_t index) {
  gcap_sim_thread_t* thread = gcap_sim_thread();
  gcap_sim_lock();
  if (index >= group.count) {
    gcap_sim_die("gcap_sim_turns_join: index %zu of a group of %zu threads", index, group.count);
  }
  if (thread->turn) gcap_sim_die("gcap_sim_turns_join: this thread is thread %zu of the group", thread->turn - 1);
  member_t* member = &group.members[index];
  if (member->active) gcap_sim_die("gcap_sim_turns_join: another thread is thread %zu of the group", index);
  if (!member->joined) ++group.num_joined;
  member->joined = true;
  thread->turn = index + 1;
  activate(index);
  wait_for_turn(index);
  gcap_sim_unlock();
}

void gcap_sim_turns_leave(void) {
  gcap_sim_thread_t* thread = gcap_sim_thread();
  gcap_sim_lock();
  if (!thread->turn) gcap_sim_die("gcap_sim_turns_leave: this thread is in no group");
  gcap_sim_turns_thread_ends(thread);
  gcap_sim_unlock();
}
