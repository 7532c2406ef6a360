// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// types.h: the things of the runtime by name, for headers that only point to them.
//
// The idea of the whole: an API call never does device work. It makes a task (a copy, a kernel, …) and hands it to a
// stream, which queues it, or adds it to the graph that the stream is capturing into. The scheduler runs queued tasks
// later: as much as a synchronisation needs, or whatever a seeded generator picks when a call lets time pass.
//
// Locking: one global mutex guards everything. gcap_sim_enter takes it and gcap_sim_leave gives it back, so all code
// between runs under it; only host functions and destructors of user objects run without it, on a thread of their own
// or after the call's work is done. Reference counts are plain integers for that reason.
//
// Rooms, each above those before it: base (tools), check (what the checks know), then the runtime, whose rooms call one
// another: api (the way in and out, handles, faults, the log), stream, memory, graph, device, nvcc (what objects that
// nvcc compiled register and tell); bridge tells the checks what the runtime does.
#ifndef GCAP_SIM_API_TYPES_H_
#define GCAP_SIM_API_TYPES_H_

typedef struct gcap_sim_allocation gcap_sim_allocation_t;
typedef struct gcap_sim_block gcap_sim_block_t;
typedef struct gcap_sim_capture gcap_sim_capture_t;
typedef struct gcap_sim_event gcap_sim_event_t;
typedef struct gcap_sim_exec gcap_sim_exec_t;
typedef struct gcap_sim_graph gcap_sim_graph_t;
typedef struct gcap_sim_kernel_launch gcap_sim_kernel_launch_t;
typedef struct gcap_sim_mark gcap_sim_mark_t;
typedef struct gcap_sim_member gcap_sim_member_t;
typedef struct gcap_sim_node gcap_sim_node_t;
typedef struct gcap_sim_op gcap_sim_op_t;
typedef struct gcap_sim_past gcap_sim_past_t;
typedef struct gcap_sim_pool gcap_sim_pool_t;
typedef struct gcap_sim_program gcap_sim_program_t;
typedef struct gcap_sim_stream gcap_sim_stream_t;
typedef struct gcap_sim_task gcap_sim_task_t;
typedef struct gcap_sim_user_object gcap_sim_user_object_t;

#endif  // GCAP_SIM_API_TYPES_H_
