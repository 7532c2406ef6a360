// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// sim_log.h: the log of the simulator's calls as a recording.
#ifndef GCAP_DOCTOR_EVENTS_SIM_LOG_H_
#define GCAP_DOCTOR_EVENTS_SIM_LOG_H_

#include <stdbool.h>
#include <stdio.h>

#include "doctor/events/recording.h"

// Could this line be of a simulator's log?
bool gcap_doctor_sim_log_is(const char* line);

// Reads the log from its first line, which is in `*line`, a buffer of getline's, to the file's end. `lines_before`: of
// the file, before this one.
gcap_doctor_recording_t* gcap_doctor_sim_log_read(FILE* file, uint32_t lines_before, char** line, size_t* capacity);

#endif  // GCAP_DOCTOR_EVENTS_SIM_LOG_H_
