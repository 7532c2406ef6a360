// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Exploration: one test body under many seeds.
//
// The idea: each seed is one interleaving of the body, so a mistake that shows in few of them is found by trying, and
// shown again by its seed alone. The seed and the schedule of the program around are put aside meanwhile. Locking: none
// is held while the body runs.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gcap_sim.h"
#include "sim/base/die.h"
#include "sim/base/lock.h"
#include "sim/base/random.h"
#include "sim/check/policy.h"
#include "sim/check/report.h"
#include "sim/check/suspect.h"
#include "sim/stream/scheduler.h"

// A seed asked for by the environment runs alone: that is how the printed line runs a failure again.
static bool seed_from_environment(uint64_t* out) {
  const char* text = getenv("GCAP_SIM_EXPLORE");
  if (text == NULL) return false;
  char* end;
  errno = 0;
  *out = strtoull(text, &end, 0);
  if (errno || *end || end == text) gcap_sim_die_of_setting("GCAP_SIM_EXPLORE is '%s', expected a 64-bit number", text);
  return true;
}

// Checks record while the body runs, and tell of each seed anew what they find.
static size_t begin_reports(void) {
  gcap_sim_lock();
  gcap_sim_check_record_all(true);
  gcap_sim_report_tell_again();
  size_t reports = gcap_sim_report_count();
  gcap_sim_unlock();
  return reports;
}

static size_t end_reports(size_t before) {
  gcap_sim_lock();
  gcap_sim_suspect_tell(NULL);
  gcap_sim_check_record_all(false);
  size_t reports = gcap_sim_report_count();
  gcap_sim_unlock();
  // The body may have called gcap_sim_check, and judged for itself.
  return reports > before ? reports - before : 0;
}

static bool run_seed(int (*body)(void* user), void* user, uint64_t seed) {
  size_t live = gcap_sim_live(NULL);
  gcap_sim_set_seed(seed);
  size_t reports = begin_reports();
  int result = body(user);
  reports = end_reports(reports);
  if (result) fprintf(stderr, "gcap sim: seed %llu: the body returned %d\n", (unsigned long long)seed, result);
  size_t left = gcap_sim_live(NULL);
  if (left != live) {
    fprintf(stderr, "gcap sim: seed %llu: the body began with %zu handles and allocations and ended with %zu\n",
            (unsigned long long)seed, live, left);
  }
  return result == 0 && left == live && reports == 0;
}

int gcap_sim_explore(int (*body)(void* user), void* user, uint64_t first_seed, uint64_t seeds,
                     uint64_t* out_failing_seed) {
  if (out_failing_seed != NULL) *out_failing_seed = 0;
  if (body == NULL) gcap_sim_die("gcap_sim_explore: the body is NULL");
  gcap_sim_lock();
  gcap_sim_random_state_t random = gcap_sim_random_save();
  gcap_sim_schedule_t schedule = gcap_sim_set_schedule(GCAP_SIM_SCHEDULE_RANDOM);
  gcap_sim_unlock();
  if (seed_from_environment(&first_seed)) seeds = 1;
  uint64_t tried = 0;
  while (tried < seeds && run_seed(body, user, first_seed + tried)) ++tried;
  bool failed = tried < seeds;
  if (failed) {
    uint64_t seed = first_seed + tried;
    fprintf(stderr,
            "gcap sim: failed under seed %llu after %llu that passed; it runs alone with GCAP_SIM_EXPLORE=%llu\n",
            (unsigned long long)seed, (unsigned long long)tried, (unsigned long long)seed);
    if (out_failing_seed != NULL) *out_failing_seed = seed;
  }
  gcap_sim_lock();
  gcap_sim_random_restore(&random);
  gcap_sim_set_schedule(schedule);
  gcap_sim_unlock();
  return failed;
}
