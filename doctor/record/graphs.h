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

// The one node that the call made, and no edge or the one from an earlier node to it. False if it is not so; true takes
// it, and the caller writes it.
bool gcap_doctor_graphs_take_node(gcap_doctor_thread_t* thread, uint64_t call, gcap_doctor_node_run_t* out_node,
                                  uint64_t* out_back);
// "\ttype=kernel"
void gcap_doctor_graphs_write_type(gcap_doctor_line_t* out, int32_t type);
// The lines of all other nodes and edges, to go with the thread's next write.
void gcap_doctor_graphs_spill(gcap_doctor_thread_t* thread);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_GRAPHS_H_
