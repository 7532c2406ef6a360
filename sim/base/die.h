// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// die.h: the end of a program that cannot go on.
#ifndef GCAP_SIM_BASE_DIE_H_
#define GCAP_SIM_BASE_DIE_H_

// Stops the program: a caller did what has no defined result on a GPU, or what is not modelled.
_Noreturn void gcap_sim_die(const char* format, ...) __attribute__((format(printf, 1, 2)));

// The same for a variable of the environment, or a file that one names: none of the program's calls is at fault, so the
// call under way, which was only the first to look, is not named.
_Noreturn void gcap_sim_die_of_setting(const char* format, ...) __attribute__((format(printf, 1, 2)));

// `function` names the call under way, "" when there is none. One function, which may be set again to the same.
void gcap_sim_die_in(const char* (*function)(void));

#endif  // GCAP_SIM_BASE_DIE_H_
