// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graphs.h: the making and ending of graphs, nodes, executables and streams, as CUPTI's callbacks for resources.
#ifndef GCAP_DOCTOR_RECORD_GRAPHS_H_
#define GCAP_DOCTOR_RECORD_GRAPHS_H_

#include "doctor/record/cupti_find.h"
#include "doctor/record/thread.h"

#pragma GCC visibility push(hidden)

// Once.
void gcap_doctor_graphs_start(const gcap_doctor_cupti_t* cupti);
void gcap_doctor_graphs_event(gcap_doctor_thread_t* thread, uint32_t callback,
                              const gcap_doctor_cupti_resource_t* data);
// An instantiation succeeded: writes the executable, unless its own callback did.
void gcap_doctor_graphs_exec_made(gcap_doctor_thread_t* thread, const gcap_doctor_open_call_t* call, const void* exec);

// The same beyond the limit of the file: of what is gone alone.
void gcap_doctor_graphs_event_limited(gcap_doctor_thread_t* thread, uint32_t callback,
                                      const gcap_doctor_cupti_resource_t* data);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_GRAPHS_H_
