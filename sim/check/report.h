// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// report.h: telling what a check has found.
#ifndef GCAP_SIM_CHECK_REPORT_H_
#define GCAP_SIM_CHECK_REPORT_H_

#include <stdbool.h>
#include <stddef.h>

#include "gcap_sim.h"
#include "sim/check/shadow.h"

// Begins a report about the two calls (either may be NULL). False when it is not wanted: the check is off, or has told
// of these two stacks. Only one report is under way at a time, under the global mutex; lines are printed in between.
bool gcap_sim_report_begin(gcap_sim_check_kind_t kind, const gcap_sim_origin_t* first, const gcap_sim_origin_t* second);
// Begins a report of what has no defined result; gcap_sim_report_stop ends it, whatever the checks do.
void gcap_sim_report_begin_stop(void);
void gcap_sim_report_print(const char* format, ...) __attribute__((format(printf, 1, 2)));
// One side: `verb` by the work, with the call that made it, its stack, and the launch of its graph.
void gcap_sim_report_site(const char* verb, const gcap_sim_site_t* site);
// One call and its stack, with `role` before it.
void gcap_sim_report_origin(const char* role, const gcap_sim_origin_t* origin);
// A place in the program where something else was done than a call of CUDA.
void gcap_sim_report_stack(const char* what, const gcap_sim_stack_t* stack);
// Names the memory, with the call that allocated it.
void gcap_sim_report_memory(const gcap_sim_memory_t* memory, const void* address);
// Ends the report with what to do about it, and does what the check's action says. May not return.
void gcap_sim_report_end(const char* remedy);
void gcap_sim_report_stop(const char* remedy) __attribute__((noreturn));

// What the action `error` does, at the end of a report. One function for all checks.
void gcap_sim_report_at_error(void (*function)(void));

// Reports since the last gcap_sim_report_take.
size_t gcap_sim_report_count(void);
// Begins a new list of reports; returns how many the one before has.
size_t gcap_sim_report_take(void);
// What was told before is told again when it happens again.
void gcap_sim_report_tell_again(void);

#endif  // GCAP_SIM_CHECK_REPORT_H_
