// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// capture_internal.h: the capture scope's parts, shared by the files of this folder alone.
#ifndef GCAP_LIB_CAPTURE_CAPTURE_INTERNAL_H_
#define GCAP_LIB_CAPTURE_CAPTURE_INTERNAL_H_

#include <pthread.h>

#include "gcap/capture.h"
#include "lib/capture/calls.h"
#include "lib/capture/entries.h"
#include "lib/capture/inner.h"
#include "lib/capture/members.h"
#include "lib/capture/steps.h"

// In place of the call, in the failure that the runtime still had at the end of the scope.
#define GCAP_CAPTURE_UNREPORTED "an unreported call"

struct gcap_capture {
  pthread_t owner;  // the thread that began it
  cudaStream_t stream;
  unsigned long long id;  // of the capture that gcap began on the stream last
  gcap_capture_mode_t mode;
  uint64_t work;  // gcap_capture_set_work
  bool is_rehearsal;
  char label[GCAP_CAPTURE_LABEL_BYTES];  // gcap_capture_set_label; "" for none
  void* run;                             // gcap_capture_set_owner
  int device_id;  // of the stream; it cannot be asked once the stream captures (rule R24 of the capture rules)
  gcap_capture_members_t members;  // the other streams
  gcap_capture_entry_t* steps;     // newest first
  gcap_capture_entry_t* retained;  // newest first
  gcap_capture_calls_t calls;
  gcap_capture_steps_t* work_steps;    // of the next graph's owner; NULL: nobody asked for them
  gcap_capture_call_record_t escaped;  // the first call whose work the graph would lack; its operation is "" for none
  pthread_mutex_t latch_mutex;
  bool is_decided;                    // the latch takes nothing more
  gcap_status_t cause;                // the first failure
  uint64_t later_failures;            // reported after it
  bool is_left;                       // gcap_capture_is_left
  gcap_capture_attempt_t* attempt;    // that is open; NULL: none
  bool has_ended;                     // the stream captures no more
  cudaError_t end_answer;             // what the driver said to that
  gcap_capture_call_record_t ring[];  // of the ledger
};

// Puts the stream into capture mode.
gcap_status_t gcap_capture_begin_stream(gcap_capture_t* capture);
// Takes the stream out of capture mode, whatever state the capture is in, and gives the graph, or NULL.
//   CAPTURE_INVALIDATED  the stream is in another capture than the one that gcap began
gcap_status_t gcap_capture_end_stream(const gcap_capture_t* capture, cudaGraph_t* out_graph);
// Has the thread's hooks be those of the scope, with what hears of its calls; or none.
void gcap_capture_attach(const gcap_capture_t* capture);
void gcap_capture_detach(void);
// Sets the latch for a failed call of the thread whose result nobody looked at. Nobody hears of calls afterwards.
void gcap_capture_latch_unreported(gcap_capture_t* capture);

// The scope's first failure so far: what the latch, the thread's last error and the ledger have. NULL: there is none.
// `name`: of the hole that asks.
gcap_status_t gcap_capture_check_intact(gcap_capture_t* capture, const char* name) GCAP_NODISCARD;
// FAILED_PRECONDITION: "WHAT: stream 0x…REMEDY", of the streams that are not joined, each with its last call.
// `only_new`: not those that were unjoined before the attempt.
//   CUDA_ERROR  the runtime does not say
gcap_status_t gcap_capture_check_joined(gcap_capture_t* capture, bool only_new, const char* what,
                                        const char* remedy) GCAP_NODISCARD;

// Why the capture failed, in one status: what failed, which call broke it, the rule and the remedy. NULL when it did
// not. Takes `end_status`, the driver's answer to the end, and the cause.
gcap_status_t gcap_capture_verdict(gcap_capture_t* capture, gcap_status_t end_status);

#endif  // GCAP_LIB_CAPTURE_CAPTURE_INTERNAL_H_
