// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// thread.h: host threads as the simulator sees them.
//
// The record belongs to all parts: each keeps here what it must know of the thread that calls. What a part only points
// to, this header does not know.
#ifndef GCAP_SIM_BASE_THREAD_H_
#define GCAP_SIM_BASE_THREAD_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

#define GCAP_SIM_MAX_DEVICES 8

// The place of the API call under way on a thread. Part of gcap_sim_thread_t.
typedef struct gcap_sim_call_site {
  void* return_address;  // into the API function, of its first call into the simulator
  void* frame;           // the stack pointer of the API function at that call
  const struct gcap_sim_stack* stack;
  struct gcap_sim_origin* origin;  // made when it is first asked for
} gcap_sim_call_site_t;

typedef struct gcap_sim_thread {
  uint64_t id;
  int device;
  int capture_mode;  // cudaThreadExchangeStreamCaptureMode; unchecked, as in the real runtime
  bool uses_device;  // it has made a call that needs one
  bool has_context;  // a context of the driver is current
  cudaError_t last_error;
  cudaError_t refused;                                    // by a capture: what the call under way answers for it
  const char* refused_why;                                // what the driver's log says of it; NULL: nothing is known
  const char* call;                                       // the function under way, for reports
  bool in_call;                                           // between gcap_sim_enter and gcap_sim_leave
  uint64_t call_number;                                   // of that call, counted over all threads
  gcap_sim_call_site_t site;                              // of that call
  bool in_host_function;                                  // CUDA calls are refused there
  bool runs_host_functions;                               // the thread that the simulator keeps for them
  bool in_device_work;                                    // a twin or a library's work is running, under the lock
  size_t turn;                                            // its index + 1 in the group that takes turns; 0: in none
  struct gcap_sim_call_record* record;                    // for the log; NULL until the first call that is logged
  struct gcap_sim_stream* streams[GCAP_SIM_MAX_DEVICES];  // per-thread default streams, made on first use
} gcap_sim_thread_t;

// The record of the thread that calls.
gcap_sim_thread_t* gcap_sim_thread(void);

// `function` lets go of what the record of a thread that ends points to. One for all threads, set before the first
// ends.
void gcap_sim_thread_at_end(void (*function)(gcap_sim_thread_t* thread));

#endif  // GCAP_SIM_BASE_THREAD_H_
