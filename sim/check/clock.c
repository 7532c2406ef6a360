// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Vector clocks, sparse and persistent.
//
// The idea: the times that a clock knows are a trie over timeline numbers whose nodes are counted and never change
// while shared, so a stamp costs one count, however many timelines there are; a change copies the path to one leaf.
// Learning does nothing when there is no news, takes the other's trie whole when the other knows all that this clock
// does, and else merges, skipping what the two share. Both shortcuts follow from the invariant in clock.h: knowing a
// moment of a timeline is knowing what that timeline knew, so a few moments say whether the other knows everything.
// Locking: the global mutex, also for the free list of nodes.
#include "sim/check/clock.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/heap.h"

enum { kBits = 4, kFanout = 1 << kBits };

struct gcap_sim_trie {
  uint32_t refs;
  uint32_t level;  // 0: a leaf
  union {
    gcap_sim_trie_t* child[kFanout];
    uint64_t time[kFanout];
  } u;
};

static gcap_sim_trie_t* spare;  // linked through child[0]

// How many closed timelines are looked at for one to take over: those closed last are most likely known.
enum { kCandidates = 4 };

static struct {
  uint32_t last;
  struct {
    uint32_t timeline;
    uint64_t time;
  } * closed;
  size_t num_closed;
  size_t capacity;
} timelines;

// --- Nodes ----------------------------------------------------------------------------------------------------------

static gcap_sim_trie_t* node_create(uint32_t level) {
  gcap_sim_trie_t* node = spare;
  if (node != NULL) {
    spare = node->u.child[0];
  } else {
    node = gcap_sim_calloc(1, sizeof(*node));
  }
  memset(node, 0, sizeof(*node));
  node->refs = 1;
  node->level = level;
  return node;
}

static gcap_sim_trie_t* retain(gcap_sim_trie_t* node) {
  if (node != NULL) ++node->refs;
  return node;
}

static void release(gcap_sim_trie_t* node) {
  if (node == NULL || --node->refs > 0) return;
  for (int i = 0; node->level > 0 && i < kFanout; ++i) release(node->u.child[i]);
  node->u.child[0] = spare;
  spare = node;
}

// The node itself when nobody shares it, else a copy. Takes over the reference.
static gcap_sim_trie_t* writable(gcap_sim_trie_t* node) {
  if (node->refs == 1) return node;
  gcap_sim_trie_t* copy = node_create(node->level);
  copy->u = node->u;
  for (int i = 0; copy->level > 0 && i < kFanout; ++i) retain(copy->u.child[i]);
  --node->refs;
  return copy;
}

static uint32_t slot(uint32_t timeline, uint32_t level) { return timeline >> (level * kBits) & (kFanout - 1); }

static bool covers(const gcap_sim_trie_t* node, uint32_t timeline) {
  return (uint64_t)timeline >> ((node->level + 1) * kBits) == 0;
}

static uint64_t get(const gcap_sim_trie_t* node, uint32_t timeline) {
  if (node == NULL || !covers(node, timeline)) return 0;
  while (node != NULL && node->level > 0) node = node->u.child[slot(timeline, node->level)];
  return node != NULL ? node->u.time[slot(timeline, 0)] : 0;
}

static gcap_sim_trie_t* lift(gcap_sim_trie_t* node) {
  gcap_sim_trie_t* above = node_create(node->level + 1);
  above->u.child[0] = node;
  return above;
}

// Takes over `node`, as do all that return a trie.
static gcap_sim_trie_t* set(gcap_sim_trie_t* node, uint32_t timeline, uint64_t time) {
  if (node == NULL) node = node_create(0);
  while (!covers(node, timeline)) node = lift(node);
  node = writable(node);
  if (node->level == 0) {
    node->u.time[slot(timeline, 0)] = time;
    return node;
  }
  gcap_sim_trie_t** child = &node->u.child[slot(timeline, node->level)];
  // A child of the right level, so that each path has every level.
  if (*child == NULL) *child = node_create(node->level - 1);
  *child = set(*child, timeline & ((UINT32_C(1) << (node->level * kBits)) - 1), time);
  return node;
}

// --- Merging --------------------------------------------------------------------------------------------------------

static gcap_sim_trie_t* merge_leaves(gcap_sim_trie_t* a, gcap_sim_trie_t* b) {
  bool a_wins = false;
  bool b_wins = false;
  for (int i = 0; i < kFanout; ++i) {
    a_wins |= a->u.time[i] > b->u.time[i];
    b_wins |= b->u.time[i] > a->u.time[i];
  }
  if (!b_wins) return a;
  if (!a_wins) {
    release(a);
    return retain(b);
  }
  a = writable(a);
  for (int i = 0; i < kFanout; ++i) {
    if (b->u.time[i] > a->u.time[i]) a->u.time[i] = b->u.time[i];
  }
  return a;
}

static gcap_sim_trie_t* merge(gcap_sim_trie_t* a, gcap_sim_trie_t* b);

static gcap_sim_trie_t* merge_nodes(gcap_sim_trie_t* a, gcap_sim_trie_t* b) {
  bool all_of_b = true;
  for (int i = 0; i < kFanout; ++i) {
    gcap_sim_trie_t* child = a->u.child[i];
    if (child != b->u.child[i] && b->u.child[i] != NULL) {
      // While `a` is shared its child must survive it: the extra reference makes the merge copy.
      bool shared = a->refs > 1;
      gcap_sim_trie_t* merged = merge(shared ? retain(child) : child, b->u.child[i]);
      if (shared && merged == child) {
        release(merged);
      } else if (shared) {
        a = writable(a);
        release(child);
        a->u.child[i] = merged;
      } else {
        a->u.child[i] = merged;
      }
    }
    all_of_b &= a->u.child[i] == b->u.child[i];
  }
  if (!all_of_b) return a;
  release(a);
  return retain(b);  // the same content in one place makes the next merge short
}

// The later time of each timeline. Takes over `a`, borrows `b`.
static gcap_sim_trie_t* merge(gcap_sim_trie_t* a, gcap_sim_trie_t* b) {
  if (a == b || b == NULL) return a;
  if (a == NULL) return retain(b);
  while (a->level < b->level) a = lift(a);
  if (a->level == b->level) return a->level == 0 ? merge_leaves(a, b) : merge_nodes(a, b);
  a = writable(a);
  a->u.child[0] = merge(a->u.child[0], b);
  return a;
}

// --- Clocks ---------------------------------------------------------------------------------------------------------

static bool stamp_knows(const gcap_sim_stamp_t* stamp, uint32_t timeline, uint64_t time) {
  return timeline == stamp->timeline ? time <= stamp->time : get(stamp->known, timeline) >= time;
}

static gcap_sim_trie_t* all_of(gcap_sim_stamp_t* stamp) {
  if (stamp->full == NULL) stamp->full = set(retain(stamp->known), stamp->timeline, stamp->time);
  return stamp->full;
}

static void note_learnt(gcap_sim_clock_t* clock, const gcap_sim_stamp_t* stamp) {
  if (clock->num_learnt == GCAP_SIM_MAX_LEARNT) {
    clock->base = clock->learnt[0].at;
    --clock->num_learnt;
    memmove(&clock->learnt[0], &clock->learnt[1], clock->num_learnt * sizeof(gcap_sim_moment_t));
  }
  clock->learnt[clock->num_learnt++] =
      (gcap_sim_moment_t){.at = clock->time, .time = stamp->time, .timeline = stamp->timeline};
}

void gcap_sim_clock_open(gcap_sim_clock_t* clock, gcap_sim_stamp_t* after) {
  *clock = (gcap_sim_clock_t){.time = 1};
  size_t lowest = timelines.num_closed > kCandidates ? timelines.num_closed - kCandidates : 0;
  for (size_t i = timelines.num_closed; after != NULL && i > lowest; --i) {
    uint32_t timeline = timelines.closed[i - 1].timeline;
    uint64_t time = timelines.closed[i - 1].time;
    if (!stamp_knows(after, timeline, time)) continue;
    clock->timeline = timeline;
    clock->time = time + 1;
    timelines.closed[i - 1] = timelines.closed[--timelines.num_closed];
    break;
  }
  if (!clock->timeline) clock->timeline = ++timelines.last;
  if (after == NULL) return;
  clock->known = retain(all_of(after));
  note_learnt(clock, after);
}

void gcap_sim_clock_close(gcap_sim_clock_t* clock) {
  if (!clock->timeline) return;
  gcap_sim_reserve(&timelines.closed, &timelines.capacity, timelines.num_closed + 1, sizeof(timelines.closed[0]));
  timelines.closed[timelines.num_closed].timeline = clock->timeline;
  timelines.closed[timelines.num_closed++].time = clock->time;
  release(clock->known);
  release(clock->absorbed);
  *clock = (gcap_sim_clock_t){0};
}

void gcap_sim_clock_tick(gcap_sim_clock_t* clock) { ++clock->time; }

bool gcap_sim_clock_knows(const gcap_sim_clock_t* clock, uint32_t timeline, uint64_t time) {
  return timeline == clock->timeline ? time <= clock->time : get(clock->known, timeline) >= time;
}

// Does the other know all that this clock does?
static bool is_ahead(const gcap_sim_stamp_t* stamp, const gcap_sim_clock_t* clock) {
  uint64_t time = get(stamp->known, clock->timeline);
  if (time < clock->base) return false;
  for (size_t i = 0; i < clock->num_learnt; ++i) {
    const gcap_sim_moment_t* learnt = &clock->learnt[i];
    if (time < learnt->at && !stamp_knows(stamp, learnt->timeline, learnt->time)) return false;
  }
  return true;
}

// Its knowledge replaces ours.
static void take_over(gcap_sim_clock_t* clock, gcap_sim_stamp_t* stamp) {
  release(clock->known);
  release(clock->absorbed);
  clock->known = retain(all_of(stamp));
  clock->absorbed = retain(stamp->full);
  clock->base = 0;
  clock->num_learnt = 0;
}

static void absorb(gcap_sim_clock_t* clock, gcap_sim_stamp_t* stamp) {
  if (stamp->known != NULL && clock->absorbed != stamp->known) {
    clock->known = merge(clock->known, stamp->known);
    release(clock->absorbed);
    clock->absorbed = retain(stamp->known);
  }
  clock->known = set(clock->known, stamp->timeline, stamp->time);
}

void gcap_sim_clock_learn(gcap_sim_clock_t* clock, gcap_sim_stamp_t* stamp) {
  if (!stamp->timeline || gcap_sim_clock_knows(clock, stamp->timeline, stamp->time)) return;
  ++clock->time;
  if (is_ahead(stamp, clock)) {
    take_over(clock, stamp);
  } else {
    absorb(clock, stamp);
  }
  note_learnt(clock, stamp);
}

gcap_sim_stamp_t gcap_sim_clock_stamp(const gcap_sim_clock_t* clock) {
  return (gcap_sim_stamp_t){.timeline = clock->timeline, .time = clock->time, .known = retain(clock->known)};
}

void gcap_sim_stamp_release(gcap_sim_stamp_t* stamp) {
  release(stamp->known);
  release(stamp->full);
  *stamp = (gcap_sim_stamp_t){0};
}
